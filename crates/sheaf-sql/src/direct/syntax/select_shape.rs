//! What a SELECT says about its rows: whether they are one group, whether each is shown, and what its expressions take
//! from one.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sheaf_frontend::walk::{ExpressionReader, read_expression};
use sqlparser::ast;

use super::names::{Names, column_of};
use super::plain_call::is_aggregate_name;
use crate::change::values::assigned::last_part;

/// Names the only table of a wildcard, which would show the columns of inputs and subqueries, too.
pub(in crate::direct) fn qualify_wildcard(
    projection: &mut [ast::SelectItem],
    names: &[Names<'_>],
) -> Option<()> {
    for item in projection {
        if let ast::SelectItem::Wildcard(options) = item {
            let [names] = names else {
                return None;
            };
            let alias = ast::Ident::with_quote('`', names.alias);
            let name = ast::ObjectName::from(vec![alias]);
            let kind = ast::SelectItemQualifiedWildcardKind::ObjectName(name);
            *item = ast::SelectItem::QualifiedWildcard(kind, options.clone());
        }
    }
    Some(())
}

/// What the items of a select list are called by ORDER BY and its like.
pub(in crate::direct) fn aliases_of(select: &ast::Select) -> BTreeSet<String> {
    let aliases = select.projection.iter().filter_map(|item| match item {
        ast::SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.to_lowercase()),
        _ => None,
    });
    aliases.collect()
}

/// Whether a function is called that may be an aggregate.
pub(in crate::direct) fn has_aggregate(item: &ast::SelectItem) -> bool {
    let text = item.to_string().to_ascii_lowercase();
    let names = text.split(|character: char| !character.is_alphanumeric() && character != '_');
    names.into_iter().any(is_aggregate_name)
}

/// Whether a result has a row for each that is found.
pub(in crate::direct) fn shows_each_row(select: &ast::Select) -> bool {
    matches!(&select.group_by, ast::GroupByExpr::Expressions(by, _) if by.is_empty())
        && select.having.is_none()
        && select.distinct.is_none()
        && !has_many_row_function(select)
}

/// Whether the items of a SELECT, without their subqueries, have aggregates or window functions.
pub(in crate::direct) fn has_many_row_function(select: &ast::Select) -> bool {
    any_item(select, |functions| {
        functions.has_aggregates || functions.has_windows
    })
}

/// As [`has_many_row_function`], of aggregates.
pub(in crate::direct) fn has_aggregate_of_rows(select: &ast::Select) -> bool {
    any_item(select, |functions| functions.has_aggregates)
}

/// As [`has_many_row_function`], of window functions.
pub(in crate::direct) fn has_window_function(select: &ast::Select) -> bool {
    any_item(select, |functions| functions.has_windows)
}

fn any_item(select: &ast::Select, holds: impl Fn(&OfMany) -> bool) -> bool {
    select.projection.iter().any(|item| match item {
        ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
            let mut functions = OfMany::default();
            read_expression(expr, &mut functions);
            holds(&functions)
        }
        _ => false,
    })
}

/// Whether the list of a SELECT computes with what rows, groups and windows give. It may fail for rows that LIMIT
/// leaves out, and is not to.
pub(in crate::direct) fn computes_list(select: &ast::Select) -> bool {
    fn computes(expr: &ast::Expr) -> bool {
        match expr {
            ast::Expr::Nested(inner) => computes(inner),
            ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) | ast::Expr::Value(_) => {
                false
            }
            expr => !is_of_many(expr),
        }
    }
    let mut items = select.projection.iter();
    items.any(|item| match item {
        ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
            computes(expr)
        }
        _ => false,
    })
}

/// Whether an expression is an aggregate or a window function.
fn is_of_many(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Function(function) if function.over.is_some()
        || is_aggregate_name(&function.name.to_string().to_ascii_lowercase()))
}

/// Whether the items, the WHERE or the HAVING of a SELECT have subqueries.
pub(in crate::direct) fn has_queries(select: &ast::Select) -> bool {
    let items = select.projection.iter().filter_map(|item| match item {
        ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
            Some(expr)
        }
        _ => None,
    });
    let mut parts = items.chain(&select.selection).chain(&select.having);
    parts.any(|expr| {
        let mut queries = OfMany::default();
        read_expression(expr, &mut queries);
        queries.has_queries
    })
}

/// Whether the rows of a SELECT are one group, also if there are none.
pub(in crate::direct) fn is_one_group(select: &ast::Select) -> bool {
    matches!(&select.group_by, ast::GroupByExpr::Expressions(by, _) if by.is_empty())
        && (select.having.is_some() || has_many_row_function(select))
}

