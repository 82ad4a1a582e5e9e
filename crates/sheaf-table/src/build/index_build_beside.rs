//! Indexes that are built [while others change rows](crate::build::build_beside).
//!
//! A row's entries are brought from what they were at a snapshot to what they are at the next. Two rows of a round may
//! change places in a unique index, so it is judged when all of them have been brought.
//!
//! A new CHECK goes the same way, without a tree: the rows of the snapshot are tested, and then each that changes. A
//! [foreign key](crate::build::references_beside) does so, too; it is judged when all rows of a round have been
//! brought.

use std::sync::Arc;

use sheaf_storage::{Direction, KeyRange, ReadAhead, ReadView, Storage, Transaction, Tree, TreeId};
use sheaf_types::Value;

use crate::build::alter_options::AlterOptions;
use crate::build::build_beside::{BesideTarget, RoundEnd, RowChange, SeenRow};
use crate::build::external_sort::ExternalSort;
use crate::build::index_build::{IndexTree, build_indexes};
use crate::build::references_beside::NewReferences;
use crate::codec::key_codec::KeyLayout;
use crate::definition::check_constraint::RowTest;
use crate::definition::schema::Index;
use crate::error::{Result, TableError};
use crate::progress::Progress;
use crate::table::Table;

/// Leaves that the test of all rows reads ahead.
const TEST_READ_AHEAD_PAGES: usize = 64;

/// An index that is being built.
struct NewIndex<'a> {
    index: &'a Index,
    layout: KeyLayout,
    tree: Arc<Tree>,
}

/// An entry of an index.
#[derive(Default, PartialEq, Eq)]
struct Entry {
    key: Vec<u8>,
    payload: Vec<u8>,
    /// What no other entry of a unique index may begin with, in bytes; `None`: there may be others.
    unique_bytes: Option<usize>,
}

/// See the [module](self).
pub(crate) struct NewIndexes<'a> {
    table: &'a Table,
    indexes: Vec<NewIndex<'a>>,
    /// Columns that no new index has.
    left_out: Vec<usize>,
    /// What is to be judged when the round ends, behind a number. Those of indexes: what two entries of a unique index
    /// begin with at the moment. The numbers after them: values of a foreign key.
    suspects: Option<ExternalSort>,
    /// What rows must pass, and the table as the session sees it.
    test: Option<(RowTest, Table)>,
    /// Foreign keys that rows must keep.
    references: NewReferences,
    /// Rows of the snapshot that were tested.
    pub(crate) tested: u64,
}

impl<'a> NewIndexes<'a> {
    /// Builds the trees of the rows that a view sees, and tests the rows. `made`: the trees, in the order of the
    /// indexes, also those that are finished if it fails. `references`: the foreign keys that are new to the rows. They
    /// may need the trees.
    ///
    /// # Errors
    /// As [`build_indexes`], those of the test of the options, and `NoParentRow`.
    pub(crate) fn build(
        storage: &Arc<Storage>,
        (table, indexes): (&'a Table, &[&'a Index]),
        view: &ReadView,
        options: &AlterOptions,
        progress: &dyn Progress,
        made: &mut Vec<TreeId>,
        references: impl FnOnce(&[TreeId]) -> Result<NewReferences>,
    ) -> Result<NewIndexes<'a>> {
        let (first, memory_bytes) = (made.len(), options.memory_bytes);
        build_indexes(storage, table, view, indexes, memory_bytes, progress, made)?;
        let new = |(index, tree): (&&'a Index, &TreeId)| -> Result<NewIndex<'a>> {
            Ok(NewIndex {
                index,
                layout: KeyLayout::secondary(&table.definition, index),
                tree: storage.tree(*tree)?,
            })
        };
        let is_needed = |column: &usize| {
            let mut parts = indexes.iter().flat_map(|index| &index.parts);
            let mut primary = table.definition.primary.parts.iter();
            parts.any(|part| part.column == *column) || primary.any(|part| part.column == *column)
        };
        let new = indexes.iter().zip(made[first..].iter()).map(new);
        let seen = |test: &RowTest| (test.clone(), table.seen_in(options.mode.time_zone));
        let test = options.row_test.as_ref().map(seen);
        let tested = match &test {
            Some((test, table)) => test_rows(table, view, test, progress)?,
            None => 0,
        };
        let references = references(&made[first..])?;
        let with_parents = references.check_all(view, progress)?;
        Ok(NewIndexes {
            test,
            tested: tested.max(with_parents),
            references,
            table,
            indexes: new.collect::<Result<_>>()?,
            left_out: (0..table.definition.columns.len())
                .filter(|column| !is_needed(column))
                .collect(),
            suspects: None,
        })
    }
}

