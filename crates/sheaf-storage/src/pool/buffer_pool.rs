//! The buffer pool: pages of one file, in a fixed number of frames.
//!
//! ```text
//!   page number --> page table word --> frame          a hit: one load, nothing shared is written
//!                        |
//!                        | EVICTED
//!                        v
//!    claim (READING) -> take a frame -> submit -> reap -> verify -> UNLOCKED      a miss
//!                          |
//!                free list, else the clock hand evicts, else dirty pages are written back
//! ```
//!
//! The first thread that misses a page reads it, and all others that want the page wait for this read: the claim in the
//! page's word decides. If anything goes wrong on the way, the word goes back to EVICTED and the waiters are woken, so
//! each of them tries, and fails, by itself.
//!
//! **Budget.** `pool_bytes` pays for everything: frames, their descriptors, staging for writes, counters, and the page
//! table. The table grows with the file, one frame's worth of words at a time, and each step takes a frame out of
//! service for good. So the sum never exceeds the budget, which [`memory_bytes`](BufferPool::memory_bytes) asserts.
//!
//! **Lending.** A process that has more memory than it may takes some of the frames' ([`Lender`]). These frames come
//! back one by one when the pool would evict a page and the process has room. So a statement that needs much for a
//! moment costs some reads of pages, and is not stopped.
//!
//! **Lock order.** Page latches come first; the locks in here (free list, parking queues, staging, growth) are taken
//! under them and never the other way round. Write-back, which may run while its thread holds latches, therefore only
//! tries latches and skips pages that it cannot have.

use std::ops::Range;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use sheaf_memory::process::{self, Lender};

use crate::counters::{self, PerThreadCounter, PoolCounters, ThreadPageWork};
use crate::disk::frame_arena::{FrameArena, FrameId};
use crate::disk::{self, Disk, FileId, Operation};
use crate::error::{Result, StorageError};
use crate::page::{PAGE_SIZE, PageId};
use crate::pool::guard::{ExclusiveGuard, OptimisticGuard, SharedGuard};
use crate::pool::latch::{self, Access, ParkingLot, Refusal};
use crate::pool::optimistic_read::ask_for_line;
use crate::pool::page_read::{Claim, PageRead};
use crate::pool::page_table::{PageTable, PageWord, Usage, state};
use crate::pool::passing_pages::{PassingPages, ReadReason};
use crate::pool::pool_core::{FrameDescriptor, PoolCore};
use crate::pool::write_back::{BackgroundWriter, WriteBack, WriteProtection, WriterSignal};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, thread};

/// Fewest frames a pool works with: every thread latches a few pages at a time, and must find a frame for the next.
pub const MIN_FRAMES: usize = 32;

/// Frames looked for when the free list is empty.
const EVICTION_BATCH: usize = 16;

/// Frames that a prefetch looks at for one that can be evicted.
const HINT_STEPS: usize = 1024;

/// Passing pages that a prefetch looks at for one that can be evicted.
const PASSING_STEPS: usize = 64;

/// There is room beside passing pages if more than this part of the frames is free.
const MUCH_FREE_SHARE: usize = 16;

/// This part of the frames has its memory, however much the process has.
const KEPT_SHARE: usize = 4;

/// A thread that finds every frame latched or in flight looks again this often before it fails.
const ALLOCATION_ATTEMPTS: usize = 1000;
/// So many of these attempts follow each other at once; before the others it sleeps.
const PATIENT_ATTEMPTS: usize = 100;
const ALLOCATION_PAUSE: Duration = Duration::from_millis(1);

/// Most staging pages of write-back: 2 MiB.
const MAX_STAGING_PAGES: usize = crate::pool::doublewrite::MAX_BATCH_PAGES;
/// Fewest staging pages of write-back.
const MIN_STAGING_PAGES: usize = 4;

