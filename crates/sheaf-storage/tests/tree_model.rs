//! Trees against a model: random operations on a simulated disk, with a pool so small that most pages are on disk,
//! compared with a `BTreeMap` after every few steps.

mod common;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::sync::Arc;

use common::{Random, TINY_POOL_BYTES, check, contents, contents_backward, disk, open, options};
use sheaf_storage::{
    BulkBuilder, Direction, KeyRange, MAX_KEY_BYTES, MIN_VALUE_LIMIT, ReadAhead, Storage,
    StorageError, Tree,
};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keys with shared beginnings of many lengths, so that prefixes, heads and separators all matter.
fn random_key(random: &mut Random) -> Vec<u8> {
    let mut key = match random.below(3) {
        0 => b"customer/".to_vec(),
        1 => vec![0, 0, 0, random.below(3) as u8],
        _ => Vec::new(),
    };
    key.extend_from_slice(&(random.below(2_000) as u16).to_be_bytes());
    if random.below(20) == 0 {
        key.extend(std::iter::repeat_n(b'x', random.below(900) as usize));
    }
    key
}

fn random_value(random: &mut Random) -> Vec<u8> {
    let length = if random.below(30) == 0 {
        random.below(2_500)
    } else {
        random.below(120)
    };
    vec![random.below(256) as u8; length as usize]
}

/// One random statement: several changes, then commit, rollback, or a rollback to a savepoint and commit.
fn random_statement(
    storage: &Storage,
    tree: &Tree,
    model: &mut Model,
    random: &mut Random,
    inserts: u64,
) {
    let before = model.clone();
    let mut transaction = storage.begin_transaction();
    let mut savepoint = None;
    for _ in 0..1 + random.below(60) {
        if random.below(20) == 0 {
            savepoint = Some((transaction.savepoint(), model.clone()));
        }
        let key = random_key(random);
        let value = random_value(random);
        if random.below(100) < inserts {
            let result = tree.insert(&mut transaction, &key, &value);
            match model.entry(key) {
                Entry::Occupied(_) => {
                    assert!(
                        matches!(result, Err(StorageError::DuplicateKey { .. })),
                        "{result:?}"
                    );
                }
                Entry::Vacant(place) => {
                    result.unwrap();
                    place.insert(value);
                }
            }
        } else if random.below(2) == 0 {
            // A key that exists, if the model has one from here on.
            let key = model
                .range(key.clone()..)
                .next()
                .map_or(key, |(key, _)| key.clone());
            let deleted = tree.delete(&mut transaction, &key).unwrap();
            assert_eq!(deleted, model.remove(&key).is_some());
        } else {
            let key = model
                .range(key.clone()..)
                .next()
                .map_or(key, |(key, _)| key.clone());
            let updated = tree.update(&mut transaction, &key, &value).unwrap();
            assert_eq!(updated, model.contains_key(&key));
            if updated {
                model.insert(key, value);
            }
        }
    }
    match (random.below(4), savepoint) {
        (0, _) => {
            transaction.rollback().unwrap();
            *model = before;
        }
        (1, Some((savepoint, at_savepoint))) => {
            transaction.rollback_to(savepoint).unwrap();
            transaction.commit().unwrap();
            *model = at_savepoint;
        }
        (2, _) => {
            drop(transaction);
            *model = before;
        }
        _ => transaction.commit().unwrap(),
    }
}

