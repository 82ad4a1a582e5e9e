//! Bulk load: fills an empty table, or one that it makes, by writing its trees from left to right
//! (`build/tree_load.rs`).
//!
//! The loader holds the table's writer lock; readers see an empty table until the new trees take the place of the old
//! ones, in one change of the catalog. A table that is made for its rows is not there before that change. Dropped
//! before it, by an error or on purpose, a load leaves nothing behind: the trees are freed, and the temporary files
//! have no names.

use std::sync::Arc;

use sheaf_types::{Value, temporal::TimeZone};

use crate::build::tree_load::{BulkLoadOptions, TreeLoad};
use crate::catalog::foreign_keys::{check_rows, parents_of};
use crate::catalog::{Catalog, Redefinition, WriteGuard, trees_of};
use crate::definition::schema::{CreateTable, TableDefinition};
use crate::error::{Result, TableError};
use crate::lock::table_lock::LockRequest;
use crate::progress::Progress;
use crate::table::auto_increment::AutoIncrementSeries;
use crate::table::{InsertOutcome, Table};

/// A bulk load in progress: rows in, trees out. Dropped without [`finish`](Self::finish): nothing remains.
pub struct BulkLoad {
    // Dropped in this order: the trees go before another writer comes.
    trees: TreeLoad,
    catalog: Arc<Catalog>,
    progress: Arc<dyn Progress>,
    guard: WriteGuard,
    /// The table is new.
    new: Option<NewTable>,
}

/// A table that the load enters.
struct NewTable {
    check_foreign_keys: bool,
}

impl BulkLoad {
    /// Starts loading the table, which must be empty.
    ///
    /// # Errors
    /// `TableNotEmpty`, and whatever the storage reports.
    pub fn new(
        catalog: &Arc<Catalog>,
        table: WriteGuard,
        options: BulkLoadOptions,
        progress: Arc<dyn Progress>,
    ) -> Result<BulkLoad> {
        if !table.is_empty()? {
            return Err(TableError::TableNotEmpty {
                table: table.definition.name.clone(),
            });
        }
        progress.begin(&format!("loading {}", table.definition.name), None);
        let trees = TreeLoad::new(catalog.storage(), Arc::clone(&table), Vec::new(), options)?;
        Ok(BulkLoad {
            trees,
            catalog: Arc::clone(catalog),
            progress,
            guard: table,
            new: None,
        })
    }

    /// Starts loading a table that comes with its rows: [`finish`](Self::finish) enters it with all of them.
    /// `time_zone`: of the rows that are [appended](Self::append).
    ///
    /// # Errors
    /// As [`Catalog::create_table`].
    pub fn of_new_table(
        catalog: &Arc<Catalog>,
        request: CreateTable,
        time_zone: TimeZone,
        options: BulkLoadOptions,
        progress: Arc<dyn Progress>,
    ) -> Result<BulkLoad> {
        let check_foreign_keys = request.check_foreign_keys;
        let table = catalog.prepare_table(request)?.seen_in(time_zone);
        progress.begin(&format!("loading {}", table.definition.name), None);
        let empty = trees_of(&table.definition);
        let guard =
            WriteGuard::of_new(Arc::new(table)).inspect_err(|_| catalog.drop_trees(&empty))?;
        let trees = TreeLoad::new(catalog.storage(), Arc::clone(&guard), empty, options)?;
        Ok(BulkLoad {
            trees,
            catalog: Arc::clone(catalog),
            progress,
            guard,
            new: Some(NewTable { check_foreign_keys }),
        })
    }

    /// Chooses what AUTO_INCREMENT gives out to the rows; otherwise all values.
    pub fn give_out(&mut self, series: AutoIncrementSeries) {
        self.trees.series = series;
    }

    /// The table as the rows are to fit it.
    pub fn table(&self) -> &Arc<Table> {
        &self.guard
    }

    /// Adds a row: one value per column, of the column's type. NULL in the AUTO_INCREMENT column asks for the next
    /// value. After an error the load can only be dropped.
    ///
    /// # Errors
    /// `DuplicateKey` (if the rows are in key order; otherwise `finish` finds it), `Interrupted`, and whatever the
    /// storage reports.
    pub fn append(&mut self, row: &[Value]) -> Result<InsertOutcome> {
        self.trees.append(row, &*self.progress)
    }

    /// Sorts, builds, and puts the new trees in place. Returns the number of rows. `wait`: for the readers of the empty
    /// table, or in a new table for the writers of each of its parents.
    ///
    /// # Errors
    /// `DuplicateKey`, `Interrupted`, `LockWaitTimeout` if the empty table is being read for long, and whatever the
    /// storage reports; for a new table also `NoParentRow` and what [`Catalog::create_table`] reports. The table is
    /// empty then, and a new one is not there.
    pub fn finish<'w>(self, wait: impl Into<LockRequest<'w>>) -> Result<u64> {
        let wait = wait.into();
        let BulkLoad {
            trees,
            catalog,
            progress,
            mut guard,
            new,
        } = self;
        let mut loaded = trees.finish(&*progress)?;
        loaded.definition = loaded.definition.in_time_zone(TimeZone::UTC);
        guard.unlock_shared();
        let kept = trees_of(&loaded.definition);
        let mut left_over = loaded.trees;
        let entered = match new {
            None => {
                let entry = Redefinition::new(&guard.writer, &guard.table, loaded.definition);
                let entered = catalog.redefine(vec![entry], wait);
                entered.map(|()| left_over.extend(trees_of(&guard.table.definition)))
            }
            Some(new) => new.enter(&catalog, &guard, loaded.definition, &*progress, wait),
        };
        if entered.is_ok() {
            left_over.retain(|tree| !kept.contains(tree));
        }
        catalog.drop_trees(&left_over);
        entered.map(|()| loaded.rows)
    }
}

impl NewTable {
    /// Enters the table, whose rows all have their parents. These stay until it is known that they are ones.
    fn enter(
        self,
        catalog: &Catalog,
        prepared: &Table,
        definition: TableDefinition,
        progress: &dyn Progress,
        wait: LockRequest<'_>,
    ) -> Result<()> {
        let state = prepared.state.clone();
        let table = Arc::new(Table::open(
            catalog.storage(),
            catalog.memory(),
            definition,
            state,
        )?);
        let definition = &table.definition;
        let mut parents = Vec::new();
        if self.check_foreign_keys {
            let names = parents_of(&definition.foreign_keys, definition);
            parents = catalog.lock_writers(names, wait)?;
            for key in &definition.foreign_keys {
                let parent = catalog.check_foreign_key(key, definition)?;
                check_rows(&table, key, parent.as_ref(), progress)?;
            }
        }
        let entered = catalog.enter_new(&table, self.check_foreign_keys);
        drop(parents);
        entered
    }
}
