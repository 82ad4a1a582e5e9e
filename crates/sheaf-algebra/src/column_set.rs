//! A set of columns, as bits: rules ask for unions and subsets all the time.
//!
//! The columns of a table or a subquery have neighbouring numbers, so a set has words from its first column to its last
//! one only. Of a thousand subqueries each has sets of its own, and with words from column 0 on they would be memory in
//! the square of their number.

use std::fmt;

use smallvec::SmallVec;

use crate::column::ColumnId;

const BITS: usize = u64::BITS as usize;

/// A set of columns. Neither the first word nor the last one is 0, so equal sets have equal words.
#[derive(Default, PartialEq, Eq, Hash)]
pub struct ColumnSet {
    /// The place of the first word; 0 if there is none.
    first: usize,
    /// The columns of a few tables are two words, and a plan has hundreds of sets: these need no memory of their own.
    words: SmallVec<[u64; 2]>,
}

impl Clone for ColumnSet {
    fn clone(&self) -> ColumnSet {
        ColumnSet {
            first: self.first,
            // Copies words, where the derived one goes through them.
            words: SmallVec::from_slice(&self.words),
        }
    }
}

impl ColumnSet {
    pub fn new() -> ColumnSet {
        ColumnSet::default()
    }

    /// The word at this place.
    fn word(&self, place: usize) -> u64 {
        let at = place.checked_sub(self.first);
        at.and_then(|at| self.words.get(at)).copied().unwrap_or(0)
    }

    /// Behind the last word.
    fn end(&self) -> usize {
        self.first + self.words.len()
    }

    /// Makes room for words from `first` to before `end`.
    fn widen(&mut self, first: usize, end: usize) {
        if self.words.is_empty() {
            self.first = first;
        }
        if first < self.first {
            let missing = self.first - first;
            self.words.insert_many(0, std::iter::repeat_n(0, missing));
            self.first = first;
        }
        if self.end() < end {
            let length = end - self.first;
            self.words.reserve_exact(length - self.words.len());
            self.words.resize(length, 0);
        }
    }

    pub fn insert(&mut self, column: ColumnId) {
        let (place, bit) = (column.0 as usize / BITS, column.0 as usize % BITS);
        self.add_word(place, 1 << bit);
    }

    /// Adds the columns of the word at this place, of which there are some.
    fn add_word(&mut self, place: usize, word: u64) {
        if self.words.is_empty() {
            self.first = place;
            self.words.push(word);
            return;
        }
        let at = place.checked_sub(self.first);
        if let Some(known) = at.and_then(|at| self.words.get_mut(at)) {
            *known |= word;
            return;
        }
        self.widen(place, place + 1);
        self.words[place - self.first] |= word;
    }

    pub fn remove(&mut self, column: ColumnId) {
        let (place, bit) = (column.0 as usize / BITS, column.0 as usize % BITS);
        let at = place.checked_sub(self.first);
        if let Some(word) = at.and_then(|at| self.words.get_mut(at)) {
            *word &= !(1 << bit);
        }
        self.trim();
    }

    pub fn contains(&self, column: ColumnId) -> bool {
        let (place, bit) = (column.0 as usize / BITS, column.0 as usize % BITS);
        self.word(place) & (1 << bit) != 0
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub fn len(&self) -> usize {
        let counts = self.words.iter().map(|word| word.count_ones() as usize);
        counts.sum()
    }

    pub fn union_with(&mut self, other: &ColumnSet) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = other.clone();
            return;
        }
        self.widen(other.first, other.end());
        let shift = other.first - self.first;
        let words = self.words[shift..].iter_mut();
        for (word, other) in words.zip(&other.words) {
            *word |= other;
        }
    }

    pub fn union(mut self, other: &ColumnSet) -> ColumnSet {
        self.union_with(other);
        self
    }

    pub fn intersection(mut self, other: &ColumnSet) -> ColumnSet {
        for (at, word) in self.words.iter_mut().enumerate() {
            *word &= other.word(self.first + at);
        }
        self.trim();
        self
    }

    pub fn difference(mut self, other: &ColumnSet) -> ColumnSet {
        for (at, word) in self.words.iter_mut().enumerate() {
            *word &= !other.word(self.first + at);
        }
        self.trim();
        self
    }

    /// Each word with that of another set.
    fn pairs(&self, other: &ColumnSet) -> impl Iterator<Item = (u64, u64)> {
        let words = self.words.iter().enumerate();
        words.map(|(at, word)| (*word, other.word(self.first + at)))
    }

    pub fn is_subset(&self, other: &ColumnSet) -> bool {
        self.pairs(other).all(|(own, other)| own & !other == 0)
    }

    pub fn intersects(&self, other: &ColumnSet) -> bool {
        self.pairs(other).any(|(own, other)| own & other != 0)
    }

    /// The columns in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = ColumnId> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let first = (self.first + at) * BITS;
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros();
                // Without its last bit; none is left of 0.
                rest &= rest.checked_sub(1)?;
                Some(ColumnId(first as u32 + bit))
            })
        })
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
        let empty = self.words.iter().take_while(|word| **word == 0).count();
        if empty > 0 {
            self.words.drain(..empty);
        }
        self.first = match self.words.is_empty() {
            true => 0,
            false => self.first + empty,
        };
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
        // Nearly always they are neighbours, and lie in one word.
        let (mut place, mut word) = (0, 0);
        for column in columns {
            let (next, bit) = (column.0 as usize / BITS, column.0 as usize % BITS);
            if next != place && word != 0 {
                self.add_word(place, word);
                word = 0;
            }
            place = next;
            word |= 1 << bit;
        }
        if word != 0 {
            self.add_word(place, word);
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
    fn sets_far_apart_are_as_their_members_say() {
        // Every pair of sets of some columns in four words, by what sets of the standard library say.
        let columns = [0, 63, 64, 130, 255];
        let sets: Vec<Vec<u32>> = (0..1 << columns.len())
            .map(|mask: u32| {
                let members = columns.iter().enumerate();
                let members = members.filter(|(at, _)| mask & (1 << at) != 0);
                members.map(|(_, column)| *column).collect()
            })
            .collect();
        for one in &sets {
            for other in &sets {
                let kept = |keep: bool| -> Vec<u32> {
                    let members = one.iter().copied();
                    members.filter(|id| other.contains(id) == keep).collect()
                };
                let all: Vec<u32> = one.iter().chain(other).copied().collect();
                let (first, second) = (set(one), set(other));
                assert_eq!(first.clone().union(&second), set(&all));
                assert_eq!(first.clone().intersection(&second), set(&kept(true)));
                assert_eq!(first.clone().difference(&second), set(&kept(false)));
                assert_eq!(first.is_subset(&second), kept(false).is_empty());
                assert_eq!(first.intersects(&second), !kept(true).is_empty());
                assert_eq!(first.len(), one.len());
                let mut without = first.clone();
                other.iter().for_each(|id| without.remove(ColumnId(*id)));
                assert_eq!(without, set(&kept(false)));
            }
        }
    }

    #[test]
    fn a_set_from_which_all_was_removed_is_empty() {
        let mut removed = set(&[70]);
        removed.remove(ColumnId(70));
        assert!(removed.is_empty());
        assert_eq!(removed, ColumnSet::new());
    }
}
