//! Threads that serve more connections than there are threads.
//!
//! While there are few connections, each has a thread that waits for its client in a read. When hundreds have something
//! to say, every statement runs on a thread that has not run for a while. Its stack, its allocator's cache and what the
//! kernel keeps of it have left the processor's caches, and switching to it is most of what a short statement costs. (A
//! server that does nothing but echo 32 bytes needs 10 us for it with 16 connections and 18 us with 1,024, a thread
//! each. With few threads for all of them it needs 9 us.) So where there are many, connections are handed over to this
//! pool between two commands:
//!
//! ```text
//!   connection's own thread --adopt--> waits for its client  <----------------.
//!                                        |  has something to read             | no other command is there
//!                                        v                                    |
//!                                      a worker runs its commands ------------'
//! ```
//!
//! A statement that has committed leaves its thread without waiting for the log: `deferred_answers.rs`.
//!
//! A connection that waits lies in a slot. The worker that is told of it takes it out and has it alone until it puts it
//! back. It has no stack and no buffers: workers lend it theirs. A thread's identity means nothing to a session. A
//! connection that was handed over stays, also when there are few again.
//!
//! # Nothing that a client sends is overlooked
//!
//! The kernel reports a socket at each change, and nothing is said to it between two statements ([`crate::readiness`]),
//! so a report must not be lost:
//!
//! - It finds the connection in its slot: it is served, and reads.
//! - It finds the slot empty, as a worker serves the connection: it leaves a mark there. That worker puts the
//!   connection back under the same lock, and finds the mark. Then the connection goes to the queue of those that have
//!   something to read (`ready_connections.rs`), and is read once more.
//! - A turn reads once. If that read finds less than it has room for, it has taken all that had come; what comes later
//!   is reported. If it fills its buffer, or the end was reported, the connection goes to the queue, too.
//!
//! The other way round a report may be late: what it is about was read meanwhile, or its connection is gone and the
//! slot has another one. So a turn may find nothing to read, and does no harm.
//!
//! # How many workers
//!
//! As many run as processors can use. A statement may have to wait: for a lock, the disk, its workers, its client. A
//! thread that waits says so ([`sheaf_storage::sync::waiting`]), and another worker takes its place meanwhile. A
//! statement that just takes long is noticed by its pace (see [`SharedThreads::notice_long_statements`]). So
//! connections in the pool cannot keep each other from running. In the worst case there is a thread for each statement
//! under way, as without the pool.
//!
//! ```text
//!            statement            waits                       over
//!   Idle  ----------> Running ----------> Waiting ---------> Running ----------> Idle
//!                        '--- takes long ---> Long  ------------------------------'
//!                                             \_ counted as blocked: a place is free
//! ```

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use sheaf_sql::go_where_the_process_began;
use sheaf_storage::sync::{WaitObserver, observe_waits};

use crate::connection::{Connection, Served};
use crate::deferred_answers::{DeferredAnswers, Held};
use crate::packet::Buffers;
use crate::readiness::Report;
use crate::ready_connections::ReadyConnections;

/// Address space of a worker's stack, as a connection's own thread has.
const WORKER_STACK_BYTES: usize = 8 << 20;
/// Workers that may run at the same time, for each processor; more are left to rest.
const RUNNING_PER_PROCESSOR: usize = 2;
/// How often statements that take long are looked for.
const PACE: Duration = Duration::from_millis(20);
/// A worker that rests ends after this time.
const REST_TIME: Duration = Duration::from_secs(10);
/// A worker that has rested for so long releases its memory: many are called again at once.
const RELEASES_AFTER: Duration = Duration::from_secs(1);
/// Slots come in blocks of this size.
const BLOCK_SLOTS: usize = 256;
/// The most blocks; connections beyond keep their threads.
const MAX_BLOCKS: usize = 512;

/// What a worker is doing.
const IDLE: u8 = 0;
const RUNNING: u8 = 1;
/// It waits, and is counted as blocked.
const WAITING: u8 = 2;
/// It has been running for long, and is counted as blocked.
const LONG: u8 = 3;

