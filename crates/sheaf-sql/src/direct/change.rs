//! UPDATE and DELETE of rows by a unique key, or of a short range of an index.
//!
//! They run as their vectorised forms do (`change/update.rs`, `change/delete.rs`): rows are found through a view and
//! locked one by one. If one of them has changed since, the statement rolls back what it did and begins again with a
//! newer view. Only the finding is short, and new values are computed here instead of by a query.
//!
//! An UPDATE of columns that no index has looks, locks and changes in one visit of the row's leaf, if the row is what
//! the view shows and no other transaction conflicts ([`sheaf_table::Table::amend`]). A row whose key is known is not
//! even found before.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use sheaf_storage::{Direction, LockMode, MAX_ENTRY_BYTES, ReadView};
use sheaf_table::convert::default_in_row;
use sheaf_table::{ChangeSet, Column, RowToChange, RowView, Table};
use sheaf_types::number::decimal_to_double;
use sheaf_types::{
    ColumnType, Value,
    assignment::{Mode, current_timestamp},
    column_type::MAX_DECIMAL_PRECISION,
    number::checked_power_of_ten,
};
use sqlparser::ast;

use super::access::{Access, BoundAccess};
use super::expression::{Collector, Evaluator, Expressions};
use super::given::Given;
use super::may_divide;
use super::names::{ColumnNames, Names};
use super::operand::Operand;
use super::order::{OrderItem, descends};
use super::read::{condition, index_order, row_count};
use super::row::RowReader;
use crate::change::assigned::{assign, is_default};
use crate::change::change_query::position_of;
use crate::error::{Result, SqlError};
use crate::isolation::transaction::StatementTransaction;
use crate::parser::statement;
use crate::query::values::{hybrid_number, shown_in};
use crate::session::result::{Origin, ResultSink};
use crate::session::searched::DirectSearch;
use crate::session::warnings::Warnings;
use crate::session::{Session, SessionHandle};

/// Digits of a BIGINT of either kind.
const MAX_BIGINT_DIGITS: u8 = 20;

/// `UPDATE table SET column = value, ... WHERE key = ...`
#[derive(Debug)]
pub(super) struct Update {
    rows: Rows,
    assignments: Vec<Assignment>,
    /// What new values are computed by, and what they are given.
    expressions: Option<Expressions>,
    given: Vec<Given>,
    /// Columns with ON UPDATE CURRENT_TIMESTAMP that are not assigned.
    stamped: Vec<usize>,
    /// No index has the columns that change, and nothing is computed by expressions: they take longer than a latch is
    /// to be held.
    is_in_row_only: bool,
    /// A column of the clustered key is assigned: a row that was changed lies under another key.
    moves_rows: bool,
}

#[derive(Debug)]
struct Assignment {
    column: usize,
    value: NewValue,
}

#[derive(Debug)]
enum NewValue {
    Operand(Operand),
    /// A column's old value.
    Column(usize),
    /// A column's old value plus or minus a number.
    Sum {
        column: usize,
        negated: bool,
        operand: Operand,
    },
    Default,
    /// By its number among those of the statement.
    Given(usize),
    /// An expression, by its number.
    Computed(usize),
}

/// `DELETE FROM table WHERE key = ...`
#[derive(Debug)]
pub(super) struct Delete {
    rows: Rows,
}

/// Which rows a statement changes, and in which order.
#[derive(Debug)]
struct Rows {
    access: Access,
    direction: Direction,
    /// What is left over where more are found; without an order it may be any.
    limit: Option<Operand>,
}

