//! The physical rules of DataFusion that we keep, in its order.
//!
//! Left out: JoinSelection and statistics-based rules (our join order has decided; AggregateStatistics would answer
//! COUNT(*) from estimates), filter pushdown (done logically, and dynamic filters keep state across runs), and
//! PushdownSort (our access path choice has decided).

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_physical_expr::{LexOrdering, OrderingRequirements};
use datafusion_physical_optimizer::combine_partial_final_agg::CombinePartialFinalAggregate;
use datafusion_physical_optimizer::ensure_coop::EnsureCooperative;
use datafusion_physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion_physical_optimizer::limit_pushdown::LimitPushdown;
use datafusion_physical_optimizer::limit_pushdown_past_window::LimitPushPastWindows;
use datafusion_physical_optimizer::output_requirements::OutputRequirements;
use datafusion_physical_optimizer::projection_pushdown::ProjectionPushdown;
use datafusion_physical_optimizer::topk_aggregation::TopKAggregation;
use datafusion_physical_optimizer::update_aggr_exprs::OptimizeAggregateOrder;
use datafusion_physical_optimizer::{ConfigOnlyContext, PhysicalOptimizerRule};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::joins::SortMergeJoinExec;
use datafusion_physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion_physical_plan::projection::{ProjectionExec, remove_unnecessary_projections};
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary,
};

/// Applies the list once.
pub fn apply(
    mut plan: Arc<dyn ExecutionPlan>,
    options: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let rules: [Arc<dyn PhysicalOptimizerRule + Send + Sync>; 10] = [
        Arc::new(OutputRequirements::new_add_mode()),
        Arc::new(EnsureRequirements::new()),
        Arc::new(CombinePartialFinalAggregate::new()),
        Arc::new(OptimizeAggregateOrder::new()),
        Arc::new(PushProjections),
        Arc::new(OutputRequirements::new_remove_mode()),
        Arc::new(TopKAggregation::new()),
        Arc::new(LimitPushPastWindows::new()),
        Arc::new(LimitPushdown::new()),
        Arc::new(EnsureCooperative::new()),
    ];
    let context = ConfigOnlyContext::new(options);
    for rule in rules {
        plan = rule.optimize_with_context(plan, &context)?;
    }
    Ok(plan)
}

/// Sorts what an operator requires in an order that it does not get. DataFusion moves a sort below a join that keeps
/// the order, and then the join does not say that it does: it names the order by one of two equal columns, and delivers
/// the other one.
pub fn restore_orders(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    plan.transform_up(|node| {
        let required = node.required_input_ordering();
        let mut children: Vec<_> = node.children().into_iter().cloned().collect();
        let mut is_changed = false;
        for (child, required) in children.iter_mut().zip(required) {
            let Some(required) = required.map(OrderingRequirements::into_single) else {
                continue;
            };
            let properties = child.equivalence_properties();
            if !properties.ordering_satisfy_requirement(required.clone())? {
                let sort = SortExec::new(LexOrdering::from(required), Arc::clone(child));
                *child = Arc::new(sort.with_preserve_partitioning(true));
                is_changed = true;
            }
        }
        match is_changed {
            true => Ok(Transformed::yes(replace_children_if_necessary(
                node, children,
            )?)),
            false => Ok(Transformed::no(node)),
        }
    })
}

/// Rows that a sort with a limit may hold however little memory there is.
pub(crate) const FEW_ROWS: usize = 1_000;

/// Sorts the rows of all workers together where each worker sorts its own: one sort has all of the memory, and merges
/// when no other one holds any. To be done after the [rules](apply), of which one divides sorts between workers.
pub fn sort_in_one_stream(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let sorted = plan.transform_up(|node| {
        let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>() else {
            return Ok(Transformed::no(node));
        };
        let Some(sort) = merge.input().downcast_ref::<SortExec>() else {
            return Ok(Transformed::no(node));
        };
        let all = Arc::new(CoalescePartitionsExec::new(Arc::clone(sort.input())));
        let all = SortExec::new(sort.expr().clone(), all).with_fetch(merge.fetch());
        Ok(Transformed::yes(Arc::new(all) as Arc<dyn ExecutionPlan>))
    })?;
    Ok(sorted.data)
}

/// Sorts by more keys than these do not look for the first rows: the condition that says which rows may still be among
/// them compares each key where all before it are equal, so it grows with the square of their number.
const MAX_TOP_K_KEYS: usize = 16;

/// Sorts all rows where the first ones alone are wanted, by many keys; where memory is short, also where many rows are
/// wanted: a sort of the first ones holds them in memory, one of all rows can spill. To be done after the
/// [rules](apply), of which one would put the limit back into the sort.
pub fn sort_all_rows(
    plan: Arc<dyn ExecutionPlan>,
    has_little_memory: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let sorted = plan.transform_up(|node| {
        let Some(sort) = node.downcast_ref::<SortExec>() else {
            return Ok(Transformed::no(node));
        };
        let is_meant = |fetch: &usize| {
            let is_much = has_little_memory && *fetch > FEW_ROWS;
            is_much || sort.expr().len() > MAX_TOP_K_KEYS
        };
        let Some(fetch) = sort.fetch().filter(is_meant) else {
            return Ok(Transformed::no(node));
        };
        let all = SortExec::new(sort.expr().clone(), Arc::clone(sort.input()))
            .with_preserve_partitioning(sort.preserve_partitioning());
        let all: Arc<dyn ExecutionPlan> = Arc::new(all);
        let limited: Arc<dyn ExecutionPlan> = match all.output_partitioning().partition_count() {
            1 => Arc::new(GlobalLimitExec::new(all, 0, Some(fetch))),
            _ => Arc::new(LocalLimitExec::new(all, fetch)),
        };
        Ok(Transformed::yes(limited))
    })?;
    Ok(sorted.data)
}

/// DataFusion's ProjectionPushdown, except for merge joins with a condition beside the equality of keys: pushed below
/// one, a projection moves the columns, and DataFusion leaves the condition as it was.
#[derive(Debug)]
struct PushProjections;

impl PhysicalOptimizerRule for PushProjections {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !plan.exists(|node| Ok(is_filtered_merge_join(node)))? {
            return ProjectionPushdown::new().optimize(plan, options);
        }
        let pushed = plan.transform_down(|node| {
            let projection = node.downcast_ref::<ProjectionExec>();
            match projection.is_some_and(|above| is_filtered_merge_join(above.input())) {
                true => Ok(Transformed::no(node)),
                false => remove_unnecessary_projections(node),
            }
        })?;
        Ok(pushed.data)
    }

    fn name(&self) -> &str {
        "PushProjections"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn is_filtered_merge_join(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<SortMergeJoinExec>()
        .is_some_and(|join| join.filter().is_some())
}
