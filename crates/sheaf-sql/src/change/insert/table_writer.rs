//! Rows on their way into a table, for INSERT and LOAD DATA alike.
//!
//! Two ways lead in. An empty table that no other session uses is bulk loaded: rows are sorted and its trees are built
//! bottom up; nothing is in the table before the end. Any other table gets its rows one by one, and the statement's
//! undo takes them out again when a later row fails. Either way a statement that fails leaves the table as it was.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sheaf_access::IndexUse;
use sheaf_storage::{LockMode, LockWait};
use sheaf_table::table::generated_value;
use sheaf_table::{
    BulkLoad, BulkLoadOptions, ChangeSet, CreateTable, InsertOutcome, LockRequest, Table,
    TableError, WriteGuard,
};
use sheaf_types::{Value, assignment::Mode};

use super::on_duplicate::DuplicateUpdate;
use crate::change::find::change_query::{is_ignorable, position_of};
use crate::change::rules::generated_columns::GeneratedColumns;
use crate::change::rules::table_checks::{TableChecks, are_kept, refusal_of};
use crate::change::rules::waiting_rows::WaitingRows;
use crate::error::{Result, SqlError};
use crate::isolation::transaction::{StatementTransaction, Transactions};
use crate::parser::statement;
use crate::query::row_spool::{RowSpool, SpooledRows};
use crate::query::run::MAX_REPLANS;
use crate::query::sort_memory::SortMemory;
use crate::session::progress::SessionProgress;
use crate::session::warnings::Warnings;
use crate::session::{Session, SessionHandle};
use crate::session_parts::transactions::MadeTable;
use crate::variables::Variables;

/// How long a load waits until no other session uses the empty table. If one does for longer, its transaction may last,
/// and rows go in one by one.
const LOAD_LOCK_WAIT: Duration = Duration::from_millis(200);

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Rows inserted.
    pub(crate) rows: u64,
    /// Rows left out because their key was there (IGNORE).
    pub(crate) duplicates: u64,
    /// Rows deleted because they conflicted (REPLACE).
    pub(crate) deleted: u64,
    /// Conflicting rows that were changed (ON DUPLICATE KEY UPDATE).
    pub(crate) updated: u64,
    /// Conflicting rows that were as they should be already.
    pub(crate) unchanged: u64,
    /// The first value that AUTO_INCREMENT gave out; 0 if none.
    pub(crate) first_auto_increment: u64,
    /// The AUTO_INCREMENT value of the last row inserted or updated, given out or not; 0 if there is none.
    pub(crate) last_auto_increment: u64,
}

impl Written {
    /// Rows that were given.
    pub(crate) fn records(&self) -> u64 {
        self.rows + self.duplicates + self.updated + self.unchanged
    }

    /// Affected rows as MySQL counts them: a row that replaced another counts 2, and so does one that was updated
    /// instead of being inserted. `found_rows`: rows that were as they should be count 1.
    pub(crate) fn affected(&self, found_rows: bool) -> u64 {
        let unchanged = if found_rows { self.unchanged } else { 0 };
        self.rows + self.deleted + 2 * self.updated + unchanged
    }

    /// The text that goes with the OK of INSERT.
    pub(crate) fn info(&self, warnings: u64) -> String {
        format!(
            "Records: {}  Duplicates: {}  Warnings: {warnings}",
            self.records(),
            self.duplicates + self.deleted + self.updated
        )
    }
}

/// What is done about a row whose key is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDuplicate {
    /// Error 1062.
    Fail,
    /// A warning, and the row is left out.
    Skip,
    /// Conflicting rows are deleted.
    Replace,
    /// Conflicting rows are updated: see [`TableWriter::update_duplicates`].
    Update,
}

/// What IGNORE and REPLACE in front of a query or behind a file ask for.
impl From<statement::OnDuplicate> for OnDuplicate {
    fn from(asked: statement::OnDuplicate) -> OnDuplicate {
        match asked {
            statement::OnDuplicate::Error => OnDuplicate::Fail,
            statement::OnDuplicate::Ignore => OnDuplicate::Skip,
            statement::OnDuplicate::Replace => OnDuplicate::Replace,
        }
    }
}

