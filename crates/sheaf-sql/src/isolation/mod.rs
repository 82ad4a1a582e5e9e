//! Transactions of a session, and what their statements lock.
//!
//! What a transaction and a table lock consist of is told in `session_parts/`; here is what is done with them.
//!
//! | file | what it holds |
//! |---|---|
//! | [`transaction`] | begin, commit, roll back, savepoints |
//! | [`statement_locks`] | what a statement locks at each level |
//! | [`change_read`] | what a change reads of other tables |
//! | [`table_wait`] | opening tables, and waiting for those that others keep |
//! | [`locked_tables`] | LOCK TABLES, FLUSH TABLES WITH READ LOCK, UNLOCK TABLES |

pub(crate) mod change_read;
pub(crate) mod locked_tables;
pub(crate) mod statement_locks;
pub(crate) mod table_wait;
pub(crate) mod transaction;
