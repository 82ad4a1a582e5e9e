//! Rows and index entries become Arrow arrays: one column at a time, a run of rows at a time.
//!
//! A run is a leaf, or a block of looked-up rows that is still in the cache. For each column the bytes are found once,
//! and a tight loop then loads, shifts and stores one number per row. Nothing is allocated per row: the buffers that
//! become arrays are allocated once per batch, at their final size.
//!
//! A column that no row of a run has, as it was added later, is one value for all of them: it is read once, and
//! repeated.
//!
//! Strings become Utf8View, and JSON values BinaryView: up to 12 bytes lie in the view itself, longer ones are copied
//! once into the batch's buffer.

use std::sync::Arc;

use arrow::array::builder::{NullBufferBuilder, make_view};
use arrow::array::{
    ArrayRef, BinaryArray, BinaryViewArray, Date32Array, Decimal128Array, Decimal256Array,
    DurationMicrosecondArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int64Array, StringViewArray, TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, i256};
use sheaf_memory::LONG_VALUE_BYTES;
use sheaf_table::fixed_width_loads::{
    load_big, load_big_wide, load_little, load_little_wide, unflip, unflip_wide, unorder_float32,
    unorder_float64,
};
use sheaf_table::{KeyLayout, RowRun, RowView, SegmentRows, TableError};
use sheaf_types::ColumnType;
use sheaf_types::labels::text_of_number;
use sheaf_types::temporal::TimeZone;

use crate::arrow_types::arrow_type;
use crate::condition::columns::{ColumnSource, NumberKind, Place};
use crate::condition::index_entries::{EntryBlock, PrimaryKeySource};
use crate::error::{AccessError, Result};
use crate::keys::table_snapshot::TableSnapshot;

/// Size at which a new buffer is begun: offsets in views are 32 bits.
const MAX_VIEW_BUFFER_BYTES: usize = 1 << 30;

/// Views of strings, and the bytes of those that are not inlined.
#[derive(Default)]
struct Views {
    views: Vec<u128>,
    bytes: Vec<u8>,
    complete: Vec<Buffer>,
}

impl Views {
    #[inline]
    fn push(&mut self, string: &[u8]) {
        if string.len() <= 12 {
            self.views.push(make_view(string, 0, 0));
            return;
        }
        if self.bytes.len() + string.len() > MAX_VIEW_BUFFER_BYTES && !self.bytes.is_empty() {
            self.complete
                .push(Buffer::from_vec(std::mem::take(&mut self.bytes)));
        }
        let view = make_view(string, self.complete.len() as u32, self.bytes.len() as u32);
        self.bytes.extend_from_slice(string);
        self.views.push(view);
    }

    /// Pushes a string of so many bytes, which `append` appends.
    fn push_long(
        &mut self,
        length: usize,
        append: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        if self.bytes.len() + length > MAX_VIEW_BUFFER_BYTES && !self.bytes.is_empty() {
            self.complete
                .push(Buffer::from_vec(std::mem::take(&mut self.bytes)));
        }
        let start = self.bytes.len();
        append(&mut self.bytes)?;
        let string = &self.bytes[start..];
        let view = make_view(string, self.complete.len() as u32, start as u32);
        self.views.push(view);
        Ok(())
    }

    /// The views and their buffers; nothing is left.
    fn take(&mut self) -> (Vec<u128>, Vec<Buffer>) {
        let views = take_buffer(&mut self.views);
        let mut buffers = std::mem::take(&mut self.complete);
        if !self.bytes.is_empty() {
            buffers.push(Buffer::from_vec(take_buffer(&mut self.bytes)));
        }
        (views, buffers)
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let (views, buffers) = self.take();
        string_array(views, buffers, nulls)
    }
}

/// Where a byte string ends that was just appended.
fn end_of(bytes: &[u8]) -> Result<i32> {
    i32::try_from(bytes.len())
        .map_err(|_| AccessError::Unsupported("2 GiB of byte strings in one batch".to_string()))
}

