//! Views in the catalog.
//!
//! Views share the names of their database with its tables. They have no rows and no trees, and nobody locks them: a
//! statement takes the definition that is there when it looks the name up, and goes on with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sheaf_storage::{Transaction, Tree};

use crate::catalog::database::Database;
use crate::catalog::definition_check::check_table_name;
use crate::catalog::records::{CHUNK_BYTES, header, kind, put};
use crate::catalog::view::{View, ViewDefinition};
use crate::catalog::{Catalog, QualifiedName};
use crate::definition::schema::Column;
use crate::error::{Result, TableError};
use crate::table::catalog_memory::CatalogMemory;

impl Catalog {
    /// A view; `None` if there is none of this name.
    pub fn view(&self, database: &str, name: &str) -> Option<Arc<View>> {
        let databases = self.databases.read();
        databases.get(database)?.views.get(name).cloned()
    }

    /// The columns of a table or of a view; `None` if there is none of this name.
    pub fn columns(&self, database: &str, name: &str) -> Option<Vec<Column>> {
        let databases = self.databases.read();
        let known = databases.get(database)?;
        match known.views.get(name) {
            Some(view) => Some(view.definition.columns.clone()),
            None => Some(known.tables.get(name)?.definition.columns.clone()),
        }
    }

    /// The views of a database, sorted by name.
    ///
    /// # Errors
    /// `UnknownDatabase`.
    pub fn views(&self, database: &str) -> Result<Vec<Arc<View>>> {
        match self.databases.read().get(database) {
            Some(database) => Ok(database.views.values().cloned().collect()),
            None => Err(TableError::UnknownDatabase {
                name: database.to_string(),
            }),
        }
    }

    /// Makes a view. `replaces`: in the place of one of its name, if there is one.
    ///
    /// # Errors
    /// `UnknownDatabase`, `TableExists`, `NotView` where a table would have to make room, `IncorrectTableName`,
    /// `NameTooLong`, `DefinitionsTooLarge`.
    pub fn put_view(&self, definition: ViewDefinition, replaces: bool) -> Result<()> {
        let (database, name) = (definition.database.clone(), definition.name.clone());
        check_table_name(&name)?;
        let definitions = self.definitions.lock();
        {
            let databases = self.databases.read();
            let known = databases
                .get(&database)
                .ok_or_else(|| TableError::UnknownDatabase {
                    name: database.clone(),
                })?;
            match (
                known.tables.contains_key(&name),
                known.views.contains_key(&name),
            ) {
                (true, _) if replaces => {
                    return Err(TableError::NotView {
                        database: database.clone(),
                        table: name,
                    });
                }
                (true, _) => return Err(TableError::TableExists { table: name }),
                (_, true) if !replaces => return Err(TableError::TableExists { table: name }),
                _ => {}
            }
        }
        let view = View::new(&self.memory, definition)?;
        self.change(|tree, transaction| {
            let header = header(definitions.next_table_id);
            put(tree, transaction, &[kind::HEADER], &header)?;
            put_view(tree, transaction, &view.definition)
        })?;
        let mut databases = self.databases.write();
        let database = databases.entry(database).or_default();
        database.views.insert(name, Arc::new(view));
        self.advance_schema_version();
        Ok(())
    }

    /// Drops views, given with their databases: all or none.
    ///
    /// # Errors
    /// `CannotDropTable` if one is not there, `NotView` if it is a table.
    pub fn drop_views(&self, names: &[QualifiedName]) -> Result<()> {
        let names: BTreeSet<&QualifiedName> = names.iter().collect();
        let _changing = self.definitions.lock();
        for (database, name) in &names {
            self.check_is_view(database, name)?;
        }
        self.change(|tree, transaction| {
            let mut names = names.iter();
            names.try_for_each(|(database, name)| delete_view(tree, transaction, database, name))
        })?;
        let mut databases = self.databases.write();
        for (database, name) in names {
            if let Some(database) = databases.get_mut(database) {
                database.views.remove(name);
            }
        }
        self.advance_schema_version();
        Ok(())
    }

    /// Gives a view another name in its database.
    ///
    /// # Errors
    /// `CannotDropTable` if it is not there, `NotView` if it is a table, `TableExists`, and those of a wrong name.
    pub fn rename_view(&self, database: &str, from: &str, to: &str) -> Result<()> {
        check_table_name(to)?;
        let _changing = self.definitions.lock();
        self.check_is_view(database, from)?;
        self.check_is_free(database, to)?;
        let Some(view) = self.view(database, from) else {
            return Ok(());
        };
        let definition = ViewDefinition {
            name: to.to_string(),
            ..view.definition.clone()
        };
        let renamed = View::known(&self.memory, definition);
        self.change(|tree, transaction| {
            delete_view(tree, transaction, database, from)?;
            put_view(tree, transaction, &renamed.definition)
        })?;
        let mut databases = self.databases.write();
        let views = &mut databases.entry(database.to_string()).or_default().views;
        views.remove(from);
        views.insert(to.to_string(), Arc::new(renamed));
        self.advance_schema_version();
        Ok(())
    }

    fn check_is_view(&self, database: &str, name: &str) -> Result<()> {
        let (database, table) = (database.to_string(), name.to_string());
        let databases = self.databases.read();
        let known = databases.get(&database);
        match known {
            Some(known) if known.views.contains_key(name) => Ok(()),
            Some(known) if known.tables.contains_key(name) => {
                Err(TableError::NotView { database, table })
            }
            _ => Err(TableError::CannotDropTable { database, table }),
        }
    }
}

/// Enters the views that the catalog tree holds, each in its database.
///
/// # Errors
/// `CatalogTooNew`, `Corrupt`, `UnknownDatabase`.
pub(super) fn restore_views(
    memory: &CatalogMemory,
    databases: &mut BTreeMap<String, Database>,
    entries: Vec<(String, String, Vec<u8>)>,
) -> Result<()> {
    for (database, name, bytes) in entries {
        let view = ViewDefinition::decode(&bytes, &database, &name)?;
        let known = databases.get_mut(&database);
        let known = known.ok_or(TableError::UnknownDatabase { name: database })?;
        known
            .views
            .insert(name, Arc::new(View::known(memory, view)));
    }
    Ok(())
}

fn view_key(database: &str, name: &str, chunk: usize) -> Vec<u8> {
    let chunk = (chunk as u16).to_be_bytes();
    [
        &[kind::VIEW],
        database.as_bytes(),
        &[0],
        name.as_bytes(),
        &[0],
        &chunk,
    ]
    .concat()
}

fn put_view(tree: &Tree, transaction: &mut Transaction, view: &ViewDefinition) -> Result<()> {
    let mut chunks = 0;
    for chunk in view.encode().chunks(CHUNK_BYTES) {
        let key = view_key(&view.database, &view.name, chunks);
        put(tree, transaction, &key, chunk)?;
        chunks += 1;
    }
    delete_chunks(tree, transaction, (&view.database, &view.name), chunks)
}

/// Deletes a view's entry.
pub(super) fn delete_view(
    tree: &Tree,
    transaction: &mut Transaction,
    database: &str,
    name: &str,
) -> Result<()> {
    delete_chunks(tree, transaction, (database, name), 0)
}

fn delete_chunks(
    tree: &Tree,
    transaction: &mut Transaction,
    (database, name): (&str, &str),
    first: usize,
) -> Result<()> {
    let mut chunk = first;
    while tree.delete(transaction, &view_key(database, name, chunk))? {
        chunk += 1;
    }
    Ok(())
}
