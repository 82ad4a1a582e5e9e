//! A data directory: its one data file, its buffer pool, its trees.
//!
//! The *tree directory* is itself a B+tree with a fixed root. It maps the number of every tree to its root page and
//! its counts:
//!
//! ```text
//!  key    tree id, 8 bytes big-endian
//!  value  root page (8) | entries (8) | leaf pages (8) | inner pages (8) | height (4)     little-endian
//! ```
//!
//! The catalog tree, which the floor above fills, has a fixed number and root as well. Counts are kept in memory and
//! written to the directory by a checkpoint.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::buffer_pool::{BufferPool, PoolOptions};
use crate::checkpointer::IdleCheckpointer;
use crate::counters::{PoolCounters, TransactionCounters};
use crate::disk::{self, Disk, DiskKind};
use crate::error::{Result, StorageError};
use crate::extent::{CATALOG_ROOT, DIRECTORY_ROOT, PAGES_PER_EXTENT, PageRequest};
use crate::mini_transaction::MiniTransaction;
use crate::page::{Lsn, PageId, TreeId};
use crate::page_store::PageStore;
use crate::redo::RedoRecord;
use crate::snapshot::ReadView;
use crate::sync::Mutex;
use crate::transaction::Transaction;
use crate::transaction_system::TransactionSystem;
use crate::tree::{Counts, Tree};
use crate::versions::VersionCollector;

/// Name of the data file in its directory.
const DATA_FILE: &str = "sheaf.data";

/// Name of the lock file in the data directory.
const LOCK_FILE: &str = "sheaf.lock";

/// Folder for spilled data in the data directory.
const TEMP_FOLDER: &str = "temp";

/// Trees with fixed numbers.
const DIRECTORY_TREE: TreeId = TreeId(1);
const CATALOG_TREE: TreeId = TreeId(2);
const FIRST_FREE_TREE: TreeId = TreeId(3);

/// Bounds of [`StorageOptions::fill_factor`].
const FILL_FACTORS: std::ops::RangeInclusive<f32> = 0.5..=1.0;

/// What can be chosen when a data directory is opened.
#[derive(Clone, Debug)]
pub struct StorageOptions {
    /// Memory of the buffer pool, in bytes.
    pub pool_bytes: usize,
    pub disk: DiskKind,
    /// How full bulk builds fill leaves, 0.5 to 1.
    pub fill_factor: f32,
    /// Limit of one transaction's before-images, in bytes; beyond it [`StorageError::TransactionTooLarge`].
    pub max_transaction_log_bytes: usize,
    /// Limit of the before-images that readers of older snapshots need, in bytes; beyond it
    /// [`StorageError::VersionStoreFull`].
    pub max_version_bytes: usize,
    /// Most explicit row locks of all transactions together; beyond it [`StorageError::TooManyLocks`].
    pub max_row_locks: usize,
    /// Whether background threads write dirty pages back, collect versions, and make checkpoints when nothing changes.
    pub background_writer: bool,
}

impl Default for StorageOptions {
    fn default() -> Self {
        StorageOptions {
            pool_bytes: 64 << 20,
            disk: DiskKind::Auto,
            fill_factor: 0.95,
            max_transaction_log_bytes: 64 << 20,
            max_version_bytes: 256 << 20,
            max_row_locks: 1 << 20,
            background_writer: true,
        }
    }
}

/// One open data directory. Used as `Arc<Storage>`, by any number of threads. Dropped without
/// [`close`](Storage::close), it closes.
pub struct Storage {
    store: Arc<PageStore>,
    options: StorageOptions,
    directory: Arc<Tree>,
    catalog: Arc<Tree>,
    /// The trees in use. A tree that nobody uses stays here, for its counts, until it is dropped.
    trees: Mutex<BTreeMap<TreeId, Arc<Tree>>>,
    temp_dir: PathBuf,
    checkpointer: Mutex<Option<IdleCheckpointer>>,
    collector: Mutex<Option<VersionCollector>>,
    /// Held until the storage is dropped.
    _lock: Option<File>,
}

