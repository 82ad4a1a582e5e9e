//! DATE_FORMAT and TIME_FORMAT, and STR_TO_DATE, which is their inverse. DATE_FORMAT writes [names](super::date_names)
//! of a locale; those that are read are English.
//!
//! Both directions go through a format from the left, one specifier after the other. Formatting appends to the text.
//! Parsing collects what it reads in [`Fields`] and makes a date of them at the end, because a year and a week may
//! stand in any order. What a text has behind the format is not lost: [`Reading`] tells the difference, which is a
//! warning.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, DurationMicrosecondArray, StringViewArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field};
use datafusion_common::Result;
use sheaf_types::temporal::{
    DAY, MAX_DATE, MIN_DATE, PartialDate, SECOND, ZERO_DATE, checked_days, civil_from_days,
    day_number, days_from_civil, full_year, split_datetime, split_time, weekday,
};

use super::argument::Argument;
use super::date::{MONTHS, PartialDates, WEEKDAYS, week_of};
use super::date_names::{DateNames, date_names_or_english};
use super::result_array::texts;
use super::types::field;
use super::{Call, Function, Operands};

pub(super) static FUNCTIONS: &[Function] = &[
    // The third argument is a locale.
    Function::new("date_format", (2, 3), |_| Ok(field::text()), date_format)
        .parts_of_date()
        .key_operand(),
    Function::new("time_format", (2, 2), |_| Ok(field::text()), time_format).time(),
    Function::new("str_to_date", (2, 2), parsed_type, str_to_date).null_in_doubt(),
];

fn ordinal_suffix(day: u32) -> &'static str {
    match (day % 10, day) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    }
}

/// Hours on a 12-hour clock.
fn half_day_hour(hours: i64) -> i64 {
    match hours % 12 {
        0 => 12,
        other => other,
    }
}

/// A date that is written.
#[derive(Clone, Copy)]
struct FormattedDate {
    days: i32,
    numbers: (i32, u32, u32),
}

impl FormattedDate {
    fn of(days: i32) -> FormattedDate {
        FormattedDate {
            days,
            numbers: civil_from_days(days),
        }
    }

    /// The day of zero comes before the first one.
    fn of_partial(date: PartialDate) -> FormattedDate {
        let month = days_from_civil(date.year, date.month.max(1), 1);
        FormattedDate {
            days: month + date.day as i32 - 1,
            numbers: (date.year, date.month, date.day),
        }
    }
}

/// Writes one date and time after `format`. `None` where MySQL gives NULL (a date's part of a mere time).
fn push_formatted(
    out: &mut String,
    format: &str,
    names: &DateNames,
    date: Option<FormattedDate>,
    micros: i64,
) -> Option<()> {
    let days = date.map(|date| date.days);
    let (hours, minutes, seconds, fraction) = split_time(micros);
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        let Some(specifier) = characters.next() else {
            out.push('%');
            break;
        };
        let numbers = || date.map(|date| date.numbers);
        // Of a date in the month of zero only the numbers are known.
        let needs_day = "abjMUuVvWwXx".contains(specifier);
        if needs_day && matches!(numbers(), Some((_, 0, _))) {
            return None;
        }
        // Writing to a String cannot fail.
        let written = match specifier {
            'a' => write!(out, "{}", names.short_weekdays[weekday(days?) as usize]),
            'b' => write!(out, "{}", names.short_months[numbers()?.1 as usize - 1]),
            'c' => write!(out, "{}", numbers()?.1),
            'D' => {
                let day = numbers()?.2;
                write!(out, "{day}{}", ordinal_suffix(day))
            }
            'd' => write!(out, "{:02}", numbers()?.2),
            'e' => write!(out, "{}", numbers()?.2),
            'f' => write!(out, "{fraction:06}"),
            'H' => write!(out, "{hours:02}"),
            'h' | 'I' => write!(out, "{:02}", half_day_hour(hours)),
            'i' => write!(out, "{minutes:02}"),
            'j' => {
                let first = day_number(days_from_civil(numbers()?.0, 1, 1));
                write!(out, "{:03}", day_number(days?) - first + 1)
            }
            'k' => write!(out, "{hours}"),
            'l' => write!(out, "{}", half_day_hour(hours)),
            'M' => write!(out, "{}", names.months[numbers()?.1 as usize - 1]),
            'm' => write!(out, "{:02}", numbers()?.1),
            'p' => write!(out, "{}", if hours % 24 < 12 { "AM" } else { "PM" }),
            'r' => {
                let half = if hours % 24 < 12 { "AM" } else { "PM" };
                write!(
                    out,
                    "{:02}:{minutes:02}:{seconds:02} {half}",
                    half_day_hour(hours)
                )
            }
            'S' | 's' => write!(out, "{seconds:02}"),
            'T' => write!(out, "{hours:02}:{minutes:02}:{seconds:02}"),
            'U' => write!(out, "{:02}", week_of(days?, 0).1),
            'u' => write!(out, "{:02}", week_of(days?, 1).1),
            'V' => write!(out, "{:02}", week_of(days?, 2).1),
            'v' => write!(out, "{:02}", week_of(days?, 3).1),
            'W' => write!(out, "{}", names.weekdays[weekday(days?) as usize]),
            'w' => write!(out, "{}", (weekday(days?) + 1) % 7),
            'X' => write!(out, "{:04}", week_of(days?, 2).0),
            'x' => write!(out, "{:04}", week_of(days?, 3).0),
            'Y' => write!(out, "{:04}", numbers()?.0),
            'y' => write!(out, "{:02}", numbers()?.0 % 100),
            other => write!(out, "{other}"),
        };
        debug_assert!(written.is_ok());
    }
    Some(())
}

