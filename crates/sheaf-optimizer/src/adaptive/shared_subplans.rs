//! A subplan that a plan has several times runs once.
//!
//! Subqueries are rewritten and planned where they stand, so equal parts come out as equal operators. Examples are both
//! copies of a CTE that is named twice, and the restricted table at the bottom of a join and of the grouping that was
//! reduced to it ([`crate::join::reduction`]). When the plan is complete they are searched from the top down, and a
//! [`SharedExec`] takes the place of each:
//!
//! ```text
//!   Aggregate                    SharedExec 1 -- Aggregate -- lineitem        (the first one)
//!     '- lineitem       =>
//!   Aggregate                    SharedExec 1                                 (the rows of the first one)
//!     '- lineitem
//! ```
//!
//! This costs the memory of the rows, so it is done where the rows are few and the work is much. It only ever saves:
//! access paths and join orders have been chosen as if each part ran by itself.
//!
//! Two operators are equal only if all that they do is known here and is the same: the kinds in [`same_operator`], with
//! expressions that always have the same value. Below a plan that may be abandoned, and in the repeated part of a
//! recursive query, nothing is shared: what runs there may run again.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_physical_expr::aggregate::AggregateFunctionExpr;
use datafusion_physical_expr::{Partitioning, PhysicalExpr};
use datafusion_physical_plan::aggregates::{AggregateExec, PhysicalGroupBy};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use sheaf_exec::keyed_join::exec::KeyedJoinExec;
use sheaf_exec::operator::recursive_exec::RecursiveExec;
use sheaf_exec::operator::regret_exec::RegretExec;
use sheaf_exec::operator::scan_exec::ScanExec;
use sheaf_exec::operator::shared_exec::{MAX_KEPT_BYTES, SharedExec, is_repeatable, is_same};

use crate::PlannerContext;
use crate::explain::notes::NodeNotes;
use crate::json::{Json, Object};

/// What the second run must be estimated to cost for the first one's rows to be kept, in microseconds.
const LEAST_US: f64 = 500.0;

/// What it costs to keep a row, in microseconds: a copy of some words in memory.
const KEEP_US: f64 = 0.05;

/// Work that is saved must be worth so many times what it costs to keep its rows.
const WORTHWHILE: f64 = 4.0;

/// Bytes of a value that is kept, as far as the planner knows.
const VALUE_BYTES: f64 = 32.0;

/// Puts references to one run in the place of operators that `plan` has several times.
pub(crate) fn share(
    plan: Arc<dyn ExecutionPlan>,
    notes: &NodeNotes,
    context: &PlannerContext,
) -> Result<Arc<dyn ExecutionPlan>> {
    if !context.settings.switch.shared_subplans {
        return Ok(plan);
    }
    let mut candidates = Vec::new();
    find_candidates(&plan, &mut candidates);
    if candidates.len() < 2 {
        return Ok(plan);
    }
    let groups = equal_groups(&candidates, notes);
    if groups.is_empty() {
        return Ok(plan);
    }
    context.trace.outcome("shared_subplans", || {
        let groups = groups.iter().map(|group| {
            let estimate = Estimate::of(&group[0], notes);
            Object::new()
                .with("references", group.len())
                .with("rows", Json::count(estimate.rows))
                .with("saved_cost", Json::fixed(estimate.cost_us, 2))
                .into()
        });
        Json::List(groups.collect())
    });
    replace(plan, &groups, context.settings.kept_bytes)
}

/// Tells an operator from others of the same plan.
fn address(plan: &Arc<dyn ExecutionPlan>) -> usize {
    Arc::as_ptr(plan).cast::<()>() as usize
}

/// Operators that may be shared, from the top down.
fn find_candidates<'p>(
    plan: &'p Arc<dyn ExecutionPlan>,
    candidates: &mut Vec<&'p Arc<dyn ExecutionPlan>>,
) {
    if plan.is::<RegretExec>() || plan.is::<RecursiveExec>() {
        return;
    }
    // Operators that only hand rows on are shared with those below them or not at all.
    if !plan.is::<CoalescePartitionsExec>() {
        candidates.push(plan);
    }
    for child in plan.children() {
        find_candidates(child, candidates);
    }
}

