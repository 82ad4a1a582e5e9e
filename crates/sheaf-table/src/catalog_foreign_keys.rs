//! Foreign keys in the catalog: adding and dropping them, and who refers to whom.
//!
//! A foreign key is part of its table's definition. What refers to a table is not written down: it is found by looking at
//! the definitions, which are all in memory.

use std::sync::Arc;
use std::time::Duration;

use sheaf_storage::{Direction, KeyRange, ReadAhead};

use crate::catalog::Catalog;
use crate::change_set::Lookup;
use crate::definition_check::index_for;
use crate::error::{Result, TableError};
use crate::foreign_key::{
    ForeignKey, ForeignKeySpec, check_parent, leading_index, referenced_positions,
    resolve_foreign_key,
};
use crate::progress::Progress;
use crate::schema::{TableDefinition, same_name};
use crate::table::Table;
use crate::value::Value;

/// Pages that the check of a new foreign key reads ahead.
const READ_AHEAD_PAGES: usize = 64;

impl Catalog {
    /// Adds a foreign key, and an index for it if there is none. With `check`, the parent must be there and fit, and each
    /// row must have one. Waits as [`Self::create_index`] does.
    ///
    /// # Errors
    /// `NoParentRow`, and the MySQL error for whatever is wrong with the request.
    #[allow(
        clippy::too_many_arguments,
        reason = "what an index build takes, and the constraint"
    )]
    pub fn add_foreign_key(
        &self,
        database: &str,
        table: &str,
        spec: &ForeignKeySpec,
        check: bool,
        memory_bytes: usize,
        progress: &dyn Progress,
        wait: Duration,
    ) -> Result<()> {
        let definition = self.table(database, table)?.definition.clone();
        let foreign_key = resolve_foreign_key(&definition, spec)?;
        if check {
            self.check_foreign_key(&foreign_key, &definition)?;
        }
        if leading_index(&definition, &foreign_key.columns).is_none() {
            let index = index_for(&definition, spec);
            self.create_index(database, table, index, memory_bytes, progress, wait)?;
        }
        let (table, writer) = self.lock_writer(database, table, wait)?;
        let mut definition = table.definition.clone();
        let foreign_key = resolve_foreign_key(&definition, spec)?;
        definition.foreign_keys.push(foreign_key.clone());
        if check {
            let parent = self.check_foreign_key(&foreign_key, &definition)?;
            check_rows(&table, &definition, &foreign_key, &parent, progress)?;
        }
        self.redefine(&writer, &table, definition, wait).map(drop)
    }

    /// Drops a foreign key; its index stays. Waits at most `wait`.
    ///
    /// # Errors
    /// `CannotDropIndex` if there is none.
    pub fn drop_foreign_key(
        &self,
        database: &str,
        table: &str,
        name: &str,
        wait: Duration,
    ) -> Result<()> {
        let (table, writer) = self.lock_writer(database, table, wait)?;
        let mut definition = table.definition.clone();
        let known = |other: &ForeignKey| same_name(&other.name, name);
        let Some(position) = definition.foreign_keys.iter().position(known) else {
            return Err(TableError::CannotDropIndex {
                name: name.to_string(),
            });
        };
        definition.foreign_keys.remove(position);
        self.redefine(&writer, &table, definition, wait).map(drop)
    }

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

    /// The foreign keys that refer to a table, each with the table it belongs to.
    pub fn referencing(&self, parent: &Table) -> Vec<(Arc<Table>, ForeignKey)> {
        let TableDefinition { database, name, .. } = &parent.definition;
        let mut found = Vec::new();
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

/// Error `NoParentRow` if a row of the child has no parent; `None`: the child is its own parent.
fn check_rows(
    child: &Arc<Table>,
    definition: &TableDefinition,
    foreign_key: &ForeignKey,
    parent: &Option<Arc<Table>>,
    progress: &dyn Progress,
) -> Result<()> {
    let parent = parent.as_ref().unwrap_or(child);
    let columns = referenced_positions(foreign_key, &parent.definition).unwrap_or_default();
    let mut cursor = child.clustered.scan(
        KeyRange::all(),
        Direction::Forward,
        ReadAhead::Pages(READ_AHEAD_PAGES),
    );
    while let Some(leaf) = cursor.next_leaf()? {
        if progress.is_cancelled() {
            return Err(TableError::Interrupted);
        }
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
                    constraint: foreign_key.described(definition),
                });
            }
        }
    }
    Ok(())
}
