//! Which index serves a condition: what its parts are bound to, and which of several uses is best.

use sheaf_access::IndexRef;
use sheaf_table::{Index, Table};

use super::conditions::{Kind, RowBranch};
use super::entry::EntryUse;
use super::measured::AccessId;
use super::{Access, Comparison, Next, indexes};
use crate::direct::operands::operand::Compared;
use crate::direct::operands::relation::Relation;

/// How a branch is a key of an index: its relations, by their numbers.
pub(super) struct BranchKey {
    /// Of the leading parts.
    pub(super) equal: Vec<usize>,
    /// Of the part behind these.
    pub(super) next: Vec<usize>,
}

impl BranchKey {
    /// `None` if the key does not say all of the branch.
    pub(super) fn of(
        definition: &Index,
        branch: &[(usize, Relation, Compared)],
    ) -> Option<BranchKey> {
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

impl Access {
    /// The best use of the table's indexes that needs no optimizer; `None` if there is none. For the rest see
    /// [`Self::use_entries`].
    pub(in crate::direct) fn choose(
        table: &Table,
        comparisons: &[Comparison],
        pushes: bool,
        read: Option<&[usize]>,
    ) -> Option<Access> {
        Access::choose_in_order(table, comparisons, pushes, read, (&|_| true, false))
    }

    /// The same where rows are wanted in an order, which some of the uses have. `is_cut`: only the first of them.
    pub(in crate::direct) fn choose_in_order(
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
    pub(in crate::direct) fn candidates(
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
    pub(in crate::direct) fn candidates_again(
        &self,
        table: &Table,
        pushes: bool,
        read: &[usize],
    ) -> Vec<Access> {
        Access::candidates(table, &self.comparisons, pushes, Some(read))
    }

    /// The choice for the same comparisons, now that the columns are known that are read besides.
    pub(in crate::direct) fn again(
        &self,
        table: &Table,
        pushes: bool,
        read: &[usize],
    ) -> Option<Access> {
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
    pub(in crate::direct) fn whole(index: IndexRef, comparisons: &[Comparison]) -> Access {
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
    pub(in crate::direct) fn scan(comparisons: &[Comparison]) -> Access {
        Access {
            is_scan: true,
            ..Access::whole(IndexRef::Clustered, comparisons)
        }
    }

    /// Whether some index finds rows by its keys.
    pub(in crate::direct) fn binds_any(table: &Table, comparisons: &[Comparison]) -> bool {
        let mut indexes = indexes(table);
        indexes.any(|index| Access::by_index(table, index, comparisons).is_some())
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
    pub(in crate::direct) fn use_entries(
        &mut self,
        table: &Table,
        pushes: bool,
        read: Option<&[usize]>,
    ) {
        if let IndexRef::Secondary(position) = self.index {
            let tested = self.tested.iter();
            let tested: Vec<usize> = tested
                .map(|position| self.comparisons[*position].column)
                .collect();
            let layout = &table.secondary_layouts[position];
            self.entry = EntryUse::new(layout, (&tested, pushes), read);
        }
    }
}
