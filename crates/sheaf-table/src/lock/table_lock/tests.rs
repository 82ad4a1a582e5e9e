//! Sessions that wait for a lock of a table, and sessions that let them pass.

use super::*;

const NO_WAIT: LockRequest<'static> = request(0, Duration::ZERO);
const LONG: LockRequest<'static> = request(0, Duration::from_secs(60));

const fn request(session: u64, wait: Duration) -> LockRequest<'static> {
    LockRequest {
        wait,
        session,
        is_first: false,
        waited: Duration::ZERO,
        interrupt: None,
        definition_change: None,
    }
}

#[test]
fn readers_share_and_keep_ddl_out() {
    let lock = Arc::new(TableLock::default());
    let first = lock.shared(NO_WAIT).unwrap();
    let second = lock.shared(NO_WAIT).unwrap();
    let writer = lock.writer(NO_WAIT).unwrap();
    assert!(matches!(
        writer.exclusive(NO_WAIT),
        Err(TableError::LockWaitTimeout)
    ));
    drop((first, second));
    let exclusive = writer.exclusive(NO_WAIT).unwrap();
    assert!(lock.shared(NO_WAIT).is_err());
    drop(exclusive);
    assert!(lock.shared(NO_WAIT).is_ok());
}

#[test]
fn who_looks_for_a_moment_without_readers_keeps_none_out() {
    let lock = Arc::new(TableLock::default());
    let row_writer = lock.row_writer(NO_WAIT).unwrap();
    let reader = lock.shared(NO_WAIT).unwrap();
    let writer = lock.writer_beside_rows(request(7, LONG.wait)).unwrap();
    assert!(writer.try_exclusive().is_none());
    assert!(!lock.awaits(7, true));
    assert!(lock.shared(NO_WAIT).is_ok());
    drop((row_writer, reader));
    let others = lock.for_session(SessionLockMode::Read, 8, Duration::ZERO);
    assert!(others.is_ok() && writer.try_exclusive().is_none());
    drop(others);
    let exclusive = writer.try_exclusive().unwrap();
    assert!(lock.shared(NO_WAIT).is_err() && writer.try_exclusive().is_none());
    drop(exclusive);
    assert!(lock.shared(NO_WAIT).is_ok());
}

#[test]
fn there_is_one_writer() {
    let lock = Arc::new(TableLock::default());
    let writer = lock.writer(NO_WAIT).unwrap();
    assert!(lock.writer(NO_WAIT).is_err());
    drop(writer);
    assert!(lock.writer(NO_WAIT).is_ok());
}

#[test]
fn writers_of_rows_share_and_keep_the_writer_out() {
    let lock = Arc::new(TableLock::default());
    let first = lock.row_writer(NO_WAIT).unwrap();
    let second = lock.row_writer(NO_WAIT).unwrap();
    let reader = lock.shared(NO_WAIT).unwrap();
    assert!(lock.writer(NO_WAIT).is_err());
    drop((first, second));
    let writer = lock.writer(NO_WAIT).unwrap();
    assert!(lock.row_writer(NO_WAIT).is_err());
    drop(reader);
    let exclusive = writer.exclusive(NO_WAIT).unwrap();
    assert!(lock.row_writer(NO_WAIT).is_err());
    drop(exclusive);
    drop(writer);
    assert!(lock.row_writer(NO_WAIT).is_ok());
}

/// Readers come and go all the time; a session that changes the definition finds a moment without them, and they
/// find none with it.
#[test]
fn nobody_reads_while_a_definition_changes() {
    let lock = Arc::new(TableLock::default());
    let (changing, done) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let guard = lock.borrow_shared(LONG).unwrap();
                    assert!(!changing.load(Ordering::SeqCst));
                    drop(guard);
                    std::thread::yield_now();
                }
            });
        }
        for _ in 0..200 {
            let writer = lock.writer(LONG).unwrap();
            let exclusive = writer.exclusive(LONG).unwrap();
            changing.store(true, Ordering::SeqCst);
            std::thread::yield_now();
            changing.store(false, Ordering::SeqCst);
            drop(exclusive);
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_waiter_goes_on_when_the_lock_is_given_back() {
    let lock = Arc::new(TableLock::default());
    let reader = lock.shared(NO_WAIT).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let writer = lock.writer(LONG).unwrap();
            writer.exclusive(LONG).is_ok()
        });
        drop(reader);
        assert!(waiting.join().unwrap());
    });
}

