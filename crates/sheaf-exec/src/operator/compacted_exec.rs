//! Batches with buffers of their own.
//!
//! An aggregate puts all groups out as slices of one batch. The strings of joined rows refer to all buffers of the
//! build side. Filters and exchanges put the strings of many batches into one buffer of up to a mebibyte. A sort that
//! keeps rows of several batches keeps these buffers, and is charged with them once for each batch. The ten best of
//! 38,000 groups took 9 MiB a slice, and failed for want of memory; a sort above an exchange spilled every second
//! batch. This operator goes between the two and copies batches that use no more than half of the bytes that they hold
//! on to.
//!
//! A sort that merges what it holds starts a task for each batch, which takes twenty kilobytes. The joined rows of long
//! texts come in batches of a hundred: 780,000 of them took 170 MB. So small batches of numbers become one here.

use std::fmt;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, MutableArrayData, RecordBatch, RecordBatchOptions,
    StringViewArray, make_array,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::utils::memory::get_record_batch_memory_size;
use datafusion_execution::TaskContext;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, SendableRecordBatchStream,
    replace_children_if_necessary,
};
use futures::{TryStreamExt, stream};

use crate::operator::plan_members::{input_handed_on, with_input};
use crate::operator::scan_exec::ScanExec;

/// How many times the bytes that a batch uses it may hold on to.
const MOST_HELD: usize = 2;

/// A batch of as many bytes goes on as it is.
const SMALL_BATCH_BYTES: usize = 32 << 10;
/// Smaller ones are put together until they have so many.
const GATHERED_BYTES: usize = 64 << 10;

/// Puts a [`CompactedExec`] below each sort, unless it reads a table: a scan's batches have buffers of their own.
/// `has_little_memory`: below merges of sorted rows as well. Rows that were sorted in memory keep the strings of all
/// rows, and a merge is charged with them for each batch; a copy takes time. A merge that fails has sent rows, so the
/// statement cannot begin again.
pub fn detach_below_sorts(
    plan: Arc<dyn ExecutionPlan>,
    has_little_memory: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let detached = plan.transform_up(|node| {
        let input = match node.downcast_ref::<SortExec>() {
            Some(sort) => Some(sort.input()),
            None => {
                let merge = node.downcast_ref::<SortPreservingMergeExec>();
                let merge = merge.filter(|_| has_little_memory);
                merge.map(SortPreservingMergeExec::input)
            }
        };
        match input {
            Some(input) if puts_out_slices(input) => {
                let input = CompactedExec::new(Arc::clone(input));
                let node = replace_children_if_necessary(node, vec![Arc::new(input)])?;
                Ok(Transformed::yes(node))
            }
            _ => Ok(Transformed::no(node)),
        }
    })?;
    Ok(detached.data)
}

/// Whether the plan's batches are parts of larger buffers.
fn puts_out_slices(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.downcast_ref::<ProjectionExec>() {
        Some(projection) => puts_out_slices(projection.input()),
        None => !plan.is::<ScanExec>(),
    }
}

/// Hands on the batches of its input, those that are small parts of large buffers as copies, and small ones together.
#[derive(Debug)]
pub struct CompactedExec {
    input: Arc<dyn ExecutionPlan>,
}

impl CompactedExec {
    pub fn new(input: Arc<dyn ExecutionPlan>) -> CompactedExec {
        CompactedExec { input }
    }
}

impl DisplayAs for CompactedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "CompactedExec")
    }
}

impl ExecutionPlan for CompactedExec {
    fn name(&self) -> &'static str {
        "CompactedExec"
    }

    input_handed_on!();

    with_input!(|_, input| CompactedExec::new(input));

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        Ok(compacted(self.input.execute(partition, context)?))
    }
}

/// See [`CompactedExec`].
pub(crate) fn compacted(input: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let schema: SchemaRef = input.schema();
    let rows = Compacted {
        input,
        waiting: Vec::new(),
        waiting_bytes: 0,
        next: None,
        has_numbers_alone: are_numbers(&schema),
    };
    let rows = stream::try_unfold(rows, |mut rows| async move {
        let batch = rows.next().await?;
        Ok(batch.map(|batch| (batch, rows)))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

fn are_numbers(schema: &SchemaRef) -> bool {
    let mut fields = schema.fields().iter();
    fields.all(|field| field.data_type().is_primitive())
}

struct Compacted {
    input: SendableRecordBatchStream,
    /// Small batches.
    waiting: Vec<RecordBatch>,
    waiting_bytes: usize,
    /// One that comes behind those.
    next: Option<RecordBatch>,
    /// Texts stay in their batches. A merge of sorted files is charged with all texts of a batch for each part of it.
    has_numbers_alone: bool,
}

impl Compacted {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(batch) = self.next.take() {
            return Ok(Some(batch));
        }
        while let Some(batch) = self.input.try_next().await? {
            let batch = detached(batch)?;
            let bytes = get_record_batch_memory_size(&batch);
            let is_small = bytes < SMALL_BATCH_BYTES && self.has_numbers_alone;
            if !is_small && self.waiting.is_empty() {
                return Ok(Some(batch));
            }
            if !is_small {
                self.next = Some(batch);
                return self.gathered().map(Some);
            }
            self.waiting_bytes += bytes;
            self.waiting.push(batch);
            if self.waiting_bytes >= GATHERED_BYTES {
                return self.gathered().map(Some);
            }
        }
        match self.waiting.is_empty() {
            true => Ok(None),
            false => self.gathered().map(Some),
        }
    }

    fn gathered(&mut self) -> Result<RecordBatch> {
        self.waiting_bytes = 0;
        let waiting = std::mem::take(&mut self.waiting);
        match waiting.as_slice() {
            [batch] => Ok(batch.clone()),
            batches => Ok(concat_batches(&self.input.schema(), batches)?),
        }
    }
}

/// The batch, or a copy if it is a small part of its buffers.
pub fn detached(batch: RecordBatch) -> Result<RecordBatch> {
    let mut used = 0;
    for column in batch.columns() {
        used += used_bytes(column)?;
    }
    if get_record_batch_memory_size(&batch) <= MOST_HELD * used {
        return Ok(batch);
    }
    let columns: Result<_> = batch.columns().iter().map(copied).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        batch.schema(),
        columns?,
        &options,
    )?)
}

