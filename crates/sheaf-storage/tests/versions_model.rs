//! Versions against a model: several transactions by turns, in one thread, on a pool that holds a part of the tree.
//! Every read through every view equals what the model has for that view, while leaves split, merge and are evicted.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use common::{Random, disk, open};
use sheaf_storage::{
    Direction, KeyRange, LeafCursor, LeafEntries, LockWait, ReadAhead, ReadView, Storage,
    StorageError, StorageOptions, Transaction, Tree,
};

type State = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u64 = 5_000;
/// Distance of the keys that a cursor goes to one after the other.
const SOUGHT_EVERY: u64 = 37;
const MOST_TRANSACTIONS: usize = 5;
const MOST_VIEWS: usize = 6;
/// So little that most versions are in the spill file most of the time.
const TINY_VERSION_BYTES: usize = 100 << 10;

/// A transaction, and what the model knows of it.
struct Writer {
    transaction: Transaction,
    /// What it changed, oldest first: the key and what was there before.
    changes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// A savepoint: the transaction's, and how many changes the model had.
    savepoint: Option<(usize, usize)>,
    /// Keys of changes that it has taken back. Their versions may be in the spill file, and lock the keys from there.
    taken_back: BTreeSet<Vec<u8>>,
}

/// A view that somebody holds, and what it must see: the committed state of its time, and the number of the writer
/// whose changes it sees too.
struct Viewer {
    view: ReadView,
    committed: State,
    own: Option<u64>,
    /// One in each direction. They live as long as the view, and may find what is sought in a leaf that they have
    /// copied before.
    cursors: [LeafCursor; 2],
}

struct Model {
    storage: Arc<Storage>,
    tree: Arc<Tree>,
    random: Random,
    /// What is there now, committed or not.
    newest: State,
    committed: State,
    writers: BTreeMap<u64, Writer>,
    begun: u64,
    viewers: Vec<Viewer>,
    spills: bool,
}

impl Model {
    fn new(seed: u64) -> Model {
        Self::on(open(&disk(seed)), seed)
    }

    /// A model beside a storage that has no room in memory for the past.
    fn spilling(seed: u64) -> Model {
        let options = StorageOptions {
            max_version_bytes: TINY_VERSION_BYTES,
            ..common::options()
        };
        let storage = Storage::open_on(disk(seed), options).unwrap();
        Model {
            spills: true,
            ..Self::on(storage, seed)
        }
    }

    fn on(storage: Arc<Storage>, seed: u64) -> Model {
        let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
        Model {
            storage,
            tree,
            random: Random(seed),
            newest: State::new(),
            committed: State::new(),
            writers: BTreeMap::new(),
            begun: 0,
            viewers: Vec::new(),
            spills: false,
        }
    }

    fn key(&mut self) -> Vec<u8> {
        (self.random.below(KEYS) as u16).to_be_bytes().to_vec()
    }

    fn value(&mut self) -> Vec<u8> {
        let longest = if self.random.below(20) == 0 {
            3_000
        } else {
            500
        };
        let length = self.random.below(longest) as usize;
        vec![self.random.below(256) as u8; length]
    }

    fn pick_writer(&mut self) -> Option<u64> {
        let count = self.writers.len() as u64;
        (count > 0).then(|| {
            let nth = self.random.below(count) as usize;
            *self.writers.keys().nth(nth).unwrap()
        })
    }

    /// Whether another transaction has changed the key and not ended.
    fn is_locked(&self, key: &[u8], own: u64) -> bool {
        let others = self.writers.iter().filter(|(id, _)| **id != own);
        others
            .flat_map(|(_, writer)| &writer.changes)
            .any(|(changed, _)| changed == key)
    }

    /// Whether another transaction that has not ended had changed the key and taken that back.
    fn may_be_locked(&self, key: &[u8], own: u64) -> bool {
        let mut others = self.writers.iter().filter(|(id, _)| **id != own);
        self.spills && others.any(|(_, writer)| writer.taken_back.contains(key))
    }