/// Takes the vector and leaves an empty one that has room for as much again, if that is not much.
fn take_buffer<T>(values: &mut Vec<T>) -> Vec<T> {
    let capacity = values.len().min(LONG_VALUE_BYTES);
    std::mem::replace(values, Vec::with_capacity(capacity))
}

/// Checks that the strings are UTF-8, whatever the pages say.
fn string_array(
    views: Vec<u128>,
    buffers: Vec<Buffer>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    match StringViewArray::try_new(ScalarBuffer::from(views), buffers, nulls) {
        Ok(array) => Ok(Arc::new(array)),
        Err(error) => {
            let detail = format!("a string cannot be read: {error}");
            Err(TableError::Corrupt {
                object: "string column".to_string(),
                detail,
            }
            .into())
        }
    }
}

/// The labels of an ENUM as views; number 0 is the empty string.
struct Labels {
    views: Vec<u128>,
    bytes: Buffer,
}

impl Labels {
    fn new(labels: &[String]) -> Self {
        let mut views = Views::default();
        views.push(b"");
        labels.iter().for_each(|label| views.push(label.as_bytes()));
        Self {
            views: views.views,
            bytes: Buffer::from_vec(views.bytes),
        }
    }

    /// The view of a label; of the empty string if there is no such label.
    #[inline]
    fn view(&self, number: u64) -> u128 {
        self.views
            .get(number as usize)
            .copied()
            .unwrap_or(self.views[0])
    }
}

/// The values of the array to be, by its type.
enum Values {
    Int8(Vec<i8>),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    UInt8(Vec<u8>),
    UInt16(Vec<u16>),
    UInt32(Vec<u32>),
    UInt64(Vec<u64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Decimal {
        values: Vec<i128>,
        precision: u8,
        scale: i8,
    },
    WideDecimal {
        values: Vec<i256>,
        precision: u8,
        scale: i8,
    },
    Date(Vec<i32>),
    Time(Vec<i64>),
    DateTime(Vec<i64>),
    /// Wall clocks of the zone, of the UTC that is appended.
    Timestamp {
        values: Vec<i64>,
        zone: TimeZone,
    },
    Enum {
        views: Vec<u128>,
        labels: Labels,
    },
    Set {
        views: Views,
        ty: ColumnType,
    },
    Text(Views),
    Json(Views),
    Binary {
        bytes: Vec<u8>,
        ends: Vec<i32>,
    },
}

impl Values {
    /// Without room: a plan of a thousand scans starts all of them before the first one reads a row. After its first
    /// batch a scan has [room](take_buffer) for another one like that.
    fn new(ty: &ColumnType, zone: TimeZone) -> Self {
        if let Some(labels) = ty.enum_labels() {
            return Self::Enum {
                views: Vec::new(),
                labels: Labels::new(labels),
            };
        }
        if ty.set_labels().is_some() {
            return Self::Set {
                views: Views::default(),
                ty: ty.clone(),
            };
        }
        match arrow_type(ty) {
            DataType::Int8 => Self::Int8(Vec::new()),
            DataType::Int16 => Self::Int16(Vec::new()),
            DataType::Int32 => Self::Int32(Vec::new()),
            DataType::Int64 => Self::Int64(Vec::new()),
            DataType::UInt8 => Self::UInt8(Vec::new()),
            DataType::UInt16 => Self::UInt16(Vec::new()),
            DataType::UInt32 => Self::UInt32(Vec::new()),
            DataType::UInt64 => Self::UInt64(Vec::new()),
            DataType::Decimal128(precision, scale) => Self::Decimal {
                values: Vec::new(),
                precision,
                scale,
            },
            DataType::Decimal256(precision, scale) => Self::WideDecimal {
                values: Vec::new(),
                precision,
                scale,
            },
            DataType::Float32 => Self::Float32(Vec::new()),
            DataType::Float64 => Self::Float64(Vec::new()),
            DataType::Date32 => Self::Date(Vec::new()),
            DataType::Duration(_) => Self::Time(Vec::new()),
            DataType::Timestamp(..) if zone.is_utc() => Self::DateTime(Vec::new()),
            DataType::Timestamp(..) => Self::Timestamp {
                values: Vec::new(),
                zone,
            },
            DataType::Binary => Self::Binary {
                bytes: Vec::new(),
                ends: Vec::new(),
            },
            DataType::BinaryView => Self::Json(Views::default()),
            // Texts. No column has any other type.
            _ => Self::Text(Views {
                views: Vec::new(),
                ..Views::default()
            }),
        }
    }

