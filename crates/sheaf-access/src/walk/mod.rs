//! Ways through the leaves of a tree.
//!
//! | file | what it holds |
//! |---|---|
//! | [`range_cursor`] | the leaves of many ranges, one after another, in either direction |
//! | [`jump_walk`] | the entries of a leaf that a key filter lets in |
//! | [`key_filter`] | what the parts of a key must be like |
//! | [`key_buffer`] | keys collected up to a number of bytes, then sorted |
//! | [`key_windows`] | walks a buffer of keys and has their pages read ahead |
//! | [`index_entries`] | entries laid out for work column by column |
//! | [`byte_strings`] | many byte strings in one allocation |
//! | [`seen_table`] | a table as a view sees it |

pub(crate) mod byte_strings;
pub(crate) mod index_entries;
pub(crate) mod jump_walk;
pub(crate) mod key_buffer;
pub(crate) mod key_filter;
pub(crate) mod key_windows;
pub(crate) mod range_cursor;
pub(crate) mod seen_table;
