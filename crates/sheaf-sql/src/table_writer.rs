//! Rows on their way into a table, for INSERT and LOAD DATA alike.
//!
//! Two ways lead in. An empty table is bulk loaded: rows are sorted and its trees are built bottom up; nothing is in
//! the table before the end. Any other table gets its rows one by one, and the statement's undo takes them out
//! again when a later row fails. Either way a statement that fails leaves the table as it was.

use std::collections::BTreeSet;
use std::sync::Arc;

use sheaf_storage::Transaction;
use sheaf_table::convert::{Mode, text_to_column, to_column};
use sheaf_table::{
    BulkLoad, BulkLoadOptions, Column, ColumnIssue, ColumnProblem, ColumnType, DefaultValue, Table,
    TableError, Value, WriteGuard,
};

use crate::ddl::SessionProgress;
use crate::error::{Result, SqlError};
use crate::session::{Session, SessionHandle};
use crate::sort_memory::SortMemory;
use crate::warnings::Warnings;

/// How many rows go in between two looks at the kill flag.
pub(crate) const ROWS_PER_CANCEL_CHECK: u64 = 1024;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) rows: u64,
    /// Rows left out because their key was there (IGNORE).
    pub(crate) duplicates: u64,
    /// The first value that AUTO_INCREMENT gave out; 0 if none.
    pub(crate) first_auto_increment: u64,
}

impl Written {
    /// The text that goes with the OK of INSERT.
    pub(crate) fn info(&self, warnings: u64) -> String {
        format!(
            "Records: {}  Duplicates: {}  Warnings: {warnings}",
            self.rows + self.duplicates,
            self.duplicates
        )
    }
}

/// How rows that do not fit are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteOptions {
    pub(crate) mode: Mode,
    /// A duplicate key is a warning and the row is left out.
    pub(crate) ignore_duplicates: bool,
    /// An empty table may be bulk loaded: the statement brings many rows.
    pub(crate) bulk: bool,
}

/// Converts values to a table's columns, with warnings.
pub(crate) struct RowShape {
    table: Arc<Table>,
    mode: Mode,
    /// Columns that the statement gives, in its order.
    targets: Vec<usize>,
    /// A row with the defaults of the others.
    template: Vec<Value>,
}

impl RowShape {
    /// `now_micros` is what CURRENT_TIMESTAMP stands for. Error 1364 for a column that is not given, has no
    /// default and cannot be NULL, in strict mode.
    pub(crate) fn new(
        table: &Arc<Table>,
        targets: Vec<usize>,
        mode: Mode,
        now_micros: i64,
        warnings: &mut Warnings,
    ) -> Result<RowShape> {
        let definition = &table.definition;
        let mut template = Vec::with_capacity(definition.columns.len());
        for (position, column) in definition.columns.iter().enumerate() {
            if targets.contains(&position) {
                template.push(Value::Null);
                continue;
            }
            template.push(match default_of(column, now_micros) {
                Some(value) => value,
                None => {
                    let issue = ColumnIssue {
                        problem: ColumnProblem::NoDefault,
                        column: column.name.clone(),
                        row: 1,
                    };
                    if mode == Mode::Strict {
                        return Err(issue.into());
                    }
                    warnings.warn(issue.mysql_code(), issue.to_string());
                    implicit_default(column)
                }
            });
        }
        Ok(RowShape {
            table: Arc::clone(table),
            mode,
            targets,
            template,
        })
    }

    pub(crate) fn targets(&self) -> &[usize] {
        &self.targets
    }

    /// A row to fill.
    pub(crate) fn new_row(&self) -> Vec<Value> {
        self.template.clone()
    }

    fn column(&self, position: usize) -> &Column {
        &self.table.definition.columns[position]
    }

    /// Puts a value into a column of the row.
    pub(crate) fn put(
        &self,
        row: &mut [Value],
        position: usize,
        value: &Value,
        row_number: u64,
        warnings: &mut Warnings,
    ) -> Result<()> {
        let column = self.column(position);
        if column.auto_increment && value.is_null() {
            row[position] = Value::Null;
            return Ok(());
        }
        let problem = match to_column(column, value, self.mode) {
            Ok((converted, problem)) => {
                row[position] = converted;
                problem
            }
            Err(problem) => return Err(issue(column, problem, row_number).into()),
        };
        self.note(column, problem, row_number, warnings);
        Ok(())
    }

