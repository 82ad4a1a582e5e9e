//! A partition whose functions know their values at its end.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use datafusion_common::Result;
use datafusion_common::utils::memory::get_record_batch_memory_size;
use datafusion_execution::TaskContext;
use datafusion_physical_plan::Accumulator;

use super::functions::{Functions, Rows, Source, Values};
use crate::operator::detached_exec::detached;
use crate::operator::row_file::RowFile;

/// See the module's comment.
pub(super) struct Whole {
    /// Of the functions that have one value for all rows.
    accumulators: Vec<Option<Box<dyn Accumulator>>>,
    rows: VecDeque<RecordBatch>,
    rows_bytes: usize,
    /// Once there was no memory for the rows.
    file: Option<RowFile>,
    /// The columns that the other functions use, of rows that are in the file.
    used: Vec<RecordBatch>,
    used_bytes: usize,
    count: usize,
}

impl Whole {
    pub(super) fn new(functions: &Functions) -> Result<Whole> {
        let accumulators = functions.all.iter().map(|function| function.accumulator());
        Ok(Whole {
            accumulators: accumulators.collect::<Result<_>>()?,
            rows: VecDeque::new(),
            rows_bytes: 0,
            file: None,
            used: Vec::new(),
            used_bytes: 0,
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
            Some(file) => {
                file.append(&rows)?;
                self.keep_used(functions, &rows)
            }
            None => {
                self.rows_bytes += get_record_batch_memory_size(&rows);
                self.rows.push_back(rows);
                Ok(())
            }
        }
    }

    /// Keeps what functions use of rows in a file, if any of them needs it at the end.
    fn keep_used(&mut self, functions: &Functions, rows: &RecordBatch) -> Result<()> {
        if self.accumulators.iter().any(Option::is_none) {
            let used = detached(functions.used_columns(rows)?)?;
            self.used_bytes += get_record_batch_memory_size(&used);
            self.used.push(used);
        }
        Ok(())
    }

    /// Puts the rows into a file. False if they are there already, or if that would give no memory back.
    pub(super) fn spill(&mut self, functions: &Functions, context: &TaskContext) -> Result<bool> {
        if self.file.is_some() || self.rows.is_empty() {
            return Ok(false);
        }
        let mut file = RowFile::new(Arc::clone(functions.input()), "window", context)?;
        for rows in std::mem::take(&mut self.rows) {
            file.append(&rows)?;
            self.keep_used(functions, &rows)?;
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
        self.used_bytes + accumulators
    }

    /// What it takes for a moment to compute the values.
    pub(super) fn bytes_to_end(&self, functions: &Functions) -> usize {
        let needs_used = self.accumulators.iter().any(Option::is_none);
        let is_one = self.used.len() + self.rows.len() == 1;
        let together = match needs_used && !is_one {
            true => self.used_bytes + self.rows_bytes,
            false => 0,
        };
        functions.value_bytes(self.count) + together
    }

    /// The rows of the partition, which is complete.
    pub(super) fn end(mut self, functions: &Functions) -> Result<Rows> {
        let mut used = None;
        let mut values = Vec::with_capacity(functions.all.len());
        for (position, function) in functions.all.iter().enumerate() {
            if let Some(accumulator) = &mut self.accumulators[position] {
                values.push(Values::Same(accumulator.evaluate()?.to_array_of_size(1)?));
                continue;
            }
            let used = match &used {
                Some(used) => used,
                None => &*used.insert(self.used_rows(functions)?),
            };
            values.push(Values::Each(function.expr.evaluate(used)?));
        }
        let bytes = self.rows_bytes;
        let source = match self.file {
            Some(file) => Source::File(file.read()?),
            None => Source::Memory(self.rows),
        };
        Ok(Rows::new(source, values, bytes))
    }

    /// What functions use of all rows, in one batch.
    fn used_rows(&mut self, functions: &Functions) -> Result<RecordBatch> {
        if self.file.is_none() {
            let used = self.rows.iter().map(|rows| functions.used_columns(rows));
            self.used = used.collect::<Result<_>>()?;
        }
        Ok(concat_batches(
            functions.used_schema(),
            &std::mem::take(&mut self.used),
        )?)
    }
}
