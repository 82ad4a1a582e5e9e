//! Privileges on single columns, where those on the whole table are not enough.
//!
//! ```text
//!   a table is named      some column must be granted              error 1142; none to change its rows
//!   a column is read      the binder finds only granted ones       error 1143; 1142 for `*`
//!   a column is written   it must be granted itself                error 1143; 1142 if none is named
//! ```
//!
//! Reading is checked where names get their meaning: what a session [may not read](ReadRights) is in no scope. Direct
//! plans know tables only, so a session that has a table in part does not run them
//! ([`Client::meets_needs`](crate::rights::Client::meets_needs)). What is granted goes by the names that tables and
//! columns have, and stays when these are dropped or get other names.

use sheaf_frontend::query::{ReadRights, Readable, Reader};
use sheaf_table::Privileges;
use sqlparser::ast;

use crate::accounts::requirements::{RightsCheck, insert_needs};
use crate::change::values::assigned::last_part;
use crate::change::values::value_names::names_in;
use crate::error::{Result, SqlError};
use crate::parser::change::name_of;
use crate::parser::statement::{LoadData, LoadTarget, TableName};
use crate::session::Session;

impl ReadRights for Session {
    fn readable(&self, database: &str, table: &str, reader: Reader<'_>) -> Result<Readable> {
        match reader {
            Reader::Owner => Ok(Readable::All),
            Reader::Session => {
                self.client
                    .readable_by(self.engine.catalog(), None, database, table)
            }
            Reader::Definer(account) => {
                self.client
                    .readable_by(self.engine.catalog(), Some(account), database, table)
            }
        }
    }

    fn denied_column(&self, table: &str, column: &str) -> SqlError {
        self.client.denied_column(table, column, "SELECT")
    }

    fn denied_table(&self, table: &str) -> SqlError {
        self.client.denied_table(table, "SELECT")
    }
}

