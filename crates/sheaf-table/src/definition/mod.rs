//! What a table is, and what a statement may ask it to become.
//!
//! | file | what it holds |
//! |---|---|
//! | [`schema`] | columns, indexes, and the trees that hold them |
//! | [`row_shape`] | where columns are in rows, after columns were added or dropped without writing them |
//! | [`check_constraint`] | CHECK constraints |
//! | [`generated_column`] | generated columns |
//! | [`key_expression`] | indexes of expressions |
//! | [`foreign_key`] | foreign keys |
//! | [`codec`] | definitions as bytes, as docs/catalog-format.md specifies them |
//! | `default_text` | how the default of a column is written |
//! | [`show_create`] | SHOW CREATE TABLE |
//! | [`convert`] | what a column holds of a value, and without one |

pub(crate) mod check_constraint;
pub(crate) mod codec;
pub mod convert;
pub(crate) mod default_text;
pub mod foreign_key;
pub mod generated_column;
pub mod key_expression;
pub mod row_shape;
pub mod schema;
pub mod show_create;
