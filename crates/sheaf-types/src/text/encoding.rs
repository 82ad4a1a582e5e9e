//! Texts in other character sets than UTF-8: how a client sends and reads them, and which bytes they have.
//!
//! Text is UTF-8 throughout. A client that has set `character_set_client` to latin1 sends statements in it, and gets
//! texts in what `character_set_results` says. Literals (`_koi8r X'C1'`) and CONVERT name others. A character that the
//! other character set does not have becomes a question mark.
//!
//! | encodings | what their bytes are |
//! |---|---|
//! | UTF-8, and what is not told apart from it | the text as it is |
//! | ASCII | bytes below 0x80 |
//! | [`EightBit`] | a byte a character, by a table for each of them |
//! | [`SeveralBytes`] | a byte or more a character, by a table for each of them |
//! | [`Wide`] | units of two or four bytes. They hold no statements: clients do not send them |

use std::borrow::Cow;

pub use super::eight_bit::EightBit;
use super::eight_bit::REPLACEMENT;
pub use super::several_bytes::SeveralBytes;

/// How a text is written in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextEncoding {
    /// UTF-8, and what is not told apart from it: a client that has asked for `binary` or for no conversion.
    #[default]
    Utf8,
    Ascii,
    EightBit(EightBit),
    SeveralBytes(SeveralBytes),
    Wide(Wide),
}

/// A character set that statements come in and that has a table: [`EightBit`] or [`SeveralBytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableSet {
    EightBit(EightBit),
    SeveralBytes(SeveralBytes),
}

impl TableSet {
    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            TableSet::EightBit(set) => set.name(),
            TableSet::SeveralBytes(set) => set.name(),
        }
    }

    /// The text of bytes, for those to look at that say something about it: what is no character becomes a question
    /// mark.
    pub fn decode(self, bytes: &[u8]) -> String {
        match self {
            TableSet::EightBit(set) => set.decode(bytes),
            TableSet::SeveralBytes(set) => set.decode_lossy(bytes),
        }
    }

    /// The text of bytes; `None` if not each is of a character.
    pub fn decode_exact(self, bytes: &[u8]) -> Option<String> {
        match self {
            TableSet::EightBit(set) => bytes.iter().map(|byte| set.character(*byte)).collect(),
            TableSet::SeveralBytes(set) => set.decode(bytes),
        }
    }

    /// How many bytes are in front of the first that is of no character.
    pub fn valid_up_to(self, bytes: &[u8]) -> usize {
        match self {
            TableSet::EightBit(set) => {
                let mut bytes_in_order = bytes.iter();
                let invalid = bytes_in_order.position(|byte| set.character(*byte).is_none());
                invalid.unwrap_or(bytes.len())
            }
            TableSet::SeveralBytes(set) => set.valid_up_to(bytes),
        }
    }
}

/// Encodings whose units have several bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wide {
    /// The characters of the Basic Multilingual Plane, the higher byte first.
    Ucs2,
    Utf16,
    /// The lower byte first.
    Utf16Le,
    Utf32,
}

/// The greatest character of UCS-2.
const MAX_UCS2: char = '\u{FFFF}';

impl Wide {
    fn of_name(name: &str) -> Option<Wide> {
        Some(match name {
            "ucs2" => Wide::Ucs2,
            "utf16" => Wide::Utf16,
            "utf16le" => Wide::Utf16Le,
            "utf32" => Wide::Utf32,
            _ => return None,
        })
    }

    /// The bytes of a unit.
    fn unit(self) -> usize {
        match self {
            Wide::Utf32 => 4,
            Wide::Ucs2 | Wide::Utf16 | Wide::Utf16Le => 2,
        }
    }

