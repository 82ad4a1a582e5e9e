//! Index keys as bytes in memcmp order.
//!
//! A key is its parts one after the other. A part of a nullable column starts with a NULL byte, 0x00 for NULL (and the
//! part ends) or 0x01. Then comes the value, in an encoding that is either of fixed width or cannot be the beginning of
//! another value's. So the order of keys is the order of their first differing parts:
//!
//! | column | encoding |
//! |---|---|
//! | integers, DATE, TIME, DATETIME, TIMESTAMP (as UTC) | big-endian, sign bit flipped unless unsigned, 1, 2, 3, 4 or 8 bytes |
//! | YEAR, ENUM | big-endian, 2 bytes |
//! | BIT, SET | big-endian, 1, 2, 4 or 8 bytes |
//! | DECIMAL | unscaled value big-endian, sign bit flipped, as many bytes as the precision needs |
//! | FLOAT, DOUBLE | IEEE bits big-endian; negative ones inverted, others with the sign bit flipped |
//! | characters, utf8mb4_0900_ai_ci | [sort key](sheaf_types::text::collation) and 0x00, which no sort key contains |
//! | characters, PAD SPACE collations | sort key, whose end 0x01 cannot be mistaken |
//! | bytes | with 0x00 as 0x00 0xFF, then 0x00 0x00 |
//! | hidden row id | big-endian, 8 bytes |
//!
//! A clustered key has the parts of the primary key, or the row id. A secondary key has the index's parts and then
//! those of the primary key that are not among them, so it is unique and says where the row is.
//!
//! Sort keys do not give the original strings back, so a secondary entry's value is a *payload* that completes them. It
//! has one byte for each character part (as far as [`MAX_PAYLOAD_BYTES`] goes). The byte says that the original is what
//! the key says in small letters (0) or in capitals (1), or that it follows, with its length in two bytes (2). A
//! payload of zeros is left out. Parts with a prefix length are not completed: such columns are read from the row.
//!
//! A prefix length counts elements of the sort key (see [`Collation::limited_key_into`]), so that equal strings have
//! equal beginnings. [`crate::codec::key_range`] makes ranges of encoded keys.

use sheaf_storage::MIN_VALUE_LIMIT;
use sheaf_types::number::{WIDE_BYTES, Wide};
use sheaf_types::temporal::TimeZone;
use sheaf_types::text::text_of;
use sheaf_types::{
    ColumnType, Value,
    text::{self, collation::Collation, unicode_primary},
};

use crate::codec::key_part::{KeyPart, MAX_NARROW_BYTES, PartKind};
use crate::codec::row_codec::ValueRef;
use crate::codec::sort_key_text::decode_sort_key;
use crate::definition::schema::{Index, IndexPart, MAX_INDEX_PARTS, TableDefinition};
use crate::error::{Result, TableError};

/// The most bytes of originals in a secondary entry: parts beyond it cannot be read from the index. They fit an entry
/// beside the longest key.
pub const MAX_PAYLOAD_BYTES: u64 = 1536;

const _: () = assert!(MAX_PAYLOAD_BYTES as usize <= MIN_VALUE_LIMIT);

pub(crate) const NULL: u8 = 0x00;
pub(crate) const NOT_NULL: u8 = 0x01;

/// Ends a part under utf8mb4_0900_ai_ci.
pub(crate) const TEXT_END: u8 = 0x00;

/// In byte strings: 0x00 is escaped by the former; after the latter the part is at its end.
const ESCAPED_ZERO: u8 = 0xFF;
const BYTES_END: u8 = 0x00;

/// Tags of the payload.
const SMALL_LETTERS: u8 = 0;
const CAPITALS: u8 = 1;
const ORIGINAL: u8 = 2;

/// What [`KeyLayout::encode_entry`] found out about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryShape {
    /// Bytes of the declared parts, with which entries of equal values start.
    pub declared_bytes: usize,
    /// A declared part is NULL: a unique index does not compare it.
    pub has_null: bool,
}

