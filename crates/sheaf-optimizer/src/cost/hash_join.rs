//! Hash joins, and nested loops where there is nothing to hash.

use super::CostConstants;

/// Bytes of a row in a hash table besides its columns.
pub(crate) const HASH_ROW_BYTES: f64 = 32.0;

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

/// What a hash join of so many rows takes in addition if it divides both sides between files. Each row is hashed and
/// copied, encoded, written, read and decoded: as much as looking it up a few times. Where the files lie in the
/// system's page cache, a join of two million rows takes twice as long by files.
pub(crate) fn spilled_join_us(constants: &CostConstants, left_rows: f64, right_rows: f64) -> f64 {
    SPILLED_PROBES * hash_probe_us(constants, left_rows + right_rows)
}

const SPILLED_PROBES: f64 = 4.0;
