//! What names mean in one query block.
//!
//! USING and NATURAL make one column of two. It is shown once, in front of the others, and its name without a table is
//! that of the table whose rows the join keeps:
//!
//! ```text
//!   a (x, k, p)  b (k, q, p)
//!
//!   SELECT * FROM a JOIN b USING (k)           a.k, a.x, a.p, b.q, b.p
//!   SELECT * FROM a RIGHT JOIN b USING (k)     b.k, b.q, b.p, a.x, a.p
//!   SELECT k FROM a NATURAL RIGHT JOIN b       b.k
//! ```
//!
//! So a scope has two views of its columns: those of each table, for names with a table, and those that `*` shows, for
//! names without one.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use sheaf_algebra::{ColumnId, Scalar};
use sqlparser::ast::Expr;

use crate::error::SqlError;
use crate::query::Header;
use crate::syntax::is_same;

/// A column as a name in this scope means it.
#[derive(Clone)]
pub struct ScopeColumn {
    pub id: ColumnId,
    pub name: String,
    pub field: FieldRef,
    /// NULL where an outer join has found no row.
    pub may_be_missing: bool,
    /// `*` does not stand for it.
    pub invisible: bool,
    /// The table in the statement: its alias, and what stands behind that.
    pub table: Arc<TableName>,
}

/// A table of a FROM by its names.
#[derive(Default)]
pub struct TableName {
    pub alias: String,
    /// Empty for a derived table.
    pub table: String,
    pub database: String,
    /// Columns that the reader may not read. No scope has them, so nothing finds them; here they are kept for the
    /// error, and because they would hide others of their name.
    pub unreadable: Vec<String>,
}

impl TableName {
    fn hides(&self, column: &str) -> bool {
        self.unreadable.iter().any(|hidden| is_same(hidden, column))
    }
}

impl ScopeColumn {
    pub fn scalar(&self) -> Scalar {
        let field = match self.may_be_missing && !self.field.is_nullable() {
            true => Arc::new(self.field.as_ref().clone().with_nullable(true)),
            false => Arc::clone(&self.field),
        };
        Scalar::column(self.id, field)
    }

    /// The header of an item that shows it, under this name.
    pub fn header(&self, name: &str) -> Header {
        Header {
            name: name.to_string(),
            org_name: self.name.clone(),
            table: self.table.alias.clone(),
            org_table: self.table.table.clone(),
            database: self.table.database.clone(),
            is_stored: false,
        }
    }
}

/// The columns of a table.
#[derive(Clone)]
pub struct ScopeTable {
    pub name: Arc<TableName>,
    pub columns: Vec<ScopeColumn>,
}

/// The names of one query block, or of the two sides of a join.
#[derive(Clone, Default)]
pub struct Scope {
    pub tables: Vec<ScopeTable>,
    /// All columns in the order of `*`, those included that it does not stand for.
    pub shown: Vec<ScopeColumn>,
}

/// What a name finds in a scope.
pub enum Found<'s> {
    Nothing,
    Column(&'s ScopeColumn),
    /// Columns that are not the same.
    Several,
}

impl Scope {
    pub fn of_table(name: Arc<TableName>, columns: Vec<ScopeColumn>) -> Scope {
        Scope {
            shown: columns.clone(),
            tables: vec![ScopeTable { name, columns }],
        }
    }

    /// The columns that `*` stands for.
    pub fn visible(&self) -> impl Iterator<Item = &ScopeColumn> {
        self.shown.iter().filter(|column| !column.invisible)
    }

