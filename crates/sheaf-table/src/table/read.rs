//! Reads of single rows by primary key, with or without a lock.

use sheaf_storage::{LockMode, LockWait, ReadView, Transaction};
use sheaf_types::Value;

use super::Table;
use crate::codec::row_codec::{RowView, ValueRef};
use crate::error::Result;

/// A row that is about to be changed.
pub struct RowToChange {
    /// Empty where a long value is left untouched.
    pub values: Vec<Value>,
    /// The columns whose long values were not read, and stay.
    pub untouched: Vec<usize>,
}

impl Table {
    /// The whole row of an encoded primary key as it is now, long values included.
    pub fn read_row(&self, primary_key: &[u8]) -> Result<Option<Vec<Value>>> {
        self.read_row_at(&ReadView::newest(), primary_key)
    }

    /// As [`read_row`](Self::read_row), for a change that needs the values of some columns only: long values of others
    /// are not read, unless an index has them.
    pub fn read_row_to_change(
        &self,
        primary_key: &[u8],
        needs: impl Fn(usize) -> bool,
    ) -> Result<Option<RowToChange>> {
        let mut bytes = Vec::new();
        let newest = ReadView::newest();
        if !self.clustered.get_at(&newest, primary_key, &mut bytes)? {
            return Ok(None);
        }
        let row = self.view(&bytes)?;
        let is_untouched = |column: &usize| {
            row.is_overflow(*column) && !needs(*column) && self.is_in_row_only(*column)
        };
        let untouched = match self.overflow {
            Some(_) => (0..self.definition.columns.len())
                .filter(is_untouched)
                .collect(),
            None => Vec::new(),
        };
        let values = self.decode_row_without(&newest, &row, &untouched)?;
        Ok(Some(RowToChange { values, untouched }))
    }

    /// As [`read_row`](Self::read_row), as the view sees it.
    pub fn read_row_at(&self, view: &ReadView, primary_key: &[u8]) -> Result<Option<Vec<Value>>> {
        let mut bytes = Vec::new();
        if !self.clustered.get_at(view, primary_key, &mut bytes)? {
            return Ok(None);
        }
        self.decode_row_at(view, &self.view(&bytes)?).map(Some)
    }

    /// Locks the row with this encoded primary key to the end of the transaction. Returns its newest version, which is
    /// committed or the transaction's own; none if there is no such row (the key is locked all the same). Whatever made
    /// the caller choose this row may have changed meanwhile: it looks again.
    ///
    /// # Errors
    /// As [`Transaction::lock_row`].
    pub fn lock_row(
        &self,
        transaction: &mut Transaction,
        primary_key: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<Option<Vec<Value>>> {
        transaction.lock_row(&self.clustered, primary_key, mode, wait)?;
        self.read_row(primary_key)
    }

    /// Locks the row with this encoded primary key to change it. True if the lock is new.
    ///
    /// # Errors
    /// As [`Transaction::lock_row`].
    pub(crate) fn lock_to_change(
        &self,
        transaction: &mut Transaction,
        primary_key: &[u8],
    ) -> Result<bool> {
        let (mode, wait) = (LockMode::Exclusive, transaction.lock_wait());
        Ok(transaction.lock_row(&self.clustered, primary_key, mode, wait)?)
    }

    /// Reads the bytes of a row of this table.
    ///
    /// # Errors
    /// `Corrupt`, with the table's name.
    pub fn view<'a>(&'a self, bytes: &'a [u8]) -> Result<RowView<'a>> {
        self.row_layout
            .view(bytes)
            .map_err(|error| self.name_corruption(error))
    }

    /// All values of a row that was read just now, long values included.
    pub fn decode_row(&self, row: &RowView<'_>) -> Result<Vec<Value>> {
        self.decode_row_at(&ReadView::newest(), row)
    }

    /// All values of a row that the view sees, long values included.
    pub fn decode_row_at(&self, view: &ReadView, row: &RowView<'_>) -> Result<Vec<Value>> {
        self.decode_row_without(view, row, &[])
    }

    /// As [`decode_row_at`](Self::decode_row_at), with empty values in these columns.
    pub(crate) fn decode_row_without(
        &self,
        view: &ReadView,
        row: &RowView<'_>,
        left_out: &[usize],
    ) -> Result<Vec<Value>> {
        let mut long = Vec::new();
        let columns = self.definition.columns.iter().enumerate();
        columns
            .map(|(column, definition)| {
                if left_out.contains(&column) {
                    return Ok(ValueRef::Bytes(&[]).to_value(&definition.ty));
                }
                if row.is_overflow(column) {
                    self.read_overflow_at(view, row.get_bytes(column), &mut long)?;
                    return Ok(ValueRef::Bytes(&long).to_value(&definition.ty));
                }
                Ok(row.value(column, &definition.ty))
            })
            .collect()
    }
}
