//! What statements are, before any of them runs. `dispatch/` runs them.
//!
//! | file | what it holds |
//! |---|---|
//! | [`properties`] | one table of what each kind of statement is |
//! | [`hints`] | hints about the statement as a whole |
//! | [`logged`] | what the binary log has of a statement that changes definitions |
//! | [`set_statement`] | variables for one statement |
//! | [`explain`] | EXPLAIN, EXPLAIN ANALYZE, EXPLAIN FOR CONNECTION |

pub(crate) mod dispatch;
pub(crate) mod explain;
pub(crate) mod hints;
mod logged;
pub(crate) mod properties;
