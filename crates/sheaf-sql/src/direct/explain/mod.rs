//! What EXPLAIN and the counters of reads say of direct plans.
//!
//! | file | what it holds |
//! |---|---|
//! | [`description`] | the plan describes itself |
//! | [`operators_alike`] | the operators' plan that does the same, for its estimates |
//! | [`planned_constants`] | whether constants would be computed directly |
//! | [`analyze`] | EXPLAIN ANALYZE |
//! | [`traced`] | the optimizer trace of a run |
//! | [`reads`] | how plans read the tables that they begin with |

pub(super) mod analyze;
pub(super) mod description;
pub(super) mod operators_alike;
mod planned_constants;
pub(super) mod reads;
mod traced;
