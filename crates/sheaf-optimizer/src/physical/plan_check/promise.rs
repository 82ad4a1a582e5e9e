//! Whether the last operator delivers the order that ORDER BY asks for.
//!
//! The order is that of the topmost sort of the statement, as far as the columns that come out can tell it:
//!
//! ```text
//!   SELECT name FROM t ORDER BY city, name      nothing to check: city does not come out
//!   SELECT city FROM t ORDER BY city, name      city
//! ```
//!
//! Below a column that does not come out, the operators' own requirements are what there is to check.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, HashMap, Result};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::{Expr, LogicalPlan, SortExpr};
use datafusion_physical_expr::expressions::Column as PhysicalColumn;
use datafusion_physical_expr::{PhysicalExpr, PhysicalSortExpr, create_physical_sort_exprs};
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::constants::{constants_among, without_constants};
use super::contradiction;
use super::requirements::is_merge_of_ordered_inputs;
use super::structure::Join;
use crate::logical::join_graph::plain_column;
use crate::logical::replace_columns;
use crate::physical::sort_keys::bounded_sort_keys;
use sheaf_exec::operator::first_rows_exec::sort_of;

pub(super) fn check(
    plan: &Arc<dyn ExecutionPlan>,
    logical: &LogicalPlan,
    properties: &ExecutionProps,
) -> Result<()> {
    let order = promised(logical);
    if order.is_empty() {
        return Ok(());
    }
    let partitions = plan.output_partitioning().partition_count();
    if partitions != 1 {
        return Err(contradiction(
            plan,
            format_args!("sorted rows come in {partitions} streams"),
        ));
    }
    let order = create_physical_sort_exprs(
        &order,
        logical.schema(),
        // Functions are equal only if they have the same options.
        properties,
        &PhysicalPlanningContext::default(),
    )?;
    let order = bounded_sort_keys(order, properties);
    let order = under_names_of(order, &plan.schema())?;
    match delivers(plan, order.clone())? {
        true => Ok(()),
        false => {
            let order: Vec<String> = order.iter().map(ToString::to_string).collect();
            Err(contradiction(
                plan,
                format_args!("rows do not come in the order of {}", order.join(", ")),
            ))
        }
    }
}

