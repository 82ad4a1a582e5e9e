//! Reads dates and times as MySQL does, from text in its many forms and from numbers such as 20240229. Assignments and
//! expressions both read them here, so that INSERT and CAST agree.
//!
//! ```text
//!   2024-02-29   24/2/29   2024-02-29 12:30:00.5   2024-02-29T12.30        any punctuation separates
//!   20240229   240229   20240229123000   20240229T123000                   digits alone: 4 of the year if 8, 14 or
//!   more -838:59:59   2 10:11 (58:11:00)   10:11   101112   12 (seconds)        times
//! ```
//!
//! Text behind a date or time is noticed and left: an assignment in strict mode makes an error of it, others a warning.
//! The zero date `0000-00-00` is a value ([`ZERO_DATE`]); a date of which only some part is zero is not.
//!
//! Seconds are rounded to the digits that are asked for, once, from nine digits of the text.
//!
//! Reference: MySQL manual, "String and Numeric Literals in Date and Time Context".

use super::calendar::{
    DAY, MAX_DATE, MAX_TIME, SECOND, ZERO_DATE, ZERO_DATETIME, days_from_civil, days_in_month,
};
use crate::text::is_space;

/// Why a text or number is no date or time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTemporal {
    /// It is none.
    Text,
    /// A date with a month or day of 0, as 2024-00-10: one to MySQL without NO_ZERO_IN_DATE, and not to be had here.
    ZeroInDate,
    /// A time, but longer than 838:59:59.
    TooLong,
    /// Rounding a moment leads out of the calendar.
    Overflow,
}

use NotTemporal::{Text, ZeroInDate};

/// Nanoseconds of a second.
const NANOS: i64 = 1_000_000_000;
/// More hours are no time, not even the longest.
const MOST_HOURS: u64 = u32::MAX as u64 - 1;
/// A text of a time that is as long may begin with a date.
const SHORTEST_DATETIME: usize = 12;

/// A date, with or without a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateTimeText {
    days: i32,
    nanos_of_day: i64,
    /// A time of day was given, if only midnight.
    pub has_time: bool,
    /// Digits of the second's fraction, at most 6.
    pub fraction_digits: u8,
    /// Something other than spaces follows.
    pub trailing: bool,
}

impl DateTimeText {
    /// Microseconds since 1970, rounded to `digits` digits of a second's fraction.
    ///
    /// # Errors
    /// `Overflow` if rounding leads out of the calendar.
    pub fn micros(&self, digits: u8) -> Result<i64, NotTemporal> {
        if self.days == ZERO_DATE {
            return Ok(ZERO_DATETIME);
        }
        let micros = rounded(self.nanos_of_day, digits);
        in_range(i64::from(self.days) * DAY + micros)
    }
}

/// A length of time, or a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeText {
    negative: bool,
    nanos: i64,
    /// Digits of the second's fraction, at most 6.
    pub fraction_digits: u8,
    /// Something other than spaces follows.
    pub trailing: bool,
    /// The time was longer than 838:59:59, and is that.
    pub is_cut: bool,
    /// It is the time of day of a date with a time.
    pub has_date: bool,
    /// Why there is no such day. The time of it is one all the same.
    pub no_day: Option<NotTemporal>,
}

impl TimeText {
    /// Signed microseconds, rounded to `digits` digits of a second's fraction.
    pub fn micros(&self, digits: u8) -> i64 {
        let size = rounded(self.nanos, digits).min(MAX_TIME);
        if self.negative { -size } else { size }
    }
}

/// Nanoseconds as microseconds, rounded to so many digits, halves up.
fn rounded(nanos: i64, digits: u8) -> i64 {
    let unit = 10i64.pow(9 - u32::from(digits.min(6)));
    (nanos + unit / 2) / unit * unit / 1000
}

/// Reads a date with or without a time of day.
///
/// # Errors
/// `Text` and `ZeroInDate`.
pub fn read_datetime(text: &str) -> Result<DateTimeText, NotTemporal> {
    let read = read_numbers(text)?;
    Ok(DateTimeText {
        days: read.day_of_calendar()?,
        nanos_of_day: read.nanos_of_day,
        has_time: read.has_time,
        fraction_digits: read.fraction_digits,
        trailing: read.trailing,
    })
}

/// A date of which the month or the day is zero, as 2024-00-10. No column holds one, but functions take some apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialDate {
    pub year: i32,
    pub month: u32,
    pub day: u32,
    pub micros_of_day: i64,
}

