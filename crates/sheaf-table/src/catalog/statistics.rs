//! ANALYZE TABLE: collecting statistics, keeping them, and telling when they are due again.
//!
//! An analysis holds the table's shared lock only, so rows change meanwhile. What it found replaces the old statistics
//! in the catalog tree and in memory at once.

use std::sync::Arc;
use std::time::Duration;

use crate::catalog::Catalog;
use crate::catalog::analyze::{analyze, analyze_columns};
use crate::error::{Result, TableError};
use crate::lock::table_lock::LockRequest;
use crate::statistics::{AnalyzeOptions, ColumnStatistics, MAX_BUCKETS, TableStatistics};
use crate::table::Table;

/// When [`Catalog::analyze_step`] analyzes a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AutoAnalyze {
    /// So many of its rows changed since the last time, as a share of them.
    pub changed_share: f64,
    /// And at least so many.
    pub changed_rows: u64,
}

impl Default for AutoAnalyze {
    fn default() -> Self {
        // InnoDB's share; small tables are left to index dives, which are cheap there.
        AutoAnalyze {
            changed_share: 0.1,
            changed_rows: 1000,
        }
    }
}

impl AutoAnalyze {
    fn is_due(&self, table: &Table) -> bool {
        let changed = table.changed_rows();
        let rows = table.row_count_estimate().max(1);
        changed >= self.changed_rows && changed as f64 >= self.changed_share * rows as f64
    }
}

impl Catalog {
    /// [`Self::analyze_with`] the usual options.
    ///
    /// # Errors
    /// As there.
    pub fn analyze<'w>(
        &self,
        database: &str,
        table: &str,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<()> {
        self.analyze_with(database, table, &AnalyzeOptions::default(), wait)
            .map(drop)
    }

    /// Collects a table's statistics, keeps and returns them. Histograms that were dropped are not made again.
    ///
    /// # Errors
    /// `UnknownDatabase`, `UnknownTable`, `LockWaitTimeout`, `Interrupted`, and whatever the storage reports.
    pub fn analyze_with<'w>(
        &self,
        database: &str,
        table: &str,
        options: &AnalyzeOptions,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<Arc<TableStatistics>> {
        let request = wait.into();
        let table = self.open_for_read(database, table, request)?;
        let counted = table.state.counted_changes();
        let earlier = table.statistics();
        let found = analyze(&table, options, earlier.as_deref(), request.interrupt)?;
        self.redefine_statistics(&table, |_| found.clone())?;
        table.state.forget_changes(counted);
        Ok(Arc::new(found))
    }

    /// Makes histograms of `buckets` buckets, at most [`MAX_BUCKETS`], for some columns, by position; the rest of the
    /// statistics stays as it is. Later analyses make them anew with as many buckets.
    ///
    /// # Errors
    /// As [`Self::analyze_with`].
    pub fn update_histograms<'w>(
        &self,
        database: &str,
        table: &str,
        columns: &[usize],
        buckets: usize,
        options: &AnalyzeOptions,
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<()> {
        let request = wait.into();
        let table = self.open_for_read(database, table, request)?;
        let buckets = buckets.clamp(1, MAX_BUCKETS);
        let found = analyze_columns(&table, columns, buckets, options, request.interrupt)?;
        self.redefine_statistics(&table, |earlier| {
            let mut statistics = statistics_of(&table, earlier);
            for (column, found) in found {
                statistics.columns[column] = found;
            }
            statistics
        })
    }

    /// Drops the histograms of some columns, by position, until [`Self::update_histograms`] makes them anew. Returns,
    /// for each of the columns, whether there was one.
    ///
    /// # Errors
    /// As [`Self::analyze_with`].
    pub fn drop_histograms<'w>(
        &self,
        database: &str,
        table: &str,
        columns: &[usize],
        wait: impl Into<LockRequest<'w>>,
    ) -> Result<Vec<bool>> {
        let table = self.open_for_read(database, table, wait)?;
        let mut dropped = Vec::new();
        self.redefine_statistics(&table, |earlier| {
            let mut statistics = statistics_of(&table, earlier);
            for column in columns {
                let column = &mut statistics.columns[*column];
                column.wanted_buckets = 0;
                dropped.push(column.histogram.take().is_some());
            }
            statistics
        })?;
        Ok(dropped)
    }

    /// Analyzes the first table for which that is due, and on which no DDL is going on; false: there is none. To be
    /// called by a background thread, again and again, for as long as automatic analysis is switched on.
    ///
    /// # Errors
    /// What the storage reports.
    pub fn analyze_step(&self, due: &AutoAnalyze, options: &AnalyzeOptions) -> Result<bool> {
        let tables = self.all_tables();
        for table in tables.iter().filter(|table| due.is_due(table)) {
            let definition = &table.definition;
            let (database, name) = (&definition.database, &definition.name);
            match self.analyze_with(database, name, options, Duration::ZERO) {
                Ok(_) => return Ok(true),
                // Another session is changing it, or has dropped it.
                Err(
                    TableError::LockWaitTimeout
                    | TableError::UnknownTable { .. }
                    | TableError::UnknownDatabase { .. },
                ) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

/// A copy of a table's statistics that has all columns.
fn statistics_of(table: &Table, earlier: Option<&TableStatistics>) -> TableStatistics {
    let mut statistics = earlier.cloned().unwrap_or_default();
    if earlier.is_none() {
        statistics.rows = table.row_count_estimate();
    }
    let columns = table.definition.columns.len();
    statistics
        .columns
        .resize_with(columns, ColumnStatistics::default);
    statistics
}
