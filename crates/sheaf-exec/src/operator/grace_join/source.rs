//! An input of a join that runs in the memory of the statement, while the join runs in the memory that was granted for
//! it.

use std::fmt;
use std::sync::Arc;

use datafusion_common::Result;
use datafusion_execution::TaskContext;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, SendableRecordBatchStream,
};
use futures::{StreamExt, stream};

use super::build::Grant;
use crate::operator::plan_members::{input_handed_on, with_input};

/// Runs its input in another context than the operator above it.
pub(super) struct InContextExec {
    input: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    grant: Arc<Grant>,
}

impl InContextExec {
    /// The join above has made its hash table when it asks for the first row: what was granted beyond that is given
    /// back.
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        grant: &Arc<Grant>,
    ) -> InContextExec {
        InContextExec {
            input,
            context,
            grant: Arc::clone(grant),
        }
    }
}

impl fmt::Debug for InContextExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InContextExec")
            .field("input", &self.input)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for InContextExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "InContextExec")
    }
}

impl ExecutionPlan for InContextExec {
    fn name(&self) -> &'static str {
        "InContextExec"
    }

    input_handed_on!();

    with_input!(|plan, input| InContextExec {
        input,
        context: Arc::clone(&plan.context),
        grant: Arc::clone(&plan.grant),
    });

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, Arc::clone(&self.context))?;
        let grant = Arc::clone(&self.grant);
        let settled = stream::once(async move {
            grant.settle();
            None
        });
        let rows = settled.chain(rows.map(Some));
        let rows = rows.filter_map(|row| async move { row });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.input.schema(),
            rows.boxed(),
        )))
    }
}
