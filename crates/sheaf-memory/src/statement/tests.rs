//! Accounts of statements, and which of them are stopped.

use super::*;
use crate::counting::count;

fn account() -> Arc<StatementMemory> {
    count();
    StatementMemory::new(Arc::default())
}

#[test]
fn what_makes_room_asks_for_none() {
    let account = account();
    account.begin();
    account.during(|| making_room(|| will_allocate(usize::MAX)));
    assert!(!makes_room() && !account.shall_stop());
    account.end();
}

#[test]
fn what_makes_room_and_panics_does_not_go_on_with_it() {
    let panicked = std::panic::catch_unwind(|| making_room(|| assert!(!makes_room())));
    assert!(panicked.is_err() && !makes_room());
}

#[test]
fn many_middling_blocks_are_as_one_long_block() {
    let account = account();
    account.during(|| {
        assert!(!is_much_together(MIDDLING_BYTES) && is_much_together(LONG_VALUE_BYTES));
        let middling = || vec![1u8; LONG_VALUE_BYTES / 2 + 1];
        let first = middling();
        assert!(!is_much_together(MIDDLING_BYTES) && is_much_together(first.len()));
        safe_point();
        assert!(!is_much_together(first.len()));
        drop(first);
        assert!(!is_much_together(MIDDLING_BYTES));
    });
}

#[test]
fn middling_values_are_safe_points() {
    let account = account();
    account.during(|| {
        let first = vec![1u8; MIDDLING_BYTES * 4];
        assert!(has_room_for_value(MIDDLING_BYTES));
        assert!(near(account.held_bytes(), first.len()), "{account:?}");
        account.stop_for_memory();
        let second = first.clone();
        assert!(has_room_for_value(MIDDLING_BYTES - 1));
        assert!(!has_room_for_value(MIDDLING_BYTES));
        drop((first, second));
    });
}

#[test]
fn one_that_shall_stop_does_not_wait_for_its_turn() {
    let (waits, killed) = (account(), account());
    let turn = await_turn(&waits);
    assert!(turn.is_some());
    killed.stop.raise_for_memory();
    assert!(await_turn(&killed).is_none());
    drop(turn);
    assert!(await_turn(&waits).is_some());
}

fn near(bytes: usize, expected: usize) -> bool {
    bytes.abs_diff(expected) < 4096
}

#[test]
fn what_a_thread_allocates_is_of_the_statement_that_it_works_for() {
    let (outer, inner) = (account(), account());
    let (mut kept, mut of_inner) = (Vec::new(), Vec::new());
    outer.during(|| {
        kept = vec![1u8; 1 << 20];
        inner.during(|| of_inner = vec![1u8; 2 << 20]);
        drop(vec![1u8; 8 << 20]);
    });
    assert!(near(outer.held_bytes(), 1 << 20), "{outer:?}");
    assert!(near(inner.held_bytes(), 2 << 20), "{inner:?}");
    assert!(current().is_none());
    inner.during(|| drop(std::mem::take(&mut of_inner)));
    assert!(near(inner.held_bytes(), 0), "{inner:?}");
    outer.begin();
    assert_eq!(outer.held_bytes(), 0);
    drop(kept);
}

#[test]
fn a_statement_s_waits_are_added_up() {
    let account = account();
    account.begin();
    assert_eq!(account.waited(), Duration::ZERO);
    let wait = || {
        account.set_waiting(true);
        // A second thread of it waits, too.
        account.set_waiting(true);
        std::thread::sleep(Duration::from_millis(2));
        account.set_waiting(false);
    };
    wait();
    let once = account.waited();
    assert!(once >= Duration::from_millis(2), "{once:?}");
    wait();
    assert!(account.waited() >= once + Duration::from_millis(2));
    account.begin();
    assert_eq!(account.waited(), Duration::ZERO);
}

