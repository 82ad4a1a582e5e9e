//! Transactions that change more than memory holds the past of. Version tables and undo go to the spill file and come
//! back from it, for readers of old snapshots, for rollbacks, and for recovery. The file fails, and the machine
//! crashes.

mod common;

use std::ops::Range;
use std::sync::Arc;

use common::{disk, options};
use sheaf_storage::disk::simulated::{
    Fault, FaultKind, FaultyOperation, SimulatedDisk, SimulationOptions,
};
use sheaf_storage::{
    Direction, KeyRange, LockMode, LockWait, ReadAhead, ReadView, Storage, StorageError,
    StorageOptions, Transaction, Tree,
};

const SPILL_FILE: &str = "temp/sheaf.spill";
const VERSION_BYTES: usize = 512 << 10;
const ROWS: u32 = 20_000;

fn spilling() -> StorageOptions {
    StorageOptions {
        max_version_bytes: VERSION_BYTES,
        ..options()
    }
}

/// A tree with [`ROWS`] rows, all of the same version.
struct Table {
    storage: Arc<Storage>,
    tree: Arc<Tree>,
}

impl Table {
    fn open(disk: &Arc<SimulatedDisk>, options: StorageOptions) -> Table {
        let storage = Storage::open_on(disk.clone(), options).unwrap();
        let tree = match storage.tree_ids().unwrap().last() {
            Some(&tree) if tree != storage.catalog_tree().id() => tree,
            _ => storage.create_tree().unwrap(),
        };
        let tree = storage.tree(tree).unwrap();
        Table { storage, tree }
    }

    fn filled(disk: &Arc<SimulatedDisk>, options: StorageOptions) -> Table {
        let table = Self::open(disk, options);
        let mut transaction = table.storage.begin_transaction();
        for row in 0..ROWS {
            table
                .tree
                .insert(&mut transaction, &row.to_be_bytes(), &value(row, 0))
                .unwrap();
        }
        transaction.commit().unwrap();
        table.collect();
        table.storage.checkpoint().unwrap();
        table
    }

    fn collect(&self) {
        self.storage.collect_versions_step().unwrap();
    }

    /// Gives rows another version, and sees to the budget.
    fn update(
        &self,
        transaction: &mut Transaction,
        rows: Range<u32>,
        version: u8,
    ) -> Result<(), StorageError> {
        for row in rows {
            let value = value(row, version);
            assert!(self.tree.update(transaction, &row.to_be_bytes(), &value)?);
            let counters = self.storage.transaction_counters();
            assert!(counters.version_bytes <= VERSION_BYTES as u64);
        }
        Ok(())
    }

    /// Every row has the version that `expected` says.
    fn check(&self, view: &ReadView, expected: impl Fn(u32) -> u8) {
        for direction in [Direction::Forward, Direction::Backward] {
            let mut rows = 0;
            let mut cursor = self.tree.scan_at(
                view.clone(),
                KeyRange::all(),
                direction,
                ReadAhead::Pages(8),
            );
            while let Some(leaf) = cursor.next_leaf().unwrap() {
                for i in 0..leaf.len() {
                    let key = [leaf.prefix(), leaf.suffix(i)].concat();
                    let row = u32::from_be_bytes(key.try_into().unwrap());
                    assert_eq!(leaf.value(i), value(row, expected(row)), "row {row}");
                    rows += 1;
                }
            }
            assert_eq!(rows, ROWS);
        }
        let mut found = Vec::new();
        for row in (0..ROWS).step_by(997) {
            assert!(
                self.tree
                    .get_at(view, &row.to_be_bytes(), &mut found)
                    .unwrap()
            );
            assert_eq!(found, value(row, expected(row)));
        }
    }

    /// Nothing is left of the past once nobody looks back.
    fn check_nothing_is_kept(&self) {
        self.collect();
        self.collect();
        let counters = self.storage.transaction_counters();
        assert_eq!((counters.version_bytes, counters.spilled_bytes), (0, 0));
        self.tree.check().unwrap();
    }

    fn spilled_bytes(&self) -> u64 {
        self.storage.transaction_counters().spilled_bytes
    }
}

