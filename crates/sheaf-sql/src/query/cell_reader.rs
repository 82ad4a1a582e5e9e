//! One value of an Arrow batch, for clients that want rows.
//!
//! Arrow has many types that mean the same to a client (four widths of integers, three layouts of strings). A
//! [`CellReader`] knows a column's Arrow type and gives each value as a [`Cell`], of which there are few, so the
//! text and the binary encoding are each written once. Finding the type is done once per batch; a value costs a
//! jump and no allocation.

use arrow::array::{
    Array, BinaryArray, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array,
    Decimal256Array, DurationMicrosecondArray, FixedSizeBinaryArray, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, LargeStringArray, StringArray, StringViewArray,
    Time64MicrosecondArray, Time64NanosecondArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use arrow::datatypes::{DataType, TimeUnit};
use arrow::record_batch::RecordBatch;
use sheaf_access::wide_of;

use crate::error::{Result, SqlError};
use crate::session::result::{Cell, ColumnMeta};

/// One column of a batch.
pub struct CellReader<'a> {
    array: &'a dyn Array,
    values: Values<'a>,
}

enum Values<'a> {
    Null,
    Boolean(&'a BooleanArray),
    Int8(&'a Int8Array),
    Int16(&'a Int16Array),
    Int32(&'a Int32Array),
    Int64(&'a Int64Array),
    UInt8(&'a UInt8Array),
    UInt16(&'a UInt16Array),
    UInt32(&'a UInt32Array),
    UInt64(&'a UInt64Array),
    Decimal128(&'a Decimal128Array, i8),
    Decimal256(&'a Decimal256Array, i8),
    Float32(&'a Float32Array),
    Float64(&'a Float64Array),
    Utf8(&'a StringArray),
    LargeUtf8(&'a LargeStringArray),
    Utf8View(&'a StringViewArray),
    Binary(&'a BinaryArray),
    BinaryView(&'a BinaryViewArray),
    FixedSizeBinary(&'a FixedSizeBinaryArray),
    Date32(&'a Date32Array),
    TimestampSecond(&'a TimestampSecondArray),
    TimestampMillisecond(&'a TimestampMillisecondArray),
    TimestampMicrosecond(&'a TimestampMicrosecondArray),
    TimestampNanosecond(&'a TimestampNanosecondArray),
    Time64Microsecond(&'a Time64MicrosecondArray),
    Time64Nanosecond(&'a Time64NanosecondArray),
    DurationMicrosecond(&'a DurationMicrosecondArray),
}

/// Readers of all columns of a batch.
///
/// # Errors
/// 1105 if the batch is not of the columns that were announced, or has
/// a type that the protocol cannot carry: either is a fault of the planner.
pub fn cell_readers<'a>(
    batch: &'a RecordBatch,
    columns: &[ColumnMeta],
) -> Result<Vec<CellReader<'a>>> {
    if batch.num_columns() != columns.len() {
        return Err(SqlError::unknown(format!(
            "a result of {} columns has a row of {}",
            columns.len(),
            batch.num_columns()
        )));
    }
    batch
        .columns()
        .iter()
        .zip(columns)
        .map(|(array, column)| {
            CellReader::new(array.as_ref()).ok_or_else(|| {
                SqlError::unknown(format!(
                    "column '{}' has the type {}, which a client cannot receive; CAST it to a type of MySQL",
                    column.name,
                    array.data_type()
                ))
            })
        })
        .collect()
}

impl<'a> CellReader<'a> {
    /// `None` for an Arrow type without a counterpart in the protocol.
    pub fn new(array: &'a dyn Array) -> Option<Self> {
        let any = array.as_any();
        macro_rules! values {
            ($variant:ident) => {
                Values::$variant(any.downcast_ref()?)
            };
        }
        let values = match array.data_type() {
            DataType::Null => Values::Null,
            DataType::Boolean => values!(Boolean),
            DataType::Int8 => values!(Int8),
            DataType::Int16 => values!(Int16),
            DataType::Int32 => values!(Int32),
            DataType::Int64 => values!(Int64),
            DataType::UInt8 => values!(UInt8),
            DataType::UInt16 => values!(UInt16),
            DataType::UInt32 => values!(UInt32),
            DataType::UInt64 => values!(UInt64),
            DataType::Decimal128(_, scale) => Values::Decimal128(any.downcast_ref()?, *scale),
            DataType::Decimal256(_, scale) => Values::Decimal256(any.downcast_ref()?, *scale),
            DataType::Float32 => values!(Float32),
            DataType::Float64 => values!(Float64),
            DataType::Utf8 => values!(Utf8),
            DataType::LargeUtf8 => values!(LargeUtf8),
            DataType::Utf8View => values!(Utf8View),
            DataType::Binary => values!(Binary),
            DataType::BinaryView => values!(BinaryView),
            DataType::FixedSizeBinary(_) => values!(FixedSizeBinary),
            DataType::Date32 => values!(Date32),
            DataType::Timestamp(TimeUnit::Second, _) => values!(TimestampSecond),
            DataType::Timestamp(TimeUnit::Millisecond, _) => values!(TimestampMillisecond),
            DataType::Timestamp(TimeUnit::Microsecond, _) => values!(TimestampMicrosecond),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => values!(TimestampNanosecond),
            DataType::Time64(TimeUnit::Microsecond) => values!(Time64Microsecond),
            DataType::Time64(TimeUnit::Nanosecond) => values!(Time64Nanosecond),
            DataType::Duration(TimeUnit::Microsecond) => values!(DurationMicrosecond),
            _ => return None,
        };
        Some(CellReader { array, values })
    }

    pub fn cell(&self, row: usize) -> Cell<'a> {
        if self.array.is_null(row) {
            return Cell::Null;
        }
        match &self.values {
            Values::Null => Cell::Null,
            Values::Boolean(values) => Cell::Signed(i64::from(values.value(row))),
            Values::Int8(values) => Cell::Signed(values.value(row).into()),
            Values::Int16(values) => Cell::Signed(values.value(row).into()),
            Values::Int32(values) => Cell::Signed(values.value(row).into()),
            Values::Int64(values) => Cell::Signed(values.value(row)),
            Values::UInt8(values) => Cell::Unsigned(values.value(row).into()),
            Values::UInt16(values) => Cell::Unsigned(values.value(row).into()),
            Values::UInt32(values) => Cell::Unsigned(values.value(row).into()),
            Values::UInt64(values) => Cell::Unsigned(values.value(row)),
            Values::Decimal128(values, scale) => Cell::Decimal {
                unscaled: values.value(row),
                scale: *scale,
            },
            Values::Decimal256(values, scale) => Cell::WideDecimal {
                unscaled: wide_of(values.value(row)),
                scale: *scale,
            },
            Values::Float32(values) => Cell::Float(values.value(row)),
            Values::Float64(values) => Cell::Double(values.value(row)),
            Values::Utf8(values) => Cell::Bytes(values.value(row).as_bytes()),
            Values::LargeUtf8(values) => Cell::Bytes(values.value(row).as_bytes()),
            Values::Utf8View(values) => Cell::Bytes(values.value(row).as_bytes()),
            Values::Binary(values) => Cell::Bytes(values.value(row)),
            Values::BinaryView(values) => Cell::Json(values.value(row)),
            Values::FixedSizeBinary(values) => Cell::Bytes(values.value(row)),
            Values::Date32(values) => Cell::Date(values.value(row)),
            Values::TimestampSecond(values) => {
                Cell::DateTime(values.value(row).saturating_mul(1_000_000))
            }
            Values::TimestampMillisecond(values) => {
                Cell::DateTime(values.value(row).saturating_mul(1_000))
            }
            Values::TimestampMicrosecond(values) => Cell::DateTime(values.value(row)),
            Values::TimestampNanosecond(values) => {
                Cell::DateTime(values.value(row).div_euclid(1_000))
            }
            Values::Time64Microsecond(values) => Cell::Time(values.value(row)),
            Values::Time64Nanosecond(values) => Cell::Time(values.value(row).div_euclid(1_000)),
            Values::DurationMicrosecond(values) => Cell::Time(values.value(row)),
        }
    }
}
