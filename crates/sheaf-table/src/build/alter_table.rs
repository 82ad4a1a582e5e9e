//! ALTER TABLE: several changes of one table, all of them or none.
//!
//! ```text
//!   lock writers out -> work out the new definition -> build new indexes, or copy the rows to new trees
//!                    -> check new foreign keys -> lock all others out -> enter the definition
//!                    -> free trees that it does not name
//! ```
//!
//! Writers of the tables that new foreign keys refer to are locked out as well. So no row loses its parent between the
//! check and the moment from which on deleting the parent looks for children.
//!
//! The definition is entered by one transaction of the catalog, and only then the new trees are visible. If something
//! fails before that, they are freed; after a crash [`Catalog::open`] frees all trees that no definition names, old or
//! new.
//!
//! The order is the same whatever order the statement has: what is dropped goes first, then columns change, then come
//! indexes, then foreign keys, then the new name. So an index may be replaced by another one of its name, and a foreign
//! key may use an index that comes with it. `build/altered_definition.rs` works that out; `build/table_copy.rs` copies
//! rows.
//!
//! Indexes alone may be built, new foreign keys checked, and rows copied, [beside writers](crate::build::build_beside).
//! Then no writer is locked out but in the moment in which the definition is entered.
//!
//! Foreign keys of other tables name columns of this one. Where a column gets another name, these tables are locked and
//! entered together with it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sheaf_storage::{ReadView, TreeId};
use sheaf_types::ColumnType;

use crate::build::alter_options::{AlterOptions, Altered};
use crate::build::alteration::{Alteration, keeps_values};
use crate::build::altered_definition::{
    AlterWork, AlteredDefinition, altered_definition, renames_column,
};
use crate::build::build_beside::{
    BesideOptions, BuildBeside, MAX_WATCHED, WAITING, Watched, lock_for_a_moment,
};
use crate::build::index_build::build_indexes;
use crate::build::index_build_beside::{NewIndexes, test_rows};
use crate::build::table_copy_beside::{TableCopy, is_possible_beside};
use crate::catalog::definition_check::NO_TREE;
use crate::catalog::foreign_keys::{check_rows, parents_of};
use crate::catalog::{Catalog, QualifiedName, Redefinition, rename_definition, trees_of};
use crate::definition::foreign_key::{is_comparable, leading_index, referenced_positions};
use crate::definition::schema::{ForeignKey, Index, PRIMARY, TableDefinition, same_name};
use crate::error::{Result, TableError};
use crate::lock::table_lock::{ExclusiveLock, LockRequest, WriterLock};
use crate::progress::Progress;
use crate::table::{Table, TableState};

/// A table that is being altered, and others that must not be written meanwhile.
pub(super) struct LockedTables {
    pub(super) table: Arc<Table>,
    pub(super) writer: WriterLock,
    pub(super) others: Vec<(Arc<Table>, WriterLock)>,
}

/// What a table becomes.
struct NextDefinition {
    definition: TableDefinition,
    /// That of a table with other trees.
    state: Option<Arc<TableState>>,
    forgets_auto_increment: bool,
    /// For each column its position before, if rows stay and positions do not.
    moved_columns: Option<Vec<Option<usize>>>,
}

/// Whether an index is to be built.
fn is_new(index: &Index) -> bool {
    index.tree == NO_TREE
}

/// Whether a child's column and its parent's fit where nothing but their types is checked. Two texts do: to give both
/// tables another collation, one has to be the first.
fn check_types(
    key: &ForeignKey,
    (column, child): (&str, &ColumnType),
    (referenced, parent): (&str, &ColumnType),
) -> Result<()> {
    if is_comparable(child, parent) || child.is_short_text() && parent.is_short_text() {
        return Ok(());
    }
    Err(TableError::ForeignKeyIncompatible {
        column: column.to_string(),
        referenced: referenced.to_string(),
        name: key.name.clone(),
    })
}

