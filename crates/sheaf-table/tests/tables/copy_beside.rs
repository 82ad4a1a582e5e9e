//! Tables whose rows are copied while others change rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{Random, Storage, StorageOptions};
use sheaf_table::{
    AlterOptions, AlterWork, Alteration, Altered, Catalog, CheckSpec, ColumnPlace, DefaultValue,
    LockRequest, NoProgress, Progress, RowTest, TableError,
};
use sheaf_types::Value;

use crate::build_beside::{Both, Ends, LONG, Session, When, numbered, trees, with_numbers};
use crate::fixture::*;
use crate::writers::{Writers, new_indexes, table, verify};

fn copy_with(
    catalog: &Catalog,
    changes: &[Alteration],
    options: AlterOptions,
    progress: &dyn Progress,
) -> Result<Altered, TableError> {
    let table = catalog.table("d", "t").unwrap();
    assert!(Catalog::admits_writers(&table, changes).unwrap());
    assert!(Catalog::alter_work(&table, changes).unwrap().copies());
    let options = AlterOptions {
        beside_writers: true,
        ..options
    };
    let request = LockRequest {
        session: 7,
        ..LockRequest::from(LONG)
    };
    catalog.alter_table(("d", "t"), changes, &options, progress, request)
}

fn copy(
    catalog: &Catalog,
    changes: &[Alteration],
    progress: &dyn Progress,
) -> Result<(), TableError> {
    copy_with(catalog, changes, AlterOptions::default(), progress).map(drop)
}

/// All rows are copied, and there are new indexes.
fn with_indexes() -> Vec<Alteration> {
    let new = new_indexes().into_iter().map(Alteration::AddIndex);
    [Alteration::Rebuild].into_iter().chain(new).collect()
}

fn of_type(name: &str, ty: &str, nullable: bool) -> Alteration {
    Alteration::ChangeColumn {
        name: name.into(),
        new: column(name, ty, nullable),
        place: None,
    }
}

fn indexes(catalog: &Catalog) -> usize {
    let table = catalog.table("d", "t").unwrap();
    table.definition.secondary.len()
}

