//! Looking keys up in an index for the rows of the other side of a join. What follows from an entry to its row is a
//! [lookup](super::lookup) or a [multi-range read](super::multi_range_read).

use super::CostConstants;
use super::lookup::{copy_found_us, lookup_us, next_leaf_us};
use super::pages::{
    gapped_reads_us, pages_at_places, pages_in_no_order, pages_in_turns, visits_in_turns,
    with_correlation,
};
use super::work::Work;

/// In which order keys come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct KeyOrder {
    /// With the order of the index, -1 to 1, in each run.
    pub correlation: f64,
    /// Times that they begin anew.
    pub runs: f64,
}

impl KeyOrder {
    pub(crate) const NONE: KeyOrder = KeyOrder {
        correlation: 0.0,
        runs: 1.0,
    };
}

/// Keys to be looked up, and the index that they are in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyedLookups {
    pub keys: f64,
    pub order: KeyOrder,
    /// Workers that look them up, in turns at the same time.
    pub workers: f64,
    pub entries_per_key: f64,
    /// Leaves and entries of the index.
    pub leaves: f64,
    pub entries: f64,
    /// Share of them that is in memory.
    pub resident: f64,
    /// Pages that the pool can hold.
    pub pool_pages: f64,
    /// A worker collects so many keys at a time and sorts them before it looks them up.
    pub sorted_keys_per_turn: Option<f64>,
    /// Pages are prefetched, a buffer-full of keys at a time.
    pub batched: bool,
    /// Keys are whole keys of the clustered tree: their rows are read where they are, without their pages.
    pub reads_points: bool,
}

impl KeyedLookups {
    /// ```text
    ///   workers: keys x (lookup + page / 2), or keys x sorted descent + visits x (next leaf + page / 2)
    ///     + keys x entries x entry
    ///   device, if pages are asked for ahead: missing x reads with gaps between them
    ///   otherwise workers: missing x pages x random read
    /// ```
    ///
    /// Sorted keys go to each leaf once in a turn, where the others of the leaf are next to it; keys that come in
    /// order, once in a run. A key with more entries than a leaf holds goes on to the next ones.
    pub(crate) fn work(&self, constants: &CostConstants) -> Work {
        let worker_us =
            self.descents_us(constants) + self.keys * self.entries_per_key * constants.entry_us;
        let missing = 1.0 - self.resident;
        match self.batched {
            true => Work {
                worker_us,
                device_us: missing * self.prefetched_reads_us(constants),
            },
            false => {
                let pages = with_correlation(
                    self.pages_as_looked_up(),
                    self.pages_as_they_come(),
                    self.order.correlation,
                );
                let pages = pages.max(self.pages_of_entries());
                Work::of_workers(worker_us + missing * pages * constants.random_read_us)
            }
        }
    }

    /// Pages read if none is in memory and the keys come in no order. Workers go through the tree side by side, so a
    /// page that one of them has read is still there for the others.
    fn pages_as_looked_up(&self) -> f64 {
        match self.sorted_keys_per_turn {
            Some(keys_per_turn) => {
                let keys = keys_per_turn * self.workers;
                pages_in_turns(self.keys, self.leaves, keys, self.pool_pages)
            }
            None => pages_in_no_order(self.keys, self.leaves, self.pool_pages),
        }
    }

    /// The same if the runs in which they come are in the order of the index.
    fn pages_as_they_come(&self) -> f64 {
        let keys_per_run = self.keys / self.order.runs;
        pages_in_turns(self.keys, self.leaves, keys_per_run, self.pool_pages)
    }

    /// What reading the pages takes if none is in memory and they are prefetched.
    fn prefetched_reads_us(&self, constants: &CostConstants) -> f64 {
        let least = self.pages_of_entries();
        let reads_us = |pages: f64, turns: f64| {
            gapped_reads_us(constants, pages.max(least), self.leaves, turns)
        };
        let in_no_order = match self.sorted_keys_per_turn {
            Some(keys_per_turn) => {
                let turns = (self.keys / keys_per_turn).ceil();
                reads_us(self.pages_as_looked_up(), turns)
            }
            None => self.pages_as_looked_up().max(least) * constants.prefetched_read_us,
        };
        let in_order = reads_us(self.pages_as_they_come(), self.order.runs);
        with_correlation(in_no_order, in_order, self.order.correlation)
    }

    /// The first line of it: what finding the keys takes besides reading pages.
    pub(crate) fn descents_us(&self, constants: &CostConstants) -> f64 {
        let copy_us = match self.reads_points {
            true => 0.0,
            false => copy_found_us(constants),
        };
        match self.sorted_keys_per_turn {
            Some(keys_per_turn) => {
                let visits = with_correlation(
                    visits_in_turns(self.keys, self.leaves, keys_per_turn),
                    visits_in_turns(self.keys, self.leaves, self.keys / self.order.runs),
                    self.order.correlation,
                );
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

#[cfg(test)]
mod tests {
    use super::*;

    fn lookups(keys: f64, order: KeyOrder) -> KeyedLookups {
        KeyedLookups {
            keys,
            order,
            workers: 1.0,
            entries_per_key: 4.0,
            leaves: 40_000.0,
            entries: 6_000_000.0,
            resident: 0.0,
            pool_pages: 16_000.0,
            sorted_keys_per_turn: Some(10_000.0),
            batched: true,
            reads_points: false,
        }
    }

    #[test]
    fn keys_in_order_read_a_large_tree_once() {
        let constants = CostConstants::default();
        let in_order = KeyOrder {
            correlation: 1.0,
            runs: 1.0,
        };
        let device_us = |order| lookups(100_000.0, order).work(&constants).device_us;
        let whole_tree_us = 40_000.0 * constants.sequential_read_us;
        assert!(device_us(in_order) <= whole_tree_us);
        assert!(device_us(KeyOrder::NONE) > 2.0 * whole_tree_us);
        let halves = KeyOrder {
            runs: 2.0,
            ..in_order
        };
        assert!(device_us(in_order) < device_us(halves));
        assert!(device_us(halves) < device_us(KeyOrder::NONE));
    }

    #[test]
    fn the_order_of_few_keys_is_all_the_same() {
        let constants = CostConstants::default();
        let in_order = KeyOrder {
            correlation: 1.0,
            runs: 1.0,
        };
        let few = lookups(100.0, in_order).work(&constants).device_us;
        let scattered = lookups(100.0, KeyOrder::NONE).work(&constants).device_us;
        assert!(
            (few - scattered).abs() < 0.01 * scattered,
            "{few} {scattered}"
        );
    }
}
