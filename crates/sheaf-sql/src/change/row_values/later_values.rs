//! Values that name columns which the statement has given a value before: they see what the column holds by then.
//!
//! ```text
//!   UPDATE t SET a = b, c = a + d + (SELECT ..)
//!   SELECT key, b, d AS $0, (SELECT ..) AS $1     ->     a = b;  c = new.a + given.$0 + given.$1
//! ```
//!
//! A value is converted to its column's type before the next one is computed. So the query that finds the rows cannot
//! compute the later one. It delivers what that needs besides, and the rest is evaluated for each row
//! (`query/row_evaluator.rs`).
//!
//! Neither assignments of user variables nor IN over a query are evaluated over rows. Values that have them are part of
//! the query ([`is_of_rows`]).

use std::ops::ControlFlow;

use arrow::datatypes::FieldRef;
use sheaf_frontend::walk::{ExpressionVisitor, walk_expression, walk_outside_queries};
use sheaf_table::{Column, Table};
use sheaf_types::Value;
use sqlparser::ast;

use crate::change::find::change_query::References;
use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::query::made_columns::column_type_of;
use crate::query::row_evaluator::{RowEvaluator, RowKind};
use crate::session::Session;
use crate::session::result::Origin;

/// What the rows are called in the planned expressions. No identifier is written like this.
const NEW: &str = "\0new";
const GIVEN: &str = "\0given";

/// The later values of an UPDATE.
#[derive(Default)]
pub(crate) struct LaterValues {
    values: Vec<ast::Expr>,
    /// The columns that they name and that have got a value before.
    columns: Vec<usize>,
    /// What the query delivers for them.
    given: Vec<ast::Expr>,
}

/// Later values as they are computed in a run.
pub(crate) struct LaterEvaluator {
    evaluator: RowEvaluator,
    columns: Vec<usize>,
    /// The query's first column that it delivers for them.
    first_given: usize,
}

impl LaterValues {
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// What the query delivers for them.
    pub(crate) fn given(&self) -> &[ast::Expr] {
        &self.given
    }

    /// Adds a value that names columns among `assigned`. Returns its number.
    pub(crate) fn add(
        &mut self,
        references: &References,
        assigned: &[usize],
        mut value: ast::Expr,
    ) -> usize {
        let mut naming = LaterNames {
            references,
            assigned,
            later: self,
            queries: 0,
        };
        walk_expression(&mut value, &mut naming);
        self.values.push(value);
        self.values.len() - 1
    }

    fn place_of_given(&mut self, expression: &ast::Expr) -> usize {
        let known = self.given.iter().position(|known| known == expression);
        known.unwrap_or_else(|| {
            self.given.push(expression.clone());
            self.given.len() - 1
        })
    }
}

impl LaterEvaluator {
    /// A later value, of the row as it is by now. `found`: the row of the query.
    pub(crate) fn value(
        &self,
        number: usize,
        row: &[Value],
        found: &[Value],
    ) -> Result<(Value, Origin)> {
        let new = self.columns.iter().map(|column| &row[*column]);
        let row = new.chain(&found[self.first_given..]);
        let value = self.evaluator.value(number, row)?;
        Ok((value, Origin::from(&self.evaluator.metas[number])))
    }
}

/// Plans later values of a table. `fields`: the columns of the query, at the end of which stands what it delivers
/// for them. `None` if there are no such values.
pub(crate) fn later_evaluator(
    session: &Session,
    later: Parsed<'_, &LaterValues>,
    table: &Table,
    fields: &[FieldRef],
) -> Result<Option<LaterEvaluator>> {
    let Parsed { ast: later, text } = later;
    if later.is_empty() {
        return Ok(None);
    }
    let definition = &table.definition;
    let new = later.columns.iter();
    let new: Vec<Column> = new
        .map(|column| definition.columns[*column].clone())
        .collect();
    let first_given = fields.len().saturating_sub(later.given.len());
    let given = fields.iter().skip(first_given).enumerate();
    let given: Vec<Column> = given
        .map(|(at, field)| Column::new(given_column(at), column_type_of(field), true))
        .collect();
    let kinds = [(NEW, &new), (GIVEN, &given)];
    let kinds = kinds.iter().filter(|(_, columns)| !columns.is_empty());
    let kinds: Vec<RowKind<'_>> = kinds
        .map(|(name, columns)| RowKind { name, columns })
        .collect();
    let items = later.values.iter().enumerate();
    let items = items.map(|(number, value)| ast::SelectItem::ExprWithAlias {
        expr: value.clone(),
        alias: ast::Ident::with_quote('`', format!("value {number} ")),
    });
    Ok(Some(LaterEvaluator {
        evaluator: session.row_evaluator(Parsed::new(items.collect(), text), &kinds)?,
        columns: later.columns.clone(),
        first_given,
    }))
}

