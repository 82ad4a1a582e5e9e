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
//! returns it. The tables that it keeps as they are stay in the session meanwhile: planning the statement adds those
//! that it only reads, and a wait for a table looks which ones others may be waiting for. A statement that fails
//! rolls back its own changes alone, and a deadlock rolls back all of them.
//!
//! **What is seen.** Plain reads see a snapshot and the transaction's own changes: READ COMMITTED one snapshot for each
//! statement, REPEATABLE READ the snapshot of the first read. Statements that change rows, and locking reads, see what
//! is committed when they have their locks.
//!
//! **What is locked.** The rows that a transaction changes are its own until it ends. Others see what was there before,
//! and wait to change them, at most `innodb_lock_wait_timeout` (error 1205). Transactions that wait for each other are
//! found out when the last of them begins to wait, and one of them is rolled back (error 1213). So is one that waits
//! for the change of a table's definition that waits for it (`sheaf-table/src/lock/table_lock/`). FOR UPDATE and FOR
//! SHARE (`select/locking_read.rs`) lock the rows they find; what else a statement locks depends on the level
//! (`locking/statement_locks.rs`).
//!
//! **Rows that changed meanwhile.** UPDATE and DELETE find their rows in a snapshot and then lock them one by one. If a
//! row is not what the snapshot shows, another transaction has changed it in between. Then the statement rolls back
//! what it did, keeps its locks, and begins again with a newer snapshot. So the whole condition is tested on the newest
//! rows, whatever it consists of (Oracle calls this a restart to establish write consistency). A statement that had to
//! wait for a row begins again as well: the other transaction may have committed rows elsewhere that it has to find.
//!
//! **When a commit is done.** A commit waits for the log. A caller that has better things to do with the thread
//! meanwhile gets the rest of it as an [`UnfinishedCommit`] when the statement returns. It tells the client nothing
//! before that is finished.
//!
//! Definitions are changed outside of transactions: such a statement commits the open one first, as in MySQL.

use std::sync::Arc;
use std::time::Duration;

use sheaf_storage::ReadView;
use sheaf_table::{ChangeSet, Privileges, Table};
use sheaf_types::error::codes;

use crate::error::{Result, SqlError};
use crate::parser::statement::TransactionEnd;
use crate::session::Session;
use crate::session::result::ResultSink;
use crate::session_parts::remembered_locks::StatementLocks;
pub(crate) use crate::session_parts::transactions::{
    ImplicitTransaction, StatementTransaction, Transactions, UnfinishedCommit,
};
use crate::session_parts::transactions::{KeptTables, SessionTransaction};
use crate::variables::{Isolation, NextTransaction, ServerReadOnly};

/// How often a statement begins again because rows that it found had changed before it locked them.
const MAX_RESTARTS: usize = 1_000;

/// The most savepoints of a transaction.
const MAX_SAVEPOINTS: usize = 10_000;
/// The longest name of a savepoint, in characters, as of everything else that has one.
const MAX_SAVEPOINT_NAME_CHARACTERS: usize = 64;

/// Statements.
impl Session {
    /// Makes attempts until one succeeds. `None` says that a row is not what the attempt's view shows, because another
    /// transaction has changed it since. The attempt also fails if a table that it reads got another definition after
    /// its view was taken. Then the changes and the warnings of the attempt are undone, the locks stay, and the next
    /// attempt sees what was committed meanwhile.
    ///
    /// # Errors
    /// Those of the attempts; 1205 after [`MAX_RESTARTS`] of them.
    pub(crate) fn until_stable<T>(
        &mut self,
        statement: &mut StatementTransaction,
        attempt: impl FnMut(&mut Session, &mut StatementTransaction) -> Result<Option<T>>,
    ) -> Result<T> {
        let done = self.attempts(
            MAX_RESTARTS,
            statement,
            attempt,
            StatementTransaction::start_again,
        )?;
        done.ok_or_else(|| {
            tracing::warn!(
                session = self.handle.id(),
                "a statement was restarted {MAX_RESTARTS} times and is aborted"
            );
            SqlError::lock_wait_timeout()
        })
    }

