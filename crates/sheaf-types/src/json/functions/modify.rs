//! JSON_SET, JSON_INSERT, JSON_REPLACE, JSON_REMOVE, JSON_ARRAY_APPEND and JSON_ARRAY_INSERT.
//!
//! A change leads along a path without wildcards. Containers on the way are taken apart, all others are copied as they
//! are. Several changes are made one after the other, each to what the one before has left.

use std::borrow::Cow;

use crate::json::JsonError;
use crate::json::document::{Tree, find_key};
use crate::json::path::{Index, Leg, Path};

/// Which of the functions makes a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// JSON_SET: replaces a value, or adds it.
    Set,
    /// JSON_INSERT: adds a value where there is none.
    Insert,
    /// JSON_REPLACE: replaces a value where there is one.
    Replace,
    /// JSON_ARRAY_APPEND: adds an element to an array, or makes an array of a value and the new one.
    ArrayAppend,
    /// JSON_ARRAY_INSERT: adds an element before one of an array.
    ArrayInsert,
}

/// Makes one change. Where the path does not fit the document, nothing changes.
///
/// # Errors
/// `Wildcard`, and `NotAnArrayCell` of JSON_ARRAY_INSERT.
pub fn change<'a>(
    tree: &mut Tree<'a>,
    kind: Change,
    path: &'a Path,
    value: Tree<'a>,
) -> Result<(), JsonError> {
    let legs = path.single()?;
    match kind {
        Change::Set | Change::Insert | Change::Replace => put(tree, kind, legs, value),
        Change::ArrayAppend => {
            if let Some(target) = find(tree, legs) {
                append(target, value);
            }
        }
        Change::ArrayInsert => {
            let Some((Leg::Cell(index), before)) = legs.split_last() else {
                return Err(JsonError::NotAnArrayCell);
            };
            if let Some(elements) = find(tree, before).and_then(Tree::elements) {
                let position = place(*index, elements.len());
                elements.insert(position, value);
            }
        }
    }
    Ok(())
}

/// JSON_REMOVE of one path. Where it does not fit the document, nothing changes.
///
/// # Errors
/// `Wildcard`, and `VacuousPath` of `$`.
pub fn remove(tree: &mut Tree<'_>, path: &Path) -> Result<(), JsonError> {
    let mut legs = path.single()?;
    if legs.is_empty() {
        return Err(JsonError::VacuousPath);
    }
    while let Some((last, before)) = legs.split_last() {
        let Some(parent) = find(tree, before) else {
            return Ok(());
        };
        match last {
            Leg::Cell(index) => match parent.elements() {
                Some(elements) => {
                    if let Some(position) = index.within(elements.len()) {
                        elements.remove(position);
                    }
                    return Ok(());
                }
                // An array of itself: the value goes where it stands.
                None if index.within(1).is_some() => legs = before,
                None => return Ok(()),
            },
            Leg::Member(key) => {
                if let Some(members) = parent.members()
                    && let Ok(position) = find_key(members, key)
                {
                    members.remove(position);
                }
                return Ok(());
            }
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// The value that legs without wildcards lead to.
fn find<'t, 'a>(tree: &'t mut Tree<'a>, legs: &[Leg]) -> Option<&'t mut Tree<'a>> {
    let mut value = tree;
    for leg in legs {
        value = match leg {
            Leg::Member(key) => {
                let members = value.members()?;
                let position = find_key(members, key).ok()?;
                &mut members[position].1
            }
            Leg::Cell(index) if value.is_array() => {
                let elements = value.elements()?;
                let position = index.within(elements.len())?;
                &mut elements[position]
            }
            Leg::Cell(index) => index.within(1).map(|_| value)?,
            _ => return None,
        };
    }
    Some(value)
}

fn put<'a>(tree: &mut Tree<'a>, kind: Change, legs: &'a [Leg], value: Tree<'a>) {
    let replaces = kind != Change::Insert;
    let adds = kind != Change::Replace;
    let Some((last, before)) = legs.split_last() else {
        if replaces {
            *tree = value;
        }
        return;
    };
    let Some(parent) = find(tree, before) else {
        return;
    };
    match last {
        Leg::Member(key) => {
            let Some(members) = parent.members() else {
                return;
            };
            match find_key(members, key) {
                Ok(position) if replaces => members[position].1 = value,
                Err(position) if adds => members.insert(position, (Cow::Borrowed(key), value)),
                _ => {}
            }
        }
        Leg::Cell(index) => {
            if !parent.is_array() {
                match index.within(1) {
                    Some(_) if replaces => *parent = value,
                    None if adds => {
                        let single = wrap(parent);
                        single.insert(place(*index, 1), value);
                    }
                    _ => {}
                }
                return;
            }
            let Some(elements) = parent.elements() else {
                return;
            };
            match index.within(elements.len()) {
                Some(position) if replaces => elements[position] = value,
                None if adds => {
                    let position = place(*index, elements.len());
                    elements.insert(position, value);
                }
                _ => {}
            }
        }
        _ => {}
    }
}

/// Where a new element goes in an array of so many: at its end at most.
fn place(index: Index, length: usize) -> usize {
    index.position(length).clamp(0, length as i64) as usize
}

fn append<'a>(target: &mut Tree<'a>, value: Tree<'a>) {
    match target.is_array() {
        true => {
            if let Some(elements) = target.elements() {
                elements.push(value);
            }
        }
        false => wrap(target).push(value),
    }
}

/// Makes an array of a value and itself alone.
fn wrap<'t, 'a>(target: &'t mut Tree<'a>) -> &'t mut Vec<Tree<'a>> {
    let value = std::mem::replace(target, Tree::Array(Vec::new()));
    let Tree::Array(elements) = target else {
        unreachable!("it has just become one");
    };
    elements.push(value);
    elements
}
