//! The lock of a table: which sessions read it, write it, or change what it is.
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
//! **A writer beside rows** ([`TableLock::writer_beside_rows`]) is a writer that admits writers of rows all the time.
//! It builds an index meanwhile, and keeps out all other writers and changes of definitions. It does not wait for
//! writers of rows to be admitted itself. It can tell [when those have gone](WriterLock::mark_row_writers) that were
//! there at some moment, and nobody waits for that but it. Others that wait to be writer cannot come to their turn
//! before it has ended, so requests do not let them pass. LOCK TABLES is admitted beside it; to be exclusive it waits
//! for that.
//!
//! **LOCK TABLES** is held by a session, from one statement to another. READ keeps out writers of whatever kind; WRITE
//! keeps out all others. Neither keeps out the session's own statements, which say for [which session](LockRequest<'_>)
//! they ask. A busy table has no moment without writers. So a session that waits for LOCK TABLES
//! [announces](TableLock::announce) it, and statements that hold no table yet let it pass. Statements that hold one go
//! on, because another session may be waiting for what they hold. The same goes for sessions that wait to be writer,
//! which writers of rows let pass, or exclusive, which readers let pass, too. LOCK TABLES ... READ lets all of them
//! pass but those that wait for READ. Otherwise a definition could not change while many sessions use the table in
//! turn. A session that waits in several attempts stays announced [from one to the next](DefinitionChange).
//!
//! **Order.** Rows and writer before shared before exclusive. A session that takes exclusive holds writer and no longer
//! shared. A statement that changes some tables and reads others opens those first that it changes, with all that
//! foreign keys connect them to, in the order of their names, and then those that it reads. A table may be both. A
//! statement that read it first would wait for the writer, which waits for the readers.
//!
//! Shared requests and those of writers of rows pass others that wait, so that a statement or a transaction may take
//! the lock of a table it already holds (`SELECT ... FROM t a, t b`) without waiting for itself. All waits have a
//! limit.
//!
//! **Deadlocks.** A transaction keeps the tables that it has used. So it may come to wait for the writer of one, while
//! that writer waits for the exclusive lock of another, or of the same:
//!
//! ```text
//!   T   BEGIN; SELECT ... FROM t                          INSERT INTO t: waits for the writer
//!   D                            ALTER TABLE t: is writer                                     waits for T
//! ```
//!
//! So a lock knows the session of its writer, and those that wait to be writer or exclusive. A session that waits looks
//! from time to time whether [the writer](TableLock::writer_session) is [waiting](TableLock::awaits) for a table that
//! it holds itself; then it stops waiting. A longer cycle ends with the limit: one of two changes of definitions, or of
//! one change and a wait for a row, which this lock knows nothing of:
//!
//! ```text
//!   T1  has read t, and waits for a row of T2
//!   T2  waits for the writer of t
//!   D   ALTER TABLE t: is the writer, and waits for T1
//! ```
//!
//! **Readers do not contend.** Every statement takes the lock shared, so shared holders are counted in shards, each in
//! a cache line that few threads write. A session that wants exclusive closes the lock, and then counts:
//!
//! ```text
//!   shared                                 exclusive
//!   1  count in a shard                    A  close
//!   2  closed? undo it, and ask            B  add up the shards: any holder? open again, and wait
//!      under the mutex
//! ```
//!
//! If B misses a shard's 1, then 2 comes after A. Leaving goes the same way. A holder that leaves subtracts its count
//! and then looks whether there are waiters; a waiter says so and then counts. (All of these are sequentially
//! consistent.) While WRITE is held or announced, or a session waits to be exclusive, the lock stays closed, and
//! readers ask under the mutex.

mod shards;
mod shown;

use std::sync::Arc;
use std::time::{Duration, Instant};

use sheaf_storage::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use sheaf_storage::sync::{self, Condvar, Mutex, thread_hint};
use sheaf_storage::{StorageError, count_lock_wait};

use crate::error::{Result, TableError};

use shards::{SHARDS, Shard};

pub(crate) use shards::Entered;
pub(crate) use shown::ShownWait;
pub use shown::{ShownTableLock, TableLockMode};

/// What says whether the statement shall stop.
pub(crate) type Interrupt<'a> = Option<&'a (dyn Fn() -> bool + Sync)>;

