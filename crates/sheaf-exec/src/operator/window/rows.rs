//! Rows on their way out, and the values of the functions beside them.

use std::collections::VecDeque;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;

use super::filed::FiledRows;
use super::functions::with_rows;

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
    /// Bytes of the rows in memory, and of their values.
    pub(super) bytes: usize,
    pub(super) value_bytes: usize,
}

enum Source {
    Memory {
        batches: VecDeque<RecordBatch>,
        values: Vec<Values>,
        /// Rows that were handed on.
        at: usize,
    },
    File(Box<FiledRows>),
}

impl Rows {
    /// Rows that are handed on before others come, so that nothing is reserved for them.
    pub(super) fn at_once(batch: RecordBatch, values: Vec<ArrayRef>) -> Rows {
        let source = Source::Memory {
            batches: VecDeque::from([batch]),
            values: values.into_iter().map(Values::Each).collect(),
            at: 0,
        };
        Rows {
            source,
            bytes: 0,
            value_bytes: 0,
        }
    }

    /// Rows that wait in memory.
    pub(super) fn in_memory(
        batches: VecDeque<RecordBatch>,
        values: Vec<Values>,
        bytes: usize,
    ) -> Rows {
        let arrays = values.iter().map(|values| match values {
            Values::Same(array) | Values::Each(array) => array.get_array_memory_size(),
        });
        Rows {
            value_bytes: arrays.sum(),
            source: Source::Memory {
                batches,
                values,
                at: 0,
            },
            bytes,
        }
    }

    /// Rows that are in a file. They reserve what they take.
    pub(super) fn filed(rows: FiledRows) -> Rows {
        Rows {
            source: Source::File(Box::new(rows)),
            bytes: 0,
            value_bytes: 0,
        }
    }

    /// The next rows with the columns of the functions.
    pub(super) async fn next(&mut self, schema: &SchemaRef) -> Result<Option<RecordBatch>> {
        let (batch, columns) = match &mut self.source {
            Source::Memory {
                batches,
                values,
                at,
            } => {
                let Some(batch) = batches.pop_front() else {
                    return Ok(None);
                };
                let rows = batch.num_rows();
                let columns = values.iter().map(|values| match values {
                    Values::Same(value) => same(value, rows),
                    Values::Each(values) => Ok(values.slice(*at, rows)),
                });
                let columns = columns.collect::<Result<Vec<_>>>()?;
                *at += rows;
                (batch, columns)
            }
            Source::File(rows) => match rows.next().await? {
                Some(next) => next,
                None => return Ok(None),
            },
        };
        let rows = batch.num_rows();
        let all = batch.columns().iter().cloned().chain(columns).collect();
        with_rows(schema, all, rows).map(Some)
    }
}

/// One value for so many rows.
pub(super) fn same(value: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    Ok(take(value, &UInt32Array::from(vec![0; rows]), None)?)
}
