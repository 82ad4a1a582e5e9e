//! Aggregates of JSON: they are those of bytes, of which a document is made again. JSON_ARRAYAGG and JSON_OBJECTAGG
//! collect as GROUP_CONCAT does.
//!
//! ```text
//!   JSON_ARRAYAGG(value)        $json_array_of($group_concat($json_element(value)))
//!   JSON_OBJECTAGG(key, value)  $json_object_of($group_concat($json_member(key, value)))
//!   MAX(value)                  $json_of_ordered(max($json_ordered(value)))
//!
//!   an element    length: u32 little-endian, document
//!   a member      length: u32 little-endian, key, then as an element
//!   in order      sort key with 00 FF for 00, 00 00, document
//! ```

use arrow::array::{Array, ArrayRef, BinaryBuilder};
use datafusion_common::Result;
use sheaf_types::json::sort_key::push_sort_key;
use sheaf_types::json::{Builder, JsonError};

use super::argument::failed;
use super::{documents, json};
use crate::functions::document::json_of;
use crate::functions::result_array::byte_strings;
use crate::functions::types::field;
use crate::functions::{Call, Function};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::strict(
        "$json_ordered",
        (1, 1),
        |_| Ok(field::bytes()),
        |call| {
            let values = call.document(0)?;
            byte_strings(call, |row, out| {
                let value = values.get(row)?;
                let mut key = Vec::new();
                push_sort_key(value, &mut key);
                for byte in &key {
                    match byte {
                        0 => out.extend_from_slice(&[0, 0xFF]),
                        byte => out.push(*byte),
                    }
                }
                out.extend_from_slice(&[0, 0]);
                out.extend_from_slice(value.to_document().as_bytes());
                Some(())
            })
        },
    ),
    Function::strict("$json_of_ordered", (1, 1), json, |call| {
        let values = call.bytes(0)?;
        documents(call, |row| {
            let bytes = values.get(row);
            Ok(bytes.map(|bytes| json_of(behind_key(bytes)).to_document()))
        })
    }),
    Function::new("$json_element", (1, 1), |_| Ok(field::bytes()), element),
    Function::new("$json_member", (2, 2), |_| Ok(field::bytes()), member),
    Function::strict("$json_array_of", (1, 1), json, |call| {
        collected(call, |rest, builder| {
            builder.begin_array()?;
            while let Some(document) = take(rest) {
                builder.json(json_of(document))?;
            }
            builder.end()
        })
    }),
    Function::strict("$json_object_of", (1, 1), json, |call| {
        collected(call, |rest, builder| {
            builder.begin_object()?;
            while let Some(key) = take(rest) {
                builder.key(std::str::from_utf8(key).unwrap_or_default())?;
                builder.json(json_of(take(rest).ok_or(JsonError::TooBig)?))?;
            }
            builder.end()
        })
    }),
];

/// What stands behind the end of a key.
fn behind_key(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == 0) {
        let end = rest.get(at + 1).copied();
        rest = rest.get(at + 2..).unwrap_or_default();
        if end == Some(0) {
            break;
        }
    }
    rest
}

fn element(call: &Call<'_>) -> Result<ArrayRef> {
    let values = call.json_value(0)?;
    lines(call, |row, out| put_value(&values, row, out))
}

fn member(call: &Call<'_>) -> Result<ArrayRef> {
    let (keys, values) = (call.text_of_characters(0)?, call.json_value(1)?);
    lines(call, |row, out| {
        put(keys.get(row).ok_or(JsonError::NullKey)?.as_bytes(), out)?;
        put_value(&values, row, out)
    })
}

/// NULL is the null literal.
fn put_value(
    values: &super::argument::SqlValues,
    row: usize,
    out: &mut Vec<u8>,
) -> std::result::Result<(), JsonError> {
    match values.document(row)? {
        Some(document) => put(document.as_bytes(), out),
        None => {
            let mut builder = Builder::new();
            builder.null()?;
            put(builder.finish()?.as_bytes(), out)
        }
    }
}

fn put(bytes: &[u8], out: &mut Vec<u8>) -> std::result::Result<(), JsonError> {
    let length = u32::try_from(bytes.len()).map_err(|_| JsonError::TooBig)?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

/// What was [put](put) next; `None` at the end.
fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, behind) = rest.split_first_chunk()?;
    let (taken, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = behind;
    Some(taken)
}

/// Bytes for each row.
fn lines(
    call: &Call<'_>,
    put: impl Fn(usize, &mut Vec<u8>) -> std::result::Result<(), JsonError>,
) -> Result<ArrayRef> {
    let mut account = call.account();
    let mut builder = BinaryBuilder::with_capacity(call.rows(), 0);
    let mut line = Vec::new();
    for row in 0..call.rows() {
        if account.is_over() {
            account.check()?;
        }
        line.clear();
        put(row, &mut line).map_err(failed)?;
        match account.book(line.len())? {
            true => builder.append_value(&line),
            false => return Err(failed(JsonError::TooBig)),
        }
    }
    Ok(std::sync::Arc::new(builder.finish()))
}

/// A document for each row, made of what was collected.
fn collected(
    call: &Call<'_>,
    make: impl Fn(&mut &[u8], &mut Builder) -> std::result::Result<(), JsonError>,
) -> Result<ArrayRef> {
    let values = call.bytes(0)?;
    documents(call, |row| {
        let index = values.index(row);
        if values.array.is_null(index) {
            return Ok(None);
        }
        let mut rest = values.array.value(index);
        let mut builder = Builder::new();
        make(&mut rest, &mut builder)?;
        match rest.is_empty() {
            true => builder.finish().map(Some),
            // The last one was cut.
            false => Err(JsonError::TooBig),
        }
    })
}
