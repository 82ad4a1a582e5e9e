//! Write-back: dirty pages reach the disk in batches.
//!
//! A batch is sorted by page number. Each page is copied to staging under a shared latch and sealed there with its
//! checksum; then its latch is released. No guard is held while bytes move, so a page can be changed again during its
//! own write. Pages that follow each other in the file lie next to each other in staging, and go out in one request.
//!
//! ```text
//!  DIRTY --copied--> WRITING --written--> clean
//!    ^                  |
//!    |                  +--changed--> DIRTY + WRITING --written--> DIRTY
//!    +------failed------+
//! ```
//!
//! Two writes of one page are never in flight together, or the older could land last: a page that is WRITING is
//! skipped. A page that is DIRTY or WRITING is never evicted, so a read cannot overtake a write either.
//!
//! Before a batch goes out, the log is made durable up to its newest page (write-ahead logging), and the batch is kept
//! in the doublewrite area ([`crate::pool::doublewrite`]). Either failing leaves the batch dirty. When a write in place
//! fails, the area keeps its copies of the pages until they were written.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::counters;
use crate::disk::frame_arena::FrameId;
use crate::disk::{AlignedBuffer, Buffers, Completion, Operation, STRETCH_BYTES, Token};
use crate::error::{Result, StorageError};
use crate::log::Log;
use crate::page::{PAGE_SIZE, Page, PageId};
use crate::pool::buffer_pool::BufferPool;
use crate::pool::doublewrite::{DataFile, Doublewrite};
use crate::pool::latch::{self, Access};
use crate::pool::page_table::PageWord;
use crate::pool::page_table::Usage;
use crate::pool::pool_core::PoolCore;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Condvar, Mutex, thread};

/// The background writer looks this far ahead of the clock hand, as a share of the frames.
const LOOK_AHEAD_SHARE: usize = 8;
/// From this share of dirty frames on, in percent, hot pages are written, too.
const MAX_DIRTY_PERCENT: usize = 50;
/// The background writer looks for work this often when there was none.
const IDLE_PAUSE: Duration = Duration::from_millis(100);
/// The background writer waits this long after a failed write.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// What a batch has to wait for before its pages are written in place. A pool without it is for tests.
pub(crate) struct WriteProtection {
    pub(crate) log: Arc<Log>,
    pub(crate) doublewrite: Arc<Doublewrite>,
}

/// Staging, which one batch at a time uses.
pub(crate) struct WriteBack {
    staging: Mutex<Arc<AlignedBuffer>>,
    staging_pages: usize,
}

impl WriteBack {
    pub(crate) fn new(staging_pages: usize) -> Result<WriteBack> {
        let buffer = AlignedBuffer::zeroed(staging_pages * PAGE_SIZE)?;
        Ok(WriteBack {
            staging: Mutex::new(Arc::new(buffer)),
            staging_pages,
        })
    }

    /// Most pages of a batch.
    pub(crate) fn staging_pages(&self) -> usize {
        self.staging_pages
    }
}

/// What a step of the background writer did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteBackStep {
    /// There was nothing to do.
    Idle,
    /// Pages were written; there may be more.
    Wrote,
}

/// A piece of a batch: neighbouring pages, in one request.
struct PageWrite {
    core: Arc<PoolCore>,
    pages: Vec<(PageId, FrameId)>,
    waiter: thread::Thread,
    done: AtomicBool,
    error: Mutex<Option<StorageError>>,
}

impl PageWrite {
    fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    fn offset(&self) -> u64 {
        self.pages.first().map_or(0, |&(page, _)| page.offset())
    }
}

impl Completion for PageWrite {
    fn complete(&self, result: io::Result<()>, _buffers: Option<Buffers>) {
        for &(_, frame) in &self.pages {
            self.core.end_writing(frame, result.is_ok());
        }
        match result {
            Ok(()) => counters::add(&self.core.traffic.pages_written, self.pages.len() as u64),
            Err(error) => {
                let name = self.core.file_name.as_str();
                let error = StorageError::io("write", name, self.offset(), error);
                *self.error.lock() = Some(error);
            }
        }
        self.done.store(true, Ordering::Release);
        self.waiter.unpark();
    }
}

impl Drop for PageWrite {
    /// A write that was never submitted leaves its pages dirty.
    fn drop(&mut self) {
        if !self.is_done() {
            self.complete(Err(io::ErrorKind::Interrupted.into()), None);
        }
    }
}

