//! Functions of moments: seconds since 1970, and wall clocks of other time zones.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field};
use datafusion_common::Result;
use sheaf_types::temporal::{SECOND, TimeZone, datetime_in_range};

use super::date::{fraction, fraction_of_moment, fraction_of_seconds, ints};
use super::types::field;
use super::{Call, Function, Operands};

/// The last second that MySQL takes for one, of the year 3001.
const LAST_UNIX_SECOND: i64 = 32_536_771_199;

pub(super) static FUNCTIONS: &[Function] = &[
    // Point in time, the session's offset from UTC in seconds.
    Function::new("$unix_timestamp", (2, 2), unix_type, unix_timestamp)
        .dates(0, 1)
        .key_operand(),
    // Seconds since 1970, the session's offset from UTC in seconds.
    Function::new(
        "$from_unixtime",
        (2, 2),
        |operands| Ok(field::datetime(fraction_of_seconds(operands, 0))),
        from_unixtime,
    )
    .decimals(0, 1)
    .null_in_doubt()
    .key_operand(),
    Function::new(
        "convert_tz",
        (3, 3),
        |operands| Ok(field::datetime(fraction_of_moment(operands, 0))),
        convert_tz,
    )
    .dates(0, 1)
    .null_in_doubt(),
];

fn unix_type(operands: &Operands<'_>) -> Result<Field> {
    Ok(match fraction(operands, 0) {
        0 => field::bigint(),
        digits => field::decimal(12, digits, digits),
    })
}

fn unix_timestamp(call: &Call<'_>) -> Result<ArrayRef> {
    let (points, offsets) = (call.datetime(0)?, call.int(1)?);
    let utc = |row: usize| {
        let micros = points.get(row)? - offsets.get(row)? * SECOND;
        let is_one = (0..(LAST_UNIX_SECOND + 1) * SECOND).contains(&micros);
        Some(if is_one { micros } else { 0 })
    };
    match call.result_type() {
        DataType::Decimal128(_, scale) => {
            let unit = 10i64.pow(6 - (*scale as u32).min(6));
            let result: Decimal128Array = (0..call.rows())
                .map(|row| utc(row).map(|micros| i128::from(micros / unit)))
                .collect();
            Ok(Arc::new(result.with_data_type(call.result_type().clone())))
        }
        _ => ints(call, |row| Some(utc(row)? / SECOND)),
    }
}

fn from_unixtime(call: &Call<'_>) -> Result<ArrayRef> {
    let (seconds, offsets) = (call.decimal(0, 6)?, call.int(1)?);
    let result: TimestampMicrosecondArray = (0..call.rows())
        .map(|row| {
            let micros = i64::try_from(seconds.get(row)?)
                .ok()
                .filter(|micros| (0..(LAST_UNIX_SECOND + 1) * SECOND).contains(micros))?;
            micros
                .checked_add(offsets.get(row)? * SECOND)
                .filter(|sum| datetime_in_range(*sum))
        })
        .collect();
    Ok(Arc::new(result))
}

/// What is no TIMESTAMP stays as it is.
fn convert_tz(call: &Call<'_>) -> Result<ArrayRef> {
    let (points, from, to) = (call.datetime(0)?, call.text(1)?, call.text(2)?);
    let offset = |zone: &str| Some(i64::from(TimeZone::read(zone)?.offset_seconds()));
    let result: TimestampMicrosecondArray = (0..call.rows())
        .map(|row| {
            let (from, to) = (offset(from.get(row)?)?, offset(to.get(row)?)?);
            let point = points.existing(row)?;
            let utc = point - from * SECOND;
            let is_one = (SECOND..(LAST_UNIX_SECOND + 1) * SECOND).contains(&utc);
            Some(if is_one { utc + to * SECOND } else { point })
        })
        .collect();
    Ok(Arc::new(result))
}
