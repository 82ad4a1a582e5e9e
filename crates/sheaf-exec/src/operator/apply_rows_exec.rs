//! A correlated query that runs for each row, and has rows: LATERAL.
//!
//! As [`apply_exec`](crate::operator::apply_exec) does for values, it runs the query once for each combination of the
//! values that it is correlated by:
//!
//! ```text
//!   SELECT o.id, d.y FROM o, LATERAL (SELECT y FROM t WHERE t.k < o.k ORDER BY k DESC LIMIT 3) d
//!
//!   ApplyRowsExec by o.k    10 -> (SELECT y FROM t WHERE t.k < 10 ...) -> three rows, each beside the row with 10
//!     o                     10 -> known
//! ```
//!
//! Rows of a LEFT JOIN for which the query has none come with NULL. Rows are remembered, as many as
//! [`MAX_KNOWN_BYTES`] hold.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array, new_null_array};
use arrow::compute::{cast, concat_batches, take};
use arrow::datatypes::{Schema, SchemaRef};
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

use crate::memory_pool::without_waiting;
use crate::operator::apply_exec::{SubplanRuns, Subplans};
use crate::operator::plan_members::{makes_rows, with_input};
use crate::operator::scan_exec::access_error;

/// Bytes of rows and of what they follow from that are remembered. If there are more, all are forgotten.
const MAX_KNOWN_BYTES: usize = 4 << 20;

/// Rows from which on a batch is handed on.
const BATCH_ROWS: usize = 8_192;

/// See the [module](self).
#[derive(Debug)]
pub struct ApplyRowsExec {
    input: Arc<dyn ExecutionPlan>,
    /// What the query is correlated by, over rows of the input.
    parameters: Vec<Arc<dyn PhysicalExpr>>,
    subplans: Arc<dyn Subplans>,
    /// Rows without rows of the query come once.
    keeps_rows: bool,
    cancel: CancelFlag,
    /// That of the input, and the columns of the query.
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl ApplyRowsExec {
    /// `schema`: that of the input, and the columns of the query.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        parameters: Vec<Arc<dyn PhysicalExpr>>,
        (subplans, keeps_rows): (Arc<dyn Subplans>, bool),
        cancel: CancelFlag,
        schema: SchemaRef,
    ) -> ApplyRowsExec {
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
        ApplyRowsExec {
            input,
            parameters,
            subplans,
            keeps_rows,
            cancel,
            schema,
            properties: Arc::new(properties),
        }
    }

    /// The tables that the query reads.
    pub fn tables(&self) -> &[Arc<Table>] {
        self.subplans.tables()
    }

    /// Whether it is the inner side of a LEFT JOIN.
    pub fn keeps_rows(&self) -> bool {
        self.keeps_rows
    }
}

impl DisplayAs for ApplyRowsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "ApplyRowsExec")
    }
}

impl ExecutionPlan for ApplyRowsExec {
    fn name(&self) -> &'static str {
        "ApplyRowsExec"
    }

    makes_rows!(Unknown);

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
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

    with_input!(|plan, input| ApplyRowsExec::new(
        input,
        plan.parameters.clone(),
        (Arc::clone(&plan.subplans), plan.keeps_rows),
        plan.cancel.clone(),
        Arc::clone(&plan.schema),
    ));

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let of_input = self.input.schema().fields().len();
        let applied: Vec<_> = self
            .schema
            .fields()
            .iter()
            .skip(of_input)
            .cloned()
            .collect();
        let applied = Arc::new(Schema::new(applied));
        let pool = context.memory_pool();
        let reservation = || MemoryConsumer::new("rows of a lateral query").register(pool);
        let rows = Rows {
            parameters: self.parameters.clone(),
            subplans: self.subplans.begin(),
            no_rows: match self.keeps_rows {
                true => null_row(&applied)?,
                false => RecordBatch::new_empty(Arc::clone(&applied)),
            },
            applied,
            cancel: self.cancel.clone(),
            schema: Arc::clone(&self.schema),
            known: HashMap::new(),
            for_known: reservation(),
            for_batch: reservation(),
            context,
        };
        let state = State {
            input,
            rows,
            outer: None,
        };
        let batches = futures::stream::unfold(Some(state), |state| async {
            let mut state = state?;
            let batch = state.next().await.transpose()?;
            // After an error there is nothing more.
            let next = batch.is_ok().then_some(state);
            Some((batch, next))
        });
        let schema = Arc::clone(&self.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

fn null_row(schema: &SchemaRef) -> Result<RecordBatch> {
    let fields = schema.fields().iter();
    let columns = fields.map(|field| new_null_array(field.data_type(), 1));
    with_columns(schema, columns.collect(), 1)
}

/// A batch that may have no columns.
fn with_columns(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let schema = Arc::clone(schema);
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}

/// One stream.
struct State {
    input: SendableRecordBatchStream,
    rows: Rows,
    /// A batch of the input, what the query is correlated by in it, and the row that is next.
    outer: Option<(RecordBatch, Vec<ArrayRef>, usize)>,
}

impl State {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let (batch, parameters, next) = match &mut self.outer {
                Some(outer) => (&outer.0, &outer.1, &mut outer.2),
                None => {
                    let Some(batch) = self.input.next().await.transpose()? else {
                        return Ok(None);
                    };
                    let parameters = self.rows.parameters_of(&batch)?;
                    self.outer = Some((batch, parameters, 0));
                    continue;
                }
            };
            let made = self.rows.beside(batch, parameters, next).await?;
            if *next >= batch.num_rows() {
                self.outer = None;
            }
            if made.num_rows() > 0 {
                return Ok(Some(made));
            }
        }
    }
}

