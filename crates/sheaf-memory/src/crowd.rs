//! How many statements may begin at the same time.
//!
//! A statement takes memory that nobody asks for: its plan, the batches between its operators, its threads' stacks.
//! It is [measured](crate::process), but only when it is there. Two hundred statements that begin at once have passed
//! every limit by then. So each of them books what a statement usually takes for the moment until it is measured, and
//! while there is no room for that, those that come wait in a queue and hold nothing yet.
//!
//! ```text
//!   |======= the process, as measured =======|== begun lately, booked ==|== the next one ==|      limit
//! ```
//!
//! Somebody goes on in any case: a statement waits only while another one is inside. What runs for long, or has a slow
//! client, keeps nobody waiting for as long: once all that are inside are measured, the next one begins if the process
//! is not far beyond its limit. One whose transaction has locks, which those inside may wait for, does not wait.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::StatementMemory;
use crate::planning::Waiter;
use crate::process::{self, Room};

/// What a statement usually takes beside what its operators ask for.
const BOOKED_BYTES: usize = 4 << 20;
/// After this long, what a statement takes has been measured.
const MEASURED_AFTER: Duration = Duration::from_secs(1);
/// A statement that waits looks this often whether there is room, or it shall stop.
const WAIT_SLICE: Duration = Duration::from_millis(20);

/// The statements of an engine that are planned or run. See the module's comment.
#[derive(Debug, Default)]
pub struct Crowd {
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Default)]
struct State {
    last_number: u64,
    inside: BTreeMap<u64, Begun>,
    /// When one has begun last.
    begun: Option<Instant>,
    /// Those that wait, in the order in which they came.
    queue: VecDeque<u64>,
}

struct Begun {
    at: Instant,
    memory: Arc<StatementMemory>,
}

impl Begun {
    /// What it is going to take before it is measured.
    fn booked_bytes(&self) -> usize {
        match self.at.elapsed() < MEASURED_AFTER {
            true => BOOKED_BYTES.saturating_sub(self.memory.held_bytes()),
            false => 0,
        }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} inside, {} wait", self.inside.len(), self.queue.len())
    }
}

impl State {
    /// Whether another statement may begin.
    fn has_room(&self, room_for: &dyn Fn(usize) -> Room) -> bool {
        if self.inside.is_empty() {
            return true;
        }
        let booked: usize = self.inside.values().map(Begun::booked_bytes).sum();
        match room_for(booked + BOOKED_BYTES) {
            Room::WithinLimit => true,
            Room::WithinTolerance => {
                let is_measured = |begun: Instant| begun.elapsed() >= MEASURED_AFTER;
                self.begun.is_none_or(is_measured)
            }
            Room::None => false,
        }
    }

    fn begin(&mut self, number: u64, memory: &Arc<StatementMemory>) {
        let begun = Begun {
            at: Instant::now(),
            memory: Arc::clone(memory),
        };
        self.begun = Some(begun.at);
        self.inside.insert(number, begun);
    }
}

impl Crowd {
    /// Statements that wait now.
    pub fn waiting(&self) -> usize {
        self.lock().queue.len()
    }

    /// Statements that are planned or run now.
    pub fn inside(&self) -> usize {
        self.lock().inside.len()
    }

    /// A statement begins when there is room for it, or at once if others may wait for it. `None`: it has waited as
    /// long as it may, or shall stop. What `limit_time` gives is kept while it waits.
    pub fn enter<T>(
        self: &Arc<Self>,
        memory: &Arc<StatementMemory>,
        holds_locks: bool,
        waiter: &dyn Waiter,
        limit_time: impl FnOnce() -> T,
    ) -> Option<Place> {
        let holder = (memory, holds_locks);
        self.enter_where(holder, waiter, limit_time, &process::room_for)
    }

    fn enter_where<T>(
        self: &Arc<Self>,
        (memory, holds_locks): (&Arc<StatementMemory>, bool),
        waiter: &dyn Waiter,
        limit_time: impl FnOnce() -> T,
        room_for: &dyn Fn(usize) -> Room,
    ) -> Option<Place> {
        let mut state = self.lock();
        state.last_number += 1;
        let number = state.last_number;
        let place = || Place {
            crowd: Arc::clone(self),
            number,
        };
        if holds_locks || state.queue.is_empty() && state.has_room(room_for) {
            state.begin(number, memory);
            return Some(place());
        }
        state.queue.push_back(number);
        drop(state);
        let queued = Queued {
            crowd: self,
            number,
            memory,
        };
        memory.set_waiting(true);
        let _limit = limit_time();
        queued.wait(waiter, room_for).then(place)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is one of a single collection.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue, which it leaves when it is dropped.
struct Queued<'a> {
    crowd: &'a Crowd,
    number: u64,
    memory: &'a Arc<StatementMemory>,
}

impl Queued<'_> {
    /// Waits until it is the next one and there is room, and begins. False: it has waited long enough, or shall stop.
    fn wait(&self, waiter: &dyn Waiter, room_for: &dyn Fn(usize) -> Room) -> bool {
        let began = Instant::now();
        loop {
            {
                let mut state = self.crowd.lock();
                let is_first = state.queue.front() == Some(&self.number);
                if is_first && state.has_room(room_for) {
                    state.begin(self.number, self.memory);
                    return true;
                }
            }
            // Both may take a while, and others are not to wait for that.
            if began.elapsed() >= waiter.most() || waiter.shall_stop() {
                return false;
            }
            waiter.wait(&mut || {
                // What comes of it is looked at again.
                drop(self.crowd.left.wait_timeout(self.crowd.lock(), WAIT_SLICE));
            });
        }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.memory.set_waiting(false);
        self.crowd
            .lock()
            .queue
            .retain(|number| *number != self.number);
        self.crowd.left.notify_all();
    }
}

