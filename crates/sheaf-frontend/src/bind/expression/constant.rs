//! Constants that stand for themselves, numbers and texts: their values, without an expression for each.

use datafusion_common::ScalarValue;
use sheaf_access::i256_of;
use sheaf_types::number::{Int256, MAX_DIGITS, MAX_WIDE_DIGITS};
use sheaf_types::{Value, number_literal};
use sqlparser::ast::{Expr, UnaryOperator, Value as Literal, ValueWithSpan};

use crate::packed_list::Member;

/// The number that the digits spell; `None` of a DOUBLE, and of what is none.
pub(super) fn exact_number(digits: &str) -> Option<ScalarValue> {
    match number_literal(digits)? {
        Value::Int(number) => Some(ScalarValue::Int64(Some(number))),
        Value::UInt(number) => Some(ScalarValue::UInt64(Some(number))),
        Value::Decimal { unscaled, scale } => {
            let digits = unscaled.unsigned_abs().checked_ilog10();
            let digits = digits.map_or(1, |log| log as u8 + 1);
            let precision = digits.max(scale);
            Some(ScalarValue::Decimal128(
                Some(unscaled),
                precision,
                scale as i8,
            ))
        }
        Value::WideDecimal { unscaled, scale } => {
            let unscaled = Int256::from(unscaled);
            let digits = unscaled.count_digits().min(usize::from(MAX_WIDE_DIGITS)) as u8;
            Some(ScalarValue::Decimal256(
                Some(i256_of(unscaled)),
                digits.max(MAX_DIGITS + 1).max(scale),
                scale as i8,
            ))
        }
        _ => None,
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
