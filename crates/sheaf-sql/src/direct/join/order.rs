//! The order in which the tables of a join are read: each by keys that are known by then.

use sheaf_storage::Direction;
use sheaf_table::Table;

use super::conditions::Conditions;
use super::link::{Link, LinkWay};
use super::{MAX_JOINED_ROWS, MAX_USUAL_ROWS};
use crate::direct::access::{Access, Comparison};
use crate::direct::operands::operand::Compared;
use crate::direct::operands::relation::Relation;
use crate::direct::syntax::names::Names;

/// Rows of a first table of which each may lead to several, by estimate.
const MAX_MULTIPLIED_ROWS: u64 = 100;

/// Tables of an order that has few rows by statistics of which each row before may lead to several.
const MAX_MULTIPLYING: usize = 3;

/// How a table is read, in the order in which tables are.
pub(super) enum Step {
    Keys(Access),
    Walk(Access, Direction),
    Small(Access),
    First(Access, (Direction, usize)),
    /// Of a query, by these columns.
    Rows(Vec<(usize, Compared)>),
}

/// A table that may be read next.
struct NextTable {
    table: usize,
    step: Step,
    slots: Vec<(usize, usize)>,
    /// Whether a table before leads to it.
    is_linked: bool,
}

impl Step {
    /// At most one row.
    fn is_single(&self) -> bool {
        matches!(self, Step::Keys(access) if access.is_single())
    }
}

/// The order in which tables are read, and how.
pub(super) struct Order {
    pub(super) steps: Vec<(usize, Step)>,
    /// Values that one table takes from another, by place.
    pub(super) slots: Vec<(usize, usize)>,
    /// Rows that keys may find of the first table.
    pub(super) most_rows: u64,
}

impl Order {
    /// Whether its first table has several rows, and may have any number.
    pub(super) fn begins_with_many(&self) -> bool {
        matches!(self.steps.first(), Some((_, Step::Keys(access))) if !access.is_unique)
    }

