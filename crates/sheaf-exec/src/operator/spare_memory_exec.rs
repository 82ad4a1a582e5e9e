//! Keeps memory back from a sort for the aggregate above it.
//!
//! A sort that has spilled merges as many of its files at once as there is memory for, and with long rows that is all
//! of it. What is above the sort has nothing yet when the merge begins, and asks for memory when the rows come. So a
//! part of the statement's memory is reserved until then: the merge takes fewer files, in more passes.
//!
//! ```text
//!   AggregateExec  by t        a group, and a batch of groups: in memory
//!     SpareMemoryExec          reserves a part until the first batch has come
//!       SortExec  t            spills, merges within what is left
//! ```

use std::fmt;
use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryLimit};
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, SendableRecordBatchStream,
    replace_children_if_necessary,
};
use futures::{StreamExt, stream};

use crate::memory_pool::without_waiting;
use crate::operator::bounded_projection::BoundedProjectionExec;
use crate::operator::interruptible_exec::InterruptibleExec;
use crate::operator::plan_members::{input_handed_on, with_input};

/// What is kept back: this part of the memory that a statement may have.
const SPARE_SHARE: usize = 3;

/// Puts a [`SpareMemoryExec`] above each sort of all rows whose rows an aggregate takes.
pub fn spare_memory(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let spared = plan.transform_up(|node| match node.is::<AggregateExec>() {
        true => {
            let input = above_sort(node.children()[0])?;
            let node = replace_children_if_necessary(node, vec![input])?;
            Ok(Transformed::yes(node))
        }
        false => Ok(Transformed::no(node)),
    })?;
    Ok(spared.data)
}

/// What an aggregate reads, with the sort among it below a [`SpareMemoryExec`].
fn above_sort(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        let input = Arc::clone(plan);
        return Ok(match sort.fetch() {
            None => Arc::new(SpareMemoryExec { input }),
            Some(_) => input,
        });
    }
    let hands_on = plan.is::<ProjectionExec>()
        || plan.is::<BoundedProjectionExec>()
        || plan.is::<InterruptibleExec>();
    match hands_on {
        true => {
            let input = above_sort(plan.children()[0])?;
            replace_children_if_necessary(Arc::clone(plan), vec![input])
        }
        false => Ok(Arc::clone(plan)),
    }
}

/// Hands on the batches of its input. See the module's comment.
#[derive(Debug)]
pub struct SpareMemoryExec {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for SpareMemoryExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "SpareMemoryExec")
    }
}

impl ExecutionPlan for SpareMemoryExec {
    fn name(&self) -> &'static str {
        "SpareMemoryExec"
    }

    input_handed_on!();

    with_input!(|_, input| SpareMemoryExec { input });

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let schema = input.schema();
        let pool = Arc::clone(context.memory_pool());
        let batches = stream::once(async move {
            let spare = MemoryConsumer::new("SpareMemory").register(&pool);
            if let MemoryLimit::Finite(bytes) = pool.memory_limit() {
                // Without it, the merge takes what there is.
                let _ = without_waiting(|| spare.try_grow(bytes / SPARE_SHARE));
            }
            let mut spare = Some(spare);
            input.inspect(move |_| drop(spare.take()))
        });
        let batches = batches.flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
