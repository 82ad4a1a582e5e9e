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
//!
//! **Readers do not meet.** Every statement takes the lock shared, so shared holders are counted in shards, each in a
//! cache line that few threads write. Who wants exclusive closes the lock, and then counts:
//!
//! ```text
//!   shared                                 exclusive
//!   1  count in a shard                    A  close
//!   2  closed? take it back, and ask       B  add up the shards: somebody there? open again, and wait
//!      under the mutex
//! ```
//!
//! If B misses a shard's 1, then 2 comes after A. Leaving goes the same way: who leaves takes its count back and then looks
//! whether somebody waits; who waits says so and then counts. (All of these are sequentially consistent.)

use std::sync::Arc;
use std::time::{Duration, Instant};

use sheaf_storage::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use sheaf_storage::sync::{Condvar, Mutex, thread_hint};

use crate::error::{Result, TableError};

/// Parts of the count of shared holders.
const SHARDS: usize = 16;

/// Some of the shared holders.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard(AtomicUsize);

#[derive(Debug, Default)]
struct State {
    /// Statements that change rows beside each other.
    row_writers: usize,
    writer: bool,
    exclusive: bool,
}

/// The lock of one table, which outlives its definitions.
#[derive(Debug, Default)]
pub(crate) struct TableLock {
    shared: [Shard; SHARDS],
    /// Somebody is exclusive, or looks whether it can be.
    closed: AtomicBool,
    /// Those who wait for a change of the others.
    waiting: AtomicUsize,
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
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let outcome = loop {
            if free(&state) {
                take(&mut state);
                break Ok(());
            }
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => Duration::MAX,
            };
            if left.is_zero() {
                break Err(TableError::LockWaitTimeout);
            }
            state = self
                .changed
                .wait_timeout(state, left.min(Duration::from_secs(3600)));
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        outcome
    }

    fn release(&self, give: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        give(&mut state);
        drop(state);
        self.wake();
    }

    /// Lets those who wait look again. The mutex was taken since the change, or is taken here: a waiter has either seen the
    /// change or sleeps already.
    fn wake(&self) {
        // Waking nobody is a system call all the same.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.changed.notify_all();
        }
    }

    /// Becomes a shared holder, counted in the shard that is returned.
    fn enter(&self, wait: Duration) -> Result<usize> {
        let shard = thread_hint() % SHARDS;
        let holders = &self.shared[shard].0;
        holders.fetch_add(1, Ordering::SeqCst);
        if self.closed.load(Ordering::SeqCst) {
            self.leave(shard);
            let enter = |_: &mut State| {
                holders.fetch_add(1, Ordering::SeqCst);
            };
            self.acquire(wait, |state| !state.exclusive, enter)?;
        }
        Ok(shard)
    }

    fn leave(&self, shard: usize) {
        self.shared[shard].0.fetch_sub(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.state.lock());
            self.wake();
        }
    }

    /// Closes the lock if nobody is a shared holder. Called under the mutex.
    fn close(&self) -> bool {
        self.closed.store(true, Ordering::SeqCst);
        let is_free = self
            .shared
            .iter()
            .all(|shard| shard.0.load(Ordering::SeqCst) == 0);
        if !is_free {
            self.closed.store(false, Ordering::SeqCst);
        }
        is_free
    }

    pub(crate) fn shared(self: &Arc<Self>, wait: Duration) -> Result<SharedLock> {
        let shard = self.enter(wait)?;
        Ok(SharedLock {
            lock: self.clone(),
            shard,
        })
    }

    /// As [`shared`](Self::shared), for who keeps the lock itself alive.
    pub(crate) fn borrow_shared(&self, wait: Duration) -> Result<BorrowedSharedLock<'_>> {
        let shard = self.enter(wait)?;
        Ok(BorrowedSharedLock { lock: self, shard })
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
pub(crate) struct SharedLock {
    lock: Arc<TableLock>,
    shard: usize,
}

impl Drop for SharedLock {
    fn drop(&mut self) {
        self.lock.leave(self.shard);
    }
}

/// A [`SharedLock`] that does not keep its table.
#[derive(Debug)]
pub(crate) struct BorrowedSharedLock<'a> {
    lock: &'a TableLock,
    shard: usize,
}

impl Drop for BorrowedSharedLock<'_> {
    fn drop(&mut self) {
        self.lock.leave(self.shard);
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
        let free = |state: &State| !state.exclusive && self.0.close();
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
        let lock = &self.0.0;
        lock.release(|state| {
            state.exclusive = false;
            lock.closed.store(false, Ordering::SeqCst);
        });
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

    /// Readers come and go all the time; who changes the definition finds a moment without them, and they find none with it.
    #[test]
    fn nobody_reads_while_a_definition_changes() {
        let lock = Arc::new(TableLock::default());
        let (changing, done) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let guard = lock.borrow_shared(LONG).unwrap();
                        assert!(!changing.load(Ordering::SeqCst));
                        drop(guard);
                        std::thread::yield_now();
                    }
                });
            }
            for _ in 0..200 {
                let writer = lock.writer(LONG).unwrap();
                let exclusive = writer.exclusive(LONG).unwrap();
                changing.store(true, Ordering::SeqCst);
                std::thread::yield_now();
                changing.store(false, Ordering::SeqCst);
                drop(exclusive);
            }
            done.store(true, Ordering::Relaxed);
        });
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
