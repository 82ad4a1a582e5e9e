//! Tables over trees: order-preserving keys, rows, the catalog, and the upkeep of indexes.
//!
//! The floor between `sheaf-storage`, which knows bytes only, and `sheaf-types`, which knows values only, and the
//! access methods, which know queries.

mod build;
pub mod catalog;
mod change;
pub mod check;
mod codec;
mod definition;
pub mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod lock;
pub mod progress;
pub mod statistics;
pub mod table;

pub use build::alter_options::{AlterOptions, Altered};
pub use build::alter_table;
pub use build::alteration::{Alteration, ColumnPlace, InitialValues};
pub use build::altered_definition::AlterWork;
pub use build::build_beside::WAITING as WAITING_FOR_TABLE;
pub use build::bulk_load;
pub use build::bulk_load::BulkLoad;
pub use build::tree_load::BulkLoadOptions;
pub use catalog::account;
pub use catalog::account::{
    Account, AccountName, Accounts, AuthenticationMethod, ColumnPrivileges, GrantedRole,
};
pub use catalog::annotation::annotated;
pub use catalog::cpu_set;
pub use catalog::cpu_set::CpuSet;
pub use catalog::definition_check::{
    MAX_DECLARED_KEY_BYTES, check_database_name, check_table_name,
};
pub use catalog::new_table::{EnteredTable, NewTable};
pub use catalog::privilege;
pub use catalog::privilege::{PrivilegeLevel, Privileges};
pub use catalog::replication::{AppliedChange, KeptReplication, applied, put_replication_position};
pub use catalog::resource_group;
pub use catalog::resource_group::{ResourceGroup, ResourceGroupKind, ResourceGroups};
pub use catalog::statistics::AutoAnalyze;
pub use catalog::view;
pub use catalog::view::{View, ViewAlgorithm, ViewCheck, ViewDefinition, ViewSecurity};
pub use catalog::{
    BorrowedReadGuard, Catalog, CatalogLimits, DatabaseSnapshot, QualifiedName, ReadGuard,
    RowWriteGuard, TableNames, WriteGuard,
};
pub use change::change_set;
pub use change::change_set::{ChangeGuard, ChangeSet};
pub use change::search_lock;
pub use change::search_lock::Search;
pub use codec::fixed_width_loads;
pub use codec::key_codec;
pub use codec::key_codec::KeyLayout;
pub use codec::key_part::{KeyPart, PartKind};
pub use codec::key_range;
pub use codec::key_range::{EncodedRange, PartBounds, Within};
pub use codec::row_codec;
pub use codec::row_codec::{LaterSegments, RowLayout, RowRun, RowView, SegmentRows, ValueRef};
pub use codec::sort_key_text::{sort_key_end, text_of_sort_key};
pub use definition::check_constraint::RowTest;
pub use definition::convert;
pub use definition::default_text::DefaultText;
pub use definition::foreign_key;
pub use definition::schema;
pub use definition::schema::{
    CheckConstraint, CheckSpec, Column, CreateTable, DefaultExpression, DefaultValue, ForeignKey,
    ForeignKeySpec, GeneratedColumn, GeneratedKind, Index, IndexPart, IndexPartSpec, IndexSpec,
    PRIMARY, ReferentialAction, RowOrder, TableDefinition,
};
pub use definition::show_create;
pub use error::{Result, TableError};
pub use lock::global_read_lock;
pub use lock::global_read_lock::{ChangeTicket, GlobalReadLock, GlobalReadLocked};
pub use lock::table_lock::{
    Announced, DefinitionChange, LockRequest, NO_SESSION, SessionLock, SessionLockMode,
    ShownTableLock, TableLockMode,
};
pub use lock::user_lock::{MAX_USER_LOCKS, UserLockError, UserLocks};
pub use progress::{NoProgress, Progress};
pub use statistics::{AnalyzeOptions, ColumnEstimator, ColumnStatistics, TableStatistics};
pub use table::auto_increment::AutoIncrementSeries;
pub use table::followers::{FollowedTable, MOVED_ROW, long_value_of_chunk};
pub use table::hypothetical_index::{HypotheticalIndex, IndexTree};
pub use table::reference_lookup::take_reference_lookups;
pub use table::row_sample::{RowSample, SampleLimits};
pub use table::{InsertOutcome, RowToChange, Table};
