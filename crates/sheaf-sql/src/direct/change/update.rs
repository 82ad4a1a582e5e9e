//! The plan of an UPDATE, and the values that it gives a row.

use std::borrow::Cow;
use std::sync::Arc;

use sheaf_frontend::query::SessionValues;
use sheaf_frontend::syntax::inside;
use sheaf_storage::MAX_ENTRY_BYTES;
use sheaf_table::Table;
use sheaf_table::convert::default_in_row;
use sheaf_types::Value;
use sheaf_types::assignment::current_timestamp;
use sqlparser::ast;

use super::new_value::{Assignment, Inputs, NewValue};
use super::rows::Rows;
use crate::change::rules::row_rules::RowRules;
use crate::change::values::assigned::{assign, is_default};
use crate::direct::expression::{Collector, Expressions};
use crate::direct::syntax::given::Given;
use crate::direct::syntax::names::{ColumnNames, Names};
use crate::error::{Result, SqlError};
use crate::parser::statement;
use crate::query::values::{hybrid_number, shown_in};
use crate::session::Session;
use crate::session::warnings::Warnings;

/// `UPDATE table SET column = value, ... WHERE key = ...`
#[derive(Debug)]
pub(in crate::direct) struct Update {
    pub(super) rows: Rows,
    pub(super) assignments: Vec<Assignment>,
    /// What new values are computed by, and what they are given.
    pub(super) expressions: Option<Expressions>,
    pub(super) given: Vec<Given>,
    /// Columns with ON UPDATE CURRENT_TIMESTAMP that are not assigned.
    pub(super) stamped: Vec<usize>,
    /// New rows get generated columns or have to keep CHECKs.
    pub(super) has_row_rules: bool,
    /// No index has the columns that change, and nothing is computed by expressions: they take longer than a latch is
    /// to be held.
    pub(super) is_in_row_only: bool,
    /// A column of the clustered key is assigned: a row that was changed lies under another key.
    pub(super) moves_rows: bool,
}

impl Update {
    pub(in crate::direct) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The plan of an UPDATE, and its table; `None` if it is not one by keys of an index.
    pub(in crate::direct) fn compile(
        session: &Session,
        update: &statement::Update,
    ) -> Option<(Update, Arc<Table>)> {
        let statement::Update {
            hints,
            ignore: false,
            tables,
            assignments,
            selection,
            order_by,
            limit,
        } = update
        else {
            return None;
        };
        let found = (tables.as_slice(), selection.as_ref());
        let (rows, table) = Rows::of(session, found, order_by, limit.as_ref())?;
        let names = Names::of(session, tables)?;
        let mut compiler = Compiler {
            names: &names,
            has_signed_differences: session.has_signed_differences(),
            collector: Collector::of_table(&names).for_values(),
            given: Vec::new(),
            compiled: Vec::with_capacity(assignments.len()),
        };
        for assignment in assignments {
            compiler.add(assignment)?;
        }
        let Compiler {
            collector,
            given,
            compiled,
            ..
        } = compiler;
        let definition = &table.definition;
        let is_given = |column: &Assignment| {
            let column = &definition.columns[column.column];
            column.generated.is_some()
        };
        if !hints.is_empty() || compiled.iter().any(is_given) {
            return None;
        }
        // They take the bytes that a string has in the connection's character set.
        let takes_bytes =
            |assignment: &Assignment| definition.columns[assignment.column].ty.takes_bytes();
        if session.has_other_bytes() && compiled.iter().any(takes_bytes) {
            return None;
        }
        let is_stamped = |column: &usize| {
            let mut assigned = compiled.iter().map(|assignment| assignment.column);
            definition.columns[*column].on_update_current_timestamp
                && !assigned.any(|assigned| assigned == *column)
        };
        let stamped: Vec<usize> = (0..definition.columns.len()).filter(is_stamped).collect();
        let assigned = compiled.iter().map(|assignment| assignment.column);
        let columns: Vec<usize> = assigned.chain(stamped.iter().copied()).collect();
        let is_of_key = |column: &usize| {
            let mut parts = definition.primary.parts.iter();
            parts.any(|part| definition.follows_from(part.column, *column))
        };
        let has_row_rules = RowRules::are_there(definition);
        let expressions = collector.finish();
        let update = Update {
            has_row_rules,
            is_in_row_only: expressions.is_none()
                && !has_row_rules
                && columns.iter().all(|column| table.is_in_row_only(*column)),
            moves_rows: columns.iter().any(is_of_key),
            rows,
            assignments: compiled,
            expressions,
            given,
            stamped,
        };
        Some((update, table))
    }

    /// Whether the old value of a column matters to the change.
    pub(super) fn needs(&self, column: usize) -> bool {
        let matters = |assignment: &Assignment| {
            assignment.column == column
                || match assignment.value {
                    NewValue::Column(read) | NewValue::Sum { column: read, .. } => read == column,
                    _ => false,
                }
        };
        let mut expressions = self.expressions.iter();
        self.assignments.iter().any(matters)
            || self.stamped.contains(&column)
            || expressions.any(|expressions| expressions.read(column))
    }

    /// Whether a value is given that no row has room for: converting it takes longer than a latch is to be held.
    pub(super) fn has_long_operand(&self, inputs: &Inputs<'_>) -> bool {
        self.assignments.iter().any(|assignment| {
            let value = match &assignment.value {
                NewValue::Operand(operand) => operand.value(inputs.parameters),
                NewValue::Given(number) => &inputs.given[*number].0,
                _ => return false,
            };
            value.string_bytes() > MAX_ENTRY_BYTES
        })
    }

