//! Rows as bytes.
use crate::error::Result;
use crate::schema::Column;
use crate::value::Value;

/// Bytes of a reference to a long value.
pub const OVERFLOW_REFERENCE_BYTES: usize = 20;

/// A borrowed value: what rows and keys hold, without the column's type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueRef<'a> {
    Null,
    /// Signed integers, BOOL, dates and times (in [`Value`]'s units), YEAR, ENUM.
    Int(i64),
    UInt(u64),
    /// Unscaled, at the column's scale.
    Decimal(i128),
    Float(f32),
    Double(f64),
    /// Character and byte strings.
    Bytes(&'a [u8]),
}

/// Where each column of a table's rows is.
#[derive(Debug, Clone)]
pub struct RowLayout {}

impl RowLayout {
    pub fn new(columns: &[Column]) -> RowLayout {
        let _ = columns;
        unimplemented!()
    }

    /// Offset and width in bytes (little-endian) of a column of fixed width; `None`: it is of variable length.
    pub fn fixed(&self, column: usize) -> Option<(usize, usize)> {
        let _ = column;
        unimplemented!()
    }

    /// Byte and mask of a column's NULL bit; `None`: NOT NULL.
    pub fn null_bit(&self, column: usize) -> Option<(usize, u8)> {
        let _ = column;
        unimplemented!()
    }

    /// Reads a row.
    ///
    /// # Errors
    /// `Corrupt` if the bytes cannot be a row of this layout; all reads through the view stay inside of them.
    pub fn view<'a>(&'a self, bytes: &'a [u8]) -> Result<RowView<'a>> {
        let _ = bytes;
        unimplemented!()
    }
}

/// A row in place: reads columns without allocation.
#[derive(Clone, Copy)]
pub struct RowView<'a> {
    layout: &'a RowLayout,
    bytes: &'a [u8],
}

impl<'a> RowView<'a> {
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
    pub fn is_null(&self, column: usize) -> bool {
        let _ = (column, self.layout);
        unimplemented!()
    }
    /// Integers (signed and up to 32 bits unsigned), dates and times, YEAR, ENUM. 0 for NULL.
    pub fn get_i64(&self, column: usize) -> i64 {
        let _ = column;
        unimplemented!()
    }
    /// Unsigned integers.
    pub fn get_u64(&self, column: usize) -> u64 {
        let _ = column;
        unimplemented!()
    }
    /// A DECIMAL's unscaled value.
    pub fn get_i128(&self, column: usize) -> i128 {
        let _ = column;
        unimplemented!()
    }
    pub fn get_f32(&self, column: usize) -> f32 {
        let _ = column;
        unimplemented!()
    }
    pub fn get_f64(&self, column: usize) -> f64 {
        let _ = column;
        unimplemented!()
    }
    /// A string's bytes (UTF-8 for character types); the overflow reference if the value [is there](Self::is_overflow).
    pub fn get_bytes(&self, column: usize) -> &'a [u8] {
        let _ = column;
        unimplemented!()
    }
    /// True if the row holds a reference that [`Table::read_overflow`](crate::table::Table::read_overflow) resolves.
    pub fn is_overflow(&self, column: usize) -> bool {
        let _ = column;
        unimplemented!()
    }
    pub fn value_ref(&self, column: usize) -> ValueRef<'a> {
        let _ = column;
        unimplemented!()
    }
    /// The column as a [`Value`]; not for overflow columns.
    pub fn value(&self, column: usize) -> Value {
        let _ = column;
        unimplemented!()
    }
}
