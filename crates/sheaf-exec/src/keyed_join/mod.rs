//! The keyed join: lookups through an index, many outer keys at a time.
//!
//! | file | what it holds |
//! |---|---|
//! | [`exec`] | the operator |
//! | [`key_encoder`] | encoded keys from Arrow arrays |
//! | [`lookup_record`] | which keys were looked up, for a transaction that keeps them as they are |
//! | [`lookup_switch`] | from lookups to a table in memory, in the middle of the join |
//! | [`hashed_table`] | that table |

pub mod exec;
pub(crate) mod hashed_table;
pub(crate) mod key_encoder;
pub mod lookup_record;
pub mod lookup_switch;
