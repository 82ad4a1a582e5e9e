//! The lock of a table: who reads it, who writes it, who changes what it is.
//!
//! There are four ways to hold it. Each column says how a request gets along with a holder:
//!
//! | | beside readers | beside writers of rows | beside the writer | beside DDL |
//! |---|---|---|---|---|
//! | *shared*: a statement that reads the table | yes | yes | yes | waits |
//! | *rows*: a transaction that changes rows and locks each of them | yes | yes | waits | waits |
//! | *writer*: a load, or a DDL that prepares | yes | waits | waits | waits |
//! | *exclusive*: the moment in which a definition changes | waits | waits | only its own | waits |
//!
//! So an index is built while others read the table, and only its entry into the catalog waits for them.
//!
//! **Order.** Writer before shared before exclusive, and whoever takes exclusive holds writer and no longer shared.
//! Shared requests and those of writers of rows pass others that wait, so that a statement or a transaction may take
//! the lock of a table it already holds (`SELECT ... FROM t a, t b`) without waiting for itself. All waits have a limit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sheaf_storage::sync::{Condvar, Mutex};

use crate::error::{Result, TableError};

#[derive(Debug, Default)]
struct State {
    shared: usize,
    /// Statements that change rows beside each other.
    row_writers: usize,
    writer: bool,
    exclusive: bool,
    /// Those who wait for a change of the others.
    waiting: usize,
}

/// The lock of one table, which outlives its definitions.
#[derive(Debug, Default)]
pub(crate) struct TableLock {
    state: Mutex<State>,
    changed: Condvar,
}

impl TableLock {
    /// Waits at most `wait` until `free`, then applies `take`.
    fn acquire(
        &self,
        wait: Duration,
        free: impl Fn(&State) -> bool,
        take: impl FnOnce(&mut State),
    ) -> Result<()> {
        let mut state = self.state.lock();
        if free(&state) {
            take(&mut state);
            return Ok(());
        }
        let deadline = Instant::now().checked_add(wait);
        while !free(&state) {
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => Duration::MAX,
            };
            if left.is_zero() {
                return Err(TableError::LockWaitTimeout);
            }
            state.waiting += 1;
            state = self
                .changed
                .wait_timeout(state, left.min(Duration::from_secs(3600)));
            state.waiting -= 1;
        }
        take(&mut state);
        Ok(())
    }

    fn release(&self, give: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        give(&mut state);
        let is_awaited = state.waiting > 0;
        drop(state);
        // Waking nobody is a system call all the same.
        if is_awaited {
            self.changed.notify_all();
        }
    }

    pub(crate) fn shared(self: &Arc<Self>, wait: Duration) -> Result<SharedLock> {
        self.acquire(wait, |state| !state.exclusive, |state| state.shared += 1)?;
        Ok(SharedLock(self.clone()))
    }

    pub(crate) fn writer(self: &Arc<Self>, wait: Duration) -> Result<WriterLock> {
        let free = |state: &State| !state.writer && state.row_writers == 0;
        self.acquire(wait, free, |state| state.writer = true)?;
        Ok(WriterLock(self.clone()))
    }

    pub(crate) fn row_writer(self: &Arc<Self>, wait: Duration) -> Result<RowWriterLock> {
        let free = |state: &State| !state.writer && !state.exclusive;
        self.acquire(wait, free, |state| state.row_writers += 1)?;
        Ok(RowWriterLock(self.clone()))
    }
}

/// The definition stays as it is while this lives.
#[derive(Debug)]
pub(crate) struct SharedLock(Arc<TableLock>);

impl Drop for SharedLock {
    fn drop(&mut self) {
        self.0.release(|state| state.shared -= 1);
    }
}

/// Nobody changes rows without locking them while this lives.
#[derive(Debug)]
pub(crate) struct RowWriterLock(Arc<TableLock>);

impl Drop for RowWriterLock {
    fn drop(&mut self) {
        self.0.release(|state| state.row_writers -= 1);
    }
}

/// Nobody else writes while this lives.
#[derive(Debug)]
pub(crate) struct WriterLock(Arc<TableLock>);

impl WriterLock {
    /// Waits until nobody reads the table. The holder must not hold a shared lock of it.
    pub(crate) fn exclusive(&self, wait: Duration) -> Result<ExclusiveLock<'_>> {
        let free = |state: &State| state.shared == 0 && !state.exclusive;
        self.0.acquire(wait, free, |state| state.exclusive = true)?;
        Ok(ExclusiveLock(self))
    }
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        self.0.release(|state| state.writer = false);
    }
}

/// Nobody else uses the table while this lives.
#[derive(Debug)]
pub(crate) struct ExclusiveLock<'a>(&'a WriterLock);

impl Drop for ExclusiveLock<'_> {
    fn drop(&mut self) {
        self.0.0.release(|state| state.exclusive = false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_WAIT: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn readers_share_and_keep_ddl_out() {
        let lock = Arc::new(TableLock::default());
        let first = lock.shared(NO_WAIT).unwrap();
        let second = lock.shared(NO_WAIT).unwrap();
        let writer = lock.writer(NO_WAIT).unwrap();
        assert!(matches!(
            writer.exclusive(NO_WAIT),
            Err(TableError::LockWaitTimeout)
        ));
        drop((first, second));
        let exclusive = writer.exclusive(NO_WAIT).unwrap();
        assert!(lock.shared(NO_WAIT).is_err());
        drop(exclusive);
        assert!(lock.shared(NO_WAIT).is_ok());
    }

    #[test]
    fn there_is_one_writer() {
        let lock = Arc::new(TableLock::default());
        let writer = lock.writer(NO_WAIT).unwrap();
        assert!(lock.writer(NO_WAIT).is_err());
        drop(writer);
        assert!(lock.writer(NO_WAIT).is_ok());
    }

    #[test]
    fn writers_of_rows_share_and_keep_the_writer_out() {
        let lock = Arc::new(TableLock::default());
        let first = lock.row_writer(NO_WAIT).unwrap();
        let second = lock.row_writer(NO_WAIT).unwrap();
        let reader = lock.shared(NO_WAIT).unwrap();
        assert!(lock.writer(NO_WAIT).is_err());
        drop((first, second));
        let writer = lock.writer(NO_WAIT).unwrap();
        assert!(lock.row_writer(NO_WAIT).is_err());
        drop(reader);
        let exclusive = writer.exclusive(NO_WAIT).unwrap();
        assert!(lock.row_writer(NO_WAIT).is_err());
        drop(exclusive);
        drop(writer);
        assert!(lock.row_writer(NO_WAIT).is_ok());
    }

    #[test]
    fn a_waiter_goes_on_when_the_lock_is_given_back() {
        let lock = Arc::new(TableLock::default());
        let reader = lock.shared(NO_WAIT).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let writer = lock.writer(LONG).unwrap();
                writer.exclusive(LONG).is_ok()
            });
            drop(reader);
            assert!(waiting.join().unwrap());
        });
    }
}
