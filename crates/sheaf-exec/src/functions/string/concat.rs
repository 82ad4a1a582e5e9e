//! Texts put together: CONCAT, CONCAT_WS, REPEAT, SPACE, and LPAD and RPAD.

use arrow::array::ArrayRef;
use arrow::datatypes::Field;
use datafusion_common::Result;

use super::length::{byte_at, characters};
use super::{check_literals, like_all, like_first, text, text_arguments};
use crate::functions::result_array::{joined_bytes, long_texts};
use crate::functions::types::{bytes_field, takes_bytes, text_field};
use crate::functions::{Call, Function, Length, Operands, VARIADIC};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict("concat", (1, VARIADIC), concat_type, concat)
        .stops_at_null()
        .text_of(0, VARIADIC)
        .length(Length::OfAll)
        .key_operand()
        .repeating(),
    Function::new("concat_ws", (2, VARIADIC), like_all, concat_ws)
        .bytewise()
        .text_of(0, VARIADIC)
        .key_operand()
        .repeating(),
    Function::strict("repeat", (2, 2), like_first, repeat)
        .bytewise_but(&[1])
        .growing()
        .stops_at_null()
        .whole_numbers(1, 2)
        .text_of(0, 1)
        .length(Length::Repeated(1)),
    Function::new("lpad", (3, 3), like_first, |call| pad(call, true))
        .bytewise_but(&[1])
        .growing()
        .whole_numbers(1, 2)
        .text_of(0, 1)
        .length(Length::FilledTo(1)),
    Function::new("rpad", (3, 3), like_first, |call| pad(call, false))
        .bytewise_but(&[1])
        .growing()
        .whole_numbers(1, 2)
        .text_of(0, 1)
        .length(Length::FilledTo(1)),
    Function::strict("space", (1, 1), text, |call| {
        let counts = call.int(0)?;
        long_texts(call, |row, out| {
            let count = counts.get(row)?.max(0) as usize;
            if let Some(out) = out.expected(count) {
                out.extend(std::iter::repeat_n(' ', count));
            }
            Some(())
        })
    })
    .growing()
    .whole_numbers(0, 1)
    .length(Length::FilledTo(0)),
];

fn concat_type(operands: &Operands<'_>) -> Result<Field> {
    match takes_bytes(operands.fields) {
        true => Ok(bytes_field(operands.fields)),
        false => {
            let field = text_field(operands.fields, "concat")?;
            check_literals(operands, &field)?;
            Ok(field)
        }
    }
}

fn concat(call: &Call<'_>) -> Result<ArrayRef> {
    if call.result_type() == &arrow::datatypes::DataType::Binary {
        let parts = (0..call.len())
            .map(|argument| call.bytes_of_set(argument))
            .collect::<Result<Vec<_>>>()?;
        return joined_bytes(call, |row| parts.iter().map(|part| part.get(row)).collect());
    }
    let parts = text_arguments(call)?;
    long_texts(call, |row, out| {
        parts
            .iter()
            .try_for_each(|part| part.get(row).map(|part| out.push_str(part)))
    })
}

/// NULL arguments are skipped; a NULL separator makes the result NULL.
fn concat_ws(call: &Call<'_>) -> Result<ArrayRef> {
    let parts = text_arguments(call)?;
    long_texts(call, |row, out| {
        let separator = parts[0].get(row)?;
        let mut first = true;
        for part in parts[1..].iter().filter_map(|part| part.get(row)) {
            if !first {
                out.push_str(separator);
            }
            first = false;
            out.push_str(part);
        }
        Some(())
    })
}

fn repeat(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, counts) = (call.text(0)?, call.int(1)?);
    long_texts(call, |row, out| {
        let (text, count) = (values.get(row)?, counts.get(row)?);
        let count = usize::try_from(count).unwrap_or(0);
        if let Some(out) = out.expected(text.len().saturating_mul(count))
            && !text.is_empty()
        {
            *out = text.repeat(count);
        }
        Some(())
    })
}

fn pad(call: &Call<'_>, left: bool) -> Result<ArrayRef> {
    let (values, lengths, pads) = (call.text(0)?, call.int(1)?, call.text(2)?);
    let turns = call.turns();
    long_texts(call, |row, out| {
        let (text, length, pad) = (values.get(row)?, lengths.get(row)?, pads.get(row)?);
        let length = usize::try_from(length).ok()?;
        let present = characters(text);
        if present >= length {
            out.push_str(&text[..byte_at(text, length)]);
            return Some(());
        }
        if pad.is_empty() {
            return None;
        }
        let missing = length - present;
        let of_pad = characters(pad);
        let last = &pad[..byte_at(pad, missing % of_pad)];
        let filling = (missing / of_pad).saturating_mul(pad.len()) + last.len();
        if let Some(out) = out.expected(filling.saturating_add(text.len())) {
            if !left {
                out.push_str(text);
            }
            let pads = (0..missing / of_pad).take_while(|_| !turns.is_over());
            pads.for_each(|_| out.push_str(pad));
            out.push_str(last);
            if left {
                out.push_str(text);
            }
        }
        Some(())
    })
}
