//! Writes the trees of an empty table from left to right, from rows in any order.
//!
//! ```text
//!   append(row) --> encode --> clustered tree, while rows come in primary key order
//!                     |   '--> external sort, from the first row that does not
//!                     |
//!                     '--> batch --> second thread: entries of all indexes --> one external sort each
//!
//!   finish()    --> merge and write the trees, several at a time
//! ```
//!
//! The trees are not visible until the caller of the load enters them in the catalog.
//!
//! If rows come out of order, what was written so far is finished as a tree of its own, and read again when the sorted
//! rest is merged with it.
//!
//! Memory: the sorts and batches share `memory_bytes`, and so do the merges.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use sheaf_memory::{of_this_statement, safe_point};
use sheaf_storage::sync::Mutex;
use sheaf_storage::{
    BulkBuilder, Direction, KeyRange, LeafCursor, ReadAhead, Storage, StorageError, TreeId,
    value_limit,
};
use sheaf_types::Value;

use crate::build::external_sort::{ExternalSort, SortedEntries};
use crate::build::index_build::{IndexSorts, IndexTree, LongValue, PROGRESS_STEP};
use crate::catalog::definition_check::MAX_DECLARED_KEY_BYTES;
use crate::catalog::free_trees;
use crate::codec::key_codec::KeyLayout;
use crate::codec::overflow::{OVERFLOW_REFERENCE_BYTES, OverflowReference, chunks};
use crate::codec::row_codec::ValueRef;
use crate::definition::schema::TableDefinition;
use crate::error::{Result, TableError};
use crate::progress::Progress;
use crate::table::auto_increment::{AutoIncrementSeries, Reserved};
use crate::table::{InsertOutcome, Table};

/// How a bulk load may work.
#[derive(Debug, Clone)]
pub struct BulkLoadOptions {
    /// Memory for sorting and merging, in bytes.
    pub memory_bytes: usize,
    /// Threads that write trees, 1 or more.
    pub threads: usize,
}

/// Batches that are full and not yet taken by the second thread.
const BATCHES_WAITING: usize = 2;
/// Bytes of a batch, least and most.
const BATCH_BYTES: (usize, usize) = (64 << 10, 1 << 20);
/// Bytes of a long value that an index may need: the longest prefix of the widest characters.
const LONG_VALUE_PREFIX: usize = 4 * MAX_DECLARED_KEY_BYTES;
/// Leaves that are read ahead when rows are merged with those already written.
const READ_AHEAD_PAGES: usize = 64;

/// Trees in progress: rows in, trees out. Dropped without [`finish`](Self::finish): nothing remains.
pub(crate) struct TreeLoad {
    storage: Arc<Storage>,
    options: BulkLoadOptions,
    /// The empty table whose trees these will be.
    table: Arc<Table>,
    clustered: Clustered,
    overflow: Option<BulkBuilder>,
    indexer: Option<Indexer>,
    /// Trees that are finished.
    written: Vec<TreeId>,
    rows: u64,
    /// What AUTO_INCREMENT gives out.
    pub(crate) series: AutoIncrementSeries,
    sort_bytes: usize,
    key: Vec<u8>,
    row: Vec<u8>,
}

/// What has been loaded. The trees are the caller's now: to be named by the catalog, or freed.
pub(crate) struct LoadedTrees {
    /// The table's, with the new trees in it.
    pub(crate) definition: TableDefinition,
    /// All trees that were made. Some may not be in the definition.
    pub(crate) trees: Vec<TreeId>,
    pub(crate) rows: u64,
}

/// The rows, sorted so far or not.
enum Clustered {
    Sorted(Box<BulkBuilder>),
    Unsorted {
        first: TreeId,
        sort: ExternalSort,
    },
    /// Between two states, and after an error.
    Taken,
}

/// Rows on their way to the second thread.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    rows: Vec<BatchRow>,
    long: Vec<BatchLongValue>,
}

struct BatchRow {
    row_id: u64,
    start: usize,
    end: usize,
}

struct BatchLongValue {
    /// Position among the rows of the batch.
    row: usize,
    column: usize,
    start: usize,
    end: usize,
}

/// The second thread and what it is sent.
struct Indexer {
    batch: Batch,
    batch_bytes: usize,
    sender: SyncSender<Batch>,
    thread: JoinHandle<Result<IndexSorts>>,
}