    /// Appends numbers given by their low bits, sign-extended to 64.
    #[inline(always)]
    fn extend_numbers(&mut self, numbers: impl Iterator<Item = u64>) {
        match self {
            Self::Int8(values) => values.extend(numbers.map(|number| number as i8)),
            Self::Int16(values) => values.extend(numbers.map(|number| number as i16)),
            Self::Int32(values) | Self::Date(values) => {
                values.extend(numbers.map(|number| number as i32))
            }
            Self::Int64(values) | Self::Time(values) | Self::DateTime(values) => {
                values.extend(numbers.map(|number| number as i64));
            }
            Self::Timestamp { values, zone } => {
                let zone = *zone;
                values.extend(numbers.map(|number| zone.local(number as i64)));
            }
            Self::UInt8(values) => values.extend(numbers.map(|number| number as u8)),
            Self::UInt16(values) => values.extend(numbers.map(|number| number as u16)),
            Self::UInt32(values) => values.extend(numbers.map(|number| number as u32)),
            Self::UInt64(values) => values.extend(numbers),
            Self::Decimal { values, .. } => {
                values.extend(numbers.map(|number| i128::from(number as i64)))
            }
            Self::Enum { views, labels } => views.extend(numbers.map(|number| labels.view(number))),
            Self::Set { views, ty } => {
                numbers.for_each(|number| views.push(text_of_number(ty, number).as_bytes()));
            }
            Self::Float32(_)
            | Self::Float64(_)
            | Self::WideDecimal { .. }
            | Self::Text(_)
            | Self::Json(_)
            | Self::Binary { .. } => {
                debug_assert!(
                    false,
                    "floats, wide decimals and strings have their own loops"
                );
            }
        }
    }

    /// Appends a string: the empty one for NULL.
    ///
    /// # Errors
    /// When a batch of byte strings would not fit 31 bits.
    #[inline]
    fn push_string(&mut self, string: &[u8]) -> Result<()> {
        match self {
            Self::Text(views) | Self::Json(views) => views.push(string),
            Self::Binary { bytes, ends } => {
                bytes.extend_from_slice(string);
                ends.push(end_of(bytes)?);
            }
            _ => debug_assert!(false, "numbers have their own loops"),
        }
        Ok(())
    }