/// Where a connection of the pool lies while it waits for its client.
#[derive(Default)]
struct Slot(Mutex<Place>);

/// What is in a slot.
#[derive(Default)]
struct Place {
    /// `None`: it is free, or a worker has the connection.
    connection: Option<Box<Connection>>,
    /// Something has come for the connection since it was taken.
    is_reported: bool,
    /// The end has come.
    has_ended: bool,
    /// Its socket reports room, too.
    reports_room: bool,
}

/// See the module's comment.
pub(crate) struct SharedThreads {
    ready: ReadyConnections,
    /// By the connections' numbers. A block stays when it was made.
    blocks: Vec<OnceLock<Box<[Slot]>>>,
    state: Mutex<State>,
    /// For workers that rest.
    called: Condvar,
    /// Workers that do not rest, whatever they do.
    active: AtomicUsize,
    /// Active workers that wait or take long.
    blocked: AtomicUsize,
    /// Fewer than this shall not run while there is work; more than `most_running` need not.
    least_running: usize,
    most_running: usize,
    /// Connections whose commits wait for the log.
    held: DeferredAnswers,
    stopping: AtomicBool,
    /// All threads are told when the other end is closed.
    stop_signal: Mutex<Option<UnixStream>>,
    _stop_watch: UnixStream,
    /// Seconds since the pool began, roughly: for `wait_timeout`.
    clock_seconds: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Slots that were ever used.
    slots: usize,
    /// Those of them that are free, by their numbers.
    free: Vec<usize>,
    workers: Vec<Arc<Worker>>,
    resting: usize,
    /// Resting workers that were called and have not come yet.
    calls: usize,
    pacer: bool,
    /// There is a thread for held answers.
    answerer: bool,
}

/// A worker, as others see it. On cache lines of its own: it is written twice for each statement.
#[repr(align(128))]
struct Worker {
    pool: Arc<SharedThreads>,
    doing: AtomicU8,
    /// Statements that were begun.
    turns: AtomicU64,
    /// The same when it was looked at last.
    turns_seen: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is valid after every statement, so a panic elsewhere does not spoil it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedThreads {
    /// A pool without threads: they start with the first connections.
    pub(crate) fn new() -> io::Result<Arc<SharedThreads>> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let (signal, watch) = UnixStream::pair()?;
        Ok(Arc::new(SharedThreads {
            ready: ReadyConnections::new(watch.as_raw_fd())?,
            blocks: (0..MAX_BLOCKS).map(|_| OnceLock::new()).collect(),
            state: Mutex::default(),
            called: Condvar::new(),
            active: AtomicUsize::new(0),
            blocked: AtomicUsize::new(0),
            least_running: processors,
            most_running: processors * RUNNING_PER_PROCESSOR,
            held: DeferredAnswers::default(),
            stopping: AtomicBool::new(false),
            stop_signal: Mutex::new(Some(signal)),
            _stop_watch: watch,
            clock_seconds: AtomicU64::new(0),
        }))
    }

    fn slot(&self, number: usize) -> Option<&Slot> {
        let block = self.blocks.get(number / BLOCK_SLOTS)?;
        let slots = block.get_or_init(|| (0..BLOCK_SLOTS).map(|_| Slot::default()).collect());
        slots.get(number % BLOCK_SLOTS)
    }

    /// Takes a connection that waits for its client; returns it if there is no place or no thread for it.
    pub(crate) fn adopt(
        self: &Arc<Self>,
        mut connection: Box<Connection>,
    ) -> Result<(), Box<Connection>> {
        if self.stopping.load(Ordering::Acquire) || !self.has_workers() {
            return Err(connection);
        }
        let number = {
            let mut state = lock(&self.state);
            match state.free.pop() {
                Some(number) => number,
                None if state.slots < MAX_BLOCKS * BLOCK_SLOTS => {
                    state.slots += 1;
                    state.slots - 1
                }
                None => return Err(connection),
            }
        };
        let socket = connection.descriptor();
        // Its own ones are not needed any more.
        connection.take_back(&mut Buffers::default());
        connection.note_wait(self.clock_seconds());
        let Some(slot) = self.slot(number) else {
            lock(&self.state).free.push(number);
            return Err(connection);
        };
        // A report of the number's former connection may still be on its way. No worker takes the connection by it
        // before it is in the set. Nor does one end it, and give the number back, while it is being entered.
        let mut place = lock(&slot.0);
        match self.ready.sockets.add(socket, number as u64) {
            Ok(()) => {
                *place = Place {
                    connection: Some(connection),
                    ..Place::default()
                };
                Ok(())
            }
            Err(_) => {
                drop(place);
                lock(&self.state).free.push(number);
                Err(connection)
            }
        }
    }

