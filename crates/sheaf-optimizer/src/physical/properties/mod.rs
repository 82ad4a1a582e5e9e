//! Gives each operator what it requires of its inputs: rows in one stream or divided by keys, and in an order.
//!
//! One walk from below. The planner has put sorts where it knows that they are needed. It leaves open where rows are
//! exchanged between workers, and whether an order survives that. When an operator is reached, its inputs have all that
//! they require themselves. So what they deliver is known, and it is compared with what the operator requires:
//!
//! ```text
//!   required         delivered                      put between
//!   one stream       several, in no order           CoalescePartitions
//!   one stream       several, each in order         SortPreservingMerge, if anything above wants the order
//!   by keys          otherwise divided              Repartition
//!   an order         another one                    Sort, in each stream
//!   both             several, in another order      SortPreservingMerge of Sorts
//! ```
//!
//! An order that nothing has asked for yet is kept on its way up, where that is possible: the operator that wants it
//! may come later. If one comes that would lose it, the exchanges below become plain ones. What was sorted for nobody
//! is not sorted. At the end sorts [sink](sink) to where there is less to sort, or where a sort is already.
//!
//! An operator is made anew only if an input has changed; most plans in one stream come out as they went in. The rules
//! follow DataFusion's EnsureRequirements, which does the same in seven walks, each over a copy of the tree.

mod sink;

use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_common::stats::Precision;
use datafusion_common::{DataFusionError, Result, internal_err};
use datafusion_expr::logical_plan::Aggregate;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::{
    Distribution, LexOrdering, LexRequirement, OrderingRequirements, Partitioning, PhysicalExpr,
};
use datafusion_physical_optimizer::PhysicalOptimizerRule;
use datafusion_physical_optimizer::combine_partial_final_agg::CombinePartialFinalAggregate;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::execution_plan::EmissionType;
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode, SortMergeJoinExec};
use datafusion_physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion_physical_plan::union::{InterleaveExec, UnionExec, can_interleave};
use datafusion_physical_plan::windows::{
    BoundedWindowAggExec, WindowAggExec, get_best_fitting_window,
};
use datafusion_physical_plan::{
    ChildSatisfactionOptions, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, InputOrderMode, replace_children_if_necessary,
};
use sheaf_exec::operator::common_tables_exec::CommonTablesExec;
use sheaf_exec::operator::node_id::in_place_of;
use sheaf_exec::operator::subquery_values_exec::SubqueryValuesExec;

/// The plan with what its operators require; see the module's comment. Rows are divided between so many workers.
pub(crate) fn meet_requirements(
    plan: Arc<dyn ExecutionPlan>,
    workers: usize,
    options: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let requirements = Requirements { workers, options };
    let mut met = requirements.meet(&plan, true)?;
    if met.keeps_order {
        // Nothing has asked for it.
        met = met.in_no_order()?;
    }
    match has_sort(&met.plan) {
        true => sink::sink_sorts(met.plan),
        false => Ok(met.plan),
    }
}

fn has_sort(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<SortExec>() || plan.children().into_iter().any(has_sort)
}

/// An operator whose requirements are met, and those of all below it.
struct Met {
    plan: Arc<dyn ExecutionPlan>,
    /// Exchanges below keep an order that reaches the top, and that nothing has asked for.
    keeps_order: bool,
    /// The order of a sort below reaches the top.
    is_sorted: bool,
}

impl Met {
    fn new(plan: Arc<dyn ExecutionPlan>) -> Met {
        Met {
            plan,
            keeps_order: false,
            is_sorted: false,
        }
    }

    fn streams(&self) -> usize {
        self.plan.output_partitioning().partition_count()
    }

    fn is_in_order(&self, order: &LexRequirement) -> Result<bool> {
        let properties = self.plan.equivalence_properties();
        properties.ordering_satisfy_requirement(order.iter().cloned())
    }

    /// The same rows from exchanges that keep no order.
    fn in_no_order(self) -> Result<Met> {
        Ok(Met {
            plan: plain_exchanges(&self.plan, false)?,
            keeps_order: false,
            ..self
        })
    }

