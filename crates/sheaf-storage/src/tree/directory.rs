//! The tree directory: which trees there are, where their roots lie, and how large they are.
//!
//! It is itself a B+tree with a fixed root:
//!
//! ```text
//!  key    tree id, 8 bytes big-endian
//!  value  root page (8) | entries (8) | leaf pages (8) | inner pages (8) | height (4)     little-endian
//! ```
//!
//! The catalog tree, which the floor above fills, has a fixed number and root as well. Counts are kept in memory with
//! the open trees and written here by a checkpoint.
//!
//! Entering and removing a tree is no part of a transaction. A tree that the catalog does not name does no harm, and
//! the floor above drops such trees when it opens.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::durability::recovery::{Analysis, PagesOfTree};
use crate::error::{Result, StorageError};
use crate::key_range::KeyRange;
use crate::log::mini_transaction::MiniTransaction;
use crate::log::redo::RedoRecord;
use crate::page::{PageId, TreeId};
use crate::page_store::PageStore;
use crate::space::extent::{CATALOG_ROOT, DIRECTORY_ROOT};
use crate::sync::Mutex;
use crate::tree::{Counts, Direction, ReadAhead, Tree};

/// The directory's own number.
pub(crate) const DIRECTORY_TREE: TreeId = TreeId(1);

/// The number of the catalog's tree.
pub(crate) const CATALOG_TREE: TreeId = TreeId(2);

/// Numbers of other trees begin here.
pub(crate) const FIRST_FREE_TREE: TreeId = TreeId(3);

/// The trees at fixed places, and their roots.
const FIXED_TREES: [(TreeId, PageId); 2] = [
    (DIRECTORY_TREE, DIRECTORY_ROOT),
    (CATALOG_TREE, CATALOG_ROOT),
];

/// Counts of an empty tree.
pub(crate) const EMPTY: Counts = Counts {
    entries: 0,
    leaf_pages: 1,
    inner_pages: 0,
    height: 1,
};

/// Bytes of a directory entry.
const VALUE_BYTES: usize = 36;

/// See the [module](self).
pub(crate) struct TreeDirectory {
    store: Arc<PageStore>,
    directory: Arc<Tree>,
    catalog: Arc<Tree>,
    /// The trees in use. A tree that is not in use stays here, for its counts, until it is dropped.
    open: Mutex<BTreeMap<TreeId, Arc<Tree>>>,
    /// Held while the directory changes: the counts of a tree must not come back after the tree is gone.
    changes: Mutex<()>,
}

impl TreeDirectory {
    /// Makes the fixed trees of an empty file.
    pub(crate) fn create(store: &Arc<PageStore>) -> Result<Arc<TreeDirectory>> {
        for (tree, root) in FIXED_TREES {
            let mut change = MiniTransaction::begin(store);
            let page = change.add(store.pool.create(root)?);
            let format = RedoRecord::FormatNode {
                tree,
                level: 0,
                low_fence: &[],
                high_fence: None,
            };
            change.commit(&[(page, format)])?;
        }
        let directory = Tree::new(store.clone(), DIRECTORY_TREE, DIRECTORY_ROOT, EMPTY);
        for (tree, root) in FIXED_TREES {
            // Its own counts make the directory's first entry; a checkpoint brings them up to date.
            put(&directory, tree, root, EMPTY)?;
        }
        Self::with(store, directory)
    }

    /// The directory of a file in which redo has brought every page up to date.
    pub(crate) fn open(store: &Arc<PageStore>) -> Result<Arc<TreeDirectory>> {
        let directory = Tree::new(store.clone(), DIRECTORY_TREE, DIRECTORY_ROOT, EMPTY);
        let (_, counts) = look_up(&directory, DIRECTORY_TREE)?;
        let directory = Tree::new(store.clone(), DIRECTORY_TREE, DIRECTORY_ROOT, counts);
        Self::with(store, directory)
    }

    fn with(store: &Arc<PageStore>, directory: Arc<Tree>) -> Result<Arc<TreeDirectory>> {
        let (_, counts) = look_up(&directory, CATALOG_TREE)?;
        let catalog = Tree::new(store.clone(), CATALOG_TREE, CATALOG_ROOT, counts);
        let open = BTreeMap::from([(CATALOG_TREE, catalog.clone())]);
        let trees = Arc::new(TreeDirectory {
            store: store.clone(),
            directory,
            catalog,
            open: Mutex::new(open),
            changes: Mutex::new(()),
        });
        let writer = Arc::downgrade(&trees);
        store.set_counts_writer(Box::new(move || {
            let trees = writer.upgrade();
            trees.map_or(Ok(()), |trees| trees.write_counts())
        }));
        Ok(trees)
    }

