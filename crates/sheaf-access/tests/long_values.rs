//! Rows whose values are longer than a page, and tables without a primary key.

mod common;

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::array::cast::AsArray;
use arrow::datatypes::Int32Type;
use common::World;
use sheaf_access::{
    CancelFlag, CompareOp, Condition, EncodedCondition, Fetch, IndexRef, Scan, ScanSpec,
    SessionCounters, SortKeys,
};
use sheaf_storage::Direction;
use sheaf_table::Column;
use sheaf_types::{Collation, ColumnType, Value};

fn columns() -> Vec<Column> {
    vec![
        Column::new(
            "number",
            ColumnType::Int {
                sign: sheaf_types::column_type::Sign::Signed,
            },
            false,
        ),
        Column::new(
            "body",
            ColumnType::Text {
                max_bytes: 16_777_215,
                collation: Collation::Utf8mb4_0900_ai_ci,
            },
            true,
        ),
        Column::new(
            "group",
            ColumnType::Int {
                sign: sheaf_types::column_type::Sign::Signed,
            },
            false,
        ),
    ]
}

/// The body of row `number`: every third is NULL, the others get longer and longer.
fn body(number: i64) -> Option<String> {
    (number % 3 != 0).then(|| format!("{number:06}").repeat(number as usize * 20))
}

fn rows(count: i64) -> Vec<Vec<Value>> {
    (0..count)
        .map(|number| {
            let body = body(number).map_or(Value::Null, Value::Text);
            vec![Value::Int(number), body, Value::Int(number % 4)]
        })
        .collect()
}

fn run(spec: &ScanSpec) -> Vec<RecordBatch> {
    let spec = Arc::new(spec.clone());
    let counters = Arc::new(SessionCounters::default());
    let mut scan = Scan::new(
        Arc::clone(&spec),
        spec.ranges.clone(),
        counters,
        CancelFlag::new(),
    )
    .expect("possible");
    std::iter::from_fn(|| scan.next_batch().expect("the scan succeeds")).collect()
}

/// (number, body) pairs of batches with these two columns.
fn pairs(batches: &[RecordBatch]) -> Vec<(i64, Option<String>)> {
    batches
        .iter()
        .flat_map(|batch| {
            let numbers = batch.column(0).as_primitive::<Int32Type>();
            let bodies = batch.column(1).as_string_view();
            numbers
                .values()
                .iter()
                .copied()
                .zip(bodies)
                .collect::<Vec<_>>()
        })
        .map(|(number, body)| (i64::from(number), body.map(str::to_string)))
        .collect()
}

#[test]
fn long_values_are_read_back_whole_by_every_method() {
    for primary in [&["number"][..], &[]] {
        let world = World::new(4 << 20);
        let table = world.create(columns(), primary, &[&["group"]]);
        world.insert(&rows(300));
        let expected: Vec<_> = (0..300).map(|number| (number, body(number))).collect();
        let forward = ScanSpec::full(Arc::clone(&table), vec![0, 1]);
        assert_eq!(pairs(&run(&forward)), expected);

        let backward = ScanSpec {
            direction: Direction::Backward,
            ..forward.clone()
        };
        assert_eq!(
            pairs(&run(&backward)),
            expected.iter().rev().cloned().collect::<Vec<_>>()
        );

        for fetch in [
            Fetch::Lookup,
            Fetch::MultiRange {
                buffer_bytes: 100,
                sort: SortKeys::Always,
            },
        ] {
            let through_index = ScanSpec {
                index: IndexRef::Secondary(0),
                fetch,
                ..forward.clone()
            };
            let mut given = pairs(&run(&through_index));
            given.sort();
            assert_eq!(given, expected, "{fetch:?}");
        }
    }
}

/// Leaves with long values are read a few rows at a time, those without as a whole, and they follow each other.
#[test]
fn leaves_with_and_without_long_values_may_alternate() {
    let world = World::new(4 << 20);
    let table = world.create(columns(), &["number"], &[]);
    let body = |number: i64| match number / 400 % 2 == 0 && number % 50 == 7 {
        true => "long ".repeat(5_000),
        false => format!("body of {number}"),
    };
    let row = |number: i64| {
        let body = Value::Text(body(number));
        vec![Value::Int(number), body, Value::Int(number % 4)]
    };
    world.insert(&(0..3_000).map(row).collect::<Vec<_>>());
    let expected: Vec<_> = (0..3_000)
        .map(|number| (number, Some(body(number))))
        .collect();
    let forward = ScanSpec::full(Arc::clone(&table), vec![0, 1]);
    assert_eq!(pairs(&run(&forward)), expected);
    let backward = ScanSpec {
        direction: Direction::Backward,
        ..forward
    };
    let backward = pairs(&run(&backward));
    assert_eq!(backward, expected.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn a_condition_on_a_long_value_compares_all_of_it() {
    let world = World::new(4 << 20);
    let table = world.create(columns(), &["number"], &[]);
    world.insert(&rows(300));
    let longest = body(299).expect("not NULL");
    for (value, matches) in [
        (longest.clone(), 1),
        (longest[..longest.len() - 1].to_string(), 0),
    ] {
        let condition = EncodedCondition::Compare {
            column: 1,
            op: CompareOp::Eq,
            value: Value::Text(value),
        };
        let spec = ScanSpec {
            row_condition: Some(Condition {
                encoded: Some(condition),
                rest: None,
            }),
            limit: Some(10),
            ..ScanSpec::full(Arc::clone(&table), vec![0, 1])
        };
        assert_eq!(pairs(&run(&spec)).len(), matches);
    }
}

#[test]
fn batches_of_long_values_are_cut_by_bytes() {
    let world = World::new(4 << 20);
    let table = world.create(columns(), &["number"], &[]);
    let megabyte = "x".repeat(1 << 20);
    let rows: Vec<Vec<Value>> = (0..40)
        .map(|number| {
            vec![
                Value::Int(number),
                Value::Text(megabyte.clone()),
                Value::Int(0),
            ]
        })
        .collect();
    world.insert(&rows);
    let batches = run(&ScanSpec::full(table, vec![0, 1]));
    // 8 MiB fill a batch, in runs of 8 rows.
    assert_eq!(
        batches
            .iter()
            .map(RecordBatch::num_rows)
            .collect::<Vec<_>>(),
        [8, 8, 8, 8, 8]
    );
}
