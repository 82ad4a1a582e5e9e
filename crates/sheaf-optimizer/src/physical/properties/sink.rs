//! Sorts sink: below what hands rows on in their order, until they come to something that does not.
//!
//! ```text
//!   Sort a                        Projection a, b
//!     Projection a, b       =>      HashJoin
//!       HashJoin                      build
//!         build                       Sort a
//!         probe (a)                     probe (a)
//! ```
//!
//! There are fewer rows, or narrower ones, or a sort of the same rows is there already: then one of the two is left, by
//! the finer order. A sort that takes the first rows sinks only below what makes one row of each.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{JoinSide, JoinType, Result};
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::utils::collect_columns;
use datafusion_physical_expr::{
    Distribution, LexOrdering, LexRequirement, OrderingRequirements, PhysicalExpr,
    PhysicalSortExpr, PhysicalSortRequirement, add_offset_to_physical_sort_exprs,
};
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::execution_plan::CardinalityEffect;
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::joins::utils::calculate_join_output_ordering;
use datafusion_physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion_physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary,
};
use sheaf_exec::operator::node_id::{NodeId, of_node};

use super::sort_keys;

/// What is wanted of an operator by those above it.
#[derive(Default)]
struct Wish {
    order: Option<OrderingRequirements>,
    /// Only the first so many rows, in this order.
    fetch: Option<usize>,
    /// In one stream.
    gathered: bool,
    /// The sort that it is wanted for, if it sorts all the rows of one operator.
    planned: Option<NodeId>,
}

/// An order wanted of each input.
type Orders = Vec<Option<OrderingRequirements>>;

/// The plan with its sorts as far down as they can be; see the module's comment.
pub(super) fn sink_sorts(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.is::<SortExec>() {
        return sunk(&plan, Wish::default());
    }
    let orders = plan.required_input_ordering();
    with_wishes(&plan, orders, Wish::default())
}

fn sunk(plan: &Arc<dyn ExecutionPlan>, wish: Wish) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        return sunk_sort(plan, sort, wish);
    }
    let Some(order) = wish.order.clone() else {
        let nothing = vec![None; plan.children().len()];
        return with_wishes(plan, nothing, Wish::default());
    };
    let gathered = wish.gathered && plan.output_partitioning().partition_count() > 1;
    let properties = plan.equivalence_properties();
    if properties.ordering_satisfy_requirement(order.first().clone())? {
        if wish.fetch.is_none() {
            let orders = plan.required_input_ordering();
            let wish = Wish {
                gathered,
                ..Wish::default()
            };
            return with_wishes(plan, orders, wish);
        }
    } else if let Some(orders) = below(plan, &order, wish.fetch)? {
        let wish = Wish {
            order: None,
            fetch: smaller(plan.fetch(), wish.fetch),
            gathered,
            // What was estimated of it is not true of one among several.
            planned: wish.planned.filter(|_| orders.len() == 1),
        };
        return with_wishes(plan, orders, wish);
    }
    let input = sunk(plan, Wish::default())?;
    let wish = Wish { gathered, ..wish };
    Ok(sort_above(input, order.into_single(), &wish))
}

/// A sort is taken out, and its order is wanted of what is below it.
fn sunk_sort(
    plan: &Arc<dyn ExecutionPlan>,
    sort: &SortExec,
    wish: Wish,
) -> Result<Arc<dyn ExecutionPlan>> {
    let planned = wish.planned.or(NodeId::of(plan));
    // A sort by functions may not know that it sorts.
    let own = sort.properties().output_ordering();
    let own = OrderingRequirements::from(own.unwrap_or(sort.expr()).clone());
    let below = match wish.order {
        None => Wish {
            order: Some(own),
            fetch: smaller(sort.fetch(), wish.fetch),
            gathered: wish.gathered,
            planned,
        },
        Some(ref wanted) => {
            let properties = plan.equivalence_properties();
            let is_compatible = |finer: &OrderingRequirements, coarser: &OrderingRequirements| {
                properties.requirements_compatible(finer.first().clone(), coarser.first().clone())
            };
            let satisfies = properties.ordering_satisfy_requirement(wanted.first().clone())?;
            if !satisfies && !is_compatible(wanted, &own) {
                let input = Wish {
                    order: Some(own),
                    fetch: sort.fetch(),
                    gathered: false,
                    planned: NodeId::of(plan),
                };
                let input = sunk(sort.input(), input)?;
                return Ok(sort_above(input, wanted.clone().into_single(), &wish));
            }
            Wish {
                order: Some(match is_compatible(&own, wanted) {
                    true => own,
                    false => wanted.clone(),
                }),
                fetch: smaller(sort.fetch(), wish.fetch),
                gathered: false,
                planned,
            }
        }
    };
    let new = sunk(sort.input(), below)?;
    let is_same = new.downcast_ref::<SortExec>().is_some_and(|new| {
        Arc::ptr_eq(new.input(), sort.input())
            && new.expr() == sort.expr()
            && new.fetch() == sort.fetch()
            && new.preserve_partitioning() == sort.preserve_partitioning()
            && planned == NodeId::of(plan)
    });
    Ok(match is_same {
        true => Arc::clone(plan),
        false => new,
    })
}

