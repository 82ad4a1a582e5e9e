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
pub mod apply_exec;
pub mod batch_condition;
pub mod bounded_expr;
pub mod bounded_projection;
pub mod checked_rows;
pub mod collation;
pub mod detached_exec;
pub mod error;
pub mod functions;
pub mod grace_join;
pub mod group_keys;
pub mod hints;
mod input_handed_on;
pub mod interruptible_exec;
mod kept_table;
mod key_encoder;
pub mod keyed_join_exec;
pub mod less_order_exec;
pub mod lookup_record;
pub mod lookup_switch;
pub mod measuring_exec;
pub mod memory_consumers;
mod memory_pool;
pub mod plan_size;
pub mod recursion_limit_exec;
pub mod regret_exec;
pub mod runtime;
pub mod scan_exec;
pub mod shared_exec;
mod spill_files;
pub mod table_source;
pub mod thread_placement;
pub mod typing;
pub mod values_exec;

pub use error::ExecError;
pub use hints::{IndexHints, TableHints};
pub use runtime::{QueryRuntime, QueryStream, RuntimeOptions};
pub use table_source::{MemoryTableSource, SheafTableSource, WorkTableSource};
pub use thread_placement::ThreadPlacement;
