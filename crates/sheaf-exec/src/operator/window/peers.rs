//! How many rows follow one another that are equal in the ORDER BY of a window, of a partition that lies in a file.
//!
//! PERCENT_RANK and CUME_DIST need no more of the rows than that: the rows before the peers of a row, the peers, and
//! all rows. The numbers go to a file of their own, because there may be as many as rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::compute::partition;
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion_common::{Result, ScalarValue, internal_datafusion_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use futures::TryStreamExt;

use super::functions::key_at;
use crate::operator::row_file::RowFile;

/// So many numbers are written at a time.
const NUMBERS: usize = 4096;

/// The numbers on their way into the file.
pub(super) struct PeersOut {
    file: RowFile,
    numbers: Vec<i64>,
    /// The peers that the last row belongs to: what they are equal in, and how many there are as yet.
    key: Vec<ScalarValue>,
    open: i64,
}

/// Rows of one batch that are peers.
pub(super) struct Peers {
    /// The rows of the partition before the first peer, and all peers, in this batch and in others.
    pub(super) before: i64,
    pub(super) all: i64,
    /// Those of them in the batch.
    pub(super) rows: usize,
}

/// The numbers on their way out of the file.
pub(super) struct PeersIn {
    file: SendableRecordBatchStream,
    numbers: Int64Array,
    at: usize,
    before: i64,
    all: i64,
    /// Peers that have not come.
    left: i64,
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(
        "peers",
        DataType::Int64,
        false,
    )]))
}

impl PeersOut {
    pub(super) fn new(context: &TaskContext) -> Result<PeersOut> {
        Ok(PeersOut {
            file: RowFile::new(schema(), "window", context)?,
            numbers: Vec::new(),
            key: Vec::new(),
            open: 0,
        })
    }

    /// Rows have come, in which these are the columns of ORDER BY.
    pub(super) fn add(&mut self, order_by: &[ArrayRef], rows: usize) -> Result<()> {
        // Without ORDER BY all rows are peers.
        let ranges = match order_by.is_empty() {
            true => std::iter::once(0..rows).collect(),
            false => partition(order_by)?.ranges(),
        };
        for (number, range) in ranges.iter().enumerate() {
            let goes_on = number == 0 && (self.open == 0 || self.key == key_at(order_by, 0)?);
            if !goes_on {
                self.close()?;
            }
            self.open += range.len() as i64;
        }
        if let Some(last) = ranges.last() {
            self.key = key_at(order_by, last.start)?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        self.numbers.push(std::mem::take(&mut self.open));
        match self.numbers.len() >= NUMBERS {
            true => self.write(),
            false => Ok(()),
        }
    }

    fn write(&mut self) -> Result<()> {
        let numbers = Int64Array::from(std::mem::take(&mut self.numbers));
        self.file
            .append(&RecordBatch::try_new(schema(), vec![Arc::new(numbers)])?)
    }

    pub(super) fn end(mut self) -> Result<PeersIn> {
        self.close()?;
        if !self.numbers.is_empty() {
            self.write()?;
        }
        Ok(PeersIn {
            file: self.file.read()?,
            numbers: Int64Array::from(Vec::<i64>::new()),
            at: 0,
            before: 0,
            all: 0,
            left: 0,
        })
    }
}

impl PeersIn {
    /// The peers in the next batch, which has so many rows.
    pub(super) async fn next(&mut self, mut rows: usize) -> Result<Vec<Peers>> {
        let mut found = Vec::new();
        while rows > 0 {
            if self.left == 0 {
                self.before += self.all;
                self.all = self.next_number().await?;
                self.left = self.all;
            }
            let here = rows.min(self.left as usize);
            found.push(Peers {
                before: self.before,
                all: self.all,
                rows: here,
            });
            self.left -= here as i64;
            rows -= here;
        }
        Ok(found)
    }

    async fn next_number(&mut self) -> Result<i64> {
        while self.at == self.numbers.len() {
            let numbers = self.file.try_next().await?;
            let numbers = numbers.ok_or_else(|| internal_datafusion_err!("rows without peers"))?;
            self.numbers = numbers.column(0).as_primitive::<Int64Type>().clone();
            self.at = 0;
        }
        self.at += 1;
        Ok(self.numbers.value(self.at - 1))
    }
}
