//! Whole statements through the planner: plans as text, and rows against what they should be.

mod access_methods;
mod big_table;
mod bound_subqueries;
mod choices;
mod connected_joins;
mod derived_joins;
mod estimates;
mod first_rows;
mod harness;
mod lookup_regret;
mod merge_joins;
mod nodes;
mod null_equality;
mod operators;
mod orders;
mod plan_check;
mod range_joins;
mod regret;
mod requirements;
mod sharing;
mod stored;
mod trace;