/// The operator over inputs of which these orders are wanted, and the rest of `wish` of each.
fn with_wishes(
    plan: &Arc<dyn ExecutionPlan>,
    orders: Orders,
    wish: Wish,
) -> Result<Arc<dyn ExecutionPlan>> {
    let required = plan.input_distribution_requirements();
    let children = plan.children().into_iter().zip(orders).enumerate();
    let children = children.map(|(position, (child, order))| {
        let distribution = required.child_distribution(position);
        let in_one = matches!(distribution, Some(Distribution::SinglePartition));
        let wish = Wish {
            planned: wish.planned.filter(|_| order.is_some()),
            order,
            gathered: wish.gathered || in_one,
            fetch: wish.fetch,
        };
        sunk(child, wish)
    });
    let children = children.collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(Arc::clone(plan), children)
}

/// `wish`: what is wanted besides the order.
fn sort_above(
    input: Arc<dyn ExecutionPlan>,
    order: LexRequirement,
    wish: &Wish,
) -> Arc<dyn ExecutionPlan> {
    let Some(keys) = sort_keys(&input, order) else {
        return input;
    };
    let has_streams = input.output_partitioning().partition_count() > 1;
    let sort = SortExec::new(keys.clone(), input).with_fetch(wish.fetch);
    let mut sort: Arc<dyn ExecutionPlan> = Arc::new(sort.with_preserve_partitioning(has_streams));
    if let Some(planned) = wish.planned {
        sort = of_node(planned, sort);
    }
    match wish.gathered && has_streams {
        true => Arc::new(SortPreservingMergeExec::new(keys, sort).with_fetch(wish.fetch)),
        false => sort,
    }
}

fn smaller(one: Option<usize>, other: Option<usize>) -> Option<usize> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The orders of the inputs from which the wanted order of the output follows, if a sort by it may sink below the
/// operator.
fn below(
    plan: &Arc<dyn ExecutionPlan>,
    wanted: &OrderingRequirements,
    fetch: Option<usize>,
) -> Result<Option<Orders>> {
    if fetch.is_some() {
        let is_row_for_row = matches!(plan.cardinality_effect(), CardinalityEffect::Equal);
        if !plan.supports_limit_pushdown() || !is_row_for_row {
            return Ok(None);
        }
    }
    // A window's order makes that of its output only together with what it computes.
    if plan.is::<WindowAggExec>() || plan.is::<BoundedWindowAggExec>() {
        return Ok(None);
    }
    let maintains = plan.maintains_input_order();
    if plan.fetch().is_some()
        && plan.supports_limit_pushdown()
        && maintains.iter().all(|maintains| *maintains)
    {
        return Ok(below_limited(plan, wanted));
    }
    if plan.is::<UnionExec>() {
        return Ok(Some(vec![Some(wanted.clone()); plan.children().len()]));
    }
    if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        return below_merge_join(join, wanted);
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return below_groups(aggregate, wanted);
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let mut list = projection.expr().iter();
        let is_plain = list.all(|item| item.expr.is::<Column>());
        let order = is_plain
            .then(|| below_projection(projection, wanted))
            .flatten();
        return Ok(order.map(|order| vec![Some(order)]));
    }
    if !maintains.iter().any(|maintains| *maintains)
        || plan.is::<RepartitionExec>()
        || plan.is::<FilterExec>()
        || contradicts(plan, wanted)
    {
        return Ok(None);
    }
    if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
        let mut properties = merge.properties().equivalence_properties().clone();
        let Some(before) = properties.output_ordering() else {
            return Ok(None);
        };
        let is_changed = properties.reorder(LexOrdering::from(wanted.first().clone()))?;
        let is_finer = !is_changed || properties.ordering_satisfy(before)?;
        return Ok(is_finer.then(|| vec![Some(wanted.clone())]));
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return below_hash_join(join, wanted);
    }
    below_other(plan, wanted, &maintains)
}

