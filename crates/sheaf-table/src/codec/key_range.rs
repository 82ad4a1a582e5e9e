//! Ranges of encoded keys: what a condition on the leading parts of an index selects.
//!
//! A range is some parts that are equal to values, and bounds on the part after them. All keys of a part's value start
//! with its encoding, and the next part may be anything. So `= v` is every key that starts with v, `> v` begins at the
//! [successor](prefix_successor) of v, and `<= v` ends there.
//!
//! A comparison of strings often arrives as one of *sort keys*: the text is gone (`ck(name) = <bytes>`). So a bound of
//! a string part is a text, or the sort key that the index stores of it, as bytes. A text is needed again only where an
//! index holds a prefix. Then it is derived from the sort key ([`text_of_sort_key`]), which is possible for ASCII.
//!
//! A part with a prefix length knows only the beginnings of its values. A value that is longer shares its key with
//! others, so ranges over such a part are widened to include them, and say so: [`EncodedRange::recheck`].

use std::ops::Bound;

use sheaf_storage::{KeyRange, prefix_successor};
use sheaf_types::{Collation, Value};

use crate::codec::key_codec::{KeyLayout, NOT_NULL, NULL, TEXT_END, encode_escaped};
use crate::codec::key_part::{KeyPart, PartKind};
use crate::codec::row_codec::ValueRef;
use crate::codec::sort_key_text::text_of_sort_key;

/// Bounds on the part after the equal ones. Values are of the column's type and never NULL: a bound implies IS NOT
/// NULL.
#[derive(Debug, Clone, PartialEq)]
pub enum PartBounds {
    /// Both unbounded: IS NOT NULL.
    Between {
        lower: Bound<Value>,
        upper: Bound<Value>,
    },
    /// LIKE 'text%', text without wildcards.
    StartsWith(String),
}

/// Bounds on a part, of values that are elsewhere.
#[derive(Debug, Clone, Copy)]
pub enum Within<'a> {
    /// IS NULL.
    Null,
    /// Both unbounded: IS NOT NULL.
    Between {
        lower: &'a Bound<Value>,
        upper: &'a Bound<Value>,
    },
    /// LIKE 'text%', text without wildcards.
    StartsWith(&'a str),
}

impl PartBounds {
    fn as_within(&self) -> Within<'_> {
        match self {
            PartBounds::Between { lower, upper } => Within::Between { lower, upper },
            PartBounds::StartsWith(text) => Within::StartsWith(text),
        }
    }
}

/// A range of encoded keys.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedRange {
    pub range: KeyRange,
    /// The range may hold rows that do not match, because of a prefix part or LIKE: the condition must be tested again.
    pub recheck: bool,
}

impl KeyLayout {
    /// The keys whose first parts equal `equal` (NULL: IS NULL), and whose next part is within `next`. Values are of
    /// their column's type, or sort keys of strings, and the parts [take](KeyPart::takes) them.
    ///
    /// # Panics
    /// If there are more values than parts, or a value is not of its column's type.
    pub fn range(&self, equal: &[Value], next: Option<&PartBounds>) -> EncodedRange {
        let next = next.map(PartBounds::as_within);
        self.range_within(equal, next).unwrap_or(EncodedRange {
            range: nothing(),
            recheck: false,
        })
    }

    /// [`Self::range`]; `None` if no key can be in it: NULL in a NOT NULL part, or above the greatest value.
    pub fn range_within(&self, equal: &[Value], next: Option<Within<'_>>) -> Option<EncodedRange> {
        let mut prefix = Vec::new();
        let mut recheck = false;
        for (position, value) in equal.iter().enumerate() {
            if value.is_null() && !self.parts[position].nullable {
                return None;
            }
            recheck |= self.is_cut(position, value);
            self.encode_bound(position, value, &mut prefix);
        }
        let Some(next) = next else {
            let range = KeyRange::prefix(&prefix);
            return Some(EncodedRange { range, recheck });
        };
        let mut found = self.range_behind(prefix, equal.len(), next)?;
        found.recheck |= recheck;
        Some(found)
    }

