//! Opening tables: what a statement, or LOCK TABLES, holds of a table while it uses it.
//!
//! A guard holds the table's [locks](crate::lock::table_lock) and the version of its definition. Whether that is still
//! the newest version is asked when the lock is held.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sheaf_storage::Lsn;

use crate::catalog::{Catalog, QualifiedName};
use crate::error::Result;
use crate::lock::table_lock::{
    Announced, BorrowedSharedLock, LockRequest, RowWriterLock, SessionLock, SessionLockMode,
    SharedLock, WriterLock,
};
use crate::table::Table;

/// A table opened by a statement that reads it: its definition stays until the guard is dropped.
pub struct ReadGuard {
    table: Arc<Table>,
    _shared: SharedLock,
}

impl std::ops::Deref for ReadGuard {
    type Target = Arc<Table>;

    fn deref(&self) -> &Arc<Table> {
        &self.table
    }
}

/// A [`ReadGuard`] of a table that its holder keeps.
pub struct BorrowedReadGuard<'a> {
    _shared: BorrowedSharedLock<'a>,
}

/// A table opened by a transaction that changes rows of it beside others, and locks every row before it changes it
/// ([`Table::lock_row`]). The definition stays until the guard is dropped.
pub struct RowWriteGuard {
    table: Arc<Table>,
    // Dropped in this order, the reverse of the order in which they are taken.
    _shared: SharedLock,
    _rows: RowWriterLock,
}

impl RowWriteGuard {
    /// The same, where the table is used under another [time zone](Table::in_time_zone), if `table` is of this
    /// version.
    pub fn used_as(mut self, table: &Arc<Table>) -> RowWriteGuard {
        if table.is_version_of(&self.table) {
            self.table = Arc::clone(table);
        }
        self
    }
}

impl std::ops::Deref for RowWriteGuard {
    type Target = Arc<Table>;

    fn deref(&self) -> &Arc<Table> {
        &self.table
    }
}

/// A table opened by the one statement that may write it now; others may read it.
pub struct WriteGuard {
    pub(crate) table: Arc<Table>,
    // Dropped in this order, the reverse of the order in which they are taken.
    shared: Option<SharedLock>,
    pub(crate) writer: WriterLock,
}

impl WriteGuard {
    /// Opens a table that no other session knows yet.
    pub(crate) fn of_new(table: Arc<Table>) -> Result<WriteGuard> {
        table.publish(Lsn(0));
        let writer = table.state.lock.writer(Duration::ZERO.into())?;
        let shared = table.state.lock.shared(Duration::ZERO.into())?;
        Ok(WriteGuard {
            table,
            shared: Some(shared),
            writer,
        })
    }

    /// The same, where the table is used under another [time zone](Table::in_time_zone), if `table` is of this
    /// version.
    pub fn used_as(mut self, table: &Arc<Table>) -> WriteGuard {
        if table.is_version_of(&self.table) {
            self.table = Arc::clone(table);
        }
        self
    }

    /// Gives the shared lock back, so that the exclusive one can be taken.
    pub(crate) fn unlock_shared(&mut self) {
        self.shared = None;
    }
}

impl std::ops::Deref for WriteGuard {
    type Target = Arc<Table>;

    fn deref(&self) -> &Arc<Table> {
        &self.table
    }
}

impl Catalog {
    /// Opens a table to read it, waiting at most `wait` for DDL on it.
    ///
    /// # Errors
    /// `UnknownDatabase`, `UnknownTable`, `LockWaitTimeout`.
    pub fn open_for_read<'w>(
        &self,
        database: &str,
        name: &str,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<ReadGuard> {
        let wait = wait.into();
        loop {
            let table = self.table(database, name)?;
            // While this waited the table may have changed.
            if let Some(guard) = Catalog::reopen_for_read(&table, wait)? {
                return Ok(guard);
            }
        }
    }

    /// As [`open_for_read`](Self::open_for_read), for a table that was looked up before; `None` if its definition has
    /// changed since.
    ///
    /// # Errors
    /// `LockWaitTimeout`.
    pub fn reopen_for_read<'w>(
        table: &Arc<Table>,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<Option<ReadGuard>> {
        let wait = wait.into();
        let shared = table.state.lock.shared(wait)?;
        Ok(table.is_current().then(|| ReadGuard {
            table: Arc::clone(table),
            _shared: shared,
        }))
    }

