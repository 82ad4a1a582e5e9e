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
//! Who plans the subquery ([`Subplans`]) gives a plan for each combination. As a rule that is one plan, which is bound
//! to the values ([`bound_values`](crate::operator::bound_values)).
//!
//! Its value is a further column, NULL if it finds no row. Where it may find several, another column has their number,
//! of which two are enough. Values are remembered, as many as [`MAX_KNOWN_BYTES`] hold. Those of a subquery that gives
//! something else each time are not.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, new_empty_array};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream, execute_stream,
};
use futures::StreamExt;
use sheaf_access::CancelFlag;
use sheaf_table::Table;

use crate::functions::one_row::SEVERAL_ROWS;
use crate::memory_pool::without_waiting;
use crate::operator::plan_members::{row_for_row, with_input};
use crate::operator::scan_exec::access_error;

/// Bytes of values and of what they follow from that are remembered. If there are more, all are forgotten.
const MAX_KNOWN_BYTES: usize = 4 << 20;

/// Plans a subquery.
pub trait Subplans: fmt::Debug + Send + Sync {
    /// Plans for the rows of one stream.
    fn begin(&self) -> Box<dyn SubplanRuns>;

    /// The tables that it reads.
    fn tables(&self) -> &[Arc<Table>];

    /// Whether it may give another value for the same parameters.
    fn varies(&self) -> bool;
}

/// The plans of a subquery for runs that follow each other.
pub trait SubplanRuns: Send {
    /// A plan of it where what it is correlated by has these values. Its first column is the value. It runs once, and
    /// not beyond the next call.
    fn plan(&mut self, parameters: &[ScalarValue]) -> Result<Arc<dyn ExecutionPlan>>;
}

/// See the [module](self).
#[derive(Debug)]
pub struct ApplyExec {
    input: Arc<dyn ExecutionPlan>,
    /// What the subquery is correlated by, over rows of the input.
    parameters: Vec<Arc<dyn PhysicalExpr>>,
    subplans: Arc<dyn Subplans>,
    cancel: CancelFlag,
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
        let mut equivalences = EquivalenceProperties::new(Arc::clone(&schema));
        for ordering in input.equivalence_properties().oeq_class().iter() {
            equivalences.add_ordering(ordering.clone());
        }
        let properties = PlanProperties::new(
            equivalences,
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        ApplyExec {
            input,
            parameters,
            subplans,
            cancel,
            schema,
            properties: Arc::new(properties),
        }
    }

    /// The tables that the subquery reads.
    pub fn tables(&self) -> &[Arc<Table>] {
        self.subplans.tables()
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
        for parameter in &self.parameters {
            if f(parameter)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    with_input!(|plan, input| ApplyExec::new(
        input,
        plan.parameters.clone(),
        Arc::clone(&plan.subplans),
        plan.cancel.clone(),
        Arc::clone(&plan.schema),
    ));

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let consumer = MemoryConsumer::new("values of a correlated subquery");
        let values = Values {
            parameters: self.parameters.clone(),
            subplans: self.subplans.begin(),
            varies: self.subplans.varies(),
            cancel: self.cancel.clone(),
            schema: Arc::clone(&self.schema),
            input_columns: self.input.schema().fields().len(),
            known: HashMap::new(),
            reservation: consumer.register(context.memory_pool()),
            context,
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
    parameters: Vec<Arc<dyn PhysicalExpr>>,
    subplans: Box<dyn SubplanRuns>,
    varies: bool,
    cancel: CancelFlag,
    schema: SchemaRef,
    input_columns: usize,
    /// Values and numbers of rows by what they follow from.
    known: HashMap<Vec<ScalarValue>, (ScalarValue, i64)>,
    /// For what is known.
    reservation: MemoryReservation,
    context: Arc<TaskContext>,
}

impl Values {
    /// The batch with the value of each row.
    async fn beside(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let parameters = self.parameters.iter();
        let parameters: Vec<ArrayRef> = parameters
            .map(|parameter| parameter.evaluate(&batch)?.into_array(rows))
            .collect::<Result<_>>()?;
        let mut values = Vec::with_capacity(rows);
        let mut numbers = Vec::with_capacity(rows);
        for row in 0..rows {
            self.cancel.check().map_err(access_error)?;
            let parameters = parameters.iter();
            let parameters: Vec<ScalarValue> = parameters
                .map(|column| ScalarValue::try_from_array(column, row))
                .collect::<Result<_>>()?;
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
        if let Some(known) = self.known.get(&parameters) {
            return Ok(known.clone());
        }
        let found = self.run(&parameters).await?;
        if self.varies {
            return Ok(found);
        }
        let bytes = found.0.size() + parameters.iter().map(ScalarValue::size).sum::<usize>();
        if self.reservation.size() + bytes > MAX_KNOWN_BYTES {
            self.known.clear();
            self.reservation.free();
        }
        if without_waiting(|| self.reservation.try_grow(bytes)).is_ok() {
            self.known.insert(parameters, found.clone());
        }
        Ok(found)
    }

    async fn run(&mut self, parameters: &[ScalarValue]) -> Result<(ScalarValue, i64)> {
        let plan = self.subplans.plan(parameters)?;
        let mut batches = execute_stream(plan, Arc::clone(&self.context))?;
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