fn value(row: u32, version: u8) -> Vec<u8> {
    let mut value = vec![version; 100];
    value[..4].copy_from_slice(&row.to_le_bytes());
    value
}

fn fault(operation: FaultyOperation, kind: FaultKind, times: u32) -> Fault {
    Fault {
        operation,
        kind,
        file: SPILL_FILE.into(),
        bytes: 0..u64::MAX,
        times,
    }
}

/// What it takes to empty many leaves does not wait in memory for the end of the sweep.
#[test]
fn the_log_is_written_while_ghosts_are_collected() {
    let roomy = StorageOptions {
        pool_bytes: 16 << 20,
        ..options()
    };
    let table = Table::filled(&disk(1), roomy);
    let mut transaction = table.storage.begin_transaction();
    for row in 0..ROWS {
        let key = row.to_be_bytes();
        assert!(table.tree.delete(&mut transaction, &key).unwrap());
    }
    transaction.commit().unwrap();
    let before = table.storage.log_counters();
    table.collect();
    let after = table.storage.log_counters();
    let (appended, limit) = (after.end - before.end, table.storage.log_buffer_bytes());
    assert!(appended > limit, "{appended} bytes");
    assert!(after.flushes > before.flushes);
}

#[test]
fn a_transaction_of_many_rows_keeps_to_the_budget_and_old_views_see_what_was_before() {
    let table = Table::filled(&disk(1), spilling());
    let old = table.storage.read_view().unwrap();
    let mut transaction = table.storage.begin_transaction();
    table.update(&mut transaction, 0..ROWS, 1).unwrap();
    assert!(table.spilled_bytes() > 3 << 20, "versions and undo");
    table.check(&old, |_| 0);
    let own = transaction.read_view().unwrap();
    table.check(&own, |_| 1);
    // Rows that it has changed already, also such as were spilled.
    table.update(&mut transaction, 5_000..9_000, 2).unwrap();
    table.check(&old, |_| 0);
    drop(own);
    transaction.commit().unwrap();
    let changed = |row| if (5_000..9_000).contains(&row) { 2 } else { 1 };
    table.check(&table.storage.read_view().unwrap(), changed);
    table.check(&old, |_| 0);
    table.collect();
    assert!(table.spilled_bytes() > 1 << 20, "the old view needs it");
    table.check(&old, |_| 0);
    drop(old);
    table.check_nothing_is_kept();
}

#[test]
fn everything_is_taken_back_to_a_savepoint_and_to_the_beginning() {
    let table = Table::filled(&disk(2), spilling());
    let old = table.storage.read_view().unwrap();
    let mut transaction = table.storage.begin_transaction();
    table.update(&mut transaction, 0..12_000, 1).unwrap();
    let savepoint = transaction.savepoint();
    table.update(&mut transaction, 6_000..ROWS, 2).unwrap();
    for row in 0..100 {
        let deleted = table.tree.delete(&mut transaction, &u32::to_be_bytes(row));
        assert!(deleted.unwrap());
    }
    transaction.rollback_to(savepoint).unwrap();
    let own = transaction.read_view().unwrap();
    table.check(&own, |row| u8::from(row < 12_000));
    table.check(&old, |_| 0);
    table.update(&mut transaction, 3_000..15_000, 3).unwrap();
    table.check(&old, |_| 0);
    drop(own);
    transaction.rollback().unwrap();
    table.check(&ReadView::newest(), |_| 0);
    table.check(&old, |_| 0);
    table.check(&table.storage.read_view().unwrap(), |_| 0);
    // What is left behind of it stands in nobody's way.
    let mut transaction = table.storage.begin_transaction();
    table.update(&mut transaction, 0..ROWS, 4).unwrap();
    transaction.commit().unwrap();
    table.check(&old, |_| 0);
    drop(old);
    table.check_nothing_is_kept();
}

