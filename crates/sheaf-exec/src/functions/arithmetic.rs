//! `+ - * / DIV % -x` and the rounding of results.
//!
//! The result is a double if an operand is a double, a text or a JSON value. Otherwise it is a DECIMAL if one is a
//! DECIMAL (or by `/`), else a BIGINT, unsigned if an operand is. Integers and DECIMALs never wrap: leaving the range
//! is error 1690. Division by zero is NULL.
//!
//! DECIMALs: `+ -` keep the larger number of decimals, `*` has the sum of both, `/` has four more than the dividend, or
//! as many more as a third operand says (`div_precision_increment`). As MySQL does, a quotient is computed with guard
//! digits, in groups of nine, cut and not rounded; [`SqlType::Decimal`] says how many are shown, and `$result` rounds
//! to them where a value leaves the expression.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Decimal128Array, Decimal128Builder, Float64Array, Int64Array, UInt64Array,
};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Field, i256};
use arrow::error::ArrowError;
use datafusion_common::Result;
use sheaf_types::number::{Int256, divide_rounding, is_wide, power_of_ten, rescale};

use super::types::{
    MAX_DECIMALS, MAX_PRECISION, SqlType, common_float_decimals, field, is_cut_short,
};
use super::{Argument, Call, EvaluationError, Function, Operands, wide_decimal};

/// Decimals that `/` adds to the dividend's, unless it is told another number (MySQL's default of the variable).
pub const DIV_PRECISION_INCREMENT: u8 = 4;
/// MySQL computes quotients in groups of this many digits.
const GUARD_GROUP: u8 = 9;

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict("$add", (2, 2), sum_type, |call| {
        arithmetic(call, Operation::Add)
    })
    .stops_at_null()
    .arithmetic(),
    Function::strict("$subtract", (2, 2), sum_type, |call| {
        arithmetic(call, Operation::Subtract)
    })
    .stops_at_null()
    .arithmetic(),
    Function::strict("$multiply", (2, 2), product_type, |call| {
        arithmetic(call, Operation::Multiply)
    })
    .stops_at_null()
    .arithmetic(),
    // Under the mode NO_UNSIGNED_SUBTRACTION.
    Function::strict(
        "$signed_subtract",
        (2, 2),
        signed_difference_type,
        signed_difference,
    )
    .stops_at_null()
    .arithmetic(),
    Function::new("$divide", (2, 3), quotient_type, divide)
        .stops_at_null()
        .arithmetic(),
    // AVG: a sum and a count, which is 0 where there is no sum. Behind the number of decimals: the digits before the
    // point, where it is wide.
    Function::new("$average", (2, 4), average_type, divide),
    Function::new(
        "$integer_divide",
        (2, 2),
        integer_quotient_type,
        integer_divide,
    )
    .stops_at_null()
    .arithmetic(),
    Function::new("mod", (2, 2), remainder_type, remainder)
        .stops_at_null()
        .arithmetic()
        .null_in_doubt()
        .key_operand(),
    Function::strict("$negate", (1, 1), negated_type, negate).arithmetic(),
    Function::strict("$result", (1, 1), result_type, round_to_shown),
];

#[derive(Clone, Copy, PartialEq)]
enum Operation {
    Add,
    Subtract,
    Multiply,
}

impl Operation {
    fn symbol(self) -> &'static str {
        match self {
            Operation::Add => "+",
            Operation::Subtract => "-",
            Operation::Multiply => "*",
        }
    }
}

/// The class of numbers in which operands are combined.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Integer { unsigned: bool },
    Decimal,
    Double,
}

fn class(types: &[SqlType]) -> Class {
    let fractional = |ty: &SqlType| match ty {
        SqlType::Decimal { .. } => true,
        SqlType::Time { fsp } | SqlType::DateTime { fsp } => *fsp > 0,
        _ => false,
    };
    let is_double = |ty: &SqlType| ty.is_float() || ty.is_string() || *ty == SqlType::Json;
    if types.iter().any(is_double) {
        Class::Double
    } else if types.iter().any(fractional) {
        Class::Decimal
    } else {
        Class::Integer {
            unsigned: types.iter().any(SqlType::is_unsigned),
        }
    }
}

