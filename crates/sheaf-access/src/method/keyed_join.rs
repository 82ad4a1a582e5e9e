//! Keyed join: the inner side of a join through an index, many outer keys at a time (Batched Key Access).
//!
//! The keys of outer rows are collected up to N bytes, sorted, and looked up in key order. So the index is walked in
//! one direction with its pages prefetched, and outer rows with equal keys share one lookup. The entries that are found
//! pass the index condition, and their rows come through a multi-range read:
//!
//! ```text
//!   outer keys -> [collect N bytes] -> [sort, share] -> read the index -> [index condition]
//!              -> [collect primary keys] -> [sort] -> read the rows -> [row condition] -> (outer row, inner row)
//! ```
//!
//! On the clustered index the first read gives the rows, and there is no second step.
//!
//! Instead of keys outer rows may have ranges of them: `inner.k BETWEEN outer.a AND outer.b`. They are sorted by where
//! they begin, and rows with equal ranges share one lookup. Ranges may overlap; each is read for itself.
//!
//! It wins when some outer rows meet a large inner table that has an index on the join columns. It beats a hash join
//! when the inner table would have to be read whole, and lookups one by one when the inner table is not in memory. With
//! `batched` off each key is looked up as it came, and no page is prefetched.
//!
//! Counts: `Handler_read_key` per distinct key of a buffer, `Handler_read_next` per entry found;
//! `Handler_mrr_key_refills` per buffer of keys after the first.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::SchemaRef;
use sheaf_storage::{Direction, KeyRange, LeafCursor, LeafEntries, PointReader, ReadAhead, Tree};

use crate::batch::batch_assembler::{BatchAssembler, TaggedBatch};
use crate::batch::row_block::RowBlock;
use crate::budget::{Budget, Meter, Prices};
use crate::cancel::CancelFlag;
use crate::condition::columns::Source;
use crate::condition::index_entries::{EntryBlock, fixed_key_bytes};
use crate::counters::{ScanMetrics, SessionCounters};
use crate::error::Result;
use crate::keys::key_buffer::KeyBuffer;
use crate::keys::key_windows::{KeyWindows, sample_is_resident};
use crate::keys::ranged_key;
use crate::keys::table_snapshot::TableSnapshot;
use crate::method::entry_rows::{EntryRows, EntrySource};
use crate::scan_counters::ScanCounters;
use crate::spec::{IndexRef, KeyedLookupSpec};

/// Entries after which a block of them is worked off.
const BLOCK_ENTRIES: usize = 1024;

/// Looks up the rows that match a buffer full of keys.
///
/// Use: [`push`](Self::push) keys until it is [`full`](Self::full) or the outer rows end, [`run`](Self::run), then
/// [`next_batch`](Self::next_batch) until it gives `None`; then push again.
pub struct KeyedLookup {
    spec: Arc<KeyedLookupSpec>,
    walk: KeyWalk,
    inner: Inner,
    tally: ScanCounters,
    /// Runs started so far.
    runs: u64,
    /// Whether matches of the buffer may still come.
    running: bool,
    /// A batch whose rows are being given to more than one outer row each.
    sharing: Option<Sharing>,
    /// The range that is being pushed.
    packed: Vec<u8>,
}

/// What reads the inner table.
enum Inner {
    /// Rows of the clustered tree; with a reader when the keys are whole primary keys.
    Rows {
        reader: Option<Box<PointReader>>,
        block: Box<RowBlock>,
        assembler: Box<BatchAssembler>,
    },
    /// Entries of a secondary index, and their rows.
    Entries(Box<EntryRows>),
}

/// A batch of matches of keys that several outer rows have: given out again for each of them.
struct Sharing {
    batch: RecordBatch,
    /// For each row of the batch the buffer position of the first outer row with its key.
    groups: UInt32Array,
    /// The next pair to give out: a row of the batch, and one of the outer rows that share its key.
    row: usize,
    member: usize,
}

