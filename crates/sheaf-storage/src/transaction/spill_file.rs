//! The spill file: what transactions need only while this process lives, and what memory has no room for.
//!
//! Old versions of rows ([`crate::transaction::versions`]) and the undo of long transactions
//! ([`crate::transaction::undo_stack`]) are spilled here in pieces. A piece is handed over, kept until its handle
//! [`Spilled`] is dropped, and may be read any number of times. Nothing here is ever synced, and nothing outlives the
//! process. The file is emptied when it is opened, which is when something is spilled for the first time. It is emptied
//! again when no piece is left in it, and when the storage is closed.
//!
//! ```text
//!   stretch 0 (1 MiB)                        stretch 1                              end
//!   | piece | piece | free | piece | piece | | piece | free                        |
//! ```
//!
//! A piece takes whole disk blocks within one stretch of the file, because a transfer must not leave its stretch. Room
//! is taken from the smallest free run that fits, else at the end; pieces that are spilled together mostly lie side by
//! side and are written with one request. The handle knows the checksum: what comes back is what was handed over, or an
//! error.
//!
//! Locks: the space is locked after everything else, and while the file is emptied.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use crate::disk::{
    self, AlignedBuffer, Buffers, DISK_BLOCK_BYTES, Disk, FileId, Operation, STRETCH_BYTES,
};
use crate::error::{Result, StorageError};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Name of the file in the data directory. The folder is emptied when the directory is opened.
const SPILL_FILE: &str = "temp/sheaf.spill";

/// Most bytes of a piece.
pub(crate) const MAX_PIECE_BYTES: usize = STRETCH_BYTES as usize;

const BLOCKS_PER_STRETCH: u64 = STRETCH_BYTES / DISK_BLOCK_BYTES as u64;

/// See the [module](self).
pub(crate) struct SpillFile {
    disk: Arc<dyn Disk>,
    limit_bytes: u64,
    /// Opened when something is spilled for the first time.
    file: Mutex<Option<FileId>>,
    space: Mutex<Space>,
    used_bytes: AtomicU64,
    written_bytes: AtomicU64,
    read_bytes: AtomicU64,
}

/// A piece in the file, which keeps its room until this is dropped.
pub(crate) struct Spilled {
    file: Arc<SpillFile>,
    block: u64,
    length: u32,
    checksum: u32,
}

impl SpillFile {
    /// A file that is never longer than `limit_bytes`. Nothing is opened yet.
    pub(crate) fn new(disk: Arc<dyn Disk>, limit_bytes: u64) -> Arc<SpillFile> {
        Arc::new(SpillFile {
            disk,
            limit_bytes,
            file: Mutex::new(None),
            space: Mutex::new(Space::default()),
            used_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
        })
    }

    /// Bytes of the file that pieces take.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Most bytes that the file may have.
    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Bytes written so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Bytes read so far.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// Writes pieces of at most [`MAX_PIECE_BYTES`] each. The caller holds no latch.
    ///
    /// # Errors
    /// `SpillFileFull` beyond the limit, `DiskFull`, `Io`. Nothing was spilled then.
    pub(crate) fn store(self: &Arc<Self>, pieces: &[Vec<u8>]) -> Result<Vec<Spilled>> {
        let file = self.open()?;
        let mut spilled: Vec<Spilled> = Vec::with_capacity(pieces.len());
        for piece in pieces {
            spilled.push(self.take_room(piece)?);
        }
        let mut first = 0;
        while first < pieces.len() {
            let run = 1 + spilled[first..]
                .windows(2)
                .take_while(|pair| pair[0].is_followed_by(&pair[1]))
                .count();
            self.write(
                file,
                &pieces[first..first + run],
                &spilled[first..first + run],
            )?;
            first += run;
        }
        Ok(spilled)
    }

    fn open(&self) -> Result<FileId> {
        let mut file = self.file.lock();
        if let Some(file) = *file {
            return Ok(file);
        }
        let opened = self.disk.open(SPILL_FILE)?;
        self.empty(opened)?;
        *file = Some(opened);
        Ok(opened)
    }

    fn empty(&self, file: FileId) -> Result<()> {
        disk::run(&*self.disk, Operation::SetLength { file, length: 0 })?;
        Ok(())
    }

    fn take_room(self: &Arc<Self>, piece: &[u8]) -> Result<Spilled> {
        let blocks = blocks_of(piece.len());
        let limit_blocks = self.limit_bytes / DISK_BLOCK_BYTES as u64;
        let block = self.space.lock().take(blocks, limit_blocks);
        let block = block.ok_or(StorageError::SpillFileFull {
            limit: self.limit_bytes,
        })?;
        let bytes = blocks * DISK_BLOCK_BYTES as u64;
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(Spilled {
            file: self.clone(),
            block,
            length: piece.len() as u32,
            checksum: crc32c::crc32c(piece),
        })
    }