/// Sizes and limits of a buffer pool.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Bytes of everything the pool allocates.
    pub pool_bytes: usize,
    /// Most pages the data file may ever have; bounds the address space of the page table.
    pub max_pages: u64,
    /// Two wanted pages are read in one request when at most this many unwanted pages lie between them. None by
    /// default: at the depth that prefetch runs at, a second request was measured to cost less than reading past a page
    /// (TPC-H Q6 over a month, cold: 0.60 s against 0.72 s with a gap of one page).
    pub merge_gap_pages: u64,
    /// Share of the frames that prefetched and not yet used pages may hold, in percent.
    pub prefetch_quota_percent: usize,
    /// Whether a background thread writes dirty pages back. Without one, [`BufferPool::write_back_step`] does it when
    /// called, and otherwise eviction.
    pub background_writer: bool,
}

impl PoolOptions {
    /// The defaults for a pool of this size.
    pub fn new(pool_bytes: usize) -> PoolOptions {
        PoolOptions {
            pool_bytes,
            max_pages: 1 << 32,
            merge_gap_pages: 0,
            prefetch_quota_percent: 25,
            background_writer: cfg!(not(feature = "simulation")),
        }
    }
}

/// See the [module](self).
pub struct BufferPool {
    core: Arc<PoolCore>,
    disk: Arc<dyn Disk>,
    file: FileId,
    options: PoolOptions,
    pub(crate) write_back: WriteBack,
    /// Set before the first page changes.
    pub(crate) protection: OnceLock<WriteProtection>,
    /// Held while the file grows: the number of frames that pay for the page table.
    growth: Mutex<usize>,
    sync_failed: AtomicBool,
    writer_signal: Arc<WriterSignal>,
    background: Mutex<Option<BackgroundWriter>>,
}

impl BufferPool {
    /// A pool over `file`, whose present length decides how many pages there are.
    ///
    /// # Errors
    /// `BadOption` if `pool_bytes` is too small for [`MIN_FRAMES`] and the page table of this file.
    pub fn open(
        disk: Arc<dyn Disk>,
        file: FileId,
        options: PoolOptions,
    ) -> Result<Arc<BufferPool>> {
        let pages = disk.length(file)? / PAGE_SIZE as u64;
        let table = PageTable::reserve(options.max_pages)?;
        table.grow(pages)?;
        let staging_pages =
            (options.pool_bytes / PAGE_SIZE / 32).clamp(MIN_STAGING_PAGES, MAX_STAGING_PAGES);
        let frames = Self::affordable_frames(&options, pages, staging_pages)?;
        let core = Arc::new(PoolCore::new(table, frames, disk.file_name(file))?);
        let pool = Arc::new(BufferPool {
            core,
            disk,
            file,
            write_back: WriteBack::new(staging_pages)?,
            protection: OnceLock::new(),
            growth: Mutex::new(0),
            sync_failed: AtomicBool::new(false),
            writer_signal: Arc::default(),
            background: Mutex::new(None),
            options,
        });
        if pool.options.background_writer {
            *pool.background.lock() = Some(BackgroundWriter::start(&pool, &pool.writer_signal)?);
        }
        // Asserts that the budget holds.
        pool.memory_bytes();
        let lender: Weak<BufferPool> = Arc::downgrade(&pool);
        process::add_lender(lender);
        Ok(pool)
    }

    /// Bytes besides frames and page table.
    fn fixed_bytes(staging_pages: usize) -> usize {
        staging_pages * PAGE_SIZE
            + PerThreadCounter::bytes()
            + size_of::<BufferPool>()
            + size_of::<PoolCore>()
            + ParkingLot::bytes()
    }

    /// Bytes of a frame, its descriptor, and its places in the free list and among the passing pages.
    const FRAME_BYTES: usize = PAGE_SIZE
        + size_of::<FrameDescriptor>()
        + size_of::<FrameId>()
        + PassingPages::BYTES_OF_FRAME;

