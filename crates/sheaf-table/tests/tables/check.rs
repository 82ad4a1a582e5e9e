//! What `check` says of healthy and of damaged data.

use std::sync::Arc;
use std::time::Duration;

use sheaf_storage::{Storage, StorageOptions, Transaction};
use sheaf_table::check::{CheckReport, check};
use sheaf_table::{
    AlterOptions, Alteration, Catalog, Column, CreateTable, IndexPartSpec, IndexSpec, NoProgress,
    Table,
};
use sheaf_types::{ColumnType, Value};

use crate::fixture::{NO_WAIT, index, parts, scratch, text};

const MEMORY_BYTES: usize = 1 << 20;

fn column(name: &str, ty: &str) -> Column {
    Column::new(name, ColumnType::parse(ty).unwrap(), name != "id")
}

/// `d.t (id INT PRIMARY KEY, name VARCHAR(20), note TEXT, KEY by_name (name), KEY by_note (note(8)))` with 500 rows,
/// some of whose notes are longer than a page.
fn catalog() -> (tempfile::TempDir, Arc<Catalog>) {
    let (directory, catalog) = scratch();
    let columns = vec![
        column("id", "int"),
        column("name", "varchar(20)"),
        column("note", "text"),
    ];
    let mut request = CreateTable::new("d", "t", columns);
    request.primary_key = Some(vec![IndexPartSpec::column("id")]);
    let index = |name: &str, column: &str, prefix_length| IndexSpec {
        name: Some(name.into()),
        parts: vec![IndexPartSpec {
            prefix_length,
            ..IndexPartSpec::column(column)
        }],
        unique: false,
        comment: String::new(),
        invisible: false,
    };
    request.indexes = vec![
        index("by_name", "name", None),
        index("by_note", "note", Some(8)),
    ];
    catalog.create_table(request).unwrap();
    change(&catalog, |table, transaction| {
        for id in 0..500i64 {
            let length = if id % 50 == 0 { 20_000 } else { 10 };
            let row = [
                Value::Int(id),
                Value::Text(format!("Name {}", id % 7)),
                Value::Text(format!("{id:05}").repeat(length / 5)),
            ];
            table.insert(transaction, &row).unwrap();
        }
    });
    (directory, catalog)
}

fn change(catalog: &Catalog, change: impl FnOnce(&Arc<Table>, &mut Transaction)) {
    let table = catalog.open_for_write("d", "t", Duration::ZERO).unwrap();
    let mut transaction = catalog.storage().begin_transaction();
    change(&table, &mut transaction);
    transaction.commit().unwrap();
}

fn checked(catalog: &Catalog) -> CheckReport {
    check(catalog, MEMORY_BYTES, &NoProgress).unwrap()
}

fn findings(report: &CheckReport) -> Vec<String> {
    let text = |finding: &sheaf_table::check::Finding| {
        let what = finding.detail.split(':').next().unwrap_or_default();
        format!("{}: {what}", finding.object)
    };
    report.findings.iter().map(text).collect()
}

#[test]
fn nothing_is_wrong_with_healthy_data() {
    let (_directory, catalog) = catalog();
    let report = checked(&catalog);
    assert_eq!(findings(&report), Vec::<String>::new());
    assert_eq!(
        (report.tables, report.rows, report.index_entries),
        (1, 500, 1000)
    );
    change(&catalog, |table, transaction| {
        for id in (0..500i64).step_by(3) {
            let key = table.encode_primary_key(&[Value::Int(id), Value::Null, Value::Null]);
            assert!(table.delete(transaction, &key).unwrap());
        }
    });
    let report = checked(&catalog);
    assert_eq!(
        (report.rows, report.index_entries, report.found),
        (333, 666, 0)
    );
}

#[test]
fn an_index_that_disagrees_with_its_table_is_found() {
    let (_directory, catalog) = catalog();
    let table = catalog.table("d", "t").unwrap();
    let entries = |index: usize, ids: &[i64]| -> Vec<Vec<u8>> {
        let row = |id: i64| {
            let key = table.encode_primary_key(&[Value::Int(id), Value::Null, Value::Null]);
            table.read_row(&key).unwrap().unwrap()
        };
        let entry = |&id: &i64| {
            let row = row(id);
            let mut key = Vec::new();
            table.secondary_layouts[index].encode_entry(
                |column| (&row[column]).into(),
                0,
                &mut key,
                &mut Vec::new(),
            );
            key
        };
        ids.iter().map(entry).collect()
    };
    let (names, notes) = (entries(0, &[3, 4]), entries(1, &[5]));
    change(&catalog, |table, transaction| {
        table.secondary[0].delete(transaction, &names[0]).unwrap();
        table.secondary[0]
            .update(transaction, &names[1], b"not its payload")
            .unwrap();
        let mut superfluous = notes[0].clone();
        superfluous.push(0);
        table.secondary[1]
            .insert(transaction, &superfluous, b"")
            .unwrap();
    });
    let report = checked(&catalog);
    assert_eq!(
        findings(&report),
        [
            "d.t.by_name: missing in the index",
            "d.t.by_name: payload differs from the row",
            "d.t.by_note: no such row in the table",
        ]
    );
    assert_eq!(report.found, 3);
}

