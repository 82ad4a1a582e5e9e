//! Transactions: the changes of one stay or go as a whole.
//!
//! Undo is logical. It names the tree, the key and the value before, not pages. By the time of a rollback the entry may
//! have moved, and others may have split and merged pages. A rollback goes through the changes from the newest to the
//! oldest and descends the tree for each. It may split pages on its way. The disk space that it needs is kept in
//! reserve for it ([`crate::space::extent`]), and so is its room in the log. A statement inside of a transaction is a
//! savepoint. Recovery takes the same way with the changes that it finds in the log.
//!
//! ```text
//!   change     mini-transaction + note: transaction, tree, key, before        undo stack: push
//!   rollback   mini-transaction + note: compensation                          undo stack: pop
//!   commit     commit record, and where it gets its position: status cell     locks go, the log is flushed, snapshots
//! ```
//!
//! A transaction that changes nothing logs nothing. While one is live, the log is kept from its first change on.
//!
//! A rollback that fails (a page cannot be read) leaves a transaction half done. No rows can be trusted then, so the
//! storage accepts no more changes; the transaction stays live, and the next start rolls it back.
//!
//! | file | what it holds |
//! |---|---|
//! | [`system`] | what all transactions of a storage share |
//! | [`snapshot`] | which changes a view sees |
//! | [`versions`] | what pages held before, for readers that may not see what they hold now |
//! | [`undo_stack`] | the changes of a transaction that were not undone |
//! | `locks` | what a transaction locks: rows, gaps, ranges and prefixes |
//! | [`row_lock`] | which transaction waits for which |
//! | [`lock_wait`] | how long a thread has waited for locks |
//! | [`spill_file`] | versions and undo that memory has no room for |

pub(crate) mod lock_wait;
mod locks;
pub(crate) mod row_lock;
pub(crate) mod snapshot;
pub(crate) mod spill_file;
pub(crate) mod system;
pub(crate) mod undo_stack;
pub(crate) mod versions;

use std::sync::Arc;

use crate::error::{Result, StorageError};
pub(crate) use crate::log::change::Change;
pub use crate::log::change::TransactionId;
use crate::log::frame::{self, Piece};
use crate::page::{Lsn, TreeId};
use crate::page_store::{ChangePermit, EndTransaction, PageStore};
use crate::transaction::row_lock::{
    DEFAULT_LOCK_WAIT, ESCALATION_ROWS, Interrupt, LockWait, Patience,
};
use crate::transaction::snapshot::{ReadView, StatusCell};
use crate::transaction::undo_stack::{UndoRecord, UndoStack};
use crate::tree::Tree;
use crate::tree::delete::Fences;
use crate::tree::leaf_hints::LeafHints;

pub(crate) use locks::Obstacle;
pub use locks::{LockedRow, Unsettled};

/// The changes of one transaction and their before-images. Dropped without a commit, it rolls back.
pub struct Transaction {
    store: Arc<PageStore>,
    /// What all versions made by the transaction point to.
    status: Arc<StatusCell>,
    /// Whether it ever asked for an explicit lock.
    has_locks: bool,
    /// Rows that it has locked; counted again if it released them and locked them again.
    rows_locked: usize,
    /// So many of them are a reason to lock a whole tree.
    next_escalation: usize,
    patience: Patience,
    /// Ends the user of the transaction, if it keeps too much of the log.
    end: Option<EndTransaction>,
    /// What a change fails because of stays as it is until the transaction ends.
    keeps_reasons: bool,
    /// Held from the first change on.
    permit: Option<ChangePermit>,
    /// Trees that were changed.
    trees: Vec<Arc<Tree>>,
    /// Deletes among the changes.
    deletes: usize,
    /// Changes of followed trees among them.
    followed: usize,
    /// Something was said that belongs to the transaction.
    is_annotated: bool,
    /// Followers of changes do not learn of it.
    is_hidden: bool,
    undo: UndoStack,
    /// Where it was last in the trees that it visits.
    hints: LeafHints,
    /// What its reads see that have one view to its end.
    kept_view: Option<ReadView>,
    /// Commits up to here it may have seen, though they were not durable then.
    seen: Lsn,
    /// Something about this transaction is in the log.
    is_logged: bool,
    /// Why a rollback has failed: only the next start can roll back the rest.
    broken: Option<StorageError>,
    limit: usize,
}

