//! Insert and update: putting a value under a key.
//!
//! Both find the leaf, latch it exclusively, and change it in one mini-transaction of one page. Under the latch they
//! look for obstacles: a transaction that has changed the key and not committed, or a lock. If there is one, they
//! release the latch, wait, and look again. Otherwise they leave a version behind, for readers of older snapshots, and
//! change the entry. When the leaf is too full, its garbage ghosts are purged; when that does not help it is split, and
//! the search starts again.

use std::sync::Arc;

use crate::error::{Result, StorageError};
use crate::log::frame::Note;
use crate::log::mini_transaction::MiniTransaction;
use crate::log::redo::RedoRecord;
use crate::node::{Node, Position, common_prefix, common_suffix, entry_bytes};
use crate::page::TreeId;
use crate::pool::guard::ExclusiveGuard;
use crate::transaction::snapshot::StatusCell;
use crate::transaction::versions::{Before, NewestWriter};
use crate::transaction::{Change, Obstacle, Transaction};
use crate::tree::versioned_read::Settled;
use crate::tree::{MAX_KEY_BYTES, Tree, value_limit};

/// Outcome of one attempt to place an entry in a latched leaf.
pub(super) enum Placed {
    Done,
    /// The leaf was cleaned of ghosts; look again.
    Retry,
    /// The leaf has less than this many bytes free.
    NoRoom(usize),
}

