//! The state of a buffer pool that operations in flight need when they complete: everything but the disk.
//!
//! Here are the transitions of a frame between free, clean, dirty and being written, and the way out of memory. What
//! decides *when* they happen is elsewhere: [`buffer_pool`](crate::pool::buffer_pool),
//! [`eviction`](crate::pool::eviction), [`write_back`](crate::pool::write_back), [`page_read`](crate::pool::page_read).

use std::sync::Arc;

use crate::counters::{self, DiskTraffic, PerThreadCounter};
use crate::disk::frame_arena::{FrameArena, FrameId};
use crate::error::Result;
use crate::page::PageId;
use crate::pool::eviction::ClockHand;
use crate::pool::latch::{self, ParkingLot};
use crate::pool::page_table::{PageTable, PageWord, Usage, state};
use crate::pool::passing_pages::{KeptShare, PassingPages, ReadReason};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// What a frame holds.
pub(crate) struct FrameDescriptor {
    page: AtomicU64,
    flags: AtomicU32,
    /// 1: the frame was used since it was mapped, or since its memory was lent. Another one has no memory yet.
    has_memory: AtomicU32,
}

/// `FrameDescriptor::page` of a frame that holds none.
const NO_PAGE: u64 = u64::MAX;

impl FrameDescriptor {
    /// The page was changed since it was last copied for write-back.
    const DIRTY: u32 = 1;
    /// A copy of the page is on its way to disk.
    const WRITING: u32 = 2;
    /// The page was prefetched and has not been used.
    const READ_AHEAD: u32 = 4;
    /// The page was prefetched by a scan that does not keep it.
    const PASSING: u32 = 8;
    /// The page was prefetched by a scan that keeps it, and counts as used twice when it has been used.
    const WARM: u32 = 16;

    fn new() -> FrameDescriptor {
        FrameDescriptor {
            page: AtomicU64::new(NO_PAGE),
            flags: AtomicU32::new(0),
            has_memory: AtomicU32::new(0),
        }
    }

    pub(crate) fn page(&self) -> Option<PageId> {
        let page = self.page.load(Ordering::Acquire);
        (page != NO_PAGE).then_some(PageId(page))
    }

    /// Whether the page has changes that are not, or not surely, on disk.
    pub(crate) fn is_dirty(&self) -> bool {
        self.flags.load(Ordering::Acquire) & (Self::DIRTY | Self::WRITING) != 0
    }

    /// Whether the scan that had the page read does not keep it. How often it uses it does not matter then.
    fn is_passing(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & Self::PASSING != 0
    }

    /// Whether write-back has something to do.
    pub(crate) fn wants_writing(&self) -> bool {
        self.flags.load(Ordering::Acquire) & (Self::DIRTY | Self::WRITING) == Self::DIRTY
    }
}

/// The part of the pool that operations in flight need when they complete: everything but the disk.
pub(crate) struct PoolCore {
    pub(crate) table: PageTable,
    arena: Arc<FrameArena>,
    descriptors: Box<[FrameDescriptor]>,
    free: Mutex<Vec<FrameId>>,
    /// Frames that are free and have no memory: the process has it for something else.
    lent: Mutex<Vec<FrameId>>,
    /// How many they are.
    lent_frames: AtomicUsize,
    /// Frames that are out of service for good.
    retired_frames: AtomicUsize,
    parking: ParkingLot,
    pub(crate) hand: ClockHand,
    pub(crate) passing: PassingPages,
    pub(crate) traffic: DiskTraffic,
    pub(crate) accesses: PerThreadCounter,
    dirty: AtomicUsize,
    read_ahead: AtomicUsize,
    /// Reads that were submitted and are not complete.
    pub(crate) reads_in_flight: AtomicUsize,
    pub(crate) file_name: String,
}

