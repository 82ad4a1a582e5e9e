//! The store as a whole: splits, merges, spilling, sweeps.

use std::ops::Range;

use proptest::prelude::*;

use super::spiller::Spared;
use super::*;
use crate::disk::simulated::{Fault, FaultKind, FaultyOperation, SimulatedDisk, SimulationOptions};
use crate::error::StorageError;
use crate::page::Lsn;
use crate::transaction::TransactionId;
use crate::transaction::snapshot::{ReadView, SnapshotRegistry};

const TREE: TreeId = TreeId(7);
const LEAF: PageId = PageId(40);
const OTHER: PageId = PageId(41);

fn store_of(budget_bytes: usize, spill_bytes: u64) -> VersionStore {
    store_on(&disk(), budget_bytes, spill_bytes)
}

fn disk() -> Arc<SimulatedDisk> {
    SimulatedDisk::new(SimulationOptions::new(1))
}

fn store_on(disk: &Arc<SimulatedDisk>, budget_bytes: usize, spill_bytes: u64) -> VersionStore {
    VersionStore::new(budget_bytes, SpillFile::new(disk.clone(), spill_bytes))
}

fn store() -> VersionStore {
    store_of(1 << 20, 1 << 20)
}

fn seen(store: &VersionStore, page: PageId, key: &[u8], view: &ReadView) -> String {
    let resolve = |table: &VersionTable| format!("{:?}", table.resolve(key, view));
    let seen = store.read_at(page, Some(key), view, resolve);
    seen.unwrap().unwrap_or_else(|| "no table".into())
}

/// Everything that can be spilled is, however often it was used.
fn spill_all(store: &VersionStore) {
    spill_all_for(store, &SnapshotRegistry::new(Lsn(1)).live());
}

/// As [`spill_all`], with these snapshots in use.
fn spill_all_for(store: &VersionStore, live: &LiveSnapshots) {
    let mut hand = store.hand.lock();
    loop {
        let candidates = store.gather(&mut hand, usize::MAX, Spared::Hot);
        if candidates.is_empty() || store.spill(candidates, live).unwrap() == 0 {
            return;
        }
    }
}

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

/// So many versions of keys on a leaf, by one writer: each key was the number's bytes, repeated.
fn push_many(store: &VersionStore, page: PageId, keys: Range<u32>, writer: &Arc<StatusCell>) {
    for i in keys {
        let value = value_of(i);
        store.push(page, TREE, &key(i), writer, Before::Value(&value), false);
    }
}

fn value_of(i: u32) -> Vec<u8> {
    key(i).repeat(10)
}

fn value(i: u32) -> String {
    format!("{:?}", Seen::Value(&value_of(i)))
}

#[test]
fn versions_follow_their_entries_through_splits_and_merges() {
    let store = store();
    let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
    let view = ReadView::take(&registry, None).unwrap();
    let writer = StatusCell::new(TransactionId(1));
    for key in [b"a", b"m", b"z"] {
        store.push(LEAF, TREE, key, &writer, Before::Value(key), false);
    }
    store.split(LEAF, OTHER, b"m", b"");
    assert_eq!(seen(&store, LEAF, b"a", &view), "Value([97])");
    assert_eq!(seen(&store, LEAF, b"m", &view), "Page");
    assert_eq!(seen(&store, OTHER, b"m", &view), "Value([109])");
    assert_eq!(store.leaves(), 2);
    store.move_all(OTHER, LEAF);
    assert_eq!(seen(&store, OTHER, b"m", &view), "no table");
    assert_eq!(seen(&store, LEAF, b"z", &view), "Value([122])");
}

