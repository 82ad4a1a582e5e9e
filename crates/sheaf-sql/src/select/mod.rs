//! SELECT for the client.
//!
//! | file | what it holds |
//! |---|---|
//! | [`run`] | which way a SELECT takes, and how its rows are sent |
//! | [`locking_read`] | FOR UPDATE and FOR SHARE |
//! | [`serializable_read`] | reads of SERIALIZABLE |

pub(crate) mod locking_read;
mod run;
mod serializable_read;
