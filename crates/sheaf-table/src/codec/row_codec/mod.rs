//! Rows as bytes, made so that a column can be read without touching the others.
//!
//! ```text
//! | NULL bits | columns of fixed width | ends of variable columns (u16 each) | variable columns |
//! ```
//!
//! There is a NULL bit for each nullable column (bit set: NULL), in column order. Columns of fixed width are at the
//! same offset in every row of the table, little-endian and unaligned, so that a scan copies them with a stride; a NULL
//! one holds zeros. Integers take 1, 2, 4 or 8 bytes (MEDIUMINT 4), BIT and SET as many as hold it, DATE 4, TIME,
//! DATETIME and TIMESTAMP (as UTC, see [`TimeZone`]) 8, YEAR and ENUM 2, FLOAT 4, DOUBLE 8, DECIMAL its unscaled value
//! in 4, 8, 16 or (above 38 digits) 28 bytes by precision. All strings are of variable length; for each the row says
//! where it ends, counted from the first byte after the array of ends. The top bit of an end marks a value that is too
//! long for the row: the row holds a reference to the table's [overflow tree](crate::codec::overflow).
//!
//! Where columns were added or dropped and no row was written, a row is a few such *segments*, one behind the other:
//! [`RowShape`](crate::definition::row_shape::RowShape) says how. A [`RowLayout`] of columns in their order is one
//! segment.

mod run;
mod segments;

use sheaf_types::column_type::Stored;
use sheaf_types::number::{MAX_DIGITS, WIDE_BYTES, Wide};
use sheaf_types::temporal::TimeZone;
use sheaf_types::{ColumnType, Value};

use crate::codec::overflow::{self, OVERFLOW_REFERENCE_BYTES};
use crate::definition::schema::Column;
use crate::error::{Result, TableError};

use segments::Segment;

pub use run::{RowRun, SegmentRows};
pub use segments::LaterSegments;
pub use sheaf_types::value::ValueRef;

/// Set in the end of a variable column that is a reference.
const OVERFLOW_BIT: u16 = 1 << 15;

/// How a column of fixed width is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Physical {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    /// YEAR and ENUM: two bytes that are read as `ValueRef::Int`.
    Small,
    /// A TIMESTAMP, which is UTC in the row.
    Moment(TimeZone),
    Decimal32,
    Decimal64,
    Decimal128,
    WideDecimal,
    F32,
    F64,
}

impl Physical {
    /// `None`: of variable length.
    fn of(column: &Column) -> Option<Physical> {
        Some(match column.ty.stored() {
            Stored::Signed(_) if column.ty.follows_time_zone() => {
                Physical::Moment(column.time_zone)
            }
            Stored::Signed(8) => Physical::I8,
            Stored::Signed(16) => Physical::I16,
            Stored::Signed(..=32) => Physical::I32,
            Stored::Signed(_) => Physical::I64,
            Stored::Unsigned(8) => Physical::U8,
            Stored::Unsigned(16) => Physical::U16,
            Stored::Unsigned(..=32) => Physical::U32,
            Stored::Unsigned(_) => Physical::U64,
            Stored::Small => Physical::Small,
            Stored::Decimal {
                precision: 0..=9, ..
            } => Physical::Decimal32,
            Stored::Decimal {
                precision: 10..=18, ..
            } => Physical::Decimal64,
            Stored::Decimal {
                precision: ..=MAX_DIGITS,
                ..
            } => Physical::Decimal128,
            Stored::Decimal { .. } => Physical::WideDecimal,
            Stored::Float => Physical::F32,
            Stored::Double => Physical::F64,
            Stored::String => return None,
        })
    }

    fn width(self) -> usize {
        match self {
            Physical::I8 | Physical::U8 => 1,
            Physical::I16 | Physical::U16 | Physical::Small => 2,
            Physical::I32 | Physical::U32 | Physical::Decimal32 | Physical::F32 => 4,
            Physical::I64
            | Physical::U64
            | Physical::Moment(_)
            | Physical::Decimal64
            | Physical::F64 => 8,
            Physical::Decimal128 => 16,
            Physical::WideDecimal => WIDE_BYTES,
        }
    }
}

