//! ANALYZE TABLE: reads samples of a table's trees and makes statistics of them.
//!
//! It holds no lock on rows and no snapshot. Every leaf is read as it is at that moment, and rows that are changed
//! meanwhile make no difference that matters to an estimate.
//!
//! Memory is bounded: 8 bytes for each value of the sampled leaves, and the values of the rows that histograms are made
//! from. With many columns, both become fewer.

use std::collections::BTreeMap;
use std::sync::Arc;

use sheaf_storage::{Random, Tree};

use crate::codec::row_codec::RowView;
use crate::error::Result;
use crate::lock::table_lock::Interrupt;
use crate::statistics::column_key::ColumnKey;
use crate::statistics::correlation::correlation;
use crate::statistics::distinct::{DistinctValues, EXACT_VALUES};
use crate::statistics::histogram::ValueSample;
use crate::statistics::hyper_log_log::hash;
use crate::statistics::index_prefixes::sample_index;
use crate::statistics::{
    AnalyzeOptions, ColumnStatistics, DEFAULT_BUCKETS, Histogram, IndexStatistics, TableStatistics,
    check,
};
use crate::table::Table;

/// Rows that histograms are made from: 300 for each of 100 buckets (see [`crate::statistics::histogram`]).
const HISTOGRAM_ROWS: usize = 30_000;
/// The same, where there are so many columns that memory is short.
const LEAST_HISTOGRAM_ROWS: usize = 3_000;
/// Memory for the values of those rows, in bytes.
const VALUE_MEMORY_BYTES: usize = 64 << 20;
/// What a value takes of it.
const ASSUMED_VALUE_BYTES: usize = 32;

/// Memory for hashes of all values of the sampled leaves, in bytes.
const HASH_MEMORY_BYTES: u64 = 128 << 20;
/// Leaves that are sampled however many columns there are.
const LEAST_LEAVES: u64 = 64;

/// What was found out about one column so far.
struct ColumnSample {
    column: usize,
    key: ColumnKey,
    nulls: u64,
    /// Of values that are not NULL.
    bytes: u64,
    distinct: DistinctValues,
    /// From the rows that were chosen for histograms.
    values: ValueSample,
    buffers: (Vec<u8>, Vec<u8>),
}

impl ColumnSample {
    /// One of so many columns.
    fn new(table: &Table, column: usize, columns: usize) -> ColumnSample {
        let hashes = HASH_MEMORY_BYTES / 8 / columns as u64;
        ColumnSample {
            column,
            key: ColumnKey::new(&table.definition, column),
            nulls: 0,
            bytes: 0,
            distinct: DistinctValues::new(EXACT_VALUES.min(hashes as usize)),
            values: ValueSample::default(),
            buffers: Default::default(),
        }
    }

    fn add(&mut self, table: &Table, row: &RowView<'_>, is_for_histogram: bool) {
        let value = row.value_ref(self.column);
        if value.is_null() {
            self.nulls += 1;
            return;
        }
        let (key, payload) = &mut self.buffers;
        key.clear();
        payload.clear();
        if row.is_overflow(self.column) {
            // A long value is not read. It is taken to differ from all others, and no histogram has it.
            let reference = row.get_bytes(self.column);
            self.bytes += crate::codec::overflow::length(reference).unwrap_or(0);
            self.distinct.add(hash(reference));
            return;
        }
        self.bytes += match table.row_layout.fixed(self.column) {
            Some((_, width)) => width as u64,
            None => row.get_bytes(self.column).len() as u64,
        };
        self.key.encode_whole(value, key);
        self.distinct.add(hash(key));
        if is_for_histogram {
            key.clear();
            self.key.encode(value, key, payload);
            self.values.add(key, payload);
        }
    }
}

/// A sample of a table's rows.
struct RowSample {
    columns: Vec<ColumnSample>,
    rows: u64,
    bytes: u64,
    /// Share of the leaves.
    share: f64,
    is_complete: bool,
    /// All rows were chosen for histograms.
    has_all_values: bool,
    histogram_rows: u64,
    histogram_nulls: Vec<u64>,
}

/// Leaves to read so that the hashes of all values fit in memory.
fn leaves_for(table: &Table, columns: usize, wanted: usize) -> usize {
    let statistics = table.clustered.statistics();
    if statistics.leaf_pages <= wanted as u64 {
        // Everything is read, and a sketch takes over when there are too many values.
        return wanted;
    }
    let rows_per_leaf = (statistics.entries / statistics.leaf_pages.max(1)).max(1);
    let fit = HASH_MEMORY_BYTES / (8 * rows_per_leaf * columns.max(1) as u64);
    wanted.min(fit.max(LEAST_LEAVES) as usize)
}

