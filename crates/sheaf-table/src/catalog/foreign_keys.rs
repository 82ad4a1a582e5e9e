//! Foreign keys in the catalog: whether they hold, and which table refers to which.
//!
//! A foreign key is part of its table's definition. What refers to a table is not written down: it is found by looking
//! at the definitions, which are all in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use sheaf_storage::{Direction, KeyRange, ReadAhead};
use sheaf_types::Value;

use crate::catalog::{Catalog, QualifiedName};
use crate::definition::foreign_key::{check_parent, referenced_positions};
use crate::definition::schema::{CheckConstraint, ForeignKey, TableDefinition, same_name};
use crate::error::{Result, TableError};
use crate::lock::table_lock::WriterLock;
use crate::progress::Progress;
use crate::table::Table;
use crate::table::reference_lookup::Lookup;

/// Pages that the check of a new foreign key reads ahead.
const READ_AHEAD_PAGES: usize = 64;

/// Errors `DuplicateForeignKey` and `DuplicateCheck` if two of a table's own constraints have one name.
pub(crate) fn check_own_names(definition: &TableDefinition) -> Result<()> {
    let keys = definition.foreign_keys.iter().map(|key| &key.name);
    let checks = definition.checks.iter().map(|check| &check.name);
    if let Some(name) = first_double(keys) {
        return Err(TableError::DuplicateForeignKey { name });
    }
    match first_double(checks) {
        Some(name) => Err(TableError::DuplicateCheck { name }),
        None => Ok(()),
    }
}

fn first_double<'a>(names: impl Iterator<Item = &'a String> + Clone) -> Option<String> {
    let mut places = names.clone().enumerate();
    let is_double = |(at, name): &(usize, &String)| {
        let mut before = names.clone().take(*at);
        before.any(|other| same_name(other, name))
    };
    places.find(is_double).map(|(_, name)| name.clone())
}

/// The same of constraints of two tables of a database.
fn check_distinct_names(own: &TableDefinition, other: &TableDefinition) -> Result<()> {
    let taken = |key: &&ForeignKey| {
        let mut keys = other.foreign_keys.iter();
        keys.any(|other| same_name(&other.name, &key.name))
    };
    if let Some(key) = own.foreign_keys.iter().find(taken) {
        let name = key.name.clone();
        return Err(TableError::DuplicateForeignKey { name });
    }
    let taken = |check: &&CheckConstraint| {
        let mut checks = other.checks.iter();
        checks.any(|other| same_name(&other.name, &check.name))
    };
    match own.checks.iter().find(taken) {
        Some(check) => {
            let name = check.name.clone();
            Err(TableError::DuplicateCheck { name })
        }
        None => Ok(()),
    }
}

impl Catalog {
    /// Checks a foreign key against its parent, which is returned: `None` for the table itself.
    pub(crate) fn check_foreign_key(
        &self,
        foreign_key: &ForeignKey,
        child: &TableDefinition,
    ) -> Result<Option<Arc<Table>>> {
        if foreign_key.refers_to(&child.database, &child.name) {
            check_parent(foreign_key, child, child)?;
            return Ok(None);
        }
        let (database, table) = (
            &foreign_key.referenced_database,
            &foreign_key.referenced_table,
        );
        let parent = self.table(database, table);
        let parent = parent.map_err(|_| TableError::ForeignKeyMissingTable {
            table: table.clone(),
        })?;
        check_parent(foreign_key, child, &parent.definition)?;
        Ok(Some(parent))
    }

    /// The same of a foreign key whose parent need not be there yet (the variable `foreign_key_checks`).
    pub(crate) fn check_known_parent(
        &self,
        foreign_key: &ForeignKey,
        child: &TableDefinition,
    ) -> Result<()> {
        match self.check_foreign_key(foreign_key, child) {
            Err(TableError::ForeignKeyMissingTable { .. }) => Ok(()),
            checked => checked.map(drop),
        }
    }

    /// Error `DuplicateForeignKey` if another table of the database has the name of a foreign key that is not among the
    /// table's `old` ones.
    pub(crate) fn check_foreign_key_names(
        &self,
        child: &TableDefinition,
        old: &[ForeignKey],
    ) -> Result<()> {
        if self.is_temporary() {
            return Ok(());
        }
        let is_new = |key: &&ForeignKey| !old.iter().any(|other| other.name == key.name);
        let new: Vec<&ForeignKey> = child.foreign_keys.iter().filter(is_new).collect();
        if new.is_empty() {
            return Ok(());
        }
        for table in self.tables(&child.database)? {
            if table.definition.id == child.id {
                continue;
            }
            let keys = table.definition.foreign_keys.iter();
            let taken = |key: &&&ForeignKey| {
                let mut keys = keys.clone();
                keys.any(|other| same_name(&other.name, &key.name))
            };
            if let Some(key) = new.iter().find(taken) {
                let name = key.name.clone();
                return Err(TableError::DuplicateForeignKey { name });
            }
        }
        Ok(())
    }

