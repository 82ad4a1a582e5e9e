//! Says of each row whether it is the first of those with equal keys.
//!
//! The rows come in the order of the keys, so equal ones stand one behind the other. An aggregate of distinct values
//! that takes its argument of the first ones alone needs no set of values: whatever is kept for that was sorted, and
//! sorts go to files.
//!
//! ```text
//!   k  text            k  text  first
//!   1  a               1  a     true
//!   1  a       -->     1  a     false
//!   1  b               1  b     true
//!   2  b               2  b     true
//! ```

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryArray, BinaryBuilder, BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion_common::{Result, internal_err};
use datafusion_execution::TaskContext;
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::{
    EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    PlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;

use crate::operator::plan_members::{no_expressions, row_for_row, with_input};
use crate::operator::wrapped_expr::{as_inner, same_as_inner};
use crate::short_key::short_key;

/// The new column, behind those of the input.
const FIRST: &str = "$first";

/// Long keys are made for so many rows at a time, and only what is short of them stays.
const KEYS_AT_A_TIME: usize = 256;

/// See the [module](self). Its input has one stream.
#[derive(Debug)]
pub struct FirstOfEqualExec {
    input: Arc<dyn ExecutionPlan>,
    keys: LexOrdering,
    properties: Arc<PlanProperties>,
}

impl FirstOfEqualExec {
    pub fn new(input: Arc<dyn ExecutionPlan>, keys: LexOrdering) -> FirstOfEqualExec {
        let schema = input.schema();
        let first = Arc::new(Field::new(FIRST, DataType::Boolean, false));
        let fields = schema.fields().iter().cloned().chain([first]);
        let schema = Schema::new(fields.collect::<Vec<_>>()).with_metadata(schema.metadata.clone());
        let orders = input.equivalence_properties().oeq_class().iter().cloned();
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(Arc::new(schema), orders),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        FirstOfEqualExec {
            input,
            keys,
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for FirstOfEqualExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "FirstOfEqualExec: {}", self.keys)
    }
}

impl ExecutionPlan for FirstOfEqualExec {
    fn name(&self) -> &'static str {
        "FirstOfEqualExec"
    }

    row_for_row!();
    no_expressions!();

    /// It does, as its properties say. But a rule that hears of it here moves a sort above it below it, and the order
    /// that it asks for itself comes last.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![Some(OrderingRequirements::from(self.keys.clone()))]
    }

    with_input!(|plan, input| FirstOfEqualExec::new(input, plan.keys.clone()));

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let schema = self.schema();
        let types = self.keys.iter().map(|key| {
            let ty = key.expr.data_type(&self.input.schema())?;
            Ok(SortField::new(ty))
        });
        let mut marker = Marker {
            keys: self.keys.iter().map(|key| Arc::clone(&key.expr)).collect(),
            converter: RowConverter::new(types.collect::<Result<_>>()?)?,
            last: None,
        };
        let marked = input.map({
            let schema = Arc::clone(&schema);
            move |batch| {
                let batch = batch?;
                let first = marker.first(&batch)?;
                let mut columns = batch.columns().to_vec();
                columns.push(Arc::new(first));
                Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, marked)))
    }
}

/// Compares each row with the one before.
struct Marker {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    converter: RowConverter,
    last: Option<OwnedRow>,
}

impl Marker {
    fn first(&mut self, batch: &RecordBatch) -> Result<BooleanArray> {
        let keys = self.keys.iter().map(|key| {
            let values = key.evaluate(batch)?;
            values.into_array(batch.num_rows())
        });
        let keys: Vec<ArrayRef> = keys.collect::<Result<_>>()?;
        let rows = self.converter.convert_columns(&keys)?;
        let first = (0..rows.num_rows()).map(|at| match (at, &self.last) {
            (0, None) => true,
            (0, Some(last)) => last.row() != rows.row(0),
            (at, _) => rows.row(at - 1) != rows.row(at),
        });
        let first = BooleanArray::from(first.collect::<Vec<_>>());
        if let Some(at) = rows.num_rows().checked_sub(1) {
            self.last = Some(rows.row(at).owned());
        }
        Ok(first)
    }
}

/// Byte strings that are compared for being equal only, [short](short_key).
pub fn short_keys(keys: Arc<dyn PhysicalExpr>) -> PhysicalSortExpr {
    PhysicalSortExpr::new_default(Arc::new(ShortKeyExpr { inner: keys }))
}

#[derive(Debug)]
struct ShortKeyExpr {
    inner: Arc<dyn PhysicalExpr>,
}

same_as_inner!(ShortKeyExpr);

impl PhysicalExpr for ShortKeyExpr {
    as_inner!();

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let mut short = BinaryBuilder::with_capacity(batch.num_rows(), 0);
        for start in (0..batch.num_rows()).step_by(KEYS_AT_A_TIME) {
            let rows = (batch.num_rows() - start).min(KEYS_AT_A_TIME);
            let rows = batch.slice(start, rows);
            let keys = self.inner.evaluate(&rows)?.into_array(rows.num_rows())?;
            let keys: &BinaryArray = keys.as_binary();
            for key in keys {
                short.append_option(key.map(short_key));
            }
        }
        let short: ArrayRef = Arc::new(short.finish());
        Ok(ColumnarValue::Array(short))
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match children.pop() {
            Some(inner) => Ok(Arc::new(ShortKeyExpr { inner })),
            None => internal_err!("short keys without the keys"),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Int32Array;
    use datafusion_physical_expr::expressions::Column;
    use datafusion_physical_plan::collect;

    use super::*;
    use crate::operator::values_exec::ValuesExec;

    #[test]
    fn equal_rows_of_one_batch_or_two_have_one_first() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("k", DataType::Int32, true),
            Field::new("t", DataType::Binary, true),
        ]));
        let long = [b'x'; 100];
        let batch = |k: Vec<Option<i32>>, t: Vec<Option<&[u8]>>| {
            let columns: Vec<ArrayRef> = vec![
                Arc::new(Int32Array::from(k)),
                Arc::new(BinaryArray::from(t)),
            ];
            RecordBatch::try_new(Arc::clone(&schema), columns).expect("a batch")
        };
        let batches = vec![
            batch(vec![None, None, Some(1)], vec![None, None, None]),
            batch(vec![], vec![]),
            batch(
                vec![Some(1), Some(1), Some(1)],
                vec![None, Some(b"a"), Some(&long)],
            ),
            batch(vec![Some(1), Some(2)], vec![Some(&long), Some(&long)]),
        ];
        let rows = Arc::new(ValuesExec::new(Arc::clone(&schema), batches));
        let key = |name, at| Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>;
        let keys = LexOrdering::new([
            PhysicalSortExpr::new_default(key("k", 0)),
            short_keys(key("t", 1)),
        ]);
        let plan = FirstOfEqualExec::new(rows, keys.expect("keys"));
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let batches = runtime
            .expect("a runtime")
            .block_on(collect(Arc::new(plan), Arc::default()))
            .expect("rows");
        let first: Vec<bool> = batches
            .iter()
            .flat_map(|batch| {
                batch
                    .column(2)
                    .as_boolean()
                    .values()
                    .iter()
                    .collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(first, [true, false, true, false, true, true, false, true]);
    }
}
