//! Values on their way into columns.
use crate::error::ColumnProblem;
use crate::schema::Column;
use crate::value::Value;

/// Whether a value that does not fit is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Strict,
    /// The nearest value is stored and the problem is a warning.
    Lenient,
}

/// Converts any value to the column's type as MySQL assigns it.
///
/// The second half of the result is a problem that did not stop the conversion: in lenient mode any, in strict mode
/// notes such as a cut fraction.
///
/// # Errors
/// The problem, in strict mode.
pub fn to_column(
    column: &Column,
    value: &Value,
    mode: Mode,
) -> Result<(Value, Option<ColumnProblem>), ColumnProblem> {
    let _ = (column, value, mode);
    unimplemented!()
}

/// [`to_column`] for text such as a field of LOAD DATA, into a value whose memory is used again.
pub fn text_to_column(
    column: &Column,
    text: &str,
    mode: Mode,
    into: &mut Value,
) -> Result<Option<ColumnProblem>, ColumnProblem> {
    let _ = (column, text, mode, into);
    unimplemented!()
}
