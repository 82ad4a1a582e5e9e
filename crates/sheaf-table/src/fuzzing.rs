//! Bodies of the fuzz targets of the row and key codecs: each takes any bytes, and panics if it finds something.
//!
//! The first byte chooses how many columns there are, the next ones their types, and the rest is what a page would
//! have. libFuzzer calls them from `fuzz/`; the tests below call them with bytes that follow from a seed. The ignored
//! ones go on for as long as they are told, from a new seed.

use sheaf_storage::TreeId;
use sheaf_types::{Collation, ColumnType, Value};

use crate::codec::key_codec::KeyLayout;
use crate::codec::row_codec::{RowLayout, ValueRef};
use crate::definition::schema::{Column, Index, IndexPart, TableDefinition};

/// Most columns of a table here.
const MAX_COLUMNS: u8 = 8;

/// A row has at most this many bytes.
const MAX_ROW_BYTES: usize = 4_000;

/// Every shape that a column can have in a row or a key.
const TYPES: [&str; 20] = [
    "tinyint(1)",
    "tinyint unsigned",
    "smallint",
    "mediumint",
    "int unsigned",
    "bigint",
    "bigint unsigned",
    "decimal(9,2)",
    "decimal(38,10)",
    "float",
    "double",
    "date",
    "time(3)",
    "datetime",
    "year",
    "enum('a','b')",
    "varchar(20)",
    "varchar(20) collate utf8mb4_bin",
    "varbinary(20)",
    "varchar(20) collate utf8mb4_general_ci",
];

/// Columns as the first bytes say, and the rest.
fn take_columns(bytes: &[u8]) -> Option<(Vec<Column>, &[u8])> {
    let (&count, rest) = bytes.split_first()?;
    let (chosen, rest) = rest.split_at_checked(usize::from(count % MAX_COLUMNS) + 1)?;
    let columns = chosen.iter().enumerate().map(|(number, &choice)| {
        let ty = ColumnType::parse(TYPES[usize::from(choice) % TYPES.len()]).ok()?;
        Some(Column::new(format!("c{number}"), ty, choice >= 128))
    });
    Some((columns.collect::<Option<_>>()?, rest))
}

/// Reads the bytes as a row. What can be read says the same when it is written and read again.
pub fn row(bytes: &[u8]) {
    let Some((columns, bytes)) = take_columns(bytes) else {
        return;
    };
    let layout = RowLayout::new(&columns);
    let Ok(view) = layout.view(bytes) else {
        return;
    };
    // Of a long value the bytes of its reference are read here: any bytes may claim to have one.
    let values: Vec<Value> = columns
        .iter()
        .enumerate()
        .map(|(column, definition)| view.value_ref(column).to_value(&definition.ty))
        .collect();
    let is_null = |(column, value): (usize, &Value)| !columns[column].nullable && value.is_null();
    if view.has_overflow() || values.iter().enumerate().any(is_null) {
        return;
    }
    let mut again = Vec::new();
    let value = |column: usize| ValueRef::from(&values[column]);
    if layout.encode(value, &[], MAX_ROW_BYTES, &mut again).is_ok() {
        let view = layout.view(&again).expect("a row that was written");
        for (column, definition) in columns.iter().enumerate() {
            let read = view.value(column, &definition.ty);
            assert!(is_same(&read, &values[column]), "{read:?} {values:?}");
        }
    }
}

/// Equal, or the same number that equals nothing.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

/// Reads the bytes as the key of an index on all columns, and the last of them as its payload.
pub fn key(bytes: &[u8]) {
    let Some((columns, bytes)) = take_columns(bytes) else {
        return;
    };
    let Some((&split, bytes)) = bytes.split_first() else {
        return;
    };
    let (key, payload) = bytes.split_at(usize::from(split).min(bytes.len()));
    let definition = table_of(columns);
    let layout = KeyLayout::secondary(&definition, &definition.secondary[0]);
    let mut primary_key = Vec::new();
    let has_primary_key = layout.primary_key_into(key, &mut primary_key).is_ok();
    let mut offsets = Vec::new();
    if layout.part_offsets(key, &mut offsets).is_err() {
        return;
    }
    assert!(has_primary_key, "a key of all its parts");
    assert!(offsets.is_sorted() && offsets.last() <= Some(&key.len()));
    for part in 0..layout.parts.len() {
        let bytes = &key[offsets[part]..];
        let is_null = layout.is_null(part, bytes);
        if let Ok(value) = layout.decode_value(&definition, part, bytes, payload) {
            assert_eq!(value.is_null(), is_null, "part {part}");
        }
    }
}

/// A table of these columns, the first of which is its primary key, with an index on all of them.
fn table_of(columns: Vec<Column>) -> TableDefinition {
    let part = |column| IndexPart {
        column,
        prefix_length: None,
        descending: column % 2 == 1,
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
    TableDefinition {
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
    }
}

#[cfg(test)]
#[path = "../../../fuzz/driver.rs"]
mod driver;

#[cfg(test)]
mod tests {
    use super::*;
    use sheaf_storage::Random;

    /// Bytes of which many are small, as lengths, flags and escapes are.
    fn some_bytes(random: &mut Random) -> Vec<u8> {
        (0..random.below(120))
            .map(|_| match random.below(3) {
                0 => random.below(4) as u8,
                1 => random.below(40) as u8,
                _ => random.next() as u8,
            })
            .collect()
    }

    #[test]
    fn no_bytes_make_the_codecs_panic() {
        let mut random = Random::new(1);
        for _ in 0..200_000 {
            let bytes = some_bytes(&mut random);
            row(&bytes);
            key(&bytes);
        }
    }

    #[test]
    #[ignore = "goes on for SHEAF_FUZZ_SECONDS"]
    fn fuzz_row() {
        driver::run("row", row, |next| some_bytes(&mut Random::new(next())));
    }

    #[test]
    #[ignore = "goes on for SHEAF_FUZZ_SECONDS"]
    fn fuzz_key() {
        driver::run("key", key, |next| some_bytes(&mut Random::new(next())));
    }
}
