//! EXCEPT and INTERSECT, with ALL and without.
//!
//! DataFusion makes an antijoin or a semijoin of them, which keeps or drops all rows of a kind. So with ALL equal rows
//! are numbered, on both sides, and compared with their numbers:
//!
//! ```text
//!   (1, 1, 2) EXCEPT ALL (1)    -->    (1 #1, 1 #2, 2 #1) without (1 #1)    =    1, 2
//! ```
//!
//! Which rows are equal is known when both sides have the same types. So there are two steps, one before typing and one
//! after it; in between, a join with a condition (that holds always) is one with ALL.

use std::sync::Arc;

use datafusion_common::tree_node::Transformed;
use datafusion_common::{Result, internal_datafusion_err};
use datafusion_expr::expr::WindowFunction;
use datafusion_expr::{Distinct, Expr, Join, LogicalPlan, Projection, Window, lit};
use sheaf_exec::typing::is_set_operation;

use crate::context::window_function;

/// Tells the operations with ALL from the others, which lose their equal rows last, when they have the types of the
/// whole. For plans as they come from SqlToRel.
pub fn mark_multisets(plan: LogicalPlan) -> Result<LogicalPlan> {
    let marked = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Join(mut join) if is_set_operation(&join) => {
            let plan = match join.left.as_ref() {
                LogicalPlan::Distinct(Distinct::All(all)) => {
                    join.left = Arc::clone(all);
                    LogicalPlan::Distinct(Distinct::All(Arc::new(LogicalPlan::Join(join))))
                }
                _ => {
                    join.filter = Some(lit(true));
                    LogicalPlan::Join(join)
                }
            };
            Ok(Transformed::yes(plan))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(marked.data)
}

/// Numbers the rows below each operation with ALL. For plans whose expressions have types.
pub fn number_equal_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    let numbered = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Join(join) if is_set_operation(&join) && join.filter.is_some() => {
            Ok(Transformed::yes(numbered(join)?))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(numbered.data)
}

fn numbered(mut join: Join) -> Result<LogicalPlan> {
    let columns = join.left.schema().columns();
    let (left_keys, right_keys) = join.on.iter().cloned().unzip();
    let (left, left_number) = with_numbers(join.left, left_keys, "$left_number")?;
    let (right, right_number) = with_numbers(join.right, right_keys, "$right_number")?;
    join.filter = None;
    (join.left, join.right) = (left, right);
    join.on.push((left_number, right_number));
    let join = LogicalPlan::Join(join).recompute_schema()?;
    let columns = columns.into_iter().map(Expr::Column).collect();
    let projection = Projection::try_new(columns, Arc::new(join))?;
    Ok(LogicalPlan::Projection(projection))
}

/// The rows with one more column, of this name: 1, 2, 3 and so on for those whose keys are equal.
fn with_numbers(
    plan: Arc<LogicalPlan>,
    keys: Vec<Expr>,
    name: &str,
) -> Result<(Arc<LogicalPlan>, Expr)> {
    let row_number = window_function("row_number")
        .ok_or_else(|| internal_datafusion_err!("there is no row_number"))?;
    let columns = plan.schema().columns().into_iter().map(Expr::Column);
    let mut columns: Vec<Expr> = columns.collect();
    let mut function = WindowFunction::new(row_number, Vec::new());
    function.params.partition_by = keys;
    let number = Expr::WindowFunction(Box::new(function));
    let window = LogicalPlan::Window(Window::try_new(vec![number], plan)?);
    columns.extend(
        window
            .schema()
            .columns()
            .pop()
            .map(|number| Expr::Column(number).alias(name)),
    );
    let projection = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(window))?);
    let number = projection.schema().columns().pop().map(Expr::Column);
    let number = number.ok_or_else(|| internal_datafusion_err!("rows without a number"))?;
    Ok((Arc::new(projection), number))
}
