//! A WITH whose tables are each named once: its queries in the places of their names.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sheaf_frontend::walk::{ExpressionVisitor, walk_query};
use sqlparser::ast;

use crate::direct::names::PlainTable;

/// A query with WITH, with its queries in the places of their names; `None` if one of them is not named exactly once.
pub(in crate::direct) fn without_with(query: &ast::Query) -> Option<ast::Query> {
    let with = query.with.as_ref()?;
    if with.recursive {
        return None;
    }
    let mut names = Named::default();
    walk_query(&mut query.clone(), &mut names);
    let mut tables: Vec<(&ast::Ident, ast::Query)> = Vec::new();
    for table in &with.cte_tables {
        let name = &table.alias.name;
        let is_plain = table.alias.columns.is_empty()
            && table.from.is_none()
            && table.materialized.is_none()
            && names.0.get(&name.value.to_lowercase()) == Some(&1)
            && tables.iter().all(|(known, _)| !is_name(known, name));
        let mut own = is_plain.then(|| table.query.as_ref().clone())?;
        put_tables(&mut own.body, &mut tables)?;
        tables.push((name, own));
    }
    let mut query = ast::Query {
        with: None,
        ..query.clone()
    };
    put_tables(&mut query.body, &mut tables)?;
    // One that is named somewhere else is left over.
    tables.is_empty().then_some(query)
}

/// How often tables are named that have no database.
#[derive(Default)]
struct Named(BTreeMap<String, usize>);

impl ExpressionVisitor for Named {
    fn enter_table(&mut self, table: &ast::TableFactor) {
        if let Some(name) = plain_name(table) {
            *self.0.entry(name.value.to_lowercase()).or_default() += 1;
        }
    }

    fn leave_expression(&mut self, _expression: &mut ast::Expr) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn is_name(one: &ast::Ident, other: &ast::Ident) -> bool {
    one.value.eq_ignore_ascii_case(&other.value)
}

/// The name of a table that has no database.
fn plain_name(table: &ast::TableFactor) -> Option<&ast::Ident> {
    match table {
        ast::TableFactor::Table { name, .. } => match name.0.as_slice() {
            [part] => part.as_ident(),
            _ => None,
        },
        _ => None,
    }
}

/// Puts queries in the places of their names in a FROM, and takes them from the list.
fn put_tables(set: &mut ast::SetExpr, tables: &mut Vec<(&ast::Ident, ast::Query)>) -> Option<()> {
    let select = match set {
        ast::SetExpr::Select(select) => select,
        ast::SetExpr::SetOperation { left, right, .. } => {
            put_tables(left, tables)?;
            return put_tables(right, tables);
        }
        ast::SetExpr::Query(query) if query.with.is_none() => {
            return put_tables(&mut query.body, tables);
        }
        _ => return None,
    };
    for part in &mut select.from {
        put_table(&mut part.relation, tables)?;
        for join in &mut part.joins {
            put_table(&mut join.relation, tables)?;
        }
    }
    Some(())
}

fn put_table(
    factor: &mut ast::TableFactor,
    tables: &mut Vec<(&ast::Ident, ast::Query)>,
) -> Option<()> {
    if let ast::TableFactor::Derived { subquery, .. } = factor {
        return match subquery.with {
            None => put_tables(&mut subquery.body, tables),
            Some(_) => None,
        };
    }
    let found = plain_name(factor)
        .and_then(|name| tables.iter().position(|(known, _)| is_name(known, name)));
    let Some(found) = found else {
        return Some(());
    };
    let alias = PlainTable::of(factor)?.alias.cloned();
    let (name, query) = tables.remove(found);
    let alias = alias.unwrap_or_else(|| ast::TableAlias {
        explicit: true,
        name: name.clone(),
        columns: Vec::new(),
        at: None,
    });
    *factor = ast::TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query),
        alias: Some(alias),
        sample: None,
    };
    Some(())
}
