//! Testing conditions: on index entries before the row is fetched (index condition pushdown), or on rows.

use super::CostConstants;

/// ```text
///   tested x conditions x condition
/// ```
///
/// An OR is as many conditions as it has operands ([`crate::estimate::condition::tests`]).
///
/// What an index condition saves is not here: it is in the number of lookups, which is that of the entries it keeps.
pub(crate) fn conditions_us(constants: &CostConstants, tested: f64, conditions: usize) -> f64 {
    tested * conditions as f64 * constants.condition_us
}
