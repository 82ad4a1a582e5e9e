//! Walks with a key filter: they give what a walk over all entries gives, and look at few of them.

mod common;

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::*;
use sheaf_access::{
    BatchSize, CompareOp, Condition, EncodedCondition, Fetch, FirstOf, IndexRef, KeyFilter,
    PartInterval, ScanSpec, SortKeys,
};
use sheaf_storage::{Direction, KeyRange, ReadView};
use sheaf_table::{KeyLayout, PartBounds, Table};
use sheaf_types::Value;

/// A set of values of one key part: as intervals, and as a condition.
struct PartSet {
    intervals: Vec<PartInterval>,
    meaning: EncodedCondition,
}

fn compare(column: usize, op: CompareOp, value: &Value) -> EncodedCondition {
    EncodedCondition::Compare {
        column,
        op,
        value: value.clone(),
    }
}

/// The interval of part `part` that a range over it is, whatever the parts before.
fn interval(layout: &KeyLayout, part: usize, set: impl Fn(&[Value]) -> KeyRange) -> PartInterval {
    let mut prefix = Vec::new();
    let equal: Vec<Value> = layout.parts[..part]
        .iter()
        .map(|part| random_value(&mut Random(7), part.column.expect("no row ids")))
        .collect();
    for (position, value) in equal.iter().enumerate() {
        layout.encode_part(position, value.into(), &mut prefix);
    }
    let range = set(&equal);
    let (Bound::Included(lower), upper) = (range.lower, range.upper) else {
        panic!("ranges of a part begin somewhere");
    };
    PartInterval {
        lower: lower[prefix.len()..].to_vec(),
        upper: match upper {
            Bound::Excluded(upper) => upper.strip_prefix(prefix.as_slice()).map(<[u8]>::to_vec),
            _ => None,
        },
    }
}

/// One value, or NULL.
fn point(layout: &KeyLayout, part: usize, column: usize, value: &Value) -> PartSet {
    let range = |equal: &[Value]| {
        let values: Vec<Value> = equal.iter().chain([value]).cloned().collect();
        layout.range(&values, None).range
    };
    PartSet {
        intervals: vec![interval(layout, part, range)],
        meaning: match value {
            Value::Null => EncodedCondition::IsNull { column },
            value => compare(column, CompareOp::Eq, value),
        },
    }
}

fn between(
    layout: &KeyLayout,
    part: usize,
    column: usize,
    lower: Bound<Value>,
    upper: Bound<Value>,
) -> PartSet {
    let mut terms = vec![EncodedCondition::IsNotNull { column }];
    match &lower {
        Bound::Included(value) => terms.push(compare(column, CompareOp::GreaterOrEqual, value)),
        Bound::Excluded(value) => terms.push(compare(column, CompareOp::Greater, value)),
        Bound::Unbounded => {}
    }
    match &upper {
        Bound::Included(value) => terms.push(compare(column, CompareOp::LessOrEqual, value)),
        Bound::Excluded(value) => terms.push(compare(column, CompareOp::Less, value)),
        Bound::Unbounded => {}
    }
    let bounds = PartBounds::Between { lower, upper };
    let range = |equal: &[Value]| layout.range(equal, Some(&bounds)).range;
    PartSet {
        intervals: vec![interval(layout, part, range)],
        meaning: EncodedCondition::And(terms),
    }
}

