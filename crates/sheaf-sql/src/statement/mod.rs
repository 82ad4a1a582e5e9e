//! What statements are, before any of them runs. `dispatch/` runs them.
//!
//! | file | what it holds |
//! |---|---|
//! | [`logged_text`] | texts of the binary log for changes of definitions |
//! | [`properties`] | one table of what each kind of statement is |

pub(crate) mod logged_text;
pub(crate) mod properties;
