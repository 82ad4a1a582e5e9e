//! Trees under every scheduling that a seeded scheduler comes up with: readers between the steps of splits and merges.
//!
//! `cargo test --release -p sheaf-storage --features simulation --test tree_simulation`
#![cfg(feature = "simulation")]

mod common;

use std::sync::Arc;

use common::{disk, explore, options};
use sheaf_storage::sync::thread;
use sheaf_storage::{Direction, KeyRange, ReadAhead, Storage, StorageOptions, Tree};

const SCHEDULES: usize = 300;
/// Four entries fill a leaf.
const VALUE_BYTES: usize = 3_900;
/// Keys that are there all the time.
const STABLE: [u8; 4] = [10, 20, 30, 40];

fn value(key: u8) -> Vec<u8> {
    vec![key; VALUE_BYTES]
}

fn with_stable_keys() -> (Arc<Storage>, Arc<Tree>) {
    let options = StorageOptions {
        pool_bytes: 1 << 20,
        ..options()
    };
    let storage = Storage::open_on(disk(1), options).unwrap();
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    let mut transaction = storage.begin_transaction();
    for key in STABLE {
        tree.insert(&mut transaction, &[key], &value(key)).unwrap();
    }
    transaction.commit().unwrap();
    (storage, tree)
}

/// Splits leaves and merges them again.
fn churn(storage: &Storage, tree: &Tree, keys: &[u8], roll_back: bool) {
    let mut transaction = storage.begin_transaction();
    for &key in keys {
        tree.insert(&mut transaction, &[key], &value(key)).unwrap();
    }
    if roll_back {
        return transaction.rollback().unwrap();
    }
    transaction.commit().unwrap();
    let mut transaction = storage.begin_transaction();
    for &key in keys {
        assert!(tree.delete(&mut transaction, &[key]).unwrap());
    }
    transaction.commit().unwrap();
}

fn finish(storage: &Storage, tree: &Tree, threads: Vec<thread::JoinHandle<()>>) {
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    tree.purge().unwrap();
    let checked = tree.check().unwrap();
    assert_eq!((checked.entries, checked.ghosts), (STABLE.len() as u64, 0));
    storage.close().unwrap();
}

#[test]
fn lookups_find_every_stable_key_while_leaves_split_and_merge() {
    explore(SCHEDULES, || {
        let (storage, tree) = with_stable_keys();
        let mut threads = Vec::new();
        let (writing, written) = (storage.clone(), tree.clone());
        threads.push(thread::spawn(move || {
            churn(&writing, &written, &[11, 12, 21, 31], false)
        }));
        let reading = tree.clone();
        threads.push(thread::spawn(move || {
            let mut found = Vec::new();
            let mut reader = reading.point_reader();
            let keys = STABLE.map(|key| [key]);
            reader.look_ahead(keys.iter().map(|key| &key[..]));
            for key in STABLE {
                assert!(reading.get(&[key], &mut found).unwrap());
                assert_eq!(found, value(key));
                assert_eq!(reader.get(&[key]).unwrap(), Some(value(key).as_slice()));
            }
        }));
        finish(&storage, &tree, threads);
    });
}

#[test]
fn scans_deliver_every_stable_key_once_while_leaves_split_and_merge() {
    for direction in [Direction::Forward, Direction::Backward] {
        let body = move || {
            let (storage, tree) = with_stable_keys();
            let mut threads = Vec::new();
            let (writing, written) = (storage.clone(), tree.clone());
            threads.push(thread::spawn(move || {
                churn(&writing, &written, &[11, 12, 21, 31], true)
            }));
            let reading = tree.clone();
            threads.push(thread::spawn(move || {
                let mut stable = Vec::new();
                let mut cursor = reading.scan(KeyRange::all(), direction, ReadAhead::Pages(4));
                while let Some(leaf) = cursor.next_leaf().unwrap() {
                    let keys = (0..leaf.len()).map(|i| {
                        let key = [leaf.prefix(), leaf.suffix(i)].concat()[0];
                        assert_eq!(leaf.value(i), value(key));
                        key
                    });
                    let keys: Vec<_> = keys.filter(|key| STABLE.contains(key)).collect();
                    match direction {
                        Direction::Forward => stable.extend(keys),
                        Direction::Backward => stable.splice(0..0, keys).for_each(drop),
                    }
                }
                assert_eq!(stable, STABLE);
            }));
            finish(&storage, &tree, threads);
        };
        shuttle::check_random(body, SCHEDULES);
    }
}

#[test]
fn writers_of_neighbouring_keys_do_not_disturb_each_other() {
    explore(SCHEDULES, || {
        let (storage, tree) = with_stable_keys();
        let threads = [[11u8, 13, 21], [12, 14, 22]]
            .into_iter()
            .enumerate()
            .map(|(writer, keys)| {
                let (storage, tree) = (storage.clone(), tree.clone());
                thread::spawn(move || churn(&storage, &tree, &keys, writer == 0))
            })
            .collect();
        finish(&storage, &tree, threads);
    });
}