fn numeric_field(class: Class, operands: &Operands<'_>, decimal: impl FnOnce() -> Field) -> Field {
    match class {
        Class::Integer { unsigned: false } => field::bigint(),
        Class::Integer { unsigned: true } => field::unsigned_bigint(),
        Class::Decimal => decimal(),
        Class::Double => field::double_of(common_float_decimals(operands.fields)),
    }
}

/// A result of two numbers that is a DECIMAL. What literals make is wide where it needs the digits. What columns of few
/// digits make is not, as 128 bits are computed with many times as fast: beyond them is error 1690. It is nevertheless
/// where its decimals leave little before the point, as a product of two DECIMAL(36,18) does.
fn decimal_of(operands: &Operands<'_>, digits: u8, scale: u8, shown: u8) -> Field {
    let are_literals = operands.literals.iter().take(2).all(Option::is_some);
    match are_literals && is_wide(digits.saturating_add(scale)) || is_cut_short(digits, scale) {
        true => field::wide_decimal(digits, scale, shown),
        false => field::decimal_of(&operands.types()[..2], digits, scale, shown),
    }
}

fn sum_type(operands: &Operands<'_>) -> Result<Field> {
    let types = operands.types();
    Ok(numeric_field(class(&types), operands, || {
        let ((left_digits, left), (right_digits, right)) =
            (types[0].decimal_digits(), types[1].decimal_digits());
        let shown = types[0].shown_decimals().max(types[1].shown_decimals());
        let digits = left_digits.max(right_digits).saturating_add(1);
        decimal_of(operands, digits, left.max(right), shown)
    }))
}

fn signed_difference_type(operands: &Operands<'_>) -> Result<Field> {
    match class(&operands.types()) {
        Class::Integer { .. } => Ok(field::bigint()),
        _ => sum_type(operands),
    }
}

fn product_type(operands: &Operands<'_>) -> Result<Field> {
    let types = operands.types();
    Ok(numeric_field(class(&types), operands, || {
        let ((left_digits, left), (right_digits, right)) =
            (types[0].decimal_digits(), types[1].decimal_digits());
        let shown = (types[0].shown_decimals() + types[1].shown_decimals()).min(MAX_DECIMALS);
        let scale = (left + right).min(MAX_DECIMALS).max(shown);
        let digits = left_digits.saturating_add(right_digits);
        decimal_of(operands, digits, scale, shown)
    }))
}

/// Decimals to which MySQL computes a quotient (`do_div_mod` of its decimal library).
fn computed_scale(dividend: &SqlType, divisor: &SqlType, increment: u8) -> u8 {
    let grouped = |scale: u8| scale.div_ceil(GUARD_GROUP) * GUARD_GROUP;
    let (dividend_scale, divisor_scale) = (dividend.decimal_digits().1, divisor.decimal_digits().1);
    let (left, right) = (grouped(dividend_scale), grouped(divisor_scale));
    let padding = (left - dividend_scale) + (right - divisor_scale);
    grouped(left + right + increment.saturating_sub(padding))
}

/// Decimals of a quotient, kept and shown.
fn quotient_scale(dividend: &SqlType, divisor: &SqlType, increment: u8) -> (u8, u8) {
    let kept = computed_scale(dividend, divisor, increment);
    let shown = (dividend.shown_decimals() + increment).min(MAX_DECIMALS);
    // Guard digits are a luxury: they must leave room for the digits before the point.
    let kept = if kept > 2 * GUARD_GROUP {
        (2 * GUARD_GROUP).max(shown)
    } else {
        kept.max(shown)
    };
    (kept.min(MAX_DECIMALS), shown)
}

/// Decimals that a quotient has more than its dividend, from what a call is told.
fn increment_of(told: Option<i64>) -> u8 {
    let told = told.and_then(|told| u8::try_from(told).ok());
    told.map_or(DIV_PRECISION_INCREMENT, |told| told.min(MAX_DECIMALS))
}