#[test]
fn spilled_versions_follow_their_entries_too() {
    let store = store();
    let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
    let view = ReadView::take(&registry, None).unwrap();
    let writer = StatusCell::new(TransactionId(1));
    push_many(&store, LEAF, 0..100, &writer);
    let in_memory = store.memory_bytes();
    spill_all(&store);
    assert!(store.memory_bytes() * 4 < in_memory);
    assert!(store.spill_file.used_bytes() > 0);
    push_many(&store, LEAF, 50..150, &writer);
    store.split(LEAF, OTHER, &key(70), b"");
    spill_all(&store);
    store.split(LEAF, PageId(42), &key(30), b"");
    for (page, keys) in [(LEAF, 0..30), (PageId(42), 30..70), (OTHER, 70..150)] {
        for i in keys {
            assert_eq!(seen(&store, page, &key(i), &view), value(i));
        }
    }
    assert_eq!(seen(&store, LEAF, &key(30), &view), "Page");
    store.move_all(OTHER, PageId(42));
    store.move_all(PageId(42), LEAF);
    for i in 0..150 {
        assert_eq!(seen(&store, LEAF, &key(i), &view), value(i));
    }
    // All of it can be read back, and counts changes of before and after the spilling.
    spill_all(&store);
    store.bring_back(LEAF).unwrap();
    for _ in 0..2 {
        (50..100).for_each(|i| store.pop(LEAF, &key(i), &writer, false));
    }
    assert_eq!(seen(&store, LEAF, &key(60), &view), "Page");
    assert_eq!(seen(&store, LEAF, &key(40), &view), value(40));
    store.forget_tree(TREE);
    let all = (
        store.memory_bytes(),
        store.leaves(),
        store.spill_file.used_bytes(),
    );
    assert_eq!(all, (0, 0, 0));
}

#[test]
fn what_nobody_needs_is_dropped_from_the_spill_file_unread() {
    let store = store();
    let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
    let old = ReadView::take(&registry, None).unwrap();
    let [committed, rolled_back] = [1, 2].map(|id| StatusCell::new(TransactionId(id)));
    push_many(&store, LEAF, 0..100, &committed);
    push_many(&store, OTHER, 0..100, &rolled_back);
    spill_all(&store);
    committed.commit(Lsn(5));
    rolled_back.roll_back();
    registry.advance_to(Lsn(5));
    store.sweep(&registry.live(), |_| {});
    assert_eq!(store.leaves(), 1, "what was rolled back is gone");
    assert_eq!(seen(&store, LEAF, &key(7), &old), value(7));
    spill_all(&store);
    let read = store.spill_file.read_bytes();
    drop(old);
    store.sweep(&registry.live(), |_| {});
    let left = (store.leaves(), store.spill_file.used_bytes());
    assert_eq!(left, (0, 0));
    assert_eq!(store.spill_file.read_bytes(), read);
}

#[test]
fn the_writer_of_a_key_is_known_or_can_be_found_out() {
    let store = store();
    let [own, other, ended] = [1, 2, 3].map(|id| StatusCell::new(TransactionId(id)));
    push_many(&store, LEAF, 0..50, &own);
    push_many(&store, LEAF, 50..100, &ended);
    ended.commit(Lsn(3));
    spill_all(&store);
    let newest = |i: u32, asks| store.newest_writer(LEAF, &key(i), asks);
    assert!(matches!(newest(1, &own), NewestWriter::OwnOrEnded));
    assert!(matches!(newest(1, &other), NewestWriter::Unknown));
    // The filter knows nothing of most other keys.
    let unknown = (1_000..2_000).filter(|&i| !matches!(newest(i, &other), NewestWriter::Ended));
    assert!(unknown.count() < 100);
    store.bring_back(LEAF).unwrap();
    assert!(matches!(newest(1, &own), NewestWriter::Own));
    assert!(matches!(newest(1, &other), NewestWriter::Other));
    assert!(matches!(newest(51, &other), NewestWriter::Ended));
}

#[test]
fn a_sweep_gives_all_memory_back_and_names_leaves_with_garbage() {
    let store = store();
    let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
    let writer = StatusCell::new(TransactionId(1));
    store.push(LEAF, TREE, b"a", &writer, Before::Value(b"row"), true);
    store.push(OTHER, TREE, b"b", &writer, Before::Absent, false);
    let mut emptied = Vec::new();
    assert!(
        store
            .sweep(&registry.live(), |page| emptied.push(page))
            .is_empty()
    );
    assert!(emptied.is_empty() && store.memory_bytes() > 0);

    writer.commit(Lsn(5));
    registry.advance_to(Lsn(5));
    let hints = store.sweep(&registry.live(), |page| emptied.push(page));
    emptied.sort();
    assert_eq!(emptied, [LEAF, OTHER]);
    assert_eq!((store.memory_bytes(), store.leaves()), (0, 0));
    let key = b"a".to_vec();
    assert_eq!(hints, [GarbageHint { tree: TREE, key }]);
}

