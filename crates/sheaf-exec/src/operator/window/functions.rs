//! The functions of a window, and their values beside the rows.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, NullArray, RecordBatch, RecordBatchOptions, UInt32Array, new_empty_array,
};
use arrow::compute::{concat, partition, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::{WindowFrameBound, WindowFrameUnits};
use datafusion_physical_expr::utils::collect_columns;
use datafusion_physical_expr::window::{PlainAggregateWindowExpr, StandardWindowExpr, WindowExpr};
use datafusion_physical_plan::{Accumulator, PhysicalExpr, SendableRecordBatchStream};
use futures::TryStreamExt;

/// A value takes this while values are computed one by one, which they are where each row has a frame of its own.
const FRAMED_VALUE_BYTES: usize = size_of::<ScalarValue>() + 32;
/// The others are computed as arrays.
const VALUE_BYTES: usize = 16;

/// The functions of one window: they have the same PARTITION BY and ORDER BY.
pub(super) struct Functions {
    pub(super) all: Vec<Function>,
    partition_by: Vec<Arc<dyn PhysicalExpr>>,
    input: SchemaRef,
    /// The input's columns, those that the functions do not use as columns of NULLs, which take no memory.
    used: SchemaRef,
    all_run: bool,
}

pub(super) struct Function {
    pub(super) expr: Arc<dyn WindowExpr>,
    pub(super) data_type: DataType,
    /// An aggregate over all rows of the partition.
    is_constant: bool,
    /// What it holds for each row while values are computed.
    value_bytes: usize,
}

impl Functions {
    pub(super) fn new(expressions: &[Arc<dyn WindowExpr>], input: &SchemaRef) -> Result<Functions> {
        let Some(first) = expressions.first() else {
            return internal_err!("a window without functions");
        };
        let all_run = expressions.iter().all(runs);
        let mut used = vec![false; input.fields().len()];
        // Aggregates over whole partitions look at rows as they come.
        for expr in expressions.iter().filter(|expr| !is_constant(expr)) {
            let mut parts = expr.all_expressions();
            if !looks_at_order(expr)? {
                parts.order_by_exprs.clear();
            }
            let parts = parts.args.iter().chain(&parts.order_by_exprs);
            for column in parts.flat_map(collect_columns) {
                if let Some(used) = used.get_mut(column.index()) {
                    *used = true;
                }
            }
        }
        let fields = input.fields().iter().zip(used);
        let fields = fields.map(|(field, is_used)| match is_used {
            true => Arc::clone(field),
            false => Arc::new(Field::new(field.name(), DataType::Null, true)),
        });
        let all = expressions.iter().map(|expr| {
            Ok(Function {
                expr: Arc::clone(expr),
                data_type: expr.field()?.data_type().clone(),
                is_constant: is_constant(expr),
                value_bytes: match has_frames(expr)? {
                    _ if is_constant(expr) => 0,
                    true => FRAMED_VALUE_BYTES,
                    false => VALUE_BYTES,
                },
            })
        });
        Ok(Functions {
            all: all.collect::<Result<_>>()?,
            partition_by: first.partition_by().to_vec(),
            used: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            input: Arc::clone(input),
            all_run,
        })
    }

    pub(super) fn input(&self) -> &SchemaRef {
        &self.input
    }

    /// Whether all functions know their values before the partition ends.
    pub(super) fn all_run(&self) -> bool {
        self.all_run
    }

    /// What the functions hold for so many rows while they compute their values.
    pub(super) fn value_bytes(&self, rows: usize) -> usize {
        let of_a_row = self.all.iter().map(|function| function.value_bytes);
        rows * of_a_row.sum::<usize>()
    }

    /// The columns that functions use, as a batch in which the others take no memory.
    pub(super) fn used_columns(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = batch.columns().iter().zip(self.used.fields());
        let columns = columns.map(|(column, field)| match field.data_type() {
            DataType::Null => Arc::new(NullArray::new(batch.num_rows())),
            _ => Arc::clone(column),
        });
        with_rows(&self.used, columns.collect(), batch.num_rows())
    }

    pub(super) fn used_schema(&self) -> &SchemaRef {
        &self.used
    }

    /// Where partitions begin and end in a batch that is not empty, and the columns that tell them apart.
    pub(super) fn partitions(
        &self,
        batch: &RecordBatch,
    ) -> Result<(Vec<ArrayRef>, Vec<Range<usize>>)> {
        let rows = batch.num_rows();
        if self.partition_by.is_empty() {
            let all = std::iter::once(0..rows);
            return Ok((Vec::new(), all.collect()));
        }
        let keys = self.partition_by.iter();
        let keys: Vec<ArrayRef> = keys
            .map(|key| key.evaluate(batch)?.into_array(rows))
            .collect::<Result<_>>()?;
        let ranges = partition(&keys)?.ranges();
        Ok((keys, ranges))
    }

    /// Rows of whole partitions with these lengths.
    pub(super) fn of_partitions(&self, batch: RecordBatch, lengths: &[usize]) -> Result<Rows> {
        let functions = self.all.iter();
        let values = functions.map(|function| {
            let values = function.of_partitions(&batch, lengths)?;
            Ok(Values::Each(values))
        });
        let values = values.collect::<Result<_>>()?;
        Ok(Rows::at_once(batch, values))
    }
}

impl Function {
    /// An accumulator, if the function has one value for all rows of a partition.
    pub(super) fn accumulator(&self) -> Result<Option<Box<dyn Accumulator>>> {
        match aggregate(&self.expr) {
            Some(plain) if self.is_constant => {
                Ok(Some(plain.get_aggregate_expr().create_accumulator()?))
            }
            _ => Ok(None),
        }
    }

    fn of_partitions(&self, batch: &RecordBatch, lengths: &[usize]) -> Result<ArrayRef> {
        if !self.is_constant {
            let mut start = 0;
            let mut pieces = Vec::with_capacity(lengths.len());
            for length in lengths {
                pieces.push(self.expr.evaluate(&batch.slice(start, *length))?);
                start += length;
            }
            return joined(&pieces, &self.data_type);
        }
        let arguments = self.expr.evaluate_args(batch)?;
        let mut values = Vec::with_capacity(lengths.len());
        let mut which = Vec::with_capacity(batch.num_rows());
        let mut start = 0;
        for (number, length) in lengths.iter().enumerate() {
            let Some(mut accumulator) = self.accumulator()? else {
                return internal_err!("an aggregate without an accumulator");
            };
            let rows = arguments.iter().map(|array| array.slice(start, *length));
            accumulator.update_batch(&rows.collect::<Vec<_>>())?;
            values.push(accumulator.evaluate()?);
            which.extend(std::iter::repeat_n(number as u32, *length));
            start += length;
        }
        let values = ScalarValue::iter_to_array(values)?;
        Ok(take(&values, &UInt32Array::from(which), None)?)
    }
}

/// The values of one function beside rows that belong together.
pub(super) enum Values {
    /// An array of one value, which all rows have.
    Same(ArrayRef),
    /// One for each row.
    Each(ArrayRef),
}

/// Rows and what the functions say of them.
pub(super) struct Rows {
    source: Source,
    values: Vec<Values>,
    /// Rows that were handed on.
    at: usize,
    /// Bytes of the rows in memory, and of their values.
    pub(super) bytes: usize,
    pub(super) value_bytes: usize,
}

pub(super) enum Source {
    Memory(VecDeque<RecordBatch>),
    File(SendableRecordBatchStream),
}

impl Rows {
    /// Rows that are handed on before others come, so that nothing is reserved for them.
    pub(super) fn at_once(batch: RecordBatch, values: Vec<Values>) -> Rows {
        Rows {
            source: Source::Memory(VecDeque::from([batch])),
            values,
            at: 0,
            bytes: 0,
            value_bytes: 0,
        }
    }

    pub(super) fn new(source: Source, values: Vec<Values>, bytes: usize) -> Rows {
        let arrays = values.iter().map(|values| match values {
            Values::Same(array) | Values::Each(array) => array.get_array_memory_size(),
        });
        Rows {
            value_bytes: arrays.sum(),
            source,
            values,
            at: 0,
            bytes,
        }
    }

    /// The next rows with the columns of the functions.
    pub(super) async fn next(&mut self, schema: &SchemaRef) -> Result<Option<RecordBatch>> {
        let batch = match &mut self.source {
            Source::Memory(batches) => batches.pop_front(),
            Source::File(rows) => rows.try_next().await?,
        };
        let Some(batch) = batch else {
            return Ok(None);
        };
        let rows = batch.num_rows();
        let mut columns = batch.columns().to_vec();
        for values in &self.values {
            columns.push(match values {
                Values::Same(value) => take(value, &UInt32Array::from(vec![0; rows]), None)?,
                Values::Each(values) => values.slice(self.at, rows),
            });
        }
        self.at += rows;
        with_rows(schema, columns, rows).map(Some)
    }
}

/// The values that tell the partition of a row.
pub(super) fn key_at(keys: &[ArrayRef], row: usize) -> Result<Vec<ScalarValue>> {
    keys.iter()
        .map(|key| {
            let mut value = ScalarValue::try_from_array(key, row)?;
            // It must not keep the batch.
            value.compact();
            Ok(value)
        })
        .collect()
}

/// Arrays one after the other.
pub(super) fn joined(pieces: &[ArrayRef], data_type: &DataType) -> Result<ArrayRef> {
    Ok(match pieces {
        [] => new_empty_array(data_type),
        [piece] => Arc::clone(piece),
        pieces => concat(
            &pieces
                .iter()
                .map(AsRef::as_ref)
                .collect::<Vec<&dyn Array>>(),
        )?,
    })
}

pub(super) fn with_rows(
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &options,
    )?)
}

