//! JSON_OVERLAPS and MEMBER OF: whether two values have something in common.

use super::contains::Sorted;
use crate::json::compare::is_equal;
use crate::json::document::Json;

/// Two arrays overlap in an equal element, two objects in an equal member. Any other value is an array of itself.
pub fn overlaps(a: Json<'_>, b: Json<'_>) -> bool {
    match (a.as_object(), b.as_object()) {
        (Some(a), Some(b)) => {
            let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
            few.iter().any(|(key, value)| {
                let other = many.get(key);
                other.is_some_and(|other| is_equal(value, other))
            })
        }
        _ => match (a.as_array(), b.as_array()) {
            (Some(a), Some(b)) => {
                let a = Sorted::new(a.iter());
                b.iter().any(|element| a.has(element))
            }
            (Some(_), None) => is_member(b, a),
            _ => is_member(a, b),
        },
    }
}

/// MEMBER OF: an element of the array is equal to the value. Any other value is an array of itself.
pub fn is_member(value: Json<'_>, array: Json<'_>) -> bool {
    match array.as_array() {
        Some(array) => array.iter().any(|element| is_equal(value, element)),
        None => is_equal(value, array),
    }
}
