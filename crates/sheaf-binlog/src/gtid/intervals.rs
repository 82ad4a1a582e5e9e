//! Sets of numbers as intervals: sorted, apart from each other, none empty.

/// Numbers from `first` to `last`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    pub first: u64,
    pub last: u64,
}

/// A set of numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Intervals(Vec<Interval>);

impl Intervals {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Interval> + '_ {
        self.0.iter().copied()
    }

    /// How many intervals there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn contains(&self, number: u64) -> bool {
        let place = self.0.partition_point(|interval| interval.last < number);
        let interval = self.0.get(place);
        interval.is_some_and(|interval| interval.first <= number)
    }

    /// Adds numbers. An interval whose last number lies before its first is empty. Adding the next number, as commits
    /// do, is cheap.
    pub fn add(&mut self, added: Interval) {
        if added.first > added.last {
            return;
        }
        // Those that touch the new one become part of it.
        let begin = self
            .0
            .partition_point(|interval| interval.last.saturating_add(1) < added.first);
        let end = self
            .0
            .partition_point(|interval| interval.first <= added.last.saturating_add(1));
        let (mut first, mut last) = (added.first, added.last);
        if begin < end {
            first = first.min(self.0[begin].first);
            last = last.max(self.0[end - 1].last);
        }
        self.0.splice(begin..end, [Interval { first, last }]);
    }

    /// Takes all numbers of another set out.
    pub fn subtract(&mut self, other: &Intervals) {
        let mut left = Vec::new();
        let mut taken = other.0.iter().copied().peekable();
        for Interval { mut first, last } in self.0.drain(..) {
            // What ends before this interval ends before all others, too.
            while taken.next_if(|taken| taken.last < first).is_some() {}
            let mut is_left = true;
            for taken in taken.clone() {
                if taken.first > last {
                    break;
                }
                if taken.first > first {
                    let last = taken.first - 1;
                    left.push(Interval { first, last });
                }
                if taken.last >= last {
                    is_left = false;
                    break;
                }
                first = taken.last + 1;
            }
            if is_left {
                left.push(Interval { first, last });
            }
        }
        self.0 = left;
    }

    /// Whether all numbers of this set are in the other.
    pub fn is_subset(&self, other: &Intervals) -> bool {
        self.0.iter().all(|interval| {
            let place = other.0.partition_point(|found| found.last < interval.first);
            let found = other.0.get(place);
            found.is_some_and(|found| found.first <= interval.first && found.last >= interval.last)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn made(pairs: &[(u64, u64)]) -> (Intervals, BTreeSet<u64>) {
        let mut intervals = Intervals::default();
        let mut model = BTreeSet::new();
        for &(first, length) in pairs {
            let last = first + length;
            intervals.add(Interval { first, last });
            model.extend(first..=last);
        }
        (intervals, model)
    }

    fn numbers(intervals: &Intervals) -> BTreeSet<u64> {
        intervals.iter().flat_map(|i| i.first..=i.last).collect()
    }

    proptest! {
        #[test]
        fn intervals_are_the_set_of_their_numbers(
            a in prop::collection::vec((1u64..60, 0u64..9), 0..12),
            b in prop::collection::vec((1u64..60, 0u64..9), 0..12),
        ) {
            let (mut a, mut model_a) = made(&a);
            let (b, model_b) = made(&b);
            prop_assert_eq!(numbers(&a), model_a.clone());
            prop_assert!(a.0.windows(2).all(|pair| pair[0].last + 1 < pair[1].first));
            prop_assert_eq!(a.is_subset(&b), model_a.is_subset(&model_b));
            for number in 0..80 {
                prop_assert_eq!(a.contains(number), model_a.contains(&number));
            }
            a.subtract(&b);
            model_a.retain(|number| !model_b.contains(number));
            prop_assert_eq!(numbers(&a), model_a);
            prop_assert!(a.0.windows(2).all(|pair| pair[0].last + 1 < pair[1].first));
        }
    }

    #[test]
    fn the_greatest_numbers_do_not_overflow() {
        let all = Interval {
            first: 1,
            last: u64::MAX,
        };
        let mut intervals = Intervals::default();
        intervals.add(all);
        intervals.add(Interval {
            first: u64::MAX,
            last: u64::MAX,
        });
        assert_eq!(intervals.0, [all]);
        let whole = intervals.clone();
        intervals.subtract(&whole);
        assert!(intervals.is_empty());
    }
}
