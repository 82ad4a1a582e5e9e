//! Readers while the tree changes its shape under them.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{Random, disk, open, options};
use sheaf_storage::{Direction, KeyRange, ReadAhead, Storage, StorageOptions, Tree};

/// Keys that are divisible by this stay in the tree all the time.
const STABLE: u32 = 10;
const KEYS: u32 = 20_000;

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

fn value(i: u32) -> Vec<u8> {
    vec![i as u8; 60 + (i % 90) as usize]
}

fn with_stable_keys(storage: &Arc<Storage>) -> Arc<Tree> {
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    let mut transaction = storage.begin_transaction();
    for i in (0..KEYS).step_by(STABLE as usize) {
        tree.insert(&mut transaction, &key(i), &value(i)).unwrap();
    }
    transaction.commit().unwrap();
    tree
}

/// Fills the keys `own` of the tree and empties them again: leaves split and merge all the time.
fn churn(storage: &Storage, tree: &Tree, own: impl Fn(u32) -> bool, rounds: u64) {
    for round in 0..rounds {
        let mut random = Random(round);
        let keys: Vec<u32> = (0..KEYS).filter(|&i| i % STABLE != 0 && own(i)).collect();
        let mut transaction = storage.begin_transaction();
        for &i in &keys {
            tree.insert(&mut transaction, &key(i), &value(i)).unwrap();
        }
        if random.below(3) == 0 {
            transaction.rollback().unwrap();
            continue;
        }
        transaction.commit().unwrap();
        let mut transaction = storage.begin_transaction();
        for &i in &keys {
            assert!(tree.delete(&mut transaction, &key(i)).unwrap());
        }
        transaction.commit().unwrap();
    }
}

/// Every scan sees all stable keys, in order, and no torn entry.
fn scan(tree: &Arc<Tree>, direction: Direction) {
    let mut cursor = tree.scan(KeyRange::all(), direction, ReadAhead::Pages(8));
    let mut stable = 0;
    let mut last: Option<u32> = None;
    while let Some(leaf) = cursor.next_leaf().unwrap() {
        let mut visit = |i: usize| {
            let found =
                u32::from_be_bytes([leaf.prefix(), leaf.suffix(i)].concat().try_into().unwrap());
            assert_eq!(leaf.value(i), value(found));
            if let Some(last) = last {
                assert!(if direction == Direction::Forward {
                    found > last
                } else {
                    found < last
                });
            }
            last = Some(found);
            stable += u32::from(found % STABLE == 0);
        };
        match direction {
            Direction::Forward => (0..leaf.len()).for_each(&mut visit),
            Direction::Backward => (0..leaf.len()).rev().for_each(&mut visit),
        }
    }
    assert_eq!(stable, KEYS / STABLE);
}

fn look_up(tree: &Arc<Tree>, random: &mut Random) {
    let mut reader = tree.point_reader();
    let mut found = Vec::new();
    let start = random.below(u64::from(KEYS)) as u32;
    for i in (start..KEYS).take(500) {
        if (i - start).is_multiple_of(16) {
            let keys: Vec<_> = (i..KEYS).take(16).map(key).collect();
            reader.look_ahead(keys.iter().map(|key| &key[..]));
        }
        let expected = value(i);
        match reader.get(&key(i)).unwrap() {
            Some(value) => assert_eq!(value, expected),
            None => assert_ne!(i % STABLE, 0),
        }
        let any = random.below(u64::from(KEYS / STABLE)) as u32 * STABLE;
        assert!(tree.get(&key(any), &mut found).unwrap());
        assert_eq!(found, value(any));
    }
}

fn readers_and_writers(storage: &Arc<Storage>, writers: u32, rounds: u64) {
    let tree = with_stable_keys(storage);
    let done = AtomicBool::new(false);
    let scans = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let writing: Vec<_> = (0..writers)
            .map(|writer| {
                let tree = &tree;
                scope.spawn(move || churn(storage, tree, |i| i % writers == writer, rounds))
            })
            .collect();
        for reader in 0..3u64 {
            let (tree, done, scans) = (&tree, &done, &scans);
            scope.spawn(move || {
                let mut random = Random(reader);
                loop {
                    match reader {
                        0 => scan(tree, Direction::Forward),
                        1 => scan(tree, Direction::Backward),
                        _ => look_up(tree, &mut random),
                    }
                    scans.fetch_add(1, Ordering::Relaxed);
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        for writer in writing {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(scans.load(Ordering::Relaxed) >= 3);
    tree.purge().unwrap();
    let checked = tree.check().unwrap();
    assert_eq!(
        (checked.entries, checked.ghosts),
        (u64::from(KEYS / STABLE), 0)
    );
    storage.close().unwrap();
}

#[test]
fn readers_see_every_stable_key_while_leaves_split_and_merge() {
    readers_and_writers(&open(&disk(1)), 1, 12);
}

#[test]
fn several_writers_keep_the_tree_sound() {
    readers_and_writers(&open(&disk(2)), 3, 8);
}

#[test]
fn the_same_holds_on_files_and_in_memory() {
    for pool_bytes in [2 << 20, 64 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let options = StorageOptions {
            pool_bytes,
            background_writer: true,
            ..options()
        };
        let storage = Storage::open(folder.path(), options).unwrap();
        readers_and_writers(&storage, 2, 8);
    }
}

#[test]
fn a_directory_has_one_user_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let storage = Storage::open(folder.path(), options()).unwrap();
    let second = Storage::open(folder.path(), options()).map(|_| ());
    assert!(
        matches!(second, Err(sheaf_storage::StorageError::InUse { .. })),
        "{second:?}"
    );
    std::fs::write(storage.temp_space().directory().join("spill"), b"left over").unwrap();
    storage.close().unwrap();
    drop(storage);
    let storage = Storage::open(folder.path(), options()).unwrap();
    assert_eq!(
        std::fs::read_dir(storage.temp_space().directory())
            .unwrap()
            .count(),
        0
    );
}
