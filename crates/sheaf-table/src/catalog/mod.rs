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
//! | [`annotation`] | what a statement says to followers of changes |
//! | [`records`] | entries of the catalog tree |
//! | [`open_tables`] | opening a table, and what a statement holds of it |
//! | [`new_table`] | a table that comes with its rows in one transaction |
//! | [`table_definitions`] | tables that are made, dropped, renamed and defined anew |
//! | [`databases`] | databases in the catalog |
//! | [`database`] | a database in memory, and its entry |
//! | [`views`] | views in the catalog |
//! | [`view`] | a view: a query under the name of a table |
//! | [`foreign_keys`] | whether foreign keys hold, and which tables refer to which |
//! | [`statistics`] | ANALYZE TABLE: collecting statistics, keeping them, telling when they are due |
//! | [`accounts`] | accounts in the catalog |
//! | [`account`] | which users may connect, from where, how they are authenticated, what they may do |
//! | [`privilege`] | privileges, and sets of them |
//! | [`resource_groups`] | resource groups in the catalog |
//! | [`resource_group`] | the CPUs and the priority of a session's threads |
//! | [`cpu_set`] | sets of CPUs, as Linux numbers them |
//! | [`replication`] | the source of a replica, and how far its changes have come |
//! | [`definition_check`] | names, types, defaults and keys of a definition, checked and resolved |
//! | [`table_ids`] | where the ids of new tables come from |
//! | [`temporary`] | catalogs of temporary tables, which write nothing down |
//! | [`analyze`] | the analysis |

pub mod account;
pub(crate) mod accounts;
pub(crate) mod analyze;
pub(crate) mod annotation;
pub mod cpu_set;
pub(crate) mod database;
pub(crate) mod databases;
pub(crate) mod definition_check;
pub(crate) mod foreign_keys;
pub(crate) mod new_table;
mod open_tables;
pub mod privilege;
pub(crate) mod records;
pub(crate) mod replication;
pub mod resource_group;
pub(crate) mod resource_groups;
pub(crate) mod statistics;
mod table_definitions;
mod table_ids;
mod temporary;
pub mod view;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sheaf_storage::sync::atomic::{AtomicU64, Ordering};
use sheaf_storage::sync::{Mutex, RwLock};
use sheaf_storage::{Direction, KeyRange, Lsn, ReadAhead, Storage, Transaction, Tree, TreeId};

use crate::catalog::account::{AccountReader, AccountState};
use crate::catalog::database::{Database, decode_database};
use crate::catalog::definition_check::check_table_name;
use crate::catalog::records::{
    database_key, key_of_table, kind, put, put_statistics, read_header, table_of_key,
};
use crate::catalog::resource_group::{ResourceGroupState, ResourceGroups, read_resource_group};
use crate::catalog::table_ids::TableIds;
use crate::definition::codec::decode_definition;
use crate::definition::schema::TableDefinition;
use crate::error::{Result, TableError};
use crate::lock::global_read_lock::GlobalReadLock;
use crate::lock::table_lock::LockRequest;
use crate::statistics::TableStatistics;
use crate::statistics::codec::{decode_statistics, encode_statistics};
use crate::table::catalog_memory::CatalogMemory;
use crate::table::{Table, TableState};

pub use crate::table::catalog_memory::CatalogLimits;
pub use database::DatabaseSnapshot;
pub use open_tables::{BorrowedReadGuard, ReadGuard, RowWriteGuard, WriteGuard};
pub(crate) use table_definitions::{Redefinition, rename_definition};
use table_definitions::{delete_table, lock_others_out};
pub use temporary::TableNames;
use views::{delete_view, restore_views};

/// Database and table.
pub type QualifiedName = (String, String);

/// All databases and tables of a data directory.
pub struct Catalog {
    storage: Arc<Storage>,
    pub(crate) databases: RwLock<BTreeMap<String, Database>>,
    schema_version: AtomicU64,
    memory: Arc<CatalogMemory>,
    pub(crate) accounts: AccountState,
    pub(crate) resource_groups: ResourceGroupState,
    global_read_lock: GlobalReadLock,
    /// Held while the catalog tree and what it says in memory change, until the change is durable.
    pub(crate) definitions: Mutex<Definitions>,
    table_ids: TableIds,
}

