//! Which rows: from the conjuncts of a WHERE to keys of one index.
//!
//! The conjuncts compare columns with operands. Those on the leading parts of an index become its keys once the
//! operands are known; the rest is tested on each row:
//!
//! ```text
//!   KEY (a, b, c)      a = ? AND b = ? AND c BETWEEN ? AND ? AND d > ?
//!                      |-- equal ----|     |---- next -----|     |---|  tested
//! ```
//!
//! A plan is direct only where the choice of the index needs no optimizer: a unique key is bound completely, or one
//! index is bound by everything that binds any other. If several are, the one is best whose entries save most lookups
//! of rows. Under a LIMIT one in the wanted order comes before, as it ends at the last row that is shown.

mod conditions;
mod description;

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use sheaf_access::IndexRef;
use sheaf_storage::KeyRange;
use sheaf_table::{Index, KeyLayout, PartBounds, RowView, Table};
use sheaf_types::Value;
use smallvec::{SmallVec, smallvec};
use sqlparser::ast;

use super::entry::{EntryTest, EntryUse};
use super::expression::{Collector, Evaluator, Expressions};
use super::measured::AccessId;
use super::names::Names;
use super::operand::{Compared, Place, compare};
use crate::error::Result;
use crate::session::Session;

pub(super) use conditions::{
    Comparison, MAX_LIST, Relation, comparisons, conditions, list_in_place, missing,
};
use conditions::{Kind, RowBranch};
pub(super) use description::{OuterColumn, ReadIn};

/// Rows that a direct plan walks over, by estimate. Beyond that, workers and batches pay for themselves.
pub(super) const MAX_ROWS: u64 = 10_000;

/// The same where an expression is evaluated for each of them.
const MAX_FILTERED_ROWS: u64 = 200;

/// The indexes of a table that are not invisible, the clustered one first.
pub(super) fn indexes(table: &Table) -> impl Iterator<Item = IndexRef> + '_ {
    let secondary = table.definition.secondary.iter().enumerate();
    let secondary = secondary.filter(|(_, index)| !index.invisible);
    let secondary = secondary.map(|(position, _)| IndexRef::Secondary(position));
    std::iter::once(IndexRef::Clustered).chain(secondary)
}

/// How a branch is a key of an index: its relations, by their numbers.
struct BranchKey {
    /// Of the leading parts.
    equal: Vec<usize>,
    /// Of the part behind these.
    next: Vec<usize>,
}

impl BranchKey {
    /// `None` if the key does not say all of the branch.
    fn of(definition: &Index, branch: &[(usize, Relation, Compared)]) -> Option<BranchKey> {
        let mut key = BranchKey {
            equal: Vec::new(),
            next: Vec::new(),
        };
        for part in &definition.parts {
            let of_part = branch.iter().enumerate();
            let of_part = of_part.filter(|(_, (column, ..))| *column == part.column);
            let of_part: Vec<usize> = of_part.map(|(number, _)| number).collect();
            match of_part.as_slice() {
                _ if part.prefix_length.is_some() => break,
                [only] if branch[*only].1 == Relation::Equal => key.equal.push(*only),
                _ => {
                    key.next = of_part;
                    break;
                }
            }
        }
        let relation = |number: &usize| branch[*number].1;
        let is_range = match key.next.as_slice() {
            [] | [_] => true,
            [one, other] => {
                let (one, other) = (relation(one), relation(other));
                one.is_upper() && other.is_lower() || one.is_lower() && other.is_upper()
            }
            _ => false,
        };
        (is_range && key.equal.len() + key.next.len() == branch.len()).then_some(key)
    }
}

/// What the part after the equal ones is bound to.
#[derive(Clone, Debug)]
enum Next {
    Anything,
    /// Positions of the comparisons.
    Within {
        lower: Option<usize>,
        upper: Option<usize>,
    },
    OneOf(usize),
    AnyOf(usize),
    StartsWith(usize),
    /// Keys of several parts.
    Rows(usize),
}

