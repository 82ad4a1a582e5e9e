//! What FLUSH TABLES WITH READ LOCK locks: everything, against changes.
//!
//! ```text
//!   a statement that changes something    changes: [------------------------]
//!   its commit, or a COMMIT of its own    commits:                    [----]
//!   FLUSH TABLES WITH READ LOCK           changes, once no such statement runs, then commits ... UNLOCK TABLES
//! ```
//!
//! As in MySQL, statements are waited for, and not transactions between two statements: those may go on until they
//! change something or commit, and wait there. Changes come before commits, so that a statement that waits for rows of
//! a transaction still sees that commit.
//!
//! Both are [table locks](crate::lock::table_lock) of no table. Statements and commits count as readers, which do not
//! conflict. The global lock is WRITE, of an owner that is no session, so that several sessions may have it.

use std::sync::Arc;

use crate::error::Result;
use crate::lock::table_lock::{
    Announced, Entered, LockRequest, SessionLock, SessionLockMode, SharedLock, TableLock,
};

/// The owner of the locks while some session has the global read lock.
const EVERYBODY: u64 = u64::MAX;

/// See the module's comment.
#[derive(Debug, Default)]
pub struct GlobalReadLock {
    changes: Arc<TableLock>,
    commits: Arc<TableLock>,
}

/// A statement that changes something is under way, until this is [returned](GlobalReadLock::end_change).
#[derive(Debug)]
#[must_use]
pub struct ChangeTicket {
    entered: Entered,
}

/// A commit is under way, until all can see it.
#[derive(Debug)]
pub struct CommitTicket {
    _shared: SharedLock,
}

/// Nothing changes while this lives.
#[derive(Debug)]
pub struct GlobalReadLocked {
    _commits: SessionLock,
    _changes: SessionLock,
}

impl GlobalReadLock {
    /// Begins a statement that changes something.
    ///
    /// # Errors
    /// `LockWaitTimeout`.
    pub fn begin_change(&self, request: LockRequest<'_>) -> Result<ChangeTicket> {
        let entered = self.changes.enter(request)?;
        Ok(ChangeTicket { entered })
    }

    /// Ends it.
    pub fn end_change(&self, ticket: ChangeTicket) {
        self.changes.leave(ticket.entered);
    }

    /// Begins a commit of changes.
    ///
    /// # Errors
    /// `LockWaitTimeout`.
    pub fn begin_commit(&self, request: LockRequest<'_>) -> Result<CommitTicket> {
        let shared = self.commits.shared(request)?;
        Ok(CommitTicket { _shared: shared })
    }

    /// Says that a session is about to [lock](Self::lock) it, until what is returned is dropped.
    pub fn announce(&self) -> Announced {
        self.changes.announce(SessionLockMode::Write)
    }

    /// Waits for the statements that change something, and then for commits.
    ///
    /// # Errors
    /// `LockWaitTimeout`.
    pub fn lock(&self, request: LockRequest<'_>) -> Result<GlobalReadLocked> {
        let (mode, wait) = (SessionLockMode::Write, request.wait);
        let changes = self.changes.for_session(mode, EVERYBODY, wait)?;
        let _announced = self.commits.announce(mode);
        Ok(GlobalReadLocked {
            _commits: self.commits.for_session(mode, EVERYBODY, wait)?,
            _changes: changes,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::error::TableError;

    #[test]
    fn several_have_it_and_nobody_changes_anything_before_the_last_gives_it_back() {
        let global = GlobalReadLock::default();
        let no_wait = LockRequest::from(Duration::ZERO);
        let ticket = global.begin_change(no_wait).unwrap();
        assert!(matches!(
            global.lock(no_wait),
            Err(TableError::LockWaitTimeout)
        ));
        global.end_change(ticket);
        let first = global.lock(no_wait).unwrap();
        let second = global.lock(no_wait).unwrap();
        drop(first);
        assert!(global.begin_change(no_wait).is_err());
        assert!(global.begin_commit(no_wait).is_err());
        drop(second);
        assert!(global.begin_commit(no_wait).is_ok());
        let ticket = global.begin_change(no_wait).unwrap();
        global.end_change(ticket);
    }

    #[test]
    fn a_commit_goes_on_while_statements_are_waited_for() {
        let global = GlobalReadLock::default();
        let soon = LockRequest::from(Duration::from_millis(200));
        let ticket = global.begin_change(soon).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| global.lock(soon).is_err());
            while !waiting.is_finished() {
                assert!(global.begin_commit(soon).is_ok());
            }
            assert!(waiting.join().unwrap());
        });
        global.end_change(ticket);
    }
}
