//! Scans that are larger than the pool: how much of them stays there.
//!
//! A scan asks when it has gone on for a while, and tells when it has come to its end: the next one is a repetition
//! then. What stays, and why, is told in [`passing_pages`](crate::pool::passing_pages).

use crate::error::Result;
use crate::key_range::KeyRange;
use crate::pool::passing_pages::KeptShare;
use crate::tree::Tree;

/// Of more ranges nobody knows how many leaves they are: that would take a dive for each.
const MOST_RANGES: usize = 16;

impl Tree {
    /// Whether a scan of these ranges may be larger than the pool.
    pub fn may_exceed_pool(&self, ranges: &[KeyRange]) -> bool {
        ranges.len() <= MOST_RANGES && self.share_of(u64::MAX) != KeptShare::ALL
    }

    /// How much of the leaves of these ranges stays in the pool when they are read one after the other: all if they
    /// fit, else what fits. Takes an index dive for each of them.
    pub fn kept_share(&self, ranges: &[KeyRange]) -> Result<KeptShare> {
        if !self.may_exceed_pool(ranges) {
            return Ok(KeptShare::ALL);
        }
        if ranges == [KeyRange::all()] {
            return Ok(self.share_of(u64::MAX));
        }
        let mut entries = 0;
        for range in ranges {
            entries += self.estimate_entries(range)?;
        }
        let counts = self.counts.read();
        let entries_of_leaf = (counts.entries / counts.leaf_pages.max(1)).max(1);
        Ok(self.share_of(entries / entries_of_leaf))
    }

    /// A scan of which a part stays has come to its end.
    pub fn end_large_scan(&self) {
        self.last_large_scan.ends(self.store.pool.pages_read());
    }

    /// Of a scan of so many leaves.
    fn share_of(&self, leaves: u64) -> KeptShare {
        let leaves = self.counts.read().leaf_pages.min(leaves);
        let frames = self.store.pool.core().usable_frames() as u64;
        let read = self.store.pool.pages_read();
        let is_repeated = self.last_large_scan.is_recent(read, frames);
        KeptShare::new(leaves, frames, is_repeated)
    }
}
