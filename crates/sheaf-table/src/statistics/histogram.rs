//! Histograms: the most common values one by one, the others in buckets of about the same height.
//!
//! ```text
//!   share of the rows
//!    |          *
//!    |          *                                     *    common values: their own share
//!    |  +-----+ *     +--+   +---------------+ +----+ *
//!    |  |  1  | *     |2 |   |       3       | |  4 | *    buckets: a share together, evenly spread over
//!    +--+-----+-*-----+--+---+---------------+-+----+-*->  their distinct values, which they count
//!      lower upper
//! ```
//!
//! Buckets begin and end with values that were seen, both included, and a value never lies in two of them. (Poosala,
//! Haas, Ioannidis, Shekita, "Improved Histograms for Selectivity Estimation of Range Predicates", SIGMOD 1996. Their
//! "compressed histograms" were the most accurate kind that is cheap to make.) If there are no more distinct values
//! than buckets, all are common, and nothing is left to be spread.
//!
//! **Errors.** In a histogram of b buckets over all rows, a range differs from the truth by no more than the height of
//! the two buckets that its ends lie in. Each has 1/b of the rows, or one value more. A common value is exact, and any
//! other value is rarer than the rarest common one. From a sample of r rows of n, a bucket differs from its height by a
//! factor within 1 +- f with probability 1 - y if r >= 4 b ln(2 n / y) / f^2 (Chaudhuri, Motwani, Narasayya, "Random
//! Sampling for Histogram Construction: How much is enough?", SIGMOD 1998): with 30,000 rows for 100 buckets of ten
//! million rows, f is 0.5 in 99 of 100 cases.
//!
//! Shares are of all rows, NULLs included, so that they add up to 1 - the share of NULLs.

use std::ops::Bound;

use sheaf_storage::KeyRange;

use crate::statistics::column_key::ColumnKey;

/// Most buckets of a histogram, and most common values (MySQL's limit).
pub const MAX_BUCKETS: usize = 1024;

/// Buckets of a histogram unless another number was asked for (MySQL's and PostgreSQL's default).
pub const DEFAULT_BUCKETS: usize = 100;

/// A value seen less often in a sample is not called common: its share would be off by a third.
const LEAST_SIGHTINGS: usize = 8;

/// A common value is at least so many times as frequent as the average one.
const COMMON_FACTOR: f64 = 2.0;

/// What an allocator takes beside what it is asked for, about.
const ALLOCATION_BYTES: usize = 16;

/// A value of a column: its key, and what gives its original back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SampledValue {
    pub key: Box<[u8]>,
    pub payload: Box<[u8]>,
}

impl SampledValue {
    fn memory_bytes(&self) -> usize {
        let allocated = |bytes: &[u8]| match bytes.len() {
            0 => 0,
            length => length + ALLOCATION_BYTES,
        };
        allocated(&self.key) + allocated(&self.payload)
    }
}

/// A value that has a share of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct CommonValue {
    pub value: SampledValue,
    /// Of all rows.
    pub share: f64,
}

/// Values that share a share.
#[derive(Debug, Clone, PartialEq)]
pub struct Bucket {
    pub lower: SampledValue,
    pub upper: SampledValue,
    /// Of all rows, common values between the bounds left out.
    pub share: f64,
    /// Estimated distinct values, at least 1.
    pub distinct: f64,
}

/// The distribution of a column's values. See the [module](self).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Histogram {
    /// Ascending.
    pub common: Vec<CommonValue>,
    /// Ascending; no two overlap.
    pub buckets: Vec<Bucket>,
    /// It was made from all rows: a value that it does not cover was not there.
    pub is_complete: bool,
    /// What was asked for.
    pub requested_buckets: usize,
}

impl Histogram {
    /// About how much memory it takes beside itself.
    pub(crate) fn memory_bytes(&self) -> usize {
        let common = self.common.iter();
        let common = common.map(|common| size_of::<CommonValue>() + common.value.memory_bytes());
        let buckets = self.buckets.iter().map(|bucket| {
            size_of::<Bucket>() + bucket.lower.memory_bytes() + bucket.upper.memory_bytes()
        });
        common.sum::<usize>() + buckets.sum::<usize>()
    }
}

/// Sampled values of a column, in the order in which they came.
#[derive(Default)]
pub(crate) struct ValueSample {
    bytes: Vec<u8>,
    values: Vec<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    start: u32,
    key: u16,
    payload: u16,
}