    /// Makes attempts until one succeeds, at most so many. Between them `start_again` undoes what they have done to
    /// `state`; what they have done to the session is undone here. `None`: none has succeeded.
    ///
    /// # Errors
    /// Those of the attempts, but for changed definitions.
    pub(crate) fn attempts<S, T>(
        &mut self,
        most: usize,
        state: &mut S,
        mut attempt: impl FnMut(&mut Session, &mut S) -> Result<Option<T>>,
        mut start_again: impl FnMut(&mut S) -> Result<()>,
    ) -> Result<Option<T>> {
        let warnings = self.warnings.clone();
        let noted = self.findings.truncated_texts.noted_so_far();
        let assigned = self.outcome.assigned_variables.so_far();
        for _ in 0..most {
            match attempt(self, state) {
                Ok(Some(done)) => return Ok(Some(done)),
                Ok(None) => {}
                Err(error) if error.is_definition_changed() => {}
                Err(error) => return Err(error),
            }
            start_again(state)?;
            // The next attempt finds the same rows again.
            self.warnings.clone_from(&warnings);
            self.findings.truncated_texts.forget_since(noted);
            self.outcome.assigned_variables.go_back_to(&assigned);
        }
        Ok(None)
    }

    /// Error 1290 if the server is read-only for this session (`read_only`, `super_read_only`). Those of `gtid_next`,
    /// which says that the next transaction is another server's.
    pub(crate) fn check_server_writable(&self) -> Result<()> {
        self.transactions.next_gtid.check_change()?;
        let option = match self.engine.read_only() {
            ServerReadOnly::Nobody => return Ok(()),
            _ if self.transactions.source.is_some() => return Ok(()),
            ServerReadOnly::WithoutPrivilege => {
                let to_write = Privileges::CONNECTION_ADMIN | Privileges::SUPER;
                if self.client.has_all_rights() || self.client.check_one_of(to_write).is_ok() {
                    return Ok(());
                }
                "--read-only"
            }
            ServerReadOnly::All => "--super-read-only",
        };
        Err(SqlError::option_prevents_statement(option))
    }

    /// Waits while another session has locked everything (FLUSH TABLES WITH READ LOCK), and keeps it from doing so
    /// until the statement ends. `temporary`: what is changed are temporary tables, which nothing keeps as they are.
    ///
    /// # Errors
    /// 1792 in a transaction that only reads, 1223 if the session itself has locked everything; those of
    /// [`Self::check_server_writable`].
    pub(crate) fn check_writable(&mut self, temporary: bool) -> Result<()> {
        if temporary {
            return Ok(());
        }
        self.check_server_writable()?;
        self.transactions.check_reads_and_writes(&self.variables)?;
        self.table_locks.check_no_read_lock()?;
        self.begin_change()
    }

    /// The same in front of a statement that commits the open transaction first: whether that only reads, or what SET
    /// TRANSACTION said of the next one, is nothing to it.
    ///
    /// # Errors
    /// As [`Self::check_writable`]; 1792 where the session's transactions only read.
    pub(crate) fn check_writable_anew(&mut self) -> Result<()> {
        self.check_server_writable()?;
        if self.variables.transaction_read_only() {
            return Err(SqlError::read_only_transaction());
        }
        self.table_locks.check_no_read_lock()?;
        self.begin_change()
    }

    /// Begins the changes of a statement, which are of these tables.
    ///
    /// # Errors
    /// As [`Self::check_writable`].
    pub(crate) fn begin_changes(&mut self, tables: &ChangeSet) -> Result<StatementTransaction> {
        let temporary = tables.are_temporary();
        self.check_writable(temporary)?;
        let open = self.transactions.open.as_ref();
        let only_temporary = temporary && open.is_none_or(|open| open.only_temporary);
        let mut statement = self.begin_locks(None);
        statement.transaction.only_temporary = only_temporary;
        Ok(statement)
    }

