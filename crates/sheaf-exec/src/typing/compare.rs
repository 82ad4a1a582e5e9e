//! Comparisons by MySQL's rules ("Type Conversion in Expression Evaluation" of the manual).
//!
//! Both operands go to one [`Domain`]: sort keys of a collation, bytes, an exact number type, doubles, dates, points in time
//! or times. A literal compared with a column goes to the column's own type whenever the outcome is the same, even if the
//! literal lies between two values of that type (`int < 5.5` is `int <= 5`) or outside of all of them.

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::logical_plan::{Projection, Subquery};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, binary_expr, lit};
use sheaf_table::Collation;
use std::sync::Arc;

use super::{cast, field_of, fold, is_hybrid, literal, number_of_hybrid, operands, type_of};
use crate::collation::collation_key;
use crate::functions::calendar::{self, MICROS_PER_DAY, full_year};
use crate::functions::control::microseconds;
use crate::functions::number::{double_to_decimal, power_of_ten, text_to_decimal};
use crate::functions::types::{MAX_PRECISION, SqlType, common_collation};
use crate::functions::{EvaluationError, call};

/// Where two operands are compared.
#[derive(Clone, Debug, PartialEq)]
enum Domain {
    /// Sort keys.
    Keys(Collation),
    Bytes,
    /// Values of one Arrow type for which arrow's comparison is MySQL's.
    Values(DataType),
    Double,
    Date,
    DateTime,
    Time,
}

