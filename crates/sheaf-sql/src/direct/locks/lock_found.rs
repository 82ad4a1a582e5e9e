//! SELECT … FOR UPDATE and FOR SHARE of what a direct plan of a query finds: of joins, of queries with subqueries,
//! groups or sorted LIMITs.
//!
//! It locks what the vectorised form does (`select/locking_read.rs`), in the same order. Where rows of the result
//! are rows of the tables, one query delivers what is shown and, behind it, the primary keys. Else one query finds
//! the keys, and the statement's own query runs through the same view when these are locked.
//!
//! ```text
//!   SELECT p.*, u.name FROM p JOIN u ON u.id = p.user WHERE p.id = ? FOR UPDATE
//!   SELECT p.*, u.name, p.id, u.id FROM p JOIN u ..      a direct plan
//!          -----------  ----------
//!          shown        keys -> locked, one by one; then what was searched
//! ```
//!
//! SKIP LOCKED goes through all rows that the keys of the query find, and leaves out those that it cannot lock at once.
//! LIMIT and OFFSET count those that it could lock.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use sheaf_storage::{LockMode, ReadView};
use sheaf_table::{Privileges, Table};
use sheaf_types::Value;
use sqlparser::ast;

use crate::accounts::TableNeed;
use crate::direct::operands::operand::Operand;
use crate::direct::read::{
    end_direct_read, limit_and_offset, plain_query, plain_select_of_groups, row_count,
};
use crate::direct::rows::found_key::FoundKey;
use crate::direct::rows::values::Values;
use crate::direct::syntax::attempt::Attempt;
use crate::direct::syntax::headers::Spelled;
use crate::direct::{Action, DirectPlan};
use crate::error::Result;
use crate::isolation::transaction::StatementTransaction;
use crate::locking::statement_locks::PlannedSearch;
use crate::parser::statement::Statement;
use crate::query::rows::value_at;
use crate::select::beside_locks::names_beside_locks;
use crate::select::locking_read::lock_row_or_skip;
use crate::session::Session;
use crate::session::handle::SessionHandle;
use crate::session::result::{CellRow, ColumnMeta, EndOfRows, OkInfo, ResultSink};
use crate::session::searched::{DirectSearch, Searched};

/// See the module's comment.
pub(in crate::direct) struct LockFound {
    /// Finds keys.
    pub(in crate::direct) find: DirectPlan,
    targets: Vec<Target>,
    shown: Shown,
    /// What the statement says itself about waiting.
    wait: Option<Duration>,
    /// SKIP LOCKED.
    skips: bool,
    /// Of SKIP LOCKED.
    limit: Option<Operand>,
    offset: Option<Operand>,
    /// A LIMIT chooses among the rows that are found.
    is_cut: bool,
    /// It may read tables that it does not lock.
    reads_others: bool,
}

/// A table whose rows are locked.
struct Target {
    key: FoundKey,
    mode: LockMode,
}

/// What a client gets.
enum Shown {
    /// The first columns of what is found.
    Found(usize),
    /// What this query shows of the same rows.
    Query(Box<DirectPlan>),
}

/// Rows that wait to be locked, and how they are described.
#[derive(Default)]
struct Waiting {
    values: Values,
    columns: Vec<ColumnMeta>,
}

/// What is shown once all is locked.
enum Locked {
    Rows(Vec<ColumnMeta>, Vec<RecordBatch>),
    /// Through this view.
    Query(ReadView),
}

