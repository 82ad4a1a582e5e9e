//! Generated columns: read from statements, and computed for rows before they are written.
//!
//! ```text
//!   (a int, b int AS (a + 1), c int AS (b * 2))
//!   INSERT (a) VALUES (4)     ->     (4, 5, 10)     UPDATE SET a = 5     ->     (5, 6, 12)
//! ```
//!
//! Whatever writes rows computes them here, when all other columns of a row have their values, and before CHECKs and
//! indexes see it: INSERT, REPLACE, LOAD DATA and bulk loads (`change/insert/table_writer.rs`), UPDATE, ON DUPLICATE
//! KEY UPDATE, and ALTER TABLE, where it copies rows.
//!
//! Each column is a list of one expression over the columns that it names (`query/row_evaluator.rs`), planned once per
//! session and version of the table (`session_parts/table_expressions.rs`). They are computed from left to right, each
//! for many rows at once where a statement brings many: a column may name generated columns in front of it. A value
//! goes into its column as INSERT would put it there.
//!
//! The expression means the same in every session and on every day: it is kept without any `sql_mode`, and its literals
//! compare by the default collation. What is of a time zone or of the present day is refused. How a value goes into its
//! column follows the `sql_mode` of the session that writes, as in MySQL. A change of a row leaves those alone that
//! name no column whose value has changed.

use std::sync::{Arc, Mutex};

use arrow::array::ArrayRef;
use sheaf_access::CancelFlag;
use sheaf_exec::functions::truncated::TruncatedTexts;
use sheaf_frontend::error::NotKept;
use sheaf_frontend::parser::check_text::column_names;
use sheaf_frontend::query::SessionValues;
use sheaf_frontend::varying::depends_on_time_zone;
use sheaf_storage::sync::atomic::{AtomicU64, Ordering};
use sheaf_table::convert::RowFill;
use sheaf_table::schema::same_name;
use sheaf_table::{Column, GeneratedColumn, Table, TableDefinition, TableError};
use sheaf_types::assignment::Mode;
use sheaf_types::error::codes::{self, ErrorCode};
use sheaf_types::{ColumnProblem, Value};
use sqlparser::ast;

use super::table_checks::Failure;
use crate::change::values::assigned::{assign, issue};
use crate::change::values::computed_defaults::ComputedDefaults;
use crate::dialect::SheafDialect;
use crate::error::{Result, SqlError};
use crate::parser::statement::GeneratedDefinition;
use crate::parser::{Parsed, parse_expression};
use crate::query::constant_numbers::function_name;
use crate::query::row_evaluator::{RowEvaluator, RowKind};
use crate::query::rows::value_at;
use crate::query::values::shown_in;
use crate::session::Session;
use crate::session::result::Origin;
use crate::session::warnings::Warnings;

const DAY_MICROS: i64 = 86_400_000_000;

/// Errors of a value of which a part is lost.
const OF_CUT_VALUES: [ErrorCode; 3] = [
    codes::TRUNCATED_WRONG_VALUE,
    codes::TRUNCATED_WRONG_VALUE_FOR_FIELD,
    codes::DATA_TOO_LONG,
];

/// The generated columns of a table.
pub(crate) struct GeneratedColumns {
    columns: Arc<PlannedColumns>,
    mode: Mode,
    /// The statement inserts one row: then NULL is refused in every mode.
    pub(crate) is_of_only_row: bool,
    /// The hidden columns among them, with the names of their indexes.
    indexes: Vec<(usize, String)>,
}

/// In the order of the definition.
struct PlannedColumns(Vec<Computed>);

/// One of them.
struct Computed {
    position: usize,
    column: Column,
    /// The positions of the columns that its expression names.
    named: Vec<usize>,
    evaluator: RowEvaluator,
    origin: Origin,
    /// A column that it names is a TIMESTAMP: what is computed of it is that of another time zone, perhaps.
    follows_time_zone: bool,
}

