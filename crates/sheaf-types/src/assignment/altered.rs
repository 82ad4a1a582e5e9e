//! Values of a column whose type ALTER TABLE changes.
//!
//! MySQL copies them from field to field, which for some pairs of types is not what INSERT ... SELECT does: there a BIT
//! takes the bytes of a string, here its number. There an ENUM or SET takes a number for that of a label, here for the
//! text that the column showed. The other pairs are assigned as a statement assigns them.

use super::{Converted, Mode, assign, bit, done, show};
use crate::column_type::ColumnType;
use crate::error::ColumnProblem;
use crate::number::{Int256, bit_bytes, rescale};
use crate::temporal::{DAY, datetime_as_integer, time_as_integer};
use crate::value::{Value, column_text};

/// The place of the clock in 20240229235959.
const CLOCK_DIGITS: i64 = 1_000_000;

/// Converts a value that is not NULL from one column's type to another.
///
/// # Errors
/// As [`assign`].
pub fn assign_altered(
    from: &ColumnType,
    to: &ColumnType,
    value: Value,
    mode: Mode,
) -> Result<(Value, Option<ColumnProblem>), ColumnProblem> {
    if let Some(length) = to.bit_length() {
        return done(to_bit(from, length, &value, mode), mode);
    }
    let value = match value {
        Value::Float(_) | Value::Double(_) if is_copied(from, to) => return Ok((value, None)),
        // It is checked again.
        Value::Float(float) if to.is_single() => Value::Double(f64::from(float)),
        Value::Date(_) | Value::DateTime(_) | Value::Timestamp(_) | Value::Time(_)
            if to.is_year() =>
        {
            moment_as_number(&value).unwrap_or(value)
        }
        Value::Enum(0) if to.enum_labels().is_some() => value,
        Value::UInt(bits) if to.is_long() && from.bit_length().is_some() => {
            Value::Bytes(bit_bytes(bits, from.bit_length().unwrap_or(0)))
        }
        // Bytes are those of the column's character set.
        Value::Text(text) if to.is_binary() && from.collation().is_some() => {
            let collation = from.collation().unwrap_or_default();
            Value::Bytes(collation.encoding().encode(text.as_bytes()).into_owned())
        }
        // Values do not know their labels and digits.
        Value::Text(_) | Value::Bytes(_) => value,
        // A string of JSON keeps its quotation marks, and is no number.
        Value::Json(_) if !to.is_json() => Value::Text(value.to_string()),
        Value::Json(_) => value,
        value
            if to.max_bytes().is_some()
                || from.has_labels() && takes_labels(to)
                || to.has_labels() && is_shown_as_number(from, &value) =>
        {
            Value::Text(column_text(from, &value))
        }
        value => value,
    };
    assign(to, &value, mode)
}

/// Numbers of the same precision and sign are the same bytes. Their digits are only how they are shown.
fn is_copied(from: &ColumnType, to: &ColumnType) -> bool {
    from.is_floating() && from.is_same_kind(to) && from.is_unsigned() == to.is_unsigned()
}

/// Whether a column shows the value as a number. It shows bytes of a BIT.
fn is_shown_as_number(from: &ColumnType, value: &Value) -> bool {
    value.is_number() && from.bit_length().is_none()
}

/// Whether an ENUM or SET is its text to a column, and not its number.
fn takes_labels(to: &ColumnType) -> bool {
    to.has_labels() || to.is_temporal()
}

/// The number of any value, rounded to a whole one.
fn to_bit(from: &ColumnType, length: u8, value: &Value, mode: Mode) -> Converted {
    let number = match value {
        Value::Text(text) => return text_to_bit(from, length, text, mode),
        Value::Bytes(bytes) => {
            return text_to_bit(from, length, &String::from_utf8_lossy(bytes), mode);
        }
        Value::Float(float) => Value::Double(f64::from(*float).round_ties_even()),
        Value::Double(double) => Value::Double(double.round_ties_even()),
        Value::Decimal { unscaled, scale } => {
            let whole = rescale(*unscaled, *scale, 0).and_then(|whole| i64::try_from(whole).ok());
            whole.map_or_else(|| value.clone(), Value::Int)
        }
        Value::WideDecimal { unscaled, scale } => {
            let whole = Int256::from(*unscaled).rescaled(*scale, 0);
            let whole = whole.and_then(Int256::to_i128);
            let whole = whole.and_then(|whole| i64::try_from(whole).ok());
            whole.map_or_else(|| value.clone(), Value::Int)
        }
        other => moment_as_number(other).unwrap_or_else(|| other.clone()),
    };
    bit::of_number(length, &number, mode)
}

/// The digits of a date, a time or a moment, rounded to whole seconds. `None` for other values.
fn moment_as_number(value: &Value) -> Option<Value> {
    Some(Value::Int(match value {
        Value::Date(days) => datetime_as_integer(i64::from(*days) * DAY) / CLOCK_DIGITS,
        Value::Time(micros) => time_as_integer(*micros),
        Value::DateTime(micros) | Value::Timestamp(micros) => datetime_as_integer(*micros),
        _ => return None,
    }))
}

/// The whole number that a text begins with. Other text is an error, but not in a TEXT or BLOB.
fn text_to_bit(from: &ColumnType, length: u8, text: &str, mode: Mode) -> Converted {
    let digits = text.trim_start();
    let (is_negative, digits) = match digits.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, digits.strip_prefix('+').unwrap_or(digits)),
    };
    let end = digits.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, behind) = digits.split_at(end);
    let size = match digits {
        "" => 0,
        // A BIGINT does not hold more.
        digits => digits.parse::<i64>().unwrap_or(i64::MAX),
    };
    let number = if is_negative { -size } else { size };
    let converted = bit::of_number(length, &Value::Int(number), mode);
    let is_number = !digits.is_empty() && behind.trim_end().is_empty();
    if is_number || from.is_long() || !mode.strict && converted.problem.is_some() {
        return converted;
    }
    let problem = ColumnProblem::TruncatedInteger { value: show(text) };
    Converted::bad(converted.value, problem)
}
