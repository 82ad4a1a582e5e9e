//! Rows in a temporary file: written once, from the first to the last, then read in that order, by one reader or by
//! several.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_execution::{SendableRecordBatchStream, SpillFile, TaskContext};
use datafusion_physical_plan::SpillManager;
use datafusion_physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion_physical_plan::stream::{EmptyRecordBatchStream, RecordBatchStreamAdapter};
use futures::TryStreamExt;

/// Writes a batch to a file, or ends the file and returns it.
type WriteOrEnd = dyn FnMut(Option<&RecordBatch>) -> Result<Option<Arc<dyn SpillFile>>> + Send;

/// A file that is being written.
pub(crate) struct RowFile {
    files: SpillManager,
    write: Box<WriteOrEnd>,
}

impl RowFile {
    /// An empty file. `what` is for messages.
    pub(crate) fn new(schema: SchemaRef, what: &str, context: &TaskContext) -> Result<RowFile> {
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
        let files = SpillManager::new(context.runtime_env(), metrics, schema);
        let mut file = files.create_in_progress_file(what)?;
        let write = move |batch: Option<&RecordBatch>| match batch {
            Some(batch) => file.append_batch(batch).map(|_| None),
            None => file.finish(),
        };
        Ok(RowFile {
            files,
            write: Box::new(write),
        })
    }

    pub(crate) fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        (self.write)(Some(batch)).map(|_| ())
    }

    /// Ends the file, and reads it once. It is gone when its reader is.
    pub(crate) fn read(self) -> Result<SendableRecordBatchStream> {
        self.ended()?.read()
    }

    /// Ends the file.
    pub(crate) fn ended(mut self) -> Result<EndedRowFile> {
        let file = (self.write)(None)?;
        let files = self.files;
        Ok(EndedRowFile { files, file })
    }
}

/// A file that has all of its rows. It is gone when it and its readers are.
pub(crate) struct EndedRowFile {
    files: SpillManager,
    /// None without rows.
    file: Option<Arc<dyn SpillFile>>,
}

impl EndedRowFile {
    pub(crate) fn read(&self) -> Result<SendableRecordBatchStream> {
        let schema = Arc::clone(self.files.schema());
        let Some(file) = self.file.clone() else {
            return Ok(Box::pin(EmptyRecordBatchStream::new(schema)));
        };
        let rows = self.files.read_spill_as_stream(Arc::clone(&file), None)?;
        let rows = rows.inspect_ok(move |_| {
            // The file stays as long as it is read.
            let _ = &file;
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
