//! Collations: which strings are equal, and in which order they come.
//!
//! A collation turns a string into a *sort key*, bytes whose memcmp order is the collation's order and whose equality
//! is the collation's equality. Indexes store sort keys; comparisons, groups and joins of strings use them. The keys
//! are written to disk, so the schemes below are part of the file format.
//!
//! Each scheme encodes character by character, because index prefixes and `LIKE 'abc%'` need the key of a string's
//! beginning to be the beginning of the string's key.
//!
//! **`utf8mb4_0900_ai_ci`** compares primary weights of the Unicode Collation Algorithm: no case, no accents, trailing
//! spaces count. The weights are ICU's (root collation, punctuation not ignored). Written plainly they would take two
//! to four bytes. But nearly all text is nearly all ASCII, whose characters fall into 74 classes of equal weight. So
//! class number r of ASCII has the one-byte code 3 + 2r. Any other character takes the even code of the gap in which
//! its weight lies, ICU's weight bytes (all above 0x01), and 0x01:
//!
//! ```text
//!   weight order   ...  9     a     (ɐ)            b    ...  z     (α)            (一)
//!   code                3+2r  5+2r  6+2r w w 01    7+2r      95    96 w w 01      96 w w w 01
//! ```
//!
//! Characters without a primary weight (controls, combining accents) have no code. A character whose weights are those
//! of several others has their codes: `é` those of `e`, `ß` those of `ss`, `æ` those of `ae`. No code contains 0x00, so
//! that byte can end a key part. Codes outside of ASCII are computed once per block of 256 characters and kept.
//!
//! **`utf8mb4_bin`** compares code points, **`utf8mb4_general_ci`** characters without accent and in upper case; both
//! encode as UTF-8. They are PAD SPACE: strings compare as if followed by spaces without end, so the end of a string
//! comes after a control character but before a letter. Trailing spaces are dropped and 0x01 ends the key; a control
//! character, with the spaces in front of it, is preceded by 0x00:
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
//! **`binary`** is the bytes themselves.

use std::cmp::Ordering;
use std::sync::OnceLock;

use icu_collator::options::{CollatorOptions, Strength};
use icu_collator::{Collator, CollatorBorrowed, CollatorPreferences};
use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_normalizer::properties::{CanonicalDecompositionBorrowed, Decomposed};

use crate::text::unicode_weights::{Version, Weights as TableWeights};
use crate::text::{PAD_BELOW, PAD_END};

/// Ends the code of a character outside of ASCII.
const CODE_END: u8 = 0x01;
/// Stands in front of the two lowest characters under `utf8mb4_0900_bin`, each raised by one.
const ESCAPE: u8 = 0x01;
/// The key of a longer text is made in pieces of so many bytes.
const STRETCH_BYTES: usize = 64 << 10;
/// Characters at the end of a piece among which one is sought behind which a key can be cut.
const MOST_LOOKED_AT: usize = 1024;
/// Code of the first class of ASCII characters; the gap before it is one less.
const FIRST_CODE: u8 = 3;

/// The order of a string column.
#[allow(non_camel_case_types, reason = "the names are MySQL's own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Collation {
    /// Case- and accent-insensitive by the Unicode Collation Algorithm; trailing spaces count. The default.
    #[default]
    Utf8mb4_0900_ai_ci,
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
}

impl Collation {
    /// All collations.
    pub const ALL: [Collation; 7] = [
        Collation::Utf8mb4_0900_ai_ci,
        Collation::Utf8mb4_general_ci,
        Collation::Utf8mb4_unicode_ci,
        Collation::Utf8mb4_unicode_520_ci,
        Collation::Utf8mb4_bin,
        Collation::Utf8mb4_0900_bin,
        Collation::Binary,
    ];

