//! The streams of a plan one after another, as one stream.
//!
//! The parts of a UNION ALL run side by side: with eight parts that group their rows, eight operators divide the
//! memory, and each has too little to spill. Where memory is short, a part begins when the one before it has ended, and
//! has all of the memory:
//!
//! ```text
//!   UnionExec   part 1 | part 2 | part 3       InTurnExec   part 1, then part 2, then part 3
//! ```

use std::fmt;
use std::sync::Arc;

use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, internal_err};
use datafusion_execution::TaskContext;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_plan::execution_plan::CardinalityEffect;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt, stream};

/// See the module's comment.
#[derive(Debug)]
pub struct InTurnExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl InTurnExec {
    pub fn new(input: Arc<dyn ExecutionPlan>) -> InTurnExec {
        // One stream has the order of its rows, several have none together.
        let mut equivalences = input.equivalence_properties().clone();
        if input.output_partitioning().partition_count() > 1 {
            equivalences.clear_orderings();
            equivalences.clear_per_partition_constants();
        }
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        InTurnExec {
            input,
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for InTurnExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "InTurnExec")
    }
}

impl ExecutionPlan for InTurnExec {
    fn name(&self) -> &'static str {
        "InTurnExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
            Some(input) => Ok(Arc::new(InTurnExec::new(input))),
            None => internal_err!("streams in turn without their plan"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition > 0 {
            return internal_err!("streams in turn have no partition {partition}");
        }
        let input = Arc::clone(&self.input);
        let parts = input.output_partitioning().partition_count();
        let rows = stream::iter(0..parts)
            // A part begins when it is its turn.
            .map(move |part| input.execute(part, Arc::clone(&context)))
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
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
        let plan = Arc::new(InTurnExec::new(union));
        assert_eq!(plan.properties().partitioning.partition_count(), 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime");
        let rows = runtime
            .block_on(collect(plan, Arc::default()))
            .expect("rows");
        let firsts = rows.iter().map(|batch| {
            let column = batch.column(0).as_any().downcast_ref::<Int64Array>();
            column.expect("numbers").value(0)
        });
        assert_eq!(firsts.collect::<Vec<_>>(), [10, 10, 20, 20, 30, 30]);
    }
}