/// Where a column is in the row.
#[derive(Debug, Clone, Copy)]
enum Place {
    Fixed {
        offset: usize,
        physical: Physical,
    },
    /// Position among the variable columns.
    Variable(usize),
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The segment, and the number of the field in it. The rest is counted from the beginning of the segment.
    segment: u16,
    field: u16,
    place: Place,
    /// Byte and mask; mask 0: NOT NULL.
    null_byte: usize,
    null_mask: u8,
}

/// Where each column of a table's rows is.
#[derive(Debug, Clone)]
pub struct RowLayout {
    slots: Vec<Slot>,
    /// Offset of the array of ends.
    ends: usize,
    /// Offset of the first variable column's bytes.
    heap: usize,
    variable: usize,
    /// Of rows of several segments, or with fields of no column: the fields above are those of the first one.
    segments: Vec<Segment>,
}

impl RowLayout {
    pub fn new(columns: &[Column]) -> RowLayout {
        let null_bytes = columns
            .iter()
            .filter(|column| column.nullable)
            .count()
            .div_ceil(8);
        let (mut offset, mut variable, mut null_bit) = (null_bytes, 0, 0);
        let slots = columns
            .iter()
            .enumerate()
            .map(|(field, column)| {
                let place = match Physical::of(column) {
                    Some(physical) => {
                        offset += physical.width();
                        Place::Fixed {
                            offset: offset - physical.width(),
                            physical,
                        }
                    }
                    None => {
                        variable += 1;
                        Place::Variable(variable - 1)
                    }
                };
                let (null_byte, null_mask) = if column.nullable {
                    null_bit += 1;
                    ((null_bit - 1) / 8, 1 << ((null_bit - 1) % 8))
                } else {
                    (0, 0)
                };
                Slot {
                    segment: 0,
                    field: field as u16,
                    place,
                    null_byte,
                    null_mask,
                }
            })
            .collect();
        RowLayout {
            slots,
            ends: offset,
            heap: offset + 2 * variable,
            variable,
            segments: Vec::new(),
        }
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.slots.len()
    }

    /// Bytes of a row whose variable columns are all empty.
    pub fn fixed_bytes(&self) -> usize {
        let later = self.segments.iter().skip(1);
        self.heap + later.map(|segment| segment.layout.heap).sum::<usize>()
    }

    /// Offset and width in bytes (little-endian) of a column of fixed width; `None`: of variable length.
    pub fn fixed(&self, column: usize) -> Option<(usize, usize)> {
        match self.slots[column].place {
            Place::Fixed { offset, physical } => Some((offset, physical.width())),
            Place::Variable(_) => None,
        }
    }

    /// Byte and mask of a column's NULL bit; `None`: NOT NULL.
    pub fn null_bit(&self, column: usize) -> Option<(usize, u8)> {
        let slot = &self.slots[column];
        (slot.null_mask != 0).then_some((slot.null_byte, slot.null_mask))
    }

