//! Numbers from text, and as text; exact numbers, and where numbers stand among others.
//!
//! | file | what it holds |
//! |---|---|
//! | `bits` | values of BIT as numbers and as bytes |
//! | `decimal` | exact numbers: powers of ten, other scales |
//! | `float_digits` | the digits of FLOAT(M,D) and DOUBLE(M,D) |
//! | `read` | numbers from text |
//! | `place` | where numbers stand among those of a type with fewer digits |
//! | `wide` | exact numbers of more digits than 128 bits hold |
//! | `write` | numbers as text |

mod bits;
mod decimal;
mod float_digits;
mod place;
mod read;
mod wide;
mod write;

pub use bits::*;
pub use decimal::*;
pub use float_digits::*;
pub use place::*;
pub use read::*;
pub use wide::*;
pub use write::*;
