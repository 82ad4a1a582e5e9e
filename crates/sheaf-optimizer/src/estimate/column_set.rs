//! Sets of values of one column: what a condition on that column leaves over.
//!
//! A set is a list of disjoint [`Interval`]s in the column's order. AND intersects sets, and OR unites them. A range of
//! an index is then read off part by part. Values of string columns are sort keys ([`sheaf_table::key_range`]).

use std::cmp::Ordering;
use std::ops::Bound;

use sheaf_access::{CompareOp, EncodedCondition};
use sheaf_table::text_of_sort_key;
use sheaf_types::{ColumnType, Value};

use crate::logical::literal::Bounds;

/// A run of values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Interval {
    /// NULL alone.
    Null,
    /// Values that are not NULL. With equal included bounds: one value.
    Range {
        lower: Bound<Value>,
        upper: Bound<Value>,
    },
}

impl Interval {
    pub(crate) fn of_point(value: Value) -> Interval {
        Interval::Range {
            lower: Bound::Included(value.clone()),
            upper: Bound::Included(value),
        }
    }

    /// `None` if there is nothing between the bounds.
    pub(crate) fn within(lower: Bound<Value>, upper: Bound<Value>) -> Option<Interval> {
        (!is_empty(&lower, &upper)).then_some(Interval::Range { lower, upper })
    }

    /// The only value in it, if there is one.
    fn point(&self) -> Option<&Value> {
        static NULL: Value = Value::Null;
        match self {
            Interval::Null => Some(&NULL),
            Interval::Range {
                lower: Bound::Included(a),
                upper: Bound::Included(b),
            } if a == b => Some(a),
            Interval::Range { .. } => None,
        }
    }
}

/// The set of values of a column that a condition accepts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ColumnSet {
    /// Ascending and disjoint, NULL first.
    pub intervals: Vec<Interval>,
    /// Values must also start with this text (LIKE 'text%'), under the column's collation. A superset: the condition
    /// itself has to be tested again.
    pub starts_with: Option<String>,
}

/// Order of two values of a column that are not NULL.
pub(crate) fn compare(a: &Value, b: &Value) -> Ordering {
    a.compare_same_type(b).unwrap_or(Ordering::Equal)
}

impl ColumnSet {
    pub(crate) fn nothing() -> ColumnSet {
        ColumnSet {
            intervals: Vec::new(),
            starts_with: None,
        }
    }

    pub(crate) fn null() -> ColumnSet {
        ColumnSet {
            intervals: vec![Interval::Null],
            starts_with: None,
        }
    }

    pub(crate) fn not_null() -> ColumnSet {
        ColumnSet::between(Bound::Unbounded, Bound::Unbounded)
    }

    pub(crate) fn point(value: Value) -> ColumnSet {
        ColumnSet::between(Bound::Included(value.clone()), Bound::Included(value))
    }

    pub(crate) fn between(lower: Bound<Value>, upper: Bound<Value>) -> ColumnSet {
        ColumnSet {
            intervals: vec![Interval::Range { lower, upper }],
            starts_with: None,
        }
    }

    pub(crate) fn starts_with(text: String) -> ColumnSet {
        ColumnSet {
            starts_with: Some(text),
            ..ColumnSet::not_null()
        }
    }

    pub(crate) fn of_bounds(bounds: Bounds) -> ColumnSet {
        match bounds {
            Bounds::Never => ColumnSet::nothing(),
            Bounds::Within { lower, upper } => ColumnSet::between(lower, upper),
            Bounds::Except(value) => ColumnSet {
                intervals: vec![
                    Interval::Range {
                        lower: Bound::Unbounded,
                        upper: Bound::Excluded(value.clone()),
                    },
                    Interval::Range {
                        lower: Bound::Excluded(value),
                        upper: Bound::Unbounded,
                    },
                ],
                starts_with: None,
            },
        }
    }

    /// Every interval is one value or NULL; then these values.
    pub(crate) fn points(&self) -> Option<Vec<Value>> {
        let points = self.point_values()?;
        Some(points.into_iter().cloned().collect())
    }

    /// The same where the values stand.
    pub(crate) fn point_values(&self) -> Option<Vec<&Value>> {
        match self.starts_with {
            Some(_) => None,
            None => self.intervals.iter().map(Interval::point).collect(),
        }
    }

    /// Whether every interval is one value or NULL.
    pub(crate) fn is_points(&self) -> bool {
        self.starts_with.is_none() && self.intervals.iter().all(|one| one.point().is_some())
    }

