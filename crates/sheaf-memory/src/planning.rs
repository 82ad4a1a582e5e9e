//! What statements take before they run: their syntax trees, what they are bound to, and their plans.
//!
//! All of that is many times as large as the text: a list of 4,000 expressions, 27 KB, takes 11 MiB. So statements
//! share [`PlanningMemory`], and only so many large ones are planned at the same time:
//!
//! ```text
//!   |---------------- large statements ----------------|-- small ones --|       and what everyone has:
//!                                                          an eighth              FREE_BYTES each
//! ```
//!
//! A statement whose text says that it takes much [asks](PlanningShare::admit) before anything is made of it. Where
//! others have the memory it waits, the large ones in a queue, the small ones in another. It holds nothing then. What
//! it takes is measured while it is planned ([`PlanningShare::during`]), and when that is more than its share it [asks
//! for more](has_share_for). When it runs, or [waits for a lock](crate::waits_for_lock), it [keeps] what is left of it.
//! A [plan](PlanningShare::begin_plan) that has run is not counted any more.
//!
//! A statement that gives memory back hands it over to those that wait, in the order in which they asked first, and
//! wakes only them. A small statement never waits for large ones: they leave a part of the memory alone. It takes more
//! than that part only while no large one waits.
//!
//! # Nobody waits for ever
//!
//! A statement that asks for more has memory, and tables that stay as they are. It waits only for statements that are
//! being planned. Of these the one that asked first gets what it asks for, even if it is more than there is. The
//! process's [limit](crate::process) may stop it, but it waits for no other. One that waits for a lock is not being
//! planned meanwhile.
//!
//! A statement that is to be admitted may have locks of its transaction, and one with a share may wait for these. So
//! such a statement gives up after a [while](STANDSTILL) in which nobody has given anything back. One that looked small
//! and asks for more has no memory yet: it stands in the same queue, and passes those before it after as long.
//!
//! Statements that run keep their plans, also those whose clients read slowly. When these are all that is taken, the
//! next statement is admitted if the process has room for it.
//!
//! [keeps]: PlanningShare::pause

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{StatementMemory, held_by_thread, process};

/// What each statement may take without asking. Most take less.
pub const FREE_BYTES: usize = 256 << 10;
/// A statement is small while its share is no more than this part of all.
const SMALL_SHARE: usize = 16;
/// Large statements leave this part of all to small ones.
const RESERVE_SHARE: usize = 8;
/// A statement that takes more than its share asks for so much more than it takes.
const STEP_BYTES: usize = 256 << 10;
/// A statement that waits looks this often whether it shall stop.
const WAIT_SLICE: Duration = Duration::from_millis(50);
/// And at most this often, in the end, whether the process has room for it: that look may cost much.
const ROOM_SLICE: Duration = Duration::from_secs(1);
/// Names, beside operators, what statements take before they run.
pub const PLANNING: &str = "Planning";
/// Sizes are added to each other: what a statement asks for is no more than this.
const MAX_BYTES: usize = (i64::MAX / 2) as usize;
/// A statement that others may wait for waits in the queue no longer than this while nobody gives memory back.
const STANDSTILL: Duration = Duration::from_secs(2);

/// How a session's statements wait.
pub trait Waiter: Send + Sync {
    /// Whether the statement shall stop, or its client is gone.
    fn shall_stop(&self) -> bool;
    /// How long it waits at most.
    fn most(&self) -> Duration;
    /// Does `wait`, which blocks the thread.
    fn wait(&self, wait: &mut dyn FnMut());
}

/// The memory that all statements share for what they are before they run. See the module's comment.
#[derive(Debug)]
pub struct PlanningMemory {
    limit_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What small and large statements have.
    taken: [usize; 2],
    /// Statements with shares, and those that wait for one, in the order in which they have asked first.
    statements: BTreeMap<u64, Statement>,
    last_number: u64,
    waiting: usize,
    /// Counts for each size how often bytes were given back, or the queue was passed.
    returns: [u64; 2],
}

