//! Secondary and tertiary weights of the Unicode Collation Algorithm in version 9.0.0: accents, and cases.
//!
//! `utf8mb4_0900_as_ci` compares accents where the primary weights of two texts are equal, `utf8mb4_0900_as_cs` cases
//! behind them. What is behind the primary weights in a key is
//!
//! ```text
//!   01 | code of each secondary weight | 01 | code of each tertiary weight
//! ```
//!
//! All codes are above 0x01, so a text is in front of those that go on. The least weight of a level is that of plain
//! letters, and nearly all weights are it. At the end of a level it is left out, and so is the mark in front of a level
//! that has nothing else: the key of a text in small letters is its primary weights. The number of weights that are
//! left out follows from the primary weights, so the order stays.
//!
//! The table is made from Unicode's default table (`allkeys.txt`), as MySQL uses it: contractions are left out, and
//! U+FDFA has eight weights. Syllables of Hangul are their letters, those from U+D700 on, too, which MySQL takes for
//! other cases of them. The table says the characters whose weights are not one least weight, ascending:
//!
//! ```text
//!   characters skipped, a LEB128 varint | number of weights | for each: secondary code, tertiary code
//! ```

use std::sync::OnceLock;

/// In front of each level.
const MARK: u8 = 0x01;
/// The code of the least weight of a level.
const LEAST: u8 = 0x02;
/// Syllables of Hangul have the weights of two letters, or three.
const HANGUL: std::ops::RangeInclusive<u32> = 0xAC00..=0xD7A3;
/// Each of so many syllables in a row but the first has a third letter.
const HANGUL_ENDS: u32 = 28;
/// Characters between two questions whether to go on.
const STRETCH: usize = 16 << 10;

/// Codes of a secondary and a tertiary weight.
type Codes = (u8, u8);

/// Which levels count, besides the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Levels {
    Accents,
    AccentsAndCases,
}

/// The table.
struct Table {
    /// For each block of 256 characters: where the codes of each begin, and how many there are.
    blocks: Vec<Option<Box<Block>>>,
    codes: Vec<Codes>,
}

type Block = [(u32, u8); 256];

/// The number of codes of a character that is not in the table.
const PLAIN: u8 = u8::MAX;

impl Table {
    fn get() -> &'static Table {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| Table::read(include_bytes!("uca_900_levels.bin")))
    }

    fn read(bytes: &[u8]) -> Table {
        let mut blocks: Vec<Option<Box<Block>>> = Vec::new();
        let mut codes = Vec::new();
        let mut rest = bytes.iter().copied();
        let mut character = 0usize;
        while let Some(first) = rest.next() {
            let (mut skipped, mut shift, mut byte) = (usize::from(first & 0x7F), 7, first);
            while byte >= 0x80 {
                byte = rest.next().unwrap_or_default();
                skipped |= usize::from(byte & 0x7F) << shift;
                shift += 7;
            }
            character += skipped;
            let block = character / 256;
            if blocks.len() <= block {
                blocks.resize_with(block + 1, || None);
            }
            let block = blocks[block].get_or_insert_with(|| Box::new([(0, PLAIN); 256]));
            let count = rest.next().unwrap_or_default();
            block[character % 256] = (codes.len() as u32, count);
            for _ in 0..count {
                let secondary = rest.next().unwrap_or(LEAST);
                codes.push((secondary, rest.next().unwrap_or(LEAST)));
            }
            character += 1;
        }
        Table { blocks, codes }
    }

    fn each(&self, character: char) -> &[Codes] {
        const LEASTS: [Codes; 3] = [(LEAST, LEAST); 3];
        let code = character as u32;
        if let Some(Some(block)) = self.blocks.get(code as usize / 256)
            && let (start, count) = block[code as usize % 256]
            && count != PLAIN
        {
            return &self.codes[start as usize..][..usize::from(count)];
        }
        match HANGUL.contains(&code) {
            true if (code - HANGUL.start()).is_multiple_of(HANGUL_ENDS) => &LEASTS[..2],
            true => &LEASTS,
            false => &LEASTS[..1],
        }
    }

    /// Appends the codes of a level. `None`: `is_over` has ended it.
    fn level_into(
        &self,
        text: &str,
        code_of: impl Fn(&Codes) -> u8,
        key: &mut Vec<u8>,
        is_over: &dyn Fn() -> bool,
    ) -> Option<()> {
        let mut leasts = 0;
        for (count, character) in text.chars().enumerate() {
            if count % STRETCH == STRETCH - 1 && is_over() {
                return None;
            }
            for code in self.each(character).iter().map(&code_of) {
                if code == LEAST {
                    leasts += 1;
                    continue;
                }
                key.resize(key.len() + leasts, LEAST);
                leasts = 0;
                key.push(code);
            }
        }
        Some(())
    }
}

impl Levels {
    /// Appends what stands behind the primary weights in the key of a text. `None`: `is_over` has ended it.
    pub(crate) fn key_into(
        self,
        text: &str,
        key: &mut Vec<u8>,
        is_over: &dyn Fn() -> bool,
    ) -> Option<()> {
        let table = Table::get();
        let primary = key.len();
        key.push(MARK);
        table.level_into(text, |codes| codes.0, key, is_over)?;
        if self == Levels::AccentsAndCases {
            key.push(MARK);
            table.level_into(text, |codes| codes.1, key, is_over)?;
        }
        // What is left is marks of levels that have nothing else.
        while key.len() > primary && key.last() == Some(&MARK) {
            key.pop();
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_to_its_end() {
        let table = Table::get();
        assert_eq!(table.each('a'), [(LEAST, LEAST)]);
        assert_eq!(table.each('A'), [(LEAST, 0x08)]);
        assert_eq!(table.each('é'), [(LEAST, LEAST), (0x24 - 0x20 + 2, LEAST)]);
        assert_eq!(table.each('ß').len(), 3);
        assert_eq!(table.each('\u{1}'), []);
        assert_eq!(table.each('가').len(), 2);
        assert_eq!(table.each('각').len(), 3);
        assert!(
            table
                .codes
                .iter()
                .all(|(accent, case)| (*accent).min(*case) >= LEAST)
        );
    }
}
