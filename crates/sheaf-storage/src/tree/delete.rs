//! Delete, and the end of ghosts.
//!
//! A delete sets the entry's ghost bit and leaves its bytes where they are, so that undoing it needs no room. Until the
//! transaction that made it has ended, the ghost must stay. Afterwards it is garbage: readers of older snapshots find
//! in the leaf's past what was there, key and value ([`crate::transaction::versions`]).
//!
//! Garbage is purged by the transaction that made it, right after its commit; by the collector of versions; and by
//! inserts that find a leaf full.
//!
//! **Why a ghost may go while older snapshots are in use.** A purge is a change of the page under its exclusive latch,
//! and changes nothing in the leaf's past. A reader whose copy was made before has the ghost and skips it, or finds the
//! entry in the past under the ghost's key. A reader whose copy is made afterwards finds the same in the past, and
//! nothing on the page. Both validate the page's version after they have asked the past, so no reader mixes the one
//! with the other.
//!
//! A thread that holds the latch sees the writer's end, and a key that one transaction has changed is changed by no
//! other before that end. So a transaction that comes later to the key, under the latch, finds a key without an entry
//! and inserts one. Its version is newer than those of the deleted entry. Undoing that insert removes the entry and
//! that version. In the log, the purge follows the commit: that is where the transaction was seen to end. A crash that
//! loses the commit loses the purge, too.

use std::sync::Arc;

use crate::error::Result;
use crate::log::mini_transaction::MiniTransaction;
use crate::log::redo::RedoRecord;
use crate::node::Node;
use crate::pool::guard::ExclusiveGuard;
use crate::transaction::snapshot::StatusCell;
use crate::transaction::versions::Before;
use crate::transaction::{Change, Transaction};
use crate::tree::Tree;
use crate::tree::insert::Past;
use crate::tree::merge::is_underfull;

