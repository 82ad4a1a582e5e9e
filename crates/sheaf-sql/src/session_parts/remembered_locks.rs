//! What a statement remembers of its locks: how its level locks, and in READ COMMITTED the rows that it has locked.
//!
//! A row that does not match any more once it is locked is released when the statement is through
//! (`locking/statement_locks.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;

use sheaf_storage::{LockWait, TreeId};
use sheaf_table::Table;

use crate::variables::Isolation;

/// Rows that a statement remembers to have locked, to release those that do not match. The others stay locked.
const MAX_REMEMBERED_LOCKS: usize = 1 << 16;

/// A row that the statement has locked and not changed.
pub(crate) struct KeptLock {
    pub(crate) table: Arc<Table>,
    /// The statement found it in its last attempt, locked it, and it was what the statement had read.
    pub(crate) matches: bool,
}

/// What a statement of this level locks, and has locked.
pub(crate) struct StatementLocks {
    pub(crate) isolation: Isolation,
    autocommit: bool,
    pub(crate) wait: LockWait,
    pub(crate) has_restarted: bool,
    /// READ COMMITTED: rows that were not locked before the statement.
    pub(crate) kept: BTreeMap<(TreeId, Vec<u8>), KeptLock>,
}

impl StatementLocks {
    pub(crate) fn new(isolation: Isolation, autocommit: bool, wait: LockWait) -> StatementLocks {
        StatementLocks {
            isolation,
            autocommit,
            wait,
            has_restarted: false,
            kept: BTreeMap::new(),
        }
    }

    pub(crate) fn start_again(&mut self) {
        self.has_restarted = true;
        for kept in self.kept.values_mut() {
            kept.matches = false;
        }
    }

    pub(crate) fn locks_searches(&self) -> bool {
        match self.isolation {
            Isolation::ReadUncommitted | Isolation::ReadCommitted => false,
            Isolation::RepeatableRead => !self.autocommit,
            Isolation::Serializable => true,
        }
    }

    /// Whether a change that reads more than the rows which it changes locks all that it has searched, also as a
    /// transaction of its own.
    pub(crate) fn locks_reads(&self) -> bool {
        self.isolation >= Isolation::RepeatableRead
    }

    fn gives_back_rows(&self) -> bool {
        self.isolation <= Isolation::ReadCommitted && !self.autocommit
    }

    pub(crate) fn remember(&mut self, table: &Arc<Table>, key: &[u8], is_new: bool, matches: bool) {
        if !self.gives_back_rows() {
            return;
        }
        let name = (table.clustered.id(), key.to_vec());
        let has_room = self.kept.len() < MAX_REMEMBERED_LOCKS;
        match self.kept.get_mut(&name) {
            Some(kept) => kept.matches = matches,
            None if is_new && has_room => {
                let table = Arc::clone(table);
                self.kept.insert(name, KeptLock { table, matches });
            }
            None => {}
        }
    }
}
