//! Tables, databases and indexes come and go while others use them; statistics are kept.

use std::sync::{Arc, Mutex};

use sheaf_storage::disk::simulated::{
    Fault, FaultKind, FaultyOperation, SimulatedDisk, SimulationOptions,
};
use sheaf_storage::{Storage, StorageOptions};
use sheaf_table::{
    AlterOptions, Alteration, Catalog, CreateTable, NoProgress, Progress, TableError,
};
use sheaf_types::{Collation, Value};

use crate::fixture::*;

#[test]
fn indexes_are_built_on_filled_tables_and_dropped() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    insert(
        &catalog,
        &many_rows(3000, |i| i * 31 % 3000).collect::<Vec<_>>(),
    )
    .unwrap();
    let create = |spec| alter(&catalog, "t", &[Alteration::AddIndex(spec)]);
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
    drop_index(&catalog, "t", "Both").unwrap();
    assert!(!table.is_current());
    let table = catalog.table("d", "t").unwrap();
    assert_eq!(table.secondary.len(), 4);
    assert_eq!(rows(&table).len(), 3000);
    assert_eq!(
        drop_index(&catalog, "t", "both").unwrap_err().mysql_code(),
        1091
    );
}

/// Names of the secondary indexes of a table, in their order.
fn index_names(catalog: &Catalog, table: &str) -> Vec<String> {
    let table = catalog.table("d", table).unwrap();
    let indexes = table.definition.secondary.iter();
    indexes.map(|index| index.name.clone()).collect()
}

#[test]
fn a_table_is_altered_whole_or_not_at_all() {
    let (directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    let numbered: Vec<_> = (1..=100)
        .map(|id| row(id, &format!("n{id}"), "note", 7))
        .collect();
    insert(&catalog, &numbered).unwrap();
    let add =
        |name: &str, columns: &[&str], unique| Alteration::AddIndex(index(name, columns, unique));
    let without = |name: &str| Alteration::DropIndex(name.into());
    let rename = |database: &str, table: &str| Alteration::RenameTo {
        database: database.into(),
        table: table.into(),
    };
    let trees = catalog.storage().tree_ids().unwrap();
    let version = catalog.schema_version();
    for (last, code) in [
        (add("twice", &["price"], true), 1062),
        (add("more", &["nothing"], false), 1072),
        (add("MORE", &["price"], false), 1061),
        (without("more"), 1091),
        (rename("d", "t "), 1103),
        (rename("e", "t"), 1049),
    ] {
        let changes = [
            without("by_note"),
            add("more", &["name", "price"], false),
            last,
        ];
        assert_eq!(
            alter(&catalog, "t", &changes).unwrap_err().mysql_code(),
            code
        );
    }
    // Somebody reads: the indexes are built, and then nobody comes in.
    let reader = catalog.open_for_read("d", "t", NO_WAIT).unwrap();
    let changes = [
        without("by_note"),
        add("by_note", &["note(2)"], false),
        add("more", &["price"], false),
        rename("d", "u"),
    ];
    let refused = alter(&catalog, "t", &changes);
    assert!(matches!(refused, Err(TableError::LockWaitTimeout)));
    drop(reader);
    assert_eq!(catalog.storage().tree_ids().unwrap(), trees);
    assert_eq!(catalog.schema_version(), version);
    alter(&catalog, "t", &changes).unwrap();
    assert_eq!(catalog.storage().tree_ids().unwrap().len(), trees.len() + 1);
    catalog.storage().close().unwrap();
    drop(catalog);
    let catalog = open(directory.path());
    assert!(catalog.table("d", "t").is_err());
    assert_eq!(
        index_names(&catalog, "u"),
        ["by_name", "by_price", "by_note", "more"]
    );
    assert_eq!(rows(&catalog.table("d", "u").unwrap()).len(), 100);
}

/// Notes down the phases of the work.
#[derive(Default)]
struct Phases(Mutex<Vec<String>>);

impl Progress for Phases {
    fn begin(&self, name: &str, _total: Option<u64>) {
        self.0.lock().unwrap().push(name.to_string());
    }

    fn advance(&self, _units: u64) {}
}

#[test]
fn the_rows_are_read_once_for_several_indexes() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    let inserted: Vec<_> = many_rows(10_000, |i| i * 31 % 10_000).collect();
    insert(&catalog, &inserted).unwrap();
    let changes = [
        Alteration::AddIndex(index("a", &["note(300)", "price"], false)),
        Alteration::AddIndex(index("b", &["name", "note(2)"], true)),
        Alteration::AddIndex(index("c", &["price"], false)),
    ];
    let phases = Phases::default();
    catalog
        .alter_table(
            ("d", "t"),
            &changes,
            &AlterOptions::default(),
            &phases,
            NO_WAIT,
        )
        .unwrap();
    // For writers first, and in the end for transactions that read the table as it was.
    let waiting = "Waiting for table metadata lock";
    let expected = [
        waiting,
        // The unique one comes first.
        "sorting index b, a, c",
        "building index b",
        "building index a",
        "building index c",
        waiting,
    ];
    assert_eq!(*phases.0.lock().unwrap(), expected);
    assert_eq!(rows(&catalog.table("d", "t").unwrap()).len(), 10_000);
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
    let by_v = Alteration::AddIndex(index("v", &["v"], false));
    alter(&catalog, "t", &[by_v]).unwrap();
    assert_eq!(rows(&catalog.table("d", "t").unwrap()).len(), 500);
}

