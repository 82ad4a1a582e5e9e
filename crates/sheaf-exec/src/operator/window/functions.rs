//! The functions of a window, and their values beside the rows.

use std::ops::Range;
use std::sync::Arc;

use super::edge::{Edge, EdgeRow};
use super::rows::Rows;
use arrow::array::{
    Array, ArrayRef, NullArray, RecordBatch, RecordBatchOptions, UInt32Array, new_empty_array,
};
use arrow::compute::{concat, partition, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::{WindowFrameBound, WindowFrameUnits};
use datafusion_physical_expr::expressions::Literal;
use datafusion_physical_expr::utils::collect_columns;
use datafusion_physical_expr::window::{PlainAggregateWindowExpr, StandardWindowExpr, WindowExpr};
use datafusion_physical_plan::windows::WindowUDFExpr;
use datafusion_physical_plan::{Accumulator, PhysicalExpr};

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
    pub(super) way: Way,
    /// What it holds for each row while values are computed.
    value_bytes: usize,
}

/// How a function knows its values of a partition that does not fit in memory.
pub(super) enum Way {
    /// One value for all rows, made as they come.
    Constant,
    /// From the rows before and some rows after.
    Forward,
    /// From the rows after and some rows before: this one, of the rows in reverse.
    Backward(Arc<dyn WindowExpr>),
    /// From the number of rows: NTILE of so many.
    Tiles(i64),
    /// From the number of rows, of those before and of those that are equal in ORDER BY.
    PercentRank,
    CumeDist,
    /// From all arguments at once.
    Together,
}

impl Way {
    fn of(expr: &Arc<dyn WindowExpr>) -> Result<Way> {
        if is_constant(expr) || edge(expr).is_some() {
            return Ok(Way::Constant);
        }
        if runs(expr) {
            return Ok(Way::Forward);
        }
        if let Some(function) = udf(expr) {
            let number = function.args().first().and_then(constant_number);
            match (function.fun().name(), number) {
                ("ntile", Some(number)) if number > 0 => return Ok(Way::Tiles(number)),
                ("percent_rank", _) => return Ok(Way::PercentRank),
                ("cume_dist", _) => return Ok(Way::CumeDist),
                _ => {}
            }
        }
        Ok(match expr.get_reverse_expr() {
            Some(reversed) if runs(&reversed) => Way::Backward(reversed),
            _ => Way::Together,
        })
    }
}

impl Functions {
    pub(super) fn new(expressions: &[Arc<dyn WindowExpr>], input: &SchemaRef) -> Result<Functions> {
        let Some(first) = expressions.first() else {
            return internal_err!("a window without functions");
        };
        let all_run = expressions.iter().all(runs);
        let mut used = vec![false; input.fields().len()];
        // Aggregates over whole partitions look at rows as they come.
        for expr in expressions {
            if is_constant(expr) || edge(expr).is_some() {
                continue;
            }
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
            let way = Way::of(expr)?;
            Ok(Function {
                expr: Arc::clone(expr),
                data_type: expr.field()?.data_type().clone(),
                value_bytes: match has_frames(expr)? {
                    _ if matches!(way, Way::Constant) => 0,
                    true => FRAMED_VALUE_BYTES,
                    false => VALUE_BYTES,
                },
                way,
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
        let values = functions.map(|function| function.of_partitions(&batch, lengths));
        let values = values.collect::<Result<_>>()?;
        Ok(Rows::at_once(batch, values))
    }
}

impl Function {
    /// An accumulator, if the function has one value for all rows of a partition.
    pub(super) fn accumulator(&self) -> Result<Option<Box<dyn Accumulator>>> {
        if !matches!(self.way, Way::Constant) {
            return Ok(None);
        }
        match aggregate(&self.expr) {
            Some(plain) => Ok(Some(plain.get_aggregate_expr().create_accumulator()?)),
            None => match edge(&self.expr) {
                Some(row) => Ok(Some(Box::new(Edge::new(row, &self.data_type)?))),
                None => internal_err!("a constant of no rows"),
            },
        }
    }

    fn of_partitions(&self, batch: &RecordBatch, lengths: &[usize]) -> Result<ArrayRef> {
        if !matches!(self.way, Way::Constant) {
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

/// A function that is no aggregate.
fn udf(expr: &Arc<dyn WindowExpr>) -> Option<&WindowUDFExpr> {
    let standard = expr.as_any().downcast_ref::<StandardWindowExpr>()?;
    standard.get_standard_func_expr().as_any().downcast_ref()
}

fn constant_number(expr: &Arc<dyn PhysicalExpr>) -> Option<i64> {
    let value = expr.downcast_ref::<Literal>()?.value();
    match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(number)) => number,
        _ => None,
    }
}

/// The row of a partition that a function takes for all of its rows, because the frame of each is the partition.
fn edge(expr: &Arc<dyn WindowExpr>) -> Option<EdgeRow> {
    let function = udf(expr)?;
    if runs(expr) || !is_whole_partition(expr) || may_ignore_nulls(function) {
        return None;
    }
    match function.fun().name() {
        "first_value" => Some(EdgeRow::Number(1)),
        "last_value" => Some(EdgeRow::Last),
        "nth_value" => {
            let number = function.args().get(1).and_then(constant_number)?;
            Some(EdgeRow::Number(u64::try_from(number).ok()?))
        }
        _ => None,
    }
}

/// Whether a function passes over NULL. It does not say so but in its text, where other things may say the same.
fn may_ignore_nulls(function: &WindowUDFExpr) -> bool {
    format!("{function:?}").contains("ignore_nulls: true")
}

fn aggregate(expr: &Arc<dyn WindowExpr>) -> Option<&PlainAggregateWindowExpr> {
    expr.as_any().downcast_ref::<PlainAggregateWindowExpr>()
}

/// Whether the function knows its values before the partition ends.
pub(super) fn runs(expr: &Arc<dyn WindowExpr>) -> bool {
    expr.uses_bounded_memory() && !is_constant(expr) && !reaches_peers(expr)
}

/// Whether a frame that ends before its row may have rows behind it: RANGE .. AND n PRECEDING has all NULLs for NULL.
fn reaches_peers(expr: &Arc<dyn WindowExpr>) -> bool {
    let frame = expr.get_window_frame();
    let ends_before = matches!(&frame.end_bound, WindowFrameBound::Preceding(n) if !n.is_null());
    frame.units != WindowFrameUnits::Rows && ends_before
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

/// Whether an aggregate has one value for all rows of a partition.
fn is_constant(expr: &Arc<dyn WindowExpr>) -> bool {
    aggregate(expr).is_some() && is_whole_partition(expr)
}

/// Whether each row's frame is the partition. Without an ORDER BY all of its rows are peers.
fn is_whole_partition(expr: &Arc<dyn WindowExpr>) -> bool {
    let frame = expr.get_window_frame();
    let peers = frame.units == WindowFrameUnits::Range && expr.order_by().is_empty();
    let is_end = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => peers,
        bound => bound.is_unbounded(),
    };
    is_end(&frame.start_bound) && is_end(&frame.end_bound)
}
