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
use crate::page::Lsn;
use crate::page_store::{ChangePermit, PageStore};
use crate::row_lock::{Blocker, DEFAULT_LOCK_WAIT, LockMode, LockName, LockWait, RangeLock};
use crate::snapshot::{ReadView, StatusCell};
use crate::tree::{KeyRange, Tree};

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

/// The number of a transaction. No two transactions of a storage share one; 0 is none. Not a timestamp: what a snapshot
/// sees is decided by the order of commits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TransactionId(pub u64);

impl std::fmt::Display for TransactionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The changes of one transaction and their before-images. Dropped without a commit, it rolls back.
pub struct Transaction {
    store: Arc<PageStore>,
    /// What all versions made by the transaction point to.
    status: Arc<StatusCell>,
    /// Whether it ever asked for an explicit lock.
    has_locks: bool,
    lock_wait: LockWait,
    /// Held from the first change on.
    permit: Option<ChangePermit>,
    /// Trees that were changed.
    trees: Vec<Arc<Tree>>,
    /// Deletes among the changes.
    deletes: usize,
    chunks: Vec<Chunk>,
    records: usize,
    bytes: usize,
    limit: usize,
}

impl Transaction {
    pub(crate) fn new(store: Arc<PageStore>, limit: usize) -> Transaction {
        let status = StatusCell::new(store.new_transaction_id());
        Transaction {
            store,
            status,
            has_locks: false,
            lock_wait: DEFAULT_LOCK_WAIT,
            permit: None,
            trees: Vec::new(),
            deletes: 0,
            chunks: Vec::new(),
            records: 0,
            bytes: 0,
            limit,
        }
    }

    /// The transaction's number, if it has changed something.
    pub fn id(&self) -> Option<TransactionId> {
        self.permit.is_some().then(|| self.status.id())
    }

    pub(crate) fn status(&self) -> &Arc<StatusCell> {
        &self.status
    }

    /// A view of what has committed by now, and of everything that this transaction has changed and will change.
    ///
    /// # Errors
    /// `TooManySnapshots`.
    pub fn read_view(&self) -> Result<ReadView> {
        let snapshots = &self.store.transactions.snapshots;
        ReadView::take(snapshots, Some(self.status.clone()))
    }

    /// What to do from now on when a lock is not free. At first: wait for at most 50 seconds.
    pub fn set_lock_wait(&mut self, wait: LockWait) {
        self.lock_wait = wait;
    }

    /// Keeps the transaction's changes, and purges the ghosts it made.
    ///
    /// # Errors
    /// The changes could not be made durable; whether they will be found after a restart is unknown.
    pub fn commit(mut self) -> Result<()> {
        if self.permit.is_none() {
            self.end_without_changes();
            return Ok(());
        }
        let transactions = &self.store.transactions;
        let lsn = transactions.commit(&self.status, || self.append_commit());
        // Rows are free for others before the commit is durable; snapshots see it only afterwards.
        transactions
            .row_locks
            .release_all(&self.status, self.has_locks);
        transactions.snapshots.advance_to(lsn);
        self.forget_changes();
        Ok(())
    }

    /// Writes the commit record.
    fn append_commit(&self) -> Lsn {
        self.store.log.append(1)
    }

    /// Takes the transaction's changes back, newest first.
    ///
    /// # Errors
    /// A page could not be read; from then on the storage accepts no changes.
    pub fn rollback(mut self) -> Result<()> {
        self.rollback_all()
    }

    fn rollback_all(&mut self) -> Result<()> {
        // If this fails, the versions of what is left stay as well, and nobody ever sees it.
        self.rollback_to(0)?;
        self.end_without_changes();
        Ok(())
    }

    /// There is nothing, or nothing any more, that others could see.
    fn end_without_changes(&mut self) {
        let transactions = &self.store.transactions;
        self.status.roll_back();
        transactions
            .row_locks
            .release_all(&self.status, self.has_locks);
        self.permit = None;
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
        self.deletes += usize::from(change == Change::Delete);
        Ok(())
    }

    /// Forgets the last change: it was not made, or it was taken back.
    pub(crate) fn pop(&mut self) {
        let Some(chunk) = self.chunks.last_mut() else {
            return;
        };
        let start = chunk.last_record as usize;
        let is_delete = read(&chunk.bytes[start..]).change == Change::Delete;
        self.bytes -= chunk.bytes.len() - start;
        self.records -= 1;
        chunk.last_record = previous_record(&chunk.bytes[start..]);
        chunk.bytes.truncate(start);
        if start == 0 {
            self.chunks.pop();
        }
        self.deletes -= usize::from(is_delete);
    }

