//! Collations: which strings are equal, and in which order they come.
//!
//! A collation turns a string into a *sort key*, bytes whose memcmp order is the collation's order and whose equality
//! is the collation's equality. Indexes store sort keys; comparisons, groups and joins of strings use them. The keys
//! are written to disk, so the schemes below are part of the file format.
//!
//! Each scheme encodes character by character, because index prefixes and `LIKE 'abc%'` need the key of a string's
//! beginning to be the beginning of the string's key. Where accents or cases are compared last, that holds for the
//! primary weights, and a beginning has nothing else.
//!
//! **`utf8mb4_0900_ai_ci`** compares primary weights of the Unicode Collation Algorithm: no case, no accents, trailing
//! spaces count (see `unicode_primary.rs`). Where these are equal, **`utf8mb4_0900_as_ci`** compares accents, and
//! **`utf8mb4_0900_as_cs`** accents and then cases (see `unicode_weights/levels.rs`).
//!
//! **`utf8mb4_bin`** compares code points, **`utf8mb4_general_ci`** characters by MySQL's table, mostly without accent
//! and in upper case (see `padded.rs`); both encode as UTF-8. They are PAD SPACE: strings compare as if followed by
//! spaces without end, so the end of a string comes after a control character but before a letter. Trailing spaces are
//! dropped and 0x01 ends the key; a control character, with the spaces in front of it, is preceded by 0x00:
//!
//! ```text
//!   'a\t'   61 00 09 01      <   'a' = 'a   '   61 01      <   'a b'   61 20 62 01
//!   'a \t'  61 00 20 09 01
//! ```
//!
//! **`utf8mb4_unicode_ci`** and **`utf8mb4_unicode_520_ci`** compare primary weights of older versions of the Unicode
//! Collation Algorithm, and are PAD SPACE (see `unicode_weights/`).
//!
//! **`utf8mb4_0900_bin`** compares code points, too, and trailing spaces count. A key is the UTF-8 itself, but for the
//! two lowest characters: U+0000 is 01 01 and U+0001 is 01 02.
//!
//! **Collations of languages**, such as `utf8mb4_sv_0900_ai_ci`, are one of the above with other weights for a few
//! characters, and some with weights for sequences of characters, so that a beginning of a key can end in front of one
//! (see `tailoring.rs`).
//!
//! **Collations of other character sets**, such as `latin1_swedish_ci`, have weights by the bytes of these sets, or
//! those of utf8mb4 (see `set_collation.rs`).
//!
//! **`binary`** is the bytes themselves.

use std::cmp::Ordering;
use std::sync::OnceLock;

use crate::text::PAD_END;
use crate::text::padded::{general_weight, padded_key};
use crate::text::set_collation::{self, SetCollation};
use crate::text::tailoring::{self, Family, Tailoring};
use crate::text::unicode_primary::{compare_ascii, unicode_key};
use crate::text::unicode_weights::{LevelTable, Levels, Version, Weights as TableWeights};

/// Stands in front of the two lowest characters under `utf8mb4_0900_bin`, each raised by one.
const ESCAPE: u8 = 0x01;
/// The key of a longer text is made in pieces of so many bytes.
const STRETCH_BYTES: usize = 64 << 10;
/// Characters at the end of a piece among which one is sought behind which a key can be cut.
const MOST_LOOKED_AT: usize = 1024;
/// The order of a string column.
#[allow(non_camel_case_types, reason = "the names are MySQL's own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Collation {
    /// Case- and accent-insensitive by the Unicode Collation Algorithm; trailing spaces count. The default.
    #[default]
    Utf8mb4_0900_ai_ci,
    /// The same, and then by accents.
    Utf8mb4_0900_as_ci,
    /// The same, then by accents, and then by cases.
    Utf8mb4_0900_as_cs,
    /// Case- and accent-insensitive character by character; trailing spaces do not count.
    Utf8mb4_general_ci,
    /// Case- and accent-insensitive by version 4.0.0 of the Unicode Collation Algorithm; trailing spaces do not count.
    Utf8mb4_unicode_ci,
    /// The same by version 5.2.0.
    Utf8mb4_unicode_520_ci,
    /// By code point; trailing spaces do not count.
    Utf8mb4_bin,
    /// By code point; trailing spaces count.
    Utf8mb4_0900_bin,
    /// By byte.
    Binary,
    /// As a language has it.
    Tailored(Tailoring),
    /// Of another character set than utf8mb4.
    OfSet(SetCollation),
}