/// The rows of one partition.
struct Rows {
    parameters: Vec<Arc<dyn PhysicalExpr>>,
    subplans: Box<dyn SubplanRuns>,
    /// What stands beside a row for which the query has none.
    no_rows: RecordBatch,
    /// The columns of the query.
    applied: SchemaRef,
    cancel: CancelFlag,
    schema: SchemaRef,
    /// Rows by what they follow from.
    known: HashMap<Vec<ScalarValue>, RecordBatch>,
    for_known: MemoryReservation,
    /// For what becomes the next batch.
    for_batch: MemoryReservation,
    context: Arc<TaskContext>,
}

impl Rows {
    fn parameters_of(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let parameters = self.parameters.iter();
        let of_batch =
            |of: &Arc<dyn PhysicalExpr>| of.evaluate(batch)?.into_array(batch.num_rows());
        parameters.map(of_batch).collect()
    }

    /// Rows of a batch from `next` on, with those of the query, until they are many.
    async fn beside(
        &mut self,
        batch: &RecordBatch,
        parameters: &[ArrayRef],
        next: &mut usize,
    ) -> Result<RecordBatch> {
        let mut positions: Vec<u64> = Vec::new();
        let mut found = Vec::new();
        while *next < batch.num_rows() && positions.len() < BATCH_ROWS {
            self.cancel.check().map_err(access_error)?;
            let values = parameters.iter();
            let values: Vec<ScalarValue> = values
                .map(|column| ScalarValue::try_from_array(column, *next))
                .collect::<Result<_>>()?;
            let rows = self.rows_for(values).await?;
            let position = *next as u64;
            positions.extend(std::iter::repeat_n(position, rows.num_rows()));
            if rows.num_rows() > 0 {
                found.push(rows);
            }
            *next += 1;
        }
        let rows = positions.len();
        let positions = UInt64Array::from(positions);
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for column in batch.columns() {
            columns.push(take(column, &positions, None)?);
        }
        // A batch without columns has forgotten how many rows it has.
        if !self.applied.fields().is_empty() {
            let found = concat_batches(&self.applied, &found)?;
            columns.extend(found.columns().iter().cloned());
        }
        self.for_batch.free();
        with_columns(&self.schema, columns, rows)
    }

    async fn rows_for(&mut self, values: Vec<ScalarValue>) -> Result<RecordBatch> {
        if let Some(known) = self.known.get(&values) {
            return Ok(known.clone());
        }
        let found = self.run(&values).await?;
        let of_values: usize = values.iter().map(ScalarValue::size).sum();
        let bytes = found.get_array_memory_size() + of_values;
        if self.for_known.size() + bytes > MAX_KNOWN_BYTES {
            self.known.clear();
            self.for_known.free();
        }
        let fits = bytes <= MAX_KNOWN_BYTES;
        if fits && without_waiting(|| self.for_known.try_grow(bytes)).is_ok() {
            self.known.insert(values, found.clone());
        }
        Ok(found)
    }

    async fn run(&mut self, values: &[ScalarValue]) -> Result<RecordBatch> {
        let plan = self.subplans.plan(values)?;
        let mut batches = execute_stream(plan, Arc::clone(&self.context))?;
        let mut found = Vec::new();
        while let Some(batch) = batches.next().await {
            let batch = self.in_types(&batch?)?;
            self.for_batch.try_grow(batch.get_array_memory_size())?;
            found.push(batch);
        }
        found.retain(|batch| batch.num_rows() > 0);
        match found.as_slice() {
            [] => Ok(self.no_rows.clone()),
            _ if self.applied.fields().is_empty() => {
                let rows = found.iter().map(RecordBatch::num_rows).sum();
                with_columns(&self.applied, Vec::new(), rows)
            }
            found => Ok(concat_batches(&self.applied, found)?),
        }
    }

    /// Of constants a plan may know more than their type.
    fn in_types(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        if batch.num_columns() != self.applied.fields().len() {
            return internal_err!("a lateral query with other columns");
        }
        let columns = batch.columns().iter().zip(self.applied.fields());
        let columns =
            columns.map(
                |(column, field)| match column.data_type() == field.data_type() {
                    true => Ok(Arc::clone(column)),
                    false => Ok(cast(column, field.data_type())?),
                },
            );
        let columns = columns.collect::<Result<_>>()?;
        with_columns(&self.applied, columns, batch.num_rows())
    }
}