impl ResultSink for Waiting {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn row_columns(&mut self, columns: &[ColumnMeta], schema: &SchemaRef) -> Result<()> {
        self.columns(columns)?;
        self.values.row_columns(&[], schema)
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<()> {
        self.values.rows(batch)
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn row(&mut self, columns: &[ColumnMeta], row: &dyn CellRow) -> Result<()> {
        self.values.row(columns, row)
    }

    fn end_of_rows(&mut self, end: EndOfRows) -> Result<()> {
        self.values.end_of_rows(end)
    }

    fn ok(&mut self, ok: OkInfo) -> Result<()> {
        self.values.ok(ok)
    }

    fn local_infile(&mut self, name: &str) -> Result<Box<dyn std::io::Read + '_>> {
        self.values.local_infile(name)
    }
}

impl LockFound {
    /// The plan of a query with FOR UPDATE or FOR SHARE; `None` if what finds its rows has no direct plan.
    pub(in crate::direct) fn compile(
        session: &Session,
        query: &ast::Query,
        attempt: Attempt<'_>,
    ) -> Option<LockFound> {
        let plain = plain_query(query)?;
        plain_select_of_groups(plain.select, true)?;
        let nonblock = plain.locks.first()?.nonblock;
        if plain.locks.iter().any(|lock| lock.nonblock != nonblock) {
            return None;
        }
        let skips = nonblock == Some(ast::NonBlock::SkipLocked);
        let rows = session.rows_to_lock(query)?;
        let reads_others = names_beside_locks(query);
        let without_locks = ast::Query {
            locks: Vec::new(),
            ..query.clone()
        };
        let (limit, offset) = match plain.limit_clause.filter(|_| skips) {
            Some(clause) => limit_and_offset(clause)?,
            None => (None, None),
        };
        let is_limited_alone = match plain.limit_clause {
            Some(ast::LimitClause::LimitOffset { offset, .. }) => offset.is_none(),
            Some(_) => false,
            None => true,
        };
        // Only rows of tables are locked and left out one by one.
        let is_one_query = rows.is_plain && (skips || is_limited_alone);
        if skips && !is_one_query {
            return None;
        }
        let (mut find, query) = match is_one_query {
            true => {
                let mut find = without_locks;
                if skips {
                    find.limit_clause = None;
                }
                (find, None)
            }
            false => (*rows.keys, Some(without_locks)),
        };
        let is_cut = find.limit_clause.is_some();
        let ast::SetExpr::Select(select) = find.body.as_mut() else {
            return None;
        };
        if query.is_some() {
            select.projection.clear();
        }
        let items = select.projection.len();
        let mut targets = Vec::with_capacity(rows.targets.len());
        for (number, (.., key)) in rows.targets.iter().enumerate() {
            // No name that is written ends in a space.
            let alias = ast::Ident::with_quote('`', format!("key {number} "));
            let expr = key.clone();
            let item = ast::SelectItem::ExprWithAlias { expr, alias };
            select.projection.push(item);
        }
        for (number, (table, mode, _)) in rows.targets.into_iter().enumerate() {
            let key = FoundKey::of(table, items + number, &mut select.projection)?;
            targets.push(Target { key, mode });
        }
        let of_keys = select.projection.len() - items;
        let find = session.plan_attempted(&Statement::Query(Box::new(find)), attempt)?;
        // How a table is locked that is read from end to end, or to a LIMIT, is for the operators to say.
        if !is_plain_plan(&find)
            || !find.action.finds_by_keys()
            || matches!(&find.action, Action::Read(read, _) if read.reads_whole)
            || matches!(&find.action, Action::OverRows(query) if query.rows.reads_small_whole())
        {
            return None;
        }
        let width = find.result_columns().checked_sub(of_keys)?;
        let unspelled = width.checked_sub(items)?;
        let targets = targets.into_iter().map(|target| Target {
            key: target.key.behind(unspelled),
            ..target
        });
        let shown = match query {
            None => Shown::Found(width),
            Some(query) => {
                let query = session.plan_attempted(&Statement::Query(Box::new(query)), attempt)?;
                Shown::Query(is_plain_plan(&query).then(|| Box::new(query))?)
            }
        };
        Some(LockFound {
            targets: targets.collect(),
            find,
            shown,
            wait: nonblock.map(|_| Duration::ZERO),
            skips,
            limit,
            offset,
            is_cut,
            reads_others,
        })
    }

    pub(in crate::direct) fn result_columns(&self) -> usize {
        match &self.shown {
            Shown::Found(width) => *width,
            Shown::Query(query) => query.result_columns(),
        }
    }

    /// Whether a LIMIT counts the rows that could be locked.
    pub(in crate::direct) fn is_limited_by_locks(&self) -> bool {
        self.limit.is_some()
    }

    /// What EXPLAIN shows: what finds the rows that a client gets.
    pub(in crate::direct) fn described(&self) -> &DirectPlan {
        match &self.shown {
            Shown::Found(_) => &self.find,
            Shown::Query(query) => query,
        }
    }

    /// Whether all tables are what the plan was made for.
    pub(in crate::direct) fn is_current(&self) -> bool {
        let mut targets = self.targets.iter();
        self.find.is_current()
            && targets.all(|target| target.key.table.is_current())
            && match &self.shown {
                Shown::Found(_) => true,
                Shown::Query(query) => query.is_current(),
            }
    }

    /// What its sessions need of its tables.
    pub(in crate::direct) fn needs(&self) -> Vec<TableNeed> {
        let of_shown = match &self.shown {
            Shown::Found(_) => &[],
            Shown::Query(query) => query.needs.as_slice(),
        };
        let targets = self.targets.iter();
        let locked = targets.map(|target| {
            let (table, mode) = (&target.key.table, target.mode);
            TableNeed::new(table, Privileges::SELECT, Some(mode))
        });
        let read = self.find.needs.iter().chain(of_shown).cloned();
        locked.chain(read).collect()
    }

