//! Dates and times as the numbers that their digits spell: 20240229, 20240229123000, 123000.

use super::calendar::{
    DAY, MAX_TIME, SECOND, ZERO_DATETIME, civil_from_days, days_from_civil, days_in_month,
    full_year, split_datetime, split_time,
};
use super::read::NotTemporal::{self, Text, TooLong, ZeroInDate};
use super::read::{in_range, round_datetime, round_time};
use crate::number::{Int256, checked_power_of_ten, divide_rounding, rescale};

/// 838:59:59, the longest TIME, as a number.
pub const MAX_TIME_NUMBER: i128 = 8_385_959;

/// Reads a number as YYMMDD, YYYYMMDD, YYMMDDHHMMSS or YYYYMMDDHHMMSS: microseconds since 1970, and whether it has a
/// time of day.
///
/// # Errors
/// `Text` and `ZeroInDate`.
pub fn datetime_from_number(number: i128) -> Result<(i64, bool), NotTemporal> {
    if number == 0 {
        return Ok((ZERO_DATETIME, false));
    }
    let ((year, month, day), of_day) = date_and_clock(number)?;
    if month == 0 || day == 0 {
        return Err(ZeroInDate);
    }
    if day > days_in_month(year, month) {
        return Err(Text);
    }
    let days = i64::from(days_from_civil(year, month, day));
    let micros = in_range(days * DAY + of_day)?;
    Ok((micros, number >= 100_000_000))
}

