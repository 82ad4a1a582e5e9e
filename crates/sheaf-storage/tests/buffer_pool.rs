//! The buffer pool on the simulated disk: what it keeps, what it reads, and what it does when the disk fails.
#![cfg(not(feature = "simulation"))]

use std::sync::Arc;

use proptest::prelude::*;
use sheaf_memory::process::Lender;
use sheaf_storage::disk::simulated::{
    Fault, FaultKind, FaultyOperation, SimulatedDisk, SimulationOptions,
};
use sheaf_storage::pages::{
    BufferPool, MIN_FRAMES, PAGES_PER_CHUNK, PoolOptions, Restart, WriteBackStep,
};
use sheaf_storage::{Disk, FileId, Lsn, PAGE_SIZE, PageId, StorageError, TreeId};

const FILE: &str = "data";
const KIB: usize = 1024;

fn options(pool_bytes: usize) -> PoolOptions {
    PoolOptions {
        background_writer: false,
        max_pages: 1 << 20,
        merge_gap_pages: 1,
        ..PoolOptions::new(pool_bytes)
    }
}

fn disk(seed: u64) -> (Arc<SimulatedDisk>, FileId) {
    let disk = SimulatedDisk::new(SimulationOptions::new(seed));
    let file = disk.open(FILE).unwrap();
    (disk, file)
}

fn open(disk: &Arc<SimulatedDisk>, pool_bytes: usize) -> Arc<BufferPool> {
    let file = disk.open(FILE).unwrap();
    BufferPool::open(disk.clone(), file, options(pool_bytes)).unwrap()
}

/// A pool over a file of `pages` pages; page `n` holds `n` at its end, and belongs to tree 9. Nothing is in memory.
fn filled(disk: &Arc<SimulatedDisk>, pool_bytes: usize, pages: u64) -> Arc<BufferPool> {
    let pool = open(disk, pool_bytes);
    pool.extend_to(pages).unwrap();
    for page in 0..pages {
        write(&pool, page, page);
    }
    pool.evict_all_clean().unwrap();
    assert_eq!(pool.resident_in(PageId(0)..PageId(pages)), 0);
    pool
}

const VALUE: usize = PAGE_SIZE - 8;

fn write(pool: &BufferPool, page: u64, value: u64) {
    let mut guard = pool.create(PageId(page)).unwrap();
    guard.set_tree_id(TreeId(9));
    guard.set_u64_at(VALUE, value);
    guard.mark_dirty(Lsn(value));
}

fn read(pool: &BufferPool, page: u64) -> u64 {
    let guard = pool.shared(PageId(page)).unwrap();
    assert_eq!(guard.page_id(), PageId(page));
    guard.u64_at(VALUE)
}

fn read_optimistically(pool: &BufferPool, page: u64) -> u64 {
    loop {
        let guard = pool.optimistic(PageId(page)).unwrap();
        let value = guard.read_u64(VALUE);
        if guard.validate().is_ok() {
            return value;
        }
    }
}

#[test]
fn a_pool_that_has_lent_memory_works_with_less_and_takes_it_again() {
    let disk = disk(1).0;
    let pool = filled(&disk, 2048 * KIB, 130);
    let frames = pool.counters().pages_total as usize;
    let resident = |pool: &BufferPool| pool.resident_in(PageId(0)..PageId(130)) as usize;
    // Pages that were used twice are lent as well, but no page that was changed.
    write(&pool, 0, 1000);
    let all = |pool: &BufferPool| (1..frames as u64 - 1).all(|page| read(pool, page) == page);
    assert!(all(&pool) && all(&pool));
    let lent = pool.lend(usize::MAX);
    let lent = lent / PAGE_SIZE;
    let kept = MIN_FRAMES.max(frames / 4);
    assert_eq!(lent, frames - kept);
    assert!(resident(&pool) <= kept);
    assert!(pool.is_resident(PageId(0)));
    assert_eq!(pool.lend(PAGE_SIZE), 0, "it keeps a quarter");
    assert_eq!(pool.counters().pages_total as usize, frames);
    // A process without a limit has room.
    assert!(all(&pool) && read_optimistically(&pool, 0) == 1000);
    assert!(resident(&pool) > kept);
    assert_eq!(pool.lend(PAGE_SIZE), PAGE_SIZE);
    assert!(all(&pool));
}

