//! Functions of dates and times: their parts, their differences, and making them from numbers.
//!
//! An argument that is no date gives NULL. NOW() and its relatives are not here: they are values of the statement and
//! arrive as literals.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, DurationMicrosecondArray, Float64Array, Int64Array,
    StringViewArray, TimestampMicrosecondArray,
};
use arrow::compute::nullif;
use arrow::datatypes::Field;
use datafusion_common::Result;
use sheaf_types::number::text_to_double;
use sheaf_types::temporal::{
    self, DAY, PartialDate, SECOND, ZERO_DATETIME, civil_from_days, datetime_in_range, day_number,
    day_of_number, day_of_year, days_from_civil, days_in_month, read_datetime, read_partial_date,
    read_time, split_datetime, split_time, weekday,
};

use super::argument::Argument;
use super::cast::{fraction_digits, result_fsp};
use super::date_names::{DateNames, date_names_or_english};
use super::types::{SqlType, field};
use super::{Call, EvaluationError, Function, Length, Operands};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

fn bigint(_: &Operands<'_>) -> Result<Field> {
    Ok(field::bigint())
}

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "date",
        (1, 1),
        |_| Ok(field::date()),
        |call| Ok(Arc::new(call.date(0)?.array)),
    )
    .dates(0, 1)
    .null_in_doubt()
    .key_operand(),
    Function::new(
        "time",
        (1, 1),
        |operands| Ok(field::time(fraction(operands, 0))),
        |call| Ok(Arc::new(call.time(0)?.array)),
    )
    .time()
    .null_in_doubt(),
    Function::new(
        "timestamp",
        (1, 2),
        |operands| {
            let digits = (0..operands.fields.len()).map(|operand| match operand {
                0 => fraction_of_moment(operands, 0),
                _ => fraction(operands, operand),
            });
            Ok(field::datetime(digits.max().unwrap_or(0)))
        },
        timestamp,
    )
    .dates(0, 1)
    .null_in_doubt(),
    Function::new("year", (1, 1), bigint, |call| {
        of_any_date(call, 0, |date| i64::from(date.0))
    })
    .parts_of_date()
    .length(Length::Int)
    .null_in_doubt()
    .key_operand(),
    Function::new("quarter", (1, 1), bigint, |call| {
        of_any_date(call, 0, |date| i64::from(date.1.div_ceil(3)))
    })
    .parts_of_date()
    .length(Length::Int)
    .null_in_doubt(),
    Function::new("month", (1, 1), bigint, |call| {
        of_any_date(call, 0, |date| i64::from(date.1))
    })
    .parts_of_date()
    .length(Length::Int)
    .null_in_doubt()
    .key_operand(),
    Function::new("day", (1, 1), bigint, |call| {
        of_any_date(call, 0, |date| i64::from(date.2))
    })
    .parts_of_date()
    .length(Length::Int)
    .null_in_doubt()
    .key_operand(),
    Function::new("dayofweek", (1, 1), bigint, |call| {
        of_date(call, |days| i64::from((weekday(days) + 1) % 7 + 1))
    })
    .dates(0, 1)
    .length(Length::Int)
    .null_in_doubt(),
    Function::new("weekday", (1, 1), bigint, |call| {
        of_date(call, |days| i64::from(weekday(days)))
    })
    .dates(0, 1)
    .length(Length::Int)
    .null_in_doubt(),
    Function::new("dayofyear", (1, 1), bigint, |call| {
        of_date(call, |days| i64::from(day_of_year(days)))
    })
    .dates(0, 1)
    .length(Length::Int)
    .null_in_doubt(),
    Function::new("week", (1, 2), bigint, |call| {
        week_number(call, |(_, week)| week)
    })
    .whole_numbers(1, 2)
    .dates(0, 1)
    .length(Length::Int)
    .null_in_doubt(),
    Function::new("weekofyear", (1, 1), bigint, |call| {
        of_date(call, |days| week_of(days, 3).1)
    })
    .dates(0, 1)
    .length(Length::Int)
    .null_in_doubt(),
    Function::new("yearweek", (1, 2), bigint, |call| {
        week_number(call, |(year, week)| year * 100 + week)
    })
    .whole_numbers(1, 2)
    .dates(0, 1)
    .length(Length::Int)
    .null_in_doubt(),
    Function::new("hour", (1, 1), bigint, |call| {
        of_time(call, |micros| split_time(micros).0)
    })
    .time()
    .length(Length::Int)
    .null_in_doubt(),
    Function::new("minute", (1, 1), bigint, |call| {
        of_time(call, |micros| split_time(micros).1)
    })
    .time()
    .length(Length::Int)
    .null_in_doubt(),
    Function::new("second", (1, 1), bigint, |call| {
        of_time(call, |micros| split_time(micros).2)
    })
    .time()
    .length(Length::Int)
    .null_in_doubt(),
    Function::new("microsecond", (1, 1), bigint, |call| {
        of_time(call, |micros| split_time(micros).3)
    })
    .time()
    .length(Length::Int)
    .null_in_doubt(),
    Function::new("monthname", (1, 2), |_| Ok(field::text()), name_of_month)
        .parts_of_date()
        .length(Length::Fixed(9)),
    Function::new("dayname", (1, 2), |_| Ok(field::text()), name_of_day)
        .dates(0, 1)
        .length(Length::Fixed(9)),
    Function::new("last_day", (1, 1), |_| Ok(field::date()), last_day)
        .parts_of_date()
        .null_in_doubt()
        .key_operand(),
    Function::new("datediff", (2, 2), bigint, |call| {
        let (left, right) = (call.date(0)?, call.date(1)?);
        ints(call, |row| {
            Some(day_number(left.existing(row)?) - day_number(right.existing(row)?))
        })
    })
    .dates(0, 2)
    .length(Length::Int)
    .null_in_doubt(),
    Function::new("to_days", (1, 1), bigint, |call| of_date(call, day_number))
        .dates(0, 1)
        .length(Length::Int)
        .null_in_doubt()
        .key_operand(),
    Function::new("to_seconds", (1, 1), bigint, |call| {
        let times = call.datetime(0)?;
        ints(call, |row| {
            let (days, of_day) = split_datetime(times.existing(row)?);
            Some(day_number(days) * (DAY / SECOND) + of_day / SECOND)
        })
    })
    .dates(0, 1)
    .null_in_doubt(),
    Function::new(
        "from_days",
        (1, 1),
        |_| Ok(field::date()),
        |call| {
            let numbers = call.int(0)?;
            dates(call, |row| day_of_number(numbers.get(row)?))
        },
    )
    .whole_numbers(0, 1)
    .null_in_doubt()
    .key_operand(),
    // Seconds of the time zone, fraction digits.
    Function::new(
        "$sysdate",
        (2, 2),
        |operands| Ok(field::datetime(fraction_digits(operands))),
        |call| {
            let (offsets, fsp) = (call.int(0)?, result_fsp(call));
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = now.map_or(0, |since| since.as_micros() as i64);
            let unit = 10i64.pow(6 - u32::from(fsp.min(6)));
            let values = (0..call.rows()).map(|row| {
                let local = now + offsets.get(row)? * SECOND;
                Some(local - local.rem_euclid(unit))
            });
            Ok(Arc::new(values.collect::<TimestampMicrosecondArray>()))
        },
    )
    .never_null()
    .volatile(),
    // What a YEAR is where a date is wanted.
    Function::new(
        "$first_day_of_year",
        (1, 1),
        |_| Ok(field::date()),
        |call| {
            let years = call.int(0)?;
            dates(call, |row| {
                let year = i32::try_from(years.get(row)?).ok()?;
                Some(days_from_civil(year, 1, 1))
            })
        },
    ),
    Function::new(
        "makedate",
        (2, 2),
        |_| Ok(field::date()),
        |call| {
            let (years, days) = (call.int(0)?, call.int(1)?);
            dates(call, |row| {
                let (year, day) = (years.get(row)?, days.get(row)?);
                let year = if (0..100).contains(&year) {
                    i64::from(temporal::full_year(year as i32))
                } else {
                    year
                };
                let first = days_from_civil(
                    i32::try_from(year)
                        .ok()
                        .filter(|year| (0..=9999).contains(year))?,
                    1,
                    1,
                );
                if day < 1 {
                    None
                } else {
                    checked_date(i64::from(first).checked_add(day - 1)?)
                }
            })
        },
    )
    .whole_numbers(0, 2)
    .null_in_doubt(),
    Function::new("time_to_sec", (1, 1), bigint, |call| {
        of_time(call, |micros| micros / SECOND)
    })
    .time()
    .length(Length::Int)
    .null_in_doubt(),
    // A text that these have made.
    Function::new(
        "$moment_number",
        (1, 1),
        |_| Ok(field::double()),
        moment_number,
    ),
    Function::new("period_add", (2, 2), bigint, |call| {
        let (periods, months) = (call.int(0)?, call.int(1)?);
        months_of_periods(call, "period_add", |row| {
            let (period, months) = (periods.get(row)?, months.get(row)?);
            Some(period_months(period).map(|first| self::period(first.wrapping_add(months))))
        })
    })
    .whole_numbers(0, 2),
    Function::new("period_diff", (2, 2), bigint, |call| {
        let (left, right) = (call.int(0)?, call.int(1)?);
        months_of_periods(call, "period_diff", |row| {
            let (left, right) = (left.get(row)?, right.get(row)?);
            let months = period_months(left).zip(period_months(right));
            Some(months.map(|(left, right)| left - right))
        })
    })
    .whole_numbers(0, 2),
    // A date or a point in time: NULL instead of the zero date.
    Function::new(
        "$no_zero_date",
        (1, 1),
        |operands| Ok(operands.fields[0].as_ref().clone()),
        no_zero_date,
    ),
    // Name of the unit, date or time.
    Function::new("$extract", (2, 2), bigint, extract),
];