/// The table of a statement that adds rows, which stays as it is.
#[must_use]
pub(crate) enum OpenedTarget {
    /// To add rows one by one, with the tables that foreign keys connect it to.
    Rows(Arc<Table>, ChangeSet),
    /// To load it: it is empty.
    Load(WriteGuard),
}

impl OpenedTarget {
    pub(crate) fn table(&self) -> &Arc<Table> {
        match self {
            OpenedTarget::Rows(table, _) => table,
            OpenedTarget::Load(guard) => guard,
        }
    }
}

/// How rows that do not fit are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteOptions {
    pub(crate) mode: Mode,
    pub(crate) on_duplicate: OnDuplicate,
    /// Errors of single rows are warnings, and the row is left out.
    pub(crate) ignore: bool,
    /// An empty table may be bulk loaded: the statement brings many rows.
    pub(crate) bulk: bool,
    /// The rows come of a query that keeps many: a load leaves it most of the memory.
    pub(crate) source_keeps_rows: bool,
    /// 0 in the AUTO_INCREMENT column does not ask for the next value (NO_AUTO_VALUE_ON_ZERO, which dumps set).
    pub(crate) keeps_zero: bool,
}

/// Where the rows go.
enum Target {
    /// Fields are dropped in this order: rows are rolled back before the next writer comes.
    Rows {
        transaction: StatementTransaction,
        tables: Box<ChangeSet>,
        /// Position of the table that is written.
        table: usize,
    },
    Bulk {
        load: Box<BulkLoad>,
        _memory: SortMemory,
    },
}

/// Writes rows into one table under its writer lock. Dropped instead of
/// [closed](Session::close_writer): nothing remains.
pub(crate) struct TableWriter {
    table: Arc<Table>,
    target: Target,
    /// The table is made at the end. Dropped behind the target: its rows are rolled back before its trees go.
    pub(super) made: Option<MadeTable>,
    options: WriteOptions,
    update: Option<DuplicateUpdate>,
    /// What is computed of each row before it is written.
    generated: Option<Arc<GeneratedColumns>>,
    /// Rows whose generated columns are still to be computed, and whose CHECKs to be looked at.
    waiting: WaitingRows,
    /// What rows have to keep.
    checks: Vec<TableChecks>,
    /// What the SELECT of an INSERT delivers behind the row that is written.
    source: Vec<Value>,
    lock_wait: LockWait,
    /// Rows as they were written, for RETURNING.
    kept: Option<RowSpool>,
    written: Written,
    handle: Arc<SessionHandle>,
}

impl TableWriter {
    /// So many rows come: they get AUTO_INCREMENT values one behind another.
    pub(crate) fn expect_rows(&self, rows: u64) {
        if let Target::Rows { tables, table, .. } = &self.target {
            tables.expect_rows(*table, rows);
        }
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub(crate) fn options(&self) -> WriteOptions {
        self.options
    }

    /// Rows given so far, those left out included.
    pub(crate) fn rows_seen(&self) -> u64 {
        self.written.records() + self.waiting.count as u64
    }

    /// What to do with conflicting rows, for [`OnDuplicate::Update`].
    pub(crate) fn update_duplicates(&mut self, update: DuplicateUpdate) {
        self.update = Some(update);
    }

    /// The statement inserts one row.
    pub(crate) fn writes_only_row(&mut self) {
        if let Some(update) = &mut self.update {
            update.of_only_row();
        }
        if let Some(generated) = self.generated.as_mut().and_then(Arc::get_mut) {
            generated.is_of_only_row = true;
        }
    }

    /// What the assignments may name besides the next row.
    pub(crate) fn set_source(&mut self, values: impl Iterator<Item = Value>) {
        self.source.clear();
        self.source.extend(values);
    }

    /// Rows have to keep these, too, before all others.
    pub(crate) fn add_checks(&mut self, checks: TableChecks) {
        self.checks.insert(0, checks);
    }

    /// Keeps the rows that are written, as they are in the table.
    pub(crate) fn keep_rows(&mut self, kept: RowSpool) {
        self.kept = Some(kept);
    }

    /// The rows that were kept.
    pub(crate) fn take_kept_rows(&mut self) -> Option<SpooledRows> {
        Some(self.kept.take()?.read())
    }

    /// Writes a row: one value per column, each of the column's type. Those of generated columns are computed; the row
    /// may wait for others until then.
    pub(crate) fn write(&mut self, row: &[Value], warnings: &mut Warnings) -> Result<()> {
        if self.generated.is_none() && self.checks.is_empty() {
            return self.write_whole(row, warnings);
        }
        self.waiting.push(row);
        // What is done about one row may depend on those before it, and warnings come in the order of the rows.
        let may_wait = self.options.mode.strict && !self.options.ignore && self.update.is_none();
        match may_wait && !self.waiting.are_many() {
            true => Ok(()),
            false => self.write_waiting(warnings),
        }
    }

    /// Writes the rows that wait for others. If one of them cannot be computed, those in front of it are written before
    /// the error is told: theirs, if there is one, comes first.
    pub(crate) fn write_waiting(&mut self, warnings: &mut Warnings) -> Result<()> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let written = self.write_computed(&mut waiting.rows[..waiting.count], warnings);
        waiting.forget();
        self.waiting = waiting;
        written
    }

