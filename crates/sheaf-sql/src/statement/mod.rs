//! From a parsed statement to the code that runs it.
//!
//! | file | what it holds |
//! |---|---|
//! | [`dispatch`] | which code runs which statement |
//! | [`properties`] | one table of what each kind of statement is |
//! | [`hints`] | hints about the statement as a whole |
//! | [`set_statement`] | variables for one statement |
//! | [`backup`] | BACKUP TO |
//! | [`rewriting`] | query rewrite rules in a table |
//! | [`explain`] | EXPLAIN, EXPLAIN ANALYZE, EXPLAIN FOR CONNECTION |

mod backup;
pub(crate) mod dispatch;
pub(crate) mod explain;
pub(crate) mod hints;
pub(crate) mod properties;
mod rewriting;
mod set_statement;