impl Indexer {
    fn new(table: Arc<Table>, mut sorts: IndexSorts, batch_bytes: usize) -> Indexer {
        let (sender, receiver) = sync_channel::<Batch>(BATCHES_WAITING);
        // The batches come from the statement's thread and go here.
        let thread = std::thread::spawn(of_this_statement(move || {
            while let Ok(batch) = receiver.recv() {
                add_batch(&table, &mut sorts, &batch)?;
                drop(batch);
                safe_point();
            }
            Ok(sorts)
        }));
        Indexer {
            batch: Batch::default(),
            batch_bytes,
            sender,
            thread,
        }
    }

    fn add(&mut self, row_id: u64, row: &[u8]) {
        let start = self.batch.bytes.len();
        self.batch.bytes.extend_from_slice(row);
        self.batch.rows.push(BatchRow {
            row_id,
            start,
            end: self.batch.bytes.len(),
        });
    }

    /// Keeps the beginning of a long value of the row added last.
    fn add_long(&mut self, column: usize, value: &[u8]) {
        let start = self.batch.bytes.len();
        self.batch
            .bytes
            .extend_from_slice(&value[..value.len().min(LONG_VALUE_PREFIX)]);
        let (row, end) = (self.batch.rows.len() - 1, self.batch.bytes.len());
        self.batch.long.push(BatchLongValue {
            row,
            column,
            start,
            end,
        });
    }

    fn is_full(&self) -> bool {
        self.batch.bytes.len() >= self.batch_bytes
    }

    /// False: the thread has ended, with an error.
    fn send(&mut self) -> bool {
        let next = Batch {
            bytes: Vec::with_capacity(self.batch.bytes.len() + (self.batch.bytes.len() >> 3)),
            rows: Vec::with_capacity(self.batch.rows.len() + (self.batch.rows.len() >> 3)),
            long: Vec::new(),
        };
        self.sender
            .send(std::mem::replace(&mut self.batch, next))
            .is_ok()
    }

