//! INSERT and REPLACE ... VALUES of constants, parameters, and what is computed from them and the session.
//!
//! The vectorised path inserts such rows without a plan too. What is saved is parsing them again, finding the table and
//! its columns by their names, and planning the query that computes values. What is wrong with the names or the number
//! of values is left to it to tell.
//!
//! | file | what it holds |
//! |---|---|
//! | [`insert_select`] | INSERT of what a query finds |
//! | [`value_lists`] | INSERTs of many rows that come as text |

pub(super) mod insert_select;
pub(super) mod value_lists;

use std::sync::Arc;

use sheaf_table::{Privileges, Table, TableDefinition};
use sheaf_types::assignment::Mode;
use sheaf_types::temporal::SECOND;
use sheaf_types::{ColumnType, Value};
use sqlparser::ast;

use super::cache::statement_cache::{StatementCache, Taken};
use super::expression::{Collector, Expressions, OverBothRows, evaluator};
use super::operands::operand::Operand;
use super::syntax::given::Given;
use super::{Action, Cached, DirectPlan};
use crate::accounts::insert_needs;
use crate::change::insert::destination::Destination;
use crate::change::insert::on_duplicate::{
    Addend, Assigned, AssignedSum, DuplicateUpdate, KeptExpressions, NEW, OLD, column_of_row,
    with_named_rows,
};
use crate::change::insert::row_shape::RowShape;
use crate::change::insert::table_writer::{TableWriter, WriteOptions, target_columns};
use crate::change::values::assigned::{is_default, last_part};
use crate::change::values::sum::is_exact_number;
use crate::error::{Result, SqlError};
use crate::isolation::transaction::ImplicitTransaction;
use crate::parser::Parsed;
use crate::query::values::{hybrid_number, literal, shown_in};
use crate::session::Session;
use crate::session::result::{Origin, ResultSink};
use crate::session::warnings::Warnings;
use value_lists::{Form, ValueLists};

/// See the module's comment.
pub(super) struct Insert {
    destination: Destination,
    table: Arc<Table>,
    /// Positions of the columns that are given.
    targets: Vec<usize>,
    /// For each of them its value, row by row.
    rows: Vec<Vec<Place>>,
    expressions: Option<Expressions>,
    /// ON DUPLICATE KEY UPDATE.
    duplicates: Option<Duplicates>,
    /// What the session needs to be allowed to.
    pub(super) needs: Privileges,
}

/// The columns that an INSERT names, and the rows of VALUES or the one of SET; `None` if it has others.
fn given_rows(insert: &ast::Insert) -> Option<(Vec<String>, Vec<Vec<&ast::Expr>>)> {
    if !insert.assignments.is_empty() {
        let assigned = insert.assignments.iter().map(|assignment| {
            let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
                return None;
            };
            Some((last_part(name), &assignment.value))
        });
        let (columns, row) = assigned.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        return Some((columns, vec![row]));
    }
    let source = insert.source.as_deref()?;
    let ast::SetExpr::Values(values) = source.body.as_ref() else {
        return None;
    };
    let rows = values.rows.iter().map(|row| row.content.iter().collect());
    let is_plain = source.with.is_none() && source.order_by.is_none();
    is_plain.then(|| {
        (
            insert.columns.iter().map(last_part).collect(),
            rows.collect(),
        )
    })
}

/// What becomes of a conflicting row.
pub(super) struct Duplicates {
    /// From left to right.
    assignments: Vec<(usize, NewValue)>,
    expressions: Option<Expressions>,
    /// The expressions of sums, for those that are not plain.
    sums: Option<Expressions>,
}

/// What is assigned to a column of it.
enum NewValue {
    Default,
    /// What the column holds.
    Itself,
    Operand(Operand),
    Given(Given),
    /// A column of the row that was to be inserted.
    New(usize),
    Sum(NewSum),
    /// By its number among the expressions.
    Computed(usize),
}

/// What a column holds, plus or minus a number.
struct NewSum {
    column: usize,
    negated: bool,
    operand: SumOperand,
    /// Its expression, by its number among those of sums.
    item: usize,
}

enum SumOperand {
    Given(Operand),
    /// A column of the row that was to be inserted.
    New(usize),
}