impl Computed {
    fn array(&self, rows: &[&[Value]]) -> Result<ArrayRef> {
        let columns: Vec<Vec<&Value>> = self
            .named
            .iter()
            .map(|position| rows.iter().map(|row| &row[*position]).collect())
            .collect();
        let columns: Vec<&[&Value]> = columns.iter().map(Vec::as_slice).collect();
        let batch = self.evaluator.batch(&columns, rows.len())?;
        self.evaluator.evaluate(0, &batch)
    }

    fn makes_date_of_time(&self) -> bool {
        self.column.ty.has_date() && self.evaluator.gives_time()
    }

    /// A value as its column holds it.
    fn stored(
        &self,
        value: &Value,
        (mode, is_of_only_row): (Mode, bool),
        row_number: u64,
        warnings: &mut Warnings,
    ) -> Result<Value> {
        if is_of_only_row && value.is_null() && !self.column.nullable {
            return Err(issue(&self.column, ColumnProblem::Null, row_number).into());
        }
        let value = shown_in(value, &self.origin, &self.column.ty);
        assign(&self.column, &value, mode, row_number, warnings)
    }
}

impl GeneratedColumns {
    /// Whether a column is one of them, or is named by one.
    pub(crate) fn need(&self, column: usize) -> bool {
        let mut columns = self.columns.0.iter();
        columns.any(|computed| computed.position == column || computed.named.contains(&column))
    }

    /// Computes the values of a row whose other columns have theirs.
    pub(crate) fn fill(
        &self,
        row: &mut [Value],
        row_number: u64,
        warnings: &mut Warnings,
    ) -> Result<()> {
        for computed in &self.columns.0 {
            self.fill_column(computed, row, row_number, warnings)?;
        }
        Ok(())
    }

    fn fill_column(
        &self,
        computed: &Computed,
        row: &mut [Value],
        row_number: u64,
        warnings: &mut Warnings,
    ) -> Result<()> {
        let named = computed.named.iter().map(|position| &row[*position]);
        let value = computed.evaluator.value(0, named);
        let value = value.map_err(|error| self.of_index(error, computed, row_number))?;
        let how = (self.mode, self.is_of_only_row);
        let stored = computed.stored(&value, how, row_number, warnings);
        row[computed.position] =
            stored.map_err(|error| self.of_index(error, computed, row_number))?;
        Ok(())
    }

    fn index_of(&self, computed: &Computed) -> Option<&str> {
        let mut indexes = self.indexes.iter();
        let found = indexes.find(|(position, _)| *position == computed.position);
        found.map(|(_, name)| name.as_str())
    }

    /// Of a value that is cut for a key expression, MySQL names the index: error 3751.
    fn of_index(&self, error: SqlError, computed: &Computed, row_number: u64) -> SqlError {
        let is_cut = OF_CUT_VALUES.iter().any(|code| error.is(*code));
        match self.index_of(computed).filter(|_| is_cut) {
            None => error,
            Some(index) => SqlError::new(
                codes::DATA_TRUNCATED_FUNCTIONAL_INDEX,
                format!("Data truncated for functional index '{index}' at row {row_number}"),
            ),
        }
    }

    /// As [`Self::fill`], of a row whose columns had these values before: what names none of those that have changed
    /// stays, unless it follows the time zone.
    pub(crate) fn fill_changed(
        &self,
        old: &[Value],
        row: &mut [Value],
        row_number: u64,
        warnings: &mut Warnings,
    ) -> Result<()> {
        for computed in &self.columns.0 {
            let mut named = computed.named.iter();
            let is_other = |position: &usize| row[*position] != old[*position];
            if computed.follows_time_zone || named.any(is_other) {
                self.fill_column(computed, row, row_number, warnings)?;
            }
        }
        Ok(())
    }

    /// As [`Self::fill`], of many rows, which are numbered from `first_number` on. An error is that of any row that has
    /// one.
    pub(crate) fn fill_all(
        &self,
        rows: &mut [Vec<Value>],
        first_number: u64,
        warnings: &mut Warnings,
    ) -> Result<()> {
        let how = (self.mode, self.is_of_only_row);
        for computed in &self.columns.0 {
            let given: Vec<&[Value]> = rows.iter().map(Vec::as_slice).collect();
            let values = match computed.array(&given) {
                Err(error) if self.index_of(computed).is_some() => {
                    // The message names the row.
                    for (number, row) in rows.iter_mut().enumerate() {
                        let row_number = first_number + number as u64;
                        self.fill_column(computed, row, row_number, warnings)?;
                    }
                    return Err(error);
                }
                values => values?,
            };
            for (number, row) in rows.iter_mut().enumerate() {
                let value = value_at(values.as_ref(), number)?;
                let row_number = first_number + number as u64;
                row[computed.position] = computed.stored(&value, how, row_number, warnings)?;
            }
        }
        Ok(())
    }
}

