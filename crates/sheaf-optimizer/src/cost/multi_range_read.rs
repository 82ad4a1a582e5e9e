//! Fetching rows from the clustered tree a buffer-full at a time, in the order of the primary key.

use sheaf_access::sort_rule;

use super::CostConstants;
use super::lookup::{Lookups, lookup_us, sorted_descents_us};
use super::pages::{gapped_reads_us, pages_in_turns, visits_in_turns, with_correlation};
use super::sort::key_sort_us;
use super::work::Work;

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

    fn keys_in_a_turn(&self) -> f64 {
        self.lookups.lookups.min(self.keys_per_turn).max(1.0)
    }

    /// ```text
    ///   lookups x (collecting + log2(keys in a turn) x compare / 5) + sorted descents
    /// ```
    ///
    /// When nothing is missing, and the keys are few for so many leaves or the leaves are in the processor's caches,
    /// they are not sorted, and the descents are in no order.
    pub(crate) fn processor_us(&self, constants: &CostConstants) -> f64 {
        let Lookups {
            lookups,
            leaves,
            resident,
            correlation,
            ..
        } = self.lookups;
        let in_a_turn = self.keys_in_a_turn();
        let sorts = self.always_sorts
            || 1.0 - resident > sort_rule::MISSING_SHARE
            || sort_rule::pays_in_memory(in_a_turn, leaves);
        let descents_us = match sorts {
            true => {
                let scattered = visits_in_turns(lookups, leaves, in_a_turn);
                let together = self.lookups.pages_together();
                let visits = with_correlation(scattered, together, correlation);
                lookups / in_a_turn * key_sort_us(constants, in_a_turn)
                    + sorted_descents_us(constants, lookups, visits, leaves)
            }
            false => lookups * lookup_us(constants, leaves),
        };
        descents_us + lookups * COLLECT_SHARE * constants.entry_us
    }

    /// The processor's part is the workers', and all reads are prefetched.
    pub(crate) fn work(&self, constants: &CostConstants) -> Work {
        Work {
            worker_us: self.processor_us(constants),
            device_us: self.device_us(constants),
        }
    }

    /// Missing pages, read with [gaps](gapped_reads_us) between them.
    fn device_us(&self, constants: &CostConstants) -> f64 {
        let Lookups {
            lookups,
            leaves,
            resident,
            ..
        } = self.lookups;
        let turns = (lookups / self.keys_in_a_turn()).ceil().max(1.0);
        (1.0 - resident) * gapped_reads_us(constants, self.pages(), leaves, turns)
    }
}
