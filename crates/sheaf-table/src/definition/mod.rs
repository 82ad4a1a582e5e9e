//! What a table is, and what a statement may ask it to become.
//!
//! | file | what it holds |
//! |---|---|
//! | [`schema`] | columns, indexes, and the trees that hold them |
//! | [`check_constraint`] | CHECK constraints |
//! | [`foreign_key`] | foreign keys |
//! | [`check`] | names, types, defaults and keys of a definition, checked and resolved |
//! | [`altered`] | what a definition becomes by the changes of an ALTER TABLE |
//! | [`codec`] | definitions as bytes, as docs/catalog-format.md specifies them |
//! | [`show_create`] | SHOW CREATE TABLE |

pub(crate) mod altered;
pub(crate) mod check;
pub(crate) mod check_constraint;
pub(crate) mod codec;
pub mod foreign_key;
pub mod schema;
pub mod show_create;
