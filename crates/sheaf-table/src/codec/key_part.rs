//! The parts of an index's keys: how each column's values are encoded in it, and what they take there and in EXPLAIN.
//!
//! A new column type says here which [`PartKind`] its values have. The bytes themselves are [`super::key_codec`]'s.

use sheaf_types::ColumnType;
use sheaf_types::number::{Int256, is_wide};
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
        match ty {
            ColumnType::Decimal {
                precision, scale, ..
            } => PartKind::Decimal {
                width: decimal_width(*precision),
                scale: *scale,
            },
            ColumnType::Float { .. } => PartKind::Float,
            ColumnType::Double { .. } => PartKind::Double,
            ColumnType::Char { collation, .. }
            | ColumnType::VarChar { collation, .. }
            | ColumnType::Text { collation, .. }
                if *collation != Collation::Binary =>
            {
                PartKind::Text(*collation)
            }
            ColumnType::Char { .. }
            | ColumnType::VarChar { .. }
            | ColumnType::Text { .. }
            | ColumnType::Binary { .. }
            | ColumnType::VarBinary { .. }
            | ColumnType::Blob { .. }
            | ColumnType::Json => PartKind::Bytes,
            ColumnType::Date => PartKind::Integer {
                width: 4,
                unsigned: false,
            },
            ColumnType::Time { .. }
            | ColumnType::DateTime { .. }
            | ColumnType::Timestamp { .. } => PartKind::Integer {
                width: 8,
                unsigned: false,
            },
            ColumnType::Year | ColumnType::Enum { .. } => PartKind::Integer {
                width: 2,
                unsigned: true,
            },
            ColumnType::Set { .. } => PartKind::Integer {
                width: (ty.stored_bits().unwrap_or(64) / 8) as u8,
                unsigned: true,
            },
            ColumnType::Bool
            | ColumnType::TinyInt { .. }
            | ColumnType::SmallInt { .. }
            | ColumnType::MediumInt { .. }
            | ColumnType::Int { .. }
            | ColumnType::BigInt { .. }
            | ColumnType::Bit { .. } => PartKind::Integer {
                width: (ty.integer_bits().unwrap_or(64) / 8) as u8,
                unsigned: ty.is_unsigned(),
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

/// Bytes of a signed integer that holds all values of `precision` digits.
fn decimal_width(precision: u8) -> u8 {
    if is_wide(precision) {
        let largest = Int256::nines(precision).to_le_bytes();
        let highest = largest.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        // The sign has a bit of its own.
        return highest as u8 + 1 + u8::from(largest[highest] >= 0x80);
    }
    let largest = 10u128.pow(u32::from(precision)) - 1;
    ((129 - largest.leading_zeros()).div_ceil(8)) as u8
}

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
        let has_length = matches!(
            column.ty,
            ColumnType::VarChar { .. }
                | ColumnType::Text { .. }
                | ColumnType::VarBinary { .. }
                | ColumnType::Blob { .. }
        );
        KeyPart {
            column: Some(part.column),
            kind,
            time_zone: column.time_zone,
            nullable: column.nullable,
            prefix_length: part.prefix_length,
            fixed_width: width,
            mysql_key_len: key_len + u32::from(column.nullable),
            mysql_value_len: key_len - if has_length { LENGTH_BYTES } else { 0 },
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

/// What a column takes in MySQL's key buffer, which is what EXPLAIN's key_len counts.
fn mysql_key_len(ty: &ColumnType, prefix_length: Option<u32>) -> u32 {
    let fraction = |fsp: u8| u32::from(fsp.div_ceil(2));
    match ty {
        ColumnType::Decimal {
            precision, scale, ..
        } => {
            // Nine digits take four bytes, and the rest of each side as many as it needs.
            let side = |digits: u8| {
                u32::from(digits / 9) * 4 + [0, 1, 1, 2, 2, 3, 3, 4, 4][usize::from(digits % 9)]
            };
            side(precision - scale) + side(*scale)
        }
        ColumnType::Float { .. } => 4,
        ColumnType::Double { .. } => 8,
        ColumnType::Char { length, collation } => {
            prefix_length.unwrap_or(*length) * collation.character_bytes()
        }
        ColumnType::VarChar { length, collation } => {
            prefix_length.unwrap_or(*length) * collation.character_bytes() + 2
        }
        ColumnType::Text { collation, .. } => {
            prefix_length.unwrap_or(0) * collation.character_bytes() + 2
        }
        ColumnType::Binary { length } => prefix_length.unwrap_or(*length),
        ColumnType::VarBinary { length } => prefix_length.unwrap_or(*length) + 2,
        ColumnType::Blob { .. } => prefix_length.unwrap_or(0) + 2,
        ColumnType::Date => 3,
        ColumnType::Time { fsp } => 3 + fraction(*fsp),
        ColumnType::DateTime { fsp } => 5 + fraction(*fsp),
        ColumnType::Timestamp { fsp } => 4 + fraction(*fsp),
        ColumnType::Year => 1,
        ColumnType::Bit { length } => u32::from(*length).div_ceil(8),
        // One to four bytes, or eight.
        ColumnType::Set { labels, .. } => match (labels.len() as u32).div_ceil(8) {
            bytes @ 0..=4 => bytes,
            _ => 8,
        },
        ColumnType::Enum { labels, .. } => {
            if labels.len() < 256 {
                1
            } else {
                2
            }
        }
        ColumnType::Bool
        | ColumnType::TinyInt { .. }
        | ColumnType::SmallInt { .. }
        | ColumnType::MediumInt { .. }
        | ColumnType::Int { .. }
        | ColumnType::BigInt { .. } => ty.integer_bits().unwrap_or(64) / 8,
        // It is in no key.
        ColumnType::Json => 0,
    }
}
