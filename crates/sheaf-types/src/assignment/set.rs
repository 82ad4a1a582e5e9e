//! Values on their way into columns of SET.

use super::Converted;
use crate::error::ColumnProblem;
use crate::labels::SET_SEPARATOR;
use crate::text::collation::Collation;
use crate::value::Value;

/// Members in any order, each any number of times. A text of which none is a member may be a number.
pub(super) fn of_text(labels: &[String], collation: Collation, text: &str) -> Converted {
    let (bits, is_whole) = read(labels, collation, text);
    if is_whole {
        return Converted::fine(Value::Set(bits));
    }
    match text.trim_start_matches(' ').parse::<u64>() {
        Ok(number) if bits == 0 && number & !all_bits(labels.len()) == 0 => {
            Converted::fine(Value::Set(number))
        }
        _ => Converted::bad(Value::Set(bits), ColumnProblem::Truncated),
    }
}

/// MySQL takes so many bytes, of which none names a member, for no number: spaces alone are the empty set.
const BEYOND_NUMBERS: usize = 22;

/// The bits of the members that a text names, and whether it names nothing else.
pub(super) fn read(labels: &[String], collation: Collation, text: &str) -> (u64, bool) {
    let members = text.trim_end_matches(' ');
    let (mut bits, mut is_whole) = (0, true);
    if members.is_empty() {
        is_whole = text.is_empty() || text.len() >= BEYOND_NUMBERS;
    } else {
        for member in members.split(SET_SEPARATOR) {
            match position(labels, collation, member) {
                Some(at) => bits |= 1 << at,
                None => is_whole = false,
            }
        }
    }
    (bits, is_whole)
}

/// No member ends with a space, whatever the collation does with it.
fn position(labels: &[String], collation: Collation, member: &str) -> Option<usize> {
    let is_member = |label: &String| collation.compare(label, member).is_eq();
    let ends_with_space = member.ends_with(' ');
    labels
        .iter()
        .position(|label| !ends_with_space && is_member(label))
}

fn all_bits(labels: usize) -> u64 {
    match labels {
        64.. => u64::MAX,
        labels => (1 << labels) - 1,
    }
}

/// A number is its bits. Those of no member are cut.
pub(super) fn of_number(labels: usize, number: i128) -> Converted {
    let all = all_bits(labels);
    let bits = match i64::try_from(number) {
        Ok(number) => number as u64,
        // What no BIGINT holds is the least or the greatest one.
        Err(_) if number < 0 => i64::MIN as u64,
        Err(_) => u64::try_from(number).unwrap_or(i64::MAX as u64),
    };
    let kept = Value::Set(bits & all);
    match bits & !all == 0 && (number >= 0 || labels == 64) {
        true => Converted::fine(kept),
        false => Converted::bad(kept, ColumnProblem::Truncated),
    }
}
