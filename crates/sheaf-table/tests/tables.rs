//! Tables on real storage: rows, indexes, the catalog, restarts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{
    Direction, KeyRange, LockMode, LockWait, ReadAhead, ReadView, Storage, StorageError,
    StorageOptions, Tree,
};
use sheaf_table::{
    BulkLoad, BulkLoadOptions, Catalog, Column, ColumnType, CreateTable, IndexPartSpec, IndexSpec,
    KeyLayout, NoProgress, Progress, Table, TableError, Value, ValueRef,
};

const NO_WAIT: Duration = Duration::ZERO;

fn open(directory: &Path) -> Arc<Catalog> {
    let options = StorageOptions {
        pool_bytes: 8 << 20,
        ..StorageOptions::default()
    };
    Catalog::open(Storage::open(directory, options).unwrap()).unwrap()
}

/// A catalog with the database `d`, in a directory that is gone afterwards.
fn scratch() -> (tempfile::TempDir, Arc<Catalog>) {
    let directory = tempfile::tempdir().unwrap();
    let catalog = open(directory.path());
    catalog.create_database("d").unwrap();
    (directory, catalog)
}

fn column(name: &str, ty: &str, nullable: bool) -> Column {
    Column::new(name, ColumnType::parse(ty).unwrap(), nullable)
}

fn parts(columns: &[&str]) -> Vec<IndexPartSpec> {
    columns
        .iter()
        .map(|column| match column.split_once('(') {
            Some((name, length)) => IndexPartSpec {
                column: name.into(),
                prefix_length: Some(length.trim_end_matches(')').parse().unwrap()),
                descending: false,
            },
            None => IndexPartSpec::column(*column),
        })
        .collect()
}

fn index(name: &str, columns: &[&str], unique: bool) -> IndexSpec {
    IndexSpec {
        name: Some(name.into()),
        parts: parts(columns),
        unique,
        comment: String::new(),
    }
}

