//! Scans against a model: the rows in a vector, filtered and sorted the naive way.

mod common;

use std::ops::Bound;
use std::sync::Arc;

use arrow::array::cast::AsArray;
use arrow::array::{BooleanArray, RecordBatch};
use arrow::datatypes::Int32Type;
use common::*;
use sheaf_access::{
    BatchCondition, BatchSize, CancelFlag, ColumnsCondition, Condition, EncodedCondition, Fetch,
    IndexRef, Result, Scan, ScanSpec, SessionCounters, SortKeys, split_ranges,
};
use sheaf_storage::{Direction, KeyRange};
use sheaf_table::{KeyLayout, PartBounds, Table};
use sheaf_types::Value;

/// `column % 3 = remainder` on an INT column; NULL is not true.
#[derive(Debug)]
struct Modulo {
    remainder: i32,
}

impl BatchCondition for Modulo {
    fn is_same(&self, _: &dyn BatchCondition) -> bool {
        false
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        assert_eq!(batch.num_columns(), 1);
        let numbers = batch.column(0).as_primitive::<Int32Type>();
        Ok(numbers
            .iter()
            .map(|number| number.map(|number| number.rem_euclid(3) == self.remainder))
            .collect())
    }
}

fn modulo(column: usize, remainder: i32) -> ColumnsCondition {
    ColumnsCondition {
        columns: vec![column],
        condition: Arc::new(Modulo { remainder }),
    }
}

fn modulo_is_true(column: usize, remainder: i32, row: &[Value]) -> bool {
    matches!(row[column], Value::Int(number) if number.rem_euclid(3) == i64::from(remainder))
}

/// Ranges of an index, and what they mean.
struct Ranges {
    ranges: Vec<KeyRange>,
    /// A row lies in one of the ranges if one of these is true of it.
    meaning: EncodedCondition,
}

fn random_ranges(random: &mut Random, layout: &KeyLayout, columns: &[usize]) -> Ranges {
    use EncodedCondition::{And, Compare, IsNull, Or};
    use sheaf_access::CompareOp::{Eq, GreaterOrEqual, Less};
    let first = columns[0];
    let equal = |column: usize, value: &Value| match value {
        Value::Null => IsNull { column },
        value => Compare {
            column,
            op: Eq,
            value: value.clone(),
        },
    };
    match random.below(4) {
        0 => Ranges {
            ranges: vec![KeyRange::all()],
            meaning: And(Vec::new()),
        },
        1 => {
            let mut bounds = [random_value(random, first), random_value(random, first)];
            bounds.sort_by(|a, b| compare_values(first, a, b));
            let [low, high] = bounds;
            if low.is_null() {
                let range = layout.range(
                    &[],
                    Some(&PartBounds::Between {
                        lower: Bound::Unbounded,
                        upper: Bound::Unbounded,
                    }),
                );
                return Ranges {
                    ranges: vec![range.range],
                    meaning: EncodedCondition::IsNotNull { column: first },
                };
            }
            let between = PartBounds::Between {
                lower: Bound::Included(low.clone()),
                upper: Bound::Excluded(high.clone()),
            };
            let meaning = And(vec![
                Compare {
                    column: first,
                    op: GreaterOrEqual,
                    value: low,
                },
                Compare {
                    column: first,
                    op: Less,
                    value: high,
                },
            ]);
            Ranges {
                ranges: vec![layout.range(&[], Some(&between)).range],
                meaning,
            }
        }
        2 => {
            let mut values: Vec<Value> = (0..1 + random.below(6))
                .map(|_| random_value(random, first))
                .collect();
            values.sort_by(|a, b| compare_values(first, a, b));
            values.dedup_by(|a, b| compare_values(first, a, b).is_eq());
            let meaning = Or(values.iter().map(|value| equal(first, value)).collect());
            let ranges = values
                .iter()
                .map(|value| layout.range(std::slice::from_ref(value), None).range)
                .collect();
            Ranges { ranges, meaning }
        }
        _ => {
            let value = random_value(random, first);
            let Some(&second) = columns.get(1) else {
                let meaning = equal(first, &value);
                return Ranges {
                    ranges: vec![layout.range(&[value], None).range],
                    meaning,
                };
            };
            let mut low = random_value(random, second);
            while low.is_null() {
                low = random_value(random, second);
            }
            let bounds = PartBounds::Between {
                lower: Bound::Included(low.clone()),
                upper: Bound::Unbounded,
            };
            let meaning = And(vec![
                equal(first, &value),
                Compare {
                    column: second,
                    op: GreaterOrEqual,
                    value: low,
                },
            ]);
            Ranges {
                ranges: vec![layout.range(&[value], Some(&bounds)).range],
                meaning,
            }
        }
    }
}

/// What one random scan does, and the rows it must give, in the order of the index.
struct Case {
    spec: ScanSpec,
    expected: Vec<Vec<Value>>,
}