fn date_format(call: &Call<'_>) -> Result<ArrayRef> {
    let (points, formats) = (call.datetime(0)?, call.text(1)?);
    let locales = (call.len() > 2).then(|| call.text(2)).transpose()?;
    let partial = PartialDates::of(call, 0)?;
    texts(call, |row, out| {
        let (date, of_day) = match points.get(row) {
            Some(micros) => {
                let (days, of_day) = split_datetime(micros);
                (FormattedDate::of(days), of_day)
            }
            None => {
                let date = partial.get(row)?;
                (FormattedDate::of_partial(date), date.micros_of_day)
            }
        };
        let names = date_names_or_english(locales.as_ref().and_then(|locales| locales.get(row)));
        push_formatted(out, format_of(&formats, row)?, names, Some(date), of_day)
    })
}

fn time_format(call: &Call<'_>) -> Result<ArrayRef> {
    let (times, formats) = (call.time(0)?, call.text(1)?);
    texts(call, |row, out| {
        let format = format_of(&formats, row)?;
        let micros = times.get(row)?;
        if micros < 0 {
            out.push('-');
        }
        push_formatted(out, format, date_names_or_english(None), None, micros)
    })
}

/// An empty format gives NULL.
fn format_of(formats: &Argument<StringViewArray>, row: usize) -> Option<&str> {
    formats.get(row).filter(|format| !format.is_empty())
}

/// What a format asks for decides the type: a date, a time, or both.
fn parsed_type(operands: &Operands<'_>) -> Result<Field> {
    let Some(format) = operands.text(1) else {
        return Ok(field::datetime(6));
    };
    let asks = |specifiers: &str| {
        let mut characters = format.chars();
        while let Some(character) = characters.next() {
            if character == '%'
                && characters
                    .next()
                    .is_some_and(|specifier| specifiers.contains(specifier))
            {
                return true;
            }
        }
        false
    };
    let date = asks("aWbcdDejmMuUvVwxXyY");
    let time = asks("fHhIiklrSsT");
    let fsp = if asks("f") { 6 } else { 0 };
    Ok(match (date, time) {
        (true, true) => field::datetime(fsp),
        (false, true) => field::time(fsp),
        _ => field::date(),
    })
}

/// The fields that a text gave.
#[derive(Default)]
struct Fields {
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<u32>,
    /// From Monday, 1, to Sunday, 7.
    weekday: Option<i32>,
    week: Option<Week>,
    /// The year of %X (weeks begin with Sunday) or %x.
    year_of_week: Option<(i32, bool)>,
    hours: i64,
    minutes: i64,
    seconds: i64,
    micros: i64,
    afternoon: Option<bool>,
}

/// A week's number, by %U, %u, %V or %v.
#[derive(Clone, Copy)]
struct Week {
    number: i32,
    /// Weeks begin with Sunday, and the first one is the first that does. Otherwise with Monday, and the first one has
    /// four days at least.
    from_sunday: bool,
    /// It is one of %X or %x, not of %Y.
    of_own_year: bool,
}

