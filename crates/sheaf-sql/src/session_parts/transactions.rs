//! A session's transactions: the open one, the next one, what is left of the last, and the tables that they keep as
//! they are. `isolation/transaction.rs` begins and ends them, and says what is seen and locked.

use std::sync::Arc;

use sheaf_access::SessionCounters;
use sheaf_storage::{PendingCommit, ReadView, Storage, Transaction};
use sheaf_table::global_read_lock::CommitTicket;
use sheaf_table::{ChangeGuard, ChangeSet, NewTable, ReadGuard, Table, WriteGuard};

use crate::binlog::statement::LoggedStatement;
use crate::error::{Result, SqlError};
use crate::session_parts::handle::ShownTransaction;
use crate::session_parts::next_gtid::NextGtid;
use crate::session_parts::remembered_locks::StatementLocks;
use crate::variables::{Isolation, NextTransaction, Variables};

/// The tables that a transaction keeps as they are until it ends.
#[derive(Default)]
pub(crate) struct KeptTables {
    /// Opened to change rows.
    pub(crate) writing: Vec<ChangeGuard>,
    /// Read: their definitions stay.
    pub(crate) reading: Vec<ReadGuard>,
}

/// The open transaction of a session.
pub(crate) struct SessionTransaction {
    pub(crate) transaction: Transaction,
    pub(crate) _shown: ShownTransaction,
    pub(crate) tables: KeptTables,
    pub(crate) savepoints: Vec<(String, usize)>,
    pub(crate) isolation: Isolation,
    pub(crate) read_only: bool,
    /// What it has changed are rows of temporary tables, if it has changed any.
    pub(crate) only_temporary: bool,
    /// It makes a table, whose name others wait for. So its commit is done or the storage stops.
    pub(crate) makes_table: bool,
}

/// A table that is made in the transaction of its rows.
pub(crate) struct MadeTable {
    pub(crate) table: NewTable,
    /// What followers are told of it.
    pub(crate) logged: Option<LoggedStatement>,
}

/// A table that a source has made for rows that it sends next.
#[derive(Default)]
pub(crate) struct IncomingTable {
    /// The next CREATE TABLE is of such a table.
    pub(crate) is_next: bool,
    pub(crate) made: Option<MadeTable>,
    /// Until the transaction of the rows begins.
    pub(crate) guard: Option<WriteGuard>,
}

/// What a statement has of a transaction that is opened for it alone, so that what it reads is locked.
#[must_use]
#[derive(Clone, Copy)]
pub(crate) struct ImplicitTransaction {
    /// What SET TRANSACTION said before.
    pub(crate) next: NextTransaction,
}

/// What is left of a commit whose statement has returned: the wait for the log.
#[must_use]
pub struct UnfinishedCommit {
    pub(crate) pending: PendingCommit,
    /// No definition is changed before snapshots see the rows.
    pub(crate) tables: KeptTables,
    /// FLUSH TABLES WITH READ LOCK waits until all see the changes, or none will.
    pub(crate) _ticket: Option<CommitTicket>,
}

impl UnfinishedCommit {
    /// Waits until the changes are durable, on any thread. The outcome goes to `Session::commit_ended`.
    pub fn finish(self) -> Result<()> {
        Ok(self.pending.finish()?)
    }
}

/// The changes of the running statement. Dropped, it rolls the whole transaction back.
pub(crate) struct StatementTransaction {
    pub(crate) transaction: Box<SessionTransaction>,
    /// Where the statement began.
    pub(crate) savepoint: usize,
    pub(crate) autocommit: bool,
    /// What SET TRANSACTION said about it, if it is the statement's own.
    pub(crate) next: NextTransaction,
    pub(crate) locks: StatementLocks,
    /// What the statement tells its client depends on what others have committed.
    pub(crate) tells_of_others: bool,
}

impl StatementTransaction {
    /// Where tables note what they change.
    pub(crate) fn changes(&mut self) -> &mut Transaction {
        &mut self.transaction.transaction
    }

