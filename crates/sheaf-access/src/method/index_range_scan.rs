//! Index range scan: ranges of a secondary index, with or without the rows behind its entries.
//!
//! *Covering*: the index holds all columns that are asked for, so the entries themselves are delivered and the
//! clustered tree is not touched. It wins over a clustered scan nearly always: entries are smaller than rows.
//!
//! *With lookups*: each entry that passes the [index condition](crate::batch::index_condition) leads to its row. Rows
//! are read one by one as the entries come (the order of the index is kept, and a LIMIT stops early), or through a
//! [multi-range read](crate::method::multi_range_read). It wins when few entries match.
//!
//! Counts: `Handler_read_key` per range, `Handler_read_next` (or `_prev`) per entry that passed the index condition.

use std::sync::Arc;

use sheaf_storage::KeyRange;

use crate::batch::batch_assembler::TaggedBatch;
use crate::cancel::CancelFlag;
use crate::condition::index_entries::EntryBlock;
use crate::error::Result;
use crate::method::entry_rows::{EntryRows, EntrySource};
use crate::method::range_cursor::RangeCursor;
use crate::scan_counters::ScanCounters;
use crate::spec::ScanSpec;

/// A running scan of a secondary index.
pub(crate) struct IndexRangeScan {
    cursor: RangeCursor,
    rows: EntryRows,
    ended: bool,
}

impl EntrySource for RangeCursor {
    fn fill(&mut self, block: &mut EntryBlock, tally: &mut ScanCounters) -> Result<bool> {
        let jumps_before = tally.metrics.jumps;
        let filled = self.next_leaf(tally, |leaf, runs, _| {
            for run in runs {
                block.push_leaf(leaf, run.clone(), 0);
            }
            Ok(())
        })?;
        let rejected = tally.metrics.jumps - jumps_before;
        tally.metrics.index_entries += block.len() as u64 + rejected;
        Ok(filled.is_some())
    }
}

impl IndexRangeScan {
    pub(crate) fn new(
        spec: &Arc<ScanSpec>,
        position: usize,
        ranges: Vec<KeyRange>,
        cancel: CancelFlag,
        tally: &mut ScanCounters,
    ) -> Result<Self> {
        let rows = EntryRows::for_scan(spec, position, cancel.clone(), tally)?;
        let tree = Arc::clone(&spec.table.secondary[position]);
        Ok(Self {
            cursor: RangeCursor::of_spec(spec, tree, ranges, cancel),
            rows,
            ended: false,
        })
    }

    pub(crate) fn next_batch(&mut self, tally: &mut ScanCounters) -> Result<Option<TaggedBatch>> {
        if self.ended {
            return Ok(None);
        }
        let direction = self.cursor.direction();
        let batch = self.rows.next_batch(&mut self.cursor, direction, tally)?;
        if self.rows.is_done() {
            self.ended = true;
            self.cursor.stop();
            tally.stopped_before_end(direction);
        }
        Ok(batch)
    }

    pub(crate) fn rows(&self) -> &EntryRows {
        &self.rows
    }

    pub(crate) fn rows_mut(&mut self) -> &mut EntryRows {
        &mut self.rows
    }
}
