//! Character sets of texts: which characters a text of a collation may have, and which bytes they are.
//!
//! Texts are UTF-8 wherever they are kept. A collation names the character set that it belongs to, and this says how
//! long a text is to a column, what it does not take, and the bytes that HEX and LENGTH are told.

use std::borrow::Cow;

use super::collation::Collation;
use super::encoding::TextEncoding;

/// The greatest character of utf8mb3.
const MAX_UTF8MB3: char = '\u{FFFF}';

impl Collation {
    /// How the character set writes texts in bytes. Of utf8mb3 it is UTF-8.
    #[inline]
    pub fn encoding(self) -> TextEncoding {
        match self {
            Collation::OfSet(collation) => collation.encoding(),
            _ => TextEncoding::Utf8,
        }
    }

    /// Whether its character set is one of Unicode, which texts of others become beside it. MySQL does not count
    /// gb18030 among these.
    pub fn is_of_unicode(self) -> bool {
        matches!(
            self.character_set(),
            "utf8mb4" | "utf8mb3" | "ucs2" | "utf16" | "utf16le" | "utf32"
        )
    }

    /// Whether texts of the other sets of Unicode become ones of it, too. MySQL says so of utf8mb4, and of all
    /// collations of utf32 but `utf32_bin`.
    pub fn takes_unicode(self) -> bool {
        match self.character_set() {
            "utf8mb4" => true,
            "utf32" => !self.is_exact(),
            _ => false,
        }
    }

    /// The most bytes of a character of its set.
    pub fn character_bytes(self) -> u32 {
        match self {
            Collation::Binary => 1,
            Collation::OfSet(_) if self.is_of_utf8mb3() => 3,
            other => other.encoding().character_bytes(),
        }
    }

    fn is_of_utf8mb3(self) -> bool {
        self.character_set() == "utf8mb3"
    }

    /// Whether its character set has this character.
    pub fn has(self, character: char) -> bool {
        match self {
            Collation::OfSet(_) if character.is_ascii() => true,
            Collation::OfSet(_) if self.is_of_utf8mb3() => character <= MAX_UTF8MB3,
            Collation::OfSet(collation) => collation.encoding().has(character),
            _ => true,
        }
    }

    /// Where in a text the first character is that its character set does not have.
    #[inline]
    pub fn first_foreign(self, text: &str) -> Option<usize> {
        /// Begins a character of four bytes.
        const FOUR_BYTES: u8 = 0xF0;
        match self {
            Collation::OfSet(_) if text.is_ascii() => None,
            Collation::OfSet(_) if self.is_of_utf8mb3() => {
                text.bytes().position(|byte| byte >= FOUR_BYTES)
            }
            Collation::OfSet(collation) => {
                let encoding = collation.encoding();
                let mut characters = text.char_indices();
                let foreign = characters.find(|(_, character)| !encoding.has(*character));
                foreign.map(|(at, _)| at)
            }
            _ => None,
        }
    }

    /// A text as it is after it was in its character set: with question marks for what that does not have.
    pub fn narrowed(self, text: &str) -> Cow<'_, str> {
        if self.first_foreign(text).is_none() {
            return Cow::Borrowed(text);
        }
        let known = |character| if self.has(character) { character } else { '?' };
        Cow::Owned(text.chars().map(known).collect())
    }

    /// The collation that a character set has by default; `None` if it is not among these.
    pub fn default_of_set(name: &str) -> Option<Collation> {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "utf8mb4" => Some(Collation::default()),
            "binary" => Some(Collation::Binary),
            "utf8" => Self::default_of_set("utf8mb3"),
            "latin1" => Collation::parse("latin1_swedish_ci"),
            // Their default is none of these.
            "tis620" | "gb18030" => None,
            name => Collation::parse(&format!("{name}_general_ci")).or_else(|| {
                Self::ALL
                    .into_iter()
                    .find(|collation| collation.character_set() == name)
            }),
        }
    }

    /// The collation by code points of its character set.
    pub fn by_code_points(self) -> Collation {
        match self {
            Collation::Binary => Collation::Binary,
            Collation::OfSet(collation) => {
                Collation::parse(&format!("{}_bin", collation.character_set())).unwrap_or(self)
            }
            _ => Collation::Utf8mb4_bin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collation(name: &str) -> Collation {
        Collation::parse(name).expect(name)
    }

    #[test]
    fn a_text_has_the_characters_of_its_set() {
        for (name, text, first_foreign) in [
            ("latin1_bin", "a\u{e9}\u{20ac}", None),
            ("latin1_bin", "a\u{e9}\u{4e2d}", Some(3)),
            ("utf8mb3_bin", "\u{4e2d}", None),
            ("utf8mb3_bin", "a\u{1f600}", Some(1)),
            ("ucs2_bin", "\u{1f600}", Some(0)),
            ("ascii_bin", "\u{e9}", Some(0)),
            ("gbk_bin", "\u{4e2d}", None),
            ("utf8mb4_bin", "\u{1f600}", None),
        ] {
            assert_eq!(collation(name).first_foreign(text), first_foreign, "{name}");
        }
        assert_eq!(collation("latin1_bin").narrowed("a\u{4e2d}b"), "a?b");
    }

    #[test]
    fn characters_have_as_many_bytes_as_their_set_says() {
        for (name, bytes) in [
            ("binary", 1),
            ("latin1_swedish_ci", 1),
            ("ucs2_bin", 2),
            ("gbk_bin", 2),
            ("utf8mb3_bin", 3),
            ("ujis_bin", 3),
            ("utf16_bin", 4),
            ("utf8mb4_bin", 4),
        ] {
            assert_eq!(collation(name).character_bytes(), bytes, "{name}");
        }
    }

    #[test]
    fn sets_have_a_default_and_one_by_code_points() {
        for (set, default) in [
            ("latin1", "latin1_swedish_ci"),
            ("utf8", "utf8mb3_general_ci"),
            ("CP1251", "cp1251_general_ci"),
            ("sjis", "sjis_japanese_ci"),
            ("dec8", "dec8_swedish_ci"),
            ("utf8mb4", "utf8mb4_0900_ai_ci"),
        ] {
            assert_eq!(
                Collation::default_of_set(set).map(Collation::name),
                Some(default)
            );
        }
        assert_eq!(Collation::default_of_set("swe7"), None);
        let exact = collation("latin1_swedish_ci").by_code_points();
        assert_eq!(exact.name(), "latin1_bin");
    }
}
