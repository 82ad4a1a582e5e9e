//! Indexes that are built while others change rows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{LockMode, LockWait, Random, Storage, StorageOptions, Transaction};
use sheaf_table::{
    AlterOptions, Alteration, Catalog, IndexSpec, LockRequest, NoProgress, Progress, RowWriteGuard,
    TableError,
};
use sheaf_types::Value;

use crate::fixture::*;
use crate::writers::{Row, Writers, new_indexes, table, verify};

pub const LONG: Duration = Duration::from_secs(600);

fn build(
    catalog: &Catalog,
    indexes: &[IndexSpec],
    progress: &dyn Progress,
    wait: Duration,
) -> Result<(), TableError> {
    let changes: Vec<_> = indexes.iter().cloned().map(Alteration::AddIndex).collect();
    let options = AlterOptions {
        beside_writers: true,
        ..AlterOptions::default()
    };
    let request = LockRequest {
        session: 7,
        ..LockRequest::from(wait)
    };
    let altered = catalog.alter_table(("d", "t"), &changes, &options, progress, request);
    altered.map(drop)
}

pub fn numbered(id: i64, number: i64) -> Row {
    vec![
        Value::Int(id),
        Value::Int(number),
        text("name"),
        text("note"),
    ]
}

/// As [`build`], where others may change rows whose keys have so many bytes.
fn build_within(
    catalog: &Catalog,
    online_log_bytes: u64,
    progress: &dyn Progress,
) -> Result<(), TableError> {
    let changes: Vec<_> = new_indexes()
        .into_iter()
        .map(Alteration::AddIndex)
        .collect();
    let options = AlterOptions {
        beside_writers: true,
        online_log_bytes,
        ..AlterOptions::default()
    };
    let altered = catalog.alter_table(("d", "t"), &changes, &options, progress, LONG);
    altered.map(drop)
}

/// A catalog with the table, and rows with these numbers.
pub fn with_numbers(numbers: &[i64]) -> (tempfile::TempDir, Arc<Catalog>) {
    let (directory, catalog) = scratch();
    catalog.create_table(table()).unwrap();
    let rows: Vec<_> = (1..).zip(numbers).map(|(id, n)| numbered(id, *n)).collect();
    insert(&catalog, &rows).unwrap();
    (directory, catalog)
}

fn unique_number() -> [IndexSpec; 1] {
    [index("by_number", &["number"], true)]
}

pub fn trees(catalog: &Catalog) -> usize {
    catalog.storage().tree_ids().unwrap().len()
}

/// A connection with an open transaction.
pub struct Session {
    pub transaction: Transaction,
    pub guard: RowWriteGuard,
}

impl Session {
    pub fn begin(catalog: &Catalog) -> Session {
        Session {
            transaction: catalog.storage().begin_transaction(),
            guard: catalog.open_for_row_writes("d", "t", NO_WAIT).unwrap(),
        }
    }

    pub fn insert(&mut self, row: &Row) {
        self.guard.insert(&mut self.transaction, row).unwrap();
    }

    pub fn set(&mut self, id: i64, number: i64) {
        let key = self.guard.encode_primary_key(&numbered(id, number));
        let (transaction, wait) = (&mut self.transaction, LockWait::No);
        let old = self
            .guard
            .lock_row(transaction, &key, LockMode::Exclusive, wait);
        let old = old.unwrap().unwrap();
        let row = numbered(id, number);
        self.guard.replace(transaction, &key, &old, &row).unwrap();
    }

    pub fn delete(&mut self, id: i64) {
        let key = self.guard.encode_primary_key(&numbered(id, 0));
        assert!(self.guard.delete(&mut self.transaction, &key).unwrap());
    }

    pub fn commit(self) {
        self.transaction.commit().unwrap();
    }

    pub fn roll_back(self) {
        self.transaction.rollback().unwrap();
    }
}

/// Does something once, when a phase begins, or when the build waits (`None`).
pub struct When<'a> {
    phase: Option<&'static str>,
    work: Mutex<Option<Box<dyn FnOnce() + Send + 'a>>>,
}

