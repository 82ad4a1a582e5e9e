//! Measures what an operator delivers and how long its reader waited for it, for EXPLAIN ANALYZE.
//!
//! A plan that is analysed gets one of these above each operator; a plan that only runs has none, so measuring costs
//! nothing without EXPLAIN ANALYZE. The clock is read when a batch is asked for and when it comes, not per row.
//!
//! The time of an operator includes that of the operators below it, and that of others which its workers ran meanwhile.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_execution::{RecordBatchStream, TaskContext};
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, SendableRecordBatchStream,
};
use futures::{Stream, StreamExt};

use crate::operator::plan_members::{input_handed_on, with_input};

/// What was measured of one operator, over all its runs and workers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measured {
    /// Until the first row came; `None` if none came.
    pub first_row: Option<Duration>,
    /// Until the last batch came. Of several workers that of the slowest.
    pub total: Duration,
    pub rows: u64,
    /// How often it was run.
    pub loops: u64,
}

/// Puts a [`MeasuringExec`] above each operator for which `wanted`.
pub fn measure(
    plan: Arc<dyn ExecutionPlan>,
    wanted: impl Fn(&Arc<dyn ExecutionPlan>) -> bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let measured = plan.transform_up(|node| {
        if !wanted(&node) {
            return Ok(Transformed::no(node));
        }
        let partitions = node.output_partitioning().partition_count();
        let totals = Arc::new(Mutex::new(vec![Measured::default(); partitions]));
        Ok(Transformed::yes(Arc::new(MeasuringExec {
            input: node,
            totals,
        })))
    })?;
    Ok(measured.data)
}

/// One for each partition.
type Totals = Arc<Mutex<Vec<Measured>>>;

fn lock(totals: &Totals) -> MutexGuard<'_, Vec<Measured>> {
    // Numbers are valid after every change.
    totals.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands on the batches of its input and keeps count of them.
#[derive(Debug)]
pub struct MeasuringExec {
    input: Arc<dyn ExecutionPlan>,
    /// Shared with the operators that take its place when a recursive query runs it again.
    totals: Totals,
}

impl MeasuringExec {
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// What was measured so far.
    pub fn measured(&self) -> Measured {
        let mut sum = Measured::default();
        for partition in lock(&self.totals).iter() {
            sum.first_row = match (sum.first_row, partition.first_row) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            sum.total = sum.total.max(partition.total);
            sum.rows += partition.rows;
            sum.loops = sum.loops.max(partition.loops);
        }
        sum
    }
}

impl DisplayAs for MeasuringExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "MeasuringExec")
    }
}

impl ExecutionPlan for MeasuringExec {
    fn name(&self) -> &'static str {
        "MeasuringExec"
    }

    input_handed_on!();

    with_input!(|plan, input| MeasuringExec {
        input,
        totals: Arc::clone(&plan.totals),
    });

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        if let Some(totals) = lock(&self.totals).get_mut(partition) {
            totals.loops += 1;
        }
        Ok(Box::pin(MeasuringStream {
            input,
            partition,
            totals: Arc::clone(&self.totals),
            asked: None,
        }))
    }
}

struct MeasuringStream {
    input: SendableRecordBatchStream,
    partition: usize,
    totals: Totals,
    /// When the batch that is being waited for was asked for.
    asked: Option<Instant>,
}

impl Stream for MeasuringStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let asked = *self.asked.get_or_insert_with(Instant::now);
        let item = ready!(self.input.poll_next_unpin(context));
        self.asked = None;
        if let Some(totals) = lock(&self.totals).get_mut(self.partition) {
            totals.total += asked.elapsed();
            if let Some(Ok(batch)) = &item
                && batch.num_rows() > 0
            {
                totals.rows += batch.num_rows() as u64;
                totals.first_row.get_or_insert(totals.total);
            }
        }
        Poll::Ready(item)
    }
}

impl RecordBatchStream for MeasuringStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
