use std::ops::Bound;
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::page::Lsn;
use crate::sync::atomic::AtomicBool;
use crate::transaction::TransactionId;

const TREE: TreeId = TreeId(9);
const LIMIT: usize = 100;
/// Longer than any test runs.
const LONG: LockWait = LockWait::AtMost(Duration::from_secs(3600));

/// Keys that are numbers.
fn at(number: usize) -> KeyRange {
    KeyRange::prefix(&(number as u32).to_be_bytes())
}

fn locks() -> Arc<RowLocks> {
    Arc::new(RowLocks::new(LIMIT))
}

fn transaction(id: u64) -> Arc<StatusCell> {
    StatusCell::new(TransactionId(id))
}

fn row(key: &str) -> LockName {
    LockName::row(TREE, key.as_bytes())
}

fn wanted(key: &str, is_insert: bool) -> WantedChange<'_> {
    WantedChange {
        tree: TREE,
        key: key.as_bytes(),
        is_insert,
        has_changed_tree: false,
    }
}

fn keys(range: &KeyRange, kind: RangeLock) -> LockedKeys<'_> {
    LockedKeys {
        tree: TREE,
        range,
        kind,
    }
}

/// No transaction has changed anything.
fn settled() -> Result<RangeState<()>> {
    Ok(RangeState::Settled(()))
}

fn end(locks: &RowLocks, transaction: &StatusCell) {
    transaction.commit(Lsn(1));
    locks.release_all(transaction, true);
}

/// Locks in a thread of its own; the name arrives when the lock is held, or the error.
fn lock_later(
    locks: &Arc<RowLocks>,
    own: &Arc<StatusCell>,
    key: &str,
    mode: LockMode,
    done: &mpsc::Sender<(u64, Result<()>)>,
) -> thread::JoinHandle<()> {
    let (locks, own, name, done) = (locks.clone(), own.clone(), row(key), done.clone());
    thread::spawn(move || {
        let result = locks.lock(&own, &name, mode, &LONG.into());
        done.send((own.id().0, result.map(drop))).unwrap();
    })
}

fn await_waiters(locks: &RowLocks, transactions: &[u64]) {
    while !transactions
        .iter()
        .all(|&id| locks.table.lock().waits(TransactionId(id)))
    {
        thread::yield_now();
    }
}

#[test]
fn shared_locks_stand_side_by_side_and_exclusive_ones_alone() {
    let locks = locks();
    let (a, b, c) = (transaction(1), transaction(2), transaction(3));
    locks
        .lock(&a, &row("k"), LockMode::Shared, &LockWait::No.into())
        .unwrap();
    locks
        .lock(&b, &row("k"), LockMode::Shared, &LockWait::No.into())
        .unwrap();
    let refused = locks.lock(&c, &row("k"), LockMode::Exclusive, &LockWait::No.into());
    assert!(matches!(refused, Err(StorageError::LockNotAvailable)));
    locks
        .lock(&c, &row("other"), LockMode::Exclusive, &LockWait::No.into())
        .unwrap();
    end(&locks, &a);
    // The last holder may have more.
    locks
        .lock(&b, &row("k"), LockMode::Exclusive, &LockWait::No.into())
        .unwrap();
    let refused = locks.lock(&c, &row("k"), LockMode::Shared, &LockWait::No.into());
    assert!(matches!(refused, Err(StorageError::LockNotAvailable)));
    end(&locks, &b);
    end(&locks, &c);
    assert_eq!(locks.count(), 0);
    assert!(locks.counters.is_zero(TREE));
}