/// Reads such a date; `None` for any other text, and for 0000-00-00.
pub fn read_partial_date(text: &str) -> Option<PartialDate> {
    let read = read_numbers(text).ok()?;
    let is_partial = !read.is_zero && (read.month == 0 || read.day == 0);
    is_partial.then_some(PartialDate {
        year: read.year,
        month: read.month,
        day: read.day,
        micros_of_day: read.nanos_of_day / 1000,
    })
}

/// The numbers of a date and a clock, each of which is in its range.
struct Numbers {
    year: i32,
    month: u32,
    day: u32,
    /// All are zero.
    is_zero: bool,
    nanos_of_day: i64,
    has_time: bool,
    fraction_digits: u8,
    trailing: bool,
}

impl Numbers {
    fn day_of_calendar(&self) -> Result<i32, NotTemporal> {
        let (year, month, day) = (self.year, self.month, self.day);
        match (month, day) {
            _ if self.is_zero => Ok(ZERO_DATE),
            (0, _) | (_, 0) => Err(ZeroInDate),
            (month, day) if day <= days_in_month(year, month) => {
                Ok(days_from_civil(year, month, day))
            }
            _ => Err(Text),
        }
    }
}

fn read_numbers(text: &str) -> Result<Numbers, NotTemporal> {
    let mut input = Input::new(text);
    // A T among the digits, and behind them, counts as one.
    let run = input
        .rest
        .iter()
        .take_while(|byte| byte.is_ascii_digit() || **byte == b'T')
        .count();
    // Behind a year alone, a point separates.
    let is_compact = match input.rest.get(run) {
        None => true,
        Some(b'.') => run > 4,
        Some(_) => false,
    };
    let fields = match is_compact {
        true => compact_fields(&mut input, run)?,
        false => separated_fields(&mut input)?,
    };
    let Fields {
        mut year,
        year_digits,
        month,
        day,
        clock,
        has_time,
    } = fields;
    let [hour, minute, second] = clock;
    let (mut nanos, mut fraction_digits) = (0, 0);
    if has_time && input.eat(b'.') {
        (nanos, fraction_digits) = input.fraction();
    }
    let trailing = !input.is_at_end();
    let is_zero = [year, month, day, hour, minute, second] == [0; 6] && nanos == 0;
    if year_digits == 2 && !is_zero {
        year = if year < 70 { 2000 + year } else { 1900 + year };
    }
    if year > 9999 || month > 12 || day > 31 || hour > 23 || minute > 59 || second > 59 {
        return Err(Text);
    }
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    Ok(Numbers {
        year: year as i32,
        month,
        day,
        is_zero,
        nanos_of_day: seconds * NANOS + nanos,
        has_time,
        fraction_digits,
        trailing,
    })
}

/// Numbers of a date and a clock, before it was checked that there is such a day.
struct Fields {
    year: u32,
    year_digits: usize,
    month: u32,
    day: u32,
    clock: [u32; 3],
    has_time: bool,
}

/// `[YY]YYMMDD[[T]hh[mm[ss]]]`, which is `run` bytes long.
fn compact_fields(input: &mut Input<'_>, run: usize) -> Result<Fields, NotTemporal> {
    let year_digits = if run == 4 || run == 8 || run >= 14 {
        4
    } else {
        2
    };
    let (year, month, day) = (
        input.number(year_digits)?,
        input.number(2)?,
        input.number(2)?,
    );
    let mut clock = [0; 3];
    let mut has_time = false;
    // A T without a clock behind it is no part of the date.
    if input.rest.first() == Some(&b'T') && input.rest.get(1).is_some_and(u8::is_ascii_digit) {
        input.eat(b'T');
    }
    for part in &mut clock {
        if input.digits_ahead() == 0 {
            break;
        }
        *part = input.number(2)?;
        has_time = true;
    }
    // The fraction of a day, or of a minute, is none.
    if !has_time && input.rest.first() == Some(&b'.') {
        return Err(Text);
    }
    Ok(Fields {
        year,
        year_digits,
        month,
        day,
        clock,
        has_time,
    })
}

