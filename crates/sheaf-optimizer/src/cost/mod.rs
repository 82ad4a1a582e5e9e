//! What things cost, in microseconds.
//!
//! | file | what it costs |
//! |---|---|
//! | [`constants`] | the numbers that everything is made of: this device, this processor |
//! | [`measure`] | how they are measured |
//! | [`pages`] | how many pages so many lookups touch |
//! | [`range_scan`] | reading ranges of a tree in order: the clustered scan and the index range scan |
//! | [`jumps`] | the same with jumps over entries that cannot match |
//! | [`index_condition`] | testing conditions on entries before, or on rows after, they are fetched |
//! | [`lookup`] | fetching rows one by one, in the order of the index |
//! | [`multi_range_read`] | fetching rows in the order of the primary key |
//! | [`keyed_join`] | looking the rows of a join up by key |
//! | [`hash_join`] | building and probing a hash table; nested loops |
//! | [`grouping`] | GROUP BY and aggregate functions |
//! | [`sort`] | sorting rows, or keeping the first of them; the merge join |
//! | [`work`] | what passes at the same time: the device's part and the processor's |
//! | [`early_stop`] | the part of a walk that a LIMIT needs |
//!
//! Each is a function of the constants and of estimates, with its formula in its comment. None knows tables or plans,
//! and none looks at anything by itself; so what EXPLAIN shows is all that it took.

pub mod constants;
pub(crate) mod early_stop;
pub(crate) mod grouping;
pub(crate) mod hash_join;
pub(crate) mod index_condition;
pub(crate) mod jumps;
pub(crate) mod keyed_join;
pub(crate) mod lookup;
pub mod measure;
pub(crate) mod multi_range_read;
pub(crate) mod pages;
pub(crate) mod range_scan;
pub(crate) mod sort;
pub(crate) mod work;

pub use constants::CostConstants;
