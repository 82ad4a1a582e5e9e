//! Rust's types at the border: values for parameters, and values out of rows.
//!
//! ```
//! # let directory = tempfile::tempdir()?;
//! # let options = sheaf::Options::default().with_memory_bytes(64 << 20);
//! # let database = sheaf::Database::open(directory.path(), options)?;
//! # let mut connection = database.connect()?;
//! # connection.execute("create database shop")?;
//! # connection.execute("use shop")?;
//! use sheaf::params;
//!
//! connection.execute("create table orders (id int primary key, customer varchar(40), paid date)")?;
//! connection.execute_with("insert into orders values (?, ?, ?)", params![7, "Ada", None::<&str>])?;
//! for row in connection.rows("select id, customer, paid from orders where id > ?", params![5])? {
//!     let (id, customer): (i64, String) = (row.get("id")?, row.get("customer")?);
//!     let paid: Option<String> = row.get(2)?;
//!     assert_eq!((id, customer.as_str(), paid), (7, "Ada", None));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use sheaf_sql::result::BINARY_COLLATION_ID;
use sheaf_sql::{Cell, ColumnMeta};
use sheaf_types::Value;
use sheaf_types::error::codes;

use crate::statement::{Row, Statement};
use crate::{Connection, Error, Result};

/// What can be a parameter.
pub trait ToValue {
    fn to_value(&self) -> Value;
}

/// What can be read out of a row.
pub trait FromValue: Sized {
    /// `None`: the value is none of this type, or does not fit.
    fn from_value(value: Value) -> Option<Self>;
}

/// Values for the `?` of a statement, in their order.
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::ToValue::to_value(&$value)),*]
    };
}

macro_rules! integers {
    ($($ty:ty => $variant:ident($wide:ty),)*) => {$(
        impl ToValue for $ty {
            fn to_value(&self) -> Value {
                Value::$variant(<$wide>::from(*self))
            }
        }

        impl FromValue for $ty {
            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::Decimal { unscaled, scale: 0 } => unscaled.try_into().ok(),
                    integer => integer.as_i128()?.try_into().ok(),
                }
            }
        }
    )*};
}

integers! {
    i8 => Int(i64),
    i16 => Int(i64),
    i32 => Int(i64),
    i64 => Int(i64),
    u8 => UInt(u64),
    u16 => UInt(u64),
    u32 => UInt(u64),
    u64 => UInt(u64),
}

impl ToValue for bool {
    fn to_value(&self) -> Value {
        Value::Int(i64::from(*self))
    }
}

impl FromValue for bool {
    fn from_value(value: Value) -> Option<Self> {
        i64::from_value(value).map(|number| number != 0)
    }
}

impl ToValue for f64 {
    fn to_value(&self) -> Value {
        Value::Double(*self)
    }
}

impl FromValue for f64 {
    /// Of a decimal, the nearest double.
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Double(number) => Some(number),
            Value::Float(number) => Some(f64::from(number)),
            Value::Int(number) => Some(number as f64),
            Value::UInt(number) => Some(number as f64),
            Value::Decimal { .. } | Value::WideDecimal { .. } => value.to_string().parse().ok(),
            _ => None,
        }
    }
}

impl ToValue for &str {
    fn to_value(&self) -> Value {
        Value::Text((*self).to_string())
    }
}

impl ToValue for String {
    fn to_value(&self) -> Value {
        Value::Text(self.clone())
    }
}

impl FromValue for String {
    /// Decimals, dates and times as MySQL writes them.
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text),
            Value::Decimal { .. }
            | Value::WideDecimal { .. }
            | Value::Date(_)
            | Value::Time(_)
            | Value::DateTime(_)
            | Value::Timestamp(_) => Some(value.to_string()),
            _ => None,
        }
    }
}

impl ToValue for &[u8] {
    fn to_value(&self) -> Value {
        Value::Bytes(self.to_vec())
    }
}

impl ToValue for Vec<u8> {
    fn to_value(&self) -> Value {
        Value::Bytes(self.clone())
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => Some(bytes),
            Value::Text(text) => Some(text.into_bytes()),
            _ => None,
        }
    }
}

impl ToValue for Value {
    fn to_value(&self) -> Value {
        self.clone()
    }
}