impl<'a> When<'a> {
    pub fn new(phase: Option<&'static str>, work: impl FnOnce() + Send + 'a) -> When<'a> {
        When {
            phase,
            work: Mutex::new(Some(Box::new(work))),
        }
    }

    fn work(&self) {
        let work = self.work.lock().unwrap().take();
        if let Some(work) = work {
            work();
        }
    }
}

impl Progress for When<'_> {
    fn begin(&self, name: &str, _total: Option<u64>) {
        if self.phase.is_some_and(|phase| name.starts_with(phase)) {
            self.work();
        }
    }

    fn advance(&self, _units: u64) {}

    fn is_cancelled(&self) -> bool {
        if self.phase.is_none() {
            self.work();
        }
        false
    }
}

#[test]
fn indexes_are_right_whatever_others_do_meanwhile() {
    let (mut built, mut refused) = (0, 0);
    for seed in 0..16 {
        let (_directory, catalog) = scratch();
        catalog.create_table(table()).unwrap();
        // Few numbers: duplicates come and go.
        let numbers = if seed % 3 == 0 { 300 } else { 1 << 30 };
        let writers = Writers::new(&catalog, seed, numbers);
        writers.work(600);
        let indexes = new_indexes();
        let result = build(&catalog, &indexes, &writers, LONG);
        writers.work(60);
        writers.end_all();
        writers.verify();
        match result {
            Ok(()) => {
                built += 1;
                // The rows are read once for all of them.
                let phases = writers.phases();
                let mut sorts = phases.iter().filter(|phase| phase.starts_with("sorting"));
                assert_eq!(
                    sorts.next().unwrap(),
                    "sorting index by_number, by_name, by_note"
                );
                assert_eq!(sorts.next(), None);
                let table = catalog.table("d", "t").unwrap();
                assert_eq!(table.definition.secondary.len(), 4);
            }
            Err(TableError::DuplicateKey { key, .. }) => {
                assert_eq!(key, "t.by_number");
                assert!(writers.had_duplicates(), "seed {seed}");
                refused += 1;
                // It can be tried again, also without the others.
                build(&catalog, &indexes[1..], &NoProgress, NO_WAIT).unwrap();
                writers.verify();
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(built > 0 && refused > 0, "{built} built, {refused} refused");
}

#[test]
fn after_a_crash_in_any_phase_indexes_are_there_as_a_whole_or_not_at_all() {
    let (mut there, mut absent) = (0, 0);
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let disk = SimulatedDisk::new(SimulationOptions::new(random.next()));
        let options = || StorageOptions {
            pool_bytes: 2 << 20,
            background_writer: false,
            log_segment_bytes: 512 << 10,
            log_limit_bytes: 1 << 20,
            ..StorageOptions::default()
        };
        let catalog = Catalog::open(Storage::open_on(disk.clone(), options()).unwrap()).unwrap();
        catalog.create_database("d").unwrap();
        catalog.create_table(table()).unwrap();
        let writers = Writers::new(&catalog, seed, 1 << 30);
        writers.work(300);
        match seed % 3 {
            // There is no space at some time.
            0 => disk.set_capacity(disk.used_bytes() + random.below(1 << 20)),
            _ => disk.crash_after(Some(random.below(160))),
        }
        let mut result = Ok(());
        let mut times = 0;
        while result.is_ok() && !disk.is_crashed() && !writers.is_dead() && times < 5 {
            times += 1;
            result = build(&catalog, &new_indexes(), &writers, LONG);
            if result.is_ok() {
                writers.work(20);
                writers.end_all();
                let drop: Vec<_> = new_indexes()
                    .iter()
                    .filter_map(|index| index.name.clone())
                    .map(Alteration::DropIndex)
                    .collect();
                result = alter(&catalog, "t", &drop);
            }
        }
        let models = writers.crashed();
        drop((writers, catalog));
        let disk = disk.power_loss(SimulationOptions::new(random.next()));
        let catalog = Catalog::open(Storage::open_on(disk, options()).unwrap()).unwrap();
        verify(&catalog, &models);
        let table = catalog.table("d", "t").unwrap();
        match table.definition.secondary.len() {
            1 => absent += 1,
            4 => there += 1,
            other => panic!("seed {seed}: {other} indexes"),
        }
    }
    assert!(there > 0 && absent > 0, "{there} there, {absent} absent");
}

#[test]
fn a_build_that_is_killed_leaves_nothing_behind() {
    for seed in 0..12 {
        let (_directory, catalog) = scratch();
        catalog.create_table(table()).unwrap();
        let writers = Writers::new(&catalog, seed, 1 << 30);
        writers.work(400);
        writers.end_all();
        let before = trees(&catalog);
        let phase = ["sorting", "building", "bringing"][seed as usize % 3];
        let killed = When::new(Some(phase), || writers.cancel());
        let both = Both(&writers, &killed);
        let result = build(&catalog, &new_indexes(), &both, LONG);
        if !matches!(result, Err(TableError::Interrupted)) {
            // The last round does not ask.
            assert!(result.is_ok() && phase == "bringing", "{result:?}");
            continue;
        }
        assert_eq!(trees(&catalog), before);
        writers.work(40);
        writers.end_all();
        writers.verify();
        alter(
            &catalog,
            "t",
            &[Alteration::AddIndex(index("later", &["note(3)"], false))],
        )
        .unwrap();
        writers.verify();
    }
}

#[test]
fn a_build_that_notes_too_many_rows_fails_and_leaves_nothing_behind() {
    let (_directory, catalog) = with_numbers(&[1, 2, 3]);
    let (before, spilled) = (trees(&catalog), catalog.storage().temp_space().used_bytes());
    for phase in ["sorting", "building"] {
        let inserts = When::new(Some(phase), || {
            let mut session = Session::begin(&catalog);
            for id in 0..200 {
                session.insert(&numbered(1_000 + id, 1_000 + id));
            }
            session.commit();
        });
        let error = build_within(&catalog, 1_000, &inserts).unwrap_err();
        assert_eq!(error.mysql_code(), 1799, "{phase}");
        assert!(error.to_string().contains("'by_number'"), "{error}");
        assert_eq!(trees(&catalog), before);
        assert_eq!(catalog.storage().temp_space().used_bytes(), spilled);
        let mut session = Session::begin(&catalog);
        (0..200).for_each(|id| session.delete(1_000 + id));
        session.commit();
    }
    // One row again and again is not much.
    let updates = When::new(Some("building"), || {
        for number in 0..1_000 {
            let mut session = Session::begin(&catalog);
            session.set(1, 5_000 + number);
            session.commit();
        }
    });
    build_within(&catalog, 1_000, &updates).unwrap();
    drop(updates);
    let table = catalog.table("d", "t").unwrap();
    assert_eq!(values(&table)[0][1], Value::Int(5_999));
    verify(&catalog, &[rows(&table)]);
}

/// Writers of whatever kind, and a limit that they reach at some time or never.
#[test]
fn indexes_with_a_limit_are_there_as_a_whole_or_not_at_all() {
    let (mut built, mut refused) = (0, 0);
    for seed in 0..20 {
        let (_directory, catalog) = scratch();
        catalog.create_table(table()).unwrap();
        let writers = Writers::new(&catalog, seed, 1 << 30);
        writers.work(400);
        let before = trees(&catalog);
        let limit = Random::new(seed).below(3_000);
        let result = build_within(&catalog, limit, &writers);
        match &result {
            Ok(()) => built += 1,
            Err(TableError::TooManyChangesBeside { .. }) => {
                refused += 1;
                assert_eq!(trees(&catalog), before);
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
        writers.work(40);
        writers.end_all();
        writers.verify();
        if result.is_err() {
            build(&catalog, &new_indexes(), &NoProgress, NO_WAIT).unwrap();
            writers.verify();
        }
    }
    assert!(built > 0 && refused > 0, "{built} built, {refused} refused");
}

#[test]
fn a_change_that_is_to_be_alone_keeps_readers_out_until_it_ends() {
    for (changes, phase) in [
        (
            vec![Alteration::AddIndex(index("i", &["number"], false))],
            "sorting",
        ),
        (vec![Alteration::DropColumn("note".into())], "copying"),
    ] {
        let (_directory, catalog) = with_numbers(&[1, 2, 3]);
        let options = AlterOptions {
            excludes_readers: true,
            ..AlterOptions::default()
        };
        let alter = |progress: &dyn Progress| {
            let altered = catalog.alter_table(("d", "t"), &changes, &options, progress, NO_WAIT);
            altered.map(drop)
        };
        let reader = catalog.open_for_read("d", "t", NO_WAIT).unwrap();
        let kept = alter(&NoProgress).unwrap_err();
        assert!(matches!(kept, TableError::LockWaitTimeout));
        drop(reader);
        let is_there = AtomicBool::new(false);
        let when = When::new(Some(phase), || {
            is_there.store(true, Ordering::Relaxed);
            assert!(catalog.open_for_read("d", "t", NO_WAIT).is_err());
            assert!(catalog.open_for_row_writes("d", "t", NO_WAIT).is_err());
        });
        alter(&when).unwrap();
        drop(when);
        assert!(is_there.into_inner());
        let table = catalog.open_for_read("d", "t", NO_WAIT).unwrap();
        assert_eq!(rows(&table).len(), 3);
    }
}

/// Two that watch.
pub struct Both<'a>(pub &'a dyn Progress, pub &'a dyn Progress);

impl Progress for Both<'_> {
    fn begin(&self, name: &str, total: Option<u64>) {
        self.0.begin(name, total);
        self.1.begin(name, total);
    }

    fn advance(&self, units: u64) {
        self.0.advance(units);
        self.1.advance(units);
    }

    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled() | self.1.is_cancelled()
    }
}

#[test]
fn duplicates_that_come_late_are_found_and_none_is_invented() {
    let unique = unique_number();
    // Committed while the index is built: true at the end.
    let (_directory, catalog) = with_numbers(&[1, 2, 3]);
    let before = trees(&catalog);
    let late = When::new(Some("building"), || {
        let mut session = Session::begin(&catalog);
        session.insert(&numbered(10, 2));
        session.commit();
    });
    let error = build(&catalog, &unique, &late, LONG).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Duplicate entry '2' for key 't.by_number'"
    );
    assert_eq!(trees(&catalog), before);
    // It goes before anybody looks.
    let (_directory, catalog) = with_numbers(&[1, 2, 3]);
    let gone = When::new(Some("building"), || {
        let mut session = Session::begin(&catalog);
        session.insert(&numbered(10, 2));
        session.set(1, 3);
        session.commit();
        let mut session = Session::begin(&catalog);
        session.delete(2);
        session.set(3, 1);
        session.commit();
    });
    build(&catalog, &unique, &gone, LONG).unwrap();
    assert_eq!(rows(&catalog.table("d", "t").unwrap()).len(), 3);
    // Rolled back, as a whole or in part.
    let (_directory, catalog) = with_numbers(&[1, 2, 3]);
    let undone = When::new(Some("building"), || {
        let mut session = Session::begin(&catalog);
        session.insert(&numbered(10, 2));
        session.roll_back();
        let mut session = Session::begin(&catalog);
        session.set(1, 5);
        let mark = session.transaction.savepoint();
        session.set(2, 5);
        session.transaction.rollback_to(mark).unwrap();
        session.commit();
    });
    build(&catalog, &unique, &undone, LONG).unwrap();
    // Values change places: no state that committed has one of them twice.
    let (_directory, catalog) = with_numbers(&[1, 2, 3]);
    let moved = When::new(Some("building"), || {
        let mut session = Session::begin(&catalog);
        session.set(1, 2);
        session.set(2, 3);
        session.set(3, 1);
        session.commit();
    });
    build(&catalog, &unique, &moved, LONG).unwrap();
    assert_eq!(
        values(&catalog.table("d", "t").unwrap())[0][1],
        Value::Int(2)
    );
    // From then on it is as unique as any.
    let error = insert(&catalog, &[numbered(11, 3)]).unwrap_err();
    assert_eq!(error.mysql_code(), 1062);
}

#[test]
fn a_transaction_that_began_before_ends_first_or_is_waited_for() {
    for commits in [true, false] {
        let (_directory, catalog) = with_numbers(&[1, 2, 3]);
        let mut old = Session::begin(&catalog);
        old.set(1, 2);
        let before = trees(&catalog);
        let error = build(&catalog, &unique_number(), &NoProgress, NO_WAIT).unwrap_err();
        assert!(matches!(error, TableError::LockWaitTimeout));
        assert_eq!(trees(&catalog), before);
        // Others come and go while the build waits for it.
        let ends = When::new(None, || {
            let mut session = Session::begin(&catalog);
            session.set(3, 4);
            session.commit();
            match commits {
                true => old.commit(),
                false => old.roll_back(),
            }
        });
        let result = build(&catalog, &unique_number(), &ends, LONG);
        assert_eq!(result.is_ok(), !commits, "{result:?}");
        let table = catalog.table("d", "t").unwrap();
        assert_eq!(values(&table)[2][1], Value::Int(4));
    }
}

/// A transaction that changes many rows while the index is built, and ends while the build waits for it.
struct LongTransaction<'a> {
    catalog: &'a Catalog,
    open: Mutex<Option<(Session, u32)>>,
}

