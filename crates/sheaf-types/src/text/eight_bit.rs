//! Character sets of one byte a character: which character each byte is.
//!
//! All of them are ASCII below 0x80. The bytes above are a table, in the order of [`NAMES`]: 128 numbers of characters
//! for each character set, with the lower byte first. Zero is a byte that is no character.
//!
//! The characters are those of MySQL, which differ from Unicode's own tables in a few places: latin1 is Windows-1252,
//! whose five holes are the control characters of their numbers.

use std::sync::OnceLock;

/// What stands for a character that a character set does not have, and for a byte that is no character.
pub(super) const REPLACEMENT: u8 = b'?';
/// The bytes of a character set that are not ASCII.
const HIGH_BYTES: usize = 128;

const NAMES: [&str; 23] = [
    "armscii8", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8",
    "geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5",
    "latin7", "macce", "macroman", "tis620",
];

/// A character set of one byte a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EightBit {
    /// Its place in [`NAMES`].
    place: u8,
}

/// The bytes of a character set that are not ASCII, both ways.
struct Table {
    /// By the byte less 0x80.
    characters: [Option<char>; HIGH_BYTES],
    /// In the order of the characters.
    bytes: Vec<(char, u8)>,
}

impl EightBit {
    /// The character set of that name, in lower case.
    pub fn of_name(name: &str) -> Option<EightBit> {
        let place = NAMES.iter().position(|known| *known == name)?;
        let place = u8::try_from(place).ok()?;
        Some(EightBit { place })
    }

    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        NAMES[usize::from(self.place)]
    }

    /// The character of a byte.
    pub fn character(self, byte: u8) -> Option<char> {
        match byte {
            0..0x80 => Some(char::from(byte)),
            _ => self.table().characters[usize::from(byte - 0x80)],
        }
    }

    /// The character of a byte, if it is the one that the character is written with.
    pub fn written(self, byte: u8) -> Option<char> {
        let character = self.character(byte)?;
        (self.byte(character) == Some(byte)).then_some(character)
    }

    /// The byte of a character.
    pub fn byte(self, character: char) -> Option<u8> {
        if character.is_ascii() {
            return u8::try_from(character).ok();
        }
        let bytes = &self.table().bytes;
        let found = bytes.binary_search_by_key(&character, |(known, _)| *known);
        found.ok().map(|place| bytes[place].1)
    }

    fn table(self) -> &'static Table {
        static TABLES: OnceLock<Vec<Table>> = OnceLock::new();
        let tables = TABLES.get_or_init(|| {
            let numbers = include_bytes!("eight_bit.bin");
            numbers.chunks_exact(2 * HIGH_BYTES).map(table).collect()
        });
        &tables[usize::from(self.place)]
    }
}

fn table(numbers: &[u8]) -> Table {
    let mut characters = [None; HIGH_BYTES];
    let mut bytes = Vec::with_capacity(HIGH_BYTES);
    for (place, number) in numbers.chunks_exact(2).enumerate() {
        let number = u32::from(u16::from_le_bytes([number[0], number[1]]));
        let character = char::from_u32(number).filter(|character| *character != '\0');
        characters[place] = character;
        if let Some(character) = character {
            bytes.push((character, 0x80 + place as u8));
        }
    }
    bytes.sort_unstable();
    Table { characters, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_set_has_a_table_and_its_bytes_come_back() {
        let numbers = include_bytes!("eight_bit.bin");
        assert_eq!(numbers.len(), NAMES.len() * 2 * HIGH_BYTES);
        for name in NAMES {
            let set = EightBit::of_name(name).expect(name);
            for byte in 0..=u8::MAX {
                let Some(character) = set.character(byte) else {
                    continue;
                };
                let back = set.byte(character).expect(name);
                assert_eq!(set.character(back), Some(character), "{name} {byte:02X}");
            }
        }
    }

    #[test]
    fn bytes_are_characters_of_their_set() {
        let character = |name, byte| EightBit::of_name(name).and_then(|set| set.character(byte));
        assert_eq!(character("koi8r", 0xC1), Some('а'));
        assert_eq!(character("cp1251", 0xE0), Some('а'));
        assert_eq!(character("latin2", 0xB1), Some('ą'));
        assert_eq!(character("greek", 0xE1), Some('α'));
        assert_eq!(character("latin1", 0x80), Some('€'));
        assert_eq!(character("cp1251", 0x98), None);
        assert_eq!(EightBit::of_name("swe7"), None);
    }
}