/// Several values, a range, several ranges, or nothing at all.
fn random_set(random: &mut Random, layout: &KeyLayout, part: usize, column: usize) -> PartSet {
    let count = [0, 1, 1, 2, 3, 4, 6][random.below(7) as usize];
    let mut values: Vec<Value> = (0..count).map(|_| random_value(random, column)).collect();
    values.sort_by(|a, b| compare_values(column, a, b));
    values.dedup_by(|a, b| compare_values(column, a, b).is_eq());
    let mut sets: Vec<PartSet> = Vec::new();
    let bound = |random: &mut Random, value: &Value| match random.chance(50) {
        true => Bound::Included(value.clone()),
        false => Bound::Excluded(value.clone()),
    };
    match random.below(3) {
        0 => sets.extend(
            values
                .iter()
                .map(|value| point(layout, part, column, value)),
        ),
        1 => {
            values.retain(|value| !value.is_null());
            for pair in values.chunks_exact(2) {
                let (lower, upper) = (bound(random, &pair[0]), bound(random, &pair[1]));
                sets.push(between(layout, part, column, lower, upper));
            }
        }
        _ => {
            values.retain(|value| !value.is_null());
            let open = random.below(3);
            if let (Some(first), Some(last)) = (values.first(), values.last()) {
                if layout.parts[part].nullable && random.chance(50) {
                    sets.push(point(layout, part, column, &Value::Null));
                }
                if open != 0 {
                    let upper = Bound::Excluded(first.clone());
                    sets.push(between(layout, part, column, Bound::Unbounded, upper));
                }
                if open != 1 {
                    let lower = bound(random, last);
                    sets.push(between(layout, part, column, lower, Bound::Unbounded));
                }
            }
        }
    }
    PartSet {
        intervals: sets.iter().flat_map(|set| set.intervals.clone()).collect(),
        meaning: EncodedCondition::Or(sets.into_iter().map(|set| set.meaning).collect()),
    }
}

/// A filter on some of an index's parts, and what it means.
fn random_filter(
    random: &mut Random,
    layout: &KeyLayout,
) -> Option<(Arc<KeyFilter>, EncodedCondition)> {
    let mut meaning = Vec::new();
    let parts = layout
        .parts
        .iter()
        .enumerate()
        .map(|(position, part)| {
            let column = part.column?;
            // The intervals of a prefix part hold more than they mean: the others are enough here.
            if part.prefix_length.is_some() || random.chance(55) {
                return None;
            }
            let set = random_set(random, layout, position, column);
            meaning.push(set.meaning);
            Some(set.intervals)
        })
        .collect();
    let filter = KeyFilter::new(layout, parts)?;
    Some((Arc::new(filter), EncodedCondition::And(meaning)))
}

fn layout_of(table: &Table, index: IndexRef) -> &KeyLayout {
    match index {
        IndexRef::Clustered => &table.clustered_layout,
        IndexRef::Secondary(position) => &table.secondary_layouts[position],
    }
}

/// A range of the index's first part, several, or all of it.
fn random_ranges(random: &mut Random, layout: &KeyLayout) -> Vec<KeyRange> {
    let column = layout.parts[0].column.expect("no row ids");
    if random.chance(50) {
        return vec![KeyRange::all()];
    }
    let mut values: Vec<Value> = (0..6).map(|_| random_value(random, column)).collect();
    values.retain(|value| !value.is_null());
    values.sort_by(|a, b| compare_values(column, a, b));
    values.dedup_by(|a, b| compare_values(column, a, b).is_eq());
    values
        .chunks_exact(2)
        .map(|pair| {
            let bounds = PartBounds::Between {
                lower: Bound::Included(pair[0].clone()),
                upper: Bound::Excluded(pair[1].clone()),
            };
            layout.range(&[], Some(&bounds)).range
        })
        .collect()
}

