//! Transactions of a session.
//!
//! With autocommit each statement that changes something is a transaction of its own. BEGIN, or a first statement with
//! autocommit off, opens one that lasts to COMMIT or ROLLBACK:
//!
//! ```text
//!   BEGIN  -> statement  -> statement      -> SAVEPOINT a -> statement -> ROLLBACK TO a -> COMMIT
//!             changes       fails: back to                   changes      back to a        all of it
//!                           where it began
//! ```
//!
//! A statement that changes rows takes the transaction out of the session while it runs ([`StatementTransaction`]), and
//! gives it back; a statement that fails takes back its own changes alone, and a deadlock all of them.
//!
//! **What is seen.** Plain reads see a snapshot and the transaction's own changes: READ COMMITTED one snapshot for each
//! statement, REPEATABLE READ the snapshot of the first read. Statements that change rows, and locking reads, see what is
//! committed when they have their locks.
//!
//! **What is locked.** The rows that a transaction changes are its own until it ends: others see what was there
//! before, and wait to change them, at most `innodb_lock_wait_timeout` (error 1205). Transactions that wait for each other are
//! found out when the last of them begins to wait, and that one is rolled back (error 1213). FOR UPDATE and FOR SHARE lock the
//! rows they find, and all reads of SERIALIZABLE lock the tables they read against changes. Tables that foreign keys connect
//! are opened by one changer at a time, to the end of its transaction.
//!
//! **Rows that changed meanwhile.** UPDATE and DELETE find their rows in a snapshot and then lock them one by one. If a row is
//! not what the snapshot shows, another transaction has changed it in between: the statement takes back what it did, keeps its
//! locks, and begins again with a newer snapshot. So the whole condition is tested on the newest rows, whatever it
//! consists of (Oracle calls this a restart to establish write consistency).
//!
//! Definitions are changed outside of transactions: such a statement commits the open one first, as in MySQL.

use std::sync::Arc;
use std::time::Duration;

use sheaf_storage::{KeyRange, LockMode, LockWait, RangeLock, ReadView, Transaction};
use sheaf_table::{ChangeGuard, ChangeSet, ReadGuard, Table};
use sqlparser::ast;

use crate::change_query::{ChangeQuery, key_of};
use crate::error::{Result, SqlError};
use crate::parser::statement::{Statement, TransactionEnd};
use crate::result::ResultSink;
use crate::run_query::lock_wait;
use crate::session::Session;

/// How often a statement begins again because rows that it found had changed before it locked them.
pub(crate) const MAX_RESTARTS: usize = 1_000;

/// How much a transaction sees of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Isolation {
    /// By the name that the variable has.
    pub(crate) fn of_name(name: &str) -> Isolation {
        match name {
            "READ-UNCOMMITTED" => Isolation::ReadUncommitted,
            "READ-COMMITTED" => Isolation::ReadCommitted,
            "SERIALIZABLE" => Isolation::Serializable,
            _ => Isolation::RepeatableRead,
        }
    }
}

/// What SET TRANSACTION without a scope says about the next transaction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NextTransaction {
    pub(crate) isolation: Option<Isolation>,
    pub(crate) read_only: Option<bool>,
}

/// The open transaction of a session.
pub(crate) struct SessionTransaction {
    transaction: Transaction,
    /// Tables opened to change rows.
    writing: Vec<ChangeGuard>,
    /// Tables that were read: their definitions stay.
    reading: Vec<ReadGuard>,
    savepoints: Vec<(String, usize)>,
    isolation: Isolation,
    read_only: bool,
    /// What plain reads see, where that is one snapshot for the whole transaction.
    view: Option<ReadView>,
}

/// The changes of the running statement. Dropped, it rolls the whole transaction back.
pub(crate) struct StatementTransaction {
    transaction: Box<SessionTransaction>,
    /// Where the statement began.
    savepoint: usize,
    autocommit: bool,
}

impl StatementTransaction {
    /// Where tables note what they change.
    pub(crate) fn changes(&mut self) -> &mut Transaction {
        &mut self.transaction.transaction
    }

    /// Takes back what the statement did so far; its locks stay.
    pub(crate) fn start_again(&mut self) -> Result<()> {
        Ok(self.transaction.transaction.rollback_to(self.savepoint)?)
    }
}

/// Statements.
impl Session {
    /// Error 1792 in a transaction that only reads.
    pub(crate) fn check_writable(&self) -> Result<()> {
        let read_only = match &self.transaction {
            Some(open) => open.read_only,
            None => self.variables.transaction_read_only(),
        };
        match read_only {
            true => Err(SqlError::read_only_transaction()),
            false => Ok(()),
        }
    }

