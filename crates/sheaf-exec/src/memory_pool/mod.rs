//! The memory that all running plans share: what a statement gets of it, and which of its operators gets how much.
//!
//! ```text
//!   all query memory
//!   |------------------- big statements -------------------|-- small ones --|
//!                                                             an eighth
//!   one big statement:  everything                  two: half for each, once both want it
//! ```
//!
//! A statement is *small* while it has less than [a sixteenth](SMALL_SHARE), and as long as any is left it gets what it
//! asks for. So short statements go on beside large sorts. Each big statement may count on an equal part. What cannot
//! be spilled may be more, as long as others leave it; sorts and groups that have more than their statement's part
//! spill when they ask for more. Only [so many](MAX_BIG) statements are big at the same time, fewer if each would have
//! [too little](MIN_BIG_BYTES). The others wait in a queue, those whose plan says that they will be big before they
//! begin: what flows between operators is memory as well. A wait ends with error 1041 after
//! `query_memory_wait_timeout`. A statement waits on the thread that asks: it holds no latch there, and other
//! statements' tasks go to other threads. Operators that know another way [do not wait](without_waiting) for what they
//! can do without.
//!
//! Inside a statement, operators that can spill divide fairly what its other operators leave, whether all of them want
//! their share or not. That may be less than one batch of wide rows takes, and an operator that has nothing to spill
//! yet can only fail. So one that has little may have more than its share, up to an [eighth](LEAST_SHARE) of the
//! statement's part.
//!
//! A sort spills by merging what it has in memory, and a merge holds each batch and a copy of the keys. For that a sort
//! has set aside twice the bytes of its batches. This is nearly enough, but not where keys are wide: sorts that took
//! all memory could not even spill. Therefore sorts leave [a part](MERGE_PERCENT) of it, and more if their keys are
//! [wider](crate::operator::key_width_exec) than that. A sort that comes to this limit spills what it has, be it one
//! batch.
//!
//! What sessions keep between statements, such as user variables, is [taken](QueryMemory::set_aside) from big
//! statements.
//!
//! What is not given to big statements is also the last resort of operators that have nothing to spill.
//!
//! All this is about what operators say. What they really take is [measured](sheaf_memory). While the process has more
//! than its limit, the fair part of operators that can spill is half as large. Those that cannot spill are not refused,
//! because that would only make statements fail that have done nothing wrong.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use datafusion_common::{DataFusionError, Result, resources_datafusion_err};
use datafusion_execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use sheaf_memory::{Budget, StatementMemory, process, safe_point};

use crate::blocking::blocking;
use crate::memory_consumers::OTHERS_HAVE_IT;

/// How DataFusion calls the consumers that keep what is to be sorted.
const SORTS: &str = "ExternalSorter[";
/// What is not given the last resort, though it cannot spill: with less, it runs its other side several times.
const JOINS_OF_ALL_PAIRS: &str = "NestedLoopJoin";
/// A statement is small while it has less than this part of all query memory.
const SMALL_SHARE: usize = 16;
/// What no statement that is not small may take: this part of all.
const RESERVE_SHARE: usize = 8;
/// Statements that may be big at the same time, at most.
const MAX_BIG: usize = 6;
/// There are fewer of them if each would have less than this. With less, sorts and groups spill all the time, and
/// some of them cannot even do that.
const MIN_BIG_BYTES: usize = 8 << 20;
/// Part of a statement's memory that an operator gets while there is room, however many share it.
const LEAST_SHARE: usize = 8;
/// What it takes to merge what sorts have, in percent of it, at least. Keys encoded for comparison take up to half as
/// much again as their columns.
const MERGE_PERCENT: usize = 150;
/// On top of what keys take that were measured. Those of other rows may be longer.
const KEY_MARGIN_PERCENT: usize = 25;
/// Statements that may wait at the same time. Each keeps some threads.
const MAX_QUEUE: usize = 200;
/// A statement that waits looks this often whether it shall stop.
const WAIT_SLICE: Duration = Duration::from_millis(20);

/// How long a statement waits for memory, unless it is told otherwise.
pub const DEFAULT_WAIT_SECONDS: u64 = 50;

thread_local! {
    static DOES_NOT_WAIT: Cell<bool> = const { Cell::new(false) };
}

/// Asks for memory that the operator can do without: if others have it, the answer is no, and comes at once.
pub fn without_waiting<T>(ask: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            DOES_NOT_WAIT.set(self.0);
        }
    }
    let _restore = Restore(DOES_NOT_WAIT.replace(true));
    ask()
}

