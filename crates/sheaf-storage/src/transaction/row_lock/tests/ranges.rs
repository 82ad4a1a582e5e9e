//! Ranges: what they keep out, what they wait for, and when many become one.

use std::ops::Bound;

use super::*;

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
