//! The catalog: which databases and tables there are, kept in the storage's catalog tree.
//!
//! In memory it is a map of open tables. A statement opens a table for reading or for writing and holds its
//! [lock](crate::lock::table_lock) through the guard; planning and information use [`Catalog::table`] without one.
//!
//! A change of a definition is made under the table's writer and exclusive locks: the catalog tree gets the new entry,
//! and the map the new version of the table. Long work, such as building an index, is done before the exclusive lock
//! is taken. Trees of a dropped table or index are freed last.
//!
//! **Order of locks.** Tables' locks come first: each table's in the order that [`crate::lock::table_lock`] tells, and
//! those of several tables, for DDL, in the order of their names. Then comes `definitions`, so changes of definitions
//! come one after the other. Last come `databases`, the accounts and the resource groups: a thread that holds one of
//! these waits for none of the others. `definitions` is held until the change is durable, that is, for a sync of the
//! log. The last three are held only to look something up or to put it in its place.
//!
//! The entries of the catalog tree are specified in docs/catalog-format.md.
//!
//! | file | what it holds |
//! |---|---|
//! | [`records`] | entries of the catalog tree |
//! | [`databases`] | databases in the catalog |
//! | [`foreign_keys`] | whether foreign keys hold, and which tables refer to which |
//! | [`statistics`] | ANALYZE TABLE: collecting statistics, keeping them, telling when they are due |
//! | [`accounts`] | accounts in the catalog |
//! | [`account`] | which users may connect, from where, how they are authenticated, what they may do |
//! | [`privilege`] | privileges, and sets of them |
//! | [`resource_groups`] | resource groups in the catalog |
//! | [`resource_group`] | the CPUs and the priority of a session's threads |
//! | [`cpu_set`] | sets of CPUs, as Linux numbers them |
//! | [`definition_check`] | names, types, defaults and keys of a definition, checked and resolved |
//! | [`analyze`] | the analysis |

pub mod account;
pub(crate) mod accounts;
pub(crate) mod analyze;
pub mod cpu_set;
pub(crate) mod databases;
pub(crate) mod definition_check;
pub(crate) mod foreign_keys;
pub mod privilege;
pub(crate) mod records;
pub mod resource_group;
pub(crate) mod resource_groups;
pub(crate) mod statistics;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sheaf_storage::sync::atomic::{AtomicU64, Ordering};
use sheaf_storage::sync::{Mutex, RwLock};
use sheaf_storage::{Direction, KeyRange, Lsn, ReadAhead, Storage, Transaction, Tree, TreeId};

use crate::catalog::accounts::{AccountReader, AccountState};
use crate::catalog::databases::{Database, decode_database};
use crate::catalog::definition_check::{check_name, needs_overflow, resolve_table};
use crate::catalog::foreign_keys::check_own_names;
use crate::catalog::records::{
    database_key, delete_definition, delete_statistics, header, key_of_table, kind, put,
    put_definition, put_statistics, read_header, table_of_key,
};
use crate::catalog::resource_group::ResourceGroups;
use crate::catalog::resource_groups::{ResourceGroupState, read_resource_group};
use crate::definition::check_constraint::rename_checks_with_table;
use crate::definition::codec::decode_definition;
use crate::definition::foreign_key::rename_with_table;
use crate::definition::schema::{CreateTable, TableDefinition};
use crate::error::{Result, TableError};
use crate::lock::global_read_lock::GlobalReadLock;
use crate::lock::table_lock::{
    Announced, BorrowedSharedLock, ExclusiveLock, LockRequest, RowWriterLock, SessionLock,
    SessionLockMode, SharedLock, WriterLock,
};
use crate::statistics::TableStatistics;
use crate::statistics::codec::{decode_statistics, encode_statistics};
use crate::table::{Table, TableState};

/// Database and table.
pub type QualifiedName = (String, String);

/// All databases and tables of a data directory.
pub struct Catalog {
    storage: Arc<Storage>,
    pub(crate) databases: RwLock<BTreeMap<String, Database>>,
    schema_version: AtomicU64,
    pub(crate) accounts: AccountState,
    pub(crate) resource_groups: ResourceGroupState,
    global_read_lock: GlobalReadLock,
    /// Held while the catalog tree and what it says in memory change, until the change is durable.
    pub(crate) definitions: Mutex<Definitions>,
}

/// What only changes of definitions need to know.
pub(crate) struct Definitions {
    /// The number of the table that is made next.
    pub(crate) next_table_id: u64,
}

/// A table opened by a statement that reads it: its definition stays until the guard is dropped.
pub struct ReadGuard {
    table: Arc<Table>,
    _shared: SharedLock,
}

impl std::ops::Deref for ReadGuard {
    type Target = Arc<Table>;

    fn deref(&self) -> &Arc<Table> {
        &self.table
    }
}

/// A [`ReadGuard`] of a table that its holder keeps.
pub struct BorrowedReadGuard<'a> {
    _shared: BorrowedSharedLock<'a>,
}

/// A table opened by a transaction that changes rows of it beside others, and locks every row before it changes it
/// ([`Table::lock_row`]). The definition stays until the guard is dropped.
pub struct RowWriteGuard {
    table: Arc<Table>,
    // Dropped in this order, the reverse of the order in which they are taken.
    _shared: SharedLock,
    _rows: RowWriterLock,
}

