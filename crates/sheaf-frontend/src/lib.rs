//! The SQL front end: MySQL's dialect, from a statement's text to its logical plan.
//!
//! A statement is parsed ([`parser`]: sqlparser for queries and expressions, by hand what is MySQL's own). A query's
//! syntax tree is bound ([`bind`]): names become columns, expressions get their types, and what comes out is a tree of
//! the algebra (`sheaf-algebra`). Its rules make joins of subqueries, and then it becomes a logical plan.
//!
//! It is a crate apart from sessions because it is slow to compile and changes rarely. Only here are sqlparser's
//! generic walks over trees instantiated.

mod benchmark;
pub mod bind;
pub mod character_sets;
mod collation_names;
pub mod column_default;
pub mod dialect;
pub mod digest;
pub mod error;
pub mod function_names;
pub mod gtid_wait;
pub mod last_insert_id;
pub mod load_file;
pub mod locking;
mod packed_list;
pub mod parser;
pub mod query;
mod reserved;
pub mod session_functions;
mod sleep;
mod statement_text;
pub mod syntax;
mod token;
pub mod user_lock;
pub mod value_literal;
pub mod varying;
pub mod walk;

pub use sheaf_types::text::encoding;
pub use statement_text::{StatementText, edit};
pub use syntax::{bare, header_of_literal, is_plain_column, shown_in_header};