    /// As [`Self::changes`], and what the statement knows of its locks.
    pub(crate) fn changes_and_locks(&mut self) -> (&mut Transaction, &mut StatementLocks) {
        (&mut self.transaction.transaction, &mut self.locks)
    }

    /// The statement is about to tell what it has found in others' rows and done nothing about: a key that is there
    /// already, a parent that is missing. Then that is durable before the client hears of it.
    pub(crate) fn tells_of_others(&mut self) {
        self.tells_of_others = true;
    }

    /// Whether the statement has changed anything.
    pub(crate) fn has_changed(&self) -> bool {
        self.transaction.transaction.savepoint() != self.savepoint
    }

    /// Rolls back what the statement did so far; its locks stay.
    pub(crate) fn start_again(&mut self) -> Result<()> {
        self.locks.start_again();
        Ok(self.transaction.transaction.rollback_to(self.savepoint)?)
    }
}

/// A session's transactions: the open one, the next one, and what is left of the last.
#[derive(Default)]
pub(crate) struct Transactions {
    /// Between BEGIN and COMMIT; not while a statement that changes rows has it.
    pub(crate) open: Option<Box<SessionTransaction>>,
    /// The open one ends with the running statement.
    pub(crate) is_of_statement: bool,
    /// What the transaction keeps, while a statement that changes rows has it.
    pub(crate) of_change: Option<KeptTables>,
    /// A statement has opened the tables that it changes (`Session::lock_tables`).
    pub(crate) has_opened_targets: bool,
    pub(crate) next: NextTransaction,
    pub(crate) next_gtid: NextGtid,
    /// See `Session::leave_commits`.
    pub(crate) leaves_commits: bool,
    pub(crate) unfinished_commit: Option<UnfinishedCommit>,
    /// What is changed are the changes of a replica's source, which `read_only` lets through.
    pub(crate) source: Option<SourceKind>,
    /// The words of the source's statement that runs, with those in comments that are for other servers.
    pub(crate) source_text: Option<String>,
    /// Behind the open transaction: its rows are rolled back before its trees go.
    pub(crate) incoming: IncomingTable,
}

/// The program that a replica's source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceKind {
    /// Or another Sheaf.
    Mysql,
    Mariadb,
}

impl Transactions {
    /// The session is that of a replica's applier.
    pub(crate) fn applies(&mut self, source: SourceKind) {
        self.source = Some(source);
    }

    /// The transaction of the rows of a new table has begun.
    pub(crate) fn keep_incoming_table(&mut self) {
        let guard = self.incoming.guard.take();
        self.return_tables(guard.map(ChangeGuard::from).into_iter().collect());
    }

    /// A table of this name that the source has made for its rows, and that is not there yet.
    pub(crate) fn made_table(&self, database: &str, name: &str) -> Option<&Arc<Table>> {
        let table = self.incoming.made.as_ref()?.table.table();
        let definition = &table.definition;
        (definition.database == database && definition.name == name).then_some(table)
    }

