//! Errors of the access floor.
//!
//! Most of them pass through from the floors below. They become MySQL error codes at the SQL floor.

use arrow::error::ArrowError;
use sheaf_storage::StorageError;
use sheaf_table::TableError;

/// What can go wrong while rows are read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// The tree or the disk below it failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A row, key or catalog entry could not be decoded.
    #[error(transparent)]
    Table(#[from] TableError),
    /// An array could not be built or filtered: lengths or types do not fit.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// The statement was killed, or its client went away. MySQL's error 1317.
    #[error("query execution was interrupted")]
    Cancelled,
    /// The scan and those beside it have spent what they were allowed to: see [`Budget`](crate::Budget). The caller
    /// that set the limit has another plan.
    #[error("the plan has spent what it was allowed to")]
    BudgetSpent,
    /// A [`BatchCondition`](crate::BatchCondition) failed; holds the error of the floor above.
    #[error("{0}")]
    Condition(Box<dyn std::error::Error + Send + Sync>),
    /// The specification asks for something that the index or the table cannot give, for example a
    /// covering scan of a column that the index does not hold. A planner error, never a user's.
    #[error("access method cannot do this: {0}")]
    Unsupported(String),
}

/// Result of the access floor.
pub type Result<T, E = AccessError> = std::result::Result<T, E>;
