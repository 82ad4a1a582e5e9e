//! Adding intervals to dates and times: DATE_ADD, `d + INTERVAL n unit`, and differences by unit (TIMESTAMPDIFF).
//!
//! An interval is months and microseconds ([`Span`]). They are added apart, months first: the day is cut to the length
//! of the month. Composite units (`'1:30' HOUR_MINUTE`) are read from texts as MySQL reads them, from the right. The
//! type of the sum is MySQL's: a date stays one only if the unit has no time.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, DurationMicrosecondArray, Int64Array, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field};
use datafusion_common::Result;
use sheaf_types::number::NumberText;
use sheaf_types::temporal::{
    self, DAY, MAX_TIME, SECOND, ZERO_DATETIME, add_micros, add_months, civil_from_days,
    datetime_from_parts, micros_between, read_datetime, split_datetime,
};

use super::result_array::texts;
use super::types::{SqlType, field};
use super::{Call, EvaluationError, Function, Operands};

pub(super) static FUNCTIONS: &[Function] = &[
    // Point in time, number or text of the interval, name of the unit.
    Function::new("$date_add", (3, 3), sum_type, |call| add(call, 1))
        .stops_at_null()
        .whole_numbers(1, 2)
        .null_in_doubt()
        .key_operand(),
    Function::new("$date_subtract", (3, 3), sum_type, |call| add(call, -1))
        .stops_at_null()
        .whole_numbers(1, 2)
        .null_in_doubt()
        .key_operand(),
    // Name of the unit, from, to.
    Function::new("timestampdiff", (3, 3), |_| Ok(field::bigint()), difference)
        .dates(1, 3)
        .null_in_doubt(),
];

const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// The unit of an interval, simple or composite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
}

impl Unit {
    /// The unit of this name; `SQL_TSI_` before it is MySQL's older spelling.
    pub fn parse(name: &str) -> Option<Unit> {
        let name = name.to_ascii_lowercase();
        Some(match name.strip_prefix("sql_tsi_").unwrap_or(&name) {
            "microsecond" => Unit::Microsecond,
            "second" => Unit::Second,
            "minute" => Unit::Minute,
            "hour" => Unit::Hour,
            "day" => Unit::Day,
            "week" => Unit::Week,
            "month" => Unit::Month,
            "quarter" => Unit::Quarter,
            "year" => Unit::Year,
            "second_microsecond" => Unit::SecondMicrosecond,
            "minute_microsecond" => Unit::MinuteMicrosecond,
            "minute_second" => Unit::MinuteSecond,
            "hour_microsecond" => Unit::HourMicrosecond,
            "hour_second" => Unit::HourSecond,
            "hour_minute" => Unit::HourMinute,
            "day_microsecond" => Unit::DayMicrosecond,
            "day_second" => Unit::DaySecond,
            "day_minute" => Unit::DayMinute,
            "day_hour" => Unit::DayHour,
            "year_month" => Unit::YearMonth,
            _ => return None,
        })
    }

    /// Whole days or more: a date plus such an interval is a date.
    fn is_days(self) -> bool {
        matches!(
            self,
            Unit::Day | Unit::Week | Unit::Month | Unit::Quarter | Unit::Year | Unit::YearMonth
        )
    }

    /// Days and less: a TIME plus such an interval is a TIME.
    fn is_time(self) -> bool {
        !matches!(
            self,
            Unit::Week | Unit::Month | Unit::Quarter | Unit::Year | Unit::YearMonth
        )
    }

    fn has_fraction(self) -> bool {
        matches!(
            self,
            Unit::Microsecond
                | Unit::SecondMicrosecond
                | Unit::MinuteMicrosecond
                | Unit::HourMicrosecond
                | Unit::DayMicrosecond
        )
    }

