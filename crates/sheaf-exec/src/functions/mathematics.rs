//! Numeric functions. ROUND, TRUNCATE, CEIL, FLOOR and ABS are exact on exact numbers; the transcendental ones are
//! doubles and NULL outside of their domain.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, UInt64Array};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type};
use datafusion_common::Result;
use sheaf_types::number::{Int256, divide_rounding, power_of_ten, rescale};

use super::random_numbers::{first_numbers, numbers_of_seed};
use super::types::{MAX_DECIMALS, SqlType, common_float_decimals, field};
use super::{Call, EACH_ROW, EvaluationError, Function, Length, Operands, units, wide_decimal};

fn double(_: &Operands<'_>) -> Result<Field> {
    Ok(field::double())
}

/// Whether the function of this name is one of these, or of others whose arguments are numbers.
pub(crate) fn takes_numbers(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| function.name == name) || units::are_of(name)
}

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict("abs", (1, 1), same_number, abs)
        .length(Length::OfOperand(0))
        .key_operand(),
    Function::strict("ceil", (1, 1), whole_number, |call| {
        whole(call, f64::ceil, i128::div_euclid, true)
    })
    .key_operand(),
    Function::strict("floor", (1, 1), whole_number, |call| {
        whole(call, f64::floor, i128::div_euclid, false)
    })
    .key_operand(),
    Function::strict("round", (1, 2), rounded_type, |call| round(call, true))
        .stops_at_null()
        .key_operand(),
    Function::strict("truncate", (2, 2), rounded_type, |call| round(call, false)).key_operand(),
    Function::strict(
        "sign",
        (1, 1),
        |_| Ok(field::bigint()),
        |call| {
            let signs = call.double(0)?.array.unary::<_, Int64Type>(|value| {
                if value > 0.0 {
                    1
                } else {
                    -i64::from(value < 0.0)
                }
            });
            Ok(Arc::new(signs))
        },
    ),
    Function::new("pow", (2, 2), double, |call| {
        let (base, exponent) = (call.double(0)?, call.double(1)?);
        let mut values = Vec::with_capacity(call.rows());
        for row in 0..call.rows() {
            values.push(match (base.get(row), exponent.get(row)) {
                (Some(base), Some(exponent)) => {
                    let power = base.powf(exponent);
                    if !power.is_finite() {
                        return Err(EvaluationError::out_of_range(
                            "DOUBLE",
                            &format!("pow({base},{exponent})"),
                        )
                        .into());
                    }
                    Some(power)
                }
                _ => None,
            });
        }
        Ok(Arc::new(Float64Array::from(values)))
    })
    .stops_at_null()
    .null_in_doubt(),
    Function::new("sqrt", (1, 1), double, |call| {
        partial(call, |x| (x >= 0.0).then(|| x.sqrt()))
    })
    .null_in_doubt(),
    Function::new("exp", (1, 1), double, |call| finite(call, "exp", f64::exp)).null_in_doubt(),
    Function::new("ln", (1, 1), double, |call| {
        partial(call, |x| (x > 0.0).then(|| x.ln()))
    })
    .null_in_doubt(),
    Function::new("log2", (1, 1), double, |call| {
        partial(call, |x| (x > 0.0).then(|| x.log2()))
    })
    .null_in_doubt(),
    Function::new("log10", (1, 1), double, |call| {
        partial(call, |x| (x > 0.0).then(|| x.log10()))
    })
    .null_in_doubt(),
    Function::new("log", (1, 2), double, |call| {
        if call.len() == 1 {
            return partial(call, |x| (x > 0.0).then(|| x.ln()));
        }
        let (bases, values) = (call.double(0)?, call.double(1)?);
        let result: Float64Array = (0..call.rows())
            .map(|row| {
                let (base, value) = (bases.get(row)?, values.get(row)?);
                (base > 0.0 && base != 1.0 && value > 0.0).then(|| value.ln() / base.ln())
            })
            .collect();
        Ok(Arc::new(result))
    })
    .stops_at_null()
    .null_in_doubt(),
    Function::strict("sin", (1, 1), double, |call| {
        partial(call, |x| Some(x.sin()))
    })
    .null_in_doubt(),
    Function::strict("cos", (1, 1), double, |call| {
        partial(call, |x| Some(x.cos()))
    })
    .null_in_doubt(),
    Function::strict("tan", (1, 1), double, |call| {
        partial(call, |x| Some(x.tan()))
    })
    .null_in_doubt(),
    Function::strict("cot", (1, 1), double, |call| {
        finite(call, "cot", |x| 1.0 / x.tan())
    })
    .null_in_doubt(),
    Function::new("asin", (1, 1), double, |call| {
        partial(call, |x| (-1.0..=1.0).contains(&x).then(|| x.asin()))
    })
    .null_in_doubt(),
    Function::new("acos", (1, 1), double, |call| {
        partial(call, |x| (-1.0..=1.0).contains(&x).then(|| x.acos()))
    })
    .null_in_doubt(),
    Function::strict("atan", (1, 2), double, atan).null_in_doubt(),
    Function::strict("atan2", (1, 2), double, atan)
        .stops_at_null()
        .null_in_doubt(),
    Function::strict("degrees", (1, 1), double, |call| {
        finite(call, "degrees", |x| x * (180.0 / std::f64::consts::PI))
    }),
    // A double, and what it was computed by: error 1690 if it left the range on the way.
    Function::new("$finite", (2, 2), double, |call| {
        let values = call.double(0)?;
        if values
            .array
            .iter()
            .flatten()
            .any(|value| !value.is_finite())
        {
            let computed = call.text(1)?;
            let expression = computed.get(0).unwrap_or_default();
            return Err(EvaluationError::out_of_range("DOUBLE", expression).into());
        }
        Ok(Arc::new(values.array))
    }),
    Function::strict("radians", (1, 1), double, |call| {
        partial(call, |x| Some(x.to_radians()))
    }),
    Function::new(
        "pi",
        (0, 0),
        |_| Ok(field::double_of(Some(6))),
        |call| {
            Ok(Arc::new(Float64Array::from(vec![
                std::f64::consts::PI;
                call.rows()
            ])))
        },
    )
    .never_null(),
    Function::new("rand", (0, 1), double, rand)
        .never_null()
        .volatile()
        .in_defaults(),
    Function::new(
        EACH_ROW,
        (0, 0),
        |_| Ok(field::bigint()),
        |call| Ok(Arc::new(Int64Array::from(vec![0; call.rows()]))),
    )
    .never_null()
    .volatile(),
];

