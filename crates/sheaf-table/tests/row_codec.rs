//! Rows read back what was written, and no bytes whatever make a reader panic.

use proptest::collection::vec;
use proptest::prelude::*;
use sheaf_storage::TreeId;
use sheaf_table::{Column, Index, IndexPart, KeyLayout, RowLayout, TableDefinition, ValueRef};
use sheaf_types::number::{Int256, Wide};
use sheaf_types::{Collation, ColumnType, Value};

/// A row has room for this much, as in a page.
const LIMIT: usize = 4000;

const TYPES: [&str; 23] = [
    "tinyint(1)",
    "tinyint unsigned",
    "smallint",
    "mediumint",
    "int unsigned",
    "bigint",
    "bigint unsigned",
    "decimal(9,2)",
    "decimal(18,0)",
    "decimal(38,10)",
    "decimal(65,30)",
    "float",
    "double",
    "date",
    "time(3)",
    "datetime",
    "timestamp(6)",
    "year",
    "enum('a','b')",
    "set('a','b')",
    "bit(20)",
    "varchar(20)",
    "varbinary(20)",
];

fn value(ty: &'static str) -> BoxedStrategy<Value> {
    let decimal = |digits: u32, scale| {
        (1 - 10i128.pow(digits)..10i128.pow(digits))
            .prop_map(move |unscaled| Value::Decimal { unscaled, scale })
            .boxed()
    };
    match ty {
        "tinyint(1)" => any::<i8>().prop_map(|v| Value::Int(v.into())).boxed(),
        "tinyint unsigned" => any::<u8>().prop_map(|v| Value::UInt(v.into())).boxed(),
        "smallint" => any::<i16>().prop_map(|v| Value::Int(v.into())).boxed(),
        "mediumint" => (-(1i64 << 23)..1 << 23).prop_map(Value::Int).boxed(),
        "int unsigned" => any::<u32>().prop_map(|v| Value::UInt(v.into())).boxed(),
        "bigint" => any::<i64>().prop_map(Value::Int).boxed(),
        "bigint unsigned" => any::<u64>().prop_map(Value::UInt).boxed(),
        "decimal(9,2)" => decimal(9, 2),
        "decimal(18,0)" => decimal(18, 0),
        "decimal(38,10)" => decimal(38, 10),
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
        "float" => prop::num::f32::NORMAL.prop_map(Value::Float).boxed(),
        "double" => prop::num::f64::NORMAL.prop_map(Value::Double).boxed(),
        "date" => any::<i32>().prop_map(Value::Date).boxed(),
        "time(3)" => any::<i64>().prop_map(Value::Time).boxed(),
        "datetime" => any::<i64>().prop_map(Value::DateTime).boxed(),
        "timestamp(6)" => any::<i64>().prop_map(Value::Timestamp).boxed(),
        "year" => any::<u16>().prop_map(Value::Year).boxed(),
        "set('a','b')" => (0u64..=3).prop_map(Value::Set).boxed(),
        "bit(20)" => (0u64..1 << 20).prop_map(Value::UInt).boxed(),
        "enum('a','b')" => any::<u16>().prop_map(Value::Enum).boxed(),
        "varchar(20)" => "\\PC{0,8}".prop_map(Value::Text).boxed(),
        _ => vec(any::<u8>(), 0..8).prop_map(Value::Bytes).boxed(),
    }
}

/// A column and its value in some row.
fn field() -> impl Strategy<Value = (&'static str, bool, Value)> {
    (prop::sample::select(TYPES.to_vec()), any::<bool>()).prop_flat_map(|(ty, nullable)| {
        let null = if nullable { 1 } else { 0 };
        (
            Just(ty),
            Just(nullable),
            prop_oneof![null => Just(Value::Null), 3 => value(ty)],
        )
    })
}

fn columns(fields: &[(&str, bool, Value)]) -> Vec<Column> {
    let column = |(i, (ty, nullable, _)): (usize, &(&str, bool, Value))| {
        Column::new(format!("c{i}"), ColumnType::parse(ty).unwrap(), *nullable)
    };
    fields.iter().enumerate().map(column).collect()
}