/// The query memory of an engine. See the module's comment.
#[derive(Debug)]
pub struct QueryMemory {
    total_bytes: usize,
    wait_millis: AtomicU64,
    state: Mutex<Shared>,
    /// Somebody has given memory back.
    given_back: Condvar,
    /// What of it is kept for others than statements. Big statements do without.
    set_aside: OnceLock<Arc<Budget>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// What all statements have, and what the big ones of them have.
    reserved: usize,
    reserved_by_big: usize,
    big: usize,
    /// Those that wait, in the order in which they came.
    queue: VecDeque<u64>,
    next_ticket: u64,
}

impl QueryMemory {
    pub(crate) fn new(total_bytes: usize) -> QueryMemory {
        QueryMemory {
            total_bytes,
            wait_millis: AtomicU64::new(DEFAULT_WAIT_SECONDS * 1000),
            state: Mutex::default(),
            given_back: Condvar::new(),
            set_aside: OnceLock::new(),
        }
    }

    pub(crate) fn reserved_bytes(&self) -> usize {
        lock(&self.state).reserved
    }

    /// Statements that wait for memory now.
    pub fn waiting(&self) -> usize {
        lock(&self.state).queue.len()
    }

    /// How long a statement waits for memory before it fails.
    pub fn set_wait_timeout(&self, timeout: Duration) {
        let millis = timeout.as_millis().try_into().unwrap_or(u64::MAX);
        self.wait_millis.store(millis, Ordering::Relaxed);
    }

    /// What is taken of this budget is taken from big statements. The first call counts.
    pub fn set_aside(&self, budget: Arc<Budget>) {
        // An engine has one.
        let _ = self.set_aside.set(budget);
    }

    /// How long a statement waits for memory.
    pub fn wait_timeout(&self) -> Duration {
        Duration::from_millis(self.wait_millis.load(Ordering::Relaxed))
    }

    fn small_bytes(&self) -> usize {
        self.total_bytes / SMALL_SHARE
    }

    fn bytes_of_big(&self) -> usize {
        let aside = self
            .set_aside
            .get()
            .map_or(0, |budget| budget.taken_bytes());
        (self.total_bytes - self.total_bytes / RESERVE_SHARE).saturating_sub(aside)
    }

    fn max_big(&self) -> usize {
        (self.bytes_of_big() / MIN_BIG_BYTES).clamp(1, MAX_BIG)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is changed by additions and subtractions that belong together and cannot panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one statement has of the query memory. A session's statements follow one another, so it has one of these. With
/// two, a statement that is big in one of them would wait for itself.
#[derive(Debug)]
pub struct StatementPool {
    all: Arc<QueryMemory>,
    memory: Arc<StatementMemory>,
    own: Mutex<Own>,
}

#[derive(Debug, Default)]
struct Own {
    reserved: usize,
    /// Of it: what cannot be spilled.
    unspillable: usize,
    /// Of it: bytes that wait to be sorted.
    sorts: usize,
    /// Keys of sorts, in percent of their rows, as far as they were measured since the statement had nothing last.
    key_percent: usize,
    /// Bytes of a row with long values, as far as its plans have met such.
    row_bytes: usize,
    /// Operators that can spill.
    spillers: usize,
    /// The statement is one of the big ones.
    is_big: bool,
    /// Plans of it that were admitted as big ones and run.
    admissions: usize,
    /// Its place in the queue, and how many of its threads wait there.
    ticket: Option<u64>,
    waiting: usize,
    /// It has waited as long as it may, and has not become small since.
    has_waited_in_vain: bool,
    /// What the operator had that had most.
    largest: usize,
}

/// A place in the queue of those that wait.
struct Place<'a>(&'a StatementPool);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.leave_queue();
    }
}

/// A statement's leave to be big, until this is dropped.
#[derive(Debug)]
pub struct Admission(Arc<StatementPool>);

impl Drop for Admission {
    fn drop(&mut self) {
        let mut own = lock(&self.0.own);
        let mut all = lock(&self.0.all.state);
        own.admissions -= 1;
        self.0.end_being_big(&mut own, &mut all);
    }
}

/// What comes of asking for memory.
enum Decision {
    Given,
    /// The statement becomes one of the big ones by it.
    GivenAsBig,
    /// Others have it and may give it back.
    Wait,
    Refused,
}

impl StatementPool {
    pub(crate) fn new(all: Arc<QueryMemory>, memory: Arc<StatementMemory>) -> StatementPool {
        StatementPool {
            all,
            memory,
            own: Mutex::default(),
        }
    }