/// Which session asks for a table's lock, and how long it waits.
#[derive(Clone, Copy)]
pub struct LockRequest<'a> {
    pub wait: Duration,
    /// The session that asks, whose LOCK TABLES does not keep it out; [`NO_SESSION`]: none.
    pub session: u64,
    /// It holds no table yet, and lets those pass that are announced, [for a while](MIN_COURTESY).
    pub is_first: bool,
    /// How long it has waited in attempts before this one.
    pub waited: Duration,
    /// What ends the wait before its time: looked at [now and then](INTERRUPT_CHECK), on the thread that waits.
    pub interrupt: Option<&'a (dyn Fn() -> bool + Sync)>,
    /// A change of a definition that waits in several attempts.
    pub definition_change: Option<&'a DefinitionChange>,
}

/// The session of a request that comes from no session.
pub const NO_SESSION: u64 = 0;

/// How long a request lets those pass that are announced. They come to their turn within this time, unless statements
/// or transactions take longer. When somebody has been announced for longer, requests wait for half of that time: then
/// there is a moment between statements that take long, too. There is a limit, because a transaction may have no end.
///
/// ```text
///   A      ......5 s......|  waits 2 s ......5 s......|  waits for the change
///   B   ....5 s....|  waits 2 s ......5 s......|  waits 4 s, for the change
///   ALTER    announced                               4 s: half of the time       goes on
/// ```
const MIN_COURTESY: Duration = Duration::from_secs(2);
const MAX_COURTESY: Duration = Duration::from_secs(60);

/// How often a wait that can be interrupted looks whether it is.
const INTERRUPT_CHECK: Duration = Duration::from_millis(50);

impl From<Duration> for LockRequest<'_> {
    fn from(wait: Duration) -> Self {
        LockRequest {
            wait,
            session: NO_SESSION,
            is_first: false,
            waited: Duration::ZERO,
            interrupt: None,
            definition_change: None,
        }
    }
}

/// The tables that a change of definitions has waited for in vain. Between two attempts it holds none of them, and
/// stays [announced](TableLock) at all. Otherwise requests would enter that let it pass while it waited, and on a busy
/// table it would find no moment in any of its attempts.
#[derive(Default)]
pub struct DefinitionChange(Mutex<Vec<AnnouncedChange>>);

/// A [`Definer`] that is known to a lock while this lives.
struct AnnouncedChange {
    lock: Arc<TableLock>,
    definer: Definer,
}

impl Drop for AnnouncedChange {
    fn drop(&mut self) {
        let lock = &self.lock;
        lock.release(|state| {
            state.forget(self.definer);
            lock.open(state);
        });
    }
}

impl DefinitionChange {
    /// Makes the waiter known, unless it is from an attempt before. Called under the lock's mutex.
    fn announce(&self, lock: &Arc<TableLock>, state: &mut State, definer: Definer) {
        let mut announced = self.0.lock();
        let is_own =
            |known: &AnnouncedChange| Arc::ptr_eq(&known.lock, lock) && known.definer == definer;
        if !announced.iter().any(is_own) {
            state.make_known(definer);
            announced.push(AnnouncedChange {
                lock: Arc::clone(lock),
                definer,
            });
        }
    }
}

/// What a session locks a table for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionLockMode {
    Read,
    Write,
}

/// A session that waits to change what the table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Definer {
    session: u64,
    /// It is the writer already, and waits for readers, too.
    is_writer: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Statements that change rows beside each other.
    row_writers: usize,
    /// Their sessions, in any order.
    row_writer_sessions: Vec<u64>,
    /// Those of them that came before the writer beside rows [marked](WriterLock::mark_row_writers) them.
    marked_row_writers: usize,
    /// Marks so far.
    marks: u64,
    writer: bool,
    /// The writer admits writers of rows.
    is_beside_rows: bool,
    /// Whose the writer is, [`NO_SESSION`] if it is of none.
    writer_session: u64,
    exclusive: bool,
    /// Those that wait to be writer or exclusive.
    definers: Vec<Definer>,
    /// Sessions that wait, and for what. They are only shown.
    waiting: Vec<(u64, TableLockMode)>,
    /// The sessions that have LOCK TABLES ... READ.
    readers: Vec<u64>,
    /// The session that has LOCK TABLES ... WRITE, and how many times.
    owner: Option<(u64, usize)>,
    /// How many wait for LOCK TABLES, and how many of them for WRITE.
    announced: usize,
    announced_writes: usize,
    /// Since when there has always been one that requests let pass.
    let_pass_since: Option<Instant>,
}

