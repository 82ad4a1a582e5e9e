//! A JSON value as a value of SQL: what CAST gives, and what was wrong with it.
//!
//! CAST warns of a problem and goes on with a value, an assignment makes an error of it. So both are given here.

use std::borrow::Cow;

use crate::number::{
    Int256, MAX_DIGITS, NumberText, decimal_to_double, double_to_decimal, power_of_ten, rescale,
    text_to_double, wide_decimal_to_double,
};
use crate::temporal::{DAY, read_datetime, read_time, split_datetime, split_offset};

use crate::json::JsonError;
use crate::json::document::{Json, View};
use crate::json::text::to_text;

/// A value, and what was wrong on the way to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coerced<T> {
    pub value: T,
    pub problem: Option<CoercionProblem>,
}

impl<T> Coerced<T> {
    /// The value as another type, with the same problem.
    pub(crate) fn map<U>(self, as_other: impl FnOnce(T) -> U) -> Coerced<U> {
        Coerced {
            value: as_other(self.value),
            problem: self.problem,
        }
    }
}

/// What is wrong with a value for a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoercionProblem {
    /// 3156: it is not of the type.
    Invalid,
    /// 3155: it is beyond the type's range.
    OutOfRange,
    /// 1292: a DECIMAL is beyond the integers.
    DecimalOutOfRange,
}

impl CoercionProblem {
    /// The error, where it is not a warning. `to` is MySQL's word for the type: INTEGER, DOUBLE, DECIMAL, DATE, TIME or
    /// DATETIME/TIMESTAMP. For `DecimalOutOfRange` the caller, which has the digits, gives MySQL's 1292.
    pub fn error(self, to: &'static str, column: &str, row: u64) -> JsonError {
        let column = column.to_string();
        match self {
            CoercionProblem::Invalid => JsonError::InvalidForCast { to, column, row },
            CoercionProblem::OutOfRange | CoercionProblem::DecimalOutOfRange => {
                JsonError::OutOfRange { to, column, row }
            }
        }
    }
}

fn fine<T>(value: T) -> Coerced<T> {
    let problem = None;
    Coerced { value, problem }
}

fn with<T>(value: T, problem: CoercionProblem) -> Coerced<T> {
    let problem = Some(problem);
    Coerced { value, problem }
}

use CoercionProblem::{DecimalOutOfRange, Invalid, OutOfRange};

/// As an integer of 64 bits, from the least signed to the greatest unsigned one. CAST AS SIGNED and AS UNSIGNED take
/// its lower 64 bits.
pub fn to_integer(json: Json<'_>) -> Coerced<i128> {
    const MIN: i128 = i64::MIN as i128;
    const MAX: i128 = u64::MAX as i128;
    match json.view() {
        View::Bool(value) => fine(value.into()),
        View::Int(value) => fine(value.into()),
        View::UInt(value) => fine(value.into()),
        View::Double(value) => {
            // Beyond the signed ones, CAST AS UNSIGNED is no better off.
            let rounded = value.round_ties_even();
            match rounded as i64 {
                i64::MAX if rounded >= i64::MAX as f64 => with(i64::MAX.into(), OutOfRange),
                i64::MIN if rounded < i64::MIN as f64 => with(MIN, OutOfRange),
                integer => fine(integer.into()),
            }
        }
        View::Decimal { unscaled, scale } => match rescale(unscaled, scale, 0) {
            Some(integer) if (MIN..=MAX).contains(&integer) => fine(integer),
            _ => with(if unscaled < 0 { MIN } else { MAX }, DecimalOutOfRange),
        },
        View::WideDecimal { unscaled, scale } => {
            let integer = Int256::from(unscaled).rescaled(scale, 0);
            match integer.and_then(Int256::to_i128) {
                Some(integer) if (MIN..=MAX).contains(&integer) => fine(integer),
                _ if unscaled.is_negative() => with(MIN, DecimalOutOfRange),
                _ => with(MAX, DecimalOutOfRange),
            }
        }
        View::String(text) => integer_of_text(text),
        _ => with(0, Invalid),
    }
}

