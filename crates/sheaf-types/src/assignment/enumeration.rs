//! Values on their way into columns of ENUM.

use super::Converted;
use crate::error::ColumnProblem;
use crate::text::collation::Collation;
use crate::value::Value;

pub(super) fn of_text(labels: &[String], collation: Collation, text: &str) -> Converted {
    let wanted = text.trim_end_matches(' ');
    if let Some(position) = labels.iter().position(|label| {
        collation
            .compare(label.trim_end_matches(' '), wanted)
            .is_eq()
    }) {
        return Converted::fine(Value::Enum(position as u16 + 1));
    }
    match wanted.trim_start_matches(' ').parse::<i128>() {
        Ok(number) if number > 0 => of_number(labels.len(), number),
        _ => Converted::bad(Value::Enum(0), ColumnProblem::Truncated),
    }
}

pub(super) fn of_number(labels: usize, number: i128) -> Converted {
    match u16::try_from(number) {
        Ok(number) if number > 0 && usize::from(number) <= labels => {
            Converted::fine(Value::Enum(number))
        }
        _ => Converted::bad(Value::Enum(0), ColumnProblem::Truncated),
    }
}
