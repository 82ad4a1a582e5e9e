//! Plans that change while they run, because an estimate was wrong.
//!
//! | file | what it holds |
//! |---|---|
//! | [`bounded_regret`] | which plans get a second one, and when it takes over |
//! | [`lookup_regret`] | which keyed joins may stop their lookups, and when |
//! | [`shared_subplans`] | a subplan that a plan has several times runs once |

pub(crate) mod bounded_regret;
pub(crate) mod lookup_regret;
pub(crate) mod shared_subplans;