impl ValueSample {
    /// Adds a value; `encode` appends key and payload to empty vectors.
    pub(crate) fn add(&mut self, key: &[u8], payload: &[u8]) {
        self.values.push(Place {
            start: self.bytes.len() as u32,
            key: key.len() as u16,
            payload: payload.len() as u16,
        });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(payload);
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    fn key(&self, value: u32) -> &[u8] {
        let Place { start, key, .. } = self.values[value as usize];
        &self.bytes[start as usize..][..usize::from(key)]
    }

    fn value(&self, value: u32) -> SampledValue {
        let place = self.values[value as usize];
        let payload = place.start as usize + usize::from(place.key);
        SampledValue {
            key: self.key(value).into(),
            payload: self.bytes[payload..payload + usize::from(place.payload)].into(),
        }
    }

    /// The positions of the values, sorted by key; equal ones by position.
    pub(crate) fn sorted(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.values.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| self.key(a).cmp(self.key(b)).then(a.cmp(&b)));
        order
    }
}

/// Equal values of a sorted sample.
#[derive(Clone, Copy)]
struct Run {
    /// Any one of them.
    value: u32,
    rows: usize,
    is_common: bool,
}

impl Histogram {
    /// Makes a histogram of at most `buckets` buckets and as many common values.
    ///
    /// `order` are the sample's values [sorted](ValueSample::sorted); the sample is of `rows` rows, those with NULL
    /// included, and all the table's if `is_complete`. The column has about `distinct` values.
    pub(crate) fn build(
        sample: &ValueSample,
        order: &[u32],
        rows: usize,
        is_complete: bool,
        distinct: u64,
        buckets: usize,
    ) -> Histogram {
        let buckets = buckets.clamp(1, MAX_BUCKETS);
        let mut runs: Vec<Run> = order
            .chunk_by(|&a, &b| sample.key(a) == sample.key(b))
            .map(|run| Run {
                value: run[0],
                rows: run.len(),
                is_common: false,
            })
            .collect();
        mark_common(&mut runs, order.len(), is_complete, buckets);
        let share = |rows_of_value: usize| rows_of_value as f64 / rows.max(1) as f64;
        let common: Vec<CommonValue> = runs
            .iter()
            .filter(|run| run.is_common)
            .map(|run| CommonValue {
                value: sample.value(run.value),
                share: share(run.rows),
            })
            .collect();
        runs.retain(|run| !run.is_common);
        // Values that the sample has not seen lie among those that are not common.
        let unseen = distinct.saturating_sub(common.len() as u64) as f64;
        let per_seen = (unseen / runs.len().max(1) as f64).max(1.0);
        let all: usize = runs.iter().map(|run| run.rows).sum();
        let mut made: Vec<Bucket> = Vec::new();
        let (mut first, mut before, mut inside) = (0, 0, 0);
        for at in 0..runs.len() {
            inside += runs[at].rows;
            // A bucket ends where its share of the rows, counted from the first bucket on, is reached.
            let is_full = (before + inside) * buckets >= (made.len() + 1) * all;
            if is_full || at + 1 == runs.len() {
                made.push(Bucket {
                    lower: sample.value(runs[first].value),
                    upper: sample.value(runs[at].value),
                    share: share(inside),
                    distinct: (at + 1 - first) as f64 * per_seen,
                });
                before += inside;
                (first, inside) = (at + 1, 0);
            }
        }
        Histogram {
            common,
            buckets: made,
            is_complete,
            requested_buckets: buckets,
        }
    }

    /// Share of the rows whose value has this key.
    pub(crate) fn share_of_value(&self, key: &[u8]) -> f64 {
        if let Ok(found) = self
            .common
            .binary_search_by(|common| common.value.key.as_ref().cmp(key))
        {
            return self.common[found].share;
        }
        let above = self
            .buckets
            .partition_point(|bucket| bucket.upper.key.as_ref() < key);
        let per_value = |bucket: &Bucket| bucket.share / bucket.distinct.max(1.0);
        match self.buckets.get(above) {
            Some(bucket) if bucket.lower.key.as_ref() <= key => per_value(bucket),
            // Between two buckets, or beyond them all: nothing, or what the sample has missed.
            _ if self.is_complete => 0.0,
            Some(bucket) => per_value(bucket),
            None => self.buckets.last().map_or(0.0, per_value),
        }
    }

    /// Share of the rows whose value's key is in the range. `column` knows what lies between two keys.
    pub(crate) fn share_of_range(&self, range: &KeyRange, column: &ColumnKey) -> f64 {
        self.share_of(range, |bucket| covered(bucket, range, column))
    }

