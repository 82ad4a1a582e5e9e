//! Select lists whose results for a whole batch may take more memory than they are given.
//!
//! `SELECT repeat(s, 100000) FROM t` makes a gigabyte of a batch of ten thousand rows. Sixty texts that are made of
//! rows of 300 bytes make forty megabytes of two thousand rows. This operator goes above a projection that has
//! functions of that kind or makes many texts, and does its work instead. It evaluates the list for as many rows at a
//! time as fit, and hands these on as a batch.
//!
//! ```text
//!   8192 rows  -->  [list] too much for 1024, 512, 256 rows  -->  batches of 256 rows, later more again
//! ```
//!
//! What is handed on may wait for a client that does not read, so it is much less than one result may take. In a plan
//! of many projections, such as the parts of a UNION, all of them may hand on something at the same time. Each hands on
//! less then.

use std::collections::HashSet;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_execution::{RecordBatchStream, TaskContext};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, SendableRecordBatchStream,
};
use futures::{Stream, StreamExt};

use crate::functions::EvaluationError;
use crate::functions::limits::{PARTS_OF_ROW, ResultLimits};
pub use crate::operator::bounded_expr::{
    MOST_COPIES, copies_made, is_counted, is_string, lengthens_much, makes_text,
};
use crate::operator::bounded_expr::{is_batch_too_large, may_be_long, repeated_bytes, unbounded};
use crate::operator::noted_rows::NotedRows;
use crate::operator::plan_members::{input_handed_on, with_input};

/// So begin the names of columns that an aggregate alone keeps. Where memory is short, its rows are sorted before these
/// are made, so the length of rows does not count them.
pub const KEPT_TEXT: &str = "$kept_";
/// What several rows that are handed on take at most, if some of them may be long.
const HANDED_ON_BYTES: usize = 1 << 20;
/// As much as by so many projections may be handed on in a plan of more of them.
const FULL_PROJECTIONS: usize = 4;
/// Each of them hands on so much in any case.
const LEAST_HANDED_ON_BYTES: usize = 64 << 10;
/// Rows that are tried first.
const FIRST_ROWS: usize = 1024;
/// A piece that takes less than this part of what it may is followed by one of more rows.
const SMALL_PART: usize = 4;
/// Many short texts may take so many times what is handed on before they are computed for fewer rows once more.
const TOLERATED: usize = 4;

/// Puts a [`BoundedProjectionExec`] above each projection that may need one. What they hand on takes up to so many
/// bytes. Without `has_little_memory`, many short texts take all of these: batches of few rows cost time.
pub fn bound_projections(
    plan: Arc<dyn ExecutionPlan>,
    limits: &ResultLimits,
    handed_on_bytes: usize,
    has_little_memory: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut count = 0;
    plan.apply(|node| {
        count += usize::from(is_to_be_bounded(node));
        Ok(TreeNodeRecursion::Continue)
    })?;
    let bounded = plan.transform_up(|node| {
        if !is_to_be_bounded(&node) {
            return Ok(Transformed::no(node));
        }
        let full = match has_little_memory || makes_long(&node) {
            true => HANDED_ON_BYTES,
            false => HANDED_ON_BYTES.max(handed_on_bytes),
        };
        let most = handed_on_by_each(count, full).min(handed_on_bytes);
        Ok(Transformed::yes(Arc::new(BoundedProjectionExec {
            input: node,
            row_bytes: limits.batch_bytes.saturating_mul(PARTS_OF_ROW),
            batch_bytes: limits.batch_bytes.min(most),
        })))
    })?;
    Ok(bounded.data)
}

/// Whether it is a projection that makes long texts, or many.
fn is_to_be_bounded(node: &Arc<dyn ExecutionPlan>) -> bool {
    let projection = node.downcast_ref::<ProjectionExec>();
    makes_long(node) || projection.is_some_and(|node| copies_of(node) > MOST_COPIES)
}

/// Whether it is a projection that makes long texts.
fn makes_long(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<ProjectionExec>().is_some_and(|node| {
        let mut list = node.expr().iter();
        list.any(|item| may_be_long(&item.expr))
    })
}

/// How often the texts of a list have the string of the same column, at most.
fn copies_of(node: &ProjectionExec) -> usize {
    let list = node.expr().iter().map(|item| &item.expr);
    copies_made(list, &node.input().schema())
}

/// What each of so many projections hands on at most, if one alone hands on up to `full`.
fn handed_on_by_each(count: usize, full: usize) -> usize {
    let each = full.saturating_mul(FULL_PROJECTIONS) / count.max(1);
    each.min(full).max(LEAST_HANDED_ON_BYTES)
}

