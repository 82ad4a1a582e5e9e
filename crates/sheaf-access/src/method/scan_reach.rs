//! [`ScanReach`]: how far a scan has come, for a transaction that has to keep what it has read as it is.
//!
//! What a scan searches is known when it is planned, if it goes on to its end. One that stops early, at a LIMIT or
//! because nobody asks for more of its rows, has read no further than to some entry. So it records how far it has come,
//! if that was asked for before it began.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use sheaf_storage::{Direction, KeyRange};
use sheaf_table::search_lock::end_ranges_at;

/// See the module's comment. Shared by the partitions of a scan.
#[derive(Debug)]
pub struct ScanReach {
    /// The ranges of each partition.
    shares: Vec<Vec<KeyRange>>,
    direction: Direction,
    /// Where each partition is that has begun.
    reached: Mutex<BTreeMap<usize, Reached>>,
}

/// Where a scan of some ranges is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reached {
    /// It has read no further than to this key.
    Key(Vec<u8>),
    /// It has read all of its ranges.
    End,
}

impl ScanReach {
    pub fn new(shares: &[Vec<KeyRange>], direction: Direction) -> ScanReach {
        ScanReach {
            shares: shares.to_vec(),
            direction,
            reached: Mutex::default(),
        }
    }

    /// A run of a partition has come so far. Another one may have come further.
    pub fn note(&self, partition: usize, now: Reached) {
        // A panic elsewhere leaves what was noted.
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let known = reached.entry(partition).or_insert_with(|| now.clone());
        let is_further = match (&*known, &now) {
            (Reached::End, _) => false,
            (Reached::Key(_), Reached::End) => true,
            (Reached::Key(known), Reached::Key(now)) => match self.direction {
                Direction::Forward => now > known,
                Direction::Backward => now < known,
            },
        };
        if is_further {
            *known = now;
        }
    }

    /// What was read, ascending.
    pub fn ranges(&self) -> Vec<KeyRange> {
        let reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        for (partition, reached) in &*reached {
            let mut ranges = self.shares.get(*partition).cloned().unwrap_or_default();
            if let Reached::Key(key) = reached {
                end_ranges_at(&mut ranges, key, self.direction);
            }
            all.append(&mut ranges);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;

    use super::*;

    fn range(lower: &[u8], upper: Bound<&[u8]>) -> KeyRange {
        KeyRange {
            lower: Bound::Included(lower.to_vec()),
            upper: upper.map(<[u8]>::to_vec),
        }
    }

    #[test]
    fn ranges_end_where_the_scan_that_went_furthest_has_stopped() {
        let key = |key: &[u8]| Reached::Key(key.to_vec());
        let below = |upper: &'static [u8]| Bound::Excluded(upper);
        let shares = [
            vec![range(b"a", below(b"c")), range(b"d", below(b"f"))],
            vec![range(b"g", below(b"i"))],
            vec![range(b"k", below(b"m"))],
        ];
        let forward = ScanReach::new(&shares, Direction::Forward);
        assert!(forward.ranges().is_empty());
        forward.note(0, key(b"d5"));
        forward.note(0, key(b"b"));
        forward.note(1, Reached::End);
        forward.note(1, key(b"h"));
        let expected = [
            range(b"a", below(b"c")),
            range(b"d", Bound::Included(b"d5".as_slice())),
            range(b"g", below(b"i")),
        ];
        assert_eq!(forward.ranges(), expected);
        let backward = ScanReach::new(&shares[..1], Direction::Backward);
        backward.note(0, key(b"e"));
        assert_eq!(backward.ranges(), [range(b"e", below(b"f"))]);
        backward.note(0, key(b"d1"));
        backward.note(0, key(b"e"));
        assert_eq!(backward.ranges(), [range(b"d1", below(b"f"))]);
        // A key alone stays one.
        let one = ScanReach::new(&[vec![KeyRange::prefix(b"x")]], Direction::Forward);
        one.note(0, key(b"x"));
        assert_eq!(one.ranges(), [KeyRange::prefix(b"x")]);
    }
}
