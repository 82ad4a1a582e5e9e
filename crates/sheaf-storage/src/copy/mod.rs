//! Copies of a database that is in use, and the way back from them.
//!
//! | file | what it holds |
//! |---|---|
//! | [`backup`] | a copy of the data file that is made while it changes |
//! | [`archive`] | the whole log, kept elsewhere |
//! | [`restore`] | a backup, brought forward to a chosen moment by the archived log |

pub mod archive;
pub(crate) mod backup;
pub(crate) mod restore;
