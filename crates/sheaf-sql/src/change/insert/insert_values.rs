//! The values of INSERT and REPLACE ... VALUES and SET.
//!
//! They are computed before the first row is written, but for those that name columns of their row
//! (`values_before.rs`): these are computed when the values in front of them are in the row. Of a long list without
//! queries the first rows are computed, and the others as those before them are written: values may take much more
//! memory than what they are computed from. Where they may be long it is a few rows at a time. Of a list that is longer
//! still, the rows behind the first are [not parsed](RowPortions) before that.
//!
//! A name in a subquery is first one of the subquery's tables. Only if it is none of these, the row is put around the
//! value (`values_around.rs`).

use std::borrow::Cow;
use std::sync::Arc;

use sheaf_table::{Privileges, Table};
use sheaf_types::error::codes;
use sheaf_types::{ColumnType, Value};
use sqlparser::ast;

use super::destination::Destination;
use super::row_shape::RowShape;
use super::table_writer::TableWriter;
use crate::change::find::through_view::ChangedView;
use crate::change::row_values::values_around::{columns_named, row_around_values};
use crate::change::row_values::values_before::{LaterValue, RowSoFar, take_later_values};
use crate::change::values::assigned::is_default;
use crate::error::{Result, SqlError};
use crate::parser::{Parsed, RowPortions};
use crate::query::values::{has_subquery, hybrid_number, shown_in};
use crate::session::Session;

/// Rows that are computed at a time, where no query in them has to see the same rows as the others.
const ROWS_AT_A_TIME: usize = 256;
/// The same where values may be long, and the writer has no more of them than it needs.
const LONG_ROWS_AT_A_TIME: usize = 4;

/// The rows of VALUES.
pub(crate) struct RowsToInsert {
    computed: Vec<Vec<Source>>,
    /// Those that follow.
    others: Vec<Vec<ast::Expr>>,
    /// So many of them are computed at a time.
    at_a_time: usize,
    /// Those behind them.
    unparsed: Option<RowPortions>,
    /// The view that the statement names, if it is one.
    view: Option<Arc<ChangedView>>,
}

/// One place in VALUES.
pub(crate) enum Source {
    /// The keyword DEFAULT.
    Default,
    Value(Value),
    Later(Box<LaterValue>),
}

/// The columns that VALUES gives values to, and these.
pub(crate) fn values_to_insert(
    session: &mut Session,
    table: &Arc<Table>,
    destination: &mut Destination,
    mut rows: Vec<Vec<ast::Expr>>,
    text: &str,
) -> Result<(Vec<usize>, RowsToInsert)> {
    let unparsed = RowPortions::take_from(&mut rows);
    // `INSERT INTO t () VALUES ()` gives no column a value.
    let all_default = destination.columns.is_empty() && rows.iter().all(Vec::is_empty);
    let targets = if all_default {
        Vec::new()
    } else {
        destination.target_columns(table)?
    };
    check_value_counts(&rows, targets.len())?;
    let view = destination.view.clone();
    check_may_read(
        session,
        table,
        view.as_deref(),
        columns_named(table, &mut rows, false),
    )?;
    session.compute_subqueries(&mut destination.assignments, text)?;
    let has_query = |row: &mut Vec<ast::Expr>| row.iter_mut().any(has_subquery);
    let at_a_time = rows_at_a_time(session, &mut rows);
    let others = match rows.len() > at_a_time && !rows.iter_mut().any(has_query) {
        true => rows.split_off(at_a_time),
        false => Vec::new(),
    };
    let now = session.local_now_micros();
    let of_row = (&**table, targets.as_slice(), now);
    let with_row = row_around_values(of_row, &mut rows);
    let in_queries = match with_row {
        Some(_) => columns_named(table, &mut rows, true),
        None => Vec::new(),
    };
    let values = values_of_rows(session, table, &targets, Parsed::new(rows, text));
    // A subquery beside a name outside of it is refused where rows are computed, before its own names are looked
    // up.
    let of_names = [codes::BAD_FIELD_ERROR, codes::NOT_SUPPORTED_YET].map(|code| code.number());
    let values = match (values, with_row) {
        (Err(error), Some(rows)) if of_names.contains(&error.code) => {
            check_may_read(session, table, view.as_deref(), in_queries)?;
            values_of_rows(session, table, &targets, Parsed::new(rows?, text))?
        }
        (values, _) => values?,
    };
    let computed = values;
    let rows = RowsToInsert {
        computed,
        others,
        at_a_time,
        unparsed,
        view,
    };
    Ok((targets, rows))
}

