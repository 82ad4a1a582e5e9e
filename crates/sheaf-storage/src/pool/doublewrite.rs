//! The doublewrite area: pages that a crash tears while they are written in place can be found here whole.
//!
//! A page is 16 KiB and a device writes 512 bytes or 4 KiB as one. So a power loss can leave a page that is half old
//! and half new, and redo needs one that is entirely old or entirely new. Before a batch of pages is written to the
//! data file, all of it is written here, one after the other, and synced.
//!
//! ```text
//!   slot 0: header | page | page | ...      batch 4
//!   slot 1: header | page | page | ...      batch 5      <- being written
//!   slot 2: header | page | page | ...      batch 2
//!   slot 3: header | page | page | ...      batch 3
//! ```
//!
//! A slot is used again only when the data file was synced after its batch, so one sync of the data file serves
//! [`SLOTS`] batches.
//!
//! **Failed writes.** A page whose write in place has failed may be torn on the device from then on, and its copy here
//! is the only whole one. Its slot is not reused until a later batch has the page and was written, or until the page
//! was freed and the log says so durably. So a device that fails here and there costs some slots. When the last one is
//! taken, the copies are written in place from here. If that fails too, nothing is written any more, pages stay dirty,
//! and recovery finds all it needs.
//!
//! **Repair.** At the start, a page here replaces the same page of the data file if the checksum of that one is wrong.
//! Pages of batches before the last checkpoint began are not used: such a page may be older than the place in the log
//! from which redo starts. A newer one is a sound basis for redo, because it has all changes from before that place.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::disk::frame_arena::FrameId;
use crate::disk::{
    self, AlignedBuffer, Buffers, DISK_BLOCK_BYTES, Disk, FileId, Operation, STRETCH_BYTES,
};
use crate::error::{Result, StorageError};
use crate::page::{Lsn, PAGE_SIZE, Page, PageId};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

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
    state: Mutex<State>,
    /// A page could once not be written in place.
    has_failed: AtomicBool,
}

struct State {
    next_batch: u64,
    /// The slot of the newest batch.
    newest: usize,
    slots: [Slot; SLOTS as usize],
}

/// What is known of a slot's batch.
#[derive(Default)]
struct Slot {
    /// The data file was synced after the batch was written in place.
    is_synced: bool,
    /// Pages whose write in place has failed, and that were not written since. With a position for those that were
    /// freed: when the log is durable up to there, what they held is not needed any more.
    failed: BTreeMap<PageId, Option<Lsn>>,
}

impl State {
    fn free_slot(&self) -> Option<usize> {
        let mut slots = self.slots.iter();
        slots.position(|slot| slot.is_synced && slot.failed.is_empty())
    }
}

/// The file that pages are written to after they were kept here.
pub(crate) struct DataFile<'f> {
    pub(crate) file: FileId,
    /// Makes durable what was written in place. Nothing is in flight then.
    pub(crate) sync: &'f dyn Fn() -> Result<()>,
    /// Makes the log durable up to a position.
    pub(crate) flush_log: &'f dyn Fn(Lsn) -> Result<()>,
}

impl Doublewrite {
    /// The area in `file`, which is made as long as it has to be.
    pub(crate) fn open(disk: Arc<dyn Disk>, file: FileId) -> Result<Doublewrite> {
        let length = SLOTS * SLOT_BYTES;
        if disk.length(file)? < length {
            disk::run(&*disk, Operation::Allocate { file, length })?;
            disk::run(&*disk, Operation::Sync { file })?;
        }
        // The first batch syncs the data file: what was written in place by the last process may not be durable.
        let state = State {
            next_batch: 0,
            newest: 0,
            slots: Default::default(),
        };
        let mut area = Doublewrite {
            disk,
            file,
            state: Mutex::new(state),
            has_failed: AtomicBool::new(false),
        };
        let mut next_batch = 0;
        for slot in 0..SLOTS {
            if let Some((batch, _)) = area.read_header(slot)? {
                next_batch = next_batch.max(batch + 1);
            }
        }
        area.state.get_mut().next_batch = next_batch;
        Ok(area)
    }

