//! The rows of a statement that adds some, as its values go into the columns of a table.
//!
//! A row begins with the defaults of the columns that the statement gives no values to. Each value is converted to its
//! column's type, with an error or a warning where that does not go. Defaults that are expressions are computed when
//! the row has all values that it was given. Generated columns get none here: whatever writes the row computes them.

use std::sync::Arc;

use sheaf_table::convert::{default_of, to_column};
use sheaf_table::{Column, DefaultValue, Table};
use sheaf_types::{
    ColumnIssue, ColumnProblem, Value,
    assignment::{Mode, assign_text, current_timestamp, zero_value},
};

use super::table_writer::WriteOptions;
use crate::change::rules::generated_columns::value_not_allowed;
use crate::change::values::assigned::issue;
use crate::change::values::computed_defaults::ComputedDefaults;
use crate::error::{Result, SqlError};
use crate::session::warnings::Warnings;

/// Converts values to a table's columns, with warnings.
pub(crate) struct RowShape {
    table: Arc<Table>,
    mode: Mode,
    keeps_zero: bool,
    /// A row with the defaults of the others.
    template: Vec<Value>,
    /// Defaults that are computed for each row, of columns that the statement does not give.
    computed: Vec<usize>,
    defaults: Option<ComputedDefaults>,
}

