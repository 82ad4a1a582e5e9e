//! What a conjunction leaves of each column, before an index is looked at.

use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::estimate::column_set::ColumnSet;
use crate::estimate::condition::{Term, conjuncts};

/// What a conjunction leaves of each column, by its position. There are few columns, and each branch of an OR has sets
/// of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnSets<'t>(SmallVec<[(usize, Cow<'t, ColumnSet>); 4]>);

impl<'t> ColumnSets<'t> {
    pub(crate) fn get(&self, column: usize) -> Option<&ColumnSet> {
        let mut sets = self.0.iter();
        let found = sets.find(|(known, _)| *known == column);
        found.map(|(_, set)| set.as_ref())
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &ColumnSet> {
        self.0.iter().map(|(_, set)| set.as_ref())
    }

    /// Leaves of a column what is in the set, too.
    fn intersect(&mut self, column: usize, set: &'t ColumnSet) {
        match self.0.iter_mut().find(|(known, _)| *known == column) {
            Some((_, known)) => *known = Cow::Owned(known.intersect(set)),
            None => self.0.push((column, Cow::Borrowed(set))),
        }
    }
}

/// What a conjunction says of each column.
pub(crate) fn column_sets<'c>(conditions: &'c [impl Borrow<Term>]) -> ColumnSets<'c> {
    let mut of_columns = BTreeMap::<_, Vec<&ColumnSet>>::new();
    for term in conditions.iter().flat_map(|term| conjuncts(term.borrow())) {
        if let Term::Column { column, set, .. } = term {
            of_columns.entry(*column).or_default().push(set);
        }
    }
    let intersection = |sets: Vec<&'c ColumnSet>| match sets.as_slice() {
        [set] => Some(Cow::Borrowed(*set)),
        sets => ColumnSet::intersection_of(sets).map(Cow::Owned),
    };
    let sets = of_columns.into_iter();
    let sets = sets.filter_map(|(column, sets)| Some((column, intersection(sets)?)));
    ColumnSets(sets.collect())
}

/// What is left of each column in a branch of an OR.
pub(crate) fn with_branch<'s>(sets: &'s ColumnSets<'_>, branch: &'s Term) -> ColumnSets<'s> {
    let known = sets.0.iter();
    let known = known.map(|(column, set)| (*column, Cow::Borrowed(set.as_ref())));
    let mut sets = ColumnSets(known.collect());
    for term in conjuncts(branch) {
        if let Term::Column { column, set, .. } = term {
            sets.intersect(*column, set);
        }
    }
    sets
}
