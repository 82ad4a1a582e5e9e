//! VALUES: rows that are known while the query is planned.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::Values;
use sheaf_exec::operator::values_exec::ValuesExec;

use super::Planner;
use crate::estimate::risk::Risk;
use crate::explain::ExplainRow;
use crate::planned::{Block, Planned};

impl Planner<'_> {
    /// The rows of VALUES are computed now: they are literals and functions of literals.
    pub(super) fn plan_values(&self, values: &Values, block: &Block) -> Result<Planned> {
        let schema: SchemaRef = Arc::clone(values.schema.inner());
        let nothing = Arc::new(Schema::empty());
        let one_row = RecordBatchOptions::new().with_row_count(Some(1));
        let one_row = RecordBatch::try_new_with_options(nothing, Vec::new(), &one_row)?;
        let mut columns: Vec<Vec<ScalarValue>> =
            vec![Vec::with_capacity(values.values.len()); schema.fields().len()];
        for row in &values.values {
            for ((expr, field), column) in row.iter().zip(schema.fields()).zip(&mut columns) {
                let value = self
                    .expr(expr, &DFSchema::empty(), block)?
                    .evaluate(&one_row)?;
                let value = ScalarValue::try_from_array(&value.into_array(1)?, 0)?;
                column.push(value.cast_to(field.data_type())?);
            }
        }
        let arrays = columns
            .into_iter()
            .map(ScalarValue::iter_to_array)
            .collect::<Result<Vec<_>>>()?;
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        let plan = Arc::new(ValuesExec::new(schema, vec![batch]));
        let row = ExplainRow::no_tables(block.select_type).with_id(block.id);
        Ok(Planned {
            plan,
            rows: values.values.len() as f64,
            cost_us: 0.0,
            risk: Risk::default(),
            explain: vec![row],
        })
    }
}
