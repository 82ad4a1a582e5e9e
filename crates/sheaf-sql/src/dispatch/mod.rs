//! From a parsed statement to the code that runs it.
//!
//! | file | what it holds |
//! |---|---|
//! | [`run`] | which code runs which statement |
//! | [`hints`] | hints about the statement as a whole |
//! | [`logged`] | what the binary log has of a statement that changes definitions |
//! | [`set`] | SET |
//! | [`set_statement`] | variables for one statement |
//! | [`prepared`] | PREPARE and EXECUTE |
//! | [`diagnostics`] | GET DIAGNOSTICS |
//! | [`backup`] | BACKUP TO |
//! | [`rewriting`] | query rewrite rules in a table |
//! | [`explain`] | EXPLAIN, EXPLAIN ANALYZE |
//! | [`explain_connection`] | EXPLAIN FOR CONNECTION |

mod backup;
mod diagnostics;
pub(crate) mod explain;
mod explain_connection;
pub(crate) mod hints;
mod logged;
mod prepared;
mod rewriting;
mod run;
mod set;
mod set_statement;