    /// The same rows without the sort whose order reaches the top.
    fn unsorted(self, in_one_stream: bool) -> Result<Met> {
        Ok(Met {
            plan: without_sort(&self.plan, in_one_stream)?,
            is_sorted: false,
            ..self
        })
    }
}

struct Requirements<'o> {
    workers: usize,
    options: &'o ConfigOptions,
}

impl Requirements<'_> {
    /// `is_last`: what the operator delivers, in its order, is the result.
    fn meet(&self, plan: &Arc<dyn ExecutionPlan>, is_last: bool) -> Result<Met> {
        let children = plan.children();
        if let ([child], true) = (children.as_slice(), is_plain_exchange(plan)) {
            // An exchange is made anew where one is needed.
            let met = self.meet(child, false)?;
            return match plan.downcast_ref::<SortPreservingMergeExec>() {
                Some(merge) if is_last => {
                    let order = LexRequirement::from(merge.expr().clone());
                    let met = sorted(in_one_stream(met, true)?, order)?;
                    Ok(met.merged_in_place_of(plan))
                }
                _ => Ok(met),
            };
        }
        if children.is_empty() {
            return Ok(Met::new(Arc::clone(plan)));
        }
        let last = is_last.then(|| last_before(plan)).flatten();
        let mut inputs = Vec::with_capacity(children.len());
        for (position, child) in children.into_iter().enumerate() {
            inputs.push(self.meet(child, last == Some(position))?);
        }
        let mut plan = over(Arc::clone(plan), &inputs)?;
        if let Some(sort) = plan.downcast_ref::<SortExec>() {
            return match inputs.pop() {
                Some(input) => sort_over(&plan, sort, input),
                None => internal_err!("a sort without an input"),
            };
        }
        if let Some(window) = fitting_window(&plan)? {
            plan = in_place_of(&plan, window);
        }
        self.divide(&plan, &mut inputs)?;
        self.order(&plan, &mut inputs)?;
        plan = over(plan, &inputs)?;
        plan = finished(plan, &mut inputs, self.options)?;
        let is_sorted = hands_sort_on(&plan, &inputs);
        Ok(Met {
            keeps_order: inputs.iter().any(|input| input.keeps_order),
            is_sorted,
            plan,
        })
    }

    /// Divides the inputs between workers, or gathers them, as the operator requires.
    fn divide(&self, plan: &Arc<dyn ExecutionPlan>, inputs: &mut [Met]) -> Result<()> {
        let required = plan.input_distribution_requirements();
        let is_asked_for = |distribution: &Distribution| {
            !matches!(distribution, Distribution::UnspecifiedDistribution)
        };
        if !required.per_child_distributions().any(is_asked_for) {
            return Ok(());
        }
        let orders = plan.required_input_ordering();
        let maintains = plan.maintains_input_order();
        let by_keys = self.is_divided_by_keys(plan, &required, inputs)?;
        let is_join = is_divided_join(plan);
        for (position, input) in inputs.iter_mut().enumerate() {
            let keep_order = maintains[position] || orders[position].is_some();
            match required.child_distribution(position) {
                Some(Distribution::SinglePartition) => {
                    replace_with(input, |input| in_one_stream(input, keep_order))?;
                }
                Some(distribution) => {
                    let Some(keys) = keys_of(distribution) else {
                        continue;
                    };
                    let needs = by_keys
                        && self.needs_exchange(&required, position, input, keys, is_join)?;
                    if needs {
                        replace_with(input, |input| self.exchanged(input, keys, keep_order))?;
                    }
                }
                None => {}
            }
        }
        self.divide_alike(plan, &required, inputs)
    }

    /// Whether inputs that have to be divided by keys are: if one comes in several streams, or may have many rows.
    fn is_divided_by_keys(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        required: &InputDistributionRequirements,
        inputs: &[Met],
    ) -> Result<bool> {
        let benefits = plan.benefits_from_input_partitioning();
        let distributions = required.per_child_distributions();
        for ((input, distribution), benefits) in inputs.iter().zip(distributions).zip(benefits) {
            if keys_of(distribution).is_none() {
                continue;
            }
            if input.streams() > 1 || benefits && self.may_have_many_rows(&input.plan)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn may_have_many_rows(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
        if self.workers == 1 {
            return Ok(false);
        }
        let known = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new())?;
        Ok(match known.num_rows {
            Precision::Exact(rows) => rows > self.options.execution.batch_size.get(),
            Precision::Inexact(_) | Precision::Absent => true,
        })
    }

    fn needs_exchange(
        &self,
        required: &InputDistributionRequirements,
        position: usize,
        input: &Met,
        keys: &[Arc<dyn PhysicalExpr>],
        is_join: bool,
    ) -> Result<bool> {
        let streams = input.streams();
        // Rows that are equal in all keys are together, too, if those that are equal in some are. But both sides of a
        // join have to be divided in the same way.
        let by_fewer_keys = streams >= self.options.optimizer.subset_repartition_threshold
            && !is_join
            && !names_grouping_set(keys);
        let satisfaction = required.child_satisfaction(
            position,
            input.plan.as_ref(),
            ChildSatisfactionOptions::new().with_allow_subset(by_fewer_keys),
        )?;
        let is_satisfied = satisfaction.is_satisfied();
        Ok(!is_satisfied || !by_fewer_keys && self.workers > streams)
    }

    fn exchanged(
        &self,
        input: Met,
        keys: &[Arc<dyn PhysicalExpr>],
        keep_order: bool,
    ) -> Result<Met> {
        let partitioning =
            Distribution::KeyPartitioned(keys.to_vec()).create_partitioning(self.workers);
        let exchange_of = |plan: &Arc<dyn ExecutionPlan>| {
            let exchange = RepartitionExec::try_new(Arc::clone(plan), partitioning.clone())?;
            Ok::<_, DataFusionError>(match keep_order {
                true => exchange.with_preserve_order(),
                false => exchange,
            })
        };
        let exchange = exchange_of(&input.plan)?;
        if input.is_sorted && !exchange.maintains_input_order()[0] {
            let input = input.unsorted(false)?;
            return Ok(Met::new(Arc::new(exchange_of(&input.plan)?)));
        }
        Ok(Met {
            keeps_order: exchange.preserve_order() || keep_order && input.keeps_order,
            is_sorted: input.is_sorted,
            plan: Arc::new(exchange),
        })
    }

    /// Streams with the same number of a join's two sides have the same keys.
    fn divide_alike(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        required: &InputDistributionRequirements,
        inputs: &mut [Met],
    ) -> Result<()> {
        let mut is_divided = vec![false; inputs.len()];
        loop {
            let plans: Vec<&dyn ExecutionPlan> =
                inputs.iter().map(|input| input.plan.as_ref()).collect();
            let unequal = required.unsatisfied_co_partitioned_children(plan.name(), &plans)?;
            if unequal.is_empty() {
                return Ok(());
            }
            let mut is_changed = false;
            for position in unequal {
                let keys = required.child_distribution(position).and_then(keys_of);
                let (Some(keys), false) = (keys, is_divided[position]) else {
                    continue;
                };
                let input = &mut inputs[position];
                let partitioning = input.plan.output_partitioning();
                let is_right = matches!(partitioning, Partitioning::Hash(_, streams) if *streams == self.workers);
                let options = ChildSatisfactionOptions::new();
                let satisfaction =
                    required.child_satisfaction(position, input.plan.as_ref(), options)?;
                if is_right && satisfaction.is_satisfied() {
                    continue;
                }
                replace_with(input, |input| self.exchanged(input, keys, true))?;
                is_divided[position] = true;
                is_changed = true;
            }
            if !is_changed {
                return internal_err!("inputs of {} cannot be divided alike", plan.name());
            }
        }
    }

    /// Sorts the inputs as the operator requires, and keeps no order that it does not hand on.
    fn order(&self, plan: &Arc<dyn ExecutionPlan>, inputs: &mut [Met]) -> Result<()> {
        let orders = plan.required_input_ordering();
        let maintains = plan.maintains_input_order();
        let required = plan.input_distribution_requirements();
        for (position, (input, order)) in inputs.iter_mut().zip(orders).enumerate() {
            let distribution = required.child_distribution(position);
            let is_free = matches!(
                distribution,
                None | Some(Distribution::UnspecifiedDistribution)
            );
            match order {
                Some(order) => {
                    let order = order.into_single();
                    if input.keeps_order && streams_by_order(plan, &input.plan)? {
                        input.keeps_order = false;
                        if input.is_in_order(&order)? {
                            continue;
                        }
                    }
                    replace_with(input, |input| sorted(input, order))?;
                }
                None => {
                    if input.keeps_order
                        && !maintains[position]
                        && (is_free || !streams_by_order(plan, &input.plan)?)
                    {
                        replace_with(input, Met::in_no_order)?;
                    }
                    if input.is_sorted && !maintains[position] {
                        let in_one = matches!(distribution, Some(Distribution::SinglePartition));
                        replace_with(input, |input| input.unsorted(in_one))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Puts what `change` makes of a value in its place.
fn replace_with(input: &mut Met, change: impl FnOnce(Met) -> Result<Met>) -> Result<()> {
    let before = Met {
        plan: Arc::clone(&input.plan),
        ..*input
    };
    *input = change(before)?;
    Ok(())
}

/// The operator over these inputs.
fn over(plan: Arc<dyn ExecutionPlan>, inputs: &[Met]) -> Result<Arc<dyn ExecutionPlan>> {
    let children = plan.children().into_iter();
    let is_same = children
        .zip(inputs)
        .all(|(child, input)| Arc::ptr_eq(child, &input.plan));
    if is_same {
        return Ok(plan);
    }
    let inputs = inputs.iter().map(|input| Arc::clone(&input.plan));
    replace_children_if_necessary(plan, inputs.collect())
}

/// Operators that only exchange rows between workers, or gather them.
fn is_plain_exchange(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_exchange = plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<SortPreservingMergeExec>();
    is_exchange && plan.fetch().is_none()
}

/// The input whose order is that of the result, unless the operator makes it itself.
fn last_before(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    // These hand on the rows of their first input, and have others besides.
    let is_first = plan.is::<SubqueryValuesExec>() || plan.is::<CommonTablesExec>();
    let is_one = plan.children().len() == 1 || is_first;
    if !is_one || plan.is::<SortExec>() || !plan.maintains_input_order()[0] {
        return None;
    }
    match plan.required_input_ordering().swap_remove(0) {
        None | Some(OrderingRequirements::Soft(_)) => Some(0),
        Some(OrderingRequirements::Hard(_)) => None,
    }
}

#[expect(deprecated, reason = "operators of DataFusion's may still say it so")]
fn keys_of(distribution: &Distribution) -> Option<&[Arc<dyn PhysicalExpr>]> {
    match distribution {
        Distribution::HashPartitioned(keys) | Distribution::KeyPartitioned(keys) => Some(keys),
        Distribution::SinglePartition | Distribution::UnspecifiedDistribution => None,
    }
}

fn names_grouping_set(keys: &[Arc<dyn PhysicalExpr>]) -> bool {
    keys.iter().any(|key| {
        let column = key.downcast_ref::<Column>();
        column.is_some_and(|column| column.name() == Aggregate::INTERNAL_GROUPING_ID)
    })
}

fn is_divided_join(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let join = plan.downcast_ref::<HashJoinExec>();
    join.is_some_and(|join| *join.partition_mode() == PartitionMode::Partitioned)
        || plan.is::<SortMergeJoinExec>()
}

/// The rows in one stream; in the order of each stream if that shall be kept.
fn in_one_stream(input: Met, keep_order: bool) -> Result<Met> {
    if input.streams() == 1 {
        return Ok(input);
    }
    let order = input.plan.output_ordering().filter(|_| keep_order);
    if let Some(order) = order.cloned() {
        return Ok(Met {
            plan: Arc::new(SortPreservingMergeExec::new(order, input.plan)),
            keeps_order: true,
            is_sorted: input.is_sorted,
        });
    }
    let input = match input.is_sorted {
        true => input.unsorted(false)?,
        false => input,
    };
    Ok(Met::new(match input.streams() {
        1 => input.plan,
        _ => Arc::new(CoalescePartitionsExec::new(input.plan)),
    }))
}

/// Whether the operator delivers rows early only because of the order that exchanges below it keep.
fn streams_by_order(plan: &Arc<dyn ExecutionPlan>, input: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    if plan.children().len() != 1 || !plan.maintains_input_order()[0] {
        return Ok(false);
    }
    let ordered = replace_children_if_necessary(Arc::clone(plan), vec![Arc::clone(input)])?;
    if ordered.pipeline_behavior() == EmissionType::Final {
        return Ok(false);
    }
    let gathered = Arc::new(CoalescePartitionsExec::new(Arc::clone(input)));
    let unordered = replace_children_if_necessary(Arc::clone(plan), vec![gathered])?;
    Ok(unordered.pipeline_behavior() == EmissionType::Final)
}

/// An order as a sort takes it: what has one value needs no sorting.
fn sort_keys(plan: &Arc<dyn ExecutionPlan>, order: LexRequirement) -> Option<LexOrdering> {
    let properties = plan.equivalence_properties();
    let varies = order
        .into_iter()
        .filter(|key| properties.is_expr_constant(&key.expr).is_none());
    LexOrdering::new(varies.map(Into::into).collect::<Vec<_>>())
}

/// The rows in an order that is required: they have it, or a merge keeps it, or they are sorted.
fn sorted(input: Met, order: LexRequirement) -> Result<Met> {
    let is_in_order = input.is_in_order(&order)?;
    if !input.keeps_order {
        return match is_in_order {
            true => Ok(input),
            false => sort(input, order),
        };
    }
    if is_in_order {
        // Merging streams is cheap; an exchange that merges is not.
        let merged = Met {
            plan: plain_exchanges(&input.plan, true)?,
            keeps_order: false,
            ..input
        };
        if merged.is_in_order(&order)? {
            return Ok(merged.merged_by(order));
        }
        let plain = merged.in_no_order()?;
        return sort(plain, order);
    }
    sort(input.in_no_order()?, order)
}

impl Met {
    /// A merge at the top takes the place of one that was planned.
    fn merged_in_place_of(self, planned: &Arc<dyn ExecutionPlan>) -> Met {
        match self.plan.is::<SortPreservingMergeExec>() {
            true => Met {
                plan: in_place_of(planned, self.plan),
                ..self
            },
            false => self,
        }
    }

    /// A merge at the top compares by what is required, not by all that the streams are ordered by.
    fn merged_by(self, order: LexRequirement) -> Met {
        let Some(merge) = self.plan.downcast_ref::<SortPreservingMergeExec>() else {
            return self;
        };
        let (input, fetch) = (Arc::clone(merge.input()), merge.fetch());
        match sort_keys(&input, order) {
            Some(keys) if merge.expr() != &keys => {
                let again = SortPreservingMergeExec::new(keys, input).with_fetch(fetch);
                Met {
                    plan: in_place_of(&self.plan, Arc::new(again)),
                    ..self
                }
            }
            _ => self,
        }
    }
}

/// Sorts; several streams are sorted each, and merged if they were gathered before.
fn sort(input: Met, order: LexRequirement) -> Result<Met> {
    let input = match input.is_sorted {
        true => {
            let in_one_stream = input.streams() == 1;
            input.unsorted(in_one_stream)?
        }
        false => input,
    };
    let Some(keys) = sort_keys(&input.plan, order.clone()) else {
        return Ok(input);
    };
    let gathered = input.plan.downcast_ref::<CoalescePartitionsExec>();
    let plan: Arc<dyn ExecutionPlan> = match gathered.filter(|gather| gather.fetch().is_none()) {
        Some(gather) => sorted_streams(&keys, (gather.input(), None), None)?,
        None => {
            let sort = SortExec::new(keys, Arc::clone(&input.plan));
            Arc::new(sort.with_preserve_partitioning(input.streams() > 1))
        }
    };
    Ok(Met {
        plan,
        keeps_order: false,
        is_sorted: true,
    })
}

/// The first rows of several streams, each sorted, as one. `planned`: the sort that they take the place of.
fn sorted_streams(
    keys: &LexOrdering,
    (input, fetch): (&Arc<dyn ExecutionPlan>, Option<usize>),
    planned: Option<&Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let properties = input.equivalence_properties();
    let streams: Arc<dyn ExecutionPlan> = match properties.ordering_satisfy(keys.clone())? {
        true => Arc::clone(input),
        false => {
            let sort = SortExec::new(keys.clone(), Arc::clone(input)).with_fetch(fetch);
            let sort = Arc::new(sort.with_preserve_partitioning(true));
            match planned {
                Some(planned) => in_place_of(planned, sort),
                None => sort,
            }
        }
    };
    let merge = SortPreservingMergeExec::new(keys.clone(), streams);
    Ok(Arc::new(merge.with_fetch(fetch)))
}

/// A sort that the planner has put into the plan, over its input.
fn sort_over(plan: &Arc<dyn ExecutionPlan>, sort: &SortExec, input: Met) -> Result<Met> {
    let merged = input.keeps_order.then(|| Met {
        plan: Arc::clone(&input.plan),
        ..input
    });
    let input = match input.keeps_order {
        true => input.in_no_order()?,
        false => input,
    };
    let is_in_order = |input: &Met| {
        let properties = input.plan.equivalence_properties();
        properties.ordering_satisfy(sort.expr().iter().cloned())
    };
    let gathers = |input: &Met| input.streams() > 1 && !sort.preserve_partitioning();
    if is_in_order(&input)? {
        let plan: Arc<dyn ExecutionPlan> = match (gathers(&input), sort.fetch()) {
            (true, fetch) => {
                let merge = SortPreservingMergeExec::new(sort.expr().clone(), input.plan);
                Arc::new(merge.with_fetch(fetch))
            }
            (false, None) => input.plan,
            (false, Some(fetch)) if input.streams() == 1 => {
                let mut limit = GlobalLimitExec::new(input.plan, 0, Some(fetch));
                limit.set_required_ordering(Some(sort.expr().clone()));
                Arc::new(limit)
            }
            (false, Some(fetch)) => {
                let mut limit = LocalLimitExec::new(input.plan, fetch);
                limit.set_required_ordering(Some(sort.expr().clone()));
                Arc::new(limit)
            }
        };
        return Ok(Met::new(plan));
    }
    if let (Some(merged), None) = (merged, sort.fetch()) {
        let merged = Met {
            plan: plain_exchanges(&merged.plan, true)?,
            keeps_order: false,
            ..merged
        };
        if is_in_order(&merged)? {
            if !gathers(&merged) {
                return Ok(merged);
            }
            let merge = SortPreservingMergeExec::new(sort.expr().clone(), merged.plan);
            return Ok(Met::new(Arc::new(merge)));
        }
    }
    let input = match input.is_sorted {
        true => input.unsorted(false)?,
        false => input,
    };
    // Without the sort below, which may have gathered them, the rows may come in several streams.
    let plan: Arc<dyn ExecutionPlan> = match gathers(&input) {
        true => sorted_streams(sort.expr(), (&input.plan, sort.fetch()), Some(plan))?,
        false if Arc::ptr_eq(&input.plan, sort.input()) => Arc::clone(plan),
        false => {
            let again = SortExec::new(sort.expr().clone(), input.plan).with_fetch(sort.fetch());
            let again = again.with_preserve_partitioning(sort.preserve_partitioning());
            in_place_of(plan, Arc::new(again))
        }
    };
    Ok(Met {
        plan,
        keeps_order: false,
        is_sorted: true,
    })
}

/// A window operator that runs over its input in the order that this has, if there is one.
fn fitting_window(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(window) = plan.downcast_ref::<WindowAggExec>() {
        let (expressions, input) = (window.window_expr(), window.input());
        return get_best_fitting_window(expressions, input, &window.partition_keys(), None);
    }
    let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() else {
        return Ok(None);
    };
    let (expressions, input) = (window.window_expr(), window.input());
    let observer = window.state_observer().cloned();
    get_best_fitting_window(expressions, input, &window.partition_keys(), observer)
}

/// What becomes of an operator when its inputs are as it requires.
fn finished(
    plan: Arc<dyn ExecutionPlan>,
    inputs: &mut [Met],
    options: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.is::<UnionExec>() {
        let children = plan.children();
        if can_interleave(children.iter().copied()) {
            let children = children.into_iter().cloned().collect();
            return Ok(in_place_of(
                &plan,
                Arc::new(InterleaveExec::try_new(children)?),
            ));
        }
        return Ok(plan);
    }
    let Some(input) = inputs.first_mut() else {
        return Ok(plan);
    };
    if let Some(groups) = in_one_step(&plan, &input.plan, options)? {
        return Ok(groups);
    }
    if (plan.is::<WindowAggExec>() || plan.is::<BoundedWindowAggExec>()) && input.is_sorted {
        let window = window_of_unsorted(Arc::clone(&plan), input)?;
        return Ok(in_place_of(&plan, window));
    }
    if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>()
        && input.streams() == 1
    {
        let Some(fetch) = merge.fetch() else {
            return Ok(Arc::clone(&input.plan));
        };
        let mut limit = LocalLimitExec::new(Arc::clone(&input.plan), fetch);
        limit.set_required_ordering(plan.output_ordering().cloned());
        return Ok(Arc::new(limit));
    }
    Ok(plan)
}

/// Groups that are made in two steps with nothing between them, in one.
fn in_one_step(
    plan: &Arc<dyn ExecutionPlan>,
    input: &Arc<dyn ExecutionPlan>,
    options: &ConfigOptions,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let is_final = plan.downcast_ref::<AggregateExec>().is_some_and(|groups| {
        matches!(
            groups.mode(),
            AggregateMode::Final | AggregateMode::FinalPartitioned
        )
    });
    if !is_final || !input.is::<AggregateExec>() {
        return Ok(None);
    }
    let combined = CombinePartialFinalAggregate::new().optimize(Arc::clone(plan), options)?;
    Ok(Some(in_place_of(plan, combined)))
}

/// A window operator may do without the sort below it, if it can run in the order that is there without it.
fn window_of_unsorted(
    plan: Arc<dyn ExecutionPlan>,
    input: &mut Met,
) -> Result<Arc<dyn ExecutionPlan>> {
    // What a window requires says nothing: DataFusion makes one of one stream one of many when it gets another input.
    let in_one = input.streams() == 1;
    let unsorted = Met {
        plan: without_sort(&input.plan, in_one)?,
        keeps_order: false,
        is_sorted: false,
    };
    let (expressions, keys, observer) = if let Some(window) = plan.downcast_ref::<WindowAggExec>() {
        (window.window_expr(), window.partition_keys(), None)
    } else if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() {
        let observer = window.state_observer().cloned();
        (window.window_expr(), window.partition_keys(), observer)
    } else {
        return Ok(plan);
    };
    let fitting = get_best_fitting_window(expressions, &unsorted.plan, &keys, observer.clone())?;
    if let Some(fitting) = fitting {
        *input = unsorted;
        return Ok(fitting);
    }
    let order = plan.required_input_ordering().swap_remove(0);
    *input = match order {
        Some(order) => sort(unsorted, order.into_single())?,
        None => unsorted,
    };
    let child = Arc::clone(&input.plan);
    let is_divided = !in_one;
    let expressions = expressions.to_vec();
    if expressions
        .iter()
        .all(|window| window.uses_bounded_memory())
    {
        let mode = InputOrderMode::Sorted;
        let window = BoundedWindowAggExec::try_new(expressions, child, mode, is_divided)?;
        return Ok(Arc::new(window.with_state_observer(observer)?));
    }
    Ok(Arc::new(WindowAggExec::try_new(
        expressions,
        child,
        is_divided,
    )?))
}

/// Whether the order of a sort below an input is that of the operator, too.
fn hands_sort_on(plan: &Arc<dyn ExecutionPlan>, inputs: &[Met]) -> bool {
    if !inputs.iter().any(|input| input.is_sorted)
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
    {
        return false;
    }
    let merges = plan.is::<SortPreservingMergeExec>();
    let orders = plan.required_input_ordering();
    let maintains = plan.maintains_input_order();
    let mut inputs = inputs.iter().zip(orders).zip(maintains);
    inputs.any(|((input, order), maintains)| {
        input.is_sorted && (merges || maintains && order.is_none())
    })
}

/// The inputs whose order is handed on without being required.
fn handed_on(plan: &Arc<dyn ExecutionPlan>) -> Vec<bool> {
    let orders = plan.required_input_ordering();
    let maintains = plan.maintains_input_order().into_iter();
    let handed_on = maintains
        .zip(orders)
        .map(|(maintains, order)| maintains && order.is_none());
    handed_on.collect()
}

/// The same rows from exchanges that keep no order, or only from merges that do. What was sorted to be merged stays.
fn plain_exchanges(
    plan: &Arc<dyn ExecutionPlan>,
    keep_merges: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>()
        && merge.fetch().is_none()
    {
        if merge.input().is::<SortExec>() {
            return Ok(Arc::clone(plan));
        }
        let input = plain_exchanges(merge.input(), keep_merges)?;
        return Ok(match input.output_ordering().filter(|_| keep_merges) {
            Some(_) if Arc::ptr_eq(&input, merge.input()) => Arc::clone(plan),
            Some(order) => {
                let order = order.clone();
                Arc::new(SortPreservingMergeExec::new(order, input))
            }
            None => Arc::new(CoalescePartitionsExec::new(input)),
        });
    }
    if let Some(exchange) = plan.downcast_ref::<RepartitionExec>()
        && exchange.preserve_order()
    {
        let input = plain_exchanges(exchange.input(), keep_merges)?;
        let partitioning = exchange.partitioning().clone();
        return Ok(Arc::new(RepartitionExec::try_new(input, partitioning)?));
    }
    let children = plan.children().into_iter().zip(handed_on(plan));
    let children = children.map(|(child, is_handed_on)| match is_handed_on {
        true => plain_exchanges(child, keep_merges),
        false => Ok(Arc::clone(child)),
    });
    let children = children.collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(Arc::clone(plan), children)
}

/// The same rows without the sort whose order reaches the top, unless it takes the first rows.
fn without_sort(
    plan: &Arc<dyn ExecutionPlan>,
    in_one_stream: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = if let Some(sort) = plan.downcast_ref::<SortExec>() {
        match sort.fetch() {
            None => Arc::clone(sort.input()),
            Some(_) => Arc::clone(plan),
        }
    } else if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>()
        && merge.fetch().is_none()
    {
        without_sort(merge.input(), false)?
    } else if plan.is::<GlobalLimitExec>() || plan.is::<LocalLimitExec>() {
        Arc::clone(plan)
    } else if is_plain_exchange(plan) {
        let children = plan.children().into_iter();
        let children = children.map(|child| without_sort(child, false));
        let children = children.collect::<Result<Vec<_>>>()?;
        replace_children_if_necessary(Arc::clone(plan), children)?
    } else {
        let required = plan.input_distribution_requirements();
        let children = plan.children().into_iter().zip(handed_on(plan));
        let children = children
            .enumerate()
            .map(|(position, (child, is_handed_on))| {
                let distribution = required.child_distribution(position);
                let in_one = matches!(distribution, Some(Distribution::SinglePartition));
                match is_handed_on {
                    true => without_sort(child, in_one),
                    false => Ok(Arc::clone(child)),
                }
            });
        let children = children.collect::<Result<Vec<_>>>()?;
        replace_children_if_necessary(Arc::clone(plan), children)?
    };
    if !in_one_stream || plan.output_partitioning().partition_count() == 1 {
        return Ok(plan);
    }
    Ok(match plan.output_ordering().cloned() {
        Some(order) => Arc::new(SortPreservingMergeExec::new(order, plan)),
        None => Arc::new(CoalescePartitionsExec::new(plan)),
    })
}
