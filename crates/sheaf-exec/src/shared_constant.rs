//! Constants that may be megabytes long, without copies.
//!
//! [`Literal`] gives a copy of its value to each batch, and a function makes another one, an array. Where an expression
//! is computed for a single row, a long text is an array from the beginning:
//!
//! ```text
//!   Literal          value  ->  copy of the value  ->  array with a copy
//!   SharedConstant   value  <-  array of one row, whose buffer is the value
//! ```

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, BinaryViewBuilder, RecordBatch, StringViewBuilder};
use arrow::buffer::{Buffer, OffsetBuffer};
use arrow::datatypes::{DataType, FieldRef, Schema};
use bytes::Bytes;
use datafusion_common::metadata::FieldMetadata;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::ColumnarValue;
use datafusion_expr::interval_arithmetic::Interval;
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Literal;

/// Shorter texts are copied.
const LONG_BYTES: usize = 64 << 10;

/// The expression that has this value for each row. `metadata`: what its type is besides that of the value.
pub fn constant(
    value: &Arc<ScalarValue>,
    metadata: Option<FieldMetadata>,
) -> Result<Arc<dyn PhysicalExpr>> {
    let is_long = matches!(
        value.as_ref(),
        ScalarValue::Utf8View(Some(text)) if text.len() >= LONG_BYTES
    );
    Ok(match is_long {
        true => Arc::new(SharedConstant::new(Arc::clone(value), metadata)?),
        false => Arc::new(Literal::new_with_metadata(
            ScalarValue::clone(value),
            metadata,
        )),
    })
}

/// See the module's comment.
#[derive(Debug)]
pub struct SharedConstant {
    value: Arc<ScalarValue>,
    field: FieldRef,
    /// Of one row.
    array: ArrayRef,
}

/// The bytes of a value that others have as well.
struct Shared(Arc<ScalarValue>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        match self.0.as_ref() {
            ScalarValue::Utf8View(Some(text)) => text.as_bytes(),
            ScalarValue::BinaryView(Some(bytes)) | ScalarValue::Binary(Some(bytes)) => bytes,
            _ => &[],
        }
    }
}

/// A text or a byte string as an array of one row, which has the value's own bytes. `None`: the value is neither.
pub(crate) fn array_of_one(value: &Arc<ScalarValue>) -> Result<Option<ArrayRef>> {
    let shared = || Bytes::from_owner(Shared(Arc::clone(value)));
    // No value of a statement is longer.
    let bytes_of = |shared: &Bytes| match u32::try_from(shared.len()) {
        Ok(bytes) if bytes <= i32::MAX.cast_unsigned() => Ok(bytes),
        _ => datafusion_common::internal_err!("a value of {} bytes", shared.len()),
    };
    Ok(Some(match value.as_ref() {
        ScalarValue::Utf8View(Some(_)) => {
            let mut builder = StringViewBuilder::with_capacity(1);
            let shared = shared();
            let bytes = bytes_of(&shared)?;
            let block = builder.append_block(Buffer::from(shared));
            builder.try_append_view(block, 0, bytes)?;
            Arc::new(builder.finish())
        }
        ScalarValue::BinaryView(Some(_)) => {
            let mut builder = BinaryViewBuilder::with_capacity(1);
            let shared = shared();
            let bytes = bytes_of(&shared)?;
            let block = builder.append_block(Buffer::from(shared));
            builder.try_append_view(block, 0, bytes)?;
            Arc::new(builder.finish())
        }
        ScalarValue::Binary(Some(_)) => {
            let shared = shared();
            let bytes = bytes_of(&shared)?;
            let offsets = OffsetBuffer::new(vec![0, bytes.cast_signed()].into());
            Arc::new(BinaryArray::new(offsets, Buffer::from(shared), None))
        }
        _ => return Ok(None),
    }))
}

impl SharedConstant {
    pub(crate) fn value(&self) -> &ScalarValue {
        &self.value
    }

