//! Kernels of DECIMALs of more than 38 digits, which are [`Int256`] where others are `i128`.
//!
//! The modules of the functions say what their types are, and call the kernels here
//! where the type of the result, or of an argument, is wide. So nothing else gets slower. A result may have more digits
//! than a column, as MySQL's have, but no more than 67: beyond it is error 1690.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Decimal256Array};
use arrow::datatypes::DataType;
use datafusion_common::{DataFusionError, Result};
use sheaf_access::{i256_of, int256_of};
use sheaf_types::number::Int256;

use super::call_name::name_in_sql;
use super::conversion::WIDEST;
use super::types::SqlType;
use super::{Call, EvaluationError};

/// The most digits that a result has: all that a [`Wide`](sheaf_types::number::Wide) holds.
pub(crate) const LIMIT_DIGITS: u8 = 67;

/// Digits behind the point that DIV takes of texts and doubles: as many as beside 65 digits before it have room.
const INEXACT_SCALE: u8 = 11;

/// Whether an argument is wide, or the result.
pub(super) fn takes_wide(call: &Call<'_>) -> bool {
    let is_wide = |ty: &DataType| matches!(ty, DataType::Decimal256(..));
    let mut arguments = call.args.arg_fields.iter();
    is_wide(call.result_type()) || arguments.any(|field| is_wide(field.data_type()))
}

fn overflow(symbol: &str) -> DataFusionError {
    EvaluationError::out_of_range("DECIMAL", &format!("(a {symbol} b)")).into()
}

/// Numbers as an array of the type of the result.
fn array_of(
    call: &Call<'_>,
    numbers: impl Iterator<Item = Result<Option<Int256>>>,
) -> Result<ArrayRef> {
    let target = call.result_type().clone();
    if let DataType::Decimal128(..) = target {
        let numbers = numbers.map(|number| match number? {
            Some(number) => number
                .to_i128()
                .map(Some)
                .ok_or_else(|| overflow(call.name())),
            None => Ok(None),
        });
        let array: Result<Decimal128Array> = numbers.collect();
        return Ok(Arc::new(array?.with_data_type(target)));
    }
    let numbers = numbers.map(|number| Ok(number?.map(i256_of)));
    let array: Result<Decimal256Array> = numbers.collect();
    Ok(Arc::new(array?.with_data_type(target)))
}

/// A result of two numbers, NULL of NULL.
fn binary(
    call: &Call<'_>,
    symbol: &str,
    (left_scale, right_scale): (u8, u8),
    compute: impl Fn(Int256, Int256) -> Option<Option<Int256>>,
) -> Result<ArrayRef> {
    let left = call.wide_decimal(0, left_scale)?;
    let right = call.wide_decimal(1, right_scale)?;
    let limit = Int256::power_of_ten(LIMIT_DIGITS).unwrap_or_default();
    let fits = |number: &Option<Int256>| number.is_none_or(|number| number.abs() < limit);
    let number = |row: usize| match (left.get(row), right.get(row)) {
        (Some(left), Some(right)) => {
            let number = compute(left, right).filter(fits);
            number.ok_or_else(|| overflow(symbol))
        }
        _ => Ok(None),
    };
    array_of(call, (0..call.rows()).map(number))
}

fn own_scales(call: &Call<'_>) -> (u8, u8) {
    let own = |argument: usize| call.sql_type(argument).decimal_digits().1;
    (own(0), own(1))
}

/// `+ - *`: by their symbol.
pub(super) fn arithmetic(call: &Call<'_>, symbol: &str, kept: u8) -> Result<ArrayRef> {
    let (left_scale, right_scale) = own_scales(call);
    // Of what is not shown nothing is rounded yet.
    let is_rounded = SqlType::of(&call.args.return_field).shown_decimals() == kept;
    binary(call, symbol, (left_scale, right_scale), |left, right| {
        let same = || {
            Some((
                left.rescaled(left_scale, kept)?,
                right.rescaled(right_scale, kept)?,
            ))
        };
        let number = match symbol {
            "*" => {
                let exact = left_scale + right_scale;
                let cut = exact.saturating_sub(kept);
                // The first digit that is cut decides which way it is rounded.
                let rounded = u8::from(cut > 0 && is_rounded);
                let product = left.product(right, cut - rounded)?;
                product.rescaled(exact - cut + rounded, kept)
            }
            "+" => same().and_then(|(left, right)| left.checked_add(right)),
            _ => same().and_then(|(left, right)| left.checked_sub(right)),
        };
        number.map(Some)
    })
}

