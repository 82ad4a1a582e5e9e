//! The typing rule: from markers to typed, plain expressions.
//!
//! The binder hands over every operator whose MySQL meaning depends on types as a marker (`$eq(a, b)`, `$case(...)`).
//! This rule knows the types, and is a pure function of (expression, schema). It replaces each marker by the expression
//! that means the same to DataFusion, with conversions spelled out. So the passes after it (coercion, simplification,
//! join and range recognition) may take the plan literally.
//!
//! Its aim is `column op literal` with the literal in the column's own type, because key ranges are made of that. So `d
//! >= '1997-01-01'` becomes a comparison of dates, `l_discount BETWEEN 0.05 - 0.01 AND ...` one of DECIMAL(15,2), and
//! `name = 'x'` one of sort keys ([`compare`]).
//!
//! [`plan`] does the same for whole nodes: they group strings and make them distinct by sort key.

mod aggregate;
mod change_condition;
mod choose;
mod compare;
mod date_operands;
mod expression_type;
mod fold;
mod json_operands;
mod lists;
mod number_operands;
mod once;
mod plan;
mod range_frame;
mod reached;
mod rule;
mod subquery;
mod window;

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::{DFSchema, Result, ScalarValue, internal_datafusion_err};
use datafusion_expr::expr::{Cast, ScalarFunction};
use datafusion_expr::{Expr, Operator, ScalarUDF, lit};

use crate::functions::conversion::WIDEST;
use crate::functions::date_format::{Reading, reading};
use crate::functions::in_values::IN_NUMBERS;
use crate::functions::truncated::MomentKind;
use crate::functions::types::{SqlType, field, is_bytes};
use crate::functions::watched_json::JsonTarget;
use crate::functions::{as_function, call, mathematics};

use aggregate::resolve_aggregate;
use date_operands::{moment_of, moments_of, refuses_zero_of, times_of_today, to_date, to_datetime};
use expression_type::deep;
use fold::{fold, typed_literal};
use number_operands::{
    is_constant, is_division, is_hybrid, is_literal_of_bytes, note_constant_divisor,
    note_constants, number_of_hybrid, number_of_moment, numbers_of, numbers_of_moments,
    numbers_of_moments_among, wanted_number, watched_cut, watched_divisor, watched_logarithm,
    watched_numbers,
};
use rule::{Rule, is_of_rows};
use window::resolve_window;

pub use aggregate::key_of;
pub use change_condition::{
    MAX_PARTS as MAX_WATCHED_PARTS, WatchedRows, indexed_columns_of,
    of_typed_parts as watched_condition,
};
pub use choose::{as_column_of, typed, with_shown_digits};
pub use compare::number_of_column;
pub use expression_type::{field_of, field_of_aggregate, is_condition, type_of};
pub use fold::constant_value;
pub(crate) use fold::literal;
pub use once::{has_many_branches, nodes_of_call, stand_ins_in_bodies};
pub use plan::{group_by_key, group_key, refused_texts, schema_of_operands};
pub use reached::MAX_ORDERED;
pub use rule::{Purpose, Texts};
pub use subquery::{outer_columns_of, without_or_null};

/// Gives one node its meaning, whose operands have theirs already. `sheaf-algebra` makes its expressions by it.
pub fn resolve_node(
    expr: Expr,
    schema: &DFSchema,
    texts: &Texts,
    purpose: Purpose,
) -> Result<Expr> {
    let rule = Rule { texts, purpose };
    match expr {
        // One string type everywhere.
        Expr::Literal(ScalarValue::Utf8(text), metadata) => Ok(Expr::Literal(
            ScalarValue::Utf8View(text),
            metadata.or_else(|| texts.literal_metadata.clone()),
        )),
        Expr::ScalarFunction(ScalarFunction { func, args }) => match as_function(&func) {
            Some(function) => {
                let args = match rule.has_conditions() {
                    true => reached::in_operands(function.name, args, schema, rule)?,
                    false => args,
                };
                let of_columns = match is_choice(function.name) {
                    true => choose::text_of_columns(function.name, &args, schema)?,
                    false => None,
                };
                let value = resolve_call((func, function.name), args, schema, rule)?;
                match (of_columns, &texts.literal_metadata) {
                    (Some(field), _) => choose::as_text_of_columns(value, &field, schema),
                    (None, Some(metadata)) if is_asked_for(function.name) => {
                        choose::as_literal(value, metadata, schema)
                    }
                    _ => Ok(value),
                }
            }
            None => Ok(Expr::ScalarFunction(ScalarFunction { func, args })),
        },
        Expr::BinaryExpr(connective) if rule.has_conditions() => {
            reached::in_connective(connective, rule)
        }
        Expr::AggregateFunction(aggregate) => resolve_aggregate(aggregate, schema, rule),
        Expr::WindowFunction(window) => resolve_window(*window, schema, rule),
        other => Ok(other),
    }
}