    /// Microseconds of each part of a composite unit, from left to right.
    fn parts(self) -> &'static [i64] {
        match self {
            Unit::SecondMicrosecond => &[SECOND, 1],
            Unit::MinuteMicrosecond => &[MINUTE, SECOND, 1],
            Unit::MinuteSecond => &[MINUTE, SECOND],
            Unit::HourMicrosecond => &[HOUR, MINUTE, SECOND, 1],
            Unit::HourSecond => &[HOUR, MINUTE, SECOND],
            Unit::HourMinute => &[HOUR, MINUTE],
            Unit::DayMicrosecond => &[DAY, HOUR, MINUTE, SECOND, 1],
            Unit::DaySecond => &[DAY, HOUR, MINUTE, SECOND],
            Unit::DayMinute => &[DAY, HOUR, MINUTE],
            Unit::DayHour => &[DAY, HOUR],
            _ => &[],
        }
    }
}

/// A span of the calendar: months are of varying length, microseconds are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) months: i64,
    pub(crate) micros: i64,
}

impl Span {
    /// The span of an amount that is written out, with its unit: `1:30` and `HOUR_MINUTE`. `None` for what is no such
    /// amount. More than can be counted is as long as can be.
    pub(crate) fn read(amount: &str, unit: &str) -> Option<Span> {
        let amount = amount.trim();
        match Unit::parse(unit)? {
            Unit::Second
                if amount
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'.') =>
            {
                let (nanos, _) = NumberText::parse(amount)?.scaled(NANO_DIGITS).ok()?;
                let micros = i64::try_from(nanos / NANOS_OF_MICROSECOND).ok()?;
                Some(Span { months: 0, micros })
            }
            unit if unit.parts().is_empty() && unit != Unit::YearMonth => {
                let endless = Span {
                    months: i64::MAX,
                    micros: 0,
                };
                let is_number =
                    !amount.is_empty() && amount.bytes().all(|byte| byte.is_ascii_digit());
                let counted = || simple_span(amount.parse().ok()?, unit);
                is_number.then(|| counted().unwrap_or(endless))
            }
            unit => composite_span(amount, unit),
        }
    }

    /// Which is longer. `None` where that depends on the lengths of months.
    pub(crate) fn compare(&self, other: &Span) -> Option<Ordering> {
        const SHORTEST_MONTH: i64 = 28 * DAY;
        const LONGEST_MONTH: i64 = 31 * DAY;
        let micros = |span: &Span, month: i64| {
            span.months
                .saturating_mul(month)
                .saturating_add(span.micros)
        };
        let [least, most] = [SHORTEST_MONTH, LONGEST_MONTH]
            .map(|month| micros(self, month).cmp(&micros(other, month)));
        (least == most).then_some(least)
    }
}

/// The span of a composite interval, as `'1 2:30'` spells one: numbers with anything between them. With fewer numbers
/// than parts, the leftmost parts are missing.
fn composite_span(text: &str, unit: Unit) -> Option<Span> {
    let negative = text.trim_start().starts_with('-');
    let groups: Vec<&str> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty())
        .collect();
    let mut numbers = groups
        .iter()
        .map(|digits| digits.parse::<i64>())
        .collect::<Result<Vec<_>, _>>()
        .ok()?;
    if unit.has_fraction()
        && let (Some(last), Some(text)) = (numbers.last_mut(), groups.last())
    {
        // The last group is a fraction: '1.5' SECOND_MICROSECOND is half a second more than one.
        *last = last.checked_mul(10i64.pow(6u32.saturating_sub(text.len() as u32)))?;
    }
    let sign = if negative { -1 } else { 1 };
    if unit == Unit::YearMonth {
        let months = match numbers.as_slice() {
            [months] => *months,
            [years, months] => years.checked_mul(12)?.checked_add(*months)?,
            _ => return None,
        };
        return Some(Span {
            months: sign * months,
            micros: 0,
        });
    }
    let parts = unit.parts();
    let missing = parts.len().checked_sub(numbers.len())?;
    let micros = parts[missing..]
        .iter()
        .zip(&numbers)
        .try_fold(0i64, |sum, (part, number)| {
            sum.checked_add(part.checked_mul(*number)?)
        })?;
    Some(Span {
        months: 0,
        micros: sign * micros,
    })
}

