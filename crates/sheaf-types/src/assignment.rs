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

use crate::column_type::ColumnType;
use crate::error::ColumnProblem;
use crate::number::{
    NumberText, checked_power_of_ten, decimal_to_double, rescale, rescale_noting_loss,
};
use crate::temporal::{
    self, DAY, MAX_DATE, MAX_TIME, SECOND, ZERO_DATE, ZERO_DATETIME, year_of_number,
};
use crate::temporal::{
    NotTemporal, datetime_from_number, read_datetime, read_time, round_datetime, round_time,
    time_from_number,
};
use crate::text::collation::Collation;
use crate::text::is_space;
use crate::value::Value;

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
}

impl Mode {
    /// MySQL's default.
    pub const STRICT: Mode = Mode {
        strict: true,
        zero_date: false,
        zero_in_date: false,
        today: None,
    };
    /// That of INSERT IGNORE.
    pub const LENIENT: Mode = Mode {
        strict: false,
        ..Mode::STRICT
    };
}

/// First and last TIMESTAMP: 1970-01-01 00:00:01 and 2038-01-19 03:14:07.999999 UTC, in microseconds.
const TIMESTAMP_RANGE: std::ops::RangeInclusive<i64> = SECOND..=i32::MAX as i64 * SECOND + 999_999;

/// A year that is written in full.
const YEAR_CHARACTERS: usize = 4;

/// The most characters of a value that an error message shows.
const MAX_SHOWN_CHARACTERS: usize = 64;

/// A converted value, with what was wrong.
struct Converted {
    value: Value,
    problem: Option<ColumnProblem>,
    /// The problem is no error even in strict mode.
    note: bool,
}

impl Converted {
    fn fine(value: Value) -> Converted {
        Converted {
            value,
            problem: None,
            note: false,
        }
    }

    fn bad(value: Value, problem: ColumnProblem) -> Converted {
        Converted {
            value,
            problem: Some(problem),
            note: false,
        }
    }

    fn note(value: Value) -> Converted {
        Converted {
            value,
            problem: Some(ColumnProblem::Truncated),
            note: true,
        }
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
    let note = converted.note;
    match judged(&converted, mode) {
        Some(problem @ ColumnProblem::ZeroInDate { .. }) => Err(problem),
        Some(problem) if mode.strict && !note => Err(problem),
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
    if let Some(value) = plain_number(ty, text) {
        *into = value;
        return Ok(None);
    }
    if let Some(kept) = fitting_text(ty, text) {
        match into {
            Value::Text(memory) => {
                memory.clear();
                memory.push_str(kept);
            }
            other => *other = Value::Text(kept.to_string()),
        }
        return Ok(None);
    }
    let converted = convert_text(ty, text);
    let note = converted.note;
    match judged(&converted, mode) {
        Some(problem @ ColumnProblem::ZeroInDate { .. }) => Err(problem),
        Some(problem) if mode.strict && !note => Err(problem),
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
        integer if integer.is_unsigned() => Value::UInt(0),
        _ => Value::Int(0),
    }
}

/// Digits, an optional sign and for DECIMALs a point, in a number that fits: the short way of nearly all fields.
fn plain_number(ty: &ColumnType, text: &str) -> Option<Value> {
    let bytes = text.as_bytes();
    let (negative, digits) = match bytes.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, bytes),
    };
    // 18 digits fit 64 bits.
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    match ty {
        ColumnType::Decimal {
            precision,
            scale,
            unsigned,
        } if *precision <= 18 && !*unsigned => {
            let (mut value, mut decimals, mut point) = (0i64, 0, false);
            for byte in digits {
                match byte {
                    b'0'..=b'9' => {
                        value = value * 10 + i64::from(byte - b'0');
                        decimals += u8::from(point);
                    }
                    b'.' if !point => point = true,
                    _ => return None,
                }
            }
            if decimals > *scale || digits == b"." {
                return None;
            }
            let value = value.checked_mul(10i64.pow(u32::from(*scale - decimals)))?;
            if value >= 10i64.pow(u32::from(*precision)) {
                return None;
            }
            let unscaled = i128::from(if negative { -value } else { value });
            Some(Value::Decimal {
                unscaled,
                scale: *scale,
            })
        }
        ty if ty.is_integer() => {
            if !digits.iter().all(u8::is_ascii_digit) {
                return None;
            }
            let size = digits
                .iter()
                .fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
            let value = if negative { -size } else { size };
            integer_in_range(ty, i128::from(value))
        }
        ColumnType::Date => {
            // YYYY-MM-DD and nothing else.
            let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = bytes else {
                return None;
            };
            let digits = [y1, y2, y3, y4, m1, m2, d1, d2];
            if !digits.iter().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let [y1, y2, y3, y4, m1, m2, d1, d2] = digits.map(|digit| u32::from(digit - b'0'));
            let year = (y1 * 1000 + y2 * 100 + y3 * 10 + y4) as i32;
            let (month, day) = (m1 * 10 + m2, d1 * 10 + d2);
            let valid = (1..=12).contains(&month)
                && (1..=temporal::days_in_month(year, month)).contains(&day);
            valid.then(|| Value::Date(temporal::days_from_civil(year, month, day)))
        }
        _ => None,
    }
}

