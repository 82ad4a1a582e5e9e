//! SELECT … FOR UPDATE and FOR SHARE.
//!
//! A locking read of tables runs as UPDATE does. One query finds the rows' keys through a snapshot, and they are locked
//! one by one. If one is not what the snapshot shows, the statement begins again with a newer one. Then the query
//! itself is run through the same snapshot, which shows the rows as they are now.
//!
//! ```text
//!   SELECT <keys> FROM … WHERE … [ORDER BY … LIMIT …]   -> lock -> lock what was searched
//!                                                       -> SELECT … through the same view
//! ```
//!
//! With LIMIT two queries might choose different rows. There one query delivers the keys and the items, and what it has
//! found is shown once it is locked.
//!
//! What queries in the FROM read is not locked, and neither are common table expressions, subqueries and tables that OF
//! leaves out. In REPEATABLE READ these are seen as plain reads see them, through the transaction's own view, beside
//! the newest rows of the tables that are locked. A query whose rows cannot be told apart so (a union, a table beside a
//! common table expression) locks what it searches: FOR SHARE against all changes, as reads of SERIALIZABLE do, FOR
//! UPDATE also against locks of others.
//!
//! SKIP LOCKED goes row by row. The query delivers keys and items, and a row is locked without waiting. It is left out
//! if that fails or if it has changed since. LIMIT counts the rows that were locked, so that several sessions can take
//! the next jobs of a queue. It locks no gaps.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use sheaf_frontend::locking::{has_locking_clause, locking_queries};
use sheaf_storage::{LockMode, LockWait, ReadView, StorageError};
use sheaf_table::view::View;
use sheaf_table::{Column, ReadGuard, Table};
use sheaf_types::Value;
use sheaf_types::error::codes;
use sqlparser::ast;

use crate::change::find::change_query::{ChangeQuery, References, add_items, is_dual, key_of};
use crate::error::{Result, SqlError};
use crate::isolation::transaction::StatementTransaction;
use crate::locking::statement_locks::Others;
use crate::parser::ParsedQuery;
use crate::query::batch_spool::{BatchSpool, WaitingResult};
use crate::query::locking_clause::lock_wait;
use crate::query::row_spool::{SpooledRows, collect_keys_and_result, collect_rows};
use crate::query::rows::value_at;
use crate::query::run::{Asked, MAX_REPLANS, PlannedQuery};
use crate::session::Session;
use crate::session::handle::SessionHandle;
use crate::session::result::ResultSink;

/// What a locking read has locked.
pub(crate) enum LockedRead {
    /// Rows that this view shows as they are. The query itself is still to be planned, of tables that stay what they
    /// are until then.
    Rows(ReadView, Vec<ReadGuard>),
    /// What the query shows.
    Result(WaitingResult),
}

/// A table whose rows a query locks.
struct Target {
    table: Arc<Table>,
    mode: LockMode,
    /// The view through which the query reads it.
    view: Option<Arc<View>>,
}

impl Target {
    /// What the query calls it.
    fn name(&self) -> (&str, &str) {
        match &self.view {
            Some(view) => (&view.definition.database, &view.definition.name),
            None => (&self.table.definition.database, &self.table.definition.name),
        }
    }

    /// The columns that `*` shows.
    fn columns(&self) -> &[Column] {
        match &self.view {
            Some(view) => &view.definition.columns,
            None => &self.table.definition.columns,
        }
    }
}

/// What a direct plan is made of that locks what a query finds.
pub(crate) struct RowsToLock {
    /// The tables whose rows are locked, how they are locked, and the columns that name the rows.
    pub(crate) targets: Vec<(Arc<Table>, LockMode, ast::Expr)>,
    /// Rows of the result are rows of the tables, and what is shown of them can be told from these.
    pub(crate) is_plain: bool,
    /// The query that finds keys alone.
    pub(crate) keys: Box<ast::Query>,
}

