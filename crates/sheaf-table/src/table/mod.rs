//! An open table: its rows, and the upkeep of its indexes.
//!
//! A [`Table`] is one version of a table's definition with its trees opened; DDL makes another one. What all versions
//! share (the lock, the counters of AUTO_INCREMENT, row ids and long values, the statistics) is in the [`TableState`].
//!
//! A row is an entry of the clustered tree (primary key, whole row), one of each secondary index, and the chunks of its
//! long values. All changes go through a [`Transaction`]: a failed row is rolled back to the savepoint before it, a
//! failed statement as a whole.
//!
//! | file | what it holds |
//! |---|---|
//! | [`amend`] | changes of columns that no index has, in one visit of the row |
//! | [`auto_increment`] | what AUTO_INCREMENT gives out |
//! | [`catalog_memory`] | how much memory definitions and statistics of all tables take |
//! | [`generated_values`] | what rows get from the table: values of AUTO_INCREMENT, row ids, numbers of long values |
//! | [`kept_statistics`] | the statistics, in memory while there is room |
//! | [`reference_lookup`] | the rows that a foreign key refers to, or those that refer to a row |

pub(crate) mod amend;
pub(crate) mod auto_increment;
pub(crate) mod catalog_memory;
mod generated_values;
pub(crate) mod kept_statistics;
pub(crate) mod reference_lookup;

use std::any::Any;
use std::sync::{Arc, OnceLock};

use sheaf_memory::Share;
use sheaf_storage::sync::atomic::{AtomicU64, Ordering};
use sheaf_storage::{
    Direction, KeyRange, LockMode, LockWait, Lsn, MAX_ENTRY_BYTES, ReadAhead, ReadView, Storage,
    StorageError, Transaction, Tree,
};
use sheaf_types::{Value, assignment::zero_value, column_text};

use crate::codec::key_codec::KeyLayout;
use crate::codec::overflow;
use crate::codec::row_codec::{OVERFLOW_REFERENCE_BYTES, RowLayout, RowView, ValueRef};
use crate::definition::schema::{Index, TableDefinition};
use crate::error::{Result, TableError};
use crate::lock::table_lock::TableLock;
use crate::statistics::record::read_statistics;
use crate::statistics::{ColumnEstimator, ColumnKey, TableStatistics};
use crate::table::auto_increment::{AutoIncrement, AutoIncrementSeries, Reserved};

use catalog_memory::CatalogMemory;
use generated_values::Generated;
use kept_statistics::KeptStatistics;

/// What an insert did besides inserting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InsertOutcome {
    /// The value given out by AUTO_INCREMENT, if it was.
    pub auto_increment: Option<u64>,
}

/// What all versions of a table share.
#[derive(Default)]
pub(crate) struct TableState {
    pub(crate) lock: Arc<TableLock>,
    /// Number of the newest version; the others are not current.
    pub(crate) version: AtomicU64,
    pub(crate) auto_increment: AutoIncrement,
    /// The next row id and number of a long value; 0 at first: to be found from the largest key.
    row_id: AtomicU64,
    long_value: AtomicU64,
    pub(crate) statistics: Arc<KeptStatistics>,
    /// Rows inserted, updated and deleted since the statistics were collected, or the table was opened.
    changes: AtomicU64,
}

impl TableState {
    /// The state of a new table in the place of another one: sessions that wait for that one, or have locked it, now
    /// wait for this one or hold it.
    pub(crate) fn with_lock_of(table: &Table) -> TableState {
        TableState {
            lock: Arc::clone(&table.state.lock),
            ..TableState::default()
        }
    }

    /// Notes the statistics that the catalog wrote down. Without them plans may be bad, but right: so statistics that
    /// cannot be read are no reason to refuse the table.
    pub(crate) fn restore_statistics(&self, table: &str, statistics: Result<TableStatistics>) {
        match statistics {
            Ok(statistics) => self.statistics.note_written(statistics.rows),
            Err(error) => tracing::warn!(table, %error, "the table must be analyzed again"),
        }
    }

    pub(crate) fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Changes counted so far, for [`forget_changes`](Self::forget_changes) after an analysis that begins now.
    pub(crate) fn counted_changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// So many changes are in the statistics.
    pub(crate) fn forget_changes(&self, counted: u64) {
        let relaxed = Ordering::Relaxed;
        let rest = |changes: u64| Some(changes.saturating_sub(counted));
        // Always succeeds. Another analysis may have forgotten the same ones.
        let _ = self.changes.fetch_update(relaxed, relaxed, rest);
    }
}