#[test]
fn a_small_pool_lends_no_frame_that_it_needs() {
    let disk = disk(1).0;
    let pool = filled(&disk, 1024 * KIB, 60);
    // Those that pay for the page table are out of service.
    pool.extend_to(5 * PAGES_PER_CHUNK).unwrap();
    let frames = pool.counters().pages_total as usize;
    assert!(frames < 2 * MIN_FRAMES);
    let lent = pool.lend(usize::MAX) / PAGE_SIZE;
    assert_eq!(lent, frames - MIN_FRAMES);
    assert!((0..60).all(|page| read(&pool, page) == page));
}

#[test]
fn frames_that_have_no_memory_are_not_lent() {
    let disk = disk(1).0;
    let pool = open(&disk, 2048 * KIB);
    pool.extend_to(100).unwrap();
    for page in 0..10 {
        write(&pool, page, page);
    }
    pool.evict_all_clean().unwrap();
    assert_eq!(pool.lend(usize::MAX), 10 * PAGE_SIZE);
    assert_eq!(pool.lend(usize::MAX), 0);
    assert!((0..10).all(|page| read(&pool, page) == page));
}

fn fault(operation: FaultyOperation, kind: FaultKind, page: u64) -> Fault {
    let start = PageId(page).offset();
    let bytes = start..start + PAGE_SIZE as u64;
    Fault {
        operation,
        kind,
        file: FILE.into(),
        bytes,
        times: 1,
    }
}

#[test]
fn pages_outlive_eviction_and_reopening() {
    let (disk, _) = disk(1);
    let pages = 300;
    let pool = filled(&disk, 2048 * KIB, pages);
    assert!(
        pool.counters().pages_total < pages,
        "the test wants a pool smaller than the file"
    );
    for page in 0..pages {
        assert_eq!(read(&pool, page), page);
    }
    pool.close().unwrap();
    drop(pool);

    let pool = open(&disk, 2048 * KIB);
    assert_eq!(pool.page_count(), pages);
    for page in (0..pages).rev() {
        assert_eq!(read_optimistically(&pool, page), page);
    }
}

