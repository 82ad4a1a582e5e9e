//! Builds a tree from sorted entries, bottom up.

use std::sync::Arc;

use crate::error::Result;
use crate::page::TreeId;
use crate::storage::Storage;

/// Takes entries in strictly ascending key order and writes a tree; dropped unfinished, it frees what it wrote.
pub struct BulkBuilder {}

impl BulkBuilder {
    pub fn new(storage: &Arc<Storage>) -> Result<BulkBuilder> {
        let _ = storage;
        unimplemented!()
    }

    /// Appends an entry. A key equal to its predecessor is `StorageError::DuplicateKey`, a smaller one
    /// `StorageError::UnsortedKeys`.
    pub fn append(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let _ = (key, value);
        unimplemented!()
    }

    /// Writes what is left and enters the tree in the directory.
    pub fn finish(self) -> Result<TreeId> {
        unimplemented!()
    }
}
