//! JSON documents in MySQL's binary form.
//!
//! Sheaf's own form ([`sheaf_types::json::document`]) has the same parts at other places. So a document is written
//! anew:
//!
//! ```text
//!   document   | type | value |
//!   object     | count | bytes | key entries | value entries | keys | values |
//!   array      | count | bytes | value entries | values |
//!   key entry  | offset | length (2) |          value entry | type | offset, or the value itself |
//! ```
//!
//! Counts and offsets have 2 bytes in a small container and 4 in a large one. A container is large if it would be
//! longer than 65535 bytes as a small one. Offsets count from the container's count. Literals and short integers stand
//! in their entries.

use sheaf_types::json::{Json, View};
use sheaf_types::number::Int256;

use super::{decimal, temporal};

pub(crate) mod code {
    pub(crate) const SMALL_OBJECT: u8 = 0x00;
    pub(crate) const LARGE_OBJECT: u8 = 0x01;
    pub(crate) const SMALL_ARRAY: u8 = 0x02;
    pub(crate) const LARGE_ARRAY: u8 = 0x03;
    pub(crate) const LITERAL: u8 = 0x04;
    pub(crate) const INT16: u8 = 0x05;
    pub(crate) const UINT16: u8 = 0x06;
    pub(crate) const INT32: u8 = 0x07;
    pub(crate) const UINT32: u8 = 0x08;
    pub(crate) const INT64: u8 = 0x09;
    pub(crate) const UINT64: u8 = 0x0A;
    pub(crate) const DOUBLE: u8 = 0x0B;
    pub(crate) const STRING: u8 = 0x0C;
    pub(crate) const OPAQUE: u8 = 0x0F;
}

pub(crate) mod literal {
    pub(crate) const NULL: u8 = 0;
    pub(crate) const TRUE: u8 = 1;
    pub(crate) const FALSE: u8 = 2;
}

/// Types of SQL whose values JSON lacks, by their numbers in the protocol.
pub(crate) mod field_type {
    pub(crate) const TIMESTAMP: u8 = 7;
    pub(crate) const DATE: u8 = 10;
    pub(crate) const TIME: u8 = 11;
    pub(crate) const DATETIME: u8 = 12;
    pub(crate) const DECIMAL: u8 = 246;
}

/// Bytes of a count and of an offset.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Small,
    Large,
}

impl Width {
    fn bytes(self) -> usize {
        match self {
            Width::Small => 2,
            Width::Large => 4,
        }
    }

    fn limit(self) -> usize {
        match self {
            Width::Small => usize::from(u16::MAX),
            Width::Large => u32::MAX as usize,
        }
    }
}

/// A container or a key that is too long.
struct TooLong;

/// Appends a document. `false`: it is longer than the form allows, and what was appended does not count.
pub(crate) fn put(out: &mut Vec<u8>, json: Json<'_>) -> bool {
    let place = out.len();
    out.push(0);
    let written = put_value(out, json.view(), Width::Large);
    match written {
        Ok(code) => {
            out[place] = code;
            true
        }
        Err(TooLong) => false,
    }
}

/// Appends a value without its type, and gives the type. In a small container there are only small ones.
fn put_value(out: &mut Vec<u8>, view: View<'_>, parent: Width) -> Result<u8, TooLong> {
    match view {
        View::Array(_) | View::Object(_) => {
            let start = out.len();
            match put_container(out, view, Width::Small) {
                Err(TooLong) if parent == Width::Large => {
                    out.truncate(start);
                    put_container(out, view, Width::Large)
                }
                written => written,
            }
        }
        scalar => Ok(put_scalar(out, scalar)),
    }
}

fn put_container(out: &mut Vec<u8>, view: View<'_>, width: Width) -> Result<u8, TooLong> {
    let start = out.len();
    let (is_object, count) = match view {
        View::Object(object) => (true, object.len()),
        View::Array(array) => (false, array.len()),
        _ => return Ok(put_scalar(out, view)),
    };
    if count > width.limit() {
        return Err(TooLong);
    }
    put_word(out, count, width);
    let bytes_place = out.len();
    put_word(out, 0, width);
    let key_entry_bytes = if is_object { width.bytes() + 2 } else { 0 };
    let key_entries = out.len();
    let value_entries = key_entries + count * key_entry_bytes;
    let value_entry_bytes = 1 + width.bytes();
    out.resize(value_entries + count * value_entry_bytes, 0);
    if let View::Object(object) = view {
        for (at, (key, _)) in object.iter().enumerate() {
            let offset = place_in(out, start, width)?;
            let length = u16::try_from(key.len()).map_err(|_| TooLong)?;
            let entry = key_entries + at * key_entry_bytes;
            set_word(out, entry, offset, width);
            out[entry + width.bytes()..][..2].copy_from_slice(&length.to_le_bytes());
            out.extend_from_slice(key.as_bytes());
        }
    }
    let put_member = |out: &mut Vec<u8>, at: usize, member: Json<'_>| {
        let entry = value_entries + at * value_entry_bytes;
        let offset = place_in(out, start, width)?;
        let code = put_value(out, member.view(), width)?;
        out[entry] = code;
        if stands_in_entry(code, width) {
            let mut value = out.split_off(start + offset);
            // A short number below zero fills the rest of its word, too.
            let is_negative = code == code::INT16 && value.last().is_some_and(|last| *last > 0x7F);
            value.resize(width.bytes(), if is_negative { 0xFF } else { 0 });
            out[entry + 1..][..value.len()].copy_from_slice(&value);
        } else {
            set_word(out, entry + 1, offset, width);
        }
        place_in(out, start, width).map(drop)
    };
    match view {
        View::Object(object) => {
            for (at, (_, member)) in object.iter().enumerate() {
                put_member(out, at, member)?;
            }
        }
        View::Array(array) => {
            for (at, member) in array.iter().enumerate() {
                put_member(out, at, member)?;
            }
        }
        _ => {}
    }
    let bytes = place_in(out, start, width)?;
    set_word(out, bytes_place, bytes, width);
    Ok(match (is_object, width) {
        (true, Width::Small) => code::SMALL_OBJECT,
        (true, Width::Large) => code::LARGE_OBJECT,
        (false, Width::Small) => code::SMALL_ARRAY,
        (false, Width::Large) => code::LARGE_ARRAY,
    })
}

