//! Divides the rows of one side of a join between files, by a hash of their keys.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;
use datafusion_common::hash_utils::{QualityRandomState, create_hashes};
use datafusion_common::{NullEquality, Result};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{SpillFile, TaskContext};
use datafusion_physical_expr::PhysicalExprRef;
use datafusion_physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{SendableRecordBatchStream, SpillManager};
use futures::{StreamExt, TryStreamExt, stream};

use crate::operator::compacted_exec::detached;

/// Files that a side is divided between.
pub(super) const PARTS: usize = 16;

/// Bytes of rows that are written to a file at a time.
const WRITE_BYTES: usize = 64 << 10;

/// What the hash of the first division begins with: another one than those of exchanges and of hash tables.
const FIRST_SEED: u64 = 0x5eaf_0001;

/// The rows of one side, and how their keys are found.
pub(super) struct Side {
    pub(super) schema: SchemaRef,
    pub(super) keys: Vec<PhysicalExprRef>,
    pub(super) null_equality: NullEquality,
    /// Rows with a NULL in the key go to a file of their own.
    pub(super) nulls_apart: bool,
    files: Arc<SpillManager>,
}

/// Rows of one side that are joined together.
#[derive(Clone, Default)]
pub(super) struct Part {
    pub(super) files: Vec<Arc<dyn SpillFile>>,
    pub(super) rows: usize,
}

/// What a side was divided into.
pub(super) struct Divided {
    pub(super) parts: Vec<Part>,
    /// Rows whose key has a NULL, if they are kept apart.
    pub(super) nulls: Part,
}

impl Divided {
    pub(super) fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.rows).sum::<usize>() + self.nulls.rows
    }
}

impl Side {
    pub(super) fn new(
        schema: SchemaRef,
        keys: Vec<PhysicalExprRef>,
        null_equality: NullEquality,
        context: &TaskContext,
    ) -> Side {
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
        let files = SpillManager::new(context.runtime_env(), metrics, Arc::clone(&schema));
        Side {
            schema,
            keys,
            null_equality,
            nulls_apart: false,
            files: Arc::new(files),
        }
    }

    /// The rows of a part, file by file.
    pub(super) fn read(&self, part: &Part) -> SendableRecordBatchStream {
        let files = Arc::clone(&self.files);
        let rows = stream::iter(part.files.clone())
            .map(move |file| files.read_spill_as_stream(file, None))
            .try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            rows,
        ))
    }
}

/// Divides rows as they come.
pub(super) struct Divider {
    side: Arc<Side>,
    seed: QualityRandomState,
    hashes: Vec<u64>,
    /// The last one is for rows whose key has a NULL, if they are kept apart.
    writers: Vec<PartWriter>,
    /// Where the next row goes that has no match.
    next: usize,
    _buffers: MemoryReservation,
}

impl Divider {
    /// `depth`: how often the rows have been divided before.
    pub(super) fn new(side: &Arc<Side>, depth: usize, context: &TaskContext) -> Divider {
        let buffers = MemoryConsumer::new("hash join files").register(context.memory_pool());
        buffers.grow(PARTS * WRITE_BYTES);
        Divider {
            side: Arc::clone(side),
            seed: QualityRandomState::with_seed(FIRST_SEED + depth as u64),
            hashes: Vec::new(),
            writers: (0..=PARTS).map(|_| PartWriter::default()).collect(),
            next: 0,
            _buffers: buffers,
        }
    }

    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        let keys = self.side.keys.iter();
        let keys: Vec<ArrayRef> = keys
            .map(|key| key.evaluate(batch)?.into_array(rows))
            .collect::<Result<_>>()?;
        self.hashes.clear();
        self.hashes.resize(rows, 0);
        create_hashes(&keys, &self.seed, &mut self.hashes)?;
        let nulls: Vec<_> = match self.side.null_equality {
            NullEquality::NullEqualsNull => Vec::new(),
            NullEquality::NullEqualsNothing => {
                keys.iter().filter_map(|key| key.logical_nulls()).collect()
            }
        };
        let mut chosen: Vec<Vec<u32>> = vec![Vec::new(); PARTS + 1];
        for (row, hash) in self.hashes.iter().enumerate() {
            let has_null = nulls.iter().any(|nulls| nulls.is_null(row));
            let part = match (has_null, self.side.nulls_apart) {
                (false, _) => (hash >> 32) as usize % PARTS,
                (true, true) => PARTS,
                (true, false) => {
                    self.next += 1;
                    self.next % PARTS
                }
            };
            chosen[part].push(row as u32);
        }
        for (writer, rows) in self.writers.iter_mut().zip(chosen) {
            if !rows.is_empty() {
                let rows = take_record_batch(batch, &UInt32Array::from(rows))?;
                writer.add(detached(rows)?, &self.side)?;
            }
        }
        Ok(())
    }

    pub(super) async fn add_all(&mut self, mut rows: SendableRecordBatchStream) -> Result<()> {
        while let Some(batch) = rows.try_next().await? {
            self.add(&batch)?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Divided> {
        let writers = self.writers.into_iter();
        let mut parts = writers
            .map(|writer| writer.finish(&self.side))
            .collect::<Result<Vec<_>>>()?;
        let nulls = parts.pop().unwrap_or_default();
        Ok(Divided { parts, nulls })
    }
}

/// Writes a batch to a file, or ends the file and returns it.
type WriteOrEnd = dyn FnMut(Option<&RecordBatch>) -> Result<Option<Arc<dyn SpillFile>>> + Send;

/// Writes the rows of one part.
#[derive(Default)]
struct PartWriter {
    file: Option<Box<WriteOrEnd>>,
    waiting: Vec<RecordBatch>,
    waiting_bytes: usize,
    rows: usize,
}

impl PartWriter {
    fn add(&mut self, batch: RecordBatch, side: &Side) -> Result<()> {
        self.rows += batch.num_rows();
        self.waiting_bytes += batch.get_array_memory_size();
        self.waiting.push(batch);
        match self.waiting_bytes >= WRITE_BYTES {
            true => self.write(side),
            false => Ok(()),
        }
    }

    fn write(&mut self, side: &Side) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let batch = concat_batches(&side.schema, &self.waiting)?;
        self.waiting.clear();
        self.waiting_bytes = 0;
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let mut file = side.files.create_in_progress_file("hash join")?;
                self.file.insert(Box::new(move |batch| match batch {
                    Some(batch) => file.append_batch(batch).map(|_| None),
                    None => file.finish(),
                }))
            }
        };
        file(Some(&batch))?;
        Ok(())
    }

    fn finish(mut self, side: &Side) -> Result<Part> {
        self.write(side)?;
        let file = match &mut self.file {
            Some(file) => file(None)?,
            None => None,
        };
        Ok(Part {
            files: file.into_iter().collect(),
            rows: self.rows,
        })
    }
}
