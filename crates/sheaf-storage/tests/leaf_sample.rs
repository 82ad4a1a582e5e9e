//! Random leaves: every leaf has the same chance, few pages are read, and the same seed chooses the same leaves.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use common::{disk, open};
use sheaf_storage::{
    BulkBuilder, Direction, KeyRange, LeafSample, ReadAhead, Storage, Tree, TreeId,
};

/// The first keys of the leaves of a sample.
fn first_keys(sample: &mut LeafSample) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    while let Some(leaf) = sample.next_leaf().unwrap() {
        let mut key = Vec::new();
        leaf.key_into(0, &mut key);
        keys.push(key);
    }
    keys
}

fn sampled(tree: &Arc<Tree>, leaves: usize, seed: u64) -> Vec<Vec<u8>> {
    first_keys(&mut tree.sample_leaves(leaves, seed).unwrap())
}

fn all_leaves(tree: &Arc<Tree>) -> Vec<Vec<u8>> {
    let mut cursor = tree.scan(KeyRange::all(), Direction::Forward, ReadAhead::Off);
    let mut keys = Vec::new();
    while let Some(leaf) = cursor.next_leaf().unwrap() {
        let mut key = Vec::new();
        leaf.key_into(0, &mut key);
        keys.push(key);
    }
    keys
}

/// A tree of two halves. Keys that start with `a` have short separators, so that hundreds of leaves share a parent.
/// Those that start with `b` have long ones, so that a parent has a few dozen.
fn uneven_tree(storage: &Arc<Storage>) -> Arc<Tree> {
    let mut builder = BulkBuilder::new(storage).unwrap();
    let value = [7; 1500];
    for i in 0..12_000u32 {
        builder
            .append(&[b"a", &i.to_be_bytes()[..]].concat(), &value)
            .unwrap();
    }
    for i in 0..600u32 {
        for j in 0..20u32 {
            let key = [b"b", &i.to_be_bytes()[..], &[0; 600], &j.to_be_bytes()].concat();
            builder.append(&key, &value).unwrap();
        }
    }
    let id: TreeId = builder.finish().unwrap();
    storage.tree(id).unwrap()
}

/// Share of the sampled leaves, over many seeds, that are of the half `a`.
fn share_of_a(tree: &Arc<Tree>, leaves: usize, seeds: u64) -> f64 {
    let (mut of_a, mut all) = (0, 0);
    for seed in 0..seeds {
        for key in sampled(tree, leaves, seed) {
            of_a += u64::from(key[0] == b'a');
            all += 1;
        }
    }
    of_a as f64 / all as f64
}

#[test]
fn a_leaf_has_the_same_chance_whatever_its_parent_holds() {
    let disk = disk(1);
    let storage = open(&disk);
    let tree = uneven_tree(&storage);
    let leaves = all_leaves(&tree);
    let inner = tree.statistics().inner_pages;
    assert!(inner > 30, "{:?}", tree.statistics());
    let expected = leaves.iter().filter(|key| key[0] == b'a').count() as f64 / leaves.len() as f64;

    // More leaves than parents: all parents are read, and the chances are exactly equal. 100 x 100 draws: the standard
    // deviation is below 0.005.
    assert!(inner < 100);
    let share = share_of_a(&tree, 100, 100);
    assert!(
        (share - expected).abs() < 0.025,
        "{share}, expected {expected}"
    );

    // Fewer leaves than parents: parents are drawn too, and two of them have nearly all leaves of a. A descent that
    // ignores how many children a node has would find only a few hundredths of its leaves there.
    let share = share_of_a(&tree, 25, 400);
    assert!(
        (share - expected).abs() < 0.1,
        "{share}, expected {expected}"
    );
}

#[test]
fn a_sample_is_a_function_of_its_seed_and_has_each_leaf_once() {
    let disk = disk(2);
    let storage = open(&disk);
    let tree = uneven_tree(&storage);
    let first = sampled(&tree, 50, 7);
    assert_eq!(first.len(), 50);
    assert!(first.is_sorted());
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 50);
    assert_eq!(sampled(&tree, 50, 7), first);
    assert_ne!(sampled(&tree, 50, 8), first);
    let leaves: BTreeSet<_> = all_leaves(&tree).into_iter().collect();
    assert!(first.iter().all(|key| leaves.contains(key)));
}

