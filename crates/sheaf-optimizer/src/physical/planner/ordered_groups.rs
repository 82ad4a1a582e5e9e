//! Groups in the order in which the first of them are wanted.
//!
//! ```text
//!   SELECT year, COUNT(*) FROM movie GROUP BY year ORDER BY year DESC LIMIT 5
//!
//!   the index of the years, backwards -> groups, each complete when the next one begins -> five of them
//! ```
//!
//! Rows in such an order come from one worker, and are grouped without a hash table of all groups. That pays where few
//! of the groups are wanted: then it ends after the share of the rows that these have.

use datafusion_common::Result;
use datafusion_expr::{Aggregate, SortExpr};
use datafusion_physical_expr::create_physical_sort_exprs;
use datafusion_physical_plan::ExecutionPlanProperties;

use super::Planner;
use crate::access::wanted::Wanted;
use crate::cost::grouping::grouping_us;
use crate::estimate::group_rows::group_rows;
use crate::logical::grouping_sets::grouping_sets;
use crate::logical::join_graph::plain_column;
use crate::planned::{Block, Planned};

/// The rows of a grouping, and how many of them are grouped by estimate: in the wanted order of groups, if `all` rows
/// in any order cost more.
pub(crate) fn rows_of_first_groups(
    planner: &mut Planner<'_>,
    aggregate: &Aggregate,
    block: &Block,
    wanted: &Wanted,
    all: Planned,
) -> Result<(Planned, f64)> {
    let rows = all.rows;
    let (Some(limit), Some(order)) = (wanted.limit, order_of_rows(aggregate, wanted)) else {
        return Ok((all, rows));
    };
    // Where a group ends is told by the first row of the next one.
    let groups = group_rows(aggregate, rows).max(1.0);
    let taken = rows * (limit as f64 + 1.0) / groups;
    if taken >= rows {
        return Ok((all, rows));
    }
    let wanted = Wanted {
        order,
        limit: Some(taken.ceil() as usize),
    };
    let ordered = planner.plan(&aggregate.input, block, &wanted)?;
    let order = create_physical_sort_exprs(
        &wanted.order,
        aggregate.input.schema(),
        &planner.properties,
        &block.slots,
    )?;
    let is_ordered = ordered.plan.output_partitioning().partition_count() == 1
        && ordered
            .plan
            .equivalence_properties()
            .ordering_satisfy(order)?;
    let constants = &planner.context.settings.costs;
    let functions = aggregate.aggr_expr.len();
    let partitions = all.plan.output_partitioning().partition_count();
    let all_us = all.cost_us + grouping_us(constants, rows, true, functions, partitions);
    let ordered_us = ordered.cost_us + grouping_us(constants, taken, true, functions, 1);
    Ok(match is_ordered && ordered_us < all_us {
        true => (ordered, taken),
        false => (all, rows),
    })
}

/// An order of groups as one of their rows; `None` if there is none, or it is by something else than what rows are
/// grouped by.
fn order_of_rows(aggregate: &Aggregate, wanted: &Wanted) -> Option<Vec<SortExpr>> {
    if wanted.order.is_empty() || grouping_sets(&aggregate.group_expr).is_some() {
        return None;
    }
    let order = wanted.order.iter().map(|sort| {
        let column = plain_column(&sort.expr)?;
        let position = aggregate.schema.index_of_column(column).ok()?;
        let key = aggregate.group_expr.get(position)?;
        plain_column(key)?;
        Some(SortExpr {
            expr: key.clone(),
            ..sort.clone()
        })
    });
    order.collect()
}
