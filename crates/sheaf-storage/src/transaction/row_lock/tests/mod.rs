//! Locks of rows: which stand side by side, in which order waits are served, and which wait is the victim of a
//! deadlock.

mod ended_waits;
mod ranges;

use std::sync::mpsc;
use std::thread;

use super::*;
use crate::page::Lsn;
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