/// Whether this is a function whose last argument has to be positive, and the base in front of it, too.
pub fn is_logarithm(name: &str) -> bool {
    matches!(name, "ln" | "log" | "log2" | "log10")
}

/// ABS and its like: text counts as a double, everything else keeps its type.
fn same_number(operands: &Operands<'_>) -> Result<Field> {
    Ok(match operands.sql_type(0) {
        SqlType::Integer { unsigned: true } => field::unsigned_bigint(),
        integer if integer.is_integer() => field::bigint(),
        SqlType::Decimal {
            precision,
            scale,
            decimals,
        } => {
            let digits = precision - scale;
            field::decimal_of(&operands.types(), digits, scale, decimals)
        }
        _ => field::double_of(common_float_decimals(operands.fields)),
    })
}

fn whole_number(operands: &Operands<'_>) -> Result<Field> {
    Ok(match operands.sql_type(0) {
        // A DECIMAL of few digits gives a BIGINT.
        SqlType::Decimal {
            precision, scale, ..
        } if precision - scale < 18 => field::bigint(),
        SqlType::Decimal {
            precision, scale, ..
        } => field::decimal_of(&operands.types(), precision - scale + 1, 0, 0),
        ty if ty.is_integer() => same_number(operands)?,
        _ => field::double(),
    })
}

fn rounded_type(operands: &Operands<'_>) -> Result<Field> {
    let places = if operands.fields.len() == 1 {
        Some(0)
    } else {
        operands.int(1)
    };
    Ok(match operands.sql_type(0) {
        SqlType::Decimal {
            precision,
            scale,
            decimals,
        } => {
            // As many digits as asked for, if that is known.
            let shown = places.map_or(decimals, |places| {
                places.clamp(0, i64::from(MAX_DECIMALS)) as u8
            });
            let digits = (precision - scale).saturating_add(1);
            field::decimal_of(&operands.types()[..1], digits, shown, shown)
        }
        ty if ty.is_integer() => same_number(operands)?,
        _ => field::double(),
    })
}

