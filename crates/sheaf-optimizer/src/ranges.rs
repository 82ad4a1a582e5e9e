//! From conditions to key ranges of an index.
//!
//! Parts are taken in key order. As long as a part is bound to single values (`=`, IN, IS NULL), every combination of
//! them is a prefix and the next part can be bound too; the first part that is bound to a real range (`<`, BETWEEN,
//! LIKE 'p%') ends the ranges. With KEY (a, b, c):
//!
//! ```text
//!   a = 1 AND b IN (2, 3) AND c > 4     [1 2 >4] [1 3 >4]     three parts
//!   a > 1 AND b = 2                     [>1]                  one part; b = 2 is left to the index condition
//!   (a = 1 AND b = 2) OR a = 5          [1 2] [5]             branches of an OR, each by itself
//! ```
//!
//! A condition is *consumed* when the ranges hold exactly the entries that it accepts; it is not tested again.

use std::collections::BTreeMap;
use std::ops::Bound;

use sheaf_storage::KeyRange;
use sheaf_table::{KeyLayout, PartBounds, TableDefinition, Value};

use crate::column_set::{ColumnSet, Interval};
use crate::condition::Term;

/// Ranges of one index for one statement, at most; beyond that a part is bound to its hull.
pub(crate) const MAX_RANGES: usize = 10_000;

/// Branches of ORs that are followed, at most.
const MAX_BRANCHES: usize = 64;

/// The ranges of an index that hold every row which the conditions accept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IndexRanges {
    /// Ascending and disjoint. One unbounded range: the conditions say nothing about this index. Empty: they
    /// contradict each other.
    pub ranges: Vec<KeyRange>,
    /// Leading parts that the ranges bind.
    pub parts: usize,
    /// Leading parts that are bound to single values in every range.
    pub equal_parts: usize,
    /// Leading parts that are bound to the same single value in all ranges.
    pub constant_parts: usize,
    /// Positions of the conditions that need not be tested again.
    pub consumed: Vec<usize>,
    /// The last bound part had too many values and is bound to its hull.
    widened: bool,
}

impl IndexRanges {
    /// True if the whole index has to be read.
    pub(crate) fn is_full(&self) -> bool {
        self.parts == 0 && !self.ranges.is_empty()
    }
}

/// The ranges that `conditions` (a conjunction) leave of the index with `layout`.
pub(crate) fn index_ranges(
    conditions: &[Term],
    layout: &KeyLayout,
    table: &TableDefinition,
) -> IndexRanges {
    let mut sets: BTreeMap<usize, ColumnSet> = BTreeMap::new();
    let mut alternatives: Option<&[Term]> = None;
    for term in conditions.iter().flat_map(conjuncts) {
        match term {
            Term::Column { column, set, .. } => intersect_into(&mut sets, *column, set, table),
            // One OR over several columns can be followed: the first that the index can use.
            Term::Or(branches) if alternatives.is_none() && branches.len() <= MAX_BRANCHES => {
                if branches.is_empty()
                    || branches
                        .iter()
                        .all(|branch| binds_first_part(branch, layout, &sets))
                {
                    alternatives = Some(branches);
                }
            }
            _ => {}
        }
    }
    let Some(branches) = alternatives else {
        let mut found = compose(&sets, layout);
        found.consumed = consumed(conditions, layout, &found);
        found.ranges = disjoint(found.ranges);
        return found;
    };
    let mut all = IndexRanges {
        ranges: Vec::new(),
        parts: 0,
        equal_parts: 0,
        constant_parts: 0,
        consumed: Vec::new(),
        widened: false,
    };
    let mut shortest: Option<IndexRanges> = None;
    for branch in branches {
        let mut sets = sets.clone();
        for term in conjuncts(branch) {
            if let Term::Column { column, set, .. } = term {
                intersect_into(&mut sets, *column, set, table);
            }
        }
        let found = compose(&sets, layout);
        all.ranges.extend(found.ranges.iter().cloned());
        if found.ranges.is_empty() {
            continue;
        }
        all.parts = all.parts.max(found.parts);
        if shortest
            .as_ref()
            .is_none_or(|shortest| found.parts < shortest.parts)
        {
            shortest = Some(found);
        }
    }
    all.ranges = disjoint(all.ranges);
    if let Some(shortest) = shortest {
        if shortest.is_full() {
            return full();
        }
        // What binds every branch also binds them together. The OR itself is tested again.
        let simple: Vec<Term> = conditions
            .iter()
            .map(|term| {
                if is_simple(term) {
                    term.clone()
                } else {
                    Term::Opaque
                }
            })
            .collect();
        all.consumed = consumed(&simple, layout, &shortest);
    }
    all
}

