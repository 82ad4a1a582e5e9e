//! Statements and operators that share query memory: how much each gets, and which of them wait.

use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::joins::NestedLoopJoinExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use std::thread;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::JoinType;
use datafusion_execution::TaskContext;
use datafusion_execution::runtime_env::RuntimeEnv;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::collect;
use sheaf_memory::StopFlag;

use super::*;
use crate::operator::values_exec::ValuesExec;

/// So large that several statements may be big.
const UNIT: usize = 64 << 10;

fn all(units: usize) -> Arc<QueryMemory> {
    let all = QueryMemory::new(units * UNIT);
    all.set_wait_timeout(Duration::from_millis(100));
    Arc::new(all)
}

fn statement(all: &Arc<QueryMemory>) -> Arc<dyn MemoryPool> {
    let memory = StatementMemory::new(Arc::default());
    Arc::new(OfStatement(Arc::new(StatementPool::new(
        Arc::clone(all),
        memory,
    ))))
}

fn spilling(pool: &Arc<dyn MemoryPool>, name: &str) -> MemoryReservation {
    MemoryConsumer::new(name)
        .with_can_spill(true)
        .register(pool)
}

fn held(pool: &Arc<dyn MemoryPool>) -> MemoryReservation {
    MemoryConsumer::new("held").register(pool)
}

/// Notes the names of all consumers.
#[derive(Debug, Default)]
struct Names(Mutex<Vec<String>>);

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())
    }
}

impl MemoryPool for Names {
    fn name(&self) -> &str {
        "names"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        lock(&self.0).push(consumer.name().to_string());
    }

    fn grow(&self, _: &MemoryReservation, _: usize) {}

    fn shrink(&self, _: &MemoryReservation, _: usize) {}

    fn try_grow(&self, _: &MemoryReservation, _: usize) -> Result<()> {
        Ok(())
    }

    fn reserved(&self) -> usize {
        0
    }
}

