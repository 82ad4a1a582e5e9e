//! UPDATE and DELETE of what a direct plan of a query finds: of joins, with subqueries, with assignments that build on
//! each other.
//!
//! The vectorised forms plan the SELECT that finds keys and new values (`change/find/change_query.rs`). Here that
//! SELECT is a direct plan. It reads the columns of primary keys, of which the clustered keys are made:
//!
//! ```text
//!   UPDATE p JOIN u ON u.id = p.user SET p.views = p.views + 1 WHERE u.id = ?
//!   SELECT p.id, p.views + 1 FROM p JOIN u ON u.id = p.user WHERE u.id = ?        a direct plan
//!          ----  -----------
//!          key   new value      -> rows in memory -> locked, compared and written as by the vectorised form
//! ```
//!
//! What the plan has searched is noted while it runs, because keys of a join are not known before
//! ([`Searched`](crate::session::searched::Searched)).

use std::sync::Arc;

use sheaf_storage::ReadView;
use sheaf_table::{ChangeSet, Privileges, Table, TableDefinition};
use sheaf_types::Value;
use sqlparser::ast;

use crate::accounts::TableNeed;
use crate::change::delete::delete_rows;
use crate::change::find::change_query::key_of;
use crate::change::find::first_finds::{Finds, FirstFinds};
use crate::change::update::update_rows::{Updated, update_rows};
use crate::change::update::update_target::Target;
use crate::change::update::{is_single, names_table_twice};
use crate::direct::rows::found_key::FoundKey;
use crate::direct::rows::values::Values;
use crate::direct::syntax::attempt::Attempt;
use crate::direct::syntax::headers::Spelled;
use crate::direct::{Action, DirectPlan, may_divide};
use crate::error::Result;
use crate::isolation::transaction::StatementTransaction;
use crate::locking::statement_locks::PlannedSearch;
use crate::parser::statement::{self, Statement};
use crate::query::row_spool::{RowSpool, SpooledRows};
use crate::query::rows::value_at;
use crate::session::Session;
use crate::session::result::{Origin, ResultSink};
use crate::session::searched::Searched;
use crate::session::status::Command;

/// See the module's comment.
pub(in crate::direct) struct ChangeFound {
    /// Finds keys and new values.
    pub(in crate::direct) query: DirectPlan,
    /// Of each table that is changed.
    keys: Vec<FoundKey>,
    /// The query's columns without parts of keys beyond the first ones.
    width: usize,
    work: Work,
    pub(in crate::direct) command: Command,
}

enum Work {
    Update {
        targets: Vec<Target>,
        is_single: bool,
    },
    Delete(Vec<Arc<Table>>),
}

/// What is found in a run.
struct Found {
    rows: SpooledRows,
    finds: Finds,
    origins: Vec<Origin>,
    searched: Vec<Searched>,
}

impl ChangeFound {
    /// The plan of an UPDATE; `None` if its query has no direct plan.
    pub(in crate::direct) fn of_update(
        session: &Session,
        update: &statement::Update,
        attempt: Attempt<'_>,
    ) -> Option<ChangeFound> {
        if update.ignore || !update.hints.is_empty() {
            return None;
        }
        let (targets, query) = session.update_to_find(update).ok()?;
        if names_table_twice(&targets) {
            return None;
        }
        let is_single = is_single(&update.tables);
        let keys = targets.iter();
        let keys = keys.map(|target| (Arc::clone(&target.table), target.key));
        let plan = ChangeFound::of(session, (query, attempt), keys.collect(), || Work::Update {
            targets,
            is_single,
        })?;
        let command = match is_single {
            true => Command::Update,
            false => Command::UpdateMulti,
        };
        Some(ChangeFound { command, ..plan })
    }

    /// What the statement is called, and the tables that it changes.
    pub(in crate::direct) fn changed_tables(&self) -> (&'static str, Vec<String>) {
        let name = |table: &Arc<Table>| table.definition.name.clone();
        match &self.work {
            Work::Update { targets, .. } => {
                let tables = targets.iter().map(|target| name(&target.table));
                ("UPDATE", tables.collect())
            }
            Work::Delete(tables) => ("DELETE", tables.iter().map(name).collect()),
        }
    }

    /// As [`Self::of_update`], of a DELETE.
    pub(in crate::direct) fn of_delete(
        session: &Session,
        delete: &statement::Delete,
        attempt: Attempt<'_>,
    ) -> Option<ChangeFound> {
        if delete.ignore || !delete.hints.is_empty() || delete.returning.is_some() {
            return None;
        }
        let (tables, query) = session.delete_to_find(delete).ok()?;
        let keys = tables.iter().cloned().zip(0..).collect();
        let plan = ChangeFound::of(session, (query, attempt), keys, || Work::Delete(tables))?;
        let command = match delete.targets.is_empty() {
            true => Command::Delete,
            false => Command::DeleteMulti,
        };
        Some(ChangeFound { command, ..plan })
    }