    fn write_computed(&mut self, rows: &mut [Vec<Value>], warnings: &mut Warnings) -> Result<()> {
        let generated = self.generated.clone();
        let first = self.written.records() + 1;
        let mark = warnings.mark();
        let are_computed = rows.len() > 1
            && generated
                .iter()
                .all(|generated| generated.fill_all(rows, first, warnings).is_ok());
        if !are_computed {
            warnings.back_to(mark);
        }
        let are_kept = are_computed && are_kept(&self.checks, rows);
        for (row, number) in rows.iter_mut().zip(first..) {
            match &generated {
                Some(generated) if !are_computed => generated.fill(row, number, warnings)?,
                _ => {}
            }
            match are_kept {
                true => self.write_checked(row, warnings)?,
                false => self.write_whole(row, warnings)?,
            }
        }
        Ok(())
    }

    /// Writes a row that has all its values.
    fn write_whole(&mut self, row: &[Value], warnings: &mut Warnings) -> Result<()> {
        if let Some(error) = refusal_of(&self.checks, row)? {
            if !self.options.ignore {
                return Err(error);
            }
            warnings.warn(error.code, error.message);
            self.written.duplicates += 1;
            return Ok(());
        }
        self.write_checked(row, warnings)
    }

    /// Writes a row that has all its values and keeps the CHECKs.
    fn write_checked(&mut self, row: &[Value], warnings: &mut Warnings) -> Result<()> {
        self.handle.cancel_flag().check()?;
        let outcome = loop {
            match &mut self.target {
                Target::Bulk { load, .. } => break load.append(row)?,
                Target::Rows {
                    transaction,
                    tables,
                    table,
                } => match tables.insert(transaction.changes(), *table, row) {
                    Ok(outcome) => break outcome,
                    Err(error @ TableError::DuplicateKey { .. }) => match self.options.on_duplicate
                    {
                        OnDuplicate::Fail => return Err(error.into()),
                        OnDuplicate::Skip => {
                            transaction.tells_of_others();
                            warnings.warn(error.mysql_code(), error.to_string());
                            self.written.duplicates += 1;
                            return Ok(());
                        }
                        OnDuplicate::Replace | OnDuplicate::Update => {
                            let replaces = self.options.on_duplicate == OnDuplicate::Replace;
                            // A row that was given a value again, or one that was chosen, conflicts by this value. As
                            // in MySQL, REPLACE deletes no row for it.
                            let given = match self.table.with_last_auto_increment(row)? {
                                None => tables.with_chosen_value(*table, row)?,
                                given => given,
                            };
                            match given {
                                Some(_) if replaces => return Err(error.into()),
                                Some(row) => return self.write_whole(&row, warnings),
                                None if replaces => break self.replace(row)?,
                                None => {}
                            }
                            if self.update(row, warnings)? {
                                return Ok(());
                            }
                            if let Target::Rows { tables, .. } = &self.target {
                                tables.insert_same_row_next();
                            }
                        }
                    },
                    Err(error) if self.options.ignore && is_ignorable(&error) => {
                        transaction.tells_of_others();
                        warnings.warn(error.mysql_code(), error.to_string());
                        self.written.duplicates += 1;
                        return Ok(());
                    }
                    Err(error) => return Err(error.into()),
                },
            }
        };
        if self.written.first_auto_increment == 0 {
            self.written.first_auto_increment = outcome.auto_increment.unwrap_or(0);
        }
        self.written.rows += 1;
        let given = self.table.definition.auto_increment_column();
        if let Some(column) = given {
            let given = row[column]
                .as_i128()
                .and_then(|value| u64::try_from(value).ok());
            self.written.last_auto_increment = outcome.auto_increment.or(given).unwrap_or_default();
        }
        if self.kept.is_some() {
            let mut row = row.to_vec();
            if let (Some(column), Some(value)) = (given, outcome.auto_increment) {
                row[column] = generated_value(&self.table.definition.columns[column].ty, value);
            }
            self.keep(row)?;
        }
        Ok(())
    }

