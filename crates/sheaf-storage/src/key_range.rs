//! A range of keys, as a scan, an index dive or a residency question names it.
//!
//! Keys are byte strings that compare by memcmp. A range has two bounds, each of which may include its key, exclude it,
//! or be absent. Prefix ranges are ordinary ranges: every key that starts with `p` lies in `[p, successor(p))`. The
//! successor is the smallest byte string greater than all strings that start with `p`.

use std::cmp::Ordering;
use std::ops::{Bound, Range};

use crate::node::{NodeView, PageBytes};

/// Keys between two bounds. A range whose bounds cross is empty, not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub lower: Bound<Vec<u8>>,
    pub upper: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Every key of the tree.
    pub fn all() -> KeyRange {
        KeyRange {
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
        }
    }

    /// Every key that starts with `prefix`.
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        KeyRange::of_prefix(prefix.to_vec())
    }

    /// [`Self::prefix`] of bytes that nobody else needs.
    pub fn of_prefix(prefix: Vec<u8>) -> KeyRange {
        let upper = match prefix_successor(&prefix) {
            Some(successor) => Bound::Excluded(successor),
            None => Bound::Unbounded,
        };
        KeyRange {
            lower: Bound::Included(prefix),
            upper,
        }
    }

    /// Whether the range includes `key`.
    pub fn contains(&self, key: &[u8]) -> bool {
        !self.is_below(key) && !self.is_above(key)
    }

    /// Whether `key` lies before the lower bound.
    pub fn is_below(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Unbounded => false,
            Bound::Included(lower) => key < lower.as_slice(),
            Bound::Excluded(lower) => key <= lower.as_slice(),
        }
    }

    /// Whether `key` lies after the upper bound.
    pub fn is_above(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Unbounded => false,
            Bound::Included(upper) => key > upper.as_slice(),
            Bound::Excluded(upper) => key >= upper.as_slice(),
        }
    }

    /// Whether the range includes every key that `other` includes. False also for an empty `other` outside of it.
    pub fn covers(&self, other: &KeyRange) -> bool {
        let reaches_down = match (&self.lower, &other.lower) {
            (Bound::Unbounded, _) => true,
            (_, Bound::Unbounded) => false,
            (Bound::Excluded(own), Bound::Included(lower)) => own < lower,
            (
                Bound::Included(own) | Bound::Excluded(own),
                Bound::Included(lower) | Bound::Excluded(lower),
            ) => own <= lower,
        };
        let reaches_up = match (&self.upper, &other.upper) {
            (Bound::Unbounded, _) => true,
            (_, Bound::Unbounded) => false,
            (Bound::Excluded(own), Bound::Included(upper)) => own > upper,
            (
                Bound::Included(own) | Bound::Excluded(own),
                Bound::Included(upper) | Bound::Excluded(upper),
            ) => own >= upper,
        };
        reaches_down && reaches_up
    }

    /// Whether a key may lie in both ranges.
    pub(crate) fn meets(&self, other: &KeyRange) -> bool {
        let ends_before = |range: &KeyRange, next: &KeyRange| match (&range.upper, &next.lower) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(upper), Bound::Included(lower)) => upper < lower,
            (
                Bound::Included(upper) | Bound::Excluded(upper),
                Bound::Included(lower) | Bound::Excluded(lower),
            ) => upper <= lower,
        };
        !ends_before(self, other) && !ends_before(other, self)
    }

    /// The key, if the bounds leave room for just one and include it.
    pub(crate) fn single_key(&self) -> Option<&[u8]> {
        match (&self.lower, &self.upper) {
            (Bound::Included(lower), Bound::Included(upper)) if lower == upper => Some(lower),
            _ => None,
        }
    }

    /// The slots of a leaf whose keys lie in the range, if the range begins and ends on this leaf or beyond it.
    pub(super) fn slots_in<P: PageBytes>(&self, leaf: &NodeView<'_, P>) -> Range<usize> {
        // The search is for keys between the fences only; a bound outside of them takes in the whole side.
        let start = match &self.lower {
            Bound::Included(key) if leaf.compare_low_fence(key) == Ordering::Less => {
                leaf.lower_bound(key).slot
            }
            Bound::Excluded(key) if leaf.compare_low_fence(key) != Ordering::Greater => {
                let position = leaf.lower_bound(key);
                position.slot + usize::from(position.found)
            }
            _ => 0,
        };
        let end = match &self.upper {
            Bound::Included(key) if leaf.is_below_high_fence(key) => {
                let position = leaf.lower_bound(key);
                position.slot + usize::from(position.found)
            }
            Bound::Excluded(key) if leaf.is_below_high_fence(key) => leaf.lower_bound(key).slot,
            _ => leaf.count(),
        };
        start..end.max(start)
    }

    /// Whether the upper bound lies below the leaf's high fence.
    pub(super) fn ends_in<P: PageBytes>(&self, leaf: &NodeView<'_, P>) -> bool {
        match &self.upper {
            Bound::Included(key) | Bound::Excluded(key) => leaf.is_below_high_fence(key),
            Bound::Unbounded => false,
        }
    }

    /// Whether no key can lie in the range. (A range may also turn out to hold no entry although this is false.)
    pub fn is_empty(&self) -> bool {
        match (&self.lower, &self.upper) {
            (Bound::Unbounded, Bound::Excluded(upper)) => upper.is_empty(),
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
            (Bound::Included(lower), Bound::Excluded(upper))
            | (Bound::Excluded(lower), Bound::Included(upper)) => lower >= upper,
            (Bound::Excluded(lower), Bound::Excluded(upper)) => {
                // Between two keys lies nothing if they are equal, crossed, or neighbours: the byte string that
                // follows `lower` directly is `lower` with a zero byte appended.
                lower >= upper
                    || (upper.len() == lower.len() + 1
                        && upper.starts_with(lower)
                        && upper.ends_with(&[0]))
            }
        }
    }
}

