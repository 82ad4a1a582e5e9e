//! Dates and times on the proleptic Gregorian calendar: conversion between calendar fields and counts, and MySQL's
//! text.
//!
//! A date is days since 1970-01-01; a time of day or an interval is signed microseconds; a datetime is microseconds
//! since 1970-01-01 00:00:00 on whatever clock the column is about. The reading of text is in
//! `read`.
//!
//! MySQL's zero date `0000-00-00` is the day before the first one, [`ZERO_DATE`], and with a time of day midnight of
//! it. So it sorts before all others. Its year, month and day are 0; that is all the calendar says of it.

use std::fmt;

/// Microseconds of a second.
pub const SECOND: i64 = 1_000_000;
/// Microseconds of a day.
pub const DAY: i64 = 86_400 * SECOND;
/// The longest TIME, 838:59:59, in microseconds.
pub const MAX_TIME: i64 = (838 * 3600 + 59 * 60 + 59) * SECOND;
/// 0000-01-01, the first date that can be stored.
pub const MIN_DATE: i32 = days_from_civil(0, 1, 1);
/// `0000-00-00`: no day, but a value.
pub const ZERO_DATE: i32 = MIN_DATE - 1;
/// `0000-00-00 00:00:00`.
pub const ZERO_DATETIME: i64 = ZERO_DATE as i64 * DAY;
/// 9999-12-31, the last one.
pub const MAX_DATE: i32 = days_from_civil(9999, 12, 31);

/// Days since 1970-01-01 of a calendar date. Months and days must be valid.
///
/// The year is taken to begin in March, so that the leap day is its last and month lengths follow one formula.
pub const fn days_from_civil(year: i32, month: u32, day: u32) -> i32 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month as i32 + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day as i32 - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of days since 1970-01-01; all 0 of [`ZERO_DATE`].
pub const fn civil_from_days(days: i32) -> (i32, u32, u32) {
    if days == ZERO_DATE {
        return (0, 0, 0);
    }
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = ((month_from_march + 2) % 12 + 1) as u32;
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// True if the year has a 29 February.
pub const fn is_leap_year(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days of a month.
pub const fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap_year(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Writes days since 1970-01-01 as `YYYY-MM-DD`.
pub fn write_date(f: &mut impl fmt::Write, days: i32) -> fmt::Result {
    let (year, month, day) = civil_from_days(days);
    write!(f, "{year:04}-{month:02}-{day:02}")
}

/// Writes signed microseconds as `[-]HH:MM:SS[.fraction]` with `digits` digits of fraction.
pub fn write_time(f: &mut impl fmt::Write, micros: i64, digits: u8) -> fmt::Result {
    let size = micros.unsigned_abs();
    let seconds = size / SECOND as u64;
    let sign = if micros < 0 { "-" } else { "" };
    write!(
        f,
        "{sign}{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )?;
    write_fraction(f, size % SECOND as u64, digits)
}

/// Writes microseconds since 1970 as `YYYY-MM-DD HH:MM:SS[.fraction]` with `digits` digits of fraction.
pub fn write_datetime(f: &mut impl fmt::Write, micros: i64, digits: u8) -> fmt::Result {
    write_date(f, micros.div_euclid(DAY) as i32)?;
    f.write_char(' ')?;
    write_time(f, micros.rem_euclid(DAY), digits)
}

fn write_fraction(f: &mut impl fmt::Write, micros: u64, digits: u8) -> fmt::Result {
    if digits == 0 {
        return Ok(());
    }
    let width = usize::from(digits.min(6));
    write!(f, ".{:0width$}", micros / 10u64.pow(6 - width as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_four_centuries_goes_there_and_back() {
        let mut expected = (1899, 12, 31);
        for days in days_from_civil(1900, 1, 1)..=days_from_civil(2300, 1, 1) {
            let (year, month, day) = expected;
            expected = if day < days_in_month(year, month) {
                (year, month, day + 1)
            } else if month < 12 {
                (year, month + 1, 1)
            } else {
                (year + 1, 1, 1)
            };
            assert_eq!(civil_from_days(days), expected);
            assert_eq!(days_from_civil(expected.0, expected.1, expected.2), days);
        }
    }

    #[test]
    fn the_ends_of_the_calendar() {
        assert_eq!(days_from_civil(1970, 1, 1), 0);
        assert_eq!(civil_from_days(MIN_DATE), (0, 1, 1));
        assert_eq!(civil_from_days(MAX_DATE), (9999, 12, 31));
        let mut text = String::new();
        write_datetime(&mut text, ZERO_DATETIME, 0).unwrap();
        assert_eq!(text, "0000-00-00 00:00:00");
    }

    #[test]
    fn fractions_are_cut_to_the_digits_asked_for() {
        let mut text = String::new();
        write_datetime(&mut text, 1_234_567, 3).unwrap();
        assert_eq!(text, "1970-01-01 00:00:01.234");
    }
}
