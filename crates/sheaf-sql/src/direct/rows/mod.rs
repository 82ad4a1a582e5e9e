//! Rows on their way through a plan, and what they come from.
//!
//! | file | what it holds |
//! |---|---|
//! | [`row_source`] | tables and queries that rows come from |
//! | [`derived_rows`] | rows of such queries, in memory |
//! | [`stored_value`] | the value of a column, wherever it is |
//! | [`values`] | the rows of a query that others go on with |
//! | [`waiting_rows`] | rows that wait until the result is complete |
//! | [`order`] | sort keys, and rows sorted by them |
//! | [`found_key`] | clustered keys of what a query finds |

pub(super) mod derived_rows;
pub(super) mod found_key;
pub(super) mod order;
pub(super) mod row_source;
pub(super) mod stored_value;
pub(super) mod values;
pub(super) mod waiting_rows;
