//! Where a literal lies among the values of a type: at one of them, between two, or outside of all.
//!
//! A comparison with a place is exact, so a literal becomes a key of an index and nothing is rounded.

use arrow::datatypes::{DataType, Field};
use datafusion_common::ScalarValue;
use datafusion_common::tree_node::TreeNode;
use datafusion_expr::{Expr, Operator, binary_expr, lit};
use sheaf_access::{i256_of, int256_of};
use sheaf_types::number;
use sheaf_types::number::{
    Floor, Int256, double_floor, double_to_decimal, floor_of, power_of_ten, tells_multiples_apart,
    text_floor, wide_floor_of, wide_text_floor,
};

use super::operand::{Operand, integer_value, is_column, text_of};
use super::year::year_beside;
use crate::functions::call;
use crate::functions::types::{SqlType, float_decimals};

pub(in crate::typing) fn unknown() -> Expr {
    lit(ScalarValue::Boolean(None))
}

/// A literal's place among the values of a type: the largest value that is not above it.
pub(in crate::typing) enum Place {
    /// The value itself.
    At(ScalarValue),
    /// Between this value and the next.
    Above(ScalarValue),
    BelowAll,
    AboveAll,
}

/// `expr op place`, exactly.
pub(super) fn compare_with_place(op: Operator, expr: &Expr, place: Place) -> Expr {
    let compare = |op: Operator, value: ScalarValue| {
        binary_expr(expr.clone(), op, Expr::Literal(value, None))
    };
    // True and false, but unknown for NULL.
    let constant = |value: bool| match (op, value) {
        _ if has_calls(expr) => {
            let name = if value { "$always" } else { "$never" };
            let known = call(name, vec![expr.clone()]);
            match op {
                Operator::IsNotDistinctFrom => known.is_true(),
                _ => known,
            }
        }
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

/// Whether a value is more than columns and constants: to compute it may fail, or note something, even where it is
/// known what it is compared as.
pub(in crate::typing) fn has_calls(expr: &Expr) -> bool {
    let is_call = |expr: &Expr| Ok(matches!(expr, Expr::ScalarFunction(_)));
    expr.exists(is_call).unwrap_or(true)
}

/// What a value is equal to nowhere: false, and unknown of NULL.
pub(in crate::typing) fn never_equal(expr: &Expr) -> Expr {
    compare_with_place(Operator::Eq, expr, Place::BelowAll)
}

/// An exact number as the nearest double.
pub(super) fn double_of(value: &ScalarValue) -> Option<ScalarValue> {
    match value {
        ScalarValue::Decimal128(Some(unscaled), _, scale) => {
            let scale = u8::try_from(*scale).ok()?;
            let double = number::decimal_to_double(*unscaled, scale);
            Some(ScalarValue::Float64(Some(double)))
        }
        ScalarValue::Decimal256(Some(unscaled), _, scale) => {
            let scale = u8::try_from(*scale).ok()?;
            let double = number::wide_decimal_to_double(int256_of(*unscaled), scale);
            Some(ScalarValue::Float64(Some(double)))
        }
        _ => value.cast_to(&DataType::Float64).ok(),
    }
}

/// Where an exact number lies among the values of a FLOAT(M,D) that has at least its decimals: at the nearest one, if
/// that is the same number to as many decimals. A FLOAT(8,2) has no 999999.99. `None` for any other FLOAT, which is
/// compared as a DOUBLE.
pub(super) fn place_in_float_column(
    column: &Field,
    value: &ScalarValue,
    value_type: &SqlType,
) -> Option<Place> {
    let decimals = float_decimals(column)?;
    if decimals < value_type.shown_decimals() {
        return None;
    }
    let ScalarValue::Float64(Some(double)) = double_of(value)? else {
        return None;
    };
    let nearest = double as f32;
    let half = 10f64.powi(-i32::from(decimals)) / 2.0;
    match (f64::from(nearest) - double).abs() < half {
        true => Some(Place::At(ScalarValue::Float32(Some(nearest)))),
        false => place_among_floats(column, value),
    }
}

/// Where an exact number lies among the values of a FLOAT(M,D), as the DOUBLE that it is.
pub(super) fn place_among_floats(column: &Field, value: &ScalarValue) -> Option<Place> {
    float_decimals(column)?;
    let ScalarValue::Float64(Some(double)) = double_of(value)? else {
        return None;
    };
    let nearest = double as f32;
    if !nearest.is_finite() {
        return None;
    }
    let float = |number: f32| ScalarValue::Float32(Some(number));
    Some(match f64::from(nearest) {
        number if number == double => Place::At(float(nearest)),
        number if number < double => Place::Above(float(nearest)),
        _ => Place::Above(float(nearest.next_down())),
    })
}

/// What a column of exact numbers is compared with instead of a number, where the number is one of its values.
pub fn number_of_column(column: &Field, number: &ScalarValue) -> Option<ScalarValue> {
    let decimals = match SqlType::of(column) {
        SqlType::Integer { .. } => 0,
        SqlType::Decimal {
            scale, decimals, ..
        } if decimals >= scale => scale,
        _ => return None,
    };
    if matches!(column.data_type(), DataType::Decimal256(..)) {
        let floor = wide_number_floor(number, decimals)?;
        return match wide_place_among(floor, column.data_type())? {
            Place::At(value) => Some(value),
            _ => None,
        };
    }
    let floor = match number {
        ScalarValue::Int64(Some(number)) => floor_of(i128::from(*number), 0, decimals),
        ScalarValue::UInt64(Some(number)) => floor_of(i128::from(*number), 0, decimals),
        ScalarValue::Decimal128(Some(unscaled), _, scale) => {
            floor_of(*unscaled, u8::try_from(*scale).ok()?, decimals)
        }
        wide @ ScalarValue::Decimal256(Some(_), ..) => wide_number_floor(wide, decimals)?.narrow(),
        _ => return None,
    };
    match place_among(floor, column.data_type())? {
        Place::At(value) => Some(value),
        _ => None,
    }
}

/// Where a literal stands among the values of an exact type.
pub(in crate::typing) fn number_place(
    left: &Operand,
    value: &ScalarValue,
    value_type: &SqlType,
) -> Option<Place> {
    let data_type = left.field.data_type();
    let decimals = match data_type {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
            u8::try_from(*scale).ok()?
        }
        _ => 0,
    };
    if matches!(data_type, DataType::Decimal256(..)) {
        let floor = match value {
            ScalarValue::Float64(Some(number)) if is_column(&left.expr) || is_short(*number) => {
                match has_one_place(*number, data_type) {
                    true => wide_text_floor(&format!("{number:e}"), decimals),
                    false => return None,
                }
            }
            _ => match text_of(value, value_type) {
                Some(text) => wide_text_floor(&text, decimals),
                None => wide_number_floor(value, decimals)?,
            },
        };
        return wide_place_among(floor, data_type);
    }
    if let Some(year) = year_beside(left, value, value_type) {
        return place_among(Floor::At(year), data_type);
    }
    let floor = floor_of_constant(left, (value, value_type), decimals)?;
    place_among(floor, data_type)
}

/// Where a literal stands among numbers of so many decimals.
fn floor_of_constant(
    left: &Operand,
    (value, value_type): (&ScalarValue, &SqlType),
    decimals: u8,
) -> Option<Floor> {
    let is_integer = left.field.data_type().is_integer();
    Some(match value {
        ScalarValue::Decimal128(Some(unscaled), _, scale) => {
            floor_of(*unscaled, u8::try_from(*scale).ok()?, decimals)
        }
        wide @ ScalarValue::Decimal256(Some(_), ..) => wide_number_floor(wide, decimals)?.narrow(),
        ScalarValue::UInt64(Some(number)) => floor_of(i128::from(*number), 0, decimals),
        ScalarValue::Float64(Some(number)) if is_column(&left.expr) || is_short(*number) => {
            if !has_one_place(*number, left.field.data_type()) {
                return None;
            }
            double_floor(*number, decimals, is_integer)?
        }
        _ => match text_of(value, value_type) {
            Some(text) => text_floor(&text, decimals),
            None => floor_of(i128::from(integer_value(value)?), 0, decimals),
        },
    })
}

/// Where an exact number stands among numbers of so many decimals, of which there are up to 65 digits.
fn wide_number_floor(value: &ScalarValue, decimals: u8) -> Option<Floor<Int256>> {
    let (unscaled, scale) = match value {
        ScalarValue::Decimal256(Some(unscaled), _, scale) => (int256_of(*unscaled), *scale),
        ScalarValue::Decimal128(Some(unscaled), _, scale) => ((*unscaled).into(), *scale),
        ScalarValue::UInt64(Some(number)) => (i128::from(*number).into(), 0),
        _ => (i128::from(integer_value(value)?).into(), 0),
    };
    Some(wide_floor_of(unscaled, u8::try_from(scale).ok()?, decimals))
}

/// A number among the values of a wide type.
fn wide_place_among(floor: Floor<Int256>, data_type: &DataType) -> Option<Place> {
    let DataType::Decimal256(precision, scale) = data_type else {
        return None;
    };
    let (floor, is_exact) = match floor {
        Floor::At(value) => (value, true),
        Floor::Above(value) => (value, false),
        Floor::BelowAll => return Some(Place::BelowAll),
        Floor::AboveAll => return Some(Place::AboveAll),
    };
    let highest = Int256::nines(*precision);
    if floor < highest.negated() {
        return Some(Place::BelowAll);
    }
    if floor > highest || floor == highest && !is_exact {
        return Some(Place::AboveAll);
    }
    let value = ScalarValue::Decimal256(Some(i256_of(floor)), *precision, *scale);
    Some(match is_exact {
        true => Place::At(value),
        false => Place::Above(value),
    })
}

/// Whether a double is equal to at most one value of an exact type. A DECIMAL of more digits than a double has several
/// that are the same double: no range of keys is found by one place then, and they are compared as doubles.
fn has_one_place(number: f64, data_type: &DataType) -> bool {
    let (DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale)) =
        data_type
    else {
        return true;
    };
    let is_beyond = number.abs() > 2.0 * 10_f64.powi(i32::from(*precision) - i32::from(*scale));
    is_beyond || u8::try_from(*scale).is_ok_and(|scale| tells_multiples_apart(number, scale))
}

