//! sheaf-access: the access methods. Each walks one index of one table and delivers Arrow batches.
//!
//! | method | file | wins when |
//! |---|---|---|
//! | clustered scan | `clustered_scan.rs` | much of the table is read, or the primary key bounds it |
//! | index range scan | `index_range_scan.rs` | few entries match, or the index holds all columns |
//! | index condition | `index_condition.rs` | a condition on the entry saves row lookups |
//! | jumps | `jump_walk.rs`, `key_filter.rs` | conditions on later key parts, or not on the first, leave large holes |
//! | loose index scan | `jump_walk.rs` | MIN, MAX, DISTINCT, GROUP BY want one entry per group of a prefix |
//! | multi-range read | `multi_range_read.rs` | looked-up rows are not in memory |
//! | index merge | `index_merge.rs` | conditions on several indexes together leave few rows |
//! | keyed join | `keyed_join.rs` | few outer rows meet a large inner table |
//!
//! They compose: a keyed join is (collect keys) -> (sort) -> (read the index) -> (index condition) -> (sort primary
//! keys) -> (multi-range read on the clustered tree).
//!
//! No method holds a page latch when it returns, allocates per row, or counts per row in shared memory.

mod arrow_types;
mod batch_assembler;
mod budget;
mod byte_strings;
pub mod cancel;
mod clustered_scan;
mod columns;
mod condition;
mod counters;
mod encoded;
mod entry_rows;
mod error;
mod index_condition;
mod index_entries;
mod index_merge;
mod index_range_scan;
mod jump_walk;
mod key_buffer;
mod key_condition;
mod key_filter;
mod key_windows;
mod keyed_join;
mod materialize;
mod multi_range_read;
mod range_cursor;
mod row_block;
mod row_condition;
mod scan;
mod seen_table;
mod spec;
mod split;
mod tally;
mod verdict_memo;
mod words;

pub use arrow_types::{
    CLUSTERED_KEY, TYPE_KEY, arrow_field, arrow_type, clustered_key_field, clustered_key_position,
    field_at, projected_schema, table_schema,
};
pub use budget::{Budget, Prices};
pub use cancel::CancelFlag;
pub use condition::{BatchCondition, ColumnsCondition, CompareOp, Condition, EncodedCondition};
pub use counters::{Counter, ScanMetrics, SessionCounters};
pub use error::{AccessError, Result};
pub use key_filter::{KeyFilter, PartInterval};
pub use keyed_join::KeyedLookup;
pub use scan::Scan;
pub use spec::{
    DEFAULT_BATCH_ROWS, DEFAULT_READ_AHEAD_PAGES, Fetch, FirstOf, IndexRef, KeyedLookupSpec,
    MergeInput, MergeKind, MergeSpec, ScanSpec, SortKeys,
};
pub use split::split_ranges;