#[test]
fn copies_are_right_whatever_others_do_meanwhile() {
    let (mut copied, mut refused) = (0, 0);
    for seed in 0..24 {
        let (_directory, catalog) = scratch();
        catalog.create_table(table()).unwrap();
        // Few numbers: duplicates come and go.
        let numbers = if seed % 3 == 0 { 300 } else { 1 << 30 };
        let writers = Writers::new(&catalog, seed, numbers);
        writers.work(600);
        let before = catalog.table("d", "t").unwrap().definition.primary.tree;
        let mut changes = with_indexes();
        if seed % 2 == 0 {
            changes.push(of_type("number", "bigint", true));
        }
        let result = copy(&catalog, &changes, &writers);
        writers.work(60);
        writers.end_all();
        writers.verify();
        match result {
            Ok(()) => {
                copied += 1;
                let table = catalog.table("d", "t").unwrap();
                assert_ne!(table.definition.primary.tree, before);
                assert_eq!(indexes(&catalog), 4);
                let phases = writers.phases();
                let is_copy = |phase: &&String| phase.starts_with("copying");
                assert_eq!(phases.iter().filter(is_copy).count(), 1);
            }
            Err(TableError::DuplicateKey { key, .. }) => {
                assert_eq!(key, "t.by_number");
                assert!(writers.had_duplicates(), "seed {seed}");
                refused += 1;
                // It can be tried again, without it.
                changes.remove(1);
                copy(&catalog, &changes, &writers).unwrap();
                writers.end_all();
                writers.verify();
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(
        copied > 0 && refused > 0,
        "{copied} copied, {refused} refused"
    );
}

#[test]
fn after_a_crash_in_any_phase_tables_are_copied_as_a_whole_or_not_at_all() {
    let (mut there, mut absent) = (0, 0);
    for seed in 0..60 {
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
            _ => disk.crash_after(Some(random.below(200))),
        }
        let mut result = Ok(());
        let mut times = 0;
        while result.is_ok() && !disk.is_crashed() && !writers.is_dead() && times < 5 {
            times += 1;
            let mut changes = with_indexes();
            if seed % 2 == 0 {
                // There and back: values are converted.
                let ty = ["int", "bigint"][times % 2];
                changes.push(of_type("number", ty, true));
            }
            result = copy(&catalog, &changes, &writers);
            if result.is_ok() {
                writers.work(20);
                writers.end_all();
                let names = new_indexes().into_iter().filter_map(|index| index.name);
                let drop: Vec<_> = names.map(Alteration::DropIndex).collect();
                result = alter(&catalog, "t", &drop);
            }
        }
        let models = writers.crashed();
        drop((writers, catalog));
        let disk = disk.power_loss(SimulationOptions::new(random.next()));
        let catalog = Catalog::open(Storage::open_on(disk, options()).unwrap()).unwrap();
        verify(&catalog, &models);
        match indexes(&catalog) {
            1 => absent += 1,
            4 => there += 1,
            other => panic!("seed {seed}: {other} indexes"),
        }
    }
    assert!(there > 0 && absent > 0, "{there} there, {absent} absent");
}

#[test]
fn a_copy_that_is_killed_or_fails_leaves_nothing_behind() {
    for seed in 0..12 {
        let (_directory, catalog) = scratch();
        catalog.create_table(table()).unwrap();
        let writers = Writers::new(&catalog, seed, 1 << 30);
        writers.work(400);
        writers.end_all();
        let before = trees(&catalog);
        let phase = ["copying", "building", "bringing"][seed as usize % 3];
        let killed = When::new(Some(phase), || writers.cancel());
        let both = Both(&writers, &killed);
        let result = copy(&catalog, &with_indexes(), &both);
        if !matches!(result, Err(TableError::Interrupted)) {
            assert!(result.is_ok(), "{result:?}");
            continue;
        }
        assert_eq!(trees(&catalog), before);
        writers.work(40);
        writers.end_all();
        writers.verify();
    }
    // A value that comes meanwhile, and fits no more.
    let (_directory, catalog) = with_numbers(&[1, 2, 3]);
    let before = trees(&catalog);
    let changes = [of_type("number", "tinyint", true)];
    let late = When::new(Some("copying"), || {
        let mut session = Session::begin(&catalog);
        session.set(2, 300);
        session.commit();
    });
    let error = copy(&catalog, &changes, &late).unwrap_err();
    assert_eq!(error.mysql_code(), 1264, "{error}");
    assert_eq!(trees(&catalog), before);
    let limited = AlterOptions {
        online_log_bytes: 100,
        ..AlterOptions::default()
    };
    let many = When::new(Some("copying"), || {
        let mut session = Session::begin(&catalog);
        (0..50).for_each(|id| session.insert(&numbered(100 + id, 7)));
        session.commit();
    });
    let error = copy_with(&catalog, &[Alteration::Rebuild], limited, &many).unwrap_err();
    assert_eq!(error.mysql_code(), 1799, "{error}");
    assert_eq!(trees(&catalog), before);
}

/// Values change places while they become the primary key.
#[test]
fn rows_get_another_primary_key_beside_writers() {
    let changes = [
        Alteration::DropPrimaryKey,
        Alteration::AddPrimaryKey(parts(&["number"])),
    ];
    let (_directory, catalog) = with_numbers(&[1, 2, 3, 4]);
    let moved = When::new(Some("copying"), || {
        let mut session = Session::begin(&catalog);
        session.set(1, 2);
        session.set(2, 3);
        session.set(3, 1);
        session.delete(4);
        session.insert(&numbered(5, 4));
        session.commit();
        let mut session = Session::begin(&catalog);
        session.set(5, 1);
        session.roll_back();
    });
    copy(&catalog, &changes, &moved).unwrap();
    let table = catalog.table("d", "t").unwrap();
    let found = values(&table).into_iter();
    let found: Vec<_> = found.map(|row| (row[1].clone(), row[0].clone())).collect();
    let pair = |number, id| (Value::Int(number), Value::Int(id));
    assert_eq!(found, [pair(1, 3), pair(2, 1), pair(3, 2), pair(4, 5)]);
    verify(&catalog, &[rows(&table)]);
    // A duplicate that is there at the end.
    let (_directory, catalog) = with_numbers(&[1, 2, 3]);
    let before = trees(&catalog);
    let late = When::new(Some("copying"), || {
        let mut session = Session::begin(&catalog);
        session.insert(&numbered(10, 2));
        session.commit();
    });
    let error = copy(&catalog, &changes, &late).unwrap_err();
    assert_eq!(error.to_string(), "Duplicate entry '2' for key 't.PRIMARY'");
    assert_eq!(trees(&catalog), before);
    // And one that has gone before anybody looks.
    let (_directory, catalog) = with_numbers(&[1, 2, 3]);
    let gone = When::new(Some("copying"), || {
        let mut session = Session::begin(&catalog);
        session.insert(&numbered(10, 2));
        session.commit();
        let mut session = Session::begin(&catalog);
        session.delete(2);
        session.commit();
    });
    copy(&catalog, &changes, &gone).unwrap();
    let table = catalog.table("d", "t").unwrap();
    assert_eq!(rows(&table).len(), 3);
    verify(&catalog, &[rows(&table)]);
}

/// The key of a row's copy may be of a long value, or of one that is converted.
#[test]
fn rows_are_found_by_keys_of_long_and_of_converted_values() {
    let long_row = |id, number, letter: &str| {
        let mut row = numbered(id, number);
        row[3] = text(&letter.repeat(20_000));
        row
    };
    let by_note = [
        Alteration::DropPrimaryKey,
        Alteration::AddPrimaryKey(parts(&["note(4)"])),
    ];
    for changes in [&by_note[..], &[of_type("id", "varchar(20)", false)]] {
        let (_directory, catalog) = with_numbers(&[]);
        let before = [
            long_row(1, 1, "a"),
            long_row(2, 2, "b"),
            long_row(3, 3, "c"),
        ];
        insert(&catalog, &before).unwrap();
        let changed = When::new(Some("copying"), || {
            let mut session = Session::begin(&catalog);
            session.set(1, 10);
            session.delete(2);
            session.insert(&long_row(4, 4, "b"));
            session.commit();
        });
        copy(&catalog, changes, &changed).unwrap();
        let table = catalog.table("d", "t").unwrap();
        let found = values(&table).into_iter().map(|row| {
            let Value::Text(note) = &row[3] else {
                panic!("a note is a text")
            };
            // A row that was set has the note of all numbered ones.
            assert_eq!(
                note.len(),
                if row[1] == Value::Int(10) { 4 } else { 20_000 }
            );
            (row[1].clone(), note[..1].to_string())
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by(|one, other| one.1.cmp(&other.1));
        let pair = |number, note: &str| (Value::Int(number), note.to_string());
        assert_eq!(found, [pair(4, "b"), pair(3, "c"), pair(10, "n")]);
    }
}

/// Columns come, go and change, and rows of each time are of the new shape; long values, too.
#[test]
fn rows_that_come_meanwhile_are_of_the_new_shape() {
    let (_directory, catalog) = with_numbers(&[1, 2, 3, 4]);
    let mut added = column("added", "int", false);
    added.default = Some(DefaultValue::Value(Value::Int(7)));
    let changes = [
        Alteration::AddColumn {
            column: added,
            place: ColumnPlace::First,
        },
        Alteration::DropColumn("name".into()),
        of_type("number", "varchar(10)", true),
    ];
    let long = "long ".repeat(4_000);
    let when = When::new(Some("copying"), || {
        let mut session = Session::begin(&catalog);
        let mut row = numbered(10, 10);
        row[3] = text(&long);
        session.insert(&row);
        session.insert(&numbered(11, 11));
        session.set(1, 100);
        session.delete(2);
        session.commit();
    });
    let again = When::new(Some("bringing"), || {
        let mut session = Session::begin(&catalog);
        session.delete(10);
        session.set(11, 12);
        let mut row = numbered(12, 13);
        row[3] = text(&long);
        session.insert(&row);
        session.commit();
    });
    copy(&catalog, &changes, &Both(&when, &again)).unwrap();
    drop((when, again));
    let row = |id, number: &str, note: &str| {
        vec![Value::Int(7), Value::Int(id), text(number), text(note)]
    };
    let table = catalog.table("d", "t").unwrap();
    assert_eq!(
        values(&table),
        [
            row(1, "100", "note"),
            row(3, "3", "note"),
            row(4, "4", "note"),
            row(11, "12", "note"),
            row(12, "13", &long)
        ]
    );
    verify(&catalog, &[rows(&table)]);
}

/// The next value is what it is, whatever rows there are.
#[test]
fn auto_increment_goes_on_beside_a_copy() {
    let (_directory, catalog) = scratch();
    let mut request = table();
    request.columns[0].auto_increment = true;
    catalog.create_table(request).unwrap();
    let row = |id: Value| vec![id, Value::Int(1), text("name"), text("note")];
    for _ in 0..3 {
        insert(&catalog, &[row(Value::Null)]).unwrap();
    }
    let when = When::new(Some("copying"), || {
        let mut session = Session::begin(&catalog);
        session.insert(&row(Value::Null));
        session.insert(&row(Value::Int(50)));
        session.commit();
        let mut session = Session::begin(&catalog);
        session.insert(&row(Value::Int(90)));
        session.roll_back();
    });
    copy(&catalog, &[Alteration::Rebuild], &when).unwrap();
    drop(when);
    let table = catalog.table("d", "t").unwrap();
    assert_eq!(table.next_auto_increment().unwrap(), Some(91));
    insert(&catalog, &[row(Value::Null)]).unwrap();
    let table = catalog.table("d", "t").unwrap();
    let ids = values(&table).into_iter().map(|row| row[0].clone());
    let ids: Vec<Value> = ids.collect();
    assert_eq!(ids, [1, 2, 3, 4, 50, 91].map(Value::Int));
}

/// A CHECK is asked for rows of each time.
#[test]
fn rows_that_come_meanwhile_are_tested() {
    let tested = || AlterOptions {
        row_test: Some(RowTest(Arc::new(|row: &[Value]| match &row[1] {
            Value::Int(number) if *number > 100 => Err(TableError::InvalidUseOfNull),
            _ => Ok(()),
        }))),
        ..AlterOptions::default()
    };
    let changes = [of_type("number", "bigint", true)];
    let (_directory, catalog) = with_numbers(&[1, 2, 3]);
    let before = trees(&catalog);
    let late = When::new(Some("copying"), || {
        let mut session = Session::begin(&catalog);
        session.set(2, 101);
        session.commit();
    });
    let refused = copy_with(&catalog, &changes, tested(), &late).unwrap_err();
    assert!(matches!(refused, TableError::InvalidUseOfNull));
    assert_eq!(trees(&catalog), before);
    // What an earlier state had is not asked again.
    let gone = When::new(Some("copying"), || {
        let mut session = Session::begin(&catalog);
        session.set(2, 5);
        session.commit();
    });
    let found = copy_with(&catalog, &changes, tested(), &gone).unwrap_err();
    assert!(matches!(found, TableError::InvalidUseOfNull));
    let mut session = Session::begin(&catalog);
    session.set(2, 6);
    session.commit();
    let altered = copy_with(&catalog, &changes, tested(), &NoProgress).unwrap();
    assert_eq!((altered.work, altered.rows), (AlterWork::Copy, 3));
}

/// A CHECK that is new, alone and with an index.
#[test]
fn rows_that_come_meanwhile_are_tested_for_a_new_check() {
    let small = AlterOptions {
        row_test: Some(RowTest(Arc::new(|row: &[Value]| match &row[1] {
            Value::Int(number) if *number > 100 => Err(TableError::InvalidUseOfNull),
            _ => Ok(()),
        }))),
        beside_writers: true,
        ..AlterOptions::default()
    };
    let check = Alteration::AddCheck(CheckSpec {
        name: Some("small".into()),
        expression: "number <= 100".into(),
        columns: vec!["number".into()],
        enforced: true,
        of_column: None,
    });
    let by_number = Alteration::AddIndex(index("by_number", &["number"], false));
    for changes in [vec![check.clone()], vec![by_number, check]] {
        for (number, is_kept) in [(100, true), (101, false)] {
            let (_directory, catalog) = with_numbers(&[1, 2, 3]);
            let before = trees(&catalog);
            let table = catalog.table("d", "t").unwrap();
            assert!(Catalog::admits_writers(&table, &changes).unwrap());
            // When the rows of the snapshot are read.
            let late = When::new(Some("testing"), || {
                let mut session = Session::begin(&catalog);
                session.set(2, number);
                session.insert(&numbered(10, 10));
                session.commit();
                let mut session = Session::begin(&catalog);
                session.set(10, 500);
                session.roll_back();
            });
            let altered = catalog.alter_table(("d", "t"), &changes, &small, &late, LONG);
            drop(late);
            let table = catalog.table("d", "t").unwrap();
            assert_eq!(rows(&table).len(), 4);
            match altered {
                Ok(altered) => assert!(is_kept && altered.rows >= 3, "{altered:?}"),
                Err(error) => {
                    assert!(!is_kept && matches!(error, TableError::InvalidUseOfNull));
                    assert_eq!(trees(&catalog), before);
                }
            }
            assert_eq!(table.definition.checks.len(), usize::from(is_kept));
            verify(&catalog, &[rows(&table)]);
        }
    }
}

#[test]
fn what_would_not_be_found_in_the_copy_is_copied_alone() {
    let (_directory, catalog) = with_numbers(&[1, 2, 3]);
    let table = catalog.table("d", "t").unwrap();
    let mut numbered = column("number", "int", false);
    numbered.auto_increment = true;
    let by_number = || Alteration::AddIndex(index("by_number", &["number"], false));
    for changes in [
        vec![Alteration::DropPrimaryKey],
        vec![
            Alteration::Rebuild,
            Alteration::RenameColumn {
                name: "number".into(),
                new: "other".into(),
            },
        ],
        vec![
            Alteration::ChangeColumn {
                name: "number".into(),
                new: numbered,
                place: None,
            },
            by_number(),
        ],
        vec![Alteration::Rebuild, Alteration::SetAutoIncrement(5)],
    ] {
        assert!(
            !Catalog::admits_writers(&table, &changes).unwrap(),
            "{changes:?}"
        );
    }
    let changes = vec![Alteration::Rebuild, by_number()];
    assert!(Catalog::admits_writers(&table, &changes).unwrap());
}

#[test]
fn writers_in_threads_lose_nothing_to_a_copy() {
    let (_directory, catalog) = with_numbers(&[]);
    let done = AtomicBool::new(false);
    // Each counts its rows up: how far it has come is in its row at the end.
    let counts = std::thread::scope(|scope| {
        let ends = Ends(&done);
        let counting = (0..3_i64).map(|thread| {
            let (catalog, done) = (&catalog, &done);
            scope.spawn(move || {
                let request = LockRequest {
                    is_first: true,
                    session: 10 + thread as u64,
                    ..LockRequest::from(LONG)
                };
                let mut count = 0;
                while !done.load(Ordering::Relaxed) {
                    let guard = catalog.open_for_row_writes("d", "t", request).unwrap();
                    let mut transaction = catalog.storage().begin_transaction();
                    for row in 0..3 {
                        let row = numbered(thread * 10 + row, count + 1);
                        let key = guard.encode_primary_key(&row);
                        match guard.read_row(&key).unwrap() {
                            None => drop(guard.insert(&mut transaction, &row).unwrap()),
                            Some(old) => {
                                assert_eq!(old[1], Value::Int(count));
                                let changed = &mut transaction;
                                guard.replace(changed, &key, &old, &row).unwrap();
                            }
                        }
                    }
                    transaction.commit().unwrap();
                    drop(guard);
                    count += 1;
                }
                count
            })
        });
        let counting: Vec<_> = counting.collect();
        for _ in 0..20 {
            copy(&catalog, &[Alteration::Rebuild], &NoProgress).unwrap();
        }
        drop(ends);
        let counts = counting.into_iter().map(|thread| thread.join().unwrap());
        counts.collect::<Vec<i64>>()
    });
    let table = catalog.table("d", "t").unwrap();
    for row in values(&table) {
        let Value::Int(id) = row[0] else {
            panic!("{row:?}")
        };
        assert_eq!(row[1], Value::Int(counts[id as usize / 10]));
    }
    verify(&catalog, &[rows(&table)]);
}

/// Writers that change all rows again and again, faster than they are copied.
#[test]
fn a_copy_ends_beside_writers_of_rows_with_long_values() {
    const ROWS: i64 = 300;
    let long_row = |id, number| {
        let mut row = numbered(id, number);
        row[3] = text(&"long".repeat(5_000));
        row
    };
    let (_directory, catalog) = with_numbers(&[]);
    let rows_before: Vec<_> = (0..ROWS).map(|id| long_row(id, 0)).collect();
    insert(&catalog, &rows_before).unwrap();
    let done = AtomicBool::new(false);
    let expected = std::thread::scope(|scope| {
        let ends = Ends(&done);
        let writing = (0..3_i64).map(|thread| {
            let (catalog, done) = (&catalog, &done);
            scope.spawn(move || {
                let request = LockRequest {
                    is_first: true,
                    session: 10 + thread as u64,
                    ..LockRequest::from(LONG)
                };
                let mut numbers = vec![0; ROWS as usize];
                let mut random = Random::new(thread as u64);
                while !done.load(Ordering::Relaxed) {
                    let guard = catalog.open_for_row_writes("d", "t", request).unwrap();
                    let mut transaction = catalog.storage().begin_transaction();
                    // Each has rows of its own.
                    let id = random.below(ROWS as u64 / 3) as i64 * 3 + thread;
                    numbers[id as usize] += 1;
                    let row = long_row(id, numbers[id as usize]);
                    let key = guard.encode_primary_key(&row);
                    let old = guard.read_row(&key).unwrap().unwrap();
                    let changed = guard.replace(&mut transaction, &key, &old, &row);
                    changed.unwrap();
                    transaction.commit().unwrap();
                }
                numbers
            })
        });
        let writing: Vec<_> = writing.collect();
        for _ in 0..3 {
            copy(&catalog, &[Alteration::Rebuild], &NoProgress).unwrap();
        }
        drop(ends);
        let numbers = writing.into_iter().map(|thread| thread.join().unwrap());
        numbers.collect::<Vec<Vec<i64>>>()
    });
    let table = catalog.table("d", "t").unwrap();
    let rows_after = values(&table);
    assert_eq!(rows_after.len(), ROWS as usize);
    for (id, row) in rows_after.into_iter().enumerate() {
        assert!(row == long_row(id as i64, expected[id % 3][id]), "row {id}");
    }
    verify(&catalog, &[rows(&table)]);
}
