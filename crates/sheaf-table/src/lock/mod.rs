//! Locks above rows.
//!
//! | file | what it holds |
//! |---|---|
//! | [`table_lock`] | who reads a table, writes it, or changes what it is |
//! | [`global_read_lock`] | FLUSH TABLES WITH READ LOCK |

pub mod global_read_lock;
pub(crate) mod table_lock;
