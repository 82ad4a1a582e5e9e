//! Rows of tables on real storage: kept over restarts, refused when duplicate, counted, changed side by side.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{
    Disk, KeyRange, LockMode, LockWait, RangeLock, ReadView, Storage, StorageError, StorageOptions,
};
use sheaf_table::{Alteration, Catalog, Column, CreateTable, NoProgress, Table, TableError};
use sheaf_types::{ColumnType, Value};

use crate::fixture::*;

#[test]
fn rows_and_definitions_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let all = vec![
        row(1, "Ann", "first", 150),
        row(2, "bob", "", -5),
        vec![Value::Int(7), Value::Null, Value::Null, Value::Null],
    ];
    let definition = {
        let catalog = open(directory.path());
        catalog.create_database("d").unwrap();
        let table = catalog.create_table(example()).unwrap();
        insert(&catalog, &all).unwrap();
        catalog.storage().close().unwrap();
        table.definition.clone()
    };
    let catalog = open(directory.path());
    assert_eq!(catalog.databases(), ["d"]);
    let table = catalog.table("d", "t").unwrap();
    assert_eq!(table.definition, definition);
    assert_eq!(values(&table), all);
}

/// Values of keys as long as MySQL declares them, with zero bytes and letters beyond ASCII, beside values that leave
/// their rows.
#[test]
fn keys_of_the_longest_length_survive_a_crash() {
    let open_on = |disk: &Arc<SimulatedDisk>| {
        let options = StorageOptions {
            pool_bytes: 8 << 20,
            ..StorageOptions::default()
        };
        let disk = Arc::clone(disk) as Arc<dyn Disk>;
        Catalog::open(Storage::open_on(disk, options).unwrap()).unwrap()
    };
    let bytes = |first: u8, last: u8| {
        let mut bytes = vec![first; 3072];
        bytes[3071] = last;
        bytes[100..1000].fill(if last.is_multiple_of(2) { 0 } else { first });
        Value::Bytes(bytes)
    };
    let note = text(&"n".repeat(5_000));
    let by_bytes: Vec<Vec<Value>> = (0..60u8)
        .map(|n| vec![bytes(1 + n % 3, n), note.clone()])
        .collect();
    let by_number: Vec<Vec<Value>> = (0..60u8)
        .map(|n| {
            let letter = ["a", "\u{e4}", "\u{8a9e}", "\u{1f600}"][usize::from(n % 4)];
            let name = text(&format!("{}{n:02}", letter.repeat(766)));
            vec![Value::Int(n.into()), name, bytes(n + 1, 1), note.clone()]
        })
        .collect();
    let tables = [
        (
            "t",
            "k",
            &by_bytes,
            vec![column("k", "varbinary(3072)", false)],
        ),
        (
            "u",
            "id",
            &by_number,
            vec![
                column("id", "int", false),
                column("name", "varchar(768)", true),
                column("k", "varbinary(3072)", true),
            ],
        ),
    ];
    let mut disk = SimulatedDisk::new(SimulationOptions::new(1));
    let catalog = open_on(&disk);
    catalog.create_database("d").unwrap();
    for (name, primary, _, mut columns) in tables.clone() {
        columns.push(column("note", "text", true));
        let mut request = CreateTable::new("d", name, columns);
        request.primary_key = Some(parts(&[primary]));
        if name == "u" {
            request.indexes = vec![
                index("by_name", &["name"], false),
                index("by_bytes", &["k"], true),
            ];
        }
        catalog.create_table(request).unwrap();
    }
    let mut catalog = catalog;
    for (seed, (name, _, wanted, _)) in (2..).zip(tables) {
        let table = catalog.open_for_write("d", name, NO_WAIT).unwrap();
        let mut transaction = catalog.storage().begin_transaction();
        for row in wanted.iter().rev() {
            table.insert(&mut transaction, row).unwrap();
        }
        let duplicate = table.insert(&mut transaction, &wanted[7]).unwrap_err();
        assert_eq!(duplicate.mysql_code(), 1062);
        transaction.commit().unwrap();
        drop(table);
        drop(catalog);
        disk = disk.power_loss(SimulationOptions::new(seed));
        catalog = open_on(&disk);
        let mut wanted = wanted.clone();
        if name == "t" {
            wanted.sort_by(|a, b| match (&a[0], &b[0]) {
                (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
                _ => unreachable!("keys are bytes"),
            });
        }
        let table = catalog.table("d", name).unwrap();
        assert!(values(&table) == wanted);
    }
}

#[test]
fn definitions_longer_than_a_page_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let labels: Vec<String> = (0..3000).map(|i| format!("label number {i}")).collect();
    let ty = ColumnType::Enum {
        labels: labels.into(),
        collation: Default::default(),
    };
    {
        let catalog = open(directory.path());
        catalog.create_database("d").unwrap();
        catalog
            .create_table(CreateTable::new(
                "d",
                "t",
                vec![Column::new("e", ty.clone(), true)],
            ))
            .unwrap();
        catalog.storage().close().unwrap();
    }
    let catalog = open(directory.path());
    assert_eq!(
        catalog.table("d", "t").unwrap().definition.columns[0].ty,
        ty
    );
    drop_table(&catalog, "t").unwrap();
    assert_eq!(entries(&catalog.storage().catalog_tree()).len(), 2);
}