impl KeyedLookup {
    /// An empty buffer.
    pub fn new(
        spec: Arc<KeyedLookupSpec>,
        counters: Arc<SessionCounters>,
        cancel: CancelFlag,
    ) -> Result<Self> {
        let layout = match spec.index {
            IndexRef::Clustered => &spec.table.clustered_layout,
            IndexRef::Secondary(position) => &spec.table.secondary_layouts[position],
        };
        let definition = spec.index.definition(&spec.table);
        let complete = spec.key_parts >= layout.declared && !spec.ranged;
        let buffer_bytes = if spec.batched {
            spec.buffer_bytes
        } else {
            spec.buffer_bytes.min(UNBATCHED_BYTES)
        };
        let tree = Arc::clone(spec.index.tree(&spec.table));
        let buffer = match spec.ranged {
            true => KeyBuffer::of_ranges(buffer_bytes),
            false => KeyBuffer::new(buffer_bytes, fixed_key_bytes(layout, spec.key_parts), true),
        };
        let walk = KeyWalk {
            ranged: spec.ranged,
            buffer,
            windows: KeyWindows::new(),
            cancel: cancel.clone(),
            cursor: tree.scan_at(
                spec.view.clone(),
                KeyRange::all(),
                Direction::Forward,
                ReadAhead::Off,
            ),
            more: false,
            tree,
            group: 0,
            unique: complete && (definition.unique || definition.primary),
        };
        let inner = match spec.index {
            IndexRef::Clustered => {
                let assembler = BatchAssembler::new(
                    &TableSnapshot::new(&spec.table, &spec.view)?,
                    Source::Rows,
                    &spec.projection,
                    spec.row_condition.as_ref(),
                    true,
                    None,
                    spec.batch,
                )?;
                Inner::Rows {
                    reader: complete
                        .then(|| Box::new(walk.tree.point_reader_at(spec.view.clone()))),
                    block: Box::new(assembler.new_block()),
                    assembler: Box::new(assembler),
                }
            }
            IndexRef::Secondary(position) => Inner::Entries(Box::new(EntryRows::for_lookup(
                &spec,
                position,
                walk.unique,
                cancel,
            )?)),
        };
        let index = spec.index.tree(&spec.table).id();
        Ok(Self {
            spec,
            walk,
            inner,
            tally: ScanCounters::new(counters, [index]),
            runs: 0,
            running: false,
            sharing: None,
            packed: Vec::new(),
        })
    }

    /// The same lookup, which pays for its work and fails with
    /// [`AccessError::BudgetSpent`](crate::AccessError::BudgetSpent) when the budget is used up.
    pub fn with_budget(mut self, budget: Budget, prices: Prices) -> Self {
        let tree = Arc::clone(&self.spec.table.clustered);
        self.tally.set_meter(Meter::new(budget, prices, tree));
        self
    }

    /// The schema of the inner batches.
    pub fn schema(&self) -> &SchemaRef {
        match &self.inner {
            Inner::Rows { assembler, .. } => assembler.schema(),
            Inner::Entries(rows) => rows.assembler().schema(),
        }
    }

    /// Adds the encoded key of an outer row: `key_parts` parts as the index encodes them. The row number comes back
    /// with each match. A key with a NULL part matches nothing in SQL and must not be pushed.
    pub fn push(&mut self, encoded_key: &[u8], outer_row: u32) {
        debug_assert!(
            !self.running,
            "a run is worked off before keys are pushed again"
        );
        debug_assert!(!self.spec.ranged, "ranges are looked up");
        self.walk.buffer.push(encoded_key, outer_row);
    }

    /// Adds the range of an outer row: the entries from `start` on and before `end`, or all from `start` on. A range
    /// whose end is not above its start has none, and need not be pushed.
    pub fn push_range(&mut self, start: &[u8], end: Option<&[u8]>, outer_row: u32) {
        debug_assert!(
            !self.running,
            "a run is worked off before keys are pushed again"
        );
        debug_assert!(self.spec.ranged, "keys are looked up");
        if end.is_some_and(|end| end <= start) {
            return;
        }
        self.packed.clear();
        ranged_key::pack(start, end, &mut self.packed);
        self.walk.buffer.push(&self.packed, outer_row);
    }

    /// Whether the buffer holds `buffer_bytes` of keys.
    pub fn full(&self) -> bool {
        self.walk.buffer.is_full()
    }

    /// Starts to look up the keys pushed so far. After an error, here or in `next_batch`, the lookup can only be
    /// dropped.
    pub fn run(&mut self) -> Result<()> {
        self.running = true;
        self.tally.resume();
        let batched = self.spec.batched;
        let prefetching = batched
            && self.spec.sort_keys
            && !sample_is_resident(&self.walk.tree, &self.walk.buffer)?;
        if batched && self.spec.sort_keys {
            self.walk.buffer.sort();
        }
        if batched && self.runs > 0 {
            self.tally.mrr_key_refills += 1;
        }
        self.runs += 1;
        if batched {
            self.tally.mrr_init += 1;
        }
        if let Inner::Entries(rows) = &mut self.inner {
            rows.restart();
        }
        self.walk.windows.start(
            &self.walk.tree,
            &self.walk.buffer,
            prefetching,
            &mut self.tally.metrics,
        )
    }

    /// The next matches: for each row of the batch, the outer row that it belongs to. Never empty; `None` when the
    /// buffer is worked off, and empty again. Matches come in no particular order.
    pub fn next_batch(&mut self) -> Result<Option<(UInt32Array, RecordBatch)>> {
        self.tally.resume();
        let result = self.advance();
        self.tally.flush();
        if !matches!(result, Ok(Some(_))) {
            self.walk.clear();
            self.sharing = None;
            self.running = false;
        }
        result
    }

