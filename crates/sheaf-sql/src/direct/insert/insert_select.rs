//! INSERT and REPLACE of what a direct plan of a query finds.
//!
//! The rows wait in memory until the query is done, so that it does not meet what was inserted, and are written as the
//! vectorised path writes its rows. ON DUPLICATE KEY UPDATE may name the conflicting row and the new one. Columns that
//! only the query has are left to that path.

use std::sync::Arc;

use sheaf_table::Table;
use sheaf_types::Value;
use sqlparser::ast;

use crate::accounts::{TableNeed, insert_needs};
use crate::change::insert::destination::Destination;
use crate::change::insert::on_duplicate::take_source_columns;
use crate::change::insert::row_shape::RowShape;
use crate::change::insert::table_writer::{TableWriter, target_columns};
use crate::change::rules::generated_columns::check_given_columns;
use crate::change::values::assigned::last_part;
use crate::direct::insert::{Duplicates, duplicate_update_of, insert_by};
use crate::direct::rows::values::Values;
use crate::direct::syntax::attempt::Attempt;
use crate::direct::syntax::headers::Spelled;
use crate::direct::{Action, may_divide};
use crate::error::Result;
use crate::locking::statement_locks::PlannedSearch;
use crate::parser::statement::Statement;
use crate::query::rows::value_at;
use crate::query::values::shown_in;
use crate::session::Session;
use crate::session::result::ResultSink;

/// See the module's comment.
pub(in crate::direct) struct InsertSelect {
    destination: Destination,
    pub(in crate::direct) table: Arc<Table>,
    /// Positions of the columns that are given.
    targets: Vec<usize>,
    pub(in crate::direct) query: Action,
    /// ON DUPLICATE KEY UPDATE. It names nothing that only the query has.
    duplicates: Option<Duplicates>,
    pub(in crate::direct) needs: Vec<TableNeed>,
}

impl InsertSelect {
    /// The plan of an INSERT; `None` if it is not one of a query with a direct plan.
    pub(in crate::direct) fn compile(
        session: &Session,
        insert: &ast::Insert,
        attempt: Attempt<'_>,
    ) -> Option<InsertSelect> {
        let is_plain = insert.optimizer_hints.is_empty()
            && insert.returning.is_none()
            && insert.assignments.is_empty();
        let source = insert.source.as_deref().filter(|_| is_plain)?;
        let ast::SetExpr::Select(select) = source.body.as_ref() else {
            return None;
        };
        // Divisions by 0 are errors here.
        if may_divide(select) {
            return None;
        }
        let query = session.query_action(source, attempt)?;
        let mut destination = Destination {
            columns: insert.columns.iter().map(last_part).collect(),
            ..session.plain_destination(insert)?
        };
        destination.options.bulk = true;
        let (database, name) = (&destination.database, &destination.table);
        let table = session.table_names().table(database, name).ok()?;
        if table.definition.has_computed_defaults() {
            return None;
        }
        let targets = target_columns(&table, &destination.columns).ok()?;
        check_given_columns(&table.definition, &targets).ok()?;
        if let Some(ast::OnInsert::DuplicateKeyUpdate(assignments)) = &insert.on {
            let (mut assignments, mut source) = (assignments.clone(), source.clone());
            let row = (table.as_ref(), insert.insert_alias.as_ref());
            take_source_columns(Some(session), row, &mut assignments, &mut source).ok()?;
        }
        let duplicates = Duplicates::of_insert(insert, (&table, &targets))?;
        let mut needs =
            crate::direct::needs_of(&query, &Statement::Query(Box::new(source.clone())));
        if query.result_columns() != targets.len() || needs.iter().any(|need| need.locks.is_some())
        {
            return None;
        }
        needs.push(TableNeed::new(&table, insert_needs(insert), None));
        Some(InsertSelect {
            destination,
            table,
            targets,
            query,
            duplicates,
            needs,
        })
    }
}

