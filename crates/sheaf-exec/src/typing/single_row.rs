//! Correlated subqueries whose one row is a value.
//!
//! DataFusion makes a join of a correlated subquery that is a value only if the subquery has at most one row for what
//! it is correlated by. That is so if it aggregates, or finds its row by a unique key. Any other is given an aggregate
//! here:
//!
//! ```text
//!   (SELECT y FROM t WHERE t.k = o.k)                     $only_row((SELECT any_value(y) ...), (SELECT count(1) ...))
//!   (SELECT y FROM t WHERE t.k = o.k LIMIT 1)             (SELECT any_value(y) ...)
//!   (SELECT y FROM t WHERE t.k = o.k ORDER BY x LIMIT 1)  (SELECT first_value(y ORDER BY x) ...)
//! ```
//!
//! The aggregate becomes groups by what the subquery is correlated by, so all of that must be equalities. Otherwise
//! the subquery stays as it is, and runs for each row.
//!
//! `$only_row` gives error 1242 where there are several rows. It is computed above the join, so there may be several
//! where its value is not used.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, Result};
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::logical_plan::{Aggregate, Projection, Subquery};
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{
    BinaryExpr, Expr, FetchType, LogicalPlan, Operator, SkipType, SortExpr, lit,
};

use crate::aggregates::aggregate_function;
use crate::functions::call;

/// What the column of such a subquery is called: decorrelation may put others beside it.
const VALUE: &str = "$value";

/// Gives the correlated subqueries in an expression one row each. They have been typed.
pub(super) fn with_single_rows(expr: Expr) -> Result<Expr> {
    let single = expr.transform_up(|expr| match expr {
        Expr::ScalarSubquery(subquery) if !subquery.outer_ref_columns.is_empty() => {
            single_row(subquery)
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(single.data)
}

fn single_row(subquery: Subquery) -> Result<Transformed<Expr>> {
    let plan = Arc::clone(&subquery.subquery);
    let is_limited = matches!(plan.as_ref(), LogicalPlan::Limit(_));
    let Some((rows, is_first)) = without_limit(plan)? else {
        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
    };
    let (value, order, input) = without_order(rows);
    if input.max_rows().is_some_and(|rows| rows <= 1) || groups_by_correlation(&input)? {
        if !is_limited && order.is_empty() {
            return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
        }
        let row = Projection::try_new(vec![value.alias(VALUE)], input)?;
        let row = subquery.with_plan(Arc::new(LogicalPlan::Projection(row)));
        return Ok(Transformed::yes(Expr::ScalarSubquery(row)));
    }
    if !is_correlated_by_equalities(&input)? {
        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
    }
    let aggregated = |name: &str, argument: Expr, order: Vec<SortExpr>| -> Result<Expr> {
        let Some(function) = aggregate_function(name) else {
            return datafusion_common::internal_err!("{name} is not registered");
        };
        let function =
            AggregateFunction::new_udf(function, vec![argument], false, None, order, None);
        let aggregates = vec![Expr::AggregateFunction(function)];
        let aggregate = Aggregate::try_new(Arc::clone(&input), Vec::new(), aggregates)?;
        let column = Expr::Column(Column::from(aggregate.schema.qualified_field(0)));
        let aggregate = Arc::new(LogicalPlan::Aggregate(aggregate));
        let row = Projection::try_new(vec![column.alias(VALUE)], aggregate)?;
        let row = Arc::new(LogicalPlan::Projection(row));
        Ok(Expr::ScalarSubquery(subquery.with_plan(row)))
    };
    Ok(Transformed::yes(match (is_first, order.is_empty()) {
        (true, false) => aggregated("first_value", value, order)?,
        (true, true) => aggregated("any_value", value, Vec::new())?,
        (false, _) => {
            let value = aggregated("any_value", value, Vec::new())?;
            let count = aggregated("count", lit(1i64), Vec::new())?;
            call("$only_row", vec![value, count])
        }
    }))
}

/// The rows below a limit, and whether it takes the first of them. A greater limit changes nothing: two rows are too
/// many. `None` for what can be said of all rows only.
fn without_limit(plan: Arc<LogicalPlan>) -> Result<Option<(Arc<LogicalPlan>, bool)>> {
    let LogicalPlan::Limit(limit) = plan.as_ref() else {
        return Ok(Some((plan, false)));
    };
    let input = Arc::clone(&limit.input);
    Ok(match (limit.get_skip_type()?, limit.get_fetch_type()?) {
        (SkipType::Literal(0), FetchType::Literal(Some(1))) => Some((input, true)),
        (SkipType::Literal(0), FetchType::Literal(None | Some(2..))) => Some((input, false)),
        _ => None,
    })
}

/// The value of rows, their order, and the rows without it.
fn without_order(rows: Arc<LogicalPlan>) -> (Expr, Vec<SortExpr>, Arc<LogicalPlan>) {
    if let LogicalPlan::Projection(projection) = rows.as_ref()
        && let LogicalPlan::Sort(sort) = projection.input.as_ref()
    {
        let value = projection.expr[0].clone().unalias();
        return (value, sort.expr.clone(), Arc::clone(&sort.input));
    }
    let value = Expr::Column(rows.schema().columns()[0].clone());
    match rows.as_ref() {
        LogicalPlan::Sort(sort) => (value, sort.expr.clone(), Arc::clone(&sort.input)),
        _ => (value, Vec::new(), rows),
    }
}

/// Whether all conditions on columns of the query around are equalities of such columns with columns of the subquery.
fn is_correlated_by_equalities(rows: &LogicalPlan) -> Result<bool> {
    let is_column = |expr: &Expr| match expr {
        Expr::Column(_) => true,
        Expr::Cast(cast) => matches!(cast.expr.as_ref(), Expr::Column(_)),
        _ => false,
    };
    let is_equality = |condition: &Expr| match condition {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Eq,
            right,
        }) => {
            is_column(left) && !right.any_column_refs()
                || is_column(right) && !left.any_column_refs()
        }
        _ => false,
    };
    let mut are_equalities = true;
    rows.apply(|node| {
        let is_known = match node {
            LogicalPlan::Filter(filter) => split_conjunction(&filter.predicate)
                .into_iter()
                .all(|condition| !condition.contains_outer() || is_equality(condition)),
            node => !node.contains_outer_reference(),
        };
        are_equalities &= is_known;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(are_equalities)
}

/// Whether rows are groups by nothing but what the subquery is correlated by, of which there is one then.
fn groups_by_correlation(rows: &LogicalPlan) -> Result<bool> {
    let aggregate = match rows {
        LogicalPlan::Projection(projection) => return groups_by_correlation(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => return groups_by_correlation(&alias.input),
        LogicalPlan::Filter(filter) => match filter.input.as_ref() {
            LogicalPlan::Aggregate(aggregate) => aggregate,
            _ => return Ok(false),
        },
        LogicalPlan::Aggregate(aggregate) => aggregate,
        _ => return Ok(false),
    };
    let mut correlated: Vec<Column> = Vec::new();
    rows.apply(|node| {
        if let LogicalPlan::Filter(filter) = node {
            for condition in split_conjunction(&filter.predicate) {
                if condition.contains_outer() {
                    correlated.extend(condition.column_refs().into_iter().cloned());
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let is_correlated = |group: &Expr| {
        let columns = group.column_refs();
        columns
            .into_iter()
            .all(|column| correlated.contains(column))
    };
    Ok(!aggregate.aggr_expr.is_empty() && aggregate.group_expr.iter().all(is_correlated))
}
