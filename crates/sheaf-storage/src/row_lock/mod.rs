//! Row locks: who waits for whom.
//!
//! Most rows that are changed are never entered here. The uncommitted version of a row is its writer's lock: who wants
//! to change the row next finds it on the leaf, under the leaf's latch. Explicit locks exist for those who wait, so
//! that they are served in the order in which they came, and for locking reads, which lock without changing anything.
//!
//! ```text
//!   T1 changes k          version (k, T1, before ..) on the leaf                              nothing here
//!   T2 wants k            finds T1's version: locks (k) exclusively, waits for T1's end       (k): T2
//!   T3 wants k            finds the same: queues behind T2                                    (k): T2 | T3
//!   T1 commits            T2 wakes, changes k, commits                                        (k): T3
//! ```
//!
//! | lock | excludes | waits |
//! |---|---|---|
//! | *row* (tree, key), shared or exclusive | other locks of the row, and changes of it | in a fair queue |
//! | *prefix* (tree, prefix), exclusive | another check whether the prefix is unique | in a fair queue |
//! | *range* (tree, range of keys) | inserts, or all changes, of others in the range | never; the writers wait |
//!
//! A **range** takes the place of what others call gap and next-key locks. It is named by its bounds and not by the
//! entry that follows the gap, so it does not depend on which entries exist: purges, splits and merges have nothing
//! to pass on, and it covers what was searched and no more. An insert that finds a range in its way waits for the end
//! of the range's owner.
//!
//! **Nobody is overlooked.** A writer, holding the leaf's exclusive latch, looks for locks and then makes its version.
//! Who locks a row enters the lock first and then looks at the leaf. Whichever of the two comes second sees the other.
//! (The counter that lets writers pass by trees without locks is read after a full fence, and raised before one.)
//!
//! **Deadlocks** are looked for when a wait starts, because only then can a cycle close: from the transaction that
//! begins to wait along who waits for whom. If the search comes back to it, it is the victim; it gets
//! [`StorageError::Deadlock`] and must be rolled back as a whole. No page latch is held while waiting.
//!
//! All explicit locks are in one table behind one mutex, held for some map operations at a time. Were it contended,
//! the queues could be divided by key; the graph of who waits for whom stays one.

mod lock_table;

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Result, StorageError};
use crate::page::TreeId;
use crate::row_lock::lock_table::{LockTable, Request, Wait};
use crate::snapshot::StatusCell;
use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::{self, Mutex, MutexGuard};
use crate::tree::KeyRange;

/// Whether others may hold the lock too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LockMode {
    /// Beside other shared locks.
    Shared,
    /// Alone.
    Exclusive,
}

/// What to do when a lock is not free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockWait {
    /// Give up at once with [`StorageError::LockNotAvailable`] (NOWAIT; SKIP LOCKED goes on with the next row).
    No,
    /// Wait, and give up after this time with [`StorageError::LockWaitTimeout`].
    AtMost(Duration),
}

/// What others may not do in a locked range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeLock {
    /// Insert: the gaps of next-key locks.
    NoInserts,
    /// Insert, update, delete: a serializable read.
    NoChanges,
}

/// What a lock is on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LockName {
    tree: TreeId,
    is_prefix: bool,
    key: Vec<u8>,
}

impl LockName {
    pub(crate) fn row(tree: TreeId, key: &[u8]) -> LockName {
        LockName {
            tree,
            is_prefix: false,
            key: key.to_vec(),
        }
    }

    /// All keys with this prefix, as far as others who lock the prefix are concerned.
    pub(crate) fn prefix(tree: TreeId, prefix: &[u8]) -> LockName {
        LockName {
            tree,
            is_prefix: true,
            key: prefix.to_vec(),
        }
    }
}

/// What keeps a writer from changing a row.
#[derive(Debug)]
pub(crate) enum Blocker {
    /// A lock of the row, or who waits for one: queue.
    Lock,
    /// A range of this transaction: wait for its end.
    Range(Arc<StatusCell>),
}

