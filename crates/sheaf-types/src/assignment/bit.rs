//! Values on their way into columns of BIT.

use super::number::to_integer;
use super::{Converted, Mode};
use crate::error::ColumnProblem;
use crate::number::{bits_of_bytes, greatest_bits, rescale};
use crate::value::Value;

/// A string is its bytes, the most significant first.
pub(super) fn of_bytes(length: u8, bytes: &[u8], mode: Mode) -> Converted {
    match bits_of_bytes(bytes, length) {
        Some(number) => Converted::fine(Value::UInt(number)),
        None => too_long(length, mode),
    }
}

/// A number is its 64 bits. A DECIMAL is rounded, and a DOUBLE is cut.
pub(super) fn of_number(length: u8, value: &Value, mode: Mode) -> Converted {
    let (number, is_beyond) = match value {
        Value::Decimal { unscaled, scale } => {
            let whole = rescale(*unscaled, *scale, 0).unwrap_or(*unscaled);
            match u64::try_from(whole) {
                Ok(number) => (number, false),
                Err(_) => (if whole < 0 { 0 } else { u64::MAX }, true),
            }
        }
        Value::WideDecimal { unscaled, .. } => {
            let whole = to_integer(value);
            match u64::try_from(whole) {
                Ok(number) => (number, false),
                Err(_) if unscaled.is_negative() => (0, true),
                Err(_) => (u64::MAX, true),
            }
        }
        // What a BIGINT does not hold is its least or greatest value.
        Value::Double(double) => (*double as i64 as u64, false),
        Value::Float(float) => (*float as i64 as u64, false),
        other => (other.as_i128().unwrap_or(0) as u64, false),
    };
    if number > greatest_bits(length) {
        return too_long(length, mode);
    }
    match is_beyond {
        true => Converted::bad(Value::UInt(number), ColumnProblem::OutOfRange),
        false => Converted::fine(Value::UInt(number)),
    }
}

/// MySQL calls it too long where it refuses it, and out of range where it sets all bits instead.
fn too_long(length: u8, mode: Mode) -> Converted {
    let problem = match mode.strict {
        true => ColumnProblem::TooLong,
        false => ColumnProblem::OutOfRange,
    };
    Converted::bad(Value::UInt(greatest_bits(length)), problem)
}
