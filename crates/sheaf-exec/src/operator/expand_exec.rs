//! The rows of a document for each row of the input: JSON_TABLE.
//!
//! ```text
//!   id  j                  id  v
//!   1   [7, 8]       -->   1   7
//!   2   []                 1   8
//!                          2   NULL      where the rows of the input are kept
//! ```
//!
//! A document may have millions of rows, and each of them has the columns of its row. So rows are made in two steps.
//! The columns of the table are computed a chunk of rows at a time, for a whole document. They wait with the numbers of
//! their rows, and what they take is accounted for. The columns of the input are added when the rows are asked for.
//!
//! Texts and JSON values are views: all rows of a document share its bytes. Byte strings are copied. A batch ends after
//! a mebibyte of copies. It ends after some more of what is shared, because an operator above may copy that.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, RecordBatch, RecordBatchOptions, UInt32Array,
};
use arrow::compute::take;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, Result, internal_err};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{RecordBatchStream, TaskContext};
use datafusion_physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion_physical_plan::coop::make_cooperative;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream,
};
use futures::{Stream, StreamExt};
use sheaf_access::CancelFlag;
use sheaf_types::Value;
use sheaf_types::json::table::Cell;

use crate::functions::document::json_of;
use crate::json_table::JsonTable;
use crate::operator::plan_members::{makes_rows, with_input};
use crate::operator::scan_exec::access_error;
use crate::value_array::array_of;

/// The consumer of memory; [`crate::memory_consumers`] knows it.
const CONSUMER: &str = "JsonTable";

/// A batch has no more rows once the bytes that it has of its own are as many.
const MAX_OWN_BYTES: usize = 1 << 20;
/// The same, of those that its rows share. Where batches are put together, views that use less than half of their
/// buffers are copied, so this is more than the batches of a scan have.
const MAX_SHARED_BYTES: usize = 16 << 20;

/// See the [module](self). Behind the kept columns of the input come those of the table.
#[derive(Debug)]
pub struct ExpandExec {
    input: Arc<dyn ExecutionPlan>,
    /// A JSON value.
    document: Arc<dyn PhysicalExpr>,
    /// Positions of the input's columns that are handed on.
    kept: Vec<usize>,
    table: Arc<JsonTable>,
    /// A row whose document has no rows comes once, with NULL for the columns of the table.
    keeps_rows: bool,
    cancel: CancelFlag,
    properties: Arc<PlanProperties>,
}

impl ExpandExec {
    /// `schema`: the names of the columns; types and whether they may be NULL are those of the input and the table.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        document: Arc<dyn PhysicalExpr>,
        kept: Vec<usize>,
        (table, keeps_rows): (Arc<JsonTable>, bool),
        schema: &Schema,
        cancel: CancelFlag,
    ) -> ExpandExec {
        let below = input.schema();
        let own = table.columns.iter().map(|column| Arc::new(column.field()));
        let fields = kept
            .iter()
            .map(|position| Arc::clone(&below.fields()[*position]));
        let names = schema.fields().iter();
        let fields = fields.chain(own).zip(names);
        let fields = fields.map(|(field, named)| field.as_ref().clone().with_name(named.name()));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let schema = Arc::new(schema.with_metadata(below.metadata().clone()));
        // What the rows of the input are distributed by may not be handed on.
        let partitions = input.output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        ExpandExec {
            input,
            document,
            kept,
            table,
            keeps_rows,
            cancel,
            properties: Arc::new(properties),
        }
    }

    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// A JSON value.
    pub fn document(&self) -> &Arc<dyn PhysicalExpr> {
        &self.document
    }

    /// Positions of the input's columns that are handed on.
    pub fn kept(&self) -> &[usize] {
        &self.kept
    }

    pub fn keeps_rows(&self) -> bool {
        self.keeps_rows
    }
}

impl DisplayAs for ExpandExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "ExpandExec: {} of {}", self.table.name, self.document)
    }
}

impl ExecutionPlan for ExpandExec {
    fn name(&self) -> &'static str {
        "ExpandExec"
    }

    makes_rows!(Unknown);

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        visit(&self.document)
    }

    with_input!(|plan, input| ExpandExec::new(
        input,
        Arc::clone(&plan.document),
        plan.kept.clone(),
        (Arc::clone(&plan.table), plan.keeps_rows),
        &plan.schema(),
        plan.cancel.clone(),
    ));

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let consumer = MemoryConsumer::new(CONSUMER);
        Ok(make_cooperative(Box::pin(ExpandStream {
            input: self.input.execute(partition, Arc::clone(&context))?,
            document: Arc::clone(&self.document),
            kept: self.kept.clone(),
            table: Arc::clone(&self.table),
            keeps_rows: self.keeps_rows,
            cancel: self.cancel.clone(),
            schema: self.schema(),
            most_rows: context.session_config().batch_size().max(1),
            rows: None,
            chunks: VecDeque::new(),
            reservation: consumer.register(context.memory_pool()),
        })))
    }
}

