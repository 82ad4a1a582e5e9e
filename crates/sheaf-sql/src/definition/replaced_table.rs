//! CREATE OR REPLACE TABLE, as MariaDB has it: the table that has the name is dropped before the new one is made.
//!
//! What can be found wrong before leaves the old table: names of the query, the definitions of columns and keys. If the
//! rows of a query cannot be written, there is no table of the name, as in MariaDB.

use sheaf_frontend::query::BoundQuery;
use sheaf_table::{QualifiedName, TableDefinition, annotated};
use sheaf_types::error::codes;

use crate::error::{Result, SqlError};
use crate::query::run::tables_of;
use crate::session::Session;

/// What CREATE OR REPLACE TABLE replaces, if it is there.
pub(super) struct Replaced {
    pub(super) name: QualifiedName,
    pub(super) temporary: bool,
}

impl Replaced {
    /// Error 1093 if the query of the new table reads the one that is replaced.
    pub(super) fn check_not_read(&self, query: &BoundQuery) -> Result<()> {
        let (database, name) = &self.name;
        let is_this = |definition: &TableDefinition| {
            definition.is_temporary() == self.temporary
                && definition.database == *database
                && definition.name == *name
        };
        match tables_of(&query.plan)?
            .iter()
            .any(|table| is_this(&table.definition))
        {
            true => Err(SqlError::new(
                codes::UPDATE_TABLE_USED,
                format!(
                    "Table '{name}' is specified twice, both as a target for 'CREATE' and as a separate source for data"
                ),
            )),
            false => Ok(()),
        }
    }
}

impl Session {
    /// Error 1965 if it is a view.
    pub(super) fn check_replaced(&self, replaced: &Replaced) -> Result<()> {
        let (database, name) = &replaced.name;
        if !replaced.temporary && self.engine.catalog().view(database, name).is_some() {
            let message = format!("'{database}.{name}' is a view");
            return Err(SqlError::new(codes::IT_IS_A_VIEW, message));
        }
        Ok(())
    }

    /// Drops it.
    pub(super) fn drop_replaced(&mut self, replaced: &Replaced) -> Result<()> {
        let (database, name) = &replaced.name;
        let names = std::slice::from_ref(&replaced.name);
        if replaced.temporary {
            if self.table_names().is_temporary(database, name) {
                self.temporary.drop_tables(names);
            }
            return Ok(());
        }
        let (catalog, check) = (self.engine.catalog(), self.variables.foreign_key_checks());
        if catalog.table(database, name).is_ok() {
            let drop = || self.with_definition_lock(|wait| catalog.drop_tables(names, check, wait));
            match self.is_replicated() {
                // Followers do it as a statement of its own.
                true => annotated(self.logged_drop(&replaced.name).to_bytes(), drop)?,
                false => drop()?,
            }
        }
        Ok(())
    }
}
