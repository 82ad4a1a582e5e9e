//! The clustered key as a column: whatever the access method, the key that comes beside a row leads to that row.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::cast::AsArray;
use arrow::array::{Array, RecordBatch};
use common::*;
use sheaf_access::{
    BatchSize, CancelFlag, Fetch, IndexRef, KeyedLookup, KeyedLookupSpec, Scan, ScanSpec,
    SessionCounters, SortKeys, clustered_key_position,
};
use sheaf_storage::{Direction, ReadView};
use sheaf_table::{Table, ValueRef};
use sheaf_types::Value;

const FETCHES: [Fetch; 4] = [
    Fetch::Covering,
    Fetch::Lookup,
    Fetch::MultiRange {
        buffer_bytes: 500,
        sort: SortKeys::Always,
    },
    Fetch::MultiRange {
        buffer_bytes: 64 << 10,
        sort: SortKeys::Auto,
    },
];

/// Checks a batch whose first column is the key and whose others are `columns`; notes the keys.
fn check(table: &Table, batch: &RecordBatch, columns: &[usize], keys: &mut Vec<Vec<u8>>) {
    let rest: Vec<usize> = (1..batch.num_columns()).collect();
    let values = values_of(&batch.project(&rest).expect("columns"), columns);
    let column = batch.column(0).as_binary::<i32>();
    assert_eq!(column.null_count(), 0);
    for (row, values) in values.into_iter().enumerate() {
        let key = column.value(row);
        let found = table.read_row(key).expect("readable").expect("a row");
        let found: Vec<Value> = columns.iter().map(|&at| found[at].clone()).collect();
        assert_eq!(found, values);
        keys.push(key.to_vec());
    }
}

fn scan_keys(spec: ScanSpec, columns: &[usize]) -> Vec<Vec<u8>> {
    let table = Arc::clone(&spec.table);
    let counters = Arc::new(SessionCounters::default());
    let ranges = spec.ranges.clone();
    let mut scan =
        Scan::new(Arc::new(spec), ranges, counters, CancelFlag::new()).expect("possible");
    let mut keys = Vec::new();
    while let Some(batch) = scan.next_batch().expect("the scan succeeds") {
        check(&table, &batch, columns, &mut keys);
    }
    keys
}

fn worlds() -> Vec<(World, Arc<Table>, usize)> {
    let mut random = Random(11);
    [&["id", "line"][..], &["mode", "id", "line"], &[]]
        .into_iter()
        .map(|primary| {
            let world = World::new(2 << 20);
            let rows: Vec<Vec<Value>> = random_rows(&mut random, 700)
                .into_iter()
                .map(|mut row| {
                    if row[MODE].is_null() {
                        row[MODE] = Value::Text("none".to_string());
                    }
                    row
                })
                .collect();
            let mut columns = every_kind();
            columns[MODE].nullable = false;
            let table = world.create(columns, primary, &INDEXES);
            world.insert(&rows);
            (world, table, rows.len())
        })
        .collect()
}

#[test]
fn scans_deliver_the_keys_of_their_rows() {
    for (_world, table, rows) in worlds() {
        let key = clustered_key_position(&table.definition);
        for direction in [Direction::Forward, Direction::Backward] {
            let columns = [A, NOTE, ID];
            let mut spec = ScanSpec::full(Arc::clone(&table), [&[key][..], &columns].concat());
            spec.direction = direction;
            spec.batch = BatchSize::of_rows(100);
            let keys = scan_keys(spec, &columns);
            assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), rows);
            for position in 0..table.secondary.len() {
                let declared = index_columns(&table, position);
                for fetch in FETCHES {
                    // A prefix in the index is not the column.
                    let columns: Vec<usize> = match fetch {
                        Fetch::Covering => declared
                            .iter()
                            .copied()
                            .filter(|column| {
                                table.secondary_layouts[position].part_of(*column).is_some()
                            })
                            .collect(),
                        _ => vec![D, ID, RAW],
                    };
                    let projection = [&[key][..], &columns].concat();
                    let mut spec = ScanSpec::full(Arc::clone(&table), projection);
                    spec.index = IndexRef::Secondary(position);
                    spec.direction = direction;
                    spec.fetch = fetch;
                    spec.batch = BatchSize::of_rows(100);
                    let keys = scan_keys(spec, &columns);
                    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), rows);
                }
            }
        }
    }
}

#[test]
fn a_limit_cuts_keys_and_rows_alike() {
    for (_world, table, _) in worlds() {
        let key = clustered_key_position(&table.definition);
        for fetch in FETCHES {
            for index in [IndexRef::Clustered, IndexRef::Secondary(0)] {
                let mut spec = ScanSpec::full(Arc::clone(&table), vec![key, A]);
                (spec.index, spec.fetch, spec.limit) = (index, fetch, Some(77));
                assert_eq!(scan_keys(spec, &[A]).len(), 77);
            }
        }
    }
}

#[test]
fn keyed_lookups_deliver_the_keys_of_the_inner_rows() {
    for (_world, table, rows) in worlds() {
        let key = clustered_key_position(&table.definition);
        let mut cases = vec![(IndexRef::Secondary(0), 1), (IndexRef::Secondary(3), 1)];
        if !table.definition.has_hidden_row_id() {
            let parts = table.definition.primary.parts.len();
            cases.extend([(IndexRef::Clustered, 1), (IndexRef::Clustered, parts)]);
        }
        for ((index, key_parts), fetch) in cases
            .into_iter()
            .flat_map(|case| FETCHES[1..].iter().map(move |fetch| (case, *fetch)))
        {
            let columns = [LINE, MOMENT];
            let spec = Arc::new(KeyedLookupSpec {
                table: Arc::clone(&table),
                index,
                key_parts,
                ranged: false,
                index_condition: None,
                row_condition: None,
                projection: [&[key][..], &columns].concat(),
                fetch,
                batched: true,
                sort_keys: true,
                buffer_bytes: 2000,
                batch: BatchSize::of_rows(100),
                view: ReadView::newest(),
            });
            let counters = Arc::new(SessionCounters::default());
            let mut lookup =
                KeyedLookup::new(Arc::clone(&spec), counters, CancelFlag::new()).expect("possible");
            let layout = match index {
                IndexRef::Clustered => &table.clustered_layout,
                IndexRef::Secondary(position) => &table.secondary_layouts[position],
            };
            let mut wanted = BTreeSet::new();
            let mut keys = Vec::new();
            let mut drain = |lookup: &mut KeyedLookup| {
                lookup.run().expect("the run starts");
                while let Some((_, batch)) = lookup.next_batch().expect("the lookup succeeds") {
                    check(&table, &batch, &columns, &mut keys);
                }
            };
            let all = run_scan(&ScanSpec::full(
                Arc::clone(&table),
                (0..COLUMNS).collect::<Vec<_>>(),
            ));
            for row in &all.0 {
                let mut encoded = Vec::new();
                for part in 0..key_parts {
                    let column = layout.parts[part].column.expect("a column");
                    if !row[column].is_null() {
                        layout.encode_part(part, ValueRef::from(&row[column]), &mut encoded);
                    }
                }
                if encoded.is_empty() || !wanted.insert(encoded.clone()) {
                    continue;
                }
                if lookup.full() {
                    drain(&mut lookup);
                }
                lookup.push(&encoded, 0);
            }
            drain(&mut lookup);
            let found = keys.iter().collect::<BTreeSet<_>>().len();
            assert_eq!(found, keys.len());
            let nullable = index == IndexRef::Secondary(0);
            assert!(
                found == rows || (nullable && found > rows / 2),
                "{found} of {rows}"
            );
        }
    }
}
