//! Dates and times in MySQL's bytes, the form since MySQL 5.6.4: big-endian numbers in the order of the values, with as
//! many bytes of a fraction as its digits need.
//!
//! | type | whole part | bits |
//! |---|---|---|
//! | DATE | 3 bytes, little-endian | year 15, month 4, day 5 |
//! | DATETIME | 5 bytes + 2^39 | (year * 13 + month) 17, day 5, hour 5, minute 6, second 6 |
//! | TIME | 3 bytes + 2^23 | hour 12, minute 6, second 6 |
//! | TIMESTAMP | 4 bytes | seconds since 1970 |
//!
//! A *packed* value, as JSON documents have it, is the whole part and 24 bits of microseconds in 8 bytes.

use sheaf_types::temporal::{
    DAY, MAX_TIME, SECOND, ZERO_DATE, ZERO_DATETIME, checked_days, civil_from_days, split_datetime,
};

use crate::bytes::{put_big, put_little};

/// Bits of the fraction in a packed value.
const FRACTION_BITS: u32 = 24;
/// Added to the whole parts, so that those of TIMEs below zero are none.
const DATETIME_OFFSET: i64 = 1 << 39;
const TIME_OFFSET: i64 = 1 << 23;

/// Bytes of a fraction of so many digits.
fn fraction_bytes(digits: u8) -> usize {
    usize::from(digits.min(6)).div_ceil(2)
}

/// A fraction in its bytes: of 3 digits as of 4, in hundreds of microseconds.
fn fraction(micros: i64, bytes: usize) -> i64 {
    micros / [1_000_000, 10_000, 100, 1][bytes]
}

pub(crate) fn put_date(out: &mut Vec<u8>, days: i32) {
    let (year, month, day) = civil_from_days(days);
    put_little(
        out,
        u64::from(year.unsigned_abs() << 9 | month << 5 | day),
        3,
    );
}

pub(crate) fn put_datetime(out: &mut Vec<u8>, micros: i64, digits: u8) {
    let (whole, micros) = datetime_parts(micros);
    put_big(out, (whole + DATETIME_OFFSET) as u64, 5);
    put_fraction(out, micros, digits);
}

/// `false`: the moment is none of a TIMESTAMP, and nothing was appended.
pub(crate) fn put_timestamp(out: &mut Vec<u8>, micros: i64, digits: u8) -> bool {
    let micros = match micros {
        ZERO_DATETIME => 0,
        micros => micros,
    };
    let Ok(seconds) = u32::try_from(micros.div_euclid(SECOND)) else {
        return false;
    };
    put_big(out, seconds.into(), 4);
    put_fraction(out, micros.rem_euclid(SECOND), digits);
    true
}

fn put_fraction(out: &mut Vec<u8>, micros: i64, digits: u8) {
    let bytes = fraction_bytes(digits);
    put_big(out, fraction(micros, bytes) as u64, bytes);
}

/// The whole part and the fraction are one number, below zero as a whole.
pub(crate) fn put_time(out: &mut Vec<u8>, micros: i64, digits: u8) {
    let bytes = fraction_bytes(digits);
    let (whole, rest) = time_parts(micros.abs());
    let number = whole << (8 * bytes) | fraction(rest, bytes);
    let number = if micros < 0 { -number } else { number };
    put_big(
        out,
        (number + (TIME_OFFSET << (8 * bytes))) as u64,
        3 + bytes,
    );
}

/// Hours, minutes and seconds in their bits, and microseconds; of a TIME that is not below zero.
fn time_parts(micros: i64) -> (i64, i64) {
    let seconds = micros / SECOND;
    let whole = ((seconds / 3600) << 12) | ((seconds / 60 % 60) << 6) | (seconds % 60);
    (whole, micros % SECOND)
}

/// All fields down to seconds in their bits, and microseconds.
fn datetime_parts(micros: i64) -> (i64, i64) {
    let (days, of_day) = split_datetime(micros);
    let (year, month, day) = civil_from_days(days);
    let month = i64::from(year) * 13 + i64::from(month);
    let (time, rest) = time_parts(of_day);
    ((month << 5 | i64::from(day)) << 17 | time, rest)
}

pub(crate) fn packed_date(days: i32) -> i64 {
    let (year, month, day) = civil_from_days(days);
    let month = i64::from(year) * 13 + i64::from(month);
    (month << 5 | i64::from(day)) << (17 + FRACTION_BITS)
}

pub(crate) fn packed_datetime(micros: i64) -> i64 {
    let (whole, rest) = datetime_parts(micros);
    whole << FRACTION_BITS | rest
}

pub(crate) fn packed_time(micros: i64) -> i64 {
    let (whole, rest) = time_parts(micros.abs());
    let packed = whole << FRACTION_BITS | rest;
    if micros < 0 { -packed } else { packed }
}

/// The days of a date. `None`: there is no such date.
pub(crate) fn days_of(year: u32, month: u32, day: u32) -> Option<i32> {
    match (year, month, day) {
        (0, 0, 0) => Some(ZERO_DATE),
        _ => checked_days(i32::try_from(year).ok()?, month, day),
    }
}