/// False: the vectorised path has to do it.
pub(in crate::direct) fn run_direct_insert_select(
    session: &mut Session,
    insert: &InsertSelect,
    parameters: &[Value],
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    let options = insert.destination.options;
    if options.mode.strict {
        session.findings.refuse();
    }
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
    let implicit = session.begin_implicit(true);
    let mut found = Values::default();
    let writer = open_and_find(session, insert, parameters, &mut found);
    insert_by(
        session,
        (implicit, &insert.destination),
        writer,
        duplicates,
        |session, writer| write_found(session, insert, &found, writer),
        true,
        sink,
    )
}

/// Opens the target, before rows are locked that others may wait for, and finds what is to be written there.
/// `None`: the vectorised path has to do it.
fn open_and_find(
    session: &mut Session,
    insert: &InsertSelect,
    parameters: &[Value],
    found: &mut Values,
) -> Result<Option<TableWriter>> {
    let Some(tables) = session.open_known_target(&insert.table)? else {
        return Ok(None);
    };
    let has_found = find_to_insert(session, &insert.query, parameters, found);
    session.transactions.has_read_for_change();
    match has_found {
        Ok(true) => {
            let table = Arc::clone(&insert.table);
            let options = insert.destination.options;
            return session.row_writer(table, tables, options).map(Some);
        }
        Ok(false) => {}
        // The vectorised path begins again.
        Err(error) if error.is_definition_changed() => {}
        Err(error) => {
            session.transactions.keep_tables(tables);
            return Err(error);
        }
    }
    session.transactions.keep_tables(tables);
    Ok(None)
}

/// What the query finds, locked from REPEATABLE READ on. False: the vectorised path has to do it.
fn find_to_insert(
    session: &mut Session,
    query: &Action,
    parameters: &[Value],
    found: &mut Values,
) -> Result<bool> {
    find_and_lock(session, found, |session, found| {
        session.run_action(query, (parameters, Spelled::AsWritten), found)
    })
}

/// What `run` finds of what is committed by now, locked from REPEATABLE READ on. False: the vectorised path has to
/// do it.
pub(in crate::direct) fn find_and_lock(
    session: &mut Session,
    found: &mut Values,
    run: impl FnOnce(&mut Session, &mut Values) -> Result<bool>,
) -> Result<bool> {
    let view = session
        .transactions
        .current_view(session.engine.storage())?;
    session.statement.view = Some(view.clone());
    let locks_reads = session.transactions.changes_lock_reads();
    session.statement.searched = locks_reads.then(Vec::new);
    let before = (session.outcome.found_rows, session.outcome.row_count);
    let is_done = run(session, found);
    let is_done = found.outcome(is_done);
    session.statement.view = None;
    let searched = session.statement.searched.take().unwrap_or_default();
    let searches = searched.into_iter();
    let searches = searches.map(|searched| PlannedSearch::of_read(searched, &view));
    let searches = searches.collect::<Result<_>>()?;
    let wait = session.variables.row_lock_wait(None);
    // What is not there any more as it was found is found by the other way.
    if !is_done?
        || !session
            .transactions
            .lock_what_was_searched(&view, searches, wait)?
    {
        (session.outcome.found_rows, session.outcome.row_count) = before;
        return Ok(false);
    }
    Ok(true)
}

fn write_found(
    session: &mut Session,
    insert: &InsertSelect,
    found: &Values,
    writer: &mut TableWriter,
) -> Result<()> {
    let (now, options) = (session.local_now_micros(), insert.destination.options);
    let columns = &insert.table.definition.columns;
    let warnings = &mut session.warnings;
    let shape = RowShape::new(&insert.table, &insert.targets, options, now, warnings)?;
    let mut row = shape.new_row();
    for batch in &found.batches {
        for position in 0..batch.num_rows() {
            let number = writer.rows_seen() + 1;
            for (at, target) in insert.targets.iter().enumerate() {
                let value = value_at(batch.column(at).as_ref(), position)?;
                let value = shown_in(&value, &found.origins[at], &columns[*target].ty);
                shape.put(&mut row, *target, &value, number, warnings)?;
            }
            writer.write(&row, warnings)?;
        }
    }
    Ok(())
}
