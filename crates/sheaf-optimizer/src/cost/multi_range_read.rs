//! Fetching rows from the clustered tree a buffer-full at a time, in the order of the primary key.

use super::CostConstants;
use super::lookup::{Lookups, sorted_descents_us};
use super::pages::{pages_in_turns, with_correlation};

/// Share of the leaves that must be missing for the operator to sort the keys whatever the buffer holds.
const SORT_FROM_MISSING: f64 = 0.02;

/// Leaves for each key in the buffer up to which the operator sorts the keys whatever is in memory.
const SORT_LEAVES_PER_KEY: f64 = 4.0;

/// What collecting a key in the buffer costs, as a share of reading its entry.
const COLLECT_SHARE: f64 = 0.2;

/// A multi-range read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MultiRangeRead {
    pub lookups: Lookups,
    /// Keys that fit in the buffer.
    pub keys_per_turn: f64,
    /// Keys are sorted even if everything is in memory.
    pub always_sorts: bool,
}

impl MultiRangeRead {
    /// Pages read if none is in memory.
    pub(crate) fn pages(&self) -> f64 {
        let Lookups {
            lookups,
            leaves,
            pool_pages,
            correlation,
            ..
        } = self.lookups;
        let scattered = pages_in_turns(lookups, leaves, self.keys_per_turn, pool_pages);
        with_correlation(scattered, self.lookups.pages_together(), correlation)
    }

    /// ```text
    ///   lookups x (collecting + log2(keys in a turn) x compare) + sorted descents
    ///     + missing x min(pages x prefetched read, leaves x turns x sequential read)
    /// ```
    ///
    /// Reading with gaps never costs more than reading the gaps too. When nothing is missing and the keys are few for so
    /// many leaves, they are not sorted, and the descents are in no order.
    pub(crate) fn cost_us(&self, constants: &CostConstants) -> f64 {
        let Lookups {
            lookups,
            leaves,
            resident,
            ..
        } = self.lookups;
        let missing = 1.0 - resident;
        let in_a_turn = lookups.min(self.keys_per_turn).max(1.0);
        let turns = (lookups / in_a_turn).ceil().max(1.0);
        let sorts = self.always_sorts
            || missing > SORT_FROM_MISSING
            || in_a_turn * SORT_LEAVES_PER_KEY >= leaves;
        let pages = self.pages();
        let descents_us = match sorts {
            true => {
                lookups * in_a_turn.log2().max(1.0) * constants.compare_us
                    + sorted_descents_us(constants, lookups, pages)
            }
            false => lookups * constants.descent_us,
        };
        let with_gaps = pages * constants.prefetched_read_us;
        let without = leaves * turns * constants.sequential_read_us;
        descents_us
            + lookups * COLLECT_SHARE * constants.entry_us
            + missing * with_gaps.min(without)
    }
}
