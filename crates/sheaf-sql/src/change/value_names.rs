//! The names in values that are assigned: what a change reads of the rows that it finds.

use std::ops::ControlFlow;

use sheaf_frontend::walk::{ExpressionVisitor, walk_expression};
use sqlparser::ast;

use crate::change::assigned::{is_default, last_part};
use crate::change::on_duplicate::column_of_values;

/// The names in the value of an assignment that may be those of columns of stored rows, each with that of its table if
/// it has one. The row that was to be inserted is the statement's own; `alias` names it.
pub(crate) fn names_in(
    value: &ast::Expr,
    alias: Option<&ast::InsertAliases>,
) -> Vec<(Option<String>, String)> {
    if is_default(value) {
        return Vec::new();
    }
    let mut names = ColumnNames {
        alias,
        found: Vec::new(),
    };
    walk_expression(&mut value.clone(), &mut names);
    names.found
}

/// Collects names that may be those of columns of the conflicting row.
struct ColumnNames<'a> {
    /// `INSERT ... AS alias(columns)`
    alias: Option<&'a ast::InsertAliases>,
    found: Vec<(Option<String>, String)>,
}

impl ColumnNames<'_> {
    fn name_of(&self, expression: &ast::Expr) -> Option<(Option<String>, String)> {
        let alias = self.alias;
        match expression {
            ast::Expr::Identifier(name) => {
                let mut aliases = alias.iter().flat_map(|alias| &alias.col_aliases).flatten();
                let is_new = aliases.any(|alias| alias.value.eq_ignore_ascii_case(&name.value));
                (!is_new && !name.value.starts_with('@')).then(|| (None, name.value.clone()))
            }
            ast::Expr::CompoundIdentifier(parts) => {
                let row = alias.map(|alias| last_part(&alias.row_alias));
                let is_new = matches!((parts.as_slice(), row), ([name, _], Some(row))
                    if name.value.eq_ignore_ascii_case(&row));
                if is_new || parts.first()?.value.starts_with('@') {
                    return None;
                }
                let mut backwards = parts.iter().rev().map(|part| part.value.clone());
                let column = backwards.next()?;
                Some((backwards.next(), column))
            }
            _ => None,
        }
    }
}

impl ExpressionVisitor for ColumnNames<'_> {
    fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        if let Some(name) = self.name_of(expression) {
            self.found.push(name);
        } else if let ast::Expr::Function(function) = expression
            && let Some(column) = column_of_values(function)
            && self.name_of(column).is_some()
        {
            // The operand was met just before: it is one of the new row.
            self.found.pop();
        }
        ControlFlow::Continue(())
    }
}