    /// Number of the next batch.
    pub(crate) fn next_batch(&self) -> u64 {
        self.state.lock().next_batch
    }

    /// Keeps the pages at the beginning of `staging`. When this returns, they may be written in place. What becomes of
    /// the writes is told by [`note_written`](Self::note_written) before the next batch comes.
    ///
    /// # Errors
    /// As the disk's; `Io` if every slot has the only copy of some page that still cannot be written.
    pub(crate) fn keep(
        &self,
        staging: &Arc<AlignedBuffer>,
        bytes: usize,
        data_file: &DataFile<'_>,
    ) -> Result<()> {
        let mut state = self.state.lock();
        let newest = match state.free_slot() {
            Some(slot) => slot,
            None => self.make_free_slot(&mut state, data_file)?,
        };
        let (batch, slot) = (state.next_batch, newest as u64);
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
        state.next_batch += 1;
        state.newest = newest;
        state.slots[newest].is_synced = false;
        Ok(())
    }

    /// A slot whose pages are all whole in the data file.
    fn make_free_slot(&self, state: &mut State, data_file: &DataFile<'_>) -> Result<usize> {
        (data_file.sync)()?;
        for slot in &mut state.slots {
            slot.is_synced = true;
        }
        if let Some(slot) = state.free_slot() {
            return Ok(slot);
        }
        let failed = state.slots.iter().flat_map(|slot| slot.failed.values());
        if let Some(freed) = failed.flatten().max() {
            (data_file.flush_log)(*freed)?;
            for slot in &mut state.slots {
                slot.failed.retain(|_, freed| freed.is_none());
            }
            if let Some(slot) = state.free_slot() {
                return Ok(slot);
            }
        }
        for (number, slot) in state.slots.iter_mut().enumerate() {
            match self.write_again(number as u64, slot, data_file.file) {
                Ok(()) => slot.failed.clear(),
                Err(error) => tracing::warn!("pages cannot be written in place: {error}"),
            }
        }
        (data_file.sync)()?;
        state.free_slot().ok_or_else(|| self.no_slot())
    }

    /// Writes the failed pages of a slot in place, from their copies.
    fn write_again(&self, number: u64, slot: &Slot, data_file: FileId) -> Result<()> {
        let (_, pages) = self.read_header(number)?.unwrap_or_default();
        for place in 0..pages {
            let page = self.read_page(number, place)?;
            let id = page.page_id();
            if slot.failed.contains_key(&id) {
                page.verify(id).map_err(|damage| StorageError::Corrupt {
                    file: self.disk.file_name(self.file),
                    page: id,
                    tree: page.tree_id(),
                    damage,
                })?;
                self.write_in_place(data_file, &page)?;
            }
        }
        Ok(())
    }

    fn read_page(&self, slot: u64, place: usize) -> Result<Box<Page>> {
        let offset = pages_offset(slot) + (place * PAGE_SIZE) as u64;
        Ok(as_page(&self.read(self.file, offset, PAGE_SIZE)?))
    }

    fn write_in_place(&self, data_file: FileId, page: &Page) -> Result<()> {
        let mut copy = AlignedBuffer::zeroed(PAGE_SIZE)?;
        copy.copy_from_slice(page.bytes());
        let operation = Operation::Write {
            file: data_file,
            offset: page.page_id().offset(),
            buffers: Buffers::Owned(copy),
        };
        disk::run(&*self.disk, operation)?;
        Ok(())
    }

    fn no_slot(&self) -> StorageError {
        let reason = "every slot has the only copy of a page that could not be written in place";
        let name = self.disk.file_name(self.file);
        StorageError::io("write", name, 0, io::Error::other(reason))
    }

