//! Columns of filled tables come, go and change: all rows and indexes follow, or nothing does.

use std::collections::BTreeSet;
use std::sync::Arc;

use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{Storage, StorageOptions};
use sheaf_table::{
    AlterOptions, AlterWork, Alteration, Altered, Catalog, ColumnPlace, CreateTable, DefaultValue,
    NoProgress, Progress, TableError,
};
use sheaf_types::{Value, assignment::Mode};

use crate::fixture::*;

const ROWS: i64 = 3000;

/// Stops the work when rows are copied.
struct Cancelled;

impl Progress for Cancelled {
    fn begin(&self, _name: &str, _total: Option<u64>) {}
    fn advance(&self, _units: u64) {}
    fn is_cancelled(&self) -> bool {
        true
    }
}

fn alter_with(
    catalog: &Catalog,
    changes: &[Alteration],
    options: &AlterOptions,
) -> Result<Altered, TableError> {
    catalog.alter_table(("d", "t"), changes, options, &NoProgress, NO_WAIT)
}

/// `number INT DEFAULT 7` comes first, `price` goes, `name` is longer and keeps its indexes, `note` is a VARCHAR.
fn changes() -> Vec<Alteration> {
    let mut number = column("number", "int", false);
    number.default = Some(DefaultValue::Value(Value::Int(7)));
    vec![
        Alteration::AddColumn {
            column: number,
            place: ColumnPlace::First,
        },
        Alteration::DropColumn("price".into()),
        Alteration::ChangeColumn {
            name: "name".into(),
            new: column("title", "varchar(40)", true),
            place: Some(ColumnPlace::Last),
        },
        Alteration::ChangeColumn {
            name: "note".into(),
            new: column("note", "varchar(16000)", true),
            place: None,
        },
    ]
}

/// A row of [`many_rows`] as [`changes`] leave it.
fn changed(row: &[Value]) -> Vec<Value> {
    vec![
        Value::Int(7),
        row[0].clone(),
        row[2].clone(),
        row[1].clone(),
    ]
}

/// All trees of the storage are the table's.
fn assert_no_tree_is_left_over(catalog: &Catalog) {
    let definition = &catalog.table("d", "t").unwrap().definition;
    let own = 1 + definition.secondary.len() + usize::from(definition.overflow.is_some());
    let trees: BTreeSet<_> = catalog.storage().tree_ids().unwrap().into_iter().collect();
    // And the catalog's.
    assert_eq!(trees.len(), own + 1);
}

fn filled(catalog: &Arc<Catalog>) -> Vec<Vec<Value>> {
    catalog.create_table(example()).unwrap();
    load(
        catalog,
        many_rows(ROWS, |i| i),
        1 << 20,
        Arc::new(NoProgress),
    )
    .unwrap();
    many_rows(ROWS, |i| i).collect()
}

#[test]
fn rows_and_indexes_follow_their_columns() {
    let (directory, catalog) = scratch();
    let before = filled(&catalog);
    let old = catalog.table("d", "t").unwrap();
    let done = alter_with(&catalog, &changes(), &AlterOptions::default()).unwrap();
    assert_eq!((done.work, done.rows), (AlterWork::Copy, ROWS as u64));
    assert!(done.issues.is_empty() && done.more_issues == 0);
    assert!(!old.is_current());
    let expected: Vec<Vec<Value>> = before.iter().map(|row| changed(row)).collect();
    let table = catalog.table("d", "t").unwrap();
    assert_eq!(values(&table), expected);
    assert_eq!(table.definition.id, old.definition.id);
    // What is left of (price, name).
    assert_eq!(table.definition.secondary[1].parts.len(), 1);
    assert_eq!(
        table.next_auto_increment().unwrap(),
        old.next_auto_increment().unwrap()
    );
    drop((old, table));
    assert_no_tree_is_left_over(&catalog);
    catalog.storage().close().unwrap();
    drop(catalog);
    let catalog = open(directory.path());
    assert_eq!(values(&catalog.table("d", "t").unwrap()), expected);
    assert_no_tree_is_left_over(&catalog);
}

