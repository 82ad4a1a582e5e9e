//! The number of distinct values of the first one, two, ... parts of an index, from a sample of its leaves.
//!
//! The entries of an index are sorted, so equal prefixes are neighbours. The number of distinct ones is that of the
//! *borders*, where an entry differs from the one before, plus one. A sample of leaves holds nearly every pair of
//! neighbours with the same chance; its share of borders, times the number of pairs, is an estimate without bias. It
//! rests on the borders that were seen: b of them make a relative error of 1 / sqrt(b).
//!
//! Where a value fills several leaves, few borders are seen. Then more is learned from *coincidences*, values that were
//! seen in more leaves than one, and the estimate is the one for columns ([`crate::statistics::distinct`]). Whichever
//! was seen more often decides.
//!
//! A tree that is read as a whole is counted exactly.

use sheaf_storage::{LeafSample, Tree};

use crate::codec::key_codec::KeyLayout;
use crate::error::Result;
use crate::lock::table_lock::Interrupt;
use crate::statistics::distinct::{LeafFrequencies, estimate};
use crate::statistics::{IndexStatistics, check};

/// What was counted of the prefixes of one length.
#[derive(Default)]
struct PrefixCounts {
    /// Neighbours in a leaf that differ.
    borders: u64,
    /// In how many leaves the present prefix was seen, the present leaf included.
    leaves: u64,
    frequencies: LeafFrequencies,
}

impl PrefixCounts {
    /// The present prefix is over.
    fn end_prefix(&mut self) {
        if self.leaves > 0 {
            *self.frequencies.entry(self.leaves).or_default() += 1;
        }
        self.leaves = 1;
    }

    fn estimate(&self, pairs: u64, share: f64, entries: u64) -> u64 {
        let from_leaves = estimate(&self.frequencies, share, entries);
        let coincidences: u64 = self
            .frequencies
            .iter()
            .map(|(leaves, values)| (leaves - 1) * values)
            .sum();
        if share >= 1.0 || coincidences > self.borders || pairs == 0 {
            return from_leaves.value;
        }
        let of_pairs = self.borders as f64 / pairs as f64;
        let borders = of_pairs * entries.saturating_sub(1) as f64;
        // What was seen is there for certain, but the number of entries may lag behind it.
        (borders.round() as u64 + 1).clamp(from_leaves.low, entries.max(from_leaves.low))
    }
}

/// Reads a sample of an index.
pub(crate) fn sample_index(
    tree: &Tree,
    layout: &KeyLayout,
    mut sample: LeafSample,
    interrupt: Interrupt<'_>,
) -> Result<IndexStatistics> {
    let mut prefixes: Vec<PrefixCounts> = Vec::new();
    prefixes.resize_with(layout.declared, PrefixCounts::default);
    let (mut entries, mut pairs, mut bytes) = (0u64, 0u64, 0u64);
    let (mut key, mut previous) = (Vec::new(), Vec::new());
    while let Some(leaf) = sample.next_leaf()? {
        check(interrupt)?;
        for entry in 0..leaf.len() {
            leaf.key_into(entry, &mut key);
            bytes += (key.len() + leaf.value(entry).len()) as u64;
            let is_inside = entry > 0;
            pairs += u64::from(is_inside);
            let mut end = 0;
            for (part, counts) in prefixes.iter_mut().enumerate() {
                end += layout.part_length(part, key.get(end..).unwrap_or(&[]))?;
                let differs = entries == 0 || !previous.starts_with(&key[..end]);
                if differs {
                    counts.end_prefix();
                    counts.borders += u64::from(is_inside);
                } else if !is_inside {
                    counts.leaves += 1;
                }
            }
            entries += 1;
            std::mem::swap(&mut key, &mut previous);
        }
    }
    let total = match sample.is_complete() {
        true => entries,
        false => tree.statistics().entries.max(entries),
    };
    let share = sample.share();
    let mut least = 0;
    let distinct_prefixes = prefixes.iter_mut().map(|counts| {
        if entries > 0 {
            counts.end_prefix();
        }
        // A longer prefix has at least as many values.
        least = counts.estimate(pairs, share, total).max(least);
        least
    });
    Ok(IndexStatistics {
        distinct_prefixes: distinct_prefixes.collect(),
        entry_bytes: bytes as f64 / entries.max(1) as f64,
    })
}