    /// Begins a statement that locks rows, and may not change any. `wait` is what it says itself about waiting.
    pub(crate) fn begin_locks(&mut self, wait: Option<Duration>) -> StatementTransaction {
        let wait = self.variables.row_lock_wait(wait);
        let next = self.transactions.next;
        let (mut transaction, autocommit) = match self.transactions.open.take() {
            Some(transaction) => (transaction, false),
            None => (Box::new(self.new_transaction(None)), true),
        };
        transaction.transaction.set_lock_wait(wait);
        transaction.only_temporary = false;
        self.transactions.of_change = Some(std::mem::take(&mut transaction.tables));
        StatementTransaction {
            savepoint: transaction.transaction.savepoint(),
            locks: StatementLocks::new(transaction.isolation, autocommit, wait),
            transaction,
            autocommit,
            next,
            tells_of_others: false,
        }
    }

    /// Ends the changes of a statement as it ended itself: keeps them, or rolls them back and reports why.
    pub(crate) fn end_changes<T>(
        &mut self,
        statement: StatementTransaction,
        outcome: Result<T>,
    ) -> Result<T> {
        let StatementTransaction {
            mut transaction,
            savepoint,
            autocommit,
            tells_of_others,
            ..
        } = statement;
        transaction.tables = self.transactions.of_change.take().unwrap_or_default();
        let tells_of_others = match &outcome {
            Ok(_) => tells_of_others,
            Err(error) => is_about_others_rows(error),
        };
        let shown = match tells_of_others {
            true => transaction.transaction.show_commits(),
            false => Ok(()),
        };
        let outcome = shown.map_err(SqlError::from).and(outcome);
        match outcome {
            Ok(done) => {
                match autocommit {
                    true => self.commit(*transaction)?,
                    false => self.transactions.open = Some(transaction),
                }
                Ok(done)
            }
            Err(error) => {
                self.handle.counters.handler_rollback.add(1);
                if autocommit {
                    transaction.transaction.rollback()?;
                } else {
                    transaction.transaction.rollback_to(savepoint)?;
                    self.transactions.open = Some(transaction);
                }
                Err(error)
            }
        }
    }

    /// Whether no table is kept as it is for the session, so that no other session waits for it.
    pub(crate) fn holds_no_table(&self) -> bool {
        !self.table_locks.are_held() && self.transactions.holds_no_table()
    }

    /// Opens a transaction for one statement that changes rows, where what it looks at is to be locked: in
    /// SERIALIZABLE, and from REPEATABLE READ on if it `reads` other rows than those that it changes. The statement
    /// [ends](Self::end_implicit) or [declines](Transactions::decline_implicit) it.
    pub(crate) fn begin_implicit(&mut self, reads: bool) -> ImplicitTransaction {
        let next = self.transactions.next;
        let isolation = match next.isolation {
            Some(isolation) => isolation,
            None => self.variables.transaction_isolation(),
        };
        let least = match reads {
            true => Isolation::RepeatableRead,
            false => Isolation::Serializable,
        };
        if self.transactions.open.is_none() && isolation >= least {
            self.transactions.open = Some(Box::new(self.new_transaction(None)));
            self.transactions.is_of_statement = true;
        }
        ImplicitTransaction { next }
    }

    /// Ends what was opened for one statement, as the statement ended. The wait for the log may be left to the caller
    /// of the session.
    pub(crate) fn end_implicit<T>(
        &mut self,
        _: ImplicitTransaction,
        outcome: Result<T>,
    ) -> Result<T> {
        match &outcome {
            Ok(_) if self.transactions.is_of_statement => {
                self.transactions.is_of_statement = false;
                self.commit_open_later()?;
            }
            Ok(_) => {}
            // Changes that were rolled back have been counted.
            Err(_) => self.transactions.leave_implicit()?,
        }
        outcome
    }