    fn push(self, character: char, bytes: &mut Vec<u8>) {
        let mut units = [0; 2];
        match self {
            Wide::Utf32 => bytes.extend(u32::from(character).to_be_bytes()),
            Wide::Ucs2 if character > MAX_UCS2 => bytes.extend([0, REPLACEMENT]),
            Wide::Ucs2 | Wide::Utf16 => {
                for unit in character.encode_utf16(&mut units) {
                    bytes.extend(unit.to_be_bytes());
                }
            }
            Wide::Utf16Le => {
                for unit in character.encode_utf16(&mut units) {
                    bytes.extend(unit.to_le_bytes());
                }
            }
        }
    }

    /// How many bytes are in front of the first unit that is no character.
    fn valid_up_to(self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let next = [self.unit(), 2 * self.unit()];
            let found = next.into_iter().find(|length| {
                let character = bytes.get(at..at + length);
                character.is_some_and(|character| self.decode(character).is_some())
            });
            match found {
                Some(length) => at += length,
                None => break,
            }
        }
        at
    }

    /// `None`: they are no text. Bytes are missing in front of the first unit if that has not all of them.
    fn decode(self, bytes: &[u8]) -> Option<String> {
        let unit = self.unit();
        let missing = bytes.len().next_multiple_of(unit) - bytes.len();
        let padded: Vec<u8> = std::iter::repeat_n(0, missing)
            .chain(bytes.iter().copied())
            .collect();
        let units = padded.chunks_exact(2).map(|pair| match self {
            Wide::Utf16Le => u16::from_le_bytes([pair[0], pair[1]]),
            _ => u16::from_be_bytes([pair[0], pair[1]]),
        });
        match self {
            Wide::Utf32 => padded
                .chunks_exact(4)
                .map(|unit| {
                    char::from_u32(u32::from_be_bytes([unit[0], unit[1], unit[2], unit[3]]))
                })
                .collect(),
            Wide::Ucs2 => units.map(|unit| char::from_u32(unit.into())).collect(),
            Wide::Utf16 | Wide::Utf16Le => char::decode_utf16(units).collect::<Result<_, _>>().ok(),
        }
    }
}

impl TextEncoding {
    /// The encoding of a character set, by its name in lower case.
    pub fn of_character_set(name: &str) -> TextEncoding {
        match name {
            "ascii" => TextEncoding::Ascii,
            name => EightBit::of_name(name)
                .map(TextEncoding::EightBit)
                .or_else(|| SeveralBytes::of_name(name).map(TextEncoding::SeveralBytes))
                .or_else(|| Wide::of_name(name).map(TextEncoding::Wide))
                .unwrap_or_default(),
        }
    }

    /// A character set of statements that is more than ASCII and not UTF-8.
    pub fn table_set(self) -> Option<TableSet> {
        match self {
            TextEncoding::EightBit(set) => Some(TableSet::EightBit(set)),
            TextEncoding::SeveralBytes(set) => Some(TableSet::SeveralBytes(set)),
            _ => None,
        }
    }

    /// Whether a file can be in it: a byte of ASCII that begins a character is that character. Error messages name the
    /// others.
    pub fn is_for_files(self) -> bool {
        !matches!(self, TextEncoding::Wide(_))
    }

    /// The set whose characters may have bytes of ASCII behind their first one.
    pub fn several_bytes(self) -> Option<SeveralBytes> {
        match self {
            TextEncoding::SeveralBytes(set) => Some(set),
            _ => None,
        }
    }

    /// The most bytes of a character.
    pub fn character_bytes(self) -> u32 {
        match self {
            TextEncoding::Utf8 | TextEncoding::Wide(Wide::Utf16 | Wide::Utf16Le | Wide::Utf32) => 4,
            TextEncoding::Wide(Wide::Ucs2) => 2,
            TextEncoding::SeveralBytes(set) => set.character_bytes(),
            TextEncoding::Ascii | TextEncoding::EightBit(_) => 1,
        }
    }

    /// The fewest bytes of a character.
    pub fn least_bytes(self) -> u32 {
        match self {
            TextEncoding::Wide(Wide::Utf32) => 4,
            TextEncoding::Wide(_) => 2,
            _ => 1,
        }
    }