impl std::ops::Deref for RowWriteGuard {
    type Target = Arc<Table>;

    fn deref(&self) -> &Arc<Table> {
        &self.table
    }
}

/// A table opened by the one statement that may write it now; others may read it.
pub struct WriteGuard {
    pub(crate) table: Arc<Table>,
    // Dropped in this order, the reverse of the order in which they are taken.
    shared: Option<SharedLock>,
    pub(crate) writer: WriterLock,
}

impl WriteGuard {
    /// Opens a table that no other session knows yet.
    pub(crate) fn of_new(table: Table) -> Result<WriteGuard> {
        table.publish(Lsn(0));
        let writer = table.state.lock.writer(Duration::ZERO.into())?;
        let shared = table.state.lock.shared(Duration::ZERO.into())?;
        Ok(WriteGuard {
            table: Arc::new(table),
            shared: Some(shared),
            writer,
        })
    }

    /// Gives the shared lock back, so that the exclusive one can be taken.
    pub(crate) fn unlock_shared(&mut self) {
        self.shared = None;
    }
}

impl std::ops::Deref for WriteGuard {
    type Target = Arc<Table>;

    fn deref(&self) -> &Arc<Table> {
        &self.table
    }
}

impl Catalog {
    /// Reads the catalog of a data directory; an empty one gets its header.
    ///
    /// Trees are made before the definition that names them is entered, and dropped after it is gone. If the process
    /// ended in between, no definition names them; this drops them, so that DDL and bulk loads happen whole or not at
    /// all.
    ///
    /// # Errors
    /// `CatalogTooNew`, `Corrupt`, and whatever the storage reports.
    pub fn open(storage: Arc<Storage>) -> Result<Arc<Catalog>> {
        let tree = storage.catalog_tree();
        let mut databases: BTreeMap<String, Database> = BTreeMap::new();
        let mut next_table_id = 1;
        let mut definitions: Vec<(String, String, Vec<u8>)> = Vec::new();
        let mut statistics: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut counters = BTreeMap::new();
        let mut accounts = AccountReader::default();
        let mut resource_groups = ResourceGroups::new();
        let mut cursor = tree.scan(KeyRange::all(), Direction::Forward, ReadAhead::Off);
        let mut key = Vec::new();
        while let Some(leaf) = cursor.next_leaf()? {
            for entry in 0..leaf.len() {
                leaf.key_into(entry, &mut key);
                let value = leaf.value(entry);
                let unreadable =
                    || TableError::corrupt("catalog", format!("unreadable key {key:?}"));
                let (kind, rest) = key.split_first().ok_or_else(unreadable)?;
                match *kind {
                    kind::HEADER => next_table_id = read_header(value)?,
                    kind::DATABASE => {
                        let name = String::from_utf8(rest.to_vec()).map_err(|_| unreadable())?;
                        let database = decode_database(value, &name)?;
                        databases.insert(name, database);
                    }
                    kind::TABLE => {
                        let (database, table) = table_of_key(rest).ok_or_else(unreadable)?;
                        match definitions.last_mut() {
                            Some((d, t, bytes)) if *d == database && *t == table => {
                                bytes.extend_from_slice(value);
                            }
                            _ => definitions.push((database, table, value.to_vec())),
                        }
                    }
                    kind::STATISTICS => {
                        let id = rest.first_chunk::<8>().ok_or_else(unreadable)?;
                        let chunks = statistics.entry(u64::from_be_bytes(*id)).or_default();
                        chunks.extend_from_slice(value);
                    }
                    kind::AUTO_INCREMENT => {
                        let id = rest.first_chunk::<8>().ok_or_else(unreadable)?;
                        let next = value.first_chunk::<8>().ok_or_else(unreadable)?;
                        counters.insert(u64::from_be_bytes(*id), u64::from_le_bytes(*next));
                    }
                    kind::ACCOUNT => accounts.add(rest, value).ok_or_else(unreadable)?,
                    kind::RESOURCE_GROUP => read_resource_group(&mut resource_groups, rest, value)?,
                    _ => return Err(unreadable()),
                }
            }
        }
        let mut orphans: BTreeSet<TreeId> = storage.tree_ids()?.into_iter().collect();
        orphans.remove(&tree.id());
        for (database, name, bytes) in definitions {
            let definition = decode_definition(&bytes, &database, &name)?;
            for named in trees_of(&definition) {
                orphans.remove(&named);
            }
            let state = TableState::default();
            if let Some(next) = counters.remove(&definition.id) {
                state.auto_increment.restore(next);
            }
            if let Some(bytes) = statistics.remove(&definition.id) {
                state.restore_statistics(&name, decode_statistics(&bytes));
            }
            let table = Table::open(&storage, definition, Arc::new(state))?;
            table.publish(Lsn(0));
            let known = databases.get_mut(&database);
            let known = known.ok_or(TableError::UnknownDatabase { name: database })?;
            known.tables.insert(name, Arc::new(table));
        }
        let catalog = Arc::new(Catalog {
            storage,
            databases: RwLock::new(databases),
            schema_version: AtomicU64::new(1),
            accounts: accounts.finish()?,
            resource_groups: ResourceGroupState::new(resource_groups),
            global_read_lock: GlobalReadLock::default(),
            definitions: Mutex::new(Definitions { next_table_id }),
        });
        catalog.drop_trees(&orphans.into_iter().collect::<Vec<_>>());
        Ok(catalog)
    }

    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// What FLUSH TABLES WITH READ LOCK locks.
    pub fn global_read_lock(&self) -> &GlobalReadLock {
        &self.global_read_lock
    }