/// The rows that a statement reads or changes, its operands still open.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) id: AccessId,
    pub(super) index: IndexRef,
    comparisons: Vec<Comparison>,
    /// Positions of the comparisons that bind the leading parts to single values.
    equal: Vec<usize>,
    next: Next,
    /// Every key that comes out is a complete unique key, with one row at most.
    pub(super) is_unique: bool,
    /// Positions of the comparisons that are tested on each row, or on its entry.
    tested: Vec<usize>,
    /// Of a secondary index.
    pub(super) entry: EntryUse,
    /// The rest of the condition, which is no comparison of a column with operands.
    filter: Option<Arc<Expressions>>,
    /// It reads the table from end to end, and not along an index for its order.
    pub(super) is_scan: bool,
}

impl Access {
    /// The best use of the table's indexes that needs no optimizer; `None` if there is none. For the rest see
    /// [`Self::use_entries`].
    pub(super) fn choose(
        table: &Table,
        comparisons: &[Comparison],
        pushes: bool,
        read: Option<&[usize]>,
    ) -> Option<Access> {
        Access::choose_in_order(table, comparisons, pushes, read, (&|_| true, false))
    }

    /// The same where rows are wanted in an order, which some of the uses have. `is_cut`: only the first of them.
    pub(super) fn choose_in_order(
        table: &Table,
        comparisons: &[Comparison],
        pushes: bool,
        read: Option<&[usize]>,
        (has_order, is_cut): (&dyn Fn(&Access) -> bool, bool),
    ) -> Option<Access> {
        let candidates = Access::candidates(table, comparisons, pushes, read);
        let single = |access: &&Access| access.is_unique && matches!(access.next, Next::Anything);
        let binds_all = |access: &&Access| {
            candidates
                .iter()
                .all(|other| other.bound().all(|position| access.binds(position)))
        };
        let best = candidates
            .iter()
            .find(single)
            .or_else(|| candidates.iter().find(|access| access.is_unique))
            .or_else(|| {
                let candidates = candidates.iter().filter(binds_all);
                candidates.min_by_key(|access| {
                    let (looks_up, undecided) = access.lookups();
                    let is_sorted = !has_order(access);
                    // How many rows a test refuses that only they decide is not known.
                    (undecided, is_cut && is_sorted, looks_up, is_sorted)
                })
            })?;
        Some(best.clone())
    }

    /// The uses of all indexes that the comparisons bind.
    pub(super) fn candidates(
        table: &Table,
        comparisons: &[Comparison],
        pushes: bool,
        read: Option<&[usize]>,
    ) -> Vec<Access> {
        let candidate = |index| {
            let mut access = Access::by_index(table, index, comparisons)?;
            access.use_entries(table, pushes, read);
            Some(access)
        };
        let all: Vec<Access> = indexes(table).filter_map(candidate).collect();
        // What rows are tested by anyway is no choice where there are other keys.
        let (tested, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|access| {
            access
                .bound()
                .all(|bound| !access.comparisons[bound].is_test())
        });
        match others.is_empty() {
            true => tested,
            false => others,
        }
    }

    /// [`Self::candidates`] of the same comparisons, now that the columns are known that are read besides.
    pub(super) fn candidates_again(
        &self,
        table: &Table,
        pushes: bool,
        read: &[usize],
    ) -> Vec<Access> {
        Access::candidates(table, &self.comparisons, pushes, Some(read))
    }

    /// The choice for the same comparisons, now that the columns are known that are read besides.
    pub(super) fn again(&self, table: &Table, pushes: bool, read: &[usize]) -> Option<Access> {
        Access::choose(table, &self.comparisons, pushes, Some(read))
    }

    /// Lookups of rows, to compare indexes that are bound alike: whether there are any, and how many tests cannot be
    /// decided before them.
    fn lookups(&self) -> (bool, usize) {
        match self.index {
            IndexRef::Secondary(_) if !self.entry.is_covering() => {
                let tested = self.tested.iter();
                let columns = tested.map(|position| self.comparisons[*position].column);
                let undecided = columns.filter(|column| self.entry.part_tested(*column).is_none());
                (true, undecided.count())
            }
            _ => (false, 0),
        }
    }