impl Catalog {
    /// What the changes of a table, as it is in this version, ask for.
    ///
    /// # Errors
    /// The MySQL error for whatever is wrong with the request.
    pub fn alter_work(table: &Table, changes: &[Alteration]) -> Result<AlterWork> {
        Ok(altered_definition(&table.definition, changes, table.first_free_index_id())?.work)
    }

    /// What a table becomes by the changes, without trees.
    ///
    /// # Errors
    /// The MySQL error for whatever is wrong with the request.
    pub fn altered_definition(
        table: &Table,
        changes: &[Alteration],
    ) -> Result<(TableDefinition, AlterWork)> {
        let first_index_id = table.first_free_index_id();
        let altered = altered_definition(&table.definition, changes, first_index_id)?;
        Ok((altered.definition, altered.work))
    }

    /// Whether others can change rows of a table while it is altered so: it gets or loses indexes, CHECKs and foreign
    /// keys, and else only what rows and other tables know nothing of. Or its rows are [copied](is_possible_beside).
    ///
    /// # Errors
    /// The MySQL error for whatever is wrong with the request.
    pub fn admits_writers(table: &Table, changes: &[Alteration]) -> Result<bool> {
        let leaves_rows = |change: &Alteration| {
            matches!(
                change,
                Alteration::AddIndex(_)
                    | Alteration::DropIndex(_)
                    | Alteration::RenameIndex { .. }
                    | Alteration::IndexVisibility { .. }
                    | Alteration::ColumnVisibility { .. }
                    | Alteration::SetDefault { .. }
                    | Alteration::SetComment(_)
                    | Alteration::Instantly(_)
                    | Alteration::AddCheck(_)
                    | Alteration::DropCheck(_)
                    | Alteration::EnforceCheck { .. }
                    | Alteration::AddForeignKey { .. }
                    | Alteration::DropForeignKey(_)
            )
        };
        let brings_parent =
            |change: &Alteration| matches!(change, Alteration::AddForeignKey { .. });
        let definition = &table.definition;
        let altered = altered_definition(definition, changes, table.first_free_index_id())?;
        let builds_indexes = altered.work == AlterWork::Index
            && changes.iter().all(leaves_rows)
            && changes
                .iter()
                .filter(|change| brings_parent(change))
                .count()
                < MAX_WATCHED
            && !definition.is_temporary();
        Ok(builds_indexes || is_possible_beside(definition, &altered, changes))
    }

    /// What the definition becomes. The parents of new foreign keys fit, and are there if that is checked.
    pub(super) fn altered(
        &self,
        table: &Table,
        changes: &[Alteration],
    ) -> Result<AlteredDefinition> {
        let first_index_id = table.first_free_index_id();
        let altered = altered_definition(&table.definition, changes, first_index_id)?;
        let old_keys = &table.definition.foreign_keys;
        self.check_foreign_key_names(&altered.definition, old_keys)?;
        for key in &altered.to_check {
            self.check_foreign_key(key, &altered.definition)?;
        }
        let keys = altered.definition.foreign_keys.iter();
        for key in keys.filter(|key| !old_keys.iter().any(|old| old.name == key.name)) {
            self.check_known_parent(key, &altered.definition)?;
        }
        Ok(altered)
    }