/// `t (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20), note TEXT, price DECIMAL(15,2),
/// UNIQUE by_name (name), KEY by_price (price, name), KEY by_note (note(4)))`
fn example() -> CreateTable {
    let mut id = column("id", "int", false);
    id.auto_increment = true;
    let mut request = CreateTable::new(
        "d",
        "t",
        vec![
            id,
            column("name", "varchar(20)", true),
            column("note", "text", true),
            column("price", "decimal(15,2)", true),
        ],
    );
    request.primary_key = Some(parts(&["id"]));
    request.indexes = vec![
        index("by_name", &["name"], true),
        index("by_price", &["price", "name"], false),
        index("by_note", &["note(4)"], false),
    ];
    request
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn price(unscaled: i128) -> Value {
    Value::Decimal { unscaled, scale: 2 }
}

fn row(id: i64, name: &str, note: &str, cents: i128) -> Vec<Value> {
    vec![Value::Int(id), text(name), text(note), price(cents)]
}

/// Inserts rows in one statement.
fn insert(catalog: &Catalog, rows: &[Vec<Value>]) -> Result<(), TableError> {
    let table = catalog.open_for_write("d", "t", NO_WAIT)?;
    let mut transaction = catalog.storage().begin_transaction();
    for row in rows {
        if let Err(error) = table.insert(&mut transaction, row) {
            transaction.rollback()?;
            return Err(error);
        }
    }
    transaction.commit().unwrap();
    Ok(())
}

fn entries(tree: &Arc<Tree>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = tree.scan(KeyRange::all(), Direction::Forward, ReadAhead::Off);
    let mut all = Vec::new();
    while let Some(leaf) = cursor.next_leaf().unwrap() {
        for entry in 0..leaf.len() {
            let mut key = Vec::new();
            leaf.key_into(entry, &mut key);
            all.push((key, leaf.value(entry).to_vec()));
        }
    }
    all
}

/// All rows by encoded primary key, after a check that every index has exactly the entries of these rows.
fn rows(table: &Table) -> BTreeMap<Vec<u8>, Vec<Value>> {
    let mut rows = BTreeMap::new();
    for (key, bytes) in entries(&table.clustered) {
        rows.insert(key, table.decode_row(&table.view(&bytes).unwrap()).unwrap());
    }
    for (tree, layout) in table.secondary.iter().zip(&table.secondary_layouts) {
        let mut expected: Vec<_> = rows
            .iter()
            .map(|(key, row)| entry(layout, key, row))
            .collect();
        expected.sort();
        assert_eq!(entries(tree), expected);
    }
    rows
}

fn entry(layout: &KeyLayout, primary_key: &[u8], row: &[Value]) -> (Vec<u8>, Vec<u8>) {
    let (mut key, mut payload) = (Vec::new(), Vec::new());
    let row_id = primary_key
        .first_chunk::<8>()
        .map_or(0, |id| u64::from_be_bytes(*id));
    layout.encode_entry(
        |column| ValueRef::from(&row[column]),
        row_id,
        &mut key,
        &mut payload,
    );
    (key, payload)
}

fn values(table: &Table) -> Vec<Vec<Value>> {
    rows(table).into_values().collect()
}

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
    catalog.drop_table("d", "t", NO_WAIT).unwrap();
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
        assert_eq!((error.mysql_code(), error.sqlstate()), (1062, "23000"));
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
        assert_eq!(insert_id(&catalog, Value::Int(0)), Some(2));
        assert_eq!(insert_id(&catalog, Value::Int(10)), None);
        assert_eq!(insert_id(&catalog, Value::Int(-3)), None);
        assert_eq!(insert_id(&catalog, Value::Null), Some(11));
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
    assert!(matches!(full, Err(TableError::AutoIncrementExhausted)));
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
    catalog.drop_table("d", "t", NO_WAIT).unwrap();
    catalog.create_table(example()).unwrap();
    assert_eq!(insert(&catalog), 1);
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

/// Counts what it is told, and stops the work after a number of units.
struct Counting {
    units: AtomicU64,
    stop_after: u64,
}

impl Progress for Counting {
    fn begin(&self, _name: &str, _total: Option<u64>) {}

    fn advance(&self, units: u64) {
        self.units.fetch_add(units, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.units.load(Ordering::Relaxed) >= self.stop_after
    }
}

fn load(
    catalog: &Arc<Catalog>,
    rows: impl Iterator<Item = Vec<Value>>,
    memory_bytes: usize,
    progress: Arc<dyn Progress>,
) -> Result<u64, TableError> {
    let table = catalog.open_for_write("d", "t", NO_WAIT)?;
    let options = BulkLoadOptions {
        memory_bytes,
        threads: 2,
    };
    let mut load = BulkLoad::new(catalog, table, options, progress)?;
    for row in rows {
        load.append(&row)?;
    }
    load.finish()
}

/// `count` different rows in an order given by `id`.
fn many_rows(count: i64, id: impl Fn(i64) -> i64) -> impl Iterator<Item = Vec<Value>> {
    (0..count).map(move |i| {
        let id = id(i);
        // Some notes are too long for their row.
        let note = if id % 1000 == 7 {
            format!("{id}").repeat(2000)
        } else {
            format!("note {id}")
        };
        row(id + 1, &format!("Name {id}"), &note, i128::from(id % 97))
    })
}

#[test]
fn bulk_loads_make_what_inserts_make() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    insert(&catalog, &many_rows(2000, |i| i).collect::<Vec<_>>()).unwrap();
    let inserted = rows(&catalog.table("d", "t").unwrap());
    let scramble = |i: i64| i * 7919 % 2000;
    // First half in order, then not.
    let half = |i: i64| if i < 1000 { 2 * i } else { 2 * (1999 - i) + 1 };
    for memory_bytes in [1 << 10, 64 << 20] {
        for order in [&(|i: i64| i) as &dyn Fn(i64) -> i64, &scramble, &half] {
            catalog.drop_table("d", "t", NO_WAIT).unwrap();
            let before = catalog.create_table(example()).unwrap();
            let progress = Arc::new(Counting {
                units: AtomicU64::new(0),
                stop_after: u64::MAX,
            });
            assert_eq!(
                load(
                    &catalog,
                    many_rows(2000, order),
                    memory_bytes,
                    progress.clone()
                )
                .unwrap(),
                2000
            );
            assert!(progress.units.load(Ordering::Relaxed) >= 2000 + 3 * 2000);
            assert!(!before.is_current());
            let table = catalog.table("d", "t").unwrap();
            assert_eq!(rows(&table), inserted);
            // The counters go on after the loaded rows.
            insert(
                &catalog,
                &[vec![
                    Value::Null,
                    Value::Null,
                    text(&"y".repeat(9000)),
                    Value::Null,
                ]],
            )
            .unwrap();
            assert_eq!(values(&table)[2000][0], Value::Int(2001));
        }
    }
}

#[test]
fn bulk_loads_spill_and_come_out_sorted() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    let count = 1 << 16;
    let scramble = move |i: i64| i * 40_503 % count;
    load(
        &catalog,
        many_rows(count, scramble),
        1 << 20,
        Arc::new(NoProgress),
    )
    .unwrap();
    let table = catalog.table("d", "t").unwrap();
    let all = rows(&table);
    assert_eq!(all.len() as i64, count);
    assert!(all.into_values().eq(many_rows(count, |i| i)));
}

