//! [`BatchAssembler`]: from runs of rows or entries to the batches that a scan delivers.
//!
//! Every access method ends here. A run passes the encoded part of the row condition, and the columns of what is left
//! are appended to the batch being built. When the batch is large enough, the rest of the condition is evaluated over
//! it at once, and the rows that pass are delivered.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::FilterBuilder;
use arrow::datatypes::SchemaRef;
use sheaf_storage::Direction;
use sheaf_table::{RowRun, Table};

use crate::arrow_types::projected_schema;
use crate::batch::materialize::ColumnBuilder;
use crate::batch::row_block::{LongColumns, RowBlock};
use crate::condition::columns::{ColumnSource, Source};
use crate::condition::index_entries::{EntryBlock, PrimaryKeySource};
use crate::condition::key_condition::KeyCondition;
use crate::condition::row_condition::RowCondition;
use crate::condition::{ColumnsCondition, Condition};
use crate::error::Result;
use crate::keys::byte_strings::ByteStrings;
use crate::keys::table_snapshot::TableSnapshot;
use crate::scan_counters::ScanCounters;
use crate::spec::BatchSize;

/// Rows of the first batch of a scan that a LIMIT may stop; the batches after it double. A LIMIT that is met early
/// should not have read a whole batch.
const FIRST_LIMITED_BATCH_ROWS: usize = 64;

/// Rows of a run when columns may be longer than a page: bounds a batch to
/// [`BatchSize::string_bytes`] and the values of so many rows.
const LONG_VALUE_RUN_ROWS: usize = 8;

/// A delivered batch; with tags, for each row the tag of the key that asked for it.
pub(crate) struct TaggedBatch {
    pub(crate) batch: RecordBatch,
    pub(crate) tags: Option<UInt32Array>,
}

/// A run of rows.
pub(crate) struct Rows<'a, R> {
    pub(crate) rows: R,
    pub(crate) count: usize,
    /// Their clustered keys, if the assembler [delivers](BatchAssembler::delivers_key) these: from `first_key` on.
    pub(crate) keys: &'a ByteStrings,
    pub(crate) first_key: usize,
    /// Their tags, if the assembler keeps these.
    pub(crate) tags: &'a [u32],
}

enum Encoded {
    None,
    Rows(RowCondition),
    Entries(KeyCondition),
}

/// The part of a condition that is evaluated per batch, over columns that a builder makes anyway.
pub(crate) struct Rest {
    schema: SchemaRef,
    /// For each column of the condition the builder that makes it.
    builders: Vec<usize>,
    condition: ColumnsCondition,
}

impl Rest {
    /// Plans how `condition` gets its columns: from `columns` (what the builders make), which grows by those that are
    /// missing.
    pub(crate) fn new(
        table: &Table,
        condition: &ColumnsCondition,
        columns: &mut Vec<usize>,
    ) -> Self {
        let builders = condition.columns.iter().map(|column| {
            columns
                .iter()
                .position(|have| have == column)
                .unwrap_or_else(|| {
                    columns.push(*column);
                    columns.len() - 1
                })
        });
        Self {
            builders: builders.collect(),
            schema: projected_schema(&table.definition, &condition.columns),
            condition: condition.clone(),
        }
    }

    /// Evaluates the condition over finished columns of `rows` rows.
    pub(crate) fn evaluate(
        &self,
        columns: &[ArrayRef],
        rows: usize,
    ) -> Result<arrow::array::BooleanArray> {
        let inputs = self
            .builders
            .iter()
            .map(|&builder| Arc::clone(&columns[builder]))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), inputs, &options)?;
        self.condition.condition.evaluate(&batch)
    }
}

/// See the module's comment.
pub(crate) struct BatchAssembler {
    table: TableSnapshot,
    source: Source,
    schema: SchemaRef,
    /// The projection's columns, then those that only `rest` reads.
    builders: Vec<ColumnBuilder>,
    /// How many of `builders` are delivered.
    delivered: usize,
    /// How an entry leads to the clustered key, if that is delivered.
    entry_keys: Option<PrimaryKeySource>,
    delivers_key: bool,
    /// The last key part that any builder reads.
    last_part: Option<usize>,
    encoded: Encoded,
    rest: Option<Rest>,
    /// Rows in the builders.
    rows: usize,
    /// Tags of these rows, if the rows of this scan have tags.
    tags: Option<Vec<u32>>,
    /// Rows at which the batch is delivered.
    target_rows: usize,
    max_rows: usize,
    /// Bytes of strings at which it is delivered, too.
    string_bytes: usize,
    /// Rows that may still be delivered.
    limit_left: Option<usize>,
    selection: Vec<u32>,
    /// `None`: all values that are to be delivered are in the rows.
    long_values: Option<LongColumns>,
}

