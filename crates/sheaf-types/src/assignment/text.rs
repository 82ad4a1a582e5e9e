//! Values on their way into columns of characters and of bytes.

use super::Converted;
use crate::column_type::ColumnType;
use crate::error::ColumnProblem;
use crate::number::fitting_double;
use crate::text::is_space;
use crate::value::Value;

/// Text that a character column takes as it is (CHAR without its trailing spaces).
pub(super) fn fitting<'t>(ty: &ColumnType, text: &'t str) -> Option<&'t str> {
    let (kept, limit) = match ty {
        ColumnType::Char { length, .. } => (text.trim_end_matches(' '), *length as usize),
        ColumnType::VarChar { length, .. } => (text, *length as usize),
        ColumnType::Text { max_bytes, .. } => {
            return (text.len() as u64 <= *max_bytes).then_some(text);
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
    let end = match ty {
        ColumnType::Char { length, .. } | ColumnType::VarChar { length, .. } => text
            .char_indices()
            .nth(*length as usize)
            .map_or(text.len(), |(at, _)| at),
        _ => {
            let limit = usize::try_from(ty.max_bytes().unwrap_or(0)).unwrap_or(usize::MAX);
            text.floor_char_boundary(limit)
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
