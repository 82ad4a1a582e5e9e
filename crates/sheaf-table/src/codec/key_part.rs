//! The parts of an index's keys: how each column's values are encoded in it, and what they take there and in EXPLAIN.
//!
//! The [`PartKind`] of a column's values follows from what they are [stored](Stored) as. The bytes themselves are
//! [`super::key_codec`]'s.

use sheaf_types::ColumnType;
use sheaf_types::column_type::Stored;
use sheaf_types::number::signed_bytes_of_digits;
use sheaf_types::temporal::TimeZone;
use sheaf_types::text::collation::Collation;

use crate::definition::schema::{IndexPart, TableDefinition};

/// How a part is encoded, after its NULL byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// Integers, BOOL, BIT, SET, DATE (4 bytes), TIME, DATETIME, TIMESTAMP (8), YEAR, ENUM (2).
    Integer {
        width: u8,
        unsigned: bool,
    },
    /// Unscaled; 1 to 28 bytes.
    Decimal {
        width: u8,
        scale: u8,
    },
    Float,
    Double,
    /// A sort key; never [`Collation::Binary`].
    Text(Collation),
    Bytes,
    /// Hidden row id.
    RowId,
}

impl PartKind {
    fn of(ty: &ColumnType) -> PartKind {
        match ty.stored() {
            Stored::Signed(bits) => PartKind::Integer {
                width: (bits / 8) as u8,
                unsigned: false,
            },
            Stored::Unsigned(bits) => PartKind::Integer {
                width: (bits / 8) as u8,
                unsigned: true,
            },
            Stored::Small => PartKind::Integer {
                width: 2,
                unsigned: true,
            },
            Stored::Decimal { precision, scale } => PartKind::Decimal {
                width: signed_bytes_of_digits(precision),
                scale,
            },
            Stored::Float => PartKind::Float,
            Stored::Double => PartKind::Double,
            Stored::String => match ty.collation() {
                Some(collation) if collation != Collation::Binary => PartKind::Text(collation),
                _ => PartKind::Bytes,
            },
        }
    }

    /// Bytes of a value; `None`: it depends on the value.
    pub fn width(self) -> Option<usize> {
        match self {
            PartKind::Integer { width, .. } | PartKind::Decimal { width, .. } => {
                Some(usize::from(width))
            }
            PartKind::Float => Some(4),
            PartKind::Double | PartKind::RowId => Some(8),
            PartKind::Text(_) | PartKind::Bytes => None,
        }
    }
}

/// The most bytes of a DECIMAL that is not wide.
pub(super) const MAX_NARROW_BYTES: usize = 16;

/// One part of an encoded key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPart {
    /// Position in the table's columns; `None` for the hidden row id.
    pub column: Option<usize>,
    pub kind: PartKind,
    /// Of a TIMESTAMP: the zone of its values outside of keys. UTC of all others.
    pub time_zone: TimeZone,
    /// A NULL byte (0x00 NULL, 0x01 value) comes first.
    pub nullable: bool,
    /// Only so many elements (bytes of byte strings) are encoded.
    pub prefix_length: Option<u32>,
    /// Bytes of the encoded part when it is not NULL, NULL byte included; `None` for strings.
    pub fixed_width: Option<usize>,
    /// What EXPLAIN's key_len adds for this part.
    pub mysql_key_len: u32,
    /// The same without the bytes for NULL and for a length: what counts for the longest key.
    pub mysql_value_len: u32,
    /// The column's value can be read from key and payload.
    pub decodable: bool,
    /// Position among the parts with an entry in the payload.
    pub payload_ordinal: Option<usize>,
}

impl KeyPart {
    pub(super) fn new(definition: &TableDefinition, part: &IndexPart) -> KeyPart {
        let column = &definition.columns[part.column];
        let kind = PartKind::of(&column.ty);
        let width = kind
            .width()
            .map(|width| width + usize::from(column.nullable));
        let key_len = mysql_key_len(&column.ty, part.prefix_length);
        KeyPart {
            column: Some(part.column),
            kind,
            time_zone: column.time_zone,
            nullable: column.nullable,
            prefix_length: part.prefix_length,
            fixed_width: width,
            mysql_key_len: key_len + u32::from(column.nullable),
            mysql_value_len: key_len - length_bytes(&column.ty),
            decodable: part.prefix_length.is_none(),
            payload_ordinal: None,
        }
    }

    pub(super) fn row_id() -> KeyPart {
        KeyPart {
            column: None,
            kind: PartKind::RowId,
            time_zone: TimeZone::UTC,
            nullable: false,
            prefix_length: None,
            fixed_width: Some(8),
            mysql_key_len: 8,
            mysql_value_len: 8,
            decodable: true,
            payload_ordinal: None,
        }
    }
}

/// Of the length in front of a string of variable length in MySQL's key buffer.
const LENGTH_BYTES: u32 = 2;

fn length_bytes(ty: &ColumnType) -> u32 {
    match ty.is_varying() {
        true => LENGTH_BYTES,
        false => 0,
    }
}

/// What a column takes in MySQL's key buffer, which is what EXPLAIN's key_len counts.
fn mysql_key_len(ty: &ColumnType, prefix_length: Option<u32>) -> u32 {
    match ty.mysql_bytes() {
        Some(bytes) => bytes,
        // It is in no key.
        None if ty.is_json() => 0,
        None => {
            let length = prefix_length.or(ty.declared_length()).unwrap_or(0);
            length * ty.collation().map_or(1, Collation::character_bytes) + length_bytes(ty)
        }
    }
}
