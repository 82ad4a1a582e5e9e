//! Character sets of clients whose texts are not UTF-8.
//!
//! Text is UTF-8 throughout. A client that has set `character_set_client` to latin1 sends statements in it, and gets
//! texts in what `character_set_results` says. MySQL's latin1 is Windows-1252, whose five holes are the control
//! characters of their numbers, so that every byte is a character.

use std::borrow::Cow;

/// How a client writes or reads texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextEncoding {
    /// UTF-8, and what is not told apart from it: a client that has asked for `binary` or for no conversion.
    #[default]
    Utf8,
    Latin1,
    Ascii,
}

/// The characters of the bytes from 0x80 to 0x9F. All others are Unicode's of the same number.
const HIGH_CONTROLS: [char; 32] = [
    '\u{20AC}', '\u{81}', '\u{201A}', '\u{192}', '\u{201E}', '\u{2026}', '\u{2020}', '\u{2021}',
    '\u{2C6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8D}', '\u{17D}', '\u{8F}',
    '\u{90}', '\u{2018}', '\u{2019}', '\u{201C}', '\u{201D}', '\u{2022}', '\u{2013}', '\u{2014}',
    '\u{2DC}', '\u{2122}', '\u{161}', '\u{203A}', '\u{153}', '\u{9D}', '\u{17E}', '\u{178}',
];

/// What stands for a character that the client's character set does not have.
const REPLACEMENT: u8 = b'?';

impl TextEncoding {
    /// The encoding of a character set, by its name.
    pub fn of_character_set(name: &str) -> TextEncoding {
        match name {
            "latin1" => TextEncoding::Latin1,
            "ascii" => TextEncoding::Ascii,
            _ => TextEncoding::Utf8,
        }
    }

    /// The encoding of texts that are labelled with a collation, by MySQL's number.
    pub fn of_collation_id(id: u16) -> TextEncoding {
        match id {
            5 | 8 | 15 | 31 | 47 | 48 | 49 | 94 => TextEncoding::Latin1,
            11 | 65 => TextEncoding::Ascii,
            _ => TextEncoding::Utf8,
        }
    }

    /// A text as the client reads it.
    pub fn encode<'t>(self, text: &'t [u8]) -> Cow<'t, [u8]> {
        if self == TextEncoding::Utf8 || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let encoded = String::from_utf8_lossy(text)
            .chars()
            .map(|character| match self {
                TextEncoding::Latin1 => latin1_byte(character),
                _ => u8::try_from(character).ok().filter(u8::is_ascii),
            })
            .map(|byte| byte.unwrap_or(REPLACEMENT))
            .collect();
        Cow::Owned(encoded)
    }
}

fn latin1_byte(character: char) -> Option<u8> {
    match u8::try_from(character) {
        Ok(byte) if !(0x80..0xA0).contains(&byte) => Some(byte),
        _ => {
            let position = HIGH_CONTROLS.iter().position(|known| *known == character)?;
            Some(0x80 + position as u8)
        }
    }
}

/// The character of a byte of latin1.
pub fn latin1_character(byte: u8) -> char {
    match byte {
        0x80..0xA0 => HIGH_CONTROLS[usize::from(byte - 0x80)],
        byte => char::from(byte),
    }
}

/// A text of latin1.
pub fn decode_latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| latin1_character(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_latin1_comes_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = decode_latin1(&bytes);
        assert_eq!(TextEncoding::Latin1.encode(text.as_bytes()), bytes);
        assert_eq!(decode_latin1(b"\x80\xE9"), "\u{20AC}\u{E9}");
    }

    #[test]
    fn what_a_character_set_does_not_have_becomes_a_question_mark() {
        let text = "a\u{E9}\u{4E2D}".as_bytes();
        assert_eq!(*TextEncoding::Latin1.encode(text), *b"a\xE9?");
        assert_eq!(*TextEncoding::Ascii.encode(text), *b"a??");
        assert_eq!(*TextEncoding::Utf8.encode(text), *text);
    }
}