/// The integer that a text begins with. It is valid if nothing else is there.
fn integer_of_text(text: &str) -> Coerced<i128> {
    const MIN: i128 = i64::MIN as i128;
    const MAX: i128 = u64::MAX as i128;
    let start = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0B', '\x0C']);
    let (is_negative, digits) = match start.as_bytes() {
        [b'-', ..] => (true, &start[1..]),
        [b'+', ..] => (false, &start[1..]),
        _ => (false, start),
    };
    let end = digits.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = digits.split_at(end);
    let size = digits.bytes().try_fold(0u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    });
    let integer = match (size, is_negative) {
        (Some(size), true) if -i128::from(size) < MIN => return with(MIN, OutOfRange),
        (Some(size), true) => -i128::from(size),
        (Some(size), false) => size.into(),
        (None, true) => return with(MIN, OutOfRange),
        (None, false) => return with(MAX, OutOfRange),
    };
    match digits.is_empty() || !rest.is_empty() {
        true => with(integer, Invalid),
        false => fine(integer),
    }
}

/// As a DOUBLE.
pub fn to_double(json: Json<'_>) -> Coerced<f64> {
    match json.view() {
        View::Bool(value) => fine(value.into()),
        View::Int(value) => fine(value as f64),
        View::UInt(value) => fine(value as f64),
        View::Double(value) => fine(value),
        View::Decimal { unscaled, scale } => fine(decimal_to_double(unscaled, scale)),
        View::WideDecimal { unscaled, scale } => {
            fine(wide_decimal_to_double(unscaled.into(), scale))
        }
        View::String("") => fine(0.0),
        View::String(text) => match NumberText::parse(text) {
            // Spaces behind the number count here, unlike those before it.
            Some(number) if number.trailing || text.ends_with(' ') => {
                with(text_to_double(text), Invalid)
            }
            Some(number) if number.to_f64().is_infinite() => with(text_to_double(text), OutOfRange),
            Some(number) => fine(number.to_f64()),
            None => with(0.0, Invalid),
        },
        _ => with(0.0, Invalid),
    }
}

/// As an exact number, `unscaled` / 10^`scale`. The caller rounds it to the digits of its type. A number with more
/// digits than any DECIMAL has becomes the largest one.
pub fn to_decimal(json: Json<'_>) -> Coerced<(i128, u8)> {
    let largest = |is_negative: bool| {
        let size = power_of_ten(MAX_DIGITS) - 1;
        with((if is_negative { -size } else { size }, 0), OutOfRange)
    };
    match json.view() {
        View::Bool(value) => fine((value.into(), 0)),
        View::Int(value) => fine((value.into(), 0)),
        View::UInt(value) => fine((value.into(), 0)),
        View::Double(value) => match double_to_decimal(value) {
            Some(decimal) => fine(decimal),
            None => largest(value < 0.0),
        },
        View::Decimal { unscaled, scale } => fine((unscaled, scale)),
        View::WideDecimal { unscaled, scale } => match narrowed(unscaled.into(), scale) {
            Some(decimal) => fine(decimal),
            None => largest(unscaled.is_negative()),
        },
        View::String(text) => match NumberText::parse(text) {
            Some(number) => match number.exact() {
                Some(decimal) if number.trailing => with(decimal, Invalid),
                Some(decimal) => fine(decimal),
                None => largest(number.to_f64() < 0.0),
            },
            None => with((0, 0), Invalid),
        },
        _ => with((0, 0), Invalid),
    }
}

/// The number with as many decimals as 38 digits have room for. `None`: it has more digits before the point.
fn narrowed(unscaled: Int256, scale: u8) -> Option<(i128, u8)> {
    let most = power_of_ten(MAX_DIGITS).unsigned_abs();
    (0..=scale.min(MAX_DIGITS)).rev().find_map(|decimals| {
        let narrow = unscaled.rescaled(scale, decimals)?.to_i128()?;
        (narrow.unsigned_abs() < most).then_some((narrow, decimals))
    })
}

