//! How many rows there are.
//!
//! | file | what it holds |
//! |---|---|
//! | [`condition`] | what a condition says about single columns |
//! | [`column_set`] | values of one column that a condition leaves |
//! | [`selectivity`] | the share of a table that a condition accepts |
//! | [`joint_selectivity`] | what several conditions accept together |
//! | [`statistics`] | what the trees know: entries, distinct keys, pages in memory |
//! | [`group_rows`] | how many groups a grouping makes |
//! | [`risk`] | what a plan may cost if an estimate is wrong |

pub(crate) mod column_set;
pub(crate) mod condition;
pub(crate) mod group_rows;
pub(crate) mod joint_selectivity;
pub(crate) mod risk;
pub(crate) mod selectivity;
pub(crate) mod statistics;
