//! [`Budget`]: bytes that many holders share, each for a while.
//!
//! ```text
//!   |==== share ====|== share ==|............ free ............|      limit
//! ```
//!
//! It is for memory that no operator reserves, because it belongs to no running statement: the text of a long statement
//! while it comes, and what a session keeps for its next statements. A holder takes its share before it takes the
//! memory. What is dropped is free again.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A waiter looks this often whether to stop.
const WAIT_SLICE: Duration = Duration::from_millis(20);

/// See the module's comment.
#[derive(Debug)]
pub struct Budget {
    limit_bytes: usize,
    state: Mutex<State>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct State {
    taken_bytes: usize,
    /// Those that wait, in the order in which they came.
    queue: VecDeque<u64>,
    next_ticket: u64,
}

impl Budget {
    pub fn new(limit_bytes: usize) -> Arc<Budget> {
        Arc::new(Budget {
            limit_bytes,
            state: Mutex::default(),
            given_back: Condvar::new(),
        })
    }

    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    pub fn taken_bytes(&self) -> usize {
        self.lock().taken_bytes
    }

    /// Takes so many bytes at once. `None`: others have them.
    pub fn try_take(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        let mut share = Share {
            budget: Arc::clone(self),
            bytes: 0,
        };
        share.resize(bytes).then_some(share)
    }

    /// Takes so many bytes, also where others have them: they are taken already.
    pub fn take_anyway(self: &Arc<Self>, bytes: usize) -> Share {
        let mut state = self.lock();
        state.taken_bytes = state.taken_bytes.saturating_add(bytes);
        Share {
            budget: Arc::clone(self),
            bytes,
        }
    }

    /// Takes so many bytes when others have given them back, in the order in which they are asked for. A request for
    /// more than there is takes all. `None`: they were not given back in this time, or `shall_stop`.
    pub fn take(
        self: &Arc<Self>,
        bytes: usize,
        most: Duration,
        mut shall_stop: impl FnMut() -> bool,
    ) -> Option<Share> {
        let bytes = bytes.min(self.limit_bytes);
        let began = Instant::now();
        let mut state = self.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.queue.push_back(ticket);
        loop {
            let is_next = state.queue.front() == Some(&ticket);
            let fits = is_next && bytes <= self.limit_bytes.saturating_sub(state.taken_bytes);
            if fits || began.elapsed() >= most || shall_stop() {
                state.queue.retain(|waiting| *waiting != ticket);
                if !state.queue.is_empty() {
                    self.given_back.notify_all();
                }
                return fits.then(|| {
                    state.taken_bytes += bytes;
                    Share {
                        budget: Arc::clone(self),
                        bytes,
                    }
                });
            }
            let waited = self.given_back.wait_timeout(state, WAIT_SLICE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is an addition or a subtraction.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of a [`Budget`], until it is dropped.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// From now on the share has so many bytes. False: others have them, and nothing has changed.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let mut state = self.budget.lock();
        let others = state.taken_bytes - self.bytes;
        if bytes > self.bytes && bytes > self.budget.limit_bytes.saturating_sub(others) {
            return false;
        }
        state.taken_bytes = others + bytes;
        if bytes < self.bytes && !state.queue.is_empty() {
            self.budget.given_back.notify_all();
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn shares_are_no_more_than_the_limit() {
        let budget = Budget::new(100);
        let mut first = budget.try_take(60).expect("there is room");
        assert!(budget.try_take(41).is_none());
        let second = budget.try_take(40).expect("there is room");
        assert!(!first.resize(61));
        assert_eq!(first.bytes(), 60);
        drop(second);
        assert!(first.resize(100) && first.resize(10));
        assert_eq!(budget.taken_bytes(), 10);
        drop(first);
        assert_eq!(budget.taken_bytes(), 0);
    }

    #[test]
    fn waiters_get_what_is_given_back_in_turn() {
        let budget = Budget::new(100);
        let first = budget.try_take(50).expect("there is room");
        // More than there is: it waits for all of it.
        let waits = thread::spawn({
            let budget = Arc::clone(&budget);
            move || budget.take(1000, LONG, || false)
        });
        while budget.lock().queue.is_empty() {
            thread::yield_now();
        }
        // A later request does not pass it.
        assert!(budget.take(10, Duration::ZERO, || false).is_none());
        drop(first);
        let all = waits.join().expect("no panic").expect("all is free");
        assert_eq!(all.bytes(), 100);
        assert!(budget.take(1, LONG, || true).is_none());
        assert!(budget.take(1, Duration::ZERO, || false).is_none());
        drop(all);
        assert!(budget.take(1, Duration::ZERO, || true).is_some());
    }
}
