//! Long values: chunks in a tree of their own, and references to them in rows.

use sheaf_storage::{ReadView, Transaction, value_limit};
use sheaf_types::Value;

use super::Table;
use crate::codec::overflow::{self, OVERFLOW_REFERENCE_BYTES};
use crate::codec::row_codec::{RowView, ValueRef};
use crate::error::{Result, TableError};

/// The encoded clustered entry of a row.
#[derive(Default)]
pub(super) struct ClusteredEntry {
    pub(super) key: Vec<u8>,
    pub(super) row: Vec<u8>,
}

/// References to long values, with their columns.
pub(super) type References = Vec<(usize, [u8; OVERFLOW_REFERENCE_BYTES])>;

impl Table {
    /// Clears `value` and fills it with the long value that a row refers to, which was read just now.
    pub fn read_overflow(&self, reference: &[u8], value: &mut Vec<u8>) -> Result<()> {
        self.read_overflow_at(&ReadView::newest(), reference, value)
    }

    /// As [`read_overflow`](Self::read_overflow), for a row that was read through this view.
    pub fn read_overflow_at(
        &self,
        view: &ReadView,
        reference: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<()> {
        value.clear();
        self.append_overflow_at(view, reference, value)
    }

    /// As [`read_overflow_at`](Self::read_overflow_at), behind what `out` holds.
    pub fn append_overflow_at(
        &self,
        view: &ReadView,
        reference: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(tree) = &self.overflow else {
            return Err(TableError::corrupt(
                &self.definition.name,
                "a row refers to a long value, but the table has none",
            ));
        };
        overflow::append(tree, view, reference, out).map_err(|error| self.name_corruption(error))
    }

    /// Removes the long values of a row that goes, except these, which another row has now. Those of columns that were
    /// dropped go, too.
    pub(super) fn delete_overflow(
        &self,
        transaction: &mut Transaction,
        row: &RowView<'_>,
        kept: &[usize],
    ) -> Result<()> {
        let Some(tree) = &self.overflow else {
            return Ok(());
        };
        for column in 0..self.definition.columns.len() {
            if row.is_overflow(column) && !kept.contains(&column) {
                overflow::delete(tree, transaction, row.get_bytes(column))?;
            }
        }
        row.dropped_references()
            .try_for_each(|reference| overflow::delete(tree, transaction, reference))
    }

    pub(super) fn encode_clustered<'v>(
        &self,
        transaction: &mut Transaction,
        values: impl Fn(usize) -> ValueRef<'v> + Copy,
        row_id: u64,
    ) -> Result<ClusteredEntry> {
        self.encode_beside(transaction, values, row_id, References::new())
    }

    /// As [`encode_clustered`](Self::encode_clustered), with the long values of some columns where they are. The values
    /// of these are empty.
    pub(super) fn encode_beside<'v>(
        &self,
        transaction: &mut Transaction,
        values: impl Fn(usize) -> ValueRef<'v> + Copy,
        row_id: u64,
        mut references: References,
    ) -> Result<ClusteredEntry> {
        let mut entry = ClusteredEntry::default();
        self.clustered_layout
            .encode_entry(values, row_id, &mut entry.key, &mut Vec::new());
        let limit = value_limit(entry.key.len());
        if self
            .row_layout
            .encode(values, &references, limit, &mut entry.row)
            .is_err()
        {
            let room = limit.saturating_sub(references.len() * OVERFLOW_REFERENCE_BYTES);
            for (column, number, value) in self.values_to_move(values, room)? {
                let tree = self
                    .overflow
                    .as_ref()
                    .ok_or(TableError::RowTooLarge { limit })?;
                let reference = overflow::write(tree, transaction, number, value)?;
                references.push((column, reference.to_bytes()));
            }
            self.encode_with_references(values, &references, limit, &mut entry.row)?;
        }
        Ok(entry)
    }

    /// The rows before and after a change, with the long values of these columns, which stay as they are.
    pub(super) fn with_long_values(
        &self,
        primary_key: &[u8],
        rows: [&[Value]; 2],
        columns: &[usize],
    ) -> Result<[Vec<Value>; 2]> {
        let whole = self.read_row(primary_key)?.ok_or_else(|| {
            TableError::corrupt(&self.definition.name, "a row that is being changed is gone")
        })?;
        Ok(rows.map(|row| {
            let mut row = row.to_vec();
            for column in columns {
                row[*column].clone_from(&whole[*column]);
            }
            row
        }))
    }

    /// Where the row with this encoded primary key, which is there, has the long values of these columns.
    pub(super) fn references_at(
        &self,
        primary_key: &[u8],
        columns: &[usize],
    ) -> Result<References> {
        if columns.is_empty() {
            return Ok(References::new());
        }
        let lost = || {
            let detail = "a row that is being changed has lost a long value";
            TableError::corrupt(&self.definition.name, detail)
        };
        let mut bytes = Vec::new();
        if !self
            .clustered
            .get_at(&ReadView::newest(), primary_key, &mut bytes)?
        {
            return Err(lost());
        }
        let row = self.view(&bytes)?;
        let reference = |column: &usize| match row.is_overflow(*column) {
            true => Ok((
                *column,
                row.get_bytes(*column).try_into().map_err(|_| lost())?,
            )),
            false => Err(lost()),
        };
        columns.iter().map(reference).collect()
    }

    /// The values that must leave a row so that it fits `limit`: column, number to store it under, bytes.
    pub(crate) fn values_to_move<'v>(
        &self,
        values: impl Fn(usize) -> ValueRef<'v> + Copy,
        limit: usize,
    ) -> Result<Vec<(usize, u64, &'v [u8])>> {
        let columns = self.row_layout.columns_to_move(values, limit);
        columns
            .into_iter()
            .filter_map(|column| match values(column) {
                ValueRef::Bytes(bytes) => Some(
                    self.take_long_value_number()
                        .map(|number| (column, number, bytes)),
                ),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn encode_with_references<'v>(
        &self,
        values: impl Fn(usize) -> ValueRef<'v>,
        references: &[(usize, [u8; OVERFLOW_REFERENCE_BYTES])],
        limit: usize,
        row: &mut Vec<u8>,
    ) -> Result<()> {
        self.row_layout
            .encode(values, references, limit, row)
            .map_err(|_| TableError::RowTooLarge { limit })
    }
}
