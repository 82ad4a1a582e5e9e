//! Comparisons by MySQL's rules ("Type Conversion in Expression Evaluation" of the manual).
//!
//! Both operands go to one [`Domain`]: sort keys of a collation, bytes, an exact number type, doubles, dates, points in
//! time or times. A literal compared with a column is converted to the column's own type. It may lie between two values
//! of that type (`int < 5.5` is `int <= 5`) or outside of all of them. So it becomes keys of indexes, and nothing is
//! rounded:
//!
//! ```text
//!   bigint = '97716021308405775'      as integers: as doubles, which have 53 bits, its neighbours were equal to it
//!   bigint < '97716021308405774.5'    bigint <= 97716021308405774
//!   bigint = '1bad'                   bigint = 1, and a warning, or an error where a strict mode changes rows by it
//!   bigint = varchar                  two columns: digit by digit, too
//! ```
//!
//! MySQL compares two columns of the last kind as doubles, except where it looks the text up in an index of the
//! numbers. We have one answer for all plans, and no number becomes equal to its neighbours.
//!
//! A quotient has more decimals than it shows (`functions/arithmetic.rs`). It is compared as what it shows.

use std::borrow::Cow;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator, binary_expr, lit};
use sheaf_types::Collation;
use sheaf_types::number::{
    self, Floor, double_floor, double_to_decimal, floor_of, power_of_ten, text_floor,
};
use sheaf_types::temporal::{self, DAY, MAX_TIME, MAX_TIME_NUMBER};

use super::choose::as_shown;
use super::once::{computed_once, is_small};
use super::{
    Purpose, Rule, Texts, cast, field_of, fold, is_hybrid, is_literal_of_bytes, literal,
    number_of_hybrid, number_of_moment, operands, reached, type_of, typed_literal,
};
use crate::functions::collation::collation_key;
use crate::functions::control::microseconds;
use crate::functions::truncated::{MomentKind, NumberKind};
use crate::functions::types::{
    Coercibility, MAX_PRECISION, SqlType, common_collation, field,
    is_literal_of_bytes as is_literal_of_bytes_field,
};
use crate::functions::{EvaluationError, call};

/// Where two operands are compared.
#[derive(Clone, Debug, PartialEq)]
enum Domain {
    /// Sort keys.
    Keys(Collation),
    Bytes,
    /// Values of one Arrow type for which arrow's comparison is MySQL's.
    Values(DataType),
    /// Exact numbers of so many decimals, and the [places](Place) of texts among them.
    Places(u8),
    Double,
    Date,
    DateTime,
    Time,
}

/// The domain in which values of two types are compared.
fn domain(
    left: &SqlType,
    right: &SqlType,
    left_type: &DataType,
    right_type: &DataType,
) -> Result<Domain> {
    use SqlType::{Bytes, Date, DateTime, Time};
    Ok(match (left, right) {
        (left, right) if left.is_text() && right.is_text() => {
            Domain::Keys(common_collation(&[left.clone(), right.clone()], "=")?.0)
        }
        (left, right) if left.is_string() && right.is_string() => Domain::Bytes,
        (Date, Date) => Domain::Date,
        (Time { .. }, Time { .. }) => Domain::Time,
        (Time { .. }, other) | (other, Time { .. }) if other.is_string() => Domain::Time,
        (Date | DateTime { .. }, other) | (other, Date | DateTime { .. })
            if other.is_temporal() || other.is_string() =>
        {
            Domain::DateTime
        }
        (left, right) if left.is_exact_number() && right.is_exact_number() => {
            Domain::Values(common_number(left, right, left_type, right_type))
        }
        (Bytes, _) | (_, Bytes) => Domain::Double,
        (number, SqlType::Text { .. }) | (SqlType::Text { .. }, number)
            if number.is_exact_number() && has_places(number) =>
        {
            Domain::Places(number.decimal_digits().1)
        }
        _ => Domain::Double,
    })
}

/// Whether there is a DECIMAL with a digit more, for what lies between two numbers.
fn has_places(number: &SqlType) -> bool {
    let (whole, decimals) = number.decimal_digits();
    whole + decimals < MAX_PRECISION
}

/// The narrowest Arrow type that holds the values of two exact types.
fn common_number(
    left: &SqlType,
    right: &SqlType,
    left_type: &DataType,
    right_type: &DataType,
) -> DataType {
    if left_type == right_type {
        return left_type.clone();
    }
    if left_type.is_integer() && right_type.is_integer() {
        let wider = if left_type.primitive_width() >= right_type.primitive_width() {
            left_type
        } else {
            right_type
        };
        if left_type.is_signed_integer() == right_type.is_signed_integer() {
            return wider.clone();
        }
        if *left_type != DataType::UInt64 && *right_type != DataType::UInt64 {
            return DataType::Int64;
        }
    }
    let ((left_digits, left_scale), (right_digits, right_scale)) =
        (left.decimal_digits(), right.decimal_digits());
    let scale = left_scale.max(right_scale);
    let precision = left_digits
        .max(right_digits)
        .saturating_add(scale)
        .min(MAX_PRECISION);
    DataType::Decimal128(precision.max(scale), scale as i8)
}

