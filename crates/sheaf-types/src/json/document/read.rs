//! A value in its bytes. Nothing is copied, and nothing is read before it is asked for.
//!
//! Bytes from a page may be damaged, so nothing here trusts them. [`Json::new`] refuses a root that does not hold; a
//! member that does not hold reads as null. [`Json::check`] looks at all of a document.

use crate::number::{MAX_DIGITS, MAX_WIDE_DIGITS, WIDE_BYTES, Wide};
use crate::temporal::{MAX_DATE, MAX_TIME, MIN_DATE, ZERO_DATE, ZERO_DATETIME, datetime_in_range};

use super::layout::{self, KEY_LENGTH_BYTES, Width};
use super::{MAX_NESTING, compare_keys, field_type};
use crate::json::JsonError;

/// A value inside of a document.
#[derive(Debug, Clone, Copy)]
pub struct Json<'a> {
    code: u8,
    body: &'a [u8],
}

/// A value by its type.
#[derive(Debug, Clone, Copy)]
pub enum View<'a> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    /// `unscaled` / 10^`scale`.
    Decimal {
        unscaled: i128,
        scale: u8,
    },
    /// The same of more digits than 128 bits have.
    WideDecimal {
        unscaled: Wide,
        scale: u8,
    },
    String(&'a str),
    /// Days since 1970-01-01.
    Date(i32),
    /// Signed microseconds.
    Time(i64),
    /// Microseconds since 1970-01-01 00:00:00.
    DateTime(i64),
    /// The same, of a TIMESTAMP: on the wall clock of the session that wrote it.
    Timestamp(i64),
    /// Bytes of an SQL type that JSON lacks. `field_type` is its number in the protocol.
    Opaque {
        field_type: u8,
        bytes: &'a [u8],
    },
    Array(Array<'a>),
    Object(Object<'a>),
}

impl<'a> Json<'a> {
    /// The null literal, which a damaged member reads as, too.
    pub const NULL: Json<'static> = Json {
        code: layout::NULL,
        body: &[],
    };

    /// The value of a document. Only its root is looked at.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn new(bytes: &'a [u8]) -> Result<Json<'a>, JsonError> {
        let (&code, body) = bytes.split_first().ok_or(JsonError::Damaged)?;
        let json = Json { code, body };
        let holds = match layout::container(code) {
            Some(_) => Table::read(code, body).is_some_and(|table| table.start == 0),
            None => layout::scalar_bytes(code, body) == Some(body.len()),
        };
        if holds {
            Ok(json)
        } else {
            Err(JsonError::Damaged)
        }
    }

    /// The value of bytes that a builder has just written.
    pub(crate) fn of_built(bytes: &'a [u8]) -> Json<'a> {
        Json::new(bytes).unwrap_or(Json::NULL)
    }

    /// Whether all of the document holds: offsets, order and number of members, depths, UTF-8 and ranges.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn check(&self) -> Result<(), JsonError> {
        match self.checked_depths(MAX_NESTING) {
            Some(_) => Ok(()),
            None => Err(JsonError::Damaged),
        }
    }

    /// Nesting and depth, if the value holds and has at most `room` containers in each other.
    fn checked_depths(&self, room: usize) -> Option<(u8, u8)> {
        let Some((_, is_object)) = layout::container(self.code) else {
            let is_null = matches!(self.view(), View::Null);
            return (is_null == (self.code == layout::NULL)).then_some((0, 1));
        };
        let room = room.checked_sub(1)?;
        let table = Table::read(self.code, self.body)?;
        let (mut nesting, mut depth) = (0, 0);
        let mut floor = 0;
        let mut last_key: Option<&[u8]> = None;
        for position in 0..table.count {
            if is_object {
                let key = table.key(position)?;
                std::str::from_utf8(key).ok()?;
                if last_key.is_some_and(|last| compare_keys(last, key).is_ge()) {
                    return None;
                }
                last_key = Some(key);
            }
            let (member, range) = table.value(position)?;
            if let Some((start, end)) = range {
                if start < floor {
                    return None;
                }
                floor = end;
            }
            let (member_nesting, member_depth) = member.checked_depths(room)?;
            nesting = nesting.max(member_nesting);
            depth = depth.max(member_depth);
        }
        let depths = (nesting + 1, depth + 1);
        (depths == table.depths).then_some(depths)
    }

    /// The value by its type.
    pub fn view(&self) -> View<'a> {
        self.try_view().unwrap_or(View::Null)
    }

    fn try_view(&self) -> Option<View<'a>> {
        let body = self.body;
        Some(match self.code {
            layout::NULL => View::Null,
            layout::FALSE => View::Bool(false),
            layout::TRUE => View::Bool(true),
            layout::INT16 => View::Int(i16::from_le_bytes(*body.first_chunk()?).into()),
            layout::INT32 => View::Int(i32::from_le_bytes(*body.first_chunk()?).into()),
            layout::INT64 => View::Int(i64::from_le_bytes(*body.first_chunk()?)),
            layout::UINT64 => View::UInt(u64::from_le_bytes(*body.first_chunk()?)),
            layout::DOUBLE => {
                let double = f64::from_le_bytes(*body.first_chunk()?);
                View::Double(Some(double).filter(|double| double.is_finite())?)
            }
            layout::DECIMAL => decimal(body)?,
            layout::STRING => View::String(std::str::from_utf8(self.string_bytes()?).ok()?),
            layout::DATE => {
                let days = i32::from_le_bytes(*body.first_chunk()?);
                let is_date = days == ZERO_DATE || (MIN_DATE..=MAX_DATE).contains(&days);
                View::Date(Some(days).filter(|_| is_date)?)
            }
            layout::TIME => {
                let micros = i64::from_le_bytes(*body.first_chunk()?);
                View::Time(Some(micros).filter(|micros| (-MAX_TIME..=MAX_TIME).contains(micros))?)
            }
            layout::DATETIME => View::DateTime(datetime(body)?),
            layout::TIMESTAMP => View::Timestamp(datetime(body)?),
            layout::OPAQUE => {
                let (&field_type, rest) = body.split_first()?;
                let (length, rest) = layout::read_length(rest)?;
                let bytes = rest.get(..length)?;
                match field_type {
                    field_type::DECIMAL => wide_decimal(bytes)?,
                    _ => View::Opaque { field_type, bytes },
                }
            }
            code => {
                let table = Table::read(code, body)?;
                match layout::container(code)? {
                    (_, true) => View::Object(Object { table }),
                    (_, false) => View::Array(Array { table }),
                }
            }
        })
    }

    /// The bytes of a STRING. Not checked to be UTF-8.
    pub(crate) fn string_bytes(&self) -> Option<&'a [u8]> {
        if self.code != layout::STRING {
            return None;
        }
        let (length, rest) = layout::read_length(self.body)?;
        rest.get(..length)
    }

    pub fn as_array(&self) -> Option<Array<'a>> {
        match layout::container(self.code) {
            Some((_, false)) => Table::read(self.code, self.body).map(|table| Array { table }),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<Object<'a>> {
        match layout::container(self.code) {
            Some((_, true)) => Table::read(self.code, self.body).map(|table| Object { table }),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.view(), View::Null)
    }

    /// Containers in each other, this one included; 0 of a scalar.
    pub fn nesting(&self) -> usize {
        Table::read(self.code, self.body).map_or(0, |table| table.depths.0.into())
    }

    /// JSON_DEPTH: 1 of a scalar and of an empty container.
    pub fn depth(&self) -> usize {
        Table::read(self.code, self.body).map_or(1, |table| table.depths.1.into())
    }

    /// The value as a document of its own.
    pub fn to_document(&self) -> super::Document {
        let is_literal = matches!(self.code, layout::NULL | layout::FALSE | layout::TRUE);
        let body = if is_literal { &[] } else { self.body };
        let mut bytes = Vec::with_capacity(1 + body.len());
        bytes.push(self.code);
        bytes.extend_from_slice(body);
        super::Document::of_builder(bytes)
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    pub(crate) fn body(&self) -> &'a [u8] {
        self.body
    }

    /// What tells this value from all others of its document.
    pub(crate) fn identity(&self) -> (*const u8, usize) {
        (self.body.as_ptr(), self.body.len())
    }

    /// Whether both have the same type and bytes. If not, they may be equal nevertheless.
    pub(crate) fn is_same_bytes(&self, other: &Json<'_>) -> bool {
        self.code == other.code && self.body == other.body
    }
}