fn quotient_type(operands: &Operands<'_>) -> Result<Field> {
    let types = operands.types();
    if class(&types[..2]) == Class::Double {
        return Ok(double_quotient(operands));
    }
    let (kept, shown) = decimals_of_quotient(operands);
    let (digits, dividend_scale) = types[0].decimal_digits();
    let whole_digits = digits.saturating_add(types[1].decimal_digits().1);
    // Guard digits are no reason for an error. What has all digits of 128 bits by its type rarely needs them.
    let has_own_digits = digits.saturating_add(dividend_scale) < MAX_PRECISION;
    Ok(
        match has_own_digits && is_wide(whole_digits.saturating_add(kept)) {
            true => field::wide_decimal(whole_digits, kept, shown),
            false => decimal_of(operands, whole_digits, kept, shown),
        },
    )
}

/// That of a sum by a count. Sums have many digits by their type, whatever is summed.
fn average_type(operands: &Operands<'_>) -> Result<Field> {
    let types = operands.types();
    if class(&types[..2]) == Class::Double {
        return Ok(double_quotient(operands));
    }
    let (kept, shown) = decimals_of_quotient(operands);
    let told = operands.int(3).and_then(|told| u8::try_from(told).ok());
    if let Some(whole_digits) = told {
        return Ok(field::wide_decimal(whole_digits, kept, shown));
    }
    let (digits, _) = types[0].decimal_digits();
    let whole_digits = digits.saturating_add(types[1].decimal_digits().1);
    Ok(decimal_of(operands, whole_digits, kept, shown))
}

/// Digits before the point of an average of such values, if it is to be wide: 128 bits have no room for them beside the
/// decimals that are kept. What is averaged says it, as sums have all digits of 128 bits by their type.
pub fn digits_of_wide_average(value: &SqlType, increment: u8) -> Option<u8> {
    let count = SqlType::Integer { unsigned: false };
    let (kept, _) = quotient_scale(value, &count, increment);
    let (digits, _) = value.decimal_digits();
    let is_narrow = matches!(value, SqlType::Decimal { .. }) && !value.is_wide();
    (is_narrow && is_wide(digits.saturating_add(kept))).then_some(digits)
}

fn double_quotient(operands: &Operands<'_>) -> Field {
    let decimals = common_float_decimals(&operands.fields[..2]);
    let shown = decimals.map(|decimals| decimals.saturating_add(increment_of(operands.int(2))));
    // With more digits than that, as many are shown as it takes.
    field::double_of(shown.filter(|shown| *shown <= MAX_DECIMALS))
}

fn decimals_of_quotient(operands: &Operands<'_>) -> (u8, u8) {
    let types = operands.types();
    let (kept, shown) = quotient_scale(&types[0], &types[1], increment_of(operands.int(2)));
    if !types[0].is_wide() {
        return (kept, shown);
    }
    // Of a wide dividend with many digits before the point, one group is kept behind it.
    let (digits, _) = types[0].decimal_digits();
    let room = wide_decimal::LIMIT_DIGITS.saturating_sub(digits);
    (kept.min(room.max(GUARD_GROUP).max(shown)), shown)
}

fn integer_quotient_type(operands: &Operands<'_>) -> Result<Field> {
    Ok(if operands.types().iter().any(SqlType::is_unsigned) {
        field::unsigned_bigint()
    } else {
        field::bigint()
    })
}

fn remainder_type(operands: &Operands<'_>) -> Result<Field> {
    let types = operands.types();
    let class = match class(&types) {
        // The sign of a remainder is the dividend's.
        Class::Integer { .. } => Class::Integer {
            unsigned: class(&types[..1]) == Class::Integer { unsigned: true },
        },
        other => other,
    };
    Ok(numeric_field(class, operands, || {
        let ((left_digits, left), (right_digits, right)) =
            (types[0].decimal_digits(), types[1].decimal_digits());
        let shown = types[0].shown_decimals().max(types[1].shown_decimals());
        let digits = left_digits.max(right_digits);
        decimal_of(operands, digits, left.max(right), shown)
    }))
}

fn negated_type(operands: &Operands<'_>) -> Result<Field> {
    let ty = operands.sql_type(0);
    Ok(match class(std::slice::from_ref(&ty)) {
        Class::Integer { .. } => field::bigint(),
        class => numeric_field(class, operands, || {
            let (digits, scale) = ty.decimal_digits();
            let shown = ty.shown_decimals();
            field::decimal_of(std::slice::from_ref(&ty), digits, scale, shown)
        }),
    })
}