impl Rows {
    /// With their table; `None` if an index does not give them in the wanted order.
    fn of(
        session: &Session,
        (tables, selection): (&[ast::TableWithJoins], Option<&ast::Expr>),
        order_by: &[ast::OrderByExpr],
        limit: Option<&ast::Expr>,
    ) -> Option<(Rows, Arc<Table>)> {
        let names = Names::of(session, tables)?;
        let table = names.table()?;
        let selection = selection?;
        // A division by 0 in the condition may be an error, which the vectorised path watches for.
        if may_divide(selection) {
            return None;
        }
        let (comparisons, filter) = condition(Some(selection), &names)?;
        let pushes = session.variables.pushes_index_conditions();
        // Rows that are changed are looked up.
        let access = Access::choose(table, &comparisons, pushes, None)?;
        let item = |item: &ast::OrderByExpr| {
            let descending = descends(item)?;
            let column = names.column(&item.expr)?;
            Some(OrderItem { column, descending })
        };
        let wanted = order_by.iter().map(item).collect::<Option<Vec<_>>>()?;
        let direction = index_order(table, &access, &wanted)?;
        let limit = match limit {
            None => None,
            Some(limit) => Some(Operand::of(limit)?),
        };
        let rows = Rows {
            access: access.filtered_by(filter),
            direction,
            limit,
        };
        Some((rows, Arc::clone(table)))
    }

    /// The most that are changed; `None`: none, or the operand is no number of rows.
    fn most(&self, parameters: &[Value]) -> Option<u64> {
        row_count(self.limit.as_ref(), parameters, u64::MAX).filter(|rows| *rows > 0)
    }
}

/// What is found in a run.
struct Found<'a> {
    rows: &'a Rows,
    bound: &'a BoundAccess,
    /// The most that are changed.
    most: u64,
}

impl Update {
    pub(super) fn access(&self) -> &Access {
        &self.rows.access
    }

