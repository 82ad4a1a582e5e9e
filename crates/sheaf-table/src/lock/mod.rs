//! Locks above rows.
//!
//! | file | what it holds |
//! |---|---|
//! | [`table_lock`] | which sessions read a table, write it, or change what it is |
//! | [`global_read_lock`] | FLUSH TABLES WITH READ LOCK |
//! | [`user_lock`] | locks by name: GET_LOCK |

pub mod global_read_lock;
pub(crate) mod table_lock;
pub mod user_lock;
