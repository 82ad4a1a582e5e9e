//! Where a statement is wrong: the place that its error tells.

use sheaf_exec::functions::scalar_function;
use sheaf_types::error::codes;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Location, TokenizerError};

use super::{RECURSION_LIMIT, StatementParser};
use crate::error::SqlError;
use crate::function_names::is_of_grammar;

impl StatementParser<'_> {
    pub(super) fn syntax_error(&self, text: &str, error: &ParserError) -> SqlError {
        match error {
            ParserError::RecursionLimitExceeded => SqlError::stack_overrun(RECURSION_LIMIT),
            ParserError::ParserError(message) | ParserError::TokenizerError(message) => {
                let place = place_in_message(message)
                    .unwrap_or_else(|| self.tokens.peek_token_ref().span.start);
                match function_with_alias(text, place) {
                    Some(function) => SqlError::new(
                        codes::WRONG_PARAMETERS_TO_NATIVE_FCT,
                        format!("Incorrect parameters in the call to native function '{function}'"),
                    ),
                    None => error_at(text, place),
                }
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
    SqlError::parse_error(&text[offset_of(text, place)..], place.line)
}

/// Where a place lies in a text.
fn offset_of(text: &str, place: Location) -> usize {
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
    offset.min(text.len())
}

/// The function in whose arguments an alias stands at a place, `abs(3 AS three)`.
fn function_with_alias(text: &str, place: Location) -> Option<String> {
    if place.line == 0 {
        return None;
    }
    let offset = offset_of(text, place);
    let (before, rest) = (text[..offset].trim_end(), &text[offset..]);
    if before.ends_with(['(', ',']) {
        return None;
    }
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let mut alias = rest;
    if rest.len() > 2 && rest.is_char_boundary(2) && rest[..2].eq_ignore_ascii_case("as") {
        alias = rest[2..].trim_start();
    }
    let quote = alias.chars().next().filter(|quote| "\"'`".contains(*quote));
    let behind = match quote {
        Some(quote) => alias[1..].split_once(quote)?.1,
        None if alias.starts_with(|first: char| first.is_ascii_digit()) => return None,
        None => alias.trim_start_matches(is_name),
    };
    if behind.len() == alias.len() || !behind.trim_start().starts_with([',', ')']) {
        return None;
    }
    let (mut open, mut quoted) = (Vec::new(), None);
    for (at, character) in before.char_indices() {
        match (quoted, character) {
            (Some(quote), character) if quote == character => quoted = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quoted = Some(character),
            (None, '(') => open.push(at),
            (None, ')') => _ = open.pop(),
            _ => {}
        }
    }
    let call = before[..open.pop()?].trim_end();
    let name = call[call.trim_end_matches(is_name).len()..].to_lowercase();
    let is_function = !is_of_grammar(&name) && scalar_function(&name).is_some();
    is_function.then_some(name)
}
