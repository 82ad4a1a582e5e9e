//! The array of a kernel's results, with a value for each row.
//!
//! A kernel hands a closure for one row to `ints`, `texts`, `long_texts`, `parts` or one of those for bytes. These book
//! what is made on the account of the call, which bounds a value and a batch, and they stop when that says so
//! (`functions/limits.rs`).

use std::sync::Arc;

use arrow::array::{ArrayBuilder, ArrayRef, BinaryBuilder, Int64Array, StringViewBuilder};
use datafusion_common::Result;
use sheaf_memory::LONG_VALUE_BYTES;

use super::Call;
use super::limits::{Account, TextWriter};
use super::long_text::append_long;

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

/// Has a value, or NULL, appended for each row. `append` books what it makes.
fn values<B: ArrayBuilder>(
    call: &Call<'_>,
    mut builder: B,
    mut append: impl FnMut(usize, &mut Account<'_>, &mut B) -> Result<()>,
) -> Result<ArrayRef> {
    let mut account = call.account();
    for row in 0..call.rows() {
        if account.is_over() {
            account.check()?;
        }
        append(row, &mut account, &mut builder)?;
    }
    Ok(builder.finish())
}

fn text_builder(call: &Call<'_>) -> StringViewBuilder {
    StringViewBuilder::with_capacity(call.rows())
}

fn byte_builder(call: &Call<'_>) -> BinaryBuilder {
    BinaryBuilder::with_capacity(call.rows(), 0)
}

/// Builds a text for each row; `None` is NULL. For texts that are about as long as what they are made of.
pub(super) fn texts(
    call: &Call<'_>,
    write: impl Fn(usize, &mut String) -> Option<()>,
) -> Result<ArrayRef> {
    let mut out = String::new();
    values(call, text_builder(call), |row, account, texts| {
        out.clear();
        let is_made = write(row, &mut out).is_some() && account.book(out.len())?;
        match is_made {
            true if out.len() >= LONG_VALUE_BYTES => append_long(texts, std::mem::take(&mut out))?,
            true => texts.append_value(&out),
            false => texts.append_null(),
        }
        Ok(())
    })
}

/// As [`texts`], of texts that may be of any length: no more of them is made than a value may have.
pub(super) fn long_texts(
    call: &Call<'_>,
    write: impl Fn(usize, &mut TextWriter) -> Option<()>,
) -> Result<ArrayRef> {
    let mut out = TextWriter::new(call.account().value_bytes());
    values(call, text_builder(call), |row, account, texts| {
        out.clear();
        match (write(row, &mut out), out.written()) {
            (Some(()), Some(text)) if account.book(text.len())? => match text.len() {
                LONG_VALUE_BYTES.. => append_long(texts, out.take())?,
                _ => texts.append_value(text),
            },
            (Some(()), None) => {
                account.check()?;
                account.book(usize::MAX)?;
                texts.append_null();
            }
            _ => texts.append_null(),
        }
        Ok(())
    })
}

/// Copies a text for each row, a part of an argument; `None` is NULL.
pub(super) fn parts<'t>(
    call: &Call<'_>,
    part: impl Fn(usize) -> Option<&'t str>,
) -> Result<ArrayRef> {
    values(call, text_builder(call), |row, account, texts| {
        match part(row) {
            Some(text) if account.book(text.len())? => texts.append_value(text),
            _ => texts.append_null(),
        }
        Ok(())
    })
}

/// Builds a byte string for each row; `None` is NULL.
pub(super) fn byte_strings(
    call: &Call<'_>,
    write: impl Fn(usize, &mut Vec<u8>) -> Option<()>,
) -> Result<ArrayRef> {
    let mut out = Vec::new();
    values(call, byte_builder(call), |row, account, strings| {
        out.clear();
        let is_made = write(row, &mut out).is_some() && account.book(out.len())?;
        strings.append_option(is_made.then_some(&out));
        Ok(())
    })
}

/// What a value has become.
pub(super) enum Made {
    Null,
    Bytes,
    /// Nothing: it would be longer than a value may be.
    TooLong,
}

/// The same for byte strings that may be of any length.
pub(super) fn long_byte_strings(
    call: &Call<'_>,
    write: impl Fn(usize, &mut Vec<u8>) -> Made,
) -> Result<ArrayRef> {
    let mut out = Vec::new();
    values(call, byte_builder(call), |row, account, strings| {
        out.clear();
        let is_made = match write(row, &mut out) {
            Made::Null => false,
            Made::Bytes => account.book(out.len())?,
            Made::TooLong => account.book(usize::MAX)?,
        };
        strings.append_option(is_made.then_some(&out));
        Ok(())
    })
}

/// Joins byte strings for each row; `None` is NULL.
pub(super) fn joined_bytes<'t>(
    call: &Call<'_>,
    pieces: impl Fn(usize) -> Option<Vec<&'t [u8]>>,
) -> Result<ArrayRef> {
    let mut out = Vec::new();
    values(call, byte_builder(call), |row, account, strings| {
        let bytes = |pieces: &[&[u8]]| pieces.iter().map(|piece| piece.len()).sum::<usize>();
        match pieces(row) {
            Some(pieces) if account.book(bytes(&pieces))? => {
                out.clear();
                pieces.iter().for_each(|piece| out.extend_from_slice(piece));
                strings.append_value(&out);
            }
            _ => strings.append_null(),
        }
        Ok(())
    })
}