#[test]
fn duplicates_are_refused_with_their_values_and_leave_nothing() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    insert(&catalog, &[row(1, "Ann", "a", 1), row(2, "Bob", "b", 2)]).unwrap();
    let table = catalog.table("d", "t").unwrap();
    let before = rows(&table);
    for (row, message) in [
        (
            row(1, "Cid", "c", 3),
            "Duplicate entry '1' for key 't.PRIMARY'",
        ),
        (
            row(3, "ANN", "c", 3),
            "Duplicate entry 'ANN' for key 't.by_name'",
        ),
    ] {
        let error = insert(&catalog, &[self::row(9, "Zoe", "z", 9), row]).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(
            (error.mysql_code(), error.code().sqlstate()),
            (1062, "23000")
        );
        assert_eq!(rows(&table), before);
    }
    // A row that fails alone is taken back alone.
    let guard = catalog.open_for_write("d", "t", NO_WAIT).unwrap();
    let mut transaction = catalog.storage().begin_transaction();
    guard
        .insert(&mut transaction, &row(5, "Eve", "e", 5))
        .unwrap();
    assert!(
        guard
            .insert(&mut transaction, &row(6, "eve", "f", 6))
            .is_err()
    );
    transaction.commit().unwrap();
    assert_eq!(rows(&table).len(), 3);
}

/// Keys that are short enough alone may be too long with the primary key. The error says which.
#[test]
fn a_key_that_is_too_long_with_its_primary_key_is_named() {
    let (_directory, catalog) = scratch();
    let columns = ["a", "b"].map(|name| column(name, "varbinary(3072)", false));
    let mut request = CreateTable::new("d", "t", columns.into());
    request.primary_key = Some(parts(&["a"]));
    request.indexes = vec![index("by_b", &["b"], false)];
    catalog.create_table(request).unwrap();
    let row = |bytes: [u8; 2], length| bytes.map(|byte| Value::Bytes(vec![byte; length])).to_vec();
    let is_said = |error: TableError, bytes: usize, key: &str| {
        assert_eq!(error.mysql_code(), 1071);
        let expected = format!(
            "Specified key was too long; a row needs {bytes} bytes in key '{key}', those of its primary key included, \
             and the limit is 4880 bytes"
        );
        assert_eq!(error.to_string(), expected);
    };
    let refused = insert(&catalog, &[row(*b"ab", 3_000)]);
    is_said(refused.unwrap_err(), 6_004, "t.by_b");
    // A zero byte takes two bytes.
    let refused = insert(&catalog, &[row(*b"\0b", 3_000)]);
    is_said(refused.unwrap_err(), 6_002, "t.PRIMARY");
    assert_eq!(rows(&catalog.table("d", "t").unwrap()).len(), 0);
    drop_index(&catalog, "t", "by_b").unwrap();
    insert(&catalog, &[row(*b"ab", 3_000)]).unwrap();
    let add = Alteration::AddIndex(index("by_b", &["b"], false));
    is_said(alter(&catalog, "t", &[add]).unwrap_err(), 6_004, "t.by_b");
}