    /// Makes all these changes of a table, or none. Indexes are built, and rows copied, while others read the table:
    /// external sort within the memory of the options, then a sorted bulk build. Waits at most `wait` for writers, and
    /// again for readers when all is ready.
    ///
    /// # Errors
    /// `DuplicateKey` for a unique index, `Column` and `InvalidUseOfNull` for a value that its column cannot hold any
    /// more, `NoParentRow`, `IndexNeededByForeignKey`, `Interrupted`, `LockWaitTimeout`. `DefinitionChanged` if it is
    /// another version than that of the options by the time that there is no other writer. And the MySQL error for
    /// anything that is wrong with the request. The table is as before.
    pub fn alter_table<'w>(
        &self,
        (database, table): (&str, &str),
        changes: &[Alteration],
        options: &AlterOptions,
        progress: &dyn Progress,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<Altered> {
        let wait = wait.into();
        if options.beside_writers {
            let (name, current) = ((database, table), self.table(database, table)?);
            if Catalog::admits_writers(&current, changes)? {
                return self.build_beside_writers(name, changes, options, progress, wait);
            }
            if self.takes_a_moment(&current, changes)? {
                return self.enter_in_a_moment(name, changes, options, progress, wait);
            }
        }
        let name = (database.to_string(), table.to_string());
        progress.begin(WAITING, None);
        let locked = self.lock_to_alter(&name, changes, wait)?;
        let table = &locked.table;
        let mut versions = options.version.iter();
        if versions.any(|version| !Arc::ptr_eq(version, table)) {
            return Err(TableError::DefinitionChanged);
        }
        let mut altered = self.altered(table, changes)?;
        self.check_old_keys(table, &altered, changes, options)?;
        let exclusive = match options.excludes_readers {
            true => Some(locked.writer.exclusive(wait)?),
            false => None,
        };
        let mut done = Altered {
            work: altered.work,
            rows: 0,
            issues: Vec::new(),
            more_issues: 0,
        };
        // The trees that were made, also if it fails.
        let mut made = Vec::new();
        let entered = self
            .make_trees(table, &mut altered, options, progress, &mut made, &mut done)
            .and_then(|state| {
                let sharing = state.as_ref().unwrap_or(&table.state);
                let with_parents = self.check_new_keys(&altered, sharing, progress)?;
                let tested = self.check_each_row(&altered, sharing, options, progress)?;
                done.rows = done.rows.max(with_parents).max(tested);
                let mut definition = altered.definition;
                rename(&mut definition, changes);
                let kept = trees_of(&definition);
                let moved = moved_columns(&table.definition, altered.sources);
                let next = NextDefinition {
                    definition,
                    moved_columns: moved.filter(|_| state.is_none()),
                    state,
                    forgets_auto_increment: altered.sets_auto_increment,
                };
                // For transactions that read the table as it was.
                progress.begin(WAITING, None);
                self.enter_altered((&locked, exclusive), changes, next, wait)?;
                Ok(kept)
            });
        self.free_left_over(table, made, &entered);
        entered.map(|_| done)
    }

    /// Locks a table for a change beside others, and says so if it has to wait.
    pub(super) fn lock_beside(
        &self,
        name: (&str, &str),
        progress: &dyn Progress,
        wait: LockRequest<'_>,
    ) -> Result<(Arc<Table>, WriterLock)> {
        let at_once = LockRequest {
            wait: Duration::ZERO,
            ..wait
        };
        match self.lock_writer_beside_rows(name, at_once) {
            Err(TableError::LockWaitTimeout) if !wait.wait.is_zero() => {
                progress.begin(WAITING, None);
                self.lock_writer_beside_rows(name, wait)
            }
            locked => locked,
        }
    }

