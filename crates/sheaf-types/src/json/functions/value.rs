//! JSON_VALUE: one value, and as what it may be returned.
//!
//! ON EMPTY is for a path that leads nowhere, ON ERROR for all other problems. The caller acts on them.

use super::coerce::Coerced;
use crate::json::JsonError;
use crate::json::document::Json;
use crate::json::path::Path;

/// What the path of JSON_VALUE leads to.
#[derive(Debug, Clone, Copy)]
pub enum Found<'a> {
    One(Json<'a>),
    /// The null literal: NULL, and no problem.
    Null,
    /// For ON EMPTY.
    Nothing,
    /// For ON ERROR.
    Several,
}

/// What the path leads to.
pub fn find<'a>(json: Json<'a>, path: &Path) -> Found<'a> {
    let found = match path.matches_many() {
        true => path.find(json),
        false => path.find_one(json).into_iter().collect(),
    };
    match found[..] {
        [] => Found::Nothing,
        [value] if value.is_null() => Found::Null,
        [value] => Found::One(value),
        _ => Found::Several,
    }
}

/// The error of ERROR ON EMPTY and ERROR ON ERROR. `None`: there is a value, or NULL.
pub fn problem(found: Found<'_>, function: &str) -> Option<JsonError> {
    let function = function.to_string();
    match found {
        Found::One(_) | Found::Null => None,
        Found::Nothing => Some(JsonError::MissingValue { function }),
        Found::Several => Some(JsonError::MultipleValues { function }),
    }
}

/// A value that JSON_VALUE may return: with any problem it is an error. `to` is MySQL's word for the type: SIGNED,
/// UNSIGNED, DECIMAL, DOUBLE, DATE, TIME, DATETIME, YEAR or STRING.
///
/// # Errors
/// `NotOfType`.
pub fn without_problem<T>(
    coerced: Coerced<T>,
    to: &'static str,
    function: &str,
) -> Result<T, JsonError> {
    match coerced.problem {
        None => Ok(coerced.value),
        Some(_) => Err(JsonError::NotOfType {
            to,
            function: function.to_string(),
        }),
    }
}

/// RETURNING SIGNED. Give it to [`without_problem`].
pub fn to_signed(json: Json<'_>) -> Coerced<i64> {
    let integer = super::coerce::to_integer(json);
    within(integer, i64::try_from(integer.value).ok())
}

/// RETURNING UNSIGNED. Give it to [`without_problem`].
pub fn to_unsigned(json: Json<'_>) -> Coerced<u64> {
    let integer = super::coerce::to_integer(json);
    within(integer, u64::try_from(integer.value).ok())
}

fn within<T: Default>(integer: Coerced<i128>, value: Option<T>) -> Coerced<T> {
    let problem = match value {
        Some(_) => integer.problem,
        None => Some(super::coerce::CoercionProblem::OutOfRange),
    };
    let value = value.unwrap_or_default();
    Coerced { value, problem }
}
