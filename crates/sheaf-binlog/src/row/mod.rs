//! Values in row images.
//!
//! A row image is a bit for each of its columns that says whether it is NULL, and then the values of the others,
//! one after the other, without lengths where the type has one. What the types are, TABLE_MAP says
//! ([`table`](crate::table)).
//!
//! | file | what it holds |
//! |---|---|
//! | [`columns`] | sets of columns; which columns FULL, MINIMAL and NOBLOB images have |
//! | [`field`] | a column: its type in TABLE_MAP and its values |
//! | `decimal` | DECIMAL |
//! | `temporal` | dates and times |
//! | `json` | JSON in MySQL's binary form |

pub mod columns;
pub(crate) mod decimal;
pub mod field;
pub(crate) mod json;
pub(crate) mod temporal;
