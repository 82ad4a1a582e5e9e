//! The parents of foreign keys that a table gets [beside writers](crate::build::references_beside): they are found,
//! locked as the table is, and looked up.
//!
//! The writer of a parent keeps out other changes of its definition until the key is entered, so its columns and
//! indexes stay. It admits writers of rows. Nobody may use the parent in the moment in which the key is entered: a
//! transaction that has changed it by then did not look for children, and one that comes later does.
//!
//! A parent is locked so also if rows are not checked.

use std::collections::BTreeSet;
use std::sync::Arc;

use sheaf_storage::TreeId;

use crate::build::alter_table::LockedTables;
use crate::build::alteration::Alteration;
use crate::build::references_beside::{NewReference, NewReferences};
use crate::catalog::definition_check::NO_TREE;
use crate::catalog::foreign_keys::parents_of;
use crate::catalog::{Catalog, QualifiedName};
use crate::definition::schema::{ForeignKey, TableDefinition};
use crate::error::{Result, TableError};
use crate::lock::table_lock::{LockRequest, WriterLock};
use crate::progress::Progress;
use crate::table::Table;

impl Catalog {
    /// Locks a table, and the parents of its new foreign keys, for a change beside others.
    pub(super) fn lock_with_parents_beside(
        &self,
        name: (&str, &str),
        changes: &[Alteration],
        progress: &dyn Progress,
        wait: LockRequest<'_>,
    ) -> Result<LockedTables> {
        let own = (name.0.to_string(), name.1.to_string());
        loop {
            // Reports what is wrong also before any wait.
            let table = self.table(name.0, name.1)?;
            let mut names = self.new_parents(&table, changes)?;
            names.insert(own.clone());
            let (mut locked, mut others) = (None, Vec::new());
            // Other sessions that alter some of the same tables lock them in the same order.
            let mut lock_each = names.iter();
            let is_locked: Result<()> = lock_each.try_for_each(|(database, table)| {
                let found =
                    self.lock_beside((database.as_str(), table.as_str()), progress, wait)?;
                match (database.as_str(), table.as_str()) == name {
                    true => locked = Some(found),
                    false => others.push(found),
                }
                Ok(())
            });
            match is_locked {
                // Another table went; another look tells.
                Err(TableError::UnknownTable { table, .. }) if table != name.1 => continue,
                locked => locked?,
            }
            let Some((table, writer)) = locked else {
                continue;
            };
            // A parent may have come while this waited.
            if self.new_parents(&table, changes)?.is_subset(&names) {
                return Ok(LockedTables {
                    table,
                    writer,
                    others,
                });
            }
        }
    }

    /// The other tables that new foreign keys refer to, if they are there.
    fn new_parents(
        &self,
        table: &Table,
        changes: &[Alteration],
    ) -> Result<BTreeSet<QualifiedName>> {
        let altered = self.altered(table, changes)?;
        let (next, old) = (&altered.definition, &table.definition.foreign_keys);
        let is_same = |old: &ForeignKey, new: &ForeignKey| {
            let parent = (&new.referenced_database, &new.referenced_table);
            old.name == new.name && old.refers_to(parent.0, parent.1)
        };
        let is_new = |key: &&ForeignKey| !old.iter().any(|old| is_same(old, key));
        let new = next.foreign_keys.iter().filter(is_new);
        let new: Vec<ForeignKey> = new.chain(&altered.to_check).cloned().collect();
        let mut parents = parents_of(&new, next);
        parents.retain(|(database, table)| self.table(database, table).is_ok());
        Ok(parents)
    }

    /// The foreign keys that are new to the rows of a table. `next`: its definition with the trees that were made.
    pub(super) fn new_references(
        &self,
        table: &Arc<Table>,
        next: TableDefinition,
        parents: &[(Arc<Table>, WriterLock)],
        to_check: &[ForeignKey],
        new_trees: &[TreeId],
    ) -> Result<NewReferences> {
        if to_check.is_empty() {
            return Ok(NewReferences::new(Vec::new(), new_trees));
        }
        let mut next = next;
        // No key has long values.
        next.overflow = next.overflow.filter(|tree| *tree != NO_TREE);
        let state = Arc::clone(&table.state);
        let child = Arc::new(Table::open(self.storage(), self.memory(), next, state)?);
        let mut references = Vec::with_capacity(to_check.len());
        for key in to_check {
            let parent = self.check_foreign_key(key, &child.definition)?;
            let is_parent = |(other, _): &(Arc<Table>, WriterLock)| {
                key.refers_to(&other.definition.database, &other.definition.name)
            };
            let parent_number = match parent {
                None => 0,
                Some(_) => {
                    let at = parents.iter().position(is_parent);
                    1 + at.ok_or(TableError::DefinitionChanged)?
                }
            };
            references.push(NewReference {
                key: key.clone(),
                parent: parent.unwrap_or_else(|| Arc::clone(&child)),
                child: Arc::clone(&child),
                parent_number,
            });
        }
        Ok(NewReferences::new(references, new_trees))
    }
}
