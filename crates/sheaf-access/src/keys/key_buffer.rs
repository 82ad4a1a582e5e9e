//! [`KeyBuffer`]: keys collected up to a number of bytes, then sorted.
//!
//! The buffer of a multi-range read and of a keyed join. Each key carries a tag, the outer row that asked for it
//! (0 in a scan). Keys of one length of at most 8 bytes, the usual primary keys, are kept as big-endian words: no
//! overhead in a scan, and the sort compares integers. Others lie in one arena, and the sort moves only their first
//! 8 bytes and a position.
//!
//! Memory: the limit counts bytes of keys, so that the number of refills is ceil(S / N) - 1. Words cost nothing
//! beside it in a scan and 8 bytes a key in a join; keys in the arena cost 18 bytes each.

use std::cmp::Ordering;

use crate::keys::byte_strings::ByteStrings;
use crate::keys::ranged_key;

/// Most bytes of keys that one buffer may hold, whatever is asked for: positions in the arena are 32 bits.
pub(crate) const MAX_BUFFER_BYTES: usize = 1 << 30;

/// Keys up to this length fit a word.
const WORD_BYTES: usize = 8;

enum Keys {
    /// Keys of one length of at most [`WORD_BYTES`], left-aligned.
    Words(Vec<u64>),
    /// The same with tags.
    TaggedWords(Vec<(u64, u32)>),
    /// Keys of any length.
    Arena { arena: Vec<u8>, keys: Vec<ArenaKey> },
}

#[derive(Clone, Copy)]
struct ArenaKey {
    /// The first bytes of the key as a big-endian number, padded with zeros: decides most compares.
    head: u64,
    /// Where in the arena the key's length (2 bytes) and then its bytes are.
    position: u32,
    tag: u32,
}

impl ArenaKey {
    fn bytes<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        let start = self.position as usize;
        let length = u16::from_ne_bytes([arena[start], arena[start + 1]]) as usize;
        &arena[start + 2..start + 2 + length]
    }

    fn compare(&self, other: &Self, arena: &[u8]) -> Ordering {
        self.head
            .cmp(&other.head)
            .then_with(|| self.bytes(arena).cmp(other.bytes(arena)))
    }
}

/// See the module's comment.
pub(crate) struct KeyBuffer {
    keys: Keys,
    /// Length of all keys, if they have one and it is at most [`WORD_BYTES`].
    word_bytes: Option<usize>,
    /// Limit on `key_bytes`.
    capacity_bytes: usize,
    key_bytes: usize,
    sorted: bool,
    /// The keys are [ranges](crate::keys::ranged_key).
    ranged: bool,
}

