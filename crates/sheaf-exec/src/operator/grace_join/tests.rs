//! Joins in little memory have the rows of joins in much memory.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::util::pretty::pretty_format_batches;
use datafusion_common::{JoinSide, JoinType, NullEquality};
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::{BinaryExpr, Column};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion_physical_plan::union::UnionExec;
use sheaf_access::CancelFlag;
use sheaf_storage::TempSpace;

use super::*;
use crate::ExecError;
use crate::operator::values_exec::ValuesExec;
use crate::runtime::{QueryRuntime, RuntimeOptions};

/// Enough for two or three of sixteen parts.
const LITTLE: usize = 2 << 20;
const MUCH: usize = 1 << 30;

const TYPES: [JoinType; 10] = [
    JoinType::Inner,
    JoinType::Left,
    JoinType::Right,
    JoinType::Full,
    JoinType::LeftSemi,
    JoinType::LeftAnti,
    JoinType::LeftMark,
    JoinType::RightSemi,
    JoinType::RightAnti,
    JoinType::RightMark,
];

fn space(limit_bytes: u64) -> (tempfile::TempDir, Arc<TempSpace>) {
    let directory = tempfile::tempdir().expect("a directory");
    let space = TempSpace::new(directory.path(), limit_bytes);
    (directory, space)
}

fn runtime(query_memory_bytes: usize, temp_space: &Arc<TempSpace>) -> Arc<QueryRuntime> {
    QueryRuntime::new(RuntimeOptions {
        threads: 2,
        query_memory_bytes,
        temp_space: Arc::clone(temp_space),
    })
    .expect("a runtime")
}

fn schema(names: [&str; 3]) -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new(names[0], DataType::Int64, true),
        Field::new(names[1], DataType::Int64, false),
        Field::new(names[2], DataType::Utf8, true),
    ]))
}

/// Rows whose key `key` tells by their number.
fn batches(
    schema: &SchemaRef,
    rows: i64,
    text: usize,
    key: impl Fn(i64) -> Option<i64>,
) -> Vec<RecordBatch> {
    let numbers: Vec<i64> = (0..rows).collect();
    let chunks = numbers.chunks(1000);
    chunks
        .map(|rows| {
            let keys = rows.iter().map(|row| key(*row));
            let texts = rows
                .iter()
                .map(|row| (row % 11 != 0).then(|| format!("{row:0>text$}")));
            let columns: Vec<ArrayRef> = vec![
                Arc::new(keys.collect::<Int64Array>()),
                Arc::new(Int64Array::from(rows.to_vec())),
                Arc::new(texts.collect::<StringArray>()),
            ];
            RecordBatch::try_new(Arc::clone(schema), columns).expect("a batch")
        })
        .collect()
}

/// Two sides; the right one in two partitions.
struct Case {
    left: Vec<RecordBatch>,
    right: [Vec<RecordBatch>; 2],
    on: Vec<usize>,
    null_equality: NullEquality,
    with_filter: bool,
    null_aware: bool,
    /// The left side fits in little memory, once each key is there only once.
    few_left_keys: bool,
}

impl Case {
    fn new(
        left: (i64, impl Fn(i64) -> Option<i64>),
        right: (i64, impl Fn(i64) -> Option<i64>),
    ) -> Case {
        let (left_schema, right_schema) = (schema(["k", "a", "s"]), schema(["l", "b", "t"]));
        let mut right = batches(&right_schema, right.0, 60, right.1);
        let other = right.split_off(right.len() / 2);
        Case {
            left: batches(&left_schema, left.0, 60, left.1),
            right: [right, other],
            on: vec![0],
            null_equality: NullEquality::NullEqualsNothing,
            with_filter: false,
            null_aware: false,
            few_left_keys: false,
        }
    }

    /// Whether a join in little memory goes to files.
    fn spills(&self, join_type: JoinType) -> bool {
        let asks_left = matches!(
            join_type,
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark
        );
        !(self.few_left_keys && asks_left && !self.with_filter)
    }

