//! Gathers the streams of its input one behind the other.
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

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Result, internal_err};
use datafusion_execution::{RecordBatchStream, TaskContext};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::execution_plan::CardinalityEffect;
use datafusion_physical_plan::limit::GlobalLimitExec;
use datafusion_physical_plan::stream::RecordBatchReceiverStream;
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    Partitioning, PlanProperties, SendableRecordBatchStream,
};
use futures::{Stream, StreamExt};

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
        let ordered: Arc<dyn ExecutionPlan> =
            Arc::new(OrderedGatherExec::new(Arc::clone(gather.input())));
        Ok(Transformed::yes(match gather.fetch() {
            Some(fetch) => Arc::new(GlobalLimitExec::new(ordered, 0, Some(fetch))),
            None => ordered,
        }))
    })?;
    let plan = gathered.data;
    Ok(match is_union(&plan) {
        true => Arc::new(OrderedGatherExec::new(plan)),
        false => plan,
    })
}

/// Whether these are the streams of a union, perhaps after something was done to the rows of each.
fn is_union(plan: &Arc<dyn ExecutionPlan>) -> bool {
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

/// See the module's comment.
#[derive(Debug)]
pub struct OrderedGatherExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl OrderedGatherExec {
    pub fn new(input: Arc<dyn ExecutionPlan>) -> OrderedGatherExec {
        let of_input = input.properties();
        let mut equivalences = of_input.equivalence_properties().clone();
        equivalences.clear_orderings();
        equivalences.clear_per_partition_constants();
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            of_input.emission_type,
            of_input.boundedness,
        );
        let properties = properties
            .with_scheduling_type(of_input.scheduling_type)
            .with_evaluation_type(of_input.evaluation_type);
        OrderedGatherExec {
            input,
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for OrderedGatherExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "OrderedGatherExec")
    }
}

impl ExecutionPlan for OrderedGatherExec {
    fn name(&self) -> &'static str {
        "OrderedGatherExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::UnspecifiedDistribution]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) => Ok(Arc::new(OrderedGatherExec::new(input))),
            None => internal_err!("a gather without its input"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("a gather has one stream, not {partition}");
        }
        let mut stream = OrderedGather {
            input: Arc::clone(&self.input),
            running: VecDeque::new(),
            next: 0,
            context,
        };
        let workers = stream.context.session_config().target_partitions();
        for _ in 0..workers.max(1) {
            stream.start_next();
        }
        Ok(Box::pin(stream))
    }
}

struct OrderedGather {
    input: Arc<dyn ExecutionPlan>,
    /// In their order; rows of the first one are handed on.
    running: VecDeque<SendableRecordBatchStream>,
    /// The first that does not run yet.
    next: usize,
    context: Arc<TaskContext>,
}

impl OrderedGather {
    fn start_next(&mut self) {
        if self.next == self.input.output_partitioning().partition_count() {
            return;
        }
        let mut builder = RecordBatchReceiverStream::builder(self.input.schema(), BATCHES_AHEAD);
        let (input, context) = (Arc::clone(&self.input), Arc::clone(&self.context));
        let (partition, sender) = (self.next, builder.tx());
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
        self.running.push_back(builder.build());
        self.next += 1;
    }
}

impl Stream for OrderedGather {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while let Some(first) = self.running.front_mut() {
            if let Some(batch) = ready!(first.poll_next_unpin(context)) {
                return Poll::Ready(Some(batch));
            }
            self.running.pop_front();
            self.start_next();
        }
        Poll::Ready(None)
    }
}

impl RecordBatchStream for OrderedGather {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