    /// As [`alter_table`](Self::alter_table), where it [admits writers](Self::admits_writers).
    fn build_beside_writers(
        &self,
        name: (&str, &str),
        changes: &[Alteration],
        options: &AlterOptions,
        progress: &dyn Progress,
        wait: LockRequest<'_>,
    ) -> Result<Altered> {
        let locked = self.lock_with_parents_beside(name, changes, progress, wait)?;
        let LockedTables {
            table,
            writer,
            others: parents,
        } = &locked;
        let mut versions = options.version.iter();
        let is_other = versions.any(|version| !Arc::ptr_eq(version, table));
        // It may have become another one before it was locked.
        if is_other || !Catalog::admits_writers(table, changes)? {
            return Err(TableError::DefinitionChanged);
        }
        let altered = self.altered(table, changes)?;
        self.check_old_keys(table, &altered, changes, options)?;
        if altered.work.copies() {
            return self.copy_beside_writers((table, writer), altered, options, progress, wait);
        }
        let mut watched = vec![Watched { table, writer }];
        watched.extend(
            parents
                .iter()
                .map(|(table, writer)| Watched { table, writer }),
        );
        let to_check = altered.to_check;
        let mut definition = altered.definition;
        // The trees that were made, also if it fails.
        let mut made = Vec::new();
        let indexes = definition.secondary.iter().filter(|index| is_new(index));
        let indexes: Vec<Index> = indexes.cloned().collect();
        let indexes: Vec<&Index> = indexes.iter().collect();
        let mut rows = 0;
        let mut build = || {
            let limits = BesideOptions {
                memory_bytes: options.memory_bytes,
                noted_bytes: options.online_log_bytes,
            };
            let name = indexes.first().map_or(PRIMARY, |index| &index.name);
            let storage = self.storage();
            if indexes.is_empty() && to_check.is_empty() && options.row_test.is_none() {
                // Nothing is read: a foreign key without validation, perhaps.
                self.make_overflow(&mut definition, &mut made)?;
                let writers = watched.iter().map(|of| of.writer).collect();
                let exclusive = lock_for_a_moment(writers, wait, progress)?;
                let kept = trees_of(&definition);
                let entry = Redefinition::new(writer, table, definition.clone());
                self.redefine_locked(vec![entry], &exclusive[..1])?;
                return Ok(kept);
            }
            let with_trees = |definition: &mut TableDefinition, made: &[TreeId]| {
                let indexes = definition.secondary.iter_mut();
                for (index, tree) in indexes.filter(|index| is_new(index)).zip(made) {
                    index.tree = *tree;
                }
            };
            let references = |trees: &[TreeId]| {
                let mut next = definition.clone();
                with_trees(&mut next, trees);
                self.new_references(table, next, parents, &to_check, trees)
            };
            let build = BuildBeside::begin(
                storage,
                watched.clone(),
                name,
                limits,
                progress,
                wait,
                |view, progress| {
                    NewIndexes::build(
                        storage,
                        (table, &indexes),
                        view,
                        options,
                        progress,
                        &mut made,
                        references,
                    )
                },
            )?;
            let (exclusive, built) = build.finish()?;
            // A parent may have come that does not fit, where none had to be there.
            self.altered(table, changes)?;
            with_trees(&mut definition, &made);
            self.make_overflow(&mut definition, &mut made)?;
            let kept = trees_of(&definition);
            let entry = Redefinition::new(writer, table, definition.clone());
            // Those of the parents keep their writers out until the key is there.
            self.redefine_locked(vec![entry], &exclusive[..1])?;
            rows = built.tested;
            Ok(kept)
        };
        let entered = build();
        self.free_left_over(table, made, &entered);
        entered.map(|_| Altered {
            work: altered.work,
            rows,
            issues: Vec::new(),
            more_issues: 0,
        })
    }

    /// Whether a table is altered by its definition alone, and no other table follows.
    ///
    /// # Errors
    /// The MySQL error for whatever is wrong with the request.
    pub fn takes_a_moment(&self, table: &Table, changes: &[Alteration]) -> Result<bool> {
        Ok(!table.definition.is_temporary()
            && new_name(changes).is_none()
            && Catalog::alter_work(table, changes)? == AlterWork::Definition
            && self.others_to_lock(table, changes)?.is_empty())
    }