impl Progress for LongTransaction<'_> {
    fn begin(&self, name: &str, _total: Option<u64>) {
        if name.starts_with("building index by_number") {
            let mut session = Session::begin(self.catalog);
            for id in 0..3_000 {
                session.insert(&numbered(1_000 + id, 10_000 + id));
            }
            let mark = session.transaction.savepoint();
            for id in 0..1_500 {
                session.set(1_000 + id, 5);
            }
            session.transaction.rollback_to(mark).unwrap();
            *self.open.lock().unwrap() = Some((session, 0));
        }
    }

    fn advance(&self, _units: u64) {}

    fn is_cancelled(&self) -> bool {
        let mut open = self.open.lock().unwrap();
        if let Some((_, asked)) = open.as_mut() {
            *asked += 1;
            // Others go on meanwhile.
            let mut session = Session::begin(self.catalog);
            session.set(1, i64::from(*asked) + 100);
            session.commit();
        }
        if let Some((session, _)) = open.take_if(|(_, asked)| *asked > 6) {
            session.commit();
        }
        false
    }
}

#[test]
fn a_long_transaction_with_many_rows_is_waited_for() {
    let (_directory, catalog) = with_numbers(&[1, 2, 3]);
    let long = LongTransaction {
        catalog: &catalog,
        open: Mutex::default(),
    };
    build(&catalog, &new_indexes(), &long, LONG).unwrap();
    assert!(long.open.lock().unwrap().is_none());
    let table = catalog.table("d", "t").unwrap();
    assert_eq!(table.definition.secondary.len(), 4);
    assert_eq!(rows(&table).len(), 3_003);
    verify(&catalog, &[rows(&table)]);
}

