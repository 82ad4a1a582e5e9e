//! The sort keys of `utf8mb4_0900_ai_ci`, made of the primary weights of the Unicode Collation Algorithm in version
//! 9.0.0.
//!
//! Written plainly, each weight would take two bytes. But nearly all text is nearly all ASCII, whose characters fall
//! into 74 classes of equal weight. So class number r of ASCII has the one-byte code 3 + 2r. Any other weight has the
//! even code of the gap in which it lies, and two bytes above 0x01:
//!
//! ```text
//!   weight order   ...  9     a     (ɐ)         b    ...  z     (α)         (一)
//!   code                3+2r  5+2r  6+2r w w    7+2r      95    96 w w      96 w w 96 w w
//! ```
//!
//! Characters without a primary weight (controls, combining accents) have no code. A character that has several weights
//! has several codes: `ß` those of `ss`, `æ` those of `ae`, an ideograph two of its own. No code contains 0x00, so that
//! byte can end a key part. Codes outside of ASCII are computed once per block of 256 characters and kept.

use std::cmp::Ordering;
use std::sync::OnceLock;

use super::sequences::Sequences;
use super::unicode_weights::{self, Version};

/// Bytes of a code outside of ASCII.
const LONG_CODE: usize = 3;
/// Values of the second and the third of them: 0x02 to 0xFF.
const BYTES: u16 = 254;
/// Second halves of implicit weights are from here on; they come behind all others, from the second number on.
const IMPLICIT_SECOND: u16 = 0x8000;
const IMPLICIT_NUMBER: u16 = 0x6000;
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
            _ => LONG_CODE.min(rest.len()),
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

/// The codes of weights: those of `utf8mb4_0900_ai_ci`, or of a collation of a language that is made of them (see
/// `text/tailoring.rs`).
pub(super) struct Codes {
    /// Code of each ASCII character; 0: ignored, or in a collation of a language none of one byte.
    ascii: [u8; 128],
    ascii_of_code: [u8; 256],
    /// The weights of the classes of ASCII, ascending.
    classes: Vec<u16>,
    table: &'static unicode_weights::Weights,
    blocks: Box<[OnceLock<CodeBlock>]>,
    /// Codes of sequences of characters.
    sequences: Sequences<Vec<u8>>,
}

#[inline]
fn weights() -> &'static Codes {
    static CODES: OnceLock<Codes> = OnceLock::new();
    CODES.get_or_init(|| Codes::of(unicode_weights::Weights::of(Version::V900)))
}

impl Codes {
    pub(super) fn of(table: &'static unicode_weights::Weights) -> Codes {
        // Only in a language has a character of ASCII more than one.
        let mut of_ascii = [None; 128];
        for (byte, weight) in (0u8..).zip(&mut of_ascii) {
            let mut weights = Vec::new();
            table.push_weights(char::from(byte), &mut weights);
            *weight = weights.first().copied().filter(|_| weights.len() == 1);
        }
        let mut classes: Vec<u16> = of_ascii.iter().flatten().copied().collect();
        classes.sort_unstable();
        classes.dedup();
        let (mut ascii, mut ascii_of_code) = ([0; 128], [0; 256]);
        for (byte, weight) in (0u8..).zip(of_ascii) {
            let Some(Ok(rank)) = weight.map(|weight| classes.binary_search(&weight)) else {
                continue;
            };
            let code = class_code(rank);
            ascii[usize::from(byte)] = code;
            // Small letters come last: a class is represented by its small letter.
            ascii_of_code[usize::from(code)] = byte;
        }
        let blocks = (0..BLOCKS).map(|_| OnceLock::new()).collect();
        let mut codes = Codes {
            ascii,
            ascii_of_code,
            classes,
            table,
            blocks,
            sequences: Sequences::default(),
        };
        for (first, rest, weights) in table.sequences().iter() {
            let mut of_sequence = Vec::new();
            for weight in weights {
                codes.push_code(*weight, &mut of_sequence);
            }
            codes.sequences.insert(first, rest, of_sequence);
            if let Some(code) = codes.ascii.get_mut(first as usize) {
                *code = 0;
            }
        }
        codes
    }

    /// Appends the codes of `text`, at most `limit` of them; returns how many.
    pub(super) fn key_into(&self, text: &str, limit: usize, key: &mut Vec<u8>) -> usize {
        let mut count = 0;
        key.reserve(text.len());
        let mut characters = text.chars();
        while count < limit
            && let Some(character) = characters.next()
        {
            match self.ascii.get(character as usize) {
                None | Some(0) => {}
                Some(code) => {
                    key.push(*code);
                    count += 1;
                    continue;
                }
            }
            let codes = match self.sequences.at(character, characters.as_str()) {
                Some((length, codes)) => {
                    characters = characters.as_str()[length..].chars();
                    codes
                }
                None => self.codes(character),
            };
            count += push_codes(codes, limit - count, key);
        }
        count
    }

    /// The codes of any character.
    fn codes(&self, character: char) -> &[u8] {
        let (block, at) = (character as usize / 256, character as usize % 256);
        let block = self.blocks[block].get_or_init(|| self.code_block(block as u32));
        &block.codes[usize::from(block.starts[at])..usize::from(block.starts[at + 1])]
    }

    fn code_block(&self, block: u32) -> CodeBlock {
        let mut starts = [0; 257];
        let mut codes = Vec::new();
        let mut weights = Vec::new();
        for at in 0..256 {
            // Surrogates are no characters and have no codes.
            if let Some(character) = char::from_u32(block * 256 + at) {
                weights.clear();
                self.table.push_weights(character, &mut weights);
                for weight in &weights {
                    self.push_code(*weight, &mut codes);
                }
            }
            starts[at as usize + 1] = codes.len() as u16;
        }
        CodeBlock {
            starts,
            codes: codes.into(),
        }
    }

    fn push_code(&self, weight: u16, codes: &mut Vec<u8>) {
        let rank = match self.classes.binary_search(&weight) {
            Ok(rank) => return codes.push(class_code(rank)),
            Err(rank) => rank,
        };
        let number = match weight.checked_sub(IMPLICIT_SECOND) {
            Some(number) => number + IMPLICIT_NUMBER,
            None => weight,
        };
        let bytes = [number / BYTES, number % BYTES].map(|byte| byte as u8 + 2);
        codes.push(class_code(rank) - 1);
        codes.extend_from_slice(&bytes);
    }
}

fn class_code(rank: usize) -> u8 {
    FIRST_CODE + 2 * rank as u8
}