/// How long a transaction waits for a lock unless it is told otherwise.
pub(crate) const DEFAULT_LOCK_WAIT: LockWait = LockWait::AtMost(Duration::from_secs(50));

/// Counters that tell writers whether a tree has locks; trees share them by number.
const TREE_COUNTERS: usize = 64;

/// All explicit locks.
pub(crate) struct RowLocks {
    table: Mutex<LockTable>,
    /// Row and range locks, by tree.
    locks_of_tree: [AtomicUsize; TREE_COUNTERS],
    /// Transactions that wait, or are about to wait, for the end of another.
    awaiting_end: AtomicUsize,
}

impl RowLocks {
    /// No locks yet, and never more than `limit`.
    pub(crate) fn new(limit: usize) -> RowLocks {
        RowLocks {
            table: Mutex::new(LockTable::new(limit)),
            locks_of_tree: std::array::from_fn(|_| AtomicUsize::new(0)),
            awaiting_end: AtomicUsize::new(0),
        }
    }

    /// Explicit locks held or waited for.
    pub(crate) fn count(&self) -> usize {
        self.table.lock().count()
    }

    fn counter(&self, tree: TreeId) -> &AtomicUsize {
        &self.locks_of_tree[tree.0 as usize % TREE_COUNTERS]
    }

    /// Locks for `own`, which holds no page latch. True if it did not have the lock in any mode before.
    ///
    /// # Errors
    /// `Deadlock`, `LockWaitTimeout`, `LockNotAvailable`; `TooManyLocks`.
    pub(crate) fn lock(
        &self,
        own: &StatusCell,
        name: &LockName,
        mode: LockMode,
        wait: LockWait,
    ) -> Result<bool> {
        let mut table = self.table.lock();
        let is_new = table.is_new(own.id(), name);
        if !name.is_prefix && is_new {
            self.counter(name.tree).fetch_add(1, Ordering::Relaxed);
        }
        let request = table.request(own.id(), name, mode);
        let result = match request {
            Ok(Request::Granted) => Ok(()),
            Ok(Request::Queued) => {
                let granted = |table: &LockTable| table.holds(own.id(), name, mode);
                let (returned, result) = self.wait(table, own, wait, granted);
                table = returned;
                if result.is_err() {
                    table.withdraw(own.id(), name);
                }
                result
            }
            Err(error) => Err(error),
        };
        if result.is_err() && !name.is_prefix && is_new {
            self.counter(name.tree).fetch_sub(1, Ordering::Relaxed);
        }
        drop(table);
        // Before the leaf is looked at: see the module's comment.
        fence(Ordering::SeqCst);
        result.map(|()| is_new)
    }

    /// As [`lock`](Self::lock), exclusively or not, after the end of who has changed the row: `changed_by` is asked for
    /// that, once the lock is held, until it knows of nobody. The lock is a place in the queue meanwhile. If waiting
    /// fails, nothing is locked that was not before.
    ///
    /// # Errors
    /// As [`lock`](Self::lock), and those of `changed_by`.
    pub(crate) fn lock_newest(
        &self,
        own: &StatusCell,
        name: &LockName,
        mode: LockMode,
        wait: LockWait,
        mut changed_by: impl FnMut() -> Result<Option<Arc<StatusCell>>>,
    ) -> Result<()> {
        let is_new = self.lock(own, name, mode, wait)?;
        let mut wait_for_writers = || {
            while let Some(writer) = changed_by()? {
                self.wait_for_end(own, &writer, wait)?;
            }
            Ok(())
        };
        let result = wait_for_writers();
        if result.is_err() && is_new {
            self.unlock(own, name);
        }
        result
    }

