//! [`PredicateCache`]: remembers how a string condition judged the last few different strings.
//!
//! Comparing a string under a collation means making its sort key. Columns that are compared with constants mostly have
//! few different values (flags, modes, brands). So the verdict on a string that was judged a moment ago is looked up
//! instead, in a table that fits the first-level cache. Each string has two places there, so that two strings with the
//! same place do not evict each other. Strings are held and compared as whole words.

/// Strings up to this length are remembered.
const MAX_BYTES: usize = 32;

/// Pairs of places for strings; a power of two.
const SETS: usize = 128;

/// A short string, filled up with zeros.
type Words = [u64; MAX_BYTES / 8];

#[derive(Clone, Copy)]
struct Slot {
    words: Words,
    /// [`EMPTY`] in a slot that holds nothing.
    length: u8,
    verdict: bool,
}

const EMPTY: Slot = Slot {
    words: [0; MAX_BYTES / 8],
    length: u8::MAX,
    verdict: false,
};

/// See the module's comment.
pub(crate) struct PredicateCache {
    /// The string that was judged last is the first of its set.
    sets: Box<[[Slot; 2]; SETS]>,
}

impl PredicateCache {
    pub(crate) fn new() -> Self {
        Self {
            sets: Box::new([[EMPTY; 2]; SETS]),
        }
    }

    /// The verdict on `string`: remembered, or else from `judge`.
    #[inline]
    pub(crate) fn verdict(&mut self, string: &[u8], judge: impl FnOnce(&[u8]) -> bool) -> bool {
        if string.len() > MAX_BYTES {
            return judge(string);
        }
        let words = words_of(string);
        let length = string.len() as u8;
        let set = &mut self.sets[set_of(&words)];
        for slot in set.iter() {
            if slot.length == length && slot.words == words {
                return slot.verdict;
            }
        }
        let verdict = judge(string);
        set[1] = set[0];
        set[0] = Slot {
            words,
            length,
            verdict,
        };
        verdict
    }
}

#[inline]
fn words_of(string: &[u8]) -> Words {
    let mut words = [0; MAX_BYTES / 8];
    let (whole, rest) = string.as_chunks::<8>();
    for (word, bytes) in words.iter_mut().zip(whole) {
        *word = u64::from_le_bytes(*bytes);
    }
    if let Some(word) = words.get_mut(whole.len()) {
        *word = rest
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    words
}

/// The product carries each bit upwards alone, so the last bytes of a word show in the highest bits. The shift moves
/// those down to where the next product spreads them.
#[inline]
fn set_of(words: &Words) -> usize {
    let hash = words.iter().fold(0, |hash: u64, word| {
        (hash ^ (hash >> 32) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    });
    (hash >> (64 - SETS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_judged_once_while_they_are_remembered() {
        let mut memo = PredicateCache::new();
        let mut judged = 0;
        for _ in 0..3 {
            for string in [
                "",
                "AIR",
                "AIR REG",
                "a string that is too long to be remembered",
            ] {
                let verdict = memo.verdict(string.as_bytes(), |bytes| {
                    judged += 1;
                    bytes.len() == 3
                });
                assert_eq!(verdict, string == "AIR");
            }
        }
        assert_eq!(
            judged,
            3 + 3,
            "three short strings once, the long one each time"
        );
    }

    #[test]
    fn strings_of_all_lengths_are_told_apart() {
        let mut memo = PredicateCache::new();
        for _ in 0..2 {
            for length in 0..40 {
                for last in [0, b'a'] {
                    let mut string = vec![b'x'; length];
                    string.push(last);
                    let verdict = memo.verdict(&string, |_| last == 0 && length % 3 == 1);
                    assert_eq!(verdict, last == 0 && length % 3 == 1, "{length} {last}");
                }
            }
        }
    }

    /// Nearly all: more than two may share a set.
    #[test]
    fn strings_that_differ_at_their_ends_are_remembered() {
        for prefix in ["", "B", "Brand#", "a longer name "] {
            let (mut memo, mut judged) = (PredicateCache::new(), 0);
            for number in (11..60).chain(11..60) {
                memo.verdict(format!("{prefix}{number}").as_bytes(), |_| {
                    judged += 1;
                    true
                });
            }
            assert!(judged < 60, "{judged} after '{prefix}'");
        }
    }

    #[test]
    fn strings_that_share_a_slot_do_not_share_a_verdict() {
        let mut memo = PredicateCache::new();
        for round in 0..2 {
            for number in 0..1000u32 {
                let string = number.to_string();
                let verdict = memo.verdict(string.as_bytes(), |_| number % 3 == 0);
                assert_eq!(verdict, number % 3 == 0, "round {round}, {number}");
            }
        }
    }
}