impl State {
    fn make_known(&mut self, definer: Definer) {
        self.definers.push(definer);
        self.let_pass_since.get_or_insert_with(Instant::now);
    }

    fn forget(&mut self, definer: Definer) {
        let known = self.definers.iter().position(|known| *known == definer);
        known.map(|known| self.definers.swap_remove(known));
        self.end_courtesy_if_unneeded();
    }

    fn end_courtesy_if_unneeded(&mut self) {
        if self.definers.is_empty() && self.announced == 0 {
            self.let_pass_since = None;
        }
    }

    /// Whether a request has let others pass for as long as it does.
    fn has_been_courteous(&self, request: &LockRequest<'_>) -> bool {
        let since = self.let_pass_since.map(|since| since.elapsed());
        let courtesy = since.map_or(MIN_COURTESY, |since| since / 2);
        !request.is_first || request.waited >= courtesy.clamp(MIN_COURTESY, MAX_COURTESY)
    }

    fn is_others(&self, session: u64) -> bool {
        self.owner.is_some_and(|(owner, _)| owner != session)
    }

    /// Whether a session waits to be exclusive.
    fn is_to_change(&self) -> bool {
        self.definers.iter().any(|definer| definer.is_writer)
    }

    fn admits_shared(&self, request: &LockRequest<'_>) -> bool {
        let is_alone = self.announced_writes == 0 && !self.is_to_change();
        (is_alone || self.has_been_courteous(request))
            && !self.exclusive
            && !self.is_others(request.session)
    }

    /// What a session has locked for READ it may have to look at beside other such sessions, where a foreign key leads
    /// there. That it changes nothing is the session's business.
    fn admits_row_writer(&self, request: &LockRequest<'_>) -> bool {
        // Beside a writer that admits rows, no other definer comes to its turn.
        let has_definer = match self.is_beside_rows {
            true => self.is_to_change(),
            false => !self.definers.is_empty(),
        };
        let is_alone = self.announced == 0 && !has_definer;
        let passes = is_alone || self.has_been_courteous(request);
        let is_kept_out = self.is_others(request.session)
            || (!self.readers.is_empty() && !self.readers.contains(&request.session));
        passes && !self.has_lone_writer() && !self.exclusive && !is_kept_out
    }

    /// Whether the session has locked the table WRITE beside a writer that admits rows.
    fn is_locked_beside_builder(&self, session: u64) -> bool {
        let is_owner = self.owner.is_some_and(|(owner, _)| owner == session);
        session != NO_SESSION && self.is_beside_rows && is_owner
    }

    /// Whether there is a writer that admits no writers of rows.
    fn has_lone_writer(&self) -> bool {
        self.writer && !self.is_beside_rows
    }

    fn admits_writer(&self, request: &LockRequest<'_>) -> bool {
        self.row_writers == 0 && self.admits_writer_beside_rows(request)
    }

    fn admits_writer_beside_rows(&self, request: &LockRequest<'_>) -> bool {
        !self.writer && self.is_locked_by_no_other(request.session)
    }

    /// Whether no other session has LOCK TABLES.
    fn is_locked_by_no_other(&self, session: u64) -> bool {
        !self.is_others(session) && self.readers.iter().all(|reader| *reader == session)
    }

    /// Whether a session that asks for LOCK TABLES ... READ lets nobody pass. It holds nothing, so nobody that it lets
    /// pass waits for it.
    fn admits_reader(&self, session: u64) -> bool {
        let mut definers = self.definers.iter();
        self.announced_writes == 0 && definers.all(|definer| definer.session == session)
    }

    fn stays_closed(&self) -> bool {
        self.exclusive || self.owner.is_some() || self.announced_writes > 0 || self.is_to_change()
    }
}

/// The lock of one table, which outlives its definitions.
#[derive(Debug, Default)]
pub(crate) struct TableLock {
    shared: [Shard; SHARDS],
    /// A session is exclusive, or looks whether it can be.
    closed: AtomicBool,
    /// How many wait for others to change something.
    waiting: AtomicUsize,
    state: Mutex<State>,
    changed: Condvar,
}