/// The parts of a query that say which rows of its tables it finds.
pub(super) struct LockedRows {
    hints: Vec<ast::OptimizerHint>,
    pub(super) tables: Vec<ast::TableWithJoins>,
    selection: Option<ast::Expr>,
    order_by: Vec<ast::OrderByExpr>,
    /// Rows of the result are rows of the tables.
    is_plain: bool,
}

impl Session {
    /// How a query that locks all that it reads locks a table. FOR UPDATE OF is about the named tables alone, and FOR
    /// UPDATE behind a UNION about those of the last SELECT.
    pub(crate) fn read_lock_mode(
        &self,
        query: &ast::Query,
        is_inserted: bool,
    ) -> Result<impl Fn(&Arc<Table>) -> LockMode + use<>> {
        // The rows of a query of tables alone are locked one by one, unless they are inserted.
        let is_whole = is_inserted || rows_of(query).is_none();
        let for_update = |lock: &ast::LockClause| lock.lock_type == ast::LockType::Update;
        let is_exclusive = is_whole && query.locks.iter().any(for_update);
        let names_tables = query.locks.iter().any(|lock| lock.of.is_some());
        let is_union = matches!(query.body.as_ref(), ast::SetExpr::SetOperation { .. });
        let is_about_some = is_union || names_tables;
        let mut own = locking_queries(query).into_iter();
        let own = own.find(|locking| locking.is_whole && is_whole && is_about_some);
        let named = match own {
            Some(own) => match targets_of(&self.references_of(&own.tables)?, &own.clauses) {
                Ok((targets, _)) => Some(targets),
                // Rows of a view of several tables: all that the query reads is locked.
                Err(_) if !names_tables => None,
                Err(error) => return Err(error),
            },
            None => Some(Vec::new()),
        };
        let names_all = query.locks.iter().all(|lock| lock.of.is_some());
        let named = named.filter(|_| is_exclusive && (is_union || names_all));
        let inside = self.tables_locked_inside(query)?;
        Ok(move |table: &Arc<Table>| {
            let asked = inside
                .iter()
                .filter(|asked| Arc::ptr_eq(&asked.table, table));
            let asked = asked.map(|asked| asked.mode).max();
            let own = match &named {
                _ if !is_exclusive => LockMode::Shared,
                None => LockMode::Exclusive,
                Some(targets) => {
                    let mut targets = targets.iter().filter(|t| Arc::ptr_eq(&t.table, table));
                    targets
                        .next()
                        .map_or(LockMode::Shared, |target| target.mode)
                }
            };
            asked.map_or(own, |asked| asked.max(own))
        })
    }

    /// The tables that queries inside of this one (in its FROM, in expressions) name with FOR UPDATE or FOR SHARE.
    pub(crate) fn tables_locked_inside(&self, query: &ast::Query) -> Result<Vec<Asked>> {
        let mut tables = Vec::new();
        let inside = locking_queries(query).into_iter();
        for locking in inside.filter(|locking| !locking.is_whole) {
            let references = self.references_of(&locking.tables)?;
            let (targets, _) = targets_of(&references, &locking.clauses)?;
            let mut clauses = locking.clauses.iter();
            let waits = clauses.all(|lock| lock.nonblock.is_none());
            tables.extend(targets.into_iter().map(|target| Asked {
                table: target.table,
                mode: target.mode,
                waits,
            }));
        }
        Ok(tables)
    }

