//! Index merge: rows that several indexes lead to, by the union or the intersection of their primary keys.
//!
//! `a = 1 OR b = 2` with an index on each of the columns is neither's range, and `a = 1 AND b = 2` is more than either
//! knows. Here each index is walked for its own condition. The primary keys are collected, sorted, and kept once
//! (union) or if every index has them (intersection). The rows are then read in primary key order by a [multi-range
//! read](crate::method::multi_range_read), and tested for the whole condition.
//!
//! ```text
//!   index a   [range] -> 7 3 9 --.
//!                                 |-> [sort] 3 3 7 8 9  -- union 3 7 8 9 --> [multi-range read] -> [row condition]
//!   index b   [range] -> 8 3  ---'                      `- intersection 3 -'
//! ```
//!
//! It wins when each condition leaves few rows (union), or none leaves few but all together do (intersection).
//!
//! Memory is bounded without a spill file. When the buffer is full, the lesser half of its keys is kept, and the
//! greater keys are left to another pass over the indexes, which are small beside the rows. So rows come in primary key
//! order from end to end.
//!
//! A row has one entry per index as far as one view goes, so an index gives each primary key once.
//!
//! Counts: as the range scans of the indexes, and `Handler_read_rnd` per row read.

use std::sync::Arc;

use sheaf_storage::{Direction, Tree};
use sheaf_table::Table;

use crate::batch::batch_assembler::{BatchAssembler, TaggedBatch, select_all};
use crate::batch::index_condition::IndexCondition;
use crate::batch::row_block::RowBlock;
use crate::cancel::CancelFlag;
use crate::condition::columns::Source;
use crate::condition::index_entries::{EntryBlock, PrimaryKeySource, fixed_key_bytes};
use crate::error::Result;
use crate::keys::byte_strings::ByteStrings;
use crate::keys::key_buffer::KeyBuffer;
use crate::keys::table_snapshot::TableSnapshot;
use crate::method::entry_rows::EntrySource;
use crate::method::jump_walk::JumpWalk;
use crate::method::multi_range_read::MultiRangeRead;
use crate::method::range_cursor::RangeCursor;
use crate::scan_counters::ScanCounters;
use crate::spec::{IndexRef, MergeInput, MergeKind, MergeSpec, ScanSpec, SortKeys};

/// The buffer of a merge holds at least so many bytes of keys, whatever is asked for: each pass then gets on.
const MIN_BUFFER_BYTES: usize = 64 << 10;

/// A running index merge.
pub(crate) struct IndexMerge {
    spec: Arc<ScanSpec>,
    merge: Arc<MergeSpec>,
    cancel: CancelFlag,
    /// Primary keys of this pass, each with the number of its input.
    keys: KeyBuffer,
    fixed_key_bytes: Option<usize>,
    /// Keys up to this one are done; keys beyond `last` are left to the next pass.
    done: Option<Vec<u8>>,
    last: Option<Vec<u8>>,
    /// Position in `keys` of the first that has not been handed to `read`.
    handed: usize,
    read: MultiRangeRead,
    state: State,
    rows: RowBlock,
    assembler: BatchAssembler,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The next pass over the indexes is to be made.
    Collect,
    /// Keys are to be handed to the multi-range read.
    Hand,
    Read,
    Ended,
}

impl IndexMerge {
    pub(crate) fn new(
        spec: &Arc<ScanSpec>,
        merge: &Arc<MergeSpec>,
        cancel: CancelFlag,
        tally: &mut ScanCounters,
    ) -> Result<Self> {
        let table = TableSnapshot::new(&spec.table, &spec.view)?;
        let assembler = BatchAssembler::new(
            &table,
            Source::Rows,
            &spec.projection,
            spec.row_condition.as_ref(),
            false,
            spec.limit,
            spec.batch,
        )?;
        let layout = &spec.table.clustered_layout;
        let fixed_key_bytes = fixed_key_bytes(layout, layout.parts.len());
        let buffer = |bytes, tagged| KeyBuffer::new(bytes, fixed_key_bytes, tagged);
        let read_buffer = buffer(merge.read_buffer_bytes, false);
        tally.mrr_init += 1;
        Ok(Self {
            keys: buffer(merge.buffer_bytes.max(MIN_BUFFER_BYTES), true),
            fixed_key_bytes,
            read: MultiRangeRead::new(&table, read_buffer, SortKeys::Always, cancel.clone()),
            rows: assembler.new_block(),
            spec: Arc::clone(spec),
            merge: Arc::clone(merge),
            cancel,
            done: None,
            last: None,
            handed: 0,
            state: State::Collect,
            assembler,
        })
    }

