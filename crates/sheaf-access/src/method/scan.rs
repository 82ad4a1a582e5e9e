//! [`Scan`]: one worker's part of a scan, whatever the access method.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use sheaf_storage::{KeyRange, Tree};

use crate::budget::{Budget, Meter, Prices};
use crate::cancel::CancelFlag;
use crate::counters::{ScanMetrics, SessionCounters};
use crate::error::Result;
use crate::method::clustered_scan::ClusteredScan;
use crate::method::index_merge::IndexMerge;
use crate::method::index_range_scan::IndexRangeScan;
use crate::method::scan_reach::Reached;
use crate::scan_counters::ScanCounters;
use crate::spec::{IndexRef, ScanSpec};

/// A running scan. Holds no latch between calls, so it may be dropped or left waiting at any time.
pub struct Scan {
    method: Method,
    tally: ScanCounters,
    /// Knows what its pool is asked for.
    tree: Arc<Tree>,
    /// The scan ended or failed.
    finished: bool,
    /// It reads nothing behind the first entry that it finds.
    ends_at_first_entry: bool,
}

enum Method {
    Clustered(Box<ClusteredScan>),
    Index(Box<IndexRangeScan>),
    Merge(Box<IndexMerge>),
}

impl Scan {
    /// Prepares a scan of `ranges`, which are all of `spec.ranges` or one worker's share of them
    /// (see [`split_ranges`](crate::split_ranges)).
    ///
    /// # Errors
    /// `Unsupported` if the index does not hold what is to be read from it.
    pub fn new(
        spec: Arc<ScanSpec>,
        ranges: Vec<KeyRange>,
        counters: Arc<SessionCounters>,
        cancel: CancelFlag,
    ) -> Result<Self> {
        let tree_of = |index: IndexRef| index.tree(&spec.table).id();
        let mut tally = match &spec.merge {
            Some(merge) => {
                let inputs = merge.inputs.iter();
                ScanCounters::new(counters, inputs.map(|input| tree_of(input.index)))
            }
            None => ScanCounters::new(counters, [tree_of(spec.index)]),
        };
        let method = match (&spec.merge, spec.index) {
            (Some(merge), _) => {
                Method::Merge(Box::new(IndexMerge::new(&spec, merge, cancel, &mut tally)?))
            }
            (None, IndexRef::Clustered) => {
                let scan = ClusteredScan::new(&spec, ranges, cancel)?;
                if scan.is_of_table() {
                    tally.set_scans_table();
                }
                Method::Clustered(Box::new(scan))
            }
            (None, IndexRef::Secondary(position)) => Method::Index(Box::new(IndexRangeScan::new(
                &spec, position, ranges, cancel, &mut tally,
            )?)),
        };
        Ok(Self {
            method,
            tally,
            tree: Arc::clone(&spec.table.clustered),
            finished: false,
            ends_at_first_entry: spec.ends_at_first_entry(),
        })
    }

    /// The same scan, which pays for its work and fails with
    /// [`AccessError::BudgetSpent`](crate::AccessError::BudgetSpent) when the budget is used up.
    pub fn with_budget(mut self, budget: Budget, prices: Prices) -> Self {
        let tree = Arc::clone(&self.tree);
        self.tally.set_meter(Meter::new(budget, prices, tree));
        self
    }

    /// The same scan, whose first batches are small, because little of it may be wanted.
    pub fn starting_small(mut self) -> Self {
        match &mut self.method {
            Method::Clustered(scan) => scan.assembler_mut().start_small(),
            Method::Index(scan) => scan.rows_mut().assembler_mut().start_small(),
            Method::Merge(merge) => merge.assembler_mut().start_small(),
        }
        self
    }

    /// The same scan, which knows [how far it has come](Self::reached).
    pub fn noting_reach(mut self) -> Self {
        match &mut self.method {
            Method::Clustered(scan) => scan.note_last(),
            Method::Index(scan) => scan.rows_mut().note_last(),
            // It reads its indexes to their ends.
            Method::Merge(_) => {}
        }
        self
    }

    /// How far it has come, if it [notes that](Self::noting_reach) and has begun.
    pub fn reached(&self) -> Reached {
        let (last, is_done) = match &self.method {
            Method::Clustered(scan) => (scan.last(), scan.assembler().is_done()),
            Method::Index(scan) => (scan.rows().last(), scan.rows().is_done()),
            Method::Merge(_) => (None, false),
        };
        match last {
            Some(last) if !self.finished || is_done => Reached::Key(last.to_vec()),
            // Nothing is noted where nothing was found.
            Some(last) if self.ends_at_first_entry && !last.is_empty() => {
                Reached::Key(last.to_vec())
            }
            _ => Reached::End,
        }
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        match &self.method {
            Method::Clustered(scan) => scan.assembler().schema(),
            Method::Index(scan) => scan.rows().assembler().schema(),
            Method::Merge(merge) => merge.assembler().schema(),
        }
    }

    /// The next batch, never empty; `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.finished {
            return Ok(None);
        }
        self.tally.resume();
        let result = match &mut self.method {
            Method::Clustered(scan) => scan.next_batch(&mut self.tally),
            Method::Index(scan) => scan.next_batch(&mut self.tally),
            Method::Merge(merge) => merge.next_batch(&mut self.tally),
        };
        self.tally.flush();
        self.finished = !matches!(result, Ok(Some(_)));
        result.map(|tagged| tagged.map(|tagged| tagged.batch))
    }

    /// What it did so far.
    pub fn metrics(&self) -> ScanMetrics {
        self.tally.metrics
    }
}