/// All but those of languages and of other character sets.
const OF_NO_LANGUAGE: [Collation; 9] = [
    Collation::Utf8mb4_0900_ai_ci,
    Collation::Utf8mb4_0900_as_ci,
    Collation::Utf8mb4_0900_as_cs,
    Collation::Utf8mb4_general_ci,
    Collation::Utf8mb4_unicode_ci,
    Collation::Utf8mb4_unicode_520_ci,
    Collation::Utf8mb4_bin,
    Collation::Utf8mb4_0900_bin,
    Collation::Binary,
];
/// How many collations there are.
const COUNT: usize = OF_UTF8MB4 + set_collation::COUNT;
/// How many of them are of utf8mb4, or `binary`.
const OF_UTF8MB4: usize = OF_NO_LANGUAGE.len() + tailoring::COUNT;

/// [`Collation::ALL`], in one place.
static KNOWN: [Collation; COUNT] = Collation::ALL;

impl Collation {
    /// All collations.
    pub const ALL: [Collation; COUNT] = {
        let mut all = [Collation::Binary; COUNT];
        let mut place = 0;
        while place < COUNT {
            all[place] = if place >= OF_UTF8MB4 {
                Collation::OfSet(SetCollation::at(place - OF_UTF8MB4))
            } else if place >= OF_NO_LANGUAGE.len() {
                Collation::Tailored(Tailoring::at(place - OF_NO_LANGUAGE.len()))
            } else {
                OF_NO_LANGUAGE[place]
            };
            place += 1;
        }
        all
    };

