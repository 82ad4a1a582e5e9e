//! The expressions of a sort as operators evaluate them.

use std::sync::Arc;

use datafusion_expr::execution_props::ExecutionProps;
use datafusion_physical_expr::PhysicalSortExpr;
use sheaf_exec::functions::limits::ResultLimits;
use sheaf_exec::operator::bounded_expr::bounded;

/// The expressions of a sort, evaluated for fewer rows at a time where that is needed.
pub(crate) fn bounded_sort_keys(
    mut keys: Vec<PhysicalSortExpr>,
    properties: &ExecutionProps,
) -> Vec<PhysicalSortExpr> {
    let options = properties.config_options.as_ref();
    if let Some(limits) = options.and_then(|options| options.extensions.get::<ResultLimits>()) {
        for key in &mut keys {
            key.expr = bounded(Arc::clone(&key.expr), limits);
        }
    }
    keys
}
