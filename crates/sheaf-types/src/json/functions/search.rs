//! JSON_SEARCH: the paths to strings that match.

use std::collections::HashSet;
use std::fmt::Write;

use super::contains_path::OneOrAll;
use crate::json::JsonError;
use crate::json::document::{Builder, Document, Json, MAX_NESTING, View};
use crate::json::path::{Path, Place, expand, push_member};

/// The way to a value, as a path.
impl Place for String {
    fn element(&self, position: usize) -> String {
        let mut place = self.clone();
        let _ = write!(place, "[{position}]");
        place
    }

    fn member(&self, key: &str) -> String {
        let mut place = self.clone();
        push_member(key, &mut place);
        place
    }
}

/// The path to the first string that matches, or an array of the paths to all of them; of a single one, the path.
/// Strings are looked for below the values that `paths` lead to; without paths, in the whole document. `None`: none
/// matches.
///
/// Here a value that is no array does not act as an array of itself.
///
/// # Errors
/// `TooBig`.
pub fn search(
    json: Json<'_>,
    mode: OneOrAll,
    paths: &[&Path],
    matches: &dyn Fn(&str) -> bool,
) -> Result<Option<Document>, JsonError> {
    let mut search = Search {
        mode,
        matches,
        found: Vec::new(),
        seen: HashSet::new(),
    };
    let root = "$".to_string();
    if paths.is_empty() {
        search.visit(json, &root, MAX_NESTING);
    }
    for path in paths {
        for (value, place) in expand(json, root.clone(), path.legs(), false) {
            search.visit(value, &place, MAX_NESTING);
        }
    }
    let mut builder = Builder::new();
    match &search.found[..] {
        [] => return Ok(None),
        [place] => builder.string(place)?,
        places => {
            builder.begin_array()?;
            for place in places {
                builder.string(place)?;
            }
            builder.end()?;
        }
    }
    builder.finish().map(Some)
}

struct Search<'a> {
    mode: OneOrAll,
    matches: &'a dyn Fn(&str) -> bool,
    found: Vec<String>,
    seen: HashSet<String>,
}

impl Search<'_> {
    /// `room`: containers in each other that are looked at. Deeper ones are damaged.
    fn visit(&mut self, value: Json<'_>, place: &str, room: usize) {
        if self.mode == OneOrAll::One && !self.found.is_empty() {
            return;
        }
        match value.view() {
            View::String(text) => self.visit_string(text, place),
            View::Array(array) if room > 0 => {
                let place = place.to_string();
                for (position, element) in array.iter().enumerate() {
                    self.visit(element, &place.element(position), room - 1);
                }
            }
            View::Object(object) if room > 0 => {
                let place = place.to_string();
                for (key, member) in object {
                    self.visit(member, &place.member(key), room - 1);
                }
            }
            _ => {}
        }
    }

    fn visit_string(&mut self, text: &str, place: &str) {
        if (self.matches)(text) && self.seen.insert(place.to_string()) {
            self.found.push(place.to_string());
        }
    }
}
