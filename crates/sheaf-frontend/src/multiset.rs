//! EXCEPT ALL and INTERSECT ALL, which count equal rows.
//!
//! DataFusion makes an antijoin or a semijoin of them, which keeps or drops all rows of a kind. So equal rows are
//! numbered, on both sides, and compared with their numbers:
//!
//! ```text
//!   (1, 1, 2) EXCEPT ALL (1)    -->    (1 #1, 1 #2, 2 #1) without (1 #1)    =    1, 2
//! ```

use std::sync::Arc;

use datafusion_common::tree_node::Transformed;
use datafusion_common::{NullEquality, Result, internal_datafusion_err};
use datafusion_expr::expr::WindowFunction;
use datafusion_expr::{Expr, Join, JoinType, LogicalPlan, Projection, Window};

use crate::context::window_function;

/// Numbers the rows below each EXCEPT ALL and INTERSECT ALL. For plans as they come from SqlToRel.
pub fn number_equal_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    let numbered = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Join(join) if counts_rows(&join) => Ok(Transformed::yes(numbered(join)?)),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(numbered.data)
}

/// Whether this is an EXCEPT ALL or INTERSECT ALL. Without ALL the left side has no equal rows.
fn counts_rows(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && !matches!(join.left.as_ref(), LogicalPlan::Distinct(_))
}

fn numbered(mut join: Join) -> Result<LogicalPlan> {
    let columns = join.left.schema().columns();
    let (left, left_number) = with_numbers(join.left, "$left_number")?;
    let (right, right_number) = with_numbers(join.right, "$right_number")?;
    (join.left, join.right) = (left, right);
    join.on.push((left_number, right_number));
    let join = LogicalPlan::Join(join).recompute_schema()?;
    let columns = columns.into_iter().map(Expr::Column).collect();
    let projection = Projection::try_new(columns, Arc::new(join))?;
    Ok(LogicalPlan::Projection(projection))
}

/// The rows with one more column, of this name: 1, 2, 3 and so on for those that are equal.
fn with_numbers(plan: Arc<LogicalPlan>, name: &str) -> Result<(Arc<LogicalPlan>, Expr)> {
    let row_number = window_function("row_number")
        .ok_or_else(|| internal_datafusion_err!("there is no row_number"))?;
    let columns = plan.schema().columns().into_iter().map(Expr::Column);
    let mut columns: Vec<Expr> = columns.collect();
    let mut function = WindowFunction::new(row_number, Vec::new());
    function.params.partition_by = columns.clone();
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
