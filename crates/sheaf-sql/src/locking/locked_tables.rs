//! LOCK TABLES, FLUSH TABLES WITH READ LOCK and UNLOCK TABLES.
//!
//! ```text
//!   LOCK TABLES t READ          others may read t; writers of it wait
//!   LOCK TABLES t WRITE         others wait for t
//!   FLUSH TABLES WITH READ LOCK others may read; statements that change something, and commits, wait
//! ```
//!
//! The locks are those of the tables (`SessionLock`) and that of the catalog (`GlobalReadLocked`). A session that
//! has locked tables may use no others, and those under the names only that it has locked them by, each once in a
//! statement: MySQL opens a table for each, and statements that do it otherwise fail there. `information_schema` and
//! `mysql.user` need no lock, nor do temporary tables. FOR UPDATE writes a table, and ANALYZE changes something, for
//! all of these locks but LOCK TABLES ... READ, which ANALYZE passes by.
//!
//! A view is locked with the tables that it reads. Statements may name these, too, as in MySQL.
//!
//! Tables that foreign keys connect with those for WRITE are locked with them, as far as a change may reach, but no
//! statement may name them. A session that waits for LOCK TABLES holds nothing meanwhile, so it is part of no deadlock.
//!
//! Statements of such a session take the long way: direct plans name no aliases. A statement that changes something has
//! a [ticket](sheaf_table::ChangeTicket) while it runs, which FLUSH TABLES WITH READ LOCK waits for. A session that has
//! locked a table for WRITE has one until it unlocks it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Duration;

use sheaf_frontend::walk::{ExpressionVisitor, walk_expression, walk_query, walk_tables};
use sheaf_table::{QualifiedName, SessionLockMode, TableNames};
use sqlparser::ast;

use crate::error::{Result, SqlError};
use crate::isolation::table_wait::WaitsFor;
use crate::parser::change::name_of;
use crate::parser::statement::{LockedTable, TableChange, TableName};
use crate::session::Session;
use crate::session::result::ResultSink;
use crate::session_parts::table_locks::{LockedName, LockedTables, TableLocks};
use crate::statement::properties::UnderLockTables;
use crate::variables::NextTransaction;
use crate::virtual_database::{is_system_table, is_virtual_database};

/// What LOCK TABLES lets a statement define.
impl LockedTables {
    /// Definitions of tables that are locked for WRITE may change, and their names, as in MySQL 8.
    fn check_for_write(&self, name: &TableName, database: Option<&str>) -> Result<()> {
        let table = name.resolve(database)?;
        match self.mode_of(&table) {
            Some(SessionLockMode::Write) => Ok(()),
            Some(SessionLockMode::Read) => Err(SqlError::table_locked_for_read(&table.1)),
            None => Err(SqlError::table_not_locked(&table.1)),
        }
    }

    fn check_to_alter(
        &self,
        name: &TableName,
        changes: &[TableChange],
        database: Option<&str>,
    ) -> Result<()> {
        self.check_for_write(name, database)?;
        let (own_database, _) = name.resolve(database)?;
        for change in changes {
            if let TableChange::AddForeignKey(key) = change {
                let parent = &key.table;
                let database = parent.database.as_ref().unwrap_or(&own_database);
                if !self.is_locked(database, &parent.table) {
                    return Err(SqlError::table_not_locked(&parent.table));
                }
            }
        }
        Ok(())
    }

    fn check_to_rename(
        &self,
        pairs: &[(TableName, TableName)],
        database: Option<&str>,
    ) -> Result<()> {
        // Names that the statement gives itself.
        let mut given = Vec::with_capacity(pairs.len());
        for (old, new) in pairs {
            if !given.contains(&old.resolve(database)?) {
                self.check_for_write(old, database)?;
            }
            given.push(new.resolve(database)?);
        }
        Ok(())
    }
}