impl GeneratedColumns {
    /// As [`Self::fill_changed`], of many rows, each with what it was before and its number. An error is that of any
    /// row that has one.
    pub(crate) fn fill_all_changed(
        &self,
        rows: &mut [Vec<Value>],
        before: &[(&[Value], u64)],
        warnings: &mut Warnings,
    ) -> Result<()> {
        let how = (self.mode, self.is_of_only_row);
        for computed in &self.columns.0 {
            let is_concerned = |at: &usize| {
                let (row, (old, _)) = (&rows[*at], before[*at]);
                let mut named = computed.named.iter();
                computed.follows_time_zone || named.any(|position| row[*position] != old[*position])
            };
            let concerned: Vec<usize> = (0..rows.len()).filter(is_concerned).collect();
            if concerned.is_empty() {
                continue;
            }
            let given: Vec<&[Value]> = concerned.iter().map(|at| rows[*at].as_slice()).collect();
            let values = computed.array(&given)?;
            for (place, at) in concerned.into_iter().enumerate() {
                let value = value_at(values.as_ref(), place)?;
                let value = computed.stored(&value, how, before[at].1, warnings)?;
                rows[at][computed.position] = value;
            }
        }
        Ok(())
    }
}

/// A value that is not what the expression of its generated column gives.
pub(crate) struct StaleValue {
    /// Which of the rows.
    pub(crate) row: usize,
    pub(crate) column: usize,
    /// What it ought to be; or why it cannot be computed.
    pub(crate) computed: Result<Value>,
}

impl GeneratedColumns {
    /// Values of rows that were read that are not what their expressions give now. What follows the time zone is left
    /// out: it is that of the session that wrote it.
    pub(crate) fn stale(&self, rows: &[Vec<Value>]) -> Result<Vec<StaleValue>> {
        let mut found = Vec::new();
        let mut warnings = Warnings::default();
        let given: Vec<&[Value]> = rows.iter().map(Vec::as_slice).collect();
        let columns = self.columns.0.iter();
        for computed in columns.filter(|computed| !computed.follows_time_zone) {
            let all = computed.array(&given).ok();
            for (row, values) in given.iter().enumerate() {
                let value = match &all {
                    Some(all) => value_at(all.as_ref(), row),
                    None => {
                        let named = computed.named.iter().map(|position| &values[*position]);
                        computed.evaluator.value(0, named)
                    }
                };
                let how = (self.mode, false);
                let value = value
                    .and_then(|value| computed.stored(&value, how, row as u64 + 1, &mut warnings));
                let holds = &values[computed.position];
                if !value.as_ref().is_ok_and(|value| is_same(holds, value)) {
                    found.push(StaleValue {
                        row,
                        column: computed.position,
                        computed: value,
                    });
                }
            }
            warnings = Warnings::default();
        }
        Ok(found)
    }
}

/// Whether two values of a column are the same. A number may be kept with fewer digits than it was computed with.
fn is_same(holds: &Value, computed: &Value) -> bool {
    match (holds, computed) {
        (Value::Float(holds), Value::Double(computed)) => *holds == *computed as f32,
        (holds, computed) => holds == computed,
    }
}

/// 3105.
pub(crate) fn value_not_allowed(column: &str, table: &str) -> SqlError {
    SqlError::new(
        codes::NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN,
        format!(
            "The value specified for generated column '{column}' in table '{table}' is not allowed."
        ),
    )
}

/// Error 3105 if one of the columns that a statement gives values to, never DEFAULT, is generated.
pub(crate) fn check_given_columns(definition: &TableDefinition, targets: &[usize]) -> Result<()> {
    let mut columns = targets.iter().map(|target| &definition.columns[*target]);
    match columns.find(|column| column.generated.is_some()) {
        Some(column) => Err(value_not_allowed(&column.name, &definition.name)),
        None => Ok(()),
    }
}