impl Transaction {
    pub(crate) fn new(store: Arc<PageStore>, limit: usize) -> Transaction {
        let status = StatusCell::new(store.new_transaction_id());
        Transaction {
            store,
            status,
            has_locks: false,
            rows_locked: 0,
            next_escalation: ESCALATION_ROWS,
            patience: DEFAULT_LOCK_WAIT.into(),
            end: None,
            keeps_reasons: false,
            permit: None,
            trees: Vec::new(),
            deletes: 0,
            followed: 0,
            is_annotated: false,
            is_hidden: false,
            undo: UndoStack::default(),
            hints: LeafHints::default(),
            kept_view: None,
            seen: Lsn(0),
            is_logged: false,
            broken: None,
            limit,
        }
    }

    /// A transaction that a crash has ended, to be rolled back. `trees` are those that it changed.
    pub(crate) fn recovered(
        store: Arc<PageStore>,
        id: TransactionId,
        undo: UndoStack,
        trees: Vec<Arc<Tree>>,
    ) -> Transaction {
        store.log.reserve(rollback_bytes(undo.bytes()));
        Transaction {
            status: StatusCell::new(id),
            store,
            has_locks: false,
            rows_locked: 0,
            next_escalation: ESCALATION_ROWS,
            patience: DEFAULT_LOCK_WAIT.into(),
            end: None,
            keeps_reasons: false,
            permit: None,
            trees,
            deletes: 0,
            followed: 0,
            is_annotated: false,
            is_hidden: false,
            undo,
            hints: LeafHints::default(),
            kept_view: None,
            seen: Lsn(0),
            is_logged: true,
            broken: None,
            limit: usize::MAX,
        }
    }

    /// The transaction's number, if it has changed something.
    pub fn id(&self) -> Option<TransactionId> {
        self.permit.is_some().then(|| self.status.id())
    }

    /// The transaction's number, by which its locks are known.
    pub fn number(&self) -> TransactionId {
        self.status.id()
    }

    /// The rows that it changes, for others to look at.
    pub fn changed_rows(&self) -> ChangedRows {
        ChangedRows(Arc::clone(&self.status))
    }

    /// Whether others may wait until it ends: it has locked something, or changed it.
    pub fn keeps_others_waiting(&self) -> bool {
        self.has_locks || self.permit.is_some()
    }

    pub(crate) fn status(&self) -> &Arc<StatusCell> {
        &self.status
    }

    /// The leaves that the transaction has visited last.
    #[inline]
    pub(crate) fn leaf_hints(&mut self) -> &mut LeafHints {
        &mut self.hints
    }

    /// A view of what has committed by now, durably, and of everything that this transaction has changed and will
    /// change. It shows at least what [`Self::view_to_lock`] and the locks of rows have shown.
    ///
    /// # Errors
    /// As [`Self::view_to_lock`].
    pub fn read_view(&self) -> Result<ReadView> {
        let transactions = &self.store.transactions;
        match self.seen > transactions.snapshots.newest() {
            true => self.view_ahead(),
            false => ReadView::take(&transactions.snapshots, Some(self.status.clone())),
        }
    }

    /// As [`Self::read_view`], also of what has committed and is not durable yet: for a statement that locks or changes
    /// what it finds. The transaction does not end before that is durable.
    ///
    /// # Errors
    /// `TooManySnapshots`. Why no changes are accepted, if the view would show what may never become durable.
    pub fn view_to_lock(&mut self) -> Result<ReadView> {
        let view = self.view_ahead()?;
        self.seen = self.seen.max(view.timestamp().unwrap_or_default());
        Ok(view)
    }

    fn view_ahead(&self) -> Result<ReadView> {
        let transactions = &self.store.transactions;
        let view = transactions.view_ahead(&self.status, self.seen)?;
        if view.timestamp() > Some(transactions.snapshots.newest()) {
            self.store.check_changes()?;
        }
        Ok(view)
    }

