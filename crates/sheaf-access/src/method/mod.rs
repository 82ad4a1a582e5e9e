//! The access methods, and what the planner asks of them.
//!
//! | file | what it holds |
//! |---|---|
//! | [`scan`] | one worker's part of a scan, whatever the method |
//! | [`scan_reach`] | how far a scan has come |
//! | [`split`] | splitting a scan for parallel workers |
//! | [`clustered_scan`] | rows in primary key order |
//! | [`index_range_scan`] | ranges of a secondary index |
//! | [`multi_range_read`] | rows for many primary keys, in primary key order |
//! | [`index_merge`] | rows that several indexes lead to |
//! | [`keyed_join`] | the inner side of a join through an index |
//! | [`late_columns`] | columns of rows whose clustered keys are known |
//! | [`entry_rows`] | entries of a secondary index on their way |
//! | [`jump_walk`] | the entries of a leaf that a key filter lets in |
//! | [`range_cursor`] | the leaves of many ranges, one after another, in either direction |

pub(crate) mod clustered_scan;
pub(crate) mod entry_rows;
pub(crate) mod index_merge;
pub(crate) mod index_range_scan;
pub(crate) mod jump_walk;
pub(crate) mod keyed_join;
pub(crate) mod late_columns;
pub(crate) mod multi_range_read;
pub(crate) mod range_cursor;
pub(crate) mod scan;
pub(crate) mod scan_reach;
pub(crate) mod split;
