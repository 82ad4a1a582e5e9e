//! Type codes, words and lengths: what the reader and the builder must agree on.

/// No value has this code. It is kept for a later form of documents.
pub(crate) const RESERVED: u8 = 0;
pub(crate) const NULL: u8 = 1;
pub(crate) const FALSE: u8 = 2;
pub(crate) const TRUE: u8 = 3;
pub(crate) const INT16: u8 = 4;
pub(crate) const INT32: u8 = 5;
pub(crate) const INT64: u8 = 6;
pub(crate) const UINT64: u8 = 7;
pub(crate) const DOUBLE: u8 = 8;
pub(crate) const DECIMAL: u8 = 9;
pub(crate) const STRING: u8 = 10;
pub(crate) const DATE: u8 = 11;
pub(crate) const TIME: u8 = 12;
pub(crate) const DATETIME: u8 = 13;
pub(crate) const OPAQUE: u8 = 14;
pub(crate) const SMALL_ARRAY: u8 = 15;
pub(crate) const LARGE_ARRAY: u8 = 16;
pub(crate) const SMALL_OBJECT: u8 = 17;
pub(crate) const LARGE_OBJECT: u8 = 18;
pub(crate) const TIMESTAMP: u8 = 19;

/// Bytes of an offset, a size or a count in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Small,
    Large,
}

/// Bytes of a key's length.
pub(crate) const KEY_LENGTH_BYTES: usize = 2;
/// Bytes of the two depths at the end of a container.
const DEPTHS_BYTES: usize = 2;

impl Width {
    /// Bytes of the longest entry.
    pub(crate) const MAX_ENTRY_BYTES: usize = Width::Large.entry_bytes(true);

    pub(crate) const fn bytes(self) -> usize {
        match self {
            Width::Small => 2,
            Width::Large => 4,
        }
    }

    /// The largest number that a word holds.
    pub(crate) const fn limit(self) -> usize {
        match self {
            Width::Small => u16::MAX as usize,
            Width::Large => u32::MAX as usize,
        }
    }

    /// Bytes of an entry: an object's begins with the place and the length of its key.
    pub(crate) const fn entry_bytes(self, is_object: bool) -> usize {
        let value = 1 + self.bytes();
        match is_object {
            true => self.bytes() + KEY_LENGTH_BYTES + value,
            false => value,
        }
    }

    pub(crate) const fn footer_bytes(self) -> usize {
        2 * self.bytes() + DEPTHS_BYTES
    }

    /// The word at the beginning of `bytes`.
    #[inline]
    pub(crate) fn read(self, bytes: &[u8]) -> Option<usize> {
        Some(match self {
            Width::Small => usize::from(u16::from_le_bytes(*bytes.first_chunk()?)),
            Width::Large => u32::from_le_bytes(*bytes.first_chunk()?) as usize,
        })
    }

    /// Writes a word at the beginning of `bytes`, and gives its length.
    #[inline]
    pub(crate) fn put(self, number: usize, bytes: &mut [u8]) -> usize {
        debug_assert!(number <= self.limit());
        match self {
            Width::Small => bytes[..2].copy_from_slice(&(number as u16).to_le_bytes()),
            Width::Large => bytes[..4].copy_from_slice(&(number as u32).to_le_bytes()),
        }
        self.bytes()
    }

    /// Appends a word. The caller has chosen the width by the largest number.
    #[inline]
    pub(crate) fn push(self, number: usize, out: &mut Vec<u8>) {
        debug_assert!(number <= self.limit());
        out.extend_from_slice(&(number as u32).to_le_bytes()[..self.bytes()]);
    }
}

/// The width of a container's words, and whether it is an object. `None`: it is a scalar's code, or none.
#[inline]
pub(crate) fn container(code: u8) -> Option<(Width, bool)> {
    Some(match code {
        SMALL_ARRAY => (Width::Small, false),
        LARGE_ARRAY => (Width::Large, false),
        SMALL_OBJECT => (Width::Small, true),
        LARGE_OBJECT => (Width::Large, true),
        _ => return None,
    })
}

/// Whether a value stands in its entry instead of among the values.
#[inline]
pub(crate) fn is_inlined(code: u8) -> bool {
    matches!(code, NULL | FALSE | TRUE | INT16)
}

/// Bytes of a scalar's body that begins `bytes`.
pub(crate) fn scalar_bytes(code: u8, bytes: &[u8]) -> Option<usize> {
    let size = match code {
        NULL | FALSE | TRUE => 0,
        INT16 => 2,
        INT32 | DATE => 4,
        INT64 | UINT64 | DOUBLE | TIME | DATETIME | TIMESTAMP => 8,
        DECIMAL => 2 + usize::from(*bytes.get(1)?),
        STRING => {
            let (length, rest) = read_length(bytes)?;
            (bytes.len() - rest.len()).checked_add(length)?
        }
        OPAQUE => {
            let (length, rest) = read_length(bytes.get(1..)?)?;
            (bytes.len() - rest.len()).checked_add(length)?
        }
        _ => return None,
    };
    (size <= bytes.len()).then_some(size)
}

/// Bytes of the longest length: 32 bits in groups of 7.
pub(crate) const MAX_LENGTH_BYTES: usize = 5;

/// Reads a length: groups of 7 bits, the lowest first, all but the last with the high bit set. Gives the rest, too.
#[inline]
pub(crate) fn read_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut length = 0;
    for (at, byte) in bytes.iter().take(MAX_LENGTH_BYTES).enumerate() {
        length |= u64::from(byte & 0x7F) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(length).ok()?, &bytes[at + 1..]));
        }
    }
    None
}

/// Appends a length.
#[inline]
pub(crate) fn push_length(mut length: usize, out: &mut Vec<u8>) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}