fn compare(tree: &Arc<Tree>, model: &Model, random: &mut Random) {
    let expected: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let read_ahead = match random.below(3) {
        0 => ReadAhead::Off,
        1 => ReadAhead::AfterMiss(20),
        _ => ReadAhead::Pages(20),
    };
    assert!(
        contents(tree, KeyRange::all(), read_ahead) == expected,
        "a forward scan differs"
    );
    assert!(
        contents_backward(tree, KeyRange::all(), read_ahead) == expected,
        "a backward scan differs"
    );

    for _ in 0..10 {
        let bound = |random: &mut Random| match random.below(3) {
            0 => Bound::Included(random_key(random)),
            1 => Bound::Excluded(random_key(random)),
            _ => Bound::Unbounded,
        };
        let range = KeyRange {
            lower: bound(random),
            upper: bound(random),
        };
        let expected: Vec<_> = model
            .iter()
            .filter(|(k, _)| range.contains(k))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        assert!(
            contents(tree, range.clone(), read_ahead) == expected,
            "{range:?}"
        );
        assert!(
            contents_backward(tree, range.clone(), read_ahead) == expected,
            "{range:?}"
        );
    }

    let (mut value, mut reader) = (Vec::new(), tree.point_reader());
    let mut keys: Vec<_> = (0..50).map(|_| random_key(random)).collect();
    keys.sort();
    for (position, key) in keys.iter().enumerate() {
        // Groups of all lengths, of which some keys are left out, and others come that nobody has told of.
        if random.below(4) == 0 {
            let group = &keys[position..];
            let group = &group[..group.len().min(random.below(20) as usize)];
            reader.look_ahead(group.iter().map(Vec::as_slice));
        }
        assert_eq!(
            tree.get(key, &mut value).unwrap().then_some(&value),
            model.get(key)
        );
        assert_eq!(reader.get(key).unwrap(), model.get(key).map(Vec::as_slice));
        let with_prefix = model
            .range(key.clone()..)
            .next()
            .map(|(k, _)| k)
            .filter(|k| k.starts_with(key));
        assert_eq!(tree.contains_prefix(key).unwrap().as_ref(), with_prefix);
    }
    let (resident, leaves) = tree
        .resident_keys(&mut keys.iter().map(Vec::as_slice))
        .unwrap();
    assert!(resident <= leaves && leaves <= keys.len());
    tree.prefetch_keys(&mut keys.iter().map(Vec::as_slice))
        .unwrap();
}

#[test]
fn random_statements_leave_what_the_model_has() {
    for seed in 1..=6 {
        let disk = disk(seed);
        let mut random = Random(seed);
        let mut storage = open(&disk);
        let id = storage.create_tree().unwrap();
        let mut model = Model::new();
        for round in 0..40 {
            let tree = storage.tree(id).unwrap();
            // Grow, then shrink, then grow again.
            let inserts = if (round / 10) % 2 == 0 { 80 } else { 25 };
            for _ in 0..12 {
                random_statement(&storage, &tree, &mut model, &mut random, inserts);
            }
            check(&tree, &model);
            compare(&tree, &model, &mut random);
            if round % 8 == 7 {
                drop(tree);
                storage.close().unwrap();
                drop(storage);
                storage = open(&disk);
                check(&storage.tree(id).unwrap(), &model);
            }
        }
        let before_drop = storage.used_pages();
        let pages = storage.tree(id).unwrap().statistics();
        storage.drop_tree(id).unwrap();
        assert_eq!(
            storage.used_pages(),
            before_drop - pages.leaf_pages - pages.inner_pages
        );
        assert!(matches!(
            storage.tree(id),
            Err(StorageError::NoSuchTree { .. })
        ));
    }
}

#[test]
fn deleting_everything_leaves_a_single_leaf() {
    let disk = disk(1);
    let storage = open(&disk);
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    let mut transaction = storage.begin_transaction();
    for i in 0..20_000u32 {
        tree.insert(&mut transaction, &i.to_be_bytes(), &[7; 40])
            .unwrap();
    }
    transaction.commit().unwrap();
    assert!(tree.statistics().height > 1 && tree.statistics().leaf_pages > 60);
    let mut transaction = storage.begin_transaction();
    for i in 0..20_000u32 {
        assert!(tree.delete(&mut transaction, &i.to_be_bytes()).unwrap());
    }
    assert_eq!(
        tree.check().unwrap().ghosts,
        20_000,
        "ghosts stay until the statement ends"
    );
    transaction.commit().unwrap();
    let statistics = tree.statistics();
    assert_eq!(
        (statistics.entries, statistics.leaf_pages, statistics.height),
        (0, 1, 1)
    );
    assert_eq!(tree.check().unwrap().ghosts, 0);
}

#[test]
fn ascending_inserts_fill_leaves() {
    let disk = disk(1);
    let storage = open(&disk);
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    let mut transaction = storage.begin_transaction();
    for i in 0..50_000u32 {
        tree.insert(&mut transaction, &i.to_be_bytes(), &[7; 86])
            .unwrap();
    }
    transaction.commit().unwrap();
    let bytes_per_entry = 100;
    let statistics = tree.statistics();
    assert!(
        statistics.leaf_pages * 16384 < 50_000 * bytes_per_entry * 105 / 100,
        "{statistics:?}"
    );
    tree.check().unwrap();
}

