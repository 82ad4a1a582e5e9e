//! Gathers the streams of its input into one, one behind the other.
//!
//! SQL promises no order without ORDER BY. But MySQL gives the rows of a UNION ALL part by part, and queries are
//! written for that: a row of headers before the rows, a default behind them with LIMIT 1. DataFusion's
//! CoalescePartitionsExec hands on what comes first.
//!
//! ```text
//!   streams   1 | rows ....      handed on first
//!             2 | rows           runs meanwhile, as far as a few batches
//!             3 |                begins when 1 has ended
//! ```
//!
//! As a rule [as many run as there are workers](Running::Workers). With eight parts that group their rows, eight
//! operators divide the memory then, and each has too little to spill. Where memory is short, a part begins when the
//! one before it has ended, and has all of the memory ([`Running::One`]).

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Result, internal_err};
use datafusion_execution::{RecordBatchStream, TaskContext};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::limit::GlobalLimitExec;
use datafusion_physical_plan::stream::RecordBatchReceiverStream;
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties, SendableRecordBatchStream,
};
use futures::{Stream, StreamExt};

use crate::operator::node_id::in_place_of;
use crate::operator::plan_members::{no_expressions, row_for_row, with_input};

/// Batches that a stream may be ahead.
const BATCHES_AHEAD: usize = 2;

/// Gathers the parts of unions in their order, where nobody has asked for another one.
pub fn gather_unions_in_order(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let gathered = plan.transform_up(|node| {
        let Some(gather) = node.downcast_ref::<CoalescePartitionsExec>() else {
            return Ok(Transformed::no(node));
        };
        if !is_union(gather.input()) {
            return Ok(Transformed::no(node));
        }
        let ordered: Arc<dyn ExecutionPlan> = Arc::new(GatherInOrderExec::new(
            Arc::clone(gather.input()),
            Running::Workers,
        ));
        Ok(Transformed::yes(match gather.fetch() {
            Some(fetch) => {
                let limit = GlobalLimitExec::new(ordered, 0, Some(fetch));
                in_place_of(&node, Arc::new(limit))
            }
            None => ordered,
        }))
    })?;
    let plan = gathered.data;
    Ok(match is_union(&plan) {
        true => Arc::new(GatherInOrderExec::new(plan, Running::Workers)),
        false => plan,
    })
}

/// Whether these are the streams of a union, perhaps after something was done to the rows of each.
pub fn is_union(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let partitions = plan.output_partitioning().partition_count();
    if plan.is::<UnionExec>() {
        return partitions > 1;
    }
    match (
        plan.children().as_slice(),
        plan.maintains_input_order().as_slice(),
    ) {
        ([child], [true]) => {
            child.output_partitioning().partition_count() == partitions && is_union(child)
        }
        _ => false,
    }
}

/// How many streams run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Running {
    One,
    Workers,
}

/// See the module's comment.
#[derive(Debug)]
pub struct GatherInOrderExec {
    input: Arc<dyn ExecutionPlan>,
    running: Running,
    properties: Arc<PlanProperties>,
}

impl GatherInOrderExec {
    pub fn new(input: Arc<dyn ExecutionPlan>, running: Running) -> GatherInOrderExec {
        let of_input = input.properties();
        let mut equivalences = of_input.equivalence_properties().clone();
        // One stream has the order of its rows, several have none together.
        if input.output_partitioning().partition_count() > 1 {
            equivalences.clear_orderings();
            equivalences.clear_per_partition_constants();
        }
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            of_input.emission_type,
            of_input.boundedness,
        );
        let properties = properties
            .with_scheduling_type(of_input.scheduling_type)
            .with_evaluation_type(of_input.evaluation_type);
        GatherInOrderExec {
            input,
            running,
            properties: Arc::new(properties),
        }
    }

    /// Whether a stream begins when the one before it has ended.
    pub fn runs_one(&self) -> bool {
        self.running == Running::One
    }
}

impl DisplayAs for GatherInOrderExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "GatherInOrderExec: running={:?}", self.running)
    }
}

