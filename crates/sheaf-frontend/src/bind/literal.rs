//! Literals of moments: which are wrong, and how many digits of a second they have.

use sheaf_types::error::codes;
use sheaf_types::temporal::{ZERO_DATETIME, read_datetime, read_time, split_offset};
use sqlparser::ast::{DataType, Value as Literal, ValueWithSpan};

use crate::error::{Result, SqlError};

/// Error 1525 for a DATE or TIMESTAMP of zero (`sql_mode` NO_ZERO_DATE).
pub fn check_non_zero_literal(literal: &ValueWithSpan, data_type: &DataType) -> Result<()> {
    let (Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text)) = &literal.value
    else {
        return Ok(());
    };
    let name = match data_type {
        DataType::Date => "DATE",
        DataType::Datetime(_) | DataType::Timestamp(..) => "DATETIME",
        _ => return Ok(()),
    };
    let micros = read_datetime(text).and_then(|read| read.micros(6));
    match micros == Ok(ZERO_DATETIME) {
        true => Err(SqlError::new(
            codes::WRONG_VALUE,
            format!("Incorrect {name} value: '{text}'"),
        )),
        false => Ok(()),
    }
}

/// A moment that is given with an offset, without that.
fn without_offset(text: &str) -> &str {
    split_offset(text).map_or(text, |(moment, _)| moment)
}

/// Error 1525 for a DATE, TIME or TIMESTAMP whose text is no such value: all of it, and no less.
pub fn check_typed_literal(literal: &ValueWithSpan, data_type: &DataType) -> Result<()> {
    let (Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text)) = &literal.value
    else {
        return Ok(());
    };
    let (name, is_right) = match data_type {
        DataType::Date => (
            "DATE",
            read_datetime(text).is_ok_and(|read| !read.has_time && !read.trailing),
        ),
        DataType::Datetime(_) | DataType::Timestamp(..) => (
            "DATETIME",
            read_datetime(without_offset(text)).is_ok_and(|read| read.has_time && !read.trailing),
        ),
        DataType::Time(..) => (
            "TIME",
            read_time(text).is_ok_and(|read| !read.is_cut && !read.trailing && !read.has_date),
        ),
        _ => return Ok(()),
    };
    match is_right {
        true => Ok(()),
        false => Err(SqlError::new(
            codes::WRONG_VALUE,
            format!("Incorrect {name} value: '{text}'"),
        )),
    }
}

/// `TIMESTAMP '2024-05-06 07:08:09.25'` and `TIME '07:08:09.25'` have as many fraction digits as are written, up to
/// six.
pub fn with_fraction_of(literal: &ValueWithSpan, data_type: DataType) -> DataType {
    let (Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text)) = &literal.value
    else {
        return data_type;
    };
    let digits = match data_type {
        DataType::Time(..) => read_time(text).map(|read| read.fraction_digits),
        _ => read_datetime(without_offset(text)).map(|read| read.fraction_digits),
    };
    let digits = digits.unwrap_or(0).into();
    match data_type {
        DataType::Datetime(None) => DataType::Datetime(Some(digits)),
        DataType::Timestamp(None, zone) => DataType::Timestamp(Some(digits), zone),
        DataType::Time(None, zone) => DataType::Time(Some(digits), zone),
        other => other,
    }
}