    /// MySQL's name.
    pub fn name(self) -> &'static str {
        match self {
            Collation::Utf8mb4_0900_ai_ci => "utf8mb4_0900_ai_ci",
            Collation::Utf8mb4_general_ci => "utf8mb4_general_ci",
            Collation::Utf8mb4_unicode_ci => "utf8mb4_unicode_ci",
            Collation::Utf8mb4_unicode_520_ci => "utf8mb4_unicode_520_ci",
            Collation::Utf8mb4_bin => "utf8mb4_bin",
            Collation::Utf8mb4_0900_bin => "utf8mb4_0900_bin",
            Collation::Binary => "binary",
        }
    }

    /// MySQL's number, as it goes over the wire.
    pub fn id(self) -> u16 {
        match self {
            Collation::Utf8mb4_0900_ai_ci => 255,
            Collation::Utf8mb4_general_ci => 45,
            Collation::Utf8mb4_unicode_ci => 224,
            Collation::Utf8mb4_unicode_520_ci => 246,
            Collation::Utf8mb4_bin => 46,
            Collation::Utf8mb4_0900_bin => 309,
            Collation::Binary => 63,
        }
    }

    /// The collation of that number.
    pub fn of_id(id: u64) -> Option<Collation> {
        Self::ALL
            .into_iter()
            .find(|collation| u64::from(collation.id()) == id)
    }

    /// MySQL's name of the character set that it belongs to.
    pub fn character_set(self) -> &'static str {
        match self {
            Collation::Binary => "binary",
            _ => "utf8mb4",
        }
    }

    /// The collation of that name, without regard to case.
    pub fn parse(name: &str) -> Option<Collation> {
        Self::ALL
            .into_iter()
            .find(|collation| collation.name().eq_ignore_ascii_case(name))
    }

    /// As [`parse`](Self::parse), and what stands for the collations of `utf8mb3`, which is also called `utf8`: a part
    /// of `utf8mb4`.
    pub fn parse_with_aliases(name: &str) -> Option<Collation> {
        Self::parse(name).or_else(|| {
            let (set, rest) = name.split_once('_')?;
            let is_part = ["utf8", "utf8mb3"]
                .iter()
                .any(|part| set.eq_ignore_ascii_case(part));
            is_part.then(|| Self::parse(&format!("utf8mb4_{rest}")))?
        })
    }

    /// The collation of columns that is most like the one of this name: in whether case, accents and trailing spaces
    /// count.
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
        !matches!(
            self,
            Collation::Utf8mb4_0900_ai_ci | Collation::Utf8mb4_0900_bin | Collation::Binary
        )
    }

    /// True if strings are equal only if all of their characters are the same, but for spaces at the end.
    #[inline]
    pub fn is_exact(self) -> bool {
        matches!(
            self,
            Collation::Utf8mb4_bin | Collation::Utf8mb4_0900_bin | Collation::Binary
        )
    }

    /// True if strings that differ in case are equal.
    #[inline]
    pub fn ignores_case(self) -> bool {
        !self.is_exact()
    }

    /// Appends the sort key of `text`: memcmp on sort keys is the collation's order, equal keys are equal strings.
    pub fn sort_key_into(self, text: &str, key: &mut Vec<u8>) {
        match self {
            Collation::Utf8mb4_0900_ai_ci => {
                unicode_key(text, usize::MAX, key);
            }
            Collation::Utf8mb4_general_ci => padded_key(text, usize::MAX, general_weight, key),
            Collation::Utf8mb4_unicode_ci | Collation::Utf8mb4_unicode_520_ci => {
                self.limited_key_into(text, usize::MAX, key);
            }
            Collation::Utf8mb4_bin => padded_key(text, usize::MAX, |c| c, key),
            Collation::Utf8mb4_0900_bin => code_points_key(text, key),
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
            self.sort_key_into(&rest[..cut], key);
            if self.pads_spaces() {
                debug_assert_eq!(key.last(), Some(&PAD_END));
                key.pop();
            }
            rest = &rest[cut..];
        }
        self.sort_key_into(rest, key);
        Some(())
    }

    /// The last place in a text where its key can be cut: the keys of what lies before and behind are its key together,
    /// but for what ends a key.
    fn last_cut(self, text: &str) -> Option<usize> {
        if !self.pads_spaces() {
            return Some(text.len());
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
            !is_none && alone == followed
        };
        let mut characters = text.char_indices().rev().take(MOST_LOOKED_AT);
        let (at, character) = characters.find(|(_, character)| has_own_key(*character))?;
        Some(at + character.len_utf8())
    }

    /// Appends the sort key of the first `limit` elements of `text` and returns how many there were. Elements are codes
    /// and weights under the collations of the Unicode Collation Algorithm (so that equal strings have equal
    /// beginnings, though `æ` is one character and `ae` are two), otherwise characters. [`Collation::Binary`] is not
    /// for text with a limit and counts bytes.
    pub fn limited_key_into(self, text: &str, limit: usize, key: &mut Vec<u8>) -> usize {
        match self {
            Collation::Utf8mb4_0900_ai_ci => unicode_key(text, limit, key),
            Collation::Utf8mb4_unicode_ci => {
                TableWeights::of(Version::V400).key_into(text, limit, key)
            }
            Collation::Utf8mb4_unicode_520_ci => {
                TableWeights::of(Version::V520).key_into(text, limit, key)
            }
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
            Collation::Binary => {
                let length = text.len().min(limit);
                key.extend_from_slice(&text.as_bytes()[..length]);
                length
            }
        }
    }

    /// Appends what the sort keys of all strings that start with `prefix` start with, using at most `limit` elements.
    /// Strings that do not match `LIKE 'prefix%'` may start so too.
    pub fn like_prefix_into(self, prefix: &str, limit: usize, key: &mut Vec<u8>) {
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
            Collation::Utf8mb4_0900_ai_ci if a.is_ascii() && b.is_ascii() => {
                let codes = &weights().ascii;
                let code = |byte: &u8| Some(codes[usize::from(*byte)]).filter(|code| *code != 0);
                a.as_bytes()
                    .iter()
                    .filter_map(code)
                    .cmp(b.as_bytes().iter().filter_map(code))
            }
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

/// For each byte of the sort key of ASCII text, a character of that code in lower case; 0: not such a byte.
#[inline]
pub fn ascii_of_codes() -> &'static [u8; 256] {
    &weights().ascii_of_code
}