    /// A column by its name alone.
    pub fn column(&self, name: &str) -> Found<'_> {
        one_of(
            self.shown
                .iter()
                .filter(|column| is_same(&column.name, name)),
        )
    }

    /// A column by its name alone where USING and NATURAL have not made one of two.
    pub fn column_of_tables(&self, name: &str) -> Found<'_> {
        let columns = self.tables.iter().flat_map(|table| &table.columns);
        one_of(columns.filter(|column| is_same(&column.name, name)))
    }

    /// The column that an expression names, if it does nothing else.
    pub fn column_named<'s>(&'s self, expr: &'s Expr) -> Option<&'s ScopeColumn> {
        let names: Vec<&str> = match expr {
            Expr::Identifier(name) => vec![&name.value],
            Expr::CompoundIdentifier(parts) => parts.iter().map(|part| &*part.value).collect(),
            _ => return None,
        };
        let found = match names.as_slice() {
            [name] => self.column(name),
            [table, name] => self.column_of(None, table, name),
            [database, table, name] => self.column_of(Some(database), table, name),
            _ => return None,
        };
        match found {
            Found::Column(column) => Some(column),
            _ => None,
        }
    }

    /// `table.column` and `database.table.column`.
    pub fn column_of<'s>(
        &'s self,
        database: Option<&'s str>,
        table: &'s str,
        name: &'s str,
    ) -> Found<'s> {
        let tables = self.tables_named(database, table);
        let columns = tables.flat_map(|table| &table.columns);
        one_of(columns.filter(|column| is_same(&column.name, name)))
    }

    /// A table of these names that has the column, but not for the reader.
    pub fn unreadable_in(
        &self,
        database: Option<&str>,
        table: Option<&str>,
        column: &str,
    ) -> Option<&TableName> {
        let mut restricted = self.restricted(database, table);
        restricted.find(|name| name.hides(column))
    }

    /// Tables of these names that the reader may read in part.
    pub fn restricted(
        &self,
        database: Option<&str>,
        table: Option<&str>,
    ) -> impl Iterator<Item = &TableName> {
        let names = self.tables.iter().map(|table| table.name.as_ref());
        names.filter(move |name| {
            !name.unreadable.is_empty()
                && table.is_none_or(|table| name.alias == table)
                && database.is_none_or(|database| name.database == database)
        })
    }

    /// A column by which a join with `right` would compare, and that the reader may not read, with its table.
    pub fn unreadable_of_join<'s>(
        &'s self,
        right: &'s Scope,
        using: Option<&'s [String]>,
    ) -> Option<(&'s TableName, &'s str)> {
        let both = [(self, right), (right, self)];
        both.into_iter().find_map(|(one, other)| {
            one.restricted(None, None).find_map(|table| {
                let mut hidden = table.unreadable.iter();
                let is_compared = |column: &&String| match using {
                    Some(names) => names.iter().any(|name| is_same(name, column)),
                    None => {
                        !matches!(other.column(column), Found::Nothing)
                            || other.unreadable_in(None, None, column).is_some()
                    }
                };
                let column = hidden.find(is_compared)?;
                Some((table, column.as_str()))
            })
        })
    }

    pub fn tables_named<'s>(
        &'s self,
        database: Option<&'s str>,
        alias: &'s str,
    ) -> impl Iterator<Item = &'s ScopeTable> {
        self.tables.iter().filter(move |table| {
            let name = &table.name;
            name.alias == alias && database.is_none_or(|database| name.database == database)
        })
    }

    /// The tables of both, one behind the other. Error 1066 if two of them have one name.
    pub fn append(&mut self, other: Scope) -> Result<(), SqlError> {
        self.append_tables(other.tables)?;
        self.shown.extend(other.shown);
        Ok(())
    }

    fn append_tables(&mut self, others: Vec<ScopeTable>) -> Result<(), SqlError> {
        for table in &others {
            let is_known = |known: &ScopeTable| {
                let (one, other) = (&known.name, &table.name);
                one.alias == other.alias && one.database == other.database
            };
            if self.tables.iter().any(is_known) {
                return Err(SqlError::non_unique_table(&table.name.alias));
            }
        }
        self.tables.extend(others);
        Ok(())
    }

    /// The rows of these tables may be missing: an outer join has them on its inner side.
    pub fn may_be_missing(&mut self) {
        let columns = self.tables.iter_mut().flat_map(|table| &mut table.columns);
        for column in columns.chain(&mut self.shown) {
            column.may_be_missing = true;
        }
    }

    /// Joins with `right` by the columns of these names, or `None`: by all that have the same name. Returns the pairs
    /// that have to be equal. The columns of the side that the join keeps stand for both.
    ///
    /// # Errors
    /// 1054 and 1052 for a column that a side does not have, or has twice; 1066.
    pub fn join_by(
        &mut self,
        right: Scope,
        using: Option<&[String]>,
        keeps_right: bool,
    ) -> Result<Vec<(ScopeColumn, ScopeColumn)>, SqlError> {
        let (mut first, mut second) = (std::mem::take(&mut self.shown), right.shown);
        if keeps_right {
            std::mem::swap(&mut first, &mut second);
        }
        let is_common = |column: &ScopeColumn| match using {
            Some(names) => names.iter().any(|name| is_same(name, &column.name)),
            None => {
                let mut others = second.iter().filter(|other| !other.invisible);
                !column.invisible && others.any(|other| is_same(&other.name, &column.name))
            }
        };
        let (mut shown, rest): (Vec<_>, Vec<_>) = first.into_iter().partition(is_common);
        let names: Vec<String> = match using {
            Some(names) => names.to_vec(),
            None => shown.iter().map(|column| column.name.clone()).collect(),
        };
        // What USING names is shown, and NATURAL is about what is.
        shown.iter_mut().for_each(|column| column.invisible = false);
        let (natural, mut hidden) = (using.is_none(), Vec::new());
        if natural {
            (hidden, second) = second.into_iter().partition(|column| column.invisible);
        }
        let mut pairs = Vec::with_capacity(names.len());
        for name in &names {
            // MySQL looks at the right side first.
            let (one, other) = match keeps_right {
                true => (join_column(&shown, name)?, join_column(&second, name)?),
                false => {
                    let other = join_column(&second, name)?;
                    (join_column(&shown, name)?, other)
                }
            };
            pairs.push((one.clone(), other.clone()));
        }
        second.retain(|column| !names.iter().any(|name| is_same(name, &column.name)));
        shown.extend(rest);
        shown.extend(second);
        shown.extend(hidden);
        self.append_tables(right.tables)?;
        self.shown = shown;
        Ok(pairs)
    }
}

fn join_column<'c>(columns: &'c [ScopeColumn], name: &str) -> Result<&'c ScopeColumn, SqlError> {
    let named = columns.iter().filter(|column| is_same(&column.name, name));
    match one_of(named) {
        Found::Column(column) => Ok(column),
        Found::Nothing => Err(SqlError::bad_field(name, "from clause")),
        Found::Several => Err(SqlError::non_unique_column(name, "from clause")),
    }
}

pub(super) fn one_of<'c>(mut columns: impl Iterator<Item = &'c ScopeColumn>) -> Found<'c> {
    match (columns.next(), columns.next()) {
        (None, _) => Found::Nothing,
        (Some(column), None) => Found::Column(column),
        _ => Found::Several,
    }
}