    /// As [`alter_table`](Self::alter_table), where it [takes a moment](Self::takes_a_moment): others go on until it
    /// comes.
    fn enter_in_a_moment(
        &self,
        name: (&str, &str),
        changes: &[Alteration],
        options: &AlterOptions,
        progress: &dyn Progress,
        wait: LockRequest<'_>,
    ) -> Result<Altered> {
        let (table, writer) = self.lock_beside(name, progress, wait)?;
        let mut versions = options.version.iter();
        let is_other = versions.any(|version| !Arc::ptr_eq(version, &table));
        if is_other || !self.takes_a_moment(&table, changes)? {
            return Err(TableError::DefinitionChanged);
        }
        let mut altered = self.altered(&table, changes)?;
        self.check_old_keys(&table, &altered, changes, options)?;
        // The trees that were made, also if it fails.
        let mut made = Vec::new();
        let mut enter = || {
            self.make_overflow(&mut altered.definition, &mut made)?;
            let exclusive = lock_for_a_moment(vec![&writer], wait, progress)?;
            let kept = trees_of(&altered.definition);
            let entry = Redefinition {
                forgets_auto_increment: altered.sets_auto_increment,
                moved_columns: moved_columns(&table.definition, altered.sources.clone()),
                ..Redefinition::new(&writer, &table, altered.definition.clone())
            };
            self.redefine_locked(vec![entry], &exclusive)?;
            Ok(kept)
        };
        let entered = enter();
        self.free_left_over(&table, made, &entered);
        entered.map(|_| Altered {
            work: AlterWork::Definition,
            rows: 0,
            issues: Vec::new(),
            more_issues: 0,
        })
    }

    /// Frees trees that the new definition does not name, or those that were made for it if there is none.
    fn free_left_over(&self, table: &Table, mut made: Vec<TreeId>, entered: &Result<Vec<TreeId>>) {
        if entered.is_ok() {
            made.extend(trees_of(&table.definition));
        }
        let kept = entered.as_deref().unwrap_or_default();
        made.retain(|tree| !kept.contains(tree));
        self.drop_trees(&made);
    }

    /// As [`build_beside_writers`](Self::build_beside_writers), where all rows are copied.
    fn copy_beside_writers(
        &self,
        (table, writer): (&Arc<Table>, &WriterLock),
        mut altered: AlteredDefinition,
        options: &AlterOptions,
        progress: &dyn Progress,
        wait: LockRequest<'_>,
    ) -> Result<Altered> {
        let mut done = Altered {
            work: altered.work,
            rows: 0,
            issues: Vec::new(),
            more_issues: 0,
        };
        // The trees that were made, also if it fails.
        let mut made = Vec::new();
        let mut copy = || {
            let limits = BesideOptions {
                memory_bytes: options.memory_bytes,
                noted_bytes: options.online_log_bytes,
            };
            let build = BuildBeside::begin(
                self.storage(),
                vec![Watched { table, writer }],
                PRIMARY,
                limits,
                progress,
                wait,
                |view, progress| {
                    let altered = &mut altered;
                    TableCopy::load(self, table, altered, options, view, progress, &mut made)
                },
            )?;
            let (exclusive, copy) = build.finish()?;
            copy.take_over_numbers(table, &altered)?;
            let definition = altered.definition.clone();
            let kept = trees_of(&definition);
            let entry = Redefinition {
                state: Some(Arc::clone(&copy.state)),
                ..Redefinition::new(writer, table, definition)
            };
            self.redefine_locked(vec![entry], &exclusive)?;
            copy.conversion.report(&mut done);
            Ok(kept)
        };
        let entered = copy();
        self.free_left_over(table, made, &entered);
        entered.map(|_| done)
    }

    /// Locks out the writers of a table, and of those that [must stay](Self::others_to_lock) as they are with it.
    fn lock_to_alter(
        &self,
        name: &QualifiedName,
        changes: &[Alteration],
        wait: LockRequest<'_>,
    ) -> Result<LockedTables> {
        loop {
            // Reports what is wrong also before any wait.
            let table = self.table(&name.0, &name.1)?;
            // Other sessions that alter some of the same tables lock them in the same order.
            let mut names = self.others_to_lock(&table, changes)?;
            names.insert(name.clone());
            let mut others = match self.lock_writers(names.iter().cloned(), wait) {
                // Another table went; another look tells.
                Err(TableError::UnknownTable { table, .. }) if table != name.1 => continue,
                locked => locked?,
            };
            let is_own = |(table, _): &(Arc<Table>, WriterLock)| {
                table.definition.database == name.0 && table.definition.name == name.1
            };
            let Some(own) = others.iter().position(is_own) else {
                continue;
            };
            let (table, writer) = others.remove(own);
            // Children may have come while this waited.
            if self.others_to_lock(&table, changes)?.is_subset(&names) {
                return Ok(LockedTables {
                    table,
                    writer,
                    others,
                });
            }
        }
    }

