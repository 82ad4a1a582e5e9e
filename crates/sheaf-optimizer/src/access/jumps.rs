//! From conditions to jumps inside the ranges of an index.
//!
//! Ranges end with the first part that is bound to a real range ([`crate::access::ranges`]). Conditions on the parts
//! after it, or on parts after an unrestricted one, become a key filter: the walk jumps over what does not match. With
//! KEY (a, b, c):
//!
//! ```text
//!   a = 1 AND b > 2 AND c IN (3, 4)     range [1 >2], jumps to c = 3 and 4 for each b
//!   b = 2                               no range, jumps to b = 2 for each a: a skip scan
//! ```
//!
//! A condition that the filter says completely is not tested again.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::ops::Bound;

use sheaf_access::{KeyFilter, PartInterval};
use sheaf_table::{KeyLayout, Within};

use crate::access::column_sets::{ColumnSets, column_sets};
use crate::access::ranges::{IndexRanges, binds, is_simple};
use crate::estimate::column_set::{ColumnSet, Interval};
use crate::estimate::condition::Term;
use crate::estimate::condition::conjuncts;

/// Intervals of one part, at most: a part with more is left open.
const MAX_INTERVALS: usize = 100_000;

/// Jumps that the conditions allow inside the ranges of one index.
///
/// Few of the paths that are compared are taken, and a filter may have many intervals: it is made for the one that is
/// ([`key_filter`]).
#[derive(Debug, Clone)]
pub(crate) struct IndexJumps {
    /// Positions of the conditions that the filter says completely, beyond those that the ranges say.
    pub consumed: Vec<usize>,
    /// For each part, from the first one that the ranges do not bind to the last one of the filter: how the filter
    /// restricts it.
    pub parts: Vec<PartJumps>,
    /// Position of the first of these parts.
    pub first_part: usize,
}

/// How a filter restricts a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartJumps {
    /// Not at all.
    Open,
    /// To so many single values.
    Points(usize),
    /// To so many intervals, of which not all are single values.
    Intervals(usize),
}

impl IndexJumps {
    /// Leading parts of the index that the filter looks at.
    pub(crate) fn key_parts(&self) -> usize {
        self.first_part + self.parts.len()
    }

    /// Estimated entries at which a walk over `entries` entries finds that it has to jump. `keys(n)` is the number of
    /// distinct prefixes of `n` parts in the ranges, `share(p)` the share of rows that the conditions on part `p`
    /// accept.
    pub(crate) fn estimate(
        &self,
        entries: f64,
        keys: impl Fn(usize) -> f64,
        share: impl Fn(usize) -> f64,
    ) -> f64 {
        jumps_over(&self.parts, self.first_part, keys, share).min(entries)
    }
}

/// From left to right. Behind each prefix, a restricted part takes a jump to each of its values or intervals, and one
/// that finds that there are no more, but never more than there are values. What it lets in are the prefixes of the
/// part after it.
fn jumps_over(
    parts: &[PartJumps],
    first_part: usize,
    keys: impl Fn(usize) -> f64,
    share: impl Fn(usize) -> f64,
) -> f64 {
    let mut places = keys(first_part).max(1.0);
    let mut jumps = 0.0;
    for (offset, part) in parts.iter().enumerate() {
        let position = first_part + offset;
        let values = (keys(position + 1) / keys(position).max(1.0)).max(1.0);
        let let_in = values * share(position);
        match part {
            PartJumps::Open => places *= values,
            PartJumps::Points(count) => {
                jumps += places * (*count as f64 + 1.0).min(values);
                places *= let_in.min(*count as f64);
            }
            PartJumps::Intervals(count) => {
                jumps += places * (*count as f64 + 1.0).min(values);
                places *= let_in;
            }
        }
    }
    jumps
}

/// The jumps that `conditions` (a conjunction) allow inside `ranges` of the index with `layout`; `None` if they say
/// nothing about parts that the ranges do not bind.
pub(crate) fn index_jumps(
    conditions: &[impl Borrow<Term>],
    layout: &KeyLayout,
    ranges: &IndexRanges,
) -> Option<IndexJumps> {
    if ranges.ranges.is_empty() {
        return None;
    }
    let sets = column_sets(conditions);
    let first_part = ranges.exact_parts();
    let positions = first_part..layout.parts.len();
    let restricted = positions.map(|position| match restriction(&sets, layout, position) {
        None => PartJumps::Open,
        Some(set) if set.is_points() => PartJumps::Points(set.intervals.len()),
        // LIKE is one interval, whatever else is said.
        Some(set) if set.starts_with.is_some() => PartJumps::Intervals(1),
        Some(set) => PartJumps::Intervals(set.intervals.len()),
    });
    let mut parts: Vec<PartJumps> = restricted.collect();
    let last = parts.iter().rposition(|part| *part != PartJumps::Open)?;
    parts.truncate(last + 1);
    let filter_parts = first_part + parts.len();
    if filter_parts <= ranges.said_parts() {
        return None;
    }
    let consumed = consumed(conditions, layout, ranges, &sets, filter_parts);
    Some(IndexJumps {
        consumed,
        parts,
        first_part,
    })
}