    fn begin(&mut self) {
        let mut transaction = self.storage.begin_transaction();
        transaction.set_lock_wait(LockWait::No);
        self.begun += 1;
        self.writers.insert(
            self.begun,
            Writer {
                transaction,
                changes: Vec::new(),
                savepoint: None,
                taken_back: BTreeSet::new(),
            },
        );
    }

    /// One change by a writer, refused if somebody else's change is in the way.
    fn change(&mut self, id: u64, inserts: u64) {
        let (mut key, value) = (self.key(), self.value());
        let inserts = self.random.below(100) < inserts;
        if !inserts && let Some((next, _)) = self.newest.range(key.clone()..).next() {
            key = next.clone();
        }
        let is_update = self.random.below(2) == 0;
        let is_locked = self.is_locked(&key, id);
        let may_be_locked = self.may_be_locked(&key, id);
        let before = self.newest.get(&key).cloned();
        let Some(writer) = self.writers.get_mut(&id) else {
            return;
        };
        let transaction = &mut writer.transaction;
        let result = if inserts {
            self.tree.insert(transaction, &key, &value).map(|()| true)
        } else if is_update {
            self.tree.update(transaction, &key, &value)
        } else {
            self.tree.delete(transaction, &key)
        };
        if is_locked {
            assert!(
                matches!(result, Err(StorageError::LockNotAvailable)),
                "{result:?}"
            );
            return;
        }
        if may_be_locked && matches!(result, Err(StorageError::LockNotAvailable)) {
            return;
        }
        if inserts && before.is_some() {
            assert!(
                matches!(result, Err(StorageError::DuplicateKey { .. })),
                "{result:?}"
            );
            return;
        }
        let changed = result.unwrap();
        assert_eq!(changed, inserts || before.is_some());
        if changed {
            if inserts || is_update {
                self.newest.insert(key.clone(), value);
            } else {
                self.newest.remove(&key);
            }
            writer.changes.push((key, before));
        }
    }

    /// Takes changes of the model back, newest first.
    fn undo(
        newest: &mut State,
        changes: impl DoubleEndedIterator<Item = (Vec<u8>, Option<Vec<u8>>)>,
    ) {
        for (key, before) in changes.rev() {
            match before {
                Some(value) => newest.insert(key, value),
                None => newest.remove(&key),
            };
        }
    }

    fn roll_back_to_savepoint(&mut self, id: u64) {
        let Some(writer) = self.writers.get_mut(&id) else {
            return;
        };
        match writer.savepoint {
            Some((savepoint, changes)) if changes <= writer.changes.len() => {
                writer.transaction.rollback_to(savepoint).unwrap();
                let changes: Vec<_> = writer.changes.drain(changes..).collect();
                let keys = changes.iter().map(|(key, _)| key.clone());
                writer.taken_back.extend(keys);
                Self::undo(&mut self.newest, changes.into_iter());
            }
            _ => writer.savepoint = Some((writer.transaction.savepoint(), writer.changes.len())),
        }
    }

    fn end(&mut self, id: u64, commit: bool) {
        let Some(writer) = self.writers.remove(&id) else {
            return;
        };
        if commit {
            let keys: BTreeSet<_> = writer.changes.into_iter().map(|(key, _)| key).collect();
            for key in keys {
                match self.newest.get(&key) {
                    Some(value) => self.committed.insert(key, value.clone()),
                    None => self.committed.remove(&key),
                };
            }
            writer.transaction.commit().unwrap();
        } else {
            Self::undo(&mut self.newest, writer.changes.into_iter());
            writer.transaction.rollback().unwrap();
        }
        // A view that saw the transaction's own changes is of no use without it.
        self.viewers.retain(|viewer| viewer.own != Some(id));
    }

    fn look(&mut self) {
        let own = self.pick_writer().filter(|_| self.random.below(2) == 0);
        let view = match own {
            Some(id) => self.writers[&id].transaction.read_view().unwrap(),
            None => self.storage.read_view().unwrap(),
        };
        let cursors = [Direction::Forward, Direction::Backward].map(|direction| {
            let (view, range) = (view.clone(), KeyRange::all());
            self.tree.scan_at(view, range, direction, ReadAhead::Off)
        });
        self.viewers.push(Viewer {
            cursors,
            view,
            committed: self.committed.clone(),
            own,
        });
        if self.viewers.len() > MOST_VIEWS {
            let one = self.random.below(MOST_VIEWS as u64) as usize;
            self.viewers.swap_remove(one);
        }
    }

