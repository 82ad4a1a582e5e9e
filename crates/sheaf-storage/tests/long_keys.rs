//! Trees of keys as long as they may be: whatever fences, separators and entries meet in a node, a split makes room.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{Random, check, contents, contents_backward, disk, open};
use sheaf_storage::disk::simulated::SimulationOptions;
use sheaf_storage::{BulkBuilder, KeyRange, MAX_KEY_BYTES, ReadAhead, Storage, Tree, value_limit};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const SEEDS: u64 = 8;

/// Long keys that differ in their first bytes or in their last ones only, so that separators are short or as long as
/// keys, and a few short ones between them.
fn random_key(random: &mut Random) -> Vec<u8> {
    let length = match random.below(8) {
        0 => random.below(40) as usize,
        1 => random.below(MAX_KEY_BYTES as u64) as usize,
        _ => MAX_KEY_BYTES - random.below(3) as usize,
    };
    let mut key = vec![random.below(12) as u8; length];
    let changed = random.below(3) as usize;
    for byte in key.iter_mut().rev().take(changed) {
        *byte = random.below(256) as u8;
    }
    key
}

fn random_value(random: &mut Random, key: &[u8]) -> Vec<u8> {
    let limit = value_limit(key.len());
    let length = match random.below(4) {
        0 => limit,
        1 => random.below(limit as u64) as usize,
        _ => random.below(30) as usize,
    };
    vec![random.below(256) as u8; length]
}

fn random_changes(storage: &Storage, tree: &Tree, model: &mut Model, random: &mut Random) {
    let before = model.clone();
    let mut transaction = storage.begin_transaction();
    for _ in 0..1 + random.below(40) {
        let key = random_key(random);
        let value = random_value(random, &key);
        if random.below(10) < 3 {
            let near = model.range(key.clone()..).next();
            let key = near.map_or(key, |(key, _)| key.clone());
            let deleted = tree.delete(&mut transaction, &key).unwrap();
            assert_eq!(deleted, model.remove(&key).is_some());
        } else if model.insert(key.clone(), value.clone()).is_some() {
            assert!(tree.update(&mut transaction, &key, &value).unwrap());
        } else {
            tree.insert(&mut transaction, &key, &value).unwrap();
        }
    }
    if random.below(4) == 0 {
        transaction.rollback().unwrap();
        *model = before;
    } else {
        transaction.commit().unwrap();
    }
}

fn compare(tree: &Arc<Tree>, model: &Model) {
    check(tree, model);
    let expected: Vec<_> = model.clone().into_iter().collect();
    assert!(contents(tree, KeyRange::all(), ReadAhead::Off) == expected);
    assert!(contents_backward(tree, KeyRange::all(), ReadAhead::Off) == expected);
    let mut value = Vec::new();
    for (key, expected) in model {
        assert!(tree.get(key, &mut value).unwrap() && value == *expected);
    }
}

#[test]
fn changes_of_long_keys_leave_what_the_model_has_and_survive_crashes() {
    for seed in 1..=SEEDS {
        let mut disk = disk(seed);
        let mut random = Random(seed);
        let mut storage = open(&disk);
        let id = storage.create_tree().unwrap();
        let mut model = Model::new();
        for round in 0..12 {
            let tree = storage.tree(id).unwrap();
            for _ in 0..8 {
                random_changes(&storage, &tree, &mut model, &mut random);
            }
            compare(&tree, &model);
            if round % 3 == 2 {
                drop(tree);
                disk = disk.power_loss(SimulationOptions::new(seed + round));
                storage = open(&disk);
                compare(&storage.tree(id).unwrap(), &model);
            }
        }
    }
}

#[test]
fn a_bulk_build_of_long_keys_equals_inserts() {
    for seed in 1..=SEEDS {
        let storage = open(&disk(seed));
        let mut random = Random(seed);
        let mut model = Model::new();
        for _ in 0..200 * seed {
            let key = random_key(&mut random);
            let value = random_value(&mut random, &key);
            model.insert(key, value);
        }
        let mut builder = BulkBuilder::new(&storage).unwrap();
        for (key, value) in &model {
            builder.append(key, value).unwrap();
        }
        let tree = storage.tree(builder.finish().unwrap()).unwrap();
        compare(&tree, &model);
        for _ in 0..20 {
            random_changes(&storage, &tree, &mut model, &mut random);
        }
        compare(&tree, &model);
    }
}

/// Keys in order that share nearly all of their bytes: each separator is as long as a key.
#[test]
fn ascending_and_descending_long_keys_make_a_low_tree() {
    const KEYS: u16 = 2_000;
    for descending in [false, true] {
        let storage = open(&disk(1));
        let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
        for i in 0..KEYS {
            let number = if descending { KEYS - i } else { i };
            let mut key = vec![7; MAX_KEY_BYTES - 2];
            key.extend_from_slice(&number.to_be_bytes());
            let mut transaction = storage.begin_transaction();
            tree.insert(&mut transaction, &key, &[1; 100]).unwrap();
            transaction.commit().unwrap();
        }
        assert_eq!(tree.check().unwrap().entries, u64::from(KEYS));
        let height = tree.statistics().height;
        // Two children for each inner node at least.
        assert!(height <= 13, "{height} levels");
    }
}