    /// Values in both sets. With two LIKE prefixes the longer one is kept, which is a superset of what both say.
    pub(crate) fn intersect(&self, other: &ColumnSet) -> ColumnSet {
        let mut intervals = Vec::new();
        // Both ascend and are disjoint: what ends first meets nothing further on the other side.
        let (mut left, mut right) = (self.intervals.iter(), other.intervals.iter());
        let (mut a, mut b) = (left.next(), right.next());
        while let (Some(one), Some(another)) = (a, b) {
            match (one, another) {
                (Interval::Null, Interval::Null) => {
                    intervals.push(Interval::Null);
                    (a, b) = (left.next(), right.next());
                }
                (Interval::Null, Interval::Range { .. }) => a = left.next(),
                (Interval::Range { .. }, Interval::Null) => b = right.next(),
                (
                    Interval::Range {
                        lower: l1,
                        upper: u1,
                    },
                    Interval::Range {
                        lower: l2,
                        upper: u2,
                    },
                ) => {
                    let lower = match compare_lower(l1.as_ref(), l2.as_ref()) {
                        Ordering::Less => l2,
                        _ => l1,
                    };
                    let ends_first = compare_upper(u1.as_ref(), u2.as_ref()) == Ordering::Less;
                    let upper = if ends_first { u1 } else { u2 };
                    if !is_empty(lower, upper) {
                        intervals.push(Interval::Range {
                            lower: lower.clone(),
                            upper: upper.clone(),
                        });
                    }
                    match ends_first {
                        true => a = left.next(),
                        false => b = right.next(),
                    }
                }
            }
        }
        let starts_with = match (&self.starts_with, &other.starts_with) {
            (Some(a), Some(b)) => Some(if a.len() >= b.len() { a } else { b }.clone()),
            (a, b) => a.as_ref().or(b.as_ref()).cloned(),
        };
        ColumnSet {
            intervals,
            starts_with,
        }
    }

    /// Values in all of the sets. They are intersected in pairs, and these in pairs again. So of many sets that leave
    /// out one value each, as NOT IN has them, none is walked more often than needed.
    pub(crate) fn intersection_of(sets: &[&ColumnSet]) -> Option<ColumnSet> {
        let pairs = sets.chunks(2).map(|pair| match pair {
            [one, other] => one.intersect(other),
            pair => pair[0].clone(),
        });
        ColumnSet::intersection(pairs.collect())
    }

    /// The same of sets that nobody else has.
    pub(crate) fn intersection(mut sets: Vec<ColumnSet>) -> Option<ColumnSet> {
        while sets.len() > 1 {
            let mut pairs = Vec::with_capacity(sets.len().div_ceil(2));
            let mut rest = sets.into_iter();
            while let Some(set) = rest.next() {
                pairs.push(match rest.next() {
                    Some(other) => set.intersect(&other),
                    None => set,
                });
            }
            sets = pairs;
        }
        sets.pop()
    }

    /// Values in one of the sets. `None` if the union has no such form: with a LIKE prefix on only one side.
    #[cfg(test)]
    pub(crate) fn unite(self, other: ColumnSet) -> Option<ColumnSet> {
        if self.starts_with != other.starts_with {
            return None;
        }
        let intervals = self.intervals.into_iter().chain(other.intervals).collect();
        Some(ColumnSet::of_intervals(intervals, self.starts_with))
    }

    /// The set of all values in some intervals, which come in any order and may overlap.
    pub(crate) fn of_intervals(mut all: Vec<Interval>, starts_with: Option<String>) -> ColumnSet {
        all.sort_by(|a, b| match (a, b) {
            (Interval::Null, Interval::Null) => Ordering::Equal,
            (Interval::Null, _) => Ordering::Less,
            (_, Interval::Null) => Ordering::Greater,
            (Interval::Range { lower: a, .. }, Interval::Range { lower: b, .. }) => {
                compare_lower(a.as_ref(), b.as_ref())
            }
        });
        let mut merged: Vec<Interval> = Vec::with_capacity(all.len());
        for next in all {
            match (merged.last_mut(), next) {
                (Some(Interval::Null), Interval::Null) => {}
                (Some(Interval::Range { upper: last, .. }), Interval::Range { lower, upper })
                    if touches(last, &lower) =>
                {
                    if compare_upper(last.as_ref(), upper.as_ref()) == Ordering::Less {
                        *last = upper;
                    }
                }
                (_, next) => merged.push(next),
            }
        }
        ColumnSet {
            intervals: merged,
            starts_with,
        }
    }