/// Fields with punctuation between them, and spaces or a T between date and clock.
fn separated_fields(input: &mut Input<'_>) -> Result<Fields, NotTemporal> {
    let year_digits = input.digits_ahead();
    let year = input.number_of_any_length()?;
    input.separators()?;
    let month = input.number_of_any_length()?;
    input.separators()?;
    let day = input.number_of_any_length()?;
    let mut fields = Fields {
        year,
        year_digits,
        month,
        day,
        clock: [0; 3],
        has_time: false,
    };
    if input.rest == b"T" {
        input.rest = &[];
    }
    let before = input.rest;
    if !input.eat(b'T') {
        while input
            .rest
            .first()
            .is_some_and(|byte| byte.is_ascii_punctuation() || is_space(*byte))
        {
            input.rest = &input.rest[1..];
        }
    }
    if input.digits_ahead() == 0 || before.len() == input.rest.len() {
        input.rest = before;
        return Ok(fields);
    }
    fields.has_time = true;
    for part in 0..3 {
        let before = input.rest;
        // Behind the seconds a point begins their fraction, and in front of them it separates.
        if part > 0 && (input.separators().is_err() || input.digits_ahead() == 0) {
            input.rest = before;
            break;
        }
        fields.clock[part] = input.number_of_any_length()?;
    }
    Ok(fields)
}

/// Rounding may lead out of the calendar.
pub(super) fn in_range(micros: i64) -> Result<i64, NotTemporal> {
    match micros.div_euclid(DAY) <= i64::from(MAX_DATE) {
        true => Ok(micros),
        false => Err(NotTemporal::Overflow),
    }
}

/// The point in time that a text spells, in microseconds since 1970; what follows is left. `None`: it is none.
pub fn datetime_of_text(text: &str) -> Option<i64> {
    read_datetime(text).ok()?.micros(6).ok()
}

/// The length of time that a text spells, in microseconds; what follows is left. `None`: it is none.
pub fn time_of_text(text: &str) -> Option<i64> {
    Some(read_time(text).ok()?.micros(6))
}

/// Reads `[-][D ]HH[:MM[:SS[.fraction]]]`, `[-]HHMMSS[.fraction]` or the time of day of a datetime.
///
/// # Errors
/// `Text`.
pub fn read_time(text: &str) -> Result<TimeText, NotTemporal> {
    let mut input = Input::new(text);
    let negative = input.rest.first() == Some(&b'-');
    let has_sign = negative || input.rest.first() == Some(&b'+');
    if has_sign {
        input.rest = &input.rest[1..];
    }
    if input.rest.len() >= SHORTEST_DATETIME
        && let Some(time) = time_of_datetime(&input)?
    {
        // No date is less than zero.
        return if negative { Err(Text) } else { Ok(time) };
    }
    // Between a sign and a time there may be spaces, as if there were no days.
    let first = match has_sign && input.rest.first().is_some_and(|byte| is_space(*byte)) {
        true => 0,
        false => input.long_number()?,
    };
    let mut parts = [first, 0, 0];
    let behind_first = input.rest;
    while input.rest.first().is_some_and(|byte| is_space(*byte)) {
        input.rest = &input.rest[1..];
    }
    // A single digit behind days is no time.
    let has_days =
        input.rest.len() < behind_first.len() && input.digits_ahead() > 0 && input.rest.len() > 1;
    if has_days {
        parts[0] = 24 * first + u64::from(input.number_of_any_length()?);
        clock_parts(&mut input, &mut parts)?;
    } else {
        input.rest = behind_first;
        if !clock_parts(&mut input, &mut parts)? {
            parts = [first / 10_000, first / 100 % 100, first % 100];
        }
    }
    let [hours, minutes, seconds] = parts;
    let (mut nanos, mut fraction_digits) = (0, 0);
    if input.eat(b'.') {
        (nanos, fraction_digits) = input.fraction();
    }
    // What %g makes of a number.
    if let [b'e' | b'E', b'0'..=b'9' | b'+' | b'-', ..] = input.rest {
        return Err(Text);
    }
    if minutes > 59 || seconds > 59 || hours > MOST_HOURS {
        return Err(Text);
    }
    let seconds = hours * 3600 + minutes * 60 + seconds;
    let longest = (MAX_TIME / SECOND) as u64;
    let is_cut = seconds > longest || (seconds == longest && nanos > 0);
    let nanos = match is_cut {
        true => MAX_TIME * 1000,
        false => seconds as i64 * NANOS + nanos,
    };
    Ok(TimeText {
        negative,
        nanos,
        fraction_digits,
        trailing: !input.is_at_end(),
        is_cut,
        has_date: false,
        no_day: None,
    })
}

