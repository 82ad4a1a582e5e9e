//! Trees on a disk that fails: what was there stays, what fails says so, and afterwards work goes on.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Random, check, contents, disk, open, options};
use sheaf_storage::disk::simulated::{
    Fault, FaultKind, FaultyOperation, SimulatedDisk, SimulationOptions,
};
use sheaf_storage::{
    BulkBuilder, Disk, KeyRange, LockMode, LockWait, PAGE_SIZE, ReadAhead, Storage, StorageError,
    StorageOptions, Transaction, Tree,
};

const DATA_FILE: &str = "sheaf.data";

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A tree of many pages, on disk.
fn filled(storage: &Arc<Storage>, entries: u32) -> (Arc<Tree>, Model) {
    let mut builder = BulkBuilder::new(storage).unwrap();
    let mut model = Model::new();
    for i in 0..entries {
        let (key, value) = ((i * 2).to_be_bytes().to_vec(), vec![i as u8; 150]);
        builder.append(&key, &value).unwrap();
        model.insert(key, value);
    }
    (storage.tree(builder.finish().unwrap()).unwrap(), model)
}

fn fail(disk: &SimulatedDisk, operation: FaultyOperation, kind: FaultKind, times: u32) {
    disk.inject(Fault {
        operation,
        kind,
        file: DATA_FILE.into(),
        bytes: 0..u64::MAX,
        times,
    });
}

#[test]
fn a_full_disk_fails_the_statement_and_leaves_the_tree_as_it_was() {
    let disk = disk(1);
    let storage = open(&disk);
    let (tree, mut model) = filled(&storage, 10_000);
    storage.checkpoint().unwrap();
    disk.set_capacity(disk.used_bytes());

    let mut random = Random(5);
    let mut transaction = storage.begin_transaction();
    let error = loop {
        // Changes of all kinds, growing ones most of all.
        let key = (random.below(200_000) as u32).to_be_bytes();
        let result = match random.below(10) {
            0 => tree.delete(&mut transaction, &key).map(|_| ()),
            1 => tree.update(&mut transaction, &key, &[9; 600]).map(|_| ()),
            2 => tree.update(&mut transaction, &key, &[9; 10]).map(|_| ()),
            _ => match tree.insert(&mut transaction, &key, &[8; 150]) {
                Err(StorageError::DuplicateKey { .. }) => Ok(()),
                result => result,
            },
        };
        if let Err(error) = result {
            break error;
        }
    };
    assert!(matches!(error, StorageError::DiskFull { .. }), "{error}");
    transaction.rollback().unwrap();
    check(&tree, &model);
    let expected: Vec<_> = model.clone().into_iter().collect();
    assert!(contents(&tree, KeyRange::all(), ReadAhead::Off) == expected);

    // Deletes need space in the log only, which checkpoints recycle; and what they free can be used again.
    let keys: Vec<_> = model.keys().cloned().collect();
    for keys in keys.chunks(100) {
        let mut transaction = storage.begin_transaction();
        for key in keys {
            assert!(tree.delete(&mut transaction, key).unwrap());
        }
        transaction.commit().unwrap();
    }
    model.clear();
    check(&tree, &model);
    for start in (0..5_000u32).step_by(100) {
        let mut transaction = storage.begin_transaction();
        for i in start..start + 100 {
            tree.insert(&mut transaction, &i.to_be_bytes(), &[1; 150])
                .unwrap();
            model.insert(i.to_be_bytes().to_vec(), vec![1; 150]);
        }
        transaction.commit().unwrap();
    }
    check(&tree, &model);
    storage.close().unwrap();
}

#[test]
fn a_full_disk_ends_a_bulk_build_and_takes_nothing() {
    let disk = disk(2);
    let storage = open(&disk);
    let (tree, model) = filled(&storage, 1_000);
    storage.checkpoint().unwrap();
    let used = storage.used_pages();
    disk.set_capacity(disk.used_bytes() + (3 << 20));
    let mut builder = BulkBuilder::new(&storage).unwrap();
    let error = (0..)
        .find_map(|i: u32| builder.append(&i.to_be_bytes(), &[0; 500]).err())
        .unwrap();
    assert!(matches!(error, StorageError::DiskFull { .. }), "{error}");
    drop(builder);
    assert_eq!(storage.used_pages(), used);
    check(&tree, &model);
    disk.set_capacity(u64::MAX);
    let (second, second_model) = filled(&storage, 20_000);
    check(&second, &second_model);
}

