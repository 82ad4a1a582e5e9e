//! A constant of a comparison, brought into a column's own type.
//!
//! The constant need not be a value that the column can hold: `int_column < 2.5`, `tinyint_column > 1000`,
//! `date_column >= '1995-01-01 12:00'`. A range needs the greatest column value that is not above the constant (its
//! *floor*), and whether the two are equal. Then each comparison with the constant is one with the floor.
//!
//! ```text
//!   column <  2.5   is  column <= 2        column =  2.5   is never true
//!   column >= 2.5   is  column >  2        column <  1000  is  always true for a TINYINT that is not NULL
//! ```

use std::ops::Bound;

use datafusion_common::ScalarValue;
use sheaf_access::{CompareOp, arrow_type, i256_of, int256_of};
use sheaf_table::ValueRef;
use sheaf_types::column_type::Stored;
use sheaf_types::number::{
    self, Int256, MAX_DIGITS, MAX_WIDE_DIGITS, decimal_to_double, is_wide, wide_floor_of,
};
use sheaf_types::{ColumnType, Value};

/// Microseconds of a day.
const DAY_MICROS: i64 = 86_400_000_000;

/// Where a constant lies among the values of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Floor {
    /// NULL: no comparison with it is true.
    Null,
    /// Below every value of the column.
    Below,
    /// At this value (`exact`), or between it and the next.
    At { value: Value, exact: bool },
}

/// What a comparison with a constant says of the column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Bounds {
    /// True for no value.
    Never,
    /// True within; a column value that is NULL is not.
    Within {
        lower: Bound<Value>,
        upper: Bound<Value>,
    },
    /// `<>`: true below and above this value.
    Except(Value),
}

impl Floor {
    /// The column values for which `column op constant` is true.
    pub(crate) fn bounds(self, op: CompareOp) -> Bounds {
        use Bound::{Excluded, Included, Unbounded};
        let within = |lower, upper| Bounds::Within { lower, upper };
        match (self, op) {
            (Floor::Null, _) => Bounds::Never,
            (Floor::Below, CompareOp::Greater | CompareOp::GreaterOrEqual | CompareOp::NotEq) => {
                within(Unbounded, Unbounded)
            }
            (Floor::Below, CompareOp::Eq | CompareOp::Less | CompareOp::LessOrEqual) => {
                Bounds::Never
            }
            (Floor::At { value, exact: true }, CompareOp::Eq) => {
                within(Included(value.clone()), Included(value))
            }
            (Floor::At { value, exact: true }, CompareOp::NotEq) => Bounds::Except(value),
            (Floor::At { value, exact: true }, CompareOp::Less) => {
                within(Unbounded, Excluded(value))
            }
            (Floor::At { value, exact: true }, CompareOp::GreaterOrEqual) => {
                within(Included(value), Unbounded)
            }
            (Floor::At { exact: false, .. }, CompareOp::Eq) => Bounds::Never,
            (Floor::At { exact: false, .. }, CompareOp::NotEq) => within(Unbounded, Unbounded),
            (Floor::At { value, .. }, CompareOp::Less | CompareOp::LessOrEqual) => {
                within(Unbounded, Included(value))
            }
            (Floor::At { value, .. }, CompareOp::Greater | CompareOp::GreaterOrEqual) => {
                within(Excluded(value), Unbounded)
            }
        }
    }
}

/// Where `constant` lies among the values of a column of type `ty`; `None` if the two are not compared by the
/// column's order (a string with a number, for example).
pub(crate) fn floor(ty: &ColumnType, constant: &ScalarValue) -> Option<Floor> {
    if constant.is_null() {
        return Some(Floor::Null);
    }
    match ty.stored() {
        // MySQL compares a DECIMAL with a double as doubles, which is another order.
        Stored::Decimal { .. }
            if matches!(constant, ScalarValue::Float32(_) | ScalarValue::Float64(_)) =>
        {
            None
        }
        Stored::Decimal { precision, scale } if is_wide(precision) => {
            wide_floor(precision, scale, ty.is_unsigned(), constant)
        }
        Stored::Decimal { precision, scale } => {
            decimal_floor(precision, scale, ty.is_unsigned(), Number::of(constant)?)
        }
        Stored::Float => {
            let wanted = double_of(constant)?;
            #[allow(
                clippy::cast_possible_truncation,
                reason = "rounding is what is wanted"
            )]
            let mut value = wanted as f32;
            if f64::from(value) > wanted {
                value = value.next_down();
            }
            Some(Floor::At {
                exact: f64::from(value) == wanted,
                value: Value::Float(value),
            })
        }
        Stored::Double => Some(exactly(Value::Double(double_of(constant)?))),
        // No index has JSON values.
        Stored::String if ty.is_json() => None,
        // Strings are compared by their sort keys, which is what the constant is.
        Stored::String => Some(exactly(Value::Bytes(bytes_of(constant)?.to_vec()))),
        Stored::Small | Stored::Unsigned(_) if ty.has_labels() => None,
        Stored::Signed(_) if ty.is_temporal() => temporal_floor(ty, constant),
        stored @ (Stored::Signed(_) | Stored::Unsigned(_) | Stored::Small) => {
            let (least, most) = ty.whole_range()?;
            integer_floor(least, most, Number::of(constant)?, |value| match stored {
                Stored::Unsigned(_) => u64::try_from(value).map(Value::UInt).ok(),
                _ => Some(stored_number(i64::try_from(value).ok()?, ty)),
            })
        }
    }
}

