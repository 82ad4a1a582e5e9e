//! What a transaction locks: rows, gaps, ranges, and the prefixes that foreign keys refer to.
//!
//! None of this may be called while a page is latched.

use std::sync::Arc;

use super::Transaction;
use crate::error::{Result, StorageError};
use crate::key_range::KeyRange;
use crate::page::{PageId, TreeId};
use crate::transaction::row_lock::{
    Blocker, ESCALATION_ROWS, LockMode, LockName, LockWait, Locked, LockedKeys, Look, Patience,
    RangeLock, RangeState, WantedChange,
};
use crate::transaction::snapshot::{ReadView, StatusCell};
use crate::transaction::system::TransactionSystem;
use crate::tree::Tree;

impl Transaction {
    /// What would be lost if the transaction were the victim of a deadlock.
    fn work(&self) -> usize {
        self.undo.len() + self.rows_locked
    }

    fn patience(&self, wait: LockWait) -> Patience {
        Patience {
            wait,
            interrupt: self.patience.interrupt.clone(),
            work: self.work(),
        }
    }

    /// Locks a row, that is, a key of a tree, to the end of the transaction. The newest version of the row is then
    /// committed, or this transaction's own, and stays what it is: read it with [`ReadView::newest`]. True if the lock
    /// is new: a caller that turns out not to need it may [release it](Self::unlock_row).
    ///
    /// # Errors
    /// `Deadlock`: the whole transaction must be rolled back. `LockWaitTimeout`, `LockNotAvailable`,
    /// `LockWaitInterrupted`, `TooManyLocks`: the statement must be.
    pub fn lock_row(
        &mut self,
        tree: &Tree,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<bool> {
        Ok(self.lock_newest_row(tree, key, mode, wait)?.is_new)
    }

    fn lock_newest_row(
        &mut self,
        tree: &Tree,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<Locked> {
        // No other transaction can change what this one has changed. A transaction that waits for it may hold the
        // explicit lock already.
        if tree.is_changed_by(key, &self.status)? {
            return Ok(Locked {
                is_new: false,
                has_waited: false,
            });
        }
        self.has_locks = true;
        let locks = &self.store.transactions.row_locks;
        let (name, patience) = (LockName::row(tree.id(), key), self.patience(wait));
        let locked = locks.lock_newest(&self.status, &name, mode, &patience, || {
            tree.active_writer_of(key, &self.status)
        })?;
        if locked.is_new {
            self.count_lock(tree.id());
        }
        Ok(locked)
    }

    /// Another row of the tree was locked.
    fn count_lock(&mut self, tree: TreeId) {
        self.rows_locked += 1;
        if self.rows_locked == self.next_escalation {
            self.escalate(tree);
        }
    }

    /// Locks a tree in the place of its rows, if it has locked many of them and conflicts with no other transaction.
    #[cold]
    fn escalate(&mut self, tree: TreeId) {
        let TransactionSystem {
            row_locks,
            versions,
            ..
        } = &self.store.transactions;
        let own = &self.status;
        let has_writers = || versions.has_active_writer(tree, own);
        self.next_escalation += match row_locks.escalate(own, tree, has_writers) {
            true => ESCALATION_ROWS,
            // The longer it is refused, the more rarely it is tried.
            false => self.rows_locked,
        };
    }

    /// Fails if the transaction is told to stop. A caller that locks many rows without waiting for any asks now and
    /// then.
    ///
    /// # Errors
    /// `LockWaitInterrupted`.
    pub fn check_interrupt(&self) -> Result<()> {
        match &self.patience.interrupt {
            Some(interrupt) if interrupt() => Err(StorageError::LockWaitInterrupted),
            _ => Ok(()),
        }
    }

    /// As [`lock_row`](Self::lock_row), for a row that was chosen by reading through `view`.
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
    ) -> Result<LockedRow> {
        let Locked { is_new, has_waited } = self.lock_newest_row(tree, key, mode, wait)?;
        // What it has changed itself it has locked before.
        let is_unchanged =
            tree.is_unchanged_since(view, key)? || tree.is_changed_by(key, &self.status)?;
        if has_waited || !is_unchanged {
            self.see_commits();
        }
        Ok(LockedRow {
            is_new,
            is_unchanged,
            has_waited,
        })
    }

    /// Locks and reads a row, in one visit of its leaf, if that takes no waiting and `view` shows the newest version of
    /// the row; an absent one is not locked. None: nothing has happened, and the row is to be read, [locked and looked
    /// at again](Self::lock_row_of_view).
    ///
    /// # Errors
    /// As [`lock_row`](Self::lock_row), except those of waiting.
    pub fn lock_and_read(
        &mut self,
        view: &ReadView,
        tree: &Tree,
        key: &[u8],
        mode: LockMode,
        value: &mut Vec<u8>,
    ) -> Result<Option<bool>> {
        self.has_locks = true;
        let locks = &self.store.transactions.row_locks;
        let (name, patience) = (LockName::row(tree.id(), key), LockWait::No.into());
        let is_new = match locks.lock(&self.status, &name, mode, &patience) {
            Ok(is_new) => is_new,
            Err(StorageError::LockNotAvailable) => return Ok(None),
            Err(error @ StorageError::TooManyLocks { .. }) => {
                // What is not there needs no lock.
                return match tree.read_newest_seen(view, key, value, &mut self.hints)? {
                    Some(false) => Ok(Some(false)),
                    _ => Err(error),
                };
            }
            Err(error) => return Err(error),
        };
        let found = tree.read_newest_seen(view, key, value, &mut self.hints);
        if is_new {
            match found {
                Ok(Some(true)) => self.count_lock(tree.id()),
                _ => locks.unlock(&self.status, &name),
            }
        }
        found
    }

    /// Something is not what a view shows. The transaction that changed it has committed, but the commit may not be
    /// durable: the next view shows it nevertheless.
    fn see_commits(&mut self) {
        self.seen = self.seen.max(self.store.transactions.newest_commit());
    }

    /// Makes durable what has committed by now, for a statement that is about to tell what it has found under its
    /// locks.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn show_commits(&self) -> Result<()> {
        self.store.show_commits()
    }