impl BufferPool {
    /// Writes those of the pages that are dirty, in memory, and not latched exclusively at this moment. Returns the
    /// ones that were latched. Takes page latches only by trying, so the caller may hold some.
    ///
    /// # Errors
    /// The first failure. The other pages were written nevertheless; those that were not are still dirty.
    pub(crate) fn write_pages(&self, mut pages: Vec<PageId>) -> Result<Vec<PageId>> {
        pages.sort_unstable();
        pages.dedup();
        let mut latched = Vec::new();
        let mut first_error = None;
        for batch in pages.chunks(self.write_back.staging_pages) {
            if let Err(error) = self.write_batch(batch, &mut latched) {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(latched), Err)
    }

    fn write_batch(&self, pages: &[PageId], latched: &mut Vec<PageId>) -> Result<()> {
        let mut staging = self.write_back.staging.lock();
        // Only after a panic in the lines below can an earlier batch still be on its way; its bytes are left alone.
        while Arc::get_mut(&mut staging).is_none() {
            self.disk().reap();
            thread::yield_now();
        }
        let writes = self.stage(&mut staging, pages, latched);
        self.protect_batch(&staging, &writes)?;
        let operations: Vec<(Operation, Token)> = writes
            .iter()
            .map(|(write, start)| {
                let range = *start..*start + write.pages.len() * PAGE_SIZE;
                counters::add(&self.core().traffic.write_requests, 1);
                counters::add(&self.core().traffic.data_written, range.len() as u64);
                let buffers = Buffers::Shared {
                    buffer: staging.clone(),
                    range,
                };
                let operation = Operation::Write {
                    file: self.file(),
                    offset: write.offset(),
                    buffers,
                };
                (operation, write.clone() as Token)
            })
            .collect();
        if !operations.is_empty() {
            self.disk().submit(operations);
        }
        let mut first_error = None;
        for (write, _) in &writes {
            self.disk()
                .wait(self.file(), write.offset(), &|| write.is_done());
            let error = write.error.lock().take();
            if let Some(protection) = self.protection.get() {
                let is_wanted = |page, frame| {
                    let descriptor = self.core().descriptor(frame);
                    descriptor.page() == Some(page) && descriptor.is_dirty()
                };
                let doublewrite = &protection.doublewrite;
                match error {
                    None => doublewrite.note_written(&write.pages),
                    Some(_) => {
                        doublewrite.note_failed(&write.pages, is_wanted, || protection.log.end())
                    }
                }
            }
            if let Some(error) = error {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Makes sure that the staged pages may be written in place.
    fn protect_batch(
        &self,
        staging: &Arc<AlignedBuffer>,
        writes: &[(Arc<PageWrite>, usize)],
    ) -> Result<()> {
        let Some(protection) = self.protection.get() else {
            return Ok(());
        };
        let pages: usize = writes.iter().map(|(write, _)| write.pages.len()).sum();
        if pages == 0 {
            return Ok(());
        }
        let bytes = pages * PAGE_SIZE;
        let newest = staging[..bytes]
            .chunks_exact(PAGE_SIZE)
            .map(crate::page::lsn_of)
            .max()
            .unwrap_or_default();
        protection.log.flush_to(newest)?;
        let data_file = DataFile {
            file: self.file(),
            sync: &|| self.sync(),
            flush_log: &|lsn| protection.log.flush_to(lsn),
        };
        protection.doublewrite.keep(staging, bytes, &data_file)
    }

    /// Copies dirty pages into staging. Returns the requests, each with where its bytes start.
    fn stage(
        &self,
        staging: &mut Arc<AlignedBuffer>,
        pages: &[PageId],
        latched: &mut Vec<PageId>,
    ) -> Vec<(Arc<PageWrite>, usize)> {
        let core = self.core();
        let mut writes: Vec<(PageWrite, usize)> = Vec::new();
        let Some(buffer) = Arc::get_mut(staging) else {
            return Vec::new();
        };
        let mut end = 0;
        for &page in pages {
            let Some(word) = core.word(page) else {
                continue;
            };
            let frame = match latch::try_shared(word, Access::Maintenance) {
                Ok(word) => word.frame(),
                Err(latch::Refusal::Latched) => {
                    latched.push(page);
                    continue;
                }
                Err(_) => continue,
            };
            if core.begin_writing(frame) {
                let neighbour = writes.last().is_some_and(|(write, _)| {
                    let previous = write.pages[write.pages.len() - 1].0;
                    page.0 == previous.0 + 1 && !page.offset().is_multiple_of(STRETCH_BYTES)
                });
                if !neighbour {
                    let write = PageWrite {
                        core: core.clone(),
                        pages: Vec::new(),
                        waiter: thread::current(),
                        done: AtomicBool::new(false),
                        error: Mutex::new(None),
                    };
                    writes.push((write, end));
                }
                if let Some((write, _)) = writes.last_mut() {
                    write.pages.push((page, frame));
                }
                let copy = &mut buffer[end..end + PAGE_SIZE];
                // SAFETY: the frame is mapped, and the shared latch keeps it from being written to.
                copy.copy_from_slice(unsafe { &*core.arena().page(frame) }.bytes());
                // SAFETY: staging is aligned to disk blocks and pages are multiples of them, so the copy is a properly
                // aligned Page; it is borrowed mutably from the buffer.
                unsafe { &mut *copy.as_mut_ptr().cast::<Page>() }.seal();
                end += PAGE_SIZE;
            }
            core.parking().release_shared(page, word);
        }
        writes
            .into_iter()
            .map(|(write, start)| (Arc::new(write), start))
            .collect()
    }

    /// Most pages that are written at a time.
    pub(crate) fn batch_pages(&self) -> usize {
        self.write_back.staging_pages
    }

    /// Writes every page that is dirty at the time of the call, at most `at_a_time` of them at a time. In between it
    /// calls `pause` with the numbers of pages written and of all. The caller holds no latch.
    pub(crate) fn write_dirty_pages(
        &self,
        at_a_time: impl Fn() -> usize,
        pause: impl Fn(usize, usize),
    ) -> Result<()> {
        let mut wanted: Vec<PageId> = self
            .core()
            .descriptors()
            .iter()
            .filter(|descriptor| descriptor.is_dirty())
            .filter_map(|descriptor| descriptor.page())
            .collect();
        wanted.sort_unstable();
        let mut written = 0;
        while written < wanted.len() {
            let end = wanted.len().min(written.saturating_add(at_a_time().max(1)));
            let mut pages = self.write_pages(wanted[written..end].to_vec())?;
            while !pages.is_empty() {
                for &page in &pages {
                    // Waits until the writer is done, without holding staging: the writer may need it to get a frame.
                    self.await_writer(page);
                }
                pages = self.write_pages(pages)?;
            }
            written = end;
            pause(written, wanted.len());
        }
        Ok(())
    }

    /// One step of the background writer: writes dirty pages that eviction will come to next, so that it finds clean
    /// ones; and any dirty pages while too many are.
    pub fn write_back_step(&self) -> Result<WriteBackStep> {
        let core = self.core();
        let frames = core.arena().frames();
        let many = core.dirty_frames() * 100 > core.usable_frames() * MAX_DIRTY_PERCENT;
        let look_ahead = if many {
            frames
        } else {
            frames / LOOK_AHEAD_SHARE
        };
        // With a free frame at hand nothing is about to be evicted.
        if core.dirty_frames() == 0 || (!many && core.free_frames() > look_ahead) {
            return Ok(WriteBackStep::Idle);
        }
        let victims: Vec<PageId> = core
            .hand
            .ahead(frames)
            .take(look_ahead)
            .filter(|&frame| core.descriptor(frame).wants_writing())
            .filter_map(|frame| core.descriptor(frame).page())
            .filter(|&page| {
                let word = core
                    .word(page)
                    .map(|word| PageWord(word.load(Ordering::Relaxed)));
                many || word.is_some_and(|word| word.usage() != Usage::Hot)
            })
            .take(self.write_back.staging_pages)
            .collect();
        if victims.is_empty() {
            return Ok(WriteBackStep::Idle);
        }
        self.write_pages(victims)?;
        Ok(WriteBackStep::Wrote)
    }
}

/// The thread that drives [`BufferPool::write_back_step`] in production. Dropping this stops it.
pub(crate) struct BackgroundWriter {
    signal: Arc<WriterSignal>,
    handle: Option<thread::JoinHandle<()>>,
}

/// How the background writer is told that there is work, or that it is to stop.
#[derive(Default)]
pub(crate) struct WriterSignal {
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

#[derive(Default)]
struct Wanted {
    step: bool,
    stop: bool,
}

impl WriterSignal {
    /// Eviction has come to dirty pages: the writer is behind.
    pub(crate) fn call(&self) {
        self.wanted.lock().step = true;
        self.changed.notify_one();
    }

    /// Sleeps for `pause`, or until the writer is called. Returns whether it is to go on.
    fn pause(&self, pause: Duration) -> bool {
        let mut wanted = self.wanted.lock();
        if !wanted.stop && !wanted.step && !pause.is_zero() {
            wanted = self.changed.wait_timeout(wanted, pause);
        }
        wanted.step = false;
        !wanted.stop
    }
}

impl BackgroundWriter {
    pub(crate) fn start(
        pool: &Arc<BufferPool>,
        signal: &Arc<WriterSignal>,
    ) -> Result<BackgroundWriter> {
        let (pool, signal) = (Arc::downgrade(pool), signal.clone());
        let own = signal.clone();
        let handle = thread::Builder::new()
            .name("page-writer".into())
            .spawn(move || Self::work(&pool, &own))
            .map_err(|error| StorageError::io("thread start", "the page writer", 0, error))?;
        Ok(BackgroundWriter {
            signal,
            handle: Some(handle),
        })
    }

    fn work(pool: &Weak<BufferPool>, signal: &WriterSignal) {
        loop {
            // Holding the pool only during a step lets its last owner drop it at any time.
            let pause = match pool.upgrade().map(|pool| pool.write_back_step()) {
                None => return,
                Some(Ok(WriteBackStep::Wrote)) => Duration::ZERO,
                Some(Ok(WriteBackStep::Idle)) => IDLE_PAUSE,
                Some(Err(error)) => {
                    tracing::warn!("write-back failed and will be tried again: {error}");
                    FAILURE_PAUSE
                }
            };
            if !signal.pause(pause) {
                return;
            }
        }
    }
}

impl Drop for BackgroundWriter {
    fn drop(&mut self) {
        self.signal.wanted.lock().stop = true;
        self.signal.changed.notify_all();
        if let Some(handle) = self.handle.take() {
            // The writer itself may drop the last reference to the pool, and with it this.
            if handle.thread().id() != thread::current().id() {
                // A writer that panicked has stopped as well.
                let _ = handle.join();
            }
        }
    }
}
