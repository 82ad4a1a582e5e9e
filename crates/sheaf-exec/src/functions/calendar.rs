//! The proleptic Gregorian calendar as MySQL's functions need it: dates as days since 1970-01-01, points in time as
//! microseconds since then, durations as microseconds; reading and printing each.
//!
//! Dates run from 0000-01-01 to 9999-12-31; a result outside is NULL to the caller. MySQL's zero dates
//! (`0000-00-00`, a zero month or day) are not dates here: they read as `None`.

use sheaf_table::temporal;
pub use sheaf_table::temporal::{civil_from_days, days_from_civil, days_in_month, is_leap_year};

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

/// Reads digits; at most `most` of them.
fn digits<'a>(text: &mut &'a str, most: usize) -> Option<&'a str> {
    let length = text
        .bytes()
        .take(most)
        .take_while(u8::is_ascii_digit)
        .count();
    if length == 0 {
        return None;
    }
    let (taken, rest) = text.split_at(length);
    *text = rest;
    Some(taken)
}

/// The fraction of a second as microseconds, rounded at the seventh digit, and the number of its digits.
fn fraction(text: &mut &str) -> (i64, u8) {
    let Some(rest) = text.strip_prefix('.') else {
        return (0, 0);
    };
    *text = rest;
    let all = digits(text, usize::MAX).unwrap_or("");
    let kept = &all[..all.len().min(6)];
    let mut micros = kept.parse::<i64>().unwrap_or(0) * 10i64.pow(6 - kept.len() as u32);
    if all.as_bytes().get(6).is_some_and(|digit| *digit >= b'5') {
        micros += 1;
    }
    (micros, kept.len() as u8)
}

/// Reads a date, with or without a time, in the forms that MySQL accepts: `2024-02-29`, `24-2-9`, `20240229`, and with
/// a time `2024-02-29 12:30:00.5`, `2024-02-29T12:30`, `20240229123000`. Any punctuation separates. `None` if it is no
/// date that exists, or if anything but spaces follows.
pub fn parse_datetime(text: &str) -> Option<ParsedDateTime> {
    let mut rest = text.trim();
    let leading = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = |text: &str| text.parse::<u32>().ok();
    let after = rest.as_bytes().get(leading).copied();
    // Digits without separators: YYMMDD, YYYYMMDD, and the same with hhmmss.
    if leading >= 5 && (after.is_none() || after == Some(b'.')) {
        let all = digits(&mut rest, usize::MAX)?;
        let year_digits = match all.len() {
            8 | 14 => 4,
            5 | 6 | 12 => 2,
            _ => return None,
        };
        let padded = if all.len() == 5 {
            format!("0{all}")
        } else {
            all.to_string()
        };
        let year: i32 = padded[..year_digits].parse().ok()?;
        let year = if year_digits == 2 {
            full_year(year)
        } else {
            year
        };
        let field = |position: usize| {
            number(padded.get(year_digits + position..year_digits + position + 2)?)
        };
        let days = checked_days(year, field(0)?, field(2)?)?;
        let has_time = padded.len() > year_digits + 4;
        let (hour, minute, second) = if has_time {
            (field(4)?, field(6)?, field(8)?)
        } else {
            (0, 0, 0)
        };
        let (micros, fraction_digits) = fraction(&mut rest);
        return finish_datetime(
            days,
            (hour, minute, second),
            micros,
            has_time,
            fraction_digits,
            rest,
        );
    }
    let year_text = digits(&mut rest, 4)?;
    let separator = |rest: &mut &str| -> Option<()> {
        let first = rest.chars().next().filter(char::is_ascii_punctuation)?;
        *rest = &rest[first.len_utf8()..];
        Some(())
    };
    separator(&mut rest)?;
    let month = number(digits(&mut rest, 2)?)?;
    separator(&mut rest)?;
    let day = number(digits(&mut rest, 2)?)?;
    let year: i32 = year_text.parse().ok()?;
    let year = if year_text.len() <= 2 {
        full_year(year)
    } else {
        year
    };
    let days = checked_days(year, month, day)?;
    if rest.is_empty() {
        return finish_datetime(days, (0, 0, 0), 0, false, 0, rest);
    }
    let after_separator = rest.trim_start_matches([' ', 'T', 't']);
    if after_separator.len() == rest.len() && separator(&mut rest).is_none() {
        return None;
    }
    if after_separator.len() < rest.len() {
        rest = after_separator;
    }
    let hour = number(digits(&mut rest, 2)?)?;
    let mut minute = 0;
    let mut second = 0;
    if !rest.is_empty() && separator(&mut rest).is_some() {
        minute = number(digits(&mut rest, 2)?)?;
        if rest.starts_with(':') || (!rest.starts_with('.') && separator(&mut rest).is_some()) {
            rest = rest.strip_prefix(':').unwrap_or(rest);
            second = number(digits(&mut rest, 2)?)?;
        }
    }
    let (micros, fraction_digits) = fraction(&mut rest);
    finish_datetime(
        days,
        (hour, minute, second),
        micros,
        true,
        fraction_digits,
        rest,
    )
}

fn finish_datetime(
    days: i32,
    (hour, minute, second): (u32, u32, u32),
    micros: i64,
    has_time: bool,
    fraction_digits: u8,
    rest: &str,
) -> Option<ParsedDateTime> {
    if hour > 23 || minute > 59 || second > 59 || !rest.trim().is_empty() {
        return None;
    }
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    Some(ParsedDateTime {
        micros: i64::from(days) * MICROS_PER_DAY + seconds * MICROS_PER_SECOND + micros,
        has_time,
        fraction_digits,
    })
}