fn result_type(operands: &Operands<'_>) -> Result<Field> {
    let ty = operands.sql_type(0);
    Ok(match ty {
        SqlType::Decimal {
            precision,
            scale,
            decimals,
        } if decimals < scale => {
            let digits = precision - scale;
            field::decimal_of(std::slice::from_ref(&ty), digits, decimals, decimals)
        }
        _ => operands.fields[0].as_ref().clone(),
    })
}

fn decimal_scale(data_type: &DataType) -> u8 {
    match data_type {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
            u8::try_from(*scale).unwrap_or(0)
        }
        _ => 0,
    }
}

fn overflow(type_name: &str, symbol: &str) -> datafusion_common::DataFusionError {
    EvaluationError::out_of_range(type_name, &format!("(a {symbol} b)")).into()
}

/// Gives the operands of a kernel of arrow, which knows constants as "datums".
fn combine<A: Array + 'static>(
    left: &Argument<A>,
    right: &Argument<A>,
    kernel: impl Fn(&dyn arrow::array::Datum, &dyn arrow::array::Datum) -> Result<ArrayRef, ArrowError>,
) -> Result<ArrayRef, ArrowError> {
    use arrow::array::Scalar;
    match (left.constant, right.constant) {
        (false, false) => kernel(&&left.array as &dyn arrow::array::Datum, &&right.array),
        (true, true) => kernel(&&left.array, &&right.array),
        (true, false) => kernel(&Scalar::new(&left.array), &&right.array),
        (false, true) => kernel(&&left.array, &Scalar::new(&right.array)),
    }
}

fn arithmetic(call: &Call<'_>, operation: Operation) -> Result<ArrayRef> {
    let checked = |left: &dyn arrow::array::Datum, right: &dyn arrow::array::Datum| match operation
    {
        Operation::Add => numeric::add(left, right),
        Operation::Subtract => numeric::sub(left, right),
        Operation::Multiply => numeric::mul(left, right),
    };
    match call.result_type() {
        DataType::Int64 => combine(&call.int(0)?, &call.int(1)?, checked)
            .map_err(|_| overflow("BIGINT", operation.symbol())),
        DataType::UInt64 => unsigned_arithmetic(call, operation),
        DataType::Float64 => {
            let result = combine(
                &call.double(0)?,
                &call.double(1)?,
                |left, right| match operation {
                    Operation::Add => numeric::add_wrapping(left, right),
                    Operation::Subtract => numeric::sub_wrapping(left, right),
                    Operation::Multiply => numeric::mul_wrapping(left, right),
                },
            )?;
            finite(result, operation.symbol())
        }
        DataType::Decimal128(precision, scale) => {
            decimal_arithmetic(call, operation, *precision, *scale)
        }
        wide @ DataType::Decimal256(..) => {
            wide_decimal::arithmetic(call, operation.symbol(), decimal_scale(wide))
        }
        other => datafusion_common::internal_err!("arithmetic on {other}"),
    }
}

/// Doubles that left the range are error 1690, not infinity.
fn finite(array: ArrayRef, symbol: &str) -> Result<ArrayRef> {
    use arrow::array::AsArray;
    let values = array.as_primitive::<arrow::datatypes::Float64Type>();
    if values.iter().flatten().all(f64::is_finite) {
        Ok(array)
    } else {
        Err(overflow("DOUBLE", symbol))
    }
}

/// Operands of either sign, a result that must not be negative.
fn unsigned_arithmetic(call: &Call<'_>, operation: Operation) -> Result<ArrayRef> {
    let (left, right) = (call.decimal(0, 0)?, call.decimal(1, 0)?);
    let result: Result<UInt64Array> = (0..call.rows())
        .map(|row| {
            let (Some(left), Some(right)) = (left.get(row), right.get(row)) else {
                return Ok(None);
            };
            let value = match operation {
                Operation::Add => left.checked_add(right),
                Operation::Subtract => left.checked_sub(right),
                Operation::Multiply => left.checked_mul(right),
            };
            match value.and_then(|value| u64::try_from(value).ok()) {
                Some(value) => Ok(Some(value)),
                None => Err(overflow("BIGINT UNSIGNED", operation.symbol())),
            }
        })
        .collect();
    Ok(Arc::new(result?))
}