/// A big-endian number of at most eight bytes.
fn number(bytes: &[u8]) -> i64 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | i64::from(*byte))
}

/// Microseconds of a fraction in its bytes. `None`: it is a second or more.
fn micros_of(bytes: &[u8]) -> Option<i64> {
    let unit = [1_000_000, 10_000, 100, 1].get(bytes.len())?;
    let micros = number(bytes).checked_mul(*unit)?;
    (micros < SECOND).then_some(micros)
}

/// What [`put_datetime`] has written: five bytes and a fraction.
pub(crate) fn read_datetime(bytes: &[u8]) -> Option<i64> {
    let (whole, fraction) = bytes.split_at_checked(5)?;
    datetime_of(number(whole) - DATETIME_OFFSET, micros_of(fraction)?)
}

/// What [`put_timestamp`] has written: four bytes and a fraction.
pub(crate) fn read_timestamp(bytes: &[u8]) -> Option<i64> {
    let (whole, fraction) = bytes.split_at_checked(4)?;
    Some(moment_of(number(whole) as u32, micros_of(fraction)?))
}

/// The moment of a TIMESTAMP, of which 0 is none.
pub(crate) fn moment_of(seconds: u32, micros: i64) -> i64 {
    match (seconds, micros) {
        (0, 0) => ZERO_DATETIME,
        (seconds, micros) => i64::from(seconds) * SECOND + micros,
    }
}

/// What [`put_time`] has written: three bytes and a fraction, which are one number.
pub(crate) fn read_time(bytes: &[u8]) -> Option<i64> {
    let fraction = bytes.len().checked_sub(3)?;
    let unit = *[1_000_000, 10_000, 100, 1].get(fraction)?;
    let signed = number(bytes) - (TIME_OFFSET << (8 * fraction));
    let magnitude = signed.abs();
    let rest = (magnitude & ((1 << (8 * fraction)) - 1)) * unit;
    let micros = time_of(magnitude >> (8 * fraction), rest)?;
    Some(if signed < 0 { -micros } else { micros })
}

/// The inverse of [`time_parts`], of a TIME that there is.
fn time_of(whole: i64, micros: i64) -> Option<i64> {
    let (hours, minutes, seconds) = (whole >> 12, whole >> 6 & 0x3F, whole & 0x3F);
    if minutes > 59 || seconds > 59 || micros >= SECOND {
        return None;
    }
    let time = (hours * 3600 + minutes * 60 + seconds) * SECOND + micros;
    (time < MAX_TIME + SECOND).then_some(time)
}

/// The inverse of [`datetime_parts`].
fn datetime_of(whole: i64, micros: i64) -> Option<i64> {
    let (date, time) = (whole >> 17, whole & 0x1_FFFF);
    let month = u32::try_from(date >> 5).ok()?;
    let days = days_of(month / 13, month % 13, (date & 31) as u32)?;
    let of_day = time_of(time, micros).filter(|of_day| *of_day < DAY)?;
    Some(i64::from(days) * DAY + of_day)
}

/// The inverses of [`packed_date`], [`packed_datetime`] and [`packed_time`].
pub(crate) fn date_of_packed(packed: i64) -> Option<i32> {
    let moment = datetime_of_packed(packed)?;
    Some(split_datetime(moment).0)
}

pub(crate) fn datetime_of_packed(packed: i64) -> Option<i64> {
    datetime_of(packed >> FRACTION_BITS, packed & ((1 << FRACTION_BITS) - 1))
}

pub(crate) fn time_of_packed(packed: i64) -> Option<i64> {
    let magnitude = packed.checked_abs()?;
    let micros = time_of(
        magnitude >> FRACTION_BITS,
        magnitude & ((1 << FRACTION_BITS) - 1),
    )?;
    Some(if packed < 0 { -micros } else { micros })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_read_as_they_were_written() {
        let moments = [
            ZERO_DATETIME,
            0,
            1_700_000_000_123_456,
            -62_167_219_200_000_000 + DAY * 400,
        ];
        for digits in 0..=6u8 {
            let unit = 10i64.pow(6 - u32::from(digits));
            for moment in moments {
                let moment = moment - moment.rem_euclid(unit);
                let mut bytes = Vec::new();
                put_datetime(&mut bytes, moment, digits);
                assert_eq!(read_datetime(&bytes), Some(moment), "{digits} digits");
            }
            for time in [
                0,
                1,
                -1,
                45_296_789_012,
                -45_296_789_012,
                MAX_TIME,
                -MAX_TIME,
            ] {
                let time = time - time % unit;
                let mut bytes = Vec::new();
                put_time(&mut bytes, time, digits);
                assert_eq!(read_time(&bytes), Some(time), "{digits} digits");
                assert_eq!(time_of_packed(packed_time(time)), Some(time));
            }
        }
        let mut bytes = Vec::new();
        assert!(put_timestamp(&mut bytes, 1_700_000_000_120_000, 2));
        assert_eq!(read_timestamp(&bytes), Some(1_700_000_000_120_000));
        assert_eq!(read_time(&[0xFF; 3]), None);
        assert_eq!(days_of(2023, 2, 29), None);
    }
}
