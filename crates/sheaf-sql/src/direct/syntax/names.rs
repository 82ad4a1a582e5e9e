//! Names of tables and their columns, as far as they can be told apart without scopes.

use std::sync::Arc;

use sheaf_table::{Table, TableDefinition};
use sqlparser::ast;

use crate::direct::rows::row_source::{Asked, RowSource};
use crate::parser::change::name_of;
use crate::session::Session;

/// A table that a statement names.
#[derive(Clone)]
pub(in crate::direct) struct Names<'a> {
    pub(in crate::direct) source: RowSource,
    /// The table's name as written, without its database.
    pub(in crate::direct) written: String,
    /// What columns are qualified with.
    pub(in crate::direct) alias: &'a str,
    pub(in crate::direct) database: String,
    /// The right side of a LEFT JOIN: its columns may be NULL.
    pub(in crate::direct) is_outer: bool,
}

/// A table in a FROM without hints, partitions, and names for its columns.
pub(in crate::direct) struct PlainTable<'a> {
    pub(in crate::direct) name: &'a ast::ObjectName,
    pub(in crate::direct) alias: Option<&'a ast::TableAlias>,
}

impl<'a> PlainTable<'a> {
    /// `None`: there is more to it, or it is a query.
    pub(in crate::direct) fn of(factor: &'a ast::TableFactor) -> Option<PlainTable<'a>> {
        let ast::TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints,
            version: None,
            with_ordinality: false,
            partitions,
            json_path: None,
            sample: None,
            index_hints,
        } = factor
        else {
            return None;
        };
        let alias = alias.as_ref();
        let is_plain = with_hints.is_empty()
            && partitions.is_empty()
            && index_hints.is_empty()
            && alias.is_none_or(|alias| alias.columns.is_empty());
        is_plain.then_some(PlainTable { name, alias })
    }

    /// The same with where its rows come from.
    pub(in crate::direct) fn names(
        &self,
        source: RowSource,
        (database, written): (String, String),
    ) -> Option<Names<'a>> {
        Some(Names {
            source,
            written,
            database,
            alias: match self.alias {
                Some(alias) => &alias.name.value,
                None => self.name.0.last()?.as_ident()?.value.as_str(),
            },
            is_outer: false,
        })
    }
}

impl<'a> Names<'a> {
    /// The table of a FROM that is one table and nothing else.
    pub(in crate::direct) fn of(
        session: &Session,
        from: &'a [ast::TableWithJoins],
    ) -> Option<Names<'a>> {
        match from {
            [ast::TableWithJoins { relation, joins }] if joins.is_empty() => {
                Names::of_factor(session, relation)
            }
            _ => None,
        }
    }

    /// The table that a part of a FROM is, if it is a table and nothing else.
    pub(in crate::direct) fn of_factor(
        session: &Session,
        factor: &'a ast::TableFactor,
    ) -> Option<Names<'a>> {
        let plain = PlainTable::of(factor)?;
        let (database, written) = session.resolve(&name_of(plain.name).ok()?).ok()?;
        if crate::virtual_database::is_virtual_database(&database) {
            return None;
        }
        let table = session.table_names().table(&database, &written).ok()?;
        session.variables.check_time_zone(&table.definition).ok()?;
        plain.names(RowSource::Table(table), (database, written))
    }

    pub(in crate::direct) fn definition(&self) -> &TableDefinition {
        self.source.definition()
    }

    /// The table that it is; `None` if it is a query.
    pub(in crate::direct) fn table(&self) -> Option<&Arc<Table>> {
        self.source.table()
    }

    /// Whether it is a table of `information_schema`.
    pub(in crate::direct) fn is_of_definitions(&self) -> bool {
        match &self.source {
            RowSource::Table(_) => false,
            RowSource::Query(derived) => derived.is_of_definitions(),
        }
    }

    /// What a query is asked for, if it does not find its rows itself.
    pub(in crate::direct) fn asked(&self) -> Option<Asked> {
        match &self.source {
            RowSource::Table(_) => None,
            RowSource::Query(derived) => derived.asked(),
        }
    }
}

/// What knows the columns of a table by their names.
pub(in crate::direct) trait ColumnNames {
    fn definition(&self) -> &TableDefinition;

    /// The column that an expression is; `None` if it is none.
    fn column(&self, expr: &ast::Expr) -> Option<usize>;
}

impl ColumnNames for Names<'_> {
    fn definition(&self) -> &TableDefinition {
        self.source.definition()
    }

    fn column(&self, expr: &ast::Expr) -> Option<usize> {
        let name = match expr {
            ast::Expr::Identifier(name) => name,
            ast::Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, name] if table.value == self.alias => name,
                _ => return None,
            },
            ast::Expr::Nested(inner) => return self.column(inner),
            _ => return None,
        };
        match name.value.starts_with('@') {
            true => None,
            false => self.definition().column_position(&name.value),
        }
    }
}

/// One of several tables: a name that more than one of them has is none of its columns.
pub(in crate::direct) struct OneOf<'a> {
    pub(in crate::direct) names: &'a [Names<'a>],
    pub(in crate::direct) table: usize,
}

impl ColumnNames for OneOf<'_> {
    fn definition(&self) -> &TableDefinition {
        self.names[self.table].definition()
    }

    fn column(&self, expr: &ast::Expr) -> Option<usize> {
        let (table, column) = column_of(self.names, expr)?;
        (table == self.table).then_some(column)
    }
}

/// The column of one of several tables that an expression is, and the table's position; `None` if it is none, or could
/// be of more than one.
pub(in crate::direct) fn column_of(
    names: &[Names<'_>],
    expr: &ast::Expr,
) -> Option<(usize, usize)> {
    let mut found = names
        .iter()
        .enumerate()
        .filter_map(|(table, names)| Some((table, names.column(expr)?)));
    let column = found.next()?;
    found.next().is_none().then_some(column)
}
