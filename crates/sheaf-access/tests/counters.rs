//! What scans count: exactly, on a table small enough to count by hand.

mod common;

use std::ops::Bound;
use std::sync::Arc;

use common::*;
use sheaf_access::{
    CompareOp, Condition, EncodedCondition, Fetch, IndexRef, ScanSpec, SessionCounters, SortKeys,
};
use sheaf_storage::{Direction, KeyRange};
use sheaf_table::{PartBounds, Table};
use sheaf_types::Value;

/// 100 rows: id 0 to 99, line 0, a = id / 10, day = id. Other columns are of no interest.
fn hundred_rows() -> (World, Arc<Table>) {
    let world = World::new(2 << 20);
    let table = world.create(every_kind(), &["id", "line"], &[&["a", "day"]]);
    let mut random = Random(21);
    let rows: Vec<Vec<Value>> = (0..100)
        .map(|id| {
            let mut row: Vec<Value> = (0..COLUMNS)
                .map(|column| random_value(&mut random, column))
                .collect();
            row[ID] = Value::Int(id);
            row[LINE] = Value::Int(0);
            row[A] = Value::Int(id / 10);
            row[DAY] = Value::Date(id as i32);
            row
        })
        .collect();
    world.insert(&rows);
    (world, table)
}

fn scan(table: &Arc<Table>) -> ScanSpec {
    ScanSpec::full(Arc::clone(table), vec![ID])
}

/// The counters that are not 0, by name.
fn counted(counters: &SessionCounters) -> Vec<(&'static str, u64)> {
    counters
        .entries()
        .into_iter()
        .filter(|(name, count)| *count > 0 && *name != "Innodb_rows_read")
        .collect()
}

/// `a` from 3 to 5: 30 entries.
fn thirty(table: &Table) -> Vec<KeyRange> {
    let bounds = PartBounds::Between {
        lower: Bound::Included(Value::Int(3)),
        upper: Bound::Included(Value::Int(5)),
    };
    vec![table.secondary_layouts[0].range(&[], Some(&bounds)).range]
}

fn day_below(day: i32) -> Condition {
    let encoded = EncodedCondition::Compare {
        column: DAY,
        op: CompareOp::Less,
        value: Value::Date(day),
    };
    Condition {
        encoded: Some(encoded),
        rest: None,
    }
}

#[test]
fn a_table_scan_steps_over_each_row_and_meets_the_end() {
    let (_world, table) = hundred_rows();
    let (rows, metrics, counters) = run_scan(&scan(&table));
    assert_eq!(rows.len(), 100);
    assert_eq!(
        counted(&counters),
        [("Handler_read_first", 1), ("Handler_read_rnd_next", 101)]
    );
    assert_eq!(metrics.rows_examined, 100);
}

#[test]
fn a_limit_stops_a_scan_at_its_last_row() {
    let (_world, table) = hundred_rows();
    let condition = EncodedCondition::Compare {
        column: DAY,
        op: CompareOp::GreaterOrEqual,
        value: Value::Date(10),
    };
    let limited = ScanSpec {
        limit: Some(5),
        row_condition: Some(Condition {
            encoded: Some(condition),
            rest: None,
        }),
        ..scan(&table)
    };
    let (_, metrics, counters) = run_scan(&limited);
    assert_eq!(
        counted(&counters),
        [("Handler_read_first", 1), ("Handler_read_rnd_next", 15)]
    );
    assert_eq!(metrics.rows_examined, 15);

    let backward = ScanSpec {
        direction: Direction::Backward,
        ..limited
    };
    let (rows, _, counters) = run_scan(&backward);
    assert_eq!(rows[0], [Value::Int(99)]);
    assert_eq!(
        counted(&counters),
        [("Handler_read_last", 1), ("Handler_read_prev", 4)]
    );
}