#[test]
fn a_write_error_during_a_bulk_build_is_reported_and_takes_nothing() {
    let disk = disk(3);
    let storage = open(&disk);
    storage.checkpoint().unwrap();
    let used = storage.used_pages();
    fail(&disk, FaultyOperation::Write, FaultKind::IoError, u32::MAX);
    let mut builder = BulkBuilder::new(&storage).unwrap();
    let mut result = (0..20_000u32).find_map(|i| builder.append(&i.to_be_bytes(), &[0; 500]).err());
    if result.is_none() {
        result = builder.finish().err();
    } else {
        drop(builder);
    }
    assert!(
        matches!(result, Some(StorageError::Io { .. })),
        "{result:?}"
    );
    disk.heal();
    assert_eq!(storage.used_pages(), used);
    let (tree, model) = filled(&storage, 20_000);
    check(&tree, &model);
}

#[test]
fn read_errors_fail_the_change_and_nothing_else() {
    let disk = disk(4);
    let storage = open(&disk);
    let (tree, mut model) = filled(&storage, 20_000);
    let mut random = Random(4);
    for round in 0..60 {
        storage.drop_cached_pages().unwrap();
        let mut transaction = storage.begin_transaction();
        let mut failed = false;
        let before = model.clone();
        for i in 0..20 {
            if i == random.below(20) {
                fail(&disk, FaultyOperation::Read, FaultKind::IoError, 1);
            }
            let key = (random.below(40_000) as u32).to_be_bytes();
            let result = match round % 2 {
                0 => tree.delete(&mut transaction, &key).inspect(|_| {
                    model.remove(key.as_slice());
                }),
                _ => tree
                    .update(&mut transaction, &key, &[round; 300])
                    .inspect(|&updated| {
                        if updated {
                            model.insert(key.to_vec(), vec![round; 300]);
                        }
                    }),
            };
            if let Err(error) = result {
                assert!(matches!(error, StorageError::Io { .. }), "{error}");
                failed = true;
            }
        }
        disk.heal();
        if failed {
            transaction.rollback().unwrap();
            model = before;
        } else {
            transaction.commit().unwrap();
        }
        check(&tree, &model);
    }
}

