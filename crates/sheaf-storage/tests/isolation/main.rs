//! Isolation: the anomalies of Berenson et al. ("A Critique of ANSI SQL Isolation Levels", 1995) and of the Hermitage
//! suite (github.com/ept/hermitage), as transcripts of what two or three transactions do by turns.
//!
//! The levels differ in how a transaction reads:
//!
//! | level | a plain read |
//! |---|---|
//! | READ COMMITTED | a new snapshot for each statement |
//! | REPEATABLE READ | one snapshot, taken by the first read |
//! | SERIALIZABLE | locks what it reads against changes, then reads what is there |
//!
//! Writes are the same at all levels: they work on the newest version, and wait for the transaction that has changed
//! it. A wait shows here as an error, because everybody is told not to wait; where two must wait for each other, one
//! does so in a thread.

#[path = "../common/mod.rs"]
mod common;

mod unfinished_commits;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::{disk, open, options};
use sheaf_storage::disk::simulated::SimulatedDisk;
use sheaf_storage::{
    Direction, KeyRange, LockMode, LockWait, RangeLock, ReadAhead, ReadView, Result, Storage,
    StorageError, StorageOptions, Transaction, Tree,
};

use Level::{ReadCommitted, RepeatableRead, Serializable};

const LONG: LockWait = LockWait::AtMost(Duration::from_secs(3600));

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// A table of numbers under numbers, with 1 -> 10 and 2 -> 20.
struct Table {
    storage: Arc<Storage>,
    tree: Arc<Tree>,
}

impl Table {
    fn new() -> Table {
        Table::on(&disk(1))
    }

    fn on(disk: &Arc<SimulatedDisk>) -> Table {
        let storage = open(disk);
        let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
        let table = Table { storage, tree };
        let mut setup = table.begin(ReadCommitted);
        setup.insert(1, 10).unwrap();
        setup.insert(2, 20).unwrap();
        setup.commit();
        table
    }

    fn begin(&self, level: Level) -> Session<'_> {
        let mut transaction = self.storage.begin_transaction();
        transaction.set_lock_wait(LockWait::No);
        Session {
            table: self,
            level,
            transaction,
            view: None,
            wait: LockWait::No,
        }
    }

    /// What a transaction reads that begins now.
    fn committed(&self) -> Vec<(u8, u8)> {
        self.begin(ReadCommitted).scan().unwrap()
    }
}

/// A transaction and the way it reads.
struct Session<'t> {
    table: &'t Table,
    level: Level,
    transaction: Transaction,
    view: Option<ReadView>,
    wait: LockWait,
}

