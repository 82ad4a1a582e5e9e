//! Delete, and the end of ghosts.
//!
//! A delete sets the entry's ghost bit and leaves its bytes where they are, so that taking it back needs no room.
//! While the statement that made a ghost is unfinished, the ghost must stay; afterwards it is garbage. A tree counts
//! the ghosts of unfinished statements, and a ghost may be purged while that count is zero: a statement counts a
//! ghost while it holds the leaf's latch, so whoever latches the leaf later and sees the ghost, sees the count too.
//!
//! Garbage is purged by the statement that made it, right after it ended, and by inserts that find a leaf full.

use crate::error::Result;
use crate::mini_transaction::MiniTransaction;
use crate::redo::RedoRecord;
use crate::sync::atomic::Ordering;
use crate::transaction::{Change, Transaction};
use crate::tree::Tree;
use crate::tree::merge::is_underfull;
use crate::tree::node::Node;

/// The fences of a leaf: `low <= key < high`.
pub(crate) struct Fences {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
}

impl Fences {
    pub(crate) fn of(node: Node<'_>) -> Fences {
        Fences {
            low: node.low_fence().to_vec(),
            high: node.high_fence().map(<[u8]>::to_vec),
        }
    }

    pub(crate) fn cover(&self, key: &[u8]) -> bool {
        self.low.as_slice() <= key && self.high.as_ref().is_none_or(|high| key < high.as_slice())
    }
}

impl Tree {
    /// Turns a live entry into a ghost; false if there is none.
    pub fn delete(&self, transaction: &mut Transaction, key: &[u8]) -> Result<bool> {
        transaction.begin_change(self)?;
        let leaf = self.leaf_for_change(key)?;
        let node = Node(&leaf);
        let position = node.view().lower_bound(key);
        if !position.found || node.is_ghost(position.slot) {
            return Ok(false);
        }
        transaction.push(self, Change::Delete, key, node.value(position.slot))?;
        self.unresolved_ghosts.fetch_add(1, Ordering::Relaxed);
        let mut change = MiniTransaction::begin(&self.store);
        let page = change.add(leaf);
        let result = change.commit(&[(
            page,
            RedoRecord::SetGhost {
                slot: position.slot,
                ghost: true,
            },
        )]);
        if let Err(error) = result {
            self.unresolved_ghosts.fetch_sub(1, Ordering::Relaxed);
            transaction.pop();
            return Err(error);
        }
        self.counts.add_entries(-1);
        Ok(true)
    }

    /// Whether no ghost of the tree belongs to an unfinished statement.
    pub(super) fn ghosts_are_garbage(&self) -> bool {
        self.unresolved_ghosts.load(Ordering::Relaxed) == 0
    }

    /// A statement that made this many ghosts has ended.
    pub(crate) fn resolve_ghosts(&self, ghosts: u64) {
        self.unresolved_ghosts.fetch_sub(ghosts, Ordering::Relaxed);
    }

    /// Takes an entry out for good, ghost or not, without undo. True if it was live.
    pub(crate) fn remove(&self, key: &[u8]) -> Result<bool> {
        let leaf = self.leaf_for_change(key)?;
        let node = Node(&leaf);
        let position = node.view().lower_bound(key);
        if !position.found {
            return Ok(false);
        }
        let was_live = !node.is_ghost(position.slot);
        let underfull = is_underfull(node);
        let mut change = MiniTransaction::begin(&self.store);
        let page = change.add(leaf);
        change.commit(&[(
            page,
            RedoRecord::RemoveEntry {
                slot: position.slot,
            },
        )])?;
        self.counts.add_entries(-i64::from(was_live));
        if underfull {
            self.merge(key, 0)?;
        }
        Ok(was_live)
    }

    /// Makes a live entry a ghost without undo: for the rollback of an insert that revived it. True if it was live.
    pub(crate) fn hide(&self, key: &[u8]) -> Result<bool> {
        let leaf = self.leaf_for_change(key)?;
        let node = Node(&leaf);
        let position = node.view().lower_bound(key);
        if !position.found || node.is_ghost(position.slot) {
            return Ok(false);
        }
        let mut change = MiniTransaction::begin(&self.store);
        let page = change.add(leaf);
        change.commit(&[(
            page,
            RedoRecord::SetGhost {
                slot: position.slot,
                ghost: true,
            },
        )])?;
        self.counts.add_entries(-1);
        Ok(true)
    }

    /// Purges the garbage of the leaf that covers `key`, and merges the leaf if little is left. Returns its fences.
    pub(crate) fn purge_leaf(&self, key: &[u8]) -> Result<Fences> {
        let leaf = self.leaf_for_change(key)?;
        let node = Node(&leaf);
        let fences = Fences::of(node);
        if node.ghost_count() == 0 || !self.ghosts_are_garbage() {
            return Ok(fences);
        }
        let mut change = MiniTransaction::begin(&self.store);
        let page = change.add(leaf);
        let live_bytes: usize = {
            let node = Node(change.page(page));
            let ghosts = (0..node.count()).filter(|&slot| node.is_ghost(slot));
            node.used_bytes() - ghosts.map(|slot| node.entry_bytes(slot)).sum::<usize>()
        };
        change.commit(&[(page, RedoRecord::PurgeGhosts)])?;
        if live_bytes < super::merge::UNDERFULL_BYTES {
            self.merge(key, 0)?;
        }
        Ok(fences)
    }

    /// Purges the garbage of the whole tree, leaf by leaf.
    pub fn purge(&self) -> Result<()> {
        let mut key = Vec::new();
        loop {
            match self.purge_leaf(&key)?.high {
                Some(high) => key = high,
                None => return Ok(()),
            }
        }
    }
}
