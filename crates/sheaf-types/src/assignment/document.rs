//! Values on their way into columns of JSON, and JSON values on their way into others.

use super::{Converted, Mode, convert, convert_text, zero_value};
use crate::column_type::ColumnType;
use crate::error::ColumnProblem;
use crate::json::functions::coerce::{Coerced, CoercionProblem, to_decimal, to_double, to_integer};
use crate::json::text::{self, TextProblem};
use crate::json::{Document, Json, JsonError, View};
use crate::value::Value;

/// A JSON value for a column of numbers, dates or times, which it is as in a cast. Strings and labels take its text.
///
/// ```text
///   5, 5.5, true      the number
///   "5.5"             the number that the string says; into an integer only a whole one
///   "2024-02-29"      the date, and one that a document has
///   null, [..], {..}  3156
/// ```
pub(super) fn to_column(ty: &ColumnType, json: Json<'_>, mode: Mode) -> Converted {
    let moment = match json.view() {
        View::Date(days) => Some(Value::Date(days)),
        View::Time(micros) => Some(Value::Time(micros)),
        View::DateTime(micros) | View::Timestamp(micros) => Some(Value::DateTime(micros)),
        _ => None,
    };
    let word = match ty.temporal_kind() {
        Some("date") => "DATE",
        Some("time") => "TIME",
        Some(_) => "DATETIME/TIMESTAMP",
        None if ty.decimal_digits().is_some() => "DECIMAL",
        None if ty.is_floating() => "DOUBLE",
        None => "INTEGER",
    };
    let is_number = !ty.is_temporal();
    let found = match (json.view(), moment) {
        (_, Some(moment)) if ty.is_temporal() => return convert(ty, &moment, mode),
        (View::String(text), _) if ty.is_temporal() => return convert_text(ty, text, mode),
        (View::Bool(value), _) if is_number => Ok(Value::Int(value.into())),
        (View::Int(number), _) if is_number => Ok(Value::Int(number)),
        (View::UInt(number), _) if is_number => Ok(Value::UInt(number)),
        (View::Double(number), _) if is_number => Ok(Value::Double(number)),
        (View::Decimal { unscaled, scale }, _) if is_number => {
            Ok(Value::Decimal { unscaled, scale })
        }
        (View::WideDecimal { unscaled, scale }, _) if is_number => {
            Ok(Value::WideDecimal { unscaled, scale })
        }
        (View::String(_), _) if is_number => match word {
            "DECIMAL" => said(to_decimal(json), |(unscaled, scale)| Value::Decimal {
                unscaled,
                scale,
            }),
            "DOUBLE" => said(to_double(json), Value::Double),
            _ => said(to_integer(json), |unscaled| Value::Decimal {
                unscaled,
                scale: 0,
            }),
        },
        _ => Err(CoercionProblem::Invalid),
    };
    match found {
        Ok(value) => convert(ty, &value, mode),
        Err(CoercionProblem::Invalid) => {
            Converted::bad(zero_value(ty), ColumnProblem::JsonCast { to: word })
        }
        Err(_) => Converted::bad(zero_value(ty), ColumnProblem::OutOfRange),
    }
}

/// What a string says.
fn said<T>(coerced: Coerced<T>, value: impl FnOnce(T) -> Value) -> Result<Value, CoercionProblem> {
    match coerced.problem {
        None => Ok(value(coerced.value)),
        Some(problem) => Err(problem),
    }
}

pub(super) fn of_text(text: &str) -> Converted {
    let problem = match text::read(text) {
        Ok(document) => return Converted::fine(Value::Json(document.into_bytes())),
        Err(TextProblem::Syntax { message, position }) => {
            ColumnProblem::JsonText { message, position }
        }
        Err(TextProblem::Limit(error)) => beyond(&error),
    };
    refused(problem)
}

/// Numbers, dates and byte strings have to be made JSON values by a function.
pub(super) fn of_value(value: &Value) -> Converted {
    match value {
        Value::Json(_) => Converted::fine(value.clone()),
        Value::Text(text) => of_text(text),
        Value::Bytes(_) => refused(beyond(&JsonError::CharacterSet {
            character_set: "binary".to_string(),
        })),
        _ => refused(ColumnProblem::JsonText {
            message: "not a JSON text, may need CAST",
            position: 0,
        }),
    }
}

fn beyond(error: &JsonError) -> ColumnProblem {
    ColumnProblem::Json {
        code: error.code(),
        message: error.to_string(),
    }
}

fn refused(problem: ColumnProblem) -> Converted {
    Converted::bad(Value::Json(Document::null().into_bytes()), problem)
}