#[test]
fn ddl_waits_for_readers_and_readers_see_the_new_table() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    let version = catalog.schema_version();
    let reader = catalog.open_for_read("d", "t", NO_WAIT).unwrap();
    assert!(matches!(
        drop_index(&catalog, "t", "by_name"),
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
    drop_index(&catalog, "t", "by_name").unwrap();
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
fn tables_are_dropped_together_or_not_at_all() {
    let (_directory, catalog) = scratch();
    let trees = catalog.storage().tree_ids().unwrap();
    for name in ["a", "b", "c"] {
        let columns = vec![column("v", "int", true)];
        catalog
            .create_table(CreateTable::new("d", name, columns))
            .unwrap();
    }
    let names = |tables: &[&str]| -> Vec<(String, String)> {
        let tables = tables.iter();
        tables.map(|name| ("d".into(), name.to_string())).collect()
    };
    let absent = catalog.drop_tables(&names(&["a", "x", "b"]), true, NO_WAIT);
    assert!(matches!(absent, Err(TableError::CannotDropTable { table, .. }) if table == "x"));
    let reader = catalog.open_for_read("d", "b", NO_WAIT).unwrap();
    let refused = catalog.drop_tables(&names(&["a", "b", "c"]), true, NO_WAIT);
    assert!(matches!(refused, Err(TableError::LockWaitTimeout)));
    let refused = catalog.drop_database("d", true, NO_WAIT);
    assert!(matches!(refused, Err(TableError::LockWaitTimeout)));
    assert_eq!(catalog.tables("d").unwrap().len(), 3);
    assert!(catalog.open_for_read("d", "a", NO_WAIT).is_ok());
    drop(reader);
    catalog
        .drop_tables(&names(&["c", "a"]), true, NO_WAIT)
        .unwrap();
    assert_eq!(catalog.tables("d").unwrap().len(), 1);
    assert_eq!(catalog.drop_database("d", true, NO_WAIT).unwrap(), 1);
    assert_eq!(catalog.storage().tree_ids().unwrap(), trees);
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
    let name = |database: &str, table: &str| (database.to_string(), table.to_string());
    let rename = |from, to| catalog.rename_tables(&[(from, to)], NO_WAIT);
    let refused = rename(name("d", "t"), name("d", "t")).unwrap_err();
    assert_eq!(refused.mysql_code(), 1050);
    rename(name("d", "t"), name("e", "u")).unwrap();
    assert!(catalog.tables("d").unwrap().is_empty());
    assert_eq!(
        values(&catalog.table("e", "u").unwrap()),
        [row(1, "a", "b", 1)]
    );
    assert_eq!(catalog.drop_database("e", true, NO_WAIT).unwrap(), 1);
    assert_eq!(
        catalog
            .drop_database("e", true, NO_WAIT)
            .unwrap_err()
            .mysql_code(),
        1008
    );
    assert_eq!(drop_table(&catalog, "t").unwrap_err().mysql_code(), 1051);
    assert_eq!(catalog.databases(), ["d"]);
}

#[test]
fn databases_keep_their_collations() {
    let directory = tempfile::tempdir().unwrap();
    let collation = |catalog: &Catalog, name| catalog.database_collation(name).unwrap();
    {
        let catalog = open(directory.path());
        catalog.create_database("d").unwrap();
        let refused = catalog.create_database_with("d", Collation::Binary);
        assert_eq!(refused.unwrap_err().mysql_code(), 1007);
        catalog
            .create_database_with("e", Collation::Utf8mb4_bin)
            .unwrap();
        catalog.create_database("f").unwrap();
        catalog.create_table(example()).unwrap();
        catalog
            .set_database_collation("f", Collation::Binary)
            .unwrap();
        let refused = catalog.set_database_collation("x", Collation::Binary);
        assert_eq!(refused.unwrap_err().mysql_code(), 1049);
        assert_eq!(collation(&catalog, "f"), Collation::Binary);
        catalog.storage().close().unwrap();
    }
    let catalog = open(directory.path());
    assert_eq!(collation(&catalog, "d"), Collation::Utf8mb4_0900_ai_ci);
    assert_eq!(collation(&catalog, "e"), Collation::Utf8mb4_bin);
    assert_eq!(collation(&catalog, "f"), Collation::Binary);
    // A change leaves the tables where they are.
    catalog
        .set_database_collation("d", Collation::Utf8mb4_general_ci)
        .unwrap();
    assert_eq!(catalog.tables("d").unwrap().len(), 1);
    assert_eq!(collation(&catalog, "d"), Collation::Utf8mb4_general_ci);
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
fn a_new_index_has_no_statistics_of_a_dropped_one() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    insert(&catalog, &many_rows(500, |i| i).collect::<Vec<_>>()).unwrap();
    catalog.analyze("d", "t", NO_WAIT).unwrap();
    let found = |catalog: &Catalog| {
        let table = catalog.table("d", "t").unwrap();
        let position = table.definition.secondary_position("by_note").unwrap();
        table.distinct_prefixes(Some(position))
    };
    assert!(found(&catalog).is_some());
    let without = Alteration::DropIndex("by_note".into());
    let with = Alteration::AddIndex(index("by_note", &["price"], false));
    alter(&catalog, "t", &[without.clone(), with.clone()]).unwrap();
    assert_eq!(found(&catalog), None);
    alter(&catalog, "t", std::slice::from_ref(&without)).unwrap();
    alter(&catalog, "t", std::slice::from_ref(&with)).unwrap();
    assert_eq!(found(&catalog), None);
    catalog.analyze("d", "t", NO_WAIT).unwrap();
    assert!(found(&catalog).is_some());
}

/// A commit that finds no room in the log is in its buffer all the same, and becomes durable when there is some.
#[test]
fn a_definition_whose_commit_finds_no_room_in_the_log_is_whole_after_a_restart() {
    let open_on = |disk: &Arc<SimulatedDisk>| {
        let options = StorageOptions {
            pool_bytes: 4 << 20,
            background_writer: false,
            ..StorageOptions::default()
        };
        Catalog::open(Storage::open_on(disk.clone(), options).unwrap()).unwrap()
    };
    let name = |table: &str| ("d".to_string(), table.to_string());
    type Change<'c> = &'c dyn Fn(&Catalog) -> Result<(), TableError>;
    let changes: [Change<'_>; 6] = [
        &|catalog| {
            let columns = vec![column("v", "int", true)];
            let made = catalog.create_table(CreateTable::new("d", "new", columns));
            made.map(drop)
        },
        &|catalog| catalog.set_database_collation("d", Collation::Utf8mb4_bin),
        &|catalog| catalog.truncate_table(("d", "t"), true, NO_WAIT),
        &|catalog| alter(catalog, "t", &[Alteration::Rebuild]),
        &|catalog| catalog.rename_tables(&[(name("t"), name("other"))], NO_WAIT),
        &|catalog| drop_table(catalog, "t"),
    ];
    for (seed, change) in changes.into_iter().enumerate() {
        let disk = SimulatedDisk::new(SimulationOptions::new(seed as u64));
        let catalog = open_on(&disk);
        catalog.create_database("d").unwrap();
        catalog.create_table(example()).unwrap();
        // A file system that needs room to write what was allocated before.
        disk.inject(Fault {
            operation: FaultyOperation::Write,
            kind: FaultKind::NoSpace,
            file: "sheaf.log".into(),
            bytes: 0..u64::MAX,
            times: u32::MAX,
        });
        assert_eq!(change(&catalog).unwrap_err().mysql_code(), 1021, "{seed}");
        disk.heal();
        let is_inserted = insert(&catalog, &[row(1, "a", "b", 1)]).is_ok();
        let after = disk.power_loss(SimulationOptions::new(100 + seed as u64));
        drop(catalog);
        let catalog = open_on(&after);
        if is_inserted {
            let table = catalog.table("d", "t").unwrap();
            assert_eq!(values(&table), [row(1, "a", "b", 1)], "{seed}");
        }
        for table in catalog.tables("d").unwrap() {
            rows(&table);
        }
    }
}

#[test]
fn changes_are_made_of_the_version_that_they_were_made_for() {
    let (_directory, catalog) = scratch();
    let before = catalog.create_table(example()).unwrap();
    let alter = |version| {
        let options = AlterOptions {
            version: Some(version),
            ..AlterOptions::default()
        };
        let changes = [Alteration::SetComment("altered".into())];
        let altered = catalog.alter_table(("d", "t"), &changes, &options, &NoProgress, NO_WAIT);
        altered.map(drop)
    };
    drop_index(&catalog, "t", "by_note").unwrap();
    let refused = alter(before);
    assert!(matches!(refused, Err(TableError::DefinitionChanged)));
    alter(catalog.table("d", "t").unwrap()).unwrap();
}

/// A statement that shows a table holds no lock of it, and has perhaps found it long ago.
#[test]
fn the_counter_of_a_table_is_not_looked_up_where_it_is_not_any_more() {
    let (_directory, catalog) = scratch();
    let before = catalog.create_table(example()).unwrap();
    alter(&catalog, "t", &[Alteration::SetAutoIncrement(100)]).unwrap();
    // It is known at once, and what a definition of before says does not become what the table gives out.
    assert_eq!(before.shown_auto_increment().unwrap(), Some(100));
    let table = catalog.table("d", "t").unwrap();
    assert_eq!(table.shown_auto_increment().unwrap(), Some(100));
    drop_table(&catalog, "t").unwrap();
    // Nobody has asked for it before the table went.
    let table = catalog.create_table(example()).unwrap();
    drop_table(&catalog, "t").unwrap();
    assert_eq!(table.shown_auto_increment().unwrap(), None);
}