/// The domain in which values of two types are compared.
fn domain(
    left: &SqlType,
    right: &SqlType,
    left_type: &DataType,
    right_type: &DataType,
) -> Result<Domain> {
    use SqlType::{Bytes, Date, DateTime, Time};
    Ok(match (left, right) {
        (left, right) if left.is_text() && right.is_text() => {
            Domain::Keys(common_collation(&[left.clone(), right.clone()], "=")?.0)
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
        _ => Domain::Double,
    })
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
    let precision = left_digits
        .max(right_digits)
        .saturating_add(scale)
        .min(MAX_PRECISION);
    DataType::Decimal128(precision.max(scale), scale as i8)
}

/// An operand in its domain.
fn convert(expr: Expr, to: &Domain, schema: &DFSchema) -> Result<Expr> {
    let from = field_of(&expr, schema)?;
    let fsp = || lit(6i64);
    let converted = match to {
        Domain::Keys(collation) => return Ok(collation_key(expr, *collation)),
        Domain::Bytes if from.data_type() == &DataType::Binary => expr,
        Domain::Bytes => call("$cast_binary", vec![expr]),
        Domain::Values(data_type) if from.data_type() == data_type => expr,
        Domain::Values(data_type) => cast(expr, data_type.clone()),
        Domain::Double if from.data_type() == &DataType::Float64 => expr,
        Domain::Double => call("$cast_double", vec![expr]),
        Domain::Date if from.data_type() == &DataType::Date32 => expr,
        Domain::Date => call("$cast_date", vec![expr]),
        Domain::DateTime => match from.data_type() {
            DataType::Timestamp(..) => expr,
            DataType::Date32 => cast(expr, microseconds()),
            _ => call("$cast_datetime", vec![expr, fsp()]),
        },
        Domain::Time if matches!(from.data_type(), DataType::Duration(_)) => expr,
        Domain::Time => call("$cast_time", vec![expr, fsp()]),
    };
    Ok(fold(converted, schema))
}

fn unknown() -> Expr {
    lit(ScalarValue::Boolean(None))
}

/// `left op right`, typed. `op` is a comparison or `IsNotDistinctFrom`.
pub(super) fn comparison(op: Operator, left: Expr, right: Expr, schema: &DFSchema) -> Result<Expr> {
    // The literal on the right.
    if literal(&left).is_some()
        && literal(&right).is_none()
        && let Some(swapped) = op.swap()
    {
        return comparison(swapped, right, left, schema);
    }
    let (left_field, right_field) = (field_of(&left, schema)?, field_of(&right, schema)?);
    let (left_type, right_type) = (SqlType::of(&left_field), SqlType::of(&right_field));
    let is_number = |ty: &SqlType| ty.is_exact_number() || ty.is_float();
    if is_hybrid(&left) && is_number(&right_type) {
        return comparison(op, number_of_hybrid(left), right, schema);
    }
    if is_hybrid(&right) && is_number(&left_type) {
        return comparison(op, left, number_of_hybrid(right), schema);
    }
    if left_type == SqlType::Null || right_type == SqlType::Null {
        return Ok(match op {
            Operator::IsNotDistinctFrom if right_type == SqlType::Null => fold_is_null(left),
            Operator::IsNotDistinctFrom => fold_is_null(right),
            _ => unknown(),
        });
    }
    if let Some(value) = literal(&right)
        && !value.is_null()
        && literal(&left).is_none()
        && let Some(exact) = with_literal(
            op,
            &left,
            &left_type,
            left_field.data_type(),
            value,
            &right_field,
        )?
    {
        return Ok(exact);
    }
    let to = domain(
        &left_type,
        &right_type,
        left_field.data_type(),
        right_field.data_type(),
    )?;
    Ok(binary_expr(
        convert(left, &to, schema)?,
        op,
        convert(right, &to, schema)?,
    ))
}

/// Whether two values are equal, or might be if it was known what NULL stands for.
pub(super) fn may_be_equal(args: Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
    let [left, right] = operands(args)?;
    let equal = comparison(Operator::Eq, left, right, schema)?;
    let Expr::BinaryExpr(BinaryExpr {
        left,
        op: Operator::Eq,
        right,
    }) = &equal
    else {
        return Ok(equal.is_not_false());
    };
    let mut may_be_equal = equal.clone();
    for operand in [left, right] {
        if operand.nullable(schema)? {
            may_be_equal = may_be_equal.or(operand.as_ref().clone().is_null());
        }
    }
    Ok(may_be_equal)
}

/// `x BETWEEN low AND high`: all three are compared as one type.
///
/// A pair alone would be compared as another one only if x is a string. Between a string and a number it is a number, between
/// a string and a date a point in time.
pub(super) fn between(args: Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
    let [mut x, low, high] = operands(args)?;
    let types = [
        type_of(&x, schema)?,
        type_of(&low, schema)?,
        type_of(&high, schema)?,
    ];
    if types.iter().all(SqlType::is_string) {
        let to = match types.iter().all(SqlType::is_text) {
            true => Domain::Keys(common_collation(&types, "between")?.0),
            false => Domain::Bytes,
        };
        let x = convert(x, &to, schema)?;
        let (low, high) = (convert(low, &to, schema)?, convert(high, &to, schema)?);
        // The literal on the right.
        let ordered = |op: Operator, x: Expr, bound: Expr| match op.swap() {
            Some(swapped) if literal(&x).is_some() => binary_expr(bound, swapped, x),
            _ => binary_expr(x, op, bound),
        };
        let from = ordered(Operator::GtEq, x.clone(), low);
        return Ok(from.and(ordered(Operator::LtEq, x, high)));
    }
    let [x_type, low_type, high_type] = &types;
    if x_type.is_string() && low_type.is_string() != high_type.is_string() {
        let other = match low_type.is_string() {
            true => high_type,
            false => low_type,
        };
        x = match other {
            SqlType::Date | SqlType::DateTime { .. } => {
                if let Some(text) = literal(&x) {
                    // What is no date is an error.
                    point_in_time(text, x_type, other)?;
                }
                convert(x, &Domain::DateTime, schema)?
            }
            other if other.is_exact_number() || other.is_float() => {
                convert(x, &Domain::Double, schema)?
            }
            _ => x,
        };
    }
    let from = comparison(Operator::GtEq, x.clone(), low, schema)?;
    let to = comparison(Operator::LtEq, x, high, schema)?;
    Ok(from.and(to))
}

fn fold_is_null(expr: Expr) -> Expr {
    match literal(&expr) {
        Some(value) => lit(value.is_null()),
        None => expr.is_null(),
    }
}

/// A literal's place among the values of a type: the largest value that is not above it.
enum Place {
    /// The value itself.
    At(ScalarValue),
    /// Between this value and the next.
    Above(ScalarValue),
    BelowAll,
    AboveAll,
}

/// `expr op place`, exactly.
fn compare_with_place(op: Operator, expr: &Expr, place: Place) -> Expr {
    let compare = |op: Operator, value: ScalarValue| {
        binary_expr(expr.clone(), op, Expr::Literal(value, None))
    };
    // True and false, but unknown for NULL.
    let constant = |value: bool| match (op, value) {
        (Operator::IsNotDistinctFrom, _) => lit(false),
        (_, true) => expr.clone().is_not_null().or(unknown()),
        (_, false) => expr.clone().is_null().and(unknown()),
    };
    match (place, op) {
        (Place::At(value), op) => compare(op, value),
        (Place::Above(floor), Operator::Lt | Operator::LtEq) => compare(Operator::LtEq, floor),
        (Place::Above(floor), Operator::Gt | Operator::GtEq) => compare(Operator::Gt, floor),
        (Place::AboveAll, Operator::Lt | Operator::LtEq)
        | (Place::BelowAll, Operator::Gt | Operator::GtEq) => constant(true),
        (_, Operator::NotEq) => constant(true),
        _ => constant(false),
    }
}

/// A comparison with a literal, in the type of the other operand. `None` if that is not possible without changing
/// the outcome.
fn with_literal(
    op: Operator,
    left: &Expr,
    left_type: &SqlType,
    data_type: &DataType,
    value: &ScalarValue,
    value_field: &arrow::datatypes::Field,
) -> Result<Option<Expr>> {
    let value_type = SqlType::of(value_field);
    let place = match left_type {
        SqlType::Integer { .. } | SqlType::Year | SqlType::Boolean | SqlType::Decimal { .. } => {
            let Some((mut unscaled, scale)) = exact_value(value, &value_type) else {
                return Ok(None);
            };
            if *left_type == SqlType::Year && scale == 0 && (1..100).contains(&unscaled) {
                unscaled = i128::from(full_year(unscaled as i32));
            }
            match number_place(unscaled, scale, data_type) {
                Some(place) => place,
                None => return Ok(None),
            }
        }
        SqlType::Date | SqlType::DateTime { .. } => {
            let micros = match point_in_time(value, &value_type, left_type)? {
                Some(micros) => micros,
                None => return Ok(None),
            };
            if *left_type == SqlType::Date {
                let days = ScalarValue::Date32(Some(micros.div_euclid(MICROS_PER_DAY) as i32));
                if micros.rem_euclid(MICROS_PER_DAY) == 0 {
                    Place::At(days)
                } else {
                    Place::Above(days)
                }
            } else {
                Place::At(ScalarValue::TimestampMicrosecond(Some(micros), None))
            }
        }
        SqlType::Time { .. } => match (value.try_as_str().flatten(), integer_value(value)) {
            (Some(text), _) => match calendar::parse_time(text) {
                Some((micros, _)) => Place::At(ScalarValue::DurationMicrosecond(Some(micros))),
                None => return Err(EvaluationError::wrong_value("TIME", text).into()),
            },
            (None, Some(number)) => match calendar::time_from_number(number) {
                Some(micros) => Place::At(ScalarValue::DurationMicrosecond(Some(micros))),
                None => return Ok(None),
            },
            _ => return Ok(None),
        },
        SqlType::Double if value_type.is_exact_number() => {
            match value.cast_to(&DataType::Float64) {
                Ok(value) => Place::At(value),
                Err(_) => return Ok(None),
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(compare_with_place(op, left, place)))
}

fn integer_value(value: &ScalarValue) -> Option<i64> {
    match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(Some(number))) if value.data_type().is_integer() => Some(number),
        _ => None,
    }
}

/// A numeric literal, or a text that MySQL would compare as one, as `unscaled` / 10^`scale`. Texts and doubles
/// of more than 15 digits are compared as doubles, which have no more.
fn exact_value(value: &ScalarValue, ty: &SqlType) -> Option<(i128, u8)> {
    const DOUBLE_DIGITS: u8 = 15;
    let short = |(unscaled, scale): (i128, u8)| {
        (unscaled.abs() < power_of_ten(DOUBLE_DIGITS)).then_some((unscaled, scale))
    };
    match value {
        ScalarValue::Decimal128(Some(unscaled), _, scale) => {
            Some((*unscaled, u8::try_from(*scale).ok()?))
        }
        ScalarValue::UInt64(Some(number)) => Some((i128::from(*number), 0)),
        ScalarValue::Float64(Some(number)) => short(double_to_decimal(*number)?),
        _ if ty.is_text() => short(text_to_decimal(value.try_as_str()??)?),
        _ => Some((i128::from(integer_value(value)?), 0)),
    }
}

/// Where a number stands among the values of an exact type.
fn number_place(unscaled: i128, scale: u8, data_type: &DataType) -> Option<Place> {
    let (lowest, highest, target): (i128, i128, u8) = match data_type {
        DataType::Int8 => (i128::from(i8::MIN), i128::from(i8::MAX), 0),
        DataType::Int16 => (i128::from(i16::MIN), i128::from(i16::MAX), 0),
        DataType::Int32 => (i128::from(i32::MIN), i128::from(i32::MAX), 0),
        DataType::Int64 => (i128::from(i64::MIN), i128::from(i64::MAX), 0),
        DataType::UInt8 => (0, i128::from(u8::MAX), 0),
        DataType::UInt16 => (0, i128::from(u16::MAX), 0),
        DataType::UInt32 => (0, i128::from(u32::MAX), 0),
        DataType::UInt64 => (0, i128::from(u64::MAX), 0),
        DataType::Decimal128(precision, target) => {
            let limit = power_of_ten(*precision) - 1;
            (-limit, limit, u8::try_from(*target).ok()?)
        }
        _ => return None,
    };
    let (floor, exact) = if scale <= target {
        match power_of_ten(target - scale).checked_mul(unscaled) {
            Some(value) => (value, true),
            None if unscaled > 0 => return Some(Place::AboveAll),
            None => return Some(Place::BelowAll),
        }
    } else {
        let unit = power_of_ten(scale - target);
        (unscaled.div_euclid(unit), unscaled.rem_euclid(unit) == 0)
    };
    if floor < lowest {
        return Some(Place::BelowAll);
    }
    if floor > highest {
        return Some(Place::AboveAll);
    }
    let value = match data_type {
        DataType::Int8 => ScalarValue::Int8(Some(floor as i8)),
        DataType::Int16 => ScalarValue::Int16(Some(floor as i16)),
        DataType::Int32 => ScalarValue::Int32(Some(floor as i32)),
        DataType::Int64 => ScalarValue::Int64(Some(floor as i64)),
        DataType::UInt8 => ScalarValue::UInt8(Some(floor as u8)),
        DataType::UInt16 => ScalarValue::UInt16(Some(floor as u16)),
        DataType::UInt32 => ScalarValue::UInt32(Some(floor as u32)),
        DataType::UInt64 => ScalarValue::UInt64(Some(floor as u64)),
        DataType::Decimal128(precision, target) => {
            ScalarValue::Decimal128(Some(floor), *precision, *target)
        }
        _ => return None,
    };
    Some(if exact {
        Place::At(value)
    } else {
        Place::Above(value)
    })
}

/// A literal as a point in time, for a comparison with a date or a point in time.
///
/// # Errors
/// 1525 for a text that is none.
fn point_in_time(
    value: &ScalarValue,
    ty: &SqlType,
    compared_with: &SqlType,
) -> Result<Option<i64>> {
    Ok(match value {
        ScalarValue::Date32(Some(days)) => Some(i64::from(*days) * MICROS_PER_DAY),
        ScalarValue::TimestampMicrosecond(Some(micros), _) => Some(*micros),
        _ if ty.is_text() => {
            let Some(Some(text)) = value.try_as_str() else {
                return Ok(None);
            };
            match calendar::parse_datetime(text) {
                Some(parsed) => Some(parsed.micros),
                None => {
                    let name = if *compared_with == SqlType::Date {
                        "DATE"
                    } else {
                        "DATETIME"
                    };
                    return Err(EvaluationError::wrong_value(name, text).into());
                }
            }
        }
        _ => integer_value(value)
            .and_then(calendar::datetime_from_number)
            .map(|parsed| parsed.micros),
    })
}

/// `x IN (list)`: plain where each member is a literal of x's domain.
pub(super) fn in_list(args: Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
    let mut args = args.into_iter();
    let Some(x) = args.next() else {
        return Ok(lit(false));
    };
    let mut subject: Option<Expr> = None;
    let mut members: Vec<Expr> = Vec::new();
    let mut others: Vec<Expr> = Vec::new();
    let mut has_null = false;
    for member in args {
        if literal(&member).is_some_and(ScalarValue::is_null) {
            has_null = true;
            continue;
        }
        match comparison(Operator::Eq, x.clone(), member, schema)? {
            Expr::BinaryExpr(equality)
                if equality.op == Operator::Eq
                    && literal(&equality.right).is_some()
                    && literal(&equality.left).is_none()
                    && subject
                        .as_ref()
                        .is_none_or(|subject| *subject == *equality.left) =>
            {
                subject = Some(*equality.left);
                members.push(*equality.right);
            }
            other => others.push(other),
        }
    }
    let result = match subject {
        Some(subject) if members.len() == 1 => Some(subject.eq(members.remove(0))),
        Some(subject) => Some(subject.in_list(members, false)),
        None => None,
    };
    others.splice(0..0, result);
    let mut result = any_of(others);
    if has_null {
        result = Some(match result {
            Some(result) => result.or(unknown()),
            None => unknown(),
        });
    }
    Ok(result.unwrap_or_else(|| lit(false)))
}

/// The disjunction of some conditions, a tree that is not deep however many they are. `None` if there are none.
fn any_of(mut conditions: Vec<Expr>) -> Option<Expr> {
    const FEW: usize = 16;
    while conditions.len() > FEW {
        let mut pairs = Vec::with_capacity(conditions.len().div_ceil(2));
        let mut rest = conditions.into_iter();
        while let Some(condition) = rest.next() {
            pairs.push(match rest.next() {
                Some(other) => condition.or(other),
                None => condition,
            });
        }
        conditions = pairs;
    }
    conditions.into_iter().reduce(Expr::or)
}

/// A value as a condition.
pub(super) fn truth(value: Expr, schema: &DFSchema) -> Result<Expr> {
    let ty = type_of(&value, schema)?;
    if let Some(constant) = literal(&value) {
        if constant.is_null() {
            return Ok(unknown());
        }
        if let ScalarValue::Boolean(_) = constant {
            return Ok(value);
        }
        return Ok(fold(call("$is_not_zero", vec![value]), schema));
    }
    Ok(match ty {
        SqlType::Boolean => value,
        SqlType::Null => unknown(),
        SqlType::Integer { .. } | SqlType::Decimal { .. } | SqlType::Double | SqlType::Year => {
            comparison(Operator::NotEq, value, lit(0i64), schema)?
        }
        _ => call("$is_not_zero", vec![value]),
    })
}

/// The two sides of a join key in one domain.
pub(super) fn join_key(
    left: Expr,
    right: Expr,
    left_schema: &DFSchema,
    right_schema: &DFSchema,
) -> Result<(Expr, Expr)> {
    let (left_field, right_field) = (
        field_of(&left, left_schema)?,
        field_of(&right, right_schema)?,
    );
    let to = domain(
        &SqlType::of(&left_field),
        &SqlType::of(&right_field),
        left_field.data_type(),
        right_field.data_type(),
    )?;
    Ok((
        convert(left, &to, left_schema)?,
        convert(right, &to, right_schema)?,
    ))
}

/// The name of a subquery's column that was converted: another one than its own, which decorrelation may need beside it.
const CONVERTED: &str = "$converted";

/// The operand of IN (or ANY, ALL) and the column of its subquery in one domain.
pub(super) fn with_subquery(
    expr: Expr,
    subquery: Subquery,
    schema: &DFSchema,
) -> Result<(Expr, Subquery)> {
    let inner = subquery.subquery.schema();
    if inner.fields().len() != 1 {
        return Err(
            EvaluationError::new(1241, "21000", "Operand should contain 1 column(s)").into(),
        );
    }
    let (left_field, right_field) = (field_of(&expr, schema)?, Arc::clone(&inner.fields()[0]));
    let (left_type, right_type) = (SqlType::of(&left_field), SqlType::of(&right_field));
    if left_type == SqlType::Null || right_type == SqlType::Null {
        return Ok((expr, subquery));
    }
    let to = domain(
        &left_type,
        &right_type,
        left_field.data_type(),
        right_field.data_type(),
    )?;
    let expr = convert(expr, &to, schema)?;
    let column = Expr::Column(inner.columns()[0].clone());
    let converted = convert(column.clone(), &to, inner)?;
    if converted == column {
        return Ok((expr, subquery));
    }
    // Into the subquery's own projection where it has one, so that its shape stays what decorrelation expects.
    let plan = match subquery.subquery.as_ref() {
        LogicalPlan::Projection(projection) => {
            let input_schema = projection.input.schema();
            let item = projection.expr[0].clone().unalias();
            Projection::try_new(
                vec![convert(item, &to, input_schema)?.alias(CONVERTED)],
                Arc::clone(&projection.input),
            )?
        }
        _ => Projection::try_new(
            vec![converted.alias(CONVERTED)],
            Arc::clone(&subquery.subquery),
        )?,
    };
    let subquery = subquery.with_plan(Arc::new(LogicalPlan::Projection(plan)));
    Ok((expr, subquery))
}
