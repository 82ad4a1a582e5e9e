//! Comparisons that are made of several others: rows, BETWEEN, and equality that NULL may have.

use datafusion_common::{DFSchema, DataFusionError, Result, internal_err};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator, binary_expr};

use super::collation::texts_beside_each_other;
use super::domain::{Domain, convert};
use super::{PartOf, compare, comparison};
use crate::functions::call;
use crate::functions::types::{SqlType, common_collation, is_explicit};
use crate::typing::once::computed_once;
use crate::typing::{Purpose, Rule, literal, number_of_hybrid, operands, reached, type_of};

/// Whether two values are equal, or might be if it was known what NULL stands for.
pub(in crate::typing) fn may_be_equal(
    args: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Expr> {
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
pub(in crate::typing) fn rows(
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
pub(in crate::typing) fn between(
    args: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Expr> {
    let is_number = |arg: &Expr| {
        let ty = type_of(arg, schema)?;
        Ok::<_, DataFusionError>(ty.is_exact_number() || ty.is_float())
    };
    let mut has_number = false;
    for arg in &args {
        has_number |= is_number(arg)?;
    }
    // Beside a number, a hexadecimal literal is one.
    let args = match has_number {
        true => args.into_iter().map(number_of_hybrid).collect(),
        false => texts_beside_each_other(args, schema, rule)?,
    };
    let [x, low, high] = operands(args)?;
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
        let are_texts = types.iter().all(SqlType::is_text) || types.iter().any(is_explicit);
        let to = match are_texts {
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
    // A text between a TIME and a date is a point in time for both.
    let is_time = |ty: &SqlType| matches!(ty, SqlType::Time { .. });
    let are_temporal = low_type.is_temporal() && high_type.is_temporal();
    if x_type.is_string() && are_temporal && is_time(low_type) != is_time(high_type) {
        x = convert(x, &Domain::DateTime, schema, rule)?;
    }
    let bound = |op: Operator, x: Expr, bound: Expr| {
        compare(op, x, bound, (schema, rule), PartOf::OneOfSeveral)
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
