//! INSERT … VALUES, INSERT … SET and INSERT … SELECT.

use arrow::array::RecordBatch;
use sheaf_table::Value;
use sheaf_table::convert::Mode;
use sqlparser::ast;

use crate::error::{Result, SqlError};
use crate::parser::change::name_of;
use crate::parser::statement::TableName;
use crate::query::SessionValues;
use crate::result::ResultSink;
use crate::rows::value_at;
use crate::run_query::PlannedQuery;
use crate::session::Session;
use crate::table_writer::{RowShape, TableWriter, WriteOptions, Written};
use crate::update::is_default;
use crate::values::{divisors, is_zero};

/// INSERT … SELECT from the table it writes holds the rows read in memory: at most this part of the query memory.
const SELF_INSERT_SHARE: usize = 2;

/// One place in VALUES.
enum Source {
    /// The keyword DEFAULT.
    Default,
    Value(Value),
}

impl Session {
    pub(crate) fn insert(
        &mut self,
        insert: ast::Insert,
        text: &str,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        refuse_unsupported(&insert)?;
        let (database, table) = self.resolve_for_change(&target_of(&insert)?)?;
        let ignore = insert.ignore;
        let mut columns: Vec<String> = insert.columns.iter().map(last_part).collect();
        let rows: Vec<Vec<ast::Expr>> = if !insert.assignments.is_empty() {
            let mut row = Vec::with_capacity(insert.assignments.len());
            for assignment in insert.assignments {
                let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
                    return Err(SqlError::not_supported_yet("INSERT ... SET of a row"));
                };
                columns.push(last_part(name));
                row.push(assignment.value);
            }
            vec![row]
        } else {
            let Some(source) = insert.source else {
                return Err(SqlError::not_supported_yet("INSERT ... DEFAULT VALUES"));
            };
            match *source.body {
                ast::SetExpr::Values(values)
                    if source.with.is_none() && source.order_by.is_none() =>
                {
                    values.rows.into_iter().map(|row| row.content).collect()
                }
                body => {
                    let query = ast::Query {
                        body: Box::new(body),
                        ..*source
                    };
                    let target = self.engine.catalog().table(&database, &table)?;
                    let targets = Self::target_columns(&target, &columns)?;
                    let planned = self.plan_query(&query, text, None)?;
                    let written =
                        self.insert_rows_of(&database, &table, targets, planned, ignore)?;
                    let info = written.info(self.warnings.count());
                    return self.insert_done(written, info, sink);
                }
            }
        };
        let info_wanted = rows.len() > 1;
        let written = self.insert_values(&database, &table, &columns, &rows, ignore, text)?;
        let info = if info_wanted {
            written.info(self.warnings.count())
        } else {
            String::new()
        };
        self.insert_done(written, info, sink)
    }

    fn insert_done(
        &mut self,
        written: Written,
        info: String,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if written.first_auto_increment != 0 {
            self.last_insert_id = written.first_auto_increment;
        }
        self.ok_with_id(sink, written.rows, written.first_auto_increment, info)
    }

    /// Strict or lenient, as sql_mode and IGNORE say.
    fn insert_mode(&self, ignore: bool) -> Mode {
        if ignore || !self.variables.sql_mode().is_strict() {
            Mode::Lenient
        } else {
            Mode::Strict
        }
    }

    fn insert_values(
        &mut self,
        database: &str,
        table: &str,
        columns: &[String],
        rows: &[Vec<ast::Expr>],
        ignore: bool,
        text: &str,
    ) -> Result<Written> {
        let table = self.engine.catalog().table(database, table)?;
        // `INSERT INTO t () VALUES ()` gives no column a value.
        let all_default = columns.is_empty() && rows.iter().all(Vec::is_empty);
        let targets = if all_default {
            Vec::new()
        } else {
            Self::target_columns(&table, columns)?
        };
        for (n, row) in rows.iter().enumerate() {
            if row.len() != targets.len() {
                return Err(SqlError::wrong_value_count_on_row(n as u64 + 1));
            }
        }
        let values = self.values_of(rows, text)?;
        let options = WriteOptions {
            mode: self.insert_mode(ignore),
            ignore_duplicates: ignore,
            bulk: false,
        };
        let mut writer = self.open_writer(database, &table.definition.name, options)?;
        let targets = if all_default {
            targets
        } else {
            Self::target_columns(writer.table(), columns)?
        };
        let done = self.write_values(&mut writer, targets, options.mode, values);
        close(writer, done)
    }

    /// Evaluates all expressions of VALUES; those that are not simple in one query.
    fn values_of(&mut self, rows: &[Vec<ast::Expr>], text: &str) -> Result<Vec<Vec<Source>>> {
        let expressions: Vec<ast::Expr> = rows
            .iter()
            .flatten()
            .filter(|expression| !is_default(expression))
            .cloned()
            .collect();
        let values = self.evaluate_all(&expressions, text)?;
        self.check_divisions(&expressions, &values, text)?;
        let mut values = values.into_iter();
        let mut next = || values.next().unwrap_or_default();
        Ok(rows
            .iter()
            .map(|row| {
                let source = |expression| {
                    if is_default(expression) {
                        Source::Default
                    } else {
                        Source::Value(next())
                    }
                };
                row.iter().map(source).collect()
            })
            .collect())
    }

    /// A division by 0 is NULL; where rows are written, ERROR_FOR_DIVISION_BY_ZERO makes it a warning, and together with
    /// a strict mode error 1365.
    fn check_divisions(
        &mut self,
        expressions: &[ast::Expr],
        values: &[Value],
        text: &str,
    ) -> Result<()> {
        let mode = self.variables.sql_mode();
        if !mode.contains("ERROR_FOR_DIVISION_BY_ZERO") {
            return Ok(());
        }
        let mut found = Vec::new();
        for (expression, value) in expressions.iter().zip(values) {
            if value.is_null() {
                divisors(expression, &mut found);
            }
        }
        for divisor in found {
            if is_zero(&self.evaluate(divisor, text)?) {
                let error = SqlError::division_by_zero();
                if mode.is_strict() {
                    return Err(error);
                }
                self.warnings.warn(error.code, error.message);
            }
        }
        Ok(())
    }

    fn write_values(
        &mut self,
        writer: &mut TableWriter,
        targets: Vec<usize>,
        mode: Mode,
        rows: Vec<Vec<Source>>,
    ) -> Result<()> {
        let now = self.local_now_micros();
        let shape = RowShape::new(writer.table(), targets, mode, now, &mut self.warnings)?;
        for (n, sources) in rows.into_iter().enumerate() {
            let mut row = shape.new_row();
            for (source, position) in sources.into_iter().zip(shape.targets()) {
                match source {
                    Source::Default => shape.put_default(&mut row, *position, now)?,
                    Source::Value(value) => {
                        shape.put(
                            &mut row,
                            *position,
                            &value,
                            n as u64 + 1,
                            &mut self.warnings,
                        )?;
                    }
                }
            }
            writer.write(&row, &mut self.warnings)?;
        }
        Ok(())
    }

    /// The wall clock of the session at the start of the statement.
    pub(crate) fn local_now_micros(&self) -> i64 {
        self.now_utc_micros() + i64::from(self.time_zone_offset_seconds()) * 1_000_000
    }

    /// Inserts what a planned query returns, for CREATE TABLE … SELECT.
    pub(crate) fn insert_planned(
        &mut self,
        database: &str,
        table: &str,
        targets: Vec<usize>,
        planned: PlannedQuery,
    ) -> Result<Written> {
        self.insert_rows_of(database, table, targets, planned, false)
    }

    fn insert_rows_of(
        &mut self,
        database: &str,
        table: &str,
        targets: Vec<usize>,
        planned: PlannedQuery,
        ignore: bool,
    ) -> Result<Written> {
        if planned.schema().fields().len() != targets.len() {
            return Err(SqlError::wrong_value_count_on_row(1));
        }
        let reads_target = planned.tables.iter().any(|source| {
            source.definition.database == database && source.definition.name == table
        });
        // Rows that are read from the table itself are collected first: the scan must not meet what was just written.
        let mut collected: Vec<RecordBatch> = Vec::new();
        let mut planned = Some(planned);
        if reads_target && let Some(planned) = planned.take() {
            let limit = self.engine.memory().query_bytes / SELF_INSERT_SHARE;
            let mut bytes = 0;
            self.run_planned(planned, |batch| {
                bytes += batch.get_array_memory_size();
                if bytes > limit {
                    return Err(SqlError::out_of_memory(
                        "INSERT ... SELECT from the table that it writes holds its rows in memory; insert in parts or raise --memory",
                    ));
                }
                collected.push(batch.clone());
                Ok(())
            })?;
        }
        let options = WriteOptions {
            mode: self.insert_mode(ignore),
            ignore_duplicates: ignore,
            bulk: true,
        };
        let mut writer = self.open_writer(database, table, options)?;
        let done = self.write_batches(&mut writer, targets, options.mode, collected, planned);
        close(writer, done)
    }

    fn write_batches(
        &mut self,
        writer: &mut TableWriter,
        targets: Vec<usize>,
        mode: Mode,
        collected: Vec<RecordBatch>,
        planned: Option<PlannedQuery>,
    ) -> Result<()> {
        let now = self.local_now_micros();
        // Taken out for the time of the run, which borrows the session.
        let mut warnings = std::mem::take(&mut self.warnings);
        let shape = RowShape::new(writer.table(), targets, mode, now, &mut warnings);
        let written = shape.and_then(|shape| {
            let mut row = shape.new_row();
            let mut write = |batch: &RecordBatch| -> Result<()> {
                for position in 0..batch.num_rows() {
                    let number = writer.rows_seen() + 1;
                    for (array, target) in batch.columns().iter().zip(shape.targets()) {
                        let value = value_at(array.as_ref(), position)?;
                        shape.put(&mut row, *target, &value, number, &mut warnings)?;
                    }
                    writer.write(&row, &mut warnings)?;
                }
                Ok(())
            };
            collected.iter().try_for_each(&mut write)?;
            match planned {
                Some(planned) => self.run_planned(planned, write),
                None => Ok(()),
            }
        });
        self.warnings = warnings;
        written
    }
}