/// Operators that are equal, each with everything below it, and worth being shared; the topmost ones of them.
fn equal_groups(
    candidates: &[&Arc<dyn ExecutionPlan>],
    notes: &NodeNotes,
) -> Vec<Vec<Arc<dyn ExecutionPlan>>> {
    let mut groups: Vec<Vec<Arc<dyn ExecutionPlan>>> = Vec::new();
    let mut taken: Vec<usize> = Vec::new();
    for (position, first) in candidates.iter().enumerate() {
        if taken.contains(&address(first)) || !Estimate::of(first, notes).is_worthwhile() {
            continue;
        }
        let twins: Vec<_> = candidates[position + 1..]
            .iter()
            .filter(|other| !taken.contains(&address(other)) && same_plan(first, other))
            .collect();
        if twins.is_empty() {
            continue;
        }
        let group: Vec<_> = std::iter::once(first)
            .chain(twins)
            .map(|plan| Arc::clone(plan))
            .collect();
        group.iter().for_each(|plan| take(plan, &mut taken));
        groups.push(group);
    }
    groups
}

/// Notes that an operator and all below it are in a group.
fn take(plan: &Arc<dyn ExecutionPlan>, taken: &mut Vec<usize>) {
    taken.push(address(plan));
    plan.children()
        .into_iter()
        .for_each(|child| take(child, taken));
}

fn replace(
    plan: Arc<dyn ExecutionPlan>,
    groups: &[Vec<Arc<dyn ExecutionPlan>>],
    kept_bytes: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut firsts: Vec<Option<SharedExec>> = Vec::new();
    firsts.resize_with(groups.len(), || None);
    let replaced = plan.transform_down(|node| {
        let is_node = |plan: &Arc<dyn ExecutionPlan>| address(plan) == address(&node);
        let Some(group) = groups.iter().position(|group| group.iter().any(is_node)) else {
            return Ok(Transformed::no(node));
        };
        let reference = match &firsts[group] {
            Some(first) => first.another(&node),
            None => {
                let first = SharedExec::first(group + 1, node, kept_bytes);
                let another = first.clone();
                firsts[group] = Some(first);
                another
            }
        };
        let reference: Arc<dyn ExecutionPlan> = Arc::new(reference);
        Ok(Transformed::new(reference, true, TreeNodeRecursion::Jump))
    })?;
    Ok(replaced.data)
}

/// What is known of an operator with all below it.
#[derive(Clone, Copy)]
struct Estimate {
    rows: f64,
    columns: usize,
    cost_us: f64,
}

impl Estimate {
    fn of(plan: &Arc<dyn ExecutionPlan>, notes: &NodeNotes) -> Estimate {
        let columns = plan.schema().fields().len();
        let mut operator = plan;
        loop {
            if let Some(note) = notes.of(operator) {
                return Estimate {
                    rows: note.rows,
                    columns,
                    cost_us: note.cost_us,
                };
            }
            match operator.children().as_slice() {
                [child] => operator = child,
                _ => {
                    return Estimate {
                        rows: f64::INFINITY,
                        columns,
                        cost_us: 0.0,
                    };
                }
            }
        }
    }

    fn is_worthwhile(self) -> bool {
        // Estimates may be wrong; what is too much then is found out when it runs.
        let bytes = self.rows * VALUE_BYTES * self.columns.max(1) as f64;
        self.cost_us >= LEAST_US
            && self.cost_us >= WORTHWHILE * KEEP_US * self.rows
            && bytes <= MAX_KEPT_BYTES as f64
    }
}

/// Whether two plans are sure to deliver the same rows, in the same partitions and order. Names of columns may differ.
fn same_plan(one: &Arc<dyn ExecutionPlan>, other: &Arc<dyn ExecutionPlan>) -> bool {
    let (children, other_children) = (one.children(), other.children());
    let partitions = one.output_partitioning().partition_count();
    partitions == other.output_partitioning().partition_count()
        && children.len() == other_children.len()
        && same_types(one, other)
        && same_operator(one, other)
        && children
            .into_iter()
            .zip(other_children)
            .all(|(child, other_child)| same_plan(child, other_child))
}

fn same_types(one: &Arc<dyn ExecutionPlan>, other: &Arc<dyn ExecutionPlan>) -> bool {
    let (one, other) = (one.schema(), other.schema());
    one.fields().len() == other.fields().len()
        && one
            .fields()
            .iter()
            .zip(other.fields())
            .all(|(field, other_field)| {
                field.data_type() == other_field.data_type()
                    && field.is_nullable() == other_field.is_nullable()
            })
}