#[test]
fn a_change_of_the_definition_says_what_it_waits_for() {
    let lock = Arc::new(TableLock::default());
    let reader = lock.shared(NO_WAIT).unwrap();
    assert_eq!(lock.writer_session(), None);
    let writer = lock.writer(request(7, Duration::ZERO)).unwrap();
    assert_eq!(lock.writer_session(), Some(7));
    assert!(!lock.awaits(7, true));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| writer.exclusive(LONG).is_ok());
        while !lock.awaits(7, false) {
            std::thread::yield_now();
        }
        drop(reader);
        assert!(waiting.join().unwrap());
    });
    assert!(!lock.awaits(7, true));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| lock.writer(request(8, LONG.wait)).is_ok());
        while !lock.awaits(8, true) {
            std::thread::yield_now();
        }
        // Readers do not conflict with it.
        assert!(!lock.awaits(8, false));
        drop(writer);
        assert!(waiting.join().unwrap());
    });
    assert_eq!(lock.writer_session(), None);
}

#[test]
fn a_look_waits_for_changes_of_the_definition_alone() {
    let lock = Arc::new(TableLock::default());
    let write = |wait| lock.for_session(SessionLockMode::Write, 1, wait);
    let looking = lock.look(Duration::ZERO).unwrap();
    assert!(write(Duration::ZERO).is_err());
    drop(looking);
    let locked = write(Duration::ZERO).unwrap();
    assert!(lock.shared(NO_WAIT).is_err() && lock.look(Duration::ZERO).is_ok());
    drop(locked);
    let writer = lock.writer(NO_WAIT).unwrap();
    assert!(lock.look(Duration::ZERO).is_ok());
    let exclusive = writer.exclusive(NO_WAIT).unwrap();
    assert!(lock.look(Duration::ZERO).is_err());
    drop(exclusive);
    assert!(lock.look(Duration::ZERO).is_ok());
}

#[test]
fn a_session_that_reads_keeps_all_writers_out() {
    let lock = Arc::new(TableLock::default());
    let read = |session| lock.for_session(SessionLockMode::Read, session, Duration::ZERO);
    let row_writer = lock.row_writer(NO_WAIT).unwrap();
    assert!(read(1).is_err());
    drop(row_writer);
    let (first, second) = (read(1).unwrap(), read(2).unwrap());
    assert!(lock.shared(NO_WAIT).is_ok());
    assert!(lock.row_writer(request(3, Duration::ZERO)).is_err());
    assert!(lock.writer(request(1, Duration::ZERO)).is_err());
    // A foreign key has led there.
    assert!(lock.row_writer(request(1, Duration::ZERO)).is_ok());
    drop(second);
    assert!(lock.writer(request(1, Duration::ZERO)).is_ok());
    drop(first);
    assert!(lock.writer(NO_WAIT).is_ok());
}

#[test]
fn a_session_that_is_announced_for_long_is_let_pass_for_long() {
    let lock = Arc::new(TableLock::default());
    let waited = |seconds| LockRequest {
        is_first: true,
        waited: Duration::from_secs(seconds),
        ..NO_WAIT
    };
    let change = DefinitionChange::default();
    let attempt = LockRequest {
        definition_change: Some(&change),
        ..request(7, Duration::ZERO)
    };
    let reader = lock.shared(NO_WAIT).unwrap();
    assert!(lock.writer(attempt).unwrap().exclusive(attempt).is_err());
    for (announced_for, lets_pass, passes) in [(0, 1, 2), (20, 9, 11), (1_000, 59, 60)] {
        let since = Instant::now().checked_sub(Duration::from_secs(announced_for));
        lock.state.lock().let_pass_since = since;
        assert!(lock.shared(waited(lets_pass)).is_err());
        assert!(lock.row_writer(waited(lets_pass)).is_err());
        assert!(lock.shared(waited(passes)).is_ok());
        assert!(lock.row_writer(waited(passes)).is_ok());
    }
    drop((change, reader));
    assert!(lock.shared(waited(0)).is_ok() && lock.row_writer(waited(0)).is_ok());
    assert!(lock.state.lock().let_pass_since.is_none());
    drop(lock.announce(SessionLockMode::Read));
    assert!(lock.state.lock().let_pass_since.is_none());
}