/// As [`to_decimal`], where numbers may be wide.
pub fn to_wide_decimal(json: Json<'_>) -> Coerced<(Int256, u8)> {
    if let View::WideDecimal { unscaled, scale } = json.view() {
        return fine((unscaled.into(), scale));
    }
    let Coerced { value, problem } = to_decimal(json);
    let (unscaled, scale) = value;
    Coerced {
        value: (unscaled.into(), scale),
        problem,
    }
}

/// As a DATE: days since 1970-01-01. `None` is NULL.
pub fn to_date(json: Json<'_>) -> Coerced<Option<i32>> {
    match json.view() {
        View::Date(days) => fine(Some(days)),
        View::DateTime(micros) | View::Timestamp(micros) => fine(Some(split_datetime(micros).0)),
        View::String(text) => match datetime_of_text(text) {
            Some(micros) => fine(Some(split_datetime(micros).0)),
            None => with(None, Invalid),
        },
        _ => with(None, Invalid),
    }
}

/// As a DATETIME: microseconds since 1970-01-01 00:00:00, with all digits of a second's fraction. `None` is NULL.
pub fn to_datetime(json: Json<'_>) -> Coerced<Option<i64>> {
    match json.view() {
        View::Date(days) => fine(Some(i64::from(days) * DAY)),
        View::DateTime(micros) | View::Timestamp(micros) => fine(Some(micros)),
        View::String(text) => match datetime_of_text(text) {
            Some(micros) => fine(Some(micros)),
            None => with(None, Invalid),
        },
        _ => with(None, Invalid),
    }
}

fn datetime_of_text(text: &str) -> Option<i64> {
    let text = without_offset(text);
    let read = read_datetime(text).ok().filter(|read| !read.trailing)?;
    read.micros(6).ok()
}

/// Whether a string is a date without a time of the day. MySQL casts it to a DATETIME, but stores it in none.
pub fn is_date_alone(json: Json<'_>) -> bool {
    let View::String(text) = json.view() else {
        return false;
    };
    read_datetime(without_offset(text)).is_ok_and(|read| !read.has_time)
}

/// As a TIME: signed microseconds, with all digits of a second's fraction. `None` is NULL.
pub fn to_time(json: Json<'_>) -> Coerced<Option<i64>> {
    match json.view() {
        View::Time(micros) => fine(Some(micros)),
        View::String(text) => match time_of_text(text) {
            Some(micros) => fine(Some(micros)),
            None => with(None, Invalid),
        },
        _ => with(None, Invalid),
    }
}

/// Unlike other texts, one in a document must show that it is a time: by a colon, or by all digits of a date and a
/// time.
fn time_of_text(text: &str) -> Option<i64> {
    /// Digits of YYMMDDhhmmss.
    const DATETIME_DIGITS: usize = 12;
    let text = without_offset(text);
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = match is_number {
        true => text.len() >= DATETIME_DIGITS,
        false => text.contains(':') && !text.contains('T') && !text.starts_with('+'),
    };
    let read = read_time(text).ok().filter(|_| is_time)?;
    (!read.trailing && !read.is_cut).then(|| read.micros(6))
}

/// A date and time without an offset from UTC, as `+01:00`. MySQL ignores it here, if it is one.
fn without_offset(text: &str) -> &str {
    /// Bytes of YYYY-MM-DD hh:mm:ss.
    const DATETIME_BYTES: usize = 19;
    match split_offset(text) {
        // Here nothing may follow an offset, spaces neither.
        Some((moment, _)) if moment.len() >= DATETIME_BYTES && !text.ends_with(' ') => moment,
        _ => text,
    }
}

/// CAST AS CHAR: the text of the value. A string keeps its quotes.
pub fn to_char(json: Json<'_>) -> Cow<'_, str> {
    Cow::Owned(to_text(json))
}
