//! The build side of a join in memory, and the memory that the join then runs in.
//!
//! A hash join reserves its memory while it collects its rows: the rows, what exists twice while its columns are
//! concatenated one by one, and the hash table. When all of it was granted, the join gets a memory pool of its own,
//! which has just that. So it does not fail for want of memory that another operator has taken in between.

use std::fmt;
use std::sync::{Arc, Mutex};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, new_empty_array};
use arrow::compute::concat;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_common::utils::memory::{RecordBatchMemoryCounter, estimate_memory_size};
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use datafusion_execution::runtime_env::RuntimeEnv;
use datafusion_physical_plan::SendableRecordBatchStream;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream;

use super::lock;
use crate::memory_pool::without_waiting;
use crate::operator::compacted_exec::gathered;

/// Bytes that a join gets whatever is left, so that it gets on.
const LEAST_BYTES: usize = 512 << 10;

/// Part of the query memory that is left to operators that cannot spill, if the build side is more than a small one.
const LEFT_FREE: usize = 4;
const SMALL_BUILD: usize = 16;

/// Bytes of a hash table for each row besides those of the map: the chain of rows with one hash, and the mark of those
/// that have a match.
const CHAIN_BYTES: usize = 5;

/// What the byte strings of the build side take in a batch of joined rows, at most: each of them is copied for each of
/// its matches. One row fits in any case.
const JOINED_BYTES: usize = 8 << 20;

/// How the memory of joins is called in errors.
const CONSUMER: &str = "hash join";

/// Rows of the build side.
pub(super) struct Held {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    /// Bytes of each column.
    columns: Vec<usize>,
    counter: RecordBatchMemoryCounter,
    reservation: MemoryReservation,
    pool: Arc<dyn MemoryPool>,
}

/// The build side as a join reads it, and the memory that the join has.
pub(super) struct Build {
    pub(super) rows: SendableRecordBatchStream,
    pub(super) grant: Arc<Grant>,
}

impl Held {
    pub(super) fn new(schema: SchemaRef, context: &TaskContext) -> Held {
        let pool = Arc::clone(context.memory_pool());
        Held {
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
            columns: vec![0; schema.fields().len()],
            counter: RecordBatchMemoryCounter::new(),
            reservation: MemoryConsumer::new(CONSUMER).register(&pool),
            schema,
            pool,
        }
    }

    /// Adds a batch; `false` if there is no memory for the join then. The batch is there nevertheless.
    pub(super) fn add(&mut self, batch: RecordBatch) -> Result<bool> {
        self.bytes += self.counter.count_batch(&batch);
        for (bytes, column) in self.columns.iter_mut().zip(batch.columns()) {
            *bytes += column.get_array_memory_size();
        }
        self.rows += batch.num_rows();
        self.batches.push(batch);
        let needed = self.needed_bytes()?;
        let more = needed.saturating_sub(self.reservation.size());
        if needed <= LEAST_BYTES {
            self.reservation.grow(more);
            return Ok(true);
        }
        Ok(self.leaves_enough(needed, more)
            && without_waiting(|| self.reservation.try_grow(more)).is_ok())
    }

    fn needed_bytes(&self) -> Result<usize> {
        let twice = match self.batches.len() {
            1 => 0,
            _ => self
                .columns
                .iter()
                .copied()
                .max()
                .unwrap_or(0)
                .min(self.bytes),
        };
        let table = estimate_memory_size::<(u32, u64)>(self.rows, 0)?;
        Ok(self.bytes + twice + table + self.rows * CHAIN_BYTES)
    }

    fn leaves_enough(&self, needed: usize, more: usize) -> bool {
        let MemoryLimit::Finite(limit) = self.pool.memory_limit() else {
            return true;
        };
        needed <= limit / SMALL_BUILD || self.pool.reserved() + more <= limit - limit / LEFT_FREE
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The rows, which are accounted for until what comes with them is dropped.
    pub(super) fn into_batches(self) -> (Vec<RecordBatch>, MemoryReservation) {
        (self.batches, self.reservation)
    }

    /// The rows in one batch, whose columns have been put together one after the other.
    pub(super) fn into_build(self) -> Result<Build> {
        // A piece of a build side has one batch more than there was memory for.
        let missing = self.needed_bytes()?.saturating_sub(self.reservation.size());
        self.reservation.grow(missing);
        let schema = Arc::clone(&self.schema);
        let batch = put_together(&schema, self.batches, self.rows)?;
        let joined_rows = JOINED_BYTES / longest_bytes(&batch).max(1);
        let rows = stream::iter([Ok(batch)]);
        let rows = Box::pin(RecordBatchStreamAdapter::new(schema, rows));
        let grant = Grant {
            used: Mutex::default(),
            reservation: self.reservation,
            joined_rows: joined_rows.max(1),
        };
        let grant = Arc::new(grant);
        Ok(Build { rows, grant })
    }
}

/// All rows in one batch. A join puts its batches together itself, all columns at once; of one batch it makes no copy.
fn put_together(
    schema: &SchemaRef,
    mut batches: Vec<RecordBatch>,
    rows: usize,
) -> Result<RecordBatch> {
    if batches.len() == 1
        && let Some(batch) = batches.pop()
    {
        return Ok(batch);
    }
    let mut columns: Vec<Vec<ArrayRef>> = vec![Vec::new(); schema.fields().len()];
    for batch in batches {
        let (_, arrays, _) = batch.into_parts();
        for (column, array) in columns.iter_mut().zip(arrays) {
            column.push(array);
        }
    }
    let mut whole = Vec::with_capacity(columns.len());
    for (pieces, field) in columns.into_iter().zip(schema.fields()) {
        let arrays: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
        whole.push(match arrays.is_empty() {
            true => new_empty_array(field.data_type()),
            // Strings in one buffer: each batch of joined rows refers to all of them.
            false => gathered(concat(&arrays)?),
        });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        whole,
        &options,
    )?)
}

