//! Columns without the names of their databases: `d.t.c` is `t.c` where nothing but the table d.t is called t. Prisma
//! names all columns so.

use std::ops::ControlFlow;

use sheaf_frontend::query::SessionValues;
use sqlparser::ast::{self, Visit, VisitMut, Visitor};

use crate::parser::statement::Statement;
use crate::session::Session;

/// The statement with columns so; `None` if there are none to be written otherwise. `text` is what was parsed.
pub(in crate::direct) fn without_databases(
    session: &Session,
    statement: &Statement,
    text: &str,
) -> Option<Statement> {
    // Most statements have no name of three parts, and are not walked through.
    memchr::memchr_iter(b'.', text.as_bytes()).nth(1)?;
    let mut tables = Tables {
        current: session.current_database(),
        named: Vec::new(),
        has_long_names: false,
    };
    tables.visit(statement);
    if !tables.has_long_names {
        return None;
    }
    let mut changed = statement.clone();
    let mut is_changed = false;
    let mut shorten = |expr: &mut ast::Expr| {
        if let ast::Expr::CompoundIdentifier(parts) = expr
            && let [database, table, _] = parts.as_slice()
            && tables.is_only(&database.value, &table.value)
        {
            parts.remove(0);
            is_changed = true;
        }
        ControlFlow::<()>::Continue(())
    };
    let _ = match &mut changed {
        Statement::Query(query) => ast::visit_expressions_mut(query, shorten),
        Statement::Update(update) => {
            shorten_all(&mut update.tables, &mut shorten);
            shorten_all(&mut update.assignments, &mut shorten);
            shorten_all(&mut update.selection, &mut shorten);
            ast::visit_expressions_mut(&mut update.order_by, shorten)
        }
        Statement::Delete(delete) => {
            shorten_all(&mut delete.tables, &mut shorten);
            shorten_all(&mut delete.selection, &mut shorten);
            ast::visit_expressions_mut(&mut delete.order_by, shorten)
        }
        _ => ControlFlow::Continue(()),
    };
    is_changed.then_some(changed)
}

fn shorten_all(
    part: &mut impl VisitMut,
    shorten: &mut impl FnMut(&mut ast::Expr) -> ControlFlow<()>,
) {
    let _ = ast::visit_expressions_mut(part, shorten);
}

/// What tables are called in a statement, wherever in it.
struct Tables<'s> {
    current: Option<&'s str>,
    /// With the database of those that are called by their own name.
    named: Vec<(String, Option<String>)>,
    /// There are columns that are named with a database.
    has_long_names: bool,
}

impl Tables<'_> {
    fn visit(&mut self, statement: &Statement) {
        let _ = match statement {
            Statement::Query(query) => query.visit(self),
            Statement::Update(update) => {
                let _ = update.tables.visit(self);
                let _ = update.assignments.visit(self);
                let _ = update.selection.visit(self);
                update.order_by.visit(self)
            }
            Statement::Delete(delete) => {
                let _ = delete.tables.visit(self);
                let _ = delete.selection.visit(self);
                delete.order_by.visit(self)
            }
            _ => ControlFlow::Continue(()),
        };
    }

    /// Whether whatever is called so is the table of this database.
    fn is_only(&self, database: &str, table: &str) -> bool {
        let mut called = self.named.iter().filter(|(name, _)| name == table);
        let is_it = |(_, of): &(String, Option<String>)| of.as_deref() == Some(database);
        called.next().is_some_and(is_it) && called.all(is_it)
    }
}

impl Visitor for Tables<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &ast::TableFactor) -> ControlFlow<()> {
        let (own, alias) = match factor {
            ast::TableFactor::Table { name, alias, .. } => (Some(name), alias.as_ref()),
            ast::TableFactor::Derived { alias, .. } | ast::TableFactor::JsonTable { alias, .. } => {
                (None, alias.as_ref())
            }
            _ => (None, None),
        };
        if let Some(alias) = alias {
            self.named.push((alias.name.value.clone(), None));
            return ControlFlow::Continue(());
        }
        let parts = own.map_or(&[][..], |name| name.0.as_slice());
        let part = |part: &ast::ObjectNamePart| part.as_ident().map(|name| name.value.clone());
        match parts {
            [table] => {
                let database = self.current.map(str::to_string);
                self.named
                    .extend(part(table).map(|table| (table, database)));
            }
            [database, table] => {
                let database = part(database);
                self.named
                    .extend(part(table).map(|table| (table, database)));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
        self.has_long_names |=
            matches!(expr, ast::Expr::CompoundIdentifier(parts) if parts.len() == 3);
        ControlFlow::Continue(())
    }
}