    /// A text in this encoding.
    pub fn encode<'t>(self, text: &'t [u8]) -> Cow<'t, [u8]> {
        let byte = |character: char| match self {
            TextEncoding::EightBit(set) => set.byte(character),
            _ => u8::try_from(character).ok().filter(u8::is_ascii),
        };
        match self {
            TextEncoding::Utf8 => Cow::Borrowed(text),
            TextEncoding::Wide(wide) => {
                let mut bytes = Vec::with_capacity(wide.unit() * text.len());
                for character in super::text_of(text).chars() {
                    wide.push(character, &mut bytes);
                }
                Cow::Owned(bytes)
            }
            _ if text.is_ascii() => Cow::Borrowed(text),
            TextEncoding::SeveralBytes(set) => {
                let mut bytes = Vec::with_capacity(text.len());
                for character in super::text_of(text).chars() {
                    if !set.push(character, &mut bytes) {
                        bytes.push(REPLACEMENT);
                    }
                }
                Cow::Owned(bytes)
            }
            TextEncoding::Ascii | TextEncoding::EightBit(_) => super::text_of(text)
                .chars()
                .map(|character| byte(character).unwrap_or(REPLACEMENT))
                .collect(),
        }
    }

    /// The text of bytes in this encoding; `None` if they are none, or if the text has other bytes in it: of two codes
    /// of a character a text has only one.
    pub fn decode(self, bytes: &[u8]) -> Option<String> {
        match self {
            TextEncoding::Utf8 => std::str::from_utf8(bytes).ok().map(str::to_string),
            TextEncoding::Ascii => {
                let is_text = bytes.is_ascii();
                is_text.then(|| bytes.iter().copied().map(char::from).collect())
            }
            TextEncoding::EightBit(set) => bytes.iter().map(|byte| set.written(*byte)).collect(),
            TextEncoding::SeveralBytes(set) => set.decode_written(bytes),
            TextEncoding::Wide(wide) => wide.decode(bytes),
        }
    }

    /// Whether a character can be written in it.
    pub fn has(self, character: char) -> bool {
        match self {
            TextEncoding::Utf8 | TextEncoding::Wide(Wide::Utf16 | Wide::Utf16Le | Wide::Utf32) => {
                true
            }
            TextEncoding::Wide(Wide::Ucs2) => character <= MAX_UCS2,
            TextEncoding::Ascii => character.is_ascii(),
            TextEncoding::EightBit(set) => set.byte(character).is_some(),
            TextEncoding::SeveralBytes(set) => set.has(character),
        }
    }

    /// How many bytes a text has in it.
    pub fn length(self, text: &str) -> usize {
        match self {
            TextEncoding::Utf8 => text.len(),
            TextEncoding::Ascii | TextEncoding::EightBit(_) if text.is_ascii() => text.len(),
            TextEncoding::Ascii | TextEncoding::EightBit(_) => text.chars().count(),
            _ => self.encode(text.as_bytes()).len(),
        }
    }

    /// Where a text ends that has at most so many bytes in it.
    pub fn cut(self, text: &str, bytes: usize) -> usize {
        let mut taken = 0;
        let is_beyond = |(_, character): &(usize, char)| {
            taken += self.length(character.encode_utf8(&mut [0; 4]));
            taken > bytes
        };
        text.char_indices()
            .find(is_beyond)
            .map_or(text.len(), |(at, _)| at)
    }

    /// The text of bytes up to the first that are of no character, and how many bytes that is.
    pub fn decode_valid(self, bytes: &[u8]) -> (String, usize) {
        let valid = match self {
            TextEncoding::Utf8 => match std::str::from_utf8(bytes) {
                Ok(_) => bytes.len(),
                Err(error) => error.valid_up_to(),
            },
            TextEncoding::Ascii => bytes.iter().take_while(|byte| byte.is_ascii()).count(),
            TextEncoding::EightBit(set) => bytes
                .iter()
                .take_while(|byte| set.written(**byte).is_some())
                .count(),
            TextEncoding::SeveralBytes(set) => set.written_up_to(bytes),
            TextEncoding::Wide(wide) => {
                if let Some(text) = wide.decode(bytes) {
                    return (text, bytes.len());
                }
                wide.valid_up_to(bytes)
            }
        };
        let text = self.decode(&bytes[..valid]);
        text.map_or((String::new(), 0), |text| (text, valid))
    }

    /// A text as it is after it was in this encoding.
    pub fn narrowed(self, text: &str) -> Cow<'_, str> {
        let is_kept = |character: char| self.has(character);
        match text.is_ascii() || text.chars().all(is_kept) {
            true => Cow::Borrowed(text),
            false => text
                .chars()
                .map(|character| match is_kept(character) {
                    true => character,
                    false => char::from(REPLACEMENT),
                })
                .collect(),
        }
    }
}