/// Whole numbers of either sign, and a difference that may be negative.
fn signed_difference(call: &Call<'_>) -> Result<ArrayRef> {
    let has_unsigned = (0..2).any(|operand| call.sql_type(operand).is_unsigned());
    if call.result_type() != &DataType::Int64 || !has_unsigned {
        return arithmetic(call, Operation::Subtract);
    }
    let (left, right) = (call.decimal(0, 0)?, call.decimal(1, 0)?);
    let result: Result<Int64Array> = (0..call.rows())
        .map(|row| {
            let (Some(left), Some(right)) = (left.get(row), right.get(row)) else {
                return Ok(None);
            };
            let difference = left.checked_sub(right);
            match difference.and_then(|value| i64::try_from(value).ok()) {
                Some(value) => Ok(Some(value)),
                None => Err(overflow("BIGINT", "-")),
            }
        })
        .collect();
    Ok(Arc::new(result?))
}

fn decimal_arithmetic(
    call: &Call<'_>,
    operation: Operation,
    precision: u8,
    scale: i8,
) -> Result<ArrayRef> {
    let target = DataType::Decimal128(precision, scale);
    let kept = decimal_scale(&target);
    let (left_scale, right_scale) = (
        call.sql_type(0).decimal_digits().1,
        call.sql_type(1).decimal_digits().1,
    );
    // The same scale on both sides, so that the digits add up. It is given to a whole array at once where no number of
    // its type leaves the range by it.
    let read_scale = |operand: usize, own: u8| match operation {
        Operation::Multiply => own,
        _ if call.sql_type(operand).decimal_digits().0 + kept <= MAX_PRECISION => kept,
        _ => own.min(kept),
    };
    let (left_scale, right_scale) = (read_scale(0, left_scale), read_scale(1, right_scale));
    let (left, right) = (call.decimal(0, left_scale)?, call.decimal(1, right_scale)?);
    let same_scale = |left: i128, right: i128| {
        let left = with_decimals(left, kept - left_scale)?;
        Some((left, with_decimals(right, kept - right_scale)?))
    };
    let exact_scale = if operation == Operation::Multiply {
        left_scale + right_scale
    } else {
        kept
    };
    // Of what is not shown nothing is rounded yet.
    let is_rounded = SqlType::of(&call.args.return_field).shown_decimals() == kept;
    let compute = |left: i128, right: i128| match operation {
        Operation::Add => {
            let (left, right) = same_scale(left, right)?;
            left.checked_add(right)
        }
        Operation::Subtract => {
            let (left, right) = same_scale(left, right)?;
            left.checked_sub(right)
        }
        Operation::Multiply if exact_scale == kept => left.checked_mul(right),
        Operation::Multiply => wide_product(left, right, exact_scale - kept, is_rounded),
    };
    binary_decimal(call.rows(), &left, &right, &target, |left, right| {
        compute(left, right)
            .map(Some)
            .ok_or_else(|| overflow("DECIMAL", operation.symbol()))
    })
}

/// A number with so many decimals more; `None` beyond the range.
fn with_decimals(value: i128, more: u8) -> Option<i128> {
    match more {
        0 => Some(value),
        more => value.checked_mul(power_of_ten(more)),
    }
}

/// The quotient and the remainder of two numbers, of which each has yet to get some decimals; `None` of 0, and where
/// the quotient is beyond the range.
fn whole_parts(
    (left, left_decimals): (i128, u8),
    (right, right_decimals): (i128, u8),
) -> Option<(Option<i128>, i128)> {
    if right == 0 {
        return None;
    }
    let narrow = with_decimals(left, left_decimals).zip(with_decimals(right, right_decimals));
    if let Some((left, right)) = narrow {
        return Some((
            left.checked_div(right),
            left.checked_rem(right).unwrap_or(0),
        ));
    }
    let wide = |value: i128, decimals: u8| {
        let unit = i256::from_i128(power_of_ten(decimals));
        i256::from_i128(value).wrapping_mul(unit)
    };
    let (left, right) = (wide(left, left_decimals), wide(right, right_decimals));
    let quotient = left.checked_div(right)?.to_i128();
    Some((quotient, left.checked_rem(right)?.to_i128()?))
}

