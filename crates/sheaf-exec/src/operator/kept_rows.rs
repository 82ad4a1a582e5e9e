//! Which plans keep many rows, so that they wait for query memory before they begin, and which keep long ones.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use datafusion_physical_plan::projection::ProjectionExec;

use crate::operator::bounded_projection::lengthens_much;
use crate::operator::first_rows_exec::sort_of;
use crate::operator::window::WindowExec;

/// A sort that keeps no more is small.
const FEW_ROWS: usize = 10_000;

/// Whether a plan may have to keep many rows: it sorts, groups or joins them.
pub fn keeps_rows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.exists(|node| {
        let sorts = sort_of(node);
        let groups = node.downcast_ref::<AggregateExec>();
        Ok(
            sorts.is_some_and(|sort| sort.fetch().is_none_or(|rows| rows > FEW_ROWS))
                || groups.is_some_and(|groups| !groups.group_expr().is_empty())
                || node.is::<HashJoinExec>()
                || node.is::<SortMergeJoinExec>()
                || node.is::<NestedLoopJoinExec>()
                || node.is::<CrossJoinExec>()
                || node
                    .downcast_ref::<WindowExec>()
                    .is_some_and(WindowExec::keeps_partitions),
        )
    })
    .unwrap_or(true)
}

/// Whether a plan sorts rows with texts that functions have lengthened: how long they are is not known before.
pub fn sorts_lengthened_texts(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let (mut sorts, mut lengthens) = (false, false);
    // The closure does not fail.
    let _ = plan.apply(|node| {
        if let Some(sort) = sort_of(node) {
            sorts = true;
            lengthens |= sort.expr().iter().any(|key| lengthens_much(&key.expr));
        }
        if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
            let mut items = projection.expr().iter();
            lengthens |= items.any(|item| lengthens_much(&item.expr));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    sorts && lengthens
}

/// Whether a plan groups, sorts or joins by texts that functions have lengthened, or keeps such texts for groups and
/// windows. An exchange puts rows together into batches of so many, however long they are, and an operator evaluates
/// its own expressions for a whole batch.
pub fn keeps_lengthened_texts(plan: &Arc<dyn ExecutionPlan>) -> bool {
    // The closure does not fail.
    plan.exists(|node| {
        if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
            let functions = aggregate.aggr_expr().iter();
            let mut kept = functions.flat_map(|function| function.expressions());
            let of_groups = !aggregate.group_expr().is_empty();
            return Ok(of_groups && reads_lengthened_texts(aggregate.input())
                || kept.any(|expr| is_lengthened_text(&expr, aggregate.input())));
        }
        if let Some(sort) = sort_of(node) {
            let mut keys = sort.expr().iter();
            return Ok(keys.any(|key| is_lengthened_text(&key.expr, sort.input())));
        }
        if let Some(join) = node.downcast_ref::<HashJoinExec>() {
            let mut keys = join.on().iter();
            return Ok(keys.any(|(left, right)| {
                is_lengthened_text(left, join.left()) || is_lengthened_text(right, join.right())
            }));
        }
        let window = node.downcast_ref::<WindowExec>();
        let input = node.children().first().map(|input| Arc::clone(input));
        Ok(window.zip(input).is_some_and(|(window, input)| {
            let mut expressions = window.arguments_and_keys();
            expressions.any(|expr| is_lengthened_text(&expr, &input))
        }))
    })
    .unwrap_or(true)
}

/// Whether an expression over the rows of a plan is a text that functions have lengthened.
fn is_lengthened_text(expr: &Arc<dyn PhysicalExpr>, input: &Arc<dyn ExecutionPlan>) -> bool {
    use DataType::{Binary, BinaryView, Utf8, Utf8View};

    lengthens_much(expr)
        && matches!(
            expr.data_type(&input.schema()),
            Ok(Utf8 | Utf8View | Binary | BinaryView) | Err(_)
        )
}

/// Whether there is a projection that lengthens texts below, before rows are put together in another way.
fn reads_lengthened_texts(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut node = plan;
    loop {
        if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
            let mut items = projection.expr().iter();
            if items.any(|item| lengthens_much(&item.expr)) {
                return true;
            }
        }
        node = match node.children()[..] {
            [input] if !node.is::<AggregateExec>() => input,
            _ => return false,
        };
    }
}
