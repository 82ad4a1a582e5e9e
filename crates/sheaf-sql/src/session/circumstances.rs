//! What a session's plans, and what it has planned of expressions, depend on besides their statements and tables.

use crate::variables::Variables;

/// What a plan, or the finding that there is none, depends on besides the statement.
#[derive(Clone)]
pub(crate) struct Circumstances {
    pub(super) variables: Variables,
    pub(super) database: Option<String>,
    pub(super) schema_version: u64,
    /// Of the session's temporary tables.
    pub(super) temporary_version: u64,
    /// The day in the session's time zone, where it matters: a TIME becomes a date of it.
    pub(super) day: Option<i32>,
}