impl TableLock {
    /// Waits as the request says until `free`, then applies `take`.
    fn acquire(
        self: &Arc<Self>,
        mode: TableLockMode,
        request: LockRequest<'_>,
        free: impl Fn(&State) -> bool,
        take: impl FnOnce(&mut State),
    ) -> Result<()> {
        self.acquire_as((mode, None), request, free, take)
    }

    /// As [`acquire`](Self::acquire); others can see the waiter.
    fn acquire_as(
        self: &Arc<Self>,
        (mode, definer): (TableLockMode, Option<Definer>),
        request: LockRequest<'_>,
        free: impl Fn(&State) -> bool,
        take: impl FnOnce(&mut State),
    ) -> Result<()> {
        let mut state = self.state.lock();
        if free(&state) {
            take(&mut state);
            return Ok(());
        }
        let began_ns = sync::monotonic_ns();
        let deadline = Instant::now().checked_add(request.wait);
        let longest = match request.interrupt {
            Some(_) => INTERRUPT_CHECK,
            None => Duration::from_secs(3600),
        };
        self.waiting.fetch_add(1, Ordering::SeqCst);
        // What is announced is so for longer than this wait.
        let definer = match (definer, request.definition_change) {
            (Some(definer), Some(change)) => {
                change.announce(self, &mut state, definer);
                None
            }
            (definer, _) => definer,
        };
        if let Some(own) = definer {
            state.make_known(own);
        }
        let shown = (request.session, mode);
        state.show_waiting(shown);
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
            state = self.changed.wait_timeout(state, left.min(longest));
            if let Some(interrupt) = request.interrupt {
                // It may look at a socket. What changes meanwhile is seen before the next wait.
                drop(state);
                let is_interrupted = interrupt();
                state = self.state.lock();
                if is_interrupted {
                    break Err(TableError::Interrupted);
                }
            }
        };
        state.hide_waiting(shown);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        count_lock_wait(sync::monotonic_ns().saturating_sub(began_ns));
        if let Some(own) = definer {
            state.forget(own);
            self.open(&state);
            drop(state);
            // Those that let it pass.
            self.wake();
        }
        outcome
    }

    fn release(&self, give: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        give(&mut state);
        drop(state);
        self.wake();
    }

    /// Lets those that wait look again. The mutex was taken since the change, or is taken here: a waiter has either
    /// seen the change or sleeps already.
    fn wake(&self) {
        // A wake-up is a system call even if no thread waits.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.changed.notify_all();
        }
    }

    /// The session that is the writer, if it is one's.
    pub(crate) fn writer_session(&self) -> Option<u64> {
        let state = self.state.lock();
        (state.writer && state.writer_session != NO_SESSION).then_some(state.writer_session)
    }

    /// Whether a session that is to change what the table is waits for readers, or with `rows` also for those that
    /// change rows.
    pub(crate) fn awaits(&self, session: u64, rows: bool) -> bool {
        let state = self.state.lock();
        let mut definers = state.definers.iter();
        definers.any(|definer| definer.session == session && (rows || definer.is_writer))
    }

    /// Becomes a shared holder.
    pub(crate) fn enter(self: &Arc<Self>, request: LockRequest<'_>) -> Result<Entered> {
        let shard = thread_hint() % SHARDS;
        let holders = &self.shared[shard].holders;
        holders.fetch_add(1, Ordering::SeqCst);
        if self.closed.load(Ordering::SeqCst) {
            self.leave(Entered { shard, place: 0 });
            let enter = |_: &mut State| {
                holders.fetch_add(1, Ordering::SeqCst);
            };
            let free = |state: &State| state.admits_shared(&request);
            self.acquire(TableLockMode::Read, request, free, enter)?;
        }
        let place = self.shared[shard].note(request.session);
        Ok(Entered { shard, place })
    }

    /// Ends what [`Self::enter`] has begun.
    pub(crate) fn leave(&self, entered: Entered) {
        let shard = &self.shared[entered.shard];
        let place = entered.place.checked_sub(1);
        if let Some(noted) = place.and_then(|place| shard.sessions.get(place)) {
            noted.store(NO_SESSION, Ordering::Relaxed);
        }
        shard.holders.fetch_sub(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.state.lock());
            self.wake();
        }
    }

    /// Closes the lock if there is no shared holder. Called under the mutex.
    fn close(&self, state: &State) -> bool {
        self.closed.store(true, Ordering::SeqCst);
        let is_free = self
            .shared
            .iter()
            .all(|shard| shard.holders.load(Ordering::SeqCst) == 0);
        if !is_free {
            self.open(state);
        }
        is_free
    }

    /// Opens the lock, unless there is a reason left to keep it closed. Called under the mutex.
    fn open(&self, state: &State) {
        self.closed.store(state.stays_closed(), Ordering::SeqCst);
    }

    pub(crate) fn shared(self: &Arc<Self>, request: LockRequest<'_>) -> Result<SharedLock> {
        let entered = self.enter(request)?;
        Ok(SharedLock {
            lock: self.clone(),
            entered,
        })
    }

    /// As [`shared`](Self::shared), for a caller that keeps the lock itself alive.
    pub(crate) fn borrow_shared<'l>(
        self: &'l Arc<Self>,
        request: LockRequest<'_>,
    ) -> Result<BorrowedSharedLock<'l>> {
        let entered = self.enter(request)?;
        Ok(BorrowedSharedLock {
            lock: self,
            entered,
        })
    }

    /// As [`borrow_shared`](Self::borrow_shared), also beside LOCK TABLES of other sessions: for a caller that reads no
    /// rows.
    pub(crate) fn look(self: &Arc<Self>, wait: Duration) -> Result<BorrowedSharedLock<'_>> {
        let shard = thread_hint() % SHARDS;
        let enter = |_: &mut State| {
            self.shared[shard].holders.fetch_add(1, Ordering::SeqCst);
        };
        let free = |state: &State| !state.exclusive;
        self.acquire(TableLockMode::Read, wait.into(), free, enter)?;
        Ok(BorrowedSharedLock {
            lock: self,
            entered: Entered { shard, place: 0 },
        })
    }

    pub(crate) fn writer(self: &Arc<Self>, request: LockRequest<'_>) -> Result<WriterLock> {
        let free = |state: &State| state.admits_writer(&request);
        // The writer beside rows waits for LOCK TABLES of this session, which cannot wait for it.
        if self.state.lock().is_locked_beside_builder(request.session) {
            return Err(TableError::Storage(StorageError::Deadlock));
        }
        let definer = definer(request.session, false);
        self.acquire_as((TableLockMode::Define, definer), request, free, |state| {
            state.writer = true;
            state.writer_session = request.session;
        })?;
        Ok(WriterLock {
            lock: self.clone(),
            session: request.session,
        })
    }

    /// The writer that admits writers of rows beside it, those that are there and those that come.
    pub(crate) fn writer_beside_rows(
        self: &Arc<Self>,
        request: LockRequest<'_>,
    ) -> Result<WriterLock> {
        let free = |state: &State| state.admits_writer_beside_rows(&request);
        self.acquire(TableLockMode::Define, request, free, |state| {
            state.writer = true;
            state.is_beside_rows = true;
            state.writer_session = request.session;
        })?;
        Ok(WriterLock {
            lock: self.clone(),
            session: request.session,
        })
    }

    pub(crate) fn row_writer(self: &Arc<Self>, request: LockRequest<'_>) -> Result<RowWriterLock> {
        let free = |state: &State| state.admits_row_writer(&request);
        let mut marks = 0;
        self.acquire(TableLockMode::Write, request, free, |state| {
            state.row_writers += 1;
            state.row_writer_sessions.push(request.session);
            marks = state.marks;
        })?;
        Ok(RowWriterLock {
            lock: self.clone(),
            session: request.session,
            marks,
        })
    }

    /// Locks the table for a session, which holds no other lock of it.
    pub(crate) fn for_session(
        self: &Arc<Self>,
        mode: SessionLockMode,
        session: u64,
        wait: Duration,
    ) -> Result<SessionLock> {
        let nobody_writes = |state: &State| {
            !state.has_lone_writer()
                && !state.exclusive
                && state.row_writers == 0
                && !state.is_others(session)
        };
        let request = LockRequest {
            session,
            ..LockRequest::from(wait)
        };
        match mode {
            SessionLockMode::Read => {
                let is_free = |state: &State| nobody_writes(state) && state.admits_reader(session);
                let mode = TableLockMode::SessionRead;
                self.acquire(mode, request, is_free, |state| state.readers.push(session))?;
            }
            SessionLockMode::Write => {
                let is_free = |state: &State| {
                    nobody_writes(state)
                        && state.readers.is_empty()
                        && (state.owner.is_some() || self.close(state))
                };
                self.acquire(TableLockMode::SessionWrite, request, is_free, |state| {
                    let times = state.owner.map_or(0, |(_, times)| times);
                    state.owner = Some((session, times + 1));
                })?;
            }
        }
        Ok(SessionLock {
            lock: Arc::clone(self),
            mode,
            session,
        })
    }

    /// Says that a session is about to [lock](Self::for_session) the table.
    pub(crate) fn announce(self: &Arc<Self>, mode: SessionLockMode) -> Announced {
        let mut state = self.state.lock();
        state.announced += 1;
        state.let_pass_since.get_or_insert_with(Instant::now);
        if mode == SessionLockMode::Write {
            state.announced_writes += 1;
            self.open(&state);
        }
        drop(state);
        Announced {
            lock: Arc::clone(self),
            mode,
        }
    }

    /// Whether some session has LOCK TABLES.
    pub(crate) fn is_locked_by_session(&self) -> bool {
        let state = self.state.lock();
        state.owner.is_some() || !state.readers.is_empty()
    }
}