/// A statement that is inside, until this is dropped.
#[derive(Debug)]
pub struct Place {
    crowd: Arc<Crowd>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.crowd.lock();
        state.inside.remove(&self.number);
        if !state.queue.is_empty() {
            self.crowd.left.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;

    use super::*;
    use crate::StopFlag;

    struct Waits {
        most: Duration,
        stops: AtomicBool,
    }

    impl Waiter for Waits {
        fn shall_stop(&self) -> bool {
            self.stops.load(Ordering::Relaxed)
        }

        fn most(&self) -> Duration {
            self.most
        }

        fn wait(&self, wait: &mut dyn FnMut()) {
            wait();
        }
    }

    fn waits(most: Duration) -> Waits {
        Waits {
            most,
            stops: AtomicBool::new(false),
        }
    }

    fn memory() -> Arc<StatementMemory> {
        StatementMemory::new(Arc::new(StopFlag::default()))
    }

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn those_that_begin_at_once_book_what_they_will_take() {
        let crowd = Arc::new(Crowd::default());
        let room = |bytes: usize| match bytes <= 3 * BOOKED_BYTES {
            true => Room::WithinLimit,
            false => Room::WithinTolerance,
        };
        let enter = |waiter: &Waits| crowd.enter_where((&memory(), false), waiter, || (), &room);
        let at_once = waits(Duration::ZERO);
        let inside: Vec<_> = (0..3).map(|_| enter(&at_once).expect("room")).collect();
        assert!(enter(&at_once).is_none());
        // Others may wait for this one.
        let locked = crowd.enter_where((&memory(), true), &at_once, || (), &room);
        assert!(locked.is_some());
        drop((inside, locked));
        assert!(enter(&at_once).is_some());
        assert_eq!(crowd.waiting(), 0);
    }

    #[test]
    fn somebody_goes_on_in_any_case() {
        let crowd = Arc::new(Crowd::default());
        let no_room = |_: usize| Room::None;
        let at_once = waits(Duration::ZERO);
        let first = crowd.enter_where((&memory(), false), &at_once, || (), &no_room);
        let first = first.expect("it is alone");
        let begun = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| {
                    let memory = memory();
                    let waiter = waits(LONG);
                    let place = crowd.enter_where((&memory, false), &waiter, || (), &no_room);
                    assert!(place.is_some() && !memory.is_waiting());
                    begun.fetch_add(1, Ordering::Relaxed);
                });
            }
            while crowd.waiting() < 10 {
                thread::yield_now();
            }
            assert_eq!(begun.load(Ordering::Relaxed), 0);
            drop(first);
        });
        assert_eq!((begun.into_inner(), crowd.waiting()), (10, 0));
    }

    /// One that runs for long is inside, and the process stays a little beyond its limit.
    #[test]
    fn one_that_stays_inside_does_not_keep_all_others_out() {
        let crowd = Arc::new(Crowd::default());
        let beyond = |_: usize| Room::WithinTolerance;
        let waiter = waits(LONG);
        let enter = || crowd.enter_where((&memory(), false), &waiter, || (), &beyond);
        let stays = enter();
        let next = enter();
        assert!(stays.is_some() && next.is_some());
        assert_eq!(crowd.lock().inside.len(), 2);
    }

    #[test]
    fn one_that_shall_stop_waits_no_longer() {
        let crowd = Arc::new(Crowd::default());
        let no_room = |_: usize| Room::None;
        let waiter = waits(LONG);
        let enter = || crowd.enter_where((&memory(), false), &waiter, || (), &no_room);
        let _first = enter();
        thread::scope(|scope| {
            let waiting = scope.spawn(enter);
            while crowd.waiting() == 0 {
                thread::yield_now();
            }
            waiter.stops.store(true, Ordering::Relaxed);
            assert!(waiting.join().expect("no panic").is_none());
        });
        assert_eq!(crowd.waiting(), 0);
    }
}
