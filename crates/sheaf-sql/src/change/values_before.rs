//! `INSERT INTO t (a, b) VALUES (7, a + 1)`: values that name columns of the row that they are for.
//!
//! A column is what was given for it before, from left to right, and its default if that is nothing. VALUES are
//! computed without a row, so what was given takes the place of the name:
//!
//! ```text
//!   (a, b) VALUES (7, a + 1)   -->   (7, CAST(7 AS SIGNED) + 1)
//! ```

use std::ops::ControlFlow;

use sheaf_frontend::column_default::{DefaultsOf, computed_default};
use sheaf_frontend::walk::{ExpressionVisitor, walk_expression};
use sheaf_table::convert::default_of;
use sheaf_table::{Column, Table};
use sheaf_types::{ColumnType, Value, assignment::zero_value, column_text};
use sqlparser::ast;

use crate::change::assigned::{as_stored, is_default};
use crate::error::{Result, SqlError};

/// Columns that are replaced in one row: each may repeat a whole expression.
const MAX_SUBSTITUTIONS: usize = 1_000;

/// Replaces the names of columns in the values of a row for the columns `targets`.
///
/// # Errors
/// 1235 if the values build on each other too often.
pub(crate) fn name_values_before(
    table: &Table,
    targets: &[usize],
    row: &mut [ast::Expr],
    now_micros: i64,
) -> Result<()> {
    let mut count = 0;
    for at in 0..row.len() {
        if is_plain(&row[at]) {
            continue;
        }
        let (before, rest) = row.split_at_mut(at);
        let Some(value) = rest.first_mut() else {
            break;
        };
        write_defaults(table, value)?;
        let mut naming = ValuesBefore {
            table,
            targets,
            before,
            now_micros,
            queries: 0,
            count,
            failure: None,
        };
        walk_expression(value, &mut naming);
        if let Some(error) = naming.failure {
            return Err(error);
        }
        count = naming.count;
    }
    Ok(())
}

/// Puts the defaults of the table's columns in the places of DEFAULT().
///
/// # Errors
/// 1364 for a column without one, 1054 for one that there is not.
pub(crate) fn write_defaults(table: &Table, value: &mut ast::Expr) -> Result<()> {
    let mut defaults = DefaultsOf {
        columns: &table.definition.columns,
        failure: None,
    };
    walk_expression(value, &mut defaults);
    defaults.failure.map_or(Ok(()), Err)
}

/// Whether an expression names no column for sure.
fn is_plain(expression: &ast::Expr) -> bool {
    match expression {
        ast::Expr::Value(_) | ast::Expr::TypedString(_) => true,
        ast::Expr::UnaryOp { expr, .. } | ast::Expr::Nested(expr) => is_plain(expr),
        other => is_default(other),
    }
}

struct ValuesBefore<'a> {
    table: &'a Table,
    targets: &'a [usize],
    before: &'a [ast::Expr],
    now_micros: i64,
    /// Open subqueries: there a name may mean a column of their own.
    queries: usize,
    count: usize,
    failure: Option<SqlError>,
}

impl ValuesBefore<'_> {
    fn column(&self, name: &ast::Expr) -> Option<usize> {
        let definition = &self.table.definition;
        match name {
            ast::Expr::Identifier(name) if !name.value.starts_with('@') && !is_unnamed(name) => {
                definition.column_position(&name.value)
            }
            ast::Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [.., table, column] if table.value == definition.name => {
                    definition.column_position(&column.value)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn value_of(&self, position: usize) -> Result<ast::Expr> {
        let column = &self.table.definition.columns[position];
        let given = self.before.iter().zip(self.targets);
        let given = given.rev().find(|(_, target)| **target == position);
        match given {
            Some((value, _)) if !is_default(value) => as_stored(value, &column.ty),
            _ => match column.default_expression() {
                Some(default) => as_stored(&computed_default(default)?, &column.ty),
                None => as_stored(&default_value(column, self.now_micros), &column.ty),
            },
        }
    }
}

/// The keyword DEFAULT, of which a column may have the name in quotes.
fn is_unnamed(name: &ast::Ident) -> bool {
    name.quote_style.is_none() && name.value.eq_ignore_ascii_case("DEFAULT")
}

fn default_value(column: &Column, now_micros: i64) -> ast::Expr {
    let value = match default_of(column, now_micros) {
        Some(Value::Null) | None if !column.nullable => zero_value(&column.ty),
        default => default.unwrap_or_default(),
    };
    literal_of(&column.ty, &value)
}

/// A value of a column as a literal.
fn literal_of(ty: &ColumnType, value: &Value) -> ast::Expr {
    let text = column_text(ty, value);
    ast::Expr::value(match value {
        Value::Null => ast::Value::Null,
        number if number.is_number() => ast::Value::Number(text, false),
        _ => ast::Value::SingleQuotedString(text),
    })
}

/// Puts the values of a row in the places of its columns: for LOAD DATA ... SET, which computes with what was read.
///
/// # Errors
/// As [`write_defaults`].
pub(crate) fn name_values_of(table: &Table, row: &[Value], value: &mut ast::Expr) -> Result<()> {
    write_defaults(table, value)?;
    let mut naming = ValuesOfRow {
        table,
        row,
        queries: 0,
        failure: None,
    };
    walk_expression(value, &mut naming);
    naming.failure.map_or(Ok(()), Err)
}

struct ValuesOfRow<'a> {
    table: &'a Table,
    row: &'a [Value],
    queries: usize,
    failure: Option<SqlError>,
}

impl ExpressionVisitor for ValuesOfRow<'_> {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.queries += 1;
    }

    fn leave_query(&mut self) {
        self.queries -= 1;
    }

    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        let definition = &self.table.definition;
        let name = match expression {
            _ if self.queries > 0 => return ControlFlow::Continue(()),
            ast::Expr::Identifier(name) if !name.value.starts_with('@') => name,
            ast::Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [.., table, name] if table.value == definition.name => name,
                _ => return ControlFlow::Continue(()),
            },
            _ => return ControlFlow::Continue(()),
        };
        let Some(position) = definition.column_position(&name.value) else {
            return ControlFlow::Continue(());
        };
        let ty = &definition.columns[position].ty;
        match as_stored(&literal_of(ty, &self.row[position]), ty) {
            Ok(value) => {
                *expression = value;
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

impl ExpressionVisitor for ValuesBefore<'_> {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.queries += 1;
    }

    fn leave_query(&mut self) {
        self.queries -= 1;
    }

    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        let Some(column) = self.column(expression) else {
            return ControlFlow::Continue(());
        };
        self.count += 1;
        let value = match self.count > MAX_SUBSTITUTIONS {
            true => Err(SqlError::not_supported_yet(
                "a row of VALUES whose values build on each other so often",
            )),
            false => self.value_of(column),
        };
        match value {
            Ok(value) => {
                *expression = ast::Expr::Nested(Box::new(value));
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}