impl Fields {
    /// Makes an hour of a half day one of the whole day. `None`: there is no such hour.
    fn end_half_day(&mut self) -> Option<()> {
        if let Some(afternoon) = self.afternoon.take() {
            if !(1..=12).contains(&self.hours) {
                return None;
            }
            self.hours = self.hours % 12 + if afternoon { 12 } else { 0 };
        }
        Some(())
    }

    /// The day that a week and a day of it are. `None`: they are not given.
    fn day_of_week(&self) -> Option<Option<i32>> {
        let (week, weekday) = (self.week?, self.weekday?);
        let year = match (week.of_own_year, self.year_of_week) {
            (true, Some((year, from_sunday))) if from_sunday == week.from_sunday => Some(year),
            (false, None) => self.year,
            _ => None,
        };
        let first_day = |year: i32| {
            let new_year = days_from_civil(year, 1, 1);
            // 1970-01-01 was a Thursday.
            let from_monday = (new_year + 3).rem_euclid(7);
            match week.from_sunday {
                true => new_year + (6 - from_monday) % 7 + weekday % 7,
                false if from_monday <= 3 => new_year - from_monday + weekday - 1,
                false => new_year + 7 - from_monday + weekday - 1,
            }
        };
        let day = year.map(|year| first_day(year) + (week.number - 1) * 7);
        Some(day.filter(|day| (MIN_DATE..=MAX_DATE).contains(day)))
    }
}

/// Reads at most `most` digits.
fn number(text: &mut &str, most: usize) -> Option<i64> {
    let length = text
        .bytes()
        .take(most)
        .take_while(u8::is_ascii_digit)
        .count();
    let (digits, rest) = text.split_at(length);
    *text = rest;
    digits.parse().ok()
}

/// Reads a word that one of some names, whole or its first three letters, begins with; gives its position. `None` if
/// several names begin with it.
fn name(text: &mut &str, names: &[&str], abbreviated: bool) -> Option<usize> {
    let end = text.find(|letter: char| !letter.is_alphabetic());
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    let begins = |name: &&str| {
        let name = if abbreviated { &name[..3] } else { name };
        name.get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    let mut found = (0..names.len()).filter(|at| begins(&names[*at]));
    let first = found.next().filter(|_| !word.is_empty())?;
    *text = rest;
    found.next().is_none().then_some(first)
}

fn read_fields<'a>(mut text: &'a str, format: &str, fields: &mut Fields) -> Option<&'a str> {
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        text = text.trim_start();
        // What the text does not have is zero.
        if text.is_empty() {
            break;
        }
        if character.is_whitespace() {
            continue;
        }
        let specifier = match (character, characters.as_str().chars().next()) {
            ('%', Some(specifier)) => specifier,
            // A percent sign at the end stands for itself.
            _ => {
                text = text.strip_prefix(character)?;
                continue;
            }
        };
        characters.next();
        match specifier {
            'Y' => {
                let before = text.len();
                let year = number(&mut text, 4)? as i32;
                fields.year = Some(if before - text.len() <= 2 {
                    full_year(year)
                } else {
                    year
                });
            }
            'y' => fields.year = Some(full_year(number(&mut text, 2)? as i32)),
            'm' | 'c' => fields.month = Some(number(&mut text, 2)? as u32),
            'M' => fields.month = Some(name(&mut text, &MONTHS, false)? as u32 + 1),
            'b' => fields.month = Some(name(&mut text, &MONTHS, true)? as u32 + 1),
            'd' | 'e' => fields.day = Some(number(&mut text, 2)? as u32),
            'D' => {
                fields.day = Some(number(&mut text, 2)? as u32);
                text = text.get(2..)?;
            }
            'j' => {
                let day = number(&mut text, 3)? as u32;
                fields.day_of_year = (day > 0).then_some(day);
            }
            'a' => fields.weekday = Some(name(&mut text, &WEEKDAYS, true)? as i32 + 1),
            'W' => fields.weekday = Some(name(&mut text, &WEEKDAYS, false)? as i32 + 1),
            'w' => {
                let day = number(&mut text, 1).filter(|day| *day < 7)? as i32;
                fields.weekday = Some(if day == 0 { 7 } else { day });
            }
            'U' | 'u' | 'V' | 'v' => {
                fields.week = Some(Week {
                    number: number(&mut text, 2).filter(|week| *week <= 53)? as i32,
                    from_sunday: specifier.is_ascii_uppercase(),
                    of_own_year: specifier.eq_ignore_ascii_case(&'v'),
                });
            }
            'X' | 'x' => {
                fields.year_of_week = Some((number(&mut text, 4)? as i32, specifier == 'X'));
            }
            'H' | 'k' => fields.hours = number(&mut text, 2)?,
            'h' | 'I' | 'l' => {
                fields.hours = number(&mut text, 2).filter(|hours| (1..=12).contains(hours))?;
                fields.afternoon.get_or_insert(false);
            }
            'i' => fields.minutes = number(&mut text, 2)?,
            'S' | 's' => fields.seconds = number(&mut text, 2)?,
            'f' => {
                let before = text.len();
                let digits = number(&mut text, 6)?;
                fields.micros = digits * 10i64.pow(6 - (before - text.len()) as u32);
            }
            // Only an hour of the half day before it has one.
            'p' => {
                fields.afternoon?;
                let (half, rest) = text.split_at_checked(2)?;
                let is = |name: &str| half.eq_ignore_ascii_case(name);
                fields.afternoon = Some(is("PM")).filter(|afternoon| *afternoon || is("AM"));
                fields.afternoon?;
                text = rest;
            }
            'T' => text = read_fields(text, "%H:%i:%s", fields)?,
            // A time of its own: an hour that follows is one of the whole day.
            'r' => {
                let outside = fields.afternoon.take();
                text = read_fields(text, "%h:%i:%s %p", fields)?;
                fields.end_half_day()?;
                fields.afternoon = outside;
            }
            // What is passed over, if there is any of it.
            '.' => text = text.trim_start_matches(|c: char| c.is_ascii_punctuation()),
            '@' => text = text.trim_start_matches(|c: char| c.is_ascii_alphabetic()),
            '#' => text = text.trim_start_matches(|c: char| c.is_ascii_digit()),
            _ => return None,
        }
    }
    Some(text)
}