    /// Appends the row, with one value per column, each of the column's type. A value listed in `references` (column
    /// and reference) is not in the row. If the row would be longer than `limit`, nothing is appended, and its length
    /// is the error.
    ///
    /// # Panics
    /// If a value is not of the column's type.
    pub fn encode<'v>(
        &self,
        values: impl Fn(usize) -> ValueRef<'v>,
        references: &[(usize, [u8; OVERFLOW_REFERENCE_BYTES])],
        limit: usize,
        row: &mut Vec<u8>,
    ) -> Result<(), usize> {
        match self.has_segments() {
            true => self.encode_segments(values, references, limit, row),
            false => self.encode_segment(values, references, limit, row),
        }
    }

    /// [`encode`](Self::encode) of a row of one segment.
    fn encode_segment<'v>(
        &self,
        values: impl Fn(usize) -> ValueRef<'v>,
        references: &[(usize, [u8; OVERFLOW_REFERENCE_BYTES])],
        limit: usize,
        row: &mut Vec<u8>,
    ) -> Result<(), usize> {
        let start = row.len();
        let variable = |(column, slot): (usize, &Slot)| match slot.place {
            Place::Fixed { .. } => 0,
            Place::Variable(_) => variable_bytes(values(column)).len(),
        };
        let expected = self.heap + self.slots.iter().enumerate().map(variable).sum::<usize>();
        row.reserve(expected.min(limit.max(self.heap)));
        row.resize(start + self.heap, 0);
        let mut end = 0;
        for (column, slot) in self.slots.iter().enumerate() {
            let value = values(column);
            if value.is_null() {
                debug_assert!(slot.null_mask != 0, "column {column} is NOT NULL");
                row[start + slot.null_byte] |= slot.null_mask;
            }
            match slot.place {
                Place::Fixed { offset, physical } => {
                    if !value.is_null() {
                        write_fixed(physical, value, &mut row[start + offset..]);
                    }
                }
                Place::Variable(position) => {
                    let mut flag = 0;
                    match references.iter().find(|(referred, _)| *referred == column) {
                        Some((_, reference)) => {
                            row.extend_from_slice(reference);
                            end += reference.len();
                            flag = OVERFLOW_BIT;
                        }
                        None => {
                            let bytes = variable_bytes(value);
                            end += bytes.len();
                            // Too long already: only the length is still of interest.
                            if self.heap + end <= limit {
                                row.extend_from_slice(bytes);
                            }
                        }
                    }
                    let at = start + self.ends + 2 * position;
                    row[at..at + 2].copy_from_slice(&(end as u16 | flag).to_le_bytes());
                }
            }
        }
        if self.heap + end > limit {
            row.truncate(start);
            return Err(self.heap + end);
        }
        Ok(())
    }

    /// Appends a row of which only these columns are going to be looked at, ascending, each with a value of its type.
    ///
    /// # Panics
    /// If a value is not of its column's type.
    pub fn encode_some(&self, values: &[(usize, ValueRef<'_>)], row: &mut Vec<u8>) {
        if self.has_segments() {
            return self.encode_some_of_segments(values, row);
        }
        let start = row.len();
        row.resize(start + self.heap, 0);
        let mut values = values.iter().peekable();
        let mut end = 0;
        for (column, slot) in self.slots.iter().enumerate() {
            let value = values.next_if(|(of, _)| *of == column);
            let value = value.map_or(ValueRef::Null, |(_, value)| *value);
            if value.is_null() {
                row[start + slot.null_byte] |= slot.null_mask;
            }
            match slot.place {
                Place::Fixed { .. } if value.is_null() => {}
                Place::Fixed { offset, physical } => {
                    write_fixed(physical, value, &mut row[start + offset..]);
                }
                Place::Variable(position) => {
                    let bytes = variable_bytes(value);
                    row.extend_from_slice(bytes);
                    end += bytes.len();
                    let at = start + self.ends + 2 * position;
                    row[at..at + 2].copy_from_slice(&(end as u16).to_le_bytes());
                }
            }
        }
    }

    /// Whether the column's values have one width.
    pub fn is_fixed(&self, column: usize) -> bool {
        self.fixed(column).is_some()
    }

    /// Whether [`amend`](Self::amend) changes some bytes of a row and copies the others.
    pub(crate) fn amends_in_place(&self, changes: &[(usize, Value)]) -> bool {
        // Later segments may not be there.
        let is_in_place = |(column, _): &(usize, Value)| {
            self.is_fixed(*column) && self.slots[*column].segment == 0
        };
        changes.iter().all(is_in_place)
    }

    /// Appends a row with other values in some columns, as [`encode`](Self::encode) would. Where that can be done
    /// [in place](Self::amends_in_place) it is the old row but for their bytes; else the row has no overflow
    /// references.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn amend(
        &self,
        row: &RowView<'_>,
        changes: &[(usize, Value)],
        limit: usize,
        amended: &mut Vec<u8>,
    ) -> Result<(), usize> {
        if !self.amends_in_place(changes) || row.bytes.len() > limit {
            let value = |column: usize| {
                let changed = changes.iter().find(|(changed, _)| *changed == column);
                changed.map_or_else(|| row.value_ref(column), |(_, value)| value.into())
            };
            return self.encode(value, &[], limit, amended);
        }
        let start = amended.len();
        amended.extend_from_slice(row.bytes);
        let amended = &mut amended[start..];
        for (column, value) in changes {
            let slot = &self.slots[*column];
            let Place::Fixed { offset, physical } = slot.place else {
                continue;
            };
            if value.is_null() {
                debug_assert!(slot.null_mask != 0, "column {column} is NOT NULL");
                amended[slot.null_byte] |= slot.null_mask;
                amended[offset..offset + physical.width()].fill(0);
            } else {
                amended[slot.null_byte] &= !slot.null_mask;
                write_fixed(physical, value.into(), &mut amended[offset..]);
            }
        }
        Ok(())
    }

    /// The variable columns to move to the overflow tree so that the rest of the row fits `limit`: the longest first.
    pub(crate) fn columns_to_move<'v>(
        &self,
        values: impl Fn(usize) -> ValueRef<'v>,
        limit: usize,
    ) -> Vec<usize> {
        let mut lengths: Vec<(usize, usize)> = (0..self.slots.len())
            .filter(|column| matches!(self.slots[*column].place, Place::Variable(_)))
            .map(|column| (variable_bytes(values(column)).len(), column))
            .collect();
        let mut length =
            self.fixed_bytes() + lengths.iter().map(|(length, _)| length).sum::<usize>();
        lengths.sort_by_key(|(length, column)| (std::cmp::Reverse(*length), *column));
        let mut moved = Vec::new();
        for (bytes, column) in lengths {
            if length <= limit || bytes <= OVERFLOW_REFERENCE_BYTES {
                break;
            }
            length -= bytes - OVERFLOW_REFERENCE_BYTES;
            moved.push(column);
        }
        moved
    }

    /// Reads a row.
    ///
    /// # Errors
    /// `Corrupt` if the bytes cannot be a row of this layout; all reads through the view stay inside of them.
    #[inline(always)]
    pub fn view<'a>(&'a self, bytes: &'a [u8]) -> Result<RowView<'a>> {
        let view = RowView {
            layout: self,
            bytes,
        };
        if !view.is_of_first_segment() {
            view.check_segments()?;
        }
        Ok(view)
    }
}

