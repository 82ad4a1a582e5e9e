//! Maintenance in real threads, beside transactions. Trees are built, read and dropped, so that pages and frames pass
//! from one tree to another under readers without latches. Checkpoints are made, the pool is emptied, and versions are
//! spilled and collected.
//!
//! The rows are in blocks. A transaction gives all rows of a block the same contents, under a lock of the block's range
//! or of its first row. So every snapshot must see blocks of one kind, however much goes on.

mod common;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use common::{Random, options};
use sheaf_storage::{
    BulkBuilder, Direction, KeyRange, LockMode, LockWait, RangeLock, ReadAhead, Result, Storage,
    StorageError, StorageOptions, Transaction, Tree,
};

const ROWS: u32 = 4_000;
const BLOCK_ROWS: u32 = 10;
const WRITERS: u64 = 2;
const TRANSACTIONS_PER_WRITER: usize = 300;
const BLOCKS_PER_TRANSACTION: u64 = 4;
/// Rows of a tree that comes and goes.
const PASSING_ROWS: u32 = 3_000;
const LONG: LockWait = LockWait::AtMost(Duration::from_secs(3600));

#[test]
fn snapshots_are_whole_while_trees_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let with_background = StorageOptions {
        background_writer: true,
        max_version_bytes: 400 << 10,
        ..options()
    };
    let storage = Storage::open(folder.path(), with_background).unwrap();
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    let mut opening = storage.begin_transaction();
    for row in 0..ROWS {
        tree.insert(&mut opening, &row.to_be_bytes(), &[0; 100])
            .unwrap();
    }
    opening.commit().unwrap();

    let is_over = AtomicBool::new(false);
    let goes_on = || !is_over.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let over = Over(&is_over);
        let (storage, tree, goes_on) = (&storage, &tree, &goes_on);
        let writers: Vec<_> = (1..=WRITERS)
            .map(|seed| scope.spawn(move || write(storage, tree, seed)))
            .collect();
        scope.spawn(move || {
            let mut random = Random(10);
            while goes_on() {
                read(storage, tree, &mut random);
            }
        });
        scope.spawn(move || {
            while goes_on() {
                build_and_drop(storage);
            }
        });
        scope.spawn(move || {
            while goes_on() {
                storage.checkpoint().unwrap();
                storage.collect_versions_step().unwrap();
                storage.drop_cached_pages().unwrap();
                thread::sleep(Duration::from_millis(10));
            }
        });
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        drop(over);
    });
    read(&storage, &tree, &mut Random(20));
    drop(tree);
    storage.close().unwrap();
    drop(storage);
    let storage = Storage::open(folder.path(), options()).unwrap();
    let checked = storage.check(|_| ()).unwrap();
    assert!(checked.trees.iter().all(|(_, found)| found.is_ok()));
    assert_eq!(checked.orphaned_pages, Some(0));
}

