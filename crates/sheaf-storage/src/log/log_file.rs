//! The log's file: where its parts lie, and reading and writing them.
//!
//! ```text
//!  0          4096       8192
//!  | control  | control  | slot 0       | slot 1       | ...
//! ```
//!
//! A *slot* holds one segment. Its place is fixed; which stretch of the log it holds changes whenever it is recycled.
//! Slots are filled with zeros once, when they are made. From then on their blocks are written in place, and a sync has
//! no metadata of the file system to write.

use std::ops::Range;
use std::sync::Arc;

use crate::disk::{
    self, AlignedBuffer, Buffers, DISK_BLOCK_BYTES, Disk, FileId, Operation, STRETCH_BYTES,
};
use crate::error::{Result, StorageError};

/// Bytes of a block: what is written at a time is a multiple.
pub(super) const BLOCK_BYTES: u64 = DISK_BLOCK_BYTES as u64;

/// Bytes before the first slot: the two control blocks.
pub(super) const HEAD_BYTES: u64 = 2 * BLOCK_BYTES;

/// Zeros are written in pieces of this size.
const ZERO_PIECE_BYTES: u64 = STRETCH_BYTES;

/// The log's file on its disk.
#[derive(Clone)]
pub(crate) struct LogFile {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) file: FileId,
    pub(super) segment_bytes: u64,
}

impl LogFile {
    /// Byte at which a slot begins.
    pub(super) fn slot_offset(&self, slot: u32) -> u64 {
        HEAD_BYTES + u64::from(slot) * self.segment_bytes
    }

    /// Slots of the file; one that was being made when the machine stopped does not count.
    pub(super) fn slots(&self) -> Result<u32> {
        let length = self.disk.length(self.file)?;
        let slots = length.saturating_sub(HEAD_BYTES) / self.segment_bytes;
        u32::try_from(slots).map_err(|_| self.damaged("it is longer than any log"))
    }

    /// Makes the slot of this number, which is the file's next one. Durable on return.
    pub(super) fn make_slot(&self, slot: u32) -> Result<()> {
        let (start, end) = (self.slot_offset(slot), self.slot_offset(slot + 1));
        // Room first: a full disk is noticed before the file is longer than what could be filled.
        self.run(Operation::Allocate {
            file: self.file,
            length: end,
        })?;
        let zeros = Arc::new(AlignedBuffer::zeroed(ZERO_PIECE_BYTES as usize)?);
        let mut offset = start;
        while offset < end {
            let length = (end - offset).min(ZERO_PIECE_BYTES) as usize;
            self.write(&zeros, 0..length, offset)?;
            offset += length as u64;
        }
        self.sync()
    }

    /// Writes a part of a buffer. Offset and length are multiples of blocks.
    pub(super) fn write(
        &self,
        buffer: &Arc<AlignedBuffer>,
        range: Range<usize>,
        mut offset: u64,
    ) -> Result<()> {
        let mut start = range.start;
        while start < range.end {
            // A transfer stays within a stretch of the file.
            let in_stretch = (STRETCH_BYTES - offset % STRETCH_BYTES) as usize;
            let end = range.end.min(start + in_stretch);
            self.run(Operation::Write {
                file: self.file,
                offset,
                buffers: Buffers::Shared {
                    buffer: buffer.clone(),
                    range: start..end,
                },
            })?;
            offset += (end - start) as u64;
            start = end;
        }
        Ok(())
    }

    /// Reads `length` bytes, which lie within one stretch.
    pub(super) fn read(&self, offset: u64, length: usize) -> Result<AlignedBuffer> {
        let buffers = self.run(Operation::Read {
            file: self.file,
            offset,
            buffers: Buffers::Owned(AlignedBuffer::zeroed(length)?),
        })?;
        match buffers {
            Some(Buffers::Owned(buffer)) => Ok(buffer),
            _ => Err(StorageError::Closed),
        }
    }

    /// Makes durable what was written.
    ///
    /// # Errors
    /// `SyncFailed`, also if the device says that it is full: what the system kept of the writes is unknown, and the
    /// next sync may succeed without them.
    pub(super) fn sync(&self) -> Result<()> {
        self.run(Operation::Sync { file: self.file })
            .map(|_| ())
            .map_err(|error| {
                tracing::error!("{error}");
                StorageError::SyncFailed { file: self.name() }
            })
    }

    pub(super) fn name(&self) -> String {
        self.disk.file_name(self.file)
    }

    /// The error for a log that cannot be what it claims.
    pub(crate) fn damaged(&self, reason: impl Into<String>) -> StorageError {
        StorageError::UnknownFormat {
            file: self.name(),
            reason: reason.into(),
        }
    }

    fn run(&self, operation: Operation) -> Result<Option<Buffers>> {
        disk::run(&*self.disk, operation)
    }
}
