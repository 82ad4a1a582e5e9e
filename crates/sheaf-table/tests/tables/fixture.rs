//! What the tests of tables share: a catalog in a directory of its own, the example table, and what its trees hold.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sheaf_storage::{Direction, KeyRange, ReadAhead, Storage, StorageOptions, Tree};
use sheaf_table::{
    AlterOptions, Alteration, BulkLoad, BulkLoadOptions, Catalog, Column, CreateTable,
    IndexPartSpec, IndexSpec, KeyLayout, NoProgress, Progress, Table, TableError, ValueRef,
};
use sheaf_types::{ColumnType, Value};

pub const NO_WAIT: Duration = Duration::ZERO;

pub fn open(directory: &Path) -> Arc<Catalog> {
    let options = StorageOptions {
        pool_bytes: 8 << 20,
        ..StorageOptions::default()
    };
    Catalog::open(Storage::open(directory, options).unwrap()).unwrap()
}

/// A catalog with the database `d`, in a directory that is gone afterwards.
pub fn scratch() -> (tempfile::TempDir, Arc<Catalog>) {
    let directory = tempfile::tempdir().unwrap();
    let catalog = open(directory.path());
    catalog.create_database("d").unwrap();
    (directory, catalog)
}

pub fn column(name: &str, ty: &str, nullable: bool) -> Column {
    Column::new(name, ColumnType::parse(ty).unwrap(), nullable)
}

pub fn parts(columns: &[&str]) -> Vec<IndexPartSpec> {
    columns
        .iter()
        .map(|column| match column.split_once('(') {
            Some((name, length)) => IndexPartSpec {
                prefix_length: Some(length.trim_end_matches(')').parse().unwrap()),
                ..IndexPartSpec::column(name)
            },
            None => IndexPartSpec::column(*column),
        })
        .collect()
}

pub fn index(name: &str, columns: &[&str], unique: bool) -> IndexSpec {
    IndexSpec {
        name: Some(name.into()),
        parts: parts(columns),
        unique,
        comment: String::new(),
        invisible: false,
    }
}

/// `t (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20), note TEXT, price DECIMAL(15,2),
/// UNIQUE by_name (name), KEY by_price (price, name), KEY by_note (note(4)))`
pub fn example() -> CreateTable {
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

/// Changes a table of the database `d`.
pub fn alter(catalog: &Catalog, table: &str, changes: &[Alteration]) -> Result<(), TableError> {
    let options = AlterOptions::default();
    let altered = catalog.alter_table(("d", table), changes, &options, &NoProgress, NO_WAIT);
    altered.map(drop)
}

pub fn drop_index(catalog: &Catalog, table: &str, index: &str) -> Result<(), TableError> {
    alter(catalog, table, &[Alteration::DropIndex(index.into())])
}

pub fn drop_table(catalog: &Catalog, table: &str) -> Result<(), TableError> {
    catalog.drop_tables(&[("d".into(), table.into())], true, NO_WAIT)
}

pub fn text(text: &str) -> Value {
    Value::Text(text.into())
}

pub fn price(unscaled: i128) -> Value {
    Value::Decimal { unscaled, scale: 2 }
}

pub fn row(id: i64, name: &str, note: &str, cents: i128) -> Vec<Value> {
    vec![Value::Int(id), text(name), text(note), price(cents)]
}

/// Inserts rows in one statement.
pub fn insert(catalog: &Catalog, rows: &[Vec<Value>]) -> Result<(), TableError> {
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

pub fn entries(tree: &Arc<Tree>) -> Vec<(Vec<u8>, Vec<u8>)> {
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
pub fn rows(table: &Table) -> BTreeMap<Vec<u8>, Vec<Value>> {
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

pub fn entry(layout: &KeyLayout, primary_key: &[u8], row: &[Value]) -> (Vec<u8>, Vec<u8>) {
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

pub fn values(table: &Table) -> Vec<Vec<Value>> {
    rows(table).into_values().collect()
}

pub fn load(
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
    load.finish(NO_WAIT)
}

/// `count` different rows in an order given by `id`.
pub fn many_rows(count: i64, id: impl Fn(i64) -> i64) -> impl Iterator<Item = Vec<Value>> {
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
