//! Batches of a result that waits, such as the rows of DELETE ... RETURNING, which leave when the statement has
//! succeeded, or those of a locking read with LIMIT, which leave when they are locked.
//!
//! Each is a [record](crate::query::record_spool) in Arrow's format for streams, so that they go to a file where there
//! is no memory for them.

use arrow::array::RecordBatch;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use sheaf_exec::operator::compacted_exec::detached;

use crate::error::Result;
use crate::query::record_spool::{RecordSpool, SpooledRecords, damaged};
use crate::session::Session;
use crate::session::result::ColumnMeta;

/// See the module's comment.
pub(crate) struct BatchSpool(RecordSpool);

/// The batches of a spool on their way out.
pub(crate) struct SpooledBatches(SpooledRecords);

/// A result that waits until its statement may show it: its rows are gone, or locked.
pub(crate) struct WaitingResult {
    pub(crate) columns: Vec<ColumnMeta>,
    pub(crate) batches: SpooledBatches,
}

impl BatchSpool {
    /// An empty spool within the session's query memory; `purpose` is how errors call it.
    pub(crate) fn new(session: &mut Session, purpose: &str) -> BatchSpool {
        BatchSpool(RecordSpool::new(session, purpose))
    }

    /// Adds a batch.
    ///
    /// # Errors
    /// 1021 and 1026 if the temporary file cannot be written.
    pub(crate) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        // Otherwise the buffers of many batches would be written with each of them.
        let batch = detached(batch)?;
        self.0.push(|bytes| {
            let mut writer = StreamWriter::try_new(bytes, &batch.schema())?;
            writer.write(&batch)?;
            writer.finish()?;
            Ok(())
        })
    }

    /// Ends the input; the batches are read from the first one.
    pub(crate) fn read(self) -> SpooledBatches {
        SpooledBatches(self.0.read())
    }
}

impl SpooledBatches {
    /// The next batch; `None` behind the last.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(bytes) = self.0.next_record()? else {
            return Ok(None);
        };
        let mut reader = StreamReader::try_new(bytes, None)?;
        let batch = reader.next().ok_or_else(damaged)??;
        Ok(Some(batch))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringViewArray};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    #[test]
    fn batches_come_back_from_memory_and_from_the_file() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("number", DataType::Int64, true),
            Field::new("text", DataType::Utf8View, false),
        ]));
        let numbers: ArrayRef = Arc::new(
            (0..1000)
                .map(|n| (n % 3 > 0).then_some(n))
                .collect::<Int64Array>(),
        );
        let texts = (0..1000).map(|n| format!("a text that does not fit in its view, {n}"));
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
        let all = RecordBatch::try_new(schema, vec![numbers, texts]).expect("a batch");
        for limit_bytes in [1 << 20, 0] {
            let directory = tempfile::tempdir().expect("a directory");
            let mut spool = BatchSpool(RecordSpool::alone(directory.path(), limit_bytes));
            for start in (0..1000).step_by(100) {
                spool.push(all.slice(start, 100)).expect("a push");
            }
            assert_eq!(spool.0.has_spilled(), limit_bytes == 0);
            let mut read = spool.read();
            for start in (0..1000).step_by(100) {
                assert_eq!(
                    read.next_batch().expect("a read"),
                    Some(all.slice(start, 100))
                );
            }
            assert_eq!(read.next_batch().expect("the end"), None);
        }
    }
}
