//! The clock of `max_execution_time`: ends statements whose time is over.
//!
//! ```text
//!   session:  arm ---- statement runs ---- disarm            deadlines, by time
//!                                                            |
//!   thread:   sleeps until the first deadline, ends what is due, sleeps on
//! ```
//!
//! One thread serves all sessions; it starts with the first statement that has a limit. It is woken only for a deadline
//! before the one that it sleeps for, so statements that are over long before theirs cost two short locks each.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sheaf_exec::runtime::thread_placement;

use crate::session_parts::handle::SessionHandle;

/// See the module's comment.
#[derive(Default)]
pub(crate) struct StatementTimer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// The thread has to look again.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By deadline, and by a number that tells those of the same deadline apart.
    deadlines: BTreeMap<(Instant, u64), Arc<SessionHandle>>,
    next_number: u64,
    /// What the thread sleeps for; `None`: until it is woken.
    sleeps_until: Option<Instant>,
    stopped: bool,
}

/// A statement whose time is measured. Dropped, it can no longer be ended.
pub(crate) struct ArmedTimer {
    shared: Arc<Shared>,
    key: (Instant, u64),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change of what is behind these locks is one call, so a panic elsewhere does not spoil it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StatementTimer {
    /// Ends the session's running statement when `limit` has passed since it began, unless what is returned is dropped
    /// before. `None` if there is no thread to be had: then the statement has no limit.
    pub(crate) fn arm(&self, session: Arc<SessionHandle>, limit: Duration) -> Option<ArmedTimer> {
        self.start()?;
        let deadline = session.statement_began().checked_add(limit)?;
        let mut state = lock(&self.shared.state);
        let key = (deadline, state.next_number);
        state.next_number += 1;
        state.deadlines.insert(key, session);
        if state.sleeps_until.is_none_or(|until| deadline < until) {
            self.shared.changed.notify_one();
        }
        Some(ArmedTimer {
            shared: Arc::clone(&self.shared),
            key,
        })
    }

    fn start(&self) -> Option<()> {
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let builder = std::thread::Builder::new().name("sheaf-timeout".into());
            let run = move || {
                if let Err(error) = thread_placement::go_where_the_process_began() {
                    tracing::debug!(%error, "the timer stays where its first session is");
                }
                shared.run();
            };
            *thread = builder.spawn(run).ok();
        }
        thread.as_ref().map(|_| ())
    }
}

impl Shared {
    fn run(&self) {
        let mut state = lock(&self.state);
        while !state.stopped {
            let now = Instant::now();
            while let Some(first) = state.deadlines.first_entry()
                && first.key().0 <= now
            {
                // Under the lock: the statement cannot be over yet.
                first.remove().time_out();
            }
            let until = state.deadlines.first_key_value().map(|((at, _), _)| *at);
            state.sleeps_until = until;
            state = match until {
                None => self.changed.wait(state),
                Some(until) => {
                    let wait = self
                        .changed
                        .wait_timeout(state, until.saturating_duration_since(now));
                    wait.map(|(state, _)| state)
                        .map_err(|poisoned| PoisonError::new(poisoned.into_inner().0))
                }
            }
            .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for ArmedTimer {
    fn drop(&mut self) {
        lock(&self.shared.state).deadlines.remove(&self.key);
    }
}

impl Drop for StatementTimer {
    fn drop(&mut self) {
        lock(&self.shared.state).stopped = true;
        self.shared.changed.notify_one();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic of the thread has been reported; no statement waits for it any more.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Arc<SessionHandle> {
        Arc::new(SessionHandle::new(1, "root", "localhost"))
    }

    #[test]
    fn only_what_is_still_armed_is_ended() {
        let timer = StatementTimer::default();
        let (quick, slow, patient) = (session(), session(), session());
        let limit = Duration::from_millis(1);
        drop(timer.arm(Arc::clone(&quick), Duration::from_secs(3600)));
        let long = timer.arm(Arc::clone(&patient), Duration::from_secs(3600));
        let armed = timer.arm(Arc::clone(&slow), limit);
        while !slow.cancel_flag().is_cancelled() {
            std::thread::yield_now();
        }
        // What it says comes before the cancelling.
        assert!(slow.is_timed_out());
        assert!(!quick.is_timed_out() && !patient.is_timed_out());
        drop((armed, long));
        assert!(lock(&timer.shared.state).deadlines.is_empty());
    }

    #[test]
    fn a_statement_has_one_time_however_often_it_is_begun_again() {
        let (timer, session) = (StatementTimer::default(), session());
        let deadline = || {
            let armed = timer.arm(Arc::clone(&session), Duration::from_secs(3600));
            armed.map(|armed| armed.key.0)
        };
        session.begin_statement("SELECT 1");
        let first = deadline();
        std::thread::sleep(Duration::from_millis(1));
        assert!(first.is_some());
        assert_eq!(deadline(), first);
        session.begin_statement("SELECT 2");
        assert!(deadline() > first);
    }
}
