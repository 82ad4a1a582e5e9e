//! Walking over ranges of an index with jumps over what cannot match.

use super::CostConstants;
use super::lookup::next_leaf_us;
use super::range_scan::RangeScan;
use super::work::Work;

/// What it takes to look at one entry by itself and to find the next one, in entries read one after the other.
const ENTRIES_PER_PROBE: f64 = 3.0;

/// What a jump costs within a leaf.
pub(crate) fn jump_us(constants: &CostConstants) -> f64 {
    ENTRIES_PER_PROBE * constants.entry_us
}

/// A walk with jumps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JumpingWalk {
    /// The ranges, as if all of their entries were read.
    pub scan: RangeScan,
    /// Entries that match.
    pub matches: f64,
    /// Entries from which the walk jumps.
    pub jumps: f64,
}

impl JumpingWalk {
    /// Leaves that the walk visits.
    ///
    /// ```text
    ///   min(leaves of the ranges, matches / entries per leaf + jumps)
    /// ```
    pub(crate) fn pages(&self) -> f64 {
        let all = self.scan.pages();
        let per_leaf = (self.scan.entries / all).max(1.0);
        (self.matches / per_leaf + self.jumps).clamp(1.0, all)
    }

    /// ```text
    ///   (ranges + min(jumps, pages)) x next leaf + pages x page + (matches + jumps x 3) x entry
    /// ```
    ///
    /// A jump within a leaf is a search in its copy; one beyond it is a descent.
    fn processor_us(&self, constants: &CostConstants) -> f64 {
        let descents = self.scan.ranges + self.jumps.min(self.pages());
        descents * next_leaf_us(constants, self.scan.tree_pages)
            + self.pages() * constants.page_us
            + self.matches * constants.entry_us
            + self.jumps * jump_us(constants)
    }

    /// ```text
    ///   workers: processor + missing x pages x random read
    /// ```
    ///
    /// or, where that is less, the reads of a [scan](RangeScan::reads): where jumps lead to most of the leaves,
    /// read-ahead finds them in order.
    pub(crate) fn work(&self, constants: &CostConstants) -> Work {
        let missing = 1.0 - self.scan.resident;
        let jumping = Work::of_workers(missing * self.pages() * constants.random_read_us);
        let stepping = self.scan.reads(constants);
        let reads = match jumping.elapsed_us(1.0) <= stepping.elapsed_us(1.0) {
            true => jumping,
            false => stepping,
        };
        Work::of_workers(self.processor_us(constants)) + reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(matches: f64, jumps: f64) -> JumpingWalk {
        JumpingWalk {
            scan: RangeScan {
                ranges: 1.0,
                entries: 100_000.0,
                tree_pages: 1_000.0,
                tree_entries: 100_000.0,
                pool_pages: 10_000.0,
                resident: 0.0,
            },
            matches,
            jumps,
        }
    }

    #[test]
    fn jumps_pay_where_they_skip_leaves() {
        let constants = CostConstants::default();
        let cost = |walk: &JumpingWalk| walk.work(&constants).elapsed_us(1.0);
        let stepping = walk(100_000.0, 0.0);
        assert_eq!(stepping.pages(), 1_000.0);
        assert!(cost(&walk(100.0, 50.0)) < cost(&stepping) / 4.0);
        // Where half of the entries match, one by one, stepping is cheaper.
        let alternating = walk(50_000.0, 50_000.0);
        assert_eq!(alternating.pages(), 1_000.0);
        assert!(cost(&alternating) > cost(&stepping));
    }
}
