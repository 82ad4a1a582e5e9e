//! Locks by name: GET_LOCK and its relatives.
//!
//! A lock is a name of the server that one session holds. It protects nothing of the database: what it means is the
//! applications' business. A session may hold many, each of them several times, and keeps them when its transaction
//! ends. They are released by name, all at once, or when the session ends.
//!
//! **Handing over.** A lock is never free while sessions wait for it. Its release makes the session its holder that has
//! waited longest, and wakes that one alone.
//!
//! ```text
//!   holder A     waiting  B  C        A releases:  holder B     waiting  C
//! ```
//!
//! **Deadlocks.** Two sessions that wait for each other's locks would wait for ever. Before each piece of its wait a
//! session follows the chain of holders. If the chain leads back to itself, it stops waiting.
//!
//! ```text
//!   A holds a, waits for b        B holds b, asks for a:  a -> A -> b -> B, itself: a deadlock
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sheaf_storage::sync::{Condvar, Mutex};

/// Locks that the server keeps at a time: what their names take stays below some megabytes.
pub const MAX_USER_LOCKS: usize = 16 << 10;

/// How often a wait looks whether it shall end.
const INTERRUPT_CHECK: Duration = Duration::from_millis(50);

/// Why a session does not get a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserLockError {
    /// Another session holds it, and has held it for as long as this one waits.
    TimedOut,
    /// The holder waits for this session.
    Deadlock,
    /// There are [`MAX_USER_LOCKS`].
    TooMany,
    /// The statement has been told to stop.
    Interrupted,
}

#[derive(Debug)]
struct Held {
    session: u64,
    /// How often it has been taken and not released.
    times: u64,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    session: u64,
    name: String,
    wake: Arc<Condvar>,
}

#[derive(Debug, Default)]
struct State {
    locks: BTreeMap<String, Held>,
    /// How many locks each session holds.
    counts: BTreeMap<u64, usize>,
    /// Those that wait, in the order in which they came. One that is not here any more has got its lock.
    waiters: Vec<Waiter>,
    next_ticket: u64,
}

impl State {
    fn hold(&mut self, name: String, session: u64, times: u64) {
        self.locks.insert(name, Held { session, times });
        *self.counts.entry(session).or_default() += 1;
    }

    fn forget_one_of(&mut self, session: u64) {
        if let Some(count) = self.counts.get_mut(&session) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.counts.remove(&session);
            }
        }
    }

    fn waits(&self, ticket: u64) -> bool {
        self.waiters.iter().any(|waiter| waiter.ticket == ticket)
    }

    fn stop_waiting(&mut self, ticket: u64) {
        self.waiters.retain(|waiter| waiter.ticket != ticket);
    }

    /// The lock is free: it goes to the session that has waited longest. Threads of one session share what it holds.
    fn hand_over(&mut self, name: &str) {
        let Some(held) = self.locks.remove(name) else {
            return;
        };
        self.forget_one_of(held.session);
        let mut waiters = self.waiters.iter();
        let Some(next) = waiters.find(|waiter| waiter.name == name) else {
            return;
        };
        let session = next.session;
        let mut times = 0;
        self.waiters.retain(|waiter| {
            let is_next = waiter.session == session && waiter.name == name;
            if is_next {
                times += 1;
                waiter.wake.notify_one();
            }
            !is_next
        });
        self.hold(name.to_string(), session, times);
    }

    /// Whether the holder of a lock waits for this session, be it through others.
    fn is_deadlock(&self, name: &str, session: u64) -> bool {
        let mut sessions: Vec<u64> = Vec::new();
        let mut names = vec![name];
        while let Some(name) = names.pop() {
            let Some(holder) = self.locks.get(name).map(|held| held.session) else {
                continue;
            };
            if holder == session {
                return true;
            }
            if !sessions.contains(&holder) {
                sessions.push(holder);
                let waits = self
                    .waiters
                    .iter()
                    .filter(|waiter| waiter.session == holder);
                names.extend(waits.map(|waiter| waiter.name.as_str()));
            }
        }
        false
    }
}