/// Text that a character column takes as it is (CHAR without its trailing spaces).
fn fitting_text<'t>(ty: &ColumnType, text: &'t str) -> Option<&'t str> {
    let (kept, limit) = match ty {
        ColumnType::Char { length, .. } => (text.trim_end_matches(' '), *length as usize),
        ColumnType::VarChar { length, .. } => (text, *length as usize),
        ColumnType::Text { max_bytes, .. } => {
            return (text.len() as u64 <= *max_bytes).then_some(text);
        }
        _ => return None,
    };
    // No text has more characters than bytes.
    (kept.len() <= limit || kept.chars().count() <= limit).then_some(kept)
}

fn convert(ty: &ColumnType, value: &Value, mode: Mode) -> Converted {
    match (value, ty) {
        (Value::Text(text), _) => convert_text(ty, text),
        (Value::Bytes(bytes), ty) if ty.is_binary() => convert_bytes(ty, bytes),
        (Value::Bytes(bytes), _) => match std::str::from_utf8(bytes) {
            Ok(text) => convert_text(ty, text),
            Err(error) => {
                let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned();
                let shown: String = bytes[error.valid_up_to()..]
                    .iter()
                    .take(6)
                    .map(|byte| format!("\\x{byte:02X}"))
                    .collect();
                let problem = ColumnProblem::IncorrectValue {
                    kind: "string",
                    value: shown,
                };
                Converted {
                    problem: Some(problem),
                    note: false,
                    ..convert_text(ty, &valid)
                }
            }
        },
        (value, ty) if ty.is_character() || ty.is_binary() => convert_text(ty, &value.to_string()),
        (Value::Enum(number), ColumnType::Enum { labels, .. }) => {
            enum_number(labels.len(), i128::from(*number))
        }
        (Value::Date(_) | Value::Time(_) | Value::DateTime(_) | Value::Timestamp(_), _) => {
            convert_temporal(ty, value, mode)
        }
        _ => convert_number(ty, value),
    }
}

fn show(text: &str) -> String {
    text.chars().take(MAX_SHOWN_CHARACTERS).collect()
}