#[test]
fn failed_bulk_loads_leave_the_table_empty() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    let with = |extra: Vec<Value>| many_rows(3000, |i| i).chain([extra]);
    let against = |rows: &mut dyn Iterator<Item = Vec<Value>>| {
        load(&catalog, rows, 1 << 20, Arc::new(NoProgress))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        against(&mut with(row(3000, "x", "", 0))),
        "Duplicate entry '3000' for key 't.PRIMARY'"
    );
    assert_eq!(
        against(&mut with(row(17, "x", "", 0))),
        "Duplicate entry '17' for key 't.PRIMARY'"
    );
    assert_eq!(
        against(&mut with(row(9999, "NAME 5", "", 0))).to_lowercase(),
        "duplicate entry 'name 5' for key 't.by_name'"
    );
    let cancelled = Arc::new(Counting {
        units: AtomicU64::new(0),
        stop_after: 1,
    });
    let result = load(&catalog, many_rows(10_000, |i| i), 1 << 20, cancelled);
    assert!(matches!(result, Err(TableError::Interrupted)));
    // Dropped in the middle.
    let table = catalog.open_for_write("d", "t", NO_WAIT).unwrap();
    let options = BulkLoadOptions {
        memory_bytes: 1 << 20,
        threads: 2,
    };
    let mut dropped = BulkLoad::new(&catalog, table, options, Arc::new(NoProgress)).unwrap();
    dropped.append(&row(1, "a", "b", 1)).unwrap();
    drop(dropped);
    let table = catalog.table("d", "t").unwrap();
    assert!(table.is_empty().unwrap() && table.is_current());
    assert_eq!(
        std::fs::read_dir(catalog.storage().temp_dir()).map_or(0, Iterator::count),
        0
    );
    // The table can still be loaded, but only once.
    load(
        &catalog,
        many_rows(10, |i| i),
        1 << 20,
        Arc::new(NoProgress),
    )
    .unwrap();
    let again = load(
        &catalog,
        many_rows(10, |i| i),
        1 << 20,
        Arc::new(NoProgress),
    );
    assert!(matches!(again, Err(TableError::TableNotEmpty { .. })));
}