    /// Appends the last value so many times.
    ///
    /// # Errors
    /// As [`push_string`](Self::push_string).
    fn repeat_last(&mut self, more: usize) -> Result<()> {
        fn repeat<T: Copy>(values: &mut Vec<T>, more: usize) {
            if let Some(last) = values.last().copied() {
                values.resize(values.len() + more, last);
            }
        }
        match self {
            Self::Int8(values) => repeat(values, more),
            Self::Int16(values) => repeat(values, more),
            Self::Int32(values) | Self::Date(values) => repeat(values, more),
            Self::Int64(values)
            | Self::Time(values)
            | Self::DateTime(values)
            | Self::Timestamp { values, .. } => repeat(values, more),
            Self::UInt8(values) => repeat(values, more),
            Self::UInt16(values) => repeat(values, more),
            Self::UInt32(values) => repeat(values, more),
            Self::UInt64(values) => repeat(values, more),
            Self::Float32(values) => repeat(values, more),
            Self::Float64(values) => repeat(values, more),
            Self::Decimal { values, .. } => repeat(values, more),
            Self::WideDecimal { values, .. } => repeat(values, more),
            Self::Enum { views, .. } => repeat(views, more),
            // The bytes of a long string are there once.
            Self::Set { views, .. } | Self::Text(views) | Self::Json(views) => {
                repeat(&mut views.views, more);
            }
            Self::Binary { bytes, ends } => {
                let last = ends.len().saturating_sub(1);
                let start = last
                    .checked_sub(1)
                    .map_or(0, |before| ends[before] as usize);
                let value = bytes[start..].to_vec();
                for _ in 0..more {
                    bytes.extend_from_slice(&value);
                    ends.push(end_of(bytes)?);
                }
            }
        }
        Ok(())
    }

    /// As [`push_string`](Self::push_string), of a string of so many bytes that `append` appends.
    fn push_long(
        &mut self,
        length: usize,
        append: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Text(views) | Self::Json(views) => views.push_long(length, append)?,
            Self::Binary { bytes, ends } => {
                append(bytes)?;
                ends.push(end_of(bytes)?);
            }
            _ => debug_assert!(false, "numbers have their own loops"),
        }
        Ok(())
    }

    fn string_bytes(&self) -> usize {
        match self {
            Self::Set { views, .. } | Self::Text(views) | Self::Json(views) => {
                views.bytes.len() + views.complete.iter().map(Buffer::len).sum::<usize>()
            }
            Self::Binary { bytes, .. } => bytes.len(),
            _ => 0,
        }
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        Ok(match self {
            Self::Int8(values) => Arc::new(Int8Array::try_new(take_buffer(values).into(), nulls)?),
            Self::Int16(values) => {
                Arc::new(Int16Array::try_new(take_buffer(values).into(), nulls)?)
            }
            Self::Int32(values) => {
                Arc::new(Int32Array::try_new(take_buffer(values).into(), nulls)?)
            }
            Self::Int64(values) => {
                Arc::new(Int64Array::try_new(take_buffer(values).into(), nulls)?)
            }
            Self::UInt8(values) => {
                Arc::new(UInt8Array::try_new(take_buffer(values).into(), nulls)?)
            }
            Self::UInt16(values) => {
                Arc::new(UInt16Array::try_new(take_buffer(values).into(), nulls)?)
            }
            Self::UInt32(values) => {
                Arc::new(UInt32Array::try_new(take_buffer(values).into(), nulls)?)
            }
            Self::UInt64(values) => {
                Arc::new(UInt64Array::try_new(take_buffer(values).into(), nulls)?)
            }
            Self::Float32(values) => {
                Arc::new(Float32Array::try_new(take_buffer(values).into(), nulls)?)
            }
            Self::Float64(values) => {
                Arc::new(Float64Array::try_new(take_buffer(values).into(), nulls)?)
            }
            Self::Date(values) => {
                Arc::new(Date32Array::try_new(take_buffer(values).into(), nulls)?)
            }
            Self::Time(values) => Arc::new(DurationMicrosecondArray::try_new(
                take_buffer(values).into(),
                nulls,
            )?),
            Self::DateTime(values) | Self::Timestamp { values, .. } => Arc::new(
                TimestampMicrosecondArray::try_new(take_buffer(values).into(), nulls)?,
            ),
            Self::Decimal {
                values,
                precision,
                scale,
            } => Arc::new(
                Decimal128Array::try_new(take_buffer(values).into(), nulls)?
                    .with_precision_and_scale(*precision, *scale)?,
            ),
            Self::WideDecimal {
                values,
                precision,
                scale,
            } => Arc::new(
                Decimal256Array::try_new(take_buffer(values).into(), nulls)?
                    .with_precision_and_scale(*precision, *scale)?,
            ),
            Self::Enum { views, labels } => {
                string_array(take_buffer(views), vec![labels.bytes.clone()], nulls)?
            }
            Self::Set { views, .. } | Self::Text(views) => views.finish(nulls)?,
            Self::Json(views) => {
                let (views, buffers) = views.take();
                Arc::new(BinaryViewArray::try_new(
                    ScalarBuffer::from(views),
                    buffers,
                    nulls,
                )?)
            }
            Self::Binary { bytes, ends } => {
                let mut offsets = Vec::with_capacity(ends.len() + 1);
                offsets.push(0);
                offsets.append(ends);
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                Arc::new(BinaryArray::try_new(
                    offsets,
                    Buffer::from_vec(take_buffer(bytes)),
                    nulls,
                )?)
            }
        })
    }
}

