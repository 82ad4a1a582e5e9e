//! `INSERT INTO t (a, b) VALUES (7, a + 1)`: values that name columns of the row that they are for.
//!
//! A column is what it holds of the value that was given before, from left to right, and its default if that is
//! nothing. So such a value is computed when those in front of it are in the row, over the row
//! (`query/row_evaluator.rs`).
//!
//! What is not evaluated over rows, as IN over a query, is computed without a row: there what was given takes the place
//! of the name.
//!
//! ```text
//!   (a, b) VALUES (7, a IN (SELECT ..))   -->   (7, CAST(7 AS SIGNED) IN (SELECT ..))
//! ```

use std::ops::ControlFlow;

use sheaf_frontend::column_default::{DefaultsOf, computed_default};
use sheaf_frontend::walk::{ExpressionVisitor, walk_expression, walk_outside_queries};
use sheaf_table::convert::default_of;
use sheaf_table::{Column, Table};
use sheaf_types::{ColumnType, Value, assignment::zero_value, column_text};
use sqlparser::ast;

use super::later_values::is_of_rows;
use crate::change::values::assigned::{as_stored, is_default};
use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::query::row_evaluator::RowKind;
use crate::query::values::shown_in;
use crate::session::Session;
use crate::session::result::Origin;

/// Columns that are replaced in one row: each may repeat a whole expression.
pub(crate) const MAX_SUBSTITUTIONS: usize = 1_000;

/// What the row is called in values that are computed over it. No identifier is written like this.
const ROW: &str = "\0row";

/// A value that is computed when those in front of it are in the row.
pub(crate) struct LaterValue(ast::Expr);

/// Takes the values that name columns out of a row for the columns `targets`, with their places. NULL stands there.
///
/// # Errors
/// 1235 if the values build on each other too often.
pub(crate) fn take_later_values(
    table: &Table,
    targets: &[usize],
    row: &mut [ast::Expr],
    now_micros: i64,
) -> Result<Vec<(usize, LaterValue)>> {
    let mut places = Vec::new();
    for (at, value) in row.iter_mut().enumerate() {
        if is_plain(value) {
            continue;
        }
        write_defaults(table, value)?;
        if names_columns(table, value) {
            places.push(at);
        }
    }
    let mut later = Vec::with_capacity(places.len());
    if places.is_empty() {
        return Ok(later);
    }
    let mut with_values = None;
    // A variable has its value when those in front of it are computed, and they are not by rows.
    let assigns = row.iter_mut().any(assigns_variable);
    for at in &places {
        let value = match !assigns && is_of_rows(&mut row[*at]) {
            true => LaterValue::of(table, row[*at].clone()),
            false => {
                if with_values.is_none() {
                    let mut row = row.to_vec();
                    name_values_before(table, targets, &mut row, now_micros)?;
                    with_values = Some(row);
                }
                continue;
            }
        };
        later.push((*at, value));
    }
    for at in places {
        row[at] = match &mut with_values {
            Some(row) if !later.iter().any(|(place, _)| *place == at) => row[at].clone(),
            _ => ast::Expr::value(ast::Value::Null),
        };
    }
    Ok(later)
}