    fn tree_number(&mut self, tree: &Tree) -> Result<u16> {
        let mut known = self.trees.iter();
        let number = match known.position(|known| known.id() == tree.id()) {
            Some(number) => number,
            None => {
                self.trees.push(tree.shared()?);
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
        let tree = &self.trees[record.tree];
        match record.change {
            Change::Insert => tree.remove(record.key, Some(&self.status))?,
            Change::Revive => tree.hide(record.key, &self.status)?,
            Change::Update | Change::Delete => {
                tree.restore(record.key, record.before, &self.status)?
            }
        };
        Ok(())
    }

    /// The transaction is committed: what would have taken it back goes, and ghosts that nobody sees any more.
    fn forget_changes(&mut self) {
        if self.deletes > 0 {
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
                match self.trees[record.tree].purge_leaf(record.key) {
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

/// Locks. None of these may be called while a page is latched.
impl Transaction {
    /// Locks a row, that is, a key of a tree, to the end of the transaction. The newest version of the row is then
    /// committed, or this transaction's own, and stays what it is: read it with [`ReadView::newest`].
    ///
    /// # Errors
    /// `Deadlock`: the whole transaction must be rolled back. `LockWaitTimeout`, `LockNotAvailable`, `TooManyLocks`:
    /// the statement must be.
    pub fn lock_row(
        &mut self,
        tree: &Tree,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<()> {
        // What this transaction has changed nobody else can change. Who waits for it may hold the explicit lock already.
        if tree.is_changed_by(key, &self.status)? {
            return Ok(());
        }
        self.has_locks = true;
        let locks = &self.store.transactions.row_locks;
        let name = LockName::row(tree.id(), key);
        locks.lock_newest(&self.status, &name, mode, wait, || {
            tree.active_writer_of(key, &self.status)
        })
    }

    /// As [`lock_row`](Self::lock_row), for a row that was chosen by reading through `view`. False if the row has
    /// changed since the view was taken: what was found out by reading may not hold any more, and the statement reads
    /// again through a new view. Its locks stay, so that it gets ahead.
    ///
    /// # Errors
    /// As [`lock_row`](Self::lock_row).
    pub fn lock_row_of_view(
        &mut self,
        view: &ReadView,
        tree: &Tree,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<bool> {
        self.lock_row(tree, key, mode, wait)?;
        // What it has changed itself it has locked before.
        Ok(tree.is_unchanged_since(view, key)? || tree.is_changed_by(key, &self.status)?)
    }

    /// Gives back a row lock whose row turned out not to match (READ COMMITTED). What was changed stays locked.
    pub fn unlock_row(&mut self, tree: &Tree, key: &[u8]) {
        let locks = &self.store.transactions.row_locks;
        locks.unlock(&self.status, &LockName::row(tree.id(), key));
    }

    /// Keeps others from inserting, or from changing anything, in a range of a tree's keys until the transaction ends.
    /// What others have changed there and not committed is waited for, so that a reading of the range with
    /// [`ReadView::newest`] finds committed rows, or this transaction's own.
    ///
    /// # Errors
    /// As [`lock_row`](Self::lock_row).
    pub fn lock_range(
        &mut self,
        tree: &Tree,
        range: &KeyRange,
        kind: RangeLock,
        wait: LockWait,
    ) -> Result<()> {
        self.has_locks = true;
        let locks = &self.store.transactions.row_locks;
        locks.lock_range(&self.status, tree.id(), range.clone(), kind)?;
        while let Some(writer) = tree.active_writer_in(range, &self.status)? {
            locks.wait_for_end(&self.status, &writer, wait)?;
        }
        Ok(())
    }

    /// Waits until nothing of the kind that `obstacle` is keeps the transaction from changing the key. The caller
    /// looks again: there may be another.
    pub(crate) fn overcome(&mut self, tree: &Tree, key: &[u8], obstacle: &Obstacle) -> Result<()> {
        self.has_locks = true;
        let locks = &self.store.transactions.row_locks;
        match obstacle {
            Obstacle::Locked(Blocker::Range(owner)) => {
                locks.wait_for_end(&self.status, owner, self.lock_wait)
            }
            Obstacle::Locked(Blocker::Lock) => {
                let name = LockName::row(tree.id(), key);
                locks.lock(&self.status, &name, LockMode::Exclusive, self.lock_wait)?;
                Ok(())
            }
            Obstacle::Changed(writer) => {
                let name = LockName::row(tree.id(), key);
                let (mode, wait) = (LockMode::Exclusive, self.lock_wait);
                let changed_by = || Ok(writer.is_active().then(|| writer.clone()));
                locks.lock_newest(&self.status, &name, mode, wait, changed_by)
            }
        }
    }

    /// Waits for the end of a transaction that changed something which a check of this one came across.
    pub(crate) fn wait_for(&mut self, writer: &StatusCell) -> Result<()> {
        self.has_locks = true;
        let locks = &self.store.transactions.row_locks;
        locks.wait_for_end(&self.status, writer, self.lock_wait)
    }

    /// Keeps others from checking whether a prefix is unique.
    pub(crate) fn lock_prefix(&mut self, tree: &Tree, prefix: &[u8]) -> Result<()> {
        self.has_locks = true;
        let locks = &self.store.transactions.row_locks;
        let name = LockName::prefix(tree.id(), prefix);
        locks.lock(&self.status, &name, LockMode::Exclusive, self.lock_wait)?;
        Ok(())
    }

    /// The check is over.
    pub(crate) fn unlock_prefix(&mut self, tree: &Tree, prefix: &[u8]) {
        let locks = &self.store.transactions.row_locks;
        locks.unlock(&self.status, &LockName::prefix(tree.id(), prefix));
    }
}

/// What keeps a transaction from changing a key.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// Somebody's change that is not committed.
    Changed(Arc<StatusCell>),
    /// Somebody's lock.
    Locked(Blocker),
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.status.is_active()
            && let Err(error) = self.rollback_all()
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
