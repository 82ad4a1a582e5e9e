//! When a multi-range read sorts its keys by itself ([`SortKeys::Auto`](crate::SortKeys::Auto)): one rule, for the
//! method and for the optimizer's estimate of what the method costs.
//!
//! - Pages are missing: always. The method looks at a sample (`RESIDENCY_SAMPLE`) of the keys, the estimate at the
//!   share of the tree that is in memory ([`MISSING_SHARE`]).
//! - Nothing is missing: if [sorting pays in memory](pays_in_memory).

/// Keys whose leaves are looked up in the page table to learn whether a buffer's pages are resident.
pub(crate) const RESIDENCY_SAMPLE: usize = 128;

/// Share of the leaves from which on the sample is taken to meet one that is missing: it does so 92 times of 100.
pub const MISSING_SHARE: f64 = 0.02;

/// Leaves of a tree that the processor's caches hold between two visits in no order: 150 MiB. They share the largest
/// cache with everything else.
pub const CACHED_LEAVES: f64 = 9_600.0;

/// Leaves of the tree per key of the buffer up to which sorting pays for keys whose rows are in memory.
const DENSE_LEAVES_PER_KEY: f64 = 4.0;

/// Whether sorting `keys` keys of a tree of `leaves` leaves pays although all their rows are in memory. It does where
/// many keys have neighbours on their leaf, or on the leaf beside it, and the processor's caches do not hold the tree.
pub fn pays_in_memory(keys: f64, leaves: f64) -> bool {
    leaves > CACHED_LEAVES && keys * DENSE_LEAVES_PER_KEY >= leaves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_keys_of_a_large_tree_are_sorted() {
        assert!(pays_in_memory(5_000.0, 20_000.0));
        assert!(!pays_in_memory(4_999.0, 20_000.0));
        // The caches hold the tree.
        assert!(!pays_in_memory(1e6, CACHED_LEAVES));
    }

    #[test]
    fn the_sample_meets_the_missing_share() {
        let misses_none = (1.0 - MISSING_SHARE).powi(RESIDENCY_SAMPLE as i32);
        assert!(misses_none < 0.1, "{misses_none}");
    }
}
