//! Functions that add and subtract times, and make them from numbers: TIMEDIFF, ADDTIME, SUBTIME, SEC_TO_TIME and
//! MAKETIME.
//!
//! No TIME is longer than 838:59:59, so what is longer becomes that. Each function has a second one, `$long_..`, which
//! is the text of what was too long, and NULL where nothing was. What notes it is `watched_time.rs`.
//!
//! ```text
//!   SEC_TO_TIME(4000000)    838:59:59, and Truncated incorrect seconds value: '4000000'
//! ```

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, DurationMicrosecondArray, StringViewArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field};
use datafusion_common::Result;
use sheaf_types::number::divide_rounding;
use sheaf_types::temporal::{
    self, MAX_TIME, MAX_TIME_NUMBER, NumberParts, SECOND, ZERO_DATETIME, datetime_in_range,
    read_datetime, read_time,
};

use super::argument::Argument;
use super::date::{fraction, fraction_of_seconds, spells_date, times};
use super::result_array::texts;
use super::types::{SqlType, field};
use super::{Call, Function, Operands};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "timediff",
        (2, 2),
        |operands| {
            Ok(field::time(
                fraction(operands, 0).max(fraction(operands, 1)),
            ))
        },
        |call| {
            let difference = differences(call)?;
            times(call, |row| difference(row).map(bounded))
        },
    )
    .null_in_doubt(),
    Function::new("$long_timediff", (2, 2), text, |call| {
        long_times(call, differences(call)?)
    }),
    Function::new("addtime", (2, 2), addtime_type, |call| addtime(call, 1)),
    Function::new("subtime", (2, 2), addtime_type, |call| addtime(call, -1)).null_in_doubt(),
    Function::new("$long_addtime", (2, 2), text, |call| long_sums(call, 1)),
    Function::new("$long_subtime", (2, 2), text, |call| long_sums(call, -1)),
    Function::new(
        "maketime",
        (3, 3),
        |operands| Ok(field::time(fraction_of_seconds(operands, 2))),
        |call| {
            let parts = parts_of_times(call)?;
            times(call, |row| Some(parts(row)?.micros()))
        },
    )
    .whole_numbers(0, 2)
    .decimals(2, 3)
    .null_in_doubt(),
    Function::new("$long_maketime", (3, 3), text, |call| {
        let parts = parts_of_times(call)?;
        texts(call, |row, out| {
            let parts = parts(row).filter(Parts::is_long)?;
            write!(out, "{parts}").ok()
        })
    }),
    Function::new(
        "sec_to_time",
        (1, 1),
        |operands| Ok(field::time(fraction_of_seconds(operands, 0))),
        |call| {
            let seconds = call.decimal(0, MICRO_DIGITS)?;
            times(call, |row| Some(bounded_seconds(seconds.get(row)?)))
        },
    )
    .decimals(0, 1)
    .null_in_doubt(),
    Function::new("$long_sec_to_time", (1, 1), text, |call| {
        let seconds = call.decimal(0, MICRO_DIGITS)?;
        let written = call.text(0)?;
        texts(call, |row, out| {
            let is_long =
                seconds.get(row)?.unsigned_abs() >= u128::from((MAX_TIME + SECOND).unsigned_abs());
            out.push_str(written.get(row).filter(|_| is_long)?);
            Some(())
        })
    }),
];

/// Digits of the fraction of a second.
const MICRO_DIGITS: u8 = 6;

fn text(_: &Operands<'_>) -> Result<Field> {
    Ok(field::text())
}

fn bounded(micros: i64) -> i64 {
    micros.clamp(-MAX_TIME, MAX_TIME)
}

fn bounded_seconds(micros: i128) -> i64 {
    micros.clamp(-i128::from(MAX_TIME), i128::from(MAX_TIME)) as i64
}

