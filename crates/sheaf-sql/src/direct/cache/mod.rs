//! Plans that are kept.
//!
//! | file | what it holds |
//! |---|---|
//! | [`given_up`] | runs of a plan that have given up |
//! | [`known_plan`] | what a session knows of a plan; `engine/shared_plans.rs` has those that all share |
//! | [`statement_cache`] | a session's statements that come as text |

pub(super) mod given_up;
pub(super) mod known_plan;
pub(super) mod statement_cache;