    /// Gives back one lock before the transaction ends.
    pub(crate) fn unlock(&self, own: &StatusCell, name: &LockName) {
        let mut table = self.table.lock();
        if !table.is_new(own.id(), name) {
            table.release(own.id(), name);
            if !name.is_prefix {
                self.counter(name.tree).fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Keeps others from inserting into a range, or from changing anything there, until `own` ends. Does not wait: who
    /// has changed something in the range already is found on the leaves.
    ///
    /// # Errors
    /// `TooManyLocks`.
    pub(crate) fn lock_range(
        &self,
        own: &Arc<StatusCell>,
        tree: TreeId,
        range: KeyRange,
        kind: RangeLock,
    ) -> Result<()> {
        {
            let mut table = self.table.lock();
            if table.lock_range(own, tree, range, kind)? {
                self.counter(tree).fetch_add(1, Ordering::Relaxed);
            }
        }
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// What keeps `own` from changing, or inserting, a row. The caller holds the leaf's exclusive latch.
    #[inline]
    pub(crate) fn blocker(
        &self,
        own: &StatusCell,
        tree: TreeId,
        key: &[u8],
        is_insert: bool,
    ) -> Option<Blocker> {
        fence(Ordering::SeqCst);
        if self.counter(tree).load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.table.lock().blocker(own.id(), tree, key, is_insert)
    }

    /// Waits until `other` has ended.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub(crate) fn wait_for_end(
        &self,
        own: &StatusCell,
        other: &StatusCell,
        wait: LockWait,
    ) -> Result<()> {
        let _awaiting = AwaitingEnd::announce(self);
        let mut table = self.table.lock();
        if !other.is_active() {
            return Ok(());
        }
        table.set_wait(own.id(), Wait::End(other.id()));
        let (mut table, result) = self.wait(table, own, wait, |_| !other.is_active());
        table.clear_wait(own.id());
        result
    }

    /// The transaction has ended, and its status says so: its locks go, and those who wait for it wake up.
    /// `has_locks`: whether it ever asked for anything here.
    #[inline]
    pub(crate) fn release_all(&self, own: &StatusCell, has_locks: bool) {
        debug_assert!(!own.is_active());
        if has_locks || self.awaiting_end.load(Ordering::SeqCst) > 0 {
            let mut table = self.table.lock();
            table.release_all(own.id(), |tree| {
                self.counter(tree).fetch_sub(1, Ordering::Relaxed);
            });
            table.wake_awaiting(own.id());
        }
    }

    /// Waits until `done`, after the table says what `own` waits for.
    fn wait<'t>(
        &'t self,
        mut table: MutexGuard<'t, LockTable>,
        own: &StatusCell,
        wait: LockWait,
        done: impl Fn(&LockTable) -> bool,
    ) -> (MutexGuard<'t, LockTable>, Result<()>) {
        let limit = match wait {
            LockWait::No => return (table, Err(StorageError::LockNotAvailable)),
            LockWait::AtMost(limit) => limit,
        };
        if table.closes_cycle(own.id()) {
            return (table, Err(StorageError::Deadlock));
        }
        let started_ns = sync::monotonic_ns();
        let wakeup = table.wakeup(own.id());
        while !done(&table) {
            let waited = Duration::from_nanos(sync::monotonic_ns() - started_ns);
            let left = limit.saturating_sub(waited);
            if left.is_zero() {
                return (table, Err(StorageError::LockWaitTimeout));
            }
            table = wakeup.wait_timeout(table, left);
        }
        (table, Ok(()))
    }
}

/// Announces that somebody waits for another's end, before it looks whether the other has ended.
struct AwaitingEnd<'l>(&'l RowLocks);

impl AwaitingEnd<'_> {
    fn announce(locks: &RowLocks) -> AwaitingEnd<'_> {
        locks.awaiting_end.fetch_add(1, Ordering::SeqCst);
        AwaitingEnd(locks)
    }
}

impl Drop for AwaitingEnd<'_> {
    fn drop(&mut self) {
        self.0.awaiting_end.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests;
