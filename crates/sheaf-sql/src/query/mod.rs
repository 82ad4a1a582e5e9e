//! Queries, and the ways in which rows leave.
//!
//! | file | what it holds |
//! |---|---|
//! | [`run`] | from the syntax tree to batches |
//! | [`read_plan`] | through which view a query reads, and when what it reads is locked |
//! | [`locking_clause`] | what a query says about rows that others have locked |
//! | [`cell_reader`] | one value of a batch, for clients that want rows |
//! | [`batch_builder`] | rows of a direct plan as batches |
//! | [`values`] | values of expressions outside of queries |
//! | [`rows`] | small tables that are made of what the engine knows |
//! | [`row_evaluator`] | expressions over rows that are at hand |
//! | [`record_spool`] | records that wait, in their order |
//! | [`row_spool`] | rows of values that wait until the query has found its last one |
//! | [`batch_spool`] | batches that wait, in their order |
//! | [`server_files`] | which files of the server LOAD_FILE may read |
//! | [`sort_memory`] | memory for the sorts of loads and index builds |
//! | [`value_extent`] | how long the values of computed columns can be |
//! | [`made_columns`] | the columns of a table that CREATE TABLE … SELECT makes of a query |
//! | [`constant_numbers`] | the digits of numbers that are computed of constants |
//! | [`never_null`] | which computed columns are never NULL |
//! | [`format_length`] | how long the texts are that functions make by a format |

pub(crate) mod batch_builder;
pub(crate) mod batch_spool;
pub(crate) mod cell_reader;
pub(crate) mod constant_numbers;
mod format_length;
pub(crate) mod locking_clause;
pub(crate) mod made_columns;
pub(crate) mod never_null;
pub(crate) mod read_plan;
pub(crate) mod record_spool;
pub(crate) mod row_evaluator;
pub(crate) mod row_spool;
pub(crate) mod rows;
pub(crate) mod run;
pub(crate) mod server_files;
pub(crate) mod sort_memory;
pub(crate) mod value_extent;
pub(crate) mod values;
