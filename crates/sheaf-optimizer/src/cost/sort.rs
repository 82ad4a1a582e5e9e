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

/// Comparing two encoded keys, as a share of comparing two rows.
const KEY_COMPARE_SHARE: f64 = 0.2;

/// The same for encoded keys in a buffer, which compare as bytes.
pub(crate) fn key_sort_us(constants: &CostConstants, keys: f64) -> f64 {
    KEY_COMPARE_SHARE * sort_us(constants, keys, keys)
}

/// Sorting both sides of a merge join. It compares rows in memory and again when what was spilled is merged.
pub(crate) fn merge_join_us(constants: &CostConstants, left_rows: f64, right_rows: f64) -> f64 {
    2.0 * (sort_us(constants, left_rows, left_rows) + sort_us(constants, right_rows, right_rows))
}
