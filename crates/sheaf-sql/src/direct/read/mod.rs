//! SELECT of columns of one table, or of aggregates over them.
//!
//! Rows go from the leaf to the client's buffer as they are found. Only ORDER BY against the order of the index, and
//! DISTINCT, hold them in memory first. Where no index finds the rows by few keys, but one has the order of a LIMIT, a
//! plan walks along it for a while and sees whether it meets rows enough. Until a plan has sent its first byte it may
//! still find that its operands or the number of rows do not suit it, and leave the statement to the vectorised path.
//!
//! | file | what it holds |
//! |---|---|
//! | [`constants`] | SELECT of constants |
//! | [`counted`] | SQL_CALC_FOUND_ROWS |

mod clauses;
mod compile;
pub(super) mod constants;
pub(super) mod counted;
mod plain_query;
mod prepare;
mod run;
mod send;

use arrow::datatypes::SchemaRef;
use sheaf_storage::Direction;

use super::access::{Access, BoundAccess};
use super::operands::operand::Operand;
use super::rows::order::SortKey;
use super::shown::aggregate::Aggregate;
use super::shown::row::Item;
use super::shown::select_list::Computed;
use super::syntax::locking_clause::Locking;
use crate::session::result::ColumnMeta;

pub(super) use clauses::{condition, index_order, limit_and_offset, may_divide, row_count};
pub(super) use compile::is_of_large_table;
pub(super) use plain_query::{
    PlainQuery, PlainSelect, plain_query, plain_select, plain_select_of_groups,
};
pub(super) use run::{ready_to_read, run_direct_read, would_read};
pub(super) use send::{end_direct_read, send_sorted};

/// Rows that a LIMIT lets a direct plan walk to, whatever the estimate, besides those that OFFSET passes over.
pub(super) const MAX_LIMITED_ROWS: u64 = 1_000;

/// Rows that a walk looks at in the hope that a LIMIT ends it.
pub(super) const MAX_WALKED_ROWS: u64 = 1_000;

/// Rows of a table that is read from end to end. Beyond that, workers and batches pay for themselves.
const MAX_WHOLE_ROWS: u64 = 2_000;

/// See the module's comment.
#[derive(Debug)]
pub(super) struct Read {
    /// What the statement calls the table.
    pub(super) alias: String,
    pub(super) columns: Vec<ColumnMeta>,
    /// The result's columns as Arrow has them.
    schema: SchemaRef,
    pub(super) shown: Shown,
    /// Of the columns that are shown.
    computed: Option<Computed>,
    pub(super) access: Access,
    pub(super) direction: Direction,
    /// The statement wants rows in an order.
    pub(super) is_ordered: bool,
    /// The index does not give the order.
    order: Option<SortKey>,
    distinct: Option<SortKey>,
    pub(super) limit: Option<Operand>,
    pub(super) offset: Option<Operand>,
    pub(super) locking: Option<Locking>,
    /// All rows in the wanted order, of a LIMIT.
    walk: Option<Walk>,
    /// No index serves it: it reads a small table from end to end.
    pub(super) reads_whole: bool,
}

/// Rows in the order of an index.
#[derive(Debug)]
struct Walk {
    access: Access,
    direction: Direction,
}

/// What the select list consists of.
#[derive(Debug)]
pub(super) enum Shown {
    Columns(Vec<Item>),
    Aggregates {
        aggregates: Vec<Aggregate>,
        /// Entries are counted, and their rows are not looked at.
        counts_entries: bool,
        /// It is the least or greatest value of the column that rows come in the order of: the first one is it.
        ends_at_first: bool,
    },
}

impl Read {
    pub(super) fn result_columns(&self) -> usize {
        self.columns.len()
    }

    /// How rows are read, and from which end.
    pub(super) fn access_of(&self, way: Way) -> (&Access, Direction) {
        match (way, &self.walk) {
            (Way::InOrder, Some(walk)) => (&walk.access, walk.direction),
            _ => (&self.access, self.direction),
        }
    }

    /// Whether rows wait in memory until all are found.
    pub(super) fn sorts(&self) -> bool {
        self.order.is_some() || self.distinct.is_some()
    }

    /// The keys of ORDER BY and of DISTINCT.
    pub(super) fn sort_keys(&self) -> (Option<&SortKey>, Option<&SortKey>) {
        (self.order.as_ref(), self.distinct.as_ref())
    }
}

/// A plan with its parameters.
pub(super) struct Ready {
    pub(super) bound: BoundAccess,
    pub(super) limit: u64,
    pub(super) offset: u64,
    pub(super) way: Way,
}

impl Ready {
    /// Rows that a read looks at, at most, in the hope that a LIMIT ends it.
    pub(super) fn most(&self) -> u64 {
        match self.way {
            Way::Through => u64::MAX,
            Way::ForAWhile | Way::InOrder => MAX_WALKED_ROWS,
        }
    }

    /// Rows that are looked for, at most: a sort needs all of them.
    pub(super) fn wanted(&self, read: &Read) -> u64 {
        match read.sorts() {
            true => u64::MAX,
            false => self.limit.saturating_add(self.offset),
        }
    }
}

/// How the rows of a plan are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Those under the keys, to the end or to the LIMIT.
    Through,
    /// The same, but it is abandoned if it takes too long.
    ForAWhile,
    /// All in the wanted order, until there are enough or it takes too long.
    InOrder,
}
