//! JSON_QUOTE and JSON_UNQUOTE.

use std::borrow::Cow;

use crate::json::document::{Json, View};
use crate::json::text::read::read_string;
use crate::json::text::{TextProblem, push_compact, push_quoted, read};

/// JSON_QUOTE: a text as a JSON string.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_quoted(text, &mut out);
    out
}

/// JSON_UNQUOTE of a text: a text between quotes is read as a JSON string, any other is left.
///
/// # Errors
/// What is wrong with the string.
pub fn unquote_text(text: &str) -> Result<Cow<'_, str>, TextProblem> {
    if text.len() < 2 || !text.starts_with('"') || !text.ends_with('"') {
        return Ok(Cow::Borrowed(text));
    }
    match read_string(text) {
        Some(unquoted) => Ok(Cow::Owned(unquoted)),
        // The general reader says what is wrong.
        None => read(text).map(|_| Cow::Borrowed(text)),
    }
}

/// JSON_UNQUOTE of a value: a string without its quotes, of all others the text.
pub fn unquote(json: Json<'_>) -> Cow<'_, str> {
    let mut out = String::new();
    match json.view() {
        View::String(text) => return Cow::Borrowed(text),
        View::Array(_) | View::Object(_) => push_compact(json, &mut out),
        scalar => crate::json::text::push_scalar(scalar, &mut out),
    }
    Cow::Owned(out)
}