/// An open table: an immutable definition, its trees and layouts.
pub struct Table {
    pub definition: TableDefinition,
    /// Key: primary key; value: the whole row.
    pub clustered: Arc<Tree>,
    /// In the order of `definition.secondary`.
    pub secondary: Vec<Arc<Tree>>,
    pub row_layout: RowLayout,
    pub clustered_layout: KeyLayout,
    /// In the order of `definition.secondary`.
    pub secondary_layouts: Vec<KeyLayout>,
    pub(crate) overflow: Option<Arc<Tree>>,
    /// Where [marks](auto_increment) of AUTO_INCREMENT are written.
    catalog: Arc<Tree>,
    pub(crate) state: Arc<TableState>,
    version: u64,
    /// When this version of the definition came into being; 0 if that was before a restart.
    made_at: AtomicU64,
    memory: Arc<CatalogMemory>,
    /// What the definition takes of it.
    _memory_share: Share,
    /// See [`Self::described_as`].
    description: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// The encoded clustered entry of a row.
#[derive(Default)]
struct ClusteredEntry {
    key: Vec<u8>,
    row: Vec<u8>,
}

/// References to long values, with their columns.
type References = Vec<(usize, [u8; OVERFLOW_REFERENCE_BYTES])>;

/// A row that is about to be changed.
pub struct RowToChange {
    /// Empty where a long value is left untouched.
    pub values: Vec<Value>,
    /// The columns whose long values were not read, and stay.
    pub untouched: Vec<usize>,
}

/// What a transaction's view shows under a primary key.
struct Seen {
    view: ReadView,
    /// `None`: no row.
    bytes: Option<Vec<u8>>,
    row_id: u64,
}

/// What a transaction's view shows of a row that others have changed since.
struct Outdated {
    /// `None`: no row.
    row: Option<Vec<Value>>,
    row_id: u64,
}

impl Table {
    /// What a floor above makes of the definition, once for this version of it. There is one such description: if it
    /// is of another type than `T`, `make` is asked each time.
    pub fn described_as<T: Any + Send + Sync>(
        &self,
        make: impl Fn(&TableDefinition) -> Arc<T>,
    ) -> Arc<T> {
        let known = self.description.get_or_init(|| make(&self.definition) as _);
        match Arc::clone(known).downcast() {
            Ok(known) => known,
            Err(_) => make(&self.definition),
        }
    }

    /// Opens a definition's trees as the version that follows the newest one. It is current once it is
    /// [published](Self::publish).
    pub(crate) fn open(
        storage: &Storage,
        memory: &Arc<CatalogMemory>,
        definition: TableDefinition,
        state: Arc<TableState>,
    ) -> Result<Table> {
        let clustered = storage.tree(definition.primary.tree)?;
        let secondary = definition
            .secondary
            .iter()
            .map(|index| storage.tree(index.tree))
            .collect::<Result<_, StorageError>>()?;
        let overflow = definition
            .overflow
            .map(|tree| storage.tree(tree))
            .transpose()?;
        let version = state.version.load(Ordering::Acquire) + 1;
        let memory_share = memory.keep_definition(&definition);
        Ok(Table {
            row_layout: RowLayout::new(&definition.columns),
            clustered_layout: KeyLayout::clustered(&definition),
            secondary_layouts: definition
                .secondary
                .iter()
                .map(|index| KeyLayout::secondary(&definition, index))
                .collect(),
            definition,
            clustered,
            secondary,
            overflow,
            catalog: storage.catalog_tree(),
            state,
            version,
            made_at: AtomicU64::new(0),
            memory: Arc::clone(memory),
            _memory_share: memory_share,
            description: OnceLock::new(),
        })
    }

    /// Makes this the newest version, made at `now`. The caller holds the exclusive lock, or no other session knows the
    /// table yet.
    pub(crate) fn publish(&self, now: Lsn) {
        self.made_at.store(now.0, Ordering::Release);
        self.state.version.store(self.version, Ordering::Release);
    }

    /// Error 1412 for a view from before this version of the definition: indexes and loaded rows have no past, so what
    /// it should see cannot be told. A view is taken after the tables are opened; an older one belongs to a
    /// transaction that has not used the table yet, and must begin again to use it.
    pub fn check_view(&self, view: &ReadView) -> Result<()> {
        let made_at = Lsn(self.made_at.load(Ordering::Acquire));
        match view.timestamp() {
            Some(timestamp) if timestamp < made_at => Err(TableError::DefinitionChanged),
            _ => Ok(()),
        }
    }