/// `:MM[:SS]` behind the hours; false: there is no colon with a digit.
fn clock_parts(input: &mut Input<'_>, parts: &mut [u64; 3]) -> Result<bool, NotTemporal> {
    for (n, part) in parts.iter_mut().enumerate().skip(1) {
        let is_next =
            input.rest.first() == Some(&b':') && input.rest.get(1).is_some_and(u8::is_ascii_digit);
        if !is_next {
            return Ok(n > 1);
        }
        input.eat(b':');
        *part = input.number_of_any_length()?.into();
    }
    Ok(true)
}

/// Whether a text begins as `10:11:12 13` does: a date, although with colons.
fn is_date_of_colons(text: &[u8]) -> bool {
    let is_blank = |byte: &u8| *byte == b'T' || is_space(*byte);
    let Some(end) = text.iter().position(is_blank) else {
        return false;
    };
    let (date, behind) = text.split_at(end);
    let mut behind = behind.iter().skip_while(|byte| is_blank(byte));
    let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b':';
    date.iter().all(is_part)
        && date.iter().filter(|byte| **byte == b':').count() == 2
        && behind.next().is_some_and(u8::is_ascii_digit)
}

/// The time of day of a text that begins with a date; `None` if it does not, or has nothing else.
fn time_of_datetime(input: &Input<'_>) -> Result<Option<TimeText>, NotTemporal> {
    let run = input.digits_ahead();
    let behind = input.rest.get(run);
    let is_apart = input
        .rest
        .iter()
        .any(|byte| *byte == b'T' || is_space(*byte));
    let is_compact = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'T' | b'.');
    let may_be = match behind {
        Some(b'-' | b'/') => true,
        Some(b':') => is_date_of_colons(input.rest),
        Some(b'T') => input.rest.iter().all(is_compact),
        _ => run >= SHORTEST_DATETIME,
    };
    if !may_be || !(is_apart || run >= SHORTEST_DATETIME) {
        return Ok(None);
    }
    let text = std::str::from_utf8(input.rest).map_err(|_| Text)?;
    let read = read_numbers(text)?;
    let day = read.day_of_calendar();
    if !read.has_time {
        return day.map(|_| None);
    }
    Ok(Some(TimeText {
        negative: false,
        nanos: read.nanos_of_day,
        fraction_digits: read.fraction_digits,
        trailing: read.trailing,
        is_cut: false,
        has_date: true,
        no_day: day.err(),
    }))
}

/// Rounds a point in time to `digits` digits of a second's fraction, halves up. `None`: that is behind the last day.
pub fn round_datetime(micros: i64, digits: u8) -> Option<i64> {
    in_range(to_digits(micros, digits)).ok()
}

/// Rounds a length of time to `digits` digits of a second's fraction, halves away from zero, but not beyond the
/// longest time.
pub fn round_time(micros: i64, digits: u8) -> i64 {
    to_digits(micros.abs(), digits).min(MAX_TIME) * micros.signum()
}

/// Microseconds as a multiple of those of so many digits, halves up.
fn to_digits(micros: i64, digits: u8) -> i64 {
    let unit = 10i64.pow(6 - u32::from(digits.min(6)));
    (micros + unit / 2).div_euclid(unit) * unit
}

