//! Values on their way into columns: MySQL's assignment rules.
//!
//! Each conversion yields the nearest value of the column's type and, if that is not quite the value given, a problem.
//! In strict mode the problem is an error; in lenient mode it is a warning and the nearest value is stored. Lost digits
//! after a DECIMAL's point, lost trailing white space and the time of day lost by a DATE are never errors.
//!
//! What is no date becomes 0000-00-00 in lenient mode. Without NO_ZERO_IN_DATE MySQL also has dates of which only the
//! month or the day is zero, as 2024-00-10; these are not to be had here and are refused in every mode. MySQL keeps the
//! sign of a zero in FLOAT and DOUBLE. Here zero has none: keys are equal where values are, and what an index shows in
//! place of a row is to be what the row shows.
//!
//! | file | into columns of |
//! |---|---|
//! | [`number`] | integers, DECIMAL, FLOAT, DOUBLE and YEAR |
//! | [`temporal`] | DATE, TIME, DATETIME and TIMESTAMP |
//! | [`text`] | characters and bytes |
//! | [`enumeration`] | ENUM |
//! | [`set`] | SET |
//! | [`bit`] | BIT |
//! | [`document`] | JSON |
//! | [`altered`] | of another type, by ALTER TABLE |

mod altered;
mod bit;
mod document;
mod enumeration;
mod number;
mod set;
mod temporal;
mod text;

use crate::column_type::ColumnType;
use crate::error::ColumnProblem;
use crate::json::{Document, Json};
use crate::number::Wide;
use crate::temporal::{TimeZone, ZERO_DATE, ZERO_DATETIME};
use crate::value::Value;

pub use altered::assign_altered;

/// How values are treated that do not fit, and those of which the session decides whether they are values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// A value that does not fit is an error. Otherwise the nearest value is stored and the problem is a warning.
    pub strict: bool,
    /// 0000-00-00 is a value like others: no NO_ZERO_DATE.
    pub zero_date: bool,
    /// 2024-00-10 would be one: no NO_ZERO_IN_DATE.
    pub zero_in_date: bool,
    /// The day, counted from 1970-01-01, on which a TIME is a moment for a column of dates. `None`: it is none.
    pub today: Option<i32>,
    /// The zone of values for TIMESTAMP columns, whose range is one of UTC.
    pub time_zone: TimeZone,
}

impl Mode {
    /// MySQL's default.
    pub const STRICT: Mode = Mode {
        strict: true,
        zero_date: false,
        zero_in_date: false,
        today: None,
        time_zone: TimeZone::UTC,
    };
    /// That of INSERT IGNORE.
    pub const LENIENT: Mode = Mode {
        strict: false,
        ..Mode::STRICT
    };
}

/// The most characters of a value that an error message shows.
const MAX_SHOWN_CHARACTERS: usize = 64;

/// A converted value, with what was wrong.
struct Converted {
    value: Value,
    problem: Option<ColumnProblem>,
}

impl Converted {
    fn fine(value: Value) -> Converted {
        Converted {
            value,
            problem: None,
        }
    }

    fn bad(value: Value, problem: ColumnProblem) -> Converted {
        Converted {
            value,
            problem: Some(problem),
        }
    }

    fn rounded(value: Value) -> Converted {
        Converted::bad(value, ColumnProblem::Rounded)
    }
}

/// Converts any value to the type as MySQL assigns it to a column that is not NULL.
///
/// The second half of the result is a problem that did not stop the conversion: in lenient mode any, in strict mode
/// notes such as a cut fraction.
///
/// # Errors
/// The problem, in strict mode.
pub fn assign(
    ty: &ColumnType,
    value: &Value,
    mode: Mode,
) -> Result<(Value, Option<ColumnProblem>), ColumnProblem> {
    let converted = match value {
        Value::Null => Converted::bad(zero_value(ty), ColumnProblem::Null),
        value => convert(ty, value, mode),
    };
    done(converted, mode)
}

fn done(converted: Converted, mode: Mode) -> Result<(Value, Option<ColumnProblem>), ColumnProblem> {
    match judged(&converted, mode) {
        Some(problem) if problem.is_refused() => Err(problem),
        Some(problem) if mode.strict && !problem.is_note() => Err(problem),
        problem => Ok((converted.value, problem)),
    }
}