impl RowShape {
    /// `targets`: columns that the statement gives; `now_micros`: what CURRENT_TIMESTAMP stands for. Error 1364 for a
    /// column that is not given, has no default and cannot be NULL, in strict mode.
    pub(crate) fn new(
        table: &Arc<Table>,
        targets: &[usize],
        options: WriteOptions,
        now_micros: i64,
        warnings: &mut Warnings,
    ) -> Result<RowShape> {
        let mode = options.mode;
        let definition = &table.definition;
        let mut columns = definition.columns.iter();
        let computes = columns.any(|column| column.default_expression().is_some());
        let mut template = Vec::with_capacity(definition.columns.len());
        for (position, column) in definition.columns.iter().enumerate() {
            if targets.contains(&position) {
                // What DEFAULT of another column computes with before it has its value, as in MySQL.
                template.push(match computes {
                    true => {
                        default_of(column, now_micros).unwrap_or_else(|| implicit_default(column))
                    }
                    false => Value::Null,
                });
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
                    if mode.strict {
                        return Err(issue.into());
                    }
                    warnings.add_issue(&issue);
                    implicit_default(column)
                }
            });
        }
        Ok(RowShape {
            table: Arc::clone(table),
            mode,
            keeps_zero: options.keeps_zero,
            template,
            computed: (0..definition.columns.len())
                .filter(|at| !targets.contains(at))
                .filter(|at| definition.columns[*at].default_expression().is_some())
                .collect(),
            defaults: None,
        })
    }

    /// Computes defaults with these.
    pub(crate) fn with_defaults(self, defaults: Option<ComputedDefaults>) -> RowShape {
        RowShape { defaults, ..self }
    }

    /// Computes what is still to be computed of a row that has all values that it was given. `is_only_row`: see
    /// [`Self::check_only_row`].
    pub(crate) fn complete(
        &self,
        row: &mut [Value],
        (row_number, is_only_row): (u64, bool),
        warnings: &mut Warnings,
    ) -> Result<()> {
        let Some(defaults) = &self.defaults else {
            return Ok(());
        };
        // From left to right: a default may name columns in front of it.
        for &position in &self.computed {
            let value = defaults.value(position, row)?;
            if is_only_row {
                self.check_only_row(position, &value)?;
            }
            self.put(row, position, &value, row_number, warnings)?;
        }
        Ok(())
    }

    /// A row to fill.
    pub(crate) fn new_row(&self) -> Vec<Value> {
        self.template.clone()
    }

    /// As [`Self::new_row`], for the last one.
    pub(crate) fn take_last_row(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.template)
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
        self.check_given(column)?;
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
        self.ask_for_next(column, &mut row[position]);
        self.note(column, problem, row_number, warnings);
        Ok(())
    }

    /// Error 3105 for a value of a generated column.
    fn check_given(&self, column: &Column) -> Result<()> {
        match column.generated {
            None => Ok(()),
            Some(_) => Err(value_not_allowed(&column.name, &self.table.definition.name)),
        }
    }

    /// 0 asks for the next value as NULL does.
    fn ask_for_next(&self, column: &Column, value: &mut Value) {
        if column.auto_increment && !self.keeps_zero && value.is_zero() {
            *value = Value::Null;
        }
    }

    /// Error 1048 for NULL in a NOT NULL column, which only several rows turn into the column's type's nothing.
    pub(crate) fn check_only_row(&self, position: usize, value: &Value) -> Result<()> {
        let column = self.column(position);
        let refuses_null = !column.nullable && !column.auto_increment && column.generated.is_none();
        match value.is_null() && refuses_null {
            true => Err(issue(column, ColumnProblem::Null, 1).into()),
            false => Ok(()),
        }
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
        self.check_given(column)?;
        match assign_text(&column.ty, text, self.mode, &mut row[position]) {
            Ok(problem) => {
                self.ask_for_next(column, &mut row[position]);
                self.note(column, problem, row_number, warnings);
                Ok(())
            }
            Err(problem) => Err(issue(column, problem, row_number).into()),
        }
    }

    /// 1366 for bytes of a file that are no text in its character set. In lenient mode question marks stand for them.
    pub(crate) fn note_no_text(
        &self,
        position: usize,
        bytes: &[u8],
        row_number: u64,
        warnings: &mut Warnings,
    ) -> Result<()> {
        let column = self.column(position);
        let problem = ColumnProblem::no_text(bytes);
        match self.mode.strict {
            true => Err(issue(column, problem, row_number).into()),
            false => {
                self.note(column, Some(problem), row_number, warnings);
                Ok(())
            }
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
            let issue = issue(column, problem.as_warning(), row_number);
            warnings.add_issue(&issue);
        }
    }

    /// The column's DEFAULT, for the keyword in VALUES; of a column that has none, what its type has for nothing, with
    /// a warning. Error 1364 in strict mode.
    pub(crate) fn put_default(
        &self,
        row: &mut [Value],
        position: usize,
        now_micros: i64,
        warnings: &mut Warnings,
    ) -> Result<()> {
        // As in MySQL: here and now, whatever the row is given behind it.
        if let Some(defaults) = &self.defaults
            && self.column(position).default_expression().is_some()
        {
            let value = defaults.value(position, row)?;
            return self.put(row, position, &value, 1, warnings);
        }
        let column = self.column(position);
        row[position] = match default_of(column, now_micros) {
            // The column's default is 0, which asks for the next value but where `sql_mode` says otherwise.
            _ if column.auto_increment && self.keeps_zero => zero_value(&column.ty),
            Some(value) => value,
            None if self.mode.strict => {
                return Err(SqlError::no_default_for_field(&column.name));
            }
            None => {
                let missing = SqlError::no_default_for_field(&column.name);
                warnings.warn(missing.code, missing.message);
                implicit_default(column)
            }
        };
        Ok(())
    }

    /// A field that a file does not have: NULL if the column may be NULL and has no constant as its default. Else it is
    /// 0, the empty text and so on, whatever the default is. MySQL's manual speaks of defaults; MySQL and MariaDB do
    /// this.
    pub(crate) fn put_missing(&self, row: &mut [Value], position: usize, now_micros: i64) {
        let column = self.column(position);
        let has_constant = match &column.default {
            Some(DefaultValue::Value(value)) => !value.is_null(),
            _ => false,
        };
        row[position] = match &column.ty {
            _ if column.generated.is_some() || column.auto_increment => Value::Null,
            _ if column.nullable && !has_constant => Value::Null,
            ty if ty.follows_time_zone() && !column.nullable => current_timestamp(ty, now_micros),
            ty if ty.enum_labels().is_some() => Value::Enum(0),
            ty => zero_value(ty),
        };
    }
}

/// What a NOT NULL column without a default gets where that is only a warning: 0, the empty text, the first label.
fn implicit_default(column: &Column) -> Value {
    to_column(column, &Value::Null, Mode::LENIENT).map_or(Value::Null, |(value, _)| value)
}
