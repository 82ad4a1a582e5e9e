//! How UPDATE and DELETE run: rows are found, locked and changed one by one. If one of them has changed since, all
//! begins again.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use sheaf_access::IndexUse;
use sheaf_storage::{Direction, LockMode, ReadView};
use sheaf_table::{ChangeSet, RowToChange, RowView, Table};
use sheaf_types::Value;

use super::delete::Delete;
use super::new_value::Inputs;
use super::rows::Rows;
use super::update::{Update, copy_of_row};
use crate::change::find::change_query::position_of;
use crate::change::rules::row_rules::{RowRules, row_rules};
use crate::direct::access::{Access, BoundAccess, bind_access};
use crate::direct::expression::evaluator;
use crate::direct::join::MAX_SMALL_ROWS;
use crate::direct::shown::row::RowReader;
use crate::direct::syntax::given::Given;
use crate::error::Result;
use crate::isolation::transaction::StatementTransaction;
use crate::session::result::ResultSink;
use crate::session::searched::DirectSearch;
use crate::session::warnings::Warnings;
use crate::session::{Session, SessionHandle};

/// What is found in a run.
struct Found<'a> {
    rows: &'a Rows,
    bound: &'a BoundAccess,
    /// The most that are changed.
    most: u64,
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
        row_rules: &'a RowRules,
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
        let Work::Update {
            update,
            inputs,
            row_rules,
        } = self
        else {
            return Ok(Some(locked.delete(statement.changes(), position, key)?));
        };
        let needs = |column: usize| update.needs(column) || row_rules.need(column);
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
        let mut row = copy_of_row(&old)?;
        for (column, value) in values {
            row[column] = value;
        }
        if row != old {
            if let Some(error) = row_rules.complete(&old, &mut row, number, warnings)? {
                return Err(error);
            }
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
        let Work::Update { update, inputs, .. } = self else {
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

/// In a strict mode, a change fails where it computes with what is no number or too long, in its condition, too.
fn refuse_bad_texts(session: &mut Session, access: &Access, computes: bool) {
    if (computes || access.filter().is_some()) && session.insert_mode(false).strict {
        session.findings.refuse();
    }
}

/// `None`: the vectorised path has to do it.
fn inputs_of_update<'a>(
    session: &mut Session,
    update: &Update,
    parameters: &'a [Value],
) -> Option<Inputs<'a>> {
    let mode = session.insert_mode(false);
    let evaluator = match &update.expressions {
        Some(expressions) => Some(evaluator(session, expressions, parameters)?),
        None => None,
    };
    let value_of =
        |given: &Given| Some((given.literal_value(session, parameters)?, given.origin()));
    Some(Inputs {
        parameters,
        given: update.given.iter().map(value_of).collect::<Option<_>>()?,
        evaluator,
        mode,
        now_micros: session.local_now_micros(),
    })
}

/// False: the vectorised path has to do it.
pub(in crate::direct) fn run_direct_update(
    session: &mut Session,
    update: &Update,
    table: &Arc<Table>,
    parameters: &[Value],
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    let rows = &update.rows;
    refuse_bad_texts(session, &rows.access, update.expressions.is_some());
    let Some(bound) = bind_access(session, &rows.access, table, parameters) else {
        return Ok(false);
    };
    let Some(most) = rows.most(parameters) else {
        return Ok(false);
    };
    let Some(inputs) = inputs_of_update(session, update, parameters) else {
        return Ok(false);
    };
    let row_rules = match update.has_row_rules {
        true => row_rules(session, table, inputs.mode)?,
        false => RowRules::default(),
    };
    let work = Work::Update {
        update,
        inputs: &inputs,
        row_rules: &row_rules,
    };
    let bound = &bound;
    let found = Found { rows, bound, most };
    let changed = change_directly(session, &found, table, &work)?;
    let Some(Changed { matched, changed }) = changed else {
        return Ok(false);
    };
    session.handle.counters.handler_update.add(changed);
    let updated = IndexUse {
        updated: changed,
        ..IndexUse::default()
    };
    session
        .handle
        .counters
        .index_uses
        .add(table.clustered.id(), updated);
    session.findings.warn(&mut session.warnings);
    let info = match sink.wants_info() {
        true => format!(
            "Rows matched: {matched}  Changed: {changed}  Warnings: {}",
            session.warnings.count()
        ),
        false => String::new(),
    };
    let affected = if session.client.info.found_rows {
        matched
    } else {
        changed
    };
    session.ok(sink, affected, info)?;
    Ok(true)
}

/// False: the vectorised path has to do it.
pub(in crate::direct) fn run_direct_delete(
    session: &mut Session,
    delete: &Delete,
    table: &Arc<Table>,
    parameters: &[Value],
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    let rows = &delete.rows;
    refuse_bad_texts(session, &rows.access, false);
    let Some(bound) = bind_access(session, &rows.access, table, parameters) else {
        return Ok(false);
    };
    let Some(most) = rows.most(parameters) else {
        return Ok(false);
    };
    let bound = &bound;
    let found = Found { rows, bound, most };
    let changed = change_directly(session, &found, table, &Work::Delete)?;
    let Some(Changed { changed, .. }) = changed else {
        return Ok(false);
    };
    session.handle.counters.handler_delete.add(changed);
    let deleted = IndexUse {
        deleted: changed,
        ..IndexUse::default()
    };
    session
        .handle
        .counters
        .index_uses
        .add(table.clustered.id(), deleted);
    session.ok(sink, changed, String::new())?;
    Ok(true)
}

/// Finds rows and changes each, in a statement of the session's transaction. `None`: nothing was changed, and the
/// vectorised path has to do it.
fn change_directly(
    session: &mut Session,
    found: &Found<'_>,
    table: &Arc<Table>,
    work: &Work<'_>,
) -> Result<Option<Changed>> {
    session.check_writable(table.definition.is_temporary())?;
    let Some(locked) = session.lock_tables(std::slice::from_ref(table))? else {
        return Ok(None);
    };
    // Workers and batches pay for themselves beyond.
    let access = &found.rows.access;
    let outcome = match found.bound.keys.estimated_rows(table, access.index) {
        Ok(rows) if rows > access.most_rows() => Ok(None),
        Ok(rows) if access.is_whole() && rows > MAX_SMALL_ROWS => Ok(None),
        Ok(_) => change_locked(session, found, (&locked, table), work),
        Err(error) => Err(error),
    };
    session.transactions.keep_tables(locked);
    outcome
}

fn change_locked(
    session: &mut Session,
    found: &Found<'_>,
    tables: (&ChangeSet, &Arc<Table>),
    work: &Work<'_>,
) -> Result<Option<Changed>> {
    let mut statement = session.begin_changes(tables.0)?;
    let before = session.warnings.clone();
    let outcome = session.until_stable(&mut statement, |session, statement| {
        let (handle, warnings) = (&session.handle, &mut session.warnings);
        let attempt = attempt(handle, found, tables, work, (statement, warnings));
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
            session.transactions.abandon_changes(statement)?;
            Ok(None)
        }
        outcome => session.end_changes(statement, outcome),
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
