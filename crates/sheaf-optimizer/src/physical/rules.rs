//! The physical rules: what operators require, ours; projections and limits move down, DataFusion's, in its order.
//!
//! A rule of DataFusion's walks over the whole plan and makes much of it anew. So it is applied only where there is
//! something that it is about.
//!
//! Left out: JoinSelection and statistics-based rules (our join order has decided; AggregateStatistics would answer
//! COUNT(*) from estimates), filter pushdown (done logically, and dynamic filters keep state across runs), and
//! PushdownSort (our access path choice has decided).

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_physical_expr::{LexOrdering, OrderingRequirements};
use datafusion_physical_optimizer::PhysicalOptimizerRule;
use datafusion_physical_optimizer::limit_pushdown::LimitPushdown;
use datafusion_physical_optimizer::limit_pushdown_past_window::LimitPushPastWindows;
use datafusion_physical_optimizer::output_requirements::{
    OutputRequirementExec, OutputRequirements,
};
use datafusion_physical_optimizer::projection_pushdown::ProjectionPushdown;
use datafusion_physical_optimizer::topk_aggregation::TopKAggregation;
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::joins::{NestedLoopJoinExec, SortMergeJoinExec};
use datafusion_physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion_physical_plan::projection::{ProjectionExec, remove_unnecessary_projections};
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion_physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary,
};

use sheaf_exec::functions::limits::ResultLimits;
use sheaf_exec::operator::node_id::in_place_of;

use crate::PlannerContext;
use crate::physical::made_anew::with_nodes_of;
use crate::physical::properties::meet_requirements;

/// Applies them once. Rows are divided between so many workers where operators have them divided.
pub fn apply(
    plan: Arc<dyn ExecutionPlan>,
    workers: usize,
    options: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = meet_requirements(plan, workers, options)?;
    let mut plan = push_projections(plan, options)?;
    let found = Found::of(&plan);
    if found.has_requirements {
        plan = OutputRequirements::new_remove_mode().optimize(plan, options)?;
    }
    if found.has_limited_sorts {
        let limited = TopKAggregation::new().optimize(Arc::clone(&plan), options)?;
        plan = with_nodes_of(&plan, limited)?;
    }
    if found.has_windows {
        plan = LimitPushPastWindows::new().optimize(plan, options)?;
    }
    if found.has_limits {
        let pushed = LimitPushdown::new().optimize(Arc::clone(&plan), options)?;
        plan = with_nodes_of(&plan, pushed)?;
    }
    Ok(plan)
}

/// What is in a plan that rules are about.
#[derive(Default)]
pub(crate) struct Found {
    has_requirements: bool,
    has_limited_sorts: bool,
    has_limits: bool,
    pub has_sorts: bool,
    pub has_unions: bool,
    pub has_windows: bool,
}

impl Found {
    pub(crate) fn of(plan: &Arc<dyn ExecutionPlan>) -> Found {
        let mut found = Found::default();
        found.add(plan);
        found
    }

    fn add(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        self.has_requirements |= plan.is::<OutputRequirementExec>();
        self.has_sorts |= plan.is::<SortExec>() || plan.is::<SortPreservingMergeExec>();
        self.has_unions |= plan.is::<UnionExec>();
        self.has_windows |= plan.is::<BoundedWindowAggExec>() || plan.is::<WindowAggExec>();
        let is_limited = plan.fetch().is_some();
        self.has_limited_sorts |= is_limited && plan.is::<SortExec>();
        self.has_limits |= is_limited || plan.is::<GlobalLimitExec>();
        for child in plan.children() {
            self.add(child);
        }
    }
}

/// Moves projections down to where rows come to be, or out of the plan. DataFusion's ProjectionPushdown, except for
/// merge joins with a condition beside the equality of keys: pushed below one, a projection moves the columns, and
/// DataFusion leaves the condition as it was.
fn push_projections(
    plan: Arc<dyn ExecutionPlan>,
    options: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut has_conditions = false;
    let mut has_filtered_merges = false;
    plan.apply(|node| {
        has_conditions |= node
            .downcast_ref::<NestedLoopJoinExec>()
            .is_some_and(|join| join.filter().is_some());
        has_filtered_merges |= is_filtered_merge_join(node);
        Ok(TreeNodeRecursion::Continue)
    })?;
    if has_conditions && !has_filtered_merges {
        let pushed = ProjectionPushdown::new().optimize(Arc::clone(&plan), options)?;
        return with_nodes_of(&plan, pushed);
    }
    pushed_projections(plan)
}

fn pushed_projections(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let is_movable = |plan: &Arc<dyn ExecutionPlan>| {
        let projection = plan.downcast_ref::<ProjectionExec>();
        projection.is_some_and(|above| !is_filtered_merge_join(above.input()))
    };
    let plan = match is_movable(&plan) {
        true => remove_unnecessary_projections(with_lower_pushed(plan)?)?.data,
        false => plan,
    };
    let children = plan.children().into_iter().cloned();
    let children = children
        .map(pushed_projections)
        .collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(plan, children)
}