/// The same of a column of dates, times or both.
fn temporal_floor(ty: &ColumnType, constant: &ScalarValue) -> Option<Floor> {
    match (constant, ty.clock_digits()) {
        (ScalarValue::DurationMicrosecond(Some(micros)), Some(_)) if !ty.has_date() => {
            Some(exactly(stored_number(*micros, ty)))
        }
        _ if !ty.has_date() => None,
        (constant, Some(_)) => Some(exactly(stored_number(micros_of(constant)?, ty))),
        (ScalarValue::Date32(Some(days)), None) => {
            Some(exactly(stored_number(i64::from(*days), ty)))
        }
        (ScalarValue::TimestampMicrosecond(Some(micros), None), None) => {
            let days = i32::try_from(micros.div_euclid(DAY_MICROS)).ok()?;
            Some(Floor::At {
                value: stored_number(i64::from(days), ty),
                exact: micros.rem_euclid(DAY_MICROS) == 0,
            })
        }
        _ => None,
    }
}

/// The value of a column that stores this number.
fn stored_number(number: i64, ty: &ColumnType) -> Value {
    ValueRef::Int(number).to_value(ty)
}

fn exactly(value: Value) -> Floor {
    Floor::At { value, exact: true }
}

/// The bytes of a binary constant.
pub(crate) fn bytes_of(constant: &ScalarValue) -> Option<&[u8]> {
    match constant {
        ScalarValue::Binary(Some(bytes)) | ScalarValue::BinaryView(Some(bytes)) => Some(bytes),
        _ => None,
    }
}

/// The text of a string constant.
pub(crate) fn text_of(constant: &ScalarValue) -> Option<&str> {
    match constant {
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)) => Some(text),
        _ => None,
    }
}

fn micros_of(constant: &ScalarValue) -> Option<i64> {
    match constant {
        ScalarValue::TimestampMicrosecond(Some(micros), None) => Some(*micros),
        ScalarValue::Date32(Some(days)) => Some(i64::from(*days) * DAY_MICROS),
        _ => None,
    }
}

fn double_of(constant: &ScalarValue) -> Option<f64> {
    let value = match constant {
        ScalarValue::Float64(Some(value)) => *value,
        ScalarValue::Float32(Some(value)) => f64::from(*value),
        other => {
            let Number { unscaled, scale } = Number::of(other)?;
            decimal_to_double(unscaled, scale)
        }
    };
    value.is_finite().then_some(value)
}

/// An exact number: `unscaled` / 10^`scale`.
#[derive(Clone, Copy)]
struct Number {
    unscaled: i128,
    scale: u8,
}