#[test]
fn a_full_disk_while_loading_leaves_the_table_as_it_was() {
    let disk = SimulatedDisk::new(SimulationOptions::new(7));
    let options = StorageOptions {
        pool_bytes: 4 << 20,
        ..StorageOptions::default()
    };
    let catalog = Catalog::open(Storage::open_on(disk.clone(), options).unwrap()).unwrap();
    catalog.create_database("d").unwrap();
    catalog.create_table(example()).unwrap();
    disk.set_capacity(12 << 20);
    let full = load(
        &catalog,
        many_rows(200_000, |i| i),
        1 << 20,
        Arc::new(NoProgress),
    )
    .unwrap_err();
    assert_eq!(full.mysql_code(), 1021, "{full}");
    let table = catalog.table("d", "t").unwrap();
    assert!(table.is_empty().unwrap());
    // The room is free again: what fits is loaded, however often something else did not.
    for _ in 0..3 {
        assert!(
            load(
                &catalog,
                many_rows(200_000, |i| i),
                1 << 20,
                Arc::new(NoProgress)
            )
            .is_err()
        );
    }
    load(
        &catalog,
        many_rows(5_000, |i| i),
        1 << 20,
        Arc::new(NoProgress),
    )
    .unwrap();
    assert_eq!(rows(&catalog.table("d", "t").unwrap()).len(), 5_000);
}

#[test]
fn indexes_are_built_on_filled_tables_and_dropped() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    insert(
        &catalog,
        &many_rows(3000, |i| i * 31 % 3000).collect::<Vec<_>>(),
    )
    .unwrap();
    let create = |spec| catalog.create_index("d", "t", spec, 1 << 20, &NoProgress, NO_WAIT);
    create(index("both", &["note(3)", "price"], false)).unwrap();
    create(index("again", &["price", "name"], true)).unwrap();
    let table = catalog.table("d", "t").unwrap();
    assert_eq!(table.secondary.len(), 5);
    assert_eq!(rows(&table).len(), 3000);
    let error = create(index("u", &["price"], true)).unwrap_err();
    assert_eq!(error.to_string(), "Duplicate entry '0.00' for key 't.u'");
    assert_eq!(
        create(index("BOTH", &["price"], false))
            .unwrap_err()
            .mysql_code(),
        1061
    );
    catalog.drop_index("d", "t", "Both", NO_WAIT).unwrap();
    assert!(!table.is_current());
    let table = catalog.table("d", "t").unwrap();
    assert_eq!(table.secondary.len(), 4);
    assert_eq!(rows(&table).len(), 3000);
    assert_eq!(
        catalog
            .drop_index("d", "t", "both", NO_WAIT)
            .unwrap_err()
            .mysql_code(),
        1091
    );
}

#[test]
fn hidden_row_ids_are_in_built_indexes() {
    let (_directory, catalog) = scratch();
    catalog
        .create_table(CreateTable::new("d", "t", vec![column("v", "int", true)]))
        .unwrap();
    insert(
        &catalog,
        &(0..500)
            .map(|v| vec![Value::Int(v % 7)])
            .collect::<Vec<_>>(),
    )
    .unwrap();
    catalog
        .create_index(
            "d",
            "t",
            index("v", &["v"], false),
            1 << 20,
            &NoProgress,
            NO_WAIT,
        )
        .unwrap();
    assert_eq!(rows(&catalog.table("d", "t").unwrap()).len(), 500);
}

#[test]
fn ddl_waits_for_readers_and_readers_see_the_new_table() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    let version = catalog.schema_version();
    let reader = catalog.open_for_read("d", "t", NO_WAIT).unwrap();
    assert!(matches!(
        catalog.drop_index("d", "t", "by_name", NO_WAIT),
        Err(TableError::LockWaitTimeout)
    ));
    assert!(reader.is_current());
    assert_eq!(catalog.schema_version(), version);
    drop(reader);
    let writer = catalog.open_for_write("d", "t", NO_WAIT).unwrap();
    assert!(catalog.open_for_read("d", "t", NO_WAIT).is_ok());
    assert!(matches!(
        catalog.open_for_write("d", "t", NO_WAIT),
        Err(TableError::LockWaitTimeout)
    ));
    drop(writer);
    catalog.drop_index("d", "t", "by_name", NO_WAIT).unwrap();
    assert!(catalog.schema_version() > version);
    assert_eq!(
        catalog
            .open_for_read("d", "t", NO_WAIT)
            .unwrap()
            .secondary
            .len(),
        2
    );
}