impl BatchAssembler {
    pub(crate) fn new(
        table: &TableSnapshot,
        source: Source,
        projection: &[usize],
        condition: Option<&Condition>,
        tagged: bool,
        limit: Option<usize>,
        batch: BatchSize,
    ) -> Result<Self> {
        let max_rows = batch.rows.max(1);
        let target_rows = match limit {
            Some(limit) => limit.clamp(FIRST_LIMITED_BATCH_ROWS.min(max_rows), max_rows),
            None => max_rows,
        };
        let mut columns = projection.to_vec();
        let rest = condition.and_then(|condition| condition.rest.as_ref());
        let rest = rest.map(|rest| Rest::new(table, rest, &mut columns));
        let builders = columns
            .iter()
            .map(|&column| {
                Ok(ColumnBuilder::new(
                    ColumnSource::new(table, source, column)?,
                    target_rows,
                ))
            })
            .collect::<Result<Vec<_>>>()?;
        let delivers_key = builders.iter().any(ColumnBuilder::is_clustered_key);
        let entry_keys = match source {
            Source::Entries(position) if delivers_key => Some(PrimaryKeySource::new(
                &table.secondary_layouts[position],
                &table.clustered_layout,
            )),
            _ => None,
        };
        let strings = builders.iter().filter_map(ColumnBuilder::row_string);
        let long_values = LongColumns::new(table, strings, batch.string_bytes);
        let encoded = match (
            condition.and_then(|condition| condition.encoded.as_ref()),
            source,
        ) {
            (None, _) => Encoded::None,
            (Some(encoded), Source::Rows) => Encoded::Rows(RowCondition::compile(table, encoded)?),
            (Some(encoded), Source::Entries(position)) => {
                Encoded::Entries(KeyCondition::compile(table, position, encoded)?)
            }
        };
        Ok(Self {
            table: table.clone(),
            source,
            schema: projected_schema(&table.definition, projection),
            last_part: builders.iter().filter_map(ColumnBuilder::part).max(),
            builders,
            entry_keys,
            delivers_key,
            delivered: projection.len(),
            encoded,
            rest,
            rows: 0,
            tags: tagged.then(Vec::new),
            target_rows,
            max_rows,
            string_bytes: batch.string_bytes,
            limit_left: limit,
            selection: Vec::new(),
            long_values,
        })
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The first batch has few rows; those after it double.
    pub(crate) fn start_small(&mut self) {
        self.target_rows = FIRST_LIMITED_BATCH_ROWS.min(self.max_rows);
    }

    /// Rows that still fit the batch being built and the limit.
    pub(crate) fn wanted(&self) -> usize {
        let end = match self.limit_left {
            Some(left) if self.rest.is_none() => self.target_rows.min(left),
            _ => self.target_rows,
        };
        let wanted = end.saturating_sub(self.rows).max(1);
        if self.reads_long_values() {
            wanted.min(LONG_VALUE_RUN_ROWS)
        } else {
            wanted
        }
    }

    /// Whether values that are not in the rows may be read: then rows [with such values](Self::leads_to_long_values)
    /// should be added in runs of at most [`LONG_VALUE_RUN_ROWS`].
    pub(crate) fn reads_long_values(&self) -> bool {
        self.long_values.is_some()
    }

    /// A block for rows that are to be added.
    pub(crate) fn new_block(&self) -> RowBlock {
        RowBlock::new(self.delivers_key).bound_long_values(self.long_values.clone())
    }

    /// How many of these rows should be added before the batch is looked at again: one at least. A batch has no more
    /// rows than it should have: a sort that cuts it in two is charged with all of its strings for each part.
    pub(crate) fn run_of<'r>(&self, rows: impl Iterator<Item = &'r [u8]>) -> usize {
        let Some(long) = &self.long_values else {
            return usize::MAX;
        };
        let mut bytes = 0;
        let fits = |row: &&[u8]| {
            let has_room = bytes < long.most_bytes;
            bytes += long.bytes_of(row);
            has_room
        };
        rows.take(self.wanted()).take_while(fits).count().max(1)
    }