impl Session<'_> {
    /// The view of the next plain read.
    fn view(&mut self) -> ReadView {
        match self.level {
            ReadCommitted => self.transaction.read_view().unwrap(),
            RepeatableRead => {
                let transaction = &self.transaction;
                let view = self
                    .view
                    .get_or_insert_with(|| transaction.read_view().unwrap());
                view.clone()
            }
            Serializable => ReadView::newest(),
        }
    }

    /// A plain read of one row.
    fn read(&mut self, key: u8) -> Result<Option<u8>> {
        if self.level == Serializable {
            self.lock(key, LockMode::Shared)?;
        }
        let (view, mut value) = (self.view(), Vec::new());
        let found = self.table.tree.get_at(&view, &[key], &mut value)?;
        Ok(found.then(|| value[0]))
    }

    /// A plain read of all rows.
    fn scan(&mut self) -> Result<Vec<(u8, u8)>> {
        if self.level == Serializable {
            let (tree, all) = (&self.table.tree, KeyRange::all());
            self.transaction
                .lock_range(tree, &all, RangeLock::NoChanges, self.wait)?;
        }
        let view = self.view();
        let mut rows = Vec::new();
        let mut cursor =
            self.table
                .tree
                .scan_at(view, KeyRange::all(), Direction::Forward, ReadAhead::Off);
        while let Some(leaf) = cursor.next_leaf()? {
            for i in 0..leaf.len() {
                rows.push((leaf.suffix(i)[0], leaf.value(i)[0]));
            }
        }
        Ok(rows)
    }

    fn lock(&mut self, key: u8, mode: LockMode) -> Result<()> {
        self.transaction
            .lock_row(&self.table.tree, &[key], mode, self.wait)
            .map(drop)
    }

    /// SELECT ... FOR UPDATE of one row.
    fn read_for_update(&mut self, key: u8) -> Result<Option<u8>> {
        self.lock(key, LockMode::Exclusive)?;
        let mut value = Vec::new();
        let found = self.table.tree.get(&[key], &mut value)?;
        Ok(found.then(|| value[0]))
    }

    fn insert(&mut self, key: u8, value: u8) -> Result<()> {
        self.table
            .tree
            .insert(&mut self.transaction, &[key], &[value])
    }

    fn update(&mut self, key: u8, value: u8) -> Result<bool> {
        self.table
            .tree
            .update(&mut self.transaction, &[key], &[value])
    }

    fn delete(&mut self, key: u8) -> Result<bool> {
        self.table.tree.delete(&mut self.transaction, &[key])
    }

    fn wait_for_locks(&mut self) {
        self.wait = LONG;
        self.transaction.set_lock_wait(LONG);
    }

    fn commit(self) {
        self.transaction.commit().unwrap();
    }

    fn roll_back(self) {
        self.transaction.rollback().unwrap();
    }
}

/// The statement would have to wait.
fn waits<T: std::fmt::Debug>(result: Result<T>) -> bool {
    matches!(result, Err(StorageError::LockNotAvailable))
}

#[test]
fn g0_writes_of_two_transactions_do_not_mix() {
    let table = Table::new();
    let (mut t1, mut t2) = (table.begin(ReadCommitted), table.begin(ReadCommitted));
    assert!(t1.update(1, 11).unwrap());
    assert!(waits(t2.update(1, 12)));
    assert!(t1.update(2, 21).unwrap());
    t1.commit();
    assert_eq!(table.committed(), [(1, 11), (2, 21)]);
    assert!(t2.update(1, 12).unwrap());
    assert!(t2.update(2, 22).unwrap());
    t2.commit();
    assert_eq!(table.committed(), [(1, 12), (2, 22)]);
}

#[test]
fn g1a_what_is_rolled_back_is_never_read() {
    for level in [ReadCommitted, RepeatableRead] {
        let table = Table::new();
        let (mut t1, mut t2) = (table.begin(level), table.begin(level));
        assert!(t1.update(1, 101).unwrap());
        assert!(t1.delete(2).unwrap());
        t1.insert(3, 30).unwrap();
        assert_eq!(t2.scan().unwrap(), [(1, 10), (2, 20)]);
        assert_eq!(t1.scan().unwrap(), [(1, 101), (3, 30)]);
        t1.roll_back();
        assert_eq!(t2.scan().unwrap(), [(1, 10), (2, 20)]);
        assert_eq!(table.committed(), [(1, 10), (2, 20)]);
    }
}

#[test]
fn g1b_a_value_that_its_writer_replaces_is_never_read() {
    for (level, after_commit) in [(ReadCommitted, 11), (RepeatableRead, 10)] {
        let table = Table::new();
        let (mut t1, mut t2) = (table.begin(level), table.begin(level));
        assert!(t1.update(1, 101).unwrap());
        assert_eq!(t2.read(1).unwrap(), Some(10));
        assert!(t1.update(1, 11).unwrap());
        t1.commit();
        assert_eq!(t2.read(1).unwrap(), Some(after_commit));
    }
}

#[test]
fn g1c_two_transactions_do_not_read_each_others_writes() {
    for level in [ReadCommitted, RepeatableRead] {
        let table = Table::new();
        let (mut t1, mut t2) = (table.begin(level), table.begin(level));
        assert!(t1.update(1, 11).unwrap());
        assert!(t2.update(2, 22).unwrap());
        assert_eq!(t1.read(2).unwrap(), Some(20));
        assert_eq!(t2.read(1).unwrap(), Some(10));
        t1.commit();
        t2.commit();
    }
}

