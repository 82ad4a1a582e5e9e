//! Texts that functions lengthen are made below the aggregate that groups by them.
//!
//! ```text
//!   Aggregate count(d) by repeat(s, 1000)   -->     Aggregate count(d) by $key_0
//!     Scan s, d                                       Projection s, d, repeat(s, 1000) AS $key_0
//!                                                       Scan s, d
//! ```
//!
//! An aggregate evaluates its keys for a whole batch, and has them once more in its table. A projection hands on as
//! many rows at a time as fit ([`sheaf_exec::operator::bounded_projection`]).

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::PhysicalGroupBy;
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use sheaf_exec::operator::bounded_projection::lengthens_much;

/// The rows with the keys behind their columns, and the keys in terms of these. `None`: no key is made by such a
/// function.
pub(super) fn computed_below(
    plan: &Arc<dyn ExecutionPlan>,
    groups: &PhysicalGroupBy,
) -> Result<Option<(Arc<dyn ExecutionPlan>, PhysicalGroupBy)>> {
    let is_long = |key: &(Arc<dyn PhysicalExpr>, String)| lengthens_much(&key.0);
    if !groups.expr().iter().any(is_long) {
        return Ok(None);
    }
    let schema = plan.schema();
    let fields = schema.fields().iter();
    let columns = fields.enumerate().map(|(at, field)| ProjectionExpr {
        expr: Arc::new(Column::new(field.name(), at)),
        alias: field.name().clone(),
    });
    let mut list: Vec<ProjectionExpr> = columns.collect();
    let mut keys = Vec::with_capacity(groups.expr().len());
    for (position, key) in groups.expr().iter().enumerate() {
        let (expr, name) = key.clone();
        if !is_long(key) {
            keys.push((expr, name));
            continue;
        }
        let alias = format!("$key_{position}");
        let column = Column::new(&alias, list.len());
        keys.push((Arc::new(column) as _, name));
        list.push(ProjectionExpr { expr, alias });
    }
    let groups = PhysicalGroupBy::new(
        keys,
        groups.null_expr().to_vec(),
        groups.groups().to_vec(),
        groups.has_grouping_set(),
    );
    let plan = ProjectionExec::try_new(list, Arc::clone(plan))?;
    Ok(Some((Arc::new(plan), groups)))
}
