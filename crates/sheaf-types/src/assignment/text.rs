//! Values on their way into columns of characters and of bytes.

use super::Converted;
use crate::column_type::ColumnType;
use crate::error::ColumnProblem;
use crate::number::fitting_double;
use crate::text::collation::Collation;
use crate::text::encoding::TextEncoding;
use crate::text::is_space;
use crate::value::Value;

/// Text that a character column takes as it is (CHAR without its trailing spaces): one of its character set.
pub(super) fn fitting<'t>(ty: &ColumnType, text: &'t str) -> Option<&'t str> {
    if let Some(collation) = ty.collation()
        && collation.first_foreign(text).is_some()
    {
        return None;
    }
    let (kept, limit) = match ty {
        ColumnType::Char { length, .. } => (text.trim_end_matches(' '), *length as usize),
        ColumnType::VarChar { length, .. } => (text, *length as usize),
        ColumnType::Text {
            max_bytes,
            collation,
        } => {
            let length = collation.encoding().length(text);
            return (length as u64 <= *max_bytes).then_some(text);
        }
        _ => return None,
    };
    // No text has more characters than bytes.
    (kept.len() <= limit || kept.chars().count() <= limit).then_some(kept)
}

pub(super) fn of_text(ty: &ColumnType, text: &str) -> Converted {
    if let Some(kept) = fitting(ty, text) {
        return Converted::fine(Value::Text(kept.to_string()));
    }
    if let Some(collation) = ty.collation()
        && let Some(foreign) = collation.first_foreign(text)
    {
        let known = collation.narrowed(text);
        let problem = ColumnProblem::no_text(&text.as_bytes()[foreign..]);
        return Converted {
            problem: Some(problem),
            ..of_text(ty, &known)
        };
    }
    let end = match ty {
        ColumnType::Char { length, .. } | ColumnType::VarChar { length, .. } => text
            .char_indices()
            .nth(*length as usize)
            .map_or(text.len(), |(at, _)| at),
        _ => {
            let limit = usize::try_from(ty.max_bytes().unwrap_or(0)).unwrap_or(usize::MAX);
            match ty.collation().map(Collation::encoding) {
                None | Some(TextEncoding::Utf8) => text.floor_char_boundary(limit),
                Some(encoding) => encoding.cut(text, limit),
            }
        }
    };
    let (kept, cut) = text.split_at(end);
    let kept = match ty {
        // It may have been cut behind a space.
        ColumnType::Char { .. } => kept.trim_end_matches(' '),
        _ => kept,
    };
    let value = Value::Text(kept.to_string());
    match cut.bytes().all(is_space) {
        true => Converted::rounded(value),
        false => Converted::bad(value, ColumnProblem::TooLong),
    }
}

pub(super) fn of_bytes(ty: &ColumnType, bytes: &[u8]) -> Converted {
    let limit = usize::try_from(ty.max_bytes().unwrap_or(0)).unwrap_or(usize::MAX);
    let mut kept = bytes[..bytes.len().min(limit)].to_vec();
    if let ColumnType::Binary { length } = ty {
        kept.resize(*length as usize, 0);
    }
    match bytes.len() > limit {
        true => Converted::bad(Value::Bytes(kept), ColumnProblem::TooLong),
        false => Converted::fine(Value::Bytes(kept)),
    }
}

/// Bytes as the text that they are in the column's character set: up to the first that are of no character.
pub(super) fn of_encoded(ty: &ColumnType, bytes: &[u8]) -> (String, Option<ColumnProblem>) {
    let collation = ty.collation().unwrap_or_default();
    let (text, valid) = collation.encoding().decode_valid(bytes);
    if valid < bytes.len() {
        let problem = match ty.has_labels() {
            true => ColumnProblem::Truncated,
            false => ColumnProblem::no_text(&bytes[valid..]),
        };
        return (text, Some(problem));
    }
    // utf8mb3 has no characters of four bytes.
    match collation.first_foreign(&text) {
        Some(foreign) => {
            let problem = ColumnProblem::no_text(&bytes[foreign.min(bytes.len())..]);
            (text[..foreign].to_string(), Some(problem))
        }
        None => (text, None),
    }
}

/// A DOUBLE or a FLOAT with as many digits as a column of characters or bytes has room for; `None` if all of them fit,
/// or none.
pub(super) fn rounded(ty: &ColumnType, value: &Value, text: &str) -> Option<String> {
    let number = match value {
        Value::Double(number) => *number,
        Value::Float(number) => f64::from(*number),
        _ => return None,
    };
    let (ColumnType::Char { length, .. }
    | ColumnType::VarChar { length, .. }
    | ColumnType::Binary { length }
    | ColumnType::VarBinary { length }) = ty
    else {
        return None;
    };
    let room = *length as usize;
    (text.len() > room)
        .then(|| fitting_double(number, room))
        .flatten()
}
