//! sheaf-access: the access methods. Each walks one index of one table and delivers Arrow batches.
//!
//! | method | file | wins when |
//! |---|---|---|
//! | clustered scan | `method/clustered_scan.rs` | much of the table is read, or the primary key bounds it |
//! | index range scan | `method/index_range_scan.rs` | few entries match, or the index holds all columns |
//! | index condition | `batch/index_condition.rs` | a condition on the entry saves row lookups |
//! | jumps | `method/jump_walk.rs`, `keys/key_filter.rs` | conditions beyond the first key part leave large holes |
//! | loose index scan | `method/jump_walk.rs` | MIN, MAX, DISTINCT, GROUP BY want one entry per group of a prefix |
//! | multi-range read | `method/multi_range_read.rs` | looked-up rows are not in memory |
//! | index merge | `method/index_merge.rs` | conditions on several indexes together leave few rows |
//! | keyed join | `method/keyed_join.rs` | few outer rows meet a large inner table |
//!
//! They compose: a keyed join is (collect keys) -> (sort) -> (read the index) -> (index condition) -> (sort primary
//! keys) -> (multi-range read on the clustered tree).
//!
//! No method holds a page latch when it returns, allocates per row, or counts per row in shared memory.

mod arrow_types;
mod batch;
mod budget;
pub mod cancel;
mod condition;
mod counters;
mod error;
mod index_uses;
mod keys;
mod method;
mod scan_counters;
pub mod sort_rule;
mod spec;

pub use arrow_types::{
    CLUSTERED_KEY, TYPE_KEY, arrow_field, arrow_type, clustered_key_field, clustered_key_position,
    field_at, i256_of, int256_of, projected_schema, schema_of, table_schema, type_of_arrow,
    wide_of,
};
pub use budget::{Budget, Prices};
pub use cancel::CancelFlag;
pub use condition::{BatchCondition, ColumnsCondition, CompareOp, Condition, EncodedCondition};
pub use counters::{Counter, ScanMetrics, SessionCounters};
pub use error::{AccessError, Result};
pub use index_uses::{IndexUse, IndexUses};
pub use keys::key_filter::{KeyFilter, PartInterval};
pub use method::keyed_join::KeyedLookup;
pub use method::late_columns::LateColumns;
pub use method::scan::Scan;
pub use method::scan_reach::{Reached, ScanReach};
pub use method::split::split_ranges;
pub use spec::{
    BatchSize, DEFAULT_BATCH_ROWS, DEFAULT_BATCH_STRING_BYTES, DEFAULT_READ_AHEAD_PAGES, Fetch,
    FirstOf, IndexRef, KeyedLookupSpec, MergeInput, MergeKind, MergeSpec, ScanSpec, SortKeys,
};
