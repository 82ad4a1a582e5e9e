//! Encoded keys order as their values do, and give the values back.

use std::cmp::Ordering;
use std::ops::Bound;

use proptest::collection::vec;
use proptest::prelude::*;
use sheaf_storage::TreeId;
use sheaf_table::{Column, Index, IndexPart, KeyLayout, PartBounds, TableDefinition, ValueRef};
use sheaf_types::number::{Int256, Wide};
use sheaf_types::{Collation, ColumnType, Value};

/// A table whose index `k` has the given columns, with a primary key of one INT that comes last.
fn table(columns: &[(&str, bool, Option<u32>)]) -> (TableDefinition, KeyLayout) {
    let index = |id, parts, primary| Index {
        id,
        name: "k".into(),
        parts,
        unique: primary,
        primary,
        tree: TreeId(9),
        comment: String::new(),
        invisible: false,
    };
    let mut all: Vec<Column> = columns
        .iter()
        .enumerate()
        .map(|(i, (ty, nullable, _))| {
            Column::new(format!("c{i}"), ColumnType::parse(ty).unwrap(), *nullable)
        })
        .collect();
    all.push(Column::new(
        "id",
        ColumnType::Int {
            sign: sheaf_types::column_type::Sign::Signed,
        },
        false,
    ));
    let part = |column, prefix_length| IndexPart {
        column,
        prefix_length,
        descending: false,
    };
    let parts = columns
        .iter()
        .enumerate()
        .map(|(i, (_, _, prefix))| part(i, *prefix))
        .collect();
    let definition = TableDefinition {
        id: 1,
        database: "d".into(),
        name: "t".into(),
        primary: index(0, vec![part(columns.len(), None)], true),
        secondary: vec![index(1, parts, false)],
        columns: all,
        collation: Collation::default(),
        comment: String::new(),
        overflow: None,
        auto_increment_start: 1,
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        shape: None,
    };
    let layout = KeyLayout::secondary(&definition, &definition.secondary[0]);
    (definition, layout)
}

fn entry(layout: &KeyLayout, row: &[Value]) -> (Vec<u8>, Vec<u8>) {
    let (mut key, mut payload) = (Vec::new(), Vec::new());
    layout.encode_entry(
        |column| ValueRef::from(&row[column]),
        0,
        &mut key,
        &mut payload,
    );
    (key, payload)
}

const TYPES: [&str; 18] = [
    "int",
    "mediumint",
    "bigint unsigned",
    "decimal(15,2)",
    "decimal(38,0)",
    "decimal(39,0)",
    "decimal(65,30)",
    "double",
    "float",
    "date",
    "time(6)",
    "varbinary(40)",
    "varchar(40) collate utf8mb4_bin",
    "varchar(40) collate utf8mb4_general_ci",
    "varchar(40)",
    "enum('a','b','c')",
    "set('a','b','c')",
    "bit(20)",
];

/// Characters with something special about them: case, accents, expansions, escapes, spaces, other planes.
fn text() -> impl Strategy<Value = String> {
    let characters = vec![
        'a', 'A', 'b', 'Z', ' ', '\t', '\0', '\u{1}', 'é', 'ß', 'æ', 'я', '一', '😀', '0', '-',
    ];
    vec(prop::sample::select(characters), 0..6).prop_map(|text| text.into_iter().collect())
}