#[test]
fn room_that_was_given_is_nobody_else_s_until_it_is_taken() {
    let account = account();
    account.during(|| {
        assert!(has_room_for(2 << 20));
        assert_eq!(AHEAD.get(), 2 << 20);
        let value = vec![1u8; 2 << 20];
        safe_point();
        assert_eq!(AHEAD.get(), 0);
        drop(value);
        assert!(has_room_for(3 << 20) && has_room_for(4 << 20));
        assert_eq!(AHEAD.get(), 4 << 20);
    });
    assert_eq!(AHEAD.get(), 0);
}

#[test]
fn safe_points_count_what_is_much() {
    let account = account();
    account.during(|| {
        let small = vec![1u8; 1 << 10];
        safe_point();
        assert_eq!(account.held_bytes(), 0);
        let large = vec![1u8; 1 << 20];
        safe_point();
        assert!(near(account.held_bytes(), 1 << 20), "{account:?}");
        drop((small, large));
    });
    assert!(near(account.held_bytes(), 0), "{account:?}");
}

#[test]
fn a_panic_does_not_leave_the_account_behind() {
    let account = account();
    let panicked = std::panic::catch_unwind(|| account.during(|| assert!(current().is_none())));
    assert!(panicked.is_err() && current().is_none());
}

#[test]
fn the_statement_that_holds_most_is_stopped_and_has_time_to_let_go() {
    let (much, more, idle) = (account(), account(), account());
    much.begin();
    more.begin();
    idle.begin();
    idle.end();
    let held = (
        much.during(|| vec![1u8; 20 << 20]),
        more.during(|| vec![1u8; 30 << 20]),
        idle.during(|| vec![1u8; 40 << 20]),
    );
    stop_for(1);
    stop_for(30 << 20);
    assert!(more.is_stopped() && more.shall_stop());
    assert!(!much.is_stopped() && !much.shall_stop());
    assert!(!idle.is_stopped() && !idle.shall_stop());
    // It has let go, and nobody waits for it any more.
    more.end();
    stop_for(1);
    assert!(much.is_stopped() && much.shall_stop());
    drop(held);
    assert!(more.go_on() && !more.shall_stop() && !more.is_stopped());
    assert!(!more.go_on());
    more.begin();
    assert!(!more.is_stopped());
    much.end();
    more.end();
    as_many_are_stopped_as_have_what_is_wanted();
}

/// A part of the test above: all accounts of the process are looked at.
fn as_many_are_stopped_as_have_what_is_wanted() {
    let accounts: Vec<_> = (0..4).map(|_| account()).collect();
    accounts.iter().for_each(|account| account.begin());
    let hold = |account: &Arc<StatementMemory>| account.during(|| vec![1u8; 64 << 20]);
    let held: Vec<_> = accounts.iter().map(hold).collect();
    let stopped = || accounts.iter().filter(|account| account.is_stopped());
    stop_for(65 << 20);
    assert_eq!(stopped().count(), 2);
    drop(held);
    many_that_hold_little_are_stopped_when_nothing_else_helps(&accounts);
}

fn many_that_hold_little_are_stopped_when_nothing_else_helps(accounts: &[Arc<StatementMemory>]) {
    accounts.iter().for_each(|account| account.begin());
    let hold = |account: &Arc<StatementMemory>| account.during(|| vec![1u8; 512 << 10]);
    let held: Vec<_> = accounts.iter().map(hold).collect();
    let stopped = || accounts.iter().filter(|account| account.is_stopped());
    lock(&ACCOUNTS).stopped.clear();
    stop_for(0);
    stop_for(1 << 20);
    assert_eq!(stopped().count(), 0);
    // Other tests find that the process has room, so that the time begins again.
    for _ in 0..100 {
        std::thread::sleep(LASTING);
        stop_for(1 << 20);
        if stopped().count() > 0 {
            break;
        }
    }
    assert_eq!(stopped().count(), 2);
    drop(held);
}
