//! Rows of a direct plan as Arrow batches, for sinks whose readers want those.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BinaryViewBuilder, Date32Builder, Decimal128Builder,
    Decimal256Builder, DurationMicrosecondBuilder, Float32Builder, Float64Builder, Int8Builder,
    Int16Builder, Int32Builder, Int64Builder, StringViewBuilder, TimestampMicrosecondBuilder,
    UInt8Builder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow::datatypes::{DataType, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use sheaf_access::i256_of;

use crate::error::{Result, SqlError};
use crate::session::result::{Cell, CellRow};

/// Collects rows until they are [taken](Self::finish) as a batch.
pub struct BatchBuilder {
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    rows: usize,
}

impl BatchBuilder {
    /// For rows of a schema as direct plans announce it.
    pub fn new(schema: &SchemaRef) -> Result<BatchBuilder> {
        let columns = schema.fields().iter();
        Ok(BatchBuilder {
            schema: Arc::clone(schema),
            columns: columns
                .map(|field| ColumnBuilder::new(field.data_type()))
                .collect::<Result<_>>()?,
            rows: 0,
        })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns about how many bytes the row takes.
    pub fn append(&mut self, row: &dyn CellRow) -> Result<usize> {
        /// Of a value that is no string, or a view of one.
        const VALUE_BYTES: usize = 16;
        let mut bytes = 0;
        for (position, column) in self.columns.iter_mut().enumerate() {
            let cell = row.cell(position);
            bytes += VALUE_BYTES;
            if let Cell::Bytes(string) | Cell::Json(string) = &cell {
                bytes += string.len();
                // The row has it as well.
                if !sheaf_memory::has_room_for_value(string.len()) {
                    return Err(SqlError::query_interrupted());
                }
            }
            column.append(cell)?;
        }
        self.rows += 1;
        Ok(bytes)
    }

    /// The rows since the last call.
    pub fn finish(&mut self) -> Result<RecordBatch> {
        self.rows = 0;
        let arrays = self.columns.iter_mut().map(ColumnBuilder::finish);
        Ok(RecordBatch::try_new(
            Arc::clone(&self.schema),
            arrays.collect(),
        )?)
    }
}

macro_rules! column_builders {
    ($($kind:ident($builder:ty)),* $(,)?) => {
        enum ColumnBuilder {
            $($kind($builder),)*
        }

        impl ColumnBuilder {
            fn append_null(&mut self) {
                match self {
                    $(ColumnBuilder::$kind(builder) => builder.append_null(),)*
                }
            }

            fn finish(&mut self) -> ArrayRef {
                match self {
                    $(ColumnBuilder::$kind(builder) => Arc::new(builder.finish()),)*
                }
            }
        }
    };
}

column_builders! {
    Int8(Int8Builder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    UInt8(UInt8Builder),
    UInt16(UInt16Builder),
    UInt32(UInt32Builder),
    UInt64(UInt64Builder),
    Decimal(Decimal128Builder),
    WideDecimal(Decimal256Builder),
    Float(Float32Builder),
    Double(Float64Builder),
    Text(StringViewBuilder),
    Bytes(BinaryBuilder),
    Json(BinaryViewBuilder),
    Date(Date32Builder),
    DateTime(TimestampMicrosecondBuilder),
    Time(DurationMicrosecondBuilder),
}

impl ColumnBuilder {
    fn new(ty: &DataType) -> Result<ColumnBuilder> {
        Ok(match ty {
            DataType::Int8 => ColumnBuilder::Int8(Int8Builder::new()),
            DataType::Int16 => ColumnBuilder::Int16(Int16Builder::new()),
            DataType::Int32 => ColumnBuilder::Int32(Int32Builder::new()),
            DataType::Int64 => ColumnBuilder::Int64(Int64Builder::new()),
            DataType::UInt8 => ColumnBuilder::UInt8(UInt8Builder::new()),
            DataType::UInt16 => ColumnBuilder::UInt16(UInt16Builder::new()),
            DataType::UInt32 => ColumnBuilder::UInt32(UInt32Builder::new()),
            DataType::UInt64 => ColumnBuilder::UInt64(UInt64Builder::new()),
            DataType::Decimal128(..) => {
                ColumnBuilder::Decimal(Decimal128Builder::new().with_data_type(ty.clone()))
            }
            DataType::Decimal256(..) => {
                ColumnBuilder::WideDecimal(Decimal256Builder::new().with_data_type(ty.clone()))
            }
            DataType::Float32 => ColumnBuilder::Float(Float32Builder::new()),
            DataType::Float64 => ColumnBuilder::Double(Float64Builder::new()),
            DataType::Utf8View => ColumnBuilder::Text(StringViewBuilder::new()),
            DataType::Binary => ColumnBuilder::Bytes(BinaryBuilder::new()),
            DataType::BinaryView => ColumnBuilder::Json(BinaryViewBuilder::new()),
            DataType::Date32 => ColumnBuilder::Date(Date32Builder::new()),
            DataType::Timestamp(TimeUnit::Microsecond, None) => {
                ColumnBuilder::DateTime(TimestampMicrosecondBuilder::new())
            }
            DataType::Duration(TimeUnit::Microsecond) => {
                ColumnBuilder::Time(DurationMicrosecondBuilder::new())
            }
            other => {
                return Err(SqlError::unknown(format!(
                    "a direct plan's column of the internal type {other}"
                )));
            }
        })
    }

    fn append(&mut self, cell: Cell<'_>) -> Result<()> {
        match (self, cell) {
            (column, Cell::Null) => column.append_null(),
            // Columns hold what their types can.
            (ColumnBuilder::Int8(column), Cell::Signed(value)) => column.append_value(value as i8),
            (ColumnBuilder::Int16(column), Cell::Signed(value)) => {
                column.append_value(value as i16)
            }
            (ColumnBuilder::Int32(column), Cell::Signed(value)) => {
                column.append_value(value as i32)
            }
            (ColumnBuilder::Int64(column), Cell::Signed(value)) => column.append_value(value),
            (ColumnBuilder::UInt8(column), Cell::Unsigned(value)) => {
                column.append_value(value as u8)
            }
            (ColumnBuilder::UInt16(column), Cell::Unsigned(value)) => {
                column.append_value(value as u16)
            }
            // A YEAR.
            (ColumnBuilder::UInt16(column), Cell::Signed(value)) => {
                column.append_value(value as u16)
            }
            (ColumnBuilder::UInt32(column), Cell::Unsigned(value)) => {
                column.append_value(value as u32)
            }
            (ColumnBuilder::UInt64(column), Cell::Unsigned(value)) => column.append_value(value),
            (ColumnBuilder::Decimal(column), Cell::Decimal { unscaled, .. }) => {
                column.append_value(unscaled)
            }
            (ColumnBuilder::WideDecimal(column), Cell::WideDecimal { unscaled, .. }) => {
                column.append_value(i256_of(unscaled.into()))
            }
            (ColumnBuilder::Float(column), Cell::Float(value)) => column.append_value(value),
            (ColumnBuilder::Double(column), Cell::Double(value)) => column.append_value(value),
            (ColumnBuilder::Text(column), Cell::Bytes(bytes)) => {
                column.append_value(String::from_utf8_lossy(bytes))
            }
            (ColumnBuilder::Bytes(column), Cell::Bytes(bytes)) => column.append_value(bytes),
            (ColumnBuilder::Json(column), Cell::Json(bytes)) => column.append_value(bytes),
            (ColumnBuilder::Date(column), Cell::Date(days)) => column.append_value(days),
            (ColumnBuilder::DateTime(column), Cell::DateTime(micros)) => {
                column.append_value(micros)
            }
            (ColumnBuilder::Time(column), Cell::Time(micros)) => column.append_value(micros),
            (_, cell) => {
                return Err(SqlError::unknown(format!(
                    "a direct plan's column does not hold {cell:?}"
                )));
            }
        }
        Ok(())
    }
}