    /// MySQL's name.
    pub fn name(self) -> &'static str {
        match self {
            Collation::Utf8mb4_0900_ai_ci => "utf8mb4_0900_ai_ci",
            Collation::Utf8mb4_0900_as_ci => "utf8mb4_0900_as_ci",
            Collation::Utf8mb4_0900_as_cs => "utf8mb4_0900_as_cs",
            Collation::Utf8mb4_general_ci => "utf8mb4_general_ci",
            Collation::Utf8mb4_unicode_ci => "utf8mb4_unicode_ci",
            Collation::Utf8mb4_unicode_520_ci => "utf8mb4_unicode_520_ci",
            Collation::Utf8mb4_bin => "utf8mb4_bin",
            Collation::Utf8mb4_0900_bin => "utf8mb4_0900_bin",
            Collation::Binary => "binary",
            Collation::Tailored(language) => language.name(),
            Collation::OfSet(collation) => collation.name(),
        }
    }

    /// MySQL's number, as it goes over the wire.
    pub fn id(self) -> u16 {
        match self {
            Collation::Utf8mb4_0900_ai_ci => 255,
            Collation::Utf8mb4_0900_as_ci => 305,
            Collation::Utf8mb4_0900_as_cs => 278,
            Collation::Utf8mb4_general_ci => 45,
            Collation::Utf8mb4_unicode_ci => 224,
            Collation::Utf8mb4_unicode_520_ci => 246,
            Collation::Utf8mb4_bin => 46,
            Collation::Utf8mb4_0900_bin => 309,
            Collation::Binary => 63,
            Collation::Tailored(language) => language.id(),
            Collation::OfSet(collation) => collation.id(),
        }
    }

    /// The collation of that number.
    pub fn of_id(id: u64) -> Option<Collation> {
        let mut known = KNOWN.iter().copied();
        known.find(|collation| u64::from(collation.id()) == id)
    }

    /// MySQL's name of the character set that it belongs to.
    pub fn character_set(self) -> &'static str {
        match self {
            Collation::Binary => "binary",
            Collation::OfSet(collation) => collation.character_set(),
            _ => "utf8mb4",
        }
    }

    /// The collation of utf8mb4 that orders texts alike, where there is one.
    pub fn order(self) -> Collation {
        static ORDERS: OnceLock<Vec<Option<Collation>>> = OnceLock::new();
        let Collation::OfSet(collation) = self else {
            return self;
        };
        let orders = ORDERS.get_or_init(|| {
            let sets = (0..set_collation::COUNT).map(SetCollation::at);
            sets.map(|set| set.like().and_then(Collation::parse))
                .collect()
        });
        orders[collation.place()].unwrap_or(self)
    }

    /// The collation of that name, without regard to case.
    pub fn parse(name: &str) -> Option<Collation> {
        let mut known = KNOWN.iter().copied();
        known.find(|collation| collation.name().eq_ignore_ascii_case(name))
    }

    /// As [`parse`](Self::parse); `utf8` is another name of `utf8mb3`.
    pub fn parse_with_aliases(name: &str) -> Option<Collation> {
        Self::parse(name).or_else(|| {
            let (set, rest) = name.split_once('_')?;
            let is_other_name = set.eq_ignore_ascii_case("utf8");
            is_other_name.then(|| Self::parse(&format!("utf8mb3_{rest}")))?
        })
    }

    /// The collation of columns that is most like the one of this name: that itself, but for few (see
    /// `set_collation.rs`).
    pub fn nearest(name: &str) -> Collation {
        Collation::parse_with_aliases(name)
            .filter(|collation| *collation != Collation::Binary)
            .unwrap_or_else(|| match name == "binary" || name.ends_with("_bin") {
                true => Collation::Utf8mb4_bin,
                false => Collation::Utf8mb4_general_ci,
            })
    }

    /// True if trailing spaces do not count (PAD SPACE).
    #[inline]
    pub fn pads_spaces(self) -> bool {
        match self {
            Collation::Utf8mb4_0900_ai_ci
            | Collation::Utf8mb4_0900_as_ci
            | Collation::Utf8mb4_0900_as_cs
            | Collation::Utf8mb4_0900_bin
            | Collation::Binary => false,
            Collation::Tailored(language) => language.family() == Family::Unicode400,
            // Those of utf8mb4 that it is like are, too.
            _ => true,
        }
    }

    /// True if strings are equal only if all of their characters are the same, but for spaces at the end.
    #[inline]
    pub fn is_exact(self) -> bool {
        match self.order() {
            Collation::Utf8mb4_bin | Collation::Utf8mb4_0900_bin | Collation::Binary => true,
            Collation::OfSet(collation) => collation.is_exact(),
            _ => false,
        }
    }

    /// True if strings that differ in case are equal.
    #[inline]
    pub fn ignores_case(self) -> bool {
        match self.order() {
            Collation::OfSet(collation) => collation.ignores_case(),
            order => !order.is_exact() && order.levels() != Some(Levels::AccentsAndCases),
        }
    }

    /// True if letters of ASCII are equal to those that differ in case only, or to none if case counts. Languages have
    /// other rules: the Turkish `I` is a capital `ı`.
    #[inline]
    pub fn has_plain_ascii(self) -> bool {
        match self.order() {
            Collation::Tailored(_) => false,
            Collation::OfSet(collation) => collation.has_plain_ascii(),
            _ => true,
        }
    }

    /// What is compared behind the primary weights.
    fn levels(self) -> Option<Levels> {
        match self {
            Collation::Utf8mb4_0900_as_ci => Some(Levels::Accents),
            Collation::Utf8mb4_0900_as_cs => Some(Levels::AccentsAndCases),
            Collation::Tailored(language) => {
                (language.family() == Family::AccentsAndCases).then_some(Levels::AccentsAndCases)
            }
            _ => None,
        }
    }

    /// The table of what is compared behind the primary weights.
    fn level_table(self) -> &'static LevelTable {
        match self {
            Collation::Tailored(language) => language.levels(),
            _ => LevelTable::get(),
        }
    }

    /// True if the key of a beginning says less of it than the key of a text: strings that differ may have beginnings
    /// with one key.
    #[inline]
    pub fn has_levels(self) -> bool {
        self.levels().is_some()
    }

    /// Appends the sort key of `text`: memcmp on sort keys is the collation's order, equal keys are equal strings.
    pub fn sort_key_into(self, text: &str, key: &mut Vec<u8>) {
        match self.order() {
            Collation::Utf8mb4_0900_as_ci | Collation::Utf8mb4_0900_as_cs => {
                unicode_key(text, usize::MAX, key);
                self.push_levels(text, key, &|| false);
            }
            Collation::Utf8mb4_0900_ai_ci => {
                unicode_key(text, usize::MAX, key);
            }
            Collation::Utf8mb4_general_ci => padded_key(text, usize::MAX, general_weight, key),
            Collation::Utf8mb4_unicode_ci | Collation::Utf8mb4_unicode_520_ci => {
                self.limited_key_into(text, usize::MAX, key);
            }
            Collation::Utf8mb4_bin => padded_key(text, usize::MAX, |c| c, key),
            Collation::Tailored(_) => {
                self.limited_key_into(text, usize::MAX, key);
                self.push_levels(text, key, &|| false);
            }
            Collation::Utf8mb4_0900_bin => code_points_key(text, key),
            Collation::OfSet(collation) => {
                collation.key_into(text, usize::MAX, key);
            }
            Collation::Binary => key.extend_from_slice(text.as_bytes()),
        }
    }

    /// The same for texts of any length: `is_over` is asked now and then, and `None` is what it has ended.
    pub fn sort_key_until(
        self,
        text: &str,
        key: &mut Vec<u8>,
        is_over: &dyn Fn() -> bool,
    ) -> Option<()> {
        let mut rest = text;
        while rest.len() > STRETCH_BYTES {
            if is_over() {
                return None;
            }
            let end = rest.floor_char_boundary(STRETCH_BYTES);
            let Some(cut) = self.last_cut(&rest[..end]) else {
                break;
            };
            self.limited_key_into(&rest[..cut], usize::MAX, key);
            if self.pads_spaces() {
                debug_assert_eq!(key.last(), Some(&PAD_END));
                key.pop();
            }
            rest = &rest[cut..];
        }
        self.limited_key_into(rest, usize::MAX, key);
        self.push_levels(text, key, is_over)
    }

    /// Appends what stands behind the primary weights.
    fn push_levels(self, text: &str, key: &mut Vec<u8>, is_over: &dyn Fn() -> bool) -> Option<()> {
        match self.levels() {
            Some(levels) => levels.key_into(self.level_table(), text, key, is_over),
            None => Some(()),
        }
    }

    /// The last place in a text where its key can be cut: the keys of what lies before and behind are its key together,
    /// but for what ends a key.
    fn last_cut(self, text: &str) -> Option<usize> {
        let mut characters = text.char_indices().rev().take(MOST_LOOKED_AT);
        let is_apart = |character| match self.order() {
            Collation::Tailored(language) => language.is_in_no_sequence(character),
            _ => true,
        };
        if !self.pads_spaces() {
            let (at, character) = characters.find(|(_, character)| is_apart(*character))?;
            return Some(at + character.len_utf8());
        }
        // Spaces have a key by what follows them. So the cut is behind a character that has a key by itself.
        let has_own_key = |character: char| {
            let mut letter = [0; 4];
            let letter = character.encode_utf8(&mut letter);
            let (mut alone, mut followed) = (Vec::new(), Vec::new());
            self.sort_key_into(letter, &mut alone);
            alone.pop();
            let is_none = alone.is_empty();
            self.sort_key_into("a", &mut alone);
            self.sort_key_into(&format!("{letter}a"), &mut followed);
            !is_none && alone == followed && is_apart(character)
        };
        let (at, character) = characters.find(|(_, character)| has_own_key(*character))?;
        Some(at + character.len_utf8())
    }

    /// Appends the sort key of the first `limit` elements of `text` and returns how many there were. Elements are codes
    /// and weights under the collations of the Unicode Collation Algorithm (so that equal strings have equal
    /// beginnings, though `æ` is one character and `ae` are two), otherwise characters. [`Collation::Binary`] is not
    /// for text with a limit and counts bytes. Accents and cases have no elements: a beginning is ordered by the
    /// primary weights only.
    pub fn limited_key_into(self, text: &str, limit: usize, key: &mut Vec<u8>) -> usize {
        match self.order() {
            Collation::Utf8mb4_0900_ai_ci
            | Collation::Utf8mb4_0900_as_ci
            | Collation::Utf8mb4_0900_as_cs => unicode_key(text, limit, key),
            Collation::Utf8mb4_unicode_ci => {
                TableWeights::of(Version::V400).key_into(text, limit, key)
            }
            Collation::Utf8mb4_unicode_520_ci => {
                TableWeights::of(Version::V520).key_into(text, limit, key)
            }
            Collation::Tailored(language) => match language.family() {
                Family::Unicode400 => language.weights().key_into(text, limit, key),
                Family::Letters | Family::AccentsAndCases => {
                    language.codes().key_into(text, limit, key)
                }
            },
            Collation::Utf8mb4_general_ci => {
                padded_key(text, limit, general_weight, key);
                text.chars().take(limit).count()
            }
            Collation::Utf8mb4_bin => {
                padded_key(text, limit, |c| c, key);
                text.chars().take(limit).count()
            }
            Collation::Utf8mb4_0900_bin => {
                let end = text.char_indices().nth(limit);
                let kept = end.map_or(text, |(end, _)| &text[..end]);
                code_points_key(kept, key);
                kept.chars().count()
            }
            Collation::OfSet(collation) => collation.key_into(text, limit, key),
            Collation::Binary => {
                let length = text.len().min(limit);
                key.extend_from_slice(&text.as_bytes()[..length]);
                length
            }
        }
    }

    /// Two characters as texts of their own.
    fn compare_characters(self, a: char, b: char) -> Ordering {
        let (mut left, mut right) = ([0; 4], [0; 4]);
        self.compare(a.encode_utf8(&mut left), b.encode_utf8(&mut right))
    }

    /// How much of a prefix of LIKE the sort keys of what matches begin with: all, but where a language has sequences
    /// of letters.
    pub fn settled_prefix(self, prefix: &str) -> &str {
        match self.order() {
            Collation::Tailored(language) => {
                language.in_front_of_sequences(prefix, |a, b| self.compare_characters(a, b).is_eq())
            }
            _ => prefix,
        }
    }

    /// Appends what the sort keys of all strings that start with `prefix` start with, using at most `limit` elements.
    /// Strings that do not match `LIKE 'prefix%'` may start so too.
    pub fn like_prefix_into(self, prefix: &str, limit: usize, key: &mut Vec<u8>) {
        let prefix = self.settled_prefix(prefix);
        if self.pads_spaces() {
            let end = prefix
                .char_indices()
                .nth(limit)
                .map_or(prefix.len(), |(at, _)| at);
            self.limited_key_into(prefix[..end].trim_end_matches(' '), limit, key);
            debug_assert_eq!(key.last(), Some(&PAD_END));
            key.pop();
        } else {
            self.limited_key_into(prefix, limit, key);
        }
    }

    /// The order of two strings of any length, as [`sort_key_until`](Self::sort_key_until).
    pub fn compare_until(self, a: &str, b: &str, is_over: &dyn Fn() -> bool) -> Option<Ordering> {
        let has_keys = !matches!(self, Collation::Utf8mb4_0900_bin | Collation::Binary);
        if a.len().max(b.len()) <= STRETCH_BYTES || !has_keys {
            return Some(self.compare(a, b));
        }
        let (mut key_a, mut key_b) = (
            Vec::with_capacity(a.len() + 8),
            Vec::with_capacity(b.len() + 8),
        );
        self.sort_key_until(a, &mut key_a, is_over)?;
        self.sort_key_until(b, &mut key_b, is_over)?;
        Some(key_a.cmp(&key_b))
    }

    /// The order of two strings.
    pub fn compare(self, a: &str, b: &str) -> Ordering {
        match self {
            Collation::Binary | Collation::Utf8mb4_0900_bin => a.as_bytes().cmp(b.as_bytes()),
            Collation::Utf8mb4_0900_ai_ci if a.is_ascii() && b.is_ascii() => compare_ascii(a, b),
            _ if a == b => Ordering::Equal,
            _ => {
                let (mut key_a, mut key_b) = (
                    Vec::with_capacity(a.len() + 8),
                    Vec::with_capacity(b.len() + 8),
                );
                self.sort_key_into(a, &mut key_a);
                self.sort_key_into(b, &mut key_b);
                key_a.cmp(&key_b)
            }
        }
    }
}