/// Sessions that lock the table for READ in turn, so that one of them always has it, would keep others from writing
/// it for ever.
#[test]
fn a_session_that_is_to_read_lets_those_pass_that_wait_to_write_or_to_change() {
    let lock = Arc::new(TableLock::default());
    let read = |session| lock.for_session(SessionLockMode::Read, session, Duration::ZERO);
    let first = read(1).unwrap();
    let announced = lock.announce(SessionLockMode::Read);
    assert!(read(2).is_ok());
    drop(announced);
    let announced = lock.announce(SessionLockMode::Write);
    assert!(read(2).is_err());
    drop(announced);
    assert!(read(2).is_ok());
    let change = DefinitionChange::default();
    let attempt = LockRequest {
        definition_change: Some(&change),
        ..request(7, Duration::ZERO)
    };
    assert!(lock.writer(attempt).is_err());
    assert!(read(2).is_err() && read(7).is_ok());
    drop(first);
    assert!(lock.writer(attempt).is_ok());
    drop(change);
    assert!(read(2).is_ok());
}

#[test]
fn a_session_that_writes_keeps_everybody_else_out() {
    let lock = Arc::new(TableLock::default());
    let write = |session| lock.for_session(SessionLockMode::Write, session, Duration::ZERO);
    let reader = lock.shared(NO_WAIT).unwrap();
    assert!(write(1).is_err());
    drop(reader);
    let locked = write(1).unwrap();
    assert!(write(2).is_err() && lock.is_locked_by_session());
    let (own, others) = (request(1, Duration::ZERO), request(2, Duration::ZERO));
    assert!(lock.shared(others).is_err() && lock.row_writer(others).is_err());
    assert!(lock.shared(own).is_ok() && lock.row_writer(own).is_ok());
    let writer = lock.writer(own).unwrap();
    drop(writer.exclusive(own).unwrap());
    drop(writer);
    assert!(lock.shared(others).is_err());
    drop(locked);
    assert!(lock.shared(others).is_ok() && lock.row_writer(others).is_ok());
}

#[test]
fn a_session_that_holds_nothing_lets_those_pass_that_wait_for_a_session() {
    let lock = Arc::new(TableLock::default());
    let announced = lock.announce(SessionLockMode::Read);
    let first = LockRequest {
        is_first: true,
        ..NO_WAIT
    };
    assert!(lock.shared(first).is_ok() && lock.row_writer(first).is_err());
    assert!(lock.row_writer(NO_WAIT).is_ok());
    drop(announced);
    let announced = lock.announce(SessionLockMode::Write);
    assert!(lock.shared(first).is_err() && lock.shared(NO_WAIT).is_ok());
    drop(announced);
    assert!(lock.shared(first).is_ok() && lock.row_writer(first).is_ok());
}

/// Sessions that use the table in turn, so that it is never free, would keep its definition as it is for ever.
#[test]
fn a_session_that_holds_nothing_lets_those_pass_that_change_the_definition() {
    let lock = Arc::new(TableLock::default());
    let first = LockRequest {
        is_first: true,
        ..NO_WAIT
    };
    let own = request(7, LONG.wait);
    let row_writer = lock.row_writer(first).unwrap();
    let reader = lock.shared(first).unwrap();
    std::thread::scope(|scope| {
        let changing = scope.spawn(|| {
            let own = request(7, LONG.wait);
            let writer = lock.writer(own).unwrap();
            writer.exclusive(own).map(drop)
        });
        while !lock.awaits(7, true) {
            std::thread::yield_now();
        }
        assert!(lock.row_writer(first).is_err() && lock.row_writer(NO_WAIT).is_ok());
        assert!(lock.shared(first).is_ok());
        drop(row_writer);
        while !lock.awaits(7, false) {
            std::thread::yield_now();
        }
        assert!(lock.shared(first).is_err() && lock.shared(NO_WAIT).is_ok());
        // It goes on when the change is over.
        let waiting = scope.spawn(|| {
            let patient = LockRequest {
                is_first: true,
                ..LONG
            };
            lock.shared(patient).is_ok()
        });
        drop(reader);
        changing.join().unwrap().unwrap();
        assert!(waiting.join().unwrap());
    });
    // A session that has stopped waiting is let pass no more.
    let reader = lock.shared(first).unwrap();
    let writer = lock.writer(own).unwrap();
    let gives_up = request(7, Duration::from_millis(1));
    assert!(writer.exclusive(gives_up).is_err());
    assert!(lock.shared(first).is_ok() && !lock.closed.load(Ordering::SeqCst));
    drop((reader, writer));
    assert!(lock.row_writer(first).is_ok());
}

