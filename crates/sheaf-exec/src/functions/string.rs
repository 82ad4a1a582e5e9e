//! String functions. Positions and lengths count characters, from 1; LENGTH counts bytes.
//!
//! Each function is a row of `FUNCTIONS`. Its kernel gets a batch of arguments, takes them as texts or bytes, and
//! returns an array with a value for each row. The result has the collation of the first argument, or the common one of
//! all arguments.
//!
//! Most kernels hand a closure for one row to `ints`, `texts`, `long_texts` or `parts`, which build the array. These
//! book what is made on the account of the call, which bounds a value and a batch, and they stop when that says so
//! (`functions/limits.rs`). So `repeat(s, 1000000000)` is refused before it has taken the memory. The closure itself
//! takes a long text in stretches ([`Turns`]), between which it may have to stop.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BinaryBuilder, Int64Array, StringViewArray, StringViewBuilder,
};
use arrow::datatypes::Field;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use datafusion_common::Result;
use sheaf_types::Collation;
use sheaf_types::number::rescale;

use super::limits::{TextWriter, Turns};
use super::locale::number_style;
use super::types::{
    Coercibility, SqlType, bytes_field, collation_of, common_collation, field, result_collation,
    takes_bytes, text_field,
};
use super::{Argument, Call, Function, Operands, VARIADIC};

fn bigint(_: &Operands<'_>) -> Result<Field> {
    Ok(field::bigint())
}

fn text(_: &Operands<'_>) -> Result<Field> {
    Ok(field::text())
}

/// The collation of the first argument.
fn like_first(operands: &Operands<'_>) -> Result<Field> {
    text_field(&operands.fields[..1], "string function")
}

fn like_all(operands: &Operands<'_>) -> Result<Field> {
    text_field(operands.fields, "string function")
}

