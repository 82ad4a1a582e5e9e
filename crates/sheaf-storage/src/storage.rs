//! A data directory: its one data file, its buffer pool, its trees.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::counters::PoolCounters;
use crate::disk::{Disk, DiskKind};
use crate::error::Result;
use crate::page::TreeId;
use crate::tree::Tree;
use crate::undo::StatementUndo;

/// What can be chosen when a data directory is opened.
#[derive(Clone, Debug)]
pub struct StorageOptions {
    /// Memory of the buffer pool, in bytes.
    pub pool_bytes: usize,
    pub disk: DiskKind,
    /// How full bulk builds fill leaves, 0.5 to 1.
    pub fill_factor: f32,
    /// Limit of one statement's before-images, in bytes; beyond it `StorageError::StatementTooLarge`.
    pub max_statement_undo_bytes: usize,
}

impl Default for StorageOptions {
    fn default() -> Self {
        StorageOptions {
            pool_bytes: 64 << 20,
            disk: DiskKind::Auto,
            fill_factor: 0.95,
            max_statement_undo_bytes: 64 << 20,
        }
    }
}

/// One open data directory.
pub struct Storage {}

impl Storage {
    /// Opens the data directory `dir`, and makes it when it is absent.
    pub fn open(dir: &Path, options: StorageOptions) -> Result<Arc<Storage>> {
        let _ = (dir, options);
        unimplemented!()
    }

    /// Opens storage on a given disk, such as the simulated one.
    pub fn open_on(disk: Arc<dyn Disk>, options: StorageOptions) -> Result<Arc<Storage>> {
        let _ = (disk, options);
        unimplemented!()
    }

    /// Makes an empty tree.
    pub fn create_tree(&self) -> Result<TreeId> {
        unimplemented!()
    }

    /// Removes a tree and frees its pages. Nobody may be using it.
    pub fn drop_tree(&self, id: TreeId) -> Result<()> {
        let _ = id;
        unimplemented!()
    }

    pub fn tree(&self, id: TreeId) -> Result<Arc<Tree>> {
        let _ = id;
        unimplemented!()
    }

    /// The one tree with a fixed id, in which the floor above keeps its catalog.
    pub fn catalog_tree(&self) -> Arc<Tree> {
        unimplemented!()
    }

    /// Starts a statement that changes trees.
    pub fn begin_statement(&self) -> StatementUndo {
        unimplemented!()
    }

    pub fn pool_counters(&self) -> PoolCounters {
        unimplemented!()
    }

    pub fn pool_bytes(&self) -> usize {
        unimplemented!()
    }

    /// A directory for spilled data; emptied when the data directory is opened.
    pub fn temp_dir(&self) -> PathBuf {
        unimplemented!()
    }

    /// Writes everything back and drops it from the buffer pool: what follows reads from the disk.
    pub fn drop_cached_pages(&self) -> Result<()> {
        unimplemented!()
    }

    /// Clean shutdown: everything is on disk when this returns, and no change is accepted afterwards.
    pub fn close(&self) -> Result<()> {
        unimplemented!()
    }
}
