//! What the catalog keeps in memory has limits: definitions are refused, statistics leave and are read again.

use std::path::Path;
use std::sync::Arc;

use sheaf_storage::{Storage, StorageOptions};
use sheaf_table::{
    Alteration, Catalog, CatalogLimits, ColumnPlace, CreateTable, TableError, TableStatistics,
};
use sheaf_types::Value;
use sheaf_types::error::codes;

use crate::fixture::{NO_WAIT, alter, column, drop_table, parts};

fn open_within(directory: &Path, limits: CatalogLimits) -> Arc<Catalog> {
    let options = StorageOptions {
        pool_bytes: 8 << 20,
        ..StorageOptions::default()
    };
    let storage = Storage::open(directory, options).unwrap();
    Catalog::open_within(storage, limits).unwrap()
}

fn table_of(name: &str, columns: usize) -> CreateTable {
    let columns = (0..columns).map(|n| column(&format!("c{n}"), "int", n > 0));
    let mut request = CreateTable::new("d", name, columns.collect());
    request.primary_key = Some(parts(&["c0"]));
    request
}

fn is_refused<T>(outcome: Result<T, TableError>) -> bool {
    match outcome {
        Ok(_) => false,
        Err(error @ TableError::DefinitionsTooLarge { .. }) => {
            assert_eq!(error.code(), codes::OUT_OF_RESOURCES);
            true
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn definitions_have_at_most_so_many_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let limits = CatalogLimits {
        definition_bytes: 200_000,
        ..CatalogLimits::default()
    };
    let catalog = open_within(directory.path(), limits);
    catalog.create_database("d").unwrap();
    let made = (0..100).take_while(|n| {
        let made = catalog.create_table(table_of(&format!("t{n}"), 20));
        !is_refused(made)
    });
    let made = made.count();
    assert!((8..20).contains(&made), "{made}");
    // What is refused leaves nothing, and what is smaller has room.
    assert!(catalog.table("d", &format!("t{made}")).is_err());
    let add = |n: usize| Alteration::AddColumn {
        column: column(&format!("added{n}"), "int", true),
        place: ColumnPlace::Last,
    };
    let added = (0..100).take_while(|n| !is_refused(alter(&catalog, "t0", &[add(*n)])));
    let added = added.count();
    assert!(added < 30, "{added}");
    // No table grows, and each can be emptied, renamed and dropped, which makes room.
    catalog.truncate_table(("d", "t1"), true, NO_WAIT).unwrap();
    let name = |name: &str| ("d".to_string(), name.to_string());
    let renames = [(name("t1"), name("renamed"))];
    catalog.rename_tables(&renames, NO_WAIT).unwrap();
    assert!(is_refused(catalog.create_table(table_of("u", 20))));
    drop_table(&catalog, "renamed").unwrap();
    catalog.create_table(table_of("u", 20)).unwrap();
    drop(catalog);

    // With less memory all of them are there.
    let less = CatalogLimits {
        definition_bytes: 50_000,
        ..CatalogLimits::default()
    };
    let catalog = open_within(directory.path(), less);
    assert_eq!(catalog.tables("d").unwrap().len(), made);
    assert!(is_refused(catalog.create_table(table_of("v", 1))));
    drop_table(&catalog, "u").unwrap();
}

#[test]
fn statistics_leave_and_are_read_again() {
    const TABLES: usize = 8;
    let directory = tempfile::tempdir().unwrap();
    let limits = CatalogLimits {
        statistics_bytes: 100_000,
        ..CatalogLimits::default()
    };
    let catalog = open_within(directory.path(), limits);
    catalog.create_database("d").unwrap();
    let mut expected: Vec<Arc<TableStatistics>> = Vec::new();
    for n in 0..TABLES {
        let name = format!("t{n}");
        catalog.create_table(table_of(&name, 3)).unwrap();
        let table = catalog.open_for_write("d", &name, NO_WAIT).unwrap();
        let mut transaction = catalog.storage().begin_transaction();
        for row in 0..1000 {
            let row = [row, row * n as i64, row % 300].map(Value::Int);
            table.insert(&mut transaction, &row).unwrap();
        }
        transaction.commit().unwrap();
        drop(table);
        let options = Default::default();
        let found = catalog.analyze_with("d", &name, &options, NO_WAIT);
        expected.push(found.unwrap());
    }
    let all: usize = expected.iter().map(|found| found.memory_bytes()).sum();
    assert!(all > 2 * limits.statistics_bytes, "{all}");
    let check = |catalog: &Catalog| {
        for _ in 0..3 {
            for (n, expected) in expected.iter().enumerate() {
                let table = catalog.table("d", &format!("t{n}")).unwrap();
                assert_eq!(table.statistics().as_ref(), Some(expected));
                assert_eq!(table.changed_rows(), 0);
                let kept = catalog.statistics_bytes();
                assert!((1..=limits.statistics_bytes).contains(&kept), "{kept}");
            }
        }
    };
    check(&catalog);
    drop(catalog);
    let catalog = open_within(directory.path(), limits);
    assert_eq!(catalog.statistics_bytes(), 0, "nobody has asked for them");
    check(&catalog);
    for n in 0..TABLES {
        drop_table(&catalog, &format!("t{n}")).unwrap();
    }
    assert_eq!(catalog.statistics_bytes(), 0);
}
