//! Keys of tables that would mislead DataFusion's rules are forgotten.
//!
//! Rules leave out sort keys, group columns and joins that a key makes superfluous. They believe what a schema says of
//! keys, and of groups by several columns of a join it says too much ([`sheaf_exec::group_keys`]):
//!
//! ```text
//!   SELECT count(*) FROM x LEFT JOIN (SELECT a.k, b.m FROM a JOIN b .. GROUP BY a.k, b.m) d ON d.k = x.k
//!   d.k is said to be unique, so that the join could go
//! ```
//!
//! What is said of groups follows from the keys below them: those of tables, and those of groups in derived tables. So
//! statements with such groups are optimized without the former. Where the latter are left below groups, the columns
//! that these are made by get names of their own: DataFusion tells by the name that a group column is a key below.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, Result};
use datafusion_expr::logical_plan::TableScanBuilder;
use datafusion_expr::{Aggregate, Expr, LogicalPlan, Projection};
use sheaf_exec::SheafTableSource;

/// True where a statement groups by several columns and joins, be it by a subquery.
pub(crate) fn keys_mislead(plan: &LogicalPlan) -> Result<bool> {
    let (mut groups, mut joins) = (false, false);
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::Aggregate(aggregate) => groups |= aggregate.group_expr.len() > 1,
            LogicalPlan::Join(_) => joins = true,
            _ => {
                let is_subquery = |expr: &Expr| Ok(matches!(expr, Expr::ScalarSubquery(_)));
                node.apply_expressions(|expr| {
                    joins |= expr.exists(is_subquery)?;
                    Ok(TreeNodeRecursion::Continue)
                })?;
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
        node => {
            let node = node.recompute_schema()?;
            Ok(Transformed::yes(match node {
                LogicalPlan::Aggregate(aggregate) if is_misled(&aggregate.input) => {
                    renamed(aggregate)?
                }
                node => node,
            }))
        }
    })?;
    Ok(forgotten.data)
}

/// True where groups of this input would be said to have its keys.
fn is_misled(input: &LogicalPlan) -> bool {
    !input.schema().functional_dependencies().is_empty()
}

/// Groups whose columns have names of their own inside. Grouping sets have no keys.
fn renamed(aggregate: Aggregate) -> Result<LogicalPlan> {
    let is_plain = |expr: &Expr| !matches!(expr, Expr::GroupingSet(_));
    if aggregate.group_expr.len() < 2 || !aggregate.group_expr.iter().all(is_plain) {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let groups = aggregate.group_expr.into_iter().enumerate();
    let groups = groups.map(|(at, expr)| expr.unalias().alias(format!("$group{at}")));
    let inner = Aggregate::try_new(aggregate.input, groups.collect(), aggregate.aggr_expr)?;
    let columns = inner.schema.iter().zip(aggregate.schema.iter());
    let outputs = columns
        .map(|(column, (relation, field))| {
            Expr::Column(Column::from(column)).alias_qualified(relation.cloned(), field.name())
        })
        .collect();
    let inner = Arc::new(LogicalPlan::Aggregate(inner));
    Ok(LogicalPlan::Projection(Projection::try_new(
        outputs, inner,
    )?))
}
