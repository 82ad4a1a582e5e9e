//! What a document is made of: its keys, its length, its type.

use crate::json::JsonError;
use crate::json::document::field_type::{BIT, STRING, TINY_BLOB, VARCHAR};
use crate::json::document::{Builder, Document, Json, View};
use crate::json::path::{Path, expand};

/// JSON_KEYS: the keys of the object that the path leads to, as an array. `None`: there is none.
///
/// Here a value that is no array does not act as an array of itself.
///
/// # Errors
/// `Wildcard` and `TooBig`.
pub fn keys(json: Json<'_>, path: Option<&Path>) -> Result<Option<Document>, JsonError> {
    let json = match path {
        Some(path) => {
            let found = expand(json, (), path.single()?, false);
            found.first().map(|(value, ())| *value)
        }
        None => Some(json),
    };
    let Some(object) = json.and_then(|json| json.as_object()) else {
        return Ok(None);
    };
    let mut builder = Builder::new();
    builder.begin_array()?;
    for (key, _) in object {
        builder.string(key)?;
    }
    builder.end()?;
    builder.finish().map(Some)
}

/// JSON_LENGTH: elements, members, or 1 of a scalar.
pub fn length(json: Json<'_>) -> usize {
    match json.view() {
        View::Array(array) => array.len(),
        View::Object(object) => object.len(),
        _ => 1,
    }
}

/// JSON_LENGTH of what JSON_EXTRACT gives for the path: with wildcards, the number of values. `None`: there is none.
pub fn length_at(json: Json<'_>, path: &Path) -> Option<usize> {
    match path.matches_many() {
        true => Some(path.find(json).len()).filter(|count| *count > 0),
        false => path.find_one(json).map(length),
    }
}

/// JSON_DEPTH.
pub fn depth(json: Json<'_>) -> usize {
    json.depth()
}

/// JSON_STORAGE_SIZE: bytes of the binary form.
pub fn storage_size(document: &[u8]) -> usize {
    document.len()
}

/// JSON_TYPE.
pub fn type_name(json: Json<'_>) -> &'static str {
    match json.view() {
        View::Null => "NULL",
        View::Bool(_) => "BOOLEAN",
        View::Int(_) => "INTEGER",
        View::UInt(_) => "UNSIGNED INTEGER",
        View::Double(_) => "DOUBLE",
        View::Decimal { .. } | View::WideDecimal { .. } => "DECIMAL",
        View::String(_) => "STRING",
        View::Date(_) => "DATE",
        View::Time(_) => "TIME",
        View::DateTime(_) => "DATETIME",
        View::Timestamp(_) => "TIMESTAMP",
        View::Opaque { field_type, .. } => match field_type {
            BIT => "BIT",
            VARCHAR | TINY_BLOB..=STRING => "BLOB",
            _ => "OPAQUE",
        },
        View::Array(_) => "ARRAY",
        View::Object(_) => "OBJECT",
    }
}