/// Between two attempts no statement enters that let it pass during the first one.
#[test]
fn a_change_of_the_definition_stays_announced_between_attempts() {
    let lock = Arc::new(TableLock::default());
    let first = LockRequest {
        is_first: true,
        ..NO_WAIT
    };
    let change = DefinitionChange::default();
    let attempt = LockRequest {
        definition_change: Some(&change),
        ..request(7, Duration::from_millis(1))
    };
    let row_writer = lock.row_writer(first).unwrap();
    assert!(lock.writer(attempt).is_err());
    assert!(lock.row_writer(first).is_err() && lock.row_writer(NO_WAIT).is_ok());
    assert!(lock.shared(first).is_ok());
    drop(row_writer);
    let reader = lock.shared(first).unwrap();
    for _ in 0..2 {
        let writer = lock.writer(attempt).unwrap();
        assert!(writer.exclusive(attempt).is_err());
    }
    assert!(lock.shared(first).is_err() && lock.shared(NO_WAIT).is_ok());
    assert_eq!(lock.state.lock().definers.len(), 2);
    drop(reader);
    drop(lock.writer(attempt).unwrap().exclusive(attempt).unwrap());
    assert!(lock.shared(first).is_err());
    drop(change);
    assert!(lock.shared(first).is_ok() && lock.row_writer(first).is_ok());
    assert!(!lock.closed.load(Ordering::SeqCst));
}

#[test]
fn a_wait_for_one_of_several_tables_lets_others_read_the_rest() {
    let locks = [(); 2].map(|()| Arc::new(TableLock::default()));
    let reader = locks[1].shared(NO_WAIT).unwrap();
    std::thread::scope(|scope| {
        let changing = scope.spawn(|| {
            let own = request(7, LONG.wait);
            let writers = [0, 1].map(|lock: usize| locks[lock].writer(own).unwrap());
            let exclusive = WriterLock::exclusive_of_all(&[&writers[0], &writers[1]], own)?;
            let others_wait = locks.iter().all(|lock| lock.shared(NO_WAIT).is_err());
            drop(exclusive);
            Ok::<bool, TableError>(others_wait)
        });
        while !locks[1].awaits(7, false) {
            std::thread::yield_now();
        }
        // It is exclusive on the first table for a moment at most.
        let short = request(0, Duration::from_secs(5));
        let first = LockRequest {
            is_first: true,
            ..short
        };
        drop(locks[0].shared(first).unwrap());
        assert!(locks[1].shared(NO_WAIT).is_ok());
        drop(reader);
        assert!(changing.join().unwrap().unwrap());
    });
    for lock in &locks {
        assert!(lock.state.lock().definers.is_empty() && !lock.closed.load(Ordering::SeqCst));
    }
    let reader = locks[1].shared(NO_WAIT).unwrap();
    let own = request(7, Duration::from_millis(1));
    let writers = [0, 1].map(|lock: usize| locks[lock].writer(own).unwrap());
    let exclusive = WriterLock::exclusive_of_all(&[&writers[0], &writers[1]], own);
    assert!(matches!(exclusive, Err(TableError::LockWaitTimeout)));
    assert!(locks[0].shared(NO_WAIT).is_ok());
    drop(reader);
}

#[test]
fn a_wait_can_be_interrupted() {
    let lock = Arc::new(TableLock::default());
    let reader = lock.shared(NO_WAIT).unwrap();
    let began = Instant::now();
    let is_killed = || began.elapsed() > Duration::from_millis(100);
    let own = LockRequest {
        interrupt: Some(&is_killed),
        ..request(7, LONG.wait)
    };
    let writer = lock.writer(own).unwrap();
    let exclusive = writer.exclusive(own).map(drop);
    assert!(matches!(exclusive, Err(TableError::Interrupted)));
    assert!(lock.writer(own).is_err() && !lock.awaits(7, true));
    drop(writer);
    assert!(lock.writer(own).is_ok());
    drop(reader);
}

