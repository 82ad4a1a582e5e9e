//! Errors of evaluating an expression, with MySQL's numbers.

use std::borrow::Cow;

use datafusion_common::DataFusionError;
use sheaf_types::error::codes::{self, ErrorCode};

/// An error that MySQL gives while it types or evaluates an expression. It travels through DataFusion as
/// [`DataFusionError::External`] and becomes the client's error unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{message}")]
pub struct EvaluationError {
    pub code: u16,
    /// Five characters.
    pub sqlstate: &'static str,
    pub message: String,
}

impl EvaluationError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> EvaluationError {
        EvaluationError {
            code: code.number(),
            sqlstate: code.sqlstate(),
            message: message.into(),
        }
    }

    /// 1235: what is not built yet.
    pub fn not_supported_yet(what: &str) -> EvaluationError {
        Self::new(
            codes::NOT_SUPPORTED_YET,
            format!("This version of Sheaf doesn't yet support '{what}'"),
        )
    }

    /// 1235: more than 38 digits where they are not read.
    pub fn wide_decimal() -> EvaluationError {
        Self::not_supported_yet("a DECIMAL of more than 38 digits here")
    }

    /// 1690: a number left the range of its type.
    pub fn out_of_range(type_name: &str, expression: &str) -> EvaluationError {
        Self::new(
            codes::DATA_OUT_OF_RANGE,
            format!("{type_name} value is out of range in '{expression}'"),
        )
    }

    /// 1264: a number that a column does not hold. `row` counts from 1.
    pub fn out_of_range_column(column: &str, row: u64) -> EvaluationError {
        Self::new(
            codes::WARN_DATA_OUT_OF_RANGE,
            format!("Out of range value for column '{column}' at row {row}"),
        )
    }

    /// 1525: a constant that cannot be read as the type it is compared with.
    pub fn wrong_value(type_name: &str, text: &str) -> EvaluationError {
        Self::new(
            codes::WRONG_VALUE,
            format!("Incorrect {type_name} value: '{text}'"),
        )
    }

    /// 1292: a text that is no date or time where one is wanted.
    pub fn no_moment(type_name: &str, text: &str) -> EvaluationError {
        Self::new(
            codes::TRUNCATED_WRONG_VALUE,
            format!("Incorrect {type_name} value: '{text}'"),
        )
    }

    /// 1411: a text that is not what its format says.
    pub fn not_as_formatted(text: &str, function: &str) -> EvaluationError {
        let shown = shown(text);
        Self::new(
            codes::WRONG_VALUE_FOR_TYPE,
            format!("Incorrect datetime value: '{shown}' for function {function}"),
        )
    }

    /// 1411: bytes that are not what a function takes.
    pub fn not_for_function(bytes: &[u8], function: &str) -> EvaluationError {
        let text = String::from_utf8_lossy(bytes);
        let shown = shown(&text);
        Self::new(
            codes::WRONG_VALUE_FOR_TYPE,
            format!("Incorrect string value: '{shown}' for function {function}"),
        )
    }

    /// 1441: a date and an interval whose sum is no date any more.
    pub fn datetime_overflow() -> EvaluationError {
        Self::new(
            codes::DATETIME_FUNCTION_OVERFLOW,
            "Datetime function: datetime field overflow".to_string(),
        )
    }

    /// 3020.
    pub fn no_logarithm() -> EvaluationError {
        Self::new(
            codes::INVALID_ARGUMENT_FOR_LOGARITHM,
            "Invalid argument for logarithm".to_string(),
        )
    }

    /// 1365.
    pub fn division_by_zero() -> EvaluationError {
        Self::new(codes::DIVISION_BY_ZERO, "Division by 0".to_string())
    }

    /// 3854: a literal whose bytes are no text, or are no text of another character set. Of it, six bytes are shown.
    pub fn not_convertible(bytes: &[u8], from: &str, to: &str) -> EvaluationError {
        const SHOWN_BYTES: usize = 6;
        let mut shown = String::new();
        for byte in bytes.iter().take(SHOWN_BYTES) {
            match byte {
                0x20..=0x7E => shown.push(char::from(*byte)),
                byte => shown.push_str(&format!("\\x{byte:02X}")),
            }
        }
        if bytes.len() > SHOWN_BYTES {
            shown.push_str("...");
        }
        Self::new(
            codes::CANNOT_CONVERT_STRING,
            format!("Cannot convert string '{shown}' from {from} to {to}"),
        )
    }

    /// 1292: only a part of a text is the number that is wanted.
    pub fn truncated_text(type_name: &str, text: &str) -> EvaluationError {
        let shown = shown(text);
        Self::new(
            codes::TRUNCATED_WRONG_VALUE,
            format!("Truncated incorrect {type_name} value: '{shown}'"),
        )
    }

    /// 1292: CAST has cut a value to so many characters, or bytes.
    pub fn cut_by_cast(is_binary: bool, length: usize, text: &str) -> EvaluationError {
        let name = if is_binary { "BINARY" } else { "CHAR" };
        Self::truncated_text(&format!("{name}({length})"), text)
    }

    /// 1292: a text that is no date or time, compared with a column of them.
    pub fn incorrect_text(type_name: &str, text: &str, column: &str) -> EvaluationError {
        let shown = shown(text);
        Self::new(
            codes::TRUNCATED_WRONG_VALUE,
            format!("Incorrect {type_name} value: '{shown}' for column '{column}' at row 1"),
        )
    }

    /// 1260: GROUP_CONCAT has cut its result in this of the rows that it has put together.
    pub fn cut_by_group_concat(row: u64) -> EvaluationError {
        Self::new(
            codes::CUT_VALUE_GROUP_CONCAT,
            format!("Row {row} was cut by GROUP_CONCAT()"),
        )
    }

    /// 1301: a string function would return more than max_allowed_packet.
    pub fn result_too_large(function: &str, limit: usize) -> EvaluationError {
        Self::new(
            codes::WARN_ALLOWED_PACKET_OVERFLOWED,
            format!(
                "Result of {function}() was larger than max_allowed_packet ({limit}) - truncated"
            ),
        )
    }

    /// 1041: a string function would make more than `limit` bytes of results at a time.
    pub fn batch_too_large(function: &str, limit: usize) -> EvaluationError {
        Self::new(
            codes::OUT_OF_RESOURCES,
            format!(
                "Out of memory; the results of {function}() for some rows take more than {limit} bytes together"
            ),
        )
    }

    /// 1041: the constants that were computed for a plan take all that such constants may.
    pub fn too_many_constants(function: &str) -> EvaluationError {
        Self::new(
            codes::OUT_OF_RESOURCES,
            format!(
                "Out of memory; the constants of a statement that are computed while it is planned have no room for the \
                 result of {function}()"
            ),
        )
    }

    /// Whether fewer rows at a time would not have this error.
    pub fn is_batch_too_large(&self) -> bool {
        self.code == codes::OUT_OF_RESOURCES.number()
    }

    /// 1116: a plan would have more than `limit` nodes.
    pub fn plan_too_large(limit: usize) -> EvaluationError {
        Self::new(
            codes::TOO_MANY_TABLES,
            format!(
                "Too many tables; the plan of a statement has at most {limit} nodes, and a common table expression counts \
                 each time that it is used"
            ),
        )
    }

    /// 1436: an expression would have more than `limit` operators once derived tables are merged.
    pub fn expression_too_large(limit: usize) -> EvaluationError {
        Self::new(
            codes::STACK_OVERRUN_NEED_MORE,
            format!(
                "Thread stack overrun: an expression has more than {limit} operators when the columns of derived tables are \
                 replaced by what they stand for"
            ),
        )
    }

    /// 3636: a recursive CTE has taken `limit` rounds and goes on.
    pub fn recursion_too_deep(limit: u64) -> EvaluationError {
        Self::new(
            codes::CTE_MAX_RECURSION_DEPTH,
            format!(
                "Recursive query aborted after {} iterations. Try increasing @@cte_max_recursion_depth to a larger value.",
                limit.saturating_add(1)
            ),
        )
    }

    /// 1210: an argument that the function does not know.
    pub fn wrong_arguments(function: &str) -> EvaluationError {
        Self::new(
            codes::WRONG_ARGUMENTS,
            format!("Incorrect arguments to {function}"),
        )
    }

    /// The error inside `error`, however deep it is wrapped.
    pub fn find(error: &DataFusionError) -> Option<&EvaluationError> {
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(current) = source {
            if let Some(found) = current.downcast_ref::<EvaluationError>() {
                return Some(found);
            }
            source = match current.downcast_ref::<DataFusionError>() {
                Some(DataFusionError::External(inner)) => Some(inner.as_ref()),
                Some(DataFusionError::Shared(inner)) => Some(inner.as_ref()),
                Some(
                    DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner),
                ) => Some(inner.as_ref()),
                Some(DataFusionError::ArrowError(inner, _)) => match inner.as_ref() {
                    arrow::error::ArrowError::ExternalError(inner) => Some(inner.as_ref()),
                    other => Some(other),
                },
                _ => current.source(),
            };
        }
        None
    }
}

/// A value in a message.
fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_SHOWN_CHARACTERS) {
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Of a value in a message.
const MAX_SHOWN_CHARACTERS: usize = 128;

/// The longest string that GROUP_CONCAT returns, in bytes.
pub const MAX_RESULT_BYTES: usize = 64 << 20;

impl From<EvaluationError> for DataFusionError {
    fn from(error: EvaluationError) -> DataFusionError {
        DataFusionError::External(Box::new(error))
    }
}
