//! Sequences of characters that a collation takes for one letter: `ch`, `dzs`.

/// What sequences of characters have, by their first character. The longest sequence is taken.
#[derive(Debug, Clone)]
pub(crate) struct Sequences<T> {
    /// In the order of the first characters: what follows each, the longest first.
    by_first: Vec<(char, Vec<(String, T)>)>,
    /// A bit for each first character of ASCII.
    ascii: u128,
}

impl<T> Default for Sequences<T> {
    fn default() -> Self {
        Sequences {
            by_first: Vec::new(),
            ascii: 0,
        }
    }
}

impl<T> Sequences<T> {
    pub(crate) fn insert(&mut self, first: char, rest: &str, value: T) {
        if first.is_ascii() {
            self.ascii |= 1 << u32::from(first);
        }
        let place = self.by_first.binary_search_by_key(&first, |known| known.0);
        let place = place.unwrap_or_else(|place| {
            self.by_first.insert(place, (first, Vec::new()));
            place
        });
        let sequences = &mut self.by_first[place].1;
        sequences.push((rest.to_string(), value));
        sequences.sort_by_key(|(rest, _)| std::cmp::Reverse(rest.len()));
    }

    /// The sequence that a text begins with, given its first character and the rest: the length of what follows the
    /// first character, and what the sequence has.
    #[inline]
    pub(crate) fn at(&self, first: char, rest: &str) -> Option<(usize, &T)> {
        let is_first = match first.is_ascii() {
            true => self.ascii >> u32::from(first) & 1 == 1,
            false => !self.by_first.is_empty(),
        };
        if !is_first {
            return None;
        }
        let place = self.by_first.binary_search_by_key(&first, |known| known.0);
        let mut sequences = self.by_first[place.ok()?].1.iter();
        let (found, value) = sequences.find(|(sequence, _)| rest.starts_with(sequence.as_str()))?;
        Some((found.len(), value))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (char, &str, &T)> {
        self.by_first.iter().flat_map(|(first, sequences)| {
            let sequences = sequences.iter();
            sequences.map(|(rest, value)| (*first, rest.as_str(), value))
        })
    }
}