    /// The plan of an UPDATE, and its table; `None` if it is not one by keys of an index.
    pub(super) fn compile(
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
        if !hints.is_empty() || definition.has_enforced_checks() {
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
            parts.any(|part| part.column == *column)
        };
        let expressions = collector.finish();
        let update = Update {
            is_in_row_only: expressions.is_none()
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
    fn needs(&self, column: usize) -> bool {
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
    fn has_long_operand(&self, inputs: &Inputs<'_>) -> bool {
        self.assignments.iter().any(|assignment| {
            let value = match &assignment.value {
                NewValue::Operand(operand) => operand.value(inputs.parameters),
                NewValue::Given(number) => &inputs.given[*number].0,
                _ => return false,
            };
            match value {
                Value::Text(text) => text.len() > MAX_ENTRY_BYTES,
                Value::Bytes(bytes) => bytes.len() > MAX_ENTRY_BYTES,
                _ => false,
            }
        })
    }

    /// The columns that change, with their values of one row, whose old values `old` gives; `None` where a value cannot
    /// be computed here.
    fn new_values(
        &self,
        table: &Table,
        old: impl Fn(usize) -> Value,
        inputs: &Inputs<'_>,
        number: u64,
        warnings: &mut Warnings,
    ) -> Result<Option<Vec<(usize, Value)>>> {
        let columns = &table.definition.columns;
        let mut values = Vec::with_capacity(self.assignments.len() + self.stamped.len());
        let batch = match &inputs.evaluator {
            Some(evaluator) => Some((evaluator, evaluator.row(|_, column| Ok(old(column)))?)),
            None => None,
        };
        for Assignment { column, value } in &self.assignments {
            let definition = &columns[*column];
            let value = match (value, &batch) {
                (NewValue::Default, _) => {
                    let default = default_in_row(definition, inputs.now_micros);
                    let missing = || SqlError::no_default_for_field(&definition.name);
                    values.push((*column, default.ok_or_else(missing)?));
                    continue;
                }
                (NewValue::Computed(item), Some((evaluator, row))) => {
                    let value = evaluator.value(*item, row)?;
                    let shown = shown_in(&value, &evaluator.origin(*item), &definition.ty);
                    Cow::Owned(shown.into_owned())
                }
                (value, _) => match value.evaluate(columns, &old, (inputs, &definition.ty)) {
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

/// Takes assignments from left to right.
struct Compiler<'a> {
    names: &'a Names<'a>,
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
        let value = self.value(&assignment.value, column)?;
        if self.is_assigned(column)
            || value
                .column()
                .is_some_and(|column| self.is_assigned(column))
        {
            return None;
        }
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
        if let Some(value) = NewValue::of(expr, self.names) {
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
        if columns.any(|(_, column)| self.is_assigned(*column)) {
            return None;
        }
        Some(NewValue::Computed(computed.item))
    }
}

/// What the values of a run depend on besides its rows.
struct Inputs<'a> {
    parameters: &'a [Value],
    /// With the fraction digits that they show.
    given: Vec<(Value, Origin)>,
    evaluator: Option<Evaluator>,
    mode: Mode,
    now_micros: i64,
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

impl NewValue {
    fn of(expr: &ast::Expr, names: &Names<'_>) -> Option<NewValue> {
        if let Some(operand) = Operand::of(expr) {
            return Some(NewValue::Operand(operand));
        }
        let columns = &names.definition().columns;
        if let Some(column) = names.column(expr) {
            // Only what has a place of its own among the values; the others have a text that depends on more.
            return is_exact_number(&columns[column].ty).then_some(NewValue::Column(column));
        }
        let ast::Expr::BinaryOp { left, op, right } = expr else {
            return None;
        };
        let (column, operand, negated) = match (op, names.column(left)) {
            (ast::BinaryOperator::Plus, Some(column)) => (column, right, false),
            (ast::BinaryOperator::Minus, Some(column)) => (column, right, true),
            (ast::BinaryOperator::Plus, None) => (names.column(right)?, left, false),
            _ => return None,
        };
        is_exact_number(&columns[column].ty).then_some(())?;
        Some(NewValue::Sum {
            column,
            negated,
            operand: Operand::of(operand)?,
        })
    }

    /// The column that is read, but for those of expressions.
    fn column(&self) -> Option<usize> {
        match self {
            NewValue::Operand(_)
            | NewValue::Default
            | NewValue::Given(_)
            | NewValue::Computed(..) => None,
            NewValue::Column(column) | NewValue::Sum { column, .. } => Some(*column),
        }
    }

    fn evaluate<'v>(
        &'v self,
        columns: &[Column],
        old: impl Fn(usize) -> Value,
        (inputs, ty): (&'v Inputs<'_>, &ColumnType),
    ) -> Option<Cow<'v, Value>> {
        let parameters = inputs.parameters;
        match self {
            NewValue::Default | NewValue::Computed(..) => None,
            NewValue::Given(number) => {
                let (value, origin) = &inputs.given[*number];
                Some(shown_in(value, origin, ty))
            }
            NewValue::Operand(operand) => match operand.value(parameters) {
                // Their texts are for the vectorised path to judge.
                Value::Double(_) => None,
                value => Some(Cow::Borrowed(value)),
            },
            NewValue::Column(column) => Some(Cow::Owned(old(*column))),
            NewValue::Sum {
                column,
                negated,
                operand,
            } => {
                let (ty, operand) = (&columns[*column].ty, operand.value(parameters));
                sum(ty, &old(*column), *negated, operand).map(Cow::Owned)
            }
        }
    }
}

fn is_exact_number(ty: &ColumnType) -> bool {
    ty.is_integer() || matches!(ty, ColumnType::Decimal { .. })
}

/// A number as MySQL's approximate arithmetic takes it; `None` for what it would warn of.
fn approximate(value: &Value) -> Option<f64> {
    match value {
        Value::Int(_) | Value::UInt(_) => value.as_i128().map(|number| number as f64),
        Value::Decimal { unscaled, scale } => Some(decimal_to_double(*unscaled, *scale)),
        Value::Double(double) => Some(*double),
        Value::Text(text) => {
            let is_plain = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
            let is_number = text.as_bytes().first().is_some_and(|byte| *byte != b'.');
            (is_number && text.as_bytes().iter().all(is_plain))
                .then(|| text.parse().ok())
                .flatten()
        }
        _ => None,
    }
    .filter(|number| number.is_finite())
}

/// A column's value plus or minus a number, as MySQL's arithmetic gives it: exact, or approximate where the operand is
/// a text or a DOUBLE. `None` where that is not so plain.
fn sum(ty: &ColumnType, old: &Value, negated: bool, operand: &Value) -> Option<Value> {
    if old.is_null() || operand.is_null() {
        let is_number = operand.is_null() || approximate(operand).is_some();
        return is_number.then_some(Value::Null);
    }
    if matches!(operand, Value::Text(_) | Value::Double(_)) {
        let (old, operand) = (approximate(old)?, approximate(operand)?);
        let sum = if negated {
            old - operand
        } else {
            old + operand
        };
        return sum.is_finite().then_some(Value::Double(sum));
    }
    let signed = |number: i128| {
        if negated {
            number.checked_neg()
        } else {
            Some(number)
        }
    };
    match (old, operand) {
        (Value::Int(_) | Value::UInt(_), Value::Int(_) | Value::UInt(_)) => {
            let sum = old.as_i128()?.checked_add(signed(operand.as_i128()?)?)?;
            // BIGINT arithmetic, unsigned if an operand is; outside of it is an error with the expression's text.
            let is_large =
                matches!(operand, Value::UInt(number) if i64::try_from(*number).is_err());
            match ty.is_unsigned() || is_large {
                true => u64::try_from(sum).ok().map(Value::UInt),
                false => i64::try_from(sum).ok().map(Value::Int),
            }
        }
        (
            Value::Int(_) | Value::UInt(_) | Value::Decimal { .. },
            Value::Int(_) | Value::UInt(_) | Value::Decimal { .. },
        ) => decimal_sum(ty, old, signed, operand),
        _ => None,
    }
}

/// A sum that is a DECIMAL, at the larger scale of both operands.
fn decimal_sum(
    ty: &ColumnType,
    old: &Value,
    signed: impl Fn(i128) -> Option<i128>,
    operand: &Value,
) -> Option<Value> {
    let parts = |value: &Value| match value {
        Value::Decimal { unscaled, scale } => Some((*unscaled, *scale)),
        whole => Some((whole.as_i128()?, 0)),
    };
    let ((old, old_scale), (operand, operand_scale)) = (parts(old)?, parts(operand)?);
    let scale = old_scale.max(operand_scale);
    let digits = match ty {
        ColumnType::Decimal {
            precision, scale, ..
        } => precision - scale,
        _ => MAX_BIGINT_DIGITS,
    };
    let at_scale =
        |unscaled: i128, own: u8| unscaled.checked_mul(checked_power_of_ten(scale - own)?);
    let unscaled =
        at_scale(old, old_scale)?.checked_add(at_scale(signed(operand)?, operand_scale)?)?;
    // What has no more digits than the column, at this scale, fits every intermediate type.
    let most = digits.checked_add(scale)?;
    let fits = most < MAX_DECIMAL_PRECISION && unscaled.abs() < checked_power_of_ten(most)?;
    fits.then_some(Value::Decimal { unscaled, scale })
}

impl Delete {
    pub(super) fn access(&self) -> &Access {
        &self.rows.access
    }

    /// The plan of a DELETE, and its table; `None` if it is not one by keys of an index.
    pub(super) fn compile(
        session: &Session,
        delete: &statement::Delete,
    ) -> Option<(Delete, Arc<Table>)> {
        let statement::Delete {
            hints,
            ignore: false,
            targets,
            tables,
            selection,
            order_by,
            limit,
            returning: None,
        } = delete
        else {
            return None;
        };
        if !hints.is_empty() || !targets.is_empty() {
            return None;
        }
        let found = (tables.as_slice(), selection.as_ref());
        let (rows, table) = Rows::of(session, found, order_by, limit.as_ref())?;
        Some((Delete { rows }, table))
    }
}

#[derive(Clone, Copy, Default)]
struct Changed {
    matched: u64,
    changed: u64,
}

/// How an attempt to change the rows went.
enum Attempt {
    Done(Changed),
    /// A row is not what the view shows.
    RowChanged,
    /// Something is not for this path to compute.
    NotDirect,
}

/// What is done to the rows.
enum Work<'a> {
    Update {
        update: &'a Update,
        inputs: &'a Inputs<'a>,
    },
    Delete,
}

impl Work<'_> {
    fn moves_rows(&self) -> bool {
        matches!(self, Work::Update { update, .. } if update.moves_rows)
    }

    /// Changes the row under `key`, which is locked; true if it is not as before. `None`: this path cannot.
    fn apply(
        &self,
        (locked, table): (&ChangeSet, &Arc<Table>),
        statement: &mut StatementTransaction,
        (key, number): (&[u8], u64),
        warnings: &mut Warnings,
    ) -> Result<Option<bool>> {
        let position = position_of(locked, table)?;
        let Work::Update { update, inputs } = self else {
            return Ok(Some(locked.delete(statement.changes(), position, key)?));
        };
        let needs = |column: usize| update.needs(column);
        let Some(old) = table.read_row_to_change(key, needs)? else {
            return Ok(Some(false));
        };
        let RowToChange {
            values: old,
            untouched,
        } = old;
        let old_value = |column: usize| old[column].clone();
        let values = update.new_values(table, old_value, inputs, number, warnings)?;
        let Some(values) = values else {
            return Ok(None);
        };
        let mut row = old.clone();
        for (column, value) in values {
            row[column] = value;
        }
        if row != old {
            let at = (key, untouched.as_slice());
            locked.replace_beside(statement.changes(), position, at, &old, &row)?;
        }
        Ok(Some(row != old))
    }

    /// Changes a row that is not locked yet, if it is what the view shows and only the row itself changes. False:
    /// nothing has happened, and the row is to be found, locked and changed one after the other.
    fn amend(
        &self,
        (locked, table): (&ChangeSet, &Arc<Table>),
        statement: &mut StatementTransaction,
        view: &ReadView,
        (key, number): (&[u8], u64),
        warnings: &mut Warnings,
    ) -> Result<bool> {
        let Work::Update { update, inputs } = self else {
            return Ok(false);
        };
        if !update.is_in_row_only
            || !statement.may_change_without_locks()
            || update.has_long_operand(inputs)
        {
            return Ok(false);
        }
        let before = warnings.mark();
        let changes = |row: &RowView<'_>| {
            let columns = &table.definition.columns;
            let asks_for_long = Cell::new(false);
            let old = |column: usize| match row.is_overflow(column) {
                true => {
                    asks_for_long.set(true);
                    Value::Null
                }
                false => row.value(column, &columns[column].ty),
            };
            // Another transaction that has locked the row may be about to change it: an error is one if it is still
            // found under the lock.
            let values = update.new_values(table, old, inputs, number, warnings);
            values.ok().flatten().filter(|_| !asks_for_long.get())
        };
        let columns = update
            .assignments
            .iter()
            .map(|assignment| assignment.column)
            .chain(update.stamped.iter().copied());
        let position = position_of(locked, table)?;
        let row = (view, key);
        let is_done = locked.amend(statement.changes(), position, row, columns, changes)?;
        if !is_done {
            // What there was to warn of is found once more.
            warnings.back_to(before);
        }
        Ok(is_done)
    }
}

impl Session {
    /// In a strict mode, a change fails where it computes with what is no number or too long, in its condition, too.
    fn refuse_bad_texts(&mut self, access: &Access, computes: bool) {
        if (computes || access.filter().is_some()) && self.insert_mode(false).strict {
            self.findings.refuse();
        }
    }

    /// `None`: the vectorised path has to do it.
    fn inputs_of_update<'a>(
        &mut self,
        update: &Update,
        parameters: &'a [Value],
    ) -> Option<Inputs<'a>> {
        let mode = self.insert_mode(false);
        let evaluator = match &update.expressions {
            Some(expressions) => Some(self.evaluator(expressions, parameters)?),
            None => None,
        };
        let value_of =
            |given: &Given| Some((given.literal_value(self, parameters)?, given.origin()));
        Some(Inputs {
            parameters,
            given: update.given.iter().map(value_of).collect::<Option<_>>()?,
            evaluator,
            mode,
            now_micros: self.local_now_micros(),
        })
    }

