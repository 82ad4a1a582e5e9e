//! The tables of a FROM that can be read by keys, one after the other, or by a walk along an index.

use std::cmp::Reverse;
use std::sync::Arc;

use sheaf_access::IndexRef;
use sheaf_storage::{Direction, KeyRange};
use sheaf_table::Table;
use sqlparser::ast;

use super::conditions::{Conditions, From, tables_of};
use super::order::{Order, Step};
use super::{Joined, JoinedWay, MAX_JOINED_ROWS, MAX_SMALL_ROWS};
use crate::direct::access::{Access, indexes};
use crate::direct::read::index_order;
use crate::direct::rows::derived_rows::Lookup;
use crate::direct::rows::order::OrderItem;
use crate::direct::rows::row_source::{Derived, RowSource};
use crate::direct::shown::joined_list::KeyColumn;
use crate::direct::syntax::attempt::Attempt;
use crate::direct::syntax::names::Names;
use crate::error::Result;
use crate::session::Session;

/// Tables of a FROM that can be read by keys, one after the other.
pub(in crate::direct) struct Source<'a> {
    pub(in crate::direct) names: Vec<Names<'a>>,
    pub(super) conditions: Conditions<'a>,
    pub(super) steps: Vec<(usize, Step)>,
    slots: Vec<(usize, usize)>,
    /// Rows that keys may find of the first table.
    most_rows: u64,
}