    /// [`Self::put`] for a text, into a value whose memory is used again.
    pub(crate) fn put_text(
        &self,
        row: &mut [Value],
        position: usize,
        text: &str,
        row_number: u64,
        warnings: &mut Warnings,
    ) -> Result<()> {
        let column = self.column(position);
        match text_to_column(column, text, self.mode, &mut row[position]) {
            Ok(problem) => {
                self.note(column, problem, row_number, warnings);
                Ok(())
            }
            Err(problem) => Err(issue(column, problem, row_number).into()),
        }
    }

    fn note(
        &self,
        column: &Column,
        problem: Option<ColumnProblem>,
        row_number: u64,
        warnings: &mut Warnings,
    ) {
        if let Some(problem) = problem {
            // What would be an error "too long" is a warning "truncated".
            let problem = match problem {
                ColumnProblem::TooLong => ColumnProblem::Truncated,
                problem => problem,
            };
            let issue = issue(column, problem, row_number);
            warnings.warn(issue.mysql_code(), issue.to_string());
        }
    }

    /// The column's DEFAULT, for the keyword in VALUES.
    pub(crate) fn put_default(
        &self,
        row: &mut [Value],
        position: usize,
        now_micros: i64,
    ) -> Result<()> {
        let column = self.column(position);
        row[position] = default_of(column, now_micros)
            .ok_or_else(|| SqlError::no_default_for_field(&column.name))?;
        Ok(())
    }

    /// The column's own value for a field that a file does not have.
    pub(crate) fn put_missing(&self, row: &mut [Value], position: usize, now_micros: i64) {
        let column = self.column(position);
        row[position] = default_of(column, now_micros).unwrap_or_else(|| implicit_default(column));
    }
}

pub(crate) fn issue(column: &Column, problem: ColumnProblem, row: u64) -> ColumnIssue {
    ColumnIssue {
        problem,
        column: column.name.clone(),
        row,
    }
}

/// A column's default; `None` if it has none and cannot be NULL.
pub(crate) fn default_of(column: &Column, now_micros: i64) -> Option<Value> {
    match &column.default {
        Some(DefaultValue::Value(value)) => Some(value.clone()),
        Some(DefaultValue::CurrentTimestamp) => Some(current_timestamp(&column.ty, now_micros)),
        None if column.nullable || column.auto_increment => Some(Value::Null),
        None => None,
    }
}

pub(crate) fn current_timestamp(ty: &ColumnType, now_micros: i64) -> Value {
    let cut = |fsp: u8| {
        let unit = 10i64.pow(6 - u32::from(fsp.min(6)));
        now_micros - now_micros.rem_euclid(unit)
    };
    match ty {
        ColumnType::Timestamp { fsp } => Value::Timestamp(cut(*fsp)),
        ColumnType::DateTime { fsp } => Value::DateTime(cut(*fsp)),
        _ => Value::Null,
    }
}

/// What a NOT NULL column without a default gets where that is only a warning: 0, the empty text, the first label.
fn implicit_default(column: &Column) -> Value {
    to_column(column, &Value::Null, Mode::Lenient).map_or(Value::Null, |(value, _)| value)
}

/// Where the rows go.
enum Target {
    /// Fields are dropped in this order: rows are taken back before the next writer comes.
    Rows {
        transaction: Transaction,
        guard: WriteGuard,
    },
    Bulk {
        load: Box<BulkLoad>,
        _memory: SortMemory,
    },
}

/// Writes rows into one table under its writer lock. Dropped without [`Self::finish`]: nothing remains.
pub(crate) struct TableWriter {
    table: Arc<Table>,
    target: Target,
    options: WriteOptions,
    written: Written,
    handle: Arc<SessionHandle>,
}