#[test]
fn ascending_inserts_of_any_size_split_leaves_that_are_full_to_the_last_byte() {
    let storage = open(&disk(1));
    for key_bytes in 8..48 {
        let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
        let mut transaction = storage.begin_transaction();
        for i in 0..3_000u32 {
            let mut key = format!("note{i:04}").into_bytes();
            key.resize(key_bytes, b'.');
            tree.insert(&mut transaction, &key, &vec![1; key_bytes / 3])
                .unwrap();
        }
        transaction.commit().unwrap();
        assert_eq!(tree.check().unwrap().entries, 3_000);
    }
}

#[test]
fn bulk_built_trees_equal_inserted_ones() {
    for (seed, entries) in [(1, 0), (2, 1), (3, 300), (4, 5_000), (5, 60_000)] {
        let disk = disk(seed);
        let mut random = Random(seed);
        let storage = open(&disk);
        let mut model = Model::new();
        for i in 0..entries {
            let mut key = random_key(&mut random);
            key.extend_from_slice(&(i as u32).to_be_bytes());
            model.insert(key, random_value(&mut random));
        }
        let mut builder = BulkBuilder::new(&storage).unwrap();
        for (key, value) in &model {
            builder.append(key, value).unwrap();
        }
        let id = builder.finish().unwrap();
        storage.close().unwrap();
        drop(storage);

        let storage = open(&disk);
        let tree = storage.tree(id).unwrap();
        check(&tree, &model);
        compare(&tree, &model, &mut random);
        for _ in 0..40 {
            random_statement(&storage, &tree, &mut model, &mut random, 50);
        }
        check(&tree, &model);
        compare(&tree, &model, &mut random);
    }
}

#[test]
fn a_bulk_builder_wants_ascending_keys_and_gives_its_pages_back() {
    let disk = disk(1);
    let storage = open(&disk);
    let used = storage.used_pages();
    let mut builder = BulkBuilder::new(&storage).unwrap();
    builder.append(b"b", b"").unwrap();
    assert!(matches!(
        builder.append(b"b", b""),
        Err(StorageError::DuplicateKey { .. })
    ));
    assert!(matches!(
        builder.append(b"a", b""),
        Err(StorageError::UnsortedKeys)
    ));
    assert!(matches!(
        builder.append(b"", b""),
        Err(StorageError::UnsortedKeys)
    ));
    for i in 0..40_000u32 {
        builder
            .append(&[b"c", i.to_be_bytes().as_slice()].concat(), &[1; 100])
            .unwrap();
    }
    assert!(storage.used_pages() > used);
    drop(builder);
    assert_eq!(storage.used_pages(), used);
}

#[test]
fn leaves_of_a_bulk_build_lie_in_order_on_disk() {
    let disk = disk(1);
    let storage = open(&disk);
    let mut builder = BulkBuilder::new(&storage).unwrap();
    for i in 0..40_000u32 {
        builder.append(&i.to_be_bytes(), &[1; 100]).unwrap();
    }
    let tree = storage.tree(builder.finish().unwrap()).unwrap();
    let before = storage.pool_counters();
    storage.drop_cached_pages().unwrap();
    let scanned = contents(&tree, KeyRange::all(), ReadAhead::Pages(32)).len();
    let after = storage.pool_counters();
    assert_eq!(scanned, 40_000);
    let (pages, requests) = (
        after.pages_read - before.pages_read,
        after.data_reads - before.data_reads,
    );
    assert!(pages <= tree.statistics().leaf_pages + tree.statistics().inner_pages + 1);
    assert!(
        requests * 4 <= pages,
        "{requests} requests for {pages} pages"
    );
}

#[test]
fn read_ahead_after_a_miss_begins_with_the_first_one() {
    let disk = disk(1);
    let storage = open(&disk);
    let mut builder = BulkBuilder::new(&storage).unwrap();
    for i in 0..6_000u32 {
        builder.append(&i.to_be_bytes(), &[1; 100]).unwrap();
    }
    let tree = storage.tree(builder.finish().unwrap()).unwrap();
    let scan = || {
        let before = storage.pool_counters();
        let entries = contents(&tree, KeyRange::all(), ReadAhead::AfterMiss(32)).len();
        assert_eq!(entries, 6_000);
        let after = storage.pool_counters();
        (
            after.reads - before.reads,
            after.read_ahead - before.read_ahead,
        )
    };
    storage.drop_cached_pages().unwrap();
    let (waits, ahead) = scan();
    assert!(
        waits <= 4 && ahead + 4 > tree.statistics().leaf_pages,
        "{waits} {ahead}"
    );
    assert_eq!(scan(), (0, 0));
}

