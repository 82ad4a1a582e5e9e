use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, StringViewArray};
use datafusion_common::{DataFusionError, ScalarValue};
use datafusion_expr::EmitTo;

use super::accumulators::BLOCK_BYTES;
use super::*;
use crate::memory_consumers::out_of_memory_in;
use crate::short_key::short_key;

fn collected(max_bytes: usize) -> Collected {
    let mut collected = Collected::default();
    collected.set_limits(",", max_bytes);
    collected
}

fn alone(collected: Collected) -> Alone {
    Alone {
        collected,
        ..Alone::default()
    }
}

fn result(collected: Collected) -> String {
    let result = alone(collected).evaluate().expect("a text");
    let ScalarValue::Utf8View(Some(text)) = result else {
        panic!("{result:?}");
    };
    text
}

#[test]
fn what_does_not_fit_is_forgotten_and_changes_nothing() {
    let mut random = 1_u64;
    for (is_ordered, is_distinct) in [(false, false), (true, false), (false, true), (true, true)] {
        let (mut short, mut long) = (collected(100), collected(usize::MAX));
        for _ in 0..20_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let text = format!("{}", (random >> 33) % 5_000);
            let order_key = match is_ordered {
                true => text.as_bytes(),
                false => &[],
            };
            let distinct_key = is_distinct.then(|| short_key(text.as_bytes()));
            short
                .add(distinct_key.clone(), order_key, text.as_bytes())
                .expect("room");
            long.add(distinct_key, order_key, text.as_bytes())
                .expect("room");
        }
        assert!(short.texts.capacity() < 200);
        assert!(short.joined.capacity() <= 101);
        assert_eq!(short.bytes < 5_000, !(is_ordered && is_distinct));
        assert_eq!(result(short), result(long)[..100]);
    }
}

#[test]
fn parts_that_have_forgotten_what_does_not_fit_are_put_together() {
    let (mut first, mut second) = (collected(10), collected(10));
    for number in 0..1_000 {
        let part = if number % 2 == 0 {
            &mut first
        } else {
            &mut second
        };
        let text = format!("{number:03}");
        part.add(None, text.as_bytes(), text.as_bytes())
            .expect("room");
    }
    let states = [second, first].map(|part| alone(part).state().expect("a state"));
    let states = states.map(|state| match &state[0] {
        ScalarValue::Binary(Some(bytes)) => bytes.clone(),
        other => panic!("{other:?}"),
    });
    let states: ArrayRef = Arc::new(BinaryArray::from_iter_values(states));
    let mut whole = Alone::default();
    whole.merge_batch(&[states]).expect("whole states");
    assert_eq!(result(whole.collected), "000,001,00");
}

/// The arguments of rows whose texts are their numbers, some of them NULL.
fn arguments(rows: std::ops::Range<i64>) -> Vec<ArrayRef> {
    let length = rows.clone().count();
    let texts = rows.map(|row| (row % 7 > 0).then(|| format!("{row:04}")));
    let texts: Vec<Option<String>> = texts.collect();
    let keys = texts.iter().map(|text| text.as_ref().map(String::as_bytes));
    vec![
        Arc::new(texts.iter().cloned().collect::<StringViewArray>()),
        Arc::new(StringViewArray::from_iter_values(vec![";"; length])),
        Arc::new(arrow::array::Int64Array::from(vec![100; length])),
        Arc::new(BinaryArray::from(vec![None; length])),
        Arc::new(keys.collect::<BinaryArray>()),
    ]
}

#[test]
fn long_states_that_have_left_are_no_way_to_go_on() {
    let long = |row: usize| {
        let mut values = arguments(row as i64..row as i64 + 1);
        values[0] = Arc::new(StringViewArray::from_iter_values(["x".repeat(1_000)]));
        values
    };
    let named = |error: DataFusionError| {
        let DataFusionError::ResourcesExhausted(text) = error else {
            panic!("{error}");
        };
        assert_eq!(out_of_memory_in(&text), Some("GROUP_CONCAT"));
    };
    let (mut first, mut last) = (Groups::default(), Groups::default());
    // Groups that are complete leave, and others follow.
    for row in 1..3 {
        first.update_batch(&long(row), &[0], None, 1).expect("rows");
        let states = first.state(EmitTo::First(1)).expect("states");
        last.merge_batch(&states, &[0], 1).expect("states");
    }
    named(last.state(EmitTo::All).expect_err("it would come back"));
    first.update_batch(&long(3), &[0], None, 1).expect("rows");
    first.state(EmitTo::All).expect("the end, perhaps");
    let more = first.update_batch(&long(4), &[0], None, 1);
    named(more.expect_err("the others are gone"));
}