/// How the keys of one index are encoded: the declared parts, then the primary key's parts that are not among them.
#[derive(Debug, Clone)]
pub struct KeyLayout {
    pub parts: Vec<KeyPart>,
    /// The first so many parts are the index's own; the rest completes the primary key.
    pub declared: usize,
    /// For each part of the primary key the part of this key that holds it.
    primary_parts: Vec<usize>,
    /// The primary key is the last so many bytes of every key.
    primary_tail: Option<usize>,
    /// Number of parts with an entry in the payload.
    payload_parts: usize,
}

/// The most parts of a key: an index's and the primary key's.
const MAX_KEY_PARTS: usize = 2 * MAX_INDEX_PARTS;

impl KeyLayout {
    /// The layout of the clustered tree's keys. Its entries are rows, so it has no payload.
    pub fn clustered(definition: &TableDefinition) -> KeyLayout {
        let mut parts: Vec<KeyPart> = definition
            .primary
            .parts
            .iter()
            .map(|part| KeyPart::new(definition, part))
            .collect();
        for part in &mut parts {
            part.decodable &= !matches!(part.kind, PartKind::Text(_));
        }
        let declared = parts.len();
        if parts.is_empty() {
            parts.push(KeyPart::row_id());
        }
        let primary_parts = (0..parts.len()).collect();
        KeyLayout {
            parts,
            declared,
            primary_parts,
            primary_tail: None,
            payload_parts: 0,
        }
    }

    /// The layout of a secondary index's keys.
    pub fn secondary(definition: &TableDefinition, index: &Index) -> KeyLayout {
        let mut parts: Vec<KeyPart> = index
            .parts
            .iter()
            .map(|part| KeyPart::new(definition, part))
            .collect();
        let declared = parts.len();
        let mut primary_parts = Vec::new();
        if definition.has_hidden_row_id() {
            primary_parts.push(parts.len());
            parts.push(KeyPart::row_id());
        }
        for primary in &definition.primary.parts {
            let present = index.parts.iter().position(|part| {
                part.column == primary.column && part.prefix_length == primary.prefix_length
            });
            primary_parts.push(present.unwrap_or(parts.len()));
            if present.is_none() {
                parts.push(KeyPart::new(definition, primary));
            }
        }
        let (mut payload_parts, mut payload_bytes) = (0, 0);
        for part in &mut parts {
            if !part.decodable || !matches!(part.kind, PartKind::Text(_)) {
                continue;
            }
            let ty = part.column.map(|column| &definition.columns[column].ty);
            payload_bytes += ty.and_then(ColumnType::max_bytes).unwrap_or(0) + 3;
            if payload_bytes <= MAX_PAYLOAD_BYTES {
                part.payload_ordinal = Some(payload_parts);
                payload_parts += 1;
            } else {
                part.decodable = false;
            }
        }
        let appended = primary_parts.iter().all(|part| *part >= declared);
        let tail: Option<usize> = parts[declared..].iter().map(|part| part.fixed_width).sum();
        let primary_tail = if appended { tail } else { None };
        KeyLayout {
            parts,
            declared,
            primary_parts,
            primary_tail,
            payload_parts,
        }
    }

    /// The layout of the values of one column alone, originals included; no part of any tree.
    pub(crate) fn of_column(definition: &TableDefinition, column: usize) -> KeyLayout {
        let whole = IndexPart {
            column,
            prefix_length: None,
            descending: false,
        };
        let mut part = KeyPart::new(definition, &whole);
        let is_text = matches!(part.kind, PartKind::Text(_));
        part.payload_ordinal = is_text.then_some(0);
        KeyLayout {
            parts: vec![part],
            declared: 1,
            primary_parts: Vec::new(),
            primary_tail: None,
            payload_parts: usize::from(is_text),
        }
    }

    /// The part that holds a column, if the column can be read from the entry.
    pub fn part_of(&self, column: usize) -> Option<usize> {
        self.parts
            .iter()
            .position(|part| part.column == Some(column) && part.decodable)
    }

