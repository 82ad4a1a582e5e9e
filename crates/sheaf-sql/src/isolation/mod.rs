//! Transactions of a session, and what their statements wait for. `locking/` says what these lock.
//!
//! What a transaction and a table lock consist of is told in `session_parts/`; here is what is done with them.
//!
//! | file | what it holds |
//! |---|---|
//! | [`transaction`] | begin, commit, roll back, savepoints |
//! | [`global_read_lock`] | waiting for FLUSH TABLES WITH READ LOCK of others |
//! | [`table_wait`] | opening tables, and waiting for those that others keep |

pub(crate) mod global_read_lock;
pub(crate) mod table_wait;
pub(crate) mod transaction;