/// The span of a simple unit.
fn simple_span(number: i64, unit: Unit) -> Option<Span> {
    let micros = |unit: i64| {
        Some(Span {
            months: 0,
            micros: number.checked_mul(unit)?,
        })
    };
    let months = |unit: i64| {
        Some(Span {
            months: number.checked_mul(unit)?,
            micros: 0,
        })
    };
    match unit {
        Unit::Microsecond => micros(1),
        Unit::Second => micros(SECOND),
        Unit::Minute => micros(MINUTE),
        Unit::Hour => micros(HOUR),
        Unit::Day => micros(DAY),
        Unit::Week => micros(7 * DAY),
        Unit::Month => months(1),
        Unit::Quarter => months(3),
        Unit::Year => months(12),
        _ => None,
    }
}

/// A point in time plus a span; `None` outside of the calendar.
fn add_span(micros: i64, span: Span) -> Option<i64> {
    let (days, of_day) = split_datetime(micros);
    let days = if span.months == 0 {
        days
    } else {
        add_months(days, span.months)?
    };
    add_micros(i64::from(days) * DAY + of_day, span.micros)
}

fn unit_of(name: Option<&str>) -> Result<Unit> {
    name.and_then(Unit::parse)
        .ok_or_else(|| EvaluationError::wrong_arguments("INTERVAL").into())
}

fn sum_type(operands: &Operands<'_>) -> Result<Field> {
    let unit = unit_of(operands.text(2).as_deref())?;
    let fraction = match operands.sql_type(1) {
        SqlType::Decimal { decimals, .. } if unit == Unit::Second => decimals.min(6),
        SqlType::Integer { .. } | SqlType::Decimal { .. } | SqlType::Null => 0,
        // A text or a double may have a fraction.
        _ if unit == Unit::Second => match operands.text(1) {
            Some(text) if !text.contains('.') => 0,
            _ => 6,
        },
        _ => 0,
    };
    let fsp = |own: u8| {
        if unit.has_fraction() {
            6
        } else {
            own.max(fraction)
        }
    };
    Ok(match operands.sql_type(0) {
        SqlType::Date if unit.is_days() => field::date(),
        SqlType::Date => field::datetime(fsp(0)),
        SqlType::DateTime { fsp: own } => field::datetime(fsp(own)),
        SqlType::Time { fsp: own } if unit.is_time() => field::time(fsp(own)),
        SqlType::Time { fsp: own } => field::datetime(fsp(own)),
        _ => field::moment_text(),
    })
}

/// Digits of the second's fraction that are read, and how many of their units are a microsecond. The rest is cut.
const NANO_DIGITS: u8 = 9;
const NANOS_OF_MICROSECOND: i128 = 1_000;

