//! Random numbers that are a function of a seed: for samples and for simulations, not for secrets.

/// A sequence of numbers: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA
/// 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence that belongs to a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number; all are equally likely.
    #[inline]
    #[allow(
        clippy::should_implement_trait,
        reason = "a sequence without an end is no iterator"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not 0. (Off by at most `limit` in 2^64 from being equally likely.)
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// True in `per_million` cases of a million.
    pub fn chance(&mut self, per_million: u32) -> bool {
        self.next() % 1_000_000 < u64::from(per_million)
    }

    /// Puts the items in an order in which each is equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, (self.next() % (end as u64 + 1)) as usize);
        }
    }
}