#[test]
fn a_flipped_bit_names_file_page_and_tree_and_never_gives_wrong_rows() {
    let disk = disk(5);
    let storage = open(&disk);
    let (tree, model) = filled(&storage, 20_000);
    storage.drop_cached_pages().unwrap();
    let key = 20_000u32.to_be_bytes();
    let before = storage.pool_counters().pages_read;
    assert_eq!(
        tree.resident_keys(&mut [key.as_slice()].into_iter())
            .unwrap(),
        (0, 1)
    );
    assert!(
        storage.pool_counters().pages_read > before,
        "inner nodes were read"
    );

    let file = disk.open(DATA_FILE).unwrap();
    // A byte on every page of the data file that belongs to leaves of the tree: the tree's own extents.
    let length = disk.length(file).unwrap();
    for page in (length / 2 / PAGE_SIZE as u64)..length / PAGE_SIZE as u64 {
        disk.flip_stored_bit(file, page * PAGE_SIZE as u64 + 5_000, 3);
    }
    let mut cursor = tree.scan(
        KeyRange::all(),
        sheaf_storage::Direction::Forward,
        ReadAhead::Pages(16),
    );
    let mut seen = 0;
    let mut expected = model.iter();
    let error = loop {
        match cursor.next_leaf() {
            Ok(Some(leaf)) => {
                for i in 0..leaf.len() {
                    let (key, value) = expected.next().unwrap();
                    assert_eq!([leaf.prefix(), leaf.suffix(i)].concat(), *key);
                    assert_eq!(leaf.value(i), value);
                    seen += 1;
                }
            }
            Ok(None) => panic!("the damage was not noticed"),
            Err(error) => break error,
        }
    };
    assert!(seen < model.len());
    match error {
        StorageError::Corrupt {
            file, tree: named, ..
        } => {
            assert!(file.contains(DATA_FILE), "{file}");
            assert_eq!(named, tree.id());
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_file_that_was_in_use_is_recovered() {
    let first = disk(6);
    let storage = open(&first);
    let (tree, mut model) = filled(&storage, 5_000);
    storage.checkpoint().unwrap();
    contents(&tree, KeyRange::all(), ReadAhead::Off);
    let found = first.power_loss(sheaf_storage::disk::simulated::SimulationOptions::new(7));
    drop((tree, storage));

    let storage = open(&found);
    let id = storage.tree_ids().unwrap().pop().unwrap();
    check(&storage.tree(id).unwrap(), &model);
    let tree = storage.tree(id).unwrap();
    let mut committed = storage.begin_transaction();
    tree.insert(&mut committed, b"zzz", b"committed").unwrap();
    committed.commit().unwrap();
    model.insert(b"zzz".to_vec(), b"committed".to_vec());
    let mut unfinished = storage.begin_transaction();
    tree.insert(&mut unfinished, b"zzzz", b"").unwrap();
    tree.delete(&mut unfinished, &2u32.to_be_bytes()).unwrap();
    let found = found.power_loss(sheaf_storage::disk::simulated::SimulationOptions::new(8));
    drop((unfinished, tree, storage));

    let storage = open(&found);
    let tree = storage.tree(id).unwrap();
    check(&tree, &model);
    let expected: Vec<_> = model.into_iter().collect();
    assert!(contents(&tree, KeyRange::all(), ReadAhead::Off) == expected);
    storage.close().unwrap();
}

/// The log has only the parts of values that were changed; what is around them has to be there when it is their turn.
#[test]
fn changes_of_parts_of_values_are_taken_back_after_a_crash() {
    let first = disk(20);
    let storage = open(&first);
    let (tree, mut model) = filled(&storage, 500);
    let before: Vec<u8> = (0..200).collect();
    let keys = [b"part a", b"part b", b"part c"];
    let mut committed = storage.begin_transaction();
    for key in keys {
        tree.insert(&mut committed, key, &before).unwrap();
        model.insert(key.to_vec(), before.clone());
    }
    committed.commit().unwrap();
    let with = |value: &[u8], range: std::ops::Range<usize>| {
        let mut value = value.to_vec();
        value[range].fill(7);
        value
    };
    let mut unfinished = storage.begin_transaction();
    let mut update = |key: &[u8], value: &[u8]| {
        assert!(tree.update(&mut unfinished, key, value).unwrap());
    };
    // Parts that overlap, another length, the first byte, the last byte, and no change at all.
    let once = with(&before, 50..90);
    let twice = with(&once, 80..120);
    let longer = [&twice[..], &[9; 30]].concat();
    let values = [
        &once,
        &twice,
        &longer,
        &with(&longer, 0..1),
        &with(&longer, 229..230),
    ];
    for value in values {
        update(keys[0], value);
    }
    update(keys[0], values[4]);
    update(keys[1], &once);
    tree.delete(&mut unfinished, keys[1]).unwrap();
    tree.insert(&mut unfinished, keys[1], &twice).unwrap();
    assert!(
        tree.update(&mut unfinished, keys[1], &with(&twice, 3..5))
            .unwrap()
    );
    assert!(tree.update(&mut unfinished, keys[2], &once).unwrap());
    let savepoint = unfinished.savepoint();
    assert!(tree.update(&mut unfinished, keys[2], &twice).unwrap());
    unfinished.rollback_to(savepoint).unwrap();
    assert!(
        tree.update(&mut unfinished, keys[2], &with(&once, 199..200))
            .unwrap()
    );
    // So the log has them all.
    let mut other = storage.begin_transaction();
    tree.insert(&mut other, b"zzz", b"committed").unwrap();
    other.commit().unwrap();
    model.insert(b"zzz".to_vec(), b"committed".to_vec());
    let found = first.power_loss(sheaf_storage::disk::simulated::SimulationOptions::new(21));
    drop((unfinished, tree, storage));

    let storage = open(&found);
    let id = storage.tree_ids().unwrap().pop().unwrap();
    let tree = storage.tree(id).unwrap();
    check(&tree, &model);
    let expected: Vec<_> = model.into_iter().collect();
    assert!(contents(&tree, KeyRange::all(), ReadAhead::Off) == expected);
    storage.close().unwrap();
}

#[test]
fn a_statement_that_cannot_be_rolled_back_stops_all_changes() {
    let disk = disk(9);
    let storage = open(&disk);
    let (tree, _) = filled(&storage, 20_000);
    let mut transaction = storage.begin_transaction();
    tree.update(&mut transaction, &0u32.to_be_bytes(), b"changed")
        .unwrap();
    let (other, mode) = (2u32.to_be_bytes(), LockMode::Exclusive);
    transaction
        .lock_row(&tree, &other, mode, LockWait::No)
        .unwrap();
    storage.drop_cached_pages().unwrap();
    fail(&disk, FaultyOperation::Read, FaultKind::IoError, u32::MAX);
    assert!(matches!(
        transaction.rollback(),
        Err(StorageError::Io { .. })
    ));
    disk.heal();
    assert_eq!(storage.transaction_counters().row_locks, 0);
    let mut transaction = storage.begin_transaction();
    assert!(tree.insert(&mut transaction, b"new", b"").is_err());
    assert!(storage.close().is_err());
}

#[test]
fn what_could_not_be_rolled_back_neither_commits_nor_ends_before_the_next_start() {
    type End = fn(Transaction, &Tree) -> Result<(), StorageError>;
    let ends: [End; 4] = [
        |transaction, _| transaction.rollback(),
        |transaction, _| transaction.commit(),
        |mut transaction, _| {
            let taken_back = transaction.rollback_to(0);
            transaction.rollback().and(taken_back)
        },
        |mut transaction, tree| {
            tree.insert(&mut transaction, b"new", b"")?;
            transaction.commit()
        },
    ];
    for (end, loses_power) in ends.into_iter().flat_map(|end| [(end, false), (end, true)]) {
        let mut disk = disk(9);
        let storage = open(&disk);
        let (tree, model) = filled(&storage, 20_000);
        let mut transaction = storage.begin_transaction();
        for key in [0u32, 2] {
            tree.update(&mut transaction, &key.to_be_bytes(), b"changed")
                .unwrap();
        }
        let savepoint = transaction.savepoint() - 1;
        storage.drop_cached_pages().unwrap();
        fail(&disk, FaultyOperation::Read, FaultKind::IoError, u32::MAX);
        transaction.rollback_to(savepoint).unwrap_err();
        disk.heal();
        end(transaction, &tree).unwrap_err();
        if loses_power {
            disk = disk.power_loss(SimulationOptions::new(10));
        }
        drop((tree, storage));
        let storage = open(&disk);
        let id = storage.tree_ids().unwrap().pop().unwrap();
        let tree = storage.tree(id).unwrap();
        let expected: Vec<_> = model.into_iter().collect();
        assert!(contents(&tree, KeyRange::all(), ReadAhead::Off) == expected);
    }
}

#[test]
fn an_idle_storage_becomes_clean_by_itself() {
    let first = disk(10);
    let storage = open(&first);
    let (tree, model) = filled(&storage, 5_000);
    let seen = storage.checkpoint_step(None).unwrap();
    let mut transaction = storage.begin_transaction();
    tree.delete(&mut transaction, b"no such key").unwrap();
    let seen = storage.checkpoint_step(Some(seen)).unwrap();
    storage.checkpoint_step(Some(seen)).unwrap();
    transaction.commit().unwrap();
    storage.checkpoint_step(Some(seen)).unwrap();
    let found = first.power_loss(sheaf_storage::disk::simulated::SimulationOptions::new(11));
    drop((tree, storage));
    let storage = open(&found);
    let id = storage.tree_ids().unwrap().pop().unwrap();
    check(&storage.tree(id).unwrap(), &model);
}

/// One transaction that is long at work is no idleness, in which a checkpoint may take the device for itself.
#[test]
fn a_storage_with_one_long_transaction_is_not_idle() {
    let storage = open(&disk(12));
    let (tree, _) = filled(&storage, 5_000);
    storage.checkpoint().unwrap();
    let mut transaction = storage.begin_transaction();
    let mut update = |row: u32| {
        let key = (2 * row).to_be_bytes();
        assert!(tree.update(&mut transaction, &key, &[1; 150]).unwrap());
    };
    update(0);
    let mut seen = storage.checkpoint_step(None).unwrap();
    let written = storage.pool_counters().pages_written;
    for row in 1..100 {
        update(row * 40);
        seen = storage.checkpoint_step(Some(seen)).unwrap();
        assert_eq!(storage.pool_counters().pages_written, written);
    }
    storage.checkpoint_step(Some(seen)).unwrap();
    assert!(storage.pool_counters().pages_written > written);
}

/// Nothing else has happened since the last checkpoint, and yet the next start has to look for them.
#[test]
fn pages_that_were_lost_after_a_checkpoint_are_found_at_the_next_start() {
    let disk = disk(13);
    let storage = open(&disk);
    let mut builder = BulkBuilder::new(&storage).unwrap();
    // So many that there are pages above the leaves.
    for i in 0..120_000u32 {
        builder.append(&i.to_be_bytes(), &[7; 150]).unwrap();
    }
    storage.checkpoint().unwrap();
    storage.drop_cached_pages().unwrap();
    fail(&disk, FaultyOperation::Read, FaultKind::IoError, u32::MAX);
    drop(builder);
    disk.heal();
    let lost = |storage: &Storage| storage.check(|_| ()).unwrap().orphaned_pages;
    assert!(lost(&storage) > Some(0));
    storage.close().unwrap();
    drop(storage);
    assert_eq!(lost(&open(&disk)), Some(0));
}

/// What a transaction has to be taken back with lies in the log. One that nobody ends does not keep the log for ever.
#[test]
fn a_forgotten_transaction_keeps_no_more_of_the_log_than_a_limit() {
    const LIMIT: u64 = 1 << 20;
    let options = StorageOptions {
        max_pinned_log_bytes: LIMIT,
        ..options()
    };
    let storage = Storage::open_on(disk(14), options).unwrap();
    let (tree, _) = filled(&storage, 5_000);
    let ended: [Arc<AtomicU64>; 2] = Default::default();
    let mut transactions = ended.clone().map(|ended| {
        let mut transaction = storage.begin_transaction();
        transaction.on_pinned_log(Box::new(move || {
            ended.fetch_add(1, Ordering::SeqCst);
        }));
        transaction
    });
    let is_ended = |number: usize| ended[number].load(Ordering::SeqCst);
    let update = |transaction: &mut sheaf_storage::Transaction, row: u32| {
        let key = (2 * row).to_be_bytes();
        assert!(tree.update(transaction, &key, &[1; 150]).unwrap());
    };
    update(&mut transactions[0], 0);
    let first = storage.log_counters().end;
    let mut row = 10;
    while is_ended(0) == 0 {
        assert!(storage.log_counters().end < first + LIMIT + (100 << 10));
        let mut transaction = storage.begin_transaction();
        for _ in 0..100 {
            update(&mut transaction, row % 4_000 + 10);
            row += 1;
        }
        transaction.commit().unwrap();
        storage.checkpoint_step(None).unwrap();
    }
    // It is told once, and others are not.
    update(&mut transactions[1], 1);
    storage.checkpoint_step(None).unwrap();
    assert_eq!((is_ended(0), is_ended(1)), (1, 0));
    for transaction in transactions {
        transaction.rollback().unwrap();
    }
}

#[test]
fn a_data_file_without_its_log_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let storage = Storage::open(folder.path(), options()).unwrap();
    storage.close().unwrap();
    drop(storage);
    std::fs::remove_file(folder.path().join("sheaf.log")).unwrap();
    let refusal = || match Storage::open(folder.path(), options()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("a data file without a log was opened"),
    };
    let refused = refusal();
    assert!(
        refused.contains("the log (sheaf.log) that belongs to it is missing"),
        "{refused}"
    );
    // The first programs wrote no log, and another format of the data file.
    let path = folder.path().join(DATA_FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    let magic = b"SHEAF\r\n\x1a";
    let at = bytes.windows(8).position(|window| window == magic);
    bytes[at.unwrap() + 8] = 1;
    std::fs::write(&path, bytes).unwrap();
    let refused = refusal();
    assert!(
        refused.contains("version 1, and this program reads version 3: open it with the program"),
        "{refused}"
    );
}
