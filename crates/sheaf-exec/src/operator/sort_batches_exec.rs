//! Has sorts of wide rows work with small batches.
//!
//! A sort that has spilled merges runs, and holds four batches of each. With little memory and ordinary batches of wide
//! rows there is room for two or three runs at a time. All rows are then read and written in many passes, each of which
//! only halves the number of runs:
//!
//! ```text
//!   batches of 2,500 rows of 330 bytes     100 runs -> 50 -> 25 -> 13 -> 7 -> 4 -> 2 -> 1
//!   batches of 400 rows                    100 runs -> 13 -> 2 -> 1
//! ```
//!
//! Batches that come to the sort are cut as well, with buffers of their own: it would cut them when it has sorted them,
//! and is charged with the strings of all of a batch for each part.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_execution::TaskContext;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, SendableRecordBatchStream,
    replace_children_if_necessary,
};
use futures::{TryStreamExt, stream};

use crate::operator::compacted_exec::detached;
use crate::operator::plan_members::{input_handed_on, with_input};

/// What a batch of a sort takes.
const BATCH_BYTES: usize = 128 << 10;
/// Fewer rows cost more time than they save passes.
const LEAST_ROWS: usize = 64;

/// Batches are not cut into fewer parts.
const LEAST_PARTS: usize = 2;

/// Puts a [`SortBatchesExec`] above each sort of all rows, if rows of so many bytes are wide for batches of so many
/// rows.
pub fn sort_in_small_batches(
    plan: Arc<dyn ExecutionPlan>,
    row_bytes: usize,
    batch_rows: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let rows = (BATCH_BYTES / row_bytes.max(1)).max(LEAST_ROWS);
    // Cutting takes a copy.
    if rows.saturating_mul(LEAST_PARTS) > batch_rows {
        return Ok(plan);
    }
    let small = plan.transform_up(|node| {
        let sort = node.downcast_ref::<SortExec>();
        // The first rows alone are neither spilled nor merged.
        match sort.is_some_and(|sort| sort.fetch().is_none()) {
            true => {
                let input = Arc::clone(node.children()[0]);
                let input = CutBatchesExec { input, rows };
                let input = replace_children_if_necessary(node, vec![Arc::new(input)])?;
                let sort = SortBatchesExec { input, rows };
                Ok(Transformed::yes(Arc::new(sort)))
            }
            false => Ok(Transformed::no(node)),
        }
    })?;
    Ok(small.data)
}

/// Hands on the batches of its input. See the module's comment.
#[derive(Debug)]
pub struct SortBatchesExec {
    /// The sort.
    input: Arc<dyn ExecutionPlan>,
    /// Of a batch.
    rows: usize,
}

impl DisplayAs for SortBatchesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "SortBatchesExec: rows={}", self.rows)
    }
}

impl ExecutionPlan for SortBatchesExec {
    fn name(&self) -> &'static str {
        "SortBatchesExec"
    }

    input_handed_on!();

    with_input!(|plan, input| SortBatchesExec {
        input,
        rows: plan.rows,
    });

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let config = context.session_config();
        let rows = self.rows.min(config.batch_size());
        let context = TaskContext::new(
            context.task_id(),
            context.session_id(),
            // Nor does it put batches together, to cut them again.
            config
                .clone()
                .with_batch_size(rows)
                .with_sort_in_place_threshold_bytes(0),
            Default::default(),
            Default::default(),
            Default::default(),
            Default::default(),
            context.runtime_env(),
        );
        self.input.execute(partition, Arc::new(context))
    }
}

/// Cuts the batches of its input. See the module's comment.
#[derive(Debug)]
pub struct CutBatchesExec {
    input: Arc<dyn ExecutionPlan>,
    /// Of a batch.
    rows: usize,
}

impl DisplayAs for CutBatchesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "CutBatchesExec: rows={}", self.rows)
    }
}

impl ExecutionPlan for CutBatchesExec {
    fn name(&self) -> &'static str {
        "CutBatchesExec"
    }

    input_handed_on!();

    with_input!(|plan, input| CutBatchesExec {
        input,
        rows: plan.rows,
    });

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let (schema, rows) = (input.schema(), self.rows);
        let cut = input.map_ok(move |batch| stream::iter(parts(&batch, rows)));
        let cut = cut.try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, cut)))
    }
}