    /// Books that the statement has so much more, and what follows from it.
    fn add(&self, own: &mut Own, all: &mut Shared, reservation: &MemoryReservation, bytes: usize) {
        own.reserved += bytes;
        all.reserved += bytes;
        if own.is_big {
            all.reserved_by_big += bytes;
        } else if own.reserved > self.all.small_bytes() {
            Self::begin_being_big(own, all);
        }
        if !reservation.consumer().can_spill() {
            own.unspillable += bytes;
        }
        if is_sort(reservation) {
            own.sorts += bytes;
        }
        let size = reservation.size() + bytes;
        if size > own.largest {
            own.largest = size;
            self.memory
                .set_largest_consumer(reservation.consumer().name());
        }
    }

    /// Books that the statement has so much less.
    fn subtract(&self, reservation: &MemoryReservation, bytes: usize) {
        let mut own = lock(&self.own);
        let mut all = lock(&self.all.state);
        own.reserved = own.reserved.saturating_sub(bytes);
        all.reserved = all.reserved.saturating_sub(bytes);
        if own.is_big {
            all.reserved_by_big = all.reserved_by_big.saturating_sub(bytes);
            self.end_being_big(&mut own, &mut all);
        }
        if !reservation.consumer().can_spill() {
            own.unspillable = own.unspillable.saturating_sub(bytes);
        }
        if is_sort(reservation) {
            own.sorts = own.sorts.saturating_sub(bytes);
        }
        if own.reserved == 0 {
            own.largest = 0;
            own.key_percent = 0;
            own.has_waited_in_vain = false;
        }
        if !all.queue.is_empty() {
            self.all.given_back.notify_all();
        }
    }

    /// The statement becomes one of the big ones.
    fn begin_being_big(own: &mut Own, all: &mut Shared) {
        own.is_big = true;
        all.big += 1;
        all.reserved_by_big += own.reserved;
    }

    /// The statement is small again, if it has little and runs no plan that was admitted.
    fn end_being_big(&self, own: &mut Own, all: &mut Shared) {
        if own.is_big && own.admissions == 0 && own.reserved <= self.all.small_bytes() {
            own.is_big = false;
            all.big -= 1;
            all.reserved_by_big = all.reserved_by_big.saturating_sub(own.reserved);
            self.all.given_back.notify_all();
        }
    }

    /// The keys of rows that the statement is about to sort are so wide, in percent of the rows.
    pub(crate) fn note_sort_keys(&self, percent: usize) {
        let mut own = lock(&self.own);
        own.key_percent = own.key_percent.max(percent);
    }

    /// Rows of the statement take so many bytes on average in some batch.
    pub(crate) fn note_row_bytes(&self, bytes: usize) {
        let mut own = lock(&self.own);
        own.row_bytes = own.row_bytes.max(bytes);
    }

    /// What a row took in the batch in which they took most, of those that were noted since the last call.
    pub(crate) fn take_row_bytes(&self) -> usize {
        std::mem::take(&mut lock(&self.own).row_bytes)
    }

    /// Whether the statement may become one of the big ones now.
    fn may_be_big(&self, own: &Own, all: &Shared) -> bool {
        let is_next = match (all.queue.front(), own.ticket) {
            (Some(first), Some(own)) => *first == own,
            (Some(_), None) => false,
            (None, _) => true,
        };
        is_next && all.big < self.all.max_big()
    }

    /// Waits until the statement may be big, and makes it that.
    ///
    /// # Errors
    /// It has waited too long, or shall stop.
    pub(crate) fn admit(self: Arc<Self>) -> Result<Admission> {
        let is_admitted = self.wait_for(|own, all| {
            if !own.is_big && !self.may_be_big(own, all) {
                return Decision::Wait;
            }
            own.admissions += 1;
            if !own.is_big {
                Self::begin_being_big(own, all);
            }
            Decision::Given
        });
        match is_admitted {
            true => Ok(Admission(self)),
            false => Err(resources_datafusion_err!("{OTHERS_HAVE_IT}")),
        }
    }

    /// What the other statements leave, and what the statement may count on.
    fn limits(&self, own: &Own, all: &Shared) -> (usize, usize) {
        let others = all.reserved_by_big - if own.is_big { own.reserved } else { 0 };
        let big = all.big + usize::from(!own.is_big);
        let left = self.all.bytes_of_big().saturating_sub(others);
        (left, self.all.bytes_of_big() / big.max(1))
    }

