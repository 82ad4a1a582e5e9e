//! What a join has found: rows, totals of all rows, or groups. It waits in memory until it is complete, and is put in
//! order.
//!
//! ```text
//!   rows     sort key | row of each table       sorted by the key, if there is ORDER BY
//!   groups   group key -> first row, totals     a map; sorted by another key, if there is ORDER BY
//! ```
//!
//! Keys are made of the columns' sort keys, so that collations decide what is equal, as in an index. Of a group the
//! first row is shown that was found. DISTINCT is a grouping by all that is shown.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use sheaf_storage::ReadView;
use sheaf_table::{RowView, Table};

use crate::direct::join::Join;
use crate::direct::rows::order::MAX_SORTED_BYTES;
use crate::direct::shown::aggregate::Totals;
use crate::direct::shown::joined_list::{
    GroupItem, JoinedAggregate, JoinedFunction, JoinedKey, Shown,
};
use crate::direct::shown::row::Item;
use crate::error::Result;
use crate::events::thread_work::{self, Work};
use crate::session::result::{Cell, CellRow, ResultSink};

impl JoinedAggregate {
    fn begin(&self) -> Total<'_> {
        match &self.function {
            JoinedFunction::Plain(aggregate) => Total::Plain(Totals::new(aggregate)),
            JoinedFunction::CountDistinct { .. } => Total::CountDistinct(BTreeSet::new()),
        }
    }
}

impl JoinedKey {
    fn append(&self, row: &FoundRow<'_>, key: &mut Vec<u8>) -> Result<()> {
        for (place, part) in &self.0 {
            part.append(row.table(*place), row.view, &row.of(*place)?, key)?;
        }
        Ok(())
    }
}

/// A joined row: that of each table, by place.
#[derive(Clone, Copy)]
pub(in crate::direct) struct FoundRow<'a> {
    pub(in crate::direct) join: &'a Join,
    pub(in crate::direct) view: &'a ReadView,
    pub(in crate::direct) rows: &'a [Vec<u8>],
}

impl<'a> FoundRow<'a> {
    /// The table at a place; `None` if it is a query, whose rows have all their values.
    fn table(&self, place: usize) -> Option<&'a Table> {
        self.join.tables[place].source.table().map(AsRef::as_ref)
    }

    fn of(&self, place: usize) -> Result<RowView<'a>> {
        self.join.tables[place].source.view(&self.rows[place])
    }
}

/// One value of an aggregate.
pub(in crate::direct) enum Total<'a> {
    Plain(Totals<'a>),
    CountDistinct(BTreeSet<Vec<u8>>),
}

impl Total<'_> {
    /// Returns how many bytes it takes more.
    fn add(&mut self, aggregate: &JoinedAggregate, found: &FoundRow<'_>) -> Result<usize> {
        let row = found.of(aggregate.place)?;
        match (self, &aggregate.function) {
            (Total::Plain(totals), _) => totals.add(&row)?,
            (Total::CountDistinct(seen), JoinedFunction::CountDistinct { column, key })
                if !row.is_null(*column) =>
            {
                let mut value = Vec::new();
                key.append(found.table(aggregate.place), found.view, &row, &mut value)?;
                let bytes = size_of::<Vec<u8>>() + value.len();
                if seen.insert(value) {
                    return Ok(bytes);
                }
            }
            (Total::CountDistinct(_), _) => {}
        }
        Ok(0)
    }

    /// Error 1690 if a sum has more digits than a DECIMAL.
    fn check(&self) -> Result<()> {
        match self {
            Total::Plain(totals) => totals.check(),
            Total::CountDistinct(_) => Ok(()),
        }
    }

    fn cell(&self) -> Cell<'_> {
        match self {
            Total::Plain(totals) => totals.cell(0),
            Total::CountDistinct(seen) => Cell::Signed(seen.len() as i64),
        }
    }
}

/// See the module's comment.
pub(in crate::direct) enum Found<'a> {
    Rows(Rows),
    Totals(AllRows<'a>),
    Groups(Groups<'a>),
}

/// Aggregates over all rows.
pub(in crate::direct) struct AllRows<'a> {
    aggregates: &'a [JoinedAggregate],
    totals: Vec<Total<'a>>,
    bytes: usize,
}

/// Joined rows, each behind its sort key.
#[derive(Default)]
pub(in crate::direct) struct Rows {
    bytes: Vec<u8>,
    rows: Vec<RowAt>,
    /// For each row where the rows of its tables end.
    ends: Vec<usize>,
}

#[derive(Clone, Copy)]
struct RowAt {
    number: usize,
    start: usize,
    key_end: usize,
}

/// Groups by their keys.
pub(in crate::direct) struct Groups<'a> {
    by: &'a JoinedKey,
    aggregates: &'a [JoinedAggregate],
    groups: BTreeMap<Vec<u8>, Group<'a>>,
    bytes: usize,
}

struct Group<'a> {
    /// Its first row.
    rows: Vec<Vec<u8>>,
    totals: Vec<Total<'a>>,
}