/// A walk with a filter, and the same without it, testing each entry for what the filter means.
fn random_walks(random: &mut Random, table: &Arc<Table>, view: &ReadView) -> (ScanSpec, ScanSpec) {
    let (index, filter, meaning) = loop {
        let index = match random.below(INDEXES.len() as u64 + 1) as usize {
            0 => IndexRef::Clustered,
            position => IndexRef::Secondary(position - 1),
        };
        if let Some((filter, meaning)) = random_filter(random, layout_of(table, index)) {
            break (index, filter, meaning);
        }
    };
    let layout = layout_of(table, index);
    let held = |column: &usize| layout.part_of(*column).is_some();
    let fetch = match random.below(3) {
        0 => Fetch::Covering,
        1 => Fetch::Lookup,
        _ => Fetch::MultiRange {
            buffer_bytes: 60 * (1 + random.below(40) as usize),
            sort: SortKeys::Always,
        },
    };
    let projection: Vec<usize> = match fetch {
        Fetch::Covering => (0..COLUMNS).filter(held).collect(),
        _ => vec![ID, LINE, A, NOTE],
    };
    let covering = index == IndexRef::Clustered || fetch == Fetch::Covering;
    let further = random.chance(30).then(|| {
        let columns: Vec<usize> = (0..COLUMNS).filter(held).collect();
        random_condition(random, &columns, 1)
    });
    let condition = |terms: Vec<EncodedCondition>| Condition {
        encoded: Some(EncodedCondition::And(terms)),
        rest: None,
    };
    let place = |spec: &mut ScanSpec, terms: Vec<EncodedCondition>| match covering {
        true => spec.row_condition = Some(condition(terms)),
        false => spec.index_condition = Some(condition(terms)),
    };
    let mut stepping = ScanSpec {
        view: view.clone(),
        index,
        ranges: random_ranges(random, layout),
        direction: match random.chance(50) {
            true => Direction::Forward,
            false => Direction::Backward,
        },
        projection,
        fetch,
        limit: random.chance(20).then(|| random.below(50) as usize),
        batch: BatchSize::of_rows(1 + random.below(500) as usize),
        read_ahead_pages: random.below(20) as usize,
        ..ScanSpec::full(Arc::clone(table), Vec::new())
    };
    let mut jumping = stepping.clone();
    jumping.key_filter = Some(filter);
    place(
        &mut stepping,
        further.iter().cloned().chain([meaning]).collect(),
    );
    if let Some(further) = further {
        place(&mut jumping, vec![further]);
    }
    (jumping, stepping)
}

fn assert_same(jumping: &ScanSpec, stepping: &ScanSpec, round: usize) {
    let (given, metrics, _) = run_scan(jumping);
    let (expected, stepped, _) = run_scan(stepping);
    // Without a filter the buffers of a multi-range read are filled alike, so even its order is the same.
    assert_eq!(given, expected, "round {round}: {jumping:?}");
    assert!(
        metrics.index_entries <= stepped.index_entries,
        "round {round}: no entry is looked at twice"
    );
}

#[test]
fn a_filter_gives_what_testing_each_entry_gives() {
    let mut random = Random(31);
    let rows = random_rows(&mut random, 4000);
    let world = World::new(2 << 20);
    let table = world.create(every_kind(), &["id", "line"], &INDEXES);
    world.insert(&rows);
    let view = ReadView::newest();
    for round in 0..800 {
        if round % 9 == 0 {
            world
                .storage
                .drop_cached_pages()
                .expect("pages are written");
        }
        let (jumping, stepping) = random_walks(&mut random, &table, &view);
        assert_same(&jumping, &stepping, round);
    }
}

#[test]
fn composite_primary_keys_are_jumped_through_too() {
    let mut random = Random(37);
    let mut rows = random_rows(&mut random, 4000);
    let key = ["line", "year", "span", "id"];
    let columns = [LINE, YEAR, SPAN, ID];
    rows.sort_by(|a, b| compare_columns(a, b, &columns));
    let world = World::new(2 << 20);
    let table = world.create(every_kind(), &key, &[]);
    world.insert(&rows);
    let layout = &table.clustered_layout;
    for round in 0..200 {
        let Some((filter, meaning)) = random_filter(&mut random, layout) else {
            continue;
        };
        let mut expected: Vec<Vec<Value>> = rows
            .iter()
            .filter(|row| is_true(&meaning, row))
            .cloned()
            .collect();
        let mut spec = ScanSpec::full(Arc::clone(&table), columns.to_vec());
        spec.key_filter = Some(filter);
        if random.chance(50) {
            spec.direction = Direction::Backward;
            expected.reverse();
        }
        let (given, _, _) = run_scan(&spec);
        assert_eq!(
            given,
            project(&expected, &columns),
            "round {round}: {spec:?}"
        );
    }
}

