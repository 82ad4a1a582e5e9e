//! A correlated subquery that runs for each row.
//!
//! Most correlated subqueries become joins. One that cannot is run once for each combination of the values that it is
//! correlated by. It finds its rows by indexes as if the statement had these as literals:
//!
//! ```text
//!   SELECT id, (SELECT y FROM t WHERE t.k < o.k ORDER BY y LIMIT 1 OFFSET 1) FROM o
//!
//!   ApplyExec by o.k        10 -> (SELECT y FROM t WHERE t.k < 10 ...) -> its value
//!     o                     20 -> (SELECT y FROM t WHERE t.k < 20 ...) -> its value
//!                           10 -> known
//! ```
//!
//! Its value is a further column, NULL if it finds no row. Where it may find several, another column has their number,
//! of which two are enough. Values are remembered ([`correlation`](crate::operator::correlation)).

use std::fmt;
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, new_empty_array};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_execution::TaskContext;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;
use sheaf_access::CancelFlag;
use sheaf_table::Table;

use crate::functions::one_row::SEVERAL_ROWS;
use crate::operator::correlation::{Correlation, Runs, Subplans, properties_beside};
use crate::operator::plan_members::{row_for_row, with_input};

/// See the [module](self).
#[derive(Debug)]
pub struct ApplyExec {
    input: Arc<dyn ExecutionPlan>,
    /// The subquery. The first column of its plans is the value.
    correlation: Correlation,
    /// That of the input, the value, and the number of rows where there may be several.
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl ApplyExec {
    /// `schema`: that of the input, a column of the value and, where there may be several rows, one of their number.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        parameters: Vec<Arc<dyn PhysicalExpr>>,
        subplans: Arc<dyn Subplans>,
        cancel: CancelFlag,
        schema: SchemaRef,
    ) -> ApplyExec {
        let correlation = Correlation {
            parameters,
            subplans,
            cancel,
        };
        ApplyExec::over(input, correlation, schema)
    }

    fn over(
        input: Arc<dyn ExecutionPlan>,
        correlation: Correlation,
        schema: SchemaRef,
    ) -> ApplyExec {
        ApplyExec {
            properties: properties_beside(&input, &schema),
            input,
            correlation,
            schema,
        }
    }

    /// The tables that the subquery reads.
    pub fn tables(&self) -> &[Arc<Table>] {
        self.correlation.subplans.tables()
    }
}

impl DisplayAs for ApplyExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "ApplyExec")
    }
}

impl ExecutionPlan for ApplyExec {
    fn name(&self) -> &'static str {
        "ApplyExec"
    }

    row_for_row!();

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.correlation.apply_expressions(f)
    }

    with_input!(|plan, input| ApplyExec::over(
        input,
        plan.correlation.clone(),
        Arc::clone(&plan.schema),
    ));

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let consumer = "values of a correlated subquery";
        let values = Values {
            runs: self.correlation.runs(consumer, context),
            schema: Arc::clone(&self.schema),
            input_columns: self.input.schema().fields().len(),
        };
        let batches = futures::stream::unfold(Some((input, values)), |state| async {
            let (mut input, mut values) = state?;
            let batch = match input.next().await? {
                Ok(batch) => values.beside(batch).await,
                Err(error) => Err(error),
            };
            // After an error there is nothing more.
            let next = batch.is_ok().then_some((input, values));
            Some((batch, next))
        });
        let schema = Arc::clone(&self.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

/// The values of one partition.
struct Values {
    /// Give the value, and the number of rows.
    runs: Runs<(ScalarValue, i64)>,
    schema: SchemaRef,
    input_columns: usize,
}

impl Values {
    /// The batch with the value of each row.
    async fn beside(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let parameters = self.runs.parameters_of(&batch)?;
        let mut values = Vec::with_capacity(rows);
        let mut numbers = Vec::with_capacity(rows);
        for row in 0..rows {
            let parameters = self.runs.values_at(&parameters, row)?;
            let (value, number) = self.value_for(parameters).await?;
            values.push(value);
            numbers.push(number);
        }
        let mut columns = batch.columns().to_vec();
        columns.push(match values.is_empty() {
            true => new_empty_array(self.value_type(self.input_columns)?),
            false => ScalarValue::iter_to_array(values)?,
        });
        if columns.len() < self.schema.fields().len() {
            columns.push(Arc::new(Int64Array::from(numbers)));
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// The value, and how many rows there are.
    async fn value_for(&mut self, parameters: Vec<ScalarValue>) -> Result<(ScalarValue, i64)> {
        if let Some(known) = self.runs.known(&parameters) {
            return Ok(known);
        }
        let found = self.run(&parameters).await?;
        self.runs.remember(parameters, &found, found.0.size());
        Ok(found)
    }

    async fn run(&mut self, parameters: &[ScalarValue]) -> Result<(ScalarValue, i64)> {
        let mut batches = self.runs.run(parameters)?;
        let mut value = None;
        let mut rows = 0;
        while rows < SEVERAL_ROWS
            && let Some(batch) = batches.next().await
        {
            let batch = batch?;
            rows += batch.num_rows() as u64;
            if value.is_none() && batch.num_rows() > 0 {
                value = Some(ScalarValue::try_from_array(batch.column(0), 0)?.compacted());
            }
        }
        let data_type = self.value_type(self.input_columns)?;
        let value = match value {
            // Of constants a plan may know more than its type.
            Some(value) if value.data_type() != *data_type => value.cast_to(data_type)?,
            Some(value) => value,
            None => ScalarValue::try_from(data_type)?,
        };
        Ok((value, rows.min(SEVERAL_ROWS) as i64))
    }

    /// The type of the column at a place.
    fn value_type(&self, column: usize) -> Result<&DataType> {
        match self.schema.fields().get(column) {
            Some(field) => Ok(field.data_type()),
            None => internal_err!("no column for the value of a subquery"),
        }
    }
}
