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

//!
//! | file | what it holds |
//! |---|---|
//! | [`mod@conditions`] | conjuncts that compare columns with operands |
//! | [`choose`] | the uses of indexes for these, and the best of them |
//! | [`bind`] | keys and tests, now that operands are known |
//! | [`description`] | what EXPLAIN says of an access |
//! | [`entry`] | what entries of an index say without their rows |
//! | [`measured`] | what the accesses of a plan do while it runs |

mod bind;
mod choose;
mod conditions;
mod description;
pub(super) mod entry;
pub(super) mod measured;

use std::sync::Arc;

use sheaf_access::IndexRef;
use sheaf_table::{KeyLayout, Table};
use sqlparser::ast;

use super::expression::{Collector, Expressions};
use super::syntax::names::Names;
use entry::EntryUse;
use measured::AccessId;

pub(super) use bind::{BoundAccess, Keys, Test, add_filter, bind_access};
use conditions::Kind;
pub(super) use conditions::{
    Comparison, MAX_LIST, comparisons, conditions, list_in_place, missing,
};
pub(super) use description::{KnownParameters, OuterColumn, ReadIn};

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
    /// Whether the keys restrict nothing.
    pub(super) fn is_whole(&self) -> bool {
        self.equal.is_empty() && matches!(self.next, Next::Anything)
    }

    /// Whether its keys are ranges, or several single values.
    pub(super) fn is_range(&self) -> bool {
        !matches!(self.next, Next::Anything)
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
