//! Index merges against a model: which rows any, or all, of the conditions accept.

mod common;

use std::ops::Bound;
use std::sync::Arc;

use common::*;
use sheaf_access::{
    CompareOp, Condition, EncodedCondition, IndexRef, MergeInput, MergeKind, MergeSpec, ScanSpec,
};
use sheaf_storage::ReadView;
use sheaf_table::{PartBounds, Table};
use sheaf_types::Value;

/// An index, ranges of its first part, perhaps a condition on its entries; and what they mean together.
fn random_input(random: &mut Random, table: &Table) -> (MergeInput, EncodedCondition) {
    let index = *random.pick(&[
        IndexRef::Clustered,
        IndexRef::Secondary(0),
        IndexRef::Secondary(1),
        IndexRef::Secondary(2),
        IndexRef::Secondary(3),
        IndexRef::Secondary(5),
    ]);
    let (layout, columns) = match index {
        IndexRef::Clustered => (&table.clustered_layout, vec![ID, LINE]),
        IndexRef::Secondary(position) => (
            &table.secondary_layouts[position],
            index_columns(table, position),
        ),
    };
    let column = columns[0];
    let mut value = || loop {
        let value = random_value(random, column);
        if !value.is_null() {
            return value;
        }
    };
    let mut bounds = [value(), value()];
    bounds.sort_by(|a, b| compare_values(column, a, b));
    let [low, high] = bounds;
    let mut meaning = EncodedCondition::between(column, low.clone(), high.clone());
    let between = PartBounds::Between {
        lower: Bound::Included(low),
        upper: Bound::Included(high),
    };
    let index_condition = (index != IndexRef::Clustered && random.chance(30)).then(|| {
        let decodable: Vec<usize> = (0..COLUMNS)
            .filter(|&column| layout.part_of(column).is_some())
            .collect();
        let condition = random_condition(random, &decodable, 1);
        meaning = EncodedCondition::And(vec![meaning.clone(), condition.clone()]);
        Condition {
            encoded: Some(condition),
            rest: None,
        }
    });
    let input = MergeInput {
        index,
        ranges: vec![layout.range(&[], Some(&between)).range],
        key_filter: None,
        index_condition,
    };
    (input, meaning)
}

fn merge(table: &Arc<Table>, kind: MergeKind, inputs: Vec<MergeInput>) -> ScanSpec {
    ScanSpec {
        merge: Some(Arc::new(MergeSpec {
            kind,
            inputs,
            buffer_bytes: 0,
            read_buffer_bytes: 600,
        })),
        ..ScanSpec::full(Arc::clone(table), vec![ID, LINE, A, NOTE])
    }
}

#[test]
fn a_union_searches_each_of_its_indexes_and_an_intersection_one() {
    let world = World::new(2 << 20);
    let table = world.create(every_kind(), &["id", "line"], &INDEXES);
    let mut random = Random(3);
    let (one, _) = random_input(&mut random, &table);
    let (two, _) = random_input(&mut random, &table);
    let searched = |kind| {
        let spec = merge(&table, kind, vec![one.clone(), two.clone()]);
        assert!(spec.is_filtered() && !spec.is_in_order());
        let searches = spec.searches().into_iter();
        searches
            .map(|search| (search.index, search.ranges))
            .collect::<Vec<_>>()
    };
    let of = |input: &MergeInput| (input.index.secondary(), input.ranges.clone());
    assert_eq!(searched(MergeKind::Union), [of(&one), of(&two)]);
    assert_eq!(searched(MergeKind::Intersection), [of(&one)]);
    let full = ScanSpec::full(Arc::clone(&table), vec![ID]);
    let searches = full.searches();
    let [whole] = searches.as_slice() else {
        panic!("one search");
    };
    assert_eq!(whole.index, None);
    assert!(!full.is_filtered() && full.is_in_order() && !whole.reads_rows);
}

