//! Builds secondary indexes from rows: encode the entries, sort them, write the tree from left to right.
//!
//! ALTER TABLE reads the clustered tree, once for all of its indexes; a [load](crate::build::tree_load) hands over the
//! rows as they come.

use std::collections::BTreeSet;
use std::sync::Arc;

use sheaf_storage::{
    BulkBuilder, Direction, KeyRange, ReadAhead, ReadView, Storage, TempSpace, TreeId,
};
use sheaf_types::column_text;

use crate::build::external_sort::{ExternalSort, SortedEntries};
use crate::codec::key_codec::KeyLayout;
use crate::codec::row_codec::{RowView, ValueRef};
use crate::definition::schema::{Index, TableDefinition};
use crate::error::{Result, TableError};
use crate::progress::Progress;
use crate::table::Table;

/// Leaves that the scan of the rows reads ahead.
const READ_AHEAD_PAGES: usize = 64;
/// Progress is told, and cancellation asked for, every so many entries.
pub(crate) const PROGRESS_STEP: u64 = 8192;

/// The sorts of some indexes of one table.
pub(crate) struct IndexSorts {
    sorts: Vec<(KeyLayout, ExternalSort)>,
    key: Vec<u8>,
    payload: Vec<u8>,
}

/// A long value, which is not in its row: column and bytes.
pub(crate) type LongValue<'a> = (usize, &'a [u8]);

impl IndexSorts {
    /// Sorts for these indexes, `memory_bytes` for each.
    pub(crate) fn new(
        layouts: Vec<KeyLayout>,
        space: &Arc<TempSpace>,
        memory_bytes: usize,
    ) -> IndexSorts {
        let sort = |layout| (layout, ExternalSort::new(space, memory_bytes));
        IndexSorts {
            sorts: layouts.into_iter().map(sort).collect(),
            key: Vec::new(),
            payload: Vec::new(),
        }
    }

    /// The columns that the entries are made of: those of the indexes, and of the primary key, which completes them.
    pub(crate) fn columns(&self) -> BTreeSet<usize> {
        let parts = self.sorts.iter().flat_map(|(layout, _)| &layout.parts);
        parts.filter_map(|part| part.column).collect()
    }

    /// Adds the entries of a row. `long`: the long values of [`columns`](Self::columns), at least.
    pub(crate) fn add(
        &mut self,
        row: &RowView<'_>,
        row_id: u64,
        long: &[LongValue<'_>],
    ) -> Result<()> {
        let values = |column: usize| match long.iter().find(|(other, _)| *other == column) {
            Some((_, bytes)) => ValueRef::Bytes(bytes),
            None => row.value_ref(column),
        };
        for (layout, sort) in &mut self.sorts {
            self.key.clear();
            self.payload.clear();
            layout.encode_entry(values, row_id, &mut self.key, &mut self.payload);
            sort.push(&self.key, &self.payload)?;
        }
        Ok(())
    }

    /// Ends the input, and releases memory that is not needed any more.
    pub(crate) fn into_sorts(mut self) -> Result<Vec<(KeyLayout, ExternalSort)>> {
        for (_, sort) in &mut self.sorts {
            sort.seal()?;
        }
        Ok(self.sorts)
    }
}

/// Builds new indexes over the rows of a table as the view sees them, which are read once. The sorts share
/// `memory_bytes`. `built`: the trees, in the order of the indexes, also those that are finished if it fails.
///
/// # Errors
/// `DuplicateKey`, `Interrupted`, and whatever the storage reports.
pub(crate) fn build_indexes(
    storage: &Arc<Storage>,
    table: &Table,
    view: &ReadView,
    indexes: &[&Index],
    memory_bytes: usize,
    progress: &dyn Progress,
    built: &mut Vec<TreeId>,
) -> Result<()> {
    if indexes.is_empty() {
        return Ok(());
    }
    let share = memory_bytes / indexes.len();
    let layouts = indexes.iter();
    let layouts = layouts.map(|index| KeyLayout::secondary(&table.definition, index));
    let mut sorts = IndexSorts::new(layouts.collect(), storage.temp_space(), share);
    let names: Vec<&str> = indexes.iter().map(|index| index.name.as_str()).collect();
    progress.begin(
        &format!("sorting index {}", names.join(", ")),
        Some(table.row_count_estimate()),
    );
    let columns = sorts.columns();
    let read_ahead = ReadAhead::Pages(READ_AHEAD_PAGES);
    let (all, forward) = (KeyRange::all(), Direction::Forward);
    let mut rows = table
        .clustered
        .scan_at(view.clone(), all, forward, read_ahead);
    let mut key = Vec::new();
    while let Some(leaf) = rows.next_leaf()? {
        if progress.is_cancelled() {
            return Err(TableError::Interrupted);
        }
        for entry in 0..leaf.len() {
            let row = table.view(leaf.value(entry))?;
            let mut long = Vec::new();
            for column in &columns {
                if row.is_overflow(*column) {
                    let mut value = Vec::new();
                    table.read_overflow_at(view, row.get_bytes(*column), &mut value)?;
                    long.push((*column, value));
                }
            }
            let long: Vec<LongValue<'_>> = long
                .iter()
                .map(|(column, value)| (*column, value.as_slice()))
                .collect();
            let mut row_id = 0;
            if table.definition.has_hidden_row_id() {
                leaf.key_into(entry, &mut key);
                row_id = table.row_id_of(&key);
            }
            sorts.add(&row, row_id, &long)?;
        }
        progress.advance(leaf.len() as u64);
    }
    for (&index, (layout, sort)) in indexes.iter().zip(sorts.into_sorts()?) {
        progress.begin(&format!("building index {}", index.name), Some(sort.len()));
        let build = IndexTree {
            definition: &table.definition,
            index,
            layout: &layout,
        };
        built.push(build.write(storage, sort.finish(share)?, progress)?);
    }
    Ok(())
}

/// A secondary index about to be written from sorted entries.
pub(crate) struct IndexTree<'a> {
    pub(crate) definition: &'a TableDefinition,
    pub(crate) index: &'a Index,
    pub(crate) layout: &'a KeyLayout,
}

