//! [`EntryRows`]: from entries of a secondary index to batches of rows.
//!
//! This is what index range scans and keyed joins have in common. Entries come in blocks and pass the index condition.
//! Then they are delivered themselves (covering), or lead to their rows, one by one or through a multi-range read.

use std::sync::Arc;

use sheaf_storage::{Direction, LOOK_AHEAD_KEYS, PointReader};
use sheaf_table::Table;

use crate::batch::batch_assembler::{BatchAssembler, TaggedBatch, select_all};
use crate::batch::index_condition::IndexCondition;
use crate::batch::row_block::RowBlock;
use crate::cancel::CancelFlag;
use crate::condition::Condition;
use crate::condition::columns::Source;
use crate::condition::index_entries::{EntryBlock, PrimaryKeySource, fixed_key_bytes};
use crate::error::{AccessError, Result};
use crate::keys::byte_strings::ByteStrings;
use crate::keys::key_buffer::KeyBuffer;
use crate::keys::table_snapshot::TableSnapshot;
use crate::method::multi_range_read::MultiRangeRead;
use crate::scan_counters::ScanCounters;
use crate::spec::{BatchSize, Fetch, KeyedLookupSpec, ScanSpec};

/// Gives index entries.
pub(crate) trait EntrySource {
    /// Appends the next entries to an empty block, ascending within it. False if there are none.
    fn fill(&mut self, block: &mut EntryBlock, tally: &mut ScanCounters) -> Result<bool>;
}

/// What leads from an entry to its row.
enum RowAccess {
    Covering,
    Lookup(PointReader),
    MultiRange(Box<MultiRangeRead>),
}

/// See the module's comment.
pub(crate) struct EntryRows {
    table: Arc<Table>,
    position: usize,
    condition: Option<IndexCondition>,
    access: RowAccess,
    primary_key: PrimaryKeySource,
    /// The entries being worked off: those selected, of which `taken` are done.
    block: EntryBlock,
    selection: Vec<u32>,
    taken: usize,
    /// No more blocks will come.
    exhausted: bool,
    /// Multi-range read: the buffer is being read, not filled.
    reading: bool,
    /// Multi-range read: buffers read since [`restart`](Self::restart).
    buffers: u64,
    rows: RowBlock,
    key_scratch: Vec<u8>,
    /// Keys of rows that are looked up together.
    keys: ByteStrings,
    assembler: BatchAssembler,
    /// Each entry is found by a complete unique key: no steps lead to it.
    points: bool,
    /// A key filter tests entries before their rows are fetched.
    filtered: bool,
    /// A LIMIT may stop the scan: entries are not held back to fill batches.
    limited: bool,
    /// Rows that are looked up at once although a LIMIT may need fewer: twice as many as the last time, which were not
    /// enough because of the row condition.
    lookups: usize,
    /// The entry that was worked off last, if it is noted.
    last: Option<Vec<u8>>,
}

impl EntryRows {
    /// The second half of a scan.
    pub(crate) fn for_scan(
        spec: &ScanSpec,
        position: usize,
        cancel: CancelFlag,
        tally: &mut ScanCounters,
    ) -> Result<Self> {
        let conditions = (spec.index_condition.as_ref(), spec.row_condition.as_ref());
        let sizes = (spec.limit, spec.batch);
        let mut rows = Self::new(
            &TableSnapshot::new(&spec.table, &spec.view)?,
            position,
            &spec.projection,
            conditions,
            spec.fetch,
            false,
            sizes,
            cancel,
        )?;
        rows.filtered = spec.key_filter.is_some() && spec.fetch != Fetch::Covering;
        if matches!(spec.fetch, Fetch::MultiRange { .. }) {
            tally.mrr_init += 1;
        }
        Ok(rows)
    }

