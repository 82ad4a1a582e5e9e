//! JSON_EXTRACT: the values that paths lead to.
//!
//! One path without wildcards gives the value. Several paths, or a wildcard, give an array of all values.

use crate::json::JsonError;
use crate::json::document::{Builder, Document, Json};
use crate::json::path::Path;

/// `None`: no path leads to a value.
///
/// # Errors
/// `TooDeep` and `TooBig`.
pub fn extract(json: Json<'_>, paths: &[&Path]) -> Result<Option<Document>, JsonError> {
    if let [path] = paths
        && !path.matches_many()
    {
        return Ok(path.find_one(json).map(|value| value.to_document()));
    }
    let mut found = Vec::new();
    for path in paths {
        match path.matches_many() {
            true => found.append(&mut path.find(json)),
            false => found.extend(path.find_one(json)),
        }
    }
    if found.is_empty() {
        return Ok(None);
    }
    array_of(found).map(Some)
}

/// An array of these values.
pub(crate) fn array_of<'a>(
    values: impl IntoIterator<Item = Json<'a>>,
) -> Result<Document, JsonError> {
    let mut builder = Builder::new();
    builder.begin_array()?;
    for value in values {
        builder.json(value)?;
    }
    builder.end()?;
    builder.finish()
}