/// The key filter of jumps that [`index_jumps`] has found for the same conditions and index.
pub(crate) fn key_filter(
    jumps: &IndexJumps,
    conditions: &[impl Borrow<Term>],
    layout: &KeyLayout,
) -> Option<KeyFilter> {
    let sets = column_sets(conditions);
    let parts = (0..jumps.key_parts()).map(|position| {
        // What the ranges say is not tested again.
        let set = match position < jumps.first_part {
            true => None,
            false => restriction(&sets, layout, position),
        };
        set.map(|set| part_intervals(layout, position, set))
    });
    KeyFilter::new(layout, parts.collect())
}

/// The set to which the filter restricts a part; `None` if it leaves it open.
fn restriction<'s>(
    sets: &'s ColumnSets<'_>,
    layout: &KeyLayout,
    position: usize,
) -> Option<&'s ColumnSet> {
    let part = &layout.parts[position];
    let set = sets.get(part.column?)?;
    (set.intervals.len() <= MAX_INTERVALS && binds(set, part)).then_some(set)
}

/// The values of a part in a set, as intervals of encoded bytes.
fn part_intervals(layout: &KeyLayout, position: usize, set: &ColumnSet) -> Vec<PartInterval> {
    let interval = |interval: &Interval| {
        let next = match (interval, &set.starts_with) {
            (Interval::Null, _) => Within::Null,
            (Interval::Range { .. }, Some(text)) => Within::StartsWith(text),
            (Interval::Range { lower, upper }, None) => Within::Between { lower, upper },
        };
        let range = layout.range_behind(Vec::new(), position, next)?.range;
        let lower = match range.lower {
            Bound::Included(lower) | Bound::Excluded(lower) => lower,
            Bound::Unbounded => Vec::new(),
        };
        let upper = match range.upper {
            Bound::Included(upper) | Bound::Excluded(upper) => Some(upper),
            Bound::Unbounded => None,
        };
        let possible = upper.as_ref().is_none_or(|upper| lower < *upper);
        possible.then_some(PartInterval { lower, upper })
    };
    let mut intervals: Vec<PartInterval> = set.intervals.iter().filter_map(interval).collect();
    // A part with a prefix length, or LIKE, makes intervals wider: they may be equal then, or overlap.
    intervals.sort_by(|a, b| a.lower.cmp(&b.lower));
    let mut merged: Vec<PartInterval> = Vec::with_capacity(intervals.len());
    for next in intervals {
        match merged.last_mut() {
            Some(last) if last.upper.as_ref().is_none_or(|upper| *upper > next.lower) => {
                let further = match (&last.upper, &next.upper) {
                    (None, _) => false,
                    (_, None) => true,
                    (Some(last), Some(next)) => next > last,
                };
                if further {
                    last.upper = next.upper;
                }
            }
            _ => merged.push(next),
        }
    }
    merged
}

/// The conditions that the filter, together with the ranges, says completely.
fn consumed(
    conditions: &[impl Borrow<Term>],
    layout: &KeyLayout,
    ranges: &IndexRanges,
    sets: &ColumnSets<'_>,
    filter_parts: usize,
) -> Vec<usize> {
    let says = |column: usize| {
        layout.parts[..filter_parts]
            .iter()
            .enumerate()
            .filter(|(_, part)| part.column == Some(column) && part.prefix_length.is_none())
            .any(|(position, part)| match position < ranges.exact_parts() {
                true => ranges.says_all_of(column),
                false => sets.get(column).is_some_and(|set| {
                    set.starts_with.is_none()
                        && set.intervals.len() <= MAX_INTERVALS
                        && binds(set, part)
                }),
            })
    };
    // Of a column there may be many conditions, and its set may be long.
    let mut known: HashMap<usize, bool> = HashMap::new();
    let mut says = |column: usize| *known.entry(column).or_insert_with(|| says(column));
    let mut is_consumed = |term: &Term| {
        is_simple(term)
            && conjuncts(term).all(|term| match term {
                Term::Column { column, set, exact } => {
                    *exact && set.starts_with.is_none() && says(*column)
                }
                _ => false,
            })
    };
    (0..conditions.len())
        .filter(|position| {
            // They are in order.
            ranges.consumed.binary_search(position).is_err()
                && is_consumed(conditions[*position].borrow())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_are_counted_part_by_part() {
        // 3,080 entries: 11 quantities, with 8 modes each, with 4 instructions each.
        let keys = |parts: usize| [1.0, 1.0, 11.0, 88.0, 352.0][parts];
        let share = |part: usize| [1.0, 0.25, 0.25, 0.25][part];
        let q19 = [PartJumps::Points(2), PartJumps::Points(1)];
        assert_eq!(jumps_over(&q19, 2, keys, share), 11.0 * 3.0 + 22.0 * 2.0);
        // To the value and past it, for each of the values that are skipped.
        let skipped = [PartJumps::Open, PartJumps::Points(1)];
        let keys = |parts: usize| [1.0, 5.0, 200.0][parts];
        assert_eq!(jumps_over(&skipped, 0, keys, share), 10.0);
        // No more jumps than there are values.
        let many = [PartJumps::Points(1000)];
        assert_eq!(jumps_over(&many, 1, keys, share), 200.0);
    }
}