fn definer(session: u64, is_writer: bool) -> Option<Definer> {
    (session != NO_SESSION).then_some(Definer { session, is_writer })
}

/// A table that a session has locked.
#[derive(Debug)]
pub struct SessionLock {
    lock: Arc<TableLock>,
    mode: SessionLockMode,
    session: u64,
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        let (lock, session) = (&self.lock, self.session);
        lock.release(|state| match self.mode {
            SessionLockMode::Read => {
                let own = state.readers.iter().position(|reader| *reader == session);
                if let Some(own) = own {
                    state.readers.swap_remove(own);
                }
            }
            SessionLockMode::Write => {
                state.owner = state
                    .owner
                    .filter(|(_, times)| *times > 1)
                    .map(|(owner, times)| (owner, times - 1));
                lock.open(state);
            }
        });
    }
}

/// A session waits for LOCK TABLES while this lives.
#[derive(Debug)]
#[must_use]
pub struct Announced {
    lock: Arc<TableLock>,
    mode: SessionLockMode,
}

impl Drop for Announced {
    fn drop(&mut self) {
        let lock = &self.lock;
        lock.release(|state| {
            state.announced -= 1;
            state.end_courtesy_if_unneeded();
            if self.mode == SessionLockMode::Write {
                state.announced_writes -= 1;
                lock.open(state);
            }
        });
    }
}

