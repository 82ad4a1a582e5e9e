//! Transactions of a session, and what their statements wait for. `locking/` says what these lock.
//!
//! What a transaction and a table lock consist of is told in `session_parts/`; here is what is done with them.
//!
//! | file | what it holds |
//! |---|---|
//! | [`transaction`] | begin, commit, roll back, savepoints |
//! | [`statement_locks`] | what a statement locks at each level |
//! | [`remembered_locks`] | which rows a statement has locked |
//! | [`locking_read`] | SELECT … FOR UPDATE and FOR SHARE |
//! | [`beside_locks`] | what that sees of tables that it does not lock |
//! | [`serializable_read`] | reads of SERIALIZABLE |
//! | [`change_read`] | what a change reads of other tables |
//! | [`table_wait`] | opening tables, and waiting for those that others keep |

pub(crate) mod beside_locks;
pub(crate) mod change_read;
pub(crate) mod locked_tables;
pub(crate) mod locking_read;
pub(crate) mod remembered_locks;
pub(crate) mod serializable_read;
pub(crate) mod statement_locks;
pub(crate) mod table_wait;
pub(crate) mod transaction;