fn bytes_of_all(operands: &Operands<'_>) -> Result<Field> {
    Ok(bytes_field(operands.fields))
}

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict("concat", (1, VARIADIC), concat_type, concat),
    Function::new("concat_ws", (2, VARIADIC), like_all, concat_ws).bytewise(),
    Function::strict("length", (1, 1), bigint, |call| {
        let bytes = call.bytes(0)?;
        ints(call, |row| Some(bytes.get(row)?.len() as i64))
    }),
    Function::strict("bit_length", (1, 1), bigint, |call| {
        let bytes = call.bytes(0)?;
        ints(call, |row| Some(bytes.get(row)?.len() as i64 * 8))
    }),
    Function::strict("character_length", (1, 1), bigint, |call| {
        if call.sql_type(0) == SqlType::Bytes {
            let bytes = call.bytes(0)?;
            return ints(call, |row| Some(bytes.get(row)?.len() as i64));
        }
        let texts = call.text(0)?;
        ints(call, |row| Some(characters(texts.get(row)?) as i64))
    }),
    Function::strict("upper", (1, 1), like_first, upper).bytewise(),
    Function::strict("lower", (1, 1), like_first, lower).bytewise(),
    Function::strict("substring", (2, 3), like_first, substring).bytewise(),
    Function::strict("left", (2, 2), like_first, |call| {
        part(call, |text, count| (0, clamp(count, characters(text))))
    })
    .bytewise(),
    Function::strict("right", (2, 2), like_first, |call| {
        part(call, |text, count| {
            let all = characters(text);
            (all - clamp(count, all), all)
        })
    })
    .bytewise(),
    // Text, characters to remove, and where: 'b' both ends, 'l' the start, 't' the end.
    Function::strict("$trim", (3, 3), like_first, trim).bytewise(),
    Function::strict("ltrim", (1, 1), like_first, |call| {
        slices(call, |text, turns| without_prefixes(text, " ", turns))
    })
    .bytewise(),
    Function::strict("rtrim", (1, 1), like_first, |call| {
        slices(call, |text, turns| without_suffixes(text, " ", turns))
    })
    .bytewise(),
    Function::strict("replace", (3, 3), like_all, replace)
        .bytewise()
        .growing(),
    Function::strict("repeat", (2, 2), like_first, repeat)
        .bytewise()
        .growing(),
    Function::strict("reverse", (1, 1), like_first, reverse).bytewise(),
    Function::strict("soundex", (1, 1), like_first, |call| {
        let (values, turns) = (call.text(0)?, call.turns());
        let of_bytes = call.sql_type(0) == SqlType::Bytes;
        texts(call, |row, out| {
            push_soundex(turns.characters(values.get(row)?), of_bytes, out);
            Some(())
        })
    })
    .bytewise(),
    Function::new("lpad", (3, 3), like_first, |call| pad(call, true))
        .bytewise()
        .growing(),
    Function::new("rpad", (3, 3), like_first, |call| pad(call, false))
        .bytewise()
        .growing(),
    Function::strict("locate", (2, 3), bigint, |call| locate(call, 0, 1)).bytewise(),
    Function::strict("instr", (2, 2), bigint, |call| locate(call, 1, 0)).bytewise(),
    Function::new("field", (2, VARIADIC), bigint, field_position).never_null(),
    Function::new(
        "elt",
        (2, VARIADIC),
        |operands| text_field(&operands.fields[1..], "elt"),
        elt,
    )
    .bytewise(),
    Function::strict("find_in_set", (2, 2), bigint, find_in_set).bytewise(),
    Function::strict("ascii", (1, 1), bigint, first_byte),
    Function::strict("ord", (1, 1), bigint, |call| {
        if call.sql_type(0) == SqlType::Bytes {
            return first_byte(call);
        }
        let texts = call.text(0)?;
        ints(call, |row| {
            let first = texts.get(row)?.chars().next();
            let mut buffer = [0; 4];
            let bytes = first.map_or(&[][..], |first| first.encode_utf8(&mut buffer).as_bytes());
            Some(
                bytes
                    .iter()
                    .fold(0, |code, byte| code << 8 | i64::from(*byte)),
            )
        })
    }),
    Function::new("char", (1, VARIADIC), bytes_of_all, char_codes).never_null(),
    Function::strict("hex", (1, 1), text, hex).growing(),
    Function::new("unhex", (1, 1), bytes_of_all, unhex),
    Function::strict("to_base64", (1, 1), text, |call| {
        let (bytes, turns) = (call.bytes(0)?, call.turns());
        texts(call, |row, out| {
            push_base64(out, bytes.get(row)?, &turns);
            Some(())
        })
    })
    .growing(),
    Function::strict("from_base64", (1, 1), bytes_of_all, from_base64),
    Function::new(
        "make_set",
        (2, VARIADIC),
        |operands| text_field(&operands.fields[1..], "make_set"),
        make_set,
    ),
    Function::strict(
        "export_set",
        (3, 5),
        |operands| {
            text_field(
                &operands.fields[1..operands.fields.len().min(4)],
                "export_set",
            )
        },
        export_set,
    ),
    Function::strict("bin", (1, 1), text, |call| radix(call, 2)),
    Function::strict("oct", (1, 1), text, |call| radix(call, 8)),
    Function::new("conv", (3, 3), text, conv),
    // Number, digits, and optionally a locale, of which NULL is the English one.
    Function::new("format", (2, 3), text, format_number),
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
    .growing(),
    Function::strict("strcmp", (2, 2), bigint, strcmp).bytewise(),
    Function::new("insert", (4, 4), like_first, insert).bytewise(),
    Function::new("substring_index", (3, 3), like_first, substring_index).bytewise(),
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
    .never_null()
    .bytewise(),
];

fn first_byte(call: &Call<'_>) -> Result<ArrayRef> {
    let bytes = call.bytes(0)?;
    ints(call, |row| {
        Some(bytes.get(row)?.first().map_or(0, |byte| i64::from(*byte)))
    })
}

/// Characters of a text; bytes, if it is ASCII, which is found out a word at a time.
fn characters(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    }
}

