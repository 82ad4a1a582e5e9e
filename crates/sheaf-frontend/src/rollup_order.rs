//! WITH ROLLUP gives its rows in order: by the first column of GROUP BY, within it by the second, and each sum behind
//! what it sums up. A query without ORDER BY shows them so, and LIMIT counts them so.
//!
//! ```text
//!   GROUP BY a, b WITH ROLLUP   -->   sorted by: a is summed up, a, b is summed up, b
//! ```

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, Result, ScalarValue};
use datafusion_expr::logical_plan::Sort;
use datafusion_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, Operator, binary_expr};
use std::sync::Arc;

/// Sorts the rows of each WITH ROLLUP that no ORDER BY sorts.
pub fn in_order_of_groups(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(ordered(plan, false)?.data)
}

/// `is_sorted`: the rows are sorted above, and nothing between depends on their order.
fn ordered(plan: LogicalPlan, is_sorted: bool) -> Result<Transformed<LogicalPlan>> {
    let sorts_below = match &plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) => is_sorted,
        _ => false,
    };
    let mapped = plan.map_children(|child| ordered(child, sorts_below))?;
    match &mapped.data {
        LogicalPlan::Aggregate(aggregate) if !is_sorted => match order_of(aggregate) {
            Some(order) => Ok(Transformed::yes(LogicalPlan::Sort(Sort {
                expr: order,
                input: Arc::new(mapped.data),
                fetch: None,
            }))),
            None => Ok(mapped),
        },
        _ => Ok(mapped),
    }
}

/// The order of the rows of a ROLLUP; `None` for other aggregates.
fn order_of(aggregate: &Aggregate) -> Option<Vec<datafusion_expr::SortExpr>> {
    let [Expr::GroupingSet(GroupingSet::Rollup(_) | GroupingSet::GroupingSets(_))] =
        aggregate.group_expr.as_slice()
    else {
        return None;
    };
    let fields = aggregate.schema.fields();
    let groups = fields
        .iter()
        .position(|field| field.name() == Aggregate::INTERNAL_GROUPING_ID)?;
    let column =
        |position: usize| Expr::Column(Column::from(aggregate.schema.qualified_field(position)));
    let mut order = Vec::with_capacity(2 * groups);
    for position in 0..groups {
        // The bit of a column that is summed up is set; the first column has the highest.
        let bit = ScalarValue::UInt64(Some(1 << (groups - 1 - position)));
        let bit = bit.cast_to(fields[groups].data_type()).ok()?;
        let is_summed = binary_expr(
            column(groups),
            Operator::BitwiseAnd,
            Expr::Literal(bit, None),
        );
        order.push(is_summed.sort(true, true));
        order.push(column(position).sort(true, true));
    }
    Some(order)
}
