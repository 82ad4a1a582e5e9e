//! The array of a kernel's results, with a value for each row.
//!
//! A kernel hands a closure for one row to `ints`, `texts`, `long_texts`, `parts` or one of those for bytes. These book
//! what is made on the account of the call, which bounds a value and a batch, and they stop when that says so
//! (`functions/limits.rs`).

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, Int64Array, StringViewBuilder};
use datafusion_common::Result;

use super::Call;
use super::limits::TextWriter;

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
                account.check()?;
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
pub(super) fn byte_strings(
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
pub(super) fn joined_bytes<'t>(
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