/// Of an operator that only takes the first rows.
fn below_limited(plan: &Arc<dyn ExecutionPlan>, wanted: &OrderingRequirements) -> Option<Orders> {
    let order = match plan.downcast_ref::<ProjectionExec>() {
        Some(projection) => below_projection(projection, wanted)?,
        None => wanted.clone(),
    };
    let properties = plan.equivalence_properties();
    let is_compatible = plan.output_ordering().is_none_or(|own| {
        properties.requirements_compatible(wanted.first().clone(), own.clone().into())
    });
    is_compatible.then(|| vec![Some(order)])
}

/// The order in terms of what a projection hands on.
fn below_projection(
    projection: &ProjectionExec,
    wanted: &OrderingRequirements,
) -> Option<OrderingRequirements> {
    let list = projection.expr();
    let (alternatives, is_soft) = wanted.clone().into_alternatives();
    let alternatives = alternatives.into_iter().filter_map(|alternative| {
        let keys = alternative.into_iter().map(|key| {
            let column = key.expr.downcast_ref::<Column>()?;
            let item = list.get(column.index())?;
            let handed_on = item.expr.is::<Column>();
            handed_on.then(|| PhysicalSortRequirement::new(Arc::clone(&item.expr), key.options))
        });
        LexRequirement::new(keys.collect::<Option<Vec<_>>>()?)
    });
    OrderingRequirements::new_alternatives(alternatives, is_soft)
}

/// Groups have the order of their rows, as far as keys are compared; the rows must have it already.
fn below_groups(
    aggregate: &AggregateExec,
    wanted: &OrderingRequirements,
) -> Result<Option<Orders>> {
    let groups = aggregate.group_expr();
    if !aggregate.maintains_input_order()[0] || groups.has_grouping_set() {
        return Ok(None);
    }
    let exprs = groups.input_exprs();
    let keys = wanted.first().iter().map(|key| {
        let column = key.expr.downcast_ref::<Column>()?;
        let expr = Arc::clone(exprs.get(column.index())?);
        Some(PhysicalSortRequirement::new(expr, key.options))
    });
    let keys = keys
        .collect::<Option<Vec<_>>>()
        .and_then(LexRequirement::new);
    let Some(order) = keys else {
        return Ok(None);
    };
    let properties = aggregate.input().equivalence_properties();
    let is_there = properties.ordering_satisfy_requirement(order.iter().cloned())?;
    Ok(is_there.then(|| vec![Some(OrderingRequirements::new(order))]))
}

/// Whether an operator requires an order of an input that this one would destroy.
fn contradicts(plan: &Arc<dyn ExecutionPlan>, wanted: &OrderingRequirements) -> bool {
    let mut required = plan.required_input_ordering().into_iter().flatten();
    required.any(|required| {
        let required = required.into_single();
        let mut pairs = required.iter().zip(wanted.first().iter());
        pairs.all(|(required, wanted)| !required.compatible(wanted))
    })
}

fn columns_of(order: &LexRequirement) -> impl Iterator<Item = usize> {
    let keys = order.iter();
    keys.flat_map(|key| {
        collect_columns(&key.expr)
            .into_iter()
            .map(|column| column.index())
    })
}

/// The order with columns in other places.
fn moved(
    order: &LexRequirement,
    input: &Arc<dyn ExecutionPlan>,
    place: impl Fn(usize) -> usize,
) -> Result<Option<OrderingRequirements>> {
    let schema = input.schema();
    let keys = order.iter().map(|key| {
        let expr = Arc::clone(&key.expr).transform_up(|part| {
            Ok(match part.downcast_ref::<Column>() {
                Some(column) => {
                    let place = place(column.index());
                    let column = Column::new(schema.field(place).name(), place);
                    Transformed::yes(Arc::new(column) as Arc<dyn PhysicalExpr>)
                }
                None => Transformed::no(part),
            })
        })?;
        Ok(PhysicalSortRequirement::new(expr.data, key.options))
    });
    let keys = keys.collect::<Result<Vec<_>>>()?;
    Ok(LexRequirement::new(keys).map(OrderingRequirements::new))
}

/// A hash join hands the rows of its right side on in their order.
fn below_hash_join(join: &HashJoinExec, wanted: &OrderingRequirements) -> Result<Option<Orders>> {
    if !join.maintains_input_order()[1] {
        return Ok(None);
    }
    let left_columns = match join.join_type() {
        JoinType::Inner | JoinType::Right => join.left().schema().fields().len(),
        _ => 0,
    };
    let right_columns = join.right().schema().fields().len();
    let shown = |place: usize| match join.projection.as_deref() {
        Some(shown) => shown.get(place).copied(),
        None => Some(place),
    };
    let in_right = |place: usize| {
        let place = shown(place)?.checked_sub(left_columns)?;
        (place < right_columns).then_some(place)
    };
    let order = wanted.first();
    if !columns_of(order).all(|place| in_right(place).is_some()) {
        return Ok(None);
    }
    let order = moved(order, join.right(), |place| {
        in_right(place).unwrap_or(place)
    })?;
    Ok(Some(vec![None, order]))
}

