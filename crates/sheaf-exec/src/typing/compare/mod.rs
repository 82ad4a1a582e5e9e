//! Comparisons by MySQL's rules ("Type Conversion in Expression Evaluation" of the manual).
//!
//! Both operands go to one [`Domain`](domain::Domain): sort keys of a collation, bytes, an exact number type, doubles,
//! dates, points in time or times. A literal compared with a column is converted to the column's own type. It may lie
//! between two values of that type (`int < 5.5` is `int <= 5`) or outside of all of them. So it becomes keys of
//! indexes, and nothing is rounded:
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

mod collation;
mod domain;
mod moment;
mod operand;
mod place;
mod rows;
mod year;

use arrow::datatypes::Field;
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::{Expr, Operator, binary_expr, lit};
use sheaf_types::{Collation, temporal};

use super::choose::as_shown;
use super::once::is_small;
use super::{
    Rule, field_of, fold, is_hybrid, literal, number_of_hybrid, number_of_moment, operands,
    reached, type_of,
};
use crate::functions::truncated::NumberKind;
use crate::functions::types::{
    CHOSEN_KEY, SqlType, common_float_decimals, declared_type, float_decimals,
};
use crate::functions::{EvaluationError, call};

use collation::{is_made_of_literals, is_strong_text, text_beside};
use domain::{convert, domain};
use moment::{
    Moment, is_no_time, note_temporal_text, place_before, place_of_time, point_in_time,
    refuse_number_that_is_none, temporal_prefix,
};
use operand::is_column;
use place::{compare_with_place, double_of, place_among_floats, place_in_float_column};
use year::{as_digits, is_year_beside};

pub(super) use collation::{collated, of_one_collation, texts_beside, texts_beside_each_other};
pub(super) use moment::place_of_moment;
pub(super) use operand::{Operand, text_of};
pub use place::number_of_column;
pub(super) use place::{Place, has_calls, never_equal, number_place, unknown};
pub(super) use rows::{between, may_be_equal, rows};
pub(super) use year::{beside_year, day_of_year, number_of_year};

/// What a comparison is a part of.
///
/// | | a constant text that is no date, beside dates | a FLOAT(M,D) |
/// |---|---|---|
/// | `Operator` | error 1525 | is equal to the number that it shows |
/// | `OnlyMember` | less than every date, and a warning | the same |
/// | `OneOfSeveral` | the same | is the number that it is, which is mostly another one |
///
/// In a statement with parameters such a text is NULL, and a warning.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PartOf {
    /// An operator.
    Operator,
    /// IN of one value.
    OnlyMember,
    /// IN of several values, BETWEEN or CASE.
    OneOfSeveral,
}

