//! Dates and times as the numbers that their digits spell: 20240229, 20240229123000, 123000.

use super::calendar::{
    DAY, MAX_TIME, SECOND, ZERO_DATETIME, civil_from_days, days_from_civil, days_in_month,
    full_year, split_datetime, split_time,
};
use super::read::NotTemporal::{self, Text, TooLong, ZeroInDate};
use super::read::in_range;

/// Reads a number as YYMMDD, YYYYMMDD, YYMMDDHHMMSS or YYYYMMDDHHMMSS: microseconds since 1970, and whether it has a
/// time of day.
///
/// # Errors
/// `Text` and `ZeroInDate`.
pub fn datetime_from_number(number: i128) -> Result<(i64, bool), NotTemporal> {
    let full = match number {
        0 => return Ok((ZERO_DATETIME, false)),
        101..=691_231 => (number + 20_000_000) * 1_000_000,
        700_101..=991_231 => (number + 19_000_000) * 1_000_000,
        10_000_101..=99_991_231 => number * 1_000_000,
        101_000_000..=691_231_235_959 => number + 20_000_000_000_000,
        700_101_000_000..=991_231_235_959 => number + 19_000_000_000_000,
        10_000_101_000_000..=99_991_231_235_959 => number,
        _ => return Err(Text),
    };
    let field = |divisor: i128, modulus: i128| (full / divisor % modulus) as u32;
    let (year, month, day) = (
        field(10_000_000_000, 10_000),
        field(100_000_000, 100),
        field(1_000_000, 100),
    );
    let (hour, minute, second) = (field(10_000, 100), field(100, 100), field(1, 100));
    if month > 12 || day > 31 || hour > 23 || minute > 59 || second > 59 {
        return Err(Text);
    }
    if month == 0 || day == 0 {
        return Err(ZeroInDate);
    }
    if day > days_in_month(year as i32, month) {
        return Err(Text);
    }
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    let days = i64::from(days_from_civil(year as i32, month, day));
    let micros = in_range(days * DAY + seconds * SECOND)?;
    Ok((micros, number >= 100_000_000))
}

/// Reads a number as HHMMSS: signed microseconds.
///
/// # Errors
/// `Text`, and `TooLong` beyond 838:59:59.
pub fn time_from_number(number: i128) -> Result<i64, NotTemporal> {
    let size = u64::try_from(number.unsigned_abs()).map_err(|_| Text)?;
    if size >= 10_000_000_000 {
        // Too many digits for a time: a datetime of which the time of day is taken.
        return datetime_from_number(number).map(|(micros, _)| micros.rem_euclid(DAY));
    }
    let (hours, minutes, seconds) = (size / 10_000, size / 100 % 100, size % 100);
    if minutes > 59 || seconds > 59 {
        return Err(Text);
    }
    let micros = (hours * 3600 + minutes * 60 + seconds) as i64 * SECOND;
    if micros > MAX_TIME {
        return Err(TooLong);
    }
    Ok(if number < 0 { -micros } else { micros })
}

/// As [`time_from_number`], but a time that is too long is cut to the longest. `None`: the number spells none.
pub fn time_of_number(number: i64) -> Option<i64> {
    match time_from_number(number.into()) {
        Ok(micros) => Some(micros),
        Err(TooLong) => Some(MAX_TIME * number.signum()),
        Err(_) => None,
    }
}

/// The point in time that the digits of a number spell, in microseconds since 1970. `None`: they spell none.
pub fn datetime_of_number(number: i64) -> Option<i64> {
    Some(datetime_from_number(number.into()).ok()?.0)
}

/// A year of four digits, or of two: 70 to 99 are in the 20th century, 1 to 69 in the 21st. `None`: it is none of YEAR.
pub fn year_of_number(number: i64) -> Option<u16> {
    match number {
        0 | 1901..=2155 => Some(number as u16),
        1..=99 => Some(full_year(number as i32) as u16),
        _ => None,
    }
}

/// `YYYYMMDD`.
#[inline]
pub fn date_as_number(days: i32) -> i64 {
    let (year, month, day) = civil_from_days(days);
    i64::from(year) * 10_000 + i64::from(month * 100 + day)
}

/// `YYYYMMDDhhmmss`, without the fraction of the second.
#[inline]
pub fn datetime_as_number(micros: i64) -> i64 {
    let (days, of_day) = split_datetime(micros);
    date_as_number(days) * 1_000_000 + time_as_number(of_day)
}

/// `hhmmss`, signed, without the fraction of the second.
#[inline]
pub fn time_as_number(micros: i64) -> i64 {
    let (hours, minutes, seconds, _) = split_time(micros);
    let number = hours * 10_000 + minutes * 100 + seconds;
    if micros < 0 { -number } else { number }
}
