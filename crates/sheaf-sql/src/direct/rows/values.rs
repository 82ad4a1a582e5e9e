//! The rows of a query that others go on with: a subquery, a query in a FROM, what a statement changes or locks.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::error::{Result, SqlError};
use crate::query::batch_builder::BatchBuilder;
use crate::session::result::{CellRow, ColumnMeta, EndOfRows, OkInfo, Origin, ResultSink};

/// Bytes of rows that a direct plan keeps in memory. The vectorised path has files for more.
const MOST_KEPT_BYTES: usize = 4 << 20;

/// Keeps the rows of a query.
#[derive(Default)]
pub(in crate::direct) struct Values {
    builder: Option<BatchBuilder>,
    bytes: usize,
    is_full: bool,
    pub(in crate::direct) batches: Vec<RecordBatch>,
    /// Where the values of each column come from.
    pub(in crate::direct) origins: Vec<Origin>,
}

impl ResultSink for Values {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.origins = columns.iter().map(Origin::from).collect();
        Ok(())
    }

    fn row_columns(&mut self, columns: &[ColumnMeta], schema: &SchemaRef) -> Result<()> {
        self.columns(columns)?;
        self.builder = Some(BatchBuilder::new(schema)?);
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<()> {
        self.count(batch.get_array_memory_size())?;
        self.batches.push(batch.clone());
        Ok(())
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn row(&mut self, _columns: &[ColumnMeta], row: &dyn CellRow) -> Result<()> {
        match &mut self.builder {
            Some(builder) => {
                let bytes = builder.append(row)?;
                self.count(bytes)
            }
            None => Ok(()),
        }
    }

    fn end_of_rows(&mut self, _end: EndOfRows) -> Result<()> {
        if let Some(builder) = &mut self.builder
            && builder.rows() > 0
        {
            self.batches.push(builder.finish()?);
        }
        Ok(())
    }

    fn ok(&mut self, _ok: OkInfo) -> Result<()> {
        Ok(())
    }

    fn local_infile(&mut self, _name: &str) -> Result<Box<dyn std::io::Read + '_>> {
        Ok(Box::new(std::io::empty()))
    }
}

impl Values {
    /// # Errors
    /// They are too many, so that the query ends: [`outcome`](Self::outcome) knows that.
    fn count(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.bytes > MOST_KEPT_BYTES {
            self.is_full = true;
            self.builder = None;
            self.batches.clear();
            return Err(SqlError::unknown(
                "a direct plan's rows take too much memory",
            ));
        }
        Ok(())
    }

    /// What running a query into this has come to: false if the vectorised path has to do it.
    pub(in crate::direct) fn outcome(&self, is_done: Result<bool>) -> Result<bool> {
        match self.is_full {
            true => Ok(false),
            false => is_done,
        }
    }
}
