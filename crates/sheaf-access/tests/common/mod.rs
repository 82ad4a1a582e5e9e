//! A table with a column of every kind of encoding, its rows as a model, and the naive way to scan the model.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::cast::AsArray;
use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt16Type, UInt64Type,
};
use sheaf_access::{
    CancelFlag, CompareOp, EncodedCondition, Scan, ScanMetrics, ScanSpec, SessionCounters,
};
use sheaf_storage::{DiskKind, Storage, StorageOptions};
use sheaf_table::{Catalog, Column, CreateTable, IndexPartSpec, IndexSpec, Table};
use sheaf_types::{Collation, ColumnType, Value};

/// Deterministic pseudo-random numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

/// Storage and catalog in a temporary directory, gone with the value.
pub struct World {
    pub catalog: Arc<Catalog>,
    pub storage: Arc<Storage>,
    _directory: tempfile::TempDir,
}

impl World {
    pub fn new(pool_bytes: usize) -> World {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let options = StorageOptions {
            pool_bytes,
            disk: DiskKind::Auto,
            ..StorageOptions::default()
        };
        let storage = Storage::open(directory.path(), options).expect("storage opens");
        let catalog = Catalog::open(Arc::clone(&storage)).expect("catalog opens");
        catalog.create_database("d").expect("database is new");
        World {
            catalog,
            storage,
            _directory: directory,
        }
    }

    pub fn create(
        &self,
        columns: Vec<Column>,
        primary: &[&str],
        indexes: &[&[&str]],
    ) -> Arc<Table> {
        let mut request = CreateTable::new("d", "t", columns);
        if !primary.is_empty() {
            request.primary_key = Some(primary.iter().map(|name| part(name)).collect());
        }
        request.indexes = indexes
            .iter()
            .map(|parts| IndexSpec {
                name: None,
                parts: parts.iter().map(|name| part(name)).collect(),
                unique: false,
                comment: String::new(),
                invisible: false,
            })
            .collect();
        self.catalog
            .create_table(request)
            .expect("the definition is fine")
    }

    pub fn insert(&self, rows: &[Vec<Value>]) {
        let table = self
            .catalog
            .open_for_write("d", "t", Duration::from_secs(1))
            .expect("nobody else writes");
        let mut transaction = self.storage.begin_transaction();
        for row in rows {
            table
                .insert(&mut transaction, row)
                .expect("rows are distinct");
        }
        transaction.commit().unwrap();
    }
}

/// `name` or `name(prefix length)`.
fn part(text: &str) -> IndexPartSpec {
    match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        Some((name, length)) => IndexPartSpec {
            prefix_length: Some(length.parse().expect("a number")),
            ..IndexPartSpec::column(name)
        },
        None => IndexPartSpec::column(text),
    }
}

pub const ID: usize = 0;
pub const LINE: usize = 1;
pub const A: usize = 2;
pub const PRICE: usize = 3;
pub const MODE: usize = 4;
pub const DAY: usize = 5;
pub const NOTE: usize = 6;
pub const D: usize = 7;
pub const WIDE: usize = 8;
pub const BIG: usize = 9;
pub const COLOR: usize = 10;
pub const MOMENT: usize = 11;
pub const RAW: usize = 12;
pub const F: usize = 13;
pub const SPAN: usize = 14;
pub const YEAR: usize = 15;
pub const COLUMNS: usize = 16;

pub fn every_kind() -> Vec<Column> {
    let text = |length, collation| ColumnType::VarChar { length, collation };
    let labels: Arc<[String]> = ["red", "green", "a rather long shade of blue"]
        .map(String::from)
        .into();
    let collation = Collation::Utf8mb4_0900_ai_ci;
    vec![
        Column::new(
            "id",
            ColumnType::Int {
                sign: sheaf_types::column_type::Sign::Signed,
            },
            false,
        ),
        Column::new(
            "line",
            ColumnType::SmallInt {
                sign: sheaf_types::column_type::Sign::Signed,
            },
            false,
        ),
        Column::new(
            "a",
            ColumnType::Int {
                sign: sheaf_types::column_type::Sign::Signed,
            },
            true,
        ),
        Column::new(
            "price",
            ColumnType::Decimal {
                precision: 15,
                scale: 2,
                sign: sheaf_types::column_type::Sign::Signed,
            },
            true,
        ),
        Column::new(
            "mode",
            ColumnType::Char {
                length: 10,
                collation,
            },
            true,
        ),
        Column::new("day", ColumnType::Date, true),
        Column::new("note", text(60, Collation::Utf8mb4_bin), true),
        Column::new("d", ColumnType::parse("double").unwrap(), true),
        Column::new(
            "wide",
            ColumnType::Decimal {
                precision: 30,
                scale: 4,
                sign: sheaf_types::column_type::Sign::Signed,
            },
            true,
        ),
        Column::new(
            "big",
            ColumnType::BigInt {
                sign: sheaf_types::column_type::Sign::Unsigned,
            },
            true,
        ),
        Column::new("color", ColumnType::Enum { labels, collation }, true),
        Column::new("moment", ColumnType::DateTime { fsp: 6 }, true),
        Column::new("raw", ColumnType::VarBinary { length: 20 }, true),
        Column::new("f", ColumnType::parse("float").unwrap(), true),
        Column::new("span", ColumnType::Time { fsp: 0 }, false),
        Column::new("year", ColumnType::Year, false),
    ]
}

