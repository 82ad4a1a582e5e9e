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

use sheaf_types::temporal::{SECOND, ZERO_DATETIME, civil_from_days, split_datetime};

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

pub(super) fn put_date(out: &mut Vec<u8>, days: i32) {
    let (year, month, day) = civil_from_days(days);
    put_little(
        out,
        u64::from(year.unsigned_abs() << 9 | month << 5 | day),
        3,
    );
}

pub(super) fn put_datetime(out: &mut Vec<u8>, micros: i64, digits: u8) {
    let (whole, micros) = datetime_parts(micros);
    put_big(out, (whole + DATETIME_OFFSET) as u64, 5);
    put_fraction(out, micros, digits);
}

/// `false`: the moment is none of a TIMESTAMP, and nothing was appended.
pub(super) fn put_timestamp(out: &mut Vec<u8>, micros: i64, digits: u8) -> bool {
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
pub(super) fn put_time(out: &mut Vec<u8>, micros: i64, digits: u8) {
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

pub(super) fn packed_date(days: i32) -> i64 {
    let (year, month, day) = civil_from_days(days);
    let month = i64::from(year) * 13 + i64::from(month);
    (month << 5 | i64::from(day)) << (17 + FRACTION_BITS)
}

pub(super) fn packed_datetime(micros: i64) -> i64 {
    let (whole, rest) = datetime_parts(micros);
    whole << FRACTION_BITS | rest
}

pub(super) fn packed_time(micros: i64) -> i64 {
    let (whole, rest) = time_parts(micros.abs());
    let packed = whole << FRACTION_BITS | rest;
    if micros < 0 { -packed } else { packed }
}