/// Says that it is over when the writers are through, also if one of them has failed.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn write(storage: &Storage, tree: &Tree, seed: u64) {
    let mut random = Random(seed);
    for _ in 0..TRANSACTIONS_PER_WRITER {
        let mut transaction = storage.begin_transaction();
        transaction.set_lock_wait(LONG);
        let blocks = 1 + random.below(BLOCKS_PER_TRANSACTION);
        let result =
            (0..blocks).try_for_each(|_| change_block(&mut transaction, tree, &mut random));
        match result {
            Ok(()) if random.below(8) > 0 => transaction.commit().unwrap(),
            Ok(()) | Err(StorageError::Deadlock) => transaction.rollback().unwrap(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn change_block(transaction: &mut Transaction, tree: &Tree, random: &mut Random) -> Result<()> {
    let first = random.below(u64::from(ROWS / BLOCK_ROWS)) as u32 * BLOCK_ROWS;
    let end = first + BLOCK_ROWS;
    if random.below(2) == 0 {
        transaction.lock_row(tree, &first.to_be_bytes(), LockMode::Exclusive, LONG)?;
    } else {
        let range = KeyRange {
            lower: Bound::Included(first.to_be_bytes().to_vec()),
            upper: Bound::Excluded(end.to_be_bytes().to_vec()),
        };
        transaction.lock_range(tree, &range, RangeLock::NoChanges, LONG)?;
    }
    let byte = random.next() as u8;
    for row in first..end {
        let (key, value) = (
            row.to_be_bytes(),
            vec![byte; 50 + random.below(300) as usize],
        );
        if random.below(3) == 0 {
            assert!(tree.delete(transaction, &key)?);
            tree.insert(transaction, &key, &value)?;
        } else {
            assert!(tree.update(transaction, &key, &value)?);
        }
    }
    Ok(())
}

fn read(storage: &Storage, tree: &Arc<Tree>, random: &mut Random) {
    let view = storage.read_view().unwrap();
    let direction = match random.below(2) {
        0 => Direction::Forward,
        _ => Direction::Backward,
    };
    let mut blocks = BTreeMap::new();
    let mut rows = 0;
    let mut cursor = tree.scan_at(
        view.clone(),
        KeyRange::all(),
        direction,
        ReadAhead::Pages(8),
    );
    while let Some(leaf) = cursor.next_leaf().unwrap() {
        for i in 0..leaf.len() {
            let mut key = Vec::new();
            leaf.key_into(i, &mut key);
            let block = u32::from_be_bytes(key.try_into().unwrap()) / BLOCK_ROWS;
            let value = leaf.value(i);
            let byte = *blocks.entry(block).or_insert(value[0]);
            assert!(value.iter().all(|&other| other == byte));
            rows += 1;
        }
    }
    assert_eq!(rows, ROWS);
    let mut reader = tree.point_reader_at(view);
    for _ in 0..100 {
        let row = random.below(u64::from(ROWS)) as u32;
        let found = reader.get(&row.to_be_bytes()).unwrap();
        assert_eq!(
            found.map(|value| value[0]),
            Some(blocks[&(row / BLOCK_ROWS)])
        );
    }
    // What looks at the pages, whichever thread has changed them.
    let all = KeyRange::all();
    tree.estimate_entries(&all).unwrap();
    assert!(tree.split_points(&all, 4).unwrap().is_sorted());
    assert!((0.0..=1.0).contains(&tree.resident_share(&all).unwrap()));
    let keys: Vec<_> = (0..ROWS).step_by(50).map(u32::to_be_bytes).collect();
    tree.prefetch_keys(&mut keys.iter().map(|key| &key[..]))
        .unwrap();
    let mut sample = tree.sample_leaves(5, random.next()).unwrap();
    while let Some(leaf) = sample.next_leaf().unwrap() {
        (0..leaf.len()).for_each(|i| assert!(leaf.value(i).len() >= 50));
    }
}

/// A tree of another kind, which may get the pages of the last one, or of a leaf that was merged.
fn build_and_drop(storage: &Arc<Storage>) {
    let mut builder = BulkBuilder::new(storage).unwrap();
    for row in 0..PASSING_ROWS {
        builder.append(&row.to_be_bytes(), &[255; 200]).unwrap();
    }
    let built = builder.finish().unwrap();
    let filled = storage.create_tree().unwrap();
    let tree = storage.tree(filled).unwrap();
    let mut transaction = storage.begin_transaction();
    for row in 0..PASSING_ROWS / 10 {
        tree.insert(&mut transaction, &row.to_be_bytes(), &[254; 300])
            .unwrap();
    }
    transaction.commit().unwrap();
    drop(tree);
    for (id, rows) in [(built, PASSING_ROWS), (filled, PASSING_ROWS / 10)] {
        let checked = storage.tree(id).unwrap().check().unwrap();
        assert_eq!(checked.entries, u64::from(rows));
        storage.drop_tree(id).unwrap();
    }
}