/// What is left to read.
struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// Without spaces around it.
    fn new(text: &'a str) -> Input<'a> {
        let mut rest = text.as_bytes();
        while let [first, behind @ ..] = rest
            && is_space(*first)
        {
            rest = behind;
        }
        while let [before @ .., last] = rest
            && is_space(*last)
        {
            rest = before;
        }
        Input { rest }
    }

    fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn digits_ahead(&self) -> usize {
        let digits = self.rest.iter();
        digits.take_while(|byte| byte.is_ascii_digit()).count()
    }

    /// One to `most` digits.
    fn number(&mut self, most: usize) -> Result<u32, NotTemporal> {
        self.number_of(self.digits_ahead().min(most))
    }

    /// All digits that come next. More than nine, but for zeros in front, make no part of a date or time.
    fn number_of_any_length(&mut self) -> Result<u32, NotTemporal> {
        self.number_of(self.digits_ahead())
    }

    /// As many hours as fit nowhere.
    fn long_number(&mut self) -> Result<u64, NotTemporal> {
        self.digits_as_number(self.digits_ahead(), 12)
    }

    fn number_of(&mut self, count: usize) -> Result<u32, NotTemporal> {
        Ok(self.digits_as_number(count, 9)? as u32)
    }

    /// The number of the next `count` digits, of which at most `most` stand behind zeros in front.
    fn digits_as_number(&mut self, count: usize, most: usize) -> Result<u64, NotTemporal> {
        let (digits, rest) = self.rest.split_at(count);
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        if count == 0 || count - zeros > most {
            return Err(Text);
        }
        self.rest = rest;
        let value = digits[zeros..].iter();
        Ok(value.fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.rest.first() == Some(&byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    /// Any punctuation separates fields, and any number of it.
    fn separators(&mut self) -> Result<(), NotTemporal> {
        let length = self.rest.iter();
        let length = length
            .take_while(|byte| byte.is_ascii_punctuation())
            .count();
        self.rest = &self.rest[length..];
        match length {
            0 => Err(Text),
            _ => Ok(()),
        }
    }

    /// The digits behind a point: nanoseconds, and how many digits there were, up to 6.
    fn fraction(&mut self) -> (i64, u8) {
        let count = self.digits_ahead();
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        let kept = &digits[..count.min(9)];
        let number = kept
            .iter()
            .fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        let nanos = number * 10i64.pow(9 - kept.len() as u32);
        (nanos, count.min(6) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::{datetime_from_number, push_datetime, push_time, time_from_number};

    fn datetime(text: &str, digits: u8) -> Option<String> {
        let read = read_datetime(text).ok()?;
        let mut out = String::new();
        push_datetime(read.micros(digits).ok()?, digits, &mut out);
        out.push_str(if read.trailing { " ..." } else { "" });
        Some(out)
    }

    fn time(text: &str, digits: u8) -> Option<String> {
        let read = read_time(text).ok()?;
        let mut out = String::new();
        push_time(read.micros(digits), digits, &mut out);
        out.push_str(if read.trailing { " ..." } else { "" });
        Some(out)
    }

    #[test]
    fn datetimes_are_read_in_all_of_mysqls_forms() {
        for (text, expected) in [
            ("2024-02-29", "2024-02-29 00:00:00"),
            ("2024-2-9", "2024-02-09 00:00:00"),
            ("24-02-09", "2024-02-09 00:00:00"),
            ("70-01-01", "1970-01-01 00:00:00"),
            ("124-02-09", "0124-02-09 00:00:00"),
            ("4-02-09", "0004-02-09 00:00:00"),
            ("2024/02^09", "2024-02-09 00:00:00"),
            ("20240209", "2024-02-09 00:00:00"),
            ("240209", "2024-02-09 00:00:00"),
            ("10102", "2010-10-02 00:00:00"),
            ("20240209101112", "2024-02-09 10:11:12"),
            ("20240209T101112", "2024-02-09 10:11:12"),
            ("240209T101112", "2024-02-09 10:11:12"),
            ("240209101112", "2024-02-09 10:11:12"),
            ("2402091011", "2024-02-09 10:11:00"),
            (" 2024-02-09  10:11:12 ", "2024-02-09 10:11:12"),
            ("2024-02-09\t", "2024-02-09 00:00:00"),
            ("2024-02-09T10:11:12", "2024-02-09 10:11:12"),
            ("2024-02-09 10:11", "2024-02-09 10:11:00"),
            ("2024-02-09 10.11.12", "2024-02-09 10:11:12"),
            ("2024-02-09 10", "2024-02-09 10:00:00"),
            ("2024-02-09-10-11-12", "2024-02-09 10:11:12"),
            ("2024-12-31 23:59:59.5", "2025-01-01 00:00:00"),
            ("1969-12-31 23:59:59.4", "1969-12-31 23:59:59"),
            ("2024-02-09 10:11:12.", "2024-02-09 10:11:12"),
            ("0000-00-00", "0000-00-00 00:00:00"),
            ("00-00-00 00:00:00", "0000-00-00 00:00:00"),
            ("00000000000000", "0000-00-00 00:00:00"),
            ("2024-01-01x", "2024-01-01 00:00:00 ..."),
            ("2024-01-01 x", "2024-01-01 00:00:00 ..."),
            ("2024-01-01T", "2024-01-01 00:00:00"),
            ("2024.02.09", "2024-02-09 00:00:00"),
            ("0000-00-00x", "0000-00-00 00:00:00 ..."),
            ("2024-01-01 10:11:12:13", "2024-01-01 10:11:12 ..."),
            ("2024-01-01 10 : 11", "2024-01-01 10:00:00 ..."),
            (
                "00000002006-000008-0000010 000010:0000011:00000012.0123450",
                "2006-08-10 10:11:12",
            ),
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
    fn rounding_ends_with_the_calendar_and_with_the_longest_time() {
        let end = (i64::from(MAX_DATE) + 1) * DAY;
        assert_eq!(round_datetime(end - 1, 6), Some(end - 1));
        assert_eq!(round_datetime(end - 1, 3), None);
        assert_eq!(round_datetime(ZERO_DATETIME, 0), Some(ZERO_DATETIME));
        assert_eq!(round_datetime(-1, 0), Some(0));
        assert_eq!(round_time(MAX_TIME + 900_000, 0), MAX_TIME);
        assert_eq!(round_time(-MAX_TIME - 900_000, 1), -MAX_TIME);
        assert_eq!(round_time(-1_500_000, 0), -2 * SECOND);
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
            "2024-01-01 24:00:00",
            "2024-01-01 10:60:00",
            "9999-12-31 23:59:59.9",
            "2024-01",
            "2024 -01-01",
            "20240229.5",
            "20240230",
            "2024010110111",
        ] {
            assert_eq!(datetime(text, 0), None, "{text}");
        }
        for text in ["2024-00-10", "2024-01-00", "0000-00-01"] {
            assert_eq!(read_datetime(text), Err(ZeroInDate), "{text}");
        }
    }

    #[test]
    fn numbers_are_dates_too() {
        for (number, expected) in [
            (20240229, "2024-02-29 00:00:00"),
            (240229, "2024-02-29 00:00:00"),
            (700101, "1970-01-01 00:00:00"),
            (20240229101112, "2024-02-29 10:11:12"),
            (0, "0000-00-00 00:00:00"),
        ] {
            let mut out = String::new();
            push_datetime(datetime_from_number(number).unwrap().0, 0, &mut out);
            assert_eq!(out, expected);
        }
        for number in [100, -1, 20240230, 20241301, 99991232] {
            assert_eq!(datetime_from_number(number), Err(Text), "{number}");
        }
        assert_eq!(datetime_from_number(20240010), Err(ZeroInDate));
    }

    #[test]
    fn times_are_read_in_all_of_mysqls_forms() {
        for (text, expected) in [
            ("10:11:12", "10:11:12"),
            ("-10:11:12", "-10:11:12"),
            ("+10:11:12", "10:11:12"),
            ("10:11", "10:11:00"),
            ("10:11.5", "10:11:01"),
            ("2 10:11", "58:11:00"),
            ("2 10", "58:00:00"),
            ("101112", "10:11:12"),
            ("1112", "00:11:12"),
            ("12", "00:00:12"),
            ("838:59:59", "838:59:59"),
            ("839:00:00", "838:59:59"),
            ("2402091011", "838:59:59"),
            ("10:11:12.6", "10:11:13"),
            ("2024-02-09 10:11:12", "10:11:12"),
            ("2024-02-09T10:11:12", "10:11:12"),
            ("20240209101112", "10:11:12"),
            ("10:11:12x", "10:11:12 ..."),
            ("10:", "00:00:10 ..."),
            ("10 x", "00:00:10 ..."),
            ("2024-00-09 10:11:12", "10:11:12"),
            ("2024-02-30 10:11:12", "10:11:12"),
            ("12:00:00 12.34.56", "12:34:56"),
            ("+2024-02-09 10:11:12", "10:11:12"),
            ("000000000000000010:0000000000011:00000012", "10:11:12"),
            ("4294967294:59:59", "838:59:59"),
        ] {
            assert_eq!(time(text, 0).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "x",
            "10:60",
            "1070",
            "-",
            "1e5",
            "-2024-02-09 10:11:12",
            "2024-13-09 10:11:12",
            "4294967296:59:59",
        ] {
            assert_eq!(time(text, 0), None, "{text}");
        }
        assert!(read_time("-839:00:00").is_ok_and(|time| time.is_cut));
        assert_eq!(
            time_from_number(-101112),
            Ok(-(10 * 3600 + 11 * 60 + 12) * SECOND)
        );
        let clock = Ok((10 * 3600 + 11 * 60 + 12) * SECOND);
        assert_eq!(time_from_number(20_240_009_101_112), clock);
        let no_day = |text: &str| read_time(text).unwrap().no_day;
        assert_eq!(no_day("2024-02-09 10:11:12"), None);
        assert_eq!(no_day("2024-02-30 10:11:12"), Some(Text));
        assert_eq!(no_day("2024-00-30 10:11:12"), Some(ZeroInDate));
        assert_eq!(time_from_number(8_390_000), Err(NotTemporal::TooLong));
    }
}