fn value(ty: &'static str) -> BoxedStrategy<Value> {
    match ty {
        "int" => any::<i32>().prop_map(|v| Value::Int(v.into())).boxed(),
        "mediumint" => (-(1i64 << 23)..1 << 23).prop_map(Value::Int).boxed(),
        "bigint unsigned" => any::<u64>().prop_map(Value::UInt).boxed(),
        "decimal(15,2)" => (-10i128.pow(15) + 1..10i128.pow(15))
            .prop_map(|unscaled| Value::Decimal { unscaled, scale: 2 })
            .boxed(),
        "decimal(38,0)" => (-10i128.pow(38) + 1..10i128.pow(38))
            .prop_map(|unscaled| Value::Decimal { unscaled, scale: 0 })
            .boxed(),
        "decimal(39,0)" => (any::<i128>(), 0u32..=1, any::<bool>())
            .prop_map(|(number, zeros, is_shifted)| {
                let zeros = if is_shifted { zeros as u8 } else { 0 };
                let number = Int256::from(number / 10)
                    .rescaled(0, zeros)
                    .unwrap_or_default();
                Value::WideDecimal {
                    unscaled: number.to_wide().unwrap_or(Wide::ZERO),
                    scale: 0,
                }
            })
            .boxed(),
        "decimal(65,30)" => (any::<i128>(), 0u32..=27, any::<bool>())
            .prop_map(|(number, zeros, is_shifted)| {
                let zeros = if is_shifted { zeros as u8 } else { 0 };
                let number = Int256::from(number / 10)
                    .rescaled(0, zeros)
                    .unwrap_or_default();
                Value::WideDecimal {
                    unscaled: number.to_wide().unwrap_or(Wide::ZERO),
                    scale: 30,
                }
            })
            .boxed(),
        "double" => prop::num::f64::NORMAL.prop_map(Value::Double).boxed(),
        "float" => prop::num::f32::NORMAL.prop_map(Value::Float).boxed(),
        "date" => (-700_000..2_900_000).prop_map(Value::Date).boxed(),
        "time(6)" => (-3_020_399_000_000i64..3_020_399_000_000)
            .prop_map(Value::Time)
            .boxed(),
        "varbinary(40)" => vec(prop::sample::select(vec![0u8, 1, 2, 254, 255]), 0..6)
            .prop_map(Value::Bytes)
            .boxed(),
        "set('a','b','c')" => (0u64..=7).prop_map(Value::Set).boxed(),
        "bit(20)" => (0u64..1 << 20).prop_map(Value::UInt).boxed(),
        "enum('a','b','c')" => (0u16..=3).prop_map(Value::Enum).boxed(),
        _ => text().prop_map(Value::Text).boxed(),
    }
}

/// Two values of the same type, often equal, sometimes NULL.
fn two_values() -> impl Strategy<Value = (&'static str, Value, Value)> {
    prop::sample::select(TYPES.to_vec()).prop_flat_map(|ty| {
        let nullable = || prop_oneof![1 => Just(Value::Null), 8 => value(ty)];
        (Just(ty), nullable(), nullable(), any::<bool>())
            .prop_map(|(ty, a, b, same)| (ty, a.clone(), if same { a } else { b }))
    })
}

fn expected_order(ty: &str, a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => ColumnType::parse(ty)
            .unwrap()
            .collation()
            .unwrap()
            .compare(a, b),
        _ => a.compare_same_type(b).unwrap(),
    }
}

/// The order of a PAD SPACE collation by its definition: as if both strings went on with spaces.
fn padded_order(a: &str, b: &str) -> Ordering {
    let length = a.chars().count().max(b.chars().count());
    let pad = |text: &str| {
        text.chars()
            .chain(std::iter::repeat(' '))
            .take(length)
            .collect::<Vec<_>>()
    };
    pad(a).cmp(&pad(b))
}

