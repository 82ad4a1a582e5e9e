//! Which keys a keyed join has looked up, for a transaction that has to keep what is there as it is.
//!
//! What a scan searches is known when it is planned. A keyed join learns its keys from its outer rows. So it records
//! them while it runs, if that was asked for before it began. Beyond [`MAX_NOTED_BYTES`] it counts as having searched
//! all of the index: a transaction that locks so many rows one by one is about to lock the tree anyway.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sheaf_storage::KeyRange;

/// Memory for the keys, in bytes: some ten thousand of the usual size.
pub const MAX_NOTED_BYTES: usize = 1 << 20;

/// What a key takes in a set besides its bytes, about.
const KEY_OVERHEAD_BYTES: usize = 48;

/// See the module's comment. Shared by the partitions of a join.
#[derive(Debug, Default)]
pub struct LookupRecord(Mutex<NotedKeys>);

/// Encoded keys, each of them the beginning of the index's keys that were looked up.
#[derive(Debug, Default)]
pub struct NotedKeys {
    keys: BTreeSet<Vec<u8>>,
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

    /// The ranges of the index that hold what begins with the keys, ascending; or one that holds everything.
    pub fn ranges(&self) -> Vec<KeyRange> {
        let noted = self.noted();
        if noted.are_all {
            return vec![KeyRange::all()];
        }
        noted.keys.iter().map(|key| KeyRange::prefix(key)).collect()
    }
}

impl NotedKeys {
    pub fn note(&mut self, key: &[u8]) {
        if self.are_all || self.keys.contains(key) {
            return;
        }
        self.bytes += key.len() + KEY_OVERHEAD_BYTES;
        if self.bytes > MAX_NOTED_BYTES {
            self.are_all = true;
            self.keys = BTreeSet::new();
        } else {
            self.keys.insert(key.to_vec());
        }
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
    fn too_many_keys_are_all_of_the_index() {
        let most = (MAX_NOTED_BYTES / (4 + KEY_OVERHEAD_BYTES)) as u32;
        assert_eq!(ranges((0..most).chain(0..most)).len(), most as usize);
        assert_eq!(ranges(0..most + 1), [KeyRange::all()]);
        assert_eq!(ranges((0..2 * most).rev()), [KeyRange::all()]);
    }
}