#[test]
fn what_fails_leaves_the_table_as_it_was() {
    let (_directory, catalog) = scratch();
    let before = filled(&catalog);
    let change = |name: &str, ty: &str, nullable| Alteration::ChangeColumn {
        name: name.into(),
        new: column(name, ty, nullable),
        place: None,
    };
    let trees = catalog.storage().tree_ids().unwrap();
    let version = catalog.schema_version();
    for (last, message) in [
        (
            change("name", "varchar(7)", true),
            "Data truncated for column 'name' at row 101",
        ),
        (
            change("note", "int", true),
            "Incorrect integer value: 'note 0' for column 'note' at row 1",
        ),
        (
            Alteration::AddIndex(index("twice", &["price"], true)),
            "Duplicate entry '0.00' for key 't.twice'",
        ),
        (
            Alteration::AddColumn {
                column: column("day", "date", false),
                place: ColumnPlace::Last,
            },
            "Incorrect date value: '0000-00-00' for column 'day' at row 1",
        ),
    ] {
        let all = [Alteration::Rebuild, last];
        let failed = alter_with(&catalog, &all, &AlterOptions::default()).unwrap_err();
        assert_eq!(failed.to_string(), message);
    }
    let options = AlterOptions::default();
    let stopped = catalog.alter_table(("d", "t"), &changes(), &options, &Cancelled, NO_WAIT);
    assert!(matches!(stopped, Err(TableError::Interrupted)));
    // Somebody reads while the definition is to be entered.
    let reader = catalog.open_for_read("d", "t", NO_WAIT).unwrap();
    let refused = alter_with(&catalog, &changes(), &options);
    assert!(matches!(refused, Err(TableError::LockWaitTimeout)));
    drop(reader);
    assert_eq!(catalog.storage().tree_ids().unwrap(), trees);
    assert_eq!(catalog.schema_version(), version);
    assert_eq!(values(&catalog.table("d", "t").unwrap()), before);
    // In lenient mode these are warnings.
    let lenient = AlterOptions {
        mode: Mode::LENIENT,
        ..AlterOptions::default()
    };
    let done = alter_with(&catalog, &[change("note", "int", false)], &lenient).unwrap();
    assert_eq!(done.issues.len(), ROWS as usize);
    let table = catalog.table("d", "t").unwrap();
    assert_eq!(values(&table)[0][2], Value::Int(0));
}

#[test]
fn null_needs_a_place() {
    let (_directory, catalog) = scratch();
    let columns = vec![column("a", "int", true)];
    catalog
        .create_table(CreateTable::new("d", "t", columns))
        .unwrap();
    insert(&catalog, &[vec![Value::Int(1)], vec![Value::Null]]).unwrap();
    let change = |ty: &str| Alteration::ChangeColumn {
        name: "a".into(),
        new: column("a", ty, false),
        place: None,
    };
    let code = |change: Alteration, options: &AlterOptions| {
        let failed = alter_with(&catalog, &[change], options).unwrap_err();
        failed.mysql_code()
    };
    let strict = AlterOptions::default();
    assert_eq!(code(change("int"), &strict), 1138);
    assert_eq!(code(change("bigint"), &strict), 1265);
    let key = Alteration::AddPrimaryKey(parts(&["a"]));
    assert_eq!(code(key, &strict), 1138);
    let lenient = AlterOptions {
        mode: Mode::LENIENT,
        ..strict
    };
    assert_eq!(
        alter_with(&catalog, &[change("int")], &lenient)
            .unwrap()
            .issues[0]
            .to_string(),
        "Data truncated for column 'a' at row 2"
    );
    let table = catalog.table("d", "t").unwrap();
    assert_eq!(values(&table), [[Value::Int(1)], [Value::Int(0)]]);
}

#[test]
fn keys_and_numbers_come_to_rows_that_had_none() {
    let (_directory, catalog) = scratch();
    let columns = vec![column("v", "int", true)];
    catalog
        .create_table(CreateTable::new("d", "t", columns))
        .unwrap();
    let given: Vec<_> = (0..500).map(|v| vec![Value::Int(v % 7)]).collect();
    insert(&catalog, &given).unwrap();
    let mut id = column("id", "bigint unsigned", false);
    id.auto_increment = true;
    let changes = [
        Alteration::SetAutoIncrement(10),
        Alteration::AddColumn {
            column: id,
            place: ColumnPlace::First,
        },
        Alteration::AddPrimaryKey(parts(&["id"])),
        Alteration::AddIndex(index("v", &["v"], false)),
    ];
    let strict = AlterOptions::default();
    alter_with(&catalog, &changes, &strict).unwrap();
    let numbered: Vec<_> = (0..500u64)
        .map(|n| vec![Value::UInt(10 + n), Value::Int((n % 7) as i64)])
        .collect();
    let table = catalog.table("d", "t").unwrap();
    assert_eq!(values(&table), numbered);
    assert_eq!(table.next_auto_increment().unwrap(), Some(510));
    // Down to the largest, and no further.
    for (first, next) in [(1000, 1000), (3, 510)] {
        let set = [Alteration::SetAutoIncrement(first)];
        let done = alter_with(&catalog, &set, &strict).unwrap();
        assert_eq!(done.work, AlterWork::Definition);
        let table = catalog.table("d", "t").unwrap();
        assert_eq!(table.next_auto_increment().unwrap(), Some(next));
    }
    let without = [
        Alteration::DropColumn("id".into()),
        Alteration::RenameIndex {
            name: "v".into(),
            new: "w".into(),
        },
    ];
    alter_with(&catalog, &without, &strict).unwrap();
    let table = catalog.table("d", "t").unwrap();
    assert!(table.definition.has_hidden_row_id());
    assert_eq!(values(&table), given);
    assert_no_tree_is_left_over(&catalog);
}