    pub(crate) fn assembler(&self) -> &BatchAssembler {
        &self.assembler
    }

    pub(crate) fn assembler_mut(&mut self) -> &mut BatchAssembler {
        &mut self.assembler
    }

    pub(crate) fn next_batch(&mut self, tally: &mut ScanCounters) -> Result<Option<TaggedBatch>> {
        while !self.assembler.is_done() {
            if self.assembler.is_ready() {
                if let Some(batch) = self.assembler.finish(tally)? {
                    return Ok(Some(batch));
                }
                continue;
            }
            tally.pay()?;
            self.state = match self.state {
                State::Collect => self.collect(tally)?,
                State::Hand => self.hand_over(tally)?,
                State::Read => self.read(tally)?,
                State::Ended => return self.assembler.finish(tally),
            };
        }
        Ok(None)
    }

    /// Makes a pass over all indexes.
    fn collect(&mut self, tally: &mut ScanCounters) -> Result<State> {
        self.keys.clear();
        self.handed = 0;
        let merge = Arc::clone(&self.merge);
        for (number, input) in merge.inputs.iter().enumerate() {
            let mut walk = InputWalk::new(&self.spec, input, self.cancel.clone())?;
            while walk.next_keys(tally)? {
                for key in walk.keys.iter() {
                    self.take(key, number as u32);
                }
            }
        }
        self.keys.sort();
        Ok(State::Hand)
    }

    /// Adds a key to the pass, if it belongs to it.
    fn take(&mut self, key: &[u8], input: u32) {
        let is_done = self.done.as_deref().is_some_and(|done| key <= done);
        let is_later = |last: &Option<Vec<u8>>| last.as_deref().is_some_and(|last| key > last);
        if is_done || is_later(&self.last) {
            return;
        }
        if !self.keys.has_room_for(key.len()) {
            self.keep_lesser_half();
            if is_later(&self.last) {
                return;
            }
        }
        self.keys.push(key, input);
    }

    /// Leaves the greater half of the keys to the next pass.
    fn keep_lesser_half(&mut self) {
        self.keys.sort();
        let mut strings = ByteStrings::default();
        let middle = (self.keys.len() - 1) / 2;
        self.keys.copy_key(middle, &mut strings);
        self.last = Some(strings.get(0).to_vec());
        // The same key may come from several indexes.
        let kept = (middle..self.keys.len())
            .take_while(|&position| self.keys.same_key(middle, position))
            .count()
            + middle;
        let bytes = self.merge.buffer_bytes.max(MIN_BUFFER_BYTES);
        let mut lesser = KeyBuffer::new(bytes, self.fixed_key_bytes, true);
        for position in 0..kept {
            strings.clear();
            self.keys.copy_key(position, &mut strings);
            lesser.push(strings.get(0), self.keys.tag(position));
        }
        self.keys = lesser;
    }

    /// Hands keys to the multi-range read until it is full.
    fn hand_over(&mut self, tally: &mut ScanCounters) -> Result<State> {
        let mut strings = ByteStrings::default();
        while self.handed < self.keys.len() {
            let group = self.keys.group_length(self.handed);
            let wanted = match self.merge.kind {
                MergeKind::Union => true,
                MergeKind::Intersection => group == self.merge.inputs.len(),
            };
            if wanted {
                strings.clear();
                self.keys.copy_key(self.handed, &mut strings);
                let key = strings.get(0);
                if !self.read.has_room_for(key.len()) {
                    break;
                }
                self.read.push(key, 0);
            }
            self.handed += group;
        }
        if !self.read.is_empty() {
            self.read.start(&mut tally.metrics)?;
            return Ok(State::Read);
        }
        // The pass is worked off.
        self.done = self.last.take();
        Ok(match self.done {
            Some(_) => State::Collect,
            None => State::Ended,
        })
    }

