//! What the trees know about the data: entries in a range, distinct keys, what is in memory.
//!
//! Nothing here is remembered between statements: every number comes from the trees' inner nodes (index dives) or
//! from ANALYZE TABLE. A dive costs a few microseconds.

use datafusion_common::{DataFusionError, Result};
use sheaf_access::IndexRef;
use sheaf_storage::{KeyRange, StorageError};
use sheaf_table::{IndexTree, KeyLayout, Table};

use crate::access::ranges::IndexRanges;

/// Ranges of one index that are looked up in the tree for an estimate; the others are taken to be like them.
const MAX_DIVES: usize = 100;

/// Ranges of one index whose pages are looked for in memory; the others are taken to be like them.
const MAX_RESIDENCY_LOOKS: usize = 16;

/// Keys at which the number of rows per key is sampled.
const SAMPLED_KEYS: usize = 16;

pub(crate) fn storage_error(error: StorageError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The tree of an index, or what stands for it.
pub(crate) fn tree(table: &Table, index: IndexRef) -> IndexTree<'_> {
    match index {
        IndexRef::Clustered => IndexTree::Real(&table.clustered),
        IndexRef::Secondary(position) => table.secondary_tree(position),
    }
}

/// The key layout of an index.
pub(crate) fn layout(table: &Table, index: IndexRef) -> &KeyLayout {
    match index {
        IndexRef::Clustered => &table.clustered_layout,
        IndexRef::Secondary(position) => &table.secondary_layouts[position],
    }
}

/// Estimated entries in ranges of an index, by dives.
///
/// From `dive_limit` ranges of single values on (0: never), each is taken to hold as many entries as the average key,
/// as MySQL does. Dives cost time, and the statistics do not change with every row.
pub(crate) fn entries_in(
    table: &Table,
    index: IndexRef,
    found: &IndexRanges,
    dive_limit: usize,
) -> Result<f64> {
    let ranges = &found.ranges;
    let dives = ranges.len().min(MAX_DIVES);
    if dives == 0 {
        return Ok(0.0);
    }
    let equal = found.parts > 0 && found.equal_parts == found.parts;
    if equal && dive_limit > 0 && ranges.len() >= dive_limit {
        let parts = found.parts.min(index.definition(table).parts.len());
        let entries = tree(table, index).statistics().entries as f64;
        let average = ranges.len() as f64 * rows_per_key(table, index, parts)?;
        return Ok(average.min(entries));
    }
    let tree = tree(table, index);
    let mut entries = 0.0;
    // Spread over all ranges, so that neighbours do not stand for the rest.
    for dive in 0..dives {
        let range = &ranges[dive * ranges.len() / dives];
        entries += tree.estimate_entries(range).map_err(storage_error)? as f64;
    }
    Ok(entries * ranges.len() as f64 / dives as f64)
}

/// Share of the leaves of some ranges that is in memory; of many ranges, from some of them.
pub(crate) fn resident_share(tree: IndexTree<'_>, ranges: &[KeyRange]) -> Result<f64> {
    let looks = ranges.len().min(MAX_RESIDENCY_LOOKS);
    let mut sum = 0.0;
    for look in 0..looks {
        let range = &ranges[look * ranges.len() / looks];
        sum += tree.resident_share(range).map_err(storage_error)?;
    }
    Ok(if looks == 0 { 1.0 } else { sum / looks as f64 })
}

/// Average rows that share a key of the first `parts` parts of an index.
///
/// From ANALYZE TABLE if it ran. Otherwise from a sample of keys cut evenly from the tree. A key is met there in
/// proportion to its rows, so the average number of rows per key is the harmonic mean of what the sample finds.
pub(crate) fn rows_per_key(table: &Table, index: IndexRef, parts: usize) -> Result<f64> {
    let definition = index.definition(table);
    let declared = definition.parts.len();
    if (definition.unique || definition.primary) && parts >= declared {
        return Ok(1.0);
    }
    let layout = layout(table, index);
    if parts >= layout.parts.len() {
        // With the primary key behind the declared parts every entry is unique.
        return Ok(1.0);
    }
    let tree = match tree(table, index) {
        IndexTree::Real(tree) => tree,
        IndexTree::Hypothetical(index, _) => return Ok(index.rows_per_key(parts)),
    };
    let entries = tree.statistics().entries.max(1) as f64;
    if let Some(keys) = analyzed_keys(table, index, declared, parts) {
        return Ok((entries / keys.max(1) as f64).max(1.0));
    }
    let keys = tree
        .split_points(&KeyRange::all(), SAMPLED_KEYS)
        .map_err(storage_error)?;
    let mut inverse = 0.0;
    let mut sampled = 0.0;
    let mut offsets = Vec::new();
    for key in &keys {
        // The tree may cut anywhere between two keys: a separator can be shorter than a key.
        if layout.part_offsets(key, &mut offsets).is_err() {
            continue;
        }
        let end = offsets.get(parts).copied().unwrap_or(key.len());
        let rows = tree
            .estimate_entries(&KeyRange::prefix(&key[..end]))
            .map_err(storage_error)?;
        inverse += 1.0 / rows.max(1) as f64;
        sampled += 1.0;
    }
    Ok(if sampled == 0.0 {
        SMALL_TREE_ROWS_PER_KEY.min(entries)
    } else {
        (sampled / inverse).clamp(1.0, entries)
    })
}

/// Distinct keys of the first `parts` parts of an index, of which `declared` parts are its own; `None`: never analyzed.
///
/// Of the parts behind those, which are the primary key's, as many values are taken to occur as in the clustered tree:
/// at least that many there are.
fn analyzed_keys(table: &Table, index: IndexRef, declared: usize, parts: usize) -> Option<u64> {
    let distinct = match index {
        IndexRef::Clustered => table.distinct_prefixes(None),
        IndexRef::Secondary(position) => table.distinct_prefixes(Some(position)),
    }?;
    let own = distinct.get(parts.min(declared).checked_sub(1)?).copied()?;
    let behind = parts.saturating_sub(declared).checked_sub(1);
    let of_primary = behind.and_then(|last| table.distinct_prefixes(None)?.get(last).copied());
    Some(own.max(of_primary.unwrap_or(0)))
}

/// Rows per key of a tree that is too small to be cut.
const SMALL_TREE_ROWS_PER_KEY: f64 = 2.0;