impl NewSum {
    /// `None` for any other expression, and for one that goes to a column of no exact number.
    fn of(
        expr: &ast::Expr,
        (definition, ty): (&TableDefinition, &ColumnType),
        collector: &mut Collector<'_>,
    ) -> Option<NewSum> {
        let ast::Expr::BinaryOp { left, op, right } = expr else {
            return None;
        };
        let old = |expr: &ast::Expr| column_of_row(expr, OLD, definition);
        let (column, operand, negated) = match (op, old(left)) {
            (ast::BinaryOperator::Plus, Some(column)) => (column, right, false),
            (ast::BinaryOperator::Minus, Some(column)) => (column, right, true),
            (ast::BinaryOperator::Plus, None) => (old(right)?, left, false),
            _ => return None,
        };
        let own = &definition.columns[column].ty;
        if !is_exact_number(own) || !is_exact_number(ty) {
            return None;
        }
        let operand = match Operand::of(operand) {
            Some(operand) => SumOperand::Given(operand),
            None => {
                let new = column_of_row(operand, NEW, definition)?;
                // The kind of a sum of a signed and an unsigned number is for the typing rule to say.
                let is_alike = &definition.columns[new].ty == own;
                is_alike.then_some(SumOperand::New(new))?
            }
        };
        Some(NewSum {
            column,
            negated,
            operand,
            item: collector.add(expr)?.item,
        })
    }

    fn assigned(&self, parameters: &[Value]) -> Assigned {
        Assigned::Sum(AssignedSum {
            column: self.column,
            negated: self.negated,
            operand: match &self.operand {
                SumOperand::Given(operand) => Addend::Value(operand.value(parameters).clone()),
                SumOperand::New(column) => Addend::New(*column),
            },
            expression: self.item,
        })
    }
}

impl Duplicates {
    /// What an INSERT into these columns says of conflicting rows, if it says something. `None`: the vectorised path
    /// has to do it.
    pub(super) fn of_insert(
        insert: &ast::Insert,
        into: (&Table, &[usize]),
    ) -> Option<Option<Duplicates>> {
        match &insert.on {
            None => Some(None),
            Some(ast::OnInsert::DuplicateKeyUpdate(assignments)) => {
                let duplicates = Duplicates::of(assignments, into, insert.insert_alias.as_ref())?;
                Some(Some(duplicates))
            }
            Some(_) => None,
        }
    }

    fn of(
        assignments: &[ast::Assignment],
        (table, targets): (&Table, &[usize]),
        alias: Option<&ast::InsertAliases>,
    ) -> Option<Duplicates> {
        let definition = &table.definition;
        let mut collector = Collector::of_duplicates(definition).for_values();
        let mut sums = Collector::of_duplicates(definition).for_values();
        let mut compiled = Vec::with_capacity(assignments.len());
        for assignment in assignments {
            let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
                return None;
            };
            let column = definition.column_position(&last_part(name))?;
            let ty = &definition.columns[column].ty;
            let value = &assignment.value;
            let is_generated = definition.columns[column].generated.is_some();
            if is_generated || hybrid_number(value, ty).is_some() {
                return None;
            }
            let value = if is_default(value) {
                NewValue::Default
            } else if let Some(operand) = Operand::of(value) {
                NewValue::Operand(operand)
            } else if let Some(given) = Given::of(value) {
                NewValue::Given(given)
            } else {
                let named = with_named_rows(value, (table, targets), alias)?;
                match column_of_row(&named, NEW, definition) {
                    _ if column_of_row(&named, OLD, definition) == Some(column) => NewValue::Itself,
                    Some(new) if is_taken_over(&definition.columns[new].ty, ty) => {
                        NewValue::New(new)
                    }
                    _ => match NewSum::of(&named, (definition, ty), &mut sums) {
                        Some(sum) => NewValue::Sum(sum),
                        None => NewValue::Computed(collector.add(&named)?.item),
                    },
                }
            };
            compiled.push((column, value));
        }
        Some(Duplicates {
            assignments: compiled,
            expressions: collector.finish(),
            sums: sums.finish(),
        })
    }
}

/// Whether a value of one type is assigned to another as it is stored.
fn is_taken_over(from: &ColumnType, to: &ColumnType) -> bool {
    from == to && (from.is_integer() || from.is_character() || from.decimal_digits().is_some())
}

/// One place in VALUES.
enum Place {
    /// The keyword DEFAULT.
    Default,
    Operand(Operand),
    Given(Given),
    /// By its number among the expressions.
    Computed(usize),
}