#[test]
fn a_writer_beside_rows_admits_those_who_change_rows_and_no_other_writer() {
    let lock = Arc::new(TableLock::default());
    let before = lock.row_writer(NO_WAIT).unwrap();
    let writer = lock.writer_beside_rows(NO_WAIT).unwrap();
    let during = lock.row_writer(NO_WAIT).unwrap();
    assert!(lock.writer(NO_WAIT).is_err() && lock.writer_beside_rows(NO_WAIT).is_err());
    let reader = lock.shared(NO_WAIT).unwrap();
    assert!(writer.exclusive(NO_WAIT).is_err());
    drop(reader);
    // They change nothing before they have the shared lock.
    let exclusive = writer.exclusive(NO_WAIT).unwrap();
    assert!(lock.row_writer(NO_WAIT).is_err() && lock.shared(NO_WAIT).is_err());
    drop(exclusive);
    drop(writer);
    assert!(lock.writer(NO_WAIT).is_err());
    drop((before, during));
    let writer = lock.writer(NO_WAIT).unwrap();
    assert!(lock.writer_beside_rows(NO_WAIT).is_err() && lock.row_writer(NO_WAIT).is_err());
    drop(writer);
    assert!(lock.row_writer(NO_WAIT).is_ok());
}

#[test]
fn those_who_change_rows_are_marked_and_have_gone() {
    let lock = Arc::new(TableLock::default());
    let first = lock.row_writer(NO_WAIT).unwrap();
    let writer = lock.writer_beside_rows(NO_WAIT).unwrap();
    assert!(writer.marked_have_gone() && writer.mark_row_writers());
    let second = lock.row_writer(NO_WAIT).unwrap();
    assert!(!writer.marked_have_gone() && !writer.mark_row_writers());
    assert!(writer.wait_for_marked(NO_WAIT).is_err());
    drop(first);
    // The second came after the mark.
    writer.wait_for_marked(NO_WAIT).unwrap();
    assert!(writer.marked_have_gone() && writer.mark_row_writers());
    drop(writer);
    // A mark outlives its writer.
    let writer = lock.writer_beside_rows(NO_WAIT).unwrap();
    assert!(!writer.marked_have_gone() && !writer.mark_row_writers());
    drop(second);
    assert!(writer.marked_have_gone() && writer.mark_row_writers());
}

#[test]
fn rows_are_changed_beside_a_build_though_others_wait_to_be_writer() {
    let lock = Arc::new(TableLock::default());
    let first = |session| LockRequest {
        is_first: true,
        ..request(session, Duration::ZERO)
    };
    let builder = lock.writer_beside_rows(request(1, Duration::ZERO)).unwrap();
    let change = DefinitionChange::default();
    let other = LockRequest {
        definition_change: Some(&change),
        ..request(2, Duration::ZERO)
    };
    assert!(lock.writer(other).is_err());
    assert!(lock.row_writer(first(3)).is_ok() && lock.shared(first(3)).is_ok());
    // The builder's own turn is one that they let pass.
    let reader = lock.shared(NO_WAIT).unwrap();
    let own = DefinitionChange::default();
    let turn = LockRequest {
        definition_change: Some(&own),
        ..request(1, Duration::ZERO)
    };
    assert!(builder.exclusive(turn).is_err());
    assert!(lock.row_writer(first(3)).is_err() && lock.shared(first(3)).is_err());
    drop((own, reader));
    assert!(lock.row_writer(first(3)).is_ok());
    drop(builder);
    // Now the other one may come to its turn.
    assert!(lock.row_writer(first(3)).is_err());
}

#[test]
fn lock_tables_comes_beside_a_build_and_goes_before_its_end() {
    for mode in [SessionLockMode::Read, SessionLockMode::Write] {
        let lock = Arc::new(TableLock::default());
        let builder = lock.writer_beside_rows(request(1, Duration::ZERO)).unwrap();
        let locked = lock.for_session(mode, 2, Duration::ZERO).unwrap();
        assert!(builder.exclusive(request(1, Duration::ZERO)).is_err());
        assert!(lock.row_writer(request(3, Duration::ZERO)).is_err());
        assert!(lock.row_writer(request(2, Duration::ZERO)).is_ok());
        drop(locked);
        assert!(builder.exclusive(request(1, Duration::ZERO)).is_ok());
    }
}

#[test]
fn a_session_that_has_locked_a_table_does_not_wait_for_its_build() {
    let lock = Arc::new(TableLock::default());
    let _builder = lock.writer_beside_rows(request(1, Duration::ZERO)).unwrap();
    let _locked = lock
        .for_session(SessionLockMode::Write, 2, Duration::ZERO)
        .unwrap();
    let refused = lock.writer(request(2, Duration::from_secs(3600)));
    assert!(matches!(
        refused,
        Err(TableError::Storage(StorageError::Deadlock))
    ));
}