#[test]
fn what_was_flushed_survives_a_power_loss() {
    for seed in 0..20 {
        let (disk, _) = disk(seed);
        let pool = open(&disk, 2048 * KIB);
        pool.extend_to(200).unwrap();
        for page in 0..200 {
            write(&pool, page, page + seed);
        }
        pool.flush_all().unwrap();
        // Not flushed: these pages may come back in either version or torn, the others must not change.
        for page in 0..50 {
            write(&pool, page, 7777);
        }
        while pool.write_back_step().unwrap() == WriteBackStep::Wrote {}

        let disk = disk.power_loss(SimulationOptions::new(seed));
        assert!(pool.flush_all().is_err(), "the old machine has crashed");
        let pool = open(&disk, 2048 * KIB);
        for page in 0..50 {
            match pool.shared(PageId(page)) {
                Ok(guard) => assert!([page + seed, 7777].contains(&guard.u64_at(VALUE))),
                Err(StorageError::Corrupt { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        for page in 50..200 {
            assert_eq!(read(&pool, page), page + seed);
        }
    }
}

#[test]
fn a_crash_at_any_operation_leaves_what_was_flushed() {
    let (untouched, _) = disk(0);
    filled(&untouched, 2048 * KIB, 60);
    let prepared = untouched.operations();
    let mut crashes = 0;
    for crash_at in prepared..prepared + 40 {
        let disk = SimulatedDisk::new(SimulationOptions {
            crash_at_operation: Some(crash_at),
            ..SimulationOptions::new(crash_at)
        });
        let pool = filled(&disk, 2048 * KIB, 60);
        // Two flushed generations on top of the first; the machine goes down somewhere in between.
        let mut flushed = 0;
        for generation in 1..=2 {
            for page in (0..60).step_by(3) {
                write(&pool, page, page + 1000 * generation);
            }
            match pool.flush_all() {
                Ok(()) => flushed = generation,
                Err(error) => assert!(disk.is_crashed(), "{error}"),
            }
        }
        crashes += u32::from(disk.is_crashed());
        let pool = open(&disk.power_loss(SimulationOptions::new(0)), 2048 * KIB);
        for page in 0..60 {
            let changed = page % 3 == 0;
            match pool.shared(PageId(page)) {
                Ok(guard) if changed => {
                    let generation = (guard.u64_at(VALUE) - page) / 1000;
                    assert!((flushed..=2).contains(&generation), "page {page}");
                }
                Ok(guard) => assert_eq!(guard.u64_at(VALUE), page),
                // Torn while it was written for a flush that did not come to its end.
                Err(StorageError::Corrupt { .. }) => assert!(changed && flushed < 2),
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(crashes > 20, "the crashes hit the two flushes");
}

#[test]
fn an_unchanged_page_validates_and_a_changed_one_restarts() {
    let (disk, _) = disk(2);
    let pool = filled(&disk, 2048 * KIB, 10);
    let guard = pool.optimistic(PageId(3)).unwrap();
    assert_eq!(guard.read_u64(VALUE), 3);
    drop(pool.shared(PageId(3)).unwrap());
    assert_eq!(guard.validate(), Ok(()), "a reader changes nothing");

    write(&pool, 3, 33);
    assert_eq!(guard.validate(), Err(Restart));
    assert!(guard.upgrade().is_err());
    assert_eq!(read_optimistically(&pool, 3), 33);
}

#[test]
fn a_version_outlives_eviction() {
    let (disk, _) = disk(3);
    let pool = filled(&disk, 2048 * KIB, 10);
    let guard = pool.optimistic(PageId(3)).unwrap();
    pool.evict_all_clean().unwrap();
    assert_eq!(guard.validate(), Err(Restart), "the page is not in memory");
    assert_eq!(read(&pool, 3), 3);
    assert_eq!(
        guard.validate(),
        Err(Restart),
        "it may be in another frame now"
    );
}

#[test]
fn an_optimistic_guard_becomes_a_latch_if_nothing_happened() {
    let (disk, _) = disk(4);
    let pool = filled(&disk, 2048 * KIB, 10);
    let guard = pool.optimistic(PageId(3)).unwrap();
    {
        let mut exclusive = guard.upgrade().unwrap();
        assert_eq!(guard.validate(), Err(Restart));
        exclusive.set_u64_at(VALUE, 4);
        exclusive.mark_dirty(Lsn(4));
        let version = exclusive.next_version();
        let shared = exclusive.downgrade();
        assert_eq!(shared.version(), version);
        assert_eq!(shared.u64_at(VALUE), 4);
        let other = pool.optimistic(PageId(3)).unwrap();
        drop(other.to_shared().unwrap());
        assert!(other.upgrade().is_err(), "it is latched by a reader");
    }
    assert!(pool.optimistic(PageId(3)).unwrap().upgrade().is_ok());
}

#[test]
fn the_budget_holds_while_the_file_grows() {
    let (disk, _) = disk(5);
    let pool_bytes = 2048 * KIB;
    let pool = open(&disk, pool_bytes);
    let frames = pool.counters().pages_total;
    for pages in [100, 5000, 50_000] {
        pool.extend_to(pages).unwrap();
        assert!(pool.memory_bytes() <= pool_bytes);
        write(&pool, pages - 1, pages);
        assert_eq!(read(&pool, pages - 1), pages);
    }
    let chunks = 50_000u64.div_ceil(PAGE_SIZE as u64 / 8);
    assert_eq!(
        pool.counters().pages_total,
        frames - chunks,
        "frames pay for the page table"
    );
    let error = pool.extend_to(1 << 20).unwrap_err();
    assert!(
        matches!(error, StorageError::PoolExhausted { .. }),
        "{error}"
    );
    assert_eq!(pool.page_count(), 50_000);
    assert!(pool.counters().pages_total >= MIN_FRAMES as u64);
}

#[test]
fn a_pool_that_is_too_small_is_refused() {
    let (disk, file) = disk(6);
    let error = BufferPool::open(disk, file, options(100 * KIB))
        .err()
        .unwrap();
    assert!(
        matches!(
            error,
            StorageError::BadOption {
                option: "pool_bytes",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn pages_that_do_not_exist_are_named() {
    let (disk, _) = disk(7);
    let pool = filled(&disk, 2048 * KIB, 10);
    for page in [10, u64::MAX] {
        let error = pool.optimistic(PageId(page)).err().unwrap();
        assert!(
            matches!(error, StorageError::NoSuchPage { pages: 10, .. }),
            "{error}"
        );
        assert!(!pool.is_resident(PageId(page)));
    }
}

#[test]
fn a_failed_read_is_an_error_once_and_leaves_no_latch() {
    let (disk, _) = disk(8);
    let pool = filled(&disk, 2048 * KIB, 10);
    let free = pool.counters().pages_free;
    disk.inject(fault(FaultyOperation::Read, FaultKind::IoError, 3));
    let error = pool.shared(PageId(3)).err().unwrap();
    assert!(
        matches!(
            error,
            StorageError::Io {
                operation: "read",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(
        error.to_string(),
        "read of data at byte 49152 failed: Input/output error (os error 5)"
    );
    assert_eq!(pool.counters().pages_free, free);
    assert_eq!(read(&pool, 3), 3);
    drop(pool.exclusive(PageId(3)).unwrap());
}

#[test]
fn a_corrupt_page_names_file_page_and_tree() {
    let (disk, file) = disk(9);
    let pool = filled(&disk, 2048 * KIB, 10);
    disk.flip_stored_bit(file, PageId(3).offset() + 5000, 2);
    for _ in 0..2 {
        match pool.optimistic(PageId(3)).err().unwrap() {
            StorageError::Corrupt {
                file, page, tree, ..
            } => {
                assert_eq!((file.as_str(), page, tree), (FILE, PageId(3), TreeId(9)));
            }
            error => panic!("{error}"),
        }
    }
    disk.flip_stored_bit(file, PageId(3).offset() + 5000, 2);
    assert_eq!(read(&pool, 3), 3);
}

#[test]
fn a_bit_that_flips_on_the_way_is_found() {
    let (disk, _) = disk(10);
    let pool = filled(&disk, 2048 * KIB, 10);
    disk.inject(fault(FaultyOperation::Read, FaultKind::FlippedBit, 3));
    assert!(matches!(
        pool.shared(PageId(3)).err(),
        Some(StorageError::Corrupt { .. })
    ));
    assert_eq!(read(&pool, 3), 3);
}

#[test]
fn pages_that_could_not_be_written_stay_dirty() {
    let (disk, _) = disk(11);
    let pool = filled(&disk, 2048 * KIB, 10);
    for page in 0..10 {
        write(&pool, page, page + 100);
    }
    disk.inject(fault(FaultyOperation::Write, FaultKind::IoError, 3));
    let error = pool.flush_all().unwrap_err();
    assert!(
        matches!(
            error,
            StorageError::Io {
                operation: "write",
                ..
            }
        ),
        "{error}"
    );
    assert!(pool.counters().pages_dirty > 0);
    pool.flush_all().unwrap();
    assert_eq!(pool.counters().pages_dirty, 0);
    pool.evict_all_clean().unwrap();
    assert_eq!(read(&pool, 3), 103);
}

#[test]
fn a_full_disk_is_found_when_the_file_grows() {
    let (disk, _) = disk(12);
    let pool = filled(&disk, 2048 * KIB, 10);
    disk.set_capacity(20 * PAGE_SIZE as u64);
    assert!(matches!(
        pool.extend_to(30).unwrap_err(),
        StorageError::DiskFull { .. }
    ));
    assert_eq!(pool.page_count(), 10);
    pool.extend_to(20).unwrap();
    for page in 0..20 {
        write(&pool, page, page + 1);
    }
    pool.flush_all().unwrap();
}

#[test]
fn after_a_failed_sync_nothing_is_called_durable() {
    let (disk, _) = disk(13);
    let pool = filled(&disk, 2048 * KIB, 10);
    write(&pool, 1, 1);
    disk.inject(fault(FaultyOperation::Sync, FaultKind::IoError, 0));
    assert!(matches!(
        pool.flush_all().unwrap_err(),
        StorageError::Io {
            operation: "sync",
            ..
        }
    ));
    assert!(matches!(
        pool.flush_all().unwrap_err(),
        StorageError::SyncFailed { .. }
    ));
}

#[test]
fn a_discarded_page_is_not_written() {
    let (disk, _) = disk(14);
    let pool = filled(&disk, 2048 * KIB, 10);
    write(&pool, 3, 33);
    pool.discard(PageId(3));
    assert!(!pool.is_resident(PageId(3)));
    assert_eq!(pool.counters().pages_dirty, 0);
    let written = pool.counters().pages_written;
    pool.flush_all().unwrap();
    assert_eq!(pool.counters().pages_written, written);
    write(&pool, 3, 34);
    pool.evict_all_clean().unwrap();
    assert_eq!(read(&pool, 3), 34);
}

#[test]
fn a_pool_full_of_latches_says_so() {
    let (disk, _) = disk(15);
    let pool = filled(&disk, 2048 * KIB, 300);
    let mut guards = Vec::new();
    let error = loop {
        match pool.shared(PageId(guards.len() as u64)) {
            Ok(guard) => guards.push(guard),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, StorageError::PoolExhausted { .. }),
        "{error}"
    );
    assert_eq!(guards.len() as u64, pool.counters().pages_total);
    guards.pop();
    assert_eq!(read(&pool, 299), 299);
}

#[test]
fn a_panic_gives_latches_back() {
    let (disk, _) = disk(16);
    let pool = filled(&disk, 2048 * KIB, 10);
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _exclusive = pool.exclusive(PageId(1)).unwrap();
        let _shared = pool.shared(PageId(2)).unwrap();
        panic!("in the middle of a change");
    }));
    assert!(unwound.is_err());
    drop(pool.exclusive(PageId(1)).unwrap());
    drop(pool.exclusive(PageId(2)).unwrap());
}

#[test]
fn neighbours_and_near_neighbours_are_read_in_one_request() {
    let (disk, _) = disk(17);
    let pool = filled(&disk, 16 << 20, 400);
    let before = pool.counters();
    // One run; 10, 11 and 13 with a gap of one; 20 alone; 63 and 64 lie in different stretches.
    let wanted = [1, 2, 3, 10, 11, 13, 20, 63, 64].map(PageId);
    let summary = pool.prefetch(&wanted);
    assert_eq!(
        (summary.resident, summary.requests, summary.requested_pages),
        (0, 5, 10)
    );
    for page in wanted {
        assert_eq!(read(&pool, page.0), page.0);
    }
    let after = pool.counters();
    assert_eq!(after.data_reads - before.data_reads, 5);
    assert_eq!(after.pages_read - before.pages_read, 10);
    assert_eq!(after.data_read - before.data_read, 10 * PAGE_SIZE as u64);
    assert_eq!(after.read_ahead - before.read_ahead, 10);
    assert_eq!(after.reads, before.reads, "no access had to read by itself");

    let again = pool.prefetch(&wanted);
    assert_eq!((again.resident, again.requests), (wanted.len(), 0));
}

#[test]
fn a_resident_page_in_a_gap_is_read_past() {
    let (disk, _) = disk(18);
    let pool = filled(&disk, 16 << 20, 100);
    write(&pool, 6, 66);
    let summary = pool.prefetch(&[5, 6, 7].map(PageId));
    assert_eq!(
        (summary.resident, summary.requests, summary.requested_pages),
        (1, 1, 2)
    );
    assert_eq!([5, 6, 7].map(|page| read(&pool, page)), [5, 66, 7]);
}

#[test]
fn order_and_duplicates_of_a_hint_do_not_matter() {
    let (disk, _) = disk(19);
    let pool = filled(&disk, 16 << 20, 100);
    let summary = pool.prefetch(&[9, 8, 8, 7, 500, 9, 40].map(PageId));
    assert_eq!((summary.requests, summary.requested_pages), (2, 4));
}

#[test]
fn prefetched_pages_hold_no_more_than_their_quota() {
    let (disk, _) = disk(20);
    let pool = filled(&disk, 4096 * KIB, 300);
    // Those that pay for the page table are not among them.
    let frames = pool.counters().pages_total;
    let all: Vec<PageId> = (0..300).map(PageId).collect();
    let first = pool.prefetch(&all);
    assert_eq!(first.requested_pages as u64, frames / 4);
    assert_eq!(
        pool.prefetch(&all).requested_pages,
        0,
        "the quota is used up"
    );
    for page in 0..10 {
        assert_eq!(read(&pool, page), page);
    }
    let rest = &all[first.requested_pages..];
    assert_eq!(
        pool.prefetch(rest).requested_pages,
        10,
        "used pages make room"
    );
}

#[test]
fn a_prefetch_that_fails_is_forgotten() {
    let (disk, _) = disk(21);
    let pool = filled(&disk, 16 << 20, 100);
    disk.inject(fault(FaultyOperation::Read, FaultKind::IoError, 11));
    pool.prefetch(&[10, 11, 12].map(PageId));
    assert_eq!([10, 11, 12].map(|page| read(&pool, page)), [10, 11, 12]);
}

#[test]
fn a_scan_does_not_push_out_what_is_used_again_and_again() {
    let (disk, _) = disk(22);
    let pool = filled(&disk, 4096 * KIB, 2000);
    let hot: Vec<u64> = (0..50).collect();
    for page in hot.iter().chain(&hot) {
        read(&pool, *page);
    }
    for page in 100..2000 {
        read(&pool, page);
        if page % 20 == 0 {
            hot.iter()
                .for_each(|&page| assert_eq!(read_optimistically(&pool, page), page));
        }
    }
    let resident = hot
        .iter()
        .filter(|&&page| pool.is_resident(PageId(page)))
        .count();
    assert_eq!(resident, hot.len());
    let reads = pool.counters().pages_read;
    assert_eq!(reads, hot.len() as u64 + 1900, "every page was read once");
}

#[test]
fn write_back_merges_neighbours() {
    let (disk, _) = disk(23);
    let pool = filled(&disk, 16 << 20, 100);
    let before = pool.counters();
    for page in [3, 1, 2, 9, 63, 64] {
        write(&pool, page, page);
    }
    pool.flush_all().unwrap();
    let after = pool.counters();
    assert_eq!(after.pages_written - before.pages_written, 6);
    assert_eq!(after.write_requests - before.write_requests, 4);
}

#[test]
fn threads_see_each_others_whole_pages_only() {
    let (disk, _) = disk(24);
    let pages = 60;
    let pool = filled(&disk, 1024 * KIB, pages);
    assert!(pool.counters().pages_total < pages);
    // A page is consistent when its two counters agree; each of the writers adds 200.
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let pool = &pool;
            scope.spawn(move || {
                for i in 0..200 {
                    let page = PageId((i * 7 + thread * 13) % pages);
                    let mut guard = pool.exclusive(page).unwrap();
                    let next = guard.u64_at(100) + 1;
                    guard.set_u64_at(100, next);
                    guard.set_u64_at(9000, next);
                    guard.mark_dirty(Lsn(next));
                    drop(guard);
                    let guard = pool.optimistic(PageId(i % pages)).unwrap();
                    let counters = (guard.read_u64(100), guard.read_u64(9000));
                    if guard.validate().is_ok() {
                        assert_eq!(counters.0, counters.1);
                    }
                }
            });
        }
    });
    pool.evict_all_clean().unwrap();
    let sum: u64 = (0..pages)
        .map(|page| {
            let guard = pool.shared(PageId(page)).unwrap();
            assert_eq!(guard.u64_at(100), guard.u64_at(9000));
            guard.u64_at(100)
        })
        .sum();
    assert_eq!(sum, 800);
}

/// A step of the model test.
#[derive(Clone, Debug)]
enum Step {
    Write(u64, u64),
    Read(u64),
    ReadOptimistically(u64),
    Prefetch(Vec<u64>),
    Discard(u64),
    WriteBack,
    Flush,
    Drop,
    Reopen,
    FailRead(u64),
    FailWrite(u64),
}

fn step(pages: u64) -> impl Strategy<Value = Step> {
    let page = 0..pages;
    prop_oneof![
        8 => (page.clone(), any::<u64>()).prop_map(|(page, value)| Step::Write(page, value)),
        8 => page.clone().prop_map(Step::Read),
        8 => page.clone().prop_map(Step::ReadOptimistically),
        3 => prop::collection::vec(page.clone(), 1..20).prop_map(Step::Prefetch),
        1 => page.clone().prop_map(Step::Discard),
        2 => Just(Step::WriteBack),
        1 => Just(Step::Flush),
        1 => Just(Step::Drop),
        1 => Just(Step::Reopen),
        1 => page.clone().prop_map(Step::FailRead),
        1 => page.prop_map(Step::FailWrite),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// The pool behaves like an array of pages, whatever is evicted in between and whatever fails.
    #[test]
    fn the_pool_is_an_array(seed in any::<u64>(), steps in prop::collection::vec(step(90), 1..250)) {
        const PAGES: u64 = 90;
        let pool_bytes = 1024 * KIB;
        let (disk, _) = disk(seed);
        let mut pool = filled(&disk, pool_bytes, PAGES);
        prop_assert!(pool.counters().pages_total < PAGES);
        let mut model: Vec<Option<u64>> = (0..PAGES).map(Some).collect();
        for step in steps {
            match step {
                Step::Write(page, value) => {
                    // A frame can only be had if dirty pages can be written; with a fault ahead that may take two
                    // tries.
                    let tries = (0..3).find(|_| pool.create(PageId(page)).is_ok());
                    prop_assert!(tries.is_some());
                    write(&pool, page, value);
                    model[page as usize] = Some(value);
                }
                Step::Read(page) | Step::ReadOptimistically(page) => {
                    let Some(expected) = model[page as usize] else { continue };
                    let tries = (0..4).find(|_| pool.optimistic(PageId(page)).is_ok());
                    prop_assert!(tries.is_some());
                    let read = match step {
                        Step::Read(_) => read(&pool, page),
                        _ => read_optimistically(&pool, page),
                    };
                    prop_assert_eq!(read, expected);
                }
                Step::Prefetch(pages) => {
                    let pages: Vec<PageId> = pages.into_iter().map(PageId).collect();
                    pool.prefetch(&pages);
                }
                Step::Discard(page) => {
                    pool.discard(PageId(page));
                    model[page as usize] = None;
                }
                Step::WriteBack => drop(pool.write_back_step()),
                Step::Flush => drop(pool.flush_all()),
                Step::Drop => drop(pool.evict_all_clean()),
                Step::Reopen => {
                    disk.heal();
                    pool.close().unwrap();
                    pool = open(&disk, pool_bytes);
                }
                Step::FailRead(page) => {
                    disk.inject(fault(FaultyOperation::Read, FaultKind::IoError, page));
                }
                Step::FailWrite(page) => {
                    disk.inject(fault(FaultyOperation::Write, FaultKind::IoError, page));
                }
            }
            pool.memory_bytes();
            let counters = pool.counters();
            prop_assert!(counters.pages_free <= counters.pages_total);
            prop_assert!(counters.pages_dirty <= counters.pages_total - counters.pages_free);
        }
    }
}