/// Fraction digits of an operand as a time: its own, those that a DECIMAL shows, 6 of a text that may have some.
pub(super) fn fraction(operands: &Operands<'_>, operand: usize) -> u8 {
    match operands.sql_type(operand) {
        SqlType::Decimal { decimals, .. } => decimals.min(6),
        SqlType::Float | SqlType::Double => 6,
        SqlType::Text { .. } => match operands.text(operand) {
            // `10:11:12.5` is a date with an hour, too; here it is not.
            Some(text) => match (read_time(&text), read_datetime(&text)) {
                (Ok(read), _) if read.has_date || !spells_date(&text) => read.fraction_digits,
                (_, Ok(read)) => read.fraction_digits,
                (read, _) => read.map_or(0, |read| read.fraction_digits),
            },
            None => 6,
        },
        other => other.fsp(),
    }
}

/// The same of an operand as a point in time.
pub(super) fn fraction_of_moment(operands: &Operands<'_>, operand: usize) -> u8 {
    match (operands.sql_type(operand), operands.text(operand)) {
        (SqlType::Text { .. }, Some(text)) => match read_datetime(&text) {
            Ok(read) => read.fraction_digits,
            Err(_) => fraction(operands, operand),
        },
        _ => fraction(operands, operand),
    }
}

/// Fraction digits of an operand that is a number of seconds. Of a text nobody knows how many digits it has.
pub(super) fn fraction_of_seconds(operands: &Operands<'_>, operand: usize) -> u8 {
    match operands.sql_type(operand) {
        SqlType::Text { .. } => 6,
        // A hexadecimal literal is a whole number.
        SqlType::Bytes => 0,
        _ => fraction(operands, operand),
    }
}

