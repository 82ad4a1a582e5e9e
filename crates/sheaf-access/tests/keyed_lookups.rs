//! Keyed lookups against a model: nested loops over vectors.

mod common;

use std::sync::Arc;

use common::*;
use sheaf_access::{
    BatchSize, CancelFlag, Condition, Fetch, IndexRef, KeyedLookup, KeyedLookupSpec, ScanMetrics,
    SessionCounters, SortKeys,
};
use sheaf_storage::prefix_successor;
use sheaf_table::{KeyLayout, Table, ValueRef};
use sheaf_types::Value;

/// Outer rows with what they match.
type Pairs = Vec<(u32, Vec<Value>)>;

/// A lookup of `parts` leading parts of an index that delivers everything, batched as the defaults have it.
fn lookup(table: &Arc<Table>, index: IndexRef, key_parts: usize) -> KeyedLookupSpec {
    KeyedLookupSpec {
        view: sheaf_storage::ReadView::newest(),
        table: Arc::clone(table),
        index,
        key_parts,
        ranged: false,
        index_condition: None,
        row_condition: None,
        projection: vec![ID, LINE],
        fetch: Fetch::MultiRange {
            buffer_bytes: 256 << 10,
            sort: SortKeys::Auto,
        },
        batched: true,
        sort_keys: true,
        buffer_bytes: 256 << 10,
        batch: BatchSize::of_rows(1000),
    }
}

fn layout_of(spec: &KeyedLookupSpec) -> &KeyLayout {
    match spec.index {
        IndexRef::Clustered => &spec.table.clustered_layout,
        IndexRef::Secondary(position) => &spec.table.secondary_layouts[position],
    }
}

/// Lets `push` bring something of each of `rows` outer rows. Returns (outer row, projected inner row) pairs.
fn run_pushed(
    spec: &KeyedLookupSpec,
    rows: usize,
    push: impl Fn(&mut KeyedLookup, usize),
) -> (Pairs, ScanMetrics, Arc<SessionCounters>) {
    let counters = Arc::new(SessionCounters::default());
    let spec = Arc::new(spec.clone());
    let mut lookup = KeyedLookup::new(Arc::clone(&spec), Arc::clone(&counters), CancelFlag::new())
        .expect("possible");
    let mut pairs = Vec::new();
    let mut drain = |lookup: &mut KeyedLookup| {
        lookup.run().expect("the run starts");
        while let Some((outer, batch)) = lookup.next_batch().expect("the lookup succeeds") {
            assert!(batch.num_rows() > 0 && batch.num_rows() == outer.len());
            pairs.extend(
                outer
                    .values()
                    .iter()
                    .copied()
                    .zip(values_of(&batch, &spec.projection)),
            );
        }
    };
    for row in 0..rows {
        if lookup.full() {
            drain(&mut lookup);
        }
        push(&mut lookup, row);
    }
    drain(&mut lookup);
    (pairs, lookup.metrics(), counters)
}

/// Looks up the keys of outer row 0, 1, ...
fn run(spec: &KeyedLookupSpec, keys: &[Vec<Value>]) -> (Pairs, ScanMetrics, Arc<SessionCounters>) {
    let layout = layout_of(spec);
    run_pushed(spec, keys.len(), |lookup, row| {
        if keys[row].iter().any(Value::is_null) {
            return;
        }
        let mut encoded = Vec::new();
        for (part, value) in keys[row].iter().enumerate() {
            layout.encode_part(part, ValueRef::from(value), &mut encoded);
        }
        lookup.push(&encoded, row as u32);
    })
}

/// A bound, and whether it belongs to the range.
type Bound = Option<(Value, bool)>;

/// The keys of an outer row, and the bounds of the part behind them.
struct Range {
    key: Vec<Value>,
    lower: Bound,
    upper: Bound,
}