/// A projection over another one that stands on a sort. They become one, and that goes below the sort. If it leaves out
/// what is sorted by, it could not; then the lower one goes there alone.
fn with_lower_pushed(upper: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let is_sort = |plan: &Arc<dyn ExecutionPlan>| {
        plan.is::<SortExec>() || plan.is::<SortPreservingMergeExec>()
    };
    let stands_on_sort = |lower: &Arc<dyn ExecutionPlan>| {
        let projection = lower.downcast_ref::<ProjectionExec>();
        projection.is_some_and(|lower| is_sort(lower.input()))
    };
    let lower = upper.children().pop().cloned();
    let Some(lower) = lower.filter(stands_on_sort) else {
        return Ok(upper);
    };
    let both = remove_unnecessary_projections(Arc::clone(&upper))?;
    if both.transformed && !both.data.is::<ProjectionExec>() {
        return Ok(both.data);
    }
    let pushed = remove_unnecessary_projections(lower)?;
    match pushed.transformed {
        true => replace_children_if_necessary(upper, vec![pushed.data]),
        false => Ok(upper),
    }
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

/// Sorts the rows of all workers together where each worker sorts its own, and those of a union where each of its parts
/// is sorted. One sort has all of the memory, and merges when no other one holds any. To be done after the
/// [rules](apply), of which one divides sorts between workers.
pub fn sort_in_one_stream(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let sorted = plan.transform_up(|node| {
        let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>() else {
            return Ok(Transformed::no(node));
        };
        let Some((unsorted, keys)) = without_sorts(merge)? else {
            return Ok(Transformed::no(node));
        };
        let sort = SortExec::new(keys, one_stream(unsorted)).with_fetch(merge.fetch());
        let planned = match merge.input().children().as_slice() {
            [first, ..] if merge.input().is::<UnionExec>() => *first,
            _ => merge.input(),
        };
        Ok(Transformed::yes(in_place_of(planned, Arc::new(sort))))
    })?;
    Ok(sorted.data)
}

/// What the sorts below a merge sort, and by what, if there is nothing else that orders its rows. Their keys may have
/// bounds that those of the merge do not have.
fn without_sorts(
    merge: &SortPreservingMergeExec,
) -> Result<Option<(Arc<dyn ExecutionPlan>, LexOrdering)>> {
    let unsorted = |plan: &Arc<dyn ExecutionPlan>| {
        let sort = plan.downcast_ref::<SortExec>();
        let sort = sort.filter(|sort| sort.fetch().is_none() || sort.fetch() == merge.fetch());
        sort.map(|sort| (Arc::clone(sort.input()), sort.expr().clone()))
    };
    let input = merge.input();
    if !input.is::<UnionExec>() {
        return Ok(unsorted(input));
    }
    let parts = input.children().into_iter().map(unsorted);
    let Some(parts) = parts.collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let (parts, mut keys): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    // Columns of a union are called as those of its first part.
    let keys = keys.swap_remove(0);
    let union = replace_children_if_necessary(Arc::clone(input), parts)?;
    Ok(Some((union, keys)))
}

/// Sorts by more keys than these do not look for the first rows. A condition says which rows may still be among them:
/// it compares each key where all before it are equal, so it grows with the square of their number.
const MAX_TOP_K_KEYS: usize = 16;

/// Sorts all rows where the first ones alone are wanted, by many keys, or more than `most` of them: a sort of the first
/// ones holds them in memory, one of all rows can spill. To be done after the [rules](apply), of which one would put
/// the limit back into the sort.
pub fn sort_all_rows(plan: Arc<dyn ExecutionPlan>, most: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let sorted = plan.transform_up(|node| {
        let Some(sort) = node.downcast_ref::<SortExec>() else {
            return Ok(Transformed::no(node));
        };
        let is_meant = |fetch: &usize| *fetch > most || sort.expr().len() > MAX_TOP_K_KEYS;
        let Some(fetch) = sort.fetch().filter(is_meant) else {
            return Ok(Transformed::no(node));
        };
        let all = SortExec::new(sort.expr().clone(), Arc::clone(sort.input()))
            .with_preserve_partitioning(sort.preserve_partitioning());
        let all = in_place_of(&node, Arc::new(all));
        let limited: Arc<dyn ExecutionPlan> = match all.output_partitioning().partition_count() {
            1 => Arc::new(GlobalLimitExec::new(all, 0, Some(fetch))),
            _ => Arc::new(LocalLimitExec::new(all, fetch)),
        };
        Ok(Transformed::yes(limited))
    })?;
    Ok(sorted.data)
}

fn is_filtered_merge_join(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<SortMergeJoinExec>()
        .is_some_and(|join| join.filter().is_some())
}

/// The rows of all streams in one, in any order.
pub(crate) fn one_stream(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.output_partitioning().partition_count() {
        1 => plan,
        _ => Arc::new(CoalescePartitionsExec::new(plan)),
    }
}

/// What the expressions of the session's statements may make.
pub(crate) fn result_limits(context: &PlannerContext) -> Option<&ResultLimits> {
    context.task.session_config().options().extensions.get()
}