/// Error 1143 for a column of their row that values read and that the session may not read.
fn check_may_read(
    session: &Session,
    table: &Table,
    view: Option<&ChangedView>,
    columns: Vec<usize>,
) -> Result<()> {
    let mut columns = columns.into_iter();
    columns.try_for_each(|at| session.check_column_of(table, view, at, Privileges::SELECT))
}

fn rows_at_a_time(session: &Session, rows: &mut [Vec<ast::Expr>]) -> usize {
    let are_several = rows.len() > LONG_ROWS_AT_A_TIME;
    let mut values = rows.iter_mut().flatten();
    match are_several && values.any(|value| session.may_be_long(value)) {
        true => LONG_ROWS_AT_A_TIME,
        false => ROWS_AT_A_TIME,
    }
}

/// The values of rows for these columns.
fn values_of_rows(
    session: &mut Session,
    table: &Table,
    targets: &[usize],
    rows: Parsed<'_, Vec<Vec<ast::Expr>>>,
) -> Result<Vec<Vec<Source>>> {
    let Parsed {
        ast: mut rows,
        text,
    } = rows;
    let now = session.local_now_micros();
    let mut later = Vec::new();
    for (number, row) in rows.iter_mut().enumerate() {
        for (at, mut value) in take_later_values(table, targets, row, now)? {
            session.compute_subqueries_in(value.expression(), text)?;
            later.push((number, at, value));
        }
    }
    let type_of = |target: &usize| &table.definition.columns[*target].ty;
    let types: Vec<&ColumnType> = targets.iter().map(type_of).collect();
    for (expression, ty) in rows.iter_mut().flat_map(|row| row.iter_mut().zip(&types)) {
        if let Some(number) = hybrid_number(expression, ty) {
            *expression = number;
        }
    }
    // What SET TRANSACTION said is not about reads of the values alone.
    let next = session.transactions.next;
    let mut values = values_of(session, Parsed::new(rows, text), &types)?;
    session.transactions.next = next;
    for (number, at, value) in later {
        values[number][at] = Source::Later(Box::new(value));
    }
    Ok(values)
}

/// Evaluates all expressions of VALUES, for columns of these types.
fn values_of(
    session: &mut Session,
    rows: Parsed<'_, Vec<Vec<ast::Expr>>>,
    types: &[&ColumnType],
) -> Result<Vec<Vec<Source>>> {
    let Parsed { ast: rows, text } = rows;
    let are_defaults: Vec<Vec<bool>> = rows
        .iter()
        .map(|row| row.iter().map(is_default).collect())
        .collect();
    let (expressions, types): (Vec<ast::Expr>, Vec<&ColumnType>) = rows
        .into_iter()
        .flat_map(|row| row.into_iter().zip(types.iter().copied()))
        .filter(|(expression, _)| !is_default(expression))
        .unzip();
    let values = session.evaluate_all(Parsed::new(expressions, text), &types)?;
    let mut values = values.into_iter();
    let mut next = || values.next().unwrap_or_default();
    Ok(are_defaults
        .into_iter()
        .map(|row| {
            let source = |is_default| match is_default {
                true => Source::Default,
                false => Source::Value(next()),
            };
            row.into_iter().map(source).collect()
        })
        .collect())
}