fn convert_text(ty: &ColumnType, text: &str) -> Converted {
    let incorrect = |kind| ColumnProblem::IncorrectValue {
        kind,
        value: show(text),
    };
    match ty {
        ColumnType::Char { .. } | ColumnType::VarChar { .. } | ColumnType::Text { .. } => {
            character_text(ty, text)
        }
        ColumnType::Binary { .. } | ColumnType::VarBinary { .. } | ColumnType::Blob { .. } => {
            convert_bytes(ty, text.as_bytes())
        }
        ColumnType::Enum { labels, collation } => enum_text(labels, *collation, text),
        ColumnType::Date | ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => {
            let digits = if *ty == ColumnType::Date {
                6
            } else {
                ty.fraction_digits()
            };
            let read = read_datetime(text).and_then(|read| Ok((read.micros(digits)?, read)));
            match read {
                Ok((micros, read)) => {
                    let has_time = micros.rem_euclid(DAY) != 0;
                    let converted = point_in_time(ty, micros, has_time);
                    cut_behind(ty, converted, read.trailing, text)
                }
                Err(why) => bad_temporal(ty, text, why),
            }
        }
        ColumnType::Time { fsp } => match read_time(text) {
            Ok(read) if read.is_cut => {
                let value = Value::Time(read.micros(0));
                Converted::bad(value, temporal_out_of_range(ty, text))
            }
            Ok(read) => {
                let converted = Converted::fine(Value::Time(read.micros(*fsp)));
                cut_behind(ty, converted, read.trailing, text)
            }
            Err(why) => bad_temporal(ty, text, why),
        },
        ColumnType::Decimal { scale, .. } => match NumberText::parse(text) {
            None => Converted::bad(zero_value(ty), incorrect("decimal")),
            Some(number) => {
                let converted = match number.scaled(*scale) {
                    Ok(_) if ty.is_unsigned() && number.negative && !number.is_zero() => {
                        below_zero(ty)
                    }
                    Ok((unscaled, inexact)) => decimal(ty, unscaled, inexact),
                    Err(_) => decimal(
                        ty,
                        if number.negative {
                            i128::MIN
                        } else {
                            i128::MAX
                        },
                        false,
                    ),
                };
                with_trailing(converted, number.trailing)
            }
        },
        ColumnType::Float { .. } | ColumnType::Double { .. } => match NumberText::parse(text) {
            None if matches!(ty, ColumnType::Float { .. }) => {
                Converted::bad(zero_value(ty), incorrect("FLOAT"))
            }
            None => Converted::bad(zero_value(ty), incorrect("DOUBLE")),
            Some(number) => with_trailing(float(ty, number.to_f64()), number.trailing),
        },
        ColumnType::Year => match NumberText::parse(text) {
            None => Converted::bad(Value::Year(0), incorrect("year")),
            Some(number) => {
                let value = number.scaled(0).map_or(i128::MAX, |(value, _)| value);
                // As text zero is a two-digit year unless it has four characters, as a number it is year zero.
                let converted = if value == 0 && text.len() != YEAR_CHARACTERS {
                    Converted::fine(Value::Year(2000))
                } else {
                    year(value)
                };
                with_trailing(converted, number.trailing)
            }
        },
        _ => match NumberText::parse(text) {
            None => Converted::bad(zero_value(ty), incorrect("integer")),
            Some(number) => {
                let limit = if number.negative {
                    i128::MIN
                } else {
                    i128::MAX
                };
                let value = number.scaled(0).map_or(limit, |(value, _)| value);
                with_trailing(integer(ty, value), number.trailing)
            }
        },
    }
}

/// Text after a number is cut off, unless there is worse.
fn with_trailing(converted: Converted, trailing: bool) -> Converted {
    match converted.problem {
        Some(ColumnProblem::OutOfRange) => converted,
        _ if trailing => Converted::bad(converted.value, ColumnProblem::Truncated),
        _ => converted,
    }
}

fn character_text(ty: &ColumnType, text: &str) -> Converted {
    if let Some(kept) = fitting_text(ty, text) {
        return Converted::fine(Value::Text(kept.to_string()));
    }
    let end = match ty {
        ColumnType::Char { length, .. } | ColumnType::VarChar { length, .. } => text
            .char_indices()
            .nth(*length as usize)
            .map_or(text.len(), |(at, _)| at),
        _ => {
            let limit = usize::try_from(ty.max_bytes().unwrap_or(0)).unwrap_or(usize::MAX);
            text.floor_char_boundary(limit)
        }
    };
    let (kept, cut) = text.split_at(end);
    let value = Value::Text(kept.to_string());
    match cut.bytes().all(is_space) {
        true => Converted::note(value),
        false => Converted::bad(value, ColumnProblem::TooLong),
    }
}

fn convert_bytes(ty: &ColumnType, bytes: &[u8]) -> Converted {
    let limit = usize::try_from(ty.max_bytes().unwrap_or(0)).unwrap_or(usize::MAX);
    let mut kept = bytes[..bytes.len().min(limit)].to_vec();
    if let ColumnType::Binary { length } = ty {
        kept.resize(*length as usize, 0);
    }
    match bytes.len() > limit {
        true => Converted::bad(Value::Bytes(kept), ColumnProblem::TooLong),
        false => Converted::fine(Value::Bytes(kept)),
    }
}

fn enum_text(labels: &[String], collation: Collation, text: &str) -> Converted {
    let wanted = text.trim_end_matches(' ');
    if let Some(position) = labels.iter().position(|label| {
        collation
            .compare(label.trim_end_matches(' '), wanted)
            .is_eq()
    }) {
        return Converted::fine(Value::Enum(position as u16 + 1));
    }
    match wanted.trim_start_matches(' ').parse::<i128>() {
        Ok(number) if number > 0 => enum_number(labels.len(), number),
        _ => Converted::bad(Value::Enum(0), ColumnProblem::Truncated),
    }
}

fn enum_number(labels: usize, number: i128) -> Converted {
    match u16::try_from(number) {
        Ok(number) if number > 0 && usize::from(number) <= labels => {
            Converted::fine(Value::Enum(number))
        }
        _ => Converted::bad(Value::Enum(0), ColumnProblem::Truncated),
    }
}

