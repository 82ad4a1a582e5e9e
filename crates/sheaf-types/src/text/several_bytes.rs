//! Character sets of one to four bytes a character: those of Chinese, Japanese and Korean.
//!
//! All of them are ASCII below 0x80. A byte from 0x80 on begins a character of two bytes, or three in the EUC sets of
//! Japanese, or four in gb18030; sjis and cp932 have half-width letters of one byte, too. The second byte may be that
//! of a letter of ASCII, or of a backslash: what looks for quotes and backslashes in such a text looks at
//! [`SeveralBytes::outline`].
//!
//! The characters are those of MySQL 9.7, which differ in places from what libraries have. They are a table of each
//! set, in the order of [`NAMES`], as what differs from another one or from nothing:
//!
//! ```text
//!   place of the other set, 255: none | bytes that follow, u32 |
//!       codes skipped | number of codes | for each: its character less the one before it, zigzag; 0: none
//! ```
//!
//! A code is the bytes as a number, and numbers are LEB128 varints. Characters of four bytes are computed.
//!
//! Some characters have several codes, most of them in cp932 and eucjpms. A text has only one of them, which
//! [`SeveralBytes::push`] writes; what keeps bytes refuses the others ([`SeveralBytes::decode_written`]). A code of
//! several bytes that MySQL makes a character of ASCII, as 0x815F of sjis is a backslash, is its full-width form here,
//! so that it stays another character than the one of one byte.

use std::sync::OnceLock;

use super::eight_bit::REPLACEMENT;

const NAMES: [&str; 9] = [
    "big5", "cp932", "euckr", "gb18030", "ujis", "eucjpms", "gbk", "gb2312", "sjis",
];
/// Stands in a table for no other set.
const NO_BASE: u8 = u8::MAX;
/// Half-width letters of sjis and cp932: their bytes, and the first of their characters.
pub(super) const HALF_WIDTH: std::ops::RangeInclusive<u8> = 0xA1..=0xDF;
const FIRST_HALF_WIDTH: u32 = 0xFF61;
/// The first byte of characters of three bytes in the EUC sets of Japanese.
const THREE_BYTES: u8 = 0x8F;
/// Codes of cp932 whose characters have other codes, too, by which they are written.
const LAST_CHOICES: std::ops::RangeInclusive<u32> = 0xED00..=0xEEFF;
/// The number of the four bytes of the first character beyond the Basic Multilingual Plane in gb18030.
const FIRST_BEYOND: u32 = 189_000;
/// What gb18030 has in the place of U+1E3F among its characters of four bytes.
const SWAPPED: (u32, u32) = (0x1E3F, 0xE7C7);

/// A character set of several bytes a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SeveralBytes {
    /// Its place in [`NAMES`].
    place: u8,
}

/// The characters of a set, both ways.
#[derive(Clone, Default)]
struct Table {
    /// In the order of the codes.
    characters: Vec<(u32, char)>,
    /// In the order of the characters.
    codes: Vec<(char, u32)>,
    /// In gb18030: the characters of four bytes in the Basic Multilingual Plane, in the order of their codes.
    of_four_bytes: Vec<char>,
}