/// What statements may use while tables are locked.
impl TableLocks {
    /// Errors 1100 for a table that a statement names and the session has not locked by this name, 1099 for one to
    /// change that it has locked for READ, 1192 for what cannot be done while tables are locked.
    pub(crate) fn check_used(
        &self,
        used: UnderLockTables<'_>,
        database: Option<&str>,
        names: TableNames<'_>,
    ) -> Result<()> {
        let Some(locked) = &self.named else {
            return Ok(());
        };
        let is_temporary = |name: &TableName| {
            let name = name.resolve(database);
            name.is_ok_and(|(database, table)| names.is_temporary(&database, &table))
        };
        let mut named = NamedTables::default();
        match used {
            UnderLockTables::Free => return Ok(()),
            UnderLockTables::Refused => return Err(SqlError::locked_tables_are_active()),
            UnderLockTables::Query(query) => named.read_query(query),
            UnderLockTables::Insert(insert) => {
                if let ast::TableObject::TableName(name) = &insert.table {
                    named.change(name_of(name)?);
                }
                match &insert.source {
                    // Long lists of rows, which read no tables; if one does, it is found as it is opened.
                    Some(source) if matches!(*source.body, ast::SetExpr::Values(_)) => {}
                    Some(source) => named.read_query(source),
                    None => {}
                }
            }
            UnderLockTables::Update(update) => {
                // Which of them it changes is known when its columns are.
                named.read_tables(&update.tables);
                let values = update.assignments.iter().map(|a| &a.value);
                values.for_each(|value| named.read_expression(value));
                update
                    .selection
                    .iter()
                    .for_each(|e| named.read_expression(e));
            }
            UnderLockTables::Delete(delete) => {
                named.read_tables(&delete.tables);
                delete
                    .selection
                    .iter()
                    .for_each(|e| named.read_expression(e));
            }
            UnderLockTables::Expressions(expressions) => {
                expressions.iter().for_each(|e| named.read_expression(e));
            }
            UnderLockTables::LoadData(load) => named.change(load.table.clone()),
            UnderLockTables::Read(names) => {
                for name in names {
                    named.read(name.clone());
                }
            }
            UnderLockTables::Create(create) => {
                locked.check_for_write(&create.name, database)?;
                if create.or_replace {
                    return Err(SqlError::not_supported_yet(
                        "CREATE OR REPLACE TABLE under LOCK TABLES",
                    ));
                }
                return match create.if_not_exists {
                    true => Ok(()),
                    // It is there, or it would not be locked.
                    false => Err(SqlError::table_exists(&create.name.table)),
                };
            }
            UnderLockTables::Define(names) => {
                let mut lasting = names.iter().filter(|name| !is_temporary(name));
                return lasting.try_for_each(|name| locked.check_for_write(name, database));
            }
            UnderLockTables::DefineViews(names) => {
                let mut names = names.iter();
                return names.try_for_each(|name| locked.check_for_write(name, database));
            }
            UnderLockTables::Alter(name, _) if is_temporary(name) => return Ok(()),
            UnderLockTables::Alter(name, changes) => {
                return locked.check_to_alter(name, changes, database);
            }
            UnderLockTables::Rename(pairs) => return locked.check_to_rename(pairs, database),
        }
        let mut used = BTreeSet::new();
        for NamedTable { name, alias, write } in named.found {
            let (database, table) = name.resolve(database)?;
            if needs_no_lock(&database, &table) || names.is_temporary(&database, &table) {
                continue;
            }
            let is_meant = |known: &LockedName| {
                known.alias == alias && known.table.0 == database && known.table.1 == table
            };
            match locked.names.iter().position(is_meant) {
                Some(position) if used.insert(position) => {
                    if write && locked.names[position].mode == SessionLockMode::Read {
                        return Err(SqlError::table_locked_for_read(&alias));
                    }
                }
                _ => return Err(SqlError::table_not_locked(&alias)),
            }
        }
        Ok(())
    }
}