    /// All rows, in the order of an index.
    pub(super) fn whole(index: IndexRef, comparisons: &[Comparison]) -> Access {
        Access {
            id: AccessId::fresh(),
            index,
            comparisons: comparisons.to_vec(),
            equal: Vec::new(),
            next: Next::Anything,
            is_unique: false,
            tested: (0..comparisons.len())
                .filter(|position| comparisons[*position].is_test())
                .collect(),
            entry: EntryUse::default(),
            filter: None,
            is_scan: false,
        }
    }

    /// All rows of a table, in no wanted order.
    pub(super) fn scan(comparisons: &[Comparison]) -> Access {
        Access {
            is_scan: true,
            ..Access::whole(IndexRef::Clustered, comparisons)
        }
    }

    /// Whether some index finds rows by its keys.
    pub(super) fn binds_any(table: &Table, comparisons: &[Comparison]) -> bool {
        let mut indexes = indexes(table);
        indexes.any(|index| Access::by_index(table, index, comparisons).is_some())
    }

    /// Whether the keys restrict nothing.
    pub(super) fn is_whole(&self) -> bool {
        self.equal.is_empty() && matches!(self.next, Next::Anything)
    }

    /// Whether its keys are ranges, or several single values.
    pub(super) fn is_range(&self) -> bool {
        !matches!(self.next, Next::Anything)
    }

    /// The use of one index; `None` if the comparisons say nothing about its first part.
    fn by_index(table: &Table, index: IndexRef, comparisons: &[Comparison]) -> Option<Access> {
        let definition = index.definition(table);
        let mut rows = comparisons.iter().enumerate();
        if let Some((position, branches)) =
            rows.find_map(|(position, comparison)| Some((position, comparison.as_rows()?)))
        {
            // It is tested nowhere.
            if rows.any(|(_, comparison)| comparison.as_rows().is_some()) {
                return None;
            }
            return Access::by_rows(table, index, comparisons, (position, branches));
        }
        let on = |column: usize| {
            let all = comparisons.iter().enumerate();
            all.filter(move |(_, comparison)| comparison.column == column)
        };
        let mut equal = Vec::new();
        let mut next = Next::Anything;
        for part in &definition.parts {
            if part.prefix_length.is_some() {
                break;
            }
            let first = |wanted: fn(&Kind) -> bool| {
                on(part.column)
                    .find(|(_, comparison)| wanted(&comparison.kind))
                    .map(|(position, _)| position)
            };
            let is_equal =
                |kind: &Kind| matches!(kind, Kind::Relation(Relation::Equal, _) | Kind::IsNull);
            if let Some(position) = first(is_equal) {
                equal.push(position);
                continue;
            }
            if let Some(position) = first(|kind| matches!(kind, Kind::In(_) | Kind::InList(_))) {
                next = Next::OneOf(position);
            } else if let Some(position) = first(|kind| matches!(kind, Kind::Or(_))) {
                next = Next::AnyOf(position);
            } else {
                let upper = first(
                    |kind| matches!(kind, Kind::Relation(relation, _) if relation.is_upper()),
                );
                let lower = first(
                    |kind| matches!(kind, Kind::Relation(relation, _) if relation.is_lower()),
                );
                let starts = first(|kind| matches!(kind, Kind::StartsWith(..)));
                if lower.is_some() || upper.is_some() {
                    next = Next::Within { lower, upper };
                } else if let Some(position) = starts {
                    next = Next::StartsWith(position);
                }
            }
            break;
        }
        if equal.is_empty() && matches!(next, Next::Anything) {
            return None;
        }
        let bound_to_values = equal.len() + usize::from(matches!(next, Next::OneOf(_)));
        // A unique key may be NULL in many rows.
        let is_null = |position: &usize| matches!(comparisons[*position].kind, Kind::IsNull);
        let is_unique = (definition.unique || definition.primary)
            && !definition.parts.is_empty()
            && !equal.iter().any(is_null)
            && bound_to_values == definition.parts.len();
        let mut access = Access {
            id: AccessId::fresh(),
            index,
            comparisons: comparisons.to_vec(),
            equal,
            next,
            is_unique,
            tested: Vec::new(),
            entry: EntryUse::default(),
            filter: None,
            is_scan: false,
        };
        access.tested = (0..comparisons.len())
            .filter(|position| !access.binds(*position) && comparisons[*position].is_test())
            .collect();
        Some(access)
    }

