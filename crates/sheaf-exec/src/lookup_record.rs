//! Which keys a keyed join has looked up, for a transaction that has to keep them as they are.
//!
//! What a scan searches is known when it is planned. A keyed join learns its keys from its outer rows, so it notes them down
//! as it goes, if somebody has asked for that before it runs:
//!
//! ```text
//!   few     [k1]  [k2]   [k3]                   a range for each key
//!   more    [k1 .. k7]   [k8 .. k15]   ...      MAX_RANGES ranges of neighbouring keys
//!   many    [k1 ................... k9000]      beyond MAX_NOTED_KEYS: one range, and its ends are all that is noted
//! ```
//!
//! So the ranges take in what was looked up, and perhaps more of the index than that.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sheaf_storage::{KeyRange, prefix_successor};

/// Most keys that are remembered one by one.
pub const MAX_NOTED_KEYS: usize = 4096;

/// Most ranges that a record comes to: half of what a transaction may lock of a tree before it locks all of it.
pub const MAX_RANGES: usize = 256;

/// See the module's comment. Shared by the partitions of a join.
#[derive(Debug, Default)]
pub struct LookupRecord(Mutex<NotedKeys>);

/// Encoded keys, each of them the beginning of the index's keys that were looked up.
#[derive(Debug, Default)]
pub struct NotedKeys {
    keys: BTreeSet<Vec<u8>>,
    /// Only the first and the last key are kept.
    is_one_range: bool,
}

impl LookupRecord {
    /// For who has keys to note down.
    pub fn noted(&self) -> MutexGuard<'_, NotedKeys> {
        // A key is noted wholly or not at all, and a statement that panics locks nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ranges of the index that hold everything that begins with one of the keys, ascending and apart.
    pub fn ranges(&self) -> Vec<KeyRange> {
        let noted = self.noted();
        let keys: Vec<&[u8]> = noted.keys.iter().map(Vec::as_slice).collect();
        let keys_per_range = match noted.is_one_range {
            true => keys.len(),
            false => keys.len().div_ceil(MAX_RANGES),
        };
        let neighbours = keys.chunks(keys_per_range.max(1));
        neighbours.filter_map(covering).collect()
    }
}

impl NotedKeys {
    pub fn note(&mut self, key: &[u8]) {
        if self.keys.contains(key) {
            return;
        }
        if self.is_one_range {
            let is_inside =
                |first: &Vec<u8>, last: &Vec<u8>| first.as_slice() < key && key < last.as_slice();
            if let (Some(first), Some(last)) = (self.keys.first(), self.keys.last())
                && is_inside(first, last)
            {
                return;
            }
        }
        self.keys.insert(key.to_vec());
        self.is_one_range |= self.keys.len() > MAX_NOTED_KEYS;
        if self.is_one_range {
            let ends = [self.keys.pop_first(), self.keys.pop_last()];
            self.keys = ends.into_iter().flatten().collect();
        }
    }
}

/// The range of everything that begins with one of these keys, ascending, and what lies between.
fn covering(keys: &[&[u8]]) -> Option<KeyRange> {
    let (first, last) = (keys.first()?, keys.last()?);
    let upper = match prefix_successor(last) {
        Some(successor) => Bound::Excluded(successor),
        None => Bound::Unbounded,
    };
    Some(KeyRange {
        lower: Bound::Included(first.to_vec()),
        upper,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(keys: impl IntoIterator<Item = u32>) -> LookupRecord {
        let record = LookupRecord::default();
        keys.into_iter()
            .for_each(|key| record.noted().note(&key.to_be_bytes()));
        record
    }

    fn is_in(ranges: &[KeyRange], key: u32) -> bool {
        let entry = [&key.to_be_bytes()[..], b"row"].concat();
        ranges.iter().any(|range| range.contains(&entry))
    }

    #[test]
    fn a_few_keys_are_a_range_each() {
        let ranges = record([7, 3, 7, u32::MAX]).ranges();
        let prefix = |key: u32| KeyRange::prefix(&key.to_be_bytes());
        assert_eq!(ranges, [prefix(3), prefix(7), prefix(u32::MAX)]);
        assert!(record([]).ranges().is_empty());
    }

    #[test]
    fn more_keys_share_ranges_with_their_neighbours() {
        let ranges = record((0..3_000).map(|key| key * 7919 % 3_000 * 10)).ranges();
        assert!(ranges.len() <= MAX_RANGES && ranges.len() > MAX_RANGES / 2);
        let times_in = |key: u32| {
            let entry = [&key.to_be_bytes()[..], b"row"].concat();
            ranges.iter().filter(|range| range.contains(&entry)).count()
        };
        assert!((0..3_000).all(|key| times_in(key * 10) == 1));
        // Twelve keys are 110 apart from the first to the last, and what follows is not looked up.
        assert!(is_in(&ranges, 55) && !is_in(&ranges, 115) && !is_in(&ranges, 30_001));
    }

    #[test]
    fn beyond_that_all_is_one_range() {
        let many = MAX_NOTED_KEYS as u32 + 100;
        for order in [1, many - 1] {
            let record = record((0..many).map(|key| 50 + key * order % many));
            let ranges = record.ranges();
            assert_eq!(ranges.len(), 1);
            assert!(is_in(&ranges, 50) && is_in(&ranges, many + 49));
            assert!(!is_in(&ranges, 49) && !is_in(&ranges, many + 50));
            assert!(record.noted().keys.len() <= 2);
        }
    }
}
