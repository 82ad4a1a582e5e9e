//! Primary weights of the Unicode Collation Algorithm in versions 4.0.0, 5.2.0 and 9.0.0, and the sort keys of the
//! collations `utf8mb4_unicode_ci` and `utf8mb4_unicode_520_ci` that are made of the first two. Those of
//! `utf8mb4_0900_ai_ci` are made of the third (`text/unicode_primary.rs`).
//!
//! Libraries have the newest weights, of which other letters are equal: in 4.0.0 `æ`, `ø` and `ł` are letters of their
//! own, in 5.2.0 they are `ae`, `o` and `l`; in 9.0.0 `й` is not `и`, in ICU it is. So the weights are kept as tables,
//! made from Unicode's default table of each version (`allkeys.txt`), as MySQL uses it: contractions are left out, of
//! 4.0.0 all characters beyond the Basic Multilingual Plane are equal, and in 9.0.0 U+FDFA has eight weights.
//!
//! A table says the characters that have no implicit weight, ascending. Numbers are LEB128 varints:
//!
//! ```text
//!   characters skipped | number of weights | each weight less the one before it, zigzag
//! ```
//!
//! The collations are PAD SPACE. A key is built as those of `utf8mb4_bin` are, so that it has the same ends and
//! prefixes. The weight of a space is 0x20. Weights below it are one byte and follow [`PAD_BELOW`]; weights above it
//! are two bytes from 0x21 on, of which none is 0x00 or 0x01. Characters without weights (controls, accents) leave no
//! trace.

mod levels;

use std::sync::OnceLock;

use crate::text::sequences::Sequences;
use crate::text::{PAD_BELOW, PAD_END};

pub(crate) use levels::{LevelTable, Levels};

/// Which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V400,
    V520,
    V900,
}

/// Weights up to here are those of controls and spaces.
const FIRST_WEIGHT: u16 = 0x0201;
/// The first two-byte code's first byte.
const FIRST_LONG: u8 = b' ' + 1;
/// Values of the second byte of a code: 0x02 to 0xFF.
const SECOND_BYTES: u16 = 254;
/// Between the weights of tables and those of the second half of an implicit one lies nothing.
const IMPLICIT_SECOND: u16 = 0x8000;
/// Where the codes of implicit weights begin.
const IMPLICIT_CODE: u16 = 0x5000;

/// The weights of one version, or of a collation of a language that is made of them (see `text/tailoring.rs`).
#[derive(Clone)]
pub(crate) struct Weights {
    /// For each block of 256 characters: where the weights of each begin, and the end. `None`: all are implicit.
    blocks: Vec<Option<Box<Block>>>,
    weights: Vec<u16>,
    /// That of a space.
    space: u16,
    /// Characters beyond the Basic Multilingual Plane have this weight; `None`: their own.
    beyond: Option<u16>,
    /// The table tells weights of the letters of Hangul, and of Tangut and newer ideographs, as version 9.0.0 does.
    is_v900: bool,
    /// Sequences of characters that have weights of their own.
    sequences: Sequences<Vec<u16>>,
}

#[derive(Clone)]
struct Block {
    /// Position in `weights` and number; [`IMPLICIT`] instead of a number: not in the table.
    entries: [(u32, u8); 256],
}

/// The number of weights of a character that is not in the table.
const IMPLICIT: u8 = u8::MAX;

/// First halves of implicit weights.
const TANGUT: u16 = 0xFB00;
const IDEOGRAPHS: u16 = 0xFB40;
const EXTENDED_IDEOGRAPHS: u16 = 0xFB80;
const OTHERS: u16 = 0xFBC0;

