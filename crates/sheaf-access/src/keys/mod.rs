//! Keys on their way into a tree: what they must be like, many at a time, and their pages ahead.
//!
//! | file | what it holds |
//! |---|---|
//! | [`key_filter`] | what the parts of a key must be like |
//! | [`key_buffer`] | keys collected up to a number of bytes, then sorted |
//! | [`key_windows`] | walks a buffer of keys and has their pages read ahead |
//! | [`ranged_key`] | a range of keys as one byte string |
//! | [`byte_strings`] | many byte strings in one allocation |
//! | [`table_snapshot`] | a table as a view sees it |

pub(crate) mod byte_strings;
pub(crate) mod key_buffer;
pub(crate) mod key_filter;
pub(crate) mod key_windows;
pub(crate) mod ranged_key;
pub(crate) mod table_snapshot;
