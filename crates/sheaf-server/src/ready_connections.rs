//! Connections that have something to read, for the workers of a pool (`shared_threads.rs`).
//!
//! A worker that finds the queue empty asks the kernel, and puts what it gets beyond the one that it serves itself into
//! the queue. So where many connections are busy, one call fetches work for many statements:
//!
//! ```text
//!   sockets --report--> [ kernel's list ] --wait, up to 32--> [ queue ] --pop--> workers
//!                                                                ^
//!              a connection has been served and may have more ---'
//! ```
//!
//! # No thread waits while there is work in the queue
//!
//! A thread that puts something into the queue looks afterwards whether a thread waits for the kernel, and rings a bell
//! that the kernel reports to one of them. A thread that is about to wait says so first, and then looks at the queue
//! once more. Both orders are total (SeqCst), so either the one sees the wait or the other sees the work:
//!
//! ```text
//!   push                                next
//!     queued  := n                        waiting += 1
//!     waiting > 0 ?  ring                 queued == 0 ?  wait for the kernel
//! ```
//!
//! The bell wakes one thread; if there is more in the queue than it takes, it rings for the next. The bell does not
//! ring again before a thread was told (`is_rung`). That thread clears the mark before it looks at the queue, so it
//! sees what was put there by threads that found the mark set. If it does not look, because it has been told of a
//! connection, too, it rings for another one.
//!
//! Connections that always have more to read come back to the queue, and could keep it from ever being empty. So the
//! kernel is also asked when it was not for a while (`MAX_TAKEN`), and what it has takes its place in the queue.
//!
//! A thread that waits while others wait, too, takes one report only, and the kernel wakes another one for the next. So
//! work gathers in the queue only while all are busy, and the bell is for the moment in which that changes.

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::readiness::{Bell, MAX_REPORTS, Readiness, Report};

/// The number that wakes every thread to stop.
const STOP: u64 = u64::MAX;
/// The number of the bell.
const BELL: u64 = u64::MAX - 1;

/// So many are taken out of the queue before the kernel is asked again; more than it reports at once.
const MAX_TAKEN: usize = 2 * MAX_REPORTS;

/// See the module's comment.
pub(crate) struct ReadyConnections {
    /// The sockets, by the numbers of their connections.
    pub(crate) sockets: Readiness,
    bell: Bell,
    /// The bell was rung, and no thread has been told.
    is_rung: AtomicBool,
    /// No more than a few for each connection: it is reported once for what it is, and once while it is served.
    queue: Mutex<VecDeque<Report>>,
    /// How many are in the queue; changed under its lock.
    queued: AtomicUsize,
    /// How many were taken out since the kernel was asked, roughly.
    taken: AtomicUsize,
    /// How many threads wait for the kernel, or are about to.
    waiting: AtomicUsize,
}