    /// Releases a row lock that was new when it was taken. What the transaction has changed stays its own.
    pub fn unlock_row(&mut self, tree: &Tree, key: &[u8]) {
        let locks = &self.store.transactions.row_locks;
        locks.unlock(&self.status, &LockName::row(tree.id(), key));
    }

    /// Keeps others from doing in a range of a tree's keys what `kind` says, until the transaction ends. Uncommitted
    /// changes of others there are waited for, so that a reading of the range with [`ReadView::newest`] finds committed
    /// rows, or this transaction's own. What is committed is durable, so that it may be told.
    ///
    /// # Errors
    /// As [`lock_row`](Self::lock_row). If waiting fails, nothing is locked that was not before.
    pub fn lock_range(
        &mut self,
        tree: &Tree,
        range: &KeyRange,
        kind: RangeLock,
        wait: LockWait,
    ) -> Result<()> {
        self.has_locks = true;
        self.lock_keys(tree, range, kind, wait, || {
            let writer = tree.active_writer_in(range, &self.status)?;
            Ok(match writer {
                Some(writer) => RangeState::ChangedBy(writer),
                None => RangeState::Settled(()),
            })
        })?;
        self.store.show_commits()
    }

    /// As [`lock_range`](Self::lock_range), for a range that was read through `view`. False if something that `kind`
    /// excludes from now on has happened there since the view was taken: then the statement reads again through a new
    /// view. The range stays locked, so that it gets ahead.
    ///
    /// # Errors
    /// As [`lock_range`](Self::lock_range).
    pub fn lock_range_of_view(
        &mut self,
        view: &ReadView,
        tree: &Tree,
        range: &KeyRange,
        kind: RangeLock,
        wait: LockWait,
    ) -> Result<bool> {
        self.has_locks = true;
        let inserts_only = kind == RangeLock::NoInserts;
        let is_unchanged = self.lock_keys(tree, range, kind, wait, || {
            let writer = tree.unseen_writer_in(view, range, inserts_only)?;
            Ok(match writer {
                Some(writer) if writer.is_active() => RangeState::ChangedBy(writer),
                changed => RangeState::Settled(changed.is_none()),
            })
        })?;
        if !is_unchanged {
            self.see_commits();
        }
        Ok(is_unchanged)
    }

