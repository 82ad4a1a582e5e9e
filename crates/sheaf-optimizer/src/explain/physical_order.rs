//! The order of a sort that a physical rule has added, as MySQL would write it.
//!
//! The planner has noted nothing of such a sort, and its keys are columns that a projection below has computed. So the
//! keys are followed down to what they were made of.

use std::fmt;
use std::sync::Arc;

use datafusion_physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion_physical_expr::{PhysicalExpr, PhysicalSortExpr, ScalarFunctionExpr};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::projection::ProjectionExec;
use sheaf_exec::functions::as_function;
use sheaf_exec::functions::closed::closed_operator;

use crate::explain::sql_text::{called, literal_text, shortened, without_number};

/// Sort keys over the rows of `input`, as `a, b DESC`.
pub(crate) fn physical_order_text(
    order: &[PhysicalSortExpr],
    input: &Arc<dyn ExecutionPlan>,
) -> String {
    let texts = order.iter().map(|key| {
        let direction = match key.options.descending {
            true => " DESC",
            false => "",
        };
        format!("{}{direction}", text(&key.expr, input))
    });
    shortened(texts.collect::<Vec<_>>().join(", "))
}

fn text(expr: &Arc<dyn PhysicalExpr>, input: &Arc<dyn ExecutionPlan>) -> String {
    if let Some(column) = expr.downcast_ref::<Column>() {
        return match source(column, input) {
            Some((made, below)) => text(made, below),
            None => without_number(column.name()).to_string(),
        };
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        return text(cast.expr(), input);
    }
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return literal_text(literal.value(), None);
    }
    let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() else {
        let shown = AsSql(expr).to_string();
        // What only evaluates another expression in its own way is printed as that one.
        return match expr.children().as_slice() {
            [inner] if AsSql(inner).to_string() == shown => text(inner, input),
            _ => shown,
        };
    };
    let function = call.fun();
    let own = as_function(function).map(|function| function.name);
    let name = own.or_else(|| closed_operator(function));
    let args = call.args().iter().map(|arg| text(arg, input));
    called(name.unwrap_or(function.name()), args.collect())
}

/// An expression, and the rows that it was computed over.
type Made<'p> = (&'p Arc<dyn PhysicalExpr>, &'p Arc<dyn ExecutionPlan>);

/// What a column was made of by a projection below.
fn source<'p>(column: &Column, input: &'p Arc<dyn ExecutionPlan>) -> Option<Made<'p>> {
    let mut plan = input;
    loop {
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let made = projection.expr().get(column.index())?;
            return Some((&made.expr, projection.input()));
        }
        match plan.children().as_slice() {
            [child] if child.schema() == plan.schema() => plan = child,
            _ => return None,
        }
    }
}

/// A physical expression without the positions of its columns.
struct AsSql<'e>(&'e Arc<dyn PhysicalExpr>);

impl fmt::Display for AsSql<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(f)
    }
}