/// Whether two operators are sure to do the same with the same input.
fn same_operator(one: &Arc<dyn ExecutionPlan>, other: &Arc<dyn ExecutionPlan>) -> bool {
    if let (Some(one), Some(other)) = both::<ScanExec>(one, other) {
        return one.reads_the_same(other);
    }
    if let (Some(one), Some(other)) = both::<KeyedJoinExec>(one, other) {
        return one.joins_the_same(other);
    }
    if let (Some(one), Some(other)) = both::<AggregateExec>(one, other) {
        return same_aggregates(one, other);
    }
    if let (Some(one), Some(other)) = both::<FilterExec>(one, other) {
        return is_same(one.predicate(), other.predicate())
            && is_repeatable(one.predicate())
            && one.projection() == other.projection()
            && one.fetch() == other.fetch();
    }
    if let (Some(one), Some(other)) = both::<ProjectionExec>(one, other) {
        return one.expr().len() == other.expr().len()
            && one
                .expr()
                .iter()
                .zip(other.expr())
                .all(|(one, other)| is_same(&one.expr, &other.expr) && is_repeatable(&one.expr));
    }
    if let (Some(one), Some(other)) = both::<RepartitionExec>(one, other) {
        return same_partitioning(one.partitioning(), other.partitioning())
            && one.preserve_order() == other.preserve_order();
    }
    match both::<CoalescePartitionsExec>(one, other) {
        (Some(one), Some(other)) => one.fetch() == other.fetch(),
        _ => false,
    }
}

fn both<'p, P: ExecutionPlan + 'static>(
    one: &'p Arc<dyn ExecutionPlan>,
    other: &'p Arc<dyn ExecutionPlan>,
) -> (Option<&'p P>, Option<&'p P>) {
    (one.downcast_ref::<P>(), other.downcast_ref::<P>())
}

fn same_partitioning(one: &Partitioning, other: &Partitioning) -> bool {
    match (one, other) {
        (Partitioning::Hash(own, partitions), Partitioning::Hash(others, other_partitions)) => {
            partitions == other_partitions
                && own.len() == others.len()
                && own
                    .iter()
                    .zip(others)
                    .all(|(own, other)| is_same(own, other))
        }
        (one, other) => one == other,
    }
}

fn same_aggregates(one: &AggregateExec, other: &AggregateExec) -> bool {
    let functions = one.aggr_expr().iter().zip(other.aggr_expr());
    one.mode() == other.mode()
        && same_groups(one.group_expr(), other.group_expr())
        && one.aggr_expr().len() == other.aggr_expr().len()
        && functions
            .into_iter()
            .all(|(function, other_function)| same_function(function, other_function))
        && one.filter_expr().len() == other.filter_expr().len()
        && one
            .filter_expr()
            .iter()
            .zip(other.filter_expr())
            .all(|filters| match filters {
                (None, None) => true,
                (Some(own), Some(other)) => is_same(own, other) && is_repeatable(own),
                _ => false,
            })
        && one.limit_options() == other.limit_options()
}

fn same_groups(one: &PhysicalGroupBy, other: &PhysicalGroupBy) -> bool {
    let same = |own: &[(Arc<dyn PhysicalExpr>, String)], others: &[_]| {
        let mut pairs = own.iter().zip(others);
        own.len() == others.len()
            && pairs.all(|((own, _), (other, _))| is_same(own, other) && is_repeatable(own))
    };
    same(one.expr(), other.expr())
        && same(one.null_expr(), other.null_expr())
        && one.groups() == other.groups()
}

fn same_function(one: &AggregateFunctionExpr, other: &AggregateFunctionExpr) -> bool {
    let (own, others) = (one.all_expressions(), other.all_expressions());
    let same = |own: &[Arc<dyn PhysicalExpr>], others: &[Arc<dyn PhysicalExpr>]| {
        let mut pairs = own.iter().zip(others);
        own.len() == others.len()
            && pairs.all(|(own, other)| is_same(own, other) && is_repeatable(own))
    };
    let options = |function: &AggregateFunctionExpr| -> Vec<_> {
        let order = function.order_bys().iter();
        order.map(|sort| sort.options).collect()
    };
    one.fun() == other.fun()
        && one.is_distinct() == other.is_distinct()
        && one.ignore_nulls() == other.ignore_nulls()
        && one.is_reversed() == other.is_reversed()
        && options(one) == options(other)
        && same(&own.args, &others.args)
        && same(&own.order_by_exprs, &others.order_by_exprs)
}