/// All locks by name of a server.
#[derive(Debug, Default)]
pub struct UserLocks(Mutex<State>);

impl UserLocks {
    /// Takes a lock once more. `wait`: how long it may take, `None` for ever. `begins_to_wait` is called once if it is
    /// not free; `is_interrupted` is looked at while it waits.
    ///
    /// # Errors
    /// The session does not have it.
    pub fn take(
        &self,
        name: &str,
        session: u64,
        wait: Option<Duration>,
        begins_to_wait: &dyn Fn(),
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), UserLockError> {
        let mut state = self.0.lock();
        let is_full = state.locks.len() >= MAX_USER_LOCKS;
        match state.locks.get_mut(name) {
            None if is_full => return Err(UserLockError::TooMany),
            None => {
                state.hold(name.to_string(), session, 1);
                return Ok(());
            }
            Some(held) if held.session == session => {
                held.times = held.times.saturating_add(1);
                return Ok(());
            }
            Some(_) if wait == Some(Duration::ZERO) => return Err(UserLockError::TimedOut),
            Some(_) => {}
        }
        // What no clock reaches is for ever.
        let end = wait.and_then(|wait| Instant::now().checked_add(wait));
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        let wake = Arc::new(Condvar::new());
        state.waiters.push(Waiter {
            ticket,
            session,
            name: name.to_string(),
            wake: Arc::clone(&wake),
        });
        let mut is_announced = false;
        loop {
            if state.is_deadlock(name, session) {
                state.stop_waiting(ticket);
                return Err(UserLockError::Deadlock);
            }
            if !is_announced {
                is_announced = true;
                drop(state);
                begins_to_wait();
                sheaf_memory::waits_for_lock();
                state = self.0.lock();
            }
            let left = end.map_or(INTERRUPT_CHECK, |end| {
                end.saturating_duration_since(Instant::now())
            });
            if !left.is_zero() && state.waits(ticket) {
                state = wake.wait_timeout(state, left.min(INTERRUPT_CHECK));
            }
            let is_over = {
                drop(state);
                let is_over = is_interrupted();
                state = self.0.lock();
                is_over
            };
            match (state.waits(ticket), is_over) {
                (false, false) => return Ok(()),
                (false, true) => {
                    drop(state);
                    self.release(name, session);
                    return Err(UserLockError::Interrupted);
                }
                (true, true) => {
                    state.stop_waiting(ticket);
                    return Err(UserLockError::Interrupted);
                }
                (true, false) if left.is_zero() => {
                    state.stop_waiting(ticket);
                    return Err(UserLockError::TimedOut);
                }
                (true, false) => {}
            }
        }
    }

    /// Releases a lock once. Whether the session has held it; `None`: nobody has.
    pub fn release(&self, name: &str, session: u64) -> Option<bool> {
        let mut state = self.0.lock();
        let held = state.locks.get_mut(name)?;
        if held.session != session {
            return Some(false);
        }
        held.times -= 1;
        if held.times == 0 {
            state.hand_over(name);
        }
        Some(true)
    }

    /// Releases all locks of a session; how often it had taken them.
    pub fn release_all(&self, session: u64) -> u64 {
        let mut state = self.0.lock();
        if !state.counts.contains_key(&session) {
            return 0;
        }
        let of_session = state
            .locks
            .iter()
            .filter(|(_, held)| held.session == session);
        let released: Vec<(String, u64)> = of_session
            .map(|(name, held)| (name.clone(), held.times))
            .collect();
        for (name, _) in &released {
            state.hand_over(name);
        }
        released
            .iter()
            .fold(0, |sum, (_, times)| sum.saturating_add(*times))
    }

    /// The session that holds a lock.
    pub fn holder(&self, name: &str) -> Option<u64> {
        self.0.lock().locks.get(name).map(|held| held.session)
    }

