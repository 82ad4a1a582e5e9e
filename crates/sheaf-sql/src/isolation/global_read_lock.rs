//! Changes and commits wait while some session has the global read lock (FLUSH TABLES WITH READ LOCK).

use std::time::Duration;

use sheaf_table::global_read_lock::CommitTicket;

use crate::error::Result;
use crate::isolation::table_wait::WaitsFor;
use crate::session::Session;

/// What keeps the global read lock out, and what it keeps out.
impl Session {
    /// The running statement is going to change something: waits while some session has the global read lock.
    pub(crate) fn begin_change(&mut self) -> Result<()> {
        if self.table_locks.change_ticket.is_some() || self.table_locks.locks_ticket.is_some() {
            return Ok(());
        }
        let limit = || Duration::from_secs(self.variables.lock_wait_timeout_seconds());
        let global = self.engine.catalog().global_read_lock();
        let is_first = self.holds_no_table();
        let ticket =
            self.handle
                .wait_within(limit, WaitsFor::GlobalReadLock, is_first, |request| {
                    global.begin_change(request)
                })?;
        self.table_locks.change_ticket = Some(ticket);
        Ok(())
    }

    /// Changes are about to be committed.
    pub(crate) fn begin_commit(&self) -> Result<CommitTicket> {
        let limit = || Duration::from_secs(self.variables.lock_wait_timeout_seconds());
        let global = self.engine.catalog().global_read_lock();
        self.handle
            .wait_within(limit, WaitsFor::CommitLock, true, |request| {
                global.begin_commit(request)
            })
    }
}
