//! Insert and update: putting a value under a key.
//!
//! Both find the leaf, latch it exclusively, and change it in one mini-transaction of one page. When the leaf is too
//! full, its garbage ghosts are purged; when that does not help it is split, and the search starts again.

use crate::error::{Result, StorageError};
use crate::guard::ExclusiveGuard;
use crate::mini_transaction::MiniTransaction;
use crate::redo::RedoRecord;
use crate::transaction::{Change, Transaction};
use crate::tree::node::{Node, Position, entry_bytes};
use crate::tree::{MAX_ENTRY_BYTES, MAX_KEY_BYTES, Tree};

/// Outcome of one attempt to place an entry in a latched leaf.
pub(super) enum Placed {
    Done,
    /// The leaf was cleaned of ghosts; look again.
    Retry,
    /// The leaf has less than this many bytes free.
    NoRoom(usize),
}

impl Tree {
    /// Adds an entry; [`StorageError::DuplicateKey`] if the key is live. A ghost of the key is revived.
    pub fn insert(&self, transaction: &mut Transaction, key: &[u8], value: &[u8]) -> Result<()> {
        check_entry(key, value)?;
        transaction.begin_change(self)?;
        loop {
            let leaf = self.leaf_for_change(key)?;
            let position = Node(&leaf).view().lower_bound(key);
            if position.found && !Node(&leaf).is_ghost(position.slot) {
                return Err(StorageError::DuplicateKey { tree: self.id });
            }
            let change = if position.found {
                Change::Revive
            } else {
                Change::Insert
            };
            transaction.push(self, change, key, &[])?;
            match self.place_noted(transaction, leaf, position, key, value)? {
                Placed::Done => {
                    self.counts.add_entries(1);
                    return Ok(());
                }
                Placed::Retry => {}
                Placed::NoRoom(needed) => self.split(key, 0, needed, false)?,
            }
        }
    }

    /// Replaces the value of a live key; false if there is none.
    pub fn update(&self, transaction: &mut Transaction, key: &[u8], value: &[u8]) -> Result<bool> {
        check_entry(key, value)?;
        transaction.begin_change(self)?;
        loop {
            let leaf = self.leaf_for_change(key)?;
            let node = Node(&leaf);
            let position = node.view().lower_bound(key);
            if !position.found || node.is_ghost(position.slot) {
                return Ok(false);
            }
            transaction.push(self, Change::Update, key, node.value(position.slot))?;
            match self.place_noted(transaction, leaf, position, key, value)? {
                Placed::Done => return Ok(true),
                Placed::Retry => {}
                Placed::NoRoom(needed) => self.split(key, 0, needed, false)?,
            }
        }
    }

    /// Makes `key` live with `value`, whatever was there, without undo: for rollback and for the tree directory. True
    /// if it was not live before.
    pub(crate) fn put(&self, key: &[u8], value: &[u8], for_rollback: bool) -> Result<bool> {
        loop {
            let leaf = self.leaf_for_change(key)?;
            let position = Node(&leaf).view().lower_bound(key);
            let is_new = !position.found || Node(&leaf).is_ghost(position.slot);
            match self.place(leaf, position, key, value)? {
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

    /// As [`place`](Self::place), for a change that `undo` has noted last, and forgets again unless it is made.
    fn place_noted(
        &self,
        transaction: &mut Transaction,
        leaf: ExclusiveGuard<'_>,
        position: Position,
        key: &[u8],
        value: &[u8],
    ) -> Result<Placed> {
        let placed = self.place(leaf, position, key, value);
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
        let mut change = MiniTransaction::begin(&self.store);
        let page = change.add(leaf);
        if needed > free {
            if ghosts > 0 && self.ghosts_are_garbage() {
                change.commit(&[(page, RedoRecord::PurgeGhosts)])?;
                return Ok(Placed::Retry);
            }
            return Ok(Placed::NoRoom(needed));
        }
        if revive {
            change.commit(&[
                (page, RedoRecord::SetValue { slot, value }),
                (page, RedoRecord::SetGhost { slot, ghost: false }),
            ])?;
        } else if found {
            change.commit(&[(page, RedoRecord::SetValue { slot, value })])?;
        } else {
            change.commit(&[(
                page,
                RedoRecord::InsertEntry {
                    slot,
                    suffix: &key[prefix..],
                    value,
                },
            )])?;
        }
        Ok(Placed::Done)
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
    let bytes = key.len() + value.len();
    if bytes > MAX_ENTRY_BYTES {
        return Err(StorageError::EntryTooLarge {
            bytes,
            limit: MAX_ENTRY_BYTES,
        });
    }
    Ok(())
}
