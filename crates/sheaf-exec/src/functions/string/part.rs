//! Functions whose result is a part of their argument: LEFT, RIGHT, SUBSTRING, SUBSTRING_INDEX, and TRIM.

use arrow::array::ArrayRef;
use datafusion_common::Result;

use super::length::{byte_at, characters, clamp};
use super::like_first;
use crate::functions::limits::Turns;
use crate::functions::result_array::parts;
use crate::functions::{Call, Function, Length};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict("substring", (2, 3), like_first, substring)
        .bytewise_but(&[1, 2])
        .whole_numbers(1, 3)
        .text_of(0, 1)
        .key_operand()
        .length(Length::Part),
    Function::strict("left", (2, 2), like_first, |call| {
        part(call, |text, count| (0, clamp(count, characters(text))))
    })
    .bytewise_but(&[1])
    .stops_at_null()
    .whole_numbers(1, 2)
    .text_of(0, 1)
    .length(Length::CutTo(1))
    .key_operand(),
    Function::strict("right", (2, 2), like_first, |call| {
        part(call, |text, count| {
            let all = characters(text);
            (all - clamp(count, all), all)
        })
    })
    .bytewise_but(&[1])
    .whole_numbers(1, 2)
    .text_of(0, 1)
    .length(Length::CutTo(1))
    .key_operand(),
    // Text, characters to remove, and where: 'b' both ends, 'l' the start, 't' the end.
    Function::strict("$trim", (3, 3), like_first, trim)
        .bytewise()
        .text_of(0, 1)
        .key_operand()
        .length(Length::OfOperand(0)),
    Function::strict("ltrim", (1, 1), like_first, |call| {
        slices(call, |text, turns| without_prefixes(text, " ", turns))
    })
    .bytewise()
    .text_of(0, 1)
    .length(Length::OfOperand(0))
    .key_operand(),
    Function::strict("rtrim", (1, 1), like_first, |call| {
        slices(call, |text, turns| without_suffixes(text, " ", turns))
    })
    .bytewise()
    .text_of(0, 1)
    .length(Length::OfOperand(0))
    .key_operand(),
    Function::new("substring_index", (3, 3), like_first, substring_index)
        .bytewise_but(&[2])
        .whole_numbers(2, 3)
        .text_of(0, 1)
        .length(Length::OfOperand(0)),
];

/// The part of each text between two positions that depend on the text and a number.
fn part(call: &Call<'_>, bounds: fn(&str, i64) -> (usize, usize)) -> Result<ArrayRef> {
    let (values, counts) = (call.text(0)?, call.int(1)?);
    parts(call, |row| {
        let text = values.get(row)?;
        let (start, end) = bounds(text, counts.get(row)?);
        Some(&text[byte_at(text, start)..byte_at(text, end)])
    })
}

fn substring(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, positions) = (call.text(0)?, call.int(1)?);
    let lengths = if call.len() == 3 {
        Some(call.int(2)?)
    } else {
        None
    };
    parts(call, |row| {
        let (text, position) = (values.get(row)?, positions.get(row)?);
        let length = match &lengths {
            Some(lengths) => usize::try_from(lengths.get(row)?).unwrap_or(0),
            None => usize::MAX,
        };
        // From the end if negative; 0 is no position.
        let start = match position {
            0 => return Some(""),
            1.. => position as usize - 1,
            _ => match characters(text).checked_sub(position.unsigned_abs() as usize) {
                Some(start) => start,
                None => return Some(""),
            },
        };
        let rest = &text[byte_at(text, start)..];
        Some(&rest[..byte_at(rest, length)])
    })
}

fn substring_index(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, delimiters, counts) = (call.text(0)?, call.text(1)?, call.int(2)?);
    let turns = call.turns();
    parts(call, |row| {
        let (text, delimiter, count) = (values.get(row)?, delimiters.get(row)?, counts.get(row)?);
        if delimiter.is_empty() || count == 0 {
            return Some("");
        }
        let nth = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX) - 1;
        Some(if count > 0 {
            text.match_indices(delimiter)
                .take_while(|_| !turns.is_over())
                .nth(nth)
                .map_or(text, |(at, _)| &text[..at])
        } else {
            text.rmatch_indices(delimiter)
                .take_while(|_| !turns.is_over())
                .nth(nth)
                .map_or(text, |(at, _)| &text[at + delimiter.len()..])
        })
    })
}

fn trim(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, removed, places) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let turns = call.turns();
    parts(call, |row| {
        let (mut text, removed, place) = (values.get(row)?, removed.get(row)?, places.get(row)?);
        if removed.is_empty() {
            return Some(text);
        }
        if place != "t" {
            text = without_prefixes(text, removed, &turns);
        }
        if place != "l" {
            text = without_suffixes(text, removed, &turns);
        }
        Some(text)
    })
}

/// A part of each text.
pub(super) fn slices(
    call: &Call<'_>,
    part: for<'t> fn(&'t str, &Turns<'_>) -> &'t str,
) -> Result<ArrayRef> {
    let (values, turns) = (call.text(0)?, call.turns());
    parts(call, |row| Some(part(values.get(row)?, &turns)))
}

fn without_prefixes<'t>(mut text: &'t str, removed: &str, turns: &Turns<'_>) -> &'t str {
    while !turns.is_over()
        && let Some(rest) = text.strip_prefix(removed)
    {
        text = rest;
    }
    text
}

fn without_suffixes<'t>(mut text: &'t str, removed: &str, turns: &Turns<'_>) -> &'t str {
    while !turns.is_over()
        && let Some(rest) = text.strip_suffix(removed)
    {
        text = rest;
    }
    text
}