/// Rows come and go while old snapshots are read: each read sees its snapshot, whatever it jumps over.
#[test]
fn old_snapshots_are_jumped_through_while_rows_change() {
    let mut random = Random(41);
    let rows = random_rows(&mut random, 3000);
    let world = World::new(4 << 20);
    let table = world.create(every_kind(), &["id", "line"], &INDEXES);
    world.insert(&rows);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random(43);
            let table = world
                .catalog
                .open_for_write("d", "t", Duration::from_secs(1))
                .expect("nobody else writes");
            while !done.load(Ordering::Relaxed) {
                let mut transaction = world.storage.begin_transaction();
                for _ in 0..20 {
                    let mut row: Vec<Value> = (0..COLUMNS)
                        .map(|column| random_value(&mut random, column))
                        .collect();
                    // A number that no other row has: the sign of the second half of the numbers.
                    row[ID] = Value::Int(1_000_000 + random.below(1 << 30) as i64);
                    // A duplicate is refused, and changes nothing.
                    drop(table.insert(&mut transaction, &row));
                }
                if random.chance(70) {
                    transaction.commit().expect("the disk has room");
                } else {
                    transaction.rollback().expect("a rollback succeeds");
                }
            }
        });
        for round in 0..120 {
            let reader = world.storage.begin_transaction();
            let view = reader.read_view().expect("a snapshot");
            for _ in 0..3 {
                let (jumping, stepping) = random_walks(&mut random, &table, &view);
                assert_same(&jumping, &stepping, round);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// The shape of TPC-H Q19 with KEY (partkey, quantity, shipmode, shipinstruct), as (a, line, day, year): the range ends
/// with the quantity, and jumps go from one shipmode to the next.
fn orders() -> (World, Arc<Table>) {
    let world = World::new(8 << 20);
    let table = world.create(
        every_kind(),
        &["id", "line"],
        &[&["a", "line", "day", "year"]],
    );
    let mut random = Random(51);
    let template: Vec<Value> = (0..COLUMNS)
        .map(|column| random_value(&mut random, column))
        .collect();
    let rows: Vec<Vec<Value>> = (0..40_000)
        .map(|id| {
            let mut row = template.clone();
            row[ID] = Value::Int(id);
            row[A] = Value::Int(id % 2);
            row[LINE] = Value::Int(id / 2 % 50);
            row[DAY] = Value::Date((id / 100 % 7) as i32);
            row[YEAR] = Value::Year(1990 + (id / 700 % 4) as u16);
            row
        })
        .collect();
    world.insert(&rows);
    (world, table)
}

#[test]
fn the_jumps_of_q19_look_at_a_tenth_of_the_entries() {
    let (_world, table) = orders();
    let layout = &table.secondary_layouts[0];
    let quantities = PartBounds::Between {
        lower: Bound::Included(Value::Int(1)),
        upper: Bound::Included(Value::Int(11)),
    };
    let modes = [Value::Date(2), Value::Date(5)];
    let mode_sets: Vec<PartSet> = modes
        .iter()
        .map(|mode| point(layout, 2, DAY, mode))
        .collect();
    let instruct = point(layout, 3, YEAR, &Value::Year(1992));
    let filter = KeyFilter::new(
        layout,
        vec![
            None,
            None,
            Some(
                mode_sets
                    .iter()
                    .flat_map(|set| set.intervals.clone())
                    .collect(),
            ),
            Some(instruct.intervals.clone()),
        ],
    );
    let mut spec = ScanSpec {
        index: IndexRef::Secondary(0),
        ranges: vec![layout.range(&[Value::Int(1)], Some(&quantities)).range],
        fetch: Fetch::Lookup,
        ..ScanSpec::full(Arc::clone(&table), vec![ID, PRICE])
    };
    let mut stepping = spec.clone();
    stepping.index_condition = Some(Condition {
        encoded: Some(EncodedCondition::And(vec![
            EncodedCondition::In {
                column: DAY,
                values: modes.to_vec(),
            },
            instruct.meaning,
        ])),
        rest: None,
    });
    let (expected, stepped, _) = run_scan(&stepping);
    spec.key_filter = filter.map(Arc::new);
    for direction in [Direction::Forward, Direction::Backward] {
        spec.direction = direction;
        let (mut given, metrics, counters) = run_scan(&spec);
        if direction == Direction::Backward {
            given.reverse();
        }
        assert_eq!(given, expected);
        assert_eq!(metrics.icp_match, expected.len() as u64);
        assert_eq!(metrics.icp_attempts, metrics.icp_match + metrics.jumps);
        assert_eq!(counters.sheaf_index_jumps.get(), metrics.jumps);
        // Per quantity: from each mode to the next, past the last, and where the quantity begins or ends.
        assert!(metrics.jumps <= 11 * 4 + 1, "{} jumps", metrics.jumps);
        assert!(
            metrics.icp_attempts * 10 <= stepped.icp_attempts,
            "{} entries examined, {} when stepping",
            metrics.icp_attempts,
            stepped.icp_attempts
        );
    }
}

/// A condition on the second part alone: one range per value of the first.
#[test]
fn a_missing_first_part_is_skipped() {
    let (_world, table) = orders();
    let layout = &table.secondary_layouts[0];
    let mut parts = vec![None; layout.parts.len()];
    parts[1] = Some(point(layout, 1, LINE, &Value::Int(30)).intervals);
    let spec = ScanSpec {
        index: IndexRef::Secondary(0),
        key_filter: KeyFilter::new(layout, parts).map(Arc::new),
        fetch: Fetch::Covering,
        ..ScanSpec::full(Arc::clone(&table), vec![A, LINE])
    };
    let (given, metrics, counters) = run_scan(&spec);
    let expected: Vec<Vec<Value>> = [0, 1]
        .iter()
        .flat_map(|a| vec![vec![Value::Int(*a), Value::Int(30)]; 400])
        .collect();
    assert_eq!(given, expected);
    assert_eq!(
        metrics.jumps, 4,
        "to the value, and past it, for each of two"
    );
    assert_eq!(counters.handler_icp_attempts.get(), 0, "no row is fetched");
}

/// The first entries of groups, in either direction, with and without a filter: as picked from the whole walk.
#[test]
fn a_loose_scan_gives_the_first_entry_of_each_group() {
    let mut random = Random(61);
    let rows = random_rows(&mut random, 3000);
    let world = World::new(2 << 20);
    let table = world.create(every_kind(), &["id", "line"], &INDEXES);
    world.insert(&rows);
    for round in 0..300 {
        let position = random.below(4) as usize;
        let columns = index_columns(&table, position);
        let layout = &table.secondary_layouts[position];
        let first_of = FirstOf {
            parts: random.below(columns.len() as u64) as usize,
            nulls_apart: random.chance(50),
        };
        let filter = random_filter(&mut random, layout).filter(|_| random.chance(50));
        let whole = ScanSpec {
            index: IndexRef::Secondary(position),
            ranges: random_ranges(&mut random, layout),
            key_filter: filter.map(|(filter, _)| filter),
            direction: match random.chance(50) {
                true => Direction::Forward,
                false => Direction::Backward,
            },
            fetch: Fetch::Covering,
            ..ScanSpec::full(Arc::clone(&table), columns.clone())
        };
        let (mut expected, _, _) = run_scan(&whole);
        let next_is_null = |row: &[Value]| first_of.nulls_apart && row[first_of.parts].is_null();
        expected.dedup_by(|row, before| {
            let same = |at: usize| compare_values(columns[at], &row[at], &before[at]).is_eq();
            (0..first_of.parts).all(same) && next_is_null(row) == next_is_null(before)
        });
        let loose = ScanSpec {
            first_of: Some(first_of),
            ..whole
        };
        let (mut given, metrics, counters) = run_scan(&loose);
        // A range that ends within a group begins the group anew.
        given.dedup_by(|row, before| {
            let same = |at: usize| compare_values(columns[at], &row[at], &before[at]).is_eq();
            (0..first_of.parts).all(same) && next_is_null(row) == next_is_null(before)
        });
        assert_eq!(given, expected, "round {round}: {loose:?}");
        assert_eq!(metrics.rows_examined + metrics.jumps, metrics.index_entries);
        assert!(counters.handler_read_key.get() >= metrics.rows);
    }
}

#[test]
fn the_least_value_of_an_index_is_one_entry() {
    let (_world, table) = orders();
    for (direction, id) in [(Direction::Forward, 0), (Direction::Backward, 1)] {
        let spec = ScanSpec {
            index: IndexRef::Secondary(0),
            first_of: Some(FirstOf {
                parts: 0,
                nulls_apart: true,
            }),
            direction,
            fetch: Fetch::Covering,
            ..ScanSpec::full(Arc::clone(&table), vec![A])
        };
        let (given, metrics, _) = run_scan(&spec);
        assert_eq!(given, [[Value::Int(id)]]);
        assert_eq!(metrics.index_entries, 1);
    }
}