    /// The keys that begin with `prefix`, where part `position` starts, and have that part within `next`. With an empty
    /// prefix: what begins a key from that part on. `None` as for [`Self::range_within`].
    pub fn range_behind(
        &self,
        mut prefix: Vec<u8>,
        position: usize,
        next: Within<'_>,
    ) -> Option<EncodedRange> {
        let part = &self.parts[position];
        let (lower, upper) = match next {
            Within::Null if !part.nullable => return None,
            Within::Null => {
                prefix.push(NULL);
                let range = KeyRange::prefix(&prefix);
                return Some(EncodedRange {
                    range,
                    recheck: false,
                });
            }
            Within::StartsWith(text) => return Some(self.starting_with(prefix, position, text)),
            Within::Between { lower, upper } => (lower, upper),
        };
        let mut recheck = false;
        let mut behind = |mut bound: Vec<u8>, value: &Value| {
            let is_cut = self.is_cut(position, value);
            recheck |= is_cut;
            self.encode_bound(position, value, &mut bound);
            (bound, is_cut)
        };
        let lower = match lower {
            // Leave out the NULLs.
            Bound::Unbounded => {
                let mut bound = prefix.clone();
                bound.extend(part.nullable.then_some(NOT_NULL));
                bound
            }
            Bound::Included(value) => behind(prefix.clone(), value).0,
            Bound::Excluded(value) => match behind(prefix.clone(), value) {
                // More parts follow, so the keys of a value are all that start with it.
                (bound, false) => prefix_successor(&bound)?,
                (bound, true) => bound,
            },
        };
        let upper = match upper {
            Bound::Unbounded => prefix_successor(&prefix),
            Bound::Included(value) => prefix_successor(&behind(prefix, value).0),
            Bound::Excluded(value) => match behind(prefix, value) {
                (bound, false) => Some(bound),
                (bound, true) => prefix_successor(&bound),
            },
        };
        let range = KeyRange {
            lower: Bound::Included(lower),
            upper: upper.map_or(Bound::Unbounded, Bound::Excluded),
        };
        Some(EncodedRange { range, recheck })
    }

    fn starting_with(&self, mut prefix: Vec<u8>, position: usize, text: &str) -> EncodedRange {
        let part = &self.parts[position];
        prefix.extend(part.nullable.then_some(NOT_NULL));
        let limit = part
            .prefix_length
            .map_or(usize::MAX, |length| length as usize);
        let is_exact = match part.kind {
            PartKind::Text(collation) => {
                collation.like_prefix_into(text, limit, &mut prefix);
                collation.is_exact()
                    && text.chars().count() <= limit
                    && !(collation.pads_spaces() && text.ends_with(' '))
            }
            _ => {
                let bytes = &text.as_bytes()[..text.len().min(limit)];
                encode_escaped(bytes, &mut prefix);
                text.len() <= limit
            }
        };
        EncodedRange {
            range: KeyRange::prefix(&prefix),
            recheck: !is_exact,
        }
    }

    /// Appends what part `position` is of every value that begins with `text`, if that is one key: the part has a
    /// prefix, and the text is at least as long. False: nothing was appended. Other values may have the same key.
    pub fn encode_beginning(&self, position: usize, text: &str, key: &mut Vec<u8>) -> bool {
        let part = &self.parts[position];
        let Some(length) = part.prefix_length.map(|length| length as usize) else {
            return false;
        };
        let beginning = match part.kind {
            PartKind::Text(collation) => {
                let settled = collation.settled_prefix(text);
                let (mut whole, mut shorter) = (Vec::new(), Vec::new());
                let elements = collation.limited_key_into(settled, length, &mut whole);
                collation.limited_key_into(settled, length - 1, &mut shorter);
                // A space at the end of the prefix may be no part of the key.
                if elements < length || whole == shorter {
                    return false;
                }
                settled
            }
            PartKind::Bytes if text.len() >= length => text,
            _ => return false,
        };
        self.encode_part(position, ValueRef::Bytes(beginning.as_bytes()), key);
        true
    }

    /// The key of a value in an index on one column.
    pub fn key_of(&self, value: &Value) -> Vec<u8> {
        let mut key = Vec::new();
        self.encode_bound(0, value, &mut key);
        key
    }

    /// Appends a part that equals a value of its column's type, or a sort key. The part must
    /// [take](KeyPart::takes) it.
    pub fn encode_bound(&self, position: usize, value: &Value, key: &mut Vec<u8>) {
        let part = &self.parts[position];
        match (part.kind, value) {
            (PartKind::Text(collation), Value::Bytes(sort_key)) => {
                if part.prefix_length.is_some() {
                    let text = text_of_sort_key(sort_key, collation).unwrap_or_default();
                    return self.encode_part(position, ValueRef::Bytes(text.as_bytes()), key);
                }
                key.extend(part.nullable.then_some(NOT_NULL));
                key.extend_from_slice(sort_key);
                if !collation.pads_spaces() {
                    key.push(TEXT_END);
                }
            }
            (_, Value::Null) => key.push(NULL),
            (_, value) => self.encode_part(position, value.into(), key),
        }
    }

