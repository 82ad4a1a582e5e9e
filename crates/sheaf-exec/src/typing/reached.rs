//! Which operands a row comes to.
//!
//! MySQL hears of a division by zero only if it computes the division, and of a text that is no number only if it
//! converts the text. It computes operands from left to right, and stops at a NULL, at a false one of AND, at a true
//! one of OR, at a member of IN that is equal. Here operands are computed for all rows of a batch. So the functions
//! that note something ([`TruncatedTexts`]) have conditions behind their operands, and note only what they meet in rows
//! for which all of these are true:
//!
//! ```text
//!   b <> 0 AND a / b > 1      b <> 0 AND a / $divisor(b, a IS NOT NULL, (b <> 0) IS NOT FALSE) > 1
//!   i IN (1, '12x')           i = 1 OR $of_constant(i = 12, i IS NOT NULL, (i = 1) IS NOT TRUE)
//! ```
//!
//! A CASE computes its branches for the rows that come to them anyway.
//!
//! A condition repeats other operands. In the copy nothing is noted, and nothing has conditions: what is copied stays
//! as large as the text is. Operands that are larger than [`MAX_CONDITION_NODES`] stop nothing. Each of many operands
//! would get copies of all before it, so of more than [`MAX_ORDERED`] all are computed, and those of a chain of AND or
//! OR that stand behind so many. MySQL does that with long lists of constants, too.

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion_expr::{Expr, Operator, lit};

use super::{Purpose, Rule, compare, is_of_rows, literal, type_of};
use crate::functions::truncated::TruncatedTexts;
use crate::functions::types::SqlType;
use crate::functions::{call, row};

/// The size of a condition.
const MAX_CONDITION_NODES: usize = 256;
/// Operands that one has to come to after the other.
pub const MAX_ORDERED: usize = 32;

/// Whether the function computes all of its operands: with whole numbers and with floating point, arithmetic does; with
/// exact fractions it stops at a NULL. A quotient of whole numbers is such a fraction.
fn computes_all(function: &str, operands: &[Expr], schema: &DFSchema) -> Result<bool> {
    if !row(function).is_some_and(|row| row.is_arithmetic) {
        return Ok(false);
    }
    let mut all_whole = function != "$divide";
    for operand in operands {
        match type_of(operand, schema)? {
            SqlType::Float | SqlType::Double | SqlType::Text { .. } | SqlType::Bytes
                if function != "$integer_divide" =>
            {
                return Ok(true);
            }
            SqlType::Null if function != "$integer_divide" => return Ok(true),
            SqlType::Integer { .. } | SqlType::Boolean => {}
            _ => all_whole = false,
        }
    }
    Ok(all_whole)
}

/// The operands of a function, with conditions in those that may not be computed.
pub(super) fn in_operands(
    function: &str,
    mut operands: Vec<Expr>,
    schema: &DFSchema,
    rule: Rule<'_>,
) -> Result<Vec<Expr>> {
    if operands.len() > 1 + MAX_ORDERED || !operands.iter().skip(1).any(takes_conditions) {
        return Ok(operands);
    }
    let is_list = function == "$in";
    let stops = is_list || row(function).is_some_and(|row| row.stops_at_null);
    if !stops || computes_all(function, &operands, schema)? {
        return Ok(operands);
    }
    let mut conditions: Vec<Expr> = Vec::new();
    for at in 0..operands.len() {
        if !conditions.is_empty() && takes_conditions(&operands[at]) {
            let operand = std::mem::take(&mut operands[at]);
            operands[at] = with_conditions(operand, &conditions)?;
        }
        if is_list && at > 0 {
            if let (Some(x), Some(member)) = (copy(&operands[0])?, copy(&operands[at])?) {
                let silent = rule.for_purpose(Purpose::Copy);
                let equal = compare::comparison(Operator::Eq, x, member, schema, silent)?;
                conditions.push(equal.is_not_true());
            }
        } else {
            conditions.extend(is_there(&operands[at])?);
        }
    }
    Ok(operands)
}

/// AND and OR, with conditions in the operand that may not be computed.
pub(super) fn in_connective(mut connective: BinaryExpr, rule: Rule<'_>) -> Result<Expr> {
    let (is_and, both) = match connective.op {
        Operator::And => (true, "$both"),
        Operator::Or => (false, "$either"),
        _ => return Ok(Expr::BinaryExpr(connective)),
    };
    if takes_conditions(&connective.right)
        && let Some(left) = copy(&connective.left)?
    {
        let right = std::mem::take(&mut *connective.right);
        let conditions = match literal(&left) {
            // What is behind it is never computed.
            Some(ScalarValue::Boolean(Some(value))) if *value != is_and => vec![lit(false)],
            Some(_) => Vec::new(),
            None if is_and => vec![left.is_not_false()],
            None => vec![left.is_not_true()],
        };
        *connective.right = with_conditions(right, &conditions)?;
    }
    // Rules that simplify would do without what stands in front of a constant, as is right in a condition.
    let is_computed = |expr: &Expr| matches!(expr, Expr::ScalarFunction(_));
    let is_kept = rule.purpose == Purpose::Shown
        && !is_of_rows(&connective.right)?
        && connective.left.exists(|expr| Ok(is_computed(expr)))?;
    Ok(match is_kept {
        true => call(both, vec![*connective.left, *connective.right]),
        false => Expr::BinaryExpr(connective),
    })
}

