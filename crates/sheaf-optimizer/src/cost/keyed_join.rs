//! Looking keys up in an index for the rows of the other side of a join. What follows from an entry to its row is a
//! [lookup](super::lookup) or a [multi-range read](super::multi_range_read).

use super::CostConstants;
use super::lookup::{copy_found_us, lookup_us, next_leaf_us};
use super::pages::{pages_at_places, pages_in_no_order, pages_in_turns, visits_in_turns};
use super::work::Work;

/// Keys to be looked up, and the index that they are in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyedLookups {
    pub keys: f64,
    pub entries_per_key: f64,
    /// Leaves and entries of the index.
    pub leaves: f64,
    pub entries: f64,
    /// Share of them that is in memory.
    pub resident: f64,
    /// Pages that the pool can hold.
    pub pool_pages: f64,
    /// Keys are collected, so many at a time, and sorted before they are looked up.
    pub sorted_keys_per_turn: Option<f64>,
    /// Pages are asked for ahead, a buffer-full of keys at a time.
    pub batched: bool,
    /// Keys are whole keys of the clustered tree: their rows are read where they are, without their pages.
    pub reads_points: bool,
}

impl KeyedLookups {
    /// ```text
    ///   workers: keys x (lookup + page / 2), or keys x sorted descent + visits x (next leaf + page / 2)
    ///     + keys x entries x entry
    ///   device, if pages are asked for ahead: missing x pages x prefetched read
    ///   otherwise workers: missing x pages x random read
    /// ```
    ///
    /// Sorted keys go to each leaf once, where the others of the leaf are next to it. A key with more entries than a leaf
    /// holds goes on to the next ones.
    pub(crate) fn work(&self, constants: &CostConstants) -> Work {
        let pages = match self.sorted_keys_per_turn {
            Some(keys_per_turn) => {
                pages_in_turns(self.keys, self.leaves, keys_per_turn, self.pool_pages)
            }
            None => pages_in_no_order(self.keys, self.leaves, self.pool_pages),
        };
        let worker_us =
            self.descents_us(constants) + self.keys * self.entries_per_key * constants.entry_us;
        let missing = pages.max(self.pages_of_entries()) * (1.0 - self.resident);
        match self.batched {
            true => Work {
                worker_us,
                device_us: missing * constants.prefetched_read_us,
            },
            false => Work::of_workers(worker_us + missing * constants.random_read_us),
        }
    }

    /// The first line of it: what finding the keys takes besides reading pages.
    pub(crate) fn descents_us(&self, constants: &CostConstants) -> f64 {
        let copy_us = match self.reads_points {
            true => 0.0,
            false => copy_found_us(constants),
        };
        match self.sorted_keys_per_turn {
            Some(keys_per_turn) => {
                let visits = visits_in_turns(self.keys, self.leaves, keys_per_turn);
                let to_leaves_us = visits * (next_leaf_us(constants, self.leaves) + copy_us);
                self.keys * constants.sorted_descent_us + to_leaves_us
            }
            None => self.keys * (lookup_us(constants, self.leaves) + copy_us),
        }
    }

    /// Pages that the entries of the keys are on, each read once.
    fn pages_of_entries(&self) -> f64 {
        let entries = self.keys * self.entries_per_key.max(1.0);
        pages_at_places(self.keys, entries, self.entries, self.leaves)
    }
}
