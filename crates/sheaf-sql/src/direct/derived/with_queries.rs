//! A WITH whose tables are named once, or a few times: its queries in the places of their names.
//!
//! Keys find the few rows of a direct plan, so those of a query that is named twice are read twice. Both times they are
//! the same rows: nothing in it may vary, and no LIMIT may cut them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sheaf_frontend::varying::varies_by_row;
use sheaf_frontend::walk::{ExpressionVisitor, walk_query};
use sqlparser::ast;

use crate::direct::syntax::names::PlainTable;

/// A table of a WITH is named so many times, at most.
const MAX_NAMED: usize = 3;

/// A table of a WITH.
struct Table<'q> {
    name: &'q ast::Ident,
    query: ast::Query,
    /// Places that name it and are left.
    named: usize,
}

/// A query with WITH, with its queries in the places of their names; `None` if that cannot be.
pub(in crate::direct) fn without_with(query: &ast::Query) -> Option<ast::Query> {
    let with = query.with.as_ref()?;
    if with.recursive {
        return None;
    }
    let mut names = Named::default();
    walk_query(&mut query.clone(), &mut names);
    let mut tables: Vec<Table<'_>> = Vec::new();
    let mut several = 0;
    for table in &with.cte_tables {
        let name = &table.alias.name;
        let named = *names.0.get(&name.value)?;
        let is_plain = table.alias.columns.is_empty()
            && table.from.is_none()
            && table.materialized.is_none()
            && tables.iter().all(|known| !is_name(known.name, name));
        let mut query = is_plain.then(|| table.query.as_ref().clone())?;
        put_tables(&mut query.body, &mut tables)?;
        if named > 1 {
            several += 1;
            // Queries that are copied with others in them would be many.
            let is_repeated = several == 1 && named <= MAX_NAMED && is_repeatable(&query);
            is_repeated.then_some(())?;
        }
        tables.push(Table { name, query, named });
    }
    let mut query = ast::Query {
        with: None,
        ..query.clone()
    };
    put_tables(&mut query.body, &mut tables)?;
    // One that is named somewhere else is left over.
    tables.is_empty().then_some(query)
}

/// Whether a query has the same rows each time, and says so.
fn is_repeatable(query: &ast::Query) -> bool {
    let mut parts = Repeated::default();
    walk_query(&mut query.clone(), &mut parts);
    !parts.is_cut && query.limit_clause.is_none() && query.fetch.is_none() && !varies_by_row(query)
}

/// What may give other rows the next time, in a query or those inside.
#[derive(Default)]
struct Repeated {
    is_cut: bool,
}

impl ExpressionVisitor for Repeated {
    fn enter_query(&mut self, query: &ast::Query) {
        self.is_cut |= query.limit_clause.is_some() || query.fetch.is_some();
    }

    fn leave_expression(&mut self, _expression: &mut ast::Expr) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// How often tables are named that have no database.
#[derive(Default)]
struct Named(BTreeMap<String, usize>);

impl ExpressionVisitor for Named {
    fn enter_table(&mut self, table: &ast::TableFactor) {
        if let Some(name) = plain_name(table) {
            *self.0.entry(name.value.clone()).or_default() += 1;
        }
    }

    fn leave_expression(&mut self, _expression: &mut ast::Expr) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Names of tables are told apart by case.
fn is_name(one: &ast::Ident, other: &ast::Ident) -> bool {
    one.value == other.value
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

/// Puts queries in the places of their names in a FROM, and takes them from the list once they are in all of them.
fn put_tables(set: &mut ast::SetExpr, tables: &mut Vec<Table<'_>>) -> Option<()> {
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

fn put_table(factor: &mut ast::TableFactor, tables: &mut Vec<Table<'_>>) -> Option<()> {
    if let ast::TableFactor::Derived { subquery, .. } = factor {
        return match subquery.with {
            None => put_tables(&mut subquery.body, tables),
            Some(_) => None,
        };
    }
    let found = plain_name(factor)
        .and_then(|name| tables.iter().position(|known| is_name(known.name, name)));
    let Some(found) = found else {
        return Some(());
    };
    let alias = PlainTable::of(factor)?.alias.cloned();
    let table = &mut tables[found];
    table.named -= 1;
    let (name, query) = match table.named {
        0 => {
            let table = tables.remove(found);
            (table.name, table.query)
        }
        _ => (table.name, table.query.clone()),
    };
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
