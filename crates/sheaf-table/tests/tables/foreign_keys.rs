//! Foreign keys: what they ask of definitions, and what they make of changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sheaf_table::{
    AlterOptions, Alteration, BulkLoad, BulkLoadOptions, Catalog, ChangeSet, Column, CreateTable,
    ForeignKeySpec, IndexPartSpec, IndexSpec, NoProgress, Progress, ReferentialAction, Table,
    TableError,
};
use sheaf_types::{ColumnType, Value, temporal::TimeZone};

use crate::fixture::{alter, drop_index, open, scratch};

const NO_WAIT: Duration = Duration::from_millis(200);

/// A table `name (id int primary key, a int, b int)`.
fn table(name: &str) -> CreateTable {
    let int = |name: &str, nullable| {
        Column::new(
            name,
            ColumnType::Int {
                sign: sheaf_types::column_type::Sign::Signed,
            },
            nullable,
        )
    };
    let columns = vec![int("id", false), int("a", true), int("b", true)];
    let mut request = CreateTable::new("d", name, columns);
    request.primary_key = Some(vec![IndexPartSpec::column("id")]);
    request
}

fn references(
    columns: &[&str],
    parent: &str,
    referenced: &[&str],
    on_delete: ReferentialAction,
    on_update: ReferentialAction,
) -> ForeignKeySpec {
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    ForeignKeySpec {
        name: None,
        index_name: None,
        columns: names(columns),
        referenced_database: "d".into(),
        referenced_table: parent.into(),
        referenced_columns: names(referenced),
        on_delete,
        on_update,
    }
}

fn row(values: [Option<i64>; 3]) -> Vec<Value> {
    values
        .into_iter()
        .map(|value| value.map_or(Value::Null, Value::Int))
        .collect()
}

enum Change {
    Insert([Option<i64>; 3]),
    Update(i64, [Option<i64>; 3]),
    Delete(i64),
}

/// Makes one change of a table in a transaction of its own, as a statement would.
fn change(catalog: &Catalog, name: &str, change: Change) -> Result<(), TableError> {
    change_until(catalog, name, change, || false)
}

/// The same, as a statement that may be told to end.
fn change_until(
    catalog: &Catalog,
    name: &str,
    change: Change,
    shall_end: impl Fn() -> bool + Send + Sync + 'static,
) -> Result<(), TableError> {
    let target = catalog.table("d", name)?;
    let guards = catalog
        .related_tables(&[Arc::clone(&target)], TimeZone::UTC)
        .iter()
        .map(|table| {
            let guard = catalog.open_for_write("d", &table.definition.name, NO_WAIT)?;
            Ok(guard.into())
        })
        .collect::<Result<Vec<_>, TableError>>()?;
    let mut set = ChangeSet::new(guards, true);
    set.end_when(shall_end);
    let position = set.position(&target).expect("it is among its relations");
    let mut transaction = catalog.storage().begin_transaction();
    let key = |id: i64| target.encode_primary_key(&row([Some(id), None, None]));
    let before = transaction.savepoint();
    let outcome = match change {
        Change::Insert(values) => set
            .insert(&mut transaction, position, &row(values))
            .map(drop),
        Change::Update(id, values) => {
            let old = target.read_row(&key(id))?.expect("a row");
            set.replace(&mut transaction, position, &key(id), &old, &row(values))
        }
        Change::Delete(id) => set.delete(&mut transaction, position, &key(id)).map(drop),
    };
    if outcome.is_err() {
        assert_eq!(
            transaction.savepoint(),
            before,
            "a failed change leaves nothing"
        );
    }
    transaction.commit()?;
    outcome
}