/// A fraction behind the greatest TIME is lost without a word.
fn is_long(micros: i64) -> bool {
    micros.unsigned_abs() >= (MAX_TIME + SECOND).unsigned_abs()
}

/// The lengths that are too long, as texts.
fn long_times(call: &Call<'_>, length: impl Fn(usize) -> Option<i64>) -> Result<ArrayRef> {
    texts(call, |row, out| {
        let micros = length(row).filter(|micros| is_long(*micros))?;
        let digits = if micros % SECOND == 0 {
            0
        } else {
            MICRO_DIGITS
        };
        temporal::push_time(micros, digits, out);
        Some(())
    })
}

/// A value that is a point in time or a length of time.
#[derive(Clone, Copy)]
enum Clock {
    Moment(i64),
    Time(i64),
}

/// An argument that may be either: by its type, or by the digits or the text of each value.
struct Clocks {
    ty: SqlType,
    moments: Argument<TimestampMicrosecondArray>,
    times: Argument<DurationMicrosecondArray>,
    texts: Option<Argument<StringViewArray>>,
    numbers: Option<Argument<Vec<Option<NumberParts>>>>,
}

impl Clocks {
    fn of(call: &Call<'_>, argument: usize) -> Result<Clocks> {
        let ty = call.sql_type(argument);
        let is_text = ty.is_string();
        let is_number = !is_text && !ty.is_temporal() && ty != SqlType::Null;
        let texts = is_text.then(|| call.text(argument)).transpose()?;
        let numbers = is_number.then(|| call.number_parts(argument)).transpose()?;
        Ok(Clocks {
            moments: call.datetime(argument)?,
            times: call.time(argument)?,
            ty,
            texts,
            numbers,
        })
    }

    /// `None`: NULL, or neither.
    fn get(&self, row: usize) -> Option<Clock> {
        let is_moment = match (&self.texts, &self.numbers) {
            (Some(texts), _) => spells_date(texts.get(row)?),
            (None, Some(numbers)) => numbers.get(row)?.whole > MAX_TIME_NUMBER,
            (None, None) => !matches!(self.ty, SqlType::Time { .. }),
        };
        Some(match is_moment {
            true => Clock::Moment(self.moments.get(row)?),
            false => Clock::Time(self.times.get(row)?),
        })
    }
}

/// Whether a text that reads as a date and a time is a time with a fraction: `10:11:12.5`.
fn is_clock(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || matches!(byte, b':' | b'.');
    text.contains(':') && text.trim().bytes().all(is_part)
}

/// The difference of two points in time, or of two lengths of time.
fn differences(call: &Call<'_>) -> Result<impl Fn(usize) -> Option<i64> + use<>> {
    let (left, right) = (Clocks::of(call, 0)?, Clocks::of(call, 1)?);
    Ok(move |row| match (left.get(row)?, right.get(row)?) {
        (Clock::Moment(left), Clock::Moment(right)) => Some(temporal::micros_between(right, left)),
        (Clock::Time(left), Clock::Time(right)) => Some(left - right),
        _ => None,
    })
}

/// What MAKETIME makes a time of.
struct Parts {
    hour: i64,
    minute: i64,
    nanos: i128,
}

impl Parts {
    /// The size, which may be too long.
    fn size(&self) -> i64 {
        let minutes = self.hour.saturating_abs().saturating_mul(3600);
        let seconds = minutes.saturating_add(self.minute * 60);
        seconds
            .saturating_mul(SECOND)
            .saturating_add(divide_rounding(self.nanos, 1_000) as i64)
    }

    fn is_long(&self) -> bool {
        is_long(self.size())
    }

    fn micros(&self) -> i64 {
        let size = bounded(self.size());
        if self.hour < 0 { -size } else { size }
    }
}

impl std::fmt::Display for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.nanos / 1_000_000_000;
        write!(f, "{:02}:{:02}:{seconds:02}", self.hour, self.minute)
    }
}

