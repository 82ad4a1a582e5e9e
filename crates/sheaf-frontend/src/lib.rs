//! The SQL front end: MySQL's dialect, from a statement's text to its logical plan.
//!
//! A statement is parsed ([`parser`]: sqlparser for queries and expressions, by hand what is MySQL's own). A query's
//! syntax tree is lowered to markers that leave nothing to interpret (`lower`). DataFusion's SqlToRel turns it into a
//! logical plan, and the typing rule spells out MySQL's semantics ([`query`]).
//!
//! It is a crate apart from sessions because it is slow to compile and changes rarely. Only here are sqlparser's and
//! DataFusion's generic walks over trees instantiated, at a low optimisation level.
//!
//! In development is another way: [`bind`] makes a tree of the algebra of a syntax tree, without names and markers.

mod any_row;
pub mod bind;
mod context;
mod determined;
pub mod dialect;
pub mod encoding;
pub mod error;
pub mod last_insert_id;
mod lower;

pub use lower::column_default;
mod multiset;
pub mod parser;
pub mod query;
mod reserved;
mod rollup_order;
mod sleep;
pub mod walk;

pub use lower::StatementText;
