//! Ranges of keys that overlap become one.

use std::ops::Bound;

use sheaf_storage::KeyRange;

/// Sorts ranges by their lower bounds, drops empty ones and merges those that overlap.
pub fn disjoint(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by(|a, b| lower_key(a).cmp(&lower_key(b)));
    let mut merged: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if !ends_before(&last.upper, &range.lower) => {
                if upper_is_less(&last.upper, &range.upper) {
                    last.upper = range.upper;
                }
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// What lower bounds are sorted by.
fn lower_key(range: &KeyRange) -> (&[u8], u8) {
    match &range.lower {
        Bound::Unbounded => (&[], 0),
        Bound::Included(key) => (key, 1),
        Bound::Excluded(key) => (key, 2),
    }
}

/// Whether some key may lie between an upper bound and a later lower bound, or neither includes their common key.
fn ends_before(upper: &Bound<Vec<u8>>, lower: &Bound<Vec<u8>>) -> bool {
    match (upper, lower) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        // [.. x) [x .. touch, but stay two ranges: each keeps its equal prefix.
        (Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => a <= b,
        (Bound::Included(a), Bound::Included(b)) => a < b,
        (Bound::Included(a), Bound::Excluded(b)) => a <= b,
    }
}

fn upper_is_less(a: &Bound<Vec<u8>>, b: &Bound<Vec<u8>>) -> bool {
    match (a, b) {
        (Bound::Unbounded, _) => false,
        (_, Bound::Unbounded) => true,
        (Bound::Included(x) | Bound::Excluded(x), Bound::Included(y) | Bound::Excluded(y)) => {
            x < y || (x == y && matches!((a, b), (Bound::Excluded(_), Bound::Included(_))))
        }
    }
}
