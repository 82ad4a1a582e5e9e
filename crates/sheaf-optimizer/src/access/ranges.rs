//! From conditions to key ranges of an index.
//!
//! Parts are taken in key order. As long as a part is bound to single values (`=`, IN, IS NULL), every combination of
//! them is a prefix, and the next part can be bound too. The first part that is bound to a real range (`<`, BETWEEN,
//! LIKE 'p%') ends the ranges. With KEY (a, b, c):
//!
//! ```text
//!   a = 1 AND b IN (2, 3) AND c > 4     [1 2 >4] [1 3 >4]     three parts
//!   a > 1 AND b = 2                     [>1]                  one part; b = 2 is left to the index condition
//!   (a = 1 AND b = 2) OR a = 5          [1 2] [5]             branches of an OR, each by itself
//! ```
//!
//! LIKE is such a range, too. But where the index has a prefix of the column that is no longer than the text, all that
//! match have one key, and the part behind it can be bound. With KEY (s(4), b):
//!
//! ```text
//!   s LIKE 'abc:%' AND b > 4      ['abc:' >4]     two parts; s LIKE 'abc:%' is tested again
//! ```
//!
//! A condition is *consumed* when the ranges hold exactly the entries that it accepts; it is not tested again.

use std::borrow::Borrow;
use std::ops::Bound;
use std::sync::Arc;

use sheaf_storage::KeyRange;
use sheaf_table::{KeyLayout, KeyPart, Within};
use sheaf_types::Value;

use crate::access::column_sets::{ColumnSets, column_sets, with_branch};
use crate::access::disjoint::disjoint;
use crate::estimate::column_set::{ColumnSet, Interval};
use crate::estimate::condition::{Term, conjuncts};

/// Ranges of one index for one statement, at most: about 10 MiB of keys. Beyond that a part is bound to its hull, and
/// an OR is not followed.
pub(crate) const MAX_RANGES: usize = 100_000;

/// Branches of an OR that are tested on each row, whether or not the ranges say all of it.
const MAX_TESTED_BRANCHES: usize = 64;

/// The ranges of an index that hold every row which the conditions accept.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct IndexRanges {
    /// Ascending and disjoint. One unbounded range: the conditions say nothing about this index. Empty: they
    /// contradict each other. All that compare ways to read the index share them.
    pub ranges: Arc<Vec<KeyRange>>,
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
    /// The ranges are those of branches of an OR, which bind different parts.
    branched: bool,
    /// Columns that the ranges bind by the beginning of a LIKE alone, whatever else is said of them.
    like_columns: Vec<usize>,
}

impl IndexRanges {
    /// No condition binds the index.
    pub(crate) fn full() -> IndexRanges {
        IndexRanges {
            ranges: Arc::new(vec![KeyRange::all()]),
            ..IndexRanges::default()
        }
    }

    /// True if the whole index has to be read.
    pub(crate) fn is_full(&self) -> bool {
        self.parts == 0 && !self.ranges.is_empty()
    }

    /// Whether they bind the same parts in the same way, and leave the same conditions to be tested. All that a plan
    /// relies on follows from that, whatever the ranges are.
    pub(crate) fn has_shape_of(&self, other: &IndexRanges) -> bool {
        let Self {
            ranges: _,
            parts,
            equal_parts,
            constant_parts,
            consumed,
            widened,
            branched,
            like_columns,
        } = self;
        *parts == other.parts
            && *equal_parts == other.equal_parts
            && *constant_parts == other.constant_parts
            && *consumed == other.consumed
            && *widened == other.widened
            && *branched == other.branched
            && *like_columns == other.like_columns
    }

    /// Whether the ranges hold all that the conditions say of a column, if its part is among the exact ones.
    pub(crate) fn says_all_of(&self, column: usize) -> bool {
        !self.like_columns.contains(&column)
    }

    /// Leading parts of which nothing is to be said beyond the ranges.
    pub(crate) fn said_parts(&self) -> usize {
        self.parts - usize::from(self.widened)
    }

