//! Opening tables, and waiting for those that others keep.
//!
//! ```text
//!   attempt -> slice of a wait -> killed? too long? a deadlock? -> attempt -> ... -> the table's guard
//! ```
//!
//! A table is kept as it is while a statement or a transaction uses it. A session that wants to change its
//! definition, or comes after one that does, waits here: in slices, so that KILL is noticed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sheaf_storage::StorageError;
use sheaf_table::{
    BorrowedReadGuard, Catalog, ChangeGuard, DefinitionChange, LockRequest, ReadGuard,
    RowWriteGuard, Table, TableError, WAITING_FOR_TABLE, WriteGuard,
};

use crate::error::{Result, SqlError};
use crate::isolation::transaction::Transactions;
use crate::session::{Session, SessionHandle};

/// A wait for a lock is cut into pieces of this length, so that KILL is noticed.
const LOCK_WAIT_SLICE: Duration = Duration::from_millis(50);

/// What a session waits for, for SHOW PROCESSLIST.
#[derive(Clone, Copy)]
pub(crate) enum WaitsFor {
    Table,
    GlobalReadLock,
    CommitLock,
}

impl WaitsFor {
    fn state(self) -> &'static str {
        match self {
            WaitsFor::Table => WAITING_FOR_TABLE,
            WaitsFor::GlobalReadLock => "Waiting for global read lock",
            WaitsFor::CommitLock => "Waiting for commit lock",
        }
    }
}

impl SessionHandle {
    /// Waits for a lock in slices, until a limit or a kill. `limit` is asked for when the wait has begun. `is_first`:
    /// no other session waits for this one. So it lets sessions pass that wait for LOCK TABLES or to change the table,
    /// for a while, and for half of the limit at most.
    pub(crate) fn wait_within<T>(
        &self,
        limit: impl Fn() -> Duration,
        what: WaitsFor,
        is_first: bool,
        mut attempt: impl FnMut(LockRequest<'_>) -> Result<T, TableError>,
    ) -> Result<T> {
        let mut request = LockRequest {
            is_first,
            session: self.id(),
            ..LockRequest::from(LOCK_WAIT_SLICE)
        };
        // The end of the first slice.
        let mut began: Option<Instant> = None;
        loop {
            match attempt(request) {
                Err(TableError::LockWaitTimeout) => {
                    self.cancel_flag().check()?;
                    if self.should_stop_waiting() {
                        return Err(SqlError::query_interrupted());
                    }
                    if began.is_none() {
                        sheaf_memory::waits_for_lock();
                    }
                    let waited = LOCK_WAIT_SLICE + began.get_or_insert_with(Instant::now).elapsed();
                    let limit = limit();
                    if waited >= limit {
                        return Err(SqlError::lock_wait_timeout());
                    }
                    request.is_first &= waited < limit / 2;
                    request.waited = waited;
                    self.set_state(what.state());
                }
                Err(error) => {
                    if matches!(error, TableError::Interrupted) {
                        self.cancel_flag().check()?;
                    }
                    return Err(error.into());
                }
                Ok(guard) => {
                    if began.is_some() {
                        self.set_state("executing");
                    }
                    return Ok(guard);
                }
            }
        }
    }
}

impl Transactions {
    /// After each slice of a wait for a table: it is a deadlock if the table's writer waits for a table that the
    /// transaction, or the statement, keeps as it is. As in MySQL, the change of the definition goes on.
    fn or_deadlock<T>(
        &self,
        table: &Table,
        opened: &[ChangeGuard],
        attempt: Result<T, TableError>,
    ) -> Result<T, TableError> {
        match attempt {
            Err(TableError::LockWaitTimeout) if self.would_deadlock(table, opened) => {
                Err(StorageError::Deadlock.into())
            }
            other => other,
        }
    }

    fn would_deadlock(&self, table: &Table, opened: &[ChangeGuard]) -> bool {
        let (reading, writing) = self.kept_tables();
        let mut writing = writing.iter().chain(opened);
        let mut reading = reading.iter();
        writing.any(|held| table.would_deadlock(held, true))
            || reading.any(|held| table.would_deadlock(held, false))
    }
}

impl Session {
    /// Waits for a lock of a table as long as the session does.
    fn wait_for_lock<T>(
        &self,
        is_first: bool,
        attempt: impl FnMut(LockRequest<'_>) -> Result<T, TableError>,
    ) -> Result<T> {
        let limit = || Duration::from_secs(self.variables.lock_wait_timeout_seconds());
        self.handle
            .wait_within(limit, WaitsFor::Table, is_first, attempt)
    }

    /// `is_first`: no other session waits for this one. Error 1100 if it has locked other tables.
    pub(crate) fn lock_for_read(&self, table: &Table, is_first: bool) -> Result<ReadGuard> {
        self.table_locks.check_is_locked(table)?;
        let definition = &table.definition;
        let catalog = self.catalog_of(definition);
        self.wait_for_lock(is_first, |request| {
            let opened = catalog.open_for_read(&definition.database, &definition.name, request);
            self.transactions.or_deadlock(table, &[], opened)
        })
    }

    /// [`Self::lock_for_read`] for a table that was looked up before; `None` if its definition has changed since.
    pub(crate) fn borrow_for_read<'t>(
        &self,
        table: &'t Table,
        is_first: bool,
    ) -> Result<Option<BorrowedReadGuard<'t>>> {
        self.wait_for_lock(is_first, |request| {
            let opened = Catalog::borrow_for_read(table, request);
            self.transactions.or_deadlock(table, &[], opened)
        })
    }

    /// Opens a table as the one writer of it.
    pub(crate) fn lock_for_write(&self, table: &Table) -> Result<WriteGuard> {
        let catalog = self.catalog_of(&table.definition);
        let (database, table) = (&table.definition.database, &table.definition.name);
        let limit = || {
            let table = catalog.table(database, table);
            self.variables
                .write_lock_wait(table.is_ok_and(|table| table.is_locked_by_session()))
        };
        let announced = DefinitionChange::default();
        self.handle
            .wait_within(limit, WaitsFor::Table, false, |request| {
                let request = LockRequest {
                    definition_change: Some(&announced),
                    ..request
                };
                catalog.open_for_write(database, table, request)
            })
    }

    /// Opens a table to change rows of it beside others; `None` if its definition has changed since it was looked up.
    /// `opened`: those that the statement has opened before.
    pub(crate) fn relock_for_change_of_rows(
        &self,
        table: &Arc<Table>,
        opened: &[ChangeGuard],
        is_first: bool,
    ) -> Result<Option<RowWriteGuard>> {
        let limit = || self.variables.write_lock_wait(table.is_locked_by_session());
        self.handle
            .wait_within(limit, WaitsFor::Table, is_first, |request| {
                let relocked = Catalog::reopen_for_row_writes(table, request);
                self.transactions.or_deadlock(table, opened, relocked)
            })
    }

    /// Runs a change of definitions, which waits for the statements that use the table.
    pub(crate) fn with_definition_lock<T>(
        &self,
        mut change: impl FnMut(LockRequest<'_>) -> Result<T, TableError>,
    ) -> Result<T> {
        let announced = DefinitionChange::default();
        let handle = &self.handle;
        let is_told_to_stop = || handle.cancel_flag().check().is_err();
        self.wait_for_lock(false, |request| {
            change(LockRequest {
                definition_change: Some(&announced),
                interrupt: Some(&is_told_to_stop),
                ..request
            })
        })
    }
}
