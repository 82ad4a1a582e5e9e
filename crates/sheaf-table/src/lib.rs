//! Tables over trees: types, order-preserving keys, rows, the catalog, and the upkeep of indexes.
//!
//! The floor between `sheaf-storage`, which knows bytes only, and the access methods, which know queries.

pub mod account;
pub mod alter_table;
mod altered_definition;
mod amend;
mod auto_increment;
pub mod bulk_load;
pub mod catalog;
mod catalog_accounts;
mod catalog_databases;
mod catalog_foreign_keys;
mod catalog_records;
mod catalog_resource_groups;
mod catalog_statistics;
pub mod change_set;
pub mod check;
mod check_constraint;
pub mod collation;
pub mod convert;
pub mod cpu_set;
mod definition_check;
mod definition_codec;
pub mod error;
mod external_sort;
pub mod float_text;
pub mod foreign_key;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod global_read_lock;
mod index_build;
pub mod key_codec;
pub mod key_range;
pub mod number_text;
mod overflow;
pub mod privilege;
pub mod progress;
pub mod resource_group;
pub mod row_codec;
pub mod schema;
pub mod search_lock;
pub mod show_create;
pub mod statistics;
pub mod table;
mod table_copy;
mod table_lock;
pub mod temporal;
pub mod temporal_text;
mod tree_load;
pub mod types;
mod unicode_weights;
pub mod value;

pub use account::{Account, AccountName, Accounts, AuthenticationMethod};
pub use alter_table::{AlterOptions, Alteration, Altered};
pub use altered_definition::{AlterWork, ColumnPlace};
pub use auto_increment::AutoIncrementSeries;
pub use bulk_load::{BulkLoad, BulkLoadOptions};
pub use catalog::{
    BorrowedReadGuard, Catalog, QualifiedName, ReadGuard, RowWriteGuard, WriteGuard,
};
pub use catalog_statistics::AutoAnalyze;
pub use change_set::{ChangeGuard, ChangeSet};
pub use check_constraint::{CheckConstraint, CheckSpec, RowTest};
pub use collation::Collation;
pub use cpu_set::CpuSet;
pub use error::{ColumnIssue, ColumnProblem, Result, TableError};
pub use foreign_key::{ForeignKey, ForeignKeySpec, ReferentialAction};
pub use global_read_lock::{ChangeTicket, GlobalReadLock, GlobalReadLocked};
pub use key_codec::{KeyLayout, KeyPart, PartKind};
pub use key_range::{EncodedRange, PartBounds};
pub use privilege::{PrivilegeLevel, Privileges};
pub use progress::{NoProgress, Progress};
pub use resource_group::{ResourceGroup, ResourceGroupKind, ResourceGroups};
pub use row_codec::{RowLayout, RowView, ValueRef};
pub use schema::{
    Column, CreateTable, DefaultValue, Index, IndexPart, IndexPartSpec, IndexSpec, PRIMARY,
    TableDefinition,
};
pub use search_lock::Search;
pub use statistics::{AnalyzeOptions, ColumnEstimator, ColumnStatistics, TableStatistics};
pub use table::{InsertOutcome, RowToChange, Table};
pub use table_lock::{
    Announced, DefinitionChange, LockRequest, NO_SESSION, SessionLock, SessionLockMode,
};
pub use types::ColumnType;
pub use value::{Value, column_text};
