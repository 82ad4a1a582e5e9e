//! Dates and times.
//!
//! | file | what it holds |
//! |---|---|
//! | `calendar` | dates and times as counts |
//! | `read` | dates and times from text and from numbers |

mod calendar;
mod read;

pub use calendar::*;
pub use read::*;
