//! What may be wrong with a pattern, by ICU's numbers.

use sheaf_types::error::codes::{self, ErrorCode};

use crate::functions::EvaluationError;

/// What is wrong with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::functions::regexp) enum Problem {
    Argument,
    /// By its place.
    Rule(usize),
    Escape,
    Unimplemented,
    Parenthesis,
    Interval,
    MaximumBelowMinimum,
    BackReference,
    LookBehind,
    Bracket,
    Range,
    TooBig,
    GroupName,
    /// The statement has been told to stop. No error of the pattern.
    Told,
}

impl Problem {
    fn code(self) -> ErrorCode {
        match self {
            Problem::Argument => codes::REGEXP_ILLEGAL_ARGUMENT,
            Problem::Rule(_) => codes::REGEXP_RULE_SYNTAX,
            Problem::Escape => codes::REGEXP_BAD_ESCAPE_SEQUENCE,
            Problem::Unimplemented => codes::REGEXP_UNIMPLEMENTED,
            Problem::Parenthesis => codes::REGEXP_MISMATCHED_PAREN,
            Problem::Interval => codes::REGEXP_BAD_INTERVAL,
            Problem::MaximumBelowMinimum => codes::REGEXP_MAX_LT_MIN,
            Problem::BackReference => codes::REGEXP_INVALID_BACK_REF,
            Problem::LookBehind => codes::REGEXP_LOOK_BEHIND_LIMIT,
            Problem::Bracket => codes::REGEXP_MISSING_CLOSE_BRACKET,
            Problem::Range => codes::REGEXP_INVALID_RANGE,
            Problem::TooBig | Problem::Told => codes::REGEXP_PATTERN_TOO_BIG,
            Problem::GroupName => codes::REGEXP_INVALID_CAPTURE_GROUP_NAME,
        }
    }

    pub(in crate::functions::regexp) fn error(self, pattern: &str) -> EvaluationError {
        let message = match self {
            Problem::Argument => "Illegal argument to a regular expression.".to_string(),
            Problem::Rule(at) => {
                let before: Vec<&str> = pattern.get(..at).unwrap_or(pattern).split('\n').collect();
                let character = before.last().map_or(0, |line| line.chars().count()) + 1;
                let line = before.len();
                format!(
                    "Syntax error in regular expression on line {line}, character {character}."
                )
            }
            Problem::Escape => "Unrecognized escape sequence in regular expression.".to_string(),
            Problem::Unimplemented => {
                "The regular expression contains a feature that is not implemented in this library version."
                    .to_string()
            }
            Problem::Parenthesis => "Mismatched parenthesis in regular expression.".to_string(),
            Problem::Interval => "Incorrect description of a {min,max} interval.".to_string(),
            Problem::MaximumBelowMinimum => {
                "The maximum is less than the minumum in a {min,max} interval.".to_string()
            }
            Problem::BackReference => "Invalid back-reference in regular expression.".to_string(),
            Problem::LookBehind => {
                "The look-behind assertion exceeds the limit in regular expression.".to_string()
            }
            Problem::Bracket => {
                "The regular expression contains an unclosed bracket expression.".to_string()
            }
            Problem::Range => {
                "The regular expression contains an [x-y] character range where x comes after y."
                    .to_string()
            }
            Problem::TooBig | Problem::Told => {
                "The regular expression pattern exceeds limits on size or complexity.".to_string()
            }
            Problem::GroupName => "A capture group has an invalid name.".to_string(),
        };
        EvaluationError::new(self.code(), message)
    }
}