/// A product that loses `cut` decimals, which are cut or rounded.
fn wide_product(left: i128, right: i128, cut: u8, is_rounded: bool) -> Option<i128> {
    let product = i256::from_i128(left).checked_mul(i256::from_i128(right))?;
    let unit = power_of_ten(cut);
    let whole = product.checked_div(i256::from_i128(unit))?.to_i128()?;
    let rest = product.checked_rem(i256::from_i128(unit))?.to_i128()?;
    let is_half = rest.unsigned_abs() >= unit.unsigned_abs().div_ceil(2);
    match is_rounded && is_half {
        true => whole.checked_add(rest.signum()),
        false => Some(whole),
    }
}

fn binary_decimal(
    rows: usize,
    left: &Argument<Decimal128Array>,
    right: &Argument<Decimal128Array>,
    target: &DataType,
    compute: impl Fn(i128, i128) -> Result<Option<i128>>,
) -> Result<ArrayRef> {
    // Without NULLs and with columns or one constant: a plain loop over the values.
    if left.array.null_count() == 0 && right.array.null_count() == 0 {
        let mut values = Vec::with_capacity(rows);
        let mut nulls: Vec<usize> = Vec::new();
        for row in 0..rows {
            let (left, right) = (
                left.array.value(left.index(row)),
                right.array.value(right.index(row)),
            );
            match compute(left, right)? {
                Some(value) => values.push(value),
                None => {
                    nulls.push(row);
                    values.push(0);
                }
            }
        }
        let validity = (!nulls.is_empty()).then(|| {
            let mut valid = vec![true; rows];
            nulls.iter().for_each(|row| valid[*row] = false);
            valid.into()
        });
        let array = Decimal128Array::new(values.into(), validity);
        return Ok(Arc::new(array.with_data_type(target.clone())));
    }
    let mut builder = Decimal128Builder::with_capacity(rows).with_data_type(target.clone());
    for row in 0..rows {
        let value = match (left.get(row), right.get(row)) {
            (Some(left), Some(right)) => compute(left, right)?,
            _ => None,
        };
        builder.append_option(value);
    }
    Ok(Arc::new(builder.finish()))
}

fn divide(call: &Call<'_>) -> Result<ArrayRef> {
    let target = call.result_type().clone();
    if target == DataType::Float64 {
        let (left, right) = (call.double(0)?, call.double(1)?);
        let result: Float64Array = (0..call.rows())
            .map(|row| match (left.get(row), right.get(row)) {
                (Some(left), Some(right)) if right != 0.0 => Some(left / right),
                _ => None,
            })
            .collect();
        return finite(Arc::new(result), "/");
    }
    let is_rounded = is_rounded(call, decimal_scale(&target))?;
    if wide_decimal::takes_wide(call) {
        return wide_decimal::divide(call, decimal_scale(&target), is_rounded);
    }
    let (left_scale, right_scale) = (
        call.sql_type(0).decimal_digits().1,
        call.sql_type(1).decimal_digits().1,
    );
    let (left, right) = (call.decimal(0, left_scale)?, call.decimal(1, right_scale)?);
    let kept = decimal_scale(&target);
    // left/10^l / (right/10^r) = left * 10^(kept + r - l) / right, at scale `kept`.
    let shift = i32::from(kept) + i32::from(right_scale) - i32::from(left_scale);
    binary_decimal(call.rows(), &left, &right, &target, |left, right| {
        if right == 0 {
            return Ok(None);
        }
        let rounded = || {
            let longer = is_rounded.then(|| decimal_quotient(left, right, shift + 1))??;
            Some(divide_rounding(longer, 10))
        };
        rounded()
            .or_else(|| decimal_quotient(left, right, shift))
            .map(Some)
            .ok_or_else(|| overflow("DECIMAL", "/"))
    })
}