    /// The columns that change, with their values of one row, whose old values `old` gives, from left to right: a value
    /// sees what assignments before it have changed. `None` where a value cannot be computed here.
    pub(super) fn new_values(
        &self,
        table: &Table,
        old: impl Fn(usize) -> Value,
        inputs: &Inputs<'_>,
        number: u64,
        warnings: &mut Warnings,
    ) -> Result<Option<Vec<(usize, Value)>>> {
        let columns = &table.definition.columns;
        let mut values: Vec<(usize, Value)> =
            Vec::with_capacity(self.assignments.len() + self.stamped.len());
        let old_row = match &inputs.evaluator {
            Some(evaluator) => Some((evaluator, evaluator.row(|_, column| Ok(old(column)))?)),
            None => None,
        };
        for Assignment { column, value } in &self.assignments {
            // A hundred columns may each get a copy of a value of nearly a megabyte.
            if !sheaf_memory::may_go_on() {
                return Err(SqlError::query_interrupted());
            }
            let definition = &columns[*column];
            let held = |column: usize| {
                let mut changed = values.iter();
                let changed = changed.find(|(changed, _)| *changed == column);
                changed.map_or_else(|| old(column), |(_, value)| value.clone())
            };
            let value = match (value, &old_row) {
                // What it holds stays, even if `sql_mode` would refuse it now.
                (NewValue::Column(from), _) if from == column => {
                    let value = held(*column);
                    values.push((*column, value));
                    continue;
                }
                (NewValue::Default, _) => {
                    let default = default_in_row(definition, inputs.now_micros);
                    let missing = || SqlError::no_default_for_field(&definition.name);
                    values.push((*column, default.ok_or_else(missing)?));
                    continue;
                }
                (
                    NewValue::Computed {
                        item,
                        sees_assigned,
                    },
                    Some((evaluator, old_row)),
                ) => {
                    let value = match sees_assigned {
                        true => {
                            let row = evaluator.row(|_, column| Ok(held(column)))?;
                            evaluator.value(*item, &row)?
                        }
                        false => evaluator.value(*item, old_row)?,
                    };
                    let shown = shown_in(&value, &evaluator.origin(*item), &definition.ty);
                    Cow::Owned(shown.into_owned())
                }
                (value, _) => match value.evaluate(columns, held, (inputs, &definition.ty)) {
                    Some(value) => value,
                    None => return Ok(None),
                },
            };
            let value = assign(definition, &value, inputs.mode, number, warnings)?;
            values.push((*column, value));
        }
        if !self.stamped.is_empty() && values.iter().any(|(column, value)| old(*column) != *value) {
            for column in &self.stamped {
                let now = current_timestamp(&columns[*column].ty, inputs.now_micros);
                values.push((*column, now));
            }
        }
        Ok(Some(values))
    }
}

/// A copy of a row, which may have many long values.
pub(super) fn copy_of_row(row: &[Value]) -> Result<Vec<Value>> {
    let mut copied = Vec::with_capacity(row.len());
    for value in row {
        if !sheaf_memory::has_room_for_value(value.string_bytes()) {
            return Err(SqlError::query_interrupted());
        }
        copied.push(value.clone());
    }
    Ok(copied)
}

/// Takes assignments from left to right.
struct Compiler<'a> {
    names: &'a Names<'a>,
    /// Under the mode NO_UNSIGNED_SUBTRACTION, which changes what leaves the range.
    has_signed_differences: bool,
    collector: Collector<'a>,
    given: Vec<Given>,
    compiled: Vec<Assignment>,
}

impl Compiler<'_> {
    fn add(&mut self, assignment: &ast::Assignment) -> Option<()> {
        let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
            return None;
        };
        let column = self.names.column(&expression_of(name)?)?;
        if self.is_assigned(column) {
            return None;
        }
        let value = self.value(&assignment.value, column)?;
        self.compiled.push(Assignment { column, value });
        Some(())
    }

    /// Whether an assignment before has changed a column, which an expression sees.
    fn is_assigned(&self, column: usize) -> bool {
        self.compiled.iter().any(|done| done.column == column)
    }

    fn value(&mut self, expr: &ast::Expr, column: usize) -> Option<NewValue> {
        if is_default(expr) {
            let column = &self.names.definition().columns[column];
            return column
                .default_expression()
                .is_none()
                .then_some(NewValue::Default);
        }
        let has_date = self.names.definition().columns[column].ty.has_date();
        if has_date && self.names.column(expr) == Some(column) {
            return Some(NewValue::Column(column));
        }
        let is_other = |value: &NewValue| match value {
            NewValue::Sum { negated, .. } => self.has_signed_differences && *negated,
            _ => false,
        };
        if let Some(value) = NewValue::of(inside(expr), self.names).filter(|value| !is_other(value))
        {
            return Some(value);
        }
        let ty = &self.names.definition().columns[column].ty;
        if hybrid_number(expr, ty).is_some() {
            return None;
        }
        if let Some(given) = Given::of(expr) {
            self.given.push(given);
            return Some(NewValue::Given(self.given.len() - 1));
        }
        let computed = self.collector.add(expr)?;
        let mut columns = computed.columns.iter();
        Some(NewValue::Computed {
            item: computed.item,
            sees_assigned: columns.any(|(_, column)| self.is_assigned(*column)),
        })
    }
}

/// A name that is assigned to, as the expression of the same name.
fn expression_of(name: &ast::ObjectName) -> Option<ast::Expr> {
    let mut parts = name
        .0
        .iter()
        .map(|part| part.as_ident().cloned())
        .collect::<Option<Vec<ast::Ident>>>()?;
    Some(match parts.len() {
        1 => ast::Expr::Identifier(parts.remove(0)),
        _ => ast::Expr::CompoundIdentifier(parts),
    })
}