    /// Error `DuplicateCheck` if another table of the database has the name of a CHECK that is not among the table's
    /// `old` ones.
    pub(crate) fn check_check_names(
        &self,
        definition: &TableDefinition,
        old: &[CheckConstraint],
    ) -> Result<()> {
        // Those of a temporary table are its own.
        if self.is_temporary() {
            return Ok(());
        }
        let is_new = |check: &&CheckConstraint| !old.iter().any(|other| other.name == check.name);
        let new: Vec<&CheckConstraint> = definition.checks.iter().filter(is_new).collect();
        if new.is_empty() {
            return Ok(());
        }
        for table in self.tables(&definition.database)? {
            if table.definition.id == definition.id {
                continue;
            }
            for other in &table.definition.checks {
                let mut new = new.iter();
                if let Some(check) = new.find(|check| same_name(&check.name, &other.name)) {
                    let name = check.name.clone();
                    return Err(TableError::DuplicateCheck { name });
                }
            }
        }
        Ok(())
    }

    /// Errors `DuplicateForeignKey` and `DuplicateCheck` if constraints of a database would have one name once these
    /// tables have their new names: names of constraints may follow those of tables.
    pub(crate) fn check_renamed_constraints(&self, renamed: &[Table]) -> Result<()> {
        for (at, table) in renamed.iter().enumerate() {
            let own = &table.definition;
            if own.foreign_keys.is_empty() && own.checks.is_empty() {
                continue;
            }
            check_own_names(own)?;
            for other in &renamed[..at] {
                if other.definition.database == own.database {
                    check_distinct_names(own, &other.definition)?;
                }
            }
            for other in self.tables(&own.database)? {
                let goes = |gone: &Table| gone.definition.id == other.definition.id;
                if !renamed.iter().any(goes) {
                    check_distinct_names(own, &other.definition)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a table under its new name fits the foreign keys that wait for this name: those of tables that do not
    /// change with it (`changes`).
    ///
    /// # Errors
    /// As [`check_parent`].
    pub(crate) fn check_waiting_children(
        &self,
        renamed: &TableDefinition,
        changes: impl Fn(u64) -> bool,
    ) -> Result<()> {
        let stays = |table: &&Arc<Table>| !changes(table.definition.id);
        for child in self.all_tables().iter().filter(stays) {
            let keys = child.definition.foreign_keys.iter();
            for key in keys.filter(|key| key.refers_to(&renamed.database, &renamed.name)) {
                check_parent(key, &child.definition, renamed)?;
            }
        }
        Ok(())
    }

    /// Error `ReferencedTable` if a table that stays refers to one of these, which go, unless `check` is off. The
    /// caller changes definitions.
    pub(crate) fn check_unreferenced(
        &self,
        going: &[(Arc<Table>, WriterLock)],
        check: bool,
    ) -> Result<()> {
        for (table, _) in going.iter().filter(|_| check) {
            let goes = |id: u64| going.iter().any(|(other, _)| other.definition.id == id);
            let mut children = self.referencing(table).into_iter();
            if let Some((child, key)) = children.find(|(child, _)| !goes(child.definition.id)) {
                return Err(TableError::ReferencedTable {
                    table: table.definition.name.clone(),
                    name: key.name,
                    child: child.definition.name.clone(),
                });
            }
        }
        Ok(())
    }

    /// The foreign keys that refer to a table, each with the table it belongs to. None refers to a temporary table,
    /// whatever its name.
    pub fn referencing(&self, parent: &Table) -> Vec<(Arc<Table>, ForeignKey)> {
        let TableDefinition { database, name, .. } = &parent.definition;
        let mut found = Vec::new();
        if parent.definition.is_temporary() {
            return found;
        }
        for table in self.all_tables() {
            for foreign_key in &table.definition.foreign_keys {
                if foreign_key.refers_to(database, name) {
                    found.push((Arc::clone(&table), foreign_key.clone()));
                }
            }
        }
        found
    }
}

/// The other tables that foreign keys of a table refer to.
pub(crate) fn parents_of(
    foreign_keys: &[ForeignKey],
    child: &TableDefinition,
) -> BTreeSet<QualifiedName> {
    let others = foreign_keys
        .iter()
        .filter(|key| !key.refers_to(&child.database, &child.name));
    others
        .map(|key| {
            let parent = (&key.referenced_database, &key.referenced_table);
            (parent.0.clone(), parent.1.clone())
        })
        .collect()
}

/// Error `NoParentRow` if a row of the child has no parent; `None`: the child is its own parent. Returns the rows of
/// the child.
pub(crate) fn check_rows(
    child: &Arc<Table>,
    foreign_key: &ForeignKey,
    parent: Option<&Arc<Table>>,
    progress: &dyn Progress,
) -> Result<u64> {
    let parent = parent.unwrap_or(child);
    let columns = referenced_positions(foreign_key, &parent.definition).unwrap_or_default();
    let mut cursor = child.clustered.scan(
        KeyRange::all(),
        Direction::Forward,
        ReadAhead::Pages(READ_AHEAD_PAGES),
    );
    let mut rows = 0;
    while let Some(leaf) = cursor.next_leaf()? {
        if progress.is_cancelled() {
            return Err(TableError::Interrupted);
        }
        rows += leaf.len() as u64;
        for entry in 0..leaf.len() {
            let row = child.decode_row(&child.view(leaf.value(entry))?)?;
            let values = foreign_key.columns.iter().map(|column| &row[*column]);
            if values.clone().any(Value::is_null) {
                continue;
            }
            let found = match Lookup::new(parent, &columns, values) {
                Some(lookup) => lookup.finds_any()?,
                None => false,
            };
            if !found {
                return Err(TableError::NoParentRow {
                    constraint: foreign_key.described(&child.definition),
                });
            }
        }
    }
    Ok(rows)
}
