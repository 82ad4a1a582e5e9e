//! Statements that change definitions.
//!
//! | file | what it holds |
//! |---|---|
//! | [`ddl`] | tables and indexes |
//! | [`databases`] | databases |
//! | [`made_columns`] | the columns that CREATE TABLE … SELECT makes |
//! | [`column_statistics`] | histograms: ANALYZE TABLE … UPDATE and DROP HISTOGRAM |

pub(crate) mod column_statistics;
pub(crate) mod databases;
pub(crate) mod ddl;
pub(crate) mod made_columns;
