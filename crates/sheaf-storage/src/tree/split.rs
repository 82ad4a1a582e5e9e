//! Split: making room in a full node.
//!
//! The upper entries of the node move to a new right sibling, and the parent gets a separator and the new child. All
//! three pages (and the extent map) change in one mini-transaction, and the entries' versions move with the entries;
//! the parent is latched before the child. If the parent itself has no room for the separator, all latches are
//! released, the parent is split first, and the split starts again. So latches are only ever taken downwards.
//!
//! A root never moves. When it splits, both halves move to new pages and the root becomes their parent: the only way
//! in which a tree grows higher.
//!
//! Where to cut is decided by bytes and by the length of the separator ([`split_position`]). When keys arrive in
//! ascending order, the rightmost leaf is not halved: it stays full and the new leaf begins (almost) empty. A leaf of a
//! single large entry is cut beside it: the key that found no room there gets a leaf of its own.

use crate::error::{Result, StorageError};
use crate::log::mini_transaction::MiniTransaction;
use crate::log::redo::RedoRecord;
use crate::node::{MAX_HEIGHT, Node, NodeMut, PageImage, entry_bytes, separator, split_position};
use crate::page::PageId;
use crate::space::extent::{PageRequest, SMALL_TREE_LEAVES};
use crate::tree::Tree;
use crate::tree::search::new_page_image;

/// An inner node with so few children has separators as long as keys may be. Where it is cut decides how low the tree
/// stays.
const FEW_CHILDREN: usize = 3;

/// Where a node is cut: the first slot that moves right, and the separator of both halves.
struct Cut {
    slot: usize,
    separator: Vec<u8>,
}

impl Cut {
    fn of(node: Node<'_>, key: &[u8]) -> Cut {
        let count = node.count();
        if node.is_leaf() && count == 1 {
            let only = node.key(0);
            return if key > only.as_slice() {
                Cut {
                    slot: 1,
                    separator: separator(&only, key).to_vec(),
                }
            } else {
                Cut {
                    slot: 0,
                    separator: separator(key, &only).to_vec(),
                }
            };
        }
        if node.is_leaf() && node.high_fence().is_none() && count > 1 {
            let last = node.key(count - 1);
            if key > last.as_slice() {
                // The full leaf gets the separator as its high fence. If it has no room for that, its last entry goes.
                let after_last = separator(&last, key);
                return if after_last.len() <= node.free_bytes() {
                    Cut {
                        slot: count,
                        separator: after_last.to_vec(),
                    }
                } else {
                    let before_last = separator(&node.key(count - 2), &last).to_vec();
                    Cut {
                        slot: count - 1,
                        separator: before_last,
                    }
                };
            }
        }
        if !node.is_leaf() && count <= FEW_CHILDREN {
            // Another child comes behind the one that covers the key. Both halves get two children if they can.
            let slot = (node.view().child_slot(key) + 1).min(count - 1);
            return Cut {
                slot,
                separator: node.key(slot),
            };
        }
        let (slot, separator) = split_position(node);
        Cut { slot, separator }
    }

    /// The upper half, as a page of its own.
    fn upper(&self, node: Node<'_>) -> Box<PageImage> {
        let mut image = new_page_image();
        let mut upper = NodeMut(&mut image);
        upper.format(node.level(), &self.separator, node.high_fence());
        upper.push_from(node, self.slot..node.count());
        image
    }

    /// The lower half, as a page of its own.
    fn lower(&self, node: Node<'_>) -> Box<PageImage> {
        let mut image = new_page_image();
        let mut lower = NodeMut(&mut image);
        lower.format(node.level(), node.low_fence(), Some(&self.separator));
        lower.push_from(node, 0..self.slot);
        image
    }
}

