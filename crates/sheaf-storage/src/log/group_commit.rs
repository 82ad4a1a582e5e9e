//! Group commit: one thread writes the log for all, and wakes the threads that it has served.
//!
//! A thread that needs the log up to a position becomes the *leader*, if there is none: it takes all that was appended,
//! writes and syncs it. A thread that comes meanwhile waits in one of two groups. The first group needs positions that
//! the leader has taken. The second came later and needs the next write. At the end all of the first group wake, and
//! one thread of the second, which leads next:
//!
//! ```text
//!   A  leads: takes 1..100, writes, syncs -----> wakes the group of 100, and C
//!   B      waits for 80: in the group of 100 ...... wakes, and is through
//!   C            waits for 120: in the next group .. wakes, leads: takes 100..150, writes, syncs -----> ...
//!   D                 waits for 150: in the next group ............ is in the group of 150 ............. wakes
//! ```
//!
//! So each thread sleeps once and wakes once. (If all were woken each time, the late ones would wake only to see that
//! they must wait again. Each such wake costs two context switches.)

use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::sync::{Condvar, Mutex};

/// The leader and the waiters.
pub(super) struct GroupCommit {
    state: Mutex<State>,
    /// One for each group. The groups swap roles when a leader takes what was appended.
    wakeups: [Condvar; 2],
}

#[derive(Default)]
struct State {
    /// A leader is at work.
    has_leader: bool,
    /// What the leader has taken ends here; `None` while it has not, or there is none. What an earlier leader took says
    /// nothing: it may have failed.
    taken: Option<Lsn>,
    /// The group that the leader serves; the other one waits for the next leader.
    served: usize,
    /// How many threads wait, by group. A wake-up is a system call even if no thread waits.
    waiting: [usize; 2],
    /// Why nothing can be made durable any more.
    failure: Option<StorageError>,
}

impl State {
    fn note(&mut self, error: &StorageError) {
        if !matches!(error, StorageError::DiskFull { .. }) && self.failure.is_none() {
            tracing::error!("{error}; nothing can be made durable until the next start");
            self.failure = Some(error.clone());
        }
    }
}

impl GroupCommit {
    /// No thread writes or waits.
    pub(super) fn new() -> GroupCommit {
        GroupCommit {
            state: Mutex::new(State::default()),
            wakeups: [Condvar::new(), Condvar::new()],
        }
    }

    /// Waits until the log is durable up to `lsn`: false. Or until the caller has to lead: true; then it takes what was
    /// appended, [says so](Self::taken), and [ends](Self::end).
    ///
    /// # Errors
    /// A write or sync has failed, so that nothing can be made durable.
    pub(super) fn lead(&self, lsn: Lsn, flushed: impl Fn() -> Lsn) -> Result<bool> {
        let mut state = self.state.lock();
        loop {
            if flushed() >= lsn {
                return Ok(false);
            }
            if let Some(failure) = &state.failure {
                let failure = failure.clone();
                // Any waiter may have waited for this thread to lead.
                self.wake(&state, state.served);
                self.wake(&state, 1 - state.served);
                return Err(failure);
            }
            if !state.has_leader {
                state.has_leader = true;
                return Ok(true);
            }
            let group = match state.taken {
                Some(taken) if lsn <= taken => state.served,
                _ => 1 - state.served,
            };
            state.waiting[group] += 1;
            state = self.wakeups[group].wait(state);
            state.waiting[group] -= 1;
        }
    }

    /// The leader has taken all that was appended before `end`: it serves the threads that have waited for a leader.
    pub(super) fn taken(&self, end: Lsn) {
        let mut state = self.state.lock();
        state.taken = Some(end);
        state.served = 1 - state.served;
    }

    /// The leader is through.
    pub(super) fn end(&self, result: &Result<()>) {
        let mut state = self.state.lock();
        state.has_leader = false;
        state.taken = None;
        self.wake(&state, state.served);
        let next = 1 - state.served;
        match result {
            Ok(()) if state.waiting[next] > 0 => self.wakeups[next].notify_one(),
            Ok(()) => {}
            Err(error) => {
                state.note(error);
                self.wake(&state, next);
            }
        }
    }

