//! Operands of functions that want numbers.
//!
//! A text that may be no number is watched: it is converted by a function that notes it. So are divisors that may be
//! zero.

use std::ops::Range;

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::{Expr, lit};
use sheaf_types::number::{bytes_to_unsigned, text_to_double};

use super::date_operands::is_unit;
use super::expression_type::{field_of, type_of};
use super::fold::{fold, literal};
use super::json_operands::json_of_any;
use super::rule::{Purpose, Rule};
use super::{compare, reached};
use crate::functions::truncated::NumberKind;
use crate::functions::types::{HYBRID_KEY, LITERALS_OF_BYTES, MOMENT_KEY, SqlType};
use crate::functions::{call, mathematics, row};

/// The number of its digits, where a text is the date or time that arithmetic has made; all else as it is.
///
/// ```text
///   ('2024-01-02' - INTERVAL 1 DAY) + 0    20240101
/// ```
pub(super) fn number_of_moment(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let may_be = matches!(expr, Expr::Literal(_, Some(_)) | Expr::ScalarFunction(_));
    Ok(
        match may_be && field_of(&expr, schema)?.metadata().contains_key(MOMENT_KEY) {
            true => fold(call("$moment_number", vec![expr]), schema),
            false => expr,
        },
    )
}

pub(super) fn numbers_of_moments(exprs: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    let number = |expr| number_of_moment(expr, schema);
    exprs.into_iter().map(number).collect()
}

/// The operands of a function that takes numbers and others, with numbers of moments in the places of numbers.
pub(super) fn numbers_of_moments_among(
    function: &str,
    mut operands: Vec<Expr>,
    schema: &DFSchema,
) -> Result<Vec<Expr>> {
    for (_, range) in numbers_among(function, &operands, schema)? {
        for operand in operands.iter_mut().take(range.end).skip(range.start) {
            *operand = number_of_moment(std::mem::take(operand), schema)?;
        }
    }
    Ok(operands)
}

/// Whether this is a hexadecimal literal.
pub(super) fn is_hybrid(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Binary(Some(_)), Some(metadata)) => {
            metadata.inner().contains_key(HYBRID_KEY)
        }
        _ => false,
    }
}

/// Whether this is a literal of bytes, hexadecimal or with the introducer `_binary`.
pub(super) fn is_literal_of_bytes(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Binary(Some(_)), Some(metadata)) => {
            let metadata = metadata.inner();
            LITERALS_OF_BYTES
                .iter()
                .any(|key| metadata.contains_key(*key))
        }
        _ => false,
    }
}

/// The number that a hexadecimal literal is where numbers are wanted, a BIGINT UNSIGNED; everything else as it is.
pub(super) fn number_of_hybrid(expr: Expr) -> Expr {
    if is_hybrid(&expr)
        && let Some(ScalarValue::Binary(Some(bytes))) = literal(&expr)
    {
        return lit(bytes_to_unsigned(bytes));
    }
    expr
}

/// What an operator computes with.
pub(super) fn wanted_number(operator: &str) -> Option<NumberKind> {
    match operator {
        "$add" | "$subtract" | "$signed_subtract" | "$multiply" | "$divide" | "mod" | "$negate"
        | "$cast_double" => Some(NumberKind::Double),
        "$integer_divide" => Some(NumberKind::Decimal),
        "$bit_and" | "$bit_or" | "$bit_xor" | "$shift_left" | "$shift_right" | "$bit_not"
        | "bit_count" | "$cast_signed" | "$cast_unsigned" => Some(NumberKind::Integer),
        _ => None,
    }
}

pub(super) fn is_constant(expr: &Expr) -> bool {
    literal(expr).is_some()
}

pub(super) fn is_division(operator: &str) -> bool {
    matches!(operator, "$divide" | "$integer_divide" | "mod")
}

/// Units of an interval that are counted by a whole number.
const WHOLE_UNITS: [&str; 7] = ["year", "quarter", "month", "week", "day", "hour", "minute"];

/// What numbers a function makes of texts, and of which of its operands.
fn numbers_among(
    function: &str,
    operands: &[Expr],
    schema: &DFSchema,
) -> Result<Vec<(NumberKind, Range<usize>)>> {
    let is_interval = matches!(function, "$date_add" | "$date_subtract");
    if is_interval && !is_unit(operands, 2, &WHOLE_UNITS) {
        return Ok(Vec::new());
    }
    // FIELD compares as numbers unless all are texts.
    if function == "field" {
        for operand in operands {
            if !type_of(operand, schema)?.is_string() {
                return Ok(vec![(NumberKind::Double, 0..operands.len())]);
            }
        }
        return Ok(Vec::new());
    }
    // Of texts these have nothing to say.
    if let ("$cast_float" | "$cast_year", [operand]) = (function, operands)
        && type_of(operand, schema)? == SqlType::Json
    {
        let kind = match function {
            "$cast_year" => NumberKind::Integer,
            _ => NumberKind::Double,
        };
        return Ok(vec![(kind, 0..1)]);
    }
    // The text beside the number of `$finite` is what was computed.
    if mathematics::takes_numbers(function) && !function.starts_with('$') {
        return Ok(vec![(NumberKind::Double, 0..operands.len())]);
    }
    let known = row(function).map_or([None; 2], |row| row.number_operands);
    let known = known.into_iter().flatten();
    Ok(known.map(|(kind, from, to)| (kind, from..to)).collect())
}

