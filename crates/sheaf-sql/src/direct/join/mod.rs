//! SELECT from several tables, each row of one leading to few rows of the next by a key; and SELECT with groups, from
//! one table or several.
//!
//! ```text
//!   FROM orders, lines  WHERE o.id = ?  AND l.order = o.id
//!
//!   orders, by its key -> row -> the key of its lines -> rows -> ...       loops in loops, as a clerk would do it
//! ```
//!
//! The first table is read by constants and parameters. What the keys of another take from the tables before it are
//! parameters to it as well. They stand behind those of the statement ([`Operand::Outer`]) and change from row to row.
//! A plan is made where every table but the first can be read so by a complete unique key. If the tables before it are
//! read by unique keys, or are small, any key will do. So it will where constants find rows of one table alone, if
//! these turn out to be few, or where statistics say that few rows are read of all tables.
//!
//! Keys are equal to a column of a table before, or lie above or below it. Where they are whole numbers, they may be
//! computed of such columns, too: `n.id BETWEEN o.a AND o.a + 2`. That leads from o to n, but not from n to o.
//!
//! A first table that no key finds rows of is read whole if it has [few](MAX_SMALL_ROWS).
//!
//! The right side of a LEFT JOIN is read like that, too: where it has no row, the joined row goes on without one. If
//! the WHERE compares one of its columns, which NULL does not pass, it is an inner join.
//!
//! A FROM may have [queries](super::derived), too, whose rows are in memory by then. They are the first table, or are
//! found by the columns that they are joined by.
//!
//! Groups of a whole table that need one entry of an index each are found by jumping from group to group, as
//! `SELECT a, MAX(b) .. GROUP BY a` with an index of a and b.
//!
//! Where no key finds the rows of a first table, but an index has them in the order of a LIMIT, the join walks along it
//! for a while and sees whether it meets rows enough. If keys find them in that order, it walks along these.
//!
//! The result waits in memory until it is complete ([`joined_result`]): so the plan can still find that it is
//! too large for it, and leave it to the vectorised path. How the tables are gone through is told in
//! [`join_walk`].
//!
//! | file | what it holds |
//! |---|---|
//! | [`join_walk`] | how a join runs |
//! | [`joined_result`] | what it has found, until it is complete |

mod conditions;
pub(super) mod join_walk;
pub(super) mod joined_result;
mod link;
mod list;
mod order;
mod source;

use std::sync::Arc;

use sheaf_storage::Direction;

use arrow::datatypes::{Schema, SchemaRef};
use sheaf_table::Table;
use sqlparser::ast;

use super::access::Access;
use super::derived::is_in_from;
use super::operands::operand::Operand;
use super::read::{PlainQuery, limit_and_offset, plain_query, plain_select};
use super::rows::derived_rows::Lookup;
use super::rows::row_source::{Derived, RowSource};
use super::shown::joined_list::{JoinedKey, KeyColumn, Shown};
use super::syntax::attempt::Attempt;
use crate::session::Session;
use crate::session::result::ColumnMeta;

use list::{List, first_of, outer_is_needed};

pub(super) use list::ordered_columns;
pub(super) use source::{Source, rows_if_small};

/// Tables of a plan, at most.
const MAX_TABLES: usize = 8;

/// Rows of a table that is read whole, at most. Beyond that, workers and batches pay for themselves.
pub(in crate::direct) const MAX_SMALL_ROWS: u64 = 500;

/// Rows of all tables that a join looks at, and those of its first table by estimate. Beyond that, workers and batches
/// pay for themselves.
pub(super) const MAX_JOINED_ROWS: u64 = 2_000;

/// Rows of all tables that are usually read where each row of one leads to several of the next.
const MAX_USUAL_ROWS: u64 = 400;

/// See the module's comment.
#[derive(Debug)]
pub(super) struct Join {
    pub(super) columns: Vec<ColumnMeta>,
    pub(super) schema: SchemaRef,
    pub(super) shown: Shown,
    /// In the order in which they are read.
    pub(super) tables: Vec<Joined>,
    /// ORDER BY, of the rows or groups that are shown.
    pub(super) order: Option<JoinedKey>,
    pub(super) limit: Option<Operand>,
    pub(super) offset: Option<Operand>,
    /// The same along an index in the order of the LIMIT, where keys find too many rows.
    pub(super) otherwise: Option<Box<Join>>,
}