    /// The view that the transaction's reads keep to its end, taken at the first call. A transaction that changes an
    /// entry that others have changed since shows all that belongs to it: see [`Self::kept_view`].
    ///
    /// # Errors
    /// `TooManySnapshots`.
    pub fn keep_view(&mut self) -> Result<ReadView> {
        match &self.kept_view {
            Some(view) => Ok(view.clone()),
            None => Ok(self.kept_view.insert(self.read_view()?).clone()),
        }
    }

    /// The view of [`Self::keep_view`], if there is one. It shows the transaction's own changes on top of a past that
    /// others may have changed before. So an entry that the transaction has not changed is seen as it was, though
    /// another one that belongs to it was changed.
    pub fn kept_view(&self) -> Option<&ReadView> {
        self.kept_view.as_ref()
    }

    /// What to do from now on when a lock is not free. At first: wait for at most 50 seconds.
    pub fn set_lock_wait(&mut self, wait: LockWait) {
        self.patience.wait = wait;
    }

    /// What the transaction does when a lock is not free.
    pub fn lock_wait(&self) -> LockWait {
        self.patience.wait
    }

    /// What is asked, while the transaction waits, whether it shall stop waiting with `LockWaitInterrupted`.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.patience.interrupt = Some(interrupt);
    }

    /// Another transaction of the same storage, for a change that stays whatever becomes of this one.
    pub fn begin_another(&self) -> Transaction {
        Transaction::new(Arc::clone(&self.store), self.limit)
    }

    /// What is called, by another thread, when the transaction keeps more of the log than
    /// [`max_pinned_log_bytes`](crate::StorageOptions::max_pinned_log_bytes), because it began to change something so
    /// long ago. The call shall see to it that the transaction is rolled back soon. To be set before the first change.
    pub fn on_pinned_log(&mut self, end: EndTransaction) {
        self.end = Some(end);
    }

    /// Keeps the transaction's changes, durably, and purges the ghosts it made.
    ///
    /// # Errors
    /// As [`PendingCommit::finish`].
    pub fn commit(self) -> Result<()> {
        match self.commit_later()? {
            Some(pending) => pending.finish(),
            None => Ok(()),
        }
    }

    /// As [`commit`](Self::commit), for callers that act on the outcome at once, and free what the other outcome would
    /// still need. So a commit that finds no space in the log must not become durable later: nothing does, until the
    /// next start finds out.
    ///
    /// # Errors
    /// As [`PendingCommit::finish`], but all of them are final.
    pub fn commit_or_stop(self) -> Result<()> {
        match self.commit_later()? {
            Some(pending) => pending.finish_or_stop(),
            None => Ok(()),
        }
    }

    /// As [`commit`](Self::commit), but waits for nothing: the rest is to be [finished](PendingCommit::finish), by any
    /// thread, before the commit is acknowledged. `None`: the transaction has changed nothing.
    ///
    /// # Errors
    /// What the transaction may have seen of others could not be made durable.
    pub fn commit_later(self) -> Result<Option<PendingCommit>> {
        let mut transaction = self;
        transaction.kept_view = None;
        transaction.check_whole()?;
        if transaction.undo.len() == 0 {
            // There were none, or all of them are undone: nothing has to become durable.
            transaction.end_without_changes();
            match transaction.has_locks {
                // They may have shown it anything.
                true => transaction.store.show_commits()?,
                false => transaction.store.show_commits_to(transaction.seen)?,
            }
            return Ok(None);
        }
        let (store, status) = (&transaction.store, &transaction.status);
        let has_something = transaction.followed > 0 || transaction.is_annotated;
        let is_numbered = has_something && !transaction.is_hidden;
        let lsn = store.log.append_commit(status.id(), is_numbered, |lsn| {
            store.transactions.commit_at(status, lsn);
        });
        store.end_transaction(status.id());
        // Rows are free for others before the commit is durable; snapshots see it only afterwards.
        let locks = &store.transactions.row_locks;
        locks.release_all(status, transaction.has_locks);
        Ok(Some(PendingCommit { transaction, lsn }))
    }

    /// Takes the transaction's changes back, newest first.
    ///
    /// # Errors
    /// A page, or undo that was spilled, could not be read; from then on the storage accepts no changes. Or it is
    /// rolled back, but what the transaction may have seen of others could not be made durable.
    pub fn rollback(mut self) -> Result<()> {
        self.rollback_all()?;
        self.store.show_commits_to(self.seen)
    }

    fn rollback_all(&mut self) -> Result<()> {
        self.kept_view = None;
        // If this fails, the versions of what is left stay as well, and no reader ever sees what is left.
        self.take_back_to(0)?;
        self.end_without_changes();
        Ok(())
    }

    /// There is nothing, or nothing any more, that others could see.
    fn end_without_changes(&mut self) {
        if self.is_logged {
            // No thread waits for it: without it, recovery finds nothing left to roll back.
            let record = frame::encode_end_of_rollback(self.status.id());
            self.store.log.append(&record);
        }
        let transactions = &self.store.transactions;
        self.status.roll_back();
        transactions
            .row_locks
            .release_all(&self.status, self.has_locks);
        self.store.end_transaction(self.status.id());
        self.permit = None;
    }

    /// A mark for [`rollback_to`](Self::rollback_to).
    pub fn savepoint(&self) -> usize {
        self.undo.len()
    }

    /// Rolls back the changes made after the mark. Transactions that wait for one of them need not wait for the end.
    ///
    /// # Errors
    /// As [`rollback`](Self::rollback).
    pub fn rollback_to(&mut self, savepoint: usize) -> Result<()> {
        self.take_back_to(savepoint)?;
        let locks = &self.store.transactions.row_locks;
        locks.changes_taken_back(&self.status);
        Ok(())
    }

    /// What could not be rolled back is neither kept nor said to be gone: either would keep the next start from rolling
    /// it back.
    fn check_whole(&self) -> Result<()> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    fn take_back_to(&mut self, savepoint: usize) -> Result<()> {
        self.check_whole()?;
        while self.undo.len() > savepoint {
            // What was spilled stays as it is, and in memory it is noted what of it is gone. That is no change, and
            // rolling back goes on where there is no room.
            if self.undo.len().is_multiple_of(UNDONE_BETWEEN_LOOKS)
                && let Err(error) = self.store.transactions.make_room()
            {
                tracing::debug!("a rollback has no room for versions: {error}");
            }
            let result = self.undo.bring_back().and_then(|()| self.undo_last());
            if let Err(error) = result {
                self.store.refuse_changes(error.clone());
                // What is left cannot be rolled back either: forget it, so that dropping does not try.
                self.store.log.unreserve(rollback_bytes(self.undo.bytes()));
                self.undo.clear();
                self.broken = Some(error.clone());
                // It changes nothing more either.
                self.permit = None;
                // What it has changed stays its own, but no transaction waits for its locks.
                let locks = &self.store.transactions.row_locks;
                locks.give_all_back(&self.status);
                return Err(error);
            }
            self.pop();
            self.store.log.limit_buffer();
        }
        Ok(())
    }

    /// Bytes of before-images held.
    pub fn bytes(&self) -> usize {
        self.undo.bytes()
    }

    /// Called before the first page of a change is latched: makes room for all that the change leaves behind.
    #[inline]
    pub(crate) fn begin_change(&mut self, tree: &Tree) -> Result<()> {
        let store = tree.store();
        store.transactions.make_room()?;
        if self.undo.is_large() {
            self.undo.spill(&store.transactions.spill_file)?;
        }
        self.make_log_room(store)
    }

    /// Makes room for a frame of the transaction.
    #[inline]
    fn make_log_room(&mut self, store: &Arc<PageStore>) -> Result<()> {
        if self.permit.is_some() {
            return store.make_log_room();
        }
        self.permit = Some(store.begin_changes()?);
        store.begin_transaction(self.status.id(), self.end.take());
        Ok(())
    }

    /// Followers of [changes](crate::ChangeFeed) do not learn of the transaction: its commit gets no number.
    pub fn hide_from_followers(&mut self) {
        self.is_hidden = true;
    }

    /// Says something to followers of [changes](crate::ChangeFeed), at this place of the log; nothing where changes
    /// are not followed. `of_transaction`: it belongs to what the transaction does, which gets a number if it has
    /// changed anything at all. Savepoints do not take it back. Otherwise it is true whatever becomes of the
    /// transaction.
    ///
    /// # Errors
    /// Those of a change.
    pub fn annotate(&mut self, bytes: &[u8], of_transaction: bool) -> Result<()> {
        self.write_annotation(bytes, of_transaction)?;
        self.is_annotated |= of_transaction && self.store.follows_changes();
        Ok(())
    }

    /// Says something about the changes that come next, as [`annotate`](Self::annotate) does. It is no reason for a
    /// number.
    ///
    /// # Errors
    /// Those of a change.
    pub fn remark_on_change(&mut self, bytes: &[u8]) -> Result<()> {
        match self.is_hidden {
            true => Ok(()),
            false => self.write_annotation(bytes, true),
        }
    }

    fn write_annotation(&mut self, bytes: &[u8], of_transaction: bool) -> Result<()> {
        if !self.store.follows_changes() {
            return Ok(());
        }
        let store = Arc::clone(&self.store);
        let mut frame = Vec::new();
        let pieces = bytes.chunks(frame::MAX_ANNOTATION_BYTES);
        let last = pieces.len().saturating_sub(1);
        for (place, bytes) in pieces.enumerate() {
            self.make_log_room(&store)?;
            let piece = Piece {
                is_first: place == 0,
                is_last: place == last,
                is_of_transaction: of_transaction,
            };
            frame::encode_annotation(&mut frame, self.status.id(), piece, bytes);
            store.log.append(&frame);
            self.is_logged = true;
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
        let record_bytes = UndoRecord::bytes(key, before);
        if self.undo.bytes() + record_bytes > self.limit {
            return Err(StorageError::TransactionTooLarge { limit: self.limit });
        }
        if !self.trees.iter().any(|known| known.id() == tree.id()) {
            self.trees.push(tree.shared()?);
        }
        self.undo.push(UndoRecord {
            tree: tree.id(),
            change,
            key,
            before,
        });
        self.store.log.reserve(rollback_bytes(record_bytes));
        self.deletes += usize::from(change == Change::Delete);
        self.followed += usize::from(tree.is_followed());
        if tree.holds_rows() {
            self.status.set_changed_rows(self.status.changed_rows() + 1);
        }
        self.is_logged = true;
        Ok(())
    }

    /// Forgets the last change: it was not made, or it was undone.
    pub(crate) fn pop(&mut self) {
        let Some(record) = self.undo.last() else {
            return;
        };
        let is_delete = record.change == Change::Delete;
        let tree = self.tree(record.tree).ok();
        let is_followed = self.followed > 0 && tree.is_some_and(|tree| tree.is_followed());
        if tree.is_some_and(|tree| tree.holds_rows()) {
            let rows = self.status.changed_rows();
            self.status.set_changed_rows(rows.saturating_sub(1));
        }
        self.deletes = self.deletes.saturating_sub(usize::from(is_delete));
        self.followed -= usize::from(is_followed);
        let before = self.undo.bytes();
        self.undo.pop();
        let popped = before - self.undo.bytes();
        self.store.log.unreserve(rollback_bytes(popped));
    }

    fn tree(&self, id: TreeId) -> Result<&Arc<Tree>> {
        let known = self.trees.iter().find(|tree| tree.id() == id);
        known.ok_or(StorageError::NoSuchTree { tree: id })
    }

    fn undo_last(&self) -> Result<()> {
        let Some(record) = self.undo.last() else {
            return Ok(());
        };
        let tree = self.tree(record.tree)?;
        match record.change {
            Change::Insert => tree.remove(record.key, Some(&self.status))?,
            Change::Revive => tree.hide(record.key, &self.status)?,
            Change::Update | Change::Delete => {
                tree.restore(record.key, record.before, &self.status)?
            }
            Change::UpdatePart => {
                // All later changes are undone, and no other transaction may change the key: this is the value that the
                // change left.
                let mut value = Vec::new();
                if !tree.get(record.key, &mut value)? || !record.put_part_back(&mut value) {
                    let reason = "an entry is not what the log has made of it";
                    return Err(self.store.malformed(tree.id(), tree.root(), reason));
                }
                tree.restore(record.key, &value, &self.status)?
            }
        };
        Ok(())
    }

    /// The transaction is committed: its undo goes, and the ghosts that it made.
    fn forget_changes(&mut self) {
        // The collector knows of all leaves with ghosts; a long transaction leaves them to it.
        if self.deletes > 0
            && !self.undo.is_spilled()
            && let Err(error) = self.purge()
        {
            tracing::warn!("ghosts of an ended transaction stay for now: {error}");
        }
        self.store.log.unreserve(rollback_bytes(self.undo.bytes()));
        self.undo.clear();
        self.permit = None;
    }

    /// Purges the leaves on which ghosts were made. What fails here stays garbage, for a later visitor.
    fn purge(&self) -> Result<()> {
        let mut purged: Option<(TreeId, Fences)> = None;
        self.undo.for_each(|record| {
            let is_purged = purged
                .as_ref()
                .is_some_and(|(tree, fences)| *tree == record.tree && fences.cover(record.key));
            if record.change == Change::Delete && !is_purged {
                let fences = self.tree(record.tree)?.purge_leaf(record.key)?;
                purged = Some((record.tree, fences));
            }
            Ok(())
        })
    }
}