#[test]
fn a_past_is_settled_for_readers_that_see_all_of_its_writers() {
    let store = store();
    let settles = |page, snapshot| {
        let mut is_marked = false;
        let sees_all = store.settle(page, Lsn(snapshot), || is_marked = true);
        assert_eq!(sees_all, is_marked);
        sees_all
    };
    let horizon = || store.settled_horizon().0;
    let [first, second, third] = [1, 2, 3].map(|id| StatusCell::new(TransactionId(id)));
    push_many(&store, LEAF, 0..10, &first);
    push_many(&store, OTHER, 0..10, &second);
    assert!(!settles(LEAF, 9) && !settles(OTHER, 9) && !settles(PageId(42), 9));
    first.commit(Lsn(5));
    assert!(!settles(LEAF, 4) && !settles(OTHER, 9));
    assert!(settles(LEAF, 7) && horizon() == 5);
    second.commit(Lsn(8));
    assert!(!settles(OTHER, 7) && settles(OTHER, 20) && horizon() == 8);
    // Also what is spilled, and writers that undo changes.
    spill_all(&store);
    push_many(&store, LEAF, 5..6, &third);
    assert!(!settles(LEAF, 20) && settles(OTHER, 20));
    store.pop(LEAF, &key(5), &third, false);
    third.roll_back();
    assert!(!settles(LEAF, 4) && settles(LEAF, 5) && horizon() == 8);
    assert_eq!(store.spill_file.read_bytes(), 0);
}

#[test]
fn garbage_is_remembered_when_leaves_split_and_merge_and_changes_are_taken_back() {
    let store = store();
    let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
    let writer = StatusCell::new(TransactionId(1));
    store.push(LEAF, TREE, b"m", &writer, Before::Value(b"row"), true);
    writer.commit(Lsn(5));
    registry.advance_to(Lsn(5));
    // A change purges the leaf, and the leaf is split before the collector comes.
    assert!(!store.purge_leaf(LEAF, &registry.live()));
    store.split(LEAF, OTHER, b"k", b"a");
    let keys = |hints: Vec<GarbageHint>| hints.into_iter().map(|hint| hint.key).collect();
    let mut found: Vec<Vec<u8>> = keys(store.sweep(&registry.live(), |_| {}));
    found.sort();
    assert_eq!(found, [b"a", b"k"]);

    // A ghost is made an entry and a ghost again, and then its leaf is merged into another.
    let writer = StatusCell::new(TransactionId(2));
    store.push(OTHER, TREE, b"z", &writer, Before::Absent, false);
    store.pop(OTHER, b"z", &writer, true);
    store.move_all(OTHER, LEAF);
    let found: Vec<Vec<u8>> = keys(store.sweep(&registry.live(), |_| {}));
    assert_eq!(found, [b"z"]);
    assert_eq!((store.memory_bytes(), store.leaves()), (0, 0));
}

/// A transaction has left garbage on a leaf, on which another one, which has not ended, has deleted an entry as well.
#[test]
fn the_collector_comes_again_when_the_last_deleter_has_ended() {
    let store = store();
    let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
    let _old = ReadView::take(&registry, None).unwrap();
    let [active, undone] = [1, 2].map(|id| StatusCell::new(TransactionId(id)));
    store.push(LEAF, TREE, b"a", &active, Before::Value(b"row"), true);
    store.push(LEAF, TREE, b"b", &undone, Before::Absent, false);
    store.pop(LEAF, b"b", &undone, true);
    undone.roll_back();
    let hints = || store.sweep(&registry.live(), |_| {}).len();
    assert_eq!([hints(), hints()], [1, 0]);
    active.commit(Lsn(5));
    registry.advance_to(Lsn(5));
    assert_eq!([hints(), hints()], [1, 0]);
}

