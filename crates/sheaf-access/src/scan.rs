//! [`Scan`]: one worker's part of a scan, whatever the access method.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use sheaf_storage::KeyRange;

use crate::arrow_types::projected_schema;
use crate::cancel::CancelFlag;
use crate::counters::SessionCounters;
use crate::error::Result;
use crate::spec::ScanSpec;

/// What a scan or a keyed lookup did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanMetrics {
    /// Rows (or entries of a covering index) on which the row condition was tested.
    pub rows_examined: u64,
    /// Entries of a secondary index that were walked over, before any condition.
    pub index_entries: u64,
    /// Rows fetched from the clustered index by primary key.
    pub row_lookups: u64,
    /// Entries tested by the index condition.
    pub icp_attempts: u64,
    /// Entries that it let through.
    pub icp_match: u64,
    /// Rows delivered.
    pub rows: u64,
    /// Batches delivered.
    pub batches: u64,
    /// Buffers of primary keys read, and how many of them were sorted.
    pub mrr_buffers: u64,
    /// Buffers that were sorted before they were read.
    pub mrr_sorted_buffers: u64,
    /// Pages asked for ahead by multi-range reads.
    pub prefetched_pages: u64,
}

/// A running scan. Holds no latch between calls, so it may be dropped or left waiting at any time.
pub struct Scan {
    schema: SchemaRef,
}

impl Scan {
    /// Prepares a scan of `ranges`, which are all of `spec.ranges` or one worker's share of them
    /// (see [`split_ranges`](crate::split_ranges)).
    pub fn new(
        spec: Arc<ScanSpec>,
        ranges: Vec<KeyRange>,
        counters: Arc<SessionCounters>,
        cancel: CancelFlag,
    ) -> Result<Self> {
        let _ = (ranges, counters, cancel);
        Ok(Self {
            schema: projected_schema(&spec.table.definition, &spec.projection),
        })
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch, never empty; `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        unimplemented!("the access methods land next")
    }

    /// What it did so far.
    pub fn metrics(&self) -> ScanMetrics {
        ScanMetrics::default()
    }
}