    /// What a viewer must see.
    fn expected(&self, viewer: &Viewer) -> State {
        let mut state = viewer.committed.clone();
        let own = viewer.own.and_then(|id| self.writers.get(&id));
        for (key, _) in own.iter().flat_map(|writer| &writer.changes) {
            match self.newest.get(key) {
                Some(value) => state.insert(key.clone(), value.clone()),
                None => state.remove(key),
            };
        }
        state
    }

    fn compare(&mut self) {
        let mut viewers = std::mem::take(&mut self.viewers);
        for viewer in &mut viewers {
            let expected = self.expected(viewer);
            self.compare_view(&viewer.view, &expected);
            // Statements do not seek on in what they change themselves.
            if viewer.own.is_none() {
                self.compare_cursors(&mut viewer.cursors, &expected);
            }
        }
        self.viewers.append(&mut viewers);
        let newest = self.newest.clone();
        self.compare_view(&ReadView::newest(), &newest);
    }

    fn compare_cursors(&self, [forward, backward]: &mut [LeafCursor; 2], expected: &State) {
        // Keys in order, a few to a leaf, and then in the opposite order.
        let first = self.begun % SOUGHT_EVERY;
        let keys: Vec<u64> = (first..KEYS).step_by(SOUGHT_EVERY as usize).collect();
        let entry = |leaf: &LeafEntries, at: usize| {
            let key = [leaf.prefix(), leaf.suffix(at)].concat();
            (key, leaf.value(at).to_vec())
        };
        for &key in keys.iter().chain(keys.iter().rev()) {
            let key = (key as u16).to_be_bytes().to_vec();
            let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
            forward.seek(&key);
            let found = forward.next_leaf().unwrap().map(|leaf| entry(leaf, 0));
            assert_eq!(found, expected.range(key.clone()..).next().map(owned));
            backward.seek(&key);
            let found = backward.next_leaf().unwrap();
            let found = found.map(|leaf| entry(leaf, leaf.len() - 1));
            assert_eq!(found, expected.range(..=key).next_back().map(owned));
        }
    }

