//! Merge: joining nodes that hold little, so that a tree that shrinks frees pages.
//!
//! A node that is less than a quarter full is joined with a sibling under the same parent, if both together leave some
//! room for inserts. An empty node is joined whenever it can be. The right node's entries move to the left node, and
//! the right node's separator leaves the parent. Parent, left, right and extent map change in one mini-transaction,
//! latched in this order; versions move with their entries. Leaves whose versions are many together stay as they are
//! until some versions of either leaf have gone. A parent that became underfull itself is merged afterwards, in a
//! mini-transaction of its own. A root with a single child takes over the child's contents: the only way in which a
//! tree becomes lower.

use crate::error::Result;
use crate::log::mini_transaction::MiniTransaction;
use crate::log::redo::RedoRecord;
use crate::node::{NODE_CAPACITY, Node, NodeMut, common_prefix};
use crate::tree::Tree;
use crate::tree::search::{Target, new_page_image};

/// A node with fewer used bytes than this looks for a sibling to merge with.
pub(super) const UNDERFULL_BYTES: usize = NODE_CAPACITY / 4;

/// Two nodes merge only if the result is not fuller than this, or the next insert would split it again.
const MERGED_BYTES: usize = NODE_CAPACITY * 3 / 4;

/// Whether a node is so empty that it should be merged.
pub(super) fn is_underfull(node: Node<'_>) -> bool {
    node.used_bytes() < UNDERFULL_BYTES
}

/// Bytes that a node with the entries of two neighbours would use.
fn merged_bytes(left: Node<'_>, right: Node<'_>) -> usize {
    let high = right.high_fence();
    let prefix = high.map_or(0, |high| common_prefix(left.low_fence(), high));
    let fences = left.low_fence().len() + high.map_or(0, <[u8]>::len);
    let entries: usize = [left, right]
        .into_iter()
        .map(|node| {
            let longer = node.prefix().len() - prefix;
            (0..node.count())
                .map(|slot| node.entry_bytes(slot) + longer)
                .sum::<usize>()
        })
        .sum();
    // The first separator of an inner node was stored as nothing and is the low fence from now on.
    fences
        + entries
        + if right.is_leaf() {
            0
        } else {
            right.low_fence().len()
        }
}

/// Which of the two neighbours a node is joined with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sibling {
    Left,
    Right,
}

impl Tree {
    /// Merges the node of `level` that covers `key` with a sibling, if it is underfull and fits one.
    pub(super) fn merge(&self, key: &[u8], level: u8) -> Result<()> {
        if self.merge_with(Sibling::Right, key, level)?
            || self.merge_with(Sibling::Left, key, level)?
        {
            // The parent lost a child.
            self.merge(key, level + 1)?;
        }
        self.lower_root()
    }

    /// Merges the node of `level` that covers `key` with this sibling. False if they stay as they are.
    fn merge_with(&self, sibling: Sibling, key: &[u8], level: u8) -> Result<bool> {
        let Some(parent_guard) = self.find_exclusive(key, level + 1)? else {
            return Ok(false);
        };
        let mut change = MiniTransaction::begin(&self.store);
        let parent = change.add(parent_guard);
        let node = Node(change.page(parent));
        let slot = node.view().child_slot(key);
        let left_slot = match sibling {
            Sibling::Right => slot,
            Sibling::Left if slot > 0 => slot - 1,
            Sibling::Left => return Ok(false),
        };
        if left_slot + 1 >= node.count() {
            return Ok(false);
        }
        let (left_id, right_id) = (node.child(left_slot), node.child(left_slot + 1));
        let left = change.latch(left_id)?;
        let right = change.latch(right_id)?;
        let (left_node, right_node) = (Node(change.page(left)), Node(change.page(right)));
        let candidate = if left_slot == slot {
            left_node
        } else {
            right_node
        };
        let limit = if candidate.count() == 0 {
            NODE_CAPACITY
        } else {
            MERGED_BYTES
        };
        if !is_underfull(candidate) || merged_bytes(left_node, right_node) > limit {
            return Ok(false);
        }
        let versions = &self.store.transactions.versions;
        if versions.have_large_past(&[left_id, right_id]) {
            let (page, sibling, low) = match left_slot == slot {
                true => (left_id, right_id, left_node.low_fence()),
                false => (right_id, left_id, right_node.low_fence()),
            };
            // Each as far as it has a past.
            versions.note_visit(page, low);
            versions.note_unmerged(sibling, low);
            return Ok(false);
        }
        let mut image = new_page_image();
        let mut merged = NodeMut(&mut image);
        merged.format(level, left_node.low_fence(), right_node.high_fence());
        merged.push_from(left_node, 0..left_node.count());
        merged.push_from(right_node, 0..right_node.count());
        change.free(right_id);
        let right_has_versions = change.has_versions(right);
        if right_has_versions {
            change.note_versions(left, true);
        }
        let records = [
            (
                left,
                RedoRecord::WriteNode {
                    tree: self.id,
                    image: &image,
                },
            ),
            (
                parent,
                RedoRecord::RemoveEntry {
                    slot: left_slot + 1,
                },
            ),
        ];
        change.commit_with(&records, || {
            if right_has_versions {
                versions.move_all(right_id, left_id);
            }
        })?;
        self.counts.add_pages(level, -1);
        Ok(true)
    }

    /// While the root has a single child: copies the child up and frees it.
    fn lower_root(&self) -> Result<()> {
        // Looked at without a latch first: this is asked often, and every descent passes through the root.
        while self.root_has_single_child()? {
            let mut change = MiniTransaction::begin(&self.store);
            let root = change.latch(self.root)?;
            let node = Node(change.page(root));
            if node.is_leaf() || node.count() != 1 {
                return Ok(());
            }
            let (level, child_id) = (node.level(), node.child(0));
            let child = change.latch(child_id)?;
            let image = *Node(change.page(child)).0;
            change.free(child_id);
            let has_versions = change.has_versions(child);
            change.note_versions(root, has_versions);
            let records = [(
                root,
                RedoRecord::WriteNode {
                    tree: self.id,
                    image: &image,
                },
            )];
            change.commit_with(&records, || {
                if has_versions {
                    let versions = &self.store.transactions.versions;
                    versions.move_all(child_id, self.root);
                }
            })?;
            self.counts.add_pages(level, -1);
            self.counts.set_height(level);
        }
        Ok(())
    }

    fn root_has_single_child(&self) -> Result<bool> {
        self.retry(|failures| {
            let level = self.root_level()?;
            let Some(root) = self.find(Target::Last, level, failures)? else {
                return Ok(false);
            };
            let single = level > 0 && root.view().count() == 1;
            root.validate()?;
            Ok(single && root.guard().page_id() == self.root)
        })
    }
}