#[derive(Debug, Default)]
struct Statement {
    bytes: usize,
    size: Size,
    /// It is being planned: it neither runs nor waits for anything but memory.
    is_planned: bool,
    wanted: Option<Wanted>,
}

/// Small and large statements have memory of their own. The number of a size is its place in arrays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Size {
    #[default]
    Small,
    Large,
}

#[derive(Clone, Debug)]
struct Wanted {
    /// With what it has.
    bytes: usize,
    asks: Asks,
    given: Arc<Condvar>,
}

/// Why a statement asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    /// It is to be planned. `holds_locks`: others may wait for it.
    ToBegin { holds_locks: bool },
    /// It is being planned.
    ForMore,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind this lock is changed by additions and subtractions that cannot panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Statement {
    /// The size that it has with so many bytes. A large one does not become small.
    fn size_with(&self, bytes: usize, most_of_small: usize) -> Size {
        match bytes > most_of_small {
            true => Size::Large,
            false => self.size,
        }
    }

    /// It has nothing yet, whatever it waits for.
    fn is_new(&self) -> bool {
        self.bytes == 0
    }

    /// It is being planned with what it has, which it gives back.
    fn uses_planned(&self) -> bool {
        self.is_planned && !self.is_new()
    }

    /// It stands in the queue. Others that wait have something, and wait only for those that are planned.
    fn is_queued(&self) -> bool {
        self.is_new() && self.wanted.is_some()
    }

    /// From now on it has so many bytes.
    fn take(&mut self, bytes: usize, size: Size, taken: &mut [usize; 2]) {
        taken[self.size as usize] -= self.bytes;
        taken[size as usize] += bytes;
        (self.bytes, self.size) = (bytes, size);
    }

    /// It has what it has asked for.
    fn take_wanted(&mut self, size: Size, taken: &mut [usize; 2]) {
        if let Some(wanted) = self.wanted.take() {
            self.take(wanted.bytes, size, taken);
            self.is_planned = true;
            wanted.given.notify_one();
        }
    }
}

impl PlanningMemory {
    pub fn new(limit_bytes: usize) -> Arc<PlanningMemory> {
        Arc::new(PlanningMemory {
            limit_bytes,
            state: Mutex::default(),
        })
    }

    /// What all statements have.
    pub fn taken_bytes(&self) -> usize {
        lock(&self.state).taken.iter().sum()
    }

    /// Statements that wait now.
    pub fn waiting(&self) -> usize {
        lock(&self.state).waiting
    }

    fn most_of_small(&self) -> usize {
        self.limit_bytes / SMALL_SHARE
    }

    fn reserve(&self) -> usize {
        self.limit_bytes / RESERVE_SHARE
    }

    fn for_large(&self) -> usize {
        self.limit_bytes - self.reserve()
    }

    /// Whether so much more is left for statements of this size. `large_wait`: what large ones may take is not for it.
    fn is_left(&self, taken: &[usize; 2], size: Size, bytes: usize, large_wait: bool) -> bool {
        let with_it = taken[size as usize].saturating_add(bytes);
        match size {
            Size::Large => with_it <= self.for_large(),
            Size::Small => {
                let others = taken[Size::Large as usize];
                with_it <= self.reserve()
                    || !large_wait && with_it.saturating_add(others) <= self.limit_bytes
            }
        }
    }

    /// Gives those that wait what there is for them.
    fn hand_over(&self, state: &mut State) {
        // One that becomes large leaves room to small ones before it.
        while self.hand_over_once(state) {}
    }