    /// The tables whose foreign keys have to follow a new name of a column, and the parents of new foreign keys.
    fn others_to_lock(
        &self,
        table: &Table,
        changes: &[Alteration],
    ) -> Result<BTreeSet<QualifiedName>> {
        let altered = self.altered(table, changes)?;
        let mut names = parents_of(&altered.to_check, &altered.definition);
        names.append(&mut self.children_to_follow(table, changes));
        Ok(names)
    }

    /// Other tables whose foreign keys name this one, or columns of it, that get another name.
    fn children_to_follow(&self, table: &Table, changes: &[Alteration]) -> BTreeSet<QualifiedName> {
        let mut children = BTreeSet::new();
        let is_renamed = new_name(changes).is_some();
        for (child, key) in self.referencing(table) {
            let child = &child.definition;
            let mut names = key.referenced_columns.iter();
            let follows = is_renamed || names.any(|name| renames_column(changes, name));
            if child.id != table.definition.id && follows {
                children.insert((child.database.clone(), child.name.clone()));
            }
        }
        children
    }

    /// Whether the foreign keys that stay, of either side, can be kept. Errors `ColumnNeededByChild`,
    /// `ColumnUsedByForeignKey`, `ColumnUsedByChild`, or, without checks, `ForeignKeyIncompatible`; and
    /// `IndexNeededByForeignKey` if an index goes that one of them has used, and no other index can take its place.
    fn check_old_keys(
        &self,
        table: &Table,
        altered: &AlteredDefinition,
        changes: &[Alteration],
        options: &AlterOptions,
    ) -> Result<()> {
        let (old, next) = (&table.definition, &altered.definition);
        let drops = |change: &Alteration, key: &ForeignKey| match change {
            Alteration::DropForeignKey(name) => same_name(name, &key.name),
            _ => false,
        };
        let stays = |key: &ForeignKey| !changes.iter().any(|change| drops(change, key));
        let converts = |column: &usize| {
            let before = &old.columns[*column].ty;
            let position = altered.position_of(*column);
            let changes = |position: usize| {
                altered.generated.contains(&position)
                    || !keeps_values(before, &next.columns[position].ty)
            };
            position.is_some_and(changes)
        };
        let is_checked = options.check_foreign_keys;
        // What the column of that name of a table becomes; `None`: the table or the column is not there.
        let referenced = |key: &ForeignKey, name: &str| {
            if key.refers_to(&old.database, &old.name) {
                let position = altered.position_of(old.column_position(name)?)?;
                return Some(next.columns[position].ty.clone());
            }
            let parent = self.table(&key.referenced_database, &key.referenced_table);
            let parent = &parent.ok()?.definition;
            Some(parent.columns[parent.column_position(name)?].ty.clone())
        };
        let mut needed: Vec<Vec<usize>> = Vec::new();
        for key in old.foreign_keys.iter().filter(|key| stays(key)) {
            let pairs = key.columns.iter().zip(&key.referenced_columns);
            for (column, name) in pairs.filter(|(column, _)| converts(column)) {
                if is_checked {
                    return Err(TableError::ColumnUsedByForeignKey {
                        column: old.columns[*column].name.clone(),
                        name: key.name.clone(),
                    });
                }
                let position = altered.position_of(*column);
                let own = position.map(|position| &next.columns[position].ty);
                if let (Some(own), Some(parent)) = (own, referenced(key, name)) {
                    check_types(key, (&old.columns[*column].name, own), (name, &parent))?;
                }
            }
            needed.push(key.columns.clone());
        }
        for (child, key) in self.referencing(table) {
            let child = &child.definition;
            if child.id == old.id && !stays(&key) {
                continue;
            }
            let Some(columns) = referenced_positions(&key, old) else {
                continue;
            };
            let gone = |column: &&usize| altered.position_of(**column).is_none();
            if let Some(column) = columns.iter().find(gone) {
                return Err(TableError::ColumnNeededByChild {
                    column: old.columns[*column].name.clone(),
                    name: key.name,
                    table: child.name.clone(),
                });
            }
            let pairs = key.columns.iter().zip(&columns);
            for (own, column) in pairs.filter(|(_, column)| converts(column)) {
                let name = &old.columns[*column].name;
                if is_checked {
                    return Err(TableError::ColumnUsedByChild {
                        column: name.clone(),
                        name: key.name,
                        table: child.name.clone(),
                    });
                }
                // Where the table refers to itself, this was looked at above or is now.
                let own = match child.id == old.id {
                    true => altered.position_of(*own).map(|own| &next.columns[own]),
                    false => child.columns.get(*own),
                };
                let position = altered.position_of(*column);
                if let (Some(own), Some(position)) = (own, position) {
                    let parent = &next.columns[position].ty;
                    check_types(&key, (&own.name, &own.ty), (name, parent))?;
                }
            }
            needed.push(columns);
        }
        for columns in needed {
            let now = altered.positions_of(&columns).unwrap_or_default();
            if leading_index(next, &now).is_none()
                && let Some(position) = leading_index(old, &columns)
            {
                let index =
                    position.map_or(PRIMARY, |position| old.secondary[position].name.as_str());
                return Err(TableError::IndexNeededByForeignKey {
                    index: index.to_string(),
                });
            }
        }
        Ok(())
    }

