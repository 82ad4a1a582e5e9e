//! Key ranges as conditions that people can read: `l_partkey = 7 AND 1 <= l_quantity <= 11`.
//!
//! The text is made from the sets of values that the ranges are made from, not from their bytes: a bound in bytes may
//! lie between two values.

use std::borrow::Borrow;
use std::ops::Bound;

use sheaf_table::{KeyLayout, TableDefinition, text_of_sort_key};
use sheaf_types::text::hexadecimal::literal_of;
use sheaf_types::text::quoting::quoted_string;
use sheaf_types::{ColumnType, Value, column_text};

use crate::access::column_sets::{ColumnSets, with_branch};
use crate::access::ranges::{beginning_of_next, binds, sets_and_branches};
use crate::estimate::column_set::{ColumnSet, Interval};
use crate::estimate::condition::Term;

/// The ranges that `conditions` leave of the index with `layout`, at most `limit` of them, as
/// [`index_ranges`](crate::access::ranges::index_ranges) finds them but not merged.
pub(crate) fn range_texts(
    conditions: &[impl Borrow<Term>],
    layout: &KeyLayout,
    table: &TableDefinition,
    limit: usize,
) -> Vec<String> {
    let (sets, branches) = sets_and_branches(conditions, layout);
    let Some(branches) = branches else {
        return conjunction_texts(&sets, layout, table, limit);
    };
    let mut texts: Vec<String> = Vec::new();
    for branch in branches {
        let room = limit - texts.len();
        if room == 0 {
            break;
        }
        let sets = with_branch(&sets, branch);
        texts.extend(conjunction_texts(&sets, layout, table, room));
    }
    texts
}

/// The first `limit` ranges of a conjunction of column sets.
fn conjunction_texts(
    sets: &ColumnSets<'_>,
    layout: &KeyLayout,
    table: &TableDefinition,
    limit: usize,
) -> Vec<String> {
    let mut prefixes = vec![String::new()];
    for (position, part) in layout.parts.iter().enumerate() {
        let bound = part
            .column
            .and_then(|column| Some((column, sets.get(column)?)))
            .filter(|(_, set)| binds(set, part));
        let Some((column, set)) = bound else {
            break;
        };
        let (name, ty) = (table.shown_name(column), &table.columns[column].ty);
        let next: Vec<String> = interval_texts(name, ty, set, limit);
        prefixes = prefixes
            .iter()
            .flat_map(|prefix| {
                next.iter().map(move |next| match prefix.is_empty() {
                    true => next.clone(),
                    false => format!("{prefix} AND {next}"),
                })
            })
            .take(limit)
            .collect();
        if !set.is_points() && beginning_of_next(sets, set, layout, position).is_none() {
            break;
        }
    }
    prefixes.retain(|text| !text.is_empty());
    prefixes
}

/// The first `limit` intervals of a set.
fn interval_texts(name: &str, ty: &ColumnType, set: &ColumnSet, limit: usize) -> Vec<String> {
    let text = |interval: &Interval| match (interval, &set.starts_with) {
        (Interval::Null, _) => format!("{name} IS NULL"),
        (Interval::Range { .. }, Some(prefix)) => format!("{name} LIKE '{prefix}%'"),
        (Interval::Range { lower, upper }, None) => between(name, ty, lower, upper),
    };
    set.intervals.iter().take(limit).map(text).collect()
}

fn between(name: &str, ty: &ColumnType, lower: &Bound<Value>, upper: &Bound<Value>) -> String {
    if let (Bound::Included(a), Bound::Included(b)) = (lower, upper)
        && a == b
    {
        return format!("{name} = {}", value_text(ty, a));
    }
    let lower = match lower {
        Bound::Included(value) => format!("{} <= ", value_text(ty, value)),
        Bound::Excluded(value) => format!("{} < ", value_text(ty, value)),
        Bound::Unbounded => String::new(),
    };
    let upper = match upper {
        Bound::Included(value) => format!(" <= {}", value_text(ty, value)),
        Bound::Excluded(value) => format!(" < {}", value_text(ty, value)),
        Bound::Unbounded => String::new(),
    };
    if lower.is_empty() && upper.is_empty() {
        return format!("{name} IS NOT NULL");
    }
    format!("{lower}{name}{upper}")
}

/// A value of a column as a literal. Strings are sort keys here, which say a text only for ASCII.
fn value_text(ty: &ColumnType, value: &Value) -> String {
    match (value, ty.collation()) {
        (Value::Bytes(key), Some(collation)) if !ty.has_labels() => {
            match text_of_sort_key(key, collation) {
                Some(text) => quoted_string(&text),
                None => literal_of(key),
            }
        }
        (Value::Bytes(bytes), _) => match std::str::from_utf8(bytes) {
            Ok(text) if text.chars().all(|character| !character.is_control()) => {
                quoted_string(text)
            }
            _ => literal_of(bytes),
        },
        _ if value.is_null() || value.is_number() => value.to_string(),
        _ => quoted_string(&column_text(ty, value)),
    }
}
