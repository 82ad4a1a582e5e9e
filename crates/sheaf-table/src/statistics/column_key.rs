//! The order-preserving bytes under which statistics keep a column's values.
//!
//! They are the encoding of index keys ([`crate::codec::key_codec`]). So histograms compare bytes and know no types,
//! strings are ordered by their collation, and a condition becomes a range of bytes as it does for an index. With each
//! key goes the payload that an index entry would have, which gives the original of a string back.
//!
//! Of a string only the first [`MAX_CHARACTERS`] characters count (MySQL's histograms: 42); longer ones that agree so
//! far are one value.

use std::borrow::Cow;
use std::ops::Bound;

use sheaf_storage::KeyRange;
use sheaf_types::Value;

use crate::codec::key_codec::KeyLayout;
use crate::codec::key_part::PartKind;
use crate::codec::key_range::PartBounds;
use crate::codec::row_codec::ValueRef;
use crate::definition::schema::TableDefinition;
use crate::error::Result;

/// So many characters of a string (bytes of a byte string) tell its value.
pub const MAX_CHARACTERS: usize = 64;

/// How the values of one column are encoded.
#[derive(Debug, Clone)]
pub struct ColumnKey {
    layout: KeyLayout,
}

impl ColumnKey {
    pub fn new(definition: &TableDefinition, column: usize) -> ColumnKey {
        ColumnKey {
            layout: KeyLayout::of_column(definition, column),
        }
    }

    /// The layout of an index on this column alone.
    pub fn layout(&self) -> &KeyLayout {
        &self.layout
    }

    pub(crate) fn kind(&self) -> PartKind {
        self.layout.parts[0].kind
    }

    /// Bytes in front of the value's own in the key of a value that is not NULL.
    pub(crate) fn marker_bytes(&self) -> usize {
        usize::from(self.layout.parts[0].nullable)
    }

    /// Appends key and payload of a value of the column.
    pub(crate) fn encode(&self, value: ValueRef<'_>, key: &mut Vec<u8>, payload: &mut Vec<u8>) {
        let value = match value {
            ValueRef::Bytes(bytes) => ValueRef::Bytes(self.cut(bytes)),
            other => other,
        };
        self.layout.encode_entry(|_| value, 0, key, payload);
    }

    /// Appends what tells the value from all others, which is more than the key if it is a long string.
    pub(crate) fn encode_whole(&self, value: ValueRef<'_>, key: &mut Vec<u8>) {
        self.layout.encode_part(0, value, key);
    }

    /// The key of a value of the column's type.
    pub(crate) fn key(&self, value: &Value) -> Vec<u8> {
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        self.encode(value.into(), &mut key, &mut payload);
        key
    }

    /// The keys of the values within bounds.
    pub(crate) fn range(&self, bounds: &PartBounds) -> KeyRange {
        let cut = match bounds {
            PartBounds::Between { lower, upper } => PartBounds::Between {
                lower: self.cut_bound(lower),
                upper: self.cut_bound(upper),
            },
            PartBounds::StartsWith(text) => {
                let cut = self.cut(text.as_bytes());
                PartBounds::StartsWith(String::from_utf8_lossy(cut).into_owned())
            }
        };
        self.layout.range(&[], Some(&cut)).range
    }

    /// A long string stands for all that begin like it, so a bound on it includes them.
    fn cut_bound(&self, bound: &Bound<Value>) -> Bound<Value> {
        let (Bound::Included(value) | Bound::Excluded(value)) = bound else {
            return Bound::Unbounded;
        };
        let cut = match value {
            Value::Text(text) => {
                let cut = self.cut(text.as_bytes());
                (cut.len() < text.len())
                    .then(|| Value::Text(String::from_utf8_lossy(cut).into_owned()))
            }
            Value::Bytes(bytes) => {
                let cut = self.cut(bytes);
                (cut.len() < bytes.len()).then(|| Value::Bytes(cut.to_vec()))
            }
            _ => None,
        };
        match cut {
            Some(value) => Bound::Included(value),
            None => bound.clone(),
        }
    }

    fn cut<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        if bytes.len() <= MAX_CHARACTERS {
            return bytes;
        }
        let end = match (self.kind(), std::str::from_utf8(bytes)) {
            (PartKind::Text(_), Ok(text)) => text
                .char_indices()
                .nth(MAX_CHARACTERS)
                .map_or(bytes.len(), |(at, _)| at),
            _ => MAX_CHARACTERS,
        };
        &bytes[..end]
    }

    /// The value of a key and its payload.
    ///
    /// # Errors
    /// `Corrupt` if they are not what was encoded.
    pub fn decode(
        &self,
        definition: &TableDefinition,
        key: &[u8],
        payload: &[u8],
    ) -> Result<Value> {
        self.layout.decode_value(definition, 0, key, payload)
    }

    /// Where `at` lies between two keys, both included: 0 at `lower`, nearly 1 at `upper`, as if the values between
    /// them were evenly spread.
    ///
    /// Integers, decimals, dates and times are linear in their bytes; behind `upper` there is room for one more, so
    /// that in 1, 2, ... 10 the number 4 lies at 3/10. Floating-point numbers are decoded. Strings are taken as
    /// fractions to the base 256, from the first byte on in which the bounds differ.
    pub(crate) fn position(&self, at: &[u8], lower: &[u8], upper: &[u8]) -> f64 {
        if at <= lower {
            return 0.0;
        }
        if at > upper {
            return 1.0;
        }
        let position = match self.kind() {
            PartKind::Float | PartKind::Double => {
                let [at, lower, upper] = [at, lower, upper].map(|key| self.float(key));
                (at - lower) / (upper - lower)
            }
            _ => between_bytes(at, lower, upper),
        };
        if position.is_finite() {
            position.clamp(0.0, 1.0)
        } else {
            0.5
        }
    }

    /// The number in a key that may have been cut short.
    fn float(&self, key: &[u8]) -> f64 {
        let width = self.marker_bytes() + self.kind().width().unwrap_or(0);
        let mut key = Cow::Borrowed(key);
        if key.len() < width {
            key.to_mut().resize(width, 0);
        }
        self.layout.decode_f64(0, &key).unwrap_or(f64::NAN)
    }
}

/// Bytes that count behind what the bounds have in common: more than a double's digits.
const COUNTING_BYTES: usize = 12;

fn between_bytes(at: &[u8], lower: &[u8], upper: &[u8]) -> f64 {
    let common = lower.iter().zip(upper).take_while(|(a, b)| a == b).count();
    let rest = |key: &'_ [u8]| -> u128 {
        let width = lower.len().max(upper.len()) - common;
        let bytes = key.get(common..).unwrap_or(&[]).iter().copied();
        let padded = bytes.chain(std::iter::repeat(0));
        padded
            .take(width.min(COUNTING_BYTES))
            .fold(0, |number, byte| number << 8 | u128::from(byte))
    };
    let (at, lower, upper) = (rest(at), rest(lower), rest(upper));
    at.saturating_sub(lower) as f64 / (upper.saturating_sub(lower) + 1) as f64
}
