//! What a transaction locks of the keys that a join has looked up: [`Search::lock_lookups_of_view`].

use std::sync::Arc;

use sheaf_storage::{KeyRange, LockWait, Transaction};
use sheaf_table::{Catalog, Search, Table, TableError};
use sheaf_types::Value;

use crate::fixture::{NO_WAIT, example, insert, price, row, scratch};

/// Position of `by_price (price, name)` among the secondary indexes.
const BY_PRICE: usize = 1;

/// What the keys of these values, the first parts of an index's keys, have looked up.
fn lookups(table: &Arc<Table>, index: Option<usize>, values: &[Value]) -> Search {
    let layout = match index {
        None => &table.clustered_layout,
        Some(position) => &table.secondary_layouts[position],
    };
    let range = |value: &Value| {
        let mut key = Vec::new();
        layout.encode_part(0, value.into(), &mut key);
        KeyRange::prefix(&key)
    };
    Search {
        table: table.clone(),
        index,
        ranges: values.iter().map(range).collect(),
        reads_rows: index.is_some(),
    }
}

/// Whether somebody else may do this now.
fn is_free(
    catalog: &Catalog,
    change: impl FnOnce(&Table, &mut Transaction) -> Result<(), TableError>,
) -> bool {
    let table = catalog.table("d", "t").unwrap();
    let mut transaction = catalog.storage().begin_transaction();
    transaction.set_lock_wait(LockWait::No);
    let is_free = change(&table, &mut transaction).is_ok();
    transaction.rollback().unwrap();
    is_free
}

fn may_insert(catalog: &Catalog, id: i64, cents: i128) -> bool {
    let new = row(id, &format!("new {id}"), "n", cents);
    is_free(catalog, |table, transaction| {
        table.insert(transaction, &new).map(drop)
    })
}

fn may_change(catalog: &Catalog, id: i64, cents: i128) -> bool {
    let new = row(id, &format!("row {id}"), "changed", cents);
    is_free(catalog, |table, transaction| {
        let key = table.encode_primary_key(&new);
        assert!(table.update(transaction, &key, &new)?);
        Ok(())
    })
}

/// The example table with a row for each price.
fn table_of(prices: &[i128]) -> (tempfile::TempDir, Arc<Catalog>, Arc<Table>) {
    let (directory, catalog) = scratch();
    let table = catalog.create_table(example()).unwrap();
    let rows: Vec<_> = (1..)
        .zip(prices)
        .map(|(id, &cents)| row(id, &format!("row {id}"), "n", cents))
        .collect();
    insert(&catalog, &rows).unwrap();
    (directory, catalog, table)
}

#[test]
fn rows_that_were_met_and_gaps_that_were_looked_into_stay() {
    let (_directory, catalog, table) = table_of(&[100, 300, 300, 500]);
    let search = lookups(&table, Some(BY_PRICE), &[price(200), price(300)]);
    let mut transaction = catalog.storage().begin_transaction();
    let view = transaction.read_view().unwrap();
    let is_unchanged =
        search.lock_lookups_of_view(&mut transaction, &view, usize::MAX, LockWait::No);
    assert!(is_unchanged.unwrap());
    assert!(!may_insert(&catalog, 9, 200) && !may_insert(&catalog, 9, 300));
    assert!(!may_change(&catalog, 2, 300) && !may_change(&catalog, 3, 900));
    // A row that comes into the gap, and what nobody has looked at.
    assert!(!may_change(&catalog, 1, 200));
    assert!(may_change(&catalog, 1, 150) && may_change(&catalog, 4, 600));
    assert!(may_insert(&catalog, 9, 400) && may_insert(&catalog, 9, 250));
    transaction.commit().unwrap();
    assert!(may_insert(&catalog, 9, 200) && may_change(&catalog, 2, 300));
}

#[test]
fn primary_keys_are_locked_whether_they_are_there_or_not() {
    let (_directory, catalog, table) = table_of(&[100, 200, 300]);
    let search = lookups(&table, None, &[Value::Int(1), Value::Int(7)]);
    let mut transaction = catalog.storage().begin_transaction();
    let view = transaction.read_view().unwrap();
    let is_unchanged =
        search.lock_lookups_of_view(&mut transaction, &view, usize::MAX, LockWait::No);
    assert!(is_unchanged.unwrap());
    assert!(!may_change(&catalog, 1, 100) && !may_insert(&catalog, 7, 0));
    assert!(may_change(&catalog, 2, 0) && may_insert(&catalog, 6, 0));
    assert!(may_insert(&catalog, 8, 0));
}