/// A leaf whose past is larger than a piece of the file is spilled in several, and does not keep others from it.
#[test]
fn a_leaf_may_have_more_versions_than_a_piece_holds() {
    let (budget, keys) = (2_000_000, 6_000);
    let store = store_of(budget, 100 << 20);
    let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
    let writers: Vec<_> = (1..8)
        .map(|id| StatusCell::new(TransactionId(id)))
        .collect();
    // The versions of one key, and of many, are divided.
    for writer in &writers {
        push_many(&store, LEAF, 0..keys, writer);
    }
    let long_value = |i: u32| value_of(i).repeat(8);
    for i in 100..5_000 {
        let writer = StatusCell::new(TransactionId(i.into()));
        let before = long_value(i);
        store.push(OTHER, TREE, b"k", &writer, Before::Value(&before), false);
    }
    spill_all(&store);
    assert!(store.memory_bytes() < budget);
    let view = ReadView::take(&registry, None).unwrap();
    for page in 100..300 {
        store.make_room(|| Arc::new(registry.live())).unwrap();
        push_many(&store, PageId(page), 0..200, &writers[0]);
        assert!(store.memory_bytes() <= budget);
    }
    for page in 100..300 {
        assert_eq!(seen(&store, PageId(page), &key(7), &view), value(7));
    }
    for i in (0..keys).step_by(500) {
        assert_eq!(seen(&store, LEAF, &key(i), &view), value(i));
    }
    let oldest = format!("{:?}", Seen::Value(&long_value(100)));
    assert_eq!(seen(&store, OTHER, b"k", &view), oldest);
}

#[test]
fn spilled_tables_are_joined_without_what_nobody_needs() {
    const WRITERS: u64 = 40;
    let store = store_of(1 << 20, 10 << 20);
    let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
    let old = ReadView::take(&registry, None).unwrap();
    for id in 1..=WRITERS {
        let writer = StatusCell::new(TransactionId(id));
        let keys = 100 * u32::try_from(id).unwrap();
        push_many(&store, LEAF, 0..100, &writer);
        push_many(&store, OTHER, keys..keys + 100, &writer);
        writer.commit(Lsn(10 * id));
        registry.advance_to(Lsn(10 * id));
        spill_all_for(&store, &registry.live());
    }
    // Of the one leaf the old snapshot needs the first version of each key alone; of the other it needs all.
    let parts = |page: PageId| store.shard(page).read().leaves[&page].parts.len();
    assert!(parts(LEAF) <= 8 && parts(OTHER) <= 8);
    assert!(store.spill_file.used_bytes() < 2 * WRITERS * 100 * 60);
    for i in 0..100 {
        assert_eq!(seen(&store, LEAF, &key(i), &old), value(i));
    }
    for i in 100..4_100 {
        assert_eq!(seen(&store, OTHER, &key(i), &old), value(i));
    }
}

/// What was spilled is divided among the leaves of a split, or each of them would be too large for ever.
#[test]
fn a_large_past_is_no_longer_large_when_its_leaf_is_split() {
    let store = store_of(1 << 20, 10 << 20);
    let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
    let _old = ReadView::take(&registry, None).unwrap();
    let writer = StatusCell::new(TransactionId(1));
    push_many(&store, LEAF, 0..5_000, &writer);
    spill_all(&store);
    let is_large = |page| store.have_large_past(&[page]);
    assert!(is_large(LEAF));
    store.split(LEAF, OTHER, &key(2_500), b"");
    assert!(!is_large(LEAF) && !is_large(OTHER));
    store.move_all(OTHER, LEAF);
    assert!(is_large(LEAF));
}

/// A leaf that waits beside a large past is told when some of that has gone, also by a split, and once.
#[test]
fn a_large_past_tells_its_neighbours_when_it_goes() {
    let store = store();
    let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
    let told = |store: &VersionStore| -> Vec<Vec<u8>> {
        let hints = store.sweep(&registry.live(), |_| {});
        hints.into_iter().map(|hint| hint.key).collect()
    };
    let held = ReadView::take(&registry, None).unwrap();
    let writer = StatusCell::new(TransactionId(1));
    push_many(&store, LEAF, 100..200, &writer);
    for neighbour in [50, 300, 50] {
        store.note_unmerged(LEAF, &key(neighbour));
    }
    assert!(told(&store).is_empty());
    store.split(LEAF, OTHER, &key(150), b"");
    let mut both = told(&store);
    both.sort();
    assert_eq!(both, [key(50), key(300)]);
    assert!(told(&store).is_empty());
    store.note_unmerged(OTHER, &key(300));
    // They move along.
    store.move_all(OTHER, LEAF);
    assert!(told(&store).is_empty());
    writer.commit(Lsn(5));
    registry.advance_to(Lsn(5));
    assert!(told(&store).is_empty());
    drop(held);
    assert_eq!(told(&store), [key(300)]);
    assert_eq!(store.memory_bytes(), 0);
    // A leaf without a past notes nothing.
    store.note_unmerged(LEAF, &key(50));
    assert!(told(&store).is_empty());
}