/// See the module's comment.
#[derive(Debug)]
pub struct BoundedProjectionExec {
    /// The projection.
    input: Arc<dyn ExecutionPlan>,
    /// What one row may take, and what several may take together.
    row_bytes: usize,
    batch_bytes: usize,
}

impl DisplayAs for BoundedProjectionExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "BoundedProjectionExec")
    }
}

impl ExecutionPlan for BoundedProjectionExec {
    fn name(&self) -> &'static str {
        "BoundedProjectionExec"
    }

    input_handed_on!();

    with_input!(|plan, input| BoundedProjectionExec {
        input,
        row_bytes: plan.row_bytes,
        batch_bytes: plan.batch_bytes,
    });

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(projection) = self.input.downcast_ref::<ProjectionExec>() else {
            return self.input.execute(partition, context);
        };
        let schema = projection.schema();
        let copies = copies_of(projection);
        let has_many = copies > MOST_COPIES;
        let rows = projection.input().schema();
        let list = projection.expr().iter().zip(schema.fields());
        let list = list.map(|(item, field)| {
            let is_text = matches!(field.data_type(), DataType::Utf8View | DataType::Binary);
            let expr = match is_text {
                // It is the result that is long, so parts of it are not put together again.
                true => unbounded(&item.expr),
                false => &item.expr,
            };
            Item {
                expr: Arc::clone(expr),
                may_be_long: may_be_long(expr) || has_many && makes_text(expr, &rows),
            }
        });
        let list: Vec<Item> = list.collect();
        let has_long = list.iter().any(|item| may_be_long(&item.expr));
        let repeated = list.iter().map(|item| repeated_bytes(&item.expr));
        let repeated_bytes = repeated.fold(0, usize::saturating_add);
        let first_rows = self.batch_bytes / repeated_bytes.max(1);
        let most_rows = FIRST_ROWS / copies.div_ceil(MOST_COPIES).max(1);
        Ok(Box::pin(BoundedStream {
            noted: NotedRows::new(&context),
            noted_columns: columns_to_note(&schema),
            input: projection.input().execute(partition, context)?,
            list,
            schema,
            row_bytes: self.row_bytes,
            batch_bytes: self.batch_bytes,
            rows_at_once: first_rows.min(most_rows).max(1),
            piece_bytes: match has_long {
                true => self.batch_bytes,
                false => self.batch_bytes.saturating_mul(TOLERATED),
            },
            left: None,
            buffers: HashSet::new(),
        }))
    }
}

/// The buffers of texts and bytes of a column.
fn buffers_of(column: &ArrayRef) -> &[Buffer] {
    let texts = column
        .as_string_view_opt()
        .map(|texts| texts.data_buffers());
    let bytes = || Some(column.as_binary_view_opt()?.data_buffers());
    texts.or_else(bytes).unwrap_or_default()
}

/// Where a buffer is.
fn address(buffer: &Buffer) -> usize {
    buffer.data_ptr().as_ptr() as usize
}

/// What a column takes besides buffers that its rows have already: CASE makes no copies of the texts that it chooses,
/// and its result has all that they stand in.
fn made_bytes(column: &ArrayRef, of_rows: &HashSet<usize>) -> usize {
    let shared = buffers_of(column).iter();
    let shared = shared.filter(|buffer| of_rows.contains(&address(buffer)));
    let shared_bytes: usize = shared.map(Buffer::capacity).sum();
    column.get_array_memory_size().saturating_sub(shared_bytes)
}

/// Columns whose strings are looked at to know how long rows are.
fn columns_to_note(schema: &SchemaRef) -> Vec<usize> {
    let fields = schema.fields().iter().enumerate();
    let noted = fields.filter(|(_, field)| !field.name().starts_with(KEPT_TEXT));
    noted.map(|(at, _)| at).collect()
}

/// An expression of the list.
struct Item {
    expr: Arc<dyn PhysicalExpr>,
    may_be_long: bool,
}

struct BoundedStream {
    input: SendableRecordBatchStream,
    list: Vec<Item>,
    schema: SchemaRef,
    row_bytes: usize,
    batch_bytes: usize,
    /// What several rows may take before fewer are tried.
    piece_bytes: usize,
    /// As many as are expected to fit.
    rows_at_once: usize,
    noted: NotedRows,
    noted_columns: Vec<usize>,
    /// Rows that are still to be handed on.
    left: Option<RecordBatch>,
    /// Where the buffers of these are, and of those before them in their batch.
    buffers: HashSet<usize>,
}