    /// The set as a condition on encoded bytes; `None` if it has a LIKE prefix, or a string whose text is not known.
    pub(crate) fn encoded(&self, column: usize, ty: &ColumnType) -> Option<EncodedCondition> {
        if self.starts_with.is_some() {
            return None;
        }
        if let Some(points) = self.point_values()
            && points.len() > 1
            && !matches!(self.intervals.first(), Some(Interval::Null))
        {
            let values = points
                .iter()
                .map(|value| column_value(value, ty))
                .collect::<Option<_>>()?;
            return Some(EncodedCondition::In { column, values });
        }
        // Of many texts that a value must not be, a set of them is tested faster than the ranges between them.
        if self.intervals.len() > MAX_RANGES_OF_TEXTS && self.are_texts() && self.is_complement() {
            return None;
        }
        let mut terms = Vec::new();
        let mut ranges = Vec::new();
        for interval in &self.intervals {
            let condition = encoded_interval(interval, column, ty)?;
            match interval {
                Interval::Null => terms.push(condition),
                Interval::Range { lower, upper } => ranges.push(Within {
                    lower: lower.as_ref(),
                    upper: upper.as_ref(),
                    condition,
                }),
            }
        }
        terms.extend(any_within(column, ty, ranges));
        Some(if terms.len() == 1 {
            terms.remove(0)
        } else {
            EncodedCondition::Or(terms)
        })
    }

    /// Whether every value is in the set but for some points.
    fn is_complement(&self) -> bool {
        let is_next = |pair: &[Interval]| match pair {
            [
                Interval::Range {
                    upper: Bound::Excluded(a),
                    ..
                },
                Interval::Range {
                    lower: Bound::Excluded(b),
                    ..
                },
            ] => a == b,
            _ => false,
        };
        self.intervals.windows(2).all(is_next)
    }

    fn are_texts(&self) -> bool {
        let bound = self.intervals.iter().find_map(|interval| match interval {
            Interval::Range {
                upper: Bound::Excluded(value),
                ..
            } => Some(value),
            _ => None,
        });
        matches!(bound, Some(Value::Text(_) | Value::Bytes(_)))
    }

    /// From the least value that is not NULL to the greatest; `None` if there is none, or NULL is in the set.
    pub(crate) fn hull(&self) -> Option<(Bound<&Value>, Bound<&Value>)> {
        match (self.intervals.first()?, self.intervals.last()?) {
            (Interval::Range { lower, .. }, Interval::Range { upper, .. }) => {
                Some((lower.as_ref(), upper.as_ref()))
            }
            _ => None,
        }
    }
}

/// Ranges of texts that are tested one by one.
const MAX_RANGES_OF_TEXTS: usize = 256;

/// A condition that is true only for values of one column between two bounds.
pub(crate) struct Within<'v> {
    pub lower: Bound<&'v Value>,
    pub upper: Bound<&'v Value>,
    pub condition: EncodedCondition,
}

/// How many lower and upper bounds differ: what [`any_within`] saves of conditions with these.
pub(crate) fn distinct_bounds<'v>(
    hulls: impl Iterator<Item = (Bound<&'v Value>, Bound<&'v Value>)>,
) -> usize {
    let (mut lower, mut upper): (Vec<_>, Vec<_>) = hulls.unzip();
    lower.sort_by(|a, b| compare_lower(*a, *b));
    lower.dedup_by(|a, b| compare_lower(*a, *b) == Ordering::Equal);
    upper.sort_by(|a, b| compare_upper(*a, *b));
    upper.dedup_by(|a, b| compare_upper(*a, *b) == Ordering::Equal);
    lower.len() + upper.len()
}

/// Conditions of an OR that are tested one after the other.
const FEW_CONDITIONS: usize = 8;

/// The disjunction of conditions, a tree in which a value meets few of them, however many there are:
///
/// ```text
///   c <= 7 AND (c = 1 OR c = 3 OR c = 7)  OR  c >= 9 AND (c = 9 OR ...)
/// ```
///
/// The column has type `ty`. `None` if there are no conditions.
pub(crate) fn any_within(
    column: usize,
    ty: &ColumnType,
    mut conditions: Vec<Within<'_>>,
) -> Option<EncodedCondition> {
    conditions.sort_by(|a, b| compare_lower(a.lower, b.lower));
    halved(column, ty, conditions)
}

