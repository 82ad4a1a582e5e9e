//! Statistics of a table, as ANALYZE TABLE collects them.
//!
//! The number of distinct values of the first one, two, ... parts of an index is estimated from a sample of leaves. In
//! key order equal values are neighbours, so their number is one more than the number of neighbours that differ. The
//! share of differing neighbours within the sampled leaves, times the number of entries, estimates that; a column of few
//! values has hardly a border inside of a leaf, so the number of values seen in the whole sample is a lower bound.
//! A small tree is read completely, and the numbers are exact.

use std::collections::BTreeMap;
use std::sync::Arc;

use sheaf_storage::{Direction, KeyRange, ReadAhead, Tree};

use crate::error::Result;
use crate::key_codec::KeyLayout;
use crate::table::Table;

/// The most leaves that are read of each index.
const SAMPLE_LEAVES: usize = 64;

/// What ANALYZE TABLE found out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableStatistics {
    pub rows: u64,
    /// By index id: estimated distinct values of the first 1, 2, ... declared parts.
    pub distinct_prefixes: BTreeMap<u32, Vec<u64>>,
}

/// Counts rows and samples all indexes.
pub(crate) fn analyze(table: &Table) -> Result<TableStatistics> {
    let rows = table.row_count_estimate();
    let mut distinct_prefixes = BTreeMap::new();
    if !table.definition.has_hidden_row_id() {
        let distinct = sample(&table.clustered, &table.clustered_layout)?;
        distinct_prefixes.insert(table.definition.primary.id, distinct);
    }
    for (position, index) in table.definition.secondary.iter().enumerate() {
        let distinct = sample(
            &table.secondary[position],
            &table.secondary_layouts[position],
        )?;
        distinct_prefixes.insert(index.id, distinct);
    }
    Ok(TableStatistics {
        rows,
        distinct_prefixes,
    })
}

/// What was counted of the prefixes of one length.
#[derive(Default, Clone)]
struct Borders {
    /// Neighbours in a leaf that differ.
    inside: u64,
    /// Different values in the sample.
    seen: u64,
}

fn sample(tree: &Arc<Tree>, layout: &KeyLayout) -> Result<Vec<u64>> {
    let statistics = tree.statistics();
    let everything = statistics.leaf_pages as usize <= SAMPLE_LEAVES;
    let starts = match everything {
        true => Vec::new(),
        false => tree.split_points(&KeyRange::all(), SAMPLE_LEAVES)?,
    };
    let mut borders = vec![Borders::default(); layout.declared];
    let mut pairs = 0;
    let mut previous = Vec::new();
    let mut key = Vec::new();
    let mut cursor = tree.scan(KeyRange::all(), Direction::Forward, ReadAhead::Off);
    let mut starts = starts.iter();
    let mut entries = 0u64;
    while let Some(leaf) = cursor.next_leaf()? {
        for entry in 0..leaf.len() {
            leaf.key_into(entry, &mut key);
            entries += 1;
            let inside = entry > 0;
            pairs += u64::from(inside || everything);
            for (parts, borders) in borders.iter_mut().enumerate() {
                let prefix = layout.leading_parts(&key, parts + 1)?;
                let differs = entries == 1 || !previous.starts_with(prefix);
                borders.seen += u64::from(differs);
                borders.inside += u64::from(differs && inside);
            }
            std::mem::swap(&mut previous, &mut key);
        }
        if !everything {
            match starts.next() {
                Some(start) => cursor.seek(start),
                None => break,
            }
        }
    }
    let total = statistics.entries.max(entries);
    let estimate = |borders: &Borders| match everything || pairs == 0 {
        true => borders.seen,
        false => {
            let share = borders.inside as f64 / pairs as f64;
            ((share * total as f64) as u64 + 1).clamp(borders.seen, total)
        }
    };
    Ok(borders.iter().map(estimate).collect())
}
