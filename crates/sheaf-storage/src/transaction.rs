//! Transactions: what one changed, so that it can be taken back.
//!
//! Undo is logical. It names the tree, the key and the value before, not pages: by the time of a rollback the entry
//! may have moved, and pages may have been split and merged by others. A rollback goes through the changes from the
//! newest to the oldest, descends the tree for each, and may split pages on its way; what it needs of disk space is
//! kept in reserve for it ([`crate::extent`]). A statement inside of a transaction is a savepoint.
//!
//! The changes are kept in memory, back to back in chunks, and are limited in size.
//!
//! A rollback that fails (a page cannot be read) leaves a transaction half done. No rows can be trusted then, so the
//! storage accepts no more changes and will not call the file clean.

use std::sync::Arc;

use crate::error::{Result, StorageError};
use crate::page_store::{ChangePermit, PageStore};
use crate::tree::Tree;

/// What was done to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Change {
    /// A new entry was added.
    Insert,
    /// A ghost was made an entry again.
    Revive,
    /// A value was replaced.
    Update,
    /// An entry was made a ghost.
    Delete,
}

impl Change {
    fn from_byte(byte: u8) -> Change {
        match byte {
            0 => Change::Insert,
            1 => Change::Revive,
            2 => Change::Update,
            _ => Change::Delete,
        }
    }
}

/// Chunks double in size from the first one to this.
const FIRST_CHUNK_BYTES: usize = 1 << 10;
const LARGEST_CHUNK_BYTES: usize = 256 << 10;

/// A record: start of the one before it in its chunk (4), tree (2), change (1), key length (2), value length (2),
/// key, value.
const RECORD_HEADER_BYTES: usize = 11;

/// A chunk's first record has no other before it.
const NO_RECORD: u32 = u32::MAX;

struct Chunk {
    bytes: Vec<u8>,
    last_record: u32,
}

/// A record, read back.
struct Record<'a> {
    tree: usize,
    change: Change,
    key: &'a [u8],
    before: &'a [u8],
}

/// The number of a transaction that has changed something. No two transactions of a storage share one; 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TransactionId(pub u64);

/// The changes of one transaction and their before-images. Dropped without a commit, it rolls back.
pub struct Transaction {
    store: Arc<PageStore>,
    /// Taken by the first change.
    id: Option<TransactionId>,
    /// Held from the first change on.
    permit: Option<ChangePermit>,
    /// Trees that were changed, each with the number of ghosts made.
    trees: Vec<(Arc<Tree>, u64)>,
    chunks: Vec<Chunk>,
    records: usize,
    bytes: usize,
    limit: usize,
}

impl Transaction {
    pub(crate) fn new(store: Arc<PageStore>, limit: usize) -> Transaction {
        Transaction {
            store,
            id: None,
            permit: None,
            trees: Vec::new(),
            chunks: Vec::new(),
            records: 0,
            bytes: 0,
            limit,
        }
    }

    /// The transaction's number, if it has changed something.
    pub fn id(&self) -> Option<TransactionId> {
        self.id
    }

    /// Keeps the transaction's changes, and purges the ghosts it made.
    ///
    /// # Errors
    /// The changes could not be made durable; whether they will be found after a restart is unknown.
    pub fn commit(mut self) -> Result<()> {
        self.end();
        Ok(())
    }

    /// Takes the transaction's changes back, newest first.
    ///
    /// # Errors
    /// A page could not be read; from then on the storage accepts no changes.
    pub fn rollback(mut self) -> Result<()> {
        self.rollback_to(0)
    }

    /// A mark for [`rollback_to`](Self::rollback_to).
    pub fn savepoint(&self) -> usize {
        self.records
    }

    /// Takes back the changes made after the mark.
    ///
    /// # Errors
    /// As [`rollback`](Self::rollback).
    pub fn rollback_to(&mut self, savepoint: usize) -> Result<()> {
        while self.records > savepoint {
            let result = self.undo_last();
            if let Err(error) = result {
                self.store.refuse_changes(error.clone());
                // What is left cannot be taken back either: forget it, so that dropping does not try.
                self.chunks.clear();
                self.records = 0;
                return Err(error);
            }
            self.pop();
        }
        Ok(())
    }

    /// Bytes of before-images held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Called before the first page of a change is latched.
    #[inline]
    pub(crate) fn begin_change(&mut self, tree: &Tree) -> Result<()> {
        if self.permit.is_none() {
            self.permit = Some(tree.store().begin_changes()?);
            self.id = Some(self.store.new_transaction_id());
        }
        Ok(())
    }