#[test]
fn null_is_no_duplicate() {
    let (_directory, catalog) = scratch();
    let table = catalog.create_table(example()).unwrap();
    let nameless = |id| vec![Value::Int(id), Value::Null, Value::Null, Value::Null];
    insert(&catalog, &[nameless(1), nameless(2)]).unwrap();
    assert_eq!(rows(&table).len(), 2);
}

#[test]
fn auto_increment_counts_as_mysql_counts() {
    let directory = tempfile::tempdir().unwrap();
    let insert_id = |catalog: &Arc<Catalog>, id: Value| {
        let table = catalog.open_for_write("d", "t", NO_WAIT).unwrap();
        let mut transaction = catalog.storage().begin_transaction();
        let outcome = table
            .insert(
                &mut transaction,
                &[id, Value::Null, Value::Null, Value::Null],
            )
            .unwrap();
        transaction.commit().unwrap();
        outcome.auto_increment
    };
    {
        let catalog = open(directory.path());
        catalog.create_database("d").unwrap();
        catalog.create_table(example()).unwrap();
        assert_eq!(insert_id(&catalog, Value::Null), Some(1));
        assert_eq!(insert_id(&catalog, Value::Int(0)), None);
        assert_eq!(insert_id(&catalog, Value::Null), Some(2));
        assert_eq!(insert_id(&catalog, Value::Int(10)), None);
        assert_eq!(insert_id(&catalog, Value::Int(-3)), None);
        assert_eq!(insert_id(&catalog, Value::Null), Some(11));
        catalog.save_auto_increments().unwrap();
        catalog.storage().close().unwrap();
    }
    let catalog = open(directory.path());
    assert_eq!(insert_id(&catalog, Value::Null), Some(12));
    insert_id(&catalog, Value::Int(i64::from(i32::MAX)));
    let table = catalog.open_for_write("d", "t", NO_WAIT).unwrap();
    let mut transaction = catalog.storage().begin_transaction();
    let full = table.insert(
        &mut transaction,
        &[Value::Null, Value::Null, Value::Null, Value::Null],
    );
    // The last value is given out again.
    assert!(
        matches!(full, Err(TableError::DuplicateKey { .. })),
        "{full:?}"
    );
}

/// The last value is repeated where the counter has come to it, and not where the counter was set beyond it.
#[test]
fn a_counter_that_was_set_beyond_its_column_gives_nothing_out() {
    let (_directory, catalog) = scratch();
    let greatest = i32::MAX as u64;
    for (start, given) in [
        (greatest, Some(greatest)),
        (greatest + 1, None),
        (3_000_000_000, None),
    ] {
        let table = CreateTable {
            auto_increment_start: start,
            ..example()
        };
        catalog.create_table(table).unwrap();
        let table = catalog.open_for_write("d", "t", NO_WAIT).unwrap();
        let mut transaction = catalog.storage().begin_transaction();
        let row = [Value::Null, Value::Null, Value::Null, Value::Null];
        let mut insert = || table.insert(&mut transaction, &row);
        match given {
            Some(_) => {
                assert_eq!(insert().unwrap().auto_increment, given);
                assert!(matches!(insert(), Err(TableError::DuplicateKey { .. })));
            }
            None => {
                let refused = insert();
                assert!(matches!(refused, Err(TableError::AutoIncrementExhausted)));
            }
        }
        let repeats = table.with_last_auto_increment(&row).unwrap().is_some();
        assert_eq!(repeats, given.is_some());
        transaction.rollback().unwrap();
        drop(table);
        drop_table(&catalog, "t").unwrap();
    }
}