    fn affordable_frames(options: &PoolOptions, pages: u64, staging_pages: usize) -> Result<usize> {
        let others = Self::fixed_bytes(staging_pages)
            + PageTable::bytes_for(pages)
            + FrameArena::bytes_for(0);
        let frames = options.pool_bytes.saturating_sub(others) / Self::FRAME_BYTES;
        if frames < MIN_FRAMES {
            let least = others + MIN_FRAMES * Self::FRAME_BYTES;
            return Err(StorageError::BadOption {
                option: "pool_bytes",
                reason: format!(
                    "{} bytes are too few for a file of {pages} pages; the least is {least}",
                    options.pool_bytes
                ),
            });
        }
        Ok(frames.min(crate::pool::page_table::MAX_FRAMES - 1))
    }

    /// Bytes allocated at present; never above `PoolOptions::pool_bytes`.
    pub fn memory_bytes(&self) -> usize {
        let retired = *self.growth.lock();
        let frames = self.core.arena().frames();
        let bytes = Self::fixed_bytes(self.write_back.staging_pages())
            + PageTable::bytes_for(self.page_count())
            + FrameArena::bytes_for(0)
            + frames * Self::FRAME_BYTES
            - retired * PAGE_SIZE;
        assert!(
            bytes <= self.options.pool_bytes,
            "the buffer pool holds {bytes} bytes, its budget is {}",
            self.options.pool_bytes
        );
        bytes
    }

    /// From now on no page is written before its log records and its copy are durable.
    pub(crate) fn protect(&self, protection: WriteProtection) {
        // Set a second time it would be the same log.
        let _ = self.protection.set(protection);
    }

    pub(crate) fn core(&self) -> &Arc<PoolCore> {
        &self.core
    }

    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    pub(crate) fn file(&self) -> FileId {
        self.file
    }

    pub(crate) fn options(&self) -> &PoolOptions {
        &self.options
    }

    /// Pages of the data file.
    pub fn page_count(&self) -> u64 {
        self.core.table.pages()
    }

    /// Makes the data file at least `pages` long, with room on the device behind every page, so that writing them back
    /// cannot run out of space.
    ///
    /// # Errors
    /// `DiskFull`; `TooManyPages`; `PoolExhausted` if the page table would leave too few frames. Nothing has changed
    /// then, except that the file may be longer.
    pub fn extend_to(&self, pages: u64) -> Result<()> {
        let mut retired = self.growth.lock();
        let present = self.page_count();
        if pages <= present {
            return Ok(());
        }
        if pages > self.core.table.limit() {
            return Err(StorageError::TooManyPages {
                file: self.core.file_name.clone(),
                pages,
                limit: self.core.table.limit(),
            });
        }
        let length = pages * PAGE_SIZE as u64;
        disk::run(
            &*self.disk,
            Operation::Allocate {
                file: self.file,
                length,
            },
        )?;
        let chunks = PageTable::chunks_for(pages) - PageTable::chunks_for(present);
        let payment = self.take_frames_for_table(chunks as usize, *retired)?;
        if let Err(error) = self.core.table.grow(pages) {
            payment
                .into_iter()
                .for_each(|frame| self.core.give_free_frame(frame));
            return Err(error);
        }
        for frame in payment {
            self.core.retire(frame);
            *retired += 1;
        }
        Ok(())
    }

    fn take_frames_for_table(&self, count: usize, retired: usize) -> Result<Vec<FrameId>> {
        let frames = self.core.arena().frames();
        if frames - retired < MIN_FRAMES + count {
            return Err(StorageError::PoolExhausted {
                frames: frames - retired,
            });
        }
        let mut taken = Vec::with_capacity(count);
        for _ in 0..count {
            match self.allocate_frame() {
                Ok(frame) => taken.push(frame),
                Err(error) => {
                    taken
                        .into_iter()
                        .for_each(|frame| self.core.give_free_frame(frame));
                    return Err(error);
                }
            }
        }
        Ok(taken)
    }