    fn read(&mut self, tally: &mut ScanCounters) -> Result<State> {
        self.rows.clear();
        let before = tally.metrics.row_lookups;
        let wanted = self.assembler.wanted();
        let more = self.read.read(&mut self.rows, wanted, &mut tally.metrics)?;
        tally.read_rnd += tally.metrics.row_lookups - before;
        self.assembler.add_block(&self.rows, tally)?;
        Ok(if more { State::Read } else { State::Hand })
    }
}

/// The primary keys that one index leads to, leaf by leaf.
struct InputWalk {
    table: Arc<Table>,
    cursor: RangeCursor,
    entries: Entries,
    /// Those of the last leaf.
    keys: ByteStrings,
}

/// How primary keys are got from what is walked.
enum Entries {
    /// They are the keys.
    Rows,
    Secondary(Box<SecondaryEntries>),
}

struct SecondaryEntries {
    position: usize,
    condition: Option<IndexCondition>,
    primary_key: PrimaryKeySource,
    block: EntryBlock,
    selection: Vec<u32>,
    scratch: Vec<u8>,
}

impl InputWalk {
    fn new(spec: &ScanSpec, input: &MergeInput, cancel: CancelFlag) -> Result<Self> {
        let table = &spec.table;
        let tree: Arc<Tree> = Arc::clone(input.index.tree(table));
        let ranges = input.ranges.clone();
        let view = spec.view.clone();
        let jumps = JumpWalk::new(table, input.index, input.key_filter.clone(), None);
        let cursor = RangeCursor::new(
            tree,
            view,
            ranges,
            Direction::Forward,
            spec.read_ahead_pages,
            cancel,
        )
        .of_scan(&input.ranges);
        let entries = match input.index {
            IndexRef::Clustered => Entries::Rows,
            IndexRef::Secondary(position) => Entries::Secondary(Box::new(SecondaryEntries {
                position,
                condition: input
                    .index_condition
                    .as_ref()
                    .map(|condition| IndexCondition::new(table, position, condition))
                    .transpose()?,
                primary_key: PrimaryKeySource::new(
                    &table.secondary_layouts[position],
                    &table.clustered_layout,
                ),
                block: EntryBlock::default(),
                selection: Vec::new(),
                scratch: Vec::new(),
            })),
        };
        Ok(Self {
            table: Arc::clone(table),
            cursor: cursor.with_jumps(jumps),
            entries,
            keys: ByteStrings::default(),
        })
    }

    /// Goes to the next leaf. False after the last one.
    fn next_keys(&mut self, tally: &mut ScanCounters) -> Result<bool> {
        let keys = &mut self.keys;
        keys.clear();
        let walked = match &mut self.entries {
            Entries::Rows => {
                let visited = self.cursor.next_leaf(tally, |leaf, runs, _| {
                    for row in runs.iter().cloned().flatten() {
                        keys.push_pieces([leaf.prefix(), leaf.suffix(row)]);
                    }
                    Ok(())
                })?;
                visited.is_some()
            }
            Entries::Secondary(entries) => {
                let layout = &self.table.secondary_layouts[entries.position];
                let (block, selection) = (&mut entries.block, &mut entries.selection);
                block.clear();
                let filled = self.cursor.fill(block, tally)?;
                select_all(selection, block.len(), Direction::Forward);
                if let Some(condition) = &mut entries.condition {
                    condition.filter(layout, block, selection, true, &mut tally.metrics)?;
                }
                for &entry in selection.iter() {
                    let key = block.keys.get(entry as usize);
                    let source = &entries.primary_key;
                    keys.push(source.primary_key(layout, key, &mut entries.scratch)?);
                }
                filled
            }
        };
        tally.step(Direction::Forward, keys.len());
        Ok(walked)
    }
}