/// Whether a comparison as doubles has the same outcome as an exact one.
fn is_short(number: f64) -> bool {
    const DOUBLE_DIGITS: u8 = 15;
    double_to_decimal(number)
        .is_some_and(|(unscaled, _)| unscaled.abs() < power_of_ten(DOUBLE_DIGITS))
}

/// A number among the values of an exact type.
fn place_among(floor: Floor, data_type: &DataType) -> Option<Place> {
    let (lowest, highest): (i128, i128) = match data_type {
        DataType::Int8 => (i128::from(i8::MIN), i128::from(i8::MAX)),
        DataType::Int16 => (i128::from(i16::MIN), i128::from(i16::MAX)),
        DataType::Int32 => (i128::from(i32::MIN), i128::from(i32::MAX)),
        DataType::Int64 => (i128::from(i64::MIN), i128::from(i64::MAX)),
        DataType::UInt8 => (0, i128::from(u8::MAX)),
        DataType::UInt16 => (0, i128::from(u16::MAX)),
        DataType::UInt32 => (0, i128::from(u32::MAX)),
        DataType::UInt64 => (0, i128::from(u64::MAX)),
        DataType::Decimal128(precision, _) => {
            let limit = power_of_ten(*precision) - 1;
            (-limit, limit)
        }
        _ => return None,
    };
    let (floor, is_exact) = match floor {
        Floor::At(value) => (value, true),
        Floor::Above(value) => (value, false),
        Floor::BelowAll => return Some(Place::BelowAll),
        Floor::AboveAll => return Some(Place::AboveAll),
    };
    if floor < lowest {
        return Some(Place::BelowAll);
    }
    if floor > highest || floor == highest && !is_exact {
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
        DataType::Decimal128(precision, scale) => {
            ScalarValue::Decimal128(Some(floor), *precision, *scale)
        }
        _ => return None,
    };
    Some(match is_exact {
        true => Place::At(value),
        false => Place::Above(value),
    })
}