/// A rollback looks so often whether old versions have to leave memory.
const UNDONE_BETWEEN_LOOKS: usize = 1024;

/// Deletes, of rows and of entries of indexes, whose ghosts another thread may purge at the commit.
const SHORT_COMMIT_DELETES: usize = 32;

/// How many rows a transaction has changed, as other threads see it.
#[derive(Clone, Debug)]
pub struct ChangedRows(Arc<StatusCell>);

impl ChangedRows {
    /// Inserts, updates and deletes of rows that were not undone; a row that is changed twice counts twice.
    pub fn count(&self) -> u64 {
        self.0.changed_rows()
    }
}

/// A transaction whose commit record is in the log, but perhaps not on the disk. Others may change its rows already;
/// snapshots do not see what it did. To be finished: what is dropped instead becomes visible with a later commit, and
/// leaves its ghosts to the collector.
#[must_use]
pub struct PendingCommit {
    transaction: Transaction,
    /// Where its commit record ends.
    lsn: Lsn,
}

impl PendingCommit {
    /// Whether [`finish`](Self::finish) would have to wait for the log.
    pub fn has_to_wait(&self) -> bool {
        self.transaction.store.newest_durable() < self.lsn
    }

    /// Whether [`finish`](Self::finish) has little to do besides waiting, so that a thread that finishes others'
    /// commits may do it: it purges the ghosts of few deletes.
    pub fn is_short(&self) -> bool {
        self.transaction.deletes <= SHORT_COMMIT_DELETES
    }

