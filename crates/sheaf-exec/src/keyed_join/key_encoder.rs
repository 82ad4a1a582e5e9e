//! Encoded keys of an index from rows as Arrow arrays.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use datafusion_common::{Result, internal_err};
use datafusion_physical_expr::PhysicalExpr;
use sheaf_access::{IndexRef, KeyedLookupSpec};
use sheaf_table::{KeyLayout, ValueRef};

/// One part of a key.
#[derive(Debug, Clone)]
pub struct KeyColumn {
    /// The value, over the rows that keys are made of.
    pub expr: Arc<dyn PhysicalExpr>,
    /// The Arrow type of the index's column. A value that does not fit it matches nothing.
    pub data_type: DataType,
}

/// Makes keys of the index that a lookup reads.
pub(crate) struct KeyEncoder {
    spec: Arc<KeyedLookupSpec>,
    /// One per leading part of the index.
    keys: Vec<KeyColumn>,
    /// The key under construction.
    key: Vec<u8>,
}

impl KeyEncoder {
    pub(crate) fn new(spec: &Arc<KeyedLookupSpec>, keys: Vec<KeyColumn>) -> KeyEncoder {
        KeyEncoder {
            spec: Arc::clone(spec),
            keys,
            key: Vec::new(),
        }
    }

    /// Calls `take` with each row of `batch`, by its number, and its key. Rows with a NULL in the key match nothing,
    /// and are left out.
    pub(crate) fn encode(
        &mut self,
        batch: &RecordBatch,
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        let cast = CastOptions {
            safe: true,
            ..CastOptions::default()
        };
        let values = self.keys.iter().map(|key| {
            let value = key.expr.evaluate(batch)?.into_array(batch.num_rows())?;
            // A value that the column cannot hold becomes NULL, and so matches nothing.
            Ok(if value.data_type() == &key.data_type {
                value
            } else {
                cast_with_options(&value, &key.data_type, &cast)?
            })
        });
        let values = values.collect::<Result<Vec<ArrayRef>>>()?;
        let readers = values
            .iter()
            .map(|array| value_reader(array))
            .collect::<Result<Vec<_>>>()?;
        let layout = layout(&self.spec);
        for row in 0..batch.num_rows() {
            if values.iter().any(|array| array.is_null(row)) {
                continue;
            }
            self.key.clear();
            for (part, read) in readers.iter().enumerate() {
                layout.encode_part(part, read(row), &mut self.key);
            }
            take(row, &self.key);
        }
        Ok(())
    }
}

fn layout(spec: &KeyedLookupSpec) -> &KeyLayout {
    match spec.index {
        IndexRef::Clustered => &spec.table.clustered_layout,
        IndexRef::Secondary(position) => &spec.table.secondary_layouts[position],
    }
}

type ValueReader<'a> = Box<dyn Fn(usize) -> ValueRef<'a> + 'a>;

/// Reads the values of a column as the key codec takes them. Callers leave out the NULLs.
fn value_reader(array: &dyn Array) -> Result<ValueReader<'_>> {
    macro_rules! integers {
        ($type:ty, $variant:ident) => {{
            let values = array.as_primitive::<$type>().values();
            Box::new(move |row| ValueRef::$variant(values[row].into()))
        }};
    }
    Ok(match array.data_type() {
        DataType::Int8 => integers!(Int8Type, Int),
        DataType::Int16 => integers!(Int16Type, Int),
        DataType::Int32 => integers!(Int32Type, Int),
        DataType::Int64 => integers!(Int64Type, Int),
        DataType::UInt8 => integers!(UInt8Type, UInt),
        DataType::UInt16 => integers!(UInt16Type, UInt),
        DataType::UInt32 => integers!(UInt32Type, UInt),
        DataType::UInt64 => integers!(UInt64Type, UInt),
        DataType::Float32 => integers!(Float32Type, Float),
        DataType::Float64 => integers!(Float64Type, Double),
        DataType::Decimal128(_, _) => integers!(Decimal128Type, Decimal),
        DataType::Date32 => integers!(Date32Type, Int),
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            integers!(TimestampMicrosecondType, Int)
        }
        DataType::Duration(TimeUnit::Microsecond) => integers!(DurationMicrosecondType, Int),
        DataType::Utf8View => {
            let values = array.as_string_view();
            Box::new(move |row| ValueRef::Bytes(values.value(row).as_bytes()))
        }
        DataType::Binary => {
            let values = array.as_binary::<i32>();
            Box::new(move |row| ValueRef::Bytes(values.value(row)))
        }
        other => return internal_err!("a key of type {other}"),
    })
}