/// Whether a quotient is rounded to the digits that are kept. It is where these are what is shown, and MySQL computes
/// more of them.
fn is_rounded(call: &Call<'_>, kept: u8) -> Result<bool> {
    if SqlType::of(&call.args.return_field).shown_decimals() < kept {
        return Ok(false);
    }
    let told = match call.len() {
        2 => None,
        _ => call.int(2)?.get(0),
    };
    let computed = computed_scale(&call.sql_type(0), &call.sql_type(1), increment_of(told));
    Ok(computed > kept)
}

/// `left` * 10^`shift` / `right`, cut.
fn decimal_quotient(left: i128, right: i128, shift: i32) -> Option<i128> {
    let power = u8::try_from(shift.unsigned_abs()).ok()?;
    if shift < 0 {
        return Some(left / right.checked_mul(power_of_ten(power.min(MAX_PRECISION)))?);
    }
    if power <= MAX_PRECISION
        && let Some(scaled) = left.checked_mul(power_of_ten(power))
    {
        return Some(scaled / right);
    }
    let scaled =
        i256::from_i128(left).checked_mul(i256::from_i128(10).checked_pow(u32::from(power))?)?;
    scaled.checked_div(i256::from_i128(right))?.to_i128()
}

/// Digits after the point that DIV takes of texts and doubles: it divides DECIMALs.
const QUOTIENT_SCALE: u8 = 15;

/// Whether a DECIMAL of that scale, which is not 0 unless the number is, has the number's digits.
fn is_exact(number: f64, exact: i128) -> bool {
    (1e-9..1e22).contains(&number.abs()) || exact as f64 / 1e15 == number
}

fn integer_divide(call: &Call<'_>) -> Result<ArrayRef> {
    let unsigned = call.result_type() == &DataType::UInt64;
    let out_of_range = || {
        overflow(
            if unsigned {
                "BIGINT UNSIGNED"
            } else {
                "BIGINT"
            },
            "DIV",
        )
    };
    let types = [call.sql_type(0), call.sql_type(1)];
    let quotients: Vec<Option<i128>> = if wide_decimal::takes_wide(call) {
        let narrow = |number: Option<Int256>| match number {
            Some(number) => number.to_i128().map(Some).ok_or_else(out_of_range),
            None => Ok(None),
        };
        let quotients = wide_decimal::whole_quotients(call)?.into_iter();
        quotients.map(narrow).collect::<Result<_>>()?
    } else if class(&types) == Class::Double {
        let (left, right) = (call.double(0)?, call.double(1)?);
        let exact_left = call.decimal(0, QUOTIENT_SCALE)?;
        let exact_right = call.decimal(1, QUOTIENT_SCALE)?;
        (0..call.rows())
            .map(|row| match (left.get(row), right.get(row)) {
                (Some(left), Some(right)) if right != 0.0 => {
                    match (exact_left.get(row), exact_right.get(row)) {
                        (Some(exact_left), Some(exact_right))
                            if is_exact(left, exact_left) && is_exact(right, exact_right) =>
                        {
                            Some(exact_left / exact_right)
                        }
                        _ => Some((left / right).trunc() as i128),
                    }
                }
                _ => None,
            })
            .collect()
    } else {
        let (left_scale, right_scale) = (types[0].decimal_digits().1, types[1].decimal_digits().1);
        let scale = left_scale.max(right_scale);
        let (left, right) = (call.decimal(0, left_scale)?, call.decimal(1, right_scale)?);
        let quotients: Result<_> = (0..call.rows())
            .map(|row| {
                let parts = left.get(row).zip(right.get(row)).and_then(|(left, right)| {
                    whole_parts((left, scale - left_scale), (right, scale - right_scale))
                });
                match parts {
                    Some((None, _)) => Err(out_of_range()),
                    parts => Ok(parts.and_then(|(quotient, _)| quotient)),
                }
            })
            .collect();
        quotients?
    };
    if unsigned {
        let values: Option<Vec<Option<u64>>> = quotients
            .into_iter()
            .map(|value| {
                value
                    .map(|value| u64::try_from(value).ok())
                    .map_or(Some(None), |value| value.map(Some))
            })
            .collect();
        return Ok(Arc::new(UInt64Array::from(
            values.ok_or_else(out_of_range)?,
        )));
    }
    let values: Option<Vec<Option<i64>>> = quotients
        .into_iter()
        .map(|value| {
            value
                .map(|value| i64::try_from(value).ok())
                .map_or(Some(None), |value| value.map(Some))
        })
        .collect();
    Ok(Arc::new(Int64Array::from(values.ok_or_else(out_of_range)?)))
}

