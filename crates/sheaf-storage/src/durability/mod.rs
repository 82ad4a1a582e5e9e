//! What makes the data file whole after a crash.
//!
//! | file | what it holds |
//! |---|---|
//! | [`checkpointer`] | writes dirty pages now and then, so that the log stays short |
//! | [`recovery`] | from the pages on disk and the log to the state that was acknowledged |

pub(crate) mod checkpointer;
pub(crate) mod recovery;