    /// Makes the trees that the new definition lacks, and names them in it. If these are all of them, the table gets a
    /// state of its own. `made`: the trees, also if it fails.
    fn make_trees(
        &self,
        table: &Arc<Table>,
        altered: &mut AlteredDefinition,
        options: &AlterOptions,
        progress: &dyn Progress,
        made: &mut Vec<TreeId>,
        done: &mut Altered,
    ) -> Result<Option<Arc<TableState>>> {
        if altered.work.copies() {
            return self
                .copy_rows(table, altered, options, progress, made, done)
                .map(Some);
        }
        let indexes = altered.definition.secondary.iter();
        let indexes: Vec<&Index> = indexes.filter(|index| is_new(index)).collect();
        let (storage, memory_bytes) = (self.storage(), options.memory_bytes);
        let newest = ReadView::newest();
        build_indexes(
            storage,
            table,
            &newest,
            &indexes,
            memory_bytes,
            progress,
            made,
        )?;
        let indexes = altered.definition.secondary.iter_mut();
        for (index, tree) in indexes.filter(|index| is_new(index)).zip(made.iter()) {
            index.tree = *tree;
        }
        self.make_overflow(&mut altered.definition, made)?;
        Ok(None)
    }

    /// Makes the tree for long values, if the definition is to have one that is not there.
    fn make_overflow(
        &self,
        definition: &mut TableDefinition,
        made: &mut Vec<TreeId>,
    ) -> Result<()> {
        if definition.overflow == Some(NO_TREE) {
            let tree = self.storage().create_tree()?;
            made.push(tree);
            definition.overflow = Some(tree);
        }
        Ok(())
    }

    /// Whether the rows keep the new foreign keys, whose indexes are built. Returns how many rows there are, if there
    /// are such keys.
    fn check_new_keys(
        &self,
        altered: &AlteredDefinition,
        state: &Arc<TableState>,
        progress: &dyn Progress,
    ) -> Result<u64> {
        if altered.to_check.is_empty() {
            return Ok(0);
        }
        let (definition, state) = (altered.definition.clone(), Arc::clone(state));
        let child = Arc::new(Table::open(
            self.storage(),
            self.memory(),
            definition,
            state,
        )?);
        let mut rows = 0;
        for key in &altered.to_check {
            let parent = self.check_foreign_key(key, &child.definition)?;
            rows = check_rows(&child, key, parent.as_ref(), progress)?;
        }
        Ok(rows)
    }

