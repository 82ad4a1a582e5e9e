//! Eviction: second chance, with resistance to scans.
//!
//! A clock hand goes round over the frames. A page that was used since the hand last passed (hot) is spared and cools
//! down; a page that was not (cold) is evicted. What makes this resistant to scans is how pages warm up: they come in
//! new, their first use makes them cold, and only a second use makes them hot. So a page that a scan touches once is
//! gone after one round, while a page that is used again and again survives the scan.
//!
//! Prefetched pages that were not used yet are new; the hand spares them once, so that they are not evicted between
//! their arrival and their use. The prefetch quota bounds how many there can be.
//!
//! The hand is not asked where a scan that is larger than the pool wants room: its pages follow one another
//! ([`passing_pages`](crate::pool::passing_pages)).

use crate::counters;
use crate::disk::frame_arena::FrameId;
use crate::page::PageId;
use crate::pool::latch;
use crate::pool::page_table::{PageWord, Usage, state};
use crate::pool::pool_core::PoolCore;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Rounds after which every page that is not in use has been offered for eviction: the first may only cool pages down.
const ROUNDS: usize = 2;

/// Where eviction looks next; shared by all threads that evict.
pub(crate) struct ClockHand(AtomicUsize);

impl ClockHand {
    pub(crate) fn new() -> ClockHand {
        ClockHand(AtomicUsize::new(0))
    }

    fn advance(&self, frames: usize) -> FrameId {
        FrameId((self.0.fetch_add(1, Ordering::Relaxed) % frames) as u32)
    }

    /// The frames that the hand will come to next, without moving it.
    pub(crate) fn ahead(&self, frames: usize) -> impl Iterator<Item = FrameId> {
        let start = self.0.load(Ordering::Relaxed);
        (0..frames).map(move |step| FrameId((start.wrapping_add(step) % frames) as u32))
    }
}

/// What the hand found.
pub(crate) struct Sweep {
    /// Frames that became free.
    pub(crate) evicted: usize,
    /// Pages that would have been evicted, had they not been dirty.
    pub(crate) dirty: Vec<(PageId, FrameId)>,
}

impl PoolCore {
    /// Moves the hand until `wanted` frames are free, `dirty_limit` dirty victims were met and none could be evicted,
    /// every page had its second chance, or `steps` frames were looked at.
    pub(crate) fn sweep(&self, wanted: usize, dirty_limit: usize, steps: usize) -> Sweep {
        let frames = self.arena().frames();
        let mut sweep = Sweep {
            evicted: 0,
            dirty: Vec::new(),
        };
        for _ in 0..steps.min(frames * ROUNDS) {
            let frame = self.hand.advance(frames);
            let descriptor = self.descriptor(frame);
            let Some(page) = descriptor.page() else {
                continue;
            };
            let Some(word) = self.word(page) else {
                continue;
            };
            let seen = PageWord(word.load(Ordering::Acquire));
            if seen.state() != state::UNLOCKED || seen.frame() != frame {
                continue;
            }
            match seen.usage() {
                // However often its scan has used it.
                Usage::Hot if self.try_evict_passing(page, frame) => {
                    sweep.evicted += 1;
                    if sweep.evicted == wanted {
                        break;
                    }
                }
                // Losing the race against a use is fine: the page is wanted then.
                Usage::Hot => {
                    let _ = latch::exchange(word, seen, seen.with_usage(Usage::Cold));
                }
                Usage::New => {
                    if latch::exchange(word, seen, seen.with_usage(Usage::Cold)).is_ok()
                        && self.end_read_ahead(frame)
                    {
                        counters::add(&self.traffic.read_ahead_unused, 1);
                    }
                }
                Usage::Cold if !descriptor.is_dirty() => {
                    sweep.evicted += usize::from(self.try_evict(page, frame));
                    if sweep.evicted == wanted {
                        break;
                    }
                }
                Usage::Cold => {
                    if sweep.dirty.len() < dirty_limit {
                        sweep.dirty.push((page, frame));
                    } else if sweep.evicted == 0 && dirty_limit > 0 {
                        break;
                    }
                }
            }
        }
        sweep
    }
}
