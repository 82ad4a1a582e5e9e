//! What names of tables mean in a session: it may have [temporary tables](crate::session_parts::temporary_tables).

use std::sync::Arc;

use sheaf_table::{Catalog, CreateTable, TableDefinition, TableNames};
use sheaf_types::error::codes;

use crate::error::{Result, SqlError};
use crate::parser::statement::TableName;
use crate::session::Session;
use crate::virtual_database::{is_system_table, is_virtual_database};

impl Session {
    /// What names of tables mean to statements that read and write rows: they see tables in the session's time zone.
    pub(crate) fn table_names(&self) -> TableNames<'_> {
        self.table_names_in_utc()
            .in_time_zone(self.variables.time_zone())
            .with_hypothetical(&self.statement.hypothesis.tables)
    }

    /// What names of tables mean to statements that change definitions, which are in UTC.
    pub(crate) fn table_names_in_utc(&self) -> TableNames<'_> {
        TableNames::new(self.engine.catalog(), self.temporary.names())
    }

    /// The catalog that a table is in.
    pub(crate) fn catalog_of(&self, definition: &TableDefinition) -> &Arc<Catalog> {
        match self.temporary.catalog() {
            Some(temporary) if definition.is_temporary() => temporary,
            _ => self.engine.catalog(),
        }
    }

    /// Error 1049 if there is no such database for a temporary table. One of the name of a view hides it.
    pub(crate) fn check_temporary_name(&self, database: &str) -> Result<()> {
        match self.engine.catalog().database_exists(database) {
            true => Ok(()),
            false => Err(SqlError::unknown_database(database)),
        }
    }

    /// Makes an empty temporary table. Error 1593 for a statement of a source: temporary tables of its sessions may
    /// have the same name, and are lost when the replica starts again. Errors of [`Self::check_temporary_name`], and as
    /// of [`TemporaryTables::create`](crate::session_parts::temporary_tables::TemporaryTables::create).
    pub(crate) fn create_temporary_table(&mut self, request: CreateTable) -> Result<()> {
        if self.transactions.source.is_some() {
            return Err(SqlError::new(
                codes::REPLICA_FATAL_ERROR,
                format!(
                    "Fatal error: the temporary table {}.{} of the source is not supported yet; set binlog_format = ROW \
                     on the source",
                    request.database, request.name
                ),
            ));
        }
        self.check_temporary_name(&request.database)?;
        self.temporary.create(self.engine.catalog(), request)
    }

    /// A table's database and name; error 1046 if neither the name nor the session has a database.
    pub(crate) fn resolve(&self, name: &TableName) -> Result<(String, String)> {
        name.resolve(self.database.as_deref())
    }

    /// [`Self::resolve`] for statements that change something: what is made when a query names it cannot be.
    pub(crate) fn resolve_for_change(&self, name: &TableName) -> Result<(String, String)> {
        let (database, table) = self.resolve(name)?;
        match self.is_system_table(&database, &table) {
            true => Err(self.client.denied_database(&database)),
            false => {
                self.check_changeable(&database)?;
                Ok((database, table))
            }
        }
    }

    /// Whether the name is that of a table of `mysql` whose rows are made, and of no temporary table.
    pub(crate) fn is_system_table(&self, database: &str, table: &str) -> bool {
        is_system_table(database, table) && !self.table_names().is_temporary(database, table)
    }

    /// Error 1044 for `information_schema`.
    pub(crate) fn check_changeable(&self, database: &str) -> Result<()> {
        match is_virtual_database(database) {
            true => Err(self.client.denied_database(database)),
            false => Ok(()),
        }
    }

    /// Whether what the session changes is in a binary log.
    pub(crate) fn is_replicated(&self) -> bool {
        self.engine.binlog().is_some() && self.variables.logs_changes()
    }

    /// Error 1142 for a table that the session may do nothing with.
    pub(crate) fn check_sees_table(&self, database: &str, table: &str) -> Result<()> {
        match self.table_names().is_temporary(database, table) {
            true => Ok(()),
            false => self.client.check_sees_table(database, table),
        }
    }
}