#[test]
fn a_small_tree_is_read_as_a_whole() {
    let disk = disk(3);
    let storage = open(&disk);
    let tree = uneven_tree(&storage);
    let mut sample = tree.sample_leaves(usize::MAX, 1).unwrap();
    assert!(sample.is_complete() && sample.share() == 1.0);
    assert_eq!(first_keys(&mut sample), all_leaves(&tree));
    assert_eq!(sample.leaves(), tree.statistics().leaf_pages);

    let empty = storage.tree(storage.create_tree().unwrap()).unwrap();
    assert_eq!(sampled(&empty, 10, 1), Vec::<Vec<u8>>::new());
}

#[test]
fn a_sample_reads_few_pages() {
    let disk = disk(4);
    let storage = open(&disk);
    let tree = uneven_tree(&storage);
    storage.drop_cached_pages().unwrap();
    let before = storage.pool_counters().pages_read;
    let sample = sampled(&tree, 20, 1);
    let read = storage.pool_counters().pages_read - before;
    // Each leaf, at most as many parents, perhaps a second time on the way to the leaf, and the few nodes above them.
    assert!(sample.len() == 20 && read <= 3 * 20 + 5, "{read}");
}

#[test]
fn leaves_are_sampled_while_others_split_and_merge_them() {
    let disk = disk(5);
    let storage = open(&disk);
    let tree = uneven_tree(&storage);
    let mut sample = tree.sample_leaves(200, 3).unwrap();
    let mut delivered = 0;
    let mut next = 0u32;
    let mut last = Vec::new();
    while let Some(leaf) = sample.next_leaf().unwrap() {
        let mut key = Vec::new();
        for entry in 0..leaf.len() {
            leaf.key_into(entry, &mut key);
            assert!(key > last, "no entry comes twice");
            std::mem::swap(&mut key, &mut last);
        }
        delivered += 1;
        let mut transaction = storage.begin_transaction();
        for _ in 0..60 {
            let at = &next.to_be_bytes()[..];
            tree.insert(&mut transaction, &[b"a", at, b"x"].concat(), &[1; 900])
                .unwrap();
            tree.delete(
                &mut transaction,
                &[
                    b"b",
                    &(next / 20).to_be_bytes()[..],
                    &[0; 600],
                    &(next % 20).to_be_bytes(),
                ]
                .concat(),
            )
            .unwrap();
            next += 1;
        }
        transaction.commit().unwrap();
    }
    assert!(delivered > 50, "{delivered}");
    tree.check().unwrap();
}

#[test]
fn residency_is_told_per_range_and_per_tree_without_reading() {
    let disk = disk(6);
    let storage = open(&disk);
    let tree = uneven_tree(&storage);
    storage.drop_cached_pages().unwrap();
    let pages_read = || storage.pool_counters().pages_read;

    let before = pages_read();
    assert_eq!(tree.resident_share(&KeyRange::all()).unwrap(), 0.0);
    assert_eq!(storage.residency().get(&tree.id()), None);

    // One leaf, with the nodes above it.
    let key = [b"a", &5_000u32.to_be_bytes()[..]].concat();
    assert!(tree.get(&key, &mut Vec::new()).unwrap());
    let height = u64::from(tree.statistics().height);
    assert_eq!(pages_read() - before, height);
    let one = KeyRange::prefix(&key);
    assert_eq!(tree.resident_share(&one).unwrap(), 1.0);
    let share = tree.resident_share(&KeyRange::all()).unwrap();
    assert!(share < 0.1, "{share}");
    let resident = storage.residency()[&tree.id()];
    assert_eq!((resident.resident, resident.dirty), (height, 0));

    let mut transaction = storage.begin_transaction();
    tree.update(&mut transaction, &key, &[8; 1500]).unwrap();
    transaction.commit().unwrap();
    assert_eq!(storage.residency()[&tree.id()].dirty, 1);
    assert_eq!(pages_read() - before, height);
}
