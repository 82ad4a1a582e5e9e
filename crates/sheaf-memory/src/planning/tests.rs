//! Statements that ask for memory, wait for it, and give it back.

use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;
use crate::counting::count;
use crate::{StopFlag, waits_for_lock};

const LIMIT: usize = 64 << 20;
const MIB: usize = 1 << 20;

/// Waits as long as it takes, or until it shall stop.
#[derive(Clone, Default)]
struct Patient(Arc<AtomicBool>);

impl Waiter for Patient {
    fn shall_stop(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn most(&self) -> Duration {
        Duration::from_secs(3600)
    }

    fn wait(&self, wait: &mut dyn FnMut()) {
        wait();
    }
}

fn statement(all: &Arc<PlanningMemory>) -> (Arc<PlanningShare>, Patient) {
    count();
    let patient = Patient::default();
    let memory = StatementMemory::new(Arc::new(StopFlag::default()));
    let share = PlanningShare::new(all, &memory, Box::new(patient.clone()));
    (share, patient)
}

fn admit(share: &PlanningShare, bytes: usize) -> bool {
    share.admit(bytes, false, || ())
}

fn await_waiting(all: &PlanningMemory, waiting: usize) {
    while all.waiting() != waiting {
        thread::yield_now();
    }
}

#[test]
fn large_statements_wait_in_turn_and_small_ones_do_not() {
    let all = PlanningMemory::new(LIMIT);
    let (first, _) = statement(&all);
    assert!(admit(&first, 40 * MIB));
    thread::scope(|scope| {
        let (second, third) = (statement(&all).0, statement(&all).0);
        let (two, three) = (Arc::clone(&second), Arc::clone(&third));
        let two = scope.spawn(move || admit(&two, 1000 * MIB));
        await_waiting(&all, 1);
        // It would fit, but does not pass the other.
        let three = scope.spawn(move || admit(&three, 5 * MIB));
        await_waiting(&all, 2);
        let small = [statement(&all).0, statement(&all).0];
        assert!(small.iter().all(|small| admit(small, 4 * MIB)));
        assert!(admit(&statement(&all).0, FREE_BYTES));
        first.end();
        assert!(two.join().expect("no panic"));
        assert_eq!(all.taken_bytes(), 64 * MIB);
        await_waiting(&all, 1);
        second.end();
        assert!(three.join().expect("no panic"));
        third.end();
    });
    assert_eq!((all.taken_bytes(), all.waiting()), (0, 0));
}

#[test]
fn what_is_measured_is_asked_for_and_the_first_waits_for_nobody() {
    let all = PlanningMemory::new(LIMIT);
    let ((first, _), (second, _)) = (statement(&all), statement(&all));
    assert!(admit(&first, 6 * MIB) && admit(&second, 6 * MIB));
    let mut plan = Vec::new();
    first.during(|| {
        assert!(has_share_for(40 * MIB));
        thread::scope(|scope| {
            let other = scope.spawn(|| second.during(|| has_share_for(30 * MIB)));
            await_waiting(&all, 1);
            // More than there is.
            assert!(has_share_for(100 * MIB) && all.taken_bytes() > LIMIT);
            plan = vec![1u8; 10 * MIB];
            assert!(has_share_for(0));
            assert!(!other.is_finished());
            first.end();
            assert!(other.join().expect("no panic"));
        });
    });
    second.end();
    assert_eq!(all.taken_bytes(), 0);
    drop(plan);
}

#[test]
fn a_plan_keeps_what_it_takes() {
    let all = PlanningMemory::new(LIMIT);
    let (share, _) = statement(&all);
    assert!(admit(&share, 30 * MIB));
    let plan = share.during(|| share.during(|| vec![1u8; 8 * MIB]));
    assert_eq!(all.taken_bytes(), 30 * MIB);
    share.pause();
    assert!(all.taken_bytes().abs_diff(8 * MIB) < 4096, "{share:?}");
    // It runs, and is planned again.
    let more = share.during(|| {
        share.pause();
        assert!(has_share_for(0) && has_share_for(MIB));
        vec![1u8; 2 * MIB]
    });
    share.pause();
    assert!(all.taken_bytes().abs_diff(10 * MIB) < 4096, "{share:?}");
    share.during(|| drop((plan, more)));
    share.pause();
    assert_eq!((all.taken_bytes(), share.has_share()), (0, false));
}

#[test]
fn plans_that_are_gone_do_not_count() {
    let all = PlanningMemory::new(LIMIT);
    let (share, _) = statement(&all);
    assert!(admit(&share, 2 * MIB));
    let tree = share.during(|| vec![1u8; MIB]);
    for _ in 0..40 {
        let mut bytes = share.begin_plan();
        let bound = share.during(|| vec![1u8; MIB]);
        let plan = share.during(|| {
            drop(bound);
            vec![1u8; 2 * MIB]
        });
        bytes.is_made();
        share.pause();
        assert!(all.taken_bytes().abs_diff(3 * MIB) < 4096, "{share:?}");
        drop(plan);
    }
    // One that could not be made, beside another that goes in a phase.
    let mut first = share.begin_plan();
    let plan = share.during(|| vec![1u8; 2 * MIB]);
    first.is_made();
    let second = share.begin_plan();
    share.during(|| drop(vec![share.during(|| vec![1u8; MIB])]));
    drop(share.during(|| vec![1u8; MIB]));
    drop(second);
    share.during(|| drop((first, plan)));
    share.pause();
    assert!(all.taken_bytes().abs_diff(MIB) < 4096, "{share:?}");
    drop((share, tree));
    assert_eq!(all.taken_bytes(), 0);
}

#[test]
fn what_is_made_aside_does_not_count() {
    let all = PlanningMemory::new(LIMIT);
    let (share, _) = statement(&all);
    let (rows, plan) = share.during(|| {
        let rows = aside(|| {
            let rows = vec![1u8; 8 * MIB];
            assert!(has_share_for(8 * MIB));
            rows
        });
        assert_eq!(all.taken_bytes(), 0);
        let plan = vec![1u8; 2 * MIB];
        assert!(has_share_for(0));
        (rows, plan)
    });
    share.pause();
    assert!(all.taken_bytes().abs_diff(2 * MIB) < 4096, "{share:?}");
    drop((rows, plan));
    // A wait for a lock gives back what is not used so far.
    assert!(share.admit(8 * MIB, false, || ()));
    let plan = share.during(|| {
        let plan = vec![1u8; 4 * MIB];
        aside(|| share.pause());
        let taken = all.taken_bytes();
        assert!((4 * MIB..7 * MIB).contains(&taken), "{share:?}");
        assert!(has_share_for(4 * MIB) && all.taken_bytes() >= 8 * MIB);
        plan
    });
    drop((share, plan));
}

#[test]
fn small_statements_take_no_share() {
    let all = PlanningMemory::new(LIMIT);
    let (share, _) = statement(&all);
    let plan = share.during(|| {
        let plan = vec![1u8; FREE_BYTES / 2];
        assert!(has_share_for(FREE_BYTES / 3));
        plan
    });
    assert_eq!(all.taken_bytes(), 0);
    // What was made before counts, too.
    share.during(|| assert!(has_share_for(FREE_BYTES)));
    assert!(all.taken_bytes() > FREE_BYTES);
    drop((plan, share));
    assert_eq!(all.taken_bytes(), 0);
}

#[test]
fn waits_end_when_they_shall_and_when_nothing_moves() {
    let all = PlanningMemory::new(LIMIT);
    let (first, _) = statement(&all);
    assert!(admit(&first, 50 * MIB));
    let ((killed, patient), (holder, _)) = (statement(&all), statement(&all));
    let is_told = AtomicBool::new(false);
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let told = || is_told.store(true, Ordering::Relaxed);
            killed.admit(20 * MIB, false, told)
        });
        await_waiting(&all, 1);
        assert!(killed.memory.is_waiting() && is_told.load(Ordering::Relaxed));
        patient.0.store(true, Ordering::Relaxed);
        assert!(!waits.join().expect("no panic"));
    });
    // Others may wait for its locks.
    assert!(!holder.admit(20 * MIB, true, || ()));
    holder.end();
    // Only a plan that runs is in its way, and the process has room.
    let plan = first.during(|| vec![1u8; 40 * MIB]);
    first.pause();
    assert!(holder.admit(30 * MIB, true, || ()));
    drop((first, holder, plan));
    assert_eq!((all.taken_bytes(), all.waiting()), (0, 0));
}

