//! Lengths and positions. They count characters, a position from 1; LENGTH counts bytes.

use super::bigint;
use crate::functions::result_array::ints;
use crate::functions::{Function, Length};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict("length", (1, 1), bigint, |call| {
        let bytes = call.bytes(0)?;
        ints(call, |row| Some(bytes.get(row)?.len() as i64))
    })
    .length(Length::Int),
    Function::strict("bit_length", (1, 1), bigint, |call| {
        let bytes = call.bytes(0)?;
        ints(call, |row| Some(bytes.get(row)?.len() as i64 * 8))
    })
    .length(Length::Int),
    Function::strict("character_length", (1, 1), bigint, |call| {
        if call.is_bytes(0) {
            let bytes = call.bytes(0)?;
            return ints(call, |row| Some(bytes.get(row)?.len() as i64));
        }
        let texts = call.text(0)?;
        ints(call, |row| Some(characters(texts.get(row)?) as i64))
    })
    .length(Length::Int),
];

/// Characters of a text; bytes, if it is ASCII, which is found out a word at a time.
pub(super) fn characters(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    }
}

/// Byte position of a character; the end of the text if there are fewer.
pub(super) fn byte_at(text: &str, character: usize) -> usize {
    if text.is_ascii() {
        return character.min(text.len());
    }
    // Characters are counted much faster than they are gone through one by one.
    const COUNTED_BYTES: usize = 4 << 10;
    let (mut rest, mut left) = (text, character);
    while rest.len() > COUNTED_BYTES {
        let (first, others) = rest.split_at(rest.floor_char_boundary(COUNTED_BYTES));
        match left.checked_sub(first.chars().count()) {
            Some(behind) => (rest, left) = (others, behind),
            None => break,
        }
    }
    let at = rest.char_indices().nth(left);
    at.map_or(text.len(), |(at, _)| text.len() - rest.len() + at)
}

pub(super) fn clamp(count: i64, most: usize) -> usize {
    usize::try_from(count).unwrap_or(0).min(most)
}