impl Session {
    /// The generated columns of a table, for a statement that writes rows of it; `None` if there is none. What their
    /// expressions find wrong is an error or a warning as it is for the values of an INSERT.
    pub(crate) fn generated_columns(
        &self,
        table: &Arc<Table>,
        mode: Mode,
    ) -> Result<Option<GeneratedColumns>> {
        self.generated_columns_by(&table.definition, mode, |plan| {
            self.planned_of(table, mode.strict, plan)
        })
    }

    /// The same, of a table as it is going to be.
    fn generated_columns_of_next(
        &self,
        definition: &TableDefinition,
        mode: Mode,
    ) -> Result<Option<GeneratedColumns>> {
        self.generated_columns_by(definition, mode, |plan| Ok(Arc::new(plan()?)))
    }

    fn generated_columns_by(
        &self,
        definition: &TableDefinition,
        mode: Mode,
        planned: impl FnOnce(&dyn Fn() -> Result<PlannedColumns>) -> Result<Arc<PlannedColumns>>,
    ) -> Result<Option<GeneratedColumns>> {
        if !definition.has_generated_columns() {
            return Ok(None);
        }
        if mode.strict {
            self.findings.refuse();
        }
        self.findings.watch_divisions(self.variables.sql_mode());
        let (name, columns) = (&definition.name, &definition.columns);
        let hidden = definition.columns.iter().enumerate();
        let hidden = hidden.filter(|(_, column)| column.hidden);
        let indexes = hidden.filter_map(|(position, _)| {
            let index = definition.index_of_expression(position)?;
            Some((position, index.name.clone()))
        });
        let indexes: Vec<(usize, String)> = indexes.collect();
        let plan = || self.planned_columns((name, columns), &indexes, self.now_utc_micros());
        let columns = planned(&plan)?;
        Ok(Some(GeneratedColumns {
            columns,
            mode,
            is_of_only_row: false,
            indexes,
        }))
    }

    /// `indexes`: the hidden columns, with the names of their indexes. `now_utc_micros`: the time of which no value may
    /// depend.
    fn planned_columns(
        &self,
        (table, columns): (&str, &[Column]),
        indexes: &[(usize, String)],
        now_utc_micros: i64,
    ) -> Result<PlannedColumns> {
        // As it was read: `sql_mode` says nothing about what is kept.
        let dialect = SheafDialect::default();
        let mut planned = Vec::new();
        for (position, column) in columns.iter().enumerate() {
            let Some(generated) = &column.generated else {
                continue;
            };
            let named: Vec<usize> = (0..columns.len())
                .filter(|position| generated.names(&columns[*position].name))
                .collect();
            let seen: Vec<Column> = named
                .iter()
                .map(|position| columns[*position].clone())
                .collect();
            let item = ast::SelectItem::ExprWithAlias {
                expr: parse_expression(&generated.expression, &dialect)?,
                alias: ast::Ident::with_quote('`', column.name.as_str()),
            };
            let kind = RowKind {
                name: table,
                columns: &seen,
            };
            let items = Parsed::new(vec![item], "");
            let mut indexes = indexes.iter();
            let index = indexes.find(|(hidden, _)| *hidden == position);
            let kept = KeptExpression {
                session: self,
                now_utc_micros,
                index: index.map(|(_, name)| name.as_str()),
            };
            let evaluator = self.row_evaluator_as(items, &[kind], &kept)?;
            let is_moment = |column: &Column| column.ty.follows_time_zone();
            planned.push(Computed {
                position,
                column: column.clone(),
                named,
                follows_time_zone: seen.iter().any(is_moment),
                origin: Origin::from(&evaluator.metas[0]),
                evaluator,
            });
        }
        Ok(PlannedColumns(planned))
    }

