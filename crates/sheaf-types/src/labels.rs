//! Values of ENUM and SET: numbers that read as texts.

use std::borrow::Cow;

use crate::column_type::ColumnType;

/// What stands between the members of a SET. No member has one.
pub const SET_SEPARATOR: char = ',';

/// The text of a number of an ENUM or SET. Bits and numbers without a label say nothing.
pub fn text_of_number(ty: &ColumnType, number: u64) -> Cow<'_, str> {
    match ty {
        ColumnType::Enum { labels, .. } => {
            let at = usize::try_from(number)
                .ok()
                .and_then(|at| at.checked_sub(1));
            let label = at.and_then(|at| labels.get(at));
            Cow::Borrowed(label.map_or("", String::as_str))
        }
        ColumnType::Set { labels, .. } => {
            let mut text = Cow::Borrowed("");
            for member in members(labels, number) {
                // No separator stands in front of the first text, even behind a member that is empty.
                if text.is_empty() {
                    text = Cow::Borrowed(member);
                    continue;
                }
                let joined = text.to_mut();
                joined.push(SET_SEPARATOR);
                joined.push_str(member);
            }
            text
        }
        _ => Cow::Borrowed(""),
    }
}

/// The members of a SET whose bits are set, in their order.
pub fn members(labels: &[String], number: u64) -> impl Iterator<Item = &str> {
    let is_set = move |at: &usize| {
        number
            .checked_shr(*at as u32)
            .is_some_and(|bits| bits & 1 == 1)
    };
    (0..labels.len())
        .filter(is_set)
        .map(move |at| labels[at].as_str())
}

/// The number of a text that a column of ENUM or SET has shown; 0 if it is none.
pub fn number_of_text(ty: &ColumnType, text: &str) -> u64 {
    let position = |labels: &[String], text: &str| labels.iter().position(|label| label == text);
    match ty {
        ColumnType::Enum { labels, .. } => position(labels, text).map_or(0, |at| at as u64 + 1),
        ColumnType::Set { .. } if text.is_empty() => 0,
        ColumnType::Set { labels, .. } => {
            let bit = |member| Some(1u64 << position(labels, member)?);
            let members = text.split(SET_SEPARATOR);
            members.filter_map(bit).fold(0, |bits, bit| bits | bit)
        }
        _ => 0,
    }
}

/// The most characters that a text of an ENUM or SET may have.
pub fn longest_text(ty: &ColumnType) -> Option<u64> {
    let characters = |label: &String| label.chars().count() as u64;
    match ty {
        ColumnType::Enum { labels, .. } => labels.iter().map(characters).max(),
        ColumnType::Set { labels, .. } => {
            let separators = labels.len().saturating_sub(1) as u64;
            Some(labels.iter().map(characters).sum::<u64>() + separators)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_of_a_set_belong_together() {
        let set = ColumnType::parse("set('x','y','z')").unwrap();
        for (number, text) in [(0, ""), (1, "x"), (5, "x,z"), (7, "x,y,z")] {
            assert_eq!(text_of_number(&set, number), text);
            assert_eq!(number_of_text(&set, text), number);
        }
        let with_empty = ColumnType::parse("set('','a')").unwrap();
        assert_eq!(text_of_number(&with_empty, 3), "a");
        // Bits that damage has set.
        assert_eq!(text_of_number(&set, u64::MAX), "x,y,z");
        assert_eq!(number_of_text(&set, "q,y"), 2);
    }

    #[test]
    fn numbers_and_texts_of_an_enum_belong_together() {
        let size = ColumnType::parse("enum('small','large')").unwrap();
        for (number, text) in [(0, ""), (1, "small"), (2, "large")] {
            assert_eq!(text_of_number(&size, number), text);
            assert_eq!(number_of_text(&size, text), number);
        }
        assert_eq!(text_of_number(&size, u64::MAX), "");
    }

    #[test]
    fn a_set_may_have_64_members() {
        let labels: Vec<String> = (1..=64).map(|label| format!("'{label}'")).collect();
        let set = ColumnType::parse(&format!("set({})", labels.join(","))).unwrap();
        assert_eq!(text_of_number(&set, 1 << 63), "64");
        assert_eq!(number_of_text(&set, "1,64"), 1 | 1 << 63);
    }
}