    /// False: the vectorised path has to do it.
    pub(super) fn run_direct_update(
        &mut self,
        update: &Update,
        table: &Arc<Table>,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        let rows = &update.rows;
        self.refuse_bad_texts(&rows.access, update.expressions.is_some());
        let Some(bound) = self.bind_access(&rows.access, table, parameters) else {
            return Ok(false);
        };
        let Some(most) = rows.most(parameters) else {
            return Ok(false);
        };
        let Some(inputs) = self.inputs_of_update(update, parameters) else {
            return Ok(false);
        };
        let work = Work::Update {
            update,
            inputs: &inputs,
        };
        let bound = &bound;
        let found = Found { rows, bound, most };
        let changed = self.change_directly(&found, table, &work)?;
        let Some(Changed { matched, changed }) = changed else {
            return Ok(false);
        };
        self.handle.counters.handler_update.add(changed);
        self.findings.warn(&mut self.warnings);
        let info = match sink.wants_info() {
            true => format!(
                "Rows matched: {matched}  Changed: {changed}  Warnings: {}",
                self.warnings.count()
            ),
            false => String::new(),
        };
        let affected = if self.client.info.found_rows {
            matched
        } else {
            changed
        };
        self.ok(sink, affected, info)?;
        Ok(true)
    }

    /// False: the vectorised path has to do it.
    pub(super) fn run_direct_delete(
        &mut self,
        delete: &Delete,
        table: &Arc<Table>,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        let rows = &delete.rows;
        self.refuse_bad_texts(&rows.access, false);
        let Some(bound) = self.bind_access(&rows.access, table, parameters) else {
            return Ok(false);
        };
        let Some(most) = rows.most(parameters) else {
            return Ok(false);
        };
        let bound = &bound;
        let found = Found { rows, bound, most };
        let changed = self.change_directly(&found, table, &Work::Delete)?;
        let Some(Changed { changed, .. }) = changed else {
            return Ok(false);
        };
        self.handle.counters.handler_delete.add(changed);
        self.ok(sink, changed, String::new())?;
        Ok(true)
    }

