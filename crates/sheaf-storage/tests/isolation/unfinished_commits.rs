//! Commits whose records are in the log and not yet on the disk: which views see them.

use sheaf_storage::disk::simulated::{Fault, FaultKind, FaultyOperation};

use super::*;

/// A commit whose record is in the log and not yet on the disk: its rows are free, and snapshots do not see it. The
/// sync that makes a later one durable does the same for it.
#[test]
fn a_commit_that_is_not_finished_is_not_seen() {
    let table = Table::new();
    let mut first = table.begin(ReadCommitted);
    first.update(1, 11).unwrap();
    first.delete(2).unwrap();
    let first = first.transaction.commit_later().unwrap().unwrap();
    assert!(first.has_to_wait());
    assert_eq!(table.committed(), [(1, 10), (2, 20)]);
    let mut second = table.begin(ReadCommitted);
    second.update(1, 12).unwrap();
    let second = second.transaction.commit_later().unwrap().unwrap();
    assert_eq!(table.committed(), [(1, 10), (2, 20)]);
    second.finish().unwrap();
    assert!(!first.has_to_wait());
    assert_eq!(table.committed(), [(1, 12)]);
    first.finish().unwrap();
    assert_eq!(table.committed(), [(1, 12)]);
    let mut third = table.begin(ReadCommitted);
    third.insert(2, 22).unwrap();
    third.commit();
    assert_eq!(table.committed(), [(1, 12), (2, 22)]);
}

/// Nothing has been committed since the start, and there is nothing to wait for.
#[test]
fn statements_that_lock_go_on_after_a_start() {
    let disk = disk(1);
    open(&disk).close().unwrap();
    let storage = open(&disk);
    let mut transaction = storage.begin_transaction();
    for _ in 0..2 {
        let view = transaction.view_to_lock().unwrap();
        assert!(!view.is_newest());
    }
    transaction.commit().unwrap();
}

/// A transaction that locks what it finds sees a commit that is not on the disk, and so do its later reads. When it has
/// ended, however it did, what it has seen is durable.
#[test]
fn a_commit_that_is_not_finished_is_seen_under_locks() {
    for commits in [true, false] {
        let table = Table::new();
        let mut first = table.begin(ReadCommitted);
        first.update(1, 11).unwrap();
        let first = first.transaction.commit_later().unwrap().unwrap();
        let mut second = table.begin(ReadCommitted);
        assert_eq!(second.read(1).unwrap(), Some(10));
        let (ahead, mut value) = (second.transaction.view_to_lock().unwrap(), Vec::new());
        assert!(table.tree.get_at(&ahead, &[1], &mut value).unwrap());
        assert_eq!(value, [11]);
        assert_eq!(second.read(1).unwrap(), Some(11));
        assert_eq!(table.committed(), [(1, 10), (2, 20)]);
        assert!(first.has_to_wait());
        match commits {
            true => second.commit(),
            false => second.transaction.rollback().unwrap(),
        }
        assert!(!first.has_to_wait());
        assert_eq!(table.committed(), [(1, 11), (2, 20)]);
        first.finish().unwrap();
    }
}

/// The log fails before the commit is durable: a restart may find it or not, so nobody is told of it any more.
#[test]
fn a_commit_that_the_log_has_lost_is_seen_by_nobody() {
    let disk = disk(1);
    let table = Table::on(&disk);
    let mut first = table.begin(ReadCommitted);
    first.update(1, 11).unwrap();
    let first = first.transaction.commit_later().unwrap().unwrap();
    let mut seen = table.begin(ReadCommitted);
    seen.transaction.view_to_lock().unwrap();
    let mut also = table.begin(ReadCommitted);
    also.transaction.view_to_lock().unwrap();
    disk.inject(Fault {
        operation: FaultyOperation::Write,
        kind: FaultKind::IoError,
        file: "sheaf.log".into(),
        bytes: 0..u64::MAX,
        times: 1,
    });
    first.finish().unwrap_err();
    let mut late = table.begin(ReadCommitted);
    late.transaction.view_to_lock().unwrap_err();
    seen.transaction.read_view().unwrap_err();
    seen.transaction.rollback().unwrap_err();
    assert!(also.transaction.commit_later().is_err());
    // What was durable is read as before.
    assert_eq!(table.committed(), [(1, 10), (2, 20)]);
    late.transaction.rollback().unwrap();
}

#[test]
fn a_commit_that_is_never_finished_is_seen_with_the_next_one() {
    let table = Table::new();
    let mut forgotten = table.begin(ReadCommitted);
    forgotten.update(1, 11).unwrap();
    drop(forgotten.transaction.commit_later().unwrap());
    assert_eq!(table.committed(), [(1, 10), (2, 20)]);
    let mut next = table.begin(ReadCommitted);
    next.update(2, 21).unwrap();
    next.commit();
    assert_eq!(table.committed(), [(1, 11), (2, 21)]);
    let nothing = table.begin(ReadCommitted);
    assert!(nothing.transaction.commit_later().unwrap().is_none());
}

#[test]
fn a_transaction_whose_changes_are_undone_has_nothing_to_make_durable() {
    let table = Table::new();
    let mut undone = table.begin(ReadCommitted);
    undone.update(1, 11).unwrap();
    undone.transaction.rollback_to(0).unwrap();
    assert!(undone.transaction.commit_later().unwrap().is_none());
    assert_eq!(table.committed(), [(1, 10), (2, 20)]);
    // Its locks are free.
    let mut next = table.begin(ReadCommitted);
    next.update(1, 12).unwrap();
    next.commit();
    assert_eq!(table.committed(), [(1, 12), (2, 20)]);
}