impl BoundedStream {
    /// The list for the first of some rows, and how many they are.
    fn first_of(&mut self, rows: &RecordBatch) -> Result<(RecordBatch, usize)> {
        let mut count = self.rows_at_once.min(rows.num_rows());
        loop {
            match self.evaluate(&rows.slice(0, count)) {
                Err(error) if count > 1 && is_batch_too_large(&error) => {
                    count /= 2;
                    self.rows_at_once = count;
                }
                Err(error) => return Err(error),
                Ok((batch, bytes)) => {
                    if bytes < self.batch_bytes / SMALL_PART {
                        self.rows_at_once = self.rows_at_once.saturating_mul(2);
                    } else if bytes > self.batch_bytes {
                        self.rows_at_once = (count / 2).max(1);
                    }
                    return Ok((batch, count));
                }
            }
        }
    }

    /// The list for some rows, and the bytes that it takes.
    ///
    /// # Errors
    /// 1041 for several rows that take more than a batch may, and for one that takes more than a row may.
    fn evaluate(&self, rows: &RecordBatch) -> Result<(RecordBatch, usize)> {
        let count = rows.num_rows();
        let most = match count > 1 {
            true => self.piece_bytes,
            false => self.row_bytes,
        };
        let too_large = || EvaluationError::batch_too_large("select list", most);
        let mut bytes = 0usize;
        let mut columns = Vec::with_capacity(self.list.len());
        for item in &self.list {
            let value = item.expr.evaluate(rows)?;
            if let ColumnarValue::Scalar(value) = &value
                && item.may_be_long
                && value.size().saturating_mul(count) > most
            {
                return Err(too_large().into());
            }
            let column = value.into_array(count)?;
            if item.may_be_long {
                bytes = bytes.saturating_add(made_bytes(&column, &self.buffers));
            }
            if bytes > most {
                return Err(too_large().into());
            }
            columns.push(column);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
        Ok((batch, bytes))
    }
}

impl Stream for BoundedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let rows = match self.left.take() {
            Some(rows) => rows,
            None => match ready!(self.input.poll_next_unpin(context)) {
                Some(Ok(rows)) => {
                    let buffers = rows.columns().iter().flat_map(buffers_of);
                    self.buffers = buffers.map(address).collect();
                    rows
                }
                other => return Poll::Ready(other),
            },
        };
        let first = self.first_of(&rows);
        Poll::Ready(Some(first.map(|(batch, count)| {
            let left = rows.num_rows() - count;
            self.left = (left > 0).then(|| rows.slice(count, left));
            if let Ok(columns) = batch.project(&self.noted_columns) {
                self.noted.note(&columns);
            }
            batch
        })))
    }
}

impl RecordBatchStream for BoundedStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{BooleanArray, StringViewArray};
    use arrow::compute::kernels::zip::zip;

    use super::*;

    #[test]
    fn many_projections_hand_on_less_each() {
        let each = |count| handed_on_by_each(count, HANDED_ON_BYTES);
        assert_eq!(each(1), HANDED_ON_BYTES);
        assert_eq!(each(4), HANDED_ON_BYTES);
        assert_eq!(each(20), HANDED_ON_BYTES / 5);
        assert_eq!(each(1000), LEAST_HANDED_ON_BYTES);
        assert_eq!(
            handed_on_by_each(2, 8 * HANDED_ON_BYTES),
            8 * HANDED_ON_BYTES
        );
    }

    #[test]
    fn texts_that_are_chosen_take_no_more_than_views() {
        const ROWS: usize = 1000;
        let texts = |first: &str| -> ArrayRef {
            let texts = (0..ROWS).map(|row| format!("{first}{row:0>100}"));
            Arc::new(StringViewArray::from_iter_values(texts))
        };
        let (a, b) = (texts("a"), texts("b"));
        let of_rows = [&a, &b].into_iter().flat_map(buffers_of).map(address);
        let of_rows: HashSet<usize> = of_rows.collect();
        let mask: BooleanArray = (0..ROWS).map(|row| Some(row % 2 == 0)).collect();
        let chosen = zip(&mask, &a, &b).unwrap();
        assert!(made_bytes(&chosen, &of_rows) < 2 * ROWS * size_of::<u128>());
        assert!(made_bytes(&chosen, &HashSet::new()) > ROWS * 100);
    }
}
