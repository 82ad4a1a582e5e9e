//! A pool that has lent memory to a process which has no room for it: a quarter of its frames, or the least
//! number that a pool has, is all that it works with.
//!
//! The limit is one of the process, so these tests are a program of their own.
#![cfg(not(feature = "simulation"))]

use std::sync::Arc;

use sheaf_memory::process::{Lender, set_limit};
use sheaf_storage::disk::simulated::{
    Fault, FaultKind, FaultyOperation, SimulatedDisk, SimulationOptions,
};
use sheaf_storage::pages::{BufferPool, MIN_FRAMES, PoolOptions, WriteBackStep};
use sheaf_storage::{Disk, Lsn, PAGE_SIZE, PageId, StorageError};

const FILE: &str = "data";
const PAGES: u64 = 200;

/// A pool without a page in memory, and how many frames it has lent and has left.
fn lent() -> (Arc<SimulatedDisk>, Arc<BufferPool>, usize, usize) {
    set_limit(1);
    let disk = SimulatedDisk::new(SimulationOptions::new(1));
    let file = disk.open(FILE).unwrap();
    let options = PoolOptions {
        background_writer: false,
        max_pages: 1 << 20,
        ..PoolOptions::new(2 << 20)
    };
    let pool = BufferPool::open(disk.clone(), file, options).unwrap();
    pool.extend_to(PAGES).unwrap();
    for page in 0..PAGES {
        change(&pool, page).unwrap();
    }
    pool.evict_all_clean().unwrap();
    let lent = pool.lend(usize::MAX) / PAGE_SIZE;
    let frames = pool.counters().pages_total as usize;
    assert_eq!(lent, frames - MIN_FRAMES.max(frames / 4));
    (disk, pool, lent, frames - lent)
}

fn change(pool: &BufferPool, page: u64) -> Result<(), StorageError> {
    pool.create(PageId(page))?.mark_dirty(Lsn(page));
    Ok(())
}

#[test]
fn pages_that_cannot_be_written_do_not_keep_a_pool_from_frames_that_it_has_lent() {
    let (disk, pool, lent, left) = lent();
    disk.inject(Fault {
        operation: FaultyOperation::Write,
        kind: FaultKind::IoError,
        file: FILE.into(),
        bytes: 0..u64::MAX,
        times: u32::MAX,
    });
    let changed = (0..PAGES).take_while(|&page| change(&pool, page).is_ok());
    assert_eq!(changed.count(), lent + left);
}

#[test]
fn prefetch_takes_its_share_of_the_frames_that_are_left() {
    let (_disk, pool, _, left) = lent();
    let pages: Vec<PageId> = (0..PAGES).map(PageId).collect();
    assert_eq!(pool.prefetch(&pages).requested_pages, left / 4);
}

#[test]
fn dirty_pages_are_many_when_half_of_the_frames_that_are_left_have_them() {
    let (_disk, pool, _, left) = lent();
    for page in 0..left as u64 / 2 - 1 {
        change(&pool, page).unwrap();
    }
    assert_eq!(pool.write_back_step().unwrap(), WriteBackStep::Idle);
    for page in 0..left as u64 / 2 + 1 {
        change(&pool, page).unwrap();
    }
    assert_eq!(pool.write_back_step().unwrap(), WriteBackStep::Wrote);
}
