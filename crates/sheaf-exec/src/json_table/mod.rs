//! JSON_TABLE in a logical plan: rows of documents beside the rows that these come from
//! (`operator/expand_exec.rs`).
//!
//! ```text
//!   Expand: x of t.j, keeping t.id         each row of t gives as many rows as its document has
//!     t (id, j)
//! ```
//!
//! What rows a document has, [`sheaf_types::json::table`] knows. Here are the types of their columns.
//!
//! | file | what it holds |
//! |---|---|
//! | [`table`] | the rows that a document has, with the types of their columns |
//! | [`values`] | cells of rows on their way into columns |
//! | [`expand`] | the node of a logical plan |

mod expand;
mod table;
mod values;

pub use expand::Expand;
pub use table::{JsonTable, JsonTableColumn};
pub use values::assigned;
