//! Rows in which functions that note something find something.

use arrow::array::{Array, AsArray, StringViewArray};
use datafusion_common::Result;
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs};

/// How many rows operands have, and for how many rows of the batch each of these stands.
pub(super) fn rows_of(args: &ScalarFunctionArgs) -> (usize, usize) {
    let is_scalar = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(_));
    match args.args.iter().all(is_scalar) {
        true => (1, args.number_rows),
        false => (args.number_rows, 1),
    }
}

/// The rows whose text is bad and for which all conditions are true.
pub(super) fn bad_rows(
    texts: &StringViewArray,
    is_bad: impl Fn(&str) -> bool,
    conditions: &[ColumnarValue],
) -> Result<Vec<usize>> {
    let rows = texts.iter().enumerate();
    let bad = rows.filter_map(|(row, text)| text.is_some_and(&is_bad).then_some(row));
    where_all_are_true(bad.collect(), conditions, texts.len())
}

/// Those of `found` for which all conditions are true.
pub(super) fn where_all_are_true(
    mut found: Vec<usize>,
    conditions: &[ColumnarValue],
    rows: usize,
) -> Result<Vec<usize>> {
    for condition in conditions {
        if found.is_empty() {
            break;
        }
        let condition = condition.to_array(rows)?;
        let condition = condition.as_boolean();
        found.retain(|row| condition.is_valid(*row) && condition.value(*row));
    }
    Ok(found)
}
