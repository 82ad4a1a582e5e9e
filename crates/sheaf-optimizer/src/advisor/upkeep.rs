//! What an index costs when rows change.

use sheaf_storage::TreeStatistics;

use crate::cost::CostConstants;
use crate::cost::lookup::lookup_us;

/// What writing an entry takes besides finding its place: its record of the log, and moving what lies behind it in the
/// page. In descents.
const WRITING_DESCENTS: f64 = 2.0;

/// Microseconds that putting one entry into an index takes, or taking one out:
///
/// ```text
///   lookup + share not in memory x random read + writing
/// ```
pub fn upkeep_us(constants: &CostConstants, index: TreeStatistics, resident: f64) -> f64 {
    lookup_us(constants, index.leaf_pages as f64)
        + (1.0 - resident.clamp(0.0, 1.0)) * constants.random_read_us
        + WRITING_DESCENTS * constants.descent_us
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_memory_has_to_be_read_first() {
        let constants = CostConstants::default();
        let index = TreeStatistics {
            entries: 1_000_000,
            leaf_pages: 5_000,
            ..TreeStatistics::default()
        };
        let warm = upkeep_us(&constants, index, 1.0);
        let cold = upkeep_us(&constants, index, 0.0);
        assert!(warm > constants.descent_us);
        assert!((cold - warm - constants.random_read_us).abs() < 1e-9);
    }
}