    /// Finds rows and changes each, in a statement of the session's transaction. `None`: nothing was changed, and the
    /// vectorised path has to do it.
    fn change_directly(
        &mut self,
        found: &Found<'_>,
        table: &Arc<Table>,
        work: &Work<'_>,
    ) -> Result<Option<Changed>> {
        self.check_writable()?;
        let Some(locked) = self.lock_tables(std::slice::from_ref(table))? else {
            return Ok(None);
        };
        // Workers and batches pay for themselves beyond.
        let access = &found.rows.access;
        let outcome = match found.bound.keys.estimated_rows(table, access.index) {
            Ok(rows) if rows > access.most_rows() => Ok(None),
            Ok(_) => self.change_locked(found, (&locked, table), work),
            Err(error) => Err(error),
        };
        self.transactions.keep_tables(locked);
        outcome
    }

    fn change_locked(
        &mut self,
        found: &Found<'_>,
        tables: (&ChangeSet, &Arc<Table>),
        work: &Work<'_>,
    ) -> Result<Option<Changed>> {
        let mut statement = self.begin_changes()?;
        let before = self.warnings.clone();
        let outcome = self.until_stable(&mut statement, |session, statement| {
            let (handle, warnings) = (&session.handle, &mut session.warnings);
            let attempt = Session::attempt(handle, found, tables, work, (statement, warnings));
            Ok(match attempt? {
                Attempt::Done(changed) => Some(Some(changed)),
                Attempt::RowChanged => None,
                Attempt::NotDirect => {
                    // Another way is taken, which finds the same rows.
                    session.warnings.clone_from(&before);
                    session.findings.truncated_texts.take();
                    statement.start_again()?;
                    Some(None)
                }
            })
        });
        match outcome {
            Ok(None) => {
                self.transactions.abandon_changes(statement)?;
                Ok(None)
            }
            outcome => self.end_changes(statement, outcome),
        }
    }

