//! The rows of one plan or, if it has none, those of another.
//!
//! Of no rows, ROLLUP makes the row of the grand total. A plan whose rows are grouped as if each grouping set had rows
//! of its own makes none, so the other plan is ROLLUP over no rows.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion_common::{Result, internal_err};
use datafusion_execution::TaskContext;
use datafusion_physical_expr::EquivalenceProperties;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PlanProperties,
    SendableRecordBatchStream,
};
use futures::{StreamExt, stream};

use crate::operator::plan_members::no_expressions;

/// See the [module](self). Both have the same columns, in one stream.
#[derive(Debug)]
pub struct OtherwiseExec {
    first: Arc<dyn ExecutionPlan>,
    otherwise: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl OtherwiseExec {
    pub fn new(first: Arc<dyn ExecutionPlan>, otherwise: Arc<dyn ExecutionPlan>) -> OtherwiseExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(first.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        OtherwiseExec {
            first,
            otherwise,
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for OtherwiseExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "OtherwiseExec")
    }
}

impl ExecutionPlan for OtherwiseExec {
    fn name(&self) -> &'static str {
        "OtherwiseExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.first, &self.otherwise]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition; 2]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; 2]
    }

    no_expressions!();

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 2]>::try_from(children) {
            Ok([first, otherwise]) => Ok(Arc::new(OtherwiseExec::new(first, otherwise))),
            Err(_) => internal_err!("one plan or another without one of them"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let first = self.first.execute(partition, Arc::clone(&context))?;
        let schema = self.schema();
        let state = (first, Some(Arc::clone(&self.otherwise)));
        let rows = stream::try_unfold(state, {
            let schema = Arc::clone(&schema);
            move |(mut rows, mut otherwise)| {
                let (context, schema) = (Arc::clone(&context), Arc::clone(&schema));
                async move {
                    loop {
                        if let Some(batch) = rows.next().await.transpose()? {
                            if batch.num_rows() > 0 {
                                otherwise = None;
                            }
                            let batch = RecordBatch::try_new(schema, batch.columns().to_vec())?;
                            return Ok(Some((batch, (rows, otherwise))));
                        }
                        let Some(plan) = otherwise.take() else {
                            return Ok(None);
                        };
                        rows = plan.execute(partition, Arc::clone(&context))?;
                    }
                }
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int32Array};
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion_physical_plan::collect;

    use super::*;
    use crate::operator::values_exec::ValuesExec;

    #[test]
    fn the_other_rows_come_if_there_are_none() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, false)]));
        let plan = |batches: &[&[i32]]| {
            let batches = batches.iter().map(|numbers| {
                let numbers: ArrayRef = Arc::new(Int32Array::from(numbers.to_vec()));
                RecordBatch::try_new(Arc::clone(&schema), vec![numbers]).expect("a batch")
            });
            Arc::new(ValuesExec::new(Arc::clone(&schema), batches.collect()))
                as Arc<dyn ExecutionPlan>
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime");
        let others: &[&[i32]] = &[&[7, 8]];
        for (first, expected) in [
            (&[&[1, 2][..], &[], &[3]][..], 3),
            (&[&[][..], &[4]], 1),
            (&[&[][..], &[]], 2),
            (&[], 2),
        ] {
            let plan = Arc::new(OtherwiseExec::new(plan(first), plan(others)));
            let found = runtime.block_on(collect(plan, Arc::default()));
            let rows = found
                .expect("rows")
                .iter()
                .map(RecordBatch::num_rows)
                .sum::<usize>();
            assert_eq!(rows, expected, "{first:?}");
        }
    }
}
