//! The names in values that are assigned: what a change reads of the rows that it finds.

use std::ops::ControlFlow;

use sheaf_frontend::walk::{ExpressionVisitor, walk_expression, walk_outside_queries};
use sqlparser::ast;

use super::assigned::is_default;

/// The names in the value of an assignment that may be those of columns, each with that of its table if it has one. To
/// use the row that was to be inserted is to read the column, too, as in MySQL and MariaDB.
pub(crate) fn names_in(value: &ast::Expr) -> Vec<(Option<String>, String)> {
    if is_default(value) {
        return Vec::new();
    }
    let mut names = ColumnNames(Vec::new());
    walk_expression(&mut value.clone(), &mut names);
    names.0
}

/// As [`names_in`], without the names in subqueries. These are looked up when the subquery is bound.
pub(crate) fn names_outside_queries(value: &ast::Expr) -> Vec<(Option<String>, String)> {
    if is_default(value) {
        return Vec::new();
    }
    let mut names = ColumnNames(Vec::new());
    let mut collect = |expression: &mut ast::Expr| names.leave_expression(expression);
    walk_outside_queries(&mut value.clone(), &mut collect);
    names.0
}

/// Collects names that may be those of columns.
struct ColumnNames(Vec<(Option<String>, String)>);

impl ExpressionVisitor for ColumnNames {
    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        let parts = match expression {
            ast::Expr::Identifier(name) => std::slice::from_ref(name),
            ast::Expr::CompoundIdentifier(parts) => parts.as_slice(),
            _ => return ControlFlow::Continue(()),
        };
        let is_variable = |part: &ast::Ident| part.value.starts_with('@');
        let mut backwards = parts.iter().rev().map(|part| part.value.clone());
        if !parts.first().is_some_and(is_variable)
            && let Some(column) = backwards.next()
        {
            self.0.push((backwards.next(), column));
        }
        ControlFlow::Continue(())
    }
}
