//! Reads dates and times as MySQL does: from text in its many forms, and from numbers such as 20240229.
//!
//! A value that MySQL would accept only with a warning (`2024-02-30`, `2024-01-01x`) is refused; strict mode makes an
//! error of it. The zero date and zero months and days (modes NO_ZERO_DATE and NO_ZERO_IN_DATE) are refused too.

use crate::temporal::{DAY, MAX_DATE, MAX_TIME, SECOND, days_from_civil, days_in_month};

/// The text or number is no date or time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotTemporal;

/// Reads a date with or without a time of day: microseconds since 1970, rounded to `digits` digits of fraction.
/// The second part of the result: a time of day was given and is not zero.
pub fn parse_datetime(text: &str, digits: u8) -> Result<(i64, bool), NotTemporal> {
    let mut input = Input::new(text.trim_matches(' '));
    let run = input.digits_ahead();
    // Digits without separators: [YY]YYMMDD[[T]HHMMSS], nothing else of that form.
    let compact = matches!(run, 6 | 8 | 12 | 14)
        && matches!(input.rest.get(run), None | Some(b'.') | Some(b'T'));
    let (year_digits, year) = if compact {
        let year_digits = if matches!(run, 8 | 14) { 4 } else { 2 };
        (year_digits, input.number(year_digits)?)
    } else {
        (run, input.number(run.min(4))?)
    };
    let year = match (year_digits, year) {
        (4, year) => year,
        (1 | 2, year @ 0..=69) => 2000 + year,
        (1 | 2, year) => 1900 + year,
        _ => return Err(NotTemporal),
    };
    if !compact {
        input.separator()?;
    }
    let month = input.number(2)?;
    if !compact {
        input.separator()?;
    }
    let day = input.number(2)?;
    if !(1..=12).contains(&month) || !(1..=days_in_month(year as i32, month)).contains(&day) {
        return Err(NotTemporal);
    }
    let mut micros = 0;
    let mut has_time = false;
    if !input.is_at_end() {
        if !(compact && run > 8) {
            input.date_time_separator()?;
        }
        let compact_time = compact && (run > 8 || input.digits_ahead() == 6);
        micros = input.time_of_day(compact_time, digits)?;
        has_time = micros != 0;
    }
    if !input.is_at_end() {
        return Err(NotTemporal);
    }
    let days = days_from_civil(year as i32, month, day);
    in_range(i64::from(days) * DAY + micros).map(|micros| (micros, has_time))
}

/// Reads a number as YYMMDD, YYYYMMDD, YYMMDDHHMMSS or YYYYMMDDHHMMSS: microseconds since 1970.
pub fn datetime_from_number(number: i128) -> Result<i64, NotTemporal> {
    let full = match number {
        101..=691_231 => (number + 20_000_000) * 1_000_000,
        700_101..=991_231 => (number + 19_000_000) * 1_000_000,
        10_000_101..=99_991_231 => number * 1_000_000,
        101_000_000..=691_231_235_959 => number + 20_000_000_000_000,
        700_101_000_000..=991_231_235_959 => number + 19_000_000_000_000,
        10_000_101_000_000..=99_991_231_235_959 => number,
        _ => return Err(NotTemporal),
    };
    let field = |divisor: i128, modulus: i128| (full / divisor % modulus) as u32;
    let (year, month, day) = (
        field(10_000_000_000, 10_000),
        field(100_000_000, 100),
        field(1_000_000, 100),
    );
    let (hour, minute, second) = (field(10_000, 100), field(100, 100), field(1, 100));
    if !(1..=12).contains(&month)
        || !(1..=days_in_month(year as i32, month)).contains(&day)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return Err(NotTemporal);
    }
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    in_range(i64::from(days_from_civil(year as i32, month, day)) * DAY + seconds * SECOND)
}

/// Rounding may lead out of the calendar.
fn in_range(micros: i64) -> Result<i64, NotTemporal> {
    if micros.div_euclid(DAY) <= i64::from(MAX_DATE) {
        Ok(micros)
    } else {
        Err(NotTemporal)
    }
}

