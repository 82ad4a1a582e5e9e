//! How large a logical plan may be.
//!
//! A short text can mean a large plan. A common table expression whose query takes something from a query around it is
//! planned again wherever it is named. So thirty of them, each the union of two of the one before, are a billion nodes.
//! They are shared in memory, but a walk over the plan meets each of them. So plans are counted before anything else
//! walks over them, and the count stops at the limit. The query of a common table expression that is computed once
//! counts once.

use arrow::datatypes::FieldRef;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DataFusionError, Result, TableReference};
use datafusion_expr::{Expr, LogicalPlan};
use sheaf_access::cancel;

use crate::functions::EvaluationError;
use crate::table_source::for_each_node;

/// The most nodes of a logical plan, those of subqueries included.
pub const MAX_PLAN_NODES: usize = 50_000;

/// What a node with a list of expressions takes for each of them, all at once: names, types and what depends on what.
const ITEM_BYTES: usize = 1 << 10;

/// What a node of an expression over batches takes at least: a box with counts, a type, a place among its operands.
const EXPRESSION_NODE_BYTES: usize = 128;

/// What a column takes in each schema that it is in.
const COLUMN_BYTES: usize = size_of::<Option<TableReference>>() + size_of::<FieldRef>();

/// Makes room for a node with a list of so many expressions.
///
/// # Errors
/// There is none, or the statement shall stop for another reason.
pub fn check_room_for_list(items: usize) -> Result<()> {
    let checked = cancel::check_room_for(items.saturating_mul(ITEM_BYTES));
    checked.map_err(|error| DataFusionError::External(Box::new(error)))
}

/// Makes room for the expression over batches that is made of this one, all of it without a look at the memory.
///
/// # Errors
/// As of [`check_room_for_list`].
pub fn check_room_for_expression(expr: &Expr) -> Result<()> {
    let mut nodes = 0usize;
    expr.apply(|_| {
        nodes += 1;
        Ok(TreeNodeRecursion::Continue)
    })?;
    check_room_if_much(nodes.saturating_mul(EXPRESSION_NODE_BYTES))
}

/// Makes room for the schemas of a plan, which a rule that walks over it by itself makes once more. In a chain of joins
/// each has the columns of all before it.
///
/// # Errors
/// As of [`check_room_for_list`].
pub fn check_room_for_schemas(plan: &LogicalPlan) -> Result<()> {
    let mut columns = 0usize;
    plan.apply(|node| {
        columns += node.schema().fields().len();
        Ok(TreeNodeRecursion::Continue)
    })?;
    check_room_if_much(columns.saturating_mul(COLUMN_BYTES))
}

fn check_room_if_much(bytes: usize) -> Result<()> {
    let checked = cancel::check_room_for_value(bytes);
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
    use datafusion_expr::{LogicalPlanBuilder, col, lit};
    use sheaf_access::cancel::CancelFlag;

    #[test]
    fn room_is_asked_for_what_is_large() {
        let listed = |count: i64| col("a").in_list((0..count).map(lit).collect(), false);
        let columns = (0..2000i64).map(|n| lit(n).alias(format!("c{n}")));
        let mut wide = LogicalPlanBuilder::empty(true).project(columns).unwrap();
        for _ in 0..20 {
            wide = wide.limit(0, Some(1)).unwrap();
        }
        let wide = wide.build().unwrap();
        let narrow = LogicalPlanBuilder::empty(true).project([lit(1i64).alias("x")]);
        let narrow = narrow.unwrap().build().unwrap();
        let flag = CancelFlag::new();
        flag.cancel();
        flag.during(|| {
            assert!(check_room_for_expression(&listed(20_000)).is_err());
            assert!(check_room_for_expression(&listed(100)).is_ok());
            assert!(check_room_for_schemas(&wide).is_err());
            assert!(check_room_for_schemas(&narrow).is_ok());
        });
        assert!(check_room_for_expression(&listed(20_000)).is_ok());
        assert!(check_room_for_schemas(&wide).is_ok());
    }

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