#[test]
fn auto_increment_survives_a_restart_without_its_rows() {
    let directory = tempfile::tempdir().unwrap();
    let insert = |catalog: &Arc<Catalog>| {
        let table = catalog.open_for_write("d", "t", NO_WAIT).unwrap();
        let mut transaction = catalog.storage().begin_transaction();
        let row = [Value::Null, Value::Null, Value::Null, Value::Null];
        let id = table.insert(&mut transaction, &row).unwrap();
        transaction.commit().unwrap();
        id.auto_increment.unwrap()
    };
    let close = |catalog: Arc<Catalog>| {
        catalog.save_auto_increments().unwrap();
        catalog.storage().close().unwrap();
    };
    {
        let catalog = open(directory.path());
        catalog.create_database("d").unwrap();
        catalog.create_table(example()).unwrap();
        assert_eq!([insert(&catalog), insert(&catalog)], [1, 2]);
        let table = catalog.open_for_write("d", "t", NO_WAIT).unwrap();
        let mut transaction = catalog.storage().begin_transaction();
        let row = [Value::Int(2), Value::Null, Value::Null, Value::Null];
        let key = table.encode_primary_key(&row);
        assert!(table.delete(&mut transaction, &key).unwrap());
        transaction.commit().unwrap();
        drop(table);
        close(catalog);
    }
    // Opened and closed without a use, the counter is not lost.
    close(open(directory.path()));
    let catalog = open(directory.path());
    assert_eq!(insert(&catalog), 3);
    // The table of the same name is another one.
    drop_table(&catalog, "t").unwrap();
    catalog.create_table(example()).unwrap();
    assert_eq!(insert(&catalog), 1);
}

/// The machine loses its power when rows with the latest values have been deleted, durably.
#[test]
fn auto_increment_gives_nothing_out_again_after_a_crash() {
    let open_on = |disk| {
        let options = StorageOptions {
            pool_bytes: 8 << 20,
            ..StorageOptions::default()
        };
        Catalog::open(Storage::open_on(disk, options).unwrap()).unwrap()
    };
    let insert = |catalog: &Catalog, id: Value| {
        let table = catalog.open_for_row_writes("d", "t", NO_WAIT).unwrap();
        let mut transaction = catalog.storage().begin_transaction();
        let row = [id, Value::Null, Value::Null, Value::Null];
        let outcome = table.insert(&mut transaction, &row).unwrap();
        transaction.commit().unwrap();
        outcome.auto_increment
    };
    let delete_all = |catalog: &Catalog| {
        let table = catalog.open_for_row_writes("d", "t", NO_WAIT).unwrap();
        let mut transaction = catalog.storage().begin_transaction();
        for (key, _) in entries(&table.clustered) {
            assert!(table.delete(&mut transaction, &key).unwrap());
        }
        transaction.commit().unwrap();
    };
    let mut disk = SimulatedDisk::new(SimulationOptions::new(1));
    let catalog = open_on(Arc::clone(&disk) as Arc<dyn Disk>);
    catalog.create_database("d").unwrap();
    catalog.create_table(example()).unwrap();
    disk = disk.power_loss(SimulationOptions::new(1));
    let mut given = 0;
    for (seed, brings) in [(2, None), (3, Some(50_000)), (4, None)] {
        let catalog = open_on(Arc::clone(&disk) as Arc<dyn Disk>);
        // More than the mark is ahead.
        for _ in 0..1_500 {
            let next = insert(&catalog, Value::Null).unwrap();
            assert!(next > given);
            given = next;
        }
        if let Some(brought) = brings {
            insert(&catalog, Value::Int(brought as i64));
            given = brought;
        }
        delete_all(&catalog);
        disk = disk.power_loss(SimulationOptions::new(seed));
    }
    // What is left out is little; and a clean shutdown leaves nothing out.
    assert!(given < 60_000);
    for _ in 0..2 {
        let catalog = open_on(Arc::clone(&disk) as Arc<dyn Disk>);
        let next = insert(&catalog, Value::Null).unwrap();
        assert!(next > given && next <= given + 1_001);
        given = next;
        delete_all(&catalog);
        catalog.save_auto_increments().unwrap();
        catalog.storage().close().unwrap();
        drop(catalog);
        let catalog = open_on(Arc::clone(&disk) as Arc<dyn Disk>);
        assert_eq!(insert(&catalog, Value::Null), Some(given + 1));
        given += 1;
        delete_all(&catalog);
        disk = disk.power_loss(SimulationOptions::new(5));
    }
    // So are the values of rows that are loaded.
    let catalog = open_on(Arc::clone(&disk) as Arc<dyn Disk>);
    let loaded = (0..10).map(|_| vec![Value::Null, Value::Null, Value::Null, Value::Null]);
    load(&catalog, loaded, 1 << 20, Arc::new(NoProgress)).unwrap();
    let rows = rows(&catalog.table("d", "t").unwrap());
    delete_all(&catalog);
    disk = disk.power_loss(SimulationOptions::new(6));
    let catalog = open_on(Arc::clone(&disk) as Arc<dyn Disk>);
    let next = insert(&catalog, Value::Null).unwrap();
    assert!(rows.values().all(|row| row[0] != Value::Int(next as i64)));
    assert!(next > given + 10);
}