    fn advance(&mut self) -> Result<Option<(UInt32Array, RecordBatch)>> {
        loop {
            if let Some(sharing) = &mut self.sharing {
                match sharing.next(&self.walk.buffer, self.spec.batch.rows.max(1))? {
                    Some(shared) => return Ok(Some(shared)),
                    None => self.sharing = None,
                }
            }
            if !self.running {
                return Ok(None);
            }
            let tagged = match &mut self.inner {
                Inner::Entries(rows) => {
                    rows.next_batch(&mut self.walk, Direction::Forward, &mut self.tally)?
                }
                Inner::Rows {
                    reader,
                    block,
                    assembler,
                } => next_rows(
                    &mut self.walk,
                    reader.as_deref_mut(),
                    block,
                    assembler,
                    &mut self.tally,
                )?,
            };
            self.tally.pay()?;
            let Some(TaggedBatch {
                batch,
                tags: Some(groups),
            }) = tagged
            else {
                return Ok(None);
            };
            let buffer = &self.walk.buffer;
            if groups
                .values()
                .iter()
                .all(|&group| buffer.group_length(group as usize) == 1)
            {
                let outer = groups
                    .values()
                    .iter()
                    .map(|&group| buffer.tag(group as usize))
                    .collect();
                return Ok(Some((outer, batch)));
            }
            self.sharing = Some(Sharing {
                batch,
                groups,
                row: 0,
                member: 0,
            });
        }
    }

    /// What it did so far, over all runs.
    pub fn metrics(&self) -> ScanMetrics {
        self.tally.metrics
    }
}

/// Without batching, keys are still handed over in small groups.
const UNBATCHED_BYTES: usize = 64 * 1024;

/// The next batch of rows of the clustered tree.
fn next_rows(
    walk: &mut KeyWalk,
    mut reader: Option<&mut PointReader>,
    block: &mut RowBlock,
    assembler: &mut BatchAssembler,
    tally: &mut ScanCounters,
) -> Result<Option<TaggedBatch>> {
    loop {
        if assembler.is_ready()
            && let Some(batch) = assembler.finish(tally)?
        {
            return Ok(Some(batch));
        }
        block.clear();
        let wanted = assembler.wanted();
        let more = match &mut reader {
            Some(reader) => walk.read_points(reader, block, wanted, tally)?,
            None => walk.read_prefixes(block, wanted, tally)?,
        };
        assembler.add_block(block, tally)?;
        if !more {
            return assembler.finish(tally);
        }
    }
}

impl Sharing {
    /// The next pairs of outer row and match, at most `max_rows`.
    fn next(
        &mut self,
        buffer: &KeyBuffer,
        max_rows: usize,
    ) -> Result<Option<(UInt32Array, RecordBatch)>> {
        let (mut outer, mut rows) = (Vec::new(), Vec::new());
        while self.row < self.batch.num_rows() && rows.len() < max_rows {
            let group = self.groups.value(self.row) as usize;
            let length = buffer.group_length(group);
            let count = (length - self.member).min(max_rows - rows.len());
            outer.extend((0..count).map(|member| buffer.tag(group + self.member + member)));
            rows.resize(rows.len() + count, self.row as u32);
            self.member += count;
            if self.member == length {
                self.member = 0;
                self.row += 1;
            }
        }
        if rows.is_empty() {
            return Ok(None);
        }
        let taken = UInt32Array::from(rows);
        // Arrow's take refuses a batch without columns, which is what a join that only counts asks for.
        let inner = if self.batch.num_columns() == 0 {
            let options = RecordBatchOptions::new().with_row_count(Some(taken.len()));
            RecordBatch::try_new_with_options(self.batch.schema(), Vec::new(), &options)?
        } else {
            take_record_batch(&self.batch, &taken)?
        };
        Ok(Some((UInt32Array::from(outer), inner)))
    }
}

/// How many of the leaf's first entries begin with `key`.
fn leading_matches(leaf: &LeafEntries, key: &[u8]) -> usize {
    let prefix = leaf.prefix();
    let common = prefix.len().min(key.len());
    if prefix[..common] != key[..common] {
        return 0;
    }
    let rest = &key[common..];
    (0..leaf.len())
        .take_while(|&entry| leaf.suffix(entry).starts_with(rest))
        .count()
}