/// The operands of a function, where a text that is to be a number and may be none is watched.
pub(super) fn watched_numbers(
    function: &str,
    mut operands: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Vec<Expr>> {
    for (kind, range) in numbers_among(function, &operands, schema)? {
        let operands = operands.iter_mut().take(range.end).skip(range.start);
        for operand in operands {
            if may_be_no_number(operand, kind, schema)? {
                let text = std::mem::take(operand);
                *operand = rule.truncated.number_text(kind, text);
            } else {
                *operand = json_of_any(std::mem::take(operand), kind.into(), schema, rule)?;
            }
        }
    }
    Ok(operands)
}

/// The operands of CAST to so many characters or bytes, where what it cuts is noted.
pub(super) fn watched_cut(
    function: &str,
    mut operands: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Vec<Expr>> {
    let is_binary = function == "$cast_binary";
    if let [value, length] = operands.as_mut_slice()
        && (is_binary || function == "$cast_char")
        && rule.watches()
        && let Some(ScalarValue::Int64(Some(length))) = literal(length)
    {
        let length = usize::try_from(*length).unwrap_or(0);
        let fits = match literal(value) {
            Some(value) if value.is_null() => true,
            // No text has more characters than bytes.
            Some(constant) => compare::text_of(constant, &type_of(value, schema)?)
                .is_some_and(|text| text.len() <= length),
            None => false,
        };
        if !fits {
            let given = std::mem::take(value);
            *value = rule.truncated.cut(given, is_binary, length);
        }
    }
    Ok(operands)
}

/// Notes constant texts that are no numbers, where numbers are wanted. Conditions note no texts of rows: which rows a
/// part of one is asked for depends on the plan.
pub(super) fn note_constants(
    function: &str,
    operands: &[Expr],
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<()> {
    let (kind, operands) = match function {
        "$cast_decimal" => (NumberKind::Decimal, &operands[..1]),
        name => match wanted_number(name) {
            Some(kind) => (kind, operands),
            None if mathematics::takes_numbers(name) && !name.starts_with('$') => {
                (NumberKind::Double, operands)
            }
            None => return Ok(()),
        },
    };
    for operand in operands {
        if let Some(text) = literal(operand).and_then(|value| value.try_as_str().flatten())
            && matches!(type_of(operand, schema)?, SqlType::Text { .. })
        {
            rule.note_constant_text(kind, text, &mut Vec::new())?;
        }
    }
    Ok(())
}

/// Notes a constant divisor that is zero, where the session wants to hear of it.
pub(super) fn note_constant_divisor(operands: &[Expr], rule: Rule<'_>) -> Result<()> {
    match operands {
        [dividend, divisor, ..]
            if rule.truncated.watches_constant_divisors()
                && literal(divisor).is_some_and(is_zero)
                && !literal(dividend).is_some_and(ScalarValue::is_null) =>
        {
            let is_sought = rule.purpose == Purpose::Sought;
            rule.truncated.note_constant_division(is_sought)
        }
        _ => Ok(()),
    }
}

/// Texts are the number that they begin with.
fn is_zero(value: &ScalarValue) -> bool {
    if let Some(text) = value.try_as_str() {
        return text.is_some_and(|text| text_to_double(text) == 0.0);
    }
    let number = value.cast_to(&DataType::Float64);
    matches!(number, Ok(ScalarValue::Float64(Some(0.0))))
}

/// The operands of a division. Where the session wants to hear of zeros, the divisor is looked at, unless it is a
/// number other than zero.
pub(super) fn watched_divisor(mut operands: Vec<Expr>, rule: Rule<'_>) -> Result<Vec<Expr>> {
    if let [dividend, divisor, ..] = operands.as_mut_slice()
        && literal(divisor).is_none_or(is_zero)
    {
        let operand = std::mem::replace(divisor, lit(ScalarValue::Null));
        *divisor = reached::divisor(&rule.truncated, operand, dividend)?;
    }
    Ok(operands)
}

/// The operands of a logarithm, the base in front. They are looked at, unless they are positive numbers.
pub(super) fn watched_logarithm(mut operands: Vec<Expr>, rule: Rule<'_>) -> Result<Vec<Expr>> {
    let has_logarithm = |operand: &Expr| {
        let number = literal(operand).map(|value| value.cast_to(&DataType::Float64));
        matches!(number, Some(Ok(ScalarValue::Float64(Some(number)))) if number > 0.0 && number != 1.0)
    };
    let base = match operands.as_slice() {
        [base, _] if !has_logarithm(base) => reached::copy(base)?,
        _ => None,
    };
    let last = operands.len() - 1;
    for (at, operand) in operands.iter_mut().enumerate() {
        let base = base.clone().filter(|_| at == last && last > 0);
        if base.is_some() || !has_logarithm(operand) {
            let taken = std::mem::replace(operand, lit(ScalarValue::Null));
            *operand = rule.truncated.logarithm(taken, base);
        }
    }
    Ok(operands)
}

/// Operands as numbers: a text that may not be one is converted by a function that reports it.
pub(super) fn numbers_of(
    operands: Vec<Expr>,
    kind: NumberKind,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Vec<Expr>> {
    let number_of = |operand: Expr| -> Result<Expr> {
        Ok(match may_be_no_number(&operand, kind, schema)? {
            true => rule.truncated.number_of(kind, operand),
            false => json_of_any(operand, kind.into(), schema, rule)?,
        })
    };
    operands.into_iter().map(number_of).collect()
}

/// Whether an operand is a text, or bytes, and not known to be such a number. A hexadecimal literal is a number.
fn may_be_no_number(operand: &Expr, kind: NumberKind, schema: &DFSchema) -> Result<bool> {
    let ty = type_of(operand, schema)?;
    if is_hybrid(operand) || !matches!(ty, SqlType::Text { .. } | SqlType::Bytes) {
        return Ok(false);
    }
    Ok(match literal(operand) {
        Some(value) => compare::text_of(value, &ty).is_some_and(|text| !kind.is_whole(&text)),
        None => true,
    })
}
