//! A text with something else in it: REPLACE, INSERT, REVERSE, and QUOTE.

use arrow::array::ArrayRef;
use datafusion_common::Result;

use super::length::{byte_at, characters};
use super::like_first;
use crate::functions::limits::{TextWriter, Turns};
use crate::functions::result_array::{long_texts, texts};
use crate::functions::{Call, Function, Length};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict("replace", (3, 3), like_first, replace)
        .bytewise()
        .growing()
        .stops_at_null()
        .text_of(0, 1)
        .key_operand(),
    Function::strict("reverse", (1, 1), like_first, reverse)
        .bytewise()
        .text_of(0, 1)
        .length(Length::OfOperand(0))
        .key_operand(),
    Function::new("insert", (4, 4), like_first, insert)
        .bytewise_but(&[1, 2])
        .whole_numbers(1, 3)
        .text_of(0, 1),
    Function::new("quote", (1, 1), like_first, |call| {
        let (values, turns) = (call.text(0)?, call.turns());
        long_texts(call, |row, out| {
            match values.get(row) {
                Some(text) => push_quoted(text, out, &turns),
                // NULL is the word NULL, without quotes.
                None => out.push_str("NULL"),
            }
            Some(())
        })
    })
    .bytewise()
    .text_of(0, 1)
    .repeating(),
];

fn replace(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, from, to) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let turns = call.turns();
    long_texts(call, |row, out| {
        let (text, from, to) = (values.get(row)?, from.get(row)?, to.get(row)?);
        if from.is_empty() {
            out.push_str(text);
            return Some(());
        }
        let mut done = 0;
        for (at, _) in text.match_indices(from) {
            if turns.is_over() {
                break;
            }
            out.push_str(&text[done..at]);
            out.push_str(to);
            done = at + from.len();
        }
        out.push_str(&text[done..]);
        Some(())
    })
}

fn reverse(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, turns) = (call.text(0)?, call.turns());
    texts(call, |row, out| {
        let text = values.get(row)?;
        out.reserve(text.len());
        let backwards = turns.stretches(text).rev();
        backwards.for_each(|text| out.extend(text.chars().rev()));
        Some(())
    })
}

fn insert(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, positions, lengths, inserted) =
        (call.text(0)?, call.int(1)?, call.int(2)?, call.text(3)?);
    long_texts(call, |row, out| {
        let (text, position) = (values.get(row)?, positions.get(row)?);
        let (length, inserted) = (lengths.get(row)?, inserted.get(row)?);
        let all = characters(text);
        if position < 1 || position as usize > all {
            out.push_str(text);
            return Some(());
        }
        let start = position as usize - 1;
        let end = usize::try_from(length).map_or(all, |length| (start + length).min(all));
        out.push_str(&text[..byte_at(text, start)]);
        out.push_str(inserted);
        out.push_str(&text[byte_at(text, end)..]);
        Some(())
    })
}

fn push_quoted(text: &str, out: &mut TextWriter, turns: &Turns<'_>) {
    out.push('\'');
    for stretch in turns.stretches(text) {
        let mut rest = stretch;
        while let Some(at) = rest.find(['\'', '\\', '\0', '\x1a']) {
            out.push_str(&rest[..at]);
            out.push_str(match rest.as_bytes()[at] {
                b'\'' => "\\'",
                b'\\' => "\\\\",
                b'\0' => "\\0",
                _ => "\\Z",
            });
            rest = &rest[at + 1..];
        }
        out.push_str(rest);
    }
    out.push('\'');
}