fn rows(catalog: &Catalog, name: &str) -> Vec<[Option<i64>; 3]> {
    let table: Arc<Table> = catalog.table("d", name).unwrap();
    let mut cursor = table.clustered.scan(
        sheaf_storage::KeyRange::all(),
        sheaf_storage::Direction::Forward,
        sheaf_storage::ReadAhead::Off,
    );
    let mut all = Vec::new();
    while let Some(leaf) = cursor.next_leaf().unwrap() {
        for entry in 0..leaf.len() {
            let row = table
                .decode_row(&table.view(leaf.value(entry)).unwrap())
                .unwrap();
            let number = |value: &Value| value.as_i128().map(|number| number as i64);
            all.push([number(&row[0]), number(&row[1]), number(&row[2])]);
        }
    }
    // The index of the foreign key says the same as the table.
    for (position, tree) in table.secondary.iter().enumerate() {
        assert_eq!(
            tree.statistics().entries,
            all.len() as u64,
            "index {position}"
        );
    }
    all
}

use Change::{Delete, Insert, Update};
use ReferentialAction::{Cascade, NoAction, Restrict, SetNull};

/// `p`, and `c` whose a refers to p.id.
fn family(
    on_delete: ReferentialAction,
    on_update: ReferentialAction,
) -> (tempfile::TempDir, Arc<Catalog>) {
    let (directory, catalog) = scratch();
    catalog.create_table(table("p")).unwrap();
    let mut child = table("c");
    child.foreign_keys = vec![references(&["a"], "p", &["id"], on_delete, on_update)];
    catalog.create_table(child).unwrap();
    for id in 1..=3 {
        change(&catalog, "p", Insert([Some(id), None, None])).unwrap();
    }
    for (id, a) in [(10, Some(1)), (11, Some(1)), (12, Some(2)), (13, None)] {
        change(&catalog, "c", Insert([Some(id), a, None])).unwrap();
    }
    (directory, catalog)
}

