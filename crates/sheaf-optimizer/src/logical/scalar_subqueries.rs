//! Correlated subqueries that are values become joins, by DataFusion's rule.
//!
//! The typing rule marks values that are NULL where a subquery finds no row (`$or_null`), because the column inside
//! does not tell. That of the join does. The mark goes right away, so that rules and access paths find plain columns:
//!
//! ```text
//!   o.x = $or_null((SELECT y FROM t WHERE t.id = o.k))   -->   o.x = y, above o LEFT JOIN t
//! ```

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::Transformed;
use datafusion_expr::LogicalPlan;
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_optimizer::optimizer::ApplyOrder;
use datafusion_optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;
use datafusion_optimizer::{OptimizerConfig, OptimizerRule};
use sheaf_exec::typing::without_or_null;

/// See the module's comment.
#[derive(Debug, Default)]
pub(crate) struct ScalarSubqueriesToJoins(ScalarSubqueryToJoin);

impl OptimizerRule for ScalarSubqueriesToJoins {
    fn name(&self) -> &str {
        "scalar_subqueries_to_joins"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let joined = self.0.rewrite(plan, config)?;
        match joined.transformed {
            true => joined.map_data(without_marks),
            false => Ok(joined),
        }
    }
}

/// The projection that the rule has made, and the filter below it, if it was one.
fn without_marks(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = match plan {
        LogicalPlan::Projection(mut projection)
            if matches!(projection.input.as_ref(), LogicalPlan::Filter(_)) =>
        {
            let filter = Arc::unwrap_or_clone(projection.input);
            let filter = filter.map_expressions(without_or_null)?.data;
            projection.input = Arc::new(filter);
            LogicalPlan::Projection(projection)
        }
        other => other,
    };
    let names = NamePreserver::new(&plan);
    let plan = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(without_or_null(expr)?.update_data(|expr| name.restore(expr)))
    })?;
    plan.data.recompute_schema()
}