/// What `work` returns on a thread of its own, while this one goes on.
fn spawned<'s, T: Send + 's>(
    scope: &'s thread::Scope<'s, '_>,
    work: impl FnOnce() -> T + Send + 's,
) -> thread::ScopedJoinHandle<'s, T> {
    scope.spawn(work)
}

#[test]
fn what_waits_for_a_lock_is_in_nobodys_way() {
    let all = PlanningMemory::new(LIMIT);
    let (first, _) = statement(&all);
    assert!(admit(&first, 50 * MIB));
    let tree = first.during(|| vec![1u8; MIB]);
    let second = statement(&all).0;
    thread::scope(|scope| {
        let waits = spawned(scope, || second.admit(40 * MIB, true, || ()));
        await_waiting(&all, 1);
        first.pause();
        assert!(waits.join().expect("no panic"));
        // It has its lock, and the other one asked later.
        let goes_on = first.during(|| has_share_for(50 * MIB));
        assert!(goes_on && all.taken_bytes() > LIMIT);
    });
    drop((first, second, tree));
    assert_eq!(all.taken_bytes(), 0);
}

/// The wait for a lock finds the statement's share by itself.
#[test]
fn a_thread_that_waits_for_a_lock_gives_way() {
    let all = PlanningMemory::new(LIMIT);
    let (share, _) = statement(&all);
    assert!(admit(&share, 30 * MIB));
    let tree = share.during(|| vec![1u8; MIB]);
    waits_for_lock();
    assert_eq!(all.taken_bytes(), 30 * MIB);
    share.memory.during(waits_for_lock);
    assert!(all.taken_bytes().abs_diff(MIB) < 4096, "{share:?}");
    drop((share, tree));
}

