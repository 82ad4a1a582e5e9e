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
//! Rows of a LEFT JOIN for which the query has none come with NULL. Rows are remembered
//! ([`correlation`](crate::operator::correlation)).

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array, new_null_array};
use arrow::compute::{cast, concat_batches, take};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;
use sheaf_access::CancelFlag;
use sheaf_table::Table;

use crate::operator::correlation::{Correlation, Runs, Subplans, properties_beside};
use crate::operator::plan_members::{makes_rows, with_input};

/// Rows from which on a batch is handed on.
const BATCH_ROWS: usize = 8_192;

/// See the [module](self).
#[derive(Debug)]
pub struct ApplyRowsExec {
    input: Arc<dyn ExecutionPlan>,
    correlation: Correlation,
    /// Rows without rows of the query come once.
    keeps_rows: bool,
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
        let correlation = Correlation {
            parameters,
            subplans,
            cancel,
        };
        ApplyRowsExec::over(input, (correlation, keeps_rows), schema)
    }

    fn over(
        input: Arc<dyn ExecutionPlan>,
        (correlation, keeps_rows): (Correlation, bool),
        schema: SchemaRef,
    ) -> ApplyRowsExec {
        ApplyRowsExec {
            properties: properties_beside(&input, &schema),
            input,
            correlation,
            keeps_rows,
            schema,
        }
    }

    /// The tables that the query reads.
    pub fn tables(&self) -> &[Arc<Table>] {
        self.correlation.subplans.tables()
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
        self.correlation.apply_expressions(f)
    }

    with_input!(|plan, input| ApplyRowsExec::over(
        input,
        (plan.correlation.clone(), plan.keeps_rows),
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
        let consumer = "rows of a lateral query";
        let rows = Rows {
            no_rows: match self.keeps_rows {
                true => null_row(&applied)?,
                false => RecordBatch::new_empty(Arc::clone(&applied)),
            },
            applied,
            schema: Arc::clone(&self.schema),
            for_batch: MemoryConsumer::new(consumer).register(context.memory_pool()),
            runs: self.correlation.runs(consumer, context),
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
                    let parameters = self.rows.runs.parameters_of(&batch)?;
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
    runs: Runs<RecordBatch>,
    /// What stands beside a row for which the query has none.
    no_rows: RecordBatch,
    /// The columns of the query.
    applied: SchemaRef,
    schema: SchemaRef,
    /// For what becomes the next batch.
    for_batch: MemoryReservation,
}

impl Rows {
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
            let values = self.runs.values_at(parameters, *next)?;
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
        if let Some(known) = self.runs.known(&values) {
            return Ok(known);
        }
        let found = self.run(&values).await?;
        let bytes = found.get_array_memory_size();
        self.runs.remember(values, &found, bytes);
        Ok(found)
    }

    async fn run(&mut self, values: &[ScalarValue]) -> Result<RecordBatch> {
        let mut batches = self.runs.run(values)?;
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