/// What is wrong with a value as the session sees it: about zero dates it decides.
fn judged(converted: &Converted, mode: Mode) -> Option<ColumnProblem> {
    match &converted.problem {
        // Stored as 0000-00-00, unless it would be a value.
        Some(ColumnProblem::ZeroInDate { kind, value }) if !mode.zero_in_date => {
            Some(ColumnProblem::IncorrectTemporal {
                kind,
                value: value.clone(),
            })
        }
        Some(problem) => Some(problem.clone()),
        None if mode.zero_date => None,
        None => match &converted.value {
            Value::Date(ZERO_DATE) => Some(ColumnProblem::TemporalOutOfRange {
                kind: "date",
                value: "0000-00-00".to_string(),
            }),
            Value::DateTime(ZERO_DATETIME) | Value::Timestamp(ZERO_DATETIME) => {
                Some(ColumnProblem::TemporalOutOfRange {
                    kind: "datetime",
                    value: "0000-00-00 00:00:00".to_string(),
                })
            }
            _ => None,
        },
    }
}

/// [`assign`] for text such as a field of LOAD DATA, into a value whose memory is used again.
///
/// # Errors
/// The problem, in strict mode.
pub fn assign_text(
    ty: &ColumnType,
    text: &str,
    mode: Mode,
    into: &mut Value,
) -> Result<Option<ColumnProblem>, ColumnProblem> {
    let plain = match ty {
        ColumnType::Date => temporal::plain_date(text),
        ty => number::plain(ty, text),
    };
    if let Some(value) = plain {
        *into = value;
        return Ok(None);
    }
    if let Some(kept) = text::fitting(ty, text) {
        match into {
            Value::Text(memory) => {
                memory.clear();
                memory.push_str(kept);
            }
            other => *other = Value::Text(kept.to_string()),
        }
        return Ok(None);
    }
    let converted = match ty.bit_length() {
        Some(length) => bit::of_bytes(length, text.as_bytes(), mode),
        None => convert_text(ty, text, mode),
    };
    match judged(&converted, mode) {
        Some(problem) if problem.is_refused() => Err(problem),
        Some(problem) if mode.strict && !problem.is_note() => Err(problem),
        problem => {
            *into = converted.value;
            Ok(problem)
        }
    }
}

/// The moment as a value of the type, cut to its digits; NULL for types without a clock.
pub fn current_timestamp(ty: &ColumnType, now_micros: i64) -> Value {
    let cut = |fsp: u8| {
        let unit = 10i64.pow(6 - u32::from(fsp.min(6)));
        now_micros - now_micros.rem_euclid(unit)
    };
    match ty {
        ColumnType::Timestamp { fsp } => Value::Timestamp(cut(*fsp)),
        ColumnType::DateTime { fsp } => Value::DateTime(cut(*fsp)),
        _ => Value::Null,
    }
}

/// What a NOT NULL column holds when lenient mode was given nothing for it.
pub fn zero_value(ty: &ColumnType) -> Value {
    match ty {
        ColumnType::Decimal { scale, .. } if ty.is_wide_decimal() => Value::WideDecimal {
            unscaled: Wide::ZERO,
            scale: *scale,
        },
        ColumnType::Decimal { scale, .. } => Value::Decimal {
            unscaled: 0,
            scale: *scale,
        },
        ColumnType::Float { .. } => Value::Float(0.0),
        ColumnType::Double { .. } => Value::Double(0.0),
        ColumnType::Char { .. } | ColumnType::VarChar { .. } | ColumnType::Text { .. } => {
            Value::Text(String::new())
        }
        ColumnType::Binary { length } => Value::Bytes(vec![0; *length as usize]),
        ColumnType::VarBinary { .. } | ColumnType::Blob { .. } => Value::Bytes(Vec::new()),
        ColumnType::Date => Value::Date(ZERO_DATE),
        ColumnType::Time { .. } => Value::Time(0),
        ColumnType::DateTime { .. } => Value::DateTime(ZERO_DATETIME),
        ColumnType::Timestamp { .. } => Value::Timestamp(ZERO_DATETIME),
        ColumnType::Year => Value::Year(0),
        // The first label, as MySQL's implicit default.
        ColumnType::Enum { .. } => Value::Enum(1),
        ColumnType::Set { .. } => Value::Set(0),
        ColumnType::Json => Value::Json(Document::null().into_bytes()),
        ColumnType::Bool
        | ColumnType::TinyInt { .. }
        | ColumnType::SmallInt { .. }
        | ColumnType::MediumInt { .. }
        | ColumnType::Int { .. }
        | ColumnType::BigInt { .. }
        | ColumnType::Bit { .. } => match ty.is_unsigned() {
            true => Value::UInt(0),
            false => Value::Int(0),
        },
    }
}