/// Appends the key under `utf8mb4_0900_bin`.
fn code_points_key(text: &str, key: &mut Vec<u8>) {
    key.reserve(text.len());
    for byte in text.bytes() {
        match byte {
            0..=ESCAPE => key.extend_from_slice(&[ESCAPE, byte + 1]),
            byte => key.push(byte),
        }
    }
}

/// The text of such a key.
pub fn decode_code_points(key: &[u8], text: &mut Vec<u8>) {
    let mut bytes = key.iter();
    while let Some(byte) = bytes.next() {
        text.push(match *byte {
            ESCAPE => bytes
                .next()
                .map_or(ESCAPE, |escaped| escaped.saturating_sub(1)),
            byte => byte,
        });
    }
}

/// A character, and another one behind it: at the end of a text, under PAD SPACE, a space equals a character without
/// weights.
pub fn not_last(character: char, bytes: &mut [u8; 5]) -> &str {
    let length = character.encode_utf8(bytes).len();
    bytes[length] = b'|';
    // Both are characters.
    std::str::from_utf8(&bytes[..=length]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::unicode_primary::{ascii_of_codes, is_plain_ascii};
    use Collation::*;

    fn key(collation: Collation, text: &str) -> Vec<u8> {
        let mut key = Vec::new();
        collation.sort_key_into(text, &mut key);
        key
    }

    fn assert_equal(collation: Collation, a: &str, b: &str) {
        assert_eq!(
            key(collation, a),
            key(collation, b),
            "{a:?} and {b:?} under {}",
            collation.name()
        );
        assert_eq!(collation.compare(a, b), Ordering::Equal);
    }

    fn assert_ascending(collation: Collation, texts: &[&str]) {
        for pair in texts.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            assert!(
                key(collation, a) < key(collation, b),
                "{a:?} before {b:?} under {}",
                collation.name()
            );
            assert_eq!(
                collation.compare(a, b),
                Ordering::Less,
                "{a:?} before {b:?} under {}",
                collation.name()
            );
        }
    }

    #[test]
    fn the_default_ignores_case_and_accents_but_not_trailing_spaces() {
        for (a, b) in [
            ("AIR REG", "air reg"),
            ("café", "CAFE\u{301}"),
            ("Straße", "STRASSE"),
            ("Æther", "aether"),
            ("ﬁn", "fin"),
            ("Ａ１", "a1"),
            ("Ελλάς", "ΕΛΛΑΣ"),
            ("한국", "한국"),
            ("a\u{0}b", "ab"),
        ] {
            assert_equal(Utf8mb4_0900_ai_ci, a, b);
        }
        assert_ascending(Utf8mb4_0900_ai_ci, &["", " ", "a", "a ", "a b", "ab"]);
    }

    #[test]
    fn accents_and_cases_count_where_all_else_is_equal() {
        assert_equal(Utf8mb4_0900_as_ci, "CAFÉ", "cafe\u{301}");
        assert_equal(Utf8mb4_0900_as_cs, "café", "cafe\u{301}");
        assert_equal(Utf8mb4_0900_as_cs, "a\u{0}b", "ab");
        assert_ascending(
            Utf8mb4_0900_as_ci,
            &[
                "", " ", "a", "á", "à", "a ", "ab", "áb", "ac", "ae", "æ", "z",
            ],
        );
        assert_ascending(
            Utf8mb4_0900_as_cs,
            &[
                "a", "A", "á", "Á", "à", "ab", "aB", "Ab", "AB", "áb", "ac", "z", "Z",
            ],
        );
        let small = "brand#45, in person";
        assert_eq!(
            key(Utf8mb4_0900_as_cs, small),
            key(Utf8mb4_0900_ai_ci, small)
        );
    }

    #[test]
    fn the_default_orders_as_the_unicode_collation_algorithm() {
        // The order of ASCII in MySQL's weights of UCA 9.0.
        let ascii =
            "\t \n _ - , ; : ! ? . ' \" ( ) [ ] { } @ * / \\ & # % ` ^ + < = > | ~ $ 0 1 9 a b y z";
        let mut texts: Vec<&str> = ascii.split(' ').collect();
        texts.insert(2, " ");
        assert_ascending(Utf8mb4_0900_ai_ci, &texts);
        assert_ascending(
            Utf8mb4_0900_ai_ci,
            &[
                "$", "€", "0", "a", "ɐ", "b", "ɓ", "z", "α", "β", "я", "あ", "一", "丁",
            ],
        );
        assert_ascending(Utf8mb4_0900_ai_ci, &["~", "😀", "$"]);
    }

    #[test]
    fn the_key_of_a_text_is_the_keys_of_its_characters() {
        let text =
            "Brand#45 deliver in person\u{1}: 12345678\u{7}é, straight to the door of Straße 17 ß";
        let characters: Vec<char> = text.chars().collect();
        for start in 0..characters.len() {
            for end in start..characters.len() {
                let part: String = characters[start..end].iter().collect();
                let each: Vec<u8> = characters[start..end]
                    .iter()
                    .flat_map(|character| key(Utf8mb4_0900_ai_ci, &character.to_string()))
                    .collect();
                assert_eq!(key(Utf8mb4_0900_ai_ci, &part), each, "{part:?}");
                // All codes of this text have one byte.
                for limit in [0, 1, 7, 8, 9, 16, 20] {
                    let mut limited = Vec::new();
                    let count = Utf8mb4_0900_ai_ci.limited_key_into(&part, limit, &mut limited);
                    assert_eq!(count, each.len().min(limit), "{part:?}");
                    assert_eq!(limited, each[..count], "{part:?}");
                }
            }
        }
    }

    #[test]
    fn a_byte_of_an_ascii_code_gives_the_small_letter_back() {
        let text = "brand#45 deliver in person";
        assert!(is_plain_ascii(text.as_bytes()));
        let back: Vec<u8> = key(Utf8mb4_0900_ai_ci, &text.to_uppercase())
            .into_iter()
            .map(|code| ascii_of_codes()[usize::from(code)])
            .collect();
        assert_eq!(back, text.as_bytes());
        assert!(!is_plain_ascii("é".as_bytes()) && !is_plain_ascii(b"\x07"));
    }

    #[test]
    fn the_key_of_a_long_text_is_made_in_pieces() {
        let endings = [
            "",
            "x",
            "   ",
            " \u{a0} ",
            "\n",
            "ß ",
            "\u{301}",
            " \u{301} ",
        ];
        let piece = "The quick ä  brown\tfox  æ ";
        for collation in OF_NO_LANGUAGE {
            for (text, count) in [
                (piece, 8000),
                ("a ", 70_000),
                (" ", 70_000),
                ("\u{301}", 70_000),
            ] {
                for ending in endings {
                    for shift in 0..4 {
                        let text = "y".repeat(shift) + &text.repeat(count) + ending;
                        let (mut pieces, mut key) = (Vec::new(), Vec::new());
                        collation.sort_key_into(&text, &mut key);
                        let made = collation.sort_key_until(&text, &mut pieces, &|| false);
                        assert!(made.is_some() && pieces == key, "{collation:?} {ending:?}");
                        let same = collation.compare_until(&text, &text, &|| false);
                        assert_eq!(same, Some(Ordering::Equal));
                    }
                }
            }
        }
        let text = "a".repeat(STRETCH_BYTES + 1);
        let collation = Collation::Utf8mb4_0900_ai_ci;
        assert_eq!(
            collation.sort_key_until(&text, &mut Vec::new(), &|| true),
            None
        );
        assert_eq!(collation.compare_until(&text, "a", &|| true), None);
    }

    #[test]
    fn no_piece_of_a_long_text_ends_within_a_letter() {
        for name in ["utf8mb4_czech_ci", "utf8mb4_cs_0900_as_cs"] {
            let collation = Collation::parse(name).expect(name);
            for shift in 0..3 {
                for (piece, count) in [("ach", 30_000), ("ch", 40_000)] {
                    let text = "y".repeat(shift) + &piece.repeat(count);
                    let (mut pieces, mut key) = (Vec::new(), Vec::new());
                    collation.sort_key_into(&text, &mut key);
                    let made = collation.sort_key_until(&text, &mut pieces, &|| false);
                    assert!(made.is_some() && pieces == key, "{name} {piece} {shift}");
                }
            }
        }
    }

    #[test]
    fn bin_compares_code_points_and_pads_with_spaces() {
        assert_equal(Utf8mb4_bin, "a", "a   ");
        assert_ascending(
            Utf8mb4_bin,
            &[
                "\0", "\t", " \t", "", "A", "a\0", "a\t", "a \t", "a", "a b", "ab", "b", "é", "一",
                "😀",
            ],
        );
    }

    #[test]
    fn the_newer_bin_compares_code_points_and_spaces() {
        let ascending = [
            "", "\0", "\0\0", "\0\u{1}", "\u{1}", "\u{1}a", "\u{2}", "\t", " ", "A", "a", "a\0",
            "a\u{1}", "a\t", "a ", "a  ", "a b", "ab", "b", "é", "一", "😀",
        ];
        assert_ascending(Utf8mb4_0900_bin, &ascending);
        for text in ascending {
            let sort_key = key(Utf8mb4_0900_bin, text);
            assert!(!sort_key.contains(&0), "{text:?}");
            let mut again = Vec::new();
            decode_code_points(&sort_key, &mut again);
            assert_eq!(again, text.as_bytes());
        }
    }

    #[test]
    fn general_ci_compares_base_letters() {
        for (a, b) in [
            ("Straße", "STRASE"),
            ("café", "CAFE"),
            ("x  ", "X"),
            ("😀", "🙈"),
        ] {
            assert_equal(Utf8mb4_general_ci, a, b);
        }
        assert_ascending(
            Utf8mb4_general_ci,
            &["a\t", "A", "a b", "AB", "é_", "_", "я", "あ"],
        );
    }

    /// Weights of `æ`, `ø` and `ł` are those of the versions, as are those of characters that came later.
    #[test]
    fn older_versions_of_unicode_pad_with_spaces_and_know_other_letters() {
        for collation in [Utf8mb4_unicode_ci, Utf8mb4_unicode_520_ci] {
            for (a, b) in [
                ("café  ", "CAFE\u{301}"),
                ("Straße", "STRASSE"),
                ("a\u{0}b", "ab"),
                ("ﬁn", "fin"),
                ("", "  "),
                ("a\u{a0}", "a"),
                ("Ａ１", "a1"),
            ] {
                assert_equal(collation, a, b);
            }
            assert_ascending(
                collation,
                &[
                    "\t", "", "a\t", "a \t", "a", "a b", "ab", "b", "z", "α", "я", "あ", "一", "丁",
                ],
            );
        }
        assert_ascending(
            Utf8mb4_unicode_ci,
            &["ae", "af", "æ", "b", "d", "đ", "l", "ł", "m", "o", "ø", "p"],
        );
        assert_equal(Utf8mb4_unicode_ci, "😀", "🙈");
        for (a, b) in [("æ", "ae"), ("ø", "o"), ("ł", "l"), ("đ", "d")] {
            assert_equal(Utf8mb4_unicode_520_ci, a, b);
        }
        assert_ascending(Utf8mb4_unicode_520_ci, &["𐌰", "一", "😀", "🙈"]);
    }

    #[test]
    fn a_like_prefix_begins_the_keys_of_what_it_matches() {
        for collation in Collation::ALL {
            for (prefix, text) in [
                ("abc", "abcdef"),
                ("ab ", "ab "),
                ("ab ", "ab \t"),
                ("é", "été"),
                ("", "x"),
                ("a\tb", "a\tbc"),
            ] {
                let mut bound = Vec::new();
                collation.like_prefix_into(prefix, usize::MAX, &mut bound);
                assert!(
                    key(collation, text).starts_with(&bound),
                    "{text:?} like {prefix:?}% under {}",
                    collation.name()
                );
            }
        }
    }

    #[test]
    fn equal_strings_have_equal_beginnings() {
        let limited = |text, limit| {
            let mut key = Vec::new();
            let count = Utf8mb4_0900_ai_ci.limited_key_into(text, limit, &mut key);
            (key, count)
        };
        for limit in 0..5 {
            assert_eq!(limited("æxé", limit), limited("AEXE", limit));
        }
        assert_eq!(limited("abc", 2).1, 2);
        assert_eq!(limited("ab", 9).1, 2);
    }

    #[test]
    fn letters_that_decompose_are_letters_of_their_own_where_the_tables_say_so() {
        let equal = |collation, a: &str, b: &str| key(collation, a) == key(collation, b);
        for (a, b) in [
            ("й", "и"),
            ("آ", "ا"),
            ("ؤ", "و"),
            ("ำ", "า"),
            ("“", "\""),
            ("’", "'"),
        ] {
            assert!(!equal(Utf8mb4_0900_ai_ci, a, b), "{a} {b}");
            assert!(!equal(Utf8mb4_0900_as_cs, a, b), "{a} {b}");
        }
        for (a, b) in [
            ("é", "e"),
            ("ё", "е"),
            ("가", "\u{1100}\u{1161}"),
            ("が", "か"),
            ("ß", "ss"),
        ] {
            assert!(equal(Utf8mb4_0900_ai_ci, a, b), "{a} {b}");
        }
        for (a, b) in [("й", "и"), ("が", "か"), ("≠", "="), ("क़", "क")] {
            assert!(!equal(Utf8mb4_general_ci, a, b), "{a} {b}");
        }
        for (a, b) in [("é", "E"), ("ё", "Е"), ("ß", "s"), ("ϲ", "ς"), ("ά", "Α")] {
            assert!(equal(Utf8mb4_general_ci, a, b), "{a} {b}");
        }
        // Newer than the tables.
        assert!(!equal(Utf8mb4_0900_ai_ci, "a\u{1AC1}", "a"));
    }

    /// Sort keys are on disk. If this changes, indexes on strings must be rebuilt: it needs a new file format, not only
    /// new numbers here.
    #[test]
    fn the_sort_keys_of_the_basic_multilingual_plane_stay_as_they_are() {
        let digest = |collation| {
            // FNV-1a.
            let mut hash = 0xCBF2_9CE4_8422_2325u64;
            for character in '\0'..='\u{ffff}' {
                for byte in key(collation, character.encode_utf8(&mut [0; 4])) {
                    hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
                }
            }
            hash
        };
        let digests = [digest(Utf8mb4_0900_ai_ci), digest(Utf8mb4_general_ci)];
        assert_eq!(
            digests,
            [8_960_770_385_406_932_387, 17_851_877_093_925_709_904]
        );
    }
}