impl Place {
    fn of(expr: &ast::Expr, collector: &mut Collector<'_>) -> Option<Place> {
        if is_default(expr) {
            return Some(Place::Default);
        }
        let operand = Operand::of(expr).or_else(|| literal(expr).map(Operand::Constant));
        if let Some(operand) = operand {
            return Some(Place::Operand(operand));
        }
        if let Some(given) = Given::of(expr) {
            return Some(Place::Given(given));
        }
        Some(Place::Computed(collector.add(expr)?.item))
    }
}

impl Insert {
    pub(super) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Whether rows of both go into the same columns.
    pub(super) fn is_into_the_same(&self, other: &Insert) -> bool {
        Arc::ptr_eq(&self.table, &other.table) && self.targets == other.targets
    }

    /// Whether the plan of one row serves rows that come without a tree: all that differs between them is literals,
    /// which go into columns as they are.
    pub(super) fn takes_lists(&self) -> bool {
        let is_literal = |place: &Place| match place {
            Place::Default | Place::Operand(_) => true,
            Place::Given(given) => !matches!(given, Given::Parameter(_)),
            Place::Computed(_) => false,
        };
        self.rows.len() == 1 && self.rows[0].iter().all(is_literal)
    }

    /// The type of the column that takes an expression.
    fn type_of(&self, item: usize) -> Option<&ColumnType> {
        let places = self
            .rows
            .iter()
            .flat_map(|row| row.iter().zip(&self.targets));
        let mut places =
            places.filter(|(place, _)| matches!(place, Place::Computed(number) if *number == item));
        let (_, column) = places.next()?;
        Some(&self.table.definition.columns[*column].ty)
    }

    /// The plan of an INSERT; `None` if it is not one of plain values.
    pub(super) fn compile(session: &Session, insert: &ast::Insert) -> Option<Insert> {
        if !insert.optimizer_hints.is_empty() || insert.returning.is_some() {
            return None;
        }
        let (columns, values) = given_rows(insert)?;
        let mut collector = Collector::of_constants().for_values();
        let mut rows = Vec::with_capacity(values.len());
        for row in &values {
            let places = row.iter();
            let places = places.map(|expr| Place::of(expr, &mut collector));
            rows.push(places.collect::<Option<Vec<Place>>>()?);
        }
        let destination = Destination {
            columns,
            ..session.plain_destination(insert)?
        };
        let (database, table) = (&destination.database, &destination.table);
        let table = session.table_names().table(database, table).ok()?;
        if table.definition.has_computed_defaults() {
            return None;
        }
        // `INSERT INTO t () VALUES ()` gives no column a value.
        let all_default = destination.columns.is_empty() && rows.iter().all(Vec::is_empty);
        let targets = match all_default {
            true => Vec::new(),
            false => target_columns(&table, &destination.columns).ok()?,
        };
        let mut given = values
            .iter()
            .flat_map(|row| row.iter().copied().zip(&targets));
        let is_hybrid = |(expr, target): (&ast::Expr, &usize)| {
            hybrid_number(expr, &table.definition.columns[*target].ty).is_some()
        };
        if given.any(is_hybrid) {
            return None;
        }
        // They take the bytes that a string has in the connection's character set.
        let mut taking = targets.iter();
        let takes_bytes = |target: &usize| table.definition.columns[*target].ty.takes_bytes();
        if session.has_other_bytes() && taking.any(takes_bytes) {
            return None;
        }
        let duplicates = Duplicates::of_insert(insert, (&table, &targets))?;
        let fits = |row: &Vec<Place>| row.len() == targets.len();
        rows.iter().all(fits).then_some(Insert {
            destination,
            table,
            targets,
            rows,
            expressions: collector.finish(),
            duplicates,
            needs: insert_needs(insert),
        })
    }
}

/// Runs a statement whose rows are of few forms. Unless it is done, the statement is to be parsed.
pub(crate) fn run_value_lists(
    session: &mut Session,
    lists: &ValueLists<'_>,
    sink: &mut dyn ResultSink,
) -> Result<Cached> {
    let mut cache: Box<StatementCache> = session.statement_cache.take();
    let plans = lists.forms.iter();
    let plans = plans.map(|form| cache.plan_of(session, &form.text));
    let plans = plans.collect::<Result<Option<Vec<Arc<DirectPlan>>>>>();
    session.statement_cache.put(cache);
    match plans? {
        Some(plans) => run_lists_by(session, &plans, lists, sink),
        None => Ok(Cached::NotDirect),
    }
}