pub const INDEXES: [&[&str]; 7] = [
    &["a", "price", "mode"],
    &["day"],
    &["mode", "note"],
    &["line", "big"],
    &["note(3)", "a"],
    &["wide", "d", "color", "f", "moment", "raw"],
    &["span", "year", "a"],
];

/// A value that fits the column; few different ones, so that duplicates and matches are many.
pub fn random_value(random: &mut Random, column: usize) -> Value {
    const MODES: [&str; 8] = ["AIR", "air", "AIR REG", "Mail", "MAIL", "ship", "", "é"];
    const NOTES: [&str; 7] = [
        "",
        "abc",
        "abd",
        "ABC",
        "abc and so on, longer than a view",
        "zz\u{1F600}",
        "abcdefghijkl",
    ];
    if every_kind()[column].nullable && random.chance(15) {
        return Value::Null;
    }
    let small = random.below(40) as i64 - 20;
    match column {
        ID => Value::Int(random.below(1_000_000) as i64 - 500_000),
        LINE => Value::Int(random.below(7) as i64),
        A => Value::Int(small),
        PRICE => Value::Decimal {
            unscaled: i128::from(small) * 25,
            scale: 2,
        },
        MODE => Value::Text(random.pick(&MODES).to_string()),
        DAY => Value::Date(9000 + small as i32),
        NOTE => Value::Text(random.pick(&NOTES).to_string()),
        D => Value::Double(*random.pick(&[-1e300, -1.5, 0.0, 1.0, 2.25, 1e10])),
        WIDE => Value::Decimal {
            unscaled: i128::from(small) * 1_000_000_000_000_000_000_000,
            scale: 4,
        },
        BIG => Value::UInt(*random.pick(&[0, 1, 1 << 40, 1 << 63, u64::MAX])),
        COLOR => Value::Enum(1 + random.below(3) as u16),
        MOMENT => Value::DateTime(1_000_000_000_000_000 + small * 1_234_567),
        RAW => Value::Bytes(
            random
                .pick(&[&b""[..], &b"\0"[..], &b"\0\0a"[..], &b"\xFF"[..]])
                .to_vec(),
        ),
        F => Value::Float(*random.pick(&[-2.5f32, 0.0, 0.1, 7.0])),
        SPAN => Value::Time(small * 3_600_000_000),
        YEAR => Value::Year(1990 + random.below(5) as u16),
        _ => unreachable!("no such column"),
    }
}

/// Rows in primary key order, without duplicates of the primary key (id, line).
pub fn random_rows(random: &mut Random, count: usize) -> Vec<Vec<Value>> {
    let mut rows: Vec<Vec<Value>> = (0..count)
        .map(|_| {
            (0..COLUMNS)
                .map(|column| random_value(random, column))
                .collect()
        })
        .collect();
    rows.sort_by(|a, b| compare_columns(a, b, &[ID, LINE]));
    rows.dedup_by(|a, b| compare_columns(a, b, &[ID, LINE]).is_eq());
    rows
}

/// SQL's order of two values of one column: NULL first.
pub fn compare_values(column: usize, a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => {
            let collation = if column == MODE {
                Collation::Utf8mb4_0900_ai_ci
            } else {
                Collation::Utf8mb4_bin
            };
            collation.compare(a, b)
        }
        _ => a.compare_same_type(b).expect("values of one column"),
    }
}

