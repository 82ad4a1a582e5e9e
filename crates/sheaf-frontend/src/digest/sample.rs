//! A statement with its values, for a list of what has run.

use std::borrow::Cow;

use sheaf_types::Value;

use crate::parser::pieces::{Piece, Pieces};
use crate::value_literal::value_literal;

/// The text of a prepared statement with literals in the places of its `?`, or its start: it ends when it has this many
/// bytes or more.
pub fn with_parameters(text: &str, parameters: &[Value], most_bytes: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(most_bytes));
    let mut parameters = parameters.iter();
    for (piece, range) in Pieces::new(text) {
        if shown.len() >= most_bytes {
            break;
        }
        match (piece, parameters.as_slice()) {
            (Piece::Symbol(b'?'), [value, ..]) => {
                parameters.next();
                let value = start_of(value, most_bytes - shown.len());
                push_in_one_line(&value_literal(&value).to_string(), &mut shown);
            }
            _ => shown.push_str(text.get(range).unwrap_or_default()),
        }
    }
    shown
}

/// A value, or one whose literal begins like that of this one and has so many bytes or more.
fn start_of(value: &Value, bytes: usize) -> Cow<'_, Value> {
    match value {
        Value::Text(text) if text.len() > bytes => {
            // It is as long with its quotes.
            let end = text.floor_char_boundary(bytes);
            Cow::Owned(Value::Text(text[..end].to_string()))
        }
        Value::Bytes(all) if all.len() > bytes => Cow::Owned(Value::Bytes(all[..bytes].to_vec())),
        _ => Cow::Borrowed(value),
    }
}

/// A literal whose text can neither end it nor begin a line, which could look like an entry of a log.
fn push_in_one_line(literal: &str, shown: &mut String) {
    for character in literal.chars() {
        match character {
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            other => shown.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_their_places_were() {
        let values = [Value::Int(5), Value::Text("it's".into()), Value::Null];
        let text = "select ?, '?' /* ? */ from t where a = ? and b <=> ?";
        assert_eq!(
            with_parameters(text, &values, usize::MAX),
            "select 5, '?' /* ? */ from t where a = 'it''s' and b <=> NULL"
        );
        assert_eq!(with_parameters("select a, b", &values, 7), "select ");
    }

    #[test]
    fn of_long_values_the_start_is_shown() {
        let long = [
            Value::Text("é".repeat(1 << 20)),
            Value::Bytes(vec![1; 1 << 20]),
        ];
        for (number, start) in ["select 'éé", "select _binary x'01"].iter().enumerate() {
            for most in 9..40 {
                let shown = with_parameters("select ?, 1", &long[number..], most);
                assert!(shown.len() >= most && shown.len() < 120, "{shown}");
                let seen = start.len().min(most - 1);
                assert!(
                    shown
                        .to_lowercase()
                        .as_bytes()
                        .starts_with(&start.as_bytes()[..seen]),
                    "{shown}"
                );
            }
        }
    }
}
