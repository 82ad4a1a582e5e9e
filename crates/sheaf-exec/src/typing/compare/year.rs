//! YEAR in comparisons: what year a constant is, and a year beside dates.

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::{Expr, lit};
use sheaf_types::number::{Floor, floor_of, text_floor};
use sheaf_types::temporal;
use sheaf_types::temporal::DAY;

use super::operand::{Operand, integer_value, is_column, text_of};
use crate::functions::call;
use crate::functions::types::SqlType;
use crate::typing::{cast, fold, literal, type_of};

/// A YEAR as a number; any other value as it is.
pub(in crate::typing) fn number_of_year(value: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(match type_of(&value, schema)? {
        SqlType::Year => fold(cast(value, DataType::Int64), schema),
        _ => value,
    })
}

/// What is looked for in a list, and the members. Beside dates alone, a YEAR is compared by their years. Beside others,
/// a date is the number of its digits, which no year is.
///
/// Members are years, 7 being 2007, only if each of them is a constant of a type that a year is written as. Where
/// another is among several, the year is a number like any other, and 7 is 7. So is a YEAR among several members.
pub(in crate::typing) fn beside_year(
    x: Expr,
    members: Vec<Expr>,
    schema: &DFSchema,
) -> Result<(Expr, Vec<Expr>)> {
    if type_of(&x, schema)? != SqlType::Year {
        let is_several = members.len() > 1;
        let number = |member: Expr| match is_several && literal(&member).is_none() {
            true => number_of_year(member, schema),
            false => Ok(member),
        };
        let members = members.into_iter().map(number).collect::<Result<_>>()?;
        return Ok((x, members));
    }
    let types = members.iter().map(|member| type_of(member, schema));
    let types = types.collect::<Result<Vec<_>>>()?;
    let is_date = |ty: &SqlType| matches!(ty, SqlType::Date | SqlType::DateTime { .. });
    if types.iter().all(|ty| is_date(ty) || *ty == SqlType::Null) {
        return Ok((x, members));
    }
    let is_several = members.len() > 1;
    let mut is_number = false;
    let digits = |(member, ty): (Expr, &SqlType)| {
        if is_date(ty) {
            is_number |= is_several;
            return match literal(&member).is_some() {
                true => fold(call("$cast_signed", vec![member]), schema),
                false => member,
            };
        }
        let is_no_year = matches!(ty, SqlType::Double | SqlType::Float);
        is_number |= is_several
            && (is_no_year
                || literal(&member).is_none() && literal(&fold(member.clone(), schema)).is_none());
        member
    };
    let members: Vec<Expr> = members.into_iter().zip(&types).map(digits).collect();
    match is_number {
        true => Ok((number_of_year(x, schema)?, members)),
        false => Ok((x, members)),
    }
}

/// The first day of the year that a value is, if it is a YEAR; any other value as it is. `at_midnight`: with its time.
pub(in crate::typing) fn day_of_year(
    value: Expr,
    at_midnight: bool,
    schema: &DFSchema,
) -> Result<Expr> {
    if type_of(&value, schema)? != SqlType::Year {
        return Ok(value);
    }
    let day = fold(call("$first_day_of_year", vec![value]), schema);
    Ok(match at_midnight {
        true => fold(call("$cast_datetime", vec![day, lit(0i64)]), schema),
        false => day,
    })
}

/// Whether a YEAR is compared with a date or a time that is no constant.
pub(super) fn is_year_beside(year: &Operand, moment: &Operand) -> bool {
    year.ty == SqlType::Year
        && matches!(moment.ty, SqlType::Date | SqlType::DateTime { .. })
        && literal(&moment.expr).is_none()
}

/// The year that a constant is beside a YEAR. `None`: none, so it is compared as the number that it is.
pub(super) fn year_beside(
    left: &Operand,
    value: &ScalarValue,
    value_type: &SqlType,
) -> Option<i128> {
    if left.ty != SqlType::Year {
        return None;
    }
    if let Some(year) = year_of_moment(value) {
        return Some(year.into());
    }
    let is_column = is_column(&left.expr);
    let year = is_column.then(|| year_of_constant(value, value_type))?;
    year.map(i128::from)
}

/// The year of a constant date or time.
fn year_of_moment(value: &ScalarValue) -> Option<i32> {
    let days = match value {
        ScalarValue::Date32(Some(days)) => *days,
        ScalarValue::TimestampMicrosecond(Some(micros), _) => micros.div_euclid(DAY) as i32,
        _ => return None,
    };
    Some(temporal::civil_from_days(days).0)
}

/// A YEAR beside a date or time, as the numbers of their digits: a year is before all of its days, and equal to none.
///
/// ```text
///   y = DATE '2001-02-03', which is no constant    20010000 = 20010203
/// ```
pub(super) fn as_digits(year: Expr, moment: Expr, is_date: bool) -> (Expr, Expr) {
    let digits = if is_date { 10_000_i64 } else { 10_000_000_000 };
    let year = call("$multiply", vec![cast(year, DataType::Int64), lit(digits)]);
    (year, call("$cast_signed", vec![moment]))
}

/// The year that a constant is in a YEAR column, which it is converted to: 1 and '1.4' are 2001, 2001.5 is 2002, '0' is
/// 2000, 0 is none. A double loses its fraction. `None`: no year, so it is compared as the number that it is.
fn year_of_constant(value: &ScalarValue, value_type: &SqlType) -> Option<u16> {
    let half_up = |tenths: Floor| match tenths {
        Floor::At(tenths) | Floor::Above(tenths) if tenths >= 0 => Some((tenths + 5) / 10),
        _ => None,
    };
    let number = match value {
        ScalarValue::Decimal128(Some(unscaled), _, scale) => {
            half_up(floor_of(*unscaled, u8::try_from(*scale).ok()?, 1))?
        }
        ScalarValue::Float64(Some(number)) if *number >= 0.0 => number.trunc() as i128,
        ScalarValue::Float64(_) => return None,
        _ => match text_of(value, value_type) {
            Some(text) => match half_up(text_floor(&text, 1))? {
                0 if is_zero_of_century(&text) => return Some(2000),
                year => year,
            },
            None => i128::from(integer_value(value)?),
        },
    };
    temporal::year_of_number(i64::try_from(number).ok()?)
}

/// Whether a text that is zero is the year 2000, as '0' and '00:00' are. '0000' is the year 0, and so is what has no
/// digits.
fn is_zero_of_century(text: &str) -> bool {
    let digits = text.trim_start().trim_start_matches(['-', '+']);
    text.len() != 4 && digits.starts_with(|c: char| c.is_ascii_digit())
}