fn halved(
    column: usize,
    ty: &ColumnType,
    mut conditions: Vec<Within<'_>>,
) -> Option<EncodedCondition> {
    if conditions.len() <= FEW_CONDITIONS {
        let mut conditions: Vec<_> = conditions.into_iter().map(|one| one.condition).collect();
        return match conditions.len() {
            0 => None,
            1 => conditions.pop(),
            _ => Some(EncodedCondition::Or(conditions)),
        };
    }
    let behind = conditions.split_off(conditions.len() / 2);
    let upper = conditions.iter().map(|one| one.upper);
    let upper = upper.max_by(|a, b| compare_upper(*a, *b))?;
    let lower = behind.first()?.lower;
    let bounded = |lower: Bound<&Value>, upper: Bound<&Value>, half| {
        let bounds = Interval::Range {
            lower: lower.cloned(),
            upper: upper.cloned(),
        };
        match encoded_interval(&bounds, column, ty) {
            Some(bounds) => EncodedCondition::And(vec![bounds, half]),
            // A bound that cannot be said saves nothing.
            None => half,
        }
    };
    Some(EncodedCondition::Or(vec![
        bounded(Bound::Unbounded, upper, halved(column, ty, conditions)?),
        bounded(lower, Bound::Unbounded, halved(column, ty, behind)?),
    ]))
}

/// A value as the access methods take it: strings as text.
pub(crate) fn column_value(value: &Value, ty: &ColumnType) -> Option<Value> {
    match (value, ty.collation()) {
        (Value::Bytes(key), Some(collation)) => text_of_sort_key(key, collation).map(Value::Text),
        (value, _) => Some(value.clone()),
    }
}

fn encoded_interval(
    interval: &Interval,
    column: usize,
    ty: &ColumnType,
) -> Option<EncodedCondition> {
    let Interval::Range { lower, upper } = interval else {
        return Some(EncodedCondition::IsNull { column });
    };
    let compare = |op, value: &Value| -> Option<EncodedCondition> {
        Some(EncodedCondition::Compare {
            column,
            op,
            value: column_value(value, ty)?,
        })
    };
    if let (Bound::Included(a), Bound::Included(b)) = (lower, upper)
        && a == b
    {
        return compare(CompareOp::Eq, a);
    }
    let mut terms = Vec::new();
    match lower {
        Bound::Included(value) => terms.push(compare(CompareOp::GreaterOrEqual, value)?),
        Bound::Excluded(value) => terms.push(compare(CompareOp::Greater, value)?),
        Bound::Unbounded => {}
    }
    match upper {
        Bound::Included(value) => terms.push(compare(CompareOp::LessOrEqual, value)?),
        Bound::Excluded(value) => terms.push(compare(CompareOp::Less, value)?),
        Bound::Unbounded => {}
    }
    Some(match terms.len() {
        0 => EncodedCondition::IsNotNull { column },
        1 => terms.remove(0),
        _ => EncodedCondition::And(terms),
    })
}

/// Order of two lower bounds: the one that lets more in is less.
fn compare_lower(a: Bound<&Value>, b: Bound<&Value>) -> Ordering {
    match (a, b) {
        (Bound::Unbounded, Bound::Unbounded) => Ordering::Equal,
        (Bound::Unbounded, _) => Ordering::Less,
        (_, Bound::Unbounded) => Ordering::Greater,
        (Bound::Included(x) | Bound::Excluded(x), Bound::Included(y) | Bound::Excluded(y)) => {
            let is_exclusive = |bound: Bound<&Value>| !matches!(bound, Bound::Included(_));
            compare(x, y).then_with(|| is_exclusive(a).cmp(&is_exclusive(b)))
        }
    }
}

/// Order of two upper bounds: the one that lets more in is greater.
fn compare_upper(a: Bound<&Value>, b: Bound<&Value>) -> Ordering {
    match (a, b) {
        (Bound::Unbounded, Bound::Unbounded) => Ordering::Equal,
        (Bound::Unbounded, _) => Ordering::Greater,
        (_, Bound::Unbounded) => Ordering::Less,
        (Bound::Included(x) | Bound::Excluded(x), Bound::Included(y) | Bound::Excluded(y)) => {
            let is_inclusive = |bound: Bound<&Value>| matches!(bound, Bound::Included(_));
            compare(x, y).then_with(|| is_inclusive(a).cmp(&is_inclusive(b)))
        }
    }
}