/// Whether a function gives one of its operands.
fn is_choice(name: &str) -> bool {
    const CHOICES: [&str; 6] = [
        "coalesce",
        "nullif",
        "greatest",
        "least",
        "$case",
        "$simple_case",
    ];
    CHOICES.contains(&name)
}

/// Whether a function stands in statements, and is not put into plans by rules.
fn is_asked_for(name: &str) -> bool {
    const WRITTEN: [&str; 5] = [
        "$case",
        "$simple_case",
        "$date_add",
        "$date_subtract",
        "$trim",
    ];
    !name.starts_with('$') || WRITTEN.contains(&name)
}

fn resolve_call(
    (func, name): (Arc<ScalarUDF>, &'static str),
    args: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Expr> {
    match name {
        "$eq" => binary(Operator::Eq, args, schema, rule),
        "$ne" => binary(Operator::NotEq, args, schema, rule),
        "$lt" => binary(Operator::Lt, args, schema, rule),
        "$le" => binary(Operator::LtEq, args, schema, rule),
        "$gt" => binary(Operator::Gt, args, schema, rule),
        "$ge" => binary(Operator::GtEq, args, schema, rule),
        "$null_safe_eq" => binary(Operator::IsNotDistinctFrom, args, schema, rule),
        "$when" => compare::case_value(args, schema, rule),
        "$may_be_equal" => compare::may_be_equal(args, schema, rule),
        "$between" => compare::between(args, schema, rule),
        "$in" => lists::in_list(args, schema, rule),
        IN_NUMBERS => lists::in_numbers(args, schema, rule),
        "$truth" => compare::truth(number_of_hybrid(first(args)), schema, rule),
        "$hybrid" => Ok(match first(args) {
            Expr::Literal(value, _) => typed_literal(value, &field::hybrid()),
            other => other,
        }),
        "$literal_bytes" => Ok(match first(args) {
            Expr::Literal(value, _) => typed_literal(value, &field::literal_bytes()),
            other => other,
        }),
        "$int" => Ok(fold(cast(first(args), DataType::Int64), schema)),
        "$to_date" => to_date(args, schema, rule),
        "$to_datetime" => to_datetime(args, schema, rule),
        "$case" => choose::case(args, schema, rule),
        "$simple_case" => choose::simple_case(args, (schema, rule)),
        "$row_lt" => compare::rows(Operator::Lt, args, schema, rule),
        "$row_le" => compare::rows(Operator::LtEq, args, schema, rule),
        "$row_gt" => compare::rows(Operator::Gt, args, schema, rule),
        "$row_ge" => compare::rows(Operator::GtEq, args, schema, rule),
        "$row_in" => lists::row_in(args, (schema, rule)),
        "coalesce" => choose::coalesce(args, schema, rule),
        "nullif" => choose::nullif(args, schema, rule),
        "greatest" | "least" => choose::extreme(name, args, schema, rule),
        "$in_row" => compare::number_of_year(first(args), schema),
        // Bytes that are no text are NULL.
        "$cast_char" if is_bytes(field_of(&args[0], schema)?.as_ref()) => {
            let mut args = args;
            let bytes = std::mem::take(&mut args[0]);
            args[0] = fold(
                call("$using", vec![bytes, lit("utf8mb4"), lit(1i64)]),
                schema,
            );
            let args = watched_cut(name, args, schema, rule)?;
            Ok(fold(call("$cast_char", args), schema))
        }
        "$result" => choose::as_shown(first(args), schema),
        "$first_part" => choose::first_part(first(args), schema),
        "$like" => {
            let args = compare::texts_beside(args, schema, rule)?;
            let like = Expr::ScalarFunction(ScalarFunction { func, args });
            Ok(fold(like, schema))
        }
        name => {
            let wanted = wanted_number(name);
            let takes_numbers = wanted.is_some()
                || CASTS_TO_NUMBERS.contains(&name)
                || mathematics::takes_numbers(name);
            let args: Vec<Expr> = match takes_numbers {
                true => args.into_iter().map(number_of_hybrid).collect(),
                false => args,
            };
            let args = match takes_numbers {
                true if CASTS_TO_INTEGERS.contains(&name) => args,
                true => numbers_of_moments(args, schema)?,
                false => numbers_of_moments_among(name, args, schema)?,
            };
            let args = date_operands::wall_clocks(name, args, rule);
            let args = date_operands::days_of_years(name, args, schema)?;
            let args = match wanted {
                // Conditions that stand in front of operands hold for what is watched in them now, too.
                Some(kind) if rule.watches() => {
                    let args = numbers_of(args, kind, schema, rule)?;
                    reached::in_operands(name, args, schema, rule)?
                }
                _ if rule.watches() => watched_numbers(name, args, schema, rule)?,
                _ => {
                    note_constants(name, &args, schema, rule)?;
                    args
                }
            };
            let args = watched_cut(name, args, schema, rule)?;
            let args = times_of_today(name, args, schema, rule)?;
            let makes_dates = matches!(name, "date" | "timestamp")
                && refuses_zero_of(args.first(), schema, rule)?;
            let args = match name {
                _ if rule.watches() && makes_dates => {
                    let mut args = args;
                    // TIMESTAMP() adds a time to it.
                    let date = std::mem::take(&mut args[0]);
                    let date = moment_of(date, MomentKind::NonZeroDateTime, schema, rule)?;
                    let target = match name {
                        "date" => JsonTarget::Date,
                        _ => JsonTarget::DateTime,
                    };
                    args[0] = json_operands::json_of_any(date, target, schema, rule)?;
                    args
                }
                _ if rule.watches() => moments_of(name, args, schema, rule)?,
                _ => args,
            };
            // A query computes constants once.
            let is_constant_of_query =
                rule.purpose == Purpose::DividedCondition && args.first().is_some_and(is_constant);
            let args = match is_division(name) {
                true if rule.watches_divisors() && !is_constant_of_query => {
                    watched_divisor(args, rule)?
                }
                true if rule.purpose == Purpose::Shown || rule.purpose == Purpose::Copy => args,
                true if rule.purpose == Purpose::Order && args.iter().all(is_constant) => args,
                true => {
                    note_constant_divisor(&args, rule)?;
                    args
                }
                false => args,
            };
            let args = match mathematics::is_logarithm(name) && rule.watches_divisors() {
                true => watched_logarithm(args, rule)?,
                false => args,
            };
            let cast_number = match name {
                "$cast_decimal" if rule.watches() => reached::copy(&args[0])?,
                _ => None,
            };
            let watched = match name {
                "str_to_date" if rule.has_conditions() => {
                    // Nothing is noted twice, and what is noted about a nest does not multiply.
                    reached::copy(&args[0])?.zip(reached::copy(&args[1])?)
                }
                _ => None,
            };
            let moved = match (name, args.as_slice()) {
                ("$date_add" | "$date_subtract", [date, interval, _]) if rule.watches() => {
                    reached::copy(date)?.zip(reached::copy(interval)?)
                }
                _ => None,
            };
            let value = match date_operands::noted_time(name, &args, schema, rule) {
                Some(time) => time,
                None => fold(Expr::ScalarFunction(ScalarFunction { func, args }), schema),
            };
            let value = match moved {
                // What is computed once more must have no effects.
                Some((date, interval))
                    if may_overflow([&value, &date, &interval])
                        && !compare::has_calls(&date)
                        && !compare::has_calls(&interval) =>
                {
                    rule.truncated.moved_date(value, date, interval)
                }
                _ => value,
            };
            let refuses_zero = match name {
                "str_to_date" if rule.refuses_zero_dates => {
                    !matches!(type_of(&value, schema)?, SqlType::Time { .. })
                }
                _ => makes_dates,
            };
            let value = match refuses_zero {
                true => fold(call("$no_zero_date", vec![value]), schema),
                false => value,
            };
            let is_null = literal(&value).is_some_and(ScalarValue::is_null);
            let value = match cast_number {
                Some(number) => rule.truncated.fitted(value, number),
                None => value,
            };
            Ok(match watched {
                Some((text, format)) if is_null || !is_read_whole(&text, &format) => {
                    rule.truncated.parsed_date(value, text, format)
                }
                _ => value,
            })
        }
    }
}

/// Whether a date and an interval may have no sum, as far as that is known of constants.
fn may_overflow([sum, date, interval]: [&Expr; 3]) -> bool {
    let is_null = |operand| literal(operand).is_some_and(ScalarValue::is_null);
    literal(sum).is_none_or(ScalarValue::is_null) && !is_null(date) && !is_null(interval)
}

/// Whether STR_TO_DATE has nothing to say of its operands.
fn is_read_whole(text: &Expr, format: &Expr) -> bool {
    let of = |operand| literal(operand).map(|value| value.try_as_str().flatten());
    match (of(text), of(format)) {
        (Some(None), _) | (_, Some(None)) => literal(text).is_some_and(ScalarValue::is_null),
        (Some(Some(text)), Some(Some(format))) => reading(text, format) == Reading::Whole,
        _ => false,
    }
}

/// Casts that make a number of a hexadecimal literal, as operators do.
const CASTS_TO_NUMBERS: [&str; 4] = [
    "$cast_signed",
    "$cast_unsigned",
    "$cast_decimal",
    "$cast_double",
];

/// Casts that take a date's text for a text, whatever has made it.
const CASTS_TO_INTEGERS: [&str; 2] = ["$cast_signed", "$cast_unsigned"];

fn first(args: Vec<Expr>) -> Expr {
    args.into_iter()
        .next()
        .unwrap_or_else(|| lit(ScalarValue::Null))
}

fn binary(op: Operator, args: Vec<Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let mut args = args.into_iter();
    match (args.next(), args.next()) {
        (Some(left), Some(right)) => compare::comparison(op, left, right, schema, rule),
        _ => datafusion_common::internal_err!("a comparison has two operands"),
    }
}

fn operands<const N: usize>(args: Vec<Expr>) -> Result<[Expr; N]> {
    <[Expr; N]>::try_from(args)
        .map_err(|args| internal_datafusion_err!("{} operands instead of {N}", args.len()))
}

/// A plain cast between Arrow types for which arrow's conversion is MySQL's: a widening.
///
/// Of more than a few nodes it is a function: DataFusion asks what is cast whether it may be NULL once for itself and
/// once for its field, so in a nest of casts it asks the innermost 2^n times.
///
/// The field has a name, so that it is taken as it is. Of a cast to a mere type DataFusion hands on the metadata of
/// what is cast, so a BIGINT would be announced as the SMALLINT that it once was.
///
/// To a wide DECIMAL it is a function of ours, whatever it is made of. What is beyond the digits of the widest type, in
/// which numbers are compared, is cut.
pub(crate) fn cast(expr: Expr, to: DataType) -> Expr {
    if let DataType::Decimal256(precision, scale) = to {
        let digits = [lit(i64::from(precision)), lit(i64::from(scale))];
        let name = match precision {
            WIDEST => "$cast_decimal",
            _ => "$widen_decimal",
        };
        return call(name, std::iter::once(expr).chain(digits).collect());
    }
    if !once::is_small(&expr)
        && let Ok(null) = ScalarValue::try_from(&to)
    {
        return call("$widen", vec![expr, lit(null)]);
    }
    let field = Arc::new(Field::new("cast", to, true));
    Expr::Cast(Cast::new_from_field(Box::new(expr), field))
}
