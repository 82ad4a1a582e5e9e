//! CREATE, ALTER and DROP DATABASE.

use sheaf_table::TableError;
use sheaf_types::Collation;
use sheaf_types::error::codes;

use crate::error::{Result, SqlError};
use crate::parser::statement::DatabaseOptions;
use crate::session::Session;
use crate::session::result::ResultSink;
use crate::session::warnings::Warnings;
use crate::virtual_database::is_system_database;

impl Session {
    pub(crate) fn create_database(
        &mut self,
        name: &str,
        if_not_exists: bool,
        options: &DatabaseOptions,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.check_changeable(name)?;
        let collation = match collation_in(&mut self.warnings, options)? {
            Some(collation) => collation,
            None => {
                let server = self.variables.collation_server().to_string();
                self.warnings
                    .collation_of(None, Some(&server))?
                    .unwrap_or_default()
            }
        };
        let catalog = self.engine.catalog();
        match catalog.create_database_with(name, collation) {
            Err(TableError::DatabaseExists { name }) if if_not_exists => {
                self.warnings.note(
                    codes::DB_CREATE_EXISTS,
                    SqlError::database_exists(&name).message,
                );
            }
            result => result?,
        }
        self.ok(sink, 1, String::new())
    }

    /// `name`: `None` for the current database.
    pub(crate) fn alter_database(
        &mut self,
        name: Option<String>,
        options: &DatabaseOptions,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let name = name.or_else(|| self.database.clone());
        let name = name.ok_or_else(SqlError::no_database_selected)?;
        sheaf_table::check_database_name(&name)?;
        self.check_changeable(&name)?;
        let new = collation_in(&mut self.warnings, options)?;
        let catalog = self.engine.catalog();
        let collation = match new {
            Some(collation) => collation,
            None => catalog.database_collation(&name)?,
        };
        catalog.set_database_collation(&name, collation)?;
        if self.selected_database() == Some(&name) {
            self.tell_database_collation();
        }
        self.ok(sink, 1, String::new())
    }

    pub(crate) fn drop_database(
        &mut self,
        name: &str,
        if_exists: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        sheaf_table::check_database_name(name)?;
        self.check_changeable(name)?;
        if is_system_database(name) {
            return Err(SqlError::new(
                codes::NO_SYSTEM_SCHEMA_ACCESS,
                format!("Access to system schema '{name}' is rejected."),
            ));
        }
        let (catalog, check) = (self.engine.catalog(), self.variables.foreign_key_checks());
        let dropped =
            self.with_definition_lock(|wait| match catalog.drop_database(name, check, wait) {
                Err(absent @ TableError::CannotDropDatabase { .. }) if if_exists => Ok(Err(absent)),
                outcome => outcome.map(Ok),
            })?;
        let dropped = dropped.unwrap_or_else(|absent| {
            let SqlError { code, message, .. } = absent.into();
            self.warnings.note(code, message);
            0
        });
        let is_own = self.selected_database() == Some(name);
        if self.database.as_deref() == Some(name) {
            self.database = None;
            self.handle.set_database(None);
        }
        if let Some(own) = &mut self.statement.own_database
            && own.as_deref() == Some(name)
        {
            *own = None;
        }
        if is_own {
            self.tell_database_collation();
        }
        self.ok(sink, dropped as u64, String::new())
    }
}

fn collation_in(warnings: &mut Warnings, options: &DatabaseOptions) -> Result<Option<Collation>> {
    let (character_set, collation) = (&options.character_set, &options.collation);
    warnings.collation_of(character_set.as_deref(), collation.as_deref())
}
