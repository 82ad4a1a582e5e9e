//! The primary weights of the Unicode Collation Algorithm, and the sort keys of `utf8mb4_0900_ai_ci`.
//!
//! The weights are ICU's (root collation, punctuation not ignored). Written plainly they would take two
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

use std::cmp::Ordering;
use std::sync::OnceLock;

use icu_collator::options::{CollatorOptions, Strength};
use icu_collator::{Collator, CollatorBorrowed, CollatorPreferences};
use icu_normalizer::DecomposingNormalizerBorrowed;

/// Ends the code of a character outside of ASCII.
const CODE_END: u8 = 0x01;
/// Code of the first class of ASCII characters; the gap before it is one less.
const FIRST_CODE: u8 = 3;

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

/// The order of two ASCII texts.
pub(super) fn compare_ascii(a: &str, b: &str) -> Ordering {
    let codes = &weights().ascii;
    let code = |byte: &u8| Some(codes[usize::from(*byte)]).filter(|code| *code != 0);
    a.as_bytes()
        .iter()
        .filter_map(code)
        .cmp(b.as_bytes().iter().filter_map(code))
}

/// Whether one of the bytes is 0.
fn has_zero(bytes: [u8; 8]) -> bool {
    let (ones, tops) = (u64::MAX / 255, u64::MAX / 255 * 128);
    let word = u64::from_ne_bytes(bytes);
    word.wrapping_sub(ones) & !word & tops != 0
}

/// Appends the codes of `text` under `utf8mb4_0900_ai_ci`, at most `limit` of them; returns how many.
pub(super) fn unicode_key(text: &str, limit: usize, key: &mut Vec<u8>) -> usize {
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