    /// Leading parts of which the ranges hold just what the conditions on them say together.
    pub(crate) fn exact_parts(&self) -> usize {
        if self.branched { 0 } else { self.said_parts() }
    }
}

/// The ranges that `conditions` (a conjunction) leave of the index with `layout`.
pub(crate) fn index_ranges(conditions: &[impl Borrow<Term>], layout: &KeyLayout) -> IndexRanges {
    let (sets, branches) = sets_and_branches(conditions, layout);
    let conditions = conditions.iter().map(Borrow::<Term>::borrow);
    branches
        .and_then(|branches| of_branches(conditions.clone(), &sets, branches, layout))
        .unwrap_or_else(|| {
            let (mut found, ranges) = compose(&sets, layout);
            found.consumed = consumed(conditions, layout, &found, ranges.is_empty());
            found.ranges = Arc::new(disjoint(ranges));
            found
        })
}

/// The ranges of all branches of an OR together; `None`: they are too many.
fn of_branches<'t>(
    conditions: impl Iterator<Item = &'t Term> + Clone,
    sets: &ColumnSets<'_>,
    branches: &[Term],
    layout: &KeyLayout,
) -> Option<IndexRanges> {
    let mut all = IndexRanges {
        branched: true,
        ..IndexRanges::default()
    };
    let mut ranges: Vec<KeyRange> = Vec::new();
    let mut shortest: Option<IndexRanges> = None;
    // To test many branches again would cost more than to read what they find.
    let mut are_said = branches.len() > MAX_TESTED_BRANCHES;
    for branch in branches {
        let (found, of_branch) = compose(&with_branch(sets, branch), layout);
        if ranges.len() + of_branch.len() > MAX_RANGES {
            return None;
        }
        are_said = are_said && {
            let is_nothing = of_branch.is_empty();
            !consumed(std::iter::once(branch), layout, &found, is_nothing).is_empty()
        };
        all.like_columns.extend(&found.like_columns);
        if of_branch.is_empty() {
            continue;
        }
        if found.parts == 0 {
            // The whole index.
            return Some(IndexRanges::full());
        }
        ranges.extend(of_branch);
        all.parts = all.parts.max(found.parts);
        if shortest
            .as_ref()
            .is_none_or(|shortest| found.parts < shortest.parts)
        {
            shortest = Some(found);
        }
    }
    all.like_columns.sort_unstable();
    all.like_columns.dedup();
    all.ranges = Arc::new(disjoint(ranges));
    if let Some(mut shortest) = shortest {
        shortest.like_columns.clone_from(&all.like_columns);
        // What binds every branch also binds them together. The OR itself is tested again, if that is not much.
        let simple = conditions.clone().map(|term| match is_simple(term) {
            true => term,
            false => &Term::Opaque,
        });
        all.consumed = consumed(simple, layout, &shortest, false);
        if are_said {
            let is_followed =
                |term: &Term| matches!(term, Term::Or(of) if std::ptr::eq(of.as_slice(), branches));
            all.consumed.extend(
                conditions
                    .enumerate()
                    .filter(|(_, term)| is_followed(term))
                    .map(|(at, _)| at),
            );
            all.consumed.sort_unstable();
        }
    }
    Some(all)
}

/// What `conditions` leave of each column, and the branches of the OR that the index follows, if there is one.
pub(crate) fn sets_and_branches<'c>(
    conditions: &'c [impl Borrow<Term>],
    layout: &KeyLayout,
) -> (ColumnSets<'c>, Option<&'c [Term]>) {
    let sets = column_sets(conditions);
    // The first part that the other conditions leave open.
    let open = layout.parts.iter().find_map(|part| {
        let column = part.column?;
        let bound = sets.get(column).is_some_and(|set| set.is_points());
        (!bound).then_some(column)
    });
    let binds_open = |branch: &Term| {
        conjuncts(branch)
            .any(|term| matches!(term, Term::Column { column, .. } if Some(*column) == open))
    };
    // One OR over several columns can be followed: the first that the index can use.
    let branches = conditions
        .iter()
        .flat_map(|term| conjuncts(term.borrow()))
        .find_map(|term| match term {
            Term::Or(branches)
                if branches.len() <= MAX_RANGES && branches.iter().all(binds_open) =>
            {
                Some(branches.as_slice())
            }
            _ => None,
        });
    (sets, branches)
}

