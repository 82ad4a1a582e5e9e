//! A column: its type as TABLE_MAP says it, and its values in row images.

use sheaf_types::column_type::ColumnType;
use sheaf_types::json::Json;
use sheaf_types::number::bit_bytes_length;
use sheaf_types::text::collation::Collation;
use sheaf_types::value::Value;

use super::{decimal, json, temporal};
use crate::bytes::{put_big, put_little};

/// Types by their numbers in the protocol.
pub(crate) mod code {
    pub(crate) const TINY: u8 = 1;
    pub(crate) const SHORT: u8 = 2;
    pub(crate) const LONG: u8 = 3;
    pub(crate) const FLOAT: u8 = 4;
    pub(crate) const DOUBLE: u8 = 5;
    pub(crate) const TIMESTAMP: u8 = 7;
    pub(crate) const LONGLONG: u8 = 8;
    pub(crate) const INT24: u8 = 9;
    pub(crate) const DATE: u8 = 10;
    pub(crate) const TIME: u8 = 11;
    pub(crate) const DATETIME: u8 = 12;
    pub(crate) const YEAR: u8 = 13;
    pub(crate) const NEWDATE: u8 = 14;
    pub(crate) const VARCHAR: u8 = 15;
    pub(crate) const BIT: u8 = 16;
    pub(crate) const TIMESTAMP2: u8 = 17;
    pub(crate) const DATETIME2: u8 = 18;
    pub(crate) const TIME2: u8 = 19;
    pub(crate) const VECTOR: u8 = 242;
    pub(crate) const JSON: u8 = 245;
    pub(crate) const NEWDECIMAL: u8 = 246;
    pub(crate) const ENUM: u8 = 247;
    pub(crate) const SET: u8 = 248;
    pub(crate) const BLOB: u8 = 252;
    pub(crate) const VAR_STRING: u8 = 253;
    pub(crate) const STRING: u8 = 254;
    pub(crate) const GEOMETRY: u8 = 255;
}

/// The year that one byte of 1 stands for is the next one.
const YEAR_BASE: u16 = 1900;
/// Bytes of the length of a JSON document.
const JSON_LENGTH_BYTES: u8 = 4;
/// Trailing bytes of CHAR and BINARY that are not logged.
const CHAR_PADDING: u8 = b' ';
const BINARY_PADDING: u8 = 0;

/// How the values of a column are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    Integer {
        bytes: usize,
        is_unsigned: bool,
    },
    Decimal {
        precision: u8,
        scale: u8,
        is_unsigned: bool,
    },
    Float {
        is_unsigned: bool,
    },
    Double {
        is_unsigned: bool,
    },
    Bit {
        length: u8,
    },
    /// CHAR and BINARY: a length of one or two bytes, and the bytes without padding.
    Padded {
        max_bytes: u16,
        padding: u8,
        collation: Collation,
    },
    /// VARCHAR and VARBINARY: the same with all bytes.
    Varying {
        max_bytes: u16,
        collation: Collation,
    },
    /// TEXT and BLOB: a length of one to four bytes, and the bytes.
    Long {
        length_bytes: u8,
        collation: Collation,
    },
    Json,
    Date,
    Time {
        digits: u8,
    },
    DateTime {
        digits: u8,
    },
    Timestamp {
        digits: u8,
    },
    Year,
    Enum {
        bytes: u8,
        collation: Collation,
    },
    Set {
        bytes: u8,
        collation: Collation,
    },
}