pub(super) fn ints(call: &Call<'_>, compute: impl Fn(usize) -> Option<i64>) -> Result<ArrayRef> {
    Ok(Arc::new(
        (0..call.rows()).map(compute).collect::<Int64Array>(),
    ))
}

fn dates(call: &Call<'_>, compute: impl Fn(usize) -> Option<i32>) -> Result<ArrayRef> {
    Ok(Arc::new(
        (0..call.rows()).map(compute).collect::<Date32Array>(),
    ))
}

pub(super) fn times(call: &Call<'_>, compute: impl Fn(usize) -> Option<i64>) -> Result<ArrayRef> {
    Ok(Arc::new(
        (0..call.rows())
            .map(compute)
            .collect::<DurationMicrosecondArray>(),
    ))
}

fn checked_date(days: i64) -> Option<i32> {
    let days = i32::try_from(days).ok()?;
    datetime_in_range(i64::from(days) * DAY).then_some(days)
}

fn of_date(call: &Call<'_>, part: fn(i32) -> i64) -> Result<ArrayRef> {
    let dates = call.date(0)?;
    ints(call, |row| dates.existing(row).map(part))
}

/// A part, of the year, the month and the day, that the zero date has, too, and dates of which only a part is zero.
fn of_any_date(
    call: &Call<'_>,
    argument: usize,
    part: fn((i32, u32, u32)) -> i64,
) -> Result<ArrayRef> {
    let dates = call.date(argument)?;
    let partial = PartialDates::of(call, argument)?;
    ints(call, |row| {
        let date = match dates.get(row) {
            Some(days) => civil_from_days(days),
            None => {
                let PartialDate {
                    year, month, day, ..
                } = partial.get(row)?;
                (year, month, day)
            }
        };
        Some(part(date))
    })
}

