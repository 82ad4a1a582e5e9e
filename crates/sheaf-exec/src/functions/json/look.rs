//! What looks into documents.

use arrow::array::ArrayRef;
use datafusion_common::Result;
use sheaf_types::Collation;
use sheaf_types::json::functions::contains::contains;
use sheaf_types::json::functions::contains_path::{OneOrAll, contains_path};
use sheaf_types::json::functions::extract::extract;
use sheaf_types::json::functions::overlaps::{is_member, overlaps};
use sheaf_types::json::functions::search::search;
use sheaf_types::json::functions::structure::{
    depth, keys, length, length_at, storage_size, type_name,
};
use sheaf_types::json::{JsonError, Path, text as json_text};
use sheaf_types::text::like::Pattern;

use super::argument::{Documents, Paths};
use super::{Made, bigint, documents, json, numbers, text};
use crate::functions::result_array::texts;
use crate::functions::{Call, Function, Length, VARIADIC};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("json_extract", (2, VARIADIC), json, |call| {
        let (values, paths) = (call.document(0)?, call.paths(1, 1)?);
        documents(call, |row| {
            let (Some(value), Some(paths)) = (values.get(row), all_of(&paths, row)) else {
                return Ok(None);
            };
            extract(value, &paths)
        })
    }),
    Function::new("json_contains", (2, 3), bigint, |call| {
        let (targets, candidates) = (call.document(0)?, call.document(1)?);
        let path = optional_path(call, 2)?;
        numbers(call, |row| {
            let (Some(target), Some(candidate)) = (targets.get(row), candidates.get(row)) else {
                return Ok(None);
            };
            let Some(path) = path_for(&path, row) else {
                return Ok(None);
            };
            Ok(contains(target, candidate, path)?.map(i64::from))
        })
    })
    .null_in_doubt(),
    Function::new("json_contains_path", (3, VARIADIC), bigint, |call| {
        let (values, modes, paths) = (call.document(0)?, call.text(1)?, call.paths(2, 1)?);
        numbers(call, |row| {
            let (Some(value), Some(mode)) = (values.get(row), modes.get(row)) else {
                return Ok(None);
            };
            let mode = OneOrAll::parse(mode, call.name())?;
            let paths = paths.iter().map(|path| path.get(row));
            Ok(contains_path(value, mode, paths).map(i64::from))
        })
    }),
    Function::new("json_overlaps", (2, 2), bigint, |call| {
        let (left, right) = (call.document(0)?, call.document(1)?);
        numbers(call, |row| {
            Ok(pair(&left, &right, row).map(|(a, b)| overlaps(a, b).into()))
        })
    }),
    // value MEMBER OF (array)
    Function::new("$member_of", (2, 2), bigint, |call| {
        let (values, arrays) = (call.json_value(0)?, call.document(1)?);
        numbers(call, |row| {
            let (Some(value), Some(array)) = (values.document(row)?, arrays.get(row)) else {
                return Ok(None);
            };
            Ok(Some(is_member(value.as_json(), array).into()))
        })
    }),
    Function::new("json_search", (3, VARIADIC), json, searched),
    Function::new("json_keys", (1, 2), json, |call| {
        let (values, path) = (call.document(0)?, optional_path(call, 1)?);
        documents(call, |row| match (values.get(row), path_for(&path, row)) {
            (Some(value), Some(path)) => keys(value, path),
            _ => Ok(None),
        })
    }),
    Function::new("json_length", (1, 2), bigint, |call| {
        let (values, path) = (call.document(0)?, optional_path(call, 1)?);
        numbers(call, |row| {
            let count = match (values.get(row), path_for(&path, row)) {
                (Some(value), Some(None)) => Some(length(value)),
                (Some(value), Some(Some(path))) => length_at(value, path),
                _ => None,
            };
            Ok(count.map(|count| count as i64))
        })
    })
    .null_in_doubt(),
    Function::new("json_depth", (1, 1), bigint, |call| {
        of_document(call, depth)
    })
    .null_in_doubt(),
    Function::new("json_storage_free", (1, 1), bigint, |call| {
        of_document(call, |_| 0)
    }),
    Function::new("json_storage_size", (1, 1), bigint, |call| {
        of_document(call, |value| storage_size(value.to_document().as_bytes()))
    }),
    Function::new("json_type", (1, 1), text, |call| {
        let values = call.document(0)?;
        texts(call, |row, out| {
            out.push_str(type_name(values.get(row)?));
            Some(())
        })
    })
    .length(Length::Fixed(17)),
    Function::new("json_pretty", (1, 1), text, |call| {
        let values = call.document(0)?;
        texts(call, |row, out| {
            json_text::push_pretty(values.get(row)?, out);
            Some(())
        })
    }),
];

fn of_document(
    call: &Call<'_>,
    compute: impl Fn(sheaf_types::json::Json<'_>) -> usize,
) -> Result<ArrayRef> {
    let values = call.document(0)?;
    numbers(call, |row| {
        Ok(values.get(row).map(|value| compute(value) as i64))
    })
}

fn pair<'a>(
    left: &'a Documents,
    right: &'a Documents,
    row: usize,
) -> Option<(sheaf_types::json::Json<'a>, sheaf_types::json::Json<'a>)> {
    Some((left.get(row)?, right.get(row)?))
}

/// All paths for a row; `None`: one of them is NULL.
fn all_of(paths: &[Paths], row: usize) -> Option<Vec<&Path>> {
    paths.iter().map(|path| path.get(row)).collect()
}

/// A last argument that may be left out.
fn optional_path(call: &Call<'_>, argument: usize) -> Result<Option<Paths>> {
    match argument < call.len() {
        true => call.path(argument).map(Some),
        false => Ok(None),
    }
}

/// The path for a row, if there is one at all; `None`: it is NULL.
fn path_for(path: &Option<Paths>, row: usize) -> Option<Option<&Path>> {
    match path {
        Some(path) => path.get(row).map(Some),
        None => Some(None),
    }
}

/// JSON_SEARCH(document, mode, pattern, escape, path ...).
fn searched(call: &Call<'_>) -> Result<ArrayRef> {
    let (values, modes, patterns) = (call.document(0)?, call.text(1)?, call.text(2)?);
    let escapes = match call.len() > 3 {
        true => Some(call.text(3)?),
        false => None,
    };
    let paths = match call.len() > 4 {
        true => call.paths(4, 1)?,
        false => Vec::new(),
    };
    let one = |row: usize| -> Made<_> {
        let (Some(value), Some(mode)) = (values.get(row), modes.get(row)) else {
            return Ok(None);
        };
        let mode = OneOrAll::parse(mode, call.name())?;
        let (Some(pattern), Some(paths)) = (patterns.get(row), all_of(&paths, row)) else {
            return Ok(None);
        };
        let escape = escapes.as_ref().and_then(|escapes| escapes.get(row));
        let escape = match escape.map(|escape| (escape.chars().next(), escape.chars().nth(1))) {
            Some((_, Some(_))) => return Err(JsonError::Escape),
            Some((first, None)) => first,
            None => None,
        };
        // The statement is told to stop then, which is looked at behind each kernel.
        if !sheaf_memory::has_room_for_value(Pattern::memory_of(pattern.len())) {
            return Ok(None);
        }
        let pattern = Pattern::new(pattern, escape.or(Some('\\')), Collation::Utf8mb4_bin);
        search(value, mode, &paths, &|text| pattern.matches(text))
    };
    documents(call, one)
}