/// LOCK TABLES and UNLOCK TABLES.
pub(crate) fn lock_tables_by_name(
    session: &mut Session,
    tables: &[LockedTable],
    sink: &mut dyn ResultSink,
) -> Result<()> {
    session.table_locks.unlock_tables(session.engine.catalog());
    let mut names: Vec<LockedName> = Vec::with_capacity(tables.len());
    let mut wanted: BTreeMap<QualifiedName, SessionLockMode> = BTreeMap::new();
    let mut written = Vec::new();
    let mut of_views: Vec<(QualifiedName, SessionLockMode)> = Vec::new();
    for LockedTable { name, alias, write } in tables {
        let table = session.resolve(name)?;
        // No other session could see it.
        if session.table_names().is_temporary(&table.0, &table.1) {
            continue;
        }
        let alias = alias.clone().unwrap_or_else(|| table.1.clone());
        let is_same = |known: &LockedName| known.table.0 == table.0 && known.alias == alias;
        if names.iter().any(is_same) {
            return Err(SqlError::non_unique_table(&alias));
        }
        let mode = match write {
            true => SessionLockMode::Write,
            false => SessionLockMode::Read,
        };
        if session.engine.catalog().view(&table.0, &table.1).is_some() {
            for found in session.tables_of_view(&table)? {
                let definition = &found.definition;
                let name = (definition.database.clone(), definition.name.clone());
                if *write {
                    written.push(found);
                }
                of_views.push((name.clone(), mode));
                let wanted = wanted.entry(name).or_insert(mode);
                *wanted = mode.max(*wanted);
            }
        } else if !needs_no_lock(&table.0, &table.1) {
            let found = session.engine.catalog().table(&table.0, &table.1)?;
            if *write {
                written.push(found);
            }
            let wanted = wanted.entry(table.clone()).or_insert(mode);
            *wanted = mode.max(*wanted);
        }
        names.push(LockedName { table, alias, mode });
    }
    for (table, mode) in of_views {
        let alias = table.1.clone();
        let is_same = |known: &LockedName| known.table.0 == table.0 && known.alias == alias;
        if !names.iter().any(is_same) {
            names.push(LockedName { table, alias, mode });
        }
    }
    if !written.is_empty() {
        session.table_locks.check_no_read_lock()?;
        session.begin_change()?;
        if session.variables.foreign_key_checks() {
            for (table, mode) in session.engine.catalog().locks_to_change(&written) {
                let wanted = wanted.entry(table).or_insert(mode);
                *wanted = mode.max(*wanted);
            }
        }
    }
    let limit = match session.table_locks.global {
        // A session that holds a table may be waiting to commit, until this session unlocks.
        Some(_) => session.variables.innodb_lock_wait_timeout_seconds(),
        None => session.variables.lock_wait_timeout_seconds(),
    };
    let limit = Duration::from_secs(limit);
    let catalog = session.engine.catalog();
    let announced = catalog.announce_for_session(&wanted)?;
    let locks = session.handle.wait_within(
        || limit,
        WaitsFor::Table,
        false,
        |request| catalog.lock_for_session(&wanted, request),
    )?;
    drop(announced);
    session.table_locks.named = Some(Box::new(LockedTables { names, locks }));
    if !written.is_empty() {
        session.table_locks.locks_ticket = session.table_locks.change_ticket.take();
    }
    session.ok(sink, 0, String::new())
}

/// UNLOCK TABLES: it commits if tables were locked, but not after FLUSH TABLES WITH READ LOCK.
pub(crate) fn unlock(session: &mut Session, sink: &mut dyn ResultSink) -> Result<()> {
    if session.table_locks.are_held() {
        session.commit_open()?;
        session.transactions.next = NextTransaction::default();
    }
    session
        .table_locks
        .unlock_everything(session.engine.catalog());
    session.ok(sink, 0, String::new())
}

