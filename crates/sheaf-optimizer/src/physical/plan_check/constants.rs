//! What has one value in all rows of a plan.
//!
//! A column that does not change has no say in the order of rows. DataFusion knows of constants, but forgets those of a
//! join that drops columns, although the planner has left a sort out because of them:
//!
//! ```text
//!   SELECT m.c FROM t JOIN u ON .. CROSS JOIN (SELECT max(a) c FROM v) m ORDER BY m.c
//! ```
//!
//! So a column is followed to the operator that it comes from: a constant expression, one row, or a column that an
//! operator says is the same everywhere.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::TreeNode;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::{AcrossPartitions, ConstExpr, PhysicalExpr, PhysicalSortExpr};
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use sheaf_exec::keyed_join::exec::KeyedJoinExec;

use super::structure::Join;

/// The parts of an order of the rows of `plan` that are the same in all of them.
pub(super) fn constants_among(
    plan: &Arc<dyn ExecutionPlan>,
    order: &[PhysicalSortExpr],
) -> Result<Vec<ConstExpr>> {
    let mut constants = Vec::new();
    for sort in order {
        if is_constant(plan, &sort.expr)? {
            let expr = Arc::clone(&sort.expr);
            constants.push(ConstExpr::new(expr, AcrossPartitions::Uniform(None)));
        }
    }
    Ok(constants)
}

/// The parts that are not.
pub(super) fn without_constants(
    plan: &Arc<dyn ExecutionPlan>,
    order: &[PhysicalSortExpr],
) -> Result<Vec<PhysicalSortExpr>> {
    let mut varying = Vec::new();
    for sort in order {
        if !is_constant(plan, &sort.expr)? {
            varying.push(sort.clone());
        }
    }
    Ok(varying)
}

/// Whether `expr` over the rows of `plan` is the same for all of them.
fn is_constant(plan: &Arc<dyn ExecutionPlan>, expr: &Arc<dyn PhysicalExpr>) -> Result<bool> {
    let varies = expr.exists(|part| {
        Ok(match part.downcast_ref::<Column>() {
            Some(column) => !is_constant_column(plan, column)?,
            None => part.is_volatile_node(),
        })
    })?;
    Ok(!varies)
}

fn is_constant_column(plan: &Arc<dyn ExecutionPlan>, column: &Column) -> Result<bool> {
    // A constant of each input is not the same one, although DataFusion says so.
    if plan.is::<UnionExec>() {
        return Ok(false);
    }
    let expr: Arc<dyn PhysicalExpr> = Arc::new(column.clone());
    match plan.equivalence_properties().is_expr_constant(&expr) {
        Some(AcrossPartitions::Uniform(_)) => return Ok(true),
        // One value in each partition.
        Some(AcrossPartitions::Heterogeneous)
            if plan.output_partitioning().partition_count() == 1 =>
        {
            return Ok(true);
        }
        _ => {}
    }
    let (input, position) = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let output = projection.expr().get(column.index());
        return match output {
            Some(output) => is_constant(projection.input(), &output.expr),
            None => Ok(false),
        };
    } else if let Some(join) = plan.downcast_ref::<KeyedJoinExec>() {
        match join.projection().get(column.index()) {
            Some(position) if *position < join.outer().schema().fields().len() => {
                (join.outer(), *position)
            }
            _ => return Ok(false),
        }
    } else if let Some(join) = Join::of(plan) {
        match join.output_source(column.index()) {
            // NULL besides where there is no match.
            Some((input, position, false)) => (input, position),
            _ => return Ok(false),
        }
    } else {
        match plan.children()[..] {
            // Rows of the same columns are rows of the input, but for groups.
            [input] if input.schema() == plan.schema() && !plan.is::<AggregateExec>() => {
                (input, column.index())
            }
            _ => return Ok(false),
        }
    };
    let schema = input.schema();
    let name = schema.fields().get(position).map(|field| field.name());
    match name {
        Some(name) => is_constant_column(input, &Column::new(name, position)),
        None => Ok(false),
    }
}
