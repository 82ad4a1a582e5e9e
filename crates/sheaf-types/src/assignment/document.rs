//! Values on their way into columns of JSON.

use super::Converted;
use crate::error::ColumnProblem;
use crate::json::text::{self, TextProblem};
use crate::json::{Document, JsonError};
use crate::value::Value;

pub(super) fn of_text(text: &str) -> Converted {
    let problem = match text::read(text) {
        Ok(document) => return Converted::fine(Value::Json(document.into_bytes())),
        Err(TextProblem::Syntax { message, position }) => {
            ColumnProblem::JsonText { message, position }
        }
        Err(TextProblem::Limit(error)) => beyond(&error),
    };
    refused(problem)
}

/// Numbers, dates and byte strings have to be made JSON values by a function.
pub(super) fn of_value(value: &Value) -> Converted {
    match value {
        Value::Json(_) => Converted::fine(value.clone()),
        Value::Text(text) => of_text(text),
        Value::Bytes(_) => refused(beyond(&JsonError::CharacterSet {
            character_set: "binary".to_string(),
        })),
        _ => refused(ColumnProblem::JsonText {
            message: "not a JSON text, may need CAST",
            position: 0,
        }),
    }
}

fn beyond(error: &JsonError) -> ColumnProblem {
    ColumnProblem::Json {
        code: error.code(),
        message: error.to_string(),
    }
}

fn refused(problem: ColumnProblem) -> Converted {
    Converted::bad(Value::Json(Document::null().into_bytes()), problem)
}