/// Ghosts up to so many are taken out one by one, which moves slots; more of them by writing the leaf anew, which moves
/// all that stays. Small transactions leave one or two behind.
const MAX_SINGLE_REMOVALS: usize = 8;

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
    /// Turns a live entry into a ghost; false if there is none. Waits for others that have changed the key or locked
    /// it.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), except `DuplicateKey`.
    pub fn delete(&self, transaction: &mut Transaction, key: &[u8]) -> Result<bool> {
        Ok(self.take(transaction, key)?.is_some())
    }

    /// As [`delete`](Self::delete); returns the value that was there.
    pub fn take(&self, transaction: &mut Transaction, key: &[u8]) -> Result<Option<Vec<u8>>> {
        transaction.begin_change(self)?;
        let Some((leaf, position)) = self.entry_to_change(transaction, key)? else {
            return Ok(None);
        };
        let value = Node(&leaf).value(position.slot).to_vec();
        transaction.push(self, Change::Delete, key, &value)?;
        let hide = RedoRecord::SetGhost {
            slot: position.slot,
            ghost: true,
        };
        let past = Past::Kept(transaction.status());
        if let Err(error) = self.change_leaf(leaf, &[hide], key, (Before::Value(&value), &[]), past)
        {
            transaction.pop();
            return Err(error);
        }
        self.counts.add_entries(-1);
        Ok(Some(value))
    }

    /// Takes an entry out for good, ghost or not: for the tree directory, or (with `writer`) to undo an insert, the
    /// newest change of the key. True if it was live.
    pub(crate) fn remove(&self, key: &[u8], writer: Option<&Arc<StatusCell>>) -> Result<bool> {
        let leaf = self.leaf_for_change(key)?;
        let node = Node(&leaf);
        let position = node.view().lower_bound(key);
        if !position.found {
            return Ok(false);
        }
        let was_live = !node.is_ghost(position.slot);
        let underfull = is_underfull(node);
        let remove = RedoRecord::RemoveEntry {
            slot: position.slot,
        };
        let past = writer.map_or(Past::Forgotten, Past::Restored);
        self.change_leaf(leaf, &[remove], key, (Before::Absent, &[]), past)?;
        self.counts.add_entries(-i64::from(was_live));
        if underfull && let Err(error) = self.merge(key, 0) {
            // The entry is gone, which is all that a rollback needs.
            tracing::warn!("an underfull leaf of tree {} stays: {error}", self.id);
        }
        Ok(was_live)
    }

    /// Makes a live entry a ghost again: undoes an insert that revived it. True if it was live.
    pub(crate) fn hide(&self, key: &[u8], writer: &Arc<StatusCell>) -> Result<bool> {
        let leaf = self.leaf_for_change(key)?;
        let node = Node(&leaf);
        let position = node.view().lower_bound(key);
        if !position.found || node.is_ghost(position.slot) {
            return Ok(false);
        }
        let hide = RedoRecord::SetGhost {
            slot: position.slot,
            ghost: true,
        };
        let nothing = (Before::Absent, &[][..]);
        self.change_leaf(leaf, &[hide], key, nothing, Past::Restored(writer))?;
        self.counts.add_entries(-1);
        Ok(true)
    }

    /// Purges the garbage of the leaf that covers `key`, and merges the leaf if little is left. Returns its fences.
    pub(crate) fn purge_leaf(&self, key: &[u8]) -> Result<Fences> {
        let leaf = self.leaf_for_change(key)?;
        let node = Node(&leaf);
        let fences = Fences::of(node);
        let page = leaf.page_id();
        let (used_bytes, ghosts) = (node.used_bytes(), node.ghost_count());
        // Either way the latch goes before the merge.
        let purged_to = if ghosts > 0 {
            self.purge_latched(leaf)?
        } else {
            drop(leaf);
            None
        };
        if purged_to.unwrap_or(used_bytes) < super::merge::UNDERFULL_BYTES {
            // Asked before the parent is latched; otherwise all that delete here would block others.
            if self.store.transactions.versions.have_large_past(&[page]) {
                self.note_visit(key)?;
            } else {
                self.merge(key, 0)?;
            }
        }
        Ok(fences)
    }

    /// The leaf that covers `key` is kept by its past: it is to be visited when some of that has gone.
    fn note_visit(&self, key: &[u8]) -> Result<()> {
        let leaf = self.leaf_for_change(key)?;
        let versions = &self.store.transactions.versions;
        versions.note_visit(leaf.page_id(), Node(&leaf).low_fence());
        Ok(())
    }

    /// Takes the ghosts that are not needed off a leaf. Returns how many bytes of the leaf are in use then; none if
    /// there is no garbage.
    pub(super) fn purge_latched(&self, leaf: ExclusiveGuard<'_>) -> Result<Option<usize>> {
        let ghosts = Node(&leaf).ghost_count();
        let garbage = self.garbage_slots(&leaf);
        if garbage.is_empty() {
            return Ok(None);
        }
        let is_clean = garbage.len() == ghosts;
        let (page_id, has_past) = (leaf.page_id(), leaf.has_versions());
        let forget_ghosts = || {
            if is_clean && has_past {
                self.store.transactions.versions.forget_ghosts(page_id);
            }
        };
        let mut change = MiniTransaction::begin(&self.store);
        let page = change.add(leaf);
        let node = Node(change.page(page));
        let garbage_bytes: usize = garbage.iter().map(|&slot| node.entry_bytes(slot)).sum();
        let left_bytes = node.used_bytes() - garbage_bytes;
        if is_clean && ghosts > MAX_SINGLE_REMOVALS {
            change.commit_with(&[(page, RedoRecord::PurgeGhosts)], forget_ghosts)?;
        } else {
            // In place. From the last slot on, so that the others stay where they are.
            let slots = garbage.into_iter().rev();
            let records: Vec<_> = slots
                .map(|slot| (page, RedoRecord::RemoveEntry { slot }))
                .collect();
            change.commit_with(&records, forget_ghosts)?;
        }
        Ok(Some(left_bytes))
    }

    /// The slots of ghosts that are garbage, ascending.
    fn garbage_slots(&self, leaf: &ExclusiveGuard<'_>) -> Vec<usize> {
        if self.store.keeps_ghosts() {
            return Vec::new();
        }
        let node = Node(leaf);
        let ghosts = (0..node.count()).filter(|&slot| node.is_ghost(slot));
        // Most leaves have none, and need not be gone through.
        let mut slots: Vec<_> = ghosts.take(node.ghost_count()).collect();
        let system = &self.store.transactions;
        let (versions, page) = (&system.versions, leaf.page_id());
        if !leaf.has_versions() {
            return slots;
        }
        versions.purge_grown(page, || system.live_snapshots());
        if versions.have_large_past(&[page]) {
            slots.retain(|&slot| !versions.may_have_chain(page, &node.key(slot)));
        } else if leaf.has_unsettled_versions() {
            versions.retain_ended(page, &mut slots, |slot| node.key(slot));
        }
        slots
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
