//! Characters as numbers, and bytes as text: ASCII, ORD, CHAR, HEX, UNHEX, and base64.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use datafusion_common::Result;
use sheaf_types::text::hexadecimal::digits_of_byte;

use super::{bigint, bytes_of_all, text};
use crate::functions::limits::{TextWriter, Turns};
use crate::functions::result_array::{byte_strings, ints, long_texts, texts};
use crate::functions::types::{HEX_OF_KEY, SqlType};
use crate::functions::{Call, Function, Length, VARIADIC};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict("ascii", (1, 1), bigint, first_byte).length(Length::Int),
    Function::strict("ord", (1, 1), bigint, |call| {
        if call.is_bytes(0) {
            return first_byte(call);
        }
        let texts = call.text(0)?;
        ints(call, |row| {
            let first = texts.get(row)?.chars().next();
            let mut buffer = [0; 4];
            let bytes = first.map_or(&[][..], |first| first.encode_utf8(&mut buffer).as_bytes());
            Some(number_of(bytes))
        })
    }),
    // The bytes of one character.
    Function::strict("$number_of_bytes", (1, 1), bigint, |call| {
        let bytes = call.bytes(0)?;
        ints(call, |row| Some(number_of(bytes.get(row)?)))
    }),
    Function::new("char", (1, VARIADIC), bytes_of_all, char_codes)
        .never_null()
        .whole_numbers(0, VARIADIC)
        .makes_bytes(),
    Function::strict("hex", (1, 1), text, hex)
        .growing()
        .key_operand(),
    Function::strict(HEX_OF_KEY, (1, 1), text, hex).growing(),
    Function::new("unhex", (1, 1), bytes_of_all, unhex).makes_bytes(),
    Function::strict("to_base64", (1, 1), text, |call| {
        let (bytes, turns) = (call.bytes(0)?, call.turns());
        texts(call, |row, out| {
            push_base64(out, bytes.get(row)?, &turns);
            Some(())
        })
    })
    .growing(),
    Function::new("from_base64", (1, 1), bytes_of_all, from_base64).makes_bytes(),
];

/// The number that bytes spell, the first of them before all others.
fn number_of(bytes: &[u8]) -> i64 {
    bytes
        .iter()
        .fold(0, |code, byte| code << 8 | i64::from(*byte))
}

fn first_byte(call: &Call<'_>) -> Result<ArrayRef> {
    let bytes = call.bytes(0)?;
    ints(call, |row| {
        Some(bytes.get(row)?.first().map_or(0, |byte| i64::from(*byte)))
    })
}

/// NULL arguments are skipped.
fn char_codes(call: &Call<'_>) -> Result<ArrayRef> {
    let codes = (0..call.len())
        .map(|argument| call.int(argument))
        .collect::<Result<Vec<_>>>()?;
    let result: BinaryArray = (0..call.rows())
        .map(|row| {
            let mut bytes = Vec::new();
            for code in codes.iter().filter_map(|code| code.get(row)) {
                let code = (code as u32).to_be_bytes();
                let first = code.iter().position(|byte| *byte != 0).unwrap_or(3);
                bytes.extend_from_slice(&code[first..]);
            }
            Some(bytes)
        })
        .collect();
    Ok(Arc::new(result))
}

fn push_hex(out: &mut TextWriter, bytes: &[u8], turns: &Turns<'_>) {
    let Some(out) = out.expected(bytes.len().saturating_mul(2)) else {
        return;
    };
    for byte in turns.byte_stretches(bytes).flatten() {
        let [high, low] = digits_of_byte(*byte);
        out.push(high);
        out.push(low);
    }
}

/// Of a number the hexadecimal digits, of a string those of its bytes.
fn hex(call: &Call<'_>) -> Result<ArrayRef> {
    if call.sql_type(0).is_string() || call.sql_type(0).is_temporal() {
        let (values, turns) = (call.bytes(0)?, call.turns());
        return long_texts(call, |row, out| {
            values.get(row).map(|bytes| push_hex(out, bytes, &turns))
        });
    }
    if call.sql_type(0) == SqlType::Json {
        let (values, turns) = (call.text(0)?, call.turns());
        return long_texts(call, |row, out| {
            let text = values.get(row)?;
            push_hex(out, text.as_bytes(), &turns);
            Some(())
        });
    }
    use std::fmt::Write;
    let values = call.unsigned(0)?;
    texts(call, |row, out| write!(out, "{:X}", values.get(row)?).ok())
}

fn unhex(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, turns) = (call.text(0)?, call.turns());
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    byte_strings(call, |row, out| {
        let digits = values.get(row)?.as_bytes();
        // The first of an odd number of digits is a byte by itself.
        let (first, pairs) = digits.split_at(digits.len() % 2);
        for byte in first {
            out.push(digit(*byte)?);
        }
        for pairs in turns.byte_stretches(pairs) {
            for pair in pairs.chunks_exact(2) {
                out.push(digit(pair[0])? << 4 | digit(pair[1])?);
            }
        }
        Some(())
    })
}

/// Characters of a line of what TO_BASE64 writes.
const BASE64_LINE: usize = 76;

fn push_base64(out: &mut String, bytes: &[u8], turns: &Turns<'_>) {
    // Three bytes are four characters.
    let lines = bytes.chunks(BASE64_LINE / 4 * 3).enumerate();
    for (line, bytes) in lines.take_while(|_| !turns.is_over()) {
        if line > 0 {
            out.push('\n');
        }
        BASE64_STANDARD.encode_string(bytes, out);
    }
}

/// White space is skipped. What is no base64 is NULL.
fn from_base64(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, turns) = (call.bytes(0)?, call.turns());
    byte_strings(call, |row, out| {
        let mut digits = Vec::new();
        for bytes in turns.byte_stretches(values.get(row)?) {
            // As C has it, a vertical tab included.
            digits.extend(bytes.iter().filter(|byte| !matches!(byte, b' ' | 9..=13)));
        }
        BASE64_STANDARD.decode_vec(&digits, out).ok()
    })
}