impl PoolCore {
    /// All frames free, all pages of `table` evicted.
    pub(crate) fn new(table: PageTable, frames: usize, file_name: String) -> Result<PoolCore> {
        Ok(PoolCore {
            table,
            arena: Arc::new(FrameArena::new(frames)?),
            descriptors: (0..frames).map(|_| FrameDescriptor::new()).collect(),
            // Popped from the end: low frames, which lie together, are used first.
            free: Mutex::new((0..frames as u32).rev().map(FrameId).collect()),
            lent: Mutex::default(),
            lent_frames: AtomicUsize::new(0),
            retired_frames: AtomicUsize::new(0),
            parking: ParkingLot::new(),
            hand: ClockHand::new(),
            passing: PassingPages::new(frames),
            traffic: DiskTraffic::default(),
            accesses: PerThreadCounter::new(),
            dirty: AtomicUsize::new(0),
            read_ahead: AtomicUsize::new(0),
            reads_in_flight: AtomicUsize::new(0),
            file_name,
        })
    }

    pub(crate) fn arena(&self) -> &Arc<FrameArena> {
        &self.arena
    }

    pub(crate) fn parking(&self) -> &ParkingLot {
        &self.parking
    }

    pub(crate) fn descriptor(&self, frame: FrameId) -> &FrameDescriptor {
        &self.descriptors[frame.0 as usize]
    }

    pub(crate) fn descriptors(&self) -> &[FrameDescriptor] {
        &self.descriptors
    }

    pub(crate) fn word(&self, page: PageId) -> Option<&AtomicU64> {
        self.table.word(page)
    }

    /// A frame that is not in use.
    pub(crate) fn take_free_frame(&self) -> Option<FrameId> {
        let frame = self.free.lock().pop();
        // An optimistic reader of the frame's former page that sees what is put there now must see that page's word as
        // EVICTED, or later, when it validates.
        fence(Ordering::Release);
        frame
    }

    pub(crate) fn free_frames(&self) -> usize {
        self.free.lock().len()
    }

    /// Frames whose memory is lent.
    pub(crate) fn lent_frames(&self) -> usize {
        self.lent_frames.load(Ordering::Relaxed)
    }

    /// Frames in service, those without memory included.
    pub(crate) fn frames_in_service(&self) -> usize {
        let retired = self.retired_frames.load(Ordering::Relaxed);
        self.arena.frames() - retired
    }

    /// Frames that pages can be in now. Whatever takes a share of the pool takes it of these.
    pub(crate) fn usable_frames(&self) -> usize {
        self.frames_in_service().saturating_sub(self.lent_frames())
    }