/// What STR_TO_DATE makes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    Whole,
    /// The format does not mention what the text ends with.
    Beginning,
    Nothing,
}

/// How much of a text STR_TO_DATE reads.
pub(crate) fn reading(text: &str, format: &str) -> Reading {
    match read(text, format) {
        None => Reading::Nothing,
        Some((_, _, rest)) if rest.trim_start().is_empty() => Reading::Whole,
        Some(_) => Reading::Beginning,
    }
}

/// Day number and time of day that a text and its format give, and what the format does not mention.
fn read<'a>(text: &'a str, format: &str) -> Option<(i32, i64, &'a str)> {
    let mut fields = Fields::default();
    let rest = read_fields(text, format, &mut fields)?;
    fields.end_half_day()?;
    if fields.minutes > 59 || fields.seconds > 59 || fields.hours > 23 {
        return None;
    }
    let clock =
        ((fields.hours * 60 + fields.minutes) * 60 + fields.seconds) * SECOND + fields.micros;
    if let Some(day) = fields.day_of_week() {
        return Some((day?, clock, rest));
    }
    let days = match (fields.year, fields.month, fields.day, fields.day_of_year) {
        // What the text does not have is zero.
        (None | Some(0), None | Some(0), None | Some(0), None) => ZERO_DATE,
        // A number beyond the year's last day is a day of the next one.
        (Some(year), _, _, Some(day)) => {
            let day = i32::try_from(day).ok()?;
            let days = days_from_civil(year, 1, 1) + day - 1;
            Some(days).filter(|days| *days <= MAX_DATE)?
        }
        (Some(year), Some(month), Some(day), None) => checked_days(year, month, day)?,
        // A zero month or day is no date here.
        _ => return None,
    };
    Some((days, clock, rest))
}

fn str_to_date(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, formats) = (call.text(0)?, call.text(1)?);
    let read = |row: usize| read(values.get(row)?, formats.get(row)?);
    Ok(match call.result_type() {
        DataType::Date32 => Arc::new(
            (0..call.rows())
                .map(|row| Some(read(row)?.0))
                .collect::<Date32Array>(),
        ),
        DataType::Duration(_) => Arc::new(
            (0..call.rows())
                .map(|row| Some(read(row)?.1))
                .collect::<DurationMicrosecondArray>(),
        ),
        _ => {
            let point = |row: usize| {
                let (days, clock, _) = read(row)?;
                // No value has the zero date and a time of day.
                let is_moment = days != ZERO_DATE || clock == 0;
                is_moment.then_some(i64::from(days) * DAY + clock)
            };
            Arc::new(
                (0..call.rows())
                    .map(point)
                    .collect::<TimestampMicrosecondArray>(),
            )
        }
    })
}
