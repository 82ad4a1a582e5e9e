//! What can be wrong with what is to be logged, or was received, with MySQL's numbers.

use sheaf_types::error::codes::{self, ErrorCode};

/// Why bytes cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BinlogError {
    /// 1772: a text that is no set of GTIDs.
    #[error("Malformed GTID set specification '{text}'.")]
    MalformedGtidSet { text: String },
    /// 1534: a value that is none of its column.
    #[error(
        "Writing one row to the row-based binary log failed: column '{column}' of type {ty} has no such value."
    )]
    ForeignValue { column: String, ty: String },
    /// 1534: a row with too few or too many values.
    #[error(
        "Writing one row to the row-based binary log failed: {values} values for {columns} columns."
    )]
    ValueCount { values: usize, columns: usize },
    /// 1534: a JSON value that does not hold, or is longer than the format allows.
    #[error(
        "Writing one row to the row-based binary log failed: column '{column}' has no JSON value that fits."
    )]
    Json { column: String },
    /// 1534: a name that is longer than 255 bytes, too many columns, or a primary key of columns that are not there.
    #[error("Table '{table}' cannot be described in the binary log: {reason}.")]
    Table { table: String, reason: &'static str },
    /// 1677: the replica's column does not take values of the source's.
    #[error(
        "Column {column} of table '{table}' cannot be converted from type '{from}' to type '{to}'"
    )]
    Conversion {
        column: usize,
        table: String,
        from: String,
        to: String,
    },
    /// 1594: what another server sent does not hold.
    #[error("Relay log read failure: {what} cannot be read")]
    Malformed { what: String },
}

impl BinlogError {
    /// MySQL's number.
    pub fn code(&self) -> ErrorCode {
        match self {
            BinlogError::MalformedGtidSet { .. } => codes::MALFORMED_GTID_SET_SPECIFICATION,
            BinlogError::Conversion { .. } => codes::REPLICA_CONVERSION_FAILED,
            BinlogError::Malformed { .. } => codes::REPLICA_RELAY_LOG_READ_FAILURE,
            BinlogError::ForeignValue { .. }
            | BinlogError::ValueCount { .. }
            | BinlogError::Json { .. }
            | BinlogError::Table { .. } => codes::BINLOG_ROW_LOGGING_FAILED,
        }
    }
}

pub type Result<T> = std::result::Result<T, BinlogError>;
