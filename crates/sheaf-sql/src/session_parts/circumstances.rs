//! What a session's plans, and what it has planned of expressions, depend on besides their statements and tables.

use crate::variables::Variables;

/// What a plan, or the finding that there is none, depends on besides the statement.
#[derive(Clone)]
pub(crate) struct Circumstances {
    pub(crate) variables: Variables,
    pub(crate) database: Option<String>,
    pub(crate) schema_version: u64,
    /// Of the session's temporary tables.
    pub(crate) temporary_version: u64,
    /// The day in the session's time zone, where it matters: a TIME becomes a date of it.
    pub(crate) day: Option<i32>,
}