/// `/`, cut or rounded to the digits that are kept; NULL of a divisor that is zero.
pub(super) fn divide(call: &Call<'_>, kept: u8, is_rounded: bool) -> Result<ArrayRef> {
    let (left_scale, right_scale) = own_scales(call);
    binary(call, "/", (left_scale, right_scale), |left, right| {
        if right.is_zero() {
            return Some(None);
        }
        // left/10^l / (right/10^r) = left * 10^(kept + r - l) / right, at scale `kept`.
        // The first digit behind them decides which way it is rounded.
        let computed = kept + u8::from(is_rounded);
        let zeros = computed + right_scale;
        let quotient = match zeros.checked_sub(left_scale) {
            Some(zeros) => left.quotient(zeros, right)?,
            None => left.quotient(0, right)?.truncated(left_scale - zeros, 0)?,
        };
        quotient.rescaled(computed, kept).map(Some)
    })
}

/// Whole quotients and remainders; NULL of a divisor that is zero. A quotient beyond the range is error 1690.
pub(super) fn whole_quotients(call: &Call<'_>) -> Result<Vec<Option<Int256>>> {
    let scale_of = |argument: usize| match call.sql_type(argument) {
        ty if ty.is_exact_number() || ty.is_temporal() => ty.decimal_digits().1,
        _ => INEXACT_SCALE,
    };
    let (left_scale, right_scale) = (scale_of(0), scale_of(1));
    let left = call.wide_decimal(0, left_scale)?;
    let right = call.wide_decimal(1, right_scale)?;
    let number = |row: usize| match (left.get(row), right.get(row)) {
        (Some(_), Some(right)) if right.is_zero() => Ok(None),
        (Some(left), Some(right)) => {
            let quotient = match right_scale.checked_sub(left_scale) {
                Some(zeros) => left.quotient(zeros, right),
                None => {
                    let divisor = right.rescaled(right_scale, left_scale);
                    divisor.and_then(|divisor| left.quotient(0, divisor))
                }
            };
            quotient.map(Some).ok_or_else(|| overflow("DIV"))
        }
        _ => Ok(None),
    };
    (0..call.rows()).map(number).collect()
}

/// `%`
pub(super) fn remainder(call: &Call<'_>, scale: u8) -> Result<ArrayRef> {
    let (left_scale, right_scale) = own_scales(call);
    binary(call, "%", (left_scale, right_scale), |left, right| {
        if right.is_zero() {
            return Some(None);
        }
        // A divisor that has too many digits is larger than any dividend.
        let Some(right) = right.rescaled(right_scale, scale) else {
            return left.rescaled(left_scale, scale).map(Some);
        };
        let remainder = match scale.checked_sub(left_scale) {
            Some(zeros) => left.remainder(zeros, right),
            None => left.rescaled(left_scale, scale)?.remainder(0, right),
        };
        remainder.map(Some)
    })
}

/// A result of one number.
fn unary(
    call: &Call<'_>,
    scale: u8,
    compute: impl Fn(Int256) -> Option<Int256>,
) -> Result<ArrayRef> {
    let values = call.wide_decimal(0, scale)?;
    let name = name_in_sql(call.name());
    let out_of_range = || EvaluationError::out_of_range("DECIMAL", &format!("{name}(x)"));
    let number = |row: usize| match values.get(row) {
        Some(number) => {
            let number = compute(number).ok_or_else(out_of_range)?;
            Ok(Some(number))
        }
        None => Ok(None),
    };
    array_of(call, (0..call.rows()).map(number))
}

pub(super) fn negate(call: &Call<'_>, scale: u8) -> Result<ArrayRef> {
    unary(call, scale, |number| Some(number.negated()))
}

pub(super) fn abs(call: &Call<'_>, scale: u8) -> Result<ArrayRef> {
    unary(call, scale, |number| Some(number.abs()))
}