/// Reads `[-][D ]HH[:MM[:SS[.fraction]]]`, `[-]HHMMSS[.fraction]` or the time of day of a datetime: signed microseconds,
/// rounded to `digits` digits of fraction.
pub fn parse_time(text: &str, digits: u8) -> Result<i64, NotTemporal> {
    let text = text.trim_matches(' ');
    let (negative, size) = match text.strip_prefix('-') {
        Some(size) => (true, size),
        None => (false, text),
    };
    // A date in front makes it a datetime, of which the time of day is taken.
    let may_be_datetime = !negative && size.len() >= 12 && run_of_digits(size.as_bytes()) != 6;
    if may_be_datetime && let Ok((micros, _)) = parse_datetime(size, digits) {
        return Ok(micros.rem_euclid(DAY));
    }
    let mut input = Input::new(size);
    let run = input.digits_ahead();
    let micros = match input.rest.get(run) {
        None | Some(b'.') => {
            let number = input.number_of(run)?;
            clock(number / 10_000, number / 100 % 100, number % 100)? + input.fraction(digits)?
        }
        _ => {
            let mut hours = input.number_of(run)?;
            if input.rest.first() == Some(&b' ') {
                input.skip_spaces();
                hours = hours * 24 + input.number_of(input.digits_ahead())?;
            }
            let (mut minutes, mut seconds, mut fraction) = (0, 0, 0);
            if input.eat(b':') {
                minutes = u64::from(input.number(2)?);
                if input.eat(b':') {
                    seconds = u64::from(input.number(2)?);
                    fraction = input.fraction(digits)?;
                }
            }
            clock(hours, minutes, seconds)? + fraction
        }
    };
    if !input.is_at_end() || micros > MAX_TIME {
        return Err(NotTemporal);
    }
    Ok(if negative { -micros } else { micros })
}

/// Reads a number as HHMMSS: signed microseconds.
pub fn time_from_number(number: i128) -> Result<i64, NotTemporal> {
    let size = u64::try_from(number.unsigned_abs()).map_err(|_| NotTemporal)?;
    if size >= 10_000_000 {
        // Too many digits for a time: a datetime of which the time of day is taken.
        return datetime_from_number(number).map(|micros| micros.rem_euclid(DAY));
    }
    let micros = clock(size / 10_000, size / 100 % 100, size % 100)?;
    if micros > MAX_TIME {
        return Err(NotTemporal);
    }
    Ok(if number < 0 { -micros } else { micros })
}

/// Rounds a point in time to `digits` digits of a second's fraction, halves up.
pub fn round_datetime(micros: i64, digits: u8) -> i64 {
    let unit = 10i64.pow(6 - u32::from(digits.min(6)));
    (micros + unit / 2).div_euclid(unit) * unit
}

/// Rounds a length of time to `digits` digits of a second's fraction, halves away from zero.
pub fn round_time(micros: i64, digits: u8) -> i64 {
    round_datetime(micros.abs(), digits) * micros.signum()
}

fn clock(hours: u64, minutes: u64, seconds: u64) -> Result<i64, NotTemporal> {
    if hours > 10_000 || minutes > 59 || seconds > 59 {
        return Err(NotTemporal);
    }
    Ok((hours * 3600 + minutes * 60 + seconds) as i64 * SECOND)
}

fn run_of_digits(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count()
}

