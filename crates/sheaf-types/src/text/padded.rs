//! Sort keys of `utf8mb4_bin` and `utf8mb4_general_ci`: characters as UTF-8, padded with spaces.
//!
//! What a key looks like is told in [`collation`](super::collation).

use icu_normalizer::properties::{CanonicalDecompositionBorrowed, Decomposed};

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

/// What a character compares as under `utf8mb4_general_ci`: its base letter in upper case.
/// All characters beyond the Basic Multilingual Plane are equal.
pub(super) fn general_weight(character: char) -> char {
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