    /// The second half of a keyed lookup through a secondary index. Tags are kept. `unique`: a key has one entry at
    /// most.
    pub(crate) fn for_lookup(
        spec: &KeyedLookupSpec,
        position: usize,
        unique: bool,
        cancel: CancelFlag,
    ) -> Result<Self> {
        let conditions = (spec.index_condition.as_ref(), spec.row_condition.as_ref());
        let sizes = (None, spec.batch);
        let mut rows = Self::new(
            &TableSnapshot::new(&spec.table, &spec.view)?,
            position,
            &spec.projection,
            conditions,
            spec.fetch,
            true,
            sizes,
            cancel,
        )?;
        rows.points = unique;
        Ok(rows)
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the union of what two specifications say; private"
    )]
    fn new(
        table: &TableSnapshot,
        position: usize,
        projection: &[usize],
        (index_condition, row_condition): (Option<&Condition>, Option<&Condition>),
        fetch: Fetch,
        tagged: bool,
        (limit, batch): (Option<usize>, BatchSize),
        cancel: CancelFlag,
    ) -> Result<Self> {
        let source = match fetch {
            Fetch::Covering => Source::Entries(position),
            Fetch::Lookup | Fetch::MultiRange { .. } => Source::Rows,
        };
        let assembler = BatchAssembler::new(
            table,
            source,
            projection,
            row_condition,
            tagged,
            limit,
            batch,
        )?;
        let condition = index_condition
            .map(|condition| IndexCondition::new(table, position, condition))
            .transpose()?;
        let clustered = &table.clustered_layout;
        let access = match fetch {
            Fetch::Covering => RowAccess::Covering,
            Fetch::Lookup => RowAccess::Lookup(table.row_reader()),
            Fetch::MultiRange { buffer_bytes, sort } => {
                let fixed = fixed_key_bytes(clustered, clustered.parts.len());
                let buffer = KeyBuffer::new(buffer_bytes, fixed, tagged);
                let read = MultiRangeRead::new(table, buffer, sort, cancel);
                RowAccess::MultiRange(Box::new(read))
            }
        };
        Ok(Self {
            primary_key: PrimaryKeySource::new(&table.secondary_layouts[position], clustered),
            table: Arc::clone(table),
            position,
            condition,
            access,
            block: EntryBlock::default(),
            selection: Vec::new(),
            taken: 0,
            exhausted: false,
            reading: false,
            buffers: 0,
            rows: assembler.new_block(),
            key_scratch: Vec::new(),
            keys: ByteStrings::default(),
            assembler,
            points: false,
            filtered: false,
            limited: limit.is_some(),
            lookups: 0,
            last: None,
        })
    }

    pub(crate) fn assembler(&self) -> &BatchAssembler {
        &self.assembler
    }

    pub(crate) fn assembler_mut(&mut self) -> &mut BatchAssembler {
        &mut self.assembler
    }

    /// From now on it notes which entry was worked off last.
    pub(crate) fn note_last(&mut self) {
        self.last = Some(Vec::new());
    }

    /// The key of the entry that was worked off last, if that is noted.
    pub(crate) fn last(&self) -> Option<&[u8]> {
        self.last.as_deref()
    }

    /// Whether the limit has been delivered.
    pub(crate) fn is_done(&self) -> bool {
        self.assembler.is_done()
    }

    /// Makes ready for another source, once the one before is worked off.
    pub(crate) fn restart(&mut self) {
        self.exhausted = false;
        self.buffers = 0;
    }

    /// The next batch; `None` when the source is worked off or the limit delivered.
    pub(crate) fn next_batch(
        &mut self,
        source: &mut impl EntrySource,
        direction: Direction,
        tally: &mut ScanCounters,
    ) -> Result<Option<TaggedBatch>> {
        while !self.assembler.is_done() {
            if self.assembler.is_ready() {
                if let Some(batch) = self.assembler.finish(tally)? {
                    return Ok(Some(batch));
                }
                continue;
            }
            if !self.step(source, direction, tally)? {
                return self.assembler.finish(tally);
            }
        }
        Ok(None)
    }

    /// Moves some entries or rows one stage on. False when nothing is left in any stage.
    fn step(
        &mut self,
        source: &mut impl EntrySource,
        direction: Direction,
        tally: &mut ScanCounters,
    ) -> Result<bool> {
        tally.pay()?;
        if self.reading {
            self.read_buffer(tally)?;
        } else if self.taken < self.selection.len() {
            self.take_entries(direction, tally)?;
        } else if !self.exhausted {
            self.next_block(source, direction, tally)?;
        } else {
            match &mut self.access {
                RowAccess::MultiRange(read) if !read.is_empty() => self.start_reading(tally)?,
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    fn next_block(
        &mut self,
        source: &mut impl EntrySource,
        direction: Direction,
        tally: &mut ScanCounters,
    ) -> Result<()> {
        self.block.clear();
        self.taken = 0;
        let jumps_before = tally.metrics.jumps;
        self.exhausted = !source.fill(&mut self.block, tally)?;
        select_all(&mut self.selection, self.block.len(), direction);
        if self.filtered {
            // A key filter is an index condition: here as far as the walk tested it, below as far as it is tested
            // again.
            tally.metrics.icp_attempts += tally.metrics.jumps - jumps_before;
            if self.condition.is_none() {
                tally.metrics.icp_attempts += self.block.len() as u64;
                tally.metrics.icp_match += self.block.len() as u64;
            }
        }
        if let Some(condition) = &mut self.condition {
            let layout = &self.table.secondary_layouts[self.position];
            let last = self.exhausted || self.limited;
            condition.filter(
                layout,
                &mut self.block,
                &mut self.selection,
                last,
                &mut tally.metrics,
            )?;
        }
        Ok(())
    }

    fn take_entries(&mut self, direction: Direction, tally: &mut ScanCounters) -> Result<()> {
        let layout = &self.table.secondary_layouts[self.position];
        let mut worked_off = 0;
        match &mut self.access {
            RowAccess::Covering => {
                let candidates = &self.selection[self.taken..];
                let walked = self
                    .assembler
                    .add_entries(&mut self.block, candidates, tally)?;
                worked_off = self.taken + walked;
                self.taken = self.selection.len();
                self.step_over(direction, walked, tally);
            }
            RowAccess::Lookup(reader) => {
                self.rows.clear();
                let before = self.taken;
                let wanted = match self.assembler.reads_long_values() {
                    true => self.assembler.wanted(),
                    false => self.assembler.wanted().max(self.lookups),
                };
                while self.taken < self.selection.len() && !self.rows.is_full(wanted) {
                    let rest = &self.selection[self.taken..];
                    let group = rest
                        .len()
                        .min(LOOK_AHEAD_KEYS)
                        .min(wanted - self.rows.rows.len());
                    self.keys.clear();
                    for entry in &rest[..group] {
                        self.keys.push(self.primary_key.primary_key(
                            layout,
                            self.block.keys.get(*entry as usize),
                            &mut self.key_scratch,
                        )?);
                    }
                    reader.look_ahead(self.keys.iter());
                    for (key, entry) in self.keys.iter().zip(&rest[..group]) {
                        if self.rows.is_full(wanted) {
                            break;
                        }
                        self.taken += 1;
                        if let Some(row) = reader.get(key)? {
                            self.rows.push(key, row, self.block.tags[*entry as usize]);
                        }
                    }
                }
                let looked_up = self.taken - before;
                self.lookups = looked_up * 2;
                tally.metrics.row_lookups += looked_up as u64;
                self.step_over(direction, looked_up, tally);
                self.assembler.add_block(&self.rows, tally)?;
            }
            RowAccess::MultiRange(read) => {
                let before = self.taken;
                while self.taken < self.selection.len() {
                    let entry = self.selection[self.taken] as usize;
                    let key = self.primary_key.primary_key(
                        layout,
                        self.block.keys.get(entry),
                        &mut self.key_scratch,
                    )?;
                    if !read.has_room_for(key.len()) {
                        break;
                    }
                    read.push(key, self.block.tags[entry]);
                    self.taken += 1;
                }
                let taken = self.taken - before;
                self.step_over(direction, taken, tally);
                if self.taken < self.selection.len() {
                    self.start_reading(tally)?;
                }
            }
        }
        if let Some(last) = &mut self.last {
            // Those of a covering scan count as taken although the limit has come before.
            let worked_off = match self.access {
                RowAccess::Covering => worked_off,
                _ => self.taken,
            };
            if let Some(entry) = self.selection[..worked_off].last() {
                last.clear();
                last.extend_from_slice(self.block.keys.get(*entry as usize));
            }
        }
        Ok(())
    }

    fn step_over(&self, direction: Direction, entries: usize, tally: &mut ScanCounters) {
        if !self.points {
            tally.step(direction, entries);
        }
    }

    fn start_reading(&mut self, tally: &mut ScanCounters) -> Result<()> {
        let RowAccess::MultiRange(read) = &mut self.access else {
            return Err(AccessError::Unsupported(
                "reading a buffer without multi-range read".to_string(),
            ));
        };
        read.start(&mut tally.metrics)?;
        self.reading = true;
        self.buffers += 1;
        if self.buffers > 1 {
            tally.mrr_rowid_refills += 1;
        }
        Ok(())
    }

    fn read_buffer(&mut self, tally: &mut ScanCounters) -> Result<()> {
        let RowAccess::MultiRange(read) = &mut self.access else {
            self.reading = false;
            return Ok(());
        };
        self.rows.clear();
        let before = tally.metrics.row_lookups;
        self.reading = read.read(&mut self.rows, self.assembler.wanted(), &mut tally.metrics)?;
        tally.read_rnd += tally.metrics.row_lookups - before;
        self.assembler.add_block(&self.rows, tally)
    }
}