    /// EXPLAIN's key_len for the first `parts` parts.
    pub fn mysql_key_len(&self, parts: usize) -> u32 {
        self.parts[..parts]
            .iter()
            .map(|part| part.mysql_key_len)
            .sum()
    }

    /// Appends a part.
    ///
    /// # Panics
    /// If the value is not of the column's type, or NULL where the column is NOT NULL.
    #[inline]
    pub fn encode_part(&self, part: usize, value: ValueRef<'_>, key: &mut Vec<u8>) {
        let part = &self.parts[part];
        if part.nullable {
            if value.is_null() {
                key.push(NULL);
                return;
            }
            key.push(NOT_NULL);
        }
        encode_value(part, value, key);
    }

    /// Room for most keys of this layout, so that they need not grow while they are encoded.
    pub fn likely_bytes(&self) -> usize {
        /// A number and its NULL byte.
        const NUMBER_BYTES: usize = 9;
        self.parts.len() * NUMBER_BYTES
    }

    /// Appends the key of an entry to `key` and its payload to `payload`.
    ///
    /// # Panics
    /// If a value is not of its column's type.
    pub fn encode_entry<'v>(
        &self,
        values: impl Fn(usize) -> ValueRef<'v>,
        row_id: u64,
        key: &mut Vec<u8>,
        payload: &mut Vec<u8>,
    ) -> EntryShape {
        let start = key.len();
        key.reserve(self.likely_bytes());
        let mut shape = EntryShape {
            declared_bytes: 0,
            has_null: false,
        };
        for (position, part) in self.parts.iter().enumerate() {
            let value = match part.column {
                Some(column) => values(column),
                None => ValueRef::UInt(row_id),
            };
            self.encode_part(position, value, key);
            if position < self.declared {
                shape.has_null |= value.is_null();
                shape.declared_bytes = key.len() - start;
            }
        }
        if self.payload_parts > 0 {
            self.encode_payload(values, payload);
        }
        shape
    }

    fn encode_payload<'v>(&self, values: impl Fn(usize) -> ValueRef<'v>, payload: &mut Vec<u8>) {
        let start = payload.len();
        let mut needed = false;
        for part in self
            .parts
            .iter()
            .filter(|part| part.payload_ordinal.is_some())
        {
            let (PartKind::Text(collation), Some(column)) = (part.kind, part.column) else {
                continue;
            };
            let ValueRef::Bytes(text) = values(column) else {
                payload.push(SMALL_LETTERS);
                continue;
            };
            let tag = payload_tag(collation, text);
            needed |= tag != SMALL_LETTERS;
            payload.push(tag);
            if tag == ORIGINAL {
                payload.extend_from_slice(&(text.len() as u16).to_le_bytes());
                payload.extend_from_slice(text);
            }
        }
        if !needed {
            payload.truncate(start);
        }
    }

    /// Length in bytes of the part that `bytes` starts with, NULL byte included.
    ///
    /// # Errors
    /// `Corrupt` if `bytes` ends within the part.
    #[inline]
    pub fn part_length(&self, part: usize, bytes: &[u8]) -> Result<usize> {
        let part = &self.parts[part];
        if part.nullable && bytes.first() == Some(&NULL) {
            return Ok(1);
        }
        let length = match (part.fixed_width, part.kind) {
            (Some(width), _) => Some(width).filter(|width| *width <= bytes.len()),
            (None, kind) => {
                let start = usize::from(part.nullable);
                bytes
                    .get(start..)
                    .and_then(|value| match kind {
                        PartKind::Text(collation) if collation.pads_spaces() => {
                            padded_length(value)
                        }
                        PartKind::Text(_) => value
                            .iter()
                            .position(|byte| *byte == TEXT_END)
                            .map(|end| end + 1),
                        _ => bytes_length(value),
                    })
                    .map(|length| length + start)
            }
        };
        length.ok_or_else(|| TableError::corrupt("?", "a key ends within a part"))
    }

    /// Fills `offsets` with where each part starts, and the key's length.
    pub fn part_offsets(&self, key: &[u8], offsets: &mut Vec<usize>) -> Result<()> {
        offsets.clear();
        offsets.push(0);
        let mut at = 0;
        for part in 0..self.parts.len() {
            at += self.part_length(part, &key[at..])?;
            offsets.push(at);
        }
        Ok(())
    }

    /// The encoded bytes of the first `parts` parts of a key.
    pub fn leading_parts<'k>(&self, key: &'k [u8], parts: usize) -> Result<&'k [u8]> {
        let mut at = 0;
        for part in 0..parts {
            at += self.part_length(part, &key[at..])?;
        }
        Ok(&key[..at])
    }

    /// True if the part that `bytes` starts with is NULL.
    #[inline]
    pub fn is_null(&self, part: usize, bytes: &[u8]) -> bool {
        self.parts[part].nullable && bytes.first() == Some(&NULL)
    }

    /// The value's bytes of a part of fixed width, after the NULL byte; `None`: NULL.
    #[inline]
    fn fixed_bytes<'k>(&self, part: usize, bytes: &'k [u8]) -> Option<&'k [u8]> {
        if self.is_null(part, bytes) {
            return None;
        }
        let part = &self.parts[part];
        bytes.get(usize::from(part.nullable)..part.fixed_width?)
    }

    /// An integer-like part, unsigned BIGINT and row ids by their bits; `None`: NULL.
    #[inline]
    pub fn decode_i64(&self, part: usize, bytes: &[u8]) -> Option<i64> {
        let value = self.fixed_bytes(part, bytes)?;
        let mut word = [0; 8];
        word[8 - value.len().min(8)..].copy_from_slice(&value[..value.len().min(8)]);
        let bits = u64::from_be_bytes(word);
        Some(match self.parts[part].kind {
            PartKind::Integer {
                width,
                unsigned: false,
            } => {
                let shift = 64 - 8 * u32::from(width);
                // Flip the sign bit of the narrow integer, then extend it.
                let number = (((bits << shift) ^ (1 << 63)) as i64) >> shift;
                match self.parts[part].time_zone {
                    TimeZone::UTC => number,
                    zone => zone.local(number),
                }
            }
            _ => bits as i64,
        })
    }

    /// An integer-like, DECIMAL or row id part, unsigned ones as such; `None`: NULL.
    #[inline]
    pub fn decode_i128(&self, part: usize, bytes: &[u8]) -> Option<i128> {
        match self.parts[part].kind {
            PartKind::Decimal { width, .. } => {
                let value = self.fixed_bytes(part, bytes)?;
                let mut word = [0; 16];
                word[16 - value.len()..].copy_from_slice(value);
                let shift = 128 - 8 * u32::from(width);
                Some((((u128::from_be_bytes(word) << shift) ^ (1 << 127)) as i128) >> shift)
            }
            PartKind::Integer { unsigned: true, .. } | PartKind::RowId => self
                .decode_i64(part, bytes)
                .map(|bits| i128::from(bits as u64)),
            _ => self.decode_i64(part, bytes).map(i128::from),
        }
    }

    /// A part of a wide DECIMAL; `None`: NULL.
    pub fn decode_wide(&self, part: usize, bytes: &[u8]) -> Option<Wide> {
        let value = self.fixed_bytes(part, bytes)?;
        let (first, rest) = value.split_first()?;
        let first = first ^ 0x80;
        let mut wide = [if first & 0x80 != 0 { 0xFF } else { 0 }; WIDE_BYTES];
        for (to, from) in wide.iter_mut().zip(rest.iter().rev().chain([&first])) {
            *to = *from;
        }
        Some(Wide::of_bytes(wide))
    }

    /// A FLOAT or DOUBLE part; `None`: NULL.
    #[inline]
    pub fn decode_f64(&self, part: usize, bytes: &[u8]) -> Option<f64> {
        let value = self.fixed_bytes(part, bytes)?;
        Some(match <[u8; 8]>::try_from(value) {
            Ok(bytes) => {
                let bits = u64::from_be_bytes(bytes);
                f64::from_bits(if bits >> 63 == 1 {
                    bits ^ (1 << 63)
                } else {
                    !bits
                })
            }
            Err(_) => {
                let bits = u32::from_be_bytes(value.try_into().ok()?);
                f64::from(f32::from_bits(if bits >> 31 == 1 {
                    bits ^ (1 << 31)
                } else {
                    !bits
                }))
            }
        })
    }

    /// Clears `out` and fills it with the original bytes of a decodable string part, from the entry's payload where the
    /// key does not say them. `bytes` starts with the part. False: NULL.
    ///
    /// # Errors
    /// `Corrupt` if key or payload cannot be what was written.
    pub fn decode_bytes(
        &self,
        part: usize,
        bytes: &[u8],
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        out.clear();
        if self.is_null(part, bytes) {
            return Ok(false);
        }
        let length = self.part_length(part, bytes)?;
        let part = &self.parts[part];
        let value = &bytes[usize::from(part.nullable)..length];
        let PartKind::Text(collation) = part.kind else {
            decode_escaped(&value[..value.len() - 2], out);
            return Ok(true);
        };
        let mut tag = SMALL_LETTERS;
        if let (Some(ordinal), false) = (part.payload_ordinal, payload.is_empty()) {
            let (found, original) = payload_entry(payload, ordinal)
                .ok_or_else(|| TableError::corrupt("?", "an entry's payload ends too early"))?;
            if found == ORIGINAL {
                out.extend_from_slice(original);
                return Ok(true);
            }
            tag = found;
        }
        let sort_key = match collation.pads_spaces() {
            true => value,
            false => &value[..value.len() - 1],
        };
        decode_sort_key(sort_key, collation, out);
        if collation.ignores_case() {
            match tag {
                CAPITALS => out.make_ascii_uppercase(),
                _ => out.make_ascii_lowercase(),
            }
        }
        Ok(true)
    }

    /// Any decodable part. `bytes` starts with the part.
    pub fn decode_value(
        &self,
        definition: &TableDefinition,
        part: usize,
        bytes: &[u8],
        payload: &[u8],
    ) -> Result<Value> {
        let mut text = Vec::new();
        let value = self.decode_ref(definition, part, bytes, payload, &mut text)?;
        Ok(match self.parts[part].column {
            Some(column) => value.to_value(&definition.columns[column].ty),
            None => match value {
                ValueRef::UInt(row_id) => Value::UInt(row_id),
                _ => Value::Null,
            },
        })
    }

    /// As [`Self::decode_value`]; `text` keeps the bytes of a string.
    pub fn decode_ref<'t>(
        &self,
        definition: &TableDefinition,
        part: usize,
        bytes: &[u8],
        payload: &[u8],
        text: &'t mut Vec<u8>,
    ) -> Result<ValueRef<'t>> {
        if self.is_null(part, bytes) {
            return Ok(ValueRef::Null);
        }
        let short = || TableError::corrupt(&definition.name, "a key ends within a part");
        let KeyPart { kind, column, .. } = &self.parts[part];
        Ok(match kind {
            PartKind::Integer { .. } | PartKind::RowId => {
                let integer = self.decode_i64(part, bytes).ok_or_else(short)?;
                let is_unsigned = column.is_none_or(|column| {
                    let ty = &definition.columns[column].ty;
                    ty.stored_bits().is_some() || ty.is_integer() && ty.is_unsigned()
                });
                match is_unsigned {
                    true => ValueRef::UInt(integer as u64),
                    false => ValueRef::Int(integer),
                }
            }
            PartKind::Decimal { width, .. } if usize::from(*width) > MAX_NARROW_BYTES => {
                ValueRef::WideDecimal(self.decode_wide(part, bytes).ok_or_else(short)?)
            }
            PartKind::Decimal { .. } => {
                ValueRef::Decimal(self.decode_i128(part, bytes).ok_or_else(short)?)
            }
            PartKind::Float => {
                ValueRef::Float(self.decode_f64(part, bytes).ok_or_else(short)? as f32)
            }
            PartKind::Double => ValueRef::Double(self.decode_f64(part, bytes).ok_or_else(short)?),
            PartKind::Text(_) | PartKind::Bytes => {
                self.decode_bytes(part, bytes, payload, text)?;
                ValueRef::Bytes(text)
            }
        })
    }

    /// Appends the clustered key that a secondary entry points to.
    ///
    /// # Errors
    /// `Corrupt` if the key is not one of this index.
    #[inline]
    pub fn primary_key_into(&self, key: &[u8], primary_key: &mut Vec<u8>) -> Result<()> {
        if let Some(tail) = self.primary_tail {
            let start = key.len().checked_sub(tail);
            let start = start.ok_or_else(|| TableError::corrupt("?", "a key is too short"))?;
            primary_key.extend_from_slice(&key[start..]);
            return Ok(());
        }
        let mut offsets = [0; MAX_KEY_PARTS + 1];
        for part in 0..self.parts.len() {
            offsets[part + 1] = offsets[part] + self.part_length(part, &key[offsets[part]..])?;
        }
        for part in &self.primary_parts {
            primary_key.extend_from_slice(&key[offsets[*part]..offsets[*part + 1]]);
        }
        Ok(())
    }
}

