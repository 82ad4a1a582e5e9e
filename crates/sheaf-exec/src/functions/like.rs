//! LIKE over columns of texts. [`Pattern`] matches; a constant pattern is compiled once, and so is one that comes for
//! several rows one after the other.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, BooleanBuilder};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::Field;
use datafusion_common::Result;
use sheaf_types::Collation;
use sheaf_types::text::like::Pattern;

use super::limits::ask_for;
use super::types::{SqlType, check_literal, field, matching_collation};
use super::{Call, EvaluationError, Function, Operands};

pub(super) static FUNCTIONS: &[Function] = &[
    // Text, pattern, escape character (an empty text: none).
    Function::strict("$like", (3, 3), like_type, like)
        .bytewise()
        .stops_at_null(),
];

/// The escape character of a LIKE's third argument; an empty one is none, as MySQL's manual says. MariaDB takes it for
/// a backslash.
pub fn escape_character(text: &str) -> Result<Option<char>> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (None, _) => Ok(None),
        (escape, None) => Ok(escape),
        _ => Err(EvaluationError::wrong_arguments("ESCAPE").into()),
    }
}

/// Texts that insist on different collations are told of before there are rows.
fn like_type(operands: &Operands<'_>) -> Result<Field> {
    let collation = matching_collation(&operands.fields[0], &operands.fields[1], "like")?;
    for (operand, field) in operands.fields[..2].iter().enumerate() {
        if let Some(text) = operands.text(operand) {
            check_literal(&text, &SqlType::of(field), collation)?;
        }
    }
    Ok(field::boolean())
}

/// A pattern, which takes several times as much as its text.
///
/// # Errors
/// There is no room for it.
pub(super) fn compiled(
    pattern: &str,
    escape: Option<char>,
    collation: Collation,
) -> Result<Pattern> {
    ask_for(Pattern::memory_of(pattern.len()))?;
    Ok(Pattern::new(pattern, escape, collation))
}

fn like(call: &Call<'_>) -> Result<ArrayRef> {
    let (left, right) = (&call.args.arg_fields[0], &call.args.arg_fields[1]);
    let collation = matching_collation(left, right, "like")?;
    let (values, patterns, escapes) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let escape = |row: usize| escapes.get(row).map_or(Ok(None), escape_character);
    let turns = call.turns();
    let matches = |pattern: &Pattern, text: &str| {
        !turns.is_over() && pattern.matches_until(text, &|| turns.is_over_now()) == Some(true)
    };
    if patterns.constant && escapes.constant && !values.constant {
        let Some(pattern) = patterns.get(0).filter(|_| escapes.get(0).is_some()) else {
            return Ok(Arc::new(BooleanArray::new_null(call.rows())));
        };
        let pattern = compiled(pattern, escape(0)?, collation)?;
        // NULL rows are masked by the validity of the texts.
        let matched = BooleanBuffer::collect_bool(call.rows(), |row| {
            values.array.is_valid(row) && matches(&pattern, values.array.value(row))
        });
        return Ok(Arc::new(BooleanArray::new(
            matched,
            values.array.nulls().cloned(),
        )));
    }
    // Pairs of rows that are joined have the pattern of the one row many times.
    let mut known: Option<(&str, Option<char>, Pattern)> = None;
    let mut result = BooleanBuilder::with_capacity(call.rows());
    for row in 0..call.rows() {
        let (Some(text), Some(written)) = (values.get(row), patterns.get(row)) else {
            result.append_null();
            continue;
        };
        let escape = escape(row)?;
        let before = known.take();
        let before = before.filter(|(same, of, _)| *same == written && *of == escape);
        let (_, _, pattern) = known.insert(match before {
            Some(before) => before,
            None => (written, escape, compiled(written, escape, collation)?),
        });
        result.append_value(matches(pattern, text));
    }
    Ok(Arc::new(result.finish()))
}
