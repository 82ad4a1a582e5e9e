//! What a join shows, and what its rows are ordered or grouped by. Tables are named by their places in the order in
//! which they are read.

use super::aggregate::Aggregate;
use super::row::Item;
use crate::direct::rows::order::{OrderItem, SortKey};
use crate::direct::syntax::names::Names;

/// What the select list consists of; tables by their places in the order in which they are read.
#[derive(Debug)]
pub(in crate::direct) enum Shown {
    Columns(Vec<(usize, Item)>),
    /// Of all rows.
    Aggregates(Vec<JoinedAggregate>),
    Groups {
        by: JoinedKey,
        items: Vec<GroupItem>,
        aggregates: Vec<JoinedAggregate>,
    },
}

/// An item of a query with groups.
#[derive(Debug)]
pub(in crate::direct) enum GroupItem {
    /// One of the columns that make the group, by the table's place.
    Column(usize, Item),
    /// An aggregate, by its number.
    Aggregate(usize),
}

/// An aggregate over the rows of the table at a place.
#[derive(Debug)]
pub(in crate::direct) struct JoinedAggregate {
    pub(in crate::direct) place: usize,
    pub(in crate::direct) function: JoinedFunction,
}

#[derive(Debug)]
pub(in crate::direct) enum JoinedFunction {
    Plain([Aggregate; 1]),
    /// COUNT(DISTINCT column).
    CountDistinct {
        column: usize,
        key: SortKey,
    },
}

impl Shown {
    /// The columns that are looked at, with their tables' places.
    pub(in crate::direct) fn columns(&self) -> Vec<(usize, usize)> {
        let of_aggregate = |aggregate: &JoinedAggregate| {
            let column = match &aggregate.function {
                JoinedFunction::Plain([plain]) => plain.column()?,
                JoinedFunction::CountDistinct { column, .. } => *column,
            };
            Some((aggregate.place, column))
        };
        match self {
            Shown::Columns(items) => {
                let items = items.iter();
                items.map(|(place, item)| (*place, item.column)).collect()
            }
            Shown::Aggregates(aggregates) => aggregates.iter().filter_map(of_aggregate).collect(),
            // What is shown of a group besides its aggregates is of its key.
            Shown::Groups { by, aggregates, .. } => {
                let aggregates = aggregates.iter().filter_map(of_aggregate);
                by.columns().chain(aggregates).collect()
            }
        }
    }
}

/// A column that rows are ordered or grouped by: its table, its number in it, and whether downwards.
pub(in crate::direct) type KeyColumn = (usize, usize, bool);

/// A key of columns of several tables, these by their places.
#[derive(Debug)]
pub(in crate::direct) struct JoinedKey(pub(in crate::direct) Vec<(usize, SortKey)>);

impl JoinedKey {
    /// The columns, with the places of their tables.
    pub(in crate::direct) fn items(&self) -> impl Iterator<Item = (usize, OrderItem)> + '_ {
        let parts = self.0.iter();
        parts.flat_map(|(place, key)| key.items().iter().map(|item| (*place, *item)))
    }

    /// `place`: where a table of the FROM is read.
    pub(in crate::direct) fn new(
        columns: &[KeyColumn],
        names: &[Names<'_>],
        place: impl Fn(usize) -> Option<usize>,
    ) -> Option<JoinedKey> {
        let part = |&(table, column, descending): &KeyColumn| {
            let item = OrderItem { column, descending };
            let key = SortKey::new(names[table].definition(), vec![item])?;
            Some((place(table)?, key))
        };
        columns
            .iter()
            .map(part)
            .collect::<Option<_>>()
            .map(JoinedKey)
    }

    /// With their tables' places.
    pub(in crate::direct) fn columns(&self) -> impl Iterator<Item = (usize, usize)> {
        let parts = self.0.iter();
        parts.flat_map(|(place, key)| key.columns().map(|column| (*place, column)))
    }
}
