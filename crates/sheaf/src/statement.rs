//! Prepared statements of the library: parsed once, run many times with other values, row by row.
//!
//! Statements about a few rows run on the caller's own thread. A row's values come straight from where the row lies: no
//! batch is made of them, and nothing is allocated for a row.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::record_batch::RecordBatch;
use sheaf_sql::{Cell, CellRow, ColumnMeta, EndOfRows, OkInfo, ResultSink, cell_readers};
use sheaf_types::Value;

use crate::{Connection, Error, Result, own_file};

/// A statement that was prepared in a [`Connection`], which alone can run it. Dropping it closes it.
#[derive(Debug)]
pub struct Statement {
    id: u32,
    parameters: usize,
    columns: Vec<ColumnMeta>,
    /// Where the connection looks for statements to close. No other connection has this list.
    dropped: Arc<Mutex<Vec<u32>>>,
}

impl Drop for Statement {
    fn drop(&mut self) {
        let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        dropped.push(self.id);
    }
}

impl Statement {
    /// How many values it wants: one for each `?`.
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// The columns of its result; none if it has no result, or if that is known only when it runs.
    pub fn columns(&self) -> &[ColumnMeta] {
        &self.columns
    }
}

/// A row of a result, for as long as it is looked at.
pub struct Row<'a> {
    columns: &'a [ColumnMeta],
    cells: &'a dyn CellRow,
}

impl Row<'_> {
    /// The columns of the result.
    pub fn columns(&self) -> &[ColumnMeta] {
        self.columns
    }

    /// The value in a column, from 0. NULL if there is no such column.
    pub fn cell(&self, column: usize) -> Cell<'_> {
        match column < self.columns.len() {
            true => self.cells.cell(column),
            false => Cell::Null,
        }
    }
}

impl Connection {
    /// Prepares a statement, with `?` for values. It is kept until it is dropped or the connection ends.
    pub fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.close_dropped();
        let prepared = self.session.prepare(&self.session.text_by_mode(sql))?;
        Ok(Statement {
            id: prepared.id,
            parameters: prepared.parameters.len(),
            columns: prepared.columns,
            dropped: Arc::clone(&self.dropped),
        })
    }

    /// Runs a prepared statement with a value for each `?`, and gives its rows to `take` one by one. An error of `take`
    /// ends the statement with that error. Returns the number of rows that it changed.
    ///
    /// # Errors
    /// 1243 of a statement that another connection has prepared, those of the statement, and those of `take`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = sheaf::Database::open(directory.path(), sheaf::Options::default().with_memory_bytes(64 << 20))?;
    /// # let mut connection = database.connect()?;
    /// # connection.execute("create database shop")?;
    /// # connection.execute("use shop")?;
    /// # connection.execute("create table orders (id int primary key, price decimal(8,2))")?;
    /// use sheaf::{Cell, Value};
    ///
    /// let insert = connection.prepare("insert into orders values (?, ?)")?;
    /// for id in 1..=3 {
    ///     let price = Value::Decimal { unscaled: 995 * i128::from(id), scale: 2 };
    ///     connection.run(&insert, &[Value::Int(id), price], |_| Ok(()))?;
    /// }
    /// let find = connection.prepare("select price from orders where id = ?")?;
    /// let mut cents = None;
    /// connection.run(&find, &[Value::Int(2)], |row| {
    ///     if let Cell::Decimal { unscaled, .. } = row.cell(0) {
    ///         cents = Some(unscaled);
    ///     }
    ///     Ok(())
    /// })?;
    /// assert_eq!(cents, Some(1990));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run(
        &mut self,
        statement: &Statement,
        values: &[Value],
        take: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<u64> {
        let mut sink = RowSink {
            take,
            columns: Vec::new(),
            affected_rows: 0,
        };
        self.run_into(statement, values, &mut sink)?;
        Ok(sink.affected_rows)
    }

    pub(crate) fn run_into(
        &mut self,
        statement: &Statement,
        values: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if !Arc::ptr_eq(&self.dropped, &statement.dropped) {
            let handler = format!("{}, of another connection", statement.id);
            return Err(Error::unknown_statement_handler(&handler, "run"));
        }
        self.close_dropped();
        self.session.execute_prepared(statement.id, values, sink)
    }

    /// Closes a prepared statement now. Dropping it does so before the next one is prepared or run.
    pub fn close(&mut self, statement: Statement) {
        drop(statement);
        self.close_dropped();
    }

    fn close_dropped(&mut self) {
        let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        for id in dropped.drain(..) {
            self.session.close_prepared(id);
        }
    }
}

/// Hands on rows, one by one.
struct RowSink<F> {
    take: F,
    /// Of the rows that come in batches; single rows bring theirs.
    columns: Vec<ColumnMeta>,
    affected_rows: u64,
}

/// A row of a batch.
struct BatchRow<'a>(Vec<Cell<'a>>);

impl CellRow for BatchRow<'_> {
    fn cell(&self, column: usize) -> Cell<'_> {
        self.0[column]
    }
}

impl<F: FnMut(&Row<'_>) -> Result<()>> ResultSink for RowSink<F> {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<()> {
        let readers = cell_readers(batch, &self.columns)?;
        let mut cells = BatchRow(Vec::with_capacity(readers.len()));
        for row in 0..batch.num_rows() {
            cells.0.clear();
            cells
                .0
                .extend(readers.iter().map(|reader| reader.cell(row)));
            let columns = &self.columns;
            (self.take)(&Row {
                columns,
                cells: &cells,
            })?;
        }
        Ok(())
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn row_columns(
        &mut self,
        _columns: &[ColumnMeta],
        _schema: &arrow::datatypes::SchemaRef,
    ) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, columns: &[ColumnMeta], row: &dyn CellRow) -> Result<()> {
        (self.take)(&Row {
            columns,
            cells: row,
        })
    }

    fn end_of_rows(&mut self, _end: EndOfRows) -> Result<()> {
        Ok(())
    }

    fn wants_info(&self) -> bool {
        false
    }

    fn ok(&mut self, ok: OkInfo) -> Result<()> {
        self.affected_rows = ok.affected_rows;
        Ok(())
    }

    fn local_infile(&mut self, name: &str) -> Result<Box<dyn Read + '_>> {
        own_file(name).map(|file| file as Box<dyn Read + '_>)
    }
}
