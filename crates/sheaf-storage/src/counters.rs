//! Counters of the buffer pool.
//!
//! The page access counter is bumped on every access, also on optimistic ones that otherwise write nothing shared, so
//! it must not be a cache line that cores pass around. Every thread counts in a line of its own, without a locked
//! instruction, and a snapshot adds the lines up. What happens once per disk request is counted in plain atomics.
//!
//! Counters say nothing about the order of events, so they are not part of what a simulation schedules: they are the
//! standard library's atomics in every build.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::page::Lsn;

/// A snapshot of the pool's counters and gauges. Everything since the pool was opened, unless it is a gauge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolCounters {
    /// Page accesses.
    pub read_requests: u64,
    /// Accesses that had to wait for a read of their own.
    pub reads: u64,
    /// Pages requested by prefetch.
    pub read_ahead: u64,
    /// Accesses that found the page still on its way, and waited for a read that another thread had started.
    pub read_ahead_waits: u64,
    /// Prefetched pages that were not used before eviction came round to them.
    pub read_ahead_unused: u64,
    /// Read requests issued to the disk.
    pub data_reads: u64,
    /// Bytes read, those of dropped gap pages included.
    pub data_read: u64,
    /// Pages read into frames, one by one or merged.
    pub pages_read: u64,
    /// Pages written.
    pub pages_written: u64,
    /// Write requests issued to the disk.
    pub write_requests: u64,
    /// Bytes written.
    pub data_written: u64,
    /// Syncs issued to the disk.
    pub syncs: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Gauge: frames of the pool.
    pub pages_total: u64,
    /// Gauge: frames that hold no page.
    pub pages_free: u64,
    /// Gauge: frames whose page differs from its copy on disk.
    pub pages_dirty: u64,
}

/// Gauges of versions, locks and snapshots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TransactionCounters {
    /// Memory of before-images, in bytes.
    pub version_bytes: u64,
    /// Most that it may be.
    pub version_bytes_limit: u64,
    /// Leaves with before-images.
    pub leaves_with_versions: u64,
    /// Bytes of the spill file that before-images and the undo of long transactions take.
    pub spilled_bytes: u64,
    /// Most that the spill file may have.
    pub spilled_bytes_limit: u64,
    /// Bytes written to the spill file since the storage was opened (no gauge).
    pub spill_written_bytes: u64,
    /// Bytes read back from it (no gauge).
    pub spill_read_bytes: u64,
    /// Explicit locks held or waited for.
    pub row_locks: u64,
    pub lock_waits: LockWaits,
    /// What a snapshot taken now would see.
    pub newest_commit: Lsn,
    /// The oldest snapshot in use; `newest_commit` if there is none.
    pub oldest_snapshot: Lsn,
}

/// How transactions wait for locks of others, since the storage was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockWaits {
    pub waits: u64,
    /// Gauge: those that wait now.
    pub waiting: u64,
    pub wait_ns: u64,
    pub longest_ns: u64,
    /// Transactions that were rolled back to end a circle of waits.
    pub deadlocks: u64,
}

/// Counters of disk traffic.
#[derive(Default)]
pub(crate) struct DiskTraffic {
    pub(crate) reads: AtomicU64,
    pub(crate) read_ahead: AtomicU64,
    pub(crate) read_ahead_waits: AtomicU64,
    pub(crate) read_ahead_unused: AtomicU64,
    pub(crate) data_reads: AtomicU64,
    pub(crate) data_read: AtomicU64,
    pub(crate) pages_read: AtomicU64,
    pub(crate) pages_written: AtomicU64,
    pub(crate) write_requests: AtomicU64,
    pub(crate) data_written: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) evictions: AtomicU64,
}

/// What the calling thread has asked of buffer pools since it began: the difference of two of these is what a piece of
/// its work cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThreadPageWork {
    /// Page accesses, of one pool. Stands still on a thread that has no line of its own, see [`PerThreadCounter`].
    pub accesses: u64,
    /// Accesses that had to wait for a read of their own.
    pub reads: u64,
    /// Pages requested ahead.
    pub read_ahead: u64,
    /// Read requests issued to the disk, for either.
    pub requests: u64,
}

impl ThreadPageWork {
    /// What was done since `before`.
    pub fn since(self, before: ThreadPageWork) -> ThreadPageWork {
        ThreadPageWork {
            accesses: self.accesses - before.accesses,
            reads: self.reads - before.reads,
            read_ahead: self.read_ahead - before.read_ahead,
            requests: self.requests - before.requests,
        }
    }
}

