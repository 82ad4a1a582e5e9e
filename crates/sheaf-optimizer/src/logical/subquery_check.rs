//! The check that subqueries stand where they can be planned.
//!
//! DataFusion's check of a plan walks over all subqueries, and for each of them over all that are inside it, and so on.
//! Of thirty subqueries, one inside the other, it looks at the innermost a billion times. Here each is looked at once:
//!
//! ```text
//!   A ( B ( C ) )      check C in B,  then B, with a NULL in place of C, in A
//! ```

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::expr::{Exists, InSubquery, SetComparison};

use datafusion_expr::logical_plan::{InvariantLevel, Subquery, check_subquery_expr};
use datafusion_expr::{Expr, LogicalPlan};
use sheaf_access::cancel;
use sheaf_exec::operator::scan_exec::access_error;

/// Subqueries inside of each other that are left to DataFusion's check.
const MAX_DEPTH: usize = 4;

/// Checks a plan that is to be optimized or planned.
pub(crate) fn check_plan(plan: &LogicalPlan) -> Result<()> {
    if !is_deeper(plan, MAX_DEPTH)? {
        return plan.check_invariants(InvariantLevel::Executable);
    }
    plan.check_invariants(InvariantLevel::Always)?;
    check_subqueries(plan)
}

fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. })
        | Expr::ScalarSubquery(subquery) => Some(subquery),
        _ => None,
    }
}

/// Calls `visit` with each subquery of a plan's expressions, and the node and the expression that it stands in. Those
/// inside of subqueries are not visited.
fn for_each_subquery(
    plan: &LogicalPlan,
    visit: &mut dyn FnMut(&LogicalPlan, &Expr, &Subquery) -> Result<TreeNodeRecursion>,
) -> Result<()> {
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| match subquery_of(expr) {
                Some(subquery) => visit(node, expr, subquery),
                None => Ok(TreeNodeRecursion::Continue),
            })
        })
    })?;
    Ok(())
}

/// Whether more than `depth` subqueries of a plan are inside of each other.
fn is_deeper(plan: &LogicalPlan, depth: usize) -> Result<bool> {
    let mut is_deeper = false;
    for_each_subquery(plan, &mut |_, _, subquery| {
        is_deeper = match depth {
            0 => true,
            depth => self::is_deeper(&subquery.subquery, depth - 1)?,
        };
        Ok(match is_deeper {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(is_deeper)
}

fn check_subqueries(plan: &LogicalPlan) -> Result<()> {
    for_each_subquery(plan, &mut |node, expr, subquery| {
        cancel::check_statement().map_err(access_error)?;
        check_subqueries(&subquery.subquery)?;
        let inner = without_subqueries(&subquery.subquery)?;
        check_subquery_expr(node, &inner, expr)?;
        Ok(TreeNodeRecursion::Continue)
    })
}

/// The plan with NULL in the places of its subqueries.
fn without_subqueries(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let without = plan.clone().transform_down(|node| {
        node.map_expressions(|expr| {
            expr.transform_down(|expr| {
                Ok(match subquery_of(&expr) {
                    Some(_) => Transformed::yes(Expr::Literal(ScalarValue::Null, None)),
                    None => Transformed::no(expr),
                })
            })
        })
    })?;
    Ok(without.data)
}