/// What the byte strings of one row may take. Texts are not copied: joined rows refer to them.
fn longest_bytes(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter();
    let longest = columns.filter_map(|column| {
        let ends = column.as_binary_opt::<i32>()?.value_offsets();
        ends.windows(2).map(|pair| pair[1] - pair[0]).max()
    });
    longest.map(|bytes| bytes as usize).sum()
}

/// Memory of one join, as a pool that has just that.
pub(super) struct Grant {
    used: Mutex<Used>,
    reservation: MemoryReservation,
    /// Rows of a batch of joined rows, at most.
    joined_rows: usize,
}

/// What the operators of the join have.
#[derive(Default)]
struct Used {
    bytes: usize,
    /// What they have asked for and not been given yet, and how much of it the statement was asked for.
    asked: usize,
    asked_of_statement: usize,
}

impl Grant {
    /// The context of the statement, with this memory.
    pub(super) fn context(self: &Arc<Self>, context: &TaskContext) -> Arc<TaskContext> {
        let pool: Arc<dyn MemoryPool> = Arc::new(GrantedPool(Arc::clone(self)));
        let environment = RuntimeEnv {
            memory_pool: pool,
            ..RuntimeEnv::clone(&context.runtime_env())
        };
        Arc::new(TaskContext::new(
            context.task_id(),
            context.session_id(),
            context
                .session_config()
                .clone()
                .with_batch_size(context.session_config().batch_size().min(self.joined_rows)),
            context.scalar_functions().clone(),
            context.higher_order_functions().clone(),
            context.aggregate_functions().clone(),
            context.window_functions().clone(),
            Arc::new(environment),
        ))
    }

    /// Gives back what the join does not use.
    pub(super) fn settle(&self) {
        let used = lock(&self.used);
        if used.bytes < self.reservation.size() {
            self.reservation
                .shrink(self.reservation.size() - used.bytes);
        }
    }
}

/// The pool of a [`Grant`]. What goes beyond it comes from the statement's memory.
struct GrantedPool(Arc<Grant>);

impl fmt::Debug for GrantedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrantedPool").finish_non_exhaustive()
    }
}

impl fmt::Display for GrantedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())
    }
}

impl MemoryPool for GrantedPool {
    fn name(&self) -> &str {
        "memory of a hash join"
    }

    fn grow(&self, _: &MemoryReservation, additional: usize) {
        let mut used = lock(&self.0.used);
        used.bytes += additional;
        let missing = used.bytes.saturating_sub(self.0.reservation.size());
        self.0.reservation.grow(missing);
    }

    fn shrink(&self, _: &MemoryReservation, shrink: usize) {
        let mut used = lock(&self.0.used);
        used.bytes = used.bytes.saturating_sub(shrink);
    }

    /// Nothing is locked while the statement's memory is asked for: the answer may take a while.
    fn try_grow(&self, _: &MemoryReservation, additional: usize) -> Result<()> {
        let reservation = &self.0.reservation;
        let missing = {
            let mut used = lock(&self.0.used);
            let wanted = used.bytes + used.asked + additional;
            let missing = wanted.saturating_sub(reservation.size() + used.asked_of_statement);
            if missing == 0 || wanted <= LEAST_BYTES * 2 {
                reservation.grow(missing);
                used.bytes += additional;
                return Ok(());
            }
            used.asked += additional;
            used.asked_of_statement += missing;
            missing
        };
        let outcome = reservation.try_grow(missing);
        let mut used = lock(&self.0.used);
        used.asked -= additional;
        used.asked_of_statement -= missing;
        outcome?;
        used.bytes += additional;
        // Another thread may have counted on what was refused.
        reservation.grow(used.bytes.saturating_sub(reservation.size()));
        Ok(())
    }

    fn reserved(&self) -> usize {
        lock(&self.0.used).bytes
    }
}