    /// Begins the changes of a statement.
    ///
    /// # Errors
    /// As [`Self::check_writable`].
    pub(crate) fn begin_changes(&mut self) -> Result<StatementTransaction> {
        self.check_writable()?;
        let wait = self.row_lock_wait(None);
        let (mut transaction, autocommit) = match self.transaction.take() {
            Some(transaction) => (transaction, false),
            None => (Box::new(self.new_transaction(None)), true),
        };
        transaction.transaction.set_lock_wait(wait);
        Ok(StatementTransaction {
            savepoint: transaction.transaction.savepoint(),
            transaction,
            autocommit,
        })
    }

    /// Ends the changes of a statement as it ended itself: keeps them, or takes them back and reports why.
    pub(crate) fn end_changes<T>(
        &mut self,
        statement: StatementTransaction,
        outcome: Result<T>,
    ) -> Result<T> {
        let StatementTransaction {
            mut transaction,
            savepoint,
            autocommit,
        } = statement;
        let counters = &self.handle.counters;
        match outcome {
            Ok(done) => {
                if autocommit {
                    transaction.transaction.commit()?;
                    counters.handler_commit.add(1);
                } else {
                    self.transaction = Some(transaction);
                }
                Ok(done)
            }
            Err(error) => {
                counters.handler_rollback.add(1);
                if autocommit {
                    transaction.transaction.rollback()?;
                } else {
                    transaction.transaction.rollback_to(savepoint)?;
                    self.transaction = Some(transaction);
                }
                Err(error)
            }
        }
    }

    /// Tables that a statement had opened for writing stay open as long as the session's transaction, if there is one.
    pub(crate) fn keep_tables(&mut self, tables: ChangeSet) {
        if let Some(transaction) = &mut self.transaction {
            transaction.writing.extend(tables.into_tables());
        }
    }

    /// Takes the guard of a table that the transaction has opened for writing already.
    pub(crate) fn take_kept_table(&mut self, table: &Arc<Table>) -> Option<ChangeGuard> {
        let writing = &mut self.transaction.as_mut()?.writing;
        let position = writing.iter().position(|guard| Arc::ptr_eq(guard, table))?;
        Some(writing.swap_remove(position))
    }

    /// Puts guards back that a statement took and did not use.
    pub(crate) fn return_tables(&mut self, guards: Vec<ChangeGuard>) {
        if let Some(transaction) = &mut self.transaction {
            transaction.writing.extend(guards);
        }
    }

    /// True between BEGIN and COMMIT.
    pub(crate) fn in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// Whether plain reads lock what they read.
    pub(crate) fn reads_lock(&self) -> bool {
        self.transaction
            .as_ref()
            .is_some_and(|transaction| transaction.isolation == Isolation::Serializable)
    }

    /// What a plain read that begins now sees.
    pub(crate) fn read_view(&mut self) -> Result<ReadView> {
        let Some(open) = &mut self.transaction else {
            return Ok(self.engine.storage().read_view()?);
        };
        match open.isolation {
            Isolation::ReadUncommitted => Ok(ReadView::newest()),
            Isolation::ReadCommitted | Isolation::Serializable => {
                Ok(open.transaction.read_view()?)
            }
            Isolation::RepeatableRead => match &open.view {
                Some(view) => Ok(view.clone()),
                None => Ok(open.view.insert(open.transaction.read_view()?).clone()),
            },
        }
    }

    /// What a statement that changes rows, or a locking read, sees once it has its locks.
    pub(crate) fn current_view(&self) -> Result<ReadView> {
        match &self.transaction {
            Some(open) => Ok(open.transaction.read_view()?),
            None => Ok(self.engine.storage().read_view()?),
        }
    }

    /// Keeps the definition of a table that the transaction reads as it is.
    pub(crate) fn keep_definition(&mut self, table: &Table) -> Result<()> {
        let is_kept = |open: &SessionTransaction| {
            let mut guards = open.reading.iter();
            guards.any(|guard| std::ptr::eq(Arc::as_ptr(guard), table))
        };
        if !self.transaction.as_deref().is_none_or(is_kept) {
            let guard = self.lock_for_read(table)?;
            if let Some(open) = &mut self.transaction {
                open.reading.push(guard);
            }
        }
        Ok(())
    }

    /// Keeps others from changing whole tables until the transaction ends, for reads of SERIALIZABLE and for locking reads
    /// whose rows cannot be told apart. What the transaction then sees is what is there now.
    pub(crate) fn lock_whole_tables(
        &mut self,
        tables: &[Arc<Table>],
        wait: Option<Duration>,
    ) -> Result<ReadView> {
        let wait = self.row_lock_wait(wait);
        if let Some(open) = &mut self.transaction {
            for table in tables {
                let all = KeyRange::all();
                open.transaction
                    .lock_range(&table.clustered, &all, RangeLock::NoChanges, wait)?;
            }
        }
        Ok(ReadView::newest())
    }