#[test]
fn otv_an_observed_transaction_does_not_vanish() {
    for (level, seen_at_last) in [(ReadCommitted, (12, 18)), (RepeatableRead, (11, 19))] {
        let table = Table::new();
        let (mut t1, mut t2) = (table.begin(level), table.begin(level));
        assert!(t1.update(1, 11).unwrap());
        assert!(t1.update(2, 19).unwrap());
        assert!(waits(t2.update(1, 12)));
        t1.commit();
        assert!(t2.update(1, 12).unwrap());
        let mut t3 = table.begin(level);
        assert_eq!(t3.read(1).unwrap(), Some(11));
        assert!(t2.update(2, 18).unwrap());
        assert_eq!(t3.read(2).unwrap(), Some(19));
        t2.commit();
        let again = (t3.read(1).unwrap().unwrap(), t3.read(2).unwrap().unwrap());
        assert_eq!(again, seen_at_last);
    }
}

#[test]
fn pmp_a_predicate_read_twice() {
    for (level, again) in [(ReadCommitted, 3), (RepeatableRead, 2)] {
        let table = Table::new();
        let (mut t1, mut t2) = (table.begin(level), table.begin(level));
        assert_eq!(t1.scan().unwrap().len(), 2);
        t2.insert(3, 30).unwrap();
        t2.commit();
        // READ COMMITTED allows the phantom.
        assert_eq!(t1.scan().unwrap().len(), again);
    }
    let table = Table::new();
    let (mut t1, mut t2) = (table.begin(Serializable), table.begin(Serializable));
    assert_eq!(t1.scan().unwrap().len(), 2);
    assert!(waits(t2.insert(3, 30)));
}

#[test]
fn p4_an_update_is_lost_if_it_goes_by_a_plain_read() {
    // MySQL's REPEATABLE READ allows this: a write works on the newest version, whatever its transaction has read.
    for level in [ReadCommitted, RepeatableRead] {
        let table = Table::new();
        let (mut t1, mut t2) = (table.begin(level), table.begin(level));
        assert_eq!(t1.read(1).unwrap(), Some(10));
        assert_eq!(t2.read(1).unwrap(), Some(10));
        assert!(t1.update(1, 11).unwrap());
        assert!(waits(t2.update(1, 11)));
        t1.commit();
        assert!(t2.update(1, 11).unwrap());
        t2.commit();
        assert_eq!(table.committed()[0], (1, 11));
    }
}

#[test]
fn p4_no_update_is_lost_after_a_locking_read() {
    let table = Table::new();
    let (mut t1, mut t2) = (table.begin(RepeatableRead), table.begin(RepeatableRead));
    assert_eq!(t2.read(1).unwrap(), Some(10));
    assert_eq!(t1.read_for_update(1).unwrap(), Some(10));
    assert!(waits(t2.read_for_update(1)));
    assert!(t1.update(1, 11).unwrap());
    t1.commit();
    // The locking read finds the newest row, although the plain one still finds the old one.
    assert_eq!(t2.read_for_update(1).unwrap(), Some(11));
    assert_eq!(t2.read(1).unwrap(), Some(10));
    assert!(t2.update(1, 12).unwrap());
    assert_eq!(t2.read(1).unwrap(), Some(12));
    t2.commit();
    assert_eq!(table.committed()[0], (1, 12));
}

#[test]
fn g_single_reads_of_one_transaction_belong_together() {
    for (level, second) in [(ReadCommitted, 18), (RepeatableRead, 20)] {
        let table = Table::new();
        let (mut t1, mut t2) = (table.begin(level), table.begin(level));
        assert_eq!(t1.read(1).unwrap(), Some(10));
        assert!(t2.update(1, 12).unwrap());
        assert!(t2.update(2, 18).unwrap());
        t2.commit();
        // READ COMMITTED allows the skew.
        assert_eq!(t1.read(2).unwrap(), Some(second));
    }
    let table = Table::new();
    let (mut t1, mut t2) = (table.begin(Serializable), table.begin(Serializable));
    assert_eq!(t1.read(1).unwrap(), Some(10));
    assert!(waits(t2.update(1, 12)));
}