/// Reads a time of day or a span of time: `12:30:15.5`, `-1 02:03:04`, `12:30`, `123015`, `15`; a text with a date gives
/// its time of day. Longer than 838:59:59 is cut to that. The second value is the number of fraction digits.
pub fn parse_time(text: &str) -> Option<(i64, u8)> {
    let text = text.trim();
    // With a date before it: digits and a dash, or digits for both.
    let leading = text.bytes().take_while(u8::is_ascii_digit).count();
    let has_date =
        leading >= 12 || (leading > 0 && matches!(text.as_bytes().get(leading), Some(b'-' | b'/')));
    if has_date {
        let parsed = parse_datetime(text)?;
        return Some((split_datetime(parsed.micros).1, parsed.fraction_digits));
    }
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let number = |rest: &mut &str| digits(rest, 10)?.parse::<i64>().ok();
    let first = number(&mut rest)?;
    let (hours, minutes, seconds);
    if let Some(after_days) = rest.strip_prefix(' ') {
        rest = after_days.trim_start();
        let hour = number(&mut rest)?;
        let mut parts = [0i64; 2];
        for part in &mut parts {
            let Some(after) = rest.strip_prefix(':') else {
                break;
            };
            rest = after;
            *part = number(&mut rest)?;
        }
        (hours, minutes, seconds) = (first * 24 + hour, parts[0], parts[1]);
    } else if let Some(after) = rest.strip_prefix(':') {
        rest = after;
        let minute = number(&mut rest)?;
        let second = match rest.strip_prefix(':') {
            Some(after) => {
                rest = after;
                number(&mut rest)?
            }
            None => 0,
        };
        (hours, minutes, seconds) = (first, minute, second);
    } else {
        (hours, minutes, seconds) = (first / 10_000, first / 100 % 100, first % 100);
    }
    let (micros, fraction_digits) = fraction(&mut rest);
    if minutes > 59 || seconds > 59 || !rest.trim().is_empty() {
        return None;
    }
    let total = ((hours * 60 + minutes) * 60 + seconds).checked_mul(MICROS_PER_SECOND)? + micros;
    let total = total.min(MAX_TIME_MICROS);
    Some((if negative { -total } else { total }, fraction_digits))
}

/// The date that the digits of a number spell (`19970131`, `970131`), with a time if it has 12 or 14 digits.
pub fn datetime_from_number(number: i64) -> Option<ParsedDateTime> {
    if !(101..=99_991_231_235_959).contains(&number) {
        return None;
    }
    let (date, time) = if number >= 100_000_000 {
        (number / 1_000_000, number % 1_000_000)
    } else {
        (number, 0)
    };
    let year = (date / 10_000) as i32;
    let year = if date < 1_000_000 {
        full_year(year)
    } else {
        year
    };
    let days = checked_days(year, (date / 100 % 100) as u32, (date % 100) as u32)?;
    let clock = (
        (time / 10_000) as u32,
        (time / 100 % 100) as u32,
        (time % 100) as u32,
    );
    finish_datetime(days, clock, 0, number >= 100_000_000, 0, "")
}

/// The span of time that the digits of a number spell (`123015` is 12:30:15).
pub fn time_from_number(number: i64) -> Option<i64> {
    if number.abs() >= 10_000_000_000 {
        return datetime_from_number(number).map(|parsed| split_datetime(parsed.micros).1);
    }
    let size = number.abs();
    let (hours, minutes, seconds) = (size / 10_000, size / 100 % 100, size % 100);
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let micros = (((hours * 60 + minutes) * 60 + seconds) * MICROS_PER_SECOND).min(MAX_TIME_MICROS);
    Some(if number < 0 { -micros } else { micros })
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

fn push_fraction(out: &mut String, micros: i64, fsp: u8) {
    use std::fmt::Write;
    if fsp > 0 {
        let digits = usize::from(fsp.min(6));
        let shown = micros / 10i64.pow(6 - digits as u32);
        // Writing to a String cannot fail.
        let _ = write!(out, ".{shown:0digits$}");
    }
}

pub fn push_date(out: &mut String, days: i32) {
    use std::fmt::Write;
    let (year, month, day) = civil_from_days(days);
    let _ = write!(out, "{year:04}-{month:02}-{day:02}");
}

/// With `fsp` digits of the second's fraction.
pub fn push_datetime(out: &mut String, micros: i64, fsp: u8) {
    use std::fmt::Write;
    let (days, of_day) = split_datetime(micros);
    let (hours, minutes, seconds, fraction) = split_time(of_day);
    push_date(out, days);
    let _ = write!(out, " {hours:02}:{minutes:02}:{seconds:02}");
    push_fraction(out, fraction, fsp);
}

/// With `fsp` digits of the second's fraction.
pub fn push_time(out: &mut String, micros: i64, fsp: u8) {
    use std::fmt::Write;
    let (hours, minutes, seconds, fraction) = split_time(micros);
    let sign = if micros < 0 { "-" } else { "" };
    let _ = write!(out, "{sign}{hours:02}:{minutes:02}:{seconds:02}");
    push_fraction(out, fraction, fsp);
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
            ("1997-01-01x", None),
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
}
