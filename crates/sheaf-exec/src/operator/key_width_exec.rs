//! Tells the memory pool how wide the keys of a sort are.
//!
//! A sort reserves twice the bytes of its rows. What it holds when it merges them are the rows and their keys, encoded
//! for comparison. Keys that are computed may be several times as wide as the rows that they are computed from: those
//! of texts under `utf8mb4_0900_ai_ci` have two bytes for each character, and texts can be put together. A sort of such
//! rows that takes what others take has no room left to merge them in, neither at its end nor in order to spill.
//!
//! ```text
//!   SortExec  ck(s)            reserves 2 x rows, merges rows + keys
//!     KeyWidthExec             some rows of some batches: keys are 2.1 x rows  ->  memory pool: sorts may have less
//!       ...
//! ```

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::utils::memory::get_record_batch_memory_size;
use datafusion_execution::TaskContext;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, SendableRecordBatchStream,
    replace_children_if_necessary,
};
use futures::StreamExt;

use crate::memory_pool::StatementPool;
use crate::operator::plan_members::{input_handed_on, with_input};

/// So many rows of a batch are looked at.
const SAMPLED_ROWS: usize = 32;
/// In every so many batches. Their keys are computed once more than they would be.
const SAMPLED_BATCHES: usize = 8;
/// What a value takes besides its bytes when it is encoded: offsets, and the last of its blocks.
const VALUE_BYTES: usize = 24;

/// Puts a [`KeyWidthExec`] below each sort of all rows that has computed keys.
pub fn watch_sort_keys(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let watched = plan.transform_up(|node| {
        let Some(sort) = node.downcast_ref::<SortExec>() else {
            return Ok(Transformed::no(node));
        };
        let keys: Vec<_> = sort
            .expr()
            .iter()
            .map(|key| Arc::clone(&key.expr))
            .collect();
        let is_plain = keys.iter().all(|key| key.is::<Column>());
        // The first rows alone are kept without their keys being merged.
        if is_plain || sort.fetch().is_some() {
            return Ok(Transformed::no(node));
        }
        let input = Arc::clone(sort.input());
        let input = KeyWidthExec { input, keys };
        let node = replace_children_if_necessary(node, vec![Arc::new(input)])?;
        Ok(Transformed::yes(node))
    })?;
    Ok(watched.data)
}

/// Hands on the batches of its input. See the module's comment.
#[derive(Debug)]
pub struct KeyWidthExec {
    input: Arc<dyn ExecutionPlan>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
}

impl DisplayAs for KeyWidthExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "KeyWidthExec")
    }
}

impl ExecutionPlan for KeyWidthExec {
    fn name(&self) -> &'static str {
        "KeyWidthExec"
    }

    input_handed_on!();

    with_input!(|plan, input| KeyWidthExec {
        input,
        keys: plan.keys.clone(),
    });

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let Some(pool) = context.session_config().get_extension::<StatementPool>() else {
            return Ok(input);
        };
        let schema = input.schema();
        let keys = self.keys.clone();
        let (mut batches, mut width) = (0usize, 0);
        let noted = input.map(move |batch| {
            let batch = batch?;
            if batch.num_rows() > 0 {
                if batches.is_multiple_of(SAMPLED_BATCHES) {
                    width = width.max(key_percent(&keys, &batch)?);
                }
                batches += 1;
                // Each time: the pool forgets it when the statement has given back all that it had.
                pool.note_sort_keys(width);
            }
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, noted)))
    }
}

/// How wide the keys of some rows of a batch, from all over it, are in percent of the rows.
fn key_percent(keys: &[Arc<dyn PhysicalExpr>], batch: &RecordBatch) -> Result<usize> {
    let rows = batch.num_rows().min(SAMPLED_ROWS);
    let row_bytes = get_record_batch_memory_size(batch).div_ceil(batch.num_rows());
    let step = batch.num_rows() / rows;
    let sampled = UInt32Array::from_iter_values((0..rows).map(|row| (row * step) as u32));
    let sample = take_record_batch(batch, &sampled)?;
    let mut bytes = 0;
    for key in keys {
        let values = key.evaluate(&sample)?.into_array(rows)?;
        bytes += VALUE_BYTES * rows + bytes_of_values(values.as_ref());
    }
    Ok(100 * bytes / (row_bytes * rows).max(1))
}

/// Without what an array shares with others.
fn bytes_of_values(array: &dyn Array) -> usize {
    let lengths =
        |lengths: &mut dyn Iterator<Item = u32>| lengths.map(|length| length as usize).sum();
    if let Some(texts) = array.as_string_view_opt() {
        return lengths(&mut texts.lengths());
    }
    if let Some(bytes) = array.as_binary_view_opt() {
        return lengths(&mut bytes.lengths());
    }
    array.get_buffer_memory_size()
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, StringViewArray};
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion_common::ScalarValue;
    use datafusion_expr::Operator;
    use datafusion_physical_expr::expressions::{binary, lit};

    use super::*;

    #[test]
    fn keys_that_are_longer_than_their_rows_are_wide() {
        let schema = Arc::new(Schema::new(vec![Field::new(
            "s",
            DataType::Utf8View,
            false,
        )]));
        let text = "a text that does not fit in its view";
        let column: ArrayRef = Arc::new(StringViewArray::from_iter_values(vec![text; 1000]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).expect("a batch");
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("s", 0));
        let twice = lit(ScalarValue::Utf8View(Some(text.repeat(2))));
        let three = binary(Arc::clone(&column), Operator::StringConcat, twice, &schema);
        let three = three.expect("an expression");
        let narrow = key_percent(&[Arc::clone(&column)], &batch).expect("bytes");
        let wide = key_percent(&[three], &batch).expect("bytes");
        assert!((50..200).contains(&narrow), "{narrow}");
        assert!((200..500).contains(&wide), "{wide}");
        // Short texts come first.
        let texts = (0..1_000).map(|row| text.repeat(row / 100));
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
        let batch = RecordBatch::try_new(schema, vec![texts]).expect("a batch");
        let all = key_percent(&[column], &batch).expect("bytes");
        assert!((50..200).contains(&all), "{all}");
    }
}
