//! The proleptic Gregorian calendar as MySQL's functions need it: dates as days since 1970-01-01, points in time as
//! microseconds since then, durations as microseconds; reading and printing each.
//!
//! Dates run from 0000-01-01 to 9999-12-31; a result outside is NULL to the caller. The zero date `0000-00-00` is a
//! value with the parts 0 and no day of the calendar: functions that need one ask for [`Argument::existing`]. A date of
//! which only some part is zero reads as `None`. Texts are read as assignments read them
//! (`sheaf_types::temporal`).

use arrow::array::{Date32Array, TimestampMicrosecondArray};
use sheaf_types::temporal::{self, ZERO_DATE, ZERO_DATETIME};

use super::argument::Argument;
pub use sheaf_types::temporal::{civil_from_days, days_from_civil, days_in_month, is_leap_year};

pub const MICROS_PER_SECOND: i64 = temporal::SECOND;
pub const MICROS_PER_DAY: i64 = temporal::DAY;
/// The longest TIME, 838:59:59.
pub const MAX_TIME_MICROS: i64 = temporal::MAX_TIME;
/// Day number (TO_DAYS) of 1970-01-01.
pub const DAYS_TO_EPOCH: i64 = 719_528;

/// The day number of a date that may not exist.
pub fn checked_days(year: i32, month: u32, day: u32) -> Option<i32> {
    let exists = (0..=9999).contains(&year)
        && (1..=12).contains(&month)
        && day >= 1
        && day <= days_in_month(year, month);
    exists.then(|| days_from_civil(year, month, day))
}

/// Whether a point in time lies in the years 0 to 9999.
pub fn datetime_in_range(micros: i64) -> bool {
    let first = i64::from(days_from_civil(0, 1, 1)) * MICROS_PER_DAY;
    let last = (i64::from(days_from_civil(9999, 12, 31)) + 1) * MICROS_PER_DAY;
    (first..last).contains(&micros)
}

/// A point in time, split into its day and the microseconds of that day.
pub fn split_datetime(micros: i64) -> (i32, i64) {
    (
        micros.div_euclid(MICROS_PER_DAY) as i32,
        micros.rem_euclid(MICROS_PER_DAY),
    )
}

/// Hours, minutes, seconds and microseconds of a span of time (its absolute value).
pub fn split_time(micros: i64) -> (i64, i64, i64, i64) {
    let micros = micros.abs();
    let seconds = micros / MICROS_PER_SECOND;
    (
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        micros % MICROS_PER_SECOND,
    )
}

/// 0 is Monday, 6 is Sunday.
pub fn weekday(days: i32) -> u32 {
    (days + 3).rem_euclid(7) as u32
}

/// 1 to 366.
pub fn day_of_year(days: i32) -> u32 {
    let (year, _, _) = civil_from_days(days);
    (days - days_from_civil(year, 1, 1) + 1) as u32
}

/// Adds months; the day becomes the month's last where it does not exist. `None` outside of the years 0 to 9999.
pub fn add_months(days: i32, months: i64) -> Option<i32> {
    let (year, month, day) = civil_from_days(days);
    let total = (i64::from(year) * 12 + i64::from(month) - 1).checked_add(months)?;
    let year = i32::try_from(total.div_euclid(12))
        .ok()
        .filter(|year| (0..=9999).contains(year))?;
    let month = total.rem_euclid(12) as u32 + 1;
    Some(days_from_civil(
        year,
        month,
        day.min(days_in_month(year, month)),
    ))
}

/// A two-digit year: 70 to 99 are in the 20th century, 00 to 69 in the 21st.
pub fn full_year(two_digits: i32) -> i32 {
    if two_digits < 70 {
        two_digits + 2000
    } else {
        two_digits + 1900
    }
}

/// Rounds microseconds to `fsp` digits of a second, half away from zero.
pub fn round_fraction(micros: i64, fsp: u8) -> i64 {
    let unit = 10i64.pow(6 - u32::from(fsp.min(6)));
    let half = if micros < 0 { -(unit / 2) } else { unit / 2 };
    (micros + half) / unit * unit
}

/// A date, or a date with a time, as text spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedDateTime {
    /// Microseconds since 1970-01-01 00:00:00.
    pub micros: i64,
    /// The text had more than a date.
    pub has_time: bool,
    /// Digits of the second's fraction in the text, at most 6.
    pub fraction_digits: u8,
}

impl ParsedDateTime {
    pub fn days(self) -> i32 {
        split_datetime(self.micros).0
    }
}

impl Argument<Date32Array> {
    /// The value for a row; `None` is NULL or the zero date.
    pub fn existing(&self, row: usize) -> Option<i32> {
        self.get(row).filter(|days| *days != ZERO_DATE)
    }
}

impl Argument<TimestampMicrosecondArray> {
    /// The value for a row; `None` is NULL or the zero date.
    pub fn existing(&self, row: usize) -> Option<i64> {
        self.get(row).filter(|micros| *micros != ZERO_DATETIME)
    }
}

/// Reads a date, with or without a time, in the forms that MySQL accepts; what follows is left. `None` if it is no date
/// that exists.
pub fn parse_datetime(text: &str) -> Option<ParsedDateTime> {
    let read = temporal::read_datetime(text).ok()?;
    Some(ParsedDateTime {
        micros: read.micros(6).ok()?,
        has_time: read.has_time,
        fraction_digits: read.fraction_digits,
    })
}

/// Reads a time of day or a span of time; what follows is left. Longer than 838:59:59 is cut to that. The second value
/// is the number of fraction digits.
pub fn parse_time(text: &str) -> Option<(i64, u8)> {
    let read = temporal::read_time(text).ok()?;
    Some((read.micros(6), read.fraction_digits))
}

