//! Where a plan can be stopped between its leaves and its root.
//!
//! Scans and keyed joins look at the session's [`CancelFlag`] themselves. A join of DataFusion may make batch after
//! batch from inputs that it has read already, so that neither a scan nor the root is reached for hours. A KILL would
//! have no effect then. Nor would dropping the stream, because a task ends only where it yields. This operator goes
//! above each join. Once per batch it checks the flag and takes part in the runtime's cooperative scheduling, which
//! costs nothing next to making the batch.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_execution::{RecordBatchStream, TaskContext};
use datafusion_physical_plan::coop::make_cooperative;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, SendableRecordBatchStream,
};
use futures::{Stream, StreamExt};
use sheaf_access::CancelFlag;

use crate::operator::plan_members::{input_handed_on, with_input};
use crate::operator::scan_exec::access_error;

/// Puts an [`InterruptibleExec`] above each operator that combines inputs.
pub fn make_interruptible(
    plan: Arc<dyn ExecutionPlan>,
    cancel: &CancelFlag,
) -> Result<Arc<dyn ExecutionPlan>> {
    let wrapped = plan.transform_up(|node| {
        if node.children().len() < 2 {
            return Ok(Transformed::no(node));
        }
        Ok(Transformed::yes(Arc::new(InterruptibleExec::new(
            node,
            cancel.clone(),
        ))))
    })?;
    Ok(wrapped.data)
}

/// Hands on the batches of its input until the flag is raised.
#[derive(Debug)]
pub struct InterruptibleExec {
    input: Arc<dyn ExecutionPlan>,
    cancel: CancelFlag,
}

impl InterruptibleExec {
    pub fn new(input: Arc<dyn ExecutionPlan>, cancel: CancelFlag) -> InterruptibleExec {
        InterruptibleExec { input, cancel }
    }
}

impl DisplayAs for InterruptibleExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "InterruptibleExec")
    }
}

impl ExecutionPlan for InterruptibleExec {
    fn name(&self) -> &'static str {
        "InterruptibleExec"
    }

    input_handed_on!();

    with_input!(|plan, input| InterruptibleExec::new(input, plan.cancel.clone()));

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        Ok(make_cooperative(Box::pin(InterruptibleStream {
            input: self.input.execute(partition, context)?,
            cancel: self.cancel.clone(),
        })))
    }
}

struct InterruptibleStream {
    input: SendableRecordBatchStream,
    cancel: CancelFlag,
}

impl Stream for InterruptibleStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Err(cancelled) = self.cancel.check() {
            return Poll::Ready(Some(Err(access_error(cancelled))));
        }
        self.input.poll_next_unpin(context)
    }
}

impl RecordBatchStream for InterruptibleStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