    /// The use of an index by keys of several parts; `None` if they do not say all of the branches.
    fn by_rows(
        table: &Table,
        index: IndexRef,
        comparisons: &[Comparison],
        (position, branches): (usize, &[RowBranch]),
    ) -> Option<Access> {
        let definition = index.definition(table);
        let mut is_complete = definition.unique || definition.primary;
        for branch in branches {
            let key = BranchKey::of(definition, branch)?;
            is_complete &= key.equal.len() == definition.parts.len();
        }
        let access = Access::whole(index, comparisons);
        Some(Access {
            next: Next::Rows(position),
            is_unique: is_complete,
            ..access
        })
    }

    /// Says how entries of the index are used: whether they are tested before their rows are looked up, and which
    /// columns are read besides, if that is known and entries may stand for their rows.
    pub(super) fn use_entries(&mut self, table: &Table, pushes: bool, read: Option<&[usize]>) {
        if let IndexRef::Secondary(position) = self.index {
            let tested = self.tested.iter();
            let tested: Vec<usize> = tested
                .map(|position| self.comparisons[*position].column)
                .collect();
            let layout = &table.secondary_layouts[position];
            self.entry = EntryUse::new(layout, (&tested, pushes), read);
        }
    }

    /// Positions of the comparisons that the keys consist of.
    fn bound(&self) -> impl Iterator<Item = usize> + '_ {
        let (first, second) = match self.next {
            Next::Anything => (None, None),
            Next::OneOf(position)
            | Next::AnyOf(position)
            | Next::StartsWith(position)
            | Next::Rows(position) => (Some(position), None),
            Next::Within { lower, upper } => (lower, upper),
        };
        self.equal.iter().copied().chain(first).chain(second)
    }

    /// Whether the keys say all that those of another use say, which is of the same comparisons.
    pub(super) fn binds_all_of(&self, other: &Access) -> bool {
        self.comparisons.len() == other.comparisons.len()
            && other.bound().all(|position| self.binds(position))
    }

    /// How many comparisons the keys consist of.
    pub(super) fn bound_count(&self) -> usize {
        self.bound().count()
    }

    fn binds(&self, position: usize) -> bool {
        self.bound().any(|bound| bound == position)
    }

    /// Whether the keys leave out a column's NULLs.
    pub(super) fn binds_column(&self, column: usize) -> bool {
        let mut bound = self.bound().map(|position| &self.comparisons[position]);
        bound.any(|comparison| {
            comparison.column == column && !matches!(comparison.kind, Kind::Rows(_) | Kind::IsNull)
        })
    }

    /// Whether a list that a run brings is among the keys.
    pub(super) fn binds_list(&self) -> bool {
        self.bound()
            .any(|position| matches!(self.comparisons[position].kind, Kind::InList(_)))
    }

    /// Whether rows are tested by more than their keys.
    pub(super) fn has_tests(&self) -> bool {
        !self.tested.is_empty() || self.filter.is_some()
    }

    /// The same access, with the rest of the condition.
    pub(super) fn filtered_by(self, filter: Option<Arc<Expressions>>) -> Access {
        Access { filter, ..self }
    }

    /// What has to be evaluated for each row.
    pub(super) fn filter(&self) -> Option<&Expressions> {
        self.filter.as_deref()
    }

    /// Rows that a direct plan walks over, by estimate.
    pub(super) fn most_rows(&self) -> u64 {
        match self.filter {
            Some(_) => MAX_FILTERED_ROWS,
            None => MAX_ROWS,
        }
    }

    /// At most one row: a complete unique key.
    pub(super) fn is_single(&self) -> bool {
        self.is_unique && matches!(self.next, Next::Anything)
    }

    /// Rows that the keys usually find at most, by statistics of the index; `None` if these do not tell.
    pub(super) fn usual_rows(&self, table: &Table) -> Option<u64> {
        if self.is_single() {
            return Some(1);
        }
        let index = match self.index {
            IndexRef::Clustered => None,
            IndexRef::Secondary(position) => Some(position),
        };
        let distinct = table.distinct_prefixes(index)?;
        let distinct = distinct.get(self.equal.len().checked_sub(1)?)?;
        Some(table.row_count_estimate().div_ceil((*distinct).max(1)))
    }

    /// The same of the comparisons without the list that a run brings.
    pub(super) fn usual_rows_without_list(&self, table: &Table) -> Option<u64> {
        let others = self.comparisons.iter();
        let others = others.filter(|comparison| !matches!(comparison.kind, Kind::InList(_)));
        let others: Vec<Comparison> = others.cloned().collect();
        let candidates = Access::candidates(table, &others, true, None);
        let known = candidates
            .iter()
            .filter_map(|access| access.usual_rows(table));
        known.min()
    }

    /// Columns that have one value in all rows that are found.
    pub(super) fn constant_columns(&self) -> impl Iterator<Item = usize> + '_ {
        let columns = self.equal.iter();
        columns.map(|position| self.comparisons[*position].column)
    }

    /// Whether the keys are one range, whose rows come in the order of the index.
    pub(super) fn is_one_range(&self) -> bool {
        !matches!(self.next, Next::OneOf(_) | Next::AnyOf(_) | Next::Rows(_))
    }

    /// Whether it has keys of several parts: ranges of the whole index, in its order.
    pub(super) fn is_by_rows(&self) -> bool {
        matches!(self.next, Next::Rows(_))
    }

    pub(super) fn layout<'t>(&self, table: &'t Table) -> &'t KeyLayout {
        match self.index {
            IndexRef::Clustered => &table.clustered_layout,
            IndexRef::Secondary(position) => &table.secondary_layouts[position],
        }
    }

    /// The keys, now that the parameters are known; `None` where an operand has no place in its column. A
    /// [filter](Self::filter) is the session's to add.
    pub(super) fn bind(&self, table: &Table, parameters: &[Value]) -> Option<BoundAccess> {
        if self.is_single() {
            return self.bind_single(table, parameters);
        }
        let layout = self.layout(table);
        let place_of = |position: usize| self.place_of(table, position, parameters);
        let mut equal = Vec::with_capacity(self.equal.len());
        let mut is_nothing = false;
        for position in &self.equal {
            match place_of(*position)? {
                Place::At(value) => equal.push(value),
                Place::Null | Place::BelowAll | Place::AboveAll => is_nothing = true,
            }
        }
        let tests = self.tests(table, parameters)?;
        let keys = match &self.next {
            _ if is_nothing => {
                // The other operands must have places all the same, or an error of theirs would be missed.
                for position in self.bound() {
                    self.test_of(table, position, parameters)?;
                }
                Keys::nothing()
            }
            Next::Anything => Keys::Ranges(vec![layout.range(&equal, None).range]),
            Next::Within { lower, upper } => {
                let mut relations = Vec::new();
                for position in lower.iter().chain(upper) {
                    let test = self.test_of(table, *position, parameters)?;
                    relations.extend(test.branches.into_iter().flatten());
                }
                match part_bounds(relations) {
                    Some(bounds) => Keys::Ranges(vec![layout.range(&equal, Some(&bounds)).range]),
                    None => Keys::nothing(),
                }
            }
            Next::StartsWith(position) => {
                let bounds = PartBounds::StartsWith(self.prefix_of(*position, parameters)?);
                Keys::Ranges(vec![layout.range(&equal, Some(&bounds)).range])
            }
            Next::OneOf(position) => self.list_keys(table, *position, &equal, parameters)?,
            Next::Rows(position) => self.row_keys(table, *position, parameters)?,
            Next::AnyOf(position) => {
                let test = self.test_of(table, *position, parameters)?;
                let bounds = test.branches.into_iter().filter_map(part_bounds);
                let ranges = bounds.map(|bounds| layout.range(&equal, Some(&bounds)).range);
                Keys::Ranges(sheaf_optimizer::disjoint(ranges.collect()))
            }
        };
        Some(BoundAccess {
            keys,
            tests,
            filter: None,
        })
    }

    /// As [`Self::bind`], of one complete unique key: it is encoded part by part.
    fn bind_single(&self, table: &Table, parameters: &[Value]) -> Option<BoundAccess> {
        let layout = self.layout(table);
        let mut key = Vec::with_capacity(layout.likely_bytes());
        let mut is_nothing = false;
        for (part, position) in self.equal.iter().enumerate() {
            match self.place_of(table, *position, parameters)? {
                Place::At(value) => layout.encode_part(part, (&value).into(), &mut key),
                Place::Null | Place::BelowAll | Place::AboveAll => is_nothing = true,
            }
        }
        let tests = self.tests(table, parameters)?;
        let keys = match is_nothing {
            true => Keys::nothing(),
            false => Keys::Points(smallvec![key]),
        };
        Some(BoundAccess {
            keys,
            tests,
            filter: None,
        })
    }

    /// What is tested on rows, or on their entries.
    fn tests(&self, table: &Table, parameters: &[Value]) -> Option<Vec<Test>> {
        let mut tests = Vec::with_capacity(self.tested.len());
        for position in &self.tested {
            let mut test = self.test_of(table, *position, parameters)?;
            let part = self.entry.part_tested(test.column);
            test.on_entry = part.map(|part| EntryTest::new(self.layout(table), part, &test));
            tests.push(test);
        }
        Some(tests)
    }

    fn place_of(&self, table: &Table, position: usize, parameters: &[Value]) -> Option<Place> {
        let Comparison { column, kind } = &self.comparisons[position];
        let operand = match kind {
            Kind::Relation(_, operand) => operand,
            Kind::IsNull => return Some(Place::At(Value::Null)),
            _ => return None,
        };
        operand.place(&table.definition.columns[*column], parameters)
    }

    /// What values begin with that a LIKE is true of; `None` if that is nothing, or cannot be told here.
    fn prefix_of(&self, position: usize, parameters: &[Value]) -> Option<String> {
        let Kind::StartsWith(pattern, escape) = &self.comparisons[position].kind else {
            return None;
        };
        let pattern = pattern.value(parameters)?;
        let Value::Text(pattern) = pattern.as_ref() else {
            return None;
        };
        let escape = match escape {
            // Whether a backslash escapes is the session's to say.
            None => "\\",
            Some(escape) => match escape.value(parameters) {
                Value::Text(escape) => escape.as_str(),
                _ => return None,
            },
        };
        if !escape.is_empty() && pattern.contains(escape) {
            return None;
        }
        let prefix = pattern.split(['%', '_']).next()?;
        (!prefix.is_empty()).then(|| prefix.to_string())
    }

    /// Keys of an IN list, ascending.
    fn list_keys(
        &self,
        table: &Table,
        position: usize,
        equal: &[Value],
        parameters: &[Value],
    ) -> Option<Keys> {
        let layout = self.layout(table);
        let Test { branches, .. } = self.test_of(table, position, parameters)?;
        let mut keys = SmallVec::with_capacity(branches.len());
        for (_, place) in branches.into_iter().flatten() {
            if let Place::At(value) = place {
                let mut key = Vec::new();
                encode(layout, equal, &mut key);
                layout.encode_part(equal.len(), (&value).into(), &mut key);
                keys.push(key);
            }
        }
        keys.sort_unstable();
        keys.dedup();
        Some(match self.is_unique {
            true => Keys::Points(keys),
            false => Keys::Ranges(keys.iter().map(|key| KeyRange::prefix(key)).collect()),
        })
    }

    /// Keys of several parts, ascending.
    fn row_keys(&self, table: &Table, position: usize, parameters: &[Value]) -> Option<Keys> {
        let branches = self.comparisons[position].as_rows()?;
        let (layout, definition) = (self.layout(table), self.index.definition(table));
        let mut points: SmallVec<[Vec<u8>; 1]> = SmallVec::new();
        let mut ranges = Vec::new();
        for branch in branches {
            let key = BranchKey::of(definition, branch)?;
            let place = |number: &usize| {
                let (column, relation, operand) = &branch[*number];
                let place = operand.place(&table.definition.columns[*column], parameters)?;
                Some((*relation, place))
            };
            let equal = key.equal.iter().map(place).collect::<Option<Vec<_>>>()?;
            let next = key.next.iter().map(place).collect::<Option<Vec<_>>>()?;
            let equal = equal.into_iter().map(|(_, place)| match place {
                Place::At(value) => Some(value),
                Place::Null | Place::BelowAll | Place::AboveAll => None,
            });
            // Otherwise no row is of this branch.
            let Some(equal) = equal.collect::<Option<Vec<Value>>>() else {
                continue;
            };
            if self.is_unique {
                let mut point = Vec::with_capacity(layout.likely_bytes());
                encode(layout, &equal, &mut point);
                points.push(point);
            } else if next.is_empty() {
                ranges.push(layout.range(&equal, None).range);
            } else if let Some(bounds) = part_bounds(next) {
                ranges.push(layout.range(&equal, Some(&bounds)).range);
            }
        }
        if self.is_unique {
            points.sort_unstable();
            points.dedup();
            return Some(Keys::Points(points));
        }
        Some(Keys::Ranges(sheaf_optimizer::disjoint(ranges)))
    }

    fn test_of(&self, table: &Table, position: usize, parameters: &[Value]) -> Option<Test> {
        let Comparison { column, kind } = &self.comparisons[position];
        let definition = &table.definition.columns[*column];
        let place = |operand: &Compared| operand.place(definition, parameters);
        let placed =
            |(relation, operand): &(Relation, Compared)| Some((*relation, place(operand)?));
        let branches = match kind {
            Kind::Relation(relation, operand) => {
                smallvec![smallvec![(*relation, place(operand)?)]]
            }
            Kind::In(list) => list
                .iter()
                .map(|operand| Some(smallvec![(Relation::Equal, place(operand)?)]))
                .collect::<Option<_>>()?,
            Kind::InList(first) => {
                let Value::UInt(length) = parameters.get(*first)? else {
                    return None;
                };
                let end = first.checked_add(1)?.checked_add(*length as usize)?;
                let members = parameters.get(first + 1..end)?.iter();
                let member = |value| {
                    let place = super::operand::place(definition, value)?;
                    Some(smallvec![(Relation::Equal, place)])
                };
                members.map(member).collect::<Option<_>>()?
            }
            Kind::Missing(false) => smallvec![smallvec![(Relation::Greater, Place::BelowAll)]],
            Kind::StartsWith(..) | Kind::IsNull | Kind::Missing(true) | Kind::Rows(_) => {
                smallvec![]
            }
            Kind::Or(branches) => branches
                .iter()
                .map(|branch| branch.iter().map(placed).collect::<Option<Branch>>())
                .collect::<Option<_>>()?,
        };
        Some(Test {
            column: *column,
            branches,
            wants_null: matches!(kind, Kind::Missing(true)),
            on_entry: None,
        })
    }
}

