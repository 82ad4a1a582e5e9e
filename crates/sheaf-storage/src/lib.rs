//! The storage floor of Sheaf: disk, buffer pool, pages and the B+trees in them.
//!
//! ```text
//!   Storage, Transaction          open and close, trees by number, changes that stay or go together
//!   Tree, LeafCursor, BulkBuilder ordered byte keys -> byte values
//!   ReadView, versions            what a reader may see, and where it finds what pages held before
//!   row locks                     who waits for whom
//!   backup, archive, restore      copies of all this, made while it is used, and brought forward to any moment
//!   mini-transactions, extents    every change of a page, every page that is taken or given back
//!   BufferPool, page guards       frames, latches, prefetch, write-back
//!   Disk                          files: io_uring, threads, or a simulation
//! ```
//!
//! Everything here is synchronous: a call waits for the pages that it needs, and nothing else. The floors above use
//! what this module re-exports and never see a page.

pub mod archive;
mod background;
mod backup;
mod buffer_pool;
mod check;
mod checkpointer;
mod counters;
pub mod disk;
mod doublewrite;
mod error;
mod eviction;
mod extent;
mod file_header;
mod frame_arena;
#[cfg(all(any(test, feature = "fuzzing"), not(feature = "simulation")))]
pub mod fuzzing;
mod guard;
mod latch;
mod log;
mod log_bypass;
mod lost_pages;
mod mini_transaction;
mod page;
mod page_read;
mod page_store;
mod page_table;
mod pool_core;
mod prefetch;
mod random;
mod recovery;
mod redo;
mod restore;
mod row_lock;
mod snapshot;
mod spill_file;
mod storage;
pub mod sync;
mod temp_file;
mod transaction;
mod transaction_system;
mod tree;
mod tree_directory;
mod undo_stack;
mod versions;
mod word_loads;
mod write_back;

/// The pages under the trees, for this crate's own tests: no floor above sees them.
#[doc(hidden)]
pub mod pages {
    pub use crate::buffer_pool::{BufferPool, MIN_FRAMES, PoolOptions};
    pub use crate::guard::Restart;
    pub use crate::write_back::WriteBackStep;
}

pub use archive::{ArchiveProgress, FolderArchive, LogArchive, LogRange};
pub use backup::{BackupSummary, CopyProgress};
pub use check::StorageCheck;
pub use counters::{PoolCounters, ThreadPageWork, TransactionCounters};
pub use disk::{Disk, DiskKind, FileId};
pub use error::{Result, StorageError};
pub use log::{HistoryId, LogCounters, SyncLog};
pub use page::{Lsn, PAGE_SIZE, PageId, TreeId};
pub use page_store::EndTransaction;
pub use prefetch::PrefetchSummary;
pub use random::Random;
pub use restore::{BackupInfo, RestoreUntil, Restored, backup_info, restore, restore_to};
pub use row_lock::{Interrupt, LockMode, LockWait, RangeLock};
pub use snapshot::{MAX_SNAPSHOTS, ReadView};
pub use storage::{Storage, StorageOptions};
pub use temp_file::{TempFile, TempFileError, TempFileReader, TempSpace};
pub use transaction::{LockedRow, PendingCommit, Transaction, TransactionId, Unsettled};
pub use tree::{
    BulkBuilder, Direction, KeyRange, LOOK_AHEAD_KEYS, LeafCursor, LeafEntries, LeafSample,
    MAX_ENTRY_BYTES, MAX_KEY_BYTES, PointReader, ReadAhead, Residency, Settled, Tree, TreeCheck,
    TreeStatistics, prefix_successor, release_thread_buffers,
};
