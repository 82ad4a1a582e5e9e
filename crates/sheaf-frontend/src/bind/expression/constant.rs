//! Constants that stand for themselves, numbers and texts: their values, without an expression for each.

use datafusion_common::ScalarValue;
use sqlparser::ast::{Expr, UnaryOperator, Value as Literal, ValueWithSpan};

use crate::bind::literal::is_exact;
use crate::packed_list::Member;

/// The largest DECIMAL has as many digits.
const MAX_DIGITS: u8 = 38;

/// The number that the digits spell, if it has no exponent and is no longer than an exact number may be.
pub(super) fn exact_number(digits: &str) -> Option<ScalarValue> {
    if let Ok(number) = digits.parse::<i64>() {
        return is_exact(digits).then_some(ScalarValue::Int64(Some(number)));
    }
    if !is_exact(digits) {
        return None;
    }
    match digits.parse::<u64>() {
        Ok(number) => Some(ScalarValue::UInt64(Some(number))),
        Err(_) => decimal(digits),
    }
}

/// The value of a member of a packed list; `None` of a number that is not exact.
pub(super) fn value_of_member(member: Member<'_>) -> Option<ScalarValue> {
    match member {
        Member::Number(digits) => exact_number(digits),
        Member::Text(text) => Some(ScalarValue::Utf8(Some(text.to_string()))),
        Member::Null => Some(ScalarValue::Null),
    }
}

/// The value of a constant that stands for itself: a number or a text.
pub(super) fn plain_constant(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Value(value) => match &value.value {
            Literal::Number(digits, _) => exact_number(digits),
            Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text) => {
                Some(ScalarValue::Utf8(Some(text.clone())))
            }
            _ => None,
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match expr.as_ref() {
            Expr::Value(ValueWithSpan {
                value: Literal::Number(digits, _),
                ..
            }) => exact_number(&format!("-{digits}")),
            _ => None,
        },
        _ => None,
    }
}

/// The DECIMAL that the digits spell, with as many digits as it needs.
fn decimal(digits: &str) -> Option<ScalarValue> {
    let (sign, unsigned) = match digits.strip_prefix('-') {
        Some(unsigned) => (-1, unsigned),
        None => (1, digits),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let value = whole.bytes().chain(fraction.bytes());
    let value = value.map(|digit| digit.is_ascii_digit().then(|| i128::from(digit - b'0')));
    let add = |value: i128, digit: Option<i128>| value.checked_mul(10)?.checked_add(digit?);
    let value = value.into_iter().try_fold(0, add)?;
    let scale = u8::try_from(fraction.len()).ok()?;
    let count = value.checked_ilog10().map_or(1, |log| log as u8 + 1);
    let precision = count.max(scale);
    let fits = precision <= MAX_DIGITS;
    fits.then(|| ScalarValue::Decimal128(Some(sign * value), precision, scale as i8))
}