/// A batch of the input.
struct InputRows {
    /// The columns that are handed on.
    columns: Vec<ArrayRef>,
    documents: BinaryViewArray,
    /// The row that comes next.
    next: usize,
    rows: usize,
}

/// Rows of the table that wait.
struct Chunk {
    columns: Vec<ArrayRef>,
    /// The row of the input that each belongs to.
    of: Vec<u32>,
    /// Rows that are gone already.
    start: usize,
    bytes: usize,
}

struct ExpandStream {
    input: SendableRecordBatchStream,
    document: Arc<dyn PhysicalExpr>,
    kept: Vec<usize>,
    table: Arc<JsonTable>,
    keeps_rows: bool,
    cancel: CancelFlag,
    schema: SchemaRef,
    most_rows: usize,
    rows: Option<InputRows>,
    chunks: VecDeque<Chunk>,
    /// Of what waits.
    reservation: MemoryReservation,
}

impl ExpandStream {
    fn begin(&mut self, batch: &RecordBatch) -> Result<()> {
        let kept = self.kept.iter();
        let rows = batch.num_rows();
        let documents = self.document.evaluate(batch)?.into_array(rows)?;
        let Some(documents) = documents.as_binary_view_opt() else {
            return internal_err!("documents of type {}", documents.data_type());
        };
        self.rows = Some(InputRows {
            columns: kept.map(|at| Arc::clone(batch.column(*at))).collect(),
            documents: documents.clone(),
            next: 0,
            rows,
        });
        Ok(())
    }

    /// Computes rows of the table, for one document at least. Documents with few rows are put together.
    fn compute(&mut self) -> Result<()> {
        let Some(rows) = &mut self.rows else {
            return Ok(());
        };
        let documents = &rows.documents;
        let (table, cancel, most_rows) = (&self.table, &self.cancel, self.most_rows);
        let (chunks, reservation) = (&mut self.chunks, &self.reservation);
        let mut open = OpenChunk::new(table);
        let mut close = |open: &mut OpenChunk| -> Result<()> {
            let chunk = open.close(table)?;
            reservation.try_grow(chunk.bytes)?;
            chunks.push_back(chunk);
            Ok(())
        };
        let mut is_closed = false;
        while rows.next < rows.rows && !is_closed {
            cancel.check().map_err(access_error)?;
            let row = rows.next;
            rows.next += 1;
            let mut is_missing = true;
            if documents.is_valid(row) {
                let json = json_of(documents.value(row));
                let made = table.rows.for_each_row(json, &mut |cells: &[Cell<'_>]| {
                    cancel.check().map_err(access_error)?;
                    is_missing = false;
                    for (position, cell) in cells.iter().enumerate() {
                        open.push(position, table.value(position, cell)?);
                    }
                    open.of.push(row as u32);
                    if open.is_full(most_rows) {
                        is_closed = true;
                        close(&mut open)?;
                    }
                    Ok::<(), DataFusionError>(())
                });
                made?;
            }
            if is_missing && self.keeps_rows {
                for position in 0..table.columns.len() {
                    open.push(position, Value::Null);
                }
                open.of.push(row as u32);
                is_closed = open.is_full(most_rows);
            }
        }
        match open.of.is_empty() {
            true => Ok(()),
            false => close(&mut open),
        }
    }

    /// The next rows that wait, with the columns of the input.
    fn take_waiting(&mut self) -> Result<Option<RecordBatch>> {
        let (Some(chunk), Some(rows)) = (self.chunks.front_mut(), &self.rows) else {
            return Ok(None);
        };
        let waiting = &chunk.of[chunk.start..];
        let mut bytes = RowBytes::default();
        let mut count = 0;
        for row in waiting {
            rows.add_bytes(*row as usize, &mut bytes);
            if count > 0 && bytes.are_enough() {
                break;
            }
            count += 1;
        }
        let of = UInt32Array::from(waiting[..count].to_vec());
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for column in &rows.columns {
            columns.push(take(column.as_ref(), &of, None)?);
        }
        let own = chunk.columns.iter();
        columns.extend(own.map(|column| column.slice(chunk.start, count)));
        chunk.start += count;
        if chunk.start == chunk.of.len() {
            self.reservation.shrink(chunk.bytes);
            self.chunks.pop_front();
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
        Ok(Some(batch))
    }

    fn has_input(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| rows.next < rows.rows)
    }
}

impl InputRows {
    /// Adds what a row made of this one takes.
    fn add_bytes(&self, row: usize, bytes: &mut RowBytes) {
        for column in &self.columns {
            bytes.own += size_of::<u128>();
            match column.data_type() {
                DataType::Binary => {
                    bytes.own += column.as_binary::<i32>().value_length(row) as usize;
                }
                DataType::BinaryView => {
                    bytes.shared += length_of_view(column.as_binary_view().views()[row]);
                }
                DataType::Utf8View => {
                    bytes.shared += length_of_view(column.as_string_view().views()[row]);
                }
                _ => {}
            }
        }
    }
}

