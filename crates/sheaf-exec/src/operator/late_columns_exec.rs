//! Long columns of the rows that a sort has left.
//!
//! ```text
//!   LateColumnsExec: id, name, data       data of the three rows
//!     SortExec: name, fetch=3             id, name, key
//!       ScanExec                          id, name, key           of all rows
//! ```
//!
//! The scan delivers the row's encoded clustered key in the places of columns that only the result needs. They are read
//! here, by the same view. So a sort of rows with a BLOB each moves none of them.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{Field, SchemaRef};
use datafusion_common::{Result, internal_datafusion_err};
use datafusion_execution::{RecordBatchStream, TaskContext};
use datafusion_physical_expr::EquivalenceProperties;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream,
};
use futures::{Stream, StreamExt};
use sheaf_access::{CancelFlag, LateColumns, ScanSpec, field_at};

use crate::operator::plan_members::{no_expressions, row_for_row, with_input};
use crate::operator::scan_exec::access_error;

/// See the module's comment.
#[derive(Debug)]
pub struct LateColumnsExec {
    input: Arc<dyn ExecutionPlan>,
    /// The scan that delivers keys.
    spec: Arc<ScanSpec>,
    /// Names the table for EXPLAIN.
    alias: String,
    /// Columns of the input that are keys, and which columns of the table are to be in their places.
    late: Vec<(usize, usize)>,
    schema: SchemaRef,
    cancel: CancelFlag,
    properties: Arc<PlanProperties>,
}

impl LateColumnsExec {
    /// `schema` is that of the input, but for the `late` columns.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        (spec, alias): (Arc<ScanSpec>, String),
        late: Vec<(usize, usize)>,
        schema: SchemaRef,
        cancel: CancelFlag,
    ) -> Result<LateColumnsExec> {
        let known = input.equivalence_properties();
        let orders = known.oeq_class().iter().cloned();
        let mut equivalences =
            EquivalenceProperties::new_with_orderings(Arc::clone(&schema), orders);
        // What is constant, too: it is left out of the order.
        equivalences.add_equivalence_group(known.eq_group().clone())?;
        let properties = PlanProperties::new(
            equivalences,
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Ok(LateColumnsExec {
            input,
            spec,
            alias,
            late,
            schema,
            cancel,
            properties: Arc::new(properties),
        })
    }

    /// Names the table.
    pub fn alias(&self) -> &str {
        &self.alias
    }

    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// What is read here, as the table has it, by its place in the output.
    pub fn fields(&self) -> impl Iterator<Item = (usize, Field)> {
        let definition = &self.spec.table.definition;
        let late = self.late.iter();
        late.map(|(place, column)| (*place, field_at(definition, *column)))
    }

    /// The names of the columns that are read here.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        let columns = &self.spec.table.definition.columns;
        let late = self.late.iter();
        late.map(|(_, column)| columns[*column].name.as_str())
    }
}

impl DisplayAs for LateColumnsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let columns: Vec<&str> = self.columns().collect();
        write!(
            f,
            "LateColumnsExec: table={}, columns={}",
            self.alias,
            columns.join(", ")
        )
    }
}

impl ExecutionPlan for LateColumnsExec {
    fn name(&self) -> &'static str {
        "LateColumnsExec"
    }

    row_for_row!();
    no_expressions!();

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    with_input!(|plan, input| LateColumnsExec::new(
        input,
        (Arc::clone(&plan.spec), plan.alias.clone()),
        plan.late.clone(),
        Arc::clone(&plan.schema),
        plan.cancel.clone(),
    )?);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let columns: Vec<usize> = self.late.iter().map(|(_, column)| *column).collect();
        let columns = LateColumns::new(
            (&self.spec.table, &self.spec.view),
            &columns,
            self.spec.batch.string_bytes,
        );
        Ok(Box::pin(LateStream {
            input: self.input.execute(partition, context)?,
            columns: columns.map_err(access_error)?,
            places: self.late.iter().map(|(place, _)| *place).collect(),
            schema: Arc::clone(&self.schema),
            cancel: self.cancel.clone(),
            rest: None,
        }))
    }
}

/// The rows with their columns, as they come.
struct LateStream {
    input: SendableRecordBatchStream,
    columns: LateColumns,
    places: Vec<usize>,
    schema: SchemaRef,
    cancel: CancelFlag,
    /// Rows that wait for their columns.
    rest: Option<RecordBatch>,
}

impl LateStream {
    /// The first rows of a batch; the others are left over.
    fn complete(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        self.cancel.check().map_err(access_error)?;
        let key = self.places.first().map(|place| batch.column(*place));
        let keys = key.and_then(|keys| keys.as_binary_opt::<i32>());
        let keys = keys.ok_or_else(|| internal_datafusion_err!("rows without their keys"))?;
        let keys = (0..keys.len()).map(|row| keys.value(row));
        let (count, made) = self.columns.read(keys).map_err(access_error)?;
        let mut columns: Vec<ArrayRef> = batch.slice(0, count).columns().to_vec();
        for (place, column) in self.places.iter().zip(made) {
            columns[*place] = column;
        }
        let left = batch.num_rows() - count;
        self.rest = (left > 0).then(|| batch.slice(count, left));
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

impl Stream for LateStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let batch = match this.rest.take() {
            Some(rest) => rest,
            None => loop {
                match ready!(this.input.poll_next_unpin(context)) {
                    Some(Ok(batch)) if batch.num_rows() == 0 => {}
                    Some(Ok(batch)) => break batch,
                    other => return Poll::Ready(other),
                }
            },
        };
        Poll::Ready(Some(this.complete(batch)))
    }
}

impl RecordBatchStream for LateStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
