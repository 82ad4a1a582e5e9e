//! FIRST_VALUE, LAST_VALUE and NTH_VALUE over whole partitions: one value for all rows.

use std::fmt;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue, not_impl_err};
use datafusion_physical_plan::Accumulator;

/// Which row of a partition.
#[derive(Clone, Copy, Debug)]
pub(super) enum EdgeRow {
    /// The first one has the number 1.
    Number(u64),
    Last,
}

/// The value of one row, as an aggregate of all rows in their order. NULL if there is no such row.
pub(super) struct Edge {
    row: EdgeRow,
    seen: u64,
    value: ScalarValue,
}

impl Edge {
    pub(super) fn new(row: EdgeRow, data_type: &DataType) -> Result<Edge> {
        Ok(Edge {
            row,
            seen: 0,
            value: ScalarValue::try_from(data_type)?,
        })
    }
}

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Edge({:?} of {})", self.row, self.seen)
    }
}

impl Accumulator for Edge {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first() else {
            return Ok(());
        };
        let rows = values.len() as u64;
        let at = match self.row {
            EdgeRow::Last => rows.checked_sub(1),
            EdgeRow::Number(number) => number.checked_sub(self.seen + 1),
        };
        if let Some(at) = at.filter(|at| *at < rows) {
            self.value = ScalarValue::try_from_array(values, at as usize)?;
            // It must not keep the batch.
            self.value.compact();
        }
        self.seen += rows;
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        not_impl_err!("parts of a window")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        not_impl_err!("parts of a window")
    }
}
