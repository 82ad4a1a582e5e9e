//! Results of the demo's statements: rows as texts, in memory.

use std::io::Read;

use arrow::record_batch::RecordBatch;
use arrow::util::display::array_value_to_string;
use sheaf_sql::{ColumnMeta, EndOfRows, OkInfo, ResultSink, Session, SqlError};

use sheaf_cli::tpch::TableReader;

/// Runs a statement.
pub(crate) fn query(session: &mut Session, sql: &str) -> Result<Collected, SqlError> {
    let mut sink = Collected::default();
    session.execute(sql, &mut sink)?;
    Ok(sink)
}

/// The only value of a result.
pub(crate) fn one_number(session: &mut Session, sql: &str) -> Result<u64, SqlError> {
    let rows = query(session, sql)?.rows;
    let value = rows.first().and_then(|row| row.first()?.parse().ok());
    value.ok_or_else(|| SqlError::unknown(format!("no number: {sql}")))
}

/// A sink that keeps a result as text, and hands out one file.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) names: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) file: Option<TableReader>,
}

impl ResultSink for Collected {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        self.names = columns.iter().map(|column| column.name.clone()).collect();
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), SqlError> {
        for row in 0..batch.num_rows() {
            let fields = batch.columns().iter().map(|column| {
                array_value_to_string(column, row)
                    .map_err(|error| SqlError::unknown(error.to_string()))
            });
            self.rows.push(fields.collect::<Result<_, _>>()?);
        }
        Ok(())
    }

    fn end_of_rows(&mut self, _end: EndOfRows) -> Result<(), SqlError> {
        Ok(())
    }

    fn ok(&mut self, _ok: OkInfo) -> Result<(), SqlError> {
        Ok(())
    }

    fn local_infile(&mut self, name: &str) -> Result<Box<dyn Read + '_>, SqlError> {
        match self.file.take() {
            Some(reader) => Ok(Box::new(reader)),
            None => Err(SqlError::unknown(format!(
                "there is no file {name} to send"
            ))),
        }
    }
}