#[test]
fn a_child_needs_its_parent() {
    let (_directory, catalog) = family(NoAction, Restrict);
    let no_parent = |outcome| match outcome {
        Err(error @ TableError::NoParentRow { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let message = no_parent(change(&catalog, "c", Insert([Some(20), Some(9), None])));
    assert_eq!(
        message,
        "Cannot add or update a child row: a foreign key constraint fails (`d`.`c`, CONSTRAINT `c_ibfk_1` \
         FOREIGN KEY (`a`) REFERENCES `p` (`id`) ON UPDATE RESTRICT)"
    );
    no_parent(change(&catalog, "c", Update(10, [Some(10), Some(9), None])));
    change(&catalog, "c", Update(10, [Some(10), Some(3), Some(5)])).unwrap();
    change(&catalog, "c", Update(11, [Some(11), None, None])).unwrap();
    let has_child = |outcome| assert!(matches!(outcome, Err(TableError::HasChildRow { .. })));
    has_child(change(&catalog, "p", Delete(3)));
    has_child(change(&catalog, "p", Update(2, [Some(7), None, None])));
    // What nobody refers to may go, and other columns may change.
    change(&catalog, "p", Delete(1)).unwrap();
    change(&catalog, "p", Update(2, [Some(2), Some(5), None])).unwrap();
    assert_eq!(rows(&catalog, "p").len(), 2);
}

#[test]
fn children_go_and_change_with_their_parent() {
    let (_directory, catalog) = family(Cascade, Cascade);
    change(&catalog, "p", Update(1, [Some(100), None, None])).unwrap();
    let all = |a: Option<i64>| [[Some(10), a, None], [Some(11), a, None]];
    assert_eq!(rows(&catalog, "c")[..2], all(Some(100)));
    change(&catalog, "p", Delete(100)).unwrap();
    let left = [[Some(12), Some(2), None], [Some(13), None, None]];
    assert_eq!(rows(&catalog, "c"), left);
}

#[test]
fn children_forget_their_parent() {
    let (_directory, catalog) = family(SetNull, SetNull);
    change(&catalog, "p", Delete(1)).unwrap();
    change(&catalog, "p", Update(2, [Some(20), None, None])).unwrap();
    let orphans = (10..=13).map(|id| [Some(id), None, None]);
    assert_eq!(rows(&catalog, "c"), orphans.collect::<Vec<_>>());
}

/// Three generations: the last one keeps all of them.
#[test]
fn a_cascade_that_fails_further_down_changes_nothing() {
    let (_directory, catalog) = family(Cascade, Cascade);
    let mut grandchild = table("g");
    grandchild.foreign_keys = vec![references(&["a"], "c", &["id"], Restrict, Cascade)];
    catalog.create_table(grandchild).unwrap();
    change(&catalog, "g", Insert([Some(1), Some(11), None])).unwrap();
    let before = rows(&catalog, "c");
    let outcome = change(&catalog, "p", Delete(1));
    assert!(matches!(outcome, Err(TableError::HasChildRow { .. })));
    assert_eq!(rows(&catalog, "c"), before);
    assert_eq!(rows(&catalog, "p").len(), 3);
    change(&catalog, "g", Delete(1)).unwrap();
    change(&catalog, "p", Delete(1)).unwrap();
    assert_eq!(rows(&catalog, "c").len(), 2);
}

/// One row may have so many children that the statement is to end before they are all changed.
#[test]
fn a_cascade_ends_between_two_children() {
    for action in [Cascade, SetNull] {
        for make in [|| Delete(1), || Update(1, [Some(9), None, None])] {
            let (_directory, catalog) = family(action, action);
            let before = (rows(&catalog, "p"), rows(&catalog, "c"));
            let looks = AtomicU64::new(0);
            let at_second = move || looks.fetch_add(1, Ordering::Relaxed) == 1;
            let ended = change_until(&catalog, "p", make(), at_second);
            assert!(matches!(ended, Err(TableError::Interrupted)), "{ended:?}");
            assert_eq!((rows(&catalog, "p"), rows(&catalog, "c")), before);
        }
    }
}

#[test]
fn a_tree_of_rows_in_one_table_is_deleted_from_its_root() {
    let (_directory, catalog) = scratch();
    let mut request = table("t");
    request.foreign_keys = vec![references(&["a"], "t", &["id"], Cascade, NoAction)];
    catalog.create_table(request).unwrap();
    // The first row refers to itself.
    for id in 1..=2_500 {
        let parent = if id <= 3 { 1 } else { id % 3 + 1 };
        change(&catalog, "t", Insert([Some(id), Some(parent), None])).unwrap();
    }
    change(&catalog, "t", Delete(2)).unwrap();
    assert!(rows(&catalog, "t").iter().all(|row| row[1] != Some(2)));
    change(&catalog, "t", Delete(1)).unwrap();
    assert!(rows(&catalog, "t").is_empty());
}

#[test]
fn keys_of_several_columns_with_null_refer_to_nothing() {
    let (_directory, catalog) = scratch();
    let mut parent = table("p");
    parent.indexes = vec![IndexSpec {
        name: None,
        parts: vec![IndexPartSpec::column("a"), IndexPartSpec::column("b")],
        unique: true,
        comment: String::new(),
        invisible: false,
    }];
    catalog.create_table(parent).unwrap();
    let mut child = table("c");
    child.foreign_keys = vec![references(&["a", "b"], "p", &["a", "b"], Cascade, Cascade)];
    let child = catalog.create_table(child).unwrap();
    assert_eq!(child.definition.secondary[0].name, "a");
    change(&catalog, "p", Insert([Some(1), Some(5), Some(6)])).unwrap();
    change(&catalog, "c", Insert([Some(1), Some(5), Some(6)])).unwrap();
    change(&catalog, "c", Insert([Some(2), Some(5), None])).unwrap();
    let outcome = change(&catalog, "c", Insert([Some(3), Some(5), Some(7)]));
    assert!(matches!(outcome, Err(TableError::NoParentRow { .. })));
    change(&catalog, "p", Update(1, [Some(1), Some(5), Some(8)])).unwrap();
    change(&catalog, "p", Delete(1)).unwrap();
    assert_eq!(rows(&catalog, "c"), [[Some(2), Some(5), None]]);
}

#[test]
fn names_of_foreign_keys_are_unique_and_follow_their_tables() {
    let (_directory, catalog) = family(NoAction, NoAction);
    let mut key = references(&["a"], "p", &["id"], NoAction, NoAction);
    key.name = Some("C_ibfk_1".into());
    let mut second = table("e");
    second.foreign_keys = vec![key.clone()];
    let refused = catalog.create_table(second).expect_err("a name of c");
    assert_eq!(refused.mysql_code(), 1826);
    catalog.create_table(table("e")).unwrap();
    let check = true;
    let add = [Alteration::AddForeignKey { spec: key, check }];
    assert_eq!(alter(&catalog, "e", &add).unwrap_err().mysql_code(), 1826);
    let named = |table: &str| ("d".to_string(), table.to_string());
    let name_of = |table: &str| {
        let table = catalog.table("d", table).unwrap();
        table.definition.foreign_keys[0].name.clone()
    };
    catalog
        .rename_tables(&[(named("c"), named("f"))], NO_WAIT)
        .unwrap();
    assert_eq!(name_of("f"), "f_ibfk_1");
    alter(&catalog, "e", &add).unwrap();
    let (database, table) = named("g");
    for table_now in ["f", "e"] {
        let (database, table) = (database.clone(), format!("{table}{table_now}"));
        let rename = Alteration::RenameTo { database, table };
        alter(&catalog, table_now, &[rename]).unwrap();
    }
    assert_eq!(
        (name_of("gf"), name_of("ge")),
        ("gf_ibfk_1".into(), "C_ibfk_1".into())
    );
}

/// A child waits for transactions that write or change its parent, and a parent goes only with its children.
#[test]
fn parents_stay_while_they_have_children() {
    let (_directory, catalog) = family(NoAction, NoAction);
    let mut child = table("e");
    child.foreign_keys = vec![references(&["a"], "p", &["id"], NoAction, NoAction)];
    let writer = catalog.open_for_write("d", "p", NO_WAIT).unwrap();
    let refused = catalog.create_table_within(child.clone(), NO_WAIT);
    assert!(matches!(refused, Err(TableError::LockWaitTimeout)));
    drop(writer);
    catalog.create_table_within(child, NO_WAIT).unwrap();
    let drop_tables = |names: &[&str]| {
        let names = names.iter().map(|name| ("d".to_string(), name.to_string()));
        catalog.drop_tables(&names.collect::<Vec<_>>(), true, NO_WAIT)
    };
    for names in [&["p"][..], &["c", "p"]] {
        assert_eq!(drop_tables(names).unwrap_err().mysql_code(), 3730);
    }
    let truncate = |check| catalog.truncate_table(("d", "p"), check, NO_WAIT);
    assert_eq!(truncate(true).unwrap_err().mysql_code(), 1701);
    truncate(false).unwrap();
    assert!(rows(&catalog, "p").is_empty());
    drop_tables(&["p", "c", "e"]).unwrap();
    assert!(catalog.tables("d").unwrap().is_empty());
}

/// Children are locked while their parent gets another name, and refer to it by that from then on.
#[test]
fn children_follow_the_new_names_of_their_parents() {
    let (directory, catalog) = family(NoAction, NoAction);
    let named = |table: &str| ("d".to_string(), table.to_string());
    let parent_of = |catalog: &Catalog, child: &str| {
        let child = catalog.table("d", child).unwrap();
        child.definition.foreign_keys[0].referenced_table.clone()
    };
    let rename = |from: &str, to: &str| catalog.rename_tables(&[(named(from), named(to))], NO_WAIT);
    let alter_name = |from: &str, to: &str| {
        let (database, table) = named(to);
        alter(&catalog, from, &[Alteration::RenameTo { database, table }])
    };
    let reader = catalog.open_for_read("d", "c", NO_WAIT).unwrap();
    assert!(matches!(rename("p", "q"), Err(TableError::LockWaitTimeout)));
    assert!(matches!(
        alter_name("p", "q"),
        Err(TableError::LockWaitTimeout)
    ));
    drop(reader);
    assert_eq!(parent_of(&catalog, "c"), "p");
    rename("p", "q").unwrap();
    assert_eq!(parent_of(&catalog, "c"), "q");
    alter_name("q", "r").unwrap();
    assert_eq!(parent_of(&catalog, "c"), "r");
    // They change places.
    let places = [("r", "x"), ("c", "r"), ("x", "c")];
    let places = places.map(|(from, to)| (named(from), named(to)));
    catalog.rename_tables(&places, NO_WAIT).unwrap();
    assert_eq!(parent_of(&catalog, "r"), "c");
    catalog.storage().close().unwrap();
    drop(catalog);
    assert_eq!(parent_of(&open(directory.path()), "r"), "c");
}

#[test]
fn definitions_that_do_not_fit_are_refused() {
    let (_directory, catalog) = scratch();
    catalog.create_table(table("p")).unwrap();
    let refused = |foreign_key: ForeignKeySpec| {
        let mut child = table("c");
        child.foreign_keys = vec![foreign_key];
        let error = catalog.create_table(child).expect_err("refused");
        assert!(catalog.table("d", "c").is_err());
        error.mysql_code()
    };
    let plain = |columns: &[&str], parent: &str, referenced: &[&str]| {
        references(columns, parent, referenced, NoAction, NoAction)
    };
    assert_eq!(refused(plain(&["a"], "nix", &["id"])), 1824);
    assert_eq!(refused(plain(&["a"], "p", &["nix"])), 3734);
    assert_eq!(refused(plain(&["a"], "p", &["b"])), 1822);
    assert_eq!(refused(plain(&["nix"], "p", &["id"])), 1072);
    assert_eq!(refused(plain(&["a", "b"], "p", &["id"])), 1239);
    assert_eq!(
        refused(references(&["id"], "p", &["id"], SetNull, NoAction)),
        1830
    );
    let mut other = table("c");
    other.columns[1].ty = ColumnType::BigInt {
        sign: sheaf_types::column_type::Sign::Signed,
    };
    other.foreign_keys = vec![plain(&["a"], "p", &["id"])];
    assert_eq!(catalog.create_table(other).unwrap_err().mysql_code(), 3780);
    // Without the checks the parent may come later.
    let mut child = table("c");
    child.foreign_keys = vec![plain(&["a"], "later", &["id"])];
    child.check_foreign_keys = false;
    catalog.create_table(child).unwrap();
    let outcome = change(&catalog, "c", Insert([Some(1), Some(1), None]));
    assert!(matches!(outcome, Err(TableError::NoParentRow { .. })));
    catalog.create_table(table("later")).unwrap();
    change(&catalog, "later", Insert([Some(1), None, None])).unwrap();
    change(&catalog, "c", Insert([Some(1), Some(1), None])).unwrap();
}

#[test]
fn foreign_keys_are_added_to_tables_with_rows_and_dropped() {
    let (directory, catalog) = scratch();
    catalog.create_table(table("p")).unwrap();
    catalog.create_table(table("c")).unwrap();
    change(&catalog, "p", Insert([Some(1), None, None])).unwrap();
    for (id, a) in [(1, Some(1)), (2, None), (3, Some(9))] {
        change(&catalog, "c", Insert([Some(id), a, None])).unwrap();
    }
    let add = |catalog: &Catalog, check| {
        let spec = references(&["a"], "p", &["id"], Cascade, NoAction);
        alter(catalog, "c", &[Alteration::AddForeignKey { spec, check }])
    };
    assert!(matches!(
        add(&catalog, true),
        Err(TableError::NoParentRow { .. })
    ));
    change(&catalog, "c", Delete(3)).unwrap();
    add(&catalog, true).unwrap();
    let outcome = change(&catalog, "c", Insert([Some(4), Some(4), None]));
    assert!(matches!(outcome, Err(TableError::NoParentRow { .. })));
    // The index belongs to the foreign key now.
    let dropped = drop_index(&catalog, "c", "a");
    assert!(matches!(
        dropped,
        Err(TableError::IndexNeededByForeignKey { .. })
    ));
    catalog.storage().close().unwrap();
    drop(catalog);
    let catalog = open(directory.path());
    let key = &catalog.table("d", "c").unwrap().definition.foreign_keys[0];
    assert_eq!((key.name.as_str(), key.on_delete), ("c_ibfk_1", Cascade));
    let drop_key = [Alteration::DropForeignKey("c_ibfk_1".into())];
    alter(&catalog, "c", &drop_key).unwrap();
    let again = alter(&catalog, "c", &drop_key);
    assert!(matches!(again, Err(TableError::CannotDropIndex { .. })));
    drop_index(&catalog, "c", "a").unwrap();
    change(&catalog, "c", Insert([Some(4), Some(4), None])).unwrap();
}

#[test]
fn foreign_keys_change_together_with_their_indexes() {
    let (_directory, catalog) = scratch();
    catalog.create_table(table("t")).unwrap();
    for (id, a, b) in [(1, None, Some(1)), (2, Some(1), Some(2))] {
        change(&catalog, "t", Insert([Some(id), a, b])).unwrap();
    }
    // A table that refers to a column of its own, whose index comes with the reference.
    let by_b = IndexSpec {
        name: Some("by_b".into()),
        parts: vec![IndexPartSpec::column("b")],
        unique: true,
        comment: String::new(),
        invisible: false,
    };
    let spec = references(&["a"], "t", &["b"], NoAction, NoAction);
    let add = Alteration::AddForeignKey { spec, check: true };
    alter(
        &catalog,
        "t",
        &[add.clone(), Alteration::AddIndex(by_b.clone())],
    )
    .unwrap();
    let outcome = change(&catalog, "t", Insert([Some(3), Some(3), None]));
    assert!(matches!(outcome, Err(TableError::NoParentRow { .. })));
    let dropped = drop_index(&catalog, "t", "by_b");
    assert!(
        matches!(dropped, Err(TableError::IndexNeededByForeignKey { index }) if index == "by_b")
    );
    // Another index may take its place, and the index may go with the reference.
    let mut other = by_b.clone();
    other.name = Some("other".into());
    let drop_by_b = Alteration::DropIndex("by_b".into());
    alter(&catalog, "t", &[drop_by_b, Alteration::AddIndex(other)]).unwrap();
    let drop_other = Alteration::DropIndex("other".into());
    let drop_key = Alteration::DropForeignKey("t_ibfk_1".into());
    alter(&catalog, "t", &[drop_other, drop_key]).unwrap();
    change(&catalog, "t", Insert([Some(3), Some(3), None])).unwrap();
    // Now a row has no parent: what was built for the reference is gone again.
    let trees = catalog.storage().tree_ids().unwrap();
    let refused = alter(&catalog, "t", &[add, Alteration::AddIndex(by_b)]);
    assert!(matches!(refused, Err(TableError::NoParentRow { .. })));
    assert_eq!(catalog.storage().tree_ids().unwrap(), trees);
}

#[test]
fn a_table_that_comes_with_its_rows_keeps_its_foreign_keys() {
    let (_directory, catalog) = family(NoAction, NoAction);
    let load = |name: &str, parent: &str, a: i64| {
        let mut request = table(name);
        request.foreign_keys = vec![references(&["a"], parent, &["id"], NoAction, NoAction)];
        let options = BulkLoadOptions {
            memory_bytes: 1 << 20,
            threads: 1,
        };
        let progress = Arc::new(NoProgress);
        let mut load = BulkLoad::of_new_table(&catalog, request, TimeZone::UTC, options, progress)?;
        load.append(&row([Some(1), Some(a), None]))?;
        load.append(&row([Some(2), None, None]))?;
        load.finish(NO_WAIT)
    };
    let trees = catalog.storage().tree_ids().unwrap();
    let orphan = load("e", "p", 9).unwrap_err();
    assert_eq!(orphan.mysql_code(), 1452);
    assert_eq!(load("e", "missing", 1).unwrap_err().mysql_code(), 1824);
    assert!(load("e", "e", 9).is_err());
    assert!(catalog.table("d", "e").is_err());
    assert_eq!(catalog.storage().tree_ids().unwrap(), trees);
    assert_eq!(load("e", "p", 3).unwrap(), 2);
    assert_eq!(load("f", "f", 2).unwrap(), 2);
    let refused = change(&catalog, "p", Delete(3)).unwrap_err();
    assert_eq!(refused.mysql_code(), 1451);
}

/// Tries to write the parent in the middle of the work.
struct WritesParent<'a> {
    catalog: &'a Catalog,
    tried: AtomicU64,
}

impl Progress for WritesParent<'_> {
    fn begin(&self, _name: &str, _total: Option<u64>) {}

    fn advance(&self, _units: u64) {}

    fn is_cancelled(&self) -> bool {
        let opened = self.catalog.open_for_row_writes("d", "p", Duration::ZERO);
        assert!(matches!(opened, Err(TableError::LockWaitTimeout)));
        assert!(self.catalog.open_for_read("d", "p", Duration::ZERO).is_ok());
        self.tried.fetch_add(1, Ordering::Relaxed);
        false
    }
}

#[test]
fn nobody_deletes_parents_while_a_new_foreign_key_is_checked() {
    // The parent's name comes after one of the children's, and before the other's.
    for child in ["c", "q"] {
        let (_directory, catalog) = scratch();
        for name in ["p", child] {
            catalog.create_table(table(name)).unwrap();
            change(&catalog, name, Insert([Some(1), Some(1), None])).unwrap();
        }
        let add = [Alteration::AddForeignKey {
            spec: references(&["a"], "p", &["id"], NoAction, NoAction),
            check: true,
        }];
        let writer = catalog.open_for_row_writes("d", "p", NO_WAIT).unwrap();
        let refused = alter(&catalog, child, &add);
        assert!(matches!(refused, Err(TableError::LockWaitTimeout)));
        drop(writer);
        let progress = WritesParent {
            catalog: &catalog,
            tried: AtomicU64::new(0),
        };
        catalog
            .alter_table(
                ("d", child),
                &add,
                &AlterOptions::default(),
                &progress,
                Duration::ZERO,
            )
            .unwrap();
        assert!(progress.tried.load(Ordering::Relaxed) > 1);
        let refused = change(&catalog, "p", Delete(1)).unwrap_err();
        assert_eq!(refused.mysql_code(), 1451);
    }
}

/// Gives another table a foreign key of the same name in the middle of the work.
struct TakesName<'a> {
    catalog: &'a Catalog,
    key: Alteration,
    begun: AtomicU64,
}