/// After a restart numbers go on behind the largest one; one that is being deleted may come back.
#[test]
fn numbers_of_rows_that_are_being_deleted_are_not_given_out() {
    let (_directory, catalog) = scratch();
    // No primary key: rows have hidden ids.
    let columns = vec![column("n", "int", false), column("note", "text", true)];
    catalog
        .create_table(CreateTable::new("d", "t", columns))
        .unwrap();
    let long = |n| vec![Value::Int(n), text(&"x".repeat(5_000))];
    insert(&catalog, &[long(1), long(2), long(3)]).unwrap();

    let catalog = Catalog::open(catalog.storage().clone()).unwrap();
    let table = catalog.open_for_row_writes("d", "t", NO_WAIT).unwrap();
    let mut deleting = catalog.storage().begin_transaction();
    for (key, _) in entries(&table.clustered).into_iter().skip(1) {
        assert!(table.delete(&mut deleting, &key).unwrap());
    }
    let mut inserting = catalog.storage().begin_transaction();
    inserting.set_lock_wait(LockWait::No);
    table.insert(&mut inserting, &long(4)).unwrap();
    deleting.rollback().unwrap();
    table.insert(&mut inserting, &long(5)).unwrap();
    inserting.commit().unwrap();
    assert_eq!(rows(&table).len(), 5);
}

#[test]
fn a_row_in_the_way_is_found_by_any_unique_key() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    let row = |id: i64, name: &str| {
        vec![
            Value::Int(id),
            Value::Text(name.into()),
            Value::Null,
            Value::Null,
        ]
    };
    insert(&catalog, &[row(1, "one"), row(2, "two")]).unwrap();
    let table = catalog.table("d", "t").unwrap();
    let conflict = |row: &[Value]| {
        let key = table.conflicting_row(row).unwrap()?;
        let found = table.read_row(&key).unwrap().unwrap();
        Some(found[0].clone())
    };
    assert_eq!(conflict(&row(1, "new")), Some(Value::Int(1)));
    assert_eq!(conflict(&row(9, "TWO")), Some(Value::Int(2)));
    // The primary key is looked at first.
    assert_eq!(conflict(&row(1, "two")), Some(Value::Int(1)));
    assert_eq!(conflict(&row(9, "new")), None);
    // NULL equals nothing, and a value that is still to be given out is in nobody's way.
    let nameless = vec![Value::Int(9), Value::Null, Value::Null, Value::Null];
    assert_eq!(conflict(&nameless), None);
    assert_eq!(conflict(&row(0, "new")), None);
    let mut generated = row(0, "one");
    generated[0] = Value::Null;
    assert_eq!(conflict(&generated), Some(Value::Int(1)));
}

#[test]
fn tables_without_a_primary_key_keep_the_order_of_insertion() {
    let directory = tempfile::tempdir().unwrap();
    let row = |v: i64| vec![Value::Int(v)];
    {
        let catalog = open(directory.path());
        catalog.create_database("d").unwrap();
        let mut request = CreateTable::new("d", "t", vec![column("v", "int", true)]);
        request.indexes = vec![index("v", &["v"], false)];
        catalog.create_table(request).unwrap();
        insert(&catalog, &[row(3), row(1), row(3)]).unwrap();
        catalog.storage().close().unwrap();
    }
    let catalog = open(directory.path());
    insert(&catalog, &[row(2)]).unwrap();
    let table = catalog.table("d", "t").unwrap();
    assert_eq!(values(&table), [row(3), row(1), row(3), row(2)]);
    let mut primary_key = Vec::new();
    let first = entries(&table.secondary[0]).remove(0).0;
    table.secondary_layouts[0]
        .primary_key_into(&first, &mut primary_key)
        .unwrap();
    assert_eq!(table.read_row(&primary_key).unwrap(), Some(row(1)));
}