    fn clock_seconds(&self) -> u64 {
        self.clock_seconds.load(Ordering::Relaxed)
    }

    /// A second is over: ends the wait of connections that have waited too long. Their clients are told by a worker.
    pub(crate) fn tick(&self) {
        let now = self.clock_seconds.fetch_add(1, Ordering::Relaxed) + 1;
        let slots = lock(&self.state).slots;
        for number in 0..slots {
            if let Some(slot) = self.slot(number)
                && let Some(connection) = lock(&slot.0).connection.as_mut()
            {
                connection.note_time(now);
            }
        }
    }

    /// Ends the workers, when the connections are gone or are to be left behind.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        drop(lock(&self.stop_signal).take());
        self.held.end();
        let _state = lock(&self.state);
        self.called.notify_all();
    }

    /// Whether there is at least one worker; starts the first ones.
    fn has_workers(self: &Arc<Self>) -> bool {
        if self.active.load(Ordering::Acquire) >= self.least_running {
            return true;
        }
        let mut state = lock(&self.state);
        if !state.pacer {
            let pool = Arc::clone(self);
            let started = thread::Builder::new().name("pace".into()).spawn(move || {
                leave_resource_groups();
                pool.notice_long_statements();
            });
            state.pacer = started.is_ok();
        }
        if !state.answerer {
            let pool = Arc::clone(self);
            let started = thread::Builder::new()
                .name("commits".into())
                // Connections that end there are dropped there, with all that they hold.
                .stack_size(WORKER_STACK_BYTES)
                .spawn(move || {
                    leave_resource_groups();
                    pool.send_deferred_answers();
                });
            state.answerer = started.is_ok();
        }
        let is_ready = state.pacer && state.answerer;
        while is_ready && self.active.load(Ordering::Acquire) < self.least_running {
            if !self.add_worker(&mut state) {
                break;
            }
        }
        self.active.load(Ordering::Acquire) > 0 && is_ready
    }

    /// A worker that rests comes back, or there is a new one.
    fn add_worker(self: &Arc<Self>, state: &mut State) -> bool {
        if state.resting > state.calls {
            state.calls += 1;
            self.active.fetch_add(1, Ordering::AcqRel);
            self.called.notify_one();
            return true;
        }
        let worker = Arc::new(Worker {
            pool: Arc::clone(self),
            doing: AtomicU8::new(IDLE),
            turns: AtomicU64::new(0),
            turns_seen: AtomicU64::new(0),
        });
        let thread_worker = Arc::clone(&worker);
        let started = thread::Builder::new()
            .name("clients".into())
            .stack_size(WORKER_STACK_BYTES)
            .spawn(move || {
                leave_resource_groups();
                thread_worker.work();
            });
        match started {
            Ok(_) => {
                self.active.fetch_add(1, Ordering::AcqRel);
                state.workers.push(worker);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "cannot start a thread for clients");
                false
            }
        }
    }

    fn running(&self) -> usize {
        let active = self.active.load(Ordering::Acquire);
        active.saturating_sub(self.blocked.load(Ordering::Acquire))
    }

    /// A thread waits: another one shall run.
    fn block(self: &Arc<Self>) {
        self.blocked.fetch_add(1, Ordering::AcqRel);
        self.replace_blocked();
    }

    fn replace_blocked(self: &Arc<Self>) {
        if self.running() < self.least_running {
            let mut state = lock(&self.state);
            if self.running() < self.least_running && !self.stopping.load(Ordering::Acquire) {
                self.add_worker(&mut state);
            }
        }
    }

    fn unblock(&self) {
        self.blocked.fetch_sub(1, Ordering::AcqRel);
    }

    /// Looks for statements that have been running since the last time, and lets others take their places.
    fn notice_long_statements(self: &Arc<Self>) {
        let mut workers: Vec<Arc<Worker>> = Vec::new();
        while !self.stopping.load(Ordering::Acquire) {
            thread::sleep(PACE);
            workers.clone_from(&lock(&self.state).workers);
            for worker in &workers {
                let turns = worker.turns.load(Ordering::Relaxed);
                let seen = worker.turns_seen.swap(turns, Ordering::Relaxed);
                if turns != seen || worker.doing.load(Ordering::Acquire) != RUNNING {
                    continue;
                }
                // Counted before it can be over.
                self.blocked.fetch_add(1, Ordering::AcqRel);
                let marked = worker.doing.compare_exchange(
                    RUNNING,
                    LONG,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                );
                match marked {
                    Ok(_) => self.replace_blocked(),
                    Err(_) => self.unblock(),
                }
            }
        }
    }

    /// Rests until it is called; false: the worker is to end.
    fn rest(&self, buffers: &mut Buffers) -> bool {
        let mut state = lock(&self.state);
        if self.running() <= self.most_running {
            return true;
        }
        self.active.fetch_sub(1, Ordering::AcqRel);
        state.resting += 1;
        for time in [RELEASES_AFTER, REST_TIME] {
            let mut is_over = false;
            while state.calls == 0 && !is_over && !self.stopping.load(Ordering::Acquire) {
                let wait = self.called.wait_timeout(state, time);
                let (next, timeout) = wait.unwrap_or_else(PoisonError::into_inner);
                state = next;
                is_over = timeout.timed_out();
            }
            if is_over && time == RELEASES_AFTER {
                drop(state);
                *buffers = Buffers::default();
                sheaf_storage::release_thread_memory();
                state = lock(&self.state);
            }
        }
        state.resting -= 1;
        if state.calls > 0 {
            // The thread that called has counted this one as active.
            state.calls -= 1;
            return true;
        }
        false
    }

    /// Takes the connection that is reported out of its slot; if a worker has it, it will find the report there.
    fn take(&self, report: Report) -> Option<Box<Connection>> {
        let mut place = lock(&self.slot(report.number as usize)?.0);
        match place.connection.take() {
            Some(mut connection) => {
                if report.has_ended {
                    connection.note_end();
                }
                Some(connection)
            }
            None => {
                place.is_reported = true;
                place.has_ended |= report.has_ended;
                None
            }
        }
    }

    /// Serves the connection that is reported.
    fn serve(&self, report: Report, buffers: &mut Buffers) {
        let Some(mut connection) = self.take(report) else {
            return;
        };
        let number = report.number as usize;
        connection.lend(buffers);
        // A panic is a bug; the connection is dropped with it, and all others go on.
        let served = catch_unwind(AssertUnwindSafe(|| connection.serve_ready()));
        connection.take_back(buffers);
        match served {
            Ok(Served::Owes) => {
                if let Some(held) = self.held.push(Held { number, connection }) {
                    self.settle(held);
                }
            }
            served => self.go_on(number, connection, served.unwrap_or(Served::Over)),
        }
    }

    /// Finishes commits and sends their answers, until the pool is stopped.
    fn send_deferred_answers(&self) {
        let mut batch = Vec::new();
        while self.held.take(&mut batch) {
            for held in batch.drain(..) {
                // A panic is a bug; what it was about is lost with it, and all others go on.
                let _ = catch_unwind(AssertUnwindSafe(|| self.settle(held)));
            }
        }
    }

    /// Finishes a connection's commit and sends its answer.
    fn settle(&self, held: Held) {
        let Held {
            number,
            mut connection,
        } = held;
        let settled = catch_unwind(AssertUnwindSafe(|| connection.settle()));
        // Workers have their own.
        connection.take_back(&mut Buffers::default());
        self.go_on(number, connection, settled.unwrap_or(Served::Over));
    }

    /// A connection has been served: it waits again, or ends.
    fn go_on(&self, number: usize, mut connection: Box<Connection>, served: Served) {
        let socket: RawFd = connection.descriptor();
        let for_room = served == Served::WaitsForRoom;
        let Some(slot) = self
            .slot(number)
            .filter(|_| for_room || served == Served::Waits)
        else {
            // Others may keep the socket open for a moment, but this number is soon another's.
            let _ = self.ready.sockets.remove(socket);
            drop(connection);
            lock(&self.state).free.push(number);
            return;
        };
        connection.note_wait(self.clock_seconds());
        let mut place = lock(&slot.0);
        if std::mem::take(&mut place.has_ended) {
            connection.note_end();
        }
        let is_reported = std::mem::take(&mut place.is_reported);
        let is_ready = match for_room {
            // Room may have come since it was looked for; what else has come is read when all is sent.
            true => is_reported && place.reports_room,
            false => is_reported || connection.may_have_more(),
        };
        if place.reports_room != for_room {
            // Before others can have it, and close the socket. Room that is there already is reported at once.
            let room = self
                .ready
                .sockets
                .report_room(socket, number as u64, for_room);
            if let Err(error) = room {
                tracing::warn!(%error, "a connection cannot be waited for");
                drop(place);
                return self.go_on(number, connection, Served::Over);
            }
            place.reports_room = for_room;
        }
        place.connection = Some(connection);
        drop(place);
        if is_ready {
            self.ready.push(number);
        }
    }
}

