//! Rows that are known when the plan is built: VALUES, INFORMATION_SCHEMA, the rows of a const table.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_execution::TaskContext;
use datafusion_physical_expr::EquivalenceProperties;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion_physical_plan::memory::MemoryStream;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    SendableRecordBatchStream,
};

use crate::operator::plan_members::leaf;

/// A leaf that returns given batches, in one partition.
#[derive(Debug)]
pub struct ValuesExec {
    batches: Vec<RecordBatch>,
    properties: Arc<PlanProperties>,
}

impl ValuesExec {
    /// All `batches` must have `schema`.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> ValuesExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        ValuesExec {
            batches,
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for ValuesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let rows: usize = self.batches.iter().map(RecordBatch::num_rows).sum();
        write!(f, "ValuesExec: rows={rows}")
    }
}

impl ExecutionPlan for ValuesExec {
    fn name(&self) -> &'static str {
        "ValuesExec"
    }

    leaf!();

    fn execute(&self, _partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Ok(Box::pin(MemoryStream::try_new(
            self.batches.clone(),
            self.schema(),
            None,
        )?))
    }
}
