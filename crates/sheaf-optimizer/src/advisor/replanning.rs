//! A query that is planned again over tables with other indexes.
//!
//! The advisor plans a statement once for each candidate. What its names mean and how its expressions are simplified is
//! the same each time: only operators are chosen again. So the optimised logical plan is kept, and its scans get the
//! tables with the candidates.
//!
//! A few rewrites before look at indexes: whether a subquery runs for each row, and whether a join by an OR becomes
//! several joins. [`is_settled`] tells plans apart in which these rewrites may have had a say, or may have one.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::{JoinType, LogicalPlan};
use sheaf_exec::{MemoryTableSource, SheafTableSource};
use sheaf_table::Table;

use crate::logical::rule_passes::contains_subqueries;

/// Whether a logical plan is the same whatever indexes its tables have.
pub fn is_settled(plan: &LogicalPlan) -> Result<bool> {
    if contains_subqueries(plan) {
        return Ok(false);
    }
    let mut is_settled = true;
    plan.apply(|node| {
        is_settled = match node {
            LogicalPlan::TableScan(scan) => {
                scan.source.downcast_ref::<SheafTableSource>().is_some()
                    || scan.source.downcast_ref::<MemoryTableSource>().is_some()
            }
            // A semi join, or a join with groups, may have been a subquery.
            LogicalPlan::Join(join) => {
                let has_pairs = matches!(
                    join.join_type,
                    JoinType::Inner | JoinType::Left | JoinType::Right
                );
                let is_by_key = !join.on.is_empty() || join.filter.is_none();
                has_pairs && is_by_key && is_of_rows(&join.left)? && is_of_rows(&join.right)?
            }
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::EmptyRelation(_) => true,
            _ => false,
        };
        Ok(match is_settled {
            true => TreeNodeRecursion::Continue,
            false => TreeNodeRecursion::Stop,
        })
    })?;
    Ok(is_settled)
}

/// Whether a side of a join is made of rows of tables as they are.
fn is_of_rows(side: &LogicalPlan) -> Result<bool> {
    let is_other = side.exists(|node| {
        let is_of_rows = matches!(
            node,
            LogicalPlan::TableScan(_)
                | LogicalPlan::Join(_)
                | LogicalPlan::Projection(_)
                | LogicalPlan::Filter(_)
                | LogicalPlan::SubqueryAlias(_)
        );
        Ok(!is_of_rows)
    })?;
    Ok(!is_other)
}

/// A plan in which these tables stand for others of their version.
pub fn over_tables(plan: LogicalPlan, tables: &[Arc<Table>]) -> Result<LogicalPlan> {
    let replaced = plan.transform_down(|node| {
        let LogicalPlan::TableScan(mut scan) = node else {
            return Ok(Transformed::no(node));
        };
        let source = scan.source.downcast_ref::<SheafTableSource>();
        let other = source.and_then(|source| {
            let mut tables = tables.iter();
            let table = tables.find(|table| table.is_version_of(&source.table))?;
            Some(source.over(Arc::clone(table)))
        });
        Ok(match other {
            Some(source) => {
                scan.source = Arc::new(source);
                Transformed::yes(LogicalPlan::TableScan(scan))
            }
            None => Transformed::no(LogicalPlan::TableScan(scan)),
        })
    })?;
    Ok(replaced.data)
}
