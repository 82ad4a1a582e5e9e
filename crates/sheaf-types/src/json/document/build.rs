//! Documents from values, in one go: each value is appended once, and a container ends with its table.
//!
//! Only an object whose keys come unsorted moves its values once more, into the order of its keys. So a document of n
//! bytes takes at most n bytes of copies for each level of nesting.

use crate::number::{Int256, MAX_DIGITS, WIDE_BYTES, Wide, power_of_ten};

use super::layout::{self, KEY_LENGTH_BYTES, Width};
use super::{
    Document, Json, MAX_DOCUMENT_BYTES, MAX_KEY_BYTES, MAX_NESTING, compare_keys, field_type,
};
use crate::json::JsonError;
use crate::json::room::{Turns, ask, ask_to_go_on, make_last_room, make_room};

/// Writes one document: one value, or a container between `begin_` and `end`. In an object, each value has its key
/// before it; of values with equal keys the last one stays.
#[derive(Debug)]
pub struct Builder {
    bytes: Vec<u8>,
    /// Values of the open containers.
    slots: Vec<Slot>,
    /// Keys of the open objects.
    keys: Vec<u8>,
    open: Vec<Open>,
    /// For values of an object that move.
    scratch: Vec<u8>,
    turns: Turns,
}

/// A container that is being written.
#[derive(Debug)]
struct Open {
    is_object: bool,
    /// Where its body begins in `bytes`.
    start: usize,
    first_slot: usize,
    first_key_byte: usize,
}

/// A value of an open container.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    code: u8,
    /// An INTEGER of 2 bytes.
    inlined: i16,
    nesting: u8,
    depth: u8,
    /// Where the key is in `keys`.
    key_start: u32,
    key_length: u16,
    /// Where the value is in `bytes`.
    start: u32,
    end: u32,
}

/// The type code stands before the root's body.
const ROOT_START: usize = 1;