    /// Grows with every change of a definition.
    pub fn schema_version(&self) -> u64 {
        self.schema_version.load(Ordering::Acquire)
    }

    /// A definition has changed.
    pub(crate) fn advance_schema_version(&self) {
        self.schema_version.fetch_add(1, Ordering::AcqRel);
    }

    /// Drops a database with its tables, all or nothing, once no session uses them, waiting at most `wait` for each.
    /// Returns how many tables it had. `check_foreign_keys`: no table of another database may refer to one of them.
    ///
    /// # Errors
    /// `CannotDropDatabase` if there is none, `ReferencedTable`, `LockWaitTimeout`.
    pub fn drop_database<'w>(
        &self,
        name: &str,
        check_foreign_keys: bool,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<usize> {
        let wait = wait.into();
        loop {
            let cannot_drop = |_| TableError::CannotDropDatabase {
                name: name.to_string(),
            };
            let tables = self.tables(name).map_err(cannot_drop)?;
            let own = |table: &Arc<Table>| (name.to_string(), table.definition.name.clone());
            let locked = match self.lock_writers(tables.iter().map(own), wait) {
                Err(TableError::UnknownTable { .. } | TableError::UnknownDatabase { .. }) => {
                    continue;
                }
                locked => locked?,
            };
            let exclusive = lock_others_out(&locked, wait)?;
            let changing = self.definitions.lock();
            // Another connection may have made a table meanwhile.
            if self.tables(name).map_err(cannot_drop)?.len() != locked.len() {
                continue;
            }
            self.check_unreferenced(&locked, check_foreign_keys)?;
            self.change(|tree, transaction| {
                for (table, _) in &locked {
                    delete_table(tree, transaction, &table.definition)?;
                }
                tree.delete(transaction, &database_key(name))?;
                Ok(())
            })?;
            self.databases.write().remove(name);
            self.advance_schema_version();
            drop(changing);
            self.free_dropped(&locked, exclusive);
            return Ok(locked.len());
        }
    }

    /// The tables of a database, sorted by name.
    ///
    /// # Errors
    /// `UnknownDatabase`.
    pub fn tables(&self, database: &str) -> Result<Vec<Arc<Table>>> {
        match self.databases.read().get(database) {
            Some(database) => Ok(database.tables.values().cloned().collect()),
            None => Err(TableError::UnknownDatabase {
                name: database.to_string(),
            }),
        }
    }

    /// The tables of all databases.
    pub fn all_tables(&self) -> Vec<Arc<Table>> {
        let databases = self.databases.read();
        databases
            .values()
            .flat_map(|database| database.tables.values())
            .cloned()
            .collect()
    }

    /// A table without any lock: for planning and information.
    ///
    /// # Errors
    /// `UnknownDatabase`, `UnknownTable`.
    pub fn table(&self, database: &str, name: &str) -> Result<Arc<Table>> {
        let databases = self.databases.read();
        let Some(known) = databases.get(database) else {
            return Err(TableError::UnknownDatabase {
                name: database.to_string(),
            });
        };
        let table = known.tables.get(name).cloned();
        table.ok_or_else(|| TableError::UnknownTable {
            database: database.to_string(),
            table: name.to_string(),
        })
    }

    /// Opens a table to read it, waiting at most `wait` for DDL on it.
    ///
    /// # Errors
    /// `UnknownDatabase`, `UnknownTable`, `LockWaitTimeout`.
    pub fn open_for_read<'w>(
        &self,
        database: &str,
        name: &str,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<ReadGuard> {
        let wait = wait.into();
        loop {
            let table = self.table(database, name)?;
            // While this waited the table may have changed.
            if let Some(guard) = Catalog::reopen_for_read(&table, wait)? {
                return Ok(guard);
            }
        }
    }

    /// As [`open_for_read`](Self::open_for_read), for a table that was looked up before; `None` if its definition has
    /// changed since.
    ///
    /// # Errors
    /// `LockWaitTimeout`.
    pub fn reopen_for_read<'w>(
        table: &Arc<Table>,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<Option<ReadGuard>> {
        let wait = wait.into();
        let shared = table.state.lock.shared(wait)?;
        Ok(table.is_current().then(|| ReadGuard {
            table: Arc::clone(table),
            _shared: shared,
        }))
    }

