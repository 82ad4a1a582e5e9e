//! Sets of CPUs, as Linux numbers them.
//!
//! A set is kept and written as ascending ranges without overlap or gaps of zero: `0-3,8` is what VCPU = 8,2-3,0-2 of a
//! resource group comes to.

use std::fmt;

/// CPUs are numbered below this, as in the C library's `cpu_set_t`.
pub const MAX_CPUS: u16 = 1024;

/// A set of CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet {
    /// First and last number of each range.
    ranges: Vec<(u16, u16)>,
}

impl CpuSet {
    /// The union of ranges, which include their ends, in any order.
    pub fn from_ranges(ranges: impl IntoIterator<Item = (u16, u16)>) -> CpuSet {
        let mut all: Vec<(u16, u16)> = ranges.into_iter().collect();
        all.sort_unstable();
        let mut merged: Vec<(u16, u16)> = Vec::with_capacity(all.len());
        for (first, last) in all {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => merged.push((first, last)),
            }
        }
        CpuSet { ranges: merged }
    }

    pub fn ranges(&self) -> &[(u16, u16)] {
        &self.ranges
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many CPUs there are in the set.
    pub fn len(&self) -> usize {
        let lengths = self.ranges.iter();
        lengths
            .map(|(first, last)| usize::from(last - first) + 1)
            .sum()
    }

    pub fn contains(&self, cpu: u16) -> bool {
        let mut ranges = self.ranges.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&cpu))
    }

    /// The CPUs by ascending number.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.ranges.iter().flat_map(|(first, last)| *first..=*last)
    }
}

impl FromIterator<u16> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u16>>(cpus: I) -> CpuSet {
        CpuSet::from_ranges(cpus.into_iter().map(|cpu| (cpu, cpu)))
    }
}

/// `0-3,8`
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (first, last)) in self.ranges.iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_put_in_order_and_together() {
        let set = CpuSet::from_ranges([(8, 8), (2, 3), (0, 2), (5, 6), (6, 6)]);
        assert_eq!(set.to_string(), "0-3,5-6,8");
        assert_eq!(set.len(), 7);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 5, 6, 8]);
        assert!(set.contains(6) && !set.contains(7));
        assert_eq!(set.iter().collect::<CpuSet>(), set);
        let none = CpuSet::default();
        assert!(none.is_empty() && none.to_string().is_empty());
        assert_eq!(none.iter().count(), 0);
        let last = CpuSet::from_ranges([(u16::MAX, u16::MAX), (0, u16::MAX)]);
        assert_eq!(last.ranges(), [(0, u16::MAX)]);
    }
}