impl Field {
    pub(crate) fn of(ty: &ColumnType) -> Field {
        let is_unsigned = ty.is_unsigned();
        match ty {
            ColumnType::Bool | ColumnType::TinyInt { .. } => Field::Integer {
                bytes: 1,
                is_unsigned,
            },
            ColumnType::SmallInt { .. } => Field::Integer {
                bytes: 2,
                is_unsigned,
            },
            ColumnType::MediumInt { .. } => Field::Integer {
                bytes: 3,
                is_unsigned,
            },
            ColumnType::Int { .. } => Field::Integer {
                bytes: 4,
                is_unsigned,
            },
            ColumnType::BigInt { .. } => Field::Integer {
                bytes: 8,
                is_unsigned,
            },
            ColumnType::Bit { length } => Field::Bit { length: *length },
            ColumnType::Decimal {
                precision, scale, ..
            } => Field::Decimal {
                precision: *precision,
                scale: *scale,
                is_unsigned,
            },
            ColumnType::Float { .. } => Field::Float { is_unsigned },
            ColumnType::Double { .. } => Field::Double { is_unsigned },
            ColumnType::Char { length, collation } => Field::Padded {
                max_bytes: short(*length * collation.character_bytes()),
                padding: CHAR_PADDING,
                collation: *collation,
            },
            ColumnType::Binary { length } => Field::Padded {
                max_bytes: short(*length),
                padding: BINARY_PADDING,
                collation: Collation::Binary,
            },
            ColumnType::VarChar { length, collation } => Field::Varying {
                max_bytes: short(*length * collation.character_bytes()),
                collation: *collation,
            },
            ColumnType::VarBinary { length } => Field::Varying {
                max_bytes: short(*length),
                collation: Collation::Binary,
            },
            ColumnType::Text {
                max_bytes,
                collation,
            } => Field::Long {
                length_bytes: length_bytes(*max_bytes),
                collation: *collation,
            },
            ColumnType::Blob { max_bytes } => Field::Long {
                length_bytes: length_bytes(*max_bytes),
                collation: Collation::Binary,
            },
            ColumnType::Json => Field::Json,
            ColumnType::Date => Field::Date,
            ColumnType::Time { fsp } => Field::Time { digits: *fsp },
            ColumnType::DateTime { fsp } => Field::DateTime { digits: *fsp },
            ColumnType::Timestamp { fsp } => Field::Timestamp { digits: *fsp },
            ColumnType::Year => Field::Year,
            ColumnType::Enum { labels, collation } => Field::Enum {
                bytes: if labels.len() < 256 { 1 } else { 2 },
                collation: *collation,
            },
            ColumnType::Set { labels, collation } => Field::Set {
                bytes: match labels.len().div_ceil(8) {
                    bytes @ 0..=4 => bytes.max(1) as u8,
                    _ => 8,
                },
                collation: *collation,
            },
        }
    }

    /// The number of the type in TABLE_MAP. ENUM and SET are strings there, and say what they are beside it.
    pub(crate) fn type_code(&self) -> u8 {
        match self {
            Field::Integer { bytes: 1, .. } => code::TINY,
            Field::Integer { bytes: 2, .. } => code::SHORT,
            Field::Integer { bytes: 3, .. } => code::INT24,
            Field::Integer { bytes: 4, .. } => code::LONG,
            Field::Integer { .. } => code::LONGLONG,
            Field::Decimal { .. } => code::NEWDECIMAL,
            Field::Float { .. } => code::FLOAT,
            Field::Double { .. } => code::DOUBLE,
            Field::Bit { .. } => code::BIT,
            Field::Padded { .. } | Field::Enum { .. } | Field::Set { .. } => code::STRING,
            Field::Varying { .. } => code::VARCHAR,
            Field::Long { .. } => code::BLOB,
            Field::Json => code::JSON,
            Field::Date => code::DATE,
            Field::Time { .. } => code::TIME2,
            Field::DateTime { .. } => code::DATETIME2,
            Field::Timestamp { .. } => code::TIMESTAMP2,
            Field::Year => code::YEAR,
        }
    }