/// What is left to read.
struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn new(text: &'a str) -> Input<'a> {
        Input {
            rest: text.as_bytes(),
        }
    }

    fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn digits_ahead(&self) -> usize {
        run_of_digits(self.rest)
    }

    /// One to `most` digits.
    fn number(&mut self, most: usize) -> Result<u32, NotTemporal> {
        self.number_of(self.digits_ahead().min(most))
            .map(|number| number as u32)
    }

    /// `count` digits.
    fn number_of(&mut self, count: usize) -> Result<u64, NotTemporal> {
        if count == 0 || count > 18 {
            return Err(NotTemporal);
        }
        let (number, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(number
            .iter()
            .fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.rest.first() == Some(&byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn skip_spaces(&mut self) {
        while self.eat(b' ') {}
    }

    /// Any punctuation separates the fields of a date.
    fn separator(&mut self) -> Result<(), NotTemporal> {
        match self.rest.split_first() {
            Some((byte, rest)) if byte.is_ascii_punctuation() => {
                self.rest = rest;
                Ok(())
            }
            _ => Err(NotTemporal),
        }
    }

    fn date_time_separator(&mut self) -> Result<(), NotTemporal> {
        match self.rest.first() {
            Some(b'T') => self.rest = &self.rest[1..],
            Some(b' ') => self.skip_spaces(),
            _ => return Err(NotTemporal),
        }
        Ok(())
    }

    fn time_of_day(&mut self, compact: bool, digits: u8) -> Result<i64, NotTemporal> {
        let hour = self.number(2)?;
        let (mut minute, mut second, mut fraction) = (0, 0, 0);
        if compact || (!self.is_at_end() && self.separator().is_ok()) {
            minute = self.number(2)?;
            if compact || self.eat(b':') {
                second = self.number(2)?;
                fraction = self.fraction(digits)?;
            }
        }
        if hour > 23 {
            return Err(NotTemporal);
        }
        Ok(clock(u64::from(hour), u64::from(minute), u64::from(second))? + fraction)
    }

    /// `.digits`, or nothing: microseconds rounded to `digits` digits; may be a whole second.
    fn fraction(&mut self, digits: u8) -> Result<i64, NotTemporal> {
        if !self.eat(b'.') {
            return Ok(0);
        }
        let count = self.digits_ahead();
        let read = count.min(9);
        let nanos = match read {
            0 => 0,
            _ => self.number_of(read)? as i64 * 10i64.pow(9 - read as u32),
        };
        self.rest = &self.rest[count - read..];
        let unit = 10i64.pow(9 - u32::from(digits.min(6)));
        Ok((nanos + unit / 2) / unit * unit / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::{write_datetime, write_time};

    fn datetime(text: &str, digits: u8) -> Option<String> {
        let (micros, _) = parse_datetime(text, digits).ok()?;
        let mut out = String::new();
        write_datetime(&mut out, micros, digits).unwrap();
        Some(out)
    }

    fn time(text: &str, digits: u8) -> Option<String> {
        let micros = parse_time(text, digits).ok()?;
        let mut out = String::new();
        write_time(&mut out, micros, digits).unwrap();
        Some(out)
    }

    #[test]
    fn datetimes_are_read_in_all_of_mysqls_forms() {
        for (text, expected) in [
            ("2024-02-29", "2024-02-29 00:00:00"),
            ("2024-2-9", "2024-02-09 00:00:00"),
            ("24-02-09", "2024-02-09 00:00:00"),
            ("70-01-01", "1970-01-01 00:00:00"),
            ("2024/02^09", "2024-02-09 00:00:00"),
            ("20240209", "2024-02-09 00:00:00"),
            ("240209", "2024-02-09 00:00:00"),
            ("20240209101112", "2024-02-09 10:11:12"),
            ("20240209T101112", "2024-02-09 10:11:12"),
            ("240209101112", "2024-02-09 10:11:12"),
            (" 2024-02-09  10:11:12 ", "2024-02-09 10:11:12"),
            ("2024-02-09T10:11:12", "2024-02-09 10:11:12"),
            ("2024-02-09 10:11", "2024-02-09 10:11:00"),
            ("2024-02-09 10", "2024-02-09 10:00:00"),
            ("2024-12-31 23:59:59.5", "2025-01-01 00:00:00"),
            ("1969-12-31 23:59:59.4", "1969-12-31 23:59:59"),
        ] {
            assert_eq!(datetime(text, 0).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(
            datetime("2024-02-09 10:11:12.3456785", 6).unwrap(),
            "2024-02-09 10:11:12.345679"
        );
        assert_eq!(
            datetime("20240209101112.5", 1).unwrap(),
            "2024-02-09 10:11:12.5"
        );
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "abc",
            "2024",
            "2024-02-30",
            "2023-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-01-00",
            "0000-00-00",
            "2024-01-01x",
            "2024-01-01 24:00:00",
            "2024-01-01 10:60:00",
            "123-01-01",
            "9999-12-31 23:59:59.9",
            "2024-01-01 10:11:12:13",
            "2024-01",
        ] {
            assert_eq!(datetime(text, 0), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_dates_too() {
        for (number, expected) in [
            (20240229, "2024-02-29 00:00:00"),
            (240229, "2024-02-29 00:00:00"),
            (700101, "1970-01-01 00:00:00"),
            (20240229101112, "2024-02-29 10:11:12"),
        ] {
            let mut out = String::new();
            write_datetime(&mut out, datetime_from_number(number).unwrap(), 0).unwrap();
            assert_eq!(out, expected);
        }
        for number in [0, 100, -1, 20240230, 20241301, 99991232] {
            assert_eq!(datetime_from_number(number), Err(NotTemporal), "{number}");
        }
    }

    #[test]
    fn times_are_read_in_all_of_mysqls_forms() {
        for (text, expected) in [
            ("10:11:12", "10:11:12"),
            ("-10:11:12", "-10:11:12"),
            ("10:11", "10:11:00"),
            ("2 10:11", "58:11:00"),
            ("101112", "10:11:12"),
            ("1112", "00:11:12"),
            ("12", "00:00:12"),
            ("838:59:59", "838:59:59"),
            ("10:11:12.6", "10:11:13"),
            ("2024-02-09 10:11:12", "10:11:12"),
        ] {
            assert_eq!(time(text, 0).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "x", "10:60", "839:00:00", "10:11:12x", "1070"] {
            assert_eq!(time(text, 0), None, "{text}");
        }
        assert_eq!(
            time_from_number(-101112),
            Ok(-(10 * 3600 + 11 * 60 + 12) * SECOND)
        );
    }
}
