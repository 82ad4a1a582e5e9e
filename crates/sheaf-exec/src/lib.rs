//! The operators that Sheaf adds to DataFusion's, and the runtime that drives a plan.
//!
//! DataFusion supplies joins, aggregates, sorts and windows over Arrow batches. What it does not know is our storage.
//!
//! | folder or file | what it holds |
//! |---|---|
//! | [`operator`] | operators that are not DataFusion's: scans, shared parts of a plan, plans that may be abandoned |
//! | [`keyed_join`] | a join that looks keys up in an index, a buffer-full at a time |
//! | [`functions`], [`aggregates`] | MySQL's functions, as kernels over Arrow arrays |
//! | [`typing`] | MySQL's typing rules, from markers to plain expressions |
//! | [`functions::collation`] | sort keys of strings, which is what strings are compared by |
//! | [`runtime`] | runs a plan for a caller that is an ordinary blocking thread, on the CPUs that it may use |
//! | `memory_pool`, [`memory_consumers`] | which operator gets how much query memory, and which has run out |
//! | [`blocking`] | work that blocks, on a worker thread |
//! | [`row_by_row`], [`json_table`], [`lateral`] | operators that DataFusion's logical plans do not have |
//! | [`value_array`], [`shared_constant`], [`long_literal`] | values of a column as an array, and long constants |
//! | [`table_source`], [`hints`], [`plan_size`], [`group_keys`] | what the planners see of tables and plans |

pub mod aggregates;
pub mod blocking;
pub mod error;
pub mod functions;
pub mod group_keys;
pub mod hints;
pub mod json_table;
pub mod keyed_join;
pub mod lateral;
pub mod long_literal;
pub mod memory_consumers;
pub mod memory_pool;
pub mod operator;
pub mod plan_size;
pub mod row_by_row;
pub mod runtime;
pub mod shared_constant;
mod short_key;
pub mod table_source;
pub mod typing;
pub mod value_array;

pub use error::ExecError;
pub use hints::{IndexHints, TableHints};
pub use runtime::thread_placement::ThreadPlacement;
pub use runtime::{QueryRuntime, QueryStream, RuntimeOptions};
pub use table_source::{
    CommonTableSource, MemoryTableSource, SheafTableSource, WorkTableSource, for_each_node,
};
