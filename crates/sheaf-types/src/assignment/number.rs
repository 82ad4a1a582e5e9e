//! Values on their way into columns of numbers.

use super::{Converted, show, zero_value};
use crate::column_type::{ColumnType, Sign};
use crate::error::ColumnProblem;
use crate::number::{
    Int256, NumberText, checked_power_of_ten, decimal_to_double, is_wide, rescale,
    rescale_noting_loss, wide_decimal_to_double,
};
use crate::temporal::{NumberParts, year_of_number};
use crate::value::Value;

/// A year that is written in full.
const YEAR_CHARACTERS: usize = 4;

/// Digits, an optional sign and for DECIMALs a point, in a number that fits: the short way of nearly all fields.
pub(super) fn plain(ty: &ColumnType, text: &str) -> Option<Value> {
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
            sign: Sign::Signed,
        } if *precision <= 18 => {
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
        _ => None,
    }
}

pub(super) fn of_text(ty: &ColumnType, text: &str) -> Converted {
    let incorrect = |kind| ColumnProblem::IncorrectValue {
        kind,
        value: show(text),
    };
    match ty {
        ColumnType::Decimal {
            precision, scale, ..
        } if is_wide(*precision) => match NumberText::parse(text) {
            None => Converted::bad(zero_value(ty), incorrect("decimal")),
            Some(number) => with_trailing(wide_of_text(ty, &number, *scale), number.trailing),
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
            None if is_single(ty) => Converted::bad(zero_value(ty), incorrect("FLOAT")),
            None => Converted::bad(zero_value(ty), incorrect("DOUBLE")),
            Some(number) => with_trailing(float(ty, number.to_f64()), number.trailing),
        },
        ColumnType::Year => match NumberText::parse(text) {
            None => Converted::bad(Value::Year(0), incorrect("integer")),
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

pub(super) fn of_value(ty: &ColumnType, value: &Value) -> Converted {
    let is_exact = |ty: &ColumnType| ty.is_integer() || matches!(ty, ColumnType::Decimal { .. });
    match ty {
        // Only a double is rounded before it is looked at, on its way to an integer.
        ty if ty.is_unsigned() && is_exact(ty) && is_decimal_below_zero(value) => below_zero(ty),
        ColumnType::Decimal { sign, .. } if sign.is_unsigned() && to_f64(value) < 0.0 => {
            below_zero(ty)
        }
        ColumnType::Decimal {
            precision, scale, ..
        } if is_wide(*precision) => wide_of_value(ty, value, *scale),
        ColumnType::Decimal { scale, .. } => {
            let scaled = match value {
                Value::WideDecimal {
                    unscaled,
                    scale: from,
                } => {
                    let scaled = Int256::from(*unscaled).rescaled_noting_loss(*from, *scale);
                    scaled.and_then(|(unscaled, inexact)| Some((unscaled.to_i128()?, inexact)))
                }
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
                    let negative = is_decimal_below_zero(value) || matches!(value, Value::Int(..0));
                    decimal(ty, if negative { i128::MIN } else { i128::MAX }, false)
                }
            }
        }
        // Single precision may have rounded it to what FLOAT(M,D) does not take. It is not checked again.
        ColumnType::Float { .. } | ColumnType::Double { .. } => match value {
            Value::Float(float) if is_single(ty) && (*float >= 0.0 || !ty.is_unsigned()) => {
                Converted::fine(Value::Float(float + 0.0))
            }
            value => float(ty, to_f64(value)),
        },
        ColumnType::Year => match value {
            value if to_f64(value) < 0.0 => below_zero(ty),
            Value::Float(_) | Value::Double(_) => year(to_f64(value) as i128),
            value => year(to_integer(value)),
        },
        _ => integer(ty, to_integer(value)),
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

pub(super) fn year(value: i128) -> Converted {
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
        sign,
    } = ty
    else {
        return Converted::bad(zero_value(ty), ColumnProblem::OutOfRange);
    };
    let greatest = checked_power_of_ten(*precision).map_or(i128::MAX, |power| power - 1);
    let least = if sign.is_unsigned() { 0 } else { -greatest };
    let value = Value::Decimal {
        unscaled: unscaled.clamp(least, greatest),
        scale: *scale,
    };
    if !(least..=greatest).contains(&unscaled) {
        return Converted::bad(value, ColumnProblem::OutOfRange);
    }
    if inexact {
        Converted::rounded(value)
    } else {
        Converted::fine(value)
    }
}

/// What a text is in a wide column.
fn wide_of_text(ty: &ColumnType, number: &NumberText<'_>, scale: u8) -> Converted {
    match number.scaled_wide(scale) {
        Ok(_) if ty.is_unsigned() && number.negative && !number.is_zero() => below_zero(ty),
        Ok((unscaled, inexact)) => wide_decimal(ty, unscaled, inexact),
        Err(_) => wide_beyond(ty, number.negative),
    }
}

/// What a number is in a wide column.
fn wide_of_value(ty: &ColumnType, value: &Value, scale: u8) -> Converted {
    let of_text = |text: String| match NumberText::parse(&text) {
        Some(number) => wide_of_text(ty, &number, scale),
        None => wide_beyond(ty, text.starts_with('-')),
    };
    let (unscaled, from) = match value {
        Value::Float(number) => return of_text(number.to_string()),
        Value::Double(number) => return of_text(number.to_string()),
        value => match value.as_decimal() {
            Some(decimal) => decimal,
            None => (value.as_i128().unwrap_or(0).into(), 0),
        },
    };
    match unscaled.rescaled_noting_loss(from, scale) {
        Some((unscaled, inexact)) => wide_decimal(ty, unscaled, inexact),
        None => wide_beyond(ty, unscaled.is_negative()),
    }
}

/// As [`decimal`], of a wide column.
fn wide_decimal(ty: &ColumnType, unscaled: Int256, inexact: bool) -> Converted {
    let ColumnType::Decimal {
        precision,
        scale,
        sign,
    } = ty
    else {
        return Converted::bad(zero_value(ty), ColumnProblem::OutOfRange);
    };
    let greatest = Int256::nines(*precision);
    let least = match sign.is_unsigned() {
        true => Int256::ZERO,
        false => greatest.negated(),
    };
    let nearest = unscaled.clamp(least, greatest);
    let value = Value::of_decimal(nearest, *precision, *scale).unwrap_or(Value::Null);
    if nearest != unscaled {
        return Converted::bad(value, ColumnProblem::OutOfRange);
    }
    match inexact {
        true => Converted::rounded(value),
        false => Converted::fine(value),
    }
}

/// A number beyond all of a wide column.
fn wide_beyond(ty: &ColumnType, negative: bool) -> Converted {
    let beyond = Int256::of_parts(0, if negative { i128::MIN } else { i128::MAX });
    wide_decimal(ty, beyond, false)
}

fn is_single(ty: &ColumnType) -> bool {
    matches!(ty, ColumnType::Float { .. })
}

fn float(ty: &ColumnType, value: f64) -> Converted {
    let single = is_single(ty);
    let mut greatest = if single {
        f64::from(f32::MAX)
    } else {
        f64::MAX
    };
    let mut value = value;
    if let Some(digits) = ty.float_digits() {
        greatest = greatest.min(digits.greatest());
        // A number below zero stays one, so that an unsigned column refuses it.
        if value >= 0.0 || !ty.is_unsigned() {
            value = digits.round(value);
        }
    }
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

fn is_decimal_below_zero(value: &Value) -> bool {
    match value {
        Value::Decimal { unscaled, .. } => *unscaled < 0,
        Value::WideDecimal { unscaled, .. } => unscaled.is_negative(),
        _ => false,
    }
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
        Value::WideDecimal { unscaled, scale } => {
            wide_decimal_to_double((*unscaled).into(), *scale)
        }
        other => other.as_i128().unwrap_or(0) as f64,
    }
}

/// DECIMALs round halves away from zero, floating point numbers to even.
pub(super) fn to_integer(value: &Value) -> i128 {
    match value {
        Value::Float(v) => f64::from(*v).round_ties_even() as i128,
        Value::Double(v) => v.round_ties_even() as i128,
        Value::Decimal { unscaled, scale } => rescale(*unscaled, *scale, 0).unwrap_or(0),
        Value::WideDecimal { unscaled, scale } => {
            let whole = Int256::from(*unscaled).rescaled(*scale, 0);
            let beyond = if unscaled.is_negative() {
                i128::MIN
            } else {
                i128::MAX
            };
            whole.and_then(Int256::to_i128).unwrap_or(beyond)
        }
        other => other.as_i128().unwrap_or(0),
    }
}

/// A number in the parts that dates and times are read from.
pub(super) fn parts(value: &Value) -> NumberParts {
    match value {
        Value::Decimal { unscaled, scale } => NumberParts::of_decimal(*unscaled, *scale),
        Value::WideDecimal { unscaled, scale } => {
            NumberParts::of_wide_decimal((*unscaled).into(), *scale)
        }
        Value::Double(number) => NumberParts::of_double(*number),
        Value::Float(number) => NumberParts::of_double(f64::from(*number)),
        _ => NumberParts::of_integer(to_integer(value)),
    }
}