/// FLUSH TABLES [...] WITH READ LOCK. Error 1192 while tables are locked.
pub(crate) fn flush_with_read_lock(
    session: &mut Session,
    tables: &[TableName],
    sink: &mut dyn ResultSink,
) -> Result<()> {
    if session.table_locks.are_held() {
        return Err(SqlError::locked_tables_are_active());
    }
    if !tables.is_empty() {
        let read = |name: &TableName| LockedTable {
            name: name.clone(),
            alias: None,
            write: false,
        };
        let tables: Vec<LockedTable> = tables.iter().map(read).collect();
        return lock_tables_by_name(session, &tables, sink);
    }
    if session.table_locks.global.is_none() {
        let limit = Duration::from_secs(session.variables.lock_wait_timeout_seconds());
        let global = session.engine.catalog().global_read_lock();
        let announced = global.announce();
        let locked = session.handle.wait_within(
            || limit,
            WaitsFor::GlobalReadLock,
            false,
            |request| global.lock(request),
        )?;
        drop(announced);
        session.table_locks.global = Some(locked);
    }
    session.ok(sink, 0, String::new())
}

/// Whether a table is none of those that are locked.
fn needs_no_lock(database: &str, table: &str) -> bool {
    is_virtual_database(database) || is_system_table(database, table)
}

/// A table as a statement names it.
struct NamedTable {
    name: TableName,
    alias: String,
    write: bool,
}

/// The tables that a statement names, in its subqueries, too.
#[derive(Default)]
struct NamedTables {
    found: Vec<NamedTable>,
    queries: Vec<QueryNames>,
}

/// What a query that is being walked through says about the names in it.
struct QueryNames {
    /// WITH defines them.
    defined: Vec<String>,
    /// FOR UPDATE is about these; `None`: about all.
    updated: Vec<Option<String>>,
}

impl NamedTables {
    fn read(&mut self, name: TableName) {
        let alias = name.table.clone();
        let write = false;
        self.found.push(NamedTable { name, alias, write });
    }

    fn change(&mut self, name: TableName) {
        let alias = name.table.clone();
        let write = true;
        self.found.push(NamedTable { name, alias, write });
    }

    fn read_query(&mut self, query: &ast::Query) {
        walk_query(&mut query.clone(), self);
    }

    fn read_tables(&mut self, tables: &[ast::TableWithJoins]) {
        walk_tables(&mut tables.to_vec(), self);
    }

    fn read_expression(&mut self, expression: &ast::Expr) {
        walk_expression(&mut expression.clone(), self);
    }
}

impl ExpressionVisitor for NamedTables {
    fn enter_query(&mut self, query: &ast::Query) {
        let defined = query.with.iter().flat_map(|with| &with.cte_tables);
        let updated = query
            .locks
            .iter()
            .filter(|lock| lock.lock_type == ast::LockType::Update);
        self.queries.push(QueryNames {
            defined: defined.map(|cte| cte.alias.name.value.clone()).collect(),
            updated: updated
                .map(|lock| {
                    let last = lock.of.as_ref()?.0.last()?;
                    last.as_ident().map(|name| name.value.clone())
                })
                .collect(),
        });
    }

    fn leave_query(&mut self) {
        self.queries.pop();
    }

    fn enter_table(&mut self, table: &ast::TableFactor) {
        let ast::TableFactor::Table {
            name, alias, args, ..
        } = table
        else {
            return;
        };
        let Ok(name) = name_of(name) else {
            return;
        };
        let is_defined = |query: &QueryNames| {
            let mut names = query.defined.iter();
            names.any(|defined| defined.eq_ignore_ascii_case(&name.table))
        };
        let is_bare = name.database.is_none();
        if args.is_some()
            || (is_bare && name.table.eq_ignore_ascii_case("dual"))
            || (is_bare && self.queries.iter().any(is_defined))
        {
            return;
        }
        let alias = match alias {
            Some(alias) => alias.name.value.clone(),
            None => name.table.clone(),
        };
        let updated = self.queries.last().map(|query| query.updated.as_slice());
        let write = updated.unwrap_or_default().iter().any(|of| match of {
            Some(of) => *of == alias,
            None => true,
        });
        self.found.push(NamedTable { name, alias, write });
    }

    fn leave_expression(&mut self, _expression: &mut ast::Expr) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
