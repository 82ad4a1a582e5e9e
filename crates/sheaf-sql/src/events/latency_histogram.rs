//! How often statements of one digest took how long, in buckets that grow by a sixteenth of a power of two.
//!
//! ```text
//!   16 ns, 17, .. 31 | 32, 34, 36, .. 62 | 64, 68, .. 124 | ..
//! ```
//!
//! A quantile is the upper end of its bucket, so it is at most 7 percent too great. Buckets that were never hit take
//! no memory: most digests have a few dozen.

/// Buckets of each power of two.
const PARTS: u64 = 16;
const PART_BITS: u32 = PARTS.trailing_zeros();

/// See the module's comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LatencyHistogram {
    /// The numbers of buckets, ascending, with their counts.
    buckets: Vec<(u16, u32)>,
}

impl LatencyHistogram {
    pub(crate) fn add(&mut self, nanos: u64) {
        self.add_to_bucket(bucket_of(nanos), 1);
    }

    fn add_to_bucket(&mut self, bucket: u16, count: u32) {
        match self
            .buckets
            .binary_search_by_key(&bucket, |(known, _)| *known)
        {
            Ok(at) => self.buckets[at].1 = self.buckets[at].1.saturating_add(count),
            Err(at) => self.buckets.insert(at, (bucket, count)),
        }
    }

    pub(crate) fn merge(&mut self, other: &LatencyHistogram) {
        for (bucket, count) in &other.buckets {
            self.add_to_bucket(*bucket, *count);
        }
    }

    /// The time in nanoseconds that this share of all took no longer than; 0 of none.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        let total: u64 = self
            .buckets
            .iter()
            .map(|(_, count)| u64::from(*count))
            .sum();
        let wanted = (total as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in &self.buckets {
            seen += u64::from(*count);
            if seen >= wanted {
                return upper_end(*bucket);
            }
        }
        0
    }
}

fn bucket_of(nanos: u64) -> u16 {
    if nanos < PARTS {
        return nanos as u16;
    }
    let power = nanos.ilog2();
    let part = (nanos >> (power - PART_BITS)) - PARTS;
    let first = u64::from(power - PART_BITS + 1) * PARTS;
    // At most 61 powers with their parts.
    (first + part) as u16
}

/// The greatest time in a bucket.
fn upper_end(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    if bucket < PARTS {
        return bucket;
    }
    let shift = (bucket / PARTS - 1) as u32;
    let next = u128::from(PARTS + bucket % PARTS + 1) << shift;
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_lie_in_their_buckets() {
        for nanos in [
            0,
            1,
            15,
            16,
            17,
            31,
            32,
            33,
            1_000,
            65_535,
            65_536,
            u64::MAX,
        ] {
            let bucket = bucket_of(nanos);
            assert!(nanos <= upper_end(bucket), "{nanos}");
            assert!(bucket == 0 || nanos > upper_end(bucket - 1), "{nanos}");
        }
    }

    #[test]
    fn quantiles_are_those_of_all_that_was_added() {
        let mut first = LatencyHistogram::default();
        let mut second = LatencyHistogram::default();
        (0..95).for_each(|_| first.add(1_000));
        (0..5).for_each(|_| second.add(1_000_000));
        first.merge(&second);
        let near = |found: u64, wanted: u64| found >= wanted && found <= wanted * 107 / 100;
        assert!(near(first.quantile(0.95), 1_000));
        assert!(near(first.quantile(0.99), 1_000_000));
        assert_eq!(LatencyHistogram::default().quantile(0.99), 0);
    }
}