/// What becomes of what an entry was before a change.
#[derive(Clone, Copy)]
pub(super) enum Past<'t> {
    /// It will not be asked for.
    Forgotten,
    /// It will not be asked for; the entry holds the present counts of this tree.
    Counted(TreeId),
    /// It is kept as a version that this transaction made.
    Kept(&'t Arc<StatusCell>),
    /// The change undoes the newest version, which this transaction made.
    Restored(&'t Arc<StatusCell>),
}

impl Tree {
    /// Adds an entry; [`StorageError::DuplicateKey`] if the key is live. A ghost of the key is revived. Waits for
    /// others that have changed the key, or have locked it or the range around it.
    ///
    /// # Errors
    /// Besides `DuplicateKey`: as [`Transaction::lock_row`]; `VersionStoreFull`, `TransactionTooLarge`.
    pub fn insert(&self, transaction: &mut Transaction, key: &[u8], value: &[u8]) -> Result<()> {
        check_entry(key, value)?;
        transaction.begin_change(self)?;
        loop {
            let leaf = self.next_leaf_for_change(transaction, key)?;
            let position = Node(&leaf).view().lower_bound(key);
            let is_live = position.found && !Node(&leaf).is_ghost(position.slot);
            let obstacle = self.obstacle(&leaf, transaction, key, true);
            match obstacle {
                Some(Obstacle::Changed | Obstacle::Spilled(_)) => {}
                // Whatever its lock says, the entry is there to stay.
                _ if is_live => {
                    drop(leaf);
                    if transaction.keep_found(self, key)? {
                        continue;
                    }
                    return Err(StorageError::DuplicateKey { tree: self.id });
                }
                _ => {}
            }
            if let Some(obstacle) = obstacle {
                self.overcome(leaf, transaction, key, true, &obstacle)?;
                continue;
            }
            let change = if position.found {
                Change::Revive
            } else {
                Change::Insert
            };
            transaction.push(self, change, key, &[])?;
            match self.place_noted(transaction, leaf, position, key, value, Before::Absent)? {
                Placed::Done => {
                    self.counts.add_entries(1);
                    return Ok(());
                }
                Placed::Retry => {}
                Placed::NoRoom(needed) => self.split(key, 0, needed, false)?,
            }
        }
    }

    /// As [`insert`](Self::insert), but no live key may share the first `prefix_length` bytes of `key`: for unique
    /// indexes, whose keys end with the primary key. What others have changed under the prefix and not committed is
    /// waited for.
    pub fn insert_unique(
        &self,
        transaction: &mut Transaction,
        key: &[u8],
        prefix_length: usize,
        value: &[u8],
    ) -> Result<()> {
        let prefix = &key[..prefix_length];
        loop {
            // Only from the check to the insert: later checks find the entry, committed or not.
            transaction.lock_prefix(self, prefix)?;
            let result = match self.taken_prefix(transaction.status(), prefix) {
                Ok(Settled::Absent) => self.insert(transaction, key, value),
                Ok(Settled::Found(entry)) => {
                    transaction.unlock_prefix(self, prefix);
                    if transaction.keep_found(self, &entry)? {
                        continue;
                    }
                    return Err(StorageError::DuplicateKey { tree: self.id });
                }
                Ok(Settled::Unknown(unsettled)) => {
                    // The transaction that is waited for may want to insert under the prefix next.
                    transaction.unlock_prefix(self, prefix);
                    transaction.wait_until_settled(&unsettled)?;
                    continue;
                }
                Err(error) => Err(error),
            };
            transaction.unlock_prefix(self, prefix);
            return result;
        }
    }

    /// Replaces the value of a live key; false if there is none. Waits as [`insert`](Self::insert) does.
    pub fn update(&self, transaction: &mut Transaction, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.replace(transaction, key, value)?.is_some())
    }

    /// As [`update`](Self::update); returns the value that was replaced.
    pub fn replace(
        &self,
        transaction: &mut Transaction,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        check_entry(key, value)?;
        transaction.begin_change(self)?;
        loop {
            let Some((leaf, position)) = self.entry_to_change(transaction, key)? else {
                return Ok(None);
            };
            let old = Node(&leaf).value(position.slot).to_vec();
            transaction.push(self, Change::Update, key, &old)?;
            let before = Before::Value(&old);
            match self.place_noted(transaction, leaf, position, key, value, before)? {
                Placed::Done => return Ok(Some(old)),
                Placed::Retry => {}
                Placed::NoRoom(needed) => self.split(key, 0, needed, false)?,
            }
        }
    }

    /// Makes `key` live with `value`, whatever was there, without a transaction: for the tree directory, whose entries
    /// hold the counts of trees. True if it was not live before.
    pub(crate) fn put_counts(&self, key: &[u8], value: &[u8], counted: TreeId) -> Result<bool> {
        self.put_with(key, value, Past::Counted(counted))
    }

    /// Makes `key` live with `value`, as it was before the newest change, which was the transaction's. True if it was
    /// not live.
    pub(crate) fn restore(
        &self,
        key: &[u8],
        value: &[u8],
        writer: &Arc<StatusCell>,
    ) -> Result<bool> {
        self.put_with(key, value, Past::Restored(writer))
    }

    fn put_with(&self, key: &[u8], value: &[u8], past: Past<'_>) -> Result<bool> {
        let for_rollback = matches!(past, Past::Restored(_));
        loop {
            let leaf = self.leaf_for_change(key)?;
            let position = Node(&leaf).view().lower_bound(key);
            let is_new = !position.found || Node(&leaf).is_ghost(position.slot);
            match self.place(leaf, position, key, value, Before::Absent, past)? {
                Placed::Done => {
                    self.counts.add_entries(i64::from(is_new));
                    return Ok(is_new);
                }
                Placed::Retry => {}
                Placed::NoRoom(needed) => self.split(key, 0, needed, for_rollback)?,
            }
        }
    }

    /// The leaf that covers `key`, latched exclusively.
    pub(super) fn leaf_for_change(&self, key: &[u8]) -> Result<ExclusiveGuard<'_>> {
        match self.find_exclusive(key, 0)? {
            Some(leaf) => Ok(leaf),
            None => Err(self
                .store
                .malformed(self.id, self.root, "the tree has no leaves")),
        }
    }

    /// As [`leaf_for_change`](Self::leaf_for_change), for a transaction that has perhaps visited it last.
    pub(super) fn next_leaf_for_change(
        &self,
        transaction: &mut Transaction,
        key: &[u8],
    ) -> Result<ExclusiveGuard<'_>> {
        let hints = transaction.leaf_hints();
        let known = hints.take(self, key);
        let leaf = match known.and_then(|guard| guard.upgrade().ok()) {
            Some(leaf) => leaf,
            None => self.leaf_for_change(key)?,
        };
        hints.note(self.id, leaf.page_id(), leaf.next_version());
        Ok(leaf)
    }

    /// What keeps the transaction from changing `key`, which belongs on this leaf.
    #[inline]
    pub(super) fn obstacle(
        &self,
        leaf: &ExclusiveGuard<'_>,
        transaction: &Transaction,
        key: &[u8],
        is_insert: bool,
    ) -> Option<Obstacle> {
        let (system, own) = (&self.store.transactions, transaction.status());
        let page = leaf.page_id();
        let mut is_perhaps_own = false;
        if leaf.has_unsettled_versions() {
            match system.versions.newest_writer(page, key, own) {
                // Transactions that lock the row wait for this one.
                NewestWriter::Own => return None,
                NewestWriter::Other => return Some(Obstacle::Changed),
                NewestWriter::Unknown => return Some(Obstacle::Spilled(page)),
                NewestWriter::OwnOrEnded => is_perhaps_own = true,
                NewestWriter::Ended => {}
            }
        }
        let wanted = transaction.wanted_change(self.id, key, is_insert);
        let blocker = system.row_locks.blocker(own, wanted)?;
        Some(if is_perhaps_own {
            Obstacle::Spilled(page)
        } else {
            Obstacle::Locked(blocker)
        })
    }

    /// Releases the leaf, and waits until the obstacle there may be gone.
    fn overcome(
        &self,
        leaf: ExclusiveGuard<'_>,
        transaction: &mut Transaction,
        key: &[u8],
        is_insert: bool,
        obstacle: &Obstacle,
    ) -> Result<()> {
        drop(leaf);
        let wanted = transaction.wanted_change(self.id, key, is_insert);
        transaction.overcome(self, wanted, obstacle)
    }

    /// The live entry of `key`, where no other transaction keeps this one from changing it: its leaf, latched, and its
    /// place there. Waits for those that do. None if there is no such entry.
    #[inline]
    pub(super) fn entry_to_change(
        &self,
        transaction: &mut Transaction,
        key: &[u8],
    ) -> Result<Option<(ExclusiveGuard<'_>, Position)>> {
        loop {
            let leaf = self.leaf_for_change(key)?;
            if let Some(obstacle) = self.obstacle(&leaf, transaction, key, false) {
                self.overcome(leaf, transaction, key, false, &obstacle)?;
                continue;
            }
            let node = Node(&leaf);
            let position = node.view().lower_bound(key);
            let is_live = position.found && !node.is_ghost(position.slot);
            return Ok(is_live.then_some((leaf, position)));
        }
    }

    /// As [`place`](Self::place), for a change that the transaction has noted last, and forgets again unless it is
    /// made.
    pub(super) fn place_noted(
        &self,
        transaction: &mut Transaction,
        leaf: ExclusiveGuard<'_>,
        position: Position,
        key: &[u8],
        value: &[u8],
        before: Before<'_>,
    ) -> Result<Placed> {
        let past = Past::Kept(transaction.status());
        let placed = self.place(leaf, position, key, value, before, past);
        if !matches!(placed, Ok(Placed::Done)) {
            transaction.pop();
        }
        placed
    }

    /// Makes the key live with the value, at its position in the leaf, if there is room.
    fn place(
        &self,
        leaf: ExclusiveGuard<'_>,
        position: Position,
        key: &[u8],
        value: &[u8],
        before: Before<'_>,
        past: Past<'_>,
    ) -> Result<Placed> {
        let Position { slot, found } = position;
        let node = Node(&leaf);
        let prefix = node.prefix().len();
        let needed = if found {
            value.len().saturating_sub(node.value(slot).len())
        } else {
            entry_bytes(key.len() - prefix, value.len())
        };
        let (free, ghosts) = (node.free_bytes(), node.ghost_count());
        let revive = found && node.is_ghost(slot);
        if needed > free {
            if ghosts > 0 && self.purge_latched(leaf)?.is_some() {
                return Ok(Placed::Retry);
            }
            return Ok(Placed::NoRoom(needed));
        }
        let set_value = match found && !revive {
            true => replacement(slot, node.value(slot), value),
            false => RedoRecord::SetValue { slot, value },
        };
        let unhide = RedoRecord::SetGhost { slot, ghost: false };
        let insert = RedoRecord::InsertEntry {
            slot,
            suffix: &key[prefix..],
            value,
        };
        let records: &[RedoRecord<'_>] = match (found, revive) {
            (true, true) => &[set_value, unhide],
            (true, false) => &[set_value],
            (false, _) => &[insert],
        };
        self.change_leaf(leaf, records, key, (before, value), past)?;
        Ok(Placed::Done)
    }

    /// Changes an entry by these records, and its past with it. `after`: the new value; empty if there is none.
    pub(super) fn change_leaf(
        &self,
        mut leaf: ExclusiveGuard<'_>,
        records: &[RedoRecord<'_>],
        key: &[u8],
        (before, after): (Before<'_>, &[u8]),
        past: Past<'_>,
    ) -> Result<()> {
        let system = &self.store.transactions;
        let page_id = leaf.page_id();
        if let Past::Kept(_) = past {
            if leaf.has_versions() {
                let versions = &system.versions;
                versions.purge_grown(page_id, || system.recent_snapshots());
            }
            leaf.note_versions(true);
        }
        let makes_ghost = matches!(records, [RedoRecord::SetGhost { ghost: true, .. }]);
        let note = self.note(records, key, (before, after), past);
        let mut change = MiniTransaction::begin(&self.store);
        let page = change.add(leaf);
        let change_past = || match past {
            Past::Forgotten | Past::Counted(_) => {}
            Past::Kept(writer) => {
                let versions = &system.versions;
                versions.push(page_id, self.id, key, writer, before, makes_ghost);
            }
            Past::Restored(writer) => system.versions.pop(page_id, key, writer, makes_ghost),
        };
        match *records {
            [record] => change.commit_noted(note, &[(page, record)], change_past)?,
            [first, second] => {
                change.commit_noted(note, &[(page, first), (page, second)], change_past)?
            }
            _ => unreachable!("an entry changes by one record or two"),
        };
        Ok(())
    }
}

impl Tree {
    /// What the log is told about a change of an entry.
    fn note<'t>(
        &self,
        records: &[RedoRecord<'_>],
        key: &'t [u8],
        (before, after): (Before<'t>, &'t [u8]),
        past: Past<'_>,
    ) -> Note<'t> {
        match past {
            Past::Forgotten => Note::None,
            Past::Counted(tree) => Note::Counts { tree },
            Past::Restored(writer) => Note::Compensation {
                transaction: writer.id(),
            },
            Past::Kept(writer) => {
                let value = match before {
                    Before::Value(value) => value,
                    Before::Absent => &[],
                };
                let (change, start, before) = match *records {
                    [RedoRecord::InsertEntry { .. }] => (Change::Insert, 0, value),
                    [RedoRecord::SetGhost { .. }] => (Change::Delete, 0, value),
                    [RedoRecord::ChangeValue { start, bytes, .. }] => {
                        // What stays is found on the page when the change is undone.
                        match value.get(start..start + bytes.len()) {
                            Some(part) => (Change::UpdatePart, start, part),
                            None => (Change::Update, 0, value),
                        }
                    }
                    [RedoRecord::SetValue { .. }] => (Change::Update, 0, value),
                    _ => (Change::Revive, 0, value),
                };
                if self.is_followed() {
                    let (change, before) = match change {
                        Change::UpdatePart => (Change::Update, value),
                        change => (change, before),
                    };
                    return Note::Row {
                        transaction: writer.id(),
                        tree: self.id,
                        change,
                        key,
                        before,
                        after,
                    };
                }
                Note::Change {
                    transaction: writer.id(),
                    tree: self.id,
                    change,
                    key,
                    before,
                    start,
                }
            }
        }
    }
}