/// A new thread runs where the one runs that has started it, which may be in a session's resource group.
fn leave_resource_groups() {
    if let Err(error) = go_where_the_process_began() {
        tracing::debug!(%error, "a thread stays where the one is that has started it");
    }
}

thread_local! {
    /// Waits inside of waits are one.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

impl Worker {
    fn work(self: Arc<Self>) {
        let pool = Arc::clone(&self.pool);
        observe_waits(Some(Arc::clone(&self) as Arc<dyn WaitObserver>));
        let mut buffers = Buffers::default();
        while !pool.stopping.load(Ordering::Acquire) {
            if pool.running() > pool.most_running && !pool.rest(&mut buffers) {
                self.leave(false);
                return;
            }
            let report = match pool.ready.next() {
                Ok(Some(report)) => report,
                Ok(None) => break,
                Err(error) => {
                    tracing::error!(%error, "connections cannot be waited for");
                    break;
                }
            };
            self.turns.store(
                self.turns.load(Ordering::Relaxed).wrapping_add(1),
                Ordering::Relaxed,
            );
            self.doing.store(RUNNING, Ordering::Release);
            pool.serve(report, &mut buffers);
            if self.doing.swap(IDLE, Ordering::AcqRel) == LONG {
                pool.unblock();
            }
        }
        self.leave(true);
    }

    /// The thread ends. `is_active`: it has not been resting.
    fn leave(self: &Arc<Self>, is_active: bool) {
        observe_waits(None);
        let mut state = lock(&self.pool.state);
        if is_active {
            self.pool.active.fetch_sub(1, Ordering::AcqRel);
        }
        state.workers.retain(|worker| !Arc::ptr_eq(worker, self));
    }
}

impl WaitObserver for Worker {
    fn begin(&self) {
        if DEPTH.replace(DEPTH.get() + 1) > 0 {
            return;
        }
        match self.doing.swap(WAITING, Ordering::AcqRel) {
            RUNNING => self.pool.block(),
            // It is counted already.
            LONG => {}
            // Between statements its place is not needed.
            other => self.doing.store(other, Ordering::Release),
        }
    }

    fn end(&self) {
        DEPTH.set(DEPTH.get().saturating_sub(1));
        if DEPTH.get() > 0 {
            return;
        }
        let was_waiting =
            self.doing
                .compare_exchange(WAITING, RUNNING, Ordering::AcqRel, Ordering::Acquire);
        if was_waiting.is_ok() {
            self.pool.unblock();
        }
    }
}
