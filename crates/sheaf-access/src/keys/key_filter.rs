//! [`KeyFilter`]: what the parts of an index key must be like, as a walk along the index can use it.
//!
//! Key ranges say what a conjunction leaves of an index up to the first part that is bound to a real range. Conditions
//! on the parts after it leave holes in the range. With KEY (a, b, c) and `a BETWEEN 1 AND 9 AND c IN (3, 5)`:
//!
//! ```text
//!   keys    (1,1,1) (1,1,2) (1,1,3) (1,1,4) (1,1,6) (1,2,1) (1,2,5) ...
//!                               ^ match                         ^ match
//!           |----- jump ------>|       |--- jump to (1,2,3) -->|
//! ```
//!
//! The filter has for each part the intervals of encoded bytes that are let in. For a key that does not match it finds
//! the nearest key in scan direction that could. The parts before the one that fails stay, that part goes to its next
//! interval, and the parts after it to their first. Where there is no next interval, the part before moves on. (This is
//! the next-jump-in of the UB-tree: Ramsak et al., "Integrating the UB-tree into a database system kernel", VLDB 2000;
//! for one index it is called skip scan.) For a key that matches, the filter finds up to where all keys match.
//!
//! Bounds are encoded bytes. A part orders as its bytes do, and no value's encoding is a prefix of another's. So an
//! interval of values is an interval of byte strings, whatever parts follow.

use sheaf_storage::prefix_successor;
use sheaf_table::KeyLayout;

use crate::error::Result;

/// Values of one key part: those whose encoding, with whatever follows, is at least `lower` and less than `upper`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartInterval {
    /// Encoded bytes of the part, NULL byte included; may be cut short.
    pub lower: Vec<u8>,
    /// `None`: no end.
    pub upper: Option<Vec<u8>>,
}

/// See the module's comment.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyFilter {
    /// For each leading part what it is let in; the last one is not open.
    parts: Vec<PartFilter>,
    /// For each part the least bytes with which it and the parts after it can begin.
    least: Vec<Vec<u8>>,
    /// For each part what lies above all that it and the parts after it can be.
    above: Vec<Option<Vec<u8>>>,
}

/// The intervals of one part, ascending and disjoint; `None` lets everything in.
type PartFilter = Option<Vec<Interval>>;

#[derive(Clone, Debug, PartialEq)]
struct Interval {
    bounds: PartInterval,
    /// `lower` is the whole encoding of a value: the next part begins behind it.
    whole: bool,
    /// The interval is this one value.
    single: bool,
}

impl Interval {
    fn new(bounds: PartInterval, layout: &KeyLayout, part: usize) -> Interval {
        let lower = &bounds.lower;
        let whole = layout
            .part_length(part, lower)
            .is_ok_and(|length| length == lower.len());
        Interval {
            single: whole && bounds.upper == prefix_successor(lower),
            whole,
            bounds,
        }
    }

    fn ends_at_or_before(&self, bytes: &[u8]) -> bool {
        let upper = self.bounds.upper.as_deref();
        upper.is_some_and(|upper| upper <= bytes)
    }
}

impl KeyFilter {
    /// A filter on the leading parts of the index with `layout`: for each part ascending, disjoint intervals, or `None`
    /// for any value. `None` if no part is restricted.
    pub fn new(layout: &KeyLayout, parts: Vec<Option<Vec<PartInterval>>>) -> Option<KeyFilter> {
        let count = parts.iter().rposition(Option::is_some)? + 1;
        let parts: Vec<PartFilter> = parts
            .into_iter()
            .take(count)
            .enumerate()
            .map(|(part, intervals)| {
                let interval = |bounds| Interval::new(bounds, layout, part);
                intervals.map(|intervals| intervals.into_iter().map(interval).collect())
            })
            .collect();
        let mut filter = KeyFilter {
            least: vec![Vec::new(); count + 1],
            above: vec![None; count + 1],
            parts,
        };
        for part in (0..count).rev() {
            let Some(intervals) = &filter.parts[part] else {
                continue;
            };
            let mut least = Vec::new();
            let mut above = None;
            if let (Some(first), Some(last)) = (intervals.first(), intervals.last()) {
                filter.lower_into(part, first, &mut least);
                let mut bytes = Vec::new();
                above = filter.upper_into(part, last, &mut bytes).then_some(bytes);
            }
            filter.least[part] = least;
            filter.above[part] = above;
        }
        Some(filter)
    }

    /// Leading parts that the filter looks at.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Appends the least bytes of a part in `interval` and the parts after it.
    fn lower_into(&self, part: usize, interval: &Interval, key: &mut Vec<u8>) {
        key.extend_from_slice(&interval.bounds.lower);
        if interval.whole {
            key.extend_from_slice(&self.least[part + 1]);
        }
    }

    /// Appends what lies above a part in `interval` and the parts after it; false if nothing does.
    fn upper_into(&self, part: usize, interval: &Interval, key: &mut Vec<u8>) -> bool {
        match (&self.above[part + 1], &interval.bounds.upper) {
            (Some(above), _) if interval.single => {
                key.extend_from_slice(&interval.bounds.lower);
                key.extend_from_slice(above);
            }
            (_, Some(upper)) => key.extend_from_slice(upper),
            (_, None) => return false,
        }
        true
    }
}

/// What a filter says about a key and its neighbours in scan direction, up to a bound. Forward the bound is the first
/// key that it says nothing about, backward the last one that it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All of them match.
    Accept,
    /// None of them does. Backward the bound is excluded: the keys from it on do not match.
    Reject,
}

/// Asks a filter about keys. Keeps its scratch space from key to key.
#[derive(Default)]
pub(crate) struct KeyProbe {
    /// Where each part of the key starts, as far as it was read.
    starts: Vec<usize>,
    bound: Vec<u8>,
    bounded: bool,
}

