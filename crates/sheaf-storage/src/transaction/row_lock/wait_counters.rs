//! How often, and for how long, transactions wait for locks.
//!
//! A wait costs a system call at least, so that a few shared counters add nothing to it. They are the standard
//! library's atomics in every build, as those of the buffer pool are.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::counters::LockWaits;

#[derive(Default)]
pub(super) struct WaitCounters {
    waits: AtomicU64,
    waiting: AtomicU64,
    wait_ns: AtomicU64,
    longest_ns: AtomicU64,
    deadlocks: AtomicU64,
}

impl WaitCounters {
    /// A wait begins, or goes on for the next of several locks.
    pub(super) fn begin(&self, goes_on: bool) {
        self.waits.fetch_add(u64::from(!goes_on), Ordering::Relaxed);
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end(&self, slept_ns: u64) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.wait_ns.fetch_add(slept_ns, Ordering::Relaxed);
        self.longest_ns.fetch_max(slept_ns, Ordering::Relaxed);
    }

    pub(super) fn count_deadlock(&self) {
        self.deadlocks.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> LockWaits {
        LockWaits {
            waits: self.waits.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            wait_ns: self.wait_ns.load(Ordering::Relaxed),
            longest_ns: self.longest_ns.load(Ordering::Relaxed),
            deadlocks: self.deadlocks.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_in_parts_is_one() {
        let counters = WaitCounters::default();
        counters.begin(false);
        assert_eq!(counters.get().waiting, 1);
        counters.end(5);
        counters.begin(true);
        counters.end(7);
        counters.count_deadlock();
        let expected = LockWaits {
            waits: 1,
            waiting: 0,
            wait_ns: 12,
            longest_ns: 7,
            deadlocks: 1,
        };
        assert_eq!(counters.get(), expected);
    }
}