fn full() -> IndexRanges {
    IndexRanges {
        ranges: vec![KeyRange::all()],
        parts: 0,
        equal_parts: 0,
        constant_parts: 0,
        consumed: Vec::new(),
        widened: false,
    }
}

/// The term's own conjuncts.
fn conjuncts(term: &Term) -> Box<dyn Iterator<Item = &Term> + '_> {
    match term {
        Term::And(terms) => Box::new(terms.iter().flat_map(conjuncts)),
        other => Box::new(std::iter::once(other)),
    }
}

/// Sets on columns under AND only.
fn is_simple(term: &Term) -> bool {
    conjuncts(term).all(|term| matches!(term, Term::Column { .. }))
}

fn intersect_into(
    sets: &mut BTreeMap<usize, ColumnSet>,
    column: usize,
    set: &ColumnSet,
    table: &TableDefinition,
) {
    let collation = table.columns[column].ty.collation();
    let merged = match sets.get(&column) {
        Some(known) => known.intersect(set, collation),
        None => set.clone(),
    };
    sets.insert(column, merged);
}

/// Whether a branch of an OR helps with this index: it binds the first part that the other conditions leave open.
fn binds_first_part(branch: &Term, layout: &KeyLayout, sets: &BTreeMap<usize, ColumnSet>) -> bool {
    let open = layout.parts.iter().find_map(|part| {
        let column = part.column?;
        let bound = sets.get(&column).is_some_and(|set| set.points().is_some());
        (!bound).then_some(column)
    });
    conjuncts(branch)
        .any(|term| matches!(term, Term::Column { column, .. } if Some(*column) == open))
}

/// The ranges of one conjunction of column sets.
fn compose(sets: &BTreeMap<usize, ColumnSet>, layout: &KeyLayout) -> IndexRanges {
    if sets.values().any(|set| set.intervals.is_empty()) {
        // Nothing is in the set of some column, whether or not it is in this index.
        return IndexRanges {
            ranges: Vec::new(),
            parts: 0,
            equal_parts: 0,
            constant_parts: 0,
            consumed: Vec::new(),
            widened: false,
        };
    }
    let mut prefixes: Vec<Vec<Value>> = vec![Vec::new()];
    let mut constant_parts = 0;
    for (position, part) in layout.parts.iter().enumerate() {
        let Some(set) = part.column.and_then(|column| sets.get(&column)) else {
            break;
        };
        let points = set
            .points()
            .filter(|points| prefixes.len() * points.len() <= MAX_RANGES);
        let Some(points) = points else {
            let widened = prefixes.len().saturating_mul(set.intervals.len()) > MAX_RANGES;
            let ranges = last_part(&prefixes, set, layout, widened);
            return IndexRanges {
                ranges,
                parts: position + 1,
                equal_parts: position,
                constant_parts,
                consumed: Vec::new(),
                widened,
            };
        };
        if points.len() == 1 && constant_parts == position {
            constant_parts += 1;
        }
        let extend = |prefix: &Vec<Value>| {
            let prefix = prefix.clone();
            points
                .iter()
                .map(move |point| prefix.iter().cloned().chain([point.clone()]).collect())
                .collect::<Vec<_>>()
        };
        prefixes = prefixes.iter().flat_map(extend).collect();
    }
    let parts = prefixes.first().map_or(0, Vec::len);
    if parts == 0 {
        return full();
    }
    let ranges = prefixes
        .iter()
        .map(|prefix| layout.range(prefix, None).range)
        .collect();
    IndexRanges {
        ranges,
        parts,
        equal_parts: parts,
        constant_parts,
        consumed: Vec::new(),
        widened: false,
    }
}

