//! Where a statement is wrong: the place that its error tells.

use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Location, TokenizerError};

use super::{RECURSION_LIMIT, StatementParser};
use crate::error::SqlError;

impl StatementParser<'_> {
    pub(super) fn syntax_error(&self, text: &str, error: &ParserError) -> SqlError {
        match error {
            ParserError::RecursionLimitExceeded => SqlError::stack_overrun(RECURSION_LIMIT),
            ParserError::ParserError(message) | ParserError::TokenizerError(message) => {
                let place = place_in_message(message)
                    .unwrap_or_else(|| self.tokens.peek_token_ref().span.start);
                error_at(text, place)
            }
        }
    }
}

pub(super) fn tokenizer_error(text: &str, error: &TokenizerError) -> SqlError {
    error_at(text, error.location)
}

/// sqlparser puts the place of an error at the end of its text: ` at Line: 1, Column: 15`.
fn place_in_message(message: &str) -> Option<Location> {
    let (_, place) = message.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    Some(Location {
        line: line.parse().ok()?,
        column: column.parse().ok()?,
    })
}

/// MySQL's syntax error repeats the statement from the place on. Line 0 is sqlparser's place of the end.
pub(super) fn error_at(text: &str, place: Location) -> SqlError {
    if place.line == 0 {
        let lines = text.lines().count().max(1) as u64;
        return SqlError::parse_error("", lines);
    }
    let mut offset = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if number == place.line {
            let column = place.column.saturating_sub(1) as usize;
            offset += line
                .char_indices()
                .nth(column)
                .map_or(line.len(), |(at, _)| at);
            break;
        }
        offset += line.len();
    }
    SqlError::parse_error(&text[offset.min(text.len())..], place.line)
}
