//! Each row several times: for each grouping set, and for each of several uses.
//!
//! A sort puts the rows of a group one behind the other. With grouping sets, as those of ROLLUP, a row is of several
//! groups. And functions that want the rows of their group in different orders need them once for each order:
//!
//! ```text
//!   GROUP BY k WITH ROLLUP, two uses
//!
//!   k  text           k  text  k     set  use
//!   1  a              1  a     1     0    0
//!               -->   1  a     1     0    1
//!                     1  a     NULL  1    0
//!                     1  a     NULL  1    1
//! ```
//!
//! Copies share the columns of their rows, so they take memory only where an operator above keeps them.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::Result;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_execution::TaskContext;
use datafusion_physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion_physical_plan::aggregates::{PhysicalGroupBy, evaluate_group_by};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream,
};
use futures::{StreamExt, stream};

use crate::operator::plan_members::{makes_rows, with_input};

/// The last column, which counts the uses from 0.
pub const USE: &str = "$use";

/// See the [module](self). Behind the input's columns come those of the groups, and the use.
#[derive(Debug)]
pub struct CopiesExec {
    input: Arc<dyn ExecutionPlan>,
    groups: PhysicalGroupBy,
    uses: u32,
    properties: Arc<PlanProperties>,
}

impl CopiesExec {
    /// # Errors
    /// The groups are not of the input's columns.
    pub fn try_new(
        input: Arc<dyn ExecutionPlan>,
        groups: PhysicalGroupBy,
        uses: u32,
    ) -> Result<CopiesExec> {
        let schema = input.schema();
        let keys = groups.group_schema(&schema)?;
        let which = Arc::new(Field::new(USE, DataType::UInt32, false));
        let fields = schema.fields().iter().chain(keys.fields()).cloned();
        let fields: Vec<_> = fields.chain([which]).collect();
        let schema = Arc::new(Schema::new(fields).with_metadata(schema.metadata().clone()));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Ok(CopiesExec {
            input,
            groups,
            uses,
            properties: Arc::new(properties),
        })
    }
}

impl DisplayAs for CopiesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let sets = self.groups.groups().len();
        write!(f, "CopiesExec: sets={sets}, uses={}", self.uses)
    }
}

impl ExecutionPlan for CopiesExec {
    fn name(&self) -> &'static str {
        "CopiesExec"
    }

    makes_rows!(GreaterEqual);

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        for expr in self.groups.input_exprs() {
            recursion = recursion.visit_sibling(|| visit(&expr))?;
        }
        Ok(recursion)
    }

    with_input!(|plan, input| CopiesExec::try_new(input, plan.groups.clone(), plan.uses,)?);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let schema = self.schema();
        let (groups, uses) = (self.groups.clone(), self.uses);
        let copies = input.flat_map({
            let schema = Arc::clone(&schema);
            move |batch| {
                let copies = batch.and_then(|batch| copies_of(&batch, &groups, uses, &schema));
                stream::iter(match copies {
                    Ok(copies) => copies.into_iter().map(Ok).collect(),
                    Err(error) => vec![Err(error)],
                })
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, copies)))
    }
}

fn copies_of(
    batch: &RecordBatch,
    groups: &PhysicalGroupBy,
    uses: u32,
    schema: &Arc<Schema>,
) -> Result<Vec<RecordBatch>> {
    let sets = evaluate_group_by(groups, batch)?;
    let mut copies = Vec::with_capacity(sets.len() * uses as usize);
    for keys in sets {
        for which in 0..uses {
            let which: ArrayRef = Arc::new(UInt32Array::from(vec![which; batch.num_rows()]));
            let columns = batch.columns().iter().chain(&keys).cloned();
            let columns = columns.chain([which]).collect();
            copies.push(RecordBatch::try_new(Arc::clone(schema), columns)?);
        }
    }
    Ok(copies)
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int32Array};
    use arrow::datatypes::{Int32Type, UInt8Type, UInt32Type};
    use datafusion_common::ScalarValue;
    use datafusion_physical_expr::expressions::{Column, Literal};
    use datafusion_physical_plan::collect;

    use super::*;
    use crate::operator::values_exec::ValuesExec;

    #[test]
    fn a_row_is_of_each_grouping_set_and_for_each_use() {
        let schema = Arc::new(Schema::new(vec![Field::new("k", DataType::Int32, false)]));
        let keys: ArrayRef = Arc::new(Int32Array::from(vec![7, 8]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![keys]).expect("a batch");
        let rows = Arc::new(ValuesExec::new(schema, vec![batch]));
        let key = Arc::new(Column::new("k", 0)) as Arc<dyn PhysicalExpr>;
        let null = Arc::new(Literal::new(ScalarValue::Int32(None))) as Arc<dyn PhysicalExpr>;
        let groups = PhysicalGroupBy::new(
            vec![(key, "k".to_string())],
            vec![(null, "k".to_string())],
            vec![vec![false], vec![true]],
            true,
        );
        let copies = CopiesExec::try_new(rows, groups, 2).expect("copies");
        assert!(copies.schema().field(1).is_nullable());
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let batches = runtime
            .expect("a runtime")
            .block_on(collect(Arc::new(copies), Arc::default()))
            .expect("rows");
        let mut found = Vec::new();
        for batch in &batches {
            let columns = (
                batch.column(0).as_primitive::<Int32Type>(),
                batch.column(1).as_primitive::<Int32Type>(),
                batch.column(2).as_primitive::<UInt8Type>(),
                batch.column(3).as_primitive::<UInt32Type>(),
            );
            for row in 0..batch.num_rows() {
                let key = columns.1.iter().nth(row).flatten();
                let (set, which) = (columns.2.value(row), columns.3.value(row));
                found.push((columns.0.value(row), key, set, which));
            }
        }
        let of =
            |which, set, key: fn(i32) -> Option<i32>| [7, 8].map(|row| (row, key(row), set, which));
        let expected = [
            of(0, 0, Some),
            of(1, 0, Some),
            of(0, 1, |_| None),
            of(1, 1, |_| None),
        ];
        assert_eq!(found, expected.concat());
    }
}
