//! Passing pages: of a scan that is larger than the pool a part stays, and the rest goes at once.
//!
//! A scan that is larger than the pool, and is run again and again, finds none of its pages where the page that was
//! used least recently is evicted: each was evicted just before its turn. It finds as many as the pool holds if some
//! pages stay and the others make room for one another.
//!
//! ```text
//!   table   |kkkkpppppppppkkkkpppppppppkkkkppppppppp|     k: kept, in the pool when the next scan comes
//!   pool    |kkkkkkkkkkkk|p|                              p: passing, in the pool until the scan has read it
//! ```
//!
//! Which pages stay follows from their numbers alone ([`KeptShare`]), so that scans and their workers agree without
//! talking to each other: what a small share keeps, a larger one keeps as well. Pages that lie together stay together,
//! so that those that are read again lie together, too.
//!
//! A passing page is given to eviction by its first use ([`PassingPages`]), and its frame goes to the next one. If
//! others use it as well they read it again, and not as a passing page. A kept page of a scan that has been run before
//! is as one that was used twice, from its first use on. With the first use alone the clock hand came round as often as
//! the scan did, and a page that is cold by then is gone when the next scan wants it. A scan that nobody repeats has
//! cold pages only. (PostgreSQL lets large scans go round in a ring of frames of their own; here the ring is
//! everybody's, and a part of the table stays.)

use std::collections::VecDeque;

use crate::disk::frame_arena::FrameId;
use crate::page::PageId;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Most neighbours that stay or go together: 128 KiB. Larger groups would be read in fewer requests, and the share of
/// them that is kept would lie further from what was asked for.
const MOST_PAGES_OF_GROUP: u64 = 8;

/// A pool has room for at least so many groups.
const GROUPS_OF_POOL: u64 = 256;

/// A scan keeps at most this many hundredths of the frames. What is on its way needs the others.
const KEPT_PERCENT: u64 = 85;

/// There is a place among the passing pages for one of so many frames, as many as may be read ahead. A passing page
/// that finds none is evicted as all others are.
const FRAMES_OF_PLACE: usize = 4;

/// So many passing pages in hundredths of the frames stay until one goes: the scan may still be reading them.
const WAITING_PERCENT: usize = 1;

/// Fewer are still being read, in any case.
const FEWEST_WAITING: usize = 8;

/// A scan is no repetition if the pages of so many pools were read since the one before.
const POOLS_BETWEEN: u64 = 8;

/// How much of what a scan reads ahead stays in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptShare {
    /// In 2^32nds of the groups; 2^32: all.
    of_groups: u64,
    /// Logarithm of the pages of a group.
    group_bits: u32,
    /// The scan was run before, not long ago.
    is_repeated: bool,
}

impl KeptShare {
    pub const ALL: KeptShare = KeptShare {
        of_groups: 1 << 32,
        group_bits: 0,
        is_repeated: false,
    };

    /// What a scan of so many pages keeps in a pool of so many frames.
    pub(crate) fn new(pages: u64, frames: u64, is_repeated: bool) -> KeptShare {
        let room = frames * KEPT_PERCENT / 100;
        if pages <= room {
            return KeptShare::ALL;
        }
        let group = (frames / GROUPS_OF_POOL).clamp(1, MOST_PAGES_OF_GROUP);
        KeptShare {
            of_groups: ((u128::from(room) << 32) / u128::from(pages)) as u64,
            group_bits: group.ilog2(),
            is_repeated,
        }
    }

    /// Whether a scan with this share keeps the page.
    pub(crate) fn keeps(self, page: PageId) -> bool {
        // The end of splitmix64. A mere product is not even where the extents of a table lie at equal distances.
        let mut mixed = page.0 >> self.group_bits;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) >> 32 < self.of_groups
    }

    /// Whether the page counts as used twice when the scan has used it.
    pub(crate) fn warms(self, page: PageId) -> bool {
        self.is_repeated && self.keeps(page)
    }
}

/// When the last scan of a tree that was larger than the pool came to its end: how many pages the pool had read by
/// then, and one more; 0 if there was none.
#[derive(Default)]
pub(crate) struct LastLargeScan(AtomicU64);