impl TableWriter {
    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Rows given so far, those left out included.
    pub(crate) fn rows_seen(&self) -> u64 {
        self.written.rows + self.written.duplicates
    }

    /// Writes a row: one value per column, each of the column's type.
    pub(crate) fn write(&mut self, row: &[Value], warnings: &mut Warnings) -> Result<()> {
        if self.rows_seen().is_multiple_of(ROWS_PER_CANCEL_CHECK) {
            self.handle.cancel_flag().check()?;
        }
        let outcome = match &mut self.target {
            Target::Bulk { load, .. } => load.append(row)?,
            Target::Rows { guard, transaction } => match guard.insert(transaction, row) {
                Ok(outcome) => outcome,
                Err(error @ TableError::DuplicateKey { .. }) if self.options.ignore_duplicates => {
                    warnings.warn(error.mysql_code(), error.to_string());
                    self.written.duplicates += 1;
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            },
        };
        if self.written.first_auto_increment == 0 {
            self.written.first_auto_increment = outcome.auto_increment.unwrap_or(0);
        }
        self.written.rows += 1;
        Ok(())
    }

    /// Makes the rows permanent.
    pub(crate) fn finish(self) -> Result<Written> {
        match self.target {
            Target::Rows { transaction, .. } => transaction.commit()?,
            Target::Bulk { load, _memory } => {
                load.finish()?;
            }
        }
        self.handle.counters.handler_write.add(self.written.rows);
        self.handle.counters.handler_commit.add(1);
        Ok(self.written)
    }

    /// Takes back what was written, for an error that shall be reported rather than one of the undo.
    pub(crate) fn abandon(self) -> Result<()> {
        self.handle.counters.handler_rollback.add(1);
        match self.target {
            Target::Rows { transaction, .. } => Ok(transaction.rollback()?),
            Target::Bulk { .. } => Ok(()),
        }
    }
}

impl Session {
    /// Opens a table for a statement that adds rows.
    pub(crate) fn open_writer(
        &mut self,
        database: &str,
        table: &str,
        options: WriteOptions,
    ) -> Result<TableWriter> {
        let guard = self.lock_for_write(database, table)?;
        if !options.bulk || options.ignore_duplicates || guard.row_count_estimate() > 0 {
            return Ok(self.row_writer(guard, options));
        }
        let memory = self.sort_memory()?;
        let table = Arc::clone(&guard);
        let load = BulkLoad::new(
            self.engine.catalog(),
            guard,
            BulkLoadOptions {
                memory_bytes: memory.bytes(),
                threads: self.engine.worker_threads(),
            },
            Arc::new(SessionProgress::new(self.handle())),
        );
        match load {
            Ok(load) => Ok(TableWriter {
                table,
                target: Target::Bulk {
                    load: Box::new(load),
                    _memory: memory,
                },
                options,
                written: Written::default(),
                handle: self.handle(),
            }),
            // The estimate was wrong.
            Err(TableError::TableNotEmpty { .. }) => {
                let name = &table.definition.name;
                Ok(self.row_writer(self.lock_for_write(database, name)?, options))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn row_writer(&self, guard: WriteGuard, options: WriteOptions) -> TableWriter {
        TableWriter {
            table: Arc::clone(&guard),
            target: Target::Rows {
                transaction: self.engine.storage().begin_transaction(),
                guard,
            },
            options,
            written: Written::default(),
            handle: self.handle(),
        }
    }

    /// Positions of the columns that a statement names; all of them for an empty list. Errors 1054 and 1110.
    pub(crate) fn target_columns(table: &Table, names: &[String]) -> Result<Vec<usize>> {
        let definition = &table.definition;
        if names.is_empty() {
            return Ok((0..definition.columns.len()).collect());
        }
        let mut seen = BTreeSet::new();
        let mut targets = Vec::with_capacity(names.len());
        for name in names {
            let position = definition
                .column_position(name)
                .ok_or_else(|| SqlError::bad_field(name, "field list"))?;
            if !seen.insert(position) {
                return Err(SqlError::field_specified_twice(name));
            }
            targets.push(position);
        }
        Ok(targets)
    }
}