/// The ranges when the part after the prefixes is bound to a set that is not only single values.
fn last_part(
    prefixes: &[Vec<Value>],
    set: &ColumnSet,
    layout: &KeyLayout,
    widened: bool,
) -> Vec<KeyRange> {
    let hull;
    let mut intervals = set.intervals.as_slice();
    if widened {
        hull = self::hull(intervals);
        intervals = &hull;
    }
    let mut ranges = Vec::with_capacity(prefixes.len() * intervals.len());
    for prefix in prefixes {
        for interval in intervals {
            let encoded = match (interval, &set.starts_with) {
                (Interval::Null, _) => {
                    let with_null: Vec<Value> =
                        prefix.iter().cloned().chain([Value::Null]).collect();
                    layout.range(&with_null, None)
                }
                // One LIKE prefix bounds all the intervals: they are not looked at further.
                (Interval::Range { .. }, Some(text)) => {
                    layout.range(prefix, Some(&PartBounds::StartsWith(text.clone())))
                }
                (Interval::Range { lower, upper }, None) => {
                    let bounds = PartBounds::Between {
                        lower: lower.clone(),
                        upper: upper.clone(),
                    };
                    layout.range(prefix, Some(&bounds))
                }
            };
            ranges.push(encoded.range);
        }
    }
    ranges
}

/// One interval from the first value to the last, and NULL by itself.
fn hull(intervals: &[Interval]) -> Vec<Interval> {
    let mut hull = Vec::new();
    if intervals.first() == Some(&Interval::Null) {
        hull.push(Interval::Null);
    }
    let mut bounds: Option<(Bound<Value>, Bound<Value>)> = None;
    for interval in intervals {
        if let Interval::Range { lower, upper } = interval {
            bounds = Some((
                bounds.map_or(lower.clone(), |(first, _)| first),
                upper.clone(),
            ));
        }
    }
    hull.extend(bounds.map(|(lower, upper)| Interval::Range { lower, upper }));
    hull
}

/// Which conditions the ranges say completely: those whose columns are all among the bound parts, and nothing about
/// them was widened.
fn consumed(conditions: &[Term], layout: &KeyLayout, found: &IndexRanges) -> Vec<usize> {
    if found.ranges.is_empty() {
        return (0..conditions.len()).collect();
    }
    let says = |column: usize| {
        let part = layout.parts[..found.parts]
            .iter()
            .position(|part| part.column == Some(column));
        let exactly_bound = found.parts - usize::from(found.widened);
        part.is_some_and(|part| part < exactly_bound && layout.parts[part].prefix_length.is_none())
    };
    let is_consumed = |term: &Term| {
        is_simple(term)
            && conjuncts(term).all(|term| match term {
                Term::Column { column, set, exact } => {
                    *exact && says(*column) && set.starts_with.is_none()
                }
                _ => false,
            })
    };
    conditions
        .iter()
        .enumerate()
        .filter(|(_, term)| is_consumed(term))
        .map(|(position, _)| position)
        .collect()
}

/// Sorts ranges by their lower bounds, drops empty ones and merges those that overlap.
fn disjoint(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    let lower_key = |range: &KeyRange| match &range.lower {
        Bound::Unbounded => (Vec::new(), 0),
        Bound::Included(key) => (key.clone(), 1),
        Bound::Excluded(key) => (key.clone(), 2),
    };
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_cached_key(lower_key);
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