    /// Makes all versions old, because the table is gone.
    pub(crate) fn retire(&self) {
        self.state.version.store(u64::MAX, Ordering::Release);
    }

    /// True while this is the table's newest definition; false after DDL: open it again.
    pub fn is_current(&self) -> bool {
        self.state.version.load(Ordering::Acquire) == self.version
    }

    /// Whether a session that waits for this table waits in vain, because it keeps `held` as it is: the session that
    /// changes this table waits to change that one. `rows`: it has changed rows of it, and not only read it.
    pub fn would_deadlock(&self, held: &Table, rows: bool) -> bool {
        let writer = self.state.lock.writer_session();
        writer.is_some_and(|session| held.state.lock.awaits(session, rows))
    }

    /// Whether some session has LOCK TABLES on it.
    pub fn is_locked_by_session(&self) -> bool {
        self.state.lock.is_locked_by_session()
    }

    /// About how many rows there are.
    pub fn row_count_estimate(&self) -> u64 {
        self.clustered.statistics().entries
    }

    /// About how many bytes the pages of its rows have, with those of values that are too long for them.
    pub fn data_bytes_estimate(&self) -> u64 {
        let overflow = self.overflow.as_ref();
        let overflow = overflow.map_or(0, |tree| tree.statistics().bytes);
        self.clustered.statistics().bytes + overflow
    }

    /// What ANALYZE TABLE found out; `None`: never analyzed.
    pub fn statistics(&self) -> Option<Arc<TableStatistics>> {
        let read = || read_statistics(&self.catalog, self.definition.id);
        self.state.statistics.get(&self.memory, read)
    }

    /// Distinct values of the first 1, 2, ... declared parts of an index (`None`: the primary key), from ANALYZE TABLE;
    /// `None`: never analyzed.
    pub fn distinct_prefixes(&self, secondary: Option<usize>) -> Option<Vec<u64>> {
        let index = match secondary {
            None => &self.definition.primary,
            Some(position) => &self.definition.secondary[position],
        };
        let statistics = self.statistics()?;
        let index = statistics.indexes.get(&index.id)?;
        Some(index.distinct_prefixes.clone())
    }

    /// No index of the table has this id, or a greater one. Nor has one that was dropped and that the statistics still
    /// know: what they say of it is not about another one.
    pub(crate) fn first_free_index_id(&self) -> u32 {
        let indexes = self.definition.secondary.iter().map(|index| index.id);
        let last = indexes.max().unwrap_or(0);
        let analyzed = self.statistics();
        let analyzed = analyzed.and_then(|known| known.indexes.keys().next_back().copied());
        analyzed.map_or(last, |id| last.max(id)) + 1
    }

    /// Estimates conditions on a column, by position, from ANALYZE TABLE; `None`: never analyzed.
    pub fn column_estimator(&self, column: usize) -> Option<ColumnEstimator> {
        let statistics = self.statistics()?;
        // Statistics of former versions have no columns.
        if statistics.columns.len() != self.definition.columns.len() {
            return None;
        }
        let key = ColumnKey::new(&self.definition, column);
        Some(ColumnEstimator::new(statistics, column, key))
    }

    /// About how many rows were inserted, updated or deleted since the table was analyzed, those of transactions that
    /// were rolled back included. After a restart, at least by how much the number of rows has changed.
    pub fn changed_rows(&self) -> u64 {
        let analyzed = self.state.statistics.rows();
        let difference = self.row_count_estimate().abs_diff(analyzed);
        self.state.counted_changes().max(difference)
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> Result<bool> {
        let mut cursor = self
            .clustered
            .scan(KeyRange::all(), Direction::Forward, ReadAhead::Off);
        Ok(cursor.next_leaf()?.is_none())
    }

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
        let generated = match self.take_auto_increment(row, series, reserved) {
            Err(TableError::AutoIncrementExhausted) => self.last_auto_increment(series)?,
            generated => generated?,
        };
        self.mark_auto_increment(transaction)?;
        let inserted = self.insert_entries(transaction, row, &generated);
        match &inserted {
            Ok(_) => self.state.note_change(),
            Err(error) => {
                transaction.rollback_to(savepoint)?;
                if let (TableError::DuplicateKey { .. }, Some(taken)) = (error, generated.taken) {
                    reserved.leave(taken);
                }
            }
        }
        inserted
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
        let seen = self.seen(transaction, &entry.key)?;
        match self.clustered.insert(transaction, &entry.key, &entry.row) {
            Err(StorageError::DuplicateKey { .. }) => {
                return Err(self.duplicate(&self.definition.primary, values));
            }
            other => other?,
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
    fn insert_secondary<'v>(
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
            other => Ok(other?),
        }
    }