fn add(call: &Call<'_>, sign: i64) -> Result<ArrayRef> {
    let unit_name = call.text(2)?;
    let unit = unit_of(unit_name.get(0))?;
    let rows = call.rows();
    let spans: Vec<Option<Span>> = if unit == Unit::Second {
        let amounts = call.decimal(1, NANO_DIGITS)?;
        let span = |row| {
            let micros = i64::try_from(amounts.get(row)? / NANOS_OF_MICROSECOND).ok()?;
            Some(Span { months: 0, micros })
        };
        if amounts.constant {
            vec![span(0); rows]
        } else {
            (0..rows).map(span).collect()
        }
    } else if unit.parts().is_empty() && unit != Unit::YearMonth {
        // The others are counted by whole numbers, of which CAST AS SIGNED makes the same.
        let amounts = call.int(1)?;
        let span = |row| simple_span(amounts.get(row)?, unit);
        if amounts.constant {
            vec![span(0); rows]
        } else {
            (0..rows).map(span).collect()
        }
    } else {
        let amounts = call.text(1)?;
        let span = |row| composite_span(amounts.get(row)?, unit);
        if amounts.constant {
            vec![span(0); rows]
        } else {
            (0..rows).map(span).collect()
        }
    };
    let span = |row: usize| {
        spans[row].map(|span| Span {
            months: sign * span.months,
            micros: sign * span.micros,
        })
    };
    match call.result_type() {
        DataType::Date32 => {
            let dates = call.date(0)?;
            let result: Date32Array = (0..rows)
                .map(|row| {
                    let sum = add_span(i64::from(dates.existing(row)?) * DAY, span(row)?)?;
                    Some(split_datetime(sum).0)
                })
                .collect();
            Ok(Arc::new(result))
        }
        DataType::Timestamp(..) => {
            let times = call.datetime(0)?;
            let result: TimestampMicrosecondArray = (0..rows)
                .map(|row| add_span(times.existing(row)?, span(row)?))
                .collect();
            Ok(Arc::new(result))
        }
        DataType::Duration(_) => {
            let times = call.time(0)?;
            let result: DurationMicrosecondArray = (0..rows)
                .map(|row| {
                    let sum = times.get(row)?.checked_add(span(row)?.micros)?;
                    (sum.abs() <= MAX_TIME).then_some(sum)
                })
                .collect();
            Ok(Arc::new(result))
        }
        // A text stays a text, with a time if it or the interval has one. A number becomes one: 70101 is 2007-01-01.
        _ => {
            let numbers = match call.sql_type(0).is_string() {
                true => None,
                false => Some(call.number_parts(0)?),
            };
            let values = call.text(0)?;
            let moment = |row: usize| match &numbers {
                Some(numbers) => datetime_from_parts(numbers.get(row)?).ok(),
                None => {
                    let read = read_datetime(values.get(row)?).ok()?;
                    Some((read.micros(6).ok()?, read.has_time))
                }
            };
            texts(call, |row, out| {
                let (point, has_time) = moment(row).filter(|(point, _)| *point != ZERO_DATETIME)?;
                let sum = add_span(point, span(row)?)?;
                if !has_time && unit.is_days() {
                    temporal::push_date(split_datetime(sum).0, out);
                } else {
                    let has_fraction = sum.rem_euclid(SECOND) != 0;
                    temporal::push_datetime(sum, if has_fraction { 6 } else { 0 }, out);
                }
                Some(())
            })
        }
    }
}

/// Whole units between two points in time, towards zero.
fn difference(call: &Call<'_>) -> Result<ArrayRef> {
    let unit_name = call.text(0)?;
    let unit = unit_of(unit_name.get(0))?;
    let (from, to) = (call.datetime(1)?, call.datetime(2)?);
    let result: Int64Array = (0..call.rows())
        .map(|row| {
            let (from, to) = (from.existing(row)?, to.existing(row)?);
            let micros = micros_between(from, to);
            Some(match unit {
                Unit::Microsecond => micros,
                Unit::Second => micros / SECOND,
                Unit::Minute => micros / MINUTE,
                Unit::Hour => micros / HOUR,
                Unit::Day => micros / DAY,
                Unit::Week => micros / (7 * DAY),
                Unit::Quarter => months_between(from, to) / 3,
                Unit::Year => months_between(from, to) / 12,
                _ => months_between(from, to),
            })
        })
        .collect();
    Ok(Arc::new(result))
}

/// Whole months from one point in time to another.
fn months_between(from: i64, to: i64) -> i64 {
    if to < from {
        return -months_between(to, from);
    }
    let ((from_days, from_time), (to_days, to_time)) = (split_datetime(from), split_datetime(to));
    let ((from_year, from_month, from_day), (to_year, to_month, to_day)) =
        (civil_from_days(from_days), civil_from_days(to_days));
    let months = (i64::from(to_year) - i64::from(from_year)) * 12 + i64::from(to_month)
        - i64::from(from_month);
    months - i64::from((to_day, to_time) < (from_day, from_time))
}
