//! Statements that change rows.
//!
//! | file | what it holds |
//! |---|---|
//! | [`insert`] | INSERT and REPLACE |
//! | [`destination`] | where the rows of an INSERT go |
//! | [`insert_values`] | the rows of VALUES and SET |
//! | [`on_duplicate`] | ON DUPLICATE KEY UPDATE |
//! | [`update`] | UPDATE, of one table and of several |
//! | [`update_rows`] | how an UPDATE changes the rows that its query has found |
//! | [`update_target`] | a table that an UPDATE changes: what its rows become |
//! | [`delete`] | DELETE, from one table and from several |
//! | [`assigned`] | expressions that are assigned to columns |
//! | [`change_query`] | the query that finds the rows of an UPDATE or a DELETE |
//! | [`first_finds`] | which rows a join has found before |
//! | [`later_values`] | values of an UPDATE that name columns which were given a value before |
//! | [`load_data`] | LOAD DATA |
//! | [`field_reader`] | splits a data file into records and fields |
//! | [`pipe_reader`] | reads a named pipe so that KILL is noticed |
//! | [`row_shape`] | values on their way into rows |
//! | [`table_writer`] | rows on their way into a table |
//! | [`through_view`] | views whose rows are those of one table |
//! | [`value_names`] | the names in values that are assigned |
//! | [`values_around`] | values with subqueries that name columns of the row that they are for |
//! | [`values_before`] | values that name columns of the row that they are for |
//! | [`generated_columns`] | generated columns of rows before they are written |
//! | [`waiting_rows`] | rows that wait until their generated columns are computed together |
//! | [`row_rules`] | what a changed row gets and has to keep |
//! | [`sum`] | a column's value plus or minus a number |
//! | [`table_checks`] | CHECK constraints over rows before they are written |

pub(crate) mod assigned;
pub(crate) mod change_query;
pub(crate) mod computed_defaults;
pub(crate) mod delete;
pub(crate) mod destination;
pub(crate) mod field_reader;
pub(crate) mod first_finds;
pub(crate) mod generated_columns;
pub(crate) mod insert;
pub(crate) mod insert_values;
pub(crate) mod later_values;
pub(crate) mod load_data;
pub(crate) mod on_duplicate;
pub(crate) mod pipe_reader;
pub(crate) mod row_rules;
pub(crate) mod row_shape;
pub(crate) mod sum;
pub(crate) mod table_checks;
pub(crate) mod table_writer;
pub(crate) mod through_view;
pub(crate) mod update;
pub(crate) mod update_rows;
pub(crate) mod update_target;
pub(crate) mod value_names;
pub(crate) mod values_around;
pub(crate) mod values_before;
pub(crate) mod waiting_rows;