/// The smallest byte string greater than every string that starts with `prefix`; none if `prefix` is empty or all 0xFF.
pub fn prefix_successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xFF)?;
    let mut successor = prefix[..=last].to_vec();
    successor[last] += 1;
    Some(successor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_range_holds_exactly_the_keys_with_the_prefix() {
        let range = KeyRange::prefix(b"ab");
        assert!(range.contains(b"ab"));
        assert!(range.contains(b"ab\xFF\xFF"));
        assert!(!range.contains(b"aa\xFF"));
        assert!(!range.contains(b"ac"));
    }

    #[test]
    fn the_successor_of_a_prefix_carries_over_0xff() {
        assert_eq!(prefix_successor(b"a\xFF\xFF"), Some(b"b".to_vec()));
        assert_eq!(prefix_successor(b"\xFF"), None);
        assert_eq!(prefix_successor(b""), None);
    }

    #[test]
    fn a_range_covers_what_lies_within_its_bounds() {
        let range = |lower: Bound<&[u8]>, upper: Bound<&[u8]>| KeyRange {
            lower: lower.map(<[u8]>::to_vec),
            upper: upper.map(<[u8]>::to_vec),
        };
        let closed = range(Bound::Included(b"b"), Bound::Included(b"d"));
        let open = range(Bound::Excluded(b"b"), Bound::Excluded(b"d"));
        assert!(closed.covers(&closed) && open.covers(&open) && closed.covers(&open));
        assert!(!open.covers(&closed));
        assert!(closed.covers(&range(Bound::Included(b"c"), Bound::Included(b"c"))));
        assert!(!closed.covers(&range(Bound::Included(b"c"), Bound::Unbounded)));
        assert!(KeyRange::all().covers(&closed) && !closed.covers(&KeyRange::all()));
    }

    #[test]
    fn crossed_and_touching_bounds_are_empty() {
        let range = |lower: Bound<&[u8]>, upper: Bound<&[u8]>| KeyRange {
            lower: lower.map(<[u8]>::to_vec),
            upper: upper.map(<[u8]>::to_vec),
        };
        assert!(range(Bound::Included(b"b"), Bound::Included(b"a")).is_empty());
        assert!(range(Bound::Included(b"a"), Bound::Excluded(b"a")).is_empty());
        assert!(range(Bound::Excluded(b"a"), Bound::Excluded(b"a\0")).is_empty());
        assert!(range(Bound::Unbounded, Bound::Excluded(b"")).is_empty());
        assert!(!range(Bound::Included(b"a"), Bound::Included(b"a")).is_empty());
        assert!(!KeyRange::all().is_empty());
    }
}