/// An operator that hands the rows of one input on, whose columns come where the input is among the others.
fn below_other(
    plan: &Arc<dyn ExecutionPlan>,
    wanted: &OrderingRequirements,
    maintains: &[bool],
) -> Result<Option<Orders>> {
    let children = plan.children();
    let Some(position) = maintains.iter().position(|maintains| *maintains) else {
        return Ok(None);
    };
    let width = |child: &&Arc<dyn ExecutionPlan>| child.schema().fields().len();
    let start: usize = children[..position].iter().map(width).sum();
    let end = start + width(&children[position]);
    let order = wanted.first();
    if !columns_of(order).all(|place| (start..end).contains(&place)) {
        return Ok(None);
    }
    let order = moved(order, children[position], |place| place - start)?;
    let orders = maintains.iter().map(|maintains| match maintains {
        true => order.clone(),
        false => None,
    });
    Ok(Some(orders.collect()))
}

/// A merge join hands the rows of a side on in their order, which it requires to begin with its keys.
fn below_merge_join(
    join: &SortMergeJoinExec,
    wanted: &OrderingRequirements,
) -> Result<Option<Orders>> {
    let Some((side, order)) = side_of(join, wanted) else {
        return Ok(None);
    };
    let left_columns = join.left().schema().fields().len();
    let (position, order) = match side {
        JoinSide::Left => (0, order),
        _ => {
            let before = join.schema().fields().len() - join.right().schema().fields().len();
            (
                1,
                add_offset_to_physical_sort_exprs(order, -(before as isize))?,
            )
        }
    };
    let mut required = join.required_input_ordering();
    let input = [join.left(), join.right()][position];
    let mut properties = input.equivalence_properties().clone();
    properties.reorder(order.iter().cloned())?;
    let Some(of_keys) = required[position].take() else {
        return Ok(None);
    };
    if !properties.ordering_satisfy_requirement(of_keys.into_single())? {
        return Ok(None);
    }
    let new = LexOrdering::new(order);
    let (left, right) = match position {
        0 => (new.as_ref(), join.right().output_ordering()),
        _ => (join.left().output_ordering(), new.as_ref()),
    };
    let join_type = join.join_type();
    let output = calculate_join_output_ordering(
        left,
        right,
        join_type,
        left_columns,
        &join.maintains_input_order(),
        Some(SortMergeJoinExec::probe_side(&join_type)),
    )?;
    let mut properties = join.properties().equivalence_properties().clone();
    if let Some(output) = output {
        properties.reorder(output)?;
    }
    if !properties.ordering_satisfy_requirement(wanted.first().clone())? {
        return Ok(None);
    }
    required[position] = new.map(OrderingRequirements::from);
    Ok(Some(required))
}

/// The side of a merge join that an order is about, and the order in terms of its columns; those of equal keys are the
/// same.
fn side_of(
    join: &SortMergeJoinExec,
    wanted: &OrderingRequirements,
) -> Option<(JoinSide, Vec<PhysicalSortExpr>)> {
    let left_columns = join.left().schema().fields().len();
    let order: Vec<PhysicalSortExpr> = wanted.first().iter().cloned().map(Into::into).collect();
    let is_plain = order.iter().all(|key| key.expr.is::<Column>());
    let side = match join.join_type() {
        JoinType::LeftSemi | JoinType::LeftAnti => JoinSide::Left,
        JoinType::RightSemi | JoinType::RightAnti => JoinSide::Right,
        _ => JoinSide::None,
    };
    if side != JoinSide::None {
        return is_plain.then_some((side, order));
    }
    let properties = join.properties().equivalence_properties();
    let equal = properties.eq_group();
    let of = |is_left: bool| -> Option<Vec<PhysicalSortExpr>> {
        let is_of_side = |expr: &Arc<dyn PhysicalExpr>| {
            let column = expr.downcast_ref::<Column>();
            column.is_some_and(|column| (column.index() < left_columns) == is_left)
        };
        let keys = order.iter().map(|key| {
            if is_of_side(&key.expr) {
                return Some(key.clone());
            }
            let mut class = equal.get_equivalence_class(&key.expr)?.iter();
            let expr = class.find(|expr| is_of_side(expr))?;
            Some(PhysicalSortExpr::new(Arc::clone(expr), key.options))
        });
        keys.collect()
    };
    if !is_plain {
        return None;
    }
    let left = of(true).map(|order| (JoinSide::Left, order));
    left.or_else(|| of(false).map(|order| (JoinSide::Right, order)))
}
