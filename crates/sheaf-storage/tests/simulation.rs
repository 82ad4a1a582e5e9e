//! Latches and the pool under every scheduling that a seeded scheduler comes up with.
//!
//! `cargo test --release -p sheaf-storage --features simulation --test simulation`
//!
//! Shuttle runs one thread at a time, switches at each operation on shared memory, and fails a test whose threads are
//! all blocked: a lost wake-up is a failure here, not a hang.
#![cfg(feature = "simulation")]

use std::sync::Arc;
use std::sync::Mutex as TraceMutex;

use sheaf_memory::process::Lender;
use sheaf_storage::disk::simulated::{
    Fault, FaultKind, FaultyOperation, SimulatedDisk, SimulationOptions,
};
use sheaf_storage::pages::{BufferPool, PoolOptions};
use sheaf_storage::sync::thread;
use sheaf_storage::{Disk, Lsn, PAGE_SIZE, PageId, StorageError};

const FILE: &str = "data";
const POOL_BYTES: usize = 1 << 20;
const SCHEDULES: usize = 200;

/// A pool of some 50 frames over a file of `pages` pages, none of them in memory, each holding its number twice.
fn filled(pages: u64) -> (Arc<SimulatedDisk>, Arc<BufferPool>) {
    let disk = SimulatedDisk::new(SimulationOptions::new(1));
    let file = disk.open(FILE).unwrap();
    let options = PoolOptions {
        max_pages: 1 << 10,
        ..PoolOptions::new(POOL_BYTES)
    };
    let pool = BufferPool::open(disk.clone(), file, options).unwrap();
    pool.extend_to(pages).unwrap();
    for page in 0..pages {
        drop(pool.create(PageId(page)).unwrap());
        store(&pool, page, page);
    }
    pool.evict_all_clean().unwrap();
    (disk, pool)
}

const FIRST: usize = 100;
const LAST: usize = PAGE_SIZE - 8;

fn store(pool: &BufferPool, page: u64, value: u64) {
    let mut guard = pool.exclusive(PageId(page)).unwrap();
    guard.set_u64_at(FIRST, value);
    // Others may run between the two halves of a change.
    thread::yield_now();
    guard.set_u64_at(LAST, value);
    guard.mark_dirty(Lsn(value));
}

/// Runs the body under many schedules: uniformly random ones, and ones with few switches at unusual places.
fn explore(body: fn()) {
    shuttle::check_random(body, SCHEDULES);
    shuttle::check_pct(body, SCHEDULES, 3);
}