#[test]
fn a_small_tree_takes_one_page() {
    let storage = open(&disk(1));
    let used = storage.used_pages();
    storage.create_tree().unwrap();
    assert_eq!(storage.used_pages(), used + 1);
}

#[test]
fn a_seek_skips_and_returns_within_the_range() {
    let storage = open(&disk(1));
    let mut builder = BulkBuilder::new(&storage).unwrap();
    for i in 0..30_000u32 {
        builder.append(&i.to_be_bytes(), b"value").unwrap();
    }
    let tree = storage.tree(builder.finish().unwrap()).unwrap();
    let key = |i: u32| i.to_be_bytes().to_vec();
    let range = KeyRange {
        lower: Bound::Included(key(100)),
        upper: Bound::Excluded(key(20_000)),
    };
    for direction in [Direction::Forward, Direction::Backward] {
        let mut cursor = tree.scan(range.clone(), direction, ReadAhead::Pages(8));
        let mut first_after_seek = |to: u32| {
            cursor.seek(&key(to));
            let mut found = Vec::new();
            let leaf = cursor.next_leaf().unwrap()?;
            leaf.key_into(
                if direction == Direction::Forward {
                    0
                } else {
                    leaf.len() - 1
                },
                &mut found,
            );
            Some(u32::from_be_bytes(found.try_into().unwrap()))
        };
        assert_eq!(first_after_seek(5_000), Some(5_000));
        assert_eq!(first_after_seek(5_001), Some(5_001));
        let (before, after) = (first_after_seek(0), first_after_seek(29_999));
        match direction {
            Direction::Forward => assert_eq!((before, after), (Some(100), None)),
            Direction::Backward => assert_eq!((before, after), (None, Some(19_999))),
        }
    }
}

#[test]
fn a_skip_leaves_out_what_lies_before_it() {
    let storage = open(&disk(1));
    let mut builder = BulkBuilder::new(&storage).unwrap();
    for i in 0..30_000u32 {
        builder.append(&i.to_be_bytes(), b"value").unwrap();
    }
    let tree = storage.tree(builder.finish().unwrap()).unwrap();
    let key = |i: u32| i.to_be_bytes().to_vec();
    let range = KeyRange {
        lower: Bound::Included(key(100)),
        upper: Bound::Excluded(key(20_000)),
    };
    let next = |cursor: &mut sheaf_storage::LeafCursor, last: bool| {
        let leaf = cursor.next_leaf().unwrap()?;
        let mut found = Vec::new();
        leaf.key_into(if last { leaf.len() - 1 } else { 0 }, &mut found);
        assert_eq!(
            leaf.lower_bound(&found),
            if last { leaf.len() - 1 } else { 0 }
        );
        Some(u32::from_be_bytes(found.try_into().unwrap()))
    };
    let mut cursor = tree.scan(range.clone(), Direction::Forward, ReadAhead::Pages(8));
    cursor.skip_to(&key(5_000));
    assert_eq!(next(&mut cursor, false), Some(5_000));
    cursor.skip_to(&key(9_000));
    cursor.skip_to(&key(7_000));
    assert_eq!(next(&mut cursor, false), Some(9_000), "it never goes back");
    let after = next(&mut cursor, false).unwrap();
    assert!(after > 9_000 && after < 10_000, "{after} is the next leaf");
    cursor.skip_to(&key(20_000));
    assert_eq!(next(&mut cursor, false), None);

    let mut cursor = tree.scan(range, Direction::Backward, ReadAhead::Pages(8));
    cursor.skip_to(&key(25_000));
    assert_eq!(next(&mut cursor, true), Some(19_999));
    cursor.skip_to(&key(5_000));
    assert_eq!(next(&mut cursor, true), Some(4_999));
    cursor.skip_to(&key(100));
    assert_eq!(next(&mut cursor, true), None);
}

