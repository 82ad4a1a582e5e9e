//! What a session is told of the database that it is in.

use crate::error::Result;
use crate::session::Session;
use crate::virtual_database::is_virtual_database;

/// The collation of the databases that no data directory has.
pub(crate) const VIRTUAL_COLLATION: &str = "utf8mb3_general_ci";

impl Session {
    /// The name of a database's collation. Error 1049.
    pub(crate) fn collation_of_database(&self, name: &str) -> Result<&'static str> {
        match is_virtual_database(name) {
            true => Ok(VIRTUAL_COLLATION),
            false => Ok(self.engine.catalog().database_collation(name)?.name()),
        }
    }

    /// `character_set_database` and `collation_database` follow the database that the session is in. In none they are
    /// what a new database has.
    pub(crate) fn tell_database_collation(&mut self) {
        let collation = self
            .selected_database()
            .and_then(|name| self.collation_of_database(name).ok());
        let collation = match collation {
            Some(collation) => collation.to_string(),
            None => self.variables.collation_server().to_string(),
        };
        self.variables.set_database_collation(&collation);
        self.handle.tell_variables(&self.variables);
    }

    /// The database that the session is in, also while a prepared statement runs in another one.
    pub(crate) fn selected_database(&self) -> Option<&str> {
        let own = self
            .statement
            .own_database
            .as_ref()
            .unwrap_or(&self.database);
        own.as_deref()
    }
}