    /// False: nobody got anything.
    fn hand_over_once(&self, state: &mut State) -> bool {
        let State {
            taken, statements, ..
        } = state;
        let mut has_given = false;
        // Of each size: whether one that has asked before is being planned, or waits to be.
        let (mut planned_before, mut waits_before) = ([false; 2], [false; 2]);
        for statement in statements.values_mut() {
            if let Some(wanted) = &statement.wanted {
                let size = statement.size_with(wanted.bytes, self.most_of_small());
                let had = match size == statement.size {
                    true => statement.bytes,
                    false => 0,
                };
                let more = wanted.bytes.saturating_sub(had);
                let large_wait = waits_before[Size::Large as usize];
                let fits = self.is_left(taken, size, more, large_wait);
                let waits_before = &mut waits_before[size as usize];
                let is_given = match wanted.asks {
                    _ if statement.is_new() && *waits_before => false,
                    // The eldest waits for nobody.
                    Asks::ForMore => fits || !planned_before[size as usize],
                    Asks::ToBegin { .. } => fits,
                };
                match is_given {
                    true => statement.take_wanted(size, taken),
                    false => *waits_before |= statement.is_queued(),
                }
                has_given |= is_given;
            }
            planned_before[statement.size as usize] |= statement.uses_planned();
        }
        has_given
    }

    /// The size of a statement when it has what it wants.
    fn wanted_size(&self, statement: &Statement) -> Size {
        let wanted = statement.wanted.as_ref();
        let bytes = wanted.map_or(statement.bytes, |wanted| wanted.bytes);
        statement.size_with(bytes, self.most_of_small())
    }

    /// Whether a statement is the next to be admitted, and waits only for statements that run.
    fn waits_for_running(&self, state: &State, number: u64) -> bool {
        let size_of = |statement: &Statement| self.wanted_size(statement);
        let Some(own) = state.statements.get(&number).map(size_of) else {
            return false;
        };
        let mut others = state.statements.iter();
        !others.any(|(other, statement)| {
            let is_before = *other < number && statement.is_queued();
            let is_in_the_way = statement.uses_planned() || is_before;
            *other != number && size_of(statement) == own && is_in_the_way
        })
    }
}

/// What a session's running statement has of the [`PlanningMemory`]. Only the session's thread uses it.
pub struct PlanningShare {
    all: Arc<PlanningMemory>,
    memory: Arc<StatementMemory>,
    waiter: Box<dyn Waiter>,
    /// What the statement was seen to take when it was planned last.
    used_bytes: AtomicUsize,
    /// Of the statement in the state; 0: it has no share.
    number: AtomicU64,
}

#[derive(Clone, Copy)]
struct Phase {
    /// The thread's count when the statement had nothing.
    base: i64,
    /// What the statement may take.
    most: i64,
}

const NO_PHASE: Phase = Phase {
    base: 0,
    most: i64::MAX,
};

thread_local! {
    static PHASE: Cell<Phase> = const { Cell::new(NO_PHASE) };
    /// Of the statement that this thread plans.
    static SHARE: RefCell<Option<Arc<PlanningShare>>> = const { RefCell::new(None) };
}

/// Ends a phase in which a statement is planned.
struct EndPhase;

impl Drop for EndPhase {
    fn drop(&mut self) {
        let phase = PHASE.replace(NO_PHASE);
        if let Some(share) = SHARE.take() {
            let used = (held_by_thread() - phase.base).max(0) as usize;
            share.used_bytes.store(used, Ordering::Relaxed);
            let memory = &share.memory;
            memory.tree_is_made(used);
            if memory.is_stopped() && memory.largest_consumer().is_none() {
                memory.set_largest_consumer(PLANNING);
            }
        }
    }
}

/// Whether the statement that this thread plans may take so much more now: it asks for it if its share is used up, and
/// may wait. False: it shall stop. Outside of [`PlanningShare::during`] it costs one load.
#[inline]
pub fn has_share_for(bytes: usize) -> bool {
    let phase = PHASE.get();
    if phase.most == NO_PHASE.most {
        return true;
    }
    let used = (held_by_thread() - phase.base).saturating_add_unsigned(bytes as u64);
    used <= phase.most || ask_for_more(phase, used)
}