    /// What the catalog is asked for. Errors 3102, 3763, 3764 and 3772 for what the expression may not be or contain,
    /// 1235 for one whose values only a session knows.
    pub(crate) fn generated_column(
        &self,
        column: &str,
        definition: &GeneratedDefinition,
    ) -> Result<GeneratedColumn> {
        let expression = &definition.expression;
        match NotKept::of_generated(expression) {
            None => {}
            Some(NotKept::Query) => {
                return Err(SqlError::new(
                    codes::GENERATED_COLUMN_FUNCTION_IS_NOT_ALLOWED,
                    format!(
                        "Expression of generated column '{column}' contains a disallowed function."
                    ),
                ));
            }
            Some(NotKept::Function(function)) => {
                return Err(disallowed_function(column, &function));
            }
            Some(NotKept::Variable) => {
                return Err(SqlError::new(
                    codes::DEFAULT_VAL_GENERATED_VARIABLES,
                    format!(
                        "Default value expression of column '{column}' cannot refer user or system variables."
                    ),
                ));
            }
        }
        if is_row(expression) {
            return Err(SqlError::new(
                codes::GENERATED_COLUMN_ROW_VALUE,
                format!("Expression of generated column '{column}' cannot refer to a row value."),
            ));
        }
        // MySQL computes it in the time zone of the session that reads it, or writes it.
        if depends_on_time_zone(expression) {
            return Err(SqlError::not_supported_yet(
                "FROM_UNIXTIME in a generated column",
            ));
        }
        self.check_meaning("generated columns", &definition.text)?;
        Ok(GeneratedColumn {
            expression: definition.text.clone(),
            columns: column_names(expression),
            kind: definition.kind,
        })
    }

    /// Whether the generated columns of a table that is being defined can be computed.
    ///
    /// # Errors
    /// 1054 for an unknown column, 3109 for one whose values the server gives out, 3107 for a generated column that
    /// does not come before; others as for a query.
    pub(crate) fn try_generated(&self, table: &str, columns: &[Column]) -> Result<()> {
        for (at, column) in columns.iter().enumerate() {
            let Some(generated) = &column.generated else {
                continue;
            };
            for name in &generated.columns {
                let named = columns
                    .iter()
                    .position(|other| same_name(&other.name, name));
                let unknown = || SqlError::bad_field(name, "generated column function");
                let position = named.ok_or_else(unknown)?;
                let other = &columns[position];
                if other.auto_increment {
                    let column = &column.name;
                    return Err(SqlError::new(
                        codes::GENERATED_COLUMN_REF_AUTO_INC,
                        format!(
                            "Generated column '{column}' cannot refer to auto-increment column."
                        ),
                    ));
                }
                if other.generated.is_some() && position >= at {
                    return Err(SqlError::new(
                        codes::GENERATED_COLUMN_NON_PRIOR,
                        "Generated column can refer only to generated columns defined prior to it.",
                    ));
                }
            }
        }
        let today = self.now_utc_micros();
        // Both have the same constants.
        self.handle.memory().fold_anew();
        let planned = self.planned_columns((table, columns), &[], today)?;
        self.handle.memory().fold_anew();
        let tomorrow = self.planned_columns((table, columns), &[], today + DAY_MICROS)?;
        for (today, tomorrow) in planned.0.iter().zip(&tomorrow.0) {
            // A TIME that becomes a date is one of the day on which MySQL reads it, or writes it.
            let is_of_day = today.evaluator.text() != tomorrow.evaluator.text();
            if is_of_day || today.makes_date_of_time() {
                return Err(SqlError::not_supported_yet(
                    "a TIME that becomes a date in a generated column",
                ));
            }
        }
        Ok(())
    }

    /// What an expression is bound with that a definition keeps.
    pub(crate) fn kept_expression(&self) -> KeptExpression<'_> {
        KeptExpression {
            session: self,
            now_utc_micros: self.now_utc_micros(),
            index: None,
        }
    }

    /// What computes columns for the rows of a table that is being altered: defaults of new columns, and generated
    /// columns. Errors are kept in the second part.
    pub(crate) fn row_fill(
        &self,
        definition: &TableDefinition,
    ) -> Result<Option<(RowFill, Failure)>> {
        let mode = self.insert_mode(false);
        let defaults = self.computed_defaults(definition)?;
        let generated = self.generated_columns_of_next(definition, mode)?;
        if defaults.is_none() && generated.is_none() {
            return Ok(None);
        }
        let fill = AlteredRows {
            defaults,
            generated,
            mode,
            columns: definition.columns.clone(),
            rows: AtomicU64::new(0),
        };
        let failure: Failure = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&failure);
        let fill = move |row: &mut [Value], positions: &[usize]| {
            fill.fill(row, positions).map_err(|error| {
                if let Ok(mut kept) = kept.lock() {
                    *kept = Some(error);
                }
                TableError::Interrupted
            })
        };
        Ok(Some((RowFill(Arc::new(fill)), failure)))
    }
}