#[test]
fn estimates_are_near_the_truth() {
    let storage = open(&disk(1));
    let mut builder = BulkBuilder::new(&storage).unwrap();
    for i in 0..100_000u32 {
        builder.append(&i.to_be_bytes(), &[3; 50]).unwrap();
    }
    let tree = storage.tree(builder.finish().unwrap()).unwrap();
    let key = |i: u32| i.to_be_bytes().to_vec();
    for (from, to) in [
        (0, 100_000),
        (10, 20),
        (500, 501),
        (1_000, 3_000),
        (5, 99_000),
        (70_000, 70_000),
        (0, 2),
    ] {
        let range = KeyRange {
            lower: Bound::Included(key(from)),
            upper: Bound::Excluded(key(to)),
        };
        let (estimate, truth) = (tree.estimate_entries(&range).unwrap(), u64::from(to - from));
        assert!(
            estimate.abs_diff(truth) <= truth / 50 + 1,
            "{estimate} instead of {truth} in {from}..{to}"
        );
    }
    assert_eq!(tree.estimate_entries(&KeyRange::all()).unwrap(), 100_000);

    let range = KeyRange {
        lower: Bound::Included(key(10_000)),
        upper: Bound::Excluded(key(90_000)),
    };
    let cuts = tree.split_points(&range, 4).unwrap();
    assert_eq!(cuts.len(), 3);
    for (i, cut) in cuts.iter().enumerate() {
        assert!(range.contains(cut));
        let mut padded = cut.clone();
        padded.resize(4, 0);
        let cut = u32::from_be_bytes(padded.try_into().unwrap());
        assert!(
            cut.abs_diff(10_000 + 20_000 * (i as u32 + 1)) < 2_000,
            "{cut}"
        );
    }

    storage.drop_cached_pages().unwrap();
    assert!(tree.resident_share(&KeyRange::all()).unwrap() < 0.1);
    let small = KeyRange {
        lower: Bound::Included(key(1_000)),
        upper: Bound::Excluded(key(2_000)),
    };
    contents(&tree, small.clone(), ReadAhead::Off);
    assert_eq!(tree.resident_share(&small).unwrap(), 1.0);
}

#[test]
fn a_statement_has_a_limit_and_keeps_to_it() {
    let disk = disk(1);
    let storage = Storage::open_on(
        disk,
        sheaf_storage::StorageOptions {
            max_transaction_log_bytes: 10_000,
            ..options()
        },
    )
    .unwrap();
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    let mut transaction = storage.begin_transaction();
    let refused =
        (0..10_000u32).find_map(|i| tree.insert(&mut transaction, &i.to_be_bytes(), b"").err());
    assert!(
        matches!(
            refused,
            Some(StorageError::TransactionTooLarge { limit: 10_000 })
        ),
        "{refused:?}"
    );
    transaction.rollback().unwrap();
    assert_eq!(tree.check().unwrap().entries, 0);
}

#[test]
fn too_large_entries_are_refused() {
    let storage = open(&disk(1));
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    let mut transaction = storage.begin_transaction();
    let too_long = tree.insert(&mut transaction, &[0; MAX_KEY_BYTES + 1], b"");
    assert!(matches!(
        too_long,
        Err(StorageError::KeyTooLarge {
            bytes: 4881,
            limit: 4880
        })
    ));
    let too_large = tree.insert(&mut transaction, &[0; 1000], &[0; 3001]);
    assert!(matches!(
        too_large,
        Err(StorageError::EntryTooLarge {
            bytes: 4001,
            limit: 4000
        })
    ));
    let beside_long_key = tree.insert(&mut transaction, &[0; 3072], &[0; MIN_VALUE_LIMIT + 1]);
    assert!(matches!(
        beside_long_key,
        Err(StorageError::EntryTooLarge {
            bytes: 4713,
            limit: 4712
        })
    ));
    // The largest allowed ones fit, whatever their neighbours.
    for i in 0..200u8 {
        tree.insert(&mut transaction, &[i; MAX_KEY_BYTES], &[i; MIN_VALUE_LIMIT])
            .unwrap();
        tree.insert(&mut transaction, &[i], &[i; 3999]).unwrap();
    }
    transaction.commit().unwrap();
    assert_eq!(tree.check().unwrap().entries, 400);
    let mut builder = BulkBuilder::new(&storage).unwrap();
    for i in 0..200u8 {
        builder.append(&[i], &[i; 3999]).unwrap();
        builder
            .append(&[i; MAX_KEY_BYTES], &[i; MIN_VALUE_LIMIT])
            .unwrap();
    }
    let built = storage.tree(builder.finish().unwrap()).unwrap();
    assert_eq!(built.check().unwrap().entries, 400);
    assert_eq!(storage.pool_bytes(), TINY_POOL_BYTES);
}