/// An operand in its domain.
fn convert(expr: Expr, to: &Domain, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let from = field_of(&expr, schema)?;
    let fsp = || lit(6i64);
    // What a constant is made into is noted where it is compared.
    let is_text = matches!(SqlType::of(&from), SqlType::Text { .. } | SqlType::Bytes);
    let is_watched = rule.watches() && literal(&expr).is_none() && is_text;
    let converted = match to {
        Domain::Places(decimals) if is_watched && SqlType::of(&from).is_text() => {
            return Ok(rule.truncated.number_of(NumberKind::Place(*decimals), expr));
        }
        Domain::Double if is_watched => {
            return Ok(rule.truncated.number_of(NumberKind::Double, expr));
        }
        Domain::DateTime if is_watched => {
            let text = rule.truncated.moment(MomentKind::PartialDateTime, expr);
            call("$moment", vec![text])
        }
        Domain::Time if is_watched => call(
            "$clock",
            vec![rule.truncated.moment(MomentKind::TimeOrDate, expr)],
        ),
        Domain::Keys(collation) => return Ok(collation_key(expr, *collation)),
        Domain::Bytes if from.data_type() == &DataType::Binary => expr,
        Domain::Bytes => call("$cast_binary", vec![expr]),
        Domain::Values(data_type) if from.data_type() == data_type => expr,
        Domain::Values(data_type) => cast(expr, data_type.clone()),
        Domain::Places(decimals) if SqlType::of(&from).is_text() => {
            call("$text_place", vec![expr, lit(i64::from(*decimals))])
        }
        Domain::Places(decimals) => cast(
            expr,
            DataType::Decimal128(MAX_PRECISION, *decimals as i8 + 1),
        ),
        Domain::Double if from.data_type() == &DataType::Float64 => expr,
        Domain::Double => call("$cast_double", vec![expr]),
        Domain::Date if from.data_type() == &DataType::Date32 => expr,
        Domain::Date => call("$cast_date", vec![expr]),
        Domain::DateTime => match from.data_type() {
            DataType::Timestamp(..) => expr,
            DataType::Date32 => cast(expr, microseconds()),
            DataType::Duration(_) => rule.of_today(expr, 6),
            _ if SqlType::of(&from).is_string() => call("$moment", vec![expr]),
            _ => call("$cast_datetime", vec![expr, fsp()]),
        },
        Domain::Time if matches!(from.data_type(), DataType::Duration(_)) => expr,
        Domain::Time if SqlType::of(&from).is_string() => call("$clock", vec![expr]),
        Domain::Time => call("$cast_time", vec![expr, fsp()]),
    };
    Ok(fold(converted, schema))
}

pub(super) fn unknown() -> Expr {
    lit(ScalarValue::Boolean(None))
}

/// What becomes of a constant text that is no date, compared with dates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NoDate {
    /// Error 1525.
    Refused,
    /// It is less than every date, and there is a warning: in IN, BETWEEN and CASE.
    BelowAll,
}

/// `left op right`, typed. `op` is a comparison or `IsNotDistinctFrom`.
pub(super) fn comparison(
    op: Operator,
    left: Expr,
    right: Expr,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Expr> {
    compare(op, left, right, (schema, rule), NoDate::Refused)
}

/// A YEAR as a number; any other value as it is.
pub(super) fn number_of_year(value: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(match type_of(&value, schema)? {
        SqlType::Year => fold(cast(value, DataType::Int64), schema),
        _ => value,
    })
}

/// The comparison of CASE with one of its values. A YEAR is a number there: no constant becomes a year.
pub(super) fn case_value(args: Vec<Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let [left, right] = operands(args)?;
    let (left, right) = (
        number_of_year(left, schema)?,
        number_of_year(right, schema)?,
    );
    let surroundings = (schema, rule);
    compare(Operator::Eq, left, right, surroundings, NoDate::BelowAll)
}

pub(super) fn compare(
    op: Operator,
    left: Expr,
    right: Expr,
    (schema, rule): (&DFSchema, Rule<'_>),
    no_date: NoDate,
) -> Result<Expr> {
    let before = match rule.watches() && op != Operator::IsNotDistinctFrom {
        true => reached::is_there(&left)?,
        false => Vec::new(),
    };
    let sides = Sides {
        schema,
        rule,
        no_date,
        are_swapped: false,
        before: &before,
    };
    let mut found = [Vec::new(), Vec::new()];
    let compared = compare_sides(op, left, right, sides, &mut found)?;
    let [of_first, of_second] = found;
    let compared = rule.with_found(compared, of_first, &[]);
    Ok(rule.with_found(compared, of_second, &before))
}

/// How two operands are compared.
#[derive(Clone, Copy)]
struct Sides<'a> {
    schema: &'a DFSchema,
    rule: Rule<'a>,
    no_date: NoDate,
    /// The first one is on the right.
    are_swapped: bool,
    /// The second one is computed where these are true.
    before: &'a [Expr],
}

/// What was found of constants that are compared: of the one that is computed first, and of the other.
type FoundOfSides = [Vec<EvaluationError>; 2];

impl Sides<'_> {
    fn swapped(self) -> Self {
        Sides {
            are_swapped: !self.are_swapped,
            ..self
        }
    }

    /// What was found of the left one, and of the right one.
    fn found(self, found: &mut FoundOfSides) -> [&mut Vec<EvaluationError>; 2] {
        let [first, second] = found;
        match self.are_swapped {
            true => [second, first],
            false => [first, second],
        }
    }

    /// The operand that is computed second.
    fn after_the_first(self, second: Expr) -> Result<Expr> {
        match self.before.is_empty() || !reached::takes_conditions(&second) {
            true => Ok(second),
            false => reached::with_conditions(second, self.before),
        }
    }
}