impl LastLargeScan {
    pub(crate) fn ends(&self, pages_read: u64) {
        self.0.store(pages_read + 1, Ordering::Relaxed);
    }

    /// Whether a scan now is a repetition, in a pool of so many frames.
    pub(crate) fn is_recent(&self, pages_read: u64, frames: u64) -> bool {
        match self.0.load(Ordering::Relaxed) {
            0 => false,
            ended => (pages_read + 1).saturating_sub(ended) <= POOLS_BETWEEN * frames,
        }
    }
}

/// What pages are read for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadReason {
    /// A thread needs the page now.
    Use,
    /// It will be needed soon.
    Ahead(KeptShare),
}

/// Pages that a scan has used and does not keep, the first one first.
pub(crate) struct PassingPages {
    waiting: Mutex<VecDeque<(PageId, FrameId)>>,
    places: usize,
}

impl PassingPages {
    /// Bytes for each frame of the pool.
    pub(crate) const BYTES_OF_FRAME: usize = size_of::<(PageId, FrameId)>() / FRAMES_OF_PLACE;

    pub(crate) fn new(frames: usize) -> PassingPages {
        let places = frames / FRAMES_OF_PLACE;
        PassingPages {
            waiting: Mutex::new(VecDeque::with_capacity(places)),
            places,
        }
    }

    pub(crate) fn add(&self, page: PageId, frame: FrameId) {
        let mut waiting = self.waiting.lock();
        if waiting.len() < self.places {
            waiting.push_back((page, frame));
        }
    }

    /// The page that has waited longest, if enough of a pool of so many frames wait.
    pub(crate) fn next(&self, frames: usize) -> Option<(PageId, FrameId)> {
        let mut waiting = self.waiting.lock();
        let stay = (frames * WAITING_PERCENT / 100).max(FEWEST_WAITING);
        match waiting.len() > stay {
            true => waiting.pop_front(),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_keeps_that_share_of_the_pages() {
        for (pages, frames) in [(50_000, 16_000), (20_000, 16_000), (1_000_000, 40_000)] {
            let share = KeptShare::new(pages, frames, false);
            let kept = (0..pages).filter(|&page| share.keeps(PageId(page))).count() as f64;
            let wanted = frames as f64 * 0.85;
            let near = (wanted * 0.93)..(wanted * 1.07);
            assert!(near.contains(&kept), "{kept} of {wanted}");
        }
    }

    #[test]
    fn extents_at_equal_distances_are_kept_evenly() {
        // Tables that grow by turns have an extent of 64 pages each.
        for tables in [5, 72, 144, 233, 322, 377] {
            let share = KeptShare::new(64 * 200, 3764, false);
            let pages =
                (0..200).flat_map(|extent| (0..64).map(move |at| extent * tables * 64 + at));
            let kept = pages.filter(|&page| share.keeps(PageId(page))).count();
            assert!((2000..4500).contains(&kept), "{kept} with {tables} tables");
        }
    }

    #[test]
    fn what_fits_is_kept_whole() {
        let share = KeptShare::new(800, 1000, true);
        assert_eq!(share, KeptShare::ALL);
        assert!((0..100_000).all(|page| share.keeps(PageId(page))));
    }

    #[test]
    fn a_larger_share_keeps_what_a_smaller_one_keeps() {
        let small = KeptShare::new(10_000, 1000, false);
        let large = KeptShare::new(4_000, 1000, false);
        let mut kept = (0..100_000).filter(|&page| small.keeps(PageId(page)));
        assert!(kept.all(|page| large.keeps(PageId(page))));
    }

    #[test]
    fn a_page_waits_as_long_as_it_may_be_read() {
        let passing = PassingPages::new(1000);
        for page in 0..300 {
            passing.add(PageId(page), FrameId(page as u32));
        }
        assert_eq!(passing.next(1000), Some((PageId(0), FrameId(0))));
        let rest = std::iter::from_fn(|| passing.next(1000)).count();
        assert_eq!(rest, 250 - 1 - 10, "what found no place does not wait");
    }
}