#[test]
fn what_asks_later_does_not_pass_what_waits_to_begin() {
    let all = PlanningMemory::new(LIMIT);
    let (first, _) = statement(&all);
    assert!(admit(&first, 50 * MIB));
    let plan = first.during(|| vec![1u8; 40 * MIB]);
    let second = statement(&all).0;
    thread::scope(|scope| {
        let waits = spawned(scope, || admit(&second, 40 * MIB));
        await_waiting(&all, 1);
        // It has nothing yet, and nobody is planned but the first.
        let later = spawned(scope, || {
            let newcomer = statement(&all).0;
            newcomer.during(|| has_share_for(40 * MIB))
        });
        await_waiting(&all, 2);
        first.pause();
        assert!(waits.join().expect("no panic"));
        assert!(!later.is_finished() && all.waiting() == 1);
        second.end();
        assert!(later.join().expect("no panic"));
    });
    drop((first, second, plan));
    assert_eq!((all.taken_bytes(), all.waiting()), (0, 0));
}

/// What runs may wait for its locks.
#[test]
fn what_asks_later_passes_what_waits_for_running_statements_one_at_a_time() {
    let all = PlanningMemory::new(LIMIT);
    let [first, queued, one, other] = [0; 4].map(|_| statement(&all).0);
    assert!(admit(&first, 50 * MIB));
    let plan = first.during(|| vec![1u8; 50 * MIB]);
    let begins = Asks::ToBegin { holds_locks: false };
    assert!(queued.ask(40 * MIB, begins).is_some());
    let newcomers = [&one, &other];
    assert!(newcomers.map(|new| new.ask(20 * MIB, Asks::ForMore).is_some()) == [true; 2]);
    let returns = || Some(lock(&all.state).returns[Size::Large as usize]);
    let before = returns();
    assert!(!one.pass(before), "the first is planned");
    first.pause();
    assert!(one.pass(before) && !other.pass(before));
    one.pause();
    assert!(other.pass(returns()));
    drop((first, plan, queued, one, other));
    assert_eq!(all.taken_bytes(), 0);
}

#[test]
fn small_statements_leave_large_ones_their_turn() {
    let all = PlanningMemory::new(LIMIT);
    let (first, second) = (statement(&all).0, statement(&all).0);
    assert!(admit(&first, 30 * MIB));
    let small: Vec<_> = (0..4).map(|_| statement(&all).0).collect();
    thread::scope(|scope| {
        let waits = spawned(scope, || admit(&second, 50 * MIB));
        await_waiting(&all, 1);
        assert!(small[..2].iter().all(|small| admit(small, 4 * MIB)));
        // It would fit into what the large one waits for.
        let later = spawned(scope, || admit(&small[2], 4 * MIB));
        await_waiting(&all, 2);
        // A statement that has nothing yet does not pass it, either.
        let grows = spawned(scope, || {
            let newcomer = statement(&all).0;
            newcomer.during(|| has_share_for(10 * MIB));
        });
        await_waiting(&all, 3);
        first.end();
        assert!(waits.join().expect("no panic"));
        second.end();
        grows.join().expect("no panic");
        assert!(later.join().expect("no panic"));
    });
    drop((first, second, small));
    assert_eq!((all.taken_bytes(), all.waiting()), (0, 0));
}

#[test]
fn any_number_may_wait_and_each_has_its_turn() {
    let all = PlanningMemory::new(LIMIT);
    let (first, _) = statement(&all);
    assert!(admit(&first, 50 * MIB));
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..300)
            .map(|_| {
                spawned(scope, || {
                    let share = statement(&all).0;
                    admit(&share, 50 * MIB)
                })
            })
            .collect();
        await_waiting(&all, 300);
        first.end();
        let answered = waiting.into_iter().map(|one| one.join());
        assert!(answered.into_iter().all(|one| one.expect("no panic")));
    });
    assert_eq!((all.taken_bytes(), all.waiting()), (0, 0));
}

#[test]
fn a_statement_that_is_stopped_while_it_is_planned_says_so() {
    let all = PlanningMemory::new(LIMIT);
    let (share, _) = statement(&all);
    share.memory.begin();
    share.during(|| ());
    assert_eq!(share.memory.largest_consumer(), None);
    share.during(|| share.memory.stop_for_memory());
    assert_eq!(share.memory.largest_consumer().as_deref(), Some(PLANNING));
    // An operator that has said what it takes is nearer to the cause.
    share.memory.begin();
    share.memory.set_largest_consumer("sort");
    share.during(|| share.memory.stop_for_memory());
    assert_eq!(share.memory.largest_consumer().as_deref(), Some("sort"));
}
