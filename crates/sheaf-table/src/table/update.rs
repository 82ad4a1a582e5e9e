//! Updates and deletes of rows, also of rows that others have changed since a transaction's snapshot.

use sheaf_storage::{ReadView, StorageError, Transaction};
use sheaf_types::Value;

use super::Table;
use super::auto_increment::AutoIncrementSeries;
use crate::codec::row_codec::ValueRef;
use crate::error::{Result, TableError};

/// What a transaction's view shows under a primary key.
pub(super) struct Seen {
    view: ReadView,
    /// `None`: no row.
    bytes: Option<Vec<u8>>,
    row_id: u64,
}

/// What a transaction's view shows of a row that others have changed since.
pub(super) struct Outdated {
    /// `None`: no row.
    row: Option<Vec<Value>>,
    row_id: u64,
}

impl Table {
    /// Deletes the row with this encoded primary key; false: there is none. Waits for others that are changing it.
    /// After an error the statement must be rolled back.
    pub fn delete(&self, transaction: &mut Transaction, primary_key: &[u8]) -> Result<bool> {
        self.state.touched.note(primary_key);
        self.describe(transaction)?;
        let seen = self.seen(transaction, primary_key)?;
        // The clustered entry first: from then on the row is this transaction's, and what was taken is its newest
        // state.
        let Some(bytes) = self.clustered.take(transaction, primary_key)? else {
            return Ok(false);
        };
        let outdated = self.outdated(seen, Some(&bytes))?;
        let view = self.view(&bytes)?;
        // No index has what is only in the row.
        let is_needless =
            |column: &usize| view.is_overflow(*column) && self.is_in_row_only(*column);
        let needless: Vec<usize> = match self.overflow {
            Some(_) => (0..self.definition.columns.len())
                .filter(is_needless)
                .collect(),
            None => Vec::new(),
        };
        let old = self.decode_row_without(&ReadView::newest(), &view, &needless)?;
        self.delete_overflow(transaction, &view, &[])?;
        let row_id = self.row_id_of(primary_key);
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        let indexes = self.secondary.iter().zip(&self.secondary_layouts);
        for (position, (tree, layout)) in indexes.enumerate() {
            key.clear();
            payload.clear();
            layout.encode_entry(
                |column| (&old[column]).into(),
                row_id,
                &mut key,
                &mut payload,
            );
            tree.delete(transaction, &key)?;
            self.hide_outdated(transaction, position, outdated.as_ref(), &[&key])?;
        }
        self.state.note_change();
        Ok(true)
    }

    /// Replaces the row with this encoded primary key; false: there is none. The primary key may change. The caller
    /// holds the writer lock. On an error nothing is changed.
    ///
    /// # Errors
    /// `DuplicateKey`, and whatever the storage reports.
    pub fn update(
        &self,
        transaction: &mut Transaction,
        primary_key: &[u8],
        row: &[Value],
    ) -> Result<bool> {
        let Some(old) = self.read_row(primary_key)? else {
            return Ok(false);
        };
        self.replace(transaction, primary_key, &old, row)?;
        Ok(true)
    }

    /// [`Self::update`] for a caller that has read the row as it is now, `old`, and keeps others from changing it: by
    /// the table's writer lock, or by having locked the row. An AUTO_INCREMENT
    /// column that is given a larger value than was given out so far goes on behind it.
    ///
    /// # Errors
    /// `DuplicateKey`, and whatever the storage reports.
    pub fn replace(
        &self,
        transaction: &mut Transaction,
        primary_key: &[u8],
        old: &[Value],
        row: &[Value],
    ) -> Result<()> {
        self.replace_beside(transaction, primary_key, old, row, &[])
    }

    /// As [`replace`](Self::replace), where the long values of these columns stay as they are: neither row has them
    /// ([`RowToChange::untouched`](super::RowToChange::untouched)).
    pub(crate) fn replace_beside(
        &self,
        transaction: &mut Transaction,
        primary_key: &[u8],
        old: &[Value],
        row: &[Value],
        untouched: &[usize],
    ) -> Result<()> {
        // To followers of changes a row under another key is a new one: they need all of it. Where a row has no key
        // that they know, they find it by all of its values.
        if !untouched.is_empty()
            && self.clustered.is_followed()
            && (self.definition.has_hidden_row_id() || self.encode_primary_key(row) != primary_key)
        {
            let [old, row] = self.with_long_values(primary_key, [old, row], untouched)?;
            return self.replace_beside(transaction, primary_key, &old, &row, &[]);
        }
        let savepoint = transaction.savepoint();
        let result = self.replace_row(transaction, primary_key, old, row, untouched);
        match result {
            Ok(()) => self.state.note_change(),
            Err(_) => transaction.rollback_to(savepoint)?,
        }
        result
    }