/// Computes columns of the rows of a table that is being altered.
struct AlteredRows {
    defaults: Option<ComputedDefaults>,
    generated: Option<GeneratedColumns>,
    mode: Mode,
    columns: Vec<Column>,
    /// Rows so far.
    rows: AtomicU64,
}

impl AlteredRows {
    fn fill(&self, row: &mut [Value], positions: &[usize]) -> Result<()> {
        let number = self.rows.fetch_add(1, Ordering::Relaxed) + 1;
        // What is not quite kept is not told of, as of defaults.
        let mut warnings = Warnings::default();
        for position in positions {
            let column = &self.columns[*position];
            if column.generated.is_none()
                && let Some(defaults) = &self.defaults
            {
                let value = defaults.value(*position, row)?;
                row[*position] = assign(column, &value, self.mode, number, &mut warnings)?;
            }
            if let Some(generated) = &self.generated {
                let mut columns = generated.columns.0.iter();
                let computed = columns.find(|computed| computed.position == *position);
                if let Some(computed) = computed {
                    generated.fill_column(computed, row, number, &mut warnings)?;
                }
            }
        }
        Ok(())
    }
}

/// 3763.
fn disallowed_function(column: &str, function: &str) -> SqlError {
    SqlError::new(
        codes::GENERATED_COLUMN_NAMED_FUNCTION_IS_NOT_ALLOWED,
        format!(
            "Expression of generated column '{column}' contains a disallowed function: {function}."
        ),
    )
}

/// What an expression that is kept is bound with: what the session says, but for what would give it another meaning in
/// another session.
pub(crate) struct KeptExpression<'a> {
    session: &'a Session,
    now_utc_micros: i64,
    /// The functional index that it is a key part of.
    index: Option<&'a str>,
}

impl SessionValues for KeptExpression<'_> {
    fn current_database(&self) -> Option<&str> {
        self.session.current_database()
    }

    fn user(&self) -> String {
        self.session.user()
    }

    fn connection_id(&self) -> u64 {
        SessionValues::connection_id(self.session)
    }

    fn last_insert_id(&self) -> u64 {
        self.session.last_insert_id()
    }

    fn truncated_texts(&self) -> TruncatedTexts {
        let noted = self.session.truncated_texts();
        match self.index {
            Some(index) => noted.of_index(index),
            None => noted,
        }
    }

    fn cancel_flag(&self) -> CancelFlag {
        self.session.cancel_flag()
    }

    fn row_count(&self) -> i64 {
        self.session.row_count()
    }

    fn found_rows(&self) -> u64 {
        self.session.found_rows()
    }

    fn now_utc_micros(&self) -> i64 {
        self.now_utc_micros
    }

    fn time_zone_offset_seconds(&self) -> i32 {
        0
    }

    fn version(&self) -> String {
        self.session.version()
    }

    fn system_variable(&self, _global: bool, _name: &str) -> Option<Value> {
        None
    }

    /// As the default `sql_mode` does.
    fn refuses_zero_dates(&self) -> bool {
        true
    }

    fn refuses_zero_in_dates(&self) -> bool {
        true
    }

    fn user_variable(&self, _name: &str) -> Value {
        Value::Null
    }
}

/// Whether an expression is a row of several values.
pub(crate) fn is_row(expression: &ast::Expr) -> bool {
    match expression {
        ast::Expr::Nested(inner) => is_row(inner),
        ast::Expr::Tuple(_) => true,
        ast::Expr::Function(function) => function_name(function) == "row",
        _ => false,
    }
}
