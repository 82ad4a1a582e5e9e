//! JSON_CONTAINS_PATH: whether paths lead to a value.

use crate::json::JsonError;
use crate::json::document::Json;
use crate::json::path::Path;

/// The argument `one` or `all`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OneOrAll {
    One,
    All,
}

impl OneOrAll {
    /// Reads the argument of a function. Case does not matter.
    ///
    /// # Errors
    /// `OneOrAll`.
    pub fn parse(text: &str, function: &str) -> Result<OneOrAll, JsonError> {
        if text.eq_ignore_ascii_case("one") {
            Ok(OneOrAll::One)
        } else if text.eq_ignore_ascii_case("all") {
            Ok(OneOrAll::All)
        } else {
            let function = function.to_string();
            Err(JsonError::OneOrAll { function })
        }
    }
}

/// Whether one of the paths, or all, lead to a value. Paths are asked for one after the other: `None`, NULL, makes the
/// result NULL if no path before it has decided.
pub fn contains_path<'p>(
    json: Json<'_>,
    mode: OneOrAll,
    paths: impl IntoIterator<Item = Option<&'p Path>>,
) -> Option<bool> {
    for path in paths {
        let is_found = path?.find_one(json).is_some();
        match mode {
            OneOrAll::One if is_found => return Some(true),
            OneOrAll::All if !is_found => return Some(false),
            _ => {}
        }
    }
    Some(mode == OneOrAll::All)
}