impl SeveralBytes {
    /// The character set of that name, in lower case.
    pub fn of_name(name: &str) -> Option<SeveralBytes> {
        let place = NAMES.iter().position(|known| *known == name)?;
        let place = u8::try_from(place).ok()?;
        Some(SeveralBytes { place })
    }

    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        NAMES[usize::from(self.place)]
    }

    /// The most bytes of a character.
    pub fn character_bytes(self) -> u32 {
        match self.name() {
            "gb18030" => 4,
            "ujis" | "eucjpms" => 3,
            _ => 2,
        }
    }

    /// The text of bytes; `None` if they are none.
    pub fn decode(self, bytes: &[u8]) -> Option<String> {
        let mut text = String::with_capacity(bytes.len() * 3 / 2);
        for (character, _) in self.characters(bytes) {
            text.push(character?);
        }
        Some(text)
    }

    /// As [`decode`](Self::decode), but `None`, too, if the text would be written with other bytes.
    pub fn decode_written(self, bytes: &[u8]) -> Option<String> {
        let text = self.decode(bytes)?;
        (self.written_up_to(bytes) == bytes.len()).then_some(text)
    }

    /// How many bytes are in front of the first that are not those of which their character is written.
    pub fn written_up_to(self, bytes: &[u8]) -> usize {
        let (mut at, mut written) = (0, Vec::new());
        for (character, length) in self.characters(bytes) {
            written.clear();
            let is_known = character.is_some_and(|character| self.push(character, &mut written));
            if !is_known || written != bytes[at..at + length] {
                break;
            }
            at += length;
        }
        at
    }

    /// The text of bytes, for those to look at that say something about it: what is no character becomes a question
    /// mark.
    pub fn decode_lossy(self, bytes: &[u8]) -> String {
        let characters = self.characters(bytes);
        characters
            .map(|(character, _)| character.unwrap_or(char::from(REPLACEMENT)))
            .collect()
    }

    /// How many bytes are in front of the first that is of no character.
    pub fn valid_up_to(self, bytes: &[u8]) -> usize {
        let characters = self.characters(bytes);
        let valid = characters.take_while(|(character, _)| character.is_some());
        valid.map(|(_, length)| length).sum()
    }

    /// The bytes with 0x80 in place of all that are of no character of ASCII.
    pub fn outline(self, bytes: &[u8]) -> Vec<u8> {
        let mut outline = bytes.to_vec();
        let mut at = 0;
        for (_, length) in self.characters(bytes) {
            if bytes[at] >= 0x80 {
                outline[at..at + length].fill(0x80);
            }
            at += length;
        }
        outline
    }

    /// Appends the bytes of a character; false if the set does not have it.
    pub fn push(self, character: char, bytes: &mut Vec<u8>) -> bool {
        if character.is_ascii() {
            bytes.push(character as u8);
            return true;
        }
        let table = self.table();
        if let Ok(at) = table.codes.binary_search_by_key(&character, |code| code.0) {
            let code = table.codes[at].1.to_be_bytes();
            let unused = code.iter().take_while(|byte| **byte == 0).count();
            bytes.extend_from_slice(&code[unused..]);
            return true;
        }
        match self.name() {
            "sjis" | "cp932" => {
                let number = u32::from(character).wrapping_sub(FIRST_HALF_WIDTH);
                let byte = number.saturating_add(u32::from(*HALF_WIDTH.start()));
                let byte = u8::try_from(byte).ok();
                let byte = byte.filter(|byte| HALF_WIDTH.contains(byte));
                bytes.extend(byte);
                byte.is_some()
            }
            "gb18030" => {
                let number = match character {
                    '\u{10000}'.. => u32::from(character) - 0x1_0000 + FIRST_BEYOND,
                    _ => {
                        let swapped = match u32::from(character) == SWAPPED.1 {
                            true => char::from_u32(SWAPPED.0).unwrap_or(character),
                            false => character,
                        };
                        match table.of_four_bytes.binary_search(&swapped) {
                            Ok(number) => number as u32,
                            Err(_) => return false,
                        }
                    }
                };
                bytes.extend_from_slice(&[
                    0x81 + (number / 12_600) as u8,
                    0x30 + (number / 1260 % 10) as u8,
                    0x81 + (number / 10 % 126) as u8,
                    0x30 + (number % 10) as u8,
                ]);
                true
            }
            _ => false,
        }
    }

    /// Whether the set has a character.
    pub fn has(self, character: char) -> bool {
        self.push(character, &mut Vec::new())
    }

    /// How many bytes the first character has, or 1 where bytes begin none.
    pub fn first_length(self, bytes: &[u8]) -> usize {
        let first = self.characters(bytes).next();
        first.map_or(1, |(_, length)| length)
    }

    /// Each character and its bytes. Of bytes that begin none there is one.
    fn characters(self, bytes: &[u8]) -> impl Iterator<Item = (Option<char>, usize)> {
        let table = self.table();
        let mut rest = bytes;
        std::iter::from_fn(move || {
            let first = *rest.first()?;
            let (character, length) = match first {
                0..0x80 => (Some(char::from(first)), 1),
                _ => self.character(table, rest),
            };
            rest = &rest[length..];
            Some((character, length))
        })
    }

    /// The first character of bytes that are not of ASCII.
    fn character(self, table: &Table, bytes: &[u8]) -> (Option<char>, usize) {
        let of_code = |length: usize| {
            let code = bytes[..length]
                .iter()
                .fold(0, |code, byte| code << 8 | u32::from(*byte));
            let found = table
                .characters
                .binary_search_by_key(&code, |known| known.0);
            found.ok().map(|at| table.characters[at].1)
        };
        let is_trail = |at: usize, from: u8| bytes.get(at).is_some_and(|byte| *byte >= from);
        match (self.name(), bytes[0]) {
            ("sjis" | "cp932", first) if HALF_WIDTH.contains(&first) => {
                let character = FIRST_HALF_WIDTH + u32::from(first - HALF_WIDTH.start());
                (char::from_u32(character), 1)
            }
            ("ujis" | "eucjpms", THREE_BYTES) if is_trail(1, 0xA1) && is_trail(2, 0xA1) => {
                (of_code(3), 3)
            }
            ("ujis" | "eucjpms" | "gb2312", _) if is_trail(1, 0xA1) => (of_code(2), 2),
            ("ujis" | "eucjpms" | "gb2312", _) => (None, 1),
            ("gb18030", 0x81..=0xFE) if matches!(bytes.get(1), Some(b'0'..=b'9')) => match bytes {
                [a, b, c @ 0x81..=0xFE, d @ b'0'..=b'9', ..] => {
                    let number = u32::from(a - 0x81) * 12_600
                        + u32::from(b - b'0') * 1260
                        + u32::from(c - 0x81) * 10
                        + u32::from(d - b'0');
                    (table.character_of_four_bytes(number), 4)
                }
                _ => (None, 1),
            },
            // A second byte of ASCII that is no part of a character stays one.
            _ if is_trail(1, 0x40) => match of_code(2) {
                Some(character) => (Some(character), 2),
                None if bytes[1] >= 0x80 => (None, 2),
                None => (None, 1),
            },
            _ => (None, 1),
        }
    }

    fn table(self) -> &'static Table {
        static TABLES: OnceLock<Vec<Table>> = OnceLock::new();
        let tables = TABLES.get_or_init(|| read_tables(include_bytes!("several_bytes.bin")));
        &tables[usize::from(self.place)]
    }
}

