//! Which keys, or ranges of keys, a keyed join has looked up, for a transaction that has to keep what is there as it
//! is.
//!
//! What a scan searches is known when it is planned. A keyed join learns its keys from its outer rows. So it records
//! them while it runs, if that was asked for before it began. Beyond [`MAX_NOTED_BYTES`] it counts as having searched
//! all of the index: a transaction that locks so many rows one by one is about to lock the tree anyway.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sheaf_storage::KeyRange;

/// Memory for the keys, in bytes: some ten thousand of the usual size.
pub const MAX_NOTED_BYTES: usize = 1 << 20;

/// What a key takes in a set besides its bytes, about.
const KEY_OVERHEAD_BYTES: usize = 48;

/// See the module's comment. Shared by the partitions of a join.
#[derive(Debug, Default)]
pub struct LookupRecord(Mutex<NotedKeys>);

/// Encoded keys, each of them the beginning of the index's keys that were looked up; or ranges of these.
#[derive(Debug, Default)]
pub struct NotedKeys {
    keys: BTreeSet<Vec<u8>>,
    /// Start and end. Without an end, to the end of the index.
    ranges: BTreeSet<(Vec<u8>, Option<Vec<u8>>)>,
    bytes: usize,
    /// There were too many; none is kept.
    are_all: bool,
}

impl LookupRecord {
    /// For a caller that has keys to record.
    pub fn noted(&self) -> MutexGuard<'_, NotedKeys> {
        // A statement that panics while it notes a key locks nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ranges of the index that hold what begins with the keys, or lies in the ranges, ascending and apart from
    /// each other; or one that holds everything.
    pub fn ranges(&self) -> Vec<KeyRange> {
        let noted = self.noted();
        if noted.are_all {
            return vec![KeyRange::all()];
        }
        let keys = noted.keys.iter().map(|key| KeyRange::prefix(key));
        keys.chain(noted.joined_ranges()).collect()
    }
}

impl NotedKeys {
    pub fn note(&mut self, key: &[u8]) {
        if self.are_all || self.keys.contains(key) {
            return;
        }
        if self.has_room_for(key.len()) {
            self.keys.insert(key.to_vec());
        }
    }

    /// What lies from `start` on and before `end`, if it has one. A join looks up either keys or ranges.
    pub fn note_range(&mut self, start: &[u8], end: Option<&[u8]>) {
        let range = (start.to_vec(), end.map(<[u8]>::to_vec));
        if self.are_all || self.ranges.contains(&range) {
            return;
        }
        if self.has_room_for(start.len() + end.map_or(0, <[u8]>::len)) {
            self.ranges.insert(range);
        }
    }

    /// Whether something of so many bytes may be noted. If not, everything is.
    fn has_room_for(&mut self, bytes: usize) -> bool {
        self.bytes += bytes + KEY_OVERHEAD_BYTES;
        if self.bytes > MAX_NOTED_BYTES {
            self.are_all = true;
            self.keys = BTreeSet::new();
            self.ranges = BTreeSet::new();
        }
        !self.are_all
    }

    /// The ranges, where they overlap as one.
    fn joined_ranges(&self) -> Vec<KeyRange> {
        let mut joined: Vec<(&[u8], Option<&[u8]>)> = Vec::new();
        for (start, end) in &self.ranges {
            match joined.last_mut() {
                Some((_, known)) if known.is_none_or(|known| start.as_slice() < known) => {
                    *known = match (*known, end) {
                        (Some(known), Some(end)) => Some(known.max(end)),
                        _ => None,
                    };
                }
                _ => joined.push((start, end.as_deref())),
            }
        }
        let range = |(start, end): (&[u8], Option<&[u8]>)| KeyRange {
            lower: Bound::Included(start.to_vec()),
            upper: match end {
                Some(end) => Bound::Excluded(end.to_vec()),
                None => Bound::Unbounded,
            },
        };
        joined.into_iter().map(range).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(keys: impl IntoIterator<Item = u32>) -> Vec<KeyRange> {
        let record = LookupRecord::default();
        keys.into_iter()
            .for_each(|key| record.noted().note(&key.to_be_bytes()));
        record.ranges()
    }

    #[test]
    fn keys_are_noted_once_and_in_order() {
        let prefix = |key: u32| KeyRange::prefix(&key.to_be_bytes());
        let expected = [prefix(3), prefix(7), prefix(u32::MAX)];
        assert_eq!(ranges([7, 3, 7, u32::MAX, 3]), expected);
        assert!(ranges([]).is_empty());
    }

    #[test]
    fn ranges_that_overlap_are_one() {
        let record = LookupRecord::default();
        let ranges: [(&[u8], Option<&[u8]>); 6] = [
            (b"k", None),
            (b"b", Some(b"d")),
            (b"c", Some(b"cc")),
            (b"d", Some(b"e")),
            (b"a", Some(b"bb")),
            (b"x", Some(b"y")),
        ];
        for (start, end) in ranges {
            record.noted().note_range(start, end);
        }
        let range = |start: &[u8], end: Option<&[u8]>| KeyRange {
            lower: Bound::Included(start.to_vec()),
            upper: end.map_or(Bound::Unbounded, |end| Bound::Excluded(end.to_vec())),
        };
        let expected = [
            range(b"a", Some(b"d")),
            range(b"d", Some(b"e")),
            range(b"k", None),
        ];
        assert_eq!(record.ranges(), expected);
    }

    #[test]
    fn too_many_keys_are_all_of_the_index() {
        let most = (MAX_NOTED_BYTES / (4 + KEY_OVERHEAD_BYTES)) as u32;
        assert_eq!(ranges((0..most).chain(0..most)).len(), most as usize);
        assert_eq!(ranges(0..most + 1), [KeyRange::all()]);
        assert_eq!(ranges((0..2 * most).rev()), [KeyRange::all()]);
    }
}
