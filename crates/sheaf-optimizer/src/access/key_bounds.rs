//! Bytes of key ranges from values of columns.
//!
//! `sheaf-table` encodes values. A comparison of strings, however, arrives here as one of *sort keys*: the typing rule
//! has replaced `name = 'x'` by `ck(name) = <bytes>`, and the text is gone. A sort key is just what the index stores
//! (docs/file-format.md). So a string column's value is a `Value::Bytes` with its sort key in this crate, and becomes a
//! key part here. A text is needed again only for an index on a prefix of the column, and for a condition that the
//! access method encodes itself. Then it is derived from the key, which is possible for ASCII.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::LazyLock;

use sheaf_storage::{KeyRange, TreeId, prefix_successor};
use sheaf_table::{
    Column, Index, IndexPart, KeyLayout, KeyPart, PartKind, TableDefinition, ValueRef,
};
use sheaf_types::{Collation, ColumnType, Value};

/// What the NULL byte of a nullable part says.
const NULL: u8 = 0x00;
const NOT_NULL: u8 = 0x01;

/// Ends a string part whose sort key does not end itself.
const TEXT_END: u8 = 0x00;

/// Bounds on the part after the equal ones; all but `Null` imply IS NOT NULL.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Next<'a> {
    /// IS NULL.
    Null,
    Between {
        lower: &'a Bound<Value>,
        upper: &'a Bound<Value>,
    },
    /// LIKE 'text%'.
    StartsWith(&'a str),
}

/// The keys whose first parts equal `equal` (NULL: IS NULL) and whose next part is within `next`; perhaps more, for a
/// part with a prefix length. `None` if no key can be: NULL in a NOT NULL part, or above the greatest value.
///
/// All values must be [`usable`] for their parts.
pub(crate) fn key_range(
    layout: &KeyLayout,
    equal: &[Value],
    next: Option<Next<'_>>,
) -> Option<KeyRange> {
    let mut prefix = Vec::new();
    for (value, (position, part)) in equal.iter().zip(layout.parts.iter().enumerate()) {
        if value.is_null() && !part.nullable {
            return None;
        }
        encode_part(layout, position, value, &mut prefix);
    }
    let Some(next) = next else {
        return Some(KeyRange::prefix(&prefix));
    };
    part_range(layout, equal.len(), prefix, next)
}

/// The same for keys that begin with `prefix`, where part `position` starts. With an empty one: what begins a key from
/// that part on.
pub(crate) fn part_range(
    layout: &KeyLayout,
    position: usize,
    mut prefix: Vec<u8>,
    next: Next<'_>,
) -> Option<KeyRange> {
    let part = &layout.parts[position];
    let cut = part.prefix_length.is_some();
    let with = |value: &Value| {
        let mut key = prefix.clone();
        encode_part(layout, position, value, &mut key);
        key
    };
    match next {
        Next::Null if part.nullable => {
            prefix.push(NULL);
            Some(KeyRange::prefix(&prefix))
        }
        Next::Null => None,
        Next::Between { lower, upper } => {
            let lower = match lower {
                Bound::Unbounded => {
                    let mut key = prefix.clone();
                    // Leave out the NULLs.
                    key.extend(part.nullable.then_some(NOT_NULL));
                    key
                }
                // More parts follow, so the keys of a value are all that start with it.
                Bound::Excluded(value) if !cut => prefix_successor(&with(value))?,
                Bound::Included(value) | Bound::Excluded(value) => with(value),
            };
            let upper = match upper {
                Bound::Unbounded => prefix_successor(&prefix),
                Bound::Excluded(value) if !cut => Some(with(value)),
                Bound::Included(value) | Bound::Excluded(value) => prefix_successor(&with(value)),
            };
            Some(KeyRange {
                lower: Bound::Included(lower),
                upper: upper.map_or(Bound::Unbounded, Bound::Excluded),
            })
        }
        Next::StartsWith(text) => {
            prefix.extend(part.nullable.then_some(NOT_NULL));
            let limit = part
                .prefix_length
                .map_or(usize::MAX, |length| length as usize);
            match part.kind {
                PartKind::Text(collation) => collation.like_prefix_into(text, limit, &mut prefix),
                // A 0x00 is escaped in the key: the range is cut before it, and so too wide.
                _ => prefix.extend(text.bytes().take(limit).take_while(|byte| *byte != 0)),
            }
            Some(KeyRange::prefix(&prefix))
        }
    }
}

