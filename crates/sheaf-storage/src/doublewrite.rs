//! The doublewrite area: pages that a crash tears while they are written in place can be found here whole.
//!
//! A page is 16 KiB and a device writes 512 bytes or 4 KiB as one, so a power loss can leave a page that is half old
//! and half new, and redo needs one that is either. Before a batch of pages is written to the data file, all of it is
//! written here, one after the other, and synced.
//!
//! ```text
//!   slot 0: header | page | page | ...      batch 4
//!   slot 1: header | page | page | ...      batch 5      <- being written
//!   slot 2: header | page | page | ...      batch 2
//!   slot 3: header | page | page | ...      batch 3
//! ```
//!
//! Batches take turns with the slots; a slot is used again only when the data file was synced after its batch, so one
//! sync of the data file serves [`SLOTS`] batches.
//!
//! **Repair.** At the start, each page here of whose namesake in the data file the checksum is wrong replaces it. Pages
//! of batches before the last checkpoint began are not used: such a page may be older than the place in the log from
//! which redo starts. A newer one is a sound basis for redo, because it has all changes from before that place.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::disk::{
    self, AlignedBuffer, Buffers, DISK_BLOCK_BYTES, Disk, FileId, Operation, STRETCH_BYTES,
};
use crate::error::{Result, StorageError};
use crate::page::{PAGE_SIZE, Page, PageId};
use crate::sync::Mutex;

/// Batches that the area holds.
const SLOTS: u64 = 4;

/// Most pages of a batch.
pub(crate) const MAX_BATCH_PAGES: usize = 128;

/// A slot begins at a stretch of the file, with its header in the block before its pages.
const SLOT_BYTES: u64 = (MAX_BATCH_PAGES * PAGE_SIZE) as u64 + STRETCH_BYTES;

const MAGIC: [u8; 8] = *b"SHEAFDBL";

/// Bytes of a slot's header that are used.
const HEADER_BYTES: usize = 32;

/// See the [module](self).
pub(crate) struct Doublewrite {
    disk: Arc<dyn Disk>,
    file: FileId,
    next_batch: Mutex<u64>,
}

impl Doublewrite {
    /// The area in `file`, which is made as long as it has to be.
    pub(crate) fn open(disk: Arc<dyn Disk>, file: FileId) -> Result<Doublewrite> {
        let length = SLOTS * SLOT_BYTES;
        if disk.length(file)? < length {
            disk::run(&*disk, Operation::Allocate { file, length })?;
            disk::run(&*disk, Operation::Sync { file })?;
        }
        let mut area = Doublewrite {
            disk,
            file,
            next_batch: Mutex::new(0),
        };
        let mut newest = 0;
        for slot in 0..SLOTS {
            if let Some((batch, _)) = area.read_header(slot)? {
                newest = newest.max(batch + 1);
            }
        }
        *area.next_batch.get_mut() = newest;
        Ok(area)
    }

    /// Number of the next batch.
    pub(crate) fn next_batch(&self) -> u64 {
        *self.next_batch.lock()
    }

    /// Keeps the pages at the beginning of `staging`. When this returns, they may be written in place. `sync_pages`
    /// makes durable what was written in place before; nothing is in flight then.
    pub(crate) fn keep(
        &self,
        staging: &Arc<AlignedBuffer>,
        bytes: usize,
        sync_pages: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let mut next_batch = self.next_batch.lock();
        let batch = *next_batch;
        if batch.is_multiple_of(SLOTS) {
            sync_pages()?;
        }
        let slot = batch % SLOTS;
        let mut header = AlignedBuffer::zeroed(DISK_BLOCK_BYTES)?;
        header[4..12].copy_from_slice(&MAGIC);
        header[12..20].copy_from_slice(&batch.to_le_bytes());
        header[20..24].copy_from_slice(&((bytes / PAGE_SIZE) as u32).to_le_bytes());
        let checksum = crc32c::crc32c(&header[4..HEADER_BYTES]);
        header[..4].copy_from_slice(&checksum.to_le_bytes());
        self.write(&Arc::new(header), 0, DISK_BLOCK_BYTES, slot * SLOT_BYTES)?;
        for start in (0..bytes).step_by(STRETCH_BYTES as usize) {
            let length = (bytes - start).min(STRETCH_BYTES as usize);
            let offset = pages_offset(slot) + start as u64;
            self.write(staging, start, length, offset)?;
        }
        disk::run(&*self.disk, Operation::Sync { file: self.file })?;
        *next_batch += 1;
        Ok(())
    }