#[test]
fn long_values_live_outside_of_their_rows() {
    let (_directory, catalog) = scratch();
    let table = catalog.create_table(example()).unwrap();
    let long = "ß".repeat(100_000);
    insert(
        &catalog,
        &[
            row(1, "a", &long, 1),
            row(2, "b", "short", 2),
            row(3, "c", &"x".repeat(5000), 3),
        ],
    )
    .unwrap();
    let key =
        |id| table.encode_primary_key(&[Value::Int(id), Value::Null, Value::Null, Value::Null]);
    assert_eq!(table.read_row(&key(1)).unwrap().unwrap()[2], text(&long));
    assert_eq!(rows(&table).len(), 3);
    let change = |change: &dyn Fn(&Table, &mut sheaf_storage::Transaction)| {
        let table = catalog.open_for_write("d", "t", NO_WAIT).unwrap();
        let mut transaction = catalog.storage().begin_transaction();
        change(&table, &mut transaction);
        transaction.commit().unwrap();
    };
    change(&|table, transaction| {
        assert!(
            table
                .update(transaction, &key(3), &row(3, "c", "now short", 3))
                .unwrap()
        )
    });
    change(&|table, transaction| {
        assert!(
            table
                .update(transaction, &key(2), &row(2, "b", &long, 2))
                .unwrap()
        )
    });
    change(&|table, transaction| assert!(table.delete(transaction, &key(1)).unwrap()));
    assert_eq!(
        values(&table),
        [row(2, "b", &long, 2), row(3, "c", "now short", 3)]
    );
}

#[derive(Debug, Clone)]
enum Change {
    Insert(Vec<Value>),
    Update(i64, Vec<Value>),
    Delete(i64),
    RollBack,
}

fn any_row() -> impl Strategy<Value = Vec<Value>> {
    let name = prop_oneof![Just(Value::Null), "[a-cA-C]{1,2}".prop_map(Value::Text)];
    let note = prop_oneof![
        Just(text("")),
        "[ab]{3,6}".prop_map(Value::Text),
        Just(text(&"n".repeat(4500)))
    ];
    (1..20i64, name, note, 0..5i128)
        .prop_map(|(id, name, note, cents)| vec![Value::Int(id), name, note, price(cents)])
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => any_row().prop_map(Change::Insert),
        3 => (1..20i64, any_row()).prop_map(|(id, row)| Change::Update(id, row)),
        2 => (1..20i64).prop_map(Change::Delete),
        1 => Just(Change::RollBack),
    ]
}

/// What the table should hold: rows by id, names unique without case.
#[derive(Clone, Default)]
struct Model(BTreeMap<i64, Vec<Value>>);

