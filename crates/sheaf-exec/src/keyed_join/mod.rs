//! The keyed join: lookups through an index, many outer keys at a time.
//!
//! | file | what it holds |
//! |---|---|
//! | [`exec`] | the operator |
//! | [`stream`] | how it runs, round by round |
//! | [`held`] | joined rows that wait to be put into the order of the outer rows |
//! | [`filter`] | the join's own filter |
//! | [`join_type`] | what it delivers |
//! | [`key_encoder`] | encoded keys from Arrow arrays |
//! | [`lookup_record`] | which keys were looked up, for a transaction that keeps them as they are |
//! | [`lookup_switch`] | from lookups to a table in memory, in the middle of the join |
//! | [`hashed_table`] | that table |

pub mod exec;
mod filter;
pub(crate) mod hashed_table;
mod held;
mod join_type;
pub(crate) mod key_encoder;
pub mod lookup_record;
pub mod lookup_switch;
mod stream;