/// The key of a value in an index on one column.
pub(crate) fn key_of(layout: &KeyLayout, value: &Value) -> Vec<u8> {
    let mut key = Vec::new();
    encode_part(layout, 0, value, &mut key);
    key
}

/// Whether a value can bound a part: always, except for a string that is cut and whose text is not known.
pub(crate) fn usable(part: &KeyPart, value: &Value) -> bool {
    match (part.kind, value, part.prefix_length) {
        (PartKind::Text(collation), Value::Bytes(key), Some(_)) => {
            text_of_sort_key(key, collation).is_some()
        }
        _ => true,
    }
}

/// Appends a value of a part. It must be [`usable`] for it.
pub(crate) fn encode_part(layout: &KeyLayout, position: usize, value: &Value, key: &mut Vec<u8>) {
    let part = &layout.parts[position];
    match (part.kind, value) {
        (PartKind::Text(collation), Value::Bytes(sort_key)) => {
            if part.prefix_length.is_some() {
                let text = text_of_sort_key(sort_key, collation).unwrap_or_default();
                layout.encode_part(position, ValueRef::Bytes(text.as_bytes()), key);
                return;
            }
            key.extend(part.nullable.then_some(NOT_NULL));
            key.extend_from_slice(sort_key);
            if !collation.pads_spaces() {
                key.push(TEXT_END);
            }
        }
        (_, Value::Null) => key.push(NULL),
        (_, value) => layout.encode_part(position, value.into(), key),
    }
}

/// A text with this sort key; `None` if the key does not say one.
pub(crate) fn text_of_sort_key(sort_key: &[u8], collation: Collation) -> Option<String> {
    let layout = TEXT_LAYOUTS.get(collation.name())?;
    let mut part = sort_key.to_vec();
    if !collation.pads_spaces() {
        part.push(TEXT_END);
    }
    let mut text = Vec::new();
    // An entry without payload says its text in small letters.
    if !layout.decode_bytes(0, &part, &[], &mut text).ok()? {
        return None;
    }
    let text = String::from_utf8(text).ok()?;
    let mut again = Vec::with_capacity(sort_key.len());
    collation.sort_key_into(&text, &mut again);
    (again == sort_key).then_some(text)
}

/// By the name of the collation, the layout of an index on one NOT NULL string.
static TEXT_LAYOUTS: LazyLock<BTreeMap<&'static str, KeyLayout>> = LazyLock::new(|| {
    let collations = [
        Collation::Utf8mb4_0900_ai_ci,
        Collation::Utf8mb4_general_ci,
        Collation::Utf8mb4_bin,
    ];
    collations
        .into_iter()
        .map(|collation| (collation.name(), text_layout(collation)))
        .collect()
});

fn text_layout(collation: Collation) -> KeyLayout {
    let index = |parts| Index {
        id: 0,
        name: String::new(),
        parts,
        unique: false,
        primary: false,
        tree: TreeId(0),
        comment: String::new(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use sheaf_table::PartBounds;

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
                let by_key = key_range(&layout, &[Value::Bytes(sort_key(text, collation))], None);
                assert_eq!(by_key, Some(by_text), "{text} in {}", collation.name());

                let bound = |value| PartBounds::Between {
                    lower: Bound::Excluded(value),
                    upper: Bound::Unbounded,
                };
                let by_text = layout
                    .range(&[], Some(&bound(Value::Text(text.into()))))
                    .range;
                let lower = Bound::Excluded(Value::Bytes(sort_key(text, collation)));
                let next = Next::Between {
                    lower: &lower,
                    upper: &Bound::Unbounded,
                };
                let by_key = key_range(&layout, &[], Some(next));
                let same_start = by_key.as_ref().map(|range| &range.lower) == Some(&by_text.lower);
                assert!(same_start, "above {text} in {}", collation.name());

                let by_text = layout
                    .range(&[], Some(&PartBounds::StartsWith(text.into())))
                    .range;
                assert_eq!(
                    key_range(&layout, &[], Some(Next::StartsWith(text))),
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