#[inline]
fn encode_value(part: &KeyPart, value: ValueRef<'_>, key: &mut Vec<u8>) {
    match (part.kind, value) {
        (PartKind::Integer { width, unsigned }, ValueRef::Int(_) | ValueRef::UInt(_)) => {
            let bits = match value {
                ValueRef::Int(v) if part.time_zone.is_utc() => v as u64,
                ValueRef::Int(v) => part.time_zone.utc(v) as u64,
                ValueRef::UInt(v) => v,
                _ => 0,
            };
            let flip = if unsigned {
                0
            } else {
                1 << (8 * u32::from(width) - 1)
            };
            key.extend_from_slice(&(bits ^ flip).to_be_bytes()[8 - usize::from(width)..]);
        }
        (PartKind::Decimal { width, .. }, ValueRef::Decimal(unscaled)) => {
            let flip = 1 << (8 * u32::from(width) - 1);
            let bits = unscaled as u128 ^ flip;
            key.extend_from_slice(&bits.to_be_bytes()[16 - usize::from(width)..]);
        }
        (PartKind::Decimal { width, .. }, ValueRef::WideDecimal(unscaled)) => {
            let (low, high) = unscaled.bytes().split_at(usize::from(width));
            let is_negative = unscaled.is_negative();
            let sign = if is_negative { 0xFF } else { 0 };
            let fits = high.iter().all(|byte| *byte == sign)
                && is_negative == (low[low.len() - 1] >= 0x80);
            // What no value of the column is as large as, or as small.
            if !fits {
                return key.extend(std::iter::repeat_n(!sign, low.len()));
            }
            let start = key.len();
            key.extend(low.iter().rev());
            key[start] ^= 0x80;
        }
        (PartKind::Float, ValueRef::Float(v)) => {
            // Adding zero makes -0.0, which equals 0.0, the same bits.
            let bits = (v + 0.0).to_bits();
            let bits = if bits >> 31 == 1 {
                !bits
            } else {
                bits ^ (1 << 31)
            };
            key.extend_from_slice(&bits.to_be_bytes());
        }
        (PartKind::Double, ValueRef::Double(v)) => {
            let bits = (v + 0.0).to_bits();
            let bits = if bits >> 63 == 1 {
                !bits
            } else {
                bits ^ (1 << 63)
            };
            key.extend_from_slice(&bits.to_be_bytes());
        }
        (PartKind::Text(collation), ValueRef::Bytes(bytes)) => {
            let text = text_of(bytes);
            match part.prefix_length {
                None => collation.sort_key_into(&text, key),
                Some(limit) => {
                    collation.limited_key_into(&text, limit as usize, key);
                }
            }
            if !collation.pads_spaces() {
                key.push(TEXT_END);
            }
        }
        (PartKind::Bytes, ValueRef::Bytes(bytes)) => {
            let limit = part
                .prefix_length
                .map_or(usize::MAX, |length| length as usize);
            encode_escaped(&bytes[..bytes.len().min(limit)], key);
            key.extend_from_slice(&[0x00, BYTES_END]);
        }
        (PartKind::RowId, ValueRef::UInt(id)) => key.extend_from_slice(&id.to_be_bytes()),
        (kind, value) => panic!("a key part of kind {kind:?} cannot hold {value:?}"),
    }
}