/// `left op right`, typed. `op` is a comparison or `IsNotDistinctFrom`.
pub(super) fn comparison(
    op: Operator,
    left: Expr,
    right: Expr,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Expr> {
    compare(op, left, right, (schema, rule), PartOf::Operator)
}

/// The comparison of CASE with one of its values. A YEAR is a number there: no constant becomes a year.
pub(super) fn case_value(args: Vec<Expr>, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let [left, right] = operands(args)?;
    let (left, right) = (
        number_of_year(left, schema)?,
        number_of_year(right, schema)?,
    );
    // Unlike to an operator, a JSON value is its text beside a text.
    let left = text_of_json(left, &right, schema)?;
    let right = text_of_json(right, &left, schema)?;
    let surroundings = (schema, rule);
    compare(
        Operator::Eq,
        left,
        right,
        surroundings,
        PartOf::OneOfSeveral,
    )
}

/// The text of a JSON value beside a text; any other value as it is.
fn text_of_json(expr: Expr, other: &Expr, schema: &DFSchema) -> Result<Expr> {
    let is_json = type_of(&expr, schema)? == SqlType::Json;
    if !is_json || !type_of(other, schema)?.is_text() {
        return Ok(expr);
    }
    let text = call("$cast_char", vec![expr]);
    let name = Collation::Utf8mb4_bin.name();
    Ok(fold(call("$collated", vec![text, lit(name)]), schema))
}

pub(super) fn compare(
    op: Operator,
    left: Expr,
    right: Expr,
    (schema, rule): (&DFSchema, Rule<'_>),
    part_of: PartOf,
) -> Result<Expr> {
    let before = match rule.watches() && op != Operator::IsNotDistinctFrom {
        true => reached::is_there(&left)?,
        false => Vec::new(),
    };
    let sides = Sides {
        schema,
        rule,
        part_of,
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
    part_of: PartOf,
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

/// What a value is compared by that stands beside a JSON value: it is one itself, a text a JSON string.
fn json_key(operand: Operand, schema: &DFSchema) -> Expr {
    let value = match operand.ty {
        SqlType::Json => operand.expr,
        _ => fold(call("$json_value", vec![operand.expr]), schema),
    };
    fold(call("$json_key", vec![value]), schema)
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
    let (known_left, known_right) = (left.ty != SqlType::Null, right.ty != SqlType::Null);
    if known_left && known_right && (left.ty == SqlType::Json || right.ty == SqlType::Json) {
        return Ok(binary_expr(
            json_key(left, schema),
            op,
            json_key(right, schema),
        ));
    }
    let is_constant = |operand: &Operand| literal(&operand.expr).is_some();
    let are_constant = is_constant(&left) && is_constant(&right);
    let is_number = |ty: &SqlType| ty.is_exact_number() || ty.is_float();
    // The default of an ENUM. Columns are converted with what they are compared with.
    let is_label =
        |operand: &Operand| is_constant(operand) && matches!(operand.ty, SqlType::Enum { .. });
    if is_label(&left) && is_number(&right.ty) {
        let number = fold(call("$cast_unsigned", vec![left.expr]), schema);
        return compare_sides(op, number, right.expr, sides, found);
    }
    if is_label(&right) && is_number(&left.ty) {
        let number = fold(call("$cast_unsigned", vec![right.expr]), schema);
        return compare_sides(op, left.expr, number, sides, found);
    }
    // Of two constants the text is the literal, so that it is compared digit by digit, as with a column.
    let are_number_and_text = |one: &Operand, other: &Operand| {
        are_constant && one.ty.is_exact_number() && other.ty.is_text()
    };
    if are_number_and_text(&right, &left)
        && let Some(swapped) = op.swap()
    {
        return compare_sides(swapped, right.expr, left.expr, sides.swapped(), found);
    }
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
    if let Some(text) = text_beside(&left.ty, &right.expr, &rule)? {
        return compare_sides(op, left.expr, text, sides, found);
    }
    if let Some(text) = text_beside(&right.ty, &left.expr, &rule)? {
        return compare_sides(op, text, right.expr, sides, found);
    }
    if is_made_of_literals(&right) && is_strong_text(&left.ty) {
        let text = call("$text_of_bytes", vec![right.expr]);
        return compare_sides(op, left.expr, text, sides, found);
    }
    if is_made_of_literals(&left) && is_strong_text(&right.ty) {
        let text = call("$text_of_bytes", vec![left.expr]);
        return compare_sides(op, text, right.expr, sides, found);
    }
    let is_moment = |ty: &SqlType| matches!(ty, SqlType::Date | SqlType::DateTime { .. });
    if is_year_beside(&left, &right) {
        let (year, moment) = as_digits(left.expr, right.expr, right.ty == SqlType::Date);
        return compare_sides(op, year, moment, sides, found);
    }
    if is_year_beside(&right, &left) {
        let (year, moment) = as_digits(right.expr, left.expr, left.ty == SqlType::Date);
        return compare_sides(op, moment, year, sides, found);
    }
    if is_moment(&left.ty)
        && let Some(wall_clock) = rule.wall_clock(&right.expr)
    {
        return compare_sides(op, left.expr, wall_clock, sides, found);
    }
    if is_moment(&right.ty)
        && let Some(wall_clock) = rule.wall_clock(&left.expr)
    {
        return compare_sides(op, wall_clock, right.expr, sides, found);
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
        && (rule.refuses() || !is_read_for_each_row(&left, value, &right))
        && let Some(exact) = with_literal(op, &left, (value, &right.ty), sides, of_right)?
    {
        return Ok(exact);
    }
    let (left, right) = match sides.part_of {
        PartOf::OneOfSeveral => (left, right),
        _ => rounded_alike(left, right, schema)?,
    };
    let to = domain(
        &left.ty,
        &right.ty,
        (left.field.data_type(), right.field.data_type()),
        op,
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

/// Whether a text that is no date beside a date was chosen among values of rows: what those would be to the date it is.
/// A statement that changes rows in a strict mode refuses it all the same.
fn is_read_for_each_row(left: &Operand, value: &ScalarValue, right: &Operand) -> bool {
    matches!(left.ty, SqlType::Date | SqlType::DateTime { .. })
        && right.field.metadata().contains_key(CHOSEN_KEY)
        && !matches!(point_in_time(value, &right.ty), Moment::At(_))
}

/// Two FLOATs or DOUBLEs whose decimals are known are compared by as many of them as the one with more has. A
/// FLOAT(M,D) is not quite the decimal number that it shows.
fn rounded_alike(left: Operand, right: Operand, schema: &DFSchema) -> Result<(Operand, Operand)> {
    let Some(decimals) = common_float_decimals([&left.field, &right.field]) else {
        return Ok((left, right));
    };
    let are_columns = is_column(&left.expr) && is_column(&right.expr);
    // What is rounded in the same way is equal, too.
    if are_columns && left.field.data_type() == right.field.data_type() {
        return Ok((left, right));
    }
    let rounded = |operand: Operand| {
        if !operand.ty.is_float() {
            return Ok(operand);
        }
        let rounded = call("round", vec![operand.expr, lit(i64::from(decimals))]);
        Operand::new(fold(rounded, schema), schema)
    };
    Ok((rounded(left)?, rounded(right)?))
}

/// Whether a FLOAT or DOUBLE was computed from others with so many decimals and has more: a sum of 0.1 and 0.2, say.
/// Those of a table are rounded when they are stored.
fn has_computed_decimals(field: &Field) -> bool {
    float_decimals(field).is_some() && declared_type(field).is_none()
}

fn fold_is_null(expr: Expr) -> Expr {
    match literal(&expr) {
        Some(value) => lit(value.is_null()),
        None => expr.is_null(),
    }
}

/// A comparison with a literal, in the type of the other operand. `None` if that is not possible without changing
/// the outcome.
fn with_literal(
    op: Operator,
    left: &Operand,
    (value, value_type): (&ScalarValue, &SqlType),
    Sides { rule, part_of, .. }: Sides<'_>,
    found: &mut Vec<EvaluationError>,
) -> Result<Option<Expr>> {
    let place = match &left.ty {
        ty if ty.is_exact_number() => number_place(left, value, value_type),
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
                    (is_number && part_of != PartOf::Operator).then_some(Place::BelowAll)
                }
                // No value is one, but there is an order.
                Moment::Before(day, _) if !rule.refuses_zero_in_dates => {
                    Some(place_before(day, is_date))
                }
                Moment::Before(_, text) | Moment::None(text) => {
                    let begins = temporal::datetime_of_text(temporal_prefix(text));
                    if begins.is_none() && may_be_null_parameter(rule) {
                        note_temporal_text(name, text, &left.expr, (rule, found))?;
                        return Ok(Some(compared_with_null(op)));
                    }
                    let is_refused = part_of == PartOf::Operator && begins.is_none();
                    match is_refused && !rule.truncated.is_refused() {
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
        SqlType::Time { .. } => {
            let text = text_of(value, value_type).filter(|_| *value_type != SqlType::Bytes);
            if let Some(text) = text.filter(|text| is_no_time(text))
                && may_be_null_parameter(rule)
            {
                note_temporal_text("TIME", &text, &left.expr, (rule, found))?;
                return Ok(Some(compared_with_null(op)));
            }
            place_of_time((value, value_type), &left.expr, (rule, found))?
        }
        SqlType::Float if value_type.is_exact_number() => match part_of {
            PartOf::OneOfSeveral => place_among_floats(&left.field, value),
            _ => place_in_float_column(&left.field, value, value_type),
        },
        SqlType::Double
            if value_type.is_exact_number()
                && is_column(&left.expr)
                && !has_computed_decimals(&left.field) =>
        {
            double_of(value).map(Place::At)
        }
        SqlType::Double
            if value_type.is_exact_number() && float_decimals(&left.field).is_none() =>
        {
            double_of(value).map(Place::At)
        }
        _ => None,
    };
    Ok(place.map(|place| compare_with_place(op, &left.expr, place)))
}

/// Whether a text that is no moment is NULL beside moments: MySQL makes a moment of a parameter before it compares it.
/// Statements that change rows refuse it.
fn may_be_null_parameter(rule: Rule<'_>) -> bool {
    rule.are_parameters && !rule.truncated.is_refused()
}

/// A comparison with NULL of what is not NULL where it is one.
fn compared_with_null(op: Operator) -> Expr {
    match op {
        Operator::IsNotDistinctFrom => lit(false),
        Operator::IsDistinctFrom => lit(true),
        _ => unknown(),
    }
}

/// A value as a condition.
pub(super) fn truth(value: Expr, schema: &DFSchema, rule: Rule<'_>) -> Result<Expr> {
    let value = number_of_moment(value, schema)?;
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
    // Unlike a comparison with zero, a condition does not round.
    if ty == SqlType::Double && has_computed_decimals(field_of(&value, schema)?.as_ref()) {
        return Ok(call("$is_not_zero", vec![value]));
    }
    let is_number = |ty: &SqlType| ty.is_exact_number() || *ty == SqlType::Double;
    Ok(match ty {
        SqlType::Boolean => value,
        SqlType::Null => unknown(),
        // DataFusion would compare each branch of a CASE with zero, and make conditions of all.
        ty if is_number(&ty) && !is_small(&value) => {
            call("$is_not_zero", vec![as_shown(value, schema)?])
        }
        ty if is_number(&ty) => comparison(Operator::NotEq, value, lit(0i64), schema, rule)?,
        SqlType::Text { .. } | SqlType::Bytes if rule.watches() => {
            let number = rule.truncated.number_of(NumberKind::Double, value);
            call("$is_not_zero", vec![number])
        }
        _ => call("$is_not_zero", vec![value]),
    })
}
