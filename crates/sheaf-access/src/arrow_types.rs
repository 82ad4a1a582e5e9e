//! Which Arrow type carries which column type.
//!
//! The mapping keeps widths and signs, so that a column of fixed width is a strided copy out of the rows.
//! Types that Arrow does not know (labels of ENUM and SET, the bits of a BIT, TIME, the length of a CHAR) survive in
//! the field's metadata: [`TYPE_KEY`] holds the SQL type text.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit, i256};
use sheaf_table::{Column, Table, TableDefinition};
use sheaf_types::column_type::{MAX_DECIMAL_PRECISION, MAX_FRACTION_DIGITS, Sign};
use sheaf_types::number::{Int256, Wide, is_wide};
use sheaf_types::{Collation, ColumnType};

/// Metadata key of a field: the column's SQL type as `ColumnType` displays and parses it.
pub const TYPE_KEY: &str = "sheaf.type";

/// How the clustered key is described to the floors above.
pub(crate) const CLUSTERED_KEY_TYPE: ColumnType = ColumnType::VarBinary {
    length: sheaf_storage::MAX_KEY_BYTES as u32,
};

/// The Arrow type of values of `ty`.
pub fn arrow_type(ty: &ColumnType) -> DataType {
    match ty {
        ColumnType::Bool | ColumnType::TinyInt { sign: Sign::Signed } => DataType::Int8,
        ColumnType::TinyInt { .. } => DataType::UInt8,
        ColumnType::SmallInt { sign: Sign::Signed } => DataType::Int16,
        ColumnType::SmallInt { .. } => DataType::UInt16,
        ColumnType::MediumInt { sign: Sign::Signed } | ColumnType::Int { sign: Sign::Signed } => {
            DataType::Int32
        }
        ColumnType::MediumInt { .. } | ColumnType::Int { .. } => DataType::UInt32,
        ColumnType::BigInt { sign: Sign::Signed } => DataType::Int64,
        ColumnType::BigInt { .. } => DataType::UInt64,
        ColumnType::Bit { .. } => match ty.integer_bits() {
            Some(8) => DataType::UInt8,
            Some(16) => DataType::UInt16,
            Some(32) => DataType::UInt32,
            _ => DataType::UInt64,
        },
        ColumnType::Decimal {
            precision, scale, ..
        } if is_wide(*precision) => DataType::Decimal256(*precision, *scale as i8),
        ColumnType::Decimal {
            precision, scale, ..
        } => DataType::Decimal128(*precision, *scale as i8),
        ColumnType::Float { .. } => DataType::Float32,
        ColumnType::Double { .. } => DataType::Float64,
        ColumnType::Char { .. }
        | ColumnType::VarChar { .. }
        | ColumnType::Text { .. }
        | ColumnType::Enum { .. }
        | ColumnType::Set { .. } => DataType::Utf8View,
        ColumnType::Binary { .. } | ColumnType::VarBinary { .. } | ColumnType::Blob { .. } => {
            DataType::Binary
        }
        // The type of JSON values alone. Arrays share them, as they share texts.
        ColumnType::Json => DataType::BinaryView,
        ColumnType::Date => DataType::Date32,
        ColumnType::Time { .. } => DataType::Duration(TimeUnit::Microsecond),
        ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => {
            DataType::Timestamp(TimeUnit::Microsecond, None)
        }
        ColumnType::Year => DataType::UInt16,
    }
}

/// The column type that holds all values of an Arrow type, of which nothing else is known: signs and widths of what
/// expressions compute, and texts of any length.
pub fn type_of_arrow(data_type: &DataType) -> ColumnType {
    let decimal = |precision: u8, scale: i8| ColumnType::Decimal {
        precision,
        scale: u8::try_from(scale).unwrap_or(0),
        sign: Sign::Signed,
    };
    match data_type {
        DataType::Boolean | DataType::Int8 | DataType::Int16 | DataType::Int32 => {
            ColumnType::Int { sign: Sign::Signed }
        }
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => ColumnType::Int {
            sign: Sign::Unsigned,
        },
        DataType::Int64 => ColumnType::bigint(Sign::Signed),
        DataType::UInt64 => ColumnType::bigint(Sign::Unsigned),
        DataType::Float32 => ColumnType::float(None),
        DataType::Float64 => ColumnType::double(None),
        DataType::Decimal128(precision, scale) => decimal(*precision, *scale),
        DataType::Decimal256(precision, scale) => {
            decimal((*precision).min(MAX_DECIMAL_PRECISION), *scale)
        }
        DataType::Date32 | DataType::Date64 => ColumnType::Date,
        DataType::Timestamp(..) => ColumnType::datetime(MAX_FRACTION_DIGITS),
        DataType::Duration(_) => ColumnType::time(MAX_FRACTION_DIGITS),
        DataType::BinaryView => ColumnType::Json,
        DataType::Binary => ColumnType::Blob {
            max_bytes: u32::MAX.into(),
        },
        _ => ColumnType::longtext(Collation::default()),
    }
}

/// The Arrow field of a column: name, type, nullability, SQL type in the metadata.
pub fn arrow_field(column: &Column) -> Field {
    Field::new(&column.name, arrow_type(&column.ty), column.nullable).with_metadata(HashMap::from(
        [(TYPE_KEY.to_string(), column.ty.descriptor())],
    ))
}

/// The name of the column that holds the encoded clustered key of a row, where a scan is asked for it. No identifier
/// can be written like this.
pub const CLUSTERED_KEY: &str = "\0clustered key";

/// What stands for the clustered key among the positions of a projection: one past the last column.
pub fn clustered_key_position(table: &TableDefinition) -> usize {
    table.columns.len()
}

/// The Arrow field of the clustered key: a byte string, never NULL.
pub fn clustered_key_field() -> Field {
    Field::new(CLUSTERED_KEY, DataType::Binary, false).with_metadata(HashMap::from([(
        TYPE_KEY.to_string(),
        CLUSTERED_KEY_TYPE.descriptor(),
    )]))
}

/// The Arrow field at a position of a projection: of a column, or of the clustered key.
pub fn field_at(table: &TableDefinition, position: usize) -> Field {
    table
        .columns
        .get(position)
        .map_or_else(clustered_key_field, arrow_field)
}

/// The Arrow schema of a whole table, columns in definition order.
pub fn table_schema(table: &TableDefinition) -> SchemaRef {
    Arc::new(Schema::new(
        table.columns.iter().map(arrow_field).collect::<Vec<_>>(),
    ))
}

/// [`table_schema`] of an open table, made once for each version of its definition.
pub fn schema_of(table: &Table) -> SchemaRef {
    table.described_as(table_schema)
}

/// The Arrow schema of some columns of a table, or of its clustered key, in the order given.
pub fn projected_schema(table: &TableDefinition, projection: &[usize]) -> SchemaRef {
    Arc::new(Schema::new(
        projection
            .iter()
            .map(|&position| field_at(table, position))
            .collect::<Vec<_>>(),
    ))
}

/// The number of a wide DECIMAL in an array.
#[inline]
pub fn int256_of(number: i256) -> Int256 {
    let (low, high) = number.to_parts();
    Int256::of_parts(low, high)
}

/// The number of a wide DECIMAL in an array as rows have it. Results of functions and sums fit.
#[inline]
pub fn wide_of(number: i256) -> Wide {
    int256_of(number).to_wide().unwrap_or(Wide::BEYOND)
}

/// A number as arrays of wide DECIMALs have it.
#[inline]
pub fn i256_of(number: Int256) -> i256 {
    let (low, high) = number.parts();
    i256::from_parts(low, high)
}
