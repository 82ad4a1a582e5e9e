//! Reading ranges of a tree in its order: the clustered scan, and the index range scan without its lookups.

use super::CostConstants;
use super::lookup::{copy_found_us, next_leaf_us};
use super::pages::distinct_pages;
use super::work::Work;

/// What is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RangeScan {
    pub ranges: f64,
    /// Entries in them.
    pub entries: f64,
    /// Leaves of the tree, and its entries.
    pub tree_pages: f64,
    pub tree_entries: f64,
    /// Pages that the pool can hold.
    pub pool_pages: f64,
    /// Share of the ranges' leaves that is in memory.
    pub resident: f64,
}

impl RangeScan {
    /// Leaves that the ranges cover; the first of a range is counted whole.
    pub(crate) fn pages(&self) -> f64 {
        let share = (self.entries / self.tree_entries.max(1.0)).min(1.0);
        let inside = self.tree_pages * share;
        inside
            .max(distinct_pages(self.ranges, self.tree_pages))
            .max(1.0)
    }

    /// Share of the leaves that has to be read. A scan of more pages than the pool holds drives out what is in memory
    /// before it comes there.
    pub(crate) fn missing(&self) -> f64 {
        match self.pages() > self.pool_pages {
            true => 1.0,
            false => 1.0 - self.resident,
        }
    }

    /// ```text
    ///   ranges x next leaf + first pages x page / 2 + other pages x page + entries x entry
    /// ```
    ///
    /// Wide rows cost more than narrow ones because fewer are on a page.
    fn processor_us(&self, constants: &CostConstants) -> f64 {
        let pages = self.pages();
        let first = distinct_pages(self.ranges, self.tree_pages).min(pages);
        self.ranges * next_leaf_us(constants, self.tree_pages)
            + first * copy_found_us(constants)
            + (pages - first) * constants.page_us
            + self.entries * constants.entry_us
    }

    /// ```text
    ///   workers: processor + missing x first pages x random read
    ///   device:  missing x other pages x sequential read
    /// ```
    ///
    /// First pages are those in which ranges begin, each page once; the one of a single range is read ahead with the
    /// rest.
    pub(crate) fn work(&self, constants: &CostConstants) -> Work {
        Work::of_workers(self.processor_us(constants)) + self.reads(constants)
    }

    /// The part of [`RangeScan::work`] for pages that are not in memory.
    pub(crate) fn reads(&self, constants: &CostConstants) -> Work {
        let pages = self.pages();
        let first = distinct_pages((self.ranges - 1.0).max(0.0), self.tree_pages).min(pages);
        let missing = self.missing();
        Work {
            worker_us: missing * first * constants.random_read_us,
            device_us: missing * (pages - first) * constants.sequential_read_us,
        }
    }
}