    fn of(
        session: &Session,
        (mut query, attempt): (Box<ast::Query>, Attempt<'_>),
        tables: Vec<(Arc<Table>, usize)>,
        work: impl FnOnce() -> Work,
    ) -> Option<ChangeFound> {
        // Divisions by 0 are errors here, and so are window functions.
        if may_divide(&query) || may_have_windows(&query) {
            return None;
        }
        let ast::SetExpr::Select(select) = query.body.as_mut() else {
            return None;
        };
        let width = select.projection.len();
        let keys = tables.into_iter();
        let keys = keys.map(|(table, place)| FoundKey::of(table, place, &mut select.projection));
        let keys = keys.collect::<Option<Vec<FoundKey>>>()?;
        let query = session.plan_attempted(&Statement::Query(query), attempt)?;
        // How a small table is locked that is read from end to end is for the operators to say.
        if matches!(&query.action, Action::Read(read, _) if read.reads_whole) {
            return None;
        }
        // A text that is no number is an error in a condition, of the rows that MySQL comes to.
        if matches!(&query.action, Action::OverRows(query) if query.filters_texts)
            && session.insert_mode(false).strict
        {
            return None;
        }
        let locks = query.needs.iter().any(|need| need.locks.is_some());
        (!locks).then(|| ChangeFound {
            query,
            keys,
            width,
            work: work(),
            command: Command::Update,
        })
    }

    /// Whether all tables are what the plan was made for.
    pub(in crate::direct) fn is_current(&self) -> bool {
        self.query.is_current() && self.keys.iter().all(|key| key.table.is_current())
    }

    /// What its sessions need of its tables. `reads`: whether the statement reads any column of them.
    pub(in crate::direct) fn needs(&self, reads: bool) -> Vec<TableNeed> {
        let privileges = match self.work {
            Work::Update { .. } => Privileges::UPDATE,
            Work::Delete(_) => Privileges::DELETE,
        };
        let keys = self.keys.iter();
        let of_changed = keys.map(|key| TableNeed::new(&key.table, privileges, None));
        let of_query = self.query.needs.iter().filter(|_| reads);
        of_changed.chain(of_query.cloned()).collect()
    }
}

/// False: the vectorised path has to do it.
pub(in crate::direct) fn run_direct_change_found(
    session: &mut Session,
    change: &ChangeFound,
    parameters: &[Value],
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    let tables: Vec<_> = change
        .keys
        .iter()
        .map(|key| Arc::clone(&key.table))
        .collect();
    let mut definitions = tables.iter().map(|table| &table.definition);
    session.check_writable(definitions.all(TableDefinition::is_temporary))?;
    let Some(locked) = session.lock_tables(&tables)? else {
        return Ok(false);
    };
    let outcome = change_what_is_found(session, change, parameters, &locked);
    session.transactions.keep_tables(locked);
    match outcome? {
        None => return Ok(false),
        Some(Done::Updated(updated)) => session.end_update(updated, sink)?,
        Some(Done::Deleted(rows)) => session.ok(sink, rows, String::new())?,
    }
    Ok(true)
}

/// `None`: nothing was changed, and the vectorised path has to do it.
fn change_what_is_found(
    session: &mut Session,
    change: &ChangeFound,
    parameters: &[Value],
    locked: &ChangeSet,
) -> Result<Option<Done>> {
    if session.insert_mode(false).strict {
        session.findings.refuse();
    }
    let targets_of_run = match &change.work {
        Work::Update { targets, .. } => session.targets_of_run(targets)?,
        Work::Delete(_) => None,
    };
    let mut statement = session.begin_changes(locked)?;
    let before = session.warnings.clone();
    let outcome = session.until_stable(&mut statement, |session, statement| {
        let view = statement.changes().view_to_lock()?;
        let found = find_to_change(session, change, parameters, (statement, &view))?;
        let Some(found) = found else {
            // Another way is taken, which finds the same rows.
            session.warnings.clone_from(&before);
            session.findings.truncated_texts.take();
            statement.start_again()?;
            return Ok(Some(None));
        };
        let Found {
            rows,
            finds,
            origins,
            searched,
        } = found;
        let transaction = (&mut *statement, session.handle.as_ref());
        let (done, found, last) = match &change.work {
            Work::Update { targets, .. } => {
                let rules = (session.rules_of_update(false), None);
                let rows = (rows, origins.as_slice(), &view);
                let targets = targets_of_run.as_ref().unwrap_or(targets);
                let targets = (targets.as_slice(), locked);
                let warnings = &mut session.warnings;
                let updated = update_rows(transaction, targets, rows, finds, rules, warnings)?;
                let Some((updated, last)) = updated else {
                    return Ok(None);
                };
                let last = last.and_then(|row| row.into_iter().nth(change.keys[0].place));
                (Done::Updated(updated), updated.found, last)
            }
            Work::Delete(tables) => {
                let tables = (tables.as_slice(), locked);
                let Some(deleted) = delete_rows(transaction, tables, (rows, &view), None)? else {
                    return Ok(None);
                };
                (Done::Deleted(deleted.rows), deleted.found, deleted.last)
            }
        };
        let last = match (&last, change.keys.as_slice()) {
            (Some(key), [_]) => key_of(key)?,
            _ => None,
        };
        let mut searches = change.searches_to_lock(searched, (statement, &view))?;
        let is_stable = statement.lock_searches(&view, &mut searches, (found, last))?;
        Ok(is_stable.then_some(Some(done)))
    });
    match outcome {
        Ok(None) => {
            session.transactions.abandon_changes(statement)?;
            Ok(None)
        }
        outcome => session.end_changes(statement, outcome),
    }
}

/// `None`: the vectorised path has to do it.
fn find_to_change(
    session: &mut Session,
    change: &ChangeFound,
    parameters: &[Value],
    (statement, view): (&mut StatementTransaction, &ReadView),
) -> Result<Option<Found>> {
    let Some(locks_searches) = statement.may_lock_its_searches() else {
        return Ok(None);
    };
    let mut found = Values::default();
    let before = (session.outcome.found_rows, session.outcome.row_count);
    session.statement.view = Some(view.clone());
    session.statement.searched = locks_searches.then(Vec::new);
    let given = (parameters, Spelled::AsWritten);
    let is_done = session.run_inner(&change.query, given, &mut found);
    let is_done = found.outcome(is_done);
    session.statement.view = None;
    let searched = session.statement.searched.take().unwrap_or_default();
    (session.outcome.found_rows, session.outcome.row_count) = before;
    if !is_done? {
        return Ok(None);
    }
    let mut spool = RowSpool::new(session);
    let mut finds = match &change.work {
        Work::Update {
            is_single: false, ..
        } => Some(FirstFinds::new(session)),
        _ => None,
    };
    for batch in &found.batches {
        let columns = batch.columns();
        for position in 0..batch.num_rows() {
            let values = columns.iter();
            let values = values.map(|column| value_at(column.as_ref(), position));
            let mut row = values.collect::<Result<Vec<Value>>>()?;
            let keys = change.keys.iter();
            let keys: Vec<Value> = keys.map(|key| key.encoded(&row)).collect();
            row.truncate(change.width);
            for (number, (key, encoded)) in change.keys.iter().zip(keys).enumerate() {
                if let (Some(finds), Value::Bytes(key)) = (&mut finds, &encoded) {
                    finds.note(number, key)?;
                }
                row[key.place] = encoded;
            }
            spool.push(row.into_iter().map(Ok))?;
        }
    }
    Ok(Some(Found {
        rows: spool.read(),
        finds: match finds {
            Some(finds) => finds.end()?,
            None => Finds::all_first(),
        },
        origins: found.origins,
        searched,
    }))
}

/// What a statement did.
enum Done {
    Updated(Updated),
    /// So many rows.
    Deleted(u64),
}

impl ChangeFound {
    /// What was searched, of the tables which are changed and of those which are only read.
    fn searches_to_lock(
        &self,
        searched: Vec<Searched>,
        (statement, view): (&mut StatementTransaction, &ReadView),
    ) -> Result<Vec<PlannedSearch>> {
        let targets = self.keys.iter().map(|key| Arc::clone(&key.table));
        let targets: Vec<Arc<Table>> = targets.collect();
        let tables = searched.iter().map(|searched| &searched.table);
        if !statement.locks_what_it_searched(tables, &targets) {
            return Ok(Vec::new());
        }
        let is_changed = |table: &Arc<Table>| {
            let mut targets = targets.iter();
            targets.any(|target| Arc::ptr_eq(target, table))
        };
        let searched = searched.into_iter();
        let searches = searched.map(|searched| match is_changed(&searched.table) {
            true => Ok(PlannedSearch::of_found(searched)),
            false => PlannedSearch::of_read(searched, view),
        });
        searches.collect()
    }
}

/// Whether a query may have window functions.
fn may_have_windows(query: &ast::Query) -> bool {
    let written = query.to_string().to_ascii_lowercase();
    written.contains(" over ")
}
