//! Numbers from text, and as text.
//!
//! | file | what it holds |
//! |---|---|
//! | `read` | numbers from text |
//! | `write` | FLOAT and DOUBLE as text |

mod read;
mod write;

pub use read::*;
pub use write::*;
