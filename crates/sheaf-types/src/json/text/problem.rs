//! What can be wrong with a text, before it is known where the text comes from.

use crate::json::error::JsonError;

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextProblem {
    /// It is not JSON. `position` counts bytes.
    Syntax {
        message: &'static str,
        position: usize,
    },
    /// It is JSON, but beyond a limit of documents.
    Limit(JsonError),
}

impl TextProblem {
    pub(super) fn at(position: usize, message: &'static str) -> TextProblem {
        TextProblem::Syntax { message, position }
    }

    /// The error for the argument of a function, from 1.
    pub fn in_argument(self, argument: usize, function: &str) -> JsonError {
        match self {
            TextProblem::Syntax { message, position } => JsonError::TextInArgument {
                message,
                position,
                argument,
                function: function.to_string(),
            },
            TextProblem::Limit(error) => error,
        }
    }
}

impl From<JsonError> for TextProblem {
    fn from(error: JsonError) -> TextProblem {
        TextProblem::Limit(error)
    }
}