fn run_lists_by(
    session: &mut Session,
    plans: &[Arc<DirectPlan>],
    lists: &ValueLists<'_>,
    sink: &mut dyn ResultSink,
) -> Result<Cached> {
    let of_form = |(plan, form): (&'_ Arc<DirectPlan>, &Form)| {
        let has_parameters = plan.parameters == form.width + lists.tail.len();
        has_parameters && matches!(&plan.action, Action::Insert(insert) if insert.takes_lists())
    };
    let are_all = plans.iter().zip(&lists.forms).all(of_form);
    let inserts = plans.iter().filter_map(|plan| match &plan.action {
        Action::Insert(insert) => Some(insert.as_ref()),
        _ => None,
    });
    let inserts: Vec<&Insert> = inserts.collect();
    let (Some(plan), [first, ..], Some(parameters), true) = (
        plans.first(),
        inserts.as_slice(),
        lists.parameters(),
        are_all,
    ) else {
        return Ok(Cached::NotDirect);
    };
    if !inserts.iter().all(|insert| insert.is_into_the_same(first)) {
        return Ok(Cached::NotDirect);
    }
    let rows = Some((lists, inserts.as_slice()));
    let is_done = session.around_direct(plan, &parameters, |session, parameters| {
        run_direct_insert(session, first, (parameters, rows), sink)
    })?;
    Ok(match is_done {
        true => Cached::Done,
        false => Cached::Declined,
    })
}