impl IndexTree<'_> {
    /// Writes the tree.
    ///
    /// # Errors
    /// `DuplicateKey` if the index is unique and the entries are not, `Interrupted`.
    pub(crate) fn write(
        &self,
        storage: &Arc<Storage>,
        mut entries: SortedEntries,
        progress: &dyn Progress,
    ) -> Result<TreeId> {
        let mut builder = BulkBuilder::new(storage)?;
        let mut previous = Vec::new();
        let mut written = 0u64;
        while entries.advance()? {
            let (key, payload) = entries.entry();
            if self.index.unique {
                let declared = self.layout.leading_parts(key, self.layout.declared)?;
                if previous == declared && !self.has_null(key)? {
                    return Err(self.duplicate(key, payload));
                }
                previous.clear();
                previous.extend_from_slice(declared);
            }
            let key_name = || self.definition.key_name(self.index);
            let appended = builder.append(key, payload);
            appended.map_err(|error| TableError::of_entry(error, key_name))?;
            written += 1;
            if written.is_multiple_of(PROGRESS_STEP) {
                if progress.is_cancelled() {
                    return Err(TableError::Interrupted);
                }
                progress.advance(PROGRESS_STEP);
            }
        }
        progress.advance(written % PROGRESS_STEP);
        Ok(builder.finish()?)
    }

    /// True if a declared part is NULL.
    fn has_null(&self, key: &[u8]) -> Result<bool> {
        let mut at = 0;
        for part in 0..self.layout.declared {
            if self.layout.is_null(part, &key[at..]) {
                return Ok(true);
            }
            at += self.layout.part_length(part, &key[at..])?;
        }
        Ok(false)
    }

    /// The error of two rows with the values of this entry.
    pub(crate) fn duplicate(&self, key: &[u8], payload: &[u8]) -> TableError {
        let mut at = 0;
        let mut texts = Vec::new();
        for part in 0..self.layout.declared {
            let decoded = self
                .layout
                .decode_value(self.definition, part, &key[at..], payload);
            let length = self.layout.part_length(part, &key[at..]);
            let (Ok(value), Ok(length), Some(column)) =
                (decoded, length, self.layout.parts[part].column)
            else {
                break;
            };
            texts.push(column_text(&self.definition.columns[column].ty, &value));
            at += length;
        }
        TableError::duplicate_key(self.definition.key_name(self.index), &texts)
    }
}
