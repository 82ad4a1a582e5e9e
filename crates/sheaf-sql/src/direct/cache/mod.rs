//! Plans that are kept.
//!
//! | file | what it holds |
//! |---|---|
//! | [`known_plan`] | what a session knows of a plan; `engine/shared_plans.rs` has those that all share |
//! | [`statement_cache`] | a session's statements that come as text |

pub(super) mod known_plan;
pub(super) mod statement_cache;