    /// What a query locks. `None`: it reads views, or locks nothing, or something is wrong with it.
    pub(crate) fn rows_to_lock(&self, query: &ast::Query) -> Option<RowsToLock> {
        let from = rows_of(query)?;
        let references = self.references_of(&from.tables).ok()?;
        if references.0.iter().any(|known| known.view.is_some()) {
            return None;
        }
        let (targets, keys) = targets_of(&references, &query.locks).ok()?;
        let is_told = self.items_of(query, &from).ok()?.is_some();
        let find = ChangeQuery {
            hints: &from.hints,
            projection: keys.clone(),
            from: &from.tables,
            selection: &from.selection,
            order_by: &[],
            limit: &None,
        };
        let targets = targets.into_iter().zip(keys);
        let targets = targets.map(|(target, key)| (target.table, target.mode, key));
        let targets: Vec<_> = targets.collect();
        (!targets.is_empty()).then_some(RowsToLock {
            targets,
            is_plain: from.is_plain && is_told,
            keys: find.build().ok()?,
        })
    }

    /// The tables whose rows a query locks, with the columns that name the rows. The tables stay as they are while the
    /// transaction lasts, and at least as long as the guards live.
    fn open_targets(
        &mut self,
        from: &LockedRows,
        locks: &[ast::LockClause],
    ) -> Result<(Vec<Target>, Vec<ast::Expr>, Vec<ReadGuard>)> {
        let nonblock = |lock: &ast::LockClause| lock.nonblock;
        if locks
            .iter()
            .any(|lock| nonblock(lock) != nonblock(&locks[0]))
        {
            return Err(SqlError::not_supported_yet(
                "NOWAIT or SKIP LOCKED of one table and not of another",
            ));
        }
        for _ in 0..MAX_REPLANS {
            let (targets, keys) = targets_of(&self.references_of(&from.tables)?, locks)?;
            let mut are_current = true;
            for target in &targets {
                if target.mode == LockMode::Exclusive {
                    let (database, name) = target.name();
                    if !target.table.definition.is_temporary() {
                        self.client.check_may_lock(database, name)?;
                    }
                }
                are_current &=
                    target.mode != LockMode::Exclusive || self.begin_for_update(&target.table)?;
            }
            let mut guards = Vec::with_capacity(targets.len());
            for target in &targets {
                self.keep_definition(&target.table)?;
                let is_first = self.holds_no_table() && guards.is_empty();
                let guard = self.lock_for_read(&target.table, is_first)?;
                are_current &= guard.is_version_of(&target.table);
                guards.push(guard);
            }
            if are_current {
                return Ok((targets, keys, guards));
            }
        }
        Err(SqlError::definition_changed())
    }

    /// FOR UPDATE counts as a change of the table, as in MySQL. It waits while another session has locked the table for
    /// READ, or everything, and LOCK TABLES waits for the end of the transaction. This comes before anything else is
    /// done with the table, so that no other session waits for this one meanwhile. False: its definition has changed.
    pub(crate) fn begin_for_update(&mut self, table: &Arc<Table>) -> Result<bool> {
        if !table.definition.is_temporary() {
            self.table_locks.check_no_read_lock()?;
            self.begin_change()?;
        }
        let (_, writing) = self.transactions.kept_tables();
        if writing.iter().any(|guard| guard.is_version_of(table)) {
            return Ok(true);
        }
        let is_first = self.holds_no_table();
        let Some(guard) = self.relock_for_change_of_rows(table, &[], is_first)? else {
            return Ok(false);
        };
        self.transactions.return_tables(vec![guard.into()]);
        Ok(true)
    }

