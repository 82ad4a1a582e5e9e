//! JSON_CONTAINS: whether a candidate is within a target.
//!
//! An array contains a value that one of its elements contains, and an array all of whose elements it contains. An
//! object contains an object if each of its members contains the member of the same key. A scalar contains its equal.

use std::cmp::Ordering;

use crate::json::JsonError;
use crate::json::compare::{compare, is_equal};
use crate::json::document::{Json, MAX_NESTING, Object};
use crate::json::path::Path;

/// Whether `target`, or what the path leads to there, contains the candidate. `None`: the path leads nowhere.
///
/// # Errors
/// `Wildcard`.
pub fn contains(
    target: Json<'_>,
    candidate: Json<'_>,
    path: Option<&Path>,
) -> Result<Option<bool>, JsonError> {
    let Some(path) = path else {
        return Ok(Some(is_within(target, candidate, MAX_NESTING)));
    };
    path.single()?;
    let target = path.find_one(target);
    Ok(target.map(|target| is_within(target, candidate, MAX_NESTING)))
}

/// `room`: containers of the target in each other that are looked at. Deeper ones are damaged.
fn is_within(target: Json<'_>, candidate: Json<'_>, room: usize) -> bool {
    if let Some(target) = target.as_object() {
        let candidate = candidate.as_object();
        return candidate.is_some_and(|candidate| has_members(target, candidate, room));
    }
    let Some(elements) = target.as_array() else {
        return is_equal(target, candidate);
    };
    let Some(room) = room.checked_sub(1) else {
        return false;
    };
    let Some(candidates) = candidate.as_array() else {
        return elements
            .iter()
            .any(|element| is_within(element, candidate, room));
    };
    // Equal elements are looked up in their order, so that long arrays take no square of time.
    let sorted = Sorted::new(elements.iter());
    let containers: Vec<_> = elements
        .iter()
        .filter(|element| element.nesting() > 0)
        .collect();
    candidates.iter().all(|candidate| {
        let mut containers = containers.iter();
        sorted.has(candidate) || containers.any(|element| is_within(*element, candidate, room))
    })
}

fn has_members(target: Object<'_>, candidate: Object<'_>, room: usize) -> bool {
    let Some(room) = room.checked_sub(1) else {
        return false;
    };
    if candidate.len() > target.len() {
        return false;
    }
    candidate.iter().all(|(key, candidate)| {
        let member = target.get(key);
        member.is_some_and(|member| is_within(member, candidate, room))
    })
}

/// A list of values that may be asked which of them it has.
pub(super) struct Sorted<'a> {
    values: Vec<Json<'a>>,
}

impl<'a> Sorted<'a> {
    pub(super) fn new(values: impl Iterator<Item = Json<'a>>) -> Sorted<'a> {
        let mut values: Vec<_> = values.collect();
        values.sort_by(|a, b| compare(*a, *b));
        Sorted { values }
    }

    pub(super) fn has(&self, value: Json<'_>) -> bool {
        let order = |other: &Json<'_>| -> Ordering { compare(*other, value) };
        self.values.binary_search_by(order).is_ok()
    }
}