fn parts_of_times(call: &Call<'_>) -> Result<impl Fn(usize) -> Option<Parts> + use<>> {
    const NANO_DIGITS: u8 = 9;
    let (hours, minutes) = (call.int(0)?, call.int(1)?);
    let seconds = call.decimal(2, NANO_DIGITS)?;
    Ok(move |row| {
        let (hour, minute, nanos) = (hours.get(row)?, minutes.get(row)?, seconds.get(row)?);
        let is_time = (0..60).contains(&minute) && (0..60_000_000_000).contains(&nanos);
        is_time.then_some(Parts {
            hour,
            minute,
            nanos,
        })
    })
}

fn addtime_type(operands: &Operands<'_>) -> Result<Field> {
    let fsp = fraction(operands, 0).max(fraction(operands, 1));
    Ok(match operands.sql_type(0) {
        SqlType::Time { .. } => field::time(fsp),
        SqlType::Date | SqlType::DateTime { .. } => field::datetime(fsp),
        _ => field::moment_text(),
    })
}

/// The sum of two times, or of a point in time and a time; neither has a bound.
fn sums(call: &Call<'_>, sign: i64) -> Result<impl Fn(usize) -> Option<Clock> + use<>> {
    let (clocks, added) = (Clocks::of(call, 0)?, call.time(1)?);
    Ok(move |row| {
        let clock = match &clocks.texts {
            Some(texts) => clock_of(texts.get(row)?)?,
            None => clocks.get(row)?,
        };
        let added = sign * added.get(row)?;
        Some(match clock {
            Clock::Moment(point) => Clock::Moment(point + added),
            Clock::Time(time) => Clock::Time(time + added),
        })
    })
}

/// What a text is that a time is added to: one that is a date alone is read as a time. Of a day that does not exist
/// nothing is computed.
fn clock_of(text: &str) -> Option<Clock> {
    let read = read_datetime(text).ok();
    let read = read.filter(|read| read.has_time && !is_clock(text));
    let point = read.and_then(|read| read.micros(MICRO_DIGITS).ok());
    match point.filter(|point| *point != ZERO_DATETIME) {
        Some(point) => Some(Clock::Moment(point)),
        None => {
            let read = read_time(text).ok();
            let read = read.filter(|read| read.no_day.is_none())?;
            Some(Clock::Time(read.micros(MICRO_DIGITS)))
        }
    }
}

fn long_sums(call: &Call<'_>, sign: i64) -> Result<ArrayRef> {
    let sum = sums(call, sign)?;
    long_times(call, |row| match sum(row)? {
        Clock::Time(time) => Some(time),
        Clock::Moment(_) => None,
    })
}

fn addtime(call: &Call<'_>, sign: i64) -> Result<ArrayRef> {
    if let DataType::Timestamp(..) = call.result_type() {
        let (values, added) = (call.datetime(0)?, call.time(1)?);
        let result: TimestampMicrosecondArray = (0..call.rows())
            .map(|row| {
                values
                    .existing(row)?
                    .checked_add(sign * added.get(row)?)
                    .filter(|sum| datetime_in_range(*sum))
            })
            .collect();
        return Ok(Arc::new(result));
    }
    let sum = sums(call, sign)?;
    if let DataType::Duration(_) = call.result_type() {
        return times(call, |row| match sum(row)? {
            Clock::Time(time) => Some(bounded(time)),
            Clock::Moment(_) => None,
        });
    }
    let digits = |micros: i64| {
        if micros % SECOND == 0 {
            0
        } else {
            MICRO_DIGITS
        }
    };
    texts(call, |row, out| {
        match sum(row)? {
            Clock::Moment(point) => {
                let point = Some(point).filter(|point| datetime_in_range(*point))?;
                temporal::push_datetime(point, digits(point), out);
            }
            Clock::Time(time) => {
                let time = bounded(time);
                temporal::push_time(time, digits(time), out);
            }
        }
        Some(())
    })
}