/// Does `work`, what of which stays does not count as planned. It may wait for locks.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    /// Goes on with the phase, also when `work` panics.
    struct GoOn {
        share: Arc<PlanningShare>,
        used: i64,
    }

    impl Drop for GoOn {
        fn drop(&mut self) {
            self.share.go_on(self.used);
        }
    }

    let phase = PHASE.get();
    let Some(share) = SHARE.take() else {
        return work();
    };
    PHASE.set(NO_PHASE);
    let used = held_by_thread() - phase.base;
    share
        .used_bytes
        .store(used.max(0) as usize, Ordering::Relaxed);
    let _go_on = GoOn { share, used };
    work()
}

#[cold]
fn ask_for_more(phase: Phase, used: i64) -> bool {
    let Some(share) = SHARE.with_borrow(Clone::clone) else {
        return true;
    };
    // Waiting passes safe points.
    PHASE.set(NO_PHASE);
    let most = share.grow(used.max(0) as usize);
    PHASE.set(Phase {
        // One that shall stop does not ask again.
        most: most.unwrap_or(i64::MAX),
        ..phase
    });
    if most.is_none() && !share.memory.shall_stop() {
        share.memory.stop_for_memory();
    }
    most.is_some()
}

impl PlanningShare {
    pub fn new(
        all: &Arc<PlanningMemory>,
        memory: &Arc<StatementMemory>,
        waiter: Box<dyn Waiter>,
    ) -> Arc<PlanningShare> {
        let share = Arc::new(PlanningShare {
            all: Arc::clone(all),
            memory: Arc::clone(memory),
            waiter,
            used_bytes: AtomicUsize::new(0),
            number: AtomicU64::new(0),
        });
        let of_waiting = Arc::downgrade(&share);
        memory.on_lock_wait(Box::new(move || {
            if let Some(share) = of_waiting.upgrade() {
                share.pause();
            }
        }));
        share
    }

    /// Takes the share of a statement that is likely to take so many bytes until it runs. It waits where others have
    /// them; `begins_to_wait` hears of it, and what it returns is kept until the wait is over. False: others still have
    /// them, or the statement shall stop. A statement that has a share goes on with it.
    pub fn admit<T>(
        &self,
        bytes: usize,
        holds_locks: bool,
        begins_to_wait: impl FnOnce() -> T,
    ) -> bool {
        if bytes <= FREE_BYTES || self.has_share() {
            return true;
        }
        let asks = Asks::ToBegin { holds_locks };
        let Some(given) = self.ask(bytes.min(self.all.for_large()), asks) else {
            return true;
        };
        let _until_it_is_over = begins_to_wait();
        // Beside statements that run, the process needs room for all of it.
        let is_given = self.wait_for(bytes, asks, &given);
        if !is_given {
            self.leave();
        }
        is_given
    }

    fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    fn has_share(&self) -> bool {
        self.number() != 0
    }