impl Session {
    /// The keys and tests of an access for a run with these parameters. `None`: the vectorised path has to do it.
    pub(super) fn bind_access(
        &mut self,
        access: &Access,
        table: &Table,
        parameters: &[Value],
    ) -> Option<BoundAccess> {
        let mut bound = access.bind(table, parameters)?;
        self.add_filter(access, &mut bound, parameters)?;
        Some(bound)
    }

    /// Adds what [`Access::bind`] leaves out.
    pub(super) fn add_filter(
        &mut self,
        access: &Access,
        bound: &mut BoundAccess,
        parameters: &[Value],
    ) -> Option<()> {
        if let Some(filter) = access.filter() {
            bound.filter = Some(self.evaluator(filter, parameters)?);
        }
        Some(())
    }
}

/// The expressions of the conjuncts that are no comparisons; the outer `None`: one cannot be evaluated for a row.
pub(super) fn filter_of(
    names: &Names<'_>,
    conjuncts: &[&ast::Expr],
) -> Option<Option<Arc<Expressions>>> {
    let mut collector = Collector::of_table(names);
    collector.add_condition(conjuncts)?;
    Some(collector.finish().map(Arc::new))
}

/// The values between at most one lower and one upper bound; `None`: there are none.
fn part_bounds(relations: impl IntoIterator<Item = (Relation, Place)>) -> Option<PartBounds> {
    let (mut lower, mut upper) = (Bound::Unbounded, Bound::Unbounded);
    for (relation, place) in relations {
        match (place, relation) {
            (Place::At(value), Relation::Equal) => {
                lower = Bound::Included(value.clone());
                upper = Bound::Included(value);
            }
            (Place::At(value), Relation::Less) => upper = Bound::Excluded(value),
            (Place::At(value), Relation::LessOrEqual) => upper = Bound::Included(value),
            (Place::At(value), Relation::Greater) => lower = Bound::Excluded(value),
            (Place::At(value), Relation::GreaterOrEqual) => lower = Bound::Included(value),
            (Place::BelowAll, Relation::Greater | Relation::GreaterOrEqual)
            | (Place::AboveAll, Relation::Less | Relation::LessOrEqual) => {}
            _ => return None,
        }
    }
    Some(PartBounds::Between { lower, upper })
}