#[test]
fn g2_item_write_skew_is_allowed_by_snapshots() {
    for level in [ReadCommitted, RepeatableRead] {
        let table = Table::new();
        let (mut t1, mut t2) = (table.begin(level), table.begin(level));
        for session in [&mut t1, &mut t2] {
            assert_eq!(session.read(1).unwrap(), Some(10));
            assert_eq!(session.read(2).unwrap(), Some(20));
        }
        assert!(t1.update(1, 11).unwrap());
        assert!(t2.update(2, 21).unwrap());
        t1.commit();
        t2.commit();
        assert_eq!(table.committed(), [(1, 11), (2, 21)]);
    }
}

/// Both have read everything; both change something. One of them is the victim of the deadlock, the other goes on.
fn one_of_two_survives(
    table: &Table,
    change: [fn(&mut Session<'_>) -> Result<()>; 2],
    read: fn(&mut Session<'_>),
) {
    let mut sessions = [table.begin(Serializable), table.begin(Serializable)];
    sessions.iter_mut().for_each(read);
    let victims: usize = thread::scope(|scope| {
        let threads = sessions
            .into_iter()
            .zip(change)
            .map(|(mut session, change)| {
                scope.spawn(move || {
                    session.wait_for_locks();
                    match change(&mut session) {
                        Ok(()) => {
                            session.commit();
                            0
                        }
                        Err(StorageError::Deadlock) => {
                            session.roll_back();
                            1
                        }
                        Err(error) => panic!("{error}"),
                    }
                })
            });
        let threads: Vec<_> = threads.collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(victims, 1);
}

#[test]
fn g2_item_serializable_ends_write_skew_by_a_deadlock() {
    let table = Table::new();
    one_of_two_survives(
        &table,
        [
            |session| session.update(1, 11).map(drop),
            |session| session.update(2, 21).map(drop),
        ],
        |session| {
            session.read(1).unwrap();
            session.read(2).unwrap();
        },
    );
    let survivor = table.committed();
    assert!(survivor == [(1, 11), (2, 20)] || survivor == [(1, 10), (2, 21)]);
}

#[test]
fn g2_serializable_ends_cycles_through_predicates_by_a_deadlock() {
    let table = Table::new();
    one_of_two_survives(
        &table,
        [
            |session| session.insert(3, 30),
            |session| session.insert(4, 42),
        ],
        |session| drop(session.scan().unwrap()),
    );
    assert_eq!(table.committed().len(), 3);
}

#[test]
fn next_key_locks_keep_phantoms_out_and_let_updates_pass() {
    let table = Table::new();
    let (mut t1, mut t2) = (table.begin(RepeatableRead), table.begin(RepeatableRead));
    let range = KeyRange {
        lower: std::ops::Bound::Excluded(vec![2]),
        upper: std::ops::Bound::Unbounded,
    };
    t1.transaction
        .lock_range(&table.tree, &range, RangeLock::NoInserts, LockWait::No)
        .unwrap();
    assert!(waits(t2.insert(3, 30)));
    assert!(t2.update(2, 21).unwrap());
    // Its owner may insert. A range does not exclude other ranges.
    t1.insert(3, 33).unwrap();
    t1.commit();
    assert!(matches!(
        t2.insert(3, 30),
        Err(StorageError::DuplicateKey { .. })
    ));
    t2.insert(4, 40).unwrap();
    t2.commit();
    assert_eq!(table.committed(), [(1, 10), (2, 21), (3, 33), (4, 40)]);
}

#[test]
fn an_insert_waits_for_the_transaction_that_deleted_the_key() {
    let table = Table::new();
    let (mut t1, mut t2) = (table.begin(ReadCommitted), table.begin(ReadCommitted));
    assert!(t1.delete(1).unwrap());
    // Not there for t1, and there again if t1 rolls back.
    assert!(waits(t2.insert(1, 11)));
    t1.roll_back();
    assert!(matches!(
        t2.insert(1, 11),
        Err(StorageError::DuplicateKey { .. })
    ));
    let mut t1 = table.begin(ReadCommitted);
    assert!(t1.delete(1).unwrap());
    let mut old = table.begin(RepeatableRead);
    assert_eq!(old.read(1).unwrap(), Some(10));
    t1.commit();
    t2.insert(1, 11).unwrap();
    t2.commit();
    // The ghost was revived, and the old row is still found behind it.
    assert_eq!(old.read(1).unwrap(), Some(10));
    assert_eq!(table.committed()[0], (1, 11));
}

#[test]
fn the_first_commit_takes_a_unique_prefix() {
    let table = Table::new();
    // Keys of a unique index: the unique part, then the row.
    let take = |session: &mut Session<'_>, row: u8| {
        let tree = &session.table.tree;
        tree.insert_unique(&mut session.transaction, &[7, row], 1, b"")
    };
    let (mut t1, mut t2) = (table.begin(ReadCommitted), table.begin(ReadCommitted));
    take(&mut t1, 1).unwrap();
    assert!(waits(take(&mut t2, 2)));
    t1.roll_back();
    take(&mut t2, 2).unwrap();
    let mut t3 = table.begin(ReadCommitted);
    assert!(waits(take(&mut t3, 3)));
    t2.commit();
    assert!(matches!(
        take(&mut t3, 3),
        Err(StorageError::DuplicateKey { .. })
    ));
    // A deleted entry is free for others once the delete is committed.
    let tree = &table.tree;
    assert!(tree.delete(&mut t3.transaction, &[7, 2]).unwrap());
    let mut t4 = table.begin(ReadCommitted);
    assert!(waits(take(&mut t4, 4)));
    take(&mut t3, 3).unwrap();
    t3.commit();
    assert!(matches!(
        take(&mut t4, 4),
        Err(StorageError::DuplicateKey { .. })
    ));
}

#[test]
fn a_statement_learns_that_a_row_it_has_read_was_changed_before_it_locked_it() {
    let table = Table::new();
    let (mut t1, mut t2) = (table.begin(ReadCommitted), table.begin(ReadCommitted));
    let lock = |session: &mut Session<'_>, view: &ReadView, key: u8| {
        let tree = &session.table.tree;
        let (mode, wait) = (LockMode::Exclusive, session.wait);
        session
            .transaction
            .lock_row_of_view(view, tree, &[key], mode, wait)
            .map(|row| row.is_unchanged)
    };
    let view = t2.view();
    assert!(t1.update(1, 11).unwrap());
    assert!(waits(lock(&mut t2, &view, 1)));
    t1.commit();
    assert!(!lock(&mut t2, &view, 1).unwrap());
    assert!(lock(&mut t2, &view, 2).unwrap());
    // Read again through a new view; the row is locked by now and stays what it is.
    let view = t2.view();
    assert!(lock(&mut t2, &view, 1).unwrap());
    assert_eq!(t2.read(1).unwrap(), Some(11));
    // Its own changes are no surprise.
    assert!(t2.update(1, 12).unwrap());
    assert!(lock(&mut t2, &view, 1).unwrap());
}

#[test]
fn a_row_is_amended_only_as_the_view_shows_it_and_while_nobody_is_in_the_way() {
    let table = Table::new();
    let add = |session: &mut Session<'_>, view: &ReadView, key: u8| {
        let sum = |value: &[u8]| Some(vec![value[0] + 1]);
        let (tree, transaction) = (&table.tree, &mut session.transaction);
        tree.amend(transaction, view, &[key], sum).unwrap()
    };
    let (mut t1, mut t2) = (table.begin(ReadCommitted), table.begin(ReadCommitted));
    let (view, old_view) = (t1.view(), t2.view());
    assert!(add(&mut t1, &view, 1));
    assert!(add(&mut t1, &view, 1), "its own change it sees");
    assert!(!add(&mut t1, &view, 9), "no such row");
    assert!(!add(&mut t2, &old_view, 1), "somebody is changing it");
    t1.commit();
    assert!(!add(&mut t2, &old_view, 1), "the view is from before");
    let new_view = t2.view();
    assert!(add(&mut t2, &new_view, 1));
    let mut t3 = table.begin(ReadCommitted);
    t3.lock(2, LockMode::Shared).unwrap();
    assert!(!add(&mut t2, &new_view, 2), "somebody has locked it");
    t3.commit();
    assert!(add(&mut t2, &new_view, 2));
    assert!(
        waits(table.begin(ReadCommitted).update(2, 0)),
        "the change is its lock"
    );
    t2.roll_back();
    assert_eq!(table.committed(), [(1, 12), (2, 20)]);
    let mut t4 = table.begin(ReadCommitted);
    let view = t4.view();
    assert!(
        add(&mut t4, &view, 1),
        "what was taken back is in nobody's way"
    );
    t4.delete(2).unwrap();
    assert!(!add(&mut t4, &view, 2), "it is deleted");
}

#[test]
fn a_transaction_that_amends_nothing_does_not_begin_to_change() {
    let table = Table::new();
    let mut t1 = table.begin(ReadCommitted);
    let view = t1.view();
    let mut amend = |key: u8, amended: Option<u8>| {
        let amended = |_: &[u8]| amended.map(|value| vec![value]);
        let (tree, transaction) = (&table.tree, &mut t1.transaction);
        let is_done = tree.amend(transaction, &view, &[key], amended).unwrap();
        (is_done, transaction.id().is_some())
    };
    assert_eq!(amend(9, Some(90)), (false, false), "no such row");
    assert_eq!(amend(1, None), (false, false), "it stays what it is");
    assert_eq!(amend(1, Some(11)), (true, true));
    t1.commit();
    assert_eq!(table.committed(), [(1, 11), (2, 20)]);
}

#[test]
fn small_statements_find_locks_where_others_have_all() {
    const LIMIT: u8 = 2;
    let options = StorageOptions {
        max_row_locks: usize::from(LIMIT) << 10,
        ..options()
    };
    let storage = Storage::open_on(disk(1), options).unwrap();
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    let mut setup = storage.begin_transaction();
    for key in 0..u16::from(LIMIT) << 10 {
        tree.insert(&mut setup, &key.to_be_bytes(), &[10]).unwrap();
    }
    for key in 0..=LIMIT {
        tree.insert(&mut setup, &[u8::MAX, u8::MAX, key], &[10])
            .unwrap();
    }
    setup.commit().unwrap();
    let lock = |transaction: &mut Transaction, key: &[u8]| {
        let (view, mut value) = (transaction.read_view()?, Vec::new());
        transaction.lock_and_read(&view, &tree, key, LockMode::Exclusive, &mut value)
    };
    let mut greedy = storage.begin_transaction();
    for key in 0..u16::from(LIMIT) << 10 {
        let locked = lock(&mut greedy, &key.to_be_bytes());
        assert_eq!(locked.unwrap(), Some(true));
    }
    let refused = lock(&mut greedy, &[u8::MAX, u8::MAX, 0]);
    assert!(matches!(refused, Err(StorageError::TooManyLocks { .. })));
    for _ in 0..2 {
        let mut small = storage.begin_transaction();
        for key in 0..LIMIT {
            let locked = lock(&mut small, &[u8::MAX, u8::MAX, key]);
            assert_eq!(locked.unwrap(), Some(true));
        }
        let refused = lock(&mut small, &[u8::MAX, u8::MAX, LIMIT]);
        assert!(matches!(refused, Err(StorageError::TooManyLocks { .. })));
        small.rollback().unwrap();
    }
}

#[test]
fn what_is_not_there_needs_no_lock_where_there_are_too_many() {
    let options = StorageOptions {
        max_row_locks: 1,
        ..options()
    };
    let storage = Storage::open_on(disk(1), options).unwrap();
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    let mut setup = storage.begin_transaction();
    tree.insert(&mut setup, &[1], &[10]).unwrap();
    tree.insert(&mut setup, &[2], &[20]).unwrap();
    setup.commit().unwrap();
    let mut transaction = storage.begin_transaction();
    let view = transaction.read_view().unwrap();
    let mut lock = |key: u8| {
        let mut value = Vec::new();
        transaction.lock_and_read(&view, &tree, &[key], LockMode::Exclusive, &mut value)
    };
    assert_eq!(lock(1).unwrap(), Some(true));
    assert_eq!(lock(9).unwrap(), Some(false));
    let refused = lock(2);
    assert!(matches!(
        refused,
        Err(StorageError::TooManyLocks { limit: 1 })
    ));
    assert_eq!(lock(1).unwrap(), Some(true), "it is locked already");
}

#[test]
fn a_row_is_locked_and_read_at_once_only_as_the_view_shows_it_and_while_it_is_free() {
    let table = Table::new();
    let read = |session: &mut Session<'_>, view: &ReadView, key: u8| {
        let (tree, mut value) = (&table.tree, Vec::new());
        let transaction = &mut session.transaction;
        let found = transaction.lock_and_read(view, tree, &[key], LockMode::Exclusive, &mut value);
        found.unwrap().map(|found| found.then(|| value[0]))
    };
    let (mut t1, mut t2) = (table.begin(ReadCommitted), table.begin(ReadCommitted));
    let (view, old_view) = (t1.view(), t2.view());
    assert_eq!(read(&mut t1, &view, 1), Some(Some(10)));
    assert_eq!(read(&mut t2, &old_view, 1), None, "it is locked");
    assert_eq!(read(&mut t1, &view, 9), Some(None), "no such row");
    assert!(!waits(t2.insert(9, 90)), "what is not there is not locked");
    assert!(t1.update(1, 11).unwrap());
    assert_eq!(read(&mut t1, &view, 1), Some(Some(11)), "its own change");
    t1.commit();
    assert_eq!(read(&mut t2, &old_view, 1), None, "the view is from before");
    let mut t3 = table.begin(ReadCommitted);
    assert!(!waits(t3.update(1, 12)), "so it is not locked either");
    let view = t2.view();
    assert_eq!(read(&mut t2, &view, 1), None, "somebody is changing it");
    t3.commit();
    let view = t2.view();
    assert_eq!(read(&mut t2, &view, 1), Some(Some(12)));
    assert!(waits(table.begin(ReadCommitted).update(1, 13)));
    t2.commit();
    assert!(!waits(table.begin(ReadCommitted).update(1, 13)));
}

#[test]
fn a_statement_that_fails_takes_back_itself_alone() {
    let table = Table::new();
    let mut t1 = table.begin(RepeatableRead);
    assert!(t1.update(1, 11).unwrap());
    let statement = t1.transaction.savepoint();
    assert!(t1.update(1, 12).unwrap());
    assert!(t1.delete(2).unwrap());
    t1.insert(3, 30).unwrap();
    t1.transaction.rollback_to(statement).unwrap();
    assert_eq!(t1.scan().unwrap(), [(1, 11), (2, 20)]);
    assert_eq!(table.committed(), [(1, 10), (2, 20)]);
    t1.commit();
    assert_eq!(table.committed(), [(1, 11), (2, 20)]);
}

#[test]
fn waiting_writers_go_on_when_the_first_one_commits() {
    let table = Table::new();
    let mut t1 = table.begin(ReadCommitted);
    assert!(t1.update(1, 0).unwrap());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = table.begin(ReadCommitted);
                session.wait_for_locks();
                let value = session.read_for_update(1).unwrap().unwrap();
                assert!(session.update(1, value + 1).unwrap());
                session.commit();
            });
        }
        while table.storage.transaction_counters().row_locks < 4 {
            thread::yield_now();
        }
        assert_eq!(table.committed()[0], (1, 10));
        t1.commit();
    });
    assert_eq!(table.committed()[0], (1, 4));
    assert_eq!(table.storage.transaction_counters().row_locks, 0);
}