    /// Whether the rows pass the test of the options. Returns how many rows there are, if there is a test.
    fn check_each_row(
        &self,
        altered: &AlteredDefinition,
        state: &Arc<TableState>,
        options: &AlterOptions,
        progress: &dyn Progress,
    ) -> Result<u64> {
        let Some(test) = &options.row_test else {
            return Ok(0);
        };
        let (definition, state) = (altered.definition.clone(), Arc::clone(state));
        let table = Table::open(self.storage(), self.memory(), definition, state)?;
        let table = table.seen_in(options.mode.time_zone);
        test_rows(&table, &ReadView::newest(), test, progress)
    }

    /// Enters the new definition, and those of the tables that follow. `exclusive`: nobody uses the table.
    fn enter_altered(
        &self,
        (locked, exclusive): (&LockedTables, Option<ExclusiveLock<'_>>),
        changes: &[Alteration],
        next: NextDefinition,
        wait: LockRequest<'_>,
    ) -> Result<()> {
        let old = &locked.table.definition;
        let mut entries = Vec::with_capacity(1 + locked.others.len());
        for (other, writer) in &locked.others {
            let mut following = other.definition.clone();
            for key in &mut following.foreign_keys {
                if key.refers_to(&old.database, &old.name) {
                    follow_names(key, changes);
                }
            }
            if following.foreign_keys != other.definition.foreign_keys {
                entries.push(Redefinition::new(writer, other, following));
            }
        }
        let own = Redefinition {
            state: next.state,
            forgets_auto_increment: next.forgets_auto_increment,
            moved_columns: next.moved_columns,
            ..Redefinition::new(&locked.writer, &locked.table, next.definition)
        };
        let Some(exclusive) = exclusive else {
            entries.push(own);
            return self.redefine(entries, wait);
        };
        let writers: Vec<&WriterLock> = entries.iter().map(|entry| entry.writer).collect();
        let mut exclusive_of_all = WriterLock::exclusive_of_all(&writers, wait)?;
        exclusive_of_all.push(exclusive);
        entries.push(own);
        self.redefine_locked(entries, &exclusive_of_all)
    }
}

/// For each column its position before, if rows stay and positions do not.
fn moved_columns(old: &TableDefinition, sources: Vec<Option<usize>>) -> Option<Vec<Option<usize>>> {
    let stays = |(position, source): (usize, &Option<usize>)| *source == Some(position);
    let all_stay = sources.iter().enumerate().all(stays) && sources.len() == old.columns.len();
    (!all_stay).then_some(sources)
}

/// The new name of the table, with its database.
fn new_name(changes: &[Alteration]) -> Option<(&String, &String)> {
    changes.iter().find_map(|change| match change {
        Alteration::RenameTo { database, table } => Some((database, table)),
        _ => None,
    })
}

/// The new names of the table and the columns that a foreign key refers to.
fn follow_names(key: &mut ForeignKey, changes: &[Alteration]) {
    for referenced in &mut key.referenced_columns {
        let renamed = changes.iter().find_map(|change| match change {
            Alteration::RenameColumn { name, new } if same_name(name, referenced) => Some(new),
            Alteration::ChangeColumn { name, new, .. } if same_name(name, referenced) => {
                Some(&new.name)
            }
            _ => None,
        });
        if let Some(new) = renamed {
            referenced.clone_from(new);
        }
    }
    if let Some((database, table)) = new_name(changes) {
        key.refer_to(database, table);
    }
}

fn rename(definition: &mut TableDefinition, changes: &[Alteration]) {
    let Some((database, table)) = new_name(changes) else {
        return;
    };
    for key in &mut definition.foreign_keys {
        if key.refers_to(&definition.database, &definition.name) {
            key.refer_to(database, table);
        }
    }
    rename_definition(definition, (database.clone(), table.clone()));
}
