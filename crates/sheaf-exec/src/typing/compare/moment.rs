//! Constants that are compared with dates and times: the places of those that are one, and what is noted of others.

use datafusion_common::{Result, ScalarValue};
use datafusion_expr::Expr;
use sheaf_types::temporal::{
    self, DAY, MAX_TIME, MAX_TIME_NUMBER, NotTemporal, NumberParts, PartialDate, days_from_civil,
    read_partial_date,
};

use super::operand::{integer_value, text_of};
use super::place::Place;
use crate::functions::EvaluationError;
use crate::functions::types::SqlType;
use crate::typing::Rule;

/// Notes a constant that is no date or time, as what it is compared with.
pub(super) fn note_temporal_text(
    type_name: &str,
    text: &str,
    with: &Expr,
    (rule, found): (Rule<'_>, &mut Vec<EvaluationError>),
) -> Result<()> {
    let type_name = type_name.to_lowercase();
    let error = match with {
        Expr::Column(column) => EvaluationError::incorrect_text(&type_name, text, &column.name),
        _ => EvaluationError::truncated_text(&type_name, text),
    };
    rule.note_constant(error, found)
}

/// What a text begins with before something that is part of no date or time.
pub(super) fn temporal_prefix(text: &str) -> &str {
    let is_part = |c: char| c.is_ascii_digit() || c.is_ascii_punctuation() || c == ' ';
    let end = text.find(|c| !is_part(c) && c != 'T').unwrap_or(text.len());
    &text[..end]
}

pub(in crate::typing) fn place_of_moment(micros: i64, is_date: bool) -> Place {
    if !is_date {
        return Place::At(ScalarValue::TimestampMicrosecond(Some(micros), None));
    }
    let days = ScalarValue::Date32(Some(micros.div_euclid(DAY) as i32));
    match micros.rem_euclid(DAY) {
        0 => Place::At(days),
        _ => Place::Above(days),
    }
}

/// The place in front of a day: behind all that is before it.
pub(super) fn place_before(day: i32, is_date: bool) -> Place {
    Place::Above(match is_date {
        true => ScalarValue::Date32(Some(day - 1)),
        false => ScalarValue::TimestampMicrosecond(Some(i64::from(day) * DAY - 1), None),
    })
}

/// Refuses a whole number that spells no date or time, as what it is compared with, where a strict statement changes
/// rows. A query says nothing of it, as MariaDB.
pub(super) fn refuse_number_that_is_none(
    type_name: &str,
    value: &ScalarValue,
    with: &Expr,
    noting: (Rule<'_>, &mut Vec<EvaluationError>),
) -> Result<()> {
    match integer_value(value) {
        Some(number) if noting.0.refuses() => {
            note_temporal_text(type_name, &number.to_string(), with, noting)
        }
        _ => Ok(()),
    }
}

/// Whether a text does not even begin with a time.
pub(super) fn is_no_time(text: &str) -> bool {
    temporal::read_time(text).is_err() && temporal::time_of_text(temporal_prefix(text)).is_none()
}

/// What is longer than any time is on one side of all. A text that is no time is 00:00:00, as in MariaDB. A number that
/// is none is compared as a number.
pub(super) fn place_of_time(
    (value, value_type): (&ScalarValue, &SqlType),
    left: &Expr,
    noting: (Rule<'_>, &mut Vec<EvaluationError>),
) -> Result<Option<Place>> {
    let at = |micros: i64| Place::At(ScalarValue::DurationMicrosecond(Some(micros)));
    let beyond = |is_negative: bool| match is_negative {
        true => Place::BelowAll,
        false => Place::AboveAll,
    };
    let Some(text) = text_of(value, value_type) else {
        let number = integer_value(value);
        if let Some(parts) = parts_of(value).filter(|_| number.is_none()) {
            return Ok(match temporal::time_from_parts(parts) {
                Ok(micros) => Some(at(micros)),
                Err(NotTemporal::TooLong) => Some(beyond(parts.whole < 0)),
                Err(_) => None,
            });
        }
        let time = number.and_then(temporal::time_of_number);
        let is_longer = |number: &i64| {
            i128::from(number.abs()) > MAX_TIME_NUMBER
                && time.is_some_and(|time| time.abs() == MAX_TIME)
        };
        if let Some(number) = number.filter(is_longer) {
            refuse_number_that_is_none("TIME", value, left, noting)?;
            return Ok(Some(beyond(number < 0)));
        }
        if time.is_none() {
            refuse_number_that_is_none("TIME", value, left, noting)?;
        }
        return Ok(time.map(at));
    };
    if let Ok(time) = temporal::read_time(&text) {
        let micros = time.micros(6);
        if !time.is_cut {
            return Ok(Some(at(micros)));
        }
        note_temporal_text("TIME", &text, left, noting)?;
        return Ok(Some(beyond(micros < 0)));
    }
    note_temporal_text("TIME", &text, left, noting)?;
    let begins = temporal::time_of_text(temporal_prefix(&text));
    Ok(Some(match (begins, value_type) {
        (Some(micros), _) => at(micros),
        // Bytes that are none are equal to none, and all times are on one side of them, as in MySQL.
        (None, SqlType::Bytes) => beyond(text.chars().next().is_none_or(|first| first <= '9')),
        (None, _) => at(0),
    }))
}

/// A number with digits behind its point, which are those of a second.
fn parts_of(value: &ScalarValue) -> Option<NumberParts> {
    match value {
        ScalarValue::Decimal128(Some(unscaled), _, scale) => {
            let scale = u8::try_from(*scale).ok()?;
            Some(NumberParts::of_decimal(*unscaled, scale))
        }
        ScalarValue::Float64(Some(number)) => Some(NumberParts::of_double(*number)),
        _ => None,
    }
}

/// The point in time that such a number spells, to the microsecond, as CAST reads it. Below 1 it is none.
fn moment_of_parts(value: &ScalarValue) -> Option<i64> {
    let parts = parts_of(value).filter(|parts| parts.whole != 0)?;
    Some(temporal::datetime_from_parts(parts).ok()?.0)
}

/// A literal as a point in time.
pub(super) enum Moment<'a> {
    At(i64),
    /// Between the end of the day before this one and its begin: a date whose month or day is zero.
    Before(i32, &'a str),
    /// This text is none.
    None(&'a str),
    /// As numbers, it is compared with the other operand.
    Unknown,
}

pub(super) fn point_in_time<'a>(value: &'a ScalarValue, ty: &SqlType) -> Moment<'a> {
    let text = match value {
        ScalarValue::Binary(Some(bytes)) => str::from_utf8(bytes).ok(),
        _ if ty.is_text() => value.try_as_str().flatten(),
        _ => None,
    };
    let moment = match (value, text) {
        (ScalarValue::Date32(Some(days)), _) => Some(i64::from(*days) * DAY),
        (ScalarValue::TimestampMicrosecond(Some(micros), _), _) => Some(*micros),
        (_, Some(text)) => match temporal::datetime_of_text(text) {
            Some(micros) => Some(micros),
            None => {
                return match read_partial_date(text) {
                    Some(PartialDate { year, month, .. }) => {
                        Moment::Before(days_from_civil(year, month.max(1), 1), text)
                    }
                    None => Moment::None(text),
                };
            }
        },
        _ => match integer_value(value) {
            Some(number) => temporal::datetime_of_number(number),
            None => moment_of_parts(value),
        },
    };
    moment.map_or(Moment::Unknown, Moment::At)
}