fn compare_sides(
    op: Operator,
    left: Expr,
    right: Expr,
    sides: Sides<'_>,
    found: &mut FoundOfSides,
) -> Result<Expr> {
    // The literal on the right.
    if literal(&left).is_some()
        && literal(&right).is_none()
        && let Some(swapped) = op.swap()
    {
        return compare_sides(swapped, right, left, sides.swapped(), found);
    }
    let Sides { schema, rule, .. } = sides;
    let (left, right) = (Operand::new(left, schema)?, Operand::new(right, schema)?);
    let is_constant = |operand: &Operand| literal(&operand.expr).is_some();
    let are_constant = is_constant(&left) && is_constant(&right);
    // Of two constants the text is the literal, so that it is compared digit by digit, as with a column.
    let are_number_and_text = |one: &Operand, other: &Operand| {
        are_constant && one.ty.is_exact_number() && other.ty.is_text()
    };
    if are_number_and_text(&right, &left)
        && let Some(swapped) = op.swap()
    {
        return compare_sides(swapped, right.expr, left.expr, sides.swapped(), found);
    }
    let is_number = |ty: &SqlType| ty.is_exact_number() || ty.is_float();
    if is_hybrid(&left.expr) && is_number(&right.ty) {
        let number = number_of_hybrid(left.expr);
        return compare_sides(op, number, right.expr, sides, found);
    }
    if is_hybrid(&right.expr) && is_number(&left.ty) {
        let number = number_of_hybrid(right.expr);
        return compare_sides(op, left.expr, number, sides, found);
    }
    if is_number(&right.ty) && left.ty.is_text() {
        let number = number_of_moment(left.expr.clone(), schema)?;
        if number != left.expr {
            return compare_sides(op, number, right.expr, sides, found);
        }
    }
    if is_number(&left.ty) && right.ty.is_text() {
        let number = number_of_moment(right.expr.clone(), schema)?;
        if number != right.expr {
            return compare_sides(op, left.expr, number, sides, found);
        }
    }
    if let Some(text) = text_beside(&left.ty, &right.expr, &rule) {
        return compare_sides(op, left.expr, text, sides, found);
    }
    if let Some(text) = text_beside(&right.ty, &left.expr, &rule) {
        return compare_sides(op, text, right.expr, sides, found);
    }
    if is_made_of_literals(&right) && is_strong_text(&left.ty) {
        let text = call("$cast_char", vec![right.expr]);
        return compare_sides(op, left.expr, text, sides, found);
    }
    if is_made_of_literals(&left) && is_strong_text(&right.ty) {
        let text = call("$cast_char", vec![left.expr]);
        return compare_sides(op, text, right.expr, sides, found);
    }
    let is_moment = |ty: &SqlType| matches!(ty, SqlType::Date | SqlType::DateTime { .. });
    let is_year_of = |year: &Operand, moment: &Operand| {
        year.ty == SqlType::Year && is_moment(&moment.ty) && literal(&moment.expr).is_none()
    };
    if is_year_of(&left, &right) {
        let (year, moment) = as_digits(left.expr, right.expr, right.ty == SqlType::Date);
        return compare_sides(op, year, moment, sides, found);
    }
    if is_year_of(&right, &left) {
        let (year, moment) = as_digits(right.expr, left.expr, left.ty == SqlType::Date);
        return compare_sides(op, moment, year, sides, found);
    }
    if left.ty == SqlType::Null || right.ty == SqlType::Null {
        return Ok(match op {
            Operator::IsNotDistinctFrom if right.ty == SqlType::Null => fold_is_null(left.expr),
            Operator::IsNotDistinctFrom => fold_is_null(right.expr),
            // The first one is computed before it is known that nothing is equal to NULL.
            _ => match if sides.are_swapped {
                right.expr
            } else {
                left.expr
            } {
                first if has_calls(&first) => call("$beside", vec![unknown(), first]),
                _ => unknown(),
            },
        });
    }
    let [of_left, of_right] = sides.found(found);
    left.note_text(&right.ty, rule, of_left)?;
    right.note_text(&left.ty, rule, of_right)?;
    if let Some(value) = literal(&right.expr)
        && !value.is_null()
        && (literal(&left.expr).is_none() || are_number_and_text(&left, &right))
        && let Some(exact) = with_literal(op, &left, (value, &right.ty), sides, of_right)?
    {
        return Ok(exact);
    }
    let to = domain(
        &left.ty,
        &right.ty,
        left.field.data_type(),
        right.field.data_type(),
    )?;
    let (left, right) = (
        convert(left.expr, &to, schema, rule)?,
        convert(right.expr, &to, schema, rule)?,
    );
    let (left, right) = match sides.are_swapped {
        true => (sides.after_the_first(left)?, right),
        false => (left, sides.after_the_first(right)?),
    };
    Ok(binary_expr(left, op, right))
}

/// The text that a literal of bytes is beside a text that is no literal: a column's collation is stronger than the
/// literal's, which is that of bytes. So is it with parameters that come as bytes. `None` if it is no such literal, or
/// no UTF-8.
fn text_beside(compared_with: &SqlType, other: &Expr, texts: &Texts) -> Option<Expr> {
    let collation = match compared_with {
        SqlType::Text {
            collation,
            coercibility: Coercibility::Explicit | Coercibility::Implicit,
        }
        | SqlType::Enum { collation } => collation,
        _ => return None,
    };
    match literal(other) {
        Some(ScalarValue::Binary(Some(bytes)))
            if is_literal_of_bytes(other) || texts.are_parameters =>
        {
            let text = std::str::from_utf8(bytes).ok()?;
            let field = field::collated_text(*collation, Coercibility::Coercible);
            let value = ScalarValue::Utf8View(Some(text.to_owned()));
            Some(typed_literal(value, &field))
        }
        _ => None,
    }
}

