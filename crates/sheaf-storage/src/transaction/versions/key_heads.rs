//! The heads of a table's keys: a search in the table is made in a small array, without the keys.
//!
//! The keys of a leaf begin alike. So the few bytes behind the part that they share tell nearly all of them apart. A
//! table keeps these bytes as a number for each version, in the order of the versions:
//!
//! ```text
//!   keys    order:0017:a  order:0017:c  order:0042:b       share "order:00"
//!   heads   "17:a"        "17:c"        "42:b"             4 bytes each, as one big-endian number
//! ```
//!
//! A binary search over the keys loads a version and a key in each of its steps. The keys lie in the order in which
//! they came, so for changes in random order nearly every step waits for memory twice. The heads of a leaf's versions
//! are about 2 KiB side by side. The keys themselves are compared only where heads are equal. (Graefe and Larson,
//! "B-Tree Indexes and CPU Caches", ICDE 2001: poor man's normalized keys.)
//!
//! A key that does not begin with the shared part shortens it, and all heads are made again. Keys that go do not
//! lengthen it: a purge, a split or a merge makes the table anew.

use std::cmp::Ordering;
use std::ops::Range;

use crate::pool::optimistic_read::compare_bytes;

/// Bytes of a key in its head.
const HEAD_BYTES: usize = size_of::<u32>();

/// A head for each version of a table.
#[derive(Clone, Default, Debug)]
pub(super) struct KeyHeads {
    /// So many bytes are the same in all keys. The table's bytes begin with them.
    shared: usize,
    /// In the order of the versions, so ascending.
    heads: Vec<u32>,
}

impl KeyHeads {
    pub(super) const fn new() -> KeyHeads {
        KeyHeads {
            shared: 0,
            heads: Vec::new(),
        }
    }

    /// The heads of these keys, which are ascending, of a table that has these bytes.
    pub(super) fn of<'k>(bytes: &[u8], keys: impl Iterator<Item = &'k [u8]> + Clone) -> KeyHeads {
        let common = keys.clone().map(|key| common_length(bytes, key));
        let shared = common.min().unwrap_or(0);
        KeyHeads {
            shared,
            heads: keys.map(|key| head(&key[shared..])).collect(),
        }
    }

    /// Memory beside the value itself, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.heads.capacity() * HEAD_BYTES
    }

    /// Where the first version whose key is not less than `key` is to be looked for: all before the range are less,
    /// and the one behind it is not. Nearly always the range holds a version or two. `bytes`: the table's.
    #[inline]
    pub(super) fn candidates(&self, bytes: &[u8], key: &[u8]) -> Range<usize> {
        let count = self.heads.len();
        let Some((start, rest)) = key.split_at_checked(self.shared) else {
            // All keys are longer. One that only begins like them is less.
            let at = match compare_bytes(key, &bytes[..key.len()]).is_le() {
                true => 0,
                false => count,
            };
            return at..at;
        };
        match compare_bytes(start, &bytes[..self.shared]) {
            Ordering::Less => return 0..0,
            Ordering::Greater => return count..count,
            Ordering::Equal => {}
        }
        let sought = head(rest);
        let first = self.heads.partition_point(|&head| head < sought);
        let mut equal = 0;
        // Doubled, so that the many versions of one key are not gone through.
        while self.heads.get(first + equal) == Some(&sought) {
            equal = 2 * equal + 1;
        }
        first..(first + equal).min(count)
    }

    /// A version of `key` is added at a place. `bytes`: the table's, with the key; `others`: the keys of the versions
    /// that there are.
    pub(super) fn insert<'k>(
        &mut self,
        at: usize,
        key: &[u8],
        bytes: &[u8],
        others: impl Iterator<Item = &'k [u8]>,
    ) {
        let bytes = match self.heads.is_empty() {
            true => bytes,
            false => &bytes[..self.shared],
        };
        let shared = common_length(bytes, key);
        if shared != self.shared {
            self.shared = shared;
            let heads = self.heads.iter_mut();
            heads
                .zip(others)
                .for_each(|(old, key)| *old = head(&key[shared..]));
        }
        self.heads.insert(at, head(&key[shared..]));
    }

    /// The version at a place is gone.
    pub(super) fn remove(&mut self, at: usize) {
        self.heads.remove(at);
    }
}