fn sample_rows(
    table: &Table,
    columns: &[usize],
    options: &AnalyzeOptions,
    interrupt: Interrupt<'_>,
) -> Result<RowSample> {
    let leaves = leaves_for(table, columns.len(), options.sample_leaves);
    let mut leaf_sample = table.clustered.sample_leaves(leaves, options.seed)?;
    let (share, is_complete) = (leaf_sample.share(), leaf_sample.is_complete());
    let most = VALUE_MEMORY_BYTES / (ASSUMED_VALUE_BYTES * columns.len().max(1));
    let most = most.clamp(LEAST_HISTOGRAM_ROWS, HISTOGRAM_ROWS);
    let expected = table.row_count_estimate() as f64 * share;
    // A row is chosen for histograms with the same chance, wherever it is.
    let has_all_values = expected <= most as f64;
    let chance = (most as f64 / expected.max(1.0) * u64::MAX as f64) as u64;
    let mut random = Random::new(options.seed ^ table.definition.id);
    let mut sample = RowSample {
        columns: columns
            .iter()
            .map(|&column| ColumnSample::new(table, column, columns.len()))
            .collect(),
        rows: 0,
        bytes: 0,
        share,
        is_complete,
        has_all_values: is_complete && has_all_values,
        histogram_rows: 0,
        histogram_nulls: vec![0; columns.len()],
    };
    while let Some(leaf) = leaf_sample.next_leaf()? {
        check(interrupt)?;
        let key_bytes = leaf.prefix().len();
        for entry in 0..leaf.len() {
            let bytes = leaf.value(entry);
            let row = table.view(bytes)?;
            sample.rows += 1;
            sample.bytes += (key_bytes + leaf.suffix(entry).len() + bytes.len()) as u64;
            let is_for_histogram = has_all_values || random.next() < chance;
            sample.histogram_rows += u64::from(is_for_histogram);
            for (column, nulls) in sample.columns.iter_mut().zip(&mut sample.histogram_nulls) {
                column.add(table, &row, is_for_histogram);
                *nulls += u64::from(is_for_histogram && row.is_null(column.column));
            }
        }
        for column in &mut sample.columns {
            column.distinct.end_leaf(is_complete);
        }
    }
    Ok(sample)
}

impl RowSample {
    /// The statistics of each column, for `wanted` buckets.
    fn finish(
        self,
        table: &Table,
        wanted: impl Fn(usize) -> usize,
        now: i64,
    ) -> Vec<(usize, ColumnStatistics)> {
        let rows = match self.is_complete {
            true => self.rows,
            false => table.row_count_estimate().max(self.rows),
        };
        let nulls = self.histogram_nulls;
        let columns = self.columns.into_iter().zip(nulls);
        columns
            .map(|(column, histogram_nulls)| {
                let null_share = column.nulls as f64 / self.rows.max(1) as f64;
                let not_null = self.rows - column.nulls;
                let most = (rows as f64 * (1.0 - null_share)).ceil() as u64;
                let distinct = column.distinct.estimate(self.share, most.max(not_null));
                let order = column.values.sorted();
                let buckets = wanted(column.column);
                let histogram = (buckets > 0 && !order.is_empty()).then(|| {
                    // Long values are not in the sample; the others stand for them.
                    let known = column.values.len() as u64 + histogram_nulls;
                    Histogram::build(
                        &column.values,
                        &order,
                        known as usize,
                        self.has_all_values && known == self.histogram_rows,
                        distinct.value,
                        buckets,
                    )
                });
                let statistics = ColumnStatistics {
                    null_share,
                    distinct,
                    average_bytes: column.bytes as f64 / not_null.max(1) as f64,
                    correlation: correlation(order.iter().map(|&at| at as usize)),
                    wanted_buckets: buckets,
                    histogram,
                    sampling_rate: self.share,
                    collected_at: now,
                };
                (column.column, statistics)
            })
            .collect()
    }
}

/// Analyzes a table. `earlier` says which histograms are wanted.
pub(crate) fn analyze(
    table: &Table,
    options: &AnalyzeOptions,
    earlier: Option<&TableStatistics>,
    interrupt: Interrupt<'_>,
) -> Result<TableStatistics> {
    let columns: Vec<usize> = (0..table.definition.columns.len()).collect();
    let sample = sample_rows(table, &columns, options, interrupt)?;
    let row_bytes = sample.bytes as f64 / sample.rows.max(1) as f64;
    let wanted = |column: usize| {
        earlier
            .and_then(|earlier| earlier.columns.get(column))
            .map_or(DEFAULT_BUCKETS, |column| column.wanted_buckets)
    };
    let columns = sample.finish(table, wanted, options.now);
    let mut columns: Vec<ColumnStatistics> = columns.into_iter().map(|(_, found)| found).collect();
    let index = |tree: &Arc<Tree>, layout| -> Result<IndexStatistics> {
        let leaves = tree.sample_leaves(options.sample_leaves, options.seed)?;
        sample_index(tree, layout, leaves, interrupt)
    };
    let mut indexes = BTreeMap::new();
    if !table.definition.has_hidden_row_id() {
        let primary = index(&table.clustered, &table.clustered_layout)?;
        indexes.insert(table.definition.primary.id, primary);
    }
    for (position, definition) in table.definition.secondary.iter().enumerate() {
        let layout = &table.secondary_layouts[position];
        indexes.insert(definition.id, index(&table.secondary[position], layout)?);
    }
    for definition in table.definition.indexes() {
        let Some(first) = definition.parts.first() else {
            continue;
        };
        let known = indexes.get(&definition.id);
        let known = known.and_then(|index| index.distinct_prefixes.first());
        if let (Some(&known), None) = (known, first.prefix_length) {
            let column = &mut columns[first.column];
            // The order of an index tells more than a sample of rows. It counts NULL as a value.
            let values = known - u64::from(column.null_share > 0.0).min(known);
            let distinct = &mut column.distinct;
            distinct.value = values.clamp(distinct.low, distinct.high);
        }
    }
    Ok(TableStatistics {
        rows: table.row_count_estimate(),
        row_bytes,
        indexes,
        columns,
    })
}

/// Analyzes some columns of a table, by position, to make histograms of `buckets` buckets.
pub(crate) fn analyze_columns(
    table: &Table,
    columns: &[usize],
    buckets: usize,
    options: &AnalyzeOptions,
    interrupt: Interrupt<'_>,
) -> Result<Vec<(usize, ColumnStatistics)>> {
    let sample = sample_rows(table, columns, options, interrupt)?;
    Ok(sample.finish(table, |_| buckets, options.now))
}