/// The definition stays as it is while this lives.
#[derive(Debug)]
pub(crate) struct SharedLock {
    lock: Arc<TableLock>,
    entered: Entered,
}

impl Drop for SharedLock {
    fn drop(&mut self) {
        self.lock.leave(self.entered);
    }
}

/// A [`SharedLock`] that does not keep its table.
#[derive(Debug)]
pub(crate) struct BorrowedSharedLock<'a> {
    lock: &'a TableLock,
    entered: Entered,
}

impl Drop for BorrowedSharedLock<'_> {
    fn drop(&mut self) {
        self.lock.leave(self.entered);
    }
}

/// No session changes rows without locking them while this lives.
#[derive(Debug)]
pub(crate) struct RowWriterLock {
    lock: Arc<TableLock>,
    session: u64,
    /// Marks before it came.
    marks: u64,
}

impl Drop for RowWriterLock {
    fn drop(&mut self) {
        self.lock.release(|state| {
            state.row_writers -= 1;
            let mut sessions = state.row_writer_sessions.iter();
            let own = sessions.rposition(|session| *session == self.session);
            own.map(|own| state.row_writer_sessions.swap_remove(own));
            // There is one mark at a time: writers that came before an older one have gone.
            if self.marks < state.marks {
                state.marked_row_writers -= 1;
            }
        });
    }
}

/// There is no other writer while this lives.
#[derive(Debug)]
pub(crate) struct WriterLock {
    lock: Arc<TableLock>,
    /// The session that has asked for it.
    session: u64,
}

