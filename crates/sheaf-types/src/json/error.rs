//! What can be wrong with a document, a path or an argument, with MySQL's numbers and texts.
//!
//! Functions here do not know their SQL name. An error that names a function or an argument gets both from the caller.

use crate::error::codes::{self, ErrorCode};

/// An error with MySQL's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// 3141: the text of an argument is not JSON.
    #[error(
        "Invalid JSON text in argument {argument} to function {function}: \"{message}\" at position {position}."
    )]
    TextInArgument {
        message: &'static str,
        position: usize,
        argument: usize,
        function: String,
    },
    /// 3142: bytes are not a document.
    #[error("The JSON binary value contains invalid data.")]
    Damaged,
    /// 3143: the path does not follow the grammar. `position` counts bytes.
    #[error("Invalid JSON path expression. The error is around character position {position}.")]
    Path { position: usize },
    /// 3144
    #[error("Cannot create a JSON value from a string with CHARACTER SET '{character_set}'.")]
    CharacterSet { character_set: String },
    /// 3146: neither a text nor a JSON value.
    #[error(
        "Invalid data type for JSON data in argument {argument} to function {function}; a JSON string or JSON type is required."
    )]
    Type { argument: usize, function: String },
    /// 3147
    #[error("Invalid data type for JSON data{place}; a JSON string or JSON type is required.")]
    Cast { place: String },
    /// 3149: a path with wildcards where only one place is allowed.
    #[error(
        "In this situation, path expressions may not contain the * and ** tokens or an array range."
    )]
    Wildcard,
    /// 3150
    #[error("The JSON value is too big to be stored in a JSON column.")]
    TooBig,
    /// 3151
    #[error("The JSON object contains a key name that is too long.")]
    KeyTooLong,
    /// 3153: the path `$` of JSON_REMOVE.
    #[error("The path expression '$' is not allowed in this context.")]
    VacuousPath,
    /// 3154
    #[error("The oneOrAll argument to {function} may take these values: 'one' or 'all'.")]
    OneOrAll { function: String },
    /// 3155: a number beyond the type it is cast to.
    #[error("Out of range JSON value for CAST to {to} from column {column} at row {row}")]
    OutOfRange {
        to: &'static str,
        column: String,
        row: u64,
    },
    /// 3064: a function of texts is given something else.
    #[error("Incorrect type for argument {argument} in function {function}.")]
    NoText { argument: usize, function: String },
    /// 1210: what escapes characters of a pattern is more than one character.
    #[error("Incorrect arguments to ESCAPE")]
    Escape,
    /// 3156: a value that is not of the type it is cast to.
    #[error("Invalid JSON value for CAST to {to} from column {column} at row {row}")]
    InvalidForCast {
        to: &'static str,
        column: String,
        row: u64,
    },
    /// 3157
    #[error("The JSON document exceeds the maximum depth.")]
    TooDeep,
    /// 3158
    #[error("JSON documents may not contain NULL member names.")]
    NullKey,
    /// 3165: JSON_ARRAY_INSERT's path must end with a position in an array.
    #[error("A path expression is not a path to a cell in an array.")]
    NotAnArrayCell,
    /// 1690: JSON_VALUE cannot return the value as its type.
    #[error("{to} value is out of range in '{function}'")]
    NotOfType { to: &'static str, function: String },
    /// 3665: JSON_TABLE found nothing, and the column asks for an error.
    #[error("Missing value for JSON_TABLE column '{column}'")]
    MissingTableValue { column: String },
    /// 3666: several values, or a container, for a column of JSON_TABLE that is not of type JSON.
    #[error("Can't store an array or an object in the scalar JSON_TABLE column '{column}'")]
    WrongTableValue { column: String },
    /// 3669: a value that a column of JSON_TABLE cannot hold.
    #[error("Value is out of range for JSON_TABLE's column '{column}'")]
    TableValueOutOfRange { column: String },
    /// 1041: the statement has been told to stop, perhaps because there is no room for a document or its text.
    #[error("Out of memory; there is no room for a JSON document")]
    Stopped,
    /// 3966
    #[error("No value was found by '{function}' on the specified path.")]
    MissingValue { function: String },
    /// 3967
    #[error("More than one value was found by '{function}' on the specified path.")]
    MultipleValues { function: String },
}

impl JsonError {
    /// The number and SQLSTATE of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            JsonError::TextInArgument { .. } => codes::INVALID_JSON_TEXT_IN_PARAM,
            JsonError::Damaged => codes::INVALID_JSON_BINARY_DATA,
            JsonError::Path { .. } => codes::INVALID_JSON_PATH,
            JsonError::CharacterSet { .. } => codes::INVALID_JSON_CHARSET,
            JsonError::Type { .. } => codes::INVALID_TYPE_FOR_JSON,
            JsonError::NoText { .. } => codes::INCORRECT_TYPE,
            JsonError::Escape => codes::WRONG_ARGUMENTS,
            JsonError::Cast { .. } => codes::INVALID_CAST_TO_JSON,
            JsonError::Wildcard => codes::INVALID_JSON_PATH_WILDCARD,
            JsonError::TooBig => codes::JSON_VALUE_TOO_BIG,
            JsonError::KeyTooLong => codes::JSON_KEY_TOO_BIG,
            JsonError::VacuousPath => codes::JSON_VACUOUS_PATH,
            JsonError::OneOrAll { .. } => codes::JSON_BAD_ONE_OR_ALL_ARG,
            JsonError::OutOfRange { .. } => codes::NUMERIC_JSON_VALUE_OUT_OF_RANGE,
            JsonError::InvalidForCast { .. } => codes::INVALID_JSON_VALUE_FOR_CAST,
            JsonError::TooDeep => codes::JSON_DOCUMENT_TOO_DEEP,
            JsonError::NullKey => codes::JSON_DOCUMENT_NULL_KEY,
            JsonError::NotAnArrayCell => codes::INVALID_JSON_PATH_ARRAY_CELL,
            JsonError::NotOfType { .. } => codes::DATA_OUT_OF_RANGE,
            JsonError::MissingTableValue { .. } => codes::MISSING_JSON_TABLE_VALUE,
            JsonError::WrongTableValue { .. } => codes::WRONG_JSON_TABLE_VALUE,
            JsonError::TableValueOutOfRange { .. } => codes::JSON_TABLE_VALUE_OUT_OF_RANGE,
            JsonError::Stopped => codes::OUT_OF_RESOURCES,
            JsonError::MissingValue { .. } => codes::MISSING_JSON_VALUE,
            JsonError::MultipleValues { .. } => codes::MULTIPLE_JSON_VALUES,
        }
    }
}