/// Sets on columns under AND only.
pub(crate) fn is_simple(term: &Term) -> bool {
    conjuncts(term).all(|term| matches!(term, Term::Column { .. }))
}

/// The ranges of one conjunction of column sets, apart from what is to be said of them.
fn compose(sets: &ColumnSets<'_>, layout: &KeyLayout) -> (IndexRanges, Vec<KeyRange>) {
    if sets.values().any(|set| set.intervals.is_empty()) {
        // Nothing is in the set of some column, whether or not it is in this index.
        return (IndexRanges::default(), Vec::new());
    }
    // Of a range of keys that it has not yet.
    let likely_bytes = layout.likely_bytes();
    // The beginnings of keys, encoded.
    let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
    let mut parts = 0;
    let mut constant_parts = 0;
    // Parts in front of the first that is bound to the beginning of a LIKE: other values have the same key.
    let mut in_front_of_like = None;
    let mut like_columns = Vec::new();
    for (position, part) in layout.parts.iter().enumerate() {
        let Some(set) = part
            .column
            .and_then(|column| sets.get(column))
            .filter(|set| binds(set, part))
        else {
            break;
        };
        let points = set
            .point_values()
            .filter(|points| prefixes.len().saturating_mul(points.len()) <= MAX_RANGES);
        if points.is_none()
            && let Some(beginning) = beginning_of_next(sets, set, layout, position)
        {
            prefixes
                .iter_mut()
                .for_each(|prefix| prefix.extend(&beginning));
            parts = position + 1;
            in_front_of_like.get_or_insert(position);
            like_columns.extend(part.column);
            continue;
        }
        let Some(points) = points else {
            let widened = prefixes.len().saturating_mul(set.intervals.len()) > MAX_RANGES;
            like_columns.extend(part.column.filter(|_| set.starts_with.is_some()));
            let found = IndexRanges {
                parts: position + 1,
                equal_parts: in_front_of_like.unwrap_or(position),
                constant_parts,
                widened,
                like_columns,
                ..IndexRanges::default()
            };
            return (found, last_part(&prefixes, position, set, layout, widened));
        };
        if points.len() == 1 && constant_parts == position {
            constant_parts += 1;
        }
        // No key has NULL in a part that is NOT NULL.
        let points = points
            .into_iter()
            .filter(|point| part.nullable || !point.is_null());
        let mut longer = Vec::with_capacity(prefixes.len() * points.clone().count());
        for prefix in &prefixes {
            for point in points.clone() {
                let mut key = Vec::with_capacity(prefix.len() + likely_bytes);
                key.extend_from_slice(prefix);
                layout.encode_bound(position, point, &mut key);
                longer.push(key);
            }
        }
        prefixes = longer;
        parts = position + 1;
    }
    if parts == 0 {
        return (IndexRanges::full(), vec![KeyRange::all()]);
    }
    let found = IndexRanges {
        parts,
        equal_parts: in_front_of_like.unwrap_or(parts),
        constant_parts,
        like_columns,
        ..IndexRanges::default()
    };
    let ranges = prefixes.into_iter().map(KeyRange::of_prefix);
    (found, ranges.collect())
}

/// The key that all values in the set of part `position` have there, if it is that of a LIKE and conditions bind the
/// part behind it. Otherwise a LIKE is a range like any other.
pub(crate) fn beginning_of_next(
    sets: &ColumnSets<'_>,
    set: &ColumnSet,
    layout: &KeyLayout,
    position: usize,
) -> Option<Vec<u8>> {
    let text = set.starts_with.as_ref()?;
    let next = layout.parts.get(position + 1)?;
    let bound = sets.get(next.column?)?;
    let mut key = Vec::new();
    let is_one = binds(bound, next) && layout.encode_beginning(position, text, &mut key);
    is_one.then_some(key)
}

