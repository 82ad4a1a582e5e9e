//! Bulk loads: they make what inserts make, in any order and any memory, or nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{Storage, StorageOptions};
use sheaf_table::{BulkLoad, BulkLoadOptions, Catalog, NoProgress, Progress, TableError};
use sheaf_types::{Value, temporal::TimeZone};

use crate::fixture::*;

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
            drop_table(&catalog, "t").unwrap();
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
        std::fs::read_dir(catalog.storage().temp_space().directory()).map_or(0, Iterator::count),
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

/// A row that is there twice is so in every index. Threads write the indexes at the same time, and any may be the first
/// to find it.
#[test]
fn a_row_that_is_there_twice_is_named_by_its_primary_key() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    for _ in 0..100 {
        let table = catalog.open_for_write("d", "t", NO_WAIT).unwrap();
        let options = BulkLoadOptions {
            memory_bytes: 1 << 20,
            threads: 4,
        };
        let mut load = BulkLoad::new(&catalog, table, options, Arc::new(NoProgress)).unwrap();
        for row in many_rows(301, |i| i * 31 % 300) {
            load.append(&row).unwrap();
        }
        assert_eq!(
            load.finish(NO_WAIT).unwrap_err().to_string(),
            "Duplicate entry '1' for key 't.PRIMARY'"
        );
    }
}

#[test]
fn an_error_shows_the_beginning_of_a_long_entry() {
    let (_directory, catalog) = scratch();
    let mut request = example();
    request.columns[1] = column("name", "varchar(200)", true);
    catalog.create_table(request).unwrap();
    let name = format!("{}{}", "n".repeat(63), "é".repeat(100));
    let twice = [row(1, &name, "", 0), row(2, &name, "", 0)];
    let shown = format!("Duplicate entry '{}' for key 't.by_name'", "n".repeat(63));
    let inserted = insert(&catalog, &twice).unwrap_err();
    assert_eq!(inserted.to_string(), shown);
    let loaded = load(&catalog, twice.into_iter(), 1 << 20, Arc::new(NoProgress)).unwrap_err();
    assert_eq!(loaded.to_string(), shown);
}

/// Loads a table that is made with its rows.
fn load_new(
    catalog: &Arc<Catalog>,
    rows: impl Iterator<Item = Vec<Value>>,
    progress: Arc<dyn Progress>,
) -> Result<u64, TableError> {
    let options = BulkLoadOptions {
        memory_bytes: 1 << 20,
        threads: 2,
    };
    let mut load = BulkLoad::of_new_table(catalog, example(), TimeZone::UTC, options, progress)?;
    for row in rows {
        load.append(&row)?;
        assert!(catalog.table("d", "t").is_err());
    }
    load.finish(NO_WAIT)
}

#[test]
fn a_table_is_made_with_its_rows_or_not_at_all() {
    let (directory, catalog) = scratch();
    let trees = catalog.storage().tree_ids().unwrap();
    let quiet = || Arc::new(NoProgress);
    let duplicate = many_rows(3000, |i| i * 31 % 3000).chain([row(9999, "name 5", "", 0)]);
    let refused = load_new(&catalog, duplicate, quiet()).unwrap_err();
    assert_eq!(refused.mysql_code(), 1062);
    let cancelled = Arc::new(Counting {
        units: AtomicU64::new(0),
        stop_after: 1,
    });
    let refused = load_new(&catalog, many_rows(10_000, |i| i), cancelled);
    assert!(matches!(refused, Err(TableError::Interrupted)));
    // Somebody makes a table of this name meanwhile.
    let options = BulkLoadOptions {
        memory_bytes: 1 << 20,
        threads: 1,
    };
    let mut late =
        BulkLoad::of_new_table(&catalog, example(), TimeZone::UTC, options, quiet()).unwrap();
    late.append(&row(1, "a", "b", 1)).unwrap();
    catalog.create_table(example()).unwrap();
    assert!(matches!(
        late.finish(NO_WAIT),
        Err(TableError::TableExists { .. })
    ));
    assert!(matches!(
        load_new(&catalog, many_rows(1, |i| i), quiet()),
        Err(TableError::TableExists { .. })
    ));
    assert!(catalog.table("d", "t").unwrap().is_empty().unwrap());
    drop_table(&catalog, "t").unwrap();
    assert_eq!(catalog.storage().tree_ids().unwrap(), trees);

    let scrambled = many_rows(3000, |i| i * 31 % 3000);
    assert_eq!(load_new(&catalog, scrambled, quiet()).unwrap(), 3000);
    let table = catalog.table("d", "t").unwrap();
    assert!(table.is_current());
    assert!(values(&table).into_iter().eq(many_rows(3000, |i| i)));
    let next = vec![Value::Null, Value::Null, Value::Null, Value::Null];
    insert(&catalog, &[next]).unwrap();
    assert_eq!(values(&table)[3000][0], Value::Int(3001));
    assert_eq!(catalog.storage().tree_ids().unwrap().len(), trees.len() + 5);
    catalog.storage().close().unwrap();
    drop((table, catalog));
    let catalog = open(directory.path());
    assert_eq!(rows(&catalog.table("d", "t").unwrap()).len(), 3001);
    let mut other = example();
    other.name = "u".into();
    let other = catalog.create_table(other).unwrap();
    assert!(other.definition.id > catalog.table("d", "t").unwrap().definition.id);
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