fn variable_bytes(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Bytes(bytes) => bytes,
        ValueRef::Null => &[],
        other => panic!("a string column cannot hold {other:?}"),
    }
}

fn write_fixed(physical: Physical, value: ValueRef<'_>, to: &mut [u8]) {
    let integer = match value {
        ValueRef::Int(v) => v,
        ValueRef::UInt(v) => v as i64,
        ValueRef::Decimal(v) => {
            match physical {
                Physical::Decimal32 => to[..4].copy_from_slice(&(v as i32).to_le_bytes()),
                Physical::Decimal64 => to[..8].copy_from_slice(&(v as i64).to_le_bytes()),
                Physical::Decimal128 => to[..16].copy_from_slice(&v.to_le_bytes()),
                _ => panic!("a column stored as {physical:?} cannot hold {value:?}"),
            }
            return;
        }
        ValueRef::WideDecimal(v) if physical == Physical::WideDecimal => {
            to[..WIDE_BYTES].copy_from_slice(v.bytes());
            return;
        }
        ValueRef::Float(v) if physical == Physical::F32 => {
            to[..4].copy_from_slice(&v.to_le_bytes());
            return;
        }
        ValueRef::Double(v) if physical == Physical::F64 => {
            to[..8].copy_from_slice(&v.to_le_bytes());
            return;
        }
        _ => panic!("a column stored as {physical:?} cannot hold {value:?}"),
    };
    match physical {
        Physical::I8 | Physical::U8 => to[0] = integer as u8,
        Physical::I16 | Physical::U16 | Physical::Small => {
            to[..2].copy_from_slice(&(integer as u16).to_le_bytes());
        }
        Physical::I32 | Physical::U32 => to[..4].copy_from_slice(&(integer as u32).to_le_bytes()),
        Physical::I64 | Physical::U64 => to[..8].copy_from_slice(&integer.to_le_bytes()),
        Physical::Moment(zone) => to[..8].copy_from_slice(&zone.utc(integer).to_le_bytes()),
        _ => panic!("a column stored as {physical:?} cannot hold {value:?}"),
    }
}