impl Number {
    fn of(constant: &ScalarValue) -> Option<Number> {
        let whole = |value: i128| {
            Some(Number {
                unscaled: value,
                scale: 0,
            })
        };
        match constant {
            ScalarValue::Int8(Some(v)) => whole(i128::from(*v)),
            ScalarValue::Int16(Some(v)) => whole(i128::from(*v)),
            ScalarValue::Int32(Some(v)) => whole(i128::from(*v)),
            ScalarValue::Int64(Some(v)) => whole(i128::from(*v)),
            ScalarValue::UInt8(Some(v)) => whole(i128::from(*v)),
            ScalarValue::UInt16(Some(v)) => whole(i128::from(*v)),
            ScalarValue::UInt32(Some(v)) => whole(i128::from(*v)),
            ScalarValue::UInt64(Some(v)) => whole(i128::from(*v)),
            ScalarValue::Decimal128(Some(unscaled), _, scale) => Some(Number {
                unscaled: *unscaled,
                scale: u8::try_from(*scale).ok()?,
            }),
            ScalarValue::Decimal256(Some(unscaled), _, scale) => Some(Number {
                unscaled: int256_of(*unscaled).to_i128()?,
                scale: u8::try_from(*scale).ok()?,
            }),
            // Doubles that are integers, below the point where they stop being exact.
            #[allow(clippy::cast_possible_truncation, reason = "in range, checked")]
            ScalarValue::Float64(Some(v)) if v.is_finite() && v.abs() < 9.0e15 => {
                let unscaled = (v.floor() * 2.0) as i128 + i128::from(v.fract() != 0.0);
                // Halves are enough to say "between two integers": the value is only compared with integers.
                Some(Number {
                    unscaled: unscaled * 5,
                    scale: 1,
                })
            }
            _ => None,
        }
    }

    /// The greatest multiple of 10^-`scale` that is not above, unscaled, and whether it is equal.
    fn floor_at(self, scale: u8) -> Option<(i128, bool)> {
        if scale >= self.scale {
            let factor = 10i128.checked_pow(u32::from(scale - self.scale))?;
            Some((self.unscaled.checked_mul(factor)?, true))
        } else {
            let factor = 10i128.checked_pow(u32::from(self.scale - scale))?;
            Some((
                self.unscaled.div_euclid(factor),
                self.unscaled.rem_euclid(factor) == 0,
            ))
        }
    }
}

fn integer_floor(
    least: i128,
    most: i128,
    number: Number,
    value: impl Fn(i128) -> Option<Value>,
) -> Option<Floor> {
    let (floor, exact) = number.floor_at(0)?;
    if floor < least {
        return Some(Floor::Below);
    }
    Some(Floor::At {
        value: value(floor.min(most))?,
        exact: exact && floor <= most,
    })
}

fn decimal_floor(precision: u8, scale: u8, unsigned: bool, number: Number) -> Option<Floor> {
    let most = 10i128.checked_pow(u32::from(precision))? - 1;
    let least = if unsigned { 0 } else { -most };
    let (floor, exact) = number.floor_at(scale)?;
    if floor < least {
        return Some(Floor::Below);
    }
    Some(Floor::At {
        value: Value::Decimal {
            unscaled: floor.min(most),
            scale,
        },
        exact: exact && floor <= most,
    })
}

/// As [`decimal_floor`], of a wide column.
fn wide_floor(precision: u8, scale: u8, unsigned: bool, constant: &ScalarValue) -> Option<Floor> {
    let (unscaled, from) = match constant {
        ScalarValue::Decimal256(Some(unscaled), _, scale) => {
            (int256_of(*unscaled), u8::try_from(*scale).ok()?)
        }
        other => {
            let Number { unscaled, scale } = Number::of(other)?;
            (unscaled.into(), scale)
        }
    };
    let most = Int256::nines(precision);
    let least = if unsigned {
        Int256::ZERO
    } else {
        most.negated()
    };
    let (floor, exact) = match wide_floor_of(unscaled, from, scale) {
        number::Floor::At(floor) => (floor, true),
        number::Floor::Above(floor) => (floor, false),
        number::Floor::BelowAll => return Some(Floor::Below),
        number::Floor::AboveAll => (most, false),
    };
    if floor < least {
        return Some(Floor::Below);
    }
    Some(Floor::At {
        value: Value::of_decimal(floor.min(most), precision, scale)?,
        exact: exact && floor <= most,
    })
}

