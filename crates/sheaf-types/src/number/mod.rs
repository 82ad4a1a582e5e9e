//! Numbers from text, and as text; exact numbers, and where numbers stand among others.
//!
//! | file | what it holds |
//! |---|---|
//! | `decimal` | exact numbers: powers of ten, other scales |
//! | `read` | numbers from text |
//! | `place` | where numbers stand among those of a type with fewer digits |
//! | `write` | numbers as text |

mod decimal;
mod place;
mod read;
mod write;

pub use decimal::*;
pub use place::*;
pub use read::*;
pub use write::*;