/// An index on all columns of a table whose primary key they are too.
fn index_on_all(columns: Vec<Column>) -> (TableDefinition, KeyLayout) {
    let part = |column| IndexPart {
        column,
        prefix_length: None,
        descending: false,
    };
    let index = |id, parts| Index {
        id,
        name: "k".into(),
        parts,
        unique: id == 0,
        primary: id == 0,
        tree: TreeId(1),
        comment: String::new(),
        invisible: false,
    };
    let definition = TableDefinition {
        id: 1,
        database: "d".into(),
        name: "t".into(),
        primary: index(0, vec![part(0)]),
        secondary: vec![index(1, (0..columns.len()).map(part).collect())],
        columns,
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

proptest! {
    #[test]
    fn rows_read_back(fields in vec(field(), 1..24)) {
        let columns = columns(&fields);
        let layout = RowLayout::new(&columns);
        let mut row = Vec::new();
        layout.encode(|column| ValueRef::from(&fields[column].2), &[], LIMIT, &mut row).unwrap();
        let view = layout.view(&row).unwrap();
        for (column, (_, _, value)) in fields.iter().enumerate() {
            prop_assert_eq!(&view.value(column, &columns[column].ty), value);
            prop_assert_eq!(view.is_null(column), value.is_null());
            if let Some((byte, mask)) = layout.null_bit(column) {
                prop_assert_eq!(row[byte] & mask != 0, value.is_null());
            }
            if let (Some((offset, 4)), Value::Date(days)) = (layout.fixed(column), value) {
                prop_assert_eq!(i32::from_le_bytes(row[offset..offset + 4].try_into().unwrap()), *days);
            }
        }
    }

    #[test]
    fn an_amended_row_is_the_row_of_its_new_values(
        fields in vec((field(), any::<bool>()), 1..24).prop_flat_map(|fields| {
            let new = fields.iter().map(|((ty, nullable, old), changes)| match (changes, nullable) {
                (false, _) => Just(old.clone()).boxed(),
                (true, false) => value(ty),
                (true, true) => prop_oneof![Just(Value::Null), value(ty)].boxed(),
            });
            let new: Vec<_> = new.collect();
            (Just(fields), new)
        }),
    ) {
        let (fields, new) = fields;
        let (fields, changed): (Vec<_>, Vec<bool>) = fields.into_iter().unzip();
        let layout = RowLayout::new(&columns(&fields));
        let (mut old, mut wanted, mut amended) = (Vec::new(), Vec::new(), Vec::new());
        layout.encode(|column| ValueRef::from(&fields[column].2), &[], LIMIT, &mut old).unwrap();
        layout.encode(|column| ValueRef::from(&new[column]), &[], LIMIT, &mut wanted).unwrap();
        let changes = new.into_iter().enumerate().filter(|(column, _)| changed[*column]);
        let changes: Vec<(usize, Value)> = changes.collect();
        layout.amend(&layout.view(&old).unwrap(), &changes, LIMIT, &mut amended).unwrap();
        prop_assert_eq!(amended, wanted);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(
        fields in vec(field(), 1..8),
        row in vec(any::<u8>(), 0..80),
        key in vec(prop_oneof![Just(0u8), Just(1), Just(b' '), any::<u8>()], 0..40),
        payload in vec(0u8..4, 0..12),
    ) {
        let columns = columns(&fields);
        let layout = RowLayout::new(&columns);
        if let Ok(view) = layout.view(&row) {
            for (column, definition) in columns.iter().enumerate() {
                let _ = (view.value_ref(column).to_value(&definition.ty), view.is_overflow(column));
            }
        }
        let (definition, layout) = index_on_all(columns);
        let mut offsets = Vec::new();
        let _ = layout.primary_key_into(&key, &mut Vec::new());
        if layout.part_offsets(&key, &mut offsets).is_ok() {
            for part in 0..layout.parts.len() {
                let _ = layout.decode_value(&definition, part, &key[offsets[part]..], &payload);
            }
        }
    }
}