pub(crate) fn encode_escaped(bytes: &[u8], key: &mut Vec<u8>) {
    for byte in bytes {
        key.push(*byte);
        if *byte == 0 {
            key.push(ESCAPED_ZERO);
        }
    }
}

/// `value` without its end.
fn decode_escaped(value: &[u8], out: &mut Vec<u8>) {
    let mut bytes = value.iter();
    while let Some(byte) = bytes.next() {
        out.push(*byte);
        if *byte == 0 {
            bytes.next();
        }
    }
}

/// Length of an escaped byte string with its end.
fn bytes_length(value: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += value.get(at..)?.iter().position(|byte| *byte == 0)?;
        match value.get(at + 1)? {
            &BYTES_END => return Some(at + 2),
            _ => at += 2,
        }
    }
}

/// Length of the sort key of a PAD SPACE collation with its end.
fn padded_length(value: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match *value.get(at)? {
            text::PAD_END => return Some(at + 1),
            text::PAD_BELOW => {
                // Spaces, and then the control character, whatever it is.
                at += 1;
                at += value.get(at..)?.iter().position(|byte| *byte != b' ')? + 1;
            }
            _ => at += 1,
        }
    }
}

/// How the payload completes a text.
fn payload_tag(collation: Collation, text: &[u8]) -> u8 {
    let from_key = match collation.order() {
        Collation::Utf8mb4_0900_ai_ci | Collation::Utf8mb4_0900_as_ci => {
            unicode_primary::is_plain_ascii(text)
        }
        // Cases would be behind the letters.
        Collation::Utf8mb4_0900_as_cs => {
            unicode_primary::is_plain_ascii(text) && !text.iter().any(u8::is_ascii_uppercase)
        }
        Collation::Utf8mb4_general_ci => text.is_ascii() && text.last() != Some(&b' '),
        // Weights are not said back.
        Collation::Utf8mb4_unicode_ci
        | Collation::Utf8mb4_unicode_520_ci
        | Collation::Tailored(_)
        | Collation::OfSet(_) => text.is_empty(),
        Collation::Utf8mb4_0900_bin => true,
        _ => text.last() != Some(&b' '),
    };
    if !from_key {
        return ORIGINAL;
    }
    if !collation.ignores_case() || !text.iter().any(u8::is_ascii_uppercase) {
        return SMALL_LETTERS;
    }
    if text.iter().any(u8::is_ascii_lowercase) {
        ORIGINAL
    } else {
        CAPITALS
    }
}

/// Tag and original of a part in a payload.
fn payload_entry(payload: &[u8], ordinal: usize) -> Option<(u8, &[u8])> {
    let mut rest = payload;
    for _ in 0..ordinal {
        let (tag, after) = rest.split_first()?;
        rest = if *tag == ORIGINAL {
            let (length, after) = after.split_first_chunk::<2>()?;
            after.get(usize::from(u16::from_le_bytes(*length))..)?
        } else {
            after
        };
    }
    let (tag, after) = rest.split_first()?;
    if *tag != ORIGINAL {
        return Some((*tag, &[]));
    }
    let (length, after) = after.split_first_chunk::<2>()?;
    Some((
        ORIGINAL,
        after.get(..usize::from(u16::from_le_bytes(*length)))?,
    ))
}