/// The parts of a batch, which are made one by one.
fn parts(batch: &RecordBatch, rows: usize) -> impl Iterator<Item = Result<RecordBatch>> + use<> {
    let batch = batch.clone();
    let all = batch.num_rows();
    (0..all).step_by(rows.max(1)).map(move |from| {
        let part = batch.slice(from, rows.min(all - from));
        match part.num_rows() == all {
            true => Ok(part),
            false => detached(part),
        }
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, Int64Array, StringViewArray};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion_execution::config::SessionConfig;
    use datafusion_execution::memory_pool::GreedyMemoryPool;
    use datafusion_execution::runtime_env::RuntimeEnvBuilder;
    use datafusion_physical_expr::expressions::Column;
    use datafusion_physical_expr::{LexOrdering, PhysicalSortExpr};

    use super::*;
    use crate::operator::values_exec::ValuesExec;

    const ROWS: i64 = 60_000;
    const TEXT_BYTES: usize = 300;
    const MEMORY_BYTES: usize = 4 << 20;

    /// Sorts wide rows in little memory, in batches of 2,000 rows if nothing else is said. Returns the numbers that
    /// come, the rows of the first batch, and the spilled bytes.
    fn sorted(in_small_batches: bool) -> (Vec<i64>, usize, usize) {
        let schema = Arc::new(Schema::new(vec![
            Field::new("n", DataType::Int64, false),
            Field::new("s", DataType::Utf8View, false),
        ]));
        let batch = |from: i64| {
            let numbers = (from..from + 1_000).map(|n| n * 7_919 % ROWS);
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
            let texts = std::iter::repeat_n("x".repeat(TEXT_BYTES), 1_000);
            let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
            RecordBatch::try_new(Arc::clone(&schema), vec![numbers, texts]).expect("a batch")
        };
        let batches = (0..ROWS / 1_000).map(|n| batch(n * 1_000)).collect();
        let rows = ValuesExec::new(Arc::clone(&schema), batches);
        let key = PhysicalSortExpr::new_default(Arc::new(Column::new("n", 0)));
        let keys = LexOrdering::new([key]).expect("a key");
        let sort: Arc<dyn ExecutionPlan> = Arc::new(SortExec::new(keys, Arc::new(rows)));
        let plan = match in_small_batches {
            true => sort_in_small_batches(sort, TEXT_BYTES, 2_000).expect("a plan"),
            false => sort,
        };
        assert_eq!(plan.is::<SortBatchesExec>(), in_small_batches);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(GreedyMemoryPool::new(MEMORY_BYTES)))
            .build_arc()
            .expect("an environment");
        let config = SessionConfig::new()
            .with_batch_size(2_000)
            .with_sort_spill_reservation_bytes(MEMORY_BYTES / 16);
        let context = TaskContext::default()
            .with_session_config(config)
            .with_runtime(runtime);
        let stream = plan.execute(0, Arc::new(context)).expect("a stream");
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let rows = runtime.expect("a runtime").block_on(stream.try_collect());
        let rows: Vec<RecordBatch> = rows.expect("rows");
        let numbers = rows.iter().flat_map(|batch| {
            let numbers = batch.column(0).as_primitive::<Int64Type>();
            numbers.values().to_vec()
        });
        let sort = match in_small_batches {
            true => Arc::clone(plan.children()[0]),
            false => plan,
        };
        let metrics = sort.metrics().expect("metrics");
        let spilled = metrics.spilled_bytes().unwrap_or_default();
        (numbers.collect(), rows[0].num_rows(), spilled)
    }

    #[test]
    fn wide_rows_are_merged_in_few_passes() {
        let (numbers, first, spilled) = sorted(true);
        assert!(numbers.into_iter().eq(0..ROWS));
        assert_eq!(first, BATCH_BYTES / TEXT_BYTES);
        let (_, _, spilled_otherwise) = sorted(false);
        assert!(spilled < spilled_otherwise, "{spilled} {spilled_otherwise}");
    }

    #[test]
    fn sorts_of_narrow_and_of_few_rows_are_left_alone() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let sort = |fetch| -> Arc<dyn ExecutionPlan> {
            let key = PhysicalSortExpr::new_default(Arc::new(Column::new("n", 0)));
            let keys = LexOrdering::new([key]).expect("a key");
            let rows = ValuesExec::new(Arc::clone(&schema), Vec::new());
            Arc::new(SortExec::new(keys, Arc::new(rows)).with_fetch(fetch))
        };
        let small = |plan, row_bytes| sort_in_small_batches(plan, row_bytes, 2_000);
        assert!(small(sort(None), 8).expect("a plan").is::<SortExec>());
        assert!(small(sort(Some(9)), 800).expect("a plan").is::<SortExec>());
        assert!(!small(sort(None), 800).expect("a plan").is::<SortExec>());
    }
}