/// Bytes of a query, say, that has them from literals: a text beside a stronger one, as a literal is.
fn is_made_of_literals(operand: &Operand) -> bool {
    operand.ty == SqlType::Bytes
        && literal(&operand.expr).is_none()
        && is_literal_of_bytes_field(&operand.field)
}

fn is_strong_text(ty: &SqlType) -> bool {
    match ty {
        SqlType::Text { coercibility, .. } => *coercibility != Coercibility::Coercible,
        other => other.is_text(),
    }
}

/// The operands of a function that compares the first one, a text or not, with the others.
pub(super) fn texts_beside(
    mut operands: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Vec<Expr>> {
    if let Some((first, others)) = operands.split_first_mut()
        && (rule.are_parameters || others.iter().any(is_literal_of_bytes))
    {
        let ty = type_of(first, schema)?;
        for other in others {
            if let Some(text) = text_beside(&ty, other, &rule) {
                *other = text;
            }
        }
    }
    Ok(operands)
}

/// What is compared, as it is shown, and its type.
pub(super) struct Operand {
    pub(super) expr: Expr,
    pub(super) field: FieldRef,
    pub(super) ty: SqlType,
}

impl Operand {
    pub(super) fn new(expr: Expr, schema: &DFSchema) -> Result<Operand> {
        let field = field_of(&expr, schema)?;
        let ty = SqlType::of(&field);
        match ty {
            SqlType::Decimal {
                scale, decimals, ..
            } if decimals < scale => {
                let expr = as_shown(expr, schema)?;
                let field = field_of(&expr, schema)?;
                let ty = SqlType::of(&field);
                Ok(Operand { expr, field, ty })
            }
            ty => Ok(Operand { expr, field, ty }),
        }
    }

    /// Notes a constant text that is compared with numbers and is none.
    fn note_text(
        &self,
        compared_with: &SqlType,
        rule: Rule<'_>,
        found: &mut Vec<EvaluationError>,
    ) -> Result<()> {
        let kind = match compared_with {
            SqlType::Decimal { .. } => NumberKind::Decimal,
            other if other.is_exact_number() || other.is_float() => NumberKind::Double,
            _ => return Ok(()),
        };
        match literal(&self.expr).and_then(|value| text_of(value, &self.ty)) {
            Some(text) => rule.note_constant_text(kind, &text, found),
            None => Ok(()),
        }
    }
}

/// The text of a literal string. One of bytes is ASCII as far as it is a number.
pub(super) fn text_of<'a>(value: &'a ScalarValue, ty: &SqlType) -> Option<Cow<'a, str>> {
    match value {
        ScalarValue::Binary(Some(bytes)) => Some(String::from_utf8_lossy(bytes)),
        _ if ty.is_text() => value.try_as_str().flatten().map(Cow::Borrowed),
        _ => None,
    }
}

/// Whether two values are equal, or might be if it was known what NULL stands for.
pub(super) fn may_be_equal(args: Vec<Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    // Joins are by it: what notes something is no key of one.
    let rule = match rule.watches() {
        true => rule.for_purpose(Purpose::Copy),
        false => rule,
    };
    let make = |sides: Vec<Expr>, _: Vec<Expr>, schema: &DFSchema| {
        let [left, right] = operands(sides)?;
        may_be_equal_sides(left, right, schema, rule)
    };
    computed_once("equal", (args, Vec::new()), schema, make)
}

fn may_be_equal_sides(left: Expr, right: Expr, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let equal = comparison(Operator::Eq, left, right, schema, rule)?;
    let Expr::BinaryExpr(BinaryExpr {
        left,
        op: Operator::Eq,
        right,
    }) = &equal
    else {
        return Ok(equal.is_not_false());
    };
    let mut may_be_equal = equal.clone();
    for operand in [left, right] {
        if operand.nullable(schema)? {
            may_be_equal = may_be_equal.or(operand.as_ref().clone().is_null());
        }
    }
    Ok(may_be_equal)
}

