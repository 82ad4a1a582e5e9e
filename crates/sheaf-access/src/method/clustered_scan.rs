//! Clustered scan: rows in primary key order, straight out of the leaves of the clustered tree.
//!
//! It wins when much of the table is read, when the primary key bounds what is read, or when rows are wanted in primary
//! key order (either way) and a LIMIT stops the walk early. Rows are never looked up. A leaf is copied once, its rows
//! are tested in the copy, and the columns that are asked for go from there to the batch. Leaves lie in key order on
//! disk, so reading ahead is sequential.
//!
//! Counts: a scan of the whole table `Handler_read_rnd_next` once per row and once for the end; ranges of the primary
//! key `Handler_read_key` each, and steps.

use std::sync::Arc;

use sheaf_storage::{Direction, KeyRange};

use crate::batch::batch_assembler::{BatchAssembler, Rows, TaggedBatch};
use crate::batch::row_block::RowBlock;
use crate::cancel::CancelFlag;
use crate::condition::columns::Source;
use crate::error::Result;
use crate::keys::byte_strings::ByteStrings;
use crate::keys::table_snapshot::TableSnapshot;
use crate::method::range_cursor::{RangeCursor, is_point};
use crate::scan_counters::ScanCounters;
use crate::spec::ScanSpec;

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
    /// Of a leaf with long values in the columns: its rows in scan order, of which a few at a time are worked off.
    /// With jumps: the rows of a leaf that the key filter lets in.
    held: RowBlock,
    held_done: usize,
    /// The clustered keys of a leaf, if they are delivered.
    keys: ByteStrings,
    /// The key of the row that was looked at last, if it is noted.
    last: Option<Vec<u8>>,
    ended: bool,
}

impl ClusteredScan {
    pub(crate) fn new(
        spec: &Arc<ScanSpec>,
        ranges: Vec<KeyRange>,
        cancel: CancelFlag,
    ) -> Result<Self> {
        let assembler = BatchAssembler::new(
            &TableSnapshot::new(&spec.table, &spec.view)?,
            Source::Rows,
            &spec.projection,
            spec.row_condition.as_ref(),
            false,
            spec.limit,
            spec.batch,
        )?;
        let table_scan = spec.direction == Direction::Forward && spec.ranges == [KeyRange::all()];
        let reads_end = ranges
            .last()
            .is_some_and(|range| range.upper == std::ops::Bound::Unbounded);
        let points = ranges.iter().all(is_point);
        let tree = Arc::clone(&spec.table.clustered);
        Ok(Self {
            cursor: RangeCursor::of_spec(spec, tree, ranges, cancel),
            held: assembler.new_block(),
            assembler,
            table_scan,
            reads_end,
            points,
            keys: ByteStrings::default(),
            last: None,
            held_done: 0,
            ended: false,
        })
    }

    pub(crate) fn next_batch(&mut self, tally: &mut ScanCounters) -> Result<Option<TaggedBatch>> {
        let direction = self.cursor.direction();
        loop {
            if self.ended || self.assembler.is_ready() {
                let batch = self.assembler.finish(tally)?;
                if self.assembler.is_done() && !self.ended {
                    self.ended = true;
                    self.held_done = self.held.rows.len();
                    self.cursor.stop();
                    if !self.table_scan && !self.points {
                        tally.stopped_before_end(direction);
                    }
                }
                if batch.is_some() || self.ended {
                    return Ok(batch);
                }
            }
            if self.held_done < self.held.rows.len() {
                self.add_held(tally)?;
                continue;
            }
            let (assembler, held) = (&mut self.assembler, &mut self.held);
            let (keys, last) = (&mut self.keys, &mut self.last);
            let has_jumps = self.cursor.has_jumps();
            let walked = self.cursor.next_leaf(tally, |leaf, runs, tally| {
                held.clear();
                let rows = (0..leaf.len()).map(|row| leaf.value(row));
                if has_jumps || assembler.leads_to_long_values(rows.clone())? {
                    let rows = runs.iter().cloned().flatten();
                    match direction {
                        Direction::Forward => rows.for_each(|row| held.push_from(leaf, row, 0)),
                        Direction::Backward => {
                            rows.rev().for_each(|row| held.push_from(leaf, row, 0));
                        }
                    }
                    return Ok(0);
                }
                keys.clear();
                if assembler.delivers_key() {
                    (0..leaf.len())
                        .for_each(|row| keys.push_pieces([leaf.prefix(), leaf.suffix(row)]));
                }
                let rows = Rows {
                    rows,
                    count: leaf.len(),
                    keys,
                    first_key: 0,
                    tags: &[],
                };
                let walked = assembler.add_rows(rows, direction, tally)?;
                if let (Some(last), 1..) = (last, walked) {
                    let at = match direction {
                        Direction::Forward => walked - 1,
                        Direction::Backward => leaf.len() - walked,
                    };
                    leaf.key_into(at, last);
                }
                Ok(walked)
            })?;
            match walked {
                Some(rows) => {
                    self.held_done = 0;
                    self.count(rows, tally);
                }
                None => {
                    self.ended = true;
                    if self.table_scan {
                        tally.read_rnd_next += u64::from(self.reads_end);
                    }
                }
            }
        }
    }

    /// Adds a few of the held rows.
    fn add_held(&mut self, tally: &mut ScanCounters) -> Result<()> {
        let start = self.held_done;
        let all = self.held.rows.len();
        let rows = (start..all).map(|row| self.held.rows.get(row));
        let end = start.saturating_add(self.assembler.run_of(rows)).min(all);
        self.held_done = end;
        let rows = Rows {
            rows: (start..end).map(|row| self.held.rows.get(row)),
            count: end - start,
            keys: &self.held.keys,
            first_key: start,
            tags: &[],
        };
        let walked = self.assembler.add_rows(rows, Direction::Forward, tally)?;
        if let (Some(last), 1..) = (&mut self.last, walked) {
            last.clear();
            last.extend_from_slice(self.held.keys.get(start + walked - 1));
        }
        self.count(walked, tally);
        Ok(())
    }

    fn count(&self, rows: usize, tally: &mut ScanCounters) {
        if self.table_scan {
            tally.read_rnd_next += rows as u64;
        } else if !self.points {
            tally.step(self.cursor.direction(), rows);
        }
    }

    /// Whether the whole table is read, from its beginning.
    pub(crate) fn is_of_table(&self) -> bool {
        self.table_scan
    }

    /// The scan has not begun, and notes from now on how far it comes.
    pub(crate) fn note_last(&mut self) {
        self.held = RowBlock::new(true);
        self.last = Some(Vec::new());
    }

    /// The key of the row that was looked at last, if that is noted.
    pub(crate) fn last(&self) -> Option<&[u8]> {
        self.last.as_deref()
    }

    pub(crate) fn assembler(&self) -> &BatchAssembler {
        &self.assembler
    }

    pub(crate) fn assembler_mut(&mut self) -> &mut BatchAssembler {
        &mut self.assembler
    }
}