proptest! {
    #[test]
    fn keys_order_as_their_values((first, a1, b1) in two_values(), (second, a2, b2) in two_values(), ids in any::<(i32, i32)>()) {
        let (_, layout) = table(&[(first, true, None), (second, true, None)]);
        let (a, _) = entry(&layout, &[a1.clone(), a2.clone(), Value::Int(ids.0.into())]);
        let (b, _) = entry(&layout, &[b1.clone(), b2.clone(), Value::Int(ids.1.into())]);
        let expected = expected_order(first, &a1, &b1)
            .then(expected_order(second, &a2, &b2))
            .then(ids.0.cmp(&ids.1));
        prop_assert_eq!(a.cmp(&b), expected);
    }

    #[test]
    fn entries_give_their_values_back((first, a, b) in two_values(), nullable in any::<bool>(), id in any::<i32>()) {
        prop_assume!(nullable || !(a.is_null() || b.is_null()));
        let (definition, layout) = table(&[(first, nullable, None), (first, nullable, None)]);
        let row = [a, b, Value::Int(id.into())];
        let (key, payload) = entry(&layout, &row);
        let mut offsets = Vec::new();
        layout.part_offsets(&key, &mut offsets).unwrap();
        prop_assert_eq!(offsets.last(), Some(&key.len()));
        for (part, value) in row.iter().enumerate() {
            let bytes = &key[offsets[part]..];
            prop_assert_eq!(&layout.decode_value(&definition, part, bytes, &payload).unwrap(), value);
            prop_assert_eq!(layout.is_null(part, bytes), value.is_null());
        }
        let (mut from_entry, mut encoded) = (Vec::new(), Vec::new());
        layout.primary_key_into(&key, &mut from_entry).unwrap();
        KeyLayout::clustered(&definition).encode_part(0, (&row[2]).into(), &mut encoded);
        prop_assert_eq!(from_entry, encoded);
    }

    #[test]
    fn bin_pads_with_spaces(a in text(), b in text()) {
        prop_assert_eq!(Collation::Utf8mb4_bin.compare(&a, &b), padded_order(&a, &b));
    }

    /// A range holds all rows that match, and without `recheck` no others.
    #[test]
    fn ranges_hold_what_matches(
        ty in prop::sample::select(vec!["varchar(40)", "varchar(40) collate utf8mb4_bin", "varchar(40) collate utf8mb4_general_ci"]),
        prefix in prop::option::of(1u32..4),
        nullable in any::<bool>(),
        (bound, text) in (text(), text()),
        operator in 0..6,
    ) {
        let (_, layout) = table(&[(ty, nullable, prefix)]);
        let (key, _) = entry(&layout, &[Value::Text(text.clone()), Value::Int(1)]);
        let collation = ColumnType::parse(ty).unwrap().collation().unwrap();
        let order = collation.compare(&text, &bound);
        let value = || Value::Text(bound.clone());
        let between = |lower, upper| PartBounds::Between { lower, upper };
        let (range, matches) = match operator {
            0 => (layout.range(&[value()], None), order.is_eq()),
            1 => (layout.range(&[], Some(&between(Bound::Included(value()), Bound::Unbounded))), order.is_ge()),
            2 => (layout.range(&[], Some(&between(Bound::Excluded(value()), Bound::Unbounded))), order.is_gt()),
            3 => (layout.range(&[], Some(&between(Bound::Unbounded, Bound::Included(value())))), order.is_le()),
            4 => (layout.range(&[], Some(&between(Bound::Unbounded, Bound::Excluded(value())))), order.is_lt()),
            _ => (layout.range(&[], Some(&PartBounds::StartsWith(bound.clone()))), text.starts_with(&bound)),
        };
        if matches || !range.recheck {
            prop_assert_eq!(range.range.contains(&key), matches, "{:?}", range);
        }
        if nullable && operator > 0 {
            let (null, _) = entry(&layout, &[Value::Null, Value::Int(1)]);
            prop_assert!(!range.range.contains(&null));
        }
    }
}

#[test]
fn null_is_a_value_of_an_equality() {
    let (_, layout) = table(&[("int", true, None), ("int", false, None)]);
    let (null, _) = entry(&layout, &[Value::Null, Value::Int(5), Value::Int(1)]);
    assert!(layout.range(&[Value::Null], None).range.contains(&null));
    assert!(
        layout
            .range(&[Value::Null, Value::Int(5)], None)
            .range
            .contains(&null)
    );
    assert!(
        !layout
            .range(&[Value::Null, Value::Int(6)], None)
            .range
            .contains(&null)
    );
    let is_not_null = PartBounds::Between {
        lower: Bound::Unbounded,
        upper: Bound::Unbounded,
    };
    assert!(!layout.range(&[], Some(&is_not_null)).range.contains(&null));
    // NOT NULL columns are never NULL.
    assert!(
        layout
            .range(&[Value::Int(1), Value::Null], None)
            .range
            .is_empty()
    );
}