fn random_case(random: &mut Random, table: &Arc<Table>, rows: &[Vec<Value>]) -> Case {
    let index = match random.below(INDEXES.len() as u64 + 1) as usize {
        0 => IndexRef::Clustered,
        position => IndexRef::Secondary(position - 1),
    };
    let (layout, mut order) = match index {
        IndexRef::Clustered => (&table.clustered_layout, vec![ID, LINE]),
        IndexRef::Secondary(position) => (
            &table.secondary_layouts[position],
            index_columns(table, position),
        ),
    };
    // Ranges over a prefix part are wider than what they mean; their meaning is tested as a row condition then.
    let has_prefix = layout.parts[0].prefix_length.is_some();
    let ranges = random_ranges(random, layout, &order);
    let decodable: Vec<usize> = (0..COLUMNS)
        .filter(|&column| layout.part_of(column).is_some())
        .collect();
    let fetch = match (index, random.below(4)) {
        (IndexRef::Clustered, _) => Fetch::Covering,
        (_, 0) if !has_prefix => Fetch::Covering,
        (_, 0 | 1) => Fetch::Lookup,
        (_, 2) => Fetch::MultiRange {
            buffer_bytes: 60 * (1 + random.below(40) as usize),
            sort: SortKeys::Auto,
        },
        _ => Fetch::MultiRange {
            buffer_bytes: 6 * (1 + random.below(500) as usize),
            sort: SortKeys::Always,
        },
    };
    let readable: Vec<usize> = match (index, fetch) {
        (IndexRef::Secondary(_), Fetch::Covering) => decodable.clone(),
        _ => (0..COLUMNS).collect(),
    };
    let projection: Vec<usize> = (0..random.below(5))
        .map(|_| *random.pick(&readable))
        .collect();

    let index_condition = (fetch != Fetch::Covering && random.chance(60)).then(|| Condition {
        encoded: random
            .chance(70)
            .then(|| random_condition(random, &decodable, 2)),
        rest: (random.chance(30) && decodable.contains(&A)).then(|| modulo(A, 1)),
    });
    let mut row_encoded = random
        .chance(60)
        .then(|| random_condition(random, &readable, 2));
    if has_prefix {
        let meaning = ranges.meaning.clone();
        row_encoded = Some(EncodedCondition::And(
            row_encoded.into_iter().chain([meaning]).collect(),
        ));
    }
    let rest = random
        .chance(30)
        .then(|| *random.pick(&[A, ID]))
        .filter(|column| readable.contains(column));
    let row_condition = Condition {
        encoded: row_encoded,
        rest: rest.map(|column| modulo(column, 2)),
    };

    let mut expected: Vec<Vec<Value>> = rows
        .iter()
        .filter(|row| is_true(&ranges.meaning, row))
        .filter(|row| {
            index_condition.as_ref().is_none_or(|condition| {
                condition
                    .encoded
                    .as_ref()
                    .is_none_or(|encoded| is_true(encoded, row))
                    && (condition.rest.is_none() || modulo_is_true(A, 1, row))
            })
        })
        .filter(|row| {
            row_condition
                .encoded
                .as_ref()
                .is_none_or(|encoded| is_true(encoded, row))
        })
        .filter(|row| rest.is_none_or(|column| modulo_is_true(column, 2, row)))
        .cloned()
        .collect();
    order.extend([ID, LINE]);
    if !has_prefix {
        expected.sort_by(|a, b| compare_columns(a, b, &order));
    }
    let direction = if random.chance(50) {
        Direction::Forward
    } else {
        Direction::Backward
    };
    if direction == Direction::Backward {
        expected.reverse();
    }
    let limit = random
        .chance(40)
        .then(|| random.below(expected.len() as u64 + 3) as usize);
    let spec = ScanSpec {
        view: sheaf_storage::ReadView::newest(),
        table: Arc::clone(table),
        index,
        ranges: ranges.ranges,
        key_filter: None,
        first_of: None,
        merge: None,
        direction,
        index_condition,
        row_condition: Some(row_condition),
        projection,
        fetch,
        limit,
        batch: BatchSize::of_rows(1 + random.below(3000) as usize),
        read_ahead_pages: random.below(20) as usize,
    };
    Case { spec, expected }
}

#[test]
fn scans_give_what_the_model_gives() {
    let mut random = Random(1);
    let rows = random_rows(&mut random, 3000);
    let world = World::new(2 << 20);
    let table = world.create(every_kind(), &["id", "line"], &INDEXES);
    world.insert(&rows);
    for round in 0..600 {
        if round % 7 == 0 {
            world
                .storage
                .drop_cached_pages()
                .expect("pages are written");
        }
        let Case { spec, expected } = random_case(&mut random, &table, &rows);
        let (given, metrics, _) = run_scan(&spec);
        let context = format!("round {round}: {spec:?}");
        let is_ordered = !matches!(spec.fetch, Fetch::MultiRange { .. }) && index_is_total(&spec);
        let expected = project(&expected, &spec.projection);
        match spec.limit {
            Some(limit) if is_ordered => {
                assert_eq!(given, expected[..limit.min(expected.len())], "{context}")
            }
            Some(limit) => {
                assert_eq!(given.len(), limit.min(expected.len()), "{context}");
                let known = sorted(expected);
                assert!(given.iter().all(|row| known.contains(row)), "{context}");
            }
            None if is_ordered => assert_eq!(given, expected, "{context}"),
            None => assert_eq!(sorted(given.clone()), sorted(expected), "{context}"),
        }
        assert_eq!(metrics.rows, given.len() as u64);
    }
}