    /// The statement goes on without the transaction that was opened for it, and without its locks.
    pub(crate) fn leave_implicit(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_of_statement)
            && let Some(open) = self.open.take()
        {
            open.transaction.rollback()?;
        }
        Ok(())
    }

    /// Forgets the open transaction after a panic, which rolls it back: what the statement left behind cannot be told
    /// apart from what was there before it.
    pub(crate) fn drop_open(&mut self) {
        self.open = None;
        self.is_of_statement = false;
    }

    /// The session ends: the open transaction is rolled back, and its tables are free.
    pub(crate) fn forget(&mut self) {
        self.drop_open();
        self.end_change();
        self.unfinished_commit = None;
    }

    /// The wait for the log of the last commit is left to the caller of the session.
    pub(crate) fn has_unfinished_commit(&self) -> bool {
        self.unfinished_commit.is_some()
    }

    /// Whether no table is kept as it is. A statement that changes rows has opened the tables that it changes.
    pub(crate) fn holds_no_table(&self) -> bool {
        let (reading, writing) = self.kept_tables();
        let is_changing = self.has_opened_targets || self.of_change.is_some();
        !is_changing && reading.is_empty() && writing.is_empty()
    }

    /// Ends the changes of a statement that has changed nothing and goes on another way. Its locks stay as long as the
    /// session's transaction, if there is one; if not, what SET TRANSACTION said is for the other way.
    pub(crate) fn abandon_changes(&mut self, statement: StatementTransaction) -> Result<()> {
        let StatementTransaction {
            mut transaction,
            autocommit,
            next,
            ..
        } = statement;
        transaction.tables = self.of_change.take().unwrap_or_default();
        match autocommit {
            true => {
                transaction.transaction.rollback()?;
                self.next = next;
            }
            false => self.open = Some(transaction),
        }
        Ok(())
    }

    /// Tables that a statement had opened for writing stay open as long as the session's transaction, if there is one.
    pub(crate) fn keep_tables(&mut self, tables: ChangeSet) {
        self.has_opened_targets = false;
        if let Some(transaction) = &mut self.open {
            transaction.tables.writing.extend(tables.into_tables());
        } else if let Some(unfinished) = &mut self.unfinished_commit {
            unfinished.tables.writing.extend(tables.into_tables());
        }
    }

    /// A statement has opened the tables that it changes, until it [keeps](Self::keep_tables) them or ends.
    pub(crate) fn note_opened_targets(&mut self) {
        self.has_opened_targets = true;
    }

    /// Takes the guard of a table that the transaction has opened for writing already.
    pub(crate) fn take_kept_table(&mut self, table: &Arc<Table>) -> Option<ChangeGuard> {
        let writing = &mut self.open.as_mut()?.tables.writing;
        let mut guards = writing.iter();
        let position = guards.position(|guard| guard.is_version_of(table))?;
        Some(writing.swap_remove(position).used_as(table))
    }

    /// Puts guards back that a statement took and did not use.
    pub(crate) fn return_tables(&mut self, guards: Vec<ChangeGuard>) {
        if let Some(transaction) = &mut self.open {
            transaction.tables.writing.extend(guards);
        }
    }

    /// The tables that the transaction keeps as they are, or the statement that runs: those that it has read, and those
    /// that it has changed.
    pub(crate) fn kept_tables(&self) -> (&[ReadGuard], &[ChangeGuard]) {
        let of_open = || self.open.as_ref().map(|open| &open.tables);
        match self.of_change.as_ref().or_else(of_open) {
            Some(kept) => (&kept.reading, &kept.writing),
            None => (&[], &[]),
        }
    }

    /// Whether the transaction keeps a table as it is.
    pub(crate) fn keeps(&self, table: &Arc<Table>) -> bool {
        let (reading, writing) = self.kept_tables();
        let mut writing = writing.iter();
        reading.iter().any(|guard| guard.is_version_of(table))
            || writing.any(|guard| guard.is_version_of(table))
    }

    /// Where tables are kept that are read: in the open transaction, or for the statement that changes rows.
    pub(crate) fn kept_for_reads(&mut self) -> Option<&mut Vec<ReadGuard>> {
        let of_open = self.open.as_mut().map(|open| &mut open.tables);
        let kept = self.of_change.as_mut().or(of_open)?;
        Some(&mut kept.reading)
    }

    /// A change has read what it stores, and locked it. One that is a transaction of its own does not keep the tables
    /// from here on: it would wait for a change of a definition that waits for it.
    pub(crate) fn has_read_for_change(&mut self) {
        if self.is_of_statement
            && let Some(open) = &mut self.open
        {
            open.tables.reading.clear();
        }
    }

    /// Takes the guards of what a statement has read that is a transaction of its own, and goes on when that has ended.
    pub(crate) fn take_reads_of(&mut self, statement: &StatementTransaction) -> Vec<ReadGuard> {
        match &mut self.of_change {
            Some(kept) if statement.autocommit => std::mem::take(&mut kept.reading),
            _ => Vec::new(),
        }
    }

    /// Forgets what a statement has kept that has not come to its end.
    pub(crate) fn end_change(&mut self) {
        self.of_change = None;
        self.has_opened_targets = false;
    }

    /// True between BEGIN and COMMIT, and in a statement that has one [opened for it](ImplicitTransaction).
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether others may wait for rows of the open transaction. One that only reads keeps definitions from being
    /// changed, which is no reason to be in a hurry.
    pub(crate) fn keep_others_waiting(&self) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| open.transaction.keeps_others_waiting())
    }

    /// True between BEGIN and COMMIT only.
    pub(crate) fn is_open_for_more(&self) -> bool {
        self.is_open() && !self.is_of_statement
    }

    /// Whether plain reads lock what they read. A transaction that only reads is serializable by its snapshot: all that
    /// have committed before, and none that came later.
    pub(crate) fn reads_lock(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| open.isolation == Isolation::Serializable && !open.read_only)
    }

    /// Whether plain reads of the open transaction see what its first one saw, and lock nothing.
    pub(crate) fn reads_repeat(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| open.isolation == Isolation::RepeatableRead)
    }

    /// Whether what changes read of other tables is locked: what they store follows from it.
    pub(crate) fn changes_lock_reads(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| open.isolation >= Isolation::RepeatableRead && !open.read_only)
    }

    /// The open transaction, to lock what it reads.
    pub(crate) fn open_changes(&mut self) -> Option<&mut Transaction> {
        let open = self.open.as_mut()?;
        Some(&mut open.transaction)
    }

    /// A new view of what has committed by now, plus the changes of the open transaction, if there is one.
    pub(crate) fn current_view(&self, storage: &Storage) -> Result<ReadView> {
        match &self.open {
            Some(open) => Ok(open.transaction.read_view()?),
            None => Ok(storage.read_view()?),
        }
    }

    /// Waits for the commit of the running statement, because more is to be done or told before it returns.
    pub(crate) fn finish_commit(&mut self, counters: &SessionCounters) -> Result<()> {
        let Some(unfinished) = self.unfinished_commit.take() else {
            return Ok(());
        };
        unfinished.finish()?;
        counters.handler_commit.add(1);
        Ok(())
    }

    /// Rolls the open transaction back, if there is one.
    pub(crate) fn roll_back(&mut self, counters: &SessionCounters) -> Result<()> {
        if let Some(open) = self.open.take() {
            let SessionTransaction {
                transaction,
                tables,
                ..
            } = *open;
            counters.handler_rollback.add(1);
            let rolled_back = transaction.rollback();
            drop(tables);
            rolled_back?;
        }
        Ok(())
    }
}

impl Transactions {
    /// Error 1792 in a transaction that only reads, and where the next one will.
    pub(crate) fn check_reads_and_writes(&self, variables: &Variables) -> Result<()> {
        let read_only = match &self.open {
            Some(open) => open.read_only,
            None => match self.next.read_only {
                Some(read_only) => read_only,
                None => variables.transaction_read_only(),
            },
        };
        match read_only {
            true => Err(SqlError::read_only_transaction()),
            false => Ok(()),
        }
    }

    /// The statement has done nothing, and goes on another way. What SET TRANSACTION said is for that way.
    pub(crate) fn decline_implicit(&mut self, implicit: ImplicitTransaction) -> Result<()> {
        if self.is_of_statement {
            self.leave_implicit()?;
            self.next = implicit.next;
        }
        Ok(())
    }
}

impl SessionTransaction {
    pub(crate) fn savepoint_position(&self, name: &str) -> Result<usize> {
        self.savepoints
            .iter()
            .position(|(known, _)| known.eq_ignore_ascii_case(name))
            .ok_or_else(|| SqlError::no_such_savepoint(name))
    }
}