/// `(a, b) < (c, d)` and its relatives: `a < c OR a = c AND b < d`. The last position decides about equality.
pub(super) fn rows(
    op: Operator,
    args: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Expr> {
    let strict = match op {
        Operator::Lt | Operator::LtEq => Operator::Lt,
        _ => Operator::Gt,
    };
    let make = |mut sides: Vec<Expr>, _: Vec<Expr>, schema: &DFSchema| {
        let compare = |op, a, b| comparison(op, a, b, schema, rule);
        let (Some(b), Some(a)) = (sides.pop(), sides.pop()) else {
            return internal_err!("rows without values");
        };
        let mut result = compare(op, a, b)?;
        while let (Some(b), Some(a)) = (sides.pop(), sides.pop()) {
            // What there is to note of both is noted by the first comparison.
            let silent = rule.for_purpose(Purpose::Copy);
            let equal = match (rule.watches(), reached::copy(&a)?, reached::copy(&b)?) {
                (true, Some(a), Some(b)) => comparison(Operator::Eq, a, b, schema, silent)?,
                _ => compare(Operator::Eq, a.clone(), b.clone())?,
            };
            let equal = rule.connected(equal, Operator::And, result)?;
            result = rule.connected(compare(strict, a, b)?, Operator::Or, equal)?;
        }
        Ok(result)
    };
    computed_once("row", (args, Vec::new()), schema, make)
}

/// `x BETWEEN low AND high`: all three are compared as one type.
///
/// A pair alone would be compared as another one only if x is a string. Between a string and a number it is a number,
/// between a string and a date a point in time.
pub(super) fn between(args: Vec<Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let [x, low, high] = operands(texts_beside(args, schema, rule)?)?;
    let make = |values: Vec<Expr>, bounds: Vec<Expr>, schema: &DFSchema| {
        let ([x], [low, high]) = (operands(values)?, operands(bounds)?);
        between_bounds([x, low, high], schema, rule)
    };
    computed_once("between", (vec![x], vec![low, high]), schema, make)
}

fn between_bounds(
    [mut x, low, high]: [Expr; 3],
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Expr> {
    let types = [
        type_of(&x, schema)?,
        type_of(&low, schema)?,
        type_of(&high, schema)?,
    ];
    if types.iter().all(SqlType::is_string) {
        let to = match types.iter().all(SqlType::is_text) {
            true => Domain::Keys(common_collation(&types, "between")?.0),
            false => Domain::Bytes,
        };
        let convert = |operand: Expr| convert(operand, &to, schema, rule);
        let (x, low, high) = (convert(x)?, convert(low)?, convert(high)?);
        // The literal on the right.
        let ordered = |op: Operator, x: Expr, bound: Expr| match op.swap() {
            Some(swapped) if literal(&x).is_some() => binary_expr(bound, swapped, x),
            _ => binary_expr(x, op, bound),
        };
        let from = ordered(Operator::GtEq, x.clone(), low);
        return Ok(from.and(ordered(Operator::LtEq, x, high)));
    }
    let [x_type, low_type, high_type] = &types;
    if x_type.is_string() && low_type.is_string() != high_type.is_string() {
        let other = match low_type.is_string() {
            true => high_type,
            false => low_type,
        };
        x = match other {
            SqlType::Date | SqlType::DateTime { .. } => {
                convert(x, &Domain::DateTime, schema, rule)?
            }
            SqlType::Time { .. } => convert(x, &Domain::Time, schema, rule)?,
            other if other.is_exact_number() || other.is_float() => {
                convert(x, &Domain::Double, schema, rule)?
            }
            _ => x,
        };
    }
    let bound = |op: Operator, x: Expr, bound: Expr| {
        compare(op, x, bound, (schema, rule), NoDate::BelowAll)
    };
    // What there is to note of x is noted once, and both bounds are computed wherever there is an x.
    let again = match rule.watches() {
        true => reached::copy(&x)?.unwrap_or_else(|| x.clone()),
        false => x.clone(),
    };
    let before = match rule.watches() {
        true => reached::is_there(&x)?,
        false => Vec::new(),
    };
    let from = bound(Operator::GtEq, x, low)?;
    let to = without_repeated(bound(Operator::LtEq, again, high)?, &from)?;
    Ok(match reached::takes_conditions(&to) {
        true => call("$both", vec![from, reached::with_conditions(to, &before)?]),
        false if reached::takes_conditions(&from) => rule.all_computed(from, Operator::And, to)?,
        false => from.and(to),
    })
}

/// A comparison whose left side is that of the one before, as what is noted once.
fn without_repeated(comparison: Expr, before: &Expr) -> Result<Expr> {
    Ok(match (comparison, before) {
        (Expr::BinaryExpr(mut comparison), Expr::BinaryExpr(before))
            if comparison.left == before.left && reached::takes_conditions(&before.left) =>
        {
            if let Some(left) = reached::copy(&comparison.left)? {
                *comparison.left = left;
            }
            Expr::BinaryExpr(comparison)
        }
        (comparison, _) => comparison,
    })
}

fn fold_is_null(expr: Expr) -> Expr {
    match literal(&expr) {
        Some(value) => lit(value.is_null()),
        None => expr.is_null(),
    }
}

/// A literal's place among the values of a type: the largest value that is not above it.
pub(super) enum Place {
    /// The value itself.
    At(ScalarValue),
    /// Between this value and the next.
    Above(ScalarValue),
    BelowAll,
    AboveAll,
}

/// `expr op place`, exactly.
fn compare_with_place(op: Operator, expr: &Expr, place: Place) -> Expr {
    let compare = |op: Operator, value: ScalarValue| {
        binary_expr(expr.clone(), op, Expr::Literal(value, None))
    };
    // True and false, but unknown for NULL.
    let constant = |value: bool| match (op, value) {
        _ if has_calls(expr) => {
            let name = if value { "$always" } else { "$never" };
            let known = call(name, vec![expr.clone()]);
            match op {
                Operator::IsNotDistinctFrom => known.is_true(),
                _ => known,
            }
        }
        (Operator::IsNotDistinctFrom, _) => lit(false),
        (_, true) => expr.clone().is_not_null().or(unknown()),
        (_, false) => expr.clone().is_null().and(unknown()),
    };
    match (place, op) {
        (Place::At(value), op) => compare(op, value),
        (Place::Above(floor), Operator::Lt | Operator::LtEq) => compare(Operator::LtEq, floor),
        (Place::Above(floor), Operator::Gt | Operator::GtEq) => compare(Operator::Gt, floor),
        (Place::AboveAll, Operator::Lt | Operator::LtEq)
        | (Place::BelowAll, Operator::Gt | Operator::GtEq) => constant(true),
        (_, Operator::NotEq) => constant(true),
        _ => constant(false),
    }
}

/// Whether a value is more than columns and constants: to compute it may fail, or note something, even where it is
/// known what it is compared as.
pub(super) fn has_calls(expr: &Expr) -> bool {
    let is_call = |expr: &Expr| Ok(matches!(expr, Expr::ScalarFunction(_)));
    expr.exists(is_call).unwrap_or(true)
}

/// What a value is equal to nowhere: false, and unknown of NULL.
pub(super) fn never_equal(expr: &Expr) -> Expr {
    compare_with_place(Operator::Eq, expr, Place::BelowAll)
}

/// A comparison with a literal, in the type of the other operand. `None` if that is not possible without changing
/// the outcome.
fn with_literal(
    op: Operator,
    left: &Operand,
    (value, value_type): (&ScalarValue, &SqlType),
    Sides { rule, no_date, .. }: Sides<'_>,
    found: &mut Vec<EvaluationError>,
) -> Result<Option<Expr>> {
    let place = match &left.ty {
        SqlType::Integer { .. } | SqlType::Year | SqlType::Boolean | SqlType::Decimal { .. } => {
            number_place(left, value, value_type)
        }
        SqlType::Date | SqlType::DateTime { .. } => {
            let is_date = left.ty == SqlType::Date;
            let name = if is_date { "DATE" } else { "DATETIME" };
            match point_in_time(value, value_type) {
                Moment::At(micros) => {
                    if let Some(text) = text_of(value, value_type)
                        && temporal::read_datetime(&text).is_ok_and(|read| read.trailing)
                    {
                        note_temporal_text(name, &text, &left.expr, (rule, found))?;
                    }
                    Some(place_of_moment(micros, is_date))
                }
                Moment::Unknown => {
                    refuse_number_that_is_none(name, value, &left.expr, (rule, found))?;
                    let is_number = value_type.is_exact_number() || value_type.is_float();
                    (is_number && no_date == NoDate::BelowAll).then_some(Place::BelowAll)
                }
                Moment::None(text) => {
                    let begins = temporal::datetime_of_text(temporal_prefix(text));
                    let is_refused = no_date == NoDate::Refused && begins.is_none();
                    match is_refused && !rule.truncated.is_refused() {
                        // MySQL reads a parameter when it compares, and says nothing of it.
                        true if rule.are_parameters => {}
                        true => return Err(EvaluationError::wrong_value(name, text).into()),
                        false => note_temporal_text(name, text, &left.expr, (rule, found))?,
                    }
                    Some(match begins {
                        Some(micros) => place_of_moment(micros, is_date),
                        None => Place::BelowAll,
                    })
                }
            }
        }
        SqlType::Time { .. } => place_of_time((value, value_type), &left.expr, (rule, found))?,
        SqlType::Double if value_type.is_exact_number() => double_of(value).map(Place::At),
        _ => None,
    };
    Ok(place.map(|place| compare_with_place(op, &left.expr, place)))
}

/// An exact number as the nearest double.
fn double_of(value: &ScalarValue) -> Option<ScalarValue> {
    match value {
        ScalarValue::Decimal128(Some(unscaled), _, scale) => {
            let scale = u8::try_from(*scale).ok()?;
            let double = number::decimal_to_double(*unscaled, scale);
            Some(ScalarValue::Float64(Some(double)))
        }
        _ => value.cast_to(&DataType::Float64).ok(),
    }
}

/// Notes a constant that is no date or time, as what it is compared with.
fn note_temporal_text(
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
fn temporal_prefix(text: &str) -> &str {
    let is_part = |c: char| c.is_ascii_digit() || c.is_ascii_punctuation() || c == ' ';
    let end = text.find(|c| !is_part(c) && c != 'T').unwrap_or(text.len());
    &text[..end]
}

pub(super) fn place_of_moment(micros: i64, is_date: bool) -> Place {
    if !is_date {
        return Place::At(ScalarValue::TimestampMicrosecond(Some(micros), None));
    }
    let days = ScalarValue::Date32(Some(micros.div_euclid(DAY) as i32));
    match micros.rem_euclid(DAY) {
        0 => Place::At(days),
        _ => Place::Above(days),
    }
}

/// Refuses a whole number that spells no date or time, as what it is compared with, where a strict statement changes
/// rows. A query says nothing of it, as MariaDB.
fn refuse_number_that_is_none(
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

/// What is longer than any time is on one side of all. A text that is no time is 00:00:00, as in MariaDB. A number that
/// is none is compared as a number.
fn place_of_time(
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

/// The date that the whole part of a number spells, if it has no more digits than a date: what is behind the point is
/// lost.
fn date_of_fraction(value: &ScalarValue) -> Option<i64> {
    const DATES_BELOW: f64 = 1e8;
    let number = match value {
        ScalarValue::Decimal128(Some(unscaled), _, scale) => {
            number::decimal_to_double(*unscaled, u8::try_from(*scale).ok()?)
        }
        ScalarValue::Float64(Some(number)) => *number,
        _ => return None,
    };
    let is_date = (1.0..DATES_BELOW).contains(&number);
    temporal::datetime_of_number(number.trunc() as i64).filter(|_| is_date)
}

fn integer_value(value: &ScalarValue) -> Option<i64> {
    if let ScalarValue::Int64(number) = value {
        return *number;
    }
    match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(Some(number))) if value.data_type().is_integer() => Some(number),
        _ => None,
    }
}

/// What a column of exact numbers is compared with instead of a number, where the number is one of its values.
pub fn number_of_column(column: &Field, number: &ScalarValue) -> Option<ScalarValue> {
    let decimals = match SqlType::of(column) {
        SqlType::Integer { .. } => 0,
        SqlType::Decimal {
            scale, decimals, ..
        } if decimals >= scale => scale,
        _ => return None,
    };
    let floor = match number {
        ScalarValue::Int64(Some(number)) => floor_of(i128::from(*number), 0, decimals),
        ScalarValue::UInt64(Some(number)) => floor_of(i128::from(*number), 0, decimals),
        ScalarValue::Decimal128(Some(unscaled), _, scale) => {
            floor_of(*unscaled, u8::try_from(*scale).ok()?, decimals)
        }
        _ => return None,
    };
    match place_among(floor, column.data_type())? {
        Place::At(value) => Some(value),
        _ => None,
    }
}

/// Where a literal stands among the values of an exact type.
pub(super) fn number_place(
    left: &Operand,
    value: &ScalarValue,
    value_type: &SqlType,
) -> Option<Place> {
    let data_type = left.field.data_type();
    let decimals = match data_type {
        DataType::Decimal128(_, scale) => u8::try_from(*scale).ok()?,
        _ => 0,
    };
    if left.ty == SqlType::Year
        && let Some(year) = year_of_moment(value)
    {
        return place_among(Floor::At(i128::from(year)), data_type);
    }
    if left.ty == SqlType::Year
        && is_column(&left.expr)
        && let Some(year) = year_of_constant(value, value_type)
    {
        return place_among(Floor::At(i128::from(year)), data_type);
    }
    let floor = floor_of_constant(left, (value, value_type), decimals)?;
    place_among(floor, data_type)
}

/// Where a literal stands among numbers of so many decimals.
fn floor_of_constant(
    left: &Operand,
    (value, value_type): (&ScalarValue, &SqlType),
    decimals: u8,
) -> Option<Floor> {
    let is_integer = left.field.data_type().is_integer();
    Some(match value {
        ScalarValue::Decimal128(Some(unscaled), _, scale) => {
            floor_of(*unscaled, u8::try_from(*scale).ok()?, decimals)
        }
        ScalarValue::UInt64(Some(number)) => floor_of(i128::from(*number), 0, decimals),
        ScalarValue::Float64(Some(number)) if is_column(&left.expr) || is_short(*number) => {
            double_floor(*number, decimals, is_integer)?
        }
        _ => match text_of(value, value_type) {
            Some(text) => text_floor(&text, decimals),
            None => floor_of(i128::from(integer_value(value)?), 0, decimals),
        },
    })
}

/// The year of a constant date or time.
fn year_of_moment(value: &ScalarValue) -> Option<i32> {
    let days = match value {
        ScalarValue::Date32(Some(days)) => *days,
        ScalarValue::TimestampMicrosecond(Some(micros), _) => micros.div_euclid(DAY) as i32,
        _ => return None,
    };
    Some(temporal::civil_from_days(days).0)
}

/// A YEAR beside a date or time, as the numbers of their digits: a year is before all of its days, and equal to none.
///
/// ```text
///   y = DATE '2001-02-03', which is no constant    20010000 = 20010203
/// ```
fn as_digits(year: Expr, moment: Expr, is_date: bool) -> (Expr, Expr) {
    let digits = if is_date { 10_000_i64 } else { 10_000_000_000 };
    let year = call("$multiply", vec![cast(year, DataType::Int64), lit(digits)]);
    (year, call("$cast_signed", vec![moment]))
}

/// The year that a constant is in a YEAR column, which it is converted to: 1 and '1.4' are 2001, 2001.5 is 2002, '0' is
/// 2000, 0 is none. A double loses its fraction. `None`: no year, so it is compared as the number that it is.
fn year_of_constant(value: &ScalarValue, value_type: &SqlType) -> Option<u16> {
    let half_up = |tenths: Floor| match tenths {
        Floor::At(tenths) | Floor::Above(tenths) if tenths >= 0 => Some((tenths + 5) / 10),
        _ => None,
    };
    let number = match value {
        ScalarValue::Decimal128(Some(unscaled), _, scale) => {
            half_up(floor_of(*unscaled, u8::try_from(*scale).ok()?, 1))?
        }
        ScalarValue::Float64(Some(number)) if *number >= 0.0 => number.trunc() as i128,
        ScalarValue::Float64(_) => return None,
        _ => match text_of(value, value_type) {
            Some(text) => match half_up(text_floor(&text, 1))? {
                0 if is_zero_of_century(&text) => return Some(2000),
                year => year,
            },
            None => i128::from(integer_value(value)?),
        },
    };
    temporal::year_of_number(i64::try_from(number).ok()?)
}

/// Whether a text that is zero is the year 2000, as '0' and '00:00' are. '0000' is the year 0, and so is what has no
/// digits.
fn is_zero_of_century(text: &str) -> bool {
    let digits = text.trim_start().trim_start_matches(['-', '+']);
    text.len() != 4 && digits.starts_with(|c: char| c.is_ascii_digit())
}

/// What MySQL converts constants to the type of; they are compared with other expressions as doubles.
fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) => true,
        Expr::Alias(alias) => is_column(&alias.expr),
        _ => false,
    }
}