/// The array, or a copy if it is a small part of its buffers.
pub(crate) fn detached_array(array: ArrayRef) -> Result<ArrayRef> {
    match array.get_array_memory_size() <= MOST_HELD * used_bytes(&array)? {
        true => Ok(array),
        false => copied(&array),
    }
}

/// Strings in one buffer of their own; other arrays as they are.
pub(crate) fn gathered(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(StringViewArray::gc(array.as_string_view())),
        DataType::BinaryView => Arc::new(BinaryViewArray::gc(array.as_binary_view())),
        _ => array,
    }
}

/// Bytes of buffers that the values of an array take.
fn used_bytes(array: &ArrayRef) -> Result<usize> {
    let strings = match array.data_type() {
        DataType::Utf8View => array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => array.as_binary_view().total_buffer_bytes_used(),
        _ => 0,
    };
    Ok(strings + array.to_data().get_slice_memory_size()?)
}

fn copied(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Utf8View | DataType::BinaryView => gathered(Arc::clone(array)),
        _ => {
            let data = array.to_data();
            let mut copy = MutableArrayData::new(vec![&data], false, data.len());
            copy.try_extend(0, 0, data.len())?;
            make_array(copy.freeze())
        }
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{Decimal128Array, Int64Array};
    use arrow::datatypes::{Field, Schema};

    use super::*;

    fn groups(rows: usize) -> RecordBatch {
        let schema = Arc::new(Schema::new(vec![
            Field::new("number", DataType::Int64, true),
            Field::new("amount", DataType::Decimal128(12, 2), false),
            Field::new("text", DataType::Utf8View, true),
        ]));
        let numbers = (0..rows as i64).map(|row| (row % 3 > 0).then_some(row));
        let amounts = Decimal128Array::from_iter_values((0..rows as i128).map(|row| row * 100));
        let texts = (0..rows).map(|row| {
            (row % 5 > 0).then(|| format!("a text that does not fit in its view, {row}"))
        });
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter(numbers)),
            Arc::new(amounts.with_precision_and_scale(12, 2).unwrap()),
            Arc::new(StringViewArray::from_iter(texts)),
        ];
        RecordBatch::try_new(schema, columns).unwrap()
    }

    #[test]
    fn a_slice_of_many_rows_becomes_a_batch_of_few() {
        let all = groups(10_000);
        let slice = all.slice(100, 50);
        let copy = detached(slice.clone()).unwrap();
        assert_eq!(copy, slice);
        let bytes = get_record_batch_memory_size(&copy);
        assert!(bytes * 50 < get_record_batch_memory_size(&slice), "{bytes}");
    }

    fn collected(input: SendableRecordBatchStream) -> Vec<RecordBatch> {
        let rows = compacted(input).try_collect::<Vec<_>>();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(rows).unwrap()
    }

    fn numbers(rows: usize) -> RecordBatch {
        let numbers = |step: i64| {
            Arc::new(Int64Array::from_iter_values(
                (0..rows as i64).map(|row| row * step),
            ))
        };
        let columns = [("a", numbers(1) as ArrayRef), ("b", numbers(7) as ArrayRef)];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    /// The rows of the batches that come of batches with so many rows.
    fn compacted_rows(all: &RecordBatch, given: &[usize]) -> Vec<usize> {
        let mut first = 0;
        let batches = given.iter().map(|rows| {
            first += rows;
            Ok(all.slice(first - rows, *rows))
        });
        let batches: Vec<Result<RecordBatch>> = batches.collect();
        let input = RecordBatchStreamAdapter::new(all.schema(), stream::iter(batches));
        let rows = collected(Box::pin(input));
        let total: usize = given.iter().sum();
        let whole = concat_batches(&all.schema(), &rows).unwrap();
        assert_eq!(whole, all.slice(0, total));
        rows.iter().map(RecordBatch::num_rows).collect()
    }

    #[test]
    fn small_batches_of_numbers_become_one_and_keep_their_order() {
        let all = numbers(200_000);
        let many = compacted_rows(&all, &[100; 1_000]);
        assert!(many.len() < 50, "{many:?}");
        // A large one waits for the small ones before it.
        assert_eq!(
            compacted_rows(&all, &[100, 100, 20_000, 7]),
            [200, 20_000, 7]
        );
        assert_eq!(compacted_rows(&all, &[20_000, 20_000]), [20_000, 20_000]);
        assert_eq!(compacted_rows(&all, &[3]), [3]);
        assert!(compacted_rows(&all, &[]).is_empty());
        // Those with texts stay as they are.
        assert_eq!(compacted_rows(&groups(100), &[16, 17, 3]), [16, 17, 3]);
    }

    #[test]
    fn a_batch_that_uses_its_buffers_stays_as_it_is() {
        let all = groups(1_000);
        let same = detached(all.clone()).unwrap();
        let values = |batch: &RecordBatch| batch.column(0).to_data().buffers()[0].as_ptr();
        assert_eq!(values(&same), values(&all));
        assert_eq!(detached(all.slice(0, 0)).unwrap().num_rows(), 0);
    }
}
