//! What can be wrong with a type or a value, with MySQL's numbers and texts.
//!
//! Problems with a value on its way into a column become a [`ColumnIssue`] where the column and the row are known. In
//! strict mode that is an error. In lenient mode the same problem is a warning and the statement goes on.

pub mod codes;

use codes::ErrorCode;

/// A text that names no type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Unknown data type: '{text}'")]
pub struct UnknownType {
    pub text: String,
}

/// What is wrong with a value for a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnProblem {
    /// 1048: NULL for a NOT NULL column.
    Null,
    /// 1264: the number or date does not fit the type.
    OutOfRange,
    /// 1406: the string is longer than the column.
    TooLong,
    /// 1265: part of the value was cut off, or it is not a label of the ENUM.
    Truncated,
    /// 1265, and no error even in strict mode: digits, spaces or a time of the day were cut off.
    Rounded,
    /// 1366: not a number, not UTF-8, ...; `kind` is MySQL's word for the type (`integer`, `decimal`, `string`).
    IncorrectValue { kind: &'static str, value: String },
    /// 1292: more than a whole number.
    TruncatedInteger { value: String },
    /// 1292: not a date or time; `kind` is `date`, `datetime` or `time`.
    IncorrectTemporal { kind: &'static str, value: String },
    /// 1292 in strict mode, otherwise 1264: a date or time that the column cannot hold, the zero date where it is none
    /// included.
    TemporalOutOfRange { kind: &'static str, value: String },
    /// 1441 in strict mode, otherwise 1264: rounding the moment leads out of the calendar.
    TemporalOverflow,
    /// 1235: a date with a month or day of 0, where the session allows it.
    ZeroInDate { kind: &'static str, value: String },
    /// 3140: the text is not JSON.
    JsonText {
        message: &'static str,
        position: usize,
    },
    /// The value is no JSON value of a column, for another reason.
    Json { code: ErrorCode, message: String },
    /// 3156: the JSON value is none of the type, which has this word in messages.
    JsonCast { to: &'static str },
    /// 1364: the statement gives no value and the column has no default.
    NoDefault,
}

/// A byte of what is no text: itself if it is a printable character of ASCII.
fn shown_byte(byte: u8) -> String {
    match byte {
        b' '..=b'~' => char::from(byte).to_string(),
        byte => format!("\\x{byte:02X}"),
    }
}

impl ColumnProblem {
    /// 1366 for what begins with bytes that are no text.
    pub fn no_text(bytes: &[u8]) -> ColumnProblem {
        const SHOWN_BYTES: usize = 6;
        let shown = bytes.iter().take(SHOWN_BYTES);
        ColumnProblem::IncorrectValue {
            kind: "string",
            value: shown.map(|byte| shown_byte(*byte)).collect(),
        }
    }

    /// The number and SQLSTATE of the error in strict mode.
    pub fn code(&self) -> ErrorCode {
        match self {
            ColumnProblem::Null => codes::BAD_NULL_ERROR,
            ColumnProblem::OutOfRange => codes::WARN_DATA_OUT_OF_RANGE,
            ColumnProblem::TooLong => codes::DATA_TOO_LONG,
            ColumnProblem::Truncated | ColumnProblem::Rounded => codes::WARN_DATA_TRUNCATED,
            ColumnProblem::IncorrectValue { .. } => codes::TRUNCATED_WRONG_VALUE_FOR_FIELD,
            ColumnProblem::TruncatedInteger { .. }
            | ColumnProblem::IncorrectTemporal { .. }
            | ColumnProblem::TemporalOutOfRange { .. } => codes::TRUNCATED_WRONG_VALUE,
            ColumnProblem::TemporalOverflow => codes::DATETIME_FUNCTION_OVERFLOW,
            ColumnProblem::ZeroInDate { .. } => codes::NOT_SUPPORTED_YET,
            ColumnProblem::JsonText { .. } => codes::INVALID_JSON_TEXT,
            ColumnProblem::Json { code, .. } => *code,
            ColumnProblem::JsonCast { .. } => codes::INVALID_JSON_VALUE_FOR_CAST,
            ColumnProblem::NoDefault => codes::NO_DEFAULT_FOR_FIELD,
        }
    }

    /// True for what is an error in every mode.
    pub fn is_refused(&self) -> bool {
        matches!(
            self,
            ColumnProblem::ZeroInDate { .. }
                | ColumnProblem::JsonText { .. }
                | ColumnProblem::Json { .. }
        )
    }

    /// True for what a note tells in every mode.
    pub fn is_note(&self) -> bool {
        matches!(self, ColumnProblem::Rounded)
    }

    /// What a warning says where an error would have said this.
    pub fn as_warning(self) -> ColumnProblem {
        match self {
            ColumnProblem::TooLong | ColumnProblem::IncorrectTemporal { .. } => {
                ColumnProblem::Truncated
            }
            ColumnProblem::TemporalOutOfRange { .. } | ColumnProblem::TemporalOverflow => {
                ColumnProblem::OutOfRange
            }
            problem => problem,
        }
    }
}

/// A [`ColumnProblem`] with its place: an error in strict mode, a warning otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnIssue {
    pub problem: ColumnProblem,
    pub column: String,
    /// Number of the row in the statement or file, from 1.
    pub row: u64,
}

impl ColumnIssue {
    /// The number that MySQL sends for this problem.
    pub fn mysql_code(&self) -> u16 {
        self.problem.code().number()
    }
}

impl std::fmt::Display for ColumnIssue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ColumnIssue {
            problem,
            column,
            row,
        } = self;
        match problem {
            ColumnProblem::Null => write!(f, "Column '{column}' cannot be null"),
            ColumnProblem::OutOfRange => {
                write!(f, "Out of range value for column '{column}' at row {row}")
            }
            ColumnProblem::TooLong => write!(f, "Data too long for column '{column}' at row {row}"),
            ColumnProblem::Truncated | ColumnProblem::Rounded => {
                write!(f, "Data truncated for column '{column}' at row {row}")
            }
            ColumnProblem::TruncatedInteger { value } => {
                write!(f, "Truncated incorrect INTEGER value: '{value}'")
            }
            ColumnProblem::IncorrectValue { kind, value }
            | ColumnProblem::IncorrectTemporal { kind, value }
            | ColumnProblem::TemporalOutOfRange { kind, value } => {
                write!(
                    f,
                    "Incorrect {kind} value: '{value}' for column '{column}' at row {row}"
                )
            }
            ColumnProblem::TemporalOverflow => {
                f.write_str("Datetime function: datetime field overflow")
            }
            ColumnProblem::ZeroInDate { value, .. } => write!(
                f,
                "This version of Sheaf doesn't yet support 'dates with a month or day of 0, as {value} for column {column}'"
            ),
            ColumnProblem::JsonText { message, position } => write!(
                f,
                "Invalid JSON text: \"{message}\" at position {position} in value for column '{column}'."
            ),
            ColumnProblem::Json { message, .. } => f.write_str(message),
            ColumnProblem::JsonCast { to } => write!(
                f,
                "Invalid JSON value for CAST to {to} from column {column} at row {row}"
            ),
            ColumnProblem::NoDefault => write!(f, "Field '{column}' doesn't have a default value"),
        }
    }
}

impl std::error::Error for ColumnIssue {}