/// A transaction that waits for a changed row holds its explicit lock meanwhile. The one that changed it need not ask.
#[test]
fn the_writer_of_a_row_may_lock_it_while_others_wait_for_it() {
    let table = Table::new();
    let mut t1 = table.begin(RepeatableRead);
    assert!(t1.update(1, 11).unwrap());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut t2 = table.begin(RepeatableRead);
            t2.wait_for_locks();
            assert!(t2.update(1, 12).unwrap());
            t2.commit();
        });
        while table.storage.transaction_counters().row_locks < 1 {
            thread::yield_now();
        }
        assert_eq!(t1.read_for_update(1).unwrap(), Some(11));
        t1.commit();
    });
    assert_eq!(table.committed()[0], (1, 12));
}

/// A transaction that waits for a row that is released has it next, and none is a victim.
#[test]
fn a_row_that_is_released_goes_to_the_waiting_transaction() {
    let table = Table::new();
    let mut t1 = table.begin(ReadCommitted);
    let savepoint = t1.transaction.savepoint();
    assert!(t1.update(1, 11).unwrap());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut t2 = table.begin(ReadCommitted);
            t2.wait_for_locks();
            assert!(t2.update(1, 12).unwrap());
            t2.commit();
        });
        while table.storage.transaction_counters().row_locks < 1 {
            thread::yield_now();
        }
        t1.transaction.rollback_to(savepoint).unwrap();
        t1.wait_for_locks();
        let again = t1.update(1, 13);
        t1.commit();
        assert!(again.unwrap());
    });
    assert_eq!(table.committed()[0], (1, 13));
}