impl ReadyConnections {
    /// None yet. When something comes in `stop`, all is over.
    pub(crate) fn new(stop: RawFd) -> io::Result<ReadyConnections> {
        let sockets = Readiness::new()?;
        sockets.add_for_all(stop, STOP)?;
        Ok(ReadyConnections {
            bell: sockets.bell(BELL)?,
            sockets,
            is_rung: AtomicBool::new(false),
            queue: Mutex::default(),
            queued: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
        })
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Report>> {
        // Nothing panics under the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a connection that has something to read. It may have been read meanwhile. `None`: all is over.
    pub(crate) fn next(&self) -> io::Result<Option<Report>> {
        let mut reports = [Report::default(); MAX_REPORTS];
        loop {
            if let Some(report) = self.pop() {
                if self.taken.fetch_add(1, Ordering::Relaxed) >= MAX_TAKEN {
                    let count = self.sockets.look(&mut reports)?;
                    self.take_in(&reports[..count], false);
                }
                return Ok(Some(report));
            }
            let others = self.waiting.fetch_add(1, Ordering::SeqCst);
            let most = if others == 0 { MAX_REPORTS } else { 1 };
            let waited = match self.queued.load(Ordering::SeqCst) {
                0 => Some(self.sockets.wait(&mut reports[..most])),
                _ => None,
            };
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            let Some(count) = waited else {
                continue;
            };
            let reports = &reports[..count?];
            if reports.iter().any(|report| report.number == STOP) {
                return Ok(None);
            }
            if let Some(report) = self.take_in(reports, true) {
                return Ok(Some(report));
            }
        }
    }

    /// Takes in what the kernel has reported: into the queue, but for the first connection where that `is_wanted`.
    fn take_in(&self, reports: &[Report], is_wanted: bool) -> Option<Report> {
        self.taken.store(0, Ordering::Relaxed);
        if reports.iter().any(|report| report.number == BELL) {
            self.is_rung.store(false, Ordering::SeqCst);
        }
        let mut ready = reports.iter().filter(|report| report.number < BELL);
        let first = if is_wanted { ready.next() } else { None };
        self.push_all(ready);
        let looks_at_queue = is_wanted && first.is_none();
        if !looks_at_queue && self.queued.load(Ordering::SeqCst) > 0 {
            // The bell may have rung for what is there, and another thread is to look now.
            self.call();
        }
        first.copied()
    }

    fn pop(&self) -> Option<Report> {
        if self.queued.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut queue = self.lock();
        let report = queue.pop_front()?;
        let left = queue.len();
        self.queued.store(left, Ordering::SeqCst);
        drop(queue);
        if left > 0 {
            self.call();
        }
        Some(report)
    }

    /// A connection may have something to read that is not going to be reported.
    pub(crate) fn push(&self, number: usize) {
        let report = Report {
            number: number as u64,
            has_ended: false,
        };
        self.push_all([report].iter());
    }

    fn push_all<'a>(&self, mut reports: impl Iterator<Item = &'a Report>) {
        let Some(first) = reports.next() else {
            return;
        };
        let mut queue = self.lock();
        queue.push_back(*first);
        queue.extend(reports);
        self.queued.store(queue.len(), Ordering::SeqCst);
        drop(queue);
        self.call();
    }

    /// There is something in the queue: if threads wait, one is told.
    fn call(&self) {
        let is_due = self.waiting.load(Ordering::SeqCst) > 0;
        if is_due
            && !self.is_rung.swap(true, Ordering::SeqCst)
            && let Err(error) = self.bell.ring()
        {
            self.is_rung.store(false, Ordering::SeqCst);
            tracing::error!(%error, "threads for clients cannot be woken");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::sync::Barrier;
    use std::thread;

    fn pair() -> (UnixStream, UnixStream) {
        UnixStream::pair().expect("descriptors are left")
    }

    #[test]
    fn what_one_takes_beyond_its_own_is_for_the_others() {
        let (stop, mut stopper) = pair();
        let ready = ReadyConnections::new(stop.as_raw_fd()).expect("descriptors are left");
        let sockets: Vec<(UnixStream, UnixStream)> = (0..5).map(|_| pair()).collect();
        for (number, (ours, theirs)) in sockets.iter().enumerate() {
            let mut theirs = theirs;
            theirs.write_all(b"x").expect("there is room");
            ready
                .sockets
                .add(ours.as_raw_fd(), number as u64)
                .expect("it is open");
        }
        let mut numbers: Vec<u64> = Vec::new();
        numbers.push(ready.next().expect("ready").expect("not over").number);
        assert_eq!(ready.queued.load(Ordering::SeqCst), 4);
        ready.push(7);
        for _ in 0..5 {
            numbers.push(ready.next().expect("ready").expect("not over").number);
        }
        assert_eq!(numbers.last(), Some(&7), "first come, first served");
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 7]);
        stopper.write_all(b"x").expect("there is room");
        assert_eq!(ready.next().expect("nothing failed"), None);
        assert_eq!(ready.next().expect("for everybody"), None);
    }

    #[test]
    fn a_connection_that_always_has_more_does_not_keep_others_waiting() {
        let (stop, _stopper) = pair();
        let ready = ReadyConnections::new(stop.as_raw_fd()).expect("descriptors are left");
        let (ours, mut theirs) = pair();
        ready.sockets.add(ours.as_raw_fd(), 0).expect("it is open");
        theirs.write_all(b"x").expect("there is room");
        ready.push(1);
        let mut served = 0;
        while ready.next().expect("ready").expect("not over").number == 1 {
            ready.push(1);
            served += 1;
            assert!(served < 10 * MAX_TAKEN, "the other one has been waiting");
        }
    }

    /// Each of four workers takes a number and waits for three others that have one: if one of them slept while there
    /// was something in the queue, all would wait for ever.
    #[test]
    fn nobody_sleeps_while_there_is_work() {
        const WORKERS: usize = 4;
        const ROUNDS: usize = 2000;
        let (stop, mut stopper) = pair();
        let ready = ReadyConnections::new(stop.as_raw_fd()).expect("descriptors are left");
        let (together, served) = (Barrier::new(WORKERS), Barrier::new(WORKERS + 1));
        let (mut ours, mut theirs) = pair();
        ready.sockets.add(ours.as_raw_fd(), 0).expect("it is open");
        thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let report = ready.next().expect("nothing failed");
                        assert!(report.is_some(), "it is not over");
                        together.wait();
                        served.wait();
                    }
                    assert_eq!(ready.next().expect("nothing failed"), None);
                });
            }
            for round in 0..ROUNDS {
                // One comes by the kernel, at different moments.
                for number in 0..WORKERS {
                    match number == round % WORKERS {
                        true => theirs.write_all(b"x").expect("there is room"),
                        false => ready.push(number),
                    }
                }
                served.wait();
                // Or there would be no room for so many.
                ours.read_exact(&mut [0]).expect("it has come");
            }
            stopper.write_all(b"x").expect("there is room");
        });
    }
}