fn integer_in_range(ty: &ColumnType, value: i128) -> Option<Value> {
    let (least, greatest) = ty.integer_range()?;
    (least..=greatest)
        .contains(&value)
        .then(|| match ty.is_unsigned() {
            true => Value::UInt(value as u64),
            false => Value::Int(value as i64),
        })
}

fn integer(ty: &ColumnType, value: i128) -> Converted {
    match integer_in_range(ty, value) {
        Some(value) => Converted::fine(value),
        None => {
            let (least, greatest) = ty.integer_range().unwrap_or((0, 0));
            let nearest = integer_in_range(ty, value.clamp(least, greatest)).unwrap_or(Value::Null);
            Converted::bad(nearest, ColumnProblem::OutOfRange)
        }
    }
}

fn year(value: i128) -> Converted {
    let number = i64::try_from(value).ok();
    match number.and_then(year_of_number) {
        Some(year) => Converted::fine(Value::Year(year)),
        None => Converted::bad(Value::Year(0), ColumnProblem::OutOfRange),
    }
}

/// `unscaled` is at the column's scale.
fn decimal(ty: &ColumnType, unscaled: i128, inexact: bool) -> Converted {
    let ColumnType::Decimal {
        precision,
        scale,
        unsigned,
    } = ty
    else {
        return Converted::bad(zero_value(ty), ColumnProblem::OutOfRange);
    };
    let greatest = checked_power_of_ten(*precision).map_or(i128::MAX, |power| power - 1);
    let least = if *unsigned { 0 } else { -greatest };
    let value = Value::Decimal {
        unscaled: unscaled.clamp(least, greatest),
        scale: *scale,
    };
    if !(least..=greatest).contains(&unscaled) {
        return Converted::bad(value, ColumnProblem::OutOfRange);
    }
    if inexact {
        Converted::note(value)
    } else {
        Converted::fine(value)
    }
}

fn float(ty: &ColumnType, value: f64) -> Converted {
    let single = matches!(ty, ColumnType::Float { .. });
    let greatest = if single {
        f64::from(f32::MAX)
    } else {
        f64::MAX
    };
    let least = if ty.is_unsigned() { 0.0 } else { -greatest };
    let fits = value >= least && value <= greatest;
    let nearest = if value.is_nan() {
        0.0
    } else {
        value.clamp(least, greatest)
    };
    // Adding zero makes 0.0 of -0.0.
    let nearest = if single {
        Value::Float(nearest as f32 + 0.0)
    } else {
        Value::Double(nearest + 0.0)
    };
    if fits {
        Converted::fine(nearest)
    } else {
        Converted::bad(nearest, ColumnProblem::OutOfRange)
    }
}

/// A number below zero for a type that has none, even if it would be rounded to zero.
fn below_zero(ty: &ColumnType) -> Converted {
    Converted::bad(zero_value(ty), ColumnProblem::OutOfRange)
}