/// Whether the model knows the whole order of the index.
fn index_is_total(spec: &ScanSpec) -> bool {
    match spec.index {
        IndexRef::Clustered => true,
        IndexRef::Secondary(position) => spec.table.definition.secondary[position]
            .parts
            .iter()
            .all(|part| part.prefix_length.is_none()),
    }
}

#[test]
fn shares_of_a_scan_give_together_what_the_scan_gives() {
    let mut random = Random(2);
    let rows = random_rows(&mut random, 4000);
    let world = World::new(4 << 20);
    let table = world.create(every_kind(), &["id", "line"], &INDEXES);
    world.insert(&rows);
    for parts in [1, 2, 3, 8] {
        for index in [
            IndexRef::Clustered,
            IndexRef::Secondary(1),
            IndexRef::Secondary(3),
        ] {
            let layout = match index {
                IndexRef::Clustered => &table.clustered_layout,
                IndexRef::Secondary(position) => &table.secondary_layouts[position],
            };
            let columns = match index {
                IndexRef::Clustered => vec![ID, LINE],
                IndexRef::Secondary(position) => index_columns(&table, position),
            };
            let Ranges { ranges, .. } = random_ranges(&mut random, layout, &columns);
            let spec = ScanSpec {
                index,
                ranges: ranges.clone(),
                fetch: Fetch::Lookup,
                ..ScanSpec::full(Arc::clone(&table), vec![ID, LINE, NOTE])
            };
            let (whole, _, _) = run_scan(&spec);
            let shares = split_ranges(&table, index, &ranges, parts).expect("the tree can be read");
            assert!(shares.len() <= parts && shares.iter().all(|share| !share.is_empty()));
            let mut together = Vec::new();
            for share in shares {
                let (part, _, _) = run_scan(&ScanSpec {
                    ranges: share,
                    ..spec.clone()
                });
                together.extend(part);
            }
            assert_eq!(together, whole, "{parts} parts of {index:?}");
        }
    }
    let all = [KeyRange::all()];
    let shares = split_ranges(&table, IndexRef::Clustered, &all, 4).expect("the tree can be read");
    assert_eq!(shares.len(), 4, "4000 rows fill more than 4 leaves");
}

#[test]
fn sorted_multi_range_reads_give_primary_key_order() {
    let mut random = Random(3);
    let rows = random_rows(&mut random, 2000);
    let world = World::new(2 << 20);
    let table = world.create(every_kind(), &["id", "line"], &INDEXES);
    world.insert(&rows);
    let scan = |sort| ScanSpec {
        index: IndexRef::Secondary(1),
        fetch: Fetch::MultiRange {
            buffer_bytes: 1 << 20,
            sort,
        },
        ..ScanSpec::full(Arc::clone(&table), vec![ID, LINE])
    };
    let in_key_order = project(&rows, &[ID, LINE]);
    assert_eq!(run_scan(&scan(SortKeys::Always)).0, in_key_order);

    world
        .storage
        .drop_cached_pages()
        .expect("pages are written");
    let (cold, metrics, _) = run_scan(&scan(SortKeys::Auto));
    assert_eq!(cold, in_key_order, "pages on disk: sorted");
    assert_eq!(metrics.mrr_sorted_buffers, 1);
    assert!(metrics.prefetched_pages > 0);

    let (warm, metrics, _) = run_scan(&scan(SortKeys::Auto));
    assert_ne!(
        warm, in_key_order,
        "in memory, and small enough for the processor's caches: as the index has them"
    );
    assert_eq!(
        (metrics.mrr_sorted_buffers, metrics.prefetched_pages),
        (0, 0)
    );
    assert_eq!(sorted(warm), sorted(in_key_order));
}

#[test]
fn a_cancelled_scan_stops() {
    let mut random = Random(4);
    let rows = random_rows(&mut random, 2000);
    let world = World::new(2 << 20);
    let table = world.create(every_kind(), &["id", "line"], &INDEXES);
    world.insert(&rows);
    for fetch in [
        Fetch::Lookup,
        Fetch::MultiRange {
            buffer_bytes: 600,
            sort: SortKeys::Always,
        },
    ] {
        let cancel = CancelFlag::new();
        let spec = Arc::new(ScanSpec {
            index: IndexRef::Secondary(0),
            fetch,
            batch: BatchSize::of_rows(100),
            ..ScanSpec::full(Arc::clone(&table), vec![ID])
        });
        let counters = Arc::new(SessionCounters::default());
        let mut scan = Scan::new(
            Arc::clone(&spec),
            spec.ranges.clone(),
            counters,
            cancel.clone(),
        )
        .expect("possible");
        assert!(scan.next_batch().expect("not cancelled yet").is_some());
        cancel.cancel();
        while let Ok(batch) = scan.next_batch() {
            assert!(
                batch.is_some(),
                "a cancelled scan does not end as if it were complete"
            );
        }
        assert!(scan.next_batch().expect("over").is_none());
    }
}