/// The lowest 32 bits.
fn length_of_view(view: u128) -> usize {
    view as u32 as usize
}

/// What rows take.
#[derive(Default)]
struct RowBytes {
    own: usize,
    /// What other rows have as well.
    shared: usize,
}

impl RowBytes {
    fn are_enough(&self) -> bool {
        self.own > MAX_OWN_BYTES || self.shared > MAX_SHARED_BYTES
    }
}

/// Rows of the table that are being computed.
struct OpenChunk {
    values: Vec<Vec<Value>>,
    of: Vec<u32>,
    /// Of texts and documents.
    bytes: usize,
}

impl OpenChunk {
    fn new(table: &JsonTable) -> OpenChunk {
        OpenChunk {
            values: vec![Vec::new(); table.columns.len()],
            of: Vec::new(),
            bytes: 0,
        }
    }

    fn push(&mut self, position: usize, value: Value) {
        self.bytes += match &value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) | Value::Json(bytes) => bytes.len(),
            _ => 0,
        };
        self.values[position].push(value);
    }

    fn is_full(&self, most_rows: usize) -> bool {
        self.of.len() >= most_rows || self.bytes > MAX_OWN_BYTES
    }

    fn close(&mut self, table: &JsonTable) -> Result<Chunk> {
        let mut columns = Vec::with_capacity(self.values.len());
        for (column, values) in table.columns.iter().zip(&mut self.values) {
            let given: Vec<&Value> = values.iter().collect();
            columns.push(array_of(&column.ty, &given)?);
            values.clear();
        }
        let of = std::mem::take(&mut self.of);
        self.bytes = 0;
        let arrays = columns.iter().map(|column| column.get_array_memory_size());
        let bytes = arrays.sum::<usize>() + of.len() * size_of::<u32>();
        Ok(Chunk {
            columns,
            of,
            start: 0,
            bytes,
        })
    }
}

impl Stream for ExpandStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match self.take_waiting() {
                Ok(None) => {}
                Ok(Some(batch)) => return Poll::Ready(Some(Ok(batch))),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
            let made = match self.has_input() {
                true => self.compute(),
                false => match ready!(self.input.poll_next_unpin(context)) {
                    Some(Ok(batch)) => self.begin(&batch),
                    other => return Poll::Ready(other),
                },
            };
            if let Err(error) = made {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl RecordBatchStream for ExpandStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;
    use datafusion_physical_expr::expressions::Column as ColumnExpr;
    use datafusion_physical_plan::collect;
    use sheaf_types::ColumnType;
    use sheaf_types::column_type::Sign;
    use sheaf_types::json::table::{Column, Level, Otherwise};
    use sheaf_types::json::{Path, text};

    use super::*;
    use crate::json_table::JsonTableColumn;
    use crate::operator::values_exec::ValuesExec;

    #[test]
    fn rows_share_their_document() {
        const ROWS: usize = 100;
        let long = "x".repeat(MAX_SHARED_BYTES / 3);
        let document = format!("[\"{long}\"{}]", ", 1".repeat(ROWS - 1));
        let document = text::read(&document).expect("a document").into_bytes();
        let documents = BinaryViewArray::from_iter_values([&document]);
        let schema = Arc::new(Schema::new(vec![Field::new(
            "j",
            DataType::BinaryView,
            true,
        )]));
        let columns: Vec<ArrayRef> = vec![Arc::new(documents)];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).expect("a batch");
        let table = JsonTable {
            name: "x".to_string(),
            rows: Level {
                path: Path::parse("$[*]").expect("a path"),
                columns: vec![Column::Ordinality],
            },
            columns: vec![JsonTableColumn {
                name: "n".to_string(),
                ty: ColumnType::BigInt { sign: Sign::Signed },
                on_error: Otherwise::Null,
            }],
            text: String::new(),
        };
        let fields = [
            Field::new("j", DataType::BinaryView, true),
            table.columns[0].field(),
        ];
        let names = Schema::new(fields.to_vec());
        let expand = ExpandExec::new(
            Arc::new(ValuesExec::new(schema, vec![batch])),
            Arc::new(ColumnExpr::new("j", 0)),
            vec![0],
            (Arc::new(table), false),
            &names,
            CancelFlag::new(),
        );
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let batches = runtime
            .expect("a runtime")
            .block_on(collect(Arc::new(expand), Arc::default()))
            .expect("rows");
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, ROWS);
        let mut places = Vec::new();
        for batch in &batches {
            assert!(batch.num_rows() <= 3, "{} rows", batch.num_rows());
            let documents = batch.column(0).as_binary_view();
            assert_eq!(documents.value(0), document);
            places.push(documents.value(0).as_ptr());
        }
        places.dedup();
        assert_eq!(places.len(), 1, "copies of the document");
    }
}