fn convert_number(ty: &ColumnType, value: &Value) -> Converted {
    let is_exact = |ty: &ColumnType| ty.is_integer() || matches!(ty, ColumnType::Decimal { .. });
    match ty {
        // Only a double is rounded before it is looked at, on its way to an integer.
        ty if ty.is_unsigned() && is_exact(ty) && is_decimal_below_zero(value) => below_zero(ty),
        ColumnType::Decimal { unsigned: true, .. } if to_f64(value) < 0.0 => below_zero(ty),
        ColumnType::Decimal { scale, .. } => {
            let scaled = match value {
                Value::Decimal {
                    unscaled,
                    scale: from,
                } => rescale_noting_loss(*unscaled, *from, *scale),
                Value::Float(v) => return float_to_decimal(ty, &v.to_string(), *v < 0.0, *scale),
                Value::Double(v) => return float_to_decimal(ty, &v.to_string(), *v < 0.0, *scale),
                other => rescale_noting_loss(other.as_i128().unwrap_or(0), 0, *scale),
            };
            match scaled {
                Some((unscaled, inexact)) => decimal(ty, unscaled, inexact),
                None => {
                    let negative = matches!(
                        value,
                        Value::Decimal { unscaled: ..0, .. } | Value::Int(..0)
                    );
                    decimal(ty, if negative { i128::MIN } else { i128::MAX }, false)
                }
            }
        }
        ColumnType::Float { .. } | ColumnType::Double { .. } => float(ty, to_f64(value)),
        ColumnType::Year => match value {
            value if to_f64(value) < 0.0 => below_zero(ty),
            Value::Float(_) | Value::Double(_) => year(to_f64(value) as i128),
            value => year(to_integer(value)),
        },
        ColumnType::Enum { labels, .. } => enum_number(labels.len(), whole_and_micros(value).0),
        ColumnType::Date | ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => {
            let (number, fraction) = whole_and_micros(value);
            match datetime_from_number(number) {
                Ok((micros, _)) => {
                    let micros = match ty {
                        ColumnType::Date => micros,
                        _ => micros + fraction,
                    };
                    let point = point_in_time(ty, micros, micros.rem_euclid(DAY) != 0);
                    match fraction != 0 && *ty == ColumnType::Date {
                        true => Converted {
                            value: point.value,
                            ..bad_temporal(ty, &value.to_string(), NotTemporal::Text)
                        },
                        false => point,
                    }
                }
                Err(why) => bad_temporal(ty, &value.to_string(), why),
            }
        }
        ColumnType::Time { fsp } => match time_from_number(whole_and_micros(value).0) {
            Ok(micros) => {
                let micros = micros + whole_and_micros(value).1;
                let longest = micros.clamp(-MAX_TIME, MAX_TIME);
                Converted::fine(Value::Time(round_time(longest, *fsp)))
            }
            Err(why)
                if why == NotTemporal::TooLong || to_integer(value).abs() > MAX_TIME_NUMBER =>
            {
                let longest = if to_integer(value) < 0 {
                    -MAX_TIME
                } else {
                    MAX_TIME
                };
                let problem = temporal_out_of_range(ty, &value.to_string());
                Converted::bad(Value::Time(longest), problem)
            }
            Err(why) => bad_temporal(ty, &value.to_string(), why),
        },
        _ => integer(ty, to_integer(value)),
    }
}

fn is_decimal_below_zero(value: &Value) -> bool {
    matches!(value, Value::Decimal { unscaled: ..0, .. })
}

fn float_to_decimal(ty: &ColumnType, text: &str, negative: bool, scale: u8) -> Converted {
    match NumberText::parse(text).map(|number| number.scaled(scale)) {
        Some(Ok((unscaled, inexact))) => decimal(ty, unscaled, inexact),
        _ => decimal(ty, if negative { i128::MIN } else { i128::MAX }, false),
    }
}

fn to_f64(value: &Value) -> f64 {
    match value {
        Value::Float(v) => f64::from(*v),
        Value::Double(v) => *v,
        Value::Decimal { unscaled, scale } => decimal_to_double(*unscaled, *scale),
        other => other.as_i128().unwrap_or(0) as f64,
    }
}

/// 838:59:59 as a number.
const MAX_TIME_NUMBER: i128 = 8_385_959;

/// DECIMALs round halves away from zero, floating point numbers to even.
fn to_integer(value: &Value) -> i128 {
    match value {
        Value::Float(v) => f64::from(*v).round_ties_even() as i128,
        Value::Double(v) => v.round_ties_even() as i128,
        Value::Decimal { unscaled, scale } => rescale(*unscaled, *scale, 0).unwrap_or(0),
        other => other.as_i128().unwrap_or(0),
    }
}

/// A number's part before the point, and millionths behind it, both with its sign.
fn whole_and_micros(value: &Value) -> (i128, i64) {
    const MILLION: i128 = 1_000_000;
    let millionths = match value {
        Value::Decimal { unscaled, scale } => rescale(*unscaled, *scale, 6),
        Value::Float(_) | Value::Double(_) => {
            let number = NumberText::parse(&value.to_string()).map(|number| number.scaled(6));
            number
                .and_then(|scaled| scaled.ok())
                .map(|(number, _)| number)
        }
        _ => None,
    };
    match millionths {
        Some(number) => (number / MILLION, (number % MILLION) as i64),
        None => (to_integer(value), 0),
    }
}

