//! Values on their way into columns of JSON, and JSON values on their way into others.

use super::{Converted, Mode, convert, convert_text, zero_value};
use crate::column_type::ColumnType;
use crate::error::ColumnProblem;
use crate::json::functions::coerce::{
    Coerced, CoercionProblem, is_date_alone, to_date, to_datetime, to_decimal, to_double,
    to_integer, to_time,
};
use crate::json::text::{self, TextProblem};
use crate::json::{Document, Json, JsonError, View};
use crate::value::Value;

/// A JSON value for a column of numbers, dates or times, which it is as in a cast. Strings and labels take its text.
///
/// ```text
///   5, 5.5, true      the number
///   "5.5"             the number that the string says; into an integer only a whole one
///   "2024-02-29"      the date, and one that a document has; into a DATETIME only with a time
///   "10:20:30"        the time, and one that a document has, without what the column has no digits for
///   null, [..], {..}  3156
/// ```
///
/// Where the value is wrong, lenient mode stores what there is of it, as the 5 of `"5 apples"`.
pub(super) fn to_column(ty: &ColumnType, json: Json<'_>, mode: Mode) -> Converted {
    let (word, found) = match ty {
        ColumnType::Date => ("DATE", moment(to_date(json), Value::Date)),
        ColumnType::Time { fsp } => {
            let cut = |micros: i64| Value::Time(micros / fraction_unit(*fsp) * fraction_unit(*fsp));
            ("TIME", moment(to_time(json), cut))
        }
        ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => {
            if is_date_alone(json) {
                return date_alone(ty, json);
            }
            (
                "DATETIME/TIMESTAMP",
                moment(to_datetime(json), Value::DateTime),
            )
        }
        ColumnType::Decimal { .. } => ("DECIMAL", decimal(json)),
        ColumnType::Float { .. } | ColumnType::Double { .. } => ("DOUBLE", double(json)),
        _ => ("INTEGER", integer(ty, json)),
    };
    match (found.problem, json.view()) {
        // It may have an offset from UTC.
        (None, View::String(text)) if ty.is_moment() => convert_text(ty, text, mode),
        (None, _) => convert(ty, &found.value, mode),
        (Some(CoercionProblem::Invalid), _) => Converted::bad(
            match found.value {
                Value::Null => zero_value(ty),
                value => convert(ty, &value, mode).value,
            },
            ColumnProblem::JsonCast { to: word },
        ),
        (Some(_), _) => Converted::bad(zero_value(ty), ColumnProblem::OutOfRange),
    }
}

/// Microseconds of the last digit of a second's fraction.
fn fraction_unit(fsp: u8) -> i64 {
    10i64.pow(6 - u32::from(fsp.min(6)))
}

fn moment<T>(coerced: Coerced<Option<T>>, value: impl FnOnce(T) -> Value) -> Coerced<Value> {
    coerced.map(|moment| moment.map_or(Value::Null, value))
}

/// A string that is a date is no moment of a column, though one of a cast.
fn date_alone(ty: &ColumnType, json: Json<'_>) -> Converted {
    let date = to_date(json).value.map_or(Value::Null, Value::Date);
    let problem = ColumnProblem::IncorrectTemporal {
        kind: ty.temporal_kind().unwrap_or("datetime"),
        value: date.to_string(),
    };
    Converted::bad(zero_value(ty), problem)
}

fn decimal(json: Json<'_>) -> Coerced<Value> {
    match json.view() {
        View::String(_) => {
            to_decimal(json).map(|(unscaled, scale)| Value::Decimal { unscaled, scale })
        }
        _ => number(json),
    }
}

fn double(json: Json<'_>) -> Coerced<Value> {
    match json.view() {
        View::String(_) => to_double(json).map(Value::Double),
        _ => number(json),
    }
}

fn integer(ty: &ColumnType, json: Json<'_>) -> Coerced<Value> {
    let whole = |unscaled| Value::Decimal { unscaled, scale: 0 };
    match json.view() {
        View::String(_) => to_integer(json).map(whole),
        // Unlike another DOUBLE, that of a document is rounded on its way to a year.
        View::Double(_) if ty.is_year() => to_integer(json).map(whole),
        _ => number(json),
    }
}

/// A number of the document as it is.
fn number(json: Json<'_>) -> Coerced<Value> {
    let number = match json.view() {
        View::Bool(value) => Value::Int(value.into()),
        View::Int(number) => Value::Int(number),
        View::UInt(number) => Value::UInt(number),
        View::Double(number) => Value::Double(number),
        View::Decimal { unscaled, scale } => Value::Decimal { unscaled, scale },
        View::WideDecimal { unscaled, scale } => Value::WideDecimal { unscaled, scale },
        _ => {
            let problem = Some(CoercionProblem::Invalid);
            return Coerced {
                value: Value::Null,
                problem,
            };
        }
    };
    Coerced {
        value: number,
        problem: None,
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
