//! Subqueries in the expressions of plans. The algebra has made joins of all but those that are values: what is left is
//! computed once, or for each row of a select list.
//!
//! A subquery that finds no row is NULL, though its column may not be: `$or_null(subquery)` says so until the value is
//! a column.

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Result, internal_datafusion_err};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{Expr, LogicalPlan};

use super::plan::schema_of_operands;
use crate::functions::as_function;

/// The value of a subquery that may find no row, and then is NULL although its column is not.
const OR_NULL: &str = "$or_null";

fn is_or_null(function: &ScalarFunction) -> bool {
    as_function(&function.func).is_some_and(|known| known.name == OR_NULL)
}

/// The values of subqueries that have become columns, which tell themselves whether they may be NULL.
pub fn without_or_null(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| match expr {
        Expr::ScalarFunction(mut function)
            if is_or_null(&function)
                && !matches!(function.args.first(), Some(Expr::ScalarSubquery(_))) =>
        {
            let value = function.args.pop();
            let value = value.ok_or_else(|| internal_datafusion_err!("{OR_NULL} of nothing"))?;
            Ok(Transformed::yes(value))
        }
        other => Ok(Transformed::no(other)),
    })
}

/// The columns that a subquery names of queries around it, those that subqueries in it name included.
pub fn outer_columns_of(subquery: &LogicalPlan) -> Result<Vec<Expr>> {
    let mut columns: Vec<Expr> = Vec::new();
    subquery.apply(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if matches!(expr, Expr::OuterReferenceColumn(..)) && !columns.contains(expr) {
                    columns.push(expr.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        let mut schema = None;
        node.apply_subqueries(|subquery| {
            let further = subquery.inputs().first().map(|plan| outer_columns_of(plan));
            for outer in further.transpose()?.into_iter().flatten() {
                let schema = match &mut schema {
                    Some(schema) => schema,
                    none => none.insert(schema_of_operands(node)?),
                };
                let is_of_node = matches!(&outer, Expr::OuterReferenceColumn(_, column)
                    if schema.has_column(column));
                if !is_of_node && !columns.contains(&outer) {
                    columns.push(outer);
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(columns)
}