/// Writes the rows of VALUES.
pub(crate) fn write_values(
    session: &mut Session,
    writer: &mut TableWriter,
    targets: Vec<usize>,
    rows: Parsed<'_, RowsToInsert>,
) -> Result<()> {
    let statement_text = rows.text;
    let RowsToInsert {
        computed,
        others,
        mut at_a_time,
        mut unparsed,
        view,
    } = rows.ast;
    let behind = unparsed.as_ref().map_or(0, RowPortions::rows);
    let count = computed.len() + others.len() + behind;
    let now = session.local_now_micros();
    let (table, options) = (writer.table(), writer.options());
    let defaults = session.computed_defaults(&table.definition)?;
    let shape = RowShape::new(table, &targets, options, now, &mut session.warnings)?;
    let shape = shape.with_defaults(defaults);
    let is_only_row = count == 1 && !options.ignore;
    if is_only_row {
        writer.writes_only_row();
    }
    writer.expect_rows(count as u64);
    let mut others = others.into_iter();
    let mut next = computed.into_iter();
    // That of the portion which `others` are of.
    let mut text = Cow::Borrowed(statement_text);
    for n in 0..count {
        if next.len() == 0 {
            if others.len() == 0
                && let Some(unparsed) = &mut unparsed
                && let Some(mut portion) = unparsed.next(statement_text, &session.dialect())?
            {
                let table = Arc::clone(writer.table());
                let read = columns_named(&table, &mut portion.rows, false);
                check_may_read(session, &table, view.as_deref(), read)?;
                at_a_time = rows_at_a_time(session, &mut portion.rows);
                others = portion.rows.into_iter();
                text = Cow::Owned(portion.text);
            }
            let some: Vec<_> = others.by_ref().take(at_a_time).collect();
            let table = Arc::clone(writer.table());
            next = values_of_rows(session, &table, &targets, Parsed::new(some, &text))?.into_iter();
            session.transactions.has_read_for_change();
        }
        let Some(sources) = next.next() else { break };
        let mut row = shape.new_row();
        let is_later = |source: &Source| matches!(source, Source::Later(_));
        let mut so_far = sources
            .iter()
            .any(is_later)
            .then(|| RowSoFar::new(writer.table(), now));
        for (source, position) in sources.into_iter().zip(&targets) {
            let source = match (source, &so_far) {
                (Source::Later(value), Some(so_far)) => {
                    let value = Parsed::new(&*value, &text);
                    let (value, origin) = session.later_value(writer.table(), value, so_far)?;
                    let ty = &writer.table().definition.columns[*position].ty;
                    Source::Value(shown_in(&value, &origin, ty).into_owned())
                }
                (source, _) => source,
            };
            match source {
                Source::Default => {
                    shape.put_default(&mut row, *position, now, &mut session.warnings)?;
                }
                Source::Value(value) => {
                    if is_only_row {
                        shape.check_only_row(*position, &value)?;
                    }
                    shape.put(
                        &mut row,
                        *position,
                        &value,
                        n as u64 + 1,
                        &mut session.warnings,
                    )?;
                }
                // It has become a value.
                Source::Later(_) => {}
            }
            if let Some(so_far) = &mut so_far {
                let column = &writer.table().definition.columns[*position];
                so_far.note(column, *position, &row[*position]);
            }
        }
        let number = (n as u64 + 1, is_only_row);
        shape.complete(&mut row, number, &mut session.warnings)?;
        writer.write(&row, &mut session.warnings)?;
    }
    Ok(())
}

/// Error 1136 for a row that has not as many values as there are columns.
fn check_value_counts<T>(rows: &[Vec<T>], columns: usize) -> Result<()> {
    match rows.iter().position(|row| row.len() != columns) {
        Some(row) => Err(SqlError::wrong_value_count_on_row(row as u64 + 1)),
        None => Ok(()),
    }
}
