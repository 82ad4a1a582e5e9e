//! Cells of JSON_TABLE on their way into columns.
//!
//! A column takes what it would take of an INSERT in strict mode, with a few exceptions. Where it does not take a
//! value, ON ERROR says what becomes of it: NULL, unless it says something else.
//!
//! ```text
//!   2.5 into an integer               2, as CAST rounds it
//!   1e30 into an integer              3155
//!   true, null into a date            3669
//!   20240229 into a date              the date that its digits say
//!   "2024-02-29 or so" into a date    the date that it begins with
//! ```

use sheaf_types::assignment::{Mode, assign};
use sheaf_types::error::{ColumnProblem, codes};
use sheaf_types::json::functions::coerce::{Coerced, CoercionProblem, to_double, to_integer};
use sheaf_types::json::functions::quote::unquote;
use sheaf_types::json::table::{Cell, Otherwise};
use sheaf_types::json::{Json, JsonError, View};
use sheaf_types::temporal::{ZERO_DATE, ZERO_DATETIME, read_time};
use sheaf_types::{ColumnType, Value};

use super::table::{JsonTable, JsonTableColumn};
use crate::functions::EvaluationError;

/// The value of a JSON value in the column of this name and type.
///
/// # Errors
/// 3155, 3156 and 3669: the column does not hold it.
pub fn assigned(column: &str, ty: &ColumnType, json: Json<'_>) -> Result<Value, JsonError> {
    let is_text = ty.is_character() || ty.is_binary() || ty.has_labels();
    let is_whole = ty.whole_digits().is_some();
    let value = match json.view() {
        _ if ty.is_json() => return Ok(Value::Json(json.to_document().into_bytes())),
        _ if is_text => Value::Text(unquote(json).into_owned()),
        View::Date(_) | View::Time(_) | View::DateTime(_) | View::Timestamp(_) => as_json(json),
        View::String(_)
        | View::Int(_)
        | View::UInt(_)
        | View::Double(_)
        | View::Decimal { .. }
        | View::WideDecimal { .. }
            if ty.is_temporal() =>
        {
            return moment(ty, &unquote(json)).ok_or_else(|| out_of_range(column));
        }
        _ if ty.is_temporal() => return Err(out_of_range(column)),
        _ if is_whole => {
            let whole = coerced(to_integer(json), "INTEGER", column)?;
            match i64::try_from(whole) {
                Ok(number) => Value::Int(number),
                Err(_) => Value::UInt(u64::try_from(whole).unwrap_or(u64::MAX)),
            }
        }
        View::String(_) if ty.is_floating() => {
            Value::Double(coerced(to_double(json), "DOUBLE", column)?)
        }
        _ => as_json(json),
    };
    match assign(ty, &value, Mode::STRICT) {
        Ok((value, _)) => Ok(value),
        Err(ColumnProblem::JsonCast { to }) => Err(CoercionProblem::Invalid.error(to, column, 1)),
        Err(_) => Err(out_of_range(column)),
    }
}

fn as_json(json: Json<'_>) -> Value {
    Value::Json(json.to_document().into_bytes())
}

fn coerced<T>(coerced: Coerced<T>, to: &'static str, column: &str) -> Result<T, JsonError> {
    match coerced.problem {
        None => Ok(coerced.value),
        Some(problem) => Err(problem.error(to, column, 1)),
    }
}

/// The date or time that a text begins with.
fn moment(ty: &ColumnType, text: &str) -> Option<Value> {
    // A column of a table takes it for a TIME of 0.
    if text.trim().is_empty() {
        return None;
    }
    match assign(ty, &Value::Text(text.to_string()), Mode::LENIENT).ok()? {
        (value, None | Some(ColumnProblem::Rounded)) => Some(value),
        // Something follows, or nothing is there.
        (value, Some(ColumnProblem::IncorrectTemporal { .. })) => {
            let is_there = match ty.has_date() {
                false => read_time(text).is_ok(),
                true => !matches!(
                    value,
                    Value::Date(ZERO_DATE)
                        | Value::DateTime(ZERO_DATETIME)
                        | Value::Timestamp(ZERO_DATETIME)
                ),
            };
            is_there.then_some(value)
        }
        _ => None,
    }
}

fn out_of_range(column: &str) -> JsonError {
    let column = column.to_string();
    JsonError::TableValueOutOfRange { column }
}

impl JsonTable {
    /// The value of a cell in the column at this position.
    ///
    /// # Errors
    /// 3155, 3156, 3665, 3666 and 3669 where the column asks for errors; 3140 for EXISTS in a column of JSON.
    pub(crate) fn value(&self, position: usize, cell: &Cell<'_>) -> Result<Value, EvaluationError> {
        let column = &self.columns[position];
        let json = match cell {
            Cell::Null => return Ok(Value::Null),
            Cell::Ordinal(number) => return self.number(column, *number),
            Cell::Exists(exists) => return self.number(column, u64::from(*exists)),
            Cell::Value(json) => *json,
            Cell::Made(document) => document.as_json(),
            Cell::Wrong(error) => return Err(error.clone().into()),
        };
        let in_column = |json| assigned(&column.name, &column.ty, json);
        let error = match in_column(json) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        match &column.on_error {
            Otherwise::Null => Ok(Value::Null),
            Otherwise::Default(document) => Ok(in_column(document.as_json())?),
            Otherwise::Error => Err(error.into()),
        }
    }

    /// A number that is none of the document.
    fn number(&self, column: &JsonTableColumn, number: u64) -> Result<Value, EvaluationError> {
        match assign(&column.ty, &Value::UInt(number), Mode::STRICT) {
            Ok((value, _)) => Ok(value),
            Err(ColumnProblem::JsonText { message, position }) => {
                let (table, column) = (&self.name, &column.name);
                let text = format!(
                    "Invalid JSON text: \"{message}\" at position {position} in value for column '{table}.{column}'."
                );
                Err(EvaluationError::new(codes::INVALID_JSON_TEXT, text))
            }
            Err(_) => Ok(Value::Null),
        }
    }
}