/// A row in place: reads columns without allocation.
#[derive(Clone, Copy)]
pub struct RowView<'a> {
    layout: &'a RowLayout,
    bytes: &'a [u8],
}

impl<'a> RowView<'a> {
    /// Apart from the check, which scans make for every row.
    #[cold]
    fn does_not_end(&self) -> TableError {
        let heap = self.layout.heap;
        let end = match self.bytes.len() < heap {
            true => heap,
            false => heap + self.end(self.layout.variable),
        };
        TableError::corrupt(
            "?",
            format!(
                "a row of {} bytes does not end where its columns do, at {end} bytes",
                self.bytes.len()
            ),
        )
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub fn is_null(&self, column: usize) -> bool {
        let slot = &self.layout.slots[column];
        if slot.segment != 0 {
            let (row, field) = self.later(slot);
            return row.is_null(field);
        }
        self.bytes[slot.null_byte] & slot.null_mask != 0
    }

    #[inline]
    fn read<const N: usize>(&self, offset: usize) -> [u8; N] {
        self.bytes[offset..offset + N]
            .try_into()
            .expect("a slice of N bytes")
    }

    /// Integers (unsigned BIGINT by its bits), dates and times, YEAR, ENUM. 0 for NULL and for other types.
    #[inline]
    pub fn get_i64(&self, column: usize) -> i64 {
        let slot = &self.layout.slots[column];
        let Place::Fixed { offset, physical } = slot.place else {
            return 0;
        };
        if slot.segment != 0 {
            let (row, field) = self.later(slot);
            return row.get_i64(field);
        }
        match physical {
            Physical::I8 => i64::from(self.bytes[offset] as i8),
            Physical::U8 => i64::from(self.bytes[offset]),
            Physical::I16 => i64::from(i16::from_le_bytes(self.read(offset))),
            Physical::U16 | Physical::Small => i64::from(u16::from_le_bytes(self.read(offset))),
            Physical::I32 | Physical::Decimal32 => i64::from(i32::from_le_bytes(self.read(offset))),
            Physical::U32 => i64::from(u32::from_le_bytes(self.read(offset))),
            Physical::I64 | Physical::U64 | Physical::Decimal64 => {
                i64::from_le_bytes(self.read(offset))
            }
            Physical::Moment(zone) => zone.local(i64::from_le_bytes(self.read(offset))),
            Physical::Decimal128 | Physical::WideDecimal | Physical::F32 | Physical::F64 => 0,
        }
    }

    /// Unsigned integers.
    #[inline]
    pub fn get_u64(&self, column: usize) -> u64 {
        self.get_i64(column) as u64
    }

    /// The bytes of a column that is stored in this way; `None` for others.
    #[inline]
    fn stored_as<const N: usize>(&self, column: usize, physical: Physical) -> Option<[u8; N]> {
        let slot = &self.layout.slots[column];
        if slot.segment != 0 {
            let (row, field) = self.later(slot);
            return row.stored_as(field, physical);
        }
        match slot.place {
            Place::Fixed {
                offset,
                physical: stored,
            } if stored == physical => Some(self.read(offset)),
            _ => None,
        }
    }

    /// A DECIMAL's unscaled value.
    #[inline]
    pub fn get_i128(&self, column: usize) -> i128 {
        let stored = self.stored_as(column, Physical::Decimal128);
        stored.map_or_else(|| i128::from(self.get_i64(column)), i128::from_le_bytes)
    }

    /// A wide DECIMAL's unscaled value.
    #[inline]
    pub fn get_wide(&self, column: usize) -> Wide {
        let stored = self.stored_as(column, Physical::WideDecimal);
        stored.map_or(Wide::ZERO, Wide::of_bytes)
    }

    #[inline]
    pub fn get_f32(&self, column: usize) -> f32 {
        let stored = self.stored_as(column, Physical::F32);
        stored.map_or(0.0, f32::from_le_bytes)
    }

    #[inline]
    pub fn get_f64(&self, column: usize) -> f64 {
        let stored = self.stored_as(column, Physical::F64);
        stored.map_or_else(|| f64::from(self.get_f32(column)), f64::from_le_bytes)
    }

    /// End of the first `count` variable columns, from the start of the heap.
    #[inline]
    fn end(&self, count: usize) -> usize {
        if count == 0 {
            return 0;
        }
        let end = u16::from_le_bytes(self.read(self.layout.ends + 2 * (count - 1)));
        usize::from(end & !OVERFLOW_BIT)
    }

    /// A string's bytes (UTF-8 for character types); the overflow reference if the value
    /// [is there](Self::is_overflow).
    #[inline]
    pub fn get_bytes(&self, column: usize) -> &'a [u8] {
        let slot = &self.layout.slots[column];
        let Place::Variable(position) = slot.place else {
            return &[];
        };
        if slot.segment != 0 {
            let (row, field) = self.later(slot);
            return row.get_bytes(field);
        }
        let heap = self.layout.heap;
        self.bytes
            .get(heap + self.end(position)..heap + self.end(position + 1))
            .unwrap_or(&[])
    }