/// What only changes of definitions need to know.
pub(crate) struct Definitions {
    /// The number of the table that is made next.
    pub(crate) next_table_id: u64,
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
        Catalog::open_within(storage, CatalogLimits::default())
    }

    /// As [`open`](Self::open), within limits of memory. A data directory whose definitions need more is opened all the
    /// same.
    ///
    /// # Errors
    /// As there.
    pub fn open_within(storage: Arc<Storage>, limits: CatalogLimits) -> Result<Arc<Catalog>> {
        let memory = CatalogMemory::new(limits);
        let tree = storage.catalog_tree();
        let mut databases: BTreeMap<String, Database> = BTreeMap::new();
        let mut next_table_id = 1;
        let mut definitions: Vec<(String, String, Vec<u8>)> = Vec::new();
        let mut statistics: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut counters = BTreeMap::new();
        let mut views: Vec<(String, String, Vec<u8>)> = Vec::new();
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
                    kind::TABLE | kind::VIEW => {
                        let (database, name) = table_of_key(rest).ok_or_else(unreadable)?;
                        let entries = match *kind {
                            kind::TABLE => &mut definitions,
                            _ => &mut views,
                        };
                        match entries.last_mut() {
                            Some((d, n, bytes)) if *d == database && *n == name => {
                                bytes.extend_from_slice(value);
                            }
                            _ => entries.push((database, name, value.to_vec())),
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
                    // It is read when it is asked for.
                    kind::REPLICATION => {}
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
            let table = Table::open(&storage, &memory, definition, Arc::new(state))?;
            table.publish(Lsn(0));
            let known = databases.get_mut(&database);
            let known = known.ok_or(TableError::UnknownDatabase { name: database })?;
            known.tables.insert(name, Arc::new(table));
        }
        restore_views(&memory, &mut databases, views)?;
        let catalog = Arc::new(Catalog {
            storage,
            databases: RwLock::new(databases),
            schema_version: AtomicU64::new(1),
            memory,
            accounts: accounts.finish()?,
            resource_groups: ResourceGroupState::new(resource_groups),
            global_read_lock: GlobalReadLock::default(),
            definitions: Mutex::new(Definitions { next_table_id }),
            table_ids: TableIds::of_all_sessions(),
        });
        catalog.drop_trees(&orphans.into_iter().collect::<Vec<_>>());
        // Marks of tables that a crash has kept from being entered.
        for id in counters.into_keys() {
            catalog.forget_auto_increment(id);
        }
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

    /// Drops a database with its tables and views, all or nothing, once no session uses them. Waits at most `wait` for
    /// each. Returns how many tables and views it had. `check_foreign_keys`: no table of another database may refer to
    /// one of them.
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
            let views = self.views(name).map_err(cannot_drop)?;
            self.change(|tree, transaction| {
                for (table, _) in &locked {
                    delete_table(tree, transaction, &table.definition)?;
                }
                for view in &views {
                    delete_view(tree, transaction, name, &view.definition.name)?;
                }
                tree.delete(transaction, &database_key(name))?;
                Ok(())
            })?;
            self.databases.write().remove(name);
            self.advance_schema_version();
            drop(changing);
            self.free_dropped(&locked, exclusive);
            return Ok(locked.len() + views.len());
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
    /// `UnknownDatabase`, `UnknownTable`, `NotBaseTable` for a view. `IncorrectTableName` and `NameTooLong` for a name
    /// that none can have.
    pub fn table(&self, database: &str, name: &str) -> Result<Arc<Table>> {
        let databases = self.databases.read();
        let Some(known) = databases.get(database) else {
            return Err(TableError::UnknownDatabase {
                name: database.to_string(),
            });
        };
        let table = known.tables.get(name).cloned();
        table.ok_or_else(|| {
            let is_view = known.views.contains_key(name);
            let (database, table) = (database.to_string(), name.to_string());
            match check_table_name(name) {
                Err(error) => error,
                Ok(()) if is_view => TableError::NotBaseTable { database, table },
                Ok(()) => TableError::UnknownTable { database, table },
            }
        })
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
    /// the change must not come about later. A catalog of temporary tables has nothing to change there.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&Tree, &mut Transaction) -> Result<()>,
    ) -> Result<()> {
        if self.is_temporary() {
            return Ok(());
        }
        let mut transaction = self.storage.begin_transaction();
        let annotation = annotation::take();
        let applied = replication::take();
        let tree = self.storage.catalog_tree();
        let mut changed = change(&tree, &mut transaction);
        if let (Ok(()), Some(applied)) = (&changed, &applied) {
            changed = replication::put(&tree, &mut transaction, applied);
        }
        if let (Ok(()), Some(annotation)) = (&changed, &annotation) {
            changed = transaction.annotate(annotation, true).map_err(Into::into);
        }
        match changed {
            Ok(()) => Ok(transaction.commit_or_stop()?),
            Err(error) => {
                annotation::put_back(annotation);
                replication::put_back(applied);
                transaction.rollback()?;
                Err(error)
            }
        }
    }

    pub(crate) fn memory(&self) -> &Arc<CatalogMemory> {
        &self.memory
    }

    /// What definitions take of their limit.
    pub fn definition_bytes(&self) -> usize {
        self.memory.definition_bytes()
    }

    /// What the statistics in memory take of their limit.
    pub fn statistics_bytes(&self) -> usize {
        self.memory.statistics_bytes()
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
        let write = || {
            self.change(|tree, transaction| {
                put_statistics(tree, transaction, table.definition.id, &bytes)
            })
        };
        let kept = &table.state.statistics;
        kept.replace(&self.memory, (earlier, statistics), write)?;
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
