//! Rows that were read already, as an input of an operator.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, internal_datafusion_err};
use datafusion_execution::TaskContext;
use datafusion_physical_expr::{EquivalenceProperties, Partitioning};
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};

use crate::operator::plan_members::leaf;

/// Rows that can be read once.
pub(crate) struct SourceExec {
    rows: Mutex<Option<SendableRecordBatchStream>>,
    properties: Arc<PlanProperties>,
}

impl SourceExec {
    pub(crate) fn new(schema: SchemaRef, rows: SendableRecordBatchStream) -> SourceExec {
        SourceExec {
            rows: Mutex::new(Some(rows)),
            ..SourceExec::without_rows(schema)
        }
    }

    /// Stands for rows where a plan is only described.
    pub(crate) fn without_rows(schema: SchemaRef) -> SourceExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        SourceExec {
            rows: Mutex::new(None),
            properties: Arc::new(properties),
        }
    }
}

impl fmt::Debug for SourceExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceExec").finish_non_exhaustive()
    }
}

impl DisplayAs for SourceExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "SourceExec")
    }
}

impl ExecutionPlan for SourceExec {
    fn name(&self) -> &'static str {
        "SourceExec"
    }

    leaf!();

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self
            .rows
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        rows.ok_or_else(|| internal_datafusion_err!("rows that were read already are read twice"))
    }
}