    /// Appends what TABLE_MAP says of the type beside its number.
    pub(crate) fn put_metadata(&self, out: &mut Vec<u8>) {
        match *self {
            Field::Integer { .. } | Field::Date | Field::Year => {}
            Field::Decimal {
                precision, scale, ..
            } => out.extend_from_slice(&[precision, scale]),
            Field::Float { .. } => out.push(4),
            Field::Double { .. } => out.push(8),
            Field::Bit { length } => out.extend_from_slice(&[length % 8, length / 8]),
            // The two highest bits of the length, inverted, stand in the number of the type.
            Field::Padded { max_bytes, .. } => {
                let high = (max_bytes >> 4 & 0x30) as u8;
                out.extend_from_slice(&[code::STRING ^ high, max_bytes as u8]);
            }
            Field::Varying { max_bytes, .. } => out.extend_from_slice(&max_bytes.to_le_bytes()),
            Field::Long { length_bytes, .. } => out.push(length_bytes),
            Field::Json => out.push(JSON_LENGTH_BYTES),
            Field::Time { digits } | Field::DateTime { digits } | Field::Timestamp { digits } => {
                out.push(digits);
            }
            Field::Enum { bytes, .. } => out.extend_from_slice(&[code::ENUM, bytes]),
            Field::Set { bytes, .. } => out.extend_from_slice(&[code::SET, bytes]),
        }
    }

    /// Whether a number is unsigned; `None` of what TABLE_MAP does not count as a number.
    pub(crate) fn signedness(&self) -> Option<bool> {
        match self {
            Field::Integer { is_unsigned, .. }
            | Field::Decimal { is_unsigned, .. }
            | Field::Float { is_unsigned }
            | Field::Double { is_unsigned } => Some(*is_unsigned),
            Field::Year => Some(true),
            _ => None,
        }
    }

    /// The collation of a string, binary strings included.
    pub(crate) fn string_collation(&self) -> Option<Collation> {
        match self {
            Field::Padded { collation, .. }
            | Field::Varying { collation, .. }
            | Field::Long { collation, .. } => Some(*collation),
            _ => None,
        }
    }

    /// The collation of an ENUM or SET.
    pub(crate) fn label_collation(&self) -> Option<Collation> {
        match self {
            Field::Enum { collation, .. } | Field::Set { collation, .. } => Some(*collation),
            _ => None,
        }
    }

    /// Whether NOBLOB images leave it out. JSON is none, as in MySQL.
    pub(crate) fn is_blob(&self) -> bool {
        matches!(self, Field::Long { .. })
    }

    /// Appends a value that is not NULL. `false`: the column has no such value, and what was appended does not count.
    pub(crate) fn put(&self, out: &mut Vec<u8>, value: &Value) -> bool {
        match (self, value) {
            (
                Field::Integer {
                    bytes,
                    is_unsigned: false,
                },
                Value::Int(number),
            ) => {
                put_little(out, *number as u64, *bytes);
            }
            (
                Field::Integer {
                    bytes,
                    is_unsigned: true,
                },
                Value::UInt(number),
            ) => {
                put_little(out, *number, *bytes);
            }
            (
                Field::Decimal {
                    precision, scale, ..
                },
                Value::Decimal {
                    unscaled,
                    scale: found,
                },
            ) => {
                return found == scale && decimal::put(out, *unscaled, *precision, *scale);
            }
            (
                Field::Decimal {
                    precision, scale, ..
                },
                Value::WideDecimal {
                    unscaled,
                    scale: found,
                },
            ) => {
                let unscaled = (*unscaled).into();
                return found == scale && decimal::put_wide(out, unscaled, *precision, *scale);
            }
            (Field::Float { .. }, Value::Float(number)) => {
                out.extend_from_slice(&number.to_le_bytes());
            }
            (Field::Double { .. }, Value::Double(number)) => {
                out.extend_from_slice(&number.to_le_bytes());
            }
            (Field::Bit { length }, Value::UInt(bits)) => {
                put_big(out, *bits, bit_bytes_length(*length));
            }
            (
                Field::Padded {
                    max_bytes,
                    padding,
                    collation,
                },
                value,
            ) => {
                let Some(bytes) = string_bytes(value) else {
                    return false;
                };
                let padded = bytes
                    .iter()
                    .rev()
                    .take_while(|byte| *byte == padding)
                    .count();
                let bytes = collation.encoding().encode(&bytes[..bytes.len() - padded]);
                return put_short(out, &bytes, *max_bytes);
            }
            (
                Field::Varying {
                    max_bytes,
                    collation,
                },
                value,
            ) => {
                let Some(bytes) = string_bytes(value) else {
                    return false;
                };
                return put_short(out, &collation.encoding().encode(bytes), *max_bytes);
            }
            (
                Field::Long {
                    length_bytes,
                    collation,
                },
                value,
            ) => {
                let Some(bytes) = string_bytes(value) else {
                    return false;
                };
                return put_long(out, &collation.encoding().encode(bytes), *length_bytes);
            }
            (Field::Json, Value::Json(bytes)) => return put_json(out, bytes),
            (Field::Date, Value::Date(days)) => temporal::put_date(out, *days),
            (Field::Time { digits }, Value::Time(micros)) => {
                temporal::put_time(out, *micros, *digits);
            }
            (Field::DateTime { digits }, Value::DateTime(micros)) => {
                temporal::put_datetime(out, *micros, *digits);
            }
            (Field::Timestamp { digits }, Value::Timestamp(micros)) => {
                return temporal::put_timestamp(out, *micros, *digits);
            }
            (Field::Year, Value::Year(0)) => out.push(0),
            (Field::Year, Value::Year(year)) => {
                let Some(byte) = year
                    .checked_sub(YEAR_BASE)
                    .and_then(|year| u8::try_from(year).ok())
                else {
                    return false;
                };
                out.push(byte);
            }
            (Field::Enum { bytes, .. }, Value::Enum(number)) => {
                put_little(out, u64::from(*number), (*bytes).into());
            }
            (Field::Set { bytes, .. }, Value::Set(bits)) => {
                put_little(out, *bits, (*bytes).into());
            }
            _ => return false,
        }
        true
    }
}