    /// True if the index holds so little of the part that other values may have the same key as this one.
    fn is_cut(&self, position: usize, value: &Value) -> bool {
        let part = &self.parts[position];
        let Some(limit) = part.prefix_length else {
            return false;
        };
        let limit = limit as usize;
        let elements = |text: &str, collation: Collation| {
            collation.limited_key_into(text, limit, &mut Vec::new())
        };
        match (part.kind, value) {
            // Trailing spaces of a beginning are lost, so that the beginning of 'a  x' has the key of 'a'.
            (PartKind::Text(collation), _) if collation.pads_spaces() => true,
            // So are accents and cases.
            (PartKind::Text(collation), _) if collation.has_levels() => true,
            (PartKind::Text(collation), Value::Text(text)) => elements(text, collation) >= limit,
            (PartKind::Text(collation), Value::Bytes(sort_key)) => {
                let text = text_of_sort_key(sort_key, collation);
                text.is_none_or(|text| elements(&text, collation) >= limit)
            }
            (_, Value::Text(text)) => text.len() >= limit,
            (_, Value::Bytes(bytes)) => bytes.len() >= limit,
            _ => false,
        }
    }
}

impl KeyPart {
    /// Whether a value can bound the part: always, except for the sort key of a string that is cut and whose text the
    /// key does not say.
    pub fn takes(&self, value: &Value) -> bool {
        match (self.kind, value, self.prefix_length) {
            (PartKind::Text(collation), Value::Bytes(sort_key), Some(_)) => {
                text_of_sort_key(sort_key, collation).is_some()
            }
            _ => true,
        }
    }
}

/// A range without keys.
fn nothing() -> KeyRange {
    KeyRange {
        lower: Bound::Unbounded,
        upper: Bound::Excluded(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::schema::{Column, Index, IndexPart, TableDefinition};
    use sheaf_storage::TreeId;
    use sheaf_types::ColumnType;

    fn text_layout(collation: Collation) -> KeyLayout {
        let index = |parts| Index {
            id: 0,
            name: String::new(),
            parts,
            unique: false,
            primary: false,
            tree: TreeId(0),
            comment: String::new(),
            invisible: false,
        };
        let definition = TableDefinition {
            id: 0,
            database: String::new(),
            name: String::new(),
            columns: vec![Column::new(
                "text",
                ColumnType::VarChar {
                    length: 1,
                    collation,
                },
                false,
            )],
            primary: index(Vec::new()),
            secondary: Vec::new(),
            collation,
            comment: String::new(),
            overflow: None,
            auto_increment_start: 1,
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            shape: None,
        };
        KeyLayout::secondary(
            &definition,
            &index(vec![IndexPart {
                column: 0,
                prefix_length: None,
                descending: false,
            }]),
        )
    }

    fn within(layout: &KeyLayout, equal: &[Value], next: Option<Within<'_>>) -> Option<KeyRange> {
        Some(layout.range_within(equal, next)?.range)
    }

    fn sort_key(text: &str, collation: Collation) -> Vec<u8> {
        let mut key = Vec::new();
        collation.sort_key_into(text, &mut key);
        key
    }

    #[test]
    fn sort_keys_make_the_same_ranges_as_texts() {
        for collation in [
            Collation::Utf8mb4_0900_ai_ci,
            Collation::Utf8mb4_general_ci,
            Collation::Utf8mb4_bin,
        ] {
            let layout = text_layout(collation);
            for text in ["", "a", "Brand#12", "zürich", "a b", "日本"] {
                let by_text = layout.range(&[Value::Text(text.into())], None).range;
                let by_key = within(&layout, &[Value::Bytes(sort_key(text, collation))], None);
                assert_eq!(by_key, Some(by_text), "{text} in {}", collation.name());

                let bound = |value| PartBounds::Between {
                    lower: Bound::Excluded(value),
                    upper: Bound::Unbounded,
                };
                let by_text = layout
                    .range(&[], Some(&bound(Value::Text(text.into()))))
                    .range;
                let lower = Bound::Excluded(Value::Bytes(sort_key(text, collation)));
                let next = Within::Between {
                    lower: &lower,
                    upper: &Bound::Unbounded,
                };
                let by_key = within(&layout, &[], Some(next));
                let same_start = by_key.as_ref().map(|range| &range.lower) == Some(&by_text.lower);
                assert!(same_start, "above {text} in {}", collation.name());

                let by_text = layout
                    .range(&[], Some(&PartBounds::StartsWith(text.into())))
                    .range;
                assert_eq!(
                    within(&layout, &[], Some(Within::StartsWith(text))),
                    Some(by_text),
                    "{text}%"
                );
            }
        }
    }

    #[test]
    fn ascii_texts_come_back_from_their_keys() {
        let collation = Collation::Utf8mb4_0900_ai_ci;
        assert_eq!(
            text_of_sort_key(&sort_key("Brand#12", collation), collation).as_deref(),
            Some("brand#12")
        );
        assert_eq!(
            text_of_sort_key(&sort_key("日本", collation), collation),
            None
        );
        let collation = Collation::Utf8mb4_bin;
        assert_eq!(
            text_of_sort_key(&sort_key("AbC", collation), collation).as_deref(),
            Some("AbC")
        );
    }
}
