//! Sorting.

use super::CostConstants;

/// ```text
///   rows x log2(kept) x compare
/// ```
///
/// `kept` are all rows, or those that a LIMIT wants, which a heap keeps.
pub(crate) fn sort_us(constants: &CostConstants, rows: f64, kept: f64) -> f64 {
    rows * kept.min(rows).max(2.0).log2() * constants.compare_us
}

/// Sorting both sides of a merge join. It compares rows in memory and again when what was spilled is merged.
pub(crate) fn merge_join_us(constants: &CostConstants, left_rows: f64, right_rows: f64) -> f64 {
    2.0 * (sort_us(constants, left_rows, left_rows) + sort_us(constants, right_rows, right_rows))
}
