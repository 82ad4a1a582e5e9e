//! MySQL's JSON values, without the SQL around them.
//!
//! A document is a compact binary form in which a member is reached without a look at the others. Paths lead into it,
//! and functions compute with what they find. Nothing here knows tables or statements: the callers give documents,
//! paths and SQL values, and name their functions in errors.
//!
//! ```
//! use sheaf_types::json::functions::modify::{Change, change};
//! use sheaf_types::json::text::{read, to_text};
//! use sheaf_types::json::{Path, Tree};
//!
//! let document = read(r#"{"name": "ada", "tags": [1, 2]}"#).unwrap();
//! let last = Path::parse("$.tags[last]").unwrap();
//! let found = last.find_one(document.as_json()).unwrap();
//! assert_eq!(to_text(found), "2");
//!
//! let mut tree = Tree::Stored(document.as_json());
//! let three = read("3").unwrap();
//! change(&mut tree, Change::Set, &last, Tree::Stored(three.as_json())).unwrap();
//! let changed = tree.to_document().unwrap();
//! assert_eq!(to_text(changed.as_json()), r#"{"name": "ada", "tags": [1, 3]}"#);
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | [`document`] | the binary form: its bytes, a reader, a builder, and documents with changes |
//! | [`text`] | documents from text, and as text |
//! | [`path`] | the path language: `$.a[last]`, `$**.b` |
//! | [`compare`] | the order of values |
//! | [`sort_key`] | bytes in the order of the values |
//! | [`functions`] | what JSON_EXTRACT, JSON_SET and the others compute |
//! | [`table`] | the rows of JSON_TABLE |
//! | `room` | what grows long asks whether its statement has room for it |
//! | [`error`] | what can be wrong with a document, a path or an argument |

pub mod compare;
pub mod document;
pub mod error;
pub mod functions;
pub mod path;
mod room;
pub mod sort_key;
pub mod table;
pub mod text;

pub use document::{Builder, Document, Json, Tree, View};
pub use error::JsonError;
pub use path::Path;
