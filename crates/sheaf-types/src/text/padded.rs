//! Sort keys of `utf8mb4_bin` and `utf8mb4_general_ci`: characters as UTF-8, padded with spaces.
//!
//! What a key looks like is told in [`collation`](super::collation).

use std::sync::OnceLock;

use crate::text::{PAD_BELOW, PAD_END};

/// Appends the key of at most `limit` characters under a PAD SPACE collation.
pub(super) fn padded_key(
    text: &str,
    limit: usize,
    weight: impl Fn(char) -> char,
    key: &mut Vec<u8>,
) {
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

/// What a character compares as under `utf8mb4_general_ci`: most letters as their capital ones, those of Latin, Greek
/// and some of Cyrillic without their accents. All characters beyond the Basic Multilingual Plane are equal.
#[inline]
pub(super) fn general_weight(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_uppercase();
    }
    GeneralWeights::get().of(character)
}

/// MySQL's weights, which follow neither a version of Unicode nor its decompositions: `ё` is `е`, but `й` is not `и`,
/// and letters that have got capital ones since Unicode 5 have none. So they are a table, of what is not its own
/// weight, ascending. Numbers are LEB128 varints:
///
/// ```text
///   characters skipped | the weight less the character, zigzag
/// ```
struct GeneralWeights {
    /// The weights of blocks of 256 characters.
    blocks: Vec<Option<Box<[char; 256]>>>,
}

impl GeneralWeights {
    fn get() -> &'static GeneralWeights {
        static WEIGHTS: OnceLock<GeneralWeights> = OnceLock::new();
        WEIGHTS.get_or_init(|| GeneralWeights::read(include_bytes!("general_weights.bin")))
    }

    fn read(bytes: &[u8]) -> GeneralWeights {
        let mut numbers = Vec::new();
        let (mut number, mut shift) = (0u32, 0);
        for byte in bytes {
            number |= u32::from(byte & 0x7F) << shift;
            shift += 7;
            if *byte < 0x80 {
                numbers.push(number);
                (number, shift) = (0, 0);
            }
        }
        let mut blocks: Vec<Option<Box<[char; 256]>>> = vec![None; 256];
        let mut at = 0u32;
        for pair in numbers.chunks_exact(2) {
            at += pair[0];
            let difference = (pair[1] >> 1) as i32 ^ -((pair[1] & 1) as i32);
            let first = at & !0xFF;
            let of_itself = || {
                let each = |place: usize| char::from_u32(first + place as u32).unwrap_or('\0');
                Box::new(std::array::from_fn(each))
            };
            let weight = at.checked_add_signed(difference).and_then(char::from_u32);
            if let (Some(weight), Some(block)) = (weight, blocks.get_mut(at as usize / 256)) {
                block.get_or_insert_with(of_itself)[at as usize % 256] = weight;
            }
            at += 1;
        }
        GeneralWeights { blocks }
    }

    fn of(&self, character: char) -> char {
        let code = character as usize;
        match self.blocks.get(code / 256) {
            Some(Some(block)) => block[code % 256],
            Some(None) => character,
            None => '\u{fffd}',
        }
    }
}