impl RightsCheck<'_> {
    /// INSERT and REPLACE: the columns that are written, those that ON DUPLICATE KEY UPDATE writes, and what it reads.
    pub(super) fn check_insert(&self, insert: &ast::Insert) -> Result<()> {
        let ast::TableObject::TableName(name) = &insert.table else {
            return Ok(());
        };
        let needs = insert_needs(insert);
        // Which columns are read is told by the errors about them.
        let known = needs.without(Privileges::SELECT);
        let Some((database, table)) = self.table_in_part(&name_of(name)?, (known, needs))? else {
            return Ok(());
        };
        let on_table = (database.as_str(), table.as_str());
        let mut written: Vec<String> = insert.columns.iter().map(last_part).collect();
        written.extend(insert.assignments.iter().flat_map(targets_of));
        // `()` is no list: the row has its defaults, and all columns are written.
        self.check_written(
            on_table,
            Some(&written).filter(|written| !written.is_empty()),
        )?;
        if insert.returning.is_some() {
            let needs = Privileges::SELECT;
            self.client.require_on_table(&database, &table, needs)?;
        }
        let assignments = match &insert.on {
            Some(ast::OnInsert::DuplicateKeyUpdate(assignments)) => assignments.as_slice(),
            Some(_) => return self.client.require_on_table(&database, &table, needs),
            None => &[],
        };
        for column in assignments.iter().flat_map(targets_of) {
            self.client
                .require_on_column(on_table, &column, Privileges::UPDATE)?;
        }
        let known = self.column_names(&database, &table);
        let values = assignments.iter().map(|assignment| &assignment.value);
        for value in values {
            for name in names_in(value) {
                let (qualifier, column) = meant(insert, known.as_deref(), name);
                let is_other = qualifier.is_some_and(|name| !name.eq_ignore_ascii_case(&table));
                let is_known = known.as_ref().is_none_or(|known| is_among(known, &column));
                if is_known && !is_other {
                    self.client
                        .require_on_column(on_table, &column, Privileges::SELECT)?;
                }
            }
        }
        Ok(())
    }

    /// LOAD DATA.
    pub(super) fn check_load(&self, load: &LoadData, needs: Privileges) -> Result<()> {
        let Some((database, table)) = self.table_in_part(&load.table, (needs, needs))? else {
            return Ok(());
        };
        let targets = load.targets.iter().filter_map(|target| match target {
            LoadTarget::Column(name) => Some(name.clone()),
            LoadTarget::Variable(_) => None,
        });
        let mut written: Vec<String> = targets.collect();
        written.extend(load.set.iter().map(|(name, _)| name.clone()));
        let is_listed = !load.targets.is_empty();
        self.check_written((&database, &table), is_listed.then_some(&written))
    }

    /// The table that a foreign key refers to. To have REFERENCES on its columns alone is not enough, as in MySQL.
    pub(super) fn check_referenced(&self, parent: &TableName) -> Result<()> {
        let (database, table) = parent.resolve(self.database)?;
        let needs = Privileges::REFERENCES;
        match self.client.require_on_table(&database, &table, needs) {
            Ok(()) => Ok(()),
            Err(_) => {
                let name = format!("{database}.{table}");
                Err(self.client.denied_table(&name, &needs.to_string()))
            }
        }
    }

    /// Database and name of a table on some columns of which the session has what is needed at least; `None`: it has
    /// all that is needed on the whole table, or the table is its own. Error 1142.
    fn table_in_part(
        &self,
        name: &TableName,
        (least, needs): (Privileges, Privileges),
    ) -> Result<Option<(String, String)>> {
        let (database, table) = name.resolve(self.database)?;
        if self.names.is_temporary(&database, &table) {
            return Ok(None);
        }
        self.client
            .require_on_some_column(&database, &table, least)?;
        let whole = self.client.require_on_table(&database, &table, needs);
        Ok(whole.is_err().then_some((database, table)))
    }

    /// Error 1143 for columns that may not be written; without a list all are: error 1142.
    fn check_written(
        &self,
        (database, table): (&str, &str),
        columns: Option<&Vec<String>>,
    ) -> Result<()> {
        let needs = Privileges::INSERT;
        let check = |column: &String| {
            self.client
                .require_on_column((database, table), column, needs)
        };
        if let Some(columns) = columns {
            return columns.iter().try_for_each(check);
        }
        let all = self.column_names(database, table).unwrap_or_default();
        match !all.is_empty() && all.iter().all(|column| check(column).is_ok()) {
            true => Ok(()),
            false => self.client.require_on_table(database, table, needs),
        }
    }

    /// The columns of a table or a view; `None` if there is none.
    fn column_names(&self, database: &str, table: &str) -> Option<Vec<String>> {
        let name = |column: &sheaf_table::Column| column.name.clone();
        if let Some(view) = self.names.view(database, table) {
            return Some(view.definition.columns.iter().map(name).collect());
        }
        let found = self.names.table(database, table).ok()?;
        Some(found.definition.named_columns().map(name).collect())
    }
}

/// What a name of ON DUPLICATE KEY UPDATE means where `INSERT ... AS alias(columns)` names the row to insert otherwise.
fn meant(
    insert: &ast::Insert,
    known: Option<&[String]>,
    (qualifier, name): (Option<String>, String),
) -> (Option<String>, String) {
    let Some(alias) = &insert.insert_alias else {
        return (qualifier, name);
    };
    let row = last_part(&alias.row_alias);
    if qualifier
        .as_ref()
        .is_some_and(|of| !of.eq_ignore_ascii_case(&row))
    {
        return (qualifier, name);
    }
    let mut aliases = alias.col_aliases.iter().flatten();
    let position = aliases.position(|alias| alias.value.eq_ignore_ascii_case(&name));
    let column = position.and_then(|position| match insert.columns.is_empty() {
        true => known?.get(position).cloned(),
        false => insert.columns.get(position).map(last_part),
    });
    (None, column.unwrap_or(name))
}

fn is_among(names: &[String], name: &str) -> bool {
    let lower = name.to_lowercase();
    names.iter().any(|known| known.to_lowercase() == lower)
}

fn targets_of(assignment: &ast::Assignment) -> Vec<String> {
    match &assignment.target {
        ast::AssignmentTarget::ColumnName(name) => vec![last_part(name)],
        ast::AssignmentTarget::Tuple(names) => names.iter().map(last_part).collect(),
    }
}