/// Tests the rows that a view sees. Returns how many there are.
///
/// # Errors
/// Those of the test, and `Interrupted`.
pub(crate) fn test_rows(
    table: &Table,
    view: &ReadView,
    RowTest(test): &RowTest,
    progress: &dyn Progress,
) -> Result<u64> {
    progress.begin(
        &format!("testing {}", table.definition.name),
        Some(table.row_count_estimate()),
    );
    let read_ahead = ReadAhead::Pages(TEST_READ_AHEAD_PAGES);
    let (all, forward) = (KeyRange::all(), Direction::Forward);
    let mut rows = table
        .clustered
        .scan_at(view.clone(), all, forward, read_ahead);
    let mut tested = 0;
    while let Some(leaf) = rows.next_leaf()? {
        if progress.is_cancelled() {
            return Err(TableError::Interrupted);
        }
        tested += leaf.len() as u64;
        for entry in 0..leaf.len() {
            test(&table.decode_row_at(view, &table.view(leaf.value(entry))?)?)?;
        }
    }
    Ok(tested)
}

impl BesideTarget for NewIndexes<'_> {
    fn catching_up(&self) -> &'static str {
        "bringing changes to indexes"
    }

    fn begin_round(&mut self, later: ExternalSort) {
        self.suspects = Some(later);
    }

    fn bring(&mut self, change: &RowChange<'_>, transaction: &mut Transaction) -> Result<()> {
        if let Some(suspects) = &mut self.suspects {
            let first_number = self.indexes.len();
            self.references.note(change, first_number, suspects)?;
        }
        if change.table != 0 {
            return Ok(());
        }
        if let (Some((RowTest(test), table)), Some(after)) = (&self.test, change.after) {
            test(&table.decode_row_at(after.view, &table.view(after.bytes)?)?)?;
        }
        if self.indexes.is_empty() {
            return Ok(());
        }
        let table = self.table;
        let row = |seen: SeenRow<'_>| {
            let row = table.view(seen.bytes)?;
            table.decode_row_without(seen.view, &row, &self.left_out)
        };
        let before = change.before.map(row).transpose()?;
        let after = change.after.map(row).transpose()?;
        let row_id = table.row_id_of(change.primary_key);
        for (number, new) in self.indexes.iter().enumerate() {
            let entry = |row: &Option<Vec<Value>>| row.as_ref().map(|row| new.entry(row, row_id));
            let (before, after) = (entry(&before), entry(&after));
            if before == after {
                continue;
            }
            if let Some(before) = &before
                && !new.tree.delete(transaction, &before.key)?
            {
                let name = &table.definition.name;
                let detail = format!(
                    "index {}, which is being built, lacks a row",
                    new.index.name
                );
                return Err(TableError::corrupt(name, detail));
            }
            if let Some(after) = &after {
                if let Some(length) = after.unique_bytes
                    && new.tree.contains_prefix(&after.key[..length])?.is_some()
                    && let Some(suspects) = &mut self.suspects
                {
                    let mut suspect = (number as u16).to_be_bytes().to_vec();
                    suspect.extend_from_slice(&after.key[..length]);
                    suspects.push(&suspect, &[])?;
                }
                let inserted = new.tree.insert(transaction, &after.key, &after.payload);
                inserted.map_err(|error| table.entry_error(new.index, error))?;
            }
        }
        Ok(())
    }

    /// Unique indexes must be so, and rows must have their parents.
    fn end_round(&mut self, round: &RoundEnd<'_>) -> Result<()> {
        let Some(suspects) = self.suspects.take() else {
            return Ok(());
        };
        let mut suspects = suspects.finish(round.sort_bytes)?;
        let mut last = Vec::new();
        while suspects.advance()? {
            let (suspect, child_prefix) = suspects.entry();
            if last == suspect {
                continue;
            }
            last = suspect.to_vec();
            let Some((number, prefix)) = suspect.split_first_chunk::<2>() else {
                continue;
            };
            let number = usize::from(u16::from_be_bytes(*number));
            match self.indexes.get(number) {
                Some(new) => new.check_is_alone(self.table, prefix)?,
                None => {
                    let number = number - self.indexes.len();
                    let prefixes = (prefix, child_prefix);
                    self.references.judge(number, prefixes, round.view)?;
                }
            }
        }
        Ok(())
    }
}

impl NewIndex<'_> {
    fn entry(&self, row: &[Value], row_id: u64) -> Entry {
        let mut entry = Entry::default();
        let values = |column: usize| (&row[column]).into();
        let (key, payload) = (&mut entry.key, &mut entry.payload);
        let shape = self.layout.encode_entry(values, row_id, key, payload);
        // NULL equals nothing, not even NULL.
        let is_unique = self.index.unique && !shape.has_null;
        entry.unique_bytes = is_unique.then_some(shape.declared_bytes);
        entry
    }

    /// Error `DuplicateKey` if several entries begin with `prefix`.
    fn check_is_alone(&self, table: &Table, prefix: &[u8]) -> Result<()> {
        let range = KeyRange::prefix(prefix);
        let mut entries = self.tree.scan(range, Direction::Forward, ReadAhead::Off);
        let mut found = 0;
        while let Some(leaf) = entries.next_leaf()? {
            found += leaf.len();
            if found < 2 {
                continue;
            }
            let mut key = Vec::new();
            leaf.key_into(0, &mut key);
            let build = IndexTree {
                definition: &table.definition,
                index: self.index,
                layout: &self.layout,
            };
            return Err(build.duplicate(&key, leaf.value(0)));
        }
        Ok(())
    }
}