impl EightBit {
    /// The text of bytes, for those to look at that say something about it: a byte that is no character becomes a
    /// question mark.
    pub fn decode(self, bytes: &[u8]) -> String {
        let characters = bytes.iter().map(|byte| self.character(*byte));
        characters
            .map(|character| character.unwrap_or(char::from(REPLACEMENT)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoding(name: &str) -> TextEncoding {
        TextEncoding::of_character_set(name)
    }

    #[test]
    fn every_byte_of_latin1_comes_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = encoding("latin1").decode(&bytes).expect("a text");
        assert_eq!(*encoding("latin1").encode(text.as_bytes()), bytes);
        assert_eq!(
            encoding("latin1").decode(b"\x80\xE9").as_deref(),
            Some("\u{20AC}\u{E9}")
        );
    }

    #[test]
    fn what_a_character_set_does_not_have_becomes_a_question_mark() {
        let text = "a\u{E9}\u{4E2D}";
        assert_eq!(*encoding("latin1").encode(text.as_bytes()), *b"a\xE9?");
        assert_eq!(*encoding("ascii").encode(text.as_bytes()), *b"a??");
        assert_eq!(
            *encoding("utf8mb4").encode(text.as_bytes()),
            *text.as_bytes()
        );
        assert_eq!(encoding("latin1").narrowed(text), "a\u{E9}?");
        assert_eq!(encoding("ucs2").narrowed("a\u{1F600}"), "a?");
        // 0x98 is no character of cp1251.
        assert_eq!(encoding("cp1251").decode(b"\xE0\x98"), None);
        assert_eq!(encoding("ascii").decode(b"a\x80"), None);
        // It is a parenthesis, as 0x29 is.
        assert_eq!(encoding("armscii8").decode(b"\xA4"), None);
        assert_eq!(
            encoding("armscii8").decode_valid(b"a)\xA4b"),
            ("a)".into(), 2)
        );
    }

    #[test]
    fn units_of_several_bytes() {
        let text = "a\u{1F600}";
        assert_eq!(
            *encoding("utf16").encode(text.as_bytes()),
            *b"\0a\xD8\x3D\xDE\x00"
        );
        assert_eq!(
            *encoding("utf16le").encode(text.as_bytes()),
            *b"a\0\x3D\xD8\x00\xDE"
        );
        assert_eq!(
            *encoding("utf32").encode(text.as_bytes()),
            *b"\0\0\0a\0\x01\xF6\x00"
        );
        assert_eq!(*encoding("ucs2").encode(text.as_bytes()), *b"\0a\0?");
        for name in ["utf16", "utf16le", "utf32"] {
            let bytes = encoding(name).encode(text.as_bytes());
            assert_eq!(
                encoding(name).decode(&bytes).as_deref(),
                Some(text),
                "{name}"
            );
        }
        assert_eq!(encoding("ucs2").decode(b"a").as_deref(), Some("a"));
        assert_eq!(encoding("utf16").decode(b"\xD8\x3D"), None);
    }
}
