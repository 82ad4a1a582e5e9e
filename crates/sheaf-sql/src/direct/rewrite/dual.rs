//! `FROM DUAL`, which is no table: `SELECT 1 FROM DUAL` is `SELECT 1`.

use sqlparser::ast;

use crate::parser::statement::Statement;

/// A statement whose query has no FROM in place of `FROM DUAL`; `None` if it has another one.
pub(in crate::direct) fn without_dual(statement: &Statement) -> Option<Statement> {
    let query = match statement {
        Statement::Query(query) => query,
        Statement::Insert(insert) => insert.source.as_ref()?,
        _ => return None,
    };
    if !is_of_dual(query) {
        return None;
    }
    let mut statement = statement.clone();
    let query = match &mut statement {
        Statement::Query(query) => query,
        Statement::Insert(insert) => insert.source.as_mut()?,
        _ => return None,
    };
    let ast::SetExpr::Select(select) = query.body.as_mut() else {
        return None;
    };
    select.from.clear();
    Some(statement)
}

fn is_of_dual(query: &ast::Query) -> bool {
    let ast::SetExpr::Select(select) = query.body.as_ref() else {
        return false;
    };
    let [ast::TableWithJoins { relation, joins }] = select.from.as_slice() else {
        return false;
    };
    let ast::TableFactor::Table {
        name, alias: None, ..
    } = relation
    else {
        return false;
    };
    let [ast::ObjectNamePart::Identifier(name)] = name.0.as_slice() else {
        return false;
    };
    // A table may be named so between backticks.
    joins.is_empty() && name.quote_style.is_none() && name.value.eq_ignore_ascii_case("dual")
}