/// Builds one column of a batch.
pub(crate) struct ColumnBuilder {
    source: ColumnSource,
    values: Values,
    nulls: NullBufferBuilder,
    /// Holds one long value, or one string that has to be put together.
    scratch: Vec<u8>,
}

impl ColumnBuilder {
    /// A builder for batches of about `rows`.
    pub(crate) fn new(source: ColumnSource, rows: usize) -> Self {
        let values = Values::new(&source.ty, source.time_zone);
        Self {
            source,
            values,
            nulls: NullBufferBuilder::new(rows),
            scratch: Vec::new(),
        }
    }

    /// The part of the key that has to be located before entries are appended.
    pub(crate) fn part(&self) -> Option<usize> {
        match self.source.place {
            Place::KeyNumber { part, .. } | Place::KeyString { part } => Some(part),
            Place::RowNumber { .. } | Place::RowString | Place::ClusteredKey => None,
        }
    }

    /// Whether the column is a string that is read from rows: it may be a long value.
    pub(crate) fn row_string(&self) -> Option<usize> {
        matches!(self.source.place, Place::RowString).then_some(self.source.column)
    }

    /// Whether this is the clustered key of rows, which [`append_keys`](Self::append_keys) takes.
    pub(crate) fn is_clustered_key(&self) -> bool {
        matches!(self.source.place, Place::ClusteredKey)
    }

    /// Bytes of strings that the batch holds so far.
    pub(crate) fn string_bytes(&self) -> usize {
        self.values.string_bytes()
    }

    /// Appends the column of some rows.
    pub(crate) fn append_rows(&mut self, table: &TableSnapshot, run: &RowRun<'_>) -> Result<()> {
        if run.is_empty() {
            return Ok(());
        }
        match run.segment(self.source.segment.0) {
            SegmentRows::Each(rows) => self.append_each(table, rows),
            SegmentRows::Same(row) => {
                self.append_each(table, &[row])?;
                self.repeat_last(row, run.len() - 1)
            }
        }
    }

    /// Appends the value of this row, which was appended just now, so many times.
    fn repeat_last(&mut self, row: RowView<'_>, more: usize) -> Result<()> {
        match self.source.null_bit {
            Some((byte, mask)) if row.bytes()[byte] & mask != 0 => self.nulls.append_n_nulls(more),
            Some(_) => self.nulls.append_n_non_nulls(more),
            None => {}
        }
        self.values.repeat_last(more)
    }