/// Whether a comparison as doubles has the same outcome as an exact one.
fn is_short(number: f64) -> bool {
    const DOUBLE_DIGITS: u8 = 15;
    double_to_decimal(number)
        .is_some_and(|(unscaled, _)| unscaled.abs() < power_of_ten(DOUBLE_DIGITS))
}

/// A number among the values of an exact type.
fn place_among(floor: Floor, data_type: &DataType) -> Option<Place> {
    let (lowest, highest): (i128, i128) = match data_type {
        DataType::Int8 => (i128::from(i8::MIN), i128::from(i8::MAX)),
        DataType::Int16 => (i128::from(i16::MIN), i128::from(i16::MAX)),
        DataType::Int32 => (i128::from(i32::MIN), i128::from(i32::MAX)),
        DataType::Int64 => (i128::from(i64::MIN), i128::from(i64::MAX)),
        DataType::UInt8 => (0, i128::from(u8::MAX)),
        DataType::UInt16 => (0, i128::from(u16::MAX)),
        DataType::UInt32 => (0, i128::from(u32::MAX)),
        DataType::UInt64 => (0, i128::from(u64::MAX)),
        DataType::Decimal128(precision, _) => {
            let limit = power_of_ten(*precision) - 1;
            (-limit, limit)
        }
        _ => return None,
    };
    let (floor, is_exact) = match floor {
        Floor::At(value) => (value, true),
        Floor::Above(value) => (value, false),
        Floor::BelowAll => return Some(Place::BelowAll),
        Floor::AboveAll => return Some(Place::AboveAll),
    };
    if floor < lowest {
        return Some(Place::BelowAll);
    }
    if floor > highest || floor == highest && !is_exact {
        return Some(Place::AboveAll);
    }
    let value = match data_type {
        DataType::Int8 => ScalarValue::Int8(Some(floor as i8)),
        DataType::Int16 => ScalarValue::Int16(Some(floor as i16)),
        DataType::Int32 => ScalarValue::Int32(Some(floor as i32)),
        DataType::Int64 => ScalarValue::Int64(Some(floor as i64)),
        DataType::UInt8 => ScalarValue::UInt8(Some(floor as u8)),
        DataType::UInt16 => ScalarValue::UInt16(Some(floor as u16)),
        DataType::UInt32 => ScalarValue::UInt32(Some(floor as u32)),
        DataType::UInt64 => ScalarValue::UInt64(Some(floor as u64)),
        DataType::Decimal128(precision, scale) => {
            ScalarValue::Decimal128(Some(floor), *precision, *scale)
        }
        _ => return None,
    };
    Some(match is_exact {
        true => Place::At(value),
        false => Place::Above(value),
    })
}

