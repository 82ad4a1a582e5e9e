//! Words of a language with what they mean, found whatever the case of their letters.
//!
//! Each new statement looks up all of its words, most of which are names. A search by halves among a thousand words
//! compares ten of them, and a hash compares one or none:
//!
//! ```text
//!   hash of "from"  -->  | FROM | - | SELECT | - |      the next free place, where another word has the place
//! ```

/// See the module's comment.
pub(crate) struct WordTable<T> {
    words: Vec<(&'static str, T)>,
    /// Numbers of words from 1, each at the first free place from that of its hash on. Zero: there is none.
    places: Vec<u16>,
}

impl<T> WordTable<T> {
    /// Of words that differ, fewer than 16,000 of them.
    pub(crate) fn new(words: impl Iterator<Item = (&'static str, T)>) -> WordTable<T> {
        /// So many places for a word, at least: most names meet no word.
        const PLACES_PER_WORD: usize = 4;
        let words: Vec<_> = words.collect();
        let mut table = WordTable {
            places: vec![0; (PLACES_PER_WORD * words.len()).next_power_of_two()],
            words,
        };
        for (number, (word, _)) in table.words.iter().enumerate() {
            let mut place = table.place_of(word);
            while table.places[place] != 0 {
                place = table.next(place);
            }
            table.places[place] = number as u16 + 1;
        }
        table
    }

    /// What a word means; `None`: it is none of the table's.
    pub(crate) fn find(&self, word: &str) -> Option<&T> {
        let mut place = self.place_of(word);
        while let Some(number) = usize::from(self.places[place]).checked_sub(1) {
            let (known, meaning) = &self.words[number];
            if known.eq_ignore_ascii_case(word) {
                return Some(meaning);
            }
            place = self.next(place);
        }
        None
    }

    fn next(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }

    /// Where the search for a word begins, whatever the case of its letters.
    fn place_of(&self, word: &str) -> usize {
        // FNV-1a, over letters without the bit that tells their case.
        let hash = word.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(byte & !0x20)).wrapping_mul(0x0100_0193)
        });
        (hash ^ (hash >> 15)) as usize & (self.places.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_any_case_and_others_are_not() {
        let words = ["SELECT", "FROM", "A_B", "A1", "WHERE", "IN"];
        let table = WordTable::new(words.iter().map(|word| (*word, word.len())));
        for word in words {
            assert_eq!(table.find(word), Some(&word.len()));
            assert_eq!(table.find(&word.to_lowercase()), Some(&word.len()));
        }
        // The letters and the underscore that differ in the bit that is left out.
        for other in ["", "SELEC", "select1", "a\u{7f}b", "\u{11}1", "é"] {
            assert_eq!(table.find(other), None, "{other}");
        }
    }
}
