//! Index keys as bytes in memcmp order.
use std::ops::Bound;

use sheaf_storage::KeyRange;

use crate::collation::Collation;
use crate::error::Result;
use crate::row_codec::ValueRef;
use crate::schema::{Index, TableDefinition};
use crate::value::Value;

/// How a part is encoded, after its NULL byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// Big-endian, sign bit flipped unless unsigned. Integers, BOOL, DATE (4), TIME, DATETIME, TIMESTAMP (8), YEAR (2), ENUM (2).
    Integer {
        width: u8,
        unsigned: bool,
    },
    /// Big-endian, sign bit flipped, unscaled; 1 to 16 bytes.
    Decimal {
        width: u8,
        scale: u8,
    },
    Float,
    Double,
    /// The collation's sort key, terminated.
    Text(Collation),
    /// Escaped and terminated.
    Bytes,
    /// Hidden row id: 8 bytes big-endian.
    RowId,
}

/// One part of an encoded key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPart {
    /// Position in the table's columns; `None` for the hidden row id.
    pub column: Option<usize>,
    pub kind: PartKind,
    /// A NULL byte (0x00 NULL, 0x01 value) comes first.
    pub nullable: bool,
    /// Only this many characters (bytes for byte strings) are encoded.
    pub prefix_length: Option<u32>,
    /// Bytes of the encoded part when it is not NULL, NULL byte included; `None` for strings.
    pub fixed_width: Option<usize>,
    /// What EXPLAIN's key_len adds for this part.
    pub mysql_key_len: u32,
    /// The column's value can be read from key and payload.
    pub decodable: bool,
    /// Position among the parts with an entry in the payload.
    pub payload_ordinal: Option<usize>,
}

/// Bounds on the part after the equal ones. Values are of the column's type and never NULL: a bound implies IS NOT NULL.
#[derive(Debug, Clone, PartialEq)]
pub enum PartBounds {
    /// Both unbounded: IS NOT NULL.
    Between {
        lower: Bound<Value>,
        upper: Bound<Value>,
    },
    /// LIKE 'text%', text without wildcards.
    StartsWith(String),
}

/// A range of encoded keys.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedRange {
    pub range: KeyRange,
    /// The range may hold rows that do not match, because of a prefix part or LIKE: the condition must be tested again.
    pub recheck: bool,
}

/// How the keys of one index are encoded: the declared parts, then the primary key's parts that are not among them.
#[derive(Debug, Clone)]
pub struct KeyLayout {
    pub parts: Vec<KeyPart>,
    /// The first so many parts are the index's own; the rest completes the primary key.
    pub declared: usize,
}

impl KeyLayout {
    /// The layout of the clustered tree's keys.
    pub fn clustered(definition: &TableDefinition) -> KeyLayout {
        let _ = definition;
        unimplemented!()
    }
    /// The layout of a secondary index's keys.
    pub fn secondary(definition: &TableDefinition, index: &Index) -> KeyLayout {
        let _ = (definition, index);
        unimplemented!()
    }
    /// The part that holds a column, if the column can be read from the entry.
    pub fn part_of(&self, column: usize) -> Option<usize> {
        self.parts
            .iter()
            .position(|part| part.column == Some(column) && part.decodable)
    }
    /// Appends a part. The value must be of the column's type.
    pub fn encode_part(&self, part: usize, value: ValueRef<'_>, key: &mut Vec<u8>) {
        let _ = (part, value, key);
        unimplemented!()
    }
    /// Length in bytes of the part that `bytes` starts with, NULL byte included.
    ///
    /// # Errors
    /// `Corrupt` if `bytes` ends within the part.
    pub fn part_length(&self, part: usize, bytes: &[u8]) -> Result<usize> {
        let _ = (part, bytes);
        unimplemented!()
    }
    /// Fills `offsets` with where each part starts, and the key's length.
    pub fn part_offsets(&self, key: &[u8], offsets: &mut Vec<usize>) -> Result<()> {
        let _ = (key, offsets);
        unimplemented!()
    }
    /// True if the part that `bytes` starts with is NULL.
    pub fn is_null(&self, part: usize, bytes: &[u8]) -> bool {
        self.parts[part].nullable && bytes.first() == Some(&0)
    }
    /// An integer-like part (signed or unsigned up to 63 bits used); `None`: NULL.
    pub fn decode_i64(&self, part: usize, bytes: &[u8]) -> Option<i64> {
        let _ = (part, bytes);
        unimplemented!()
    }
    /// An integer-like, DECIMAL or row id part; `None`: NULL.
    pub fn decode_i128(&self, part: usize, bytes: &[u8]) -> Option<i128> {
        let _ = (part, bytes);
        unimplemented!()
    }
    /// A FLOAT or DOUBLE part; `None`: NULL.
    pub fn decode_f64(&self, part: usize, bytes: &[u8]) -> Option<f64> {
        let _ = (part, bytes);
        unimplemented!()
    }
    /// Fills `out` with the original bytes of a string part, from the entry's payload where the key does not say them.
    /// False: NULL.
    pub fn decode_bytes(
        &self,
        part: usize,
        bytes: &[u8],
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let _ = (part, bytes, payload, out);
        unimplemented!()
    }
    /// Any decodable part.
    pub fn decode_value(
        &self,
        definition: &TableDefinition,
        part: usize,
        bytes: &[u8],
        payload: &[u8],
    ) -> Result<Value> {
        let _ = (definition, part, bytes, payload);
        unimplemented!()
    }
    /// Appends the clustered key that a secondary entry points to.
    pub fn primary_key_into(&self, key: &[u8], primary_key: &mut Vec<u8>) -> Result<()> {
        let _ = (key, primary_key);
        unimplemented!()
    }
    /// The range of keys whose first parts equal `equal` (NULL: IS NULL), and whose next part is within `next`.
    pub fn range(&self, equal: &[Value], next: Option<&PartBounds>) -> EncodedRange {
        let _ = (equal, next);
        unimplemented!()
    }
    /// EXPLAIN's key_len for the first `parts` parts.
    pub fn mysql_key_len(&self, parts: usize) -> u32 {
        self.parts[..parts]
            .iter()
            .map(|part| part.mysql_key_len)
            .sum()
    }
}