fn is_empty(lower: &Bound<Value>, upper: &Bound<Value>) -> bool {
    let (Bound::Included(x) | Bound::Excluded(x)) = lower else {
        return false;
    };
    let (Bound::Included(y) | Bound::Excluded(y)) = upper else {
        return false;
    };
    let both = matches!((lower, upper), (Bound::Included(_), Bound::Included(_)));
    match compare(x, y) {
        Ordering::Less => false,
        Ordering::Equal => !both,
        Ordering::Greater => true,
    }
}

/// Whether an interval that ends at `upper` and a later one that starts at `lower` leave no value between them.
fn touches(upper: &Bound<Value>, lower: &Bound<Value>) -> bool {
    let (Bound::Included(x) | Bound::Excluded(x)) = upper else {
        return true;
    };
    let (Bound::Included(y) | Bound::Excluded(y)) = lower else {
        return true;
    };
    let neither = matches!((upper, lower), (Bound::Excluded(_), Bound::Excluded(_)));
    match compare(y, x) {
        Ordering::Less => true,
        Ordering::Equal => !neither,
        Ordering::Greater => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Bound::{Excluded, Included, Unbounded};

    fn range(lower: Bound<i64>, upper: Bound<i64>) -> ColumnSet {
        ColumnSet::between(lower.map(Value::Int), upper.map(Value::Int))
    }

    fn point(value: i64) -> ColumnSet {
        ColumnSet::point(Value::Int(value))
    }

    #[test]
    fn and_intersects() {
        let low = range(Included(3), Unbounded);
        let high = range(Unbounded, Excluded(7));
        assert_eq!(low.intersect(&high), range(Included(3), Excluded(7)));
        assert_eq!(point(7).intersect(&high), ColumnSet::nothing());
        assert_eq!(ColumnSet::null().intersect(&high), ColumnSet::nothing());
    }

    #[test]
    fn or_unites_and_merges() {
        let set = point(5)
            .unite(point(1))
            .unwrap()
            .unite(range(Excluded(5), Included(9)))
            .unwrap();
        assert_eq!(
            set.intervals,
            [
                point(1).intervals,
                range(Included(5), Included(9)).intervals
            ]
            .concat()
        );
        let with_null = set.unite(ColumnSet::null()).unwrap();
        assert_eq!(with_null.intervals[0], Interval::Null);
        let open = range(Unbounded, Excluded(5))
            .unite(range(Excluded(5), Unbounded))
            .unwrap();
        assert_eq!(open.intervals.len(), 2, "5 itself is not in it");
    }

    #[test]
    fn points_are_found() {
        let set = point(2).unite(point(1)).unwrap();
        assert_eq!(set.points(), Some(vec![Value::Int(1), Value::Int(2)]));
        assert_eq!(range(Included(1), Included(2)).points(), None);
    }

    #[test]
    fn many_sets_at_once_are_what_they_are_one_by_one() {
        let except = |value: i64| {
            ColumnSet::of_bounds(crate::logical::literal::Bounds::Except(Value::Int(value)))
        };
        let values = [5, 3, 9, 3, 0, 7, 8];
        let together = ColumnSet::intersection(values.map(except).to_vec());
        let mut one_by_one = ColumnSet::not_null();
        for value in values {
            one_by_one = one_by_one.intersect(&except(value));
        }
        assert_eq!(together, Some(one_by_one.clone()));
        assert_eq!(one_by_one.intervals.len(), 7);
        assert_eq!(ColumnSet::intersection(Vec::new()), None);
        let points = values.iter().flat_map(|value| point(*value).intervals);
        let united = ColumnSet::of_intervals(points.collect(), None);
        assert_eq!(united.intersect(&one_by_one), ColumnSet::nothing());
        let sorted = [0, 3, 5, 7, 8, 9].map(Value::Int).to_vec();
        assert_eq!(united.points(), Some(sorted));
    }

    #[test]
    fn an_intersection_finds_every_pair() {
        let set = |bounds: &[(i64, i64)]| {
            let all = bounds.iter();
            let all = all.flat_map(|(a, b)| range(Included(*a), Excluded(*b)).intervals);
            ColumnSet::of_intervals(all.collect(), None)
        };
        let one = set(&[(0, 10), (20, 30), (40, 41)]);
        let other = set(&[(5, 25), (27, 28), (29, 60)]);
        let both = set(&[(5, 10), (20, 25), (27, 28), (29, 30), (40, 41)]);
        assert_eq!(one.intersect(&other), both);
        assert_eq!(other.intersect(&one), both);
    }
}