    fn finish(mut self) -> Result<IndexSorts> {
        self.send();
        drop(self.sender);
        match self.thread.join() {
            Ok(sorts) => sorts,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn add_batch(table: &Table, sorts: &mut IndexSorts, batch: &Batch) -> Result<()> {
    let mut long_values = batch.long.iter().peekable();
    let mut long: Vec<LongValue<'_>> = Vec::new();
    for (position, row) in batch.rows.iter().enumerate() {
        long.clear();
        while let Some(value) = long_values.next_if(|value| value.row == position) {
            long.push((value.column, &batch.bytes[value.start..value.end]));
        }
        let view = table.view(&batch.bytes[row.start..row.end])?;
        sorts.add(&view, row.row_id, &long)?;
    }
    Ok(())
}

impl TreeLoad {
    /// Starts to write the trees of a table, which is empty and has no other writer. `empty`: trees to be freed with
    /// the new ones, if nothing becomes of the load.
    ///
    /// # Errors
    /// Whatever the storage reports. Nothing remains then.
    pub(crate) fn new(
        storage: &Arc<Storage>,
        table: Arc<Table>,
        empty: Vec<TreeId>,
        options: BulkLoadOptions,
    ) -> Result<TreeLoad> {
        let builder = BulkBuilder::new(storage).inspect_err(|_| free_trees(storage, &empty))?;
        let indexes = table.secondary_layouts.len();
        let batch_bytes = (options.memory_bytes / 64).clamp(BATCH_BYTES.0, BATCH_BYTES.1);
        // One being filled, those that wait, and one being read.
        let batches = if indexes > 0 {
            (BATCHES_WAITING + 2) * batch_bytes
        } else {
            0
        };
        // A share for the rows themselves, in case they come out of order; row ids are in order.
        let shares = indexes + usize::from(!table.definition.has_hidden_row_id());
        let sort_bytes = options.memory_bytes.saturating_sub(batches) / shares.max(1);
        let indexer = (indexes > 0).then(|| {
            let layouts = table.secondary_layouts.clone();
            let sorts = IndexSorts::new(layouts, storage.temp_space(), sort_bytes);
            Indexer::new(Arc::clone(&table), sorts, batch_bytes)
        });
        Ok(TreeLoad {
            storage: Arc::clone(storage),
            clustered: Clustered::Sorted(Box::new(builder)),
            overflow: None,
            indexer,
            written: empty,
            rows: 0,
            series: AutoIncrementSeries::default(),
            sort_bytes,
            options,
            table,
            key: Vec::new(),
            row: Vec::new(),
        })
    }

    /// As [`crate::BulkLoad::append`].
    pub(crate) fn append(
        &mut self,
        row: &[Value],
        progress: &dyn Progress,
    ) -> Result<InsertOutcome> {
        let table = Arc::clone(&self.table);
        let reserved = &mut Reserved::default();
        table.bring_auto_increment(row, self.series, reserved);
        let generated = table.take_auto_increment(row, self.series, reserved)?;
        let row_id = table.take_row_id()?;
        let values = |column: usize| generated.value(row, column);
        self.key.clear();
        self.row.clear();
        // The clustered layout has no payload.
        table
            .clustered_layout
            .encode_entry(values, row_id, &mut self.key, &mut Vec::new());
        let limit = value_limit(self.key.len());
        let mut moved = Vec::new();
        if table
            .row_layout
            .encode(values, &[], limit, &mut self.row)
            .is_err()
        {
            moved = table.values_to_move(values, limit)?;
            let references = self.write_long_values(&moved)?;
            table.encode_with_references(values, &references, limit, &mut self.row)?;
        }
        self.append_clustered(&table, values)?;
        if let Some(indexer) = &mut self.indexer {
            indexer.add(row_id, &self.row);
            for (column, _, value) in &moved {
                indexer.add_long(*column, value);
            }
            if indexer.is_full() && !indexer.send() {
                return Err(self.error_of_indexer());
            }
        }
        self.rows += 1;
        if self.rows.is_multiple_of(PROGRESS_STEP) {
            if progress.is_cancelled() {
                return Err(TableError::Interrupted);
            }
            progress.advance(PROGRESS_STEP);
        }
        Ok(InsertOutcome {
            auto_increment: generated.number(),
        })
    }

    fn write_long_values(
        &mut self,
        values: &[(usize, u64, &[u8])],
    ) -> Result<Vec<(usize, [u8; OVERFLOW_REFERENCE_BYTES])>> {
        let builder = match &mut self.overflow {
            Some(builder) => builder,
            none => none.insert(BulkBuilder::new(&self.storage)?),
        };
        let mut references = Vec::with_capacity(values.len());
        for (column, number, value) in values {
            let reference = OverflowReference::new(*number, value);
            for (key, chunk) in chunks(reference, value) {
                builder.append(&key, chunk)?;
            }
            references.push((*column, reference.to_bytes()));
        }
        Ok(references)
    }

    fn append_clustered<'v>(
        &mut self,
        table: &Table,
        values: impl Fn(usize) -> ValueRef<'v>,
    ) -> Result<()> {
        match &mut self.clustered {
            Clustered::Sorted(builder) => match builder.append(&self.key, &self.row) {
                Err(StorageError::UnsortedKeys) => self.start_to_sort(),
                appended => or_duplicate(table, appended, || {
                    table.duplicate(&table.definition.primary, values)
                }),
            },
            Clustered::Unsorted { sort, .. } => sort.push(&self.key, &self.row),
            Clustered::Taken => Err(TableError::Interrupted),
        }
    }

    /// The current row is the first that came out of order.
    fn start_to_sort(&mut self) -> Result<()> {
        let Clustered::Sorted(builder) = std::mem::replace(&mut self.clustered, Clustered::Taken)
        else {
            return Err(TableError::Interrupted);
        };
        let first = builder.finish()?;
        self.written.push(first);
        let mut sort = ExternalSort::new(self.storage.temp_space(), self.sort_bytes);
        sort.push(&self.key, &self.row)?;
        self.clustered = Clustered::Unsorted { first, sort };
        Ok(())
    }

    fn error_of_indexer(&mut self) -> TableError {
        let result = self.indexer.take().map(Indexer::finish);
        match result {
            Some(Err(error)) => error,
            _ => TableError::Interrupted,
        }
    }

    /// Sorts and builds.
    ///
    /// # Errors
    /// `DuplicateKey`, `Interrupted`, and whatever the storage reports. Nothing remains then.
    pub(crate) fn finish(mut self, progress: &dyn Progress) -> Result<LoadedTrees> {
        progress.advance(self.rows % PROGRESS_STEP);
        let sorts = match self.indexer.take() {
            Some(indexer) => indexer.finish()?.into_sorts()?,
            None => Vec::new(),
        };
        let mut tasks: Vec<Task> = Vec::new();
        let mut primary = None;
        match std::mem::replace(&mut self.clustered, Clustered::Taken) {
            Clustered::Sorted(builder) => {
                let tree = builder.finish()?;
                self.written.push(tree);
                primary = Some(tree);
            }
            Clustered::Unsorted {
                first: tree,
                mut sort,
            } => {
                sort.seal()?;
                tasks.push(Task::Rows { first: tree, sort });
            }
            Clustered::Taken => return Err(TableError::Interrupted),
        }
        let indexes = sorts.into_iter().enumerate();
        tasks.extend(indexes.map(|(position, (layout, sort))| Task::Index {
            position,
            layout,
            sort,
        }));
        let trees = self.run(tasks, progress)?;
        let mut definition = self.table.definition.clone();
        if let Some(tree) = primary {
            definition.primary.tree = tree;
        }
        for (target, tree) in trees {
            match target {
                None => definition.primary.tree = tree,
                Some(position) => definition.secondary[position].tree = tree,
            }
        }
        if let Some(builder) = self.overflow.take() {
            let tree = builder.finish()?;
            self.written.push(tree);
            definition.overflow = Some(tree);
        }
        Ok(LoadedTrees {
            definition,
            trees: std::mem::take(&mut self.written),
            rows: self.rows,
        })
    }

    /// Writes trees, several at a time.
    ///
    /// Of several errors it gives that of the first task. Rows with equal primary keys have equal entries in indexes as
    /// well, and only the task of the rows, which comes first, can say which key is there twice. A task that has begun
    /// goes on when another one fails, so the first error does not depend on which thread was faster.
    fn run(&mut self, tasks: Vec<Task>, progress: &dyn Progress) -> Result<Vec<Written>> {
        let entries = tasks.iter().map(Task::entries).sum();
        let name = &self.table.definition.name;
        progress.begin(&format!("indexing {name}"), Some(entries));
        let threads = self.options.threads.clamp(1, tasks.len().max(1));
        // Sorts that fit in memory still have their half.
        let merge_bytes = self.options.memory_bytes / threads / 2;
        let queue = Mutex::new(tasks.into_iter().enumerate());
        let (table, storage) = (&self.table, &self.storage);
        let work = || -> std::result::Result<Vec<Written>, (usize, TableError)> {
            let mut done = Vec::new();
            let result = loop {
                let Some((number, task)) = queue.lock().next() else {
                    break Ok(());
                };
                match task.run(table, storage, merge_bytes, progress) {
                    Ok(tree) => done.push(tree),
                    Err(error) => break Err((number, error)),
                }
            };
            match result {
                Ok(()) => Ok(done),
                Err(error) => {
                    // Let the others end early.
                    queue.lock().by_ref().for_each(drop);
                    let trees: Vec<TreeId> = done.iter().map(|(_, tree)| *tree).collect();
                    free_trees(storage, &trees);
                    Err(error)
                }
            }
        };
        let results = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut results = vec![work()];
            for other in others {
                results.push(
                    other
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                );
            }
            results
        });
        let mut trees = Vec::new();
        let mut failed = Vec::new();
        for result in results {
            match result {
                Ok(done) => trees.extend(done),
                Err(numbered) => failed.push(numbered),
            }
        }
        self.written.extend(trees.iter().map(|(_, tree)| *tree));
        match failed.into_iter().min_by_key(|(number, _)| *number) {
            Some((_, error)) => Err(error),
            None => Ok(trees),
        }
    }
}

