//! A sink for results that nobody asked for.

use std::io::Read;

use arrow::record_batch::RecordBatch;

use super::result::{ColumnMeta, EndOfRows, OkInfo, ResultSink};
use crate::error::{Result, SqlError};

/// Takes the results that were not asked for.
pub(crate) struct IgnoredResult;

impl ResultSink for IgnoredResult {
    fn columns(&mut self, _columns: &[ColumnMeta]) -> Result<()> {
        Ok(())
    }

    fn rows(&mut self, _batch: &RecordBatch) -> Result<()> {
        Ok(())
    }

    fn end_of_rows(&mut self, _end: EndOfRows) -> Result<()> {
        Ok(())
    }

    fn ok(&mut self, _ok: OkInfo) -> Result<()> {
        Ok(())
    }

    fn local_infile(&mut self, _name: &str) -> Result<Box<dyn Read + '_>> {
        Err(SqlError::unknown(
            "a statement of the engine's own reads a file",
        ))
    }
}