/// Looks up the ranges of outer row 0, 1, ...
fn run_ranges(spec: &KeyedLookupSpec, ranges: &[Range]) -> Pairs {
    let layout = layout_of(spec);
    let (pairs, ..) = run_pushed(spec, ranges.len(), |lookup, row| {
        let Range { key, lower, upper } = &ranges[row];
        let mut values = key
            .iter()
            .chain(lower.iter().chain(upper).map(|(value, _)| value));
        if values.any(Value::is_null) {
            return;
        }
        let mut prefix = Vec::new();
        for (part, value) in key.iter().enumerate() {
            layout.encode_part(part, ValueRef::from(value), &mut prefix);
        }
        let with = |value: &Value| {
            let mut bound = prefix.clone();
            layout.encode_part(key.len(), ValueRef::from(value), &mut bound);
            bound
        };
        let start = match lower {
            None => prefix.clone(),
            Some((value, true)) => with(value),
            Some((value, false)) => match prefix_successor(&with(value)) {
                Some(start) => start,
                None => return,
            },
        };
        let end = match upper {
            None => prefix_successor(&prefix),
            Some((value, true)) => prefix_successor(&with(value)),
            Some((value, false)) => Some(with(value)),
        };
        lookup.push_range(&start, end.as_deref(), row as u32);
    });
    pairs
}

fn sorted_pairs(mut pairs: Pairs) -> Pairs {
    pairs.sort_by_key(|(outer, row)| (*outer, format!("{row:?}")));
    pairs
}

#[test]
fn lookups_give_what_nested_loops_give() {
    let mut random = Random(11);
    let rows = random_rows(&mut random, 2000);
    let world = World::new(2 << 20);
    let table = world.create(every_kind(), &["id", "line"], &INDEXES);
    world.insert(&rows);
    for round in 0..120 {
        if round % 5 == 0 {
            world
                .storage
                .drop_cached_pages()
                .expect("pages are written");
        }
        // Secondary index 4 begins with a prefix part, through which no join goes.
        let index = *random.pick(&[
            IndexRef::Clustered,
            IndexRef::Secondary(0),
            IndexRef::Secondary(1),
            IndexRef::Secondary(2),
            IndexRef::Secondary(3),
            IndexRef::Secondary(5),
        ]);
        let (columns, layout) = match index {
            IndexRef::Clustered => (vec![ID, LINE], &table.clustered_layout),
            IndexRef::Secondary(position) => (
                index_columns(&table, position),
                &table.secondary_layouts[position],
            ),
        };
        let parts = 1 + random.below(columns.len() as u64) as usize;
        let keys: Vec<Vec<Value>> = (0..random.below(120))
            .map(|_| match random.chance(60) {
                true => {
                    let row = random.pick(&rows);
                    columns[..parts]
                        .iter()
                        .map(|&column| row[column].clone())
                        .collect()
                }
                false => columns[..parts]
                    .iter()
                    .map(|&column| random_value(&mut random, column))
                    .collect(),
            })
            .collect();
        let decodable: Vec<usize> = (0..COLUMNS)
            .filter(|&column| layout.part_of(column).is_some())
            .collect();
        let is_secondary = matches!(index, IndexRef::Secondary(_));
        let fetch = match random.below(3) {
            0 if is_secondary => Fetch::Covering,
            1 => Fetch::Lookup,
            _ => Fetch::MultiRange {
                buffer_bytes: 100 * (1 + random.below(50) as usize),
                sort: *random.pick(&[SortKeys::Auto, SortKeys::Always]),
            },
        };
        let readable = if fetch == Fetch::Covering {
            decodable.clone()
        } else {
            (0..COLUMNS).collect()
        };
        let index_condition =
            (is_secondary && fetch != Fetch::Covering && random.chance(50)).then(|| Condition {
                encoded: Some(random_condition(&mut random, &decodable, 1)),
                rest: None,
            });
        let row_condition = random.chance(50).then(|| Condition {
            encoded: Some(random_condition(&mut random, &readable, 1)),
            rest: None,
        });
        let spec = KeyedLookupSpec {
            index_condition: index_condition.clone(),
            row_condition: row_condition.clone(),
            projection: (0..1 + random.below(3))
                .map(|_| *random.pick(&readable))
                .collect(),
            fetch,
            batched: random.chance(70),
            sort_keys: random.chance(70),
            buffer_bytes: 1 + random.below(2000) as usize,
            batch: BatchSize::of_rows(1 + random.below(500) as usize),
            ..lookup(&table, index, parts)
        };
        let mut expected = Vec::new();
        for (outer, key) in keys.iter().enumerate() {
            for row in &rows {
                let is_match = key.iter().zip(&columns).all(|(value, &column)| {
                    !value.is_null()
                        && !row[column].is_null()
                        && compare_values(column, value, &row[column]).is_eq()
                });
                let passes = [&index_condition, &row_condition]
                    .into_iter()
                    .flatten()
                    .flat_map(|condition| &condition.encoded)
                    .all(|condition| is_true(condition, row));
                if is_match && passes {
                    let inner = spec
                        .projection
                        .iter()
                        .map(|&column| row[column].clone())
                        .collect();
                    expected.push((outer as u32, inner));
                }
            }
        }
        let (given, _, _) = run(&spec, &keys);
        assert_eq!(
            sorted_pairs(given),
            sorted_pairs(expected),
            "round {round}: {spec:?}"
        );
    }
}

