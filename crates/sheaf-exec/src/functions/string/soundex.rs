//! SOUNDEX, a code of how a word sounds.

use super::like_first;
use crate::functions::Function;
use crate::functions::result_array::texts;

pub(super) static FUNCTIONS: &[Function] =
    &[Function::strict("soundex", (1, 1), like_first, |call| {
        let (values, turns) = (call.text(0)?, call.turns());
        let of_bytes = call.is_bytes(0);
        texts(call, |row, out| {
            push_soundex(turns.characters(values.get(row)?), of_bytes, out);
            Some(())
        })
    })
    .bytewise()
    .text_of(0, 1)];

/// Knuth's first Soundex code, as MySQL has it: equal neighbours count once even with vowels between them, and the code
/// is as long as the text asks for. Letters outside of A to Z count as vowels, and all characters from U+00C0 on are
/// letters. Bytes have none but those from A to Z.
fn push_soundex(characters: impl Iterator<Item = char>, of_bytes: bool, code: &mut String) {
    const CODES: &[u8; 26] = b"01230120022455012623010202";
    const SHORTEST: usize = 4;
    let code_of = |letter: char| match letter.to_ascii_uppercase() {
        letter @ 'A'..='Z' => char::from(CODES[usize::from(letter as u8 - b'A')]),
        _ => '0',
    };
    let is_letter = |c: &char| c.is_ascii_alphabetic() || !of_bytes && *c >= '\u{c0}';
    let mut letters = characters.filter(is_letter);
    let Some(first) = letters.next() else {
        return;
    };
    code.push(first.to_ascii_uppercase());
    let (mut last, mut length) = (code_of(first), 1);
    for letter in letters {
        let next = code_of(letter);
        if next != '0' && next != last {
            code.push(next);
            (last, length) = (next, length + 1);
        }
    }
    code.extend(std::iter::repeat_n('0', SHORTEST.saturating_sub(length)));
}
