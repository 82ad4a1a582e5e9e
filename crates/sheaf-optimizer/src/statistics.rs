//! What is known about the data: entries in a range, distinct keys, what is in memory, and what things cost.
//!
//! Nothing here is remembered between statements: every number comes from the trees' inner nodes (index dives) or
//! from ANALYZE TABLE. A dive costs a few microseconds.
//!
//! Costs are microseconds on the class of machine that the constants were measured on. They need only be right
//! relative to each other.

use datafusion_common::{DataFusionError, Result};
use datafusion_expr::{Expr, Operator};
use sheaf_access::IndexRef;
use sheaf_storage::{KeyRange, StorageError, Tree};
use sheaf_table::{KeyLayout, Table};

/// Going from one entry of a leaf to the next and reading its fixed columns.
pub(crate) const ENTRY_US: f64 = 0.05;
/// One column of one row into an Arrow array, a string or number on average.
pub(crate) const COLUMN_US: f64 = 0.006;
/// Descending a tree whose pages are in memory, keys in no order.
pub(crate) const LOOKUP_US: f64 = 0.7;
/// The same for keys in order, many to a leaf.
pub(crate) const SORTED_LOOKUP_US: f64 = 0.35;
/// Evaluating one condition on one row.
pub(crate) const CONDITION_US: f64 = 0.01;
/// Reading a page at random, waiting for it.
pub(crate) const RANDOM_PAGE_US: f64 = 40.0;
/// Reading a page that was asked for ahead, in order with gaps.
pub(crate) const PREFETCHED_PAGE_US: f64 = 14.0;
/// Reading the next page of a sequential scan.
pub(crate) const SEQUENTIAL_PAGE_US: f64 = 9.0;
/// Comparing two rows while sorting.
pub(crate) const COMPARE_US: f64 = 0.02;
/// Putting a row into a hash table.
pub(crate) const HASH_BUILD_US: f64 = 0.12;
/// Probing a hash table with a row.
pub(crate) const HASH_PROBE_US: f64 = 0.07;
/// Copying a joined row into the output.
pub(crate) const JOINED_ROW_US: f64 = 0.05;

/// Ranges of one index that are looked up in the tree for an estimate; the others are taken to be like them.
const MAX_DIVES: usize = 100;

/// Keys at which the number of rows per key is sampled.
const SAMPLED_KEYS: usize = 16;

pub(crate) fn storage_error(error: StorageError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The tree of an index.
pub(crate) fn tree(table: &Table, index: IndexRef) -> &std::sync::Arc<Tree> {
    match index {
        IndexRef::Clustered => &table.clustered,
        IndexRef::Secondary(position) => &table.secondary[position],
    }
}

/// The key layout of an index.
pub(crate) fn layout(table: &Table, index: IndexRef) -> &KeyLayout {
    match index {
        IndexRef::Clustered => &table.clustered_layout,
        IndexRef::Secondary(position) => &table.secondary_layouts[position],
    }
}

/// Estimated entries in `ranges`.
pub(crate) fn entries_in(tree: &Tree, ranges: &[KeyRange]) -> Result<f64> {
    let dives = ranges.len().min(MAX_DIVES);
    if dives == 0 {
        return Ok(0.0);
    }
    let mut entries = 0.0;
    // Spread over all ranges, so that neighbours do not stand for the rest.
    for dive in 0..dives {
        let range = &ranges[dive * ranges.len() / dives];
        entries += tree.estimate_entries(range).map_err(storage_error)? as f64;
    }
    Ok(entries * ranges.len() as f64 / dives as f64)
}

/// Average rows that share a key of the first `parts` parts of an index.
///
/// From ANALYZE TABLE if it ran. Otherwise from a sample of keys cut evenly from the tree: a key is met there in
/// proportion to its rows, so the average number of rows per key is the harmonic mean of what the sample finds.
pub(crate) fn rows_per_key(table: &Table, index: IndexRef, parts: usize) -> Result<f64> {
    let definition = index.definition(table);
    let declared = definition.parts.len();
    if (definition.unique || definition.primary) && parts >= declared {
        return Ok(1.0);
    }
    let tree = tree(table, index);
    let entries = tree.statistics().entries.max(1) as f64;
    let secondary = match index {
        IndexRef::Clustered => None,
        IndexRef::Secondary(position) => Some(position),
    };
    if let Some(distinct) = table.distinct_prefixes(secondary)
        && let Some(keys) = distinct.get(parts.saturating_sub(1).min(declared.saturating_sub(1)))
    {
        return Ok((entries / (*keys).max(1) as f64).max(1.0));
    }
    let layout = layout(table, index);
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

/// Rows per key of a tree that is too small to be cut.
const SMALL_TREE_ROWS_PER_KEY: f64 = 2.0;

/// Share of the rows that a condition is guessed to accept when no index knows better.
pub(crate) fn default_selectivity(expr: &Expr) -> f64 {
    match expr {
        Expr::BinaryExpr(binary) => match binary.op {
            Operator::And => default_selectivity(&binary.left) * default_selectivity(&binary.right),
            Operator::Or => {
                let (left, right) = (
                    default_selectivity(&binary.left),
                    default_selectivity(&binary.right),
                );
                left + right - left * right
            }
            Operator::Eq | Operator::IsNotDistinctFrom => 0.1,
            Operator::NotEq => 0.9,
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => 0.33,
            _ => 0.5,
        },
        Expr::Between(between) if between.negated => 0.89,
        Expr::Between(_) => 0.11,
        Expr::InList(list) => {
            let share = (0.1 * list.list.len() as f64).min(0.5);
            if list.negated { 1.0 - share } else { share }
        }
        Expr::Like(like) if like.negated => 0.89,
        Expr::Like(_) => 0.11,
        Expr::IsNull(_) => 0.1,
        Expr::IsNotNull(_) => 0.9,
        Expr::Not(inner) => 1.0 - default_selectivity(inner),
        Expr::IsTrue(inner) => default_selectivity(inner),
        Expr::Alias(alias) => default_selectivity(&alias.expr),
        _ => 0.5,
    }
}

/// Pages touched when `lookups` random keys of a tree of `pages` leaves are read (Cardenas).
pub(crate) fn distinct_pages(lookups: f64, pages: f64) -> f64 {
    if pages <= 1.0 {
        return pages.min(lookups);
    }
    pages * (1.0 - (lookups * (1.0 - 1.0 / pages).ln()).exp())
}

/// Pages read when `lookups` rows of a tree of `leaves` pages are fetched in turns, each sorted, of at most
/// `keys_per_turn` keys. A tree that does not fit in the pool's `pool_pages` is gone through anew in each turn.
pub(crate) fn pages_in_turns(
    lookups: f64,
    leaves: f64,
    keys_per_turn: f64,
    pool_pages: f64,
) -> f64 {
    let once = distinct_pages(lookups, leaves);
    if leaves <= pool_pages {
        return once;
    }
    let turns = (lookups / keys_per_turn.max(1.0)).ceil().max(1.0);
    turns * distinct_pages(lookups / turns, leaves)
}
