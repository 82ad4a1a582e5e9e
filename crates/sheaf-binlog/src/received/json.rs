//! A JSON document in MySQL's binary form, as `row/json.rs` writes it: read into Sheaf's own form.

use sheaf_types::json::Builder;
use sheaf_types::number::is_wide;

use super::cursor::Cursor;
use crate::row::json::{code, field_type, literal};
use crate::row::{decimal, temporal};

/// Containers in one another, at most: as many as a document of Sheaf's has.
const MAX_NESTING: usize = 100;
/// Bytes of a count and of an offset.
const SMALL: usize = 2;
const LARGE: usize = 4;

/// The document. `None`: it does not hold. MySQL logs a document of no bytes for the literal null.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut builder = Builder::new();
    match bytes.split_first() {
        None => builder.null().ok()?,
        Some((first, body)) => read_value(&mut builder, *first, body, 0)?,
    }
    Some(builder.finish().ok()?.into_bytes())
}

/// Reads the value of a type at the beginning of bytes.
fn read_value(out: &mut Builder, number: u8, bytes: &[u8], nesting: usize) -> Option<()> {
    let mut cursor = Cursor(bytes);
    match number {
        code::SMALL_OBJECT | code::LARGE_OBJECT | code::SMALL_ARRAY | code::LARGE_ARRAY => {
            return read_container(out, number, bytes, nesting);
        }
        code::LITERAL => match cursor.byte()? {
            literal::NULL => out.null(),
            literal::TRUE => out.bool(true),
            literal::FALSE => out.bool(false),
            _ => return None,
        },
        code::INT16 => out.int(i16::from_le_bytes(cursor.array()?).into()),
        code::UINT16 => out.uint(cursor.u16()?.into()),
        code::INT32 => out.int(i32::from_le_bytes(cursor.array()?).into()),
        code::UINT32 => out.uint(cursor.u32()?.into()),
        code::INT64 => out.int(i64::from_le_bytes(cursor.array()?)),
        code::UINT64 => out.uint(cursor.u64()?),
        code::DOUBLE => out.double(f64::from_le_bytes(cursor.array()?)),
        code::STRING => {
            let length = read_length(&mut cursor)?;
            out.string(std::str::from_utf8(cursor.take(length)?).ok()?)
        }
        code::OPAQUE => {
            let ty = cursor.byte()?;
            let length = read_length(&mut cursor)?;
            return read_opaque(out, ty, cursor.take(length)?);
        }
        _ => return None,
    }
    .ok()
}

fn read_container(out: &mut Builder, number: u8, bytes: &[u8], nesting: usize) -> Option<()> {
    if nesting >= MAX_NESTING {
        return None;
    }
    let is_object = matches!(number, code::SMALL_OBJECT | code::LARGE_OBJECT);
    let width = match number {
        code::SMALL_OBJECT | code::SMALL_ARRAY => SMALL,
        _ => LARGE,
    };
    let mut cursor = Cursor(bytes);
    let count = cursor.little(width)? as usize;
    let length = cursor.little(width)? as usize;
    let bytes = bytes.get(..length)?;
    let key_entry_bytes = if is_object { width + 2 } else { 0 };
    let entries = count.checked_mul(key_entry_bytes + 1 + width)?;
    let key_bytes = count * key_entry_bytes;
    if cursor.0.len() < entries {
        return None;
    }
    let mut keys = Cursor(cursor.take(key_bytes)?);
    match is_object {
        true => out.begin_object().ok()?,
        false => out.begin_array().ok()?,
    }
    for _ in 0..count {
        if is_object {
            let (offset, length) = (keys.little(width)? as usize, usize::from(keys.u16()?));
            let key = bytes.get(offset..offset.checked_add(length)?)?;
            out.key(std::str::from_utf8(key).ok()?).ok()?;
        }
        let ty = cursor.byte()?;
        let entry = cursor.take(width)?;
        let stands_in_entry = match ty {
            code::LITERAL | code::INT16 | code::UINT16 => true,
            code::INT32 | code::UINT32 => width == LARGE,
            _ => false,
        };
        let value = match stands_in_entry {
            true => entry,
            false => bytes.get(Cursor(entry).little(width)? as usize..)?,
        };
        read_value(out, ty, value, nesting + 1)?;
    }
    out.end().ok()
}

fn read_opaque(out: &mut Builder, ty: u8, bytes: &[u8]) -> Option<()> {
    let packed = || Cursor(bytes).array().map(i64::from_le_bytes);
    match ty {
        field_type::DECIMAL => {
            let (precision, scale) = (*bytes.first()?, *bytes.get(1)?);
            let digits = bytes.get(2..2 + decimal::bytes(precision, scale)?)?;
            match is_wide(precision) {
                true => out.wide_decimal(decimal::read_wide(digits, precision, scale)?, scale),
                false => out.decimal(decimal::read(digits, precision, scale)?, scale),
            }
        }
        field_type::DATE => out.date(temporal::date_of_packed(packed()?)?),
        field_type::TIME => out.time(temporal::time_of_packed(packed()?)?),
        field_type::DATETIME => out.datetime(temporal::datetime_of_packed(packed()?)?),
        field_type::TIMESTAMP => out.timestamp(temporal::datetime_of_packed(packed()?)?),
        ty => out.opaque(ty, bytes),
    }
    .ok()
}

/// A length in groups of 7 bits, the lowest first, all but the last with the high bit set.
fn read_length(cursor: &mut Cursor<'_>) -> Option<usize> {
    let mut length = 0;
    for shift in (0..35).step_by(7) {
        let byte = cursor.byte()?;
        length |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return usize::try_from(length).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::json::put;
    use sheaf_types::json::{Json, text};

    #[test]
    fn documents_read_as_they_were_written_and_pieces_of_them_do_not() {
        let long = format!("[{}]", vec!["\"abcdefgh\""; 9000].join(", "));
        let texts = [
            "null",
            "true",
            "-1",
            "65536",
            "18446744073709551615",
            "1.5",
            "\"a\"",
            "[]",
            "{}",
            "[1, -70000, [true, {\"a\": null}], \"text\"]",
            "{\"a\": 1, \"bb\": [1.25, \"x\"], \"ccc\": {\"d\": -3}}",
            &long,
        ];
        for given in texts {
            let document = text::read(given).unwrap().into_bytes();
            let mut written = Vec::new();
            assert!(put(&mut written, Json::new(&document).unwrap()));
            assert_eq!(
                read(&written).as_ref(),
                Some(&document),
                "{}",
                &given[..given.len().min(50)]
            );
            for end in 1..written.len().min(60) {
                let piece = read(&written[..end]);
                assert!(piece.is_none_or(|piece| Json::new(&piece).is_ok()));
            }
        }
    }
}
