//! Small tables that are made of what the engine knows: the results of SHOW, of EXPLAIN, of
//! `information_schema`, and single cells of a result as values.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    StringViewArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, DurationMicrosecondType, Field,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Schema, SchemaRef,
    TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use sheaf_access::{TYPE_KEY, wide_of};
use sheaf_exec::functions::types::{COERCIBILITY_KEY, OF_SERVER};
use sheaf_types::text::like::Pattern;
use sheaf_types::{Collation, ColumnType, Value};

use crate::error::{Result, SqlError};
use crate::session::result::{ColumnMeta, EndOfRows, ResultSink};
use sheaf_frontend::query::Header;

/// A column of such a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cells {
    /// Texts of at most so many characters, compared without regard to case.
    Text(u32),
    /// Names of databases and tables, which differ by case (`lower_case_table_names` is 0).
    Name,
    Unsigned,
    Signed,
    Double,
    /// Points in time on the session's clock: microseconds, signed.
    Moment,
}

/// The type of [`Cells::Name`].
fn name_type() -> ColumnType {
    ColumnType::varchar(64, Collation::Utf8mb4_bin)
}

/// How Arrow has texts: those of tables are views.
#[derive(Clone, Copy)]
enum Texts {
    OfResult,
    OfTable,
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Text(String),
    Unsigned(u64),
    Signed(i64),
    Double(f64),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_string())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Cell {
        Cell::Unsigned(number)
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Cell {
        Cell::Signed(number)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Cell {
        cell.map_or(Cell::Null, Into::into)
    }
}

impl Cell {
    pub fn as_text(&self) -> String {
        match self {
            Cell::Null => String::new(),
            Cell::Text(text) => text.clone(),
            Cell::Unsigned(number) => number.to_string(),
            Cell::Signed(number) => number.to_string(),
            Cell::Double(number) => number.to_string(),
        }
    }
}

/// A table in memory.
#[derive(Clone, Debug)]
pub struct Rows {
    columns: Vec<(String, Cells)>,
    rows: Vec<Vec<Cell>>,
}

impl Rows {
    pub fn new<N: Into<String>>(columns: impl IntoIterator<Item = (N, Cells)>) -> Rows {
        Rows {
            columns: columns
                .into_iter()
                .map(|(name, cells)| (name.into(), cells))
                .collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, which has a cell for each column.
    pub fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    pub(crate) fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// Keeps the rows whose cell in this column is like the pattern.
    pub fn retain_like(&mut self, column: usize, pattern: &str) {
        let pattern = match self.columns[column].1 {
            Cells::Name => Pattern::of_names_by_case(pattern),
            _ => Pattern::of_names(pattern),
        };
        self.rows
            .retain(|row| pattern.matches(&row[column].as_text()));
    }

    fn field(name: &str, cells: Cells, texts: Texts) -> Field {
        let text_type = match texts {
            Texts::OfResult => DataType::Utf8,
            Texts::OfTable => DataType::Utf8View,
        };
        let (arrow_type, sql_type) = match cells {
            Cells::Text(characters) if characters <= 1024 => {
                (text_type, format!("varchar({characters})"))
            }
            Cells::Text(_) => (text_type, "longtext".to_string()),
            Cells::Name => (text_type, name_type().descriptor()),
            Cells::Unsigned => (DataType::UInt64, "bigint unsigned".to_string()),
            Cells::Signed => (DataType::Int64, "bigint".to_string()),
            Cells::Double => (DataType::Float64, "double".to_string()),
            Cells::Moment => (
                DataType::Timestamp(TimeUnit::Microsecond, None),
                "timestamp(6)".to_string(),
            ),
        };
        let mut metadata = HashMap::from([(TYPE_KEY.to_string(), sql_type)]);
        if matches!((cells, texts), (Cells::Text(_), Texts::OfTable)) {
            metadata.insert(COERCIBILITY_KEY.to_string(), OF_SERVER.to_string());
        }
        Field::new(name, arrow_type, true).with_metadata(metadata)
    }

    pub fn schema(&self) -> SchemaRef {
        self.schema_with(Texts::OfResult)
    }

    /// The schema of a table that queries read.
    pub(crate) fn schema_of_table(&self) -> SchemaRef {
        self.schema_with(Texts::OfTable)
    }

    fn schema_with(&self, texts: Texts) -> SchemaRef {
        Arc::new(Schema::new(
            self.columns
                .iter()
                .map(|(name, cells)| Self::field(name, *cells, texts))
                .collect::<Vec<_>>(),
        ))
    }

    pub fn batch(&self) -> Result<RecordBatch> {
        self.batch_with(Texts::OfResult)
    }

    /// The rows of a table that queries read.
    pub(crate) fn batch_of_table(&self) -> Result<RecordBatch> {
        self.batch_with(Texts::OfTable)
    }

    fn batch_with(&self, texts: Texts) -> Result<RecordBatch> {
        let arrays = self
            .columns
            .iter()
            .enumerate()
            .map(|(n, (_, cells))| {
                let column = self.rows.iter().map(|row| &row[n]);
                let array: ArrayRef = match cells {
                    Cells::Text(_) | Cells::Name => {
                        let column = column.map(|cell| match cell {
                            Cell::Null => None,
                            cell => Some(cell.as_text()),
                        });
                        match texts {
                            Texts::OfResult => Arc::new(StringArray::from_iter(column)),
                            Texts::OfTable => Arc::new(StringViewArray::from_iter(column)),
                        }
                    }
                    Cells::Unsigned => {
                        Arc::new(UInt64Array::from_iter(column.map(|cell| match cell {
                            Cell::Unsigned(number) => Some(*number),
                            _ => None,
                        })))
                    }
                    Cells::Double => {
                        Arc::new(Float64Array::from_iter(column.map(|cell| match cell {
                            Cell::Double(number) => Some(*number),
                            _ => None,
                        })))
                    }
                    Cells::Moment => Arc::new(TimestampMicrosecondArray::from_iter(column.map(
                        |cell| match cell {
                            Cell::Signed(micros) => Some(*micros),
                            _ => None,
                        },
                    ))),
                    Cells::Signed => {
                        Arc::new(Int64Array::from_iter(column.map(|cell| match cell {
                            Cell::Signed(number) => Some(*number),
                            _ => None,
                        })))
                    }
                };
                array
            })
            .collect();
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        RecordBatch::try_new_with_options(self.schema_with(texts), arrays, &options)
            .map_err(|error| SqlError::unknown(error.to_string()))
    }

    /// Writes the table to a sink as one result.
    pub fn send(
        &self,
        sink: &mut dyn ResultSink,
        text_collation_id: u16,
        end: EndOfRows,
    ) -> Result<()> {
        let metas: Vec<ColumnMeta> = self
            .schema()
            .fields()
            .iter()
            .map(|field| {
                let header = Header {
                    name: field.name().clone(),
                    ..Header::default()
                };
                ColumnMeta::new(field, &header, text_collation_id)
            })
            .collect();
        sink.columns(&metas)?;
        if !self.rows.is_empty() {
            sink.rows(&self.batch()?)?;
        }
        sink.end_of_rows(end)
    }
}

/// A cell of a result as a value. Dates with a time come as DATETIME: a result has no TIMESTAMP any more.
pub fn value_at(array: &dyn Array, row: usize) -> Result<Value> {
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => {
            let array: Option<&BooleanArray> = array.as_boolean_opt();
            Value::Int(i64::from(array.is_some_and(|array| array.value(row))))
        }
        DataType::Int8 => Value::Int(array.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => Value::Int(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => Value::Int(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Value::Int(array.as_primitive::<Int64Type>().value(row)),
        DataType::UInt8 => Value::UInt(array.as_primitive::<UInt8Type>().value(row).into()),
        DataType::UInt16 => Value::UInt(array.as_primitive::<UInt16Type>().value(row).into()),
        DataType::UInt32 => Value::UInt(array.as_primitive::<UInt32Type>().value(row).into()),
        DataType::UInt64 => Value::UInt(array.as_primitive::<UInt64Type>().value(row)),
        DataType::Float32 => Value::Float(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => Value::Double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(_, scale) if *scale >= 0 => Value::Decimal {
            unscaled: array.as_primitive::<Decimal128Type>().value(row),
            scale: *scale as u8,
        },
        DataType::Decimal256(_, scale) if *scale >= 0 => Value::WideDecimal {
            unscaled: wide_of(array.as_primitive::<Decimal256Type>().value(row)),
            scale: *scale as u8,
        },
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row).to_string()),
        DataType::LargeUtf8 => Value::Text(array.as_string::<i64>().value(row).to_string()),
        DataType::Utf8View => Value::Text(array.as_string_view().value(row).to_string()),
        DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        DataType::BinaryView => Value::Json(array.as_binary_view().value(row).to_vec()),
        DataType::Date32 => Value::Date(array.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Value::DateTime(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            Value::Time(array.as_primitive::<DurationMicrosecondType>().value(row))
        }
        other => {
            return Err(SqlError::unknown(format!(
                "a result column of the internal type {other}"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_a_batch_with_sql_types() {
        let mut rows = Rows::new([
            ("Variable_name", Cells::Text(64)),
            ("Value", Cells::Unsigned),
        ]);
        rows.push(vec!["a".into(), 1u64.into()]);
        rows.push(vec!["b".into(), Cell::Null]);
        let batch = rows.batch().expect("a batch");
        assert_eq!(value_at(batch.column(0), 1), Ok(Value::Text("b".into())));
        assert_eq!(value_at(batch.column(1), 0), Ok(Value::UInt(1)));
        assert_eq!(value_at(batch.column(1), 1), Ok(Value::Null));
        rows.retain_like(0, "B%");
        assert_eq!(rows.batch().expect("a batch").num_rows(), 1);
    }
}