#[test]
fn ranges_give_what_nested_loops_give() {
    let mut random = Random(17);
    let rows = random_rows(&mut random, 2000);
    let world = World::new(2 << 20);
    let table = world.create(every_kind(), &["id", "line"], &INDEXES);
    world.insert(&rows);
    let mut found = 0;
    for round in 0..80 {
        if round % 5 == 0 {
            world
                .storage
                .drop_cached_pages()
                .expect("pages are written");
        }
        let index = *random.pick(&[
            IndexRef::Clustered,
            IndexRef::Secondary(0),
            IndexRef::Secondary(1),
            IndexRef::Secondary(2),
            IndexRef::Secondary(3),
            IndexRef::Secondary(5),
        ]);
        let columns = match index {
            IndexRef::Clustered => vec![ID, LINE],
            IndexRef::Secondary(position) => index_columns(&table, position),
        };
        let parts = random.below(columns.len() as u64) as usize;
        let ranged = columns[parts];
        let value = |random: &mut Random, column: usize| match random.chance(60) {
            true => random.pick(&rows)[column].clone(),
            false => random_value(random, column),
        };
        let bound = |random: &mut Random| {
            let is_there = random.chance(75);
            is_there.then(|| (value(random, ranged), random.chance(50)))
        };
        let ranges: Vec<Range> = (0..random.below(40))
            .map(|_| {
                let like = random.pick(&rows);
                Range {
                    key: columns[..parts]
                        .iter()
                        .map(|&column| match random.chance(90) {
                            true => like[column].clone(),
                            false => random_value(&mut random, column),
                        })
                        .collect(),
                    lower: bound(&mut random),
                    upper: bound(&mut random),
                }
            })
            .collect();
        let is_secondary = matches!(index, IndexRef::Secondary(_));
        let fetch = match random.below(2) {
            0 => Fetch::Lookup,
            _ => Fetch::MultiRange {
                buffer_bytes: 100 * (1 + random.below(50) as usize),
                sort: *random.pick(&[SortKeys::Auto, SortKeys::Always]),
            },
        };
        let every: Vec<usize> = (0..COLUMNS).collect();
        let index_condition = (is_secondary && random.chance(50)).then(|| Condition {
            encoded: Some(random_condition(&mut random, &columns, 1)),
            rest: None,
        });
        let row_condition = random.chance(50).then(|| Condition {
            encoded: Some(random_condition(&mut random, &every, 1)),
            rest: None,
        });
        let spec = KeyedLookupSpec {
            ranged: true,
            index_condition: index_condition.clone(),
            row_condition: row_condition.clone(),
            fetch,
            batched: random.chance(70),
            sort_keys: random.chance(70),
            buffer_bytes: 1 + random.below(2000) as usize,
            batch: BatchSize::of_rows(1 + random.below(500) as usize),
            ..lookup(&table, index, parts)
        };
        let mut expected = Vec::new();
        for (outer, Range { key, lower, upper }) in ranges.iter().enumerate() {
            for row in &rows {
                let compared = |value: &Value, column: usize| {
                    let is_known = !value.is_null() && !row[column].is_null();
                    is_known.then(|| compare_values(column, &row[column], value))
                };
                let is_match = key
                    .iter()
                    .zip(&columns)
                    .all(|(value, &column)| compared(value, column).is_some_and(|by| by.is_eq()));
                let is_above = lower.as_ref().is_none_or(|(value, included)| {
                    compared(value, ranged).is_some_and(|by| by.is_gt() || *included && by.is_eq())
                });
                let is_below = upper.as_ref().is_none_or(|(value, included)| {
                    compared(value, ranged).is_some_and(|by| by.is_lt() || *included && by.is_eq())
                });
                // Below everything are the NULLs: a range without a lower bound begins with them.
                let passes = [&index_condition, &row_condition]
                    .into_iter()
                    .flatten()
                    .flat_map(|condition| &condition.encoded)
                    .all(|condition| is_true(condition, row));
                let is_below = is_below
                    || lower.is_none()
                        && row[ranged].is_null()
                        && upper.as_ref().is_none_or(|(value, _)| !value.is_null());
                if is_match && is_above && is_below && passes {
                    let inner = spec
                        .projection
                        .iter()
                        .map(|&column| row[column].clone())
                        .collect();
                    expected.push((outer as u32, inner));
                }
            }
        }
        found += expected.len();
        assert_eq!(
            sorted_pairs(run_ranges(&spec, &ranges)),
            sorted_pairs(expected),
            "round {round}: {spec:?}"
        );
    }
    assert!(found > 10_000, "{found}");
}

