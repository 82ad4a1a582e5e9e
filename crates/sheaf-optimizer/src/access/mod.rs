//! How a table is read: what its indexes offer for the conditions on it.
//!
//! | file | what it holds |
//! |---|---|
//! | [`table_reference`] | a table in a query, with the conditions on it |
//! | [`wanted`] | what the parent of a node would like of its rows |
//! | [`path`] | every way to read it, what each costs, and the cheapest |
//! | [`path_cost`] | which functions of [`crate::cost`] a path asks |
//! | [`match_positions`] | where along an ordered walk the matches lie |
//! | [`trace`] | what the optimizer trace says of paths |
//! | [`column_sets`] | what conditions leave of each column |
//! | [`ranges`] | conditions become key ranges of an index |
//! | [`disjoint`] | ranges that overlap become one |
//! | [`range_text`] | key ranges as text |
//! | [`jumps`] | conditions become jumps inside the ranges |
//! | [`index_merge`] | several indexes at once |
//! | [`loose_scan`] | grouping that needs one entry per group |
//! | [`bound_scan`] | scans by values that each run has of its own |
//! | [`keyed_access`] | which indexes a join can look keys up in |

pub(crate) mod bound_scan;
pub(crate) mod column_sets;
pub(crate) mod disjoint;
pub(crate) mod index_merge;
pub(crate) mod jumps;
pub(crate) mod keyed_access;
pub(crate) mod loose_scan;
pub(crate) mod match_positions;
pub(crate) mod path;
pub(crate) mod path_cost;
pub(crate) mod range_text;
pub(crate) mod ranges;
pub(crate) mod table_reference;
pub(crate) mod trace;
pub(crate) mod wanted;