/// False: the vectorised path has to do it.
pub(super) fn run_direct_insert(
    session: &mut Session,
    insert: &Insert,
    (parameters, lists): (&[Value], Option<Lists<'_>>),
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    let options = insert.destination.options;
    let Some(values) = values_of_insert(session, insert, parameters)? else {
        return Ok(false);
    };
    let duplicates = match &insert.duplicates {
        Some(duplicates) => {
            let into = (&insert.table, options.mode);
            match duplicate_update_of(session, into, duplicates, parameters) {
                Some(update) => Some(update),
                None => return Ok(false),
            }
        }
        None => None,
    };
    let tells_counts = insert.rows.len() != 1 || lists.is_some();
    let implicit = session.begin_implicit(false);
    let writer = session.open_known_writer(&insert.table, options);
    insert_by(
        session,
        (implicit, &insert.destination),
        writer,
        duplicates,
        |session, writer| write_places(session, insert, (parameters, values, lists), writer),
        tells_counts,
        sink,
    )
}

/// Inserts what `write` writes, ends what is `implicit`, and answers: with what was counted if it `tells_counts`.
/// False: there is no writer, and the vectorised path has to do it.
pub(super) fn insert_by(
    session: &mut Session,
    (implicit, destination): (ImplicitTransaction, &Destination),
    writer: Result<Option<TableWriter>>,
    duplicates: Option<DuplicateUpdate>,
    write: impl FnOnce(&mut Session, &mut TableWriter) -> Result<()>,
    tells_counts: bool,
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    let inserted = match writer {
        Ok(Some(mut writer)) => {
            if let Some(update) = duplicates {
                writer.update_duplicates(update);
            }
            let done = write(session, &mut writer);
            session.close_inserted(writer, done)
        }
        Ok(None) => {
            session.transactions.decline_implicit(implicit)?;
            return Ok(false);
        }
        Err(error) => Err(error),
    };
    let inserted = session.end_implicit(implicit, inserted)?;
    session.findings.warn(&mut session.warnings);
    let info = match tells_counts {
        true => inserted.info(session.warnings.count()),
        false => String::new(),
    };
    session.insert_done(Parsed::new(destination, ""), inserted, info, sink)?;
    Ok(true)
}

/// The values that are computed, in the order of their places. `None`: the vectorised path has to do it.
fn values_of_insert(
    session: &mut Session,
    insert: &Insert,
    parameters: &[Value],
) -> Result<Option<Vec<Value>>> {
    let mut values = Vec::new();
    let Some(expressions) = &insert.expressions else {
        return Ok(Some(values));
    };
    if insert.destination.options.mode.strict {
        session.findings.refuse();
    }
    let Some(evaluator) = evaluator(session, expressions, parameters) else {
        return Ok(None);
    };
    // There is no row that they are computed from.
    let row = evaluator.row(|_, _| Ok(Value::Null))?;
    for item in 0..evaluator.len() {
        let (value, origin) = (evaluator.value(item, &row)?, evaluator.origin(item));
        let ty = insert.type_of(item);
        values.push(match ty {
            Some(ty) => shown_in(&value, &origin, ty).into_owned(),
            None => value,
        });
    }
    Ok(Some(values))
}

/// What becomes of conflicting rows in a run with these parameters. `None`: the vectorised path has to do it.
pub(super) fn duplicate_update_of(
    session: &mut Session,
    (table, mode): (&Arc<Table>, Mode),
    duplicates: &Duplicates,
    parameters: &[Value],
) -> Option<DuplicateUpdate> {
    let mut kept = |expressions: &Option<Expressions>| {
        let Some(expressions) = expressions else {
            return Some(None);
        };
        if mode.strict {
            session.findings.refuse();
        }
        let evaluator = evaluator(session, expressions, parameters)?;
        let evaluator: Box<dyn KeptExpressions> = Box::new(OverBothRows(evaluator));
        Some(Some(evaluator))
    };
    let (expressions, sums) = (kept(&duplicates.expressions)?, kept(&duplicates.sums)?);
    let assigned = |value: &NewValue| {
        Some(match value {
            NewValue::Default => Assigned::Default,
            NewValue::Itself => Assigned::Itself,
            NewValue::New(column) => Assigned::New(*column),
            NewValue::Computed(item) => Assigned::Computed(*item),
            NewValue::Sum(sum) => sum.assigned(parameters),
            NewValue::Operand(operand) => match operand.value(parameters) {
                // Their texts are for the vectorised path to judge.
                Value::Double(_) => return None,
                value => Assigned::Value(value.clone(), origin_of_parameter(value)),
            },
            NewValue::Given(given) => {
                Assigned::Value(given.literal_value(session, parameters)?, given.origin())
            }
        })
    };
    let assignments = duplicates.assignments.iter();
    let assignments = assignments.map(|(column, value)| Some((*column, assigned(value)?)));
    let assignments = assignments.collect::<Option<_>>()?;
    Some(session.kept_duplicate_update(table, assignments, (expressions, sums), mode))
}

fn write_places(
    session: &mut Session,
    insert: &Insert,
    (parameters, computed, lists): (&[Value], Vec<Value>, Option<Lists<'_>>),
    writer: &mut TableWriter,
) -> Result<()> {
    let how = (session.local_now_micros(), insert.destination.options);
    writer.expect_rows(match lists {
        Some((lists, _)) => lists.rows,
        None => insert.rows.len() as u64,
    });
    match lists {
        Some((lists, forms)) => {
            let forms: Vec<Vec<ListPlace<'_>>> = forms
                .iter()
                .map(|form| places_of_form(session, form))
                .collect();
            let into = (writer, &mut session.warnings);
            write_lists(insert, (lists, &forms), how, into)
        }
        None => {
            let given = given_values(session, insert, parameters);
            let into = (writer, &mut session.warnings);
            write_rows_of(insert, (parameters, &computed, &given), how, into)
        }
    }
}

/// What the session gives for places of the rows, in the order of these.
fn given_values(session: &Session, insert: &Insert, parameters: &[Value]) -> Vec<Value> {
    let rows = insert.rows.iter();
    let places = rows.flat_map(|row| row.iter().zip(&insert.targets));
    let given = places.filter_map(|(place, position)| match place {
        Place::Given(given) => {
            let value = given.value(session, parameters);
            let ty = &insert.table.definition.columns[*position].ty;
            Some(shown_in(&value, &given.origin(), ty).into_owned())
        }
        _ => None,
    });
    given.collect()
}

fn places_of_form<'i>(session: &Session, insert: &'i Insert) -> Vec<ListPlace<'i>> {
    let columns = &insert.table.definition.columns;
    let places = insert.rows.iter().flatten().zip(&insert.targets);
    let place = |(place, position): (&'i Place, &usize)| {
        let constant = match place {
            Place::Given(given) => {
                let value = given.value(session, &[]);
                let ty = &columns[*position].ty;
                Some(shown_in(&value, &given.origin(), ty).into_owned())
            }
            Place::Operand(Operand::Constant(value)) => Some(value.clone()),
            _ => None,
        };
        (place, *position, constant)
    };
    places.map(place).collect()
}