    /// True if the row holds a reference that [`Table::read_overflow`](crate::table::Table::read_overflow)
    /// resolves.
    #[inline]
    pub fn is_overflow(&self, column: usize) -> bool {
        let slot = &self.layout.slots[column];
        let Place::Variable(position) = slot.place else {
            return false;
        };
        if slot.segment != 0 {
            let (row, field) = self.later(slot);
            return row.is_overflow(field);
        }
        u16::from_le_bytes(self.read(self.layout.ends + 2 * position)) & OVERFLOW_BIT != 0
    }

    /// Bytes of the column's value if it is in the overflow tree; 0 if it is in the row.
    pub fn long_bytes(&self, column: usize) -> usize {
        match self.is_overflow(column) {
            true => overflow::length(self.get_bytes(column)).map_or(0, |length| length as usize),
            false => 0,
        }
    }

    /// True if any value of the row is in the overflow tree, be it that of a column that was dropped.
    pub fn has_overflow(&self) -> bool {
        let mut columns = 0..self.layout.slots.len();
        columns.any(|column| self.is_overflow(column)) || self.dropped_references().next().is_some()
    }

    /// Where the column is: the row itself, or a later segment as a row of its own, and the column's number there. What
    /// looks at a column several times walks to it once.
    #[inline]
    pub fn located(&self, column: usize) -> (RowView<'a>, usize) {
        let slot = &self.layout.slots[column];
        match slot.segment {
            0 => (*self, column),
            _ => self.later(slot),
        }
    }