impl Storage {
    /// Opens the data directory `dir`, and makes it when it is absent.
    ///
    /// # Errors
    /// `InUse` if another process has it open; `UnknownFormat` if the data file is not one of this version or was not
    /// closed cleanly.
    pub fn open(dir: &Path, options: StorageOptions) -> Result<Arc<Storage>> {
        let failed = |operation, path: &Path| {
            let path = path.display().to_string();
            move |error| StorageError::io(operation, path, 0, error)
        };
        std::fs::create_dir_all(dir).map_err(failed("creation", dir))?;
        let lock_path = dir.join(LOCK_FILE);
        let lock = File::create(&lock_path).map_err(failed("creation", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StorageError::InUse {
                    path: dir.to_owned(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(failed("locking", &lock_path)(error)),
        }
        let temp_dir = dir.join(TEMP_FOLDER);
        if temp_dir.exists() {
            std::fs::remove_dir_all(&temp_dir).map_err(failed("removal", &temp_dir))?;
        }
        std::fs::create_dir_all(&temp_dir).map_err(failed("creation", &temp_dir))?;
        let disk = disk::open_directory(dir, options.disk)?;
        Self::open_with(disk, options, temp_dir, Some(lock))
    }

    /// Opens storage on a given disk, such as the simulated one. Spilled data goes to the system's folder for
    /// temporary files.
    pub fn open_on(disk: Arc<dyn Disk>, options: StorageOptions) -> Result<Arc<Storage>> {
        Self::open_with(disk, options, std::env::temp_dir(), None)
    }

    fn open_with(
        disk: Arc<dyn Disk>,
        options: StorageOptions,
        temp_dir: PathBuf,
        lock: Option<File>,
    ) -> Result<Arc<Storage>> {
        if !FILL_FACTORS.contains(&options.fill_factor) {
            let reason = format!("{} does not lie in {FILL_FACTORS:?}", options.fill_factor);
            return Err(StorageError::BadOption {
                option: "fill_factor",
                reason,
            });
        }
        let file = disk.open(DATA_FILE)?;
        let pool_options = PoolOptions {
            background_writer: options.background_writer,
            ..PoolOptions::new(options.pool_bytes)
        };
        let pool = BufferPool::open(disk.clone(), file, pool_options)?;
        let is_new = pool.page_count() == 0;
        let transactions = TransactionSystem::new(options.max_version_bytes, options.max_row_locks);
        let store = if is_new {
            PageStore::create(pool, disk, file, transactions, FIRST_FREE_TREE)?
        } else {
            PageStore::open(pool, disk, file, transactions)?
        };
        let store = Arc::new(store);
        if is_new {
            for (tree, root) in [
                (DIRECTORY_TREE, DIRECTORY_ROOT),
                (CATALOG_TREE, CATALOG_ROOT),
            ] {
                let mut change = MiniTransaction::begin(&store);
                let page = change.add(store.pool.create(root)?);
                let format = RedoRecord::FormatNode {
                    tree,
                    level: 0,
                    low_fence: &[],
                    high_fence: None,
                };
                change.commit(&[(page, format)])?;
            }
        }
        let empty = Counts {
            entries: 0,
            leaf_pages: 1,
            inner_pages: 0,
            height: 1,
        };
        let directory = Tree::new(store.clone(), DIRECTORY_TREE, DIRECTORY_ROOT, empty);
        if is_new {
            // Its own counts make the directory's first entry; a checkpoint brings them up to date.
            for (tree, root) in [
                (DIRECTORY_TREE, DIRECTORY_ROOT),
                (CATALOG_TREE, CATALOG_ROOT),
            ] {
                directory.put(&directory_key(tree), &directory_value(root, empty))?;
            }
        }
        let (_, catalog_counts) = look_up(&directory, CATALOG_TREE)?;
        let catalog = Tree::new(store.clone(), CATALOG_TREE, CATALOG_ROOT, catalog_counts);
        let directory = if is_new {
            directory
        } else {
            let (_, counts) = look_up(&directory, DIRECTORY_TREE)?;
            Tree::new(store.clone(), DIRECTORY_TREE, DIRECTORY_ROOT, counts)
        };
        let trees = BTreeMap::from([(CATALOG_TREE, catalog.clone())]);
        let storage = Arc::new(Storage {
            store,
            options,
            directory,
            catalog,
            trees: Mutex::new(trees),
            temp_dir,
            checkpointer: Mutex::new(None),
            collector: Mutex::new(None),
            _lock: lock,
        });
        if is_new {
            storage.checkpoint()?;
        }
        if storage.options.background_writer {
            *storage.checkpointer.lock() = Some(IdleCheckpointer::start(&storage)?);
            *storage.collector.lock() = Some(VersionCollector::start(&storage)?);
        }
        Ok(storage)
    }

    pub(crate) fn store(&self) -> &Arc<PageStore> {
        &self.store
    }

    /// The tree of all trees.
    pub(crate) fn directory(&self) -> &Arc<Tree> {
        &self.directory
    }

    pub(crate) fn fill_factor(&self) -> f32 {
        self.options.fill_factor
    }

    /// Makes an empty tree.
    pub fn create_tree(&self) -> Result<TreeId> {
        let _permit = self.store.begin_changes()?;
        let tree = self.store.new_tree_id();
        let mut change = MiniTransaction::begin(&self.store);
        let page = change.allocate(PageRequest {
            tree,
            own_extent: false,
            near: None,
            for_rollback: false,
        })?;
        let root = change.page_id(page);
        let format = RedoRecord::FormatNode {
            tree,
            level: 0,
            low_fence: &[],
            high_fence: None,
        };
        change.commit(&[(page, format)])?;
        let counts = Counts {
            entries: 0,
            leaf_pages: 1,
            inner_pages: 0,
            height: 1,
        };
        if let Err(error) = self.enter_tree(tree, root, counts) {
            self.store.free_pages(&[root])?;
            return Err(error);
        }
        Ok(tree)
    }

    /// Enters a tree in the directory. The caller has a permit for changes.
    pub(crate) fn enter_tree(&self, tree: TreeId, root: PageId, counts: Counts) -> Result<()> {
        self.directory
            .put(&directory_key(tree), &directory_value(root, counts))?;
        Ok(())
    }

    /// Removes a tree and frees its pages. Nobody may be using it.
    pub fn drop_tree(&self, id: TreeId) -> Result<()> {
        if id < FIRST_FREE_TREE {
            return Err(StorageError::NoSuchTree { tree: id });
        }
        let _permit = self.store.begin_changes()?;
        let tree = self.tree(id)?;
        // All that has to be read is read first. Leaves in the tree's own extents are not looked at.
        let pages = tree.pages_in_shared_extents()?;
        let extents = self.store.space.extents_of(id);
        self.directory.remove(&directory_key(id), None)?;
        self.trees.lock().remove(&id);
        self.store.transactions.versions.forget_tree(id);
        for &extent in &extents {
            for page in 0..PAGES_PER_EXTENT as u32 {
                self.store
                    .pool
                    .discard(crate::extent::page_in(extent, page));
            }
        }
        let freed: Vec<_> = extents.into_iter().map(|extent| (extent, 0)).collect();
        self.store.set_extents(&freed, id)?;
        self.store.free_pages(&pages)
    }

    pub fn tree(&self, id: TreeId) -> Result<Arc<Tree>> {
        if let Some(tree) = self.trees.lock().get(&id) {
            return Ok(tree.clone());
        }
        let (root, counts) = look_up(&self.directory, id)?;
        let opened = Tree::new(self.store.clone(), id, root, counts);
        Ok(self.trees.lock().entry(id).or_insert(opened).clone())
    }

    /// The one tree with a fixed id, in which the floor above keeps its catalog.
    pub fn catalog_tree(&self) -> Arc<Tree> {
        self.catalog.clone()
    }

    /// Numbers of all trees in the directory, ascending, the directory itself left out.
    pub fn tree_ids(&self) -> Result<Vec<TreeId>> {
        let mut ids = Vec::new();
        let mut cursor = self.directory.scan(
            crate::tree::KeyRange::all(),
            crate::tree::Direction::Forward,
            crate::tree::ReadAhead::Off,
        );
        let mut key = Vec::new();
        while let Some(leaf) = cursor.next_leaf()? {
            for i in 0..leaf.len() {
                leaf.key_into(i, &mut key);
                if let Ok(bytes) = key.as_slice().try_into() {
                    ids.push(TreeId(u64::from_be_bytes(bytes)));
                }
            }
        }
        ids.retain(|&id| id != DIRECTORY_TREE);
        Ok(ids)
    }

    /// Starts a transaction: changes of trees that stay or go together.
    pub fn begin_transaction(&self) -> Transaction {
        Transaction::new(self.store.clone(), self.options.max_transaction_log_bytes)
    }

    /// A view of what has committed by now.
    ///
    /// # Errors
    /// `TooManySnapshots`.
    pub fn read_view(&self) -> Result<ReadView> {
        ReadView::take(&self.store.transactions.snapshots, None)
    }

    /// The timestamp that a snapshot would have now.
    pub fn newest_commit(&self) -> Lsn {
        self.store.transactions.snapshots.newest()
    }

    /// Drops versions that no snapshot needs, and the ghosts that were kept for them. A background thread does this, if
    /// there are background threads.
    pub fn collect_versions_step(&self) -> Result<()> {
        let transactions = &self.store.transactions;
        if transactions.versions.leaves() == 0 {
            return Ok(());
        }
        let live = transactions.live_snapshots();
        let hints = transactions
            .versions
            .sweep(&live, |page| self.store.pool.forget_versions(page));
        for hint in hints {
            match self.tree(hint.tree) {
                Ok(tree) => drop(tree.purge_leaf(&hint.key)?),
                // Dropped since, garbage and all.
                Err(StorageError::NoSuchTree { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What versions and locks take.
    pub fn transaction_counters(&self) -> TransactionCounters {
        let transactions = &self.store.transactions;
        let newest = transactions.snapshots.newest();
        TransactionCounters {
            version_bytes: transactions.versions.memory_bytes() as u64,
            version_bytes_limit: transactions.versions.budget_bytes() as u64,
            leaves_with_versions: transactions.versions.leaves() as u64,
            row_locks: transactions.row_locks.count() as u64,
            newest_commit: newest,
            oldest_snapshot: transactions.snapshots.live().oldest(),
        }
    }

    pub fn pool_counters(&self) -> PoolCounters {
        self.store.pool.counters()
    }

    /// Memory that the buffer pool may use, in bytes.
    pub fn pool_bytes(&self) -> usize {
        self.options.pool_bytes
    }

    /// Pages of the data file that hold something.
    pub fn used_pages(&self) -> u64 {
        self.store.space.used_pages()
    }

    /// A directory for spilled data; emptied when the data directory is opened.
    pub fn temp_dir(&self) -> PathBuf {
        self.temp_dir.clone()
    }

    /// Writes everything back and drops it from the buffer pool: what follows reads from the disk.
    pub fn drop_cached_pages(&self) -> Result<()> {
        self.store.pool.evict_all_clean()
    }

    /// Makes everything durable and marks the file as clean, unless a statement is changing something just now:
    /// false then. A process that ends after this and before the next change loses nothing.
    pub fn checkpoint(&self) -> Result<bool> {
        self.store.checkpoint(|| self.write_counts())
    }

    /// Makes a checkpoint if no change has begun since `seen`, which an earlier step returned. Returns what to pass to
    /// the next step. A background thread does this, if there are background threads.
    pub fn idle_checkpoint_step(&self, seen: Option<u64>) -> Result<u64> {
        let begun = self.store.changes_begun();
        if seen == Some(begun) {
            self.checkpoint()?;
        }
        Ok(begun)
    }

    /// Clean shutdown: everything is on disk when this returns, and no change is accepted afterwards. Waits for
    /// statements that are changing something.
    pub fn close(&self) -> Result<()> {
        self.stop_background();
        self.store.close(|| self.write_counts())?;
        self.store.pool.close()
    }

    fn stop_background(&self) {
        let checkpointer = self.checkpointer.lock().take();
        drop(checkpointer);
        let collector = self.collector.lock().take();
        drop(collector);
    }

    /// Brings the counts of all trees in the directory up to date.
    fn write_counts(&self) -> Result<()> {
        let trees: Vec<_> = self.trees.lock().values().cloned().collect();
        for tree in trees.iter().chain([&self.directory]) {
            if tree.counts().take_changed() {
                let value = directory_value(tree.root(), tree.counts().read());
                self.directory.put(&directory_key(tree.id()), &value)?;
            }
        }
        Ok(())
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.stop_background();
        // Does not wait for statements, which may belong to this very thread.
        match self.checkpoint() {
            Ok(true) | Err(StorageError::Closed) => {}
            Ok(false) => tracing::error!("the storage is dropped while a statement changes it"),
            Err(error) => tracing::error!("the storage was not closed cleanly: {error}"),
        }
        if let Err(error) = self.store.pool.close() {
            tracing::error!("the buffer pool was not closed cleanly: {error}");
        }
    }
}

fn directory_key(tree: TreeId) -> [u8; 8] {
    tree.0.to_be_bytes()
}

/// Bytes of a directory entry.
const DIRECTORY_VALUE_BYTES: usize = 36;

fn directory_value(root: PageId, counts: Counts) -> [u8; DIRECTORY_VALUE_BYTES] {
    let mut value = [0; DIRECTORY_VALUE_BYTES];
    value[0..8].copy_from_slice(&root.0.to_le_bytes());
    value[8..16].copy_from_slice(&counts.entries.to_le_bytes());
    value[16..24].copy_from_slice(&counts.leaf_pages.to_le_bytes());
    value[24..32].copy_from_slice(&counts.inner_pages.to_le_bytes());
    value[32..36].copy_from_slice(&counts.height.to_le_bytes());
    value
}

/// Root and counts of a tree, from the directory.
fn look_up(directory: &Tree, tree: TreeId) -> Result<(PageId, Counts)> {
    let mut value = Vec::new();
    if !directory.get(&directory_key(tree), &mut value)? {
        return Err(StorageError::NoSuchTree { tree });
    }
    if value.len() != DIRECTORY_VALUE_BYTES {
        let reason = format!(
            "the directory entry of tree {tree} has {} bytes",
            value.len()
        );
        return Err(directory
            .store()
            .malformed(DIRECTORY_TREE, DIRECTORY_ROOT, reason));
    }
    let number = |bytes: std::ops::Range<usize>| {
        value[bytes]
            .iter()
            .rev()
            .fold(0, |number, &byte| number << 8 | u64::from(byte))
    };
    let counts = Counts {
        entries: number(8..16),
        leaf_pages: number(16..24),
        inner_pages: number(24..32),
        height: number(32..36) as u32,
    };
    Ok((PageId(number(0..8)), counts))
}
