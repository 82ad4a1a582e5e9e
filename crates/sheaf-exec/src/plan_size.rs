//! How large a logical plan may be.
//!
//! A short text can mean a large plan. A common table expression whose query takes something from a query around it is
//! planned again wherever it is named. So thirty of them, each the union of two of the one before, are a billion nodes.
//! They are shared in memory, but a walk over the plan meets each of them. So plans are counted before anything else
//! walks over them, and the count stops at the limit. The query of a common table expression that is computed once
//! counts once.

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::{Expr, LogicalPlan};
use sheaf_access::cancel;

use crate::functions::EvaluationError;
use crate::table_source::for_each_node;

/// The most nodes of a logical plan, those of subqueries included.
pub const MAX_PLAN_NODES: usize = 50_000;

/// What a node with a list of expressions takes for each of them, all at once: names, types and what depends on what.
const ITEM_BYTES: usize = 1 << 10;

/// Makes room for a node with a list of so many expressions.
///
/// # Errors
/// There is none, or the statement shall stop for another reason.
pub fn check_room_for_list(items: usize) -> Result<()> {
    let checked = cancel::check_room_for(items.saturating_mul(ITEM_BYTES));
    checked.map_err(|error| DataFusionError::External(Box::new(error)))
}

/// Refuses a plan of more than [`MAX_PLAN_NODES`] nodes.
///
/// # Errors
/// 1116 for a plan that is too large.
pub fn check_plan_size(plan: &LogicalPlan) -> Result<()> {
    let mut nodes = 0usize;
    for_each_node(plan, &mut |_| {
        nodes += 1;
        match nodes > MAX_PLAN_NODES {
            true => Err(EvaluationError::plan_too_large(MAX_PLAN_NODES).into()),
            false => Ok(()),
        }
    })
}

/// The nodes of the expressions of a plan's node, at most `limit` of them.
pub fn expression_nodes(plan: &LogicalPlan, limit: usize) -> usize {
    let mut nodes = 0;
    let mut count = |_: &Expr| {
        nodes += 1;
        Ok(match nodes < limit {
            true => TreeNodeRecursion::Continue,
            false => TreeNodeRecursion::Stop,
        })
    };
    // The closure does not fail.
    let _ = plan.apply_expressions(|expr| expr.apply(&mut count));
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion_expr::{LogicalPlanBuilder, lit};

    #[test]
    fn a_plan_that_is_shared_counts_each_time() {
        let one = LogicalPlanBuilder::empty(true).project([lit(1i64).alias("x")]);
        let mut plan = one.unwrap().build().unwrap();
        for _ in 0..10 {
            let twice = LogicalPlanBuilder::from(plan.clone()).union(plan).unwrap();
            plan = twice.build().unwrap();
        }
        assert!(check_plan_size(&plan).is_ok());
        for _ in 0..20 {
            let twice = LogicalPlanBuilder::from(plan.clone()).union(plan).unwrap();
            plan = twice.build().unwrap();
        }
        let error = check_plan_size(&plan).unwrap_err();
        assert_eq!(EvaluationError::find(&error).map(|e| e.code), Some(1116));
    }

    #[test]
    fn expressions_are_counted_up_to_a_limit() {
        let sum = (0..20).fold(lit(1i64), |sum, _| sum + lit(1i64));
        let plan = LogicalPlanBuilder::empty(true).project([sum]).unwrap();
        let plan = plan.build().unwrap();
        assert_eq!(expression_nodes(&plan, 1000), 41);
        assert_eq!(expression_nodes(&plan, 10), 10);
    }
}