    /// As [`lock_range_of_view`](Self::lock_range_of_view), against inserts, for a range of which only these parts were
    /// read: inserts of others elsewhere in it are not looked for.
    ///
    /// # Errors
    /// As [`lock_range`](Self::lock_range).
    pub fn lock_gaps_of_view(
        &mut self,
        view: &ReadView,
        tree: &Tree,
        range: &KeyRange,
        read: &[&KeyRange],
        wait: LockWait,
    ) -> Result<bool> {
        self.has_locks = true;
        let is_unchanged = self.lock_keys(tree, range, RangeLock::NoInserts, wait, || {
            for part in read {
                match tree.unseen_writer_in(view, part, true)? {
                    None => {}
                    Some(writer) if writer.is_active() => {
                        return Ok(RangeState::ChangedBy(writer));
                    }
                    Some(_) => return Ok(RangeState::Settled(false)),
                }
            }
            Ok(RangeState::Settled(true))
        })?;
        if !is_unchanged {
            self.see_commits();
        }
        Ok(is_unchanged)
    }

    fn lock_keys<T>(
        &self,
        tree: &Tree,
        range: &KeyRange,
        kind: RangeLock,
        wait: LockWait,
        changed_by: impl FnMut() -> Result<RangeState<T>>,
    ) -> Result<T> {
        let locked = LockedKeys {
            tree: tree.id(),
            range,
            kind,
        };
        let locks = &self.store.transactions.row_locks;
        locks.lock_range(&self.status, locked, &self.patience(wait), changed_by)
    }