#[test]
fn rows_changed_in_random_order_are_spilled_too() {
    let table = Table::filled(&disk(3), spilling());
    let old = table.storage.read_view().unwrap();
    let mut transaction = table.storage.begin_transaction();
    for i in 0..ROWS {
        // 7919 is a prime: every row comes once.
        let row = (u64::from(i) * 7_919 % u64::from(ROWS)) as u32;
        table.update(&mut transaction, row..row + 1, 1).unwrap();
    }
    let read = table.storage.transaction_counters().spill_read_bytes;
    table.check(&old, |_| 0);
    transaction.commit().unwrap();
    let written = table.storage.transaction_counters().spill_written_bytes;
    assert!(
        read < written,
        "only tables that are joined are read: {read} of {written}"
    );
    drop(old);
    table.check_nothing_is_kept();
}

/// What is undone of a spilled table is noted in memory, and the notes are spilled as well.
#[test]
fn a_rollback_keeps_to_the_budget() {
    let table = Table::filled(&disk(4), spilling());
    let old = table.storage.read_view().unwrap();
    let mut transaction = table.storage.begin_transaction();
    let mut savepoints = Vec::new();
    for version in 1..=2 {
        for i in 0..ROWS {
            if i % 1000 == 0 {
                savepoints.push(transaction.savepoint());
            }
            // 7919 is a prime: every row comes once.
            let row = (u64::from(i) * 7_919 % u64::from(ROWS)) as u32;
            table
                .update(&mut transaction, row..row + 1, version)
                .unwrap();
        }
    }
    for savepoint in savepoints.into_iter().rev() {
        transaction.rollback_to(savepoint).unwrap();
        let bytes = table.storage.transaction_counters().version_bytes;
        // A little may come between two looks.
        assert!(
            bytes <= VERSION_BYTES as u64 / 4 * 5,
            "{bytes} at {savepoint}"
        );
    }
    table.check(&old, |_| 0);
    transaction.rollback().unwrap();
    drop(old);
    table.check_nothing_is_kept();
}

#[test]
fn a_wait_for_a_row_whose_version_was_spilled_finds_its_writer() {
    let table = Table::filled(&disk(4), spilling());
    let mut transaction = table.storage.begin_transaction();
    table.update(&mut transaction, 0..10_000, 1).unwrap();
    let mut other = table.storage.begin_transaction();
    other.set_lock_wait(sheaf_storage::LockWait::No);
    for row in (0..10_000).step_by(500) {
        let refused = table.update(&mut other, row..row + 1, 2);
        assert!(matches!(refused, Err(StorageError::LockNotAvailable)));
    }
    table.update(&mut other, 15_000..15_100, 2).unwrap();
    transaction.commit().unwrap();
    table.update(&mut other, 0..100, 2).unwrap();
    other.commit().unwrap();
    let expected = |row| match row {
        0..100 | 15_000..15_100 => 2,
        100..10_000 => 1,
        _ => 0,
    };
    table.check(&ReadView::newest(), expected);
    table.check_nothing_is_kept();
}

#[test]
fn a_full_disk_and_failing_writes_are_errors_of_the_statement() {
    for kind in [FaultKind::NoSpace, FaultKind::IoError] {
        let disk = disk(5);
        let table = Table::filled(&disk, spilling());
        let old = table.storage.read_view().unwrap();
        let mut transaction = table.storage.begin_transaction();
        table.update(&mut transaction, 0..8_000, 1).unwrap();
        let savepoint = transaction.savepoint();
        disk.inject(fault(FaultyOperation::Write, kind, u32::MAX));
        let refused = table.update(&mut transaction, 8_000..ROWS, 1);
        match kind {
            FaultKind::NoSpace => assert!(matches!(refused, Err(StorageError::DiskFull { .. }))),
            _ => assert!(matches!(refused, Err(StorageError::Io { .. }))),
        }
        // The statement is taken back and the old view reads on, while the file cannot be written to.
        transaction.rollback_to(savepoint).unwrap();
        table.check(&old, |_| 0);
        let own = transaction.read_view().unwrap();
        table.check(&own, |row| u8::from(row < 8_000));
        disk.heal();
        table.update(&mut transaction, 8_000..ROWS, 1).unwrap();
        table.check(&own, |_| 1);
        drop(own);
        transaction.commit().unwrap();
        table.check(&ReadView::newest(), |_| 1);
        table.check(&old, |_| 0);
        drop(old);
        table.check_nothing_is_kept();
    }
}

