//! A value of an image, for a column of the replica.
//!
//! The source's types are those of the replica, but for lengths: a longer VARCHAR, TEXT or BLOB takes what a shorter
//! one has. JSON takes texts, which MariaDB's JSON is. Other pairs are refused, as by MySQL without
//! replica_type_conversions.

use sheaf_types::column_type::ColumnType;
use sheaf_types::json;
use sheaf_types::number::{bit_bytes_length, is_wide};
use sheaf_types::temporal::{DAY, SECOND};
use sheaf_types::text::collation::Collation;
use sheaf_types::text::encoding::TextEncoding;
use sheaf_types::value::Value;

use super::cursor::Cursor;
use super::{SourceColumn, json as binary_json};
use crate::row::field::{Field, code};
use crate::row::{decimal, temporal};

/// A column of the replica that values of a column of the source go into.
#[derive(Clone, Debug)]
pub(super) struct Target<'c> {
    ty: &'c ColumnType,
    /// How a text is written.
    encoding: TextEncoding,
}

impl<'c> Target<'c> {
    /// `None`: the column does not take such values.
    pub(super) fn new(source: &SourceColumn, ty: &'c ColumnType) -> Option<Target<'c>> {
        let field = Field::of(ty);
        let metadata = source.metadata;
        let takes = match (&field, source.code) {
            (Field::Integer { bytes, is_unsigned }, number) => {
                let own = match number {
                    code::TINY => 1,
                    code::SHORT => 2,
                    code::INT24 => 3,
                    code::LONG => 4,
                    code::LONGLONG => 8,
                    _ => 0,
                };
                own == *bytes && source.is_unsigned.is_none_or(|sign| sign == *is_unsigned)
            }
            (
                Field::Decimal {
                    precision, scale, ..
                },
                code::NEWDECIMAL,
            ) => metadata == u16::from(*precision) << 8 | u16::from(*scale),
            (Field::Float { .. }, code::FLOAT) | (Field::Double { .. }, code::DOUBLE) => true,
            (Field::Bit { length }, code::BIT) => metadata == u16::from(*length),
            (Field::Padded { max_bytes, .. }, code::STRING)
            | (Field::Varying { max_bytes, .. }, code::VARCHAR | code::STRING) => {
                metadata <= *max_bytes
            }
            (Field::Long { length_bytes, .. }, code::BLOB) => metadata <= u16::from(*length_bytes),
            (Field::Long { length_bytes, .. }, code::VARCHAR | code::STRING) => *length_bytes > 1,
            (Field::Json, code::JSON | code::BLOB) => true,
            (Field::Date, code::DATE | code::NEWDATE) => true,
            (Field::Time { digits }, code::TIME2) => metadata <= u16::from(*digits),
            (Field::DateTime { digits }, code::DATETIME2) => metadata <= u16::from(*digits),
            (Field::Timestamp { digits }, code::TIMESTAMP2) => metadata <= u16::from(*digits),
            (Field::Time { .. }, code::TIME)
            | (Field::DateTime { .. }, code::DATETIME)
            | (Field::Timestamp { .. }, code::TIMESTAMP) => true,
            (Field::Year, code::YEAR) => true,
            (Field::Enum { bytes, .. }, code::ENUM) | (Field::Set { bytes, .. }, code::SET) => {
                metadata == u16::from(*bytes)
            }
            _ => false,
        };
        // A text of the source is no text of a binary string, nor the other way round.
        let is_binary = source.collation.map(|collation| collation == BINARY);
        let is_string = field.string_collation().is_some();
        if !takes || is_string && is_binary.is_some_and(|is_binary| is_binary != ty.is_binary()) {
            return None;
        }
        let encoding = match source.collation {
            Some(collation) => encoding_of(collation)?,
            None => TextEncoding::Utf8,
        };
        Some(Target { ty, encoding })
    }
}

/// The collation `binary`.
const BINARY: u16 = 63;

/// How texts of a collation are written, by its number. `None`: the character set is not known.
fn encoding_of(collation: u16) -> Option<TextEncoding> {
    if let Some(known) = Collation::of_id(collation.into()) {
        return Some(known.encoding());
    }
    // What follows is of no column here.
    let name = match collation {
        2 => "latin2",
        18 => "tis620",
        34 => "cp1250",
        248..=250 => "gb18030",
        76 | 192..=247 | 255..=323 => return Some(TextEncoding::Utf8),
        // MariaDB numbers its own from 576 on, and copies of collations without padding from 1024 on.
        576..=640 => return Some(TextEncoding::Utf8),
        1069 | 1070 | 1057 | 1107 | 1216 | 1238 | 1248 | 1270 => return Some(TextEncoding::Utf8),
        1032 | 1071 => "latin1",
        _ => return None,
    };
    match TextEncoding::of_character_set(name) {
        TextEncoding::Utf8 => None,
        encoding => Some(encoding),
    }
}

/// The text of bytes in the character set of a collation, by its number. `None`: they are none of it.
pub fn decode_text(bytes: &[u8], collation: u16) -> Option<String> {
    encoding_of(collation)?.decode(bytes)
}

/// Reads a value that is not NULL. `None`: the bytes are none of the column.
pub(super) fn read_value(
    bytes: &mut Cursor<'_>,
    source: &SourceColumn,
    target: &Target<'_>,
) -> Option<Value> {
    let ty = target.ty;
    let metadata = source.metadata;
    Some(match source.code {
        code::TINY => integer(bytes, 1, ty)?,
        code::SHORT => integer(bytes, 2, ty)?,
        code::INT24 => integer(bytes, 3, ty)?,
        code::LONG => integer(bytes, 4, ty)?,
        code::LONGLONG => integer(bytes, 8, ty)?,
        code::NEWDECIMAL => {
            let (precision, scale) = ((metadata >> 8) as u8, metadata as u8);
            let digits = bytes.take(decimal::bytes(precision, scale)?)?;
            let unscaled = match is_wide(precision) {
                true => decimal::read_wide(digits, precision, scale)?,
                false => decimal::read(digits, precision, scale)?.into(),
            };
            Value::of_decimal(unscaled, precision, scale)?
        }
        code::FLOAT => Value::Float(f32::from_le_bytes(bytes.array()?)),
        code::DOUBLE => Value::Double(f64::from_le_bytes(bytes.array()?)),
        code::BIT => {
            let length = u8::try_from(metadata).ok().filter(|length| *length <= 64)?;
            Value::UInt(bytes.big(bit_bytes_length(length))?)
        }
        code::STRING | code::VARCHAR => {
            let length = bytes.little(if metadata > 0xFF { 2 } else { 1 })? as usize;
            string(bytes.take(length)?, target)?
        }
        code::BLOB => {
            let length = bytes.little(usize::from(metadata).clamp(1, 4))? as usize;
            string(bytes.take(length)?, target)?
        }
        code::JSON => {
            let length = bytes.u32()? as usize;
            Value::Json(binary_json::read(bytes.take(length)?)?)
        }
        code::DATE | code::NEWDATE => Value::Date(date(bytes.little(3)?)?),
        code::TIME2 => Value::Time(temporal::read_time(fixed(bytes, 3, metadata)?)?),
        code::DATETIME2 => Value::DateTime(temporal::read_datetime(fixed(bytes, 5, metadata)?)?),
        code::TIMESTAMP2 => Value::Timestamp(temporal::read_timestamp(fixed(bytes, 4, metadata)?)?),
        code::TIME => {
            let number = bytes.little(3)? as i64;
            let number = if number >= 1 << 23 {
                number - (1 << 24)
            } else {
                number
            };
            let all = number.abs();
            let seconds = all / 10_000 * 3600 + all / 100 % 100 * 60 + all % 100;
            let micros = seconds * SECOND;
            let micros = if number < 0 { -micros } else { micros };
            (all <= 8_385_959).then_some(Value::Time(micros))?
        }
        code::DATETIME => {
            let number = bytes.u64()?;
            let (day, time) = (number / 1_000_000, (number % 1_000_000) as i64);
            let year = u32::try_from(day / 10_000).ok()?;
            let days = temporal::days_of(year, (day / 100 % 100) as u32, (day % 100) as u32)?;
            let seconds = time / 10_000 * 3600 + time / 100 % 100 * 60 + time % 100;
            Value::DateTime(i64::from(days) * DAY + seconds * SECOND)
        }
        code::TIMESTAMP => Value::Timestamp(temporal::moment_of(bytes.u32()?, 0)),
        code::YEAR => match bytes.byte()? {
            0 => Value::Year(0),
            year => Value::Year(1900 + u16::from(year)),
        },
        code::ENUM => {
            let number = bytes.little(usize::from(metadata).clamp(1, 2))?;
            let labels = ty.enum_labels()?;
            (number <= labels.len() as u64).then_some(Value::Enum(number as u16))?
        }
        code::SET => {
            let bits = bytes.little(usize::from(metadata).clamp(1, 8))?;
            let members = ty.set_labels()?.len();
            (members >= 64 || bits >> members == 0).then_some(Value::Set(bits))?
        }
        _ => return None,
    })
}

/// The bytes of a moment whose whole part has `whole` bytes, and of whose fraction there are `digits`.
fn fixed<'b>(bytes: &mut Cursor<'b>, whole: usize, digits: u16) -> Option<&'b [u8]> {
    let digits = usize::from(digits);
    (digits <= 6).then(|| bytes.take(whole + digits.div_ceil(2)))?
}

