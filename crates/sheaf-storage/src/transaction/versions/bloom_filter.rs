//! A Bloom filter of keys: whether a spilled table is worth reading for one key.
//!
//! A byte per key and three bits for each tell of 97 of 100 other keys that they are not there. (Bloom, "Space/Time
//! Trade-offs in Hash Coding with Allowable Errors", 1970.)

/// Bits that each key sets.
const PROBES: u32 = 3;

/// A set of keys that may seem to hold some more. Empty: it may hold any key.
pub(super) struct BloomFilter(Box<[u8]>);

impl BloomFilter {
    /// A filter for `count` keys.
    pub(super) fn of<'k>(count: usize, keys: impl Iterator<Item = &'k [u8]>) -> BloomFilter {
        let mut bits = vec![0u8; count.max(1)].into_boxed_slice();
        for key in keys {
            for bit in probes(key, bits.len()) {
                bits[bit / 8] |= 1 << (bit % 8);
            }
        }
        BloomFilter(bits)
    }

    /// A filter without a memory.
    pub(super) fn of_any() -> BloomFilter {
        BloomFilter(Box::default())
    }

    /// False only if the key is not in the set.
    pub(super) fn may_hold(&self, key: &[u8]) -> bool {
        self.0.is_empty()
            || probes(key, self.0.len()).all(|bit| self.0[bit / 8] >> (bit % 8) & 1 == 1)
    }

    /// Memory beside the filter itself, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.0.len()
    }
}

/// The bits of a key in a filter of so many bytes (Kirsch and Mitzenmacher: two hashes make any number of them).
fn probes(key: &[u8], bytes: usize) -> impl Iterator<Item = usize> {
    let hash = crc32c::crc32c(key);
    // A checksum of similar keys differs in few of its high bits; a multiplication spreads them.
    let first = u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let second = first >> 32 | 1;
    (0..u64::from(PROBES)).map(move |i| {
        let position = (first & 0xFFFF_FFFF).wrapping_add(i * second);
        (position % (bytes as u64 * 8)) as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_and_few_others() {
        let keys: Vec<[u8; 4]> = (0..200u32).map(u32::to_be_bytes).collect();
        let filter = BloomFilter::of(keys.len(), keys.iter().map(|key| &key[..]));
        assert!(keys.iter().all(|key| filter.may_hold(key)));
        let others = (200..10_200u32).filter(|key| filter.may_hold(&key.to_be_bytes()));
        let mistaken = others.count();
        assert!(mistaken < 600, "{mistaken} of 10000");
    }
}
