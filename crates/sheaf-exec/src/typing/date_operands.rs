//! Operands of functions that want dates and times, and CAST to them.
//!
//! A text that may be no date is watched: a function notes it. A TIME that is to be a date is one of today.

use std::ops::Range;

use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::{Expr, lit};

use super::compare::day_of_year;
use super::expression_type::type_of;
use super::fold::{fold, literal};
use super::json_operands::json_of_any;
use super::operands;
use super::rule::Rule;
use crate::functions::truncated::MomentKind;
use crate::functions::types::SqlType;
use crate::functions::watched_json::JsonTarget;
use crate::functions::watched_time::time_of;
use crate::functions::{Moments, call, row};

/// Units of EXTRACT that are no part of a TIME itself.
const UNITS_OF_A_DATE: [&str; 6] = ["year", "quarter", "month", "week", "day", "year_month"];

/// Units of time that no TIME is moved by.
const UNITS_OF_THE_CALENDAR: [&str; 5] = ["year", "quarter", "month", "week", "year_month"];

/// Units of EXTRACT that are parts of a TIME.
const UNITS_OF_A_TIME: [&str; 4] = ["hour", "minute", "second", "microsecond"];

pub(super) fn is_unit(args: &[Expr], argument: usize, units: &[&str]) -> bool {
    let unit = args.get(argument).and_then(literal);
    let unit = unit.and_then(|unit| unit.try_as_str().flatten());
    unit.is_some_and(|unit| units.iter().any(|of| unit.eq_ignore_ascii_case(of)))
}

fn moments_among(function: &str) -> Moments {
    row(function).map_or(Moments::None, |row| row.moments)
}

/// Whether the first argument of a function is a time to it.
fn is_of_a_time(function: &str) -> bool {
    moments_among(function) == Moments::Time
}

/// The arguments of a function that are dates to it.
fn dates_among(function: &str, args: &[Expr]) -> Option<Range<usize>> {
    match moments_among(function) {
        Moments::Dates(from, to) => Some(from..to),
        Moments::PartsOfDate => Some(0..1),
        _ if function == "$extract" && is_unit(args, 0, &UNITS_OF_A_DATE) => Some(1..2),
        Moments::Time | Moments::None => None,
    }
}

/// Whether a function takes a date apart, of which the month and the day may be zero.
fn takes_a_part(function: &str, args: &[Expr]) -> bool {
    const UNITS: [&str; 5] = ["year", "quarter", "month", "day", "year_month"];
    match function {
        "$extract" => is_unit(args, 0, &UNITS),
        function => moments_among(function) == Moments::PartsOfDate,
    }
}