/// Whether a value has a `:=`.
fn assigns_variable(value: &mut ast::Expr) -> bool {
    struct Assignments(bool);
    impl ExpressionVisitor for Assignments {
        fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
            self.0 |= matches!(
                expression,
                ast::Expr::BinaryOp {
                    op: ast::BinaryOperator::Assignment,
                    ..
                }
            );
            match self.0 {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    let mut found = Assignments(false);
    if !is_plain(value) {
        walk_expression(value, &mut found);
    }
    found.0
}

/// Replaces the names of columns in the values of a row for the columns `targets`.
fn name_values_before(
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
        count = ValuesBefore::new(table, targets, before, now_micros, count).name(value)?;
    }
    Ok(())
}

/// 1235.
pub(crate) fn built_too_often() -> SqlError {
    SqlError::not_supported_yet("a row of VALUES whose values build on each other so often")
}

impl LaterValue {
    fn of(table: &Table, mut value: ast::Expr) -> LaterValue {
        name_in_row(table, &mut value);
        LaterValue(value)
    }

    /// The value, which may hold subqueries that are to be computed first.
    pub(crate) fn expression(&mut self) -> &mut ast::Expr {
        &mut self.0
    }
}

/// A row as later values see it while it gets its values.
pub(crate) struct RowSoFar(Vec<Value>);

impl RowSoFar {
    /// Of defaults alone. Those that are expressions are not computed yet.
    pub(crate) fn new(table: &Table, now_micros: i64) -> RowSoFar {
        let columns = table.definition.columns.iter();
        RowSoFar(
            columns
                .map(|column| default_value(column, now_micros))
                .collect(),
        )
    }

    /// Notes what a column has got. A column that asks for the next number has 0 as long as there is none.
    pub(crate) fn note(&mut self, column: &Column, position: usize, value: &Value) {
        self.0[position] = match value {
            Value::Null if column.auto_increment => zero_value(&column.ty),
            value => value.clone(),
        };
    }
}

impl Session {
    /// A later value of a row.
    pub(crate) fn later_value(
        &self,
        table: &Table,
        value: Parsed<'_, &LaterValue>,
        row: &RowSoFar,
    ) -> Result<(Value, Origin)> {
        let kind = RowKind {
            name: ROW,
            columns: &table.definition.columns,
        };
        let item = ast::SelectItem::ExprWithAlias {
            expr: value.ast.0.clone(),
            alias: ast::Ident::with_quote('`', "value 0 "),
        };
        let evaluator = self.row_evaluator(value.with(vec![item]), &[kind])?;
        let computed = evaluator.value(0, row.0.iter())?;
        Ok((computed, Origin::from(&evaluator.metas[0])))
    }
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
pub(crate) fn is_plain(expression: &ast::Expr) -> bool {
    match expression {
        ast::Expr::Value(_) | ast::Expr::TypedString(_) => true,
        ast::Expr::UnaryOp { expr, .. } | ast::Expr::Nested(expr) => is_plain(expr),
        other => is_default(other),
    }
}

/// Whether a value names columns, outside of its queries.
fn names_columns(table: &Table, value: &mut ast::Expr) -> bool {
    let mut is_found = false;
    walk_outside_queries(value, &mut |expression| {
        is_found = column_of(table, expression).is_some();
        match is_found {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    is_found
}

/// Names columns as those of the row.
fn name_in_row(table: &Table, value: &mut ast::Expr) {
    walk_outside_queries(value, &mut |expression| {
        if let Some(position) = column_of(table, expression) {
            let column = &table.definition.columns[position];
            let parts = [ROW, &column.name].map(|part| ast::Ident::with_quote('`', part));
            *expression = ast::Expr::CompoundIdentifier(parts.to_vec());
        }
        ControlFlow::Continue(())
    });
}

/// The column of the table that an expression is, if it is a name of one.
pub(crate) fn column_of(table: &Table, name: &ast::Expr) -> Option<usize> {
    let definition = &table.definition;
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

/// Puts what was given before in the places of names.
pub(crate) struct ValuesBefore<'a> {
    table: &'a Table,
    targets: &'a [usize],
    before: &'a [ast::Expr],
    now_micros: i64,
    count: usize,
    failure: Option<SqlError>,
}

impl<'a> ValuesBefore<'a> {
    /// `before`: what was given for the first ones of the columns `targets`. `count`: names that were replaced already.
    pub(crate) fn new(
        table: &'a Table,
        targets: &'a [usize],
        before: &'a [ast::Expr],
        now_micros: i64,
        count: usize,
    ) -> ValuesBefore<'a> {
        ValuesBefore {
            table,
            targets,
            before,
            now_micros,
            count,
            failure: None,
        }
    }

    /// Replaces the names in a value, outside of its queries. Returns how many were replaced so far.
    pub(crate) fn name(mut self, value: &mut ast::Expr) -> Result<usize> {
        walk_outside_queries(value, &mut |expression| self.replace(expression));
        match self.failure {
            Some(error) => Err(error),
            None => Ok(self.count),
        }
    }

    /// Puts what was given before in the place of a column.
    fn replace(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        let Some(column) = column_of(self.table, expression) else {
            return ControlFlow::Continue(());
        };
        self.count += 1;
        let value = match self.count > MAX_SUBSTITUTIONS {
            true => Err(built_too_often()),
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

    /// What a column is of what was given before.
    pub(crate) fn value_of(&self, position: usize) -> Result<ast::Expr> {
        let column = &self.table.definition.columns[position];
        let given = self.before.iter().zip(self.targets);
        let given = given.rev().find(|(_, target)| **target == position);
        match given {
            Some((value, _)) if !is_default(value) => as_stored(value, &column.ty),
            _ => match column.default_expression() {
                Some(default) => as_stored(&computed_default(default)?, &column.ty),
                None => {
                    let default = default_value(column, self.now_micros);
                    as_stored(&literal_of(&column.ty, &default), &column.ty)
                }
            },
        }
    }
}

/// The keyword DEFAULT, of which a column may have the name in quotes.
fn is_unnamed(name: &ast::Ident) -> bool {
    name.quote_style.is_none() && name.value.eq_ignore_ascii_case("DEFAULT")
}

fn default_value(column: &Column, now_micros: i64) -> Value {
    match default_of(column, now_micros) {
        Some(Value::Null) | None if !column.nullable => zero_value(&column.ty),
        default => default.unwrap_or_default(),
    }
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

impl Session {
    /// The value of an expression over a row, as the column at this position takes it: for LOAD DATA ... SET, which
    /// computes with what was read.
    ///
    /// # Errors
    /// As [`write_defaults`], and those of the expression.
    pub(crate) fn value_in_row(
        &mut self,
        table: &Table,
        (row, position): (&[Value], usize),
        expression: Parsed<'_, &ast::Expr>,
    ) -> Result<Value> {
        let Parsed { ast, text } = expression;
        let mut value = ast.clone();
        write_defaults(table, &mut value)?;
        if names_columns(table, &mut value) && is_of_rows(&mut value) {
            self.compute_subqueries_in(&mut value, text)?;
            let later = LaterValue::of(table, value);
            let row = RowSoFar(row.to_vec());
            let (value, origin) = self.later_value(table, expression.with(&later), &row)?;
            let ty = &table.definition.columns[position].ty;
            return Ok(shown_in(&value, &origin, ty).into_owned());
        }
        name_values_of(table, row, &mut value)?;
        self.evaluate(expression.with(&value))
    }
}

/// Puts the values of a row in the places of its columns.
fn name_values_of(table: &Table, row: &[Value], value: &mut ast::Expr) -> Result<()> {
    let definition = &table.definition;
    let mut failure = None;
    walk_outside_queries(value, &mut |expression| {
        let name = match expression {
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
        match as_stored(&literal_of(ty, &row[position]), ty) {
            Ok(value) => {
                *expression = value;
                ControlFlow::Continue(())
            }
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    failure.map_or(Ok(()), Err)
}