#[test]
fn results_are_as_long_as_they_may_be() {
    for (max_bytes, expected) in [
        (100, "äöü,€"),
        (10, "äöü,€"),
        (9, "äöü,"),
        (7, "äöü,"),
        (6, "äöü"),
        (5, "äö"),
        (1, ""),
    ] {
        let mut groups = Groups::default();
        groups.grow_to(3);
        for group in 0..2 {
            groups.groups[group] = collected(max_bytes);
            for text in ["äöü", "€"] {
                groups.groups[group]
                    .add(None, &[], text.as_bytes())
                    .expect("room");
            }
        }
        let texts = groups.evaluate(EmitTo::All).expect("results");
        let texts: Vec<_> = texts.as_string_view().iter().collect();
        assert_eq!(texts, [Some(expected), Some(expected), None], "{max_bytes}");
    }
}

#[test]
fn what_is_cut_is_noted_with_the_rows_of_all_groups() {
    let oversized = OversizedResults::default();
    let function = GroupConcat::noting(oversized.clone());
    let mut groups = Groups::new(false, function.cut.clone());
    groups.grow_to(4);
    // Its separator does not fit, its last text does not, all fits, and a long one in a block of its own.
    for (group, (max_bytes, text)) in [
        (5, "12345"),
        (8, "12345"),
        (11, "12345"),
        (BLOCK_BYTES, "12345"),
    ]
    .iter()
    .enumerate()
    {
        groups.groups[group] = collected(*max_bytes);
        for _ in 0..if group == 3 { BLOCK_BYTES } else { 2 } {
            groups.groups[group]
                .add(None, &[], text.as_bytes())
                .expect("room");
        }
    }
    let texts = groups.evaluate(EmitTo::All).expect("results");
    let texts = texts.as_string_view();
    assert_eq!(
        texts.iter().take(3).flatten().collect::<Vec<_>>(),
        ["12345", "12345,12", "12345,12345"]
    );
    assert_eq!(texts.value(3).len(), BLOCK_BYTES);
    let cut = |row: usize| (1260, format!("Row {row} was cut by GROUP_CONCAT()"));
    let last = 6 + (BLOCK_BYTES + 1).div_ceil(6);
    assert_eq!(oversized.take(), (vec![cut(2), cut(4), cut(last)], 0));
    // In a strict mode it is an error, also of sorted texts.
    oversized.refuse();
    let mut sorted = Alone {
        collected: collected(3),
        cut: function.cut.clone(),
    };
    for text in ["b", "a", "c"] {
        sorted
            .collected
            .add(None, text.as_bytes(), text.as_bytes())
            .expect("room");
    }
    let error = sorted.evaluate().expect_err("it is cut");
    let error = EvaluationError::find(&error).expect("one of ours");
    assert_eq!(
        error.message,
        format!("Row {} was cut by GROUP_CONCAT()", last + 3)
    );
}

#[test]
fn keys_are_short_and_different() {
    let (short, long) = ([7; 31], [7; 32]);
    assert_eq!(*short_key(&short), short);
    let digest = short_key(&long);
    assert_eq!(digest.len(), 32);
    assert_ne!(*digest, long);
    assert_ne!(short_key(&digest), digest);
}

const GROUPS: usize = 5;

#[test]
fn all_groups_together_are_what_each_is_alone() {
    let of_groups = Groups::default;
    let mut alone: Vec<Alone> = (0..GROUPS).map(|_| Alone::default()).collect();
    let (mut first, mut second) = (of_groups(), of_groups());
    for start in (0..400).step_by(100) {
        let values = arguments(start..start + 100);
        let indices: Vec<usize> = (0..100).map(|row| row % GROUPS).collect();
        for (row, group) in indices.iter().enumerate() {
            let row: Vec<ArrayRef> = values.iter().map(|array| array.slice(row, 1)).collect();
            Accumulator::update_batch(&mut alone[*group], &row).expect("rows");
        }
        match start {
            0 | 200 => first.update_batch(&values, &indices, None, GROUPS),
            _ => {
                let states = second.convert_to_state(&values, None).expect("states");
                second.merge_batch(&states, &indices, GROUPS)
            }
        }
        .expect("rows");
    }
    // Some leave before the others.
    let few = first.state(EmitTo::First(2)).expect("states");
    let rest = first.state(EmitTo::All).expect("states");
    assert_eq!(first.bytes, 0);
    second.merge_batch(&few, &[0, 1], GROUPS).expect("states");
    second
        .merge_batch(&rest, &[2, 3, 4], GROUPS)
        .expect("states");
    let results = second.evaluate(EmitTo::All).expect("results");
    assert_eq!(second.bytes, 0);
    let results = results.as_string_view();
    for (group, alone) in alone.into_iter().enumerate() {
        assert_eq!(
            results.value(group),
            result(alone.collected),
            "group {group}"
        );
    }
}