    /// After a crash: frees what belongs to no tree, and brings the counts of all trees up to date.
    pub(crate) fn recover(store: &Arc<PageStore>, analysis: &Analysis) -> Result<()> {
        let directory = Tree::new(store.clone(), DIRECTORY_TREE, DIRECTORY_ROOT, EMPTY);
        let mut trees: BTreeMap<TreeId, PagesOfTree> = ids_in(&directory)?
            .into_iter()
            .map(|tree| (tree, PagesOfTree::default()))
            .collect();
        crate::durability::recovery::reclaim_space(store, &mut trees)?;
        for (tree, pages) in trees {
            let (root, before) = look_up(&directory, tree)?;
            let won = analysis.entries.get(&tree).copied().unwrap_or(0);
            let counts = Counts {
                entries: before.entries.saturating_add_signed(won),
                leaf_pages: pages.leaf_pages,
                inner_pages: pages.inner_pages,
                height: u32::from(pages.level) + 1,
            };
            if counts != before {
                put(&directory, tree, root, counts)?;
            }
        }
        Ok(())
    }

    /// The directory's own tree.
    pub(crate) fn directory(&self) -> &Arc<Tree> {
        &self.directory
    }

    pub(crate) fn catalog(&self) -> Arc<Tree> {
        self.catalog.clone()
    }

    pub(crate) fn tree(&self, id: TreeId) -> Result<Arc<Tree>> {
        if let Some(tree) = self.open.lock().get(&id) {
            return Ok(tree.clone());
        }
        let (root, counts) = look_up(&self.directory, id)?;
        let opened = Tree::new(self.store.clone(), id, root, counts);
        Ok(self.open.lock().entry(id).or_insert(opened).clone())
    }

    /// Numbers of all trees, ascending, the directory itself left out.
    pub(crate) fn ids(&self) -> Result<Vec<TreeId>> {
        let mut ids = ids_in(&self.directory)?;
        ids.retain(|&id| id != DIRECTORY_TREE);
        Ok(ids)
    }

    /// Enters a tree. The caller has a permit for changes.
    pub(crate) fn enter(&self, tree: TreeId, root: PageId, counts: Counts) -> Result<()> {
        let _changes = self.changes.lock();
        put(&self.directory, tree, root, counts)
    }

    /// Removes a tree. The caller has a permit for changes.
    pub(crate) fn remove(&self, tree: TreeId) -> Result<()> {
        let _changes = self.changes.lock();
        self.directory.remove(&key(tree), None)?;
        self.open.lock().remove(&tree);
        Ok(())
    }

    /// Brings the counts of all trees up to date.
    pub(crate) fn write_counts(&self) -> Result<()> {
        let trees: Vec<_> = self.open.lock().values().cloned().collect();
        for tree in trees.iter().chain([&self.directory]) {
            if !tree.counts().take_changed() {
                continue;
            }
            let _changes = self.changes.lock();
            if tree.id() != DIRECTORY_TREE && !self.open.lock().contains_key(&tree.id()) {
                // Dropped meanwhile.
                continue;
            }
            let counts = tree.counts();
            let written = put(&self.directory, tree.id(), tree.root(), counts.read());
            // The next attempt must not take them for written.
            written.inspect_err(|_| counts.note_change())?;
        }
        Ok(())
    }
}

fn put(directory: &Tree, tree: TreeId, root: PageId, counts: Counts) -> Result<()> {
    directory.put_counts(&key(tree), &value(root, counts), tree)?;
    Ok(())
}

/// Numbers of all trees in the directory, ascending.
fn ids_in(directory: &Tree) -> Result<Vec<TreeId>> {
    let mut ids = Vec::new();
    let mut cursor = directory
        .shared()?
        .scan(KeyRange::all(), Direction::Forward, ReadAhead::Off);
    let mut key = Vec::new();
    while let Some(leaf) = cursor.next_leaf()? {
        for i in 0..leaf.len() {
            leaf.key_into(i, &mut key);
            if let Ok(bytes) = key.as_slice().try_into() {
                ids.push(TreeId(u64::from_be_bytes(bytes)));
            }
        }
    }
    Ok(ids)
}

fn key(tree: TreeId) -> [u8; 8] {
    tree.0.to_be_bytes()
}

fn value(root: PageId, counts: Counts) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    value[0..8].copy_from_slice(&root.0.to_le_bytes());
    value[8..16].copy_from_slice(&counts.entries.to_le_bytes());
    value[16..24].copy_from_slice(&counts.leaf_pages.to_le_bytes());
    value[24..32].copy_from_slice(&counts.inner_pages.to_le_bytes());
    value[32..36].copy_from_slice(&counts.height.to_le_bytes());
    value
}

/// Root and counts of a tree.
fn look_up(directory: &Tree, tree: TreeId) -> Result<(PageId, Counts)> {
    let mut value = Vec::new();
    if !directory.get(&key(tree), &mut value)? {
        return Err(StorageError::NoSuchTree { tree });
    }
    if value.len() != VALUE_BYTES {
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