    fn decide(
        &self,
        own: &Own,
        all: &Shared,
        reservation: &MemoryReservation,
        (additional, is_pressed): (usize, bool),
    ) -> Decision {
        if additional == 0 {
            return Decision::Given;
        }
        let wanted = own.reserved.saturating_add(additional);
        let is_little = wanted <= self.all.small_bytes();
        if is_little && all.reserved.saturating_add(additional) <= self.all.total_bytes {
            return Decision::Given;
        }
        if is_little && !own.is_big {
            // Small statements may have it all, and each wait for more. The first of them goes on as a big one.
            let is_left = || wanted <= self.limits(own, all).0;
            return match self.may_be_big(own, all) && is_left() {
                true => Decision::GivenAsBig,
                false => Decision::Wait,
            };
        }
        if wanted > self.all.total_bytes {
            return Decision::Refused;
        }
        if !own.is_big && !self.may_be_big(own, all) {
            return Decision::Wait;
        }
        let (left, share) = self.limits(own, all);
        let can_spill = reservation.consumer().can_spill();
        if can_spill && !is_fair(own, reservation, additional, left.min(share), is_pressed) {
            return self.last_resort((own, all), reservation, additional, (left, share));
        }
        match wanted {
            wanted if wanted <= left => Decision::Given,
            // Another statement has more than its part, and will give it back.
            wanted if wanted <= share && !DOES_NOT_WAIT.get() => Decision::Wait,
            _ if DOES_NOT_WAIT.get() => Decision::Refused,
            _ => self.last_resort((own, all), reservation, additional, (left, share)),
        }
    }

    /// A little of the reserve, for an operator that has nothing to spill. Otherwise its statement fails.
    fn last_resort(
        &self,
        (own, all): (&Own, &Shared),
        reservation: &MemoryReservation,
        additional: usize,
        (left, share): (usize, usize),
    ) -> Decision {
        let consumer = reservation.consumer();
        let least = match is_sort(reservation) {
            // It would take from what is for its own merge.
            true => 1,
            false => share / LEAST_SHARE,
        };
        let has_something = consumer.name().starts_with(JOINS_OF_ALL_PAIRS)
            || consumer.can_spill() && reservation.size() >= least;
        if has_something || additional > self.all.small_bytes() {
            return Decision::Refused;
        }
        let wanted = own.reserved.saturating_add(additional);
        // What big statements leave is there, even where small ones have taken more than is for them.
        let is_left = all.reserved.saturating_add(additional) <= self.all.total_bytes
            || own.is_big && wanted <= left;
        // An operator that has nothing at all does nothing without it, and others are going to give it back.
        let can_wait = reservation.size() == 0 && wanted <= share && !DOES_NOT_WAIT.get();
        match is_left {
            true => Decision::Given,
            false if can_wait => Decision::Wait,
            false => Decision::Refused,
        }
    }

    /// What a statement fails with. It names the operator that has more than the others, which may not be the one that
    /// asks.
    fn exhausted(&self, reservation: &MemoryReservation, additional: usize) -> DataFusionError {
        let largest = lock(&self.own).largest;
        if let Some(name) = self.memory.largest_consumer()
            && largest / 2 > reservation.size().saturating_add(additional)
        {
            return resources_datafusion_err!(
                "{name} has {largest} bytes of query memory, and {additional} more are not left"
            );
        }
        resources_datafusion_err!(
            "{} has {} bytes of query memory, and {additional} more are not left",
            reservation.consumer().name(),
            reservation.size()
        )
    }

    /// Waits until others have given memory back, or a moment. False: the statement shall stop.
    fn wait_a_moment(&self) -> bool {
        let wait = || {
            let all = lock(&self.all.state);
            // What comes of it is looked at by the caller.
            drop(self.all.given_back.wait_timeout(all, WAIT_SLICE));
        };
        blocking(|| sheaf_storage::sync::waiting(wait));
        !self.memory.shall_stop()
    }

