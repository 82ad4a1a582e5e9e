//! HyperLogLog: how many different values there are in a stream, in 16 KiB, whatever the stream's length.
//!
//! Every value is hashed to 64 bits. The first bits of the hash choose a register. The register keeps the greatest rank
//! that was seen; the rank is the position of the first one bit in the rest of the hash. A rank of r is seen about once
//! in 2^r different values, so the registers together tell how many there were, and a repeated value changes nothing.
//! (Flajolet, Fusy, Gandouet, Meunier: "HyperLogLog: the analysis of a near-optimal cardinality estimation algorithm",
//! 2007. The estimate is the one of Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017,
//! algorithm 6: exact in expectation from one value to 2^60, without tables of corrections.)
//!
//! The standard error is 1.04 / sqrt(registers).

/// Bits of a hash that choose the register.
const INDEX_BITS: u32 = 14;
const REGISTERS: usize = 1 << INDEX_BITS;
/// Bits of a hash from which the rank is read.
const RANK_BITS: u32 = 64 - INDEX_BITS;

/// Relative standard error of the estimate: 0.8%.
pub const STANDARD_ERROR: f64 = 1.04 / 128.0;

/// A well-mixed 64-bit hash of some bytes; the same on every machine and in every run.
pub fn hash(bytes: &[u8]) -> u64 {
    let mut hash = mix(bytes.len() as u64 ^ 0x9e37_79b9_7f4a_7c15);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = mix(hash ^ u64::from_le_bytes(word));
    }
    hash
}

/// The finalizer of MurmurHash3 (Appleby): every bit of the input reaches every bit of the result.
fn mix(mut bits: u64) -> u64 {
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

/// See the [module](self).
#[derive(Clone)]
pub struct HyperLogLog {
    registers: Box<[u8]>,
}

impl Default for HyperLogLog {
    fn default() -> Self {
        HyperLogLog {
            registers: vec![0; REGISTERS].into(),
        }
    }
}

impl HyperLogLog {
    /// Adds a value by its [`hash`].
    #[inline]
    pub fn add(&mut self, hash: u64) {
        let register = &mut self.registers[(hash >> RANK_BITS) as usize];
        // The marker ends the search, so that a rest of zeros has the greatest rank.
        let rest = hash << INDEX_BITS | 1 << (INDEX_BITS - 1);
        let rank = rest.leading_zeros() as u8 + 1;
        *register = rank.max(*register);
    }

    /// Adds what another sketch has seen.
    pub fn merge(&mut self, other: &HyperLogLog) {
        for (register, other) in self.registers.iter_mut().zip(&other.registers) {
            *register = (*register).max(*other);
        }
    }

    /// The estimated number of different values.
    pub fn estimate(&self) -> f64 {
        let mut registers_of_rank = [0.0; RANK_BITS as usize + 2];
        for &rank in &self.registers {
            registers_of_rank[usize::from(rank)] += 1.0;
        }
        let all = REGISTERS as f64;
        let greatest = registers_of_rank[RANK_BITS as usize + 1];
        let mut sum = all * tau(1.0 - greatest / all);
        for rank in (1..=RANK_BITS as usize).rev() {
            sum = 0.5 * (sum + registers_of_rank[rank]);
        }
        sum += all * sigma(registers_of_rank[0] / all);
        all * all / (2.0 * std::f64::consts::LN_2 * sum)
    }
}

/// Corrects for registers that saw nothing. (Ertl, section 3.3.)
fn sigma(share: f64) -> f64 {
    if share == 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut weight, mut sum) = (share, 1.0, share);
    loop {
        power *= power;
        let before = sum;
        sum += power * weight;
        weight += weight;
        if sum == before {
            return sum;
        }
    }
}

/// Corrects for registers that are full.
fn tau(share: f64) -> f64 {
    if share == 0.0 || share == 1.0 {
        return 0.0;
    }
    let (mut root, mut weight, mut sum) = (share, 1.0, 1.0 - share);
    loop {
        root = root.sqrt();
        let before = sum;
        weight *= 0.5;
        sum -= (1.0 - root) * (1.0 - root) * weight;
        if sum == before {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(values: std::ops::Range<u64>) -> HyperLogLog {
        let mut sketch = HyperLogLog::default();
        values.for_each(|value| sketch.add(hash(&value.to_le_bytes())));
        sketch
    }

    #[test]
    fn estimates_are_within_four_standard_errors_at_every_size() {
        for count in [1, 2, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 3_000_000] {
            let estimate = sketch(0..count).estimate();
            let error = estimate / count as f64 - 1.0;
            assert!(error.abs() < 4.0 * STANDARD_ERROR, "{count}: {estimate}");
        }
        assert_eq!(HyperLogLog::default().estimate(), 0.0);
    }

    #[test]
    fn repeated_values_change_nothing_and_sketches_can_be_merged() {
        let mut sketch_of_all = sketch(0..50_000);
        let before = sketch_of_all.estimate();
        sketch_of_all.merge(&sketch(10_000..20_000));
        assert_eq!(sketch_of_all.estimate(), before);
        sketch_of_all.merge(&sketch(50_000..100_000));
        assert_eq!(sketch_of_all.estimate(), sketch(0..100_000).estimate());
    }

    #[test]
    fn hashes_tell_values_apart_that_differ_little() {
        let long = [7; 30];
        let hashes: std::collections::BTreeSet<u64> = (0..=long.len())
            .map(|length| hash(&long[..length]))
            .chain((0..30).map(|at| {
                let mut other = long;
                other[at] ^= 1;
                hash(&other)
            }))
            .collect();
        assert_eq!(hashes.len(), 61);
    }
}