thread_local! {
    /// All but the accesses.
    static MY_WORK: Cell<ThreadPageWork> = const { Cell::new(ThreadPageWork {
        accesses: 0,
        reads: 0,
        read_ahead: 0,
        requests: 0,
    }) };
}

/// Books disk requests on the calling thread.
pub(crate) fn count_on_thread(reads: u64, read_ahead: u64, requests: u64) {
    let work = MY_WORK.get();
    MY_WORK.set(ThreadPageWork {
        accesses: 0,
        reads: work.reads + reads,
        read_ahead: work.read_ahead + read_ahead,
        requests: work.requests + requests,
    });
}

/// The work of the calling thread, with its share of `accesses`.
pub(crate) fn thread_page_work(accesses: &PerThreadCounter) -> ThreadPageWork {
    ThreadPageWork {
        accesses: accesses.of_this_thread(),
        ..MY_WORK.get()
    }
}

/// Adds to a counter of events.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

/// The present value of a counter of events.
pub(crate) fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// Threads that can have a line of their own. Threads beyond share the last line, with locked instructions.
const LINES: usize = 512;

#[derive(Default)]
#[repr(align(64))]
struct Line(AtomicU64);

/// A counter that each thread bumps in its own cache line.
pub(crate) struct PerThreadCounter(Box<[Line]>);

impl PerThreadCounter {
    pub(crate) fn new() -> PerThreadCounter {
        PerThreadCounter((0..LINES).map(|_| Line::default()).collect())
    }

    /// Bytes a counter takes.
    pub(crate) const fn bytes() -> usize {
        LINES * size_of::<Line>()
    }

    #[inline]
    pub(crate) fn increment(&self) {
        let line = thread_line();
        let counter = &self.0[line].0;
        if line < LINES - 1 {
            // This thread is the line's only writer.
            counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        } else {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What this thread, or those before it in its line, has counted; 0 in the line that threads share.
    fn of_this_thread(&self) -> u64 {
        match thread_line() {
            line if line < LINES - 1 => get(&self.0[line].0),
            _ => 0,
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.iter().map(|line| get(&line.0)).sum()
    }
}

/// Lines that ended threads have given back. A line keeps its sum; its next owner counts on.
static FREE_LINES: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// Lines that have been handed out at least once.
static USED_LINES: AtomicUsize = AtomicUsize::new(0);

const NO_LINE: usize = usize::MAX;

thread_local! {
    static MY_LINE: Cell<usize> = const { Cell::new(NO_LINE) };
    static RETURN_LINE: LineLease = const { LineLease(Cell::new(NO_LINE)) };
}

/// Gives the thread's line back when the thread ends.
struct LineLease(Cell<usize>);

impl Drop for LineLease {
    fn drop(&mut self) {
        // Destructors of other thread locals may still count: they use the shared line from now on.
        let _ = MY_LINE.try_with(|line| line.set(LINES - 1));
        let line = self.0.get();
        if line < LINES - 1
            && let Ok(mut free) = FREE_LINES.lock()
        {
            free.push(line);
        }
    }
}

#[inline]
fn thread_line() -> usize {
    let line = MY_LINE.get();
    if line != NO_LINE { line } else { take_line() }
}

#[cold]
fn take_line() -> usize {
    let recycled = FREE_LINES.lock().ok().and_then(|mut free| free.pop());
    let line = recycled
        .unwrap_or_else(|| USED_LINES.fetch_add(1, Ordering::Relaxed))
        .min(LINES - 1);
    // Without a lease (the thread is ending) the line could not be given back: use the shared one.
    let leased = RETURN_LINE.try_with(|lease| lease.0.set(line)).is_ok();
    let line = if leased { line } else { LINES - 1 };
    MY_LINE.set(line);
    line
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use super::*;

    #[test]
    fn counts_of_threads_that_come_and_go_add_up() {
        let counter = PerThreadCounter::new();
        for _ in 0..3 {
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| (0..1000).for_each(|_| counter.increment()));
                }
            });
        }
        assert_eq!(counter.total(), 24_000);
    }

    #[test]
    fn a_thread_knows_its_own_work() {
        let counter = PerThreadCounter::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let before = thread_page_work(&counter);
                (0..7).for_each(|_| counter.increment());
                count_on_thread(2, 5, 3);
                let work = thread_page_work(&counter).since(before);
                let expected = ThreadPageWork {
                    accesses: 7,
                    reads: 2,
                    read_ahead: 5,
                    requests: 3,
                };
                assert_eq!(work, expected);
            });
        });
    }
}
