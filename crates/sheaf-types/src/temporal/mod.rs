//! Dates and times.
//!
//! | file | what it holds |
//! |---|---|
//! | `calendar` | dates and times as counts, and their parts |
//! | `read` | dates and times from text |
//! | `digits` | dates and times from numbers, and as numbers |
//! | `time_zone` | the time zone of a session, and where values are converted |
//! | `write` | dates and times as text |

mod calendar;
mod digits;
mod read;
mod time_zone;
mod write;

pub use calendar::*;
pub use digits::*;
pub use read::*;
pub use time_zone::*;
pub use write::*;