    fn word_of(&self, page: PageId) -> Result<&AtomicU64> {
        self.core
            .word(page)
            .ok_or_else(|| StorageError::NoSuchPage {
                file: self.core.file_name.clone(),
                page,
                pages: self.page_count(),
            })
    }

    /// The page for reading without a latch. Reads it from disk if it is not in memory; waits while it is latched
    /// exclusively. Writes nothing shared if the page is in memory and has been used before.
    ///
    /// # Errors
    /// `NoSuchPage`, `Io`, `Corrupt`, `PoolExhausted`; as for all guards.
    #[inline]
    pub fn optimistic(&self, page: PageId) -> Result<OptimisticGuard<'_>> {
        self.core.accesses.increment();
        if let Some(word) = self.core.word(page) {
            let seen = PageWord(word.load(Ordering::Acquire));
            if seen.is_hot_and_readable() {
                return Ok(OptimisticGuard::new(&self.core, word, page, seen));
            }
        }
        self.optimistic_slowly(page)
    }

    #[cold]
    fn optimistic_slowly(&self, page: PageId) -> Result<OptimisticGuard<'_>> {
        let word = self.word_of(page)?;
        loop {
            let seen = PageWord(word.load(Ordering::Acquire));
            match seen.state() {
                state::EVICTED => self.read_page(page, seen)?,
                state::READING => self.await_read(page, word),
                state::EXCLUSIVE => {
                    self.await_latch(page, word, &|word| word.state() == state::EXCLUSIVE);
                }
                _ => {
                    let used = seen.accessed();
                    if used == seen || latch::exchange(word, seen, used).is_ok() {
                        if self.core.note_use(page, used) {
                            let _ = latch::exchange(word, used, used.with_usage(Usage::Hot));
                        }
                        return Ok(OptimisticGuard::new(&self.core, word, page, used));
                    }
                }
            }
        }
    }

    /// The page for a look at it, if it is in memory. That is no use of the page: it is evicted as if there had been no
    /// look. Waits while it is latched exclusively; only if it is evicted just then, it is read.
    pub(crate) fn look_at(&self, page: PageId) -> Result<Option<OptimisticGuard<'_>>> {
        let word = self.word_of(page)?;
        let seen = PageWord(word.load(Ordering::Acquire));
        if seen.is_readable() {
            return Ok(Some(OptimisticGuard::new(&self.core, word, page, seen)));
        }
        if seen.is_resident() {
            return self.optimistic(page).map(Some);
        }
        Ok(None)
    }

    /// The page if it is in memory and no thread changes it at this moment: for a look that is no use of it, and that
    /// does not wait.
    #[inline]
    pub(crate) fn glance_at(&self, page: PageId) -> Option<OptimisticGuard<'_>> {
        let word = self.core.word(page)?;
        let seen = PageWord(word.load(Ordering::Acquire));
        seen.is_readable()
            .then(|| OptimisticGuard::new(&self.core, word, page, seen))
    }

    /// Asks memory for what [`glance_at`](Self::glance_at) looks at first, and does not wait.
    #[inline]
    pub(crate) fn ask_for_word(&self, page: PageId) {
        if let Some(word) = self.core.word(page) {
            ask_for_line(std::ptr::from_ref(word).cast());
        }
    }

    /// Visits all pages in memory, with whether they are dirty, except those that are latched exclusively.
    pub(crate) fn for_each_resident(&self, mut visit: impl FnMut(OptimisticGuard<'_>, bool)) {
        for descriptor in self.core.descriptors() {
            let Some(page) = descriptor.page() else {
                continue;
            };
            let Some(word) = self.core.word(page) else {
                continue;
            };
            let seen = PageWord(word.load(Ordering::Acquire));
            if seen.is_readable() {
                let guard = OptimisticGuard::new(&self.core, word, page, seen);
                visit(guard, descriptor.is_dirty());
            }
        }
    }

    /// The page for reading, kept from changing. Waits for a writer.
    #[inline]
    pub fn shared(&self, page: PageId) -> Result<SharedGuard<'_>> {
        self.core.accesses.increment();
        let word = self.word_of(page)?;
        loop {
            match latch::try_shared(word, Access::Use) {
                Ok(latched) => {
                    self.core.note_use(page, latched);
                    return Ok(SharedGuard::new(&self.core, word, page, latched));
                }
                Err(refusal) => self.overcome(refusal, page, word, &|word| {
                    word.state() == state::EXCLUSIVE || word.shared_count() == state::MAX_SHARED
                })?,
            }
        }
    }

    /// The page for changing. Waits for readers with a latch and for another writer.
    #[inline]
    pub fn exclusive(&self, page: PageId) -> Result<ExclusiveGuard<'_>> {
        self.core.accesses.increment();
        let word = self.word_of(page)?;
        loop {
            match latch::try_exclusive(word, Access::Use) {
                Ok(latched) => {
                    self.core.note_use(page, latched);
                    return Ok(ExclusiveGuard::new(&self.core, word, page, latched));
                }
                Err(refusal) => self.overcome(refusal, page, word, &is_latched)?,
            }
        }
    }

    /// Removes the reason why a page could not be latched: reads it, or waits.
    #[cold]
    fn overcome(
        &self,
        refusal: Refusal,
        page: PageId,
        word: &AtomicU64,
        blocked: &dyn Fn(PageWord) -> bool,
    ) -> Result<()> {
        match refusal {
            Refusal::Evicted => {
                self.read_page(page, PageWord(word.load(Ordering::Acquire)))?;
            }
            Refusal::Reading => self.await_read(page, word),
            Refusal::Latched => self.await_latch(page, word, blocked),
        }
        Ok(())
    }

    /// A page of zeros, except for its page id, that is not read from disk: a page taken into use. It is dirty.
    pub fn create(&self, page: PageId) -> Result<ExclusiveGuard<'_>> {
        self.core.accesses.increment();
        let word = self.word_of(page)?;
        let latched = loop {
            match latch::try_exclusive(word, Access::Use) {
                Ok(latched) => {
                    self.core.end_read_ahead(latched.frame());
                    break latched;
                }
                Err(Refusal::Reading) => self.await_read(page, word),
                Err(Refusal::Latched) => self.await_latch(page, word, &is_latched),
                Err(Refusal::Evicted) => {
                    let seen = PageWord(word.load(Ordering::Acquire));
                    if let Some(claim) = Claim::take(&self.core, page, seen, state::EXCLUSIVE) {
                        let frame = self.allocate_frame()?;
                        self.core.assign(frame, page, ReadReason::Use);
                        break claim.keep().with_frame(frame).with_usage(Usage::Cold);
                    }
                }
            }
        };
        let mut guard = ExclusiveGuard::new(&self.core, word, page, latched);
        guard.bytes_mut().fill(0);
        guard.set_page_id(page);
        // A page taken into use has no past.
        guard.note_versions(false);
        self.core.mark_dirty(latched.frame());
        Ok(guard)
    }

    /// A freed page: its contents are dropped without being written. Waits for threads that have it latched; the caller
    /// holds no guard of it.
    pub fn discard(&self, page: PageId) {
        let Some(word) = self.core.word(page) else {
            return;
        };
        self.drop_changes(page, word);
        if let Some(protection) = self.protection.get() {
            // The end of its life is in the log.
            protection
                .doublewrite
                .note_freed(page, || protection.log.end());
        }
    }

    fn drop_changes(&self, page: PageId, word: &AtomicU64) {
        loop {
            match latch::try_exclusive(word, Access::Maintenance) {
                Ok(latched) => {
                    if self.core.forget_changes(latched.frame()) {
                        self.core.drop_page(page, word, latched);
                    } else {
                        // An earlier copy is on its way to disk: the frame is needed until it has arrived.
                        let released = latched.with_next_version().with_state(state::UNLOCKED);
                        self.core
                            .parking()
                            .replace(page, word, released.with_usage(Usage::Cold));
                    }
                    return;
                }
                Err(Refusal::Evicted) => return,
                Err(Refusal::Reading) => self.await_read(page, word),
                Err(Refusal::Latched) => self.await_latch(page, word, &is_latched),
            }
        }
    }

    /// The version store has no table for the page any more. The caller keeps others from making one meanwhile.
    pub(crate) fn forget_versions(&self, page: PageId) {
        if let Some(word) = self.core.word(page) {
            let without = !PageWord(0).with_versions(true).settled().0;
            word.fetch_and(without, Ordering::Relaxed);
        }
    }

    /// Whether the page is in memory now. Reads the page table only.
    pub fn is_resident(&self, page: PageId) -> bool {
        self.core
            .word(page)
            .is_some_and(|word| PageWord(word.load(Ordering::Relaxed)).is_resident())
    }

    /// How many of these pages are in memory now. Reads the page table only.
    pub fn resident_in(&self, pages: Range<PageId>) -> u64 {
        let end = pages.end.0.min(self.page_count());
        (pages.start.0..end)
            .filter(|&page| self.is_resident(PageId(page)))
            .count() as u64
    }

    /// Writes all pages that are dirty now, and makes them durable.
    ///
    /// # Errors
    /// `Io` or `DiskFull`; the pages that could not be written stay dirty. `SyncFailed` from then on once a sync has
    /// failed: the kernel may have dropped what it could not write, and reports that only once.
    pub fn flush_all(&self) -> Result<()> {
        self.write_dirty_pages(|| usize::MAX, |_, _| ())?;
        self.sync()
    }

    pub(crate) fn sync(&self) -> Result<()> {
        let failed = || StorageError::SyncFailed {
            file: self.core.file_name.clone(),
        };
        if self.sync_failed.load(Ordering::Acquire) {
            return Err(failed());
        }
        counters::add(&self.core.traffic.syncs, 1);
        disk::run(&*self.disk, Operation::Sync { file: self.file })
            .map(|_| ())
            .inspect_err(|error| {
                tracing::error!("{error}; nothing can be made durable until the next start");
                self.sync_failed.store(true, Ordering::Release);
            })
    }

    /// Flushes, then drops every page that is not latched: the pool is as cold as after a start.
    pub fn evict_all_clean(&self) -> Result<()> {
        self.flush_all()?;
        self.await_reads();
        for descriptor in self.core.descriptors() {
            let Some(page) = descriptor.page() else {
                continue;
            };
            let Some(word) = self.core.word(page) else {
                continue;
            };
            if let Ok(latched) = latch::try_exclusive(word, Access::Maintenance) {
                if self.core.descriptor(latched.frame()).is_dirty() {
                    let released = latched.with_state(state::UNLOCKED);
                    self.core.parking().replace(page, word, released);
                } else {
                    self.core.drop_page(page, word, latched);
                }
            }
        }
        Ok(())
    }

    /// What the calling thread has asked of the pool.
    pub(crate) fn thread_page_work(&self) -> ThreadPageWork {
        counters::thread_page_work(&self.core.accesses)
    }

    /// The pool's counters and gauges now.
    pub fn counters(&self) -> PoolCounters {
        let traffic = &self.core.traffic;
        let retired = *self.growth.lock();
        PoolCounters {
            read_requests: self.core.accesses.total(),
            reads: counters::get(&traffic.reads),
            read_ahead: counters::get(&traffic.read_ahead),
            read_ahead_waits: counters::get(&traffic.read_ahead_waits),
            read_ahead_unused: counters::get(&traffic.read_ahead_unused),
            data_reads: counters::get(&traffic.data_reads),
            data_read: counters::get(&traffic.data_read),
            pages_read: counters::get(&traffic.pages_read),
            pages_written: counters::get(&traffic.pages_written),
            write_requests: counters::get(&traffic.write_requests),
            data_written: counters::get(&traffic.data_written),
            syncs: counters::get(&traffic.syncs),
            evictions: counters::get(&traffic.evictions),
            pages_total: (self.core.arena().frames() - retired) as u64,
            pages_free: (self.core.free_frames() + self.core.lent_frames()) as u64,
            pages_dirty: self.core.dirty_frames() as u64,
        }
    }

    /// Pages read into frames until now.
    pub(crate) fn pages_read(&self) -> u64 {
        counters::get(&self.core.traffic.pages_read)
    }

    /// Stops the background writer and flushes.
    pub fn close(&self) -> Result<()> {
        let background = self.background.lock().take();
        drop(background);
        self.await_reads();
        self.flush_all()
    }

    /// Reads an evicted page. On return it may be in memory; the caller looks again. Returns at once if the word is not
    /// `seen` any more.
    #[cold]
    fn read_page(&self, page: PageId, seen: PageWord) -> Result<()> {
        if seen.state() != state::EVICTED {
            return Ok(());
        }
        let Some(claim) = Claim::take(&self.core, page, seen, state::READING) else {
            return Ok(());
        };
        let frame = self.allocate_frame()?;
        counters::add(&self.core.traffic.reads, 1);
        counters::count_on_thread(1, 0, 1);
        let read = PageRead::of_one(&self.core, claim, frame);
        let (operation, token) = read.clone().operation(self.file);
        let (result, buffers) = self.disk.execute(operation);
        token.complete(result, buffers);
        read.outcome()
    }

    /// Waits until a read that another thread has started is over.
    #[cold]
    fn await_read(&self, page: PageId, word: &AtomicU64) {
        counters::add(&self.core.traffic.read_ahead_waits, 1);
        let reading = |word: PageWord| word.state() == state::READING;
        let parking = self.core.parking();
        let me = thread::current().id();
        parking.wait_while(page, word, &reading, &|| {
            self.disk.wait(self.file, page.offset(), &|| {
                let seen = PageWord(word.load(Ordering::Acquire));
                // The page may have arrived, left and be on its way again, with others waiting for it: a thread that
                // was woken the first time is not woken a second time.
                !reading(seen) || !seen.has_waiters() || !parking.is_queued(page, me)
            });
        });
    }

    /// Waits until no thread holds the page exclusively, whether or not it is in memory then.
    pub(crate) fn await_writer(&self, page: PageId) {
        if let Some(word) = self.core.word(page) {
            self.await_latch(page, word, &|word| word.state() == state::EXCLUSIVE);
        }
    }

    /// Waits until no read is on its way any more; new ones may start meanwhile.
    fn await_reads(&self) {
        while self.core.reads_in_flight.load(Ordering::Acquire) > 0 {
            if self.disk.reap() == 0 {
                thread::yield_now();
            }
        }
    }

    #[cold]
    fn await_latch(&self, page: PageId, word: &AtomicU64, blocked: &dyn Fn(PageWord) -> bool) {
        self.core
            .parking()
            .wait_while(page, word, blocked, &thread::park);
    }

    /// A frame for a new page: from the free list, else by eviction, else after writing dirty pages back.
    pub(crate) fn allocate_frame(&self) -> Result<FrameId> {
        for attempt in 0..ALLOCATION_ATTEMPTS {
            if let Some(frame) = self.core.take_free_frame() {
                return Ok(frame);
            }
            if self.take_lent_frames_back(attempt >= PATIENT_ATTEMPTS) {
                continue;
            }
            let sweep =
                self.core
                    .sweep(EVICTION_BATCH, self.write_back.staging_pages(), usize::MAX);
            if sweep.evicted > 0 {
                continue;
            }
            if !sweep.dirty.is_empty() {
                self.writer_signal.call();
                let written = self.write_pages(sweep.dirty.iter().map(|&(page, _)| page).collect());
                if let Err(error) = written {
                    // A frame without memory needs no write.
                    match self.take_lent_frames_back(true) {
                        true => continue,
                        false => return Err(error),
                    }
                }
                for (page, frame) in sweep.dirty {
                    self.core.try_evict(page, frame);
                }
                continue;
            }
            // All frames are latched, or belong to reads that perhaps no thread waits for.
            if self.disk.reap() == 0 {
                if attempt < PATIENT_ATTEMPTS {
                    thread::yield_now();
                } else {
                    thread::sleep(ALLOCATION_PAUSE);
                }
            }
        }
        Err(StorageError::PoolExhausted {
            frames: self.core.arena().frames(),
        })
    }

    /// Takes up to `count` free frames out of use, and leaves the pool enough to work with. This is for a caller that
    /// needs memory in their place, in a pool whose frames were not used yet and have none.
    pub(crate) fn lend_frames(&self, count: usize) -> LentFrames<'_> {
        let spare = self.core.free_frames().saturating_sub(2 * MIN_FRAMES);
        let frames = (0..count.min(spare)).map_while(|_| self.core.take_free_frame());
        LentFrames {
            pool: self,
            frames: frames.collect(),
        }
    }

    /// Uses some of the frames again whose memory was lent, if the process has room for them or they are `needed`.
    fn take_lent_frames_back(&self, needed: bool) -> bool {
        self.core.lent_frames() > 0
            && (needed || process::has_room())
            && self.core.take_lent_frames_back(EVICTION_BATCH) > 0
    }

    /// Frames that may be lent besides those that are.
    fn lendable_frames(&self) -> usize {
        let frames = self.core.frames_in_service();
        let most = frames.saturating_sub(MIN_FRAMES.max(frames / KEPT_SHARE));
        most.saturating_sub(self.core.lent_frames())
    }

    /// A frame for a page that a scan does not keep, if one can be had without waiting for the disk: that of such a
    /// page that was used, unless there is room for both.
    pub(crate) fn try_allocate_passing_frame(&self) -> Option<FrameId> {
        let frames = self.core.usable_frames();
        if self.core.free_frames() <= frames / MUCH_FREE_SHARE {
            for _ in 0..PASSING_STEPS {
                let Some((page, frame)) = self.core.passing.next(frames) else {
                    break;
                };
                if self.core.try_evict_passing(page, frame) {
                    break;
                }
            }
        }
        self.try_allocate_frame()
    }

    /// A frame if one can be had without waiting for the disk.
    pub(crate) fn try_allocate_frame(&self) -> Option<FrameId> {
        self.core.take_free_frame().or_else(|| {
            if !self.take_lent_frames_back(false) {
                self.core.sweep(EVICTION_BATCH, 0, HINT_STEPS);
            }
            self.core.take_free_frame()
        })
    }
}

impl Lender for BufferPool {
    fn lend(&self, bytes: usize) -> usize {
        let wanted = bytes.div_ceil(PAGE_SIZE).min(self.lendable_frames());
        if wanted == 0 {
            return 0;
        }
        let sweep = self.core.sweep(wanted, 0, usize::MAX);
        if sweep.evicted < wanted {
            self.writer_signal.call();
        }
        self.core.lend_free_frames(wanted) * PAGE_SIZE
    }

    fn coming(&self) -> usize {
        self.core.dirty_frames().min(self.lendable_frames()) * PAGE_SIZE
    }
}

/// Frames that are out of use until this is dropped.
pub(crate) struct LentFrames<'p> {
    pool: &'p BufferPool,
    frames: Vec<FrameId>,
}

impl LentFrames<'_> {
    pub(crate) fn bytes(&self) -> usize {
        self.frames.len() * PAGE_SIZE
    }
}

impl Drop for LentFrames<'_> {
    fn drop(&mut self) {
        for frame in self.frames.drain(..) {
            self.pool.core.give_free_frame(frame);
        }
    }
}

fn is_latched(word: PageWord) -> bool {
    word.state() == state::EXCLUSIVE || word.shared_count() > 0
}