fn partial(call: &Call<'_>, function: fn(f64) -> Option<f64>) -> Result<ArrayRef> {
    let values = call.double(0)?;
    Ok(Arc::new(
        (0..call.rows())
            .map(|row| function(values.get(row)?))
            .collect::<Float64Array>(),
    ))
}

/// Error 1690 where a function leaves the range of doubles.
fn finite(call: &Call<'_>, name: &str, function: fn(f64) -> f64) -> Result<ArrayRef> {
    let values = call.double(0)?;
    let mut results = Vec::with_capacity(call.rows());
    for row in 0..call.rows() {
        let argument = values.get(row);
        let result = argument.map(function);
        if let (Some(argument), Some(result)) = (argument, result)
            && !result.is_finite()
        {
            let expression = format!("{name}({argument})");
            return Err(EvaluationError::out_of_range("DOUBLE", &expression).into());
        }
        results.push(result);
    }
    Ok(Arc::new(Float64Array::from(results)))
}

fn atan(call: &Call<'_>) -> Result<ArrayRef> {
    if call.len() == 1 {
        return partial(call, |x| Some(x.atan()));
    }
    let (y, x) = (call.double(0)?, call.double(1)?);
    Ok(Arc::new(
        (0..call.rows())
            .map(|row| Some(y.get(row)?.atan2(x.get(row)?)))
            .collect::<Float64Array>(),
    ))
}

fn abs(call: &Call<'_>) -> Result<ArrayRef> {
    match call.result_type() {
        DataType::Int64 => {
            let values = call.int(0)?.array;
            let result: Result<Int64Array> = values
                .iter()
                .map(|value| match value {
                    Some(i64::MIN) => Err(EvaluationError::out_of_range(
                        "BIGINT",
                        &format!("abs({})", i64::MIN),
                    )
                    .into()),
                    value => Ok(value.map(i64::abs)),
                })
                .collect();
            Ok(Arc::new(result?))
        }
        DataType::UInt64 => Ok(Arc::new(call.unsigned(0)?.array)),
        DataType::Decimal256(_, scale) => wide_decimal::abs(call, *scale as u8),
        DataType::Decimal128(_, scale) => {
            let values = call.decimal(0, *scale as u8)?.array;
            let result = values.unary::<_, arrow::datatypes::Decimal128Type>(i128::abs);
            Ok(Arc::new(result.with_data_type(call.result_type().clone())))
        }
        _ => Ok(Arc::new(
            call.double(0)?.array.unary::<_, Float64Type>(f64::abs),
        )),
    }
}

/// CEIL and FLOOR.
fn whole(
    call: &Call<'_>,
    of_double: fn(f64) -> f64,
    floor: fn(i128, i128) -> i128,
    up: bool,
) -> Result<ArrayRef> {
    if call.result_type() == &DataType::Float64 {
        return Ok(Arc::new(
            call.double(0)?.array.unary::<_, Float64Type>(of_double),
        ));
    }
    if call.result_type() == &DataType::UInt64 {
        return Ok(Arc::new(call.unsigned(0)?.array));
    }
    let scale = call.sql_type(0).decimal_digits().1;
    if call.sql_type(0).is_wide() && call.result_type() != &DataType::Int64 {
        return wide_decimal::whole(call, up);
    }
    if call.sql_type(0).is_wide() {
        let values = call.wide_decimal(0, scale)?;
        let whole = |number: Int256| wide_decimal::whole_number(number, scale, up)?.to_i128();
        let whole = (0..call.rows()).map(|row| Some(whole(values.get(row)?)? as i64));
        return Ok(Arc::new(whole.collect::<Int64Array>()));
    }
    let unit = power_of_ten(scale);
    let values = call.decimal(0, scale)?.array;
    let value = |value: i128| {
        if up {
            -floor(-value, unit)
        } else {
            floor(value, unit)
        }
    };
    Ok(match call.result_type() {
        DataType::Int64 => Arc::new(values.unary::<_, Int64Type>(|number| value(number) as i64)),
        target => {
            let result = values.unary::<_, arrow::datatypes::Decimal128Type>(value);
            Arc::new(result.with_data_type(target.clone()))
        }
    })
}