/// Whether a text names a label of an ENUM or members of a SET. The number of a label names none.
pub fn names_labels(ty: &ColumnType, text: &str) -> bool {
    match ty {
        ColumnType::Enum { labels, collation } => {
            enumeration::position(labels, *collation, text).is_some()
        }
        ColumnType::Set { labels, collation } => set::read(labels, *collation, text).1,
        _ => false,
    }
}

fn convert(ty: &ColumnType, value: &Value, mode: Mode) -> Converted {
    if let Value::Json(bytes) = value
        && !(ty.is_long() || ty.is_character() || ty.is_binary() || ty.has_labels())
        && ty.bit_length().is_none()
    {
        let json = Json::new(bytes).unwrap_or(Json::NULL);
        return document::to_column(ty, json, mode);
    }
    if let Some(length) = ty.bit_length() {
        return match value {
            Value::Text(text) => bit::of_bytes(length, text.as_bytes(), mode),
            Value::Bytes(bytes) => bit::of_bytes(length, bytes, mode),
            Value::Enum(_) | Value::Set(_) => bit::of_number(length, value, mode),
            number if number.is_number() => bit::of_number(length, number, mode),
            text => bit::of_bytes(length, text.to_string().as_bytes(), mode),
        };
    }
    match (value, ty) {
        (value, ColumnType::Json) => document::of_value(value),
        (Value::Text(text), _) => convert_text(ty, text, mode),
        (Value::Bytes(bytes), ty) if ty.is_binary() => text::of_bytes(ty, bytes),
        (Value::Bytes(bytes), _) => match text::of_encoded(ty, bytes) {
            (text, None) => convert_text(ty, &text, mode),
            (valid, problem) => Converted {
                problem,
                ..convert_text(ty, &valid, mode)
            },
        },
        (value, ty) if ty.is_character() || ty.is_binary() => {
            let text = value.to_string();
            match text::rounded(ty, value, &text) {
                Some(rounded) => convert_text(ty, &rounded, mode),
                None => convert_text(ty, &text, mode),
            }
        }
        (Value::Json(_), ty) => convert_text(ty, &value.to_string(), mode),
        // A column had it: it is not checked again.
        (Value::Enum(0), ColumnType::Enum { .. }) => Converted::fine(Value::Enum(0)),
        (Value::Enum(number), ColumnType::Enum { labels, .. }) => {
            enumeration::of_number(labels.len(), i128::from(*number))
        }
        (Value::Set(bits), ColumnType::Set { labels, .. }) => {
            set::of_number(labels.len(), i128::from(*bits))
        }
        (Value::Date(_) | Value::Time(_) | Value::DateTime(_) | Value::Timestamp(_), _) => {
            temporal::of_temporal(ty, value, mode)
        }
        (value, ColumnType::Enum { labels, .. }) => {
            enumeration::of_number(labels.len(), number::parts(value).whole)
        }
        (value, ColumnType::Set { labels, .. }) => {
            set::of_number(labels.len(), number::parts(value).whole)
        }
        (value, ty) if ty.is_temporal() => temporal::of_number(ty, value, mode),
        _ => number::of_value(ty, value),
    }
}

/// As much of a text as messages show.
fn show(text: &str) -> String {
    text.chars().take(MAX_SHOWN_CHARACTERS).collect()
}

fn convert_text(ty: &ColumnType, text: &str, mode: Mode) -> Converted {
    match ty {
        ColumnType::Char { .. } | ColumnType::VarChar { .. } | ColumnType::Text { .. } => {
            text::of_text(ty, text)
        }
        ColumnType::Binary { .. } | ColumnType::VarBinary { .. } | ColumnType::Blob { .. } => {
            text::of_bytes(ty, text.as_bytes())
        }
        ColumnType::Enum { labels, collation } => enumeration::of_text(labels, *collation, text),
        ColumnType::Set { labels, collation } => set::of_text(labels, *collation, text),
        ColumnType::Json => document::of_text(text),
        ColumnType::Date
        | ColumnType::Time { .. }
        | ColumnType::DateTime { .. }
        | ColumnType::Timestamp { .. } => temporal::of_text(ty, text, mode),
        ColumnType::Bool
        | ColumnType::TinyInt { .. }
        | ColumnType::SmallInt { .. }
        | ColumnType::MediumInt { .. }
        | ColumnType::Int { .. }
        | ColumnType::BigInt { .. }
        | ColumnType::Bit { .. }
        | ColumnType::Decimal { .. }
        | ColumnType::Float { .. }
        | ColumnType::Double { .. }
        | ColumnType::Year => number::of_text(ty, text),
    }
}
