//! A column's value plus or minus a number, as MySQL computes it, where that needs no query.

use sheaf_types::number::{MAX_DIGITS, checked_power_of_ten, decimal_to_double};
use sheaf_types::{ColumnType, Value};

/// Digits of a BIGINT of either kind.
const MAX_BIGINT_DIGITS: u8 = 20;

pub(crate) fn is_exact_number(ty: &ColumnType) -> bool {
    ty.is_integer() || ty.decimal_digits().is_some()
}

/// A number as MySQL's approximate arithmetic takes it; `None` for what it would warn of.
fn approximate(value: &Value) -> Option<f64> {
    match value {
        Value::Int(_) | Value::UInt(_) => value.as_i128().map(|number| number as f64),
        Value::Decimal { unscaled, scale } => Some(decimal_to_double(*unscaled, *scale)),
        Value::Double(double) => Some(*double),
        Value::Text(text) => {
            let is_plain = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
            let is_number = text.as_bytes().first().is_some_and(|byte| *byte != b'.');
            (is_number && text.as_bytes().iter().all(is_plain))
                .then(|| text.parse().ok())
                .flatten()
        }
        _ => None,
    }
    .filter(|number| number.is_finite())
}

/// A column's value plus or minus a number, as MySQL's arithmetic gives it: exact, or approximate where the operand is
/// a text or a DOUBLE. `None` where that is not so plain.
pub(crate) fn sum(ty: &ColumnType, old: &Value, negated: bool, operand: &Value) -> Option<Value> {
    if old.is_null() || operand.is_null() {
        let is_number = operand.is_null() || approximate(operand).is_some();
        return is_number.then_some(Value::Null);
    }
    if matches!(operand, Value::Text(_) | Value::Double(_)) {
        let (old, operand) = (approximate(old)?, approximate(operand)?);
        let sum = if negated {
            old - operand
        } else {
            old + operand
        };
        return sum.is_finite().then_some(Value::Double(sum));
    }
    let signed = |number: i128| {
        if negated {
            number.checked_neg()
        } else {
            Some(number)
        }
    };
    match (old, operand) {
        (Value::Int(_) | Value::UInt(_), Value::Int(_) | Value::UInt(_)) => {
            let sum = old.as_i128()?.checked_add(signed(operand.as_i128()?)?)?;
            // BIGINT arithmetic, unsigned if an operand is; outside of it is an error with the expression's text.
            let is_large =
                matches!(operand, Value::UInt(number) if i64::try_from(*number).is_err());
            match ty.is_unsigned() || is_large {
                true => u64::try_from(sum).ok().map(Value::UInt),
                false => i64::try_from(sum).ok().map(Value::Int),
            }
        }
        (
            Value::Int(_) | Value::UInt(_) | Value::Decimal { .. },
            Value::Int(_) | Value::UInt(_) | Value::Decimal { .. },
        ) => decimal_sum(ty, old, signed, operand),
        _ => None,
    }
}

/// A sum that is a DECIMAL, at the larger scale of both operands.
fn decimal_sum(
    ty: &ColumnType,
    old: &Value,
    signed: impl Fn(i128) -> Option<i128>,
    operand: &Value,
) -> Option<Value> {
    let parts = |value: &Value| match value {
        Value::Decimal { unscaled, scale } => Some((*unscaled, *scale)),
        whole => Some((whole.as_i128()?, 0)),
    };
    let ((old, old_scale), (operand, operand_scale)) = (parts(old)?, parts(operand)?);
    let scale = old_scale.max(operand_scale);
    let digits = match ty.decimal_digits() {
        Some((precision, scale)) => precision - scale,
        None => MAX_BIGINT_DIGITS,
    };
    let at_scale =
        |unscaled: i128, own: u8| unscaled.checked_mul(checked_power_of_ten(scale - own)?);
    let unscaled =
        at_scale(old, old_scale)?.checked_add(at_scale(signed(operand)?, operand_scale)?)?;
    // What has no more digits than the column, at this scale, fits every intermediate type.
    let most = digits.checked_add(scale)?;
    let fits = most < MAX_DIGITS && unscaled.abs() < checked_power_of_ten(most)?;
    fits.then_some(Value::Decimal { unscaled, scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ty(text: &str) -> ColumnType {
        ColumnType::parse(text).expect("a type")
    }

    #[test]
    fn sums_are_exact_or_not_direct() {
        let int = ty("int");
        let one = Value::Int(1);
        assert_eq!(sum(&int, &Value::Int(4), false, &one), Some(Value::Int(5)));
        assert_eq!(sum(&int, &Value::Int(4), true, &one), Some(Value::Int(3)));
        assert_eq!(sum(&int, &Value::Null, false, &one), Some(Value::Null));
        assert_eq!(sum(&int, &Value::Int(i64::MAX), false, &one), None);
        let text = |text: &str| Value::Text(text.into());
        assert_eq!(
            sum(&int, &one, true, &text("1.5")),
            Some(Value::Double(-0.5))
        );
        for unclear in ["", "1x", " 1", "1-1", "abc", "."] {
            assert_eq!(sum(&int, &one, false, &text(unclear)), None, "{unclear}");
        }
        let unsigned = ty("bigint unsigned");
        assert_eq!(
            sum(&unsigned, &Value::UInt(u64::MAX - 1), false, &one),
            Some(Value::UInt(u64::MAX))
        );
        assert_eq!(sum(&unsigned, &Value::UInt(0), true, &one), None);
        let price = ty("decimal(4,2)");
        let decimal = |unscaled, scale| Value::Decimal { unscaled, scale };
        assert_eq!(
            sum(&price, &decimal(150, 2), false, &decimal(5, 1)),
            Some(decimal(200, 2))
        );
        // The column rounds it.
        assert_eq!(
            sum(&price, &decimal(150, 2), false, &decimal(5, 3)),
            Some(decimal(1505, 3))
        );
        assert_eq!(
            sum(&int, &Value::Int(4), true, &decimal(15, 1)),
            Some(decimal(25, 1))
        );
        assert_eq!(sum(&price, &decimal(150, 2), false, &decimal(5, 36)), None);
        assert_eq!(sum(&price, &decimal(9999, 2), false, &one), None);
    }
}