    /// Appends the column of some rows: of the column's segment.
    fn append_each(&mut self, table: &TableSnapshot, rows: &[RowView<'_>]) -> Result<()> {
        let column = self.source.segment.1;
        match self.source.null_bit {
            Some((byte, mask)) if rows.iter().any(|row| row.bytes()[byte] & mask != 0) => {
                rows.iter()
                    .for_each(|row| self.nulls.append(row.bytes()[byte] & mask == 0));
            }
            Some(_) => self.nulls.append_n_non_nulls(rows.len()),
            None => {}
        }
        match self.source.place {
            Place::RowNumber {
                offset,
                width,
                kind,
            } => append_row_numbers(&mut self.values, rows, offset, width, kind),
            _ => {
                for row in rows {
                    if row.is_overflow(column) {
                        let length = row.long_bytes(column);
                        let reference = row.get_bytes(column);
                        self.values
                            .push_long(length, |out| table.append_long_value(reference, out))?;
                    } else {
                        self.values.push_string(row.get_bytes(column))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Appends clustered keys.
    pub(crate) fn append_keys<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>) -> Result<()> {
        for key in keys {
            self.values.push_string(key)?;
        }
        Ok(())
    }

    /// Appends the clustered keys that the selected entries point to.
    pub(crate) fn append_entry_keys(
        &mut self,
        source: &PrimaryKeySource,
        layout: &KeyLayout,
        block: &EntryBlock,
        selection: &[u32],
    ) -> Result<()> {
        for &entry in selection {
            let key = block.keys.get(entry as usize);
            let key = source.primary_key(layout, key, &mut self.scratch)?;
            self.values.push_string(key)?;
        }
        Ok(())
    }

    /// Appends the column of the selected entries, whose [`part`](Self::part) has been located.
    pub(crate) fn append_entries(
        &mut self,
        layout: &KeyLayout,
        block: &EntryBlock,
        selection: &[u32],
    ) -> Result<()> {
        match self.source.place {
            Place::KeyNumber { part, width, kind } => {
                let nullable = layout.parts[part].nullable;
                if self.source.nullable {
                    self.append_entry_nulls(part, nullable, block, selection);
                }
                append_entry_numbers(
                    &mut self.values,
                    block,
                    selection,
                    part,
                    width,
                    kind,
                    nullable,
                );
            }
            Place::KeyString { part } => {
                for &entry in selection {
                    let entry = entry as usize;
                    let payload = block.payloads.get(entry);
                    self.scratch.clear();
                    let present = layout.decode_bytes(
                        part,
                        block.part(part, entry),
                        payload,
                        &mut self.scratch,
                    )?;
                    if self.source.nullable {
                        self.nulls.append(present);
                    }
                    self.values
                        .push_string(if present { &self.scratch } else { &[] })?;
                }
            }
            Place::RowNumber { .. } | Place::RowString | Place::ClusteredKey => {
                debug_assert!(false, "entries hold no rows")
            }
        }
        Ok(())
    }

    fn append_entry_nulls(
        &mut self,
        part: usize,
        nullable: bool,
        block: &EntryBlock,
        selection: &[u32],
    ) {
        if !nullable {
            self.nulls.append_n_non_nulls(selection.len());
            return;
        }
        let starts = block.starts(part);
        for &entry in selection {
            let start = usize::from(starts[entry as usize]);
            self.nulls
                .append(block.keys.get(entry as usize).get(start) != Some(&0));
        }
    }

    /// The array of what was appended; the builder is empty again.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef> {
        let nulls = if self.source.nullable {
            self.nulls.finish()
        } else {
            None
        };
        self.values.finish(nulls)
    }
}

fn append_row_numbers(
    values: &mut Values,
    rows: &[RowView<'_>],
    offset: usize,
    width: usize,
    kind: NumberKind,
) {
    let bytes = rows.iter().map(|row| row.bytes());
    match (kind, values) {
        (NumberKind::Float, Values::Float32(values)) => {
            values.extend(
                bytes.map(|row| f32::from_bits((load_little(row, offset, 4) >> 32) as u32)),
            );
        }
        (NumberKind::Float, Values::Float64(values)) => {
            values.extend(bytes.map(|row| f64::from_bits(load_little(row, offset, 8))));
        }
        (_, Values::WideDecimal { values, .. }) => {
            values.extend(bytes.map(|row| load_little_decimal(row, offset, width)));
        }
        (_, Values::Decimal { values, .. }) if width > 8 => {
            let shift = 128 - 8 * width as u32;
            values.extend(bytes.map(|row| load_little_wide(row, offset, width) as i128 >> shift));
        }
        (NumberKind::Unsigned, values) => {
            let shift = 64 - 8 * width as u32;
            values.extend_numbers(bytes.map(|row| load_little(row, offset, width) >> shift));
        }
        (_, values) => {
            let shift = 64 - 8 * width as u32;
            values.extend_numbers(
                bytes.map(|row| (load_little(row, offset, width) as i64 >> shift) as u64),
            );
        }
    }
}

/// A wide DECIMAL of a row. Zero if it is not within the bytes.
fn load_little_decimal(bytes: &[u8], offset: usize, width: usize) -> i256 {
    let Some(field) = bytes.get(offset..offset + width) else {
        return i256::ZERO;
    };
    let is_negative = field.last().is_some_and(|top| top & 0x80 != 0);
    let mut word = [if is_negative { 0xFF } else { 0 }; 32];
    word[..width].copy_from_slice(field);
    i256::from_le_bytes(word)
}

/// A wide DECIMAL of a key, whose sign bit is flipped. Zero if it is not within the bytes.
fn load_big_decimal(bytes: &[u8], offset: usize, width: usize) -> i256 {
    let Some(field) = bytes.get(offset..offset + width) else {
        return i256::ZERO;
    };
    let is_negative = field.first().is_some_and(|top| top & 0x80 == 0);
    let mut word = [if is_negative { 0xFF } else { 0 }; 32];
    word[32 - width..].copy_from_slice(field);
    word[32 - width] ^= 0x80;
    i256::from_be_bytes(word)
}

fn append_entry_numbers(
    values: &mut Values,
    block: &EntryBlock,
    selection: &[u32],
    part: usize,
    width: usize,
    kind: NumberKind,
    nullable: bool,
) {
    let starts = block.starts(part);
    let null_byte = usize::from(nullable);
    let word = |entry: &u32| {
        let key = block.keys.get(*entry as usize);
        let start = usize::from(starts[*entry as usize]);
        // What follows a NULL byte belongs to the next part; a NULL's value is never looked at, but it should be one
        // that the type can hold.
        let null = nullable && key.get(start) == Some(&0);
        (key, start + null_byte, null)
    };
    match (kind, values) {
        (NumberKind::Float, Values::Float32(values)) => {
            values.extend(selection.iter().map(|entry| {
                let (key, offset, null) = word(entry);
                if null {
                    0.0
                } else {
                    f32::from_bits(unorder_float32(load_big(key, offset, 4) as u32))
                }
            }))
        }
        (NumberKind::Float, Values::Float64(values)) => {
            values.extend(selection.iter().map(|entry| {
                let (key, offset, null) = word(entry);
                if null {
                    0.0
                } else {
                    f64::from_bits(unorder_float64(load_big(key, offset, 8)))
                }
            }))
        }
        (_, Values::WideDecimal { values, .. }) => values.extend(selection.iter().map(|entry| {
            let (key, offset, null) = word(entry);
            match null {
                true => i256::ZERO,
                false => load_big_decimal(key, offset, width),
            }
        })),
        (_, Values::Decimal { values, .. }) if width > 8 => {
            values.extend(selection.iter().map(|entry| {
                let (key, offset, null) = word(entry);
                if null {
                    0
                } else {
                    unflip_wide(load_big_wide(key, offset, width), width)
                }
            }))
        }
        (NumberKind::Unsigned, values) => values.extend_numbers(selection.iter().map(|entry| {
            let (key, offset, null) = word(entry);
            if null {
                0
            } else {
                load_big(key, offset, width)
            }
        })),
        (_, values) => values.extend_numbers(selection.iter().map(|entry| {
            let (key, offset, null) = word(entry);
            if null {
                0
            } else {
                unflip(load_big(key, offset, width), width) as u64
            }
        })),
    }
}
