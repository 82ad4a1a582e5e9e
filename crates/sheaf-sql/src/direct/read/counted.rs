//! SELECT SQL_CALC_FOUND_ROWS with a LIMIT: FOUND_ROWS() is to say how many rows there are without it.
//!
//! The plan is that of the query without the LIMIT. All its rows come to a sink that counts down OFFSET and LIMIT, and
//! lets the rows between them through to the client.

use std::io::Read;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use sheaf_types::Value;
use sqlparser::ast;

use crate::direct::operands::operand::Operand;
use crate::direct::read::{limit_and_offset, row_count};
use crate::error::Result;
use crate::parser::statement::Statement;
use crate::session::result::{CellRow, ColumnMeta, EndOfRows, OkInfo, ResultSink};

/// LIMIT and OFFSET of such a query.
pub(in crate::direct) struct Window {
    limit: Option<Operand>,
    offset: Option<Operand>,
}

/// The rows of a query that its client gets.
pub(in crate::direct) struct WindowSink<'s> {
    sink: &'s mut dyn ResultSink,
    skip: u64,
    left: u64,
}

/// The statement without SQL_CALC_FOUND_ROWS and its LIMIT; `None` if it does not count so, or has other modifiers.
pub(in crate::direct) fn without_limit(statement: &Statement) -> Option<(Statement, Window)> {
    let Statement::Query(query) = statement else {
        return None;
    };
    let ast::SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let only_counts = ast::SelectModifiers {
        sql_calc_found_rows: true,
        ..ast::SelectModifiers::default()
    };
    if select.select_modifiers.as_ref() != Some(&only_counts) || !query.locks.is_empty() {
        return None;
    }
    let (limit, offset) = limit_and_offset(query.limit_clause.as_ref()?)?;
    let mut query = query.clone();
    query.limit_clause = None;
    if let ast::SetExpr::Select(select) = query.body.as_mut() {
        select.select_modifiers = None;
    }
    Some((Statement::Query(query), Window { limit, offset }))
}

impl Window {
    /// `None`: an operand is no number of rows.
    pub(in crate::direct) fn sink<'s>(
        &self,
        parameters: &[Value],
        sink: &'s mut dyn ResultSink,
    ) -> Option<WindowSink<'s>> {
        Some(WindowSink {
            sink,
            skip: row_count(self.offset.as_ref(), parameters, 0)?,
            left: row_count(self.limit.as_ref(), parameters, u64::MAX)?,
        })
    }
}

impl ResultSink for WindowSink<'_> {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.sink.columns(columns)
    }

    fn row_columns(&mut self, columns: &[ColumnMeta], schema: &SchemaRef) -> Result<()> {
        self.sink.row_columns(columns, schema)
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<()> {
        let rows = batch.num_rows() as u64;
        let skipped = self.skip.min(rows);
        let shown = self.left.min(rows - skipped);
        self.skip -= skipped;
        self.left -= shown;
        match shown {
            0 => Ok(()),
            // Both are numbers of rows of the batch.
            _ => self
                .sink
                .rows(&batch.slice(skipped as usize, shown as usize)),
        }
    }

    fn takes_rows(&self) -> bool {
        self.sink.takes_rows()
    }

    fn row(&mut self, columns: &[ColumnMeta], row: &dyn CellRow) -> Result<()> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(());
        }
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        self.sink.row(columns, row)
    }

    fn end_of_rows(&mut self, end: EndOfRows) -> Result<()> {
        self.sink.end_of_rows(end)
    }

    fn wants_info(&self) -> bool {
        self.sink.wants_info()
    }

    fn ok(&mut self, ok: OkInfo) -> Result<()> {
        self.sink.ok(ok)
    }

    fn written_bytes(&self) -> u64 {
        self.sink.written_bytes()
    }

    fn local_infile(&mut self, name: &str) -> Result<Box<dyn Read + '_>> {
        self.sink.local_infile(name)
    }
}