/// True if the sort key of `text` is one code per character, so that it says the text except for the case.
#[inline]
pub fn is_plain_ascii(text: &[u8]) -> bool {
    let codes = &weights().ascii;
    text.iter()
        .all(|byte| *byte < 128 && codes[usize::from(*byte)] != 0)
}

/// Whether one of the bytes is 0.
fn has_zero(bytes: [u8; 8]) -> bool {
    let (ones, tops) = (u64::MAX / 255, u64::MAX / 255 * 128);
    let word = u64::from_ne_bytes(bytes);
    word.wrapping_sub(ones) & !word & tops != 0
}

/// Appends the codes of `text` under `utf8mb4_0900_ai_ci`, at most `limit` of them; returns how many.
fn unicode_key(text: &str, limit: usize, key: &mut Vec<u8>) -> usize {
    let weights = weights();
    let mut count = 0;
    key.reserve(text.len());
    let mut rest = text;
    while count < limit {
        // Runs of ASCII need no decoding of UTF-8. Eight bytes at a time, while each of them has a code.
        let mut length = 0;
        while let Some(bytes) = rest.as_bytes()[length..].first_chunk::<8>()
            && limit - count >= 8
            && bytes.is_ascii()
        {
            let codes = bytes.map(|byte| weights.ascii[usize::from(byte & 0x7f)]);
            if has_zero(codes) {
                break;
            }
            key.extend_from_slice(&codes);
            length += 8;
            count += 8;
        }
        let run = rest.as_bytes()[length..]
            .iter()
            .take(limit - count)
            .take_while(|byte| byte.is_ascii());
        for byte in run {
            length += 1;
            let code = weights.ascii[usize::from(*byte)];
            if code != 0 {
                key.push(code);
                count += 1;
            }
        }
        rest = &rest[length..];
        let mut characters = rest.chars();
        let Some(character) = characters.next() else {
            break;
        };
        if !character.is_ascii() {
            rest = characters.as_str();
            count += push_codes(weights.codes(character), limit - count, key);
        }
    }
    count
}