impl ExecutionPlan for GatherInOrderExec {
    fn name(&self) -> &'static str {
        "GatherInOrderExec"
    }

    row_for_row!();
    no_expressions!();

    with_input!(|plan, input| GatherInOrderExec::new(input, plan.running));

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("a gather has one stream, not {partition}");
        }
        let mut stream = GatherInOrder {
            input: Arc::clone(&self.input),
            running: self.running,
            streams: VecDeque::new(),
            next: 0,
            context,
        };
        if self.running == Running::Workers {
            let workers = stream.context.session_config().target_partitions();
            for _ in 0..workers.max(1) {
                stream.start_next()?;
            }
        }
        Ok(Box::pin(stream))
    }
}

struct GatherInOrder {
    input: Arc<dyn ExecutionPlan>,
    running: Running,
    /// Those that run, in their order; rows of the first one are handed on.
    streams: VecDeque<SendableRecordBatchStream>,
    /// The first that does not run yet.
    next: usize,
    context: Arc<TaskContext>,
}

impl GatherInOrder {
    /// Starts a stream, if one is left.
    fn start_next(&mut self) -> Result<()> {
        if self.next == self.input.output_partitioning().partition_count() {
            return Ok(());
        }
        let stream = match self.running {
            Running::One => self.input.execute(self.next, Arc::clone(&self.context))?,
            Running::Workers => self.ahead(self.next),
        };
        self.streams.push_back(stream);
        self.next += 1;
        Ok(())
    }

    /// A stream that a worker runs, as far as a few batches ahead.
    fn ahead(&self, partition: usize) -> SendableRecordBatchStream {
        let mut builder = RecordBatchReceiverStream::builder(self.input.schema(), BATCHES_AHEAD);
        let (input, context) = (Arc::clone(&self.input), Arc::clone(&self.context));
        let sender = builder.tx();
        builder.spawn(async move {
            let mut stream = input.execute(partition, context)?;
            while let Some(batch) = stream.next().await {
                let is_last = batch.is_err();
                // Nobody wants more if the other end is gone.
                if sender.send(batch).await.is_err() || is_last {
                    break;
                }
            }
            Ok(())
        });
        builder.build()
    }
}

impl Stream for GatherInOrder {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if self.streams.is_empty()
                && let Err(error) = self.start_next()
            {
                return Poll::Ready(Some(Err(error)));
            }
            let Some(first) = self.streams.front_mut() else {
                return Poll::Ready(None);
            };
            if let Some(batch) = ready!(first.poll_next_unpin(context)) {
                return Poll::Ready(Some(batch));
            }
            // It gives back what it holds before another one begins.
            self.streams.pop_front();
            if self.running == Running::Workers
                && let Err(error) = self.start_next()
            {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl RecordBatchStream for GatherInOrder {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion_physical_plan::collect;
    use datafusion_physical_plan::union::UnionExec;

    use super::*;
    use crate::operator::values_exec::ValuesExec;

    #[test]
    fn parts_come_in_their_order() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let part = |number: i64| -> Arc<dyn ExecutionPlan> {
            let column: ArrayRef = Arc::new(Int64Array::from(vec![number, number + 1]));
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).expect("a batch");
            let batches = vec![batch.clone(), batch];
            Arc::new(ValuesExec::new(Arc::clone(&schema), batches))
        };
        let union = UnionExec::try_new(vec![part(10), part(20), part(30)]).expect("a union");
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime");
        for running in [Running::One, Running::Workers] {
            let plan = GatherInOrderExec::new(Arc::clone(&union), running);
            assert_eq!(plan.properties().partitioning.partition_count(), 1);
            let rows = runtime.block_on(collect(Arc::new(plan), Arc::default()));
            let rows = rows.expect("rows");
            let firsts = rows.iter().map(|batch| {
                let column = batch.column(0).as_any().downcast_ref::<Int64Array>();
                column.expect("numbers").value(0)
            });
            let firsts: Vec<i64> = firsts.collect();
            assert_eq!(firsts, [10, 10, 20, 20, 30, 30], "{running:?}");
        }
    }
}