#[test]
fn ranges_after_equal_parts() {
    let (_, layout) = table(&[("int", false, None), ("decimal(15,2)", true, None)]);
    let key = |part: i64, unscaled: i128| {
        entry(
            &layout,
            &[
                Value::Int(part),
                Value::Decimal { unscaled, scale: 2 },
                Value::Int(7),
            ],
        )
        .0
    };
    let bounds = PartBounds::Between {
        lower: Bound::Included(Value::Decimal {
            unscaled: 100,
            scale: 2,
        }),
        upper: Bound::Included(Value::Decimal {
            unscaled: 1100,
            scale: 2,
        }),
    };
    let encoded = layout.range(&[Value::Int(3)], Some(&bounds));
    assert!(!encoded.recheck);
    for (part, unscaled, inside) in [
        (3, 99, false),
        (3, 100, true),
        (3, 1100, true),
        (3, 1101, false),
        (2, 500, false),
        (4, 500, false),
    ] {
        assert_eq!(
            encoded.range.contains(&key(part, unscaled)),
            inside,
            "({part}, {unscaled})"
        );
    }
}

#[test]
fn keys_have_mysqls_lengths() {
    for (ty, nullable, prefix, expected) in [
        ("int", true, None, 5),
        ("int", false, None, 4),
        ("mediumint", false, None, 3),
        ("decimal(15,2)", true, None, 8),
        ("decimal(65,30)", false, None, 30),
        ("varchar(10)", false, None, 42),
        ("char(10)", true, None, 41),
        ("text", true, Some(5), 23),
        ("varbinary(10)", false, None, 12),
        ("date", false, None, 3),
        ("datetime(6)", false, None, 8),
        ("timestamp", false, None, 4),
        ("time(3)", false, None, 5),
        ("enum('a')", false, None, 1),
    ] {
        let (_, layout) = table(&[(ty, nullable, prefix)]);
        assert_eq!(layout.mysql_key_len(1), expected, "{ty}");
    }
}

#[test]
fn capitals_need_one_byte_of_payload_and_small_letters_none() {
    let (_, layout) = table(&[("char(10)", false, None), ("int", false, None)]);
    let payload = |text: &str| {
        entry(
            &layout,
            &[Value::Text(text.into()), Value::Int(1), Value::Int(1)],
        )
        .1
    };
    assert_eq!(payload("reg air"), []);
    assert_eq!(payload("REG AIR"), [1]);
    assert_eq!(payload("Air"), [2, 3, 0, b'A', b'i', b'r']);
}

#[test]
fn primary_key_parts_in_the_index_are_not_repeated() {
    let (mut definition, _) = table(&[("int", false, None), ("varchar(5)", false, None)]);
    // Primary key (c1, id), index (c0, c1).
    definition.primary.parts.insert(
        0,
        IndexPart {
            column: 1,
            prefix_length: None,
            descending: false,
        },
    );
    let layout = KeyLayout::secondary(&definition, &definition.secondary[0]);
    assert_eq!(
        layout
            .parts
            .iter()
            .map(|part| part.column)
            .collect::<Vec<_>>(),
        [Some(0), Some(1), Some(2)]
    );
    let row = [Value::Int(1), Value::Text("ab".into()), Value::Int(3)];
    let (key, _) = entry(&layout, &row);
    let (mut from_entry, mut encoded) = (Vec::new(), Vec::new());
    layout.primary_key_into(&key, &mut from_entry).unwrap();
    let clustered = KeyLayout::clustered(&definition);
    clustered.encode_part(0, (&row[1]).into(), &mut encoded);
    clustered.encode_part(1, (&row[2]).into(), &mut encoded);
    assert_eq!(from_entry, encoded);
}