fn datetime(body: &[u8]) -> Option<i64> {
    let micros = i64::from_le_bytes(*body.first_chunk()?);
    let is_datetime = micros == ZERO_DATETIME || datetime_in_range(micros);
    is_datetime.then_some(micros)
}

fn decimal<'a>(body: &[u8]) -> Option<View<'a>> {
    let [scale, size, bytes @ ..] = body else {
        return None;
    };
    let bytes = bytes.get(..usize::from(*size))?;
    let is_negative = *bytes.last()? & 0x80 != 0;
    let mut number = [if is_negative { 0xFF } else { 0 }; size_of::<i128>()];
    number.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let unscaled = i128::from_le_bytes(number);
    let scale = Some(*scale).filter(|scale| *scale <= MAX_DIGITS)?;
    Some(View::Decimal { unscaled, scale })
}

fn wide_decimal<'a>(bytes: &[u8]) -> Option<View<'a>> {
    let (&scale, number) = bytes.split_first()?;
    let number = <[u8; WIDE_BYTES]>::try_from(number).ok()?;
    let scale = Some(scale).filter(|scale| *scale <= MAX_WIDE_DIGITS)?;
    Some(View::WideDecimal {
        unscaled: Wide::of_bytes(number),
        scale,
    })
}

/// The entries of a container.
#[derive(Debug, Clone, Copy)]
struct Table<'a> {
    body: &'a [u8],
    width: Width,
    is_object: bool,
    /// Where the container begins in the bytes that it was read from.
    start: usize,
    /// Where the entries begin.
    entries: usize,
    count: usize,
    /// Nesting and depth.
    depths: (u8, u8),
}