pub fn compare_columns(a: &[Value], b: &[Value], columns: &[usize]) -> Ordering {
    columns
        .iter()
        .map(|&column| compare_values(column, &a[column], &b[column]))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// The columns that an index of [`INDEXES`] orders by, up to its first prefix part, which only orders in part.
pub fn index_columns(table: &Table, position: usize) -> Vec<usize> {
    table.definition.secondary[position]
        .parts
        .iter()
        .map(|part| part.column)
        .collect()
}

/// Whether the condition is true of the row, the naive way.
pub fn is_true(condition: &EncodedCondition, row: &[Value]) -> bool {
    match condition {
        EncodedCondition::Compare { column, op, value } => {
            if row[*column].is_null() || value.is_null() {
                return false;
            }
            let order = compare_values(*column, &row[*column], value);
            match op {
                CompareOp::Eq => order.is_eq(),
                CompareOp::NotEq => order.is_ne(),
                CompareOp::Less => order.is_lt(),
                CompareOp::LessOrEqual => order.is_le(),
                CompareOp::Greater => order.is_gt(),
                CompareOp::GreaterOrEqual => order.is_ge(),
            }
        }
        EncodedCondition::In { column, values } => {
            !row[*column].is_null()
                && values.iter().any(|value| {
                    !value.is_null() && compare_values(*column, &row[*column], value).is_eq()
                })
        }
        EncodedCondition::IsNull { column } => row[*column].is_null(),
        EncodedCondition::IsNotNull { column } => !row[*column].is_null(),
        EncodedCondition::And(terms) => terms.iter().all(|term| is_true(term, row)),
        EncodedCondition::Or(terms) => terms.iter().any(|term| is_true(term, row)),
    }
}

/// A condition on some of `columns`.
pub fn random_condition(random: &mut Random, columns: &[usize], depth: usize) -> EncodedCondition {
    const OPS: [CompareOp; 6] = [
        CompareOp::Eq,
        CompareOp::NotEq,
        CompareOp::Less,
        CompareOp::LessOrEqual,
        CompareOp::Greater,
        CompareOp::GreaterOrEqual,
    ];
    let column = *random.pick(columns);
    match random.below(if depth == 0 { 5 } else { 8 }) {
        0..=2 => EncodedCondition::Compare {
            column,
            op: *random.pick(&OPS),
            value: random_value(random, column),
        },
        3 => {
            let values = (0..random.below(12))
                .map(|_| random_value(random, column))
                .collect();
            EncodedCondition::In { column, values }
        }
        4 if random.chance(50) => EncodedCondition::IsNull { column },
        4 => EncodedCondition::IsNotNull { column },
        kind => {
            let terms = (0..2 + random.below(2))
                .map(|_| random_condition(random, columns, depth - 1))
                .collect();
            if kind == 5 {
                EncodedCondition::Or(terms)
            } else {
                EncodedCondition::And(terms)
            }
        }
    }
}

/// The rows of a batch as values of the table's columns.
pub fn values_of(batch: &RecordBatch, projection: &[usize]) -> Vec<Vec<Value>> {
    let columns = every_kind();
    (0..batch.num_rows())
        .map(|row| {
            projection
                .iter()
                .enumerate()
                .map(|(position, &column)| {
                    value_at(batch.column(position), row, &columns[column].ty)
                })
                .collect()
        })
        .collect()
}

fn value_at(array: &dyn Array, row: usize, ty: &ColumnType) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match (array.data_type(), ty) {
        (DataType::Int16, _) => Value::Int(array.as_primitive::<Int16Type>().value(row).into()),
        (DataType::Int32, _) => Value::Int(array.as_primitive::<Int32Type>().value(row).into()),
        (DataType::Int64, _) => Value::Int(array.as_primitive::<Int64Type>().value(row)),
        (DataType::UInt64, _) => Value::UInt(array.as_primitive::<UInt64Type>().value(row)),
        (DataType::UInt16, _) => Value::Year(array.as_primitive::<UInt16Type>().value(row)),
        (DataType::Decimal128(_, scale), _) => Value::Decimal {
            unscaled: array.as_primitive::<Decimal128Type>().value(row),
            scale: *scale as u8,
        },
        (DataType::Float32, _) => Value::Float(array.as_primitive::<Float32Type>().value(row)),
        (DataType::Float64, _) => Value::Double(array.as_primitive::<Float64Type>().value(row)),
        (DataType::Date32, _) => Value::Date(array.as_primitive::<Date32Type>().value(row)),
        (DataType::Duration(_), _) => {
            Value::Time(array.as_primitive::<DurationMicrosecondType>().value(row))
        }
        (DataType::Timestamp(..), _) => {
            Value::DateTime(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        (DataType::Binary, _) => Value::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        (DataType::Utf8View, ColumnType::Enum { labels, .. }) => {
            let label = array.as_string_view().value(row);
            Value::Enum(
                labels
                    .iter()
                    .position(|known| known == label)
                    .expect("a label") as u16
                    + 1,
            )
        }
        (DataType::Utf8View, _) => Value::Text(array.as_string_view().value(row).to_string()),
        (other, _) => panic!("no column has type {other}"),
    }
}

/// Runs a scan on one worker. Returns its rows, its metrics, and what it counted.
pub fn run_scan(spec: &ScanSpec) -> (Vec<Vec<Value>>, ScanMetrics, Arc<SessionCounters>) {
    let counters = Arc::new(SessionCounters::default());
    let spec = Arc::new(spec.clone());
    let mut scan = Scan::new(
        Arc::clone(&spec),
        spec.ranges.clone(),
        Arc::clone(&counters),
        CancelFlag::new(),
    )
    .expect("the specification is possible");
    let mut rows = Vec::new();
    while let Some(batch) = scan.next_batch().expect("the scan succeeds") {
        assert!(batch.num_rows() > 0, "no batch is empty");
        assert_eq!(batch.schema(), *scan.schema());
        rows.extend(values_of(&batch, &spec.projection));
    }
    (rows, scan.metrics(), counters)
}

/// Some columns of some rows.
pub fn project(rows: &[Vec<Value>], projection: &[usize]) -> Vec<Vec<Value>> {
    rows.iter()
        .map(|row| {
            projection
                .iter()
                .map(|&column| row[column].clone())
                .collect()
        })
        .collect()
}

/// The same rows in an order that only depends on them.
pub fn sorted(mut rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}