fn head(key: &[u8]) -> u64 {
    let mut word = [0; WORD_BYTES];
    let length = key.len().min(WORD_BYTES);
    word[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(word)
}

impl KeyBuffer {
    /// An empty buffer for `capacity_bytes` of keys. `fixed_key_bytes`: the length of every key, where they all have
    /// the same. `tagged`: whether tags are kept; without, they read as 0.
    pub(crate) fn new(capacity_bytes: usize, fixed_key_bytes: Option<usize>, tagged: bool) -> Self {
        let word_bytes = fixed_key_bytes.filter(|&bytes| bytes > 0 && bytes <= WORD_BYTES);
        let keys = match (word_bytes, tagged) {
            (Some(_), false) => Keys::Words(Vec::new()),
            (Some(_), true) => Keys::TaggedWords(Vec::new()),
            (None, _) => Keys::Arena {
                arena: Vec::new(),
                keys: Vec::new(),
            },
        };
        let capacity_bytes = capacity_bytes.min(MAX_BUFFER_BYTES);
        Self {
            keys,
            word_bytes,
            capacity_bytes,
            key_bytes: 0,
            sorted: true,
            ranged: false,
        }
    }

    /// The same for [ranges](crate::keys::ranged_key) of keys, with tags.
    pub(crate) fn of_ranges(capacity_bytes: usize) -> Self {
        Self {
            ranged: true,
            ..Self::new(capacity_bytes, None, true)
        }
    }

    /// Where a tree is entered to find what a key of this buffer, or a range, leads to.
    pub(crate) fn entry<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        match self.ranged {
            true => ranged_key::start_of(key),
            false => key,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.keys {
            Keys::Words(words) => words.len(),
            Keys::TaggedWords(words) => words.len(),
            Keys::Arena { keys, .. } => keys.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a key of `length` bytes still fits. The first key always does.
    pub(crate) fn has_room_for(&self, length: usize) -> bool {
        self.is_empty() || self.key_bytes + length <= self.capacity_bytes
    }

    /// Whether the keys have reached the limit.
    pub(crate) fn is_full(&self) -> bool {
        self.key_bytes >= self.capacity_bytes && !self.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.key_bytes = 0;
        self.sorted = true;
        match &mut self.keys {
            Keys::Words(words) => words.clear(),
            Keys::TaggedWords(words) => words.clear(),
            Keys::Arena { arena, keys } => {
                arena.clear();
                keys.clear();
            }
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], tag: u32) {
        debug_assert!(
            self.word_bytes.is_none_or(|bytes| bytes == key.len()),
            "keys of this buffer have one length"
        );
        self.key_bytes += key.len();
        self.sorted = false;
        match &mut self.keys {
            Keys::Words(words) => words.push(head(key)),
            Keys::TaggedWords(words) => words.push((head(key), tag)),
            Keys::Arena { arena, keys } => {
                keys.push(ArenaKey {
                    head: head(key),
                    position: arena.len() as u32,
                    tag,
                });
                arena.extend_from_slice(&(key.len() as u16).to_ne_bytes());
                arena.extend_from_slice(key);
            }
        }
    }

    /// Sorts by key; keys that are equal come by ascending tag.
    pub(crate) fn sort(&mut self) {
        if self.sorted {
            return;
        }
        match &mut self.keys {
            Keys::Words(words) => words.sort_unstable(),
            Keys::TaggedWords(words) => words.sort_unstable(),
            Keys::Arena { arena, keys } => {
                keys.sort_unstable_by(|a, b| a.compare(b, arena).then(a.tag.cmp(&b.tag)));
            }
        }
        self.sorted = true;
    }

    /// Whether the keys are in ascending order because [`sort`](Self::sort) ran since the last key came.
    pub(crate) fn is_sorted(&self) -> bool {
        self.sorted
    }

    pub(crate) fn tag(&self, index: usize) -> u32 {
        match &self.keys {
            Keys::Words(_) => 0,
            Keys::TaggedWords(words) => words[index].1,
            Keys::Arena { keys, .. } => keys[index].tag,
        }
    }

    /// Appends the key at `index` to `into` as one string.
    #[inline]
    pub(crate) fn copy_key(&self, index: usize, into: &mut ByteStrings) {
        let word_bytes = self.word_bytes.unwrap_or_default();
        match &self.keys {
            Keys::Words(words) => into.push(&words[index].to_be_bytes()[..word_bytes]),
            Keys::TaggedWords(words) => into.push(&words[index].0.to_be_bytes()[..word_bytes]),
            Keys::Arena { arena, keys } => into.push(keys[index].bytes(arena)),
        }
    }

    /// Whether the keys at two positions are equal.
    pub(crate) fn same_key(&self, a: usize, b: usize) -> bool {
        match &self.keys {
            Keys::Words(words) => words[a] == words[b],
            Keys::TaggedWords(words) => words[a].0 == words[b].0,
            Keys::Arena { arena, keys } => keys[a].compare(&keys[b], arena) == Ordering::Equal,
        }
    }

    /// How many keys from `first` on are equal to it.
    pub(crate) fn group_length(&self, first: usize) -> usize {
        1 + (first + 1..self.len())
            .take_while(|&position| self.same_key(first, position))
            .count()
    }

    /// [Where a tree is entered](Self::entry) for at most `count` of the keys, evenly spread over the buffer, in
    /// ascending order.
    pub(crate) fn sorted_sample(&self, count: usize) -> Vec<Vec<u8>> {
        let step = self.len().div_ceil(count.max(1)).max(1);
        let mut strings = ByteStrings::default();
        (0..self.len())
            .step_by(step)
            .for_each(|index| self.copy_key(index, &mut strings));
        let entries = strings.iter().map(|key| self.entry(key).to_vec());
        let mut sample: Vec<Vec<u8>> = entries.collect();
        if !self.sorted {
            sample.sort_unstable();
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_of(buffer: &KeyBuffer) -> Vec<(Vec<u8>, u32)> {
        let mut strings = ByteStrings::default();
        (0..buffer.len()).for_each(|index| buffer.copy_key(index, &mut strings));
        strings
            .iter()
            .enumerate()
            .map(|(index, key)| (key.to_vec(), buffer.tag(index)))
            .collect()
    }

    #[test]
    fn keys_of_one_short_length_sort_as_words() {
        let mut buffer = KeyBuffer::new(12, Some(4), false);
        for key in [[0, 0, 1, 0], [0, 0, 0, 9], [255, 0, 0, 0]] {
            assert!(buffer.has_room_for(4));
            buffer.push(&key, 7);
        }
        assert!(buffer.is_full() && !buffer.has_room_for(4));
        buffer.sort();
        let expected: Vec<(Vec<u8>, u32)> = vec![
            (vec![0, 0, 0, 9], 0),
            (vec![0, 0, 1, 0], 0),
            (vec![255, 0, 0, 0], 0),
        ];
        assert_eq!(
            keys_of(&buffer),
            expected,
            "an untagged buffer forgets tags"
        );
    }

    #[test]
    fn keys_of_any_length_sort_as_bytes_and_keep_their_tags() {
        let mut buffer = KeyBuffer::new(100, None, true);
        let keys: [&[u8]; 6] = [
            b"abcdefghij",
            b"abcdefgh",
            b"abcdefghi",
            b"",
            b"abcdefgh",
            b"ab\0",
        ];
        keys.iter()
            .enumerate()
            .for_each(|(tag, key)| buffer.push(key, tag as u32));
        assert!(!buffer.is_sorted());
        buffer.sort();
        let mut expected: Vec<(Vec<u8>, u32)> = keys
            .iter()
            .enumerate()
            .map(|(tag, key)| (key.to_vec(), tag as u32))
            .collect();
        expected.sort();
        assert_eq!(keys_of(&buffer), expected);
        assert!(buffer.same_key(2, 3) && !buffer.same_key(3, 4));
    }

    #[test]
    fn the_first_key_always_fits() {
        let mut buffer = KeyBuffer::new(2, None, false);
        assert!(buffer.has_room_for(1000));
        buffer.push(&[1; 1000], 0);
        assert!(buffer.is_full() && !buffer.has_room_for(1));
        buffer.clear();
        assert!(buffer.has_room_for(1000) && buffer.is_empty());
    }

    #[test]
    fn a_sample_is_spread_and_sorted() {
        let mut buffer = KeyBuffer::new(1000, Some(1), true);
        (0..100u8).rev().for_each(|key| buffer.push(&[key], 0));
        let sample = buffer.sorted_sample(4);
        assert_eq!(sample, vec![vec![24], vec![49], vec![74], vec![99]]);
    }
}
