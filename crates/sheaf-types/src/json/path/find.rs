//! The values that a path leads to, in the order of the document.
//!
//! While each leg leads to one value at most, there is no list: that is the usual path. From the first wildcard on,
//! each leg turns a list of values into the next one. Where two ways may lead to one value, it is kept once.

use std::collections::HashSet;

use super::{Leg, Path};
use crate::json::document::{Json, MAX_NESTING, View};

/// What is noted of the way to a value.
pub(crate) trait Place: Clone {
    fn element(&self, position: usize) -> Self;
    fn member(&self, key: &str) -> Self;
}

/// Nothing is noted.
impl Place for () {
    fn element(&self, _: usize) {}
    fn member(&self, _: &str) {}
}

impl Path {
    /// The value that a path without wildcards leads to; with them, the first one.
    pub fn find_one<'a>(&self, json: Json<'a>) -> Option<Json<'a>> {
        match self.matches_many() {
            false => descend(json, self.legs()),
            true => self.find(json).into_iter().next(),
        }
    }

    /// All values that the path leads to.
    pub fn find<'a>(&self, json: Json<'a>) -> Vec<Json<'a>> {
        let found = expand(json, (), self.legs(), true);
        found.into_iter().map(|(value, ())| value).collect()
    }
}

/// Follows legs that lead to one value at most.
pub(crate) fn descend<'a>(json: Json<'a>, legs: &[Leg]) -> Option<Json<'a>> {
    let mut value = json;
    for leg in legs {
        value = match leg {
            Leg::Member(key) => value.as_object()?.get(key)?,
            Leg::Cell(index) => match value.as_array() {
                Some(array) => array.get(index.within(array.len())?)?,
                None => index.within(1).map(|_| value)?,
            },
            _ => return None,
        };
    }
    Some(value)
}

/// Follows all legs, and notes the way. `wraps`: a value that is no array acts as an array of itself.
pub(crate) fn expand<'a, P: Place>(
    json: Json<'a>,
    place: P,
    legs: &[Leg],
    wraps: bool,
) -> Vec<(Json<'a>, P)> {
    let mut found = vec![(json, place)];
    let mut below_ellipsis = false;
    for leg in legs {
        let mut next = Vec::new();
        for (value, place) in &found {
            step(*value, place, leg, wraps, &mut next);
        }
        // Below an ellipsis, a second one and an array of itself lead to values that are there already.
        let is_ellipsis = *leg == Leg::Ellipsis;
        if below_ellipsis && (is_ellipsis || wraps && leg.wraps()) {
            let mut seen = HashSet::new();
            next.retain(|(value, _)| seen.insert(value.identity()));
        }
        below_ellipsis |= is_ellipsis;
        found = next;
        if found.is_empty() {
            break;
        }
    }
    found
}

fn step<'a, P: Place>(
    value: Json<'a>,
    place: &P,
    leg: &Leg,
    wraps: bool,
    found: &mut Vec<(Json<'a>, P)>,
) {
    match leg {
        Leg::Member(key) => {
            if let Some(member) = value.as_object().and_then(|object| object.get(key)) {
                found.push((member, place.member(key)));
            }
        }
        Leg::AnyMember => {
            if let Some(object) = value.as_object() {
                found.extend(
                    object
                        .iter()
                        .map(|(key, member)| (member, place.member(key))),
                );
            }
        }
        Leg::Cell(index) => match value.as_array() {
            Some(array) => {
                if let Some(position) = index.within(array.len()) {
                    let element = array.get(position).unwrap_or(Json::NULL);
                    found.push((element, place.element(position)));
                }
            }
            None if wraps && index.within(1).is_some() => found.push((value, place.clone())),
            None => {}
        },
        Leg::Range(from, to) => {
            let array = value.as_array();
            let length = array.map_or(1, |array| array.len());
            let first = from.position(length).max(0) as usize;
            let end = (to.position(length) + 1).clamp(0, length as i64) as usize;
            match array {
                Some(array) => {
                    let elements = array.iter().enumerate().take(end).skip(first);
                    found.extend(elements.map(|(at, element)| (element, place.element(at))));
                }
                None if wraps && first < end => found.push((value, place.clone())),
                None => {}
            }
        }
        Leg::AnyCell => {
            if let Some(array) = value.as_array() {
                let elements = array.iter().enumerate();
                found.extend(elements.map(|(at, element)| (element, place.element(at))));
            }
        }
        Leg::Ellipsis => push_all(value, place, MAX_NESTING, found),
    }
}

/// The value and all below it. Values that are deeper than `room` are damaged.
fn push_all<'a, P: Place>(value: Json<'a>, place: &P, room: usize, found: &mut Vec<(Json<'a>, P)>) {
    found.push((value, place.clone()));
    let Some(room) = room.checked_sub(1) else {
        return;
    };
    match value.view() {
        View::Array(array) => {
            for (position, element) in array.iter().enumerate() {
                push_all(element, &place.element(position), room, found);
            }
        }
        View::Object(object) => {
            for (key, member) in object {
                push_all(member, &place.member(key), room, found);
            }
        }
        _ => {}
    }
}