/// What makes the value of an entry another one. Most of a row stays when some of its columns are set, and needs not be
/// in the log once more.
fn replacement<'v>(slot: usize, old: &[u8], new: &'v [u8]) -> RedoRecord<'v> {
    if old.len() != new.len() {
        return RedoRecord::SetValue { slot, value: new };
    }
    let start = common_prefix(old, new);
    let end = new.len() - common_suffix(&old[start..], &new[start..]);
    RedoRecord::ChangeValue {
        slot,
        start,
        bytes: &new[start..end],
    }
}

/// Whether an entry is small enough for a page.
pub(super) fn check_entry(key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() > MAX_KEY_BYTES {
        return Err(StorageError::KeyTooLarge {
            bytes: key.len(),
            limit: MAX_KEY_BYTES,
        });
    }
    let limit = value_limit(key.len());
    if value.len() > limit {
        return Err(StorageError::EntryTooLarge {
            bytes: key.len() + value.len(),
            limit: key.len() + limit,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::redo;
    use crate::node::NodeMut;
    use crate::page::Page;

    #[test]
    fn a_value_is_replaced_by_what_differs() {
        let old: Vec<u8> = (0..40).collect();
        let replaced = |new: &[u8]| {
            let mut page = Page::zeroed();
            let mut node = NodeMut(&mut page);
            node.format(0, b"", None);
            node.push(b"key", &old);
            let record = replacement(0, &old, new);
            redo::apply(&mut page, &record);
            assert_eq!(NodeMut(&mut page).node().value(0), new);
            match record {
                RedoRecord::ChangeValue { bytes, .. } => bytes.len(),
                _ => new.len(),
            }
        };
        for start in 0..=old.len() {
            for end in start..=old.len() {
                let mut new = old.clone();
                new[start..end].iter_mut().for_each(|byte| *byte ^= 0x55);
                assert_eq!(replaced(&new), end - start, "{start}..{end}");
            }
        }
        assert_eq!(replaced(&old[1..]), old.len() - 1);
        assert_eq!(replaced(&[7; 50]), 50);
    }
}
