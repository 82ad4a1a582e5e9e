//! What has one value in all rows of a plan.
//!
//! A column that does not change has no say in the order of rows. DataFusion knows of constants, but forgets those of a
//! join that drops columns, although the planner has left a sort out because of them:
//!
//! ```text
//!   SELECT m.c FROM t JOIN u ON .. CROSS JOIN (SELECT max(a) c FROM v) m ORDER BY m.c
//! ```
//!
//! So what rows are sorted by is followed to the operator that it comes from: a constant expression, one row, or what
//! an operator says is the same everywhere. That may be an expression, as the sort key of `s` is where `s = 'B'`.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::{AcrossPartitions, ConstExpr, PhysicalExpr, PhysicalSortExpr};
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use sheaf_exec::keyed_join::exec::KeyedJoinExec;
use sheaf_exec::operator::apply_exec::ApplyExec;
use sheaf_exec::operator::apply_rows_exec::ApplyRowsExec;

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
    if expr.is_volatile_node() {
        return Ok(false);
    }
    // Constants of the inputs of a union are not the same one, although DataFusion says so.
    if !plan.is::<UnionExec>() && is_said_constant(plan, expr) {
        return Ok(true);
    }
    let parts = expr.children();
    if parts.is_empty() && !expr.is::<Column>() {
        return Ok(true);
    }
    let mut are_constant = !parts.is_empty();
    for part in parts {
        are_constant = are_constant && is_constant(plan, part)?;
    }
    if are_constant {
        return Ok(true);
    }
    // A text may vary whose sort key does not.
    let below = match of_all_columns(plan, expr)? {
        None => of_input(plan, expr)?,
        known => known,
    };
    match below {
        Some((input, expr)) => is_constant(&input, &expr),
        None => Ok(false),
    }
}

/// The filter that drops no columns, for one that does. It forgets what it says of expressions.
fn of_all_columns(
    plan: &Arc<dyn ExecutionPlan>,
    expr: &Arc<dyn PhysicalExpr>,
) -> Result<Option<Over>> {
    let Some((filter, kept)) = plan
        .downcast_ref::<FilterExec>()
        .and_then(|filter| Some((filter, filter.projection().as_ref()?)))
    else {
        return Ok(None);
    };
    let expr = Arc::clone(expr).transform_up(|part| {
        Ok(match part.downcast_ref::<Column>() {
            Some(column) => {
                let column = Column::new(column.name(), kept[column.index()]);
                Transformed::yes(Arc::new(column))
            }
            None => Transformed::no(part),
        })
    })?;
    let (predicate, input) = (filter.predicate(), filter.input());
    let filter = FilterExecBuilder::new(Arc::clone(predicate), Arc::clone(input)).build()?;
    Ok(Some((Arc::new(filter), expr.data)))
}

fn is_said_constant(plan: &Arc<dyn ExecutionPlan>, expr: &Arc<dyn PhysicalExpr>) -> bool {
    match plan.equivalence_properties().is_expr_constant(expr) {
        Some(AcrossPartitions::Uniform(_)) => true,
        // One value in each partition.
        Some(AcrossPartitions::Heterogeneous) => plan.output_partitioning().partition_count() == 1,
        None => false,
    }
}

/// An expression over the rows of an operator.
type Over = (Arc<dyn ExecutionPlan>, Arc<dyn PhysicalExpr>);

/// As [`Over`], of an operator that is an input of another one.
type Source<'p> = (&'p Arc<dyn ExecutionPlan>, Arc<dyn PhysicalExpr>);

/// The input whose rows have all columns of an expression, and what the expression is there.
fn of_input(plan: &Arc<dyn ExecutionPlan>, expr: &Arc<dyn PhysicalExpr>) -> Result<Option<Over>> {
    let mut of_all: Option<Arc<dyn ExecutionPlan>> = None;
    let mut is_of_one = true;
    let expr = Arc::clone(expr).transform_up(|part| {
        let Some(column) = part.downcast_ref::<Column>() else {
            return Ok(Transformed::no(part));
        };
        let Some((input, source)) = source(plan, column) else {
            is_of_one = false;
            return Ok(Transformed::no(part));
        };
        let known = of_all.get_or_insert_with(|| Arc::clone(input));
        is_of_one &= Arc::ptr_eq(known, input);
        Ok(Transformed::yes(source))
    })?;
    Ok(of_all.filter(|_| is_of_one).map(|input| (input, expr.data)))
}

/// Where a column comes from.
fn is_apply(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<ApplyExec>() || plan.is::<ApplyRowsExec>()
}

fn source<'p>(plan: &'p Arc<dyn ExecutionPlan>, column: &Column) -> Option<Source<'p>> {
    if plan.is::<UnionExec>() {
        return None;
    }
    let (input, position) = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let output = projection.expr().get(column.index())?;
        return Some((projection.input(), Arc::clone(&output.expr)));
    } else if let Some(groups) = plan.downcast_ref::<AggregateExec>() {
        let keys = groups.group_expr();
        if keys.has_grouping_set() {
            // NULL besides in the rows of totals.
            return None;
        }
        let (key, _) = keys.expr().get(column.index())?;
        return Some((groups.input(), Arc::clone(key)));
    } else if let Some(join) = plan.downcast_ref::<KeyedJoinExec>() {
        let position = *join.projection().get(column.index())?;
        let is_outer = position < join.outer().schema().fields().len();
        is_outer.then_some((join.outer(), position))?
    } else if let (true, [input]) = (is_apply(plan.as_ref()), &plan.children()[..]) {
        // What it adds comes behind the columns of its input.
        let is_of_input = column.index() < input.schema().fields().len();
        is_of_input.then_some((*input, column.index()))?
    } else if let Some(join) = Join::of(plan) {
        match join.output_source(column.index())? {
            // NULL besides where there is no match.
            (_, _, true) => return None,
            (input, position, false) => (input, position),
        }
    } else {
        match plan.children()[..] {
            // Rows of the same columns are rows of the input.
            [input] if input.schema() == plan.schema() => (input, column.index()),
            _ => return None,
        }
    };
    let schema = input.schema();
    let name = schema.fields().get(position)?.name();
    Some((input, Arc::new(Column::new(name, position))))
}