    fn join(&self, join_type: JoinType, projection: Option<Vec<usize>>) -> HashJoinExec {
        let (left_schema, right_schema) = (schema(["k", "a", "s"]), schema(["l", "b", "t"]));
        let left = Arc::new(ValuesExec::new(left_schema, self.left.clone()));
        let halves = self.right.iter().map(|half| {
            let values = ValuesExec::new(Arc::clone(&right_schema), half.clone());
            Arc::new(values) as Arc<dyn ExecutionPlan>
        });
        let right = UnionExec::try_new(halves.collect()).expect("a union");
        let on = self.on.iter().map(|key| {
            let (left, right) = (["k", "a", "s"][*key], ["l", "b", "t"][*key]);
            let left: Arc<dyn PhysicalExpr> = Arc::new(Column::new(left, *key));
            let right: Arc<dyn PhysicalExpr> = Arc::new(Column::new(right, *key));
            (left, right)
        });
        // a < b + a row's own: about half of the pairs.
        let filter = self.with_filter.then(|| {
            let columns =
                [JoinSide::Left, JoinSide::Right].map(|side| ColumnIndex { index: 1, side });
            let fields = [("a", true), ("b", true)]
                .map(|(name, nullable)| Field::new(name, DataType::Int64, nullable));
            let less = BinaryExpr::new(
                Arc::new(Column::new("a", 0)),
                Operator::Lt,
                Arc::new(Column::new("b", 1)),
            );
            JoinFilter::new(
                Arc::new(less),
                columns.to_vec(),
                Arc::new(Schema::new(fields.to_vec())),
            )
        });
        HashJoinExec::try_new(
            left,
            right,
            on.collect(),
            filter,
            &join_type,
            projection,
            PartitionMode::CollectLeft,
            self.null_equality,
            self.null_aware,
        )
        .expect("a join")
    }
}

/// The rows, as text.
fn run(
    plan: Arc<dyn ExecutionPlan>,
    runtime: &Arc<QueryRuntime>,
) -> std::result::Result<Vec<String>, ExecError> {
    let task = runtime.task_context(
        "1".to_string(),
        runtime.session_config(1024, 2),
        runtime.statement_pool(CancelFlag::new().statement_memory()),
    );
    run_in(plan, runtime, task)
}

/// The rows of one partition.
fn run_partition(
    plan: &Arc<dyn ExecutionPlan>,
    partition: usize,
    runtime: &Arc<QueryRuntime>,
) -> std::result::Result<Vec<String>, ExecError> {
    let task = runtime.task_context(
        "1".to_string(),
        runtime.session_config(1024, 2),
        runtime.statement_pool(CancelFlag::new().statement_memory()),
    );
    let rows = plan.execute(partition, Arc::clone(&task))?;
    run_in(
        Arc::new(SourceExec::new(plan.schema(), rows)),
        runtime,
        task,
    )
}