    /// Rows with a key that is there are left out with a warning, unless the table is bulk loaded.
    pub(crate) fn skip_duplicates(&mut self) {
        if matches!(self.target, Target::Rows { .. }) {
            self.options.on_duplicate = OnDuplicate::Skip;
            self.options.ignore = true;
        }
    }

    /// Deletes the rows that have a key of this one, and inserts it.
    fn replace(&mut self, row: &[Value]) -> Result<InsertOutcome> {
        let Target::Rows {
            transaction,
            tables,
            table,
        } = &mut self.target
        else {
            return Err(SqlError::unknown("a bulk load replaces nothing"));
        };
        // As MySQL updates the conflicting row of the last unique key, and finds that nothing changes.
        let indexes = self.table.definition.indexes();
        let has_one_key = indexes.filter(|index| index.unique).count() == 1;
        let may_stay = has_one_key && !tables.is_parent(*table);
        // Conflicting rows are locked first: another transaction may be about to delete or to insert them.
        loop {
            while let Some(key) = self.table.conflicting_row(row)? {
                let changes = transaction.changes();
                let (mode, wait) = (LockMode::Exclusive, self.lock_wait);
                let old = self.table.lock_row(changes, &key, mode, wait)?;
                if old.is_none() || self.table.conflicting_row(row)?.as_ref() != Some(&key) {
                    continue;
                }
                if may_stay && old.as_deref() == Some(row) {
                    return Ok(InsertOutcome {
                        auto_increment: None,
                    });
                }
                self.table.announce_move(transaction.changes())?;
                if tables.delete(transaction.changes(), *table, &key)? {
                    self.written.deleted += 1;
                }
            }
            tables.insert_same_row_next();
            match tables.insert(transaction.changes(), *table, row) {
                Err(error @ TableError::DuplicateKey { .. }) => {
                    if tables.with_chosen_value(*table, row)?.is_some() {
                        return Err(error.into());
                    }
                }
                outcome => return Ok(outcome?),
            }
        }
    }

