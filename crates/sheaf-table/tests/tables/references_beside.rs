//! Foreign keys that a table gets while others change child and parents.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{LockMode, LockWait, Random, Storage, StorageOptions};
use sheaf_table::{
    AlterOptions, Alteration, Catalog, CreateTable, ForeignKeySpec, NoProgress, Progress,
    ReferentialAction, TableError,
};
use sheaf_types::Value;

use crate::build_beside::{LONG, When, trees};
use crate::fixture::{NO_WAIT, column, index, parts, scratch};

/// `name (id INT PRIMARY KEY, k INT)`
fn table(name: &str) -> CreateTable {
    let columns = vec![column("id", "int", false), column("k", "int", true)];
    let mut request = CreateTable::new("d", name, columns);
    request.primary_key = Some(parts(&["id"]));
    request
}

/// `FOREIGN KEY f (k) REFERENCES parent (referenced)`
fn reference(parent: &str, referenced: &str, check: bool) -> Alteration {
    Alteration::AddForeignKey {
        spec: ForeignKeySpec {
            name: Some("f".into()),
            index_name: None,
            columns: vec!["k".into()],
            referenced_database: "d".into(),
            referenced_table: parent.into(),
            referenced_columns: vec![referenced.into()],
            on_delete: ReferentialAction::NoAction,
            on_update: ReferentialAction::NoAction,
        },
        check,
    }
}

/// Parents 1 to 5, whose `k` is ten times as much, and children 1 to 3 of the same numbers.
fn fill(catalog: &Catalog) {
    for name in ["p", "c"] {
        let mut request = table(name);
        if name == "p" {
            request.indexes = vec![index("by_k", &["k"], false)];
        }
        catalog.create_table(request).unwrap();
    }
    let parents: Vec<_> = (1..=5)
        .map(|id| Change::Put("p", id, Some(id * 10)))
        .collect();
    let children: Vec<_> = (1..=3).map(|id| Change::Put("c", id, Some(id))).collect();
    commit(catalog, &parents);
    commit(catalog, &children);
}