    fn write(
        &self,
        buffer: &Arc<AlignedBuffer>,
        start: usize,
        length: usize,
        offset: u64,
    ) -> Result<()> {
        let buffers = Buffers::Shared {
            buffer: buffer.clone(),
            range: start..start + length,
        };
        let file = self.file;
        disk::run(
            &*self.disk,
            Operation::Write {
                file,
                offset,
                buffers,
            },
        )?;
        Ok(())
    }

    fn read(&self, file: FileId, offset: u64, length: usize) -> Result<AlignedBuffer> {
        let buffers = Buffers::Owned(AlignedBuffer::zeroed(length)?);
        let operation = Operation::Read {
            file,
            offset,
            buffers,
        };
        match disk::run(&*self.disk, operation)? {
            Some(Buffers::Owned(buffer)) => Ok(buffer),
            _ => Err(StorageError::Closed),
        }
    }

    /// Batch and number of pages of a slot, if it was ever used.
    fn read_header(&self, slot: u64) -> Result<Option<(u64, usize)>> {
        let header = self.read(self.file, slot * SLOT_BYTES, DISK_BLOCK_BYTES)?;
        let checksum = crc32c::crc32c(&header[4..HEADER_BYTES]).to_le_bytes();
        if header[..4] != checksum || header[4..12] != MAGIC {
            return Ok(None);
        }
        let number = |range: std::ops::Range<usize>| {
            let bytes = header[range].iter().rev();
            bytes.fold(0u64, |number, &byte| number << 8 | u64::from(byte))
        };
        let pages = (number(20..24) as usize).min(MAX_BATCH_PAGES);
        Ok(Some((number(12..20), pages)))
    }

    /// Repairs torn pages of the data file from batches `first_batch` and later. Returns how many there were.
    pub(crate) fn repair(&self, data_file: FileId, first_batch: u64) -> Result<usize> {
        let mut kept: BTreeMap<PageId, Box<Page>> = BTreeMap::new();
        for slot in 0..SLOTS {
            let Some((batch, pages)) = self.read_header(slot)? else {
                continue;
            };
            if batch < first_batch {
                continue;
            }
            for place in 0..pages as u64 {
                let offset = pages_offset(slot) + place * PAGE_SIZE as u64;
                let page = as_page(&self.read(self.file, offset, PAGE_SIZE)?);
                let id = page.page_id();
                if page.verify(id).is_err() {
                    continue;
                }
                let is_newest = kept.get(&id).is_none_or(|known| known.lsn() <= page.lsn());
                if is_newest {
                    kept.insert(id, page);
                }
            }
        }
        let length = self.disk.length(data_file)?;
        let mut repaired = 0;
        for (id, page) in kept {
            let end = id.0.checked_add(1).map(|next| PageId(next).offset());
            if end.is_none_or(|end| end > length) {
                continue;
            }
            let found = as_page(&self.read(data_file, id.offset(), PAGE_SIZE)?);
            if found.verify(id).is_ok() {
                continue;
            }
            let mut copy = AlignedBuffer::zeroed(PAGE_SIZE)?;
            copy.copy_from_slice(page.bytes());
            let operation = Operation::Write {
                file: data_file,
                offset: id.offset(),
                buffers: Buffers::Owned(copy),
            };
            disk::run(&*self.disk, operation)?;
            repaired += 1;
        }
        disk::run(&*self.disk, Operation::Sync { file: data_file })?;
        Ok(repaired)
    }
}

/// Where the pages of a slot begin.
fn pages_offset(slot: u64) -> u64 {
    slot * SLOT_BYTES + STRETCH_BYTES
}

fn as_page(bytes: &[u8]) -> Box<Page> {
    let mut page = Page::zeroed();
    page.copy_from_slice(bytes);
    page
}