    /// The same for the strings that begin with a text, whose keys `range` has.
    ///
    /// Strings are not evenly spread: of all that could follow a few letters, few things do. So where the range has an
    /// end of a bucket, it is taken to have at least half of it; and a quarter of one that has it whole.
    pub(crate) fn share_of_prefix(&self, range: &KeyRange, column: &ColumnKey) -> f64 {
        self.share_of(range, |bucket| {
            let has_end = range.contains(&bucket.lower.key) || range.contains(&bucket.upper.key);
            let least = match has_end {
                true => PREFIX_SHARE_WITH_END,
                false => PREFIX_SHARE_WITHIN,
            };
            covered(bucket, range, column).max(least)
        })
    }

    /// Share of the rows in a range, of whose buckets `covered` says which share is in it.
    fn share_of(&self, range: &KeyRange, covered: impl Fn(&Bucket) -> f64) -> f64 {
        let common = part(
            &self.common,
            |common| range.is_below(&common.value.key),
            |common| range.is_above(&common.value.key),
        );
        let common: f64 = common.iter().map(|common| common.share).sum();
        let inside = part(
            &self.buckets,
            |bucket| range.is_below(&bucket.upper.key),
            |bucket| range.is_above(&bucket.lower.key),
        );
        // Those between the first and the last one lie in the range as a whole.
        let last = inside.len().saturating_sub(1);
        let buckets = inside.iter().enumerate().map(|(at, bucket)| {
            let covered = match at == 0 || at == last {
                true => covered(bucket),
                false => 1.0,
            };
            bucket.share * covered
        });
        let buckets: f64 = buckets.sum();
        common + buckets
    }
}

/// What is neither below nor above, of a list in ascending order.
fn part<T>(list: &[T], is_below: impl Fn(&T) -> bool, is_above: impl Fn(&T) -> bool) -> &[T] {
    let first = list.partition_point(is_below);
    let end = list.partition_point(|one| !is_above(one));
    list.get(first..end).unwrap_or(&[])
}

/// Shares of a bucket that begin with a text, at least: if one of its ends does, and if neither does.
const PREFIX_SHARE_WITH_END: f64 = 0.5;
const PREFIX_SHARE_WITHIN: f64 = 0.25;

/// Share of a bucket's values, evenly spread, that lie in a range.
fn covered(bucket: &Bucket, range: &KeyRange, column: &ColumnKey) -> f64 {
    let (lower, upper) = (bucket.lower.key.as_ref(), bucket.upper.key.as_ref());
    let from_lower = range.contains(lower);
    let to_upper = range.contains(upper);
    if from_lower && to_upper {
        return 1.0;
    }
    if lower == upper {
        return 0.0;
    }
    let position = |key: &[u8]| column.position(key, lower, upper);
    let start = match &range.lower {
        Bound::Included(key) | Bound::Excluded(key) if !from_lower => position(key),
        _ => 0.0,
    };
    let end = match &range.upper {
        Bound::Included(key) | Bound::Excluded(key) if !to_upper => position(key),
        _ => 1.0,
    };
    // At least the value at the end that lies in the range.
    let least = match from_lower || to_upper {
        true => 1.0 / bucket.distinct.max(1.0),
        false => 0.0,
    };
    (end - start).max(least).min(1.0)
}