/// A column value as an Arrow scalar of the column's type; `None` for NULL and for types that never need it.
pub(crate) fn scalar(value: &Value, ty: &ColumnType) -> Option<ScalarValue> {
    let data_type = arrow_type(ty);
    let scalar = match value {
        Value::Int(value) => ScalarValue::Int64(Some(*value)),
        Value::UInt(value) => ScalarValue::UInt64(Some(*value)),
        Value::Year(value) => ScalarValue::UInt16(Some(*value)),
        Value::Decimal { unscaled, scale } => {
            ScalarValue::Decimal128(Some(*unscaled), MAX_DIGITS, i8::try_from(*scale).ok()?)
        }
        Value::WideDecimal { unscaled, scale } => ScalarValue::Decimal256(
            Some(i256_of((*unscaled).into())),
            MAX_WIDE_DIGITS,
            i8::try_from(*scale).ok()?,
        ),
        Value::Float(value) => ScalarValue::Float32(Some(*value)),
        // Adding zero makes 0.0 of -0.0.
        Value::Double(value) => ScalarValue::Float64(Some(*value + 0.0)),
        Value::Date(days) => ScalarValue::Date32(Some(*days)),
        Value::DateTime(micros) | Value::Timestamp(micros) => {
            ScalarValue::TimestampMicrosecond(Some(*micros), None)
        }
        Value::Time(micros) => ScalarValue::DurationMicrosecond(Some(*micros)),
        Value::Text(text) => ScalarValue::Utf8View(Some(text.clone())),
        Value::Bytes(bytes) => ScalarValue::Binary(Some(bytes.clone())),
        Value::Json(bytes) => ScalarValue::BinaryView(Some(bytes.clone())),
        Value::Null | Value::Enum(_) | Value::Set(_) => return None,
    };
    scalar.cast_to(&data_type).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    use sheaf_types::column_type::Sign;

    const INT: ColumnType = ColumnType::Int { sign: Sign::Signed };
    const PRICE: ColumnType = ColumnType::Decimal {
        precision: 5,
        scale: 2,
        sign: Sign::Signed,
    };

    fn at(value: Value, exact: bool) -> Option<Floor> {
        Some(Floor::At { value, exact })
    }

    #[test]
    fn constants_between_two_values_have_a_floor() {
        assert_eq!(
            floor(&INT, &ScalarValue::Decimal128(Some(25), 2, 1)),
            at(Value::Int(2), false)
        );
        assert_eq!(
            floor(&INT, &ScalarValue::Decimal128(Some(-25), 2, 1)),
            at(Value::Int(-3), false)
        );
        assert_eq!(
            floor(&INT, &ScalarValue::Float64(Some(-0.5))),
            at(Value::Int(-1), false)
        );
        assert_eq!(
            floor(&INT, &ScalarValue::Float64(Some(7.0))),
            at(Value::Int(7), true)
        );
        let noon = DAY_MICROS + DAY_MICROS / 2;
        assert_eq!(
            floor(
                &ColumnType::Date,
                &ScalarValue::TimestampMicrosecond(Some(noon), None)
            ),
            at(Value::Date(1), false)
        );
        assert_eq!(
            floor(&PRICE, &ScalarValue::Decimal128(Some(12345), 5, 3)),
            at(
                Value::Decimal {
                    unscaled: 1234,
                    scale: 2
                },
                false
            )
        );
        assert_eq!(
            floor(&PRICE, &ScalarValue::Int64(Some(3))),
            at(
                Value::Decimal {
                    unscaled: 300,
                    scale: 2
                },
                true
            )
        );
    }

    #[test]
    fn constants_outside_of_the_type() {
        let tiny = ColumnType::TinyInt { sign: Sign::Signed };
        assert_eq!(
            floor(&tiny, &ScalarValue::Int64(Some(1000))),
            at(Value::Int(127), false)
        );
        assert_eq!(
            floor(&tiny, &ScalarValue::Int64(Some(-1000))),
            Some(Floor::Below)
        );
        assert_eq!(floor(&tiny, &ScalarValue::Int64(None)), Some(Floor::Null));
        assert_eq!(
            floor(&tiny, &ScalarValue::from("12")),
            None,
            "a string is compared as a double"
        );
    }

    #[test]
    fn comparisons_become_bounds() {
        use Bound::{Excluded, Included, Unbounded};
        let two_and_a_half = || Floor::At {
            value: Value::Int(2),
            exact: false,
        };
        assert_eq!(
            two_and_a_half().bounds(CompareOp::Less),
            Bounds::Within {
                lower: Unbounded,
                upper: Included(Value::Int(2))
            }
        );
        assert_eq!(
            two_and_a_half().bounds(CompareOp::GreaterOrEqual),
            Bounds::Within {
                lower: Excluded(Value::Int(2)),
                upper: Unbounded
            }
        );
        assert_eq!(two_and_a_half().bounds(CompareOp::Eq), Bounds::Never);
        assert_eq!(Floor::Below.bounds(CompareOp::Less), Bounds::Never);
        assert_eq!(
            Floor::Below.bounds(CompareOp::Greater),
            Bounds::Within {
                lower: Unbounded,
                upper: Unbounded
            }
        );
    }
}
