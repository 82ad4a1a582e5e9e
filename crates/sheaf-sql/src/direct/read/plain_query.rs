//! A query taken apart: a plan is made where it has no parts but the plain ones.

use sqlparser::ast;

/// A query that is one SELECT, with its order, its limit and its locks.
pub(in crate::direct) struct PlainQuery<'a> {
    pub(in crate::direct) select: &'a ast::Select,
    pub(in crate::direct) order_by: Option<&'a ast::OrderBy>,
    pub(in crate::direct) limit_clause: Option<&'a ast::LimitClause>,
    pub(in crate::direct) locks: &'a [ast::LockClause],
}

/// `None` if there is more to a query.
pub(in crate::direct) fn plain_query(query: &ast::Query) -> Option<PlainQuery<'_>> {
    let ast::Query {
        with: None,
        body,
        order_by,
        limit_clause,
        fetch: None,
        locks,
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators,
    } = query
    else {
        return None;
    };
    let ast::SetExpr::Select(select) = body.as_ref() else {
        return None;
    };
    pipe_operators.is_empty().then_some(PlainQuery {
        select,
        order_by: order_by.as_ref(),
        limit_clause: limit_clause.as_ref(),
        locks,
    })
}

/// A SELECT that has nothing but a list, FROM, WHERE and GROUP BY.
pub(in crate::direct) struct PlainSelect<'a> {
    pub(in crate::direct) distinct: bool,
    pub(in crate::direct) selection: Option<&'a ast::Expr>,
    pub(in crate::direct) group_by: &'a [ast::Expr],
}

/// `None` if there is more to a SELECT.
pub(in crate::direct) fn plain_select(select: &ast::Select) -> Option<PlainSelect<'_>> {
    match select.having {
        None => plain_select_of_groups(select, false),
        Some(_) => None,
    }
}

/// The same where HAVING may be there, too, and WITH ROLLUP if it `may_roll_up`.
pub(in crate::direct) fn plain_select_of_groups(
    select: &ast::Select,
    may_roll_up: bool,
) -> Option<PlainSelect<'_>> {
    let ast::Select {
        select_token: _,
        optimizer_hints,
        distinct,
        select_modifiers: None,
        top: None,
        top_before_distinct: _,
        projection: _,
        exclude: None,
        into: None,
        from: _,
        lateral_views,
        prewhere: None,
        selection,
        connect_by,
        group_by: ast::GroupByExpr::Expressions(group_by, group_by_modifiers),
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window,
        qualify: None,
        window_before_qualify: _,
        value_table_mode: None,
        flavor: ast::SelectFlavor::Standard,
    } = select
    else {
        return None;
    };
    let is_grouped_plainly = match group_by_modifiers.as_slice() {
        [] => true,
        [ast::GroupByWithModifier::Rollup] => may_roll_up && !group_by.is_empty(),
        _ => false,
    };
    let is_plain = optimizer_hints.is_empty()
        && lateral_views.is_empty()
        && connect_by.is_empty()
        && is_grouped_plainly
        && cluster_by.is_empty()
        && distribute_by.is_empty()
        && sort_by.is_empty()
        && named_window.is_empty();
    let distinct = match distinct {
        None | Some(ast::Distinct::All) => false,
        Some(ast::Distinct::Distinct) => true,
        Some(ast::Distinct::On(_)) => return None,
    };
    is_plain.then_some(PlainSelect {
        distinct,
        selection: selection.as_ref(),
        group_by,
    })
}
