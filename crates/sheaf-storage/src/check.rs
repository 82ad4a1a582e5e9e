//! Whether a data file is what it should be: every tree from its root to its last leaf, and every page that is in use.
//!
//! A page whose checksum is wrong, a node whose keys are out of order, a child that belongs elsewhere: each is found by
//! [`Tree::check`](crate::tree::Tree::check). The extent maps say what no tree can say: a page that is marked as used
//! and that no tree reaches is lost space.

use crate::error::Result;
use crate::page::TreeId;
use crate::space::extent::{EXTENTS_PER_GROUP, GROUP_PAGES};
use crate::storage::Storage;
use crate::tree::TreeCheck;

/// What a check of a data file found.
#[derive(Debug)]
pub struct StorageCheck {
    /// Every tree, and what its check counted or where it contradicts itself.
    pub trees: Vec<(TreeId, Result<TreeCheck>)>,
    /// Pages that are marked as used and that no tree reaches; unknown if a tree could not be read to its end.
    pub orphaned_pages: Option<u64>,
}

impl Storage {
    /// Reads all trees. Nothing may be changed meanwhile. `on_tree` is told of each tree before it is read.
    ///
    /// # Errors
    /// The tree directory itself cannot be read; then there is no telling which trees there are.
    pub fn check(&self, mut on_tree: impl FnMut(TreeId)) -> Result<StorageCheck> {
        let directory = self.directory();
        let mut trees = vec![(directory.id(), directory.check())];
        for id in self.tree_ids()? {
            on_tree(id);
            trees.push((id, self.tree(id).and_then(|tree| tree.check())));
        }
        let reached: Result<u64> = trees
            .iter()
            .map(|(_, found)| {
                let found = found.clone()?;
                Ok(found.leaf_pages + found.inner_pages)
            })
            .sum();
        let orphaned_pages = reached.ok().map(|reached| {
            let groups = self
                .store()
                .space
                .extent_count()
                .div_ceil(EXTENTS_PER_GROUP) as u64;
            let others = groups * u64::from(GROUP_PAGES.count_ones());
            self.used_pages().saturating_sub(others + reached)
        });
        Ok(StorageCheck {
            trees,
            orphaned_pages,
        })
    }
}
