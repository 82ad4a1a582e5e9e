//! Tables that are made, dropped, emptied, renamed or defined anew.
//!
//! Each change is made under the writer and exclusive locks of its tables, and holds `definitions` until it is durable:
//! see [`crate::catalog`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use sheaf_storage::{Transaction, Tree, TreeId};

use crate::catalog::definition_check::{check_table_name, needs_overflow, resolve_table};
use crate::catalog::foreign_keys::check_own_names;
use crate::catalog::records::{
    delete_definition, delete_statistics, header, key_of_table, kind, put, put_definition,
    put_statistics,
};
use crate::catalog::{Catalog, Definitions, QualifiedName, free_trees, trees_of};
use crate::definition::check_constraint::rename_checks_with_table;
use crate::definition::foreign_key::rename_with_table;
use crate::definition::schema::{CreateTable, TableDefinition};
use crate::error::{Result, TableError};
use crate::lock::table_lock::{ExclusiveLock, LockRequest, WriterLock};
use crate::statistics::TableStatistics;
use crate::statistics::codec::encode_statistics;
use crate::table::{Table, TableState};

impl Catalog {
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
        let mut definition = resolve_table(self.next_table_id(&definitions), request)?;
        self.check_new_foreign_keys(&definition, check)?;
        self.memory.check_room(&definition, None)?;
        let mut trees = Vec::new();
        let made = self
            .create_trees(&mut definition, &mut trees)
            .and_then(|()| Table::open(&self.storage, &self.memory, definition, Arc::default()));
        match made {
            Ok(_) => definitions.next_table_id += 1,
            Err(_) => self.drop_trees(&trees),
        }
        made
    }

    /// Whether a table could be made of this, as far as the request alone says.
    ///
    /// # Errors
    /// The MySQL error for whatever is wrong with the request.
    pub fn check_request(&self, request: &CreateTable) -> Result<()> {
        self.definition_of(request).map(|_| ())
    }

    /// The definition of the table that a request asks for, without trees.
    ///
    /// # Errors
    /// As [`check_request`](Self::check_request).
    pub fn definition_of(&self, request: &CreateTable) -> Result<TableDefinition> {
        let next = self.next_table_id(&self.definitions.lock());
        resolve_table(next, request.clone())
    }

    /// Enters a new table.
    ///
    /// # Errors
    /// As [`create_table`](Self::create_table): others may have made and dropped tables since it was prepared.
    pub(crate) fn enter_new(&self, table: &Arc<Table>, check_foreign_keys: bool) -> Result<()> {
        let definitions = self.definitions.lock();
        self.check_new(table, check_foreign_keys)?;
        self.change(|tree, transaction| self.put_new(tree, transaction, &definitions, table))?;
        self.show_new(table);
        Ok(())
    }

    /// Whether a new table fits what there is by now.
    pub(super) fn check_new(&self, table: &Table, check_foreign_keys: bool) -> Result<()> {
        let definition = &table.definition;
        self.check_is_free(&definition.database, &definition.name)?;
        self.check_new_foreign_keys(definition, check_foreign_keys)
    }

    /// Writes what the catalog tree has of a new table.
    pub(super) fn put_new(
        &self,
        tree: &Tree,
        transaction: &mut Transaction,
        definitions: &Definitions,
        table: &Table,
    ) -> Result<()> {
        let next = header(definitions.next_table_id);
        put(tree, transaction, &[kind::HEADER], &next)?;
        // It may come with rows. Those that were loaded wrote no mark.
        let counter = &table.state.auto_increment;
        if let Some(next) = counter.known().filter(|_| counter.is_beyond_mark()) {
            let key = key_of_table(kind::AUTO_INCREMENT, table.definition.id);
            put(tree, transaction, &key, &next.to_le_bytes())?;
        }
        put_definition(tree, transaction, &table.definition)
    }

    /// Deletes the mark of a table that is not there. One that stays is found again at the next start.
    pub(super) fn forget_auto_increment(&self, id: u64) {
        let mut transaction = self.storage.begin_transaction();
        let key = key_of_table(kind::AUTO_INCREMENT, id);
        let deleted = self.storage.catalog_tree().delete(&mut transaction, &key);
        if let Err(error) = deleted.and_then(|_| transaction.commit()) {
            tracing::warn!(%error, "a mark of AUTO_INCREMENT could not be deleted");
        }
    }

    /// Lets other sessions find a new table, which the catalog tree has by now.
    pub(super) fn show_new(&self, table: &Arc<Table>) {
        table.publish(self.storage.newest_commit());
        self.enter(Arc::clone(table));
    }

    /// Error `TableExists` if a table or a view has this name.
    pub(super) fn check_is_free(&self, database: &str, name: &str) -> Result<()> {
        match self.table(database, name) {
            Ok(_) | Err(TableError::NotBaseTable { .. }) => Err(TableError::TableExists {
                table: name.to_string(),
            }),
            Err(TableError::UnknownTable { .. }) => Ok(()),
            // Its databases come with their first table.
            Err(TableError::UnknownDatabase { .. }) if self.is_temporary() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// `check`: the parents must be there. Those that are must fit in any case, as the table must that keys wait for.
    fn check_new_foreign_keys(&self, definition: &TableDefinition, check: bool) -> Result<()> {
        self.check_foreign_key_names(definition, &[])?;
        self.check_check_names(definition, &[])?;
        for key in &definition.foreign_keys {
            match check {
                true => self.check_foreign_key(key, definition).map(drop)?,
                false => self.check_known_parent(key, definition)?,
            }
        }
        self.check_waiting_children(definition, |_| false)
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
    pub(super) fn free_dropped(
        &self,
        tables: &[(Arc<Table>, WriterLock)],
        exclusive: Vec<ExclusiveLock<'_>>,
    ) {
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
            id: self.next_table_id(&definitions),
            auto_increment_start: 1,
            overflow: None,
            shape: None,
            ..old.definition.clone()
        };
        self.create_trees(&mut definition, trees)?;
        let state = TableState::with_lock_of(old);
        let table = Table::open(&self.storage, &self.memory, definition, Arc::new(state))?;
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
    /// third name. Foreign keys that refer to them follow. Waits at most `wait` for each of them, and for each table
    /// with such a key, until no session uses it.
    ///
    /// # Errors
    /// `UnknownTable`, `TableExists`, `UnknownDatabase`, `LockWaitTimeout`.
    pub fn rename_tables<'w>(
        &self,
        renames: &[(QualifiedName, QualifiedName)],
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<()> {
        let wait = wait.into();
        for (_, (_, to)) in renames {
            check_table_name(to)?;
        }
        let locked = self.lock_to_rename(renames, wait)?;
        let _exclusive = lock_others_out(&locked, wait)?;
        let _changing = self.definitions.lock();
        // Other tables may have come and gone meanwhile.
        let names = self.names_after(renames)?;
        let mut renamed = Vec::with_capacity(locked.len());
        for (table, _) in &locked {
            let mut definition = table.definition.clone();
            for key in &mut definition.foreign_keys {
                let parent = (
                    key.referenced_database.clone(),
                    key.referenced_table.clone(),
                );
                if let Some((database, table)) = names.get(&parent) {
                    key.refer_to(database, table);
                }
            }
            let old = (definition.database.clone(), definition.name.clone());
            if let Some(name) = names.get(&old) {
                rename_definition(&mut definition, name.clone());
            }
            let state = table.state.clone();
            renamed.push(Table::open(&self.storage, &self.memory, definition, state)?);
        }
        self.check_renamed_constraints(&renamed)?;
        for Table { definition, .. } in &renamed {
            let own = (definition.database.clone(), definition.name.clone());
            if names.values().any(|name| *name == own) {
                let changes = |id: u64| renamed.iter().any(|other| other.definition.id == id);
                self.check_waiting_children(definition, changes)?;
            }
        }
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

    /// Locks the writers of tables out that get other names, and of those whose foreign keys refer to them.
    fn lock_to_rename(
        &self,
        renames: &[(QualifiedName, QualifiedName)],
        wait: LockRequest<'_>,
    ) -> Result<Vec<(Arc<Table>, WriterLock)>> {
        loop {
            let renamed = self.names_after(renames)?;
            let names = self.with_children(renamed.keys())?;
            let locked = match self.lock_writers(names.iter().cloned(), wait) {
                // A child went; another look tells.
                Err(TableError::UnknownTable { database, table })
                    if !renamed.contains_key(&(database.clone(), table.clone())) =>
                {
                    continue;
                }
                locked => locked?,
            };
            // None comes while its parent is locked.
            if self.with_children(renamed.keys())?.is_subset(&names) {
                return Ok(locked);
            }
        }
    }

    /// Tables, and those whose foreign keys refer to them.
    fn with_children<'n>(
        &self,
        names: impl Iterator<Item = &'n QualifiedName>,
    ) -> Result<BTreeSet<QualifiedName>> {
        let mut all = BTreeSet::new();
        for name in names {
            for (child, _) in self.referencing(&*self.table(&name.0, &name.1)?) {
                let TableDefinition { database, name, .. } = &child.definition;
                all.insert((database.clone(), name.clone()));
            }
            all.insert(name.clone());
        }
        Ok(all)
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
                Err(TableError::NotBaseTable { .. }) => false,
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
    /// `TableExists`, `UnknownDatabase`, `DuplicateForeignKey`, `LockWaitTimeout`, and those of [`check_parent`] where
    /// a foreign key waits for a new name.
    ///
    /// [`check_parent`]: crate::definition::foreign_key::check_parent
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
        let exclusive = WriterLock::exclusive_of_all(&writers, wait)?;
        self.redefine_locked(entries, &exclusive)
    }

    /// As [`redefine`](Self::redefine), where no session uses the tables: `exclusive` has the locks of all of them.
    pub(crate) fn redefine_locked(
        &self,
        entries: Vec<Redefinition<'_>>,
        exclusive: &[ExclusiveLock<'_>],
    ) -> Result<()> {
        debug_assert_eq!(entries.len(), exclusive.len());
        let _changing = self.definitions.lock();
        for entry in entries.iter().filter(|entry| entry.is_renamed()) {
            self.check_is_free(&entry.definition.database, &entry.definition.name)?;
            let changes = |id: u64| entries.iter().any(|other| other.definition.id == id);
            self.check_waiting_children(&entry.definition, changes)?;
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
            self.memory
                .check_room(&definition, Some(&entry.table.definition))?;
            let (memory, state) = (&self.memory, Arc::clone(state));
            opened.push(Table::open(&self.storage, memory, definition, state)?);
        }
        let moved = entries.iter().find_map(Redefinition::moved_statistics);
        let bytes = moved.as_ref().map(|(.., moved)| encode_statistics(moved));
        let write = || {
            self.change(|tree, transaction| {
                let mut all = entries.iter();
                all.try_for_each(|entry| put_redefinition(tree, transaction, entry))?;
                match (&moved, &bytes) {
                    (Some((table, ..)), Some(bytes)) => {
                        put_statistics(tree, transaction, table.definition.id, bytes)
                    }
                    _ => Ok(()),
                }
            })
        };
        match &moved {
            Some((table, earlier, moved)) => {
                let statistics = (Some(Arc::clone(earlier)), moved.clone());
                let kept = &table.state.statistics;
                kept.replace(&self.memory, statistics, write)?;
            }
            None => write()?,
        }
        let now = self.storage.newest_commit();
        for (entry, next) in entries.iter().zip(opened) {
            if entry.is_renamed() {
                self.remove(entry.table);
            }
            if entry.forgets_auto_increment {
                next.state.auto_increment.forget();
                // Rows that are deleted later do not give their values back. What cannot be read now is found later.
                let _ = next.next_auto_increment();
            }
            next.publish(now);
            if entry.state.is_some() {
                entry.table.retire();
            }
            self.enter(Arc::new(next));
        }
        Ok(())
    }
}

/// Gives a table another name, which names of its constraints follow.
pub(crate) fn rename_definition(definition: &mut TableDefinition, (database, name): QualifiedName) {
    for key in &mut definition.foreign_keys {
        rename_with_table(key, &definition.name, &name);
    }
    rename_checks_with_table(&mut definition.checks, &definition.name, &name);
    (definition.database, definition.name) = (database, name);
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
    /// For each column its position before, where columns have other positions in the same trees. One of the tables
    /// that are entered together at most.
    pub(crate) moved_columns: Option<Vec<Option<usize>>>,
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
            moved_columns: None,
        }
    }

    /// The table with its statistics, and what they are when columns have other positions.
    fn moved_statistics(&self) -> Option<(&'a Table, Arc<TableStatistics>, TableStatistics)> {
        let sources = self.moved_columns.as_ref()?;
        let earlier = self.table.statistics()?;
        let moved = earlier.with_columns(sources);
        Some((self.table, earlier, moved))
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
pub(super) fn lock_others_out<'t>(
    tables: &'t [(Arc<Table>, WriterLock)],
    wait: LockRequest<'_>,
) -> Result<Vec<ExclusiveLock<'t>>> {
    let writers: Vec<&WriterLock> = tables.iter().map(|(_, writer)| writer).collect();
    WriterLock::exclusive_of_all(&writers, wait)
}

/// Deletes a table's definition, and what is kept of the table besides.
pub(super) fn delete_table(
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