    /// As [`reopen_for_read`](Self::reopen_for_read), for a caller that keeps the table itself: nothing is written that
    /// readers share.
    ///
    /// # Errors
    /// `LockWaitTimeout`.
    pub fn borrow_for_read<'w>(
        table: &Table,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<Option<BorrowedReadGuard<'_>>> {
        let wait = wait.into();
        let shared = table.state.lock.borrow_shared(wait)?;
        Ok(table
            .is_current()
            .then_some(BorrowedReadGuard { _shared: shared }))
    }

    /// Opens a table to write it, waiting at most `wait` each for other writers and DDL.
    ///
    /// # Errors
    /// `UnknownDatabase`, `UnknownTable`, `LockWaitTimeout`.
    pub fn open_for_write<'w>(
        &self,
        database: &str,
        name: &str,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<WriteGuard> {
        let wait = wait.into();
        loop {
            let (table, writer) = self.lock_writer(database, name, wait)?;
            let shared = table.state.lock.shared(wait)?;
            if table.is_current() {
                return Ok(WriteGuard {
                    table,
                    shared: Some(shared),
                    writer,
                });
            }
        }
    }

    /// As [`open_for_write`](Self::open_for_write), at a moment when no other session uses the table. What is loaded
    /// enters at another such moment; where transactions keep the table, it may not come for long.
    ///
    /// # Errors
    /// As [`open_for_write`](Self::open_for_write), and `Interrupted`.
    pub fn open_for_load<'w>(
        &self,
        database: &str,
        name: &str,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<WriteGuard> {
        let wait = wait.into();
        let (table, writer) = self.lock_writer(database, name, wait)?;
        drop(writer.exclusive(wait)?);
        // The writer keeps the definition.
        let shared = table.state.lock.shared(wait)?;
        Ok(WriteGuard {
            table,
            shared: Some(shared),
            writer,
        })
    }

    /// Opens a table for changes of rows that others may change rows beside; waits for DDL and loads.
    ///
    /// # Errors
    /// `UnknownDatabase`, `UnknownTable`, `LockWaitTimeout`.
    pub fn open_for_row_writes<'w>(
        &self,
        database: &str,
        name: &str,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<RowWriteGuard> {
        let wait = wait.into();
        loop {
            let table = self.table(database, name)?;
            if let Some(guard) = Catalog::reopen_for_row_writes(&table, wait)? {
                return Ok(guard);
            }
        }
    }

    /// As [`open_for_row_writes`](Self::open_for_row_writes), for a table that was looked up before; `None` if its
    /// definition has changed since.
    ///
    /// # Errors
    /// `LockWaitTimeout`.
    pub fn reopen_for_row_writes<'w>(
        table: &Arc<Table>,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<Option<RowWriteGuard>> {
        let wait = wait.into();
        let rows = table.state.lock.row_writer(wait)?;
        let shared = table.state.lock.shared(wait)?;
        Ok(table.is_current().then(|| RowWriteGuard {
            table: Arc::clone(table),
            _shared: shared,
            _rows: rows,
        }))
    }

    pub(crate) fn lock_writer(
        &self,
        database: &str,
        name: &str,
        wait: LockRequest<'_>,
    ) -> Result<(Arc<Table>, WriterLock)> {
        loop {
            let table = self.table(database, name)?;
            let writer = table.state.lock.writer(wait)?;
            if table.is_current() {
                return Ok((table, writer));
            }
        }
    }

    /// As [`lock_writer`](Self::lock_writer), but the writer admits writers of rows, and does not wait for them.
    pub(crate) fn lock_writer_beside_rows(
        &self,
        (database, name): (&str, &str),
        wait: LockRequest<'_>,
    ) -> Result<(Arc<Table>, WriterLock)> {
        loop {
            let table = self.table(database, name)?;
            let writer = table.state.lock.writer_beside_rows(wait)?;
            if table.is_current() {
                return Ok((table, writer));
            }
        }
    }

    /// Says that a session is about to [lock](Self::lock_for_session) tables, until what is returned is dropped: on a
    /// busy table it does not come to its turn otherwise.
    ///
    /// # Errors
    /// `UnknownDatabase`, `UnknownTable`.
    pub fn announce_for_session(
        &self,
        wanted: &BTreeMap<QualifiedName, SessionLockMode>,
    ) -> Result<Vec<Announced>> {
        let announce = |((database, name), mode): (&QualifiedName, &SessionLockMode)| {
            let table = self.table(database, name)?;
            Ok(table.state.lock.announce(*mode))
        };
        wanted.iter().map(announce).collect()
    }

    /// Locks tables for a session, all or none: it holds none of them while it waits for another. They are taken in the
    /// order of their names.
    ///
    /// # Errors
    /// `UnknownDatabase`, `UnknownTable`, `LockWaitTimeout`.
    pub fn lock_for_session(
        &self,
        wanted: &BTreeMap<QualifiedName, SessionLockMode>,
        request: LockRequest<'_>,
    ) -> Result<BTreeMap<QualifiedName, SessionLock>> {
        let deadline = Instant::now() + request.wait;
        loop {
            let mut tables = Vec::with_capacity(wanted.len());
            for (name, mode) in wanted {
                tables.push((name, self.table(&name.0, &name.1)?, *mode));
            }
            let mut locked = BTreeMap::new();
            let blocked = tables.iter().find(|(name, table, mode)| {
                let lock = &table.state.lock;
                match lock.for_session(*mode, request.session, Duration::ZERO) {
                    Ok(lock) => locked.insert((*name).clone(), lock).is_some(),
                    Err(_) => true,
                }
            });
            let Some((_, table, mode)) = blocked else {
                // While this waited, tables may have changed.
                match tables.iter().all(|(_, table, _)| table.is_current()) {
                    true => return Ok(locked),
                    false => continue,
                }
            };
            drop(locked);
            let left = deadline.saturating_duration_since(Instant::now());
            let lock = &table.state.lock;
            drop(lock.for_session(*mode, request.session, left)?);
        }
    }
}