impl Rule<'_> {
    /// AND or OR of two conditions, of which rows may not come to the second one.
    pub(super) fn connected(self, left: Expr, op: Operator, right: Expr) -> Result<Expr> {
        let connective = BinaryExpr::new(Box::new(left), op, Box::new(right));
        match self.has_conditions() {
            true => in_connective(connective, self),
            false => Ok(Expr::BinaryExpr(connective)),
        }
    }
}

/// What is divided by, which is looked at for zeros where there is something to divide.
pub(super) fn divisor(truncated: &TruncatedTexts, operand: Expr, dividend: &Expr) -> Result<Expr> {
    Ok(truncated.divisor(operand, is_there(dividend)?))
}

/// The operand is not NULL.
pub(super) fn is_there(operand: &Expr) -> Result<Vec<Expr>> {
    if let Some(value) = literal(operand) {
        return Ok(match value.is_null() {
            true => vec![lit(false)],
            false => Vec::new(),
        });
    }
    let mut leaves = Vec::new();
    if !null_leaves(operand, &mut leaves) {
        leaves.clear();
        leaves.extend(copy(operand)?);
    }
    Ok(leaves.into_iter().map(Expr::is_not_null).collect())
}

/// The operands of arithmetic whose NULL is the NULL of the result, each once. What is NULL because it was divided by
/// zero has been noted already. False if `expression` is more than arithmetic.
fn null_leaves(expression: &Expr, leaves: &mut Vec<Expr>) -> bool {
    match expression {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) => {
            if !leaves.contains(expression) {
                leaves.push(expression.clone());
            }
            true
        }
        Expr::Literal(value, _) => !value.is_null(),
        Expr::Alias(alias) => null_leaves(&alias.expr, leaves),
        Expr::Cast(cast) => null_leaves(&cast.expr, leaves),
        Expr::ScalarFunction(call) if TruncatedTexts::hands_on(call.func.name()) => call
            .args
            .first()
            .is_some_and(|operand| null_leaves(operand, leaves)),
        Expr::ScalarFunction(call)
            if row(call.func.name()).is_some_and(|row| row.is_arithmetic) =>
        {
            call.args.iter().all(|operand| null_leaves(operand, leaves))
        }
        _ => false,
    }
}

pub(super) fn takes_conditions(expression: &Expr) -> bool {
    let is_one = |call: &ScalarFunction| TruncatedTexts::notes(call.func.name());
    let found =
        expression.exists(|expr| Ok(matches!(expr, Expr::ScalarFunction(call) if is_one(call))));
    found.unwrap_or(false)
}

pub(super) fn with_conditions(expression: Expr, conditions: &[Expr]) -> Result<Expr> {
    let with = expression.transform_up(|expr| {
        Ok(match expr {
            Expr::ScalarFunction(ScalarFunction { func, mut args })
                if TruncatedTexts::notes(func.name()) =>
            {
                for condition in conditions {
                    if !args.contains(condition) {
                        args.push(condition.clone());
                    }
                }
                Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args }))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(with.data)
}

/// The same expression where nothing is noted; `None` if it is too large.
pub(super) fn copy(expression: &Expr) -> Result<Option<Expr>> {
    if size(expression)? > MAX_CONDITION_NODES {
        return Ok(None);
    }
    let silent = expression.clone().transform_down(|mut expr| {
        let mut is_changed = false;
        while let Expr::ScalarFunction(call) = expr {
            if !TruncatedTexts::notes(call.func.name()) || call.args.is_empty() {
                expr = Expr::ScalarFunction(call);
                break;
            }
            expr = TruncatedTexts::silent(call);
            is_changed = true;
        }
        Ok(match is_changed {
            true => Transformed::yes(expr),
            false => Transformed::no(expr),
        })
    })?;
    Ok(Some(silent.data))
}

/// Nodes of a copy; it counts no further than the limit.
fn size(expression: &Expr) -> Result<usize> {
    let mut nodes = 0;
    expression.apply(|expr| {
        nodes += 1;
        Ok(match expr {
            _ if nodes > MAX_CONDITION_NODES => TreeNodeRecursion::Stop,
            // Its conditions are not copied.
            Expr::ScalarFunction(call) if TruncatedTexts::notes(call.func.name()) => {
                if let Some(operand) = call.args.first() {
                    nodes += size(operand)?;
                }
                TreeNodeRecursion::Jump
            }
            _ => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(nodes)
}