/// The caller has pages latched: the past goes when the leaf is changed, or in a sweep.
#[test]
fn whether_a_past_is_large_is_told_without_a_purge() {
    let store = store();
    let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
    let writer = StatusCell::new(TransactionId(1));
    push_many(&store, LEAF, 0..5_000, &writer);
    writer.commit(Lsn(5));
    registry.advance_to(Lsn(5));
    let bytes = store.memory_bytes();
    assert!(store.have_large_past(&[LEAF]) && store.have_large_past(&[LEAF, OTHER]));
    assert_eq!(store.memory_bytes(), bytes);
    store.purge_grown(LEAF, || Arc::new(registry.live()));
    assert!(!store.have_large_past(&[LEAF, OTHER]));
}

/// A purge comes between, of which the spiller is not told.
#[test]
fn tables_are_joined_although_a_purge_drops_some_of_them_meanwhile() {
    let store = store();
    let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
    let writers: Vec<_> = (1..6)
        .map(|id| StatusCell::new(TransactionId(id)))
        .collect();
    for (writer, first) in writers.iter().zip((0..).step_by(100)) {
        let spilled = store
            .shard(LEAF)
            .read()
            .leaves
            .get(&LEAF)
            .map_or(0, |l| l.parts.len());
        push_many(&store, LEAF, first..first + 100, writer);
        if spilled < 4 {
            spill_all(&store);
        }
    }
    for (writer, lsn) in writers[1..4].iter().zip(5..) {
        writer.commit(Lsn(lsn));
    }
    registry.advance_to(Lsn(9));
    let candidates = store.gather(&mut store.hand.lock(), usize::MAX, Spared::Hot);
    assert!(store.purge_leaf(LEAF, &registry.live()));
    assert_eq!(store.shard(LEAF).read().leaves[&LEAF].parts.len(), 1);
    assert_eq!(store.spill(candidates, &registry.live()).unwrap(), 1);
    let view = ReadView::take(&registry, None).unwrap();
    for i in [7, 407] {
        assert_eq!(seen(&store, LEAF, &key(i), &view), value(i));
    }
}

#[test]
fn a_spilled_table_that_cannot_be_read_disturbs_its_readers_alone() {
    let disk = disk();
    let store = store_on(&disk, 200_000, 10 << 20);
    let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
    let writers: Vec<_> = (1..10)
        .map(|id| StatusCell::new(TransactionId(id)))
        .collect();
    for writer in &writers[1..5] {
        push_many(&store, LEAF, 0..100, writer);
        spill_all(&store);
    }
    disk.inject(Fault {
        operation: FaultyOperation::Read,
        kind: FaultKind::IoError,
        file: "temp/sheaf.spill".into(),
        bytes: 0..u64::MAX,
        times: u32::MAX,
    });
    push_many(&store, LEAF, 0..100, &writers[5]);
    for page in 100..200 {
        store.make_room(|| Arc::new(registry.live())).unwrap();
        push_many(&store, PageId(page), 0..60, &writers[0]);
    }
    assert!(store.shard(LEAF).read().leaves[&LEAF].table().is_empty());
    let view = ReadView::take(&registry, None).unwrap();
    let read = |page| store.read(page, None, |_| true, |_| ());
    assert!(read(LEAF).is_err());
    disk.heal();
    assert!(read(LEAF).is_ok());
    assert_eq!(seen(&store, LEAF, &key(7), &view), value(7));
}

/// What does not fit in the file does not keep from it what does.
#[test]
fn the_last_room_of_the_file_is_used() {
    let store = store_of(1_000_000, 100_000);
    let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
    let writer = StatusCell::new(TransactionId(1));
    push_many(&store, LEAF, 0..10_000, &writer);
    push_many(&store, OTHER, 0..1_000, &writer);
    let candidates = store.gather(&mut store.hand.lock(), usize::MAX, Spared::Hot);
    assert_eq!(store.spill(candidates, &registry.live()).unwrap(), 1);
    assert!(store.shard(OTHER).read().leaves[&OTHER].table().is_empty());
    assert!(!store.shard(LEAF).read().leaves[&LEAF].table().is_empty());
    let view = ReadView::take(&registry, None).unwrap();
    assert_eq!(seen(&store, OTHER, &key(7), &view), value(7));
}