/// ROUND, half away from zero on exact numbers and half to even on doubles as MySQL's libraries do; TRUNCATE, towards
/// zero.
fn round(call: &Call<'_>, to_nearest: bool) -> Result<ArrayRef> {
    let places = if call.len() == 2 {
        Some(call.int(1)?)
    } else {
        None
    };
    let places = |row: usize| places.as_ref().map_or(Some(0), |places| places.get(row));
    if call.result_type() == &DataType::Float64 {
        let values = call.double(0)?;
        let result: Float64Array = (0..call.rows())
            .map(|row| Some(round_double(values.get(row)?, places(row)?, to_nearest)))
            .collect();
        return Ok(Arc::new(result));
    }
    if let DataType::Decimal128(_, target) | DataType::Decimal256(_, target) = call.result_type()
        && call.sql_type(0).is_wide()
    {
        return wide_decimal::round(call, places, to_nearest, *target as u8);
    }
    let (scale, target) = match call.result_type() {
        DataType::Decimal128(_, target) => (call.sql_type(0).decimal_digits().1, *target as u8),
        _ => (0, 0),
    };
    let values = call.decimal(0, scale)?;
    let rounded = |row: usize| -> Option<Option<i128>> {
        let (Some(value), Some(places)) = (values.get(row), places(row)) else {
            return Some(None);
        };
        let places = places.clamp(-38, i64::from(scale));
        let value = if places >= 0 {
            cut(value, scale - places as u8, to_nearest)
        } else {
            // Zeros before the point: cut, then put the zeros back.
            let zeros = places.unsigned_abs() as u8;
            let lost = scale + zeros;
            if lost > 38 {
                0
            } else {
                cut(value, lost, to_nearest).checked_mul(power_of_ten(zeros))?
            }
        };
        let at = if places >= 0 { places as u8 } else { 0 };
        Some(Some(rescale(value, at, target)?))
    };
    let values: Option<Vec<Option<i128>>> = (0..call.rows()).map(rounded).collect();
    let out_of_range = || EvaluationError::out_of_range("DECIMAL", "round(x)");
    let values = values.ok_or_else(out_of_range)?;
    Ok(match call.result_type() {
        DataType::Int64 => {
            let values: Option<Vec<Option<i64>>> = values
                .into_iter()
                .map(|value| value.map(i64::try_from).transpose().ok())
                .collect();
            Arc::new(Int64Array::from(values.ok_or_else(|| {
                EvaluationError::out_of_range("BIGINT", "round(x)")
            })?))
        }
        DataType::UInt64 => {
            let values: Option<Vec<Option<u64>>> = values
                .into_iter()
                .map(|value| value.map(u64::try_from).transpose().ok())
                .collect();
            Arc::new(UInt64Array::from(values.ok_or_else(|| {
                EvaluationError::out_of_range("BIGINT UNSIGNED", "round(x)")
            })?))
        }
        target => Arc::new(Decimal128Array::from(values).with_data_type(target.clone())),
    })
}

/// Drops `digits` decimal digits.
fn cut(value: i128, digits: u8, to_nearest: bool) -> i128 {
    let unit = power_of_ten(digits);
    if to_nearest {
        divide_rounding(value, unit)
    } else {
        value / unit
    }
}

/// The nearest double. Beyond 10^22 `powi` is not.
fn power_of_ten_as_double(exponent: u64) -> f64 {
    const EXACT: u64 = 22;
    match exponent {
        0..=EXACT => 10f64.powi(exponent as i32),
        _ => format!("1e{exponent}").parse().unwrap_or(f64::INFINITY),
    }
}

pub(super) fn round_double(value: f64, places: i64, to_nearest: bool) -> f64 {
    let whole = |value: f64| {
        if to_nearest {
            value.round_ties_even()
        } else {
            value.trunc()
        }
    };
    // No double has as many digits.
    match places {
        ..-308 => return 0.0,
        309.. => return value,
        _ => {}
    }
    let power = power_of_ten_as_double(places.unsigned_abs());
    let rounded = if places < 0 {
        whole(value / power) * power
    } else {
        whole(value * power) / power
    };
    // So many digits that the product overflowed: nothing to round.
    if rounded.is_finite() { rounded } else { value }
}

fn rand(call: &Call<'_>) -> Result<ArrayRef> {
    let rows = call.rows();
    if call.is_empty() {
        return Ok(call.seeded_numbers().draw(rows));
    }
    let seeds = call.int(0)?;
    let seed = |row| seeds.get(row).unwrap_or(0) as u32;
    Ok(match call.scalar(0).is_some() {
        true => numbers_of_seed(seed(0), rows),
        false => first_numbers((0..rows).map(seed)),
    })
}