    /// These pages of the newest batch were written in place: the slots of earlier batches are not needed for them any
    /// more.
    pub(crate) fn note_written(&self, pages: &[(PageId, FrameId)]) {
        if !self.has_failed.load(Ordering::SeqCst) {
            return;
        }
        for slot in &mut self.state.lock().slots {
            for (page, _) in pages {
                slot.failed.remove(page);
            }
        }
    }

    /// These pages of the newest batch could not be written in place. Those that are not wanted any more have been
    /// freed meanwhile, which the log says before `log_end`.
    pub(crate) fn note_failed(
        &self,
        pages: &[(PageId, FrameId)],
        is_wanted: impl Fn(PageId, FrameId) -> bool,
        log_end: impl Fn() -> Lsn,
    ) {
        let state = &mut *self.state.lock();
        self.has_failed.store(true, Ordering::SeqCst);
        for &(page, frame) in pages {
            for slot in &mut state.slots {
                slot.failed.remove(&page);
            }
            // A page is freed first and noted as freed afterwards: either this sees that it is freed, or the note comes
            // later.
            let freed = (!is_wanted(page, frame)).then(&log_end);
            state.slots[state.newest].failed.insert(page, freed);
        }
    }

    /// The page has been freed, which the log says before `log_end`: what it held is not wanted any more.
    pub(crate) fn note_freed(&self, page: PageId, log_end: impl Fn() -> Lsn) {
        if !self.has_failed.load(Ordering::SeqCst) {
            return;
        }
        for slot in &mut self.state.lock().slots {
            if let Some(freed) = slot.failed.get_mut(&page) {
                *freed = Some(log_end());
            }
        }
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
            for place in 0..pages {
                let page = self.read_page(slot, place)?;
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
            self.write_in_place(data_file, &page)?;
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

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::disk::simulated::{
        Fault, FaultKind, FaultyOperation, SimulatedDisk, SimulationOptions,
    };

    struct Files {
        area: Doublewrite,
        disk: Arc<SimulatedDisk>,
        data: FileId,
        syncs: Cell<usize>,
        flushed: Cell<Lsn>,
    }

    impl Files {
        fn new() -> Files {
            let disk = SimulatedDisk::new(SimulationOptions::new(1));
            let [file, data] = ["doublewrite", "data"].map(|name| disk.open(name).unwrap());
            let area = Doublewrite::open(disk.clone(), file).unwrap();
            let length = 100 * PAGE_SIZE as u64;
            let allocate = Operation::Allocate { file: data, length };
            disk::run(&*disk, allocate).unwrap();
            Files {
                area,
                disk,
                data,
                syncs: Cell::new(0),
                flushed: Cell::new(Lsn(0)),
            }
        }

        /// A batch of one page, whose write in place succeeds or leaves the page torn.
        fn write(&self, page: PageId, fill: u8, is_written: bool) -> Result<()> {
            let mut copy = Page::zeroed();
            copy.set_page_id(page);
            copy[PAGE_SIZE / 2..].fill(fill);
            copy.seal();
            let mut staging = AlignedBuffer::zeroed(PAGE_SIZE).unwrap();
            staging.copy_from_slice(copy.bytes());
            let data_file = DataFile {
                file: self.data,
                sync: &|| {
                    self.syncs.set(self.syncs.get() + 1);
                    Ok(())
                },
                flush_log: &|lsn| {
                    self.flushed.set(lsn);
                    Ok(())
                },
            };
            self.area.keep(&Arc::new(staging), PAGE_SIZE, &data_file)?;
            let mut in_place = AlignedBuffer::zeroed(PAGE_SIZE).unwrap();
            let length = if is_written { PAGE_SIZE } else { 1_000 };
            in_place[..length].copy_from_slice(&copy.bytes()[..length]);
            let write = Operation::Write {
                file: self.data,
                offset: page.offset(),
                buffers: Buffers::Owned(in_place),
            };
            disk::run(&*self.disk, write).unwrap();
            let pages = [(page, FrameId(0))];
            match is_written {
                true => self.area.note_written(&pages),
                false => self.area.note_failed(&pages, |_, _| true, || Lsn(0)),
            }
            Ok(())
        }

        fn with_failed_pages() -> Files {
            let files = Files::new();
            for page in 0..SLOTS {
                files.write(PageId(page), 1, false).unwrap();
            }
            files
        }

        /// What a byte of the page is after a repair; none if the page is damaged.
        fn repaired(&self, page: PageId) -> Option<u8> {
            self.area.repair(self.data, 0).unwrap();
            self.in_place(page)
        }

        /// As it is.
        fn in_place(&self, page: PageId) -> Option<u8> {
            let found = self.area.read(self.data, page.offset(), PAGE_SIZE).unwrap();
            let found = as_page(&found);
            found.verify(page).is_ok().then(|| found[PAGE_SIZE - 1])
        }

        /// From now on nothing can be written to the data file.
        fn break_data_file(&self) {
            self.disk.inject(Fault {
                operation: FaultyOperation::Write,
                kind: FaultKind::IoError,
                file: "data".into(),
                bytes: 0..u64::MAX,
                times: u32::MAX,
            });
        }
    }

    #[test]
    fn one_sync_of_the_data_file_serves_all_slots() {
        let files = Files::new();
        for batch in 0..4 * SLOTS {
            files.write(PageId(batch), 1, true).unwrap();
        }
        assert_eq!(files.syncs.get(), 4);
    }

    #[test]
    fn a_torn_page_has_its_copy_until_it_was_written() {
        let files = Files::new();
        files.write(PageId(7), 1, false).unwrap();
        for batch in 10..30 {
            files.write(PageId(batch), 1, true).unwrap();
        }
        assert_eq!(files.repaired(PageId(7)), Some(1));
        // Again, and once more: the newest copy is as good as the one before.
        files.write(PageId(7), 2, false).unwrap();
        for batch in 10..30 {
            files.write(PageId(batch), 2, true).unwrap();
        }
        assert_eq!(files.repaired(PageId(7)), Some(2));
        files.write(PageId(7), 3, true).unwrap();
        assert_eq!(
            files
                .area
                .state
                .lock()
                .slots
                .iter()
                .filter(|slot| !slot.failed.is_empty())
                .count(),
            0
        );
    }

    #[test]
    fn nothing_is_written_while_every_slot_has_the_only_copy_of_a_page() {
        let files = Files::with_failed_pages();
        files.break_data_file();
        files.write(PageId(50), 1, true).unwrap_err();
        files.disk.heal();
        for page in 0..SLOTS {
            assert_eq!(files.repaired(PageId(page)), Some(1));
        }
    }

    #[test]
    fn the_copies_are_written_in_place_when_no_slot_is_left() {
        let files = Files::with_failed_pages();
        files.break_data_file();
        files.write(PageId(50), 1, true).unwrap_err();
        files.disk.heal();
        // The device writes again.
        for page in 50..60 {
            files.write(PageId(page), 1, true).unwrap();
        }
        for page in 0..SLOTS {
            assert_eq!(files.repaired(PageId(page)), Some(1));
        }
    }

    #[test]
    fn a_page_that_was_freed_needs_no_copy_once_the_log_says_so() {
        let files = Files::with_failed_pages();
        files.area.note_freed(PageId(2), || Lsn(77));
        files.write(PageId(50), 1, true).unwrap();
        assert_eq!(files.flushed.get(), Lsn(77));
        // It is not written again, for it may be another's by now.
        files.write(PageId(51), 1, true).unwrap();
        assert_eq!(files.in_place(PageId(2)), None);
        // One that was freed while it was being written.
        let pages = [(PageId(3), FrameId(0))];
        files.area.note_failed(&pages, |_, _| false, || Lsn(99));
        for page in [0, 1, 60] {
            files.write(PageId(page), 2, false).unwrap();
        }
        files.write(PageId(61), 2, true).unwrap();
        assert_eq!(files.flushed.get(), Lsn(99));
        assert_eq!(files.in_place(PageId(3)), None);
    }
}
