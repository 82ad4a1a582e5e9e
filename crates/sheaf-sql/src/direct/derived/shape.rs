//! Parts of queries: what is around a body, and queries without what chooses their rows, which have the same columns.

use sqlparser::ast;

/// Whether a query has nothing but a body, an order and a limit.
pub(super) fn is_plain(query: &ast::Query) -> bool {
    query.with.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty()
        && query.for_clause.is_none()
        && query.settings.is_none()
        && query.format_clause.is_none()
        && query.pipe_operators.is_empty()
}

/// A query that only has this body.
pub(super) fn query_of(body: ast::SetExpr) -> ast::Query {
    ast::Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// A query without parentheses around it.
pub(super) fn unwrapped(query: &ast::Query) -> &ast::Query {
    match query.body.as_ref() {
        ast::SetExpr::Query(inner)
            if is_plain(query) && query.order_by.is_none() && query.limit_clause.is_none() =>
        {
            unwrapped(inner)
        }
        _ => query,
    }
}

/// A query with the same columns and without what chooses its rows; `None` if its columns depend on parameters.
pub(super) fn shape_of(query: &ast::Query) -> Option<ast::Query> {
    let mut shape = query_of(query.body.as_ref().clone());
    strip(&mut shape.body)?;
    (!shape.to_string().contains('?')).then_some(shape)
}

/// The same of a SELECT.
pub(in crate::direct) fn shape_of_select(select: &ast::Select) -> Option<ast::Query> {
    shape_of(&query_of(ast::SetExpr::Select(Box::new(select.clone()))))
}

fn strip(set: &mut ast::SetExpr) -> Option<()> {
    match set {
        ast::SetExpr::Select(select) => {
            select.selection = None;
            select.having = None;
            without_conditions(&mut select.from)
        }
        ast::SetExpr::Query(query) => {
            query.order_by = None;
            query.limit_clause = None;
            strip(&mut query.body)
        }
        ast::SetExpr::SetOperation { left, right, .. } => {
            strip(left)?;
            strip(right)
        }
        _ => None,
    }
}

/// Leaves out of a FROM what the rows have been found by. `None` for joins that there are not among such rows.
pub(in crate::direct) fn without_conditions(from: &mut [ast::TableWithJoins]) -> Option<()> {
    let always = ast::Expr::value(ast::Value::Boolean(true));
    for part in from {
        strip_factor(&mut part.relation)?;
        for join in &mut part.joins {
            strip_factor(&mut join.relation)?;
            match &mut join.join_operator {
                ast::JoinOperator::CrossJoin(ast::JoinConstraint::None) => {}
                ast::JoinOperator::Join(_) | ast::JoinOperator::Inner(_) => {
                    join.join_operator = ast::JoinOperator::CrossJoin(ast::JoinConstraint::None);
                }
                ast::JoinOperator::Left(ast::JoinConstraint::On(condition))
                | ast::JoinOperator::LeftOuter(ast::JoinConstraint::On(condition)) => {
                    *condition = always.clone();
                }
                _ => return None,
            }
        }
    }
    Some(())
}

fn strip_factor(factor: &mut ast::TableFactor) -> Option<()> {
    match factor {
        ast::TableFactor::Derived { subquery, .. } => {
            **subquery = shape_of(subquery)?;
            Some(())
        }
        _ => Some(()),
    }
}