    /// Rows of all tables that are usually read, by the statistics of the indexes; `None` if they do not tell.
    fn usual_rows(&self, names: &[Names<'_>]) -> Option<u64> {
        let (mut joined, mut read) = (1u64, 0u64);
        for (table, step) in &self.steps {
            let Step::Keys(access) = step else {
                return None;
            };
            joined = joined.saturating_mul(access.usual_rows(names[*table].table()?)?);
            read = read.saturating_add(joined);
        }
        Some(read)
    }
}

impl<'a> Conditions<'a> {
    /// The first order that needs no optimizer. One that begins with a single row comes before others.
    pub(super) fn order(&self, names: &[Names<'_>]) -> Option<Order> {
        let first = (0..names.len()).filter(|table| !self.outer[*table]);
        let mut best = None;
        let begun = first.filter_map(|first| {
            let (step, has_few_rows) = match names[first].table() {
                Some(table) => {
                    let access = best_or_any(table, &self.own[first])?;
                    let is_unique = access.is_unique;
                    (Step::Keys(access), is_unique)
                }
                // It has so many as a join looks at, at most.
                None if names[first].asked().is_none() => (Step::Rows(self.equal_of(first)), true),
                None => return None,
            };
            self.order_from((first, step), usize::from(has_few_rows), names)
        });
        for order in begun {
            if order.steps[0].1.is_single() {
                return Some(order);
            }
            best.get_or_insert(order);
        }
        best
    }

    /// The order where constants find rows of one table alone: it comes first. Several rows may come of it, and several
    /// for each of these; so they have to be few when it runs.
    pub(super) fn only_order(&self, names: &[Names<'_>]) -> Option<Order> {
        if names.iter().any(|names| names.table().is_none()) {
            return None;
        }
        let inner = (0..names.len()).filter(|table| !self.outer[*table]);
        let mut begun = inner.filter_map(|first| {
            let access = best_or_any(names[first].table()?, &self.own[first])?;
            Some((first, Step::Keys(access)))
        });
        let first = begun.next()?;
        if begun.next().is_some() {
            return None;
        }
        let mut order = self.order_from(first, 1, names)?;
        order.most_rows = MAX_MULTIPLIED_ROWS;
        Some(order)
    }

    /// The order in which fewest rows are usually read, where these are few by the statistics of the indexes. Each row
    /// may lead to several, and these to several again: if this time they are not few, they are left to the operators.
    pub(super) fn usual_order(&self, names: &[Names<'_>]) -> Option<Order> {
        if names.len() < 2 || names.iter().any(|names| names.table().is_none()) {
            return None;
        }
        let inner = (0..names.len()).filter(|table| !self.outer[*table]);
        let begun = inner.filter_map(|first| {
            let access = best_or_any(names[first].table()?, &self.own[first])?;
            let order = self.order_from((first, Step::Keys(access)), MAX_MULTIPLYING, names)?;
            Some((order.usual_rows(names)?, order))
        });
        let (rows, mut order) = begun.min_by_key(|(rows, _)| *rows)?;
        let mut others = order.steps.iter().skip(1);
        if others.any(|(_, step)| !step.is_single()) {
            order.most_rows = MAX_MULTIPLIED_ROWS;
        }
        (rows <= MAX_USUAL_ROWS).then_some(order)
    }

    /// The order that begins with `first` and goes on to tables that have one row for each row so far. So many tables
    /// may have several, besides those of a list of unique keys, and those in memory.
    pub(super) fn order_from(
        &self,
        first: (usize, Step),
        mut multiplying: usize,
        names: &[Names<'_>],
    ) -> Option<Order> {
        let mut order = Order {
            steps: vec![first],
            slots: Vec::new(),
            most_rows: MAX_JOINED_ROWS,
        };
        while order.steps.len() < names.len() {
            let is_read =
                |table: usize, order: &Order| order.steps.iter().any(|(step, _)| *step == table);
            let mut next: Option<NextTable> = None;
            for table in (0..names.len()).filter(|table| !is_read(*table, &order)) {
                // What decides whether a row is missing comes first.
                let mut others = self.links_of(table).flat_map(|link| link.others(table));
                if self.outer[table] && !others.all(|other| other > table || is_read(other, &order))
                {
                    continue;
                }
                let mut slots = order.slots.clone();
                let Some(step) = self.step_of(table, &order, &mut slots, names) else {
                    continue;
                };
                let is_single = step.is_single();
                let is_next = match &step {
                    // What it is joined by comes first, if anything does.
                    Step::Rows(equal) => !equal.is_empty() || multiplying > 0,
                    _ => multiplying > 0,
                };
                // What no table so far leads to would be read for each of their rows.
                let mut links = self.links_of(table);
                let is_linked =
                    links.any(|link| link.others(table).any(|other| is_read(other, &order)));
                let is_better = match &next {
                    None => true,
                    Some(before) => is_linked && !before.is_linked,
                };
                if is_single || is_next && is_better {
                    next = Some(NextTable {
                        table,
                        step,
                        slots,
                        is_linked,
                    });
                }
                if is_single {
                    break;
                }
            }
            let NextTable {
                table, step, slots, ..
            } = next?;
            if !step.is_single() && !matches!(step, Step::Rows(_)) {
                multiplying = multiplying.saturating_sub(1);
            }
            order.slots = slots;
            order.steps.push((table, step));
        }
        Some(order)
    }

    /// How a table is read once those of `order` are.
    fn step_of(
        &self,
        table: usize,
        order: &Order,
        slots: &mut Vec<(usize, usize)>,
        names: &[Names<'_>],
    ) -> Option<Step> {
        let mut compared = Vec::new();
        for link in self.links_of(table) {
            // A LEFT JOIN to another table says nothing of this one.
            let is_others = link
                .others(table)
                .any(|other| self.outer[other] && other > table);
            let is_read = |other: usize| order.steps.iter().any(|(step, _)| *step == other);
            if is_others || !link.others(table).all(is_read) {
                continue;
            }
            // Where it leads the other way only, the table has to come before.
            let LinkWay {
                column,
                relation,
                other,
            } = link.way_to(table)?;
            compared.push((column.1, *relation, other.taken(slots)));
        }
        let Some(source) = names[table].table() else {
            let equal = compared.into_iter();
            let equal = equal.map(|(column, relation, compared)| {
                (relation == Relation::Equal).then_some((column, compared))
            });
            let mut equal = equal.collect::<Option<Vec<_>>>()?;
            let is_known = match names[table].asked() {
                Some(asked) => equal.iter().any(|(column, _)| *column == asked.column),
                None => true,
            };
            equal.extend(self.equal_of(table));
            return is_known.then_some(Step::Rows(equal));
        };
        let mut conditions = self.own[table].clone();
        let compared = compared.into_iter();
        conditions.extend(
            compared.map(|(column, relation, other)| Comparison::new(column, relation, other)),
        );
        best_or_any(source, &conditions).map(Step::Keys)
    }

    fn links_of(&self, table: usize) -> impl Iterator<Item = &Link<'a>> {
        self.links.iter().filter(move |link| link.is_of(table))
    }
}

/// The best use of an index, or one of several: which, is decided when the operands are known.
fn best_or_any(table: &Table, comparisons: &[Comparison]) -> Option<Access> {
    Access::choose(table, comparisons, true, None).or_else(|| {
        let candidates = Access::candidates(table, comparisons, true, None);
        candidates.into_iter().next()
    })
}
