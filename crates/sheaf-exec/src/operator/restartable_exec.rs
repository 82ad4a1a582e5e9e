//! One side of a join of all pairs, which DataFusion may ask for its rows a second time.
//!
//! NestedLoopJoinExec collects its left side. If that does not fit in the memory, it runs the left side again, into a
//! file. Then it runs the right side once for each part of the file that fits:
//!
//! ```text
//!   first run      rows, kept in memory ... no more memory: dropped
//!   second run     rows -> file -> a part in memory x right side, the next part x right side, ...
//! ```
//!
//! Two things of this need help. Many operators run once and panic on the second run, so the second run gets a copy of
//! them. And each stream of the right side goes through the file by itself: what a left row has met in one stream, the
//! others do not know. With several streams, a LEFT JOIN delivered a row without a partner for each of them. So such a
//! join either has a right side of one stream, or no second run: then it is out of memory, and the statement is
//! planned again.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion_common::{DataFusionError, Result};
use datafusion_execution::TaskContext;
use datafusion_physical_expr::Distribution;
use datafusion_physical_plan::execution_plan::reset_plan_states;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties, SendableRecordBatchStream,
};

use crate::operator::plan_members::{no_expressions, row_for_row, with_input};

/// What a second run of an input does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecondRun {
    /// It runs a copy of the operators.
    Copy,
    /// It fails as the first one did, for want of memory.
    Refused,
}

/// Hands on the rows of its input as one stream, in their order, also a second time.
#[derive(Debug)]
pub struct RestartableExec {
    input: Arc<dyn ExecutionPlan>,
    second_run: SecondRun,
    has_run: AtomicBool,
    properties: Arc<PlanProperties>,
}

impl RestartableExec {
    pub fn new(input: Arc<dyn ExecutionPlan>, second_run: SecondRun) -> RestartableExec {
        let properties = PlanProperties::new(
            input.equivalence_properties().clone(),
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        RestartableExec {
            input,
            second_run,
            has_run: AtomicBool::new(false),
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for RestartableExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "RestartableExec: {:?}", self.second_run)
    }
}

impl ExecutionPlan for RestartableExec {
    fn name(&self) -> &'static str {
        "RestartableExec"
    }

    row_for_row!();
    no_expressions!();

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    with_input!(|plan, input| RestartableExec::new(input, plan.second_run));

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let input = Arc::clone(&self.input);
        Ok(Arc::new(RestartableExec::new(input, self.second_run)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let is_first = !self.has_run.swap(true, Ordering::Relaxed);
        match self.second_run {
            _ if is_first => self.input.execute(partition, context),
            SecondRun::Copy => {
                reset_plan_states(Arc::clone(&self.input))?.execute(partition, context)
            }
            // Begins with the name of a memory consumer, see `memory_consumers.rs`.
            SecondRun::Refused => Err(DataFusionError::ResourcesExhausted(
                "NestedLoopJoinLoad holds its whole left side".to_owned(),
            )),
        }
    }
}
