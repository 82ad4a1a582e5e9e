//! Which leaves hold these keys: asked of the inner nodes, without touching a leaf.
//!
//! Multi-range read collects keys, sorts them, and asks here to have their leaves read together, or how many of them
//! are in memory already. The keys are sorted, so one private copy of the node above the leaves answers for all keys
//! between its fences. Leaves come out in key order with duplicates next to each other.

use crate::error::Result;
use crate::node::{Node, PageImage};
use crate::page::PageId;
use crate::pool::prefetch::PrefetchSummary;
use crate::tree::Tree;
use crate::tree::search::{Target, new_page_image};

/// Leaves that are handed to the buffer pool in one call.
const PREFETCH_BATCH_PAGES: usize = 256;

/// A private copy of the last used node above the leaves.
struct ParentOfLeaves {
    page: Box<PageImage>,
    filled: bool,
}

impl ParentOfLeaves {
    fn new() -> ParentOfLeaves {
        ParentOfLeaves {
            page: new_page_image(),
            filled: false,
        }
    }

    /// The leaf that covers `key`; the root if it is the only leaf.
    fn leaf_of(&mut self, tree: &Tree, key: &[u8]) -> Result<PageId> {
        if !(self.filled && Node(&self.page).view().covers(key)) {
            self.filled = tree.copy_node(Target::Key(key), 1, &mut self.page)?;
        }
        if !self.filled {
            return Ok(tree.root());
        }
        let node = Node(&self.page);
        Ok(node.child(node.view().child_slot(key)))
    }
}

impl Tree {
    /// Starts reading the leaves of these keys (sorted ascending) without waiting for them. Waits only for inner
    /// nodes.
    pub fn prefetch_keys(
        &self,
        sorted_keys: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<PrefetchSummary> {
        let mut total = PrefetchSummary::default();
        let mut batch: Vec<PageId> = Vec::with_capacity(PREFETCH_BATCH_PAGES);
        let mut send = |batch: &mut Vec<PageId>| {
            let summary = self.store.pool.prefetch(batch);
            total.resident += summary.resident;
            total.requested_pages += summary.requested_pages;
            total.requests += summary.requests;
            batch.clear();
        };
        let mut last = None;
        let mut parent = ParentOfLeaves::new();
        for key in sorted_keys {
            let leaf = parent.leaf_of(self, key)?;
            if last.replace(leaf) != Some(leaf) {
                batch.push(leaf);
                if batch.len() == PREFETCH_BATCH_PAGES {
                    send(&mut batch);
                }
            }
        }
        if !batch.is_empty() {
            send(&mut batch);
        }
        Ok(total)
    }

    /// How many of the leaves of these keys (sorted ascending) are in the buffer pool: (resident, distinct leaves).
    pub fn resident_keys(
        &self,
        sorted_keys: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<(usize, usize)> {
        let (mut resident, mut leaves) = (0, 0);
        let mut last = None;
        let mut parent = ParentOfLeaves::new();
        for key in sorted_keys {
            let leaf = parent.leaf_of(self, key)?;
            if last.replace(leaf) != Some(leaf) {
                leaves += 1;
                resident += usize::from(self.store.pool.is_resident(leaf));
            }
        }
        Ok((resident, leaves))
    }
}
