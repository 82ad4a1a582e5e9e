//! Stands below and above an operator that computes row by row.
//!
//! Below it ([`Step::OneRow`]) it hands on the rows of its input one at a time, in their order. So all expressions are
//! computed for a row before the next one comes. Expressions with an effect on later ones want that: assignments of
//! user variables (`functions/user_variables.rs`). Above it ([`Step::AllColumns`]) it hands on everything, and keeps
//! other rules from computing less.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_execution::{RecordBatchStream, TaskContext};
use datafusion_physical_expr::{LexOrdering, OrderingRequirements};
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    SendableRecordBatchStream,
};
use futures::{Stream, StreamExt};

use crate::operator::plan_members::{input_handed_on, with_input};
use crate::row_by_row::Step;

/// See the [module](self). Its input has one stream.
#[derive(Debug)]
pub struct RowByRowExec {
    input: Arc<dyn ExecutionPlan>,
    step: Step,
    /// The order of the rows that was asked for.
    order: Option<LexOrdering>,
}

impl RowByRowExec {
    pub fn new(input: Arc<dyn ExecutionPlan>, step: Step) -> RowByRowExec {
        let order = input.output_ordering().cloned();
        RowByRowExec { input, step, order }
    }

    /// It stands above what is computed row by row.
    pub fn hands_all_on(&self) -> bool {
        self.step == Step::AllColumns
    }
}

impl DisplayAs for RowByRowExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "RowByRowExec: {:?}", self.step)
    }
}

impl ExecutionPlan for RowByRowExec {
    fn name(&self) -> &'static str {
        "RowByRowExec"
    }

    input_handed_on!();

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![match self.step {
            Step::OneRow => Distribution::SinglePartition,
            Step::AllColumns => Distribution::UnspecifiedDistribution,
        }]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.order.clone().map(OrderingRequirements::from)]
    }

    with_input!(|plan, input| RowByRowExec {
        input,
        step: plan.step,
        order: plan.order.clone(),
    });

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if self.step == Step::AllColumns {
            return self.input.execute(partition, context);
        }
        Ok(Box::pin(OneRowStream {
            input: self.input.execute(partition, context)?,
            batch: None,
            next: 0,
        }))
    }
}

struct OneRowStream {
    input: SendableRecordBatchStream,
    batch: Option<RecordBatch>,
    /// The row of the batch that comes next.
    next: usize,
}

impl Stream for OneRowStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(batch) = &self.batch
                && self.next < batch.num_rows()
            {
                let row = batch.slice(self.next, 1);
                self.next += 1;
                return Poll::Ready(Some(Ok(row)));
            }
            match ready!(self.input.poll_next_unpin(context)) {
                Some(Ok(batch)) => (self.batch, self.next) = (Some(batch), 0),
                other => return Poll::Ready(other),
            }
        }
    }
}

impl RecordBatchStream for OneRowStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