/// Whether a set bounds a part at all, and all its values can be encoded for it.
pub(crate) fn binds(set: &ColumnSet, part: &KeyPart) -> bool {
    let everything = set.starts_with.is_none()
        && !part.nullable
        && set.intervals.iter().any(|interval| {
            matches!(
                interval,
                Interval::Range {
                    lower: Bound::Unbounded,
                    upper: Bound::Unbounded
                }
            )
        });
    let value_usable = |bound: &Bound<Value>| match bound {
        Bound::Included(value) | Bound::Excluded(value) => part.takes(value),
        Bound::Unbounded => true,
    };
    !everything
        && set.intervals.iter().all(|interval| match interval {
            Interval::Null => true,
            Interval::Range { lower, upper } => value_usable(lower) && value_usable(upper),
        })
}

/// The ranges when part `position`, which comes after the prefixes, is bound to a set that is not only single values.
fn last_part(
    prefixes: &[Vec<u8>],
    position: usize,
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
            let next = match (interval, &set.starts_with) {
                (Interval::Null, _) => Within::Null,
                // One LIKE prefix bounds all the intervals: they are not looked at further.
                (Interval::Range { .. }, Some(text)) => Within::StartsWith(text),
                (Interval::Range { lower, upper }, None) => Within::Between { lower, upper },
            };
            let found = layout.range_behind(prefix.clone(), position, next);
            ranges.extend(found.map(|found| found.range));
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
/// them was widened. All, if the ranges hold nothing.
fn consumed<'t>(
    conditions: impl Iterator<Item = &'t Term>,
    layout: &KeyLayout,
    found: &IndexRanges,
    is_nothing: bool,
) -> Vec<usize> {
    let says = |column: usize| {
        let part = layout.parts[..found.parts]
            .iter()
            .position(|part| part.column == Some(column));
        let exactly_bound = found.parts - usize::from(found.widened);
        part.is_some_and(|part| part < exactly_bound && layout.parts[part].prefix_length.is_none())
    };
    let is_consumed = |term: &Term| {
        is_nothing
            || is_simple(term)
                && conjuncts(term).all(|term| match term {
                    Term::Column { column, set, exact } => {
                        let is_said = says(*column) && found.says_all_of(*column);
                        *exact && is_said && set.starts_with.is_none()
                    }
                    _ => false,
                })
    };
    conditions
        .enumerate()
        .filter(|(_, term)| is_consumed(term))
        .map(|(position, _)| position)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::condition::analyze;
    use arrow::datatypes::DataType;
    use datafusion_common::ScalarValue;
    use datafusion_expr::{Expr, cast, col, lit};
    use sheaf_exec::functions::collation::collation_key;
    use sheaf_exec::functions::in_values::{IN_NUMBERS, as_in_values};
    use sheaf_exec::functions::scalar_function;
    use sheaf_exec::functions::truncated::TruncatedTexts;
    use sheaf_exec::typing::{Purpose, Texts, resolve_node};
    use sheaf_storage::TreeId;
    use sheaf_table::{Column, Index, IndexPart, TableDefinition, ValueRef};
    use sheaf_types::{Collation, ColumnType};

    /// Columns a int NOT NULL, b int, c decimal(5,2), s varchar(20); primary key (a).
    fn table() -> TableDefinition {
        let column =
            |name, ty, nullable| Column::new(name, ColumnType::parse(ty).unwrap(), nullable);
        TableDefinition {
            id: 1,
            database: "d".into(),
            name: "t".into(),
            columns: vec![
                column("a", "int", false),
                column("b", "int", true),
                column("c", "decimal(5,2)", true),
                column("s", "varchar(20)", true),
            ],
            primary: index(&["a"]),
            secondary: Vec::new(),
            collation: Collation::default(),
            comment: String::new(),
            overflow: None,
            auto_increment_start: 1,
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            shape: None,
        }
    }

    /// An index on columns by name, with `s4` for the first four characters of s.
    fn index(parts: &[&str]) -> Index {
        let part = |name: &&str| IndexPart {
            column: ["a", "b", "c", "s"]
                .iter()
                .position(|known| name.starts_with(known))
                .unwrap(),
            prefix_length: name[1..].parse().ok(),
            descending: false,
        };
        Index {
            id: 1,
            name: "i".into(),
            parts: parts.iter().map(part).collect(),
            unique: false,
            primary: false,
            tree: TreeId(1),
            comment: String::new(),
            invisible: false,
        }
    }

    /// The ranges that `conditions` leave of an index, as values; the bound parts, and which conditions are consumed.
    fn show(parts: &[&str], conditions: &[Expr]) -> String {
        let table = table();
        let layout = KeyLayout::secondary(&table, &index(parts));
        let terms: Vec<Term> = conditions
            .iter()
            .map(|condition| analyze(condition, &table))
            .collect();
        let found = index_ranges(&terms, &layout);
        let bound = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Unbounded => "-".to_string(),
            Bound::Included(key) | Bound::Excluded(key) => values(key, &layout, &table),
        };
        let range =
            |range: &KeyRange| format!("[{} .. {})", bound(&range.lower), bound(&range.upper));
        let ranges: Vec<_> = found.ranges.iter().map(range).collect();
        format!(
            "{} parts={} consumed={:?}",
            ranges.join(" "),
            found.parts,
            found.consumed
        )
    }

    /// The values of a key as far as whole parts go, then the bytes of the rest.
    fn values(mut key: &[u8], layout: &KeyLayout, table: &TableDefinition) -> String {
        let mut values = Vec::new();
        let mut part = 0;
        while !key.is_empty() {
            let length = layout.part_length(part, key).ok();
            let value = length.and_then(|_| layout.decode_value(table, part, key, &[]).ok());
            let (Some(length), Some(value)) = (length, value) else {
                values.push(
                    key.iter()
                        .map(|byte| format!("{byte:02x}"))
                        .collect::<String>(),
                );
                break;
            };
            values.push(value.to_string());
            key = &key[length..];
            part += 1;
        }
        values.join(",")
    }

    fn text(value: &str) -> Expr {
        collation_key(lit(value), Collation::default())
    }

    fn s() -> Expr {
        collation_key(col("s"), Collation::default())
    }

    #[test]
    fn equalities_then_one_range() {
        let abc = &["b", "c", "a"];
        assert_eq!(
            show(
                abc,
                &[
                    col("b").eq(lit(1i32)),
                    col("c").gt_eq(lit(ScalarValue::Decimal128(Some(250), 5, 2)))
                ]
            ),
            "[1,2.50 .. 2) parts=2 consumed=[0, 1]"
        );
        assert_eq!(
            show(
                abc,
                &[
                    col("b").gt(lit(1i32)),
                    col("c").eq(lit(ScalarValue::Decimal128(Some(250), 5, 2)))
                ]
            ),
            "[2 .. -) parts=1 consumed=[0]",
            "a range ends the use of the parts after it"
        );
        assert_eq!(
            show(
                abc,
                &[
                    col("b").in_list(vec![lit(3i32), lit(1i32)], false),
                    col("b").lt(lit(3i32))
                ]
            ),
            "[1 .. 2) parts=1 consumed=[0, 1]"
        );
        assert_eq!(
            show(
                &["a", "b"],
                &[
                    col("a").eq(lit(1i32)).or(col("a").eq(lit(2i32))),
                    col("b").between(lit(3i32), lit(4i32))
                ]
            ),
            "[1,3 .. 1,5) [2,3 .. 2,5) parts=2 consumed=[0, 1]"
        );
        assert_eq!(
            show(abc, &[col("c").eq(lit(1i32))]),
            "[- .. -) parts=0 consumed=[]"
        );
    }

    #[test]
    fn nulls() {
        assert_eq!(
            show(&["b"], &[col("b").is_null()]),
            "[NULL .. 01) parts=1 consumed=[0]"
        );
        assert_eq!(
            show(&["b"], &[col("b").lt(lit(5i32))]),
            "[01 .. 5) parts=1 consumed=[0]",
            "without the NULLs"
        );
        assert_eq!(
            show(&["b"], &[col("b").is_null().or(col("b").eq(lit(5i32)))]),
            "[NULL .. 01) [5 .. 6) parts=1 consumed=[0]"
        );
        assert_eq!(
            show(&["b"], &[col("b").eq(lit(ScalarValue::Int32(None)))]),
            " parts=0 consumed=[0]"
        );
        assert_eq!(
            show(&["a"], &[col("a").is_null()]),
            " parts=1 consumed=[0]",
            "a is NOT NULL"
        );
    }

    #[test]
    fn contradictions_leave_nothing() {
        assert_eq!(
            show(&["a"], &[col("a").lt(lit(1i32)), col("a").gt(lit(2i32))]),
            " parts=0 consumed=[0, 1]"
        );
        assert_eq!(
            show(&["a"], &[col("b").lt(lit(1i32)), col("b").gt(lit(2i32))]),
            " parts=0 consumed=[0, 1]"
        );
    }

    #[test]
    fn casts_that_keep_the_order_are_looked_through() {
        assert_eq!(
            show(&["a"], &[cast(col("a"), DataType::Int64).lt(lit(7i64))]),
            "[- .. 7) parts=1 consumed=[0]".replace('-', "")
        );
        assert_eq!(
            show(&["c"], &[cast(col("c"), DataType::Float64).lt(lit(7.5f64))]),
            "[- .. -) parts=0 consumed=[]",
            "decimals are not compared as doubles are"
        );
    }

    #[test]
    fn an_or_over_several_columns() {
        let condition =
            (col("a").eq(lit(1i32)).and(col("b").eq(lit(2i32)))).or(col("a").gt(lit(8i32)));
        assert_eq!(
            show(&["a", "b"], &[condition]),
            "[1,2 .. 1,3) [9 .. -) parts=2 consumed=[]"
        );
        let condition = col("a").eq(lit(1i32)).or(col("b").eq(lit(2i32)));
        assert_eq!(
            show(&["a", "b"], &[condition]),
            "[- .. -) parts=0 consumed=[]",
            "one branch has no range"
        );
    }

    #[test]
    fn strings() {
        assert_eq!(
            show(&["s"], &[s().eq(text("Abc"))]),
            "[abc .. 01474d5301) parts=1 consumed=[0]".replace("01474d5301", &after("abc"))
        );
        assert_eq!(
            show(&["s4"], &[s().eq(text("abcdef"))])
                .split(' ')
                .skip(3)
                .collect::<Vec<_>>()
                .join(" "),
            "parts=1 consumed=[]",
            "a prefix does not say the whole string"
        );
        let like = Term::Column {
            column: 3,
            set: ColumnSet::starts_with("ab".into()),
            exact: false,
        };
        let equal = analyze(&s().eq(text("abc")), &table());
        let found = index_ranges(
            &[equal, like],
            &KeyLayout::secondary(&table(), &index(&["s"])),
        );
        assert_eq!(
            (found.parts, found.consumed),
            (1, vec![]),
            "the range is that of LIKE"
        );
        let other = collation_key(col("s"), Collation::Utf8mb4_bin);
        let key = collation_key(lit("abc"), Collation::Utf8mb4_bin);
        assert_eq!(
            show(&["s"], &[other.eq(key)]),
            "[- .. -) parts=0 consumed=[]",
            "another order than the index's"
        );
    }

    #[test]
    fn behind_a_prefix_that_a_like_says_the_next_part_is_bound() {
        let layout = KeyLayout::secondary(&table(), &index(&["s4", "b"]));
        let found = |text: &str| {
            let like = Term::Column {
                column: 3,
                set: ColumnSet::starts_with(text.into()),
                exact: false,
            };
            let above = analyze(&col("b").gt(lit(4i32)), &table());
            index_ranges(&[like, above], &layout)
        };
        let long = found("abc:x");
        let parts = (long.parts, long.equal_parts, long.constant_parts);
        assert_eq!(parts, (2, 0, 0), "other texts have the same key");
        assert_eq!(long.consumed, [1], "LIKE is tested again");
        let holds = |text: &str, b: i64| {
            let mut key = Vec::new();
            layout.encode_part(0, ValueRef::Bytes(text.as_bytes()), &mut key);
            layout.encode_part(1, ValueRef::Int(b), &mut key);
            long.ranges.iter().any(|range| range.contains(&key))
        };
        assert!(holds("ABC:xyz", 5));
        assert!(!holds("abc:xyz", 4));
        assert!(!holds("abcd", 5));
        assert_eq!(found("abc").parts, 1, "it says less than the prefix");
    }

    /// The first key after those of a string, in hexadecimal.
    fn after(string: &str) -> String {
        let mut key = vec![1];
        Collation::default().sort_key_into(string, &mut key);
        key.push(1);
        key.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn many_values_are_many_ranges_and_too_many_are_one() {
        let list = |count: i32| (0..count).map(|n| lit(2 * n)).collect::<Vec<_>>();
        let found = |condition: &Expr, parts: &[&str]| {
            let layout = KeyLayout::secondary(&table(), &index(parts));
            index_ranges(&[analyze(condition, &table())], &layout)
        };
        let many = found(&col("a").in_list(list(50_000), false), &["a"]);
        assert_eq!((many.ranges.len(), many.consumed), (50_000, vec![0]));
        let too_many = found(&col("a").in_list(list(100_001), false), &["a"]);
        assert_eq!((too_many.ranges.len(), too_many.consumed), (1, vec![]));
        let none = found(&col("a").in_list(list(50_000), true), &["a"]);
        assert_eq!((none.ranges.len(), none.consumed), (50_001, vec![0]));
    }

    #[test]
    fn many_pairs_are_ranges_that_say_all() {
        let pairs = |count: i32| {
            let pair = |n: i32| col("a").eq(lit(n % 100)).and(col("b").eq(lit(n)));
            let all = (0..count).map(pair);
            all.reduce(Expr::or).unwrap()
        };
        let found = |condition: &Expr, parts: &[&str]| {
            let layout = KeyLayout::secondary(&table(), &index(parts));
            index_ranges(&[analyze(condition, &table())], &layout)
        };
        let (few, many) = (pairs(60), pairs(1000));
        let of_few = found(&few, &["a", "b"]);
        assert_eq!((of_few.ranges.len(), of_few.consumed), (60, vec![]));
        let of_many = found(&many, &["a", "b"]);
        assert_eq!((of_many.ranges.len(), of_many.consumed), (1000, vec![0]));
        let of_first = found(&many, &["a"]);
        assert_eq!((of_first.ranges.len(), of_first.consumed), (100, vec![]));
    }

    #[test]
    fn a_packed_list_says_what_the_list_says() {
        let fields = vec![arrow::datatypes::Field::new("b", DataType::Int32, true)];
        let schema = arrow::datatypes::Schema::new(fields);
        let schema = datafusion_common::DFSchema::try_from(schema).unwrap();
        let texts = Texts::of(Collation::default(), TruncatedTexts::default());
        let packed = scalar_function(IN_NUMBERS).unwrap();
        let packed = packed.call(vec![col("b"), lit("9,1,5,1,-3,5000000000")]);
        let packed = resolve_node(packed, &schema, &texts, Purpose::Other).unwrap();
        assert!(as_in_values(&packed).is_some(), "{packed}");
        let list = [9i32, 1, 5, 1, -3].map(lit).to_vec();
        let list = |negated| col("b").in_list(list.clone(), negated);
        let table = table();
        assert_eq!(analyze(&packed, &table), analyze(&list(false), &table));
        let denied = Expr::Not(Box::new(packed));
        assert_eq!(analyze(&denied, &table), analyze(&list(true), &table));
    }
}
