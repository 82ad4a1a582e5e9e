//! JSON_MERGE_PATCH and JSON_MERGE_PRESERVE.

use std::borrow::Cow;

use crate::json::document::{Json, Tree, compare_keys};

/// JSON_MERGE_PATCH of all documents, as RFC 7396 says: members of objects replace those of the same key, and null
/// removes them. A document that is no object replaces all before it. A `None` is NULL, and so is all that is merged
/// with it, up to the next document that is no object.
pub fn merge_patch<'a>(documents: &[Option<Json<'a>>]) -> Option<Tree<'a>> {
    let mut documents = documents.iter();
    let mut merged = documents.next()?.map(Tree::Stored);
    for patch in documents {
        merged = match patch {
            None => None,
            Some(patch) if patch.as_object().is_none() => Some(Tree::Stored(*patch)),
            Some(patch) => merged.map(|mut target| {
                apply(&mut target, *patch);
                target
            }),
        };
    }
    merged
}

/// Applies one patch.
fn apply<'a>(target: &mut Tree<'a>, patch: Json<'a>) {
    let Some(patch) = patch.as_object() else {
        *target = Tree::Stored(patch);
        return;
    };
    if !target.is_object() {
        *target = Tree::Object(Vec::new());
    }
    let Some(members) = target.members() else {
        return;
    };
    let patch = patch.iter().map(|(key, value)| (Cow::Borrowed(key), value));
    join(members, patch, |member, value| {
        if value.is_null() {
            return None;
        }
        let mut member = member.unwrap_or(Tree::Stored(Json::NULL));
        apply(&mut member, value);
        Some(member)
    });
}

type Member<'a, T> = (Cow<'a, str>, T);

/// Puts other members among those of an object, both by the order of keys. `merged` gives the value of each key of the
/// others, from that of the object if it has the key; `None` removes it.
fn join<'a, T>(
    members: &mut Vec<Member<'a, Tree<'a>>>,
    others: impl Iterator<Item = Member<'a, T>>,
    mut merged: impl FnMut(Option<Tree<'a>>, T) -> Option<Tree<'a>>,
) {
    let mut rest = std::mem::take(members).into_iter().peekable();
    let order = |a: &Cow<'_, str>, b: &Cow<'_, str>| compare_keys(a.as_bytes(), b.as_bytes());
    for (key, other) in others {
        while let Some(member) = rest.next_if(|(own, _)| order(own, &key).is_lt()) {
            members.push(member);
        }
        let own = rest.next_if(|(own, _)| order(own, &key).is_eq());
        if let Some(value) = merged(own.map(|(_, value)| value), other) {
            members.push((key, value));
        }
    }
    members.extend(rest);
}

/// JSON_MERGE_PRESERVE of all documents: arrays are put together, and objects member by member. Any other value is an
/// array of itself. `None`: there are no documents.
pub fn merge_preserve<'a>(documents: impl IntoIterator<Item = Json<'a>>) -> Option<Tree<'a>> {
    let trees = documents.into_iter().map(Tree::Stored);
    trees.reduce(|mut left, right| {
        preserve(&mut left, right);
        left
    })
}

fn preserve<'a>(left: &mut Tree<'a>, mut right: Tree<'a>) {
    if left.is_object() && right.is_object() {
        let (Some(members), Some(others)) = (left.members(), right.members()) else {
            return;
        };
        join(
            members,
            std::mem::take(others).into_iter(),
            |member, value| {
                Some(match member {
                    Some(mut member) => {
                        preserve(&mut member, value);
                        member
                    }
                    None => value,
                })
            },
        );
        return;
    }
    if !left.is_array() {
        let value = std::mem::replace(left, Tree::Array(Vec::new()));
        *left = Tree::Array(vec![value]);
    }
    let Some(elements) = left.elements() else {
        return;
    };
    match right.elements() {
        Some(others) => elements.append(others),
        None => elements.push(right),
    }
}