/// Arguments of a function, where texts are watched that are to be dates or times.
pub(super) fn moments_of(
    function: &str,
    mut args: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Vec<Expr>> {
    let (moments, kind) = match (function, dates_among(function, &args)) {
        (_, Some(dates)) if takes_a_part(function, &args) => (dates, MomentKind::PartialDateTime),
        (_, Some(dates)) => (dates, MomentKind::DateTime),
        ("$date_add" | "$date_subtract", None) => (0..1, MomentKind::DateTime),
        ("$extract", None) if is_unit(&args, 0, &UNITS_OF_A_TIME) => (1..2, MomentKind::TimeOrDate),
        ("timediff", None) => (0..2, MomentKind::TimeOrDate),
        (function, None) if is_of_a_time(function) => (0..1, MomentKind::Time),
        _ => return Ok(args),
    };
    let json = json_among(function, kind);
    for argument in args.get_mut(moments).into_iter().flatten() {
        *argument = moment_of_any(std::mem::take(argument), (kind, json), schema, rule)?;
    }
    Ok(args)
}

/// What a function makes of a JSON value that is to be its date or time. TIMEDIFF takes its text.
fn json_among(function: &str, kind: MomentKind) -> Option<JsonTarget> {
    match (kind, function) {
        (MomentKind::Time, _) => Some(JsonTarget::Time),
        (MomentKind::TimeOrDate, "timediff") => None,
        (MomentKind::TimeOrDate, _) => Some(JsonTarget::Time),
        (_, "$date_add" | "$date_subtract" | "date_format" | "timestamp") => {
            Some(JsonTarget::DateTime)
        }
        _ => Some(JsonTarget::Date),
    }
}

/// The time that a function makes of these operands, which is noted where it was too long; `None` for other functions,
/// and for constants that make none.
pub(super) fn noted_time(
    function: &str,
    args: &[Expr],
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Option<Expr> {
    let time = time_of(function).filter(|_| rule.watches())?;
    let are_constant = args.iter().all(|arg| literal(arg).is_some());
    if are_constant {
        let long = fold(call(time.long, args.to_vec()), schema);
        if literal(&long).is_some_and(ScalarValue::is_null) {
            return None;
        }
    }
    Some(rule.truncated.time(time, args.to_vec()))
}

/// Arguments of a function, where constants with an offset that are to be dates or times are wall clocks.
pub(super) fn wall_clocks(function: &str, mut args: Vec<Expr>, rule: Rule<'_>) -> Vec<Expr> {
    let moments = match (function, dates_among(function, &args)) {
        (_, Some(dates)) => dates,
        ("$date_add" | "$date_subtract", None) => 0..1,
        ("$extract", None) => 1..2,
        ("timediff", None) => 0..2,
        (function, None) if is_of_a_time(function) => 0..1,
        _ => return args,
    };
    for argument in args.get_mut(moments).into_iter().flatten() {
        if let Some(wall_clock) = rule.wall_clock(argument) {
            *argument = wall_clock;
        }
    }
    args
}

/// A text is watched, unless it is a constant that is a date or a time.
pub(super) fn moment_of(
    operand: Expr,
    kind: MomentKind,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Expr> {
    if !matches!(type_of(&operand, schema)?, SqlType::Text { .. }) {
        return Ok(operand);
    }
    let is_one = literal(&operand).is_some_and(|value| {
        let text = value.try_as_str().flatten();
        text.is_none_or(|text| kind.is_one(text))
    });
    Ok(match is_one {
        true => operand,
        false => rule.truncated.moment(kind, operand),
    })
}

/// As [`moment_of`], also of bytes, labels, the digits of numbers, and JSON values, which are to be this.
fn moment_of_any(
    operand: Expr,
    (kind, json): (MomentKind, Option<JsonTarget>),
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Expr> {
    Ok(match type_of(&operand, schema)? {
        SqlType::Text { .. } => moment_of(operand, kind, schema, rule)?,
        SqlType::Bytes
        | SqlType::Enum { .. }
        | SqlType::Integer { .. }
        | SqlType::Decimal { .. }
        | SqlType::Float
        | SqlType::Double
            if !literal(&operand).is_some_and(ScalarValue::is_null) =>
        {
            rule.truncated.moment(kind, operand)
        }
        _ => match json {
            Some(target) => json_of_any(operand, target, schema, rule)?,
            None => operand,
        },
    })
}

/// Arguments of a function, where a YEAR that is to be a date or a time is the first day of that year.
pub(super) fn days_of_years(
    function: &str,
    mut args: Vec<Expr>,
    schema: &DFSchema,
) -> Result<Vec<Expr>> {
    let moments = match (function, dates_among(function, &args)) {
        (_, Some(dates)) => dates,
        ("$date_add" | "$date_subtract", None) => 0..1,
        ("$extract", None) => 1..2,
        (function, None) if is_of_a_time(function) => 0..1,
        _ => return Ok(args),
    };
    for argument in args.get_mut(moments).into_iter().flatten() {
        // The sum of a YEAR and an interval has a time of day.
        let at_midnight = matches!(function, "$date_add" | "$date_subtract");
        *argument = day_of_year(std::mem::take(argument), at_midnight, schema)?;
    }
    Ok(args)
}

/// Arguments of a function, where times that it wants dates of are points in time.
pub(super) fn times_of_today(
    function: &str,
    mut args: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Vec<Expr>> {
    let dates = match (function, dates_among(function, &args)) {
        (_, Some(dates)) => dates,
        ("$cast_year", None) => 0..1,
        ("$date_add" | "$date_subtract", None) if is_unit(&args, 2, &UNITS_OF_THE_CALENDAR) => 0..1,
        _ => return Ok(args),
    };
    for argument in args.get_mut(dates).into_iter().flatten() {
        if let SqlType::Time { fsp } = type_of(argument, schema)? {
            let time = std::mem::take(argument);
            *argument = fold(rule.of_today(time, fsp), schema);
        }
    }
    Ok(args)
}

/// Whether a zero date that is made of this value is NULL. One that a column of dates holds stays what it is.
pub(super) fn refuses_zero_of(
    value: Option<&Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<bool> {
    Ok(match value {
        Some(value) if rule.refuses_zero_dates => !type_of(value, schema)?.is_temporal(),
        _ => false,
    })
}

/// A value that is to be a date, and a JSON value this; it is watched where it is shown. Second: whether the zero date
/// is NULL then.
fn made_date(
    value: Expr,
    json: JsonTarget,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<(Expr, bool)> {
    let value = rule.wall_clock(&value).unwrap_or(value);
    let value = day_of_year(value, false, schema)?;
    let refuses_zero = refuses_zero_of(Some(&value), schema, rule)?;
    let kind = match refuses_zero {
        true => MomentKind::NonZeroDateTime,
        false => MomentKind::DateTime,
    };
    let value = match rule.watches() {
        true => moment_of_any(value, (kind, Some(json)), schema, rule)?,
        false => value,
    };
    Ok((value, refuses_zero))
}

fn without_zero(date: Expr, refuses_zero: bool, schema: &DFSchema) -> Expr {
    let date = fold(date, schema);
    match refuses_zero {
        true => fold(call("$no_zero_date", vec![date]), schema),
        false => date,
    }
}

/// CAST AS DATETIME: a time is one of today.
pub(super) fn to_datetime(args: Vec<Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let [value, fsp, today] = operands(args)?;
    let (value, refuses_zero) = made_date(value, JsonTarget::DateTime, schema, rule)?;
    let moment = match type_of(&value, schema)? {
        SqlType::Time { .. } => call("$on_day", vec![value, fsp, today]),
        _ => call("$cast_datetime", vec![value, fsp]),
    };
    Ok(without_zero(moment, refuses_zero, schema))
}

/// CAST AS DATE.
pub(super) fn to_date(args: Vec<Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let [value, today] = operands(args)?;
    let (value, refuses_zero) = match type_of(&value, schema)? {
        SqlType::Time { .. } => (
            to_datetime(vec![value, lit(6i64), today], schema, rule)?,
            false,
        ),
        _ => made_date(value, JsonTarget::Date, schema, rule)?,
    };
    Ok(without_zero(
        call("$cast_date", vec![value]),
        refuses_zero,
        schema,
    ))
}
