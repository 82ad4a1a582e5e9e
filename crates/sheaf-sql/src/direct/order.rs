//! ORDER BY and DISTINCT of a direct plan: a few rows, sorted in memory.
//!
//! A row's sort key is made as an index makes its keys, so that comparing bytes compares by MySQL's rules. Each part
//! says itself where it ends; for DESC its bytes are inverted.

use sheaf_storage::{ReadView, TreeId};
use sheaf_table::schema::MAX_INDEX_PARTS;
use sheaf_table::{Index, IndexPart, KeyLayout, RowView, Table, TableDefinition, ValueRef};
use sheaf_types::Value;
use smallvec::{SmallVec, smallvec};
use sqlparser::ast;

use super::row::long_value;
use crate::error::Result;

/// The most that is collected; a larger result is left to the vectorised path, which spills.
pub(super) const MAX_SORTED_BYTES: usize = 4 << 20;

/// A column that rows are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OrderItem {
    pub(super) column: usize,
    pub(super) descending: bool,
}

/// Whether an item of ORDER BY is DESC; none if it says more than ASC or DESC.
pub(super) fn descends(item: &ast::OrderByExpr) -> Option<bool> {
    let ast::OrderByOptions {
        asc,
        nulls_first: None,
    } = item.options
    else {
        return None;
    };
    item.with_fill.is_none().then_some(asc == Some(false))
}

/// How sort keys are made.
#[derive(Clone, Debug)]
pub(super) struct SortKey {
    items: Vec<OrderItem>,
    layout: KeyLayout,
}

impl SortKey {
    /// `None` for more columns than a key has parts.
    pub(super) fn new(definition: &TableDefinition, items: Vec<OrderItem>) -> Option<SortKey> {
        if items.len() > MAX_INDEX_PARTS {
            return None;
        }
        let parts = items.iter().map(|item| IndexPart {
            column: item.column,
            prefix_length: None,
            descending: false,
        });
        let index = Index {
            id: 0,
            name: String::new(),
            parts: parts.collect(),
            unique: false,
            primary: false,
            tree: TreeId(0),
            comment: String::new(),
            invisible: false,
        };
        Some(SortKey {
            layout: KeyLayout::secondary(definition, &index),
            items,
        })
    }

    pub(super) fn items(&self) -> &[OrderItem] {
        &self.items
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = usize> {
        self.items.iter().map(|item| item.column)
    }

    /// Appends the sort key of these values, one for each column.
    pub(super) fn append_values(&self, values: &[Value], key: &mut Vec<u8>) {
        for (part, value) in values.iter().enumerate() {
            self.layout.encode_part(part, value.into(), key);
        }
    }

    /// Appends the sort key of a row. Without a table it has all its values.
    pub(super) fn append(
        &self,
        table: Option<&Table>,
        view: &ReadView,
        row: &RowView<'_>,
        key: &mut Vec<u8>,
    ) -> Result<()> {
        for (part, item) in self.items.iter().enumerate() {
            let start = key.len();
            let long = match table {
                Some(table) => long_value(table, view, row, item.column)?,
                None => None,
            };
            let value = match &long {
                Some(bytes) => ValueRef::Bytes(bytes),
                None => row.value_ref(item.column),
            };
            self.layout.encode_part(part, value, key);
            if item.descending {
                key[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        Ok(())
    }
}

/// Rows with their sort keys.
#[derive(Default)]
pub(super) struct Sorter {
    bytes: Vec<u8>,
    rows: SmallVec<[SortedRow; 1]>,
}

/// Where a row is among the bytes: its keys, of ORDER BY and then of DISTINCT, and the row.
struct SortedRow {
    start: usize,
    distinct_end: usize,
    end: usize,
}

impl Sorter {
    /// One row, which needs no keys.
    pub(super) fn of_row(bytes: Vec<u8>) -> Sorter {
        let row = SortedRow {
            start: 0,
            distinct_end: 0,
            end: bytes.len(),
        };
        Sorter {
            bytes,
            rows: smallvec![row],
        }
    }

    /// Adds a row; false if there is no room for it.
    pub(super) fn push(
        &mut self,
        (order, distinct): (Option<&SortKey>, Option<&SortKey>),
        (table, view): (&Table, &ReadView),
        row: &RowView<'_>,
    ) -> Result<bool> {
        let start = self.bytes.len();
        if let Some(order) = order {
            order.append(Some(table), view, row, &mut self.bytes)?;
        }
        if let Some(distinct) = distinct {
            distinct.append(Some(table), view, row, &mut self.bytes)?;
        }
        let distinct_end = self.bytes.len();
        self.bytes.extend_from_slice(row.bytes());
        self.rows.push(SortedRow {
            start,
            distinct_end,
            end: self.bytes.len(),
        });
        let used = self.bytes.len() + self.rows.len() * size_of::<SortedRow>();
        Ok(used <= MAX_SORTED_BYTES)
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Brings the rows in order; of rows that DISTINCT takes for equal, which are those with both keys equal, the first
    /// stays.
    pub(super) fn sort(&mut self, is_distinct: bool) {
        let bytes = &self.bytes;
        // Both keys together: rows that are equal for DISTINCT become neighbours. The sort is stable.
        self.rows
            .sort_by(|a, b| bytes[a.start..a.distinct_end].cmp(&bytes[b.start..b.distinct_end]));
        if is_distinct {
            self.rows.dedup_by(|later, earlier| {
                bytes[later.start..later.distinct_end] == bytes[earlier.start..earlier.distinct_end]
            });
        }
    }

    /// The rows' bytes.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let rows = self.rows.iter();
        rows.map(|row| &self.bytes[row.distinct_end..row.end])
    }
}
