//! Queries that compute with the least and greatest values of a whole table's columns, which an index has at its ends.

use std::ops::ControlFlow;

use sheaf_frontend::walk::{ExpressionVisitor, read_outside_queries, walk_expression};
use sqlparser::ast;

use crate::direct::syntax::plain_call::is_aggregate_name;
use crate::query::values::select_of;

/// A query that computes with the least and greatest values of a whole table's columns, as one without a table that
/// computes with subqueries: `MAX(id) + 1` of t is `(SELECT MAX(id) FROM t) + 1`, and an index tells that.
pub(super) fn of_extremes(select: &ast::Select) -> Option<ast::Select> {
    let is_whole = select.selection.is_none()
        && select.having.is_none()
        && matches!(&select.group_by, ast::GroupByExpr::Expressions(by, _) if by.is_empty());
    let [ast::TableWithJoins { joins, .. }] = select.from.as_slice() else {
        return None;
    };
    if !is_whole || !joins.is_empty() {
        return None;
    }
    // The only one that there is would be asked for again and again.
    if let [ast::SelectItem::UnnamedExpr(only) | ast::SelectItem::ExprWithAlias { expr: only, .. }] =
        select.projection.as_slice()
        && is_extreme(only)
    {
        return None;
    }
    if !select.projection.iter().any(has_extreme) {
        return None;
    }
    let mut extremes = Extremes {
        from: &select.from,
        found: 0,
        has_others: false,
    };
    let mut changed = select.clone();
    for item in &mut changed.projection {
        match item {
            ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
                walk_expression(expr, &mut extremes);
            }
            _ => return None,
        }
    }
    changed.from = Vec::new();
    (extremes.found > 0 && !extremes.has_others).then_some(changed)
}

/// See [`of_extremes`].
struct Extremes<'a> {
    from: &'a [ast::TableWithJoins],
    found: usize,
    /// The statement has subqueries of its own, or other aggregates.
    has_others: bool,
}

fn is_extreme(expr: &ast::Expr) -> bool {
    let is_name = |name: String| ["min", "max"].contains(&name.to_ascii_lowercase().as_str());
    matches!(expr, ast::Expr::Function(function) if is_name(function.name.to_string()))
}

/// Whether there is one in an item. The copy of a long query takes megabytes.
fn has_extreme(item: &ast::SelectItem) -> bool {
    let (ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. }) = item
    else {
        return false;
    };
    let mut is_found = false;
    read_outside_queries(expr, &mut |expr| {
        is_found |= is_extreme(expr);
        match is_found {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    is_found
}

impl ExpressionVisitor for Extremes<'_> {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.has_others = true;
    }

    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        if is_extreme(expression)
            && let Ok(mut query) = select_of(vec![expression.clone()])
            && let ast::SetExpr::Select(select) = query.body.as_mut()
        {
            select.from = self.from.to_vec();
            *expression = ast::Expr::Subquery(query);
            self.found += 1;
        }
        if let ast::Expr::Function(function) = expression {
            let name = function.name.to_string().to_ascii_lowercase();
            self.has_others |= function.over.is_some() || is_aggregate_name(&name);
        }
        ControlFlow::Continue(())
    }
}