#[test]
fn views_from_before_the_index_do_not_use_the_table_after() {
    let (_directory, catalog) = with_numbers(&[1, 2, 3]);
    // A transaction that has read the table keeps it as it is.
    let old_view = catalog.storage().read_view().unwrap();
    let reader = catalog.open_for_read("d", "t", NO_WAIT).unwrap();
    reader.check_view(&old_view).unwrap();
    let error = build(&catalog, &unique_number(), &NoProgress, NO_WAIT).unwrap_err();
    assert!(matches!(error, TableError::LockWaitTimeout));
    let during = Mutex::new(None);
    let when = When::new(Some("building"), || {
        // A statement that comes meanwhile sees the table as it was.
        let table = catalog.open_for_read("d", "t", NO_WAIT).unwrap();
        let view = catalog.storage().read_view().unwrap();
        table.check_view(&view).unwrap();
        assert_eq!(table.definition.secondary.len(), 1);
        table.check_view(&old_view).unwrap();
        *during.lock().unwrap() = Some(view);
        drop(reader);
        let mut session = Session::begin(&catalog);
        session.set(1, 9);
        session.commit();
    });
    build(&catalog, &unique_number(), &when, LONG).unwrap();
    drop(when);
    let table = catalog.open_for_read("d", "t", NO_WAIT).unwrap();
    assert_eq!(table.definition.secondary.len(), 2);
    for view in [&old_view, during.lock().unwrap().as_ref().unwrap()] {
        assert_eq!(table.check_view(view).unwrap_err().mysql_code(), 1412);
    }
    table
        .check_view(&catalog.storage().read_view().unwrap())
        .unwrap();
}