impl Drop for TreeLoad {
    fn drop(&mut self) {
        if let Some(indexer) = self.indexer.take() {
            drop(indexer.sender);
            // Its result is of no interest any more, nor is a panic that was reported already.
            drop(indexer.thread.join());
        }
        free_trees(&self.storage, &self.written);
    }
}

/// The result of an append, with equal keys as the error that names them.
fn or_duplicate(
    table: &Table,
    appended: Result<(), StorageError>,
    duplicate: impl FnOnce() -> TableError,
) -> Result<()> {
    match appended {
        Err(StorageError::DuplicateKey { .. }) => Err(duplicate()),
        other => other.map_err(|error| table.entry_error(&table.definition.primary, error)),
    }
}

/// A tree that is written, and the position of its index among the secondary ones; `None` is the rows.
type Written = (Option<usize>, TreeId);

/// A tree to write.
enum Task {
    Rows {
        first: TreeId,
        sort: ExternalSort,
    },
    Index {
        position: usize,
        layout: KeyLayout,
        sort: ExternalSort,
    },
}

impl Task {
    fn entries(&self) -> u64 {
        match self {
            Task::Rows { sort, .. } | Task::Index { sort, .. } => sort.len(),
        }
    }

    fn run(
        self,
        table: &Table,
        storage: &Arc<Storage>,
        merge_bytes: usize,
        progress: &dyn Progress,
    ) -> Result<Written> {
        match self {
            Task::Index {
                position,
                layout,
                sort,
            } => {
                let index = &table.definition.secondary[position];
                let tree = IndexTree {
                    definition: &table.definition,
                    index,
                    layout: &layout,
                };
                let tree = tree.write(storage, sort.finish(merge_bytes)?, progress)?;
                Ok((Some(position), tree))
            }
            Task::Rows { first, sort } => {
                let first = storage.tree(first)?;
                let read_ahead = ReadAhead::Pages(READ_AHEAD_PAGES);
                let first = first.scan(KeyRange::all(), Direction::Forward, read_ahead);
                let rows = MergedRows {
                    first: TreeRows::new(first),
                    rest: sort.finish(merge_bytes)?,
                };
                Ok((None, rows.write(table, storage, progress)?))
            }
        }
    }
}