impl<'a> Source<'a> {
    /// `None` if it has other than tables and queries. Without steps: its tables cannot be read by keys, one after the
    /// other.
    pub(in crate::direct) fn of(
        session: &Session,
        from: &'a [ast::TableWithJoins],
        selection: Option<&'a ast::Expr>,
        attempt: Attempt<'_>,
    ) -> Option<Source<'a>> {
        let From {
            names,
            conditions: mut conjuncts,
            outer,
        } = tables_of(session, from, attempt)?;
        conjuncts.extend(selection);
        let mut conditions = Conditions::of(&conjuncts, &outer, &names)?;
        let mut order = conditions.order(&names);
        if order.is_none() && conditions.has_other_links() {
            // They lead the other way, or not to the rows of a query.
            let plainer = Conditions::of(&conjuncts, &outer, &names)?.by_equal_columns();
            if let Some(found) = plainer.order(&names) {
                (conditions, order) = (plainer, Some(found));
            }
        }
        if order.as_ref().is_none_or(Order::begins_with_many) {
            order = conditions.usual_order(&names).or(order);
        }
        let Order {
            steps,
            slots,
            most_rows,
        } = order.unwrap_or_else(|| Order {
            steps: Vec::new(),
            slots: Vec::new(),
            most_rows: MAX_JOINED_ROWS,
        });
        Some(Source {
            names,
            conditions,
            steps,
            slots,
            most_rows,
        })
    }

    /// One row without columns.
    pub(in crate::direct) fn of_nothing(selection: Option<&'a ast::Expr>) -> Source<'a> {
        let conditions = Conditions {
            own: Vec::new(),
            links: Vec::new(),
            rest: selection.into_iter().collect(),
            outer: Vec::new(),
        };
        Source {
            names: Vec::new(),
            conditions,
            steps: Vec::new(),
            slots: Vec::new(),
            most_rows: MAX_JOINED_ROWS,
        }
    }

    /// The conjuncts of the WHERE, and of inner joins, that the rows are still to be tested by.
    pub(in crate::direct) fn rest(&self) -> &[&'a ast::Expr] {
        &self.conditions.rest
    }

    /// Whether there is a way to read the tables.
    pub(in crate::direct) fn is_read(&self) -> bool {
        self.names.is_empty() || !self.steps.is_empty()
    }

    /// Whether the first table is walked along in the order of an index.
    pub(in crate::direct) fn is_walk(&self) -> bool {
        matches!(self.steps.first(), Some((_, Step::Walk(..))))
    }

    /// Whether the rows of a table of the FROM may be missing.
    pub(in crate::direct) fn is_outer(&self, table: usize) -> bool {
        self.conditions.outer[table]
    }

    /// The queries of the FROM.
    pub(super) fn derived(&self) -> impl Iterator<Item = &Derived> {
        self.names.iter().filter_map(|names| match &names.source {
            RowSource::Query(derived) => Some(derived.as_ref()),
            RowSource::Table(_) => None,
        })
    }

    /// Reads the tables beginning with rows of one in this order, which an index has: those that its keys find, or all.
    /// `None` if none has it.
    pub(in crate::direct) fn walk(&mut self, ordered: &[KeyColumn]) -> Option<()> {
        let first = match ordered {
            [] => 0,
            [(first, ..), rest @ ..] => {
                let is_same = rest.iter().all(|(table, ..)| table == first);
                is_same.then_some(*first)?
            }
        };
        let table = self.names[first].table()?;
        let wanted = ordered.iter();
        let wanted: Vec<OrderItem> = wanted
            .map(|&(_, column, descending)| OrderItem { column, descending })
            .collect();
        let own = &self.conditions.own[first];
        let found = Access::candidates(table, own, true, None);
        let whole = indexes(table).map(|index| Access::whole(index, own));
        let in_order = found.into_iter().chain(whole).filter_map(|access| {
            let direction = index_order(table, &access, &wanted)?;
            Some((access, direction))
        });
        let (access, direction) =
            in_order.min_by_key(|(access, _)| Reverse(access.bound_count()))?;
        let step = Step::Walk(access, direction);
        if self.conditions.outer[first] {
            return None;
        }
        let order = self.conditions.order_from((first, step), 1, &self.names)?;
        (self.steps, self.slots) = (order.steps, order.slots);
        self.most_rows = MAX_JOINED_ROWS;
        Some(())
    }

    /// Reads the tables beginning with one of which few rows are likely to be read.
    pub(in crate::direct) fn take_few(&mut self, session: &Session) {
        self.take_small(session);
        if self.steps.is_empty() && self.names.len() > 1 {
            self.take_only();
        }
    }

    /// Beginning with all rows of the smallest one, if it is small.
    fn take_small(&mut self, session: &Session) {
        let inner = (0..self.names.len()).filter(|table| !self.conditions.outer[*table]);
        let small = inner.filter_map(|table| {
            let (rows, step) = self.small_step(session, table)?;
            let order = self.conditions.order_from((table, step), 1, &self.names)?;
            Some((rows, order))
        });
        if let Some((_, order)) = small.min_by_key(|(rows, _)| *rows) {
            (self.steps, self.slots) = (order.steps, order.slots);
        }
    }

    /// Beginning with the only one that constants find rows of.
    fn take_only(&mut self) {
        if let Some(order) = self.conditions.only_order(&self.names) {
            (self.steps, self.slots) = (order.steps, order.slots);
            self.most_rows = order.most_rows;
        }
    }

    /// How a small table is read whole, and how many rows it has; `None` if it is not small.
    pub(super) fn small_step(&self, session: &Session, table: usize) -> Option<(u64, Step)> {
        let source = self.names[table].table()?;
        // Long values are not in its rows, and may be many times as much.
        if source.definition.overflow.is_some() {
            return None;
        }
        let _guard = session.borrow_for_read(source, false).ok()??;
        let rows = rows_if_small(source).ok()??;
        let access = Access::whole(IndexRef::Clustered, &self.conditions.own[table]);
        Some((rows, Step::Small(access)))
    }

    /// Reads all of the only table, if nothing is said of it. How is [decided](super::list::first_of) later.
    pub(super) fn take_whole(&mut self) -> bool {
        let is_whole = self.conditions.own.iter().all(Vec::is_empty)
            && matches!(self.names.as_slice(), [only] if only.table().is_some());
        if is_whole {
            let access = Access::whole(IndexRef::Clustered, &[]);
            self.steps = vec![(0, Step::Walk(access, Direction::Forward))];
        }
        is_whole
    }

    /// Where a table of the FROM is read.
    pub(in crate::direct) fn place(&self, table: usize) -> Option<usize> {
        self.steps.iter().position(|(step, _)| *step == table)
    }

    /// The tables in the order in which they are read. `read`: the columns that are, by their tables' places.
    /// `pushes`: conditions are tested on entries of indexes.
    pub(super) fn into_tables(self, pushes: bool, read: &[(usize, usize)]) -> Option<Vec<Joined>> {
        let joined = |(place, (table, step)): (usize, (usize, Step))| {
            let slots = self.slots.iter().enumerate();
            let own = slots.filter(|(_, (from, _))| *from == table);
            let gives: Vec<(usize, usize)> =
                own.map(|(slot, (_, column))| (*column, slot)).collect();
            let read = read.iter().filter(|(of, _)| *of == place);
            let read = read.map(|(_, column)| *column);
            let given = gives.iter().map(|(column, _)| *column);
            let read: Vec<usize> = read.chain(given).collect();
            let source = self.names[table].source.clone();
            let way = match (step, &source) {
                (Step::Keys(access), RowSource::Table(table)) => {
                    let again = access.again(table, pushes, &read);
                    let accesses = match again {
                        Some(again) => vec![again],
                        None => access.candidates_again(table, pushes, &read),
                    };
                    JoinedWay::Keys(Arc::clone(table), accesses)
                }
                (Step::Walk(mut access, direction), RowSource::Table(table)) => {
                    access.use_entries(table, pushes, Some(&read));
                    JoinedWay::Walk(Arc::clone(table), access, direction)
                }
                (Step::Small(access), RowSource::Table(table)) => {
                    JoinedWay::Small(Arc::clone(table), access)
                }
                (Step::First(mut access, way), RowSource::Table(table)) => {
                    access.use_entries(table, pushes, Some(&read));
                    let is_secondary = access.index != IndexRef::Clustered;
                    if is_secondary && !access.entry.is_covering() {
                        return None;
                    }
                    JoinedWay::First(Arc::clone(table), access, way)
                }
                (Step::Rows(equal), RowSource::Query(derived)) => {
                    JoinedWay::Rows(Lookup::new(derived, equal)?)
                }
                _ => return None,
            };
            Some(Joined {
                from: table,
                alias: self.names[table].alias.to_string(),
                source,
                way,
                is_outer: self.conditions.outer[table],
                gives,
                most_rows: match place {
                    0 => self.most_rows,
                    _ => MAX_JOINED_ROWS,
                },
            })
        };
        self.steps.into_iter().enumerate().map(joined).collect()
    }
}

/// How many rows a table has, if they are few.
pub(in crate::direct) fn rows_if_small(table: &Table) -> Result<Option<u64>> {
    let rows = table.clustered.estimate_entries(&KeyRange::all())?;
    Ok((rows <= MAX_SMALL_ROWS).then_some(rows))
}