/// A table of the join.
#[derive(Debug)]
pub(super) struct Joined {
    /// Its place in the FROM.
    pub(super) from: usize,
    /// What the statement calls it.
    pub(super) alias: String,
    pub(super) source: RowSource,
    pub(super) way: JoinedWay,
    /// A row without a match here goes on without one.
    pub(super) is_outer: bool,
    /// Rows that its keys may find, by estimate.
    pub(super) most_rows: u64,
    /// Columns whose values later tables take, with their places behind the statement's parameters.
    pub(super) gives: Vec<(usize, usize)>,
}

/// How the rows of a table are found.
#[derive(Debug)]
pub(super) enum JoinedWay {
    /// Of several uses of indexes that one is taken when it runs which reads fewest rows by estimate.
    Keys(Arc<Table>, Vec<Access>),
    /// The first table, in the order of an index, until there are enough.
    Walk(Arc<Table>, Access, Direction),
    /// The first table, from end to end: it is small.
    Small(Arc<Table>, Access),
    /// The only table: the first entry of each group of those with so many leading parts in common.
    First(Arc<Table>, Access, (Direction, usize)),
    /// In memory, of a query.
    Rows(Lookup),
}

impl Join {
    /// The plan of a query; `None` if it is not a join of this kind.
    pub(super) fn compile(
        session: &Session,
        query: &ast::Query,
        attempt: Attempt<'_>,
    ) -> Option<Join> {
        let mut join = Join::compile_one(session, query, attempt, false)?;
        if join.limit.is_some() && !join.is_walk() {
            let walk = Join::compile_one(session, query, attempt, true);
            match walk {
                // What reads the same rows, and can end before the last of them, comes first.
                Some(mut walk) if walk.reads_rows_of(&join) => {
                    walk.otherwise = Some(Box::new(join));
                    join = walk;
                }
                walk => join.otherwise = walk.map(Box::new),
            }
        }
        Some(join)
    }