/// The order of the topmost sort, in terms of the columns that come out, as far as these tell it.
fn promised(plan: &LogicalPlan) -> Vec<SortExpr> {
    match plan {
        LogicalPlan::Sort(sort) => {
            let order = sort.expr.iter().cloned();
            order.take_while(|sort| is_repeatable(&sort.expr)).collect()
        }
        LogicalPlan::Limit(limit) => promised(&limit.input),
        LogicalPlan::Projection(projection) => {
            let order = promised(&projection.input);
            if order.is_empty() {
                return order;
            }
            let input = projection.input.schema();
            let mut outputs: HashMap<String, Expr> = HashMap::new();
            for (expr, output) in projection.expr.iter().zip(projection.schema.iter()) {
                let column =
                    plain_column(expr).and_then(|column| input.index_of_column(column).ok());
                if let Some(position) = column {
                    let column = Column::from(input.qualified_field(position));
                    let output = Expr::Column(Column::from(output));
                    outputs.entry(column.flat_name()).or_insert(output);
                }
            }
            order
                .into_iter()
                .map_while(|sort| {
                    let expr = replace_columns(&sort.expr, &outputs)?;
                    Some(SortExpr { expr, ..sort })
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Whether two expressions that are made of this one are sure to be the same. Subqueries have a slot that only the
/// planner knows.
fn is_repeatable(expr: &Expr) -> bool {
    let is_subquery = |expr: &Expr| Ok(matches!(expr, Expr::ScalarSubquery(_)));
    !expr.is_volatile() && !expr.exists(is_subquery).unwrap_or(true)
}

/// The operator may call its columns otherwise than the statement does.
fn under_names_of(
    order: Vec<PhysicalSortExpr>,
    schema: &SchemaRef,
) -> Result<Vec<PhysicalSortExpr>> {
    let renamed = order.into_iter().map(|sort| {
        let expr = map_columns(sort.expr, |column| {
            let field = schema.field(column.index());
            Arc::new(PhysicalColumn::new(field.name(), column.index()))
        })?;
        Ok(PhysicalSortExpr { expr, ..sort })
    });
    renamed.collect()
}

fn map_columns(
    expr: Arc<dyn PhysicalExpr>,
    map: impl Fn(&PhysicalColumn) -> Arc<dyn PhysicalExpr>,
) -> Result<Arc<dyn PhysicalExpr>> {
    let mapped = expr.transform_up(|part| {
        Ok(match part.downcast_ref::<PhysicalColumn>() {
            Some(column) => Transformed::yes(map(column)),
            None => Transformed::no(part),
        })
    })?;
    Ok(mapped.data)
}

/// Whether an operator's rows come in this order. What it says of itself need not be all that is known below it.
fn delivers(plan: &Arc<dyn ExecutionPlan>, order: Vec<PhysicalSortExpr>) -> Result<bool> {
    let properties = plan.equivalence_properties();
    if properties.ordering_satisfy(order.clone())? {
        return Ok(true);
    }
    // What it has just sorted by it may have forgotten, of functions.
    if let Some(sort) = sort_of(plan)
        && sort.expr().starts_with(&order)
    {
        return Ok(true);
    }
    let constants = constants_among(plan, &order)?;
    if !constants.is_empty() {
        let mut properties = properties.clone();
        properties.add_constants(constants)?;
        if properties.ordering_satisfy(order.clone())? {
            return Ok(true);
        }
    }
    if is_merge_of_ordered_inputs(plan)? {
        let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() else {
            return Ok(false);
        };
        let merged = without_constants(plan, merge.expr())?;
        return Ok(merged.starts_with(&without_constants(plan, &order)?));
    }
    if let Some((input, order)) = below_join(plan, &order)? {
        return delivers(input, order);
    }
    let children = plan.children();
    let (Some(true), Some(child)) = (plan.maintains_input_order().first(), children.first()) else {
        return Ok(false);
    };
    if child.output_partitioning().partition_count() != 1 {
        return Ok(false);
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let below = order.into_iter().map(|sort| {
            let expr = map_columns(sort.expr, |column| {
                Arc::clone(&projection.expr()[column.index()].expr)
            })?;
            Ok(PhysicalSortExpr { expr, ..sort })
        });
        return delivers(child, below.collect::<Result<_>>()?);
    }
    // A filter that leaves columns out knows no keys any more, be they in its order.
    if let Some(filter) = plan.downcast_ref::<FilterExec>()
        && let Some(projection) = filter.projection()
    {
        let fields = child.schema();
        let below = order.into_iter().map(|sort| {
            let expr = map_columns(sort.expr, |column| {
                let position = projection[column.index()];
                Arc::new(PhysicalColumn::new(fields.field(position).name(), position))
            })?;
            Ok(PhysicalSortExpr { expr, ..sort })
        });
        return delivers(child, below.collect::<Result<_>>()?);
    }
    match child.schema() == plan.schema() {
        true => delivers(child, order),
        false => Ok(false),
    }
}

/// An input, and an order of its rows.
type Ordered<'p> = (&'p Arc<dyn ExecutionPlan>, Vec<PhysicalSortExpr>);

/// The input of a join whose order its rows keep, and the order there. DataFusion forgets it where the keys of the join
/// are expressions, as those of texts are, and only one side is shown.
fn below_join<'p>(
    plan: &'p Arc<dyn ExecutionPlan>,
    order: &[PhysicalSortExpr],
) -> Result<Option<Ordered<'p>>> {
    let Some(join) = Join::of(plan) else {
        return Ok(None);
    };
    let children = plan.children();
    let mut inputs = children.into_iter().zip(plan.maintains_input_order());
    let Some((input, _)) = inputs.find(|(_, is_kept)| *is_kept) else {
        return Ok(None);
    };
    if input.output_partitioning().partition_count() != 1 {
        return Ok(None);
    }
    let mut below = Vec::with_capacity(order.len());
    for sort in order {
        match join.over_input(input, &sort.expr)? {
            Some(expr) => below.push(PhysicalSortExpr {
                expr,
                options: sort.options,
            }),
            None => return Ok(None),
        }
    }
    Ok(Some((input, below)))
}
