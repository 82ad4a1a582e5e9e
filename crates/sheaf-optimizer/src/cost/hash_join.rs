//! Hash joins, and nested loops where there is nothing to hash.

use super::CostConstants;

/// ```text
///   build rows x build + probe rows x probe
/// ```
pub(crate) fn hash_join_us(constants: &CostConstants, build_rows: f64, probe_rows: f64) -> f64 {
    build_rows * constants.hash_build_us + probe_rows * constants.hash_probe_us
}

/// ```text
///   outer rows x inner rows x probe
/// ```
pub(crate) fn nested_loop_us(constants: &CostConstants, outer_rows: f64, inner_rows: f64) -> f64 {
    outer_rows * inner_rows * constants.hash_probe_us
}
