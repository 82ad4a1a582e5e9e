//! Arguments and orders of aggregates: strings by their sort keys, summands as numbers.

use datafusion_common::{DFSchema, Result};
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::{Expr, SortExpr, lit};

use super::choose;
use super::expression_type::{field_of, type_of};
use super::fold::fold;
use super::number_operands::{number_of_hybrid, number_of_moment, numbers_of};
use super::rule::Rule;
use crate::aggregates::GROUP_CONCAT;
use crate::functions::collation::{collation_key, key_collation};
use crate::functions::control::{common_field, field_of_parts};
use crate::functions::truncated::NumberKind;
use crate::functions::types::{
    SqlType, bit_length, common_collation, field, float_decimals, zerofill,
};
use crate::functions::{EvaluationError, call};

/// The sort key of a string; other values as they are, DECIMALs as they are shown.
pub fn key_of(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let ty = type_of(&expr, schema)?;
    Ok(match (key_collation(&ty), ty) {
        (Some(collation), _) => collation_key(expr, collation),
        (None, SqlType::Json) => call("$json_key", vec![expr]),
        (None, SqlType::Decimal { .. }) => choose::as_shown(expr, schema)?,
        // An ENUM is ordered by the number of its label.
        (None, SqlType::Enum { .. }) => call("$enum_number", vec![expr]),
        _ => expr,
    })
}

pub(super) fn keys_of(exprs: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    exprs.into_iter().map(|expr| key_of(expr, schema)).collect()
}

pub(super) fn sort_keys_of(exprs: Vec<SortExpr>, schema: &DFSchema) -> Result<Vec<SortExpr>> {
    exprs
        .into_iter()
        .map(|sort| {
            Ok(SortExpr {
                expr: key_of(sort.expr, schema)?,
                ..sort
            })
        })
        .collect()
}

/// Arguments of an aggregate as it wants them: strings by key where they are counted apart, numbers where they add up.
pub(super) fn aggregate_arguments(
    name: &str,
    distinct: bool,
    args: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Vec<Expr>> {
    let double = |expr| fold(call("$cast_double", vec![expr]), schema);
    // Points in time add up as the numbers that their digits are.
    let summand = |expr: Expr| -> Result<Expr> {
        let expr = number_of_moment(number_of_hybrid(expr), schema)?;
        Ok(match type_of(&expr, schema)? {
            ty if ty.is_exact_number() || ty == SqlType::Double => expr,
            SqlType::Date | SqlType::Time { .. } | SqlType::DateTime { .. } => {
                fold(call("$add", vec![expr, lit(0i64)]), schema)
            }
            SqlType::Float => {
                let field = field_of(&expr, schema)?;
                let decimals = float_decimals(&field);
                choose::with_metadata(double(expr), &field::double_of(decimals))
            }
            // What DISTINCT leaves out is not converted.
            _ if rule.watches() && !distinct => {
                let numbers = numbers_of(vec![expr], NumberKind::Double, schema, rule)?;
                numbers.into_iter().map(double).next().unwrap_or_default()
            }
            _ => double(expr),
        })
    };
    match name {
        "min" | "max" if type_of(&args[0], schema)? == SqlType::Json => Err(
            EvaluationError::not_supported_yet("MIN and MAX of JSON values over a window").into(),
        ),
        // Without one collation no text is the first or the last.
        "min" | "max" => {
            common_collation(&[type_of(&args[0], schema)?], name)?;
            Ok(args)
        }
        "count" if distinct => keys_of(args, schema),
        "$sum" => args.into_iter().map(summand).collect(),
        // The value of another row, or the default: of the type that both are.
        "lag" | "lead" if args.len() == 3 => {
            let mut args = args;
            let fields = [field_of(&args[0], schema)?, field_of(&args[2], schema)?];
            let to = field_of_parts(&fields)?;
            for at in [0, 2] {
                let value = std::mem::take(&mut args[at]);
                // A wide DECIMAL is cut as one of a union is.
                let is_column = bit_length(&to).is_some() || SqlType::of(&to).is_wide();
                args[at] = match is_column {
                    true => choose::as_column_of(value, &to, schema, None)?,
                    false => choose::convert_to_field(value, &to, schema, None)?,
                };
            }
            Ok(args)
        }
        // The same of an ENUM is a text, and of a number with ZEROFILL a number.
        "lag" | "lead" | "first_value" | "last_value" | "nth_value" => {
            let mut args = args;
            let field = field_of(&args[0], schema)?;
            let is_enum = matches!(SqlType::of(&field), SqlType::Enum { .. });
            if is_enum || zerofill(&field).is_some() {
                let value = std::mem::take(&mut args[0]);
                args[0] = choose::as_column_of(value, &common_field(&[field])?, schema, None)?;
            }
            Ok(args)
        }
        // Byte strings stay what they are.
        "$group_concat" => {
            let mut args = args;
            let joined = args.remove(0);
            let field = field_of(&joined, schema)?;
            let joined = match SqlType::of(&field) {
                SqlType::Bytes | SqlType::Text { .. } => joined,
                _ if bit_length(&field).is_some() => {
                    fold(call("$cast_binary", vec![joined]), schema)
                }
                _ => fold(call("$cast_char", vec![joined]), schema),
            };
            args.insert(0, joined);
            Ok(args)
        }
        _ => Ok(args),
    }
}

pub(super) fn resolve_aggregate(
    mut aggregate: AggregateFunction,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Expr> {
    let name = aggregate.func.name();
    let params = &mut aggregate.params;
    let args = std::mem::take(&mut params.args);
    params.args = aggregate_arguments(name, params.distinct, args, schema, rule)?;
    if name == GROUP_CONCAT
        && let Some(metadata) = &rule.literal_metadata
        && let Some(value) = params.args.first_mut()
    {
        let joined = std::mem::take(value);
        let joined = match type_of(&joined, schema)?.is_string() {
            true => joined,
            false => fold(call("concat", vec![joined]), schema),
        };
        *value = choose::as_literal(joined, metadata, schema)?;
    }
    params.order_by = sort_keys_of(std::mem::take(&mut params.order_by), schema)?;
    Ok(Expr::AggregateFunction(aggregate))
}