/// Of a number with guard digits those that are shown.
pub(super) fn round_to_shown(call: &Call<'_>, shown: u8) -> Result<ArrayRef> {
    unary(call, shown, Some)
}

/// CEIL and FLOOR as a DECIMAL.
pub(super) fn whole(call: &Call<'_>, up: bool) -> Result<ArrayRef> {
    let scale = call.sql_type(0).decimal_digits().1;
    unary(call, scale, |number| whole_number(number, scale, up))
}

/// The least whole number that is not below, or the greatest that is not above.
pub(super) fn whole_number(number: Int256, scale: u8, up: bool) -> Option<Int256> {
    let cut = number.truncated(scale, 0)?;
    let is_exact = cut.rescaled(0, scale) == Some(number);
    match (is_exact, up, number.is_negative()) {
        (false, true, false) => cut.checked_add(1.into()),
        (false, false, true) => cut.checked_sub(1.into()),
        _ => Some(cut),
    }
}

/// ROUND and TRUNCATE to a number of places.
pub(super) fn round(
    call: &Call<'_>,
    places: impl Fn(usize) -> Option<i64>,
    to_nearest: bool,
    target: u8,
) -> Result<ArrayRef> {
    let scale = call.sql_type(0).decimal_digits().1;
    let values = call.wide_decimal(0, scale)?;
    let out_of_range = || EvaluationError::out_of_range("DECIMAL", "round(x)").into();
    let number = |row: usize| match (values.get(row), places(row)) {
        (Some(number), Some(places)) => {
            let rounded = rounded_to(number, scale, places, to_nearest);
            let rounded = rounded.and_then(|(number, at)| number.rescaled(at, target));
            rounded.map(Some).ok_or_else(out_of_range)
        }
        _ => Ok(None),
    };
    array_of(call, (0..call.rows()).map(number))
}

/// The number without what is behind so many places, and its scale.
fn rounded_to(number: Int256, scale: u8, places: i64, to_nearest: bool) -> Option<(Int256, u8)> {
    let places = places.clamp(-i64::from(WIDEST), i64::from(scale));
    let cut = |from: u8, to: u8| match to_nearest {
        true => number.rescaled(from, to),
        false => number.truncated(from, to),
    };
    match u8::try_from(places) {
        Ok(places) => Some((cut(scale, places)?, places)),
        // Zeros before the point: cut, then put the zeros back.
        Err(_) => {
            let zeros = u8::try_from(places.unsigned_abs()).ok()?;
            let rounded = cut(scale + zeros, 0)?;
            Some((rounded.rescaled(0, zeros)?, 0))
        }
    }
}

/// CAST AS DECIMAL, and what the typing rule makes of numbers beside wide ones: cut to the digits of the type.
pub(super) fn cast(call: &Call<'_>, precision: u8, scale: u8) -> Result<ArrayRef> {
    let limit = match precision {
        WIDEST.. => Int256::of_parts(u128::MAX, i128::MAX),
        _ => Int256::nines(precision),
    };
    unary(call, scale, |number| {
        Some(number.clamp(limit.negated(), limit))
    })
}

/// A number beside wide ones as one of them, with as many decimals. It may have more digits than the type says.
pub(super) fn widen(call: &Call<'_>) -> Result<ArrayRef> {
    let scale = match call.result_type() {
        DataType::Decimal256(_, scale) | DataType::Decimal128(_, scale) => (*scale).max(0) as u8,
        _ => 0,
    };
    let limit = Int256::power_of_ten(LIMIT_DIGITS).unwrap_or_default();
    unary(call, scale, |number| {
        (number.abs() < limit).then_some(number)
    })
}

/// Numbers as such of a column of this type; error 1264 for what is out of its range.
pub(super) fn fitted(
    call: &Call<'_>,
    scale: u8,
    (lowest, highest): (Int256, Int256),
    column: &str,
) -> Result<Decimal256Array> {
    let values = call.wide_decimal(0, scale)?.array;
    let is_beyond = |number| {
        let number = int256_of(number);
        number < lowest || number > highest
    };
    let beyond = values.iter().position(|value| value.is_some_and(is_beyond));
    match beyond {
        Some(row) => Err(EvaluationError::out_of_range_column(column, row as u64 + 1).into()),
        None => Ok(values),
    }
}
