//! Keys and tests, now that the operands are known.

use std::cmp::Ordering;
use std::ops::Bound;

use sheaf_access::IndexRef;
use sheaf_storage::KeyRange;
use sheaf_table::{KeyLayout, PartBounds, RowView, Table};
use sheaf_types::Value;
use sheaf_types::text::like::plain_prefix;
use smallvec::{SmallVec, smallvec};

use super::choose::BranchKey;
use super::conditions::Kind;
use super::entry::EntryTest;
use super::{Access, Comparison, Next};
use crate::direct::expression::{Evaluator, evaluator};
use crate::direct::operands::operand::{self, Compared, Place, compare};
use crate::direct::operands::relation::{Branch, Relation};
use crate::error::Result;
use crate::session::Session;

impl Access {
    /// The keys, now that the parameters are known; `None` where an operand has no place in its column. A
    /// [filter](Self::filter) is the session's to add.
    pub(in crate::direct) fn bind(
        &self,
        table: &Table,
        parameters: &[Value],
    ) -> Option<BoundAccess> {
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
            test.on_entry = part.map(|part| {
                EntryTest::new(self.layout(table), part, (&test.branches, test.wants_null))
            });
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
        let prefix = plain_prefix(pattern);
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
                    let place = operand::place(definition, value)?;
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

/// The keys and tests of an access for a run with these parameters. `None`: the vectorised path has to do it.
pub(in crate::direct) fn bind_access(
    session: &mut Session,
    access: &Access,
    table: &Table,
    parameters: &[Value],
) -> Option<BoundAccess> {
    let mut bound = access.bind(table, parameters)?;
    add_filter(session, access, &mut bound, parameters)?;
    Some(bound)
}

/// Adds what [`Access::bind`] leaves out.
pub(in crate::direct) fn add_filter(
    session: &mut Session,
    access: &Access,
    bound: &mut BoundAccess,
    parameters: &[Value],
) -> Option<()> {
    if let Some(filter) = access.filter() {
        bound.filter = Some(evaluator(session, filter, parameters)?);
    }
    Some(())
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
pub(in crate::direct) enum Keys {
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
    pub(in crate::direct) fn estimated_rows(&self, table: &Table, index: IndexRef) -> Result<u64> {
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
    pub(in crate::direct) fn ranges(&self) -> Vec<KeyRange> {
        match self {
            Keys::Points(keys) => keys.iter().map(|key| KeyRange::prefix(key)).collect(),
            Keys::Ranges(ranges) => ranges.clone(),
        }
    }
}

/// Keys and tests with their operands.
#[derive(Debug)]
pub(in crate::direct) struct BoundAccess {
    pub(in crate::direct) keys: Keys,
    pub(in crate::direct) tests: Vec<Test>,
    /// The rest of the condition.
    pub(in crate::direct) filter: Option<Evaluator>,
}

impl BoundAccess {
    /// Whether more than its key decides about a row.
    pub(in crate::direct) fn is_filtered(&self) -> bool {
        !self.tests.is_empty() || self.filter.is_some()
    }

    /// The tests about which entries of the index do not decide.
    pub(in crate::direct) fn tests_of_rows(&self) -> impl Iterator<Item = &Test> {
        self.tests.iter().filter(|test| test.on_entry.is_none())
    }
}

/// A comparison of a column: in one of the branches every relation holds.
#[derive(Debug)]
pub(in crate::direct) struct Test {
    pub(in crate::direct) column: usize,
    pub(in crate::direct) branches: SmallVec<[Branch; 1]>,
    /// NULL passes, and nothing else.
    pub(in crate::direct) wants_null: bool,
    /// The same of an entry of the index, which then decides.
    pub(in crate::direct) on_entry: Option<EntryTest>,
}

impl Test {
    /// Whether a row passes. `long` is the column's value if the row only refers to it.
    pub(in crate::direct) fn passes(
        &self,
        table: &Table,
        row: &RowView<'_>,
        long: Option<&[u8]>,
    ) -> bool {
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