impl Progress for TakesName<'_> {
    fn begin(&self, name: &str, _total: Option<u64>) {
        // The work begins when the table is its own.
        if name.starts_with("Waiting") && self.begun.load(Ordering::Relaxed) == 0 {
            return;
        }
        if self.begun.fetch_add(1, Ordering::Relaxed) == 0 {
            alter(self.catalog, "other", std::slice::from_ref(&self.key)).unwrap();
        }
    }

    fn advance(&self, _units: u64) {}
}

#[test]
fn of_two_tables_that_are_altered_at_once_one_gets_the_name_of_a_foreign_key() {
    let (_directory, catalog) = scratch();
    for name in ["child", "other", "p", "q"] {
        catalog.create_table(table(name)).unwrap();
    }
    let key = |parent: &str| {
        let mut spec = references(&["a"], parent, &["id"], NoAction, NoAction);
        spec.name = Some("refers".into());
        Alteration::AddForeignKey { spec, check: true }
    };
    let progress = TakesName {
        catalog: &catalog,
        key: key("q"),
        begun: AtomicU64::new(0),
    };
    let options = AlterOptions::default();
    let altered = catalog.alter_table(
        ("d", "child"),
        &[key("p")],
        &options,
        &progress,
        Duration::ZERO,
    );
    assert!(progress.begun.load(Ordering::Relaxed) > 0);
    assert_eq!(altered.unwrap_err().mysql_code(), 1826);
    let keys = |name: &str| {
        catalog
            .table("d", name)
            .unwrap()
            .definition
            .foreign_keys
            .len()
    };
    assert_eq!((keys("child"), keys("other")), (0, 1));
}
