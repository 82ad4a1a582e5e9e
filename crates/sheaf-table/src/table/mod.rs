//! An open table: its rows, and the upkeep of its indexes.
//!
//! A [`Table`] is one version of a table's definition with its trees opened; DDL makes another one. What all versions
//! share (the lock, the counters of AUTO_INCREMENT, row ids and long values, the statistics) is in the [`TableState`].
//!
//! A row is an entry of the clustered tree (primary key, whole row), one of each secondary index, and the chunks of its
//! long values. All changes go through a [`Transaction`](sheaf_storage::Transaction): a failed row is rolled back to
//! the savepoint before it, a failed statement as a whole.
//!
//! | file | what it holds |
//! |---|---|
//! | [`amend`] | changes of columns that no index has, in one visit of the row |
//! | [`auto_increment`] | what AUTO_INCREMENT gives out |
//! | [`catalog_memory`] | how much memory definitions and statistics of all tables take |
//! | [`hypothetical_index`] | an index that is not there, as a sort of sampled rows |
//! | [`followers`] | what followers of changes have to know of a table |
//! | [`generated_values`] | what rows get from the table: values of AUTO_INCREMENT, row ids, numbers of long values |
//! | `in_time_zone` | the table as sessions of other time zones than UTC see it |
//! | [`insert`] | inserts, and the row that is in the way of one |
//! | [`kept_statistics`] | the statistics, in memory while there is room |
//! | [`long_values`] | long values: their chunks, and references to them in rows |
//! | [`row_sample`] | rows in memory, for what is asked of them later |
//! | [`read`] | reads of single rows |
//! | [`reference_lookup`] | the rows that a foreign key refers to, or those that refer to a row |
//! | [`touched_rows`] | rows that are changed while an index is built beside |
//! | [`update`] | updates and deletes, also of rows that others have changed since the snapshot |

pub(crate) mod amend;
pub(crate) mod auto_increment;
pub(crate) mod catalog_memory;
pub(crate) mod followers;
mod generated_values;
pub mod hypothetical_index;
mod in_time_zone;
mod insert;
pub(crate) mod kept_statistics;
mod long_values;
mod read;
pub(crate) mod reference_lookup;
pub mod row_sample;
pub(crate) mod touched_rows;
mod update;

pub use generated_values::generated_value;
use std::any::Any;
use std::sync::{Arc, OnceLock, Weak};

use sheaf_memory::Share;
use sheaf_storage::sync::Mutex;
use sheaf_storage::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sheaf_storage::{Direction, KeyRange, Lsn, ReadAhead, ReadView, Storage, StorageError, Tree};
use sheaf_types::Value;
use sheaf_types::temporal::TimeZone;

use crate::codec::key_codec::KeyLayout;
use crate::codec::row_codec::RowLayout;
use crate::definition::schema::TableDefinition;
use crate::error::{Result, TableError};
use crate::lock::table_lock::{ShownTableLock, TableLock};
use crate::statistics::record::read_statistics;
use crate::statistics::{ColumnEstimator, ColumnKey, TableStatistics};
use crate::table::auto_increment::AutoIncrement;

use catalog_memory::CatalogMemory;
use hypothetical_index::HypotheticalIndex;
use kept_statistics::KeptStatistics;
use touched_rows::TouchedRows;

pub use insert::InsertOutcome;
pub use read::RowToChange;

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
    /// Rows that are changed while an index is built.
    pub(crate) touched: TouchedRows,
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
    /// What the last of the secondary indexes are, if they are only [thought
    /// of](Self::with_hypothetical_indexes). Of tables that are there: none.
    pub(crate) hypothetical: Vec<Arc<HypotheticalIndex>>,
    pub(crate) overflow: Option<Arc<Tree>>,
    /// Where [marks](auto_increment) of AUTO_INCREMENT are written.
    catalog: Arc<Tree>,
    pub(crate) state: Arc<TableState>,
    version: u64,
    /// When this version of the definition came into being; 0 if that was before a restart.
    made_at: Arc<AtomicU64>,
    /// Followers of changes know how to read the rows, or there are none.
    is_described: Arc<AtomicBool>,
    memory: Arc<CatalogMemory>,
    /// What the definition takes of it.
    _memory_share: Share,
    /// See [`Self::described_as`].
    description: OnceLock<Arc<dyn Any + Send + Sync>>,
    /// See [`Self::in_time_zone`].
    in_time_zones: Mutex<Vec<(TimeZone, Weak<Table>)>>,
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
            row_layout: RowLayout::of(&definition),
            clustered_layout: KeyLayout::clustered(&definition),
            secondary_layouts: definition
                .secondary
                .iter()
                .map(|index| KeyLayout::secondary(&definition, index))
                .collect(),
            definition,
            clustered,
            secondary,
            hypothetical: Vec::new(),
            overflow,
            catalog: storage.catalog_tree(),
            state,
            version,
            made_at: Arc::default(),
            is_described: Arc::new(AtomicBool::new(!storage.options().follow_changes)),
            memory: Arc::clone(memory),
            _memory_share: memory_share,
            description: OnceLock::new(),
            in_time_zones: Mutex::default(),
        })
    }

    /// Makes this the newest version, made at `now`. The caller holds the exclusive lock, or no other session knows the
    /// table yet.
    pub(crate) fn publish(&self, now: Lsn) {
        // A temporary table has no past that an older view could see: the session makes it in its own transaction.
        let made_at = match self.definition.is_temporary() {
            true => Lsn(0),
            false => now,
        };
        self.made_at.store(made_at.0, Ordering::Release);
        self.let_follow();
        self.clustered.count_rows();
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

    /// The sessions that hold the table's lock, or wait for it.
    pub fn shown_locks(&self) -> Vec<ShownTableLock> {
        self.state.lock.shown()
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

    /// Errors from below the table do not know its name.
    pub(crate) fn name_corruption(&self, error: TableError) -> TableError {
        match error {
            TableError::Corrupt { detail, .. } => {
                TableError::corrupt(&self.definition.name, detail)
            }
            other => other,
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