/// Byte position of a character; the end of the text if there are fewer.
fn byte_at(text: &str, character: usize) -> usize {
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

fn clamp(count: i64, most: usize) -> usize {
    usize::try_from(count).unwrap_or(0).min(most)
}

/// A number for each row; `None` is NULL.
pub(super) fn ints(call: &Call<'_>, compute: impl Fn(usize) -> Option<i64>) -> Result<ArrayRef> {
    let account = call.account();
    let compute = |row| match account.is_over() {
        true => None,
        false => compute(row),
    };
    let numbers = (0..call.rows()).map(compute).collect::<Int64Array>();
    account.check()?;
    Ok(Arc::new(numbers))
}

/// Builds a text for each row; `None` is NULL. For texts that are about as long as what they are made of.
pub(super) fn texts(
    call: &Call<'_>,
    write: impl Fn(usize, &mut String) -> Option<()>,
) -> Result<ArrayRef> {
    let mut account = call.account();
    let mut builder = StringViewBuilder::with_capacity(call.rows());
    let mut out = String::new();
    for row in 0..call.rows() {
        if account.is_over() {
            account.check()?;
        }
        out.clear();
        match write(row, &mut out) {
            Some(()) if account.book(out.len())? => builder.append_value(&out),
            _ => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// The same for texts that may be of any length: no more of them is made than a value may have.
pub(super) fn long_texts(
    call: &Call<'_>,
    write: impl Fn(usize, &mut TextWriter) -> Option<()>,
) -> Result<ArrayRef> {
    let mut account = call.account();
    let mut builder = StringViewBuilder::with_capacity(call.rows());
    let mut out = TextWriter::new(account.value_bytes());
    for row in 0..call.rows() {
        if account.is_over() {
            account.check()?;
        }
        out.clear();
        match (write(row, &mut out), out.written()) {
            (Some(()), Some(text)) if account.book(text.len())? => builder.append_value(text),
            (Some(()), None) => {
                account.book(usize::MAX)?;
                builder.append_null();
            }
            _ => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// Copies a text for each row, a part of an argument; `None` is NULL.
pub(super) fn parts<'t>(
    call: &Call<'_>,
    part: impl Fn(usize) -> Option<&'t str>,
) -> Result<ArrayRef> {
    let mut account = call.account();
    let mut builder = StringViewBuilder::with_capacity(call.rows());
    for row in 0..call.rows() {
        if account.is_over() {
            account.check()?;
        }
        match part(row) {
            Some(text) if account.book(text.len())? => builder.append_value(text),
            _ => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// Builds a byte string for each row; `None` is NULL.
fn byte_strings(
    call: &Call<'_>,
    write: impl Fn(usize, &mut Vec<u8>) -> Option<()>,
) -> Result<ArrayRef> {
    let mut account = call.account();
    let mut builder = BinaryBuilder::with_capacity(call.rows(), 0);
    let mut out = Vec::new();
    for row in 0..call.rows() {
        if account.is_over() {
            account.check()?;
        }
        out.clear();
        match write(row, &mut out) {
            Some(()) if account.book(out.len())? => builder.append_value(&out),
            _ => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// Joins byte strings for each row; `None` is NULL.
fn joined_bytes<'t>(
    call: &Call<'_>,
    pieces: impl Fn(usize) -> Option<Vec<&'t [u8]>>,
) -> Result<ArrayRef> {
    let mut account = call.account();
    let mut builder = BinaryBuilder::with_capacity(call.rows(), 0);
    let mut out = Vec::new();
    for row in 0..call.rows() {
        if account.is_over() {
            account.check()?;
        }
        let pieces = pieces(row);
        let bytes = |pieces: &[&[u8]]| pieces.iter().map(|piece| piece.len()).sum::<usize>();
        match pieces {
            Some(pieces) if account.book(bytes(&pieces))? => {
                out.clear();
                pieces.iter().for_each(|piece| out.extend_from_slice(piece));
                builder.append_value(&out);
            }
            _ => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

fn upper(call: &Call<'_>) -> Result<ArrayRef> {
    in_case(call, |text, out| {
        let start = out.len();
        match text.is_ascii() {
            true => {
                out.push_str(text);
                out[start..].make_ascii_uppercase();
            }
            false => out.extend(text.chars().map(uppercase)),
        }
    })
}

fn lower(call: &Call<'_>) -> Result<ArrayRef> {
    in_case(call, push_lowercase)
}

/// Each text in another case, which is known piece by piece. Bytes have no case.
fn in_case(call: &Call<'_>, push: fn(&str, &mut String)) -> Result<ArrayRef> {
    if call.sql_type(0) == SqlType::Bytes {
        return slices(call, |text, _| text);
    }
    let (values, turns) = (call.text(0)?, call.turns());
    texts(call, |row, out| {
        let text = values.get(row)?;
        out.reserve(text.len());
        turns.stretches(text).for_each(|text| push(text, out));
        Some(())
    })
}

/// Character for character: of what would be several (`ß`), MySQL knows no upper case.
fn uppercase(character: char) -> char {
    let mut mapped = character.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(upper), None) => upper,
        _ => character,
    }
}

fn push_lowercase(text: &str, out: &mut String) {
    let lowercase = |character: char| character.to_lowercase().next().unwrap_or(character);
    let start = out.len();
    match text.is_ascii() {
        true => {
            out.push_str(text);
            out[start..].make_ascii_lowercase();
        }
        false => out.extend(text.chars().map(lowercase)),
    }
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

/// A part of each text.
fn slices(call: &Call<'_>, part: for<'t> fn(&'t str, &Turns<'_>) -> &'t str) -> Result<ArrayRef> {
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

/// The part of each text between two positions that depend on the text and a number.
fn part(call: &Call<'_>, bounds: fn(&str, i64) -> (usize, usize)) -> Result<ArrayRef> {
    let (values, counts) = (call.text(0)?, call.int(1)?);
    parts(call, |row| {
        let text = values.get(row)?;
        let (start, end) = bounds(text, counts.get(row)?);
        Some(&text[byte_at(text, start)..byte_at(text, end)])
    })
}

fn text_arguments(call: &Call<'_>) -> Result<Vec<Argument<StringViewArray>>> {
    (0..call.len())
        .map(|argument| call.text(argument))
        .collect()
}

fn concat_type(operands: &Operands<'_>) -> Result<Field> {
    match takes_bytes(operands.fields) {
        true => Ok(bytes_field(operands.fields)),
        false => text_field(operands.fields, "concat"),
    }
}

fn concat(call: &Call<'_>) -> Result<ArrayRef> {
    if call.result_type() == &arrow::datatypes::DataType::Binary {
        let parts = (0..call.len())
            .map(|argument| call.bytes(argument))
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
            return Some(());
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

/// Whether a search must look at weights: not if both sides are plain bytes to the collation.
fn folded<'t>(collation: Collation, text: &'t str, turns: &Turns<'_>) -> Cow<'t, str> {
    match collation {
        Collation::Binary | Collation::Utf8mb4_bin => Cow::Borrowed(text),
        _ => {
            let mut folded = String::with_capacity(text.len());
            let stretches = turns.stretches(text);
            stretches.for_each(|text| push_lowercase(text, &mut folded));
            Cow::Owned(folded)
        }
    }
}

fn locate(call: &Call<'_>, needle: usize, haystack: usize) -> Result<ArrayRef> {
    let types = [call.sql_type(needle), call.sql_type(haystack)];
    let collation = match (result_collation(&types, "locate")?, collation_of(&types[1])) {
        // As in MySQL, and unlike in other comparisons.
        ((_, Coercibility::Mixed), Some((collation, _))) => collation,
        _ => call.matching_collation("locate")?,
    };
    let (needles, haystacks) = (call.text(needle)?, call.text(haystack)?);
    let turns = call.turns();
    let starts = if call.len() == 3 {
        Some(call.int(2)?)
    } else {
        None
    };
    ints(call, |row| {
        let (needle, haystack) = (needles.get(row)?, haystacks.get(row)?);
        let start = match &starts {
            Some(starts) => starts.get(row)?,
            None => 1,
        };
        let Some(skipped) = start
            .checked_sub(1)
            .and_then(|skipped| usize::try_from(skipped).ok())
        else {
            return Some(0);
        };
        let folded = |text| folded(collation, text, &turns);
        let (needle, haystack) = (folded(needle), folded(haystack));
        if skipped > characters(&haystack) {
            return Some(0);
        }
        let from = byte_at(&haystack, skipped);
        Some(match turns.find(&haystack[from..], &needle) {
            Some(at) => characters(&haystack[..from + at]) as i64 + 1,
            None => 0,
        })
    })
}

/// FIELD compares all of its arguments in one way: strings and dates as texts, exact numbers exactly, whatever is mixed
/// as doubles.
fn field_position(call: &Call<'_>) -> Result<ArrayRef> {
    let types: Vec<SqlType> = (0..call.len())
        .map(|argument| call.sql_type(argument))
        .collect();
    // NULL is like no value of any type, and makes no operand compare as a number.
    let all = |is_like: fn(&SqlType) -> bool| {
        let mut types = types.iter();
        types.all(|ty| is_like(ty) || *ty == SqlType::Null)
    };
    if all(|ty| ty.is_string() || ty.is_temporal()) {
        if takes_bytes(&call.args.arg_fields) {
            let values = (0..call.len())
                .map(|argument| call.bytes(argument))
                .collect::<Result<Vec<_>>>()?;
            return position_of_first(
                call,
                |argument, row| values[argument].get(row),
                |a, b| a == b,
            );
        }
        let (collation, _) = common_collation(&types, "field")?;
        let values = text_arguments(call)?;
        let turns = call.turns();
        let is_equal = |a: &str, b: &str| turns.compare(collation, a, b).is_eq();
        return position_of_first(call, |argument, row| values[argument].get(row), is_equal);
    }
    if all(SqlType::is_exact_number) {
        let scale = types.iter().map(|ty| ty.decimal_digits().1).max();
        let values = (0..call.len())
            .map(|argument| call.decimal(argument, scale.unwrap_or(0)))
            .collect::<Result<Vec<_>>>()?;
        return position_of_first(
            call,
            |argument, row| values[argument].get(row),
            |a, b| a == b,
        );
    }
    let values = (0..call.len())
        .map(|argument| call.double(argument))
        .collect::<Result<Vec<_>>>()?;
    position_of_first(
        call,
        |argument, row| values[argument].get(row),
        |a, b| a == b,
    )
}

/// Which of the arguments behind the first one is equal to it, from 1; 0 if none is.
fn position_of_first<T: Copy>(
    call: &Call<'_>,
    value: impl Fn(usize, usize) -> Option<T>,
    is_equal: impl Fn(T, T) -> bool,
) -> Result<ArrayRef> {
    ints(call, |row| {
        let Some(wanted) = value(0, row) else {
            return Some(0);
        };
        let found = (1..call.len())
            .find(|argument| value(*argument, row).is_some_and(|other| is_equal(wanted, other)));
        Some(found.unwrap_or(0) as i64)
    })
}

fn elt(call: &Call<'_>) -> Result<ArrayRef> {
    let positions = call.int(0)?;
    let values = (1..call.len())
        .map(|argument| call.text(argument))
        .collect::<Result<Vec<_>>>()?;
    parts(call, |row| {
        values
            .get(usize::try_from(positions.get(row)?.checked_sub(1)?).ok()?)?
            .get(row)
    })
}

fn find_in_set(call: &Call<'_>) -> Result<ArrayRef> {
    let collation = call.matching_collation("find_in_set")?;
    let (wanted, sets, turns) = (call.text(0)?, call.text(1)?, call.turns());
    ints(call, |row| {
        let (wanted, set) = (wanted.get(row)?, sets.get(row)?);
        if set.is_empty() {
            return Some(0);
        }
        // Spaces at the end count, whatever the collation does with them.
        let is_member = |member: &str| {
            spaces_behind(wanted) == spaces_behind(member)
                && turns.compare(collation, wanted, member).is_eq()
        };
        let at = set
            .split(',')
            .take_while(|_| !turns.is_over())
            .position(is_member);
        Some(at.map_or(0, |at| at as i64 + 1))
    })
}

fn spaces_behind(text: &str) -> usize {
    text.len() - text.trim_end_matches(' ').len()
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
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in turns.byte_stretches(bytes).flatten() {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
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

/// The texts whose bits are set, with commas between them. Those that are NULL are left out.
fn make_set(call: &Call<'_>) -> Result<ArrayRef> {
    let bits = call.int(0)?;
    let members = (1..call.len())
        .map(|argument| call.text(argument))
        .collect::<Result<Vec<_>>>()?;
    texts(call, |row, out| {
        let bits = bits.get(row)? as u64;
        let chosen = members
            .iter()
            .take(u64::BITS as usize)
            .enumerate()
            .filter(|(bit, _)| bits >> bit & 1 == 1)
            .filter_map(|(_, member)| member.get(row));
        for (at, member) in chosen.enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str(member);
        }
        Some(())
    })
}

/// A text for each bit, the lowest one first.
fn export_set(call: &Call<'_>) -> Result<ArrayRef> {
    let bits = call.int(0)?;
    let (on, off) = (call.text(1)?, call.text(2)?);
    let separator = (call.len() > 3).then(|| call.text(3)).transpose()?;
    let count = (call.len() > 4).then(|| call.int(4)).transpose()?;
    texts(call, |row, out| {
        let bits = bits.get(row)? as u64;
        let (on, off) = (on.get(row)?, off.get(row)?);
        let separator = match &separator {
            Some(separator) => separator.get(row)?,
            None => ",",
        };
        let all = u64::from(u64::BITS);
        let count = match &count {
            // Below zero it is a large one.
            Some(count) => (count.get(row)? as u64).min(all),
            None => all,
        };
        for bit in 0..count {
            if bit > 0 {
                out.push_str(separator);
            }
            out.push_str(if bits >> bit & 1 == 1 { on } else { off });
        }
        Some(())
    })
}

fn push_radix(out: &mut String, mut value: u64, base: u32) {
    let start = out.len();
    loop {
        let digit = char::from_digit((value % u64::from(base)) as u32, base).unwrap_or('0');
        out.insert(start, digit.to_ascii_uppercase());
        value /= u64::from(base);
        if value == 0 {
            return;
        }
    }
}

fn radix(call: &Call<'_>, base: u32) -> Result<ArrayRef> {
    if call.sql_type(0).is_integer() {
        let values = call.unsigned(0)?;
        return texts(call, |row, out| {
            values.get(row).map(|value| push_radix(out, value, base))
        });
    }
    // As CONV(x, 10, base) reads them: 5.99 is 5.
    let values = call.text(0)?;
    texts(call, |row, out| {
        let text = values.get(row).filter(|text| !text.is_empty())?;
        push_radix(out, spelled(text, 10), base);
        Some(())
    })
}

/// The whole number that a text begins with, modulo 2^64.
fn spelled(text: &str, base: u32) -> u64 {
    let text = text.trim();
    let digits = text.trim_start_matches(['-', '+']);
    let mut value: u64 = 0;
    for digit in digits.chars().map_while(|digit| digit.to_digit(base)) {
        value = value
            .saturating_mul(u64::from(base))
            .saturating_add(u64::from(digit));
        if value == u64::MAX {
            break;
        }
    }
    if text.starts_with('-') {
        value.wrapping_neg()
    } else {
        value
    }
}

fn conv(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, from, to) = (call.text(0)?, call.int(1)?, call.int(2)?);
    texts(call, |row, out| {
        let (text, from, to) = (values.get(row)?, from.get(row)?, to.get(row)?);
        let base = |base: i64| {
            u32::try_from(base.unsigned_abs())
                .ok()
                .filter(|base| (2..=36).contains(base))
        };
        let (from_base, to_base) = (base(from)?, base(to)?);
        if text.is_empty() {
            return None;
        }
        let value = spelled(text, from_base);
        if to < 0 && (value as i64) < 0 {
            out.push('-');
            let start = out.len();
            let mut digits = String::new();
            push_radix(&mut digits, (value as i64).unsigned_abs(), to_base);
            out.insert_str(start, &digits);
        } else {
            push_radix(out, value, to_base);
        }
        Some(())
    })
}

/// `12,345.68`: in groups of digits, rounded to the digits asked for.
fn format_number(call: &Call<'_>) -> Result<ArrayRef> {
    let digits = call.int(1)?;
    let locales = match call.len() {
        3 => Some(call.text(2)?),
        _ => None,
    };
    let exact = !call.sql_type(0).is_float() && !call.sql_type(0).is_string();
    let scale = call.sql_type(0).decimal_digits().1;
    let (decimals, doubles) = (call.decimal(0, scale)?, call.double(0)?);
    texts(call, |row, out| {
        let places = digits.get(row)?.clamp(0, 30) as u8;
        let plain = if exact {
            let kept = places.min(scale);
            let rounded = rescale(decimals.get(row)?, scale, kept)?;
            let mut plain = sheaf_types::number::decimal_text(rounded, kept);
            if places > kept {
                if kept == 0 {
                    plain.push('.');
                }
                plain.extend(std::iter::repeat_n('0', usize::from(places - kept)));
            }
            plain
        } else {
            format!("{:.*}", usize::from(places), doubles.get(row)?)
        };
        let (sign, unsigned) = match plain.strip_prefix('-') {
            Some(rest) => ("-", rest),
            None => ("", plain.as_str()),
        };
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        out.push_str(sign);
        let style = number_style(locales.as_ref().and_then(|locales| locales.get(row)));
        style.push_whole(whole, out);
        if !fraction.is_empty() {
            out.push(style.point);
            out.push_str(fraction);
        }
        Some(())
    })
}

fn strcmp(call: &Call<'_>) -> Result<ArrayRef> {
    let collation = call.matching_collation("strcmp")?;
    let (left, right, turns) = (call.text(0)?, call.text(1)?, call.turns());
    ints(call, |row| {
        Some(turns.compare(collation, left.get(row)?, right.get(row)?) as i64)
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