/// An argument as dates with a month or a day of zero, which are no dates otherwise.
pub(super) struct PartialDates(Option<Argument<StringViewArray>>);

impl PartialDates {
    pub(super) fn of(call: &Call<'_>, argument: usize) -> Result<PartialDates> {
        // A date of a column is a date.
        let may_be = matches!(
            call.sql_type(argument),
            SqlType::Text { .. } | SqlType::Bytes | SqlType::Integer { .. }
        );
        let texts = may_be.then(|| call.text(argument)).transpose()?;
        Ok(PartialDates(texts))
    }

    pub(super) fn get(&self, row: usize) -> Option<PartialDate> {
        read_partial_date(self.0.as_ref()?.get(row)?)
    }
}

fn of_time(call: &Call<'_>, part: fn(i64) -> i64) -> Result<ArrayRef> {
    let times = call.time(0)?;
    ints(call, |row| times.get(row).map(part))
}

/// The month may be that of a date without a day.
fn last_day(call: &Call<'_>) -> Result<ArrayRef> {
    let days = call.date(0)?;
    let partial = PartialDates::of(call, 0)?;
    dates(call, |row| {
        let (year, month) = match days.get(row) {
            Some(_) => {
                let (year, month, _) = civil_from_days(days.existing(row)?);
                (year, month)
            }
            None => {
                let date = partial.get(row).filter(|date| date.month > 0)?;
                (date.year, date.month)
            }
        };
        Some(days_from_civil(year, month, days_in_month(year, month)))
    })
}

/// The same, in the locale that the second argument is.
fn name_of_month(call: &Call<'_>) -> Result<ArrayRef> {
    let dates = call.date(0)?;
    let partial = PartialDates::of(call, 0)?;
    name_of(call, |names, row| {
        let month = match dates.get(row) {
            Some(days) => civil_from_days(days).1,
            None => partial.get(row)?.month,
        };
        names.months.get(month.checked_sub(1)? as usize).copied()
    })
}

fn name_of_day(call: &Call<'_>) -> Result<ArrayRef> {
    let dates = call.date(0)?;
    name_of(call, |names, row| {
        let days = dates.existing(row)?;
        names.weekdays.get(weekday(days) as usize).copied()
    })
}