    /// Notes a change that is about to be made. Fails if the transaction has no room for it.
    pub(crate) fn push(
        &mut self,
        tree: &Tree,
        change: Change,
        key: &[u8],
        before: &[u8],
    ) -> Result<()> {
        let record_bytes = RECORD_HEADER_BYTES + key.len() + before.len();
        if self.bytes + record_bytes > self.limit {
            return Err(StorageError::TransactionTooLarge { limit: self.limit });
        }
        let tree = self.tree_number(tree)?;
        let fits = |chunk: &Chunk| chunk.bytes.capacity() - chunk.bytes.len() >= record_bytes;
        if !self.chunks.last().is_some_and(fits) {
            let doubled = self
                .chunks
                .last()
                .map_or(FIRST_CHUNK_BYTES, |chunk| chunk.bytes.capacity() * 2);
            let capacity = doubled.min(LARGEST_CHUNK_BYTES).max(record_bytes);
            self.chunks.push(Chunk {
                bytes: Vec::with_capacity(capacity),
                last_record: NO_RECORD,
            });
        }
        let chunk = self.chunks.last_mut().expect("a chunk was pushed");
        let start = chunk.bytes.len() as u32;
        chunk
            .bytes
            .extend_from_slice(&chunk.last_record.to_le_bytes());
        chunk.bytes.extend_from_slice(&tree.to_le_bytes());
        chunk.bytes.push(change as u8);
        chunk
            .bytes
            .extend_from_slice(&(key.len() as u16).to_le_bytes());
        chunk
            .bytes
            .extend_from_slice(&(before.len() as u16).to_le_bytes());
        chunk.bytes.extend_from_slice(key);
        chunk.bytes.extend_from_slice(before);
        chunk.last_record = start;
        self.records += 1;
        self.bytes += record_bytes;
        if change == Change::Delete {
            self.trees[usize::from(tree)].1 += 1;
        }
        Ok(())
    }

    /// Forgets the last change: it was not made, or it was taken back.
    pub(crate) fn pop(&mut self) {
        let Some(chunk) = self.chunks.last_mut() else {
            return;
        };
        let start = chunk.last_record as usize;
        let record = read(&chunk.bytes[start..]);
        let (tree, change) = (record.tree, record.change);
        self.bytes -= chunk.bytes.len() - start;
        self.records -= 1;
        chunk.last_record = previous_record(&chunk.bytes[start..]);
        chunk.bytes.truncate(start);
        if start == 0 {
            self.chunks.pop();
        }
        if change == Change::Delete {
            self.trees[tree].1 -= 1;
        }
    }

    fn tree_number(&mut self, tree: &Tree) -> Result<u16> {
        let number = match self
            .trees
            .iter()
            .position(|(known, _)| known.id() == tree.id())
        {
            Some(number) => number,
            None => {
                self.trees.push((tree.shared()?, 0));
                self.trees.len() - 1
            }
        };
        u16::try_from(number).map_err(|_| StorageError::TransactionTooLarge { limit: self.limit })
    }

    fn undo_last(&self) -> Result<()> {
        let Some(chunk) = self.chunks.last() else {
            return Ok(());
        };
        let record = read(&chunk.bytes[chunk.last_record as usize..]);
        let tree = &self.trees[record.tree].0;
        match record.change {
            Change::Insert => tree.remove(record.key)?,
            Change::Revive => tree.hide(record.key)?,
            Change::Update => tree.put(record.key, record.before, true)?,
            Change::Delete => {
                let was_hidden = tree.put(record.key, record.before, true)?;
                tree.resolve_ghosts(1);
                was_hidden
            }
        };
        Ok(())
    }

    /// The transaction is over: its ghosts are garbage.
    fn end(&mut self) {
        for (tree, ghosts) in &self.trees {
            tree.resolve_ghosts(*ghosts);
        }
        if self.trees.iter().any(|(_, ghosts)| *ghosts > 0) {
            self.purge();
        }
        self.chunks.clear();
        self.records = 0;
        self.permit = None;
    }

    /// Purges the leaves on which ghosts were made. What fails here stays garbage, for a later visitor.
    fn purge(&self) {
        let mut purged = None;
        for chunk in &self.chunks {
            let mut rest = chunk.bytes.as_slice();
            while !rest.is_empty() {
                let record = read(rest);
                rest = &rest[RECORD_HEADER_BYTES + record.key.len() + record.before.len()..];
                if record.change != Change::Delete {
                    continue;
                }
                if let Some((tree, fences)) = &purged {
                    let fences: &crate::tree::delete::Fences = fences;
                    if *tree == record.tree && fences.cover(record.key) {
                        continue;
                    }
                }
                match self.trees[record.tree].0.purge_leaf(record.key) {
                    Ok(fences) => purged = Some((record.tree, fences)),
                    Err(error) => {
                        tracing::warn!("ghosts of an ended transaction stay for now: {error}");
                        return;
                    }
                }
            }
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.records > 0
            && let Err(error) = self.rollback_to(0)
        {
            tracing::error!("a transaction could not be rolled back: {error}");
        }
    }
}

fn read(bytes: &[u8]) -> Record<'_> {
    let u16_at = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let (key_length, value_length) = (u16_at(7), u16_at(9));
    let (key, rest) = bytes[RECORD_HEADER_BYTES..].split_at(key_length);
    Record {
        tree: u16_at(4),
        change: Change::from_byte(bytes[6]),
        key,
        before: &rest[..value_length],
    }
}

fn previous_record(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
