//! ORDER BY and DISTINCT of a direct plan: a few rows, sorted in memory.
//!
//! A row's sort key is made as an index makes its keys, so that comparing bytes compares by MySQL's rules. Each part
//! says itself where it ends; for DESC its bytes are inverted.

use std::collections::HashSet;

use sheaf_storage::{ReadView, TreeId};
use sheaf_table::schema::MAX_INDEX_PARTS;
use sheaf_table::{Index, IndexPart, KeyLayout, RowView, Table, TableDefinition, ValueRef};
use sheaf_types::Value;
use smallvec::{SmallVec, smallvec};
use sqlparser::ast;

use super::stored_value::long_value;
use crate::error::Result;

/// The most that is collected; a larger result is left to the vectorised path, which spills.
pub(in crate::direct) const MAX_SORTED_BYTES: usize = 4 << 20;

/// A column that rows are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::direct) struct OrderItem {
    pub(in crate::direct) column: usize,
    pub(in crate::direct) descending: bool,
}

/// Whether an item of ORDER BY is DESC; none if it says more than ASC or DESC.
pub(in crate::direct) fn descends(item: &ast::OrderByExpr) -> Option<bool> {
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
pub(in crate::direct) struct SortKey {
    items: Vec<OrderItem>,
    layout: KeyLayout,
}

impl SortKey {
    /// `None` for more columns than a key has parts, and for JSON, which no index has: the order of its values is not
    /// that of their texts, and equal ones may be written differently.
    pub(in crate::direct) fn new(
        definition: &TableDefinition,
        items: Vec<OrderItem>,
    ) -> Option<SortKey> {
        let is_json = |item: &OrderItem| definition.columns[item.column].ty.is_json();
        if items.len() > MAX_INDEX_PARTS || items.iter().any(is_json) {
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

    pub(in crate::direct) fn items(&self) -> &[OrderItem] {
        &self.items
    }

    pub(in crate::direct) fn columns(&self) -> impl Iterator<Item = usize> {
        self.items.iter().map(|item| item.column)
    }

    /// Appends the sort key of these values, one for each column.
    pub(in crate::direct) fn append_values(&self, values: &[Value], key: &mut Vec<u8>) {
        for (part, value) in values.iter().enumerate() {
            self.layout.encode_part(part, value.into(), key);
        }
    }

    /// Appends the sort key of a row. Without a table it has all its values.
    pub(in crate::direct) fn append(
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
pub(in crate::direct) struct Sorter {
    bytes: Vec<u8>,
    rows: SmallVec<[SortedRow; 1]>,
}

/// Where a row is among the bytes: its keys, of ORDER BY and then of DISTINCT, and the row.
struct SortedRow {
    start: usize,
    order_end: usize,
    distinct_end: usize,
    end: usize,
}

impl Sorter {
    /// One row, which needs no keys.
    pub(in crate::direct) fn of_row(bytes: Vec<u8>) -> Sorter {
        let row = SortedRow {
            start: 0,
            order_end: 0,
            distinct_end: 0,
            end: bytes.len(),
        };
        Sorter {
            bytes,
            rows: smallvec![row],
        }
    }

    /// Adds a row; false if there is no room for it.
    pub(in crate::direct) fn push(
        &mut self,
        (order, distinct): (Option<&SortKey>, Option<&SortKey>),
        (table, view): (&Table, &ReadView),
        row: &RowView<'_>,
    ) -> Result<bool> {
        let start = self.bytes.len();
        if let Some(order) = order {
            order.append(Some(table), view, row, &mut self.bytes)?;
        }
        let order_end = self.bytes.len();
        if let Some(distinct) = distinct {
            distinct.append(Some(table), view, row, &mut self.bytes)?;
        }
        let distinct_end = self.bytes.len();
        self.bytes.extend_from_slice(row.bytes());
        self.rows.push(SortedRow {
            start,
            order_end,
            distinct_end,
            end: self.bytes.len(),
        });
        let used = self.bytes.len() + self.rows.len() * size_of::<SortedRow>();
        Ok(used <= MAX_SORTED_BYTES)
    }

    pub(in crate::direct) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Brings the rows in order. Of rows that DISTINCT takes for equal, which are those with both keys equal, the first
    /// stays. Rows that no order tells apart come as they were found.
    pub(in crate::direct) fn sort(&mut self, is_distinct: bool) {
        let bytes = &self.bytes;
        if is_distinct {
            let mut known = HashSet::with_capacity(self.rows.len());
            self.rows
                .retain(|row| known.insert(&bytes[row.start..row.distinct_end]));
        }
        self.rows
            .sort_by(|a, b| bytes[a.start..a.order_end].cmp(&bytes[b.start..b.order_end]));
    }

    /// The rows' bytes.
    pub(in crate::direct) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let rows = self.rows.iter();
        rows.map(|row| &self.bytes[row.distinct_end..row.end])
    }
}