    /// What a plain read of tables that begins now sees. Outside of a transaction it is one of its own: what SET
    /// TRANSACTION said was about it.
    pub(crate) fn read_view(&mut self) -> Result<ReadView> {
        if let Some(view) = &self.statement.view {
            return Ok(view.clone());
        }
        let Some(open) = &mut self.transactions.open else {
            self.transactions.next = NextTransaction::default();
            return Ok(self.engine.storage().read_view()?);
        };
        match open.isolation {
            Isolation::ReadUncommitted => Ok(ReadView::newest()),
            Isolation::ReadCommitted => Ok(open.transaction.read_view()?),
            Isolation::RepeatableRead | Isolation::Serializable => {
                Ok(open.transaction.keep_view()?)
            }
        }
    }

    /// Keeps the definition of a table that the transaction reads as it is, or a statement that changes rows of others.
    pub(crate) fn keep_definition(&mut self, table: &Table) -> Result<()> {
        let Some(kept) = self.transactions.kept_for_reads() else {
            return Ok(());
        };
        let mut guards = kept.iter();
        if guards.any(|guard| guard.is_version_of(table)) {
            return Ok(());
        }
        let guard = self.lock_for_read(table, self.holds_no_table())?;
        if let Some(kept) = self.transactions.kept_for_reads() {
            kept.push(guard);
        }
        Ok(())
    }
}

/// BEGIN, COMMIT and what is between them.
impl Session {
    fn new_transaction(&mut self, read_only: Option<bool>) -> SessionTransaction {
        let next = std::mem::take(&mut self.transactions.next);
        let read_only = read_only.or(next.read_only);
        let isolation = next
            .isolation
            .unwrap_or_else(|| self.variables.transaction_isolation());
        let mut transaction = self.engine.storage().begin_transaction();
        let handle = Arc::clone(&self.handle);
        transaction.set_interrupt(Arc::new(move || handle.should_stop_waiting()));
        let handle = Arc::clone(&self.handle);
        transaction.on_pinned_log(Box::new(move || handle.kill()));
        transaction.keep_reasons(isolation == Isolation::Serializable);
        if !self.variables.logs_changes() {
            transaction.hide_from_followers();
        }
        let began = self.statement.start_micros;
        SessionTransaction {
            _shown: self.handle.show_transaction(
                transaction.number(),
                transaction.changed_rows(),
                began,
            ),
            transaction,
            tables: KeptTables::default(),
            savepoints: Vec::new(),
            isolation,
            read_only: read_only.unwrap_or_else(|| self.variables.transaction_read_only()),
            only_temporary: true,
            makes_table: false,
        }
    }

    /// BEGIN and START TRANSACTION; an open transaction is committed, and tables that were locked are unlocked.
    pub(crate) fn begin(
        &mut self,
        consistent_snapshot: bool,
        read_only: Option<bool>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.commit_open()?;
        self.table_locks.unlock_tables(self.engine.catalog());
        self.transactions.open = Some(Box::new(self.new_transaction(read_only)));
        if consistent_snapshot {
            self.read_view()?;
        }
        self.ok(sink, 0, String::new())
    }

    /// Opens a transaction for a statement that reads or changes tables while autocommit is off.
    pub(crate) fn begin_implicitly(&mut self) {
        if !self.variables.autocommit() && self.transactions.open.is_none() {
            self.transactions.open = Some(Box::new(self.new_transaction(None)));
        }
    }

    pub(crate) fn commit_or_rollback(
        &mut self,
        commit: bool,
        end: TransactionEnd,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let kept = self.transactions.open.as_ref().map(|open| NextTransaction {
            isolation: Some(open.isolation),
            read_only: Some(open.read_only),
        });
        match commit {
            true if end.chain => self.commit_open()?,
            true => self.commit_open_later()?,
            false => self.transactions.roll_back(&self.handle.counters)?,
        }
        self.transactions.next = match end.chain {
            true => kept.unwrap_or(self.transactions.next),
            false => NextTransaction::default(),
        };
        if end.chain {
            self.transactions.open = Some(Box::new(self.new_transaction(None)));
        }
        self.is_released |= end.release;
        self.ok(sink, 0, String::new())
    }

    /// Commits the open transaction, if there is one.
    pub(crate) fn commit_open(&mut self) -> Result<()> {
        self.commit_open_later()?;
        self.transactions.finish_commit(&self.handle.counters)
    }