impl Table {
    fn character_of_four_bytes(&self, number: u32) -> Option<char> {
        if number >= FIRST_BEYOND {
            return char::from_u32(number - FIRST_BEYOND + 0x1_0000);
        }
        let character = *self.of_four_bytes.get(number as usize)?;
        match u32::from(character) == SWAPPED.0 {
            true => char::from_u32(SWAPPED.1),
            false => Some(character),
        }
    }

    /// What `characters` says, the other way, and what it leaves out.
    fn complete(&mut self, name: &str) {
        for (code, character) in &mut self.characters {
            if *code >= 0x80 && matches!(character, '!'..='~') {
                *character = full_width(*character);
            }
        }
        let codes = self.characters.iter().filter(|(_, character)| {
            !character.is_ascii() && *character != char::REPLACEMENT_CHARACTER
        });
        self.codes = codes.map(|(code, character)| (*character, *code)).collect();
        // Of several codes of a character the first is written.
        let is_last_choice = |code: u32| name == "cp932" && LAST_CHOICES.contains(&code);
        self.codes
            .sort_unstable_by_key(|(character, code)| (*character, is_last_choice(*code), *code));
        self.codes.dedup_by_key(|code| code.0);
        if name == "gb18030" {
            let is_of_two = |character: char| {
                let known = self.codes.binary_search_by_key(&character, |code| code.0);
                known.is_ok() && u32::from(character) != SWAPPED.0
            };
            let others = ('\u{80}'..='\u{FFFF}')
                .filter(|character| !is_of_two(*character) && u32::from(*character) != SWAPPED.1);
            self.of_four_bytes = others.collect();
        }
    }
}

/// The full-width form of a character of ASCII.
fn full_width(character: char) -> char {
    char::from_u32(u32::from(character) + 0xFEE0).unwrap_or(character)
}

fn read_tables(bytes: &[u8]) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::with_capacity(NAMES.len());
    let mut rest = bytes;
    while let Some(([base, length @ ..], behind)) = rest.split_first_chunk::<5>() {
        let length = u32::from_le_bytes(*length) as usize;
        let (numbers, behind) = behind.split_at(length.min(behind.len()));
        rest = behind;
        let base = match *base {
            NO_BASE => None,
            place => tables.get(usize::from(place)),
        };
        let base = base.map_or(&[][..], |table| table.characters.as_slice());
        let mut table = Table {
            characters: read_characters(base, numbers),
            ..Table::default()
        };
        table.complete(NAMES.get(tables.len()).copied().unwrap_or_default());
        tables.push(table);
    }
    tables
}