impl KeyProbe {
    /// The bound of the last verdict; `None`: it holds for all further keys in scan direction.
    pub(crate) fn bound(&self) -> Option<&[u8]> {
        self.bounded.then_some(self.bound.as_slice())
    }

    /// Sets the bound for a walk that knows better.
    pub(crate) fn set_bound_to(&mut self, bound: Option<Vec<u8>>) {
        self.bounded = bound.is_some();
        self.bound = bound.unwrap_or_default();
    }

    /// Goes through the parts of `key` until `place` finds that a part is in none of its intervals. Returns this part,
    /// or the last part and its interval.
    fn first_failure<'f>(
        &mut self,
        filter: &'f KeyFilter,
        layout: &KeyLayout,
        key: &[u8],
        place: impl Fn(&'f [Interval], &[u8]) -> Option<&'f Interval>,
    ) -> Result<(usize, Option<&'f Interval>)> {
        self.starts.clear();
        let mut start = 0;
        let last = filter.parts.len() - 1;
        for (part, intervals) in filter.parts.iter().enumerate() {
            self.starts.push(start);
            let rest = &key[start..];
            if let Some(intervals) = intervals {
                let interval = place(intervals, rest);
                if interval.is_none() || part == last {
                    return Ok((part, interval));
                }
            }
            start += layout.part_length(part, rest)?;
        }
        Ok((last, None))
    }

    /// What the filter says of `key` and the keys after it. Rejected: no key before the bound matches.
    pub(crate) fn forward(
        &mut self,
        filter: &KeyFilter,
        layout: &KeyLayout,
        key: &[u8],
    ) -> Result<Verdict> {
        let (part, interval) = self.first_failure(filter, layout, key, |intervals, rest| {
            let position = intervals.partition_point(|known| known.ends_at_or_before(rest));
            let found = intervals.get(position)?;
            (found.bounds.lower.as_slice() <= rest).then_some(found)
        })?;
        let start = self.starts[part];
        self.bounded = true;
        if let Some(interval) = interval {
            match &interval.bounds.upper {
                Some(upper) => {
                    self.set_bound(&key[..start]);
                    self.bound.extend_from_slice(upper);
                }
                None => self.bounded = self.set_bound_after(&key[..start]),
            }
            return Ok(Verdict::Accept);
        }
        // The failing part goes to its next interval; where there is none, the part before goes to its next value.
        let failing = part;
        for part in (0..=failing).rev() {
            let start = self.starts[part];
            if part == failing {
                self.set_bound(key);
            } else if !self.set_bound_after(&key[..self.starts[part + 1]])
                || self.bound.len() <= start
            {
                // The part has its greatest value.
                continue;
            }
            let Some(intervals) = &filter.parts[part] else {
                return Ok(Verdict::Reject);
            };
            let rest = &self.bound[start..];
            let position = intervals.partition_point(|known| known.ends_at_or_before(rest));
            let Some(next) = intervals.get(position) else {
                continue;
            };
            if next.bounds.lower.as_slice() > rest {
                self.set_bound(&key[..start]);
                filter.lower_into(part, next, &mut self.bound);
            }
            return Ok(Verdict::Reject);
        }
        self.bounded = false;
        Ok(Verdict::Reject)
    }

    fn set_bound(&mut self, bytes: &[u8]) {
        self.bound.clear();
        self.bound.extend_from_slice(bytes);
    }

    /// Sets the bound to after all keys that begin with `bytes`; false if there is nothing.
    fn set_bound_after(&mut self, bytes: &[u8]) -> bool {
        let Some(last) = bytes.iter().rposition(|&byte| byte != 0xFF) else {
            return false;
        };
        self.set_bound(&bytes[..=last]);
        self.bound[last] += 1;
        true
    }

    /// What the filter says of `key` and the keys before it. Accepted: from the bound on. Rejected: no key at the bound
    /// or after it matches.
    pub(crate) fn backward(
        &mut self,
        filter: &KeyFilter,
        layout: &KeyLayout,
        key: &[u8],
    ) -> Result<Verdict> {
        let (part, interval) = self.first_failure(filter, layout, key, |intervals, rest| {
            let above = intervals.partition_point(|known| known.bounds.lower.as_slice() <= rest);
            let found = &intervals[above.checked_sub(1)?];
            (!found.ends_at_or_before(rest)).then_some(found)
        })?;
        self.bounded = true;
        if let Some(interval) = interval {
            self.set_bound(&key[..self.starts[part]]);
            self.bound.extend_from_slice(&interval.bounds.lower);
            return Ok(Verdict::Accept);
        }
        // The failing part goes to the interval before; where there is none, the part before goes to a lesser value.
        let failing = part;
        for part in (0..=failing).rev() {
            let start = self.starts[part];
            // Of the failing part all that is not more than what it is, of an earlier one all that is less.
            let end = self.starts.get(part + 1).copied().unwrap_or(key.len());
            let rest = if part == failing {
                &key[start..]
            } else {
                &key[start..end]
            };
            self.set_bound(&key[..start + rest.len()]);
            let Some(intervals) = &filter.parts[part] else {
                return Ok(Verdict::Reject);
            };
            let below = intervals.partition_point(|known| {
                let lower = known.bounds.lower.as_slice();
                lower < rest || (part == failing && lower == rest)
            });
            let Some(before) = below.checked_sub(1).map(|position| &intervals[position]) else {
                continue;
            };
            if before.ends_at_or_before(rest) {
                self.set_bound(&key[..start]);
                filter.upper_into(part, before, &mut self.bound);
            }
            return Ok(Verdict::Reject);
        }
        // Before the least value of the first part lies nothing.
        self.bounded = false;
        Ok(Verdict::Reject)
    }
}