    /// Locks the rows that a locking read finds, for as long as the transaction lasts. `None` for a query that is not
    /// of this kind. `keeps_all`: no table that it reads gets another definition meanwhile.
    pub(crate) fn lock_rows_of(
        &mut self,
        parsed: ParsedQuery<'_>,
        keeps_all: bool,
    ) -> Result<Option<LockedRead>> {
        let query = parsed.ast;
        if query.locks.is_empty() {
            return Ok(None);
        }
        let Some(from) = rows_of(query) else {
            return Ok(None);
        };
        let (targets, projection, mut guards) = self.open_targets(&from, &query.locks)?;
        if targets.is_empty() {
            return Ok(None);
        }
        let shown = match from.limit_of(query) {
            Some(limit) => {
                let items = self.items_of(query, &from)?;
                from.shown_query(&items, &targets, &projection, &Some(limit.clone()))?
            }
            None => None,
        };
        let mut statement = self.begin_locks(lock_wait(query));
        let kept = match keeps_all {
            true => self.keep_definitions(parsed),
            false => Ok(()),
        };
        let outcome = match (kept, shown) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(shown)) => self
                .lock_what_is_shown(&mut statement, &targets, parsed.with(&shown))
                .map(LockedRead::Result),
            (Ok(()), None) => {
                let keys = ChangeQuery {
                    hints: &from.hints,
                    projection,
                    from: &from.tables,
                    selection: &from.selection,
                    order_by: &[],
                    limit: &None,
                };
                let keys = keys.build();
                let view = keys.and_then(|keys| {
                    self.lock_until_stable(&mut statement, &targets, parsed.with(&keys))
                });
                view.map(|view| {
                    guards.append(&mut self.transactions.take_reads_of(&statement));
                    LockedRead::Rows(view, guards)
                })
            }
        };
        let locked = self.end_changes(statement, outcome)?;
        if let LockedRead::Rows(..) = &locked {
            // The query itself is going to find the same.
            self.findings.truncated_texts.take();
            self.findings.oversized_results.take();
        }
        Ok(Some(locked))
    }

    /// Finds what a query shows and locks its rows, again and again until no other transaction comes between. The
    /// result waits.
    fn lock_what_is_shown(
        &mut self,
        statement: &mut StatementTransaction,
        targets: &[Target],
        query: ParsedQuery<'_>,
    ) -> Result<WaitingResult> {
        self.until_stable(statement, |session, statement| {
            let view = statement.changes().view_to_lock()?;
            session.lock_found_rows(statement, targets, (query, &view), |session, planned| {
                collect_keys_and_result(session, planned, targets.len())
            })
        })
    }

    /// Finds rows and locks them once. `collect` runs the query and brings the keys of what it finds. `None`: another
    /// transaction has come between.
    fn lock_found_rows<T>(
        &mut self,
        statement: &mut StatementTransaction,
        targets: &[Target],
        (query, view): (ParsedQuery<'_>, &ReadView),
        collect: impl FnOnce(&mut Session, PlannedQuery) -> Result<(SpooledRows, T)>,
    ) -> Result<Option<T>> {
        let tables: Vec<_> = targets.iter().map(|t| Arc::clone(&t.table)).collect();
        let planned = self.plan_change(query, view.clone())?;
        let mut searches = statement.searches_to_lock(&planned, &tables, Others::Free)?;
        let (keys, result) = collect(self, planned)?;
        let (is_stable, number, last) = self.handle.lock_found(statement, targets, view, keys)?;
        let last = match &last {
            Some(key) => key_of(key)?,
            None => None,
        };
        let is_stable =
            is_stable && statement.lock_searches(view, &mut searches, (number, last))?;
        Ok(is_stable.then_some(result))
    }

    /// Runs a query to its end and keeps its result. `None`: it takes more than so many bytes.
    pub(crate) fn collect_result_within(
        &mut self,
        planned: PlannedQuery,
        most_bytes: usize,
    ) -> Result<Option<WaitingResult>> {
        let columns = planned.columns.clone();
        let mut batches = BatchSpool::new(self, "rows to lock");
        let mut bytes = 0;
        self.runner().run_until(planned, |batch| {
            bytes += batch.get_array_memory_size();
            if bytes > most_bytes {
                return Ok(ControlFlow::Break(()));
            }
            batches.push(batch.clone())?;
            Ok(ControlFlow::Continue(()))
        })?;
        let batches = batches.read();
        Ok((bytes <= most_bytes).then_some(WaitingResult { columns, batches }))
    }

    /// Sends a result whose rows are locked: the first `limit` of its rows.
    pub(crate) fn send_locked(
        &mut self,
        mut result: WaitingResult,
        limit: u64,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        sink.columns(&result.columns)?;
        self.outcome.found_rows = 0;
        while let Some(batch) = result.batches.next_batch()? {
            let room = usize::try_from(limit - self.outcome.found_rows).unwrap_or(usize::MAX);
            let rows = room.min(batch.num_rows());
            if rows == 0 {
                continue;
            }
            self.outcome.found_rows += rows as u64;
            sink.rows(&batch.slice(0, rows))?;
        }
        self.end_query(sink)
    }

    /// Finds rows and locks them, again and again until no other transaction comes between.
    fn lock_until_stable(
        &mut self,
        statement: &mut StatementTransaction,
        targets: &[Target],
        keys: ParsedQuery<'_>,
    ) -> Result<ReadView> {
        self.until_stable(statement, |session, statement| {
            let view = statement.changes().view_to_lock()?;
            session.lock_found_rows(statement, targets, (keys, &view), |session, planned| {
                Ok((collect_rows(session, planned)?, view.clone()))
            })
        })
    }

    /// Runs a query with SKIP LOCKED.
    pub(crate) fn query_skipping_locked(
        &mut self,
        parsed: ParsedQuery<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.with_view_beside_locks(parsed.ast, |session| session.skip_locked(parsed, sink))
    }

    fn skip_locked(&mut self, parsed: ParsedQuery<'_>, sink: &mut dyn ResultSink) -> Result<()> {
        let query = parsed.ast;
        let unsupported = || SqlError::not_supported_yet("SKIP LOCKED in a query of this form");
        let from = rows_of(query)
            .filter(|from| from.is_plain)
            .ok_or_else(unsupported)?;
        let (targets, projection, _guards) = self.open_targets(&from, &query.locks)?;
        let items = self.items_of(query, &from)?;
        let keys_and_items = from
            .shown_query(&items, &targets, &projection, &None)?
            .ok_or_else(unsupported)?;
        let window = self.window_of(parsed)?;
        let mut statement = self.begin_locks(lock_wait(query));
        let outcome = self.send_unlocked(
            &mut statement,
            &targets,
            parsed.with(&keys_and_items),
            window,
            sink,
        );
        let rows = self.end_changes(statement, outcome)?;
        self.outcome.found_rows = rows;
        self.end_query(sink)
    }

    /// The select list of a locking read. `*` of a join is its columns; `None`: these cannot be told from the tables.
    fn items_of(
        &self,
        query: &ast::Query,
        from: &LockedRows,
    ) -> Result<Option<Vec<ast::SelectItem>>> {
        let ast::SetExpr::Select(select) = query.body.as_ref() else {
            return Ok(None);
        };
        let items = &select.projection;
        let is_all = |item: &ast::SelectItem| {
            let is_of_table = matches!(item, ast::SelectItem::QualifiedWildcard(..));
            is_of_table || matches!(item, ast::SelectItem::Wildcard(_))
        };
        let is_joined =
            from.tables.len() > 1 || from.tables.iter().any(|from| !from.joins.is_empty());
        if !is_joined || !items.iter().any(is_all) {
            return Ok(Some(items.clone()));
        }
        let references = self.references_of(&from.tables)?;
        let mut shown = Vec::with_capacity(items.len());
        for item in items {
            let of = match item {
                ast::SelectItem::Wildcard(_) => None,
                ast::SelectItem::QualifiedWildcard(
                    ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => match name.0.as_slice() {
                    [name] => name.as_ident().map(|name| name.value.as_str()),
                    _ => return Ok(None),
                },
                item => {
                    shown.push(item.clone());
                    continue;
                }
            };
            match references.columns_shown(of) {
                Some(columns) => shown.extend(columns),
                None => return Ok(None),
            }
        }
        Ok(Some(shown))
    }

    /// Sends the rows that it can lock, as many as the window says. Returns how many these were.
    fn send_unlocked(
        &mut self,
        statement: &mut StatementTransaction,
        targets: &[Target],
        query: ParsedQuery<'_>,
        mut window: Window,
        sink: &mut dyn ResultSink,
    ) -> Result<u64> {
        // The definition of a table that it only reads may have changed between the view and the plan.
        let (view, planned) = self.until_stable(statement, |session, statement| {
            let view = statement.changes().view_to_lock()?;
            let planned = session.plan_change(query, view.clone())?;
            let mut tables = planned.tables.iter();
            let is_shown = tables.all(|table| table.check_view(&view).is_ok())
                && statement.lock_asked(&view, &planned)?;
            Ok(is_shown.then_some((view, planned)))
        })?;
        // The client may take its time.
        self.workers.planning().pause();
        sink.columns(&planned.columns[targets.len()..])?;
        let items: Vec<usize> = (targets.len()..planned.columns.len()).collect();
        let mut sent = 0;
        self.runner().run_until(planned, |batch| {
            let mut chosen = Vec::with_capacity(batch.num_rows());
            for row in 0..batch.num_rows() {
                let is_wanted =
                    !window.is_over() && lock_or_skip(statement, &view, targets, batch, row)?;
                chosen.push(is_wanted && window.takes());
            }
            let chosen = BooleanArray::from(chosen);
            let batch = filter_record_batch(&batch.project(&items)?, &chosen)?;
            sent += batch.num_rows() as u64;
            if batch.num_rows() > 0 {
                sink.rows(&batch)?;
            }
            Ok(match window.is_over() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        })?;
        Ok(sent)
    }

    /// LIMIT and OFFSET of a query, and `sql_select_limit`.
    pub(crate) fn window_of(&mut self, query: ParsedQuery<'_>) -> Result<Window> {
        let (limit, offset) = match &query.ast.limit_clause {
            None => (None, None),
            Some(ast::LimitClause::LimitOffset { limit, offset, .. }) => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(ast::LimitClause::OffsetCommaLimit { offset, limit }) => {
                (Some(limit), Some(offset))
            }
        };
        let mut number = |expr: Option<&ast::Expr>, default| match expr {
            None => Ok(default),
            Some(expr) => {
                let value = self.evaluate(query.with(expr))?.as_i128();
                let value = value.and_then(|value| u64::try_from(value).ok());
                value.ok_or_else(|| SqlError::wrong_usage("LIMIT", "SKIP LOCKED"))
            }
        };
        let (skip, take) = (number(offset, 0)?, number(limit, u64::MAX)?);
        Ok(Window {
            skip,
            take: match limit {
                Some(_) => take,
                None => self.variables.sql_select_limit(),
            },
        })
    }
}

impl SessionHandle {
    /// Locks the rows of these keys. Returns whether each of them is what the view shows, how many they are, and the
    /// first key of the last one.
    fn lock_found(
        &self,
        statement: &mut StatementTransaction,
        targets: &[Target],
        view: &ReadView,
        mut keys: SpooledRows,
    ) -> Result<(bool, usize, Option<Value>)> {
        let (mut found, mut number) = (Vec::new(), 0_usize);
        let mut is_stable = true;
        while keys.next(&mut found)? {
            self.check_cancel_at(number)?;
            number += 1;
            for (target, key) in targets.iter().zip(&found) {
                if let Some(key) = key_of(key)? {
                    let row = statement.lock_row(view, &target.table, key, target.mode)?;
                    is_stable &= row.is_some();
                }
            }
        }
        Ok((is_stable, number, found.into_iter().next()))
    }
}

/// Rows that are still to be left out, and to be taken.
pub(crate) struct Window {
    skip: u64,
    take: u64,
}

impl Window {
    fn is_over(&self) -> bool {
        self.take == 0
    }

    /// Whether the next row is taken.
    fn takes(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.take -= 1;
        true
    }

    /// Which of the next rows are taken.
    pub(crate) fn of_next(&mut self, rows: usize) -> Range<usize> {
        let rows = rows as u64;
        let skipped = self.skip.min(rows);
        let taken = self.take.min(rows - skipped);
        self.skip -= skipped;
        self.take -= taken;
        skipped as usize..(skipped + taken) as usize
    }
}

/// Locks a row of each table, without waiting. False: one of them is locked, or is not any more what the view shows.
fn lock_or_skip(
    statement: &mut StatementTransaction,
    view: &ReadView,
    targets: &[Target],
    batch: &RecordBatch,
    row: usize,
) -> Result<bool> {
    let mut new = Vec::new();
    for (position, Target { table, mode, .. }) in targets.iter().enumerate() {
        let value = value_at(batch.column(position).as_ref(), row)?;
        let Some(key) = key_of(&value)? else {
            continue;
        };
        match lock_row_or_skip(statement, view, table, key, *mode)? {
            Some(true) => new.push((&table.clustered, key.to_vec())),
            Some(false) => {}
            None => {
                for (tree, key) in new {
                    statement.changes().unlock_row(tree, &key);
                }
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Locks a row without waiting, and says whether the lock is new. `None`: it is locked, or it has changed since the
/// view; then it is left as it was.
pub(crate) fn lock_row_or_skip(
    statement: &mut StatementTransaction,
    view: &ReadView,
    table: &Table,
    key: &[u8],
    mode: LockMode,
) -> Result<Option<bool>> {
    let (changes, tree) = (statement.changes(), &table.clustered);
    match changes.lock_row_of_view(view, tree, key, mode, LockWait::No) {
        Ok(row) if row.is_unchanged => Ok(Some(row.is_new)),
        Ok(row) => {
            if row.is_new {
                changes.unlock_row(tree, key);
            }
            Ok(None)
        }
        Err(StorageError::LockNotAvailable) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The name of the table that a locking clause is about.
pub(super) fn named_by(lock: &ast::LockClause) -> Option<&str> {
    let last = lock.of.as_ref()?.0.last()?;
    Some(last.as_ident()?.value.as_str())
}

/// 3568 for a locking clause about a table that there is not. 3569 for a second one about a table, and for one about a
/// query in the FROM.
fn check_named(references: &References, locks: &[ast::LockClause]) -> Result<()> {
    for (position, lock) in locks.iter().enumerate() {
        let Some(name) = named_by(lock) else {
            continue;
        };
        let mut known = references.0.iter();
        let Some(reference) = known.find(|reference| reference.alias == name) else {
            return Err(SqlError::unresolved_table_lock(name));
        };
        let mut before = locks[..position].iter();
        if before.any(|other| named_by(other) == Some(name)) || reference.table.is_none() {
            return Err(SqlError::new(
                codes::DUPLICATE_TABLE_LOCK,
                format!("Table `{name}` appears in multiple locking clauses."),
            ));
        }
    }
    Ok(())
}

/// The tables to lock rows of, with the columns of their keys.
fn targets_of(
    references: &References,
    locks: &[ast::LockClause],
) -> Result<(Vec<Target>, Vec<ast::Expr>)> {
    check_named(references, locks)?;
    let mut targets = Vec::new();
    let mut keys = Vec::new();
    for reference in &references.0 {
        let names_it = |lock: &&ast::LockClause| match named_by(lock) {
            None => true,
            Some(name) => name == reference.alias,
        };
        let modes = locks
            .iter()
            .filter(names_it)
            .map(|lock| match lock.lock_type {
                ast::LockType::Update => LockMode::Exclusive,
                ast::LockType::Share => LockMode::Shared,
            });
        let mode = modes.max();
        if reference.view.is_some() && reference.table.is_none() && mode.is_some() {
            return Err(SqlError::not_supported_yet(
                "FOR UPDATE and FOR SHARE of a view whose rows are not those of one table",
            ));
        }
        if let (Some(table), Some(mode)) = (reference.table.clone(), mode) {
            let view = reference.view.clone();
            targets.push(Target { table, mode, view });
            keys.push(reference.key());
        }
    }
    Ok((targets, keys))
}

/// The query's FROM and WHERE, if it reads tables and nothing else there.
pub(super) fn rows_of(query: &ast::Query) -> Option<LockedRows> {
    let ast::SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    // What a query in the FROM reads is not locked, unless it says so.
    let is_table = |factor: &ast::TableFactor| match factor {
        ast::TableFactor::Table { .. } => !is_dual(factor),
        ast::TableFactor::Derived { subquery, .. } => !has_locking_clause(subquery),
        _ => false,
    };
    let are_tables = |from: &ast::TableWithJoins| {
        let joined = &mut from.joins.iter();
        is_table(&from.relation) && joined.all(|join| is_table(&join.relation))
    };
    if query.with.is_some() || select.from.is_empty() || !select.from.iter().all(are_tables) {
        return None;
    }
    let is_column = |item: &ast::SelectItem| match item {
        ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
            matches!(
                expr,
                ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_)
            )
        }
        ast::SelectItem::Wildcard(_) | ast::SelectItem::QualifiedWildcard(..) => true,
        _ => false,
    };
    let ungrouped =
        matches!(&select.group_by, ast::GroupByExpr::Expressions(exprs, _) if exprs.is_empty());
    let order_by = match &query.order_by {
        Some(ast::OrderBy {
            kind: ast::OrderByKind::Expressions(items),
            ..
        }) => items.clone(),
        _ => Vec::new(),
    };
    Some(LockedRows {
        hints: select.optimizer_hints.clone(),
        tables: select.from.clone(),
        selection: select.selection.clone(),
        order_by,
        is_plain: ungrouped
            && select.distinct.is_none()
            && select.having.is_none()
            && select.projection.iter().all(is_column),
    })
}

impl LockedRows {
    /// The query's LIMIT, where it ends the search for rows to lock.
    fn limit_of<'q>(&self, query: &'q ast::Query) -> Option<&'q ast::Expr> {
        match &query.limit_clause {
            Some(ast::LimitClause::LimitOffset {
                limit,
                offset: None,
                ..
            }) if self.is_plain => limit.as_ref(),
            _ => None,
        }
    }

    /// The query that delivers the keys of the rows to lock and, behind them, these items, in its order. `None`: there
    /// are no items that can be told from the tables, or no rows to lock.
    fn shown_query(
        &self,
        items: &Option<Vec<ast::SelectItem>>,
        targets: &[Target],
        keys: &[ast::Expr],
        limit: &Option<ast::Expr>,
    ) -> Result<Option<Box<ast::Query>>> {
        let (Some(items), [target, ..]) = (items, targets) else {
            return Ok(None);
        };
        let order_by: Vec<_> = self
            .order_by
            .iter()
            .map(|item| behind_keys(item, keys.len()))
            .collect();
        let mut shown = ChangeQuery {
            hints: &self.hints,
            projection: keys.to_vec(),
            from: &self.tables,
            selection: &self.selection,
            order_by: &order_by,
            limit,
        }
        .build()?;
        add_items(&mut shown, items, target.columns());
        Ok(Some(shown))
    }
}

/// An item of ORDER BY in a query with so many more items at the front: a number is the position of an item.
fn behind_keys(item: &ast::OrderByExpr, keys: usize) -> ast::OrderByExpr {
    let mut item = item.clone();
    if let ast::Expr::Value(value) = &mut item.expr
        && let ast::Value::Number(digits, _) = &mut value.value
        && let Ok(position @ 1..) = digits.parse::<usize>()
    {
        *digits = position.saturating_add(keys).to_string();
    }
    item
}