/// Members that are sorted at a time, before the statement may be stopped.
const SORTED_MEMBERS: usize = 64 << 10;

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    pub fn new() -> Builder {
        Builder {
            bytes: vec![layout::RESERVED],
            slots: Vec::new(),
            keys: Vec::new(),
            open: Vec::new(),
            scratch: Vec::new(),
            turns: Turns::default(),
        }
    }

    /// With room for so many bytes of the document.
    ///
    /// # Errors
    /// `Stopped`.
    pub fn with_capacity(bytes: usize) -> Result<Builder, JsonError> {
        ask(bytes)?;
        let mut room = Vec::with_capacity(ROOT_START + bytes);
        room.push(layout::RESERVED);
        Ok(Builder {
            bytes: room,
            ..Builder::new()
        })
    }

    /// The document.
    ///
    /// # Errors
    /// `TooBig`.
    ///
    /// # Panics
    /// If there is no value, more than one, or an open container.
    pub fn finish(mut self) -> Result<Document, JsonError> {
        assert!(self.open.is_empty(), "a container is open");
        let [root] = self.slots[..] else {
            panic!("a document of {} values", self.slots.len());
        };
        if root.code == layout::INT16 {
            self.bytes.extend_from_slice(&root.inlined.to_le_bytes());
        }
        self.bytes[0] = root.code;
        self.check_size()?;
        Ok(Document::of_builder(self.bytes))
    }

    fn check_size(&self) -> Result<(), JsonError> {
        match self.bytes.len() <= MAX_DOCUMENT_BYTES {
            true => Ok(()),
            false => Err(JsonError::TooBig),
        }
    }

    /// # Errors
    /// `TooDeep`.
    pub fn begin_array(&mut self) -> Result<(), JsonError> {
        self.begin(false)
    }

    /// # Errors
    /// `TooDeep`.
    pub fn begin_object(&mut self) -> Result<(), JsonError> {
        self.begin(true)
    }

    fn begin(&mut self, is_object: bool) -> Result<(), JsonError> {
        if self.open.len() >= MAX_NESTING {
            return Err(JsonError::TooDeep);
        }
        self.open.push(Open {
            is_object,
            start: self.bytes.len(),
            first_slot: self.slots.len(),
            first_key_byte: self.keys.len(),
        });
        Ok(())
    }

    /// The key of the value that comes next.
    ///
    /// # Errors
    /// `KeyTooLong`.
    pub fn key(&mut self, key: &str) -> Result<(), JsonError> {
        debug_assert!(self.open.last().is_some_and(|open| open.is_object));
        if key.len() > MAX_KEY_BYTES {
            return Err(JsonError::KeyTooLong);
        }
        if self.keys.len() + key.len() > MAX_DOCUMENT_BYTES {
            return Err(JsonError::TooBig);
        }
        make_room(&mut self.slots, 1)?;
        make_room(&mut self.keys, key.len())?;
        self.slots.push(Slot {
            key_start: self.keys.len() as u32,
            key_length: key.len() as u16,
            ..Slot::default()
        });
        self.keys.extend_from_slice(key.as_bytes());
        Ok(())
    }

    /// Notes the value that begins at `start`.
    fn push(&mut self, value: Slot, start: usize) -> Result<(), JsonError> {
        self.check_size()?;
        self.turns.next()?;
        let value = Slot {
            start: start as u32,
            end: self.bytes.len() as u32,
            ..value
        };
        // A key has made room for its value.
        match self.slots.last_mut() {
            Some(slot) if self.open.last().is_some_and(|open| open.is_object) => {
                debug_assert_eq!(slot.code, layout::RESERVED, "a value without a key");
                *slot = Slot {
                    key_start: slot.key_start,
                    key_length: slot.key_length,
                    ..value
                };
            }
            _ => {
                make_room(&mut self.slots, 1)?;
                self.slots.push(value);
            }
        }
        Ok(())
    }

    fn scalar(&mut self, code: u8, body: &[u8]) -> Result<(), JsonError> {
        let start = self.bytes.len();
        make_room(&mut self.bytes, body.len())?;
        self.bytes.extend_from_slice(body);
        self.push(
            Slot {
                code,
                depth: 1,
                ..Slot::default()
            },
            start,
        )
    }

    /// # Errors
    /// `TooBig`.
    pub fn null(&mut self) -> Result<(), JsonError> {
        self.scalar(layout::NULL, &[])
    }

    /// # Errors
    /// `TooBig`.
    pub fn bool(&mut self, value: bool) -> Result<(), JsonError> {
        let code = if value { layout::TRUE } else { layout::FALSE };
        self.scalar(code, &[])
    }

    /// # Errors
    /// `TooBig`.
    pub fn int(&mut self, value: i64) -> Result<(), JsonError> {
        if let Ok(inlined) = i16::try_from(value) {
            let (code, depth, start) = (layout::INT16, 1, self.bytes.len());
            return self.push(
                Slot {
                    code,
                    inlined,
                    depth,
                    ..Slot::default()
                },
                start,
            );
        }
        match i32::try_from(value) {
            Ok(short) => self.scalar(layout::INT32, &short.to_le_bytes()),
            Err(_) => self.scalar(layout::INT64, &value.to_le_bytes()),
        }
    }

    /// # Errors
    /// `TooBig`.
    pub fn uint(&mut self, value: u64) -> Result<(), JsonError> {
        self.scalar(layout::UINT64, &value.to_le_bytes())
    }

    /// JSON has no infinities and no NaN. They become null.
    ///
    /// # Errors
    /// `TooBig`.
    pub fn double(&mut self, value: f64) -> Result<(), JsonError> {
        match value.is_finite() {
            true => self.scalar(layout::DOUBLE, &value.to_le_bytes()),
            false => self.null(),
        }
    }

    /// `unscaled` / 10^`scale`.
    ///
    /// # Errors
    /// `TooBig`.
    ///
    /// # Panics
    /// If it has more than [`MAX_DIGITS`] decimals.
    pub fn decimal(&mut self, unscaled: i128, scale: u8) -> Result<(), JsonError> {
        assert!(scale <= MAX_DIGITS, "a DECIMAL of {scale} decimals");
        let bytes = unscaled.to_le_bytes();
        // The fewest bytes of which the last has the number's sign.
        let is_needed = |&size: &usize| {
            let shift = 128 - 8 * size as u32;
            (unscaled << shift) >> shift == unscaled
        };
        let size = (1..bytes.len()).find(is_needed).unwrap_or(bytes.len());
        let mut body = [0; 2 + size_of::<i128>()];
        body[..2].copy_from_slice(&[scale, size as u8]);
        body[2..2 + size].copy_from_slice(&bytes[..size]);
        self.scalar(layout::DECIMAL, &body[..2 + size])
    }

    /// The same of a number that may have more digits. One of up to 38 digits is a [`decimal`](Self::decimal).
    ///
    /// Others are opaque bytes of the type DECIMAL: the number of decimals, and the number as rows have it. A program
    /// that does not know them shows them as such bytes.
    ///
    /// # Errors
    /// `TooBig`.
    pub fn wide_decimal(&mut self, unscaled: Int256, scale: u8) -> Result<(), JsonError> {
        let most = power_of_ten(MAX_DIGITS).unsigned_abs();
        let narrow = unscaled.to_i128().filter(|_| scale <= MAX_DIGITS);
        if let Some(narrow) = narrow.filter(|narrow| narrow.unsigned_abs() < most) {
            return self.decimal(narrow, scale);
        }
        let mut body = [scale; 1 + WIDE_BYTES];
        // Results have no more digits.
        let wide = unscaled.to_wide().unwrap_or(Wide::BEYOND);
        body[1..].copy_from_slice(wide.bytes());
        self.opaque(field_type::DECIMAL, &body)
    }

    /// # Errors
    /// `TooBig`.
    pub fn string(&mut self, text: &str) -> Result<(), JsonError> {
        let start = self.bytes.len();
        make_room(&mut self.bytes, layout::MAX_LENGTH_BYTES + text.len())?;
        layout::push_length(text.len(), &mut self.bytes);
        self.bytes.extend_from_slice(text.as_bytes());
        let (code, depth) = (layout::STRING, 1);
        self.push(
            Slot {
                code,
                depth,
                ..Slot::default()
            },
            start,
        )
    }

    /// Days since 1970-01-01.
    ///
    /// # Errors
    /// `TooBig`.
    pub fn date(&mut self, days: i32) -> Result<(), JsonError> {
        self.scalar(layout::DATE, &days.to_le_bytes())
    }

    /// Signed microseconds.
    ///
    /// # Errors
    /// `TooBig`.
    pub fn time(&mut self, micros: i64) -> Result<(), JsonError> {
        self.scalar(layout::TIME, &micros.to_le_bytes())
    }

    /// Microseconds since 1970-01-01 00:00:00.
    ///
    /// # Errors
    /// `TooBig`.
    pub fn datetime(&mut self, micros: i64) -> Result<(), JsonError> {
        self.scalar(layout::DATETIME, &micros.to_le_bytes())
    }

    /// A TIMESTAMP: microseconds since 1970-01-01 00:00:00 on the wall clock of the session.
    ///
    /// # Errors
    /// `TooBig`.
    pub fn timestamp(&mut self, micros: i64) -> Result<(), JsonError> {
        self.scalar(layout::TIMESTAMP, &micros.to_le_bytes())
    }

    /// Bytes of an SQL type that JSON lacks, by the type's number in the protocol.
    ///
    /// # Errors
    /// `TooBig`.
    pub fn opaque(&mut self, field_type: u8, bytes: &[u8]) -> Result<(), JsonError> {
        let start = self.bytes.len();
        make_room(&mut self.bytes, 1 + layout::MAX_LENGTH_BYTES + bytes.len())?;
        self.bytes.push(field_type);
        layout::push_length(bytes.len(), &mut self.bytes);
        self.bytes.extend_from_slice(bytes);
        let (code, depth) = (layout::OPAQUE, 1);
        self.push(
            Slot {
                code,
                depth,
                ..Slot::default()
            },
            start,
        )
    }

    /// A value of a document, as it is.
    ///
    /// # Errors
    /// `TooDeep` and `TooBig`.
    pub fn json(&mut self, value: Json<'_>) -> Result<(), JsonError> {
        let code = value.code();
        if layout::container(code).is_none() {
            return match value.view() {
                super::View::Null => self.null(),
                super::View::Int(number) => self.int(number),
                _ if layout::is_inlined(code) => self.scalar(code, &[]),
                _ => self.scalar(code, value.body()),
            };
        }
        let (nesting, depth) = (value.nesting(), value.depth());
        if self.open.len() + nesting > MAX_NESTING {
            return Err(JsonError::TooDeep);
        }
        let start = self.bytes.len();
        make_room(&mut self.bytes, value.body().len())?;
        self.bytes.extend_from_slice(value.body());
        let (nesting, depth) = (nesting as u8, depth as u8);
        self.push(
            Slot {
                code,
                nesting,
                depth,
                ..Slot::default()
            },
            start,
        )
    }

    /// Ends the container that was begun last.
    ///
    /// # Errors
    /// `TooBig`.
    ///
    /// # Panics
    /// If none is open.
    pub fn end(&mut self) -> Result<(), JsonError> {
        let open = self.open.pop().expect("a container is open");
        if open.is_object {
            self.sort_members(&open)?;
        }
        let members = &self.slots[open.first_slot..];
        let nesting = members.iter().map(|slot| slot.nesting).max().unwrap_or(0) + 1;
        // Damaged bytes of a member may say any depth.
        let depth = members
            .iter()
            .map(|slot| slot.depth)
            .max()
            .unwrap_or(0)
            .saturating_add(1);
        let values = self.bytes.len() - open.start;
        let keys: usize = match open.is_object {
            true => members
                .iter()
                .map(|slot| usize::from(slot.key_length))
                .sum(),
            false => 0,
        };
        let size_as = |width: Width| {
            let table = members.len() * width.entry_bytes(open.is_object) + width.footer_bytes();
            values + keys + table
        };
        let is_small = size_as(Width::Small) <= Width::Small.limit();
        let width = if is_small { Width::Small } else { Width::Large };
        let size = size_as(width);
        if open.start + size > MAX_DOCUMENT_BYTES {
            return Err(JsonError::TooBig);
        }
        match self.open.is_empty() {
            true => make_last_room(&mut self.bytes, size - values)?,
            false => make_room(&mut self.bytes, size - values)?,
        }
        if open.is_object {
            for slot in members {
                let start = slot.key_start as usize;
                let key = &self.keys[start..start + usize::from(slot.key_length)];
                self.bytes.extend_from_slice(key);
            }
        }
        let mut key_offset = values;
        for slot in members {
            self.turns.next()?;
            // An entry is put together on the stack: one append for all of its parts.
            let mut entry = [0; Width::MAX_ENTRY_BYTES];
            let mut at = 0;
            if open.is_object {
                at += width.put(key_offset, &mut entry);
                entry[at..at + KEY_LENGTH_BYTES].copy_from_slice(&slot.key_length.to_le_bytes());
                at += KEY_LENGTH_BYTES;
                key_offset += usize::from(slot.key_length);
            }
            entry[at] = slot.code;
            at += 1;
            let word = match layout::container(slot.code) {
                Some(_) => slot.end as usize - open.start,
                None if slot.code == layout::INT16 => usize::from(slot.inlined as u16),
                None if layout::is_inlined(slot.code) => 0,
                None => slot.start as usize - open.start,
            };
            at += width.put(word, &mut entry[at..]);
            self.bytes.extend_from_slice(&entry[..at]);
        }
        width.push(size, &mut self.bytes);
        width.push(members.len(), &mut self.bytes);
        self.bytes.extend_from_slice(&[nesting, depth]);
        debug_assert_eq!(self.bytes.len(), open.start + size);

        self.slots.truncate(open.first_slot);
        self.keys.truncate(open.first_key_byte);
        let code = match (open.is_object, width) {
            (false, Width::Small) => layout::SMALL_ARRAY,
            (false, Width::Large) => layout::LARGE_ARRAY,
            (true, Width::Small) => layout::SMALL_OBJECT,
            (true, Width::Large) => layout::LARGE_OBJECT,
        };
        self.push(
            Slot {
                code,
                nesting,
                depth,
                ..Slot::default()
            },
            open.start,
        )
    }

    /// Sorts the members of an object by key, and keeps the last of equal keys. Their values move, too.
    ///
    /// # Errors
    /// `Stopped`.
    fn sort_members(&mut self, open: &Open) -> Result<(), JsonError> {
        let keys = &self.keys;
        let key = |slot: &Slot| {
            let start = slot.key_start as usize;
            &keys[start..start + usize::from(slot.key_length)]
        };
        let members = &mut self.slots[open.first_slot..];
        if members.is_sorted_by(|a, b| compare_keys(key(a), key(b)).is_lt()) {
            return Ok(());
        }
        // Stable, so that the last of equal keys stands last. The sort of the whole finds runs that are sorted, and
        // merges them.
        if members.len() > SORTED_MEMBERS {
            for run in members.chunks_mut(SORTED_MEMBERS) {
                ask_to_go_on()?;
                run.sort_by(|a, b| compare_keys(key(a), key(b)));
            }
            // The sort takes half of the members beside them.
            ask(members.len() / 2 * size_of::<Slot>())?;
        }
        members.sort_by(|a, b| compare_keys(key(a), key(b)));
        let mut kept = 0;
        for position in 0..members.len() {
            let next = members.get(position + 1);
            if next.is_none_or(|next| key(&members[position]) != key(next)) {
                members[kept] = members[position];
                kept += 1;
            }
        }
        self.scratch.clear();
        make_last_room(&mut self.scratch, self.bytes.len() - open.start)?;
        for slot in &mut members[..kept] {
            let value = slot.start as usize..slot.end as usize;
            slot.start = (open.start + self.scratch.len()) as u32;
            self.scratch.extend_from_slice(&self.bytes[value]);
            slot.end = (open.start + self.scratch.len()) as u32;
        }
        self.slots.truncate(open.first_slot + kept);
        self.bytes.truncate(open.start);
        self.bytes.extend_from_slice(&self.scratch);
        Ok(())
    }
}
