//! Whether a tree is what it should be: for tests, and when a file is in doubt.

use crate::error::Result;
use crate::node::{Node, PageImage};
use crate::page::{PAGE_SIZE, Page, PageId, header};
use crate::tree::{Counts, Tree};

/// What a check counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeCheck {
    /// Live entries.
    pub entries: u64,
    pub ghosts: u64,
    pub leaf_pages: u64,
    pub inner_pages: u64,
}

impl Tree {
    /// Reads the whole tree and compares everything that must agree. That is the structure of each node, levels, fences
    /// with the parents' separators, the order of keys, the use of pages in the extent maps, and the counts of pages.
    /// The tree must not change meanwhile.
    ///
    /// # Errors
    /// `Malformed` with the first contradiction; I/O errors.
    pub fn check(&self) -> Result<TreeCheck> {
        let mut found = TreeCheck::default();
        let root_level = self.root_level()?;
        self.check_node(self.root, root_level, &[], None, &mut found)?;
        let expected = self.counts.read();
        // Entries are counted without a latch, and across a crash: an estimate that this makes exact.
        self.counts.set_entries(found.entries);
        let counted = Counts {
            entries: expected.entries,
            leaf_pages: found.leaf_pages,
            inner_pages: found.inner_pages,
            height: u32::from(root_level) + 1,
        };
        if counted != expected {
            let reason = format!("the tree has {counted:?}, its statistics say {expected:?}");
            return Err(self.store.malformed(self.id, self.root, reason));
        }
        Ok(found)
    }

    fn check_node(
        &self,
        id: PageId,
        level: u8,
        low: &[u8],
        high: Option<&[u8]>,
        found: &mut TreeCheck,
    ) -> Result<()> {
        let mut image: Box<PageImage> = Box::new([0; PAGE_SIZE]);
        image.copy_from_slice(self.store.pool.shared(id)?.bytes());
        let node = Node(&image);
        let malformed = |reason: String| Err(self.store.malformed(self.id, id, reason));
        if let Err(reason) = node.check() {
            return malformed(reason);
        }
        let tree = u64::from_le_bytes(
            image[header::TREE_ID..header::TREE_ID + 8]
                .try_into()
                .expect("eight bytes"),
        );
        if tree != self.id.0 || node.level() != level {
            return malformed(format!(
                "level {} of tree {tree}, expected level {level}",
                node.level()
            ));
        }
        if node.low_fence() != low || node.high_fence() != high {
            return malformed(format!(
                "fences {:?}..{:?}, the parent says {low:?}..{high:?}",
                node.low_fence(),
                node.high_fence()
            ));
        }
        if !self.store.space.is_used(id) {
            return malformed("the page is free in its extent map".into());
        }
        if self
            .store
            .space
            .owner(id)
            .is_some_and(|owner| owner != self.id || level > 0)
        {
            return malformed("the page lies in an extent for other pages".into());
        }
        if level == 0 {
            found.leaf_pages += 1;
            found.ghosts += node.ghost_count() as u64;
            found.entries += (node.count() - node.ghost_count()) as u64;
            return Ok(());
        }
        found.inner_pages += 1;
        for slot in 0..node.count() {
            let child_low = node.key(slot);
            let child_high = if slot + 1 < node.count() {
                Some(node.key(slot + 1))
            } else {
                high.map(<[u8]>::to_vec)
            };
            self.check_node(
                node.child(slot),
                level - 1,
                &child_low,
                child_high.as_deref(),
                found,
            )?;
        }
        Ok(())
    }

    /// The pages of the tree that lie outside of its own extents, ascending: inner nodes, and leaves of a small tree.
    pub(crate) fn pages_in_shared_extents(&self) -> Result<Vec<PageId>> {
        let mut pages = vec![self.root];
        let mut level = vec![self.root];
        for _ in 0..self.root_level()? {
            let mut children = Vec::new();
            for parent in level {
                let page = self.store.pool.shared(parent)?;
                let page: &Page = &page;
                let node = Node(page);
                children.extend((0..node.count()).map(|slot| node.child(slot)));
            }
            pages.extend(
                children
                    .iter()
                    .copied()
                    .filter(|&page| self.store.space.owner(page) != Some(self.id)),
            );
            level = children;
        }
        pages.sort_unstable();
        Ok(pages)
    }
}