#[test]
fn other_definitions_wait_for_the_build_and_rows_do_not_wait_for_them() {
    let (_directory, catalog) = with_numbers(&[1, 2, 3]);
    let when = When::new(Some("sorting"), || {
        let other = [Alteration::AddIndex(index("other", &["note(3)"], false))];
        let error = alter(&catalog, "t", &other).unwrap_err();
        assert!(matches!(error, TableError::LockWaitTimeout));
        let error = build(&catalog, &new_indexes(), &NoProgress, NO_WAIT).unwrap_err();
        assert!(matches!(error, TableError::LockWaitTimeout));
        assert!(drop_table(&catalog, "t").is_err());
        assert!(catalog.truncate_table(("d", "t"), true, NO_WAIT).is_err());
        let mut session = Session::begin(&catalog);
        session.set(1, 7);
        session.commit();
    });
    build(&catalog, &unique_number(), &when, LONG).unwrap();
    assert_eq!(
        values(&catalog.table("d", "t").unwrap())[0][1],
        Value::Int(7)
    );
}

#[test]
fn a_table_without_a_primary_key_gets_indexes_beside_writers() {
    let (_directory, catalog) = scratch();
    let mut request = table();
    request.primary_key = None;
    catalog.create_table(request).unwrap();
    insert(&catalog, &[numbered(1, 1), numbered(1, 2)]).unwrap();
    let when = When::new(Some("building"), || {
        let mut session = Session::begin(&catalog);
        session.insert(&numbered(1, 3));
        let first = rows(&session.guard).into_keys().next().unwrap();
        let transaction = &mut session.transaction;
        assert!(session.guard.delete(transaction, &first).unwrap());
        session.commit();
    });
    build(&catalog, &new_indexes(), &when, LONG).unwrap();
    let table = catalog.table("d", "t").unwrap();
    let numbers = values(&table).into_iter().map(|row| row[1].clone());
    assert!(numbers.eq([Value::Int(2), Value::Int(3)]));
    verify(&catalog, &[rows(&table)]);
}