impl FromValue for Value {
    fn from_value(value: Value) -> Option<Self> {
        Some(value)
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_value)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

/// A column of a result: its number from 0, or its name.
pub trait ColumnIndex {
    fn position(&self, columns: &[ColumnMeta]) -> Result<usize>;
}

impl ColumnIndex for usize {
    fn position(&self, columns: &[ColumnMeta]) -> Result<usize> {
        match *self < columns.len() {
            true => Ok(*self),
            false => Err(no_column(&self.to_string())),
        }
    }
}

impl ColumnIndex for &str {
    /// The first column of this name; case does not matter.
    fn position(&self, columns: &[ColumnMeta]) -> Result<usize> {
        let mut columns = columns.iter();
        let found = columns.position(|column| column.name.eq_ignore_ascii_case(self));
        found.ok_or_else(|| no_column(self))
    }
}

fn no_column(name: &str) -> Error {
    Error::new(
        codes::BAD_FIELD_ERROR,
        format!("Unknown column '{name}' in 'result'"),
    )
}

fn read<T: FromValue>(value: Value, column: &ColumnMeta) -> Result<T> {
    let shown = value.to_string();
    T::from_value(value).ok_or_else(|| {
        let wanted = std::any::type_name::<T>();
        let message = format!(
            "Column '{}' holds {shown}, which is no {wanted}",
            column.name
        );
        Error::new(codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, message)
    })
}

/// A value of its own; strings of bytes that are text become text.
fn value_of(cell: Cell<'_>, column: &ColumnMeta) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Signed(number) => Value::Int(number),
        Cell::Unsigned(number) => Value::UInt(number),
        Cell::WideDecimal { unscaled, scale } => Value::WideDecimal {
            unscaled,
            scale: scale.max(0) as u8,
        },
        Cell::Decimal { unscaled, scale } => Value::Decimal {
            unscaled,
            scale: scale.unsigned_abs(),
        },
        Cell::Float(number) => Value::Float(number),
        Cell::Double(number) => Value::Double(number),
        Cell::Bytes(bytes) if column.collation_id == BINARY_COLLATION_ID => {
            Value::Bytes(bytes.to_vec())
        }
        Cell::Json(bytes) => Value::Json(bytes.to_vec()),
        Cell::Bytes(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        Cell::Date(days) => Value::Date(days),
        Cell::DateTime(micros) => Value::DateTime(micros),
        Cell::Time(micros) => Value::Time(micros),
    }
}

impl Row<'_> {
    /// The value in a column, by number or name, as a type of Rust. Errors 1054 without such a column, and 1366 if the
    /// value is none of this type; NULL wants an `Option`.
    pub fn get<T: FromValue>(&self, column: impl ColumnIndex) -> Result<T> {
        let position = column.position(self.columns())?;
        let meta = &self.columns()[position];
        read(value_of(self.cell(position), meta), meta)
    }

    fn to_owned_row(&self, columns: &Arc<[ColumnMeta]>) -> OwnedRow {
        let metas = columns.iter().enumerate();
        let values = metas.map(|(column, meta)| value_of(self.cell(column), meta));
        OwnedRow {
            values: values.collect(),
            columns: Arc::clone(columns),
        }
    }
}

/// A row that is the caller's.
#[derive(Clone, Debug)]
pub struct OwnedRow {
    columns: Arc<[ColumnMeta]>,
    values: Vec<Value>,
}

impl OwnedRow {
    /// As [`Row::get`].
    pub fn get<T: FromValue>(&self, column: impl ColumnIndex) -> Result<T> {
        let position = column.position(&self.columns)?;
        read(self.values[position].clone(), &self.columns[position])
    }

    /// The values in the order of the columns.
    pub fn values(&self) -> &[Value] {
        &self.values
    }
}

/// The rows of a result, in memory.
#[derive(Debug)]
pub struct Rows(std::vec::IntoIter<OwnedRow>);

impl Iterator for Rows {
    type Item = OwnedRow;

    fn next(&mut self) -> Option<OwnedRow> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Rows {}

impl Connection {
    /// Runs a statement with values for its `?` and gives its rows. They are all in your memory; for results that may
    /// be large see [`Connection::run`] and [`Connection::query_each`].
    pub fn rows(&mut self, sql: &str, values: &[Value]) -> Result<Rows> {
        let statement = self.prepare(sql)?;
        self.rows_of(&statement, values)
    }

    /// The rows of a prepared statement, as [`Connection::rows`].
    pub fn rows_of(&mut self, statement: &Statement, values: &[Value]) -> Result<Rows> {
        let mut columns: Option<Arc<[ColumnMeta]>> = None;
        let mut rows = Vec::new();
        self.run(statement, values, |row| {
            let columns = columns.get_or_insert_with(|| row.columns().into());
            rows.push(row.to_owned_row(columns));
            Ok(())
        })?;
        Ok(Rows(rows.into_iter()))
    }

    /// Runs a statement with values for its `?`, and gives the number of rows that it changed.
    pub fn execute_with(&mut self, sql: &str, values: &[Value]) -> Result<u64> {
        let statement = self.prepare(sql)?;
        self.run(&statement, values, |_| Ok(()))
    }
}