    /// Writes pieces that lie side by side.
    fn write(&self, file: FileId, pieces: &[Vec<u8>], places: &[Spilled]) -> Result<()> {
        let blocks: u64 = places.iter().map(Spilled::blocks).sum();
        let bytes = blocks as usize * DISK_BLOCK_BYTES;
        let mut buffer = AlignedBuffer::zeroed(bytes)?;
        let offset = places[0].offset();
        for (piece, place) in pieces.iter().zip(places) {
            let start = (place.offset() - offset) as usize;
            buffer[start..start + piece.len()].copy_from_slice(piece);
        }
        let buffers = Buffers::Owned(buffer);
        let write = Operation::Write {
            file,
            offset,
            buffers,
        };
        disk::run(&*self.disk, write)?;
        self.written_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    fn read(&self, piece: &Spilled) -> Result<AlignedBuffer> {
        let file = self.open()?;
        let bytes = piece.blocks() as usize * DISK_BLOCK_BYTES;
        let offset = piece.offset();
        let buffers = Buffers::Owned(AlignedBuffer::zeroed(bytes)?);
        let read = Operation::Read {
            file,
            offset,
            buffers,
        };
        let Some(Buffers::Owned(buffer)) = disk::run(&*self.disk, read)? else {
            return Err(StorageError::Closed);
        };
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if crc32c::crc32c(&buffer[..piece.length as usize]) != piece.checksum {
            let damaged = io::Error::new(io::ErrorKind::InvalidData, "wrong checksum");
            let name = self.disk.file_name(file);
            return Err(StorageError::io("read", name, offset, damaged));
        }
        Ok(buffer)
    }

    fn release(&self, block: u64, blocks: u64) {
        self.space.lock().give(block, blocks);
        let bytes = blocks * DISK_BLOCK_BYTES as u64;
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Frees the file's room if none of it is used.
    pub(crate) fn empty_if_unused(&self) -> Result<()> {
        let Some(file) = *self.file.lock() else {
            return Ok(());
        };
        // No thread can take room, and write to it, until the file is empty.
        let mut space = self.space.lock();
        if space.used == 0 && space.end > 0 {
            self.empty(file)?;
            *space = Space::default();
        }
        Ok(())
    }

    /// Gives all of the file's room back: the storage is closed.
    pub(crate) fn empty_at_close(&self) -> Result<()> {
        match *self.file.lock() {
            Some(file) => self.empty(file),
            None => Ok(()),
        }
    }
}

impl Spilled {
    /// Bytes of the piece.
    pub(crate) fn length(&self) -> usize {
        self.length as usize
    }

    /// The piece, and behind it zeros.
    ///
    /// # Errors
    /// `Io`, also if the bytes are not those that were written.
    pub(crate) fn read(&self) -> Result<AlignedBuffer> {
        self.file.read(self)
    }

    fn blocks(&self) -> u64 {
        blocks_of(self.length())
    }

    fn offset(&self) -> u64 {
        self.block * DISK_BLOCK_BYTES as u64
    }

    /// Whether both can be written with one request.
    fn is_followed_by(&self, next: &Spilled) -> bool {
        self.block + self.blocks() == next.block && !next.block.is_multiple_of(BLOCKS_PER_STRETCH)
    }
}

impl Drop for Spilled {
    fn drop(&mut self) {
        self.file.release(self.block, self.blocks());
    }
}

fn blocks_of(bytes: usize) -> u64 {
    bytes.max(1).div_ceil(DISK_BLOCK_BYTES) as u64
}

/// The room in the file, in blocks. A free run lies in one stretch.
#[derive(Default)]
struct Space {
    /// First block and length.
    free: BTreeMap<u64, u64>,
    /// Length and first block.
    by_length: BTreeSet<(u64, u64)>,
    end: u64,
    used: u64,
}

impl Space {
    /// A run of this length; none if the file would become too long.
    fn take(&mut self, blocks: u64, limit: u64) -> Option<u64> {
        debug_assert!(blocks <= BLOCKS_PER_STRETCH);
        if let Some(&(length, start)) = self.by_length.range((blocks, 0)..).next() {
            self.forget_free(start, length);
            if length > blocks {
                self.note_free(start + blocks, length - blocks);
            }
            self.used += blocks;
            return Some(start);
        }
        let left = BLOCKS_PER_STRETCH - self.end % BLOCKS_PER_STRETCH;
        let start = if left < blocks {
            self.end + left
        } else {
            self.end
        };
        if start + blocks > limit {
            return None;
        }
        if start > self.end {
            self.note_free(self.end, left);
        }
        self.end = start + blocks;
        self.used += blocks;
        Some(start)
    }

    /// Frees a run, and joins it with its neighbours in the stretch.
    fn give(&mut self, start: u64, blocks: u64) {
        self.used -= blocks;
        let (mut start, mut end) = (start, start + blocks);
        let before = self.free.range(..start).next_back();
        if let Some((&first, &length)) = before
            && first + length == start
            && !start.is_multiple_of(BLOCKS_PER_STRETCH)
        {
            self.forget_free(first, length);
            start = first;
        }
        if let Some(&length) = self.free.get(&end)
            && !end.is_multiple_of(BLOCKS_PER_STRETCH)
        {
            self.forget_free(end, length);
            end += length;
        }
        self.note_free(start, end - start);
    }

    fn note_free(&mut self, start: u64, blocks: u64) {
        self.free.insert(start, blocks);
        self.by_length.insert((blocks, start));
    }

    fn forget_free(&mut self, start: u64, blocks: u64) {
        self.free.remove(&start);
        self.by_length.remove(&(blocks, start));
    }
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use super::*;
    use crate::disk::simulated::{
        Fault, FaultKind, FaultyOperation, SimulatedDisk, SimulationOptions,
    };

    fn file(limit_bytes: u64) -> (Arc<SimulatedDisk>, Arc<SpillFile>) {
        let disk = SimulatedDisk::new(SimulationOptions::new(1));
        (disk.clone(), SpillFile::new(disk, limit_bytes))
    }

    fn piece(fill: u8, bytes: usize) -> Vec<u8> {
        vec![fill; bytes]
    }

    #[test]
    fn pieces_come_back_and_their_room_is_used_again() {
        let (disk, file) = file(4 << 20);
        let pieces: Vec<_> = (1..=100).map(|i| piece(i, usize::from(i) * 700)).collect();
        let mut spilled = file.store(&pieces).unwrap();
        for (piece, spilled) in pieces.iter().zip(&spilled) {
            assert_eq!(spilled.read().unwrap()[..spilled.length()], piece[..]);
        }
        let used = file.used_bytes();
        let is_kept = |length: usize| length.is_multiple_of(1_400);
        spilled.retain(|spilled| is_kept(spilled.length()));
        assert!(file.used_bytes() < used);
        let file_id = disk.open(SPILL_FILE).unwrap();
        let length = disk.length(file_id).unwrap();
        let others: Vec<_> = pieces
            .iter()
            .filter(|piece| !is_kept(piece.len()))
            .cloned()
            .collect();
        spilled.extend(file.store(&others).unwrap());
        let grown = disk.length(file_id).unwrap() - length;
        assert_eq!(grown, 0, "free runs are taken first");
        for spilled in &spilled {
            let fill = (spilled.length() / 700) as u8;
            assert!(
                spilled.read().unwrap()[..spilled.length()]
                    .iter()
                    .all(|&byte| byte == fill)
            );
        }
        drop(spilled);
        assert_eq!(file.used_bytes(), 0);
        file.empty_if_unused().unwrap();
        assert_eq!(disk.used_bytes(), 0);
        file.store(&pieces[..1]).unwrap();
    }

    #[test]
    fn free_neighbours_become_one_run_within_a_stretch() {
        let mut space = Space::default();
        let starts: Vec<_> = (0..5).map(|_| space.take(100, 10_000).unwrap()).collect();
        assert_eq!(starts, [0, 100, 256, 356, 512]);
        for start in [0, 256, 100, 512, 356] {
            space.give(start, 100);
        }
        assert_eq!(space.used, 0);
        assert_eq!(
            space.free,
            BTreeMap::from([(0, 256), (256, 256), (512, 100)])
        );
        assert_eq!(
            space.take(256, 0),
            Some(0),
            "what is free needs no more room"
        );
        assert_eq!(space.take(257 - 1, 0), Some(256));
        assert_eq!(space.take(101, 600), None);
    }

    #[test]
    fn a_full_file_a_full_disk_and_damage_are_errors_and_take_no_room() {
        let (disk, file) = file(1 << 20);
        let full = file.store(&[piece(1, 1 << 20), piece(2, 1)]);
        assert!(matches!(full, Err(StorageError::SpillFileFull { .. })));
        assert_eq!(file.used_bytes(), 0);
        disk.set_capacity(0);
        let full = file.store(&[piece(1, 5_000)]);
        assert!(matches!(full, Err(StorageError::DiskFull { .. })));
        disk.heal();
        disk.inject(Fault {
            operation: FaultyOperation::Read,
            kind: FaultKind::FlippedBit,
            file: SPILL_FILE.into(),
            bytes: 0..1 << 20,
            times: 1,
        });
        let spilled = file.store(&[piece(3, DISK_BLOCK_BYTES)]).unwrap();
        assert!(matches!(spilled[0].read(), Err(StorageError::Io { .. })));
        assert_eq!(
            spilled[0].read().unwrap()[..],
            piece(3, DISK_BLOCK_BYTES)[..]
        );
        drop(spilled);
        assert_eq!(file.used_bytes(), 0);
    }
}