/// Appends at most `limit` of the codes in `codes`; returns how many.
fn push_codes(codes: &[u8], limit: usize, key: &mut Vec<u8>) -> usize {
    let mut count = 0;
    let mut rest = codes;
    while count < limit && !rest.is_empty() {
        // Odd bytes are codes of ASCII classes, even ones begin a longer code.
        let length = match rest[0] % 2 {
            1 => 1,
            _ => rest
                .iter()
                .position(|byte| *byte == CODE_END)
                .map_or(rest.len(), |end| end + 1),
        };
        key.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
        count += 1;
    }
    count
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

/// Appends the key of at most `limit` characters under a PAD SPACE collation.
fn padded_key(text: &str, limit: usize, weight: impl Fn(char) -> char, key: &mut Vec<u8>) {
    let mut spaces = 0;
    key.reserve(text.len() + 1);
    for character in text.chars().take(limit) {
        let character = weight(character);
        if character == ' ' {
            spaces += 1;
            continue;
        }
        if character < ' ' {
            key.push(PAD_BELOW);
        }
        key.resize(key.len() + spaces, b' ');
        spaces = 0;
        if character.is_ascii() {
            key.push(character as u8);
        } else {
            key.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    key.push(PAD_END);
}

/// What a character compares as under `utf8mb4_general_ci`: its base letter in upper case.
/// All characters beyond the Basic Multilingual Plane are equal.
fn general_weight(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_uppercase();
    }
    let mut base = character;
    if !('\u{ac00}'..='\u{d7a3}').contains(&base) {
        while let Decomposed::Singleton(next) | Decomposed::Expansion(next, _) =
            CanonicalDecompositionBorrowed::new().decompose(base)
        {
            base = next;
        }
    }
    if base == 'ß' {
        return 'S';
    }
    let mut upper = base.to_uppercase();
    let weight = match (upper.next(), upper.next()) {
        (Some(single), None) => single,
        _ => base,
    };
    if weight > '\u{ffff}' {
        '\u{fffd}'
    } else {
        weight
    }
}

/// Codes of the characters `block * 256 ..` under `utf8mb4_0900_ai_ci`.
struct CodeBlock {
    /// Where the codes of each character begin in `codes`, and the end.
    starts: [u16; 257],
    codes: Box<[u8]>,
}

/// All characters are below this; so many blocks cover them.
const BLOCKS: usize = 0x11_0000 / 256;

/// The weights of `utf8mb4_0900_ai_ci`.
struct Weights {
    /// Code of each ASCII character; 0: ignored.
    ascii: [u8; 128],
    ascii_of_code: [u8; 256],
    /// ICU's weights of the classes of ASCII, ascending, and one character of each.
    classes: Vec<(Vec<u8>, char)>,
    collator: CollatorBorrowed<'static>,
    blocks: Box<[OnceLock<CodeBlock>]>,
}

#[inline]
fn weights() -> &'static Weights {
    static WEIGHTS: OnceLock<Weights> = OnceLock::new();
    WEIGHTS.get_or_init(Weights::new)
}

impl Weights {
    fn new() -> Weights {
        let mut options = CollatorOptions::default();
        options.strength = Some(Strength::Primary);
        let collator = Collator::try_new(CollatorPreferences::default(), options)
            .expect("the root collation is compiled into the program");

        let ascii_keys: Vec<Vec<u8>> = (0..128u8)
            .map(|byte| icu_key(&collator, &char::from(byte).to_string()))
            .collect();
        let mut classes: Vec<(Vec<u8>, char)> = Vec::new();
        // Lower case last, so that a class is represented by its small letter.
        for byte in 0..128u8 {
            let key = &ascii_keys[usize::from(byte)];
            if key.is_empty() {
                continue;
            }
            match classes.iter_mut().find(|(class, _)| class == key) {
                Some(class) => class.1 = char::from(byte),
                None => classes.push((key.clone(), char::from(byte))),
            }
        }
        classes.sort();
        let mut ascii = [0; 128];
        let mut ascii_of_code = [0; 256];
        for (rank, (class, representative)) in classes.iter().enumerate() {
            let code = class_code(rank);
            ascii_of_code[usize::from(code)] = *representative as u8;
            for byte in 0..128 {
                if ascii_keys[byte] == *class {
                    ascii[byte] = code;
                }
            }
        }
        let blocks = (0..BLOCKS).map(|_| OnceLock::new()).collect();
        Weights {
            ascii,
            ascii_of_code,
            classes,
            collator,
            blocks,
        }
    }

    /// The codes of a character outside of ASCII.
    fn codes(&self, character: char) -> &[u8] {
        let (block, at) = (character as usize / 256, character as usize % 256);
        let block = self.blocks[block].get_or_init(|| self.code_block(block as u32));
        &block.codes[usize::from(block.starts[at])..usize::from(block.starts[at + 1])]
    }

    fn code_block(&self, block: u32) -> CodeBlock {
        let mut starts = [0; 257];
        let mut codes = Vec::new();
        for at in 0..256 {
            // Surrogates are no characters and have no codes.
            if let Some(character) = char::from_u32(block * 256 + at) {
                self.push_character(character, &mut codes);
            }
            starts[at as usize + 1] = codes.len() as u16;
        }
        CodeBlock {
            starts,
            codes: codes.into(),
        }
    }

    fn push_character(&self, character: char, codes: &mut Vec<u8>) {
        if character.is_ascii() {
            let code = self.ascii[character as usize];
            if code != 0 {
                codes.push(code);
            }
            return;
        }
        let key = icu_key(&self.collator, character.encode_utf8(&mut [0; 4]));
        if key.is_empty() {
            return;
        }
        if let Some(text) = self.as_ascii(&key) {
            codes.extend(text.bytes().map(|byte| self.ascii[usize::from(byte)]));
            return;
        }
        let decomposed = DecomposingNormalizerBorrowed::new_nfkd()
            .normalize(character.encode_utf8(&mut [0; 4]))
            .into_owned();
        let is_itself = decomposed.chars().eq([character]);
        if !is_itself && icu_key(&self.collator, &decomposed) == key {
            for part in decomposed.chars() {
                self.push_character(part, codes);
            }
            return;
        }
        let rank = self.classes.partition_point(|(class, _)| *class < key);
        codes.push(class_code(rank) - 1);
        codes.extend_from_slice(&key);
        codes.push(CODE_END);
    }

    /// ASCII text with the weights `key`, if there is one.
    fn as_ascii(&self, key: &[u8]) -> Option<String> {
        let mut text = String::new();
        let mut rest = key;
        while !rest.is_empty() {
            // Weights are prefix-free: at most one class matches.
            let (class, representative) = self
                .classes
                .iter()
                .find(|(class, _)| rest.starts_with(class))?;
            text.push(*representative);
            rest = &rest[class.len()..];
        }
        (icu_key(&self.collator, &text) == key).then_some(text)
    }
}

fn class_code(rank: usize) -> u8 {
    FIRST_CODE + 2 * rank as u8
}

/// ICU's primary weights of a text, without terminator.
fn icu_key(collator: &CollatorBorrowed<'static>, text: &str) -> Vec<u8> {
    let mut key = Vec::new();
    let Ok(_) = collator.write_sort_key_to(text, &mut key);
    while key.last().is_some_and(|byte| *byte <= CODE_END) {
        key.pop();
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
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
        for collation in Collation::ALL {
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

    /// Sort keys are on disk. If a new version of the Unicode data changes this, indexes on strings must be rebuilt: it
    /// needs a new file format, not a new number here.
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
            [16_595_169_395_977_641_776, 11_450_924_941_082_424_848]
        );
    }
}