    /// Does `work`, in which the statement is planned: what the thread allocates meanwhile is measured.
    pub fn during<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        if SHARE.with_borrow(Option::is_some) {
            return work();
        }
        let _end = self.begin_phase();
        work()
    }

    fn begin_phase(self: &Arc<Self>) -> EndPhase {
        self.go_on(self.used_bytes.load(Ordering::Relaxed) as i64);
        EndPhase
    }

    /// The statement is planned by this thread, and uses so much.
    fn go_on(self: &Arc<Self>, used: i64) {
        let mut most = FREE_BYTES;
        if self.has_share()
            && let Some(own) = lock(&self.all.state).statements.get_mut(&self.number())
        {
            own.is_planned = true;
            most = most.max(own.bytes);
        }
        PHASE.set(Phase {
            base: held_by_thread() - used,
            most: most as i64,
        });
        SHARE.set(Some(Arc::clone(self)));
    }

    /// A plan begins to be made. What is used from here on until it [is made](PlanBytes::is_made) goes with what is
    /// returned.
    pub fn begin_plan(self: &Arc<Self>) -> PlanBytes {
        PlanBytes {
            share: Arc::clone(self),
            before: self.used_bytes.load(Ordering::Relaxed),
            bytes: None,
        }
    }

    /// The statement runs now, or waits for a lock, until it is planned again. It keeps what it uses of its share.
    pub fn pause(&self) {
        if self.has_share() {
            self.keep_used();
        }
    }

    #[cold]
    fn keep_used(&self) {
        if SHARE.with_borrow(Option::is_some) {
            // It is not measured yet.
            return;
        }
        let used = self.used_bytes.load(Ordering::Relaxed);
        if used <= FREE_BYTES {
            return self.leave();
        }
        let mut state = lock(&self.all.state);
        let State {
            taken,
            statements,
            returns,
            ..
        } = &mut *state;
        let Some(own) = statements.get_mut(&self.number()) else {
            return;
        };
        let (before, size) = (own.bytes, own.size);
        own.is_planned = false;
        own.take(used, own.size_with(used, self.all.most_of_small()), taken);
        returns[size as usize] += u64::from(used < before);
        self.all.hand_over(&mut state);
    }

    /// The statement is over.
    pub fn end(&self) {
        if self.used_bytes.load(Ordering::Relaxed) != 0 {
            self.used_bytes.store(0, Ordering::Relaxed);
        }
        if self.has_share() {
            self.leave();
        }
    }

    /// The statement has no share any more.
    fn leave(&self) {
        let number = self.number.swap(0, Ordering::Relaxed);
        let mut state = lock(&self.all.state);
        let Some(own) = state.statements.remove(&number) else {
            return;
        };
        state.taken[own.size as usize] -= own.bytes;
        state.returns[own.size as usize] += u64::from(own.bytes > 0);
        self.all.hand_over(&mut state);
    }

    /// Asks for room for so many bytes, and some more. Returns what the statement may take from now on; `None`: it
    /// shall stop.
    fn grow(&self, used: usize) -> Option<i64> {
        let bytes = used.saturating_add(STEP_BYTES.max(used / 8)).min(MAX_BYTES);
        let is_given = match self.ask(bytes, Asks::ForMore) {
            Some(given) => self.wait_for(bytes, Asks::ForMore, &given),
            None => true,
        };
        is_given.then_some(bytes as i64)
    }

    /// Asks for a share of so many bytes. `None`: the statement has it.
    fn ask(&self, bytes: usize, asks: Asks) -> Option<Arc<Condvar>> {
        let given = Arc::new(Condvar::new());
        let mut state = lock(&self.all.state);
        if !self.has_share() {
            state.last_number += 1;
            self.number.store(state.last_number, Ordering::Relaxed);
        }
        let own = state.statements.entry(self.number()).or_default();
        own.is_planned |= asks == Asks::ForMore;
        own.wanted = Some(Wanted {
            bytes,
            asks,
            given: Arc::clone(&given),
        });
        self.all.hand_over(&mut state);
        self.wants(&state).then_some(given)
    }

    /// Whether the statement has asked for something, and does not have it yet.
    fn wants(&self, state: &State) -> bool {
        let own = state.statements.get(&self.number());
        own.is_some_and(|own| own.wanted.is_some())
    }

    /// Waits until the statement has what it has asked for. False: it does not get it, or shall stop.
    fn wait_for(&self, bytes: usize, asks: Asks, given: &Condvar) -> bool {
        let _waiting = Waiting::begin(self);
        let (began, most) = (Instant::now(), self.waiter.most());
        let (mut returns, mut moved) = (None, began);
        let (mut room_asked, mut room_slice) = (None::<Instant>, WAIT_SLICE);
        loop {
            let only_running = {
                let state = lock(&self.all.state);
                if !self.wants(&state) {
                    return true;
                }
                let now = self.returns_of_its_size(&state);
                if returns != now {
                    (returns, moved) = (now, Instant::now());
                    (room_asked, room_slice) = (None, WAIT_SLICE);
                }
                asks != Asks::ForMore && self.all.waits_for_running(&state, self.number())
            };
            if only_running && room_asked.is_none_or(|asked| asked.elapsed() >= room_slice) {
                if process::make_room(bytes) && self.take_room() {
                    return true;
                }
                if room_asked.replace(Instant::now()).is_some() {
                    room_slice = ROOM_SLICE.min(room_slice * 2);
                }
            }
            if began.elapsed() >= most || self.waiter.shall_stop() {
                return false;
            }
            if moved.elapsed() >= STANDSTILL {
                match asks {
                    Asks::ToBegin { holds_locks: true } => return false,
                    Asks::ForMore if self.pass(returns) => return true,
                    Asks::ForMore | Asks::ToBegin { .. } => {}
                }
            }
            self.waiter.wait(&mut || {
                let state = lock(&self.all.state);
                if self.wants(&state) {
                    drop(given.wait_timeout(state, WAIT_SLICE));
                }
            });
        }
    }

    /// How often the statements that it waits behind have made room. Others come and go beside them.
    fn returns_of_its_size(&self, state: &State) -> Option<u64> {
        let own = state.statements.get(&self.number())?;
        Some(state.returns[self.all.wanted_size(own) as usize])
    }

    /// Takes what is wanted, though statements that run have it: the process has room. False: others are planned now.
    fn take_room(&self) -> bool {
        let mut state = lock(&self.all.state);
        let may_take = self.all.waits_for_running(&state, self.number());
        if may_take {
            self.take_wanted(&mut state);
        }
        may_take
    }

    /// A statement that has nothing yet passes those before it in the queue, which wait for statements that run: these
    /// may wait for its locks. One does at a time: nobody has since `returns` were counted. False: it waits for
    /// statements that are planned.
    fn pass(&self, returns: Option<u64>) -> bool {
        let mut state = lock(&self.all.state);
        let own = state.statements.get(&self.number());
        let may_pass = own.is_some_and(Statement::is_new)
            && returns == self.returns_of_its_size(&state)
            && !state.statements.values().any(Statement::uses_planned);
        if may_pass {
            self.take_wanted(&mut state);
            let size = state.statements.get(&self.number()).map(|own| own.size);
            state.returns[size.unwrap_or_default() as usize] += 1;
        }
        may_pass
    }

    fn take_wanted(&self, state: &mut State) {
        let State {
            taken, statements, ..
        } = state;
        if let Some(own) = statements.get_mut(&self.number())
            && let Some(wanted) = &own.wanted
        {
            let size = own.size_with(wanted.bytes, self.all.most_of_small());
            own.take_wanted(size, taken);
        }
    }
}

