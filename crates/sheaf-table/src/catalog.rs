//! The catalog.
use std::sync::Arc;
use std::time::Duration;

use sheaf_storage::Storage;

use crate::error::Result;
use crate::progress::Progress;
use crate::schema::{CreateTable, IndexSpec};
use crate::table::Table;

/// All databases and tables of a data directory.
pub struct Catalog {}

/// A table opened by a statement that reads it: its definition stays until the guard is dropped.
pub struct ReadGuard {
    table: Arc<Table>,
}

impl std::ops::Deref for ReadGuard {
    type Target = Arc<Table>;
    fn deref(&self) -> &Arc<Table> {
        &self.table
    }
}

/// A table opened by the one statement that may write it now; others may read it.
pub struct WriteGuard {
    table: Arc<Table>,
}

impl std::ops::Deref for WriteGuard {
    type Target = Arc<Table>;
    fn deref(&self) -> &Arc<Table> {
        &self.table
    }
}

impl Catalog {
    pub fn open(storage: Arc<Storage>) -> Result<Arc<Catalog>> {
        let _ = storage;
        unimplemented!()
    }
    pub fn storage(&self) -> &Arc<Storage> {
        unimplemented!()
    }
    /// Grows with every change of a definition.
    pub fn schema_version(&self) -> u64 {
        unimplemented!()
    }
    /// Names of all databases, sorted.
    pub fn databases(&self) -> Vec<String> {
        unimplemented!()
    }
    pub fn database_exists(&self, name: &str) -> bool {
        let _ = name;
        unimplemented!()
    }
    pub fn create_database(&self, name: &str) -> Result<()> {
        let _ = name;
        unimplemented!()
    }
    /// Drops a database with its tables; returns how many tables it had.
    pub fn drop_database(&self, name: &str, wait: Duration) -> Result<usize> {
        let _ = (name, wait);
        unimplemented!()
    }
    /// The tables of a database, sorted by name.
    pub fn tables(&self, database: &str) -> Result<Vec<Arc<Table>>> {
        let _ = database;
        unimplemented!()
    }
    /// A table without any lock: for planning and information.
    pub fn table(&self, database: &str, name: &str) -> Result<Arc<Table>> {
        let _ = (database, name);
        unimplemented!()
    }
    /// Opens a table to read it, waiting at most `wait` for DDL on it.
    pub fn open_for_read(&self, database: &str, name: &str, wait: Duration) -> Result<ReadGuard> {
        let _ = (database, name, wait);
        unimplemented!()
    }
    /// Opens a table to write it, waiting at most `wait` for other writers and DDL.
    pub fn open_for_write(&self, database: &str, name: &str, wait: Duration) -> Result<WriteGuard> {
        let _ = (database, name, wait);
        unimplemented!()
    }
    pub fn create_table(&self, request: CreateTable) -> Result<Arc<Table>> {
        let _ = request;
        unimplemented!()
    }
    pub fn drop_table(&self, database: &str, name: &str, wait: Duration) -> Result<()> {
        let _ = (database, name, wait);
        unimplemented!()
    }
    pub fn rename_table(&self, from: (&str, &str), to: (&str, &str), wait: Duration) -> Result<()> {
        let _ = (from, to, wait);
        unimplemented!()
    }
    /// Builds an index over what the table holds: external sort within `memory_bytes`, then a sorted bulk build.
    pub fn create_index(
        &self,
        database: &str,
        table: &str,
        index: IndexSpec,
        memory_bytes: usize,
        progress: &dyn Progress,
        wait: Duration,
    ) -> Result<()> {
        let _ = (database, table, index, memory_bytes, progress, wait);
        unimplemented!()
    }
    pub fn drop_index(
        &self,
        database: &str,
        table: &str,
        index: &str,
        wait: Duration,
    ) -> Result<()> {
        let _ = (database, table, index, wait);
        unimplemented!()
    }
    /// Counts rows and estimates distinct values of every index.
    pub fn analyze(&self, database: &str, table: &str) -> Result<()> {
        let _ = (database, table);
        unimplemented!()
    }
}
