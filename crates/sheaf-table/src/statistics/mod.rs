//! Statistics of a table, as ANALYZE TABLE collects them: what the optimizer knows of the data without looking at it.
//!
//! ```text
//!   clustered tree ── random leaves ──┬── all their rows:   NULLs, widths, distinct values of every column
//!                                     └── 30,000 of them:   histogram, correlation with the clustered order
//!   each index     ── random leaves ───── their entries:    distinct values of every prefix, width
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | [`distinct`], [`hyper_log_log`] | the number of distinct values of a column, from a sample or of all rows |
//! | [`index_prefixes`] | that of the prefixes of an index, from the order of its entries |
//! | [`histogram`], [`column_key`] | the distribution of a column's values, by their index keys |
//! | [`correlation`] | the order of a column's values against that of the rows |
//! | [`selectivity`] | the share of rows that a condition accepts |
//! | [`codec`], [`record`] | statistics as bytes, and as entries of the catalog |
//!
//! Statistics are what the last analysis found, also after a restart. A user asks for an analysis, or the engine makes
//! one when enough rows have changed ([`AutoAnalyze`](crate::AutoAnalyze)). An analysis reads a bounded number of
//! leaves, the same ones for the same seed, so it takes seconds for a table of any size (`catalog/analyze.rs`). A table
//! of at most that many leaves is read as a whole, and what is found is exact.
//! [`Table::changed_rows`](crate::table::Table::changed_rows) tells how far the data has moved on since.

pub(crate) mod codec;
pub mod column_key;
pub(crate) mod correlation;
pub mod distinct;
pub mod histogram;
pub mod hyper_log_log;
pub(crate) mod index_prefixes;
pub(crate) mod record;
mod selectivity;

use std::collections::BTreeMap;

pub use column_key::ColumnKey;
pub use distinct::DistinctEstimate;
pub use histogram::{DEFAULT_BUCKETS, Histogram, MAX_BUCKETS};
pub use selectivity::ColumnEstimator;

use crate::error::{Result, TableError};
use crate::lock::table_lock::Interrupt;

/// Leaves that are read of each tree, unless the statement says otherwise.
const SAMPLE_LEAVES: usize = 1024;

/// How a table is analyzed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnalyzeOptions {
    /// Chooses the sample: the same seed, the same leaves.
    pub seed: u64,
    /// The most leaves that are read of each tree; `usize::MAX`: all.
    pub sample_leaves: usize,
    /// The time of the statement, to be shown with what it found: microseconds since 1970-01-01 00:00:00 UTC.
    pub now: i64,
}

/// Looks whether the statement shall stop, once for each leaf that is read.
///
/// # Errors
/// `Interrupted`.
pub(crate) fn check(interrupt: Interrupt<'_>) -> Result<()> {
    match interrupt {
        Some(interrupt) if interrupt() => Err(TableError::Interrupted),
        _ => Ok(()),
    }
}

impl Default for AnalyzeOptions {
    fn default() -> Self {
        AnalyzeOptions {
            seed: 0,
            sample_leaves: SAMPLE_LEAVES,
            now: 0,
        }
    }
}

/// What ANALYZE TABLE found out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableStatistics {
    pub rows: u64,
    /// Average bytes of a row in the clustered tree, key included.
    pub row_bytes: f64,
    /// By index id.
    pub indexes: BTreeMap<u32, IndexStatistics>,
    /// In the order of the table's columns. None at all in statistics that an older version collected.
    pub columns: Vec<ColumnStatistics>,
}

/// What is known of an index, in memory.
const INDEX_BYTES: usize = 200;

impl TableStatistics {
    /// Those of the table when its columns have other positions. `sources`: for each column the position before.
    pub(crate) fn with_columns(&self, sources: &[Option<usize>]) -> TableStatistics {
        let before = |source: &Option<usize>| {
            let known = source.and_then(|source| self.columns.get(source));
            known.cloned().unwrap_or_default()
        };
        let columns = match self.columns.is_empty() {
            true => Vec::new(),
            false => sources.iter().map(before).collect(),
        };
        TableStatistics {
            columns,
            ..self.clone()
        }
    }

    /// About how much memory they take.
    pub fn memory_bytes(&self) -> usize {
        let of_columns = self.columns.iter().map(ColumnStatistics::memory_bytes);
        let indexes = self.indexes.len() * INDEX_BYTES;
        size_of::<Self>() + indexes + of_columns.sum::<usize>()
    }
}

/// What is known of an index.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IndexStatistics {
    /// Estimated distinct values of the first 1, 2, ... declared parts; NULL is a value.
    pub distinct_prefixes: Vec<u64>,
    /// Average bytes of an entry, key and payload.
    pub entry_bytes: f64,
}

/// What is known of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnStatistics {
    /// Share of the rows, 0 to 1.
    pub null_share: f64,
    /// Distinct values, NULL not counted.
    pub distinct: DistinctEstimate,
    /// Average bytes in the row of a value that is not NULL; of a long value outside of its row, all its bytes.
    pub average_bytes: f64,
    /// -1 to 1: whether the values ascend (1), descend (-1), or neither, in the clustered order.
    pub correlation: f64,
    /// Buckets that the next analysis is to make; 0: no histogram, because it was dropped.
    pub wanted_buckets: usize,
    /// `None`: it was dropped, or no value was found to make it from.
    pub histogram: Option<Histogram>,
    /// Share of the leaves that the histogram was made from, 0 to 1.
    pub sampling_rate: f64,
    /// When: microseconds since 1970-01-01 00:00:00 UTC.
    pub collected_at: i64,
}

impl ColumnStatistics {
    fn memory_bytes(&self) -> usize {
        let histogram = self.histogram.as_ref();
        size_of::<Self>() + histogram.map_or(0, Histogram::memory_bytes)
    }
}

impl Default for ColumnStatistics {
    fn default() -> Self {
        ColumnStatistics {
            null_share: 0.0,
            distinct: DistinctEstimate::default(),
            average_bytes: 0.0,
            correlation: 0.0,
            wanted_buckets: DEFAULT_BUCKETS,
            histogram: None,
            sampling_rate: 0.0,
            collected_at: 0,
        }
    }
}