    /// Waits until the commit is durable, shows it to snapshots, and purges the ghosts that the transaction made. What
    /// is written for one commit serves all that were appended before.
    ///
    /// # Errors
    /// The log could not be made durable; whether the changes will be found after a restart is unknown, and the storage
    /// accepts no more of them. After `DiskFull` it does: the changes become durable when there is space again.
    pub fn finish(mut self) -> Result<()> {
        let store = &self.transaction.store;
        let result = store.make_commit_durable(self.lsn);
        if result.is_ok() {
            store.transactions.snapshots.advance_to(self.lsn);
        }
        self.transaction.forget_changes();
        result
    }

    /// As [`finish`](Self::finish), where [no commit is to become durable later](Transaction::commit_or_stop).
    ///
    /// # Errors
    /// As [`finish`](Self::finish), but all of them are final.
    pub fn finish_or_stop(self) -> Result<()> {
        let store = Arc::clone(&self.transaction.store);
        self.finish().inspect_err(|error| store.stop(error))
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.status.is_active() {
            // A commit that was not finished has something left.
            self.store.log.unreserve(rollback_bytes(self.undo.bytes()));
        } else if self.broken.is_none()
            && let Err(error) = self.rollback_all()
        {
            tracing::error!("a transaction could not be rolled back: {error}");
        }
    }
}

/// Room in the log for undoing changes with this much undo: each writes the value before once more, with a
/// mini-transaction around it.
fn rollback_bytes(undo_bytes: usize) -> u64 {
    2 * undo_bytes as u64
}
