//! The storage floor of Sheaf: disk, buffer pool, pages and the B+trees in them.
//!
//! ```text
//!   Storage, Transaction          open and close, trees by number, changes that stay or go together
//!   Tree, LeafCursor, BulkBuilder ordered byte keys -> byte values
//!   ReadView, versions            what a reader may see, and where it finds what pages held before
//!   row locks                     which transaction waits for which
//!   backup, archive, restore      copies of all this, made while it is used, and brought forward to any moment
//!   mini-transactions, extents    every change of a page, every page that is taken or freed
//!   BufferPool, page guards       frames, latches, prefetch, write-back
//!   Disk                          files: io_uring, threads, or a simulation
//! ```
//!
//! Everything here is synchronous: a call waits for the pages that it needs, and nothing else. The floors above use
//! what this module re-exports and never see a page.

mod background;
mod check;
mod copy;
mod counters;
pub mod disk;
mod durability;
mod error;
#[cfg(all(any(test, feature = "fuzzing"), not(feature = "simulation")))]
pub mod fuzzing;
mod key_range;
mod log;
mod node;
mod page;
mod page_store;
mod pool;
mod random;
mod space;
mod storage;
pub mod sync;
mod temp_file;
mod transaction;
mod tree;

/// The pages under the trees, for this crate's own tests: no floor above sees them.
#[doc(hidden)]
pub mod pages {
    pub use crate::pool::buffer_pool::{BufferPool, MIN_FRAMES, PoolOptions};
    pub use crate::pool::guard::Restart;
    pub use crate::pool::page_table::PAGES_PER_CHUNK;
    pub use crate::pool::write_back::WriteBackStep;
}

pub use check::StorageCheck;
pub use copy::archive;
pub use copy::archive::{ArchiveProgress, FolderArchive, LogArchive, LogRange};
pub use copy::backup::{BackupSummary, CopyProgress};
pub use copy::restore::{BackupInfo, RestoreUntil, Restored, backup_info, restore, restore_to};
pub use counters::{LockWaits, PoolCounters, ThreadPageWork, TransactionCounters};
pub use disk::data_directory::DATA_FILE;
pub use disk::{Disk, DiskKind, FileId};
pub use error::{Result, StorageError};
pub use log::change_feed::{
    ChangeFeed, ChangePlace, FeedPoint, Followed, FollowedChange, FollowedTransaction,
};
pub use log::{HistoryId, LogCounters, SyncLog};
pub use page::{Lsn, PAGE_SIZE, PageId, TreeId};
pub use page_store::EndTransaction;
pub use pool::passing_pages::KeptShare;
pub use pool::prefetch::PrefetchSummary;
pub use random::Random;
pub use storage::{FILL_FACTORS, Storage, StorageOptions};
pub use temp_file::{TempFile, TempFileError, TempFileReader, TempSpace};
pub use transaction::lock_wait::{count_lock_wait, thread_lock_wait_ns};
pub use transaction::row_lock::{
    Interrupt, LOCK_BYTES, LockMode, LockWait, RangeLock, ShownLock, ShownLocks, ShownTarget,
};
pub use transaction::snapshot::{MAX_SNAPSHOTS, ReadView};
pub use transaction::{
    ChangedRows, LockedRow, PendingCommit, Transaction, TransactionId, Unsettled,
};
pub use tree::{
    BulkBuilder, Direction, KeyRange, LOOK_AHEAD_KEYS, LeafCursor, LeafEntries, LeafSample,
    MAX_ENTRY_BYTES, MAX_KEY_BYTES, MIN_VALUE_LIMIT, PointReader, ReadAhead, Residency, Settled,
    Tree, TreeCheck, TreeStatistics, prefix_successor, value_limit,
};

/// Gives back what the calling thread keeps for its next statement, for a thread that will have none for a while.
pub fn release_thread_memory() {
    tree::release_thread_buffers();
    log::mini_transaction::release_thread_frame();
    sheaf_memory::release_thread_memory();
}