#[test]
fn a_validated_reading_is_never_torn() {
    explore(|| {
        let (_disk, pool) = filled(2);
        let mut threads = Vec::new();
        for writer in 0..2u64 {
            let pool = pool.clone();
            threads.push(thread::spawn(move || {
                for round in 0..3 {
                    store(&pool, 0, 10 * writer + round);
                }
            }));
        }
        for _ in 0..2 {
            let pool = pool.clone();
            threads.push(thread::spawn(move || {
                for _ in 0..4 {
                    let guard = pool.optimistic(PageId(0)).unwrap();
                    let values = (guard.read_u64(FIRST), guard.read_u64(LAST));
                    if guard.validate().is_ok() {
                        assert_eq!(values.0, values.1);
                    }
                }
            }));
        }
        let dropper = pool.clone();
        threads.push(thread::spawn(move || dropper.evict_all_clean().unwrap()));
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn latches_exclude_and_wake() {
    explore(|| {
        let (_disk, pool) = filled(1);
        let mut threads = Vec::new();
        for _ in 0..3 {
            let pool = pool.clone();
            threads.push(thread::spawn(move || {
                for _ in 0..2 {
                    let mut guard = pool.exclusive(PageId(0)).unwrap();
                    let value = guard.u64_at(FIRST);
                    thread::yield_now();
                    guard.set_u64_at(FIRST, value + 1);
                    guard.mark_dirty(Lsn(value + 1));
                    let guard = guard.downgrade();
                    assert_eq!(guard.u64_at(FIRST), value + 1);
                }
            }));
        }
        let upgrading = pool.clone();
        threads.push(thread::spawn(move || {
            // Adds one, however often the page changes under it.
            loop {
                let guard = upgrading.optimistic(PageId(0)).unwrap();
                let value = guard.read_u64(FIRST);
                if let Ok(mut guard) = guard.upgrade() {
                    guard.set_u64_at(FIRST, value + 1);
                    guard.mark_dirty(Lsn(value + 1));
                    break;
                }
                thread::yield_now();
            }
        }));
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(pool.shared(PageId(0)).unwrap().u64_at(FIRST), 7);
    });
}

#[test]
fn one_miss_reads_and_the_others_wait() {
    explore(|| {
        let (_disk, pool) = filled(3);
        let before = pool.counters();
        let threads: Vec<_> = (0..4)
            .map(|reader| {
                let pool = pool.clone();
                thread::spawn(move || {
                    if reader == 0 {
                        pool.prefetch(&[PageId(0), PageId(1), PageId(2)]);
                    }
                    assert_eq!(pool.shared(PageId(1)).unwrap().u64_at(LAST), 1);
                })
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        for page in 0..3 {
            assert_eq!(pool.shared(PageId(page)).unwrap().u64_at(LAST), page);
        }
        assert_eq!(pool.counters().pages_read - before.pages_read, 3);
    });
}

#[test]
fn a_failed_read_leaves_nobody_waiting() {
    explore(|| {
        let (disk, pool) = filled(1);
        disk.inject(Fault {
            operation: FaultyOperation::Read,
            kind: FaultKind::IoError,
            file: FILE.into(),
            bytes: 0..u64::MAX,
            times: 1,
        });
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let pool = pool.clone();
                thread::spawn(move || match pool.shared(PageId(0)) {
                    Ok(guard) => {
                        assert_eq!(guard.u64_at(LAST), 0);
                        0
                    }
                    Err(StorageError::Io { .. }) => 1,
                    Err(error) => panic!("{error}"),
                })
            })
            .collect();
        let failures: i32 = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum();
        assert_eq!(failures, 1, "the one whose read it was");
        drop(pool.exclusive(PageId(0)).unwrap());
    });
}

#[test]
fn eviction_write_back_and_changes_lose_nothing() {
    shuttle::check_random(
        || {
            const PAGES: u64 = 70;
            let (_disk, pool) = filled(PAGES);
            assert!(pool.counters().pages_total < PAGES);
            let mut threads = Vec::new();
            for writer in 0..2u64 {
                let pool = pool.clone();
                threads.push(thread::spawn(move || {
                    for page in (writer..PAGES).step_by(2) {
                        store(&pool, page, page + 1000);
                    }
                }));
            }
            let flusher = pool.clone();
            threads.push(thread::spawn(move || {
                for _ in 0..5 {
                    flusher.write_back_step().unwrap();
                }
                flusher.flush_all().unwrap();
            }));
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
            pool.evict_all_clean().unwrap();
            for page in 0..PAGES {
                let guard = pool.shared(PageId(page)).unwrap();
                assert_eq!(
                    (guard.u64_at(FIRST), guard.u64_at(LAST)),
                    (page + 1000, page + 1000)
                );
            }
        },
        20,
    );
}

#[test]
fn lending_beside_readers_and_write_back_loses_nothing() {
    shuttle::check_random(
        || {
            const PAGES: u64 = 70;
            let (_disk, pool) = filled(PAGES);
            let mut threads = Vec::new();
            let writer = pool.clone();
            threads.push(thread::spawn(move || {
                for page in 0..PAGES {
                    store(&writer, page, page + 1000);
                }
            }));
            let reader = pool.clone();
            threads.push(thread::spawn(move || {
                for page in (0..PAGES).rev() {
                    let guard = reader.optimistic(PageId(page)).unwrap();
                    let values = (guard.read_u64(FIRST), guard.read_u64(LAST));
                    if guard.validate().is_ok() {
                        assert_eq!(values.0, values.1);
                        assert!([page, page + 1000].contains(&values.0), "{values:?}");
                    }
                }
            }));
            let lender = pool.clone();
            threads.push(thread::spawn(move || {
                for _ in 0..4 {
                    lender.lend(8 * PAGE_SIZE);
                    lender.write_back_step().unwrap();
                }
            }));
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
            pool.evict_all_clean().unwrap();
            pool.lend(usize::MAX);
            for page in 0..PAGES {
                let guard = pool.shared(PageId(page)).unwrap();
                let values = (guard.u64_at(FIRST), guard.u64_at(LAST));
                assert_eq!(values, (page + 1000, page + 1000));
            }
        },
        20,
    );
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    /// What each thread saw, in the order in which it happened.
    fn trace(seed: u64) -> Vec<(u64, u64)> {
        let trace = Arc::new(TraceMutex::new(Vec::new()));
        let events = trace.clone();
        let scheduler = shuttle::scheduler::RandomScheduler::new_from_seed(seed, 1);
        shuttle::Runner::new(scheduler, shuttle::Config::new()).run(move || {
            let (_disk, pool) = filled(60);
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    let (pool, events) = (pool.clone(), events.clone());
                    thread::spawn(move || {
                        for i in 0..20 {
                            let page = (i * 7 + thread * 11) % 60;
                            let value = pool.exclusive(PageId(page)).map(|mut guard| {
                                let value = guard.u64_at(FIRST) + 1;
                                guard.set_u64_at(FIRST, value);
                                guard.mark_dirty(Lsn(value));
                                value
                            });
                            events.lock().unwrap().push((thread, value.unwrap()));
                        }
                    })
                })
                .collect();
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        });
        let events = trace.lock().unwrap().clone();
        assert_eq!(events.len(), 60);
        events
    }
    assert_eq!(trace(1), trace(1));
    assert_eq!(trace(2), trace(2));
    assert_ne!(trace(1), trace(2), "other seeds give other runs");
}