/// How many of the leaf's first entries come before `end`. Without bytes it is the end of the index.
fn leading_below(leaf: &LeafEntries, end: &[u8]) -> usize {
    if end.is_empty() {
        return leaf.len();
    }
    let prefix = leaf.prefix();
    let common = prefix.len().min(end.len());
    match prefix[..common].cmp(&end[..common]) {
        Ordering::Less => leaf.len(),
        Ordering::Greater => 0,
        // All entries begin with all of the end's bytes, or with the first of them.
        Ordering::Equal if end.len() <= prefix.len() => 0,
        Ordering::Equal => {
            let rest = &end[common..];
            let (mut below, mut open) = (0, leaf.len());
            while below < open {
                let middle = below + (open - below) / 2;
                match leaf.suffix(middle) < rest {
                    true => below = middle + 1,
                    false => open = middle,
                }
            }
            below
        }
    }
}

/// Walks the distinct neighbouring keys of a buffer through a tree.
struct KeyWalk {
    /// The keys are ranges.
    ranged: bool,
    tree: Arc<Tree>,
    buffer: KeyBuffer,
    windows: KeyWindows,
    cancel: CancelFlag,
    /// Goes to each key in turn. One cursor for all: it keeps its copy of a leaf, and needs no bound, because the
    /// entries tell where a key ends.
    cursor: LeafCursor,
    /// Entries of the key being looked up may follow on the next leaf.
    more: bool,
    /// The buffer position of the first of the equal keys being looked up: the tag of what they find.
    group: u32,
    /// A key has one match at most.
    unique: bool,
}

impl KeyWalk {
    /// Goes to the next key that differs from the one before it.
    fn next_key(&mut self, tally: &mut ScanCounters) -> Result<bool> {
        loop {
            let next =
                self.windows
                    .advance(&self.tree, &self.buffer, &self.cancel, &mut tally.metrics)?;
            let Some(position) = next else {
                return Ok(false);
            };
            if position == 0 || !self.buffer.same_key(position - 1, position) {
                self.group = position as u32;
                tally.read_key += 1;
                tally.metrics.keys += 1;
                return Ok(true);
            }
        }
    }

    /// Gives `visit` some entries that begin with the key being looked up, or lie in its range, or of the next one.
    /// False when all keys are looked up.
    fn next_matches(
        &mut self,
        tally: &mut ScanCounters,
        visit: impl FnOnce(&LeafEntries, usize, u32),
    ) -> Result<bool> {
        self.cancel.check()?;
        if !self.more {
            if !self.next_key(tally)? {
                return Ok(false);
            }
            self.cursor.seek(self.buffer.entry(self.windows.key()));
        }
        self.more = false;
        if let Some(leaf) = self.cursor.next_leaf()? {
            let key = self.windows.key();
            let matches = match self.ranged {
                true => leading_below(leaf, ranged_key::parts(key).1),
                false => leading_matches(leaf, key),
            };
            // The next leaf may go on with the same key if this one ends with it.
            self.more = matches == leaf.len() && !self.unique;
            visit(leaf, matches, self.group);
        }
        Ok(true)
    }

    /// Looks up complete primary keys. False when all keys are looked up.
    fn read_points(
        &mut self,
        reader: &mut PointReader,
        block: &mut RowBlock,
        wanted: usize,
        tally: &mut ScanCounters,
    ) -> Result<bool> {
        while !block.is_full(wanted) {
            if !self.next_key(tally)? {
                return Ok(false);
            }
            tally.metrics.row_lookups += 1;
            if let Some(keys) = self.windows.group_to_come() {
                // Equal keys are looked up once.
                let mut last = None;
                reader.look_ahead(keys.filter(|key| last.replace(*key) != Some(*key)));
            }
            if let Some(row) = reader.get(self.windows.key())? {
                block.push(self.windows.key(), row, self.group);
            }
        }
        Ok(true)
    }

    /// Reads the rows whose primary keys begin with the keys, or lie in their ranges. False when all keys are looked
    /// up.
    fn read_prefixes(
        &mut self,
        block: &mut RowBlock,
        wanted: usize,
        tally: &mut ScanCounters,
    ) -> Result<bool> {
        while !block.is_full(wanted) {
            let mut found = 0;
            let more = self.next_matches(tally, |leaf, matches, group| {
                (0..matches).for_each(|row| block.push_from(leaf, row, group));
                found = matches;
            })?;
            tally.step(Direction::Forward, found);
            if !more {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Forgets the keys.
    fn clear(&mut self) {
        self.buffer.clear();
        self.more = false;
    }
}

impl EntrySource for KeyWalk {
    fn fill(&mut self, block: &mut EntryBlock, tally: &mut ScanCounters) -> Result<bool> {
        while block.len() < BLOCK_ENTRIES {
            let mut found = 0;
            let more = self.next_matches(tally, |leaf, matches, group| {
                block.push_leaf(leaf, 0..matches, group);
                found = matches;
            })?;
            tally.metrics.index_entries += found as u64;
            if !more {
                break;
            }
        }
        Ok(!block.is_empty())
    }
}