    /// The change of a key that this transaction wants to make.
    pub(crate) fn wanted_change<'k>(
        &self,
        tree: TreeId,
        key: &'k [u8],
        is_insert: bool,
    ) -> WantedChange<'k> {
        WantedChange {
            tree,
            key,
            is_insert,
            has_changed_tree: self.trees.iter().any(|known| known.id() == tree),
        }
    }

    /// Waits until nothing of the kind that `obstacle` is keeps the transaction from the change. The caller looks
    /// again: there may be another.
    pub(crate) fn overcome(
        &mut self,
        tree: &Tree,
        wanted: WantedChange<'_>,
        obstacle: &Obstacle,
    ) -> Result<()> {
        self.has_locks = true;
        self.patience.work = self.work();
        let locks = &self.store.transactions.row_locks;
        let name = LockName::row(wanted.tree, wanted.key);
        match obstacle {
            Obstacle::Locked(Blocker::Range(owner)) => {
                locks.wait_to_change(&self.status, wanted, owner, &self.patience)
            }
            Obstacle::Locked(Blocker::Lock) => {
                locks.lock(&self.status, &name, LockMode::Exclusive, &self.patience)?;
                Ok(())
            }
            Obstacle::Changed => {
                let (mode, patience) = (LockMode::Exclusive, &self.patience);
                let changed_by = || tree.active_writer_of(wanted.key, &self.status);
                locks.lock_newest(&self.status, &name, mode, patience, changed_by)?;
                Ok(())
            }
            Obstacle::Spilled(page) => self.store.transactions.bring_back(*page),
        }
    }

    /// Waits for the transaction that has made it uncertain whether something is there. The caller looks again.
    ///
    /// # Errors
    /// As [`lock_row`](Self::lock_row).
    pub fn wait_until_settled(&mut self, unsettled: &Unsettled) -> Result<()> {
        self.has_locks = true;
        self.patience.work = self.work();
        let locks = &self.store.transactions.row_locks;
        let Unsettled { writer, look } = unsettled;
        locks.wait_for_end(&self.status, writer, *look, &self.patience)
    }

    /// Whether the transaction locks why a change of it fails: the key that is there already, the parent that is
    /// missing, the child that refers to a row. To be serializable it has to: it has read that. At first: no.
    pub fn keep_reasons(&mut self, keep: bool) {
        self.keeps_reasons = keep;
    }

    /// A change is about to fail because of a live key of `tree`, which stays if reasons are kept. True: the lock is
    /// new, and the caller looks again.
    ///
    /// # Errors
    /// As [`lock_row`](Self::lock_row).
    pub fn keep_found(&mut self, tree: &Tree, key: &[u8]) -> Result<bool> {
        match self.keeps_reasons {
            true => self.lock_row(tree, key, LockMode::Shared, self.patience.wait),
            false => Ok(false),
        }
    }

    /// A change is about to fail because `tree` has no key with this prefix. If reasons are kept, none comes, and the
    /// caller looks again.
    ///
    /// # Errors
    /// As [`lock_range`](Self::lock_range).
    pub fn keep_absent(&mut self, tree: &Tree, prefix: &[u8]) -> Result<bool> {
        if self.keeps_reasons {
            let (range, kind) = (KeyRange::prefix(prefix), RangeLock::NoInserts);
            self.lock_range(tree, &range, kind, self.patience.wait)?;
        }
        Ok(self.keeps_reasons)
    }

    /// Locks what refers to the keys of `tree` that start with `prefix`. A transaction that adds a reference locks it
    /// shared and then looks for the key. One that takes the key away locks it exclusively and then looks for
    /// references. So one of the two sees the other. True if the lock is new. It is [released](Self::unlock_reference)
    /// after the look: from then on the change itself is what others find.
    ///
    /// # Errors
    /// As [`lock_row`](Self::lock_row).
    pub fn lock_reference(&mut self, tree: &Tree, prefix: &[u8], mode: LockMode) -> Result<bool> {
        self.has_locks = true;
        self.patience.work = self.work();
        let locks = &self.store.transactions.row_locks;
        let name = LockName::reference(tree.id(), prefix);
        locks.lock(&self.status, &name, mode, &self.patience)
    }

    /// The look is over.
    pub fn unlock_reference(&mut self, tree: &Tree, prefix: &[u8]) {
        let locks = &self.store.transactions.row_locks;
        locks.unlock(&self.status, &LockName::reference(tree.id(), prefix));
    }

    /// Keeps others from checking whether a prefix is unique.
    pub(crate) fn lock_prefix(&mut self, tree: &Tree, prefix: &[u8]) -> Result<()> {
        self.has_locks = true;
        self.patience.work = self.work();
        let locks = &self.store.transactions.row_locks;
        let name = LockName::prefix(tree.id(), prefix);
        locks.lock(&self.status, &name, LockMode::Exclusive, &self.patience)?;
        Ok(())
    }

    /// The check is over.
    pub(crate) fn unlock_prefix(&mut self, tree: &Tree, prefix: &[u8]) {
        let locks = &self.store.transactions.row_locks;
        locks.unlock(&self.status, &LockName::prefix(tree.id(), prefix));
    }
}

/// What a transaction has when it has locked a row that it had read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockedRow {
    /// It had no lock of the row before.
    pub is_new: bool,
    /// The row is what the view shows. Else what was found out by reading may not hold any more, and the statement
    /// reads again through a new view; its locks stay, so that it gets ahead.
    pub is_unchanged: bool,
    /// Another transaction had it first. What that one, and others meanwhile, have committed elsewhere is not in the
    /// view, whether the row is unchanged or not.
    pub has_waited: bool,
}

/// Whose end will tell whether something is there.
#[derive(Debug)]
pub struct Unsettled {
    pub(crate) writer: Arc<StatusCell>,
    pub(crate) look: Look,
}

/// What keeps a transaction from changing a key.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// A change of another transaction that is not committed.
    Changed,
    /// A lock of another transaction.
    Locked(Blocker),
    /// Unknown until what was spilled of this leaf's past is read back.
    Spilled(PageId),
}
