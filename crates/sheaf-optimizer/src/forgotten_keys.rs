//! Keys of tables that would mislead DataFusion's rules are forgotten.
//!
//! Rules leave out sort keys, group columns and joins that a key makes superfluous. They believe what a schema says of keys,
//! and of groups by several columns of a join it says too much ([`sheaf_exec::group_keys`]):
//!
//! ```text
//!   SELECT count(*) FROM x LEFT JOIN (SELECT a.k, b.m FROM a JOIN b .. GROUP BY a.k, b.m) d ON d.k = x.k
//!   d.k is said to be unique, so that the join could go
//! ```
//!
//! What is said of groups follows from the keys of the tables below them. So statements with such groups are optimized
//! without these. Their other groups, by a single column or of a single table, are known by what they are grouped by.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::logical_plan::TableScanBuilder;
use datafusion_expr::{Expr, LogicalPlan};
use sheaf_exec::SheafTableSource;

/// True where a statement groups by several columns and joins, be it by a subquery.
pub(crate) fn keys_mislead(plan: &LogicalPlan) -> Result<bool> {
    let (mut groups, mut joins) = (false, false);
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::Aggregate(aggregate) => groups |= aggregate.group_expr.len() > 1,
            LogicalPlan::Distinct(_) => groups = true,
            LogicalPlan::Join(_) => joins = true,
            _ => {
                let is_subquery = |expr: &Expr| {
                    Ok(matches!(
                        expr,
                        Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_)
                    ))
                };
                for expr in node.expressions() {
                    joins |= expr.exists(is_subquery)?;
                }
            }
        }
        Ok(match groups && joins {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(groups && joins)
}

/// The plan without the keys of its tables.
pub(crate) fn without_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    let forgotten = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::TableScan(scan) => {
            let Some(source) = scan.source.downcast_ref::<SheafTableSource>() else {
                return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
            };
            let source = Arc::new(source.without_keys());
            let scan = TableScanBuilder::new(scan.table_name, source)
                .with_projection(scan.projection)
                .with_filters(scan.filters)
                .with_fetch(scan.fetch)
                .build()?;
            Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
        }
        node => Ok(Transformed::yes(node.recompute_schema()?)),
    })?;
    Ok(forgotten.data)
}
