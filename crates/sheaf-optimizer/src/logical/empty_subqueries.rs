//! A subquery that is known to have no rows is a constant.
//!
//! ```text
//!   (SELECT .. FROM nothing)  -->  NULL
//! ```
//!
//! What makes a subquery nothing may be another one inside of it, so this is done in each pass.

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::{Expr, LogicalPlan, Subquery};
use datafusion_optimizer::optimizer::ApplyOrder;
use datafusion_optimizer::{OptimizerConfig, OptimizerRule};

/// See the module's comment.
#[derive(Debug)]
pub(crate) struct EmptySubqueries;

impl OptimizerRule for EmptySubqueries {
    fn name(&self) -> &str {
        "empty_subqueries"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let rewritten = expr.transform_up(|part| {
                Ok(match constant(&part)? {
                    Some(value) => Transformed::yes(value),
                    None => Transformed::no(part),
                })
            })?;
            Ok(rewritten.update_data(|expr| name.restore(expr)))
        })
    }
}

/// What an expression is whose subquery has no rows.
fn constant(expr: &Expr) -> Result<Option<Expr>> {
    Ok(match expr {
        Expr::ScalarSubquery(subquery) if is_empty(subquery) => {
            let data_type = subquery.subquery.schema().field(0).data_type();
            Some(Expr::Literal(ScalarValue::try_new_null(data_type)?, None))
        }
        _ => None,
    })
}

fn is_empty(subquery: &Subquery) -> bool {
    matches!(subquery.subquery.as_ref(), LogicalPlan::EmptyRelation(empty) if !empty.produce_one_row)
}