#[test]
fn the_budget_is_kept_by_spilling_and_then_it_is_a_limit() {
    let (budget, spill) = (200_000, 1_000_000);
    let store = store_of(budget, spill);
    let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
    let writer = StatusCell::new(TransactionId(1));
    let mut pages = 0;
    let error = loop {
        if let Err(error) = store.make_room(|| Arc::new(registry.live())) {
            break error;
        }
        push_many(&store, PageId(pages), 0..60, &writer);
        pages += 1;
        assert!(store.memory_bytes() <= budget);
    };
    assert!(matches!(error, StorageError::VersionStoreFull { .. }));
    assert!(pages as usize * 60 * 44 > 2 * budget, "{pages} leaves");
    assert!(store.spill_file.used_bytes() > spill / 2);
    let view = ReadView::take(&registry, None).unwrap();
    for page in 0..pages {
        assert_eq!(seen(&store, PageId(page), &key(7), &view), value(7));
    }
    assert!(store.memory_bytes() <= budget);
    writer.roll_back();
    store.make_room(|| Arc::new(registry.live())).unwrap();
    assert_eq!(
        (store.memory_bytes(), store.spill_file.used_bytes()),
        (0, 0)
    );
}

/// Keys that begin alike: few bytes, many of them zero, behind one of a few beginnings.
fn similar_key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![2 => Just(0u8), 1 => Just(1), 1 => Just(255)];
    let rest = prop::collection::vec(byte, 0..7);
    let start = prop_oneof![9 => Just("order:00"), 1 => Just("order"), 1 => Just("")];
    (start, rest).prop_map(|(start, rest)| [start.as_bytes(), &rest].concat())
}

/// What may happen to a table.
#[derive(Clone, Copy, Debug)]
enum Event {
    Push,
    Pop,
    Commit,
    Purge,
    SplitAndJoin,
    DropUpper,
    Spill,
    ReadBack,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => Just(Event::Push),
        4 => Just(Event::Pop),
        1 => Just(Event::Commit),
        1 => Just(Event::Purge),
        1 => Just(Event::SplitAndJoin),
        1 => Just(Event::DropUpper),
        1 => Just(Event::Spill),
        1 => Just(Event::ReadBack),
    ]
}

proptest! {
    /// Each search in a table finds what going through its keys finds, whatever has happened to the table.
    #[test]
    fn a_search_in_a_table_finds_what_going_through_its_keys_finds(
        keys in prop::collection::vec(similar_key(), 12),
        events in prop::collection::vec((event(), 0..12usize, 0..3usize), 1..80),
    ) {
        let registry = Arc::new(SnapshotRegistry::new(Lsn(1)));
        let _old = ReadView::take(&registry, None).unwrap();
        let mut writers: Vec<_> = (1..4).map(|id| StatusCell::new(TransactionId(id))).collect();
        let mut spilled: Option<VersionTable> = None;
        let mut table = VersionTable::default();
        for (i, (event, key, writer)) in events.into_iter().enumerate() {
            let key = &keys[key];
            match event {
                Event::Push => table.push(key, &writers[writer], Before::Value(key)),
                Event::Pop => {
                    if !table.pop(key, &writers[writer]) && spilled.is_some() {
                        table.pop_spilled(key, &writers[writer]);
                    }
                }
                Event::Commit => {
                    let at = Lsn(i as u64 + 2);
                    let next = StatusCell::new(TransactionId(at.0 + 4));
                    std::mem::replace(&mut writers[writer], next).commit(at);
                    registry.advance_to(at);
                }
                Event::Purge => {
                    table.purge(&registry.live());
                }
                Event::SplitAndJoin => {
                    let upper = table.split_off(key);
                    prop_assert!(upper.keys().all(|other| other >= key.as_slice()));
                    table.join(&upper);
                }
                Event::DropUpper => drop(table.split_off(key)),
                Event::Spill => {
                    if spilled.is_none() {
                        let encoded = table.encode();
                        spilled = VersionTable::decode(&encoded, table.writers());
                        prop_assert!(spilled.is_some());
                        table = VersionTable::default();
                    }
                }
                Event::ReadBack => {
                    if let Some(older) = spilled.take() {
                        table.add_older(&older, None, Some(key));
                    }
                }
            }
            prop_assert!(table.keys().is_sorted());
            for table in [Some(&table), spilled.as_ref()].into_iter().flatten() {
                for key in &keys {
                    let less = table.keys().filter(|&other| other < key.as_slice());
                    prop_assert_eq!(table.lower_bound(key), less.count());
                }
            }
        }
    }
}