    /// As [`reopen_for_read`](Self::reopen_for_read), for a caller that keeps the table itself: nothing is written that
    /// readers share.
    ///
    /// # Errors
    /// `LockWaitTimeout`.
    pub fn borrow_for_read<'w>(
        table: &Table,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<Option<BorrowedReadGuard<'_>>> {
        let wait = wait.into();
        let shared = table.state.lock.borrow_shared(wait)?;
        Ok(table
            .is_current()
            .then_some(BorrowedReadGuard { _shared: shared }))
    }

    /// Opens a table to write it, waiting at most `wait` each for other writers and DDL.
    ///
    /// # Errors
    /// `UnknownDatabase`, `UnknownTable`, `LockWaitTimeout`.
    pub fn open_for_write<'w>(
        &self,
        database: &str,
        name: &str,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<WriteGuard> {
        let wait = wait.into();
        loop {
            let (table, writer) = self.lock_writer(database, name, wait)?;
            let shared = table.state.lock.shared(wait)?;
            if table.is_current() {
                return Ok(WriteGuard {
                    table,
                    shared: Some(shared),
                    writer,
                });
            }
        }
    }

    /// As [`open_for_write`](Self::open_for_write), at a moment when no other session uses the table. What is loaded
    /// enters at another such moment; where transactions keep the table, it may not come for long.
    ///
    /// # Errors
    /// As [`open_for_write`](Self::open_for_write), and `Interrupted`.
    pub fn open_for_load<'w>(
        &self,
        database: &str,
        name: &str,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<WriteGuard> {
        let wait = wait.into();
        let (table, writer) = self.lock_writer(database, name, wait)?;
        drop(writer.exclusive(wait)?);
        // The writer keeps the definition.
        let shared = table.state.lock.shared(wait)?;
        Ok(WriteGuard {
            table,
            shared: Some(shared),
            writer,
        })
    }

    /// Opens a table for changes of rows that others may change rows beside; waits for DDL and loads.
    ///
    /// # Errors
    /// `UnknownDatabase`, `UnknownTable`, `LockWaitTimeout`.
    pub fn open_for_row_writes<'w>(
        &self,
        database: &str,
        name: &str,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<RowWriteGuard> {
        let wait = wait.into();
        loop {
            let table = self.table(database, name)?;
            if let Some(guard) = Catalog::reopen_for_row_writes(&table, wait)? {
                return Ok(guard);
            }
        }
    }

    /// As [`open_for_row_writes`](Self::open_for_row_writes), for a table that was looked up before; `None` if its
    /// definition has changed since.
    ///
    /// # Errors
    /// `LockWaitTimeout`.
    pub fn reopen_for_row_writes<'w>(
        table: &Arc<Table>,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<Option<RowWriteGuard>> {
        let wait = wait.into();
        let rows = table.state.lock.row_writer(wait)?;
        let shared = table.state.lock.shared(wait)?;
        Ok(table.is_current().then(|| RowWriteGuard {
            table: Arc::clone(table),
            _shared: shared,
            _rows: rows,
        }))
    }

    pub(crate) fn lock_writer(
        &self,
        database: &str,
        name: &str,
        wait: LockRequest<'_>,
    ) -> Result<(Arc<Table>, WriterLock)> {
        loop {
            let table = self.table(database, name)?;
            let writer = table.state.lock.writer(wait)?;
            if table.is_current() {
                return Ok((table, writer));
            }
        }
    }

    /// Says that a session is about to [lock](Self::lock_for_session) tables, until what is returned is dropped: on a
    /// busy table it does not come to its turn otherwise.
    ///
    /// # Errors
    /// `UnknownDatabase`, `UnknownTable`.
    pub fn announce_for_session(
        &self,
        wanted: &BTreeMap<QualifiedName, SessionLockMode>,
    ) -> Result<Vec<Announced>> {
        let announce = |((database, name), mode): (&QualifiedName, &SessionLockMode)| {
            let table = self.table(database, name)?;
            Ok(table.state.lock.announce(*mode))
        };
        wanted.iter().map(announce).collect()
    }

    /// Locks tables for a session, all or none: it holds none of them while it waits for another. They are taken in the
    /// order of their names.
    ///
    /// # Errors
    /// `UnknownDatabase`, `UnknownTable`, `LockWaitTimeout`.
    pub fn lock_for_session(
        &self,
        wanted: &BTreeMap<QualifiedName, SessionLockMode>,
        request: LockRequest<'_>,
    ) -> Result<BTreeMap<QualifiedName, SessionLock>> {
        let deadline = Instant::now() + request.wait;
        loop {
            let mut tables = Vec::with_capacity(wanted.len());
            for (name, mode) in wanted {
                tables.push((name, self.table(&name.0, &name.1)?, *mode));
            }
            let mut locked = BTreeMap::new();
            let blocked = tables.iter().find(|(name, table, mode)| {
                let lock = &table.state.lock;
                match lock.for_session(*mode, request.session, Duration::ZERO) {
                    Ok(lock) => locked.insert((*name).clone(), lock).is_some(),
                    Err(_) => true,
                }
            });
            let Some((_, table, mode)) = blocked else {
                // While this waited, tables may have changed.
                match tables.iter().all(|(_, table, _)| table.is_current()) {
                    true => return Ok(locked),
                    false => continue,
                }
            };
            drop(locked);
            let left = deadline.saturating_duration_since(Instant::now());
            let lock = &table.state.lock;
            drop(lock.for_session(*mode, request.session, left)?);
        }
    }

    /// Makes an empty table; waits for no lock.
    ///
    /// # Errors
    /// As [`create_table_within`](Self::create_table_within).
    pub fn create_table(&self, request: CreateTable) -> Result<Arc<Table>> {
        self.create_table_within(request, Duration::ZERO)
    }

    /// Makes an empty table. Waits at most `wait` for the writers of each of its parents, and for sessions that change
    /// or drop them.
    ///
    /// # Errors
    /// `TableExists`, `UnknownDatabase`, `LockWaitTimeout`, and the MySQL error for whatever is wrong with the request.
    pub fn create_table_within<'w>(
        &self,
        request: CreateTable,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<Arc<Table>> {
        let wait = wait.into();
        let check = request.check_foreign_keys;
        let _parents = self.lock_parents(&request, wait)?;
        let table = Arc::new(self.prepare_table(request)?);
        match self.enter_new(&table, check) {
            Ok(()) => Ok(table),
            Err(error) => {
                self.drop_trees(&trees_of(&table.definition));
                Err(error)
            }
        }
    }

    /// Locks the writers of the tables that foreign keys of a new table refer to out, where these are there.
    fn lock_parents(
        &self,
        request: &CreateTable,
        wait: LockRequest<'_>,
    ) -> Result<Vec<(Arc<Table>, WriterLock)>> {
        let keys = request.foreign_keys.iter();
        let keys = keys.filter(|_| request.check_foreign_keys);
        let names: BTreeSet<(&str, &str)> = keys
            .map(|key| {
                (
                    key.referenced_database.as_str(),
                    key.referenced_table.as_str(),
                )
            })
            .collect();
        let mut locked = Vec::with_capacity(names.len());
        for (database, table) in names {
            match self.lock_writer(database, table, wait) {
                Ok(parent) => locked.push(parent),
                // The check of the foreign keys says so.
                Err(TableError::UnknownTable { .. } | TableError::UnknownDatabase { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(locked)
    }

    /// Makes the trees of a new table, which no other session knows before it [is entered](Self::enter_new).
    ///
    /// # Errors
    /// As [`create_table`](Self::create_table).
    pub(crate) fn prepare_table(&self, request: CreateTable) -> Result<Table> {
        let check = request.check_foreign_keys;
        let mut definitions = self.definitions.lock();
        self.check_is_free(&request.database, &request.name)?;
        let mut definition = resolve_table(definitions.next_table_id, request)?;
        self.check_new_foreign_keys(&definition, check)?;
        let mut trees = Vec::new();
        let made = self
            .create_trees(&mut definition, &mut trees)
            .and_then(|()| Table::open(&self.storage, definition, Arc::default()));
        match made {
            Ok(_) => definitions.next_table_id += 1,
            Err(_) => self.drop_trees(&trees),
        }
        made
    }

    /// Enters a new table.
    ///
    /// # Errors
    /// As [`create_table`](Self::create_table): others may have made and dropped tables since it was prepared.
    pub(crate) fn enter_new(&self, table: &Arc<Table>, check_foreign_keys: bool) -> Result<()> {
        let definition = &table.definition;
        let definitions = self.definitions.lock();
        self.check_is_free(&definition.database, &definition.name)?;
        self.check_new_foreign_keys(definition, check_foreign_keys)?;
        self.change(|tree, transaction| {
            let next = header(definitions.next_table_id);
            put(tree, transaction, &[kind::HEADER], &next)?;
            // It may come with rows.
            if let Some(next) = table.state.auto_increment.known() {
                let key = key_of_table(kind::AUTO_INCREMENT, definition.id);
                put(tree, transaction, &key, &next.to_le_bytes())?;
            }
            put_definition(tree, transaction, definition)
        })?;
        table.publish(self.storage.newest_commit());
        self.enter(Arc::clone(table));
        Ok(())
    }

    /// Error `TableExists` if a table has this name.
    fn check_is_free(&self, database: &str, name: &str) -> Result<()> {
        match self.table(database, name) {
            Ok(_) => Err(TableError::TableExists {
                table: name.to_string(),
            }),
            Err(TableError::UnknownTable { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn check_new_foreign_keys(&self, definition: &TableDefinition, check: bool) -> Result<()> {
        self.check_foreign_key_names(definition, &[])?;
        self.check_check_names(definition, &[])?;
        let mut keys = definition.foreign_keys.iter().filter(|_| check);
        keys.try_for_each(|key| self.check_foreign_key(key, definition).map(drop))
    }

    /// Makes an empty tree for each place of a definition. `made`: the trees, also if it fails.
    pub(crate) fn create_trees(
        &self,
        definition: &mut TableDefinition,
        made: &mut Vec<TreeId>,
    ) -> Result<()> {
        let mut create = || -> Result<TreeId> {
            let tree = self.storage.create_tree()?;
            made.push(tree);
            Ok(tree)
        };
        definition.primary.tree = create()?;
        for index in &mut definition.secondary {
            index.tree = create()?;
        }
        if needs_overflow(definition) {
            definition.overflow = Some(create()?);
        }
        Ok(())
    }

    /// Frees trees that cannot be reached any more.
    pub(crate) fn drop_trees(&self, trees: &[TreeId]) {
        free_trees(&self.storage, trees);
    }

    /// Drops tables, given with their databases, once no session uses them: all or none. Waits at most `wait` for each.
    /// `check_foreign_keys`: no table that stays may refer to one of them.
    ///
    /// # Errors
    /// `CannotDropTable` if one is not there, `ReferencedTable`, `LockWaitTimeout`.
    pub fn drop_tables<'w>(
        &self,
        names: &[QualifiedName],
        check_foreign_keys: bool,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<()> {
        let wait = wait.into();
        // Other sessions that drop some of the same tables lock them in the same order.
        let names: BTreeSet<_> = names.iter().cloned().collect();
        let locked = match self.lock_writers(names, wait) {
            Err(TableError::UnknownTable { database, table }) => {
                return Err(TableError::CannotDropTable { database, table });
            }
            other => other?,
        };
        let exclusive = lock_others_out(&locked, wait)?;
        {
            let _changing = self.definitions.lock();
            self.check_unreferenced(&locked, check_foreign_keys)?;
            self.change(|tree, transaction| {
                let mut tables = locked.iter();
                tables.try_for_each(|(table, _)| delete_table(tree, transaction, &table.definition))
            })?;
            for (table, _) in &locked {
                self.remove(table);
            }
        }
        self.free_dropped(&locked, exclusive);
        Ok(())
    }

    /// Locks out the writers of tables, waiting at most `wait` for each.
    pub(crate) fn lock_writers(
        &self,
        names: impl IntoIterator<Item = QualifiedName>,
        wait: LockRequest<'_>,
    ) -> Result<Vec<(Arc<Table>, WriterLock)>> {
        let names = names.into_iter();
        names
            .map(|(database, table)| self.lock_writer(&database, &table, wait))
            .collect()
    }

    /// Ends the use of tables that have left the catalog.
    fn free_dropped(&self, tables: &[(Arc<Table>, WriterLock)], exclusive: Vec<ExclusiveLock<'_>>) {
        for (table, _) in tables {
            table.retire();
        }
        drop(exclusive);
        for (table, _) in tables {
            self.drop_trees(&trees_of(&table.definition));
        }
    }

    /// Puts a new, empty table of the same definition in the place of a table, once no session uses it, waiting at most
    /// `wait`. At every moment, and after a crash, one of them is there. `check_foreign_keys`: no other table may refer
    /// to it.
    ///
    /// # Errors
    /// `UnknownTable`, `TruncatedReferencedTable`, `LockWaitTimeout`.
    pub fn truncate_table<'w>(
        &self,
        (database, table): (&str, &str),
        check_foreign_keys: bool,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<()> {
        let wait = wait.into();
        // What waited for others knows only now what the table is.
        let (table, writer) = self.lock_writer(database, table, wait)?;
        let exclusive = writer.exclusive(wait)?;
        let mut trees = Vec::new();
        if let Err(error) = self.enter_in_place_of(&table, check_foreign_keys, &mut trees) {
            self.drop_trees(&trees);
            return Err(error);
        }
        table.retire();
        drop(exclusive);
        self.drop_trees(&trees_of(&table.definition));
        Ok(())
    }

    /// `trees`: those that were made, also if it fails.
    fn enter_in_place_of(
        &self,
        old: &Table,
        check_foreign_keys: bool,
        trees: &mut Vec<TreeId>,
    ) -> Result<()> {
        let mut definitions = self.definitions.lock();
        if check_foreign_keys {
            let mut children = self.referencing(old).into_iter();
            if let Some((child, key)) =
                children.find(|(child, _)| child.definition.id != old.definition.id)
            {
                return Err(TableError::TruncatedReferencedTable {
                    constraint: key.described(&child.definition),
                });
            }
        }
        let mut definition = TableDefinition {
            id: definitions.next_table_id,
            auto_increment_start: 1,
            overflow: None,
            ..old.definition.clone()
        };
        self.create_trees(&mut definition, trees)?;
        let state = TableState::with_lock_of(old);
        let table = Table::open(&self.storage, definition, Arc::new(state))?;
        self.change(|tree, transaction| {
            delete_table(tree, transaction, &old.definition)?;
            let next = header(definitions.next_table_id + 1);
            put(tree, transaction, &[kind::HEADER], &next)?;
            put_definition(tree, transaction, &table.definition)
        })?;
        definitions.next_table_id += 1;
        table.publish(self.storage.newest_commit());
        self.enter(Arc::new(table));
        Ok(())
    }

    /// Renames tables, given with their databases, one after the other, all or none: so two of them change places by a
    /// third name. Waits at most `wait` for each until no session uses it.
    ///
    /// # Errors
    /// `UnknownTable`, `TableExists`, `UnknownDatabase`, `RenamedReferencedTable`, `LockWaitTimeout`.
    pub fn rename_tables<'w>(
        &self,
        renames: &[(QualifiedName, QualifiedName)],
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<()> {
        let wait = wait.into();
        for (_, (_, to)) in renames {
            check_name(to, |name| TableError::IncorrectTableName { name })?;
        }
        let names = self.names_after(renames)?;
        let locked = self.lock_writers(names.into_keys(), wait)?;
        let _exclusive = lock_others_out(&locked, wait)?;
        let _changing = self.definitions.lock();
        // Other tables may have come and gone meanwhile.
        let names = self.names_after(renames)?;
        let mut tables = locked.iter();
        if tables.any(|(table, _)| !self.referencing(table).is_empty()) {
            return Err(TableError::RenamedReferencedTable);
        }
        let mut renamed = Vec::with_capacity(locked.len());
        for ((table, _), (database, name)) in locked.iter().zip(names.into_values()) {
            let mut definition = table.definition.clone();
            for key in &mut definition.foreign_keys {
                rename_with_table(key, &definition.name, &name);
            }
            rename_checks_with_table(&mut definition.checks, &definition.name, &name);
            (definition.database, definition.name) = (database, name);
            let state = table.state.clone();
            renamed.push(Table::open(&self.storage, definition, state)?);
        }
        self.check_renamed_constraints(&renamed)?;
        self.change(|tree, transaction| {
            for (table, _) in &locked {
                let TableDefinition { database, name, .. } = &table.definition;
                delete_definition(tree, transaction, database, name)?;
            }
            let mut renamed = renamed.iter();
            renamed.try_for_each(|table| put_definition(tree, transaction, &table.definition))
        })?;
        let now = self.storage.newest_commit();
        // No session finds a name without its table in between.
        let mut databases = self.databases.write();
        for (table, _) in &locked {
            if let Some(database) = databases.get_mut(&table.definition.database) {
                database.tables.remove(&table.definition.name);
            }
        }
        for table in renamed {
            table.publish(now);
            let TableDefinition { database, name, .. } = &table.definition;
            let name = name.clone();
            let database = databases.entry(database.clone()).or_default();
            database.tables.insert(name, Arc::new(table));
        }
        self.advance_schema_version();
        Ok(())
    }

    /// The names that tables have in the end, by those that they have now.
    fn names_after(
        &self,
        renames: &[(QualifiedName, QualifiedName)],
    ) -> Result<BTreeMap<QualifiedName, QualifiedName>> {
        let mut names: BTreeMap<QualifiedName, QualifiedName> = BTreeMap::new();
        for (from, to) in renames {
            let renamed = names.iter().find(|(_, now)| *now == from);
            let table = match renamed.map(|(table, _)| table.clone()) {
                Some(table) => table,
                None if names.contains_key(from) => {
                    let (database, table) = from.clone();
                    return Err(TableError::UnknownTable { database, table });
                }
                None => {
                    self.table(&from.0, &from.1)?;
                    from.clone()
                }
            };
            let is_free = match self.table(&to.0, &to.1) {
                Ok(_) => names.contains_key(to),
                Err(TableError::UnknownTable { .. }) => true,
                Err(error) => return Err(error),
            };
            if !is_free || names.values().any(|now| now == to) {
                return Err(TableError::TableExists {
                    table: to.1.clone(),
                });
            }
            names.insert(table, to.clone());
        }
        Ok(names)
    }

    /// Puts new definitions in the places of tables', also under other names, all or none, once no session uses the
    /// tables. The trees that are not named any more are left to the caller.
    ///
    /// # Errors
    /// `TableExists`, `UnknownDatabase`, `DuplicateForeignKey`, `LockWaitTimeout`.
    pub(crate) fn redefine(
        &self,
        mut entries: Vec<Redefinition<'_>>,
        wait: LockRequest<'_>,
    ) -> Result<()> {
        entries.sort_by_key(|entry| {
            let TableDefinition { database, name, .. } = &entry.table.definition;
            (database.clone(), name.clone())
        });
        let writers: Vec<&WriterLock> = entries.iter().map(|entry| entry.writer).collect();
        let _exclusive = WriterLock::exclusive_of_all(&writers, wait)?;
        let _changing = self.definitions.lock();
        for entry in entries.iter().filter(|entry| entry.is_renamed()) {
            self.check_is_free(&entry.definition.database, &entry.definition.name)?;
        }
        for entry in &entries {
            // Other tables may have got foreign keys of these names meanwhile.
            let (old, new) = (&entry.table.definition, &entry.definition);
            let moves = old.database != new.database;
            if entry.is_renamed() {
                check_own_names(new)?;
            }
            let known = if moves { &[][..] } else { &old.foreign_keys };
            self.check_foreign_key_names(new, known)?;
            let known = if moves { &[][..] } else { &old.checks };
            self.check_check_names(new, known)?;
        }
        let mut opened = Vec::with_capacity(entries.len());
        for entry in &entries {
            let state = entry.state.as_ref().unwrap_or(&entry.table.state);
            let definition = entry.definition.clone();
            opened.push(Table::open(&self.storage, definition, Arc::clone(state))?);
        }
        self.change(|tree, transaction| {
            let mut entries = entries.iter();
            entries.try_for_each(|entry| put_redefinition(tree, transaction, entry))
        })?;
        let now = self.storage.newest_commit();
        for (entry, next) in entries.iter().zip(opened) {
            if entry.is_renamed() {
                self.remove(entry.table);
            }
            if entry.forgets_auto_increment {
                next.state.auto_increment.forget();
            }
            next.publish(now);
            if entry.state.is_some() {
                entry.table.retire();
            }
            self.enter(Arc::new(next));
        }
        Ok(())
    }

    /// Writes down how far AUTO_INCREMENT has come in each table, so that no value is left out. To be called before the
    /// storage is closed; after a crash counters go on at their [marks](crate::table::auto_increment).
    ///
    /// # Errors
    /// Whatever the storage reports.
    pub fn save_auto_increments(&self) -> Result<()> {
        let _changing = self.definitions.lock();
        let mut tables: Vec<Arc<Table>> = Vec::new();
        for database in self.databases.read().values() {
            tables.extend(database.tables.values().cloned());
        }
        let mut counters = Vec::new();
        for table in &tables {
            let counter = &table.state.auto_increment;
            let marking = counter.begin_marking();
            if let Some(next) = counter.unsaved() {
                counters.push((table, next, marking));
            }
        }
        if counters.is_empty() {
            return Ok(());
        }
        self.change(|tree, transaction| {
            counters.iter().try_for_each(|(table, next, _)| {
                let key = key_of_table(kind::AUTO_INCREMENT, table.definition.id);
                put(tree, transaction, &key, &next.to_le_bytes())
            })
        })?;
        for (table, next, _) in &counters {
            table.state.auto_increment.note_mark(*next);
        }
        Ok(())
    }

    /// Changes the catalog tree, completely or not at all. If it fails, the caller frees the trees that it has made, so
    /// the change must not come about later.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&Tree, &mut Transaction) -> Result<()>,
    ) -> Result<()> {
        let mut transaction = self.storage.begin_transaction();
        match change(&self.storage.catalog_tree(), &mut transaction) {
            Ok(()) => Ok(transaction.commit_or_stop()?),
            Err(error) => {
                transaction.rollback()?;
                Err(error)
            }
        }
    }

    /// Puts what `make` makes of a table's statistics in their place, here and in the catalog tree.
    pub(crate) fn redefine_statistics(
        &self,
        table: &Table,
        make: impl FnOnce(Option<&TableStatistics>) -> TableStatistics,
    ) -> Result<()> {
        let _changing = self.definitions.lock();
        let earlier = table.statistics();
        let statistics = make(earlier.as_deref());
        let bytes = encode_statistics(&statistics);
        self.change(|tree, transaction| {
            put_statistics(tree, transaction, table.definition.id, &bytes)
        })?;
        table.state.set_statistics(Arc::new(statistics));
        // Plans depend on statistics as on definitions.
        self.advance_schema_version();
        Ok(())
    }

    fn enter(&self, table: Arc<Table>) {
        let mut databases = self.databases.write();
        let database = databases
            .entry(table.definition.database.clone())
            .or_default();
        database.tables.insert(table.definition.name.clone(), table);
        self.advance_schema_version();
    }

    fn remove(&self, table: &Table) {
        if let Some(database) = self.databases.write().get_mut(&table.definition.database) {
            database.tables.remove(&table.definition.name);
        }
        self.advance_schema_version();
    }
}

/// A table, and what it becomes.
pub(crate) struct Redefinition<'a> {
    pub(crate) writer: &'a WriterLock,
    pub(crate) table: &'a Table,
    pub(crate) definition: TableDefinition,
    /// That of a table with other trees, which has no statistics yet; `None`: the table's own goes on.
    pub(crate) state: Option<Arc<TableState>>,
    /// How far AUTO_INCREMENT has come is to be found from the rows, and from the definition.
    pub(crate) forgets_auto_increment: bool,
}

impl<'a> Redefinition<'a> {
    /// The table goes on with its state.
    pub(crate) fn new(
        writer: &'a WriterLock,
        table: &'a Table,
        definition: TableDefinition,
    ) -> Redefinition<'a> {
        Redefinition {
            writer,
            table,
            definition,
            state: None,
            forgets_auto_increment: false,
        }
    }

    fn is_renamed(&self) -> bool {
        let (old, new) = (&self.table.definition, &self.definition);
        old.database != new.database || old.name != new.name
    }
}

fn put_redefinition(
    tree: &Tree,
    transaction: &mut Transaction,
    entry: &Redefinition<'_>,
) -> Result<()> {
    let TableDefinition {
        id, database, name, ..
    } = &entry.table.definition;
    if entry.is_renamed() {
        delete_definition(tree, transaction, database, name)?;
    }
    if entry.state.is_some() {
        delete_statistics(tree, transaction, *id, 0)?;
    }
    let key = key_of_table(kind::AUTO_INCREMENT, *id);
    let next = match &entry.state {
        Some(state) => state.auto_increment.known(),
        // Rows that were loaded wrote no mark.
        None => {
            let counter = &entry.table.state.auto_increment;
            counter.known().filter(|_| counter.is_beyond_mark())
        }
    };
    if let Some(next) = next.filter(|_| !entry.forgets_auto_increment) {
        put(tree, transaction, &key, &next.to_le_bytes())?;
    } else if entry.state.is_some() || entry.forgets_auto_increment {
        tree.delete(transaction, &key)?;
    }
    put_definition(tree, transaction, &entry.definition)
}

/// Waits until no other session uses the tables.
fn lock_others_out<'t>(
    tables: &'t [(Arc<Table>, WriterLock)],
    wait: LockRequest<'_>,
) -> Result<Vec<ExclusiveLock<'t>>> {
    let writers: Vec<&WriterLock> = tables.iter().map(|(_, writer)| writer).collect();
    WriterLock::exclusive_of_all(&writers, wait)
}

/// Deletes a table's definition, and what is kept of the table besides.
fn delete_table(
    tree: &Tree,
    transaction: &mut Transaction,
    definition: &TableDefinition,
) -> Result<()> {
    let TableDefinition {
        id, database, name, ..
    } = definition;
    delete_definition(tree, transaction, database, name)?;
    delete_statistics(tree, transaction, *id, 0)?;
    tree.delete(transaction, &key_of_table(kind::AUTO_INCREMENT, *id))?;
    Ok(())
}

/// Frees trees that no definition names. What cannot be freed is lost space, not an error of the statement.
pub(crate) fn free_trees(storage: &Storage, trees: &[TreeId]) {
    for tree in trees {
        if let Err(error) = storage.drop_tree(*tree) {
            tracing::warn!(tree = tree.0, %error, "the pages of a dropped tree could not be freed");
        }
    }
}

pub(crate) fn trees_of(definition: &TableDefinition) -> Vec<TreeId> {
    let secondary = definition.secondary.iter().map(|index| index.tree);
    std::iter::once(definition.primary.tree)
        .chain(secondary)
        .chain(definition.overflow)
        .collect()
}
