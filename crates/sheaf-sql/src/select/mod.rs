//! SELECT for the client.
//!
//! | file | what it holds |
//! |---|---|
//! | [`run`] | which way a SELECT takes, and how its rows are sent |
//! | [`locking_read`] | FOR UPDATE and FOR SHARE |
//! | [`beside_locks`] | what that sees of tables that it does not lock |
//! | [`serializable_read`] | reads of SERIALIZABLE |
//! | [`select_into`] | SELECT … INTO of variables |
//! | [`into_file`] | SELECT … INTO OUTFILE and DUMPFILE |

pub(crate) mod beside_locks;
mod into_file;
pub(crate) mod locking_read;
mod run;
pub(crate) mod select_into;
mod serializable_read;