    /// Whether it finds the rows of its first table by keys that say all that those of another one say: keys of the
    /// same index, or of another.
    pub(super) fn reads_rows_of(&self, other: &Join) -> bool {
        match (self.tables.first(), other.tables.first()) {
            (Some(own), Some(first)) if own.from == first.from => match (&own.way, &first.way) {
                (JoinedWay::Walk(_, walk, _), JoinedWay::Keys(_, accesses)) => {
                    !walk.is_whole()
                        && accesses.iter().all(|access| {
                            walk.binds_all_of(access) && (walk.is_unique || !access.is_unique)
                        })
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// `walks`: it is to go along an index, whether or not keys find its rows.
    fn compile_one(
        session: &Session,
        query: &ast::Query,
        attempt: Attempt<'_>,
        walks: bool,
    ) -> Option<Join> {
        let PlainQuery {
            select,
            order_by,
            limit_clause,
            locks,
        } = plain_query(query)?;
        if !locks.is_empty() {
            return None;
        }
        let plain = plain_select(select)?;
        let mut source = Source::of(session, &select.from, plain.selection, attempt)?;
        let text = attempt.text;
        let has_queries = source.derived().next().is_some();
        let has_groups = !plain.group_by.is_empty() || plain.distinct;
        let is_first_of = source.steps.is_empty() && has_groups && source.take_whole();
        let is_plain_read = source.names.len() == 1 && plain.group_by.is_empty() && !has_queries;
        if is_plain_read && !is_first_of || !source.rest().is_empty() {
            return None;
        }
        if source.steps.is_empty() && !walks && (source.names.len() > 1 || is_in_from()) {
            source.take_few(session);
        }
        if source.steps.is_empty() || walks {
            let is_cut = limit_clause.is_some() && !has_groups;
            let ordered = match order_by {
                Some(order_by) => ordered_columns(order_by, select, &source.names)?,
                None => Vec::new(),
            };
            is_cut.then(|| source.walk(&ordered))??;
        }
        let is_walk = source.is_walk() && !is_first_of;
        let Source {
            names, conditions, ..
        } = &source;
        let place = |table: usize| source.place(table);
        let ordered = match order_by {
            Some(order_by) => ordered_columns(order_by, select, names)?,
            None => Vec::new(),
        };
        let mut list = List::of(session, (select, text), &plain, (names, &ordered), place)?;
        if has_queries {
            list.describe_queries(session, (select, text))?;
        }
        if is_walk && !matches!(list.shown, Shown::Columns(_)) {
            return None;
        }
        let first_of = match is_first_of {
            true => Some(first_of(names[0].table()?, &list.shown).or_else(|| {
                let step = source.small_step(session, 0).filter(|_| is_in_from());
                step.map(|(_, step)| step)
            })?),
            false => None,
        };
        if matches!(list.shown, Shown::Aggregates(_))
            && (limit_clause.is_some() || order_by.is_some())
        {
            return None;
        }
        // The keys of rows have no place for a row that is missing.
        let is_missing = |(table, ..): &KeyColumn| conditions.outer[*table];
        if ordered.iter().any(is_missing)
            || outer_is_needed(&list.shown, |place| {
                source
                    .steps
                    .get(place)
                    .is_some_and(|(table, _)| conditions.outer[*table])
            })
        {
            return None;
        }
        let order = match ordered.as_slice() {
            _ if is_walk => None,
            [] => None,
            columns => Some(JoinedKey::new(columns, names, place)?),
        };
        let (limit, offset) = match limit_clause {
            Some(clause) => limit_and_offset(clause)?,
            None => (None, None),
        };
        let mut read = list.shown.columns();
        read.extend(order.iter().flat_map(JoinedKey::columns));
        if let Some(step) = first_of {
            source.steps = vec![(0, step)];
        }
        let tables = source.into_tables(session.variables.pushes_index_conditions(), &read)?;
        Some(Join {
            tables,
            columns: list.columns,
            schema: Arc::new(Schema::new(list.fields)),
            shown: list.shown,
            order,
            limit,
            offset,
            otherwise: None,
        })
    }

    /// The rows alone, with these columns by their tables' places, and in an order.
    pub(super) fn of_rows(
        conditions_on_entries: bool,
        source: Source<'_>,
        read: &[(usize, usize)],
        order: Option<JoinedKey>,
    ) -> Option<Join> {
        Some(Join {
            columns: Vec::new(),
            schema: Arc::new(Schema::empty()),
            shown: Shown::Columns(Vec::new()),
            tables: source.into_tables(conditions_on_entries, read)?,
            order,
            limit: None,
            offset: None,
            otherwise: None,
        })
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = &Table> {
        let tables = self.tables.iter();
        tables.filter_map(|joined| joined.source.table().map(AsRef::as_ref))
    }

    /// Whether it begins with all rows of a small table.
    pub(super) fn reads_small(&self) -> bool {
        let mut tables = self.tables.iter();
        tables.any(|joined| matches!(joined.way, JoinedWay::Small(..)))
    }

    /// The queries among its tables, by place.
    pub(super) fn derived(&self) -> impl Iterator<Item = &Derived> {
        let tables = self.tables.iter();
        tables.filter_map(|joined| match &joined.source {
            RowSource::Query(derived) => Some(derived.as_ref()),
            RowSource::Table(_) => None,
        })
    }

    /// Whether a list that a run brings is among the keys that find the rows of its first table.
    pub(super) fn binds_list(&self) -> bool {
        let first = self.tables.first();
        first.is_some_and(|first| match &first.way {
            JoinedWay::Keys(_, accesses) => accesses.iter().all(Access::binds_list),
            _ => false,
        })
    }

    /// Whether its first table is walked along in the order of an index whose keys find its rows.
    fn is_keyed_walk(&self) -> bool {
        let first = self.tables.first();
        first.is_some_and(
            |first| matches!(&first.way, JoinedWay::Walk(_, access, _) if !access.is_whole()),
        )
    }

    /// The same without such keys.
    pub(super) fn walks_whole(&self) -> bool {
        self.is_walk() && !self.is_keyed_walk()
    }

    /// Whether its first table is small, and read from end to end.
    pub(super) fn reads_small_whole(&self) -> bool {
        let first = self.tables.first().map(|first| &first.way);
        matches!(first, Some(JoinedWay::Small(_, access)) if access.is_whole())
    }

    /// Whether its first table is walked along in the order of an index.
    pub(super) fn is_walk(&self) -> bool {
        let first = self.tables.first();
        first.is_some_and(|first| matches!(first.way, JoinedWay::Walk(..)))
    }

    /// Whether all tables are what the plan was made for.
    pub(super) fn is_current(&self) -> bool {
        let is_current = |joined: &Joined| {
            joined.source.is_current()
                && match &joined.way {
                    JoinedWay::Small(table, _) => matches!(rows_if_small(table), Ok(Some(_))),
                    _ => true,
                }
        };
        self.tables.iter().all(is_current)
    }
}