/// Locks of many rows become one of the tree, but not where another transaction changes it: that one would wait for
/// the holder of the lock, and soon they would wait for each other.
#[test]
fn many_locks_become_one_of_the_tree_where_nobody_changes_it() {
    let table = Table::new();
    let lock = |session: &mut Session<'_>, rows: std::ops::Range<u32>| {
        for row in rows {
            let (key, mode) = (row.to_be_bytes(), LockMode::Exclusive);
            session
                .transaction
                .lock_row(&table.tree, &key, mode, LockWait::No)
                .unwrap();
        }
    };
    let row_locks = || table.storage.transaction_counters().row_locks;
    let (mut writer, mut many) = (table.begin(ReadCommitted), table.begin(ReadCommitted));
    assert!(writer.update(1, 11).unwrap());
    lock(&mut many, 0..10_000);
    assert_eq!(row_locks(), 10_000);
    assert!(writer.update(2, 21).unwrap());
    writer.commit();
    lock(&mut many, 10_000..20_000);
    assert_eq!(row_locks(), 1);
    let mut late = table.begin(ReadCommitted);
    assert!(waits(late.update(1, 12)));
    many.commit();
    assert!(late.update(1, 12).unwrap());
}

/// Why a change fails is locked, unless a range that was read before covers it.
#[test]
fn a_key_that_is_there_already_stays_once_a_serializable_insert_has_found_it() {
    for reads_first in [false, true] {
        let table = Table::new();
        let (mut t1, mut t2) = (table.begin(Serializable), table.begin(ReadCommitted));
        t1.transaction.keep_reasons(true);
        if reads_first {
            assert_eq!(t1.scan().unwrap().len(), 2);
        }
        for _ in 0..2 {
            let refused = t1.insert(1, 11);
            assert!(matches!(refused, Err(StorageError::DuplicateKey { .. })));
        }
        assert!(waits(t2.delete(1)));
        t1.commit();
        assert!(t2.delete(1).unwrap());
    }
}