/// A length that two bytes hold. Columns of such types have no greater one.
fn short(length: u32) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}

/// Bytes of the length of a TEXT or BLOB.
fn length_bytes(max_bytes: u64) -> u8 {
    match max_bytes {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFF_FFFF => 3,
        _ => 4,
    }
}

/// As they are stored: a text in UTF-8.
fn string_bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Text(text) => Some(text.as_bytes()),
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

fn put_short(out: &mut Vec<u8>, bytes: &[u8], max_bytes: u16) -> bool {
    put_long(out, bytes, if max_bytes > 0xFF { 2 } else { 1 })
}

fn put_long(out: &mut Vec<u8>, bytes: &[u8], length_bytes: u8) -> bool {
    let length = bytes.len() as u64;
    if length >> (8 * u32::from(length_bytes)) != 0 {
        return false;
    }
    put_little(out, length, length_bytes.into());
    out.extend_from_slice(bytes);
    true
}

/// A document, with its length in front.
fn put_json(out: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let Ok(json) = Json::new(bytes) else {
        return false;
    };
    let start = out.len();
    out.extend_from_slice(&[0; JSON_LENGTH_BYTES as usize]);
    let begin = out.len();
    if !json::put(out, json) {
        return false;
    }
    let Ok(length) = u32::try_from(out.len() - begin) else {
        return false;
    };
    out[start..begin].copy_from_slice(&length.to_le_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_bytes_of_their_character_set() {
        for (ty, text, expected) in [
            ("varchar(5) COLLATE latin1_swedish_ci", "é", vec![1, 0xE9]),
            ("varchar(5) COLLATE utf8mb4_bin", "é", vec![2, 0xC3, 0xA9]),
            ("char(5) COLLATE ucs2_bin", "é ", vec![2, 0x00, 0xE9]),
            ("tinytext COLLATE koi8r_bin", "ж", vec![1, 0xD6]),
        ] {
            let ty = ColumnType::parse(ty).expect(ty);
            let mut bytes = Vec::new();
            assert!(Field::of(&ty).put(&mut bytes, &Value::Text(text.to_string())));
            assert_eq!(bytes, expected, "{ty}");
        }
    }
}
