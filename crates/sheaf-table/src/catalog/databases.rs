//! Databases in the catalog.
//!
//! A table takes the collation of its database when it is made, and from then on has its own.

use sheaf_types::Collation;

use crate::catalog::database::{DatabaseSnapshot, encode_database};
use crate::catalog::definition_check::check_database_name;
use crate::catalog::records::{database_key, header, kind, put};
use crate::catalog::{Catalog, Definitions};
use crate::error::{Result, TableError};

impl Catalog {
    /// Names of all databases, sorted.
    pub fn databases(&self) -> Vec<String> {
        self.databases.read().keys().cloned().collect()
    }

    /// All databases with their tables and views, sorted by name, as they are at one moment.
    pub fn snapshot(&self) -> Vec<DatabaseSnapshot> {
        let databases = self.databases.read();
        let databases = databases.iter();
        let databases = databases.map(|(name, database)| DatabaseSnapshot {
            name: name.clone(),
            collation: database.collation,
            tables: database.tables.values().cloned().collect(),
            views: database.views.values().cloned().collect(),
        });
        databases.collect()
    }

    pub fn database_exists(&self, name: &str) -> bool {
        self.databases.read().contains_key(name)
    }

    /// The collation that tables of a database take which name none.
    ///
    /// # Errors
    /// `UnknownDatabase`.
    pub fn database_collation(&self, name: &str) -> Result<Collation> {
        match self.databases.read().get(name) {
            Some(database) => Ok(database.collation),
            None => Err(TableError::UnknownDatabase {
                name: name.to_string(),
            }),
        }
    }

    /// Makes a database of the default collation.
    ///
    /// # Errors
    /// As [`create_database_with`](Self::create_database_with).
    pub fn create_database(&self, name: &str) -> Result<()> {
        self.create_database_with(name, Collation::default())
    }

    /// Makes a database of this collation.
    ///
    /// # Errors
    /// `DatabaseExists`, `IncorrectDatabaseName`.
    pub fn create_database_with(&self, name: &str, collation: Collation) -> Result<()> {
        check_database_name(name)?;
        let definitions = self.definitions.lock();
        if self.database_exists(name) {
            return Err(TableError::DatabaseExists {
                name: name.to_string(),
            });
        }
        self.put_database(&definitions, name, collation)
    }

    /// Gives a database another collation. The tables that are there keep theirs.
    ///
    /// # Errors
    /// `UnknownDatabase`.
    pub fn set_database_collation(&self, name: &str, collation: Collation) -> Result<()> {
        let definitions = self.definitions.lock();
        self.database_collation(name)?;
        self.put_database(&definitions, name, collation)
    }

    fn put_database(
        &self,
        definitions: &Definitions,
        name: &str,
        collation: Collation,
    ) -> Result<()> {
        self.change(|tree, transaction| {
            let header = header(definitions.next_table_id);
            put(tree, transaction, &[kind::HEADER], &header)?;
            let entry = encode_database(collation);
            put(tree, transaction, &database_key(name), &entry)
        })?;
        let mut databases = self.databases.write();
        databases.entry(name.to_string()).or_default().collation = collation;
        self.advance_schema_version();
        Ok(())
    }
}
