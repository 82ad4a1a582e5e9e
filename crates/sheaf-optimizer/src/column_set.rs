//! Sets of values of one column: what a condition on that column leaves over.
//!
//! A set is a list of disjoint [`Interval`]s in the column's order. AND intersects sets, OR unites them; a range of an
//! index is then read off part by part. Values of string columns are sort keys ([`crate::key_bounds`]).

use std::cmp::Ordering;
use std::ops::Bound;

use sheaf_access::{CompareOp, EncodedCondition};
use sheaf_table::{ColumnType, Value};

use crate::key_bounds::text_of_sort_key;

use crate::literal::Bounds;

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

    pub(crate) fn everything() -> ColumnSet {
        let mut set = ColumnSet::not_null();
        set.intervals.insert(0, Interval::Null);
        set
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
        if self.starts_with.is_some() {
            return None;
        }
        let point = |interval: &Interval| match interval {
            Interval::Null => Some(Value::Null),
            Interval::Range {
                lower: Bound::Included(a),
                upper: Bound::Included(b),
            } if a == b => Some(a.clone()),
            Interval::Range { .. } => None,
        };
        self.intervals.iter().map(point).collect()
    }

    /// Values in both sets. With two LIKE prefixes the longer one is kept, which is a superset of what both say.
    pub(crate) fn intersect(&self, other: &ColumnSet) -> ColumnSet {
        let mut intervals = Vec::new();
        for a in &self.intervals {
            for b in &other.intervals {
                match (a, b) {
                    (Interval::Null, Interval::Null) => intervals.push(Interval::Null),
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
                        let lower = if compare_lower(l1, l2) == Ordering::Less {
                            l2
                        } else {
                            l1
                        };
                        let upper = if compare_upper(u1, u2) == Ordering::Less {
                            u1
                        } else {
                            u2
                        };
                        if !is_empty(lower, upper) {
                            intervals.push(Interval::Range {
                                lower: lower.clone(),
                                upper: upper.clone(),
                            });
                        }
                    }
                    _ => {}
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

    /// Values in one of the sets. `None` if the union has no such form: with a LIKE prefix on only one side.
    pub(crate) fn unite(self, other: ColumnSet) -> Option<ColumnSet> {
        if self.starts_with != other.starts_with {
            return None;
        }
        let mut all: Vec<Interval> = self.intervals.into_iter().chain(other.intervals).collect();
        all.sort_by(|a, b| match (a, b) {
            (Interval::Null, Interval::Null) => Ordering::Equal,
            (Interval::Null, _) => Ordering::Less,
            (_, Interval::Null) => Ordering::Greater,
            (Interval::Range { lower: a, .. }, Interval::Range { lower: b, .. }) => {
                compare_lower(a, b)
            }
        });
        let mut merged: Vec<Interval> = Vec::with_capacity(all.len());
        for next in all {
            match (merged.last_mut(), next) {
                (Some(Interval::Null), Interval::Null) => {}
                (Some(Interval::Range { upper: last, .. }), Interval::Range { lower, upper })
                    if touches(last, &lower) =>
                {
                    if compare_upper(last, &upper) == Ordering::Less {
                        *last = upper;
                    }
                }
                (_, next) => merged.push(next),
            }
        }
        Some(ColumnSet {
            intervals: merged,
            starts_with: self.starts_with,
        })
    }

    /// The set as a condition on encoded bytes; `None` if it has a LIKE prefix, or a string whose text is not known.
    pub(crate) fn encoded(&self, column: usize, ty: &ColumnType) -> Option<EncodedCondition> {
        if self.starts_with.is_some() {
            return None;
        }
        if let Some(points) = self.points()
            && points.len() > 1
            && !points.contains(&Value::Null)
        {
            let values = points
                .iter()
                .map(|value| column_value(value, ty))
                .collect::<Option<_>>()?;
            return Some(EncodedCondition::In { column, values });
        }
        let terms = self
            .intervals
            .iter()
            .map(|interval| encoded_interval(interval, column, ty));
        let mut terms = terms.collect::<Option<Vec<_>>>()?;
        Some(if terms.len() == 1 {
            terms.remove(0)
        } else {
            EncodedCondition::Or(terms)
        })
    }
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
fn compare_lower(a: &Bound<Value>, b: &Bound<Value>) -> Ordering {
    match (a, b) {
        (Bound::Unbounded, Bound::Unbounded) => Ordering::Equal,
        (Bound::Unbounded, _) => Ordering::Less,
        (_, Bound::Unbounded) => Ordering::Greater,
        (Bound::Included(x) | Bound::Excluded(x), Bound::Included(y) | Bound::Excluded(y)) => {
            let inclusive = |bound: &Bound<Value>| !matches!(bound, Bound::Included(_));
            compare(x, y).then_with(|| inclusive(a).cmp(&inclusive(b)))
        }
    }
}

/// Order of two upper bounds: the one that lets more in is greater.
fn compare_upper(a: &Bound<Value>, b: &Bound<Value>) -> Ordering {
    match (a, b) {
        (Bound::Unbounded, Bound::Unbounded) => Ordering::Equal,
        (Bound::Unbounded, _) => Ordering::Greater,
        (_, Bound::Unbounded) => Ordering::Less,
        (Bound::Included(x) | Bound::Excluded(x), Bound::Included(y) | Bound::Excluded(y)) => {
            let inclusive = |bound: &Bound<Value>| matches!(bound, Bound::Included(_));
            compare(x, y).then_with(|| inclusive(a).cmp(&inclusive(b)))
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
}
