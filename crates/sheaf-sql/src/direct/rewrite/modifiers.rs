//! Queries without the modifiers that say nothing about their rows: SQL_NO_CACHE, HIGH_PRIORITY and their like.

use sqlparser::ast;

use crate::parser::statement::Statement;

/// The statement without such modifiers; `None` if it has none.
pub(in crate::direct) fn without_modifiers(statement: &Statement) -> Option<Statement> {
    let Statement::Query(query) = statement else {
        return None;
    };
    let ast::SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let written = select.select_modifiers.as_ref()?;
    let kept = ast::SelectModifiers {
        straight_join: written.straight_join,
        sql_calc_found_rows: written.sql_calc_found_rows,
        ..ast::SelectModifiers::default()
    };
    if *written == kept {
        return None;
    }
    let mut query = query.clone();
    if let ast::SetExpr::Select(select) = query.body.as_mut() {
        select.select_modifiers =
            Some(kept).filter(|kept| *kept != ast::SelectModifiers::default());
    }
    Some(Statement::Query(query))
}