/// What a plan takes of what its statement uses, until this is dropped.
pub struct PlanBytes {
    share: Arc<PlanningShare>,
    /// What the statement used before.
    before: usize,
    /// `None`: it is being made.
    bytes: Option<usize>,
}

impl PlanBytes {
    /// What is used from now on is not the plan's.
    pub fn is_made(&mut self) {
        self.bytes = Some(self.bytes_now());
    }

    fn bytes_now(&self) -> usize {
        let used = self.share.used_bytes.load(Ordering::Relaxed);
        self.bytes.unwrap_or(used.saturating_sub(self.before))
    }
}

impl Drop for PlanBytes {
    fn drop(&mut self) {
        let used = &self.share.used_bytes;
        let left = used
            .load(Ordering::Relaxed)
            .saturating_sub(self.bytes_now());
        used.store(left, Ordering::Relaxed);
    }
}

/// A statement that waits.
struct Waiting<'a>(&'a PlanningShare);

impl<'a> Waiting<'a> {
    fn begin(share: &'a PlanningShare) -> Waiting<'a> {
        lock(&share.all.state).waiting += 1;
        share.memory.set_waiting(true);
        Waiting(share)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.all.state);
        state.waiting -= 1;
        let own = state.statements.get_mut(&self.0.number());
        if own.is_some_and(|own| own.wanted.take().is_some()) {
            // It has been in the way of others.
            self.0.all.hand_over(&mut state);
        }
        drop(state);
        self.0.memory.set_waiting(false);
    }
}

impl fmt::Debug for PlanningShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanningShare")
            .field("own", &lock(&self.all.state).statements.get(&self.number()))
            .field("used_bytes", &self.used_bytes)
            .finish_non_exhaustive()
    }
}

impl Drop for PlanningShare {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;