#[test]
fn a_range_is_positioned_once_and_stepped_to_its_end() {
    let (_world, table) = hundred_rows();
    let range = ScanSpec {
        index: IndexRef::Secondary(0),
        ranges: thirty(&table),
        fetch: Fetch::Lookup,
        ..scan(&table)
    };
    let (_, metrics, counters) = run_scan(&range);
    assert_eq!(
        counted(&counters),
        [("Handler_read_key", 1), ("Handler_read_next", 30)]
    );
    assert_eq!((metrics.index_entries, metrics.row_lookups), (30, 30));

    let covering = ScanSpec {
        fetch: Fetch::Covering,
        ..range.clone()
    };
    let (_, metrics, counters) = run_scan(&covering);
    assert_eq!(
        counted(&counters),
        [("Handler_read_key", 1), ("Handler_read_next", 30)]
    );
    assert_eq!(metrics.row_lookups, 0);

    let limited = ScanSpec {
        limit: Some(3),
        ..range
    };
    let (_, metrics, counters) = run_scan(&limited);
    assert_eq!(
        counted(&counters),
        [("Handler_read_key", 1), ("Handler_read_next", 2)]
    );
    assert_eq!(metrics.row_lookups, 3);
}

#[test]
fn points_of_the_primary_key_have_no_steps() {
    let (_world, table) = hundred_rows();
    let ranges = [7, 30, 1000]
        .map(|id| {
            let mut row = vec![Value::Null; COLUMNS];
            row[ID] = Value::Int(id);
            row[LINE] = Value::Int(0);
            let key = table.encode_primary_key(&row);
            KeyRange {
                lower: Bound::Included(key.clone()),
                upper: Bound::Included(key),
            }
        })
        .to_vec();
    let (rows, _, counters) = run_scan(&ScanSpec {
        ranges,
        ..scan(&table)
    });
    assert_eq!(rows, [[Value::Int(7)], [Value::Int(30)]]);
    assert_eq!(counted(&counters), [("Handler_read_key", 3)]);
}

#[test]
fn an_index_condition_saves_lookups() {
    let (_world, table) = hundred_rows();
    let spec = ScanSpec {
        index: IndexRef::Secondary(0),
        ranges: thirty(&table),
        fetch: Fetch::Lookup,
        index_condition: Some(day_below(34)),
        ..scan(&table)
    };
    let (rows, metrics, counters) = run_scan(&spec);
    assert_eq!(rows.len(), 4);
    assert_eq!(
        counted(&counters),
        [
            ("Handler_icp_attempts", 30),
            ("Handler_icp_match", 4),
            ("Handler_read_key", 1),
            ("Handler_read_next", 4)
        ]
    );
    assert_eq!(metrics.row_lookups, 4);

    let without = ScanSpec {
        index_condition: None,
        row_condition: Some(day_below(34)),
        ..spec
    };
    let (same, metrics, _) = run_scan(&without);
    assert_eq!(same, rows);
    assert_eq!(metrics.row_lookups, 30);
}

#[test]
fn refills_are_the_buffers_after_the_first() {
    let (_world, table) = hundred_rows();
    // A primary key has 4 + 2 bytes: S = 180 bytes.
    for (buffer_bytes, refills) in [
        (180, 0),
        (179, 1),
        (60, 2),
        (59, 3),
        (6, 29),
        (1, 29),
        (1 << 20, 0),
    ] {
        let spec = ScanSpec {
            index: IndexRef::Secondary(0),
            ranges: thirty(&table),
            fetch: Fetch::MultiRange {
                buffer_bytes,
                sort: SortKeys::Auto,
            },
            ..scan(&table)
        };
        let (rows, metrics, counters) = run_scan(&spec);
        assert_eq!(rows.len(), 30);
        assert_eq!(counters.handler_mrr_init.get(), 1);
        assert_eq!(
            counters.handler_mrr_rowid_refills.get(),
            refills,
            "{buffer_bytes} bytes"
        );
        assert_eq!(metrics.mrr_buffers, refills + 1);
        assert_eq!(counters.handler_read_rnd.get(), 30);
    }
}

#[test]
fn flush_status_moves_counts_to_the_global_ones() {
    let (_world, table) = hundred_rows();
    let (_, _, session) = run_scan(&scan(&table));
    let global = SessionCounters::default();
    session.fold_into(&global);
    assert_eq!(counted(&session), []);
    assert_eq!(global.handler_read_rnd_next.get(), 101);
}