/// A literal as a point in time.
enum Moment<'a> {
    At(i64),
    /// This text is none.
    None(&'a str),
    /// As numbers, it is compared with the other operand.
    Unknown,
}

fn point_in_time<'a>(value: &'a ScalarValue, ty: &SqlType) -> Moment<'a> {
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
            None => return Moment::None(text),
        },
        _ => match integer_value(value) {
            Some(number) => temporal::datetime_of_number(number),
            None => date_of_fraction(value),
        },
    };
    moment.map_or(Moment::Unknown, Moment::At)
}

/// A text that is compared with several values, all by one collation: that of all of them together, as of the operands
/// of a function. It is left alone where each pair has that collation anyway.
///
/// ```text
///   s IN ('b', t)     with a column t of utf8mb4_bin, 'B' is not 'b'
/// ```
pub(super) fn of_one_collation<'a>(
    value: Expr,
    others: impl ExactSizeIterator<Item = &'a Expr>,
    schema: &DFSchema,
    operation: &str,
) -> Result<Expr> {
    if others.len() < 2 {
        return Ok(value);
    }
    let ty = type_of(&value, schema)?;
    if !ty.is_text() {
        return Ok(value);
    }
    let mut types = vec![ty];
    let mut has_bytes = false;
    for other in others {
        let ty = type_of(other, schema)?;
        // A literal of bytes is a text beside stronger ones.
        has_bytes |= ty == SqlType::Bytes && literal(other).is_none();
        if ty.is_text() && !types.contains(&ty) {
            types.push(ty);
        }
    }
    let (common, coercibility) = common_collation(&types, operation)?;
    if has_bytes && coercibility != Coercibility::Explicit {
        return Ok(fold(call("$cast_binary", vec![value]), schema));
    }
    for other in &types[1..] {
        let pair = [types[0].clone(), other.clone()];
        if common_collation(&pair, operation)?.0 != common {
            return Ok(collated(value, common, schema));
        }
    }
    Ok(value)
}

