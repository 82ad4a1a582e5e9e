//! What MySQL's JSON functions compute. Each takes documents and paths that are read already, and knows no SQL.
//!
//! | file | functions |
//! |---|---|
//! | [`extract`] | JSON_EXTRACT, `->` |
//! | [`contains`] | JSON_CONTAINS |
//! | [`contains_path`] | JSON_CONTAINS_PATH, and its `one` and `all` |
//! | [`overlaps`] | JSON_OVERLAPS, MEMBER OF |
//! | [`search`] | JSON_SEARCH |
//! | [`structure`] | JSON_KEYS, JSON_LENGTH, JSON_DEPTH, JSON_TYPE, JSON_STORAGE_SIZE |
//! | [`quote`] | JSON_QUOTE, JSON_UNQUOTE, `->>` |
//! | [`modify`] | JSON_SET, JSON_INSERT, JSON_REPLACE, JSON_REMOVE, JSON_ARRAY_APPEND, JSON_ARRAY_INSERT |
//! | [`merge`] | JSON_MERGE_PATCH, JSON_MERGE_PRESERVE |
//! | [`coerce`] | CAST of a JSON value to a type of SQL |
//! | [`value`] | JSON_VALUE |

pub mod coerce;
pub mod contains;
pub mod contains_path;
pub mod extract;
pub mod merge;
pub mod modify;
pub mod overlaps;
pub mod quote;
pub mod search;
pub mod structure;
pub mod value;
