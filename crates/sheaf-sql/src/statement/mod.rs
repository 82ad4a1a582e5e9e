//! What statements are, before any of them runs. `dispatch/` runs them.
//!
//! | file | what it holds |
//! |---|---|
//! | [`properties`] | one table of what each kind of statement is |

pub(crate) mod properties;