/// How far the end lies from a container's first byte.
fn place_in(out: &[u8], start: usize, width: Width) -> Result<usize, TooLong> {
    let offset = out.len() - start;
    (offset <= width.limit()).then_some(offset).ok_or(TooLong)
}

fn put_word(out: &mut Vec<u8>, number: usize, width: Width) {
    out.extend_from_slice(&(number as u32).to_le_bytes()[..width.bytes()]);
}

fn set_word(out: &mut [u8], place: usize, number: usize, width: Width) {
    let bytes = width.bytes();
    out[place..][..bytes].copy_from_slice(&(number as u32).to_le_bytes()[..bytes]);
}

/// Whether a value stands in its entry instead of among the values.
fn stands_in_entry(code: u8, width: Width) -> bool {
    match code {
        code::LITERAL | code::INT16 | code::UINT16 => true,
        code::INT32 | code::UINT32 => width == Width::Large,
        _ => false,
    }
}

fn put_scalar(out: &mut Vec<u8>, view: View<'_>) -> u8 {
    match view {
        View::Bool(value) => put_literal(out, if value { literal::TRUE } else { literal::FALSE }),
        View::Int(number) => put_int(out, number),
        View::UInt(number) => put_uint(out, number),
        View::Double(number) => {
            out.extend_from_slice(&number.to_le_bytes());
            code::DOUBLE
        }
        View::String(text) => {
            put_length(out, text.len());
            out.extend_from_slice(text.as_bytes());
            code::STRING
        }
        View::Decimal { unscaled, scale } => {
            let precision = decimal::whole_digits(unscaled, scale) + scale;
            let mut bytes = vec![precision, scale];
            // It has as many digits as were counted.
            decimal::put(&mut bytes, unscaled, precision, scale);
            put_opaque(out, field_type::DECIMAL, &bytes)
        }
        View::WideDecimal { unscaled, scale } => {
            let unscaled = Int256::from(unscaled);
            let digits = unscaled.count_digits() as u8;
            let precision = digits.max(scale + 1);
            let mut bytes = vec![precision, scale];
            // It has as many digits as were counted.
            decimal::put_wide(&mut bytes, unscaled, precision, scale);
            put_opaque(out, field_type::DECIMAL, &bytes)
        }
        View::Date(days) => put_packed(out, field_type::DATE, temporal::packed_date(days)),
        View::Time(micros) => put_packed(out, field_type::TIME, temporal::packed_time(micros)),
        View::DateTime(micros) => {
            put_packed(out, field_type::DATETIME, temporal::packed_datetime(micros))
        }
        View::Timestamp(micros) => put_packed(
            out,
            field_type::TIMESTAMP,
            temporal::packed_datetime(micros),
        ),
        View::Opaque { field_type, bytes } => put_opaque(out, field_type, bytes),
        // Containers are not scalars.
        View::Null | View::Array(_) | View::Object(_) => put_literal(out, literal::NULL),
    }
}

fn put_literal(out: &mut Vec<u8>, literal: u8) -> u8 {
    out.push(literal);
    code::LITERAL
}

fn put_int(out: &mut Vec<u8>, number: i64) -> u8 {
    if let Ok(number) = i16::try_from(number) {
        out.extend_from_slice(&number.to_le_bytes());
        code::INT16
    } else if let Ok(number) = i32::try_from(number) {
        out.extend_from_slice(&number.to_le_bytes());
        code::INT32
    } else {
        out.extend_from_slice(&number.to_le_bytes());
        code::INT64
    }
}

fn put_uint(out: &mut Vec<u8>, number: u64) -> u8 {
    if let Ok(number) = u16::try_from(number) {
        out.extend_from_slice(&number.to_le_bytes());
        code::UINT16
    } else if let Ok(number) = u32::try_from(number) {
        out.extend_from_slice(&number.to_le_bytes());
        code::UINT32
    } else {
        out.extend_from_slice(&number.to_le_bytes());
        code::UINT64
    }
}

fn put_packed(out: &mut Vec<u8>, field_type: u8, packed: i64) -> u8 {
    put_opaque(out, field_type, &packed.to_le_bytes())
}

fn put_opaque(out: &mut Vec<u8>, field_type: u8, bytes: &[u8]) -> u8 {
    out.push(field_type);
    put_length(out, bytes.len());
    out.extend_from_slice(bytes);
    code::OPAQUE
}

/// A length in groups of 7 bits, the lowest first, all but the last with the high bit set.
fn put_length(out: &mut Vec<u8>, mut length: usize) {
    while length > 0x7F {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}
