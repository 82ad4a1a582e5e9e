//! Functions of JSON, and what JSON values are where they stand beside others.
//!
//! A JSON value is its binary form ([`sheaf_types::json`]) in an array of BinaryView, which nothing else is. A text in
//! the place of a document is read; in the place of a value it is a JSON string:
//!
//! ```text
//!   JSON_SET('{"a": 1}', '$.b', '[2]')                  {"a": 1, "b": "[2]"}
//!   JSON_SET('{"a": 1}', '$.b', CAST('[2]' AS JSON))    {"a": 1, "b": [2]}
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `argument` | arguments: documents, paths, SQL values as JSON values |
//! | `make` | what makes documents: JSON_ARRAY, JSON_OBJECT, CAST AS JSON |
//! | `look` | what looks into documents: JSON_EXTRACT, JSON_CONTAINS, JSON_LENGTH and so on |
//! | `change` | what changes documents: JSON_SET, JSON_REMOVE, JSON_MERGE_PATCH and so on |
//! | `value` | JSON_VALUE |
//! | `collect` | the functions around JSON_ARRAYAGG and JSON_OBJECTAGG |

mod argument;
mod change;
mod collect;
mod look;
mod make;
mod value;

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewArray, BinaryViewBuilder};
use arrow::buffer::Buffer;
use arrow::datatypes::Field;
use datafusion_common::Result;
use sheaf_types::Collation;
use sheaf_types::json::{Document, JsonError};

use super::types::{Coercibility, field};
use super::{Call, Function, Operands};

use argument::failed;

pub(super) static FUNCTIONS: [&[Function]; 5] = [
    make::FUNCTIONS,
    look::FUNCTIONS,
    change::FUNCTIONS,
    value::FUNCTIONS,
    collect::FUNCTIONS,
];

fn json(_: &Operands<'_>) -> Result<Field> {
    Ok(field::json())
}

/// A text of utf8mb4_bin, as what is made of JSON values is. It yields to columns, as literals do.
fn text(_: &Operands<'_>) -> Result<Field> {
    Ok(field::collated_text(
        Collation::Utf8mb4_bin,
        Coercibility::Coercible,
    ))
}

fn bigint(_: &Operands<'_>) -> Result<Field> {
    Ok(field::bigint())
}

type Made<T> = std::result::Result<Option<T>, JsonError>;

/// A document for each row; `None` is NULL.
fn documents(call: &Call<'_>, make: impl Fn(usize) -> Made<Document>) -> Result<ArrayRef> {
    let mut account = call.account().of_documents();
    if call.rows() == 1 {
        // It may be long, and is not copied.
        return Ok(match make(0).map_err(failed)? {
            Some(document) if account.book(document.as_bytes().len())? => {
                Arc::new(array_of_one(document.into_bytes()))
            }
            _ => Arc::new(BinaryViewArray::new_null(1)),
        });
    }
    let mut builder = BinaryViewBuilder::with_capacity(call.rows());
    for row in 0..call.rows() {
        if account.is_over() {
            account.check()?;
        }
        match make(row).map_err(failed)? {
            Some(document) if account.book(document.as_bytes().len())? => {
                builder.append_value(document.as_bytes());
            }
            _ => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// One document as an array, which is not copied.
fn array_of_one(document: Vec<u8>) -> BinaryViewArray {
    match u32::try_from(document.len()) {
        Ok(bytes) => {
            let mut builder = BinaryViewBuilder::with_capacity(1);
            let block = builder.append_block(Buffer::from_vec(document));
            match builder.try_append_view(block, 0, bytes) {
                Ok(()) => builder.finish(),
                Err(_) => BinaryViewArray::new_null(1),
            }
        }
        Err(_) => BinaryViewArray::new_null(1),
    }
}

/// A number for each row; `None` is NULL.
fn numbers(call: &Call<'_>, compute: impl Fn(usize) -> Made<i64>) -> Result<ArrayRef> {
    let account = call.account();
    let mut numbers = Vec::with_capacity(call.rows());
    for row in 0..call.rows() {
        if account.is_over() {
            account.check()?;
        }
        numbers.push(compute(row).map_err(failed)?);
    }
    Ok(Arc::new(arrow::array::Int64Array::from(numbers)))
}
