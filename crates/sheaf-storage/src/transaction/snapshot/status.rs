//! The status of a transaction: one word, which all of its versions point to.

use std::sync::Arc;

use crate::page::Lsn;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::transaction::TransactionId;

/// How far a transaction has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TransactionStatus {
    Active,
    /// At this position of the log.
    Committed(Lsn),
    /// All its changes have been rolled back.
    RolledBack,
}

/// Words that are no position in any log.
const ACTIVE: u64 = u64::MAX;
const ROLLED_BACK: u64 = u64::MAX - 1;

/// One transaction's status. It goes from active to one of the others, once.
#[derive(Debug)]
pub(crate) struct StatusCell {
    id: TransactionId,
    word: AtomicU64,
    /// Rows that the transaction has changed, inserted or deleted, and not undone. It alone writes here.
    changed_rows: AtomicU64,
}

impl StatusCell {
    pub(crate) fn new(id: TransactionId) -> Arc<StatusCell> {
        Arc::new(StatusCell {
            id,
            word: AtomicU64::new(ACTIVE),
            changed_rows: AtomicU64::new(0),
        })
    }

    pub(crate) fn id(&self) -> TransactionId {
        self.id
    }

    // Sequentially consistent, here and below. A waiter announces itself before it looks at the status, and the
    // transaction looks for waiters after it has set the status. One of the two sees the other.
    pub(crate) fn status(&self) -> TransactionStatus {
        match self.word.load(Ordering::SeqCst) {
            ACTIVE => TransactionStatus::Active,
            ROLLED_BACK => TransactionStatus::RolledBack,
            lsn => TransactionStatus::Committed(Lsn(lsn)),
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.status() == TransactionStatus::Active
    }

    pub(crate) fn is_rolled_back(&self) -> bool {
        self.status() == TransactionStatus::RolledBack
    }

    /// The transaction is committed. Called where the log assigns `lsn`, before a snapshot can be that new.
    pub(crate) fn commit(&self, lsn: Lsn) {
        debug_assert!(self.is_active() && lsn.0 < ROLLED_BACK);
        self.word.store(lsn.0, Ordering::SeqCst);
    }

    /// All changes of the transaction have been rolled back.
    pub(crate) fn roll_back(&self) {
        debug_assert!(self.is_active());
        self.word.store(ROLLED_BACK, Ordering::SeqCst);
    }

    pub(crate) fn changed_rows(&self) -> u64 {
        self.changed_rows.load(Ordering::Relaxed)
    }

    pub(crate) fn set_changed_rows(&self, rows: u64) {
        self.changed_rows.store(rows, Ordering::Relaxed);
    }

    /// Whether a snapshot sees what the transaction did. A transaction that is active while a snapshot is taken
    /// commits later than it, so the answer for one snapshot never changes.
    #[inline]
    pub(crate) fn is_visible_at(&self, snapshot: Lsn) -> bool {
        self.word.load(Ordering::Acquire) <= snapshot.0
    }
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_visible_from_its_own_timestamp_on() {
        let cell = StatusCell::new(TransactionId(1));
        assert!(cell.is_active() && !cell.is_visible_at(Lsn(1 << 60)));
        cell.commit(Lsn(7));
        assert_eq!(cell.status(), TransactionStatus::Committed(Lsn(7)));
        assert!(!cell.is_visible_at(Lsn(6)) && cell.is_visible_at(Lsn(7)));
    }

    #[test]
    fn what_was_rolled_back_is_never_visible() {
        let cell = StatusCell::new(TransactionId(1));
        cell.roll_back();
        assert_eq!(cell.status(), TransactionStatus::RolledBack);
        assert!(!cell.is_visible_at(Lsn(1 << 60)));
    }
}