impl Tree {
    /// Splits the node of `level` that covers `key`, unless it has `needed` bytes free by now.
    pub(super) fn split(
        &self,
        key: &[u8],
        level: u8,
        needed: usize,
        for_rollback: bool,
    ) -> Result<()> {
        loop {
            let Some(parent) = self.find_exclusive(key, level + 1)? else {
                if self.split_root(key, level, needed, for_rollback)? {
                    return Ok(());
                }
                continue;
            };
            let mut change = MiniTransaction::begin(&self.store);
            let parent = change.add(parent);
            let parent_node = Node(change.page(parent));
            let (child_slot, parent_prefix) = (
                parent_node.view().child_slot(key),
                parent_node.prefix().len(),
            );
            let parent_free = parent_node.free_bytes();
            let child_id = parent_node.child(child_slot);
            let child = change.latch(child_id)?;
            let node = Node(change.page(child));
            if node.free_bytes() >= needed {
                return Ok(());
            }
            let cut = Cut::of(node, key);
            let suffix = &cut.separator[parent_prefix..];
            let parent_needs = entry_bytes(suffix.len(), size_of::<u64>());
            if parent_free < parent_needs {
                drop(change);
                self.split(key, level + 1, parent_needs, for_rollback)?;
                continue;
            }
            let image = cut.upper(node);
            let upper = change.allocate(self.page_request(level, Some(child_id), for_rollback))?;
            let upper_page = change.page_id(upper);
            let upper_id = upper_page.0.to_le_bytes();
            let has_versions = change.has_versions(child);
            let low_fence = Node(change.page(child)).low_fence().to_vec();
            change.note_versions(upper, has_versions);
            let records = [
                (
                    upper,
                    RedoRecord::WriteNode {
                        tree: self.id,
                        image: &image,
                    },
                ),
                (
                    child,
                    RedoRecord::TruncateNode {
                        count: cut.slot,
                        high_fence: &cut.separator,
                    },
                ),
                (
                    parent,
                    RedoRecord::InsertEntry {
                        slot: child_slot + 1,
                        suffix,
                        value: &upper_id,
                    },
                ),
            ];
            change.commit_with(&records, || {
                if has_versions {
                    let versions = &self.store.transactions.versions;
                    versions.split(child_id, upper_page, &cut.separator, &low_fence);
                }
            })?;
            self.counts.add_pages(level, 1);
            return Ok(());
        }
    }

    /// Splits the root, which was at `level`. False if it has risen meanwhile.
    fn split_root(&self, key: &[u8], level: u8, needed: usize, for_rollback: bool) -> Result<bool> {
        let mut change = MiniTransaction::begin(&self.store);
        let root = change.latch(self.root)?;
        let node = Node(change.page(root));
        if node.level() != level {
            return Ok(false);
        }
        if node.free_bytes() >= needed {
            return Ok(true);
        }
        if usize::from(level) + 1 >= MAX_HEIGHT && !for_rollback {
            return Err(StorageError::TreeTooHigh { tree: self.id });
        }
        let cut = Cut::of(node, key);
        let (lower_image, upper_image) = (cut.lower(node), cut.upper(node));
        let lower = change.allocate(self.page_request(level, None, for_rollback))?;
        let lower_id = change.page_id(lower);
        let upper = change.allocate(self.page_request(level, Some(lower_id), for_rollback))?;
        let upper_id = change.page_id(upper);
        let mut root_image = new_page_image();
        let mut new_root = NodeMut(&mut root_image);
        new_root.format(level + 1, &[], None);
        new_root.push(&[], &lower_id.0.to_le_bytes());
        new_root.push(&cut.separator, &upper_id.0.to_le_bytes());
        let has_versions = change.has_versions(root);
        change.note_versions(lower, has_versions);
        change.note_versions(upper, has_versions);
        // The root keeps its bit, which says nothing on an inner node: should the commit fail, it is still a leaf.
        let records = [
            (
                lower,
                RedoRecord::WriteNode {
                    tree: self.id,
                    image: &lower_image,
                },
            ),
            (
                upper,
                RedoRecord::WriteNode {
                    tree: self.id,
                    image: &upper_image,
                },
            ),
            (
                root,
                RedoRecord::WriteNode {
                    tree: self.id,
                    image: &root_image,
                },
            ),
        ];
        change.commit_with(&records, || {
            if has_versions {
                let versions = &self.store.transactions.versions;
                versions.split(self.root, upper_id, &cut.separator, &[]);
                versions.move_all(self.root, lower_id);
            }
        })?;
        // The root page changed its level: one page of the old level became two, and one of the new level came.
        self.counts.add_pages(level, 1);
        self.counts.add_pages(level + 1, 1);
        self.counts.set_height(level + 2);
        Ok(true)
    }

    fn page_request(&self, level: u8, near: Option<PageId>, for_rollback: bool) -> PageRequest {
        let own_extent = level == 0 && self.counts.leaf_pages() >= SMALL_TREE_LEAVES;
        PageRequest {
            tree: self.id,
            own_extent,
            near: near.filter(|_| level == 0),
            for_rollback,
        }
    }
}