    fn compare_view(&mut self, view: &ReadView, expected: &State) {
        let mut reader = self.tree.point_reader_at(view.clone());
        let mut value = Vec::new();
        let mut keys: Vec<_> = (0..20).map(|_| self.key()).collect();
        keys.sort();
        for (position, key) in keys.iter().enumerate() {
            if position % 7 == 0 {
                reader.look_ahead(keys[position..].iter().take(7).map(Vec::as_slice));
            }
            let found = self.tree.get_at(view, key, &mut value).unwrap();
            assert_eq!(found.then_some(&value), expected.get(key), "{view:?}");
            let found = reader.get(key).unwrap();
            assert_eq!(found, expected.get(key).map(Vec::as_slice), "{view:?}");
        }
        let range = match self.random.below(3) {
            0 => KeyRange::all(),
            1 => KeyRange {
                lower: Bound::Included(keys[3].clone()),
                upper: Bound::Excluded(keys[12].clone()),
            },
            _ => KeyRange {
                lower: Bound::Excluded(keys[5].clone()),
                upper: Bound::Included(keys[6].clone()),
            },
        };
        for direction in [Direction::Forward, Direction::Backward] {
            let mut seen = Vec::new();
            let mut cursor =
                self.tree
                    .scan_at(view.clone(), range.clone(), direction, ReadAhead::Pages(8));
            while let Some(leaf) = cursor.next_leaf().unwrap() {
                let mut entries: Vec<_> = (0..leaf.len())
                    .map(|i| {
                        let key = [leaf.prefix(), leaf.suffix(i)].concat();
                        (key, leaf.value(i).to_vec())
                    })
                    .collect();
                if direction == Direction::Backward {
                    entries.reverse();
                }
                seen.append(&mut entries);
            }
            if direction == Direction::Backward {
                seen.reverse();
            }
            let expected: Vec<_> = expected
                .iter()
                .filter(|(key, _)| range.contains(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            assert!(seen == expected, "a scan of {range:?} at {view:?} differs");
        }
    }

    fn step(&mut self, inserts: u64) {
        match self.random.below(100) {
            0..3 if self.writers.len() < MOST_TRANSACTIONS => self.begin(),
            3..5 => self.look(),
            5..7 => {
                if let Some(id) = self.pick_writer() {
                    let commit = self.random.below(4) > 0;
                    self.end(id, commit);
                }
            }
            7..9 => {
                if let Some(id) = self.pick_writer() {
                    self.roll_back_to_savepoint(id);
                }
            }
            9..11 => self.storage.collect_versions_step().unwrap(),
            _ => {
                if let Some(id) = self.pick_writer() {
                    self.change(id, inserts);
                }
            }
        }
    }

    fn run(&mut self, rounds: u64) {
        for round in 0..rounds {
            // Grow, shrink, grow again: leaves split and merge under the views.
            let inserts = if (round / 15) % 2 == 0 { 75 } else { 20 };
            for _ in 0..500 {
                self.step(inserts);
            }
            self.compare();
            if self.spills {
                // A leaf's table may double when the next change is made.
                let bytes = self.storage.transaction_counters().version_bytes;
                assert!(bytes <= TINY_VERSION_BYTES as u64 * 5 / 4, "{bytes}");
            }
        }
    }

    fn finish(mut self) {
        while let Some(id) = self.pick_writer() {
            self.end(id, id % 2 == 0);
        }
        self.compare();
        self.viewers.clear();
        self.storage.collect_versions_step().unwrap();
        let counters = self.storage.transaction_counters();
        assert_eq!((counters.version_bytes, counters.row_locks), (0, 0));
        assert_eq!(counters.spilled_bytes, 0);
        assert!(!self.spills || counters.spill_read_bytes > 1 << 20);
        self.tree.purge().unwrap();
        let checked = self.tree.check().unwrap();
        assert_eq!(checked.entries, self.committed.len() as u64);
        assert_eq!(checked.ghosts, 0);
    }
}

#[test]
fn every_view_sees_what_the_model_has_for_it() {
    for seed in 1..=4 {
        let mut model = Model::new(seed);
        model.run(60);
        model.finish();
    }
}

#[test]
fn every_view_sees_the_same_when_the_past_is_spilled() {
    for seed in 1..=4 {
        let mut model = Model::spilling(seed);
        model.run(60);
        model.finish();
    }
}

#[test]
fn a_view_keeps_what_it_sees_and_nothing_else() {
    let mut model = Model::new(7);
    let update_all = |model: &mut Model, value: u8| {
        let mut transaction = model.storage.begin_transaction();
        for key in 0..1_000u16 {
            let (key, value) = (key.to_be_bytes(), [value; 100]);
            match model.tree.insert(&mut transaction, &key, &value) {
                Err(StorageError::DuplicateKey { .. }) => {
                    assert!(model.tree.update(&mut transaction, &key, &value).unwrap());
                }
                result => result.unwrap(),
            }
        }
        transaction.commit().unwrap();
        model.storage.collect_versions_step().unwrap();
    };
    update_all(&mut model, 0);
    assert_eq!(model.storage.transaction_counters().version_bytes, 0);
    let old = model.storage.read_view().unwrap();
    update_all(&mut model, 1);
    let for_one_view = model.storage.transaction_counters().version_bytes;
    assert!(for_one_view >= 1_000 * 100);
    // However often the rows change, one old state of each is kept for the one view.
    for value in 2..20 {
        update_all(&mut model, value);
    }
    let after_many = model.storage.transaction_counters().version_bytes;
    assert!(
        after_many <= for_one_view * 2,
        "{for_one_view} -> {after_many}"
    );
    let mut value = Vec::new();
    assert!(model.tree.get_at(&old, &[0, 7], &mut value).unwrap());
    assert_eq!(value, [0; 100]);
    drop(old);
    model.storage.collect_versions_step().unwrap();
    assert_eq!(model.storage.transaction_counters().version_bytes, 0);
}

/// What a cursor of the view finds in the range, by key.
fn scan(tree: &Arc<Tree>, view: &ReadView, range: KeyRange, direction: Direction) -> State {
    let mut cursor = tree.scan_at(view.clone(), range, direction, ReadAhead::Off);
    let (mut found, mut key) = (State::new(), Vec::new());
    while let Some(leaf) = cursor.next_leaf().unwrap() {
        for i in 0..leaf.len() {
            leaf.key_into(i, &mut key);
            assert_eq!(leaf.lower_bound(&key), i);
            found.insert(key.clone(), leaf.value(i).to_vec());
        }
    }
    found
}

/// Keys that move, as those of an index on a column that is updated: the leaves hold those of now, and no more of them
/// than if nobody looked back.
#[test]
fn entries_that_only_an_old_view_sees_are_not_on_the_leaves() {
    const ROWS: u32 = 4_000;
    let storage = open(&disk(9));
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    let key = |round: u32, row: u32| {
        let place = (row.wrapping_mul(2_654_435_761) >> 8).wrapping_add(round * 77_777);
        [&(place & 0x00FF_FFFF).to_be_bytes()[..], &row.to_be_bytes()].concat()
    };
    let mut transaction = storage.begin_transaction();
    for row in 0..ROWS {
        tree.insert(&mut transaction, &key(0, row), b"first")
            .unwrap();
    }
    transaction.commit().unwrap();
    let old = storage.read_view().unwrap();
    let all = || KeyRange::all();
    let first = scan(&tree, &old, all(), Direction::Forward);
    assert_eq!(first.len(), ROWS as usize);
    let mut most_leaves = 0;
    for round in 0..60 {
        for row in 0..ROWS {
            let mut transaction = storage.begin_transaction();
            assert!(tree.delete(&mut transaction, &key(round, row)).unwrap());
            tree.insert(&mut transaction, &key(round + 1, row), b"moved")
                .unwrap();
            transaction.commit().unwrap();
        }
        storage.collect_versions_step().unwrap();
        assert_eq!(tree.check().unwrap().ghosts, 0);
        most_leaves = most_leaves.max(tree.statistics().leaf_pages);
    }
    // An entry takes less than 32 bytes of a leaf, and leaves are half full at least.
    assert!(
        most_leaves <= u64::from(ROWS) * 32 * 2 / 16_384 + 1,
        "{most_leaves}"
    );
    for direction in [Direction::Forward, Direction::Backward] {
        assert_eq!(scan(&tree, &old, all(), direction), first);
        let from = key(0, 7);
        let to = first.keys().nth(3_000).unwrap().clone();
        let range = KeyRange {
            lower: Bound::Excluded(from.clone().min(to.clone())),
            upper: Bound::Included(from.max(to)),
        };
        let mut expected = first.clone();
        expected.retain(|key, _| range.contains(key));
        assert_eq!(scan(&tree, &old, range, direction), expected);
        let new = storage.read_view().unwrap();
        let moved = scan(&tree, &new, all(), direction);
        assert!(moved.len() == ROWS as usize && moved.values().all(|value| value == b"moved"));
    }
}

/// Leaves without entries are merged while a view sees what was there, but not all of them into one; when it has gone,
/// nothing is left.
#[test]
fn a_tree_shrinks_as_far_as_its_past_allows() {
    let storage = open(&disk(10));
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    let mut transaction = storage.begin_transaction();
    for i in 0..10_000u32 {
        tree.insert(&mut transaction, &i.to_be_bytes(), &[7; 200])
            .unwrap();
    }
    transaction.commit().unwrap();
    let leaves = tree.statistics().leaf_pages;
    let old = storage.read_view().unwrap();
    let before = scan(&tree, &old, KeyRange::all(), Direction::Forward);
    let mut transaction = storage.begin_transaction();
    for i in 0..10_000u32 {
        assert!(tree.delete(&mut transaction, &i.to_be_bytes()).unwrap());
    }
    transaction.commit().unwrap();
    // A long transaction leaves its ghosts to the collector.
    storage.collect_versions_step().unwrap();
    assert_eq!(tree.check().unwrap().ghosts, 0);
    let shrunk = tree.statistics().leaf_pages;
    assert!((4..leaves / 4).contains(&shrunk), "{leaves} -> {shrunk}");
    for direction in [Direction::Forward, Direction::Backward] {
        assert_eq!(scan(&tree, &old, KeyRange::all(), direction), before);
    }
    drop(old);
    // The past goes, and then the leaves that it kept.
    storage.collect_versions_step().unwrap();
    assert_eq!(storage.transaction_counters().version_bytes, 0);
    let statistics = tree.statistics();
    assert_eq!((statistics.entries, statistics.leaf_pages), (0, 1));
    tree.check().unwrap();
}

/// A leaf without entries and without a past cannot be merged with its neighbour as long as that has a large one. When
/// that has gone, somebody comes for the empty leaf, although nothing has happened there.
#[test]
fn an_empty_leaf_is_merged_when_its_neighbours_past_has_gone() {
    let storage = open(&disk(11));
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    let change = |change: &mut dyn FnMut(&mut Transaction)| {
        let mut transaction = storage.begin_transaction();
        change(&mut transaction);
        transaction.commit().unwrap();
    };
    let key = |i: u32| i.to_be_bytes();
    change(&mut |transaction| {
        for i in 0..60 {
            tree.insert(transaction, &key(i), &[0; 200]).unwrap();
        }
    });
    let mut views = Vec::new();
    for round in 1..=80 {
        views.push(storage.read_view().unwrap());
        change(&mut |transaction| {
            for i in 0..60 {
                assert!(tree.update(transaction, &key(i), &[round; 200]).unwrap());
            }
        });
    }
    change(&mut |transaction| {
        for i in 1_000..1_500 {
            tree.insert(transaction, &key(i), &[0; 200]).unwrap();
        }
    });
    change(&mut |transaction| {
        for i in 1_000..1_500 {
            assert!(tree.delete(transaction, &key(i)).unwrap());
        }
    });
    for _ in 0..3 {
        storage.collect_versions_step().unwrap();
    }
    let leaves = tree.statistics().leaf_pages;
    let with_past = storage.transaction_counters().leaves_with_versions;
    assert_eq!((tree.check().unwrap().ghosts, with_past), (0, leaves - 1));
    views.clear();
    storage.collect_versions_step().unwrap();
    assert_eq!(tree.statistics().leaf_pages, leaves - 1);
    assert_eq!(tree.statistics().entries, 60);
    tree.check().unwrap();
}

#[test]
fn a_full_version_store_refuses_changes_until_nobody_looks_back() {
    let disk = disk(8);
    let options = StorageOptions {
        max_version_bytes: 100 << 10,
        max_spill_bytes: 100 << 10,
        ..common::options()
    };
    let storage = Storage::open_on(disk, options).unwrap();
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    let old = storage.read_view().unwrap();
    let mut refused = None;
    for key in 0..20_000u16 {
        let mut transaction = storage.begin_transaction();
        let result = tree.insert(&mut transaction, &key.to_be_bytes(), &[0; 100]);
        match result {
            Ok(()) => transaction.commit().unwrap(),
            Err(StorageError::VersionStoreFull { .. }) => {
                refused = Some(key);
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    let refused = refused
        .expect("20000 versions take more than 200 KiB")
        .to_be_bytes();
    let mut value = Vec::new();
    assert!(!tree.get_at(&old, &[0, 0], &mut value).unwrap());
    assert!(!tree.get(&refused, &mut value).unwrap());
    drop(old);
    let mut transaction = storage.begin_transaction();
    tree.insert(&mut transaction, &refused, &[0; 100]).unwrap();
    transaction.commit().unwrap();
    tree.check().unwrap();
}
