//! What a column holds of a value, and what it holds where there is none.
//!
//! The rules of assignment are those of the column's type ([`sheaf_types::assignment`]). A column adds whether it may
//! be NULL, and its default.

use std::sync::Arc;

use sheaf_types::assignment::{self, Mode, current_timestamp, zero_value};
use sheaf_types::{ColumnProblem, Value};

use crate::definition::schema::{Column, DefaultValue};
use crate::error::TableError;

/// Converts any value to the column's type as MySQL assigns it. NULL for an AUTO_INCREMENT column stays NULL.
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
    match value {
        Value::Null if column.nullable || column.auto_increment => Ok((Value::Null, None)),
        value => assignment::assign(&column.ty, value, mode),
    }
}

/// Computes the defaults that are expressions, and the values of generated columns, of the columns of a row at these
/// positions. The other columns have their values.
#[derive(Clone)]
pub struct RowFill(pub Arc<Fill>);

type Fill = dyn Fn(&mut [Value], &[usize]) -> Result<(), TableError> + Send + Sync;

impl std::fmt::Debug for RowFill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RowFill")
    }
}

/// A column's default; `None` if it has none and cannot be NULL, unless it is an ENUM. `now_micros`: what
/// CURRENT_TIMESTAMP stands for.
pub fn default_of(column: &Column, now_micros: i64) -> Option<Value> {
    match &column.default {
        // The SQL floor computes it of the other columns of the row.
        _ if column.generated.is_some() => Some(Value::Null),
        Some(DefaultValue::Value(value)) => Some(value.clone()),
        Some(DefaultValue::CurrentTimestamp) => Some(current_timestamp(&column.ty, now_micros)),
        // The SQL floor computes it, when the other columns of the row have their values.
        Some(DefaultValue::Expression(_)) => Some(Value::Null),
        None if column.nullable || column.auto_increment => Some(Value::Null),
        // The first label.
        None if column.ty.enum_labels().is_some() => Some(Value::Enum(1)),
        None => None,
    }
}

/// What DEFAULT stands for in a row that is there already: it gets no AUTO_INCREMENT value, so 0 is the default of a
/// column that cannot be NULL. `None` if it has none.
pub fn default_in_row(column: &Column, now_micros: i64) -> Option<Value> {
    match default_of(column, now_micros) {
        Some(Value::Null) if !column.nullable => Some(zero_value(&column.ty)),
        default => default,
    }
}

#[cfg(test)]
mod tests {
    use sheaf_types::ColumnType;

    use super::*;

    #[test]
    fn null_is_a_value_of_columns_that_take_it() {
        let column = |nullable| {
            Column::new(
                "c",
                ColumnType::Int {
                    sign: sheaf_types::column_type::Sign::Signed,
                },
                nullable,
            )
        };
        let null = Ok((Value::Null, None));
        assert_eq!(to_column(&column(true), &Value::Null, Mode::STRICT), null);
        let problem = Err(ColumnProblem::Null);
        assert_eq!(
            to_column(&column(false), &Value::Null, Mode::STRICT),
            problem
        );
        let generated = Column {
            auto_increment: true,
            ..column(false)
        };
        assert_eq!(to_column(&generated, &Value::Null, Mode::STRICT), null);
    }
}