#[test]
fn merges_give_what_the_model_gives() {
    let mut random = Random(71);
    // So many that the keys of broad conditions take more than one pass.
    let rows = random_rows(&mut random, 9000);
    let world = World::new(2 << 20);
    let table = world.create(every_kind(), &["id", "line"], &INDEXES);
    world.insert(&rows);
    let mut passes = 0;
    for round in 0..200 {
        let kind = *random.pick(&[MergeKind::Union, MergeKind::Intersection]);
        let (inputs, meanings): (Vec<_>, Vec<_>) = (0..2 + random.below(3))
            .map(|_| random_input(&mut random, &table))
            .unzip();
        let meaning = match kind {
            MergeKind::Union => EncodedCondition::Or(meanings),
            MergeKind::Intersection => EncodedCondition::And(meanings),
        };
        let input_count = inputs.len() as u64;
        let mut spec = merge(&table, kind, inputs);
        let further = random.chance(40).then(|| {
            let columns: Vec<usize> = (0..COLUMNS).collect();
            random_condition(&mut random, &columns, 1)
        });
        spec.row_condition = further.clone().map(|encoded| Condition {
            encoded: Some(encoded),
            rest: None,
        });
        spec.limit = random.chance(20).then(|| random.below(100) as usize);
        let mut expected: Vec<Vec<Value>> = rows
            .iter()
            .filter(|row| is_true(&meaning, row))
            .filter(|row| further.as_ref().is_none_or(|further| is_true(further, row)))
            .cloned()
            .collect();
        if let Some(limit) = spec.limit {
            expected.truncate(limit);
        }
        let (given, _, counters) = run_scan(&spec);
        let expected = project(&expected, &spec.projection);
        assert_eq!(given, expected, "round {round}: rows in primary key order");
        assert_eq!(counters.handler_read_key.get() % input_count, 0);
        passes = passes.max(counters.handler_read_key.get() / input_count);
    }
    assert!(passes > 1, "no merge took more than one pass");
}

#[test]
fn a_merge_sees_its_snapshot() {
    let mut random = Random(73);
    let rows = random_rows(&mut random, 500);
    let world = World::new(2 << 20);
    let table = world.create(every_kind(), &["id", "line"], &INDEXES);
    world.insert(&rows[..300]);
    let reader = world.storage.begin_transaction();
    let view = reader.read_view().expect("a snapshot");
    world.insert(&rows[300..]);
    let layout = |position: usize| &table.secondary_layouts[position];
    let not_null = |position: usize| MergeInput {
        index: IndexRef::Secondary(position),
        ranges: vec![
            layout(position)
                .range(
                    &[],
                    Some(&PartBounds::Between {
                        lower: Bound::Unbounded,
                        upper: Bound::Unbounded,
                    }),
                )
                .range,
        ],
        key_filter: None,
        index_condition: None,
    };
    let both = |row: &&Vec<Value>| !row[A].is_null() && !row[DAY].is_null();
    for (view, rows) in [(view, &rows[..300]), (ReadView::newest(), &rows[..])] {
        let inputs = vec![not_null(0), not_null(1)];
        let spec = ScanSpec {
            view,
            ..merge(&table, MergeKind::Intersection, inputs)
        };
        let expected: Vec<Vec<Value>> = rows.iter().filter(both).cloned().collect();
        let (given, metrics, counters) = run_scan(&spec);
        assert_eq!(given, project(&expected, &spec.projection));
        assert_eq!(metrics.row_lookups, given.len() as u64, "only rows of both");
        assert_eq!(counters.handler_read_rnd.get(), given.len() as u64);
    }
}

#[test]
fn a_union_reads_a_row_once() {
    let mut random = Random(79);
    let rows = random_rows(&mut random, 500);
    let world = World::new(2 << 20);
    let table = world.create(every_kind(), &["id", "line"], &INDEXES);
    world.insert(&rows);
    let same = |value: i64| MergeInput {
        index: IndexRef::Secondary(0),
        ranges: vec![
            table.secondary_layouts[0]
                .range(&[Value::Int(value)], None)
                .range,
        ],
        key_filter: None,
        index_condition: None,
    };
    let spec = merge(&table, MergeKind::Union, vec![same(3), same(3), same(4)]);
    let (given, metrics, _) = run_scan(&spec);
    let is_three_or_four = EncodedCondition::Or(vec![
        EncodedCondition::Compare {
            column: A,
            op: CompareOp::Eq,
            value: Value::Int(3),
        },
        EncodedCondition::Compare {
            column: A,
            op: CompareOp::Eq,
            value: Value::Int(4),
        },
    ]);
    let expected = rows.iter().filter(|row| is_true(&is_three_or_four, row));
    assert_eq!(given.len(), expected.count());
    assert_eq!(metrics.row_lookups, given.len() as u64);
}
