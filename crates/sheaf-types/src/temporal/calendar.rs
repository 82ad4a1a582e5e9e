//! Dates and times on the proleptic Gregorian calendar: conversion between calendar fields and counts, and MySQL's
//! text.
//!
//! A date is days since 1970-01-01; a time of day or an interval is signed microseconds; a datetime is microseconds
//! since 1970-01-01 00:00:00 on whatever clock the column is about. The reading of text is in
//! `read`.
//!
//! MySQL's zero date `0000-00-00` is the day before the first one, [`ZERO_DATE`], and with a time of day midnight of
//! it. So it sorts before all others. Its year, month and day are 0; that is all the calendar says of it.

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
#[inline]
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
#[inline]
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

/// True if the year has a 29 February. The year 0 has none in MySQL.
#[inline]
pub const fn is_leap_year(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) && year != 0
}

/// Days of a month.
#[inline]
pub const fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap_year(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Day number (TO_DAYS) of 1970-01-01.
pub const DAYS_TO_EPOCH: i64 = 719_528;

/// The year 0 has a 29th of February where dates are counted from 1970, and none in MySQL. So differences and weekdays
/// are those of [`day_number`]s.
const DAYS_BEFORE_MARCH_OF_0: i64 = 60;

/// MySQL's number of a day, TO_DAYS: 1 of 0000-01-01.
#[inline]
pub fn day_number(days: i32) -> i64 {
    let number = i64::from(days) + DAYS_TO_EPOCH;
    number + i64::from(number < DAYS_BEFORE_MARCH_OF_0)
}

/// Days since 1970-01-01 of the day of this number. `None`: there is no such day.
pub fn day_of_number(number: i64) -> Option<i32> {
    let is_early = (1..DAYS_BEFORE_MARCH_OF_0).contains(&number);
    let days = (number - i64::from(is_early)).checked_sub(DAYS_TO_EPOCH)?;
    let days = i32::try_from(days).ok().filter(|_| number > 0)?;
    (days <= MAX_DATE).then_some(days)
}

/// Days since 1970-01-01 of a date that may not exist.
#[inline]
pub fn checked_days(year: i32, month: u32, day: u32) -> Option<i32> {
    let exists = (0..=9999).contains(&year)
        && (1..=12).contains(&month)
        && day >= 1
        && day <= days_in_month(year, month);
    exists.then(|| days_from_civil(year, month, day))
}

/// A point in time and a length of time, in microseconds; `None` outside of the years 0 to 9999.
pub fn add_micros(point: i64, micros: i64) -> Option<i64> {
    let (days, of_day) = split_datetime(point);
    let sum = (day_number(days) * DAY + of_day).checked_add(micros)?;
    let days = day_of_number(sum.div_euclid(DAY))?;
    Some(i64::from(days) * DAY + sum.rem_euclid(DAY))
}

/// Microseconds from one point in time to another.
pub fn micros_between(from: i64, to: i64) -> i64 {
    let counted = |point: i64| {
        let (days, of_day) = split_datetime(point);
        day_number(days) * DAY + of_day
    };
    counted(to) - counted(from)
}

/// Whether a point in time lies in the years 0 to 9999.
#[inline]
pub fn datetime_in_range(micros: i64) -> bool {
    let first = i64::from(MIN_DATE) * DAY;
    let end = (i64::from(MAX_DATE) + 1) * DAY;
    (first..end).contains(&micros)
}

/// A point in time, split into its day and the microseconds of that day.
#[inline]
pub fn split_datetime(micros: i64) -> (i32, i64) {
    (micros.div_euclid(DAY) as i32, micros.rem_euclid(DAY))
}

/// Hours, minutes, seconds and microseconds of a length of time, without its sign.
#[inline]
pub fn split_time(micros: i64) -> (i64, i64, i64, i64) {
    let size = micros.unsigned_abs();
    let seconds = (size / SECOND as u64) as i64;
    let fraction = (size % SECOND as u64) as i64;
    (seconds / 3600, seconds / 60 % 60, seconds % 60, fraction)
}

/// 0 is Monday, 6 is Sunday.
#[inline]
pub fn weekday(days: i32) -> u32 {
    // The first day is a Sunday.
    (day_number(days) + 5).rem_euclid(7) as u32
}

/// 1 to 366.
pub fn day_of_year(days: i32) -> u32 {
    let (year, _, _) = civil_from_days(days);
    (day_number(days) - day_number(days_from_civil(year, 1, 1)) + 1) as u32
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
#[inline]
pub fn full_year(two_digits: i32) -> i32 {
    if two_digits < 70 {
        two_digits + 2000
    } else {
        two_digits + 1900
    }
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
    }

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
    fn day_numbers_begin_with_the_first_date() {
        assert_eq!(day_number(MIN_DATE), 1);
        assert_eq!(day_number(0), DAYS_TO_EPOCH);
        for number in [1, 59, 60, 366, DAYS_TO_EPOCH, 3_652_424] {
            assert_eq!(day_of_number(number).map(day_number), Some(number));
        }
        for number in [i64::MIN, -1, 0, 3_652_425, i64::MAX] {
            assert_eq!(day_of_number(number), None, "{number}");
        }
    }

    #[test]
    fn the_year_0_has_no_leap_day() {
        assert_eq!(checked_days(0, 2, 29), None);
        let (february, march) = (days_from_civil(0, 2, 28), days_from_civil(0, 3, 1));
        assert_eq!((weekday(MIN_DATE), weekday(february)), (6, 1));
        assert_eq!(weekday(march), 2);
        assert_eq!(day_of_year(march), 60);
        let midnight = |days: i32| i64::from(days) * DAY;
        assert_eq!(add_micros(midnight(february), DAY), Some(midnight(march)));
        assert_eq!(add_micros(midnight(march), -DAY), Some(midnight(february)));
        assert_eq!(micros_between(midnight(march), midnight(february)), -DAY);
        let last = add_micros(midnight(MIN_DATE), 3_652_423 * DAY);
        assert_eq!(last, Some(midnight(MAX_DATE)));
        assert_eq!(add_micros(midnight(MIN_DATE), -1), None);
        assert_eq!(add_micros(midnight(MAX_DATE), DAY), None);
    }

    #[test]
    fn a_date_exists_or_not() {
        assert_eq!(checked_days(1970, 1, 1), Some(0));
        assert_eq!(checked_days(9999, 12, 31), Some(2_932_896));
        assert_eq!(checked_days(2000, 2, 29), Some(11_016));
        for (year, month, day) in [
            (1900, 2, 29),
            (2001, 0, 1),
            (2001, 13, 1),
            (2001, 1, 0),
            (2001, 4, 31),
            (0, 0, 0),
            (10_000, 1, 1),
        ] {
            assert_eq!(checked_days(year, month, day), None, "{year}-{month}-{day}");
        }
    }
}
