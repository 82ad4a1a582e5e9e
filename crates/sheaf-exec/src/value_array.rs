//! Values of a column as the array that a scan of the column would deliver.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BinaryViewArray, Date32Array, Decimal128Array, Decimal256Array,
    DurationMicrosecondArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int64Array, StringViewArray, TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use sheaf_access::{arrow_type, i256_of};
use sheaf_types::labels::text_of_number;
use sheaf_types::{ColumnType, Value};

/// The values, in the array type of the column type. A value of another type is NULL in it.
///
/// # Errors
/// The precision of a DECIMAL is beyond Arrow's.
pub fn array_of(ty: &ColumnType, values: &[&Value]) -> Result<ArrayRef, ArrowError> {
    let int = |value: &&Value| value.as_i128();
    macro_rules! integers {
        ($array:ty, $native:ty) => {
            Arc::new(<$array>::from_iter(
                values.iter().map(|value| int(value).map(|v| v as $native)),
            ))
        };
    }
    if ty.has_labels() {
        let labels = values.iter().map(|value| match value {
            // As a query has delivered it.
            Value::Text(label) => Some(Cow::Borrowed(label.as_str())),
            value => Some(text_of_number(ty, value.label_number()?)),
        });
        return Ok(Arc::new(StringViewArray::from_iter(labels)));
    }
    Ok(match arrow_type(ty) {
        DataType::Int8 => integers!(Int8Array, i8),
        DataType::UInt8 => integers!(UInt8Array, u8),
        DataType::Int16 => integers!(Int16Array, i16),
        DataType::UInt16 => integers!(UInt16Array, u16),
        DataType::Int32 => integers!(Int32Array, i32),
        DataType::UInt32 => integers!(UInt32Array, u32),
        DataType::Int64 => integers!(Int64Array, i64),
        DataType::UInt64 => integers!(UInt64Array, u64),
        DataType::Float32 => Arc::new(Float32Array::from_iter(values.iter().map(|v| match v {
            Value::Float(v) => Some(*v),
            _ => None,
        }))),
        DataType::Float64 => Arc::new(Float64Array::from_iter(values.iter().map(|v| match v {
            Value::Double(v) => Some(*v),
            _ => None,
        }))),
        DataType::Decimal128(precision, scale) => {
            let numbers = values.iter().map(|v| match v {
                Value::Decimal { unscaled, .. } => Some(*unscaled),
                _ => None,
            });
            let array = Decimal128Array::from_iter(numbers);
            Arc::new(array.with_precision_and_scale(precision, scale)?)
        }
        DataType::Decimal256(precision, scale) => {
            let numbers = values.iter().map(|v| Some(i256_of(v.as_decimal()?.0)));
            let array = Decimal256Array::from_iter(numbers);
            Arc::new(array.with_precision_and_scale(precision, scale)?)
        }
        DataType::Date32 => Arc::new(Date32Array::from_iter(values.iter().map(|v| match v {
            Value::Date(v) => Some(*v),
            _ => None,
        }))),
        DataType::Duration(_) => Arc::new(DurationMicrosecondArray::from_iter(values.iter().map(
            |v| match v {
                Value::Time(v) => Some(*v),
                _ => None,
            },
        ))),
        DataType::Timestamp(..) => Arc::new(TimestampMicrosecondArray::from_iter(
            values.iter().map(|v| match v {
                Value::DateTime(v) | Value::Timestamp(v) => Some(*v),
                _ => None,
            }),
        )),
        DataType::Binary => Arc::new(BinaryArray::from_iter(values.iter().map(|v| match v {
            Value::Bytes(bytes) => Some(bytes.as_slice()),
            _ => None,
        }))),
        DataType::BinaryView => {
            let documents = values.iter().map(|v| match v {
                Value::Json(document) => Some(document.as_slice()),
                _ => None,
            });
            Arc::new(BinaryViewArray::from_iter(documents))
        }
        // Texts. No column has any other type.
        _ => Arc::new(StringViewArray::from_iter(values.iter().map(|v| match v {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        }))),
    })
}