/// A date or time for a column of another kind.
fn convert_temporal(ty: &ColumnType, value: &Value, mode: Mode) -> Converted {
    match (value, ty) {
        (Value::Time(micros), ColumnType::Time { fsp }) => {
            Converted::fine(Value::Time(round_time(*micros, *fsp)))
        }
        (Value::DateTime(micros) | Value::Timestamp(micros), ColumnType::Time { fsp }) => {
            Converted::note(Value::Time(round_time(micros.rem_euclid(DAY), *fsp)))
        }
        (Value::Date(_), ColumnType::Time { .. }) => Converted::note(Value::Time(0)),
        (Value::Date(days), ty) if ty.is_temporal() => {
            point_in_time(ty, i64::from(*days) * DAY, false)
        }
        (Value::DateTime(micros) | Value::Timestamp(micros), ty) if ty.is_temporal() => {
            point_in_time(ty, *micros, micros.rem_euclid(DAY) != 0)
        }
        (Value::DateTime(_) | Value::Timestamp(_) | Value::Date(_), ColumnType::Year) => {
            let days = match value {
                Value::Date(days) => *days,
                Value::DateTime(micros) | Value::Timestamp(micros) => micros.div_euclid(DAY) as i32,
                _ => 0,
            };
            year(i128::from(temporal::civil_from_days(days).0))
        }
        (
            Value::Time(time),
            ColumnType::Date | ColumnType::DateTime { .. } | ColumnType::Timestamp { .. },
        ) => match mode.today {
            Some(today) => {
                let micros = i64::from(today) * DAY + time;
                point_in_time(ty, micros, micros.rem_euclid(DAY) != 0)
            }
            None => bad_temporal(ty, &value.to_string(), NotTemporal::Text),
        },
        (value, ty) if ty.is_temporal() => bad_temporal(ty, &value.to_string(), NotTemporal::Text),
        // As a number a date is its digits: 20240229. A whole number has whole seconds: 23:59:59.5 is 240000.
        (value, ty) => {
            let whole = match value {
                Value::Time(micros) if ty.is_integer() => Value::Time(round_time(*micros, 0)),
                Value::DateTime(micros) | Value::Timestamp(micros) if ty.is_integer() => {
                    Value::DateTime(round_datetime(*micros, 0))
                }
                other => other.clone(),
            };
            let digits: String = whole
                .to_string()
                .chars()
                .filter(|character| !matches!(character, '-' | ':' | ' '))
                .collect();
            let sign = if matches!(value, Value::Time(..0)) {
                "-"
            } else {
                ""
            };
            convert_text(ty, &format!("{sign}{digits}"))
        }
    }
}

/// Microseconds since 1970 for a DATE, DATETIME or TIMESTAMP column.
fn point_in_time(ty: &ColumnType, micros: i64, has_time: bool) -> Converted {
    match ty {
        ColumnType::Date => {
            let date = Value::Date(micros.div_euclid(DAY) as i32);
            if has_time {
                Converted::note(date)
            } else {
                Converted::fine(date)
            }
        }
        ty => {
            let rounded = round_datetime(micros, ty.fraction_digits());
            let fits = rounded.div_euclid(DAY) <= i64::from(MAX_DATE);
            match ty {
                ColumnType::Timestamp { .. }
                    if TIMESTAMP_RANGE.contains(&rounded) || rounded == ZERO_DATETIME =>
                {
                    Converted::fine(Value::Timestamp(rounded))
                }
                ColumnType::DateTime { .. } if fits => Converted::fine(Value::DateTime(rounded)),
                _ => {
                    let shown = Value::DateTime(micros).to_string();
                    let problem = temporal_out_of_range(ty, &shown);
                    Converted::bad(zero_value(ty), problem)
                }
            }
        }
    }
}

/// MySQL's word for the column's type in messages.
fn temporal_kind(ty: &ColumnType) -> &'static str {
    match ty {
        ColumnType::Date => "date",
        ColumnType::Time { .. } => "time",
        _ => "datetime",
    }
}

/// Text behind a date or time is cut off.
fn cut_behind(ty: &ColumnType, converted: Converted, trailing: bool, text: &str) -> Converted {
    match trailing && (converted.note || converted.problem.is_none()) {
        true => Converted::bad(
            converted.value,
            ColumnProblem::IncorrectTemporal {
                kind: temporal_kind(ty),
                value: show(text),
            },
        ),
        false => converted,
    }
}

fn temporal_out_of_range(ty: &ColumnType, text: &str) -> ColumnProblem {
    ColumnProblem::TemporalOutOfRange {
        kind: temporal_kind(ty),
        value: show(text),
    }
}

fn bad_temporal(ty: &ColumnType, text: &str, why: NotTemporal) -> Converted {
    let (kind, value) = (temporal_kind(ty), show(text));
    let problem = match why {
        NotTemporal::ZeroInDate if !matches!(ty, ColumnType::Time { .. }) => {
            ColumnProblem::ZeroInDate { kind, value }
        }
        _ => ColumnProblem::IncorrectTemporal { kind, value },
    };
    Converted::bad(zero_value(ty), problem)
}