    fn attempt(
        handle: &SessionHandle,
        &Found { rows, bound, most }: &Found<'_>,
        (locked, table): (&ChangeSet, &Arc<Table>),
        work: &Work<'_>,
        (statement, warnings): (&mut StatementTransaction, &mut Warnings),
    ) -> Result<Attempt> {
        let (access, direction) = (&rows.access, rows.direction);
        let view = statement.changes().view_to_lock()?;
        table.check_view(&view)?;
        let reader = RowReader {
            table,
            view: &view,
            access,
            handle,
            counters: &handle.counters,
            wanted: most,
        };
        // A row whose key is known need not be found before it is changed, unless an earlier one may have come there by
        // then.
        let known = reader.known_keys(bound);
        let is_in_order = direction == Direction::Forward && rows.limit.is_none();
        let known = known.filter(|keys| keys.len() == 1 || is_in_order && !work.moves_rows());
        let (keys, are_found) = match known {
            Some(keys) => (Cow::Borrowed(keys), false),
            None => (Cow::Owned(reader.keys(bound, direction, most)?), true),
        };
        let ranges = || bound.keys.ranges();
        let search = DirectSearch {
            index: access.index,
            reads_rows: true,
            is_filtered: bound.is_filtered(),
            limit: rows.limit.as_ref().and(usize::try_from(most).ok()),
            direction,
        };
        let mut searches = statement.search_to_lock(table, search, ranges);
        let mut done = Changed::default();
        for key in keys.iter() {
            handle.cancel_flag().check()?;
            let row = (key.as_slice(), done.matched + 1);
            if work.amend((locked, table), statement, &view, row, warnings)? {
                done.matched += 1;
                done.changed += 1;
                continue;
            }
            if !are_found && !reader.has(key)? {
                continue;
            }
            let Some(is_new) = statement.lock_row(&view, table, key, LockMode::Exclusive)? else {
                return Ok(Attempt::RowChanged);
            };
            done.matched += 1;
            match work.apply((locked, table), statement, row, warnings)? {
                None => return Ok(Attempt::NotDirect),
                Some(false) => {}
                Some(true) => {
                    done.changed += 1;
                    statement.row_is_changed(table, key, is_new);
                }
            }
        }
        if !are_found {
            reader.note_points(keys.len() as u64, done.matched);
        }
        let last = keys.last().map(Vec::as_slice);
        Ok(
            match statement.lock_searches(&view, &mut searches, (keys.len(), last))? {
                true => Attempt::Done(done),
                false => Attempt::RowChanged,
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ty(text: &str) -> ColumnType {
        ColumnType::parse(text).expect("a type")
    }

    #[test]
    fn sums_are_exact_or_not_direct() {
        let int = ty("int");
        let one = Value::Int(1);
        assert_eq!(sum(&int, &Value::Int(4), false, &one), Some(Value::Int(5)));
        assert_eq!(sum(&int, &Value::Int(4), true, &one), Some(Value::Int(3)));
        assert_eq!(sum(&int, &Value::Null, false, &one), Some(Value::Null));
        assert_eq!(sum(&int, &Value::Int(i64::MAX), false, &one), None);
        let text = |text: &str| Value::Text(text.into());
        assert_eq!(
            sum(&int, &one, true, &text("1.5")),
            Some(Value::Double(-0.5))
        );
        for unclear in ["", "1x", " 1", "1-1", "abc", "."] {
            assert_eq!(sum(&int, &one, false, &text(unclear)), None, "{unclear}");
        }
        let unsigned = ty("bigint unsigned");
        assert_eq!(
            sum(&unsigned, &Value::UInt(u64::MAX - 1), false, &one),
            Some(Value::UInt(u64::MAX))
        );
        assert_eq!(sum(&unsigned, &Value::UInt(0), true, &one), None);
        let price = ty("decimal(4,2)");
        let decimal = |unscaled, scale| Value::Decimal { unscaled, scale };
        assert_eq!(
            sum(&price, &decimal(150, 2), false, &decimal(5, 1)),
            Some(decimal(200, 2))
        );
        // The column rounds it.
        assert_eq!(
            sum(&price, &decimal(150, 2), false, &decimal(5, 3)),
            Some(decimal(1505, 3))
        );
        assert_eq!(
            sum(&int, &Value::Int(4), true, &decimal(15, 1)),
            Some(decimal(25, 1))
        );
        assert_eq!(sum(&price, &decimal(150, 2), false, &decimal(5, 36)), None);
        assert_eq!(sum(&price, &decimal(9999, 2), false, &one), None);
    }
}
