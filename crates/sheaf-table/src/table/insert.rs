//! Inserts of rows: one entry of the clustered tree, one of each secondary index, and the row in the way.

use sheaf_storage::{StorageError, Transaction};
use sheaf_types::assignment::zero_value;
use sheaf_types::{Value, column_text};

use super::Table;
use super::auto_increment::{AutoIncrementSeries, Reserved};
use super::generated_values::Generated;
use crate::codec::row_codec::ValueRef;
use crate::definition::schema::Index;
use crate::error::{Result, TableError};

/// What an insert did besides inserting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InsertOutcome {
    /// The value given out by AUTO_INCREMENT, if it was.
    pub auto_increment: Option<u64>,
}

impl Table {
    /// Inserts a row: one value per column, each of the column's type (see [`crate::definition::convert`]). NULL in the
    /// AUTO_INCREMENT column asks for the next value. The caller holds the table's writer lock. On an error nothing of
    /// the row remains.
    ///
    /// # Errors
    /// `DuplicateKey`, and whatever the storage reports.
    pub fn insert(&self, transaction: &mut Transaction, row: &[Value]) -> Result<InsertOutcome> {
        let series = AutoIncrementSeries::default();
        self.insert_of_series(transaction, row, series, &mut Reserved::default())
    }

    /// As [`insert`](Self::insert), with the next value of this series, or one that the statement has reserved.
    pub(crate) fn insert_of_series(
        &self,
        transaction: &mut Transaction,
        row: &[Value],
        series: AutoIncrementSeries,
        reserved: &mut Reserved,
    ) -> Result<InsertOutcome> {
        let savepoint = transaction.savepoint();
        // Where no other key is unique, a value behind all others is never a duplicate. It is noted first, so that no
        // other row is given it meanwhile.
        let mut unique = self.definition.secondary.iter();
        let may_leave = reserved.are_values && unique.any(|index| index.unique);
        if !may_leave {
            self.bring_auto_increment(row, series, reserved);
        }
        let generated = match self.take_auto_increment(row, series, reserved) {
            Err(TableError::AutoIncrementExhausted) => self.last_auto_increment(series)?,
            generated => generated?,
        };
        self.mark_auto_increment(transaction)?;
        let inserted = self
            .insert_entries(transaction, row, &generated)
            .and_then(|outcome| {
                if may_leave {
                    self.bring_auto_increment(row, series, reserved);
                }
                if let Some(chosen) = generated.chosen() {
                    self.state.auto_increment.bring(series, chosen);
                }
                if may_leave || generated.chosen().is_some() {
                    self.mark_auto_increment(transaction)?;
                }
                Ok(outcome)
            });
        match &inserted {
            Ok(_) => self.state.note_change(),
            Err(error) => {
                transaction.rollback_to(savepoint)?;
                if matches!(error, TableError::DuplicateKey { .. }) {
                    if let Some(taken) = generated.taken {
                        reserved.leave(taken);
                    }
                    if let Some(chosen) = generated.chosen() {
                        reserved.leave_chosen(chosen);
                    }
                }
            }
        }
        inserted
    }

