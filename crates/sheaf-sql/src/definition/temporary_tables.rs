//! What statements do with the [temporary tables](crate::session::temporary_tables) of a session.

use std::sync::Arc;

use sheaf_table::{Catalog, CreateTable, TableDefinition, TableNames};

use crate::error::{Result, SqlError};
use crate::session::Session;

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

    /// Makes an empty temporary table. Errors of [`Self::check_temporary_name`], and as of
    /// [`TemporaryTables::create`](crate::session::temporary_tables::TemporaryTables::create).
    pub(crate) fn create_temporary_table(&mut self, request: CreateTable) -> Result<()> {
        self.check_temporary_name(&request.database)?;
        self.temporary.create(self.engine.catalog(), request)
    }
}