    /// The value is a text.
    fn new(value: Arc<ScalarValue>, metadata: Option<FieldMetadata>) -> Result<SharedConstant> {
        // It has the field of a literal of this type.
        let field =
            Literal::new_with_metadata(ScalarValue::Utf8View(Some(String::new())), metadata)
                .return_field(&Schema::empty())?;
        let Some(array) = array_of_one(&value)? else {
            return datafusion_common::internal_err!("a constant that is no text");
        };
        Ok(SharedConstant {
            value,
            field,
            array,
        })
    }
}

impl PartialEq for SharedConstant {
    fn eq(&self, other: &SharedConstant) -> bool {
        self.value == other.value && self.field == other.field
    }
}

impl Eq for SharedConstant {}

impl Hash for SharedConstant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

impl fmt::Display for SharedConstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.value, f)
    }
}

impl PhysicalExpr for SharedConstant {
    fn data_type(&self, _schema: &Schema) -> Result<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn nullable(&self, _schema: &Schema) -> Result<bool> {
        Ok(false)
    }

    fn return_field(&self, _schema: &Schema) -> Result<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    /// Of several rows it is a constant to functions, which compute one row for all where nothing else differs.
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        Ok(match batch.num_rows() {
            1 => ColumnarValue::Array(Arc::clone(&self.array)),
            _ => ColumnarValue::Scalar(ScalarValue::clone(&self.value)),
        })
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(self)
    }

    fn get_properties(&self, _children: &[ExprProperties]) -> Result<ExprProperties> {
        Ok(ExprProperties {
            sort_properties: SortProperties::Singleton,
            range: Interval::make_unbounded(self.field.data_type())?,
            preserves_lex_ordering: true,
            strictly_order_preserving: true,
        })
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray, RecordBatchOptions};

    use super::*;

    #[test]
    fn bytes_are_not_copied_for_a_row() {
        let bytes = b"x".repeat(LONG_BYTES);
        for value in [
            ScalarValue::Binary(Some(bytes.clone())),
            ScalarValue::BinaryView(Some(bytes.clone())),
        ] {
            let value = Arc::new(value);
            let array = array_of_one(&value).unwrap().unwrap();
            assert_eq!(array.data_type(), &value.data_type());
            let own = Shared(Arc::clone(&value));
            let shared = match value.as_ref() {
                ScalarValue::Binary(_) => array.as_binary::<i32>().value(0),
                _ => array.as_binary_view().value(0),
            };
            assert_eq!(
                (shared.as_ptr(), shared.len()),
                (own.as_ref().as_ptr(), LONG_BYTES)
            );
        }
        let number = Arc::new(ScalarValue::Int64(Some(1)));
        assert!(array_of_one(&number).unwrap().is_none());
    }

    #[test]
    fn a_long_text_is_not_copied_for_a_row() {
        let text = |length: usize| Arc::new(ScalarValue::Utf8View(Some("é".repeat(length / 2))));
        let rows = |count: usize| {
            let options = RecordBatchOptions::new().with_row_count(Some(count));
            RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)
                .unwrap()
        };
        let long = text(LONG_BYTES);
        let written = long.try_as_str().flatten().unwrap();
        let expression = constant(&long, None).unwrap();
        let Ok(ColumnarValue::Array(array)) = expression.evaluate(&rows(1)) else {
            panic!("{expression:?}");
        };
        let shared = array.as_string_view().value(0);
        assert_eq!(
            (shared.as_ptr(), shared.len()),
            (written.as_ptr(), LONG_BYTES)
        );
        assert_eq!(
            array.data_type(),
            &expression.data_type(&Schema::empty()).unwrap()
        );
        let of_several = expression.evaluate(&rows(2)).unwrap();
        assert_eq!(of_several.into_array(2).unwrap().len(), 2);
        let short = constant(&text(LONG_BYTES - 2), None).unwrap();
        assert!(short.is::<Literal>() && !expression.is::<Literal>());
        assert_eq!(
            short.return_field(&Schema::empty()).unwrap(),
            expression.return_field(&Schema::empty()).unwrap()
        );
    }
}
