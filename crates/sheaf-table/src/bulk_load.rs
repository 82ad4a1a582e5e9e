//! Bulk load of empty tables.
use std::sync::Arc;

use crate::catalog::{Catalog, WriteGuard};
use crate::error::Result;
use crate::progress::Progress;
use crate::value::Value;

/// How a bulk load may work.
#[derive(Debug, Clone)]
pub struct BulkLoadOptions {
    /// Memory for sorting, in bytes.
    pub memory_bytes: usize,
    /// Threads that sort and build, 1 or more.
    pub threads: usize,
}

/// A bulk load in progress: rows in, trees out. Dropped without [`finish`](Self::finish): nothing remains.
pub struct BulkLoad {}

impl BulkLoad {
    /// Starts loading the table, which must be empty.
    pub fn new(
        catalog: &Arc<Catalog>,
        table: WriteGuard,
        options: BulkLoadOptions,
        progress: Arc<dyn Progress>,
    ) -> Result<BulkLoad> {
        let _ = (catalog, table, options, progress);
        unimplemented!()
    }
    /// Adds a row: one value per column, of the column's type. AUTO_INCREMENT columns are filled in.
    pub fn append(&mut self, row: &[Value]) -> Result<()> {
        let _ = row;
        unimplemented!()
    }
    /// Sorts, builds, and puts the new trees in place. Returns the number of rows.
    pub fn finish(self) -> Result<u64> {
        unimplemented!()
    }
}