/// Whether columns of queries in the FROM are shown that no aggregate is of. A constant among them has its value also
/// where there is no row, and only the vectorised path knows which ones are constants.
pub(in crate::direct) fn shows_columns_of_queries(
    select: &ast::Select,
    names: &[Names<'_>],
) -> bool {
    if names.iter().all(|names| names.table().is_some()) {
        return false;
    }
    let mut parts = PartsOfRow::default();
    for item in &select.projection {
        match item {
            ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
                read_expression(expr, &mut parts);
            }
            _ => return true,
        }
    }
    if let Some(having) = &select.having {
        read_expression(having, &mut parts);
    }
    let is_of_query = |column: &ast::Expr| match column_of(names, column) {
        Some((table, _)) => names[table].table().is_none(),
        None => false,
    };
    parts.columns.iter().any(is_of_query)
}

pub(in crate::direct) fn is_text(column: &ast::Expr, names: &[Names<'_>]) -> bool {
    column_of(names, column).is_some_and(|(table, column)| {
        let ty = &names[table].definition().columns[column].ty;
        ty.is_character() || ty.is_binary()
    })
}

/// What expressions take from a row: the names in them that are neither in aggregates nor in subqueries.
#[derive(Default)]
pub(in crate::direct) struct PartsOfRow {
    pub(in crate::direct) columns: Vec<ast::Expr>,
    /// There are functions, or their like.
    pub(in crate::direct) computes: bool,
    /// Aggregates and subqueries around what is walked.
    depth: usize,
}

impl PartsOfRow {
    fn is_aggregate(expr: &ast::Expr) -> bool {
        matches!(expr, ast::Expr::Function(function)
            if is_aggregate_name(&function.name.to_string().to_ascii_lowercase()))
    }
}

impl ExpressionReader for PartsOfRow {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.depth += 1;
    }

    fn leave_query(&mut self) {
        self.depth -= 1;
    }

    fn enter_expression(&mut self, expression: &ast::Expr) {
        self.depth += usize::from(PartsOfRow::is_aggregate(expression));
    }

    fn leave_expression(&mut self, expression: &ast::Expr) -> ControlFlow<()> {
        if PartsOfRow::is_aggregate(expression) {
            self.depth -= 1;
        } else if self.depth == 0 {
            match expression {
                ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) => {
                    self.columns.push(expression.clone());
                }
                ast::Expr::Value(_)
                | ast::Expr::Nested(_)
                | ast::Expr::UnaryOp { .. }
                | ast::Expr::BinaryOp { .. }
                | ast::Expr::Between { .. }
                | ast::Expr::InList { .. }
                | ast::Expr::IsNull(_)
                | ast::Expr::IsNotNull(_)
                | ast::Expr::Exists { .. } => {}
                _ => self.computes = true,
            }
        }
        ControlFlow::Continue(())
    }
}

/// Looks for functions of many rows, but not in subqueries, and for these.
#[derive(Default)]
struct OfMany {
    depth: usize,
    has_aggregates: bool,
    has_windows: bool,
    has_queries: bool,
}

impl ExpressionReader for OfMany {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.depth += 1;
        self.has_queries = true;
    }

    fn leave_query(&mut self) {
        self.depth -= 1;
    }

    fn leave_expression(&mut self, expression: &ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Function(function) = expression
            && self.depth == 0
        {
            let name = function.name.to_string().to_ascii_lowercase();
            match function.over {
                Some(_) => self.has_windows = true,
                None => self.has_aggregates |= is_aggregate_name(&name),
            }
        }
        ControlFlow::Continue(())
    }
}

/// An item of a list that is a column, a constant or all columns.
pub(in crate::direct) fn computes_nothing(item: &ast::SelectItem) -> bool {
    use ast::SelectItem::{
        ExprWithAlias, ExprWithAliases, QualifiedWildcard, UnnamedExpr, Wildcard,
    };
    let is_plain = |expr: &ast::Expr| {
        matches!(
            expr,
            ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) | ast::Expr::Value(_)
        )
    };
    match item {
        UnnamedExpr(expr) | ExprWithAlias { expr, .. } | ExprWithAliases { expr, .. } => {
            is_plain(expr)
        }
        QualifiedWildcard(..) | Wildcard(_) => true,
    }
}

/// Whether an expression has the same value in all rows: it names no column.
pub(in crate::direct) fn is_constant(expr: &ast::Expr) -> bool {
    let names_column = ast::visit_expressions(expr, |part| match part {
        ast::Expr::Identifier(name) if name.value.starts_with('@') => ControlFlow::Continue(()),
        ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        ast::Expr::Function(function)
            if is_aggregate_name(&last_part(&function.name).to_ascii_lowercase()) =>
        {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    names_column.is_continue()
}
