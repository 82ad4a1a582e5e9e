//! What a row gets and has to keep before it is written.
//!
//! | file | what it holds |
//! |---|---|
//! | [`generated_columns`] | generated columns |
//! | [`waiting_rows`] | rows that wait until their generated columns are computed together |
//! | [`table_checks`] | CHECK constraints |
//! | [`row_rules`] | what a changed row gets and has to keep |

pub(crate) mod generated_columns;
pub(crate) mod row_rules;
pub(crate) mod table_checks;
pub(crate) mod waiting_rows;