/// The rows of the tree written first, one at a time.
struct TreeRows {
    cursor: LeafCursor,
    key: Vec<u8>,
    row: Vec<u8>,
    /// Entries of the leaf not yet delivered; a copy, because the cursor lends its leaf only until the next one.
    entries: std::vec::IntoIter<(Vec<u8>, Vec<u8>)>,
}

impl TreeRows {
    fn new(cursor: LeafCursor) -> TreeRows {
        TreeRows {
            cursor,
            key: Vec::new(),
            row: Vec::new(),
            entries: Vec::new().into_iter(),
        }
    }

    fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some((key, row)) = self.entries.next() {
                (self.key, self.row) = (key, row);
                return Ok(true);
            }
            let Some(leaf) = self.cursor.next_leaf()? else {
                return Ok(false);
            };
            let entry = |at: usize| {
                let mut key = Vec::new();
                leaf.key_into(at, &mut key);
                (key, leaf.value(at).to_vec())
            };
            self.entries = (0..leaf.len()).map(entry).collect::<Vec<_>>().into_iter();
        }
    }
}

/// Rows that came in order, merged with the sorted rest.
struct MergedRows {
    first: TreeRows,
    rest: SortedEntries,
}

impl MergedRows {
    fn write(
        mut self,
        table: &Table,
        storage: &Arc<Storage>,
        progress: &dyn Progress,
    ) -> Result<TreeId> {
        let mut builder = BulkBuilder::new(storage)?;
        let mut has_first = self.first.advance()?;
        let mut has_rest = self.rest.advance()?;
        let mut written = 0u64;
        while has_first || has_rest {
            let from_first =
                has_first && (!has_rest || self.first.key.as_slice() <= self.rest.entry().0);
            let (key, row) = match from_first {
                true => (self.first.key.as_slice(), self.first.row.as_slice()),
                false => self.rest.entry(),
            };
            or_duplicate(table, builder.append(key, row), || match table.view(row) {
                Ok(view) => table.duplicate(&table.definition.primary, |column| {
                    match view.is_overflow(column) {
                        true => ValueRef::Bytes(b"..."),
                        false => view.value_ref(column),
                    }
                }),
                Err(error) => error,
            })?;
            if from_first {
                has_first = self.first.advance()?;
            } else {
                has_rest = self.rest.advance()?;
                written += 1;
                if written.is_multiple_of(PROGRESS_STEP) {
                    if progress.is_cancelled() {
                        return Err(TableError::Interrupted);
                    }
                    progress.advance(PROGRESS_STEP);
                }
            }
        }
        progress.advance(written % PROGRESS_STEP);
        Ok(builder.finish()?)
    }
}
