//! Encoded keys of an index, and ranges of them, from rows as Arrow arrays.
//!
//! A range is of the part behind the keys. Each of its bounds is a value, too, which need not fit the index's column:
//!
//! ```text
//!   a TINYINT   a >= 3000    nothing is in the range
//!               a <= 3000    no bound
//! ```

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::{CastOptions, cast, cast_with_options, nullif};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, DurationMicrosecondType, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion_common::{Result, internal_err};
use datafusion_physical_expr::PhysicalExpr;
use sheaf_access::{IndexRef, KeyedLookupSpec, arrow_type, int256_of};
use sheaf_storage::prefix_successor;
use sheaf_table::{KeyLayout, ValueRef};
use sheaf_types::ColumnType;
use sheaf_types::number::Wide;

/// One part of a key.
#[derive(Debug, Clone)]
pub struct KeyColumn {
    /// The value, over the rows that keys are made of.
    pub expr: Arc<dyn PhysicalExpr>,
    /// The Arrow type of the index's column. A value that does not fit it matches nothing.
    pub data_type: DataType,
    /// The least and the greatest value of the column, where they are nearer than those of the Arrow type: MEDIUMINT.
    pub range: Option<(i64, i64)>,
}

impl KeyColumn {
    /// The key part of a column of this type, whose values are those of an expression.
    pub fn new(expr: Arc<dyn PhysicalExpr>, ty: &ColumnType) -> KeyColumn {
        let is_medium = ty.integer_bits() == Some(24);
        let range = ty.integer_range().filter(|_| is_medium);
        KeyColumn {
            expr,
            data_type: arrow_type(ty),
            range: range.map(|(least, greatest)| (least as i64, greatest as i64)),
        }
    }
}

/// A bound of the part behind the keys.
#[derive(Debug, Clone)]
pub struct KeyBound {
    pub column: KeyColumn,
    pub side: BoundSide,
    /// Whether what is equal to it is in the range.
    pub included: bool,
}

impl fmt::Display for KeyBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = match (self.side, self.included) {
            (BoundSide::Lower, true) => ">=",
            (BoundSide::Lower, false) => ">",
            (BoundSide::Upper, true) => "<=",
            (BoundSide::Upper, false) => "<",
        };
        write!(f, "{operator} {}", self.column.expr)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundSide {
    Lower,
    Upper,
}

/// Bytes of a bound from which on the others are left out. No key of an index has so many, so the range stays the same.
const MAX_BOUND_BYTES: usize = 16 << 10;

/// Makes keys of the index that a lookup reads, or ranges of them.
pub(crate) struct KeyEncoder {
    spec: Arc<KeyedLookupSpec>,
    /// One per leading part of the index.
    keys: Vec<KeyColumn>,
    /// Of the part behind them.
    bounds: Vec<KeyBound>,
    /// The key under construction.
    key: Vec<u8>,
}

/// What an outer row looks up: entries that begin with the key, from `start` on and before `end`.
pub(crate) struct EncodedRange<'k> {
    pub(crate) key: &'k [u8],
    pub(crate) start: &'k [u8],
    /// `None`: to the end of the index.
    pub(crate) end: Option<&'k [u8]>,
}

/// The values of a bound, one for each row.
struct BoundValues {
    given: ArrayRef,
    /// As the index's column holds them; NULL where it cannot.
    fitting: ArrayRef,
    side: BoundSide,
    included: bool,
}

impl BoundValues {
    /// Where a value that does not fit the column lies beside all that do; `None` if that is not known.
    fn lies(&self, row: usize) -> Option<BoundSide> {
        let value = cast(&self.given.slice(row, 1), &DataType::Float64).ok()?;
        let value = value.as_primitive::<Float64Type>();
        value.is_valid(0).then(|| match value.value(0) > 0.0 {
            true => BoundSide::Upper,
            false => BoundSide::Lower,
        })
    }
}

impl KeyEncoder {
    pub(crate) fn new(spec: &Arc<KeyedLookupSpec>, keys: Vec<KeyColumn>) -> KeyEncoder {
        KeyEncoder {
            spec: Arc::clone(spec),
            keys,
            bounds: Vec::new(),
            key: Vec::new(),
        }
    }

    /// The same with bounds of the part behind the keys, for [`encode_ranges`](Self::encode_ranges).
    pub(crate) fn with_bounds(mut self, bounds: Vec<KeyBound>) -> KeyEncoder {
        self.bounds = bounds;
        self
    }