    fn replace_row(
        &self,
        transaction: &mut Transaction,
        primary_key: &[u8],
        old: &[Value],
        row: &[Value],
        untouched: &[usize],
    ) -> Result<()> {
        self.describe(transaction)?;
        let row_id = self.row_id_of(primary_key);
        let values = |column: usize| ValueRef::from(&row[column]);
        let kept = self.references_at(primary_key, untouched)?;
        let entry = self.encode_beside(transaction, values, row_id, kept)?;
        let keeps_its_key = entry.key == primary_key;
        self.state.touched.note(primary_key);
        if !keeps_its_key {
            self.state.touched.note(&entry.key);
        }
        let seen = self.seen(transaction, primary_key)?;
        if !keeps_its_key {
            self.announce_move(transaction)?;
        }
        let replaced = if keeps_its_key {
            self.clustered
                .replace(transaction, primary_key, &entry.row)?
        } else {
            self.clustered.take(transaction, primary_key)?
        };
        let replaced = replaced.ok_or_else(|| {
            TableError::corrupt(&self.definition.name, "a row that is being changed is gone")
        })?;
        let outdated = self.outdated(seen, Some(&replaced))?;
        self.delete_overflow(transaction, &self.view(&replaced)?, untouched)?;
        let mut outdated_at_new_key = None;
        if !keeps_its_key {
            let seen = self.seen(transaction, &entry.key)?;
            outdated_at_new_key = self.outdated(seen, None)?;
            match self.clustered.insert(transaction, &entry.key, &entry.row) {
                Err(StorageError::DuplicateKey { .. }) => {
                    return Err(self.duplicate(&self.definition.primary, values));
                }
                other => {
                    other.map_err(|error| self.entry_error(&self.definition.primary, error))?;
                }
            }
        }
        let (mut old_key, mut old_payload) = (Vec::new(), Vec::new());
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        for (position, layout) in self.secondary_layouts.iter().enumerate() {
            for buffer in [&mut old_key, &mut old_payload, &mut key, &mut payload] {
                buffer.clear();
            }
            layout.encode_entry(
                |column| (&old[column]).into(),
                row_id,
                &mut old_key,
                &mut old_payload,
            );
            layout.encode_entry(values, row_id, &mut key, &mut payload);
            if key != old_key {
                // The old entry goes first, or a unique index would find it.
                self.secondary[position].delete(transaction, &old_key)?;
                self.insert_secondary(
                    transaction,
                    position,
                    values,
                    row_id,
                    &mut key,
                    &mut payload,
                )?;
            } else if payload != old_payload || outdated.is_some() {
                self.secondary[position].update(transaction, &key, &payload)?;
            }
            for outdated in [&outdated, &outdated_at_new_key] {
                let kept = [old_key.as_slice(), key.as_slice()];
                self.hide_outdated(transaction, position, outdated.as_ref(), &kept)?;
            }
        }
        self.note_auto_increment(row, AutoIncrementSeries::default());
        self.mark_auto_increment(transaction)
    }

    /// What the transaction's [kept view](Transaction::kept_view) shows under a primary key that the transaction is
    /// about to change; `None` if no index minds.
    pub(super) fn seen(
        &self,
        transaction: &Transaction,
        primary_key: &[u8],
    ) -> Result<Option<Seen>> {
        let view = match transaction.kept_view() {
            Some(view) if !self.secondary.is_empty() => view.clone(),
            _ => return Ok(None),
        };
        let mut bytes = Vec::new();
        let is_there = self.clustered.get_at(&view, primary_key, &mut bytes)?;
        Ok(Some(Seen {
            view,
            bytes: is_there.then_some(bytes),
            row_id: self.row_id_of(primary_key),
        }))
    }

    /// What the view shows of a row whose newest bytes the transaction has just changed, if that is something else:
    /// others have changed it since. Then the view is to show the transaction's new row and nothing of what was there
    /// before:
    ///
    /// ```text
    ///   view taken         row 2, b = 'y'                                index on b: (y,2)
    ///   another, commits   UPDATE t SET b = 'z' WHERE id = 2                         (y,2) gone, (z,2) new
    ///   own                UPDATE t SET c = 1 WHERE id = 2               (y,2) is to go, and (z,2) to come
    /// ```
    ///
    /// The clustered entry is the transaction's own by now. Of the indexes, entries of the new row are made its own,
    /// though they stay as they are, and those that only the view has are [hidden](Self::hide_outdated).
    pub(super) fn outdated(
        &self,
        seen: Option<Seen>,
        newest: Option<&[u8]>,
    ) -> Result<Option<Outdated>> {
        let Some(seen) = seen.filter(|seen| seen.bytes.as_deref() != newest) else {
            return Ok(None);
        };
        let row = match &seen.bytes {
            Some(bytes) => Some(self.decode_row_at(&seen.view, &self.view(bytes)?)?),
            None => None,
        };
        Ok(Some(Outdated {
            row,
            row_id: seen.row_id,
        }))
    }

    /// Hides the entry of an outdated row from the transaction's view, unless it is one of these: it is put back and
    /// deleted, so that its absence is the transaction's own.
    pub(super) fn hide_outdated(
        &self,
        transaction: &mut Transaction,
        position: usize,
        outdated: Option<&Outdated>,
        changed: &[&[u8]],
    ) -> Result<()> {
        let Some(Outdated {
            row: Some(row),
            row_id,
        }) = outdated
        else {
            return Ok(());
        };
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        self.secondary_layouts[position].encode_entry(
            |column| (&row[column]).into(),
            *row_id,
            &mut key,
            &mut payload,
        );
        if changed.contains(&key.as_slice()) {
            return Ok(());
        }
        let tree = &self.secondary[position];
        tree.insert(transaction, &key, &payload)?;
        tree.delete(transaction, &key)?;
        Ok(())
    }
}
