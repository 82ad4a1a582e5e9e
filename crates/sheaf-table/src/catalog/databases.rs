//! Databases in the catalog.
//!
//! A database is a name, a collation for those of its tables that name none, and its tables. A table takes the
//! collation when it is made, and from then on has its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use sheaf_types::Collation;

use crate::catalog::definition_check::check_name;
use crate::catalog::records::{database_key, header, kind, put};
use crate::catalog::{Catalog, Definitions};
use crate::definition::codec::{Reader, Writer};
use crate::error::{Result, TableError};
use crate::table::Table;

/// The newest format of a database's entry that this program writes and reads.
const FORMAT: u64 = 1;

/// A database in memory.
#[derive(Default)]
pub(crate) struct Database {
    pub(crate) collation: Collation,
    pub(crate) tables: BTreeMap<String, Arc<Table>>,
}

/// A database as it was at one moment.
pub struct DatabaseSnapshot {
    pub name: String,
    pub collation: Collation,
    /// Sorted by name.
    pub tables: Vec<Arc<Table>>,
}

impl Catalog {
    /// Names of all databases, sorted.
    pub fn databases(&self) -> Vec<String> {
        self.databases.read().keys().cloned().collect()
    }

    /// All databases with their tables, sorted by name, as they are at one moment.
    pub fn snapshot(&self) -> Vec<DatabaseSnapshot> {
        let databases = self.databases.read();
        let databases = databases.iter();
        let databases = databases.map(|(name, database)| DatabaseSnapshot {
            name: name.clone(),
            collation: database.collation,
            tables: database.tables.values().cloned().collect(),
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
        check_name(name, |name| TableError::IncorrectDatabaseName { name })?;
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

fn encode_database(collation: Collation) -> Vec<u8> {
    let mut out = Writer::default();
    out.number(FORMAT);
    out.number(collation.id().into());
    out.into_bytes()
}

/// A database without its tables, from its entry in the catalog tree.
///
/// # Errors
/// `CatalogTooNew`, or `Corrupt` if the bytes are not one.
pub(crate) fn decode_database(bytes: &[u8], name: &str) -> Result<Database> {
    // Catalogs of format 4 and before say no more than that it is there.
    if bytes.is_empty() {
        return Ok(Database::default());
    }
    let mut read = Reader::new(bytes, name);
    read.version(FORMAT)?;
    let collation = Collation::of_id(read.number()?).ok_or_else(|| read.corrupt())?;
    Ok(Database {
        collation,
        tables: BTreeMap::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_collation_of_a_database_comes_back() {
        for collation in Collation::ALL {
            let bytes = encode_database(collation);
            let database = decode_database(&bytes, "d").expect("it was just written");
            assert_eq!(database.collation, collation);
        }
    }

    #[test]
    fn databases_of_former_catalogs_have_the_default_collation() {
        let database = decode_database(&[], "d").expect("an entry of format 4");
        assert_eq!(database.collation, Collation::Utf8mb4_0900_ai_ci);
    }

    #[test]
    fn what_is_no_database_is_refused() {
        let refused = |bytes: &[u8]| decode_database(bytes, "d").err();
        assert!(matches!(
            refused(&[2, 45]),
            Some(TableError::CatalogTooNew { found: 2, known: 1 })
        ));
        assert!(matches!(refused(&[1]), Some(TableError::Corrupt { .. })));
        assert!(matches!(refused(&[1, 1]), Some(TableError::Corrupt { .. })));
    }
}
