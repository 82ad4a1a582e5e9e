//! What operators require of the order of their inputs, and of how these are divided between workers.
//!
//! DataFusion's SanityCheckPlan, except for merges of unions. It derives the order of a union from what its inputs have
//! in common, so what is constant or equal in one input alone is lost. A merge needs only that each input is in order.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_physical_expr::LexOrdering;
use datafusion_physical_optimizer::sanity_checker::check_plan_sanity;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::contradiction;

pub(super) fn check(plan: &Arc<dyn ExecutionPlan>, options: &ConfigOptions) -> Result<()> {
    match check_plan_sanity(plan, &options.optimizer) {
        Err(problem) if !is_merge_of_ordered_inputs(plan)? => {
            let what =
                "an input does not come in the order, or divided between workers, as it must";
            // It shows the whole plan, to help find the cause.
            tracing::debug!(%problem, "{what}");
            Err(contradiction(plan, what))
        }
        _ => Ok(()),
    }
}

pub(super) fn is_merge_of_ordered_inputs(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    match plan.downcast_ref::<SortPreservingMergeExec>() {
        Some(merge) => is_in_order(merge.input(), merge.expr()),
        None => Ok(false),
    }
}

fn is_in_order(plan: &Arc<dyn ExecutionPlan>, order: &LexOrdering) -> Result<bool> {
    let properties = plan.equivalence_properties();
    if properties.ordering_satisfy(order.clone())? {
        return Ok(true);
    }
    let children = plan.children();
    // What only hands rows on may stand between.
    let hands_on = plan.maintains_input_order() == [true]
        && children.iter().all(|child| child.schema() == plan.schema());
    if !plan.is::<UnionExec>() && !hands_on {
        return Ok(false);
    }
    for child in children {
        if !is_in_order(child, order)? {
            return Ok(false);
        }
    }
    Ok(true)
}