    fn wake(&self, state: &State, group: usize) {
        if state.waiting[group] > 0 {
            self.wakeups[group].notify_all();
        }
    }

    /// Remembers an error after which nothing can be made durable: all but a full disk.
    pub(super) fn note(&self, error: &StorageError) {
        self.state.lock().note(error);
    }

    /// Remembers an error after which nothing can be made durable, whatever it is.
    pub(super) fn fail(&self, error: &StorageError) {
        self.state
            .lock()
            .failure
            .get_or_insert_with(|| error.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sync::atomic::{AtomicU64, Ordering};
    use crate::sync::thread;

    const THREADS: usize = 4;
    #[cfg(not(feature = "simulation"))]
    const COMMITS: usize = 2_000;
    #[cfg(feature = "simulation")]
    const COMMITS: usize = 3;

    /// Runs a test: once with real threads, or with the feature `simulation` under many schedules.
    fn check(test: impl Fn() + Send + Sync + 'static) {
        #[cfg(not(feature = "simulation"))]
        test();
        #[cfg(feature = "simulation")]
        shuttle::check_random(test, 5_000);
    }

    /// A log without contents.
    struct Positions {
        commits: GroupCommit,
        end: AtomicU64,
        flushed: AtomicU64,
        writes: AtomicU64,
    }

    impl Positions {
        fn flushed(&self) -> Lsn {
            Lsn(self.flushed.load(Ordering::SeqCst))
        }

        /// Appends something and makes it durable; `write` says how the write of this number ends.
        fn commit(&self, write: impl Fn(u64) -> Result<()>) -> Result<()> {
            let lsn = Lsn(self.end.fetch_add(1, Ordering::SeqCst) + 1);
            while self.commits.lead(lsn, || self.flushed())? {
                let end = self.end.load(Ordering::SeqCst);
                thread::yield_now();
                self.commits.taken(Lsn(end));
                let result = write(self.writes.fetch_add(1, Ordering::SeqCst));
                thread::yield_now();
                if result.is_ok() {
                    self.flushed.store(end, Ordering::SeqCst);
                }
                self.commits.end(&result);
                result?;
            }
            assert!(self.flushed() >= lsn);
            Ok(())
        }
    }

    /// Commits in all threads; returns the log and how many commits failed. That it returns shows that no thread is
    /// forgotten.
    fn commit_in_threads(write: fn(u64) -> Result<()>) -> (Arc<Positions>, u64) {
        let log = Arc::new(Positions {
            commits: GroupCommit::new(),
            end: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            writes: AtomicU64::new(0),
        });
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let log = Arc::clone(&log);
                thread::spawn(move || (0..COMMITS).filter(|_| log.commit(write).is_err()).count())
            })
            .collect();
        let failed = threads.into_iter().map(|thread| thread.join().unwrap());
        let failed = failed.sum::<usize>() as u64;
        (log, failed)
    }

    #[test]
    fn everybody_is_served_and_nobody_is_forgotten() {
        check(|| {
            let (log, failed) = commit_in_threads(|_| Ok(()));
            assert_eq!(failed, 0);
            assert_eq!(log.flushed(), Lsn((THREADS * COMMITS) as u64));
        });
    }

    #[test]
    fn a_full_disk_is_an_error_of_the_leader_and_no_end() {
        check(|| {
            let (log, failed) = commit_in_threads(|number| match number % 3 {
                1 => Err(StorageError::DiskFull {
                    file: "sheaf.log".into(),
                }),
                _ => Ok(()),
            });
            let writes = log.writes.load(Ordering::SeqCst);
            assert_eq!(failed, (writes + 1) / 3);
            log.commit(|_| Ok(())).unwrap();
        });
    }

    #[test]
    fn a_failed_write_is_told_to_all() {
        check(|| {
            let (log, failed) = commit_in_threads(|number| match number {
                0 | 1 => Ok(()),
                _ => Err(StorageError::Closed),
            });
            assert!(failed >= 1);
            let result = log.commit(|_| Ok(()));
            assert!(matches!(result, Err(StorageError::Closed)), "{result:?}");
        });
    }
}
