//! What makes JSON values: of SQL values, and of texts.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use datafusion_common::{Result, internal_err};
use sheaf_types::json::Builder;
use sheaf_types::json::functions::quote::{quote, unquote, unquote_text};
use sheaf_types::json::sort_key::push_sort_key;
use sheaf_types::json::{JsonError, text as json_text};

use super::argument::failed;
use super::{bigint, documents, json, numbers, text};
use crate::functions::result_array::{byte_strings, texts};
use crate::functions::types::{SqlType, field};
use crate::functions::{Call, Function, VARIADIC};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("json_array", (0, VARIADIC), json, |call| {
        let values = call.json_values(0, 1)?;
        documents(call, |row| {
            let mut builder = Builder::new();
            builder.begin_array()?;
            for value in &values {
                value.push(row, &mut builder)?;
            }
            builder.end()?;
            builder.finish().map(Some)
        })
    }),
    Function::new("json_object", (0, VARIADIC), json, object),
    Function::strict("json_quote", (1, 1), text, |call| {
        let values = json_texts(call)?;
        texts(call, |row, out| {
            out.push_str(&quote(values.get(row)?));
            Some(())
        })
    }),
    Function::new("json_unquote", (1, 1), text, unquoted),
    Function::new("json_valid", (1, 1), bigint, valid).null_in_doubt(),
    // CAST to JSON: a text is read, any other value becomes one.
    Function::new("$cast_json", (1, 1), json, |call| {
        if matches!(call.sql_type(0), SqlType::Text { .. }) {
            return as_they_are(call);
        }
        let values = call.json_value(0)?;
        documents(call, |row| values.document(row))
    }),
    // The document of JSON_TABLE.
    Function::new("$json_table", (1, 1), json, as_they_are),
    // A value that is compared with a JSON value: a text is a JSON string.
    Function::new("$json_value", (1, 1), json, |call| {
        let values = call.json_value(0)?;
        documents(call, |row| values.document(row))
    }),
    // Bytes in the order of the values.
    Function::strict(
        "$json_key",
        (1, 1),
        |_| Ok(field::bytes()),
        |call| {
            let values = call.document(0)?;
            byte_strings(call, |row, out| {
                push_sort_key(values.get(row)?, out);
                Some(())
            })
        },
    ),
];

/// The documents that are the argument.
fn as_they_are(call: &Call<'_>) -> Result<ArrayRef> {
    let Some(documents) = call.document(0)?.into_array(call.rows()) else {
        return internal_err!("{} of a constant for many rows", call.name());
    };
    let account = call.account().of_documents();
    let bytes = documents.lengths().map(|length| length as usize).sum();
    account.check_made(documents.len(), bytes)?;
    Ok(Arc::new(documents))
}

/// The text that JSON_QUOTE puts quotes around.
///
/// # Errors
/// 3064 of a value that is no text, 3144 of bytes.
fn json_texts(
    call: &Call<'_>,
) -> Result<crate::functions::Argument<arrow::array::StringViewArray>> {
    match call.sql_type(0) {
        SqlType::Null | SqlType::Text { .. } | SqlType::Enum { .. } | SqlType::Bytes => {
            call.text_of_characters(0)
        }
        _ => Err(failed(JsonError::NoText {
            argument: 1,
            function: call.name().to_string(),
        })),
    }
}

fn object(call: &Call<'_>) -> Result<ArrayRef> {
    let places = (0..call.len()).step_by(2);
    let keys = places
        .map(|at| call.text_of_characters(at))
        .collect::<Result<Vec<_>>>()?;
    let values = call.json_values(1, 2)?;
    documents(call, |row| {
        let mut builder = Builder::new();
        builder.begin_object()?;
        for (key, value) in keys.iter().zip(&values) {
            builder.key(key.get(row).ok_or(JsonError::NullKey)?)?;
            value.push(row, &mut builder)?;
        }
        builder.end()?;
        builder.finish().map(Some)
    })
}

fn unquoted(call: &Call<'_>) -> Result<ArrayRef> {
    if call.sql_type(0) == SqlType::Json {
        let values = call.document(0)?;
        return texts(call, |row, out| {
            out.push_str(&unquote(values.get(row)?));
            Some(())
        });
    }
    let values = json_texts(call)?;
    let mut read = Vec::with_capacity(call.rows());
    for row in 0..call.rows() {
        let text = values.get(row).map(|text| {
            let problem = |problem: json_text::TextProblem| problem.in_argument(1, call.name());
            unquote_text(text).map_err(|found| failed(problem(found)))
        });
        read.push(text.transpose()?);
    }
    texts(call, |row, out| {
        out.push_str(read[row].as_deref()?);
        Some(())
    })
}

/// What is no text and no JSON value is not valid.
fn valid(call: &Call<'_>) -> Result<ArrayRef> {
    match call.sql_type(0) {
        SqlType::Json => {
            let values = call.document(0)?;
            numbers(call, |row| Ok(values.get(row).map(|_| 1)))
        }
        SqlType::Text { .. } | SqlType::Enum { .. } | SqlType::Null => {
            let values = call.text(0)?;
            numbers(call, |row| match values.get(row) {
                Some(text) => json_text::is_json(text).map(|valid| Some(i64::from(valid))),
                None => Ok(None),
            })
        }
        _ => {
            let values = call.text(0)?;
            numbers(call, |row| Ok(values.get(row).map(|_| 0)))
        }
    }
}