#[derive(Clone, Copy)]
enum Change {
    /// Inserts or replaces.
    Put(&'static str, i64, Option<i64>),
    Delete(&'static str, i64),
}
use Change::{Delete, Put};

/// Makes changes in a transaction. No foreign key is looked at.
fn commit(catalog: &Catalog, changes: &[Change]) {
    let mut transaction = catalog.storage().begin_transaction();
    let mut guards = Vec::new();
    for change in changes {
        let (Put(name, id, _) | Delete(name, id)) = *change;
        let guard = catalog.open_for_row_writes("d", name, NO_WAIT).unwrap();
        let key = guard.encode_primary_key(&[Value::Int(id), Value::Null]);
        match *change {
            Put(_, _, k) => {
                let row = [Value::Int(id), k.map_or(Value::Null, Value::Int)];
                let (mode, wait) = (LockMode::Exclusive, LockWait::No);
                let old = guard.lock_row(&mut transaction, &key, mode, wait).unwrap();
                match old {
                    Some(old) => {
                        guard.replace(&mut transaction, &key, &old, &row).unwrap();
                    }
                    None => {
                        guard.insert(&mut transaction, &row).unwrap();
                    }
                }
            }
            Delete(..) => assert!(guard.delete(&mut transaction, &key).unwrap()),
        }
        guards.push(guard);
    }
    transaction.commit().unwrap();
}

fn add(
    catalog: &Catalog,
    changes: &[Alteration],
    progress: &dyn Progress,
) -> Result<u64, TableError> {
    let table = catalog.table("d", "c").unwrap();
    assert!(Catalog::admits_writers(&table, changes).unwrap());
    let options = AlterOptions {
        beside_writers: true,
        ..AlterOptions::default()
    };
    let altered = catalog.alter_table(("d", "c"), changes, &options, progress, LONG);
    altered.map(|altered| altered.rows)
}

fn keys(catalog: &Catalog) -> usize {
    catalog
        .table("d", "c")
        .unwrap()
        .definition
        .foreign_keys
        .len()
}

/// The phases in which others change rows: the rows are read already, with the index or without.
const PHASES: [&str; 3] = ["sorting", "building", "testing"];

#[test]
fn rows_that_keep_the_key_may_change_in_any_way() {
    let harmless: [&[Change]; 7] = [
        &[Put("c", 4, Some(4)), Put("c", 5, None)],
        &[Put("p", 6, None), Put("c", 6, Some(6))],
        &[Delete("c", 3), Delete("p", 3)],
        &[Put("c", 3, Some(5)), Delete("p", 3), Delete("p", 4)],
        &[Put("c", 2, None), Delete("p", 2)],
        &[Put("p", 1, Some(77))],
        &[],
    ];
    for phase in PHASES {
        for changes in harmless {
            let (_directory, catalog) = scratch();
            fill(&catalog);
            let when = When::new(Some(phase), || {
                commit(&catalog, changes);
                // It goes, and comes again before anybody looks.
                commit(&catalog, &[Delete("p", 1)]);
                commit(&catalog, &[Put("p", 1, Some(10))]);
                // A child without a parent, which is gone again.
                commit(&catalog, &[Put("c", 100, Some(99))]);
                commit(&catalog, &[Delete("c", 100)]);
            });
            let rows = add(&catalog, &[reference("p", "id", true)], &when).unwrap();
            assert_eq!((rows, keys(&catalog)), (3, 1));
            let table = catalog.table("d", "c").unwrap();
            assert_eq!(table.definition.secondary.len(), 1);
        }
    }
}

#[test]
fn a_row_that_breaks_the_key_fails_it_and_leaves_nothing_behind() {
    let breaking: [&[Change]; 5] = [
        &[Put("c", 4, Some(9))],
        &[Put("c", 1, Some(9))],
        &[Delete("p", 2)],
        &[Delete("c", 3), Delete("p", 3), Put("c", 8, Some(3))],
        &[Put("p", 9, None), Put("c", 9, Some(9)), Delete("p", 1)],
    ];
    for phase in PHASES {
        for changes in breaking {
            let (_directory, catalog) = scratch();
            fill(&catalog);
            let before = trees(&catalog);
            let when = When::new(Some(phase), || commit(&catalog, changes));
            let error = add(&catalog, &[reference("p", "id", true)], &when).unwrap_err();
            assert_eq!(
                error.to_string(),
                "Cannot add or update a child row: a foreign key constraint fails (`d`.`c`, CONSTRAINT `f` \
                 FOREIGN KEY (`k`) REFERENCES `p` (`id`))"
            );
            assert_eq!(error.mysql_code(), 1452);
            assert_eq!((trees(&catalog), keys(&catalog)), (before, 0));
            // Child and parent are as free as before.
            commit(&catalog, &[Put("c", 50, Some(50)), Put("p", 50, None)]);
            // What is there already is found by the first look.
            commit(&catalog, &[Put("c", 51, Some(51))]);
            let error = add(&catalog, &[reference("p", "id", true)], &NoProgress).unwrap_err();
            assert_eq!((error.mysql_code(), trees(&catalog)), (1452, before));
            // Nothing is looked at where that is not asked for.
            add(&catalog, &[reference("p", "id", false)], &NoProgress).unwrap();
            assert_eq!(keys(&catalog), 1);
        }
    }
}

/// The parents have the value more than once, and the child may be its own parent, by an index of the same statement.
#[test]
fn a_value_is_gone_with_the_last_parent_that_has_it() {
    for is_last in [false, true] {
        let (_directory, catalog) = scratch();
        fill(&catalog);
        commit(&catalog, &[Put("p", 11, Some(10)), Put("c", 1, Some(10))]);
        commit(&catalog, &[Put("c", 2, None), Put("c", 3, Some(20))]);
        let when = When::new(Some("testing"), || {
            commit(&catalog, &[Delete("p", 1)]);
            if is_last {
                commit(&catalog, &[Put("p", 11, Some(12))]);
            }
        });
        let added = add(&catalog, &[reference("p", "k", true)], &when);
        assert_eq!(added.is_err(), is_last);
        assert_eq!(keys(&catalog), usize::from(!is_last));
    }
    for breaks in [false, true] {
        let (_directory, catalog) = scratch();
        fill(&catalog);
        let when = When::new(Some("testing"), || {
            commit(&catalog, &[Put("c", 8, Some(8)), Put("c", 9, Some(8))]);
            match breaks {
                true => commit(&catalog, &[Delete("c", 8)]),
                false => commit(&catalog, &[Delete("c", 9), Put("c", 3, Some(8))]),
            }
        });
        let added = add(&catalog, &[reference("c", "id", true)], &when);
        assert_eq!(added.is_err(), breaks);
    }
}

#[test]
fn from_then_on_the_key_is_kept_and_it_goes_as_it_came() {
    let (_directory, catalog) = scratch();
    fill(&catalog);
    // A transaction that has changed the parent before is waited for.
    let ended = AtomicBool::new(false);
    let mut transaction = catalog.storage().begin_transaction();
    let guard = catalog.open_for_row_writes("d", "p", NO_WAIT).unwrap();
    let key = guard.encode_primary_key(&[Value::Int(5), Value::Null]);
    assert!(guard.delete(&mut transaction, &key).unwrap());
    let when = When::new(None, || {
        ended.store(true, Ordering::Relaxed);
        transaction.commit().unwrap();
        drop(guard);
    });
    add(&catalog, &[reference("p", "id", true)], &when).unwrap();
    assert!(ended.load(Ordering::Relaxed));
    drop(when);
    let parent = catalog.table("d", "p").unwrap();
    assert_eq!(catalog.referencing(&parent).len(), 1);
    // Another key in its place, in one statement.
    let changes = [
        Alteration::DropForeignKey("f".into()),
        reference("p", "id", true),
    ];
    add(&catalog, &changes, &NoProgress).unwrap();
    assert_eq!(keys(&catalog), 1);
}

#[test]
fn a_key_whose_check_is_killed_leaves_nothing_behind() {
    struct Killed<'a>(&'a AtomicBool);
    impl Progress for Killed<'_> {
        fn begin(&self, name: &str, _total: Option<u64>) {
            if name.starts_with("testing") {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        fn advance(&self, _units: u64) {}
        fn is_cancelled(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }
    let (_directory, catalog) = scratch();
    fill(&catalog);
    let before = trees(&catalog);
    let killed = AtomicBool::new(false);
    let error = add(&catalog, &[reference("p", "id", true)], &Killed(&killed)).unwrap_err();
    assert!(matches!(error, TableError::Interrupted), "{error}");
    assert_eq!((trees(&catalog), keys(&catalog)), (before, 0));
    add(&catalog, &[reference("p", "id", true)], &NoProgress).unwrap();
}

#[test]
fn after_a_crash_the_key_is_there_with_its_index_or_neither_is() {
    let (mut there, mut absent) = (0, 0);
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let disk = SimulatedDisk::new(SimulationOptions::new(random.next()));
        let options = || StorageOptions {
            pool_bytes: 2 << 20,
            background_writer: false,
            ..StorageOptions::default()
        };
        let catalog = Catalog::open(Storage::open_on(disk.clone(), options()).unwrap()).unwrap();
        catalog.create_database("d").unwrap();
        fill(&catalog);
        let without = trees(&catalog);
        // Some changes end before the crash.
        disk.crash_after((seed % 4 > 0).then(|| random.below(1 + seed)));
        let added = add(&catalog, &[reference("p", "id", true)], &NoProgress);
        drop(catalog);
        let disk = disk.power_loss(SimulationOptions::new(random.next()));
        let catalog = Catalog::open(Storage::open_on(disk, options()).unwrap()).unwrap();
        let child: Arc<_> = catalog.table("d", "c").unwrap();
        let indexes = child.definition.secondary.len();
        assert_eq!(indexes, keys(&catalog), "seed {seed}");
        assert_eq!(trees(&catalog), without + indexes, "seed {seed}");
        match keys(&catalog) {
            0 => {
                assert!(added.is_err(), "seed {seed}");
                absent += 1;
            }
            _ => there += 1,
        }
    }
    assert!(there > 0 && absent > 0, "{there} there, {absent} absent");
}