impl<'a> Found<'a> {
    pub(in crate::direct) fn nothing(shown: &'a Shown) -> Found<'a> {
        match shown {
            Shown::Columns(_) => Found::Rows(Rows::default()),
            Shown::Aggregates(aggregates) => {
                let totals = aggregates.iter().map(JoinedAggregate::begin).collect();
                Found::Totals(AllRows {
                    aggregates,
                    totals,
                    bytes: 0,
                })
            }
            Shown::Groups { by, aggregates, .. } => Found::Groups(Groups {
                by,
                aggregates,
                groups: BTreeMap::new(),
                bytes: 0,
            }),
        }
    }

    /// Takes a joined row; false if there is no room for it.
    pub(in crate::direct) fn take(&mut self, row: FoundRow<'_>) -> Result<bool> {
        match self {
            Found::Rows(rows) => rows.take(row),
            Found::Totals(all) => {
                for (aggregate, total) in all.aggregates.iter().zip(&mut all.totals) {
                    all.bytes += total.add(aggregate, &row)?;
                }
                Ok(all.bytes <= MAX_SORTED_BYTES)
            }
            Found::Groups(groups) => groups.take(row),
        }
    }
}

impl Rows {
    fn take(&mut self, row: FoundRow<'_>) -> Result<bool> {
        let start = self.bytes.len();
        if let Some(order) = &row.join.order {
            order.append(&row, &mut self.bytes)?;
        }
        self.rows.push(RowAt {
            number: self.rows.len(),
            start,
            key_end: self.bytes.len(),
        });
        for row in row.rows {
            self.bytes.extend_from_slice(row);
            self.ends.push(self.bytes.len());
        }
        let used = self.bytes.len()
            + size_of_val(self.ends.as_slice())
            + size_of_val(self.rows.as_slice());
        Ok(used <= MAX_SORTED_BYTES)
    }

    /// The joined rows one after the other: of each table its row, or `None`.
    pub(in crate::direct) fn each<'r>(
        &'r self,
        join: &'r Join,
    ) -> impl Iterator<Item = Result<Vec<Option<RowView<'r>>>>> {
        self.rows.iter().map(|at| self.views(join, *at))
    }

    /// Leaves so many, the first in order.
    pub(in crate::direct) fn keep_first(&mut self, count: usize) {
        self.sort();
        self.rows.truncate(count);
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        self.rows
            .sort_by(|a, b| bytes[a.start..a.key_end].cmp(&bytes[b.start..b.key_end]));
    }

    /// The rows of the tables, as they lie behind a key; `None` of a table that has none.
    fn views<'r>(&'r self, join: &'r Join, at: RowAt) -> Result<Vec<Option<RowView<'r>>>> {
        let tables = join.tables.len();
        let ends = &self.ends[at.number * tables..][..tables];
        let mut start = at.key_end;
        let mut views = Vec::with_capacity(tables);
        for (joined, &end) in join.tables.iter().zip(ends) {
            views.push(match start == end {
                true => None,
                false => Some(joined.source.view(&self.bytes[start..end])?),
            });
            start = end;
        }
        Ok(views)
    }
}

impl Groups<'_> {
    fn take(&mut self, row: FoundRow<'_>) -> Result<bool> {
        let mut key = Vec::new();
        self.by.append(&row, &mut key)?;
        let group = match self.groups.get_mut(&key) {
            Some(group) => group,
            None => {
                let rows = row.rows.iter().map(Vec::len).sum::<usize>();
                let totals = self.aggregates.len() * size_of::<Total<'_>>();
                self.bytes += key.len() + rows + totals + size_of::<Group<'_>>();
                self.groups.entry(key).or_insert(Group {
                    rows: row.rows.to_vec(),
                    totals: self.aggregates.iter().map(JoinedAggregate::begin).collect(),
                })
            }
        };
        for (aggregate, total) in self.aggregates.iter().zip(&mut group.totals) {
            self.bytes += total.add(aggregate, &row)?;
        }
        Ok(self.bytes <= MAX_SORTED_BYTES)
    }

    /// The groups in the wanted order, or else in that of their keys.
    fn in_order(&self, join: &Join, view: &ReadView) -> Result<Vec<&Group<'_>>> {
        let groups = self.groups.values();
        let Some(order) = &join.order else {
            return Ok(groups.collect());
        };
        let mut sorted = Vec::with_capacity(self.groups.len());
        for group in groups {
            let mut key = Vec::new();
            let rows = group.rows.as_slice();
            order.append(&FoundRow { join, view, rows }, &mut key)?;
            sorted.push((key, group));
        }
        thread_work::note(Work::sort_of(sorted.len()));
        sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(sorted.into_iter().map(|(_, group)| group).collect())
    }
}

/// A joined row on its way to the client.
struct JoinedRow<'a> {
    rows: &'a [Option<RowView<'a>>],
    items: &'a [(usize, Item)],
    /// For each item its value, if the row only refers to it.
    long: &'a [Option<Vec<u8>>],
}