pub(super) fn collated(value: Expr, collation: Collation, schema: &DFSchema) -> Expr {
    fold(call("$collate", vec![value, lit(collation.name())]), schema)
}

/// A value as a condition.
pub(super) fn truth(value: Expr, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let ty = type_of(&value, schema)?;
    if let Some(constant) = literal(&value) {
        if constant.is_null() {
            return Ok(unknown());
        }
        if let ScalarValue::Boolean(_) = constant {
            return Ok(value);
        }
        let mut found = Vec::new();
        if let Some(text) = text_of(constant, &ty) {
            rule.note_constant_text(NumberKind::Double, &text, &mut found)?;
        }
        let truth = fold(call("$is_not_zero", vec![value]), schema);
        return Ok(rule.with_found(truth, found, &[]));
    }
    Ok(match ty {
        SqlType::Boolean => value,
        SqlType::Null => unknown(),
        // DataFusion would compare each branch of a CASE with zero, and make conditions of all.
        SqlType::Integer { .. } | SqlType::Decimal { .. } | SqlType::Double | SqlType::Year
            if !is_small(&value) =>
        {
            call("$is_not_zero", vec![as_shown(value, schema)?])
        }
        SqlType::Integer { .. } | SqlType::Decimal { .. } | SqlType::Double | SqlType::Year => {
            comparison(Operator::NotEq, value, lit(0i64), schema, rule)?
        }
        SqlType::Text { .. } | SqlType::Bytes if rule.watches() => {
            let number = rule.truncated.number_of(NumberKind::Double, value);
            call("$is_not_zero", vec![number])
        }
        _ => call("$is_not_zero", vec![value]),
    })
}