fn integer(bytes: &mut Cursor<'_>, length: usize, ty: &ColumnType) -> Option<Value> {
    let number = bytes.little(length)?;
    if ty.is_unsigned() {
        return Some(Value::UInt(number));
    }
    let unused = 64 - 8 * length as u32;
    Some(Value::Int((number << unused) as i64 >> unused))
}

/// A string as the column has it.
fn string(bytes: &[u8], target: &Target<'_>) -> Option<Value> {
    let text = || match target.encoding {
        TextEncoding::Utf8 => String::from_utf8(bytes.to_vec()).ok(),
        encoding => encoding.decode(bytes),
    };
    let ty = target.ty;
    let length = ty.declared_length().map(|length| length as usize);
    if ty.is_json() {
        return Some(Value::Json(json::text::read(&text()?).ok()?.into_bytes()));
    }
    if ty.is_binary() {
        let mut bytes = bytes.to_vec();
        if let Some(length) = length.filter(|_| ty.is_padded()) {
            bytes.resize(length.max(bytes.len()), 0);
        }
        return Some(Value::Bytes(bytes));
    }
    if !ty.is_character() {
        return None;
    }
    let text = text()?;
    let fits = match length {
        Some(length) => text.chars().count() <= length,
        None => ty
            .long_bytes()
            .is_some_and(|most| text.len() as u64 <= most),
    };
    fits.then_some(Value::Text(text))
}

/// The days of a DATE in its three bytes.
fn date(packed: u64) -> Option<i32> {
    temporal::days_of(
        (packed >> 9) as u32,
        (packed >> 5 & 15) as u32,
        (packed & 31) as u32,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_collations_of_columns_are_read() {
        for collation in Collation::ALL {
            assert_eq!(encoding_of(collation.id()), Some(collation.encoding()));
        }
        // cp866_general_ci, and latin2_czech_cs, which no column has.
        assert_eq!(decode_text(b"\x80", 36).as_deref(), Some("\u{410}"));
        assert_eq!(decode_text(b"\xb1", 2).as_deref(), Some("\u{105}"));
        assert_eq!(decode_text(b"a", 1023), None);
    }
}