fn encode(layout: &KeyLayout, values: &[Value], key: &mut Vec<u8>) {
    for (part, value) in values.iter().enumerate() {
        layout.encode_part(part, value.into(), key);
    }
}

/// Encoded keys of the index, ascending and disjoint.
#[derive(Debug)]
pub(super) enum Keys {
    /// Complete unique keys: of the clustered index the keys themselves, of a secondary index what its entries begin
    /// with.
    Points(SmallVec<[Vec<u8>; 1]>),
    Ranges(Vec<KeyRange>),
}

impl Keys {
    fn nothing() -> Keys {
        Keys::Points(SmallVec::new())
    }

    /// Rows of `table` under the keys, by the estimate of its tree for ranges.
    pub(super) fn estimated_rows(&self, table: &Table, index: IndexRef) -> Result<u64> {
        let tree = match index {
            IndexRef::Clustered => &table.clustered,
            IndexRef::Secondary(position) => &table.secondary[position],
        };
        match self {
            Keys::Points(keys) => Ok(keys.len() as u64),
            Keys::Ranges(ranges) => {
                let mut rows = 0;
                for range in ranges {
                    rows += tree.estimate_entries(range)?;
                }
                Ok(rows)
            }
        }
    }

    /// The keys as ranges.
    pub(super) fn ranges(&self) -> Vec<KeyRange> {
        match self {
            Keys::Points(keys) => keys.iter().map(|key| KeyRange::prefix(key)).collect(),
            Keys::Ranges(ranges) => ranges.clone(),
        }
    }
}