#[test]
fn operators_that_have_rules_of_their_own_have_the_names_that_the_rules_know() {
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
    let column: ArrayRef = Arc::new(Int64Array::from(vec![3, 1, 2]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).expect("a batch");
    let rows = || -> Arc<dyn ExecutionPlan> {
        Arc::new(ValuesExec::new(Arc::clone(&schema), vec![batch.clone()]))
    };
    let key = PhysicalSortExpr::new_default(Arc::new(Column::new("n", 0)));
    let sort = SortExec::new(LexOrdering::new([key]).expect("a key"), rows());
    let pairs = NestedLoopJoinExec::try_new(rows(), rows(), None, &JoinType::Left, None);
    let plans: [(Arc<dyn ExecutionPlan>, &str); 2] = [
        (Arc::new(sort), SORTS),
        (Arc::new(pairs.expect("a join")), JOINS_OF_ALL_PAIRS),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    for (plan, expected) in plans {
        let names = Arc::new(Names::default());
        let environment = RuntimeEnv {
            memory_pool: Arc::clone(&names) as Arc<dyn MemoryPool>,
            ..RuntimeEnv::default()
        };
        let context = TaskContext::default().with_runtime(Arc::new(environment));
        let all = runtime.block_on(collect(plan, Arc::new(context)));
        assert!(all.expect("rows").iter().any(|batch| batch.num_rows() > 0));
        let names = lock(&names.0);
        let is_known = names.iter().any(|name| name.starts_with(expected));
        assert!(is_known, "no consumer is called {expected}: {names:?}");
    }
}

#[test]
fn an_operator_with_little_gets_more_than_a_fair_share_while_there_is_room() {
    let all = all(1600);
    let pool = statement(&all);
    // 1400 are for big statements.
    let idle: Vec<MemoryReservation> = (0..15).map(|_| spilling(&pool, "spilling")).collect();
    let first = spilling(&pool, "spilling");
    // A sixteenth would be its share.
    first.try_grow(175 * UNIT).expect("there is room");
    assert!(first.try_grow(UNIT).is_err());
    let held = held(&pool);
    held.try_grow(1150 * UNIT).expect("there is room");
    assert!(idle[0].try_grow(101 * UNIT).is_err());
    assert_eq!(pool.reserved(), 1325 * UNIT);
    drop(held);
    idle[0].try_grow(101 * UNIT).expect("there is room again");
}

#[test]
fn sorts_of_wide_keys_leave_more_room() {
    let all = all(1600);
    let memory = StatementMemory::new(Arc::default());
    let own = Arc::new(StatementPool::new(Arc::clone(&all), memory));
    let pool: Arc<dyn MemoryPool> = Arc::new(OfStatement(Arc::clone(&own)));
    // Rows and keys take twice what the sort reserves, and a quarter is for those that are longer.
    own.note_sort_keys(300);
    let sort = spilling(&pool, "ExternalSorter[0]");
    sort.try_grow(559 * UNIT).expect("two fifths");
    assert!(sort.try_grow(2 * UNIT).is_err());
    // Another one can take a batch at a time.
    let other = spilling(&pool, "ExternalSorter[1]");
    other.try_grow(UNIT).expect("it has nothing");
    assert!(other.try_grow(UNIT).is_err());
    drop(other);
    drop(sort);
    // What was measured is forgotten with the rows.
    let sort = spilling(&pool, "ExternalSorter[0]");
    sort.try_grow(900 * UNIT).expect("two thirds");
}

#[test]
fn sorts_leave_room_for_merging_what_they_spill() {
    let all = all(1600);
    let pool = statement(&all);
    let sort = spilling(&pool, "ExternalSorter[0]");
    sort.try_grow(933 * UNIT).expect("two thirds");
    assert!(sort.try_grow(UNIT).is_err());
    let merge = MemoryConsumer::new("ExternalSorterMerge[0]").register(&pool);
    merge.try_grow(467 * UNIT).expect("what is left");
    // It takes over what the sort had.
    sort.shrink(933 * UNIT);
    merge.try_grow(933 * UNIT).expect("all");
    drop(merge);
    sort.try_grow(933 * UNIT).expect("two thirds again");
}

#[test]
fn small_statements_have_a_reserve() {
    let all = all(1600);
    let big = held(&statement(&all));
    big.try_grow(1400 * UNIT)
        .expect("all that big ones may have");
    assert!(big.try_grow(101 * UNIT).is_err());
    let small = held(&statement(&all));
    small.try_grow(100 * UNIT).expect("the reserve");
    // It would be big.
    assert!(small.try_grow(UNIT).is_err());
    let second = held(&statement(&all));
    second.try_grow(100 * UNIT).expect("the reserve");
    let third = held(&statement(&all));
    assert!(third.try_grow(UNIT).is_err());
    drop((big, small, second));
    assert_eq!(all.reserved_bytes(), 0);
    third.try_grow(1400 * UNIT).expect("all is free");
}

/// Together small statements have it all, and none of them has what it needs.
#[test]
fn small_statements_that_wait_for_one_another_become_big_in_turn() {
    let all = all(1600);
    all.set_wait_timeout(Duration::from_secs(3600));
    let statements: Vec<_> = (0..20).map(|_| held(&statement(&all))).collect();
    for small in &statements[..16] {
        small.try_grow(95 * UNIT).expect("it is small");
    }
    statements[16].try_grow(80 * UNIT).expect("the rest");
    thread::scope(|scope| {
        for small in statements {
            scope.spawn(move || {
                small.try_grow(5 * UNIT).expect("its turn comes");
                small.try_grow(100 * UNIT).expect("it is big now");
            });
        }
    });
    assert_eq!(all.reserved_bytes(), 0);
    let state = lock(&all.state);
    assert_eq!((state.big, state.reserved_by_big), (0, 0));
}

/// What is admitted as a big one has its memory, whatever small ones have.
#[test]
fn one_that_is_admitted_does_not_wait_for_small_ones() {
    let all = all(1600);
    let smalls: Vec<_> = (0..16).map(|_| held(&statement(&all))).collect();
    for small in &smalls {
        small.try_grow(100 * UNIT).expect("it is small");
    }
    let memory = StatementMemory::new(Arc::default());
    let pool = Arc::new(StatementPool::new(Arc::clone(&all), memory));
    let _admission = Arc::clone(&pool).admit().expect("it is the only one");
    let pool: Arc<dyn MemoryPool> = Arc::new(OfStatement(pool));
    held(&pool).try_grow(50 * UNIT).expect("a part of its own");
}

/// A partial aggregation gives its groups away when it gets nothing, but needs a little for the next ones.
#[test]
fn what_has_nothing_to_spill_waits_for_others() {
    let all = all(1600);
    all.set_wait_timeout(Duration::from_secs(3600));
    let first = held(&statement(&all));
    first.try_grow(900 * UNIT).expect("it is alone");
    let smalls: Vec<_> = (0..6).map(|_| held(&statement(&all))).collect();
    for small in &smalls {
        small.try_grow(95 * UNIT).expect("it is small");
    }
    let memory = StatementMemory::new(Arc::default());
    let pool = Arc::new(StatementPool::new(Arc::clone(&all), Arc::clone(&memory)));
    let _admission = Arc::clone(&pool).admit().expect("two may be big");
    let pool: Arc<dyn MemoryPool> = Arc::new(OfStatement(pool));
    held(&pool).grow(460 * UNIT);
    let groups = spilling(&pool, "groups");
    groups.grow(0);
    let other = held(&pool);
    other.grow(460 * UNIT);
    thread::scope(|scope| {
        let waits = scope.spawn(|| groups.try_grow(60 * UNIT));
        while !memory.is_waiting() {
            thread::yield_now();
        }
        drop(first);
        waits.join().expect("no panic").expect("its turn comes");
    });
    // Once it has something, it spills that.
    assert!(groups.try_grow(1000 * UNIT).is_err());
}

#[test]
fn a_big_statement_gives_back_what_is_more_than_its_part_to_one_that_waits() {
    let all = all(1600);
    let first = statement(&all);
    let group = spilling(&first, "groups");
    group.try_grow(1400 * UNIT).expect("it is alone");
    let waits = thread::spawn({
        let all = Arc::clone(&all);
        all.set_wait_timeout(Duration::from_secs(60));
        move || {
            let second = held(&statement(&all));
            second.try_grow(700 * UNIT).map(|()| second)
        }
    });
    while all.waiting() == 0 {
        thread::yield_now();
    }
    // It spills, and begins again.
    while group.try_grow(UNIT).is_ok() {
        group.shrink(UNIT);
    }
    group.shrink(1400 * UNIT);
    let second = waits.join().expect("no panic").expect("half is free");
    group.try_grow(700 * UNIT).expect("its part");
    assert!(group.try_grow(UNIT).is_err());
    drop(second);
    group.try_grow(700 * UNIT).expect("it is alone again");
}

#[test]
fn only_so_many_statements_are_big() {
    let all = all(16_000);
    let big: Vec<MemoryReservation> = (0..MAX_BIG)
        .map(|_| {
            let reservation = held(&statement(&all));
            reservation.try_grow(1001 * UNIT).expect("there is room");
            reservation
        })
        .collect();
    let next = held(&statement(&all));
    assert!(next.try_grow(1001 * UNIT).is_err());
    next.try_grow(1000 * UNIT).expect("it is small");
    big[0].shrink(UNIT);
    next.try_grow(UNIT).expect("one is small again");
}

#[test]
fn a_statement_that_is_killed_waits_no_longer() {
    let all = all(1600);
    all.set_wait_timeout(Duration::from_secs(3600));
    let big = held(&statement(&all));
    big.try_grow(1400 * UNIT)
        .expect("all that big ones may have");
    let stop = Arc::new(StopFlag::default());
    let memory = StatementMemory::new(Arc::clone(&stop));
    let pool: Arc<dyn MemoryPool> = Arc::new(OfStatement(Arc::new(StatementPool::new(
        Arc::clone(&all),
        Arc::clone(&memory),
    ))));
    let waits = thread::spawn(move || held(&pool).try_grow(200 * UNIT));
    while !memory.is_waiting() {
        thread::yield_now();
    }
    stop.raise();
    assert!(waits.join().expect("no panic").is_err());
    assert!(!memory.is_waiting());
}