    /// Takes a place at the end of the queue, unless another thread of the statement has one. `None`: the queue is
    /// full, or the statement has waited in vain before.
    fn enter_queue(&self) -> Option<Place<'_>> {
        let mut own = lock(&self.own);
        if own.has_waited_in_vain {
            return None;
        }
        if own.ticket.is_none() {
            let mut all = lock(&self.all.state);
            if all.queue.len() >= MAX_QUEUE {
                return None;
            }
            let ticket = all.next_ticket;
            all.next_ticket += 1;
            all.queue.push_back(ticket);
            own.ticket = Some(ticket);
        }
        own.waiting += 1;
        self.memory.set_waiting(true);
        Some(Place(self))
    }

    fn leave_queue(&self) {
        let mut own = lock(&self.own);
        own.waiting -= 1;
        if own.waiting == 0
            && let Some(ticket) = own.ticket.take()
        {
            let mut all = lock(&self.all.state);
            all.queue.retain(|other| *other != ticket);
            self.memory.set_waiting(false);
            self.all.given_back.notify_all();
        }
    }

    /// Asks until the answer is not to wait. False: it was refused, or the statement has waited too long or shall stop.
    fn wait_for(&self, mut ask: impl FnMut(&mut Own, &mut Shared) -> Decision) -> bool {
        let mut attempt = || ask(&mut lock(&self.own), &mut lock(&self.all.state));
        match attempt() {
            Decision::Given | Decision::GivenAsBig => return true,
            Decision::Refused => return false,
            Decision::Wait if DOES_NOT_WAIT.get() => return false,
            Decision::Wait => {}
        }
        let began = Instant::now();
        let timeout = self.all.wait_timeout().saturating_sub(self.memory.waited());
        let Some(_place) = self.enter_queue() else {
            return false;
        };
        loop {
            match attempt() {
                Decision::Given | Decision::GivenAsBig => return true,
                Decision::Refused => return false,
                Decision::Wait if began.elapsed() >= timeout => {
                    // What can spill asks again with each batch, and would wait each time.
                    lock(&self.own).has_waited_in_vain = true;
                    return false;
                }
                Decision::Wait if !self.wait_a_moment() => return false,
                Decision::Wait => {}
            }
        }
    }
}

/// The pool of a statement, as operators see it.
#[derive(Debug)]
pub(crate) struct OfStatement(pub Arc<StatementPool>);

impl MemoryPool for OfStatement {
    fn name(&self) -> &str {
        "query memory"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            lock(&self.0.own).spillers += 1;
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            let mut own = lock(&self.0.own);
            own.spillers = own.spillers.saturating_sub(1);
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        let mut own = lock(&self.0.own);
        let mut all = lock(&self.0.all.state);
        self.0.add(&mut own, &mut all, reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.0.subtract(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        safe_point();
        // Asked before anything is locked: the answer may take a while.
        let is_pressed = reservation.consumer().can_spill() && process::is_pressed();
        let is_given = self.0.wait_for(|own, all| {
            let decision = self
                .0
                .decide(own, all, reservation, (additional, is_pressed));
            if matches!(decision, Decision::GivenAsBig) {
                StatementPool::begin_being_big(own, all);
            }
            if matches!(decision, Decision::Given | Decision::GivenAsBig) {
                self.0.add(own, all, reservation, additional);
            }
            decision
        });
        if is_given {
            return Ok(());
        }
        Err(self.0.exhausted(reservation, additional))
    }

    fn reserved(&self) -> usize {
        lock(&self.0.own).reserved
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.0.all.bytes_of_big())
    }
}

impl Drop for StatementPool {
    /// Reservations keep the pool, so none is left.
    fn drop(&mut self) {
        let own = lock(&self.own);
        debug_assert_eq!(own.reserved, 0, "reservations keep their pool");
    }
}

/// Whether an operator that can spill stays within its part of what the statement may have. `is_pressed`: the process
/// has more than its limit.
fn is_fair(
    own: &Own,
    reservation: &MemoryReservation,
    additional: usize,
    limit: usize,
    is_pressed: bool,
) -> bool {
    let size = reservation.size().saturating_add(additional);
    if additional > limit.saturating_sub(own.reserved) {
        return false;
    }
    let least = limit / LEAST_SHARE;
    if is_sort(reservation) {
        let others = own.reserved.saturating_sub(own.sorts);
        let rest = limit.saturating_sub(others);
        // One batch is spilled without a merge.
        if own.sorts.saturating_add(additional) > rest / merge_percent(own) * 100 {
            return reservation.size() == 0 && size <= least;
        }
    }
    let fair = limit.saturating_sub(own.unspillable) / own.spillers.max(1);
    size <= least.max(fair / if is_pressed { 2 } else { 1 })
}

/// What it takes to merge what sorts have, in percent of it. They have reserved twice the bytes of their rows, and a
/// merge holds the rows and their keys.
fn merge_percent(own: &Own) -> usize {
    let rows_and_keys = (100 + own.key_percent) / 2;
    MERGE_PERCENT.max(rows_and_keys * (100 + KEY_MARGIN_PERCENT) / 100)
}

fn is_sort(reservation: &MemoryReservation) -> bool {
    reservation.consumer().name().starts_with(SORTS)
}

impl fmt::Display for OfStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}(pool_size: {} bytes)",
            self.name(),
            self.0.all.total_bytes
        )
    }
}

#[cfg(test)]
mod tests;