/// A name for each row, in the locale that the second argument is.
fn name_of(
    call: &Call<'_>,
    name: impl Fn(&'static DateNames, usize) -> Option<&'static str>,
) -> Result<ArrayRef> {
    let locales = (call.len() > 1).then(|| call.text(1)).transpose()?;
    let name_in = |row| {
        let locale = locales.as_ref().and_then(|locales| locales.get(row));
        name(date_names_or_english(locale), row)
    };
    let names: StringViewArray = (0..call.rows()).map(name_in).collect();
    Ok(Arc::new(names))
}

fn timestamp(call: &Call<'_>) -> Result<ArrayRef> {
    let values = call.datetime(0)?;
    if call.len() == 1 {
        return Ok(Arc::new(values.array));
    }
    let added = call.time(1)?;
    let result: TimestampMicrosecondArray = (0..call.rows())
        .map(|row| {
            values
                .existing(row)?
                .checked_add(added.get(row)?)
                .filter(|sum| datetime_in_range(*sum))
        })
        .collect();
    Ok(Arc::new(result))
}

/// MySQL's eight ways to number weeks. The year is that of the week, which may be the one before or after.
///
/// The bits of the mode:
///
/// - bit 0: the week begins on Monday;
/// - bit 1: numbers run from 1, and days before week 1 belong to the last year;
/// - bit 2: week 1 is the one with the year's first weekday, not the one with four days.
pub(super) fn week_of(days: i32, mode: i64) -> (i64, i64) {
    let monday_first = mode & 1 != 0;
    let mut from_one = mode & 2 != 0;
    // The rule of the first weekday is inverted when the week begins on a Monday.
    let first_weekday = (mode & 4 != 0) ^ !monday_first;
    let (mut year, _, _) = civil_from_days(days);
    let number_of = |days: i32| day_number(days) as i32;
    let first_of = |year: i32| number_of(days_from_civil(year, 1, 1));
    let position = |days: i32| if monday_first { weekday(days) } else { (weekday(days) + 1) % 7 } as i32;
    let mut first = first_of(year);
    let mut start = position(days_from_civil(year, 1, 1));
    let days = number_of(days);
    let days_in = |year: i32| {
        if temporal::is_leap_year(year) {
            366
        } else {
            365
        }
    };
    if days - first <= 6 - start {
        // In the week that holds 1 January.
        let belongs_to_last = if first_weekday {
            start != 0
        } else {
            start >= 4
        };
        if belongs_to_last {
            if !from_one {
                return (i64::from(year), 0);
            }
            from_one = true;
            year -= 1;
            first -= days_in(year);
            start = (start + 53 * 7 - days_in(year)).rem_euclid(7);
        }
    }
    let skips = if first_weekday {
        start != 0
    } else {
        start >= 4
    };
    let into_weeks = if skips {
        days - (first + (7 - start))
    } else {
        days - (first - start)
    };
    if from_one && into_weeks >= 52 * 7 {
        // Perhaps the first week of the next year.
        let next_start = (start + days_in(year)).rem_euclid(7);
        let next_has_it = if first_weekday {
            next_start == 0
        } else {
            next_start < 4
        };
        if next_has_it && days >= first_of(year + 1) - next_start {
            return (i64::from(year) + 1, 1);
        }
    }
    (i64::from(year), i64::from(into_weeks / 7) + 1)
}

fn week_number(call: &Call<'_>, show: fn((i64, i64)) -> i64) -> Result<ArrayRef> {
    let dates = call.date(0)?;
    let modes = if call.len() == 2 {
        Some(call.int(1)?)
    } else {
        None
    };
    // YEARWEEK always counts from 1.
    let always_from_one = show((1, 0)) != 0;
    ints(call, |row| {
        let days = dates.existing(row)?;
        let mode = match &modes {
            Some(modes) => modes.get(row).unwrap_or(0) & 7,
            None => 0,
        };
        Some(show(week_of(
            days,
            if always_from_one { mode | 2 } else { mode },
        )))
    })
}

/// Whether a text begins with a date, be it one that there is or not.
pub(super) fn spells_date(text: &str) -> bool {
    let text = text.trim_start();
    let has_date = || read_time(text).is_ok_and(|read| read.has_date);
    text.contains(['-', '/']) && !text.starts_with('-') || has_date()
}

fn no_zero_date(call: &Call<'_>) -> Result<ArrayRef> {
    let points = call.datetime(0)?;
    let is_zero: BooleanArray = (0..call.rows())
        .map(|row| Some(points.get(row) == Some(ZERO_DATETIME)))
        .collect();
    let values = call.args.args[0].to_array(call.rows())?;
    Ok(nullif(&values, &is_zero)?)
}

/// The number that the digits of a date, a time or both are.
fn moment_number(call: &Call<'_>) -> Result<ArrayRef> {
    let values = call.text(0)?;
    let number = |row: usize| {
        let text = values.get(row)?;
        let digits: String = text
            .chars()
            .filter(|c| c.is_ascii_digit() || matches!(c, '.'))
            .collect();
        let size = text_to_double(&digits);
        Some(if text.starts_with('-') { -size } else { size })
    };
    Ok(Arc::new(
        (0..call.rows()).map(number).collect::<Float64Array>(),
    ))
}

/// What is computed of periods, row by row; `Some(None)` where there is no such period.
///
/// # Errors
/// 1210 for such a row.
fn months_of_periods(
    call: &Call<'_>,
    function: &str,
    of_row: impl Fn(usize) -> Option<Option<i64>>,
) -> Result<ArrayRef> {
    let months = (0..call.rows()).map(|row| match of_row(row) {
        Some(None) => Err(EvaluationError::wrong_arguments(function)),
        months => Ok(months.flatten()),
    });
    let months: Result<Int64Array, _> = months.collect();
    Ok(Arc::new(months?))
}

/// Months since year 0 of a period, YYMM or YYYYMM.
fn period_months(period: i64) -> Option<i64> {
    let (year, month) = (period / 100, period % 100);
    let year = if year < 100 {
        i64::from(temporal::full_year(year as i32))
    } else {
        year
    };
    (1..=12).contains(&month).then_some(year * 12 + month - 1)
}

fn period(months: i64) -> i64 {
    months.div_euclid(12) * 100 + months.rem_euclid(12) + 1
}

/// The day of the month and the time of day that EXTRACT finds in a text. A time alone has no day, and a date alone is
/// midnight, of which the month and the day may be zero.
fn day_and_clock(text: &str) -> Option<(i64, i64)> {
    let text = text.trim_start();
    let run = text.bytes().take_while(u8::is_ascii_digit).count();
    let is_date = match text.as_bytes().get(run) {
        Some(b'-' | b'/') => run > 0,
        // More digits than a time has.
        _ => run >= 8,
    };
    if !is_date {
        return Some((0, temporal::time_of_text(text)?));
    }
    if let Some(partial) = read_partial_date(text) {
        return Some((i64::from(partial.day), partial.micros_of_day));
    }
    let point = temporal::datetime_of_text(text)?;
    let (days, micros) = split_datetime(point);
    Some((i64::from(civil_from_days(days).2), micros))
}

fn extract(call: &Call<'_>) -> Result<ArrayRef> {
    let unit = call.text(0)?;
    let unit = unit.get(0).unwrap_or_default().to_ascii_lowercase();
    let points = call.datetime(1)?;
    let clocks = call.time(1)?;
    let texts = match call.sql_type(1) {
        SqlType::Date | SqlType::DateTime { .. } | SqlType::Time { .. } => None,
        _ => Some(call.text(1)?),
    };
    let is_time = matches!(call.sql_type(1), SqlType::Time { .. });
    // Of a TIME there is no day.
    let at = |row: usize| match &texts {
        Some(texts) => day_and_clock(texts.get(row)?),
        None if is_time => Some((0, clocks.get(row)?)),
        None => {
            let day = civil_from_days(split_datetime(points.get(row)?).0).2;
            Some((i64::from(day), clocks.get(row)?))
        }
    };
    const WIDTHS: [i64; 4] = [100, 100, 100, 1_000_000];
    let parts_of = |micros: i64| {
        let (hours, minutes, seconds, fraction) = split_time(micros);
        [hours, minutes, seconds, fraction]
    };
    let with_sign = |digits: i64, micros: i64| if micros < 0 { -digits } else { digits };
    // The parts of the clock as digits: hours, minutes, seconds, microseconds, from one to another.
    let clock_part = |first: usize, last: usize| {
        ints(call, |row| {
            let (_, micros) = at(row)?;
            let parts = parts_of(micros);
            let digits = (first..=last).fold(0, |digits, part| {
                let width = if part == first { 1 } else { WIDTHS[part] };
                digits * width + parts[part]
            });
            Some(with_sign(digits, micros))
        })
    };
    // The day of the month before such digits.
    let with_day = |last: usize| {
        ints(call, |row| {
            let (day, micros) = at(row)?;
            let parts = parts_of(micros);
            let digits = (0..=last).fold(day, |digits, part| digits * WIDTHS[part] + parts[part]);
            Some(with_sign(digits, micros))
        })
    };
    match unit.as_str() {
        "year" => of_any_date(call, 1, |date| i64::from(date.0)),
        "quarter" => of_any_date(call, 1, |date| i64::from(date.1.div_ceil(3))),
        "month" => of_any_date(call, 1, |date| i64::from(date.1)),
        "week" => ints(call, |row| {
            Some(week_of(split_datetime(points.existing(row)?).0, 0).1)
        }),
        "day" => of_any_date(call, 1, |date| i64::from(date.2)),
        "year_month" => of_any_date(call, 1, |date| i64::from(date.0) * 100 + i64::from(date.1)),
        "hour" => clock_part(0, 0),
        "minute" => clock_part(1, 1),
        "second" => clock_part(2, 2),
        "microsecond" => clock_part(3, 3),
        "hour_minute" => clock_part(0, 1),
        "hour_second" => clock_part(0, 2),
        "hour_microsecond" => clock_part(0, 3),
        "minute_second" => clock_part(1, 2),
        "minute_microsecond" => clock_part(1, 3),
        "second_microsecond" => clock_part(2, 3),
        "day_hour" => with_day(0),
        "day_minute" => with_day(1),
        "day_second" => with_day(2),
        "day_microsecond" => with_day(3),
        _ => Err(EvaluationError::wrong_arguments("EXTRACT").into()),
    }
}
