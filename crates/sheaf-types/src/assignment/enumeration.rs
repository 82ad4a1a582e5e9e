//! Values on their way into columns of ENUM.

use super::Converted;
use crate::error::ColumnProblem;
use crate::text::collation::Collation;
use crate::value::Value;

pub(super) fn of_text(labels: &[String], collation: Collation, text: &str) -> Converted {
    if let Some(position) = position(labels, collation, text) {
        return Converted::fine(Value::Enum(position as u16 + 1));
    }
    match text
        .trim_end_matches(' ')
        .trim_start_matches(' ')
        .parse::<i128>()
    {
        Ok(number) if number > 0 => of_number(labels.len(), number),
        _ => Converted::bad(Value::Enum(0), ColumnProblem::Truncated),
    }
}

/// Where the label stands that a text names.
pub(super) fn position(labels: &[String], collation: Collation, text: &str) -> Option<usize> {
    let wanted = text.trim_end_matches(' ');
    labels.iter().position(|label| {
        collation
            .compare(label.trim_end_matches(' '), wanted)
            .is_eq()
    })
}

pub(super) fn of_number(labels: usize, number: i128) -> Converted {
    match u16::try_from(number) {
        Ok(number) if number > 0 && usize::from(number) <= labels => {
            Converted::fine(Value::Enum(number))
        }
        _ => Converted::bad(Value::Enum(0), ColumnProblem::Truncated),
    }
}