impl<'a> Table<'a> {
    /// Reads the container that ends with `bytes`.
    fn read(code: u8, bytes: &'a [u8]) -> Option<Table<'a>> {
        let (width, is_object) = layout::container(code)?;
        let footer = bytes.len().checked_sub(width.footer_bytes())?;
        let word = width.bytes();
        let size = width.read(&bytes[footer..])?;
        let count = width.read(&bytes[footer + word..])?;
        let depths = (bytes[footer + 2 * word], bytes[footer + 2 * word + 1]);
        let start = bytes.len().checked_sub(size)?;
        let entries_bytes = count.checked_mul(width.entry_bytes(is_object))?;
        let entries = footer.checked_sub(entries_bytes)?.checked_sub(start)?;
        Some(Table {
            body: &bytes[start..],
            width,
            is_object,
            start,
            entries,
            count,
            depths,
        })
    }

    fn entry(&self, position: usize) -> Option<&'a [u8]> {
        if position >= self.count {
            return None;
        }
        let size = self.width.entry_bytes(self.is_object);
        let start = self.entries + position * size;
        self.body.get(start..start + size)
    }

    fn key(&self, position: usize) -> Option<&'a [u8]> {
        let entry = self.entry(position)?;
        let start = self.width.read(entry)?;
        let length = u16::from_le_bytes(*entry.get(self.width.bytes()..)?.first_chunk()?);
        let end = start.checked_add(length.into())?;
        self.body.get(..self.entries)?.get(start..end)
    }

    /// A value, and where it stands among the values if it does.
    fn value(&self, position: usize) -> Option<(Json<'a>, Option<(usize, usize)>)> {
        let mut entry = self.entry(position)?;
        if self.is_object {
            entry = &entry[self.width.bytes() + KEY_LENGTH_BYTES..];
        }
        let (&code, word) = entry.split_first()?;
        if layout::is_inlined(code) {
            let body = if code == layout::INT16 {
                &word[..2]
            } else {
                word
            };
            return Some((Json { code, body }, None));
        }
        let values = self.body.get(..self.entries)?;
        let offset = self.width.read(word)?;
        let (start, end) = match layout::container(code) {
            Some(_) => (Table::read(code, values.get(..offset)?)?.start, offset),
            None => {
                let size = layout::scalar_bytes(code, values.get(offset..)?)?;
                (offset, offset + size)
            }
        };
        let body = &values[start..end];
        Some((Json { code, body }, Some((start, end))))
    }

    /// The value at this position; null if it does not hold.
    fn member(&self, position: usize) -> Json<'a> {
        self.value(position).map_or(Json::NULL, |(json, _)| json)
    }
}

/// An array in its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Array<'a> {
    table: Table<'a>,
}

impl<'a> Array<'a> {
    pub fn len(&self) -> usize {
        self.table.count
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at this position, from 0.
    pub fn get(&self, position: usize) -> Option<Json<'a>> {
        (position < self.len()).then(|| self.table.member(position))
    }

    pub fn iter(&self) -> Elements<'a> {
        Elements {
            table: self.table,
            position: 0,
            floor: 0,
        }
    }
}

impl<'a> IntoIterator for Array<'a> {
    type Item = Json<'a>;
    type IntoIter = Elements<'a>;

    fn into_iter(self) -> Elements<'a> {
        self.iter()
    }
}

/// An object in its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    table: Table<'a>,
}

impl<'a> Object<'a> {
    pub fn len(&self) -> usize {
        self.table.count
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Json<'a>> {
        self.position(key.as_bytes())
            .map(|position| self.table.member(position))
    }

    /// Binary search for a key.
    fn position(&self, key: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match compare_keys(self.table.key(middle)?, key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Keys and values, by the order of keys.
    pub fn iter(&self) -> Members<'a> {
        Members {
            values: Elements {
                table: self.table,
                position: 0,
                floor: 0,
            },
        }
    }
}

impl<'a> IntoIterator for Object<'a> {
    type Item = (&'a str, Json<'a>);
    type IntoIter = Members<'a>;

    fn into_iter(self) -> Members<'a> {
        self.iter()
    }
}

/// The values of a container. A value that does not stand behind the one before it is damaged, so null.
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    table: Table<'a>,
    position: usize,
    /// Where the value before ends.
    floor: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Json<'a>> {
        if self.position >= self.table.count {
            return None;
        }
        let value = self.table.value(self.position);
        self.position += 1;
        Some(match value {
            Some((json, None)) => json,
            Some((json, Some((start, end)))) if start >= self.floor => {
                self.floor = end;
                json
            }
            _ => Json::NULL,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let rest = self.table.count - self.position;
        (rest, Some(rest))
    }
}

impl ExactSizeIterator for Elements<'_> {}

/// Keys and values of an object.
#[derive(Debug, Clone)]
pub struct Members<'a> {
    values: Elements<'a>,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Json<'a>);

    fn next(&mut self) -> Option<(&'a str, Json<'a>)> {
        let position = self.values.position;
        let value = self.values.next()?;
        let key = self.values.table.key(position).unwrap_or_default();
        Some((std::str::from_utf8(key).unwrap_or_default(), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.values.size_hint()
    }
}

impl ExactSizeIterator for Members<'_> {}