    /// Inserts a row of another table whose copy this is. It has its AUTO_INCREMENT value, and does not count. After an
    /// error the transaction must be rolled back.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub(crate) fn insert_copied(&self, transaction: &mut Transaction, row: &[Value]) -> Result<()> {
        self.insert_entries(transaction, row, &Generated::default())
            .map(drop)
    }

    fn insert_entries(
        &self,
        transaction: &mut Transaction,
        row: &[Value],
        generated: &Generated,
    ) -> Result<InsertOutcome> {
        let values = |column: usize| generated.value(row, column);
        let row_id = self.take_row_id()?;
        let entry = self.encode_clustered(transaction, values, row_id)?;
        self.state.touched.note(&entry.key);
        self.describe(transaction)?;
        let seen = self.seen(transaction, &entry.key)?;
        match self.clustered.insert(transaction, &entry.key, &entry.row) {
            Err(StorageError::DuplicateKey { .. }) => {
                return Err(self.duplicate(&self.definition.primary, values));
            }
            other => other.map_err(|error| self.entry_error(&self.definition.primary, error))?,
        }
        let outdated = self.outdated(seen, None)?;
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        for position in 0..self.secondary.len() {
            self.insert_secondary(
                transaction,
                position,
                values,
                row_id,
                &mut key,
                &mut payload,
            )?;
            self.hide_outdated(transaction, position, outdated.as_ref(), &[&key])?;
        }
        Ok(InsertOutcome {
            auto_increment: generated.number(),
        })
    }

    /// Adds a row's entry to a secondary index.
    pub(super) fn insert_secondary<'v>(
        &self,
        transaction: &mut Transaction,
        position: usize,
        values: impl Fn(usize) -> ValueRef<'v> + Copy,
        row_id: u64,
        key: &mut Vec<u8>,
        payload: &mut Vec<u8>,
    ) -> Result<()> {
        let index = &self.definition.secondary[position];
        key.clear();
        payload.clear();
        let shape = self.secondary_layouts[position].encode_entry(values, row_id, key, payload);
        // NULL equals nothing, not even NULL.
        let tree = &self.secondary[position];
        let inserted = if index.unique && !shape.has_null {
            tree.insert_unique(transaction, key, shape.declared_bytes, payload)
        } else {
            tree.insert(transaction, key, payload)
        };
        match inserted {
            Err(StorageError::DuplicateKey { .. }) => Err(self.duplicate(index, values)),
            other => other.map_err(|error| self.entry_error(index, error)),
        }
    }

    /// The encoded primary key of a row that keeps `row` from being inserted, because they are equal in a unique key.
    /// It is found by the primary key first, then by the unique indexes in their order. `None`: there is no such row.
    pub fn conflicting_row(&self, row: &[Value]) -> Result<Option<Vec<u8>>> {
        // A value that is still to be given out is in no index yet.
        let generated = self
            .definition
            .auto_increment_column()
            .filter(|column| row[*column].is_null());
        let is_generated = |index: &Index| {
            let mut parts = index.parts.iter();
            parts.any(|part| Some(part.column) == generated)
        };
        let placeholder = match generated {
            Some(column) => zero_value(&self.definition.columns[column].ty),
            None => Value::Null,
        };
        let values = |column: usize| match Some(column) == generated {
            true => ValueRef::from(&placeholder),
            false => ValueRef::from(&row[column]),
        };
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        if !self.definition.has_hidden_row_id() && !is_generated(&self.definition.primary) {
            self.clustered_layout
                .encode_entry(values, 0, &mut key, &mut payload);
            if self.clustered.get(&key, &mut payload)? {
                return Ok(Some(key));
            }
        }
        let indexes = self.definition.secondary.iter().enumerate();
        for (position, _) in indexes.filter(|(_, index)| index.unique && !is_generated(index)) {
            key.clear();
            payload.clear();
            let layout = &self.secondary_layouts[position];
            let shape = layout.encode_entry(values, 0, &mut key, &mut payload);
            if shape.has_null {
                continue;
            }
            let declared = &key[..shape.declared_bytes];
            if let Some(entry) = self.secondary[position].contains_prefix(declared)? {
                let mut primary_key = Vec::new();
                layout.primary_key_into(&entry, &mut primary_key)?;
                return Ok(Some(primary_key));
            }
        }
        Ok(None)
    }

    /// An error of writing an entry of this index.
    pub(crate) fn entry_error(&self, index: &Index, error: StorageError) -> TableError {
        TableError::of_entry(error, || self.definition.key_name(index))
    }

    /// The error of a row whose values are in a unique index already.
    pub(crate) fn duplicate<'v>(
        &self,
        index: &Index,
        values: impl Fn(usize) -> ValueRef<'v>,
    ) -> TableError {
        let parts = index.parts.iter().map(|part| {
            let ty = &self.definition.columns[part.column].ty;
            let text = column_text(ty, &values(part.column).to_value(ty));
            match part.prefix_length {
                Some(length) => text.chars().take(length as usize).collect(),
                None => text,
            }
        });
        let parts: Vec<String> = parts.collect();
        TableError::duplicate_key(self.definition.key_name(index), &parts)
    }
}
