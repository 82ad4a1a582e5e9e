//! Values on their way into columns of dates and times.

use super::{Converted, Mode, convert_text, number, show, zero_value};
use crate::column_type::ColumnType;
use crate::error::ColumnProblem;
use crate::temporal::{
    self as calendar, DAY, MAX_TIME, MAX_TIME_NUMBER, NotTemporal, SECOND, TimeText, ZERO_DATETIME,
    datetime_as_integer, datetime_from_parts, read_datetime, read_time, round_datetime, round_time,
    split_offset, time_as_integer, time_from_parts,
};
use crate::text::is_space;
use crate::value::Value;

/// First and last TIMESTAMP: 1970-01-01 00:00:01 and 2038-01-19 03:14:07.999999 UTC, in microseconds.
const TIMESTAMP_RANGE: std::ops::RangeInclusive<i64> = SECOND..=i32::MAX as i64 * SECOND + 999_999;

/// YYYY-MM-DD of a date that there is: the short way of nearly all fields.
pub(super) fn plain_date(text: &str) -> Option<Value> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text.as_bytes() else {
        return None;
    };
    let digits = [y1, y2, y3, y4, m1, m2, d1, d2];
    if !digits.iter().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let [y1, y2, y3, y4, m1, m2, d1, d2] = digits.map(|digit| u32::from(digit - b'0'));
    let year = (y1 * 1000 + y2 * 100 + y3 * 10 + y4) as i32;
    let (month, day) = (m1 * 10 + m2, d1 * 10 + d2);
    let valid =
        (1..=12).contains(&month) && (1..=calendar::days_in_month(year, month)).contains(&day);
    valid.then(|| Value::Date(calendar::days_from_civil(year, month, day)))
}

pub(super) fn of_text(ty: &ColumnType, text: &str, mode: Mode) -> Converted {
    match ty {
        ColumnType::Time { .. } if text.bytes().all(is_space) => Converted::fine(Value::Time(0)),
        ColumnType::Time { fsp } => match read_time(text) {
            Ok(read) if read.is_cut => {
                let value = Value::Time(read.micros(0));
                Converted::bad(value, temporal_out_of_range(ty, text))
            }
            Ok(TimeText {
                no_day: Some(why), ..
            }) if why != NotTemporal::ZeroInDate || !mode.zero_in_date => {
                bad_temporal(ty, text, why)
            }
            Ok(read) => {
                let converted = Converted::fine(Value::Time(read.micros(*fsp)));
                cut_behind(ty, converted, read.trailing, text)
            }
            Err(why) => bad_temporal(ty, text, why),
        },
        _ => {
            let (moment, zone) = match split_offset(text) {
                Some((moment, zone)) => (moment, Some(zone)),
                None => (text, None),
            };
            let read = read_datetime(moment)
                .and_then(|read| Ok((read.micros(ty.fraction_digits())?, read)));
            match read {
                Ok((micros, read)) => {
                    let micros = match zone {
                        Some(zone) => mode.time_zone.local(zone.utc(micros)),
                        None => micros,
                    };
                    let converted = point_in_time(ty, micros, mode);
                    cut_behind(ty, converted, read.trailing, text)
                }
                Err(why) => bad_temporal(ty, text, why),
            }
        }
    }
}

/// A number as the digits of a date or time.
pub(super) fn of_number(ty: &ColumnType, value: &Value, mode: Mode) -> Converted {
    match ty {
        ColumnType::Time { fsp } => match time_from_parts(number::parts(value)) {
            Ok(micros) => Converted::fine(Value::Time(round_time(micros, *fsp))),
            Err(why)
                if why == NotTemporal::TooLong
                    || number::to_integer(value).abs() > MAX_TIME_NUMBER =>
            {
                let longest = if number::to_integer(value) < 0 {
                    -MAX_TIME
                } else {
                    MAX_TIME
                };
                let problem = temporal_out_of_range(ty, &value.to_string());
                Converted::bad(Value::Time(longest), problem)
            }
            Err(why) => bad_temporal(ty, &value.to_string(), why),
        },
        _ => {
            let parts = number::parts(value);
            match datetime_from_parts(parts) {
                Ok((micros, has_time)) => {
                    let point = point_in_time(ty, micros, mode);
                    // A date alone has no fraction.
                    match parts.nanos != 0 && !has_time {
                        true => Converted {
                            value: point.value,
                            ..bad_temporal(ty, &value.to_string(), NotTemporal::Text)
                        },
                        false => point,
                    }
                }
                Err(why) => bad_temporal(ty, &value.to_string(), why),
            }
        }
    }
}