fn remainder(call: &Call<'_>) -> Result<ArrayRef> {
    let target = call.result_type().clone();
    if target == DataType::Float64 {
        let (left, right) = (call.double(0)?, call.double(1)?);
        let result: Float64Array = (0..call.rows())
            .map(|row| match (left.get(row), right.get(row)) {
                (Some(left), Some(right)) if right != 0.0 => Some(left % right),
                _ => None,
            })
            .collect();
        return Ok(Arc::new(result));
    }
    let scale = decimal_scale(&target);
    if wide_decimal::takes_wide(call) {
        return wide_decimal::remainder(call, scale);
    }
    let own_scale = |operand: usize| call.sql_type(operand).decimal_digits().1.min(scale);
    let (left_scale, right_scale) = (own_scale(0), own_scale(1));
    let (left, right) = (call.decimal(0, left_scale)?, call.decimal(1, right_scale)?);
    let remainders = (0..call.rows()).map(|row| {
        let (left, right) = left.get(row).zip(right.get(row))?;
        let parts = whole_parts((left, scale - left_scale), (right, scale - right_scale));
        parts.map(|(_, remainder)| remainder)
    });
    Ok(match &target {
        // A remainder is never larger than the dividend, so it fits.
        DataType::Int64 => Arc::new(
            remainders
                .map(|value| value.map(|value| value as i64))
                .collect::<Int64Array>(),
        ),
        DataType::UInt64 => Arc::new(
            remainders
                .map(|value| value.map(|value| value as u64))
                .collect::<UInt64Array>(),
        ),
        _ => Arc::new(
            remainders
                .collect::<Decimal128Array>()
                .with_data_type(target),
        ),
    })
}

fn negate(call: &Call<'_>) -> Result<ArrayRef> {
    match call.result_type() {
        DataType::Float64 => Ok(Arc::new(
            call.double(0)?
                .array
                .unary::<_, arrow::datatypes::Float64Type>(|value| -value),
        )),
        DataType::Int64 => {
            let values = call.decimal(0, 0)?;
            let negated: Result<Int64Array> = values
                .array
                .iter()
                .map(|value| match value {
                    None => Ok(None),
                    Some(value) => i64::try_from(-value).map(Some).map_err(|_| {
                        EvaluationError::out_of_range("BIGINT", &format!("-({value})")).into()
                    }),
                })
                .collect();
            Ok(Arc::new(negated?))
        }
        wide @ DataType::Decimal256(..) => wide_decimal::negate(call, decimal_scale(wide)),
        target => {
            let target = target.clone();
            let values = call.decimal(0, decimal_scale(&target))?;
            let negated = values
                .array
                .unary::<_, arrow::datatypes::Decimal128Type>(|value| -value);
            Ok(Arc::new(negated.with_data_type(target)))
        }
    }
}

/// Rounds a DECIMAL with guard digits to the digits that are shown; other values pass.
fn round_to_shown(call: &Call<'_>) -> Result<ArrayRef> {
    let target = call.result_type().clone();
    if wide_decimal::takes_wide(call)
        && decimal_scale(&target) < call.sql_type(0).decimal_digits().1
    {
        return wide_decimal::round_to_shown(call, decimal_scale(&target));
    }
    let (SqlType::Decimal { scale, .. }, DataType::Decimal128(..)) = (call.sql_type(0), &target)
    else {
        return call.args.args[0].to_array(call.rows());
    };
    let to = decimal_scale(&target);
    let values = call.decimal(0, scale)?;
    // Rounding to fewer digits always fits.
    let rounded = values
        .array
        .unary::<_, arrow::datatypes::Decimal128Type>(|value| {
            rescale(value, scale, to).unwrap_or_default()
        });
    Ok(Arc::new(rounded.with_data_type(target)))
}
