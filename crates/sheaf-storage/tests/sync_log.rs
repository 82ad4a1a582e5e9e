//! Commits that do not wait for the disk: what a crash may lose, whatever checkpoints are doing meanwhile.
#![cfg(not(feature = "simulation"))]

mod common;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use common::{disk, options};
use sheaf_storage::disk::simulated::{
    Fault, FaultKind, FaultyOperation, SimulatedDisk, SimulationOptions,
};
use sheaf_storage::{Storage, StorageError, StorageOptions, SyncLog, Tree, TreeId};

const DATA_FILE: &str = "sheaf.data";
const LOG_FILE: &str = "sheaf.log";
const ROWS: u32 = 30_000;
/// Far more than the interval of flushes, and far less than a checkpoint that is in no hurry.
const PATIENCE: Duration = Duration::from_secs(20);

fn interval() -> StorageOptions {
    StorageOptions {
        sync_log: SyncLog::Interval,
        ..options()
    }
}

/// As [`interval`], with a pool that holds everything, and all background threads. A checkpoint is due soon, but the
/// log is far from its limit, so nothing makes it hurry.
fn with_threads() -> StorageOptions {
    StorageOptions {
        pool_bytes: 64 << 20,
        recovery_time_goal: Duration::from_millis(1),
        background_writer: true,
        ..interval()
    }
}

fn put(storage: &Storage, tree: &Tree, key: &[u8]) -> Result<(), StorageError> {
    let mut transaction = storage.begin_transaction();
    tree.insert(&mut transaction, key, &[7; 100])?;
    transaction.commit()
}

/// The machine loses its power and is started again: is there an entry with this key?
fn survives(disk: &SimulatedDisk, tree: &Tree, key: &[u8]) -> bool {
    let found = disk.power_loss(SimulationOptions::new(99));
    let storage = Storage::open_on(found, options()).unwrap();
    let mut value = Vec::new();
    let tree = storage.tree(tree.id()).unwrap();
    tree.get(key, &mut value).unwrap()
}

/// Waits for it, and fails if it does not come.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what} takes too long");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A database after a crash: much of it lies in the log alone, so a checkpoint is due, and has many pages to write.
fn with_much_to_write(seed: u64) -> (Arc<SimulatedDisk>, TreeId) {
    let disk = disk(seed);
    let options = StorageOptions {
        background_writer: false,
        ..with_threads()
    };
    let storage = Storage::open_on(disk.clone(), options).unwrap();
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    let mut transaction = storage.begin_transaction();
    for row in 0..ROWS {
        tree.insert(&mut transaction, &row.to_be_bytes(), &[7; 200])
            .unwrap();
    }
    transaction.commit().unwrap();
    storage.flush_log_step().unwrap();
    (disk.power_loss(SimulationOptions::new(seed)), tree.id())
}

#[test]
fn a_step_makes_commits_durable_if_that_is_chosen() {
    for (sync_log, follow_changes, is_durable) in [
        (SyncLog::Interval, false, true),
        (SyncLog::Off, false, false),
        // Followers would wait for a checkpoint.
        (SyncLog::Off, true, true),
    ] {
        let disk = disk(1);
        let options = StorageOptions {
            sync_log,
            follow_changes,
            ..interval()
        };
        let storage = Storage::open_on(disk.clone(), options).unwrap();
        let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
        storage.checkpoint().unwrap();
        put(&storage, &tree, b"key").unwrap();
        storage.flush_log_step().unwrap();
        assert_eq!(survives(&disk, &tree, b"key"), is_durable, "{sync_log:?}");
    }
}

/// A checkpoint that nobody waits for takes up to a minute. Commits do not wait for its end to become durable.
#[test]
fn a_crash_during_a_slow_checkpoint_loses_no_more_than_the_interval() {
    let (disk, tree) = with_much_to_write(2);
    let storage = Storage::open_on(disk.clone(), with_threads()).unwrap();
    let tree = storage.tree(tree).unwrap();
    eventually("a checkpoint", || storage.checkpoint_is_under_way());
    put(&storage, &tree, b"key").unwrap();
    let flushes = storage.log_counters().flushes;
    eventually("a flush", || storage.log_counters().flushes > flushes);
    assert!(storage.checkpoint_is_under_way());
    assert!(survives(&disk, &tree, b"key"));
}

/// The data file cannot be written to, so no checkpoint ever succeeds. The log can.
#[test]
fn checkpoints_that_fail_keep_no_commit_from_becoming_durable() {
    let disk = disk(3);
    let storage = Storage::open_on(disk.clone(), with_threads()).unwrap();
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    storage.checkpoint().unwrap();
    disk.inject(Fault {
        operation: FaultyOperation::Write,
        kind: FaultKind::IoError,
        file: DATA_FILE.into(),
        bytes: 0..u64::MAX,
        times: u32::MAX,
    });
    put(&storage, &tree, b"first").unwrap();
    assert!(storage.checkpoint().is_err());
    for key in [b"key 1", b"key 2"] {
        put(&storage, &tree, key).unwrap();
        let flushes = storage.log_counters().flushes;
        eventually("a flush", || storage.log_counters().flushes > flushes);
    }
    assert!(survives(&disk, &tree, b"key 2"));
}

/// Nothing waits for a commit, so none is told that it failed: the next one is.
#[test]
fn changes_are_refused_when_the_log_has_failed() {
    let disk = disk(4);
    let storage = Storage::open_on(disk.clone(), interval()).unwrap();
    let tree = storage.tree(storage.create_tree().unwrap()).unwrap();
    storage.flush_log_step().unwrap();
    disk.inject(Fault {
        operation: FaultyOperation::Write,
        kind: FaultKind::IoError,
        file: LOG_FILE.into(),
        bytes: 0..u64::MAX,
        times: 1,
    });
    put(&storage, &tree, b"lost").unwrap();
    let failed = storage.flush_log_step();
    assert!(matches!(failed, Err(StorageError::Io { .. })), "{failed:?}");
    let refused = put(&storage, &tree, b"refused");
    assert!(
        matches!(refused, Err(StorageError::Io { .. })),
        "{refused:?}"
    );
}
