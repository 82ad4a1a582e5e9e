//! Hash joins, and nested loops where there is nothing to hash.

use super::CostConstants;

/// ```text
///   rows x build
/// ```
///
/// One worker builds the table that all of them probe.
pub(crate) fn hash_build_us(constants: &CostConstants, rows: f64) -> f64 {
    rows * constants.hash_build_us
}

/// ```text
///   rows x probe
/// ```
pub(crate) fn hash_probe_us(constants: &CostConstants, rows: f64) -> f64 {
    rows * constants.hash_probe_us
}

/// ```text
///   outer rows x inner rows x probe
/// ```
pub(crate) fn nested_loop_us(constants: &CostConstants, outer_rows: f64, inner_rows: f64) -> f64 {
    outer_rows * inner_rows * constants.hash_probe_us
}