    fn is_target(&self, table: &Arc<Table>) -> bool {
        let mut targets = self.targets.iter();
        targets.any(|target| Arc::ptr_eq(&target.key.table, table))
    }

    /// What was searched of the tables whose rows are locked.
    fn searches(&self, searched: Vec<Searched>) -> Vec<PlannedSearch> {
        let searched = searched
            .into_iter()
            .filter(|searched| self.is_target(&searched.table));
        let searches = searched.map(|searched| {
            let search = searched.search;
            // Which of the rows a sort leaves for a LIMIT depends on all of them.
            let is_filtered = search.is_filtered || self.is_cut && search.limit.is_none();
            PlannedSearch::of_found(Searched {
                search: DirectSearch {
                    is_filtered,
                    ..search
                },
                ..searched
            })
        });
        searches.collect()
    }

    /// The columns that a client gets.
    fn shown_of(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns: Vec<usize> = (0..self.result_columns()).collect();
        Ok(batch.project(&columns)?)
    }

    /// The clustered keys of a row, by targets; `None` where an outer join has found no row.
    fn keys_of(&self, batch: &RecordBatch, row: usize) -> Result<Vec<Option<Vec<u8>>>> {
        let mut values = vec![Value::Null; batch.num_columns()];
        let mut keys = Vec::with_capacity(self.targets.len());
        for target in &self.targets {
            for column in target.key.columns() {
                values[column] = value_at(batch.column(column).as_ref(), row)?;
            }
            keys.push(match target.key.encoded(&values) {
                Value::Bytes(key) => Some(key),
                _ => None,
            });
        }
        Ok(keys)
    }
}

/// Whether a plan locks nothing and counts nothing itself.
fn is_plain_plan(plan: &DirectPlan) -> bool {
    plan.window.is_none() && plan.needs.iter().all(|need| need.locks.is_none())
}

/// False: the vectorised path has to do it.
pub(in crate::direct) fn run_direct_lock_found(
    session: &mut Session,
    lock: &LockFound,
    given: (&[Value], Spelled<'_>),
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    let (parameters, _) = given;
    let (Some(limit), Some(offset)) = (
        row_count(lock.limit.as_ref(), parameters, u64::MAX),
        row_count(lock.offset.as_ref(), parameters, 0),
    ) else {
        return Ok(false);
    };
    // The session's limit is for what is shown, and not for what is locked.
    if session.transactions.reads_lock() || session.variables.sql_select_limit() != u64::MAX {
        return Ok(false);
    }
    for target in &lock.targets {
        if target.mode == LockMode::Exclusive && !session.begin_for_update(&target.key.table)? {
            return Ok(false);
        }
    }
    let mut guards = Vec::with_capacity(lock.targets.len());
    for target in &lock.targets {
        session.keep_definition(&target.key.table)?;
        match session.borrow_for_read(&target.key.table, false)? {
            Some(guard) => guards.push(guard),
            None => return Ok(false),
        }
    }
    let beside = match lock.reads_others {
        true => session.view_beside_locks()?,
        false => None,
    };
    let mut statement = session.begin_locks(lock.wait);
    let outcome = session.until_stable(&mut statement, |session, statement| {
        let view = statement.changes().view_to_lock()?;
        // The operators see tables that are not locked through another view.
        let is_other = |beside: &ReadView| beside.timestamp() != view.timestamp();
        if beside.as_ref().is_some_and(is_other) {
            return Ok(Some(None));
        }
        let found = find_to_lock(session, lock, parameters, (statement, &view))?;
        let Some((waiting, searched)) = found else {
            return Ok(Some(None));
        };
        let locked = (statement, &view);
        let locked = match lock.skips {
            true => lock_found_and_free(lock, waiting, locked, (limit, offset))?,
            false => lock_all_found(&session.handle, lock, waiting, locked, searched)?,
        };
        Ok(locked.map(Some))
    });
    if let Ok(None) = outcome {
        session.transactions.abandon_changes(statement)?;
        return Ok(false);
    }
    match session.end_changes(statement, outcome)? {
        None => Ok(false),
        Some(Locked::Rows(columns, batches)) => {
            sink.columns(&columns)?;
            let mut sent = 0;
            for batch in &batches {
                sent += batch.num_rows() as u64;
                if batch.num_rows() > 0 {
                    sink.rows(batch)?;
                }
            }
            end_direct_read(session, sent, sink)
        }
        Some(Locked::Query(view)) => {
            let Shown::Query(query) = &lock.shown else {
                return Ok(false);
            };
            session.statement.view = Some(view);
            let is_done = session.run_inner(query, given, sink);
            session.statement.view = None;
            is_done
        }
    }
}

/// What the query finds through a view, and what it has searched. `None`: the vectorised path has to do it.
fn find_to_lock(
    session: &mut Session,
    lock: &LockFound,
    parameters: &[Value],
    (statement, view): (&mut StatementTransaction, &ReadView),
) -> Result<Option<(Waiting, Vec<Searched>)>> {
    let Some(locks_searches) = statement.locks_its_searches() else {
        return Ok(None);
    };
    let mut waiting = Waiting::default();
    let before = (session.outcome.found_rows, session.outcome.row_count);
    let warnings = match lock.shown {
        Shown::Found(_) => None,
        // It is going to tell of the same.
        Shown::Query(_) => Some(session.warnings.clone()),
    };
    session.statement.view = Some(view.clone());
    session.statement.searched = (locks_searches && !lock.skips).then(Vec::new);
    let given = (parameters, Spelled::AsWritten);
    let is_done = session.run_inner(&lock.find, given, &mut waiting);
    let is_done = waiting.values.outcome(is_done);
    session.statement.view = None;
    let searched = session.statement.searched.take().unwrap_or_default();
    (session.outcome.found_rows, session.outcome.row_count) = before;
    if let Some(warnings) = warnings {
        session.warnings = warnings;
    }
    Ok(is_done?.then_some((waiting, searched)))
}

/// Locks what was found and searched. `None`: that is not what the view shows.
fn lock_all_found(
    handle: &SessionHandle,
    lock: &LockFound,
    waiting: Waiting,
    (statement, view): (&mut StatementTransaction, &ReadView),
    searched: Vec<Searched>,
) -> Result<Option<Locked>> {
    let (mut number, mut last, mut is_stable) = (0_usize, None, true);
    for batch in &waiting.values.batches {
        for row in 0..batch.num_rows() {
            handle.check_cancel_at(number)?;
            number += 1;
            let keys = lock.keys_of(batch, row)?;
            for (target, key) in lock.targets.iter().zip(&keys) {
                if let Some(key) = key {
                    let locked = statement.lock_row(view, &target.key.table, key, target.mode)?;
                    is_stable &= locked.is_some();
                }
            }
            last = keys.into_iter().next().flatten();
        }
    }
    let mut searches = lock.searches(searched);
    let found = (number, last.as_deref());
    if !is_stable || !statement.lock_searches(view, &mut searches, found)? {
        return Ok(None);
    }
    Ok(Some(match &lock.shown {
        Shown::Query(_) => Locked::Query(view.clone()),
        Shown::Found(width) => {
            let batches = waiting.values.batches.iter();
            let batches = batches.map(|batch| lock.shown_of(batch));
            let columns = waiting.columns.into_iter().take(*width);
            Locked::Rows(columns.collect(), batches.collect::<Result<_>>()?)
        }
    }))
}

/// Locks those of the rows that were found that can be locked at once, as many as are shown.
fn lock_found_and_free(
    lock: &LockFound,
    waiting: Waiting,
    (statement, view): (&mut StatementTransaction, &ReadView),
    (limit, offset): (u64, u64),
) -> Result<Option<Locked>> {
    let (mut skip, mut left) = (offset, limit);
    let mut batches = Vec::with_capacity(waiting.values.batches.len());
    for batch in &waiting.values.batches {
        let mut chosen = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            let is_locked = left > 0
                && lock_or_skip(statement, view, &lock.targets, lock.keys_of(batch, row)?)?;
            let is_shown = is_locked && skip == 0;
            match is_shown {
                true => left -= 1,
                false => skip -= u64::from(is_locked),
            }
            chosen.push(is_shown);
        }
        let shown = lock.shown_of(batch)?;
        batches.push(filter_record_batch(&shown, &BooleanArray::from(chosen))?);
    }
    let columns = waiting.columns.into_iter().take(lock.result_columns());
    Ok(Some(Locked::Rows(columns.collect(), batches)))
}

/// Locks a row of each table without waiting. False: one of them is locked, or is not any more what the view shows.
fn lock_or_skip(
    statement: &mut StatementTransaction,
    view: &ReadView,
    targets: &[Target],
    keys: Vec<Option<Vec<u8>>>,
) -> Result<bool> {
    let mut new = Vec::new();
    for (target, key) in targets.iter().zip(keys) {
        let Some(key) = key else {
            continue;
        };
        let table = &target.key.table;
        match lock_row_or_skip(statement, view, table, &key, target.mode)? {
            Some(true) => new.push((table, key)),
            Some(false) => {}
            None => {
                for (table, key) in new {
                    statement.changes().unlock_row(&table.clustered, &key);
                }
                return Ok(false);
            }
        }
    }
    Ok(true)
}
