//! What stays in the pool of scans and multi-range reads that are larger than it, and are run again and again.

mod common;

use std::ops::Bound;
use std::sync::Arc;

use common::{disk, options};
use sheaf_storage::{
    BulkBuilder, Direction, KeptShare, KeyRange, ReadAhead, Storage, StorageOptions, Tree,
};

/// As scans have it: half of it is requested at a time.
const READ_AHEAD: ReadAhead = ReadAhead::Pages(256);

/// Scans after which the pool has what it keeps: the first one is no repetition yet.
const WARM_UP: u32 = 3;

fn open() -> Arc<Storage> {
    let options = StorageOptions {
        pool_bytes: 16 << 20,
        ..options()
    };
    Storage::open_on(disk(1), options).unwrap()
}

/// A tree of about so many leaves.
fn tree(storage: &Arc<Storage>, leaves: u32) -> Arc<Tree> {
    let mut builder = BulkBuilder::new(storage).unwrap();
    for i in 0..leaves * 10 {
        builder.append(&i.to_be_bytes(), &[7; 1500]).unwrap();
    }
    storage.tree(builder.finish().unwrap()).unwrap()
}

fn range(from: u32, to: u32) -> KeyRange {
    KeyRange {
        lower: Bound::Included(from.to_be_bytes().to_vec()),
        upper: Bound::Excluded(to.to_be_bytes().to_vec()),
    }
}

/// Scans a range, and says how many pages were read for it.
fn pages_of_scan(storage: &Storage, tree: &Arc<Tree>, range: KeyRange) -> u64 {
    let before = storage.pool_counters().pages_read;
    let kept = tree.kept_share(std::slice::from_ref(&range)).unwrap();
    let mut cursor = tree.scan(range, Direction::Forward, READ_AHEAD);
    cursor.keep(kept);
    while cursor.next_leaf().unwrap().is_some() {}
    if kept != KeptShare::ALL {
        tree.end_large_scan();
    }
    storage.pool_counters().pages_read - before
}

/// Scans a tree, and after so many of its leaves each time uses the next leaf of another one. Says how many of these
/// uses waited for the disk.
fn waits_beside_scan(storage: &Storage, scanned: &Arc<Tree>, used: &Arc<Tree>, every: u32) -> u64 {
    let used_leaves = used.statistics().leaf_pages as u32;
    let kept = scanned.kept_share(&[KeyRange::all()]).unwrap();
    let mut cursor = scanned.scan(KeyRange::all(), Direction::Forward, READ_AHEAD);
    cursor.keep(kept);
    let (mut leaves, mut value) = (0, Vec::new());
    let before = storage.pool_counters().reads;
    while cursor.next_leaf().unwrap().is_some() {
        leaves += 1;
        if leaves % every == 0 {
            let key = leaves / every % used_leaves * 10;
            used.get(&key.to_be_bytes(), &mut value).unwrap();
        }
    }
    scanned.end_large_scan();
    storage.pool_counters().reads - before
}

#[test]
fn a_scan_that_is_larger_than_the_pool_finds_most_of_the_pool_again() {
    let storage = open();
    let tree = tree(&storage, 4000);
    let (leaves, frames) = (tree.statistics().leaf_pages, tree.pool_pages());
    assert!(leaves > 3 * frames);
    for _ in 0..WARM_UP {
        pages_of_scan(&storage, &tree, KeyRange::all());
    }
    for _ in 0..4 {
        let read = pages_of_scan(&storage, &tree, KeyRange::all());
        let most = leaves - frames * 8 / 10;
        assert!(read <= most, "{read} pages of {leaves}, at most {most}");
    }
}

#[test]
fn so_do_two_workers() {
    let storage = open();
    let tree = tree(&storage, 8000);
    let (leaves, frames) = (tree.statistics().leaf_pages, tree.pool_pages());
    for scan in 0..6 {
        let before = storage.pool_counters().pages_read;
        let kept = tree.kept_share(&[KeyRange::all()]).unwrap();
        let workers = [range(0, 40_000), range(40_000, 80_000)].map(|half| {
            let mut cursor = tree.scan(half, Direction::Forward, READ_AHEAD);
            cursor.keep(kept);
            cursor
        });
        let [mut one, mut other] = workers;
        while one.next_leaf().unwrap().is_some() | other.next_leaf().unwrap().is_some() {}
        tree.end_large_scan();
        let read = storage.pool_counters().pages_read - before;
        eprintln!(
            "{read} {kept:?} {:?}",
            tree.resident_share(&KeyRange::all())
        );
        let most = leaves - frames * 8 / 10;
        assert!(
            scan < WARM_UP || read <= most,
            "{read} of {leaves}, at most {most}"
        );
    }
}

#[test]
fn a_range_that_fits_is_kept_whole() {
    let storage = open();
    let tree = tree(&storage, 4000);
    for _ in 0..WARM_UP {
        pages_of_scan(&storage, &tree, KeyRange::all());
    }
    let fits = range(10_000, 16_000);
    assert_eq!(
        tree.kept_share(std::slice::from_ref(&fits)).unwrap(),
        KeptShare::ALL
    );
    for _ in 0..2 {
        pages_of_scan(&storage, &tree, fits.clone());
    }
    let read = pages_of_scan(&storage, &tree, fits);
    assert!(read < 20, "{read} pages were read again");
}

#[test]
fn another_table_takes_the_place_of_what_is_not_scanned_any_more() {
    let storage = open();
    let (old, new) = (tree(&storage, 4000), tree(&storage, 800));
    for _ in 0..3 {
        pages_of_scan(&storage, &old, KeyRange::all());
    }
    for _ in 0..3 {
        pages_of_scan(&storage, &new, KeyRange::all());
    }
    let read = pages_of_scan(&storage, &new, KeyRange::all());
    assert!(read < 40, "{read} pages were read again");
}

#[test]
fn what_is_used_again_and_again_survives_a_scan_that_is_larger_than_the_pool() {
    let storage = open();
    let (scanned, used) = (tree(&storage, 4000), tree(&storage, 100));
    let mut value = Vec::new();
    for i in 0..1000u32 {
        used.get(&i.to_be_bytes(), &mut value).unwrap();
    }
    // Twice: the first scan is no repetition.
    for _ in 0..2 {
        // One leaf of the other tree for each of the scan.
        let read = waits_beside_scan(&storage, &scanned, &used, 1);
        assert!(read < 40, "{read} accesses waited for the disk");
    }
}

#[test]
fn a_scan_that_nobody_repeats_leaves_what_is_used_now_and_then() {
    let storage = open();
    let (scanned, used) = (tree(&storage, 8000), tree(&storage, 300));
    let mut value = Vec::new();
    for _ in 0..3 {
        for i in (0..3000u32).step_by(10) {
            used.get(&i.to_be_bytes(), &mut value).unwrap();
        }
    }
    // Each leaf of the other tree once for 2,400 leaves of the scan, more than twice the pool.
    let read = waits_beside_scan(&storage, &scanned, &used, 8);
    assert!(read < 300, "{read} of 1,000 accesses waited for the disk");
}