fn storage_options() -> StorageOptions {
    StorageOptions {
        pool_bytes: 4 << 20,
        ..StorageOptions::default()
    }
}

fn open_on(disk: &Arc<SimulatedDisk>) -> Arc<Catalog> {
    Catalog::open(Storage::open_on(disk.clone(), storage_options()).unwrap()).unwrap()
}

#[test]
fn a_full_disk_leaves_the_old_table() {
    let disk = SimulatedDisk::new(SimulationOptions::new(11));
    let catalog = open_on(&disk);
    catalog.create_database("d").unwrap();
    let before = filled(&catalog);
    let trees = catalog.storage().tree_ids().unwrap();
    disk.set_capacity(24 << 20);
    // There is room for some copies, each wider than the one before.
    let mut name = 0;
    let full = loop {
        name += 1;
        let padded = Alteration::AddColumn {
            column: {
                let mut padded = column(&format!("p{name}"), "varchar(900)", false);
                padded.default = Some(DefaultValue::Value(text(&"x".repeat(900))));
                padded
            },
            place: ColumnPlace::Last,
        };
        match alter_with(&catalog, &[padded], &AlterOptions::default()) {
            Ok(_) => assert!(name < 100, "the disk is never full"),
            Err(error) => break error,
        }
    };
    assert_eq!(full.mysql_code(), 1021, "{full}");
    assert_eq!(catalog.storage().tree_ids().unwrap().len(), trees.len());
    let found = values(&catalog.table("d", "t").unwrap());
    let found: Vec<_> = found.into_iter().map(|row| row[..4].to_vec()).collect();
    assert_eq!(found, before);
    disk.heal();
    alter_with(&catalog, &changes(), &AlterOptions::default()).unwrap();
    assert_no_tree_is_left_over(&catalog);
}

#[test]
fn a_crash_leaves_the_old_table_or_the_new_one() {
    let mut outcomes = BTreeSet::new();
    for ahead in [0, 1, 5, 20, 60, 150, 400, 1_000, 100_000] {
        let disk = SimulatedDisk::new(SimulationOptions::new(ahead));
        let catalog = open_on(&disk);
        catalog.create_database("d").unwrap();
        let before = filled(&catalog);
        disk.crash_after(Some(ahead));
        // Whether it has failed, or succeeded before the machine stopped.
        let done = alter_with(&catalog, &changes(), &AlterOptions::default());
        drop(catalog);
        let catalog = open_on(&disk.power_loss(SimulationOptions::new(ahead)));
        let table = catalog.table("d", "t").unwrap();
        let is_new = table.definition.columns[0].name == "number";
        // What was confirmed is there. What was not may be there all the same.
        assert!(is_new || done.is_err(), "{ahead}");
        let after: Vec<Vec<Value>> = before.iter().map(|row| changed(row)).collect();
        assert_eq!(
            values(&table),
            if is_new { after } else { before },
            "{ahead}"
        );
        assert_no_tree_is_left_over(&catalog);
        outcomes.insert(is_new);
    }
    assert_eq!(outcomes.len(), 2);
}

#[test]
fn a_new_column_numbers_rows_in_row_order() {
    type NumberOf = fn(i64) -> i64;
    let cases: [(&str, bool, NumberOf); 3] = [
        // A unique key stands for the primary key that is not there.
        ("x", false, |x| x + 1),
        ("x", true, |x| ROWS - x),
        // One that may be NULL does not: rows are as they came.
        ("y", true, |x| x * 7 % ROWS + 1),
    ];
    for (name, descending, number_of) in cases {
        let (_directory, catalog) = scratch();
        let columns = vec![column("x", "int", false), column("y", "int", true)];
        let mut request = CreateTable::new("d", "t", columns);
        let mut key = index("k", &[name], true);
        key.parts[0].descending = descending;
        request.indexes.push(key);
        catalog.create_table(request).unwrap();
        // 7 * 2143 is 1 more than a multiple of the rows.
        let given = (0..ROWS).map(|i| vec![Value::Int(i * 2143 % ROWS), Value::Null]);
        load(&catalog, given, 1 << 20, Arc::new(NoProgress)).unwrap();
        let order = catalog.table("d", "t").unwrap().definition.row_order();
        assert!(order.is_certain);
        let mut id = column("id", "int", false);
        id.auto_increment = true;
        let add = Alteration::AddColumn {
            column: id,
            place: ColumnPlace::Last,
        };
        let number = [add, Alteration::AddIndex(index("id", &["id"], true))];
        alter(&catalog, "t", &number).unwrap();
        for row in values(&catalog.table("d", "t").unwrap()) {
            let Value::Int(x) = row[0] else {
                panic!("{row:?}");
            };
            assert_eq!(row[2], Value::Int(number_of(x)), "{name} {descending}: {x}");
        }
    }
}
