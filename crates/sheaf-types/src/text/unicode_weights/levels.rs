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
//! A collation of a language has codes of its own for some characters (see `text/tailoring.rs`). Its extra weights have
//! no accents, so a level can have fewer weights than there are primary ones, or more.
//!
//! The table is made from Unicode's default table (`allkeys.txt`), as MySQL uses it: contractions are left out, and
//! U+FDFA has eight weights. Syllables of Hangul are their letters, those from U+D700 on, too, which MySQL takes for
//! other cases of them. The table says the characters whose weights are not one least weight, ascending:
//!
//! ```text
//!   characters skipped, a LEB128 varint | number of weights | for each: secondary code, tertiary code
//! ```

use std::sync::OnceLock;

use crate::text::sequences::Sequences;

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

/// Codes of a secondary and a tertiary weight; 0: there is none.
type Codes = (u8, u8);
/// The least secondary weight.
const LEAST_ACCENT: u16 = 0x20;
/// Tertiary weights of capital letters and their like. Where these come first, the codes of all others are greater.
const CAPITALS: [u8; 9] = [0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0E, 0x11, 0x12, 0x1D];
const BEHIND_CAPITALS: u8 = 0x60;

/// Which levels count, besides the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Levels {
    Accents,
    AccentsAndCases,
}

/// The table.
#[derive(Clone)]
pub(crate) struct LevelTable {
    /// For each block of 256 characters: where the codes of each begin, and how many there are.
    blocks: Vec<Option<Box<Block>>>,
    codes: Vec<Codes>,
    /// The codes of characters that are not in the table.
    plain: [Codes; 3],
    sequences: Sequences<Vec<Codes>>,
}

type Block = [(u32, u8); 256];

/// The number of codes of a character that is not in the table.
const PLAIN: u8 = u8::MAX;

impl LevelTable {
    pub(crate) fn get() -> &'static LevelTable {
        static TABLE: OnceLock<LevelTable> = OnceLock::new();
        TABLE.get_or_init(|| LevelTable::read(include_bytes!("uca_900_levels.bin")))
    }

    fn read(bytes: &[u8]) -> LevelTable {
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
        LevelTable {
            blocks,
            codes,
            plain: [(LEAST, LEAST); 3],
            sequences: Sequences::default(),
        }
    }

    /// The code of a secondary weight.
    pub(crate) fn secondary_code(weight: u16) -> u8 {
        (weight - LEAST_ACCENT) as u8 + LEAST
    }

    /// The code of a tertiary weight. Those of tables where capital letters come first begin with 1 to 3.
    pub(crate) fn tertiary_code(weight: u16) -> u8 {
        let group = (weight >> 8).saturating_sub(1) as u8;
        weight as u8 + group * (BEHIND_CAPITALS / 2)
    }

    /// This table with other codes for some characters and sequences.
    pub(crate) fn tailored<'t>(
        records: impl Iterator<Item = (&'t str, &'t [Codes])>,
        has_capitals_first: bool,
    ) -> LevelTable {
        let mut table = LevelTable::get().clone();
        if has_capitals_first {
            for (_, case) in table.codes.iter_mut().chain(&mut table.plain) {
                if !CAPITALS.contains(case) {
                    *case += BEHIND_CAPITALS;
                }
            }
        }
        for (text, codes) in records {
            let mut characters = text.chars();
            let Some(first) = characters.next() else {
                continue;
            };
            if !characters.as_str().is_empty() {
                let rest = characters.as_str();
                table.sequences.insert(first, rest, codes.to_vec());
                continue;
            }
            let (block, at) = (first as usize / 256, first as usize % 256);
            if table.blocks.len() <= block {
                table.blocks.resize_with(block + 1, || None);
            }
            let block = table.blocks[block].get_or_insert_with(|| Box::new([(0, PLAIN); 256]));
            block[at] = (table.codes.len() as u32, codes.len() as u8);
            table.codes.extend_from_slice(codes);
        }
        table
    }

    fn each(&self, character: char) -> &[Codes] {
        let code = character as u32;
        if let Some(Some(block)) = self.blocks.get(code as usize / 256)
            && let (start, count) = block[code as usize % 256]
            && count != PLAIN
        {
            return &self.codes[start as usize..][..usize::from(count)];
        }
        match HANGUL.contains(&code) {
            true if (code - HANGUL.start()).is_multiple_of(HANGUL_ENDS) => &self.plain[..2],
            true => &self.plain,
            false => &self.plain[..1],
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
        let (mut characters, mut count) = (text.chars(), 0usize);
        while let Some(character) = characters.next() {
            count += 1;
            if count.is_multiple_of(STRETCH) && is_over() {
                return None;
            }
            let codes = match self.sequences.at(character, characters.as_str()) {
                Some((length, codes)) => {
                    characters = characters.as_str()[length..].chars();
                    codes.as_slice()
                }
                None => self.each(character),
            };
            for code in codes.iter().map(&code_of).filter(|code| *code != 0) {
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
        table: &LevelTable,
        text: &str,
        key: &mut Vec<u8>,
        is_over: &dyn Fn() -> bool,
    ) -> Option<()> {
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
        let table = LevelTable::get();
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