#[test]
fn databases_and_tables_come_and_go() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    insert(&catalog, &[row(1, "a", "b", 1)]).unwrap();
    assert_eq!(catalog.create_database("d").unwrap_err().mysql_code(), 1007);
    assert_eq!(
        catalog.create_table(example()).unwrap_err().mysql_code(),
        1050
    );
    assert_eq!(catalog.table("d", "T").err().unwrap().mysql_code(), 1146);
    assert_eq!(catalog.table("D", "t").err().unwrap().mysql_code(), 1049);
    catalog.create_database("e").unwrap();
    catalog
        .rename_table(("d", "t"), ("e", "u"), NO_WAIT)
        .unwrap();
    assert!(catalog.tables("d").unwrap().is_empty());
    assert_eq!(
        values(&catalog.table("e", "u").unwrap()),
        [row(1, "a", "b", 1)]
    );
    assert_eq!(catalog.drop_database("e", NO_WAIT).unwrap(), 1);
    assert_eq!(
        catalog
            .drop_database("e", NO_WAIT)
            .unwrap_err()
            .mysql_code(),
        1008
    );
    assert_eq!(
        catalog
            .drop_table("d", "t", NO_WAIT)
            .unwrap_err()
            .mysql_code(),
        1051
    );
    assert_eq!(catalog.databases(), ["d"]);
}

#[test]
fn analyze_estimates_distinct_values_and_keeps_them() {
    let directory = tempfile::tempdir().unwrap();
    {
        let catalog = open(directory.path());
        catalog.create_database("d").unwrap();
        catalog.create_table(example()).unwrap();
        load(
            &catalog,
            many_rows(100_000, |i| i),
            64 << 20,
            Arc::new(NoProgress),
        )
        .unwrap();
        assert_eq!(
            catalog.table("d", "t").unwrap().distinct_prefixes(None),
            None
        );
        catalog.analyze("d", "t", NO_WAIT).unwrap();
        catalog.storage().close().unwrap();
    }
    let catalog = open(directory.path());
    let table = catalog.table("d", "t").unwrap();
    assert_eq!(table.row_count_estimate(), 100_000);
    let primary = table.distinct_prefixes(None).unwrap();
    assert!(primary[0] > 99_000 && primary[0] <= 100_000, "{primary:?}");
    // 97 prices, each with about a thousand names.
    let by_price = table.distinct_prefixes(Some(1)).unwrap();
    assert!(by_price[0] > 40 && by_price[0] < 400, "{by_price:?}");
    assert!(by_price[1] > 99_000, "{by_price:?}");
    // "note" and the beginnings of a hundred long notes.
    let by_note = table.distinct_prefixes(Some(2)).unwrap();
    assert!(by_note[0] > 40 && by_note[0] < 400, "{by_note:?}");
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
    for name in ["one", "uno"] {
        assert!(is_locked(table.insert(&mut second, &row(0, name, "", 0))));
    }
    assert!(table.delete(&mut second, &key(2)).unwrap());
    let inserted = table
        .insert(&mut second, &row(0, "three", "", 300))
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
fn a_view_from_before_a_definition_is_refused() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    insert(&catalog, &[row(1, "one", "", 100)]).unwrap();
    let before = catalog.storage().read_view().unwrap();
    let table = catalog.open_for_read("d", "t", NO_WAIT).unwrap();
    table.check_view(&before).unwrap();
    drop(table);
    catalog.drop_index("d", "t", "by_note", NO_WAIT).unwrap();
    let table = catalog.open_for_read("d", "t", NO_WAIT).unwrap();
    let refused = table.check_view(&before);
    assert!(matches!(refused, Err(TableError::DefinitionChanged)));
    let now = catalog.storage().read_view().unwrap();
    table.check_view(&now).unwrap();
    table.check_view(&ReadView::newest()).unwrap();
}