    /// Updates the row that has a key of this one. False: it has gone, and nothing conflicts any more.
    fn update(&mut self, row: &[Value], warnings: &mut Warnings) -> Result<bool> {
        let number = self.rows_seen() + 1;
        let (
            Target::Rows {
                transaction,
                tables,
                table,
            },
            Some(update),
        ) = (&mut self.target, &self.update)
        else {
            return Err(SqlError::unknown("a bulk load updates nothing"));
        };
        let changes = transaction.changes();
        let (key, old) = loop {
            let Some(key) = self.table.conflicting_row(row)? else {
                return Ok(false);
            };
            let (mode, wait) = (LockMode::Exclusive, self.lock_wait);
            let old = self.table.lock_row(changes, &key, mode, wait)?;
            // Before it was locked it may have gone, or have changed so that it does not conflict any more.
            match old {
                Some(old) if self.table.conflicting_row(row)?.as_ref() == Some(&key) => {
                    break (key, old);
                }
                _ => {}
            }
        };
        let mut new = update.updated(&old, (row, &self.source), number, warnings)?;
        if new != old
            && let Some(generated) = &self.generated
        {
            generated.fill_changed(&old, &mut new, number, warnings)?;
        }
        if new != old
            && let Some(error) = refusal_of(&self.checks, &new)?
        {
            if !self.options.ignore {
                return Err(error);
            }
            warnings.warn(error.code, error.message);
            self.written.duplicates += 1;
            return Ok(true);
        }
        if new == old {
            self.written.unchanged += 1;
        } else {
            match tables.replace(transaction.changes(), *table, &key, &old, &new) {
                Ok(()) => self.written.updated += 1,
                Err(error) if self.options.ignore && is_ignorable(&error) => {
                    transaction.tells_of_others();
                    warnings.warn(error.mysql_code(), error.to_string());
                    self.written.duplicates += 1;
                    return Ok(true);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if new != old
            && let Some(column) = self.table.definition.auto_increment_column()
        {
            let id = new[column].as_i128();
            let id = id.and_then(|value| u64::try_from(value).ok());
            self.written.last_auto_increment = id.unwrap_or_default();
        }
        if self.kept.is_some() {
            self.keep(new)?;
        }
        Ok(true)
    }

    fn keep(&mut self, row: Vec<Value>) -> Result<()> {
        match &mut self.kept {
            Some(kept) => kept.push(row.into_iter().map(Ok)),
            None => Ok(()),
        }
    }
}

impl Session {
    /// Opens a table for a statement that adds rows.
    pub(crate) fn open_writer(
        &mut self,
        database: &str,
        table: &str,
        options: WriteOptions,
    ) -> Result<TableWriter> {
        let target = self.open_target((database, table), false, &options)?;
        self.writer_of(target, options)
    }

    /// Opens the table of a statement that adds rows, with those that foreign keys connect it to. A statement that
    /// reads tables, too, opens its target first. It may have read a table already that it also needs as a parent or
    /// child of the target. Then it would wait for the writer, while the writer waits for the readers. `of_view`: it is
    /// the table of a view, which means one of all sessions.
    pub(crate) fn open_target(
        &mut self,
        (database, table): (&str, &str),
        of_view: bool,
        options: &WriteOptions,
    ) -> Result<OpenedTarget> {
        let temporary = !of_view && self.table_names().is_temporary(database, table);
        self.check_writable(temporary)?;
        let named = |session: &Session| {
            let names = session.table_names();
            match of_view {
                true => names.of_all_sessions().table(database, table),
                false => names.table(database, table),
            }
        };
        let current = match named(self) {
            Err(TableError::NotBaseTable { .. }) => {
                return Err(SqlError::not_supported_yet("INSERT into a view"));
            }
            current => current?,
        };
        // A bulk load is a transaction of its own, and its rows are in the table at its end only: too late to look for
        // their parents. It keeps all others from the table. So it locks no rows that it reads: their transactions may
        // wait for the table, and nobody would see that the two wait for each other.
        let checks = self.variables.foreign_key_checks();
        let has_parents = |table: &Table| checks && !table.definition.foreign_keys.is_empty();
        // What is loaded past the log is not in the binary log either.
        let is_row_by_row = !options.bulk
            || !temporary && self.is_replicated()
            || self.transactions.is_open_for_more()
            || self.transactions.reads_lock()
            || self.transactions.keeps(&current)
            || self.table_locks.are_held()
            || has_parents(&current)
            || options.on_duplicate != OnDuplicate::Fail
            || current.row_count_estimate() > 0;
        if !is_row_by_row && let Some(guard) = self.lock_for_load(&current)? {
            // Its parents may have come before it was locked, and the estimate may be wrong.
            if !has_parents(&guard) && guard.is_empty()? {
                self.transactions.leave_implicit()?;
                return Ok(OpenedTarget::Load(guard));
            }
        }
        for _ in 0..MAX_REPLANS {
            let target = named(self)?;
            if let Some(tables) = self.lock_tables(std::slice::from_ref(&target))? {
                return Ok(OpenedTarget::Rows(target, tables));
            }
        }
        Err(SqlError::definition_changed())
    }

    /// The writer of a table that was opened.
    pub(crate) fn writer_of(
        &mut self,
        target: OpenedTarget,
        options: WriteOptions,
    ) -> Result<TableWriter> {
        match target {
            OpenedTarget::Rows(table, tables) => self.row_writer(table, tables, options),
            OpenedTarget::Load(guard) => {
                let memory = self.sort_memory(options.source_keeps_rows)?;
                let (sort, progress) = self.load_options(&memory);
                let catalog = self.catalog_of(&guard.definition);
                let load = BulkLoad::new(catalog, guard, sort, progress)?;
                self.bulk_writer(load, memory, options)
            }
        }
    }

    /// Opens a table to load it; `None` if others use it.
    fn lock_for_load(&self, table: &Table) -> Result<Option<WriteGuard>> {
        let zone = self.variables.time_zone();
        let catalog = self.catalog_of(&table.definition);
        let (database, table) = (&table.definition.database, &table.definition.name);
        let handle = &self.handle;
        let is_interrupted = || handle.should_stop_waiting();
        let request = LockRequest {
            session: self.id(),
            interrupt: Some(&is_interrupted),
            ..LockRequest::from(LOAD_LOCK_WAIT)
        };
        match catalog.open_for_load(database, table, request) {
            Ok(guard) => {
                let table = guard.in_time_zone(zone);
                Ok(Some(guard.used_as(&table)))
            }
            Err(TableError::LockWaitTimeout) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends a load. Sessions that began to use the table meanwhile are waited for: in one wait, because all that was
    /// loaded would be lost between two.
    fn finish_load(&self, load: BulkLoad) -> Result<()> {
        let handle = &self.handle;
        let is_interrupted = || handle.should_stop_waiting();
        let request = LockRequest {
            session: self.id(),
            interrupt: Some(&is_interrupted),
            ..LockRequest::from(self.variables.load_lock_wait())
        };
        load.finish(request)?;
        Ok(())
    }

    /// A writer of a table that comes with its rows: it is made when the writer is closed.
    pub(crate) fn open_new_writer(
        &mut self,
        request: CreateTable,
        options: WriteOptions,
    ) -> Result<TableWriter> {
        let memory = self.sort_memory(options.source_keeps_rows)?;
        let (sort, progress) = self.load_options(&memory);
        let (catalog, zone) = (self.engine.catalog(), self.variables.time_zone());
        let load = BulkLoad::of_new_table(catalog, request, zone, sort, progress)?;
        self.bulk_writer(load, memory, options)
    }

    fn load_options(&self, memory: &SortMemory) -> (BulkLoadOptions, Arc<SessionProgress>) {
        let options = BulkLoadOptions {
            memory_bytes: memory.bytes(),
            threads: self.workers.threads(),
        };
        (options, Arc::new(SessionProgress::new(self.handle())))
    }

    fn bulk_writer(
        &self,
        mut load: BulkLoad,
        memory: SortMemory,
        options: WriteOptions,
    ) -> Result<TableWriter> {
        load.give_out(self.variables.auto_increment_series());
        self.variables.check_time_zone(&load.table().definition)?;
        Ok(TableWriter {
            generated: self
                .generated_columns(load.table(), options.mode)?
                .map(Arc::new),
            waiting: WaitingRows::default(),
            checks: self.table_checks(load.table())?.into_iter().collect(),
            table: Arc::clone(load.table()),
            target: Target::Bulk {
                load: Box::new(load),
                _memory: memory,
            },
            made: None,
            options,
            update: None,
            source: Vec::new(),
            lock_wait: self.variables.row_lock_wait(None),
            kept: None,
            written: Written::default(),
            handle: self.handle(),
        })
    }

    /// As [`Self::open_writer`], for a table that is looked up already and statements that bring some rows. `None`: its
    /// definition has changed.
    pub(crate) fn open_known_writer(
        &mut self,
        table: &Arc<Table>,
        options: WriteOptions,
    ) -> Result<Option<TableWriter>> {
        match self.open_known_target(table)? {
            Some(tables) => {
                let writer = self.row_writer(Arc::clone(table), tables, options)?;
                Ok(Some(writer))
            }
            None => Ok(None),
        }
    }

    /// As [`Self::open_target`], of [`Self::open_known_writer`].
    pub(crate) fn open_known_target(&mut self, table: &Arc<Table>) -> Result<Option<ChangeSet>> {
        self.check_writable(table.definition.is_temporary())?;
        self.lock_tables(std::slice::from_ref(table))
    }

    pub(crate) fn row_writer(
        &mut self,
        table: Arc<Table>,
        tables: ChangeSet,
        options: WriteOptions,
    ) -> Result<TableWriter> {
        let position = position_of(&tables, &table);
        let planned = self
            .variables
            .check_time_zone(&table.definition)
            .and_then(|()| {
                let generated = self.generated_columns(&table, options.mode)?;
                let generated = generated.map(Arc::new);
                Ok((generated, self.table_checks(&table)?))
            });
        let begun = match (position, planned) {
            (Ok(position), Ok(planned)) => self
                .begin_changes(&tables)
                .map(|transaction| (position, planned, transaction)),
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        let (position, (generated, checks), transaction) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                self.transactions.keep_tables(tables);
                return Err(error);
            }
        };
        Ok(TableWriter {
            generated,
            waiting: WaitingRows::default(),
            checks: checks.into_iter().collect(),
            target: Target::Rows {
                transaction,
                table: position,
                tables: Box::new(tables),
            },
            made: None,
            table,
            options,
            update: None,
            source: Vec::new(),
            lock_wait: self.variables.row_lock_wait(None),
            kept: None,
            written: Written::default(),
            handle: self.handle(),
        })
    }

    /// Ends a writer as the statement ended: keeps the rows, or rolls them back and reports why.
    pub(crate) fn close_writer(
        &mut self,
        mut writer: TableWriter,
        done: Result<()>,
    ) -> Result<Written> {
        // A row that waits comes before what has failed.
        let done = writer.write_waiting(&mut self.warnings).and(done);
        let written = writer.written;
        match writer.target {
            Target::Rows {
                transaction,
                tables,
                ..
            } => {
                let ended = match writer.made {
                    Some(made) => self.end_changes_of_new(made, transaction, done),
                    None => self.end_changes(transaction, done),
                };
                self.transactions.keep_tables(*tables);
                ended?;
            }
            Target::Bulk { load, _memory } => {
                let counters = &self.handle.counters;
                if let Err(error) = done {
                    counters.handler_rollback.add(1);
                    return Err(error);
                }
                self.finish_load(*load)?;
                counters.handler_commit.add(1);
            }
        }
        let counters = &self.handle.counters;
        let uses = IndexUse {
            inserted: written.rows,
            updated: written.updated,
            deleted: written.deleted,
            ..IndexUse::default()
        };
        counters.index_uses.add(writer.table.clustered.id(), uses);
        counters.handler_write.add(written.rows);
        counters.handler_update.add(written.updated);
        counters.handler_delete.add(written.deleted);
        Ok(written)
    }
}

/// Positions of the columns that a statement names; all of them for an empty list. Errors 1054 and 1110.
pub(crate) fn target_columns(table: &Table, names: &[String]) -> Result<Vec<usize>> {
    let definition = &table.definition;
    if names.is_empty() {
        return Ok(definition.visible_columns().collect());
    }
    let mut seen = BTreeSet::new();
    let mut targets = Vec::with_capacity(names.len());
    for name in names {
        let position = definition
            .column_position(name)
            .ok_or_else(|| SqlError::bad_field(name, "field list"))?;
        if !seen.insert(position) {
            return Err(SqlError::field_specified_twice(name));
        }
        targets.push(position);
    }
    Ok(targets)
}

impl Variables {
    /// Whether `sql_mode` says that 0 is a value of AUTO_INCREMENT columns.
    pub(crate) fn keeps_zero(&self) -> bool {
        self.sql_mode().contains("NO_AUTO_VALUE_ON_ZERO")
    }
}

impl Transactions {
    /// Ends the use of a table that was opened and is not written.
    pub(crate) fn leave_target(&mut self, target: OpenedTarget) {
        if let OpenedTarget::Rows(_, tables) = target {
            self.keep_tables(tables);
        }
    }
}
