//! Tells the memory pool how long rows are.
//!
//! A sort merges rows into batches of so many rows, however long they are, and so do joins and groups. A plan that has
//! run out of memory is planned again, and then its batches have as many rows as fit.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::buffer::Buffer;
use datafusion_execution::TaskContext;

use crate::memory_pool::StatementPool;

/// Rows that take less are not long: a batch of them is no large one.
const LONG_ROW_BYTES: usize = 1 << 10;

/// Looks at the batches of one stream.
pub(crate) struct NotedRows {
    pool: Option<Arc<StatementPool>>,
    /// The most that was noted.
    row_bytes: usize,
}

impl NotedRows {
    pub(crate) fn new(context: &TaskContext) -> NotedRows {
        NotedRows {
            pool: context.session_config().get_extension::<StatementPool>(),
            row_bytes: LONG_ROW_BYTES,
        }
    }

    pub(crate) fn note(&mut self, batch: &RecordBatch) {
        let Some(pool) = &self.pool else { return };
        let rows = batch.num_rows().max(1);
        let is_more = |bytes: usize| bytes / rows > self.row_bytes;
        if is_more(held_bytes(batch)) && is_more(string_bytes(batch)) {
            self.row_bytes = string_bytes(batch) / rows;
            pool.note_row_bytes(self.row_bytes);
        }
    }
}

/// What the buffers of strings take, which other batches may share.
fn held_bytes(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter();
    let bytes = columns.map(|column| {
        let texts = column
            .as_string_view_opt()
            .map(|texts| texts.data_buffers());
        let documents = || Some(column.as_binary_view_opt()?.data_buffers());
        match texts.or_else(documents) {
            Some(buffers) => buffers.iter().map(Buffer::len).sum(),
            None => value_bytes(column),
        }
    });
    bytes.sum()
}

/// What the strings of the batch take.
fn string_bytes(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter();
    let bytes = columns.map(|column| {
        if let Some(texts) = column.as_string_view_opt() {
            return texts.lengths().map(|length| length as usize).sum();
        }
        match column.as_binary_view_opt() {
            Some(documents) => documents.lengths().map(|length| length as usize).sum(),
            None => value_bytes(column),
        }
    });
    bytes.sum()
}

/// What byte strings take that are not views.
fn value_bytes(column: &ArrayRef) -> usize {
    let Some(values) = column.as_binary_opt::<i32>() else {
        return 0;
    };
    let ends = values.value_offsets();
    let ends = ends.first().zip(ends.last());
    ends.map_or(0, |(first, last)| (last - first) as usize)
}
