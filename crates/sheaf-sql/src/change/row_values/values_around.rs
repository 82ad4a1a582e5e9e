//! Values of INSERT with subqueries that name columns of the row that they are for.
//!
//! ```text
//!   (a, b) VALUES (7, (SELECT y FROM u WHERE x = a))
//!   -->  (7, (SELECT (SELECT y FROM u WHERE x = a) FROM (SELECT CAST(7 AS SIGNED) AS a) AS t))
//! ```
//!
//! The row becomes a derived table around the value, with the name of its table. So a name means a column of the
//! subquery's own tables first, and then one of the row. A column is what was given before, from left to right, and its
//! default if that is nothing.

use std::ops::ControlFlow;

use sheaf_frontend::walk::{ExpressionVisitor, walk_expression, walk_outside_queries};
use sheaf_table::Table;
use sqlparser::ast;

use super::values_before::{
    MAX_SUBSTITUTIONS, ValuesBefore, built_too_often, column_of, is_plain, write_defaults,
};
use crate::error::{Result, SqlError};

/// Rows for the columns `targets` where the row stands around each value with a subquery that may name its columns.
/// `None` if there is no such value.
pub(crate) fn row_around_values(
    (table, targets, now_micros): (&Table, &[usize], i64),
    rows: &mut [Vec<ast::Expr>],
) -> Option<Result<Vec<Vec<ast::Expr>>>> {
    let mut values = rows.iter_mut().flatten();
    if !values.any(|value| names_in(table, value).are_in_query) {
        return None;
    }
    let rows = rows.iter().cloned();
    let rows = rows.map(|row| around_values(table, targets, row, now_micros));
    Some(rows.collect())
}

fn around_values(
    table: &Table,
    targets: &[usize],
    mut row: Vec<ast::Expr>,
    now_micros: i64,
) -> Result<Vec<ast::Expr>> {
    // The values, with what was given in the places of names.
    let mut given: Vec<ast::Expr> = Vec::with_capacity(row.len());
    let mut count = 0;
    for value in &mut row {
        let before = ValuesBefore::new(table, targets, &given, now_micros, count);
        let names = names_in(table, value);
        let named = match names.are_in_query {
            true => {
                write_defaults(table, value)?;
                count += names.columns.len();
                if count > MAX_SUBSTITUTIONS {
                    return Err(built_too_often());
                }
                let columns = names.columns.into_iter().map(|position| {
                    let name = &table.definition.columns[position].name;
                    Ok((name.as_str(), before.value_of(position)?))
                });
                let columns = columns.collect::<Result<Vec<_>>>()?;
                *value = around(value.clone(), &table.definition.name, columns)?;
                value.clone()
            }
            false => {
                let mut named = value.clone();
                if !is_plain(&named) {
                    write_defaults(table, &mut named)?;
                    count = before.name(&mut named)?;
                }
                named
            }
        };
        given.push(named);
    }
    Ok(row)
}

/// `(SELECT value FROM (SELECT column AS name, ..) AS table)`.
fn around(value: ast::Expr, table: &str, columns: Vec<(&str, ast::Expr)>) -> Result<ast::Expr> {
    let item = |(name, expr)| ast::SelectItem::ExprWithAlias {
        expr,
        alias: ast::Ident::with_quote('`', name),
    };
    let form = "(SELECT 1 FROM (SELECT 1) AS t)";
    let mut form = crate::parser::parse_expression(form, &Default::default())?;
    let Some(select) = select_in(&mut form) else {
        return Err(SqlError::unknown("a form that is no subquery"));
    };
    select.projection = vec![item(("value", value))];
    if let Some(from) = select.from.first_mut()
        && let ast::TableFactor::Derived {
            subquery, alias, ..
        } = &mut from.relation
        && let (ast::SetExpr::Select(row), Some(alias)) = (subquery.body.as_mut(), alias)
    {
        row.projection = columns.into_iter().map(item).collect();
        alias.name = ast::Ident::with_quote('`', table);
    }
    Ok(form)
}

fn select_in(subquery: &mut ast::Expr) -> Option<&mut ast::Select> {
    match subquery {
        ast::Expr::Nested(inner) => select_in(inner),
        ast::Expr::Subquery(query) => match query.body.as_mut() {
            ast::SetExpr::Select(select) => Some(select),
            _ => None,
        },
        _ => None,
    }
}

/// The columns of their row that values name, each once: outside of subqueries, or also in them.
pub(crate) fn columns_named(
    table: &Table,
    rows: &mut [Vec<ast::Expr>],
    in_queries: bool,
) -> Vec<usize> {
    let mut columns: Vec<usize> = Vec::new();
    for value in rows.iter_mut().flatten().filter(|value| !is_plain(value)) {
        let named = match in_queries {
            true => names_in(table, value).columns,
            false => columns_outside_queries(table, value),
        };
        for column in named {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
    }
    columns
}

fn columns_outside_queries(table: &Table, value: &mut ast::Expr) -> Vec<usize> {
    let mut columns = Vec::new();
    walk_outside_queries(value, &mut |expression| {
        columns.extend(column_of(table, expression));
        ControlFlow::Continue(())
    });
    columns
}

/// Names in a value that may be those of columns of the row.
#[derive(Default)]
struct Names {
    /// Each once.
    columns: Vec<usize>,
    /// One of them stands in a subquery.
    are_in_query: bool,
}

fn names_in(table: &Table, value: &mut ast::Expr) -> Names {
    struct Finder<'a> {
        table: &'a Table,
        queries: usize,
        found: Names,
    }
    impl ExpressionVisitor for Finder<'_> {
        fn enter_query(&mut self, _query: &ast::Query) {
            self.queries += 1;
        }

        fn leave_query(&mut self) {
            self.queries -= 1;
        }

        fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
            if let Some(position) = column_of(self.table, expression) {
                self.found.are_in_query |= self.queries > 0;
                if !self.found.columns.contains(&position) {
                    self.found.columns.push(position);
                }
            }
            ControlFlow::Continue(())
        }
    }
    let mut finder = Finder {
        table,
        queries: 0,
        found: Names::default(),
    };
    if !is_plain(value) {
        walk_expression(value, &mut finder);
    }
    finder.found
}