/// Keys and tests with their operands.
#[derive(Debug)]
pub(super) struct BoundAccess {
    pub(super) keys: Keys,
    pub(super) tests: Vec<Test>,
    /// The rest of the condition.
    pub(super) filter: Option<Evaluator>,
}

impl BoundAccess {
    /// Whether more than its key decides about a row.
    pub(super) fn is_filtered(&self) -> bool {
        !self.tests.is_empty() || self.filter.is_some()
    }

    /// The tests about which entries of the index do not decide.
    pub(super) fn tests_of_rows(&self) -> impl Iterator<Item = &Test> {
        self.tests.iter().filter(|test| test.on_entry.is_none())
    }
}

/// A comparison of a column: in one of the branches every relation holds.
#[derive(Debug)]
pub(super) struct Test {
    pub(super) column: usize,
    pub(super) branches: SmallVec<[Branch; 1]>,
    /// NULL passes, and nothing else.
    pub(super) wants_null: bool,
    /// The same of an entry of the index, which then decides.
    pub(super) on_entry: Option<EntryTest>,
}

/// Relations that hold all, nearly always one.
pub(super) type Branch = SmallVec<[(Relation, Place); 1]>;

impl Test {
    /// Whether a row passes. `long` is the column's value if the row only refers to it.
    pub(super) fn passes(&self, table: &Table, row: &RowView<'_>, long: Option<&[u8]>) -> bool {
        let stored = match long {
            Some(bytes) => sheaf_table::ValueRef::Bytes(bytes),
            None => row.value_ref(self.column),
        };
        if stored.is_null() {
            return self.wants_null;
        }
        let ty = &table.definition.columns[self.column].ty;
        let holds = |(relation, place): &(Relation, Place)| match place {
            Place::Null => false,
            Place::At(value) => {
                compare(ty, stored, value).is_some_and(|order| relation.holds(order))
            }
            Place::BelowAll => relation.holds(Ordering::Greater),
            Place::AboveAll => relation.holds(Ordering::Less),
        };
        self.branches.iter().any(|branch| branch.iter().all(holds))
    }
}
