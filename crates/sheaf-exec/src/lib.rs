//! The operators that Sheaf adds to DataFusion's, and the runtime that drives a plan.
//!
//! DataFusion supplies joins, aggregates, sorts and windows over Arrow batches. What it does not know is our
//! storage: [`scan_exec`] turns an access method of `sheaf-access` into a leaf of such a plan, and
//! [`keyed_join_exec`] joins by looking keys up in an index, a buffer-full at a time; [`regret_exec`] gives a plan up
//! for another one when it has cost too much, and [`lookup_switch`] the lookups of a keyed join;
//! [`recursion_limit_exec`] ends recursions; [`shared_exec`] runs what a plan has twice once. [`runtime`] runs a plan
//! for a caller that is an ordinary blocking thread, and [`thread_placement`] says on
//! which CPUs.

pub mod aggregates;
pub mod collation;
pub mod error;
pub mod functions;
pub mod group_keys;
pub mod hints;
pub mod keyed_join;
pub mod memory_consumers;
mod memory_pool;
pub mod operator;
pub mod plan_size;
pub mod runtime;
pub mod table_source;
pub mod typing;

pub use error::ExecError;
pub use hints::{IndexHints, TableHints};
pub use runtime::thread_placement::ThreadPlacement;
pub use runtime::{QueryRuntime, QueryStream, RuntimeOptions};
pub use table_source::{MemoryTableSource, SheafTableSource, WorkTableSource};