    /// Whether the session holds locks, so that others may wait for it.
    pub fn are_held_by(&self, session: u64) -> bool {
        self.0.lock().counts.contains_key(&session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const A: u64 = 1;
    const B: u64 = 2;

    fn take(
        locks: &UserLocks,
        name: &str,
        session: u64,
        wait_ms: u64,
    ) -> Result<(), UserLockError> {
        let wait = Some(Duration::from_millis(wait_ms));
        locks.take(name, session, wait, &|| (), &|| false)
    }

    #[test]
    fn a_lock_is_released_as_often_as_it_was_taken() {
        let locks = UserLocks::default();
        assert_eq!(take(&locks, "a", A, 0), Ok(()));
        assert_eq!(take(&locks, "a", A, 0), Ok(()));
        assert_eq!(take(&locks, "a", B, 0), Err(UserLockError::TimedOut));
        assert_eq!(take(&locks, "a", B, 20), Err(UserLockError::TimedOut));
        assert_eq!((locks.holder("a"), locks.holder("b")), (Some(A), None));
        assert_eq!(locks.release("a", B), Some(false));
        assert_eq!(locks.release("a", A), Some(true));
        assert_eq!(locks.holder("a"), Some(A));
        assert_eq!(locks.release("a", A), Some(true));
        assert_eq!(locks.release("a", A), None);
        assert!(!locks.are_held_by(A) && locks.0.lock().waiters.is_empty());
    }

    #[test]
    fn the_session_gets_a_lock_that_has_waited_longest() {
        let locks = UserLocks::default();
        take(&locks, "a", A, 0).unwrap();
        take(&locks, "b", A, 0).unwrap();
        thread::scope(|scope| {
            let waits = scope.spawn(|| take(&locks, "a", B, 60_000));
            while locks.0.lock().waiters.is_empty() {
                thread::yield_now();
            }
            assert_eq!(locks.release_all(A), 2);
            // It is B's before B has woken.
            assert_eq!(locks.holder("a"), Some(B));
            assert_eq!(take(&locks, "a", A, 0), Err(UserLockError::TimedOut));
            assert_eq!(waits.join().unwrap(), Ok(()));
        });
        assert_eq!((locks.release_all(A), locks.release_all(B)), (0, 1));
    }

    #[test]
    fn a_wait_that_closes_a_cycle_is_told_of_the_deadlock() {
        let locks = UserLocks::default();
        take(&locks, "a", A, 0).unwrap();
        take(&locks, "b", B, 0).unwrap();
        thread::scope(|scope| {
            let waits = scope.spawn(|| take(&locks, "b", A, 60_000));
            while locks.0.lock().waiters.is_empty() {
                thread::yield_now();
            }
            assert_eq!(take(&locks, "a", B, 60_000), Err(UserLockError::Deadlock));
            assert_eq!(locks.release_all(B), 1);
            assert_eq!(waits.join().unwrap(), Ok(()));
        });
        assert_eq!(locks.release_all(A), 2);
    }

    #[test]
    fn an_interrupted_wait_leaves_nothing_behind() {
        let locks = UserLocks::default();
        take(&locks, "a", A, 0).unwrap();
        let taken = locks.take("a", B, None, &|| (), &|| true);
        assert_eq!(taken, Err(UserLockError::Interrupted));
        assert_eq!(locks.release("a", A), Some(true));
        assert_eq!(locks.holder("a"), None);
    }

    #[test]
    fn there_is_a_limit_of_locks() {
        let locks = UserLocks::default();
        for number in 0..MAX_USER_LOCKS {
            take(&locks, &number.to_string(), A, 0).unwrap();
        }
        assert_eq!(take(&locks, "a", A, 0), Err(UserLockError::TooMany));
        assert_eq!(take(&locks, "0", A, 0), Ok(()));
        assert_eq!(locks.release_all(A), MAX_USER_LOCKS as u64 + 1);
    }
}
