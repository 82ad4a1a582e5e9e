//! The temporary tables of a session.
//!
//! ```text
//!   a name in a statement -> the session's own catalog, if it has tables -> the catalog of all sessions
//! ```
//!
//! A session that makes a temporary table gets a catalog of its own ([`Catalog::of_temporary_tables`]), and names are
//! looked up there first (`Session::table_names` of `session/table_names.rs`). Without such tables this is one
//! comparison. Names in views and in foreign keys mean tables of all sessions, whichever session uses them.
//!
//! **Plans.** A plan by the text of its statement holds for what names meant when it was made. So the version of the
//! session's own catalog is one of the [`circumstances`](super::circumstances) of its plans. While it has
//! temporary tables, the session neither takes plans that all sessions share, nor gives them any.
//!
//! **Rights.** The session may do everything with its temporary tables. To make one takes CREATE TEMPORARY TABLES for
//! the database.
//!
//! **Locks.** No other session waits for a temporary table, and none keeps it from being changed: neither LOCK TABLES,
//! nor FLUSH TABLES WITH READ LOCK, nor READ ONLY.
//!
//! A table that is dropped is gone at once. Its pages are freed when the transaction that has used it has ended
//! ([`TemporaryTables::free_unused`]). All of them go with the session, or when it starts over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sheaf_table::{Catalog, CreateTable, QualifiedName, Table, TableDefinition};

use crate::error::{Result, SqlError};

/// The most temporary tables of a session, with those that were dropped and are still used by its transaction. Each
/// takes pages and memory of all sessions.
const MAX_TEMPORARY_TABLES: usize = 1_000;

/// How long a session that ends waits for its own last commit, of which another thread may do the rest.
const FREE_WAIT: Duration = Duration::from_secs(30);

/// See the module's comment.
#[derive(Default)]
pub(crate) struct TemporaryTables {
    /// Made with the first table. It stays when all are gone: its version never comes again.
    catalog: Option<Arc<Catalog>>,
    /// How many tables there are.
    count: usize,
    /// Tables that were dropped, and whose trees are not free yet.
    dropped: Vec<Arc<Table>>,
}

impl TemporaryTables {
    /// Drops temporary tables that are there. Their trees are freed when the open transaction has ended.
    pub(crate) fn drop_tables(&mut self, names: &[QualifiedName]) {
        for name in names {
            self.drop_table(name);
        }
    }

    pub(crate) fn has_any(&self) -> bool {
        self.count > 0
    }

    /// Whether there are tables, or were some.
    pub(crate) fn is_used(&self) -> bool {
        self.catalog.is_some()
    }

    /// Changes with each definition and all statistics of temporary tables.
    pub(crate) fn version(&self) -> u64 {
        let catalog = self.catalog.as_ref();
        catalog.map_or(0, |catalog| catalog.schema_version())
    }

    /// The catalog, if there are tables in it.
    pub(crate) fn names(&self) -> Option<&Arc<Catalog>> {
        self.catalog.as_ref().filter(|_| self.has_any())
    }

    /// Adds an empty table. Errors 1041 beyond [`MAX_TEMPORARY_TABLES`], 1050, and the MySQL error for whatever is
    /// wrong with the request. `all`: the catalog of all sessions.
    pub(crate) fn create(&mut self, all: &Catalog, request: CreateTable) -> Result<()> {
        if self.count + self.dropped.len() >= MAX_TEMPORARY_TABLES {
            return Err(SqlError::out_of_memory(&format!(
                "a session has at most {MAX_TEMPORARY_TABLES} temporary tables; DROP TEMPORARY TABLE makes room, and COMMIT"
            )));
        }
        let catalog = self
            .catalog
            .get_or_insert_with(|| all.of_temporary_tables());
        catalog.create_table(request)?;
        self.count = catalog.count_tables();
        Ok(())
    }

    /// The catalog of temporary tables, whether it has some or not.
    pub(crate) fn catalog(&self) -> Option<&Arc<Catalog>> {
        self.catalog.as_ref()
    }

    /// At the end of a statement: frees what dropped tables had. One that the open transaction has used is locked by it
    /// until it ends.
    pub(crate) fn free_unused(&mut self) {
        if !self.dropped.is_empty() {
            self.free_dropped(Duration::ZERO);
        }
    }

    pub(crate) fn drop_table(&mut self, (database, name): &QualifiedName) {
        let Some(catalog) = &self.catalog else {
            return;
        };
        self.dropped.extend(catalog.take_temporary(database, name));
        self.count = catalog.count_tables();
    }

    /// Frees what dropped tables had, waiting at most `wait` for all of them. What is still used is left.
    fn free_dropped(&mut self, wait: Duration) {
        if let Some(catalog) = &self.catalog {
            let end = Instant::now() + wait;
            self.dropped.retain(|table| {
                let left = end.saturating_duration_since(Instant::now());
                catalog.free_temporary(table, left).is_err()
            });
        }
    }

    /// Drops all tables. The session's transaction has ended.
    pub(crate) fn drop_all(&mut self) {
        let Some(catalog) = self.catalog.as_ref().map(Arc::clone) else {
            return;
        };
        for table in catalog.all_tables() {
            let TableDefinition { database, name, .. } = &table.definition;
            self.drop_table(&(database.clone(), name.clone()));
        }
        self.free_dropped(FREE_WAIT);
        for table in self.dropped.drain(..) {
            tracing::warn!(
                ?table,
                "the pages of a temporary table are free after a restart"
            );
        }
    }
}
