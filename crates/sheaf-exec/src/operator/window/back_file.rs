//! Batches in a temporary file that are read from the last one to the first, the rows of each in reverse as well.

use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use datafusion_common::{Result, internal_datafusion_err};
use datafusion_execution::TaskContext;
use sheaf_storage::{TempFile, TempSpace};

use crate::blocking::blocking;
use crate::error::temp_file_error;

/// See the module's comment.
pub(super) struct BackFile {
    space: Arc<TempSpace>,
    file: TempFile,
    /// Where each of the batches ends that were not read.
    ends: Vec<u64>,
}

impl BackFile {
    pub(super) fn new(context: &TaskContext) -> Result<BackFile> {
        let space = context.session_config().get_extension::<TempSpace>();
        let space = space.ok_or_else(|| internal_datafusion_err!("no space for files"))?;
        BackFile::within(space)
    }

    fn within(space: Arc<TempSpace>) -> Result<BackFile> {
        Ok(BackFile {
            file: space.create("window").map_err(temp_file_error)?,
            space,
            ends: Vec::new(),
        })
    }

    /// An empty one at the same place.
    pub(super) fn another(&self) -> Result<BackFile> {
        BackFile::within(Arc::clone(&self.space))
    }

    /// Adds a batch that has rows.
    pub(super) fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema())?;
        writer.write(batch)?;
        writer.finish()?;
        drop(writer);
        blocking(|| self.file.append(&bytes)).map_err(temp_file_error)?;
        self.ends.push(self.file.length());
        Ok(())
    }

    /// The last batch that was not read, from its last row to its first.
    pub(super) fn take_last(&mut self) -> Result<Option<RecordBatch>> {
        let Some(end) = self.ends.pop() else {
            return Ok(None);
        };
        let start = self.ends.last().copied().unwrap_or(0);
        let mut bytes = vec![0; (end - start) as usize];
        blocking(|| self.file.read_exact_at(&mut bytes, start)).map_err(temp_file_error)?;
        let mut reader = StreamReader::try_new(bytes.as_slice(), None)?;
        let batch = reader.next();
        let batch = batch.ok_or_else(|| internal_datafusion_err!("a file without its batch"))??;
        let backwards: UInt32Array = (0..batch.num_rows() as u32).rev().collect();
        Ok(Some(take_record_batch(&batch, &backwards)?))
    }
}
