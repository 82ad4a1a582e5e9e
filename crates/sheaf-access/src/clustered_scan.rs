//! Clustered scan: rows in primary key order, straight out of the leaves of the clustered tree.
//!
//! It wins when much of the table is read, when the primary key bounds what is read, or when rows are wanted in primary
//! key order (either way) and a LIMIT stops the walk early. Rows are never looked up: a leaf is copied once, its rows are
//! tested in the copy, and the columns that are asked for go from there to the batch. Leaves lie in key order on disk,
//! so reading ahead is sequential.
//!
//! Counts: a scan of the whole table `Handler_read_rnd_next` once per row and once for the end; ranges of the primary
//! key `Handler_read_key` each, and steps.

use std::sync::Arc;

use sheaf_storage::{Direction, KeyRange};

use crate::batch_assembler::{BatchAssembler, TaggedBatch};
use crate::cancel::CancelFlag;
use crate::columns::Source;
use crate::error::Result;
use crate::range_cursor::{RangeCursor, is_point};
use crate::spec::ScanSpec;
use crate::tally::Tally;

/// A running clustered scan.
pub(crate) struct ClusteredScan {
    cursor: RangeCursor,
    assembler: BatchAssembler,
    /// The whole table is read forward: a table scan, not a walk along an index.
    table_scan: bool,
    /// This worker reads the end of the table.
    reads_end: bool,
    /// Ranges that are one complete key: they have no step.
    points: bool,
    ended: bool,
}

impl ClusteredScan {
    pub(crate) fn new(
        spec: &Arc<ScanSpec>,
        ranges: Vec<KeyRange>,
        cancel: CancelFlag,
    ) -> Result<Self> {
        let assembler = BatchAssembler::new(
            &spec.table,
            Source::Rows,
            &spec.projection,
            spec.row_condition.as_ref(),
            false,
            spec.limit,
            spec.batch_rows,
        )?;
        let table_scan = spec.direction == Direction::Forward && spec.ranges == [KeyRange::all()];
        let reads_end = ranges
            .last()
            .is_some_and(|range| range.upper == std::ops::Bound::Unbounded);
        let points = ranges.iter().all(is_point);
        let tree = Arc::clone(&spec.table.clustered);
        let cursor = RangeCursor::new(tree, ranges, spec.direction, spec.read_ahead_pages, cancel);
        Ok(Self {
            cursor,
            assembler,
            table_scan,
            reads_end,
            points,
            ended: false,
        })
    }

    pub(crate) fn next_batch(&mut self, tally: &mut Tally) -> Result<Option<TaggedBatch>> {
        let direction = self.cursor.direction();
        loop {
            if self.ended || self.assembler.is_ready() {
                let batch = self.assembler.finish(tally)?;
                if self.assembler.is_done() && !self.ended {
                    self.ended = true;
                    self.cursor.stop();
                    if !self.table_scan && !self.points {
                        tally.stopped_before_end(direction);
                    }
                }
                if batch.is_some() || self.ended {
                    return Ok(batch);
                }
            }
            let assembler = &mut self.assembler;
            let walked = self.cursor.next_leaf(tally, |leaf, tally| {
                let rows = (0..leaf.len()).map(|row| leaf.value(row));
                assembler.add_rows(rows, leaf.len(), &[], direction, tally)
            })?;
            match walked {
                Some(rows) if self.table_scan => tally.read_rnd_next += rows as u64,
                Some(_) if self.points => {}
                Some(rows) => tally.step(direction, rows),
                None => {
                    self.ended = true;
                    if self.table_scan {
                        tally.read_rnd_next += u64::from(self.reads_end);
                    }
                }
            }
        }
    }

    pub(crate) fn assembler(&self) -> &BatchAssembler {
        &self.assembler
    }
}