    /// Whether values that are to be delivered are not in these rows, but somewhere else.
    pub(crate) fn leads_to_long_values<'r>(
        &self,
        mut rows: impl Iterator<Item = &'r [u8]>,
    ) -> Result<bool> {
        let Some(long) = &self.long_values else {
            return Ok(false);
        };
        rows.try_fold(false, |found, row| {
            let view = self.table.row_layout.view(row)?;
            Ok(found || long.of_row(&view).any(|column| view.is_overflow(column)))
        })
    }

    /// Whether the clustered key is among the columns: then rows must come with their keys.
    pub(crate) fn delivers_key(&self) -> bool {
        self.delivers_key
    }

    /// Whether the limit has been delivered.
    pub(crate) fn is_done(&self) -> bool {
        self.limit_left == Some(0)
    }

    /// Whether the batch should be [finished](Self::finish) before more is added.
    pub(crate) fn is_ready(&self) -> bool {
        self.rows >= self.target_rows
            || self.limit_is_met()
            || self
                .builders
                .iter()
                .map(ColumnBuilder::string_bytes)
                .sum::<usize>()
                >= self.string_bytes
    }

    /// Whether rows that are sure to be delivered meet the limit.
    fn limit_is_met(&self) -> bool {
        self.rest.is_none() && self.limit_left.is_some_and(|left| self.rows >= left)
    }

    /// Adds rows that were looked up.
    pub(crate) fn add_block(&mut self, block: &RowBlock, tally: &mut ScanCounters) -> Result<()> {
        let rows = Rows {
            rows: block.rows.iter(),
            count: block.rows.len(),
            keys: &block.keys,
            first_key: 0,
            tags: &block.tags,
        };
        self.add_rows(rows, Direction::Forward, tally)?;
        Ok(())
    }

    /// Adds rows in their order, or in reverse. Returns how many were looked at: all, unless the limit was met.
    pub(crate) fn add_rows<'r>(
        &mut self,
        run: Rows<'_, impl Iterator<Item = &'r [u8]>>,
        direction: Direction,
        tally: &mut ScanCounters,
    ) -> Result<usize> {
        let table = self.table.clone();
        let mut views = RowRun::with_capacity(&table.row_layout, run.count);
        for row in run.rows {
            views.push(row)?;
        }
        let mut selection = std::mem::take(&mut self.selection);
        select_all(&mut selection, views.len(), direction);
        if let Encoded::Rows(condition) = &mut self.encoded {
            condition.retain(&table, &views, &mut selection)?;
        }
        let walked = self.cut_to_limit(&mut selection, views.len(), direction);
        tally.metrics.rows_examined += walked as u64;
        tally.rows_read += walked as u64;
        if selection.len() == views.len() && direction == Direction::Forward {
            self.append_views(&table, &views)?;
        } else {
            self.append_views(&table, &views.selected(&selection))?;
        }
        if self.delivers_key {
            for builder in &mut self.builders {
                if builder.is_clustered_key() {
                    let keys = selection
                        .iter()
                        .map(|&row| run.keys.get(run.first_key + row as usize));
                    builder.append_keys(keys)?;
                }
            }
        }
        self.append_tags(run.tags, &selection);
        self.selection = selection;
        Ok(walked)
    }

    fn append_views(&mut self, table: &TableSnapshot, views: &RowRun<'_>) -> Result<()> {
        for builder in &mut self.builders {
            if !builder.is_clustered_key() {
                builder.append_rows(table, views)?;
            }
        }
        self.rows += views.len();
        Ok(())
    }

    fn append_tags(&mut self, tags: &[u32], selection: &[u32]) {
        if let Some(collected) = &mut self.tags {
            collected.extend(selection.iter().map(|&row| tags[row as usize]));
        }
    }

    /// Adds the entries in `candidates`, in that order. Returns how many of these were looked at: all, unless the limit
    /// was met.
    pub(crate) fn add_entries(
        &mut self,
        block: &mut EntryBlock,
        candidates: &[u32],
        tally: &mut ScanCounters,
    ) -> Result<usize> {
        let Source::Entries(position) = self.source else {
            debug_assert!(false, "an assembler of rows gets no entries");
            return Ok(0);
        };
        let table = self.table.clone();
        let layout = &table.secondary_layouts[position];
        let mut selection = std::mem::take(&mut self.selection);
        selection.clear();
        selection.extend_from_slice(candidates);
        if let Encoded::Entries(condition) = &mut self.encoded {
            condition.retain(layout, block, &mut selection)?;
        }
        let mut walked = candidates.len();
        if let (None, Some(left)) = (&self.rest, self.limit_left) {
            let room = left.saturating_sub(self.rows);
            if selection.len() >= room {
                selection.truncate(room);
                let last = selection.last();
                let after_last = candidates
                    .iter()
                    .position(|entry| Some(entry) == last)
                    .map_or(0, |index| index + 1);
                walked = after_last;
            }
        }
        tally.metrics.rows_examined += walked as u64;
        tally.rows_read += walked as u64;
        if let Some(part) = self.last_part {
            block.locate(layout, part, &selection)?;
        }
        for builder in &mut self.builders {
            match &self.entry_keys {
                Some(keys) if builder.is_clustered_key() => {
                    builder.append_entry_keys(keys, layout, block, &selection)?;
                }
                _ => builder.append_entries(layout, block, &selection)?,
            }
        }
        self.rows += selection.len();
        self.append_tags(&block.tags, &selection);
        self.selection = selection;
        Ok(walked)
    }

    /// Leaves no more in `selection` than the limit asks for. Returns how many of the `count` rows were walked over to
    /// get there.
    fn cut_to_limit(&self, selection: &mut Vec<u32>, count: usize, direction: Direction) -> usize {
        let (None, Some(left)) = (&self.rest, self.limit_left) else {
            return count;
        };
        let room = left.saturating_sub(self.rows);
        if selection.len() < room {
            return count;
        }
        selection.truncate(room);
        match (selection.last(), direction) {
            (None, _) => 0,
            (Some(&last), Direction::Forward) => last as usize + 1,
            (Some(&last), Direction::Backward) => count - last as usize,
        }
    }

    /// Delivers what was added since the last time; `None` if nothing passed.
    pub(crate) fn finish(&mut self, tally: &mut ScanCounters) -> Result<Option<TaggedBatch>> {
        let mut rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(None);
        }
        self.target_rows = (self.target_rows * 2).min(self.max_rows);
        let mut columns = self
            .builders
            .iter_mut()
            .map(ColumnBuilder::finish)
            .collect::<Result<Vec<_>>>()?;
        let mut tags = self
            .tags
            .as_mut()
            .map(|tags| UInt32Array::from(std::mem::take(tags)));
        if let Some(rest) = &self.rest {
            let mask = rest.evaluate(&columns, rows)?;
            columns.truncate(self.delivered);
            let filter = FilterBuilder::new(&mask).optimize().build();
            if filter.count() < rows {
                rows = filter.count();
                columns = columns
                    .iter()
                    .map(|column| filter.filter(column))
                    .collect::<Result<_, _>>()?;
                tags = tags
                    .map(|tags| {
                        filter
                            .filter(&tags)
                            .map(|kept| UInt32Array::from(kept.to_data()))
                    })
                    .transpose()?;
            }
        }
        if rows == 0 {
            return Ok(None);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let mut batch =
            RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        if let Some(left) = &mut self.limit_left {
            if rows > *left {
                batch = batch.slice(0, *left);
                tags = tags.map(|tags| tags.slice(0, *left));
            }
            *left -= batch.num_rows();
        }
        tally.metrics.rows += batch.num_rows() as u64;
        tally.metrics.batches += 1;
        Ok(Some(TaggedBatch { batch, tags }))
    }
}

/// Selects `count` entries in their order, or in reverse.
pub(crate) fn select_all(selection: &mut Vec<u32>, count: usize, direction: Direction) {
    selection.clear();
    match direction {
        Direction::Forward => selection.extend(0..count as u32),
        Direction::Backward => selection.extend((0..count as u32).rev()),
    }
}
