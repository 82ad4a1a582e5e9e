//! The flag that stops a statement, and what it wakes.
//!
//! Loops look at the flag. A task that sleeps, because it waits for other tasks, looks at nothing: with each of them
//! asleep nobody would see the flag. So a task says before it sleeps that it wants to be woken:
//!
//! ```text
//!   task:    note the waker, look at the flag, sleep
//!   KILL:    raise the flag, wake what is noted
//! ```
//!
//! Whichever comes second sees what the other one did.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use crate::making_room::making_room;

/// Somebody wants the statement to stop.
const WANTED: u8 = 1;
/// The process has too much memory.
const MEMORY: u8 = 2;

/// Says whether a statement shall stop.
#[derive(Debug, Default)]
pub struct StopFlag {
    reasons: AtomicU8,
    /// Tasks that sleep, by the number of their [`Sleeper`].
    asleep: Mutex<Vec<(u64, Waker)>>,
}

impl StopFlag {
    /// Has the statement stop, and wakes it.
    pub fn raise(&self) {
        self.raise_for(WANTED);
    }

    /// The same, but the statement may go on once it has let go what it holds.
    pub(crate) fn raise_for_memory(&self) {
        self.raise_for(MEMORY);
    }

    fn raise_for(&self, reason: u8) {
        self.reasons.fetch_or(reason, Ordering::Release);
        let asleep = std::mem::take(&mut *self.asleep());
        for (_, waker) in asleep {
            waker.wake();
        }
    }

    /// The next statement starts afresh.
    pub fn lower(&self) {
        self.reasons.store(0, Ordering::Relaxed);
    }

    /// The statement goes on, unless it shall stop for another reason.
    pub(crate) fn lower_for_memory(&self) {
        self.reasons.fetch_and(!MEMORY, Ordering::Relaxed);
    }

    /// Whether the statement shall stop.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.reasons.load(Ordering::Relaxed) != 0
    }

    fn asleep(&self) -> MutexGuard<'_, Vec<(u64, Waker)>> {
        // Each change is one call.
        self.asleep.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task that wants to be woken when a flag is raised.
#[derive(Debug)]
pub struct Sleeper {
    flag: Arc<StopFlag>,
    number: u64,
}

impl Sleeper {
    /// Nothing is noted yet.
    pub fn new(flag: Arc<StopFlag>) -> Sleeper {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Sleeper {
            flag,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Whether the flag is raised. If it is not, the task is woken when that happens.
    pub fn poll_raised(&self, context: &Context<'_>) -> bool {
        let mut asleep = self.flag.asleep();
        match asleep.iter_mut().find(|(number, _)| *number == self.number) {
            Some((_, waker)) => waker.clone_from(context.waker()),
            // Who asks for room may raise this flag.
            None => making_room(|| asleep.push((self.number, context.waker().clone()))),
        }
        drop(asleep);
        self.flag.is_raised()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let mut asleep = self.flag.asleep();
        asleep.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_statement_that_goes_on_with_less_memory_can_be_killed() {
        let flag = StopFlag::default();
        flag.raise_for_memory();
        assert!(flag.is_raised());
        flag.lower_for_memory();
        assert!(!flag.is_raised());
        flag.raise_for_memory();
        flag.raise();
        flag.lower_for_memory();
        assert!(flag.is_raised());
    }

    #[test]
    fn what_sleeps_is_woken_once_and_not_after_its_end() {
        let flag = Arc::new(StopFlag::default());
        let (counted, gone) = (Arc::new(Counted::default()), Arc::new(Counted::default()));
        let (waker, other) = (Waker::from(Arc::clone(&counted)), Waker::from(gone.clone()));
        let sleeper = Sleeper::new(Arc::clone(&flag));
        assert!(!sleeper.poll_raised(&Context::from_waker(&waker)));
        assert!(!sleeper.poll_raised(&Context::from_waker(&waker)));
        let ended = Sleeper::new(Arc::clone(&flag));
        assert!(!ended.poll_raised(&Context::from_waker(&other)));
        drop(ended);
        flag.raise();
        assert_eq!(counted.0.load(Ordering::Relaxed), 1);
        assert_eq!(gone.0.load(Ordering::Relaxed), 0);
        assert!(sleeper.poll_raised(&Context::from_waker(&waker)));
        flag.lower();
        assert!(!sleeper.poll_raised(&Context::from_waker(&waker)));
    }
}
