//! Ranges of encoded keys: what a condition on the leading parts of an index selects.
//!
//! A range is some parts that are equal to values, and bounds on the part after them. All keys of a part's value start
//! with its encoding, and the next part may be anything. So `= v` is every key that starts with v, `> v` begins at the
//! [successor](prefix_successor) of v, and `<= v` ends there.
//!
//! A part with a prefix length knows only the beginnings of its values. A value that is longer shares its key with
//! others, so ranges over such a part are widened to include them, and say so: [`EncodedRange::recheck`].

use std::ops::Bound;

use sheaf_storage::{KeyRange, prefix_successor};
use sheaf_types::{Collation, Value};

use crate::codec::key_codec::{KeyLayout, NOT_NULL, PartKind, encode_escaped};

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

/// A range of encoded keys.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedRange {
    pub range: KeyRange,
    /// The range may hold rows that do not match, because of a prefix part or LIKE: the condition must be tested again.
    pub recheck: bool,
}

impl KeyLayout {
    /// The keys whose first parts equal `equal` (NULL: IS NULL), and whose next part is within `next`. Values are of
    /// their column's type.
    ///
    /// # Panics
    /// If there are more values than parts, or a value is not of its column's type.
    pub fn range(&self, equal: &[Value], next: Option<&PartBounds>) -> EncodedRange {
        let mut prefix = Vec::new();
        let mut recheck = false;
        for (position, value) in equal.iter().enumerate() {
            if value.is_null() && !self.parts[position].nullable {
                return EncodedRange {
                    range: nothing(),
                    recheck: false,
                };
            }
            recheck |= self.is_cut(position, value);
            self.encode_part(position, value.into(), &mut prefix);
        }
        let Some(next) = next else {
            return EncodedRange {
                range: KeyRange::prefix(&prefix),
                recheck,
            };
        };
        let position = equal.len();
        let part = &self.parts[position];
        match next {
            PartBounds::Between { lower, upper } => {
                let lower = match lower {
                    // Leave out the NULLs.
                    Bound::Unbounded if part.nullable => {
                        let mut bound = prefix.clone();
                        bound.push(NOT_NULL);
                        Bound::Included(bound)
                    }
                    Bound::Unbounded => Bound::Included(prefix.clone()),
                    Bound::Included(value) | Bound::Excluded(value) => {
                        let cut = self.is_cut(position, value);
                        recheck |= cut;
                        let mut bound = prefix.clone();
                        self.encode_part(position, value.into(), &mut bound);
                        match lower {
                            // More parts follow, so the keys of a value are all that start with it.
                            Bound::Excluded(_) if !cut => match prefix_successor(&bound) {
                                Some(successor) => Bound::Included(successor),
                                None => {
                                    return EncodedRange {
                                        range: nothing(),
                                        recheck: false,
                                    };
                                }
                            },
                            _ => Bound::Included(bound),
                        }
                    }
                };
                let successor = |bound: &[u8]| match prefix_successor(bound) {
                    Some(successor) => Bound::Excluded(successor),
                    None => Bound::Unbounded,
                };
                let upper = match upper {
                    Bound::Unbounded => successor(&prefix),
                    Bound::Included(value) | Bound::Excluded(value) => {
                        let cut = self.is_cut(position, value);
                        recheck |= cut;
                        let mut bound = prefix;
                        self.encode_part(position, value.into(), &mut bound);
                        match upper {
                            Bound::Excluded(_) if !cut => Bound::Excluded(bound),
                            _ => successor(&bound),
                        }
                    }
                };
                EncodedRange {
                    range: KeyRange { lower, upper },
                    recheck,
                }
            }
            PartBounds::StartsWith(text) => {
                if part.nullable {
                    prefix.push(NOT_NULL);
                }
                let limit = part
                    .prefix_length
                    .map_or(usize::MAX, |length| length as usize);
                let exact = match part.kind {
                    PartKind::Text(collation) => {
                        collation.like_prefix_into(text, limit, &mut prefix);
                        collation == Collation::Utf8mb4_bin
                            && text.chars().count() <= limit
                            && !text.ends_with(' ')
                    }
                    _ => {
                        let bytes = &text.as_bytes()[..text.len().min(limit)];
                        encode_escaped(bytes, &mut prefix);
                        text.len() <= limit
                    }
                };
                EncodedRange {
                    range: KeyRange::prefix(&prefix),
                    recheck: recheck || !exact,
                }
            }
        }
    }

    /// True if the index holds so little of the part that other values may have the same key as this one.
    fn is_cut(&self, position: usize, value: &Value) -> bool {
        let part = &self.parts[position];
        let Some(limit) = part.prefix_length else {
            return false;
        };
        let limit = limit as usize;
        match (part.kind, value) {
            // Trailing spaces of a beginning are lost, so that the beginning of 'a  x' has the key of 'a'.
            (PartKind::Text(collation), _) if collation.pads_spaces() => true,
            (PartKind::Text(collation), Value::Text(text)) => {
                collation.limited_key_into(text, limit, &mut Vec::new()) >= limit
            }
            (_, Value::Text(text)) => text.len() >= limit,
            (_, Value::Bytes(bytes)) => bytes.len() >= limit,
            _ => false,
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