/// `given`: see [`given_values`].
fn write_rows_of(
    insert: &Insert,
    (parameters, computed, given): (&[Value], &[Value], &[Value]),
    (now, options): (i64, WriteOptions),
    (writer, warnings): (&mut TableWriter, &mut Warnings),
) -> Result<()> {
    let mut shape = RowShape::new(&insert.table, &insert.targets, options, now, warnings)?;
    let is_only = insert.rows.len() == 1 && !options.ignore;
    if is_only {
        writer.writes_only_row();
    }
    let mut given = given.iter();
    for (n, places) in insert.rows.iter().enumerate() {
        let mut row = match n + 1 == insert.rows.len() {
            true => shape.take_last_row(),
            false => shape.new_row(),
        };
        let number = n as u64 + 1;
        for (place, position) in places.iter().zip(&insert.targets) {
            let value = match place {
                Place::Default => {
                    shape.put_default(&mut row, *position, now, warnings)?;
                    continue;
                }
                Place::Operand(operand) => operand.value(parameters),
                Place::Given(_) => {
                    let value = given.next();
                    value.ok_or_else(|| SqlError::unknown("a row has a place without a value"))?
                }
                Place::Computed(item) => &computed[*item],
            };
            if is_only {
                shape.check_only_row(*position, value)?;
            }
            shape.put(&mut row, *position, value, number, warnings)?;
        }
        writer.write(&row, warnings)?;
    }
    Ok(())
}

/// As [`write_rows_of`], for the one row of each form's plan with the literals of each row of the lists.
fn write_lists(
    insert: &Insert,
    (lists, forms): (&ValueLists<'_>, &[Vec<ListPlace<'_>>]),
    (now, options): (i64, WriteOptions),
    (writer, warnings): (&mut TableWriter, &mut Warnings),
) -> Result<()> {
    let mut shape = RowShape::new(&insert.table, &insert.targets, options, now, warnings)?;
    let mut taken = Taken::default();
    let mut reader = lists.reader(&mut taken);
    let mut row = shape.take_last_row();
    let mut number = 0;
    while let Some(form) = reader.next_row() {
        number += 1;
        for (place, position, constant) in &forms[form] {
            match (place, constant) {
                (Place::Default, _) => shape.put_default(&mut row, *position, now, warnings)?,
                (_, Some(value)) => shape.put(&mut row, *position, value, number, warnings)?,
                (Place::Operand(Operand::Parameter(place)), _) => {
                    let written = reader.literal(*place);
                    put_literal(&shape, (&mut row, *position), written, number, warnings)?;
                }
                // The plan has no other places: see `Insert::takes_lists`.
                _ => return Err(SqlError::unknown("a row has a place without a value")),
            }
        }
        writer.write(&row, warnings)?;
    }
    Ok(())
}

/// Rows that come without a tree, and the plan of each of their forms.
type Lists<'a> = (&'a ValueLists<'a>, &'a [&'a Insert]);

/// A place of a form, the column that it is for, and its value if that is the same in all rows.
type ListPlace<'a> = (&'a Place, usize, Option<Value>);

/// Puts a literal into a column of a row, as it is written.
fn put_literal(
    shape: &RowShape,
    (row, position): (&mut [Value], usize),
    written: &str,
    number: u64,
    warnings: &mut Warnings,
) -> Result<()> {
    match written.as_bytes().first() {
        Some(quote @ (b'\'' | b'"')) => {
            let text = value_lists::text(written, *quote);
            shape.put_text(row, position, &text, number, warnings)
        }
        _ => {
            let value = value_lists::literal(written);
            // A first pass has found it to be one.
            let value = value.ok_or_else(|| SqlError::unknown("a row has no literal"))?;
            shape.put(row, position, &value, number, warnings)
        }
    }
}

/// A time shows the digits of its seconds that a client has sent: none, or all of them.
fn origin_of_parameter(value: &Value) -> Origin {
    Origin::of_decimals(match value {
        Value::Time(micros) | Value::DateTime(micros) | Value::Timestamp(micros)
            if micros % SECOND != 0 =>
        {
            6
        }
        _ => 0,
    })
}
