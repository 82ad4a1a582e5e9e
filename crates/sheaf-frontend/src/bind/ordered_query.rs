//! ORDER BY behind a query that is not one SELECT: its names are those of the query's columns.

use std::ops::ControlFlow;

use sheaf_types::error::codes;
use sqlparser::ast::{Expr, Query, Select, SetExpr};

use super::arguments::invalid_group_function;
use crate::error::SqlError;
use crate::walk::{ExpressionVisitor, walk_expression};

/// What is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderedQuery {
    /// UNION and the like.
    SetOperation,
    Values,
    /// A query with an end of its own.
    InParentheses,
}

impl OrderedQuery {
    /// The error for an aggregate in an expression of ORDER BY, which is counted from 1.
    pub(super) fn refused_aggregate(self, number: usize) -> SqlError {
        let (code, about) = match self {
            OrderedQuery::SetOperation => (
                codes::AGGREGATE_ORDER_FOR_UNION,
                "a UNION, EXCEPT or INTERSECT",
            ),
            OrderedQuery::InParentheses => (
                codes::AGGREGATE_ORDER_NON_AGG_QUERY,
                "the result of a non-aggregated query",
            ),
            OrderedQuery::Values => return invalid_group_function(),
        };
        SqlError::new(
            code,
            format!(
                "Expression #{number} of ORDER BY contains aggregate function and applies to {about}"
            ),
        )
    }
}

/// The SELECT in parentheses, if nothing else is between them.
pub(super) fn select_in_parentheses(mut body: &SetExpr) -> Option<&Select> {
    loop {
        let inner = match body {
            SetExpr::Query(inner) => inner,
            SetExpr::Select(select) => return Some(select),
            _ => return None,
        };
        let has_end = inner.order_by.is_some()
            || inner.limit_clause.is_some()
            || inner.fetch.is_some()
            || inner.for_clause.is_some();
        if inner.with.is_some() || has_end || !inner.locks.is_empty() {
            return None;
        }
        body = inner.body.as_ref();
    }
}

/// Error 1250 in place of 1054, if the expression names the column of a table of one of the queries.
pub(super) fn order_of_parts(error: SqlError, expr: &Expr) -> SqlError {
    if error.code != codes::BAD_FIELD_ERROR.number() {
        return error;
    }
    let mut named = NamedTable::default();
    walk_expression(&mut expr.clone(), &mut named);
    match named.table {
        Some(table) => SqlError::new(
            codes::TABLENAME_NOT_ALLOWED_HERE,
            format!(
                "Table '{table}' from one of the SELECTs cannot be used in global ORDER clause"
            ),
        ),
        None => error,
    }
}

/// The first table that an expression names outside of subqueries.
#[derive(Default)]
struct NamedTable {
    table: Option<String>,
    depth: usize,
}

impl ExpressionVisitor for NamedTable {
    fn enter_query(&mut self, _: &Query) {
        self.depth += 1;
    }

    fn leave_query(&mut self) {
        self.depth -= 1;
    }

    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::CompoundIdentifier(parts) = expression
            && let [.., table, _] = parts.as_slice()
        {
            self.table = Some(table.value.clone());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
