//! A table that comes with its rows in one transaction, where followers are told of rows one by one.
//!
//! ```text
//!   trees without a name --> rows --> the definition --> commit --> the table is there
//!                            |------ one transaction ------|
//! ```
//!
//! A bulk load (`build/bulk_load.rs`) is faster, but the log has none of its rows. A crash before the commit leaves
//! trees that no definition names: the next start drops them. So does a [`NewTable`] that is dropped before.

use std::sync::Arc;

use sheaf_storage::Transaction;
use sheaf_storage::sync::MutexGuard;
use sheaf_types::temporal::TimeZone;

use crate::catalog::{Catalog, Definitions, WriteGuard, trees_of};
use crate::definition::schema::CreateTable;
use crate::error::Result;
use crate::table::Table;

/// See the [module](self).
pub struct NewTable {
    catalog: Arc<Catalog>,
    table: Arc<Table>,
    check_foreign_keys: bool,
    is_there: bool,
}

impl NewTable {
    /// Makes the trees, and opens the table for its rows, in their `time_zone`. No other session knows it.
    ///
    /// # Errors
    /// As [`Catalog::create_table`].
    pub fn prepare(
        catalog: &Arc<Catalog>,
        request: CreateTable,
        time_zone: TimeZone,
    ) -> Result<(NewTable, WriteGuard)> {
        let check_foreign_keys = request.check_foreign_keys;
        let new = NewTable {
            table: Arc::new(catalog.prepare_table(request)?),
            catalog: Arc::clone(catalog),
            check_foreign_keys,
            is_there: false,
        };
        let guard = WriteGuard::of_new(Arc::clone(&new.table))?;
        let guard = guard.used_as(&new.table.in_time_zone(time_zone));
        Ok((new, guard))
    }

    /// The table, as the catalog will have it.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Enters the table, behind its rows in their transaction. That is to [commit or stop](Transaction::commit_or_stop)
    /// next: no other definition changes until what is returned goes. The table's parents are locked.
    ///
    /// # Errors
    /// As [`Catalog::create_table`]: others may have made and dropped tables since it was prepared.
    pub fn enter(&mut self, transaction: &mut Transaction) -> Result<EnteredTable<'_>> {
        let catalog = &self.catalog;
        let definitions = catalog.definitions.lock();
        catalog.check_new(&self.table, self.check_foreign_keys)?;
        let tree = catalog.storage().catalog_tree();
        catalog.put_new(&tree, transaction, &definitions, &self.table)?;
        Ok(EnteredTable {
            catalog,
            table: &self.table,
            is_there: &mut self.is_there,
            _definitions: definitions,
        })
    }
}

impl Drop for NewTable {
    fn drop(&mut self) {
        if self.is_there {
            return;
        }
        let definition = &self.table.definition;
        self.catalog.drop_trees(&trees_of(definition));
        if definition.auto_increment_column().is_some() {
            self.catalog.forget_auto_increment(definition.id);
        }
    }
}

/// A table whose transaction is about to commit.
pub struct EnteredTable<'n> {
    catalog: &'n Catalog,
    table: &'n Arc<Table>,
    is_there: &'n mut bool,
    _definitions: MutexGuard<'n, Definitions>,
}

impl EnteredTable<'_> {
    /// It has committed: other sessions find the table.
    pub fn has_committed(self) {
        self.catalog.show_new(self.table);
        *self.is_there = true;
    }
}