fn run_in(
    plan: Arc<dyn ExecutionPlan>,
    runtime: &Arc<QueryRuntime>,
    task: Arc<TaskContext>,
) -> std::result::Result<Vec<String>, ExecError> {
    let schema = plan.schema();
    let mut stream = runtime.run(plan, task, CancelFlag::new());
    let mut batches = Vec::new();
    for batch in &mut stream {
        match batch {
            Ok(batch) => batches.push(batch),
            Err(error) => {
                stream.settle();
                return Err(error);
            }
        }
    }
    drop(stream);
    let all = concat_batches(&schema, &batches).expect("one schema");
    let text = pretty_format_batches(&[all]).expect("text").to_string();
    let rows = text.lines().skip(3).filter(|line| line.starts_with('|'));
    Ok(rows.map(str::to_string).collect())
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

fn in_one(plan: impl ExecutionPlan + 'static) -> Arc<dyn ExecutionPlan> {
    Arc::new(CoalescePartitionsExec::new(Arc::new(plan)))
}

fn has_spilled(join: &GraceJoinExec) -> bool {
    let begun = lock(&join.begun);
    let way = begun.as_ref().and_then(|begun| begun.peek());
    matches!(way, Some(Ok(way)) if matches!(way.as_ref(), Way::Files(_)))
}

/// Runs a join in both ways, and holds that it has spilled.
fn check(case: &Case, join_type: JoinType, projection: Option<Vec<usize>>) {
    let (_directory, space) = space(MUCH as u64);
    let expected = run(
        in_one(case.join(join_type, projection.clone())),
        &runtime(MUCH, &space),
    );
    let expected = sorted(expected.expect("much memory"));
    for memory in [LITTLE, MUCH] {
        let runtime = runtime(memory, &space);
        let join = case.join(join_type, projection.clone());
        let join = Arc::new(GraceJoinExec::new(join, false));
        let rows = run(
            Arc::new(CoalescePartitionsExec::new(Arc::clone(&join) as _)),
            &runtime,
        );
        let spills = memory == LITTLE && case.spills(join_type);
        assert_eq!(has_spilled(&join), spills, "{join_type}");
        drop(join);
        let rows = sorted(rows.unwrap_or_else(|error| panic!("{join_type}: {error}")));
        assert!(
            rows == expected,
            "{join_type}, {} rows of {}",
            rows.len(),
            expected.len()
        );
        assert_eq!(runtime.reserved_bytes(), 0, "{join_type}");
    }
    assert_eq!(space.used_bytes(), 0, "{join_type}");
}

/// Keys of which some are NULL, some meet several rows, and some none.
fn many_keys(row: i64) -> Option<i64> {
    (row % 17 != 0).then_some(row * 7919 % 30_011)
}

#[test]
fn joins_of_every_type_have_the_same_rows_from_files() {
    for with_filter in [false, true] {
        let mut case = Case::new((40_000, many_keys), (30_000, |row| many_keys(row * 3 + 1)));
        case.with_filter = with_filter;
        for join_type in TYPES {
            check(&case, join_type, None);
        }
    }
}

#[test]
fn null_equals_null_and_several_keys() {
    let mut case = Case::new((40_000, many_keys), (3_000, many_keys));
    case.null_equality = NullEquality::NullEqualsNull;
    case.on = vec![0, 2];
    for join_type in TYPES {
        check(&case, join_type, Some(vec![0]));
    }
}

#[test]
fn rows_of_one_key_are_joined_in_pieces() {
    let skewed = |row: i64| Some(if row % 50 == 0 { row } else { -1 });
    // Few rows of the other side have the key.
    let mut case = Case::new(
        (40_000, skewed),
        (4_000, |row| Some(if row % 400 == 1 { -1 } else { row })),
    );
    case.few_left_keys = true;
    for join_type in TYPES {
        if join_type != JoinType::Full {
            check(&case, join_type, None);
        }
    }
    case.with_filter = true;
    for join_type in [JoinType::Left, JoinType::Right, JoinType::RightAnti] {
        check(&case, join_type, None);
    }
}

#[test]
fn not_in_asks_for_nulls_and_for_rows() {
    let right: [fn(i64) -> Option<i64>; 2] = [|row| Some(row * 2), many_keys];
    for (rows, key) in [(30_000, right[0]), (30_000, right[1]), (0, right[0])] {
        let mut case = Case::new((40_000, many_keys), (rows, key));
        case.null_aware = true;
        check(&case, JoinType::LeftAnti, None);
    }
}

#[test]
fn a_side_that_is_asked_for_keys_gives_each_only_once() {
    let few = |row: i64| (row % 7 != 0).then_some(row % 10);
    let case = Case::new((20_000, few), (20_000, few));
    for (join_type, rows) in [
        (JoinType::LeftSemi, 17_142),
        (JoinType::LeftAnti, 2_858),
        (JoinType::LeftMark, 20_000),
        (JoinType::RightSemi, 17_142),
        (JoinType::RightAnti, 2_858),
        (JoinType::RightMark, 20_000),
    ] {
        let (_directory, space) = space(MUCH as u64);
        let join = Arc::new(case.join(join_type, None));
        let asked = with_first_of_keys(&join).expect("a join");
        let side = match join_type {
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => asked.left(),
            _ => asked.right(),
        };
        let keys = run(
            Arc::new(CoalescePartitionsExec::new(Arc::clone(side))),
            &runtime(MUCH, &space),
        );
        // Ten keys and NULL, of each of up to two partitions.
        let keys = keys.expect("keys").len();
        assert!([11, 22].contains(&keys), "{join_type}: {keys} rows");
        let joined = run(
            in_one(GraceJoinExec::new(case.join(join_type, None), false)),
            &runtime(MUCH, &space),
        );
        assert_eq!(joined.expect("rows").len(), rows, "{join_type}");
    }
}

#[test]
fn rows_whose_keys_differ_all_pass() {
    let (_directory, space) = space(MUCH as u64);
    let case = Case::new((100_000, Some), (100, Some));
    let join = Arc::new(case.join(JoinType::RightAnti, None));
    let asked = with_first_of_keys(&join).expect("a join");
    let rows = run(Arc::clone(asked.left()), &runtime(MUCH, &space));
    assert_eq!(rows.expect("rows").len(), 100_000);
}

/// The order of the right side, where an operator relies on it.
#[test]
fn rows_keep_the_order_of_the_right_side() {
    let case = Case::new((40_000, many_keys), (30_000, |row| many_keys(row * 3 + 1)));
    let (_directory, space) = space(MUCH as u64);
    for (join_type, number) in [
        (JoinType::Inner, 4),
        (JoinType::Right, 4),
        (JoinType::RightSemi, 1),
        (JoinType::RightAnti, 1),
        (JoinType::RightMark, 1),
    ] {
        let expected = run(in_one(case.join(join_type, None)), &runtime(MUCH, &space));
        // An eighth of it is for small statements.
        let runtime = runtime(2 * LITTLE + 2 * LITTLE / 7, &space);
        let mut join = GraceJoinExec::new(case.join(join_type, None), true);
        // The planner would know an order of a table.
        join.in_order = true;
        let join: Arc<dyn ExecutionPlan> = Arc::new(join);
        let mut rows = Vec::new();
        for partition in 0..2 {
            let found = run_partition(&join, partition, &runtime).expect("it spills");
            let numbers: Vec<i64> = found
                .iter()
                .filter_map(|row| row.split('|').nth(number + 1)?.trim().parse().ok())
                .collect();
            assert!(numbers.is_sorted(), "{join_type}");
            rows.extend(found);
        }
        assert!(
            sorted(rows) == sorted(expected.expect("much memory")),
            "{join_type}"
        );
    }
}

#[test]
fn a_full_disk_ends_the_join() {
    let case = Case::new((40_000, many_keys), (30_000, many_keys));
    let (_directory, space) = space(1 << 20);
    let runtime = runtime(LITTLE, &space);
    let join = GraceJoinExec::new(case.join(JoinType::Inner, None), false);
    let error = run(in_one(join), &runtime).expect_err("the disk is full");
    assert!(!error.is_out_of_memory(), "{error}");
    assert_eq!((space.used_bytes(), runtime.reserved_bytes()), (0, 0));
}

#[test]
fn a_reader_that_leaves_frees_files_and_memory() {
    let case = Case::new((40_000, many_keys), (30_000, many_keys));
    let (_directory, space) = space(MUCH as u64);
    let runtime = runtime(LITTLE, &space);
    for batches in [0, 1, 3] {
        let plan = in_one(GraceJoinExec::new(case.join(JoinType::Inner, None), false));
        let task = runtime.task_context(
            "1".to_string(),
            runtime.session_config(64, 2),
            runtime.statement_pool(CancelFlag::new().statement_memory()),
        );
        let mut stream = runtime.run(plan, task, CancelFlag::new());
        for _ in 0..batches {
            stream.next().expect("a batch").expect("it spills");
        }
        stream.settle();
        // Tasks of the join end where they are next asked for.
        for _ in 0..200 {
            if (space.used_bytes(), runtime.reserved_bytes()) == (0, 0) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert_eq!((space.used_bytes(), runtime.reserved_bytes()), (0, 0));
    }
}

#[test]
fn a_limit_of_the_join_counts_over_all_files() {
    let case = Case::new((40_000, many_keys), (30_000, many_keys));
    let (_directory, space) = space(MUCH as u64);
    let join = case.join(JoinType::Inner, None);
    let join = join.builder().with_fetch(Some(25)).build().expect("a join");
    let join = GraceJoinExec::new(join, false);
    let rows = run(in_one(join), &runtime(LITTLE, &space)).expect("it spills");
    // 25 of each partition.
    assert_eq!(rows.len(), 50);
}
