//! Whole statements through the planner: plans as text, and rows against what they should be.

mod access_methods;
mod big_table;
mod choices;
mod estimates;
mod first_rows;
mod harness;
mod operators;
mod regret;
mod sharing;
mod stored;
mod trace;