/// The name of a column that the query delivers for later values.
fn given_column(at: usize) -> String {
    format!("\0given {at}")
}

fn qualified(row: &str, column: &str) -> ast::Expr {
    let parts = [row, column].map(|part| ast::Ident::with_quote('`', part));
    ast::Expr::CompoundIdentifier(parts.to_vec())
}

/// The name of a column that an expression may be, with its parts. `@name` is none.
pub(crate) fn parts_of_name(expression: &ast::Expr) -> Option<&[ast::Ident]> {
    let parts = match expression {
        ast::Expr::Identifier(name) => std::slice::from_ref(name),
        ast::Expr::CompoundIdentifier(parts) => parts,
        _ => return None,
    };
    let is_variable = parts.first()?.value.starts_with('@');
    (!is_variable).then_some(parts)
}

/// Whether a value can be evaluated over rows, when its other queries are computed before.
pub(crate) fn is_of_rows(value: &mut ast::Expr) -> bool {
    struct Forms {
        queries: usize,
        are_of_rows: bool,
    }
    impl ExpressionVisitor for Forms {
        fn enter_query(&mut self, _query: &ast::Query) {
            self.queries += 1;
        }

        fn leave_query(&mut self) {
            self.queries -= 1;
        }

        fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
            let is_of_query = matches!(
                expression,
                ast::Expr::InSubquery { .. }
                    | ast::Expr::AnyOp { .. }
                    | ast::Expr::AllOp { .. }
                    | ast::Expr::BinaryOp {
                        op: ast::BinaryOperator::Assignment,
                        ..
                    }
            );
            match self.queries == 0 && is_of_query {
                true => {
                    self.are_of_rows = false;
                    ControlFlow::Break(())
                }
                false => ControlFlow::Continue(()),
            }
        }
    }
    let mut forms = Forms {
        queries: 0,
        are_of_rows: true,
    };
    walk_expression(value, &mut forms);
    forms.are_of_rows
}

/// Whether a value names one of the columns, outside of its queries: there a name may mean a column of their own.
pub(crate) fn names_one_of(
    references: &References,
    columns: &[usize],
    value: &mut ast::Expr,
) -> bool {
    let mut is_found = false;
    if !columns.is_empty() {
        walk_outside_queries(value, &mut |expression| {
            let column = column_of(references, expression);
            is_found = column.is_some_and(|column| columns.contains(&column));
            match is_found {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
    }
    is_found
}

/// The column that an expression is, if it is a name of one.
pub(crate) fn column_of(references: &References, expression: &ast::Expr) -> Option<usize> {
    let name = ast::ObjectName::from(parts_of_name(expression)?.to_vec());
    references.column(&name).ok().map(|(_, column)| column)
}

/// Puts columns of the rows into the places of names and queries.
struct LaterNames<'a> {
    references: &'a References,
    assigned: &'a [usize],
    later: &'a mut LaterValues,
    /// Open subqueries.
    queries: usize,
}

impl LaterNames<'_> {
    fn of_row(&mut self, expression: &ast::Expr) -> Option<ast::Expr> {
        if let Some(column) = column_of(self.references, expression)
            && self.assigned.contains(&column)
        {
            if !self.later.columns.contains(&column) {
                self.later.columns.push(column);
            }
            let mut references = self.references.0.iter();
            let table = references.find_map(|reference| reference.table.as_ref())?;
            return Some(qualified(NEW, &table.definition.columns[column].name));
        }
        let is_given = match expression {
            ast::Expr::Subquery(_) | ast::Expr::Exists { .. } => true,
            ast::Expr::Identifier(name) if name.value.starts_with("@@") => false,
            // The query computes it after those that are assigned in front of it.
            ast::Expr::Identifier(name) if name.value.starts_with('@') => true,
            // A view has columns that are expressions. What is no column is for others to tell.
            name => {
                let of_view = |this: &Self| this.references.0.iter().any(|one| one.view.is_some());
                parts_of_name(name).is_some()
                    && (column_of(self.references, name).is_some() || of_view(self))
            }
        };
        is_given.then(|| {
            let at = self.later.place_of_given(expression);
            qualified(GIVEN, &given_column(at))
        })
    }
}

impl ExpressionVisitor for LaterNames<'_> {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.queries += 1;
    }

    fn leave_query(&mut self) {
        self.queries -= 1;
    }

    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        if self.queries == 0
            && let Some(of_row) = self.of_row(expression)
        {
            *expression = of_row;
        }
        ControlFlow::Continue(())
    }
}

/// What is wrong where later values stand without their evaluator.
pub(crate) fn without_evaluator() -> SqlError {
    SqlError::unknown("a later value without what computes it")
}