    /// A frame that was taken goes out of service for good, and its memory with it.
    pub(crate) fn retire(&self, frame: FrameId) {
        // SAFETY: no word and no operation names a frame that was free, and nobody gets it any more.
        unsafe { self.arena.release_memory(frame) };
        self.retired_frames.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives the memory of up to so many free frames back to the system. Returns how many there were. Frames that have
    /// none stay free.
    pub(crate) fn lend_free_frames(&self, count: usize) -> usize {
        let mut frames = Vec::new();
        let mut free = self.free.lock();
        for at in (0..free.len()).rev() {
            if frames.len() == count {
                break;
            }
            let descriptor = self.descriptor(free[at]);
            if descriptor.has_memory.load(Ordering::Relaxed) == 1 {
                frames.push(free.swap_remove(at));
            }
        }
        drop(free);
        // As for any frame that is taken.
        fence(Ordering::Release);
        for &frame in &frames {
            self.descriptor(frame)
                .has_memory
                .store(0, Ordering::Relaxed);
            // SAFETY: no word and no operation names a frame that was free, and it is free again before it is used. A
            // late optimistic reader loads atomically, and fails its validation.
            unsafe { self.arena.release_memory(frame) };
        }
        let mut lent = self.lent.lock();
        lent.extend(&frames);
        self.lent_frames.store(lent.len(), Ordering::Relaxed);
        frames.len()
    }

    /// Makes up to so many frames free again whose memory was lent.
    pub(crate) fn take_lent_frames_back(&self, count: usize) -> usize {
        let mut lent = self.lent.lock();
        let rest = lent.len().saturating_sub(count);
        let frames = lent.split_off(rest);
        self.lent_frames.store(rest, Ordering::Relaxed);
        drop(lent);
        self.free.lock().extend(&frames);
        frames.len()
    }

    /// Returns a frame that no word and no operation names any more.
    pub(crate) fn give_free_frame(&self, frame: FrameId) {
        self.descriptor(frame)
            .page
            .store(NO_PAGE, Ordering::Release);
        self.free.lock().push(frame);
    }

    /// The frame holds this page from now on, clean.
    pub(crate) fn assign(&self, frame: FrameId, page: PageId, reason: ReadReason) {
        let descriptor = self.descriptor(frame);
        let flags = match reason {
            ReadReason::Use => 0,
            ReadReason::Ahead(KeptShare::ALL) => FrameDescriptor::READ_AHEAD,
            ReadReason::Ahead(kept) if kept.warms(page) => {
                FrameDescriptor::READ_AHEAD | FrameDescriptor::WARM
            }
            ReadReason::Ahead(kept) if kept.keeps(page) => FrameDescriptor::READ_AHEAD,
            ReadReason::Ahead(_) => FrameDescriptor::READ_AHEAD | FrameDescriptor::PASSING,
        };
        descriptor.has_memory.store(1, Ordering::Relaxed);
        descriptor.flags.store(flags, Ordering::Release);
        descriptor.page.store(page.0, Ordering::Release);
    }

    /// The page in the frame was changed. The caller holds it exclusively.
    pub(crate) fn mark_dirty(&self, frame: FrameId) {
        let old = self
            .descriptor(frame)
            .flags
            .fetch_or(FrameDescriptor::DIRTY, Ordering::AcqRel);
        if old & (FrameDescriptor::DIRTY | FrameDescriptor::WRITING) == 0 {
            self.dirty.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The page's changes are not wanted any more. The caller holds it exclusively. Returns whether it is clean now; it
    /// is not while an earlier copy of it is being written.
    pub(crate) fn forget_changes(&self, frame: FrameId) -> bool {
        let old = self
            .descriptor(frame)
            .flags
            .fetch_and(!FrameDescriptor::DIRTY, Ordering::AcqRel);
        if old & FrameDescriptor::WRITING != 0 {
            return false;
        }
        if old & FrameDescriptor::DIRTY != 0 {
            self.dirty.fetch_sub(1, Ordering::Relaxed);
        }
        true
    }

    /// The page is about to be copied for writing. The caller holds it shared. False if there is nothing to write, or
    /// if it is being written already: two writes of one page must not overtake each other.
    pub(crate) fn begin_writing(&self, frame: FrameId) -> bool {
        let flags = &self.descriptor(frame).flags;
        let mut seen = flags.load(Ordering::Acquire);
        loop {
            if seen & (FrameDescriptor::DIRTY | FrameDescriptor::WRITING) != FrameDescriptor::DIRTY
            {
                return false;
            }
            let next = seen & !FrameDescriptor::DIRTY | FrameDescriptor::WRITING;
            match flags.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// The write of the page is over.
    pub(crate) fn end_writing(&self, frame: FrameId, written: bool) {
        let flags = &self.descriptor(frame).flags;
        if !written {
            flags.fetch_or(FrameDescriptor::DIRTY, Ordering::AcqRel);
        }
        let old = flags.fetch_and(!FrameDescriptor::WRITING, Ordering::AcqRel);
        if old & FrameDescriptor::DIRTY == 0 {
            self.dirty.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Frames whose page differs from its copy on disk.
    pub(crate) fn dirty_frames(&self) -> usize {
        self.dirty.load(Ordering::Relaxed)
    }

    /// Takes one frame out of the prefetch quota, if it is not used up.
    pub(crate) fn take_quota(&self, quota: usize) -> bool {
        let taken = self.read_ahead.fetch_add(1, Ordering::Relaxed) < quota;
        if !taken {
            self.return_quota();
        }
        taken
    }

    pub(crate) fn return_quota(&self) {
        self.read_ahead.fetch_sub(1, Ordering::Relaxed);
    }

    /// A prefetched page stops counting against the quota. Returns whether it did count.
    pub(crate) fn end_read_ahead(&self, frame: FrameId) -> bool {
        let flags = &self.descriptor(frame).flags;
        if flags.load(Ordering::Relaxed) & FrameDescriptor::READ_AHEAD == 0 {
            return false;
        }
        let old = flags.fetch_and(!FrameDescriptor::READ_AHEAD, Ordering::AcqRel);
        let counted = old & FrameDescriptor::READ_AHEAD != 0;
        if counted {
            self.return_quota();
        }
        counted
    }

    /// To be called when an access left the page so: its first use ends its time as a prefetched page. Returns whether
    /// it counts as used twice by that.
    #[inline]
    pub(crate) fn note_use(&self, page: PageId, latched: PageWord) -> bool {
        if latched.usage() != Usage::Cold {
            return false;
        }
        let frame = latched.frame();
        if !self.end_read_ahead(frame) {
            return false;
        }
        let flags = self.descriptor(frame).flags.load(Ordering::Relaxed);
        if flags & FrameDescriptor::PASSING != 0 {
            self.passing.add(page, frame);
        }
        flags & FrameDescriptor::WARM != 0
    }

    /// A passing page that was used leaves memory, however often it was, if nobody has it at this moment. Returns
    /// whether its frame became free.
    pub(crate) fn try_evict_passing(&self, page: PageId, frame: FrameId) -> bool {
        // The frame may hold another page by now, or this one again: for its next use, or for others.
        if !self.descriptor(frame).is_passing() {
            return false;
        }
        self.try_evict_if(page, frame, |usage| usage != Usage::New)
    }

    /// The clock hand's victim leaves memory, if it still may. Returns whether its frame became free.
    pub(crate) fn try_evict(&self, page: PageId, frame: FrameId) -> bool {
        self.try_evict_if(page, frame, |usage| usage != Usage::Hot)
    }

    fn try_evict_if(
        &self,
        page: PageId,
        frame: FrameId,
        may_go: impl FnOnce(Usage) -> bool,
    ) -> bool {
        let Some(word) = self.word(page) else {
            return false;
        };
        let seen = PageWord(word.load(Ordering::Acquire));
        if seen.state() != state::UNLOCKED
            || seen.frame() != frame
            || !may_go(seen.usage())
            || self.descriptor(frame).is_dirty()
            || latch::exchange(word, seen, seen.with_state(state::EXCLUSIVE)).is_err()
        {
            return false;
        }
        // A page becomes dirty only under an exclusive latch, and that is ours now.
        if self.descriptor(frame).is_dirty() {
            self.parking.replace(page, word, seen);
            return false;
        }
        self.drop_page(page, word, seen);
        true
    }

    /// Takes an exclusively latched, clean page out of memory.
    pub(crate) fn drop_page(&self, page: PageId, word: &AtomicU64, latched: PageWord) {
        let frame = latched.frame();
        if self.end_read_ahead(frame) {
            counters::add(&self.traffic.read_ahead_unused, 1);
        }
        counters::add(&self.traffic.evictions, 1);
        self.descriptor(frame)
            .page
            .store(NO_PAGE, Ordering::Release);
        let evicted = latched
            .with_next_version()
            .with_state(state::EVICTED)
            .with_usage(Usage::New);
        self.parking.replace(page, word, evicted);
        self.free.lock().push(frame);
    }
}