/// Year, month and day, of which the last two may be zero, and the time of day of such a number.
fn date_and_clock(number: i128) -> Result<((i32, u32, u32), i64), NotTemporal> {
    let full = match number {
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
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    Ok(((year as i32, month, day), seconds * SECOND))
}

/// Reads a number as HHMMSS: signed microseconds.
///
/// # Errors
/// `Text`, and `TooLong` beyond 838:59:59.
pub fn time_from_number(number: i128) -> Result<i64, NotTemporal> {
    let size = u64::try_from(number.unsigned_abs()).map_err(|_| Text)?;
    if size >= 10_000_000_000 {
        // Too many digits for a time: a datetime of which the time of day is taken.
        return date_and_clock(number).map(|(_, of_day)| of_day);
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

/// A number in the two parts that dates and times are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberParts {
    /// What is before the point, with the number's sign.
    pub whole: i128,
    /// Billionths behind the point, with the number's sign.
    pub nanos: i64,
}

/// Digits of the billionths.
const NANO_DIGITS: u8 = 9;
const NANOS: i128 = 1_000_000_000;

impl NumberParts {
    pub fn of_integer(number: i128) -> NumberParts {
        let (whole, nanos) = (number, 0);
        NumberParts { whole, nanos }
    }

    /// Of `unscaled` / 10^`scale`.
    pub fn of_decimal(unscaled: i128, scale: u8) -> NumberParts {
        let Some(unit) = checked_power_of_ten(scale) else {
            return NumberParts::of_integer(0);
        };
        let (whole, fraction) = (unscaled / unit, unscaled % unit);
        let nanos = rescale(fraction, scale, NANO_DIGITS).unwrap_or(0);
        NumberParts::carried(whole, nanos)
    }

    /// Of a DECIMAL of any width. What no number of 128 bits holds is the largest of its sign.
    pub fn of_wide_decimal(unscaled: Int256, scale: u8) -> NumberParts {
        let kept = scale.min(NANO_DIGITS);
        match unscaled.rescaled(scale, kept).and_then(Int256::to_i128) {
            Some(narrow) => NumberParts::of_decimal(narrow, kept),
            None if unscaled.is_negative() => NumberParts::of_integer(i128::MIN),
            None => NumberParts::of_integer(i128::MAX),
        }
    }

    /// Of a double as it is, not as it is written: 20110512154559.616 has .6171875 of a second.
    pub fn of_double(number: f64) -> NumberParts {
        let nanos = (number.fract() * NANOS as f64).round();
        NumberParts::carried(number.trunc() as i128, nanos as i128)
    }

    /// Rounding may have made a whole one of the billionths.
    fn carried(whole: i128, nanos: i128) -> NumberParts {
        NumberParts {
            whole: whole.saturating_add(nanos / NANOS),
            nanos: (nanos % NANOS) as i64,
        }
    }

    /// Millionths behind the point, rounded.
    fn micros(self) -> i64 {
        divide_rounding(self.nanos.into(), 1_000) as i64
    }
}

/// As [`datetime_from_number`], of a number with a fraction: the second's. A date alone has no seconds, so what is
/// behind its point is lost.
///
/// # Errors
/// `Text` and `ZeroInDate`.
pub fn datetime_from_parts(number: NumberParts) -> Result<(i64, bool), NotTemporal> {
    let (micros, has_time) = datetime_from_number(number.whole)?;
    match has_time {
        true => Ok((in_range(micros + number.micros())?, true)),
        false if number.nanos < 0 => Err(Text),
        false => Ok((micros, false)),
    }
}

/// As [`time_from_number`], of a number with a fraction. It does not lead beyond the longest time.
///
/// # Errors
/// `Text`, and `TooLong` beyond 838:59:59.
pub fn time_from_parts(number: NumberParts) -> Result<i64, NotTemporal> {
    let micros = time_from_number(number.whole)? + number.micros();
    Ok(micros.clamp(-MAX_TIME, MAX_TIME))
}

/// The point in time that the digits of a number spell, in microseconds since 1970. `None`: they spell none.
pub fn datetime_of_parts(number: NumberParts) -> Option<i64> {
    Some(datetime_from_parts(number).ok()?.0)
}

/// The day that the digits of a number spell. The fraction of a second does not lead to the next one. `None`: they
/// spell none.
pub fn date_of_parts(number: NumberParts) -> Option<i32> {
    let cut = NumberParts {
        nanos: number.nanos.min(0),
        ..number
    };
    Some(split_datetime(datetime_of_parts(cut)?).0)
}

/// As [`time_from_parts`], but a time that is too long is cut to the longest. `None`: the number spells none.
pub fn time_of_parts(number: NumberParts) -> Option<i64> {
    match time_from_parts(number) {
        Ok(micros) => Some(micros),
        Err(TooLong) => Some(MAX_TIME * number.whole.signum() as i64),
        Err(_) => None,
    }
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

/// `YYYYMMDDhhmmss` of a point in time that is rounded to seconds. At the end of the calendar its fraction is cut.
pub fn datetime_as_integer(micros: i64) -> i64 {
    datetime_as_number(round_datetime(micros, 0).unwrap_or(micros))
}

/// `hhmmss`, signed, of a length of time that is rounded to seconds.
pub fn time_as_integer(micros: i64) -> i64 {
    time_as_number(round_time(micros, 0))
}

/// `hhmmss`, signed, without the fraction of the second.
#[inline]
pub fn time_as_number(micros: i64) -> i64 {
    let (hours, minutes, seconds, _) = split_time(micros);
    let number = hours * 10_000 + minutes * 100 + seconds;
    if micros < 0 { -number } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::{MAX_DATE, push_datetime, push_time};

    fn datetime(number: NumberParts) -> Option<String> {
        let mut out = String::new();
        push_datetime(datetime_of_parts(number)?, 6, &mut out);
        Some(out)
    }

    fn time(number: NumberParts) -> Option<String> {
        let mut out = String::new();
        push_time(time_of_parts(number)?, 6, &mut out);
        Some(out)
    }

    #[test]
    fn the_fraction_of_a_number_is_that_of_its_second() {
        let moment = NumberParts::of_decimal(20_110_512_154_559_616, 3);
        assert_eq!(datetime(moment).unwrap(), "2011-05-12 15:45:59.616000");
        assert_eq!(time(moment).unwrap(), "15:45:59.616000");
        let double = NumberParts::of_double(20_110_512_154_559.616);
        assert_eq!(datetime(double).unwrap(), "2011-05-12 15:45:59.617188");
        let rounded = NumberParts::of_decimal(1_011_129_999_999, 7);
        assert_eq!(time(rounded).unwrap(), "10:11:13.000000");
        assert_eq!(
            time(NumberParts::of_double(-101_112.5)).unwrap(),
            "-10:11:12.500000"
        );
    }

    #[test]
    fn a_date_alone_loses_its_fraction() {
        for number in [
            NumberParts::of_decimal(202_402_295, 1),
            NumberParts::of_double(20_240_229.5),
        ] {
            assert_eq!(datetime(number).unwrap(), "2024-02-29 00:00:00.000000");
        }
        let zero = NumberParts::of_decimal(5, 1);
        assert_eq!(datetime_from_parts(zero), Ok((ZERO_DATETIME, false)));
        assert_eq!(datetime(NumberParts::of_decimal(-5, 1)), None);
    }

    #[test]
    fn no_fraction_leads_beyond_the_longest_time_or_the_last_day() {
        for number in [8_385_959.9, 20_240_229.5, 9e9] {
            let time = time_of_parts(NumberParts::of_double(number));
            assert_eq!(time, Some(MAX_TIME), "{number}");
            let time = time_of_parts(NumberParts::of_double(-number));
            assert_eq!(time, Some(-MAX_TIME), "-{number}");
        }
        let last = (i64::from(MAX_DATE) + 1) * DAY;
        assert_eq!(datetime_as_integer(last - 1_000), 99_991_231_235_959);
        assert_eq!(datetime_as_integer(-1), 19_700_101_000_000);
        assert_eq!(time_as_integer(MAX_TIME + 500_000), 8_385_959);
        let over = NumberParts::of_decimal(999_912_312_359_599_999_999, 7);
        assert_eq!(datetime(over), None);
        assert_eq!(date_of_parts(over), Some(MAX_DATE));
    }
}