/// Marks the values that get a share of their own.
fn mark_common(runs: &mut [Run], rows: usize, is_complete: bool, most: usize) {
    if runs.len() <= most {
        runs.iter_mut().for_each(|run| run.is_common = true);
        return;
    }
    let average = rows as f64 / runs.len() as f64;
    let significant = if is_complete { 1 } else { LEAST_SIGHTINGS };
    let mut candidates: Vec<usize> = (0..runs.len())
        .filter(|&at| runs[at].rows >= significant)
        .filter(|&at| runs[at].rows as f64 >= COMMON_FACTOR * average)
        .collect();
    candidates.sort_unstable_by_key(|&at| (std::cmp::Reverse(runs[at].rows), at));
    for at in candidates.into_iter().take(most) {
        runs[at].is_common = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::key_range::PartBounds;
    use crate::definition::schema::{Column, CreateTable};
    use sheaf_types::ColumnType;
    use sheaf_types::Value;

    fn column_key(ty: &str) -> ColumnKey {
        let column = Column::new("c", ColumnType::parse(ty).unwrap(), true);
        let request = CreateTable::new("d", "t", vec![column]);
        ColumnKey::new(
            &crate::catalog::definition_check::resolve_table(1, request).unwrap(),
            0,
        )
    }

    fn histogram(key: &ColumnKey, values: &[Value], buckets: usize) -> Histogram {
        let mut sample = ValueSample::default();
        for value in values {
            let (mut bytes, mut payload) = (Vec::new(), Vec::new());
            key.encode(value.into(), &mut bytes, &mut payload);
            sample.add(&bytes, &payload);
        }
        let order = sample.sorted();
        let mut distinct: Vec<_> = values.iter().map(|value| key.key(value)).collect();
        distinct.sort();
        distinct.dedup();
        let distinct = distinct.len() as u64;
        Histogram::build(&sample, &order, values.len(), true, distinct, buckets)
    }

    fn between(lower: Bound<Value>, upper: Bound<Value>) -> PartBounds {
        PartBounds::Between { lower, upper }
    }

    #[test]
    fn few_values_are_all_common_and_exact() {
        let key = column_key("int");
        let values: Vec<Value> = (0..100).map(|i| Value::Int(i % 4 * 10)).collect();
        let histogram = histogram(&key, &values, 4);
        assert_eq!((histogram.common.len(), histogram.buckets.len()), (4, 0));
        assert_eq!(histogram.share_of_value(&key.key(&Value::Int(20))), 0.25);
        assert_eq!(histogram.share_of_value(&key.key(&Value::Int(15))), 0.0);
        let up_to = between(Bound::Unbounded, Bound::Excluded(Value::Int(20)));
        assert_eq!(histogram.share_of_range(&key.range(&up_to), &key), 0.5);
    }

    #[test]
    fn buckets_are_of_one_height_and_no_value_is_in_two() {
        let key = column_key("int");
        let values: Vec<Value> = (0..10_000).map(|i| Value::Int(i * i / 10_000)).collect();
        let histogram = histogram(&key, &values, 50);
        assert!(histogram.buckets.len() <= 50);
        assert!(
            histogram
                .buckets
                .is_sorted_by(|a, b| a.upper.key < b.lower.key)
        );
        let common: f64 = histogram.common.iter().map(|common| common.share).sum();
        let buckets: f64 = histogram.buckets.iter().map(|bucket| bucket.share).sum();
        assert!((common + buckets - 1.0).abs() < 1e-9);
        for bucket in &histogram.buckets {
            // One value more than its height.
            assert!(bucket.share < 1.0 / 50.0 + 0.01, "{bucket:?}");
        }
    }

    #[test]
    fn interpolation_is_exact_for_numbers_that_are_evenly_spread() {
        let bounds =
            |lower: Value, upper: Value| between(Bound::Included(lower), Bound::Excluded(upper));
        type Nth = fn(i64) -> Value;
        let cases: [(&str, Nth); 5] = [
            ("bigint", |i| Value::Int(i * 3 - 5_000)),
            ("decimal(20,4)", |i| Value::Decimal {
                unscaled: i128::from(i) * 70_000 - 100_000_000,
                scale: 4,
            }),
            ("date", |i| Value::Date(i as i32 - 3000)),
            ("datetime(6)", |i| {
                Value::DateTime((i - 100) * 86_400_000_000)
            }),
            ("double", |i| Value::Double(i as f64 * 0.37 - 700.0)),
        ];
        for (ty, value) in cases {
            let key = column_key(ty);
            let values: Vec<Value> = (0..10_000).map(value).collect();
            // A single bucket: everything comes from interpolation.
            let histogram = histogram(&key, &values, 1);
            assert_eq!(histogram.buckets.len(), 1);
            for (lower, upper) in [
                (0, 1),
                (17, 5_000),
                (9_000, 10_000),
                (300, 301),
                (2_500, 7_500),
            ] {
                let range = key.range(&bounds(value(lower), value(upper)));
                let share = histogram.share_of_range(&range, &key);
                let exact = (upper - lower) as f64 / 10_000.0;
                assert!(
                    (share - exact).abs() < 0.000_3,
                    "{ty} {lower} {upper}: {share}"
                );
            }
        }
    }

    #[test]
    fn strings_are_interpolated_by_their_bytes() {
        let key = column_key("varchar(20) collate utf8mb4_bin");
        let values: Vec<Value> = (0..26 * 26)
            .map(|i| {
                let letter = |i: i32| char::from(b'a' + i as u8);
                Value::Text(format!("x{}{}", letter(i / 26), letter(i % 26)))
            })
            .collect();
        let histogram = histogram(&key, &values, 1);
        for (at, exact) in [
            ("xa", 0.0),
            ("xg", 6.0 / 26.0),
            ("xn", 0.5),
            ("y", 1.0),
            ("a", 0.0),
        ] {
            let range = key.range(&between(
                Bound::Unbounded,
                Bound::Excluded(Value::Text(at.into())),
            ));
            let share = histogram.share_of_range(&range, &key);
            assert!(
                (share - exact).abs() < 0.03,
                "{at}: {share}, exactly {exact}"
            );
        }
        let like = key.range(&PartBounds::StartsWith("xc".into()));
        let share = histogram.share_of_range(&like, &key);
        assert!((share - 1.0 / 26.0).abs() < 0.01, "{share}");
    }
}
