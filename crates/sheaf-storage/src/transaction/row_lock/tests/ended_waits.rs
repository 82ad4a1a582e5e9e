//! Waits that end without the lock: after their time, by an interrupt, or because they are told to.

use super::*;
use crate::sync::atomic::AtomicBool;

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