#[test]
fn equal_keys_share_a_lookup() {
    let world = World::new(2 << 20);
    let table = world.create(every_kind(), &["id", "line"], &INDEXES);
    let mut random = Random(12);
    let mut rows = random_rows(&mut random, 50);
    rows.iter_mut()
        .enumerate()
        .for_each(|(row, values)| values[DAY] = Value::Date(row as i32 % 5));
    world.insert(&rows);
    let keys: Vec<Vec<Value>> = (0..300).map(|row| vec![Value::Date(row % 3)]).collect();

    let (pairs, metrics, counters) = run(&lookup(&table, IndexRef::Secondary(1), 1), &keys);
    let matches: usize = (0..3)
        .map(|day| {
            rows.iter()
                .filter(|row| row[DAY] == Value::Date(day))
                .count()
        })
        .sum();
    assert_eq!(
        pairs.len(),
        matches * 100,
        "each match goes to each outer row"
    );
    assert_eq!(counters.handler_read_key.get(), 3);
    assert_eq!(counters.handler_read_next.get(), matches as u64);
    assert_eq!(metrics.row_lookups, matches as u64);
    assert_eq!(counters.handler_mrr_init.get(), 1);

    let unbatched = KeyedLookupSpec {
        batched: false,
        fetch: Fetch::Lookup,
        ..lookup(&table, IndexRef::Secondary(1), 1)
    };
    let (one_by_one, _, counters) = run(&unbatched, &keys);
    assert_eq!(sorted_pairs(one_by_one), sorted_pairs(pairs));
    assert_eq!(
        counters.handler_read_key.get(),
        300,
        "unsorted keys have no equal neighbours here"
    );
    assert_eq!(counters.handler_mrr_init.get(), 0);
}

#[test]
fn full_buffers_of_keys_are_counted() {
    let world = World::new(2 << 20);
    let table = world.create(every_kind(), &["id", "line"], &INDEXES);
    let mut random = Random(13);
    world.insert(&random_rows(&mut random, 10));
    // A key of INT NOT NULL has 4 bytes: 100 keys fill four buffers of 100 bytes, one after the other.
    let keys: Vec<Vec<Value>> = (0..100).map(|id| vec![Value::Int(id)]).collect();
    let spec = KeyedLookupSpec {
        buffer_bytes: 100,
        ..lookup(&table, IndexRef::Clustered, 1)
    };
    let (_, _, counters) = run(&spec, &keys);
    assert_eq!(counters.handler_mrr_init.get(), 4);
    assert_eq!(counters.handler_mrr_key_refills.get(), 3);
    assert_eq!(counters.handler_read_key.get(), 100);
}