    /// How long a statement waits for locks of rows: as it says itself, or as `innodb_lock_wait_timeout` says.
    pub(crate) fn row_lock_wait(&self, wait: Option<Duration>) -> LockWait {
        match wait {
            Some(Duration::ZERO) => LockWait::No,
            Some(wait) => LockWait::AtMost(wait),
            None => {
                let seconds = self.variables.innodb_lock_wait_timeout_seconds();
                LockWait::AtMost(Duration::from_secs(seconds))
            }
        }
    }

    /// Locks the rows that a locking read of one table finds, for as long as the transaction lasts. Returns the view that
    /// shows them as they are; `None` for a query that is not of this kind, or without a transaction.
    pub(crate) fn lock_rows_of(
        &mut self,
        query: &ast::Query,
        text: &str,
    ) -> Result<Option<ReadView>> {
        let Some(mode) = lock_mode(query) else {
            return Ok(None);
        };
        let (true, Some(from)) = (self.in_transaction(), single_table(query)) else {
            return Ok(None);
        };
        let references = self.references_of(&from.tables)?;
        let [reference] = references.0.as_slice() else {
            return Ok(None);
        };
        let Some(table) = reference.table.clone() else {
            return Ok(None);
        };
        let keys = ChangeQuery {
            projection: vec![reference.key()],
            from: &from.tables,
            selection: &from.selection,
            order_by: &from.order_by,
            limit: &from.limit,
        }
        .build()?;
        let wait = self.row_lock_wait(lock_wait(query)?);
        for _ in 0..MAX_RESTARTS {
            let view = self.current_view()?;
            let planned = self.plan_change(&keys, text, view.clone())?;
            let mut rows = self.collect_rows(planned)?;
            let mut found = Vec::new();
            let mut is_stable = true;
            while rows.next(&mut found)? {
                let (Some(key), Some(open)) = (key_of(&found[0])?, &mut self.transaction) else {
                    continue;
                };
                let changes = &mut open.transaction;
                is_stable &= changes.lock_row_of_view(&view, &table.clustered, key, mode, wait)?;
            }
            if is_stable {
                return Ok(Some(view));
            }
        }
        Err(SqlError::lock_wait_timeout())
    }
}

/// FOR UPDATE and FOR SHARE.
fn lock_mode(query: &ast::Query) -> Option<LockMode> {
    let modes = query.locks.iter().map(|lock| match lock.lock_type {
        ast::LockType::Update => LockMode::Exclusive,
        ast::LockType::Share => LockMode::Shared,
    });
    modes.max()
}

/// The parts of a query that say which rows of a table it finds.
struct SingleTable {
    tables: Vec<ast::TableWithJoins>,
    selection: Option<ast::Expr>,
    order_by: Vec<ast::OrderByExpr>,
    limit: Option<ast::Expr>,
}