fn aggregate(expr: &Arc<dyn WindowExpr>) -> Option<&PlainAggregateWindowExpr> {
    expr.as_any().downcast_ref::<PlainAggregateWindowExpr>()
}

/// Whether the function knows its values before the partition ends.
pub(super) fn runs(expr: &Arc<dyn WindowExpr>) -> bool {
    expr.uses_bounded_memory() && !is_constant(expr)
}

/// Whether the function looks at a frame of each row.
fn has_frames(expr: &Arc<dyn WindowExpr>) -> Result<bool> {
    Ok(match expr.as_any().downcast_ref::<StandardWindowExpr>() {
        Some(standard) => standard
            .get_standard_func_expr()
            .create_evaluator()?
            .uses_window_frame(),
        None => true,
    })
}

/// Whether the function needs the columns of ORDER BY.
fn looks_at_order(expr: &Arc<dyn WindowExpr>) -> Result<bool> {
    Ok(match expr.as_any().downcast_ref::<StandardWindowExpr>() {
        Some(standard) => {
            let evaluator = standard.get_standard_func_expr().create_evaluator()?;
            evaluator.uses_window_frame() || evaluator.include_rank()
        }
        None => true,
    })
}

/// Whether an aggregate has one value for all rows of a partition. Without an ORDER BY all of them are peers.
fn is_constant(expr: &Arc<dyn WindowExpr>) -> bool {
    let frame = expr.get_window_frame();
    let peers = frame.units == WindowFrameUnits::Range && expr.order_by().is_empty();
    let is_end = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => peers,
        bound => bound.is_unbounded(),
    };
    aggregate(expr).is_some() && is_end(&frame.start_bound) && is_end(&frame.end_bound)
}
