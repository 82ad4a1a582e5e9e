//! The join's own filter, over outer rows and what was found for them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{filter_record_batch, prep_null_mask_filter, take};
use datafusion_common::cast::as_boolean_array;
use datafusion_common::{JoinSide, Result, internal_err};
use datafusion_physical_plan::joins::utils::{ColumnIndex, JoinFilter};

/// The matches that satisfy the join's own filter.
pub(super) fn keep_matches(
    filter: &JoinFilter,
    outer: &RecordBatch,
    rows: UInt32Array,
    inner: RecordBatch,
) -> Result<(UInt32Array, RecordBatch)> {
    let column = |ColumnIndex { index, side }: &ColumnIndex| -> Result<ArrayRef> {
        match side {
            JoinSide::Left => Ok(take(outer.column(*index), &rows, None)?),
            JoinSide::Right => Ok(Arc::clone(inner.column(*index))),
            JoinSide::None => internal_err!("a filter over a mark"),
        }
    };
    let columns = filter
        .column_indices()
        .iter()
        .map(column)
        .collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(filter.schema()), columns, &options)?;
    let value = filter
        .expression()
        .evaluate(&batch)?
        .into_array(rows.len())?;
    let mask = as_boolean_array(&value)?;
    let mask = if mask.null_count() > 0 {
        prep_null_mask_filter(mask)
    } else {
        mask.clone()
    };
    let rows = arrow::compute::filter(&rows, &mask)?;
    let rows = rows.as_any().downcast_ref::<UInt32Array>().cloned();
    let Some(rows) = rows else {
        return internal_err!("filtering row numbers gives row numbers");
    };
    Ok((rows, filter_record_batch(&inner, &mask)?))
}
