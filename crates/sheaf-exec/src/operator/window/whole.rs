//! A partition whose functions know their values at its end.

use std::collections::VecDeque;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use datafusion_common::Result;
use datafusion_common::utils::memory::get_record_batch_memory_size;
use datafusion_execution::TaskContext;
use datafusion_physical_plan::Accumulator;

use super::filed::Filed;
use super::functions::Functions;
use super::rows::{Rows, Values};
use crate::operator::compacted_exec::detached;

/// See the module's comment.
pub(super) struct Whole {
    /// Of the functions that have one value for all rows.
    accumulators: Vec<Option<Box<dyn Accumulator>>>,
    rows: VecDeque<RecordBatch>,
    rows_bytes: usize,
    /// Once there was no memory for the rows.
    file: Option<Box<Filed>>,
    count: usize,
}

/// A partition that is complete: in a file, with the values of the functions that have one for all rows, or with those
/// of all functions.
pub(super) enum Ended {
    Filed(Box<Filed>, Vec<Option<ArrayRef>>),
    Rows(Rows),
}

impl Whole {
    pub(super) fn new(functions: &Functions) -> Result<Whole> {
        let accumulators = functions.all.iter().map(|function| function.accumulator());
        Ok(Whole {
            accumulators: accumulators.collect::<Result<_>>()?,
            rows: VecDeque::new(),
            rows_bytes: 0,
            file: None,
            count: 0,
        })
    }

    pub(super) fn add(&mut self, functions: &Functions, rows: RecordBatch) -> Result<()> {
        let each = functions.all.iter().zip(&mut self.accumulators);
        for (function, accumulator) in each {
            if let Some(accumulator) = accumulator {
                accumulator.update_batch(&function.expr.evaluate_args(&rows)?)?;
            }
        }
        self.count += rows.num_rows();
        let rows = detached(rows)?;
        match &mut self.file {
            Some(file) => file.append(functions, &rows),
            None => {
                self.rows_bytes += get_record_batch_memory_size(&rows);
                self.rows.push_back(rows);
                Ok(())
            }
        }
    }

    /// Puts the rows into a file. False if they are there already, or if that would give no memory back.
    pub(super) fn spill(&mut self, functions: &Functions, context: &TaskContext) -> Result<bool> {
        if self.file.is_some() || self.rows.is_empty() {
            return Ok(false);
        }
        let mut file = Box::new(Filed::new(functions, context)?);
        for rows in std::mem::take(&mut self.rows) {
            file.append(functions, &rows)?;
        }
        self.file = Some(file);
        self.rows_bytes = 0;
        Ok(true)
    }

    /// Bytes of the rows that wait in memory, which can go to a file.
    pub(super) fn rows_bytes(&self) -> usize {
        self.rows_bytes
    }

    /// Bytes of what stays in memory.
    pub(super) fn kept_bytes(&self) -> usize {
        let accumulators = self.accumulators.iter().flatten();
        let accumulators: usize = accumulators.map(|accumulator| accumulator.size()).sum();
        accumulators + self.file.as_ref().map_or(0, |file| file.kept_bytes())
    }

    /// What it takes for a moment to compute the values of rows that are in memory.
    pub(super) fn bytes_to_end(&self, functions: &Functions) -> usize {
        if self.file.is_some() {
            return 0;
        }
        let needs_used = self.accumulators.iter().any(Option::is_none);
        let together = match needs_used && self.rows.len() > 1 {
            true => self.rows_bytes,
            false => 0,
        };
        functions.value_bytes(self.count) + together
    }

    /// The partition, which is complete.
    pub(super) fn end(mut self, functions: &Functions) -> Result<Ended> {
        let constants = self.accumulators.iter_mut().map(|accumulator| {
            let value = accumulator
                .as_mut()
                .map(|accumulator| accumulator.evaluate());
            value.map(|value| value?.to_array_of_size(1)).transpose()
        });
        let constants = constants.collect::<Result<Vec<_>>>()?;
        if let Some(file) = self.file {
            return Ok(Ended::Filed(file, constants));
        }
        let mut used = None;
        let mut values = Vec::with_capacity(functions.all.len());
        for (function, constant) in functions.all.iter().zip(constants) {
            if let Some(value) = constant {
                values.push(Values::Same(value));
                continue;
            }
            let used = match &used {
                Some(used) => used,
                None => &*used.insert(self.used_rows(functions)?),
            };
            values.push(Values::Each(function.expr.evaluate(used)?));
        }
        let rows = Rows::in_memory(self.rows, values, self.rows_bytes);
        Ok(Ended::Rows(rows))
    }

    /// What functions use of all rows, in one batch.
    fn used_rows(&self, functions: &Functions) -> Result<RecordBatch> {
        let used = self.rows.iter().map(|rows| functions.used_columns(rows));
        let used = used.collect::<Result<Vec<_>>>()?;
        Ok(concat_batches(functions.used_schema(), &used)?)
    }
}