/// The date that the digits of a number spell (`19970131`, `970131`), with a time if it has 12 or 14 digits.
pub fn datetime_from_number(number: i64) -> Option<ParsedDateTime> {
    let (micros, has_time) = temporal::datetime_from_number(number.into()).ok()?;
    Some(ParsedDateTime {
        micros,
        has_time,
        fraction_digits: 0,
    })
}

/// The span of time that the digits of a number spell (`123015` is 12:30:15).
pub fn time_from_number(number: i64) -> Option<i64> {
    match temporal::time_from_number(number.into()) {
        Ok(micros) => Some(micros),
        Err(temporal::NotTemporal::TooLong) => Some(MAX_TIME_MICROS * number.signum()),
        Err(_) => None,
    }
}

/// `YYYYMMDD`.
pub fn date_as_number(days: i32) -> i64 {
    let (year, month, day) = civil_from_days(days);
    i64::from(year) * 10_000 + i64::from(month * 100 + day)
}

/// `YYYYMMDDhhmmss`, without the fraction of the second.
pub fn datetime_as_number(micros: i64) -> i64 {
    let (days, of_day) = split_datetime(micros);
    date_as_number(days) * 1_000_000 + time_as_number(of_day)
}

/// `hhmmss`, signed, without the fraction of the second.
pub fn time_as_number(micros: i64) -> i64 {
    let (hours, minutes, seconds, _) = split_time(micros);
    let number = hours * 10_000 + minutes * 100 + seconds;
    if micros < 0 { -number } else { number }
}

pub fn push_date(out: &mut String, days: i32) {
    // Writing to a String cannot fail.
    let _ = temporal::write_date(out, days);
}

/// With `fsp` digits of the second's fraction.
pub fn push_datetime(out: &mut String, micros: i64, fsp: u8) {
    let _ = temporal::write_datetime(out, micros, fsp);
}

/// With `fsp` digits of the second's fraction.
pub fn push_time(out: &mut String, micros: i64, fsp: u8) {
    let _ = temporal::write_time(out, micros, fsp);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_inverse() {
        for days in (-719_528..2_932_896).step_by(97) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(checked_days(year, month, day), Some(days));
        }
        assert_eq!(civil_from_days(0), (1970, 1, 1));
        assert_eq!(weekday(0), 3);
    }

    #[test]
    fn dates_are_read_as_mysql_reads_them() {
        let read = |text: &str| {
            parse_datetime(text).map(|parsed| {
                let mut out = String::new();
                push_datetime(&mut out, parsed.micros, parsed.fraction_digits);
                out
            })
        };
        for (text, expected) in [
            ("1997-01-01", Some("1997-01-01 00:00:00")),
            ("97-1-1", Some("1997-01-01 00:00:00")),
            ("19970101", Some("1997-01-01 00:00:00")),
            ("19970101123456", Some("1997-01-01 12:34:56")),
            ("1997/01/01 12:30:05", Some("1997-01-01 12:30:05")),
            ("1997-01-01T12:30", Some("1997-01-01 12:30:00")),
            ("1997-01-01 12:30:05.25", Some("1997-01-01 12:30:05.25")),
            ("1997-02-29", None),
            ("1997-01-01 25:00:00", None),
            ("1997-01-01x", Some("1997-01-01 00:00:00")),
            ("0000-00-00", Some("0000-00-00 00:00:00")),
            ("1997-00-01", None),
            ("abc", None),
            ("", None),
        ] {
            assert_eq!(read(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn times_are_read_as_mysql_reads_them() {
        let read = |text: &str| {
            parse_time(text).map(|(micros, fsp)| {
                let mut out = String::new();
                push_time(&mut out, micros, fsp);
                out
            })
        };
        for (text, expected) in [
            ("12:30:15", Some("12:30:15")),
            ("12:30", Some("12:30:00")),
            ("-1 02:03:04", Some("-26:03:04")),
            ("123015", Some("12:30:15")),
            ("15", Some("00:00:15")),
            ("1000:00:00", Some("838:59:59")),
            ("2024-01-01 10:11:12", Some("10:11:12")),
            ("10:61", None),
        ] {
            assert_eq!(read(text).as_deref(), expected, "{text}");
        }
    }

    /// Texts from pieces of dates, in any order: what an assignment stores is what an expression reads.
    #[test]
    fn assignments_and_expressions_read_the_same() {
        use sheaf_types::assignment::{Mode, assign};
        use sheaf_types::{ColumnType, Value};
        let pieces = [
            "2024", "24", "0000", "00", "02", "2", "29", "31", "12", "10", "59", "60", "838", "-",
            "/", ":", ".", " ", "T", "x", ".5", ".4999995", ".1234567", "20240229", "101112", "\t",
            "+",
        ];
        let (point, span) = (ColumnType::DateTime { fsp: 6 }, ColumnType::Time { fsp: 6 });
        let mode = Mode {
            zero_date: true,
            ..Mode::LENIENT
        };
        let mut state = 0x2545_F491_4F6C_DD1Du64;
        let mut next = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        for _ in 0..20_000 {
            let text: String = (0..1 + next(9))
                .map(|_| pieces[next(pieces.len())])
                .collect();
            let stored = |ty: &ColumnType| {
                let value = Value::Text(text.clone());
                assign(ty, &value, mode).expect("lenient").0
            };
            let read = parse_datetime(&text).map_or(ZERO_DATETIME, |parsed| parsed.micros);
            assert_eq!(stored(&point), Value::DateTime(read), "{text:?}");
            let read = parse_time(&text).map_or(0, |(micros, _)| micros);
            assert_eq!(stored(&span), Value::Time(read), "{text:?}");
        }
    }
}
