//! The binary form of a JSON value, in which a member is reached without a look at the others.
//!
//! A document is one byte for the type of its root, and the root's body:
//!
//! | code | type | body |
//! |---|---|---|
//! | 0 | reserved | |
//! | 1, 2, 3 | null, false, true | nothing |
//! | 4, 5, 6 | INTEGER | 2, 4 or 8 bytes: the fewest that hold the number |
//! | 7 | UNSIGNED INTEGER | 8 bytes |
//! | 8 | DOUBLE | 8 bytes, IEEE 754 |
//! | 9 | DECIMAL | number of decimals, number n of bytes, n bytes: the unscaled number, two's complement |
//! | 10 | STRING | length, UTF-8 |
//! | 11 | DATE | 4 bytes: days since 1970-01-01 |
//! | 12 | TIME | 8 bytes: signed microseconds |
//! | 13 | DATETIME | 8 bytes: microseconds since 1970-01-01 00:00:00 |
//! | 14 | bytes of an SQL type that JSON lacks | the number of the type in the protocol, length, bytes |
//! | 15, 16 | ARRAY, small and large | values, entries, footer |
//! | 17, 18 | OBJECT, small and large | values, keys, entries, footer |
//! | 19 | TIMESTAMP, which differs from a DATETIME by its name only | 8 bytes: as a DATETIME's |
//!
//! Bytes of the type 246 are a DECIMAL of more than 38 digits: the number of decimals, and 28 bytes.
//!
//! Numbers are little-endian. A length is written in groups of 7 bits, the lowest first; all but the last group have
//! the high bit set.
//!
//! ```text
//!   object   | values ... | keys ... | entry | entry | ... | size | count | nesting | depth |
//!            0            ^                ^                                                 size
//!            |            key: offset, length (2 bytes)   value: code (1 byte), word
//!   entry    | offset of the key | length of the key | code | word |          an array's: | code | word |
//! ```
//!
//! Offsets, sizes, counts and words have 2 bytes in a small container, 4 in a large one: one that is longer than 65535
//! bytes. Offsets count from the container's first byte. So a container may be copied as it is, to wherever it is
//! needed.
//!
//! The word of an entry is the value itself for a literal and for an INTEGER of 2 bytes. For another scalar it is the
//! offset of its first byte. For a container it is the offset *behind* its last byte, because a container is read from
//! its footer. The footer stands last so that documents are written in one go: a container's entries and its width are
//! known when its last member has been written.
//!
//! Keys are sorted by length, then by bytes, and values stand in the order of their entries. So equal documents of
//! equal types are equal bytes. A reader that visits all members checks that they follow one another: damaged bytes
//! cannot make it visit more than there is.
//!
//! The footer holds two numbers for the whole container: `nesting` is the number of containers in each other, itself
//! included, and `depth` is that of JSON_DEPTH, where a scalar is one deep.
//!
//! | file | what it holds |
//! |---|---|
//! | `layout` | codes, words and lengths |
//! | [`field_type`] | types whose bytes a document holds as they are |
//! | `read` | a document and its members in their bytes: [`Json`] |
//! | `build` | documents from values: [`Builder`] |
//! | `tree` | documents with changes: [`Tree`] |

mod build;
pub mod field_type;
mod layout;
mod read;
mod tree;

pub use build::Builder;
pub use read::{Array, Elements, Json, Members, Object, View};
pub use tree::Tree;
pub(crate) use tree::find_key;

use std::cmp::Ordering;

/// Containers in each other, at most. MySQL has the same limit.
pub const MAX_NESTING: usize = 100;
/// Bytes of a document, at most: the largest packet of the protocol.
pub const MAX_DOCUMENT_BYTES: usize = 1 << 30;
/// Bytes of a key, at most.
pub const MAX_KEY_BYTES: usize = u16::MAX as usize;

/// A document that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    bytes: Vec<u8>,
}

impl Document {
    /// What [`Builder::finish`] has written.
    fn of_builder(bytes: Vec<u8>) -> Document {
        Document { bytes }
    }

    /// The null literal.
    pub fn null() -> Document {
        Document::of_builder(vec![layout::NULL])
    }

    /// A document of one string.
    ///
    /// # Errors
    /// `TooBig`.
    pub fn of_string(text: &str) -> Result<Document, crate::json::JsonError> {
        let mut builder = Builder::new();
        builder.string(text)?;
        builder.finish()
    }

    /// Its value. It borrows the bytes.
    pub fn as_json(&self) -> Json<'_> {
        Json::of_built(&self.bytes)
    }

    /// Bytes of the binary form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The order of keys in an object: short ones first, then by bytes.
#[inline]
pub(crate) fn compare_keys(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}