/// The first bytes of the rest of a key. A greater key's head is not less.
#[inline]
fn head(rest: &[u8]) -> u32 {
    match rest.first_chunk::<HEAD_BYTES>() {
        Some(first) => u32::from_be_bytes(*first),
        None => {
            let mut padded = [0; HEAD_BYTES];
            padded[..rest.len()].copy_from_slice(rest);
            u32::from_be_bytes(padded)
        }
    }
}

/// So many bytes do both begin with.
fn common_length(one: &[u8], other: &[u8]) -> usize {
    let pairs = one.iter().zip(other);
    pairs.take_while(|(one, other)| one == other).count()
}

#[cfg(all(test, not(feature = "simulation")))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A table of keys that have one version each, which lie one after the other in the bytes as they come.
    #[derive(Default)]
    struct Keys {
        sorted: Vec<Vec<u8>>,
        bytes: Vec<u8>,
        heads: KeyHeads,
    }

    impl Keys {
        fn lower_bound(&self, key: &[u8]) -> usize {
            let candidates = self.heads.candidates(&self.bytes, key);
            let first = candidates.start;
            first + self.sorted[candidates].partition_point(|other| &other[..] < key)
        }

        fn insert(&mut self, key: &[u8]) {
            let at = self.lower_bound(key);
            self.bytes.extend_from_slice(key);
            let others = self.sorted.iter().map(|key| &key[..]);
            self.heads.insert(at, key, &self.bytes, others);
            self.sorted.insert(at, key.to_vec());
        }

        fn remove(&mut self, at: usize) {
            self.sorted.remove(at);
            self.heads.remove(at);
        }
    }

    /// Keys that are alike: bytes of few values, many of them zero, behind one of a few beginnings.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(0u8), Just(0), Just(1), Just(255)];
        let rest = proptest::collection::vec(byte, 0..8);
        let start =
            prop_oneof![9 => Just(&b"order:00"[..]), 1 => Just(&b"order"[..]), 1 => Just(&b""[..])];
        (start, rest).prop_map(|(start, rest)| [start, &rest].concat())
    }

    proptest! {
        /// Each search finds the place that a search over the keys finds, whatever came and went before.
        #[test]
        fn a_search_finds_what_a_search_over_the_keys_finds(
            changes in proptest::collection::vec((key(), 0..3u8, any::<prop::sample::Index>()), 1..60),
            sought in proptest::collection::vec(key(), 1..20),
        ) {
            let mut keys = Keys::default();
            for (key, change, place) in changes {
                match change {
                    0 if !keys.sorted.is_empty() => keys.remove(place.index(keys.sorted.len())),
                    _ => keys.insert(&key),
                }
                prop_assert!(keys.sorted.is_sorted());
                for key in sought.iter().chain(&keys.sorted) {
                    let expected = keys.sorted.partition_point(|other| other < key);
                    prop_assert_eq!(keys.lower_bound(key), expected);
                }
                let all = keys.sorted.iter().map(|key| &key[..]);
                let again = Keys {
                    heads: KeyHeads::of(&keys.bytes, all),
                    sorted: keys.sorted.clone(),
                    bytes: keys.bytes.clone(),
                };
                for key in &sought {
                    prop_assert_eq!(again.lower_bound(key), keys.lower_bound(key));
                }
            }
        }
    }

    #[test]
    fn few_keys_are_compared() {
        let mut keys = Keys::default();
        for i in 0..1000u32 {
            // In an order that is not that of the keys.
            let key = [
                b"order:",
                &(i * 7919 % 1000 + 70_000).to_be_bytes()[..],
                b":line",
            ]
            .concat();
            keys.insert(&key);
        }
        for key in &keys.sorted {
            assert_eq!(keys.heads.candidates(&keys.bytes, key).len(), 1);
        }
    }
}
