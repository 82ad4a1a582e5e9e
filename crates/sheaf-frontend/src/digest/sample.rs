//! A statement with its values, for a list of what has run.

use sheaf_types::Value;

use crate::parser::pieces::{Piece, Pieces};
use crate::value_literal::value_literal;

/// The text of a prepared statement with literals in the places of its `?`, or its start: it ends when it has this many
/// bytes or more.
pub fn with_parameters(text: &str, parameters: &[Value], most_bytes: usize) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut parameters = parameters.iter();
    for (piece, range) in Pieces::new(text) {
        if shown.len() >= most_bytes {
            break;
        }
        match (piece, parameters.as_slice()) {
            (Piece::Symbol(b'?'), [value, ..]) => {
                parameters.next();
                push_in_one_line(&value_literal(value).to_string(), &mut shown);
            }
            _ => shown.push_str(text.get(range).unwrap_or_default()),
        }
    }
    shown
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
}
