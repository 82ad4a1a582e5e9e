//! The domain in which two operands are compared, and their conversion to it.

use std::borrow::Cow;

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::{Expr, Operator, lit};
use sheaf_types::Collation;

use crate::functions::call;
use crate::functions::collation::collation_key;
use crate::functions::control::microseconds;
use crate::functions::conversion::WIDEST;
use crate::functions::truncated::{MomentKind, NumberKind};
use crate::functions::types::{
    MAX_PRECISION, SqlType, check_literal, common_collation, is_cut_short, is_explicit,
};
use crate::typing::{Rule, cast, field_of, fold, literal};

/// Where two operands are compared.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Domain {
    /// Sort keys.
    Keys(Collation),
    Bytes,
    /// Values of one Arrow type for which arrow's comparison is MySQL's.
    Values(DataType),
    /// Exact numbers of so many decimals, and the [places](super::Place) of texts among them.
    Places(u8),
    Double,
    Date,
    DateTime,
    Time,
}

/// An operator as errors name it.
fn named(operator: Operator) -> Cow<'static, str> {
    match operator {
        Operator::Eq => "=".into(),
        Operator::NotEq => "<>".into(),
        Operator::IsNotDistinctFrom => "<=>".into(),
        other => other.to_string().into(),
    }
}

/// The domain in which values of two types are compared.
pub(super) fn domain(
    left: &SqlType,
    right: &SqlType,
    (left_type, right_type): (&DataType, &DataType),
    operator: Operator,
) -> Result<Domain> {
    use SqlType::{Bytes, Date, DateTime, Time};
    Ok(match (left, right) {
        (left, right)
            if left.is_text() && right.is_text()
                || left.is_string() && is_explicit(right)
                || right.is_string() && is_explicit(left) =>
        {
            let types = [left.clone(), right.clone()];
            Domain::Keys(common_collation(&types, &named(operator))?.0)
        }
        (left, right) if left.is_string() && right.is_string() => Domain::Bytes,
        (Date, Date) => Domain::Date,
        (Time { .. }, Time { .. }) => Domain::Time,
        (Time { .. }, other) | (other, Time { .. }) if other.is_string() => Domain::Time,
        (Date | DateTime { .. }, other) | (other, Date | DateTime { .. })
            if other.is_temporal() || other.is_string() =>
        {
            Domain::DateTime
        }
        (left, right) if left.is_exact_number() && right.is_exact_number() => {
            Domain::Values(common_number(left, right, left_type, right_type))
        }
        (Bytes, _) | (_, Bytes) => Domain::Double,
        (number, SqlType::Text { .. }) | (SqlType::Text { .. }, number)
            if number.is_exact_number() && has_places(number) =>
        {
            Domain::Places(number.decimal_digits().1)
        }
        _ => Domain::Double,
    })
}

/// Whether there is a DECIMAL with a digit more, for what lies between two numbers.
fn has_places(number: &SqlType) -> bool {
    let (whole, decimals) = number.decimal_digits();
    whole + decimals < MAX_PRECISION
}

/// The narrowest Arrow type that holds the values of two exact types.
fn common_number(
    left: &SqlType,
    right: &SqlType,
    left_type: &DataType,
    right_type: &DataType,
) -> DataType {
    if left_type == right_type {
        return left_type.clone();
    }
    if left_type.is_integer() && right_type.is_integer() {
        let wider = if left_type.primitive_width() >= right_type.primitive_width() {
            left_type
        } else {
            right_type
        };
        if left_type.is_signed_integer() == right_type.is_signed_integer() {
            return wider.clone();
        }
        if *left_type != DataType::UInt64 && *right_type != DataType::UInt64 {
            return DataType::Int64;
        }
    }
    let ((left_digits, left_scale), (right_digits, right_scale)) =
        (left.decimal_digits(), right.decimal_digits());
    let scale = left_scale.max(right_scale);
    let digits = left_digits.max(right_digits).saturating_add(scale);
    if is_cut_short(digits - scale, scale) || left.is_wide() || right.is_wide() {
        return DataType::Decimal256(WIDEST, scale as i8);
    }
    let precision = digits.min(MAX_PRECISION);
    DataType::Decimal128(precision.max(scale), scale as i8)
}

/// An operand in its domain.
pub(super) fn convert(expr: Expr, to: &Domain, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let from = field_of(&expr, schema)?;
    let fsp = || lit(6i64);
    // What a constant is made into is noted where it is compared.
    let is_text = matches!(SqlType::of(&from), SqlType::Text { .. } | SqlType::Bytes);
    let is_watched = rule.watches() && literal(&expr).is_none() && is_text;
    let converted = match to {
        Domain::Places(decimals) if is_watched && SqlType::of(&from).is_text() => {
            return Ok(rule.truncated.number_of(NumberKind::Place(*decimals), expr));
        }
        Domain::Double if is_watched => {
            return Ok(rule.truncated.number_of(NumberKind::Double, expr));
        }
        Domain::DateTime if is_watched => {
            let text = rule.truncated.moment(MomentKind::PartialDateTime, expr);
            call("$moment", vec![text])
        }
        Domain::Time if is_watched => call(
            "$clock",
            vec![rule.truncated.moment(MomentKind::TimeOrDate, expr)],
        ),
        // Beside a COLLATE clause bytes are a text.
        Domain::Keys(collation) if from.data_type() == &DataType::Binary => {
            let text = fold(call("$text_of_bytes", vec![expr]), schema);
            return Ok(collation_key(text, *collation));
        }
        Domain::Keys(collation) => {
            if let Some(text) = literal(&expr).and_then(|value| value.try_as_str().flatten()) {
                check_literal(text, &SqlType::of(&from), *collation)?;
            }
            return Ok(collation_key(expr, *collation));
        }
        Domain::Bytes if from.data_type() == &DataType::Binary => expr,
        Domain::Bytes => call("$cast_binary", vec![expr]),
        Domain::Values(data_type) if from.data_type() == data_type => expr,
        Domain::Values(data_type) => cast(expr, data_type.clone()),
        Domain::Places(decimals) if SqlType::of(&from).is_text() => {
            call("$text_place", vec![expr, lit(i64::from(*decimals))])
        }
        Domain::Places(decimals) => cast(
            expr,
            DataType::Decimal128(MAX_PRECISION, *decimals as i8 + 1),
        ),
        Domain::Double if from.data_type() == &DataType::Float64 => expr,
        Domain::Double => call("$cast_double", vec![expr]),
        Domain::Date if from.data_type() == &DataType::Date32 => expr,
        Domain::Date => call("$cast_date", vec![expr]),
        Domain::DateTime => match from.data_type() {
            DataType::Timestamp(..) => expr,
            DataType::Date32 => cast(expr, microseconds()),
            DataType::Duration(_) => rule.of_today(expr, 6),
            _ if SqlType::of(&from).is_string() => call("$moment", vec![expr]),
            _ => call("$cast_datetime", vec![expr, fsp()]),
        },
        Domain::Time if matches!(from.data_type(), DataType::Duration(_)) => expr,
        Domain::Time if SqlType::of(&from).is_string() => call("$clock", vec![expr]),
        Domain::Time => call("$cast_time", vec![expr, fsp()]),
    };
    Ok(fold(converted, schema))
}