/// Tells threads to end, also after a panic.
pub struct Ends<'a>(pub &'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn writers_in_threads_lose_nothing() {
    let (_directory, catalog) = with_numbers(&[]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ends = Ends(&done);
        for thread in 0..3_u64 {
            let (catalog, done) = (&catalog, &done);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                // As statements do that hold no table yet.
                let request = LockRequest {
                    is_first: true,
                    session: 10 + thread,
                    ..LockRequest::from(LONG)
                };
                let mut next = 0;
                while !done.load(Ordering::Relaxed) {
                    let guard = catalog.open_for_row_writes("d", "t", request).unwrap();
                    let mut transaction = catalog.storage().begin_transaction();
                    for _ in 0..1 + random.below(4) {
                        // Each has rows and numbers of its own.
                        let id = (random.below(200) * 3 + thread) as i64;
                        let row = numbered(id, next * 3 + thread as i64);
                        next += 1;
                        let key = guard.encode_primary_key(&row);
                        let old = guard.read_row(&key).unwrap();
                        match old {
                            None => drop(guard.insert(&mut transaction, &row).unwrap()),
                            Some(_) if random.below(3) == 0 => {
                                assert!(guard.delete(&mut transaction, &key).unwrap());
                            }
                            Some(old) => {
                                let changed = &mut transaction;
                                guard.replace(changed, &key, &old, &row).unwrap();
                            }
                        }
                    }
                    match random.below(4) {
                        0 => transaction.rollback().unwrap(),
                        _ => transaction.commit().unwrap(),
                    }
                    drop(guard);
                }
            });
        }
        for _ in 0..30 {
            build(&catalog, &new_indexes(), &NoProgress, LONG).unwrap();
            let names = new_indexes().into_iter().filter_map(|index| index.name);
            let drop: Vec<_> = names.map(Alteration::DropIndex).collect();
            let options = AlterOptions::default();
            let wait = LockRequest {
                session: 7,
                ..LockRequest::from(LONG)
            };
            let altered = catalog.alter_table(("d", "t"), &drop, &options, &NoProgress, wait);
            altered.unwrap();
        }
        build(&catalog, &new_indexes(), &NoProgress, LONG).unwrap();
        drop(ends);
    });
    let table = catalog.table("d", "t").unwrap();
    verify(&catalog, &[rows(&table)]);
}
