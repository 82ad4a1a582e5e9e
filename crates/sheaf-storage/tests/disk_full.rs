//! A full disk: changes fail, reads go on, nothing that was committed is lost, and when there is space again everything
//! goes on by itself.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{Random, check, contents, disk, options};
use sheaf_storage::disk::simulated::{
    Fault, FaultKind, FaultyOperation, SimulatedDisk, SimulationOptions,
};
use sheaf_storage::{KeyRange, ReadAhead, Storage, StorageError, StorageOptions, Tree};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn small_log() -> StorageOptions {
    StorageOptions {
        log_limit_bytes: 4 << 20,
        ..options()
    }
}

fn open(disk: &Arc<SimulatedDisk>) -> (Arc<Storage>, Arc<Tree>) {
    let storage = Storage::open_on(disk.clone(), small_log()).unwrap();
    let tree = match storage.tree_ids().unwrap().last() {
        Some(&tree) if tree != storage.catalog_tree().id() => tree,
        _ => storage.create_tree().unwrap(),
    };
    let tree = storage.tree(tree).unwrap();
    (storage, tree)
}

/// One transaction of some changes; the model knows of it if it was committed.
fn change(
    storage: &Storage,
    tree: &Tree,
    random: &mut Random,
    model: &mut Model,
) -> Result<(), StorageError> {
    let mut after = model.clone();
    let mut transaction = storage.begin_transaction();
    for _ in 0..random.below(20) {
        let key = random.below(3_000).to_be_bytes().to_vec();
        let value = vec![random.below(256) as u8; random.below(800) as usize];
        if random.below(4) == 0 {
            tree.delete(&mut transaction, &key)?;
            after.remove(&key);
        } else if tree.update(&mut transaction, &key, &value)? {
            after.insert(key, value);
        } else {
            tree.insert(&mut transaction, &key, &value)?;
            after.insert(key, value);
        }
    }
    transaction.commit()?;
    *model = after;
    Ok(())
}

fn compare(tree: &Arc<Tree>, model: &Model) {
    let found = contents(tree, KeyRange::all(), ReadAhead::Off);
    assert!(found.iter().map(|(k, v)| (k, v)).eq(model.iter()));
}

#[test]
fn a_disk_that_is_full_for_a_while_costs_nothing_that_was_committed() {
    for seed in 0..6 {
        let (mut disk, mut random) = (disk(seed), Random(seed));
        let mut model = Model::new();
        let mut refused = 0;
        for round in 0..4 {
            let (storage, tree) = open(&disk);
            for _ in 0..100 {
                change(&storage, &tree, &mut random, &mut model).unwrap();
            }
            disk.set_capacity(disk.used_bytes() + random.below(2 << 20));
            for _ in 0..600 {
                match change(&storage, &tree, &mut random, &mut model) {
                    Ok(()) => {}
                    Err(StorageError::DiskFull { .. }) => refused += 1,
                    Err(error) => panic!("{error}"),
                }
                storage.collect_versions_step().ok();
            }
            compare(&tree, &model);
            if round % 2 == 0 {
                // Without a restart.
                disk.set_capacity(u64::MAX);
                for _ in 0..50 {
                    change(&storage, &tree, &mut random, &mut model).unwrap();
                }
                compare(&tree, &model);
                check(&tree, &model);
            }
            let after = disk.power_loss(SimulationOptions::new(seed + round));
            drop((tree, storage));
            disk = after;
            let (_storage, tree) = open(&disk);
            compare(&tree, &model);
        }
        assert!(refused > 0, "seed {seed} never filled the disk");
    }
}

#[test]
fn a_commit_that_finds_no_room_in_the_log_becomes_durable_when_there_is_some() {
    let disk = disk(1);
    let (storage, tree) = open(&disk);
    let commit = |key: &[u8]| {
        let mut transaction = storage.begin_transaction();
        tree.insert(&mut transaction, key, b"value")?;
        transaction.commit()
    };
    let mut value = Vec::new();
    commit(b"a").unwrap();
    // A file system that needs room to write what was allocated before.
    disk.inject(Fault {
        operation: FaultyOperation::Write,
        kind: FaultKind::NoSpace,
        file: "sheaf.log".into(),
        bytes: 0..u64::MAX,
        times: u32::MAX,
    });
    for key in [b"b", b"c"] {
        assert!(matches!(commit(key), Err(StorageError::DiskFull { .. })));
        let view = storage.read_view().unwrap();
        assert!(tree.get_at(&view, b"a", &mut value).unwrap());
        // Nobody is shown what a power loss would take back.
        assert!(!tree.get_at(&view, key, &mut value).unwrap());
    }
    disk.heal();
    commit(b"d").unwrap();
    let all = [b"a", b"b", b"c", b"d"];
    let view = storage.read_view().unwrap();
    for key in all {
        assert!(tree.get_at(&view, key, &mut value).unwrap());
    }
    drop(view);
    let after = disk.power_loss(SimulationOptions::new(2));
    drop(storage);
    let (_storage, tree) = open(&after);
    for key in all {
        assert!(tree.get(key, &mut value).unwrap());
    }
}