    /// The column's value; the reference's bytes for an overflow column.
    #[inline]
    pub fn value_ref(&self, column: usize) -> ValueRef<'a> {
        let (row, column) = self.located(column);
        row.value_in_first(column)
    }

    #[inline]
    fn value_in_first(&self, column: usize) -> ValueRef<'a> {
        if self.is_null(column) {
            return ValueRef::Null;
        }
        match self.layout.slots[column].place {
            Place::Variable(_) => ValueRef::Bytes(self.get_bytes(column)),
            Place::Fixed { physical, .. } => match physical {
                Physical::U8 | Physical::U16 | Physical::U32 | Physical::U64 => {
                    ValueRef::UInt(self.get_u64(column))
                }
                Physical::Decimal32 | Physical::Decimal64 | Physical::Decimal128 => {
                    ValueRef::Decimal(self.get_i128(column))
                }
                Physical::WideDecimal => ValueRef::WideDecimal(self.get_wide(column)),
                Physical::F32 => ValueRef::Float(self.get_f32(column)),
                Physical::F64 => ValueRef::Double(self.get_f64(column)),
                _ => ValueRef::Int(self.get_i64(column)),
            },
        }
    }

    /// The column as a [`Value`] of its type; not for overflow columns.
    pub fn value(&self, column: usize, ty: &ColumnType) -> Value {
        debug_assert!(!self.is_overflow(column));
        self.value_ref(column).to_value(ty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(types: &[&str]) -> (Vec<Column>, RowLayout) {
        let columns: Vec<Column> = types
            .iter()
            .enumerate()
            .map(|(i, ty)| {
                let (ty, nullable) = match ty.strip_suffix(" not null") {
                    Some(ty) => (ty, false),
                    None => (*ty, true),
                };
                Column::new(format!("c{i}"), ColumnType::parse(ty).unwrap(), nullable)
            })
            .collect();
        let layout = RowLayout::new(&columns);
        (columns, layout)
    }

    #[test]
    fn a_wide_decimal_makes_no_value_larger() {
        assert_eq!(size_of::<ValueRef<'_>>(), 32);
    }

    #[test]
    fn columns_read_back_in_place() {
        let (columns, layout) = layout(&[
            "int not null",
            "varchar(10)",
            "decimal(15,2)",
            "char(3) not null",
            "date",
            "double",
        ]);
        let row = [
            Value::Int(-7),
            Value::Text("héllo".into()),
            Value::Null,
            Value::Text("abc".into()),
            Value::Date(-1),
            Value::Double(-0.5),
        ];
        let mut bytes = Vec::new();
        layout
            .encode(|column| (&row[column]).into(), &[], 100, &mut bytes)
            .unwrap();
        let view = layout.view(&bytes).unwrap();
        for (column, value) in row.iter().enumerate() {
            assert_eq!(view.value(column, &columns[column].ty), *value);
        }
        assert_eq!(layout.fixed(0), Some((1, 4)));
        assert_eq!(layout.fixed(1), None);
        assert!(view.is_null(2) && !view.is_null(1));
        assert_eq!(view.get_i128(2), 0);
    }

    #[test]
    fn long_values_are_moved_out_longest_first() {
        let (_, layout) = layout(&["text", "text", "text"]);
        let row = [
            Value::Text("a".repeat(60)),
            Value::Text("b".repeat(500)),
            Value::Text("c".repeat(30)),
        ];
        let values = |column: usize| ValueRef::from(&row[column]);
        let mut bytes = Vec::new();
        assert_eq!(layout.encode(values, &[], 200, &mut bytes), Err(597));
        assert!(bytes.is_empty());
        assert_eq!(layout.columns_to_move(values, 200), [1]);
        assert_eq!(layout.columns_to_move(values, 100), [1, 0]);
        layout
            .encode(
                values,
                &[(1, [7; OVERFLOW_REFERENCE_BYTES])],
                200,
                &mut bytes,
            )
            .unwrap();
        let view = layout.view(&bytes).unwrap();
        assert!(view.is_overflow(1) && !view.is_overflow(0) && view.has_overflow());
        assert_eq!(view.get_bytes(1), [7; 20]);
        assert_eq!(view.get_bytes(2), [b'c'; 30]);
    }

    #[test]
    fn bytes_that_are_no_row_are_refused() {
        let (_, layout) = layout(&["int", "varchar(10)"]);
        let mut bytes = Vec::new();
        layout
            .encode(|_| ValueRef::Null, &[], 100, &mut bytes)
            .unwrap();
        assert!(layout.view(&bytes).is_ok());
        assert!(layout.view(&bytes[..3]).is_err());
        bytes.push(0);
        assert!(layout.view(&bytes).is_err());
    }
}