impl Model {
    fn apply(&mut self, change: &Change) -> bool {
        let id = |row: &[Value]| row[0].as_i128().unwrap() as i64;
        let (replaced, row) = match change {
            Change::Insert(row) => (None, row),
            Change::Update(id, row) if self.0.contains_key(id) => (Some(*id), row),
            Change::Delete(id) => return self.0.remove(id).is_some(),
            _ => return false,
        };
        let same_name = |other: &Vec<Value>| match (&other[1], &row[1]) {
            (Value::Text(a), Value::Text(b)) => a.eq_ignore_ascii_case(b),
            _ => false,
        };
        let others = || self.0.iter().filter(|(id, _)| Some(**id) != replaced);
        if others().any(|(other, values)| *other == id(row) || same_name(values)) {
            return false;
        }
        replaced.map(|id| self.0.remove(&id));
        self.0.insert(id(row), row.clone());
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Each change is applied or refused as the model says, and all indexes agree with the rows.
    #[test]
    fn tables_do_what_a_map_does(changes in vec(any_change(), 1..60)) {
        let (_directory, catalog) = scratch();
        catalog.create_table(example()).unwrap();
        let table = catalog.open_for_write("d", "t", NO_WAIT).unwrap();
        let mut model = Model::default();
        let mut committed = model.clone();
        let mut transaction = catalog.storage().begin_transaction();
        for change in changes {
            let key = |id: i64| table.encode_primary_key(&[Value::Int(id), Value::Null, Value::Null, Value::Null]);
            let done = match &change {
                Change::Insert(row) => table.insert(&mut transaction, row).is_ok(),
                Change::Update(id, row) => table.update(&mut transaction, &key(*id), row).unwrap_or(false),
                Change::Delete(id) => table.delete(&mut transaction, &key(*id)).unwrap(),
                Change::RollBack => {
                    std::mem::replace(&mut transaction, catalog.storage().begin_transaction()).rollback().unwrap();
                    model = committed.clone();
                    false
                }
            };
            prop_assert_eq!(done, model.apply(&change), "{:?}", change);
            if model.0.len() % 3 == 0 {
                std::mem::replace(&mut transaction, catalog.storage().begin_transaction()).commit().unwrap();
                committed = model.clone();
            }
        }
        transaction.commit().unwrap();
        prop_assert_eq!(values(&table), model.0.into_values().collect::<Vec<_>>());
    }
}

#[test]
fn transactions_change_rows_of_one_table_side_by_side() {
    fn is_locked<T: std::fmt::Debug>(result: Result<T, TableError>) -> bool {
        matches!(
            result,
            Err(TableError::Storage(StorageError::LockNotAvailable))
        )
    }
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    let long = "a long note ".repeat(1_000);
    insert(
        &catalog,
        &[row(1, "one", &long, 100), row(2, "two", "", 200)],
    )
    .unwrap();

    let open = || catalog.open_for_row_writes("d", "t", NO_WAIT).unwrap();
    let (table, _also) = (open(), open());
    assert!(catalog.open_for_write("d", "t", NO_WAIT).is_err());
    let key = |id| table.encode_primary_key(&row(id, "", "", 0));
    let begin = || {
        let mut transaction = catalog.storage().begin_transaction();
        transaction.set_lock_wait(LockWait::No);
        transaction
    };
    let (mut first, mut second) = (begin(), begin());
    let before = catalog.storage().read_view().unwrap();
    let lock = |transaction: &mut _, id| {
        table.lock_row(transaction, &key(id), LockMode::Exclusive, LockWait::No)
    };

    let old = lock(&mut first, 1).unwrap().unwrap();
    let new = row(1, "uno", "short", 100);
    table.replace(&mut first, &key(1), &old, &new).unwrap();
    assert!(is_locked(lock(&mut second, 1)));
    assert!(is_locked(table.delete(&mut second, &key(1))));
    // The name that the first gives up is not free before it commits, and the name it takes is taken.
    let unnumbered = |name: &str, cents| {
        let mut row = row(0, name, "", cents);
        row[0] = Value::Null;
        row
    };
    for name in ["one", "uno"] {
        assert!(is_locked(table.insert(&mut second, &unnumbered(name, 0))));
    }
    assert!(table.delete(&mut second, &key(2)).unwrap());
    let inserted = table
        .insert(&mut second, &unnumbered("three", 300))
        .unwrap();
    let third = inserted.auto_increment.unwrap() as i64;

    first.commit().unwrap();
    assert_eq!(lock(&mut second, 1).unwrap(), Some(new.clone()));
    second.commit().unwrap();
    assert_eq!(
        table.read_row_at(&before, &key(1)).unwrap(),
        Some(row(1, "one", &long, 100))
    );
    assert!(table.read_row_at(&before, &key(2)).unwrap().is_some());
    assert!(table.read_row_at(&before, &key(third)).unwrap().is_none());
    let now: Vec<_> = rows(&table).into_values().collect();
    assert_eq!(now, [new, row(third, "three", "", 300)]);
}

#[test]
fn columns_without_an_index_are_amended_in_one_visit() {
    let (_directory, catalog) = scratch();
    let mut request = example();
    request.columns.push(column("stock", "int", true));
    catalog.create_table(request).unwrap();
    let item = |id, note: &str, stock| {
        let mut item = row(id, &id.to_string(), note, 100);
        item.push(stock);
        item
    };
    let long = "a long note ".repeat(1_000);
    insert(
        &catalog,
        &[
            item(1, "short", Value::Int(5)),
            item(2, &long, Value::Int(5)),
        ],
    )
    .unwrap();
    let table = catalog.open_for_row_writes("d", "t", NO_WAIT).unwrap();
    assert_eq!(
        [0, 1, 2, 3, 4].map(|column| table.is_in_row_only(column)),
        [false, false, false, false, true]
    );
    let key = |id| table.encode_primary_key(&item(id, "", Value::Null));
    let mut transaction = catalog.storage().begin_transaction();
    let view = transaction.read_view().unwrap();
    let mut set = |id, stock: Value| {
        let changes = |old: &sheaf_table::RowView<'_>| {
            assert_eq!(old.get_i64(0), id);
            Some(vec![(4, stock)])
        };
        let table: &Table = &table;
        table
            .amend(&mut transaction, &view, &key(id), changes)
            .unwrap()
    };
    assert!(set(1, Value::Int(4)));
    assert!(!set(1, Value::Int(4)), "it is so already");
    assert!(set(1, Value::Null));
    assert!(set(2, Value::Int(4)), "its note stays where it is");
    assert!(!set(3, Value::Int(4)), "there is no such row");
    transaction.commit().unwrap();
    assert_eq!(
        values(&table),
        [item(1, "short", Value::Null), item(2, &long, Value::Int(4))]
    );
    let before = table.read_row_at(&view, &key(1)).unwrap();
    assert_eq!(before, Some(item(1, "short", Value::Null)), "its own view");
}