impl Weights {
    pub(crate) fn of(version: Version) -> &'static Weights {
        static V400: OnceLock<Weights> = OnceLock::new();
        static V520: OnceLock<Weights> = OnceLock::new();
        static V900: OnceLock<Weights> = OnceLock::new();
        match version {
            Version::V400 => V400.get_or_init(|| {
                // Behind all others.
                Weights::read(include_bytes!("uca_400.bin"), Some(0xFFFD))
            }),
            Version::V520 => {
                V520.get_or_init(|| Weights::read(include_bytes!("uca_520.bin"), None))
            }
            Version::V900 => V900.get_or_init(|| {
                let table = Weights::read(include_bytes!("uca_900.bin"), None);
                Weights {
                    is_v900: true,
                    ..table
                }
            }),
        }
    }

    fn read(bytes: &[u8], beyond: Option<u16>) -> Weights {
        let mut rest = bytes;
        let mut number = || {
            let mut value = 0u32;
            let mut shift = 0;
            while let Some((byte, behind)) = rest.split_first() {
                rest = behind;
                value |= u32::from(byte & 0x7F) << shift;
                shift += 7;
                if *byte < 0x80 {
                    return Some(value);
                }
            }
            None
        };
        let mut blocks: Vec<Option<Box<Block>>> = Vec::new();
        let mut weights = Vec::new();
        let (mut character, mut weight) = (0u32, 0i32);
        while let (Some(skipped), Some(count)) = (number(), number()) {
            character += skipped;
            let (block, at) = (character as usize / 256, character as usize % 256);
            if blocks.len() <= block {
                blocks.resize_with(block + 1, || None);
            }
            let block = blocks[block].get_or_insert_with(|| {
                Box::new(Block {
                    entries: [(0, IMPLICIT); 256],
                })
            });
            block.entries[at] = (weights.len() as u32, count as u8);
            for _ in 0..count {
                let difference = number().unwrap_or_default();
                weight += (difference >> 1) as i32 ^ -((difference & 1) as i32);
                weights.push(weight as u16);
            }
            character += 1;
        }
        let mut table = Weights {
            blocks,
            weights,
            space: 0,
            beyond,
            is_v900: false,
            sequences: Sequences::default(),
        };
        table.space = table.each(' ').0[0];
        table
    }

    /// These weights with some moved, each from a range of them, and others for some characters and sequences.
    pub(crate) fn tailored<'t>(
        &self,
        moves: &[(u16, u16, i16)],
        records: impl Iterator<Item = (&'t str, &'t [u16])>,
    ) -> Weights {
        let mut table = self.clone();
        for weight in &mut table.weights {
            let mut ranges = moves.iter();
            if let Some((.., by)) = ranges.find(|(from, to, _)| (from..=to).contains(&&*weight)) {
                *weight = weight.wrapping_add_signed(*by);
            }
        }
        for (text, weights) in records {
            let mut characters = text.chars();
            let Some(first) = characters.next() else {
                continue;
            };
            if !characters.as_str().is_empty() {
                let rest = characters.as_str();
                table.sequences.insert(first, rest, weights.to_vec());
                continue;
            }
            let (block, at) = (first as usize / 256, first as usize % 256);
            if table.blocks.len() <= block {
                table.blocks.resize_with(block + 1, || None);
            }
            let block = table.blocks[block].get_or_insert_with(|| {
                Box::new(Block {
                    entries: [(0, IMPLICIT); 256],
                })
            });
            block.entries[at] = (table.weights.len() as u32, weights.len() as u8);
            table.weights.extend_from_slice(weights);
        }
        table
    }

    pub(crate) fn sequences(&self) -> &Sequences<Vec<u16>> {
        &self.sequences
    }

    /// Appends the weights of a text, its sequences regarded.
    pub(crate) fn push_weights_of_text(&self, text: &str, to: &mut Vec<u16>) {
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match self.sequences.at(character, characters.as_str()) {
                Some((length, weights)) => {
                    characters = characters.as_str()[length..].chars();
                    to.extend_from_slice(weights);
                }
                None => self.push_weights(character, to),
            }
        }
    }

    /// Appends the weights of a character. A syllable of Hangul has those of its letters.
    pub(crate) fn push_weights(&self, character: char, to: &mut Vec<u16>) {
        const SYLLABLES: std::ops::RangeInclusive<u32> = 0xAC00..=0xD7A3;
        let code = character as u32;
        if self.is_v900 && SYLLABLES.contains(&code) {
            let at = code - SYLLABLES.start();
            let letters = [
                Some(0x1100 + at / 588),
                Some(0x1161 + at % 588 / 28),
                (!at.is_multiple_of(28)).then_some(0x11A7 + at % 28),
            ];
            let letters = letters.into_iter().flatten().filter_map(char::from_u32);
            letters.for_each(|letter| to.extend_from_slice(self.each(letter).0));
            return;
        }
        let (listed, implicit) = self.each(character);
        to.extend_from_slice(listed);
        to.extend(implicit.into_iter().filter(|weight| *weight != 0));
    }

    /// The weights of a character: those of the table, or the two of an implicit one.
    fn each(&self, character: char) -> (&[u16], [u16; 2]) {
        const NONE: [u16; 2] = [0, 0];
        let code = character as u32;
        if let (0x1_0000.., Some(weight)) = (code, &self.beyond) {
            return (std::slice::from_ref(weight), NONE);
        }
        let block = self.blocks.get(code as usize / 256);
        if let Some(Some(block)) = block {
            let (start, count) = block.entries[code as usize % 256];
            if count != IMPLICIT {
                let start = start as usize;
                return (&self.weights[start..start + usize::from(count)], NONE);
            }
        }
        if let (0x17000..=0x18AFF, true) = (code, self.is_v900) {
            return (&[], [TANGUT, (code - 0x17000) as u16 | IMPLICIT_SECOND]);
        }
        let base = match (code, self.is_v900) {
            (0x3400..=0x4DB5, _) => EXTENDED_IDEOGRAPHS,
            (0x4E00..=0x9FA5, _) | (0x9FA6..=0x9FD5, true) => IDEOGRAPHS,
            // Ideographs among those that are there for compatibility.
            (
                0xFA0E
                | 0xFA0F
                | 0xFA11
                | 0xFA13
                | 0xFA14
                | 0xFA1F
                | 0xFA21
                | 0xFA23
                | 0xFA24
                | 0xFA27..=0xFA29,
                true,
            ) => IDEOGRAPHS,
            (0x20000..=0x2A6D6 | 0x2A700..=0x2B734 | 0x2B740..=0x2B81D, true)
            | (0x2B820..=0x2CEA1, true) => EXTENDED_IDEOGRAPHS,
            _ => OTHERS,
        };
        let first = base + (code >> 15) as u16;
        (&[], [first, (code & 0x7FFF) as u16 | IMPLICIT_SECOND])
    }

    /// Appends the key of the first `limit` weights of a text.
    pub(crate) fn key_into(&self, text: &str, limit: usize, key: &mut Vec<u8>) -> usize {
        let (mut spaces, mut count) = (0, 0);
        key.reserve(2 * text.len() + 1);
        let mut characters = text.chars();
        'text: while let Some(character) = characters.next() {
            let (listed, implicit) = match self.sequences.at(character, characters.as_str()) {
                Some((length, weights)) => {
                    characters = characters.as_str()[length..].chars();
                    (weights.as_slice(), [0, 0])
                }
                None => self.each(character),
            };
            let implicit = implicit.iter().filter(|weight| **weight != 0);
            for weight in listed.iter().chain(implicit) {
                if count == limit {
                    break 'text;
                }
                count += 1;
                if *weight == self.space {
                    spaces += 1;
                    continue;
                }
                if *weight < self.space {
                    key.push(PAD_BELOW);
                }
                key.resize(key.len() + spaces, b' ');
                spaces = 0;
                self.push(*weight, key);
            }
        }
        key.push(PAD_END);
        count
    }

    /// Appends the code of a weight other than that of a space.
    fn push(&self, weight: u16, key: &mut Vec<u8>) {
        if weight < self.space {
            key.push((weight - FIRST_WEIGHT) as u8 + 2);
            return;
        }
        let number = match weight.checked_sub(IMPLICIT_SECOND) {
            Some(number) => number + IMPLICIT_CODE,
            None => weight - self.space,
        };
        key.push(FIRST_LONG + (number / SECOND_BYTES) as u8);
        key.push(2 + (number % SECOND_BYTES) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_keep_the_order_of_weights_and_hold_no_end() {
        for version in [Version::V400, Version::V520] {
            let table = Weights::of(version);
            let largest = table
                .weights
                .iter()
                .filter(|weight| **weight < IMPLICIT_SECOND);
            assert!(largest.max() < Some(&IMPLICIT_CODE.saturating_add(table.space)));
            let mut before = Vec::new();
            for weight in (FIRST_WEIGHT..0x5000).chain(IMPLICIT_SECOND..=u16::MAX) {
                if weight == table.space {
                    before = vec![b' '];
                    continue;
                }
                let mut code = Vec::new();
                table.push(weight, &mut code);
                assert!(before < code, "{weight:04X}");
                assert!(code.iter().all(|byte| *byte > PAD_END), "{weight:04X}");
                before = code;
            }
        }
    }
}
