//! How often statements of one digest took how long, in MySQL's buckets.
//!
//! ```text
//!   0 .. 10 us | .. 10.47 us | .. 10.96 us | ..      each ends 4.7 percent later: 50 of them make ten times as much
//! ```
//!
//! A quantile is the end of its bucket, so it is at most 4.7 percent too great, and never less than 10 microseconds.
//! Buckets that were never hit take no memory: most digests have a few dozen.
//!
//! Reference: MySQL manual, "Statement Histogram Summary Tables".

use std::sync::LazyLock;

/// Buckets of a histogram.
pub(crate) const BUCKETS: usize = 450;
/// The end of the first, in picoseconds.
const FIRST_END: f64 = 1e7;
const PICOS_PER_NANO: u64 = 1000;

/// Where buckets end, in picoseconds. The last one has no end.
static ENDS: LazyLock<[u64; BUCKETS]> = LazyLock::new(|| {
    let growth = 10f64.powf(1.0 / 50.0);
    let mut end = FIRST_END;
    let mut ends = [u64::MAX; BUCKETS];
    for bucket in &mut ends[..BUCKETS - 1] {
        *bucket = end as u64;
        end *= growth;
    }
    ends
});

/// See the module's comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LatencyHistogram {
    /// The numbers of buckets, ascending, with their counts.
    buckets: Vec<(u16, u32)>,
}

/// A bucket as the tables of `performance_schema` show it; times are picoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bucket {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) count: u64,
    pub(crate) count_and_lower: u64,
    /// The share of all that took no longer.
    pub(crate) quantile: f64,
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

    fn total(&self) -> u64 {
        let counts = self.buckets.iter().map(|(_, count)| u64::from(*count));
        counts.sum()
    }

    /// The time in picoseconds that so many of a thousand took no longer than; 0 of none.
    pub(crate) fn quantile(&self, thousandths: u64) -> u64 {
        let wanted = (self.total() * thousandths).div_ceil(1000);
        let mut seen = 0;
        for (bucket, count) in &self.buckets {
            seen += u64::from(*count);
            if seen >= wanted {
                return ENDS[usize::from(*bucket)];
            }
        }
        0
    }

    /// All buckets.
    pub(crate) fn all_buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        let total = self.total().max(1);
        let mut hit = self.buckets.iter().peekable();
        let (mut begin, mut count_and_lower) = (0, 0);
        ENDS.iter().enumerate().map(move |(number, &end)| {
            let is_it = |(bucket, _): &&(u16, u32)| usize::from(*bucket) == number;
            let count = hit.next_if(is_it).map_or(0, |(_, count)| u64::from(*count));
            count_and_lower += count;
            Bucket {
                begin: std::mem::replace(&mut begin, end),
                end,
                count,
                count_and_lower,
                quantile: count_and_lower as f64 / total as f64,
            }
        })
    }
}

fn bucket_of(nanos: u64) -> u16 {
    let picos = nanos.saturating_mul(PICOS_PER_NANO);
    // Most statements are short.
    let before = match picos < FIRST_END as u64 {
        true => 0,
        false => ENDS.partition_point(|end| *end <= picos),
    };
    before.min(BUCKETS - 1) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_mysql() {
        for (bucket, end) in [
            (0, 10_000_000),
            (1, 10_471_285),
            (186, 52_480_746_024),
            (448, 9_120_108_393_559_408),
            (449, u64::MAX),
        ] {
            assert_eq!(ENDS[bucket], end, "{bucket}");
        }
    }

    #[test]
    fn times_lie_in_their_buckets() {
        for nanos in [0, 1, 9_999, 10_000, 10_001, 1_000_000, 50_315_752, u64::MAX] {
            let bucket = usize::from(bucket_of(nanos));
            let picos = nanos.saturating_mul(PICOS_PER_NANO);
            assert!(picos < ENDS[bucket] || bucket == BUCKETS - 1, "{nanos}");
            assert!(bucket == 0 || picos >= ENDS[bucket - 1], "{nanos}");
        }
    }

    #[test]
    fn quantiles_are_those_of_all_that_was_added() {
        let mut first = LatencyHistogram::default();
        let mut second = LatencyHistogram::default();
        (0..95).for_each(|_| first.add(1_000));
        (0..5).for_each(|_| second.add(50_315_752));
        first.merge(&second);
        assert_eq!(first.quantile(950), 10_000_000);
        assert_eq!(first.quantile(990), 52_480_746_024);
        assert_eq!(LatencyHistogram::default().quantile(990), 0);
    }

    #[test]
    fn all_buckets_are_told_with_what_lies_below() {
        let mut histogram = LatencyHistogram::default();
        [1_000, 10_200, 10_300, 50_315_752]
            .into_iter()
            .for_each(|nanos| histogram.add(nanos));
        let buckets: Vec<Bucket> = histogram.all_buckets().collect();
        assert_eq!(buckets.len(), BUCKETS);
        assert_eq!((buckets[0].count, buckets[0].begin), (1, 0));
        assert_eq!((buckets[1].count, buckets[1].count_and_lower), (2, 3));
        assert!((buckets[185].quantile - 0.75).abs() < f64::EPSILON);
        assert_eq!((buckets[186].count, buckets[449].count_and_lower), (1, 4));
        assert!(buckets.windows(2).all(|pair| pair[0].end == pair[1].begin));
    }
}
