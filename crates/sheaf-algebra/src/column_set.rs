//! A set of columns, as bits: a statement has few columns, and rules ask for unions and subsets all the time.

use std::fmt;

use crate::column::ColumnId;

const BITS: usize = u64::BITS as usize;

/// A set of columns. The last word is never 0, so equal sets are equal lists.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct ColumnSet(Vec<u64>);

impl ColumnSet {
    pub fn new() -> ColumnSet {
        ColumnSet::default()
    }

    pub fn insert(&mut self, column: ColumnId) {
        let (word, bit) = (column.0 as usize / BITS, column.0 as usize % BITS);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << bit;
    }

    pub fn remove(&mut self, column: ColumnId) {
        let (word, bit) = (column.0 as usize / BITS, column.0 as usize % BITS);
        if let Some(word) = self.0.get_mut(word) {
            *word &= !(1 << bit);
        }
        self.trim();
    }

    pub fn contains(&self, column: ColumnId) -> bool {
        let (word, bit) = (column.0 as usize / BITS, column.0 as usize % BITS);
        self.0.get(word).is_some_and(|word| word & (1 << bit) != 0)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn union_with(&mut self, other: &ColumnSet) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    pub fn union(mut self, other: &ColumnSet) -> ColumnSet {
        self.union_with(other);
        self
    }

    pub fn intersection(mut self, other: &ColumnSet) -> ColumnSet {
        self.0.truncate(other.0.len());
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= other;
        }
        self.trim();
        self
    }

    pub fn difference(mut self, other: &ColumnSet) -> ColumnSet {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
        self.trim();
        self
    }

    pub fn is_subset(&self, other: &ColumnSet) -> bool {
        let others = other.0.iter().chain(std::iter::repeat(&0));
        self.0
            .iter()
            .zip(others)
            .all(|(own, other)| own & !other == 0)
    }

    pub fn intersects(&self, other: &ColumnSet) -> bool {
        self.0
            .iter()
            .zip(&other.0)
            .any(|(own, other)| own & other != 0)
    }

    /// The columns in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = ColumnId> + '_ {
        self.0.iter().enumerate().flat_map(|(at, word)| {
            (0..BITS)
                .filter(move |bit| word & (1 << bit) != 0)
                .map(move |bit| ColumnId((at * BITS + bit) as u32))
        })
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
}

impl FromIterator<ColumnId> for ColumnSet {
    fn from_iter<T: IntoIterator<Item = ColumnId>>(columns: T) -> ColumnSet {
        let mut set = ColumnSet::new();
        set.extend(columns);
        set
    }
}

impl Extend<ColumnId> for ColumnSet {
    fn extend<T: IntoIterator<Item = ColumnId>>(&mut self, columns: T) {
        for column in columns {
            self.insert(column);
        }
    }
}

impl fmt::Debug for ColumnSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(columns: &[u32]) -> ColumnSet {
        columns.iter().copied().map(ColumnId).collect()
    }

    #[test]
    fn sets_of_many_columns_are_sets() {
        let (small, large) = (set(&[1, 63]), set(&[1, 63, 64, 200]));
        assert!(small.is_subset(&large) && !large.is_subset(&small));
        assert_eq!(large.clone().difference(&small), set(&[64, 200]));
        assert_eq!(large.clone().intersection(&small), small);
        assert_eq!(small.clone().union(&set(&[200])), set(&[1, 63, 200]));
        assert_eq!(
            large.iter().map(|column| column.0).collect::<Vec<_>>(),
            [1, 63, 64, 200]
        );
        assert_eq!(large.len(), 4);
    }

    #[test]
    fn a_set_from_which_all_was_removed_is_empty() {
        let mut removed = set(&[70]);
        removed.remove(ColumnId(70));
        assert!(removed.is_empty());
        assert_eq!(removed, ColumnSet::new());
    }
}
