//! Invisible columns and indexes: what the catalog keeps of them, and that indexes are written like any other.

use std::sync::Arc;

use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{Storage, StorageOptions};
use sheaf_table::{Alteration, Catalog, CreateTable};

use crate::fixture::*;

/// The example with an invisible column and two invisible indexes.
fn hidden_example() -> CreateTable {
    let mut request = example();
    request.columns[2].invisible = true;
    request.indexes[0].invisible = true;
    request.indexes[2].invisible = true;
    request
}

/// The names of what is invisible in the table: columns and then indexes.
fn invisible(catalog: &Catalog) -> Vec<String> {
    let table = catalog.table("d", "t").unwrap();
    let columns = table.definition.columns.iter();
    let columns = columns.filter(|column| column.invisible);
    let indexes = table.definition.secondary.iter();
    let indexes = indexes.filter(|index| index.invisible);
    let names = columns.map(|column| column.name.clone());
    names
        .chain(indexes.map(|index| index.name.clone()))
        .collect()
}

fn show_column(name: &str, invisible: bool) -> Alteration {
    Alteration::ColumnVisibility {
        column: name.into(),
        invisible,
    }
}

fn show_index(name: &str, invisible: bool) -> Alteration {
    Alteration::IndexVisibility {
        name: name.into(),
        invisible,
    }
}

#[test]
fn what_is_invisible_is_so_after_a_restart() {
    let (directory, catalog) = scratch();
    catalog.create_table(hidden_example()).unwrap();
    let numbered: Vec<_> = (1..=100)
        .map(|id| row(id, &format!("n{id}"), "note", 7))
        .collect();
    insert(&catalog, &numbered).unwrap();
    let twice = insert(&catalog, &[row(101, "n5", "note", 7)]).unwrap_err();
    assert_eq!(twice.mysql_code(), 1062);
    assert_eq!(invisible(&catalog), ["note", "by_name", "by_note"]);
    let trees = catalog.storage().tree_ids().unwrap();
    let changes = [
        show_column("NOTE", false),
        show_column("price", true),
        show_index("By_Name", false),
        show_index("by_price", true),
    ];
    alter(&catalog, "t", &changes).unwrap();
    // The trees stay.
    assert_eq!(catalog.storage().tree_ids().unwrap(), trees);
    catalog.storage().close().unwrap();
    drop(catalog);
    let catalog = open(directory.path());
    assert_eq!(invisible(&catalog), ["price", "by_price", "by_note"]);
    assert_eq!(rows(&catalog.table("d", "t").unwrap()).len(), 100);
    // A copy keeps it, too.
    alter(&catalog, "t", &[Alteration::Rebuild]).unwrap();
    assert_eq!(invisible(&catalog), ["price", "by_price", "by_note"]);
    assert_eq!(rows(&catalog.table("d", "t").unwrap()).len(), 100);
}

#[test]
fn a_crash_leaves_indexes_visible_or_invisible() {
    let options = || StorageOptions {
        pool_bytes: 4 << 20,
        ..StorageOptions::default()
    };
    for ahead in 0..12 {
        let disk = SimulatedDisk::new(SimulationOptions::new(ahead));
        let open_on = |disk: &Arc<SimulatedDisk>| {
            Catalog::open(Storage::open_on(disk.clone(), options()).unwrap()).unwrap()
        };
        let catalog = open_on(&disk);
        catalog.create_database("d").unwrap();
        catalog.create_table(example()).unwrap();
        insert(&catalog, &[row(1, "a", "note", 7)]).unwrap();
        disk.crash_after(Some(ahead));
        let changes = [show_column("note", true), show_index("by_price", true)];
        let done = alter(&catalog, "t", &changes);
        drop(catalog);
        let catalog = open_on(&disk.power_loss(SimulationOptions::new(ahead)));
        let found = invisible(&catalog);
        let is_new = found == ["note", "by_price"];
        assert!(
            is_new || found.is_empty() && done.is_err(),
            "{ahead}: {found:?}"
        );
        assert_eq!(rows(&catalog.table("d", "t").unwrap()).len(), 1);
    }
}

#[test]
fn something_stays_visible() {
    let (_directory, catalog) = scratch();
    catalog.create_table(hidden_example()).unwrap();
    let all = ["id", "name", "note", "price"];
    let all = all.map(|name| show_column(name, true));
    for (changes, code) in [
        (all.to_vec(), 4028),
        (vec![show_column("nothing", true)], 1054),
        (
            vec![show_column("id", true), show_column("id", false)],
            1054,
        ),
        (vec![show_index("nothing", true)], 1176),
        (vec![show_index("PRIMARY", true)], 3522),
        (
            vec![
                show_index("by_price", true),
                Alteration::DropIndex("by_price".into()),
            ],
            1176,
        ),
        (
            vec![
                Alteration::AddIndex(index("more", &["price"], false)),
                show_index("more", true),
            ],
            1176,
        ),
        (
            vec![
                Alteration::RenameIndex {
                    name: "by_price".into(),
                    new: "more".into(),
                },
                show_index("more", true),
            ],
            1176,
        ),
    ] {
        let refused = alter(&catalog, "t", &changes).unwrap_err();
        assert_eq!(refused.mysql_code(), code, "{changes:?}");
    }
    assert_eq!(invisible(&catalog), ["note", "by_name", "by_note"]);
    // A unique key of columns that are NOT NULL stands for a primary key.
    let mut request = CreateTable::new("d", "u", vec![column("a", "int", false)]);
    request.indexes = vec![index("a", &["a"], true)];
    request.indexes[0].invisible = true;
    let refused = catalog.create_table(request.clone()).unwrap_err();
    assert_eq!(refused.mysql_code(), 3522);
    request.indexes[0].invisible = false;
    catalog.create_table(request).unwrap();
    let refused = alter(&catalog, "u", &[show_index("a", true)]).unwrap_err();
    assert_eq!(refused.mysql_code(), 3522);
}