impl WriterLock {
    /// Marks the writers of rows that are there now, unless some of the last mark are. False: some are.
    pub(crate) fn mark_row_writers(&self) -> bool {
        let mut state = self.lock.state.lock();
        if state.marked_row_writers > 0 {
            return false;
        }
        state.marks += 1;
        state.marked_row_writers = state.row_writers;
        true
    }

    /// Whether all marked writers of rows have gone, and their transactions with them.
    pub(crate) fn marked_have_gone(&self) -> bool {
        self.lock.state.lock().marked_row_writers == 0
    }

    /// Waits until all marked writers of rows have gone, and their transactions with them. Nobody waits for the caller
    /// meanwhile.
    pub(crate) fn wait_for_marked(&self, request: LockRequest<'_>) -> Result<()> {
        let free = |state: &State| state.marked_row_writers == 0;
        self.lock
            .acquire(TableLockMode::Exclusive, request, free, |_| {})
    }

    /// Waits until no session reads the table. The holder must not hold a shared lock of it.
    ///
    /// Beside writers of rows that is the moment without them, too: those that have changed something, or can, hold the
    /// shared lock.
    pub(crate) fn exclusive(&self, request: LockRequest<'_>) -> Result<ExclusiveLock<'_>> {
        let free = |state: &State| self.admits_exclusive(state);
        let definer = definer(self.session, true);
        let mode = (TableLockMode::Exclusive, definer);
        self.lock
            .acquire_as(mode, request, free, |state| state.exclusive = true)?;
        Ok(ExclusiveLock(self))
    }

    /// As [`exclusive`](Self::exclusive), if that is possible just now. Nobody lets it pass.
    pub(crate) fn try_exclusive(&self) -> Option<ExclusiveLock<'_>> {
        let mut state = self.lock.state.lock();
        if !self.admits_exclusive(&state) {
            return None;
        }
        state.exclusive = true;
        Some(ExclusiveLock(self))
    }

    /// Whether nobody reads the table, or has locked it. Called under the mutex; if so, the lock is closed.
    fn admits_exclusive(&self, state: &State) -> bool {
        // LOCK TABLES may have come beside a writer that admits rows.
        !state.exclusive
            && (!state.is_beside_rows || state.is_locked_by_no_other(self.session))
            && self.lock.close(state)
    }

    /// As [`exclusive`](Self::exclusive) for several tables. It is exclusive on none of them while it waits for
    /// another: their readers go on meanwhile, and one that is waited for may come to read the others. It stays
    /// announced where it has waited, so a busy table is not lost again.
    ///
    /// ```text
    ///   a: exclusive  b: read by T   give a back, wait for b    a: exclusive  b: exclusive
    ///                                T reads a, and ends
    /// ```
    pub(crate) fn exclusive_of_all<'w>(
        writers: &[&'w WriterLock],
        request: LockRequest<'_>,
    ) -> Result<Vec<ExclusiveLock<'w>>> {
        let own = DefinitionChange::default();
        let request = LockRequest {
            definition_change: Some(request.definition_change.unwrap_or(&own)),
            ..request
        };
        let began = Instant::now();
        loop {
            let mut exclusive = Vec::with_capacity(writers.len());
            let blocked = writers.iter().find(|writer| {
                let at_once = LockRequest {
                    wait: Duration::ZERO,
                    ..request
                };
                writer
                    .exclusive(at_once)
                    .map(|lock| exclusive.push(lock))
                    .is_err()
            });
            let Some(blocked) = blocked else {
                return Ok(exclusive);
            };
            drop(exclusive);
            let wait = request.wait.saturating_sub(began.elapsed());
            drop(blocked.exclusive(LockRequest { wait, ..request })?);
        }
    }
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        self.lock.release(|state| {
            state.writer = false;
            state.is_beside_rows = false;
            state.writer_session = NO_SESSION;
        });
    }
}

/// No other session uses the table while this lives.
#[derive(Debug)]
pub(crate) struct ExclusiveLock<'a>(&'a WriterLock);

impl Drop for ExclusiveLock<'_> {
    fn drop(&mut self) {
        let lock = &self.0.lock;
        lock.release(|state| {
            state.exclusive = false;
            lock.open(state);
        });
    }
}

#[cfg(test)]
mod tests;