#[test]
fn many_keys_share_a_few_ranges_that_keep_inserts_out_and_nothing_else() {
    let (_directory, catalog, table) = table_of(&[305, 310, 20_000]);
    let keys: Vec<_> = (0..1_000).map(|i| price(i * 10)).collect();
    let search = lookups(&table, Some(BY_PRICE), &keys);
    let mut transaction = catalog.storage().begin_transaction();
    let view = transaction.read_view().unwrap();
    let is_unchanged =
        search.lock_lookups_of_view(&mut transaction, &view, usize::MAX, LockWait::No);
    assert!(is_unchanged.unwrap());
    let locks = catalog.storage().transaction_counters().row_locks;
    assert!((128..=300).contains(&locks), "{locks}");
    assert!(
        [0, 310, 5_000, 9_990]
            .iter()
            .all(|&cents| !may_insert(&catalog, 9, cents))
    );
    assert!(may_insert(&catalog, 9, 9_991) && may_insert(&catalog, 9, 20_000));
    assert!(!may_change(&catalog, 2, 310));
    assert!(may_change(&catalog, 1, 305) && may_change(&catalog, 3, 20_001));
}

#[test]
fn inserts_between_looked_up_keys_that_share_a_range_do_not_matter() {
    let (_directory, catalog, table) = table_of(&[310]);
    let keys: Vec<_> = (0..1_000).map(|i| price(i * 10)).collect();
    let search = lookups(&table, Some(BY_PRICE), &keys);
    let locks_beside = |cents: i128, commits: bool| {
        let mut transaction = catalog.storage().begin_transaction();
        let view = transaction.read_view().unwrap();
        let guard = catalog.open_for_row_writes("d", "t", NO_WAIT).unwrap();
        let mut other = catalog.storage().begin_transaction();
        let new = row(cents as i64, &format!("row {cents}"), "n", cents);
        guard.insert(&mut other, &new).unwrap();
        let mut other = Some(other);
        if commits {
            other.take().unwrap().commit().unwrap();
        }
        let locked = search.lock_lookups_of_view(&mut transaction, &view, usize::MAX, LockWait::No);
        transaction.rollback().unwrap();
        if let Some(other) = other {
            other.rollback().unwrap();
        }
        locked.ok()
    };
    assert_eq!(locks_beside(305, false), Some(true));
    assert_eq!(locks_beside(315, true), Some(true));
    assert_eq!(locks_beside(320, true), Some(false));
    // Somebody is at it.
    assert_eq!(locks_beside(330, false), None);
}

#[test]
fn beyond_so_many_rows_the_whole_index_is_locked() {
    let (_directory, catalog, table) = table_of(&[100, 300, 300, 500]);
    for (most_rows, is_whole) in [(4, false), (3, true), (2, true)] {
        let search = lookups(&table, Some(BY_PRICE), &[price(100), price(300)]);
        let mut transaction = catalog.storage().begin_transaction();
        let view = transaction.read_view().unwrap();
        let is_unchanged =
            search.lock_lookups_of_view(&mut transaction, &view, most_rows, LockWait::No);
        assert!(is_unchanged.unwrap());
        assert!(!may_change(&catalog, 1, 100) && !may_insert(&catalog, 9, 300));
        assert_eq!(may_insert(&catalog, 9, 400), !is_whole);
        assert_eq!(may_change(&catalog, 4, 500), !is_whole);
        transaction.rollback().unwrap();
    }
}

#[test]
fn a_change_between_the_lookup_and_the_lock_is_noticed() {
    let (_directory, catalog, table) = table_of(&[100, 300]);
    let search = lookups(&table, Some(BY_PRICE), &[price(200), price(300)]);
    let locks_what_it_read = |change: &dyn Fn()| {
        let mut transaction = catalog.storage().begin_transaction();
        let view = transaction.read_view().unwrap();
        change();
        let is_unchanged =
            search.lock_lookups_of_view(&mut transaction, &view, usize::MAX, LockWait::No);
        transaction.rollback().unwrap();
        is_unchanged.unwrap()
    };
    assert!(locks_what_it_read(&|| insert(
        &catalog,
        &[row(5, "e", "", 400)]
    )
    .unwrap()));
    assert!(!locks_what_it_read(&|| insert(
        &catalog,
        &[row(6, "f", "", 200)]
    )
    .unwrap()));
    assert!(!locks_what_it_read(&|| {
        let guard = catalog.open_for_write("d", "t", NO_WAIT).unwrap();
        let mut transaction = catalog.storage().begin_transaction();
        let key = guard.encode_primary_key(&row(2, "", "", 0));
        assert!(guard.delete(&mut transaction, &key).unwrap());
        transaction.commit().unwrap();
    }));
    assert!(locks_what_it_read(&|| {}));
}