#[test]
fn a_version_that_cannot_be_read_is_an_error_and_never_a_wrong_row() {
    for kind in [FaultKind::IoError, FaultKind::FlippedBit] {
        let disk = disk(6);
        let table = Table::filled(&disk, spilling());
        let old = table.storage.read_view().unwrap();
        let mut transaction = table.storage.begin_transaction();
        table.update(&mut transaction, 0..ROWS, 1).unwrap();
        transaction.commit().unwrap();
        disk.inject(fault(FaultyOperation::Read, kind, u32::MAX));
        let (mut found, mut refused) = (Vec::new(), 0);
        for row in 0..ROWS {
            match table.tree.get_at(&old, &row.to_be_bytes(), &mut found) {
                Ok(is_there) => {
                    assert!(is_there);
                    assert_eq!(found, value(row, 0));
                }
                Err(StorageError::Io { .. }) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(refused > ROWS / 2);
        // A transaction that needs no old versions notices nothing, and can change everything.
        let new = table.storage.read_view().unwrap();
        let mut transaction = table.storage.begin_transaction();
        table.update(&mut transaction, 0..1_000, 2).unwrap();
        table.check(&new, |_| 1);
        disk.heal();
        table.check(&old, |_| 0);
        transaction.commit().unwrap();
        drop((old, new));
        table.check_nothing_is_kept();
    }
}

#[test]
fn undo_that_cannot_be_read_stops_changes_and_the_next_start_takes_it_back() {
    let disk = disk(7);
    let table = Table::filled(&disk, spilling());
    let mut transaction = table.storage.begin_transaction();
    table.update(&mut transaction, 0..ROWS, 1).unwrap();
    disk.inject(fault(FaultyOperation::Read, FaultKind::IoError, u32::MAX));
    transaction.rollback().unwrap_err();
    let mut refused = table.storage.begin_transaction();
    assert!(table.update(&mut refused, 0..1, 9).is_err());
    drop((refused, table));
    disk.heal();
    let table = Table::open(&disk, spilling());
    let spilled = table.storage.transaction_counters().spill_written_bytes;
    assert!(spilled > 1 << 20, "recovery spills as well");
    table.check(&ReadView::newest(), |_| 0);
    table.check_nothing_is_kept();
}

#[test]
fn a_crash_at_any_operation_of_a_long_transaction_leaves_nothing_of_it() {
    for seed in 0..30 {
        let disk = disk(seed);
        let table = Table::filled(&disk, spilling());
        disk.crash_after(Some(20 + seed * 37));
        let mut transaction = table.storage.begin_transaction();
        let mut update = || -> Result<(), StorageError> {
            table.update(&mut transaction, 0..12_000, 1)?;
            let savepoint = transaction.savepoint();
            table.update(&mut transaction, 9_000..ROWS, 2)?;
            transaction.rollback_to(savepoint)
        };
        let result = update();
        assert!(result.is_ok() || disk.is_crashed(), "{result:?}");
        let disk_after = disk.power_loss(SimulationOptions::new(seed));
        drop((transaction, table));
        let table = Table::open(&disk_after, spilling());
        table.check(&ReadView::newest(), |_| 0);
        table.check_nothing_is_kept();
    }
}

/// A transaction that locks a row asks whether it has changed it before, and what was spilled may have to tell.
#[test]
fn locking_rows_whose_past_was_spilled_keeps_to_the_budget() {
    let table = Table::filled(&disk(10), spilling());
    let mut transaction = table.storage.begin_transaction();
    table.update(&mut transaction, 0..ROWS, 1).unwrap();
    for row in 0..ROWS {
        let (key, mode) = (row.to_be_bytes(), LockMode::Exclusive);
        let is_new = transaction.lock_row(&table.tree, &key, mode, LockWait::No);
        assert!(!is_new.unwrap(), "its own change locks row {row}");
        let counters = table.storage.transaction_counters();
        assert!(counters.version_bytes <= VERSION_BYTES as u64);
    }
    transaction.rollback().unwrap();
    table.check(&ReadView::newest(), |_| 0);
    table.check_nothing_is_kept();
}

#[test]
fn the_limit_of_a_transaction_holds_for_what_was_spilled() {
    let limit = 2 << 20;
    let options = StorageOptions {
        max_transaction_log_bytes: limit,
        ..spilling()
    };
    let table = Table::filled(&disk(8), options);
    let mut transaction = table.storage.begin_transaction();
    let refused = table.update(&mut transaction, 0..ROWS, 1);
    assert!(matches!(
        refused,
        Err(StorageError::TransactionTooLarge { .. })
    ));
    assert!(transaction.bytes() <= limit && transaction.bytes() > limit / 2);
    transaction.rollback().unwrap();
    table.check(&ReadView::newest(), |_| 0);
    table.check_nothing_is_kept();
}

#[test]
fn the_file_is_emptied_when_nobody_uses_it_and_when_the_storage_closes() {
    let disk = disk(9);
    let table = Table::filled(&disk, spilling());
    let mut transaction = table.storage.begin_transaction();
    table.update(&mut transaction, 0..ROWS, 1).unwrap();
    let full = disk.used_bytes();
    let spilled = table.spilled_bytes();
    transaction.rollback().unwrap();
    table.check_nothing_is_kept();
    assert!(disk.used_bytes() <= full - spilled + (1 << 20));
    let old = table.storage.read_view().unwrap();
    let mut transaction = table.storage.begin_transaction();
    table.update(&mut transaction, 0..ROWS, 2).unwrap();
    transaction.commit().unwrap();
    assert!(table.spilled_bytes() > 1 << 20);
    table.storage.close().unwrap();
    drop((old, table));
    let spill = sheaf_storage::Disk::open(&*disk, SPILL_FILE).unwrap();
    assert_eq!(sheaf_storage::Disk::length(&*disk, spill).unwrap(), 0);
    let table = Table::open(&disk, spilling());
    table.check(&ReadView::newest(), |_| 2);
}

/// On a real disk. Ten million rows take some minutes and ten gigabytes: `SHEAF_SPILL_ROWS=10000000 cargo test
/// --release -p sheaf-storage --test spill -- --ignored`.
#[test]
#[ignore = "takes much disk; SHEAF_SPILL_ROWS says how many rows"]
fn a_transaction_changes_millions_of_rows_within_the_default_memory() {
    const MEMORY: usize = 64 << 20;
    let rows = std::env::var("SHEAF_SPILL_ROWS").map_or(1_000_000, |rows| rows.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let options = StorageOptions {
        pool_bytes: 256 << 20,
        max_version_bytes: MEMORY,
        ..StorageOptions::default()
    };
    let storage = Storage::open(directory.path(), options).unwrap();
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    let insert = |transaction: &mut Transaction, row: u32| {
        tree.insert(transaction, &row.to_be_bytes(), &value(row, 0))
            .unwrap();
    };
    let update = |transaction: &mut Transaction, row: u32, version| {
        let key = row.to_be_bytes();
        assert!(
            tree.update(transaction, &key, &value(row, version))
                .unwrap()
        );
        let bytes = storage.transaction_counters().version_bytes;
        assert!(bytes <= MEMORY as u64, "{bytes}");
    };
    let mut transaction = storage.begin_transaction();
    (0..rows).for_each(|row| insert(&mut transaction, row));
    transaction.commit().unwrap();
    let old = storage.read_view().unwrap();
    let mut transaction = storage.begin_transaction();
    (0..rows).for_each(|row| update(&mut transaction, row, 1));
    transaction.rollback().unwrap();
    let mut transaction = storage.begin_transaction();
    (0..rows).for_each(|row| update(&mut transaction, row, 2));
    transaction.commit().unwrap();
    let new = storage.read_view().unwrap();
    for (view, version) in [(old, 0), (new, 2)] {
        let mut row = 0;
        let all = KeyRange::all();
        let mut cursor = tree.scan_at(view, all, Direction::Forward, ReadAhead::Pages(64));
        while let Some(leaf) = cursor.next_leaf().unwrap() {
            for i in 0..leaf.len() {
                assert_eq!(leaf.value(i), value(row, version));
                row += 1;
            }
        }
        assert_eq!(row, rows);
    }
    storage.close().unwrap();
}