/// The characters of a table, in the order of their codes, given those of the set that it differs from.
fn read_characters(base: &[(u32, char)], numbers: &[u8]) -> Vec<(u32, char)> {
    let mut rest = numbers.iter();
    let mut number = || {
        let (mut value, mut shift) = (0u32, 0);
        loop {
            let byte = *rest.next()?;
            value |= u32::from(byte & 0x7F) << shift;
            shift += 7;
            if byte < 0x80 {
                return Some(value);
            }
        }
    };
    let mut characters = Vec::new();
    let mut base = base.iter().copied().peekable();
    let (mut code, mut character) = (0u32, 0u32);
    while let (Some(skipped), Some(count)) = (number(), number()) {
        code += skipped;
        for _ in 0..count {
            while let Some(kept) = base.next_if(|(known, _)| *known < code) {
                characters.push(kept);
            }
            base.next_if(|(known, _)| *known == code);
            let difference = number().unwrap_or_default();
            let difference = (difference >> 1) as i32 ^ -((difference & 1) as i32);
            character = character.wrapping_add_signed(difference);
            if let Some(found) = char::from_u32(character).filter(|found| *found != '\0') {
                characters.push((code, found));
            }
            code += 1;
        }
    }
    characters.extend(base);
    characters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str) -> SeveralBytes {
        SeveralBytes::of_name(name).expect(name)
    }

    fn bytes(name: &str, text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        for character in text.chars() {
            assert!(
                set(name).push(character, &mut bytes),
                "{character} in {name}"
            );
        }
        bytes
    }

    /// As MySQL 9.7 converts them.
    #[test]
    fn characters_are_mysqls() {
        for (name, text, expected) in [
            ("gbk", "中文a", &b"\xD6\xD0\xCE\xC4a"[..]),
            ("gb2312", "中", b"\xD6\xD0"),
            ("gb18030", "中ḿ", b"\xD6\xD0\xA8\xBC"),
            (
                "gb18030",
                "\u{E7C7}Ṁ😀",
                b"\x81\x35\xF4\x37\x81\x35\xF4\x38\x94\x39\xFC\x36",
            ),
            ("big5", "中功", b"\xA4\xA4\xA5\\"),
            ("sjis", "表ｱ〜", b"\x95\\\xB1\x81\x60"),
            ("cp932", "表ｱ～ⅰ", b"\x95\\\xB1\x81\x60\xFA\x40"),
            ("ujis", "日本丂", b"\xC6\xFC\xCB\xDC\x8F\xB0\xA1"),
            ("eucjpms", "①", b"\xAD\xA1"),
            ("euckr", "한글갂", b"\xC7\xD1\xB1\xDB\x81\x41"),
        ] {
            assert_eq!(bytes(name, text), expected, "{name}");
            assert_eq!(set(name).decode(expected).as_deref(), Some(text), "{name}");
        }
        assert!(!set("gb2312").has('丂') && set("gbk").has('丂'));
        assert!(!set("sjis").has('①') && !set("gbk").has('😀'));
        assert_eq!(set("gbk").decode(b"\x80a"), None);
        assert_eq!(set("ujis").decode(b"\xC6a"), None);
        assert_eq!(set("gbk").decode_lossy(b"a\xD6"), "a?");
    }

    #[test]
    fn every_code_comes_back() {
        for name in NAMES {
            let table = set(name).table();
            assert!(table.characters.len() > 6000, "{name}");
            assert!(table.characters.is_sorted_by_key(|known| known.0));
            for (character, code) in &table.codes {
                let bytes = bytes(name, &character.to_string());
                let text = set(name).decode(&bytes);
                assert_eq!(text, Some(character.to_string()), "{name} {code:X}");
            }
        }
        let gb18030 = set("gb18030");
        for character in '\0'..=char::MAX {
            let bytes = bytes("gb18030", &character.to_string());
            assert_eq!(gb18030.decode(&bytes), Some(character.to_string()));
        }
    }

    #[test]
    fn a_code_that_is_not_written_is_refused_where_bytes_are_kept() {
        for (name, code) in [
            ("cp932", &b"\x87\x90"[..]),
            ("cp932", b"\xED\x40"),
            ("eucjpms", b"\x8F\xA2\xF1"),
        ] {
            assert!(set(name).decode(code).is_some(), "{name} {code:X?}");
            assert_eq!(set(name).decode_written(code), None, "{name} {code:X?}");
            assert_eq!(set(name).written_up_to(&[b"a", code].concat()), 1);
        }
        for (name, code, text) in [
            ("sjis", &b"\x81\x5F\\"[..], "＼\\"),
            ("cp932", b"\x81\xE0\xB1a", "≒ｱa"),
            ("ujis", b"\xA1\xC0\\\x8F\xA2\xB7~", "＼\\～~"),
        ] {
            assert_eq!(set(name).decode_written(code).as_deref(), Some(text));
            assert_eq!(bytes(name, text), code, "{name}");
        }
        // What is made a full-width letter is no second code of one that the set has.
        for name in ["sjis", "ujis", "gbk", "gb2312", "big5", "euckr"] {
            let table = set(name).table();
            for (code, character) in &table.characters {
                let bytes = code.to_be_bytes();
                let unused = bytes.iter().take_while(|byte| **byte == 0).count();
                let is_doubled = set(name).decode_written(&bytes[unused..]).is_none();
                let is_full_width = matches!(character, '！'..='～');
                assert!(!is_doubled || !is_full_width, "{name} {code:X}");
            }
        }
    }

    #[test]
    fn an_outline_has_no_ascii_in_characters() {
        let outline = set("sjis").outline(b"'\x95\\' \\'\xB1\\");
        assert_eq!(outline, b"'\x80\x80' \\'\x80\\");
        assert_eq!(set("gbk").valid_up_to(b"a\xD6\xD0\x80"), 3);
    }
}
