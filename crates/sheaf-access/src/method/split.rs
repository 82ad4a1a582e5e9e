//! Splitting a scan for parallel workers.
//!
//! Ranges are weighed by index dives; a range heavier than one worker's share is cut at keys that divide its leaves
//! evenly, as the inner nodes tell. Each worker gets a run of neighbouring pieces, so it still reads its leaves in
//! key order, and the shares follow each other in key order.

use std::ops::Bound;

use sheaf_storage::{KeyRange, Tree};
use sheaf_table::Table;

use crate::error::Result;
use crate::spec::IndexRef;

/// With more ranges than this the dives cost more than an even share is worth: ranges then weigh the same.
const MAX_DIVES: usize = 1024;

/// Divides `ranges` (ascending, disjoint) of an index among at most `parts` workers. Each share is ascending,
/// disjoint and not empty, and the shares follow each other in key order. No ranges make no shares.
pub fn split_ranges(
    table: &Table,
    index: IndexRef,
    ranges: &[KeyRange],
    parts: usize,
) -> Result<Vec<Vec<KeyRange>>> {
    if ranges.is_empty() {
        return Ok(Vec::new());
    }
    if parts <= 1 {
        return Ok(vec![ranges.to_vec()]);
    }
    let tree = index.tree(table);
    let mut weights = vec![1; ranges.len()];
    if ranges.len() <= MAX_DIVES {
        for (weight, range) in weights.iter_mut().zip(ranges) {
            *weight = tree.estimate_entries(range)?.max(1);
        }
    }
    let target = weights.iter().sum::<u64>().div_ceil(parts as u64).max(1);
    let mut pieces = Vec::with_capacity(ranges.len() + parts);
    for (range, weight) in ranges.iter().zip(weights) {
        cut(tree, range, weight, target, parts, &mut pieces)?;
    }
    Ok(share(pieces, parts))
}

/// Cuts `range` into pieces of at most about `target` entries.
fn cut(
    tree: &Tree,
    range: &KeyRange,
    weight: u64,
    target: u64,
    parts: usize,
    pieces: &mut Vec<(KeyRange, u64)>,
) -> Result<()> {
    let wanted = weight.div_ceil(target).min(parts as u64) as usize;
    let cuts = if wanted > 1 {
        tree.split_points(range, wanted)?
    } else {
        Vec::new()
    };
    let piece_weight = (weight / (cuts.len() as u64 + 1)).max(1);
    let mut lower = range.lower.clone();
    for key in cuts {
        pieces.push((
            KeyRange {
                lower,
                upper: Bound::Excluded(key.clone()),
            },
            piece_weight,
        ));
        lower = Bound::Included(key);
    }
    pieces.push((
        KeyRange {
            lower,
            upper: range.upper.clone(),
        },
        piece_weight,
    ));
    Ok(())
}

/// Deals neighbouring pieces out to at most `parts` shares of about the same weight.
fn share(pieces: Vec<(KeyRange, u64)>, parts: usize) -> Vec<Vec<KeyRange>> {
    let total: u64 = pieces.iter().map(|(_, weight)| weight).sum();
    let mut shares: Vec<Vec<KeyRange>> = Vec::with_capacity(parts);
    let mut current = Vec::new();
    let mut dealt = 0;
    for (piece, weight) in pieces {
        // Where this share should end, counted from the start: so what one share has too much the next has not.
        let end = total * (shares.len() as u64 + 1) / parts as u64;
        // Half a piece too much is as good as half a piece too little.
        if !current.is_empty() && dealt + weight / 2 > end && shares.len() + 1 < parts {
            shares.push(std::mem::take(&mut current));
        }
        current.push(piece);
        dealt += weight;
    }
    if !current.is_empty() {
        shares.push(current);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(key: u8) -> KeyRange {
        KeyRange {
            lower: Bound::Included(vec![key]),
            upper: Bound::Included(vec![key]),
        }
    }

    #[test]
    fn neighbouring_pieces_stay_together_and_shares_are_even() {
        let pieces: Vec<_> = (0..10).map(|key| (point(key), 10)).collect();
        let shares = share(pieces, 4);
        assert_eq!(
            shares.iter().map(Vec::len).collect::<Vec<_>>(),
            [3, 2, 3, 2]
        );
        assert_eq!(shares.concat(), (0..10).map(point).collect::<Vec<_>>());
    }

    #[test]
    fn a_heavy_last_piece_does_not_make_a_share_too_many() {
        let pieces = vec![(point(0), 1), (point(1), 100), (point(2), 100)];
        assert_eq!(
            share(pieces, 2),
            vec![vec![point(0), point(1)], vec![point(2)]]
        );
    }
}