/// A date or time for a column of another kind.
pub(super) fn of_temporal(ty: &ColumnType, value: &Value, mode: Mode) -> Converted {
    match (value, ty) {
        (Value::Time(micros), ColumnType::Time { fsp }) => {
            Converted::fine(Value::Time(round_time(*micros, *fsp)))
        }
        (Value::DateTime(micros) | Value::Timestamp(micros), ColumnType::Time { fsp }) => {
            Converted::rounded(Value::Time(round_time(micros.rem_euclid(DAY), *fsp)))
        }
        (Value::Date(_), ColumnType::Time { .. }) => Converted::rounded(Value::Time(0)),
        (Value::Date(days), ty) if ty.is_temporal() => {
            point_in_time(ty, i64::from(*days) * DAY, mode)
        }
        (Value::DateTime(micros) | Value::Timestamp(micros), ty) if ty.is_temporal() => {
            point_in_time(ty, *micros, mode)
        }
        (Value::DateTime(_) | Value::Timestamp(_) | Value::Date(_), ty) if ty.is_year() => {
            let days = match value {
                Value::Date(days) => *days,
                Value::DateTime(micros) | Value::Timestamp(micros) => micros.div_euclid(DAY) as i32,
                _ => 0,
            };
            year_of_days(days)
        }
        (Value::Time(time), ty) if ty.has_date() || ty.is_year() => match mode.today {
            Some(today) if ty.is_year() => year_of_days(today + time.div_euclid(DAY) as i32),
            Some(today) => {
                let micros = i64::from(today) * DAY + time;
                point_in_time(ty, micros, mode)
            }
            None => bad_temporal(ty, &value.to_string(), NotTemporal::Text),
        },
        (value, ty) if ty.is_temporal() => bad_temporal(ty, &value.to_string(), NotTemporal::Text),
        // A date is no number of a label.
        (value, ty) if ty.has_labels() => convert_text(ty, &value.to_string(), mode),
        // As a number a date is its digits: 20240229. A whole number has whole seconds: 23:59:59.5 is 240000.
        (value, ty) => {
            let whole = match value {
                Value::Time(micros) if ty.is_integer() => Value::Int(time_as_integer(*micros)),
                Value::DateTime(micros) | Value::Timestamp(micros) if ty.is_integer() => {
                    Value::Int(datetime_as_integer(*micros))
                }
                other => other.clone(),
            };
            let digits: String = whole
                .to_string()
                .chars()
                .filter(|character| !matches!(character, '-' | ':' | ' '))
                .collect();
            let sign = if matches!(value, Value::Time(..0)) {
                "-"
            } else {
                ""
            };
            convert_text(ty, &format!("{sign}{digits}"), mode)
        }
    }
}

fn year_of_days(days: i32) -> Converted {
    number::year(i128::from(calendar::civil_from_days(days).0))
}

/// Microseconds since 1970 for a DATE, DATETIME or TIMESTAMP column. For a DATE they are rounded to whole seconds,
/// which may lead to the next day, and the time of the day that is left is cut off.
fn point_in_time(ty: &ColumnType, micros: i64, mode: Mode) -> Converted {
    let Some(rounded) = round_datetime(micros, ty.fraction_digits()) else {
        return overflow(ty);
    };
    match ty {
        ColumnType::Date => {
            let date = Value::Date(rounded.div_euclid(DAY) as i32);
            match rounded.rem_euclid(DAY) {
                0 => Converted::fine(date),
                _ => Converted::rounded(date),
            }
        }
        ColumnType::DateTime { .. } => Converted::fine(Value::DateTime(rounded)),
        ColumnType::Timestamp { .. }
            if TIMESTAMP_RANGE.contains(&mode.time_zone.utc(rounded))
                || rounded == ZERO_DATETIME =>
        {
            Converted::fine(Value::Timestamp(rounded))
        }
        ty => {
            let shown = Value::DateTime(micros).to_string();
            let problem = temporal_out_of_range(ty, &shown);
            Converted::bad(zero_value(ty), problem)
        }
    }
}

/// Rounding has led out of the calendar.
fn overflow(ty: &ColumnType) -> Converted {
    Converted::bad(zero_value(ty), ColumnProblem::TemporalOverflow)
}

/// MySQL's word for the column's type in messages.
fn temporal_kind(ty: &ColumnType) -> &'static str {
    ty.temporal_kind().unwrap_or("datetime")
}

/// Text behind a date or time is cut off.
fn cut_behind(ty: &ColumnType, converted: Converted, trailing: bool, text: &str) -> Converted {
    let is_read = converted
        .problem
        .as_ref()
        .is_none_or(ColumnProblem::is_note);
    match trailing && is_read {
        true => Converted::bad(
            converted.value,
            ColumnProblem::IncorrectTemporal {
                kind: temporal_kind(ty),
                value: show(text),
            },
        ),
        false => converted,
    }
}

fn temporal_out_of_range(ty: &ColumnType, text: &str) -> ColumnProblem {
    ColumnProblem::TemporalOutOfRange {
        kind: temporal_kind(ty),
        value: show(text),
    }
}

fn bad_temporal(ty: &ColumnType, text: &str, why: NotTemporal) -> Converted {
    let (kind, value) = (temporal_kind(ty), show(text));
    let problem = match why {
        NotTemporal::Overflow => return overflow(ty),
        NotTemporal::ZeroInDate if !matches!(ty, ColumnType::Time { .. }) => {
            ColumnProblem::ZeroInDate { kind, value }
        }
        _ => ColumnProblem::IncorrectTemporal { kind, value },
    };
    Converted::bad(zero_value(ty), problem)
}
