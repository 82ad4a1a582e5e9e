//! ALTER TABLE: several changes of one table, all of them or none.
//!
//! ```text
//!   lock writers out -> work out the new definition -> build new indexes, check new foreign keys
//!                    -> lock all others out -> enter the definition -> free trees that it does not name
//! ```
//!
//! Writers of the tables that new foreign keys refer to are locked out as well, so that no row loses its parent between the
//! check and the moment from which on deleting it looks for children.
//!
//! The definition is entered by one transaction of the catalog, and only then anybody sees the new trees. If something fails
//! before that, they are freed; after a crash [`Catalog::open`] frees whatever no definition names, old or new.
//!
//! What is dropped goes first, then come indexes, then foreign keys, then the new name, in whatever order the statement
//! has them: so an index may be replaced by another one of its name, and a foreign key may use an index that comes with it.

use std::sync::Arc;
use std::time::Duration;

use sheaf_storage::TreeId;

use crate::catalog::{Catalog, trees_of};
use crate::catalog_foreign_keys::{check_rows, parents_of};
use crate::definition_check::{
    NO_TREE, check_auto_increment, check_key_lengths, check_name, index_for, resolve_index,
};
use crate::error::{Result, TableError};
use crate::foreign_key::{
    ForeignKey, ForeignKeySpec, leading_index, referenced_positions, resolve_foreign_key,
};
use crate::index_build::build_indexes;
use crate::progress::Progress;
use crate::schema::{Index, IndexSpec, TableDefinition, same_name};
use crate::table::Table;

/// One change of a table.
#[derive(Debug, Clone)]
pub enum Alteration {
    AddIndex(IndexSpec),
    DropIndex(String),
    /// An index comes with it, if none begins with its columns.
    AddForeignKey {
        spec: ForeignKeySpec,
        /// The parent must be there and fit, and each row must have one.
        check: bool,
    },
    /// Its index stays.
    DropForeignKey(String),
    RenameTo {
        database: String,
        table: String,
    },
}

impl Catalog {
    /// Makes all these changes of a table, or none. Indexes are built while others read the table: external sort within
    /// `memory_bytes`, then a sorted bulk build. Waits at most `wait` for the writers of each table, and again for readers
    /// when all is ready.
    ///
    /// # Errors
    /// `DuplicateKey` for a unique index, `NoParentRow`, `IndexNeededByForeignKey`, `Interrupted`, `LockWaitTimeout`, and
    /// the MySQL error for whatever is wrong with the request. The table is as before.
    pub fn alter_table(
        &self,
        (database, table): (&str, &str),
        changes: &[Alteration],
        memory_bytes: usize,
        progress: &dyn Progress,
        wait: Duration,
    ) -> Result<()> {
        // Says which tables are to be locked, and what is wrong before anybody waits.
        let seen = self.table(database, table)?;
        let (definition, to_check) = self.altered(&seen, changes)?;
        let mut before = parents_of(&to_check, &definition);
        let after = before.split_off(&(database.to_string(), table.to_string()));
        // Tables are locked in the order of their names.
        let _before = self.lock_writers(before, wait)?;
        let (table, writer) = self.lock_writer(database, table, wait)?;
        let _after = self.lock_writers(after, wait)?;
        let (mut definition, to_check) = self.altered(&table, changes)?;
        let mut built = Vec::new();
        let altered = self
            .build_new_indexes(&table, &mut definition, &mut built, memory_bytes, progress)
            .and_then(|()| self.check_new_keys(&table, &definition, &to_check, progress))
            .and_then(|()| {
                rename(&mut definition, changes);
                self.redefine(&writer, &table, definition, wait)
            });
        let altered = match altered {
            Ok(altered) => altered,
            Err(error) => {
                self.drop_trees(&built);
                return Err(error);
            }
        };
        let kept = trees_of(&altered.definition);
        let mut dropped = trees_of(&table.definition);
        dropped.retain(|tree| !kept.contains(tree));
        self.drop_trees(&dropped);
        Ok(())
    }

