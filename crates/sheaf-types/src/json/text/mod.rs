//! Documents from text, and as text.
//!
//! | file | what it holds |
//! |---|---|
//! | `read` | a text straight into the binary form |
//! | `problem` | what can be wrong with a text |
//! | `write` | a value as MySQL shows it |

mod problem;
pub(crate) mod read;
mod write;

pub use problem::TextProblem;
pub use read::{is_json, read};
pub(crate) use write::push_scalar;
pub use write::{push_compact, push_opaque, push_pretty, push_quoted, to_pretty, to_text};