impl CellRow for JoinedRow<'_> {
    fn cell(&self, column: usize) -> Cell<'_> {
        let (place, item) = &self.items[column];
        match self.long.get(column) {
            Some(Some(bytes)) => item.cell_beside(bytes),
            _ => self.rows[*place]
                .as_ref()
                .map_or(Cell::Null, |row| item.cell(row)),
        }
    }
}

/// A group on its way to the client.
struct GroupRow<'a> {
    rows: &'a [RowView<'a>],
    items: &'a [GroupItem],
    totals: &'a [Total<'a>],
    /// As for a [`JoinedRow`].
    long: &'a [Option<Vec<u8>>],
}

impl CellRow for GroupRow<'_> {
    fn cell(&self, column: usize) -> Cell<'_> {
        match (&self.items[column], self.long.get(column)) {
            (GroupItem::Column(_, item), Some(Some(bytes))) => item.cell_beside(bytes),
            (GroupItem::Column(place, item), _) => item.cell(&self.rows[*place]),
            (GroupItem::Aggregate(number), _) => self.totals[*number].cell(),
        }
    }
}

impl CellRow for Vec<Total<'_>> {
    fn cell(&self, column: usize) -> Cell<'_> {
        self[column].cell()
    }
}

/// LIMIT and OFFSET.
#[derive(Clone, Copy)]
pub(in crate::direct) struct Window {
    pub(in crate::direct) limit: u64,
    pub(in crate::direct) offset: u64,
}

impl Window {
    fn of<T>(self, items: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
        items.skip(count(self.offset)).take(count(self.limit))
    }
}

impl Join {
    /// Sends what was found; returns the number of rows.
    pub(in crate::direct) fn send(
        &self,
        found: Found<'_>,
        view: &ReadView,
        window: Window,
        sink: &mut dyn ResultSink,
    ) -> Result<u64> {
        match (found, &self.shown) {
            (Found::Rows(mut rows), Shown::Columns(items)) => {
                if self.order.is_some() {
                    let most = window.limit.saturating_add(window.offset);
                    thread_work::note(Work::sort_of(rows.rows.len()).of_first(most));
                    rows.sort();
                }
                self.send_rows(&rows, items, view, window, sink)
            }
            (Found::Totals(AllRows { totals, .. }), _) => {
                totals.iter().try_for_each(Total::check)?;
                sink.row_columns(&self.columns, &self.schema)?;
                let sent = window.limit.min(1);
                if sent > 0 {
                    sink.row(&self.columns, &totals)?;
                }
                Ok(sent)
            }
            (Found::Groups(groups), Shown::Groups { items, .. }) => {
                self.send_groups(&groups, items, view, window, sink)
            }
            _ => Ok(0),
        }
    }

    fn send_rows(
        &self,
        rows: &Rows,
        items: &[(usize, Item)],
        view: &ReadView,
        window: Window,
        sink: &mut dyn ResultSink,
    ) -> Result<u64> {
        sink.row_columns(&self.columns, &self.schema)?;
        let mut sent = 0;
        let mut long: Vec<Option<Vec<u8>>> = Vec::new();
        for at in window.of(rows.rows.iter()) {
            let rows = rows.views(self, *at)?;
            long.clear();
            for (place, item) in items {
                let source = &self.tables[*place].source;
                long.push(match &rows[*place] {
                    Some(row) => source.long_value(view, row, item.column)?,
                    None => None,
                });
            }
            let row = JoinedRow {
                rows: &rows,
                items,
                long: &long,
            };
            sink.row(&self.columns, &row)?;
            sent += 1;
        }
        Ok(sent)
    }

    fn send_groups(
        &self,
        groups: &Groups<'_>,
        items: &[GroupItem],
        view: &ReadView,
        window: Window,
        sink: &mut dyn ResultSink,
    ) -> Result<u64> {
        thread_work::note(Work::temporary_table());
        let groups = groups.in_order(self, view)?;
        let totals = groups.iter().flat_map(|group| &group.totals);
        totals.into_iter().try_for_each(Total::check)?;
        sink.row_columns(&self.columns, &self.schema)?;
        let mut sent = 0;
        let mut long: Vec<Option<Vec<u8>>> = Vec::new();
        for group in window.of(groups.into_iter()) {
            let tables = self.tables.iter().zip(&group.rows);
            let rows: Result<Vec<RowView<'_>>> = tables
                .map(|(joined, row)| joined.source.view(row))
                .collect();
            let rows = rows?;
            long.clear();
            for item in items {
                long.push(match item {
                    GroupItem::Column(place, item) => {
                        let source = &self.tables[*place].source;
                        source.long_value(view, &rows[*place], item.column)?
                    }
                    GroupItem::Aggregate(_) => None,
                });
            }
            let row = GroupRow {
                rows: &rows,
                items,
                totals: &group.totals,
                long: &long,
            };
            sink.row(&self.columns, &row)?;
            sent += 1;
        }
        Ok(sent)
    }
}
