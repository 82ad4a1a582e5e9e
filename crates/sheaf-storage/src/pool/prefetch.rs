//! Prefetch: start reading pages that will be wanted soon.
//!
//! A hint. It never waits: not for a frame, not for a page that is latched, not for the device. The pages are sorted,
//! and neighbours become one request. So do pages with a small gap between them, because reading past a page or two
//! takes less time than another request. All requests are handed to the disk at once, which keeps as many of them in
//! flight as the device works on in parallel. A guard that is asked for later waits only if its page has not arrived.
//!
//! Prefetched pages that were not used yet may hold a limited share of the frames. When it is used up, or no frame can
//! be had without writing a dirty page back, the rest of the hint is dropped.

use std::sync::Arc;

use crate::counters;
use crate::disk::STRETCH_BYTES;
use crate::page::{PAGE_SIZE, PageId};
use crate::pool::buffer_pool::BufferPool;
use crate::pool::page_read::{Claim, PageRead};
use crate::pool::page_table::{PageWord, state};
use crate::pool::passing_pages::{KeptShare, ReadReason};
use crate::sync::atomic::Ordering;

/// Requests end where a stretch of the disk ends.
const PAGES_PER_STRETCH: u64 = STRETCH_BYTES / PAGE_SIZE as u64;

/// What a call of prefetch found and did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrefetchSummary {
    /// Pages that were in memory, or on their way.
    pub resident: usize,
    /// Pages for which a read was started, those in gaps included.
    pub requested_pages: usize,
    /// Read requests they were merged into.
    pub requests: usize,
}

impl BufferPool {
    /// Starts reading those of the pages that are not in memory. Order and duplicates do not matter; pages that do not
    /// exist are ignored.
    pub fn prefetch(&self, pages: &[PageId]) -> PrefetchSummary {
        self.prefetch_keeping(pages, KeptShare::ALL)
    }

    /// The same. Pages that are not `kept` make room for others when they have been used.
    pub(crate) fn prefetch_keeping(&self, pages: &[PageId], kept: KeptShare) -> PrefetchSummary {
        // Pages that have arrived meanwhile are delivered, which makes room for new requests.
        self.disk().reap();
        let mut plan = Plan {
            pool: self,
            kept,
            current: None,
            reads: Vec::new(),
            pages: 0,
        };
        let mut resident = 0;
        if pages.is_sorted() {
            plan.add_all(pages, &mut resident);
        } else {
            let mut sorted = pages.to_vec();
            sorted.sort_unstable();
            plan.add_all(&sorted, &mut resident);
        }
        plan.finish_request();
        let Plan {
            reads,
            pages: requested_pages,
            ..
        } = plan;
        let requests = reads.len();
        if requests > 0 {
            counters::add(&self.core().traffic.read_ahead, requested_pages as u64);
            counters::count_on_thread(0, requested_pages as u64, requests as u64);
            let file = self.file();
            self.disk()
                .submit(reads.into_iter().map(|read| read.operation(file)).collect());
        }
        PrefetchSummary {
            resident,
            requested_pages,
            requests,
        }
    }

    /// Frames that prefetched and not yet used pages may hold.
    fn prefetch_quota(&self) -> usize {
        self.core().usable_frames() * self.options().prefetch_quota_percent.min(100) / 100
    }
}

/// The requests of one call, as they are put together.
struct Plan<'p> {
    pool: &'p BufferPool,
    kept: KeptShare,
    current: Option<PageRead>,
    reads: Vec<Arc<PageRead>>,
    pages: usize,
}

impl<'p> Plan<'p> {
    /// Adds pages in ascending order until the quota or the frames are used up.
    fn add_all(&mut self, pages: &[PageId], resident: &mut usize) {
        let mut previous = None;
        for &page in pages {
            if previous.replace(page) == Some(page) || self.covers(page) {
                continue;
            }
            let Some(word) = self.word(page) else {
                continue;
            };
            if word.state() != state::EVICTED {
                *resident += 1;
            } else if !self.add(page) {
                return;
            }
        }
    }

    fn word(&self, page: PageId) -> Option<PageWord> {
        self.pool
            .core()
            .word(page)
            .map(|word| PageWord(word.load(Ordering::Acquire)))
    }

    /// Whether the page is part of the request being built: it was in a gap.
    fn covers(&self, page: PageId) -> bool {
        self.current.as_ref().is_some_and(|read| page < read.end())
    }

    /// Adds an evicted page. False if there is no room for it.
    fn add(&mut self, page: PageId) -> bool {
        // Claimed before the gap is filled, so that no gap is read in vain.
        let Some((claim, frame)) = self.claim(page) else {
            // Either another thread reads it by now, or there is no room.
            return self
                .word(page)
                .is_some_and(|word| word.state() != state::EVICTED);
        };
        if !self.reaches(page) {
            self.finish_request();
        }
        let mut read = self.current.take().unwrap_or_else(|| {
            let reason = ReadReason::Ahead(self.kept);
            PageRead::new(self.pool.core(), page, reason)
        });
        while read.end() < page {
            match self.claim(read.end()) {
                Some((claim, frame)) => {
                    read.push_page(claim, frame);
                    self.pages += 1;
                }
                None => read.push_gap(),
            }
        }
        read.push_page(claim, frame);
        self.pages += 1;
        self.current = Some(read);
        true
    }

    /// Whether the request being built can be continued up to this page.
    fn reaches(&self, page: PageId) -> bool {
        self.current.as_ref().is_some_and(|read| {
            page.0 - read.end().0 <= self.pool.options().merge_gap_pages
                && page.0 / PAGES_PER_STRETCH == read.first().0 / PAGES_PER_STRETCH
        })
    }

    fn finish_request(&mut self) {
        self.reads.extend(self.current.take().map(Arc::new));
    }

    /// The right to read the page, a place in the quota and a frame, if all three can be had without waiting.
    fn claim(&self, page: PageId) -> Option<(Claim<'p>, crate::disk::frame_arena::FrameId)> {
        let core = self.pool.core();
        if !core.take_quota(self.pool.prefetch_quota()) {
            return None;
        }
        let claimed = self
            .word(page)
            .and_then(|seen| Claim::take(core, page, seen, state::READING))
            .and_then(|claim| {
                let frame = match self.kept.keeps(page) {
                    true => self.pool.try_allocate_frame()?,
                    false => self.pool.try_allocate_passing_frame()?,
                };
                Some((claim, frame))
            });
        if claimed.is_none() {
            core.return_quota();
        }
        claimed
    }
}