    /// Calls `take` with each row of `batch`, by its number, and its key. Rows with a NULL in the key match nothing,
    /// and are left out.
    pub(crate) fn encode(
        &mut self,
        batch: &RecordBatch,
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        // A value that the column cannot hold becomes NULL, and so matches nothing.
        let values = self.keys.iter().map(|key| Ok(key.values(batch)?.1));
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
            // No entry of an index is as long.
            if self.key.len() <= MAX_BOUND_BYTES {
                take(row, &self.key);
            }
        }
        Ok(())
    }

    /// Calls `take` with each row of `batch`, by its number, and its range. Rows with a NULL in the key or in a bound
    /// match nothing, and are left out.
    pub(crate) fn encode_ranges(
        &mut self,
        batch: &RecordBatch,
        mut take: impl FnMut(usize, EncodedRange<'_>),
    ) -> Result<()> {
        let bounds = self.bounds.iter().map(|bound| {
            let (given, fitting) = bound.column.values(batch)?;
            Ok(BoundValues {
                given,
                fitting,
                side: bound.side,
                included: bound.included,
            })
        });
        let bounds = bounds.collect::<Result<Vec<BoundValues>>>()?;
        let readers = bounds
            .iter()
            .map(|bound| value_reader(&bound.fitting))
            .collect::<Result<Vec<_>>>()?;
        let spec = Arc::clone(&self.spec);
        let layout = layout(&spec);
        let part = self.keys.len();
        let mut bytes = Vec::new();
        self.encode(batch, |row, key| {
            let key = &key[..key.len().min(MAX_BOUND_BYTES)];
            bytes.clear();
            bytes.extend_from_slice(key);
            // The NULLs of the part come first, and are in no range.
            let mut start = match layout.parts[part].nullable {
                true => {
                    layout.encode_part(part, ValueRef::Null, &mut bytes);
                    prefix_successor(&bytes).unwrap_or_default()
                }
                false => key.to_vec(),
            };
            let mut end = prefix_successor(key);
            for (bound, read) in bounds.iter().zip(&readers) {
                if bound.given.is_null(row) {
                    return;
                }
                if bound.fitting.is_null(row) {
                    match bound.lies(row) {
                        Some(lies) if lies != bound.side => return,
                        _ => continue,
                    }
                }
                bytes.clear();
                bytes.extend_from_slice(key);
                layout.encode_part(part, read(row), &mut bytes);
                bytes.truncate(MAX_BOUND_BYTES);
                match (bound.side, bound.included) {
                    (BoundSide::Lower, true) => start = start.max(bytes.clone()),
                    (BoundSide::Lower, false) => match prefix_successor(&bytes) {
                        Some(after) => start = start.max(after),
                        None => return,
                    },
                    (BoundSide::Upper, included) => {
                        let own_end = match included {
                            true => prefix_successor(&bytes),
                            false => Some(bytes.clone()),
                        };
                        end = match (end.take(), own_end) {
                            (Some(one), Some(other)) => Some(one.min(other)),
                            (one, other) => one.or(other),
                        };
                    }
                }
            }
            if end.as_ref().is_none_or(|end| *end > start) {
                let end = end.as_deref();
                take(
                    row,
                    EncodedRange {
                        key,
                        start: &start,
                        end,
                    },
                );
            }
        })
    }
}

impl KeyColumn {
    /// The values for the rows of `batch`: as they are computed, and as the index's column holds them, NULL where it
    /// cannot.
    fn values(&self, batch: &RecordBatch) -> Result<(ArrayRef, ArrayRef)> {
        let given = self.expr.evaluate(batch)?.into_array(batch.num_rows())?;
        let options = CastOptions {
            safe: true,
            ..CastOptions::default()
        };
        let fitting = match given.data_type() == &self.data_type {
            true => Arc::clone(&given),
            false => cast_with_options(&given, &self.data_type, &options)?,
        };
        let fitting = match self.range {
            Some((least, greatest)) => within(&fitting, least, greatest)?,
            None => fitting,
        };
        Ok((given, fitting))
    }
}

/// The values, with NULL in the place of those that are less or greater.
fn within(values: &ArrayRef, least: i64, greatest: i64) -> Result<ArrayRef> {
    let wide = cast(values, &DataType::Int64)?;
    let numbers = wide.as_primitive::<Int64Type>();
    let is_outside =
        |number: Option<i64>| number.map(|number| !(least..=greatest).contains(&number));
    let outside: BooleanArray = numbers.iter().map(is_outside).collect();
    match outside.true_count() {
        0 => Ok(Arc::clone(values)),
        _ => Ok(nullif(values, &outside)?),
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
        DataType::Decimal256(_, _) => {
            let values = array.as_primitive::<Decimal256Type>().values();
            Box::new(move |row| {
                // No column has a number of more digits.
                let wide = int256_of(values[row]).to_wide();
                ValueRef::WideDecimal(wide.unwrap_or(Wide::BEYOND))
            })
        }
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