    /// As [`Self::commit_open`], at the end of a request: the wait may be left to the caller of the session.
    fn commit_open_later(&mut self) -> Result<()> {
        match self.transactions.open.take() {
            Some(open) => self.commit(*open),
            None => Ok(()),
        }
    }

    fn commit(&mut self, open: SessionTransaction) -> Result<()> {
        let SessionTransaction {
            transaction,
            tables,
            only_temporary,
            makes_table,
            ..
        } = open;
        let ticket = match transaction.savepoint() {
            // There is nothing to commit.
            0 => None,
            // No other session sees it.
            _ if only_temporary => None,
            _ => match self.begin_commit() {
                Ok(ticket) => Some(ticket),
                Err(error) => {
                    transaction.rollback()?;
                    return Err(error);
                }
            },
        };
        let pending = transaction.commit_later()?;
        if let Some(pending) = pending {
            if makes_table {
                pending.finish_or_stop()?;
                self.handle.counters.handler_commit.add(1);
                return Ok(());
            }
            let unfinished = UnfinishedCommit {
                pending,
                tables,
                _ticket: ticket,
            };
            // Answers of several statements may leave one by one, and this one's too early.
            let may_leave = self.transactions.leaves_commits && self.request.is_alone;
            let pending = &unfinished.pending;
            if may_leave && pending.is_short() && pending.has_to_wait() {
                debug_assert!(self.transactions.unfinished_commit.is_none());
                self.transactions.unfinished_commit = Some(unfinished);
                return Ok(());
            }
            unfinished.finish()?;
        }
        self.handle.counters.handler_commit.add(1);
        Ok(())
    }

    /// Whether requests may return before what they have committed is durable. The caller then asks after each for what
    /// is [left of it](Self::take_unfinished_commit), finishes that before the client hears anything, and
    /// [tells](Self::commit_ended) how it went.
    pub fn leave_commits(&mut self, leave: bool) {
        self.transactions.leaves_commits = leave;
    }

    /// What is left to do of the last request.
    pub fn take_unfinished_commit(&mut self) -> Option<UnfinishedCommit> {
        self.transactions.unfinished_commit.take()
    }

    /// SAVEPOINT: one of the same name is forgotten. Without a transaction there is nothing to come back to.
    pub(crate) fn savepoint(&mut self, name: String, sink: &mut dyn ResultSink) -> Result<()> {
        self.begin_implicitly();
        if let Some(open) = &mut self.transactions.open {
            open.savepoints
                .retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
            if name.chars().count() > MAX_SAVEPOINT_NAME_CHARACTERS {
                return Err(SqlError::new(
                    codes::TOO_LONG_IDENT,
                    format!("Identifier name '{name}' is too long"),
                ));
            }
            if open.savepoints.len() >= MAX_SAVEPOINTS {
                return Err(SqlError::unknown(format!(
                    "A transaction has at most {MAX_SAVEPOINTS} savepoints; RELEASE SAVEPOINT makes room"
                )));
            }
            open.savepoints.push((name, open.transaction.savepoint()));
        }
        self.ok(sink, 0, String::new())
    }

    /// ROLLBACK TO: savepoints after this one are forgotten. Error 1305 if there is none of the name.
    pub(crate) fn rollback_to(&mut self, name: &str, sink: &mut dyn ResultSink) -> Result<()> {
        let open = self.transactions.open.as_mut();
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
        let open = self.transactions.open.as_mut();
        let open = open.ok_or_else(|| SqlError::no_such_savepoint(name))?;
        let position = open.savepoint_position(name)?;
        open.savepoints.truncate(position);
        self.ok(sink, 0, String::new())
    }
}

/// Whether an error is about a key that is there already, a parent that is missing, or a child that refers to a row.
fn is_about_others_rows(error: &SqlError) -> bool {
    error.is(codes::DUP_ENTRY)
        || error.is(codes::ROW_IS_REFERENCED_2)
        || error.is(codes::NO_REFERENCED_ROW_2)
}
