//! Amending rows: changes of columns that no index has, in one visit of the row
//! ([`Tree::amend`](sheaf_storage::Tree::amend)).
//!
//! Most updates are of this kind: a balance, a counter, a date. The new row is the old one but for some bytes, no value
//! is decoded that the change does not ask for, and no index is looked at. What is not so plain is left to
//! [`Table::replace`].

use sheaf_storage::{ReadView, Transaction, value_limit};
use sheaf_types::Value;

use crate::codec::row_codec::RowView;
use crate::definition::schema::Index;
use crate::error::Result;
use crate::table::Table;

impl Table {
    /// Whether a change of a column concerns nothing but the row itself: no index has the column.
    pub fn is_in_row_only(&self, column: usize) -> bool {
        let has_it = |index: &Index| index.parts.iter().any(|part| part.column == column);
        let definition = &self.definition;
        !has_it(&definition.primary)
            && !definition.secondary.iter().any(has_it)
            && definition.auto_increment_column() != Some(column)
    }

    /// Changes columns that are [in the row only](Self::is_in_row_only), in one visit of the row: `changes` tells their
    /// new values from the row, each of its column's type. False: nothing has happened. Either the view does not show
    /// the row's newest version, or others have locked it or are changing it. Or it has long values elsewhere and
    /// columns change whose width may, or followers find it by them, or it stays what it is. `changes` computes and
    /// never waits, and cannot ask for long values.
    ///
    /// # Errors
    /// As [`Tree::amend`](sheaf_storage::Tree::amend).
    pub fn amend(
        &self,
        transaction: &mut Transaction,
        view: &ReadView,
        primary_key: &[u8],
        changes: impl FnOnce(&RowView<'_>) -> Option<Vec<(usize, Value)>>,
    ) -> Result<bool> {
        let limit = value_limit(primary_key.len());
        let amended = |bytes: &[u8]| {
            let row = self.row_layout.view(bytes).ok()?;
            let changes = changes(&row)?;
            // References stay where they are beside columns of fixed width.
            let moves = !self.row_layout.amends_in_place(&changes);
            if self.overflow.is_some()
                && row.has_overflow()
                && (moves || self.is_found_by_long_values())
            {
                return None;
            }
            let is_as_before =
                |(column, value): &(usize, Value)| row.value_ref(*column) == value.into();
            if changes.iter().all(is_as_before) {
                return None;
            }
            let mut amended = Vec::with_capacity(bytes.len());
            self.row_layout
                .amend(&row, &changes, limit, &mut amended)
                .ok()?;
            Some(amended)
        };
        self.state.touched.note(primary_key);
        self.describe(transaction)?;
        let is_done = self
            .clustered
            .amend(transaction, view, primary_key, amended)?;
        if is_done {
            self.state.note_change();
        }
        Ok(is_done)
    }
}
