//! Statements that change definitions.
//!
//! | file | what it holds |
//! |---|---|
//! | [`ddl`] | tables: CREATE, DROP, RENAME, TRUNCATE |
//! | [`alter_table`] | ALTER TABLE, CREATE INDEX, DROP INDEX |
//! | [`demands`] | their ALGORITHM and LOCK |
//! | [`source_numbers`] | how a replica numbers rows as its source has |
//! | [`maintain`] | ANALYZE, CHECK, OPTIMIZE and REPAIR TABLE |
//! | [`checksum`] | CHECKSUM TABLE |
//! | [`comments`] | how long comments may be |
//! | [`databases`] | databases |
//! | [`views`] | views |
//! | [`view_names`] | names of their columns |
//! | [`standard_text`] | their queries, for every `sql_mode` |
//! | [`key_expressions`] | parts of keys that are expressions |
//! | [`replaced_table`] | CREATE OR REPLACE TABLE |
//! | [`column_statistics`] | histograms: ANALYZE TABLE … UPDATE and DROP HISTOGRAM |

pub(crate) mod alter_table;
mod checksum;
pub(crate) mod column_statistics;
mod comments;
pub(crate) mod databases;
pub(crate) mod ddl;
mod demands;
pub(crate) mod explain_alteration;
pub(crate) mod key_expressions;
pub(crate) mod maintain;
mod replaced_table;
pub(crate) mod source_numbers;
mod standard_text;
mod view_names;
pub(crate) mod views;
