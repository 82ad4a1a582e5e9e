//! What statements lock.
//!
//! | file | what it holds |
//! |---|---|
//! | [`statement_locks`] | what a statement locks at each level |
//! | [`change_read`] | what a change reads of other tables |
//! | [`locked_tables`] | LOCK TABLES, FLUSH TABLES WITH READ LOCK, UNLOCK TABLES |

pub(crate) mod change_read;
pub(crate) mod locked_tables;
pub(crate) mod statement_locks;