/// The entries of a new index end with the whole primary key, wherever the rows have its values.
#[test]
fn an_index_is_added_to_rows_with_long_primary_keys() {
    let long = [
        ("varbinary(3000)", Value::Bytes(vec![b'p'; 2_000])),
        ("varchar(760)", text(&"😀".repeat(760))),
        ("varchar(500) collate utf8mb4_bin", text(&"😀".repeat(500))),
    ];
    for (ty, value) in long {
        for (primary_key, beside_writers) in [
            (&["p"][..], false),
            (&["p"], true),
            (&["p(100)"], true),
            (&["id", "p"], false),
            (&["p", "id"], true),
        ] {
            let (_directory, catalog) = scratch();
            let mut columns = vec![column("id", "int"), column("p", ty), column("v", "int")];
            columns[1].nullable = false;
            let mut request = CreateTable::new("d", "t", columns);
            request.primary_key = Some(parts(primary_key));
            catalog.create_table(request).unwrap();
            change(&catalog, |table, transaction| {
                let short = match &value {
                    Value::Bytes(_) => Value::Bytes(vec![b's']),
                    _ => text("s"),
                };
                for (id, value) in [(1, &value), (2, &short)] {
                    let row = [Value::Int(id), value.clone(), Value::Int(id)];
                    table.insert(transaction, &row).unwrap();
                }
            });
            let changes = [
                Alteration::AddIndex(index("by_v", &["v"], true)),
                Alteration::AddIndex(index("by_id", &["id", "v"], false)),
            ];
            let options = AlterOptions {
                beside_writers,
                ..AlterOptions::default()
            };
            catalog
                .alter_table(("d", "t"), &changes, &options, &NoProgress, NO_WAIT)
                .unwrap();
            let report = checked(&catalog);
            assert_eq!(
                findings(&report),
                Vec::<String>::new(),
                "{ty} {primary_key:?}"
            );
            assert_eq!((report.rows, report.index_entries), (2, 4));
        }
    }
}

#[test]
fn many_wrong_entries_are_counted() {
    let (_directory, catalog) = catalog();
    change(&catalog, |table, transaction| {
        for id in 0..100i64 {
            let key = table.encode_primary_key(&[Value::Int(id), Value::Null, Value::Null]);
            // The row alone goes; its entries stay.
            assert!(table.clustered.delete(transaction, &key).unwrap());
        }
    });
    let report = checked(&catalog);
    // Ten of each index, and one line for the others.
    assert_eq!(report.findings.len(), 22);
    let last = &report.findings[10];
    assert_eq!(
        (last.object.as_str(), last.detail.as_str()),
        ("d.t.by_name", "90 more entries are wrong")
    );
}

#[test]
fn a_damaged_page_and_a_tree_without_a_table_are_found() {
    let (directory, catalog) = catalog();
    catalog.storage().close().unwrap();
    drop(catalog);
    // Pages are 16 KiB; a page's type is its fifth byte, and 3 is a leaf.
    let path = directory.path().join("sheaf.data");
    let mut bytes = std::fs::read(&path).unwrap();
    let tree_of = |page: &[u8]| u64::from_le_bytes(page[16..24].try_into().unwrap());
    let leaf = bytes
        .chunks(16 << 10)
        .rposition(|page| page[4] == 3 && tree_of(page) > 2 && page[2000] != 0)
        .expect("there are leaves");
    bytes[(leaf << 14) + 2000] ^= 1;
    std::fs::write(&path, bytes).unwrap();

    let options = StorageOptions {
        pool_bytes: 8 << 20,
        ..StorageOptions::default()
    };
    let catalog = Catalog::open(Storage::open(directory.path(), options).unwrap()).unwrap();
    // Opening the catalog drops trees without a table; this one comes later.
    catalog.storage().create_tree().unwrap();
    let report = checked(&catalog);
    let found = findings(&report);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found
            .iter()
            .any(|finding| finding.ends_with("belongs to no table")),
        "{found:?}"
    );
    assert!(
        report
            .findings
            .iter()
            .any(|finding| finding.detail.contains("checksum")),
        "{:?}",
        report.findings
    );
}
