//! Keyed lookups against a model: nested loops over vectors.

mod common;

use std::sync::Arc;

use common::*;
use sheaf_access::{
    CancelFlag, Condition, Fetch, IndexRef, KeyedLookup, KeyedLookupSpec, ScanMetrics,
    SessionCounters, SortKeys,
};
use sheaf_table::{Table, ValueRef};
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
        batch_rows: 1000,
    }
}

/// Looks up the keys of outer row 0, 1, ... Returns (outer row, projected inner row) pairs.
fn run(spec: &KeyedLookupSpec, keys: &[Vec<Value>]) -> (Pairs, ScanMetrics, Arc<SessionCounters>) {
    let counters = Arc::new(SessionCounters::default());
    let spec = Arc::new(spec.clone());
    let mut lookup = KeyedLookup::new(Arc::clone(&spec), Arc::clone(&counters), CancelFlag::new())
        .expect("possible");
    let layout = match spec.index {
        IndexRef::Clustered => &spec.table.clustered_layout,
        IndexRef::Secondary(position) => &spec.table.secondary_layouts[position],
    };
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
    for (row, key) in keys.iter().enumerate() {
        if key.iter().any(Value::is_null) {
            continue;
        }
        let mut encoded = Vec::new();
        for (part, value) in key.iter().enumerate() {
            layout.encode_part(part, ValueRef::from(value), &mut encoded);
        }
        if lookup.full() {
            drain(&mut lookup);
        }
        lookup.push(&encoded, row as u32);
    }
    drain(&mut lookup);
    (pairs, lookup.metrics(), counters)
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
            batch_rows: 1 + random.below(500) as usize,
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