/// The query's FROM and WHERE, if it reads one table and nothing else; with ORDER BY and LIMIT if its rows are the
/// table's rows.
fn single_table(query: &ast::Query) -> Option<SingleTable> {
    let ast::SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let is_table = |from: &ast::TableWithJoins| {
        from.joins.is_empty() && matches!(from.relation, ast::TableFactor::Table { .. })
    };
    if query.with.is_some() || select.from.len() != 1 || !is_table(&select.from[0]) {
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
    let mut single = SingleTable {
        tables: select.from.clone(),
        selection: select.selection.clone(),
        order_by: Vec::new(),
        limit: None,
    };
    let ungrouped =
        matches!(&select.group_by, ast::GroupByExpr::Expressions(exprs, _) if exprs.is_empty());
    let rows_of_table = ungrouped
        && select.distinct.is_none()
        && select.having.is_none()
        && select.projection.iter().all(is_column);
    if let (
        true,
        Some(ast::LimitClause::LimitOffset {
            limit,
            offset: None,
            ..
        }),
    ) = (rows_of_table, &query.limit_clause)
    {
        single.limit = limit.clone();
        if let Some(ast::OrderBy {
            kind: ast::OrderByKind::Expressions(items),
            ..
        }) = &query.order_by
        {
            single.order_by = items.clone();
        }
    }
    Some(single)
}

/// BEGIN, COMMIT and what is between them.
impl Session {
    fn new_transaction(&mut self, read_only: Option<bool>) -> SessionTransaction {
        let next = std::mem::take(&mut self.next_transaction);
        let read_only = read_only.or(next.read_only);
        SessionTransaction {
            transaction: self.engine.storage().begin_transaction(),
            writing: Vec::new(),
            reading: Vec::new(),
            savepoints: Vec::new(),
            isolation: next
                .isolation
                .unwrap_or_else(|| self.variables.transaction_isolation()),
            read_only: read_only.unwrap_or_else(|| self.variables.transaction_read_only()),
            view: None,
        }
    }

    /// BEGIN and START TRANSACTION; an open transaction is committed.
    pub(crate) fn begin(
        &mut self,
        consistent_snapshot: bool,
        read_only: Option<bool>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.commit_open()?;
        self.transaction = Some(Box::new(self.new_transaction(read_only)));
        if consistent_snapshot {
            self.read_view()?;
        }
        self.ok(sink, 0, String::new())
    }

    /// Opens a transaction for a statement that reads or changes tables while autocommit is off.
    pub(crate) fn begin_implicitly(&mut self) {
        if !self.variables.autocommit() && self.transaction.is_none() {
            self.transaction = Some(Box::new(self.new_transaction(None)));
        }
    }

    pub(crate) fn commit_or_rollback(
        &mut self,
        commit: bool,
        end: TransactionEnd,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let kept = self.transaction.as_ref().map(|open| NextTransaction {
            isolation: Some(open.isolation),
            read_only: Some(open.read_only),
        });
        match commit {
            true => self.commit_open()?,
            false => self.roll_back_open()?,
        }
        if end.chain {
            self.next_transaction = kept.unwrap_or_default();
            self.transaction = Some(Box::new(self.new_transaction(None)));
        }
        self.ok(sink, 0, String::new())
    }

    /// Commits the open transaction, if there is one.
    pub(crate) fn commit_open(&mut self) -> Result<()> {
        if let Some(open) = self.transaction.take() {
            let SessionTransaction {
                transaction,
                writing,
                reading,
                ..
            } = *open;
            let committed = transaction.commit();
            drop((writing, reading));
            committed?;
            self.handle.counters.handler_commit.add(1);
        }
        Ok(())
    }

    /// Rolls the open transaction back, if there is one.
    pub(crate) fn roll_back_open(&mut self) -> Result<()> {
        if let Some(open) = self.transaction.take() {
            let SessionTransaction {
                transaction,
                writing,
                reading,
                ..
            } = *open;
            self.handle.counters.handler_rollback.add(1);
            let rolled_back = transaction.rollback();
            drop((writing, reading));
            rolled_back?;
        }
        Ok(())
    }

    /// SAVEPOINT: one of the same name is forgotten. Without a transaction there is nothing to come back to.
    pub(crate) fn savepoint(&mut self, name: String, sink: &mut dyn ResultSink) -> Result<()> {
        self.begin_implicitly();
        if let Some(open) = &mut self.transaction {
            open.savepoints
                .retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
            open.savepoints.push((name, open.transaction.savepoint()));
        }
        self.ok(sink, 0, String::new())
    }

    /// ROLLBACK TO: savepoints after this one are forgotten. Error 1305 if there is none of the name.
    pub(crate) fn rollback_to(&mut self, name: &str, sink: &mut dyn ResultSink) -> Result<()> {
        let open = self.transaction.as_mut();
        let open = open.ok_or_else(|| SqlError::no_such_savepoint(name))?;
        let position = open.savepoint_position(name)?;
        let (_, mark) = open.savepoints[position];
        open.savepoints.truncate(position + 1);
        open.transaction.rollback_to(mark)?;
        self.ok(sink, 0, String::new())
    }

    /// RELEASE SAVEPOINT. Error 1305 if there is none of the name.
    pub(crate) fn release_savepoint(
        &mut self,
        name: &str,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let open = self.transaction.as_mut();
        let open = open.ok_or_else(|| SqlError::no_such_savepoint(name))?;
        let position = open.savepoint_position(name)?;
        open.savepoints.truncate(position);
        self.ok(sink, 0, String::new())
    }
}

impl SessionTransaction {
    fn savepoint_position(&self, name: &str) -> Result<usize> {
        self.savepoints
            .iter()
            .position(|(known, _)| known.eq_ignore_ascii_case(name))
            .ok_or_else(|| SqlError::no_such_savepoint(name))
    }
}

/// Whether a statement commits the open transaction before it runs.
pub(crate) fn commits_implicitly(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateDatabase { .. }
            | Statement::DropDatabase { .. }
            | Statement::CreateTable(_)
            | Statement::DropTables { .. }
            | Statement::AlterTable { .. }
            | Statement::RenameTables(_)
            | Statement::TruncateTable(_)
            | Statement::Maintain { .. }
            | Statement::LockTables(_)
    )
}

/// Whether a statement opens a transaction while autocommit is off.
pub(crate) fn uses_tables(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::LoadData(_)
    )
}
