//! Grouping and aggregate functions.

use super::CostConstants;

/// What a function does with a row, evaluating its argument included, in conditions on a row.
const CONDITIONS_PER_FUNCTION: f64 = 3.0;

/// ```text
///   rows x (probe, if there are groups + functions x 3 x condition) / workers
/// ```
///
/// Each worker groups the rows that it reads; what is left to merge is small beside them.
pub(crate) fn grouping_us(
    constants: &CostConstants,
    rows: f64,
    is_grouped: bool,
    functions: usize,
    workers: usize,
) -> f64 {
    let probe_us = if is_grouped {
        constants.hash_probe_us
    } else {
        0.0
    };
    let functions_us = functions as f64 * CONDITIONS_PER_FUNCTION * constants.condition_us;
    rows * (probe_us + functions_us) / workers.max(1) as f64
}
