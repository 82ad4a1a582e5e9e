//! Statements that change definitions.
//!
//! | file | what it holds |
//! |---|---|
//! | [`ddl`] | tables and indexes |
//! | [`databases`] | databases |
//! | [`column_statistics`] | histograms: ANALYZE TABLE … UPDATE and DROP HISTOGRAM |

pub(crate) mod column_statistics;
pub(crate) mod databases;
pub(crate) mod ddl;