    /// Deletes the row with this encoded primary key; false: there is none. Waits for others that are changing it.
    /// After an error the statement must be rolled back.
    pub fn delete(&self, transaction: &mut Transaction, primary_key: &[u8]) -> Result<bool> {
        let seen = self.seen(transaction, primary_key)?;
        // The clustered entry first: from then on the row is this transaction's, and what was taken is its newest
        // state.
        let Some(bytes) = self.clustered.take(transaction, primary_key)? else {
            return Ok(false);
        };
        let outdated = self.outdated(seen, Some(&bytes))?;
        let view = self.view(&bytes)?;
        let old = self.decode_row(&view)?;
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
    /// ([`RowToChange::untouched`]).
    pub(crate) fn replace_beside(
        &self,
        transaction: &mut Transaction,
        primary_key: &[u8],
        old: &[Value],
        row: &[Value],
        untouched: &[usize],
    ) -> Result<()> {
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
        let row_id = self.row_id_of(primary_key);
        let values = |column: usize| ValueRef::from(&row[column]);
        let kept = self.references_at(primary_key, untouched)?;
        let entry = self.encode_beside(transaction, values, row_id, kept)?;
        let keeps_its_key = entry.key == primary_key;
        let seen = self.seen(transaction, primary_key)?;
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
                other => other?,
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
    fn seen(&self, transaction: &Transaction, primary_key: &[u8]) -> Result<Option<Seen>> {
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
    fn outdated(&self, seen: Option<Seen>, newest: Option<&[u8]>) -> Result<Option<Outdated>> {
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
    fn hide_outdated(
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

    /// The encoded primary key of a row; not for tables with a hidden row id.
    pub fn encode_primary_key(&self, row: &[Value]) -> Vec<u8> {
        let mut key = Vec::new();
        self.clustered_layout.encode_entry(
            |column| (&row[column]).into(),
            0,
            &mut key,
            &mut Vec::new(),
        );
        key
    }

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
    fn decode_row_without(
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
        let Some(tree) = &self.overflow else {
            return Err(TableError::corrupt(
                &self.definition.name,
                "a row refers to a long value, but the table has none",
            ));
        };
        overflow::read(tree, view, reference, value).map_err(|error| self.name_corruption(error))
    }

    /// Removes the long values of a row that goes, except these, which another row has now.
    fn delete_overflow(
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
        Ok(())
    }

    /// Errors from below the table do not know its name.
    pub(crate) fn name_corruption(&self, error: TableError) -> TableError {
        match error {
            TableError::Corrupt { detail, .. } => {
                TableError::corrupt(&self.definition.name, detail)
            }
            other => other,
        }
    }

    fn encode_clustered<'v>(
        &self,
        transaction: &mut Transaction,
        values: impl Fn(usize) -> ValueRef<'v> + Copy,
        row_id: u64,
    ) -> Result<ClusteredEntry> {
        self.encode_beside(transaction, values, row_id, References::new())
    }

    /// As [`encode_clustered`](Self::encode_clustered), with the long values of some columns where they are. The values
    /// of these are empty.
    fn encode_beside<'v>(
        &self,
        transaction: &mut Transaction,
        values: impl Fn(usize) -> ValueRef<'v> + Copy,
        row_id: u64,
        mut references: References,
    ) -> Result<ClusteredEntry> {
        let mut entry = ClusteredEntry::default();
        self.clustered_layout
            .encode_entry(values, row_id, &mut entry.key, &mut Vec::new());
        let limit = MAX_ENTRY_BYTES - entry.key.len().min(MAX_ENTRY_BYTES);
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

    /// Where the row with this encoded primary key, which is there, has the long values of these columns.
    fn references_at(&self, primary_key: &[u8], columns: &[usize]) -> Result<References> {
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
        TableError::DuplicateKey {
            key: format!("{}.{}", self.definition.name, index.name),
            entry: parts.collect::<Vec<_>>().join("-"),
        }
    }
}

/// The name only: a table is too much to print.
impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Table({}.{})",
            self.definition.database, self.definition.name
        )
    }
}