#[test]
fn a_view_from_before_a_definition_is_refused() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    insert(&catalog, &[row(1, "one", "", 100)]).unwrap();
    let before = catalog.storage().read_view().unwrap();
    let table = catalog.open_for_read("d", "t", NO_WAIT).unwrap();
    table.check_view(&before).unwrap();
    drop(table);
    drop_index(&catalog, "t", "by_note").unwrap();
    let table = catalog.open_for_read("d", "t", NO_WAIT).unwrap();
    let refused = table.check_view(&before);
    assert!(matches!(refused, Err(TableError::DefinitionChanged)));
    let now = catalog.storage().read_view().unwrap();
    table.check_view(&now).unwrap();
    table.check_view(&ReadView::newest()).unwrap();
}

/// A row waits with the value that was given out to it, and somebody else inserts just that value.
#[test]
fn a_value_that_another_row_has_is_not_given_out_again() {
    let (_directory, catalog) = scratch();
    let table = catalog.create_table(example()).unwrap();
    let next = || vec![Value::Null, Value::Null, Value::Null, Value::Null];
    let mut keeps_out = catalog.storage().begin_transaction();
    let (all, kind) = (KeyRange::all(), RangeLock::NoInserts);
    keeps_out
        .lock_range(&table.clustered, &all, kind, LockWait::No)
        .unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| insert(&catalog, &[next()]));
        while table.next_auto_increment().unwrap() != Some(2) {
            std::thread::yield_now();
        }
        table.insert(&mut keeps_out, &row(1, "a", "b", 1)).unwrap();
        keeps_out.commit().unwrap();
        let refused = waiting.join().unwrap().unwrap_err();
        assert_eq!(refused.mysql_code(), 1062);
    });
    insert(&catalog, &[next()]).unwrap();
    // One that no row has is.
    let refused = insert(
        &catalog,
        &[vec![Value::Null, text("a"), Value::Null, Value::Null]],
    );
    assert_eq!(refused.unwrap_err().mysql_code(), 1062);
    insert(&catalog, &[next()]).unwrap();
    let ids: Vec<_> = values(&table).iter().map(|row| row[0].clone()).collect();
    // Its value is left out, as in MySQL.
    assert_eq!(ids, [1, 2, 4].map(Value::Int));
}