/// Ends a writer: keeps the rows, or takes them back and reports why.
pub(crate) fn close(writer: TableWriter, done: Result<()>) -> Result<Written> {
    match done {
        Ok(()) => writer.finish(),
        Err(error) => {
            writer.abandon()?;
            Err(error)
        }
    }
}

fn refuse_unsupported(insert: &ast::Insert) -> Result<()> {
    let what = if insert.replace_into {
        "REPLACE"
    } else if insert.on.is_some() {
        "INSERT ... ON DUPLICATE KEY UPDATE"
    } else if insert.partitioned.is_some() {
        "INSERT ... PARTITION"
    } else if insert.returning.is_some() {
        "INSERT ... RETURNING"
    } else if insert.or.is_some()
        || insert.overwrite
        || insert.output.is_some()
        || insert.table_alias.is_some()
    {
        "this form of INSERT"
    } else {
        return Ok(());
    };
    Err(SqlError::not_supported_yet(what))
}

fn target_of(insert: &ast::Insert) -> Result<TableName> {
    let ast::TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::not_supported_yet(
            "INSERT into a function or a query",
        ));
    };
    name_of(name)
}

/// `a` of `a`, `t.a` and `d.t.a`.
fn last_part(name: &ast::ObjectName) -> String {
    name.0
        .last()
        .and_then(|part| part.as_ident())
        .map_or_else(|| name.to_string(), |part| part.value.clone())
}
