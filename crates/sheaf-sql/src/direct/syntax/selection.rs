//! The condition that a statement finds its rows by.

use sqlparser::ast;

use crate::parser::statement::Statement;

/// The WHERE of a statement that finds rows.
pub(in crate::direct) fn selection_of(statement: &mut Statement) -> Option<&mut ast::Expr> {
    match statement {
        Statement::Query(query) => match query.body.as_mut() {
            ast::SetExpr::Select(select) => select.selection.as_mut(),
            _ => None,
        },
        Statement::Update(update) => update.selection.as_mut(),
        Statement::Delete(delete) => delete.selection.as_mut(),
        _ => None,
    }
}