    /// The definition as the changes leave it, new indexes still without trees, and the new foreign keys that are to hold.
    fn altered(
        &self,
        table: &Table,
        changes: &[Alteration],
    ) -> Result<(TableDefinition, Vec<ForeignKey>)> {
        let mut next = table.definition.clone();
        let first_id = table.first_free_index_id();
        for change in changes {
            let absent = |name: &String| TableError::CannotDropIndex { name: name.clone() };
            match change {
                Alteration::DropIndex(name) => {
                    let position = next.secondary_position(name);
                    next.secondary.remove(position.ok_or_else(|| absent(name))?);
                }
                Alteration::DropForeignKey(name) => {
                    let known = |key: &ForeignKey| same_name(&key.name, name);
                    let position = next.foreign_keys.iter().position(known);
                    next.foreign_keys
                        .remove(position.ok_or_else(|| absent(name))?);
                }
                Alteration::RenameTo { table, .. } => {
                    check_name(table, |name| TableError::IncorrectTableName { name })?;
                }
                Alteration::AddIndex(_) | Alteration::AddForeignKey { .. } => {}
            }
        }
        for change in changes {
            if let Alteration::AddIndex(spec) = change {
                let index = resolve_index(&next, spec, first_id)?;
                next.secondary.push(index);
            }
        }
        let mut to_check = Vec::new();
        for change in changes {
            if let Alteration::AddForeignKey { spec, check } = change {
                let key = resolve_foreign_key(&next, spec)?;
                if leading_index(&next, &key.columns).is_none() {
                    let index = resolve_index(&next, &index_for(&next, spec), first_id)?;
                    next.secondary.push(index);
                }
                if *check {
                    to_check.push(key.clone());
                }
                next.foreign_keys.push(key);
            }
        }
        check_key_lengths(&next)?;
        check_auto_increment(&next)?;
        self.check_needed_indexes(table, &next)?;
        for key in &to_check {
            self.check_foreign_key(key, &next)?;
        }
        Ok((next, to_check))
    }

    /// Error `IndexNeededByForeignKey` if an index goes that a foreign key of either side has used, and no other one does.
    fn check_needed_indexes(&self, table: &Table, next: &TableDefinition) -> Result<()> {
        let old = &table.definition;
        let mut needed: Vec<Vec<usize>> = Vec::new();
        for key in &next.foreign_keys {
            needed.push(key.columns.clone());
            if key.refers_to(&old.database, &old.name) {
                needed.extend(referenced_positions(key, next));
            }
        }
        for (child, key) in self.referencing(table) {
            if child.definition.id != old.id {
                needed.extend(referenced_positions(&key, next));
            }
        }
        for columns in needed {
            if leading_index(next, &columns).is_none()
                && let Some(Some(position)) = leading_index(old, &columns)
            {
                return Err(TableError::IndexNeededByForeignKey {
                    index: old.secondary[position].name.clone(),
                });
            }
        }
        Ok(())
    }

    /// `built`: the trees that were made, also if it fails.
    fn build_new_indexes(
        &self,
        table: &Table,
        definition: &mut TableDefinition,
        built: &mut Vec<TreeId>,
        memory_bytes: usize,
        progress: &dyn Progress,
    ) -> Result<()> {
        let new = |index: &Index| index.tree == NO_TREE;
        let indexes = definition.secondary.iter();
        let indexes: Vec<&Index> = indexes.filter(|index| new(index)).collect();
        let storage = self.storage();
        build_indexes(storage, table, &indexes, memory_bytes, progress, built)?;
        let indexes = definition.secondary.iter_mut();
        for (index, tree) in indexes.filter(|index| new(index)).zip(built.iter()) {
            index.tree = *tree;
        }
        Ok(())
    }

    /// Whether the rows keep the new foreign keys, whose indexes are built.
    fn check_new_keys(
        &self,
        table: &Table,
        definition: &TableDefinition,
        keys: &[ForeignKey],
        progress: &dyn Progress,
    ) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let (definition, state) = (definition.clone(), table.state.clone());
        let child = Arc::new(Table::open(self.storage(), definition, state)?);
        for key in keys {
            let parent = self.check_foreign_key(key, &child.definition)?;
            check_rows(&child, key, parent.as_ref(), progress)?;
        }
        Ok(())
    }
}

fn rename(definition: &mut TableDefinition, changes: &[Alteration]) {
    for change in changes {
        if let Alteration::RenameTo { database, table } = change {
            (definition.database, definition.name) = (database.clone(), table.clone());
        }
    }
}