#[test]
fn waits_are_served_in_order_of_arrival() {
    let locks = locks();
    let all: Vec<_> = (1..=4).map(transaction).collect();
    locks
        .lock(&all[0], &row("k"), LockMode::Shared, &LockWait::No.into())
        .unwrap();
    let (done, served) = mpsc::channel();
    let mut threads = Vec::new();
    // 3 could share with 1, but 2 came before it.
    for (own, mode) in [
        (&all[1], LockMode::Exclusive),
        (&all[2], LockMode::Shared),
        (&all[3], LockMode::Exclusive),
    ] {
        threads.push(lock_later(&locks, own, "k", mode, &done));
        await_waiters(&locks, &[own.id().0]);
    }
    for (ended, next) in [(0, 2), (1, 3), (2, 4)] {
        assert!(served.try_recv().is_err());
        end(&locks, &all[ended]);
        let (id, result) = served.recv().unwrap();
        assert_eq!(id, next);
        result.unwrap();
    }
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

#[test]
fn the_wait_that_closes_a_cycle_is_the_victim() {
    let locks = locks();
    let all: Vec<_> = (1..=3).map(transaction).collect();
    for (own, key) in all.iter().zip(["a", "b", "c"]) {
        locks
            .lock(own, &row(key), LockMode::Exclusive, &LockWait::No.into())
            .unwrap();
    }
    let (done, served) = mpsc::channel();
    let first = lock_later(&locks, &all[0], "b", LockMode::Exclusive, &done);
    let second = lock_later(&locks, &all[1], "c", LockMode::Shared, &done);
    await_waiters(&locks, &[1, 2]);
    let victim = locks.lock(&all[2], &row("a"), LockMode::Shared, &LONG.into());
    assert!(matches!(victim, Err(StorageError::Deadlock)));
    // Its rollback sets the others free.
    for (ended, next) in [(2, 2), (1, 1)] {
        end(&locks, &all[ended]);
        let (id, result) = served.recv().unwrap();
        assert_eq!(id, next);
        result.unwrap();
    }
    first.join().unwrap();
    second.join().unwrap();
}

/// The transaction that closes the cycle has done most, so another one is woken: the one that has done least.
#[test]
fn the_transaction_that_has_done_least_is_the_victim() {
    let locks = locks();
    let all: Vec<_> = (1..=3).map(transaction).collect();
    for (own, key) in all.iter().zip(["a", "b", "c"]) {
        locks
            .lock(own, &row(key), LockMode::Exclusive, &LockWait::No.into())
            .unwrap();
    }
    let (done, served) = mpsc::channel();
    let mut threads = Vec::new();
    for (own, key, work) in [(&all[0], "b", 5), (&all[1], "c", 2), (&all[2], "a", 7)] {
        let (locks, own, name, done) = (locks.clone(), own.clone(), row(key), done.clone());
        let patience = Patience {
            work,
            ..LONG.into()
        };
        let id = own.id().0;
        threads.push(thread::spawn({
            let locks = locks.clone();
            move || {
                let result = locks.lock(&own, &name, LockMode::Exclusive, &patience);
                done.send((own.id().0, result.map(drop))).unwrap();
            }
        }));
        if id < 3 {
            await_waiters(&locks, &[id]);
        }
    }
    let (id, result) = served.recv().unwrap();
    assert_eq!(id, 2);
    assert!(matches!(result, Err(StorageError::Deadlock)));
    for (ended, next) in [(1, 1), (0, 3)] {
        end(&locks, &all[ended]);
        let (id, result) = served.recv().unwrap();
        assert_eq!(id, next);
        result.unwrap();
    }
    end(&locks, &all[2]);
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_eq!(locks.count(), 0);
}

/// A transaction that is only the next in a queue is not what blocks: without it another one would be the next, and the
/// cycle would still be there.
#[test]
fn a_transaction_that_only_has_a_place_is_no_victim() {
    let locks = locks();
    let (writer, next, behind) = (transaction(1), transaction(2), transaction(3));
    locks
        .lock(
            &behind,
            &row("b"),
            LockMode::Exclusive,
            &LockWait::No.into(),
        )
        .unwrap();
    // The writer has changed a.
    let place = thread::spawn({
        let (locks, own, writer) = (locks.clone(), next.clone(), writer.clone());
        move || {
            let changed_by = || Ok(writer.is_active().then(|| writer.clone()));
            let (mode, patience) = (LockMode::Exclusive, LONG.into());
            locks.lock_newest(&own, &row("a"), mode, &patience, changed_by)
        }
    });
    await_waiters(&locks, &[2]);
    let victim = thread::spawn({
        let (locks, own) = (locks.clone(), behind.clone());
        let patience = Patience {
            work: 3,
            ..LONG.into()
        };
        move || locks.lock(&own, &row("a"), LockMode::Exclusive, &patience)
    });
    await_waiters(&locks, &[3]);
    let closing = thread::spawn({
        let (locks, own) = (locks.clone(), writer.clone());
        let patience = Patience {
            work: 5,
            ..LONG.into()
        };
        move || locks.lock(&own, &row("b"), LockMode::Exclusive, &patience)
    });
    let result = victim.join().unwrap();
    assert!(matches!(result, Err(StorageError::Deadlock)));
    end(&locks, &behind);
    closing.join().unwrap().unwrap();
    end(&locks, &writer);
    place.join().unwrap().unwrap();
    end(&locks, &next);
    assert_eq!(locks.count(), 0);
}

#[test]
fn two_holders_that_both_want_more_are_a_deadlock() {
    let locks = locks();
    let (a, b) = (transaction(1), transaction(2));
    locks
        .lock(&a, &row("k"), LockMode::Shared, &LockWait::No.into())
        .unwrap();
    locks
        .lock(&b, &row("k"), LockMode::Shared, &LockWait::No.into())
        .unwrap();
    let (done, served) = mpsc::channel();
    let thread = lock_later(&locks, &a, "k", LockMode::Exclusive, &done);
    await_waiters(&locks, &[1]);
    let victim = locks.lock(&b, &row("k"), LockMode::Exclusive, &LONG.into());
    assert!(matches!(victim, Err(StorageError::Deadlock)));
    end(&locks, &b);
    served.recv().unwrap().1.unwrap();
    thread.join().unwrap();
}

#[test]
fn waiting_for_the_end_of_a_transaction_takes_part_in_deadlocks() {
    let locks = locks();
    let (a, b) = (transaction(1), transaction(2));
    locks
        .lock(&a, &row("k"), LockMode::Exclusive, &LockWait::No.into())
        .unwrap();
    let (waiting, own, other) = (locks.clone(), a.clone(), b.clone());
    let thread = thread::spawn(move || {
        let look = waiting.before_look();
        waiting.wait_for_end(&own, &other, look, &LONG.into())
    });
    await_waiters(&locks, &[1]);
    let victim = locks.lock(&b, &row("k"), LockMode::Shared, &LONG.into());
    assert!(matches!(victim, Err(StorageError::Deadlock)));
    b.roll_back();
    locks.release_all(&b, true);
    thread.join().unwrap().unwrap();
    // Nothing to wait for any more.
    let look = locks.before_look();
    locks
        .wait_for_end(&a, &b, look, &LockWait::No.into())
        .unwrap();
}

#[test]
fn a_wait_ends_after_its_time() {
    let locks = locks();
    let (a, b) = (transaction(1), transaction(2));
    locks
        .lock(&a, &row("k"), LockMode::Exclusive, &LockWait::No.into())
        .unwrap();
    let short = LockWait::AtMost(Duration::from_nanos(1));
    let result = locks.lock(&b, &row("k"), LockMode::Shared, &short.into());
    assert!(matches!(result, Err(StorageError::LockWaitTimeout)));
    let result = locks.wait_for_end(&b, &a, locks.before_look(), &short.into());
    assert!(matches!(result, Err(StorageError::LockWaitTimeout)));
    assert_eq!(locks.count(), 1);
    end(&locks, &a);
    locks
        .lock(&b, &row("k"), LockMode::Shared, &LockWait::No.into())
        .unwrap();
}

#[test]
fn a_range_keeps_inserts_out_and_lets_updates_pass_unless_it_says_otherwise() {
    let locks = locks();
    let (reader, writer) = (transaction(1), transaction(2));
    let blocker = |key: &str, is_insert| locks.blocker(&writer, wanted(key, is_insert));
    let range = KeyRange {
        lower: Bound::Excluded(b"b".to_vec()),
        upper: Bound::Included(b"d".to_vec()),
    };
    locks
        .lock_range(
            &reader,
            keys(&range, RangeLock::NoInserts),
            &LockWait::No.into(),
            settled,
        )
        .unwrap();
    locks
        .lock_range(
            &reader,
            keys(&range, RangeLock::NoInserts),
            &LockWait::No.into(),
            settled,
        )
        .unwrap();
    assert_eq!(locks.count(), 1);
    assert!(
        matches!(blocker("c", true), Some(Blocker::Range(owner)) if Arc::ptr_eq(&owner, &reader))
    );
    assert!(blocker("c", false).is_none());
    assert!(blocker("b", true).is_none() && blocker("e", true).is_none());
    assert!(locks.blocker(&reader, wanted("c", true)).is_none());
    locks
        .lock_range(
            &reader,
            keys(&range, RangeLock::NoChanges),
            &LockWait::No.into(),
            settled,
        )
        .unwrap();
    assert!(blocker("c", false).is_some());
    end(&locks, &reader);
    assert!(blocker("c", true).is_none());
    assert_eq!(locks.count(), 0);
}

#[test]
fn a_writer_queues_behind_locks_of_the_row_that_are_not_its_own() {
    let locks = locks();
    let (a, b) = (transaction(1), transaction(2));
    locks
        .lock(&a, &row("k"), LockMode::Shared, &LockWait::No.into())
        .unwrap();
    assert!(matches!(
        locks.blocker(&b, wanted("k", false)),
        Some(Blocker::Lock)
    ));
    assert!(locks.blocker(&a, wanted("k", false)).is_none());
    // A check of uniqueness is no lock of a row.
    locks
        .lock(
            &a,
            &LockName::prefix(TREE, b"p"),
            LockMode::Exclusive,
            &LockWait::No.into(),
        )
        .unwrap();
    assert!(locks.blocker(&b, wanted("p", true)).is_none());
    locks.unlock(&a, &LockName::prefix(TREE, b"p"));
    locks.unlock(&a, &row("k"));
    assert!(locks.blocker(&b, wanted("k", false)).is_none());
    assert_eq!(locks.count(), 0);
}

/// Keys are up to 3,072 bytes long, and the limit is one of memory.
#[test]
fn locks_of_long_keys_count_as_several() {
    let locks = locks();
    let own = transaction(1);
    let lock = |name: &LockName| locks.lock(&own, name, LockMode::Exclusive, &LockWait::No.into());
    assert!(lock(&row("short")).unwrap());
    assert_eq!(locks.count(), 1);
    let long = row(&"k".repeat(3_000));
    assert!(lock(&long).unwrap() && !lock(&long).unwrap());
    assert!(locks.count() > 10, "{} places", locks.count());
    locks.unlock(&own, &long);
    assert_eq!(locks.count(), 1);
    assert!(lock(&long).unwrap());
    end(&locks, &own);
    assert_eq!(locks.count(), 0);
    assert!(locks.counters.is_zero(TREE));
}

#[test]
fn there_is_a_limit_to_locks() {
    let locks = locks();
    let own = transaction(1);
    let lock = |i: usize| {
        locks.lock(
            &own,
            &row(&i.to_string()),
            LockMode::Shared,
            &LockWait::No.into(),
        )
    };
    (0..LIMIT).for_each(|i| assert!(lock(i).unwrap()));
    assert!(matches!(
        lock(LIMIT),
        Err(StorageError::TooManyLocks { limit: LIMIT })
    ));
    // What is held may be asked for again.
    assert!(!lock(0).unwrap());
    end(&locks, &own);
    assert_eq!(locks.count(), 0);
    assert!(locks.counters.is_zero(TREE));
}

/// Every range that is not left by its end keeps writers out for as long as the transaction lives.
#[test]
fn a_range_whose_wait_fails_is_not_left_behind() {
    let locks = locks();
    let (reader, writer, newcomer) = (transaction(1), transaction(2), transaction(3));
    let all = KeyRange::all();
    let lock = |wait: LockWait| {
        locks.lock_range(
            &reader,
            keys(&all, RangeLock::NoChanges),
            &wait.into(),
            || {
                Ok(match writer.is_active() {
                    true => RangeState::ChangedBy(writer.clone()),
                    false => RangeState::Settled(()),
                })
            },
        )
    };
    assert!(matches!(
        lock(LockWait::No),
        Err(StorageError::LockNotAvailable)
    ));
    assert!(matches!(
        lock(LockWait::AtMost(Duration::from_nanos(1))),
        Err(StorageError::LockWaitTimeout)
    ));
    assert!(locks.blocker(&newcomer, wanted("k", true)).is_none());
    assert_eq!(locks.count(), 0);
    assert!(locks.counters.is_zero(TREE));
    end(&locks, &writer);
    lock(LockWait::No).unwrap();
    assert!(locks.blocker(&newcomer, wanted("k", true)).is_some());
    end(&locks, &reader);
    assert_eq!(locks.count(), 0);
}

#[test]
fn transactions_that_a_range_waits_for_pass_and_newcomers_wait() {
    let locks = locks();
    let (reader, writer, newcomer) = (transaction(1), transaction(2), transaction(3));
    let (waiting, own, other) = (locks.clone(), reader.clone(), writer.clone());
    let thread = thread::spawn(move || {
        let all = KeyRange::all();
        let locked = keys(&all, RangeLock::NoChanges);
        waiting.lock_range(&own, locked, &LONG.into(), || {
            Ok(match other.is_active() {
                true => RangeState::ChangedBy(other.clone()),
                false => RangeState::Settled(()),
            })
        })
    });
    await_waiters(&locks, &[1]);
    let again = WantedChange {
        has_changed_tree: true,
        ..wanted("k", false)
    };
    assert!(locks.blocker(&writer, again).is_none());
    assert!(locks.blocker(&newcomer, wanted("k", false)).is_some());
    end(&locks, &writer);
    thread.join().unwrap().unwrap();
    assert!(locks.blocker(&newcomer, again).is_some());
    end(&locks, &reader);
    assert_eq!(locks.count(), 0);
}

#[test]
fn an_exclusive_lock_of_a_row_waits_for_readers_of_its_range() {
    let locks = locks();
    let (reader, writer) = (transaction(1), transaction(2));
    let all = KeyRange::all();
    let no_wait = LockWait::No.into();
    locks
        .lock_range(&reader, keys(&all, RangeLock::NoChanges), &no_wait, settled)
        .unwrap();
    let refused = locks.lock(&writer, &row("k"), LockMode::Exclusive, &no_wait);
    assert!(matches!(refused, Err(StorageError::LockNotAvailable)));
    locks
        .lock(&writer, &row("k"), LockMode::Shared, &no_wait)
        .unwrap();
    let (done, served) = mpsc::channel();
    let thread = lock_later(&locks, &writer, "j", LockMode::Exclusive, &done);
    await_waiters(&locks, &[2]);
    end(&locks, &reader);
    served.recv().unwrap().1.unwrap();
    thread.join().unwrap();
    end(&locks, &writer);
    assert_eq!(locks.count(), 0);
}

#[test]
fn locks_of_many_rows_become_one_of_the_tree() {
    let locks = Arc::new(RowLocks::new(1 << 20));
    let (many, few) = (transaction(1), transaction(2));
    let no_wait = LockWait::No.into();
    let lock_rows = |mode, from: usize, to: usize| {
        (from..to).for_each(|i| {
            locks
                .lock(&many, &row(&i.to_string()), mode, &no_wait)
                .unwrap();
        });
    };
    // At first another transaction's lock conflicts.
    locks
        .lock(&few, &row("elsewhere"), LockMode::Exclusive, &no_wait)
        .unwrap();
    let most = lock_table::ESCALATION_ROWS;
    lock_rows(LockMode::Exclusive, 0, most - 1);
    assert!(!locks.escalate(&many, TREE, || false));
    lock_rows(LockMode::Exclusive, most - 1, most);
    assert!(!locks.escalate(&many, TREE, || false));
    assert_eq!(locks.count(), 1 + most);
    end(&locks, &few);
    assert!(!locks.escalate(&many, TREE, || true));
    assert!(locks.escalate(&many, TREE, || false));
    assert_eq!(locks.count(), 1);
    lock_rows(LockMode::Exclusive, 0, 10);
    assert_eq!(locks.count(), 1);
    let is_new = locks.lock(&many, &row("0"), LockMode::Exclusive, &no_wait);
    assert!(!is_new.unwrap(), "the tree's lock covers it");
    let late = transaction(3);
    let refused = locks.lock(&late, &row("elsewhere"), LockMode::Shared, &no_wait);
    assert!(matches!(refused, Err(StorageError::LockNotAvailable)));
    end(&locks, &many);
    assert_eq!(locks.count(), 0);
    assert!(locks.counters.is_zero(TREE));
}

#[test]
fn a_wait_that_is_interrupted_leaves_nothing_behind() {
    let locks = locks();
    let (a, b) = (transaction(1), transaction(2));
    locks
        .lock(&a, &row("k"), LockMode::Exclusive, &LockWait::No.into())
        .unwrap();
    let patience = Patience {
        wait: LONG,
        work: 0,
        interrupt: Some(Arc::new(|| true)),
    };
    let result = locks.lock(&b, &row("k"), LockMode::Shared, &patience);
    assert!(matches!(result, Err(StorageError::LockWaitInterrupted)));
    let result = locks.wait_for_end(&b, &a, locks.before_look(), &patience);
    assert!(matches!(result, Err(StorageError::LockWaitInterrupted)));
    assert_eq!(locks.count(), 1);
    end(&locks, &a);
}

/// Only those stop waiting that were told to; the others sleep on.
#[test]
fn a_wait_that_is_told_to_end_does_so_when_roused() {
    let locks = Arc::new(RowLocks {
        // No waiter asks by itself.
        interrupt_poll: Duration::from_secs(3600),
        ..RowLocks::new(100)
    });
    let (holder, killed, other) = (transaction(1), transaction(2), transaction(3));
    let exclusive = LockMode::Exclusive;
    locks
        .lock(&holder, &row("k"), exclusive, &LockWait::No.into())
        .unwrap();
    let wait_until = |own: &Arc<StatusCell>, gives_up: &Arc<AtomicBool>| {
        let (locks, own, gives_up) = (locks.clone(), own.clone(), gives_up.clone());
        let patience = Patience {
            wait: LONG,
            work: 0,
            interrupt: Some(Arc::new(move || gives_up.load(Ordering::SeqCst))),
        };
        thread::spawn(move || locks.lock(&own, &row("k"), exclusive, &patience))
    };
    let (kill, never) = (Arc::default(), Arc::default());
    let killed_wait = wait_until(&killed, &kill);
    let other_wait = wait_until(&other, &never);
    await_waiters(&locks, &[2, 3]);
    kill.store(true, Ordering::SeqCst);
    locks.wake_all();
    let result = killed_wait.join().unwrap();
    assert!(matches!(result, Err(StorageError::LockWaitInterrupted)));
    end(&locks, &holder);
    other_wait.join().unwrap().unwrap();
    for transaction in [&killed, &other] {
        end(&locks, transaction);
    }
    assert_eq!(locks.count(), 0);
}

/// A transaction that is told to stop just before it begins to wait is not among those that are roused.
#[test]
fn a_wait_that_was_told_to_end_before_it_began_does_not_sleep() {
    let locks = RowLocks {
        // No waiter asks by itself.
        interrupt_poll: Duration::from_secs(3600),
        ..RowLocks::new(100)
    };
    let (holder, killed) = (transaction(1), transaction(2));
    let exclusive = LockMode::Exclusive;
    locks
        .lock(&holder, &row("k"), exclusive, &LockWait::No.into())
        .unwrap();
    locks.wake_all();
    let patience = Patience {
        wait: LONG,
        work: 0,
        interrupt: Some(Arc::new(|| true)),
    };
    let result = locks.lock(&killed, &row("k"), exclusive, &patience);
    assert!(matches!(result, Err(StorageError::LockWaitInterrupted)));
    end(&locks, &holder);
    end(&locks, &killed);
    assert_eq!(locks.count(), 0);
}

/// A statement that was killed has perhaps not noticed: here it never does by itself.
#[test]
fn a_wait_that_was_told_to_end_is_no_part_of_a_deadlock() {
    let locks = locks();
    let (killed, other) = (transaction(1), transaction(2));
    let free = LockWait::No.into();
    locks
        .lock(&killed, &row("a"), LockMode::Exclusive, &free)
        .unwrap();
    locks
        .lock(&other, &row("b"), LockMode::Exclusive, &free)
        .unwrap();
    let (waiting, own) = (locks.clone(), killed.clone());
    let killed_wait = thread::spawn(move || {
        let waiter = thread::current().id();
        let patience = Patience {
            wait: LONG,
            work: 0,
            interrupt: Some(Arc::new(move || thread::current().id() != waiter)),
        };
        waiting.lock(&own, &row("b"), LockMode::Exclusive, &patience)
    });
    await_waiters(&locks, &[1]);
    let (done, served) = mpsc::channel();
    let other_wait = lock_later(&locks, &other, "a", LockMode::Exclusive, &done);
    let result = killed_wait.join().unwrap();
    assert!(matches!(result, Err(StorageError::LockWaitInterrupted)));
    // Its transaction goes on, and may come into another deadlock.
    let result = locks.lock(&killed, &row("b"), LockMode::Exclusive, &LONG.into());
    assert!(matches!(result, Err(StorageError::Deadlock)));
    end(&locks, &killed);
    assert!(matches!(served.recv().unwrap(), (2, Ok(()))));
    other_wait.join().unwrap();
    end(&locks, &other);
    assert_eq!(locks.count(), 0);
}

#[test]
fn readers_of_a_range_let_a_waiting_writer_go_first() {
    let locks = locks();
    let (first, writer, second) = (transaction(1), transaction(2), transaction(3));
    let all = KeyRange::all();
    let locked = keys(&all, RangeLock::NoChanges);
    locks
        .lock_range(&first, locked, &LONG.into(), settled)
        .unwrap();
    let (done, served) = mpsc::channel();
    let writing = lock_later(&locks, &writer, "k", LockMode::Exclusive, &done);
    await_waiters(&locks, &[2]);
    let (waiting, own) = (locks.clone(), second.clone());
    let reading = thread::spawn(move || {
        let all = KeyRange::all();
        waiting.lock_range(
            &own,
            keys(&all, RangeLock::NoChanges),
            &LONG.into(),
            settled,
        )
    });
    await_waiters(&locks, &[3]);
    // Its own ranges it may have more of.
    let part = KeyRange::prefix(b"k");
    locks
        .lock_range(
            &first,
            keys(&part, RangeLock::NoLocks),
            &LONG.into(),
            settled,
        )
        .unwrap();
    end(&locks, &first);
    let (id, result) = served.recv().unwrap();
    assert_eq!(id, 2);
    result.unwrap();
    writing.join().unwrap();
    end(&locks, &writer);
    reading.join().unwrap().unwrap();
    end(&locks, &second);
    assert_eq!(locks.count(), 0);
}

#[test]
fn many_ranges_of_a_tree_become_one() {
    let most = range_table::MAX_RANGES_OF_TREE;
    let locks = Arc::new(RowLocks::new(10 * most));
    let (reader, writer) = (transaction(1), transaction(2));
    let no_wait = LockWait::No.into();
    let lock = |number: usize| {
        let (range, kind) = (at(number), RangeLock::NoInserts);
        locks
            .lock_range(&reader, keys(&range, kind), &no_wait, settled)
            .unwrap();
    };
    (0..most).for_each(|number| lock(2 * number));
    // One that is covered by another is not entered again.
    lock(0);
    assert_eq!(locks.count(), most);
    assert!(locks.blocker(&writer, wanted("k", true)).is_none());
    lock(1);
    assert_eq!(locks.count(), 1);
    assert!(locks.blocker(&writer, wanted("k", true)).is_some());
    assert!(locks.blocker(&writer, wanted("k", false)).is_none());
    end(&locks, &reader);
    assert_eq!(locks.count(), 0);
    assert!(locks.counters.is_zero(TREE));
}

/// A transaction that has a range already makes no other wait any longer by locking it again.
#[test]
fn a_range_that_is_locked_again_waits_for_nobody() {
    let locks = locks();
    let (first, again, writer) = (transaction(1), transaction(2), transaction(3));
    let all = KeyRange::all();
    let locked = keys(&all, RangeLock::NoChanges);
    let short = LockWait::AtMost(Duration::from_nanos(1)).into();
    for reader in [&first, &again] {
        locks.lock_range(reader, locked, &short, settled).unwrap();
    }
    let (done, served) = mpsc::channel();
    let writing = lock_later(&locks, &writer, "k", LockMode::Exclusive, &done);
    await_waiters(&locks, &[3]);
    let part = KeyRange::prefix(b"k");
    for range in [&all, &part] {
        for reader in [&first, &again] {
            let locked = keys(range, RangeLock::NoChanges);
            locks.lock_range(reader, locked, &short, settled).unwrap();
        }
    }
    end(&locks, &first);
    end(&locks, &again);
    served.recv().unwrap().1.unwrap();
    writing.join().unwrap();
    end(&locks, &writer);
    assert_eq!(locks.count(), 0);
}

/// A statement that stops waiting leaves its transaction open, for which no other has to wait then.
#[test]
fn a_wait_behind_one_that_was_given_up_goes_on() {
    let locks = locks();
    let (first, writer, second) = (transaction(1), transaction(2), transaction(3));
    let all = KeyRange::all();
    let locked = keys(&all, RangeLock::NoChanges);
    locks
        .lock_range(&first, locked, &LONG.into(), settled)
        .unwrap();
    let gives_up = Arc::new(AtomicUsize::new(0));
    let (waiting, own, asked) = (locks.clone(), writer.clone(), gives_up.clone());
    let writing = thread::spawn(move || {
        let patience = Patience {
            wait: LONG,
            work: 0,
            interrupt: Some(Arc::new(move || asked.load(Ordering::SeqCst) > 0)),
        };
        waiting.lock(&own, &row("k"), LockMode::Exclusive, &patience)
    });
    await_waiters(&locks, &[2]);
    let (waiting, own) = (locks.clone(), second.clone());
    let reading = thread::spawn(move || {
        let all = KeyRange::all();
        let locked = keys(&all, RangeLock::NoChanges);
        waiting.lock_range(&own, locked, &LONG.into(), settled)
    });
    await_waiters(&locks, &[3]);
    gives_up.store(1, Ordering::SeqCst);
    let result = writing.join().unwrap();
    assert!(matches!(result, Err(StorageError::LockWaitInterrupted)));
    reading.join().unwrap().unwrap();
    for transaction in [&first, &writer, &second] {
        end(&locks, transaction);
    }
    assert_eq!(locks.count(), 0);
}

#[test]
fn a_range_waits_for_locks_that_it_excludes() {
    let locks = locks();
    let (holder, reader) = (transaction(1), transaction(2));
    let all = KeyRange::all();
    let no_wait = LockWait::No.into();
    for (held, kind, is_excluded) in [
        (LockMode::Exclusive, RangeLock::NoInserts, false),
        (LockMode::Exclusive, RangeLock::NoChanges, true),
        (LockMode::Exclusive, RangeLock::NoLocks, true),
        (LockMode::Shared, RangeLock::NoChanges, false),
        (LockMode::Shared, RangeLock::NoLocks, true),
    ] {
        let (holder, reader) = (transaction(1), transaction(2));
        locks.lock(&holder, &row("k"), held, &no_wait).unwrap();
        let result = locks.lock_range(&reader, keys(&all, kind), &no_wait, settled);
        assert_eq!(result.is_err(), is_excluded, "{held:?} {kind:?}");
        let elsewhere = at(7);
        locks
            .lock_range(&reader, keys(&elsewhere, kind), &no_wait, settled)
            .unwrap();
        end(&locks, &holder);
        end(&locks, &reader);
        assert_eq!(locks.count(), 0);
    }
    // A lock that is released is waited for no longer.
    locks
        .lock(&holder, &row("k"), LockMode::Exclusive, &no_wait)
        .unwrap();
    let (waiting, own) = (locks.clone(), reader.clone());
    let reading = thread::spawn(move || {
        let all = KeyRange::all();
        let locked = keys(&all, RangeLock::NoChanges);
        waiting.lock_range(&own, locked, &LONG.into(), settled)
    });
    await_waiters(&locks, &[2]);
    // Meanwhile the holder may change what it likes.
    assert!(locks.blocker(&holder, wanted("j", false)).is_none());
    locks.unlock(&holder, &row("k"));
    reading.join().unwrap().unwrap();
    assert!(locks.blocker(&holder, wanted("j", false)).is_some());
    end(&locks, &reader);
    end(&locks, &holder);
    assert_eq!(locks.count(), 0);
}

/// A lock that a transaction holds while it waits for the range's owner is a place in a queue and no more, whether it
/// began to wait before the owner came to the lock or afterwards.
#[test]
fn a_range_does_not_wait_for_those_that_wait_for_its_owner() {
    for waits_first in [true, false] {
        let locks = locks();
        let (owner, next) = (transaction(1), transaction(2));
        locks
            .lock(&next, &row("k"), LockMode::Exclusive, &LONG.into())
            .unwrap();
        let (queue, own, other) = (locks.clone(), next.clone(), owner.clone());
        let wait = move || queue.wait_for_end(&own, &other, queue.before_look(), &LONG.into());
        let (ranges, own) = (locks.clone(), owner.clone());
        let lock = move || {
            let all = KeyRange::all();
            let locked = keys(&all, RangeLock::NoChanges);
            ranges.lock_range(&own, locked, &LONG.into(), settled)
        };
        let (waiting, locking);
        if waits_first {
            waiting = thread::spawn(wait);
            await_waiters(&locks, &[2]);
            locking = thread::spawn(lock);
        } else {
            locking = thread::spawn(lock);
            await_waiters(&locks, &[1]);
            waiting = thread::spawn(wait);
        }
        locking.join().unwrap().unwrap();
        end(&locks, &owner);
        waiting.join().unwrap().unwrap();
        end(&locks, &next);
        assert_eq!(locks.count(), 0);
    }
}

#[test]
fn every_range_in_the_way_of_a_key_counts_in_deadlocks() {
    let locks = locks();
    let readers = [transaction(1), transaction(2)];
    let writer = transaction(3);
    let all = KeyRange::all();
    let locked = keys(&all, RangeLock::NoChanges);
    for reader in &readers {
        locks
            .lock_range(reader, locked, &LONG.into(), settled)
            .unwrap();
    }
    let (done, served) = mpsc::channel();
    let writing = lock_later(&locks, &writer, "k", LockMode::Exclusive, &done);
    await_waiters(&locks, &[3]);
    let short = LockWait::AtMost(Duration::from_nanos(1)).into();
    for reader in &readers {
        let result = locks.wait_for_end(reader, &writer, locks.before_look(), &short);
        assert!(matches!(result, Err(StorageError::Deadlock)), "{result:?}");
    }
    readers.iter().for_each(|reader| end(&locks, reader));
    served.recv().unwrap().1.unwrap();
    writing.join().unwrap();
    end(&locks, &writer);
}

/// One writer after the other conflicts with a range: each is soon through, but the range does not wait for all of
/// them.
#[test]
fn a_range_waits_no_longer_than_it_may_in_all() {
    const WRITERS: u64 = 100_000;
    let locks = locks();
    let (reader, all) = (transaction(1), KeyRange::all());
    let (ended, to_end) = mpsc::channel::<Arc<StatusCell>>();
    let ending = locks.clone();
    let writers = thread::spawn(move || {
        for writer in to_end {
            await_waiters(&ending, &[1]);
            end(&ending, &writer);
        }
    });
    let patience = LockWait::AtMost(Duration::from_millis(5)).into();
    let mut next = 2;
    let result = locks.lock_range(&reader, keys(&all, RangeLock::NoChanges), &patience, || {
        if next == WRITERS {
            return settled();
        }
        let writer = transaction(next);
        next += 1;
        ended.send(writer.clone()).unwrap();
        Ok(RangeState::ChangedBy(writer))
    });
    assert!(matches!(result, Err(StorageError::LockWaitTimeout)));
    // The thread that ends the writers may still wait for the reader to wait for the last one.
    locks
        .table
        .lock()
        .set_wait(reader.id(), Wait::End(TransactionId(0)));
    drop(ended);
    writers.join().unwrap();
    end(&locks, &reader);
    assert_eq!(locks.count(), 0);
}

/// Transactions that lock one row after the other could keep the owner of a range waiting for ever.
#[test]
fn newcomers_lock_no_rows_of_a_range_that_waits_for_locks() {
    let locks = locks();
    let (holder, reader, newcomer) = (transaction(1), transaction(2), transaction(3));
    let no_wait = LockWait::No.into();
    let exclusive = |own, key| locks.lock(own, &row(key), LockMode::Exclusive, &no_wait);
    exclusive(&holder, "k").unwrap();
    let (waiting, own) = (locks.clone(), reader.clone());
    let reading = thread::spawn(move || {
        let all = KeyRange::all();
        let locked = keys(&all, RangeLock::NoChanges);
        waiting.lock_range(&own, locked, &LONG.into(), settled)
    });
    await_waiters(&locks, &[2]);
    assert!(matches!(
        exclusive(&newcomer, "j"),
        Err(StorageError::LockNotAvailable)
    ));
    locks
        .lock(&newcomer, &row("j"), LockMode::Shared, &no_wait)
        .unwrap();
    exclusive(&holder, "i").unwrap();
    end(&locks, &holder);
    reading.join().unwrap().unwrap();
    end(&locks, &reader);
    exclusive(&newcomer, "j").unwrap();
    end(&locks, &newcomer);
    assert_eq!(locks.count(), 0);
}

/// The owner of the range looks again whenever the holder of the row begins again. If the holder took that for a reason
/// to begin again, the two would keep each other from going on.
#[test]
fn to_be_let_pass_by_a_range_is_no_wait_for_another_transaction() {
    let locks = locks();
    let (holder, reader) = (transaction(1), transaction(2));
    let name = row("k");
    let lock = |patience: &Patience| {
        locks.lock_newest(&holder, &name, LockMode::Exclusive, patience, || Ok(None))
    };
    lock(&LockWait::No.into()).unwrap();
    let (waiting, own, other) = (locks.clone(), reader.clone(), holder.clone());
    let (looks, looked) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let reading = thread::spawn(move || {
        let all = KeyRange::all();
        let locked = keys(&all, RangeLock::NoChanges);
        waiting.lock_range(&own, locked, &LONG.into(), || {
            looks.send(()).unwrap();
            let _ = goes_on.recv();
            match other.is_active() {
                true => Ok(RangeState::ChangedBy(other.clone())),
                false => settled(),
            }
        })
    });
    // It has its range, and waits for nobody yet.
    looked.recv().unwrap();
    thread::scope(|scope| {
        let again = scope.spawn(|| lock(&LONG.into()));
        await_waiters(&locks, &[1]);
        drop(go_on);
        let locked = again.join().unwrap().unwrap();
        let expected = Locked {
            is_new: false,
            has_waited: false,
        };
        assert_eq!(locked, expected);
    });
    end(&locks, &holder);
    reading.join().unwrap().unwrap();
    end(&locks, &reader);
    assert_eq!(locks.count(), 0);
}

/// It closes a cycle after it was told to stop: the other, which has done less, is not to be the victim of that.
#[test]
fn a_wait_that_is_given_up_makes_no_other_the_victim() {
    let locks = locks();
    let (killed, other) = (transaction(1), transaction(2));
    let free = LockWait::No.into();
    for (own, key) in [(&killed, "a"), (&other, "b")] {
        locks
            .lock(own, &row(key), LockMode::Exclusive, &free)
            .unwrap();
    }
    let (done, served) = mpsc::channel();
    let other_wait = lock_later(&locks, &other, "a", LockMode::Exclusive, &done);
    await_waiters(&locks, &[2]);
    let patience = Patience {
        wait: LONG,
        work: 5,
        interrupt: Some(Arc::new(|| true)),
    };
    let result = locks.lock(&killed, &row("b"), LockMode::Exclusive, &patience);
    assert!(matches!(result, Err(StorageError::LockWaitInterrupted)));
    end(&locks, &killed);
    assert!(matches!(served.recv().unwrap(), (2, Ok(()))));
    other_wait.join().unwrap();
    end(&locks, &other);
    assert_eq!(locks.count(), 0);
}

fn lock_table(limit: usize) -> LockTable {
    let counters = TreeCounters(std::array::from_fn(|_| AtomicUsize::new(0)));
    LockTable::new(limit, Arc::new(counters))
}

/// All waits of a long queue are a part of a cycle. Were each of them searched by itself, this would take hours.
#[test]
fn the_cycles_of_a_long_queue_are_found_at_once() {
    const WAITERS: u64 = 20_000;
    for mode in [LockMode::Exclusive, LockMode::Shared] {
        let mut table = lock_table(3 * WAITERS as usize);
        let interrupt: Option<Interrupt> = Some(Arc::new(|| false));
        let mut wait_for = |id: u64, key: &str, mode| {
            let own = TransactionId(id);
            let (request, _) = table.request(own, &row(key), mode).unwrap();
            table.begin_sleep(own, &interrupt, id as usize);
            request
        };
        assert_eq!(wait_for(1, "a", LockMode::Exclusive), Request::Granted);
        let last = WAITERS + 2;
        assert_eq!(wait_for(last, "b", LockMode::Exclusive), Request::Granted);
        for id in 2..last {
            assert_eq!(wait_for(id, "a", mode), Request::Queued);
        }
        assert_eq!(wait_for(last, "a", LockMode::Exclusive), Request::Queued);
        assert_eq!(wait_for(1, "b", LockMode::Exclusive), Request::Queued);
        let started = std::time::Instant::now();
        let own = TransactionId(1);
        assert!(table.closes_cycle(own));
        let others = table.interrupts_in_cycle(own);
        assert_eq!(others.len() as u64, WAITERS + 1);
        assert!(!table.choose_other_victim(own));
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}

/// Against a search that follows every wait, in tables of locks that are made at random.
#[test]
fn searches_find_what_a_search_of_all_waits_finds() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        (state >> 33) % below
    };
    for _ in 0..2_000 {
        let mut table = lock_table(1000);
        for _ in 0..24 {
            let (id, key) = (random(8), random(4));
            let mode = match random(2) {
                0 => LockMode::Shared,
                _ => LockMode::Exclusive,
            };
            let own = TransactionId(id + 1);
            if table.waits(own) {
                continue;
            }
            table
                .request(own, &row(&key.to_string()), mode)
                .expect("there are few");
        }
        let all: Vec<_> = (1..=8).map(TransactionId).collect();
        let edges = table.all_waits();
        let reachable = |from: TransactionId| {
            let (mut found, mut ahead) = (BTreeSet::new(), vec![from]);
            while let Some(at) = ahead.pop() {
                for (_, next) in edges.iter().filter(|(waiter, _)| *waiter == at) {
                    if found.insert(*next) {
                        ahead.push(*next);
                    }
                }
            }
            found
        };
        for &from in &all {
            let found = reachable(from);
            assert_eq!(table.waited_for(from), found);
            let in_cycles = found.iter().copied();
            let in_cycles =
                in_cycles.filter(|&other| other != from && reachable(other).contains(&from));
            let closes = found.contains(&from);
            let others: BTreeSet<_> = in_cycles.filter(|_| closes).collect();
            assert_eq!(table.others_in_cycles(from), others);
            let shortest = table.shortest_cycle(from);
            assert!(shortest.iter().all(|other| others.contains(other)));
            assert_eq!(shortest.is_empty(), !closes);
        }
    }
}
